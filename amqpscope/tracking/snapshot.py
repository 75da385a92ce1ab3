"""The current state of a connection: both endpoints' states, windows, credit and unsettled deliveries, as
plain values.

A snapshot is made on request and never changes. Frames on their way count as received: the snapshot shows the
state if nobody sends anything more, not what each endpoint already knows (`tracking.inbox` has that). A
receiver's credit therefore counts as soon as it was granted, and a link is blocked only if no frame on its
way would help. `unread` counts the frames on their way.

States and names are those of the specification. A number that was not sent or not captured is UNKNOWN. Names
come from the wire and have to be escaped before they are shown.
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

    peer: `client` or `server`. state: the connection's state at this end. said: what the peer stated about
    itself (`product`, `version`, `container-id` ...). frames, last_time (ns): of its stream. unread: frames
    on their way to this end that nothing proves to be received. whole: nothing that concerns this end is
    missing. max_frame_size (octets), channel_max, idle (ns): what this end proposed, or what the client of
    AMQP 0-9-1 agreed to; idle 0: no limit. stall: when this end could not write for the last time, if there
    was such a time and it was looked for.
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

    channel: the channel on which it sends, UNKNOWN before its begin. next_outgoing_id, next_incoming_id: the
    32 bits of the wire. window: how many transfers the peer lets it send now; outgoing_window: the window
    that it has announced. unsettled: its deliveries that nobody has settled.
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

    sender: the peer that sends on it. sender_state, receiver_state: the states of its two ends, "" if
    unknown. source, target: addresses, "" if there is none. credit: deliveries that may start now.
    delivery_count: the sender's, as 32 bits of the wire. available: the messages that the sender reported in
    its last flow. deliveries: those started since the attach; unsettled: all unsettled deliveries of the
    link. unfinished: a delivery has started and is not complete yet.
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
    """A session of AMQP 1.0: its two ends, None if unknown, and its links.

    number: counts the begins on the connection. more_links: how many links are not in `links`.
    """

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.client: SessionEndSnapshot | None = None
        self.server: SessionEndSnapshot | None = None
        self.links: list[LinkSnapshot] = []
        self.more_links: i64 = 0


class ConsumerSnapshot:
    """A consumer of AMQP 0-9-1.

    prefetch: the prefetch-count with which it started, UNKNOWN without one. unacknowledged: its
    unacknowledged deliveries, UNKNOWN if there are too many to count.
    """

    def __init__(self, tag: str, queue: str) -> None:
        self.tag: str = tag
        self.queue: str = queue
        self.no_ack: bool = False
        self.exclusive: bool = False
        self.prefetch: i64 = UNKNOWN
        self.unacknowledged: i64 = UNKNOWN


class ChannelSnapshot:
    """A channel of AMQP 0-9-1.

    prefetch: the prefetch-count of the whole channel, UNKNOWN without one. deliveries: the last delivery-tag;
    unacknowledged: how many of these deliveries are unacknowledged. confirming: the channel is in confirm
    mode; published: how many messages since then; unconfirmed: how many of them are unconfirmed.
    client_stopped, server_stopped: which peer must send no content (channel.flow). asked: how many requests
    of the client wait for an answer; first_asked, asked_time (ns): the name and the time of the oldest one.
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
    """A connection: its two ends and, depending on the protocol, its sessions or channels.

    blocked: the server accepts no messages (connection.blocked). virtual_host: of AMQP 0-9-1. more_sessions,
    more_channels: how many are not in the lists.
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
