"""Messages that a broker has traced, as text. Its log has no frames, so nothing looks like one here."""

from collections.abc import Sequence
from typing import Final

from amqpscope.capture.traced import TracedMessage
from amqpscope.limits import MAX_TRACED_ROUTES
from amqpscope.report.line import INDENT, Line
from amqpscope.report.value_text import text_word
from dissectors.wording import count

__all__ = ["TraceLines", "TraceSummary"]

_TITLE: Final = "── messages that RabbitMQ has traced, without frames ──"
_SHOWN: Final = 8
"""Routing keys or queues of one message that are shown."""


class TraceLines:
    """One line a message: the line of the log, the time since the first known time, and what it is about."""

    def __init__(self, verbosity: int) -> None:
        self._verbosity = verbosity
        self._begun = False
        self._first = 0

    def lines(self, message: TracedMessage) -> list[tuple[Line, int]]:
        """The lines of the next message, each with how far it is indented where it goes on."""
        shown: list[tuple[Line, int]] = []
        if not self._begun:
            self._begun = True
            shown.append(([("rule", _TITLE)], -1))
        if not self._first:
            self._first = message.time
        seconds = (message.time - self._first) / 1_000_000_000 if message.time else 0
        line: Line = [("dim", f"{message.line:>5} "), ("", f"{seconds:9.6f} ")]
        line.append(("", "published " if message.published else "received  "))
        line += _route(message)
        if message.size >= 0:
            line.append(("", f"{count(message.size, 'octet')} "))
        for name, value in message.properties:
            line += [("key", f"{name}="), ("", f"{text_word(value)} ")]
        shown.append((line, INDENT))
        if self._verbosity:
            where: Line = [("", " " * INDENT), ("dim", f"connection {text_word(message.connection)}")]
            if message.channel >= 0:
                where.append(("dim", f", channel {message.channel}"))
            where.append(
                ("dim", f", virtual host {text_word(message.virtual_host)}, user {text_word(message.user)}")
            )
            shown.append((where, INDENT))
        return shown


class TraceSummary:
    """How many messages went which way."""

    def __init__(self) -> None:
        # By what is shown of the way: messages and octets.
        self._routes: dict[tuple[bool, str], tuple[int, int]] = {}
        self._more = 0

    def add(self, message: TracedMessage) -> None:
        """The next message."""
        way = (message.published, "".join(text for _, text in _route(message)).rstrip())
        if way not in self._routes and len(self._routes) >= MAX_TRACED_ROUTES:
            self._more += 1
            return
        messages, octets = self._routes.get(way, (0, 0))
        self._routes[way] = (messages + 1, octets + max(message.size, 0))

    def lines(self) -> list[tuple[Line, int]]:
        """What there is to show; nothing if no message was traced."""
        if not self._routes:
            return []
        shown: list[tuple[Line, int]] = [([("rule", _TITLE)], -1)]
        for (published, way), (messages, octets) in self._routes.items():
            what = "published" if published else "received "
            numbers = f"{count(messages, 'message')}, {count(octets, 'octet')}"
            shown.append(([("", f"{what} {way}: {numbers}")], INDENT))
        if self._more:
            shown.append(([("dim", f"and {count(self._more, 'message')} that went other ways")], -1))
        return shown


def _route(message: TracedMessage) -> Line:
    """Exchange, routing keys and queues of a message."""
    line: Line = [("key", "exchange="), ("", f"{text_word(message.exchange)} ")]
    line += [("key", "routing-key="), ("", f"{_several(message.routing_keys)} ")]
    if message.queues:
        line += [("key", "queue="), ("", f"{_several(message.queues)} ")]
    elif message.published:
        line.append(("note", "no queue "))
    return line


def _several(names: Sequence[str]) -> str:
    shown = [text_word(name) for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        shown.append(f"and {len(names) - _SHOWN} more")
    return ",".join(shown) or '""'
