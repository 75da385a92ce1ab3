"""The story of a connection of AMQP 1.0: what each peer says, by session and link.

* The connection: headers, SASL frames, open and close of each peer.
* A session: begin and end. A link: attach, detach, the first credit that the receiver grants, and each drain
  it asks for. Further flows are how a receiver keeps up, and session windows how both do: matters of time.
* On a link the deliveries, whatever transfers they were cut into, and of each what the receiver and
  what the sender says of it.

What a peer still says on something that the other one has ended is late.
"""

from collections import OrderedDict

from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, Entry
from amqpscope.diff.forms10 import CanonicalFrames10
from amqpscope.diff.transcript import (
    DELIVERIES,
    OUTCOMES,
    SETTLEMENTS,
    Names,
    Room,
    Transcript,
    TranscriptPart,
)
from amqpscope.limits import MAX_COMPARED_UNSETTLED
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.model.volatile import mask_numbers
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import word
from amqpscope.report.redaction import guard
from amqpscope.tracking.amqp10.identity import Link
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

__all__ = ["Transcript10"]

_LABEL = 48

_OTHER = {CLIENT: SERVER, SERVER: CLIENT}


class _Link:
    """A link: its part, and the delivery that is under way on it. sender: who sends messages on it."""

    def __init__(self, part: TranscriptPart, sender: str) -> None:
        self.part = part
        self.sender = sender
        self.ended: set[str] = set()
        self.granted = False
        self.draining = False
        self.under_way = -1
        self.first = 0
        self.settled = False
        self.state: object = None
        self.flags: list[str] = []


class _Session:
    """A session. handles: by peer. deliveries: without an outcome, by who sends them.

    attaches: how many there were, by peer, sender and name. names: the links, each the first, second and so
    on of its sender and name, whosever attach of it was captured first.
    """

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.attaches: dict[tuple[str, str, str], int] = {}
        self.names: dict[tuple[str, str, int], _Link] = {}
        self.handles: dict[tuple[str, int], _Link] = {}
        self.deliveries: dict[str, OrderedDict[int, tuple[_Link, int]]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.ended: set[str] = set()


class Transcript10(Transcript):
    """Takes the frames of one connection."""

    def __init__(
        self,
        connection: Connection,
        room: Room,
        table: CanonicalFrameTable,
        names: Names,
        forms: CanonicalFrames10,
    ) -> None:
        super().__init__(connection, room, table)
        self._names = names
        self._forms = forms
        self._sessions: dict[tuple[str, int], _Session] = {}
        # By who begins them, on which channel, and the how manieth there that is; and how many begins, and
        # answers to them, there were.
        self._begun: dict[tuple[tuple[str, int], int], _Session] = {}
        self._begins: dict[tuple[tuple[str, int], bool], int] = {}
        self._closed: set[str] = set()
        self._strays: set[tuple[int, str, str]] = set()

    def take(self, record: FrameRecord, link: Link | None, links: LinkNames) -> None:
        """The next frame. links: has been asked for the link of each."""
        frame = record.frame
        body = frame.body
        peer = record.peer
        if frame.name == "empty":
            return
        self.late = _OTHER[peer] in self._closed
        if isinstance(body, Transfer):
            hidden = record.message is not None and guard(record, link, links, True).body
            self._transfer(peer, int(frame.channel), body, Message.of(record.message), hidden)
        elif isinstance(body, Disposition):
            self._disposition(peer, int(frame.channel), body)
        elif isinstance(body, Flow):
            self._flow(peer, int(frame.channel), body)
        elif isinstance(body, Attach):
            self._attach(peer, record, body)
        elif isinstance(body, Detach):
            self._detach(peer, record, body)
        elif isinstance(body, Begin):
            self._begin(peer, record, body)
        elif isinstance(body, End):
            self._end(peer, record, body)
        else:
            self._other(peer, record)
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
        self._begun.clear()
        self._begins.clear()

    def _other(self, peer: str, record: FrameRecord) -> None:
        body = record.frame.body
        if isinstance(body, Open):
            self._introduced(peer, body)
        elif isinstance(body, SaslInit):
            self.part.marks.add(f"by {body.mechanism}")
        elif isinstance(body, Close):
            _broken(self.part, peer, body.error)
            self._closed.add(peer)
            for session in set(self._sessions.values()):
                for link in session.names.values():
                    _dropped(link, peer)
        self.say(self.part, peer, peer, self._forms.of(record.frame))

    def _introduced(self, peer: str, body: Open) -> None:
        self.who[peer, "container"] = word(mask_numbers(body.container_id or ""), _LABEL)
        if isinstance(body.hostname, str) and peer == CLIENT and body.hostname.startswith("vhost:"):
            self.part.marks.add(body.hostname)
        if isinstance(body.properties, Map):
            for name in ("product", "version"):
                value = body.properties.get(name)
                if isinstance(value, str):
                    self.who[peer, name] = word(value, _LABEL)

    # Sessions

    def _begin(self, peer: str, record: FrameRecord, body: Begin) -> None:
        channel = int(record.frame.channel)
        remote = body.remote_channel
        answers = remote is not None
        begun = (peer, channel) if remote is None else (_OTHER[peer], int(remote))
        place = (begun, answers)
        number = self._begins.get(place, 0)
        self._begins[place] = number + 1
        session = self._begun.get((begun, number))
        if session is None:
            if not self.may_have(self.part.parts):
                return
            part = TranscriptPart("session", str(len(self.part.parts) + 1), self.frames)
            part.keys = [begun[0]]
            self.part.parts.append(part)
            session = self._begun[begun, number] = _Session(part)
        self._sessions[peer, channel] = session
        self.say(session.part, peer, peer, self._forms.of(record.frame))

    def _end(self, peer: str, record: FrameRecord, body: End) -> None:
        session = self._sessions.pop((peer, int(record.frame.channel)), None)
        if session is None:
            self._stray(self.part, peer, record.frame.name, "session")
            return
        self.late = self.late or _OTHER[peer] in session.ended
        _broken(session.part, peer, body.error)
        session.ended.add(peer)
        for link in session.names.values():
            _dropped(link, peer)
        self.say(session.part, peer, peer, self._forms.of(record.frame))

    def _session(self, peer: str, channel: int, name: str) -> _Session | None:
        session = self._sessions.get((peer, channel))
        if session is None:
            if not self.midstream:
                self._stray(self.part, peer, name, "session")
            return None
        self.late = self.late or _OTHER[peer] in session.ended
        return session

    def _stray(self, part: TranscriptPart, peer: str, name: str, lacks: str) -> None:
        """A frame about something that is not there. How many of them there are, is timing."""
        if (id(part), peer, name) in self._strays:
            return
        self._strays.add((id(part), peer, name))
        self.say(part, peer, peer, CanonicalFrame(name, (Entry("without", lacks),)))

    # Links

    def _attach(self, peer: str, record: FrameRecord, body: Attach) -> None:
        session = self._session(peer, int(record.frame.channel), "attach")
        if session is None:
            return
        sender = peer if body.role is not True else _OTHER[peer]
        name = body.name or ""
        number = session.attaches.get((peer, sender, name), 0)
        session.attaches[peer, sender, name] = number + 1
        link = session.names.get((sender, name, number))
        if link is None:
            if not self.may_have(session.part.parts):
                return
            part = TranscriptPart("link", word(name, _LABEL), self.frames)
            session.part.parts.append(part)
            link = session.names[sender, name, number] = _Link(part, sender)
            part.keys = [sender, mask_numbers(name)]
        if body.handle is not None:
            session.handles[peer, int(body.handle)] = link
        self._learn(peer, body)
        address = _address(body, sender, self._names)
        if address:
            link.part.marks.add(f"{sender} sends: {address}")
            link.part.label = word(address, _LABEL)
            session.part.marks.add(f"{sender} sends: {address}")
            self.part.marks.add(f"{sender} sends: {address}")
        self.late = self.late or _OTHER[peer] in link.ended
        self.say(link.part, peer, peer, self._forms.of(record.frame))

    def _learn(self, peer: str, body: Attach) -> None:
        """A node that is made for a link gets its name from the peer that makes it."""
        for terminus in (body.source, body.target):
            if (
                isinstance(terminus, (Source, Target))
                and terminus.dynamic
                and isinstance(terminus.address, str)
            ):
                self._names.generated(terminus.address)

    def _detach(self, peer: str, record: FrameRecord, body: Detach) -> None:
        session = self._session(peer, int(record.frame.channel), "detach")
        if session is None:
            return
        link = None if body.handle is None else session.handles.pop((peer, int(body.handle)), None)
        if link is None:
            self._stray(session.part, peer, "detach", "link")
            return
        self.late = self.late or _OTHER[peer] in link.ended
        _dropped(link, peer)
        _broken(link.part, peer, body.error)
        link.ended.add(peer)
        self.say(link.part, peer, peer, self._forms.of(record.frame))

    def _flow(self, peer: str, channel: int, body: Flow) -> None:
        if body.handle is None:
            return
        session = self._session(peer, channel, "flow")
        if session is None:
            return
        link = session.handles.get((peer, int(body.handle)))
        if link is None:
            self._stray(session.part, peer, "flow", "link")
            return
        if link.sender == peer:
            return
        self.late = self.late or _OTHER[peer] in link.ended
        if body.link_credit and not link.granted:
            link.granted = True
            self.say(
                link.part,
                peer,
                peer,
                CanonicalFrame("flow", (Entry("link-credit", str(int(body.link_credit))),)),
            )
        drains = body.drain is True
        if drains and not link.draining:
            self.say(link.part, peer, peer, CanonicalFrame("flow", (Entry("drain", "true"),)))
        link.draining = drains

    # Deliveries

    def _transfer(
        self, peer: str, channel: int, body: Transfer, message: Message | None, hidden: bool
    ) -> None:
        session = self._session(peer, channel, "transfer")
        if session is None:
            return
        link = None if body.handle is None else session.handles.get((peer, int(body.handle)))
        if link is None:
            self._stray(session.part, peer, "transfer", "link")
            return
        if link.sender != peer:
            return
        self.late = self.late or _OTHER[peer] in link.ended
        if link.under_way < 0:
            link.under_way = self.say(link.part, DELIVERIES, peer, _UNFINISHED)
            link.settled = False
            link.state = None
            link.flags = []
            waiting = session.deliveries[peer]
            if body.delivery_id is not None:
                if len(waiting) >= MAX_COMPARED_UNSETTLED:
                    waiting.popitem(last=False)
                waiting[int(body.delivery_id)] = (link, link.under_way)
        link.settled = link.settled or body.settled is True
        link.state = body.state if body.state is not None else link.state
        if body.resume and "resume" not in link.flags:
            link.flags.append("resume")
        if body.aborted:
            link.flags.append("aborted")
        elif body.more:
            return
        link.part.settled = link.part.settled or link.settled
        form = self._forms.transfer(link.settled, link.state, link.flags, message, hidden)
        self.amend(link.part, DELIVERIES, link.under_way, form)
        link.under_way = -1

    def _disposition(self, peer: str, channel: int, body: Disposition) -> None:
        session = self._session(peer, channel, "disposition")
        if session is None or body.first is None or (body.state is None and not body.settled):
            return
        by_receiver = body.role is True
        waiting = session.deliveries[_OTHER[peer] if by_receiver else peer]
        first = int(body.first)
        count = (int(first if body.last is None else body.last) - first) % (1 << 32) + 1
        if count > len(waiting):
            numbers = sorted(number for number in waiting if (number - first) % (1 << 32) < count)
        else:
            numbers = [number for step in range(count) if (number := (first + step) % (1 << 32)) in waiting]
        form = self._forms.state(body.state, body.settled)
        strand = OUTCOMES if by_receiver else SETTLEMENTS
        late = self.late
        for number in numbers:
            link, place = waiting[number]
            self.late = late or _OTHER[peer] in link.ended
            self.say_of(link.part, strand, peer, place, form)
            if body.settled and by_receiver:
                # The sender may still say that it has settled, too, or not: that tells nothing.
                del waiting[number]


_UNFINISHED = CanonicalFrame("transfer", (Entry("complete", "false"),))


def _broken(part: TranscriptPart, peer: str, error: object) -> None:
    """A peer ends something, maybe with an error."""
    if error is not None and not part.broken_by:
        part.broken_by = peer


def _dropped(link: _Link, peer: str) -> None:
    """A peer ends a link, alone or with its session."""
    if not link.ended and peer != link.sender and not link.part.dropped_by:
        link.part.dropped_by = peer


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
