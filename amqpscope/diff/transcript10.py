"""The transcript of a connection of AMQP 1.0: what each peer says, by session and link.

* The connection: headers, SASL frames, open and close of each peer.
* A session: begin and end. A link: attach, detach, the first credit that the receiver grants, and each drain
  it asks for. Further flows are how a receiver keeps up, and session windows how both do: matters of time.
* On a link the deliveries, whatever transfers they were cut into, and of each what the receiver and
  what the sender says of it.

What a peer still says on something that the other one has ended is late.
"""

from collections import OrderedDict

from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, FormEntry
from amqpscope.diff.forms10 import CanonicalFrames10
from amqpscope.diff.transcript import (
    DELIVERIES,
    LABEL,
    OTHER,
    OUTCOMES,
    SETTLEMENTS,
    Names,
    Room,
    Transcript,
    TranscriptPart,
)
from amqpscope.limits import MAX_COMPARED_UNSETTLED
from amqpscope.model.records import CLIENT, Connection, FrameRecord
from amqpscope.model.volatile import mask_numbers
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import word
from amqpscope.report.redaction import guard
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Source, Target
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
from dissectors.amqp10.sasl import SaslInit
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10.values import Map
from dissectors.amqp10_draft2011.message import DraftMessage

__all__ = ["Transcript10"]

_LACKING = {"begin": "a free channel", "attach": "a name"}
"""What else than a link a frame on a session may lack."""


class _Link:
    """A link: its part, and what is shown about it once."""

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.granted = False
        self.draining = False


class _Session:
    """A session: its part, and its links."""

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.links: dict[Link, _Link] = {}


class _Delivery:
    """A delivery: its place among those of its link, and what its transfers said."""

    def __init__(self, link: _Link, place: int) -> None:
        self.link = link
        self.place = place
        self.state: object = None
        self.flags: list[str] = []


class Transcript10(Transcript, Listener10):
    """Takes the events of one connection."""

    def __init__(
        self,
        connection: Connection,
        room: Room,
        table: CanonicalFrameTable,
        names: Names,
        forms: CanonicalFrames10,
        links: LinkNames,
    ) -> None:
        super().__init__(connection, room, table)
        self._names = names
        self._forms = forms
        self._guarding = links
        self._sessions: dict[Session, _Session] = {}
        self._links: dict[Link, _Link] = {}
        self._deliveries: OrderedDict[OpenDelivery, _Delivery] = OrderedDict()
        self._closed: set[str] = set()
        self._strays: set[tuple[int, str, str]] = set()
        links.conversation(connection).subscribe(self)

    def take(self, record: FrameRecord, links: LinkNames) -> None:
        """The next frame, whose events it takes."""
        self.late = OTHER[record.peer] in self._closed
        links.of(record)
        if len(self._closed) == 2:
            self.over = True
            self._forget()

    def finish(self) -> None:
        """No more comes."""
        for session in self.part.parts:
            begun_by = session.keys[0]
            speakers = frozenset(session.strands)
            session.keys = [(begun_by, speakers, frozenset(session.marks)), begun_by]
            for link in session.parts:
                sender, name = link.keys
                marks = frozenset(link.marks)
                link.keys = [(sender, marks, name), (sender, marks), sender]
        self._forget()

    def _forget(self) -> None:
        """What was to be known for further frames."""
        self._sessions.clear()
        self._links.clear()
        self._deliveries.clear()

    # The connection

    def header(self, record: FrameRecord, body: ProtocolHeader) -> None:
        self._say(self.part, record)

    def sasl(self, record: FrameRecord) -> None:
        body = body_of(record.frame)
        if isinstance(body, SaslInit):
            self.part.marks.add(f"by {body.mechanism}")
        self._say(self.part, record)

    def other(self, record: FrameRecord) -> None:
        self._say(self.part, record)

    def opened(self, record: FrameRecord, body: Open) -> None:
        self._introduced(record.peer, body)
        self._say(self.part, record)

    def closed(self, record: FrameRecord, body: Close) -> None:
        peer = record.peer
        _broken(self.part, peer, body.error)
        self._closed.add(peer)
        for link, known in self._links.items():
            if not link.detached:
                _dropped(link, known, peer)
        self._say(self.part, record)

    def _say(self, part: TranscriptPart, record: FrameRecord) -> None:
        """A peer says a frame that is compared as it is, unless it only keeps the connection alive."""
        if record.frame.name != "empty":
            self.say(part, record.peer, record.peer, self._forms.of(record.frame))

    def _introduced(self, peer: str, body: Open) -> None:
        self.who[peer, "container"] = word(mask_numbers(body.container_id or ""), LABEL)
        if isinstance(body.hostname, str) and peer == CLIENT and body.hostname.startswith("vhost:"):
            self.part.marks.add(body.hostname)
        if isinstance(body.properties, Map):
            for name in ("product", "version"):
                value = body.properties.get(name)
                if isinstance(value, str):
                    self.who[peer, name] = word(value, LABEL)

    # Sessions

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        known = self._sessions.get(session)
        if known is None:
            if not self.may_have(self.part.parts):
                return
            part = TranscriptPart("session", str(len(self.part.parts)), self.frames)
            part.keys = [session.begun_by]
            self.part.parts.append(part)
            known = self._sessions[session] = _Session(part)
        self._say(known.part, record)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        known = self._session(record.peer, session)
        if known is None:
            return
        _broken(known.part, record.peer, body.error)
        for link, one in known.links.items():
            if not link.detached:
                _dropped(link, one, record.peer)
        self._say(known.part, record)
        if session.ended_by(OTHER[record.peer]):
            del self._sessions[session]
            for link in known.links:
                del self._links[link]

    def _session(self, peer: str, session: Session) -> _Session | None:
        """What is kept of a session that a peer says something on, None if its begin was not captured."""
        self.late = self.late or session.ended_by(OTHER[peer])
        return self._sessions.get(session)

    def _link(self, peer: str, link: Link | None) -> _Link | None:
        """What is kept of a link that a peer says something on."""
        if link is None:
            return None
        self.late = self.late or link.detached_by(OTHER[peer])
        return self._links.get(link)

    def stray(self, record: FrameRecord, session: Session | None) -> None:
        """A frame about something that is not there. How many of them there are, is timing."""
        peer, name = record.peer, record.frame.name
        part: TranscriptPart | None = self.part
        lacks = "session"
        if session is not None:
            known = self._session(peer, session)
            part = None if known is None else known.part
            lacks = _LACKING.get(name, "link")
        elif self.midstream:
            part = None
        if part is None or (id(part), peer, name) in self._strays:
            return
        self._strays.add((id(part), peer, name))
        self.say(part, peer, peer, CanonicalFrame(name, (FormEntry("without", lacks),)))

    # Links

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        peer = record.peer
        around = self._session(peer, session)
        if around is None:
            return
        known = self._link(peer, link)
        if known is None:
            if not self.may_have(around.part.parts):
                return
            part = TranscriptPart("link", word(link.name, LABEL), self.frames)
            part.keys = [link.sender, mask_numbers(link.name)]
            around.part.parts.append(part)
            known = self._links[link] = around.links[link] = _Link(part)
        self._learn(peer, body)
        address = _address(body, link.sender, self._names)
        if address:
            known.part.label = word(address, LABEL)
            for part in (known.part, around.part, self.part):
                part.marks.add(f"{link.sender} sends: {address}")
        self._say(known.part, record)

    def _learn(self, peer: str, body: Attach) -> None:
        """A node that is made for a link gets its name from the peer that makes it."""
        for terminus in (body.source, body.target):
            if (
                isinstance(terminus, (Source, Target))
                and terminus.dynamic
                and isinstance(terminus.address, str)
            ):
                self._names.generated(terminus.address)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        known = self._link(record.peer, link)
        if known is None:
            return
        if not link.detached_by(OTHER[record.peer]):
            _dropped(link, known, record.peer)
        _broken(known.part, record.peer, body.error)
        self._say(known.part, record)

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        peer = record.peer
        self._session(peer, session)
        known = self._link(peer, link)
        if link is None or known is None or link.sender == peer:
            return
        if body.link_credit and not known.granted:
            known.granted = True
            credit = FormEntry("link-credit", str(int(body.link_credit)))
            self.say(known.part, peer, peer, CanonicalFrame("flow", (credit,)))
        drains = body.drain is True
        if drains and not known.draining:
            self.say(known.part, peer, peer, CanonicalFrame("flow", (FormEntry("drain", "true"),)))
        known.draining = drains

    # Deliveries

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        peer = record.peer
        self._session(peer, delivery.session)
        link = self._link(peer, delivery.link)
        if link is None or delivery.link is None or delivery.link.sender != peer:
            return
        known = _Delivery(link, self.say(link.part, DELIVERIES, peer, _UNFINISHED))
        if len(self._deliveries) >= MAX_COMPARED_UNSETTLED:
            self._deliveries.popitem(last=False)
        self._deliveries[delivery] = known
        self._transfer(record, body, delivery, known)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self._session(record.peer, delivery.session)
        self._link(record.peer, delivery.link)
        known = self._deliveries.get(delivery)
        if known is not None:
            self._transfer(record, body, delivery, known)

    def _transfer(
        self, record: FrameRecord, body: Transfer, delivery: OpenDelivery, known: _Delivery
    ) -> None:
        known.state = body.state if body.state is not None else known.state
        if body.resume and "resume" not in known.flags:
            known.flags.append("resume")
        if delivery.aborted:
            known.flags.append("aborted")
        elif not delivery.complete:
            return
        part = known.link.part
        part.settled = part.settled or delivery.settled
        links = self._guarding
        hidden = record.message is not None and guard(record, delivery.link, links, True).body
        message = Message.of(record.message) or DraftMessage.of(record.message)
        form = self._forms.transfer(delivery.settled, known.state, known.flags, message, hidden)
        self.amend(part, DELIVERIES, known.place, form)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        peer = record.peer
        self._session(peer, session)
        if body.state is None and not body.settled:
            return
        form = self._forms.state(body.state, body.settled)
        strand = OUTCOMES if body.role else SETTLEMENTS
        late = self.late
        for delivery in deliveries:
            self.late = late
            link = self._link(peer, delivery.link)
            known = self._deliveries.get(delivery)
            if link is not None and known is not None:
                self.say_of(link.part, strand, peer, known.place, form)
                if delivery.settled_by_receiver:
                    # The sender may still say that it has settled, too, or not: that tells nothing.
                    del self._deliveries[delivery]


_UNFINISHED = CanonicalFrame("transfer", (FormEntry("complete", "false"),))


def _broken(part: TranscriptPart, peer: str, error: object) -> None:
    """A peer ends something, maybe with an error."""
    if error is not None and not part.broken_by:
        part.broken_by = peer


def _dropped(link: Link, known: _Link, peer: str) -> None:
    """A peer ends a link that neither had ended, alone or with its session."""
    if peer != link.sender and not known.part.dropped_by:
        known.part.dropped_by = peer


def _address(body: Attach, sender: str, names: Names) -> str:
    """The address of the server's end of a link, as it is compared; "" if it has none."""
    if isinstance(body.target, Coordinator):
        return "coordinator"
    terminus = body.target if sender == CLIENT else body.source
    if not isinstance(terminus, (Source, Target)):
        return ""
    if terminus.dynamic:
        return "(generated)"
    return names.of(terminus.address) if isinstance(terminus.address, str) else ""
