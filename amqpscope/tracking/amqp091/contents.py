"""A message as it was published or delivered on one connection, to be recognized on others.

Kept are its place and direction, its properties as sent, and a checksum of its body. A message is recognized
by its message-id, or else by its body if the body is long enough to be unique.

The fate of a message: for a delivery, what returned or settled it; for a publish in a transaction, whether
the transaction was committed.
"""

import zlib
from typing import Any, Final

from amqpscope.limits import MAX_PASSED_HEADER, MAX_PASSED_OCTETS, MIN_DISTINCT_BODY
from amqpscope.model.records import Connection, FrameRef
from dissectors.amqp091.content import BASIC, ContentHeader
from dissectors.amqp091.methods import HAS_MESSAGE_ID, BasicProperties
from dissectors.wire import i64

__all__ = [
    "ACKED",
    "CLOSED",
    "COMMITTED",
    "DROPPED",
    "OPEN",
    "RECOVERED",
    "RECOVERED_ASYNC",
    "REQUEUED",
    "ROLLED_BACK",
    "Content",
    "ContentDigest",
]

# How a delivery ended.
ACKED: Final = "ack"
DROPPED: Final = "drop"
REQUEUED: Final = "requeue"
RECOVERED: Final = "recover"
RECOVERED_ASYNC: Final = "recover-async"
CLOSED: Final = "close"
ROLLED_BACK: Final = "rollback"
# And a publish in a transaction: that, or one of these.
OPEN: Final = "open"
COMMITTED: Final = "commit"


class ContentDigest:
    """What a message is found again and compared by: its properties as sent, and a checksum of its body."""

    def __init__(self) -> None:
        # What it is found again by, "" for nothing; and whether that is its message-id.
        self.identity: str = ""
        self.named: bool = False
        # Octets of the body as the header says, -1 until then; and while the body comes, octets of it so far.
        self.size: i64 = -1
        self.seen: i64 = 0
        # The checksum of the body so far, -1 for a long one.
        self.sum: int = 0
        # The properties that there are, as bits, and their octets, None if they are too many to be kept.
        self.flags: int = 0
        self.octets: bytes | None = b""
        # The priority, 0 if none is given, -1 before the header.
        self.priority: int = -1

    def head(self, header: ContentHeader) -> None:
        """The content header."""
        self.size = header.size
        self.flags = int(header.flags)
        self.priority = max(int(header.priority), 0)
        self.octets = header.octets if len(header.octets) <= MAX_PASSED_HEADER else None
        if header.flags & HAS_MESSAGE_ID and header.sound:
            said = header.properties().message_id
            if said:
                self.identity = said
                self.named = True
        if self.size > MAX_PASSED_OCTETS:
            self.sum = -1

    def add(self, octets: bytes, size: i64) -> None:
        """A body frame; size: of its payload."""
        self.seen += size
        if self.sum >= 0:
            self.sum = zlib.crc32(octets, self.sum)

    @property
    def complete(self) -> bool:
        """Whether all octets of the body came."""
        return self.seen >= self.size

    def finish(self) -> None:
        """The last octet of the message has come."""
        if not self.identity and self.sum >= 0 and self.size >= MIN_DISTINCT_BODY:
            self.identity = f"{self.size} octets, {self.sum:08x}"

    def has_another_body(self, other: "ContentDigest") -> bool:
        """Whether the two bodies differ for certain."""
        return self.size != other.size or (self.sum != other.sum and min(self.sum, other.sum) >= 0)

    def properties(self) -> BasicProperties:
        """The properties, none if they are not kept."""
        return ContentHeader(BASIC, 0, self.size, self.flags, self.octets or b"").properties()

    def mentions(self, name: bytes) -> bool:
        """Whether the properties may have a header of this name; so it is if they are not kept."""
        return self.octets is None or name in self.octets

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        body = (int(self.size), int(self.seen), self.sum)
        return (self.identity, self.named, *body, self.flags, self.octets, self.priority)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ContentDigest":
        """The object of what `dump` returned."""
        digest = ContentDigest()
        digest.identity, digest.named, digest.size, digest.seen, digest.sum = state[:5]
        digest.flags, digest.octets, digest.priority = state[5:]
        return digest


class Content:
    """One message of a connection.

    published: the client publishes it; otherwise the server delivers it. spot: of its method. life: how often
    its channel had been opened. end: the offset after its method in its sender's stream. known: for a
    publish, how many octets of the server's stream the client had.

    consumer, queue: the consumer and the queue of a delivery, "" if unknown. identity: what it is recognized
    by, "" for nothing; named: its message-id. size, sum: of the body; sum is -1 for a long one. flags,
    octets: its properties, None if they are too many to be kept.

    refusal: where the server denies the delivery to the client that settles it.

    fate: how it ended, "" if nothing shows it; over (ns), over_known: when, and how many octets the client
    had then.
    """

    def __init__(self, connection: Connection, published: bool, spot: FrameRef, end: i64, known: i64) -> None:
        self.connection: Connection = connection
        # The client publishes it; else the server delivers it.
        self.published: bool = published
        # The frame of its method.
        self.spot: FrameRef = spot
        # The offset behind its method in its sender's stream.
        self.end: i64 = end
        # Of a publish: octets of the server's stream that its client had.
        self.known: i64 = known
        # How often its channel had been opened.
        self.life: int = 0
        self.exchange: str = ""
        # The routing key.
        self.key: str = ""
        # The delivery-tag.
        self.tag: int = 0
        # The consumer that it is delivered to, and the queue that it comes from, "" if that is not known.
        self.consumer: str = ""
        self.queue: str = ""
        self.redelivered: bool = False
        # What the client had asked for: deliveries that need no acknowledgement, and none that it published.
        self.no_ack: bool = False
        self.no_local: bool = False
        self.digest: ContentDigest = ContentDigest()
        # How it ended, "" if nothing says so; when (ns), and what the client had of the server's stream then.
        self.fate: str = ""
        self.over: i64 = -1
        self.over_known: i64 = -1
        # Where the server says that there is no such delivery, when the client settles it.
        self.refusal: FrameRef | None = None

    @property
    def channel(self) -> int:
        """Its channel."""
        return int(self.spot.channel)

    def settle(self, fate: str, time: i64, known: i64) -> None:
        """The message has ended."""
        self.fate = fate
        self.over = time
        self.over_known = known

    def dump(self) -> tuple[object, ...]:
        """All but the connection as plain values."""
        return (
            (self.published, self.spot.dump(), int(self.end), int(self.known), self.life),
            (self.exchange, self.key, self.tag, self.consumer, self.queue),
            (self.redelivered, self.no_ack, self.no_local),
            self.digest.dump(),
            (self.fate, int(self.over), int(self.over_known)),
            None if self.refusal is None else self.refusal.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection) -> "Content":
        """The object of what `dump` returned."""
        (published, spot, end, known, life), way, traits, digest, fate, refusal = state
        content = Content(connection, published, FrameRef.load(spot), end, known)
        content.life = life
        content.exchange, content.key, content.tag, content.consumer, content.queue = way
        content.redelivered, content.no_ack, content.no_local = traits
        content.digest = ContentDigest.load(digest)
        content.fate, content.over, content.over_known = fate
        content.refusal = None if refusal is None else FrameRef.load(refusal)
        return content

    def __repr__(self) -> str:
        spot = f"{self.spot.name} {self.digest.identity!r}"
        return f"<Content {spot} {self.exchange!r} {self.key!r} {self.fate}>"
