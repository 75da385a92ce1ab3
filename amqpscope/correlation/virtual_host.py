"""What was known of the queues, exchanges, bindings and consumers of a virtual host when something was done.

Theory of operation. The deeds of all connections to one address and virtual host are taken together, those to
one queue or exchange in the order in which they were asked for. What was known of it when a deed D was done
is what the newest deed before it showed, by itself or by its answer: that it was there, or that it was not.

Before D is what the server must have done before it: on D's channel, what was asked for earlier; on another
channel of its connection, what D's client had the answer of; on another connection, what was answered
before D was asked for, by the capture's clock. What may have changed it meanwhile makes it unknown: any
declaration or deletion that is neither before nor after, or was not answered.

If octets of any connection to the address were missed, or deeds forgotten, nothing is known. Nor is anything
of a name to which something was done over two addresses (the nodes of a cluster).
"""

from bisect import bisect_right
from itertools import accumulate, islice
from typing import Final

from amqpscope.correlation.order import by_time
from amqpscope.limits import MAX_ENTITY_DEEDS, MAX_RETURNED_DEEDS
from amqpscope.tracking.amqp091.deeds import AUTO_DELETE, EXCLUSIVE, NO_WAIT, PASSIVE, Deed
from amqpscope.tracking.amqp091.summary import Summary

__all__ = ["GONE", "NOT_FOUND", "THERE", "Known", "VirtualHost", "changes", "precedes", "what_of"]

UNKNOWN: Final = 0
THERE: Final = 1
GONE: Final = 2
"""What a deed shows of a queue or an exchange."""

NOT_FOUND: Final = 404
"""The code of a close that says that there is no such queue or exchange."""


def what_of(deed: Deed) -> tuple[str, str]:
    """What a deed is done to: `queue` or `exchange`, and its name."""
    if deed.method.startswith("exchange."):
        return "exchange", deed.exchange
    return "queue", deed.queue


def changes(deed: Deed) -> bool:
    """Whether it may make or unmake what it names."""
    if deed.outcome == "closed":
        return False
    if deed.method in ("queue.delete", "exchange.delete"):
        return True
    return deed.method in ("queue.declare", "exchange.declare") and not deed.has(PASSIVE)


def precedes(one: Deed, other: Deed) -> bool:
    """Whether the server had done `one` when it came to do `other`."""
    if one.connection is other.connection:
        if one.channel == other.channel:
            return one.spot.offset < other.spot.offset
        return 0 <= one.answer_end <= other.known
    return 0 <= one.over < other.spot.time


class Known:
    """What was known: by which deed, and how it was declared, None if that is not known."""

    def __init__(self, state: int, by: Deed, made: Deed | None) -> None:
        self.state: int = state
        self.by: Deed = by
        self.made: Deed | None = made


class VirtualHost:
    """A virtual host at one address, by all that its clients did there, in the order of time.

    sure: all that was done to it is known, of what was captured. elsewhere: the kind and name of what is
    changed over more than one address.
    """

    def __init__(self, summaries: list[Summary], sure: bool, elsewhere: set[tuple[str, str]]) -> None:
        self.sure: bool = sure
        self.elsewhere: set[tuple[str, str]] = elsewhere
        self.summaries: dict[int, Summary] = {id(one.connection): one for one in summaries}
        # Deeds whose answer is at fault: it shows nothing.
        self.disbelieved: set[int] = set()
        # Connections are in the order of time already: what was asked for at once stays so.
        deeds = by_time([summary.deeds for summary in summaries])
        self.deeds: list[Deed] = deeds
        self.queues: dict[str, list[Deed]] = {}
        self.exchanges: dict[str, list[Deed]] = {}
        self.bindings: dict[tuple[str, ...], list[Deed]] = {}
        self.consumers: dict[str, list[Deed]] = {}
        # By connection, channel and tag: consumers, and what ends them. By connection and channel: its ends.
        self.consumers_by_tag: dict[tuple[int, int, str], list[Deed]] = {}
        self._cancels: dict[tuple[int, int, str], list[Deed]] = {}
        self._closes: dict[tuple[int, int], list[Deed]] = {}
        # Deeds of which nobody need look through all: those that delete a queue or exchange, or may have made
        # one that goes by itself, by what they name; bindings by exchange, and by exchange and key.
        self._hazards: dict[tuple[str, str], list[Deed]] = {}
        self._from: dict[str, list[list[Deed]]] = {}
        # The types that an exchange was declared with.
        self._kinds: dict[str, set[str]] = {}
        self._routed: dict[tuple[str, str], list[list[Deed]]] = {}
        # By the identity of a list of deeds to a binding: where the first is that takes it away.
        self._unbound: dict[int, int] = {}
        # By kind and name, where each deed stands; made when it is asked for.
        self._places: dict[tuple[str, str], dict[int, int]] = {}
        for deed in deeds:
            self._sort(deed)
        # When connections began, in order, and for each place when the last of those up to it ended.
        spans = sorted((int(one.connection.began), int(one.ended)) for one in summaries)
        self._begins: list[int] = [began for began, _ in spans]
        self._latest: list[int] = list(accumulate((ended for _, ended in spans), max))

    def _sort(self, deed: Deed) -> None:
        method = deed.method
        if method == "channel.close":
            self._closes.setdefault((id(deed.connection), deed.channel), []).append(deed)
            return
        if method in ("basic.cancel", "server cancels"):
            self._cancels.setdefault((id(deed.connection), deed.channel, deed.tag), []).append(deed)
            return
        if method == "basic.return":
            return
        if deed.queue:
            self.queues.setdefault(deed.queue, []).append(deed)
        if deed.exchange:
            self.exchanges.setdefault(deed.exchange, []).append(deed)
            if method == "exchange.declare" and deed.outcome == "ok" and not deed.has(PASSIVE):
                self._kinds.setdefault(deed.exchange, set()).add(deed.kind)
        if deed.destination and deed.destination != deed.exchange:
            self.exchanges.setdefault(deed.destination, []).append(deed)
        if method in ("queue.bind", "queue.unbind", "exchange.bind", "exchange.unbind"):
            self._sort_binding(deed)
        elif method == "basic.consume" and deed.queue:
            self.consumers.setdefault(deed.queue, []).append(deed)
            self.consumers_by_tag.setdefault((id(deed.connection), deed.channel, deed.tag), []).append(deed)
        elif deed.outcome != "closed" and (_deletes(deed) or _may_go(deed)):
            self._hazards.setdefault(what_of(deed), []).append(deed)

    def _sort_binding(self, deed: Deed) -> None:
        key = _binding(deed)
        deeds = self.bindings.get(key)
        if deeds is None:
            deeds = self.bindings[key] = []
            self._from.setdefault(deed.exchange, []).append(deeds)
            if deed.queue:
                self._routed.setdefault((deed.exchange, deed.key), []).append(deeds)
        if deed.method.endswith(".unbind") and deed.outcome != "closed":
            self._unbound.setdefault(id(deeds), len(deeds))
        deeds.append(deed)

    # What was known of a queue or an exchange

    def known(self, deeds: list[Deed], at: int, kind: str, name: str) -> Known | None:
        """What was known of a queue or exchange before its deed number `at`; None: nothing that is sure."""
        if not self.sure or (kind, name) in self.elsewhere:
            return None
        deed = deeds[at]
        by: Deed | None = None
        made: Deed | None = None
        state = UNKNOWN
        for one in reversed(deeds[max(at - MAX_ENTITY_DEEDS, 0) : at]):
            if by is None:
                if not precedes(one, deed):
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
            if state == THERE and made is None and one.outcome == "ok" and changes(one):
                if one.method == f"{kind}.declare":
                    made = one
        if by is None:
            return None
        for one in deeds[at + 1 : at + 1 + MAX_ENTITY_DEEDS]:
            if deed.over >= 0 and one.spot.time > deed.over and one.connection is not deed.connection:
                break
            if changes(one) and not precedes(deed, one):
                return None
        if made is not None and not self._made_last(deeds, at, made, kind, name):
            made = None
        if state == THERE and not self._stays(by, made, deed):
            return None
        return Known(state, by, made)

    def known_before(self, deed: Deed, kind: str, name: str) -> Known | None:
        """What was known of something before a deed that is about it."""
        deeds = (self.queues if kind == "queue" else self.exchanges).get(name)
        if deeds is None:
            return None
        places = self._places.get((kind, name))
        if places is None:
            places = self._places[kind, name] = {id(one): at for at, one in enumerate(deeds)}
        at = places.get(id(deed))
        return None if at is None else self.known(deeds, at, kind, name)

    def lasting(self, known: Known | None, kind: str) -> Deed | None:
        """How something was declared that is there and does not go by itself."""
        if known is None or known.state != THERE or known.made is None:
            return None
        made = known.made
        if made.has(AUTO_DELETE) or made.arguments is None or b"x-expires" in made.arguments:
            return None
        return made

    def lasting_queue(self, name: str, deed: Deed) -> Deed | None:
        """The declaration of a queue that was there when a message was published, and goes not by itself."""
        deeds = self.queues.get(name)
        if not deeds or len(deeds) > MAX_RETURNED_DEEDS:
            return None
        later = [one for one in deeds if precedes(deed, one)]
        at = len(deeds) - len(later)
        # As if the message were one of the queue's deeds.
        return self.lasting(self.known([*deeds[:at], deed, *deeds[at:]], at, "queue", name), "queue")

    def is_about(self, deed: Deed, kind: str, name: str) -> bool:
        """Whether a 404 is about this of what the method names."""
        if deed.method in ("queue.bind", "queue.unbind"):
            return _blamed(deed) == kind
        if deed.method in ("exchange.bind", "exchange.unbind"):
            if deed.destination == deed.exchange:
                return True
            other = deed.exchange if name == deed.destination else deed.destination
            return f"'{name}'" in deed.text and f"'{other}'" not in deed.text
        return True

    def count_declared(self, kind: str, most: int) -> int:
        """How many queues, or exchanges, were declared; `most` stands for any more."""
        names = self.queues if kind == "queue" else self.exchanges
        declared = (
            name
            for name, deeds in names.items()
            if any(one.method == f"{kind}.declare" and one.outcome == "ok" for one in deeds)
        )
        return sum(1 for _ in islice(declared, most))

    def is_direct(self, deed: Deed) -> bool:
        """Whether the exchange of a deed is a direct one."""
        if deed.exchange == "amq.direct":
            return True
        return self._kinds.get(deed.exchange) == {"direct"}

    def _shows(self, deed: Deed, kind: str, name: str) -> int:
        """What a deed shows of a queue or an exchange once it is done."""
        if id(deed) in self.disbelieved:
            return UNKNOWN
        method = deed.method
        if method == "basic.publish":
            return UNKNOWN
        if deed.outcome == "ok" or deed.outcome == "empty":
            if method == f"{kind}.delete":
                return GONE
            if method in ("queue.unbind", "exchange.unbind"):
                return UNKNOWN  # some servers do not look
            return THERE
        if deed.outcome != "closed":
            return UNKNOWN
        if deed.code == NOT_FOUND:
            return GONE if self.is_about(deed, kind, name) else UNKNOWN
        if method == f"{kind}.declare" and not deed.has(PASSIVE):
            return THERE if deed.code in (405, 406) else UNKNOWN
        return UNKNOWN

    def _made_last(self, deeds: list[Deed], at: int, made: Deed, kind: str, name: str) -> bool:
        """Whether nothing showed it to be gone between its declaration and the deed number `at`."""
        for one in reversed(deeds[max(at - MAX_ENTITY_DEEDS, 0) : at]):
            if one is made:
                return True
            if self._shows(one, kind, name) == GONE:
                return False
        return False

    def _stays(self, by: Deed, made: Deed | None, deed: Deed) -> bool:
        """Whether what was there then would be, if nobody deleted it: when the deed was done."""
        if by.connection is not deed.connection and not self._server_ran(by, deed):
            return False
        if made is None:
            return True
        if made.has(EXCLUSIVE) and made.connection is not deed.connection:
            return self.lives(made, deed)
        return True

    def _server_ran(self, by: Deed, deed: Deed) -> bool:
        """Whether some connection lasted all the time between two deeds."""
        if by.connection is deed.connection or self.summaries[id(by.connection)].ended >= deed.spot.time:
            return True
        if deed.connection.began <= by.over:
            return True
        before = bisect_right(self._begins, by.over)
        return before > 0 and self._latest[before - 1] >= deed.spot.time

    def lives(self, made: Deed, deed: Deed) -> bool:
        """Whether the connection of the first deed was in use when the second had its answer."""
        return self.summaries[id(made.connection)].ended > max(int(deed.over), int(deed.spot.time))

    # Who consumed

    def consumer(self, name: str, deed: Deed) -> Deed | None:
        """One on another channel that consumed from the queue all the time of a deed."""
        for consumer in self.consumers.get(name, [])[:MAX_ENTITY_DEEDS]:
            if consumer.connection is deed.connection and consumer.channel == deed.channel:
                continue
            if self.consumes(consumer, deed):
                return consumer
        return None

    def consuming(self, name: str, deed: Deed) -> int:
        """How many may have consumed from the queue at the time of a deed."""
        return sum(
            1 for one in self.consumers.get(name, [])[:MAX_ENTITY_DEEDS] if one.outcome != "closed"
        ) - (1 if deed.outcome != "closed" else 0)

    def consumes(self, consumer: Deed, deed: Deed) -> bool:
        """Whether a consumer was there before the deed was asked for, and was when it was answered."""
        if consumer is deed or consumer.outcome != "ok" or not self.sure or not precedes(consumer, deed):
            return False
        if consumer.has(NO_WAIT) and not consumer.tag:
            return False
        # Whoever ends it does so from when it is said.
        if consumer.connection is not deed.connection and not self.lives(consumer, deed):
            return False
        where = (id(consumer.connection), consumer.channel)
        for ends in (self._closes.get(where, []), self._cancels.get((*where, consumer.tag), [])):
            if len(ends) > MAX_ENTITY_DEEDS:
                return False
            for end in ends:
                if end.spot.time >= consumer.spot.time and not _after(end, deed):
                    return False
        hazards = self._hazards.get(("queue", consumer.queue), [])
        if len(hazards) > MAX_ENTITY_DEEDS:
            return False
        for one in hazards:
            if _deletes(one) and one is not deed:
                if not precedes(one, consumer) and not precedes(deed, one):
                    return False
        return True

    # What was bound

    def bound_before(self, deeds: list[Deed], at: int) -> Deed | None:
        """The binding that was there before its deed number `at`."""
        deed = deeds[at]
        if not self.sure:
            return None
        if self._unbound.get(id(deeds), at) < at:
            return None
        for one in reversed(deeds[max(at - MAX_ENTITY_DEEDS, 0) : at]):
            if one.outcome == "ok" and precedes(one, deed) and self.kept(one, deed):
                return one
        return None

    def binding_of(self, exchange: str, deed: Deed) -> Deed | None:
        """A binding of which the exchange is the source, that is there when a deed is done."""
        return self._binding_among(self._from.get(exchange, []), deed)

    def route_of(self, deed: Deed) -> Deed | None:
        """A binding of a queue that leads there from the exchange and key of a deed when it is done."""
        return self._binding_among(self._routed.get((deed.exchange, deed.key), []), deed, "queue.bind")

    def _binding_among(self, bindings: list[list[Deed]], deed: Deed, method: str = "") -> Deed | None:
        """One of the first of these that was never taken away, and is there when a deed is done."""
        for deeds in bindings[:MAX_ENTITY_DEEDS]:
            if id(deeds) in self._unbound:
                continue
            for one in deeds[:MAX_ENTITY_DEEDS]:
                bound = one.method == method if method else one.method.endswith(".bind")
                if bound and one.outcome == "ok" and precedes(one, deed) and self.kept(one, deed):
                    return one
        return None

    def count_bindings(self, deed: Deed, most: int) -> int:
        """How many bindings of its queue are known when a deed is done; `most` stands for any more."""
        bound = (
            key
            for key, deeds in self.bindings.items()
            if key[0] == deed.queue
            and any(one.outcome == "ok" and one.method == "queue.bind" for one in deeds)
        )
        return sum(1 for _ in islice(bound, most))

    def kept(self, binding: Deed, deed: Deed) -> bool:
        """Whether nothing was deleted that a binding is between, from when it was made to a deed."""
        queue = binding.queue
        for kind, name in (("queue", queue), ("exchange", binding.exchange)):
            if not name:
                continue
            if (kind, name) in self.elsewhere:
                return False
            hazards = self._hazards.get((kind, name), [])
            if len(hazards) > MAX_ENTITY_DEEDS:
                return False
            for one in hazards:
                if one is deed:
                    continue
                if _deletes(one):
                    if not precedes(one, binding) and not precedes(deed, one):
                        return False
                elif not one.has(EXCLUSIVE) or _goes_by_itself(one):
                    return False  # and with it the binding
                elif one.connection is not deed.connection and not self.lives(one, deed):
                    return False
        return binding.connection is deed.connection or self._server_ran(binding, deed)


def _deletes(deed: Deed) -> bool:
    """Whether it unmakes what it names."""
    return deed.method in ("queue.delete", "exchange.delete")


def _may_go(deed: Deed) -> bool:
    """Whether it may make something that is gone later without being deleted."""
    return changes(deed) and not _deletes(deed) and (deed.has(EXCLUSIVE) or _goes_by_itself(deed))


def _goes_by_itself(deed: Deed) -> bool:
    """Whether what it declares may be gone while its connection lives."""
    return deed.has(AUTO_DELETE) or deed.arguments is None or b"x-expires" in deed.arguments


def _after(end: Deed, deed: Deed) -> bool:
    """Whether what ends a consumer was said only when a deed had its answer."""
    if end.connection is deed.connection and end.channel == deed.channel:
        if end.method == "server cancels" or end.known < 0:
            return end.spot.time >= deed.over
        return precedes(deed, end)
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
