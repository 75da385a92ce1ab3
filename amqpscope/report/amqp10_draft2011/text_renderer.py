"""The draft of April 2011 for people."""

from amqpscope.report.amqp10 import brief
from amqpscope.report.amqp10.text_renderer import Amqp10TextRenderer
from amqpscope.report.amqp10.value_text import TEXT, field_text, format_name
from amqpscope.report.details import LONGEST, data, entries, tree
from amqpscope.report.line import Line, Pen, key, margin
from amqpscope.report.printable import hexdump
from amqpscope.report.secrets import hides_octets
from amqpscope.report.value_text import hidden_text, octets_text
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from amqpscope.tracking.amqp10_draft2011.translation import octets_of
from dissectors.amqp10.composite import NOT_BROKEN, Composite
from dissectors.amqp10.performatives import Disposition as FinalDisposition
from dissectors.amqp10.values import Map
from dissectors.amqp10_draft2011.message import DraftMessage
from dissectors.amqp10_draft2011.performatives import (
    Accepted,
    Attach,
    Begin,
    Detach,
    Disposition,
    Flow,
    Open,
    Rejected,
    Released,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
    TransferState,
)
from dissectors.interface import Frame
from dissectors.wording import count

__all__ = ["Draft2011TextRenderer"]

_TAG = 32

_AS_IN_FINAL = (Open, Begin, Attach, Flow, Disposition, Detach, SaslMechanisms)


class Draft2011TextRenderer(Amqp10TextRenderer):
    """How frames of the draft of April 2011 are reported."""

    def line(self, frame: Frame, link: Link | None, message: object, vague: bool) -> Line:
        body = frame.body
        if isinstance(body, Transfer):
            return _transfer(body, link, message if isinstance(message, DraftMessage) else None, vague)
        if isinstance(body, SaslOutcome) and body.code is not None:
            text = field_text(body, body.definition().fields[1], body.code)
            return [("error" if body.code else "", f"{text} ")]
        if isinstance(body, _AS_IN_FINAL) and body.odd is None and body.broken_at == NOT_BROKEN:
            return _as_in_final(frame, body, link, vague)
        return brief.details(frame, link, None, vague)

    def write(self, pen: Pen, frame: Frame, link: Link | None, message: object, vague: bool) -> None:
        pen.put_line(self.line(frame, link, message, vague))

    def shown_octets(self, frame: Frame) -> bytes:
        return b"" if isinstance(frame.body, Transfer) else super().shown_octets(frame)

    def content(self, message: object, hidden: bool, verbosity: int) -> list[Line]:
        return _content(message, hidden, verbosity) if isinstance(message, DraftMessage) else []

    def message_octets(self, message: object, hidden: bool) -> list[Line]:
        if not isinstance(message, DraftMessage):
            return []
        shown = message.octets
        if hidden or hides_octets(shown):
            return [
                [
                    margin(0),
                    ("dim", f"message of {count(len(shown), 'octet')}, not shown: it may hold a credential"),
                ]
            ]
        rows = [[margin(0), ("dim", row)] for row in hexdump(shown)]
        return [[margin(0), ("dim", "octets of the message")], *rows]


def _as_in_final(frame: Frame, body: Composite, link: Link | None, vague: bool) -> Line:
    """A frame that has the same fields in the final specification, with the draft's words for them."""
    said = body_of(frame)
    if isinstance(body, Disposition) and isinstance(said, FinalDisposition) and not _plain(body.state):
        said.state = body.state
    line = brief.details(frame.with_body(said), link, None, vague)
    line = [(style, text.replace("delivery-count", "transfer-count")) for style, text in line]
    options = body.values()[0]
    if isinstance(options, Map) and options.pairs:
        line += key("options", TEXT.value(options))
    return line


def _plain(state: object) -> bool:
    """Whether a transfer-state has nothing but an outcome, and the outcome at most an error's condition."""
    if not isinstance(state, TransferState) or state.txn_id is not None:
        return False
    outcome = state.outcome
    if isinstance(outcome, Rejected):
        error = outcome.error
        return error is None or (error.description is None and error.info is None)
    return state.bytes_transferred is None and isinstance(outcome, (Accepted, Released))


def _transfer(transfer: Transfer, link: Link | None, message: DraftMessage | None, vague: bool) -> Line:
    line: Line = []
    if transfer.transfer_id is not None:
        line.append(("", f"#{transfer.transfer_id} "))
    line += brief.address_parts(link, transfer.handle)
    for flag in ("settled", "more", "resume", "aborted"):
        if getattr(transfer, flag):
            line.append(("error" if flag == "aborted" else "", f"{flag} "))
    pieces = len(transfer.fragments or ())
    line.append(("dim", f"{count(octets_of(transfer), 'octet')} in {count(pieces, 'fragment')} "))
    if vague:
        return line
    if message is not None:
        line.append(("", f"message of {count(message.size, 'octet')} "))
    if transfer.state is not None:
        line += key("state", TEXT.value(transfer.state))
    line += brief.name_parts(link)
    if transfer.delivery_tag is not None:
        line += [("key", "tag="), ("", octets_text(transfer.delivery_tag, _TAG))]
    return line


def _content(message: DraftMessage, hidden: bool, verbosity: int) -> list[Line]:
    """The sections of a message. hidden: they are a secret. Bodies are shown with a verbosity of 2."""
    most = LONGEST if verbosity < 2 else 0
    head = f"message of {count(message.size, 'octet')}"
    if message.message_format:
        head += f", message-format {format_name(message.message_format)}"
    if not message.complete:
        head += ", not all of it captured"
    lines: list[Line] = [[margin(0), ("key", head)]]
    for section, value in zip(message.sections, message.values(), strict=True):
        start: Line = [margin(1), ("key", f"{section.name}: ")]
        if hidden:
            lines.append([*start, ("", hidden_text(section.octets))])
        elif isinstance(value, Composite):
            lines.append(start)
            tree(lines, value, TEXT, 2, most)
        elif verbosity < 2 and section.name not in ("header", "properties", "footer"):
            lines.append([*start, ("dim", f"{count(section.size, 'octet')} (-vv shows them)")])
        elif isinstance(value, Map):
            lines.append(start)
            entries(lines, value, TEXT, 2, most)
        elif isinstance(value, bytes):
            lines.append([*start, ("dim", count(len(value), "octet"))])
            lines += data(value, 2)
        else:
            lines.append([*start, ("", "empty" if value is None else TEXT.typed(value, most))])
    return lines
