"""What one line of the timeline says of an AMQP 1.0 frame: what matters, the most important fields first.

A frame's details begin with what it is about (delivery, link or peer), then what happened to it, then
numbers. Session windows are written `incoming-window=2048@7`: room for 2048 transfers from id 7 on.
"""

from typing import Final

from amqpscope.model.passwords import without_password
from amqpscope.model.unlogged import is_payload_unlogged
from amqpscope.report.amqp10.secrets import hides_field, hides_raw
from amqpscope.report.amqp10.sound_message import VALUE, describe_sound
from amqpscope.report.amqp10.value_text import field_text, format_name, value_text
from amqpscope.report.line import Line, Pen, flag, key, number
from amqpscope.report.printable import in_quotes
from amqpscope.report.value_text import hidden_text, octets_text, text_word
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.amqp10.outcomes import error_in
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.messaging import Accepted, Properties, Received, Source, Target
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

__all__ = ["address_parts", "describe_decoded", "details", "error_parts", "name_parts", "write"]

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
    pen = Pen(False)
    write(pen, frame, link, message, guarded)
    return pen.take_line()


def write(pen: Pen, frame: Frame, link: Link | None, message: Message | None, guarded: bool) -> None:
    """The same, put down with a pen."""
    body = frame.body
    if isinstance(body, Transfer):
        _transfer(pen, frame, body, link, message, guarded)
    elif isinstance(body, Disposition):
        _disposition(pen, body, link)
    elif isinstance(body, Flow):
        _flow(pen, body, link)
    else:
        pen.put_line(_rarer(frame, link, guarded))


def _rarer(frame: Frame, link: Link | None, guarded: bool) -> Line:
    """The part behind the name of a frame that is no transfer, disposition or flow."""
    body = frame.body
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

_REMEMBERED: Final = 4096
_SHORT: Final = 256
"""Characters of an address or name whose text is remembered: most frames have few links."""

_addresses: Final[dict[str, str]] = {}
_names: Final[dict[str, str]] = {}


def _shown(known: dict[str, str], text: str, most: int) -> str:
    """The text of an address or name, and a space. known: remembers it."""
    shown = known.get(text)
    if shown is None:
        shown = text_word(text, most) + " "
        if len(text) <= _SHORT:
            if len(known) >= _REMEMBERED:
                known.clear()
            known[text] = shown
    return shown


def _put_number(pen: Pen, name: str, value: int | None) -> None:
    """A number, if it is present. name: with its `=`."""
    if value is not None:
        pen.put_field(name, f"{value} ")


def _put_address(pen: Pen, link: Link | None, handle: int | None) -> None:
    """What `address_parts` gives."""
    if link is None:
        _put_number(pen, "handle=", handle)
    elif link.address is None:
        pen.put("", _shown(_names, link.name, _NAME))
    else:
        pen.put("address", _shown(_addresses, link.address, _ADDRESS))


def _put_name(pen: Pen, link: Link | None) -> None:
    """What `name_parts` gives."""
    if link is not None and link.address is not None and link.address != link.name:
        pen.put_field("link=", _shown(_names, link.name, _NAME))


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
    pen = Pen(False)
    _put_address(pen, link, handle)
    return pen.take_line()


def name_parts(link: Link | None) -> Line:
    """The link's name, where its address stands before."""
    pen = Pen(False)
    _put_name(pen, link)
    return pen.take_line()


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
    error = error_in(state)
    if error is not None:
        condition, description = error_parts(error)
        return [("", "rejected "), *condition], description
    return [("", f"{value_text(state)} ")], []


# Frame by frame


def _transfer(
    pen: Pen, frame: Frame, transfer: Transfer, link: Link | None, message: Message | None, guarded: bool
) -> None:
    if transfer.delivery_id is not None:
        pen.put("", f"#{transfer.delivery_id} ")
    _put_address(pen, link, transfer.handle)
    if transfer.settled:
        pen.put("", "settled ")
    if transfer.more:
        pen.put("", "more ")
    if transfer.resume:
        pen.put("", "resume ")
    if transfer.aborted:
        pen.put("error", "aborted ")
    if guarded:
        _put_payload(pen, frame)
        return
    if transfer.state is not None:
        state, description = _state(transfer.state)
        pen.put_line(state)
        pen.put_line(description)
    if message is None or is_payload_unlogged(frame):
        _put_payload(pen, frame)
    elif message.is_sound():
        describe_sound(pen, message, link)
    else:
        line: Line = []
        describe_decoded(line, message, link)
        pen.put_line(line)
    _put_name(pen, link)
    tag = transfer.delivery_tag
    if tag is not None:
        pen.put_field("tag=", octets_text(tag, 2 * _HEX_TAG))


def _put_payload(pen: Pen, frame: Frame) -> None:
    """How many octets of payload there are; nothing where a log does not say it."""
    if frame.uncaptured or not is_payload_unlogged(frame):
        pen.put("dim", f"{count(frame.payload_captured + frame.uncaptured, 'octet')} ")


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


def _flow(pen: Pen, flow: Flow, link: Link | None) -> None:
    if flow.handle is not None:
        _put_address(pen, link, flow.handle)
        _put_number(pen, "link-credit=", flow.link_credit)
        if flow.drain:
            pen.put("", "drain ")
        _put_number(pen, "delivery-count=", flow.delivery_count)
        _put_number(pen, "available=", flow.available)
    else:
        pen.put("", "session ")
    if flow.echo:
        pen.put("", "echo ")
    _put_name(pen, link)
    pen.put_field("incoming-window=", _window(flow.incoming_window, flow.next_incoming_id))
    pen.put_field("outgoing-window=", _window(flow.outgoing_window, flow.next_outgoing_id))


def _window(size: int | None, start: int | None) -> str:
    """A session window: how many transfers, from which id on."""
    return f"{'?' if size is None else size}@{'?' if start is None else start} "


def _begin(begin: Begin) -> Line:
    line = number("remote-channel", begin.remote_channel)
    line += number("incoming-window", begin.incoming_window)
    line.append(("key", "outgoing-window="))
    line.append(("", _window(begin.outgoing_window, begin.next_outgoing_id)))
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


def _disposition(pen: Pen, body: Disposition, link: Link | None) -> None:
    first = body.first
    if first is not None:
        last = body.last
        pen.put("", f"#{first} " if last is None or last == first else f"#{first}–#{last} ")
    description: Line = []
    # An accepted without anything, which nearly all are, is its name.
    if isinstance(body.state, Accepted) and body.state.odd is None and body.state.extra is None:
        pen.put("", "accepted ")
    else:
        state, description = _state(body.state)
        pen.put_line(state)
    if body.settled:
        pen.put("", "settled ")
    _put_address(pen, link, None)
    pen.put_line(description)
    if body.role is not None:
        pen.put("dim", "by receiver " if body.role else "by sender ")
    _put_name(pen, link)


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
