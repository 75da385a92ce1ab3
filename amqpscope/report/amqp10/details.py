"""What `read -v` and `-vv` say of an AMQP 1.0 message."""

from amqpscope.report.amqp10.secrets import is_unclear
from amqpscope.report.amqp10.value_text import TEXT, format_name
from amqpscope.report.details import LONGEST, data, entries, tree
from amqpscope.report.line import Line, margin
from amqpscope.report.printable import hexdump
from amqpscope.report.secrets import hides_octets
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.values import Map
from dissectors.wording import count

__all__ = ["content", "message_octets"]


def content(message: Message, hidden: bool, verbosity: int, depth: int = 0, number: int = 0) -> list[Line]:
    """The sections of a message. hidden: its body is a secret. Bodies are shown with a verbosity of 2.

    number: of a message in a batch.
    """
    most = LONGEST if verbosity < 2 else 0
    head = (
        f"message {number} of the batch, {count(message.size, 'octet')}"
        if number
        else f"message of {count(message.size, 'octet')}"
    )
    if message.message_format:
        head += f", message-format {format_name(message.message_format)}"
    if not message.complete:
        head += ", not all of it captured"
    lines: list[Line] = [[margin(depth), ("key", head)]]
    depth += 1
    unclear = is_unclear(message)
    for section in message.sections():
        value = section.value
        name = section.name
        is_body = name in ("data", "amqp-sequence", "amqp-value", "unknown")
        if hidden and (is_body or unclear or not isinstance(value, (Composite, Map))):
            text = f"(hidden, {count(section.size, 'octet')})"
            lines.append([margin(depth), ("key", f"{name}: "), ("", text)])
        elif is_body and verbosity < 2:
            lines.append(
                [
                    margin(depth),
                    ("key", f"{name}: "),
                    ("dim", f"{count(section.size, 'octet')} (-vv shows them)"),
                ]
            )
        elif isinstance(value, Composite):
            lines.append([margin(depth), ("key", f"{name}:")])
            tree(lines, value, TEXT, depth + 1, most)
        elif isinstance(value, Map):
            lines.append([margin(depth), ("key", f"{name}:")])
            entries(lines, value, TEXT, depth + 1, most)
        elif isinstance(value, bytes):
            lines.append([margin(depth), ("key", f"{name}: "), ("dim", count(len(value), "octet"))])
            if message.message_format != BATCH_FORMAT:
                lines += data(value, depth + 1)
        else:
            lines.append([margin(depth), ("key", f"{name}: "), ("", TEXT.typed(value, most))])
    for index, inner in enumerate(message.batch(), 1):
        lines += content(inner, hidden, verbosity, depth, index)
    return lines


def message_octets(message: Message, hidden: bool) -> list[Line]:
    """The octets of a malformed message."""
    shown = message.octets
    if hidden or hides_octets(shown):
        return [
            [
                margin(0),
                ("dim", f"message of {count(len(shown), 'octet')}, not shown: it may hold a credential"),
            ]
        ]
    return [
        [margin(0), ("dim", "octets of the message")],
        *[[margin(0), ("dim", row)] for row in hexdump(shown)],
    ]
