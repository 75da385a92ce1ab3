"""The generated tables of AMQP 0-9-1 against the specification's XML, walked here anew."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support import amqp091_encode as amqp

import dissectors.spec
from dissectors.amqp091 import registry
from dissectors.amqp091.arguments import MethodType
from dissectors.amqp091.methods import BASIC_PROPERTIES, PROPERTY_FLAGS, PROPERTY_KINDS
from dissectors.amqp091.registry import METHODS, REPLY_CODES, new_method

XML = Path(dissectors.spec.__file__).parent / "amqp091"
ROOT = ElementTree.parse(XML / "amqp-0-9-1.xml").getroot()
DOMAINS = {domain.attrib["name"]: domain.attrib["type"] for domain in ROOT.iter("domain")}
KNOWN = {known.name: known for known in METHODS}
SPECIFIED = [
    (of_class, method, f"{of_class.attrib['name']}.{method.attrib['name']}")
    for of_class in ROOT.iter("class")
    for method in of_class.findall("method")
]
LETTERS = {"octet": "o", "short": "h", "long": "l", "longlong": "q", "shortstr": "s", "longstr": "S"}
LETTERS |= {"table": "F", "bit": "?", "timestamp": "q"}

# RabbitMQ's, by its documentation.
EXTENSIONS = {
    "access.request",
    "access.request-ok",
    "basic.nack",
    "confirm.select",
    "confirm.select-ok",
    "connection.blocked",
    "connection.unblocked",
    "connection.update-secret",
    "connection.update-secret-ok",
    "exchange.bind",
    "exchange.bind-ok",
    "exchange.unbind",
    "exchange.unbind-ok",
}
# Methods that by extension the other peer sends, too.
BOTH_WAYS = {"basic.ack", "basic.cancel", "basic.cancel-ok"}


def test_every_method_is_there_and_no_other() -> None:
    assert {name for _, _, name in SPECIFIED} | EXTENSIONS == set(KNOWN)
    assert len(SPECIFIED) == 53
    assert {known.name for known in METHODS if known.extension} == EXTENSIONS
    numbers = [(known.class_id, known.method_id) for known in METHODS]
    assert len(set(numbers)) == len(numbers)
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(("of_class", "element", "name"), SPECIFIED, ids=[name for _, _, name in SPECIFIED])
def test_methods_are_what_the_xml_says(
    of_class: ElementTree.Element, element: ElementTree.Element, name: str
) -> None:
    known = KNOWN[name]
    assert (known.class_id, known.method_id) == (
        int(of_class.get("index", "")),
        int(element.get("index", "")),
    )
    assert [(field.name, field.type, field.domain, field.reserved) for field in known.fields] == [
        (
            field.attrib["name"],
            field.get("type") or DOMAINS[field.attrib["domain"]],
            field.get("domain") or field.get("type"),
            field.get("reserved") == "1",
        )
        for field in element.findall("field")
    ]
    assert known.content == (element.get("content") == "1")
    assert known.synchronous == (element.get("synchronous") == "1")
    assert known.deprecated == (element.get("deprecated") == "1")
    receivers = {chassis.attrib["name"] for chassis in element.findall("chassis")}
    if name in BOTH_WAYS:
        receivers = {"client", "server"}
    assert (known.from_client, known.from_server) == ("server" in receivers, "client" in receivers)
    responses = [f"{of_class.get('name')}.{response.get('name')}" for response in element.findall("response")]
    assert list(known.responses) == (["basic.recover-ok"] if name == "basic.recover" else responses)


def test_rabbitmqs_meanings() -> None:
    meanings = {
        (known.name, field.name): field.extension
        for known in METHODS
        for field in known.fields
        if field.extension
    }
    assert meanings == {
        ("exchange.declare", "reserved-2"): "auto-delete",
        ("exchange.declare", "reserved-3"): "internal",
        ("basic.qos", "global"): "apply to the whole channel instead of each new consumer",
    }
    sent_by = {name: (KNOWN[name].from_client, KNOWN[name].from_server) for name in EXTENSIONS}
    assert {name for name, ends in sent_by.items() if ends == (True, True)} == {"basic.nack"}
    assert {name for name, ends in sent_by.items() if ends == (False, True)} == {
        *(name for name in EXTENSIONS if name.endswith("-ok")),
        "connection.blocked",
        "connection.unblocked",
    }
    assert {name: KNOWN[name].responses for name in EXTENSIONS if KNOWN[name].synchronous} == {
        name: () if name.endswith("-ok") else (f"{name}-ok",)
        for name in EXTENSIONS - {"basic.nack", "connection.blocked", "connection.unblocked"}
    }


@pytest.mark.parametrize("known", METHODS, ids=lambda known: known.name)
def test_the_encoder_of_the_tests_has_the_same_fields(known: MethodType) -> None:
    class_id, method_id, form = amqp.METHODS[known.name]
    assert (known.class_id, known.method_id) == (class_id, method_id)
    assert [field.split(":") for field in form.split()] == [
        [field.name.replace("-", "_") + "_" * (field.name == "global"), LETTERS[field.type]]
        for field in known.fields
    ]
    method = new_method(class_id, method_id)
    assert method is not None
    assert method.definition() is known


def test_no_other_number_is_a_method() -> None:
    numbers = {(known.class_id, known.method_id) for known in METHODS}
    for class_id in range(-1, 130):
        for method_id in range(-1, 130):
            assert (new_method(class_id, method_id) is not None) == ((class_id, method_id) in numbers)


def test_properties() -> None:
    basic = next(of_class for of_class in ROOT.iter("class") if of_class.get("name") == "basic")
    wanted = [(field.attrib["name"], DOMAINS[field.attrib["domain"]]) for field in basic.findall("field")]
    assert [(field.name, field.type) for field in BASIC_PROPERTIES.fields] == wanted
    assert len(wanted) == 14
    assert sum(0x8000 >> n for n in range(14)) == PROPERTY_FLAGS
    kinds = {"shortstr": "s", "table": "F", "octet": "o", "timestamp": "T"}
    assert PROPERTY_KINDS.decode() == "".join(kinds[kind] for _, kind in wanted)
    assert amqp.PROPERTIES.split() == [f"{name.replace('-', '_')}:{LETTERS[kind]}" for name, kind in wanted]
    assert [field.name for field in BASIC_PROPERTIES.fields if field.reserved] == ["reserved"]


def test_constants() -> None:
    replies = {}
    for constant in ROOT.iter("constant"):
        name, value = constant.attrib["name"], int(constant.attrib["value"])
        if name.startswith("frame-") and name != "frame-error":
            assert getattr(registry, name.replace("-", "_").upper()) == value
        else:
            replies[value] = (name, constant.get("class", ""))
    assert {312: ("no-route", "soft-error")} | replies == REPLY_CODES
    assert len(replies) == 18
    version = (registry.MAJOR, registry.MINOR, registry.REVISION, registry.PORT)
    assert version == tuple(int(ROOT.attrib[word]) for word in ("major", "minor", "revision", "port"))


def test_the_xml_has_its_licence() -> None:
    text = (XML / "amqp-0-9-1.xml").read_text()
    assert "Copyright (c) 2006-2008 Cisco Systems" in text
    assert sorted(path.name for path in XML.iterdir()) == ["amqp-0-9-1.xml", "rabbitmq.xml"]
