"""A connection as it stands: both endpoints' states, windows, credit and what is unsettled, as plain values.

A snapshot is made when someone asks for it and then changes no more. What the two endpoints have said counts
as if it had all arrived: it is what will be, if nobody says anything more, not what each one knows already
(that is `tracking.inbox`). So a receiver's credit is there as soon as it was granted, and a link is blocked
only when nothing is on its way that would help. `unread` tells how much is.

States and names are the specification's. A number that is not known, because nobody has said it or what said
it was not captured, is UNKNOWN. Names come from the wire and are to be escaped where they are shown.
"""

from typing import Final

from amqpscope.reassembly.stalls import Stall
from dissectors.wire import i64

__all__ = [
    "UNKNOWN",
    "ChannelSnapshot",
    "ConnectionSnapshot",
    "ConsumerSnapshot",
    "EndSnapshot",
    "LinkSnapshot",
    "SessionEndSnapshot",
    "SessionSnapshot",
]

# mypyc: sentinel, a number that is not known.
UNKNOWN: Final = -1


class EndSnapshot:
    """One end of a connection.

    peer: `client` or `server`. state: of the connection, as this end sees it. said: what it stated about
    itself (`product`, `version`, `container-id` ...). frames, last_time (ns): of its stream. unread: frames
    on their way to it that nothing shows it to have received. whole: nothing is missing of what concerns it.
    max_frame_size (octets), channel_max, idle (ns): what it proposed or, in AMQP 0-9-1 the client, agreed to;
    idle 0: none is asked for. stall: when it could not write last, if that was looked for and there was such
    a time.
    """

    def __init__(self, peer: str, state: str) -> None:
        self.peer: str = peer
        self.state: str = state
        self.said: dict[str, str] = {}
        self.frames: i64 = 0
        self.last_time: i64 = 0
        self.unread: i64 = 0
        self.whole: bool = True
        self.max_frame_size: i64 = UNKNOWN
        self.channel_max: i64 = UNKNOWN
        self.idle: i64 = UNKNOWN
        self.stall: Stall | None = None


class SessionEndSnapshot:
    """One end of a session of AMQP 1.0.

    channel: on which it sends, UNKNOWN while it has not begun. next_outgoing_id, next_incoming_id: as 32 bits
    of the wire. window: transfers that the peer lets it send now; outgoing_window: that it has announced
    itself. unsettled: its deliveries that nobody has settled.
    """

    def __init__(self, channel: i64, state: str) -> None:
        self.channel: i64 = channel
        self.state: str = state
        self.next_outgoing_id: i64 = UNKNOWN
        self.next_incoming_id: i64 = UNKNOWN
        self.window: i64 = UNKNOWN
        self.outgoing_window: i64 = UNKNOWN
        self.unsettled: i64 = 0


class LinkSnapshot:
    """A link of AMQP 1.0.

    sender: which peer sends on it. sender_state, receiver_state: of its two ends, "" for one that is not
    known. source, target: addresses, "" if there is none. credit: deliveries that may begin now.
    delivery_count: the sender's, as 32 bits of the wire. available: messages that the sender said to have
    when it last sent a flow. deliveries: that it began since it attached; unsettled: of all of its.
    unfinished: one has begun and is not whole yet.
    """

    def __init__(self, name: str, sender: str) -> None:
        self.name: str = name
        self.sender: str = sender
        self.sender_state: str = ""
        self.receiver_state: str = ""
        self.source: str = ""
        self.target: str = ""
        self.coordinator: bool = False
        self.credit: i64 = UNKNOWN
        self.delivery_count: i64 = UNKNOWN
        self.available: i64 = UNKNOWN
        self.drain: bool = False
        self.deliveries: i64 = 0
        self.unsettled: i64 = 0
        self.unfinished: bool = False


class SessionSnapshot:
    """A session of AMQP 1.0: its two ends, None for one that is not known, and its links.

    number: counts the begins on the connection. more_links: that are not among `links`.
    """

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.client: SessionEndSnapshot | None = None
        self.server: SessionEndSnapshot | None = None
        self.links: list[LinkSnapshot] = []
        self.more_links: i64 = 0


class ConsumerSnapshot:
    """A consumer of AMQP 0-9-1. prefetch: the window it began with, UNKNOWN without one. unacknowledged:
    of the deliveries to it, UNKNOWN if these are too many to look through."""

    def __init__(self, tag: str, queue: str) -> None:
        self.tag: str = tag
        self.queue: str = queue
        self.no_ack: bool = False
        self.exclusive: bool = False
        self.prefetch: i64 = UNKNOWN
        self.unacknowledged: i64 = UNKNOWN


class ChannelSnapshot:
    """A channel of AMQP 0-9-1.

    prefetch: the window of the whole channel, UNKNOWN without one. deliveries: the last delivery-tag;
    unacknowledged: of these. confirming: messages published are confirmed; published: since then;
    unconfirmed: of these. client_stopped, server_stopped: who must send no content (channel.flow). asked:
    requests of the client's that wait for an answer; first_asked, asked_time (ns): the oldest one's name and
    time.
    """

    def __init__(self, number: i64, state: str) -> None:
        self.number: i64 = number
        self.state: str = state
        self.prefetch: i64 = UNKNOWN
        self.deliveries: int = 0
        self.unacknowledged: i64 = 0
        self.confirming: bool = False
        self.published: int = 0
        self.unconfirmed: i64 = 0
        self.transacted: bool = False
        self.client_stopped: bool = False
        self.server_stopped: bool = False
        self.asked: i64 = 0
        self.first_asked: str = ""
        self.asked_time: i64 = 0
        self.consumers: list[ConsumerSnapshot] = []
        self.more_consumers: i64 = 0


class ConnectionSnapshot:
    """A connection: its two ends and, as its protocol has them, sessions or channels.

    blocked: the server has said that it takes no messages (connection.blocked). virtual_host: of
    AMQP 0-9-1. more_sessions, more_channels: that are not in the lists.
    """

    def __init__(self, client: EndSnapshot, server: EndSnapshot) -> None:
        self.client: EndSnapshot = client
        self.server: EndSnapshot = server
        self.virtual_host: str = ""
        self.blocked: bool = False
        self.sessions: list[SessionSnapshot] = []
        self.more_sessions: i64 = 0
        self.channels: list[ChannelSnapshot] = []
        self.more_channels: i64 = 0
