"""The test encoder against the specification's printed octets, against hand computed ones, and its XML."""

from __future__ import annotations

import uuid as uuid_module
import xml.etree.ElementTree as ET
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import support.amqp10_encode as e


def test_string_of_types_xml_section_encodings() -> None:
    assert e.string("Hello Glorious Messaging World") == b"\xa1\x1eHello Glorious Messaging World"


def test_described_url_of_types_xml_section_encodings() -> None:
    url = e.described(e.string("URL"), e.string("http://example.org/hello-world"))
    assert url == b"\x00\xa1\x03URL\xa1\x1ehttp://example.org/hello-world"
    assert url[: url.constructor] == b"\x00\xa1\x03URL\xa1"


def test_book_of_types_xml_section_composite_types() -> None:
    authors = e.array([e.string("Rob J. Godfrey"), e.string("Rafael H. Schloming")])
    assert authors == b"\xe0\x25\x02\xa1\x0eRob J. Godfrey\x13Rafael H. Schloming"
    book = e.described("example:book:list", e.list_([e.string("AMQP for & by Dummies"), authors, None]))
    # The picture prints 0x40 as the list's size: count (1) + title (23) + authors (39) + null (1) is 64.
    assert (
        book == b"\x00\xa3\x11example:book:list\xc0\x40\x03\xa1\x15AMQP for & by Dummies" + authors + b"\x40"
    )


def test_timestamp_of_types_xml() -> None:
    assert e.timestamp(1311704463521) == bytes.fromhex("83 0000 0131 67ad b8a1")


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (e.null(), "40"),
        (e.boolean(True), "41"),
        (e.boolean(False), "42"),
        (e.boolean(True, "widest"), "5601"),
        (e.boolean(False, 0x56), "5600"),
        (e.ubyte(255), "50ff"),
        (e.ushort(258), "600102"),
        (e.uint(0), "43"),
        (e.uint(0, 0x52), "5200"),
        (e.uint(0, "widest"), "7000000000"),
        (e.uint(255), "52ff"),
        (e.uint(256), "7000000100"),
        (e.ulong(0), "44"),
        (e.ulong(16), "5310"),
        (e.ulong(16, 0x80), "800000000000000010"),
        (e.ulong(2**64 - 1), "80ffffffffffffffff"),
        (e.byte(-1), "51ff"),
        (e.short(-2), "61fffe"),
        (e.int_(-128), "5480"),
        (e.int_(128), "7100000080"),
        (e.int_(-1, "widest"), "71ffffffff"),
        (e.long(127), "557f"),
        (e.long(-129), "81ffffffffffffff7f"),
        (e.float_(-2.0), "72c0000000"),
        (e.double(0.5), "823fe0000000000000"),
        (e.char("€"), "73000020ac"),
        (e.char(0xD800), "730000d800"),
        (e.timestamp(-1), "83ffffffffffffffff"),
        (
            e.uuid(uuid_module.UUID("00112233-4455-6677-8899-aabbccddeeff")),
            "9800112233445566778899aabbccddeeff",
        ),
        (e.binary(b""), "a000"),
        (e.binary(b"\x01\x02"), "a0020102"),
        (e.binary(b"\x01", "widest"), "b00000000101"),
        (e.binary(b"\x01", size=9), "a00901"),
        (e.string("é"), "a102c3a9"),
        (e.string(b"\xff"), "a101ff"),
        (e.string("a", 0xB1), "b10000000161"),
        (e.symbol("a"), "a30161"),
        (e.symbol("a", 0xB3), "b30000000161"),
        (e.list_([]), "45"),
        (e.list_([], 0xC0), "c00100"),
        (e.list_([], "widest"), "d00000000400000000"),
        (e.list_([None, True, "a"]), "c006034041a10161"),
        (e.list_([e.uint(7)], "widest"), "d000000006000000015207"),
        (e.list_([None], count=3), "c0020340"),
        (e.list_([None], size=200), "c0c80140"),
        (e.map_([]), "c10100"),
        (e.map_([("a", None), ("a", True)]), "c10904a1016140a1016141"),
        (e.map_({"a": None}, "widest"), "d10000000800000002a1016140"),
        (e.array([e.uint(1, 0x70), e.uint(2, 0x70)]), "e00a02700000000100000002"),
        (e.array([], b"\xa3"), "e00200a3"),
        (e.array([], b"\xa3", "widest"), "f00000000500000000a3"),
        (e.array([e.null(), e.null()]), "e0020240"),
        (e.array([b"\x05"], b"\x52"), "e003015205"),
        (e.array_of("uint", [0, 0]), "e0020243"),
        (e.array_of("uint", [0, 5]), "e00402520005"),
        (e.array_of("uint", [0, 256]), "e00a02700000000000000100"),
        (e.array_of("boolean", [True, False]), "e00402560100"),
        (e.array_of("symbol", ["a", "bc"]), "e00702a3016102" + "6263"),
        (e.array_of("symbol", ["a"], "widest"), "f00000000a00000001b30000000161"),
        (e.described(0x24, e.list_([])), "00532445"),
        (e.described("a:b", e.null()), "00a303613a6240"),
    ],
)
def test_primitive_octets(octets: bytes, expected: str) -> None:
    assert octets.hex() == expected


def test_list8_holds_no_more_than_255_octets_after_its_size() -> None:
    # 254 nulls and the count are 255 octets: the most that list8 can say.
    assert e.list_([None] * 254)[:3] == b"\xc0\xff\xfe"
    assert e.list_([None] * 255)[:9] == b"\xd0\x00\x00\x01\x03\x00\x00\x00\xff"


def test_array_of_described_values_and_of_arrays() -> None:
    described = e.array([e.described("x:y", e.string("a")), e.described("x:y", e.string("b"))])
    assert described.hex() == "e00c02" + "00a303783a79a1" + "0161" + "0162"
    nested = e.array([e.array_of("uint", [1]), e.array_of("uint", [2])])
    assert nested.hex() == "e00a02e0" + "03015201" + "03015202"
    assert nested.constructor == 1
    lists = e.array([e.accepted(choice=0xC0), e.accepted(choice=0xC0)])
    assert lists.hex() == "e00902" + "005324c0" + "0100" + "0100"


def test_array_refuses_items_of_two_constructors() -> None:
    with pytest.raises(ValueError, match="constructor"):
        e.array([e.uint(0), e.uint(1)])


# Exponent bits (bias) and coefficient bits: decimal32 8 (101) and 23, decimal64 10 (398) and 53, decimal128
# 14 (6176) and 113; the sign is one bit.
@pytest.mark.parametrize(
    ("encoder", "number", "pattern"),
    [
        (e.decimal32, "0E-101", "00000000"),
        (e.decimal32, "1", "32800001"),  # 101 << 23 | 1
        (e.decimal32, "-7.5", "b200004b"),  # sign, 100 << 23 | 75
        (e.decimal32, "8388607", "32ffffff"),  # the largest coefficient of 23 bits
        (e.decimal32, "8388608", "6ca00000"),  # 11 in front, 101 << 21, the rest 0
        (e.decimal32, "9999999", "6cb8967f"),  # 0x98967f = 100 11000 1001 0110 0111 1111
        (e.decimal32, "9999999E+90", "77f8967f"),
        (e.decimal32, "Infinity", "78000000"),
        (e.decimal32, "-Infinity", "f8000000"),
        (e.decimal32, "NaN", "7c000000"),
        (e.decimal32, "sNaN", "7e000000"),
        (e.decimal64, "1", "31c0000000000001"),
        (e.decimal64, "9007199254740991", "31dfffffffffffff"),
        (e.decimal64, "9007199254740992", "6c70000000000000"),
        (e.decimal64, "9999999999999999", "6c7386f26fc0ffff"),
        (e.decimal64, "-Infinity", "f800000000000000"),
        (e.decimal128, "1", "3040" + "00" * 13 + "01"),
        (e.decimal128, "0.1", "303e" + "00" * 13 + "01"),
        (e.decimal128, "9" * 34, "3041ed09bead87c0378d8e63ffffffff"),
        (e.decimal128, "NaN", "7c" + "00" * 15),
    ],
)
def test_decimal_patterns(encoder: Callable[[Decimal], bytes], number: str, pattern: str) -> None:
    assert encoder(Decimal(number))[1:].hex() == pattern


@pytest.mark.parametrize("number", ["10000000", "1E+91", "1E-102"])
def test_a_decimal_that_would_need_rounding_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        e.decimal32(Decimal(number))


def test_composite_fields_stand_in_order_and_trailing_nulls_are_left_off() -> None:
    transfer = e.transfer(more=True, handle=0, delivery_tag=b"t")
    assert transfer.hex() == "005314" + "c00906" + "43" + "40" + "a00174" + "40" + "40" + "41"
    kept = e.end(keep_nulls=True)
    assert kept.hex() == "005317c0020140"
    assert e.end().hex() == "00531745"
    assert e.end(extra=[e.uint(5)]).hex() == "005317c004024" + "05205"


def test_composite_descriptor_forms_and_widest() -> None:
    assert e.accepted(descriptor_form="full").hex() == "0080000000000000002445"
    assert e.accepted(descriptor_form="symbol") == b"\x00\xa3\x12amqp:accepted:list\x45"
    assert e.accepted(descriptor_form="symbol32") == b"\x00\xb3\x00\x00\x00\x12amqp:accepted:list\x45"
    widest = e.disposition(role=e.RECEIVER, first=1, choice="widest")
    assert widest.hex() == "005315" + "d00000000b00000002" + "5601" + "7000000001"


def test_composite_fields_of_every_kind() -> None:
    assert e.attach(unsettled={b"t": e.accepted()}) == (
        b"\x00\x53\x12\xc0\x12\x08" + b"\x40" * 7 + b"\xc1\x08\x02\xa0\x01t\x00\x53\x24\x45"
    )
    assert e.attach(name="n", role=e.RECEIVER) == b"\x00\x53\x12\xc0\x06\x03\xa1\x01n\x40\x41"
    assert e.coordinator(capabilities="x") == b"\x00\x53\x30\xc0\x04\x01\xa3\x01x"
    assert e.coordinator(capabilities=["x"]) == b"\x00\x53\x30\xc0\x07\x01\xe0\x04\x01\xa3\x01x"
    assert e.properties(message_id=1) == b"\x00\x53\x73\xc0\x03\x01\x53\x01"
    assert e.properties(message_id=b"\x01", to="q") == b"\x00\x53\x73\xc0\x08\x03\xa0\x01\x01\x40\xa1\x01q"
    assert (
        e.error(condition="c", info={"k": True})
        == b"\x00\x53\x1d\xc0\x0c\x03\xa3\x01c\x40\xc1\x05\x02\xa3\x01k\x41"
    )
    assert e.flow(next_incoming_id=e.raw("3f")) == b"\x00\x53\x13\xc0\x02\x01\x3f"
    assert e.flow(handle=b"\x40\x40") == b"\x00\x53\x13\xc0\x07\x05\x40\x40\x40\x40\x40\x40"


def test_composite_refuses_a_field_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="no field"):
        e.transfer(handel=0)


def test_sections() -> None:
    assert e.data(b"x").hex() == "005375a00178"
    assert e.amqp_value("x").hex() == "005377a10178"
    assert e.amqp_sequence([True]).hex() == "005376c0020141"
    assert e.message_annotations({"k": None}).hex() == "005372c10502a3016b40"
    assert e.application_properties({"k": None}).hex() == "005374c10502a1016b40"
    assert e.header(durable=True, priority=4).hex() == "005370c004024150" + "04"
    assert e.footer({}, "symbol") == b"\x00\xa3\x0famqp:footer:map\xc1\x01\x00"


def test_frames() -> None:
    assert e.frame().hex() == "0000000802000000"
    assert e.frame(e.end(), channel=258).hex() == "0000000c02000102" + "00531745"
    assert (
        e.frame(e.end(), b"\xff", extended=b"abcd").hex()
        == "0000001103000000" + "61626364" + "00531745" + "ff"
    )
    assert e.frame(size=7, doff=1).hex() == "0000000701000000"
    assert e.sasl_frame(e.sasl_outcome(code=0)).hex() == "0000001002010000" + "005344c0030150" + "00"
    assert e.AMQP_HEADER + e.TLS_HEADER + e.SASL_HEADER == b"AMQP\0\1\0\0AMQP\2\1\0\0AMQP\3\1\0\0"


@pytest.mark.parametrize("limit", [64, 100, 512, 4096])
def test_transfer_frames_carry_the_whole_message_within_the_limit(limit: int) -> None:
    message = e.data(bytes(range(256)) * 3)
    frames = e.transfer_frames(
        message, limit, channel=1, handle=2, delivery_id=3, delivery_tag=b"t", settled=True
    )
    assert all(len(frame) <= limit for frame in frames)
    payload = b""
    for number, frame in enumerate(frames):
        more = number + 1 < len(frames)
        named: dict[str, Any] = (
            {"delivery_id": 3, "delivery_tag": b"t", "settled": True} if number == 0 else {}
        )
        performative = e.transfer(handle=2, more=True if more else None, **named)
        assert frame[8:].startswith(performative)
        payload += frame[8 + len(performative) :]
        assert not more or len(frame) == limit
    assert payload == message


# ---- the table of composites against the specification's XML ----------------------------------------------

_XML = Path(__file__).parents[2] / "dissectors" / "spec"
_LOOSE = {"*", "message-id"}  # kinds that say more or less than the XML's type


def _specified() -> dict[str, tuple[int, list[tuple[str, str]]]]:
    """The composites of the XML: descriptor and fields, with types followed down to the primitive."""
    sources: dict[str, str] = {}
    composites: dict[str, tuple[int, list[tuple[str, str]]]] = {}
    types = []
    for name in ("transport", "messaging", "transactions", "security"):
        [path] = _XML.rglob(f"{name}.xml")
        types += [t for t in ET.parse(path).iter() if t.tag.rpartition("}")[2] == "type"]
    for t in types:
        if t.get("class") == "restricted":
            sources[t.attrib["name"]] = t.attrib["source"]
    for t in types:
        if t.get("class") != "composite":
            continue
        children = {
            kind: [c for c in t if c.tag.rpartition("}")[2] == kind] for kind in ("descriptor", "field")
        }
        assert children["descriptor"][0].get("name") == f"amqp:{t.get('name')}:list"
        high, low = (int(half, 16) for half in children["descriptor"][0].attrib["code"].split(":"))
        fields = []
        for field in children["field"]:
            kind = field.attrib["type"]
            while kind in sources and kind != "fields":
                kind = sources[kind]
            fields.append((field.attrib["name"], "symbols" if field.get("multiple") else kind))
        composites[t.attrib["name"]] = (high << 32 | low, fields)
    return composites


def test_composites_agree_with_the_specification() -> None:
    specified = _specified()
    assert set(e.COMPOSITES) == set(specified)
    for name, (number, fields) in e.COMPOSITES.items():
        expected_number, expected = specified[name]
        assert number == expected_number, name
        assert [field for field, _ in fields] == [field for field, _ in expected], name
        for (field, kind), (_, kind_of_xml) in zip(fields, expected, strict=True):
            if kind_of_xml == "error":
                kind_of_xml = "*"
            if kind_of_xml == "*" and kind not in _LOOSE:
                assert (kind, field) == ("binary", "txn-id"), name
            elif kind_of_xml == "map":
                assert (field, kind) in {("unsettled", "unsettled"), ("filter", "fields")}, name
            elif kind not in _LOOSE:
                assert kind == kind_of_xml, (name, field)
