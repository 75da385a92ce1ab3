"""The deliveries of a session, in both directions, by their ids as counts.

Sources: transport.xml, "Transferring a Message", disposition.
"""

from bisect import bisect_left
from collections.abc import Collection
from typing import Any, Final

from amqpscope.limits import MAX_STATED, MAX_UNPROVED
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.object_ids import ObjectIds
from amqpscope.tracking.serial import nearest, raw
from amqpscope.tracking.spans import Spans
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.wire import i64

__all__ = ["NONE_RECEIVED", "NONE_SENT", "ReceivedDeliveries", "SentDeliveries", "among"]


def among(numbers: Collection[int], first: i64, last: i64) -> list[int]:
    """Those of `numbers` from `first` to `last`, at the price of the fewer of the two."""
    if last - first < len(numbers):
        return [number for number in range(int(first), int(last) + 1) if number in numbers]
    return [number for number in numbers if first <= number <= last]


class SentDeliveries:
    """The deliveries that this end has sent on a session."""

    def __init__(self) -> None:
        # The newest delivery-id.
        self.last: i64 = UNKNOWN
        # Deliveries without a delivery-id since the last that had one.
        self.unnumbered: i64 = 0
        # Those that the peer may still settle.
        self.unsettled: dict[int, Delivery] = {}
        # Those that this end has settled with a disposition.
        self.settled: Spans = Spans()
        # Those that were aborted, by delivery-id of 32 bits.
        self.aborted: set[int] = set()

    def abort(self, delivery: Delivery) -> None:
        """This end aborts a delivery."""
        if delivery.number != UNKNOWN and len(self.aborted) < MAX_STATED:
            self.aborted.add(int(raw(delivery.number)))

    def settle(self, body: Disposition) -> None:
        """This end settles deliveries with a disposition."""
        first, last = self.named_by(body)
        if first != UNKNOWN and last >= first:
            self.settled.add(first, last)

    def named_by(self, body: Disposition) -> tuple[int, int]:
        """First and last of the deliveries that a disposition names, as counts; UNKNOWN if none is."""
        if body.first is None or self.last == UNKNOWN:
            return (UNKNOWN, UNKNOWN)
        first = nearest(body.first, self.last)
        if first > self.last:
            return (UNKNOWN, UNKNOWN)
        return (int(first), int(first if body.last is None else nearest(body.last, first)))

    def dump(self, deliveries: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, the deliveries by number."""
        return (
            (int(self.last), int(self.unnumbered)),
            tuple((number, deliveries.number(one)) for number, one in self.unsettled.items()),
            (self.settled.dump(), tuple(sorted(self.aborted))),
        )

    @staticmethod
    def load(state: tuple[Any, ...], deliveries: list[Delivery]) -> "SentDeliveries":
        """The object of what `dump` returned."""
        sent = SentDeliveries()
        ids, unsettled, over = state
        sent.last, sent.unnumbered = ids
        sent.unsettled = {number: deliveries[at] for number, at in unsettled}
        sent.settled = Spans.load(over[0])
        sent.aborted = set(over[1])
        return sent


class ReceivedDeliveries:
    """The deliveries that this end has received on a session, at `could`."""

    def __init__(self) -> None:
        # The newest delivery with a new delivery-id.
        self.newest: i64 = UNKNOWN
        # The latest of these, in ascending order.
        self.numbers: list[int] = []
        # Where in the peer's stream the first transfer of each of them ended.
        self.ends: list[int] = []
        # Deliveries without a delivery-id since the last that had one.
        self.unnumbered: i64 = 0
        # Those that this end has settled.
        self.settled: Spans = Spans()
        # What this end has stated of others, which are not settled.
        self.stated: dict[int, object] = {}
        # When (ns) it stated those.
        self.stated_at: dict[int, int] = {}
        # Unsettled deliveries of links that limit what may be said of them.
        self.held: dict[int, LinkEnd] = {}
        # Offsets in the peer's stream behind the transfers that aborted a delivery.
        self.aborted: dict[int, int] = {}
        # A delivery that was resumed is among them.
        self.resuming: bool = False

    def add(self, delivery_id: i64, end: i64) -> None:
        """The first transfer of a delivery is received; it ends at `end`. Its id is none up to the newest."""
        if self.numbers:
            delivery_id = nearest(delivery_id, self.newest)
        self.newest = delivery_id
        self.numbers.append(delivery_id)
        self.ends.append(end)
        self.unnumbered = 0
        if len(self.numbers) > MAX_UNPROVED:
            del self.numbers[: MAX_UNPROVED // 2]
            del self.ends[: MAX_UNPROVED // 2]

    def last(self) -> i64:
        """The id of the newest delivery, UNKNOWN if there was none."""
        return self.newest

    def number(self, delivery_id: i64) -> i64:
        """The count that a delivery-id of the peer's stands for, UNKNOWN if it has not sent that many."""
        if not self.numbers:
            return UNKNOWN
        number = nearest(delivery_id, self.newest)
        if number > self.newest:
            return UNKNOWN
        return number

    def named_by(self, body: Disposition) -> tuple[i64, i64]:
        """First and last of the deliveries that a disposition names, as counts; UNKNOWN if it is none."""
        if body.first is None:
            return (UNKNOWN, UNKNOWN)
        first = self.number(body.first)
        return (first, first if body.last is None else self.number(body.last))

    def end_of(self, delivery_id: i64) -> i64:
        """Where the first transfer of a delivery ended, -1 if it is not known."""
        if not self.numbers:
            return -1
        number = int(nearest(delivery_id, self.newest))
        place = bisect_left(self.numbers, number)
        if place < len(self.numbers) and self.numbers[place] == number:
            return self.ends[place]
        return -1

    def hold(self, link: LinkEnd, transfer: Transfer, new: bool) -> None:
        """A transfer is received on a link whose deliveries are watched; new: with a delivery-id that is.

        One that is resumed is not: its outcome may have been settled long since, all but in word.
        """
        receipt = link.receipt
        if not receipt.receiving:
            receipt.holding = UNKNOWN
            if new and not transfer.resume:
                receipt.holding = self.last()
        number = int(receipt.holding)
        if number == UNKNOWN:
            return
        if transfer.settled or transfer.aborted:
            self.held.pop(number, None)
        elif not receipt.receiving and len(self.held) < MAX_STATED:
            own = link.attach
            if transfer.rcv_settle_mode != 0 or own is None or own.rcv_settle_mode != 1:
                self.held[number] = link

    def let_go(self, link: LinkEnd) -> None:
        """A link is over, or attached again: what was agreed of its deliveries before does not hold now."""
        for number in [number for number, other in self.held.items() if other is link]:
            del self.held[number]

    def release(self, body: Disposition) -> None:
        """A disposition settles deliveries."""
        if body.first is None:
            return
        first, last = self.named_by(body)
        for number in among(self.held, first, last):
            del self.held[number]

    def send_disposition(self, body: Disposition, time: i64) -> None:
        """This end sends a disposition of deliveries that it has received, at `time` (ns)."""
        first, last = self.named_by(body)
        if first == UNKNOWN:
            return
        stated = self.stated
        if body.settled:
            if self.held:
                self.release(body)
            if last >= first:
                self.settled.add(int(first), int(last))
            if stated:
                for number in among(stated, first, last):
                    del stated[number]
                    del self.stated_at[number]
        elif body.state is not None and 0 <= last - first < MAX_STATED:
            at = first
            while at <= last and len(stated) < MAX_STATED:
                stated[int(at)] = body.state
                self.stated_at[int(at)] = int(time)
                at += 1

    def dump(self, links: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, links by number."""
        return (
            (int(self.newest), tuple(self.numbers), tuple(self.ends), int(self.unnumbered)),
            (self.settled.dump(), self.resuming),
            tuple(
                (number, dump_value(state), self.stated_at[number]) for number, state in self.stated.items()
            ),
            tuple((number, links.number(link)) for number, link in self.held.items()),
            tuple(self.aborted.items()),
        )

    @staticmethod
    def load(state: tuple[Any, ...], links: list[LinkEnd]) -> "ReceivedDeliveries":
        """The object of what `dump` returned."""
        received = ReceivedDeliveries()
        ids, settled, stated, held, aborted = state
        received.newest, numbers, ends, received.unnumbered = ids
        received.numbers = list(numbers)
        received.ends = list(ends)
        received.settled = Spans.load(settled[0])
        received.resuming = settled[1]
        received.stated = {number: load_value(outcome) for number, outcome, _ in stated}
        received.stated_at = {number: time for number, _, time in stated}
        received.held = {number: links[at] for number, at in held}
        received.aborted = dict(aborted)
        return received


# mypyc: null objects, of sessions without deliveries. Nothing writes to them.
NONE_SENT: Final = SentDeliveries()
NONE_RECEIVED: Final = ReceivedDeliveries()
