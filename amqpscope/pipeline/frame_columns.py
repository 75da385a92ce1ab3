"""The rows of the table `frames`, by column.

The fields of frequent frames have columns of their own. The `FrameFields` of a protocol knows which frames
these are; whatever it cannot put into columns stays JSON, in the column `fields`.
"""

from datetime import date, timedelta
from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline.columns import Column, TableColumns, Words
from amqpscope.pipeline.packets import split
from amqpscope.protocols import protocol_of_kind
from amqpscope.report.json_form import FrameForm
from amqpscope.report.secrets import problem_path
from amqpscope.tracking.amqp10.identity import Link
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Days", "FrameColumns", "FrameFields"]

_EPOCH: Final = date(1970, 1, 1)
_DAY: Final = 86_400 * 1_000_000_000


class Days:
    """Turns times into dates; most times are of the same day as the last."""

    def __init__(self) -> None:
        self._number: i64 = 0
        self._date: date = _EPOCH

    def of(self, time: i64) -> date:
        """The date (UTC) of a time in ns since 1970."""
        number = time // _DAY
        if number != self._number:
            self._number = number
            self._date = _EPOCH + timedelta(days=int(number))
        return self._date


class FrameFields:
    """Puts the fields of a protocol's frames into columns; here: of none."""

    def take(self, row: i64, frame: Frame) -> bool:
        """The frame in this row. Gives whether its fields are in columns, all of them.

        To be asked of frames whose octets are no secret (`FrameForm.guards`).
        """
        return False


class FrameColumns(TableColumns):
    """Rows of the table `frames`. with_json: all fields are JSON, too, and messages are."""

    def __init__(self, with_json: bool) -> None:
        super().__init__("frames")
        self._with_json: bool = with_json
        self._days: Days = Days()
        self._capture_set: Words = self.words("capture_set")
        self._capture: Words = self.words("capture")
        self._connection: Words = self.words("connection")
        self._protocol: Words = self.words("protocol")
        self._peer: Words = self.words("peer")
        self._kind: Words = self.words("kind")
        self._name: Words = self.words("name")
        self._link: Words = self.words("link", True)
        self._address: Words = self.words("address", True)
        self._packet: Column = self.column("packet")
        self._time: Column = self.column("time")
        self._time_ns: Column = self.column("time_ns")
        self._date: Column = self.column("date")
        self._channel: Column = self.column("channel")
        self._offset: Column = self.column("offset")
        self._size: Column = self.column("size")
        self._fields: Column = self.column("fields")
        self._problems: Column = self.column("problems")
        self._last_packet: Column = self.column("last_packet")
        self._missing: Column = self.column("missing")
        self._payload: Column = self.column("payload")
        self._message: Column = self.column("message")
        self._of_kind: dict[tuple[str, str], FrameFields] = {}
        # Those of the last frame: nearly always the next one's, too.
        self._last_kind: str = ""
        self._last_dialect: str = ""
        self._last: FrameFields = FrameFields()

    def add_frame(
        self, capture_set: str, captures: list[str], record: FrameRecord, link: Link | None, form: FrameForm
    ) -> None:
        """A frame. captures: the files of its set. form: that of the set, which knows the links of frames."""
        row = self.rows
        frame = record.frame
        connection = record.connection
        time = record.time
        position, packet = split(record.packet)
        self._capture_set.say(row, capture_set)
        self._capture.say(row, captures[position])
        self._packet.put(row, packet)
        self._time.put(row, time // 1000)
        self._time_ns.put(row, time)
        self._date.put(row, self._days.of(time))
        self._connection.say(row, connection.id)
        self._protocol.say(row, connection.protocol or None)
        self._peer.say(row, record.peer)
        self._kind.say(row, frame.kind)
        self._name.say(row, frame.name)
        self._offset.put(row, frame.offset)
        self._size.put(row, frame.size)
        if frame.channel >= 0:
            self._channel.put(row, frame.channel)
        if record.last_packet != record.packet:
            self._last_packet.put(row, split(record.last_packet)[1])
        if frame.missing > 0 and frame.absent > 0:
            self._missing.put(row, frame.absent)
        payload = form.payload(record)
        if payload is not None:
            self._payload.put(row, payload)
        if link is not None:
            self._link.say(row, link.name)
            self._address.say(row, link.address)
        self._add_fields(row, record, link, form)
        self.rows = row + 1

    def _add_fields(self, row: i64, record: FrameRecord, link: Link | None, form: FrameForm) -> None:
        frame = record.frame
        guarded = form.guards(record, link)
        whole = frame.body is None
        if not whole and not guarded:
            whole = self._fields_of(frame).take(row, frame)
        if self._with_json or not whole:
            fields = form.fields(record, guarded)
            self.text += len(fields)
            self._fields.put(row, fields)
            if record.message is not None:
                message = form.message(record, link)
                self.text += len(message)
                self._message.put(row, message)
        problems: list[object] = _NONE
        if frame.problems:
            problems = [
                {
                    "code": problem.code,
                    "offset": problem.offset,
                    "path": problem_path(problem, guarded),
                    "reason": problem.reason,
                }
                for problem in frame.problems
            ]
        self._problems.put(row, problems)

    def _fields_of(self, frame: Frame) -> FrameFields:
        """What knows the fields of a frame."""
        if frame.kind is not self._last_kind or frame.dialect is not self._last_dialect:
            self._last_kind = frame.kind
            self._last_dialect = frame.dialect
            self._last = self._of_kind.get((frame.kind, frame.dialect)) or self._new(
                frame.kind, frame.dialect
            )
        return self._last

    def _new(self, kind: str, dialect: str) -> FrameFields:
        """What knows the fields of a kind that comes for the first time: one object for all of a protocol."""
        protocol = protocol_of_kind(kind, dialect)
        found = FrameFields() if protocol is None else protocol.frame_fields(self)
        for one in (kind,) if protocol is None else protocol.kinds:
            self._of_kind[one, dialect] = found
        return found


_NONE: Final[list[object]] = []
"""The problems of most frames: one list for all, which nobody puts anything into."""
