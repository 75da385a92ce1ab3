"""The rows of the table `frames`, by column.

The fields of frequent frames have columns of their own. The `FrameFields` of a protocol knows which frames
these are; whatever it cannot put into columns stays JSON, in the column `fields`.
"""

from datetime import date, timedelta
from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline.columns import DAY, Lists, Numbers, SmallNumbers, Texts, TimedColumns, Words
from amqpscope.pipeline.packets import split
from amqpscope.protocols import protocol_of_kind
from amqpscope.report.json_renderer import JsonRenderer
from amqpscope.report.links import LinkNames
from amqpscope.report.secrets import problem_path
from amqpscope.tracking.amqp10.identity import Link
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Days", "FrameColumns", "FrameFields"]

_EPOCH: Final = date(1970, 1, 1)


class Days:
    """Turns times into dates; most times are of the same day as the last."""

    def __init__(self) -> None:
        self._number: i64 = 0
        self._date: date = _EPOCH

    def of(self, time: i64) -> date:
        """The date (UTC) of a time in ns since 1970."""
        number = time // DAY
        if number != self._number:
            self._number = number
            self._date = _EPOCH + timedelta(days=int(number))
        return self._date


class FrameFields:
    """Puts the fields of a protocol's frames into columns; here: of none."""

    def take(self, row: i64, frame: Frame) -> bool:
        """The frame in this row. Gives whether its fields are in columns, all of them.

        To be asked of frames whose octets are no secret (`JsonRenderer.guards`).
        """
        return False


class FrameColumns(TimedColumns):
    """Rows of the table `frames`. with_json: all fields are JSON, too, and messages are."""

    def __init__(self, with_json: bool) -> None:
        super().__init__("frames")
        self._with_json: bool = with_json
        self._capture_set: Words = self.words("capture_set")
        self._capture: Words = self.words("capture")
        self._connection: Words = self.words("connection")
        self._protocol: Words = self.words("protocol")
        self._peer: Words = self.words("peer")
        self._kind: Words = self.words("kind")
        self._name: Words = self.words("name")
        self._link: Words = self.words("link", True)
        self._address: Words = self.words("address", True)
        self._packet: Numbers = self.numbers("packet")
        self._time: Numbers = self.numbers("time")
        self._channel: SmallNumbers = self.small("channel")
        self._offset: Numbers = self.numbers("offset")
        self._size: Numbers = self.numbers("size")
        self._fields: Texts = self.texts("fields")
        self._problems: Lists = self.lists("problems")
        self._last_packet: Numbers = self.numbers("last_packet")
        self._missing: Numbers = self.numbers("missing")
        self._payload: Numbers = self.numbers("payload")
        self._message: Texts = self.texts("message")
        # By the dialect of frames, and by their kind.
        self._fields_of: dict[str, dict[str, FrameFields]] = {}
        # Those of the dialect of the last frame: mostly the next one's, too.
        self._dialect: str = ""
        self._of_dialect: dict[str, FrameFields] = self._fields_of.setdefault("", {})

    def add_frame(
        self,
        capture_set: str,
        captures: list[str],
        record: FrameRecord,
        link: Link | None,
        renderer: JsonRenderer,
        names: LinkNames,
    ) -> None:
        """A frame. captures: the files of its set. renderer: that of the frame. names: knows the links of
        frames of the set.
        """
        row = self.rows
        frame = record.frame
        connection = record.connection
        time = record.time
        position, packet = split(record.packet)
        self._capture_set.say(row, capture_set)
        self._capture.say(row, captures[position])
        self._packet.put(row, packet)
        self._time.put(row, time)
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
        if renderer.has_payload(frame):
            self._payload.put(row, renderer.payload(frame))
        if link is not None:
            self._link.say(row, link.name)
            self._address.say(row, link.address)
        self._add_fields(row, record, link, renderer, names)
        self.rows = row + 1

    def _add_fields(
        self, row: i64, record: FrameRecord, link: Link | None, renderer: JsonRenderer, names: LinkNames
    ) -> None:
        frame = record.frame
        guarded = renderer.guards(record, link, names)
        whole = frame.body is None
        if not whole and not guarded:
            if frame.dialect is not self._dialect:
                self._dialect = frame.dialect
                self._of_dialect = self._fields_of.setdefault(frame.dialect, {})
            fields_of = self._of_dialect.get(frame.kind) or self._new(frame)
            whole = fields_of.take(row, frame)
        if self._with_json or not whole:
            fields = renderer.fields(frame, guarded)
            self.text += len(fields)
            self._fields.put(row, fields)
            if record.message is not None:
                message = renderer.message(record, link, names, False)
                self.text += len(message)
                self._message.put(row, message)
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
            self._problems.give(row, problems)

    def _new(self, frame: Frame) -> FrameFields:
        """What knows the fields of a kind that comes for the first time: one object for all of a protocol."""
        protocol = protocol_of_kind(frame.kind, frame.dialect)
        found = FrameFields() if protocol is None else protocol.frame_fields(self)
        for one in (frame.kind,) if protocol is None else protocol.kinds:
            self._of_dialect[one] = found
        return found
