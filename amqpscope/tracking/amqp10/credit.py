"""The credit of a link: what its sending end counts, and what its receiving end counts.

The sending end decides delivery-count, the receiving end link-credit, and together they give the
delivery-limit, the first delivery-count that is beyond the credit:

    delivery-limit = delivery-count of the receiver's flow + its link-credit

delivery-count and delivery-limit are kept as counts that never wrap (`tracking.serial`), the limit
for every prefix of the receiver's stream that the sender may have known (`tracking.knowledge`).
A delivery counts when its first transfer is sent: a sender that starts one has used the credit.

Sources: transport.xml, "Flow Control".
"""

from typing import Any, Final

from amqpscope.tracking.knowledge import NO_SERIAL, UNBASED, PeerLimits
from amqpscope.tracking.serial import nearest
from dissectors.amqp10.performatives import Flow
from dissectors.wire import i64

__all__ = ["NO_CREDIT", "NO_RECEIPT", "UNKNOWN", "ReceiverCount", "SenderCredit"]

# mypyc: sentinel, an offset, a count, a channel or a handle that is not known.
UNKNOWN: Final = -1


class SenderCredit:
    """The sending end's delivery-count, and the limits that the receiving end has set."""

    def __init__(self) -> None:
        # The delivery-count: that of the attach, and one more for each delivery that was begun.
        self.count: i64 = 0
        # The delivery-limit, for each prefix of the receiver's stream that the sender may have known.
        self.limits: PeerLimits = PeerLimits()
        # The sender has used credit, or given some back: it has read that credit was granted.
        self.read: bool = False
        # The receiver's newest flow has drain set.
        self.drain: bool = False
        # Offset in the receiver's stream behind its newest flow with drain.
        self.drain_end: i64 = UNKNOWN
        # The largest limit that a flow with drain has set: up to it the sender may advance its count.
        self.drain_limit: i64 = UNKNOWN
        # Deliveries that were aborted or resumed: the specification does not say whether they count.
        self.uncounted: i64 = 0
        # Deliveries begun since the attach that were not resumed.
        self.anew: i64 = 0
        # Transfers that were not the first of their delivery.
        self.continued: i64 = 0
        # How far a wrong count that the sender's newest flow stated is from its own count.
        self.shift: i64 = 0
        # The limit that the newest flow without delivery-count would set, counted from the count then.
        self.bare_limit: i64 = UNKNOWN
        # The delivery-count that the sender's newest flow stated.
        self.stated_count: i64 = 0
        # That count and the credit of the same flow, if they make the limit that was granted; else UNKNOWN.
        self.stated_limit: i64 = UNKNOWN
        # Offset in the receiver's stream behind the flow that had granted that limit.
        self.stated_end: i64 = UNKNOWN
        # How many messages the sender's newest flow stated to be available.
        self.offered: i64 = UNKNOWN

    def forget(self) -> None:
        """The link is attached again: credit belongs to one attachment."""
        self.limits = PeerLimits()
        self.bare_limit = UNKNOWN
        self.stated_limit = UNKNOWN
        self.read = False
        self.drain = False
        self.drain_end = UNKNOWN
        self.drain_limit = UNKNOWN

    def attach(self, initial_count: int | None) -> None:
        """The sender attaches the link, with this initial-delivery-count."""
        self.uncounted = 0
        self.continued = 0
        self.anew = 0
        self.shift = 0
        self.offered = UNKNOWN
        if initial_count is not None:
            self.count = initial_count

    def rebase(self, initial_count: i64) -> None:
        """The sender has attached the link: now it is known what limits set before count from."""
        self.limits.rebase(initial_count)
        if self.drain_limit < UNBASED // 2:
            self.drain_limit = self.limits.largest()

    def most(self) -> i64:
        """The largest delivery-count that the sender may state now."""
        if self.drain_end != UNKNOWN and self.drain_limit > self.count:
            return self.drain_limit
        return self.count

    def least(self, under_way: bool) -> i64:
        """The lowest delivery-count that the sender may state now. under_way: a delivery is not complete."""
        # The specification does not say whether a delivery counts from its start or from its end.
        return self.count - self.uncounted - (1 if under_way else 0)

    def send_flow(self, flow: Flow, whole: bool, under_way: bool) -> None:
        """The sender sends a flow. It may raise its delivery-count by one, to drain the link.

        whole: all its deliveries were seen, so that a count above the most it may state is wrong. under_way:
        a delivery is not complete.
        """
        if flow.available is not None:
            self.offered = flow.available
        if flow.delivery_count is not None:
            count = nearest(flow.delivery_count, self.count)
            self.shift = 0
            if count > self.count and (count <= self.most() or not whole):
                self.count = count
            elif count > self.count or count < self.least(under_way):
                self.shift = count - self.count
            self.stated_limit = UNKNOWN
            if flow.link_credit is not None and len(self.limits) == 1:
                # It can have known of one grant only: this is counted from that.
                if count + flow.link_credit == self.limits.bounds[0]:
                    self.stated_count = count
                    self.stated_limit = count + flow.link_credit
                    self.stated_end = self.limits.ends[0]

    def receive_flow(self, flow: Flow, initial_count: i64, attached: bool, end: i64, packet: i64) -> None:
        """The sender receives a flow of the receiver. attached: it has a handle for the link."""
        if flow.link_credit is not None and not attached:
            # Nothing is counted yet: the own attach says from where.
            serial: i64 = NO_SERIAL if flow.delivery_count is None else flow.delivery_count
            self.bare_limit = UNKNOWN
            self.limits.set_early(end, serial, flow.link_credit, packet)
            if flow.drain:
                self.drain_limit = UNBASED
        elif flow.link_credit is not None:
            base = initial_count
            self.bare_limit = UNKNOWN
            if flow.delivery_count is None:
                self.bare_limit = self.count + flow.link_credit
            else:
                base = nearest(flow.delivery_count, self.count)
            bound = base + flow.link_credit
            if base > self.count and len(self.limits) > 0:
                # A wrong flow need not be obeyed.
                bound = max(bound, self.limits.largest())
            self.limits.set(end, bound, packet)
            if flow.drain and (self.drain_end == UNKNOWN or base + flow.link_credit > self.drain_limit):
                self.drain_limit = base + flow.link_credit
        self.drain = flow.drain is True
        if self.drain:
            self.drain_end = end

    def may_use(self, credit: i64) -> bool:
        """Whether some grant that the sender can have read allows so many deliveries more."""
        at: i64 = 0
        size: i64 = len(self.limits)
        while at < size:
            if self.count + credit <= self.limits.bounds[at]:
                return True
            at += 1
        return False

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (int(self.count), self.limits.dump(), self.read, int(self.offered)),
            (self.drain, int(self.drain_end), int(self.drain_limit)),
            (int(self.uncounted), int(self.anew), int(self.continued), int(self.bare_limit)),
            (int(self.stated_count), int(self.stated_limit), int(self.stated_end), int(self.shift)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SenderCredit":
        """The object of what `dump` returned."""
        credit = SenderCredit()
        counted, drain, deliveries, stated = state
        credit.count, limits, credit.read, credit.offered = counted
        credit.limits = PeerLimits.load(limits)
        credit.drain, credit.drain_end, credit.drain_limit = drain
        credit.uncounted, credit.anew, credit.continued, credit.bare_limit = deliveries
        credit.stated_count, credit.stated_limit, credit.stated_end, credit.shift = stated
        return credit


class ReceiverCount:
    """The receiving end's count of deliveries, and the delivery that it is receiving."""

    def __init__(self) -> None:
        # The most that the receiver may have counted, of deliveries received at `could`.
        self.count: i64 = 0
        # A delivery has begun and is not complete.
        self.receiving: bool = False
        # The newest delivery's number, UNKNOWN if it has none of its own.
        self.current: i64 = UNKNOWN
        # The most messages that the sender has stated to be available.
        self.available: i64 = UNKNOWN
        # The own settle mode or the source's outcomes limit what the receiver may say of deliveries.
        self.watched: bool = False
        # The number of the delivery being received, if it is among those whose outcomes are watched.
        self.holding: i64 = UNKNOWN

    def receive_flow(self, flow: Flow) -> None:
        """The receiver receives a flow of the sender."""
        if flow.available is not None and flow.available > self.available:
            self.available = flow.available
        if flow.delivery_count is not None:
            # A sender may count a delivery when it is complete, or not at all when it is aborted: then it
            # says less than what its receiver may have counted. One that counts it when it begins says so in
            # the middle, and its receiver may count it once more at its end.
            count = nearest(flow.delivery_count, self.count)
            if self.receiving:
                count += 1
            if count > self.count:
                self.count = count

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values; `watched` follows from the attaches."""
        return (int(self.count), self.receiving, int(self.current), int(self.available), int(self.holding))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ReceiverCount":
        """The object of what `dump` returned."""
        count = ReceiverCount()
        count.count, count.receiving, count.current, count.available, count.holding = state
        return count


# mypyc: null objects, of receiving and of sending ends. Nothing writes to them.
NO_CREDIT: Final = SenderCredit()
NO_RECEIPT: Final = ReceiverCount()
