"""Which deliveries on a channel are unacknowledged, and what is known of the others.

Theory of operation. The server counts delivery-tags per channel, from 1 upwards; basic.deliver and
basic.get-ok share them. A delivery to a no-ack consumer uses a tag and needs no acknowledgement. An
acknowledgement of one tag settles one delivery. With `multiple` it settles all unacknowledged deliveries up
to the tag, and tag 0 with `multiple` settles all.

In a transaction, acknowledgements take effect at the commit. A rollback makes their deliveries unacknowledged
again (section 2.2.9), for all later methods. A recover returns all unacknowledged deliveries to the queue.
"""

from typing import Any

from amqpscope.limits import MAX_UNACKNOWLEDGED
from amqpscope.tracking.ascending import Ascending
from amqpscope.tracking.events import Rememberable
from amqpscope.tracking.spans import Spans
from dissectors.wire import i64

__all__ = ["ChannelDeliveries", "ConsumerDelivery"]


class ConsumerDelivery(Rememberable):
    """A message that the server sends to the client."""

    def __init__(self, tag: int, consumer: str | None, end: i64, packet: i64, time: i64) -> None:
        super().__init__()
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
        """The object of what `dump` returned."""
        delivery = ConsumerDelivery(*state[:5])
        delivery.size, delivery.no_ack = state[5:]
        return delivery


class ChannelDeliveries:
    """The deliveries of one channel since it was opened.

    last: the highest tag so far, 0 before the first. unacknowledged: by tag; `order` has the tags in order.
    whole: none is missing. gapless: each tag followed the previous one. free: tags of deliveries that need no
    acknowledgement. recovered: tags that a recover has returned. counts: how many deliveries of each consumer
    are unacknowledged (None: those of basic.get); octets: the total size of the unacknowledged deliveries of
    consumers; both only if `counting`, which only the sender of deliveries needs. pointless_end,
    pointless_packet: the first acknowledgement that named no delivery, -1 if there is none.
    """

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
        """The server sends a delivery."""
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
        """The delivery waits for its acknowledgement."""
        # mypyc: one object for both, because a number of type int is made an object each time.
        tag: Any = delivery.tag
        self.unacknowledged[tag] = delivery
        self.order.add(tag, self.unacknowledged)
        if self.counting:
            self.counts[delivery.consumer] = self.counts.get(delivery.consumer, 0) + 1
            if delivery.consumer is not None:
                self.octets += max(delivery.size, 0)

    def weigh(self, tag: int, size: i64) -> None:
        """The content header of a delivery gives its size."""
        delivery = self.unacknowledged.get(tag)
        if delivery is not None and delivery.size < 0:
            delivery.size = size
            if self.counting and delivery.consumer is not None:
                self.octets += size

    def oldest(self) -> ConsumerDelivery | None:
        """The unacknowledged delivery with the smallest tag, None if there is none."""
        known = self.unacknowledged
        return known[self.order.smallest(known)] if known else None

    def covered(self, tag: int, multiple: bool) -> list[ConsumerDelivery]:
        """The unacknowledged deliveries that an acknowledgement names."""
        known = self.unacknowledged
        if not multiple:
            one = known.get(tag)
            return [] if one is None else [one]
        return [known[number] for number in self.order.up_to(tag, known)]

    def settle(self, tag: int, multiple: bool, transacted: bool, end: i64, packet: i64) -> None:
        """A basic.ack, basic.reject or basic.nack of the client."""
        if multiple:
            self.settle_to(tag, transacted, end, packet)
            return
        known = self.unacknowledged
        number: Any = tag
        delivery = known.get(number)
        if delivery is not None:
            del known[number]
            if self.counting or transacted:
                self._settle(delivery, transacted)
        elif self.pointless_end < 0:
            self.pointless_end = end
            self.pointless_packet = packet

    def settle_to(self, tag: int, transacted: bool, end: i64, packet: i64) -> list[ConsumerDelivery]:
        """A basic.ack or basic.nack of the client with `multiple`. Returns the deliveries that it names."""
        known = self.unacknowledged
        if tag != 0 and self.pointless_end < 0 and tag not in known:
            self.pointless_end = end
            self.pointless_packet = packet
        numbers = self.order.up_to(tag, known)
        settled = [known[number] for number in numbers]
        if len(numbers) == len(known):
            known.clear()
        else:
            for number in numbers:
                del known[number]
        if self.counting or transacted:
            for delivery in settled:
                self._settle(delivery, transacted)
        return settled

    def _settle(self, delivery: ConsumerDelivery, transacted: bool) -> None:
        self._forget(delivery)
        if not transacted:
            return
        if len(self.undecided) >= MAX_UNACKNOWLEDGED:
            self.undecided = []
            self.whole = False
        self.undecided.append(delivery)

    def commit(self) -> None:
        """The acknowledgements of the transaction take effect."""
        self.undecided = []

    def roll_back(self) -> None:
        """The acknowledgements of the transaction are undone."""
        again = self.undecided
        self.undecided = []
        for delivery in again:
            if delivery.tag not in self.unacknowledged:
                self.keep(delivery)

    def recover(self) -> None:
        """All unacknowledged deliveries return to their queues, and will come again with other tags."""
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
    def load(state: tuple[Any, ...]) -> "ChannelDeliveries":
        """The object of what `dump` returned."""
        counting, last, whole, known, free, undecided, more, due = state
        gapless, recovered, pointless_end, pointless_packet = more
        deliveries = ChannelDeliveries(counting)
        for one in known:
            deliveries.keep(ConsumerDelivery.load(one))
        deliveries.last, deliveries.whole, deliveries.gapless = last, whole, gapless
        deliveries.recovered = Spans.load(recovered)
        deliveries.pointless_end, deliveries.pointless_packet = pointless_end, pointless_packet
        deliveries.free = Spans.load(free)
        deliveries.undecided = [ConsumerDelivery.load(one) for one in undecided]
        deliveries.due = None if due is None else ConsumerDelivery.load(due)
        return deliveries
