"""A message as it was published or delivered on one connection, to be found again on others.

What is kept of it: where it was said and on which way, its properties as sent, and a checksum of its body.
What it is found again by: its message-id, or else its body, if that is long enough to be one message's own.

How it ended: of a delivery, what gave it back or was the last of it; of a publish in a transaction, whether
that was committed.
"""

import zlib
from typing import Any, Final

from amqpscope.limits import MAX_PASSED_HEADER, MAX_PASSED_OCTETS, MIN_DISTINCT_BODY
from amqpscope.model.records import Connection, FrameRef
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import HAS_MESSAGE_ID
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


class Content:
    """One message of a connection.

    published: by the client; else the server delivers it. spot: of its method. life: how often its channel
    had been opened. end: offset behind its method in its sender's stream. known: octets of the server's
    stream that its client had, of a publish.
    consumer, queue: whom it is delivered to, and from where, "" if that is not known. identity: what it is
    found again by, "" for nothing; named: its message-id. size, sum: of the body; sum is -1 for a long one.
    flags, octets: its properties, None if they are too many to be kept.
    refusal: where the server denies it to the client that settles it.
    fate: how it ended, "" if nothing says so; over (ns), over_known: when, and what the client had then.
    """

    def __init__(self, connection: Connection, published: bool, spot: FrameRef, end: i64, known: i64) -> None:
        self.connection: Connection = connection
        self.published: bool = published
        self.spot: FrameRef = spot
        self.end: i64 = end
        self.known: i64 = known
        self.life: int = 0
        self.exchange: str = ""
        self.key: str = ""
        self.tag: int = 0
        self.consumer: str = ""
        self.queue: str = ""
        self.redelivered: bool = False
        self.no_ack: bool = False
        self.no_local: bool = False
        self.identity: str = ""
        self.named: bool = False
        self.size: i64 = -1
        self.sum: int = 0
        self.priority: int = -1
        self.flags: int = 0
        self.octets: bytes | None = b""
        self.fate: str = ""
        self.over: i64 = -1
        self.over_known: i64 = -1
        # Where the server says that there is no such delivery, when the client settles it.
        self.refusal: FrameRef | None = None
        # While it comes: octets of the body so far.
        self.seen: i64 = 0

    @property
    def channel(self) -> int:
        """Its channel."""
        return int(self.spot.channel)

    def head(self, header: ContentHeader) -> None:
        """Its content header."""
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

    def finish(self) -> None:
        """The last octet of it came."""
        if not self.identity and self.sum >= 0 and self.size >= MIN_DISTINCT_BODY:
            self.identity = f"{self.size} octets, {self.sum:08x}"

    def mentions(self, name: bytes) -> bool:
        """Whether its properties may have a header of this name; so it is if they are not kept."""
        return self.octets is None or name in self.octets

    def settle(self, fate: str, time: i64, known: i64) -> None:
        """It ended."""
        self.fate = fate
        self.over = time
        self.over_known = known

    def dump(self) -> tuple[object, ...]:
        """All but the connection as plain values."""
        return (
            (self.published, self.spot.dump(), int(self.end), int(self.known), self.life),
            (self.exchange, self.key, self.tag, self.consumer, self.queue),
            (self.redelivered, self.no_ack, self.no_local),
            (self.identity, self.named, self.size, self.sum, self.priority, self.flags, self.octets),
            (self.fate, int(self.over), int(self.over_known), int(self.seen)),
            None if self.refusal is None else self.refusal.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection) -> "Content":
        """What `dump` gave, as an object again."""
        (published, spot, end, known, life), way, traits, about, fate, refusal = state
        content = Content(connection, published, FrameRef.load(spot), end, known)
        content.life = life
        content.exchange, content.key, content.tag, content.consumer, content.queue = way
        content.redelivered, content.no_ack, content.no_local = traits
        content.identity, content.named, content.size, content.sum = about[:4]
        content.priority, content.flags, content.octets = about[4:]
        content.fate, content.over, content.over_known, content.seen = fate
        content.refusal = None if refusal is None else FrameRef.load(refusal)
        return content

    def __repr__(self) -> str:
        return f"<Content {self.spot.name} {self.identity!r} {self.exchange!r} {self.key!r} {self.fate}>"
