"""Which deliveries on a channel are unacknowledged, and what is known of the others.

Theory of operation. The server counts delivery-tags per channel, from 1 upwards; basic.deliver and
basic.get-ok share them. A delivery to a no-ack consumer uses a tag and needs no acknowledgement. An
acknowledgement of one tag settles one delivery. With `multiple` it settles all unacknowledged deliveries up
to the tag, and tag 0 with `multiple` settles all.

In a transaction, acknowledgements take effect at the commit. A rollback makes their deliveries unacknowledged
again (section 2.2.9), for all later methods. A recover returns all unacknowledged deliveries to the queue.
"""

from typing import Any, Final

from amqpscope.limits import MAX_UNACKNOWLEDGED
from amqpscope.tracking.events import Rememberable
from amqpscope.tracking.numbered import Numbered
from amqpscope.tracking.spans import Spans
from dissectors.wire import i64

__all__ = ["ChannelDeliveries", "ConsumerDelivery"]


_SPARES: Final = 256
"""Objects of settled deliveries of a channel: as many as one acknowledgement often names."""


class ConsumerDelivery(Rememberable):
    """A message that the server sends to the client."""

    def __init__(self, tag: int, consumer: str | None, end: i64, packet: i64, time: i64) -> None:
        # The packet of its method, and when that was complete (ns).
        super().__init__(packet, time)
        # Its delivery-tag.
        self.tag: int = tag
        # The tag of its consumer, None for one that was asked for by basic.get.
        self.consumer: str | None = consumer
        # The offset behind its method in the server's stream.
        self.end: i64 = end
        # The octets of its body, -1 until they are known.
        self.size: i64 = -1
        # It needs no acknowledgement.
        self.no_ack: bool = False
        # Its queue, if a subscriber remembers something of it. It is not dumped.
        self.queue: str = ""
        # Of a settled one whose object may stand for another delivery, the next such object.
        self.spare: ConsumerDelivery | None = None

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

    last: the highest tag so far, 0 before the first. unacknowledged: by tag. whole: none is missing, and each
    had a new tag. gapless: each tag followed the previous one. free: tags of deliveries that need no
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
        # No delivery is missing, and each had a new tag.
        self.whole: bool = True
        # The unacknowledged ones, by tag.
        self.unacknowledged: Numbered = Numbered()
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
        # How many a conversation has seen begin. It is not dumped.
        self.begun: i64 = 0
        # The first of the objects that may stand for other deliveries, and how many these are.
        self.spare: ConsumerDelivery | None = None
        self.spares: i64 = 0

    def begin(self, tag: int, consumer: str | None, end: i64, packet: i64, time: i64) -> ConsumerDelivery:
        """An object for a delivery that begins."""
        one = self.spare
        if one is None:
            return ConsumerDelivery(tag, consumer, end, packet, time)
        self.spare = one.spare
        self.spares -= 1
        one.spare = None
        one.packet = packet
        one.time = time
        one.remembered = None
        one.tag = tag
        one.consumer = consumer
        one.end = end
        one.size = -1
        one.queue = ""
        return one

    def reuse(self, deliveries: list[ConsumerDelivery]) -> None:
        """Nobody keeps these settled deliveries: their objects may stand for other ones."""
        self.due = None
        for delivery in deliveries:
            if self.spares < _SPARES:
                delivery.spare = self.spare
                self.spare = delivery
                self.spares += 1

    def add(self, delivery: ConsumerDelivery) -> None:
        """The server sends a delivery."""
        tag = delivery.tag
        if tag != self.last + 1:
            self.gapless = False
        if tag > self.last:
            self.last = tag
        else:
            # Which tag the client gives it in its acknowledgement is not known.
            self.whole = False
        if delivery.no_ack:
            self.free.add(tag, tag)
            return
        known = self.unacknowledged
        if known.count() >= MAX_UNACKNOWLEDGED:
            self.whole = False
            oldest: ConsumerDelivery = known.oldest()
            known.take(oldest.tag)
            self._forget(oldest)
        if not self.gapless:
            before = known.take(tag)
            if before is not None:
                self._forget(before)
        self.keep(delivery)

    def keep(self, delivery: ConsumerDelivery) -> None:
        """The delivery waits for its acknowledgement."""
        self.unacknowledged.put(delivery.tag, delivery)
        if self.counting:
            self.counts[delivery.consumer] = self.counts.get(delivery.consumer, 0) + 1
            if delivery.consumer is not None:
                self.octets += max(delivery.size, 0)

    def weigh(self, tag: int, size: i64) -> None:
        """The content header of a delivery gives its size."""
        delivery: ConsumerDelivery | None = self.unacknowledged.get(tag)
        if delivery is not None and delivery.size < 0:
            delivery.size = size
            if self.counting and delivery.consumer is not None:
                self.octets += size

    def oldest(self) -> ConsumerDelivery | None:
        """The unacknowledged delivery with the smallest tag, None if there is none."""
        oldest: ConsumerDelivery | None = self.unacknowledged.oldest()
        return oldest

    def covered(self, tag: int, multiple: bool) -> list[ConsumerDelivery]:
        """The unacknowledged deliveries that an acknowledgement names."""
        if multiple:
            return self.unacknowledged.up_to(tag)
        one = self.unacknowledged.get(tag)
        return [] if one is None else [one]

    def settle(self, tag: int, transacted: bool, end: i64, packet: i64) -> ConsumerDelivery | None:
        """A basic.ack, basic.reject or basic.nack of the client without `multiple`. Returns the delivery that
        it names, None if there is none.
        """
        delivery: ConsumerDelivery | None = self.unacknowledged.take(tag)
        if delivery is not None:
            if self.counting or transacted:
                self._settle(delivery, transacted)
        elif self.pointless_end < 0:
            self.pointless_end = end
            self.pointless_packet = packet
        return delivery

    def settle_to(self, tag: int, transacted: bool, end: i64, packet: i64) -> list[ConsumerDelivery]:
        """A basic.ack or basic.nack of the client with `multiple`. Returns the deliveries that it names."""
        known = self.unacknowledged
        if tag != 0 and self.pointless_end < 0 and tag not in known:
            self.pointless_end = end
            self.pointless_packet = packet
        if tag > self.last:
            # How many it is meant to settle is not known.
            self.whole = False
        settled: list[ConsumerDelivery] = known.take_up_to(tag)
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
        for delivery in self.unacknowledged.entries():
            self.recovered.add(delivery.tag, delivery.tag)
        self.unacknowledged = Numbered()
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
            tuple(delivery.dump() for delivery in self.unacknowledged.entries()),
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
