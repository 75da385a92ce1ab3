"""From the octets of a log to TCP segments."""

from collections.abc import Iterator

from amqpscope.capture.file_reader import FileReader
from amqpscope.capture.logs.amqp_net_lite import AmqpNetLiteFrames
from amqpscope.capture.logs.dialogue import Dialogue
from amqpscope.capture.logs.entries import (
    CONTINUES,
    DAMAGED,
    ENDED,
    HEADER,
    LOST,
    UNPLACED,
    Entry,
    LineFormat,
)
from amqpscope.capture.logs.go_amqp import GoAmqpFrames
from amqpscope.capture.logs.proton import ProtonFrames, ProtonOctets
from amqpscope.capture.logs.proton_j import ProtonJFrames
from amqpscope.capture.logs.pyamqp import PyamqpFrames
from amqpscope.capture.logs.rhea import RheaFrames, RheaOctets
from amqpscope.capture.logs.tracer import TracerFrames
from amqpscope.capture.logs.uamqp import UamqpFrames
from amqpscope.capture.notes import Notes
from amqpscope.capture.sink import SegmentSink
from amqpscope.limits import MAX_LOG_CONNECTIONS, MAX_LOG_LINE
from dissectors.wording import count

__all__ = ["LogReader", "log_reader"]

_BEGINNING = 64
"""Octets of a log before any text of a peer."""

_NULS = 4
"""Of so many octets of a log, hardly one is 0, even if it has passwords and bodies of messages in it."""

_UNREADABLE = "the frame in this line cannot be read"

# The octets of a frame say more than its fields do: a format of octets comes before that of the same library.
_FORMATS: tuple[type[LineFormat], ...] = (
    ProtonOctets,
    RheaOctets,
    ProtonFrames,
    RheaFrames,
    ProtonJFrames,
    PyamqpFrames,
    UamqpFrames,
    GoAmqpFrames,
    AmqpNetLiteFrames,
    TracerFrames,
)


def log_reader(opening: bytes, sink: SegmentSink) -> "LogReader | None":
    """A reader for the log that begins with these octets, None if it is a log of no library known here.

    The octets are only looked at.
    """
    if b"\0" in opening[:_BEGINNING] or opening.count(b"\0") > len(opening) // _NULS:
        return None
    lines = opening.decode("utf-8", "replace").split("\n")
    headers: type[LineFormat] | None = None
    for form in _FORMATS:
        trial = form()
        for line in lines:
            said = trial.take(line.rstrip("\r"))
            if not isinstance(said, Entry):
                continue
            if said.name not in (HEADER, ENDED, LOST):
                return LogReader(sink, form())
            if said.name != LOST:
                headers = form
    return None if headers is None else LogReader(sink, headers())


class LogReader(FileReader):
    """Reads a log. `number`: the line at hand; it stands for the number of a packet."""

    def __init__(self, sink: SegmentSink, form: LineFormat) -> None:
        super().__init__()
        self._sink = sink
        self._form = form
        self._notes = Notes(sink)
        # The beginning of a line whose end has not come.
        self._carry = b""
        # The line at hand is too long: the rest of it is passed over.
        self._too_long = False
        # By the name in the log.
        self._dialogues: dict[str, Dialogue] = {}
        self._connections = 0
        # A line was lost since the last connection began: the next one may have begun with it.
        self._loss = False
        self._frames = 0
        self._others = 0
        self._refused = 0
        self._unplaced = 0
        self._untimed = 0
        self._finished = False

    def feed(self, block: bytes) -> None:
        for line in self._lines(block):
            self._line(line)

    def _lines(self, block: bytes) -> Iterator[bytes]:
        """The lines that a block completes. One that is too long comes as a damaged one, without its rest."""
        parts = block.split(b"\n")
        for at, part in enumerate(parts):
            ended = at + 1 < len(parts)
            if not self._too_long:
                self._carry += part
                if len(self._carry) > MAX_LOG_LINE:
                    self._too_long = True
                    self._carry = b""
            if not ended:
                return
            self.number += 1
            if self._too_long:
                self._too_long = False
                self._damage("the line is too long")
                continue
            line, self._carry = self._carry, b""
            yield line

    def _line(self, octets: bytes) -> None:
        """The line of number `self.number`."""
        said = self._form.take(octets.decode("utf-8", "replace").rstrip("\r"))
        if isinstance(said, Entry):
            said.line = said.line or int(self.number)
            if said.name == LOST:
                self._note_damage(_UNREADABLE)
            self._entry(said)
        elif said is DAMAGED:
            self._damage(_UNREADABLE)
        elif said is UNPLACED:
            if self._unplaced == 0:
                self._lose()
            self._unplaced += 1
        elif said is not CONTINUES and octets.strip():
            self._others += 1

    def _damage(self, what: str) -> None:
        """The line at hand was of a frame, of whatever connection."""
        self._note_damage(what)
        self._loss = True
        self._lose()

    def _lose(self) -> None:
        for dialogue in self._dialogues.values():
            dialogue.lose(int(self.number))

    def _note_damage(self, what: str) -> None:
        self._notes.add("capture/log-damaged", self.number, 0, what)

    def _entry(self, entry: Entry) -> None:
        dialogue = self._dialogues.get(entry.connection)
        if entry.name == LOST and dialogue is not None and dialogue.is_closed():
            self._loss = True  # the next connection may have begun with it
            return
        if dialogue is None or dialogue.is_over(entry):
            if self._connections >= MAX_LOG_CONNECTIONS:
                self._refused += 1
                return
            if dialogue is not None:
                dialogue.finish()
            self._connections += 1
            dialogue = Dialogue(self._sink, self._connections, type(self._form))
            if self._loss:
                self._loss = False
                dialogue.lose(int(self.number))
            self._dialogues[entry.connection] = dialogue
        if entry.name != LOST:
            self._frames += 1
            self._untimed += entry.time == 0
        dialogue.take(entry)

    def finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        if self._carry:
            self.number += 1
            line, self._carry = self._carry, b""
            self._line(line)
        unfinished = self._form.finish()
        if unfinished:
            self._notes.add("capture/log-damaged", 0, 0, f"{count(unfinished, 'frame')} logged only in part")
        for dialogue in self._dialogues.values():
            dialogue.finish()
        self._note_what_it_is()
        self._notes.finish()

    def _note_what_it_is(self) -> None:
        """What the log was taken for, and how much of it was something else."""
        what = f"a log of {self._form.library}, not a capture: {count(self._frames, 'frame')}"
        if self._others:
            what += f"; {count(self._others, 'line')} with other content skipped"
        if self._refused:
            what += f"; {count(self._refused, 'frame')} skipped, because the log has too many connections"
        if self._unplaced:
            what += f"; {count(self._unplaced, 'frame')} skipped: {self._form.unplaced}"
        if self._form.retold:
            what += "; the log has no octets, so amqpscope knows nothing about encodings, sizes and messages"
        self._notes.add("capture/log", 0, 0, what)
        if self._untimed:
            self._notes.add(
                "capture/no-time",
                0,
                0,
                f"{count(self._untimed, 'line')} without a time; the time is set to 0",
            )
