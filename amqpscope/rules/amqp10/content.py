"""The annotations and properties of messages (messaging.xml, "message-format").

The sections of these messages are in order. `dissectors.amqp10.outline` has sorted out messages that it
knows to be free of these faults.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from dissectors.amqp10.composite import sent_name
from dissectors.amqp10.message import Section
from dissectors.amqp10.messaging import Properties
from dissectors.amqp10.outline import is_media_type
from dissectors.amqp10.performatives import Error
from dissectors.amqp10.values import Map, Raw, Symbol
from dissectors.wire import i64

__all__ = ["judge_content", "judge_ids"]

RULES: Final = Rules("amqp10/content")


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

# A time in a message counts as correct if it lies within this distance of the capture's time.
_NEAR: Final = 3660 * _DAY


def _certainty(case: Case10, sure: bool) -> i64:
    """How certain a fault in a message's properties is: a server usually hands messages on unchanged."""
    return CERTAIN if sure and case.me.peer == CLIENT else POSSIBLE


M_CT_MIME: Final = RULES.rule("M-CT-MIME", "MUST", "definition", by="sender")


def content_type_that_is_no_media_type(case: Case10, content_type: str) -> None:
    """A sender sets the content-type of a message to a value that is not a media type. A media type has the
    form `type/subtype`.

    Demands: The content-type must be a symbol that is the name of a media type (RFC 2046).
    Source: messaging.xml section message-format > properties.content-type
    Evidence: the text of the content-type
    Why it matters: A receiver cannot use the content-type to choose how to read the body.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0. The finding is reported as possible, not as certain, when the content-type is empty. The finding is
    reported as possible, not as certain, when a server sends the message, because a server may forward what
    it received.
    Possible because: The {peer} may forward the content-type that the {peer} received. An empty content-type
    may mean that the message has no content-type.
    How to mend it: Set content-type to a media type such as `application/json`, or leave the field null.
    Applications must not use content-type for their own type names. An application can put the names of its
    own types into the field `subject` or into application-properties.
    """
    certainty = _certainty(case, content_type != "")
    case.report(
        M_CT_MIME,
        "the content-type is not a media type",
        certainty,
        {"content_type": str(content_type)},
    )


M_CT_NONDATA: Final = RULES.rule(
    "M-CT-NONDATA",
    "SHOULD",
    "keyword",
    by="sender",
    note="Another sentence of the specification says the opposite.",
)


def content_type_of_another_body(case: Case10, content_type: str, body: str) -> None:
    """A sender sets a content-type on a message whose body is not a data section.

    Demands: A message whose body is not a data section needs no content-type. The final specification permits
    only message/x-amqp+data, message/x-amqp+map or message/x-amqp+list for such a message. The drafts csd01
    and csprd02 say that a sender SHOULD NOT set a content-type.
    Source: messaging.xml section message-format > properties.content-type
    Evidence: the content-type, and the kind of the body
    Why it matters: The AMQP values in a body carry their own types. A content-type repeats the type of the
    body and may contradict the types of the values.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0. For the final specification, the rule is also silent if the content-type is message/x-amqp+data,
    message/x-amqp+map or message/x-amqp+list. The finding is reported as possible, not as certain, when a
    server sends the message, because a server may forward what it received.
    Possible because: The {peer} may forward the content-type that the {peer} received. An empty content-type
    may mean that the message has no content-type.
    How to mend it: Leave content-type null for amqp-value and amqp-sequence bodies. To send JSON or another
    serialized format with a content-type, put the serialized octets into a data section.
    """
    case.report(
        M_CT_NONDATA,
        f"the message has a content-type, but its body is {body}, and only a body of data sections needs a "
        "content-type",
        _certainty(case, True),
        {"content_type": str(content_type), "body": body},
    )


M_CE_NONDATA: Final = RULES.rule(
    "M-CE-NONDATA", "MUST NOT", "keyword", by="sender", usual_answer="amqp:decode-error"
)


def content_encoding_of_another_body(case: Case10, encoding: str, body: str) -> None:
    """A sender sets a content-encoding on a message whose body is not a data section.

    Demands: A message may have a content-encoding only if its body is a data section.
    Source: messaging.xml section message-format > properties.content-encoding
    Evidence: the content-encoding, and the kind of the body
    Why it matters: A content-encoding can apply only to octets, not to AMQP values. A receiver that tries
    to decode the body fails and cannot read the message.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0. The finding is reported as possible, not as certain, when the content-encoding is empty. The finding is
    reported as possible, not as certain, when a server sends the message, because a server may forward what
    it received.
    Possible because: The {peer} may forward the content-encoding that the {peer} received. An empty
    content-encoding may mean that the message has no content-encoding.
    How to mend it: Set content-encoding only if the body is a data section with encoded octets. Put
    compressed content into a data section. Leave content-encoding null for amqp-value and amqp-sequence
    bodies.
    """
    case.report(
        M_CE_NONDATA,
        f"the message has a content-encoding, but its body is {body}, and only a body of data sections may "
        "have a content-encoding",
        _certainty(case, encoding != ""),
        {"content_encoding": str(encoding), "body": body},
    )


M_CE_IDENTITY: Final = RULES.rule(
    "M-CE-IDENTITY", "MUST NOT", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def identity_as_content_encoding(case: Case10) -> None:
    """A sender sets the content-encoding of a message to `identity`.

    Demands: A sender must not use the content-encoding `identity`, but must leave the field null.
    Source: messaging.xml section message-format > properties.content-encoding
    Evidence: the text of the content-encoding
    Why it matters: The content-encoding `identity` means that the body is not encoded. A null
    content-encoding has the same meaning, and every receiver understands a null content-encoding.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0. The finding is reported as possible, not as certain, when a server sends the message, because a server
    may forward what it received.
    Possible because: The {peer} may forward the content-encoding that the {peer} received.
    How to mend it: Leave content-encoding null when the body is not encoded. Do not use `identity` as a
    default value.
    """
    case.report(
        M_CE_IDENTITY,
        "the content-encoding is `identity`, but `identity` must not be used: the field must be null instead",
        _certainty(case, True),
    )


M_CE_COMPRESS: Final = RULES.rule("M-CE-COMPRESS", "SHOULD NOT", "keyword", by="sender")


def compress_as_content_encoding(case: Case10, encoding: str) -> None:
    """A sender sets the content-encoding of a message to `compress`.

    Demands: A sender should not use the content-encoding `compress`, except for a message that it received
    through another protocol.
    Source: messaging.xml section message-format > properties.content-encoding
    Evidence: the text of the content-encoding
    Why it matters: Hardly any receiver can still decode this compression, so most receivers cannot read the
    body.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    Only possible because: The {peer} may have received the message with this content-encoding through HTTP or
    e-mail. Such a message may keep its content-encoding.
    How to mend it: Compress with gzip and set content-encoding to `gzip`, or send the body without
    compression and leave the field null.
    """
    case.report_once(
        M_CE_COMPRESS,
        "the content-encoding is `compress`, which should not be used",
        POSSIBLE,
        {"content_encoding": str(encoding)},
    )


M_CE_MULTI: Final = RULES.rule("M-CE-MULTI", "SHOULD NOT", "keyword", by="sender")


def several_content_encodings(case: Case10, encoding: str) -> None:
    """A sender sets the content-encoding of a message to several encodings.

    Demands: A sender should not name several encodings in one content-encoding, except for a message that it
    received through another protocol.
    Source: messaging.xml section message-format > properties.content-encoding
    Evidence: a comma in the content-encoding
    Why it matters: Receivers compare the whole content-encoding with the names of the encodings that they
    know. A receiver finds no match for a list of encodings and cannot decode the body.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    Only possible because: The {peer} may have received the message with this content-encoding through HTTP or
    e-mail. Such a message may keep its content-encoding.
    How to mend it: Apply at most one encoding to the body and name only that encoding in content-encoding.
    """
    case.report_once(
        M_CE_MULTI,
        "the content-encoding names several encodings, but should name only one",
        POSSIBLE,
        {"content_encoding": str(encoding)},
    )


M_CE_REGISTERED: Final = RULES.rule("M-CE-REGISTERED", "SHOULD", "definition", by="sender")


def unregistered_content_encoding(case: Case10, encoding: str) -> None:
    """A sender sets the content-encoding of a message to a value that is not a registered HTTP content
    coding.

    Demands: The content-encoding should be a coding of the IANA registry of HTTP content codings.
    Source: messaging.xml section message-format > properties.content-encoding
    Evidence: the text of the content-encoding
    Why it matters: A receiver does not know how to decode the body. Often the sender has put the name of a
    character set into content-encoding, but a character set belongs in the content-type.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    Only possible because: A specification that this rule does not know may define the content-encoding.
    How to mend it: Set content-encoding only to a registered coding such as `gzip`. Put a character set into
    content-type, for example `text/plain;charset=utf-8`, not into content-encoding.
    """
    case.report_once(
        M_CE_REGISTERED,
        "the content-encoding is not a registered HTTP content coding",
        POSSIBLE,
        {"content_encoding": str(encoding)},
    )


M_ANN_RESERVED: Final = RULES.rule(
    "M-ANN-RESERVED",
    "MUST NOT",
    "wording",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
    answer="amqp:not-implemented",
)


def reserved_annotation(case: Case10, section: str, key: object) -> None:
    """A sender puts an annotation with a reserved key into a message. All numbers are reserved keys, and so
    are all symbols that do not begin with `x-`.

    Demands: The annotation keys that a peer defines itself must be symbols that begin with `x-`. Annotation
    keys of the type `ulong`, and symbols that do not begin with `x-`, are reserved for specifications.
    Source: messaging.xml section message-format > annotations
    Evidence: annotation keys that no known specification defines
    Why it matters: A receiver that does not recognize an annotation must detach the link, unless the key of
    the annotation begins with `x-opt-`.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    Only possible because: A specification that this rule does not know may define the key.
    How to mend it: Begin the keys of your own annotations with `x-opt-`. Applications should put their own
    data into application-properties instead of annotations.
    """
    shown = str(key) if isinstance(key, Symbol) else sent_name(key)
    message = (
        f"a key in the {section} is reserved for specifications: "
        "the key of any other annotation must be a symbol that begins with `x-`"
    )
    case.report_once(M_ANN_RESERVED, message, POSSIBLE, {"key": shown, "section": section})


M_DA_REJECTED_TYPE: Final = RULES.rule(
    "M-DA-REJECTED-TYPE",
    "MUST",
    "csd-only",
    by="sender",
    warning="Only a draft of the specification makes this demand.",
    usual_answer="amqp:invalid-field",
)


def rejected_annotation_that_is_no_error(case: Case10, value: object) -> None:
    """A sender sets the delivery-annotation `rejected` to a value that is not an error.

    Demands: The delivery-annotation with the key `rejected` is reserved, and its value must be an error.
    Source: (not in messaging.xml)
    Evidence: the value under the key `rejected` in the delivery-annotations
    Why it matters: The key `rejected` is reserved for the reason of a rejection. A receiver expects an error
    under the key `rejected` and cannot read the value.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0. Under the final specification, the rule is always silent, because the final specification does not
    define the key `rejected`.
    How to mend it: Put only an error composite (condition, description, info) under the key `rejected`. Store
    other data under a key that begins with `x-opt-`.
    """
    case.report(
        M_DA_REJECTED_TYPE,
        f"the value of the delivery-annotation `rejected` is of the type `{sent_name(value)}`, not `error`",
        CERTAIN,
        {"value": sent_name(value)},
    )


T_TIME_MS: Final = RULES.rule(
    "T-TIME-MS", "MUST", "definition", warning="A capture can suggest this fault but never prove it."
)


def time_in_another_unit(case: Case10, field: str, time: int, unit: str) -> None:
    """A sender writes a time in a unit other than milliseconds into the properties of a message. The time is
    close to the time of the capture only if the number counts seconds, microseconds or nanoseconds.

    Demands: A timestamp must count the milliseconds since 1970-01-01 UTC.
    Source: types.xml section encodings > timestamp
    Evidence: a time in the message that is far from the time of the capture
    Why it matters: Receivers read a time that is decades off. Messages expire at once or never.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0.
    Only possible because: The sender may really mean this time, or the {peer} may forward a time that the
    {peer} received.
    How to mend it: Encode creation-time and absolute-expiry-time as milliseconds since 1970-01-01 UTC.
    If a clock gives seconds, microseconds or nanoseconds, convert its value to milliseconds first.
    """
    case.report_once(
        T_TIME_MS,
        f"{field} must be a number of milliseconds, but the number fits the time of the capture only when "
        f"read as {unit}",
        POSSIBLE,
        {"field": field, "milliseconds": int(time)},
    )


T_BYTEORDER: Final = RULES.rule(
    "T-BYTEORDER",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:decode-error",
)


def time_with_its_octets_reversed(case: Case10, field: str, time: int) -> None:
    """A sender writes a time with its octets in reverse order into the properties of a message. The time is
    close to the time of the capture only if the octets are reversed.

    Demands: All numbers must be big-endian unless the specification says otherwise.
    Source: types.xml section encodings
    Evidence: a time in the message that is plausible only if its octets are read in reverse order
    Why it matters: AMQP sends the highest octet of a number first. A sender that does not convert the byte
    order sends wrong numbers, and receivers misread the time.
    Silent when: a part of the message was not captured, or when the message has a message-format other than
    0. Numbers other than times are not examined, because such numbers are plausible in both octet orders.
    Only possible because: The sender may really mean this time, or the {peer} may forward a time that the
    {peer} received.
    How to mend it: Encode every number in network byte order (big-endian). Convert a number to this byte
    order before you copy the number from memory into the frame.
    """
    case.report_once(
        T_BYTEORDER,
        f"the octets of {field} seem to be in the wrong order: {field} is near the time of the capture only "
        "when its octets are reversed",
        POSSIBLE,
        {"field": field, "milliseconds": int(time)},
    )


M_ID_UNIQUE: Final = RULES.rule(
    "M-ID-UNIQUE",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def message_id_used_twice(case: Case10, first: MessageDigest) -> None:
    """A sender gives two different messages on one link the same message-id.

    Demands: A message-id must identify only one message throughout the system.
    Source: messaging.xml section message-format > properties.message-id
    Evidence: two messages that have the same message-id but different properties or bodies
    Why it matters: A receiver that uses the message-id to drop duplicates or to find a reply mistakes the
    second message for the first. The second message may be lost.
    Silent when: the two messages have the same properties, application-properties and body, because the
    sender may have sent one message twice. The rule remembers only the first messages that each peer sends on
    a connection, and is silent about later messages.
    Only possible because: The {peer} may forward messages that other programs have created.
    How to mend it: Create a new message-id for each message, for example a UUID. Applications that reuse a
    message object must set a new message-id before they send the object again with other content.
    """
    case.report_once(
        M_ID_UNIQUE,
        f"the message has the message-id of an earlier, different message in packet {first.spot.packet}",
        POSSIBLE,
        {"link_name": first.link},
        [int(first.spot.packet)],
    )


def judge_ids(case: Case10) -> None:
    """Judge the kept messages of a peer when its stream has ended."""
    known: dict[tuple[str, bytes], MessageDigest] = {}
    end = case.spot
    for message_digest in case.me.messages.digests:
        first = known.setdefault((message_digest.link, message_digest.message_id), message_digest)
        if (first.sections, first.sums) != (message_digest.sections, message_digest.sums):
            case.spot = message_digest.spot
            message_id_used_twice(case, first)
    case.spot = end


def judge_content(case: Case10, sections: list[Section]) -> None:
    """Judge the annotations and properties of a message whose sections are in order."""
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


def _judge_annotations(case: Case10, section: str, annotations: Map) -> None:
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


def _judge_content_type(case: Case10, content_type: Symbol, body: str) -> None:
    octets = content_type.encode("ascii")
    size: i64 = len(octets)
    if not is_media_type(octets, 0, size):
        content_type_that_is_no_media_type(case, content_type)
    elif body != "data":
        content_type_of_another_body(case, content_type, body)


def _judge_encoding(case: Case10, encoding: Symbol, body: str) -> None:
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


def _judge_time(case: Case10, field: str, time: int) -> None:
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
