"""What was known of the queues, exchanges, bindings and consumers of a virtual host when something was done.

Theory of operation. The operations of all connections to one address and virtual host are taken together,
those to one queue or exchange in the order in which they were asked for. What was known of it when a
operation D was done is what the newest operation before it showed, by itself or by its answer: that it was
there, or that it was not.

Before D is what the server must have done before it: on D's channel, what was asked for earlier; on another
channel of its connection, what D's client had the answer of; on another connection, what was answered
before D was asked for, by the capture's clock. What may have changed it meanwhile makes it unknown: any
declaration or deletion that is neither before nor after, or was not answered.

If octets of any connection to the address were missed, or operations forgotten, nothing is known. Nor is
anything of a name to which something was done over two addresses (the nodes of a cluster).
"""

from bisect import bisect_right
from itertools import accumulate, islice
from typing import Final

from amqpscope.correlation.order import by_time
from amqpscope.limits import MAX_ENTITY_OPERATIONS, MAX_RETURNED_OPERATIONS
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.amqp091.topology_operations import (
    AUTO_DELETE,
    EXCLUSIVE,
    NO_WAIT,
    PASSIVE,
    TopologyOperation,
)

__all__ = ["GONE", "NOT_FOUND", "THERE", "KnownEntity", "VirtualHost", "changes", "precedes", "what_of"]

UNKNOWN: Final = 0
THERE: Final = 1
GONE: Final = 2
"""What a operation shows of a queue or an exchange."""

NOT_FOUND: Final = 404
"""The code of a close that says that there is no such queue or exchange."""


def what_of(operation: TopologyOperation) -> tuple[str, str]:
    """What a operation is done to: `queue` or `exchange`, and its name."""
    if operation.method.startswith("exchange."):
        return "exchange", operation.exchange
    return "queue", operation.queue


def changes(operation: TopologyOperation) -> bool:
    """Whether it may make or unmake what it names."""
    if operation.outcome.refused:
        return False
    if operation.method in ("queue.delete", "exchange.delete"):
        return True
    return operation.method in ("queue.declare", "exchange.declare") and not operation.has(PASSIVE)


def precedes(one: TopologyOperation, other: TopologyOperation) -> bool:
    """Whether the server had done `one` when it came to do `other`."""
    if one.connection is other.connection:
        if one.channel == other.channel:
            return one.spot.offset < other.spot.offset
        return 0 <= one.outcome.end <= other.known
    return 0 <= one.outcome.time < other.spot.time


class KnownEntity:
    """What was known: by which operation, and how it was declared, None if that is not known."""

    def __init__(self, state: int, by: TopologyOperation, made: TopologyOperation | None) -> None:
        self.state: int = state
        self.by: TopologyOperation = by
        self.made: TopologyOperation | None = made


class VirtualHost:
    """A virtual host at one address, by all that its clients did there, in the order of time.

    sure: all that was done to it is known, of what was captured. elsewhere: the kind and name of what is
    changed over more than one address.
    """

    def __init__(self, summaries: list[Amqp091Summary], sure: bool, elsewhere: set[tuple[str, str]]) -> None:
        self.sure: bool = sure
        self.elsewhere: set[tuple[str, str]] = elsewhere
        self.summaries: dict[int, Amqp091Summary] = {id(one.connection): one for one in summaries}
        # Operations whose answer is at fault: it shows nothing.
        self.disbelieved: set[int] = set()
        # Connections are in the order of time already: what was asked for at once stays so.
        operations = by_time([summary.operations for summary in summaries])
        self.operations: list[TopologyOperation] = operations
        self.queues: dict[str, list[TopologyOperation]] = {}
        self.exchanges: dict[str, list[TopologyOperation]] = {}
        self.bindings: dict[tuple[str, ...], list[TopologyOperation]] = {}
        self.consumers: dict[str, list[TopologyOperation]] = {}
        # By connection, channel and tag: consumers, and what ends them. By connection and channel: its ends.
        self.consumers_by_tag: dict[tuple[int, int, str], list[TopologyOperation]] = {}
        self._cancels: dict[tuple[int, int, str], list[TopologyOperation]] = {}
        self._closes: dict[tuple[int, int], list[TopologyOperation]] = {}
        # Operations of which nobody need look through all: those that delete a queue or exchange, or may have
        # made one that goes by itself, by what they name; bindings by exchange, and by exchange and key.
        self._hazards: dict[tuple[str, str], list[TopologyOperation]] = {}
        self._from: dict[str, list[list[TopologyOperation]]] = {}
        # The types that an exchange was declared with.
        self._kinds: dict[str, set[str]] = {}
        self._routed: dict[tuple[str, str], list[list[TopologyOperation]]] = {}
        # By the identity of a list of operations to a binding: where the first is that takes it away.
        self._unbound: dict[int, int] = {}
        # By kind and name, where each operation stands; made when it is asked for.
        self._places: dict[tuple[str, str], dict[int, int]] = {}
        for operation in operations:
            self._sort(operation)
        # When connections began, in order, and for each place when the last of those up to it ended.
        spans = sorted((int(one.connection.began), int(one.ended)) for one in summaries)
        self._begins: list[int] = [began for began, _ in spans]
        self._latest: list[int] = list(accumulate((ended for _, ended in spans), max))

    def _sort(self, operation: TopologyOperation) -> None:
        method = operation.method
        if method == "channel.close":
            self._closes.setdefault((id(operation.connection), operation.channel), []).append(operation)
            return
        if method in ("basic.cancel", "server cancels"):
            self._cancels.setdefault((id(operation.connection), operation.channel, operation.tag), []).append(
                operation
            )
            return
        if method == "basic.return":
            return
        if operation.queue:
            self.queues.setdefault(operation.queue, []).append(operation)
        if operation.exchange:
            self.exchanges.setdefault(operation.exchange, []).append(operation)
            if method == "exchange.declare" and operation.outcome.ok and not operation.has(PASSIVE):
                self._kinds.setdefault(operation.exchange, set()).add(operation.kind)
        if operation.destination and operation.destination != operation.exchange:
            self.exchanges.setdefault(operation.destination, []).append(operation)
        if method in ("queue.bind", "queue.unbind", "exchange.bind", "exchange.unbind"):
            self._sort_binding(operation)
        elif method == "basic.consume" and operation.queue:
            self.consumers.setdefault(operation.queue, []).append(operation)
            self.consumers_by_tag.setdefault(
                (id(operation.connection), operation.channel, operation.tag), []
            ).append(operation)
        elif not operation.outcome.refused and (_deletes(operation) or _may_go(operation)):
            self._hazards.setdefault(what_of(operation), []).append(operation)

    def _sort_binding(self, operation: TopologyOperation) -> None:
        key = _binding(operation)
        operations = self.bindings.get(key)
        if operations is None:
            operations = self.bindings[key] = []
            self._from.setdefault(operation.exchange, []).append(operations)
            if operation.queue:
                self._routed.setdefault((operation.exchange, operation.key), []).append(operations)
        if operation.method.endswith(".unbind") and not operation.outcome.refused:
            self._unbound.setdefault(id(operations), len(operations))
        operations.append(operation)

    # What was known of a queue or an exchange

    def known(self, operations: list[TopologyOperation], at: int, kind: str, name: str) -> KnownEntity | None:
        """What was known of a queue or exchange before its operation number `at`; None: nothing that is
        sure."""
        if not self.sure or (kind, name) in self.elsewhere:
            return None
        operation = operations[at]
        by: TopologyOperation | None = None
        made: TopologyOperation | None = None
        state = UNKNOWN
        for one in reversed(operations[max(at - MAX_ENTITY_OPERATIONS, 0) : at]):
            if by is None:
                if not precedes(one, operation):
                    if changes(one):
                        return None
                    continue
                state = self._shows(one, kind, name)
                if state == UNKNOWN:
                    if changes(one):
                        return None
                    continue
                by = one
            elif changes(one) and not precedes(one, by):
                return None
            if state == THERE and made is None and one.outcome.ok and changes(one):
                if one.method == f"{kind}.declare":
                    made = one
        if by is None:
            return None
        for one in operations[at + 1 : at + 1 + MAX_ENTITY_OPERATIONS]:
            if (
                operation.outcome.time >= 0
                and one.spot.time > operation.outcome.time
                and one.connection is not operation.connection
            ):
                break
            if changes(one) and not precedes(operation, one):
                return None
        if made is not None and not self._made_last(operations, at, made, kind, name):
            made = None
        if state == THERE and not self._stays(by, made, operation):
            return None
        return KnownEntity(state, by, made)

    def known_before(self, operation: TopologyOperation, kind: str, name: str) -> KnownEntity | None:
        """What was known of something before a operation that is about it."""
        operations = (self.queues if kind == "queue" else self.exchanges).get(name)
        if operations is None:
            return None
        places = self._places.get((kind, name))
        if places is None:
            places = self._places[kind, name] = {id(one): at for at, one in enumerate(operations)}
        at = places.get(id(operation))
        return None if at is None else self.known(operations, at, kind, name)

    def lasting(self, known: KnownEntity | None) -> TopologyOperation | None:
        """How something was declared that is there and does not go by itself."""
        if known is None or known.state != THERE or known.made is None:
            return None
        made = known.made
        if made.has(AUTO_DELETE) or made.arguments is None or b"x-expires" in made.arguments:
            return None
        return made

    def lasting_queue(self, name: str, operation: TopologyOperation) -> TopologyOperation | None:
        """The declaration of a queue that was there when a message was published, and goes not by itself."""
        operations = self.queues.get(name)
        if not operations or len(operations) > MAX_RETURNED_OPERATIONS:
            return None
        later = [one for one in operations if precedes(operation, one)]
        at = len(operations) - len(later)
        # As if the message were one of the queue's operations.
        return self.lasting(self.known([*operations[:at], operation, *operations[at:]], at, "queue", name))

    def is_about(self, operation: TopologyOperation, kind: str, name: str) -> bool:
        """Whether a 404 is about this of what the method names."""
        if operation.method in ("queue.bind", "queue.unbind"):
            return _blamed(operation) == kind
        if operation.method in ("exchange.bind", "exchange.unbind"):
            if operation.destination == operation.exchange:
                return True
            other = operation.exchange if name == operation.destination else operation.destination
            return f"'{name}'" in operation.outcome.text and f"'{other}'" not in operation.outcome.text
        return True

    def count_declared(self, kind: str, most: int) -> int:
        """How many queues, or exchanges, were declared; `most` stands for any more."""
        names = self.queues if kind == "queue" else self.exchanges
        declared = (
            name
            for name, operations in names.items()
            if any(one.method == f"{kind}.declare" and one.outcome.ok for one in operations)
        )
        return sum(1 for _ in islice(declared, most))

    def is_direct(self, operation: TopologyOperation) -> bool:
        """Whether the exchange of a operation is a direct one."""
        if operation.exchange == "amq.direct":
            return True
        return self._kinds.get(operation.exchange) == {"direct"}

    def _shows(self, operation: TopologyOperation, kind: str, name: str) -> int:
        """What a operation shows of a queue or an exchange once it is done."""
        if id(operation) in self.disbelieved:
            return UNKNOWN
        method = operation.method
        if method == "basic.publish":
            return UNKNOWN
        if operation.outcome.ok or operation.outcome.empty:
            if method == f"{kind}.delete":
                return GONE
            if method in ("queue.unbind", "exchange.unbind"):
                return UNKNOWN  # some servers do not look
            return THERE
        if not operation.outcome.refused:
            return UNKNOWN
        if operation.outcome.code == NOT_FOUND:
            return GONE if self.is_about(operation, kind, name) else UNKNOWN
        if method == f"{kind}.declare" and not operation.has(PASSIVE):
            return THERE if operation.outcome.code in (405, 406) else UNKNOWN
        return UNKNOWN

    def _made_last(
        self, operations: list[TopologyOperation], at: int, made: TopologyOperation, kind: str, name: str
    ) -> bool:
        """Whether nothing showed it to be gone between its declaration and the operation number `at`."""
        for one in reversed(operations[max(at - MAX_ENTITY_OPERATIONS, 0) : at]):
            if one is made:
                return True
            if self._shows(one, kind, name) == GONE:
                return False
        return False

    def _stays(
        self, by: TopologyOperation, made: TopologyOperation | None, operation: TopologyOperation
    ) -> bool:
        """Whether what was there then would be, if nobody deleted it: when the operation was done."""
        if by.connection is not operation.connection and not self._server_ran(by, operation):
            return False
        if made is None:
            return True
        if made.has(EXCLUSIVE) and made.connection is not operation.connection:
            return self.lives(made, operation)
        return True

    def _server_ran(self, by: TopologyOperation, operation: TopologyOperation) -> bool:
        """Whether some connection lasted all the time between two operations."""
        if (
            by.connection is operation.connection
            or self.summaries[id(by.connection)].ended >= operation.spot.time
        ):
            return True
        if operation.connection.began <= by.outcome.time:
            return True
        before = bisect_right(self._begins, by.outcome.time)
        return before > 0 and self._latest[before - 1] >= operation.spot.time

    def lives(self, made: TopologyOperation, operation: TopologyOperation) -> bool:
        """Whether the connection of the first operation was in use when the second had its answer."""
        return self.summaries[id(made.connection)].ended > max(
            int(operation.outcome.time), int(operation.spot.time)
        )

    # Who consumed

    def consumer(self, name: str, operation: TopologyOperation) -> TopologyOperation | None:
        """One on another channel that consumed from the queue all the time of a operation."""
        for consumer in self.consumers.get(name, [])[:MAX_ENTITY_OPERATIONS]:
            if consumer.connection is operation.connection and consumer.channel == operation.channel:
                continue
            if self.consumes(consumer, operation):
                return consumer
        return None

    def consuming(self, name: str, operation: TopologyOperation) -> int:
        """How many may have consumed from the queue at the time of a operation."""
        return sum(
            1 for one in self.consumers.get(name, [])[:MAX_ENTITY_OPERATIONS] if not one.outcome.refused
        ) - (1 if not operation.outcome.refused else 0)

    def consumes(self, consumer: TopologyOperation, operation: TopologyOperation) -> bool:
        """Whether a consumer was there before the operation was asked for, and was when it was answered."""
        if (
            consumer is operation
            or not consumer.outcome.ok
            or not self.sure
            or not precedes(consumer, operation)
        ):
            return False
        if consumer.has(NO_WAIT) and not consumer.tag:
            return False
        # Whoever ends it does so from when it is said.
        if consumer.connection is not operation.connection and not self.lives(consumer, operation):
            return False
        where = (id(consumer.connection), consumer.channel)
        for ends in (self._closes.get(where, []), self._cancels.get((*where, consumer.tag), [])):
            if len(ends) > MAX_ENTITY_OPERATIONS:
                return False
            for end in ends:
                if end.spot.time >= consumer.spot.time and not _after(end, operation):
                    return False
        hazards = self._hazards.get(("queue", consumer.queue), [])
        if len(hazards) > MAX_ENTITY_OPERATIONS:
            return False
        for one in hazards:
            if _deletes(one) and one is not operation:
                if not precedes(one, consumer) and not precedes(operation, one):
                    return False
        return True

    # What was bound

    def bound_before(self, operations: list[TopologyOperation], at: int) -> TopologyOperation | None:
        """The binding that was there before its operation number `at`."""
        operation = operations[at]
        if not self.sure:
            return None
        if self._unbound.get(id(operations), at) < at:
            return None
        for one in reversed(operations[max(at - MAX_ENTITY_OPERATIONS, 0) : at]):
            if one.outcome.ok and precedes(one, operation) and self.kept(one, operation):
                return one
        return None

    def binding_of(self, exchange: str, operation: TopologyOperation) -> TopologyOperation | None:
        """A binding of which the exchange is the source, that is there when a operation is done."""
        return self._binding_among(self._from.get(exchange, []), operation)

    def route_of(self, operation: TopologyOperation) -> TopologyOperation | None:
        """A binding of a queue that leads there from the exchange and key of a operation when it is done."""
        return self._binding_among(
            self._routed.get((operation.exchange, operation.key), []), operation, "queue.bind"
        )

    def _binding_among(
        self, bindings: list[list[TopologyOperation]], operation: TopologyOperation, method: str = ""
    ) -> TopologyOperation | None:
        """One of the first of these that was never taken away, and is there when a operation is done."""
        for operations in bindings[:MAX_ENTITY_OPERATIONS]:
            if id(operations) in self._unbound:
                continue
            for one in operations[:MAX_ENTITY_OPERATIONS]:
                bound = one.method == method if method else one.method.endswith(".bind")
                if bound and one.outcome.ok and precedes(one, operation) and self.kept(one, operation):
                    return one
        return None

    def count_bindings(self, operation: TopologyOperation, most: int) -> int:
        """How many bindings of its queue are known when a operation is done; `most` stands for any more."""
        bound = (
            key
            for key, operations in self.bindings.items()
            if key[0] == operation.queue
            and any(one.outcome.ok and one.method == "queue.bind" for one in operations)
        )
        return sum(1 for _ in islice(bound, most))

    def kept(self, binding: TopologyOperation, operation: TopologyOperation) -> bool:
        """Whether nothing was deleted that a binding is between, from when it was made to a operation."""
        queue = binding.queue
        for kind, name in (("queue", queue), ("exchange", binding.exchange)):
            if not name:
                continue
            if (kind, name) in self.elsewhere:
                return False
            hazards = self._hazards.get((kind, name), [])
            if len(hazards) > MAX_ENTITY_OPERATIONS:
                return False
            for one in hazards:
                if one is operation:
                    continue
                if _deletes(one):
                    if not precedes(one, binding) and not precedes(operation, one):
                        return False
                elif not one.has(EXCLUSIVE) or _goes_by_itself(one):
                    return False  # and with it the binding
                elif one.connection is not operation.connection and not self.lives(one, operation):
                    return False
        return binding.connection is operation.connection or self._server_ran(binding, operation)


def _deletes(operation: TopologyOperation) -> bool:
    """Whether it unmakes what it names."""
    return operation.method in ("queue.delete", "exchange.delete")


def _may_go(operation: TopologyOperation) -> bool:
    """Whether it may make something that is gone later without being deleted."""
    return (
        changes(operation)
        and not _deletes(operation)
        and (operation.has(EXCLUSIVE) or _goes_by_itself(operation))
    )


def _goes_by_itself(operation: TopologyOperation) -> bool:
    """Whether what it declares may be gone while its connection lives."""
    return operation.has(AUTO_DELETE) or operation.arguments is None or b"x-expires" in operation.arguments


def _after(end: TopologyOperation, operation: TopologyOperation) -> bool:
    """Whether what ends a consumer was said only when a operation had its answer."""
    if end.connection is operation.connection and end.channel == operation.channel:
        if end.method == "server cancels" or end.known < 0:
            return end.spot.time >= operation.outcome.time
        return precedes(operation, end)
    return 0 <= operation.outcome.time < end.spot.time


def _binding(operation: TopologyOperation) -> tuple[str, ...]:
    """What makes a binding one: where it leads, from where, by which key and arguments."""
    arguments = "" if not operation.arguments else operation.arguments.hex()
    return operation.queue, operation.exchange, operation.key, operation.destination, arguments


def _blamed(operation: TopologyOperation) -> str:
    """What a 404 says that is not there, `queue` or `exchange`; "" if it does not tell."""
    text = operation.outcome.text.lower()
    for name in (operation.queue, operation.exchange):
        if name:
            text = text.replace(f"'{name.lower()}'", "")
    queue, exchange = "queue" in text, "exchange" in text
    if queue == exchange:
        return ""
    return "queue" if queue else "exchange"
