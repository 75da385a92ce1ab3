"""Forms of what AMQP 0-9-1 says: methods, and messages with their properties.

Left out is what differs from run to run (tags, channels, how many messages and consumers a queue has just
now), what a peer is called, and texts that are for people.
"""

from amqpscope.diff.forms import CanonicalFrame, digest
from amqpscope.diff.forms10 import IDENTITY, header_of, problems_of, steady_octets
from amqpscope.diff.transcript import Names
from amqpscope.diff.values import HIDDEN, SET, Collector
from amqpscope.report.amqp091.value_text import TEXT
from dissectors.amqp091.arguments import Arguments
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.tables import FieldTable
from dissectors.amqp091.values import Table
from dissectors.interface import Body, Frame
from dissectors.protocol_header import ProtocolHeader
from dissectors.wording import count

__all__ = ["CanonicalFrames091"]

_LEFT_OUT = frozenset(
    {
        "consumer-tag",
        "delivery-tag",
        "message-count",
        "consumer-count",
        "reply-text",
        "multiple",
        "reason",
        "reserved-1",
        "reserved-2",
        "reserved-3",
    }
)

# Fields that are there or not, whatever they say.
_ANY = frozenset({"correlation-id", "message-id", "timestamp"})

_NAMED = frozenset({"exchange", "queue", "routing-key", "source", "destination", "reply-to"})

_PEERS = ("server-properties", "client-properties")

_WORDS = ("mechanisms", "locales")


class CanonicalFrames091:
    """Makes the forms of one capture. names: of its exchanges, queues and so on."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def of(self, frame: Frame, message: Amqp091Message | None = None) -> CanonicalFrame:
        """A method, with its message if it has one."""
        return self.method(frame.body, frame.name, message, frame)

    def method(
        self, body: object, name: str, message: Amqp091Message | None, frame: Frame | None = None
    ) -> CanonicalFrame:
        """The same of a method whose frame is not at hand."""
        collected = Collector(TEXT, self._names)
        if isinstance(body, ProtocolHeader):
            header_of(collected, body)
        elif isinstance(body, Body):
            self._fields(collected, body)
        if message is not None:
            self._message(collected, message)
        if frame is not None:
            problems_of(collected, frame.problems)
        return CanonicalFrame(name, tuple(collected.entries))

    def _fields(self, collected: Collector, body: Body) -> None:
        for field, value in body.fields():
            name = field.name
            if name in _LEFT_OUT or value is None or value is False or value == "":
                continue
            if TEXT.hides(body, field, value):
                collected.add(name, HIDDEN)
            elif name in _ANY:
                collected.add(name, SET)
            elif name in _NAMED and isinstance(value, str):
                collected.name(name, value)
            elif name in _WORDS and isinstance(value, bytes):
                collected.names_of(name, value.decode("utf-8", "replace").split())
            elif isinstance(value, FieldTable):
                table = value.read()
                if name in _PEERS:
                    table = Table(table.without(IDENTITY))
                collected.value(name, table)
            else:
                collected.add(name, TEXT.field(body, field, value))

    def _message(self, collected: Collector, message: Amqp091Message) -> None:
        header = message.header
        if header is not None:
            properties: Arguments = header.properties()
            self._fields(collected, properties)
        if not message.complete:
            collected.add("complete", "false")
            return
        body = message.body
        shown = steady_octets(body) if len(body) == message.seen else None
        if shown is None:
            collected.add("body", count(message.seen, "octet"))
        else:
            collected.add("body", "text" if shown else "empty", digest(shown))
