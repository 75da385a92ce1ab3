"""Channels of AMQP 0-9-1 on which somebody waits: for acknowledgements, confirms, or leave to publish."""

from typing import Final

from amqpscope.diagnoses.amqp091.channel_state import ChannelState, window_of
from amqpscope.diagnoses.amqp091.watch import Watch091
from amqpscope.diagnoses.declaration import MAY_END, Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.model.records import CLIENT, PEERS, SERVER, FrameRecord, side_of
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import SentContent
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicDeliver,
    ChannelClose,
    ChannelFlow,
    ChannelOpen,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionUnblocked,
)
from dissectors.wire import i64
from dissectors.wording import count

__all__ = [
    "ACKS_MISSING",
    "CHANNEL_FLOW_STOPPED",
    "CONFIRMS_MISSING",
    "CONSUMER_CANCELLED",
    "PREFETCH_FULL",
    "PUBLISHER_BLOCKED",
    "ChannelWatch",
]

PUBLISHER_BLOCKED: Final = declare(
    "publisher-blocked",
    ("0-9-1",),
    """A server has blocked a connection and accepts no more messages from the client.

    What it means: The server sent connection.blocked. After the next publish, the server reads nothing more
    from the connection.
    Usual causes: RabbitMQ has a memory alarm or a disk alarm.
    Who has to act: The server.
    Client: Stop publishing until connection.unblocked arrives. Use separate connections for publishing and
    for consuming.
    Server: Free memory or disk space, or consume the messages of the queues.
    Not reported when: the server unblocks the connection within the time limit, or the client publishes
    nothing.
    Discussions: streadway/amqp#254, php-amqplib/php-amqplib#743
    """,
    Limit(
        "seconds", 5, ("a broker that moves messages from memory to disk often has an alarm for a short time")
    ),
    explains=(MAY_END,),
)

CHANNEL_FLOW_STOPPED: Final = declare(
    "channel-flow-stopped",
    ("0-9-1",),
    """A peer has stopped the messages on a channel by channel.flow with active=0.

    What it means: The other peer must not send messages on the channel until channel.flow with active=1
    arrives.
    Usual causes: A broker is overloaded, or a client wants no deliveries for now.
    Who has to act: The peer that has stopped the channel.
    Client: Wait for channel.flow with active=1.
    Server: Send channel.flow with active=1 when the server is no longer overloaded.
    Not reported when: channel.flow with active=1 follows within the time limit.
    Discussions: alanxz/rabbitmq-c#811, postwait/node-amqp#347
    """,
    Limit("seconds", 5, "a stop of less than a second is normal flow control"),
    explains=(MAY_END,),
)

CONFIRMS_MISSING: Final = declare(
    "confirms-missing",
    ("0-9-1",),
    """A server has not confirmed messages that a client published in confirm mode.

    What it means: The server has sent neither basic.ack nor basic.nack for these messages.
    Usual causes: A quorum queue has lost its majority, a disk is slow, or the broker has an alarm.
    Who has to act: The server.
    Client: Limit the number of unconfirmed messages. Publish unconfirmed messages again on a new connection.
    Server: Check the replicas and the disk of the queue, and check for alarms.
    Not reported when: the connection is blocked (another diagnosis reports this cause), or the capture lacks
    octets.
    Discussions: php-amqplib/php-amqplib#743
    """,
    Limit("seconds", 10, "under load, a quorum queue needs some seconds to confirm a message"),
    explains=(MAY_END,),
)

PREFETCH_FULL: Final = declare(
    "prefetch-full",
    ("0-9-1",),
    """A client has as many unacknowledged deliveries as its prefetch allows, so the server sends no more
    messages.

    What it means: The server waits for acknowledgements before the server delivers more messages.
    Usual causes: The message handler hangs, is slow, or forgets to acknowledge the deliveries.
    Who has to act: The client.
    Client: Acknowledge each delivery. Find out what the message handler waits for.
    Server: The server needs no change.
    Not reported when: the client acknowledges a delivery within the time limit, the channel is transactional,
    or the consumer is cancelled.
    Discussions: MassTransit/MassTransit#1988, corvus-ch/rabbitmq-cli-consumer#54
    """,
    Limit("seconds", 10, "a message handler may need some seconds for one message"),
    explains=(MAY_END,),
)

ACKS_MISSING: Final = declare(
    "acks-missing",
    ("0-9-1",),
    """A client does not acknowledge the deliveries of a consumer.

    What it means: The consumer was started without no-ack, so the server keeps each delivery until the client
    acknowledges the delivery.
    Usual causes: The message handler forgets to acknowledge the deliveries, or acknowledges them on another
    channel.
    Who has to act: The client.
    Client: Acknowledge each delivery, or consume with no-ack. Set a prefetch.
    Server: The server needs no change. RabbitMQ closes the channel by itself after 30 minutes
    (consumer_timeout).
    Not reported when: the consumer uses no-ack, the prefetch is full (another diagnosis reports this), or
    only a few deliveries are unacknowledged.
    Discussions: rabbitmq/rabbitmq-server#9046, MetPX/sarracenia#953
    """,
    Limit("seconds", 10, "a message handler may need some seconds for one message"),
    Limit("deliveries", 10, "the client may be processing a smaller number of deliveries at the same time"),
    Limit("one-seconds", 900, "half of the time after which RabbitMQ closes the channel"),
    explains=(MAY_END,),
)

CONSUMER_CANCELLED: Final = declare(
    "consumer-cancelled",
    ("0-9-1",),
    """A server has cancelled a consumer, and the client does not start a new consumer.

    What it means: The server sent basic.cancel. The client gets no more messages of this consumer.
    Usual causes: The queue was deleted or has expired, or its leader moved to another node.
    Who has to act: The client.
    Client: Handle basic.cancel: declare the queue again and start a new consumer, or report an error.
    Server: The server needs no change.
    Not reported when: the client cancels its consumer itself, or starts a new consumer.
    Discussions: onebeyond/rascal#52, php-amqplib/php-amqplib#704, vert-x3/vertx-rabbitmq-client#10
    """,
    Limit("seconds", 5, "clients that handle basic.cancel start a new consumer at once"),
    explains=(MAY_END,),
)


class ChannelWatch(Watch091):
    """Watches the channels of one connection."""

    def __init__(self, notebook: Notebook, conversation: Conversation091) -> None:
        super().__init__(notebook)
        self.conversation: Conversation091 = conversation
        self.channels: dict[Channel, ChannelState] = {}
        # The one of them that a message or an acknowledgement was about last.
        self.last: ChannelState | None = None
        # Since when the server has blocked the connection: packet, time and reason.
        self.blocked: tuple[int, int, str] | None = None
        self.was_blocked = False
        # How many basic.publish the conversation had seen when that began.
        self.published_before: i64 = 0
        # By tag, what the server has cancelled: channel, queue, packet and time.
        self.cancelled: dict[str, tuple[Channel, str, int, int]] = {}
        self.known_since: i64 = 0

    # The connection

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionBlocked):
            if self.blocked is None:
                self.blocked = (record.packet, record.time, method.reason or "")
                self.was_blocked = True
                self.published_before = self.conversation.published
        elif isinstance(method, ConnectionUnblocked):
            self._unblocked(record.packet, record.time)
        elif isinstance(method, ConnectionClose):
            self._conclude(record.packet, record.time)

    def _unblocked(self, ended: i64, until: i64) -> None:
        if self.blocked is None:
            return
        packet, since, reason = self.blocked
        self.blocked = None
        seconds = self.notebook.passed(since, until) / SECOND
        published = self.conversation.published
        published_since = published - self.published_before
        if seconds < self.notebook.limit(PUBLISHER_BLOCKED) or not published:
            return
        left = "" if ended else ", and the connection is still blocked"
        after = f"; meanwhile the client sent {count(published_since, 'publish')}" if published_since else ""
        self.notebook.add(
            PUBLISHER_BLOCKED,
            "connection",
            SERVER,
            packet,
            f"the server {'blocked' if ended else 'has blocked'} the connection for {duration(seconds)}"
            f"{f' ({reason})' if reason else ''}{left}{after}",
            {"reason": reason or None, "unblocked": False, "publishes_after": published_since},
            seconds=seconds,
            ended=ended,
        )

    # Channels

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self.channels[channel] = ChannelState(channel, record.packet)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        state = self.channels.get(channel)
        if state is not None:
            self._leave(state, record.packet, record.time)

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        self.last = None
        self.channels.pop(channel, None)

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if not isinstance(method, ChannelFlow):
            return
        state = self._state(record)
        if state is None:
            return
        self._resumed(state, record.packet, record.time)
        if not method.active:
            state.stopped = (side_of(record), record.packet, record.time)

    def _resumed(self, state: ChannelState, ended: i64, until: i64) -> None:
        if state.stopped is None:
            return
        side, packet, since = state.stopped
        state.stopped = None
        seconds = (until - since) / SECOND
        if not self.notebook.idle(side, since, until, self.notebook.limit(CHANNEL_FLOW_STOPPED)):
            return
        self.notebook.add(
            CHANNEL_FLOW_STOPPED,
            state.subject,
            PEERS[side],
            packet,
            f"the {PEERS[side]} {'stopped' if ended else 'has stopped'} all the messages on "
            f"{state.subject} for {duration(seconds)} (channel.flow with active=0)",
            {"active": 0, "resumed": False},
            seconds=seconds,
            ended=ended,
        )

    # Consumers

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        for tag in list(self.cancelled):
            self._consumed(tag, record.packet, record.time)

    def consumer_cancelled(
        self, record: FrameRecord, method: BasicCancel | BasicCancelOk, consumer: Consumer
    ) -> None:
        state = self._state(record)
        if state is not None and state.full_tag == consumer.tag:
            self._emptied(state, record.packet, record.time)
        if state is not None and side_of(record) == 1 and isinstance(method, BasicCancel):
            state.cancelled.append(consumer.tag)
            self.cancelled[consumer.tag] = (state.channel, consumer.queue, record.packet, record.time)

    def _consumed(self, tag: str, ended: i64, until: i64) -> None:
        channel, queue, packet, since = self.cancelled.pop(tag)
        if not self.notebook.idle(0, since, until, self.notebook.limit(CONSUMER_CANCELLED)):
            return
        seconds = (until - since) / SECOND
        where = f' of queue "{queue}"' if queue else ""
        self.notebook.add(
            CONSUMER_CANCELLED,
            tag,
            CLIENT,
            packet,
            f'the server cancelled consumer "{tag}"{where}, and the client '
            f"{'started' if ended else 'has started'} no new consumer for {duration(seconds)}",
            {"queue": queue or None, "consumed_again": False, "consumers_left": len(channel.consumers.live)},
            seconds=seconds,
            ended=ended,
        )

    # Messages

    def _find(self, channel: Channel | None) -> ChannelState | None:
        """What is known of a channel."""
        if channel is None:
            return None
        last = self.last
        if last is not None and last.channel is channel:
            return last
        state = self.channels.get(channel)
        if state is not None:
            self.last = state
        return state

    def _state(self, record: FrameRecord) -> ChannelState | None:
        return self._find(self.conversation.channel_of(record))

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        if not isinstance(method, BasicDeliver):
            return
        state = self._find(content.channel)
        if state is not None:
            state.delivered += 1
            delivery, consumer = content.delivery, content.consumer
            if delivery is not None and not delivery.no_ack and delivery.consumer is not None:
                held = state.held_of(delivery.consumer)
                if held is None:
                    held = state.hold(delivery.consumer)
                held.count += 1
                if state.full_packet:
                    return
                window = window_of(state.channel, consumer)
                if window and held.count >= window:
                    state.full_tag = delivery.consumer
                    state.full_packet, state.full_time = record.packet, record.time
                    state.full_window = window

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        self._given_back(record, deliveries)

    def recovered(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        self._given_back(record, deliveries)

    def _given_back(self, record: FrameRecord, deliveries: list[ConsumerDelivery]) -> None:
        state = self._state(record) if deliveries else None
        if state is None:
            return
        for delivery in deliveries:
            held = None if delivery.consumer is None else state.held_of(delivery.consumer)
            if held is not None and held.count > 0:
                held.count -= 1
        if state.full_packet and state.holding(state.full_tag) < state.full_window:
            self._emptied(state, record.packet, record.time)

    def _emptied(self, state: ChannelState, ended: i64, until: i64) -> bool:
        """The window of a consumer is not full any more, or nothing is known; True if it is reported."""
        if not state.full_packet:
            return False
        packet, since, window = state.full_packet, state.full_time, state.full_window
        state.full_packet = 0
        held = state.holding(state.full_tag)
        if state.channel.transacted or not self.notebook.idle(
            0, since, until, self.notebook.limit(PREFETCH_FULL)
        ):
            return False
        seconds = (until - since) / SECOND
        self.notebook.add(
            PREFETCH_FULL,
            state.subject,
            CLIENT,
            packet,
            f"{state.subject}: the prefetch of {window} {'was' if ended else 'has been'} full for "
            f"{duration(seconds)}, because the client {'had' if ended else 'has'} "
            f"{count(max(held, window), 'unacknowledged delivery')}",
            {"prefetch": window, "unacknowledged": max(held, window), "consumer": state.full_tag},
            seconds=seconds,
            ended=ended,
        )
        return True

    # What is left at the end

    def _leave(self, state: ChannelState, ended: i64, until: i64) -> None:
        """A channel is over, or what is known of it."""
        self._resumed(state, ended, until)
        reported = self._emptied(state, ended, until)
        if not reported and not state.channel.transacted:
            self._unacknowledged(state, ended, until)
        self._unconfirmed(state, ended, until)
        for tag in state.cancelled:
            if tag in self.cancelled and self.cancelled[tag][0] is state.channel:
                self._consumed(tag, ended, until)
        state.cancelled = []

    def _unacknowledged(self, state: ChannelState, ended: i64, until: i64) -> None:
        notebook = self.notebook
        left = [
            one
            for one in state.channel.deliveries.unacknowledged.entries()
            if one.time > self.known_since and one.consumer is not None
        ]
        if not left:
            return
        oldest = min(left, key=_tag)
        many = len(left) >= notebook.limit(ACKS_MISSING, "deliveries")
        patience = notebook.limit(ACKS_MISSING, "seconds" if many else "one-seconds")
        if not notebook.idle(0, oldest.time, until, patience):
            return
        seconds = (until - oldest.time) / SECOND
        window = window_of(state.channel, state.channel.consumers.live.get(oldest.consumer or ""))
        notebook.add(
            ACKS_MISSING,
            state.subject,
            CLIENT,
            oldest.packet,
            f"{state.subject}: the client has not acknowledged {count(len(left), 'delivery')}; the oldest "
            f"delivery has waited for {duration(seconds)}",
            {"deliveries": state.delivered, "unacknowledged": len(left), "prefetch": window or None},
            seconds=seconds,
            ended=ended,
        )

    def _unconfirmed(self, state: ChannelState, ended: i64, until: i64) -> None:
        notebook = self.notebook
        publishes = state.channel.publishes
        oldest = publishes.oldest()
        if oldest is None or oldest.number > publishes.sure_to or self.was_blocked:
            return
        if not notebook.idle(1, oldest.time, until, notebook.limit(CONFIRMS_MISSING)):
            return
        if notebook.server.acknowledged < oldest.end and notebook.server.segment_time <= oldest.time:
            return
        seconds = (until - oldest.time) / SECOND
        missing = len(publishes.unconfirmed)
        notebook.add(
            CONFIRMS_MISSING,
            state.subject,
            SERVER,
            oldest.packet,
            f"{state.subject}: the server has not confirmed {missing} of "
            f"{count(publishes.count, 'publish')}; the oldest unconfirmed publish (number {oldest.number}) "
            f"has waited for {duration(seconds)}",
            {
                "published": publishes.count,
                "confirmed": publishes.count - missing,
                "missing": missing,
                "oldest": oldest.number,
            },
            seconds=seconds,
            ended=ended,
        )

    def _conclude(self, ended: i64, until: i64) -> None:
        for state in list(self.channels.values()):
            self._leave(state, ended, until)
        self.last = None
        self.channels = {}
        self.cancelled = {}
        self._unblocked(ended, until)

    def lasting(self, until: i64) -> None:
        blocked, cancelled = self.blocked, dict(self.cancelled)
        for state in self.channels.values():
            stopped, full, tags = state.stopped, state.full_packet, state.cancelled
            self._leave(state, 0, until)
            state.stopped, state.full_packet, state.cancelled = stopped, full, tags
        self._unblocked(0, until)
        self.blocked, self.cancelled = blocked, cancelled

    def lost(self, until: i64) -> None:
        self._conclude(0, until)
        self.known_since = self.notebook.frame_time()

    def finish(self, accused: set[str]) -> None:
        self._conclude(self.notebook.end_packet, self.notebook.end_time)


def _tag(delivery: ConsumerDelivery) -> int:
    return delivery.tag
