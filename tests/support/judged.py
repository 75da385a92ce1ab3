"""What the product says of a capture's octets: its findings, with their severity."""

from __future__ import annotations

import io

import amqpscope
from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import severity

__all__ = ["Trickle", "errors", "judged"]


class Trickle(io.BytesIO):
    """A file that gives only so many octets at a time."""

    def __init__(self, octets: bytes, sizes: list[int]) -> None:
        super().__init__(octets)
        self.sizes = sizes
        self.turn = 0

    def read1(self, size: int | None = -1, /) -> bytes:
        most = self.sizes[self.turn % len(self.sizes)]
        self.turn += 1
        return super().read(most if size is None or size < 0 else min(size, most))


def judged(octets: bytes, sizes: list[int] | None = None) -> tuple[list[Finding], list[Finding]]:
    """The findings made while a capture is read, in pieces of these sizes, and those because it ended."""
    source = io.BytesIO(octets) if sizes is None else Trickle(octets, sizes)
    findings: list[Finding] = []
    made = 0
    with amqpscope.Capture(source, amqpscope.CaptureOptions(judge=True)) as capture:
        for _ in capture.blocks():
            findings += capture.take_findings()
            if not capture.protocols:
                made = len(findings) + len(waiting(capture))  # the last time round it has ended
    return findings[:made], findings[made:]


def waiting(capture: amqpscope.Capture) -> list[Finding]:
    """The findings for which something more is awaited."""
    judges = [analysis.judge for analysis in capture.connections]
    return [finding for judge in judges if judge is not None for finding in judge.made]


def errors(octets: bytes) -> list[Finding]:
    """All findings of severity error."""
    while_read, at_end = judged(octets)
    return [finding for finding in while_read + at_end if severity(finding.rule) == "error"]
