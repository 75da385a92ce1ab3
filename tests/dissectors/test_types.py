"""Every primitive encoding, compound and array of types.xml in octets written by hand; ways to be wrong."""

from __future__ import annotations

import math
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support import strategies
from support.decoded import expected, meaning, problems, read_value
from support.sampling import examples
from support.strategies import Sample

from dissectors.amqp10.decimals import Decimal32
from dissectors.amqp10.types import FORMAT_CODES, ValueReader, type_name
from dissectors.amqp10.values import (
    Array,
    Byte,
    Char,
    Described,
    Float,
    Int,
    Long,
    Map,
    Raw,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from dissectors.limits import MAX_DEPTH, MAX_EMPTY_ELEMENTS, MAX_PROBLEMS, MAX_VALUES

UUID = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")

# octets, value, type: each encoding of types.xml with its extreme values.
PRIMITIVES: list[tuple[str, object, str]] = [
    ("40", None, "null"),
    ("41", True, "boolean"),
    ("42", False, "boolean"),
    ("56 00", False, "boolean"),
    ("56 01", True, "boolean"),
    ("50 00", UByte(0), "ubyte"),
    ("50 ff", UByte(255), "ubyte"),
    ("60 0000", UShort(0), "ushort"),
    ("60 ffff", UShort(65535), "ushort"),
    ("60 0102", UShort(258), "ushort"),
    ("70 00000000", UInt(0), "uint"),
    ("70 80000000", UInt(2**31), "uint"),
    ("70 ffffffff", UInt(2**32 - 1), "uint"),
    ("52 00", UInt(0), "uint"),
    ("52 ff", UInt(255), "uint"),
    ("43", UInt(0), "uint"),
    ("80 0000000000000000", ULong(0), "ulong"),
    ("80 8000000000000000", ULong(2**63), "ulong"),
    ("80 ffffffffffffffff", ULong(2**64 - 1), "ulong"),
    ("80 0102030405060708", ULong(0x0102030405060708), "ulong"),
    ("53 ff", ULong(255), "ulong"),
    ("44", ULong(0), "ulong"),
    ("51 7f", Byte(127), "byte"),
    ("51 80", Byte(-128), "byte"),
    ("51 ff", Byte(-1), "byte"),
    ("61 7fff", Short(32767), "short"),
    ("61 8000", Short(-32768), "short"),
    ("71 7fffffff", Int(2**31 - 1), "int"),
    ("71 80000000", Int(-(2**31)), "int"),
    ("54 7f", Int(127), "int"),
    ("54 80", Int(-128), "int"),
    ("81 7fffffffffffffff", Long(2**63 - 1), "long"),
    ("81 8000000000000000", Long(-(2**63)), "long"),
    ("55 7f", Long(127), "long"),
    ("55 80", Long(-128), "long"),
    ("72 3fc00000", Float(1.5), "float"),
    ("72 80000000", Float(-0.0), "float"),
    ("72 00000001", Float(2.0**-149), "float"),
    ("72 7f7fffff", Float(3.4028234663852886e38), "float"),
    ("72 7f800000", Float(math.inf), "float"),
    ("82 3ff8000000000000", 1.5, "double"),
    ("82 0000000000000001", 5e-324, "double"),
    ("82 fff0000000000000", -math.inf, "double"),
    ("73 00000041", Char("A"), "char"),
    ("73 00000000", Char("\0"), "char"),
    ("73 0000d7ff", Char("\ud7ff"), "char"),
    ("73 0000e000", Char("\ue000"), "char"),
    ("73 0010ffff", Char("\U0010ffff"), "char"),
    ("83 0000000000000000", Timestamp(0), "timestamp"),
    ("83 ffffffffffffffff", Timestamp(-1), "timestamp"),
    ("83 8000000000000000", Timestamp(-(2**63)), "timestamp"),
    ("83 7fffffffffffffff", Timestamp(2**63 - 1), "timestamp"),
    ("83 0000013167adb8a1", Timestamp(1311704463521), "timestamp"),  # 2011-07-26T18:21:03.521Z
    ("98 f81d4fae7dec11d0a76500a0c91e6bf6", UUID, "uuid"),
    ("a0 00", b"", "binary"),
    ("a0 03 00ff41", b"\x00\xffA", "binary"),
    ("b0 00000000", b"", "binary"),
    ("b0 00000002 4142", b"AB", "binary"),
    ("a1 00", "", "string"),
    ("a1 04 f09f9880", "\U0001f600", "string"),
    ("a1 01 00", "\0", "string"),
    ("b1 00000002 c3a9", "é", "string"),
    ("a1 04 41efbbbf", "A\ufeff", "string"),  # a byte order mark is none behind the first character
    ("a3 00", Symbol(""), "symbol"),
    ("a3 01 7f", Symbol("\x7f"), "symbol"),
    ("b3 00000003 613a62", Symbol("a:b"), "symbol"),
    ("45", [], "list"),
    ("c0 01 00", [], "list"),
    ("c0 03 02 40 41", [None, True], "list"),
    ("d0 00000004 00000000", [], "list"),
    ("d0 00000006 00000001 5207", [UInt(7)], "list"),
    ("c1 01 00", Map([]), "map"),
    ("c1 06 02 a3 01 61 54 ff", Map([(Symbol("a"), Int(-1))]), "map"),
    ("d1 00000004 00000000", Map([]), "map"),
    ("d1 00000006 00000002 4041", Map([(None, True)]), "map"),
    ("e0 02 00 a3", Array("symbol", [], 0), "array"),
    ("e0 04 02 52 0102", Array("uint", [UInt(1), UInt(2)], 2), "array"),
    ("f0 00000007 00000001 61 8000", Array("short", [Short(-32768)], 1), "array"),
    ("f0 00000005 00000003 41", Array("boolean", [True, True, True], 3), "array"),
]


def exactly(value: object) -> object:
    """A value with the classes of all its parts: UInt(1) == 1, and 0.0 == -0.0, but they are not the same."""
    if isinstance(value, (list, Map, Array)):
        return meaning(value)
    if isinstance(value, float):
        return type(value), struct.pack(">d", value)
    return type(value), value


@pytest.mark.parametrize(("octets", "value", "name"), PRIMITIVES)
def test_primitive(octets: str, value: object, name: str) -> None:
    data = bytes.fromhex(octets)
    decoded, reader = read_value(data + b"\x41")
    assert exactly(decoded) == exactly(value)
    assert type_name(decoded) == name
    assert reader.pos == len(data)
    assert reader.problems == []


def test_the_table_has_every_encoding() -> None:
    assert {bytes.fromhex(octets)[0] for octets, _, _ in PRIMITIVES} | {0x74, 0x84, 0x94} == set(FORMAT_CODES)


def test_nan_keeps_its_sign_and_payload() -> None:
    decoded, _ = read_value(bytes.fromhex("82 fff8000000000123"))
    assert isinstance(decoded, float)
    assert struct.pack(">d", decoded) == bytes.fromhex("fff8000000000123")
    decoded, _ = read_value(bytes.fromhex("72 7fc00123"))
    assert type(decoded) is Float
    assert struct.pack(">f", decoded) == bytes.fromhex("7fc00123")


# A value of each format code, its data behind the code.
DATA = {bytes.fromhex(octets)[0]: bytes.fromhex(octets)[1:] for octets, _, _ in PRIMITIVES} | {
    0x74: bytes.fromhex("32800001"),
    0x84: bytes.fromhex("31c0000000000001"),
    0x94: bytes.fromhex("3040000000000000 0000000000000001"),
}


@pytest.mark.parametrize("code", sorted(DATA))
@pytest.mark.parametrize("width", [1, 4])
def test_array_of_every_format_code(code: int, width: int) -> None:
    data = DATA[code]
    items = bytes([code]) + data * 3
    octets = (
        (0xE0 if width == 1 else 0xF0).to_bytes() + (width + len(items)).to_bytes(width) + (3).to_bytes(width)
    )
    decoded, reader = read_value(octets + items + b"\x42")
    alone, _ = read_value(bytes([code]) + data)
    assert isinstance(decoded, Array)
    assert [exactly(item) for item in decoded.items] == [exactly(alone)] * 3
    assert (decoded.element, decoded.count, decoded.descriptor) == (FORMAT_CODES[code], 3, None)
    assert reader.problems == []
    assert reader.value() is False


def test_array_of_described_values_keeps_the_descriptor_once() -> None:
    decoded, reader = read_value(bytes.fromhex("e0 0c 02 00 a3 03 78 3a 79 a1 01 61 01 62"))
    assert decoded == Array("string", ["a", "b"], 2, Symbol("x:y"))
    assert reader.problems == []


def test_array_of_values_described_twice() -> None:
    decoded, reader = read_value(bytes.fromhex("e0 08 01 00 5390 00 5391 42"))
    assert decoded == Array("boolean", [False], 1, Described(ULong(0x90), ULong(0x91)))
    assert reader.problems == []


def test_array_of_arrays_of_lists() -> None:
    # Two arrays, of two empty lists and of one list of one null.
    decoded, reader = read_value(bytes.fromhex("e0 0b 02 e0 020245 0501c0020140"))
    assert decoded == Array("array", [Array("list", [[], []], 2), Array("list", [[None]], 1)], 2)
    assert reader.problems == []


def test_array_whose_descriptor_is_described() -> None:
    decoded, _ = read_value(bytes.fromhex("e0 09 01 00 00 5301 a301 78 41"))
    assert decoded == Array("boolean", [True], 1, Described(ULong(1), Symbol("x")))


def test_map_keeps_order_and_duplicate_keys() -> None:
    decoded, reader = read_value(amqp.map_([("b", amqp.uint(1)), ("a", amqp.uint(2)), ("b", amqp.uint(3))]))
    assert isinstance(decoded, Map)
    assert decoded.pairs == [("b", 1), ("a", 2), ("b", 3)]
    assert decoded.get("b") == 1
    assert decoded.get("c", "none") == "none"
    assert list(decoded) == decoded.pairs
    assert len(decoded) == 3
    assert problems(reader.problems) == [("T-MAP-DUPKEY", 13, "{key 2}")]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("52 01", "70 00000001", True),  # one value in two widths
        ("52 00", "43", True),
        ("41", "56 01", True),
        ("a1 01 61", "b1 00000001 61", True),
        ("40", "40", True),
        ("52 01", "53 01", False),  # uint and ulong
        ("52 01", "54 01", False),
        ("a1 01 61", "a3 01 61", False),  # string and symbol
        ("a0 01 61", "a1 01 61", False),
        ("41", "52 01", False),  # Python says True == 1
        ("73 00000061", "a1 01 61", False),
        ("83 0000000000000001", "55 01", False),
        ("72 00000000", "72 80000000", False),  # 0.0 == -0.0, but they are not the same
        ("72 3f800000", "82 3ff0000000000000", False),
        ("74 32800001", "74 3200000a", False),  # 1 and 1.0
        ("74 32800001", "74 32800001", True),
        ("74 7e000001", "74 7e000002", False),  # signalling NaNs
        ("45", "45", True),
        ("c0 02 01 40", "c0 02 01 41", False),
        ("00 5390 40", "00 5390 40", True),
    ],
)
def test_which_keys_are_the_same(first: str, second: str, same: bool) -> None:
    one, other = amqp.raw(first), amqp.raw(second)
    _, reader = read_value(amqp.map_([(one, None), (other, None)]))
    wanted = [("T-MAP-DUPKEY", 3 + len(one) + 1, "{key 1}")] if same else []
    assert problems(reader.problems) == wanted


def test_keys_that_do_not_decode_are_not_called_the_same() -> None:
    bad = amqp.symbol(b"\xff")
    _, reader = read_value(amqp.map_([(bad, None), (bad, None)]))
    assert problems(reader.problems) == [("T-SYM-ASCII", 3, "{key 0}"), ("T-SYM-ASCII", 7, "{key 1}")]


def test_described_values_nest() -> None:
    octets = amqp.described(amqp.described(amqp.symbol("d"), "inner"), amqp.described(amqp.ulong(0x90), None))
    decoded, reader = read_value(octets)
    assert decoded == Described(Described(Symbol("d"), "inner"), Described(ULong(0x90), None))
    assert reader.problems == []
    assert reader.pos == len(octets)


@pytest.mark.parametrize("descriptor", ["40", "54 01", "a1 01 78", "c0 02 01 40", "a0 00"])
def test_any_value_may_be_a_descriptor(descriptor: str) -> None:
    alone, _ = read_value(bytes.fromhex(descriptor))
    decoded, reader = read_value(bytes.fromhex("00" + descriptor + "41"))
    assert decoded == Described(alone, True)
    assert reader.problems == []


@settings(max_examples=examples(300))
@given(strategies.values())
def test_what_was_encoded_is_decoded(sample: Sample) -> None:
    decoded, reader = read_value(sample.octets + b"\x41")
    assert meaning(decoded) == expected(sample.meaning)
    assert reader.problems == []
    assert reader.pos == len(sample.octets)


@settings(max_examples=examples(150))
@given(strategies.arrays())
def test_any_array_is_decoded(sample: Sample) -> None:
    decoded, reader = read_value(sample.octets)
    assert meaning(decoded) == expected(sample.meaning)
    assert reader.problems == []


# ---- what is wrong ----------------------------------------------------------------------------------------

# A list of three around the value, so that its neighbours are seen to survive: `c0 size 3 52 07 VALUE 52 08`.
AROUND = bytes.fromhex("5207"), bytes.fromhex("5208")


def between(octets: bytes) -> tuple[list[Any], ValueReader]:
    decoded, reader = read_value(amqp.list_([AROUND[0], octets, AROUND[1]]) + b"\x41")
    assert isinstance(decoded, list)
    return decoded, reader


UNASSIGNED = [code for code in range(0x40, 0x100) if code not in FORMAT_CODES]


@pytest.mark.parametrize("code", UNASSIGNED)
def test_unassigned_format_code_is_stepped_over_by_its_width(code: int) -> None:
    width = (0, 1, 2, 4, 8, 16)[(code >> 4) - 4] if code < 0xA0 else 0
    extension = b"\x00" if code & 0xF == 0xF else b""
    size = b""
    if code >= 0xA0:
        size = b"\x03" if (code >> 4) % 2 == 0 else b"\0\0\0\x03"
        width = 3
    octets = bytes([code]) + extension + size + b"z" * width
    decoded, reader = between(octets)
    assert decoded == [7, Raw(octets), 8]
    wanted = "T-CODE-UNKNOWN"
    if extension:
        wanted = "T-CODE-EXT"
    elif code in (0xA2, 0xB2):
        wanted = "T-STR-NO-UTF16"
    assert problems(reader.problems) == [(wanted, 5, "[1]")]
    assert reader.value() is True


@pytest.mark.parametrize("code", range(1, 0x40))
def test_format_code_of_no_known_width_ends_what_it_stands_in(code: int) -> None:
    decoded, reader = between(bytes([code]) + b"zz")
    assert decoded == [7, Raw(bytes([code]) + b"zz" + AROUND[1])]
    assert problems(reader.problems) == [("T-CODE-UNKNOWN", 5, "[1]")]
    assert reader.value() is True


@pytest.mark.parametrize("code", UNASSIGNED)
def test_unassigned_format_code_at_the_end_is_one_fault(code: int) -> None:
    decoded, reader = read_value(bytes([code]))
    assert decoded == Raw(bytes([code]))
    assert len(reader.problems) == 1
    assert reader.problems[0].code in ("T-CODE-UNKNOWN", "T-CODE-EXT", "T-STR-NO-UTF16")


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("56 02", "T-BOOL-OCTET"),
        ("56 ff", "T-BOOL-OCTET"),
        ("73 00110000", "T-CHAR-UTF32"),
        ("73 ffffffff", "T-CHAR-UTF32"),
        ("73 0000d800", "T-CHAR-UTF32"),
        ("73 0000dfff", "T-CHAR-UTF32"),
        ("a1 01 80", "T-STR-UTF8"),
        ("a1 02 c0af", "T-STR-UTF8"),  # overlong
        ("a1 03 eda080", "T-STR-UTF8"),  # a surrogate
        ("a1 04 f4908080", "T-STR-UTF8"),  # above U+10FFFF
        ("a1 01 c3", "T-STR-UTF8"),  # cut
        ("b1 00000001 ff", "T-STR-UTF8"),
        ("a3 01 80", "T-SYM-ASCII"),
        ("b3 00000002 c3a9", "T-SYM-ASCII"),
    ],
)
def test_value_that_does_not_decode_is_kept_as_it_is(octets: str, code: str) -> None:
    raw = bytes.fromhex(octets)
    decoded, reader = between(raw)
    assert decoded == [7, Raw(raw), 8]
    assert problems(reader.problems) == [(code, 5, "[1]")]


def test_byte_order_mark_is_reported_and_kept() -> None:
    decoded, reader = between(bytes.fromhex("a1 04 efbbbf41"))
    assert decoded == [7, "\ufeffA", 8]
    assert problems(reader.problems) == [("T-STR-NOBOM", 5, "[1]")]


def test_problem_says_where_in_the_string() -> None:
    _, reader = read_value(amqp.string(b"abc\xff"))
    assert reader.problems[0].reason == "octet 3 of the string is not valid UTF-8"


# A value, its first octets cut off at any place, is one fault; and a compound around it is not at fault.
CUT = [octets for octets, _, _ in PRIMITIVES] + [
    "74 32800001",
    "84 31c0000000000001",
    "94 3040000000000000 0000000000000001",
    "00 5390 a1 02 6162",
    "00 a3 03 613a62 c0 03 02 40 41",
    "e0 0c 02 00 a3 03 78 3a 79 a1 01 61 01 62",
    "c0 08 02 c0 03 02 40 41 5205",
]


@pytest.mark.parametrize("octets", CUT)
def test_value_cut_at_any_octet_is_one_fault(octets: str) -> None:
    whole = bytes.fromhex(octets)
    for size in range(1, len(whole)):
        decoded, reader = read_value(whole[:size])
        assert [found.code in ("T-SIZE-OVERRUN", "T-DESC-CTOR") for found in reader.problems] == [True], size
        # Of a described value it is the descriptor or what it describes that is cut.
        assert reader.problems[0].offset == 0 or whole[0] == 0
        assert reader.pos == size
        # In a list that claims no more than is there, it is the value that claims too much, at its place.
        decoded, reader = read_value(amqp.list_([AROUND[0], whole[:size]]) + b"\x41")
        assert isinstance(decoded, list)
        assert len(decoded) == 2
        assert [found.path for found in reader.problems] == ["[1]"], size
        assert reader.problems[0].offset == 5 or whole[0] == 0
        assert reader.value() is True


@pytest.mark.parametrize("octets", CUT)
def test_a_value_that_was_not_captured_whole_accuses_nobody(octets: str) -> None:
    whole = bytes.fromhex(octets)
    for size in range(1, len(whole)):
        reader = ValueReader(whole, 0, size, 0)
        reader.cut = True
        reader.value()
        assert reader.problems == []
        assert reader.pos == size


def test_nothing_where_a_value_should_be() -> None:
    decoded, reader = read_value(b"")
    assert decoded == Raw(b"")
    assert problems(reader.problems) == [("T-SIZE-OVERRUN", 0, "")]


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        # Nothing behind the 0x00; a descriptor, and nothing behind it.
        ("00", ("T-DESC-CTOR", 5, "[1]")),
        ("00 5390", ("T-DESC-CTOR", 5, "[1]")),
        ("00 a3 01 78", ("T-DESC-CTOR", 5, "[1]")),
        ("00 00 5390 5391", ("T-DESC-CTOR", 5, "[1]")),
        ("00 a3 05 78", ("T-SIZE-OVERRUN", 6, "[1]")),
        ("00 3f", ("T-CODE-UNKNOWN", 6, "[1]")),
    ],
)
def test_descriptor_that_is_none(octets: str, problem: tuple[str, int, str]) -> None:
    decoded, reader = read_value(amqp.list_([AROUND[0], bytes.fromhex(octets)]) + b"\x41")
    assert decoded == [7, Raw(bytes.fromhex(octets))]
    assert problems(reader.problems) == [problem]
    assert reader.value() is True


def test_what_a_bad_descriptor_describes_survives() -> None:
    decoded, reader = between(bytes.fromhex("00 a3 01 ff 5209"))
    assert decoded == [7, Described(Raw(b"\xa3\x01\xff"), UInt(9)), 8]
    assert problems(reader.problems) == [("T-SYM-ASCII", 6, "[1]")]


# Two items of each.
CONTENT = {"list": b"\x40\x41", "map": b"\x40\x41", "array": b"\x50\x09\x08"}


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(
    ("kind", "code"), [("list", "T-LIST-FIT"), ("map", "T-MAP-FIT"), ("array", "T-ARR-FIT")]
)
class TestSizeAndCount:
    """Size and count of a compound against what is in it: `VALUE` between two others in a list."""

    @staticmethod
    def compound(kind: str, width: int, size: int, count: int, content: bytes) -> bytes:
        first = {"list": 0xC0, "map": 0xC1, "array": 0xE0}[kind] + (0x10 if width == 4 else 0)
        return bytes([first]) + size.to_bytes(width) + count.to_bytes(width) + content

    def test_fits(self, kind: str, code: str, width: int) -> None:
        content = CONTENT[kind]
        decoded, reader = between(self.compound(kind, width, width + len(content), 2, content))
        assert reader.problems == []
        assert (decoded[0], decoded[2]) == (7, 8)

    def test_count_too_high(self, kind: str, code: str, width: int) -> None:
        content = CONTENT[kind]
        decoded, reader = between(self.compound(kind, width, width + len(content), 4, content))
        assert problems(reader.problems) == [(code, 5, "[1]")]
        assert (decoded[0], decoded[2]) == (7, 8)
        assert len(decoded[1]) == {"list": 2, "map": 1, "array": 2}[kind]

    def test_count_too_low(self, kind: str, code: str, width: int) -> None:
        content = CONTENT[kind] + {"list": b"\x42", "map": b"\x42\x42", "array": b"\x07"}[kind]
        decoded, reader = between(self.compound(kind, width, width + len(content), 2, content))
        assert problems(reader.problems) == [(code, 5, "[1]")]
        assert (decoded[0], decoded[2]) == (7, 8)
        assert len(decoded[1]) == {"list": 2, "map": 1, "array": 2}[kind]

    def test_size_beyond_what_it_stands_in(self, kind: str, code: str, width: int) -> None:
        content = CONTENT[kind]
        octets = self.compound(kind, width, width + len(content) + 1, 2, content)
        decoded, reader = read_value(amqp.list_([AROUND[0], octets]) + b"\x41")
        assert problems(reader.problems) == [("T-SIZE-OVERRUN", 5, "[1]")]
        assert isinstance(decoded, list)
        assert len(decoded[1]) == {"list": 2, "map": 1, "array": 2}[kind]
        assert reader.value() is True

    def test_size_without_room_for_the_count(self, kind: str, code: str, width: int) -> None:
        for size in range(width):
            # A count of zero, forgotten in the size: it is stepped over.
            decoded, reader = between(self.compound(kind, width, 0, 0, b""))
            assert problems(reader.problems) == [(code, 5, "[1]")]
            assert (decoded[0], decoded[2], len(decoded[1])) == (7, 8, 0)
            # No count at all: the next value stands where the size says.
            octets = bytes([{"list": 0xC0, "map": 0xC1, "array": 0xE0}[kind] + (0x10 if width == 4 else 0)])
            octets += size.to_bytes(width) + b"\x40" * size
            decoded, reader = between(octets + b"\x42\x42\x42\x42"[: 4 if width == 4 else 1])
            assert problems(reader.problems)[0] == (code, 5, "[1]")
            assert decoded[0] == 7
            assert decoded[2] is False


def test_odd_map() -> None:
    decoded, reader = between(bytes.fromhex("c1 04 03 40 41 42"))
    assert decoded == [7, Map([(None, True), (False, Raw(b""))]), 8]
    assert problems(reader.problems) == [("T-MAP-EVEN", 5, "[1]")]


@pytest.mark.parametrize(("size", "count", "code"), [(1, 0, "T-ARR-CTOR"), (1, 3, "T-ARR-CTOR")])
def test_array_without_constructor(size: int, count: int, code: str) -> None:
    decoded, reader = between(bytes([0xE0, size, count]))
    assert problems(reader.problems) == [(code, 5, "[1]")]
    assert decoded[2] == 8
    assert decoded[1].items == []


@pytest.mark.parametrize(
    ("octets", "code", "at"),
    [
        ("e0 04 01 3f 0000", "T-CODE-UNKNOWN", 8),
        ("e0 04 01 a2 0141", "T-STR-NO-UTF16", 8),
        ("e0 05 01 5f 000000", "T-CODE-EXT", 8),
        ("e0 02 01 00", "T-DESC-CTOR", 8),
        ("e0 04 01 00 5390", "T-DESC-CTOR", 8),
        ("e0 05 01 00 a305 41", "T-SIZE-OVERRUN", 9),
    ],
)
def test_array_with_a_bad_constructor(octets: str, code: str, at: int) -> None:
    decoded, reader = between(bytes.fromhex(octets))
    assert problems(reader.problems) == [(code, at, "[1]")]
    assert decoded[0] == 7
    assert decoded[2] == 8
    assert isinstance(decoded[1], Array)
    assert decoded[1].element == "undecodable value"


def test_bad_array_element_has_its_place() -> None:
    decoded, reader = between(bytes.fromhex("e0 07 03 a3 0161 01ff 00"))
    assert decoded[1] == Array("symbol", [Symbol("a"), Raw(b"\x01\xff"), Symbol("")], 3)
    assert problems(reader.problems) == [("T-SYM-ASCII", 11, "[1][1]")]


def test_paths_of_keys() -> None:
    bad = amqp.boolean(True, 0x56).replace(b"\x01", b"\x07")
    long = "k" * 65
    octets = amqp.map_(
        [
            (amqp.symbol("name"), bad),
            ("text", amqp.list_([bad])),
            (amqp.uint(5), bad),
            ("tab\t", bad),
            ("ümlaut", bad),
            (long, bad),
            (bad, None),
        ]
    )
    _, reader = read_value(octets)
    paths = ["[name]", "[text][0]", "[2]", "[3]", "[4]", "[5]", "{key 6}"]
    assert [found.path for found in reader.problems] == paths


def test_offsets_count_from_the_origin() -> None:
    octets = b"frame..." + bytes.fromhex("c0 04 02 40 5602")
    reader = ValueReader(octets, 8, len(octets), 3)
    reader.value()
    assert problems(reader.problems) == [("T-BOOL-OCTET", 9, "[1]")]


# ---- bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        b"\x00" * 10_000,
        b"\x00\x53\x90" * 10_000 + b"\x40",
        b"".join(b"\xd0" + (9 * left + 5).to_bytes(4) + b"\0\0\0\x01" for left in range(9_999, -1, -1))
        + b"\x40",
        b"".join(b"\xf0" + (9 * left + 5).to_bytes(4) + b"\0\0\0\x01" for left in range(9_999, -1, -1))
        + b"\x40",
        b"\xe0\xfe\x01" + b"\x00\x53\x90" * 84 + b"\x40",
    ],
    ids=["descriptors", "described", "lists", "arrays", "constructor"],
)
def test_depth_is_bounded_and_the_rest_is_kept(octets: bytes) -> None:
    decoded, reader = read_value(octets)
    assert [found.code for found in reader.problems] == ["limit"]
    assert reader.pos == len(octets)
    assert depth_of(decoded) <= MAX_DEPTH + 1
    assert MAX_VALUES - reader.budget <= 2 * MAX_DEPTH + 2


def depth_of(value: object) -> int:
    if isinstance(value, Described):
        return 1 + max(depth_of(value.descriptor), depth_of(value.value))
    if isinstance(value, Array):
        return 1 + max([depth_of(value.descriptor), *map(depth_of, value.items)])
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def test_a_legal_depth_is_decoded() -> None:
    octets = b"\x41"
    for _ in range(MAX_DEPTH):
        octets = amqp.list_([octets])
    _, reader = read_value(octets)
    assert reader.problems == []
    _, reader = read_value(amqp.list_([octets]))
    assert [found.code for found in reader.problems] == ["limit"]


def test_value_too_deep_is_stepped_over_and_its_neighbour_survives() -> None:
    octets = amqp.list_([amqp.list_([amqp.list_([]), "kept"], "widest"), "kept too"])
    reader = ValueReader(octets, 0, len(octets), 0)
    reader.depth = MAX_DEPTH - 2
    assert reader.value() == [[[], "kept"], "kept too"]
    reader = ValueReader(octets, 0, len(octets), 0)
    reader.depth = MAX_DEPTH - 1
    decoded = reader.value()
    assert isinstance(decoded, list)
    assert decoded[1] == "kept too"
    assert isinstance(decoded[0], Raw)
    assert problems(reader.problems) == [("limit", 3, "[0]")]


@pytest.mark.parametrize("code", [0x40, 0x41, 0x42, 0x43, 0x44, 0x45])
def test_array_of_four_billion_elements_of_no_octets(code: int) -> None:
    octets = b"\xf0\0\0\0\x05\xff\xff\xff\xff" + bytes([code]) + b"\x41"
    reader = ValueReader(octets, 0, len(octets), 0)
    decoded = reader.value()
    assert isinstance(decoded, Array)
    assert len(decoded.items) == MAX_EMPTY_ELEMENTS
    assert decoded.count == 2**32 - 1
    assert MAX_VALUES - reader.budget == MAX_EMPTY_ELEMENTS + 1
    assert problems(reader.problems) == [("limit", 0, "")]
    assert reader.value() is True


def test_all_nulls_within_the_bound_are_decoded() -> None:
    octets = b"\xf0\0\0\0\x05" + MAX_EMPTY_ELEMENTS.to_bytes(4) + b"\x40"
    decoded, reader = read_value(octets)
    assert decoded == Array("null", [None] * MAX_EMPTY_ELEMENTS, MAX_EMPTY_ELEMENTS)
    assert reader.problems == []


def test_arrays_of_arrays_of_nulls_use_up_the_budget_and_end() -> None:
    inner = b"\0\0\0\x05\xff\xff\xff\xff\x40"
    body = b"\xf0" + inner * 500
    octets = b"\xf0" + (4 + len(body)).to_bytes(4) + (500).to_bytes(4) + body
    reader = ValueReader(octets, 0, len(octets), 0, 10_000)
    decoded = reader.value()
    assert isinstance(decoded, Array)
    assert sum(len(item.items) for item in decoded.items if isinstance(item, Array)) <= 10_000
    assert reader.budget < 0
    assert reader.pos == len(octets)
    assert {found.code for found in reader.problems} == {"limit"}
    assert len(reader.problems) <= MAX_PROBLEMS


@pytest.mark.parametrize("code", [0xC0, 0xD0, 0xC1, 0xD1, 0xE0, 0xF0])
def test_count_far_above_what_is_there_costs_nothing(code: int) -> None:
    width = 4 if code & 0x10 else 1
    content = b"\x50\x09" if code >= 0xE0 else b"\x41\x42"
    octets = bytes([code]) + (width + 2).to_bytes(width) + b"\xfe" * width + content
    reader = ValueReader(octets, 0, len(octets), 0)
    reader.value()
    assert MAX_VALUES - reader.budget <= 3
    assert [found.code for found in reader.problems] in (["T-LIST-FIT"], ["T-MAP-FIT"], ["T-ARR-FIT"])


def test_values_are_bounded() -> None:
    octets = amqp.list_([amqp.null()] * 200, "widest") + b"\x41"
    reader = ValueReader(octets, 0, len(octets), 0, 101)
    decoded = reader.value()
    assert isinstance(decoded, list)
    assert decoded[:100] == [None] * 100
    assert problems(reader.problems) == [("limit", 9 + 100, "[100]")]
    assert reader.value() == Raw(b"\x41")


def test_problems_are_bounded() -> None:
    _, reader = read_value(amqp.list_([amqp.raw("56 07")] * 500, "widest"))
    assert len(reader.problems) == MAX_PROBLEMS


@settings(max_examples=examples(500))
@given(st.binary(max_size=200))
def test_any_octets_are_read_without_raising(octets: bytes) -> None:
    reader = ValueReader(octets, 0, len(octets), 0)
    while reader.pos < reader.end:
        start = reader.pos
        value = reader.value()
        repr(value)
        assert value == value or "nan" in repr(value).lower()
        assert start < reader.pos <= len(octets)
    assert (reader.depth, reader.path, reader.end) == (0, [], len(octets))
    for found in reader.problems:
        assert 0 <= found.offset <= len(octets)


@settings(max_examples=examples(300))
@given(strategies.values(), st.data())
def test_mutated_values_are_read_without_raising(sample: Sample, data: st.DataObject) -> None:
    octets = bytearray(sample.octets)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(octets) - 1))
        octets[at] = data.draw(st.sampled_from((0, 1, 0x40, 0x7F, 0x80, 0xC0, 0xD0, 0xE0, 0xF0, 0xFF)))
    reader = ValueReader(bytes(octets), 0, len(octets), 0)
    reader.value()
    assert (reader.depth, reader.path, reader.end) == (0, [], len(octets))


def test_equal_to_what_they_stand_for() -> None:
    assert Symbol("a") == "a"
    assert ULong(7) == 7
    assert Map([("a", 1)]) != Map([("a", 2)])
    assert Described(1, 2) != Described(1, 3)
    assert Raw(b"a") != Raw(b"b")
    assert Array("uint", [1], 1) != Array("uint", [1], 2)
    assert Decimal32("1") == 1


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (1311704463521, "2011-07-26T18:21:03.521Z"),  # the specification's own example
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62135596800000, "0001-01-01T00:00:00.000Z"),
        (-62135596800001, "-62135596800001ms"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "253402300800000ms"),
        (2**63 - 1, "9223372036854775807ms"),
        (-(2**63), "-9223372036854775808ms"),
    ],
)
def test_timestamp_as_text(milliseconds: int, text: str) -> None:
    assert Timestamp(milliseconds).iso() == text


# ---- descriptors and uuids that are odd ----


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("00 a3 03 78 3a 79 40", None),
        ("00 a3 05 78 3a 79 3a 7a 40", None),
        ("00 a3 01 78 40", "T-DESC-SYMFORM"),
        ("00 a3 02 3a 79 40", "T-DESC-SYMFORM"),
        ("00 a3 02 78 3a 40", "T-DESC-SYMFORM"),
        ("00 a3 00 40", "T-DESC-SYMFORM"),
        ("00 53 24 45", None),
        ("00 52 24 45", "T-DESC-RESERVED"),
        ("00 a1 03 78 3a 79 40", "T-DESC-RESERVED"),
        ("00 40 40", "T-DESC-RESERVED"),
        ("e0 06 01 00 52 24 54 01", "T-DESC-RESERVED"),
        ("00 ff", "T-CODE-EXT"),
        ("98 f81d4fae7dec11d0a76500a0c91e6bf6", None),
        ("98 00000000000000000000000000000000", None),
        ("98 ffffffffffffffffffffffffffffffff", None),
        ("98 f81d4fae7dec11d0276500a0c91e6bf6", "T-UUID-4122"),
        ("98 f81d4fae7decd011a76500a0c91e6bf6", "T-UUID-4122"),
        ("98 f81d4fae7decd090a76500a0c91e6bf6", "T-UUID-4122"),
        ("e0 22 02 98 f81d4fae7dec11d0a76500a0c91e6bf6 f81d4fae7dec11d0276500a0c91e6bf6", "T-UUID-4122"),
    ],
)
def test_descriptors_and_uuids_that_are_odd(octets: str, code: str | None) -> None:
    _, reader = between(bytes.fromhex(octets))
    assert [found.code for found in reader.problems] == ([] if code is None else [code])


def test_what_is_odd_everywhere_is_reported_once() -> None:
    _, reader = read_value(amqp.list_([amqp.raw("00 52 24 40")] * 3 + [amqp.uuid(b"\x01" * 16)] * 3))
    assert [found.code for found in reader.problems] == ["T-DESC-RESERVED", "T-UUID-4122"]
