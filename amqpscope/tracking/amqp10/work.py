"""Work under transactions: deliveries that were posted, acquired or retired under one, and requested credit.

A delivery is kept here while it belongs to a transaction, because its sender says so (posted, or acquired by
the controller) or its receiver does (retired): until it is settled, its link is detached, or its session
ends.

Source: transactions.xml, "txn-work".
"""

from typing import Any

from amqpscope.limits import MAX_WORK
from amqpscope.tracking.amqp10.control import ControlRequest, Transaction
from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.object_ids import ObjectIds
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.wire import i64

__all__ = ["Asked", "Work", "Works", "among_raw"]


class Work:
    """A delivery under a transaction.

    link: its name. packet: of the frame that brought it under one. transaction: by its sender's word;
    complete, settled: so too. odd: a later transfer of it named another one, or only that did. retired: the
    transaction under which its receiver gave it an outcome. outcome: that it stated last. stated_end: of that
    disposition.
    """

    def __init__(self, link: str, packet: i64, transaction: Transaction | None) -> None:
        self.link: str = link
        self.packet: i64 = packet
        self.transaction: Transaction | None = transaction
        self.complete: bool = False
        self.settled: bool = False
        self.odd: bool = False
        self.retired: Transaction | None = None
        self.outcome: object = None
        self.stated_end: i64 = UNKNOWN

    def dump(self, transactions: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, its transactions by number."""
        return (
            (self.link, int(self.packet), int(self.stated_end)),
            None if self.transaction is None else transactions.number(self.transaction),
            None if self.retired is None else transactions.number(self.retired),
            (self.complete, self.settled, self.odd),
            dump_value(self.outcome),
        )

    @staticmethod
    def load(state: tuple[Any, ...], transactions: list[Transaction]) -> "Work":
        """The object of what `dump` returned, under some of these transactions."""
        about, transaction, retired, flags, outcome = state
        work = Work(about[0], about[1], None if transaction is None else transactions[transaction])
        work.stated_end = about[2]
        work.retired = None if retired is None else transactions[retired]
        work.complete, work.settled, work.odd = flags
        work.outcome = load_value(outcome)
        return work


class Works:
    """The deliveries of a connection that are under transactions.

    deliveries: by the peer that sends them and its channel, then by their raw delivery-ids.
    """

    def __init__(self) -> None:
        self.deliveries: dict[tuple[str, int], dict[int, Work]] = {}
        self.size: i64 = 0

    def of(self, sender: str, channel: i64, number: i64) -> Work | None:
        """A delivery, by its raw delivery-id."""
        deliveries = self.deliveries.get((sender, int(channel)))
        return None if deliveries is None else deliveries.get(int(number))

    def incomplete(self, transaction: Transaction) -> Work | None:
        """A delivery that the controller posts under its transaction and has not finished."""
        for (sender, _), deliveries in self.deliveries.items():
            if sender == transaction.control.controller:
                for work in deliveries.values():
                    if work.transaction is transaction and not work.complete:
                        return work
        return None

    def among(self, key: tuple[str, int], first: i64, last: i64) -> list[int]:
        """The raw delivery-ids of those of a peer's channel from `first` to `last`, in serial order."""
        return among_raw(self.deliveries.get(key), first, last)

    def add(self, key: tuple[str, int], identity: int, link: str, packet: i64) -> Work | None:
        """One more is under a transaction. None: there are too many."""
        if self.size >= MAX_WORK:
            return None
        work = Work(link, packet, None)
        self.deliveries.setdefault(key, {})[identity] = work
        self.size += 1
        return work

    def drop(self, key: tuple[str, int], identity: int) -> None:
        """It is over."""
        deliveries = self.deliveries.get(key)
        if deliveries is not None and deliveries.pop(identity, None) is not None:
            self.size -= 1

    def leave_link(self, key: tuple[str, int], link: str) -> None:
        """A link is detached: of its deliveries nothing follows any more. Of some the link is not known."""
        deliveries = self.deliveries.get(key)
        if deliveries:
            for number in [number for number, work in deliveries.items() if work.link in (link, "")]:
                self.drop(key, number)

    def leave_session(self, key: tuple[str, int]) -> None:
        """A session is over for whoever sends on it, or begun anew."""
        deliveries = self.deliveries.pop(key, None)
        if deliveries is not None:
            self.size -= len(deliveries)

    def dump(self, transactions: ObjectIds) -> tuple[object, ...]:
        """All of them as plain values, their transactions by number."""
        return tuple(
            (key, tuple((number, one.dump(transactions)) for number, one in some.items()))
            for key, some in self.deliveries.items()
        )

    @staticmethod
    def load(state: tuple[Any, ...], transactions: list[Transaction]) -> "Works":
        """The object of what `dump` returned, under some of these transactions."""
        works = Works()
        for (sender, channel), some in state:
            works.deliveries[sender, channel] = {number: Work.load(one, transactions) for number, one in some}
            works.size += len(some)
        return works


class Asked:
    """A receiving link on which a controller asked for messages under transactions.

    transactions, ends: those that it named, and the ends of the flows that did. limit: the delivery-count
    that its credit ends at, as its newest flow has it. odd: since then a delivery came outside of any.
    """

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.ends: list[int] = []
        self.limit: i64 = UNKNOWN
        self.odd: bool = False

    def dump(self, transactions: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, its transactions by number."""
        named = tuple(transactions.number(one) for one in self.transactions)
        return (named, tuple(self.ends), int(self.limit), self.odd)

    @staticmethod
    def load(state: tuple[Any, ...], transactions: list[Transaction]) -> "Asked":
        """The object of what `dump` returned, under some of these transactions."""
        named, ends, limit, odd = state
        asked = Asked()
        asked.transactions = [transactions[at] for at in named]
        asked.ends = list(ends)
        asked.limit = limit
        asked.odd = odd
        return asked


def among_raw(
    numbers: dict[int, Work] | dict[int, ControlRequest] | None, first: i64, last: i64
) -> list[int]:
    """Those raw delivery-ids that lie from `first` to `last`, in serial order."""
    if not numbers:
        return []
    if first == last:
        return [int(first)] if int(first) in numbers else []
    size = (last - first) & 0xFFFFFFFF
    return [number for number in numbers if (number - first) & 0xFFFFFFFF <= size]
