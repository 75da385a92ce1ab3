"""The JSON form of AMQP 0-9-1 loses nothing: arguments, properties and tables can be read back from it."""

from __future__ import annotations

import datetime
import json
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp
from support.rendered import as_json, records
from support.sampling import examples

from amqpscope.report.amqp091.json_form import value_json
from amqpscope.report.secrets import is_secret_key
from dissectors.amqp091.registry import METHODS
from dissectors.amqp091.tables import PRINTED, RABBITMQ, FieldTable

Value = tuple[str, Any]
"""A tag of the RabbitMQ dialect and the value, as `amqp091_encode` takes them."""

NUMBERS = {
    "short-short-int": "b",
    "short-short-uint": "B",
    "short-int": "s",
    "short-uint": "u",
    "long-int": "I",
    "long-uint": "i",
    "long-long-int": "L",
}
RANGES = {
    "b": (8, True),
    "B": (8, False),
    "s": (16, True),
    "u": (16, False),
    "I": (32, True),
    "i": (32, False),
}
RANGES |= {"L": (64, True)}


def _integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20).filter(
    lambda name: not is_secret_key(name)
)
TEXT = st.text(max_size=20).filter(lambda text: "://" not in text)


def _scalars() -> st.SearchStrategy[Value]:
    numbers = [st.tuples(st.just(tag), _integers(*RANGES[tag])) for tag in RANGES]
    return st.one_of(
        *numbers,
        st.tuples(st.just("t"), st.booleans()),
        st.just(("V", None)),
        st.tuples(st.just("S"), TEXT),
        st.tuples(st.just("S"), st.binary(max_size=6).map(lambda octets: b"\xff" + octets)),
        st.tuples(st.just("x"), st.binary(max_size=6)),
        st.tuples(st.just("d"), st.floats(allow_nan=False)),
        st.tuples(st.just("f"), st.floats(width=32, allow_nan=False)),
        st.tuples(st.just("T"), st.integers(0, 2**64 - 1)),
        st.tuples(st.just("D"), st.tuples(st.integers(0, 255), _integers(32, True))),
    )


def tables(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Any]:
    """The pairs of a table, no name twice."""
    return st.lists(st.tuples(NAMES, inner), max_size=4, unique_by=lambda pair: pair[0])


def _compound(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(
        st.tuples(st.just("A"), st.lists(inner, max_size=4)), st.tuples(st.just("F"), tables(inner))
    )


def _with_names_twice(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.tuples(st.just("F"), st.lists(st.tuples(NAMES, inner), max_size=4))


SOUND = st.recursive(_scalars(), _compound, max_leaves=10)
VALUES = st.recursive(
    _scalars(), lambda inner: st.one_of(_compound(inner), _with_names_twice(inner)), max_leaves=10
)


# ---- from JSON back to what was sent -----------------------------------------------------------------------


def meant(value: Any) -> Value:
    """The tag and value that JSON stands for."""
    if value is None:
        return ("V", None)
    if isinstance(value, bool):
        return ("t", value)
    if isinstance(value, str):
        return ("S", value)
    if isinstance(value, float):
        return ("d", struct.pack(">d", value))
    if isinstance(value, list):
        return ("A", [meant(item) for item in value])
    ((kind, item),) = value.items()
    if kind in NUMBERS:
        assert type(item) is int
        return (NUMBERS[kind], item)
    if kind == "table":
        return ("F", pairs_meant(item))
    if kind in ("long-string", "binary"):
        return ("S" if kind == "long-string" else "x", bytes.fromhex(item))
    if kind == "timestamp":
        return ("T", seconds(item))
    if kind in ("float", "double"):
        return (
            ("f", struct.pack(">f", float(item)))
            if kind == "float"
            else ("d", struct.pack(">d", float(item)))
        )
    assert kind == "decimal", value
    sign, digits, exponent = Decimal(item).as_tuple()
    assert isinstance(exponent, int)
    return ("D", (-exponent, (-1 if sign else 1) * int("".join(map(str, digits)))))


def pairs_meant(value: Any) -> list[tuple[str, Value]]:
    """The pairs that a table's JSON stands for: an object's, or a list's."""
    if isinstance(value, dict):
        return [(name, meant(item)) for name, item in value.items()]
    return [(name, meant(item)) for name, item in value]


def table_meant(value: dict[str, Any]) -> list[tuple[str, Value]]:
    """The pairs of a field that is a table."""
    if list(value) == ["table"] and isinstance(value["table"], (list, dict)):
        if isinstance(value["table"], list):
            return pairs_meant(value["table"])
    return pairs_meant(value)


def seconds(text: str) -> int:
    if text.endswith("s"):
        return int(text[:-1])
    moment = datetime.datetime.fromisoformat(text)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(seconds=1)


def plain(value: Value) -> Value:
    """A value as `meant` gives it."""
    tag, item = value
    if tag == "A":
        return (tag, [plain(one) for one in item])
    if tag == "F":
        return (tag, [(name, plain(one)) for name, one in item])
    return (tag, struct.pack(">" + tag, item)) if tag in "fd" else value


def read(octets: bytes, dialect: int = RABBITMQ) -> object:
    """The only value of a table, of which these are the octets behind the name `n`."""
    table = FieldTable(b"\x01n" + octets).read(dialect)
    assert len(table) == 1
    return table.get("n")


# ---- values ------------------------------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(VALUES)
def test_any_value(value: Value) -> None:
    text = value_json(read(amqp.value(value)))
    assert text.isascii()
    assert meant(json.loads(text)) == plain(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("é\u2028\x1b\U0001f375", r'"\u00e9\u2028\u001b\ud83c\udf75"'),
        (("S", b"\x00\xff"), '{"long-string": "00ff"}'),
        (("x", b"ab"), '{"binary": "6162"}'),
        (("b", -1), '{"short-short-int": -1}'),
        (("B", 255), '{"short-short-uint": 255}'),
        (("s", -2), '{"short-int": -2}'),
        (("u", 65535), '{"short-uint": 65535}'),
        (("I", -3), '{"long-int": -3}'),
        (("i", 2**32 - 1), '{"long-uint": 4294967295}'),
        (("l", -4), '{"long-long-int": -4}'),
        (("L", 2**63 - 1), '{"long-long-int": 9223372036854775807}'),
        (("d", 1.0), "1.0"),
        (("d", float("-inf")), '{"double": "-inf"}'),
        (("f", 0.5), '{"float": 0.5}'),
        (("f", float("nan")), '{"float": "nan"}'),
        (("D", (2, 150)), '{"decimal": "1.50"}'),
        (("D", (0, -7)), '{"decimal": "-7"}'),
        (("T", 1_700_000_000), '{"timestamp": "2023-11-14T22:13:20Z"}'),
        (("T", 2**64 - 1), '{"timestamp": "18446744073709551615s"}'),
        (("A", [("B", 1), "x", ("A", [])]), '[{"short-short-uint": 1}, "x", []]'),
        ({}, '{"table": {}}'),
        ({"a": "x", "table": None}, '{"table": {"a": "x", "table": null}}'),
        ({"table": "x"}, '{"table": [["table", "x"]]}'),
        (("F", [("a", "x"), ("a", None)]), '{"table": [["a", "x"], ["a", null]]}'),
        (("F", [(b"\xff", "x")]), '{"table": [[{"raw": "ff"}, "x"]]}'),
        (
            {"password": "x", "p": "http://u:pw@h/"},
            '{"table": {"password": {"hidden": 1}, "p": "http://u:(hidden)@h/"}}',
        ),
        (("F", [(b"\xffpassword", "x")]), '{"table": [[{"hidden": 9}, {"hidden": 1}]]}'),
    ],
)
def test_the_documented_forms(value: Any, text: str) -> None:
    assert value_json(read(amqp.value(value))) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (("s", "abc"), '{"short-string": "abc"}'),
        (("s", b"\xff"), '{"raw": "ff"}'),
        (("U", -2), '{"short-int": -2}'),
        (("l", 2**64 - 1), '{"long-long-uint": 18446744073709551615}'),
        (("D", (1, 2**32 - 1)), '{"decimal": "429496729.5"}'),
    ],
)
def test_the_printed_dialect(value: Any, text: str) -> None:
    assert value_json(read(amqp.value(value, amqp.PRINTED), PRINTED)) == text


def test_octets_that_are_no_value() -> None:
    assert value_json(read(b"?ab")) == '{"raw": "3f6162"}'
    assert value_json(read(b"?secret")) == '{"hidden": 7}'


def test_octets_behind_the_last_pair() -> None:
    table = FieldTable(b"\x01at\x01\x09ab").read()
    assert value_json(table) == '{"table": [["a", true]], "rest": {"raw": "096162"}}'
    table = FieldTable(b"\x01at\x01\x29password").read()
    assert value_json(table) == '{"table": [["a", true]], "rest": {"hidden": 9}}'


# ---- methods -----------------------------------------------------------------------------------------------

SECRET = {
    ("connection.start-ok", "response"),
    ("connection.secure", "challenge"),
    ("connection.secure-ok", "response"),
    ("connection.update-secret", "new-secret"),
}

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "o": st.integers(0, 255),
    "h": st.integers(0, 65535),
    "l": st.integers(0, 2**32 - 1),
    "q": st.integers(0, 2**64 - 1),
    "?": st.booleans(),
    "s": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0:"), max_size=30),
    "S": st.one_of(TEXT.map(str.encode), st.binary(max_size=6).map(lambda octets: b"\xff" + octets)),
    "F": tables(SOUND),
}


def expected(kind: str, value: Any) -> Any:
    if kind == "S":
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"long-string": value.hex()}
    return value


@settings(max_examples=examples(300))
@given(st.sampled_from(sorted(amqp.METHODS)), st.data())
def test_every_method(name: str, data: st.DataObject) -> None:
    form = [field.split(":") for field in amqp.METHODS[name][2].split()]
    given = {field: data.draw(KINDS[kind]) for field, kind in form}
    found = records(
        amqp.say("channel.open", 1) + amqp.say(name, 0 if name.startswith("connection.") else 1, **given)
    )
    reported = json.loads(as_json(found)[-1])
    assert (reported["kind"], reported["name"], reported["problems"]) == ("method", name, [])
    fields = reported["fields"]
    assert list(fields) == [field.rstrip("_").replace("_", "-") for field, _ in form]
    for field, kind in form:
        wire = field.rstrip("_").replace("_", "-")
        if (name, wire) in SECRET:
            assert fields[wire] == {"hidden": len(given[field])}
        elif kind == "F":
            assert table_meant(fields[wire]) == [(key, plain(item)) for key, item in given[field]]
        else:
            assert fields[wire] == expected(kind, given[field])


def test_no_method_is_left_out() -> None:
    assert {method.name for method in METHODS} == set(amqp.METHODS)


PUBLISHED = amqp.say("basic.publish", 1, exchange="x", routing_key="k", immediate=True)
PUBLISH = {
    "type": "basic.publish",
    "reserved-1": 0,
    "exchange": "x",
    "routing-key": "k",
    "mandatory": False,
    "immediate": True,
}


@settings(max_examples=examples(100))
@given(st.data())
def test_properties(data: st.DataObject) -> None:
    form = [field.split(":") for field in amqp.PROPERTIES.split()]
    given = {}
    for field, kind in form:
        if data.draw(st.booleans()):
            given[field] = data.draw(KINDS[kind])
    reported = [json.loads(line) for line in as_json(records(PUBLISHED + amqp.content(1, b"", **given)))]
    assert reported[1]["name"] == "content-header"
    fields = reported[1]["fields"]
    properties = fields.pop("properties")
    assert fields == {"class-id": 60, "weight": 0, "body-size": 0}
    assert reported[1]["message"] == {
        "size": 0,
        "complete": True,
        "method": PUBLISH,
        "properties": properties,
    }
    assert list(properties) == [field.replace("_", "-") for field, _ in form if field in given]
    for field, kind in form:
        shown = properties.get(field.replace("_", "-"))
        if field == "headers" and field in given:
            assert table_meant(shown) == [(key, plain(item)) for key, item in given[field]]
        elif field == "timestamp" and field in given:
            assert seconds(shown) == given[field]
        elif field in given:
            assert shown == expected(kind, given[field])


# ---- frames that are not as they should be ----------------------------------------------------------------

OPENED = amqp.say("channel.open", 1)


def last(octets: bytes, bodies: bool = False) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(as_json(records(OPENED + octets), bodies)[-1])
    return reported


def test_what_there_was_no_room_for_is_absent() -> None:
    reported = last(
        amqp.frame(amqp.METHOD, 1, amqp.method("basic.publish", exchange="x", routing_key="k")[:-2])
    )
    assert reported["fields"] == {"reserved-1": 0, "exchange": "x"}
    assert [problem["code"] for problem in reported["problems"]] == ["T-LENGTH-BOUNDS"]


def test_a_short_string_that_is_none() -> None:
    reported = last(amqp.say("basic.publish", 1, exchange=b"\xff", routing_key="k"))
    assert reported["fields"]["exchange"] == {"odd": {"raw": "ff"}}
    assert reported["fields"]["routing-key"] == "k"
    reported = last(PUBLISHED + amqp.content(1, b"", message_id=b"password\xff"))
    assert reported["fields"]["properties"] == {"message-id": {"odd": {"hidden": 9}}}


def test_a_method_that_nobody_knows() -> None:
    reported = last(amqp.frame(amqp.METHOD, 1, b"\0\x63\0\x05abc"))
    assert (reported["kind"], reported["name"]) == ("method", "undecodable")
    assert reported["fields"] == {"class-id": 99, "method-id": 5}


def test_frames_without_fields() -> None:
    assert last(amqp.heartbeat())["fields"] == {}
    assert last(amqp.frame(4, 1, b"abc"))["kind"] == "unknown"
    assert last(amqp.frame(4, 1, b"abc"))["fields"] == {}
    assert last(amqp.frame(amqp.METHOD, 1, b"abc"))["fields"] == {}
    assert last(amqp.frame(amqp.HEADER, 1, b"abc"))["fields"] == {}


def test_the_protocol_header() -> None:
    reported = json.loads(as_json(records(amqp.header()))[0])
    assert reported["fields"] == {
        "protocol": "AMQP 0-9-1",
        "protocol-id": 0,
        "major": 0,
        "minor": 9,
        "revision": 1,
    }


# ---- messages ----------------------------------------------------------------------------------------------


def test_a_message_stands_at_the_frame_that_ends_it() -> None:
    reported = [
        json.loads(line) for line in as_json(records(PUBLISHED + amqp.content(1, b"hello", frame_max=11)))
    ]
    assert [frame["name"] for frame in reported] == ["basic.publish", "content-header", "body", "body"]
    assert [frame.get("payload") for frame in reported] == [None, None, 3, 2]
    assert [("message" in frame) for frame in reported] == [False, False, False, True]
    assert reported[3]["message"] == {"size": 5, "complete": True, "method": PUBLISH, "properties": {}}


@pytest.mark.parametrize(
    ("body", "shown"),
    [(b"hello", "hello"), (b"", ""), ("é\x1b".encode(), "é\x1b"), (b"\x00\xff", {"binary": "00ff"})],
)
def test_bodies_are_reported_if_asked_for(body: bytes, shown: Any) -> None:
    reported = last(PUBLISHED + amqp.content(1, body), bodies=True)
    assert reported["message"]["body"] == shown
    assert "kept" not in reported["message"]
    assert "body" not in last(PUBLISHED + amqp.content(1, body))["message"]


def test_a_message_that_is_cut_short() -> None:
    reported = last(
        PUBLISHED + amqp.content(1, b"hello", frame_max=11)[:-10] + amqp.say("basic.ack", 1, delivery_tag=1)
    )
    assert reported["name"] == "basic.ack"
    message = reported["message"]
    assert (message["size"], message["complete"], message["body-size"]) == (3, False, 5)


def test_a_message_without_its_method() -> None:
    reported = last(amqp.content(1, b"hello"))
    assert reported["message"]["method"] is None
    assert reported["message"]["complete"] is False


def test_a_message_without_its_header() -> None:
    reported = last(PUBLISHED + amqp.frame(amqp.HEADER, 1, b"abc") + amqp.say("basic.ack", 1, delivery_tag=1))
    assert reported["message"]["properties"] is None
    assert "body-size" not in reported["message"]


def test_what_is_not_kept_of_a_body_is_reported() -> None:
    found = records(PUBLISHED + amqp.content(1, b"hello"))
    found[-1].message.parts = [b"hel"]  # type: ignore[union-attr]
    found[-1].message.kept = 3  # type: ignore[union-attr]
    message = json.loads(as_json(found, bodies=True)[-1])["message"]
    assert (message["body"], message["kept"], message["size"]) == ("hel", 3, 5)


def test_what_was_said_before_is_not_said_of_another() -> None:
    """Same octets in another field, another class, another method: each has its own."""
    wire = b""
    for name, value in (("content_type", "x"), ("content_encoding", "x"), ("content_type", "x")):
        for key in ("a", "b"):
            wire += amqp.say("basic.publish", 1, exchange="", routing_key=key)
            wire += amqp.content(1, b"hello", **{name: value})
    reported = [json.loads(line) for line in as_json(records(OPENED + wire))]
    headers = [frame["fields"]["properties"] for frame in reported if frame["name"] == "content-header"]
    kinds = ["content-type", "content-encoding", "content-type"]
    assert headers == [{kind: "x"} for kind in kinds for _ in "ab"]
    messages = [frame["message"] for frame in reported if "message" in frame]
    assert [message["properties"] for message in messages] == headers
    assert [message["method"]["routing-key"] for message in messages] == ["a", "b"] * 3
