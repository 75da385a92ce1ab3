"""One end of a session: its channel, its begin and end, its transfers and deliveries, its links.

A session consists of two channels, one in each direction. The remote-channel of the answering begin joins
them.

Sources: transport.xml, "Sessions".
"""

from typing import Any, Final

from amqpscope.tracking.amqp10.credit import UNKNOWN
from amqpscope.tracking.amqp10.echo import NO_ECHO, Echo
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.amqp10.session_deliveries import (
    NONE_RECEIVED,
    NONE_SENT,
    ReceivedDeliveries,
    SentDeliveries,
)
from amqpscope.tracking.amqp10.states import (
    DETACH_SENT,
    FREE,
    IN_USE,
    RECEIVE_BEGIN,
    RECEIVE_END,
    SEND_BEGIN,
    SEND_END,
    SEND_END_WITH_ERROR,
    SESSION,
    UNMAPPED,
)
from amqpscope.tracking.amqp10.transfer_ids import IncomingTransfers, OutgoingTransfers
from amqpscope.tracking.object_ids import ObjectIds
from dissectors.amqp10.performatives import Begin, End, Flow
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.wire import i64

__all__ = ["Mapping", "SessionEnd"]

# mypyc: null object, of sessions on which no handle is freed. Nothing writes to it.
NO_LINKS: Final[dict[int, LinkEnd]] = {}


class Mapping:
    """When the two ends of a session were mapped to their channels, and unmapped."""

    def __init__(self) -> None:
        # The packet in which this end's begin begins.
        self.begin_packet: i64 = 0
        # Offset in the peer's stream behind its begin.
        self.peer_begin_end: i64 = UNKNOWN
        # The packet in which the peer's begin begins.
        self.peer_begin_packet: i64 = 0
        # This end has used what it can only know from the peer's begin or from what follows it.
        self.begin_read: bool = False
        # This end attached a link before the peer's begin can have arrived: it does not wait for that.
        self.pipelined: bool = False
        # Offset in the peer's stream behind its end.
        self.peer_end_end: i64 = UNKNOWN
        # When (ns) the peer last sent begin or end.
        self.asked: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            int(self.begin_packet),
            (int(self.peer_begin_end), int(self.peer_begin_packet), self.begin_read, self.pipelined),
            (int(self.peer_end_end), int(self.asked)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Mapping":
        """The object of what `dump` returned."""
        mapping = Mapping()
        mapping.begin_packet, begin, end = state
        mapping.peer_begin_end, mapping.peer_begin_packet, mapping.begin_read, mapping.pipelined = begin
        mapping.peer_end_end, mapping.asked = end
        return mapping


class SessionEnd:
    """One end of a session."""

    def __init__(self, number: i64) -> None:
        # Counts begins on the connection, for reports.
        self.number: i64 = number
        # A state of the table `SESSION`.
        self.state: str = UNMAPPED
        # Everything since its begin was captured, so that what was not seen was not sent.
        self.whole: bool = True
        # The channel on which it sends; UNKNOWN while it has not begun.
        self.channel: i64 = UNKNOWN
        # The channel on which the peer sends; UNKNOWN while the peer has not begun.
        self.peer_channel: i64 = UNKNOWN
        # Its own begin.
        self.begin: Begin | None = None
        # The peer's begin, once received at `could`.
        self.peer_begin: Begin | None = None
        # When both begins and ends were sent.
        self.mapping: Mapping = Mapping()
        # A flow of the peer's that asks for one in return.
        self.echo: Echo = NO_ECHO
        # The transfers that it sends.
        self.outgoing: OutgoingTransfers = OutgoingTransfers()
        # The transfers that it receives.
        self.incoming: IncomingTransfers = IncomingTransfers()
        # The deliveries that it sends.
        self.sent: SentDeliveries = NONE_SENT
        # The deliveries that it receives.
        self.received: ReceivedDeliveries = NONE_RECEIVED
        # Links by its own handle.
        self.handles: dict[int, LinkEnd] = {}
        # Links by the peer's handle.
        self.peer_handles: dict[int, LinkEnd] = {}
        # Links by name and whether this end sends.
        self.links: dict[tuple[str, bool], LinkEnd] = {}
        # Links by a handle of its own that it has detached and the peer has not.
        self.freed: dict[int, LinkEnd] = NO_LINKS
        # No handle of its own below this one is free.
        self.lowest: i64 = 0
        # A finding says already that a handle is not the lowest free one.
        self.high_reported: bool = False

    def send_begin(self, begin: Begin, channel: i64, packet: i64) -> None:
        """This end sends begin."""
        self.state = SESSION.after(self.state, SEND_BEGIN)
        self.begin = begin
        self.mapping.begin_packet = packet
        self.channel = channel
        self.outgoing.send_begin(begin)

    def receive_begin(self, begin: Begin, channel: i64, end: i64, packet: i64) -> None:
        """This end received the peer's begin, which ends at `end` of its stream."""
        self.state = SESSION.after(self.state, RECEIVE_BEGIN)
        self.peer_begin = begin
        self.mapping.peer_begin_end = end
        self.mapping.peer_begin_packet = packet
        self.peer_channel = channel
        self.incoming.receive_begin(begin)
        self.outgoing.receive_begin(begin, self.begin is not None, end, packet)

    def send_end(self, end: End) -> None:
        """This end sends end."""
        action = SEND_END_WITH_ERROR if end.error is not None else SEND_END
        self.state = SESSION.after(self.state, action)

    def receive_end(self, end: i64) -> None:
        """This end received the peer's end, which ends at `end` of its stream."""
        self.mapping.peer_end_end = end
        self.state = SESSION.after(self.state, RECEIVE_END)

    def handle_state(self, handle: int) -> str:
        """The state of one of its own handles, in the table `HANDLE`."""
        return IN_USE if handle in self.handles else FREE

    def lowest_handle(self) -> i64:
        """The lowest handle that is free for this end and, as far as it can know, for the peer."""
        at = self.lowest
        while int(at) in self.handles or int(at) in self.freed:
            at += 1
        self.lowest = at
        return at

    def free(self, handle: int, link: LinkEnd) -> None:
        """This end detaches a link; unless the peer has done so, the handle may still mean it."""
        if link.state == DETACH_SENT:
            if self.freed is NO_LINKS:
                self.freed = {}
            self.freed[handle] = link
            link.attachment.freed_handle = handle
        elif handle < self.lowest:
            self.lowest = handle

    def free_for_both(self, link: LinkEnd) -> None:
        """The peer detaches a link, too."""
        handle = int(link.attachment.freed_handle)
        if self.freed.get(handle) is link:
            del self.freed[handle]
            if handle < self.lowest:
                self.lowest = handle

    def send_flow(self, flow: Flow) -> None:
        """This end sends a flow."""
        self.outgoing.send_flow(flow)
        if self.peer_begin is not None:
            self.incoming.send_flow(flow)
        self.echo = NO_ECHO

    def receive_flow(self, flow: Flow, end: i64, packet: i64) -> None:
        """This end received the peer's flow."""
        self.outgoing.receive_flow(flow, self.begin is not None, self.incoming.fits(flow), end, packet)
        self.incoming.receive_flow(flow, end, packet)

    def sending(self) -> SentDeliveries:
        """The deliveries that it sends, for one that it sends now."""
        if self.sent is NONE_SENT:
            self.sent = SentDeliveries()
        return self.sent

    def receiving(self) -> ReceivedDeliveries:
        """The deliveries that it receives, for one that it receives now."""
        if self.received is NONE_RECEIVED:
            self.received = ReceivedDeliveries()
        return self.received

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, its links and deliveries each once."""
        links = ObjectIds()
        deliveries = ObjectIds()
        tables = (
            tuple((handle, links.number(link)) for handle, link in self.handles.items()),
            tuple((handle, links.number(link)) for handle, link in self.peer_handles.items()),
            tuple((name, sender, links.number(link)) for (name, sender), link in self.links.items()),
            tuple((handle, links.number(link)) for handle, link in self.freed.items()),
        )
        sent = None if self.sent is NONE_SENT else self.sent.dump(deliveries)
        received = None if self.received is NONE_RECEIVED else self.received.dump(links)
        dumped_links: list[tuple[object, ...]] = []
        dumped_deliveries: list[tuple[object, ...]] = []
        # Either may name more of the other.
        while len(dumped_links) < len(links.objects) or len(dumped_deliveries) < len(deliveries.objects):
            for link in links.objects[len(dumped_links) :]:
                assert isinstance(link, LinkEnd)
                dumped_links.append(link.dump(deliveries))
            for delivery in deliveries.objects[len(dumped_deliveries) :]:
                assert isinstance(delivery, Delivery)
                dumped_deliveries.append(delivery.dump(links))
        return (
            (int(self.number), self.state, self.whole, int(self.channel), int(self.peer_channel)),
            (dump_value(self.begin), dump_value(self.peer_begin), self.mapping.dump()),
            None if self.echo is NO_ECHO else self.echo.dump(),
            (self.outgoing.dump(), self.incoming.dump()),
            (sent, received),
            tables,
            (int(self.lowest), self.high_reported),
            (tuple(dumped_links), tuple(dumped_deliveries)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SessionEnd":
        """The object of what `dump` returned."""
        about, begins, echo, transfers, deliveries, tables, lowest, dumped = state
        session = SessionEnd(about[0])
        _, session.state, session.whole, session.channel, session.peer_channel = about
        session.begin = _begin(begins[0])
        session.peer_begin = _begin(begins[1])
        session.mapping = Mapping.load(begins[2])
        session.echo = NO_ECHO if echo is None else Echo.load(echo)
        session.outgoing = OutgoingTransfers.load(transfers[0])
        session.incoming = IncomingTransfers.load(transfers[1])
        all_links = [LinkEnd.load(link) for link in dumped[0]]
        all_deliveries = [Delivery.load(delivery, all_links) for delivery in dumped[1]]
        for link, one in zip(all_links, dumped[0], strict=True):
            link.restore(one, all_deliveries)
        sent, received = deliveries
        if sent is not None:
            session.sent = SentDeliveries.load(sent, all_deliveries)
        if received is not None:
            session.received = ReceivedDeliveries.load(received, all_links)
        handles, peer_handles, names, freed = tables
        session.handles = {handle: all_links[at] for handle, at in handles}
        session.peer_handles = {handle: all_links[at] for handle, at in peer_handles}
        session.links = {(name, sender): all_links[at] for name, sender, at in names}
        session.freed = {handle: all_links[at] for handle, at in freed}
        session.lowest, session.high_reported = lowest
        return session


def _begin(state: object) -> Begin | None:
    value = load_value(state)
    return value if isinstance(value, Begin) else None
