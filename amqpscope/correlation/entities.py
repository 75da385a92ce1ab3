"""What is wrong with what the clients of one broker did to its exchanges, queues, bindings and consumers.

Each operation is compared with what was known when it was done (see `correlation.virtual_host`), and against
what the server answered: that shows the client to be wrong, or the server itself. Where nothing is known,
only that is judged which an answer says by itself.
"""

from collections.abc import Iterable
from typing import Final

from amqpscope.correlation.hosts import address
from amqpscope.correlation.virtual_host import (
    GONE,
    NOT_FOUND,
    THERE,
    KnownEntity,
    VirtualHost,
    changes,
    precedes,
    what_of,
)
from amqpscope.limits import (
    ADDRESS_TRANSLATION,
    EXCLUSIVE_PATIENCE,
    MAX_CORRELATED_LINKS,
    MAX_ENTITY_OPERATIONS,
)
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091 import bindings, entities, existence, redeclaration
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.amqp091.topology_operations import (
    DURABLE,
    EXCLUSIVE,
    IF_UNUSED,
    INTERNAL,
    NO_WAIT,
    PASSIVE,
    TopologyOperation,
)

__all__ = ["entrusted"]

# Refused for no reason of access, absence, or the state of the server.
_COMPARED: Final = (406, 530, 503)
# Of these, what is said of something that is there, and otherwise.
_UNLIKE: Final = (406, 530)
_REFUSED: Final = (406, 530, 503, 540)

# What every virtual host has without anybody declaring it (3.1.3); by its name, the type.
_STANDARD: Final = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}

# How many a virtual host, or a queue, has room for at least.
_EXCHANGES: Final = 16
_QUEUES: Final = 256
_BINDINGS: Final = 4
_CONSUMERS: Final = 16


def entrusted(summaries: Iterable[Amqp091Summary], all_there: bool = True) -> list[Finding]:
    """What is wrong with what was done on these connections, given in the order of time.

    all_there: no connection is missing.
    """
    kept = list(summaries)
    whole = all_there and sum(summary.weight for summary in kept) < MAX_CORRELATED_LINKS
    partial = {address(summary) for summary in kept if not summary.whole or not summary.virtual_host}
    hosts: dict[tuple[bytes, str], list[Amqp091Summary]] = {}
    for summary in kept:
        hosts.setdefault((address(summary), summary.virtual_host), []).append(summary)
    elsewhere = _elsewhere(kept)
    findings: list[Finding] = []
    for (where, name), some in hosts.items():
        host = VirtualHost(some, whole and where not in partial, elsewhere.get(name, set()))
        findings += _Judge(host).judge()
    return findings


def _elsewhere(summaries: list[Amqp091Summary]) -> dict[str, set[tuple[str, str]]]:
    """By virtual host, the queues and exchanges that are changed over more than one address."""
    first: dict[tuple[str, str, str], bytes] = {}
    found: dict[str, set[tuple[str, str]]] = {}
    for summary in summaries:
        where = address(summary)
        for operation in summary.operations:
            if changes(operation):
                kind, name = what_of(operation)
                if first.setdefault((summary.virtual_host, kind, name), where) != where:
                    found.setdefault(summary.virtual_host, set()).add((kind, name))
    return found


class _Judge:
    """Judges what was done to a virtual host."""

    def __init__(self, host: VirtualHost) -> None:
        self.host: VirtualHost = host
        self.findings: list[Finding] = []

    def judge(self) -> list[Finding]:
        """All findings, by queue and exchange, and in the order of time."""
        for name, operations in self.host.queues.items():
            for at, operation in enumerate(operations):
                self._queue(name, operation, self.host.known(operations, at, "queue", name))
        for name, operations in self.host.exchanges.items():
            for at, operation in enumerate(operations):
                self._exchange(name, operation, self.host.known(operations, at, "exchange", name))
        for binding in self.host.bindings.values():
            for at, operation in enumerate(binding):
                self._bind(binding, at, operation)
        for operation in self.host.operations:
            if operation.method == "basic.return":
                self._returned(operation)
            elif operation.method == "basic.cancel" and operation.outcome.refused:
                self._not_cancelled(operation)
        self.findings.sort(key=lambda finding: int(finding.spot.time))
        return self.findings

    # What is there, and what is not

    def _absent(self, operation: TopologyOperation, kind: str, name: str, known: KnownEntity | None) -> bool:
        """A 404 about this, or the use of what is known to be gone; whether that is what is wrong."""
        refused = (
            operation.outcome.refused
            and operation.outcome.code == NOT_FOUND
            and self.host.is_about(operation, kind, name)
        )
        if not refused:
            return False
        if kind == "exchange" and name in _STANDARD:
            self.findings.append(entities.standard_exchange_missing(operation, name))
            return True
        if known is not None and known.state == THERE:
            if self.host.lasting(known) is None:
                return True  # it may have gone by itself
            if known.by.has(NO_WAIT) and known.by.outcome.answer is None:
                self.findings.append(entities.not_done_and_not_said(operation, kind, name, known.by))
                self.host.disbelieved.add(id(operation))
            elif known.by.connection is not operation.connection:
                self.findings.append(entities.change_not_seen(operation, kind, name, known.by))
                self.host.disbelieved.add(id(operation))
            return True
        gone = known.by if known is not None and known.state == GONE else None
        missing = existence.missing(operation, kind, name, gone)
        if missing is not None:
            self.findings.append(missing)
        return True

    def _used_though_gone(
        self, operation: TopologyOperation, kind: str, name: str, known: KnownEntity | None
    ) -> None:
        """A server that is no RabbitMQ takes the deletion of what is gone for done."""
        if known is None or known.state != GONE or not operation.outcome.ok:
            return
        if operation.method not in ("queue.delete", "queue.unbind", "exchange.delete", "exchange.unbind"):
            return
        if self.host.summaries[id(operation.connection)].rabbitmq:
            return
        missing = existence.missing(operation, kind, name, known.by)
        if missing is not None:
            self.findings.append(missing)

    # Queues and exchanges

    def _queue(self, name: str, operation: TopologyOperation, known: KnownEntity | None) -> None:
        if self._anothers(name, operation):
            return
        if self._absent(operation, "queue", name, known):
            return
        self._used_though_gone(operation, "queue", name, known)
        method = operation.method
        if method == "queue.declare":
            self._declared("queue", operation, known)
        elif method == "queue.delete":
            if operation.outcome.ok and operation.has(IF_UNUSED):
                consumer = self.host.consumer(name, operation)
                if consumer is not None:
                    self.findings.append(entities.queue_in_use_deleted(operation, consumer))
        elif method == "basic.consume" or method == "basic.get":
            self._read(name, operation, known)
        elif method == "queue.bind" and operation.outcome.refused and operation.outcome.code == 506:
            bound = self.host.count_bindings(operation, _BINDINGS)
            if bound < _BINDINGS:
                self.findings.append(entities.too_few_bindings(operation, bound))

    def _exchange(self, name: str, operation: TopologyOperation, known: KnownEntity | None) -> None:
        if self._absent(operation, "exchange", name, known):
            return
        self._used_though_gone(operation, "exchange", name, known)
        if operation.method == "exchange.declare":
            self._declared("exchange", operation, known)
        elif operation.method == "basic.publish":
            made = self.host.lasting(known)
            if made is not None and made.has(INTERNAL) and operation.outcome.ok:
                self.findings.append(bindings.internal_exchange_reached(operation, made))
        elif operation.method == "exchange.delete" and operation.outcome.ok and operation.has(IF_UNUSED):
            binding = self.host.binding_of(name, operation)
            if binding is not None:
                self.findings.append(entities.exchange_in_use_deleted(operation, binding))

    def _declared(self, kind: str, operation: TopologyOperation, known: KnownEntity | None) -> None:
        findings = self.findings
        refused = operation.outcome.refused
        if operation.has(PASSIVE):
            if refused and operation.outcome.code in _COMPARED:
                if kind == "exchange":
                    findings.append(redeclaration.passive_exchange_compared(operation))
                else:
                    findings.append(redeclaration.passive_queue_compared(operation))
            elif operation.outcome.ok and not operation.has(NO_WAIT):
                if known is not None and known.state == GONE:
                    self.host.disbelieved.add(id(operation))
                    if kind == "exchange":
                        findings.append(redeclaration.passive_exchange_that_is_gone(operation, known.by))
                    else:
                        findings.append(redeclaration.passive_queue_that_is_gone(operation, known.by))
            return
        if refused and operation.outcome.code == 506:
            if kind == "exchange":
                count = self.host.count_declared(kind, _EXCHANGES)
                if count < _EXCHANGES:
                    findings.append(entities.too_few_exchanges(operation, count))
            else:
                count = self.host.count_declared(kind, _QUEUES)
                if count < _QUEUES:
                    findings.append(entities.too_few_queues(operation, count))
            return
        made = None if known is None or known.state != THERE else known.made
        what = [] if made is None else redeclaration.differences(made, operation)
        if kind == "exchange":
            self._exchange_again(operation, made, what, known)
            return
        if refused and operation.outcome.code == 406:
            if made is not None and what == ["auto-delete"]:
                findings.append(redeclaration.other_auto_delete_refused(operation, made))
            elif what or (made is None and "inequivalent" in operation.outcome.text):
                findings.append(redeclaration.queue_declared_otherwise(operation, made, what))
        elif operation.outcome.ok and made is not None and self.host.lasting(known) is not None:
            what = [one for one in what if one != "arguments"]
            if made.has(EXCLUSIVE) and "durable" in what:
                what.remove("durable")  # RabbitMQ keeps none of these durable
            if "auto-delete" in what:
                what.remove("auto-delete")  # one passage has it compared, another one ignored
            if what and operation.outcome.answer is not None:
                findings.append(redeclaration.unlike_queue_accepted(operation, made, what))

    def _exchange_again(
        self,
        operation: TopologyOperation,
        made: TopologyOperation | None,
        what: list[str],
        known: KnownEntity | None,
    ) -> None:
        kind = _STANDARD.get(operation.exchange, "")
        if kind and operation.kind != kind:
            if operation.outcome.refused and operation.outcome.code in _UNLIKE:
                self.findings.append(redeclaration.exchange_declared_with_another_type(operation, kind, None))
            return
        if made is None:
            return
        if operation.outcome.refused and operation.outcome.code in _COMPARED and "type" in what:
            self.findings.append(
                redeclaration.exchange_declared_with_another_type(operation, made.kind, made)
            )
        elif operation.outcome.ok and operation.outcome.answer is not None:
            what = [one for one in what if one != "arguments"]
            if what and self.host.lasting(known) is not None:
                self.findings.append(redeclaration.unlike_exchange_accepted(operation, made, what))

    # Exclusive queues

    def _anothers(self, name: str, operation: TopologyOperation) -> bool:
        """A operation to another connection's exclusive queue, or what is left of one; whether that is
        wrong."""
        made: TopologyOperation | None = None
        if not self.host.sure or operation.method == "queue.unbind":
            return False
        for one in self.host.queues[name][:MAX_ENTITY_OPERATIONS]:
            if one is operation:
                break
            if one.method == "queue.delete" and not one.outcome.refused:
                made = None
            elif one.method == "queue.declare" and one.outcome.ok and not one.has(PASSIVE):
                made = one if one.has(EXCLUSIVE) else None
        if (
            made is None
            or made.connection is operation.connection
            or not 0 <= made.outcome.time < operation.spot.time
            or self._captured_twice(made, operation)
        ):
            return False
        if self.host.lives(made, operation):
            self.findings.append(entities.anothers_queue_used(operation, made))
            return True
        owner = self.host.summaries[id(made.connection)]
        passive = operation.method == "queue.declare" and operation.has(PASSIVE)
        if owner.over and operation.outcome.ok and (passive or operation.method == "basic.consume"):
            waited = operation.spot.time - owner.ended
            if waited > EXCLUSIVE_PATIENCE:
                self.findings.append(
                    entities.exclusive_queue_outlives(operation, made, int(waited // 1_000_000_000))
                )
                return True
        return False

    def _captured_twice(self, made: TopologyOperation, operation: TopologyOperation) -> bool:
        """Whether two connections are one, captured before and behind an address translation: the same is
        done at the same places of both streams, at once.
        """
        first = self.host.summaries[id(made.connection)].operations[:MAX_ENTITY_OPERATIONS]
        second = self.host.summaries[id(operation.connection)].operations
        return all(
            one.method == other.method
            and one.spot.offset == other.spot.offset
            and one.outcome.end == other.outcome.end
            and -ADDRESS_TRANSLATION < one.spot.time - other.spot.time < ADDRESS_TRANSLATION
            for one, other in zip(first, second, strict=False)
        )

    # Consumers

    def _read(self, name: str, operation: TopologyOperation, known: KnownEntity | None) -> None:
        """A consumer, or a get, beside those of other connections."""
        if operation.outcome.refused and operation.outcome.code == 506:
            count = self.host.consuming(name, operation)
            if count < _CONSUMERS:
                self.findings.append(entities.too_few_consumers(operation, count))
            return
        asks = operation.method == "basic.consume" and operation.has(EXCLUSIVE)
        if operation.outcome.refused:
            if asks and operation.outcome.code == 403:
                self._asks_to_be_alone(name, operation)
            return
        made = None if known is None else known.made
        if (
            operation.outcome.answer is None
            or made is None
            or made.arguments is None
            or b"x-queue-type" in made.arguments
        ):
            return  # it may be of a kind that knows no exclusive consumers
        for consumer in self.host.consumers.get(name, [])[:MAX_ENTITY_OPERATIONS]:
            if consumer.has(EXCLUSIVE) and consumer.connection is not operation.connection:
                if self.host.consumes(consumer, operation):
                    self.findings.append(entities.exclusive_consumer_not_alone(operation, consumer))
                    return
        if asks:
            self._asks_to_be_alone(name, operation)

    def _asks_to_be_alone(self, name: str, operation: TopologyOperation) -> None:
        for consumer in self.host.consumers.get(name, [])[:MAX_ENTITY_OPERATIONS]:
            if consumer.connection is not operation.connection and self.host.consumes(consumer, operation):
                self.findings.append(entities.exclusive_consumer_beside_others(operation, consumer))
                return

    # Bindings

    def _bind(self, operations: list[TopologyOperation], at: int, operation: TopologyOperation) -> None:
        if not operation.outcome.refused or operation.outcome.code not in _REFUSED:
            return
        if operation.method == "queue.bind":
            binding = self.host.bound_before(operations, at)
            if binding is not None:
                self.findings.append(bindings.same_binding_of_a_queue_refused(operation, binding))
                return
            queue = self.host.known_before(operation, "queue", operation.queue)
            exchange = self.host.known_before(operation, "exchange", operation.exchange)
            if queue is None or exchange is None or queue.made is None or exchange.made is None:
                return
            if queue.made.has(DURABLE) and not exchange.made.has(DURABLE):
                self.findings.append(bindings.durable_queue_not_bound_to_transient(operation, exchange.made))
        elif operation.method == "exchange.bind":
            if operation.destination == operation.exchange:
                self.findings.append(bindings.binding_in_a_circle_refused(operation))
                return
            binding = self.host.bound_before(operations, at)
            if binding is not None:
                self.findings.append(bindings.same_binding_of_an_exchange_refused(operation, binding))

    # Returned messages, and the rest

    def _returned(self, operation: TopologyOperation) -> None:
        """A message came back that a queue was there for."""
        if not self.host.sure or operation.outcome.code != 312:
            return
        if not operation.exchange:
            made = self.host.lasting_queue(operation.key, operation)
            if made is not None:
                self.findings.append(bindings.own_name_does_not_lead_there(operation, made))
            return
        if self.host.is_direct(operation):
            binding = self.host.route_of(operation)
            if binding is not None:
                self.findings.append(bindings.bound_queue_not_reached(operation, binding))

    def _not_cancelled(self, operation: TopologyOperation) -> None:
        """The server closed the channel over a cancel."""
        key = (id(operation.connection), operation.channel, operation.tag)
        for consumer in self.host.consumers_by_tag.get(key, [])[:MAX_ENTITY_OPERATIONS]:
            if not consumer.outcome.ok or not precedes(consumer, operation):
                continue
            for one in self.host.queues.get(consumer.queue, []):
                if one.method == "queue.delete" and one.outcome.ok:
                    if precedes(consumer, one) and precedes(one, operation):
                        self.findings.append(entities.cancel_refused_without_queue(operation, one))
                        return
