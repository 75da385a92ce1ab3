"""Field tables in both dialects: every tag in octets written by hand, ways to be wrong, whatever else."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp
from support.decoded import problems
from support.sampling import examples

from dissectors.amqp091.decimals import Decimal
from dissectors.amqp091.tables import EITHER, PRINTED, RABBITMQ, FieldTable, sound_table
from dissectors.amqp091.values import (
    Amqp091Float,
    Amqp091Timestamp,
    ByteArray,
    FieldArray,
    LongInt,
    LongLongInt,
    LongLongUint,
    LongUint,
    Raw,
    ShortInt,
    ShortShortInt,
    ShortShortUint,
    ShortString,
    ShortUint,
    Table,
)
from dissectors.limits import MAX_DEPTH, MAX_PROBLEMS

# A value in octets, as RabbitMQ reads it, as the specification prints it; WRONG where there is no such tag.
WRONG = "no such tag"
BOTH = "the same in both"
VALUES: list[tuple[str, object, object]] = [
    ("74 00", False, BOTH),
    ("74 01", True, BOTH),
    ("62 80", ShortShortInt(-128), BOTH),
    ("62 7f", ShortShortInt(127), BOTH),
    ("42 ff", ShortShortUint(255), BOTH),
    ("73 8000", ShortInt(-32768), WRONG),
    ("73 02 6869", WRONG, ShortString("hi")),
    ("55 7fff", WRONG, ShortInt(32767)),
    ("55 ffff", WRONG, ShortInt(-1)),
    ("75 ffff", ShortUint(65535), BOTH),
    ("49 80000000", LongInt(-(2**31)), BOTH),
    ("49 7fffffff", LongInt(2**31 - 1), BOTH),
    ("69 ffffffff", LongUint(2**32 - 1), BOTH),
    ("6c ffffffffffffffff", LongLongInt(-1), LongLongUint(2**64 - 1)),
    ("4c 8000000000000000", LongLongInt(-(2**63)), BOTH),
    ("66 3fc00000", Amqp091Float(1.5), BOTH),
    ("64 3ff8000000000000", 1.5, BOTH),
    ("44 02 00003039", Decimal("123.45"), BOTH),
    ("44 00 ffffffff", Decimal("-1"), Decimal("4294967295")),
    ("44 ff 00000001", Decimal("1E-255"), BOTH),
    ("53 00000000", "", BOTH),
    ("53 00000003 c3a478", "äx", BOTH),
    ("53 00000002 ff00", b"\xff\0", BOTH),
    ("54 000000006553f280", Amqp091Timestamp(1700000384), BOTH),
    ("54 ffffffffffffffff", Amqp091Timestamp(2**64 - 1), BOTH),
    ("56", None, BOTH),
    ("78 00000002 6869", ByteArray(b"hi"), WRONG),
    ("41 00000000", FieldArray([]), BOTH),
    ("41 00000003 56 7401", FieldArray([None, True]), BOTH),
    ("46 00000000", Table([]), BOTH),
    ("46 00000004 01 61 74 01", Table([("a", True)]), BOTH),
]


def one(octets: str) -> FieldTable:
    return FieldTable(b"\x01k" + bytes.fromhex(octets))


def codes(table: FieldTable, dialect: int = RABBITMQ) -> list[str]:
    return [problem.code for problem in table.problems(dialect)]


@pytest.mark.parametrize(("octets", "rabbitmq", "printed"), VALUES, ids=lambda one: str(one)[:30])
def test_every_tag_in_both_dialects(octets: str, rabbitmq: object, printed: object) -> None:
    table = one(octets)
    for dialect, wanted in ((RABBITMQ, rabbitmq), (PRINTED, rabbitmq if printed is BOTH else printed)):
        if wanted == WRONG:
            assert not table.fits(dialect)
            continue
        assert table.problems(dialect) == []
        value = table.read(dialect).get("k")
        assert value == wanted
        assert type(value) is type(wanted)
    assert table.problems(EITHER) == []
    assert table.read() == table.read(PRINTED if rabbitmq == WRONG else RABBITMQ)


def test_a_decimal_keeps_its_places() -> None:
    value = one("44 03 000003e8").get("k")
    assert isinstance(value, Decimal)
    assert value.as_tuple() == (0, (1, 0, 0, 0), -3)


def test_times() -> None:
    assert Amqp091Timestamp(1700000384).iso() == "2023-11-14T22:19:44Z"
    assert Amqp091Timestamp(2**64 - 1).iso() == "18446744073709551615s"


@pytest.mark.parametrize(
    ("octets", "code", "offset", "path", "wanted"),
    [
        # a tag nobody has: what stands before it survives
        ("016174 01 0162 5a 00", "T-TABLE-TAG", 6, "[b]", Table([("a", True), ("b", Raw(b"Z\0"))])),
        # a name twice; the same letters in another order are another name
        ("0161 56 0161 56", "T-TABLE-DUP", 3, "[a]", Table([("a", None), ("a", None)])),
        # lengths that reach beyond the table
        ("0161 53 00000009 61", "T-LENGTH-BOUNDS", 2, "[a]", Table([("a", Raw(b"S\0\0\0\x09a"))])),
        ("0161 49 0000", "T-TABLE-LEN", 2, "[a]", Table([("a", Raw(b"I\0\0"))])),
        ("0161 53 0000", "T-TABLE-LEN", 2, "[a]", Table([("a", Raw(b"S\0\0"))])),
        ("0161", "T-TABLE-LEN", 2, "[a]", Table([("a", Raw(b""))])),
        ("0561", "T-LENGTH-BOUNDS", 0, "", Table([], b"\x05a")),
        # of a table inside that is too long its pairs are read all the same
        ("0161 46 00000009 0162 56", "T-LENGTH-BOUNDS", 2, "[a]", Table([("a", Table([("b", None)]))])),
        # a length inside that only the table around it contradicts: what is behind it follows from that
        ("0161 46 00000004 0162 53 00 00 00 01", "T-TABLE-LEN", 9, "[a][b]", None),
        ("0161 41 00000002 74 01 0162 5a", "T-TABLE-TAG", 11, "[b]", None),
        # names
        ("02ff61 56", "T-SHORTSTR-UTF8", 0, "", Table([(Raw(b"\xffa"), None)])),
        ("026100 56", "T-SHORTSTR-NUL", 0, "", Table([("a\0", None)])),
        ("0161 41 00000002 53 00", "T-TABLE-LEN", 7, "[a][0]", None),
    ],
)
def test_what_is_wrong_is_said_and_the_rest_read(
    octets: str, code: str, offset: int, path: str, wanted: Table | None
) -> None:
    table = FieldTable(bytes.fromhex(octets))
    found = table.problems(RABBITMQ)
    assert problems(found) == [(code, offset, path)]
    if wanted is not None:
        assert table.read(RABBITMQ) == wanted
    assert not sound_table(table.octets, 0, len(table.octets), RABBITMQ)


def test_names_too_long() -> None:
    assert codes(FieldTable(amqp.table({"x" * 128: None})[4:])) == []
    assert codes(FieldTable(amqp.table({"x" * 129: None})[4:])) == ["T-TABLE-NAME-LEN"]
    assert codes(FieldTable(amqp.table({"ä" * 127: None})[4:])) == []


def test_names_that_look_alike_are_not_the_same() -> None:
    names = ["ab", "ba", "abc", "acb", "bac", "", "a", "b", "aa", "bb"] + [f"n{i}" for i in range(40)]
    table = FieldTable(amqp.table({name: ("F", {name: None}) for name in names})[4:])
    assert table.problems(RABBITMQ) == []
    assert sound_table(table.octets, 0, len(table.octets), RABBITMQ)
    for name in names:
        twice = FieldTable(table.octets + amqp.table({name: None})[4:])
        assert codes(twice) == ["T-TABLE-DUP"]


def test_depth_and_number_are_bounded() -> None:
    octets = b""
    for _ in range(MAX_DEPTH + 5):
        octets = b"\x01k" + b"F" + amqp.long_string(octets)
    assert codes(FieldTable(octets)) == ["limit"]
    assert "Raw" in repr(FieldTable(octets).read())
    many = FieldTable(b"\x01kZ" * 1000)
    assert len(many.problems(RABBITMQ)) == 1
    names = FieldTable(b"\x02\0\0V" * 1000)
    assert len(names.problems(RABBITMQ)) == MAX_PROBLEMS


# ---- properties

_INTEGERS: dict[str, tuple[int, int]] = {
    "b": (-128, 127),
    "B": (0, 255),
    "u": (0, 65535),
    "I": (-(2**31), 2**31 - 1),
    "i": (0, 2**32 - 1),
    "L": (-(2**63), 2**63 - 1),
    "T": (0, 2**64 - 1),
}
_OF_DIALECT: dict[str, dict[str, tuple[int, int]]] = {
    amqp.RABBITMQ: {"s": (-(2**15), 2**15 - 1), "l": (-(2**63), 2**63 - 1)},
    amqp.PRINTED: {"U": (-(2**15), 2**15 - 1), "l": (0, 2**64 - 1)},
}
_CLASSES: dict[str, dict[str, type]] = {
    amqp.RABBITMQ: {"s": ShortInt, "l": LongLongInt},
    amqp.PRINTED: {"U": ShortInt, "l": LongLongUint, "s": ShortString},
}
_CLASS: dict[str, type] = {
    "b": ShortShortInt,
    "B": ShortShortUint,
    "u": ShortUint,
    "I": LongInt,
    "i": LongUint,
    "L": LongLongInt,
    "T": Amqp091Timestamp,
    "f": Amqp091Float,
    "d": float,
    "D": Decimal,
    "x": ByteArray,
    "t": bool,
    "S": str,
}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def values(dialect: str) -> st.SearchStrategy[Any]:
    ranges = _INTEGERS | _OF_DIALECT[dialect]
    unscaled = st.integers(0, 2**32 - 1) if dialect == amqp.PRINTED else st.integers(-(2**31), 2**31 - 1)
    leaves = [st.tuples(st.just(tag), st.integers(*ranges[tag])) for tag in ranges]
    leaves += [
        st.tuples(st.just("t"), st.booleans()),
        st.tuples(st.just("f"), st.floats(width=32, allow_nan=False)),
        st.tuples(st.just("d"), st.floats(allow_nan=False)),
        st.tuples(st.just("D"), st.tuples(st.integers(0, 255), unscaled)),
        st.tuples(st.just("S"), TEXT),
        st.tuples(st.just("V"), st.none()),
    ]
    if dialect == amqp.PRINTED:
        leaves.append(st.tuples(st.just("s"), TEXT))
    else:
        leaves.append(st.tuples(st.just("x"), st.binary(max_size=20)))
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            st.tuples(st.just("A"), st.lists(inner, max_size=4)),
            st.tuples(st.just("F"), st.dictionaries(TEXT, inner, max_size=4)),
        ),
        max_leaves=12,
    )


def expected(item: Any, dialect: str) -> object:
    tag, content = item
    if tag == "V":
        return None
    if tag == "A":
        return FieldArray([expected(one, dialect) for one in content])
    if tag == "F":
        return Table([(name, expected(one, dialect)) for name, one in content.items()])
    if tag == "D":
        scale, unscaled = content
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    return (_CLASS | _CLASSES[dialect])[tag](content)


@pytest.mark.parametrize("dialect", [amqp.RABBITMQ, amqp.PRINTED])
@settings(max_examples=examples(60))
@given(st.data())
def test_what_was_written_is_read(dialect: str, data: st.DataObject) -> None:
    said = data.draw(st.dictionaries(TEXT, values(dialect), max_size=5))
    table = FieldTable(amqp.table(said, dialect)[4:])
    chosen = PRINTED if dialect == amqp.PRINTED else RABBITMQ
    assert table.problems(chosen) == []
    assert table.problems(EITHER) == []
    read = table.read(chosen)
    assert repr(read) == repr(expected(("F", said), dialect))
    assert read == expected(("F", said), dialect)


@settings(max_examples=examples(150))
@given(st.binary(max_size=60), st.sampled_from((EITHER, RABBITMQ, PRINTED)))
def test_any_octets_are_read(octets: bytes, dialect: int) -> None:
    table = FieldTable(octets)
    read = table.read(dialect)
    found = table.problems(dialect)
    assert repr(read)
    if sound_table(octets, 0, len(octets), dialect):
        assert found == []
    for problem in found:
        assert 0 <= problem.offset <= len(octets)
    if not found and not read.rest:
        # Nothing is lost or made up: it says as much as was sent.
        assert "Raw" not in repr(read)


@settings(max_examples=examples(60))
@given(st.data())
def test_the_quick_look_agrees_with_reading(data: st.DataObject) -> None:
    said = data.draw(st.dictionaries(TEXT, values(amqp.RABBITMQ), max_size=4))
    octets = bytearray(amqp.table(said)[4:])
    if octets:
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    table = FieldTable(bytes(octets))
    for dialect in (RABBITMQ, PRINTED):
        if sound_table(bytes(octets), 0, len(octets), dialect):
            reader = table.reader(dialect)
            reader.pairs()
            assert reader.problems == []


def test_the_encoder_writes_what_the_specification_says() -> None:
    by_hand = "0000000f 0161 49 00000001 0162 53 00000001 78"
    assert amqp.table({"a": ("I", 1), "b": "x"}) == bytes.fromhex(by_hand)
    assert struct.unpack(">I", amqp.table({})) == (0,)
