"""Message sections: names, what they wrap, where each begins; and what is not a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support import strategies
from support.decoded import expected, meaning, problems
from support.sampling import examples
from support.strategies import MessageSample

from dissectors.amqp10.composite import TypeTable
from dissectors.amqp10.message import BATCH_FORMAT, DURABLE, OPTED, RESERVED, Message, Section
from dissectors.amqp10.messaging import Header, Properties
from dissectors.amqp10.values import Described, Map, Raw, Symbol, UInt, ULong
from dissectors.limits import MAX_PROBLEMS, MAX_VALUES


def message(octets: bytes, *, format: int = 0, complete: bool = True) -> Message:
    return Message(format, [octets], len(octets), complete)


def names(decoded: Message) -> list[str]:
    return [section.name for section in decoded.sections()]


def found(decoded: Message) -> list[tuple[str, int, str]]:
    decoded.sections()
    return problems(decoded.problems)


FULL: dict[str, bytes] = {
    "header": amqp.header(durable=True, priority=4, delivery_count=0),
    "delivery-annotations": amqp.delivery_annotations([("x-opt-a", amqp.uint(1)), (amqp.ulong(7), None)]),
    "message-annotations": amqp.message_annotations([("x-opt-b", amqp.list_([]))]),
    "properties": amqp.properties(message_id="id", to="queue", user_id=b"me"),
    "application-properties": amqp.application_properties([("key", "value"), ("n", amqp.long(-1))]),
    "data": amqp.data(b"\x00\x01\x02"),
    "footer": amqp.footer([("x-opt-hash", amqp.binary(b"h"))]),
}


def test_all_sections_in_order() -> None:
    octets = b"".join(FULL.values())
    decoded = message(octets)
    sections = decoded.sections()
    assert [section.name for section in sections] == list(FULL)
    offset = 0
    for section, encoded in zip(sections, FULL.values(), strict=True):
        assert (section.offset, section.size) == (offset, len(encoded))
        offset += len(encoded)
    values = {section.name: section.value for section in sections}
    assert isinstance(values["header"], Header)
    assert (values["header"].durable, values["header"].priority, values["header"].ttl) == (True, 4, None)
    assert values["delivery-annotations"] == Map([(Symbol("x-opt-a"), UInt(1)), (ULong(7), None)])
    assert isinstance(values["properties"], Properties)
    assert (values["properties"].message_id, values["properties"].to) == ("id", "queue")
    assert values["application-properties"] == Map([("key", "value"), ("n", -1)])
    assert values["data"] == b"\x00\x01\x02"
    assert decoded.problems == []
    assert repr(sections[0]) == f"<Section header at 0+{len(FULL['header'])}>"


BODIES: list[tuple[bytes, str, object]] = [
    (amqp.data(b""), "data", b""),
    (amqp.data(b"x" * 300), "data", b"x" * 300),
    (amqp.amqp_sequence([None, amqp.uint(1)]), "amqp-sequence", [None, 1]),
    (amqp.amqp_sequence([]), "amqp-sequence", []),
    (amqp.amqp_value(None), "amqp-value", None),
    (amqp.amqp_value("text"), "amqp-value", "text"),
    (amqp.amqp_value(amqp.map_([("k", None)])), "amqp-value", Map([("k", None)])),
    (amqp.amqp_value(amqp.described("x:y", None)), "amqp-value", Described("x:y", None)),
]


@pytest.mark.parametrize(("octets", "name", "value"), BODIES)
def test_body(octets: bytes, name: str, value: object) -> None:
    decoded = message(octets)
    (section,) = decoded.sections()
    assert (section.name, section.value) == (name, value)
    assert decoded.problems == []


@pytest.mark.parametrize("form", ["small", "full", "symbol", "symbol32"])
@pytest.mark.parametrize("name", amqp.SECTIONS)
def test_descriptors_in_every_form(name: str, form: Any) -> None:
    wrapped = {"data": amqp.binary(b"x"), "amqp-value": amqp.null()}.get(name, amqp.list_([]))
    if name.endswith("annotations") or name in ("application-properties", "footer"):
        wrapped = amqp.map_([])
    decoded = message(amqp.section(name, wrapped, form) + amqp.section(name, wrapped, form))
    assert names(decoded) == [name, name]
    assert decoded.problems == []


def test_parts_are_joined_even_within_a_section() -> None:
    octets = b"".join(FULL.values())
    for size in (1, 2, 7):
        parts = [octets[at : at + size] for at in range(0, len(octets), size)]
        decoded = Message(0, parts, len(octets), True)
        assert names(decoded) == list(FULL)
        assert decoded.octets == octets
        assert decoded.problems == []


def test_no_octets() -> None:
    decoded = Message(0, [], 0, True)
    assert decoded.sections() == []
    assert decoded.octets == b""
    assert message(b"").sections() == []


@settings(max_examples=examples(100))
@given(strategies.messages())
def test_what_was_encoded_is_decoded(sample: MessageSample) -> None:
    decoded = message(sample.octets)
    sections = [(section.name, meaning(section.value)) for section in decoded.sections()]
    assert sections == [(name, expected(drawn)) for name, drawn in sample.sections]
    assert decoded.problems == []
    assert sum(int(section.size) for section in decoded.sections()) == len(sample.octets)


# ---- other formats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [1, 256, BATCH_FORMAT - 1, BATCH_FORMAT + 1, 2**32 - 1])
def test_another_format_is_opaque(format: int) -> None:
    decoded = message(b"\x00\x53\x75\xa0\x01x" + b"\xff\xff", format=format)
    assert decoded.sections() == []
    assert decoded.problems == []
    assert decoded.batch() == []
    assert decoded.octets == b"\x00\x53\x75\xa0\x01x\xff\xff"
    assert decoded.message_format == format


def test_batch() -> None:
    one = amqp.properties(message_id="1") + amqp.data(b"one")
    two = amqp.amqp_value("two")
    octets = (
        amqp.message_annotations([("x-opt-partition-key", "p")]) + amqp.data(one) + amqp.data(two, "widest")
    )
    decoded = message(octets, format=0x80013700)
    assert names(decoded) == ["message-annotations", "data", "data"]
    inner = decoded.batch()
    assert [names(item) for item in inner] == [["properties", "data"], ["amqp-value"]]
    assert [(item.message_format, item.complete, item.size) for item in inner] == [
        (0, True, len(one)),
        (0, True, len(two)),
    ]
    assert decoded.problems == []
    assert message(octets).batch() == []


# ---- what is wrong ----------------------------------------------------------------------------------------

AFTER = amqp.data(b"after")


@pytest.mark.parametrize(
    ("octets", "code", "at", "path"),
    [
        (amqp.section("data", amqp.string("x")), "M-SECT-TYPE", 0, "data"),
        (amqp.section("data", amqp.list_([])), "M-SECT-TYPE", 0, "data"),
        (amqp.section("amqp-sequence", amqp.map_([])), "M-SECT-TYPE", 0, "amqp-sequence"),
        (amqp.section("amqp-sequence", amqp.null()), "M-SECT-TYPE", 0, "amqp-sequence"),
        (amqp.section("footer", amqp.list_([])), "M-SECT-TYPE", 0, "footer"),
        (
            amqp.section("application-properties", amqp.list_([amqp.map_([(amqp.uint(1), None)])])),
            "M-SECT-TYPE",
            0,
            "application-properties",
        ),
        (
            amqp.section("message-annotations", amqp.described("x:y", amqp.map_([]))),
            "M-SECT-TYPE",
            0,
            "message-annotations",
        ),
        (amqp.section("header", amqp.map_([])), "T-COMP-LIST", 3, "header"),
        (amqp.section("properties", amqp.null()), "T-COMP-LIST", 3, "properties"),
        (
            amqp.delivery_annotations([(amqp.string("s"), None)]),
            "M-ANN-KEYTYPE",
            6,
            "delivery-annotations{key 0}",
        ),
        (
            amqp.message_annotations([("ok", None), (amqp.uint(1), None)]),
            "M-ANN-KEYTYPE",
            11,
            "message-annotations{key 1}",
        ),
        (amqp.footer([(amqp.null(), None)]), "M-ANN-KEYTYPE", 6, "footer{key 0}"),
        (
            amqp.application_properties([(amqp.symbol("s"), None)]),
            "M-AP-KEY",
            6,
            "application-properties{key 0}",
        ),
        (amqp.application_properties([("m", amqp.map_([]))]), "M-AP-VALUE", 9, "application-properties[m]"),
        (amqp.application_properties([("l", amqp.list_([]))]), "M-AP-VALUE", 9, "application-properties[l]"),
        (
            amqp.application_properties([("a", amqp.array([], b"\x40"))]),
            "M-AP-VALUE",
            9,
            "application-properties[a]",
        ),
        (
            amqp.application_properties([("k", amqp.raw("5607"))]),
            "T-BOOL-OCTET",
            9,
            "application-properties[k]",
        ),
        (amqp.amqp_value(amqp.list_([amqp.raw("5607")])), "T-BOOL-OCTET", 6, "amqp-value[0]"),
        (amqp.amqp_sequence([amqp.raw("5607")]), "T-BOOL-OCTET", 6, "amqp-sequence[0]"),
        (amqp.properties(message_id=amqp.uint(1)), "M-ID-TYPE", 6, "properties.message-id"),
        (amqp.properties(correlation_id=amqp.symbol("x")), "M-ID-TYPE", 11, "properties.correlation-id"),
        (amqp.properties(to=amqp.symbol("x")), "M-ADDR-TYPE", 8, "properties.to"),
        (amqp.properties(reply_to=amqp.uuid(bytes(16))), "M-ADDR-TYPE", 10, "properties.reply-to"),
        (amqp.header(priority=amqp.uint(4)), "T-COMP-TYPE", 7, "header.priority"),
        (amqp.header(extra=[None]), "T-COMP-EXTRA", 11, "header"),
        (amqp.described(amqp.ulong(0x79), amqp.map_([])), "M-SECT-KNOWN", 0, ""),
        (amqp.described(amqp.symbol("x:section"), amqp.map_([])), "M-SECT-KNOWN", 0, ""),
        (amqp.accepted(), "M-SECT-KNOWN", 0, ""),
        (amqp.string("text"), "M-PAYLOAD-WHOLE", 0, ""),
        (amqp.section("footer", amqp.raw("c1 08 03 a30161 40 a30162")), "T-MAP-EVEN", 3, "footer"),
        (amqp.raw("00 3f"), "T-CODE-UNKNOWN", 1, ""),
    ],
)
@pytest.mark.parametrize("form", ["small", "symbol"])
def test_one_fault_one_problem_and_the_neighbours_survive(
    octets: bytes, code: str, at: int, path: str, form: str
) -> None:
    before = amqp.header(durable=True)
    longer = 0
    if form == "symbol":
        name = next(
            (name for name, (number, _) in amqp.SECTIONS.items() if octets[:3] == bytes([0, 0x53, number])),
            "",
        )
        if not name:
            return
        symbolic = amqp.descriptor(0, amqp.SECTIONS[name][1], "symbol")
        octets = b"\x00" + symbolic + octets[3:]
        longer = len(symbolic) - 2
    decoded = message(before + octets + AFTER)
    at += len(before) + (longer if at else 0)
    assert found(decoded) == [(code, at, path)]
    sections = decoded.sections()
    assert sections[0].name == "header"
    assert sections[0].size == len(before)
    if octets != b"\x00\x3f":
        assert (sections[-1].name, sections[-1].value) == ("data", b"after")
        assert len(sections) == 3


def test_header_that_is_no_list_is_still_the_header() -> None:
    (section,) = message(amqp.section("header", amqp.map_([]))).sections()
    assert (section.name, section.value) == ("header", Map([]))


def test_inner_maps_of_annotations_are_free() -> None:
    inner = amqp.map_([(amqp.uint(1), None)])
    decoded = message(amqp.message_annotations([("k", inner)]) + amqp.amqp_value(inner))
    assert found(decoded) == []


def test_octets_that_are_no_message_are_one_fault() -> None:
    text = b'{"json": "is no AMQP message", "but": "octets all the same", "A": ["B"]}'
    decoded = message(text)
    (section,) = decoded.sections()
    assert (section.name, section.value, section.size) == ("unknown", Raw(text), len(text))
    assert len(decoded.problems) == 1
    decoded = message(b"ABABABAB" * 100)
    assert [(item.name, item.size) for item in decoded.sections()] == [("unknown", 800)]
    assert found(decoded) == [("M-PAYLOAD-WHOLE", 0, "")]


def test_a_section_is_found_behind_a_value_that_is_none() -> None:
    decoded = message(amqp.uint(7) + AFTER)
    assert [(item.name, item.value) for item in decoded.sections()] == [("unknown", 7), ("data", b"after")]
    assert found(decoded) == [("M-PAYLOAD-WHOLE", 0, "")]


@pytest.mark.parametrize("octets", [*FULL.values(), *(octets for octets, _, _ in BODIES)])
def test_section_cut_at_any_octet(octets: bytes) -> None:
    before = amqp.header(durable=True)
    for size in range(1, len(octets)):
        decoded = message(before + octets[:size])
        assert [item[0] in ("T-SIZE-OVERRUN", "T-DESC-CTOR") for item in found(decoded)] == [True], size
        # Of a message that was not captured to its end, or not kept, that is no fault.
        decoded = message(before + octets[:size], complete=False)
        assert found(decoded) == []
        assert names(decoded)[0] == "header"


def test_what_is_wrong_in_the_part_that_was_captured_is_reported() -> None:
    octets = amqp.properties(message_id=amqp.uint(1), to="x") + amqp.data(b"content")
    assert found(message(octets[:-3], complete=False)) == [("M-ID-TYPE", 6, "properties.message-id")]


# ---- bounds -----------------------------------------------------------------------------------------------


def test_values_of_one_message_are_bounded_together() -> None:
    nulls = b"\xf0\0\0\0\x05\0\0\x10\x00\x40"
    octets = amqp.amqp_sequence([amqp.raw(nulls)] * 300, "widest") * 2
    decoded = message(octets)
    count = 0
    for section in decoded.sections():
        assert isinstance(section.value, (list, Raw))
        if isinstance(section.value, list):
            count += sum(len(getattr(item, "items", [])) for item in section.value)
    assert MAX_VALUES - 5000 < count <= MAX_VALUES
    assert {code for code, _, _ in found(decoded)} == {"limit"}
    assert len(decoded.problems) == 1


def test_problems_are_bounded() -> None:
    decoded = message(amqp.described(amqp.ulong(0x99), None) * 1000)
    assert len(decoded.sections()) == 1000
    assert len(decoded.problems) == MAX_PROBLEMS


def test_sections_are_decoded_once() -> None:
    decoded = message(AFTER)
    assert decoded.sections() is decoded.sections()
    other = message(amqp.header())
    assert [section.name for section in other.sections(TypeTable())] == ["header"]


@settings(max_examples=examples(200))
@given(st.binary(max_size=200), st.booleans(), st.sampled_from((0, BATCH_FORMAT, 5)))
def test_any_octets(octets: bytes, complete: bool, format: int) -> None:
    decoded = message(octets, format=format, complete=complete)
    check(decoded, octets)


@settings(max_examples=examples(40))
@given(strategies.messages(), st.data())
def test_mutated_messages(sample: MessageSample, data: st.DataObject) -> None:
    octets = bytearray(sample.octets)
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    check(message(bytes(octets)), bytes(octets))


def check(decoded: Message, octets: bytes) -> None:
    """Sections lie one behind the other, and end where the octets do."""
    offset = 0
    for section in decoded.sections():
        assert isinstance(section, Section)
        assert section.offset == offset
        assert section.size > 0
        offset += int(section.size)
    assert offset == (len(octets) if decoded.message_format in (0, BATCH_FORMAT) else 0)
    for inner in decoded.batch():
        inner.sections()


@pytest.mark.parametrize(
    ("before", "traits"),
    [
        (b"", 0),
        (amqp.header(durable=True), DURABLE),
        (amqp.header(durable=True, choice="widest"), DURABLE),
        (amqp.header(durable=False, priority=4), 0),
        (amqp.header(priority=4), 0),
        (amqp.header(), 0),
        (amqp.message_annotations({"x-opt-a": "b"}), OPTED),
        (amqp.delivery_annotations({"x-opt-a": "b", "x-opt-b": "c"}) + amqp.message_annotations({}), OPTED),
        (amqp.delivery_annotations({"x-opt-a": "b"}) + amqp.message_annotations({"x-opt": "c"}), 0),
        (amqp.delivery_annotations({"x-a": "b"}) + amqp.message_annotations({"x-opt-b": "c"}), 0),
        (
            amqp.header(durable=True) + amqp.message_annotations({"x-opt-a": "b", "a": "c"}),
            DURABLE | RESERVED,
        ),
        (amqp.message_annotations([(amqp.ulong(1), "b")]), RESERVED),
        (amqp.delivery_annotations({"rejected": amqp.error(condition="x:y")}), 0),
    ],
)
def test_what_a_message_asks_of_its_receiver(before: bytes, traits: int) -> None:
    """The same whether it can be seen at a glance, or has to be decoded."""
    assert message(before + amqp.data(b"x")).traits() == traits
    undescribed = amqp.amqp_value(amqp.described("x:y", None))
    assert message(before + undescribed).traits() == traits
