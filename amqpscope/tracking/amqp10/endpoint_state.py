"""The state of one end of a connection: its fields, and what no longer follows from them.

A rule that says "the peer did not send X" is valid only if nothing is missing. An endpoint, a session and a
link have `whole` for that. When octets of either stream are missing or unreadable, `lost` clears it for all
of them. A session or link that begins later is whole again as far as the endpoint itself knows.

`Endpoint10`, a subclass, changes the fields frame by frame.
"""

from typing import Any

from amqpscope.tracking.amqp10.channels import NO_CHANNELS, Channels
from amqpscope.tracking.amqp10.headers import Headers
from amqpscope.tracking.amqp10.legibility import ALL, LINK, LINKS, SESSION
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.opening import Closing, Opening
from amqpscope.tracking.amqp10.own_stream import OwnStream
from amqpscope.tracking.amqp10.pending_error import PendingErrorResponse
from amqpscope.tracking.amqp10.sasl_exchange import SaslExchange
from amqpscope.tracking.amqp10.sent_messages import NO_MESSAGES, SentMessages
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import CONNECTION, SEND_FRAME, START
from amqpscope.tracking.correlation_budget import CorrelationBudget
from amqpscope.tracking.inbox import Recipient
from amqpscope.tracking.object_ids import ObjectIds
from dissectors.amqp10.performatives import Open
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.wire import i64

__all__ = ["EndpointState", "doubt"]


class EndpointState(Recipient):
    """One end of an AMQP 1.0 connection."""

    def __init__(self, peer: str, allowance: CorrelationBudget | None = None) -> None:
        super().__init__()
        # `client` or `server`.
        self.peer: str = peer
        # Its stream was captured from its start without a hole, and so was what it can have received of the
        # other's, so that what was not seen was not said.
        self.whole: bool = True
        # All that either said could be read so far.
        self.legible: bool = True
        # It speaks a draft of the protocol, or may do so.
        self.draft: bool = False
        # What it has sent.
        self.stream: OwnStream = OwnStream()
        # The protocol headers.
        self.headers: Headers = Headers()
        # The layer that its newest protocol header opened.
        self.layer: str = ""
        # The exchange in the SASL layer.
        self.sasl: SaslExchange = SaslExchange()
        # A state of the table `CONNECTION`.
        self.state: str = START
        # The table lets it send any frame in this state; kept beside it, because each frame asks.
        self.may_send: bool = False
        # Its own open.
        self.open: Open | None = None
        # The peer's open, once received at `could`.
        self.peer_open: Open | None = None
        # Where both opens stand.
        self.opening: Opening = Opening()
        # Whether it has closed.
        self.closing: Closing = Closing()
        # What the peer did wrong that it still has to answer.
        self.pending_errors: tuple[PendingErrorResponse, ...] = ()
        # Its sessions, by the channel it sends on.
        self.sessions: dict[int, SessionEnd] = {}
        # Its sessions, by the channel the peer sends on.
        self.peer_sessions: dict[int, SessionEnd] = {}
        # What else it knows of channels.
        self.channels: Channels = NO_CHANNELS
        # What is compared with what is sent later, or elsewhere.
        self.messages: SentMessages = NO_MESSAGES
        # How many digests of messages may still be kept, of all connections together.
        self.allowance: CorrelationBudget = CorrelationBudget() if allowance is None else allowance

    def session_on(self, channel: i64) -> SessionEnd | None:
        """The session on the channel that it sends on."""
        channels = self.channels
        if channel == channels.own_channel:
            return channels.own
        session = self.sessions.get(int(channel))
        if session is not None:
            channels.own = session
            channels.own_channel = channel
        return session

    def peer_session_on(self, channel: i64) -> SessionEnd | None:
        """The session on the channel that the peer sends on."""
        channels = self.channels
        if channel == channels.peer_channel:
            return channels.peer
        session = self.peer_sessions.get(int(channel))
        if session is not None:
            channels.peer = session
            channels.peer_channel = channel
        return session

    def used_channels(self) -> Channels:
        """What it knows of channels, to be written to."""
        if self.channels is NO_CHANNELS:
            self.channels = Channels()
        return self.channels

    def sent_messages(self) -> SentMessages:
        """What is kept of its messages, to be written to."""
        if self.messages is NO_MESSAGES:
            self.messages = SentMessages()
        return self.messages

    def step(self, action: str) -> None:
        """The connection's next state, by an input of the table `CONNECTION`."""
        self.state = CONNECTION.after(self.state, action)
        self.may_send = CONNECTION.allows(self.state, SEND_FRAME)

    # What is missing

    def lost(self) -> None:
        """Octets of either stream were not captured: nothing follows any more from what was not seen."""
        self.channels.ended.clear()
        self.closing.stands = False
        if not self.whole:
            return  # nothing that was begun since has been taken for whole
        self.whole = False
        for session in self.sessions.values():
            doubt(session)
        for session in self.peer_sessions.values():
            doubt(session)
        # Of these one may be ended on the side that is known already.
        for waiting in (*self.channels.unanswered.values(), *self.channels.peer_unanswered.values()):
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
        elif doubted == LINKS and session is not None:
            doubt_links(session)
        elif doubted == LINK and link is not None:
            link.whole = False

    def restart(self) -> None:
        """A protocol header behind both closes: both begin anew on the same TCP connection."""
        self.headers = Headers()
        self.layer = ""
        self.sasl = SaslExchange()
        self.state = START
        self.may_send = False
        self.open = None
        self.peer_open = None
        self.closing.restart()
        self.sessions = {}
        self.peer_sessions = {}
        if self.channels is not NO_CHANNELS:
            self.channels.restart()

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, each session once."""
        sessions = ObjectIds()
        tables = (_numbered(self.sessions, sessions), _numbered(self.peer_sessions, sessions))
        channels = None if self.channels is NO_CHANNELS else self.channels.dump(sessions)
        return (
            (self.peer, self.whole, self.legible, self.draft, self.layer, self.state),
            self.dump_reception(dump_value),
            (self.stream.dump(), self.headers.dump(), self.sasl.dump()),
            (dump_value(self.open), dump_value(self.peer_open), self.opening.dump(), self.closing.dump()),
            tuple(pending_error.dump() for pending_error in self.pending_errors),
            (tables, channels, tuple(_session(session).dump() for session in sessions.objects)),
            None if self.messages is NO_MESSAGES else self.messages.dump(),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` returned."""
        about, reception, layers, opens, pending_errors, sessions, messages = state
        self.peer, self.whole, self.legible, self.draft, self.layer, self.state = about
        self.may_send = CONNECTION.allows(self.state, SEND_FRAME)
        self.restore_reception(reception, load_value)
        self.stream = OwnStream.load(layers[0])
        self.headers = Headers.load(layers[1])
        self.sasl = SaslExchange.load(layers[2])
        self.open = _open(opens[0])
        self.peer_open = _open(opens[1])
        self.opening = Opening.load(opens[2])
        self.closing = Closing.load(opens[3])
        self.pending_errors = tuple(map(PendingErrorResponse.load, pending_errors))
        tables, channels, dumped = sessions
        loaded = [SessionEnd.load(session) for session in dumped]
        self.sessions = {channel: loaded[at] for channel, at in tables[0]}
        self.peer_sessions = {channel: loaded[at] for channel, at in tables[1]}
        if channels is not None:
            self.channels = Channels.load(channels, loaded)
        if messages is not None:
            self.messages = SentMessages.load(messages)


def _numbered(sessions: dict[int, SessionEnd], roll: ObjectIds) -> tuple[tuple[int, int], ...]:
    return tuple((channel, roll.number(session)) for channel, session in sessions.items())


def _session(thing: object) -> SessionEnd:
    assert isinstance(thing, SessionEnd)
    return thing


def _open(state: object) -> Open | None:
    value = load_value(state)
    return value if isinstance(value, Open) else None


def doubt(session: SessionEnd) -> None:
    """What was not seen on a session may have been said."""
    session.whole = False
    doubt_links(session)


def doubt_links(session: SessionEnd) -> None:
    """What was not seen on the links of a session may have been said."""
    # A link whose name another one has taken over is known by its handle only.
    for links in (session.links, session.handles, session.peer_handles, session.freed):
        for link in links.values():
            link.whole = False
