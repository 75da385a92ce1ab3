"""What annotations and properties of a message say of it."""

from __future__ import annotations

from scenarios.pairs import add_pair, legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

DATA = amqp.data(b"x")
VALUE = amqp.amqp_value("x")

# The dialogues are of 14 November 2023.
NOW = 1_700_000_000_000


def typed(content_type: str | None) -> bytes:
    return amqp.properties(content_type=content_type)


def encoded(encoding: str) -> bytes:
    return amqp.properties(content_type="text/plain", content_encoding=encoding)


def created(milliseconds: int) -> bytes:
    return amqp.properties(creation_time=milliseconds)


# Rule: a wrong message, and one as near to it as possible.
MESSAGES: dict[str, tuple[bytes, bytes]] = {
    "M-CT-MIME": (typed("json") + DATA, typed("application/json") + DATA),
    "M-CT-NONDATA": (typed("text/plain") + VALUE, typed("text/plain") + DATA),
    "M-CE-NONDATA": (amqp.properties(content_encoding="gzip") + VALUE, encoded("gzip") + DATA),
    "M-CE-IDENTITY": (encoded("identity") + DATA, typed("text/plain") + DATA),
}
ARGUABLE: dict[str, tuple[bytes, bytes]] = {
    "M-CE-COMPRESS": (encoded("compress") + DATA, encoded("zstd") + DATA),
    "M-CE-MULTI": (encoded("gzip, deflate") + DATA, encoded("deflate") + DATA),
    "M-CE-REGISTERED": (encoded("utf-8") + DATA, encoded("br") + DATA),
    "M-ANN-RESERVED": (
        amqp.message_annotations({"trace": "1"}) + DATA,
        amqp.message_annotations({"x-opt-trace": "1"}) + DATA,
    ),
    "T-TIME-MS": (created(NOW // 1000) + DATA, created(NOW) + DATA),
    "T-BYTEORDER": (
        created(int.from_bytes(NOW.to_bytes(8, "little"), "big")) + DATA,
        created(NOW) + DATA,
    ),
}


def _message(rule: str, wrong: bytes, right: bytes, certain: bool) -> None:
    def tell(d: Dialogue) -> None:
        d.linked()
        message = wrong if d.wrong else right
        d.client.transfer(message[:9], more=True)
        said = d.client.transfer(message[9:])
        if d.wrong:
            said.breaks(rule, certain=certain)
        d.goodbye()

    add_pair(rule.lower().replace("-", "_"), tell, rule)


for _rule, (_wrong, _right) in MESSAGES.items():
    _message(_rule, _wrong, _right, True)
for _rule, (_wrong, _right) in ARGUABLE.items():
    _message(_rule, _wrong, _right, False)


def _each(d: Dialogue, cases: tuple[tuple[bytes, str, bool], ...]) -> None:
    d.linked(credit=100)
    for message, rule, certain in cases:
        said = d.client.transfer(message)
        if rule:
            said.breaks(rule, certain=certain)
    d.goodbye()


@reported("content types and encodings")
def content_types_and_encodings(d: Dialogue) -> None:
    _each(
        d,
        (
            (typed("") + DATA, "M-CT-MIME", False),
            (typed("text/") + DATA, "M-CT-MIME", True),
            (typed("/plain") + DATA, "M-CT-MIME", True),
            (typed("text/plain text") + DATA, "M-CT-MIME", True),
            (typed("text/plain ; charset=utf-8") + DATA, "", True),
            (typed("a" * 200 + "/b") + DATA, "", True),
            (typed("application/vnd.ms-excel+x;v=1") + DATA, "", True),
            (typed("plain") + VALUE, "M-CT-MIME", True),
            (typed("message/x-amqp+map") + VALUE, "", True),
            (typed("message/x-amqp+cat") + VALUE, "M-CT-NONDATA", True),
            (typed("text/plain") + amqp.amqp_sequence([]), "M-CT-NONDATA", True),
            (amqp.properties(content_encoding="") + VALUE, "M-CE-NONDATA", False),
            (amqp.properties(content_encoding="identity") + VALUE, "M-CE-NONDATA", True),
            (encoded("Identity") + DATA, "M-CE-IDENTITY", True),
            (encoded("X-GZIP") + DATA, "", True),
            (encoded("x-compress") + DATA, "M-CE-COMPRESS", False),
            (encoded("compress") + DATA, "", False),
            (encoded("") + DATA, "M-CE-REGISTERED", False),
        ),
    )


def _alone(name: str, message: bytes, rule: str) -> None:
    """What is reported once a connection."""

    def tell(d: Dialogue) -> None:
        _each(d, ((message, rule, False), (message, "", False)))

    tell.__name__ = name
    reported()(tell)


_alone("annotation_by_number", amqp.message_annotations([(amqp.ulong(1), "v")]) + DATA, "M-ANN-RESERVED")
_alone(
    "annotation_among_others",
    amqp.delivery_annotations({"x-a": "v", "xa": "v", "b": "v"}) + DATA,
    "M-ANN-RESERVED",
)
_alone("annotation_in_the_footer", DATA + amqp.footer({"sum": "v"}), "M-ANN-RESERVED")
_alone("rejected_beside_the_delivery", amqp.message_annotations({"rejected": "v"}) + DATA, "M-ANN-RESERVED")
_alone("expiry_in_microseconds", amqp.properties(absolute_expiry_time=NOW * 1000) + DATA, "T-TIME-MS")
_alone("creation_in_nanoseconds", created(NOW * 1_000_000) + DATA, "T-TIME-MS")


@reported("what a server hands on is not its fault for certain")
def handed_on(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.client.flow(handle=0)
    for rule, (message, _) in MESSAGES.items():
        d.server.transfer(message).may_break(rule)
    d.goodbye()


@reported("what the client said first the server only hands on")
def handed_back(d: Dialogue) -> None:
    d.linked()
    d.client.attach(RECEIVER, handle=1, name="back")
    d.server.attach(SENDER, handle=1, name="back")
    d.client.flow(handle=1)
    for rule, (message, _) in ARGUABLE.items():
        d.client.transfer(message).may_break(rule)
        d.server.transfer(message, handle=1)
    d.goodbye()


@legal("annotations and times that may look odd")
def annotations_and_times(d: Dialogue) -> None:
    d.linked(credit=100)
    for message in (
        amqp.delivery_annotations({"rejected": amqp.error(condition="x:y")}),
        created(0),
        created(-1),
        created(2**63 - 1),
        created(-(2**63)),
        created(253_402_300_799_000),
    ):
        d.client.transfer(message + DATA)
    d.goodbye()


@legal("times that are as they should be")
def plain_times(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(amqp.properties(creation_time=NOW, absolute_expiry_time=NOW + 3_600_000) + DATA)
    d.goodbye()


# ---- what the drafts have otherwise ------------------------------------------------------------------------


def _rejected(d: Dialogue, value: bytes) -> None:
    d.linked()
    said = d.client.transfer(amqp.delivery_annotations({"rejected": value}) + DATA)
    if d.wrong:
        said.breaks("M-DA-REJECTED-TYPE")
    d.goodbye()


@pair("M-DA-REJECTED-TYPE", spec="csprd02")
def rejected_annotation_that_is_no_error(d: Dialogue) -> None:
    _rejected(d, amqp.string("no more") if d.wrong else amqp.error(condition="x:no-more"))


@legal("rejected is any annotation in the final text")
def rejected_annotation_in_the_final_text(d: Dialogue) -> None:
    d.wrong = False
    _rejected(d, amqp.string("no more"))


@reported("by the drafts a content-type is for data only", spec="csd01")
def wrapped_content_type_in_a_draft(d: Dialogue) -> None:
    _each(d, ((typed("message/x-amqp+map") + VALUE, "M-CT-NONDATA", True), (typed("a/b") + DATA, "", True)))


# ---- message-ids -------------------------------------------------------------------------------------------


def _letter(identity: object, body: bytes) -> bytes:
    return amqp.properties(message_id=identity) + amqp.data(body)


@pair("M-ID-UNIQUE", cut=without("first"))
def message_id_used_twice(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(_letter("order-1", b"two pounds of tea")).called("first")
    said = d.client.transfer(_letter("order-1" if d.wrong else "order-2", b"three pounds of tea"))
    if d.wrong:
        said.may_break("M-ID-UNIQUE")
    d.goodbye()


@legal("a message is sent again, and ids of another link or another type are others")
def message_ids_that_may_be_repeated(d: Dialogue) -> None:
    d.linked()
    d.client.attach(handle=1, name="r")
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1)
    d.client.transfer(_letter("order-1", b"tea"))
    d.client.transfer(amqp.header(delivery_count=1) + _letter("order-1", b"tea"))
    d.client.transfer(_letter("order-1", b"coffee"), handle=1)
    d.client.transfer(_letter(amqp.ulong(1), b"tea"))
    d.client.transfer(_letter(amqp.binary(b"order-1"), b"coffee"))
    d.client.transfer(amqp.data(b"no id"))
    d.client.transfer(amqp.data(b"nor this one"))
    d.goodbye()
