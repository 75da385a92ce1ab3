"""Messages of the draft that are compared with what is sent later, or on other connections.

A digest of such a message has what no node on the way may change, its properties and its application data.
The draft speaks of what they say and not of their octets: a value may be encoded anew, and a section without
octets says nothing. Header and footer may change.

Sources: the draft of 5 April 2011 (revision 1239M), section 4.2.
"""

import zlib
from typing import Final

from amqpscope.limits import MAX_PASSED_HEADER
from amqpscope.model.records import SERVER, FrameRecord, FrameRef
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from amqpscope.tracking.amqp10.redelivery import Head
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10_draft2011.sections import FOOTER, HEADER
from dissectors.amqp10.portable import dump_value
from dissectors.amqp10.values import Map
from dissectors.amqp10_draft2011.message import DraftMessage, DraftSection
from dissectors.amqp10_draft2011.performatives import Footer, Header, Properties, Transfer
from dissectors.wire import i64

__all__ = ["draft_digest", "head_of", "header_of", "pass_on"]

_DATA: Final = 3
_AMQP_DATA: Final = 4

# No constructor of the final specification, so that an id of one dialect is none of the other one.
_TEXT: Final = b"\x01"
_OCTETS: Final = b"\x02"


def pass_on(
    me: Endpoint10, record: FrameRecord, session: SessionEnd, link: LinkEnd, begun: Delivery | None
) -> None:
    """A message whose last transfer was sent. begun: its delivery, if earlier transfers began it.

    What becomes of a message of several transfers is not followed: a disposition may name any of them.
    """
    message = DraftMessage.of(record.message)
    sent = record.frame.body
    if message is None or not isinstance(sent, Transfer) or not me.messages.complete:
        return
    resumed = sent.resume is True or (begun is not None and begun.resumed)
    sound = message.complete and message.message_format == 0 and not resumed and not link.mixed
    if sound:
        message.values()
        sound = not message.problems
    if not me.may_keep(sound, message.size):
        me.messages.complete = False
        return
    passed = draft_digest(record, message, link.name)
    if passed is None:
        return
    me.keep(passed)
    delivery = session.sending().unsettled.get(int(session.sent.last))
    if begun is None and me.peer == SERVER and delivery is not None and delivery.link is link:
        me.follow_fate(passed, delivery, session, head_of(message).count)
    else:
        me.messages.fates.pop(passed.message_id, None)


def draft_digest(record: FrameRecord, message: DraftMessage, link: str) -> MessageDigest | None:
    """What to keep of a complete message, which `record` completes; None if it has no message-id."""
    identity = b""
    header = b""
    properties = b""
    codes: list[int] = []
    sums: list[int] = []
    keys: list[int] = []
    for section, value in zip(message.sections, message.values(), strict=True):
        code = int(section.code)
        if code == HEADER:
            header = section.octets if section.size <= MAX_PASSED_HEADER else b""
        if isinstance(value, (Header, Footer)):
            keys += _keys(code, value.message_attrs)
        if code in (HEADER, FOOTER) or section.size == 0:
            continue
        if isinstance(value, Properties):
            identity = _identity(value)
            properties = section.octets if section.size <= MAX_PASSED_HEADER else b""
        octets = _said(code, value)
        if codes and codes[-1] == code and code in (_DATA, _AMQP_DATA):
            # Such sections one after the other say the same as one.
            sums[-1] = zlib.crc32(octets, sums[-1])
        else:
            codes.append(code & 0xFF)
            sums.append(zlib.crc32(octets))
    if not identity:
        return None
    passed = MessageDigest(FrameRef.of(record), identity, header, properties, bytes(codes), tuple(sums), link)
    passed.annotations = tuple(keys)
    passed.draft = True
    return passed


def head_of(message: DraftMessage) -> Head:
    """The head, where delivery-failures is the delivery-count and message-attrs are annotations."""
    head = Head(0)
    for value in message.values():
        if isinstance(value, Header):
            head.count = int(value.delivery_failures or 0)
            head.first = value.former_acquirers == 0
            if value.message_attrs is not None:
                head.annotations = {str(key): one for key, one in value.message_attrs.pairs}
                head.rejection = value.message_attrs.get("rejected") is not None
    return head


def header_of(passed: MessageDigest) -> Header | None:
    """The header of a message that was kept, None if it has none."""
    section = DraftSection(0, HEADER, True)
    section.add(passed.header)
    value = section.decode([])
    return value if isinstance(value, Header) else None


def _identity(properties: Properties) -> bytes:
    """The message-id, whose type the draft's text lost; b"" if there is none."""
    value: object = properties.message_id
    if value is None and properties.odd is not None:
        value = properties.odd.get(0)
    if isinstance(value, bytes):
        return _OCTETS + value
    return _TEXT + value.encode("utf-8", "replace") if isinstance(value, str) else b""


def _keys(code: i64, attributes: Map | None) -> list[int]:
    """A checksum of each key of the message-attrs of a header or footer."""
    if attributes is None:
        return []
    return [zlib.crc32(f"{code} {key}".encode("utf-8", "replace")) for key, _ in attributes.pairs]


def _said(code: int, value: object) -> bytes:
    """What a section says, however it is encoded."""
    if code == _DATA and isinstance(value, bytes):
        return value
    values = value if isinstance(value, list) and code == _AMQP_DATA else [value]
    return "".join([_text(one) + ";" for one in values]).encode("utf-8", "replace")


def _text(value: object) -> str:
    """A value as text. Equal values have the same text; the order of a map's entries says nothing."""
    if isinstance(value, Map):
        return "{" + ",".join(sorted([f"{_text(key)}:{_text(one)}" for key, one in value.pairs])) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_text(one) for one in value]) + "]"
    return repr(dump_value(value))
