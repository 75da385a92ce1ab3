"""Costly habits of AMQP 0-9-1 clients: polling, a channel for each message, giving messages back."""

from typing import Final

from amqpscope.diagnoses.amqp091.watch import Watch091
from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.memory import Memory
from amqpscope.diagnoses.notebook import SECOND, Notebook
from amqpscope.diagnoses.redelivery import ReturnedMessages
from amqpscope.limits import MAX_CONSUMERS
from amqpscope.model.records import CLIENT, FrameRecord, side_of
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import SentContent
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import (
    HAS_MESSAGE_ID,
    BasicGet,
    BasicGetEmpty,
    BasicNack,
    BasicReject,
    ChannelClose,
    ChannelOpen,
)
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["CHANNEL_CHURN", "GET_LOOP", "HabitWatch"]

GET_LOOP: Final = declare(
    "get-loop",
    ("0-9-1",),
    """A client polls a queue with basic.get, and most answers are empty.

    What it means: Each basic.get costs a round trip and work of the broker. Each message waits in the queue
    until the next basic.get.
    Usual causes: The application calls basic.get in a loop instead of starting a consumer.
    Who has to act: The client.
    Client: Use basic.consume, so that the server sends each message at once.
    Server: The server needs no change.
    Not reported when: the client empties a queue by basic.get, or sends basic.get only a few times.
    Discussions: node-ts/bus#175
    """,
    Limit("gets", 50, "a smaller number of basic.get costs little"),
    Limit(
        "empty-part",
        0.9,
        ("most answers must be empty, because basic.get is a reasonable way to empty a queue"),
    ),
    Limit("per-second", 1, "slower polling is no load for the broker"),
)

CHANNEL_CHURN: Final = declare(
    "channel-churn",
    ("0-9-1",),
    """A client opens a channel for one or two messages and then closes the channel.

    What it means: Each new channel costs a round trip and a process of the broker.
    Usual causes: The function that publishes a message also opens the channel.
    Who has to act: The client.
    Client: Keep one channel open per thread, and use this channel for all messages.
    Server: The server needs no change.
    Not reported when: the client keeps its channels, or opens new channels after errors.
    Discussions: ruby-amqp/bunny#250, amqp-node/amqplib#516
    """,
    Limit("channels", 20, "a smaller number of channels costs little"),
    Limit("messages", 2, "a new channel for a batch of messages is reasonable"),
    Limit("every-seconds", 2, "channels that are opened more slowly are no load for the broker"),
)


class _Gets:
    """The basic.get of one queue. since: packet and time of the first one that found nothing."""

    def __init__(self) -> None:
        self.gets = 0
        self.empty = 0
        self.packet = 0
        self.first = 0
        self.last = 0


class _Opened:
    """A channel that is open: the packet and time of its open."""

    def __init__(self, packet: i64, time: i64) -> None:
        self.packet: i64 = packet
        self.time: i64 = time


class HabitWatch(Watch091):
    """Watches the habits of one client."""

    def __init__(self, notebook: Notebook, conversation: Conversation091) -> None:
        super().__init__(notebook)
        self.gets: dict[str, _Gets] = {}
        # The channels that are open.
        self.open: dict[Channel, _Opened] = {}
        # How many channels were opened, how many of them for a message or two, and the first of these.
        self.opened: i64 = 0
        self.brief: i64 = 0
        self.brief_messages: i64 = 0
        self.brief_packet: i64 = 0
        self.brief_first: i64 = 0
        self.brief_last: i64 = 0
        self.returned: ReturnedMessages = ReturnedMessages(notebook)
        # The content header of each delivery that is not acknowledged.
        self.delivered: Memory = Memory(conversation)

    # Polling

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if not isinstance(method, BasicGet) or side_of(record) != 0:
            return
        queue = method.queue or ""
        known = self.gets.get(queue)
        if known is None:
            if len(self.gets) >= MAX_CONSUMERS:
                return
            known = self.gets[queue] = _Gets()
        known.gets += 1
        known.first = known.first or record.time
        known.last = record.time
        request.other = queue

    def answered(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if isinstance(method, BasicGetEmpty):
            known = self.gets.get(request.other)
            if known is not None:
                known.empty += 1
                known.packet = known.packet or request.packet

    def _polling(self) -> None:
        notebook = self.notebook
        for queue, known in self.gets.items():
            seconds = max((known.last - known.first) / SECOND, 0.001)
            rate = known.gets / seconds
            if (
                known.gets < notebook.limit(GET_LOOP, "gets")
                or known.empty < notebook.limit(GET_LOOP, "empty-part") * known.gets
                or rate < notebook.limit(GET_LOOP, "per-second")
            ):
                continue
            notebook.add(
                GET_LOOP,
                queue,
                CLIENT,
                known.packet,
                f'the client polls queue "{queue}" with basic.get {rate:.1f} times a second, and '
                f"{known.empty} of "
                f"{known.gets} answers were empty; basic.consume needs no polling",
                {"gets": known.gets, "empty": known.empty, "per_second": round(rate, 1)},
                seconds=seconds,
            )

    # Channels

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self.opened += 1
        self.open[channel] = _Opened(record.packet, record.time)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        opened = self.open.pop(channel, None)
        messages = channel.publishes.begun + channel.deliveries.begun
        if (
            opened is None
            or side_of(record) == 1
            or not 0 < int(messages) <= self.notebook.limit(CHANNEL_CHURN, "messages")
        ):
            return
        self.brief += 1
        self.brief_messages += messages
        if not self.brief_packet:
            self.brief_packet = opened.packet
            self.brief_first = opened.time
        self.brief_last = opened.time

    def _churning(self) -> None:
        notebook = self.notebook
        span = (self.brief_last - self.brief_first) / SECOND
        if (
            int(self.brief) < notebook.limit(CHANNEL_CHURN, "channels")
            or 2 * self.brief < self.opened
            or span > int(self.brief) * notebook.limit(CHANNEL_CHURN, "every-seconds")
        ):
            return
        notebook.add(
            CHANNEL_CHURN,
            "connection",
            CLIENT,
            self.brief_packet,
            f"the client opened {self.opened} channels in {span:.1f} s, and sent only "
            f"{count(self.brief_messages, 'message')} on {self.brief} of them",
            {"channels_opened": self.opened, "channels_for_few": self.brief, "messages": self.brief_messages},
            seconds=span,
        )

    # Messages

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        delivery, message = content.delivery, content.message
        if delivery is None or delivery.no_ack or message is None or not message.complete:
            return
        header = message.header
        if header is None or header.flags & HAS_MESSAGE_ID == 0:
            return  # nobody can tell whether it comes again
        consumer = content.consumer
        if consumer is not None:
            delivery.queue = consumer.queue
        self.delivered.put(delivery, header)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        memory = self.delivered
        if memory.count == 0:
            return
        requeue = (isinstance(method, BasicNack) and method.requeue) or (
            isinstance(method, BasicReject) and method.requeue
        )
        for delivery in deliveries:
            header = memory.take(delivery)
            if requeue and isinstance(header, ContentHeader):
                message_id = header.properties().message_id
                if message_id:
                    outcome = f"{method.definition().name} with requeue"
                    self.returned.returned(delivery.queue, str(message_id), delivery.packet, outcome)

    # The end

    def lost(self, until: i64) -> None:
        self.delivered.clear()

    def finish(self, accused: set[str]) -> None:
        self._polling()
        self._churning()
        self.returned.finish()
