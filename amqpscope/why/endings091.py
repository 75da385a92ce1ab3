"""What begins and ends on an AMQP 0-9-1 connection: channels, and the consumers on them."""

from amqpscope.model.records import SERVER, Connection, FrameRecord
from amqpscope.why.endings import CauseStep, Following, Thing
from amqpscope.why.frame_ref import Position
from amqpscope.why.grounds import name_text
from amqpscope.why.remembered import Recent
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicNack,
    BasicReject,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionStartOk,
    ConnectionTuneOk,
    QueueDelete,
)

__all__ = ["Following091"]

_REFUSED_LOGIN = (403, 530)
"""Reply-codes of a close before tune that is for who wants to log in."""

_NOTHING_NEW = (
    *(BasicAck, BasicNack, BasicReject, BasicCancel, BasicCancelOk),
    *(ChannelClose, ChannelCloseOk, ConnectionClose, ConnectionCloseOk),
)
"""Methods that a peer also says when it clears up."""

_FINE = (0, 200)
"""Reply-codes of a close that is no error."""

_MISSED = 2
"""Heartbeats that may be missing before a peer is taken for dead (section 4.2.7)."""


class Following091(Following):
    """Follows an AMQP 0-9-1 connection."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._channels: dict[int, Thing] = {}
        self._consumers: dict[int, Recent[str, Thing]] = {}
        self._heartbeat = 0
        self._login: CauseStep | None = None
        # The queue that was deleted last.
        self._deleted: tuple[str, CauseStep] | None = None

    def patience(self, peer: str) -> tuple[str, int]:
        return "the heartbeat", self._heartbeat * _MISSED * 1_000_000_000

    def follow(self, record: FrameRecord) -> None:
        body = record.frame.body
        peer = record.peer
        number = int(record.frame.channel)
        self.about = self._channels.get(number, self.whole)
        if isinstance(body, Method) and not isinstance(body, _NOTHING_NEW):
            self.goes_on(record)
        if isinstance(body, ConnectionTuneOk):
            self._heartbeat = max(int(body.heartbeat), 0)
            self._login = None
        elif isinstance(body, ConnectionStartOk):
            self._login = self.step("the login that is refused", record)
        elif isinstance(body, ConnectionClose):
            cause = self._login if peer == SERVER and body.reply_code in _REFUSED_LOGIN else None
            self.end(self.whole, f"was closed by the {peer}", _condition(body.reply_code), record, cause)
        elif isinstance(body, ChannelOpen):
            self._channels[number] = self.begin(f"channel {number}", self.whole, record)
            self.about = self._channels[number]
            self._consumers[number] = Recent()
        elif isinstance(body, ChannelClose):
            thing = self._channels.get(number)
            if thing is not None:
                self.end(thing, f"was closed by the {peer}", _condition(body.reply_code), record, None)
        elif isinstance(body, BasicConsume):
            around = self._channels.get(number)
            if around is not None and body.consumer_tag:
                name = f"consumer {name_text(body.consumer_tag)} on channel {number}"
                begun = self.begin(name, around, record)
                begun.queue = body.queue or ""
                self._consumers[number].put(body.consumer_tag, begun)
        elif isinstance(body, BasicCancel):
            consumers = self._consumers.get(number)
            consumer = None if consumers is None else consumers.pop(body.consumer_tag or "")
            if consumer is not None:
                deleted = self._deleted
                same = peer == SERVER and deleted is not None and deleted[0] == consumer.queue
                cause = deleted[1] if deleted is not None and same else None
                self.end(consumer, f"was cancelled by the {peer}", "", record, cause)
        elif isinstance(body, QueueDelete):
            self._deleted = (body.queue or "", self.step("its queue is deleted", record, sure=False))

    def step(self, what: str, record: FrameRecord, sure: bool = True) -> CauseStep:
        """A frame as a cause."""
        return CauseStep(what, Position.of(record), None, 0, sure)


def _condition(code: int) -> str:
    return "" if code in _FINE else str(int(code))
