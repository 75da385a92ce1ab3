"""What one line of the timeline says of an AMQP 1.0 frame: what matters, the most important fields first.

A frame's details begin with what it is about (delivery, link or peer), then what happened to it, then
numbers. Session windows are written `incoming-window=2048@7`: room for 2048 transfers from id 7 on.
"""

from amqpscope.model.passwords import without_password
from amqpscope.model.unlogged import is_payload_unlogged
from amqpscope.report.amqp10.secrets import hides_field, hides_raw
from amqpscope.report.amqp10.sound_message import VALUE, describe_sound
from amqpscope.report.amqp10.value_text import field_text, format_name, value_text
from amqpscope.report.line import Line, flag, key, number
from amqpscope.report.printable import in_quotes
from amqpscope.report.value_text import hidden_text, octets_text, text_word
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.messaging import Properties, Received, Source, Target
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Open,
    Transfer,
)
from dissectors.amqp10.sasl import SaslMechanisms, SaslOutcome
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Array, Described, Map, Raw, Symbol
from dissectors.amqp10_draft2011.performatives import Error as DraftError
from dissectors.interface import Frame
from dissectors.wording import count

__all__ = ["address_parts", "describe_decoded", "details", "error_parts", "name_parts"]

_ADDRESS = 48
_NAME = 40
_DESCRIPTION = 400

_HEX_TAG = 16

# Fields of a message's properties in the order in which they are shown.
_PROPERTIES = ("message-id", "correlation-id", "subject", "to", "reply-to", "group-id", "content-type")

# What a body may be called in a line.
_BODIES = ("data", "amqp-sequence", "amqp-value", "unknown")


def details(frame: Frame, link: Link | None, message: Message | None, guarded: bool) -> Line:
    """The part of a frame's line behind its name. guarded: its octets may be a secret; show only numbers."""
    body = frame.body
    if isinstance(body, Transfer):
        return _transfer(frame, body, link, message, guarded)
    if isinstance(body, Flow):
        return _flow(body, link)
    if isinstance(body, Disposition):
        return _disposition(body, link)
    if isinstance(body, Attach):
        return _attach(body)
    if isinstance(body, Detach):
        subject = _link(link, body.handle)
        condition, description = error_parts(body.error)
        return [*subject, *condition, *flag(body.closed, "closed"), *description]
    if isinstance(body, Open):
        return _open(body)
    if isinstance(body, Begin):
        return _begin(body)
    if isinstance(body, SaslOutcome) and body.code is not None:
        text = field_text(body, body.definition().fields[0], body.code)
        return [("error" if body.code else "", f"{text} ")]
    if isinstance(body, Composite) and not (guarded and frame.kind == "amqp"):
        return _fields(body)
    if frame.name == "empty":
        return [("dim", "keeps the connection alive")]
    return _undecodable(frame)


# Parts of lines


def _link(link: Link | None, handle: int | None) -> Line:
    """The link's address, and its name unless it is the same; its handle while the attach is not known."""
    if link is None:
        return number("handle", handle)
    name = text_word(link.name, _NAME)
    if link.address is None:
        return [("", f"{name} ")]
    address = text_word(link.address, _ADDRESS)
    return [("address", f"{address} "), *([] if name == address else [("dim", f"({name}) ")])]


def address_parts(link: Link | None, handle: int | None) -> Line:
    """The link's address alone; its name where it has none, its handle where its attach is not known."""
    if link is None:
        return number("handle", handle)
    if link.address is None:
        return [("", f"{text_word(link.name, _NAME)} ")]
    return [("address", f"{text_word(link.address, _ADDRESS)} ")]


def name_parts(link: Link | None) -> Line:
    """The link's name, where its address stands before."""
    if link is None or link.address is None or link.address == link.name:
        return []
    return key("link", text_word(link.name, _NAME))


def error_parts(error: Error | DraftError | None) -> tuple[Line, Line]:
    """An error's condition, and its description."""
    if error is None:
        return [], []
    condition = "an error without condition"
    for field, value in error.fields():
        if field.name == "condition":
            condition = field_text(error, field, value)
    described: Line = []
    if error.description:
        described = [("", f"{in_quotes(without_password(error.description), _DESCRIPTION)} ")]
    return [("error", f"{condition} ")], described


def _state(state: object) -> tuple[Line, Line]:
    """A delivery state; the description of its error apart."""
    if state is None:
        return [], []
    if isinstance(state, Received):
        return [("", f"received up to section {state.section_number} octet {state.section_offset} ")], []
    error = getattr(state, "error", None)
    if isinstance(state, Composite) and isinstance(error, Error):
        condition, description = error_parts(error)
        return [("", f"{state.definition().name} "), *condition], description
    return [("", f"{value_text(state)} ")], []


# Frame by frame


def _transfer(
    frame: Frame, transfer: Transfer, link: Link | None, message: Message | None, guarded: bool
) -> Line:
    line: Line = []
    if transfer.delivery_id is not None:
        line.append(("", f"#{transfer.delivery_id} "))
    line += address_parts(link, transfer.handle)
    if transfer.settled:
        line.append(("", "settled "))
    if transfer.more:
        line.append(("", "more "))
    if transfer.resume:
        line.append(("", "resume "))
    if transfer.aborted:
        line.append(("error", "aborted "))
    if guarded:
        return [*line, *_payload(frame)]
    if transfer.state is not None:
        state, description = _state(transfer.state)
        line += [*state, *description]
    if message is None or is_payload_unlogged(frame):
        line += _payload(frame)
    else:
        _message(line, message, link)
    line += name_parts(link)
    tag = transfer.delivery_tag
    if tag is not None:
        line += [("key", "tag="), ("", octets_text(tag, 2 * _HEX_TAG))]
    return line


def _payload(frame: Frame) -> Line:
    """How many octets of payload there are; nothing where a log does not say it."""
    if not frame.uncaptured and is_payload_unlogged(frame):
        return []
    return [("dim", f"{count(frame.payload_captured + frame.uncaptured, 'octet')} ")]


def _message(line: Line, message: Message, link: Link | None) -> None:
    if message.is_sound():
        describe_sound(line, message, link)
    else:
        describe_decoded(line, message, link)


def describe_decoded(line: Line, message: Message, link: Link | None) -> None:
    """Put into a line what is shown of any message."""
    sections = message.sections()
    bodies: dict[str, int] = {}
    shown: Line = []
    for section in sections:
        value = section.value
        name = section.name
        if isinstance(value, Properties):
            fields = {field.name: (field, item) for field, item in value.fields()}
            for wanted in _PROPERTIES:
                found = fields.get(wanted)
                if found is None:
                    continue
                text = field_text(value, found[0], found[1], VALUE)
                if wanted == "to" and link is not None and found[1] == link.address:
                    continue
                shown += [("key", f"{wanted}="), ("", f"{text} ")]
        elif name == "application-properties" and isinstance(value, Map):
            shown += [("key", "application-properties="), ("", f"{len(value)} ")]
        elif name in _BODIES:
            kind = "undecodable" if isinstance(value, Raw) or name == "unknown" else name
            bodies[kind] = bodies.get(kind, 0) + 1
    line.append(("", f"{count(message.size, 'octet')} "))
    if not message.complete:
        line.append(("note", "not all captured "))
    if message.message_format == BATCH_FORMAT:
        line.append(("", f"batch of {bodies.pop('data', 0)} "))
    elif message.message_format != 0:
        line += key("message-format", format_name(message.message_format))
    line += shown
    if bodies:
        kinds = [f"{count} × {kind}" if count > 1 else kind for kind, count in bodies.items()]
        line += key("body", ", ".join(kinds))


def _flow(flow: Flow, link: Link | None) -> Line:
    line: Line = []
    if flow.handle is not None:
        line += address_parts(link, flow.handle)
        line += number("link-credit", flow.link_credit)
        line += flag(flow.drain, "drain")
        line += number("delivery-count", flow.delivery_count)
        line += number("available", flow.available)
    else:
        line.append(("", "session "))
    line += flag(flow.echo, "echo")
    line += name_parts(link)
    line += _window("incoming-window", flow.incoming_window, flow.next_incoming_id)
    line += _window("outgoing-window", flow.outgoing_window, flow.next_outgoing_id)
    return line


def _window(name: str, size: int | None, start: int | None) -> Line:
    """A session window: how many transfers, from which id on."""
    return [
        ("key", f"{name}="),
        ("", f"{'?' if size is None else size}@{'?' if start is None else start} "),
    ]


def _begin(begin: Begin) -> Line:
    line = number("remote-channel", begin.remote_channel)
    line += number("incoming-window", begin.incoming_window)
    line += _window("outgoing-window", begin.outgoing_window, begin.next_outgoing_id)
    line += number("handle-max", begin.handle_max)
    return line


def _open(body: Open) -> Line:
    line: Line = []
    for field, value in body.fields():
        if field.name == "container-id":
            line.append(("", f"{field_text(body, field, value, _NAME)} "))
            line += _product(body.properties)
        elif field.name in ("hostname", "max-frame-size", "channel-max", "idle-time-out"):
            line += key(field.name, field_text(body, field, value).replace(" ", ""))
    return line


def _product(properties: Map | None) -> Line:
    """Product and version: who one is talking to."""
    if properties is None:
        return []
    words = [properties.get(name) for name in ("product", "version")]
    text = " ".join(text_word(word, _NAME) for word in words if isinstance(word, str) and word)
    return [("dim", f"({text}) ")] if text else []


def _terminus(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, Coordinator):
        return "coordinator"
    if not isinstance(value, (Source, Target)):
        return value_text(value, _ADDRESS)
    words = []
    if isinstance(value.address, str):
        words.append(text_word(value.address, _ADDRESS))
    elif value.address is None:
        words.append("(no address)" if not value.dynamic else "")
    else:
        words.append(value_text(value.address, _ADDRESS))
    for field, item in value.fields():
        if field.name == "dynamic" and item is True:
            words.append("dynamic")
        elif field.name == "durable" and item:
            words.append(f"durable:{field_text(value, field, item)}")
        elif field.name == "expiry-policy" and item != field.default:
            words.append(f"expires:{field_text(value, field, item)}")
        elif field.name == "distribution-mode":
            words.append(field_text(value, field, item))
        elif field.name == "filter" and isinstance(item, Map):
            words.append(f"filter:{','.join(value_text(key) for key, _ in item.pairs[:4])}")
    return " ".join(word for word in words if word)


def _attach(attach: Attach) -> Line:
    line: Line = []
    for field, value in attach.fields():
        if field.name == "role":
            line.append(("", f"{field_text(attach, field, value)} "))
    if attach.name is not None:
        line.append(("", f"{text_word(attach.name, _NAME)}: "))
    line.append(("address", f"{_terminus(attach.source)} → {_terminus(attach.target)} "))
    line += number("handle", attach.handle)
    for field, value in attach.fields():
        if field.name in ("snd-settle-mode", "rcv-settle-mode"):
            if value != field.default:
                line += key(field.name, field_text(attach, field, value))
        elif field.name in ("initial-delivery-count", "max-message-size"):
            line += key(field.name, field_text(attach, field, value))
    if attach.unsettled is not None:
        line += key("unsettled", f"{len(attach.unsettled)}")
    return line + flag(attach.incomplete_unsettled, "incomplete-unsettled")


def _disposition(body: Disposition, link: Link | None) -> Line:
    line: Line = []
    if body.first is not None:
        last = "" if body.last is None or body.last == body.first else f"–#{body.last}"
        line.append(("", f"#{body.first}{last} "))
    state, description = _state(body.state)
    line += state
    if body.settled:
        line.append(("", "settled "))
    line += address_parts(link, None)
    line += description
    if body.role is not None:
        line.append(("dim", "by receiver " if body.role else "by sender "))
    return line + name_parts(link)


def _fields(body: Composite) -> Line:
    """end, close, and whatever else there is: all fields but those with a line of their own in -v."""
    line: Line = []
    error = getattr(body, "error", None)
    if isinstance(error, (Error, DraftError)):
        condition, description = error_parts(error)
        line += [*condition, *description]
    secrets: Line = []
    for field, value in body.fields():
        if isinstance(body, SaslMechanisms) or field.name == "mechanism":
            line.append(("", f"{field_text(body, field, value)} "))
        elif hides_field(body, field, value):
            secrets += key(field.name, hidden_text(value))
        elif value is not error:
            line += key(field.name, field_text(body, field, value))
    return line + secrets


def _undecodable(frame: Frame) -> Line:
    """What stands where a performative is due: its type; its content is shown by -vv only."""
    body = frame.body
    if body is None or hides_raw(frame) or isinstance(body, Raw):
        return [("", count(frame.size, "octet"))]
    what = type_name(body)
    if isinstance(body, Described):
        descriptor = body.descriptor
        if isinstance(descriptor, (int, Symbol)):
            named = hex(descriptor) if isinstance(descriptor, int) else value_text(descriptor)
            what = f"{type_name(body.value)} described by {named}"
    elif isinstance(body, (list, Map, Array)):
        what += f" of {len(body)}"
    return [("", f"{what}, {count(frame.size, 'octet')}")]
