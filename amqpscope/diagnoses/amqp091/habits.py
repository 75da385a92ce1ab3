"""Costly habits of AMQP 0-9-1 clients: polling, a channel for each message, giving messages back."""

from typing import Final

from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook
from amqpscope.diagnoses.redelivery import ReturnedMessages
from amqpscope.diagnoses.watch import Watch091
from amqpscope.limits import MAX_CONSUMERS, MAX_UNANSWERED
from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import SentContent
from amqpscope.tracking.amqp091.requests import MethodRequest
from amqpscope.tracking.amqp10.identity import side_of
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import (
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicNack,
    BasicPublish,
    BasicReject,
    ChannelClose,
    ChannelOpen,
)

__all__ = ["CHANNEL_CHURN", "GET_LOOP", "HabitWatch"]

GET_LOOP: Final = declare(
    "get-loop",
    ("0-9-1",),
    """A client polls a queue with basic.get, and most answers are empty.

    What it means: Each basic.get costs a round trip and work of the broker. A message waits until the next
    basic.get.
    Usual causes: The application calls basic.get in a loop instead of starting a consumer.
    Who has to act: The client.
    Client: Use basic.consume, so that the server sends each message at once.
    Server: The server needs no change.
    Not reported when: the client empties a queue by basic.get, or sends only a few basic.get.
    """,
    Limit("gets", 50, "fewer cost nothing"),
    Limit("empty-part", 0.9, "a queue that has messages may be emptied that way"),
    Limit("per-second", 1, "slower polling is no load"),
)

CHANNEL_CHURN: Final = declare(
    "channel-churn",
    ("0-9-1",),
    """A client opens a channel for one or two messages and then closes the channel.

    What it means: Each new channel costs a round trip and a process of the broker.
    Usual causes: The function that publishes a message also opens the channel.
    Who has to act: The client.
    Client: Keep one channel per thread, and use this channel for all messages.
    Server: The server needs no change.
    Not reported when: the client keeps its channels, or opens new channels after errors.
    Threads: ruby-amqp/bunny#250, amqp-node/amqplib#516
    """,
    Limit("channels", 20, "fewer cost nothing"),
    Limit("messages", 2, "a channel for a batch is no waste"),
    Limit("every-seconds", 2, "slower opening is no load"),
)


class _Gets:
    """The basic.get of one queue. since: packet and time of the first one that found nothing."""

    def __init__(self) -> None:
        self.gets = 0
        self.empty = 0
        self.packet = 0
        self.first = 0
        self.last = 0


class HabitWatch(Watch091):
    """Watches the habits of one client."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        self.gets: dict[str, _Gets] = {}
        # Of channels that are open: how many messages went over it, and its open.
        self.messages: dict[Channel, int] = {}
        # How many channels were opened, how many of them for a message or two, and the first of these.
        self.opened = 0
        self.brief = 0
        self.brief_messages = 0
        self.brief_packet = 0
        self.brief_first = 0
        self.brief_last = 0
        self.opens: dict[Channel, tuple[int, int]] = {}
        self.returned = ReturnedMessages(notebook)
        # By delivery, its queue, content header and packet.
        self.delivered: dict[ConsumerDelivery, tuple[str, ContentHeader | None, int]] = {}

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
                f"the client polls queue {queue} with basic.get {rate:.1f} times a second, and "
                f"{known.empty} of "
                f"{known.gets} answers were empty; basic.consume needs no polling",
                {"gets": known.gets, "empty": known.empty, "per_second": round(rate, 1)},
                seconds=seconds,
            )

    # Channels

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self.opened += 1
        self.opens[channel] = (record.packet, record.time)
        self.messages[channel] = 0

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        packet, time = self.opens.pop(channel, (0, 0))
        messages = self.messages.pop(channel, 0)
        if (
            not packet
            or side_of(record) == 1
            or not 0 < messages <= self.notebook.limit(CHANNEL_CHURN, "messages")
        ):
            return
        self.brief += 1
        self.brief_messages += messages
        if not self.brief_packet:
            self.brief_packet, self.brief_first = packet, time
        self.brief_last = time

    def _churning(self) -> None:
        notebook = self.notebook
        span = (self.brief_last - self.brief_first) / SECOND
        if (
            self.brief < notebook.limit(CHANNEL_CHURN, "channels")
            or 2 * self.brief < self.opened
            or span > self.brief * notebook.limit(CHANNEL_CHURN, "every-seconds")
        ):
            return
        notebook.add(
            CHANNEL_CHURN,
            "connection",
            CLIENT,
            self.brief_packet,
            f"the client opened {self.opened} channels in {span:.1f} s, and sent only {self.brief_messages} "
            f"messages on {self.brief} of them",
            {"channels_opened": self.opened, "channels_for_few": self.brief, "messages": self.brief_messages},
            seconds=span,
        )

    # Messages

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        channel = content.channel
        if (
            channel is not None
            and channel in self.messages
            and isinstance(method, (BasicPublish, BasicDeliver))
        ):
            self.messages[channel] += 1

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        delivery, message = content.delivery, content.message
        if delivery is None or delivery.no_ack or message is None or not message.complete:
            return
        consumer = content.consumer
        queue = consumer.queue if consumer is not None else ""
        if len(self.delivered) >= MAX_UNANSWERED:
            del self.delivered[next(iter(self.delivered))]
        self.delivered[delivery] = (queue, message.header, content.packet)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        requeue = isinstance(method, (BasicNack, BasicReject)) and method.requeue
        outcome = f"{method.definition().name} with requeue"
        for delivery in deliveries:
            known = self.delivered.pop(delivery, None)
            if known is not None and requeue and known[1] is not None:
                message_id = known[1].properties().message_id
                if message_id:
                    self.returned.returned(known[0], str(message_id), known[2], outcome)

    # The end

    def lost(self, until: int) -> None:
        self.delivered = {}

    def finish(self, accused: set[str]) -> None:
        self._polling()
        self._churning()
        self.returned.finish()
