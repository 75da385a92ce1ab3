"""Two captures made here, compared: what is shown about them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from amqpscope.diff.comparison import Comparison, Difference, compare
from amqpscope.diff.words import subject, values
from amqpscope.input.replay import ReplayableCapture
from amqpscope.policy.policy import Given, Policy

__all__ = ["compared", "compared_files", "reported"]


def compared_files(a: Path, b: Path) -> Comparison:
    """Both captures, with every certain finding counted."""
    given = Given()
    given.fail_on = "note"
    with ReplayableCapture(str(a)) as one, ReplayableCapture(str(b)) as other:
        return compare(one, other, Policy(given=given))


def compared(a: bytes, b: bytes) -> Comparison:
    """The same of octets."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "a.pcap", Path(folder) / "b.pcap"
        for path, octets in zip(paths, (a, b), strict=True):
            path.write_bytes(octets)
        return compared_files(*paths)


def reported(comparison: Comparison) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """All differences in words, with the values of A and B."""
    found: list[Difference] = []
    for meeting in comparison.meetings:
        found += meeting.differences
    return [(subject(one), values(one)) for one in found]
