"""Composite types: every field of every one, right and wrong, and what stands around the fault."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support import strategies
from support.decoded import expected, meaning, problems
from support.sampling import examples
from support.strategies import MANDATORY, Sample

from dissectors.amqp10.composite import Composite, CompositeType, Field, Reader
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import Attach, Begin, Close, Error, Open, Transfer
from dissectors.amqp10.registry import COMPOSITES, FINAL
from dissectors.amqp10.sasl import SaslInit, SaslResponse
from dissectors.amqp10.values import Array, Described, Map, Raw, Symbol, UInt, ULong
from dissectors.limits import MAX_PROBLEMS


def read(octets: bytes) -> tuple[Any, Reader]:
    reader = Reader(octets, 0, len(octets), 0, FINAL)
    return reader.value(), reader


def definition(name: str) -> CompositeType:
    return next(known for known in COMPOSITES if known.name == name)


# A value for each kind of field, plain and easy to recognise.
GOOD: dict[str, Any] = {
    "boolean": True,
    "ubyte": 1,
    "ushort": 0x1234,
    "uint": 2,
    "ulong": 0x123456789A,
    "timestamp": 1311704463521,
    "binary": b"bin",
    "string": "text",
    "symbol": "sym",
    "symbols": ["s1", "s2"],
    "fields": {"key": "value"},
    "unsettled": {b"tag": None},
    "message-id": "id",
}
SPECIAL: dict[tuple[str, str], Any] = {
    ("attach", "source"): amqp.source(),
    ("attach", "target"): amqp.target(),
    ("transfer", "state"): amqp.accepted(),
    ("disposition", "state"): amqp.accepted(),
    ("source", "default-outcome"): amqp.released(),
    ("source", "expiry-policy"): "never",
    ("target", "expiry-policy"): "never",
    ("source", "filter"): amqp.map_([(amqp.symbol("f"), amqp.described("x:f", "text"))]),
    ("declare", "global-id"): amqp.binary(b"gtrid"),
    ("transactional-state", "outcome"): amqp.rejected(),
}
FIELDS = [(name, field, kind) for name, (_, fields) in amqp.COMPOSITES.items() for field, kind in fields]


def good(name: str, field: str, kind: str) -> Any:
    if (name, field) in SPECIAL:
        return SPECIAL[name, field]
    if field == "error":
        return amqp.error(condition="amqp:internal-error")
    if kind == "*":
        return "address"
    return GOOD[kind]


def all_good(name: str) -> dict[str, Any]:
    return {field.replace("-", "_"): good(name, field, kind) for field, kind in amqp.COMPOSITES[name][1]}


def place(name: str, field: str, around: dict[str, Any], **options: Any) -> tuple[bytes, int]:
    """A composite with fields, and the offset of one of them in it."""
    octets = amqp.composite(name, **around, **options)
    # The one octet 0x3e, which is no constructor, is nowhere else: where it stands the field does.
    marked = amqp.composite(name, **{**around, field.replace("-", "_"): amqp.raw(b"\x3e")}, **options)
    return octets, marked.index(0x3E)


# ---- what is right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", amqp.COMPOSITES)
@pytest.mark.parametrize("form", ["small", "full", "symbol", "symbol32"])
@pytest.mark.parametrize("choice", ["smallest", "widest"])
def test_every_field_of_every_composite(name: str, form: Any, choice: Any) -> None:
    octets = amqp.composite(name, descriptor_form=form, choice=choice, **all_good(name))
    decoded, reader = read(octets + b"\x41")
    assert problems(reader.problems) == []
    assert reader.pos == len(octets)
    assert isinstance(decoded, Composite)
    assert decoded.definition() is definition(name)
    assert None not in decoded.values()
    assert decoded.odd is None
    assert decoded.extra is None
    assert [(field.name, value) for field, value in decoded.fields()] == [
        (field.name, value) for field, value in zip(definition(name).fields, decoded.values(), strict=True)
    ]
    for (field, kind), value in zip(amqp.COMPOSITES[name][1], decoded.values(), strict=True):
        if (name, field) not in SPECIAL and kind in (
            "boolean",
            "ubyte",
            "ushort",
            "uint",
            "ulong",
            "timestamp",
            "binary",
            "string",
            "symbol",
        ):
            assert value == GOOD[kind]
            assert type(value) is not bool or kind == "boolean"
        assert getattr(decoded, field.replace("-", "_")) is value
        if kind == "symbols":
            assert value == ["s1", "s2"]
            assert isinstance(value, list)
            assert {type(symbol) for symbol in value} == {Symbol}


@settings(max_examples=examples(300))
@given(st.sampled_from(list(amqp.COMPOSITES)).flatmap(strategies.composites))
def test_what_was_encoded_is_decoded(sample: Sample) -> None:
    decoded, reader = read(sample.octets)
    assert problems(reader.problems) == []
    assert meaning(decoded) == expected(sample.meaning)
    assert reader.pos == len(sample.octets)


@pytest.mark.parametrize("name", [name for name in amqp.COMPOSITES if not MANDATORY.get(name)])
@pytest.mark.parametrize("octets", ["45", "c0 01 00", "d0 00000004 00000000"])
def test_nothing_set_is_legal_where_nothing_is_mandatory(name: str, octets: str) -> None:
    decoded, reader = read(b"\x00\x53" + bytes([definition(name).code]) + bytes.fromhex(octets))
    assert problems(reader.problems) == []
    assert isinstance(decoded, Composite)
    assert decoded.fields() == []


@pytest.mark.parametrize(
    ("octets", "value"),
    [
        ("56 00", False),
        ("56 01", True),
        ("41", True),
        ("42", False),
    ],
)
def test_every_encoding_of_a_boolean_field(octets: str, value: bool) -> None:
    decoded, reader = read(amqp.disposition(role=amqp.raw(octets), first=1))
    assert decoded.role is value
    assert reader.problems == []


@pytest.mark.parametrize(
    ("octets", "value"), [("43", 0), ("52 00", 0), ("52 ff", 255), ("70 ffffffff", 2**32 - 1)]
)
def test_every_encoding_of_a_uint_field(octets: str, value: int) -> None:
    decoded, reader = read(amqp.transfer(handle=amqp.raw(octets)))
    assert decoded.handle == value
    assert reader.problems == []


@pytest.mark.parametrize(
    ("octets", "value"), [("44", 0), ("53 00", 0), ("53 ff", 255), ("80 ffffffffffffffff", 2**64 - 1)]
)
def test_every_encoding_of_a_ulong_field(octets: str, value: int) -> None:
    decoded, reader = read(amqp.received(section_number=0, section_offset=amqp.raw(octets)))
    assert decoded.section_offset == value
    assert reader.problems == []


def test_timestamps_may_be_before_the_epoch() -> None:
    decoded, reader = read(amqp.properties(absolute_expiry_time=-(2**63), creation_time=2**63 - 1))
    assert (decoded.absolute_expiry_time, decoded.creation_time) == (-(2**63), 2**63 - 1)
    assert reader.problems == []


@pytest.mark.parametrize(
    "octets", ["a3 01 73", "b3 00000001 73", "e0 04 01 a3 0173", "f0 0000000a 00000001 b3 0000000173"]
)
def test_one_value_of_a_multiple_field(octets: str) -> None:
    decoded, reader = read(amqp.open_(container_id="c", offered_capabilities=amqp.raw(octets)))
    assert decoded.offered_capabilities == ["s"]
    assert reader.problems == []


def test_no_value_of_a_multiple_field() -> None:
    decoded, reader = read(amqp.open_(container_id="c", offered_capabilities=amqp.array([], b"\xa3")))
    assert decoded.offered_capabilities == []
    assert reader.problems == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("source", amqp.described(amqp.ulong(0x123400000001), amqp.list_([]))),
        ("target", amqp.described(amqp.symbol("x:target:list"), amqp.list_([]))),
        ("target", amqp.coordinator(capabilities="amqp:local-transactions")),
        ("source", amqp.source(address=amqp.described("x:address", "a"))),
        ("source", amqp.source(default_outcome=amqp.described("x:outcome", None))),
        ("source", amqp.source(filter={"f": None})),
        ("source", amqp.source(filter={"f": amqp.described("x:a", "b"), "g": amqp.accepted()})),
        ("source", amqp.source(dynamic_node_properties={"lifetime-policy": amqp.delete_on_close()})),
        ("source", amqp.source(expiry_policy="link-detach", durable=2)),
        ("target", amqp.target(expiry_policy="session-end", durable=0)),
        ("unsettled", {b"": None, b"t": amqp.received(section_number=1, section_offset=2)}),
        ("properties", {}),
    ],
)
def test_legal_values_of_free_types(field: str, value: Any) -> None:
    decoded, reader = read(amqp.attach(name="n", handle=0, role=True, **{field: value}))
    assert reader.problems == []
    assert decoded.odd is None
    assert getattr(decoded, field) is not None


@pytest.mark.parametrize("kind", ["ulong", "uuid", "binary", "string"])
def test_types_of_message_ids(kind: str) -> None:
    value = {
        "ulong": amqp.ulong(2**64 - 1),
        "uuid": amqp.uuid(bytes.fromhex("f81d4fae7dec11d0a76500a0c91e6bf6")),
        "binary": amqp.binary(b""),
        "string": amqp.string(""),
    }[kind]
    decoded, reader = read(amqp.properties(message_id=value, correlation_id=value))
    assert reader.problems == []
    assert meaning(decoded.message_id)[0] == meaning(decoded.correlation_id)[0] == kind


def test_composites_in_lists_maps_and_arrays() -> None:
    error = amqp.error(condition="c")
    octets = amqp.list_(
        [
            error,
            amqp.map_([(amqp.symbol("e"), error), (error, None)]),
            amqp.array([amqp.accepted(choice="widest"), amqp.accepted(choice="widest")]),
            amqp.array([amqp.described(amqp.ulong(0x23), amqp.list_([amqp.uint(1), amqp.ulong(9)]))]),
            amqp.array([amqp.accepted(), amqp.accepted()]),
            amqp.described("x:y", error),
        ]
    )
    decoded, reader = read(octets)
    assert reader.problems == []
    assert isinstance(decoded[0], Error)
    assert isinstance(decoded[1], Map)
    assert isinstance(decoded[1].pairs[0][1], Error)
    assert isinstance(decoded[1].pairs[1][0], Error)
    assert repr(decoded[2].items) == "[accepted(), accepted()]"
    assert (decoded[2].element, decoded[2].descriptor, decoded[2].count) == ("list", ULong(0x24), 2)
    assert repr(decoded[3].items) == "[received(section-number=1, section-offset=9)]"
    assert repr(decoded[4].items) == "[accepted(), accepted()]"
    assert decoded[5] == Described("x:y", decoded[0])


def test_an_array_of_composites_is_checked_like_any() -> None:
    errors = [amqp.error(condition="c"), amqp.error(condition=None, description=amqp.boolean(True))]
    decoded, reader = read(amqp.array(errors))
    assert problems(reader.problems) == [
        ("T-COMP-TYPE", 15, "[1].description"),
        ("P-ERROR-MAND", 14, "[1].condition"),
    ]
    assert decoded.items[0] == read(errors[0])[0]
    assert decoded.items[1].odd == {1: True}
    decoded, reader = read(amqp.array([amqp.described(amqp.ulong(0x24), amqp.map_([]))]))
    assert problems(reader.problems) == [("T-COMP-LIST", 3, "")]
    assert decoded == Array("map", [Map([])], 1, ULong(0x24))


@pytest.mark.parametrize(
    "descriptor",
    [amqp.ulong(0x1_0000_0010), amqp.uint(0x10), amqp.string("amqp:open:list"), amqp.ulong(0x19)],
)
def test_other_descriptors_stand_for_no_composite(descriptor: bytes) -> None:
    decoded, reader = read(amqp.described(descriptor, amqp.list_(["c"])))
    assert isinstance(decoded, Described)
    assert decoded.value == ["c"]
    assert reader.problems == []


# ---- what is wrong ----------------------------------------------------------------------------------------

CODES_OF_ARCHETYPES = {
    "address": "M-ADDR-TYPE",
    "message-id": "M-ID-TYPE",
}


@pytest.mark.parametrize(("name", "field", "kind"), FIELDS)
def test_a_field_of_a_wrong_type_is_kept_aside_and_the_others_survive(
    name: str, field: str, kind: str
) -> None:
    around = all_good(name)
    attribute = field.replace("-", "_")
    octets, offset = place(name, field, {**around, attribute: amqp.char("!")})
    decoded, reader = read(octets)
    known = definition(name)
    index = [known_field.name for known_field in known.fields].index(field)
    wanted = "T-COMP-TYPE"
    if known.fields[index].type == "*":
        wanted = CODES_OF_ARCHETYPES.get(known.fields[index].requires, "T-COMP-REQUIRES")
        if field == "default-outcome":
            wanted = "M-OUTCOME-VALID"
    assert problems(reader.problems) == [(wanted, offset, f"{name}.{field}")]
    assert getattr(decoded, attribute) is None
    shown = Raw(b"") if known.secret else "!"
    assert decoded.odd == {index: shown}
    assert {shown_field.name: value for shown_field, value in decoded.fields()}[field] == shown
    assert len(decoded.fields()) == len(known.fields)
    assert [value is None for value in decoded.values()] == [
        other == index for other in range(len(known.fields))
    ]


@pytest.mark.parametrize(("name", "field", "kind"), FIELDS)
def test_a_field_that_does_not_decode_is_one_fault_and_the_others_survive(
    name: str, field: str, kind: str
) -> None:
    around = all_good(name)
    bad = amqp.raw("73 00110000")
    octets, offset = place(name, field, {**around, field.replace("-", "_"): bad})
    decoded, reader = read(octets)
    assert problems(reader.problems) == [("T-CHAR-UTF32", offset, f"{name}.{field}")]
    assert decoded.odd is not None
    assert list(decoded.odd.values()) == [Raw(b"") if definition(name).secret else Raw(bytes(bad))]
    assert [value for value in decoded.values() if value is None] == [None]


WRONG_WIDTHS = [
    ("transfer", "handle", "53 01"),  # a ulong
    ("transfer", "handle", "54 01"),
    ("transfer", "handle", "60 0001"),
    ("transfer", "handle", "44"),
    ("begin", "remote_channel", "52 01"),
    ("begin", "remote_channel", "43"),
    ("attach", "snd_settle_mode", "43"),
    ("attach", "max_message_size", "52 01"),
    ("attach", "role", "43"),
    ("attach", "name", "a3 01 6e"),
    ("open", "container_id", "a0 01 63"),
    ("transfer", "delivery_tag", "a1 01 74"),
    ("properties", "creation_time", "81 0000000000000001"),
    ("error", "condition", "a1 01 63"),
    ("sasl-mechanisms", "sasl_server_mechanisms", "a1 01 63"),
    ("open", "properties", "45"),
    ("open", "offered_capabilities", "e0 04 01 a1 0163"),
    ("open", "offered_capabilities", "e0 02 00 40"),
]


@pytest.mark.parametrize(("name", "field", "octets"), WRONG_WIDTHS)
def test_types_that_are_alike_are_not_the_same(name: str, field: str, octets: str) -> None:
    encoded, offset = place(name, field, {**all_good(name), field: amqp.raw(octets)})
    decoded, reader = read(encoded)
    path = f"{name}.{field.replace('_', '-')}"
    assert problems(reader.problems) == [("T-COMP-TYPE", offset, path)]
    assert getattr(decoded, field) is None


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, fields in MANDATORY.items() for field in fields]
)
class TestMandatory:
    def rule(self, name: str) -> str:
        return definition(name).mandatory_rule

    def test_null(self, name: str, field: str) -> None:
        around = all_good(name)
        octets, offset = place(name, field, {**around, field.replace("-", "_"): None}, keep_nulls=True)
        decoded, reader = read(octets)
        assert problems(reader.problems) == [(self.rule(name), offset, f"{name}.{field}")]
        assert decoded.odd is None

    def test_left_out(self, name: str, field: str) -> None:
        fields = [known for known, _ in amqp.COMPOSITES[name][1]]
        index = fields.index(field)
        before = {
            key: value for key, value in all_good(name).items() if key.replace("_", "-") in fields[:index]
        }
        octets = amqp.composite(name, **before)
        _, reader = read(octets)
        wanted = [
            (self.rule(name), len(octets), f"{name}.{later}")
            for later in fields[index:]
            if later in MANDATORY[name]
        ]
        assert problems(reader.problems) == wanted

    def test_empty_list(self, name: str, field: str) -> None:
        for empty in ("45", "c001 00", "d000000004 00000000"):
            octets = b"\x00\x53" + bytes([definition(name).code]) + bytes.fromhex(empty)
            _, reader = read(octets)
            wanted = [(self.rule(name), len(octets), f"{name}.{known}") for known in MANDATORY[name]]
            assert problems(reader.problems) == wanted


def test_mechanisms_may_not_be_an_empty_array() -> None:
    decoded, reader = read(amqp.sasl_mechanisms(sasl_server_mechanisms=[]))
    assert problems(reader.problems) == [("T-COMP-MULT-MAND", 6, "sasl-mechanisms.sasl-server-mechanisms")]
    assert decoded.sasl_server_mechanisms == []


CLOSED = [
    ("attach", "snd_settle_mode", amqp.ubyte(3), "T-ENUM-SNDMODE", 3),
    ("attach", "snd_settle_mode", amqp.ubyte(255), "T-ENUM-SNDMODE", 255),
    ("attach", "rcv_settle_mode", amqp.ubyte(2), "T-ENUM-RCVMODE", 2),
    ("transfer", "rcv_settle_mode", amqp.ubyte(2), "T-ENUM-RCVMODE", 2),
    ("source", "durable", amqp.uint(3), "T-ENUM-DURABILITY", 3),
    ("target", "durable", amqp.uint(2**32 - 1), "T-ENUM-DURABILITY", 2**32 - 1),
    ("source", "expiry_policy", amqp.symbol("session"), "T-ENUM-EXPIRY", "session"),
    ("target", "expiry_policy", amqp.symbol(""), "T-ENUM-EXPIRY", ""),
    ("sasl-outcome", "code", amqp.ubyte(5), "T-ENUM-SASLCODE", 5),
]


@pytest.mark.parametrize(("name", "field", "octets", "code", "value"), CLOSED)
def test_value_that_is_no_choice(name: str, field: str, octets: bytes, code: str, value: object) -> None:
    encoded, offset = place(name, field, {**all_good(name), field: octets})
    decoded, reader = read(encoded)
    assert problems(reader.problems) == [(code, offset, f"{name}.{field.replace('_', '-')}")]
    assert getattr(decoded, field) == value
    assert decoded.odd is None


def test_error_conditions_and_other_open_choices_are_not_closed() -> None:
    octets = amqp.close(error=amqp.error(condition="com.example:odd"))
    assert problems(read(octets)[1].problems) == []
    octets = amqp.source(distribution_mode="x-mode", outcomes=["x:outcome:list"])
    assert problems(read(octets)[1].problems) == []


@pytest.mark.parametrize(
    ("field", "value", "code", "within", "path"),
    [
        # The source's list: 00 53 28 c0 size count, then its fields.
        ("source", amqp.source(address=amqp.symbol("q")), "M-ADDR-TYPE", 6, ".address"),
        ("source", amqp.source(address=amqp.source()), "M-ADDR-TYPE", 6, ".address"),
        (
            "source",
            amqp.source(default_outcome=amqp.received(section_number=0, section_offset=0)),
            "M-OUTCOME-VALID",
            14,
            ".default-outcome",
        ),
        (
            "source",
            amqp.source(default_outcome=amqp.symbol("amqp:accepted:list")),
            "M-OUTCOME-VALID",
            14,
            ".default-outcome",
        ),
        (
            "source",
            amqp.source(outcomes=amqp.list_([amqp.symbol("a")])),
            "T-COMP-MULT-ARRAY",
            15,
            ".outcomes",
        ),
        ("source", amqp.source(outcomes=amqp.list_([])), "T-COMP-MULT-ARRAY", 15, ".outcomes"),
        # A map behind seven nulls: c1 size count, then the keys.
        ("source", amqp.source(filter=amqp.map_([("f", None)])), "M-FILTER-KEY", 16, ".filter{key 0}"),
        (
            "source",
            amqp.source(filter=amqp.map_([(amqp.symbol("g"), None), (amqp.symbol("f"), "x")])),
            "M-FILTER-VALUE",
            23,
            ".filter[f]",
        ),
        (
            "source",
            amqp.source(filter=amqp.map_([(amqp.symbol("f"), amqp.list_([]))])),
            "M-FILTER-VALUE",
            19,
            ".filter[f]",
        ),
        (
            "source",
            amqp.source(filter=amqp.map_([(amqp.symbol(b"\xff"), None)])),
            "T-SYM-ASCII",
            16,
            ".filter{key 0}",
        ),
        (
            "source",
            amqp.source(dynamic_node_properties=amqp.map_([(amqp.ulong(1), None)])),
            "T-FIELDS-KEY",
            14,
            ".dynamic-node-properties{key 0}",
        ),
        ("target", amqp.accepted(), "T-COMP-REQUIRES", 0, ""),
        ("target", amqp.source(), "T-COMP-REQUIRES", 0, ""),
        ("target", amqp.string("q"), "T-COMP-REQUIRES", 0, ""),
        ("source", amqp.target(), "T-COMP-REQUIRES", 0, ""),
        ("source", amqp.coordinator(), "TX-COORD-TARGET", 0, ""),
        ("properties", amqp.map_([(amqp.symbol("ok"), None), (None, None)]), "T-FIELDS-KEY", 8, "{key 1}"),
        ("properties", amqp.map_([("key", None)]), "T-FIELDS-KEY", 3, "{key 0}"),
    ],
)
def test_paths_offsets_and_rules_inside_an_attach(
    field: str, value: bytes, code: str, within: int, path: str
) -> None:
    around = {**all_good("attach"), field: value}
    octets, offset = place("attach", field, around)
    decoded, reader = read(octets)
    assert problems(reader.problems) == [(code, offset + within, f"attach.{field}{path}")]
    assert isinstance(decoded, Attach)
    assert len(decoded.fields()) == 14


def test_keys_of_inner_maps_are_free() -> None:
    inner = amqp.map_([(amqp.uint(1), amqp.map_([("x", None)]))])
    _, reader = read(amqp.open_(container_id="c", properties={"k": inner, "l": amqp.list_([inner])}))
    assert reader.problems == []
    # Also those of a key that is a map: only the map that stands in the field is restricted.
    _, reader = read(amqp.open_(container_id="c", properties=amqp.map_([(inner, None)])))
    assert [found.code for found in reader.problems] == ["T-FIELDS-KEY"]


def test_the_unsettled_map_is_no_fields_map() -> None:
    _, reader = read(amqp.attach(name="n", handle=0, role=False, unsettled=amqp.map_([(amqp.uint(1), "x")])))
    assert reader.problems == []


@pytest.mark.parametrize("name", amqp.COMPOSITES)
@pytest.mark.parametrize(
    ("octets", "sent"),
    [
        ("40", "null"),
        ("c1 01 00", "map"),
        ("e0 02 00 40", "array of null"),
        ("43", "uint"),
        ("00 5380 45", "described value"),
    ],
)
def test_a_composite_that_is_no_list(name: str, octets: str, sent: str) -> None:
    code = definition(name).code
    inner = bytes.fromhex(octets)
    decoded, reader = read(amqp.list_([amqp.raw(b"\x00\x53" + bytes([code]) + inner), "next"]))
    assert problems(reader.problems) == [("T-COMP-LIST", 6, "[0]")]
    assert reader.problems[0].reason == f"{name} is encoded as `{sent}`, not as `list`"
    kept, _ = read(inner)
    assert decoded[0] == Described(ULong(code), Raw(b"") if definition(name).secret else kept)
    assert decoded[1] == "next"


@pytest.mark.parametrize("form", ["small", "full", "symbol", "symbol32"])
def test_a_composite_that_is_no_list_keeps_the_descriptor_sent(form: Any) -> None:
    octets = amqp.described(amqp.descriptor(0x18, "amqp:close:list", form), amqp.map_([]))
    decoded, reader = read(octets)
    assert [found.code for found in reader.problems] == ["T-COMP-LIST"]
    assert decoded.descriptor == ("amqp:close:list" if form.startswith("symbol") else 0x18)
    assert type(decoded.descriptor) is (Symbol if form.startswith("symbol") else ULong)


@pytest.mark.parametrize("choice", ["smallest", "widest"])
def test_elements_beyond_the_last_field(choice: Any) -> None:
    octets = amqp.end(error=amqp.error(condition="c"), extra=[amqp.uint(7), None, "more"], choice=choice)
    decoded, reader = read(amqp.list_([octets, "next"], "widest"))
    assert isinstance(decoded[0].error, Error)
    assert decoded[0].extra == [7, None, "more"]
    assert decoded[1] == "next"
    at = 9 + octets.index(b"\x52\x07")
    assert problems(reader.problems) == [("T-COMP-EXTRA", at, "[0]")]


def test_a_fault_in_an_element_beyond_has_its_place() -> None:
    _, reader = read(amqp.end(extra=[None, amqp.raw("56 07")]))
    assert problems(reader.problems) == [("T-COMP-EXTRA", 7, "end"), ("T-BOOL-OCTET", 8, "end[2]")]


def miscounted(octets: bytes, by: int) -> bytes:
    """A composite of list8 with another count of its items."""
    assert octets[3] == 0xC0
    return octets[:5] + bytes([octets[5] + by]) + octets[6:]


WRONG_INSIDE = [
    (amqp.target(address="q", extra=[None]), "T-COMP-EXTRA"),
    (amqp.target(capabilities=amqp.raw("a3 01 c3")), "T-SYM-ASCII"),
    (amqp.target(address="q", dynamic=amqp.raw("56 02")), "T-BOOL-OCTET"),
    (amqp.target(dynamic_node_properties=amqp.map_([(amqp.string("k"), True)])), "T-FIELDS-KEY"),
    (amqp.target(durable=9), "M-DURABLE-RANGE"),
]


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize(("inner", "code"), WRONG_INSIDE, ids=[code for _, code in WRONG_INSIDE])
def test_a_fault_inside_does_not_hide_a_wrong_count(inner: bytes, code: str, by: int) -> None:
    octets = amqp.attach(
        name="n",
        handle=0,
        role=False,
        target=inner,
        unsettled={},
        initial_delivery_count=0,
        max_message_size=1,
    )
    _, reader = read(miscounted(octets, by))
    inside, outside = problems(reader.problems)
    assert inside[2].startswith("attach.target")
    assert outside == ("T-LIST-FIT", 0, "attach")


@pytest.mark.parametrize("by", [1, -1])
def test_elements_beyond_the_last_field_do_not_hide_a_wrong_count(by: int) -> None:
    octets = amqp.end(error=amqp.error(condition="c"), extra=[amqp.uint(7), None, "more"])
    _, reader = read(miscounted(octets, by))
    assert [found[0] for found in problems(reader.problems)] == ["T-COMP-EXTRA", "T-LIST-FIT"]


def test_what_follows_an_empty_list_is_not_counted_to_it() -> None:
    outer = amqp.detach(handle=0, closed=True, error=amqp.raw("00 53 1d 45"))
    for octets in (b"\x00\x53\x14\x45" + b"payload", outer, amqp.list_([outer, True])):
        _, reader = read(octets)
        assert [found[0] for found in problems(reader.problems)] in (["P-TRANSFER-MAND"], ["P-ERROR-MAND"])


@pytest.mark.parametrize("width", [1, 4])
class TestSizeAndCountOfTheList:
    """begin(null, 1, 2, 3) with a list that claims other numbers than it has."""

    FIELDS = bytes.fromhex("40 5201 5202 5203")

    def begin(self, width: int, size: int, count: int, content: bytes) -> bytes:
        code = b"\xc0" if width == 1 else b"\xd0"
        return b"\x00\x53\x11" + code + (size + width).to_bytes(width) + count.to_bytes(width) + content

    def check(self, octets: bytes, wanted: list[tuple[str, int, str]], after: bool = True) -> Begin:
        decoded, reader = read(amqp.list_([octets] + ([amqp.raw(b"\x41")] if after else []), 0xC0))
        assert problems(reader.problems) == wanted
        if after:
            assert decoded[1] is True
        assert isinstance(decoded[0], Begin)
        return decoded[0]

    def test_right(self, width: int) -> None:
        begin = self.check(self.begin(width, 7, 4, self.FIELDS), [])
        assert begin.values()[:4] == [None, 1, 2, 3]

    def test_count_too_high(self, width: int) -> None:
        begin = self.check(self.begin(width, 7, 6, self.FIELDS), [("T-LIST-FIT", 3, "[0]")])
        assert begin.values()[:4] == [None, 1, 2, 3]

    def test_count_above_the_number_of_fields(self, width: int) -> None:
        begin = self.check(self.begin(width, 7, 200, self.FIELDS), [("T-LIST-FIT", 3, "[0]")])
        assert begin.values()[:4] == [None, 1, 2, 3]

    def test_count_too_low(self, width: int) -> None:
        # The last field is mandatory, but it is there; it is only not counted.
        begin = self.check(self.begin(width, 7, 3, self.FIELDS), [("T-LIST-FIT", 3, "[0]")])
        assert begin.outgoing_window is None

    def test_octets_behind_the_last_element(self, width: int) -> None:
        begin = self.check(self.begin(width, 8, 4, self.FIELDS + b"\x40"), [("T-LIST-FIT", 3, "[0]")])
        assert begin.values()[:4] == [None, 1, 2, 3]

    def test_size_too_small(self, width: int) -> None:
        # The last element is cut, and its last octet taken for the next value.
        octets = self.begin(width, 6, 4, self.FIELDS)
        decoded, reader = read(amqp.list_([octets], count=2))
        assert problems(reader.problems)[0] == ("T-SIZE-OVERRUN", 3 + len(octets) - 2, "[0].outgoing-window")
        assert decoded[0].values()[:4] == [None, 1, 2, None]

    def test_size_too_large(self, width: int) -> None:
        begin = self.check(self.begin(width, 9, 4, self.FIELDS), [("T-SIZE-OVERRUN", 3, "[0]")], after=False)
        assert begin.values()[:4] == [None, 1, 2, 3]

    def test_size_too_large_with_an_element_cut(self, width: int) -> None:
        begin = self.check(
            self.begin(width, 7, 4, self.FIELDS[:-1]), [("T-SIZE-OVERRUN", 3, "[0]")], after=False
        )
        assert begin.values()[:4] == [None, 1, 2, None]

    def test_no_room_for_the_count(self, width: int) -> None:
        code = b"\xc0" if width == 1 else b"\xd0"
        octets = b"\x00\x53\x11" + code + bytes(2 * width)
        begin = self.check(octets, [("T-LIST-FIT", 3, "[0]")])
        assert begin.fields() == []

    def test_an_octet_short_of_size_and_count(self, width: int) -> None:
        octets = self.begin(width, 7, 4, b"")[: 3 + 2 * width]
        decoded, reader = read(amqp.list_([octets]))
        assert problems(reader.problems) == [("T-SIZE-OVERRUN", 3, "[0]")]
        assert decoded[0] == Described(ULong(0x11), Raw(octets))


def test_what_ends_the_list_early_hides_the_missing_fields() -> None:
    # 0x3e tells no width: what stands behind it in the list is lost with it, and nobody is accused of that.
    octets = amqp.begin(
        remote_channel=amqp.raw(b"\x3e"), next_outgoing_id=1, incoming_window=2, outgoing_window=3
    )
    decoded, reader = read(amqp.list_([octets, "next"]))
    assert problems(reader.problems) == [("T-CODE-UNKNOWN", 9, "[0].remote-channel")]
    assert decoded[1] == "next"


def test_a_faulty_composite_within_another() -> None:
    # The source's list claims more than the attach has: the rest of the attach is gone with it.
    source = amqp.source(address="q")
    bad = amqp.raw(source[:4] + b"\x7f" + source[5:])
    octets = amqp.attach(name="n", handle=0, role=False, source=bad, target=amqp.target(address="t"))
    decoded, reader = read(octets)
    assert problems(reader.problems) == [("T-SIZE-OVERRUN", octets.index(bad[:5]), "attach.source")]
    assert (decoded.name, decoded.handle, decoded.role) == ("n", 0, False)
    assert isinstance(decoded.source, Source)
    assert decoded.source.address == "q"


def test_a_missing_field_deep_inside_has_its_whole_path() -> None:
    octets = amqp.disposition(
        role=True,
        first=0,
        state=amqp.transactional_state(txn_id=b"t", outcome=amqp.rejected(error=amqp.error(description="d"))),
    )
    decoded, reader = read(octets)
    assert problems(reader.problems) == [
        ("P-ERROR-MAND", octets.index(b"\x40\xa1\x01d"), "disposition.state.outcome.error.condition")
    ]
    assert reader.problems[0].reason == "the field condition of error is mandatory, but is not set"
    assert decoded.state.outcome.error.description == "d"


def test_the_outer_field_is_checked_after_an_inner_composite() -> None:
    # What an inner list says about its own count must not count for the outer one.
    inner = amqp.raw(amqp.error(condition="c").replace(b"\xc0\x04\x01", b"\xc0\x04\x03"))
    octets = amqp.detach(handle=amqp.null(), error=inner)
    _, reader = read(octets)
    assert problems(reader.problems) == [
        ("T-LIST-FIT", octets.index(inner), "detach.error"),
        ("P-DETACH-MAND", 6, "detach.handle"),
    ]
    # The path has the name of the outermost composite.
    assert reader.problems[1].reason == "the field is mandatory, but is not set"


def test_problems_stay_bounded_where_each_would_be_found_anew() -> None:
    bad = amqp.error(description="d")
    octets = amqp.list_([bad] * 500)
    _, reader = read(octets)
    assert len(reader.problems) == MAX_PROBLEMS
    assert {found.code for found in reader.problems} == {"P-ERROR-MAND"}


def test_finding_a_fields_place_steps_over_anything() -> None:
    deep = b"\x00\x80\x00\x00\x46\x8c\x00\x00\x00\x90" * 3000 + b"\x40"
    state = amqp.raw(deep)
    octets = amqp.composite("discharge", txn_id=state, extra=())
    _, reader = read(octets)
    assert [found.code for found in reader.problems] == ["limit"]
    octets = amqp.composite(
        "received",
        section_number=amqp.described(amqp.described("x:y", "z"), amqp.list_(["z"] * 9)),
        section_offset=None,
        keep_nulls=True,
    )
    _, reader = read(octets)
    assert problems(reader.problems) == [
        ("T-COMP-TYPE", 6, "received.section-number"),
        ("P-RECEIVED-MAND", len(octets) - 1, "received.section-offset"),
    ]


# ---- composites as objects --------------------------------------------------------------------------------


def test_equality_is_of_all_that_was_sent() -> None:
    one, _ = read(amqp.open_(container_id="c", channel_max=1))
    same, _ = read(amqp.open_(container_id="c", channel_max=1, choice="widest"))
    assert one == same
    for other in (
        amqp.open_(container_id="c", channel_max=2),
        amqp.open_(container_id="c"),
        amqp.open_(container_id="c", channel_max=1, properties=amqp.uint(1)),
        amqp.open_(container_id="d", channel_max=1),
    ):
        assert one != read(other)[0]
    ended, _ = read(amqp.end())
    assert ended != read(amqp.close())[0]
    assert ended != read(amqp.end(extra=[None]))[0]
    assert ended != "end"


def test_repr_shows_what_was_sent() -> None:
    decoded, _ = read(amqp.transfer(handle=amqp.ulong(1), delivery_tag=b"t", state=amqp.accepted()))
    assert repr(decoded) == "transfer(handle=1, delivery-tag=b't', state=accepted())"


def test_attributes_are_python_values() -> None:
    decoded, _ = read(amqp.close(error=amqp.error(condition="amqp:not-found", info={"a": amqp.uint(1)})))
    assert isinstance(decoded, Close)
    assert decoded.error is not None
    assert decoded.error.condition == "amqp:not-found"
    assert type(decoded.error.condition) is Symbol
    assert decoded.error.info == Map([(Symbol("a"), UInt(1))])
    opened, _ = read(amqp.open_(container_id="c", incoming_locales=["en-US"], idle_time_out=0))
    assert isinstance(opened, Open)
    assert (opened.idle_time_out, opened.incoming_locales, opened.hostname) == (0, ["en-US"], None)
    moved, _ = read(amqp.transfer(handle=0, more=False))
    assert isinstance(moved, Transfer)
    assert (moved.more, moved.settled) == (False, None)
    target, _ = read(amqp.target(dynamic=True))
    assert isinstance(target, Target)
    assert target.dynamic is True


def test_a_field_says_what_it_is() -> None:
    field = Field("f", "uint")
    assert (field.mandatory, field.multiple, field.default, field.requires, field.choices, field.secret) == (
        False,
        False,
        None,
        "",
        {},
        False,
    )


# ---- secrets ----------------------------------------------------------------------------------------------

SECRET = b"swordfish"

# A secret where it belongs and where it does not, whole, cut, or taken for something else.
SECRETS = {
    "right": amqp.sasl_init(mechanism="PLAIN", initial_response=SECRET),
    "right response": amqp.sasl_response(response=SECRET),
    "as string": amqp.sasl_init(mechanism="PLAIN", initial_response=amqp.string(SECRET)),
    "as symbol": amqp.sasl_response(response=amqp.symbol(SECRET)),
    "as list": amqp.sasl_init(mechanism="PLAIN", initial_response=amqp.list_([amqp.binary(SECRET)])),
    "as array": amqp.sasl_response(response=amqp.array([amqp.binary(SECRET)])),
    "as map": amqp.sasl_init(
        mechanism="PLAIN", initial_response=amqp.map_([(amqp.symbol(SECRET), amqp.raw("5607"))])
    ),
    "as map with a key twice": amqp.sasl_response(
        response=amqp.map_([(amqp.string(SECRET), None), (amqp.string(SECRET), None)])
    ),
    "as described": amqp.sasl_init(
        mechanism="PLAIN", initial_response=amqp.described(amqp.symbol(SECRET), amqp.binary(SECRET))
    ),
    "as composite": amqp.sasl_init(
        mechanism="PLAIN", initial_response=amqp.error(condition=amqp.symbol(SECRET))
    ),
    "bad string": amqp.sasl_init(mechanism="PLAIN", initial_response=amqp.string(SECRET + b"\xff")),
    "bad symbol": amqp.sasl_response(response=amqp.symbol(SECRET + b"\xff")),
    "no constructor": amqp.sasl_init(mechanism="PLAIN", initial_response=amqp.raw(SECRET)),
    "no constructor, response": amqp.sasl_response(response=amqp.raw(SECRET)),
    "too large": amqp.sasl_response(response=amqp.binary(SECRET, size=200)),
    "too large in four octets": amqp.sasl_response(response=amqp.raw(b"\xb0" + SECRET)),
    "too small": amqp.sasl_init(mechanism="PLAIN", initial_response=amqp.binary(SECRET, size=2)),
    "as list header": amqp.sasl_response(response=amqp.raw(b"\xd0" + SECRET)),
    "as array header": amqp.sasl_response(response=amqp.raw(b"\xf0" + SECRET)),
    "as hostname": amqp.sasl_init(mechanism="PLAIN", hostname=amqp.binary(SECRET)),
    "beyond": amqp.sasl_response(response=b"", extra=[amqp.binary(SECRET), amqp.string(SECRET)]),
    "the draft's fields": amqp.raw(
        amqp.described(
            amqp.ulong(0x41), amqp.list_([None, amqp.string("PLAIN"), amqp.binary(SECRET), "host"])
        )
    ),
    "in a map": amqp.described(amqp.ulong(0x41), amqp.map_([(amqp.symbol("r"), amqp.binary(SECRET))])),
    "alone": amqp.described(amqp.ulong(0x43), amqp.binary(SECRET)),
    "symbolic descriptor": amqp.described(amqp.symbol("amqp:sasl-response:list"), amqp.binary(SECRET)),
    "in an array": amqp.described(amqp.ulong(0x43), amqp.array([amqp.binary(SECRET)])),
    "list cut": amqp.raw(b"\x00\x53\x43\xc0" + SECRET),
    "list of one octet": amqp.raw(b"\x00\x53\x43\xc0\x77"),
}


def texts(value: object) -> list[str]:
    """Everything a decoded value may show of itself, and the values it keeps aside."""
    found = [repr(value)]
    if isinstance(value, Composite):
        found += [repr(value.odd), repr(value.extra)]
        found += [repr(item) for field, item in value.fields() if not field.secret]
        found += [repr(item) for item in value.values() if not isinstance(item, bytes)]
    return found


@pytest.mark.parametrize("octets", SECRETS.values(), ids=SECRETS)
def test_no_secret_is_in_a_problem_or_a_repr(octets: bytes) -> None:
    decoded, reader = read(octets)
    shown = texts(decoded) + [repr(found) for found in reader.problems]
    # Neither as text nor as a number: a misread size or code is an octet of it, too.
    tell_tale = ("swordfish", "sword", "fish", SECRET.hex(), "0x73", "0x77", str(0x73776F72), "115", "119")
    for text in shown:
        assert not any(piece in text for piece in tell_tale), text


def test_a_secret_where_it_belongs_is_kept_for_who_asks_for_it() -> None:
    decoded, reader = read(SECRETS["right"])
    assert isinstance(decoded, SaslInit)
    assert decoded.initial_response == SECRET
    assert repr(decoded) == "sasl-init(mechanism='PLAIN', initial-response=<hidden>)"
    assert reader.problems == []
    decoded, _ = read(SECRETS["right response"])
    assert isinstance(decoded, SaslResponse)
    assert decoded.response == SECRET


def test_that_a_secret_is_of_the_wrong_type_is_said_all_the_same() -> None:
    decoded, reader = read(SECRETS["as string"])
    assert problems(reader.problems) == [("T-COMP-TYPE", 13, "sasl-init.initial-response")]
    assert reader.problems[0].reason == (
        "the field requires the type `binary`, but the value has the type `string`"
    )
    assert decoded.odd == {1: Raw(b"")}
    _, reader = read(SECRETS["as map"])
    assert problems(reader.problems) == [("T-BOOL-OCTET", 27, "sasl-init.initial-response[0]")]


def test_what_follows_a_secret_is_shown_again() -> None:
    decoded, reader = read(
        amqp.list_([SECRETS["as string"], amqp.error(condition=amqp.string("shown")), amqp.raw("5607")])
    )
    assert decoded[1].odd == {0: "shown"}
    assert reader.problems[-1].reason == "a boolean's octet is 0x07, not 0x00 or 0x01"


@settings(max_examples=examples(300))
@given(st.sampled_from(list(amqp.COMPOSITES)).flatmap(strategies.composites), st.data())
def test_mutated_composites_are_read_without_raising(sample: Sample, data: st.DataObject) -> None:
    octets = bytearray(sample.octets)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(octets) - 1))
        octets[at] = data.draw(st.sampled_from((0, 1, 0x24, 0x40, 0x45, 0x53, 0x7F, 0xC0, 0xD0, 0xE0, 0xFF)))
    decoded, reader = read(bytes(octets))
    repr(decoded)
    assert (reader.depth, reader.path, reader.end, reader.cut, reader.hiding) == (
        0,
        [],
        len(octets),
        False,
        False,
    )
    assert (reader.short, reader.keys) == (False, "")


# ---- descriptors that no definition has ----


@pytest.mark.parametrize(
    ("descriptor", "code"),
    [
        (amqp.ulong(0x99), "T-DESC-DOMAIN0"),
        (amqp.ulong(0xFFFFFFFF), "T-DESC-DOMAIN0"),
        (amqp.ulong(0x100000000), None),
        (amqp.ulong(0x24), None),
        (amqp.ulong(0x75), None),
        (amqp.ulong(0x173), None),
    ],
)
def test_numeric_descriptors_of_no_domain(descriptor: bytes, code: str | None) -> None:
    _, reader = read(
        amqp.open_(container_id="c", properties=[("k", amqp.described(descriptor, amqp.list_([])))])
    )
    assert [found.code for found in reader.problems] == ([] if code is None else [code])


@pytest.mark.parametrize(
    "descriptor", [amqp.ulong(0x1E), amqp.symbol("x:error"), amqp.symbol("error"), amqp.uint(0x1D)]
)
def test_composite_under_another_descriptor(descriptor: bytes) -> None:
    error = amqp.described(descriptor, amqp.list_([amqp.symbol("x:y")]))
    decoded, reader = read(amqp.close(error=error))
    assert problems(reader.problems) == [("T-COMP-DESC", 6, "close.error")]
    assert decoded.error is None
    _, reader = read(amqp.close(error=amqp.described(amqp.ulong(0x24), amqp.list_([]))))
    assert problems(reader.problems) == [("T-COMP-TYPE", 6, "close.error")]
