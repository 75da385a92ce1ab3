"""Which deliveries on a channel are not acknowledged yet, and what may be said of the others.

Theory of operation. Tags are the server's, per channel, from 1 upwards; basic.deliver and basic.get-ok share
them. A delivery to a no-ack consumer takes a tag and needs no acknowledgement. An acknowledgement of one tag
takes that one; with `multiple` it takes all up to it that are left, and tag 0 with `multiple` all there are.

In a transaction acknowledgements count from the commit on: a rollback makes the deliveries that they named
unacknowledged again (section 2.2.9), from the rollback on: what is said behind it is read behind it. A
recover makes all of them the queue's again.
"""

from typing import Any

from amqpscope.limits import MAX_UNACKNOWLEDGED
from amqpscope.tracking.ascending import Ascending
from amqpscope.tracking.spans import Spans
from dissectors.wire import i64

__all__ = ["ConsumerDelivery", "Deliveries"]


class ConsumerDelivery:
    """A message that the server sends to the client."""

    def __init__(self, tag: int, consumer: str | None, end: i64, packet: i64, time: i64) -> None:
        # Its delivery-tag.
        self.tag: int = tag
        # The tag of its consumer, None for one that was asked for by basic.get.
        self.consumer: str | None = consumer
        # The offset behind its method in the server's stream.
        self.end: i64 = end
        # The packet of its method, and when that was complete (ns).
        self.packet: i64 = packet
        self.time: i64 = time
        # The octets of its body, -1 until they are known.
        self.size: i64 = -1
        # It needs no acknowledgement.
        self.no_ack: bool = False

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        places = (int(self.end), int(self.packet), int(self.time))
        return (self.tag, self.consumer, *places, int(self.size), self.no_ack)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ConsumerDelivery":
        """What `dump` gave, as an object again."""
        delivery = ConsumerDelivery(*state[:5])
        delivery.size, delivery.no_ack = state[5:]
        return delivery


class Deliveries:
    """The deliveries of one channel since it was opened."""

    def __init__(self, counting: bool = True) -> None:
        # `counts` and `octets` are kept, as only who sends deliveries needs them.
        self.counting: bool = counting
        # The highest tag so far, 0 before the first.
        self.last: int = 0
        # No delivery is missing.
        self.whole: bool = True
        # The unacknowledged ones, by tag; and their tags in order.
        self.unacknowledged: dict[int, ConsumerDelivery] = {}
        self.order: Ascending = Ascending()
        # Each tag was the one behind the last.
        self.gapless: bool = True
        # Tags of deliveries that need no acknowledgement.
        self.free: Spans = Spans()
        # Tags of those that a recover has given back.
        self.recovered: Spans = Spans()
        # How many of each consumer's are unacknowledged; None: of those that were asked for by basic.get.
        self.counts: dict[str | None, int] = {}
        # How large those of consumers are together.
        self.octets: i64 = 0
        # Of a transaction under way: those acknowledged in it.
        self.undecided: list[ConsumerDelivery] = []
        # The offset behind the first acknowledgement that named none, -1 if all did, and its packet.
        self.pointless_end: i64 = -1
        self.pointless_packet: i64 = 0
        # The delivery whose content header is due.
        self.due: ConsumerDelivery | None = None

    def add(self, delivery: ConsumerDelivery) -> None:
        """The server sends one."""
        tag = delivery.tag
        if tag != self.last + 1:
            self.gapless = False
        if tag > self.last:
            self.last = tag
        if delivery.no_ack:
            self.free.add(tag, tag)
            return
        known = self.unacknowledged
        if len(known) >= MAX_UNACKNOWLEDGED:
            self.whole = False
            self._forget(known.pop(self.order.smallest(known)))
        if not self.gapless:
            before = known.pop(tag, None)
            if before is not None:
                self._forget(before)
        self.keep(delivery)

    def keep(self, delivery: ConsumerDelivery) -> None:
        """It waits for its acknowledgement."""
        tag = delivery.tag
        self.unacknowledged[tag] = delivery
        self.order.add(tag, self.unacknowledged)
        if self.counting:
            self.counts[delivery.consumer] = self.counts.get(delivery.consumer, 0) + 1
            if delivery.consumer is not None:
                self.octets += max(delivery.size, 0)

    def weigh(self, tag: int, size: i64) -> None:
        """The content header of a delivery tells how large it is."""
        delivery = self.unacknowledged.get(tag)
        if delivery is not None and delivery.size < 0:
            delivery.size = size
            if self.counting and delivery.consumer is not None:
                self.octets += size

    def oldest(self) -> ConsumerDelivery | None:
        """Of the unacknowledged ones that with the smallest tag, None if there are none."""
        known = self.unacknowledged
        return known[self.order.smallest(known)] if known else None

    def covered(self, tag: int, multiple: bool) -> list[ConsumerDelivery]:
        """The unacknowledged ones that an acknowledgement names."""
        known = self.unacknowledged
        if not multiple:
            one = known.get(tag)
            return [] if one is None else [one]
        return [known[number] for number in self.order.up_to(tag, known)]

    def settle(self, tag: int, multiple: bool, transacted: bool, end: i64, packet: i64) -> None:
        """An acknowledgement, a rejection or a negative acknowledgement of the client's, said there."""
        known = self.unacknowledged
        if tag not in known:
            if (tag != 0 or not multiple) and self.pointless_end < 0:
                self.pointless_end = end
                self.pointless_packet = packet
            if not multiple:
                return
        elif not multiple:
            self._settle(known.pop(tag), transacted)
            return
        for delivery in self.covered(tag, multiple):
            del known[delivery.tag]
            self._settle(delivery, transacted)

    def _settle(self, delivery: ConsumerDelivery, transacted: bool) -> None:
        self._forget(delivery)
        if not transacted:
            return
        if len(self.undecided) >= MAX_UNACKNOWLEDGED:
            self.undecided = []
            self.whole = False
        self.undecided.append(delivery)

    def commit(self) -> None:
        """The acknowledgements of the transaction stand."""
        self.undecided = []

    def roll_back(self) -> None:
        """The acknowledgements of the transaction are as if they had not been made."""
        again = self.undecided
        self.undecided = []
        for delivery in again:
            if delivery.tag not in self.unacknowledged:
                self.keep(delivery)

    def recover(self) -> None:
        """All that is unacknowledged is the queues' again, and will come with other tags."""
        for tag in self.unacknowledged:
            self.recovered.add(tag, tag)
        self.unacknowledged = {}
        self.order = Ascending()
        self.counts = {}
        self.octets = 0

    def _forget(self, delivery: ConsumerDelivery) -> None:
        if not self.counting:
            return
        left = self.counts.get(delivery.consumer, 0) - 1
        if left > 0:
            self.counts[delivery.consumer] = left
        else:
            self.counts.pop(delivery.consumer, None)
        if delivery.consumer is not None:
            self.octets -= max(delivery.size, 0)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.counting,
            self.last,
            self.whole,
            tuple(delivery.dump() for delivery in self.unacknowledged.values()),
            self.free.dump(),
            tuple(delivery.dump() for delivery in self.undecided),
            (self.gapless, self.recovered.dump(), int(self.pointless_end), int(self.pointless_packet)),
            None if self.due is None else self.due.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Deliveries":
        """What `dump` gave, as an object again."""
        counting, last, whole, known, free, undecided, more, due = state
        gapless, recovered, pointless_end, pointless_packet = more
        deliveries = Deliveries(counting)
        for one in known:
            deliveries.keep(ConsumerDelivery.load(one))
        deliveries.last, deliveries.whole, deliveries.gapless = last, whole, gapless
        deliveries.recovered = Spans.load(recovered)
        deliveries.pointless_end, deliveries.pointless_packet = pointless_end, pointless_packet
        deliveries.free = Spans.load(free)
        deliveries.undecided = [ConsumerDelivery.load(one) for one in undecided]
        deliveries.due = None if due is None else ConsumerDelivery.load(due)
        return deliveries
