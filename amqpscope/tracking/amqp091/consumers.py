"""The consumers of one channel: which ones exist, how each one ended, and how many deliveries they may have.

Theory of operation. The client starts a consumer by basic.consume, with a consumer-tag of its own or without
one. A consumer without a consumer-tag is `nameless` until basic.consume-ok names it. Deliveries may come
after basic.consume-ok (`ready`). A consumer ends by a basic.cancel of either peer, or with its queue; no
method reports the latter for each consumer.

A consumer may end without the client knowing when (by no-wait, or with its queue). Deliveries under its
consumer-tag may then still belong to it when the tag is used again. The next consumer under the tag may
therefore get deliveries at once. If the two consumers differ in no-ack, nobody knows whether deliveries under
the tag need an acknowledgement.

basic.qos sets a prefetch-count: without `global` for each consumer that starts later, with `global` for the
whole channel at once. For the channel, all bounds that may apply are kept (see `tracking.knowledge`). This is
RabbitMQ's reading of basic.qos (its documentation of the prefetch).
"""

from collections import OrderedDict
from typing import Any, Final

from amqpscope.limits import MAX_COMPARED_CONSUMERS, MAX_CONSUMERS, MAX_REQUESTS
from amqpscope.tracking.amqp091.deliveries import ChannelDeliveries
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.knowledge import PeerLimits
from dissectors.amqp091.methods import BasicQos
from dissectors.wire import i64

__all__ = ["QUEUE_DELETED", "REPLIES", "UNANSWERED", "UNLIMITED", "Consumer", "Consumers", "Roster"]

UNLIMITED: Final = 1 << 40
"""The bound of an unlimited prefetch-count: above all counts."""

REPLIES: Final = "amq.rabbitmq.reply-to"
"""RabbitMQ's queue that is none: what is published to it goes to the channel that consumes from it. Its
deliveries do not count: each has the tag that the next one of a real queue will have."""

UNANSWERED: Final = "client, with no-wait"
"""Who cancelled a consumer: the client, and nothing shows when the server has heard it."""

QUEUE_DELETED: Final = "queue deleted"
"""Who cancelled a consumer: nobody, its queue is gone."""


class Consumer:
    """A consumer of a channel.

    tag; queue: as basic.consume named it, or the current queue. no_ack: its deliveries need no
    acknowledgement. limit: the prefetch-count with which it started. ready: deliveries may come, because
    basic.consume-ok came, or none is due, or they may belong to an earlier consumer with the same tag;
    waited: basic.consume-ok is due. inherited: unacknowledged deliveries of earlier consumers with the tag.
    begun: something was delivered; streaming: from a stream of RabbitMQ. end, packet: of its basic.consume.
    """

    def __init__(self, tag: str, queue: str, no_ack: bool, exclusive: bool, end: i64, packet: i64) -> None:
        self.tag: str = tag
        self.queue: str = queue
        self.no_ack: bool = no_ack
        self.exclusive: bool = exclusive
        self.limit: i64 = UNLIMITED
        self.ready: bool = False
        self.waited: bool = True
        self.inherited: i64 = 0
        self.begun: bool = False
        self.streaming: bool = False
        self.end: i64 = end
        self.packet: i64 = packet

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.tag, self.queue, self.no_ack, self.exclusive, int(self.end), int(self.packet)),
            (int(self.limit), self.ready, self.waited, int(self.inherited), self.begun, self.streaming),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Consumer":
        """The object of what `dump` returned."""
        consumer = Consumer(*state[0])
        consumer.limit, consumer.ready, consumer.waited, consumer.inherited = state[1][:4]
        consumer.begun, consumer.streaming = state[1][4:]
        return consumer


class Roster:
    """The consumers of a connection, by their known queues.

    queues: for each queue the numbers of channels, and for each channel the consumers by their tags.
    """

    def __init__(self) -> None:
        self.queues: dict[str, OrderedDict[int, dict[str, Consumer]]] = {}

    def enter(self, number: i64, consumer: Consumer) -> None:
        """A consumer of this channel starts."""
        queue = consumer.queue
        if not queue or queue == UNREADABLE:
            return
        channels = self.queues.get(queue)
        if channels is None:
            channels = OrderedDict()
            self.queues[queue] = channels
        here = channels.get(int(number))
        if here is None:
            here = {}
            channels[int(number)] = here
        here[consumer.tag] = consumer

    def leave(self, number: i64, consumer: Consumer) -> None:
        """A consumer of this channel has ended."""
        here = self.on(consumer.queue, number)
        if here.pop(consumer.tag, None) is not None and not here:
            channels = self.queues[consumer.queue]
            del channels[int(number)]
            if not channels:
                del self.queues[consumer.queue]

    def on(self, queue: str, number: i64) -> dict[str, Consumer]:
        """The consumers of a queue on this channel, by their tags."""
        channels = self.queues.get(queue)
        if channels is None:
            return _NONE
        return channels.get(int(number), _NONE)

    def of(self, queue: str) -> list[tuple[int, Consumer]]:
        """The consumers of a queue, each with its channel number; of many, the earliest ones."""
        found: list[tuple[int, Consumer]] = []
        channels = self.queues.get(queue)
        if channels is not None:
            for number, here in channels.items():
                for consumer in here.values():
                    if len(found) >= MAX_COMPARED_CONSUMERS:
                        return found
                    found.append((number, consumer))
        return found


_NONE: Final[dict[str, Consumer]] = {}


class Consumers:
    """The consumers of one channel.

    number: of the channel. roster: the consumers of all channels. live: by their tags. nameless: those that
    basic.consume-ok has to name, in order. cancelled: tags that are not in use again, and who cancelled:
    `client`, `server`, UNANSWERED, QUEUE_DELETED. window: the prefetch-count of consumers that start now;
    windows: that of the whole channel, as bounds; window_octets: the prefetch-size, 0 for none. whole: no
    consumer had to be forgotten.
    """

    def __init__(self, number: i64, deliveries: ChannelDeliveries, roster: Roster) -> None:
        self.number: i64 = number
        self.deliveries: ChannelDeliveries = deliveries
        self.roster: Roster = roster
        self.live: dict[str, Consumer] = {}
        self.nameless: list[Consumer] = []
        self.cancelled: dict[str, str] = {}
        self.window: i64 = UNLIMITED
        self.windows: PeerLimits = PeerLimits()
        self.window_octets: i64 = 0
        self.whole: bool = True
        # Whose the last delivery is, None if that is not known, or if a consumer has ended since.
        self.addressee: Consumer | None = None

    # How they begin

    def begin(self, consumer: Consumer) -> None:
        """The client starts a consumer."""
        consumer.limit = self.window
        consumer.ready = not consumer.waited
        tag = consumer.tag
        if not tag:
            if len(self.nameless) < MAX_REQUESTS:
                self.nameless.append(consumer)
            return
        before = self.live.get(tag)
        if before is not None or self.cancelled.get(tag) in (UNANSWERED, QUEUE_DELETED):
            # Deliveries may still belong to the previous consumer with this tag.
            consumer.ready = True
            if before is None or before.no_ack != consumer.no_ack:
                self.deliveries.whole = False
        self._keep(tag, consumer)

    def begun_at(self, tag: str, end: i64) -> Consumer | None:
        """The consumer that the basic.consume with this tag, which ends at this offset, has begun."""
        consumer = self.live.get(tag)
        if not tag and self.nameless:
            consumer = self.nameless[len(self.nameless) - 1]
        return consumer if consumer is not None and consumer.end == end else None

    def confirm(self, asked: str, tag: str) -> None:
        """basic.consume-ok: a consumer has started that asked for this tag, or for any tag ("") and gets this
        one.
        """
        if asked:
            named = self.live.get(asked)
            if named is not None:
                named.ready = True
            return
        at: i64 = 0
        for consumer in self.nameless:
            if consumer.waited:
                del self.nameless[at]
                consumer.ready = True
                self._keep(tag, consumer)
                return
            at += 1

    def addressed(self, tag: str, complete: bool) -> Consumer | None:
        """Whose a delivery under this tag is, None if that is not known.

        complete: nothing is missing of what was said. Then one that was begun without a name, and without
        anybody waiting to hear of it, is whose tag nobody else has.
        """
        consumer = self.addressee
        if consumer is not None and consumer.tag == tag:
            return consumer
        consumer = self.live.get(tag)
        if (
            consumer is None
            and complete
            and tag != UNREADABLE
            and self.nameless
            and not self.nameless[0].waited
        ):
            consumer = self.nameless.pop(0)
            self._keep(tag, consumer)
        self.addressee = consumer
        return consumer

    def _keep(self, tag: str, consumer: Consumer) -> None:
        consumer.tag = tag
        if len(self.live) >= MAX_CONSUMERS and tag not in self.live:
            self._drop(next(iter(self.live)))
            self.whole = False
        self._drop(tag)
        self.live[tag] = consumer
        self.roster.enter(self.number, consumer)
        self.cancelled.pop(tag, None)
        consumer.inherited = self.deliveries.counts.get(tag, 0)

    # How they end

    def cancel(self, tag: str, by: str) -> None:
        """A consumer ends, if there is one with this tag. by: as in `cancelled`."""
        self._drop(tag)
        if len(self.cancelled) >= MAX_CONSUMERS:
            del self.cancelled[next(iter(self.cancelled))]
        self.cancelled[tag] = by

    def _drop(self, tag: str) -> None:
        consumer = self.live.pop(tag, None)
        self.addressee = None
        if consumer is not None:
            self.roster.leave(self.number, consumer)

    def cancel_ok(self, tag: str, asked: i64) -> None:
        """The server has answered the basic.cancel that the client sent at this offset."""
        consumer = self.live.get(tag)
        if consumer is None or consumer.end < asked:
            self.cancel(tag, "client")

    def queue_gone(self, queue: str, asked: i64) -> None:
        """A queue was deleted by the request at this offset: its consumers have ended."""
        for tag, consumer in list(self.of(queue).items()):
            if consumer.end < asked:
                self.cancel(tag, QUEUE_DELETED)

    def of(self, queue: str) -> dict[str, Consumer]:
        """The consumers of one queue, by their tags."""
        return self.roster.on(queue, self.number)

    def empty(self, deliveries: ChannelDeliveries) -> None:
        """The channel is closed and has no consumers. deliveries: those of the next life."""
        self.deliveries = deliveries
        for consumer in self.live.values():
            self.roster.leave(self.number, consumer)
        self.live = {}
        self.nameless = []
        self.cancelled = {}
        self.windows = PeerLimits()
        self.addressee = None

    # Prefetch limits

    def qos(self, method: BasicQos, end: i64, packet: i64) -> None:
        """The client sets a prefetch limit."""
        count: i64 = method.prefetch_count
        bound: i64 = UNLIMITED if count <= 0 else count
        if method.global_:
            if len(self.windows) == 0:
                self.windows.set(0, UNLIMITED, 0)
            self.windows.set(end, bound, packet)
            self.window_octets = 0
        else:
            self.window = bound
            self.window_octets = max(method.prefetch_size, 0)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, but for the deliveries; `whole` is in the channel's."""
        return (
            tuple(consumer.dump() for consumer in self.live.values()),
            tuple(consumer.dump() for consumer in self.nameless),
            tuple(self.cancelled.items()),
            (int(self.window), self.windows.dump(), int(self.window_octets)),
        )

    @staticmethod
    def load(
        state: tuple[Any, ...], number: i64, deliveries: ChannelDeliveries, roster: Roster
    ) -> "Consumers":
        """The object of what `dump` returned."""
        live, nameless, cancelled, windows = state
        consumers = Consumers(number, deliveries, roster)
        for one in live:
            consumer = Consumer.load(one)
            consumers.live[consumer.tag] = consumer
            roster.enter(number, consumer)
        consumers.nameless = [Consumer.load(one) for one in nameless]
        consumers.cancelled = dict(cancelled)
        consumers.window, limits, consumers.window_octets = windows
        consumers.windows = PeerLimits.load(limits)
        return consumers
