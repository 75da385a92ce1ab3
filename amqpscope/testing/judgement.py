"""A capture of a test, held against the rules: whether the test fails for it, and the words that say why."""

import io
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console

from amqpscope.errors import CaptureError
from amqpscope.finding import Finding
from amqpscope.limits import MAX_TEST_FINDINGS
from amqpscope.reading import Capture
from amqpscope.report.line import Line
from amqpscope.report.notes import note_lines
from amqpscope.report.outcome import nothing_to, outcome
from amqpscope.report.painter import Painter
from amqpscope.report.printable import printable
from amqpscope.report.timeline import Clock
from amqpscope.report.verdict import Tally, Verdicts, headline

__all__ = ["Judgement", "judge"]

_WIDTH: Final = 118
"""Columns of a report: CI servers show that many, and pytest puts two in front."""

_MOST: Final = 3
"""Findings of one rule by one peer of a connection that a report has in full."""


class Judgement:
    """What is to be said of a capture.

    findings: the first of all that were found, as `amqpscope.check` gives them. counting: of them those for
    which a test fails. failed: whether it does, for them, or because there was nothing to check or the
    capture cannot be read. text: the report; its first line says the worst of it.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counting: list[Finding] = []
        self.failed = False
        self.text = ""


def judge(
    source: str | Sequence[str],
    counts: Callable[[Finding], bool],
    allow_empty: bool,
    profile: str,
    spec: str,
    hint: str,
) -> Judgement:
    """Read a capture to its end: a file, or several that are one.

    counts: whether a test fails for a finding. allow_empty: it does not for a capture without AMQP. hint:
    what to look after if there is none. Raises FilterError for a profile or an edition that there is not.
    """
    told = Judgement()
    clock = Clock("r")
    shown, others = Verdicts(clock, _MOST), Tally()
    tally = Tally()
    failure = nothing = ""
    capture = None
    name = source if isinstance(source, str) else ", ".join(source)
    try:
        with Capture(
            source, keep=False, records=False, judge=True, context=True, profile=profile, spec=spec
        ) as capture:
            name = capture.name
            try:
                for _ in capture.blocks():
                    _take(capture, told, counts, shown, others, tally)
            except CaptureError:
                capture.stop()
                _take(capture, told, counts, shown, others, tally)
                raise
            nothing = nothing_to(capture, "check")
    except CaptureError as error:
        failure = str(error).removeprefix(f"{name}: ")
    counted = sum(shown.tally.counts.values())
    told.failed = bool(counted or failure or (nothing and not allow_empty))
    if capture is not None:
        clock.start(capture.began)
    text = []
    if counted:
        more = f" (and {counted - 1} more)" if counted > 1 else ""
        text.append(_painted([([*headline(told.counting[0]), ("", more)], 4)]))
    elif failure:
        text.append(f"{printable(name)}: {printable(failure)}")
    elif nothing:
        text.append(f"{printable(nothing)}{hint}")
    if capture is not None:
        text.append(f"{printable(name)}: {outcome(capture, tally, printable(failure))}")
        lines = shown.lines()
        if others.counts:
            lines += [([], -1), ([("", f"{others.text()} for which the test does not fail")], 4)]
        lines += [([("note", f"note: {printable(one)}")], 6) for one in note_lines(capture.notes)]
        text.append(_painted(lines))
    if counted and isinstance(source, str):
        # Whole, whatever its length: it is there to be copied.
        command = f"amqpscope why {shlex.quote(printable(name))} {told.counting[0].packet}"
        text.append(f"\nWhat led to it: {command}")
    told.text = "\n".join(one for one in text if one)
    return told


def _take(
    capture: Capture,
    told: Judgement,
    counts: Callable[[Finding], bool],
    shown: Verdicts,
    others: Tally,
    tally: Tally,
) -> None:
    """What is complete by now."""
    for finding in capture.take_findings():
        tally.add(finding)
        if len(told.findings) < MAX_TEST_FINDINGS:
            told.findings.append(finding)
        if counts(finding):
            shown.add(finding)
            if len(told.counting) < MAX_TEST_FINDINGS:
                told.counting.append(finding)
        else:
            others.add(finding)


def _painted(lines: list[tuple[Line, int]]) -> str:
    console = Console(file=io.StringIO(), color_system=None, markup=False, highlight=False, emoji=False)
    painter = Painter(console, _WIDTH)
    return "\n".join(painter.paint(line, hang) for line, hang in lines)
