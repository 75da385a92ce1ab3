"""The fields of AMQP 1.0's frequent frames as columns: transfer, flow, disposition."""

from amqpscope.pipeline.columns import Flags, Hex, Numbers, SmallNumbers, TableColumns, Words
from amqpscope.pipeline.frame_columns import FrameFields
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Disposition, Flow, Transfer
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Amqp10Fields"]


class Amqp10Fields(FrameFields):
    """Fills the columns of AMQP 1.0. A field that is not of its type is in none."""

    def __init__(self, columns: TableColumns) -> None:
        self._columns: TableColumns = columns
        self._handle: Numbers = columns.numbers("handle")
        self._delivery_id: Numbers = columns.numbers("delivery_id")
        self._delivery_tag: Hex = columns.hexadecimal("delivery_tag")
        self._message_format: Numbers = columns.numbers("message_format")
        self._settled: Flags = columns.flags("settled")
        self._more: Flags = columns.flags("more")
        self._rcv_settle_mode: SmallNumbers = columns.small("rcv_settle_mode")
        self._state: Words = columns.words("state")
        self._resume: Flags = columns.flags("resume")
        self._aborted: Flags = columns.flags("aborted")
        self._batchable: Flags = columns.flags("batchable")
        self._role: Flags = columns.flags("role")
        self._first: Numbers = columns.numbers("first")
        self._last: Numbers = columns.numbers("last")
        self._next_incoming_id: Numbers = columns.numbers("next_incoming_id")
        self._incoming_window: Numbers = columns.numbers("incoming_window")
        self._next_outgoing_id: Numbers = columns.numbers("next_outgoing_id")
        self._outgoing_window: Numbers = columns.numbers("outgoing_window")
        self._delivery_count: Numbers = columns.numbers("delivery_count")
        self._link_credit: Numbers = columns.numbers("link_credit")
        self._available: Numbers = columns.numbers("available")
        self._drain: Flags = columns.flags("drain")
        self._echo: Flags = columns.flags("echo")

    def take(self, row: i64, frame: Frame) -> bool:
        body = frame.body
        if isinstance(body, Transfer):
            return self._transfer(row, body)
        if isinstance(body, Disposition):
            return self._disposition(row, body)
        return isinstance(body, Flow) and self._flow(row, body)

    def _transfer(self, row: i64, body: Transfer) -> bool:
        if body.handle is not None:
            self._handle.put(row, body.handle)
        if body.delivery_id is not None:
            self._delivery_id.put(row, body.delivery_id)
        tag = body.delivery_tag
        if tag is not None:
            self._columns.text += 2 * len(tag)
            self._delivery_tag.put_octets(row, tag)
        if body.message_format is not None:
            self._message_format.put(row, body.message_format)
        if body.settled is not None:
            self._settled.put(row, body.settled)
        if body.more is not None:
            self._more.put(row, body.more)
        if body.rcv_settle_mode is not None:
            self._rcv_settle_mode.put(row, body.rcv_settle_mode)
        if body.resume is not None:
            self._resume.put(row, body.resume)
        if body.aborted is not None:
            self._aborted.put(row, body.aborted)
        if body.batchable is not None:
            self._batchable.put(row, body.batchable)
        return self._put_state(row, body.state) and body.odd is None and body.extra is None

    def _disposition(self, row: i64, body: Disposition) -> bool:
        if body.role is not None:
            self._role.put(row, body.role)
        if body.first is not None:
            self._first.put(row, body.first)
        if body.last is not None:
            self._last.put(row, body.last)
        if body.settled is not None:
            self._settled.put(row, body.settled)
        if body.batchable is not None:
            self._batchable.put(row, body.batchable)
        return self._put_state(row, body.state) and body.odd is None and body.extra is None

    def _flow(self, row: i64, body: Flow) -> bool:
        if body.next_incoming_id is not None:
            self._next_incoming_id.put(row, body.next_incoming_id)
        if body.incoming_window is not None:
            self._incoming_window.put(row, body.incoming_window)
        if body.next_outgoing_id is not None:
            self._next_outgoing_id.put(row, body.next_outgoing_id)
        if body.outgoing_window is not None:
            self._outgoing_window.put(row, body.outgoing_window)
        if body.handle is not None:
            self._handle.put(row, body.handle)
        if body.delivery_count is not None:
            self._delivery_count.put(row, body.delivery_count)
        if body.link_credit is not None:
            self._link_credit.put(row, body.link_credit)
        if body.available is not None:
            self._available.put(row, body.available)
        if body.drain is not None:
            self._drain.put(row, body.drain)
        if body.echo is not None:
            self._echo.put(row, body.echo)
        return body.properties is None and body.odd is None and body.extra is None

    def _put_state(self, row: i64, state: object) -> bool:
        """The name of a delivery state. Gives whether that is all there is to it."""
        if state is None:
            return True
        if not isinstance(state, Composite):
            return False
        self._state.say(row, state.definition().name)
        if state.odd is not None or state.extra is not None:
            return False
        return all(value is None for value in state.values())
