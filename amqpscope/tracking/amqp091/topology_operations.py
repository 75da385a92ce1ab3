"""The operations of a client on exchanges, queues, bindings and consumers, and their outcomes.

Exchanges and queues belong to a virtual host, not to a connection, so operations on other connections decide
whether an answer of the server is correct. For each request, its place, the entities that it names and the
answer are kept.

The outcome of a request with no-wait shows when a later request on the same channel is answered, because a
server processes the requests of a channel in order.
"""

from typing import Any, Final

from amqpscope.model.records import Connection, FrameRecord, FrameRef, MakeExcerpt
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
    "PENDING",
    "OperationOutcome",
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


class OperationOutcome:
    """What came of a request, by what the server says. Only `around` is set later."""

    def __init__(
        self, result: str, answer: FrameRef | None, end: i64, time: i64, code: i64 = 0, text: str = ""
    ) -> None:
        # "ok"; "closed": refused by a close; "empty": of basic.get; "returned": of a publish; "": none yet.
        self.result: str = result
        # The frame that answers; None of a request that needs no answer.
        self.answer: FrameRef | None = answer
        # The offset in the server's stream behind the frame that shows the outcome, -1 if there is none.
        self.end: i64 = end
        # When (ns) that frame was complete, -1 if there is none.
        self.time: i64 = time
        # The reply-code of a close or a return, 0 if there is none.
        self.code: i64 = code
        # The reply-text of a close.
        self.text: str = text
        # The frames around the answer, if they are asked for. They are not dumped, as those of findings, but
        # what another process has made of them is.
        self.around: list[FrameRecord] = []
        self.around_made: object = None

    @property
    def ok(self) -> bool:
        """Whether the request was done."""
        return self.result == "ok"

    @property
    def refused(self) -> bool:
        """Whether a close refused the request."""
        return self.result == "closed"

    @property
    def empty(self) -> bool:
        """Whether a basic.get found no message."""
        return self.result == "empty"

    def dump(self) -> tuple[object, ...]:
        """All of it but the frames around as plain values."""
        answer = None if self.answer is None else self.answer.dump()
        numbers = int(self.end), int(self.time), int(self.code)
        return (self.result, answer, *numbers, self.text, self.around_made)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "OperationOutcome":
        """The object of what `dump` returned."""
        result, answer, end, time, code, text, around_made = state
        if not result:
            return PENDING
        spot = None if answer is None else FrameRef.load(answer)
        outcome = OperationOutcome(result, spot, end, time, code, text)
        outcome.around_made = around_made
        return outcome


# mypyc: null object, the outcome of a request that has none yet. Nothing writes to it.
PENDING: Final = OperationOutcome("", None, -1, -1)


class TopologyOperation:
    """One request, or what stands for one. Names are as the method has them."""

    def __init__(self, connection: Connection, number: int, method: str, spot: FrameRef, known: i64) -> None:
        self.connection: Connection = connection
        # Its place among the operations of the connection, in the order of the client's stream.
        self.number: int = number
        # The method's name. `basic.return` is a message that came back: the operation is its publish.
        self.method: str = method
        self.channel: int = int(spot.channel)
        # The frame of the request.
        self.spot: FrameRef = spot
        # Octets of the server's stream that the client had when it asked, -1 if that is not known.
        self.known: i64 = known
        self.queue: str = ""
        # The exchange; of a binding its source.
        self.exchange: str = ""
        # The exchange that another one is bound to.
        self.destination: str = ""
        # The routing key.
        self.key: str = ""
        # The consumer tag.
        self.tag: str = ""
        # The type of an exchange.
        self.kind: str = ""
        # PASSIVE and the like.
        self.flags: i64 = 0
        # The octets of the table of arguments, None if they are too many to be kept.
        self.arguments: bytes | None = b""
        self.outcome: OperationOutcome = PENDING
        # As of the outcome: the frames around the request.
        self.around: list[FrameRecord] = []
        self.around_made: object = None

    def has(self, flag: i64) -> bool:
        """Whether a flag is set."""
        return self.flags & flag != 0

    def make_excerpts(self, make: MakeExcerpt) -> None:
        """Replace the frames around the request and around its answer by what `make` makes of them."""
        if self.around:
            self.around_made = make(self.spot, self.around, ())
            self.around = []
        outcome = self.outcome
        if outcome.around and outcome.answer is not None:
            outcome.around_made = make(outcome.answer, outcome.around, ())
            outcome.around = []

    def dump(self) -> tuple[object, ...]:
        """All but the connection as plain values."""
        return (
            (self.number, self.method, self.spot.dump(), int(self.known)),
            (self.queue, self.exchange, self.destination, self.key, self.tag, self.kind),
            (int(self.flags), self.arguments),
            self.outcome.dump(),
            self.around_made,
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection) -> "TopologyOperation":
        """The object of what `dump` returned."""
        (number, method, spot, known), names, (flags, arguments), outcome, around_made = state
        operation = TopologyOperation(connection, number, method, FrameRef.load(spot), known)
        operation.queue, operation.exchange, operation.destination = names[:3]
        operation.key, operation.tag, operation.kind = names[3:]
        operation.flags = flags
        operation.arguments = arguments
        operation.outcome = OperationOutcome.load(outcome)
        operation.around_made = around_made
        return operation

    def __repr__(self) -> str:
        outcome = self.outcome
        return f"<Operation {self.method} {self.queue!r} {self.exchange!r} {outcome.result} {outcome.code}>"
