"""What begins and ends on an AMQP 0-9-1 connection: channels, and the consumers on them."""

from amqpscope.model.records import SERVER, Connection, FrameRecord
from amqpscope.report.amqp091.summary import WITHOUT_ERROR
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.events import Listener091
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
    BasicConsumeOk,
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

_MISSED = 2
"""Heartbeats that may be missing before a peer is taken for dead (section 4.2.7)."""


class Following091(Following, Listener091):
    """Takes the events of an AMQP 0-9-1 connection."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._conversation = Conversation091()
        self._conversation.subscribe(self)
        self._channels: dict[Channel, Thing] = {}
        self._consumers: Recent[Consumer, Thing] = Recent()
        self._heartbeat = 0
        self._login: CauseStep | None = None
        # The queue that was deleted last.
        self._deleted: tuple[str, CauseStep] | None = None

    def patience(self, peer: str) -> tuple[str, int]:
        return "the heartbeat", self._heartbeat * _MISSED * 1_000_000_000

    def follow(self, record: FrameRecord) -> None:
        channel = self._conversation.channel_of(record)
        if channel is not None:
            self.about = self._channels.get(channel, self.whole)
        body = record.frame.body
        if isinstance(body, Method) and not isinstance(body, _NOTHING_NEW):
            self.goes_on(record)
        self._conversation.take(record)

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionTuneOk):
            self._heartbeat = max(int(method.heartbeat), 0)
            self._login = None
        elif isinstance(method, ConnectionStartOk):
            self._login = self.step("the refused login", record)
        elif isinstance(method, ConnectionClose):
            cause = self._login if record.peer == SERVER and method.reply_code in _REFUSED_LOGIN else None
            how = f"was closed by the {record.peer}"
            self.end(self.whole, how, _condition(method.reply_code), record, cause)

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self.about = self.begin(f"channel {channel.number}", self.whole, record)
        self._channels[channel] = self.about

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        thing = self._channels.get(channel)
        if thing is not None:
            how = f"was closed by the {record.peer}"
            self.end(thing, how, _condition(method.reply_code), record, None)

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        if consumer.tag:
            self._begin(record, consumer)

    def consumer_confirmed(self, record: FrameRecord, method: BasicConsumeOk, consumer: Consumer) -> None:
        if self._consumers.get(consumer) is None:
            self._begin(record, consumer)

    def _begin(self, record: FrameRecord, consumer: Consumer) -> None:
        """A consumer begins, whose tag is known now."""
        channel = self._conversation.channel_of(record)
        around = None if channel is None else self._channels.get(channel)
        if around is not None:
            name = f"consumer {name_text(consumer.tag)} on channel {record.frame.channel}"
            begun = self.begin(name, around, record)
            begun.queue = consumer.queue
            self._consumers.put(consumer, begun)

    def consumer_cancelled(
        self, record: FrameRecord, method: BasicCancel | BasicCancelOk, consumer: Consumer
    ) -> None:
        thing = self._consumers.pop(consumer) if isinstance(method, BasicCancel) else None
        if thing is not None:
            deleted = self._deleted
            same = record.peer == SERVER and deleted is not None and deleted[0] == consumer.queue
            cause = deleted[1] if deleted is not None and same else None
            self.end(thing, f"was cancelled by the {record.peer}", "", record, cause)

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        if isinstance(method, QueueDelete):
            self._deleted = (
                channel.named(method.queue),
                self.step("the queue of the consumer was deleted", record, sure=False),
            )

    def step(self, what: str, record: FrameRecord, sure: bool = True) -> CauseStep:
        """A frame as a cause."""
        return CauseStep(what, Position.of(record), None, 0, sure)


def _condition(code: int) -> str:
    return "" if code in WITHOUT_ERROR else str(int(code))
