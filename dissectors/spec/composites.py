"""The composite types of AMQP 1.0 from the specification's XML, as classes.

Part of `dissectors.spec.generate`. A composite type becomes a class: one attribute a field, and a `read` that
calls the `Reader` method for the field's type. A restricted type is followed to its source; its choices, if
the set is closed, are checked. What the XML cannot say (the rule a missing field breaks, which fields hold
credentials) stands in the tables below.
"""

import keyword
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

NS = "{http://www.amqp.org/schema/amqp.xsd}"

# Module of dissectors.amqp10 -> XML file.
MODULES = {
    "performatives": "transport.xml",
    "sasl": "security.xml",
    "messaging": "messaging.xml",
    "transactions": "transactions.xml",
}

# The one that a mandatory field of several values breaks if it has none.
NO_VALUES = "T-COMP-MULT-MAND"

# The rule of the catalogue that a missing mandatory field breaks, by composite.
MANDATORY_RULES = {
    "open": "P-OPEN-MAND",
    "begin": "P-BEGIN-MAND",
    "attach": "P-ATTACH-MAND",
    "flow": "P-FLOW-MAND",
    "transfer": "P-TRANSFER-MAND",
    "disposition": "P-DISP-MAND",
    "detach": "P-DETACH-MAND",
    "error": "P-ERROR-MAND",
    "received": "P-RECEIVED-MAND",
    "declared": "P-DECLARED-MAND",
    "discharge": "P-DISCHARGE-MAND",
    "transactional-state": "P-TXSTATE-MAND",
    "sasl-mechanisms": "SA-MECH-NONEMPTY",
    "sasl-init": "P-SASLINIT-MAND",
    "sasl-challenge": "P-SASLCHAL-MAND",
    "sasl-response": "P-SASLRESP-MAND",
    "sasl-outcome": "P-SASLOUT-MAND",
}

# Restricted types whose set of choices is closed, and the rule broken by a value outside it.
CLOSED_CHOICES = {
    "role": "",
    "sender-settle-mode": "T-ENUM-SNDMODE",
    "receiver-settle-mode": "T-ENUM-RCVMODE",
    "terminus-durability": "T-ENUM-DURABILITY",
    "terminus-expiry-policy": "T-ENUM-EXPIRY",
    "sasl-code": "T-ENUM-SASLCODE",
}

# Fields whose content is a credential, or may be a message with one.
SECRET = {("sasl-init", "initial-response"), ("sasl-response", "response"), ("fragment", "payload")}

# Map types whose keys a rule restricts; other maps may have any.
KEYED_MAPS = {"fields", "annotations", "filter-set", "application-properties", "message-attributes"}

PYTHON_TYPES = {
    "boolean": "bool",
    "ubyte": "int",
    "ushort": "int",
    "uint": "int",
    "ulong": "int",
    "timestamp": "int",
    "binary": "bytes",
    "string": "str",
    "symbol": "Symbol",
    "map": "Map",
}

# Composites in the order in which traffic needs them most; the others follow by code.
HOT = [0x14, 0x15, 0x13, 0x24]


class Specification:
    """All types of all parts, by name."""

    def __init__(self, folder: Path, files: tuple[str, ...] = ("types.xml", *MODULES.values())) -> None:
        self.types: dict[str, ElementTree.Element] = {}
        self.part: dict[str, str] = {}
        self.section: dict[str, str] = {}
        self.constants: list[tuple[str, str, str]] = []
        for file in files:
            for section in ElementTree.parse(folder / file).getroot().iter(NS + "section"):
                for type_element in section.findall(NS + "type"):
                    name = type_element.attrib["name"]
                    self.types[name] = type_element
                    self.part[name] = file
                    self.section[name] = section.attrib["name"]
                for constant in section.findall(NS + "definition"):
                    self.constants.append((constant.attrib["name"], constant.attrib["value"], file))

    def source_of(self, name: str) -> str:
        """Where a type is defined."""
        return f"{self.part[name]} {self.section[name]} > {name}"

    def composites(self, file: str) -> list[ElementTree.Element]:
        found = [
            element
            for name, element in self.types.items()
            if self.part[name] == file and element.attrib["class"] == "composite"
        ]
        return sorted(found, key=code_of)

    def base(self, name: str) -> str:
        """The primitive type a restricted type comes down to; a composite's or wildcard's own name."""
        while name != "*":
            element = self.types[name]
            if element.attrib["class"] != "restricted":
                break
            name = element.attrib["source"]
        return name

    def keyed(self, name: str) -> str:
        """For a map type: the name of the type that restricts its keys, or `map`."""
        while name not in KEYED_MAPS and name != "map":
            name = self.types[name].attrib["source"]
        return name

    def choices(self, name: str) -> list[tuple[str, str]]:
        """The (value, name) choices of a closed enumeration, the value as Python source."""
        element = self.types.get(name)
        if element is None or name not in CLOSED_CHOICES:
            return []
        base = self.base(name)
        result = []
        for choice in element.findall(NS + "choice"):
            value = choice.attrib["value"]
            if base == "boolean":
                value = value.capitalize()
            elif base == "symbol":
                value = repr(value)
            result.append((value, choice.attrib["name"]))
        return result


def code_of(element: ElementTree.Element) -> int:
    descriptor = element.find(NS + "descriptor")
    assert descriptor is not None
    high, low = descriptor.attrib["code"].split(":")
    return (int(high, 16) << 32) | int(low, 16)


def symbol_of(element: ElementTree.Element) -> str:
    descriptor = element.find(NS + "descriptor")
    assert descriptor is not None
    return descriptor.attrib["name"]


def class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def attribute(name: str) -> str:
    plain = name.replace("-", "_")
    return plain + "_" if keyword.iskeyword(plain) else plain


class FieldSource:
    """The Python source that one field of a composite gives rise to."""

    def __init__(self, spec: Specification, owner: str, index: int, element: ElementTree.Element) -> None:
        self.name = element.attrib["name"]
        self.attribute = attribute(self.name)
        self.index = index
        self.type = element.attrib["type"]
        self.mandatory = element.attrib.get("mandatory") == "true"
        self.multiple = element.attrib.get("multiple") == "true"
        self.default = element.attrib.get("default")
        self.requires = element.attrib.get("requires", "")
        self.secret = (owner, self.name) in SECRET
        self.base = spec.base(self.type)
        self.keyed = spec.keyed(self.type) if self.base == "map" else ""
        self.choices = spec.choices(self.type)

    @property
    def composite(self) -> bool:
        return self.base not in PYTHON_TYPES and self.base != "*"

    @property
    def annotation(self) -> str:
        if self.multiple:
            assert self.base == "symbol", (
                f"{self.name}: only symbols are 'multiple' in the final specification"
            )
            return "list[Symbol] | None"
        if self.base == "*":
            return "object"
        if self.composite:
            return f"{class_name(self.base)} | None"
        return f"{PYTHON_TYPES[self.base]} | None"

    def declaration(self) -> str:
        words = [repr(self.name), repr(self.type)]
        if self.mandatory:
            words.append("mandatory=True")
        if self.multiple:
            words.append("multiple=True")
        if self.default is not None:
            words.append(f"default={self.default_value()}")
        if self.requires:
            words.append(f"requires={self.requires!r}")
        if self.choices:
            words.append("choices={" + ", ".join(f"{value}: {name!r}" for value, name in self.choices) + "}")
        return self.constructed(words)

    def constructed(self, words: list[str]) -> str:
        """The field's constructor with these arguments."""
        return f"{'SecretField' if self.secret else 'Field'}({', '.join(words)})"

    def default_value(self) -> str:
        assert self.default is not None
        for value, name in self.choices:
            if name == self.default:
                return value
        if self.base == "boolean":
            return self.default.capitalize()
        if self.base in ("uint", "ushort", "ubyte", "ulong"):
            return str(int(self.default))
        return repr(self.default)

    def reading(self) -> list[str]:
        i, name = self.index, f"self.{self.attribute}"
        if self.multiple:
            return [f"{name} = reader.symbols(self, {i})"]
        if self.base == "*":
            return [f"{name} = reader.wildcard(self, {i}, {self.requires!r})"]
        if self.base == "map":
            return [f"{name} = reader.map(self, {i}, {self.keyed!r})"]
        if self.composite:
            cls = class_name(self.base)
            return [
                f"{self.attribute} = reader.typed(self, {i}, {self.base!r})",
                f"if isinstance({self.attribute}, {cls}):",
                f"    {name} = {self.attribute}",
            ]
        return [f"{name} = reader.{self.base}(self, {i})"]

    def checks(self, mandatory_rule: str) -> list[str]:
        name = f"self.{self.attribute}"
        lines = []
        if self.mandatory:
            lines += [f"if {name} is None:", f"    reader.missing(self, {self.index}, {mandatory_rule!r})"]
            if self.multiple:
                # types.xml, "Composite Type Representation": null and an array of no values are both invalid.
                lines += [f"elif not {name}:", f"    reader.missing(self, {self.index}, {NO_VALUES!r})"]
        rule = CLOSED_CHOICES.get(self.type, "")
        if self.choices and rule:
            if self.base == "symbol":
                test = f"{name} not in {class_name(self.type).upper()}"
            else:
                test = f"{name} > {max(int(value) for value, _ in self.choices)}"
            lines += [
                f"if {name} is not None and {test}:",
                f"    reader.choice(self, {self.index}, {rule!r}, {name})",
            ]
        return lines


def fields_of(spec: Specification, element: ElementTree.Element) -> list[FieldSource]:
    """The fields of a composite."""
    name = element.attrib["name"]
    return [FieldSource(spec, name, i, field) for i, field in enumerate(element.findall(NS + "field"))]


def composite_source(
    spec: Specification, element: ElementTree.Element, fields: Sequence[FieldSource], reader: str = ""
) -> list[str]:
    """A composite's class. reader: what `read` needs its reader to be, if not any."""
    name = element.attrib["name"]
    rule = MANDATORY_RULES.get(name, "")
    assert rule or not any(field.mandatory for field in fields), f"{name} has mandatory fields and no rule"
    provides = tuple(word for word in element.attrib.get("provides", "").replace(",", " ").split())
    constant = attribute(name).upper()
    lines = [f"{constant}: Final = CompositeType("]
    lines += [f"    {name!r},", f"    0x{code_of(element):02X},", f"    {symbol_of(element)!r},"]
    lines += [f"    {provides!r},", f"    {spec.source_of(name)!r},", f"    {rule!r},", "    ("]
    lines += [f"        {field.declaration()}," for field in fields]
    lines += ["    ),", ")", "", "", f"class {class_name(name)}(Composite):"]
    lines += [f'    """{name}, descriptor 0x{code_of(element):02x} ({spec.source_of(name)})."""', ""]
    lines += ["    def __init__(self) -> None:", "        super().__init__()"]
    lines += [f"        self.{field.attribute}: {field.annotation} = None" for field in fields]
    lines += ["", "    def definition(self) -> CompositeType:", f"        return {constant}", ""]
    lines += ["    def read(self, reader: Reader, count: i64) -> None:"]
    body = [f"assert isinstance(reader, {reader})"] if reader and fields else []
    for field in fields:
        body += [f"if count > {field.index}:"] + ["    " + line for line in field.reading()]
    for field in fields:
        body += field.checks(rule)
    lines += ["        " + line for line in body] or ["        return"]
    lines += ["", "    def values(self) -> list[object]:"]
    lines += [f"        return [{', '.join('self.' + field.attribute for field in fields)}]", "", ""]
    return lines


def module_source(spec: Specification, module: str) -> str:
    file = MODULES[module]
    composites = spec.composites(file)
    lines = [
        f'"""Composite types of {file}.',
        "",
        "Generated by dissectors/spec/generate.py from the specification; do not edit.",
        '"""',
        "",
        "from typing import Final",
        "",
    ]
    body: list[str] = []
    for name, element in spec.types.items():
        if spec.part[name] == file and name in CLOSED_CHOICES and element.attrib["source"] == "symbol":
            choices = ", ".join(value for value, _ in spec.choices(name))
            body += [f"{class_name(name).upper()} = ({choices})", ""]
    # A class that another's fields name comes first.
    composites.sort(key=lambda element: (element.attrib["name"] != "error", code_of(element)))
    for element in composites:
        body += composite_source(spec, element, fields_of(spec, element))
    text = "\n".join(body)
    bases = [
        "Composite",
        "CompositeType",
        "Field",
        "Reader",
        *(["SecretField"] if "SecretField(" in text else []),
    ]
    lines.append(f"from dissectors.amqp10.composite import {', '.join(bases)}")
    values = [name for name in ("Map", "Symbol") if f"{name} | None" in text or f"list[{name}]" in text]
    if module != "performatives" and "Error | None" in text:
        lines.append("from dissectors.amqp10.performatives import Error")
    if values:
        lines.append(f"from dissectors.amqp10.values import {', '.join(values)}")
    lines += ["from dissectors.wire import i64", ""]
    names = sorted(class_name(element.attrib["name"]) for element in composites)
    lines += ["__all__ = [", *(f'    "{name}",' for name in names), "]", ""]
    return "\n".join(lines) + "\n" + text.rstrip() + "\n"


def registry_source(spec: Specification) -> str:
    lines = [
        '"""The type of each descriptor, in the final specification.',
        "",
        "Generated by dissectors/spec/generate.py from the specification; do not edit.",
        '"""',
        "",
        "from typing import Final",
        "",
        "from dissectors.amqp10.composite import Composite, CompositeType, TypeTable",
    ]
    every: list[tuple[int, str, str, str]] = []
    for module, file in MODULES.items():
        composites = spec.composites(file)
        every += [
            (code_of(element), element.attrib["name"], symbol_of(element), module) for element in composites
        ]
    for module in sorted(MODULES):
        names = []
        for _, name, _, home in every:
            if home == module:
                names += [class_name(name), attribute(name).upper()]
        lines += [f"from dissectors.amqp10.{module} import (", *(f"    {n}," for n in sorted(names)), ")"]
    lines += ["from dissectors.wire import i64", ""]
    every.sort(key=lambda entry: (HOT.index(entry[0]) if entry[0] in HOT else len(HOT), entry[0]))
    lines += ["_CODES: dict[str, int] = {"]
    lines += [f"    {symbol!r}: 0x{code:02X}," for code, _, symbol, _ in sorted(every)]
    lines += ["}", "", "COMPOSITES: tuple[CompositeType, ...] = ("]
    lines += [f"    {attribute(name).upper()}," for _, name, _, _ in sorted(every)]
    lines += [")", '"""Every composite type, by descriptor."""', ""]

    sections = []
    for name, element in spec.types.items():
        if element.find(NS + "descriptor") is not None and "section" in element.attrib.get("provides", ""):
            sections.append((code_of(element), name, symbol_of(element), spec.base(name)))
    lines += ["SECTIONS: dict[int, tuple[str, str, str]] = {"]
    for code, name, symbol, base in sorted(sections):
        base = "list" if spec.types[name].attrib["class"] == "composite" else base
        lines.append(f"    0x{code:02X}: ({name!r}, {symbol!r}, {base!r}),")
    lines += ["}", '"""Message sections: descriptor to name, symbolic descriptor, and what it wraps."""', ""]

    lines += conditions_source(spec)
    for name, constant, file in spec.constants:
        lines += [f"{name.replace('-', '_')} = {constant}", f'"""{file}."""']
    creations = [(code, name) for code, name, _, _ in every]
    payload = [
        "",
        "    def has_payload(self, body: Composite) -> bool:",
        "        return isinstance(body, Transfer)",
    ]
    return table_source(
        lines, "Final", "The composites of AMQP 1.0 final (October 2011).", creations, payload
    )


def conditions_source(spec: Specification) -> list[str]:
    """The table of error conditions."""
    lines = ["ERROR_CONDITIONS: dict[str, str] = {"]
    for name, element in spec.types.items():
        if element.attrib.get("provides") == "error-condition":
            for choice in element.findall(NS + "choice"):
                lines.append(f"    {choice.attrib['value']!r}: {name!r},")
    return [
        *lines,
        "}",
        '"""Every error condition the specification names, to the type that lists it."""',
        "",
    ]


def table_source(
    lines: list[str], name: str, says: str, creations: list[tuple[int, str]], more: Sequence[str] = ()
) -> str:
    """The whole of a registry: these lines, and the `TypeTable` that creates composites by descriptor.

    more: its other methods.
    """
    lines += ["", "", f"class {name}Types(TypeTable):", f'    """{says}"""', ""]
    lines += ["    def new(self, code: i64) -> Composite | None:"]
    for code, created in creations:
        lines += [f"        if code == 0x{code:02X}:", f"            return {class_name(created)}()"]
    lines += ["        return None", "", "    def code_of(self, symbol: str) -> i64:"]
    lines += [
        "        return _CODES.get(symbol, -1)",
        *more,
        "",
        "",
        f"{name.upper()}: Final = {name}Types()",
    ]
    return "\n".join(lines) + "\n"


def sources(folder: Path, target: Path) -> dict[Path, str]:
    """Every generated file of `target` and its text, from the XML files of `folder`."""
    spec = Specification(folder)
    result = {target / f"{module}.py": module_source(spec, module) for module in MODULES}
    return result | {target / "registry.py": registry_source(spec)}
