"""What the two peers of a channel have asked of each other, and which of it waits for its answer.

Theory of operation. Requests wait for their answer in the order in which they came; with no-wait there is
none to come. What is said behind the other peer's close is discarded, and so is never answered.
"""

from typing import Any, Final

from amqpscope.limits import MAX_REQUESTS
from amqpscope.tracking.amqp091.requests import MethodRequest, waits
from dissectors.amqp091.arguments import Method
from dissectors.wire import i64

__all__ = ["ChannelRequests"]

_NO_NAMES: Final[frozenset[str]] = frozenset()


class NoWaitRequests:
    """What was asked with no-wait."""

    def __init__(self) -> None:
        # Methods that would answer what the client asked so.
        self.client_answers: set[str] = set()
        # And those that would answer the server.
        self.server_answers: set[str] = set()
        # The last request of each kind, by its name.
        self.last: dict[str, MethodRequest] = {}

    def answers(self, by_client: bool) -> set[str]:
        """Methods that would answer what this peer asked."""
        return self.client_answers if by_client else self.server_answers

    def ask(self, by_client: bool, request: MethodRequest) -> None:
        """A peer asks so."""
        self.answers(by_client).update(request.responses)
        self.last[request.name] = request

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        names = (tuple(sorted(self.client_answers)), tuple(sorted(self.server_answers)))
        return (*names, tuple(request.dump() for request in self.last.values()))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "NoWaitRequests":
        """The object of what `dump` returned."""
        client, server, last = state
        if not last:
            return NOTHING_ASKED
        requests = NoWaitRequests()
        requests.client_answers, requests.server_answers = set(client), set(server)
        requests.last = {one[0]: MethodRequest.load(one) for one in last}
        return requests


# mypyc: null object, of all channels on which nothing was asked with no-wait. Nothing writes to it.
NOTHING_ASKED: Final = NoWaitRequests()


class ChannelRequests:
    """The requests of one life of a channel."""

    def __init__(self) -> None:
        # Those of the client's that wait for their answer, the oldest first.
        self.by_client: list[MethodRequest] = []
        # And those of the server's.
        self.by_server: list[MethodRequest] = []
        self.no_wait: NoWaitRequests = NOTHING_ASKED
        # Methods that would answer what came after the close, and was discarded.
        self.discarded: frozenset[str] = _NO_NAMES

    def to_answer(self, by_client: bool) -> list[MethodRequest]:
        """The requests that wait for an answer of this peer's."""
        return self.by_server if by_client else self.by_client

    def awaited(self, by_client: bool, name: str) -> i64:
        """Where among those that wait the request stands that this answer of a peer is to; -1 if nowhere."""
        at: i64 = 0
        for request in self.by_server if by_client else self.by_client:
            if name in request.responses:
                return at
            at += 1
        return -1

    def answers(self, by_client: bool, name: str) -> MethodRequest | None:
        """The request that a peer would answer by the method of this name now, None if there is none."""
        at = self.awaited(by_client, name)
        return None if at < 0 else self.to_answer(by_client)[at]

    def asked(self, by_client: bool, name: str, end: i64) -> MethodRequest | None:
        """The request that a peer made by the method of this name that ends at this offset, if it is one."""
        queue = self.to_answer(not by_client)
        if queue and queue[len(queue) - 1].end == end:
            return queue[len(queue) - 1]
        unanswered = self.no_wait.last.get(name)
        return unanswered if unanswered is not None and unanswered.end == end else None

    def cancelling(self, tag: str) -> bool:
        """Whether the client has cancelled this consumer, and no answer came."""
        return any(request.subject == tag and request.name == "basic.cancel" for request in self.by_client)

    def ask(self, by_client: bool, method: Method, queue: str, end: i64, packet: i64, time: i64) -> bool:
        """If this asks for an answer, that is waited for from now on. queue: the one meant without a name.

        False: of too many requests the oldest was forgotten.
        """
        if not method.definition().responses:
            return True
        request = MethodRequest.of(method, queue, end, packet, time)
        if not waits(method):
            if self.no_wait is NOTHING_ASKED:
                self.no_wait = NoWaitRequests()
            self.no_wait.ask(by_client, request)
            return True
        waiting = self.to_answer(not by_client)
        full = len(waiting) >= MAX_REQUESTS
        if full:
            del waiting[0]
        waiting.append(request)
        return not full

    def answer(self, by_client: bool, name: str) -> MethodRequest | None:
        """A peer says this method. If that answers a request, it waits no more; which one."""
        at = self.awaited(by_client, name)
        return None if at < 0 else self.to_answer(by_client).pop(at)

    def discard(self, method: Method) -> None:
        """A method behind the other peer's close."""
        self.discarded |= frozenset(method.definition().responses)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            tuple(request.dump() for request in self.by_client),
            tuple(request.dump() for request in self.by_server),
            self.no_wait.dump(),
            tuple(sorted(self.discarded)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ChannelRequests":
        """The object of what `dump` returned."""
        by_client, by_server, no_wait, discarded = state
        requests = ChannelRequests()
        requests.by_client = [MethodRequest.load(one) for one in by_client]
        requests.by_server = [MethodRequest.load(one) for one in by_server]
        requests.no_wait = NoWaitRequests.load(no_wait)
        requests.discarded = frozenset(discarded)
        return requests
