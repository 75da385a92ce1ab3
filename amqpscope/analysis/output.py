"""What is wanted of the connections of a capture, and where it is gathered until somebody takes it."""

from collections.abc import Callable

from amqpscope.capture.traced import TracedMessage
from amqpscope.layers.secrets import Secrets
from amqpscope.limits import MAX_CAPTURE_NOTES
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Counter, FrameRecord, FrameWatch
from amqpscope.rules.context import Contexts
from amqpscope.tracking.correlation_budget import CorrelationBudget
from dissectors.wire import i64

__all__ = ["AnalysisOutput"]


class AnalysisOutput:
    """Shared by all connections of a capture.

    messages: put messages together. records: gather frame records, else only count. judge: make findings,
    which needs messages; context: with the frames around them. live: the capture goes on while it is looked
    at, so findings are given at once, too.
    """

    def __init__(
        self,
        messages: bool = True,
        records: bool = True,
        judge: bool = False,
        context: bool = False,
        live: bool = False,
    ) -> None:
        # Put messages together.
        self.messages: bool = messages
        # The dialect that is spoken, of a protocol that has several; "" to find out.
        self.dialect: str = ""
        # What gives findings the frames around them. None: nothing does.
        self.contexts: Contexts | None = Contexts() if context else None
        # The capture goes on while it is looked at.
        self.live: bool = live
        # Takes the frames instead of records, once it is known who sends them.
        self.counter: Counter | None = None
        # Takes each record when it is given out.
        self.watch: FrameWatch | None = None
        # Frame records. None: nobody wants them, and a record is gone when it was judged.
        self.records: list[FrameRecord] | None = [] if records else None
        # Findings for which nothing more is awaited. None: nothing is judged.
        self.findings: list[Finding] | None = [] if judge else None
        # Findings of a live capture as soon as they are made.
        self.fresh: list[Finding] | None = [] if live else None
        # Those of `fresh` to which the other peer has reacted since.
        self.amended: list[Finding] | None = [] if live else None
        # How many messages a broker has traced, and what takes them.
        self.traced: i64 = 0
        self.trace: Callable[[TracedMessage], None] | None = None
        # Notes about the capture.
        self.notes: list[Note] = []
        # How many messages may be kept for other connections.
        self.allowance: CorrelationBudget = CorrelationBudget()
        # What layers decrypt with.
        self.secrets: Secrets = Secrets()
        # How many notes of each code were taken.
        self._noted: dict[str, int] = {}

    def take_traced(self, message: TracedMessage) -> None:
        """A message of a broker's log."""
        self.traced += 1
        if self.trace is not None:
            self.trace(message)

    def take_records(self) -> list[FrameRecord]:
        """The frame records since the last call."""
        records = self.records
        if not records:
            return []
        taken = records[:]
        records.clear()
        return taken

    def take_findings(self) -> list[Finding]:
        """The findings since the last call for which nothing more is awaited."""
        return _taken(self.findings)

    def take_fresh(self) -> list[Finding]:
        """The findings made since the last call that something is still awaited for."""
        return _taken(self.fresh)

    def take_amended(self) -> list[Finding]:
        """Those of `take_fresh` to which the other peer has reacted since the last call."""
        return _taken(self.amended)

    def take_notes(self, last: bool = False) -> list[Note]:
        """The notes since the last call, of each code as many as a capture may have.

        last: the capture is over; then how many others there were is added.
        """
        taken: list[Note] = []
        for note in self.notes:
            count = self._noted.get(note.code, 0) + 1
            self._noted[note.code] = count
            if count <= MAX_CAPTURE_NOTES:
                taken.append(note)
        self.notes.clear()
        if last:
            for code, count in self._noted.items():
                more = count - MAX_CAPTURE_NOTES
                if more > 0:
                    some = "1 more note" if more == 1 else f"{more} more notes"
                    taken.append(Note(code, 0, 0, f"{some} like these", None))
            self._noted.clear()
        return taken


def _taken(findings: list[Finding] | None) -> list[Finding]:
    """What is in the list, which is empty then."""
    if not findings:
        return []
    taken = findings[:]
    findings.clear()
    return taken
