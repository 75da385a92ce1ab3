"""The generated tables against the XML of the specification, walked here anew without the generator."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from support import amqp10_encode as amqp

import dissectors.spec
from dissectors.amqp10 import registry
from dissectors.amqp10.composite import Composite, CompositeType, TypeTable
from dissectors.amqp10.registry import COMPOSITES, ERROR_CONDITIONS, FINAL, SECTIONS
from dissectors.spec import generate

XML = Path(dissectors.spec.__file__).parent / "amqp10"
FILES = ("types", "transport", "messaging", "transactions", "security")


def local(tag: str) -> str:
    return tag.rpartition("}")[2]


def types() -> dict[str, tuple[str, ElementTree.Element]]:
    """Every type of the specification: its file and its element."""
    found: dict[str, tuple[str, ElementTree.Element]] = {}
    for file in FILES:
        for element in ElementTree.parse(XML / f"{file}.xml").iter():
            if local(element.tag) == "type":
                assert element.attrib["name"] not in found
                found[element.attrib["name"]] = (f"{file}.xml", element)
    return found


TYPES = types()
DEFINED = {name: element for name, (_, element) in TYPES.items() if element.get("class") == "composite"}


def child(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [item for item in element if local(item.tag) == name]


def number(element: ElementTree.Element) -> int:
    (descriptor,) = child(element, "descriptor")
    domain, identifier = descriptor.attrib["code"].split(":")
    return int(domain, 0) * 2**32 + int(identifier, 0)


def definition(name: str) -> CompositeType:
    return next(known for known in COMPOSITES if known.name == name)


def primitive(name: str) -> str:
    while name != "*" and TYPES[name][1].get("class") == "restricted":
        name = TYPES[name][1].attrib["source"]
    return name


def choices(name: str) -> dict[object, str]:
    """The names of a closed set of choices by value; of one that others may add to (it provides): none."""
    if name == "*" or TYPES[name][1].get("provides"):
        return {}
    convert: dict[str, Callable[[str], object]] = {
        "boolean": lambda text: text == "true",
        "ubyte": int,
        "uint": int,
        "symbol": str,
    }
    return {
        convert[primitive(name)](item.attrib["value"]): item.attrib["name"]
        for item in child(TYPES[name][1], "choice")
    }


def test_every_composite_is_there_and_no_other() -> None:
    assert sorted(known.name for known in COMPOSITES) == sorted(DEFINED)
    assert len(DEFINED) == 33


@pytest.mark.parametrize("name", DEFINED)
def test_composite(name: str) -> None:
    element = DEFINED[name]
    (descriptor,) = child(element, "descriptor")
    known = definition(name)
    assert known.code == number(element)
    assert known.symbol == descriptor.attrib["name"]
    assert known.provides == tuple(element.get("provides", "").replace(",", " ").split())
    assert known.source.startswith(TYPES[name][0])
    assert known.source.endswith(f"> {name}")
    assert [field.name for field in known.fields] == [item.attrib["name"] for item in child(element, "field")]
    assert known.size == len(known.fields)
    assert known.is_frame == ("frame" in known.provides)
    assert known.is_sasl_frame == ("sasl-frame" in known.provides)
    # Found by both descriptors, as an object with an attribute for each field, all None.
    composite = FINAL.new(known.code)
    assert isinstance(composite, Composite)
    assert composite.definition() is known
    assert FINAL.code_of(known.symbol) == known.code
    assert composite.values() == [None] * len(known.fields)
    for field in known.fields:
        assert getattr(composite, field.name.replace("-", "_")) is None


@pytest.mark.parametrize(
    ("name", "index", "item"),
    [
        (name, index, item)
        for name, element in DEFINED.items()
        for index, item in enumerate(child(element, "field"))
    ],
    ids=lambda value: value.get("name") if isinstance(value, ElementTree.Element) else str(value),
)
def test_field(name: str, index: int, item: ElementTree.Element) -> None:
    field = definition(name).fields[index]
    attributes = item.attrib
    assert field.name == attributes["name"]
    assert field.type == attributes["type"]
    assert field.mandatory == (attributes.get("mandatory", "false") == "true")
    assert field.multiple == (attributes.get("multiple", "false") == "true")
    assert field.requires == attributes.get("requires", "")
    assert field.choices == choices(field.type)
    default: object = attributes.get("default")
    if default is not None:
        named = {shown: value for value, shown in field.choices.items()}
        if default in named:
            default = named[default]
        elif primitive(field.type) == "boolean":
            default = {"true": True, "false": False}[str(default)]
        elif primitive(field.type) != "symbol":
            default = int(str(default))
    assert field.default == default
    assert type(field.default) is type(default)
    assert field.secret == (
        (name, field.name) in (("sasl-init", "initial-response"), ("sasl-response", "response"))
    )


@pytest.mark.parametrize("name", DEFINED)
def test_a_rule_of_its_own_for_missing_fields(name: str) -> None:
    known = definition(name)
    assert bool(known.mandatory_rule) == any(field.mandatory for field in known.fields)
    assert known.mandatory_rule not in {
        other.mandatory_rule for other in COMPOSITES if other is not known
    } - {""}


def test_the_encoder_of_the_tests_has_the_same_fields() -> None:
    for known in COMPOSITES:
        code, fields = amqp.COMPOSITES[known.name]
        assert code == known.code
        assert [name for name, _ in fields] == [field.name for field in known.fields]


def test_sections() -> None:
    wanted = {}
    for name, (_, element) in TYPES.items():
        if element.get("provides") == "section":
            (descriptor,) = child(element, "descriptor")
            wanted[number(element)] = (name, descriptor.attrib["name"], primitive(element.attrib["source"]))
    assert wanted == SECTIONS
    assert sorted(SECTIONS) == list(range(0x70, 0x79))


def test_error_conditions() -> None:
    wanted = {
        item.attrib["value"]: name
        for name, (_, element) in TYPES.items()
        if element.get("provides") == "error-condition"
        for item in child(element, "choice")
    }
    assert wanted == ERROR_CONDITIONS
    assert len(wanted) == 28
    assert all(condition.startswith("amqp:") for condition in wanted)


def test_constants() -> None:
    count = 0
    for file in FILES:
        for element in ElementTree.parse(XML / f"{file}.xml").iter():
            if local(element.tag) == "definition":
                assert getattr(registry, element.attrib["name"].replace("-", "_")) == int(
                    element.attrib["value"]
                )
                count += 1
    assert count == 13


@pytest.mark.parametrize(
    "code", [-1, 0, 0x0F, 0x19, 0x2A, 0x2F, 0x35, 0x45, 0x71, 0x74, 0x80, 0x100, 2**32 - 1]
)
def test_unknown_descriptors(code: int) -> None:
    assert FINAL.new(code) is None


def test_no_other_descriptor_is_known() -> None:
    assert {code for code in range(0x200) if FINAL.new(code) is not None} == {
        number(e) for e in DEFINED.values()
    }
    assert FINAL.code_of("amqp:open:map") == -1
    assert FINAL.code_of("") == -1
    assert TypeTable().new(0x10) is None
    assert TypeTable().code_of("amqp:open:list") == -1


def test_modules_are_what_the_generator_writes() -> None:
    for path, text in generate.sources().items():
        assert path.read_text() == text, path.name


def test_the_check_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dissectors.spec.generate", "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def test_the_check_sees_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("amqp10", "amqp10_draft2011", "amqp091"):
        (tmp_path / package).mkdir()
    monkeypatch.setattr(generate, "TARGET", tmp_path)
    monkeypatch.setattr(sys, "argv", ["generate"])
    assert generate.main() == 0
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")) == [
        "amqp091/methods.py",
        "amqp091/registry.py",
        "amqp10/messaging.py",
        "amqp10/performatives.py",
        "amqp10/registry.py",
        "amqp10/sasl.py",
        "amqp10/transactions.py",
        "amqp10_draft2011/performatives.py",
        "amqp10_draft2011/registry.py",
    ]
    monkeypatch.setattr(sys, "argv", ["generate", "--check"])
    assert generate.main() == 0
    with (tmp_path / "amqp10" / "sasl.py").open("a") as file:
        file.write("\n")
    (tmp_path / "amqp10" / "registry.py").unlink()
    (tmp_path / "amqp091" / "methods.py").unlink()
    assert generate.main() == 1
    assert capsys.readouterr().err == "not as generated: sasl.py, registry.py, methods.py\n"


def test_the_xml_is_the_specifications(tmp_path: Path) -> None:
    # The generator reads what is shipped, all of it.
    assert sorted(path.name for path in XML.iterdir() if path.suffix in (".xml", ".dtd")) == [
        "amqp.dtd",
        "messaging.xml",
        "security.xml",
        "transactions.xml",
        "transport.xml",
        "types.xml",
    ]
