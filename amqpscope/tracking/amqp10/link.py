"""One end of a link: what it attached, what it knows of the other end, and its deliveries.

Each end names the link by a handle of its own; the two are joined by the link's name and opposite roles.

Sources: transport.xml, "Links", "Transferring a Message".
"""

from typing import Any, Final

from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.attachment import Attachment
from amqpscope.tracking.amqp10.credit import NO_CREDIT, NO_RECEIPT, UNKNOWN, ReceiverCount, SenderCredit
from amqpscope.tracking.amqp10.echo import NO_ECHO, Echo
from amqpscope.tracking.amqp10.resumption import (
    NO_OCTETS,
    NO_RESUMPTION,
    NO_TAGS,
    LinkResumption,
    unsettled_map,
)
from amqpscope.tracking.amqp10.states import (
    ATTACH_RCVD,
    DETACH_RCVD,
    DETACHED,
    LINK,
    RECEIVE_ATTACH,
    RECEIVE_DETACH,
    SEND_ATTACH,
    SEND_DETACH,
)
from amqpscope.tracking.object_ids import ObjectIds
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.messaging import Source
from dissectors.amqp10.performatives import Attach, Detach, Flow, Transfer
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.transactions import Coordinator
from dissectors.wire import i64

__all__ = ["UNKNOWN", "Delivery", "LinkEnd"]


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
        """The object of what `dump` returned, of one of these links."""
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


# mypyc: null object, of links without deliveries. Nothing writes to it.
NO_DELIVERIES: Final[dict[bytes, Delivery]] = {}


class LinkEnd:
    """One end of a link, in the session of the endpoint that it belongs to."""

    def __init__(self, name: str, sender: bool, handle: i64) -> None:
        # The link's name.
        self.name: str = name
        # This end sends.
        self.sender: bool = sender
        # A state of the table `LINK`.
        self.state: str = DETACHED
        # Everything since its attach was captured, so that what was not seen was not sent.
        self.whole: bool = True
        # The handle of its own by which its frames name it; UNKNOWN while it has none.
        self.handle: i64 = handle
        # The handle by which the other end's frames name it; UNKNOWN while it has none.
        self.peer_handle: i64 = UNKNOWN
        # Its own newest attach.
        self.attach: Attach | None = None
        # The other end's newest attach, once received at `could`.
        self.peer_attach: Attach | None = None
        # How both ends were attached and detached.
        self.attachment: Attachment = Attachment()
        # A flow of the other end's that asks for one in return.
        self.echo: Echo = NO_ECHO
        # Its target is a transaction coordinator.
        self.coordinator: bool = False
        # It sends, and says that it applies filters.
        self.filters: bool = False
        # The sending end's initial-delivery-count.
        self.initial_count: i64 = 0
        # As sender: its delivery-count and the credit that it was granted.
        self.credit: SenderCredit = SenderCredit() if sender else NO_CREDIT
        # As receiver: its count of deliveries.
        self.receipt: ReceiverCount = NO_RECEIPT if sender else ReceiverCount()
        # What both say of unsettled deliveries when the link is attached again.
        self.resumption: LinkResumption = NO_RESUMPTION
        # As sender: the delivery under way.
        self.open: Delivery | None = None
        # When (ns) the last transfer of that delivery was sent.
        self.open_time: i64 = 0
        # As sender: which of its transfers belong to one message is not known, their id or tag changed.
        self.mixed: bool = False
        # As sender: the deliveries whose tags may not be used again.
        self.tags: dict[bytes, Delivery] = NO_DELIVERIES

    def send_attach(self, attach: Attach, packet: i64) -> None:
        """This end sends attach."""
        attachment = self.attachment
        attachment.send_attach(packet, self.state == ATTACH_RCVD)
        listed = unsettled_map(attach)
        if listed is not None or self.resumption is not NO_RESUMPTION:
            resumption = self.resuming()
            resumption.listed = listed
            resumption.resumed = NO_TAGS
            resumption.former = NO_OCTETS
            if self.sender and listed is not None:
                resumption.former = {tag: int(one.octets) for tag, one in self.tags.items() if one.complete}
        if self.sender:
            if attachment.peer_times < attachment.times:
                self.credit.forget()
            self.tags = NO_DELIVERIES
            self.mixed = False
        self.state = LINK.after(self.state, SEND_ATTACH)
        self.attach = attach
        self.coordinator = isinstance(attach.target, Coordinator)
        self.filters = self.sender and _filters(attach)
        self.watch()
        self.compare()
        if self.sender:
            if attach.initial_delivery_count is not None:
                self.initial_count = attach.initial_delivery_count
            self.credit.attach(attach.initial_delivery_count)
            self.credit.rebase(self.initial_count)

    def receive_attach(self, attach: Attach, end: i64) -> None:
        """This end received the other end's attach."""
        attachment = self.attachment
        following = attachment.peer_times + 1
        times = attachment.times
        if times != following and (times != following - 1 or self.handle != UNKNOWN):
            # Attached again by one end before the other one was heard: which flow belongs to which attachment
            # cannot be determined.
            self.whole = False
        elif self.sender:
            self.credit.forget()
        attachment.receive_attach(end)
        self.state = LINK.after(self.state, RECEIVE_ATTACH)
        self.peer_attach = attach
        listed = unsettled_map(attach)
        if listed is not None or self.resumption is not NO_RESUMPTION:
            self.resuming().peer_listed = listed
        self.watch()
        self.compare()
        if not self.sender:
            self.receipt.receiving = False
            self.receipt.available = UNKNOWN
            if attach.initial_delivery_count is not None:
                self.initial_count = attach.initial_delivery_count
                self.receipt.count = self.initial_count

    def resuming(self) -> LinkResumption:
        """What both say of unsettled deliveries, to be changed."""
        if self.resumption is NO_RESUMPTION:
            self.resumption = LinkResumption()
        return self.resumption

    def watch(self) -> None:
        """Whether what this receiver says of deliveries has to be looked at."""
        if self.sender:
            return
        own = self.attach
        theirs = self.peer_attach
        self.receipt.watched = own is not None and own.rcv_settle_mode == 1
        if theirs is not None and isinstance(theirs.source, Source) and theirs.source.outcomes:
            self.receipt.watched = True

    def compare(self) -> None:
        """What this receiver lists as unsettled, and the sender, having attached as often, does not."""
        theirs = self.peer_attach
        if self.sender or theirs is None or self.resumption is NO_RESUMPTION:
            return
        if self.attachment.times == self.attachment.peer_times:
            self.resumption.compare(theirs, self.attachment.peer_end)

    def send_detach(self, detach: Detach, spot: FrameRef) -> None:
        """This end sends detach, which stands at `spot`."""
        attachment = self.attachment
        if self.state == DETACH_RCVD and attachment.peer_closed and detach.closed is not True:
            attachment.half_closed = spot
        self.state = LINK.after(self.state, SEND_DETACH)
        attachment.send_detach(detach)
        self.open = None

    def receive_detach(self, detach: Detach, end: i64) -> None:
        """This end received the other end's detach, which ends at `end` of the peer's stream."""
        self.attachment.receive_detach(detach, end)
        self.state = LINK.after(self.state, RECEIVE_DETACH)
        if not self.sender:
            self.receipt.receiving = False

    def send_flow(self, flow: Flow) -> None:
        """This end sends a flow for the link."""
        self.echo = NO_ECHO
        if self.sender:
            self.credit.send_flow(flow, self.whole, self.open is not None)

    def is_drained_by(self, flow: Flow) -> bool:
        """Whether this end lawfully gives back credit with a flow of its own that has drain."""
        if not self.sender or not self.whole or flow.delivery_count is None:
            return False
        if self.credit.drain_end == UNKNOWN:
            return False
        given = nearest(flow.delivery_count, self.credit.count) - self.credit.count
        return given > 0 and self.credit.may_use(given)

    def receive_flow(self, flow: Flow, end: i64, packet: i64) -> None:
        """This end received the other end's flow for the link."""
        if self.sender:
            self.credit.receive_flow(flow, self.initial_count, self.handle != UNKNOWN, end, packet)
        else:
            self.receipt.receive_flow(flow)

    def send_transfer(self, transfer: Transfer, number: i64, packet: i64, octets: i64) -> Delivery:
        """This end, the sender, sends a transfer; the delivery it belongs to."""
        if self.credit is NO_CREDIT:
            # A receiver that sends, which it may not.
            self.credit = SenderCredit()
        credit = self.credit
        delivery = self.open
        if delivery is None:
            if self.whole:
                self.mixed = False
            delivery = Delivery(self, number, transfer.delivery_tag, packet)
            delivery.message_format = transfer.message_format
            delivery.rcv_settle_mode = transfer.rcv_settle_mode
            delivery.resumed = transfer.resume is True
            if delivery.resumed or transfer.aborted:
                credit.uncounted += 1
            if delivery.resumed:
                delivery.first_state = transfer.state
            else:
                credit.anew += 1
            credit.count += 1
            tag = transfer.delivery_tag
            if tag is not None:
                if self.tags is NO_DELIVERIES:
                    self.tags = {}
                self.tags[tag] = delivery
                listed = self.resumption.listed
                if delivery.resumed or (listed and tag in listed):
                    self.resuming().resume(tag)
        else:
            credit.continued += 1
            if transfer.aborted and not delivery.resumed:
                credit.uncounted += 1
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

    def received(self) -> ReceiverCount:
        """Its count of deliveries, for one that it receives now."""
        if self.receipt is NO_RECEIPT:
            # The peer sends, which it may not on this link.
            self.receipt = ReceiverCount()
        return self.receipt

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
            (self.name, self.sender, self.state, self.whole, int(self.handle), int(self.peer_handle)),
            (dump_value(self.attach), dump_value(self.peer_attach), self.attachment.dump()),
            (None if self.echo is NO_ECHO else self.echo.dump(), int(self.initial_count)),
            None if self.credit is NO_CREDIT else self.credit.dump(),
            None if self.receipt is NO_RECEIPT else self.receipt.dump(),
            None if self.resumption is NO_RESUMPTION else self.resumption.dump(),
            (None if self.open is None else deliveries.number(self.open), int(self.open_time), self.mixed),
            tuple((tag, deliveries.number(delivery)) for tag, delivery in self.tags.items()),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "LinkEnd":
        """The object of what `dump` returned, as yet without its deliveries."""
        about, attached, counted, credit, receipt, resumption, under_way, _ = state
        name, sender, _, _, handle, _ = about
        link = LinkEnd(name, sender, handle)
        _, _, link.state, link.whole, _, link.peer_handle = about
        link.attach = _attach(attached[0])
        link.peer_attach = _attach(attached[1])
        link.attachment = Attachment.load(attached[2])
        link.coordinator = link.attach is not None and isinstance(link.attach.target, Coordinator)
        link.filters = link.sender and link.attach is not None and _filters(link.attach)
        link.echo = NO_ECHO if counted[0] is None else Echo.load(counted[0])
        link.initial_count = counted[1]
        if credit is not None:
            link.credit = SenderCredit.load(credit)
        if receipt is not None:
            link.receipt = ReceiverCount.load(receipt)
        if resumption is not None:
            resuming = link.resuming()
            resuming.listed = unsettled_map(link.attach)
            resuming.peer_listed = unsettled_map(link.peer_attach)
            resuming.restore(resumption)
        _, link.open_time, link.mixed = under_way
        link.watch()
        return link

    def restore(self, state: tuple[Any, ...], deliveries: list[Delivery]) -> None:
        """Give it its deliveries, as `dump` returned them."""
        under_way = state[6][0]
        if under_way is not None:
            self.open = deliveries[under_way]
        if state[7]:
            self.tags = {tag: deliveries[number] for tag, number in state[7]}


def _filters(attach: Attach) -> bool:
    source = attach.source
    return isinstance(source, Source) and source.filter is not None and len(source.filter) > 0


def _attach(state: object) -> Attach | None:
    value = load_value(state)
    return value if isinstance(value, Attach) else None
