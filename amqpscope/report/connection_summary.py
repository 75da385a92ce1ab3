"""The data of one connection for a summary, for any protocol."""

from amqpscope.diagnoses.amqp091.numbers import Numbers091
from amqpscope.diagnoses.amqp10.numbers import Numbers10
from amqpscope.limits import MAX_SUMMARY_ADDRESSES, MAX_SUMMARY_ERRORS, MAX_SUMMARY_LINKS
from amqpscope.model.passwords import without_password
from amqpscope.model.peer_name import PeerName
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.events import Conversation

__all__ = ["ConnectionOverview", "ErrorSummary", "LinkSummary", "Silence"]


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


class Silence:
    """The longest time (ns) between two frames of one peer. packet: before it. began: the first frame.

    limit: what the peer has to keep to (ns), 0 for nothing.
    """

    def __init__(self) -> None:
        self.began = 0
        self.last_time = 0
        self.last_packet = 0
        self.longest = 0
        self.packet = 0
        self.limit = 0

    def heard(self, record: FrameRecord) -> None:
        """The next frame of the peer."""
        time = int(record.time)
        if not self.began:
            self.began = time
        elif time - self.last_time > self.longest:
            self.longest, self.packet = time - self.last_time, self.last_packet
        self.last_time, self.last_packet = int(record.last_time), int(record.packet)


class ConnectionOverview:
    """One connection, put together from its frames. What a peer said is by `client` and `server`.

    conversation: follows it. numbers: counts and measures, None if nobody does. containers: what the peers
    call themselves.
    session_word: what the protocol calls its sessions.
    """

    def __init__(
        self,
        connection: Connection,
        conversation: Conversation,
        numbers: Numbers10 | Numbers091 | None = None,
    ) -> None:
        self.connection = connection
        self.first_time = 0
        self.last_time = 0
        self.frames = {CLIENT: 0, SERVER: 0}
        self.products = {CLIENT: "", SERVER: ""}
        self.containers = {CLIENT: "", SERVER: ""}
        self.mechanism = ""
        self.sasl_outcome = ""
        protocol = protocol_of(connection.protocol)
        self.session_word = protocol.session_word
        self.links: dict[Link, LinkSummary] = {}
        self.links_dropped = 0
        # Of AMQP 0-9-1: the first exchanges or queues that the client publishes to, and queues it takes from.
        self.targets: dict[str, None] = {}
        self.sources: dict[str, None] = {}
        self.messages = {CLIENT: 0, SERVER: 0}
        self.message_octets = {CLIENT: 0, SERVER: 0}
        self.problems = 0
        self.conversation: Conversation = conversation
        self.numbers = numbers
        self.silences = {CLIENT: Silence(), SERVER: Silence()}
        self.errors: dict[tuple[str, str, str, str | None, str | None], ErrorSummary] = {}
        self.errors_dropped = 0
        # The packet of a peer's close, or of its answer to one; 0 while there is none.
        self.closed = {CLIENT: 0, SERVER: 0}

    @property
    def sessions(self) -> int:
        """How many sessions were begun, or channels opened."""
        return int(self.conversation.sessions)

    def introduce(self, peer: str, name: PeerName | None) -> None:
        """A peer says what it calls itself, or None."""
        if name is not None:
            self.containers[peer] = name.name
            self.products[peer] = name.product

    def publishes_to(self, exchange: str, routing_key: str) -> None:
        """The client of AMQP 0-9-1 publishes a message."""
        if len(self.targets) < MAX_SUMMARY_ADDRESSES:
            self.targets[without_password(exchange or routing_key)] = None

    def takes_from(self, queue: str) -> None:
        """The client of AMQP 0-9-1 consumes from a queue, or gets messages from it."""
        if len(self.sources) < MAX_SUMMARY_ADDRESSES:
            self.sources[without_password(queue)] = None

    def met(self, link: Link) -> None:
        """A link begins, or is met again."""
        if link not in self.links:
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
            known = ErrorSummary(int(record.packet), record.peer, what, condition, description, name, cause)
            self.errors[key] = known
        known.count += 1
