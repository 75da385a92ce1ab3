"""How one end of a connection stands: its fields, and what does not follow from them any more.

Each rule that says "nothing was said" rests on nothing having been missed. `whole` is that of an endpoint,
of a session and of a link; `lost` takes it from all of them when octets of either stream turn out to be
missing, or not to be understood: what is begun after that is whole again as far as the endpoint itself is.

What changes the fields frame by frame is `Endpoint`, which is one of these.
"""

from typing import Any, Final

from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.headers import Headers
from amqpscope.tracking.amqp10.legibility import ALL, LINK, SESSION
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.link_resume_state import LinkResumeState
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from amqpscope.tracking.amqp10.pending_error import PendingErrorResponse
from amqpscope.tracking.amqp10.redelivery import Fate
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.correlation_budget import CorrelationBudget
from amqpscope.tracking.inbox import Arrival, Recipient
from amqpscope.tracking.knowledge import Knowledge
from amqpscope.tracking.object_ids import ObjectIds
from dissectors.amqp10.performatives import Open
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.sasl import SaslInit, SaslMechanisms, SaslOutcome
from dissectors.wire import i64

__all__ = ["NO_CHANNEL", "EndpointState", "doubt"]

NO_CHANNEL: Final = -2
"""No frame's: what stands for none of those has -1."""


class EndpointState(Recipient):
    """One end of an AMQP 1.0 connection.

    peer: `client` or `server`. whole: its stream was captured from its start without a hole, and so was
    what it can have received of the other's, so that what was not seen was not said.
    """

    def __init__(self, peer: str, allowance: CorrelationBudget | None = None) -> None:
        super().__init__()
        self.peer: str = peer
        self.whole: bool = True
        # All that either said could be read so far.
        self.legible: bool = True
        # Its own stream.
        self.frames: i64 = 0
        self.last_time: i64 = 0
        self.last_packet: i64 = 0
        self.last_acknowledged: i64 = UNKNOWN
        # The frame inside which its stream ended, and what is missing of it.
        self.unfinished: FrameRef | None = None
        self.unfinished_reason: str = ""
        # The layer that its newest protocol header opened, and SASL. challenges: without a response yet.
        self.headers: Headers = Headers()
        self.layer: str = ""
        self.state: str = "START"
        self.mechanisms: SaslMechanisms | None = None
        self.init: SaslInit | None = None
        self.outcome: SaslOutcome | None = None
        self.challenges: i64 = 0
        # The two opens: its own, and the peer's once received at `could`.
        self.open: Open | None = None
        self.open_packet: i64 = 0
        self.peer_open: Open | None = None
        self.peer_open_end: i64 = UNKNOWN
        self.peer_open_packet: i64 = 0
        self.peer_open_time: i64 = 0
        self.closed: bool = False
        self.close_packet: i64 = 0
        self.close_time: i64 = 0
        self.close_condition: str = ""
        # Nothing is missing since: it cannot have begun anew.
        self.close_stands: bool = False
        # How often it was silent for too long. It was told that a channel is not the lowest unused one.
        self.late: i64 = 0
        self.high_told: bool = False
        # It speaks a draft of the protocol.
        self.draft: bool = False
        self.peer_closed: bool = False
        # What the peer did wrong that it still has to answer.
        self.pending_errors: list[PendingErrorResponse] = []
        # A begin without remote-channel that it sent while one of the peer's waited for its answer.
        self.unasked: FrameRef | None = None
        self.unasked_end: i64 = UNKNOWN
        # Its sessions, by the channel it sends on and by the one the peer sends on.
        self.sessions: dict[int, SessionEnd] = {}
        # The link of its own, by name, on which a delivery was last accepted, and where that was said.
        self.accepted_on: str = ""
        self.accepted_end: i64 = UNKNOWN
        # It has sent messages with reserved annotations.
        self.reserved: bool = False
        self.peer_sessions: dict[int, SessionEnd] = {}
        self.ended: dict[int, SessionEnd] = {}
        # Those asked for last, by either: nearly every frame is on the channel of the one before.
        self._own: SessionEnd | None = None
        self._own_channel: i64 = NO_CHANNEL
        self._theirs: SessionEnd | None = None
        self._their_channel: i64 = NO_CHANNEL
        self.begun: i64 = 0
        # The links on which it sends, by name, for the connection after this one.
        self.accounts: dict[str, LinkResumeState] = {}
        # Of the first messages it sent those with an id, to be found on other connections; how many were
        # looked at, and whether these are all.
        self.digests: list[MessageDigest] = []
        self.passed: i64 = 0
        self.all_passages: bool = True
        self.allowance: CorrelationBudget = CorrelationBudget() if allowance is None else allowance
        # What was said of them so far, by message-id, if they may be a distribution node's.
        self.fates: dict[bytes, Fate] = {}
        # Begins without an answer, oldest first, by the channel they came on: its own, and the peer's. A
        # session may be begun, ended and begun again before the first answer comes.
        self.unanswered: dict[int, list[SessionEnd]] = {}
        self.peer_unanswered: dict[int, list[SessionEnd]] = {}

    def session_on(self, channel: i64) -> SessionEnd | None:
        """The session on the channel that it sends on."""
        if channel == self._own_channel:
            return self._own
        session = self.sessions.get(int(channel))
        self._own = session
        self._own_channel = channel
        return session

    def peer_session_on(self, channel: i64) -> SessionEnd | None:
        """The session on the channel that the peer sends on."""
        if channel == self._their_channel:
            return self._theirs
        session = self.peer_sessions.get(int(channel))
        self._theirs = session
        self._their_channel = channel
        return session

    # What is missing

    def lost(self) -> None:
        """Octets of either stream were not captured: nothing follows any more from what was not seen."""
        self.ended.clear()
        self.close_stands = False
        if not self.whole:
            return  # nothing that was begun since has been taken for whole
        self.whole = False
        for session in self.sessions.values():
            doubt(session)
        for session in self.peer_sessions.values():
            doubt(session)
        # Of these one may be ended on the side that is known already.
        for waiting in (*self.unanswered.values(), *self.peer_unanswered.values()):
            for session in waiting:
                doubt(session)

    def blur(self, doubted: i64, session: SessionEnd | None, link: LinkEnd | None) -> None:
        """A frame that either sent could not be read: of a session and a link of this end, or of neither.

        doubted: see `tracking.amqp10.legibility`.
        """
        self.legible = False
        if doubted == ALL:
            self.lost()
        elif doubted == SESSION and session is not None:
            doubt(session)
        elif doubted == LINK and link is not None:
            link.whole = False

    def restart(self) -> None:
        """A protocol header behind both closes: both begin anew on the same TCP connection."""
        self.headers = Headers()
        self.layer = ""
        self.state = "START"
        self.open = None
        self.peer_open = None
        self.closed = False
        self.close_condition = ""
        self.peer_closed = False
        self.sessions = {}
        self.peer_sessions = {}
        self.ended = {}
        self._own_channel = NO_CHANNEL
        self._their_channel = NO_CHANNEL
        self.unanswered = {}
        self.peer_unanswered = {}

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, each session once."""
        sessions = ObjectIds()
        tables = (
            _numbered(self.sessions, sessions),
            _numbered(self.peer_sessions, sessions),
            _numbered(self.ended, sessions),
            _waiting(self.unanswered, sessions),
            _waiting(self.peer_unanswered, sessions),
        )
        return (
            (self.peer, self.whole, self.knowledge.dump(), self.legible),
            tuple(arrival.dump(dump_value(arrival.body)) for arrival in self.undelivered()),
            (
                int(self.sent_end),
                int(self.frames),
                int(self.last_time),
                int(self.last_packet),
                int(self.last_acknowledged),
            ),
            (None if self.unfinished is None else self.unfinished.dump(), self.unfinished_reason),
            (self.layer, self.state, int(self.challenges), self.headers.dump()),
            (dump_value(self.mechanisms), dump_value(self.init), dump_value(self.outcome)),
            (dump_value(self.open), int(self.open_packet)),
            (
                dump_value(self.peer_open),
                int(self.peer_open_end),
                int(self.peer_open_packet),
                int(self.peer_open_time),
            ),
            (self.closed, int(self.close_packet), int(self.close_time), self.close_condition),
            (self.close_stands, self.peer_closed, int(self.late), self.high_told, self.draft),
            (self.accepted_on, int(self.accepted_end), self.reserved),
            tuple(pending_error.dump() for pending_error in self.pending_errors),
            (None if self.unasked is None else self.unasked.dump(), int(self.unasked_end)),
            tables,
            int(self.begun),
            tuple(account.dump() for account in self.accounts.values()),
            (
                tuple(passed.dump() for passed in self.digests),
                int(self.passed),
                self.all_passages,
                tuple(fate.dump() for fate in self.fates.values()),
            ),
            tuple(_session(session).dump() for session in sessions.objects),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` told."""
        about, inbox, sent, unfinished, layer, sasl, own, theirs, closed, others = state[:10]
        accepted, pending_errors, unasked, tables, begun, accounts, digests, dumped = state[10:]
        self.peer = about[0]
        self.whole = about[1]
        self.knowledge = Knowledge.load(about[2])
        self.legible = about[3]
        self.inbox = [Arrival(load_value(one[0]), *one[1:]) for one in inbox]
        self.sent_end, self.frames, self.last_time = sent[:3]
        self.last_packet, self.last_acknowledged = sent[3:]
        self.unfinished = None if unfinished[0] is None else FrameRef.load(unfinished[0])
        self.unfinished_reason = unfinished[1]
        self.layer, self.state, self.challenges, headers = layer
        self.headers = Headers.load(headers)
        mechanisms, init, outcome = (load_value(body) for body in sasl)
        self.mechanisms = mechanisms if isinstance(mechanisms, SaslMechanisms) else None
        self.init = init if isinstance(init, SaslInit) else None
        self.outcome = outcome if isinstance(outcome, SaslOutcome) else None
        opened = load_value(own[0])
        self.open = opened if isinstance(opened, Open) else None
        self.open_packet = own[1]
        opened = load_value(theirs[0])
        self.peer_open = opened if isinstance(opened, Open) else None
        _, self.peer_open_end, self.peer_open_packet, self.peer_open_time = theirs
        self.closed, self.close_packet, self.close_time, self.close_condition = closed
        self.accepted_on, self.accepted_end, self.reserved = accepted
        self.close_stands, self.peer_closed, self.late, self.high_told = others[:4]
        self.draft = others[4]
        self.pending_errors = [PendingErrorResponse.load(pending_error) for pending_error in pending_errors]
        self.unasked = None if unasked[0] is None else FrameRef.load(unasked[0])
        self.unasked_end = unasked[1]
        sessions = [SessionEnd.load(session) for session in dumped]
        self.sessions = {channel: sessions[at] for channel, at in tables[0]}
        self.peer_sessions = {channel: sessions[at] for channel, at in tables[1]}
        self.ended = {channel: sessions[at] for channel, at in tables[2]}
        self.unanswered = {channel: [sessions[at] for at in queue] for channel, queue in tables[3]}
        self.peer_unanswered = {channel: [sessions[at] for at in queue] for channel, queue in tables[4]}
        self.begun = begun
        self.accounts = {account.name: account for account in map(LinkResumeState.load, accounts)}
        self.digests = [MessageDigest.load(passed) for passed in digests[0]]
        self.passed, self.all_passages, fates = digests[1:]
        self.fates = {fate.message_id: fate for fate in map(Fate.load, fates)}


def _numbered(sessions: dict[int, SessionEnd], roll: ObjectIds) -> tuple[tuple[int, int], ...]:
    return tuple((channel, roll.number(session)) for channel, session in sessions.items())


def _waiting(queues: dict[int, list[SessionEnd]], roll: ObjectIds) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple(
        (channel, tuple(roll.number(session) for session in queue)) for channel, queue in queues.items()
    )


def _session(thing: object) -> SessionEnd:
    assert isinstance(thing, SessionEnd)
    return thing


def doubt(session: SessionEnd) -> None:
    """What was not seen on a session may have been said."""
    session.whole = False
    # A link whose name another one has taken over is known by its handle only.
    for links in (session.links, session.handles, session.peer_handles, session.freed):
        for link in links.values():
            link.whole = False
