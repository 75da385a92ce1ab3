"""Forms of what AMQP 1.0 says: performatives, SASL frames, messages and delivery states.

Left out is what differs from run to run (ids, handles, channels, counts, times), what a peer is called
(container, host, product: distinguished from the differences), and an error's description, which is for
people. A field that is not set is as its default.
"""

from amqpscope.diff.forms import CanonicalFrame, FormEntry, digest
from amqpscope.diff.transcript import Names
from amqpscope.diff.values import HIDDEN, SET, Collector
from amqpscope.limits import MAX_COMPARED_BODY, MAX_COMPARED_ENTRIES
from amqpscope.model.volatile import mask_numbers
from amqpscope.report.amqp10.value_text import TEXT
from amqpscope.report.printable import word
from dissectors.amqp10 import composite
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.transactions import Declare, Declared, Discharge, TransactionalState
from dissectors.amqp10.values import Described, Map
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.amqp10_draft2011.message import DraftMessage
from dissectors.interface import Frame, Problem
from dissectors.protocol_header import ProtocolHeader
from dissectors.wording import count

__all__ = ["IDENTITY", "CanonicalFrames10", "header_of", "problems_of", "steady_octets"]

IDENTITY = frozenset(
    {
        "product",
        "product_version",
        "version",
        "platform",
        "copyright",
        "information",
        "cluster_name",
        "node",
        "connection_name",
        "connection-name",
        "user-agent",
        "framework",
        "pid",
        "process",
        "host",
        "hostname",
        "user",
    }
)
"""Properties with which a peer says who it is and where it runs."""

# Fields that are no part of what is said: (composite, field).
_LEFT_OUT = frozenset(
    {
        ("open", "container-id"),
        ("begin", "remote-channel"),
        ("begin", "next-outgoing-id"),
        ("attach", "name"),
        ("attach", "handle"),
        ("attach", "initial-delivery-count"),
        ("attach", "initial-transfer-count"),
        ("detach", "handle"),
        ("error", "description"),
        ("error", "info"),
    }
)

# Fields that are there or not, whatever they say.
_ANY = frozenset(
    {
        ("properties", "message-id"),
        ("properties", "correlation-id"),
        ("properties", "absolute-expiry-time"),
        ("properties", "creation-time"),
        ("properties", "group-sequence"),
        ("transactional-state", "txn-id"),
        ("declared", "txn-id"),
        ("discharge", "txn-id"),
        ("attach", "unsettled"),
    }
)

_NAMED = frozenset(
    {
        ("source", "address"),
        ("target", "address"),
        ("properties", "to"),
        ("properties", "reply-to"),
        ("properties", "subject"),
        ("properties", "group-id"),
        ("properties", "reply-to-group-id"),
    }
)

# What else a field that is not set stands for, by the specification's words.
_DEFAULTS: dict[tuple[str, str], object] = {
    ("header", "priority"): 4,
    ("header", "delivery-count"): 0,
    ("attach", "max-message-size"): 0,
}

_BODIES = ("data", "amqp-sequence", "amqp-value", "amqp-data", "amqp-list", "unknown")

_OF_APPLICATION = ("application-properties", "amqp-map")

_Message = Message | DraftMessage
_Section = tuple[str, object]

_TRANSACTIONAL = (Declare, Declared, Discharge, TransactionalState, draft.Declare, draft.Discharge)

_CACHED_MESSAGES = 4096
_CACHED_OCTETS = 2048


class CanonicalFrames10:
    """Makes the forms of one capture. names: of its nodes."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._messages: dict[tuple[bytes, int, bool], tuple[FormEntry, ...]] = {}

    def of(self, frame: Frame) -> CanonicalFrame:
        """A frame that is reported by its fields."""
        body = frame.body
        collected = self._collector()
        if isinstance(body, ProtocolHeader):
            header_of(collected, body)
        elif isinstance(body, Composite):
            self._fields(collected, body, "")
        problems_of(collected, frame.problems)
        return CanonicalFrame(frame.name, tuple(collected.entries))

    def state(self, state: object, settled: bool | None) -> CanonicalFrame:
        """What is said of a delivery: its state, and whether it is settled."""
        collected = self._collector()
        name = "no state"
        if isinstance(state, Composite):
            name = state.definition().name
            self._fields(collected, state, "")
        elif state is not None:
            name = "unknown state"
        return CanonicalFrame(f"{name} {'settled' if settled else 'unsettled'}", tuple(collected.entries))

    def transfer(
        self, settled: bool, state: object, flags: list[str], message: _Message | None, hidden: bool
    ) -> CanonicalFrame:
        """A delivery. flags: `resume`, `aborted`. hidden: its body is a secret."""
        collected = self._collector()
        collected.add("settled", "true" if settled else "false")
        for flag in flags:
            collected.add(flag, "true")
        if isinstance(state, Composite):
            collected.add("state", state.definition().name)
            self._fields(collected, state, "state.")
        if message is not None:
            collected.entries += self._message(message, hidden)
        return CanonicalFrame("transfer", tuple(collected.entries[:MAX_COMPARED_ENTRIES]))

    def _collector(self) -> Collector:
        return Collector(TEXT, self._names)

    def _fields(self, collected: Collector, body: Composite, path: str) -> None:
        definition = body.definition()
        owner = definition.name
        for field, value in body.fields():
            place = (owner, field.name)
            inner = path + field.name
            if place in _LEFT_OUT:
                continue
            if TEXT.hides(body, field, value):
                collected.add(inner, HIDDEN)
            elif place in _ANY:
                collected.add(inner, SET)
            elif place in _NAMED and isinstance(value, str):
                collected.name(inner, value)
            elif field.name == "hostname":
                _hostname(collected, inner, value)
            elif owner == "open" and field.name == "properties":
                _peer_properties(collected, inner, value)
            else:
                self._field(collected, body, field, value, inner)

    def _field(
        self, collected: Collector, body: Composite, field: composite.Field, value: object, path: str
    ) -> None:
        if value == field.default or value == _DEFAULTS.get((body.definition().name, field.name)):
            return
        if (value is False and not field.choices) or (isinstance(value, list) and not value):
            return
        if isinstance(value, Composite):
            name = value.definition().name
            if name != "error":
                collected.add(path, "given" if name == field.name else name)
            self._fields(collected, value, path + ".")
        elif field.multiple and isinstance(value, list):
            collected.names_of(path, value)
        elif isinstance(value, Map):
            self._map(collected, path, value)
        elif body.is_odd(value):
            collected.add(path, TEXT.type_name(value) or "of another type")
        else:
            collected.add(path, TEXT.field(body, field, value))

    def _map(self, collected: Collector, path: str, value: Map, volatile: bool = False) -> None:
        collected.value(path, value, volatile=volatile)

    # Messages

    def _message(self, message: _Message, hidden: bool) -> tuple[FormEntry, ...]:
        if message.size > _CACHED_OCTETS or isinstance(message, DraftMessage):
            return self._sections(message, hidden)
        key = (message.octets, int(message.message_format), hidden)
        known = self._messages.get(key)
        if known is None:
            known = self._sections(message, hidden)
            if len(self._messages) >= _CACHED_MESSAGES:
                self._messages.clear()
            self._messages[key] = known
        return known

    def _sections(self, message: _Message, hidden: bool) -> tuple[FormEntry, ...]:
        collected = self._collector()
        if message.message_format not in (0, BATCH_FORMAT):
            collected.add("message-format", TEXT.value(int(message.message_format)))
            return tuple(collected.entries)
        if message.message_format == BATCH_FORMAT and isinstance(message, Message):
            collected.add("body", f"batch of {len(message.batch())}")
            return tuple(collected.entries)
        bodies: list[_Section] = []
        for name, value in _sections_of(message):
            if name in _BODIES:
                bodies.append((name, value))
            elif isinstance(value, Composite):
                self._fields(collected, value, "")
            elif isinstance(value, Map):
                self._map(collected, name, value, volatile=name not in _OF_APPLICATION)
        if not message.complete:
            collected.add("complete", "false")
        elif bodies:
            self._body(collected, bodies, hidden)
        problems_of(collected, message.problems)
        return tuple(collected.entries)

    def _body(self, collected: Collector, bodies: list[_Section], hidden: bool) -> None:
        kinds = list(dict.fromkeys(name for name, _ in bodies))
        words = [kind if (times := _count(bodies, kind)) == 1 else f"{times} × {kind}" for kind in kinds]
        text = ", ".join(words)
        if hidden:
            collected.add("body", text)
            return
        first = bodies[0][1]
        if bodies[0][0] == "amqp-data" and isinstance(first, list) and len(first) == 1:
            first = first[0]
        if len(bodies) == 1 and isinstance(first, _TRANSACTIONAL):
            collected.add("body", first.definition().name)
            self._fields(collected, first, "body.")
            return
        keys = []
        for _, value in bodies:
            if isinstance(value, bytes):
                shown = steady_octets(value)
                if shown is None:
                    text += f" of {count(len(value), 'octet')}"
                else:
                    keys.append(shown)
            else:
                inner = self._collector()
                inner.value("", value.value if isinstance(value, Described) else value, label=True)
                keys.append(repr(inner.entries).encode("utf-8", "backslashreplace"))
        collected.add("body", text, digest(b"\0".join(keys)) if keys else "")


def _sections_of(message: _Message) -> list[_Section]:
    """The sections of a message: the name of each, and what it holds."""
    if isinstance(message, Message):
        return [(section.name, section.value) for section in message.sections()]
    return [(section.name, value) for section, value in zip(message.sections, message.values(), strict=True)]


def _count(bodies: list[_Section], kind: str) -> int:
    return sum(name == kind for name, _ in bodies)


def steady_octets(octets: bytes) -> bytes | None:
    """A body that is text, without what is made up for each run; None for another one."""
    if len(octets) > MAX_COMPARED_BODY:
        return None
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return mask_numbers(text).encode("utf-8", "backslashreplace")


def _hostname(collected: Collector, path: str, value: object) -> None:
    """Where the server is differs as ports do; but not a virtual host of RabbitMQ's."""
    if isinstance(value, str) and value.startswith("vhost:"):
        collected.add(path, word(value))


def _peer_properties(collected: Collector, path: str, value: object) -> None:
    if isinstance(value, Map):
        collected.value(path, Map(value.without(IDENTITY)))


def header_of(collected: Collector, header: ProtocolHeader) -> None:
    """Which protocol a header names."""
    numbers = (header.protocol_id, header.major, header.minor, header.revision)
    collected.add("protocol", f"{header.protocol()} ({'.'.join(str(int(number)) for number in numbers)})")


def problems_of(collected: Collector, problems: list[Problem]) -> None:
    """What is wrong with a frame. What was not captured is no fault of it."""
    codes = sorted({problem.code for problem in problems if problem.code.isupper()})
    if codes:
        collected.add("malformed", ", ".join(codes))
