"""The forms in which `amqpscope read` writes frames for programs and counts them."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.traced import TracedMessage
from amqpscope.cli.output import notes_to_stderr
from amqpscope.input.capture import Capture
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection, Counter, FrameRecord
from amqpscope.report.frame_counts import Census
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames
from amqpscope.report.notes import any_connection, notes_about
from amqpscope.report.printable import printable
from amqpscope.report.settlements import SettlementLog
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wording import count

__all__ = ["CensusWriter", "FrameWriter", "FramesJsonWriter"]


class FrameWriter:
    """Writes the frames of several captures in one form.

    messages: wants messages put together. traces: shows the messages of a broker's log. names: wants each
    frame's link. streaming: writes while reading. judges: wants findings. links: wants to know which
    messages a frame answers. about: whether notes about a connection are wanted.
    """

    about: Callable[[Connection], bool] = staticmethod(any_connection)

    judges = False
    links = False
    messages = True
    traces = False
    names = True
    streaming = True

    def counter(self) -> Counter | None:
        """Before each capture: what takes its frames without records, if they are only to be counted."""
        return None

    def begin(self, capture: Capture, names: LinkNames, log: SettlementLog) -> None:
        """A capture begins. names: asked for the link of every frame, in `block` or before `frame`.

        log: asked instead, if the writer `links`.
        """

    def start(self, time: int) -> None:
        """The capture's first frame, written or not, has this time."""

    def block(self, records: list[FrameRecord]) -> None:
        """All the next frames of the capture, and it is to be seen that they were written."""

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        """One frame."""

    def found(self, findings: list[Finding]) -> None:
        """These findings are complete."""

    def over(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over, all frames of which are asked for."""

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""

    @property
    def shares(self) -> bool:
        """Whether several processes may do this now: one `make`s what another `put`s.

        The methods from here on are for that. All frames are asked for then.
        """
        return False

    def share(self) -> None:
        """From now on, this process only makes. It is asked for frames of some connections only."""

    def make(self, records: list[FrameRecord]) -> Sequence[object]:
        """What is written of the next frames: a plain value for each; or nothing, and `rest` has it."""
        return ()

    def put(self, made: list[tuple[Connection, Any]]) -> None:
        """Write what `make` returned, each with the connection of its frame."""

    def rest(self) -> object:
        """What is not written frame by frame, as a plain value."""
        return None

    def put_rest(self, rest: Any) -> None:
        """Take what `rest` returned."""

    def flush(self) -> None:
        """What was written is to be seen."""

    def traced(self, message: TracedMessage) -> None:
        """A message of a broker's log, which has no frames."""

    def finish(self, capture: Capture) -> None:
        """A capture ends."""

    def fail(self, name: str, reason: str) -> None:
        """A capture cannot be read, or not to its end."""
        self.flush()

    def end(self) -> None:
        """All captures are read."""


_LINES_AT_ONCE = 256
"""Lines of JSON put together for one write: some 200 kB, which stay in the processor's cache."""


class FramesJsonWriter(FrameWriter):
    """One JSON object a frame: a line each, or all of them in one object with the captures.

    linked: with what each frame answers, and with what settles its message.
    """

    def __init__(self, whole: bool, bodies: bool, linked: bool) -> None:
        self.links = linked
        self._log = SettlementLog(LinkNames(), {})
        self._whole = whole
        self._bodies = bodies
        self._lines: list[str] = []
        self._captures: list[str] = []
        self._form = FrameForm("", bodies, LinkNames())
        self._first = True
        if whole:
            sys.stdout.write('{"schema": "amqpscope/frames/1", "frames": [\n')

    def begin(self, capture: Capture, names: LinkNames, log: SettlementLog) -> None:
        self._form = FrameForm(capture.name, self._bodies, names)
        self._log = log

    def block(self, records: list[FrameRecord]) -> None:
        for start in range(0, len(records), _LINES_AT_ONCE):
            self._lines += self.make(records[start : start + _LINES_AT_ONCE])
            self.flush()

    @property
    def shares(self) -> bool:
        return True

    def make(self, records: list[FrameRecord]) -> list[str]:
        if self.links:
            return [self._line(record, self._log.of(record)) for record in records]
        return self._form.lines(records)

    def put(self, made: list[tuple[Connection, Any]]) -> None:
        self._lines += [line for _, line in made]
        self.flush()

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        self._lines.append(self._line(record, link))

    def _line(self, record: FrameRecord, link: Link | None) -> str:
        line = self._form.line(record, link)
        if self.links:
            for linked in (self._log.answered, self._log.settled_by(record)):
                if linked is not None:
                    line = f"{line[:-1]}, {linked.json}}}"
        return line

    def flush(self) -> None:
        if not self._lines:
            return
        if self._whole:
            sys.stdout.write(("" if self._first else ",\n") + ",\n".join(self._lines))
            self._first = False
        else:
            self._lines.append("")
            sys.stdout.write("\n".join(self._lines))
            sys.stdout.flush()
        self._lines = []

    def finish(self, capture: Capture) -> None:
        self.flush()
        if self._whole:
            notes = [_note_object(note) for note in notes_about(capture.notes, self.about)]
            self._captures.append(json.dumps({"capture": capture.name, "error": None, "notes": notes}))
        else:
            notes_to_stderr(capture.name, notes_about(capture.notes, self.about))

    def fail(self, name: str, reason: str) -> None:
        self.flush()
        if self._whole:
            self._captures.append(json.dumps({"capture": name, "error": reason, "notes": []}))

    def end(self) -> None:
        if self._whole:
            sys.stdout.write('\n], "captures": [' + ", ".join(self._captures) + "]}\n")


def _note_object(note: Note) -> dict[str, object]:
    connection = None if note.connection is None else note.connection.id
    return {"code": note.code, "packet": int(note.packet), "connection": connection, "detail": note.detail}


class CensusWriter(FrameWriter):
    """How many frames of each kind each peer sent."""

    messages = False
    names = False
    streaming = False

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._capture: Capture | None = None
        self._census = Census()
        # Connections of which frames were selected: those that are over are only counted.
        self._selected: set[Connection] = set()
        self._over = 0

    def counter(self) -> Counter | None:
        self._census = Census()
        return self._census

    def begin(self, capture: Capture, names: LinkNames, log: SettlementLog) -> None:
        self._capture = capture
        self._selected = set()
        self._over = 0

    def block(self, records: list[FrameRecord]) -> None:
        self._census.add(records)

    @property
    def shares(self) -> bool:
        return True

    def share(self) -> None:
        self._census.clear()

    def make(self, records: list[FrameRecord]) -> tuple[()]:
        self._census.add(records)
        return ()

    def rest(self) -> object:
        return self._census.dump()

    def put_rest(self, rest: Any) -> None:
        self._census.include(rest)

    def frame(self, record: FrameRecord, link: Link | None) -> None:
        self._census.add([record])
        self._selected.add(record.connection)

    def forget(self, connection: Connection) -> None:
        if connection in self._selected:
            self._selected.discard(connection)
            self._over += 1

    def fail(self, name: str, reason: str) -> None:
        if self._capture is not None and self._census.frames:
            self.finish(self._capture)
            sys.stdout.flush()

    def finish(self, capture: Capture) -> None:
        self._capture = None
        census = self._census
        connections = self._over + len(self._selected) or int(capture.spoken)
        if self._json:
            counted = {
                "schema": "amqpscope/census/1",
                "capture": capture.name,
                "connections": connections,
                "frames": [
                    {"name": name, "client": client, "server": server}
                    for name, client, server in census.rows()
                ],
                "frames_with_problems": int(census.problems),
                "octets": int(census.octets),
                "missing": int(census.missing),
            }
            print(json.dumps(counted))
        else:
            for line in _table(capture.name, connections, census):
                print(line)
        notes_to_stderr(capture.name, notes_about(capture.notes, self.about))


def _table(name: str, connections: int, census: Census) -> list[str]:
    where = f"{count(connections, 'connection')}, {count(census.octets, 'octet')}"
    lines = [f"{printable(name)}: {count(census.frames, 'frame')} on {where}"]
    rows = census.rows()
    if rows:
        client = sum(row[1] for row in rows)
        server = sum(row[2] for row in rows)
        lines.append(f"{'':<16}{'client':>11}{'server':>11}")
        lines += [f"{row[0]:<16}{row[1] or '-':>11}{row[2] or '-':>11}" for row in rows]
        lines.append(f"{'all':<16}{client or '-':>11}{server or '-':>11}")
    if census.problems:
        lines.append(f"frames with problems: {census.problems}")
    if census.missing:
        lines.append(f"octets not captured: {census.missing}")
    return lines
