"""Messages: which sections, in which order, of which types."""

from __future__ import annotations

from scenarios.pairs import add_pair, legal, pair
from support import amqp10_encode as amqp
from support.amqp10_encode import raw
from support.dialogue import Dialogue

DATA = amqp.data(b"x")
HEADER = amqp.header(durable=True)

# Rule: a wrong message, and one as near to it as possible.
MESSAGES: dict[str, tuple[bytes, bytes]] = {
    "M-SECT-ORDER": (DATA + HEADER, HEADER + DATA),
    "M-SECT-ONCE": (HEADER + HEADER + DATA, HEADER + DATA + DATA),
    "M-BODY-PRESENT": (HEADER, HEADER + amqp.data(b"")),
    "M-BODY-NOMIX": (DATA + amqp.amqp_sequence([]), amqp.amqp_sequence([]) + amqp.amqp_sequence([])),
    "M-BODY-ONEVALUE": (amqp.amqp_value("a") + amqp.amqp_value("b"), amqp.amqp_value("a")),
    "M-PAYLOAD-WHOLE": (DATA + amqp.string("x"), DATA + DATA),
    "M-SECT-TYPE": (amqp.section("data", amqp.string("x")), DATA),
    "M-ANN-KEYTYPE": (
        amqp.section("message-annotations", amqp.map_([("x-opt-a", amqp.uint(1))])) + DATA,
        amqp.message_annotations({"x-opt-a": amqp.uint(1)}) + DATA,
    ),
    "M-AP-KEY": (
        amqp.section("application-properties", amqp.map_([(amqp.symbol("a"), "b")])) + DATA,
        amqp.application_properties({"a": "b"}) + DATA,
    ),
    "M-AP-VALUE": (
        amqp.application_properties({"a": amqp.list_([])}) + DATA,
        amqp.application_properties({"a": amqp.symbol("b")}) + DATA,
    ),
}
ARGUABLE: dict[str, tuple[bytes, bytes]] = {
    "M-SECT-KNOWN": (amqp.described(amqp.ulong(0x79), amqp.map_([])) + DATA, amqp.header() + DATA),
    "M-ID-TYPE": (
        amqp.properties(message_id=amqp.uint(1)) + DATA,
        amqp.properties(message_id=amqp.ulong(1)) + DATA,
    ),
}


def _message(rule: str, wrong: bytes, right: bytes, certain: bool) -> None:
    def tell(d: Dialogue) -> None:
        d.linked()
        message = wrong if d.wrong else right
        d.client.transfer(message[:7], more=True)
        said = d.client.transfer(message[7:])
        if d.wrong:
            said.breaks(rule, certain=certain)
        d.goodbye()

    add_pair(rule.lower().replace("-", "_"), tell, rule)


for _rule, (_wrong, _right) in MESSAGES.items():
    _message(_rule, _wrong, _right, True)
for _rule, (_wrong, _right) in ARGUABLE.items():
    _message(_rule, _wrong, _right, False)


@legal("another message format is opaque")
def another_format(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(b"\xff\xff whatever", message_format=0x10)
    d.goodbye()


@pair("M-FMT-ZERO")
def sections_in_another_format(d: Dialogue) -> None:
    """The clean one has a format of its own, in which the octets are something else."""
    d.linked()
    payload = HEADER + DATA if d.wrong else b"\x01" + HEADER + DATA
    d.client.transfer(payload[:3], message_format=0x00050100, more=True)
    said = d.client.transfer(payload[3:])
    if d.wrong:
        said.may_break("M-FMT-ZERO")
    d.goodbye()


@legal("a batch of Event Hubs")
def batch_of_event_hubs(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(amqp.data(HEADER + DATA) + amqp.data(DATA), message_format=0x80013700)
    d.goodbye()


@legal("every section")
def every_section(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(
        HEADER
        + amqp.delivery_annotations({"x-opt-a": amqp.uint(1)})
        + amqp.message_annotations({"x-mine": "v"})
        + amqp.properties(message_id=b"m", correlation_id=raw("98" + "00" * 16))
        + amqp.application_properties({"a": "b"})
        + DATA
        + DATA
        + amqp.footer({"x-opt-b": "c"})
    )
    d.goodbye()
