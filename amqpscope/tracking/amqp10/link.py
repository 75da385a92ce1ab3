"""One end of a link: what it attached, what it knows of the other end, and its flow control.

Theory of operation. Each end names the link by a handle of its own; the two are joined by the link's
name and opposite roles. The sending end decides delivery-count, the receiving end link-credit, and
together they give the delivery-limit, the first delivery-count that is beyond the credit:

    delivery-limit = delivery-count of the receiver's flow + its link-credit

delivery-count and delivery-limit are kept as counts that never wrap (`tracking.serial`), the limit
for every prefix of the receiver's stream that the sender may have known (`tracking.knowledge`).
A delivery counts when its first transfer is sent: a sender that starts one has used the credit.

Sources: transport.xml, "Links", "Flow Control", "Transferring a Message".
"""

from typing import Any, Final

from amqpscope.limits import MAX_STATED
from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.states import LINK, LINK_REPAIR, advance
from amqpscope.tracking.knowledge import NO_SERIAL, UNBASED, Limits
from amqpscope.tracking.object_ids import ObjectIds
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.messaging import Source
from dissectors.amqp10.performatives import Attach, Detach, Flow, Transfer
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.transactions import Coordinator
from dissectors.wire import i64

__all__ = ["Delivery", "LinkEnd"]

UNKNOWN: Final = -1


class Delivery:
    """One delivery, as both ends of its link see it.

    number: its delivery-id as a count, UNKNOWN if its first transfer was not seen. packet: of its first
    transfer; first_state: in that, if it is resumed. settled, state: by the sending end; settled_by_receiver,
    receiver_state: by the other.
    """

    def __init__(self, link: "LinkEnd", number: i64, tag: bytes | None, packet: i64) -> None:
        self.link: LinkEnd = link
        self.number: i64 = number
        self.tag: bytes | None = tag
        self.packet: i64 = packet
        self.message_format: int | None = None
        # The id of its message, if it is kept what becomes of that.
        self.identity: bytes = b""
        self.settled: bool = False
        self.settled_by_receiver: bool = False
        self.complete: bool = False
        self.aborted: bool = False
        self.resumed: bool = False
        self.octets: i64 = 0
        # What its message asks of the receiver, `dissectors.amqp10.message.Message.traits`.
        self.traits: i64 = 0
        self.rcv_settle_mode: int | None = None
        self.first_state: object = None
        self.state: object = None
        self.receiver_state: object = None

    def dump(self, links: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, its link by number."""
        return (
            links.number(self.link),
            (int(self.number), self.tag, int(self.packet), self.message_format),
            (int(self.octets), int(self.traits), self.identity),
            (self.settled, self.settled_by_receiver, self.complete, self.aborted, self.resumed),
            self.rcv_settle_mode,
            dump_value(self.first_state),
            dump_value(self.state),
            dump_value(self.receiver_state),
        )

    @staticmethod
    def load(state: tuple[Any, ...], links: "list[LinkEnd]") -> "Delivery":
        """What `dump` gave, as an object again, of one of these links."""
        link, about, content, flags, rcv_settle_mode, first_state, sender_state, receiver_state = state
        number, tag, packet, message_format = about
        delivery = Delivery(links[link], number, tag, packet)
        delivery.message_format = message_format
        delivery.octets, delivery.traits, delivery.identity = content
        settled, settled_by_receiver, complete, aborted, resumed = flags
        delivery.settled = settled
        delivery.settled_by_receiver = settled_by_receiver
        delivery.complete = complete
        delivery.aborted = aborted
        delivery.resumed = resumed
        delivery.rcv_settle_mode = rcv_settle_mode
        delivery.first_state = load_value(first_state)
        delivery.state = load_value(sender_state)
        delivery.receiver_state = load_value(receiver_state)
        return delivery


# Shared by all that have none, so that a link without deliveries is small: nobody writes to these.
NOTHING: Final[dict[bytes, int]] = {}
NONE: Final[set[bytes]] = set()
NO_TAGS: Final[dict[bytes, Delivery]] = {}


class LinkEnd:
    """One end of a link, in the session of the endpoint that it belongs to.

    sender: this end sends. whole: everything since its attach was captured, so that what was not seen
    was not sent. attach: its own; peer_attach: the other end's, once received at `could`. asked: time (ns)
    of the other end's last attach, detach or request to drain.
    """

    def __init__(self, name: str, sender: bool, handle: i64) -> None:
        self.name: str = name
        self.sender: bool = sender
        self.state: str = "DETACHED"
        self.whole: bool = True
        self.handle: i64 = handle
        self.attach: Attach | None = None
        self.attach_packet: i64 = 0
        self.attaches: i64 = 0
        self.coordinator: bool = False
        # This end sends, and says that it applies filters.
        self.filters: bool = False
        self.peer_attach: Attach | None = None
        self.peer_attach_end: i64 = UNKNOWN
        self.peer_attaches: i64 = 0
        self.peer_handle: i64 = UNKNOWN
        # What each end lists as unsettled in its attach, by tag; None if its map is null.
        self.listed: dict[bytes, object] | None = None
        self.peer_listed: dict[bytes, object] | None = None
        # A flow of the other end's that asks for one in return: its end, time (ns) and packet.
        self.echo_end: i64 = UNKNOWN
        self.echo_time: i64 = 0
        self.echo_packet: i64 = 0
        # How the last detach of each end was: closed, and with an error.
        self.closed: bool = False
        self.peer_closed: bool = False
        self.peer_detach_end: i64 = UNKNOWN
        # Its own detach that did not close, though it could know that the other end's did.
        self.half_closed: FrameRef | None = None
        # An attach in the same role as the other end's, while that one's waited for its answer.
        self.misanswered: FrameRef | None = None
        # Its attach answers the other end's; how many frames the endpoint had sent by then; whether it was
        # told that no detach follows.
        self.answers: bool = False
        # The handle that it gave up last.
        self.freed_handle: i64 = UNKNOWN
        self.attach_frame: i64 = UNKNOWN
        self.refusal_told: bool = False
        self.asked: i64 = 0
        self.failed: bool = False
        self.peer_failed: bool = False
        # The sending end's flow control.
        self.initial_count: i64 = 0
        self.count: i64 = 0
        self.limits: Limits = Limits()
        # It has used credit, or given some back: it has read that it was granted.
        self.credit_read: bool = False
        self.drain: bool = False
        self.drain_end: i64 = UNKNOWN
        # The largest limit that a flow with drain has set: up to it the sender may advance its count.
        self.drain_limit: i64 = UNKNOWN
        # Deliveries that were aborted or resumed: whether they count nobody says.
        self.uncounted: i64 = 0
        # Transfers that were not the first of their delivery. Up to where credit would reach that came
        # without a delivery-count, if it counted from there. Told by the last flow: the count, what that
        # and the credit made (if it was right), and the end of the flow that had granted it.
        self.continued: i64 = 0
        self.bare_limit: i64 = UNKNOWN
        self.told_count: i64 = 0
        self.told_total: i64 = UNKNOWN
        self.told_end: i64 = UNKNOWN
        # The delivery under way, the time (ns) of its last transfer, those whose tags may not be used again,
        # and the tags that were resumed.
        self.open: Delivery | None = None
        # Of its transfers nobody knows which belong to one message: their id or tag changed on the way.
        self.mixed: bool = False
        self.open_time: i64 = 0
        self.tags: dict[bytes, Delivery] = NO_TAGS
        self.resumed: set[bytes] = NONE
        # Deliveries begun since its attach that it did not resume.
        self.anew: i64 = 0
        # Of deliveries from before it attached again: their octets, if they were complete.
        self.former: dict[bytes, int] = NOTHING
        # The receiving end's: the most that it may have counted, of deliveries received at `could`, and the
        # newest's number.
        self.received: i64 = 0
        self.receiving: bool = False
        self.current: i64 = UNKNOWN
        # The most messages that the sending end has told to be available; as sender: what it told last.
        self.available: i64 = UNKNOWN
        self.offered: i64 = UNKNOWN
        # As receiver: what it says of deliveries is limited, by its own settle mode or the source's outcomes.
        self.watched: bool = False
        # As receiver: what it lists as unsettled, and the sender's attach, which ends at `orphans_end`, not.
        self.orphans: set[bytes] = NONE
        self.orphans_end: i64 = UNKNOWN
        self.holding: i64 = UNKNOWN

    def send_attach(self, attach: Attach, packet: i64) -> None:
        """This end sends attach."""
        self.attaches += 1
        self.half_closed = None
        if self.sender:
            self.former = NOTHING
            if attach.unsettled is not None and self.tags:
                self.former = {tag: int(one.octets) for tag, one in self.tags.items() if one.complete}
        self.answers = self.state == "ATTACH_RCVD"
        self.refusal_told = False
        if self.peer_attaches < self.attaches:
            self.forget_credit()
        self.tags = NO_TAGS
        self.resumed = NONE
        self.mixed = False
        self.uncounted = 0
        self.continued = 0
        self.anew = 0
        self.offered = UNKNOWN
        self.state = advance(LINK, LINK_REPAIR, self.state, "S:ATTACH")
        self.attach = attach
        self.listed = _listed(attach)
        self.attach_packet = packet
        self.coordinator = isinstance(attach.target, Coordinator)
        self.filters = self.sender and _filters(attach)
        self.closed = False
        self.failed = False
        self.watch()
        self.compare()
        if self.sender and attach.initial_delivery_count is not None:
            self.initial_count = attach.initial_delivery_count
            self.count = self.initial_count
        if self.sender:
            self.limits.rebase(self.initial_count)
            if self.drain_limit < UNBASED // 2:
                self.drain_limit = self.limits.largest()

    def receive_attach(self, attach: Attach, end: i64) -> None:
        """This end received the other end's attach."""
        following = self.peer_attaches + 1
        if self.attaches == following or (self.attaches == following - 1 and self.handle == UNKNOWN):
            self.forget_credit()
        else:
            # Attached again by one end before the other one was heard: which flow belongs to which attachment
            # cannot be told.
            self.whole = False
        self.receiving = False
        self.state = advance(LINK, LINK_REPAIR, self.state, "R:ATTACH")
        self.peer_attach = attach
        self.peer_listed = _listed(attach)
        self.peer_attach_end = end
        self.peer_attaches += 1
        self.peer_closed = False
        self.peer_failed = False
        self.watch()
        self.compare()
        self.available = UNKNOWN
        if not self.sender and attach.initial_delivery_count is not None:
            self.initial_count = attach.initial_delivery_count
            self.received = self.initial_count

    def watch(self) -> None:
        """Whether what this receiver says of deliveries has to be looked at."""
        if self.sender:
            return
        own = self.attach
        theirs = self.peer_attach
        self.watched = own is not None and own.rcv_settle_mode == 1
        if theirs is not None and isinstance(theirs.source, Source) and theirs.source.outcomes:
            self.watched = True

    def compare(self) -> None:
        """What this receiver lists as unsettled, and the sender, having attached as often, does not."""
        if self.sender or self.attaches != self.peer_attaches:
            return
        self.orphans = NONE
        own = self.listed
        theirs = self.peer_listed
        if not own or theirs is None or self.peer_attach is None or self.peer_attach.incomplete_unsettled:
            return
        orphans = {tag for tag in own if tag not in theirs}
        if orphans:
            self.orphans = orphans
            self.orphans_end = self.peer_attach_end

    def forget_credit(self) -> None:
        """Credit belongs to one attachment."""
        self.limits = Limits()
        self.bare_limit = UNKNOWN
        self.told_total = UNKNOWN
        self.credit_read = False
        self.drain = False
        self.drain_end = UNKNOWN
        self.drain_limit = UNKNOWN

    def send_detach(self, detach: Detach, spot: FrameRef) -> None:
        """This end sends detach, which stands at `spot`."""
        if self.state == "DETACH_RCVD" and self.peer_closed and detach.closed is not True:
            self.half_closed = spot
        self.state = advance(LINK, LINK_REPAIR, self.state, "S:DETACH")
        self.closed = detach.closed is True
        self.failed = detach.error is not None
        self.open = None

    def receive_detach(self, detach: Detach, end: i64) -> None:
        """This end received the other end's detach, which ends at `end` of the peer's stream."""
        self.peer_detach_end = end
        self.state = advance(LINK, LINK_REPAIR, self.state, "R:DETACH")
        self.peer_closed = detach.closed is True
        self.peer_failed = detach.error is not None
        self.receiving = False

    def send_flow(self, flow: Flow) -> None:
        """This end sends a flow for the link. A sender may raise its delivery-count by one (drain)."""
        self.echo_end = UNKNOWN
        if self.sender and flow.available is not None:
            self.offered = flow.available
        if self.sender and flow.delivery_count is not None:
            count = nearest(flow.delivery_count, self.count)
            if count > self.count:
                self.count = count
            self.told_total = UNKNOWN
            if flow.link_credit is not None and len(self.limits) == 1:
                # It can have known of one grant only: this is counted from that.
                if count + flow.link_credit == self.limits.bounds[0]:
                    self.told_count = count
                    self.told_total = count + flow.link_credit
                    self.told_end = self.limits.ends[0]

    def may_use(self, credit: i64) -> bool:
        """Whether some grant that this end can have read allows so many deliveries more."""
        at: i64 = 0
        size: i64 = len(self.limits)
        while at < size:
            if self.count + credit <= self.limits.bounds[at]:
                return True
            at += 1
        return False

    def is_drained_by(self, flow: Flow) -> bool:
        """Whether this end lawfully gives back credit with a flow of its own that has drain."""
        if not self.sender or not self.whole or flow.delivery_count is None or self.drain_end == UNKNOWN:
            return False
        credit = nearest(flow.delivery_count, self.count) - self.count
        return credit > 0 and self.may_use(credit)

    def receive_flow(self, flow: Flow, end: i64, packet: i64) -> None:
        """This end received the other end's flow for the link."""
        if flow.available is not None and flow.available > self.available:
            self.available = flow.available
        if self.sender:
            if flow.link_credit is not None and self.handle == UNKNOWN:
                # Nothing is counted yet: the own attach says from where.
                serial: i64 = NO_SERIAL if flow.delivery_count is None else flow.delivery_count
                self.bare_limit = UNKNOWN
                self.limits.set_early(end, serial, flow.link_credit, packet)
                if flow.drain:
                    self.drain_limit = UNBASED
            elif flow.link_credit is not None:
                base: i64 = self.initial_count
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
        elif flow.delivery_count is not None:
            # A sender may count a delivery when it is complete, or not at all when it is aborted: then it
            # says less than what its receiver may have counted. One that counts it when it begins says so in
            # the middle, and its receiver may count it once more at its end.
            count = nearest(flow.delivery_count, self.received)
            if self.receiving:
                count += 1
            if count > self.received:
                self.received = count

    def send_transfer(self, transfer: Transfer, number: i64, packet: i64, octets: i64) -> Delivery:
        """This end, the sender, sends a transfer; the delivery it belongs to."""
        delivery = self.open
        if delivery is None:
            if self.whole:
                self.mixed = False
            delivery = Delivery(self, number, transfer.delivery_tag, packet)
            delivery.message_format = transfer.message_format
            delivery.rcv_settle_mode = transfer.rcv_settle_mode
            delivery.resumed = transfer.resume is True
            if delivery.resumed or transfer.aborted:
                self.uncounted += 1
            if delivery.resumed:
                delivery.first_state = transfer.state
            else:
                self.anew += 1
            self.count += 1
            if transfer.delivery_tag is not None:
                if self.tags is NO_TAGS:
                    self.tags = {}
                self.tags[transfer.delivery_tag] = delivery
                again = delivery.resumed or (self.listed and transfer.delivery_tag in self.listed)
                if again and len(self.resumed) < MAX_STATED:
                    if self.resumed is NONE:
                        self.resumed = set()
                    self.resumed.add(transfer.delivery_tag)
        else:
            self.continued += 1
            if transfer.aborted and not delivery.resumed:
                self.uncounted += 1
        delivery.octets += octets
        if transfer.settled:
            delivery.settled = True
        if transfer.state is not None:
            delivery.state = transfer.state
        if transfer.aborted:
            delivery.aborted = True
            delivery.settled = True
            self.open = None
        elif transfer.more:
            self.open = delivery
        else:
            delivery.complete = True
            self.open = None
        if delivery.settled and self.open is None:
            self.forget(delivery)
        return delivery

    def differences(self, transfer: Transfer) -> i64:
        """In how many ways a transfer differs from the delivery under way: by its id, by its tag."""
        delivery = self.open
        if delivery is None:
            return 0
        value = transfer.delivery_id
        tag = transfer.delivery_tag
        count: i64 = 0
        if value is not None and delivery.number != UNKNOWN and value != raw(delivery.number):
            count += 1
        if tag is not None and delivery.tag is not None and tag != delivery.tag:
            count += 1
        return count

    def mix(self, transfer: Transfer) -> None:
        """A transfer goes on with the delivery under way: perhaps it is another one's."""
        differences = self.differences(transfer)
        if differences > 0:
            self.mixed = True
        if differences > 1:
            # Two deliveries interleave: which one a transfer goes on with is not known any more.
            self.whole = False

    def forget(self, delivery: Delivery) -> None:
        """Both ends have settled it, or it was sent settled: its tag is free."""
        tag = delivery.tag
        if tag is not None and self.tags.get(tag) is delivery:
            del self.tags[tag]

    # Between processes

    def dump(self, deliveries: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, its deliveries by number."""
        return (
            (self.name, self.sender, self.state, self.whole, int(self.handle)),
            (dump_value(self.attach), int(self.attach_packet), int(self.attaches)),
            (
                dump_value(self.peer_attach),
                int(self.peer_attach_end),
                int(self.peer_attaches),
                int(self.peer_handle),
            ),
            (self.closed, self.peer_closed, int(self.peer_detach_end), int(self.asked)),
            (self.failed, self.peer_failed, int(self.echo_end), int(self.echo_time), int(self.echo_packet)),
            None if self.half_closed is None else self.half_closed.dump(),
            None if self.misanswered is None else self.misanswered.dump(),
            (self.answers, int(self.attach_frame), self.refusal_told, int(self.freed_handle), self.mixed),
            (int(self.continued), int(self.bare_limit), int(self.available), int(self.offered)),
            (int(self.told_count), int(self.told_total), int(self.told_end)),
            (int(self.initial_count), int(self.count), self.limits.dump()),
            (self.drain, int(self.drain_end), int(self.drain_limit), int(self.uncounted), self.credit_read),
            None if self.open is None else deliveries.number(self.open),
            tuple((tag, deliveries.number(delivery)) for tag, delivery in self.tags.items()),
            (tuple(sorted(self.resumed)), tuple(self.former.items()), int(self.anew)),
            (int(self.received), self.receiving, int(self.holding), int(self.current), int(self.open_time)),
            (tuple(sorted(self.orphans)), int(self.orphans_end)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "LinkEnd":
        """What `dump` gave, as an object again, as yet without its deliveries."""
        about, attach, peer_attach, ends, failed, half_closed, misanswered, answers = state[:8]
        counted, told, count, drain, _, _, resumed, received, orphans = state[8:]
        name, sender, _, _, handle = about
        link = LinkEnd(name, sender, handle)
        _, _, link.state, link.whole, _ = about
        link.attach = _attach(attach[0])
        link.listed = None if link.attach is None else _listed(link.attach)
        link.attach_packet = attach[1]
        link.attaches = attach[2]
        link.coordinator = link.attach is not None and isinstance(link.attach.target, Coordinator)
        link.filters = link.sender and link.attach is not None and _filters(link.attach)
        link.peer_attach = _attach(peer_attach[0])
        link.peer_listed = None if link.peer_attach is None else _listed(link.peer_attach)
        link.peer_attach_end = peer_attach[1]
        link.peer_attaches = peer_attach[2]
        link.peer_handle = peer_attach[3]
        link.closed, link.peer_closed, link.peer_detach_end, link.asked = ends
        link.failed, link.peer_failed, link.echo_end, link.echo_time, link.echo_packet = failed
        link.half_closed = None if half_closed is None else FrameRef.load(half_closed)
        link.misanswered = None if misanswered is None else FrameRef.load(misanswered)
        link.answers, link.attach_frame, link.refusal_told, link.freed_handle, link.mixed = answers
        link.continued, link.bare_limit, link.available, link.offered = counted
        link.told_count, link.told_total, link.told_end = told
        link.initial_count = count[0]
        link.count = count[1]
        link.limits = Limits.load(count[2])
        link.drain, link.drain_end, link.drain_limit, link.uncounted, link.credit_read = drain
        link.resumed = set(resumed[0])
        link.former = dict(resumed[1])
        link.anew = resumed[2]
        link.orphans = set(orphans[0])
        link.orphans_end = orphans[1]
        link.received, link.receiving, link.holding, link.current, link.open_time = received
        link.watch()
        return link

    def restore(self, state: tuple[Any, ...], deliveries: list[Delivery]) -> None:
        """Give it its deliveries, as `dump` told them."""
        under_way = state[12]
        if under_way is not None:
            self.open = deliveries[under_way]
        self.tags = {tag: deliveries[number] for tag, number in state[13]}


def _listed(attach: Attach) -> dict[bytes, object] | None:
    """The unsettled map of an attach."""
    if attach.unsettled is None:
        return None
    return {tag: state for tag, state in attach.unsettled.pairs if isinstance(tag, bytes)}


def _filters(attach: Attach) -> bool:
    source = attach.source
    return isinstance(source, Source) and source.filter is not None and len(source.filter) > 0


def _attach(state: object) -> Attach | None:
    value = load_value(state)
    return value if isinstance(value, Attach) else None
