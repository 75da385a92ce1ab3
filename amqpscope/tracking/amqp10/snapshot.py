"""The snapshot of an AMQP 1.0 connection, out of the standing of its two endpoints (see `tracking.snapshot`).

Theory of operation. An endpoint stands as it could have known its peer by its newest frame; what the peer
said since is in its inbox. For a snapshot all of that counts, so it is looked through once
(`Amqp10InFlight`): by session and link the newest flow, how many transfers came, which deliveries were
settled, what was answered. With that the endpoint's fields are read as they will be; they themselves are not
changed.

Sessions of both ends are joined by the channel on which the one sends and the other receives, links by name
and opposite roles. All of it is bounded: of a connection with more links than anybody reads the first are
shown and the others counted.
"""

from typing import Final

from amqpscope.limits import MAX_SNAPSHOT_DELIVERIES, MAX_SNAPSHOT_LINKS
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.tracking.amqp10.endpoint_state import EndpointState
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.session_deliveries import among
from amqpscope.tracking.amqp10.states import (
    CONNECTION,
    LINK,
    RECEIVE_ATTACH,
    RECEIVE_BEGIN,
    RECEIVE_CLOSE,
    RECEIVE_DETACH,
    RECEIVE_END,
    RECEIVE_HEADER,
    RECEIVE_OPEN,
    SESSION,
)
from amqpscope.tracking.amqp10.transfer_ids import FAR
from amqpscope.tracking.knowledge import UNBASED
from amqpscope.tracking.serial import nearest, raw
from amqpscope.tracking.snapshot import (
    UNKNOWN,
    ConnectionSnapshot,
    EndSnapshot,
    LinkSnapshot,
    SessionEndSnapshot,
    SessionSnapshot,
)
from dissectors.amqp10.frame import ProtocolHeader
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
from dissectors.wire import i64

__all__ = ["take_snapshot"]

_MILLISECOND: Final = 1_000_000


class OnLink:
    """What is on its way to one end of a link.

    steps: what it does to the state. attach: the last. flow: the last that grants credit. drain: of the last
    flow, None if there is none. attaches: how many; flow_after, drain_after: behind how many these came.
    """

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.attach: Attach | None = None
        self.flow: Flow | None = None
        self.drain: bool | None = None
        self.attaches: i64 = 0
        self.flow_after: i64 = 0
        self.drain_after: i64 = 0


class OnSession:
    """What is on its way to one end of a session.

    channel: on which the peer sends. begin: what answers this end's, if that is on its way. received: the
    transfer-id of the peer's that is next once all has arrived. flows: those with an incoming-window, each
    beside whether it says which transfer is next.
    """

    def __init__(self, channel: int, session: SessionEnd | None, begin: Begin | None) -> None:
        self.channel: int = channel
        self.session: SessionEnd | None = session
        self.begin: Begin | None = begin
        self.received: i64 = 0
        if begin is not None:
            self.received = begin.next_outgoing_id or 0
        elif session is not None:
            self.received = session.incoming.next_id
        self.flows: list[tuple[Flow, bool]] = []
        self.ended: bool = False
        self.settled: list[Disposition] = []
        # The peer's handles as far as they change; its links by name and whether this end sends on them.
        self.handles: dict[int, tuple[str, bool] | None] = {}
        self.links: dict[tuple[str, bool], OnLink] = {}

    def link(self, handle: int) -> OnLink | None:
        """What comes on a link of the peer's."""
        key: tuple[str, bool] | None = None
        if handle in self.handles:
            key = self.handles[handle]
        elif self.session is not None:
            link = self.session.peer_handles.get(handle)
            if link is not None:
                key = (link.name, link.sender)
        return None if key is None else self.named(key)

    def named(self, key: tuple[str, bool]) -> OnLink:
        """What comes on a link, by its name and whether this end sends on it."""
        found = self.links.get(key)
        if found is None:
            found = OnLink()
            self.links[key] = found
        return found

    def add(self, body: object) -> None:
        """The next of it."""
        if isinstance(body, Transfer):
            self.received += 1
        elif isinstance(body, Flow):
            right = True
            if body.next_outgoing_id is not None:
                following = nearest(body.next_outgoing_id, self.received)
                right = following == self.received
                self.received = max(following, self.received)
            if body.incoming_window is not None:
                self.flows.append((body, right))
            if body.handle is not None:
                on = self.link(body.handle)
                if on is not None:
                    on.drain = body.drain is True
                    on.drain_after = on.attaches
                    if body.link_credit is not None:
                        on.flow = body
                        on.flow_after = on.attaches
        elif isinstance(body, Disposition):
            if body.role is True and body.settled and body.first is not None:
                self.settled.append(body)
        elif isinstance(body, Attach):
            if body.name is not None and body.role is not None:
                # A receiver at the other end is a sender at this one.
                on = self.named((body.name, body.role))
                on.attach = body
                on.attaches += 1
                on.steps.append(RECEIVE_ATTACH)
                if body.handle is not None:
                    self.handles[body.handle] = (body.name, body.role)
        elif isinstance(body, Detach):
            if body.handle is not None:
                on = self.link(body.handle)
                if on is not None:
                    on.steps.append(RECEIVE_DETACH)
                self.handles[body.handle] = None


class Amqp10InFlight:
    """What is on its way to one endpoint.

    state: of the connection once it has arrived.
    """

    def __init__(self, end: EndpointState) -> None:
        self.end: EndpointState = end
        self.count: i64 = 0
        self.state: str = end.state
        # By the channel on which the peer sends; and the answers to begins, by this endpoint's channel.
        self.channels: dict[int, OnSession | None] = {}
        self.answers: dict[int, list[OnSession]] = {}
        # Of sessions that the peer had begun before.
        self.known: dict[SessionEnd, OnSession] = {}
        for arrival in end.undelivered():
            self.count += 1
            self.add(int(arrival.channel), arrival.body)

    def add(self, channel: int, body: object) -> None:
        """The next of it."""
        if isinstance(body, Open):
            self.state = CONNECTION.after(self.state, RECEIVE_OPEN)
        elif isinstance(body, Close):
            self.state = CONNECTION.after(self.state, RECEIVE_CLOSE)
        elif isinstance(body, ProtocolHeader):
            if body.protocol() == "AMQP 1.0":
                self.state = CONNECTION.after(self.state, RECEIVE_HEADER)
        elif isinstance(body, Begin):
            if self.on(channel) is None:
                on = OnSession(channel, None, body)
                self.channels[channel] = on
                if body.remote_channel is not None:
                    self.answers.setdefault(body.remote_channel, []).append(on)
        else:
            session = self.on(channel)
            if session is not None:
                session.add(body)
                if isinstance(body, End):
                    session.ended = True
                    self.channels[channel] = None

    def on(self, channel: int) -> OnSession | None:
        """What comes for the session that the peer has on a channel."""
        if channel in self.channels:
            return self.channels[channel]
        session = self.end.peer_sessions.get(channel)
        if session is None:
            return None
        found = OnSession(channel, session, None)
        self.channels[channel] = found
        self.known[session] = found
        return found

    def of(self, session: SessionEnd) -> OnSession | None:
        """What comes for a session of this endpoint's."""
        if session.peer_channel != UNKNOWN:
            return self.known.get(session)
        # Begins on one channel are answered in their order; this is the last of them.
        channel = int(session.channel)
        waiting: i64 = len(self.end.channels.unanswered.get(channel, []))
        answers = self.answers.get(channel)
        if answers is None or waiting == 0 or len(answers) < waiting:
            return None
        return answers[waiting - 1]

    def channel_of(self, session: SessionEnd) -> int:
        """The channel on which the peer sends on a session of this endpoint's, UNKNOWN if it does not yet."""
        if session.peer_channel != UNKNOWN:
            return int(session.peer_channel)
        on = self.of(session)
        return UNKNOWN if on is None else on.channel


def take_snapshot(client: EndpointState, server: EndpointState) -> ConnectionSnapshot:
    """The connection between two endpoints as it stands."""
    to_client = Amqp10InFlight(client)
    to_server = Amqp10InFlight(server)
    snapshot = ConnectionSnapshot(_end(CLIENT, client, to_client), _end(SERVER, server, to_server))
    room: i64 = MAX_SNAPSHOT_LINKS
    # Those of the client's sessions that the server has not, and the other way round, have one end.
    joined: set[int] = set()
    for session in client.sessions.values():
        partner = _partner(session, server, to_client)
        if partner is not None:
            joined.add(int(partner.channel))
        if room > 0:
            room -= _add_session(snapshot, session, partner, to_client, to_server, room)
        else:
            snapshot.more_sessions += 1
    for channel, session in server.sessions.items():
        if channel in joined:
            continue
        partner = _partner(session, client, to_server)
        if partner is not None and client.sessions.get(int(partner.channel)) is partner:
            continue
        if room > 0:
            room -= _add_session(snapshot, partner, session, to_client, to_server, room)
        else:
            snapshot.more_sessions += 1
    return snapshot


def _end(peer: str, end: EndpointState, way: Amqp10InFlight) -> EndSnapshot:
    snapshot = EndSnapshot(peer, way.state)
    snapshot.frames = end.stream.frames
    snapshot.last_time = end.stream.last_time
    snapshot.unread = way.count
    snapshot.whole = end.whole
    opened = end.open
    if opened is not None:
        snapshot.idle = 0
        if opened.max_frame_size is not None:
            snapshot.max_frame_size = opened.max_frame_size
        if opened.channel_max is not None:
            snapshot.channel_max = opened.channel_max
        if opened.idle_time_out is not None:
            snapshot.idle = opened.idle_time_out * _MILLISECOND
    return snapshot


def _partner(session: SessionEnd, other: EndpointState, way: Amqp10InFlight) -> SessionEnd | None:
    """The other endpoint's end of a session, as far as it sends on it or has just ended it."""
    channel = way.channel_of(session)
    if channel != UNKNOWN:
        found = other.sessions.get(channel)
        if found is None:
            found = other.channels.ended.get(channel)
        return found
    return None


def _add_session(
    snapshot: ConnectionSnapshot,
    client: SessionEnd | None,
    server: SessionEnd | None,
    to_client: Amqp10InFlight,
    to_server: Amqp10InFlight,
    room: i64,
) -> i64:
    """Add a session by the ends that are known; the room for links that it takes, at least one."""
    number: i64 = 0
    if client is not None:
        number = client.number
    elif server is not None:
        number = server.number
    session = SessionSnapshot(number)
    snapshot.sessions.append(session)
    links: dict[tuple[str, bool], LinkSnapshot] = {}
    if client is not None:
        session.client = _session_end(client, to_client)
        _add_links(session, links, client, CLIENT, to_client, room)
    if server is not None:
        session.server = _session_end(server, to_server)
        _add_links(session, links, server, SERVER, to_server, room)
    if client is not None and session.client is not None:
        _count(links, client, True, session.client, to_client)
    if server is not None and session.server is not None:
        _count(links, server, False, session.server, to_server)
    taken: i64 = len(session.links)
    return taken if taken > 0 else 1


def _session_end(session: SessionEnd, way: Amqp10InFlight) -> SessionEndSnapshot:
    on = way.of(session)
    state = session.state
    begin = session.peer_begin
    received = session.incoming.next_id
    if on is not None:
        if session.peer_channel == UNKNOWN:
            state = SESSION.after(state, RECEIVE_BEGIN)
            begin = on.begin
        if on.ended:
            state = SESSION.after(state, RECEIVE_END)
        received = on.received
    snapshot = SessionEndSnapshot(session.channel, state)
    if session.begin is not None:
        snapshot.next_outgoing_id = raw(session.outgoing.next_id)
        if session.outgoing.own_limit != FAR:
            snapshot.outgoing_window = max(session.outgoing.own_limit - session.outgoing.next_id, 0)
    if begin is not None:
        snapshot.next_incoming_id = raw(received)
    bound: i64 = UNKNOWN
    if on is not None and len(on.flows) > 0:
        bound = _window_of(session, on, begin)
    elif len(session.outgoing.limits) > 0:
        bound = session.outgoing.limits.newest()
        if bound < UNBASED // 2:
            bound += session.outgoing.initial_id - UNBASED
    elif begin is not None and begin.incoming_window is not None:
        bound = session.outgoing.initial_id + begin.incoming_window
    if bound != UNKNOWN:
        snapshot.window = max(bound - session.outgoing.next_id, 0)
    return snapshot


def _window_of(session: SessionEnd, on: OnSession, begin: Begin | None) -> i64:
    """The first transfer-id beyond the window that the flows leave which are on their way.

    As `OutgoingTransfers.receive_flow` takes them.
    """
    outgoing = session.outgoing
    known = outgoing.begin_known
    largest: i64 = UNKNOWN
    if len(outgoing.limits) > 0:
        largest = outgoing.limits.largest()
    elif begin is not None and begin.incoming_window is not None:
        largest = outgoing.initial_id + begin.incoming_window
    if on.begin is not None:
        known = known or on.begin.remote_channel is not None
    bound: i64 = UNKNOWN
    for flow, right in on.flows:
        window: i64 = flow.incoming_window or 0
        if flow.next_incoming_id is not None:
            bound = nearest(flow.next_incoming_id, outgoing.next_id) + window
            if not right:
                bound = max(bound, largest)
        else:
            bound = outgoing.initial_id + window
            if known:
                bound = max(bound, largest + window)
            elif not right:
                bound = max(bound, largest)
        known = known or flow.next_incoming_id is not None
        largest = max(largest, bound)
    return bound


def _add_links(
    session: SessionSnapshot,
    links: dict[tuple[str, bool], LinkSnapshot],
    end: SessionEnd,
    peer: str,
    way: Amqp10InFlight,
    room: i64,
) -> None:
    """Add the links that one end has attached, or go on with those that the other one has, too."""
    session_mail = way.of(end)
    other = SERVER if peer == CLIENT else CLIENT
    for link in end.handles.values():
        by_client = link.sender if peer == CLIENT else not link.sender
        key = (link.name, by_client)
        snapshot = links.get(key)
        if snapshot is None:
            if len(session.links) >= room:
                session.more_links += 1
                continue
            snapshot = LinkSnapshot(link.name, peer if link.sender else other)
            links[key] = snapshot
            session.links.append(snapshot)
        on: OnLink | None = None
        if session_mail is not None:
            on = session_mail.links.get((link.name, link.sender))
        _snapshot_link(snapshot, link, on)


def _snapshot_link(snapshot: LinkSnapshot, link: LinkEnd, on: OnLink | None) -> None:
    """What one end of a link tells of it."""
    state = link.state
    theirs = link.peer_attach
    flow: Flow | None = None
    drain = link.credit.drain
    # Credit belongs to one attachment: the peer's attach that answers the last of this end ends the older.
    forgotten = False
    whole = link.whole
    if on is not None:
        for step in on.steps:
            state = LINK.after(state, step)
        if on.attach is not None:
            theirs = on.attach
        due = link.attachment.times - link.attachment.peer_times
        forgotten = 1 <= due <= on.attaches
        if on.attaches > 0 and not on.attaches == due == 1:
            whole = False
        if on.flow_after >= due or not forgotten:
            flow = on.flow
        if on.drain is not None and (on.drain_after >= due or not forgotten):
            drain = on.drain
        elif forgotten:
            drain = False
    attach = link.attach
    # The source is the sender's to tell, the target the receiver's, as far as they have.
    first, second = (attach, theirs) if link.sender else (theirs, attach)
    snapshot.source = _address(first, second, True) or snapshot.source
    snapshot.target = _address(second, first, False) or snapshot.target
    snapshot.coordinator = snapshot.coordinator or link.coordinator
    if not link.sender:
        snapshot.receiver_state = state
        return
    snapshot.sender_state = state
    snapshot.delivery_count = raw(link.credit.count)
    snapshot.available = link.credit.offered
    snapshot.deliveries = link.credit.anew
    snapshot.unfinished = link.open is not None
    snapshot.drain = drain
    bound: i64 = UNKNOWN
    if flow is not None and flow.link_credit is not None:
        bound = link.initial_count
        if flow.delivery_count is not None:
            bound = nearest(flow.delivery_count, link.credit.count)
        ahead = bound > link.credit.count
        bound += flow.link_credit
        if ahead and len(link.credit.limits) > 0 and not forgotten:
            # A wrong flow need not be obeyed.
            bound = max(bound, link.credit.limits.largest())
    elif len(link.credit.limits) > 0 and not forgotten:
        bound = link.credit.limits.newest()
        if bound < UNBASED // 2:
            bound += link.initial_count - UNBASED
    elif whole:
        bound = link.credit.count
    if bound != UNKNOWN:
        snapshot.credit = max(bound - link.credit.count, 0)


def _address(first: Attach | None, second: Attach | None, source: bool) -> str:
    """The address of the source or the target, as the first of the two says it, or else the second."""
    for attach in (first, second):
        if attach is not None:
            terminus = attach.source if source else attach.target
            if isinstance(terminus, (Source, Target)) and isinstance(terminus.address, str):
                return str(terminus.address)
    return ""


def _count(
    links: dict[tuple[str, bool], LinkSnapshot],
    end: SessionEnd,
    by_client: bool,
    snapshot: SessionEndSnapshot,
    way: Amqp10InFlight,
) -> None:
    """The unsettled deliveries of one end of a session, and of its links."""
    unsettled = end.sent.unsettled
    settled: set[int] = set()
    work: i64 = MAX_SNAPSHOT_DELIVERIES
    on = way.of(end)
    said: list[Disposition] = [] if on is None else on.settled
    for body in said:
        if not unsettled or body.first is None:
            break
        first = nearest(body.first, end.sent.last)
        last = first
        if body.last is not None:
            last = nearest(body.last, first)
        work -= 1 + min(max(last - first, 0), len(unsettled))
        if work < 0:
            break
        settled.update(among(unsettled, first, last))
    snapshot.unsettled = len(unsettled) - len(settled)
    left: i64 = MAX_SNAPSHOT_DELIVERIES
    for number, delivery in unsettled.items():
        left -= 1
        if left < 0:
            break
        if number not in settled:
            link = links.get((delivery.link.name, by_client))
            if link is not None:
                link.unsettled += 1
