"""Channels of AMQP 0-9-1 on which somebody waits: for acknowledgements, confirms, or leave to publish."""

from typing import Final

from amqpscope.diagnoses.amqp091.channel_state import ChannelState, window_of
from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.diagnoses.watch import Watch091
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import SentContent
from amqpscope.tracking.amqp10.identity import PEERS, side_of
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicDeliver,
    BasicPublish,
    ChannelClose,
    ChannelFlow,
    ChannelOpen,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionUnblocked,
)
from dissectors.wording import are, count

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
    """A server has blocked a connection: it takes no more messages from its client.

    Means: The server sent connection.blocked. It reads nothing more after the next publish.
    Comes about: RabbitMQ's alarm of memory or of disk space.
    Move: The server's.
    Client: Stop publishing until connection.unblocked; consume on another connection.
    Server: Free memory or disk, or consume the queues.
    Silent when: The connection is unblocked in time, or the client publishes nothing.
    Threads: streadway/amqp#254, php-amqplib/php-amqplib#743
    """,
    Limit("seconds", 5, "short alarms come and go while memory is paged out"),
)

CHANNEL_FLOW_STOPPED: Final = declare(
    "channel-flow-stopped",
    ("0-9-1",),
    """A peer has stopped a channel by channel.flow.

    Means: The other peer sends no more content on it.
    Comes about: A broker that is overloaded, or a client that does not want deliveries for now.
    Move: Who has stopped it.
    Client: Wait for channel.flow with active=1.
    Server: Let the channel go on when the load is over.
    Silent when: The channel goes on in time.
    """,
    Limit("seconds", 5, "flow control for less than a second is normal"),
)

CONFIRMS_MISSING: Final = declare(
    "confirms-missing",
    ("0-9-1",),
    """Messages that a client has published in confirm mode are not confirmed.

    Means: Neither basic.ack nor basic.nack of the server names them.
    Comes about: A queue without a quorum, a slow disk, an alarm.
    Move: The server's.
    Client: Bound how many may be unconfirmed, and publish them again on a new connection.
    Server: Look at the queue's replicas, its disk and at alarms.
    Silent when: The connection is blocked, which is the cause then; or octets are missing.
    Threads: php-amqplib/php-amqplib#743
    """,
    Limit("seconds", 10, "quorum queues under load take seconds"),
)

PREFETCH_FULL: Final = declare(
    "prefetch-full",
    ("0-9-1",),
    """A client holds as many deliveries as its prefetch allows, so it gets no more.

    Means: The server waits for acknowledgements.
    Comes about: A handler that hangs or is slow, or that forgets to acknowledge.
    Move: The client's.
    Client: Acknowledge each delivery; look at what the handler waits for.
    Server: Nothing.
    Silent when: The client acknowledges in time, the channel is transactional, or the consumer is cancelled.
    """,
    Limit("seconds", 10, "a handler may take seconds for one message"),
)

ACKS_MISSING: Final = declare(
    "acks-missing",
    ("0-9-1",),
    """A client does not acknowledge what it was delivered.

    Means: The consumer is not one without acknowledgements, so the server keeps all of it.
    Comes about: The handler forgets to acknowledge, or acknowledges on another channel.
    Move: The client's.
    Client: Acknowledge each delivery, or consume with no-ack. Set a prefetch.
    Server: RabbitMQ closes the channel after 30 minutes (consumer_timeout).
    Silent when: The consumer is without acknowledgements, the prefetch is full, or few are worked on.
    Threads: rabbitmq/rabbitmq-server#9046, MetPX/sarracenia#953
    """,
    Limit("seconds", 10, "a handler may take seconds for one message"),
    Limit("deliveries", 10, "fewer may be worked on"),
    Limit("one-seconds", 900, "half of the time after which RabbitMQ closes the channel"),
)

CONSUMER_CANCELLED: Final = declare(
    "consumer-cancelled",
    ("0-9-1",),
    """A server has cancelled a consumer, and the client does not consume again.

    Means: basic.cancel of the server: the client gets nothing more, and waits.
    Comes about: The queue was deleted, has expired, or its leader moved to another node.
    Move: The client's.
    Client: Handle basic.cancel: declare the queue again and consume, or fail loudly.
    Server: Nothing.
    Silent when: The client cancels its consumer itself, or consumes again.
    """,
    Limit("seconds", 5, "clients that handle it consume again at once"),
)


class ChannelWatch(Watch091):
    """Watches the channels of one connection."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        self.channels: dict[Channel, ChannelState] = {}
        self.blocked: tuple[int, int, str] | None = None
        self.was_blocked = False
        self.published = 0
        self.published_since = 0
        # By tag, what the server has cancelled: channel, queue, packet and time.
        self.cancelled: dict[str, tuple[Channel, str, int, int]] = {}
        self.known_since = 0

    # The connection

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionBlocked):
            if self.blocked is None:
                self.blocked = (record.packet, record.time, method.reason or "")
                self.was_blocked = True
                self.published_since = 0
        elif isinstance(method, ConnectionUnblocked):
            self._unblocked(record.packet, record.time)
        elif isinstance(method, ConnectionClose):
            self._conclude(record.packet, record.time)

    def _unblocked(self, ended: int, until: int) -> None:
        if self.blocked is None:
            return
        packet, since, reason = self.blocked
        self.blocked = None
        seconds = (until - since) / SECOND
        if seconds < self.notebook.limit(PUBLISHER_BLOCKED) or not self.published:
            return
        after = f"; {count(self.published_since, 'publish')} since" if self.published_since else ""
        self.notebook.add(
            PUBLISHER_BLOCKED,
            "connection",
            SERVER,
            packet,
            f"server {'blocked' if ended else 'has blocked'} the connection for {duration(seconds)}"
            f"{f' ({reason})' if reason else ''}{after}{'' if ended else '; it is not unblocked'}",
            {"reason": reason or None, "unblocked": False, "publishes_after": self.published_since},
            seconds=seconds,
            ended=ended,
        )

    # Channels

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self.channels[channel] = ChannelState(channel, record.packet, record.time)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        state = self.channels.get(channel)
        if state is not None:
            self._leave(state, record.packet, record.time)

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        self.channels.pop(channel, None)

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        if not isinstance(method, ChannelFlow):
            return
        state = self.channels.get(channel)
        if state is None:
            return
        self._resumed(state, record.packet, record.time)
        if not method.active:
            state.stopped = (side_of(record), record.packet, record.time)

    def _resumed(self, state: ChannelState, ended: int, until: int) -> None:
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
            f"{PEERS[side]} {'stopped' if ended else 'has stopped'} {state.subject} for {duration(seconds)}",
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
            self.cancelled[consumer.tag] = (state.channel, consumer.queue, record.packet, record.time)

    def _consumed(self, tag: str, ended: int, until: int) -> None:
        channel, queue, packet, since = self.cancelled.pop(tag)
        if not self.notebook.idle(0, since, until, self.notebook.limit(CONSUMER_CANCELLED)):
            return
        seconds = (until - since) / SECOND
        self.notebook.add(
            CONSUMER_CANCELLED,
            tag,
            CLIENT,
            packet,
            f"server has cancelled consumer {tag}{f' (queue {queue})' if queue else ''}; client "
            f"{'did not consume' if ended else 'has not consumed'} again for {duration(seconds)}",
            {"queue": queue or None, "consumed_again": False, "consumers_left": len(channel.consumers.live)},
            seconds=seconds,
            ended=ended,
        )

    # Messages

    def _state(self, record: FrameRecord) -> ChannelState | None:
        for state in self.channels.values():
            if state.channel.number == record.frame.channel:
                return state
        return None

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        state = None if content.channel is None else self.channels.get(content.channel)
        if isinstance(method, BasicPublish):
            self.published += 1
            self.published_since += 1
            if state is not None:
                state.published += 1
        elif state is not None and isinstance(method, BasicDeliver):
            state.delivered += 1
            delivery, consumer = content.delivery, content.consumer
            if delivery is not None and not delivery.no_ack and delivery.consumer is not None:
                held = state.held.get(delivery.consumer, 0) + 1
                state.held[delivery.consumer] = held
                window = window_of(state.channel, consumer)
                if window and held >= window and not state.full_packet:
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
            if delivery.consumer is not None:
                state.held[delivery.consumer] = max(state.held.get(delivery.consumer, 0) - 1, 0)
        if state.full_packet and state.held.get(state.full_tag, 0) < state.full_window:
            self._emptied(state, record.packet, record.time)

    def _emptied(self, state: ChannelState, ended: int, until: int) -> bool:
        """The window of a consumer is not full any more, or nothing is known; True if it is reported."""
        if not state.full_packet:
            return False
        packet, since, window = state.full_packet, state.full_time, state.full_window
        state.full_packet = 0
        held = state.held.get(state.full_tag, 0)
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
            f"{state.subject}: client holds {count(max(held, window), 'unacknowledged delivery')}: the "
            f"prefetch of {window} {'was' if ended else 'is'} full for {duration(seconds)}",
            {"prefetch": window, "unacknowledged": max(held, window), "consumer": state.full_tag},
            seconds=seconds,
            ended=ended,
        )
        return True

    # What is left at the end

    def _leave(self, state: ChannelState, ended: int, until: int) -> None:
        """A channel is over, or what is known of it."""
        self._resumed(state, ended, until)
        reported = self._emptied(state, ended, until)
        if not reported and not state.channel.transacted:
            self._unacknowledged(state, ended, until)
        self._unconfirmed(state, ended, until)
        for tag in [tag for tag, one in self.cancelled.items() if one[0] is state.channel]:
            self._consumed(tag, ended, until)

    def _unacknowledged(self, state: ChannelState, ended: int, until: int) -> None:
        notebook = self.notebook
        left = [
            one
            for one in state.channel.deliveries.unacknowledged.values()
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
            f"{state.subject}: {count(len(left), 'delivery')} {are(len(left))} not acknowledged, "
            f"the oldest for {duration(seconds)}",
            {"deliveries": state.delivered, "unacknowledged": len(left), "prefetch": window or None},
            seconds=seconds,
            ended=ended,
        )

    def _unconfirmed(self, state: ChannelState, ended: int, until: int) -> None:
        notebook = self.notebook
        publishes = state.channel.publishes
        oldest = publishes.oldest()
        if oldest is None or oldest.number > publishes.sure_to or self.was_blocked:
            return
        if not notebook.idle(1, oldest.time, until, notebook.limit(CONFIRMS_MISSING)):
            return
        if notebook.acknowledged[1] < oldest.end and notebook.segment_time[1] <= oldest.time:
            return
        seconds = (until - oldest.time) / SECOND
        missing = len(publishes.unconfirmed)
        notebook.add(
            CONFIRMS_MISSING,
            state.subject,
            SERVER,
            oldest.packet,
            f"{state.subject}: {missing} of {count(publishes.count, 'publish')} {are(missing)} not "
            f"confirmed, the oldest is number {oldest.number}, for {duration(seconds)}",
            {
                "published": publishes.count,
                "confirmed": publishes.count - missing,
                "missing": missing,
                "oldest": oldest.number,
            },
            seconds=seconds,
            ended=ended,
        )

    def _conclude(self, ended: int, until: int) -> None:
        for state in list(self.channels.values()):
            self._leave(state, ended, until)
        self.channels = {}
        self.cancelled = {}
        self._unblocked(ended, until)

    def lost(self, until: int) -> None:
        self._conclude(0, until)
        self.known_since = max(self.notebook.frame_time)

    def finish(self, accused: set[str]) -> None:
        self._conclude(self.notebook.end_packet, self.notebook.end_time)


def _tag(delivery: ConsumerDelivery) -> int:
    return delivery.tag
