"""The JSON form loses nothing: what a value, composite or message means can be read back from it."""

from __future__ import annotations

import datetime
import json
import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.sampling import examples, thorough
from support.strategies import (
    Meaning,
    Sample,
    composites,
    messages,
    primitives,
    values,
)

from amqpscope.limits import MAX_NAMED_DELIVERIES
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.reassembly.provenance import Provenance
from amqpscope.report.amqp10.json_form import body_json, composite_json, message_json, value_json
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames
from amqpscope.report.secrets import is_secret_key
from dissectors.amqp10.composite import Composite, Reader
from dissectors.amqp10.frame import FrameDecoder
from dissectors.amqp10.message import Message
from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.registry import FINAL
from dissectors.interface import Frame

COMPOSITES = [name for name in amqp.COMPOSITES if not name.startswith("sasl")]

# ---- from JSON back to what was meant ----------------------------------------------------------------------

NUMBERS = ("ubyte", "ushort", "uint", "ulong", "byte", "short", "int", "long")


def meant(value: Any) -> Meaning:
    """What a value of free type means."""
    if value is None:
        return ("null", None)
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, float):
        return ("double", struct.pack(">d", value))
    if isinstance(value, list):
        return ("list", tuple(map(meant, value)))
    assert isinstance(value, dict), value
    if "type" in value:
        return composite_meant(value["type"], {name: item for name, item in value.items() if name != "type"})
    if "array" in value:
        items = tuple(map(meant, value["items"]))
        assert value["count"] == len(items)
        if "descriptor" in value:
            items = tuple(described(meant(value["descriptor"]), item) for item in items)
        return ("array", items)
    ((kind, item),) = value.items()
    if kind in NUMBERS:
        assert type(item) is int
        return (kind, item)
    if kind == "symbol":
        return ("symbol", item)
    if kind == "char":
        return ("char", ord(item))
    if kind == "binary":
        return ("binary", bytes.fromhex(item))
    if kind == "timestamp":
        return ("timestamp", milliseconds(item))
    if kind == "uuid":
        return ("uuid", uuid.UUID(item).bytes)
    if kind in ("float", "double"):
        return (kind, struct.pack(">f" if kind == "float" else ">d", float(item)))
    if kind.startswith("decimal"):
        return (kind, Decimal(item).as_tuple())
    if kind == "map":
        return ("map", tuple((meant(key), meant(entry)) for key, entry in item))
    assert kind == "described", value
    return ("described", meant(item["descriptor"]), meant(item["value"]))


def described(descriptor: Meaning, item: Meaning) -> Meaning:
    """Arrays of several descriptors have them nested: the outermost first."""
    if descriptor[0] == "described":
        return described(descriptor[1], ("described", descriptor[2], item))
    return ("described", descriptor, item)


def milliseconds(text: str) -> int:
    if text.endswith("ms"):
        return int(text[:-2])
    moment = datetime.datetime.fromisoformat(text)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)


def composite_meant(name: str, fields: dict[str, Any]) -> Meaning:
    kinds = dict(amqp.COMPOSITES[name][1])
    return ("composite", name, {field: field_meant(kinds[field], value) for field, value in fields.items()})


def field_meant(kind: str, value: Any) -> Meaning:
    """What a field means that is of this kind, or `{"odd": value}`."""
    if isinstance(value, dict) and list(value) == ["odd"]:
        return meant(value["odd"])
    if kind == "symbols":
        assert isinstance(value, list)
        return ("array", tuple(("symbol", item) for item in value))
    if kind in ("fields", "unsettled"):
        return keyed_meant("symbol", value)
    if isinstance(value, dict):
        return meant(value)
    if kind == "binary":
        return ("binary", bytes.fromhex(value))
    if kind == "timestamp":
        return ("timestamp", milliseconds(value))
    if kind in ("string", "symbol"):
        assert isinstance(value, str)
        return (kind, value)
    if kind == "boolean":
        assert isinstance(value, bool)
        return (kind, value)
    if kind in NUMBERS:
        assert type(value) is int
        return (kind, value)
    return meant(value)


def keyed_meant(key: str, value: dict[str, Any]) -> Meaning:
    """A map in a place where its keys are of one type."""
    if list(value) == ["map"] and isinstance(value["map"], list):
        return meant(value)
    return ("map", tuple(((key, name), meant(item)) for name, item in value.items()))


def plain(meaning: Any) -> Any:
    """A meaning with what AMQP does not tell apart made equal.

    One symbol is as good as an array of one where several are allowed, a described list of a known
    descriptor is a composite, and a NaN has no payload.
    """
    if not isinstance(meaning, tuple) or not meaning:
        return meaning
    kind = meaning[0]
    if kind == "composite":
        kinds = dict(amqp.COMPOSITES[meaning[1]][1])
        fields = {}
        for name, item in meaning[2].items():
            if kinds[name] == "symbols" and item[0] == "symbol":
                item = ("array", (item,))
            if item[0] != "null":
                fields[name] = plain(item)
        return ("composite", meaning[1], fields)
    if kind in ("float", "double"):
        number = struct.unpack(">f" if kind == "float" else ">d", meaning[1])[0]
        return (kind, meaning[1] if number == number else "nan")
    if kind.startswith("decimal") and meaning[1].exponent in ("n", "N"):
        return (kind, meaning[1].exponent)
    if kind in ("list", "array"):
        return (kind, tuple(map(plain, meaning[1])))
    if kind == "map":
        return (kind, tuple((plain(key), plain(item)) for key, item in meaning[1]))
    if kind == "described":
        return (kind, plain(meaning[1]), plain(meaning[2]))
    return meaning


def decoded(octets: bytes) -> object:
    reader = Reader(octets, 0, len(octets), 0, FINAL)
    value = reader.value()
    assert reader.pos == len(octets)
    return value


# ---- values ------------------------------------------------------------------------------------------------


def signalling_keys(meaning: Any) -> bool:
    """Whether a signalling NaN is a key of a map in it."""
    if not isinstance(meaning, tuple):
        return False
    if len(meaning) == 2 and meaning[0] == "map":
        return any(
            (str(key[0]).startswith("decimal") and key[1].exponent == "N") or signalling_keys(item)
            for key, item in meaning[1]
        )
    return any(map(signalling_keys, meaning))


@settings(max_examples=2_000 if thorough() else examples(100))
@given(values())
def test_values(sample: Sample) -> None:
    assume(not signalling_keys(sample.meaning))
    assert plain(meant(json.loads(value_json(decoded(sample.octets))))) == plain(sample.meaning)


@given(primitives())
def test_primitives(sample: Sample) -> None:
    text = value_json(decoded(sample.octets))
    assert text.isascii()
    assert plain(meant(json.loads(text))) == plain(sample.meaning)


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (amqp.null(), "null"),
        (amqp.boolean(True), "true"),
        (amqp.string("é\u2028\x1b\U0001f375"), r'"\u00e9\u2028\u001b\ud83c\udf75"'),
        (amqp.symbol("a"), '{"symbol": "a"}'),
        (amqp.ulong(2**64 - 1), '{"ulong": 18446744073709551615}'),
        (amqp.double(float("inf")), '{"double": "inf"}'),
        (amqp.float_(float("nan")), '{"float": "nan"}'),
        (amqp.float_(0.5), '{"float": 0.5}'),
        (amqp.double(1.0), "1.0"),
        (amqp.decimal64(Decimal("1.50")), '{"decimal64": "1.50"}'),
        (amqp.timestamp(1_700_000_000_123), '{"timestamp": "2023-11-14T22:13:20.123Z"}'),
        (amqp.timestamp(-(2**63)), '{"timestamp": "-9223372036854775808ms"}'),
        (amqp.map_([("a", amqp.uint(1)), ("a", None)]), '{"map": [["a", {"uint": 1}], ["a", null]]}'),
        (
            amqp.array([amqp.symbol("a"), amqp.symbol("b")]),
            '{"array": "symbol", "count": 2, "items": [{"symbol": "a"}, {"symbol": "b"}]}',
        ),
        (
            amqp.described("x:y", amqp.list_([])),
            '{"described": {"descriptor": {"symbol": "x:y"}, "value": []}}',
        ),
        (amqp.raw(b"\xa2\x01x"), '{"raw": "a20178"}'),
        (amqp.accepted(), '{"type": "accepted"}'),
    ],
)
def test_the_documented_forms(octets: bytes, text: str) -> None:
    assert value_json(decoded(octets)) == text


# ---- composites --------------------------------------------------------------------------------------------


@settings(max_examples=2_000 if thorough() else examples(60))
@given(st.sampled_from(COMPOSITES).flatmap(composites))
def test_composites(sample: Sample) -> None:
    composite = decoded(sample.octets)
    assert isinstance(composite, Composite)
    fields = json.loads(composite_json(composite))
    assert plain(meant(fields)) == plain(sample.meaning)


@st.composite
def odd_composites(draw: st.DrawFn) -> tuple[bytes, Meaning]:
    """A composite whose fields hold values of any type, and more of them than it has fields."""
    name = draw(st.sampled_from(COMPOSITES))
    fields: dict[str, Sample] = {}
    for field, _ in amqp.COMPOSITES[name][1]:
        if draw(st.booleans()):
            fields[field] = draw(values(3))
    octets = amqp.composite(
        name, **{field.replace("-", "_"): sample.octets for field, sample in fields.items()}
    )
    return octets, ("composite", name, {field: sample.meaning for field, sample in fields.items()})


@settings(max_examples=2_000 if thorough() else examples(60))
@given(odd_composites())
def test_composites_with_fields_of_other_types(drawn: tuple[bytes, Meaning]) -> None:
    octets, meaning = drawn
    assume(not signalling_keys(tuple(meaning[2].values())))
    composite = decoded(octets)
    assert isinstance(composite, Composite)
    assert plain(meant(json.loads(composite_json(composite)))) == plain(meaning)


def test_an_odd_string_is_reported_from_one_of_the_right_type() -> None:
    for octets, field in (
        (amqp.attach(name="01ff"), '"name": "01ff"'),
        (amqp.attach(name=amqp.symbol("01ff")), '"name": {"odd": {"symbol": "01ff"}}'),
        (amqp.transfer(delivery_tag=b"\x01\xff"), '"delivery-tag": "01ff"'),
        (amqp.transfer(delivery_tag=amqp.string("01ff")), '"delivery-tag": {"odd": "01ff"}'),
        (amqp.error(condition=amqp.string("x:y")), '"condition": {"odd": "x:y"}'),
        (amqp.properties(creation_time=amqp.string("x")), '"creation-time": {"odd": "x"}'),
    ):
        composite = decoded(octets)
        assert isinstance(composite, Composite)
        assert field in composite_json(composite)


def test_what_stands_behind_the_last_field() -> None:
    composite = decoded(amqp.accepted(extra=["a", amqp.uint(1)]))
    assert isinstance(composite, Composite)
    assert composite_json(composite) == '{"type": "accepted", "extra": ["a", {"uint": 1}]}'


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([], "{}"),
        ([(amqp.symbol("a"), "x")], '{"a": "x"}'),
        ([(amqp.symbol("map"), "x")], '{"map": [[{"symbol": "map"}, "x"]]}'),
        ([(amqp.symbol("map"), "x"), (amqp.symbol("b"), None)], '{"map": "x", "b": null}'),
        ([(amqp.string("a"), "x")], '{"map": [["a", "x"]]}'),
        (
            [(amqp.symbol("a"), "x"), (amqp.symbol("a"), "y")],
            '{"map": [[{"symbol": "a"}, "x"], [{"symbol": "a"}, "y"]]}',
        ),
        (
            [(amqp.symbol("a"), "x"), (amqp.uint(1), "y")],
            '{"map": [[{"symbol": "a"}, "x"], [{"uint": 1}, "y"]]}',
        ),
    ],
)
def test_maps_whose_keys_are_names(pairs: list[tuple[bytes, Any]], text: str) -> None:
    composite = decoded(amqp.begin(properties=amqp.map_(pairs)))
    assert isinstance(composite, Composite)
    assert composite_json(composite) == f'{{"type": "begin", "properties": {text}}}'


@settings(max_examples=2_000 if thorough() else examples(60))
@given(st.sampled_from(("transfer", "disposition")).flatmap(composites))
def test_the_short_way_gives_what_the_long_one_gives(sample: Sample) -> None:
    """Transfers and dispositions have code of their own, unless something stands behind their last field."""
    octets = amqp.frame(sample.octets)
    decoder = FrameDecoder()
    decoder.feed(octets, 0, len(octets))
    frame = decoder.frames[0]
    short = json.loads(body_json(frame, False))
    assert isinstance(frame.body, Composite)
    frame.body.extra = []
    assert json.loads(body_json(frame, False)) == short | {"extra": []}


# ---- messages ----------------------------------------------------------------------------------------------


@settings(max_examples=2_000 if thorough() else examples(60))
@given(messages())
def test_messages(sample: Any) -> None:
    message = Message(0, [sample.octets], len(sample.octets), True)
    reported = json.loads(message_json(message, False, True))
    assert (reported["format"], reported["size"], reported["complete"]) == (0, len(sample.octets), True)
    sections = []
    for name, meaning in sample.sections:
        if name in ("header", "properties"):
            found: Meaning = composite_meant(name, reported[name])
        elif name in reported:
            found = keyed_meant("string" if name == "application-properties" else "symbol", reported[name])
        else:
            found = meant(reported["body"].pop(0)["value"])
        sections.append((plain(found), plain(meaning)))
    assert reported["body"] == []
    for found, meaning in sections:
        assert found == meaning


def test_bodies_only_when_asked_for() -> None:
    octets = amqp.data(b"abc") + amqp.data(b"")
    message = Message(0, [octets], len(octets), True)
    assert json.loads(message_json(message, False, False))["body"] == [
        {"section": "data", "size": 8},
        {"section": "data", "size": 5},
    ]
    assert [body["value"] for body in json.loads(message_json(message, False, True))["body"]] == [
        {"binary": "616263"},
        {"binary": ""},
    ]


def test_a_section_that_stands_twice_is_not_lost() -> None:
    octets = amqp.properties(subject="a") + amqp.properties(subject="b") + amqp.amqp_value("x")
    reported = json.loads(message_json(Message(0, [octets], len(octets), True), False, False))
    assert reported["properties"] == {"subject": "a"}
    assert reported["body"][0] == {"section": "properties", "size": 12, "value": {"subject": "b"}}


def test_a_batch() -> None:
    inner = [amqp.properties(message_id=text) + amqp.data(text.encode()) for text in ("m-1", "m-2")]
    octets = amqp.properties(message_id="batch") + b"".join(map(amqp.data, inner))
    reported = json.loads(message_json(Message(0x80013700, [octets], len(octets), True), False, True))
    assert reported["format"] == 0x80013700
    assert [one["properties"]["message-id"] for one in reported["batch"]] == ["m-1", "m-2"]
    assert reported["batch"][1]["body"] == [{"section": "data", "size": 8, "value": {"binary": "6d2d32"}}]


# ---- frames ------------------------------------------------------------------------------------------------

KEYS = {
    "capture": str,
    "packet": int,
    "time": str,
    "connection": str,
    "peer": str,
    "protocol": str,
    "kind": str,
    "name": str,
    "channel": (int, type(None)),
    "size": int,
    "fields": dict,
    "problems": list,
}


def record(octets: bytes, time: int = 1_700_000_000_123_456_789, direction: int = 0) -> FrameRecord:
    connection = Connection("c", 0, 2, bytes([10, 0, 0, 1, 10, 0, 0, 2, 0xC0, 0x01, 0x16, 0x28]))
    connection.client = 0
    connection.protocol = "amqp10"
    decoder = FrameDecoder()
    decoder.feed(octets, 0, len(octets))
    first = Provenance(7, time, 0)
    return FrameRecord(connection, direction, first, first, decoder.frames[0])


def test_the_contract_of_a_frame() -> None:
    one = record(amqp.frame(amqp.attach(name="l", handle=3, role=True), channel=5))
    reported = json.loads(FrameForm("file \x1b", False, LinkNames()).line(one, None))
    assert reported == {
        "capture": "file \x1b",
        "packet": 7,
        "time": "2023-11-14T22:13:20.123456789Z",
        "connection": "10.0.0.1:49153>10.0.0.2:5672#2",
        "peer": "client",
        "protocol": "amqp10",
        "kind": "amqp",
        "name": "attach",
        "channel": 5,
        "size": 20,
        "fields": {"name": "l", "handle": 3, "role": True},
        "problems": [],
    }
    assert list(reported) == list(KEYS)


@pytest.mark.parametrize(
    "octets",
    [
        amqp.AMQP_HEADER,
        amqp.SASL_HEADER,
        b"AMQP\x00\x00\x09\x01",
        amqp.frame(),
        amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["A", "B"])),
        amqp.frame(amqp.transfer(handle=0), b"\x3f"),
        amqp.frame(amqp.list_([])),
        amqp.frame(amqp.described("x:y", "z")),
        amqp.frame(b"\x00"),
        amqp.frame(amqp.properties(subject="a")),
    ],
)
def test_every_frame_has_the_contracts_keys(octets: bytes) -> None:
    reported = json.loads(FrameForm("c", True, LinkNames()).line(record(octets), None))
    for key, kind in KEYS.items():
        assert isinstance(reported[key], kind), key
    for problem in reported["problems"]:
        assert {name: type(value) for name, value in problem.items()} == {
            "code": str,
            "offset": int,
            "path": str,
            "reason": str,
        }


def test_a_line_is_of_its_own_record() -> None:
    """What is remembered of the line before does not show in the next."""
    form = FrameForm("c", False, LinkNames())
    lines = []
    for time, direction, port in ((5, 0, 1), (5, 1, 1), (7, 1, 2), (7, 0, 2), (5, 0, 1)):
        one = record(amqp.frame(), time, direction)
        one.connection = Connection("c", port, 0, bytes([10, 0, 0, 1, 10, 0, 0, 2, 0, port, 0x16, 0x28]))
        one.connection.client = 0
        lines.append(json.loads(form.line(one, None)))
    assert [(line["time"][-3:-1], line["peer"], line["connection"][9:10]) for line in lines] == [
        ("05", "client", "1"),
        ("05", "server", "1"),
        ("07", "server", "2"),
        ("07", "client", "2"),
        ("05", "client", "1"),
    ]


def test_the_protocol_may_become_known_later() -> None:
    form = FrameForm("c", False, LinkNames())
    one = record(amqp.AMQP_HEADER)
    one.connection.protocol = "amqp091"
    assert json.loads(form.line(one, None))["protocol"] == "amqp091"
    one.connection.protocol = "amqp10"
    assert json.loads(form.line(one, None))["protocol"] == "amqp10"


def test_keys_of_secrets_are_found_again_after_many_others() -> None:
    assert is_secret_key("password")
    for number in range(MAX_NAMED_DELIVERIES):
        assert not is_secret_key(f"key-{number}")
    assert is_secret_key("password")


def test_a_frame_without_octets() -> None:
    one = record(amqp.frame())
    one.frame = Frame(0, 100, "skipped", "skipped", -1)
    one.frame.missing = 40
    reported = json.loads(FrameForm("c", False, LinkNames()).line(one, None))
    assert (reported["kind"], reported["size"], reported["missing"], reported["fields"]) == (
        "skipped",
        100,
        40,
        {},
    )


def test_booleans_stay_booleans_where_the_rest_is_hidden() -> None:
    transfer = Transfer()
    transfer.handle = 3
    transfer.delivery_tag = b"tag"
    transfer.settled = False
    transfer.more = True
    frame = Frame(0, 8, "amqp", "transfer", 0)
    frame.body = transfer
    shown = body_json(frame, True)
    assert shown == '{"handle": 3, "delivery-tag": {"hidden": 3}, "settled": false, "more": true}'
