"""One end of a connection: everything it has sent, and what it can have received.

Theory of operation. A connection is replayed as two endpoints. A frame binds its sender at once
(`send`). Its receiver gets it later (`deliver`, `receive`, in `tracking.amqp10.receiving`): when, is in
`tracking.inbox`.

What an endpoint sends may prove what it has processed; those proofs are drawn in `prove`, one place
for all:

    begin           its remote-channel: the peer's begin on that channel
    flow            its next-incoming-id: the peer's transfers below it
    disposition     as receiver: the peer's deliveries it names
    transfer        credit or window that only one flow of the peer's gave: that flow

Credit that it uses, or gives back to drain a link, proves no certain one of several flows, but that it has
read one, and the begin before it (`credit_read`, `begin_read`).

An attach, detach, end or close proves nothing: it may have crossed the peer's.

Nothing here judges. What is illegal is taken in the most likely sense, so that one fault does not make
faults of all that follows: a frame on a channel or handle never opened changes nothing; a second begin
on a channel in use is ignored, a second attach on a handle replaces the first.
"""

from typing import Any, Final

from amqpscope.limits import (
    MAX_DRAWN_SESSIONS,
    MAX_LEFT,
    MAX_LINK_ACCOUNTS,
    MAX_PASSAGES,
    MAX_PASSED_OCTETS,
)
from amqpscope.model.records import SERVER, FrameRecord, FrameRef
from amqpscope.tracking.amqp10.channels import NO_CHANNEL
from amqpscope.tracking.amqp10.legibility import name_of
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.link_resume_state import LinkResumeState
from amqpscope.tracking.amqp10.message_digest import MessageDigest, message_digest
from amqpscope.tracking.amqp10.receiving import Receiving
from amqpscope.tracking.amqp10.redelivery import Fate, delivery_count
from amqpscope.tracking.amqp10.sasl_exchange import sasl_input
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import (
    DETACHED,
    SEND_CLOSE,
    SEND_CLOSE_WITH_ERROR,
    SEND_HEADER,
    SEND_OPEN,
)
from amqpscope.tracking.knowledge import CONNECTION
from amqpscope.tracking.serial import nearest
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.message import RESERVED, Message
from dissectors.amqp10.messaging import Source
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
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Endpoint10"]


_OF_ITS_SESSION: Final = ("attach", "flow", "transfer", "disposition", "detach")
"""Frames that only their session reads. A begin and an end change the channels of the connection."""


class Endpoint10(Receiving):
    """One end of an AMQP 1.0 connection: see `EndpointState` for what is known of it."""

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Endpoint10":
        """The object of what `dump` returned."""
        endpoint = Endpoint10(state[0][0])
        endpoint.restore(state)
        return endpoint

    # What it sends

    def send(self, record: FrameRecord) -> None:
        """This endpoint sends a frame; it was judged before."""
        frame = record.frame
        stream = self.stream
        self.sent_end = frame.offset + frame.size
        stream.frames += 1
        stream.last_time = record.last_time
        stream.last_packet = record.packet
        stream.last_acknowledged = record.acknowledged
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
            if session is not None:
                self.send_detach(session, body, record)
        elif isinstance(body, Begin):
            self.send_begin(body, channel, record.packet)
        elif isinstance(body, End):
            self.send_end(body, channel)
        elif isinstance(body, Open):
            self.step(SEND_OPEN)
            if self.open is None:
                self.open = body
                self.opening.packet = record.packet
        elif isinstance(body, Close):
            self.send_close(body, record)
        elif isinstance(body, ProtocolHeader):
            self.send_header(body, bool(frame.problems))
        elif sasl_input(body):
            self.sasl.take(body)
        elif frame.kind == "skipped":
            self.lost()

    def send_header(self, header: ProtocolHeader, odd: bool) -> None:
        if self.closing.sent and self.closing.received:
            self.restart()
        elif not self.whole:
            self.closing.stands = False
        self.headers.send(header, odd and self.headers.sent > 0)
        self.layer = header.protocol()
        if self.layer == "AMQP 1.0":
            self.step(SEND_HEADER)

    def send_close(self, close: Close, record: FrameRecord) -> None:
        action = SEND_CLOSE_WITH_ERROR if close.error is not None else SEND_CLOSE
        self.step(action)
        self.closing.send(close, record.packet, record.last_time, record.frame.guessed)

    def send_begin(self, begin: Begin, channel: int, packet: i64) -> None:
        if channel in self.sessions:
            # A second begin in use: the session that is there goes on, which is what peers do.
            return
        channels = self.used_channels()
        session = self.session_begun(begin, channel, channels.peer_unanswered, channels.unanswered)
        session.send_begin(begin, channel, packet)
        self.sessions[channel] = session
        channels.own_channel = NO_CHANNEL
        channels.ended.pop(channel, None)

    def send_end(self, end: End, channel: int) -> None:
        session = self.sessions.pop(channel, None)
        if session is not None:
            self.channels.own_channel = NO_CHANNEL
            session.send_end(end)
            self.leave_link(session, "")
            self.settle_accounts(session)
            self.channels.ended[channel] = session

    def send_detach(self, session: SessionEnd, detach: Detach, record: FrameRecord) -> None:
        if detach.handle is None:
            return
        link = session.handles.pop(detach.handle, None)
        if link is not None:
            link.send_detach(detach, FrameRef.of(record))
            if link.attachment.over():
                session.received.let_go(link)
            self.leave_link(session, link.name)
            link.handle = UNKNOWN
            session.free(detach.handle, link)

    def send_attach(self, session: SessionEnd, attach: Attach, record: FrameRecord) -> None:
        name = name_of(attach)
        if name is None or attach.role is None:
            return
        sender = not attach.role
        key = (name, sender)
        link = session.links.get(key)
        if link is None or (link.attach is not None and link.state != DETACHED and link.handle != UNKNOWN):
            before = link
            link = LinkEnd(name, sender, UNKNOWN)
            # Of one that the peer has attached again meanwhile nobody can tell which flows are for this one.
            link.whole = session.whole and (before is None or before.whole)
            session.links[key] = link
        session.received.let_go(link)
        if session.mapping.peer_begin_end == UNKNOWN:
            session.mapping.pipelined = True
        link.send_attach(attach, record.packet)
        link.attachment.frame = self.stream.frames - 1
        if sender:
            self.open_account(attach, record)
        if attach.handle is not None:
            link.handle = attach.handle
            session.handles[attach.handle] = link
            session.freed.pop(attach.handle, None)

    def send_transfer(self, session: SessionEnd, transfer: Transfer, record: FrameRecord) -> None:
        session.outgoing.next_id += 1
        if transfer.handle is None:
            return
        link = session.handles.get(transfer.handle)
        if link is None:
            session.outgoing.send_stray()
            if session.sent.last == UNKNOWN:
                # Its sender may speak of a delivery that was sent so.
                session.sending().unnumbered += 1
            elif transfer.delivery_id is not None:
                # Whatever it is sent for, the next id in turn is used up.
                following: i64 = session.sent.last + 1
                if nearest(transfer.delivery_id, following) == following:
                    session.sent.last = following
            return
        sent = session.sending()
        number: i64 = UNKNOWN
        if link.open is None and transfer.delivery_id is not None:
            number = transfer.delivery_id
            if sent.last != UNKNOWN:
                number = nearest(transfer.delivery_id, sent.last)
            sent.last = number
            sent.unnumbered = 0
        elif link.open is None:
            sent.unnumbered += 1
        frame = record.frame
        begun = link.open is None
        if not begun:
            session.outgoing.continued += 1
            if transfer.delivery_id is not None or transfer.delivery_tag is not None:
                link.mix(transfer)
        delivery = link.send_transfer(transfer, number, record.packet, frame.payload_size + frame.absent)
        message = Message.of(record.message)
        if message is not None:
            if message.complete and message.message_format == 0 and not delivery.settled:
                if not delivery.resumed:
                    delivery.traits = message.traits()
                    if delivery.traits & RESERVED:
                        self.sent_messages().reserved = True
            if self.messages.complete:
                self.pass_on(record, message, delivery, session)
        if link.open is not None:
            link.open_time = record.last_time
        elif delivery.aborted and (not begun or delivery.resumed):
            sent.abort(delivery)
        if begun and number != UNKNOWN and not delivery.settled:
            sent.unsettled[int(number)] = delivery
        elif delivery.settled and delivery.number != UNKNOWN:
            sent.unsettled.pop(int(delivery.number), None)

    def pass_on(self, record: FrameRecord, message: Message, delivery: Delivery, session: SessionEnd) -> None:
        """A message that may be sent on elsewhere, or came from there."""
        sound = message.complete and message.message_format == 0
        sound = sound and not delivery.resumed and not delivery.link.mixed
        if not self.may_keep(sound, message.size) or not message.outline():
            self.messages.complete = False
            return
        passed = message_digest(record, message, delivery.link.name)
        if passed is None:
            return
        self.keep(passed)
        if self.peer == SERVER and delivery.number != UNKNOWN:
            self.follow_fate(passed, delivery, session, delivery_count(passed.header))

    def may_keep(self, sound: bool, size: i64) -> bool:
        """Whether one more message, of so many octets, may be kept. Counts it. sound: it can be looked at."""
        messages = self.sent_messages()
        messages.looked_at += 1
        return (
            sound
            and messages.looked_at <= MAX_PASSAGES
            and self.allowance.left > 0
            and size <= MAX_PASSED_OCTETS
        )

    def keep(self, passed: MessageDigest) -> None:
        """Keep the digest of a message."""
        self.sent_messages().digests.append(passed)
        self.allowance.left -= 1

    def follow_fate(self, passed: MessageDigest, delivery: Delivery, session: SessionEnd, count: int) -> None:
        """Follow what becomes of a message that a server sent. count: its delivery-count."""
        attach = delivery.link.attach
        source = None if attach is None else attach.source
        address = source.address if isinstance(source, Source) else None
        self.sent_messages().fates[passed.message_id] = Fate(
            passed, session.number, delivery.number, address, delivery.settled, count
        )
        delivery.identity = passed.message_id

    def send_disposition(self, channel: int, body: Disposition, time: i64) -> None:
        session = self.session_on(channel)
        if session is None:
            return
        if body.role is True:
            session.received.send_disposition(body, time)
        if body.role is not False or body.first is None:
            return
        if body.settled:
            session.sent.settle(body)
        for delivery in self.named(session, body):
            if body.state is not None:
                delivery.state = body.state
            if body.settled:
                delivery.settled = True
                if delivery.identity and delivery.identity in self.messages.fates:
                    self.messages.fates[delivery.identity].settled = True
                session.sent.unsettled.pop(int(delivery.number), None)
                delivery.link.forget(delivery)

    def see_end(self, record: FrameRecord) -> None:
        """If the stream ended inside this frame, that is to be reported once it is known how it ended."""
        for problem in record.frame.problems:
            if problem.code == "incomplete":
                self.stream.unfinished = FrameRef.of(record)
                self.stream.unfinished_reason = problem.reason

    # What its frames prove

    def turn_to(self, frame: Frame) -> None:
        """It sends a frame next: what it must have known is what frames of the same session prove."""
        of_session = frame.kind == "amqp" and not isinstance(frame.body, (Open, Close))
        self.knowledge.of(frame.channel if of_session else CONNECTION)

    def has_read(self, name: str, channel: i64, end: i64) -> bool:
        session: SessionEnd | None = None
        if name in _OF_ITS_SESSION:
            session = self.session_with(int(channel))
        if session is None:
            return end <= self.knowledge.must_of(CONNECTION)
        return session.channel != UNKNOWN and end <= self.knowledge.must_of(session.channel)

    def read_of_sessions(self) -> dict[int, int]:
        whole = int(self.knowledge.must_of(CONNECTION))
        read: dict[int, int] = {}
        for known in (self.sessions, self.channels.ended):
            for session in known.values():
                if len(read) >= MAX_DRAWN_SESSIONS:
                    return read
                if session.peer_channel != UNKNOWN and session.channel != UNKNOWN:
                    read.setdefault(int(session.peer_channel), int(self.knowledge.must_of(session.channel)))
        return {} if all(end == whole for end in read.values()) else read

    def session_with(self, peer_channel: int) -> SessionEnd | None:
        """The session on a channel of the peer's, or the last one that was there; None if there was none."""
        session = self.peer_sessions.get(peer_channel)
        if session is not None:
            return session
        for known in (self.sessions, self.channels.ended):
            for session in known.values():
                if session.peer_channel == peer_channel:
                    return session
        return None

    def prove(self, record: FrameRecord) -> None:
        """Draw from a frame of this endpoint what it must have processed of the peer's stream."""
        self.turn_to(record.frame)
        body = record.frame.body
        knowledge = self.knowledge
        if isinstance(body, Transfer):
            session = self.session_on(record.frame.channel)
            if session is not None and session.whole:
                knowledge.prove(session.outgoing.limits.proved_by(session.outgoing.next_id))
                if body.handle is not None:
                    link = session.handles.get(body.handle)
                    if link is not None and link.open is None and link.whole:
                        knowledge.prove(link.credit.limits.proved_by(link.credit.count))
                        link.credit.limits.settle(knowledge.must)
                        if not link.credit.read and link.credit.may_use(1):
                            link.credit.read = True
                            session.mapping.begin_read = True
                session.outgoing.limits.settle(knowledge.must)
        elif isinstance(body, Flow):
            session = self.session_on(record.frame.channel)
            if session is not None:
                if body.next_incoming_id is not None:
                    knowledge.prove(session.incoming.proved_by(body.next_incoming_id))
                if body.drain and body.handle is not None and session.whole:
                    link = session.handles.get(body.handle)
                    if link is not None and link.is_drained_by(body):
                        link.credit.read = True
                        session.mapping.begin_read = True
        elif isinstance(body, Disposition):
            session = self.session_on(record.frame.channel)
            if session is not None and body.role and body.first is not None:
                named = body.first if body.last is None else body.last
                knowledge.prove(session.received.end_of(named))
        elif isinstance(body, Begin):
            if body.remote_channel is not None:
                waiting = self.channels.peer_unanswered.get(body.remote_channel)
                if waiting is not None:
                    knowledge.prove(waiting[0].mapping.peer_begin_end)

    # What it leaves to later connections

    def open_account(self, attach: Attach, record: FrameRecord) -> None:
        """It attaches a link on which it sends."""
        name = attach.name
        if name is None:
            return
        accounts = self.sent_messages().accounts
        account = accounts.get(name)
        if account is None:
            if len(accounts) >= MAX_LINK_ACCOUNTS:
                return
            account = LinkResumeState(name, FrameRef.of(record))
            account.attached(attach)
            accounts[name] = account
        account.follow(attach)

    def settle_accounts(self, session: SessionEnd) -> None:
        """A session is over: what is unsettled on its links is left so."""
        for link in session.links.values():
            account = self.messages.accounts.get(link.name) if link.sender else None
            if account is None or link.attach is None:
                continue
            if link.attachment.closed or link.attachment.peer_closed:
                account.closed = True
            elif link.tags:
                account.left = tuple(tag for tag, _ in zip(link.tags, range(MAX_LEFT), strict=False))

    def leave(self, peer_sent: i64) -> None:
        """The connection is over. All that the peer said is taken for received: what it settled, is."""
        self.catch_up(-1, peer_sent)
        for session in self.sessions.values():
            self.settle_accounts(session)
