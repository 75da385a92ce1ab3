"""The data of one connection for a summary, for any protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpscope.limits import MAX_SUMMARY_ADDRESSES, MAX_SUMMARY_ERRORS, MAX_SUMMARY_LINKS
from amqpscope.model.passwords import without_password
from amqpscope.model.peer_name import PeerName
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.events import Conversation

if TYPE_CHECKING:
    from amqpscope.diagnoses.amqp091.numbers import Numbers091
    from amqpscope.diagnoses.amqp10.numbers import Numbers10

__all__ = ["ConnectionOverview", "ErrorSummary", "LinkSummary", "PeerOverview"]


class LinkSummary:
    """One link: its name, who sends on it, its addresses, and what went over it.

    ended: who detached or closed it first, or "". error: the condition one of its detaches gave, or "".
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.transfers = 0
        self.messages = 0
        self.octets = 0
        self.aborted = 0
        self.ended = ""
        self.error = ""

    @property
    def source(self) -> str | None:
        """The address of its source."""
        return None if self.link.source is None else without_password(self.link.source)

    @property
    def target(self) -> str | None:
        """The address of its target."""
        if self.link.coordinator:
            return "coordinator"
        return None if self.link.target is None else without_password(self.link.target)


class ErrorSummary:
    """An error that a peer reported, in a frame or delivery state: `count` times, first in `packet`.

    cause: the method of AMQP 0-9-1 that the first of these frames names as its cause, "" for none.
    """

    def __init__(
        self,
        packet: int,
        peer: str,
        what: str,
        condition: str,
        description: str | None,
        link: str | None,
        cause: str,
    ) -> None:
        self.packet = packet
        self.peer = peer
        self.what = what
        self.condition = condition
        self.description = description
        self.link = link
        self.cause = cause
        self.count = 0


class PeerOverview:
    """What one peer of a connection sent. Times are in ns."""

    def __init__(self) -> None:
        self.frames = 0
        self.messages = 0
        self.message_octets = 0
        # What it calls itself, "" if it does not.
        self.container = ""
        self.product = ""
        # The packet of its close, or of its answer to one; 0 while there is none.
        self.closed = 0
        # Its first frame, its last one, and the packet of that.
        self.began = 0
        self.last_time = 0
        self.last_packet = 0
        # The longest time between two of its frames, the packet before it, and the limit, 0 for none.
        self.longest = 0
        self.longest_packet = 0
        self.limit = 0

    def heard(self, record: FrameRecord) -> None:
        """The next frame of the peer."""
        self.frames += 1
        time = int(record.time)
        if not self.began:
            self.began = time
        elif time - self.last_time > self.longest:
            self.longest, self.longest_packet = time - self.last_time, self.last_packet
        self.last_time, self.last_packet = int(record.last_time), int(record.packet)


# mypyc: null objects, of connections without links, addresses and errors. Nothing writes to them.
_NO_LINKS: Final[dict[Link, LinkSummary]] = {}
_NO_ADDRESSES: Final[dict[str, None]] = {}
_NO_ERRORS: Final[dict[tuple[str, str, str, str | None, str | None], ErrorSummary]] = {}


class ConnectionOverview:
    """One connection, put together from its frames.

    conversation: follows it. numbers: counted and measured, None where nothing was.
    session_word: what the protocol calls its sessions.
    """

    def __init__(self, connection: Connection, conversation: Conversation) -> None:
        self.connection = connection
        self.first_time = 0
        self.last_time = 0
        self.client = PeerOverview()
        self.server = PeerOverview()
        self.mechanism = ""
        self.sasl_outcome = ""
        protocol = protocol_of(connection.protocol)
        self.session_word = protocol.session_word
        self.links: dict[Link, LinkSummary] = _NO_LINKS
        self.links_dropped = 0
        # Of AMQP 0-9-1: the first exchanges or queues that the client publishes to, and queues it takes from.
        self.targets: dict[str, None] = _NO_ADDRESSES
        self.sources: dict[str, None] = _NO_ADDRESSES
        self.problems = 0
        self.conversation: Conversation = conversation
        self.numbers: Numbers10 | Numbers091 | None = None
        self.errors: dict[tuple[str, str, str, str | None, str | None], ErrorSummary] = _NO_ERRORS
        self.errors_dropped = 0

    def of(self, peer: str) -> PeerOverview:
        """What a peer sent."""
        return self.client if peer == CLIENT else self.server

    @property
    def peers(self) -> tuple[tuple[str, PeerOverview], ...]:
        """Both peers, by name."""
        return (CLIENT, self.client), (SERVER, self.server)

    @property
    def sessions(self) -> int:
        """How many sessions were begun, or channels opened."""
        return int(self.conversation.sessions)

    def introduce(self, peer: str, name: PeerName | None) -> None:
        """A peer says what it calls itself, or None."""
        if name is not None:
            self.of(peer).container = name.name
            self.of(peer).product = name.product

    def publishes_to(self, exchange: str, routing_key: str) -> None:
        """The client of AMQP 0-9-1 publishes a message."""
        name = exchange or routing_key
        if name in self.targets:
            return
        if self.targets is _NO_ADDRESSES:
            self.targets = {}
        if len(self.targets) < MAX_SUMMARY_ADDRESSES:
            self.targets[without_password(name)] = None

    def takes_from(self, queue: str) -> None:
        """The client of AMQP 0-9-1 consumes from a queue, or gets messages from it."""
        if self.sources is _NO_ADDRESSES:
            self.sources = {}
        if len(self.sources) < MAX_SUMMARY_ADDRESSES:
            self.sources[without_password(queue)] = None

    def met(self, link: Link) -> None:
        """A link begins, or is met again."""
        if link not in self.links:
            if self.links is _NO_LINKS:
                self.links = {}
            if len(self.links) < MAX_SUMMARY_LINKS:
                self.links[link] = LinkSummary(link)
            else:
                self.links_dropped += 1

    def failed(
        self,
        record: FrameRecord,
        what: str,
        condition: str,
        description: str | None,
        link: Link | None,
        cause: str = "",
    ) -> None:
        """A peer reports an error. what: the frame or outcome it stands in. cause: the method it names."""
        name = None if link is None else link.name
        key = (record.peer, what, condition, description, name)
        known = self.errors.get(key)
        if known is None:
            if len(self.errors) >= MAX_SUMMARY_ERRORS:
                self.errors_dropped += 1
                return
            if self.errors is _NO_ERRORS:
                self.errors = {}
            known = ErrorSummary(int(record.packet), record.peer, what, condition, description, name, cause)
            self.errors[key] = known
        known.count += 1
