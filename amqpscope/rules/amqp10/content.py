"""What annotations and properties of a message say of it (messaging.xml, "message-format").

Only messages come here whose sections are in order, and of which `dissectors.amqp10.outline` could not see
that they say nothing odd.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from dissectors.amqp10.composite import sent_name
from dissectors.amqp10.message import Section
from dissectors.amqp10.messaging import Properties
from dissectors.amqp10.outline import is_media_type
from dissectors.amqp10.performatives import Error
from dissectors.amqp10.values import Map, Raw, Symbol
from dissectors.wire import i64

__all__ = ["judge_content", "judge_ids"]

# HTTP content codings registered at IANA, with the older names that RFC 9110 (section 8.4.1) keeps for them.
_CODINGS: Final = (
    "aes128gcm",
    "br",
    "compress",
    "dcb",
    "dcz",
    "deflate",
    "exi",
    "gzip",
    "identity",
    "pack200-gzip",
    "x-compress",
    "x-gzip",
    "zstd",
)

_ANNOTATIONS: Final = ("delivery-annotations", "message-annotations", "footer")

_DAY: Final = 86_400_000
"""Milliseconds."""

# Within so much of the capture's time a time that a message names is taken for meant so.
_NEAR: Final = 3660 * _DAY


def _certainty(case: Case, sure: bool) -> i64:
    """Whose fault the properties of a message are: a server mostly hands on, unchanged as it has to."""
    return CERTAIN if sure and case.me.peer == CLIENT else POSSIBLE


def content_type_that_is_no_media_type(case: Case, content_type: str) -> None:
    """The content-type of a message is no media type: it is not of the form type, slash, subtype.

    Why it matters: a receiver cannot choose by it how to read the body.
    Silent when: the message was not captured whole, or has another format. Possible when it is empty, or sent
    by a server, which may hand on what it received.
    Possible because: The {peer} may hand it on as it received it; an empty one may be meant for none.
    """
    certainty = _certainty(case, content_type != "")
    case.report(
        "amqp10/M-CT-MIME",
        "the content-type is no media type",
        certainty,
        {"content_type": str(content_type)},
    )


def content_type_of_another_body(case: Case, content_type: str, body: str) -> None:
    """A message has a content-type, and a body that is not data.

    Why it matters: a body of AMQP values says itself what it is; two answers may differ.
    Silent when: the message was not captured whole, or has another format. By the final text also if it is
    message/x-amqp+data, +map or +list, which that text asks for there. Possible when a server sends it, which
    may hand on what it received.
    Possible because: The {peer} may hand it on as it received it; an empty one may be meant for none.
    """
    case.report(
        "amqp10/M-CT-NONDATA",
        f"the message has a content-type and its body is {body}",
        _certainty(case, True),
        {"content_type": str(content_type), "body": body},
    )


def content_encoding_of_another_body(case: Case, encoding: str, body: str) -> None:
    """A message has a content-encoding, and a body that is not data.

    Why it matters: only octets can be decompressed; a receiver that tries fails.
    Silent when: the message was not captured whole, or has another format. Possible when it is empty, or sent
    by a server, which may hand on what it received.
    Possible because: The {peer} may hand it on as it received it; an empty one may be meant for none.
    """
    case.report(
        "amqp10/M-CE-NONDATA",
        f"the message has a content-encoding and its body is {body}",
        _certainty(case, encoding != ""),
        {"content_encoding": str(encoding), "body": body},
    )


def identity_as_content_encoding(case: Case) -> None:
    """The content-encoding of a message is `identity`.

    Why it matters: it says that nothing is to be decoded, which an unset field says for everybody.
    Silent when: the message was not captured whole, or has another format. Possible when a server sends it,
    which may hand on what it received.
    Possible because: The {peer} may hand it on as it received it; an empty one may be meant for none.
    """
    case.report("amqp10/M-CE-IDENTITY", "the content-encoding is identity", _certainty(case, True))


def compress_as_content_encoding(case: Case, encoding: str) -> None:
    """The content-encoding of a message is `compress`.

    Why it matters: hardly anybody can decode it any more.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: It may stay for a message that came so by HTTP or mail.
    """
    case.report_once(
        "amqp10/M-CE-COMPRESS",
        "the content-encoding is compress",
        POSSIBLE,
        {"content_encoding": str(encoding)},
    )


def several_content_encodings(case: Case, encoding: str) -> None:
    """The content-encoding of a message names several encodings.

    Why it matters: receivers look for one name, and find none that they know.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: It may stay for a message that came so by HTTP or mail.
    """
    case.report_once(
        "amqp10/M-CE-MULTI",
        "the content-encoding names several encodings",
        POSSIBLE,
        {"content_encoding": str(encoding)},
    )


def unregistered_content_encoding(case: Case, encoding: str) -> None:
    """The content-encoding of a message is none of the registered HTTP content codings.

    Why it matters: a receiver does not know how to decode the body; mostly a character set was meant, which
    belongs into the content-type.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: A specification that is not known here may have assigned it.
    """
    case.report_once(
        "amqp10/M-CE-REGISTERED",
        "the content-encoding is no registered content coding",
        POSSIBLE,
        {"content_encoding": str(encoding)},
    )


def reserved_annotation(case: Case, section: str, key: object) -> None:
    """An annotation has a key that is reserved: a number, or a symbol that does not begin with `x-`.

    Why it matters: a receiver that does not know it has to detach the link, unless it begins with `x-opt-`.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: A specification that is not known here may have assigned it.
    """
    shown = str(key) if isinstance(key, Symbol) else sent_name(key)
    message = f"the {section} have a reserved key" if section != "footer" else "the footer has a reserved key"
    case.report_once("amqp10/M-ANN-RESERVED", message, POSSIBLE, {"key": shown, "section": section})


def rejected_annotation_that_is_no_error(case: Case, value: object) -> None:
    """The delivery-annotation `rejected` holds something else than an error.

    Why it matters: the key is reserved for the reason of a rejection, which a receiver will look for there.
    Silent when: the message was not captured whole, or has another format; by the final text always, it does
    not have the key.
    """
    case.report(
        "amqp10/M-DA-REJECTED-TYPE",
        f"the delivery-annotation rejected is {sent_name(value)}, not error",
        CERTAIN,
        {"value": sent_name(value)},
    )


def time_in_another_unit(case: Case, field: str, time: int, unit: str) -> None:
    """A time in a message's properties is near that of the capture only if it does not count milliseconds.

    Why it matters: everybody else reads a time decades off; messages expire at once, or never.
    Silent when: the message was not captured whole, or has another format.
    Only possible because: The time may be meant as it stands, or handed on as the {peer} received it.
    """
    case.report_once(
        "amqp10/T-TIME-MS",
        f"{field} is far from the capture's time, and near it if it counts {unit}",
        POSSIBLE,
        {"field": field, "milliseconds": int(time)},
    )


def time_with_its_octets_reversed(case: Case, field: str, time: int) -> None:
    """A time in a message's properties is near that of the capture only with its octets in reverse order.

    Why it matters: numbers stand with their highest octet first; whoever forgets to turn them sends others
    than it means.
    Silent when: the message was not captured whole, or has another format. Of other numbers both orders are
    credible.
    Only possible because: The time may be meant as it stands, or handed on as the {peer} received it.
    """
    case.report_once(
        "amqp10/T-BYTEORDER",
        f"{field} is far from the capture's time, and near it with its octets in reverse order",
        POSSIBLE,
        {"field": field, "milliseconds": int(time)},
    )


def message_id_used_twice(case: Case, first: MessageDigest) -> None:
    """Two different messages on one link have the same message-id.

    Why it matters: who drops duplicates, or looks for an answer, by the id takes the second for the first.
    Silent when: properties, application-properties and body are the same, as of a message that is sent again;
    or the message is not among the first of its direction.
    Only possible because: The {peer} may hand on what others have made.
    """
    case.report_once(
        "amqp10/M-ID-UNIQUE",
        f"the message has the message-id of another one (packet {first.spot.packet})",
        POSSIBLE,
        {"link_name": first.link},
        [int(first.spot.packet)],
    )


def judge_ids(case: Case) -> None:
    """The messages of a peer that are kept, when its stream has ended."""
    known: dict[tuple[str, bytes], MessageDigest] = {}
    end = case.spot
    for message_digest in case.me.digests:
        first = known.setdefault((message_digest.link, message_digest.message_id), message_digest)
        if (first.sections, first.sums) != (message_digest.sections, message_digest.sums):
            case.spot = message_digest.spot
            message_id_used_twice(case, first)
    case.spot = end


def judge_content(case: Case, sections: list[Section]) -> None:
    """The rules about what a message's annotations and properties say; its sections are in order."""
    properties: Properties | None = None
    body = ""
    for section in sections:
        value = section.value
        if section.name in _ANNOTATIONS:
            if isinstance(value, Map):
                _judge_annotations(case, section.name, value)
        elif isinstance(value, Properties):
            properties = value
        elif section.name in ("data", "amqp-sequence", "amqp-value"):
            body = section.name
    if properties is None:
        return
    if properties.content_type is not None:
        _judge_content_type(case, properties.content_type, body)
    if properties.content_encoding is not None:
        _judge_encoding(case, properties.content_encoding, body)
    if properties.creation_time is not None:
        _judge_time(case, "creation-time", properties.creation_time)
    if properties.absolute_expiry_time is not None:
        _judge_time(case, "absolute-expiry-time", properties.absolute_expiry_time)


def _judge_annotations(case: Case, section: str, annotations: Map) -> None:
    """The first reserved key is enough: a peer that uses one uses it in every message."""
    reserved: list[object] = []
    for key, value in annotations:
        if isinstance(key, Raw) or (isinstance(key, Symbol) and key.startswith("x-")):
            continue
        if section == "delivery-annotations" and isinstance(key, Symbol) and key == "rejected":
            if not isinstance(value, (Error, Raw)):
                rejected_annotation_that_is_no_error(case, value)
        elif sent_name(key) in ("symbol", "ulong"):
            reserved.append(key)
    if reserved:
        reserved_annotation(case, section, reserved[0])


def _judge_content_type(case: Case, content_type: Symbol, body: str) -> None:
    octets = content_type.encode("ascii")
    size: i64 = len(octets)
    if not is_media_type(octets, 0, size):
        content_type_that_is_no_media_type(case, content_type)
    elif body != "data":
        content_type_of_another_body(case, content_type, body)


def _judge_encoding(case: Case, encoding: Symbol, body: str) -> None:
    plain = encoding.strip().lower()
    if body != "data":
        content_encoding_of_another_body(case, encoding, body)
    elif plain == "identity":
        identity_as_content_encoding(case)
    elif "," in plain:
        several_content_encodings(case, encoding)
    elif plain in ("compress", "x-compress"):
        compress_as_content_encoding(case, encoding)
    elif plain not in _CODINGS:
        unregistered_content_encoding(case, encoding)


def _judge_time(case: Case, field: str, time: int) -> None:
    now = int(case.record.time) // 1_000_000
    if abs(time - now) < _NEAR:
        return
    reversed_octets = (time & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "big")[::-1]
    if abs(int.from_bytes(reversed_octets, "big", signed=True) - now) < _NEAR:
        time_with_its_octets_reversed(case, field, time)
    elif abs(time * 1000 - now) < _NEAR:
        time_in_another_unit(case, field, time, "seconds")
    elif abs(time // 1000 - now) < _NEAR:
        time_in_another_unit(case, field, time, "microseconds")
    elif abs(time // 1_000_000 - now) < _NEAR:
        time_in_another_unit(case, field, time, "nanoseconds")


RULES = {
    "amqp10/M-CT-MIME": content_type_that_is_no_media_type,
    "amqp10/M-CT-NONDATA": content_type_of_another_body,
    "amqp10/M-CE-NONDATA": content_encoding_of_another_body,
    "amqp10/M-CE-IDENTITY": identity_as_content_encoding,
    "amqp10/M-CE-COMPRESS": compress_as_content_encoding,
    "amqp10/M-CE-MULTI": several_content_encodings,
    "amqp10/M-CE-REGISTERED": unregistered_content_encoding,
    "amqp10/M-ANN-RESERVED": reserved_annotation,
    "amqp10/M-DA-REJECTED-TYPE": rejected_annotation_that_is_no_error,
    "amqp10/M-ID-UNIQUE": message_id_used_twice,
    "amqp10/T-TIME-MS": time_in_another_unit,
    "amqp10/T-BYTEORDER": time_with_its_octets_reversed,
}
