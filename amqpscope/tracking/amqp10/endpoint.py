"""One end of a connection: everything it has sent, and what it can have received.

Theory of operation. A connection is replayed as two endpoints. A frame binds its sender at once
(`send`). Its receiver gets it later (`deliver`, `receive`): when, is in `tracking.inbox`.

What an endpoint sends may prove what it has processed; those proofs are drawn in `prove`, one place
for all:

    begin           its remote-channel: the peer's begin on that channel
    flow            its next-incoming-id: the peer's transfers below it
    disposition     as receiver: the peer's deliveries it names
    transfer        credit or window that only one flow of the peer's gave: that flow

An attach, detach, end or close proves nothing: it may have crossed the peer's.

Nothing here judges. What is illegal is taken in the most likely sense, so that one fault does not make
faults of all that follows: a frame on a channel or handle never opened changes nothing; a second begin
on a channel in use is ignored, a second attach on a handle replaces the first.
"""

from typing import Any

from amqpscope.limits import (
    MAX_LEFT,
    MAX_LINK_ACCOUNTS,
    MAX_PASSAGES,
    MAX_PASSED_OCTETS,
    MAX_STATED,
    MAX_UNANSWERED,
)
from amqpscope.model import SERVER, FrameRecord, Spot
from amqpscope.tracking.amqp10.account import LinkAccount
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.passage import passage
from amqpscope.tracking.amqp10.redelivery import Fate
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.standing import NO_CHANNEL, Standing, doubt, obscure
from amqpscope.tracking.amqp10.states import CONNECTION, CONNECTION_REPAIR, advance
from amqpscope.tracking.inbox import Arrival
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.message import RESERVED, Message
from dissectors.amqp10.messaging import Accepted, Source
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
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from dissectors.wire import i64

__all__ = ["Endpoint", "obscure"]


class Endpoint(Standing):
    """One end of an AMQP 1.0 connection: see `Standing` for what is known of it."""

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Endpoint":
        """What `dump` gave, as an object again."""
        endpoint = Endpoint(state[0][0])
        endpoint.restore(state)
        return endpoint

    # What it receives

    def deliver(self, record: FrameRecord) -> None:
        """The peer sent a frame: it is on its way to this endpoint."""
        frame = record.frame
        lost = not record.started or frame.kind == "skipped" or (bool(frame.problems) and obscure(frame))
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
            if frame.offset == 0 and frame.problems and frame.problems[0].code == "C-HDR-FORM":
                self.headers.unparsed_end = frame.size
                self.headers.unparsed_packet = record.packet
        self.post(Arrival(body, frame.channel, end, record.packet, record.last_time, lost))

    def receive(self, arrival: Arrival) -> None:
        body = arrival.body
        end = arrival.end
        if isinstance(body, Transfer):
            session = self.peer_session_on(arrival.channel)
            if session is not None:
                session.receive_transfer(end)
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
                        if body.drain and not link.drain:
                            link.asked = arrival.time
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
                    self.leave_link(session, link.name)
                    link.asked = arrival.time
                    link.peer_handle = UNKNOWN
                    if session.freed:
                        session.free_for_both(link)
        elif isinstance(body, Begin):
            self.receive_begin(body, arrival)
        elif isinstance(body, End):
            session = self.peer_sessions.pop(int(arrival.channel), None)
            self._their_channel = NO_CHANNEL
            if session is not None:
                session.receive_end(end)
                self.leave_link(session, "")
                session.asked = arrival.time
        elif isinstance(body, Open):
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, "R:OPEN")
            self.peer_open = body
            self.peer_open_end = end
            self.peer_open_packet = arrival.packet
            self.peer_open_time = arrival.time
        elif isinstance(body, Close):
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, "R:CLOSE")
            self.peer_closed = True
        elif isinstance(body, ProtocolHeader):
            self.receive_header(body, arrival)
        elif isinstance(body, SaslInit):
            if self.peer == SERVER:
                self.init = body
        elif self.peer == SERVER:
            pass  # what only a server says: it is no answer to what this one says itself
        elif isinstance(body, SaslMechanisms):
            self.mechanisms = body
        elif isinstance(body, SaslChallenge):
            self.challenges += 1
        elif isinstance(body, SaslOutcome):
            self.outcome = body
        if arrival.lost:
            self.lost()

    def receive_header(self, header: ProtocolHeader, arrival: Arrival) -> None:
        if self.closed and self.peer_closed:
            self.restart()
        self.headers.receive(header, arrival.end, arrival.packet, arrival.time)
        if header.protocol() == "AMQP 1.0":
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, "R:HDR")

    def receive_begin(self, begin: Begin, arrival: Arrival) -> None:
        channel = int(arrival.channel)
        in_use = self.peer_sessions.get(channel)
        if in_use is not None and in_use.whole and self.whole:
            # For its sender the session that is there goes on; what this end makes of it nobody knows.
            doubt(in_use)
            if begin.remote_channel is not None:
                for waiting in self.unanswered.pop(begin.remote_channel, []):
                    doubt(waiting)
            return
        session: SessionEnd | None = None
        if begin.remote_channel is not None:
            session = _oldest(self.unanswered, begin.remote_channel)
        if session is None:
            session = SessionEnd(self.begun)
            # Of one that answers nobody knows what, the other half is not known.
            session.whole = self.whole and begin.remote_channel is None
            self.begun += 1
            if begin.remote_channel is None:
                _wait(self.peer_unanswered, channel, session)
        session.receive_begin(begin, channel, arrival.end, arrival.packet)
        session.asked = arrival.time
        self.peer_sessions[channel] = session
        self._their_channel = NO_CHANNEL

    def receive_attach(self, session: SessionEnd, attach: Attach, end: i64, time: i64) -> None:
        if attach.name is None or attach.role is None:
            return
        # A receiver at the other end is a sender at this one.
        key = (attach.name, attach.role)
        link = session.links.get(key)
        if link is None:
            link = LinkEnd(attach.name, attach.role, UNKNOWN)
            link.whole = session.whole
            session.links[key] = link
        session.let_go(link)
        if attach.handle is not None:
            in_use = session.peer_handles.get(attach.handle)
            if in_use is not None and in_use is not link:
                # Whether it takes what comes on the handle now for the one's or the other's nobody knows.
                in_use.whole = False
                link.whole = False
        link.receive_attach(attach, end)
        link.asked = time
        if attach.handle is not None:
            link.peer_handle = attach.handle
            session.peer_handles[attach.handle] = link

    def receive_transfer(self, session: SessionEnd, transfer: Transfer, end: i64) -> None:
        assert transfer.handle is not None
        link = session.peer_handles.get(transfer.handle)
        # An id that goes back is wrong, and none that a delivery could be spoken of by.
        new = transfer.delivery_id is not None and session.received(transfer.delivery_id) == UNKNOWN
        if new and link is not None:
            # If the last was not finished, it is over: this is one that its receiver may speak of.
            link.receiving = False
        if new and transfer.delivery_id is not None:
            session.receive_delivery(transfer.delivery_id, end)
        if link is not None:
            if new:
                link.current = session.last_received()
            elif not link.receiving:
                link.current = UNKNOWN
            if transfer.aborted and link.current != UNKNOWN and len(session.aborted) < MAX_STATED:
                session.aborted[int(link.current)] = int(end)
        if link is not None and link.watched:
            session.hold(link, transfer, new)
        if link is not None and not link.receiving:
            link.received += 1
        if link is not None:
            link.receiving = transfer.more is True and transfer.aborted is not True
            if link.orphans and transfer.delivery_tag is not None:
                link.orphans.discard(transfer.delivery_tag)
        if transfer.resume:
            session.resuming = True

    def receive_disposition(self, session: SessionEnd, body: Disposition, end: i64) -> None:
        if body.role is False and body.settled and session.held:
            session.release(body)
        if body.role is not True or body.first is None:
            return
        accepted = isinstance(body.state, Accepted)
        for delivery in self.named(session, body):
            if body.state is not None:
                delivery.receiver_state = body.state
            if accepted:
                self.accepted_on = delivery.link.name
                self.accepted_end = end
            if delivery.identity:
                fate = self.fates.get(delivery.identity)
                if fate is not None and fate.number == delivery.number and fate.session == session.number:
                    if body.state is not None:
                        fate.state = body.state
                    if body.settled:
                        fate.settled = True
            if body.settled:
                delivery.settled_by_receiver = True
                session.unsettled.pop(int(delivery.number), None)
                delivery.link.forget(delivery)

    def named(self, session: SessionEnd, body: Disposition) -> list[Delivery]:
        """Deliveries sent by this endpoint on a session that a disposition names, still unsettled."""
        assert body.first is not None
        unsettled = session.unsettled
        if not unsettled:
            return []
        reference = session.last_delivery
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

    # What it sends

    def send(self, record: FrameRecord) -> None:
        """This endpoint sends a frame; it was judged before."""
        frame = record.frame
        self.sent_end = frame.offset + frame.size
        self.frames += 1
        self.last_time = record.last_time
        self.last_packet = record.packet
        self.last_acknowledged = record.acknowledged
        body = frame.body
        if frame.problems:
            self.see_end(record)
        if frame.missing > 0 and frame.payload_size == 0:
            return
        channel = int(frame.channel)
        if isinstance(body, Transfer):
            session = self.session_on(channel)
            if session is not None:
                self.send_transfer(session, body, record)
        elif isinstance(body, Disposition):
            self.send_disposition(channel, body, record.last_time)
        elif isinstance(body, Flow):
            session = self.session_on(channel)
            if session is not None:
                session.send_flow(body)
                if body.handle is not None:
                    link = session.handles.get(body.handle)
                    if link is not None:
                        link.send_flow(body)
        elif isinstance(body, Attach):
            session = self.session_on(channel)
            if session is not None:
                self.send_attach(session, body, record)
        elif isinstance(body, Detach):
            session = self.session_on(channel)
            if session is not None and body.handle is not None:
                link = session.handles.pop(body.handle, None)
                if link is not None:
                    link.send_detach(body, Spot.of(record))
                    self.leave_link(session, link.name)
                    link.handle = UNKNOWN
                    session.free(body.handle, link)
        elif isinstance(body, Begin):
            self.send_begin(body, channel, record.packet)
        elif isinstance(body, End):
            session = self.sessions.pop(channel, None)
            self._own_channel = NO_CHANNEL
            if session is not None:
                session.send_end(body)
                self.leave_link(session, "")
                self.settle_accounts(session)
                self.ended[channel] = session
        elif isinstance(body, Open):
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, "S:OPEN")
            if self.open is None:
                self.open = body
                self.open_packet = record.packet
        elif isinstance(body, Close):
            action = "S:CLOSE(error)" if body.error is not None else "S:CLOSE"
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, action)
            if not self.closed:
                self.close_packet = record.packet
                self.close_time = record.last_time
                self.close_stands = True
                if body.error is not None and body.error.condition is not None:
                    self.close_condition = str(body.error.condition)
            self.closed = True
        elif isinstance(body, ProtocolHeader):
            if self.closed and self.peer_closed:
                self.restart()
            elif not self.whole:
                self.close_stands = False
            self.headers.send(body, bool(frame.problems) and self.headers.sent > 0)
            self.layer = body.protocol()
            if self.layer == "AMQP 1.0":
                self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, "S:HDR")
        elif isinstance(body, SaslInit):
            self.init = body
        elif isinstance(body, SaslMechanisms):
            self.mechanisms = body
        elif isinstance(body, SaslResponse):
            self.challenges -= 1
        elif isinstance(body, SaslOutcome):
            self.outcome = body
        elif frame.kind == "skipped":
            self.lost()

    def send_begin(self, begin: Begin, channel: int, packet: i64) -> None:
        if channel in self.sessions:
            # A second begin in use: the session that is there goes on, which is what peers do.
            return
        session: SessionEnd | None = None
        if begin.remote_channel is not None:
            session = _oldest(self.peer_unanswered, begin.remote_channel)
        if session is None:
            session = SessionEnd(self.begun)
            # Of one that answers nobody knows what, the other half is not known.
            session.whole = self.whole and begin.remote_channel is None
            self.begun += 1
            if begin.remote_channel is None:
                _wait(self.unanswered, channel, session)
        session.send_begin(begin, channel, packet)
        self.sessions[channel] = session
        self._own_channel = NO_CHANNEL
        self.ended.pop(channel, None)

    def send_attach(self, session: SessionEnd, attach: Attach, record: FrameRecord) -> None:
        if attach.name is None or attach.role is None:
            return
        sender = not attach.role
        key = (attach.name, sender)
        link = session.links.get(key)
        if link is None or (link.attach is not None and link.state != "DETACHED" and link.handle != UNKNOWN):
            before = link
            link = LinkEnd(attach.name, sender, UNKNOWN)
            # Of one that the peer has attached again meanwhile nobody can tell which flows are for this one.
            link.whole = session.whole and (before is None or before.whole)
            session.links[key] = link
        session.let_go(link)
        link.send_attach(attach, record.packet)
        link.attach_frame = self.frames - 1
        if sender:
            self.open_account(attach, record)
        if attach.handle is not None:
            link.handle = attach.handle
            session.handles[attach.handle] = link
            session.freed.pop(attach.handle, None)

    def send_transfer(self, session: SessionEnd, transfer: Transfer, record: FrameRecord) -> None:
        session.next_id += 1
        if transfer.handle is None:
            return
        link = session.handles.get(transfer.handle)
        if link is None:
            if transfer.delivery_id is not None and session.last_delivery != UNKNOWN:
                # Whatever it is sent for, the next id in turn is used up.
                following: i64 = session.last_delivery + 1
                if nearest(transfer.delivery_id, following) == following:
                    session.last_delivery = following
            return
        number: i64 = UNKNOWN
        if link.open is None and transfer.delivery_id is not None:
            number = transfer.delivery_id
            if session.last_delivery != UNKNOWN:
                number = nearest(transfer.delivery_id, session.last_delivery)
            session.last_delivery = number
        frame = record.frame
        begun = link.open is None
        if not begun:
            session.continued += 1
        delivery = link.send_transfer(transfer, number, record.packet, frame.payload_size + frame.missing)
        message = Message.of(record.message)
        if message is not None:
            if message.complete and message.message_format == 0 and not delivery.settled:
                if not delivery.resumed:
                    delivery.traits = message.traits()
                    if delivery.traits & RESERVED:
                        self.reserved = True
            if self.all_passages:
                self.pass_on(record, message, delivery, session)
        if link.open is not None:
            link.open_time = record.last_time
        elif delivery.aborted and delivery.number != UNKNOWN and len(session.aborts) < MAX_STATED:
            session.aborts.add(int(raw(delivery.number)))
        if begun and number != UNKNOWN and not delivery.settled:
            session.unsettled[int(number)] = delivery
        elif delivery.settled and delivery.number != UNKNOWN:
            session.unsettled.pop(int(delivery.number), None)

    def pass_on(self, record: FrameRecord, message: Message, delivery: Delivery, session: SessionEnd) -> None:
        """A message that may be sent on elsewhere, or came from there."""
        sound = message.complete and message.message_format == 0 and not delivery.resumed
        self.passed += 1
        if (
            not sound
            or self.passed > MAX_PASSAGES
            or self.allowance.left <= 0
            or message.size > MAX_PASSED_OCTETS
            or not message.outline()
        ):
            self.all_passages = False
            return
        passed = passage(record, message, delivery.link.name)
        if passed is not None:
            self.passages.append(passed)
            self.allowance.left -= 1
            if self.peer == SERVER and delivery.number != UNKNOWN:
                attach = delivery.link.attach
                source = None if attach is None else attach.source
                address = source.address if isinstance(source, Source) else None
                self.fates[passed.message_id] = Fate(
                    passed, session.number, delivery.number, address, delivery.settled
                )
                delivery.identity = passed.message_id

    def leave_link(self, session: SessionEnd, name: str) -> None:
        """A link was detached, or ("") all: what was sent there and not settled is its node's again."""
        for fate in self.fates.values():
            if fate.session == session.number and name in (fate.link, ""):
                fate.gone = True

    def send_disposition(self, channel: int, body: Disposition, time: i64) -> None:
        session = self.session_on(channel)
        if session is None:
            return
        if body.role is True:
            session.send_outcome(body, time)
        if body.role is not False or body.first is None:
            return
        for delivery in self.named(session, body):
            if body.state is not None:
                delivery.state = body.state
            if body.settled:
                delivery.settled = True
                if delivery.identity and delivery.identity in self.fates:
                    self.fates[delivery.identity].settled = True
                session.unsettled.pop(int(delivery.number), None)
                delivery.link.forget(delivery)

    def see_end(self, record: FrameRecord) -> None:
        """If the stream ended inside this frame, that is to be told once it is known how it ended."""
        for problem in record.frame.problems:
            if problem.code == "incomplete":
                self.unfinished = Spot.of(record)
                self.unfinished_reason = problem.reason

    # What its frames prove

    def prove(self, record: FrameRecord) -> None:
        """Draw from a frame of this endpoint what it must have processed of the peer's stream."""
        body = record.frame.body
        knowledge = self.knowledge
        if isinstance(body, Transfer):
            session = self.session_on(record.frame.channel)
            if session is not None:
                knowledge.prove(session.limits.proved_by(session.next_id))
                if body.handle is not None:
                    link = session.handles.get(body.handle)
                    if link is not None and link.open is None:
                        knowledge.prove(link.limits.proved_by(link.count))
                        link.limits.settle(knowledge.must)
                session.limits.settle(knowledge.must)
        elif isinstance(body, Flow):
            session = self.session_on(record.frame.channel)
            if session is not None and body.next_incoming_id is not None:
                knowledge.prove(session.proved_by(body.next_incoming_id))
        elif isinstance(body, Disposition):
            session = self.session_on(record.frame.channel)
            if session is not None and body.role and body.first is not None:
                named = body.first if body.last is None else body.last
                knowledge.prove(session.delivery_end(named))
        elif isinstance(body, Begin):
            if body.remote_channel is not None:
                waiting = self.peer_unanswered.get(body.remote_channel)
                if waiting is not None:
                    knowledge.prove(waiting[0].peer_begin_end)

    # What it leaves to later connections

    def open_account(self, attach: Attach, record: FrameRecord) -> None:
        """It attaches a link on which it sends."""
        name = attach.name or ""
        account = self.accounts.get(name)
        if account is None:
            if len(self.accounts) >= MAX_LINK_ACCOUNTS:
                return
            account = LinkAccount(name, Spot.of(record))
            account.attached(attach)
            self.accounts[name] = account
        account.follow(attach)

    def settle_accounts(self, session: SessionEnd) -> None:
        """A session is over: what is unsettled on its links is left so."""
        for link in session.links.values():
            account = self.accounts.get(link.name) if link.sender else None
            if account is None or link.attach is None:
                continue
            if link.closed or link.peer_closed:
                account.closed = True
            elif link.tags:
                account.left = tuple(tag for tag, _ in zip(link.tags, range(MAX_LEFT), strict=False))

    def leave(self, peer_sent: i64) -> None:
        """The connection is over. All that the peer said is taken for received: what it settled, is."""
        self.catch_up(-1, peer_sent)
        for session in self.sessions.values():
            self.settle_accounts(session)


def _wait(waiting: dict[int, list[SessionEnd]], channel: int, session: SessionEnd) -> None:
    queue = waiting.setdefault(channel, [])
    if len(queue) < MAX_UNANSWERED:
        queue.append(session)


def _oldest(waiting: dict[int, list[SessionEnd]], channel: int) -> SessionEnd | None:
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
        if session.echo_end == UNKNOWN:
            session.echo_end = arrival.end
            session.echo_time = arrival.time
            session.echo_packet = arrival.packet
        return
    link = session.peer_handles.get(flow.handle)
    if link is not None and link.echo_end == UNKNOWN:
        link.echo_end = arrival.end
        link.echo_time = arrival.time
        link.echo_packet = arrival.packet
