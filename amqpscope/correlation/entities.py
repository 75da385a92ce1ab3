"""What the clients of one broker did to its exchanges, queues, bindings and consumers, beside each other.

Theory of operation. The deeds of all connections to one address and virtual host are taken together, those to
one queue or exchange in the order in which they were asked for. What was known of it when a deed D was done
is what the newest deed before it showed, by itself or by its answer: that it was there, or that it was not.

Before D is what the server must have done before it: on D's channel, what was asked for earlier; on another
channel of its connection, what D's client had the answer of; on another connection, what was answered
before D was asked for, by the capture's clock. What may have changed it meanwhile makes it unknown: any
declaration or deletion that is neither before nor after, or was not answered.

If octets of any connection to the address were missed, or deeds forgotten, only that is judged which an
answer says by itself. What is done to a name over two addresses (the nodes of a cluster) is left alone.
"""

from collections.abc import Iterable
from typing import Final

from amqpscope.correlation.hosts import address
from amqpscope.finding import Finding
from amqpscope.limits import EXCLUSIVE_PATIENCE, MAX_CORRELATED_LINKS, MAX_ENTITY_DEEDS
from amqpscope.rules.amqp091 import entities, existence
from amqpscope.tracking.amqp091.deeds import (
    AUTO_DELETE,
    DURABLE,
    EXCLUSIVE,
    IF_UNUSED,
    INTERNAL,
    NO_WAIT,
    PASSIVE,
    Deed,
)
from amqpscope.tracking.amqp091.summary import Summary

__all__ = ["entrusted"]

_UNKNOWN: Final = 0
_THERE: Final = 1
_GONE: Final = 2

_NOT_FOUND: Final = 404

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


def entrusted(summaries: Iterable[Summary], all_there: bool = True) -> list[Finding]:
    """What is wrong with what was done on these connections, given in the order of time.

    all_there: no connection is missing.
    """
    kept = list(summaries)
    whole = all_there and sum(summary.weight for summary in kept) < MAX_CORRELATED_LINKS
    partial = {address(summary) for summary in kept if not summary.whole or not summary.virtual_host}
    hosts: dict[tuple[bytes, str], list[Summary]] = {}
    for summary in kept:
        hosts.setdefault((address(summary), summary.virtual_host), []).append(summary)
    elsewhere = _elsewhere(kept)
    findings: list[Finding] = []
    for (where, name), some in hosts.items():
        host = _Host(some, whole and where not in partial, elsewhere.get(name, set()))
        findings += host.judge()
    return findings


def _elsewhere(summaries: list[Summary]) -> dict[str, set[tuple[str, str]]]:
    """By virtual host, the queues and exchanges that are changed over more than one address."""
    first: dict[tuple[str, str, str], bytes] = {}
    found: dict[str, set[tuple[str, str]]] = {}
    for summary in summaries:
        where = address(summary)
        for deed in summary.deeds:
            if _changes(deed):
                kind, name = _what(deed)
                if first.setdefault((summary.virtual_host, kind, name), where) != where:
                    found.setdefault(summary.virtual_host, set()).add((kind, name))
    return found


def _what(deed: Deed) -> tuple[str, str]:
    if deed.method.startswith("exchange."):
        return "exchange", deed.exchange
    return "queue", deed.queue


def _changes(deed: Deed) -> bool:
    """Whether it may make or unmake what it names."""
    if deed.outcome == "closed":
        return False
    if deed.method in ("queue.delete", "exchange.delete"):
        return True
    return deed.method in ("queue.declare", "exchange.declare") and not deed.has(PASSIVE)


def _before(one: Deed, other: Deed) -> bool:
    """Whether the server had done `one` when it came to do `other`."""
    if one.connection is other.connection:
        if one.channel == other.channel:
            return one.spot.offset < other.spot.offset
        return 0 <= one.answer_end <= other.known
    return 0 <= one.over < other.spot.time


class _Known:
    """What was known: by which deed, and how it was declared, None if that is not known."""

    def __init__(self, state: int, by: Deed, made: Deed | None) -> None:
        self.state: int = state
        self.by: Deed = by
        self.made: Deed | None = made


class _Host:
    """A virtual host at one address. sure: all that was done to it is known, of what was captured."""

    def __init__(self, summaries: list[Summary], sure: bool, elsewhere: set[tuple[str, str]]) -> None:
        self.sure: bool = sure
        self.elsewhere: set[tuple[str, str]] = elsewhere
        self.summaries: dict[int, Summary] = {id(one.connection): one for one in summaries}
        self.findings: list[Finding] = []
        # Deeds whose answer is at fault: it shows nothing.
        self.disbelieved: set[int] = set()
        deeds = [deed for summary in summaries for deed in summary.deeds]
        # Connections are in the order of time already: what was asked for at once stays so.
        deeds.sort(key=lambda deed: int(deed.spot.time))
        self.deeds: list[Deed] = deeds
        self.queues: dict[str, list[Deed]] = {}
        self.exchanges: dict[str, list[Deed]] = {}
        self.bindings: dict[tuple[str, ...], list[Deed]] = {}
        self.consumers: dict[str, list[Deed]] = {}
        # Of a connection's channel: what ends consumers there.
        self.ends: dict[tuple[int, int], list[Deed]] = {}
        for deed in deeds:
            self._sort(deed)

    def _sort(self, deed: Deed) -> None:
        method = deed.method
        if method in ("basic.cancel", "server cancels", "channel.close"):
            self.ends.setdefault((id(deed.connection), deed.channel), []).append(deed)
            return
        if method == "basic.return":
            return
        if deed.queue:
            self.queues.setdefault(deed.queue, []).append(deed)
        if deed.exchange:
            self.exchanges.setdefault(deed.exchange, []).append(deed)
        if deed.destination and deed.destination != deed.exchange:
            self.exchanges.setdefault(deed.destination, []).append(deed)
        if method in ("queue.bind", "queue.unbind", "exchange.bind", "exchange.unbind"):
            self.bindings.setdefault(_binding(deed), []).append(deed)
        elif method == "basic.consume" and deed.queue:
            self.consumers.setdefault(deed.queue, []).append(deed)

    # What was known

    def _shows(self, deed: Deed, kind: str, name: str) -> int:
        """What a deed shows of a queue or an exchange once it is done."""
        if id(deed) in self.disbelieved:
            return _UNKNOWN
        method = deed.method
        if method == "basic.publish":
            return _UNKNOWN
        if deed.outcome == "ok" or deed.outcome == "empty":
            if method == f"{kind}.delete":
                return _GONE
            if method in ("queue.unbind", "exchange.unbind"):
                return _UNKNOWN  # some servers do not look
            return _THERE
        if deed.outcome != "closed":
            return _UNKNOWN
        if deed.code == _NOT_FOUND:
            return _GONE if self._is_about(deed, kind, name) else _UNKNOWN
        if method == f"{kind}.declare" and not deed.has(PASSIVE):
            return _THERE if deed.code in (405, 406) else _UNKNOWN
        return _UNKNOWN

    def _is_about(self, deed: Deed, kind: str, name: str) -> bool:
        """Whether a 404 is about this of what the method names."""
        if deed.method in ("queue.bind", "queue.unbind"):
            return _blamed(deed) == kind
        if deed.method in ("exchange.bind", "exchange.unbind"):
            if deed.destination == deed.exchange:
                return True
            other = deed.exchange if name == deed.destination else deed.destination
            return f"'{name}'" in deed.text and f"'{other}'" not in deed.text
        return True

    def known(self, deeds: list[Deed], at: int, kind: str, name: str) -> _Known | None:
        """What was known of a queue or exchange before its deed number `at`; None: nothing that is sure."""
        if not self.sure or (kind, name) in self.elsewhere:
            return None
        deed = deeds[at]
        by: Deed | None = None
        made: Deed | None = None
        state = _UNKNOWN
        looked = 0
        for one in reversed(deeds[max(at - MAX_ENTITY_DEEDS, 0) : at]):
            looked += 1
            if by is None:
                if not _before(one, deed):
                    if _changes(one):
                        return None
                    continue
                state = self._shows(one, kind, name)
                if state == _UNKNOWN:
                    if _changes(one):
                        return None
                    continue
                by = one
            elif _changes(one) and not _before(one, by):
                return None
            if state == _THERE and made is None and one.outcome == "ok" and _changes(one):
                if one.method == f"{kind}.declare":
                    made = one
        if by is None:
            return None
        for one in deeds[at + 1 : at + 1 + MAX_ENTITY_DEEDS]:
            if deed.over >= 0 and one.spot.time > deed.over and one.connection is not deed.connection:
                break
            if _changes(one) and not _before(deed, one):
                return None
        if made is not None and not self._made_last(deeds, at, made, kind, name):
            made = None
        if state == _THERE and not self._stays(by, made, deed):
            return None
        return _Known(state, by, made)

    def _made_last(self, deeds: list[Deed], at: int, made: Deed, kind: str, name: str) -> bool:
        """Whether nothing showed it to be gone between its declaration and the deed number `at`."""
        for one in reversed(deeds[max(at - MAX_ENTITY_DEEDS, 0) : at]):
            if one is made:
                return True
            if self._shows(one, kind, name) == _GONE:
                return False
        return False

    def _stays(self, by: Deed, made: Deed | None, deed: Deed) -> bool:
        """Whether what was there then would be, if nobody deleted it: when the deed was done."""
        if by.connection is not deed.connection and not self._server_ran(by, deed):
            return False
        if made is None:
            return True
        if made.has(EXCLUSIVE) and made.connection is not deed.connection:
            return self._lives(made, deed)
        return True

    def _server_ran(self, by: Deed, deed: Deed) -> bool:
        """Whether some connection lasted all the time between two deeds."""
        for one in self.summaries.values():
            if one.connection is by.connection or one.connection.began <= by.over:
                if one.connection is deed.connection or one.ended >= deed.spot.time:
                    return True
        return False

    def _lives(self, made: Deed, deed: Deed) -> bool:
        """Whether the connection of the first deed was in use when the second had its answer."""
        return self.summaries[id(made.connection)].ended > max(int(deed.over), int(deed.spot.time))

    def lasting(self, known: _Known | None, kind: str) -> Deed | None:
        """How something was declared that is there and does not go by itself."""
        if known is None or known.state != _THERE or known.made is None:
            return None
        made = known.made
        if made.has(AUTO_DELETE) or made.arguments is None or b"x-expires" in made.arguments:
            return None
        return made

    def before(self, deed: Deed, kind: str, name: str) -> _Known | None:
        """What was known of something before a deed that is about it."""
        deeds = (self.queues if kind == "queue" else self.exchanges).get(name)
        if deeds is None:
            return None
        for at, one in enumerate(deeds):
            if one is deed:
                return self.known(deeds, at, kind, name)
        return None

    # Judging

    def judge(self) -> list[Finding]:
        """All findings, by queue and exchange, and in the order of time."""
        for name, deeds in self.queues.items():
            for at, deed in enumerate(deeds):
                self._queue(name, deed, self.known(deeds, at, "queue", name))
        for name, deeds in self.exchanges.items():
            for at, deed in enumerate(deeds):
                self._exchange(name, deed, self.known(deeds, at, "exchange", name))
        for binding in self.bindings.values():
            for at, deed in enumerate(binding):
                self._bind(binding, at, deed)
        for deed in self.deeds:
            if deed.method == "basic.return":
                self._returned(deed)
            elif deed.method == "basic.cancel" and deed.outcome == "closed":
                self._not_cancelled(deed)
        self.findings.sort(key=lambda finding: int(finding.spot.time))
        return self.findings

    def _absent(self, deed: Deed, kind: str, name: str, known: _Known | None) -> bool:
        """A 404 about this, or the use of what is known to be gone; whether that is what is wrong."""
        table = existence.QUEUES if kind == "queue" else existence.EXCHANGES
        refused = deed.outcome == "closed" and deed.code == _NOT_FOUND and self._is_about(deed, kind, name)
        if not refused:
            return False
        if kind == "exchange" and name in _STANDARD:
            self.findings.append(entities.standard_exchange_missing(deed, name))
            return True
        if known is not None and known.state == _THERE:
            if self.lasting(known, kind) is None:
                return True  # it may have gone by itself
            if known.by.has(NO_WAIT) and known.by.answer is None:
                self.findings.append(entities.not_done_and_not_said(deed, kind, name, known.by))
                self.disbelieved.add(id(deed))
            elif known.by.connection is not deed.connection:
                self.findings.append(entities.change_not_seen(deed, kind, name, known.by))
                self.disbelieved.add(id(deed))
            return True
        rule = table.get(deed.method)
        if rule is not None:
            gone = known.by if known is not None and known.state == _GONE else None
            self.findings.append(rule(deed, name, gone))
        return True

    def _used_though_gone(self, deed: Deed, kind: str, name: str, known: _Known | None) -> None:
        """A server that is no RabbitMQ takes the deletion of what is gone for done."""
        if known is None or known.state != _GONE or deed.outcome != "ok":
            return
        if deed.method not in ("queue.delete", "queue.unbind", "exchange.delete", "exchange.unbind"):
            return
        if self.summaries[id(deed.connection)].rabbitmq:
            return
        table = existence.QUEUES if kind == "queue" else existence.EXCHANGES
        self.findings.append(table[deed.method](deed, name, known.by))

    def _queue(self, name: str, deed: Deed, known: _Known | None) -> None:
        if self._anothers(name, deed):
            return
        if self._absent(deed, "queue", name, known):
            return
        self._used_though_gone(deed, "queue", name, known)
        method = deed.method
        if method == "queue.declare":
            self._declared("queue", deed, known)
        elif method == "queue.delete":
            if deed.outcome == "ok" and deed.has(IF_UNUSED):
                consumer = self._consumer(name, deed)
                if consumer is not None:
                    self.findings.append(entities.queue_in_use_deleted(deed, consumer))
        elif method == "basic.consume" or method == "basic.get":
            self._read(name, deed, known)
        elif method == "queue.bind" and deed.outcome == "closed" and deed.code == 506:
            bound = self._bound(deed)
            if bound < _BINDINGS:
                self.findings.append(entities.too_few_bindings(deed, bound))

    def _exchange(self, name: str, deed: Deed, known: _Known | None) -> None:
        if self._absent(deed, "exchange", name, known):
            return
        self._used_though_gone(deed, "exchange", name, known)
        if deed.method == "exchange.declare":
            self._declared("exchange", deed, known)
        elif deed.method == "basic.publish":
            made = self.lasting(known, "exchange")
            if made is not None and made.has(INTERNAL) and deed.outcome == "ok":
                self.findings.append(entities.internal_exchange_reached(deed, made))
        elif deed.method == "exchange.delete" and deed.outcome == "ok" and deed.has(IF_UNUSED):
            binding = self._binding_of(name, deed)
            if binding is not None:
                self.findings.append(entities.exchange_in_use_deleted(deed, binding))

    def _declared(self, kind: str, deed: Deed, known: _Known | None) -> None:
        findings = self.findings
        refused = deed.outcome == "closed"
        if deed.has(PASSIVE):
            if refused and deed.code in _COMPARED:
                if kind == "exchange":
                    findings.append(entities.passive_exchange_compared(deed))
                else:
                    findings.append(entities.passive_queue_compared(deed))
            elif deed.outcome == "ok" and not deed.has(NO_WAIT):
                if known is not None and known.state == _GONE:
                    self.disbelieved.add(id(deed))
                    if kind == "exchange":
                        findings.append(entities.passive_exchange_that_is_gone(deed, known.by))
                    else:
                        findings.append(entities.passive_queue_that_is_gone(deed, known.by))
            return
        if refused and deed.code == 506:
            count = self._live(kind, deed)
            if kind == "exchange" and count < _EXCHANGES:
                findings.append(entities.too_few_exchanges(deed, count))
            elif kind == "queue" and count < _QUEUES:
                findings.append(entities.too_few_queues(deed, count))
            return
        made = None if known is None or known.state != _THERE else known.made
        what = [] if made is None else entities.differences(made, deed)
        if kind == "exchange":
            self._exchange_again(deed, made, what, known)
            return
        if refused and deed.code == 406:
            if made is not None and what == ["auto-delete"]:
                findings.append(entities.other_auto_delete_refused(deed, made))
            elif what or (made is None and "inequivalent" in deed.text):
                findings.append(entities.queue_declared_otherwise(deed, made, what))
        elif deed.outcome == "ok" and made is not None and self.lasting(known, kind) is not None:
            what = [one for one in what if one != "arguments"]
            if made.has(EXCLUSIVE) and "durable" in what:
                what.remove("durable")  # RabbitMQ keeps none of these durable
            if "auto-delete" in what:
                what.remove("auto-delete")  # one passage has it compared, another one ignored
            if what and deed.answer is not None:
                findings.append(entities.unlike_queue_accepted(deed, made, what))

    def _exchange_again(self, deed: Deed, made: Deed | None, what: list[str], known: _Known | None) -> None:
        kind = _STANDARD.get(deed.exchange, "")
        if kind and deed.kind != kind:
            if deed.outcome == "closed" and deed.code in _UNLIKE:
                self.findings.append(entities.exchange_declared_with_another_type(deed, kind, None))
            return
        if made is None:
            return
        if deed.outcome == "closed" and deed.code in _COMPARED and "type" in what:
            self.findings.append(entities.exchange_declared_with_another_type(deed, made.kind, made))
        elif deed.outcome == "ok" and deed.answer is not None and self.lasting(known, "exchange") is not None:
            what = [one for one in what if one != "arguments"]
            if what:
                self.findings.append(entities.unlike_exchange_accepted(deed, made, what))

    # Exclusive queues

    def _anothers(self, name: str, deed: Deed) -> bool:
        """A deed to another connection's exclusive queue, or what is left of one; whether that is wrong."""
        made: Deed | None = None
        if not self.sure or deed.method == "queue.unbind":
            return False
        for one in self.queues[name][:MAX_ENTITY_DEEDS]:
            if one is deed:
                break
            if one.method == "queue.delete" and one.outcome != "closed":
                made = None
            elif one.method == "queue.declare" and one.outcome == "ok" and not one.has(PASSIVE):
                made = one if one.has(EXCLUSIVE) else None
        if made is None or made.connection is deed.connection or not 0 <= made.over < deed.spot.time:
            return False
        if self._lives(made, deed):
            self.findings.append(entities.anothers_queue_used(deed, made))
            return True
        owner = self.summaries[id(made.connection)]
        passive = deed.method == "queue.declare" and deed.has(PASSIVE)
        if owner.over and deed.outcome == "ok" and (passive or deed.method == "basic.consume"):
            waited = deed.spot.time - owner.ended
            if waited > EXCLUSIVE_PATIENCE:
                self.findings.append(
                    entities.exclusive_queue_outlives(deed, made, int(waited // 1_000_000_000))
                )
                return True
        return False

    # Consumers

    def _read(self, name: str, deed: Deed, known: _Known | None) -> None:
        """A consumer, or a get, beside those of other connections."""
        if deed.outcome == "closed" and deed.code == 506:
            count = self._consuming(name, deed)
            if count < _CONSUMERS:
                self.findings.append(entities.too_few_consumers(deed, count))
            return
        asks = deed.method == "basic.consume" and deed.has(EXCLUSIVE)
        if deed.outcome == "closed":
            if asks and deed.code == 403:
                self._asks_to_be_alone(name, deed)
            return
        made = None if known is None else known.made
        if deed.answer is None or made is None or made.arguments is None or b"x-queue-type" in made.arguments:
            return  # it may be of a kind that knows no exclusive consumers
        for consumer in self.consumers.get(name, [])[:MAX_ENTITY_DEEDS]:
            if consumer.has(EXCLUSIVE) and consumer.connection is not deed.connection:
                if self._consumes(consumer, deed):
                    self.findings.append(entities.exclusive_consumer_not_alone(deed, consumer))
                    return
        if asks:
            self._asks_to_be_alone(name, deed)

    def _asks_to_be_alone(self, name: str, deed: Deed) -> None:
        for consumer in self.consumers.get(name, [])[:MAX_ENTITY_DEEDS]:
            if consumer.connection is not deed.connection and self._consumes(consumer, deed):
                self.findings.append(entities.exclusive_consumer_beside_others(deed, consumer))
                return

    def _consumer(self, name: str, deed: Deed) -> Deed | None:
        """One on another channel that consumed from the queue all the time of a deed."""
        for consumer in self.consumers.get(name, [])[:MAX_ENTITY_DEEDS]:
            if consumer.connection is deed.connection and consumer.channel == deed.channel:
                continue
            if self._consumes(consumer, deed):
                return consumer
        return None

    def _consuming(self, name: str, deed: Deed) -> int:
        """How many may have consumed from the queue at the time of a deed."""
        return sum(
            1 for one in self.consumers.get(name, [])[:MAX_ENTITY_DEEDS] if one.outcome != "closed"
        ) - (1 if deed.outcome != "closed" else 0)

    def _consumes(self, consumer: Deed, deed: Deed) -> bool:
        """Whether a consumer was there before the deed was asked for, and was when it was answered."""
        if consumer is deed or consumer.outcome != "ok" or not self.sure or not _before(consumer, deed):
            return False
        if consumer.has(NO_WAIT) and not consumer.tag:
            return False
        # Whoever ends it does so from when it is said.
        if consumer.connection is not deed.connection and not self._lives(consumer, deed):
            return False
        for end in self.ends.get((id(consumer.connection), consumer.channel), []):
            if end.method != "channel.close" and end.tag != consumer.tag:
                continue
            if end.spot.time < consumer.spot.time:
                continue
            if not _after(end, deed):
                return False
        for one in self.queues.get(consumer.queue, []):
            if one.method == "queue.delete" and one is not deed and one.outcome != "closed":
                if not _before(one, consumer) and not _before(deed, one):
                    return False
        return True

    # Bindings

    def _bind(self, deeds: list[Deed], at: int, deed: Deed) -> None:
        if deed.outcome != "closed" or deed.code not in _REFUSED:
            return
        if deed.method == "queue.bind":
            binding = self._bound_before(deeds, at)
            if binding is not None:
                self.findings.append(entities.same_binding_of_a_queue_refused(deed, binding))
                return
            queue = self.before(deed, "queue", deed.queue)
            exchange = self.before(deed, "exchange", deed.exchange)
            if queue is None or exchange is None or queue.made is None or exchange.made is None:
                return
            if queue.made.has(DURABLE) and not exchange.made.has(DURABLE):
                self.findings.append(entities.durable_queue_not_bound_to_transient(deed, exchange.made))
        elif deed.method == "exchange.bind":
            if deed.destination == deed.exchange:
                self.findings.append(entities.binding_in_a_circle_refused(deed))
                return
            binding = self._bound_before(deeds, at)
            if binding is not None:
                self.findings.append(entities.same_binding_of_an_exchange_refused(deed, binding))

    def _bound_before(self, deeds: list[Deed], at: int) -> Deed | None:
        """The binding that was there before its deed number `at`."""
        deed = deeds[at]
        if not self.sure:
            return None
        for one in deeds[:at]:
            if one.method in ("queue.unbind", "exchange.unbind") and one.outcome != "closed":
                return None
        for one in reversed(deeds[max(at - MAX_ENTITY_DEEDS, 0) : at]):
            if one.outcome == "ok" and _before(one, deed) and self._kept(one, deed):
                return one
        return None

    def _kept(self, binding: Deed, deed: Deed) -> bool:
        """Whether nothing was deleted that a binding is between, from when it was made to a deed."""
        queue = binding.queue
        for kind, name in (("queue", queue), ("exchange", binding.exchange)):
            if not name:
                continue
            if (kind, name) in self.elsewhere:
                return False
            for one in (self.queues if kind == "queue" else self.exchanges).get(name, []):
                if one is deed or one.outcome == "closed":
                    continue
                if one.method == f"{kind}.delete" and not _before(one, binding) and not _before(deed, one):
                    return False
                if one.method == f"{kind}.declare" and not one.has(PASSIVE):
                    # It may go by itself, and with it the binding.
                    if one.has(AUTO_DELETE) or one.arguments is None or b"x-expires" in one.arguments:
                        return False
                    if one.has(EXCLUSIVE) and one.connection is not deed.connection:
                        if not self._lives(one, deed):
                            return False
        return binding.connection is deed.connection or self._server_ran(binding, deed)

    def _binding_of(self, exchange: str, deed: Deed) -> Deed | None:
        """A binding of which the exchange is the source, that is there when a deed is done."""
        for key, deeds in self.bindings.items():
            if key[1] == exchange and not any(
                one.method.endswith(".unbind") and one.outcome != "closed" for one in deeds
            ):
                for one in deeds[:MAX_ENTITY_DEEDS]:
                    if one.method.endswith(".bind") and one.outcome == "ok":
                        if _before(one, deed) and self._kept(one, deed):
                            return one
        return None

    def _bound(self, deed: Deed) -> int:
        """How many bindings of its queue are known when a deed is done."""
        return sum(
            1
            for key, deeds in self.bindings.items()
            if key[0] == deed.queue
            and any(one.outcome == "ok" and one.method == "queue.bind" for one in deeds)
        )

    def _live(self, kind: str, deed: Deed) -> int:
        """How many queues, or exchanges, were declared before a deed."""
        names = self.queues if kind == "queue" else self.exchanges
        return sum(
            1
            for deeds in names.values()
            if any(one.method == f"{kind}.declare" and one.outcome == "ok" for one in deeds)
        )

    # Returned messages, and the rest

    def _returned(self, deed: Deed) -> None:
        """A message came back that a queue was there for."""
        if not self.sure or deed.code != 312:
            return
        if not deed.exchange:
            made = self._lasting_queue(deed.key, deed)
            if made is not None:
                self.findings.append(entities.own_name_does_not_lead_there(deed, made))
            return
        for key, deeds in self.bindings.items():
            if key[1] != deed.exchange or key[2] != deed.key or not key[0] or not self._direct(deed):
                continue
            if any(one.method.endswith(".unbind") and one.outcome != "closed" for one in deeds):
                continue
            for one in deeds[:MAX_ENTITY_DEEDS]:
                if one.method == "queue.bind" and one.outcome == "ok" and _before(one, deed):
                    if self._kept(one, deed):
                        self.findings.append(entities.bound_queue_not_reached(deed, one))
                        return

    def _direct(self, deed: Deed) -> bool:
        """Whether the exchange of a deed is a direct one."""
        if deed.exchange == "amq.direct":
            return True
        kinds = {
            one.kind
            for one in self.exchanges.get(deed.exchange, [])
            if one.method == "exchange.declare" and one.outcome == "ok" and not one.has(PASSIVE)
        }
        return kinds == {"direct"}

    def _lasting_queue(self, name: str, deed: Deed) -> Deed | None:
        """The declaration of a queue that was there when a message was published, and goes not by itself."""
        deeds = self.queues.get(name)
        if not deeds:
            return None
        later = [one for one in deeds if _before(deed, one)]
        at = len(deeds) - len(later)
        # As if the message were one of the queue's deeds.
        return self.lasting(self.known([*deeds[:at], deed, *deeds[at:]], at, "queue", name), "queue")

    def _not_cancelled(self, deed: Deed) -> None:
        """The server closed the channel over a cancel."""
        for queue, consumers in self.consumers.items():
            for consumer in consumers:
                if consumer.connection is deed.connection and consumer.channel == deed.channel:
                    if consumer.tag == deed.tag and consumer.outcome == "ok" and _before(consumer, deed):
                        for one in self.queues.get(queue, []):
                            if one.method == "queue.delete" and one.outcome == "ok":
                                if _before(consumer, one) and _before(one, deed):
                                    self.findings.append(entities.cancel_refused_without_queue(deed, one))
                                    return


def _after(end: Deed, deed: Deed) -> bool:
    """Whether what ends a consumer was said only when a deed had its answer."""
    if end.connection is deed.connection and end.channel == deed.channel:
        if end.method == "server cancels" or end.known < 0:
            return end.spot.time >= deed.over
        return _before(deed, end)
    return 0 <= deed.over < end.spot.time


def _binding(deed: Deed) -> tuple[str, ...]:
    """What makes a binding one: where it leads, from where, by which key and arguments."""
    arguments = "" if not deed.arguments else deed.arguments.hex()
    return deed.queue, deed.exchange, deed.key, deed.destination, arguments


def _blamed(deed: Deed) -> str:
    """What a 404 says that is not there, `queue` or `exchange`; "" if it does not tell."""
    text = deed.text.lower()
    for name in (deed.queue, deed.exchange):
        if name:
            text = text.replace(f"'{name.lower()}'", "")
    queue, exchange = "queue" in text, "exchange" in text
    if queue == exchange:
        return ""
    return "queue" if queue else "exchange"
