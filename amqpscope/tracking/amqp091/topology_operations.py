"""What a client had done to exchanges, queues, bindings and consumers, and what came of it.

They belong to a virtual host, not to a connection: whether a server may answer as it does shows beside what
others did on other connections. So of each such request it is kept where it was said, what it names, and how
it was answered.

What became of a request that needs no answer (no-wait) shows when one behind it on the same channel is
answered: a server takes them in turn.
"""

from typing import Any, Final

from amqpscope.model.records import Connection, FrameRecord, FrameRef
from dissectors.wire import i64

__all__ = [
    "AUTO_DELETE",
    "DURABLE",
    "EXCLUSIVE",
    "IF_EMPTY",
    "IF_UNUSED",
    "INTERNAL",
    "NO_ACK",
    "NO_LOCAL",
    "NO_WAIT",
    "PASSIVE",
    "TopologyOperation",
]

PASSIVE: Final = 1
DURABLE: Final = 2
EXCLUSIVE: Final = 4
AUTO_DELETE: Final = 8
INTERNAL: Final = 16
NO_WAIT: Final = 32
IF_UNUSED: Final = 64
IF_EMPTY: Final = 128
NO_ACK: Final = 256
NO_LOCAL: Final = 512


class TopologyOperation:
    """One request, or what stands for one.

    connection; number: its place among the operations there, in the order of the client's stream. method: its
    name; `basic.return` is a message that came back: the operation is its publish. channel. spot: of the
    request. known: octets of the server's stream that the client had when it asked, -1 unknown.
    queue, exchange, key, tag: as the method names them; exchange is the source of a binding, destination
    the exchange that another one is bound to. kind: an exchange's type. flags: PASSIVE and the like.
    arguments: the octets of the table, None if they are too many to be kept.
    outcome: "" while there is none, `ok`, `empty` (basic.get), `closed` with code and text; count: of
    messages, or -1. answer: where that was said, None of what needs no answer. answer_end: offset behind it
    in the server's stream, -1 if there is none. over: when a later answer shows that it was done, or (ns) its
    own did; -1 while none does. around, answer_around: the frames around the request and around its answer,
    if they are asked for; like those around a finding they are not dumped.
    """

    def __init__(self, connection: Connection, number: int, method: str, spot: FrameRef, known: i64) -> None:
        self.connection: Connection = connection
        self.number: int = number
        self.method: str = method
        self.channel: int = int(spot.channel)
        self.spot: FrameRef = spot
        self.known: i64 = known
        self.queue: str = ""
        self.exchange: str = ""
        self.destination: str = ""
        self.key: str = ""
        self.tag: str = ""
        self.kind: str = ""
        self.flags: i64 = 0
        self.arguments: bytes | None = b""
        self.outcome: str = ""
        self.code: i64 = 0
        self.text: str = ""
        self.count: i64 = -1
        self.answer: FrameRef | None = None
        self.answer_end: i64 = -1
        self.over: i64 = -1
        self.around: list[FrameRecord] = []
        self.answer_around: list[FrameRecord] = []

    def has(self, flag: i64) -> bool:
        """Whether a flag is set."""
        return self.flags & flag != 0

    def dump(self) -> tuple[object, ...]:
        """All but the connection as plain values."""
        return (
            (self.number, self.method, self.spot.dump(), int(self.known)),
            (self.queue, self.exchange, self.destination, self.key, self.tag, self.kind),
            (int(self.flags), self.arguments),
            (self.outcome, int(self.code), self.text, int(self.count)),
            (None if self.answer is None else self.answer.dump(), int(self.answer_end), int(self.over)),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection) -> "TopologyOperation":
        """What `dump` gave, as an object again."""
        (number, method, spot, known), names, (flags, arguments), outcome, (answer, end, over) = state
        operation = TopologyOperation(connection, number, method, FrameRef.load(spot), known)
        (
            operation.queue,
            operation.exchange,
            operation.destination,
            operation.key,
            operation.tag,
            operation.kind,
        ) = names
        operation.flags = flags
        operation.arguments = arguments
        operation.outcome, operation.code, operation.text, operation.count = outcome
        operation.answer = None if answer is None else FrameRef.load(answer)
        operation.answer_end = end
        operation.over = over
        return operation

    def __repr__(self) -> str:
        return f"<Operation {self.method} {self.queue!r} {self.exchange!r} {self.outcome} {self.code}>"
