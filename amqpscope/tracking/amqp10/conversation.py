"""An AMQP 1.0 connection, followed frame by frame: which session, link and delivery each frame belongs to.

Theory of operation. Each direction has its sessions by channel; each half of a session has its links by
handle and its deliveries by delivery-id. The remote-channel of the answering begin joins the halves of a
session; name and role join the ends of a link. Begins on one channel, and attaches of one name, are answered
in their order, because a session or link may be ended and begun again before the first answer comes, and a
mirror port may show an answer before its request.

Illegal frames are treated as the endpoints of the rules treat them (`tracking.amqp10.endpoint`): a second
begin on a channel in use changes nothing, a second attach on a handle replaces the first. If octets are
missing, the newest frame is believed, because an end or a detach may be among the missing octets.

A frame on a channel or handle without a begin or an attach is a stray. Its content is kept, because the begin
may not have been captured, and an attach or a delivery on it is worth showing.

Sources: transport.xml, "Sessions", "Links", "Transferring a Message".
"""

from typing import Final

from amqpscope.limits import (
    MAX_FORMER_LINKS,
    MAX_NAMED_DELIVERIES,
    MAX_SETTLED_DELIVERIES,
    MAX_UNANSWERED,
)
from amqpscope.model.records import PEERS, FrameRecord, side_of
from amqpscope.tracking.amqp10.events import Listener10, Taker10
from amqpscope.tracking.amqp10.identity import (
    Link,
    LinkHalf,
    OpenDelivery,
    Session,
    SessionHalf,
    SpareDeliveries,
    sender_of,
)
from amqpscope.tracking.amqp10_draft2011.spoken import body_of, is_draft
from amqpscope.tracking.events import Conversation, Rememberable, takes
from dissectors.amqp10.delivery import begins_message
from dissectors.amqp10.frame import ProtocolHeader
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
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.wire import i64

__all__ = ["Conversation10"]

_BOTH: Final = 3


# mypyc: null objects, of connections without a session. Nothing writes to them.
_NO_HALVES: Final[dict[int, SessionHalf]] = {}
_NOBODY: Final[dict[int, list[Session]]] = {}


class Conversation10(Conversation):
    """One connection. listeners: who takes its events; to be subscribed before its first frame.

    link: what the newest frame is about, None if it is about none, or about one that is not known.
    settled: whether settled deliveries are kept, for `link` and `delivery_of`. Events need only the others.
    """

    def __init__(self, settled: bool = True) -> None:
        super().__init__()
        self.settled: bool = settled
        self.listeners: list[Listener10] = []
        # Those of them that take these events.
        self._started: Taker10 | None = None
        self._continued: Taker10 | None = None
        self._disposed: Taker10 | None = None
        # Where objects of deliveries that are over stand for other ones.
        self._spares: SpareDeliveries | None = None
        self.link: Link | None = None
        # The container-ids of both peers, "" while they are not known.
        self.client_container: str = ""
        self.server_container: str = ""
        # By side and channel; and the sessions that only one peer has begun so far, the oldest first.
        self._halves: dict[int, SessionHalf] = _NO_HALVES
        # The halves that a frame of the client, and of the server, named last, None for none.
        self._last_client: SessionHalf | None = None
        self._last_server: SessionHalf | None = None
        self._unanswered: dict[int, list[Session]] = _NOBODY
        # Octets are missing. Bits of the sides that have sent close.
        self._gap: bool = False
        self._closed: i64 = 0
        # How many are kept: newer settled deliveries, unsettled ones, attached and detached links.
        self._newer: i64 = 0
        self._unsettled: i64 = 0
        self._attached: i64 = 0
        self._detached: i64 = 0

    def reuse_deliveries(self, reuse: bool) -> None:
        """Whether the object of a delivery that the receiver has settled stands for another one: only where
        no subscriber keeps it.
        """
        self._spares = SpareDeliveries() if reuse else None

    def subscribe(self, listener: Listener10) -> None:
        """Have somebody take the events, behind those who do so already."""
        self.listeners.append(listener)
        self.ask_again()
        self._disposed = _takers(self.listeners, "disposition")

    def ask_again(self) -> None:
        """Ask the subscribers anew whether they need the events of deliveries."""
        needing = [one for one in self.listeners if one.needs_deliveries()]
        self._started = _takers(needing, "delivery_started")
        self._continued = _takers(needing, "delivery_continued")

    def dismiss(self) -> None:
        """Nobody takes the events any more."""
        self.listeners = []
        self._started = None
        self._continued = None
        self._disposed = None
        self._spares = None

    def outstanding(self) -> list[Rememberable]:
        waiting: dict[Rememberable, None] = {}
        for half in self._halves.values():
            waiting.update(dict.fromkeys(half.unsettled.entries()))
            other = half.other()
            if other is not None:
                waiting.update(dict.fromkeys(other.unsettled.entries()))
        return list(waiting)

    def take(self, record: FrameRecord) -> bool:
        self.link = None
        frame = record.frame
        if frame.missing > 0 or not record.started:
            self._gap = True
        outside = self._said(record, side_of(record), frame.channel, frame.body)
        if self._closed == _BOTH:
            # The connection is closed: what still comes is about nothing.
            self.link = None
        return outside

    def _said(self, record: FrameRecord, side: i64, channel: i64, body: object) -> bool:
        """A frame whose body says this in the terms of the final specification. Returns whether it is about
        no session.
        """
        if isinstance(body, Transfer):
            self._transfer(record, side, channel, body)
        elif isinstance(body, Disposition):
            self._disposition(record, side, channel, body)
        elif isinstance(body, Flow):
            self._flow(record, side, channel, body)
        elif isinstance(body, Attach):
            self._attach(record, side, channel, body)
        elif isinstance(body, Detach):
            self._detach(record, side, channel, body)
        elif isinstance(body, Begin):
            self._begin(record, side, channel, body)
        elif isinstance(body, End):
            self._end(record, side, channel, body)
        else:
            self._outside(record, side, channel, body)
            return True
        return False

    # What a frame is about, before it is taken

    def half_of(self, record: FrameRecord) -> SessionHalf | None:
        """The half of a session that the channel of a frame stands for, or stood for before its end."""
        found = self._halves.get(_key(side_of(record), record.frame.channel))
        return found.former if found is not None and found.assumed else found

    def link_of(self, record: FrameRecord) -> Link | None:
        """The link that the handle of a frame stands for, or stood for before a detach."""
        half = self.half_of(record)
        body = body_of(record.frame)
        if half is None or not isinstance(body, (Attach, Flow, Transfer, Detach)) or body.handle is None:
            return None
        on = half.handles.get(body.handle)
        if on is not None and on.link is None:
            on = on.former
        return None if on is None else on.link

    def attached_by(self, record: FrameRecord) -> list[Link]:
        """The links that the sender of a frame has attached on its session, the newest first."""
        half = self.half_of(record)
        halves = [] if half is None else reversed(half.handles.values())
        return [on.link for on in halves if on.link is not None and not on.detached]

    def named_by(self, record: FrameRecord, attach: Attach) -> tuple[Link | None, Link | None]:
        """The newest link that the sender of an attach has attached by the same name; and the other peer."""
        half = self.half_of(record)
        if half is None or attach.name is None:
            return (None, None)
        key = (attach.name, sender_of(half.side, attach))
        other = half.other()
        own = half.names.get(key)
        theirs = None if other is None else other.names.get(key)
        return (None if own is None else own.link, None if theirs is None else theirs.link)

    def delivery_of(self, record: FrameRecord, body: Disposition, number: int) -> OpenDelivery | None:
        """The delivery that a number in a disposition stands for."""
        half = self.half_of(record)
        sending = half.other() if half is not None and body.role else half
        return None if sending is None else sending.delivery(number)

    def answered_by(self, record: FrameRecord, begin: Begin) -> Session | None:
        """The session that the channel named by a begin stands for; None if it names none."""
        if begin.remote_channel is None:
            return None
        found = self._halves.get(_key(1 - side_of(record), begin.remote_channel))
        return None if found is None or found.assumed else found.session

    def unanswered_by(self, record: FrameRecord, begin: Begin) -> Session | None:
        """The newest session that the other peer has begun, not ended, and that is not answered; None if a
        begin names one.
        """
        if begin.remote_channel is not None:
            return None
        newest: SessionHalf | None = None
        other = 1 - side_of(record)
        for half in self._halves.values():
            if half.side == other and not half.assumed and not half.ended and half.other() is None:
                newest = half
        return None if newest is None else newest.session

    # The connection

    def _outside(self, record: FrameRecord, side: i64, channel: i64, body: object) -> None:
        """A frame that is about no session."""
        if isinstance(body, ProtocolHeader):
            if self._closed == _BOTH:
                self._restart()
            for listener in self.listeners:
                listener.header(record, body)
        elif isinstance(body, Open):
            if side == 0:
                self.client_container = body.container_id or ""
            else:
                self.server_container = body.container_id or ""
            for listener in self.listeners:
                listener.opened(record, body)
        elif isinstance(body, Close):
            self._closed |= 1 << side
            for listener in self.listeners:
                listener.closed(record, body)
        elif record.frame.kind == "sasl":
            for listener in self.listeners:
                listener.sasl(record)
        elif isinstance(body, draft.Transfer):
            self._draft_transfer(record, side, channel, body)
        elif is_draft(body):
            self._said(record, side, channel, body_of(record.frame))
        else:
            for listener in self.listeners:
                listener.other(record)

    def _restart(self) -> None:
        """A protocol header behind both closes: all begins anew."""
        self._halves = _NO_HALVES
        self._last_client = None
        self._last_server = None
        self._unanswered = _NOBODY
        self._closed = 0
        self._newer = 0
        self._unsettled = 0
        self._attached = 0
        self._detached = 0

    def _stray(self, record: FrameRecord, session: Session | None) -> None:
        for listener in self.listeners:
            listener.stray(record, session)

    # Sessions

    def _begin(self, record: FrameRecord, side: i64, channel: i64, body: Begin) -> None:
        known = self._halves.get(_key(side, channel))
        if known is not None and not known.assumed and not known.ended and not self._gap:
            self._stray(record, known.session)
            return
        if known is not None and known.expected and body.remote_channel is None:
            # The answer was captured before this.
            known.assumed = False
            known.expected = False
            session = known.session
        else:
            session = self._session(side, channel, body)
            self._put(SessionHalf(session, side, channel))
        for listener in self.listeners:
            listener.session_begun(record, body, session)

    def _session(self, side: i64, channel: i64, body: Begin) -> Session:
        """The session that a begin is for: the one that it answers, or a new one."""
        if body.remote_channel is None:
            self.sessions += 1
            session = Session(PEERS[side])
            if self._unanswered is _NOBODY:
                self._unanswered = {}
            waiting = self._unanswered.setdefault(_key(side, channel), [])
            if len(waiting) < MAX_UNANSWERED:
                waiting.append(session)
            return session
        remote: i64 = body.remote_channel
        key = _key(1 - side, remote)
        known = self._halves.get(key)
        waiting = self._unanswered.get(key, [])
        if waiting:
            session = waiting.pop(-1 if self._gap else 0)
            if not waiting or self._gap:
                del self._unanswered[key]
            return session
        self.sessions += 1
        if known is None:
            # Its begin was not captured, or comes later.
            known = SessionHalf(Session(PEERS[1 - side]), 1 - side, remote)
            known.assumed = True
            known.expected = True
            self._put(known)
            return known.session
        if known.assumed and known.other() is None:
            known.expected = True
            known.session.begun_by = PEERS[1 - side]
            return known.session
        return Session(PEERS[1 - side])

    def _find(self, side: i64, channel: i64) -> SessionHalf | None:
        """The half of a session that has, or had last, a channel of a side."""
        last = self._last_client if side == 0 else self._last_server
        if last is not None and last.channel == channel:
            return last
        found = self._halves.get(_key(side, channel))
        if side == 0:
            self._last_client = found
        else:
            self._last_server = found
        return found

    def _put(self, half: SessionHalf) -> None:
        """A half of a session takes its channel."""
        if self._halves is _NO_HALVES:
            self._halves = {}
        key = _key(half.side, half.channel)
        known = self._halves.pop(key, None)
        if known is not None:
            self._newer -= len(known.newer)
            self._unsettled -= known.unsettled.count
        self._halves[key] = half
        self._last_client = None
        self._last_server = None
        if half.side == 0:
            half.session.client = half
        else:
            half.session.server = half

    def _half(self, record: FrameRecord, side: i64, channel: i64) -> SessionHalf:
        """The half of a session that has a channel; one that is assumed, if none was begun there."""
        half = self._halves.get(_key(side, channel))
        if half is None or half.ended:
            former = half
            half = SessionHalf(Session(""), side, channel)
            half.assumed = True
            half.former = former
            self._put(half)
        if half.assumed:
            self._stray(record, None)
        return half

    def _end(self, record: FrameRecord, side: i64, channel: i64, body: End) -> None:
        half = self._find(side, channel)
        if half is None or half.ended or half.assumed:
            self._stray(record, None)
        if half is None or half.ended:
            return
        half.ended = True
        for listener in self.listeners:
            listener.session_ended(record, body, half.session)

    # Links

    def _attach(self, record: FrameRecord, side: i64, channel: i64, body: Attach) -> None:
        half = self._half(record, side, channel)
        name = body.name
        if name is None:
            self._stray(record, half.session)
            return
        key = (name, sender_of(side, body))
        link = self._join(half.session, side, key)
        link.attached |= 1 << side
        link.learn(body)
        on = LinkHalf(link)
        half.names.pop(key, None)
        half.names[key] = on
        if body.handle is not None:
            half.handles.pop(body.handle, None)
            half.put_on(body.handle, on)
            self._attached += 1
            if self._attached > MAX_NAMED_DELIVERIES:
                self._forget_links()
        self.link = link
        for listener in self.listeners:
            listener.link_attached(record, body, half.session, link)

    def _join(self, session: Session, side: i64, key: tuple[str, str]) -> Link:
        """The link that an attach answers, the oldest that only the other peer has attached; or a new one."""
        waiting = session.unanswered.get(key)
        if waiting is None:
            waiting = []
            session.unanswered[key] = waiting
        for link in waiting:
            # Where octets are missing, this peer's attach may be among them.
            if link.attached & (1 << side) == 0 and not (self._gap and link.detached):
                waiting.remove(link)
                if not waiting:
                    del session.unanswered[key]
                return link
        link = Link(key[0], key[1])
        if self._gap:
            waiting.clear()
        if len(waiting) < MAX_UNANSWERED:
            waiting.append(link)
        return link

    def _detach(self, record: FrameRecord, side: i64, channel: i64, body: Detach) -> None:
        half = self._find(side, channel)
        if half is None or half.ended or half.assumed:
            self._stray(record, None)
        if half is None or half.ended:
            return
        on = None if body.handle is None else half.handles.get(body.handle)
        if on is None or on.detached or on.link is None:
            self._stray(record, half.session)
            return
        link = on.link
        on.detached = True
        on.open = None
        link.detached |= 1 << side
        self.link = link
        self._detached += 1
        if self._detached > MAX_FORMER_LINKS:
            self._forget_links()
        for listener in self.listeners:
            listener.link_detached(record, body, link)

    def _forget_links(self) -> None:
        """There are too many links: forget those that are over, and if that is not enough all of them."""
        self._attached = 0
        self._detached = 0
        for half in self._halves.values():
            half.forget_links(half.ended)
            self._attached += len(half.handles)
        if self._attached > MAX_NAMED_DELIVERIES // 2:
            for half in self._halves.values():
                half.forget_links(True)
            self._attached = 0

    def _flow(self, record: FrameRecord, side: i64, channel: i64, body: Flow) -> None:
        half = self._find(side, channel)
        if half is None or half.ended or half.assumed:
            self._stray(record, None)
        if half is None or half.ended:
            return
        link: Link | None = None
        if body.handle is not None:
            on = half.handles.get(body.handle)
            if on is None or on.detached or on.link is None:
                self._stray(record, half.session)
            else:
                link = on.link
        self.link = link
        for listener in self.listeners:
            listener.flow(record, body, half.session, link)

    # Deliveries

    def _transfer(self, record: FrameRecord, side: i64, channel: i64, body: Transfer) -> None:
        half = self._find(side, channel)
        if half is None or half.ended or half.assumed:
            half = self._half(record, side, channel)
        if body.handle is None:
            self._stray(record, half.session)
            return
        on = half.on(body.handle)
        if on is None or on.detached:
            former = on
            on = LinkHalf(None)
            on.former = former
            half.put_on(body.handle, on)
        if on.link is None:
            self._stray(record, half.session)
        self.link = on.link
        number = body.delivery_id
        delivery = on.open
        if delivery is not None and number is not None and delivery.id != number:
            if delivery.id is None and not self._gap:
                delivery.id = number
            elif self._gap or begins_message(record.frame, body):
                delivery = None
        started = delivery is None
        if delivery is None:
            spares = self._spares
            if spares is None:
                delivery = OpenDelivery(half.session, on.link, number, record.packet, record.time)
            else:
                delivery = spares.begin(half.session, on.link, number, record.packet, record.time)
            if on.link is not None:
                on.link.deliveries += 1
            if number is not None:
                self._remember(half, delivery, number, body)
        if body.settled:
            delivery.settled = True
        if body.aborted:
            delivery.aborted = True
            on.open = None
        elif body.more:
            on.open = delivery
        else:
            delivery.complete = True
            on.open = None
        taker = self._started if started else self._continued
        if started:
            while taker is not None:
                taker.listener.delivery_started(record, body, delivery)
                taker = taker.next
            if body.settled and delivery.complete and self._spares is not None:
                self._spares.put(delivery)
        else:
            while taker is not None:
                taker.listener.delivery_continued(record, body, delivery)
                taker = taker.next

    def _draft_transfer(self, record: FrameRecord, side: i64, channel: i64, body: draft.Transfer) -> None:
        """A transfer of the April-2011 draft: it goes on with the delivery of its link that has its tag.

        Each transfer has an id of its own, and a disposition may name the delivery by any of them.
        """
        key = _key(side, channel)
        half = self._halves.get(key)
        on = None if half is None or body.handle is None else half.handles.get(body.handle)
        delivery = None if on is None or on.detached else on.going_on(body.delivery_tag)
        self._said(record, side, channel, body_of(record.frame, delivery is not None))
        if body.handle is not None:
            self._halves[key].handles[body.handle].tag = body.delivery_tag
        if half is not None and delivery is not None and body.transfer_id is not None:
            half.continue_by(body.transfer_id, delivery)

    def _remember(self, half: SessionHalf, delivery: OpenDelivery, number: int, body: Transfer) -> None:
        """A delivery begins; dispositions name it by its id."""
        if body.settled:
            if self.settled:
                self._keep_settled(half, delivery, number)
            return
        if not self.listeners and not self.settled:
            return
        before = half.unsettled.count
        half.wait(number, delivery)
        self._unsettled += half.unsettled.count - before
        if self._unsettled > MAX_NAMED_DELIVERIES:
            before = half.unsettled.count
            half.unsettled.forget_older()
            self._unsettled -= before - half.unsettled.count

    def _keep_settled(self, half: SessionHalf, delivery: OpenDelivery, number: int) -> None:
        """A delivery is settled; further dispositions may name it."""
        before = len(half.newer)
        half.newer[number] = delivery
        self._newer += len(half.newer) - before
        if self._newer > MAX_SETTLED_DELIVERIES:
            for one in self._halves.values():
                one.older = one.newer
                one.newer = {}
            self._newer = 0

    def _disposition(self, record: FrameRecord, side: i64, channel: i64, body: Disposition) -> None:
        half = self._find(side, channel)
        if half is None or half.ended or half.assumed:
            self._stray(record, None)
        if half is None or body.first is None:
            return
        sending = half.other() if body.role else half
        if sending is not None and self.settled:
            known = sending.delivery(body.first)
            if known is not None:
                self.link = known.link
        if not self.listeners and not self.settled:
            return
        deliveries = [] if sending is None else sending.named(body.first, body.last)
        if body.settled and sending is not None:
            unsettled = sending.unsettled
            before = unsettled.count
            for delivery in deliveries:
                if not body.role:
                    delivery.settled = True
                elif delivery.id is not None:
                    delivery.settled_by_receiver = True
                    unsettled.remove(delivery.id)
                    if self.settled:
                        self._keep_settled(sending, delivery, delivery.id)
            if self._find(sending.side, sending.channel) is sending:
                self._unsettled -= before - unsettled.count
        taker = self._disposed
        while taker is not None:
            taker.listener.disposition(record, body, half.session, deliveries)
            taker = taker.next
        if self._spares is not None and body.settled and body.role:
            for delivery in deliveries:
                # A delivery that goes on is still known by its handle, and one of the draft by further ids.
                if delivery.complete and delivery.last < 0:
                    self._spares.put(delivery)


def _takers(listeners: list[Listener10], event: str) -> Taker10 | None:
    """Those of the listeners that take an event, in their order."""
    first: Taker10 | None = None
    for listener in reversed(listeners):
        if takes(listener, Listener10, event):
            first = Taker10(listener, first)
    return first


def _key(side: i64, channel: i64) -> int:
    """A channel of one peer, in a dictionary. Frames without a channel have -1."""
    return int(side << 32 | (channel + 1))
