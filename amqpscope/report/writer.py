"""What writes the findings of several captures, in one form or in several at once."""

from collections.abc import Callable, Sequence

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.input.capture import Capture
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection, FrameRecord, FrameRef
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.policy.judging import Hearer
from amqpscope.report.diagnosis_text import DiagnosisBacklog, is_trouble
from amqpscope.report.finding_counts import FindingCounts
from amqpscope.report.notes import any_connection, note_lines, notes_about
from amqpscope.report.outcome import nothing_to, outcome
from amqpscope.report.suppressed import Suppressed
from dissectors.wording import count

__all__ = ["FindingWriter", "Writers"]


class FindingWriter(Hearer):
    """Writes the findings of several captures in one form.

    streaming: writes while reading. Of the capture that is being read: name; capture, None while it is not
    open; tally of the findings that are not suppressed; set_aside: those that are; ignored: how many are not
    shown.

    about: whether notes about a connection are wanted. filtered: the filters of the run as on a command line,
    "" for none.

    A form says what it does with a finding (`add`), at the end of a capture (`close`), and at the very end.
    """

    streaming = True

    def __init__(self) -> None:
        self.name = ""
        self.capture: Capture | None = None
        self.tally = FindingCounts()
        self.set_aside = Suppressed()
        self.ignored = 0
        self.about: Callable[[Connection], bool] = any_connection
        self.filtered = ""
        # Diagnoses of the capture that are no mere facts; and all of them, for people.
        self.troubles = 0
        self.diagnosis_list = DiagnosisBacklog()

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        self.troubles += sum(is_trouble(one) for one in found)
        self.diagnosis_list.add(found, order, connection)

    def add(self, finding: Finding) -> None:
        """One more finding."""

    def close(self, nothing: str, reason: str) -> None:
        """The capture is done. nothing: why there was nothing to check; reason: why it was not read to its
        end, or not at all; "" otherwise."""

    @property
    def notes(self) -> list[Note]:
        """What is to be said of the capture itself."""
        if self.capture is None:
            return []
        return notes_about(self.capture.notes, self.about)

    def outcome(self, reason: str) -> str:
        """What became of the capture, in a line. reason: why it was not read to its end, or ""."""
        others = self.set_aside.parts()
        if self.ignored:
            others.append(f"{count(self.ignored, 'finding')} ignored")
        text = outcome(self.capture, self.tally, reason, others)
        if self.troubles:
            text = text.replace("nothing wrong found", "no broken rule found")
            text += f"; {self.troubles} {'diagnosis' if self.troubles == 1 else 'diagnoses'}"
        return f"{text}; only {self.filtered}" if self.filtered else text

    def remarks(self) -> list[str]:
        """What is to be said of the capture beside its findings, and notes."""
        diagnosed = ["".join(text for _, text in line) for line in self.diagnosis_list.lines()]
        return [
            *diagnosed,
            *self.set_aside.lines(),
            *(f"note: {line.text}" for line in note_lines(self.notes)),
        ]

    def begin(self, path: str) -> None:
        self.name = path
        self.capture = None
        self.tally = FindingCounts()
        self.set_aside = Suppressed()
        self.ignored = 0
        self.troubles = 0
        self.diagnosis_list.close()
        self.diagnosis_list = DiagnosisBacklog()

    def opened(self, capture: Capture) -> None:
        self.name = capture.name
        self.capture = capture

    def take(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.assessment.suppressed_by:
                self.set_aside.add(finding)
            else:
                self.tally.add(finding)
            self.add(finding)

    def ignore(self, count: int) -> None:
        self.ignored += count

    def finish(self, capture: Capture, empty: bool) -> None:
        self.close(nothing_to(capture, "check") if empty else "", "")

    def fail(self, reason: str) -> None:
        self.close("", reason.removeprefix(f"{self.name}: ") or "unreadable")


class Writers(Hearer):
    """Several at once. The first is the one that somebody looks at meanwhile, or does not any more.

    gone: called when nobody reads any more what the first one writes; the others go on without it. Without
    that the run ends then.
    """

    def __init__(
        self, first: FindingWriter, others: Sequence[Hearer], gone: Callable[[], None] | None = None
    ) -> None:
        self._first: FindingWriter | None = first
        self._others = list(others)
        self._gone = gone
        self.context = first.context or any(writer.context for writer in others)
        self.connections = first.connections or any(writer.connections for writer in others)
        self.records = first.records or any(writer.records for writer in others)
        self.diagnoses = first.diagnoses or any(writer.diagnoses for writer in others)
        self.streaming = first.streaming
        # Everything was written.
        self.ended = False

    def around(self, spot: FrameRef, records: Sequence[FrameRecord], links: Sequence[object]) -> object:
        # All who want frames show the same of them.
        return next((made.around(spot, records, links) for made in self._all() if made.context), None)

    def begin(self, path: str) -> None:
        self._each(lambda hearer: hearer.begin(path))

    def opened(self, capture: Capture) -> None:
        self._each(lambda hearer: hearer.opened(capture))

    def frames(self, records: list[FrameRecord]) -> None:
        self._each(lambda hearer: hearer.frames(records))

    def take(self, findings: list[Finding]) -> None:
        self._each(lambda hearer: hearer.take(findings))

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        self._each(lambda hearer: hearer.over(analyses))

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        self._each(lambda hearer: hearer.diagnosed(found, order, connection))

    def ignore(self, count: int) -> None:
        self._each(lambda hearer: hearer.ignore(count))

    def finish(self, capture: Capture, empty: bool) -> None:
        self._each(lambda hearer: hearer.finish(capture, empty))

    def fail(self, reason: str) -> None:
        self._each(lambda hearer: hearer.fail(reason))

    def conclude(self, closing: RunConclusion) -> None:
        self._each(lambda hearer: hearer.conclude(closing))

    def end(self) -> None:
        self._each(lambda hearer: hearer.end())
        self.ended = True

    def _all(self) -> list[Hearer]:
        return self._others if self._first is None else [self._first, *self._others]

    def _each(self, write: Callable[[Hearer], None]) -> None:
        if self._first is not None:
            try:
                write(self._first)
            except BrokenPipeError:
                if self._gone is None:
                    raise
                self._first = None
                self._gone()
        for writer in self._others:
            write(writer)
