"""How an endpoint receives the frames of its peer.

A frame on its way (`deliver`) is received (`receive`) when it can have arrived; `tracking.inbox` decides when
that is. Illegal frames are treated as `tracking.amqp10.endpoint` says.
"""

from amqpscope.limits import MAX_STATED, MAX_UNANSWERED
from amqpscope.model.records import SERVER, FrameRecord
from amqpscope.tracking.amqp10.channels import NO_CHANNEL
from amqpscope.tracking.amqp10.echo import NO_ECHO, Echo
from amqpscope.tracking.amqp10.endpoint_state import EndpointState, doubt
from amqpscope.tracking.amqp10.legibility import NOTHING, name_of
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.sasl_exchange import sasl_input
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.session_deliveries import ReceivedDeliveries
from amqpscope.tracking.amqp10.states import RECEIVE_CLOSE, RECEIVE_HEADER, RECEIVE_OPEN
from amqpscope.tracking.inbox import Arrival
from amqpscope.tracking.serial import nearest
from dissectors.amqp10.detect import NO_HEADER
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.messaging import Accepted
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from dissectors.foreign import FOREIGN
from dissectors.wire import i64

__all__ = ["Receiving", "named_by"]


class Receiving(EndpointState):
    """One end of a connection, as far as it receives."""

    def deliver(self, record: FrameRecord, unread: i64 = NOTHING) -> None:
        """The peer sent a frame: it is on its way to this endpoint. unread: how much is unknown since it."""
        frame = record.frame
        lost = not record.started or frame.kind == "skipped"
        end = frame.offset + frame.size
        body = frame.body
        if frame.missing > 0 and frame.payload_size == 0:
            # Fields may be among what was not captured: what it says is not known.
            body = None
            lost = True
        if frame.kind == "skipped":
            # Of a stretch that was not captured it could have known any part.
            end = frame.offset + 1
            body = None
            if frame.problems and frame.problems[0].code in (NO_HEADER, FOREIGN):
                self.headers.unparsed_end = frame.offset + frame.size
                self.headers.unparsed_packet = record.packet
        self.post(Arrival(body, frame.channel, end, record.packet, record.last_time, lost, unread))

    def receive(self, arrival: Arrival) -> None:
        if arrival.doubted > NOTHING:
            session = self.peer_session_on(arrival.channel)
            link = None if session is None else named_by(session.peer_handles, arrival.body)
            self.take_in(arrival)
            # A begin or an attach is what it has made, an end or a detach is what it found.
            session = self.peer_session_on(arrival.channel) or session
            if session is not None:
                link = named_by(session.peer_handles, arrival.body) or link
            self.blur(arrival.doubted, session, link)
        else:
            self.take_in(arrival)

    def take_in(self, arrival: Arrival) -> None:
        """What the peer said takes effect on this end."""
        body = arrival.body
        end = arrival.end
        if isinstance(body, Transfer):
            session = self.peer_session_on(arrival.channel)
            if session is not None:
                session.incoming.receive_transfer(end)
                if body.handle is not None:
                    self.receive_transfer(session, body, end)
        elif isinstance(body, Disposition):
            session = self.peer_session_on(arrival.channel)
            if session is not None:
                self.receive_disposition(session, body, end)
        elif isinstance(body, Flow):
            session = self.peer_session_on(arrival.channel)
            if session is not None:
                session.receive_flow(body, end, arrival.packet)
                if body.echo:
                    _ask_echo(session, body, arrival)
                if body.handle is not None:
                    link = session.peer_handles.get(body.handle)
                    if link is not None:
                        if body.drain and not link.credit.drain:
                            link.attachment.asked = arrival.time
                        link.receive_flow(body, end, arrival.packet)
        elif isinstance(body, Attach):
            session = self.peer_session_on(arrival.channel)
            if session is not None:
                self.receive_attach(session, body, end, arrival.time)
        elif isinstance(body, Detach):
            session = self.peer_session_on(arrival.channel)
            if session is not None and body.handle is not None:
                link = session.peer_handles.pop(body.handle, None)
                if link is not None:
                    link.receive_detach(body, end)
                    if link.attachment.over():
                        session.received.let_go(link)
                    self.leave_link(session, link.name)
                    link.attachment.asked = arrival.time
                    link.peer_handle = UNKNOWN
                    if session.freed:
                        session.free_for_both(link)
        elif isinstance(body, Begin):
            self.receive_begin(body, arrival)
        elif isinstance(body, End):
            session = self.peer_sessions.pop(int(arrival.channel), None)
            if session is not None:
                self.channels.peer_channel = NO_CHANNEL
                session.receive_end(end)
                self.leave_link(session, "")
                session.mapping.asked = arrival.time
        elif isinstance(body, Open):
            self.step(RECEIVE_OPEN)
            self.peer_open = body
            self.opening.peer_end = end
            self.opening.peer_packet = arrival.packet
            self.opening.peer_time = arrival.time
        elif isinstance(body, Close):
            self.step(RECEIVE_CLOSE)
            self.closing.received = True
        elif isinstance(body, ProtocolHeader):
            self.receive_header(body, arrival)
        elif (spoken := sasl_input(body)) and spoken.startswith("C") == (self.peer == SERVER):
            # What only the endpoint itself may say is no answer to what it says.
            self.sasl.take(body)
        if arrival.lost:
            self.lost()

    def receive_header(self, header: ProtocolHeader, arrival: Arrival) -> None:
        if self.closing.sent and self.closing.received:
            self.restart()
        self.headers.receive(header, arrival.end, arrival.packet, arrival.time)
        if header.protocol() == "AMQP 1.0":
            self.step(RECEIVE_HEADER)

    def receive_begin(self, begin: Begin, arrival: Arrival) -> None:
        channel = int(arrival.channel)
        in_use = self.peer_sessions.get(channel)
        if in_use is not None and in_use.whole and self.whole:
            # For its sender the session that is there goes on; what this end makes of it nobody knows.
            doubt(in_use)
            if begin.remote_channel is not None:
                for waiting in self.channels.unanswered.pop(begin.remote_channel, []):
                    doubt(waiting)
            return
        channels = self.used_channels()
        session = self.session_begun(begin, channel, channels.unanswered, channels.peer_unanswered)
        session.receive_begin(begin, channel, arrival.end, arrival.packet)
        session.mapping.asked = arrival.time
        self.peer_sessions[channel] = session
        channels.peer_channel = NO_CHANNEL

    def session_begun(
        self,
        begin: Begin,
        channel: int,
        waiting: dict[int, list[SessionEnd]],
        unanswered: dict[int, list[SessionEnd]],
    ) -> SessionEnd:
        """The session that a begin answers, of those `waiting` for that; or a new one, then `unanswered`."""
        session: SessionEnd | None = None
        if begin.remote_channel is not None:
            session = _oldest(waiting, begin.remote_channel)
        if session is None:
            session = SessionEnd(self.channels.begun)
            # Of one that answers nobody knows what, the other half is not known.
            session.whole = self.whole and begin.remote_channel is None
            self.channels.begun += 1
            if begin.remote_channel is None and not _wait(unanswered, channel, session):
                self.lost()
        return session

    def receive_attach(self, session: SessionEnd, attach: Attach, end: i64, time: i64) -> None:
        name = name_of(attach)
        if name is None or attach.role is None:
            return
        # A receiver at the other end is a sender at this one.
        key = (name, attach.role)
        link = session.links.get(key)
        if link is None:
            link = LinkEnd(name, attach.role, UNKNOWN)
            link.whole = session.whole
            session.links[key] = link
        session.received.let_go(link)
        if attach.handle is not None:
            in_use = session.peer_handles.get(attach.handle)
            if in_use is not None and in_use is not link:
                # Whether it takes what comes on the handle now for the one's or the other's nobody knows.
                in_use.whole = False
                link.whole = False
        link.receive_attach(attach, end)
        link.attachment.asked = time
        if attach.handle is not None:
            link.peer_handle = attach.handle
            session.peer_handles[attach.handle] = link

    def receive_transfer(self, session: SessionEnd, transfer: Transfer, end: i64) -> None:
        assert transfer.handle is not None
        link = session.peer_handles.get(transfer.handle)
        # An id that goes back is wrong, and none that a delivery could be spoken of by.
        new = transfer.delivery_id is not None and session.received.number(transfer.delivery_id) == UNKNOWN
        received = session.receiving()
        if link is not None:
            self.receive_on_link(received, link, transfer, new, end)
        elif new and transfer.delivery_id is not None:
            received.add(transfer.delivery_id, end)
        if transfer.resume:
            received.resuming = True

    def receive_on_link(
        self, received: ReceivedDeliveries, link: LinkEnd, transfer: Transfer, new: bool, end: i64
    ) -> None:
        receipt = link.received()
        if new and receipt.receiving:
            # The last was not finished: it is over, or the two interleave. Of this one may be spoken.
            receipt.receiving = False
            link.whole = False
        if new and transfer.delivery_id is not None:
            received.add(transfer.delivery_id, end)
            receipt.current = received.last()
        elif not receipt.receiving:
            receipt.current = UNKNOWN
            if transfer.delivery_id is None:
                received.unnumbered += 1
        if transfer.aborted and (receipt.receiving or transfer.resume):
            # (One that is aborted by its first transfer was never begun, so what it is nobody knows.)
            if receipt.current != UNKNOWN and len(received.aborted) < MAX_STATED:
                received.aborted[int(receipt.current)] = int(end)
        if receipt.watched:
            received.hold(link, transfer, new)
        if not receipt.receiving:
            receipt.count += 1
        receipt.receiving = transfer.more is True and transfer.aborted is not True
        if link.resumption.orphans and transfer.delivery_tag is not None:
            link.resumption.orphans.discard(transfer.delivery_tag)

    def receive_disposition(self, session: SessionEnd, body: Disposition, end: i64) -> None:
        if body.role is False and body.settled and session.received.held:
            session.received.release(body)
        if body.role is not True or body.first is None:
            return
        accepted = isinstance(body.state, Accepted)
        for delivery in self.named(session, body):
            if body.state is not None:
                delivery.receiver_state = body.state
            if accepted:
                messages = self.sent_messages()
                messages.accepted_on = delivery.link.name
                messages.accepted_end = end
            if delivery.identity:
                fate = self.messages.fates.get(delivery.identity)
                if fate is not None and fate.number == delivery.number and fate.session == session.number:
                    if body.state is not None:
                        fate.state = body.state
                    if body.settled:
                        fate.settled = True
            if body.settled:
                delivery.settled_by_receiver = True
                session.sent.unsettled.pop(int(delivery.number), None)
                delivery.link.forget(delivery)

    def named(self, session: SessionEnd, body: Disposition) -> list[Delivery]:
        """Deliveries sent by this endpoint on a session that a disposition names, still unsettled."""
        assert body.first is not None
        unsettled = session.sent.unsettled
        if not unsettled:
            return []
        reference = session.sent.last
        first = nearest(body.first, reference)
        last = first
        if body.last is not None:
            last = nearest(body.last, first)
        if last == first:
            one = unsettled.get(int(first))
            return [] if one is None else [one]
        if last - first < len(unsettled):
            found = [unsettled.get(number) for number in range(int(first), int(last) + 1)]
            return [delivery for delivery in found if delivery is not None]
        return [delivery for number, delivery in unsettled.items() if first <= number <= last]

    def leave_link(self, session: SessionEnd, name: str) -> None:
        """A link was detached, or ("") all: what was sent there and not settled is its node's again."""
        for fate in self.messages.fates.values():
            if fate.session == session.number and name in (fate.link, ""):
                fate.gone = True


def named_by(handles: dict[int, LinkEnd], body: object) -> LinkEnd | None:
    """The link that a frame names by its handle, one of `handles`; None if it names none that is there."""
    if isinstance(body, (Attach, Flow, Transfer, Detach)) and body.handle is not None:
        return handles.get(body.handle)
    return None


def _wait(waiting: dict[int, list[SessionEnd]], channel: int, session: SessionEnd) -> bool:
    """A session was begun on a channel, and no begin has answered yet. False: too many wait already."""
    queue = waiting.setdefault(channel, [])
    if len(queue) >= MAX_UNANSWERED:
        return False
    queue.append(session)
    return True


def _oldest(waiting: dict[int, list[SessionEnd]], channel: int) -> SessionEnd | None:
    """The one that waits longest on a channel, which is answered now; None if none does."""
    queue = waiting.get(channel)
    if queue is None:
        return None
    session = queue.pop(0)
    if not queue:
        del waiting[channel]
    return session


def _ask_echo(session: SessionEnd, flow: Flow, arrival: Arrival) -> None:
    """The peer asks for a flow of the session, or of a link, in return; of several the first counts."""
    if flow.handle is None:
        if session.echo is NO_ECHO:
            session.echo = Echo(arrival.end, arrival.time, arrival.packet)
        return
    link = session.peer_handles.get(flow.handle)
    if link is not None and link.echo is NO_ECHO:
        link.echo = Echo(arrival.end, arrival.time, arrival.packet)
