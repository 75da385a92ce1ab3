"""The sources of rules: document, section, and an address that can be opened.

The catalogue names a source as `transport.xml section links > Flow Control` (AMQP 1.0) or
`XML:basic.ack.multiple` (AMQP 0-9-1). For AMQP 1.0, section numbers are counted in the specification's own
XML, which is shipped with the dissectors. The addresses are those of the OASIS standard, whose anchors have
the names of that XML. Part 1 has no numbers here, because the standard orders it differently from its XML.
"""

import re
from functools import cache
from pkgutil import get_data
from typing import NamedTuple

from dissectors.amqp091.registry import METHODS

__all__ = ["Reference", "cited", "named_source", "references"]

_PARTS = {
    "types": "Part 1: Types",
    "transport": "Part 2: Transport",
    "messaging": "Part 3: Messaging",
    "transactions": "Part 4: Transactions",
    "security": "Part 5: Security",
}
_STANDARD = "https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-{part}-v1.0-os.html"
_DRAFTS = "https://docs.oasis-open.org/amqp/core/v1.0/{edition}/amqp-core-messaging-v1.0-{edition}.html"
_METHODS = "https://www.rabbitmq.com/amqp-0-9-1-reference.html"
_GENERAL = "https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf"
_ERRATA = "https://www.rabbitmq.com/amqp-0-9-1-errata.html"
_DOCUMENTATION = "https://www.rabbitmq.com/"
_RFCS = "https://www.rfc-editor.org/rfc/"
_BINDINGS = "https://docs.oasis-open.org/amqp-bindmap/amqp-wsb/v1.0/cs01/amqp-wsb-v1.0-cs01.html"

_NAMESPACE = "{http://www.amqp.org/schema/amqp.xsd}"

_METHOD_NAMES = frozenset(method.name for method in METHODS)
_CLASS_NAMES = frozenset(name.partition(".")[0] for name in _METHOD_NAMES)

_SECTION = re.compile(r"([a-z]+)\.xml(?: section ([a-z-]+))?(?: >)? ?(.*)")
# The names are those of `catalogue.editions`.
_DRAFT = re.compile(r"OASIS (cs[a-z]+[0-9]+)")
# A working draft that stands at no public address.
_UNPUBLISHED = "AMQP 1.0, draft of 5 April 2011"
_BINDING = "AMQP WebSocket Binding 1.0"
_RFC = re.compile(r"RFC ([0-9]+), section ([0-9.]+)$")
_NAMED = re.compile(r"(?:XML|RMQX) (domain|class|constant) ([a-z-]+)")
_REMARK = re.compile(r"\([^)]*\)")


class Reference(NamedTuple):
    """One place in a public document. address: "" if it is not published at any address."""

    text: str
    address: str


class _Place(NamedTuple):
    """A section of AMQP 1.0: its number within the part, "" if it has none, its title and its anchor."""

    number: str
    title: str
    anchor: str

    def heading(self) -> str:
        return f"{self.number} {self.title}".lstrip()


def named_source(source: str) -> str:
    """The places that a rule's `source` names: `AMQP 1.0, Part 2: Transport, 2.6.7 Flow Control`."""
    return "; ".join(one.text for one in references(source))


def cited(source: str) -> str:
    """The same with the public address behind each place, as text shows it."""
    return "; ".join(f"{one.text} <{one.address}>" if one.address else one.text for one in references(source))


@cache
def _references(source: str) -> tuple[Reference, ...]:
    """The places that the `source` of a rule in the catalogue names, each once, in order."""
    found: dict[Reference, None] = {}
    for one in source.split(";"):
        text = one.strip()
        section = _SECTION.match(text)
        if section is not None and section[1] in _PARTS:
            found.update(dict.fromkeys(_amqp10(section[1], section[2] or "", section[3])))
        elif (rfc := _RFC.match(text)) is not None:
            found[Reference(text, f"{_RFCS}rfc{rfc[1]}#section-{rfc[2]}")] = None
        elif text.startswith(_BINDING):
            found[Reference(text, _BINDINGS)] = None
        elif text.startswith("amqp.dtd"):
            found[Reference("AMQP 1.0, amqp.dtd", "")] = None
        elif text.startswith(_UNPUBLISHED):
            found[Reference(text, "")] = None
        elif (draft := _DRAFT.search(text)) is not None:
            found[Reference(text, _DRAFTS.format(edition=draft[1]))] = None
        elif text and not text.startswith("("):
            found[_amqp091(text)] = None
    return tuple(found)


def references(source: str) -> list[Reference]:
    """The places that the `source` of a rule in the catalogue names, each once, in order."""
    return list(_references(source))


def _amqp10(part: str, section: str, inside: str) -> list[Reference]:
    """The named part of a section: a title, type, field (`attach.handle`) or choice (`link-error x`)."""
    document = f"AMQP 1.0, {_PARTS[part]}"
    address = _STANDARD.format(part=part)
    places = _places(part)
    found = []
    for name in _REMARK.sub("", inside).split(","):
        title = name.strip()
        kind, *member = re.split(r"[. ]", title, maxsplit=1)
        place = places.get(title) or places.get(kind)
        if place is not None:
            detail = f", {member[0]}" if member and title not in places else ""
            found.append(Reference(f"{document}, {place.heading()}{detail}", f"{address}#{place.anchor}"))
    if not found and section in places:
        place = places[section]
        found.append(Reference(f"{document}, {place.heading()}", f"{address}#{place.anchor}"))
    return found or [Reference(document, address)]


@cache
def _places(part: str) -> dict[str, _Place]:
    """Sections, titled texts and types of a part, by their names and titles."""
    from xml.etree import ElementTree  # only where a finding is shown

    tree = ElementTree.fromstring(get_data("dissectors.spec", f"amqp10/{part}.xml") or b"")
    first = list(_PARTS).index(part) + 1
    places: dict[str, _Place] = {}
    for number, section in enumerate(tree.iter(_NAMESPACE + "section"), 1):
        name = section.get("name", "")
        whole = f"{first}.{number}"
        anchor = f"section-{name}"
        places[name] = _Place(whole, section.get("title") or _title(name), anchor)
        count = within = 0
        below = ""
        for child in section:
            tag = child.tag.removeprefix(_NAMESPACE)
            if tag not in ("doc", "type") or not (child.get("title") or tag == "type"):
                continue
            if below:
                within += 1
                place = f"{below}.{within}"
            else:
                count += 1
                place = f"{whole}.{count}"
            if tag == "type":
                type_name = child.get("name", "")
                places.setdefault(type_name, _Place(place, type_name, f"type-{type_name}"))
                continue
            title = child.get("title", "")
            named = child.get("name")
            places.setdefault(title, _Place(place, title, f"doc-{named}" if named else anchor))
            if len(child) == 0 and not (child.text or "").strip():
                # A heading without a text: the following sections are below it.
                below = place
    if part == "types":
        places = {name: place._replace(number="") for name, place in places.items()}
    for title in [title for title in places if title.startswith("Idle Time-out")]:
        places["Idle Time-out"] = places[title]
    return places


def _title(name: str) -> str:
    """A section without a title uses its name as title; the title of a type is its name."""
    return name.replace("-", " ").capitalize()


def _amqp091(text: str) -> Reference:
    kind, _, rest = text.partition(":")
    what = _REMARK.sub("", rest).strip()
    if kind == "GS":
        return Reference(f"AMQP 0-9-1, General Specification, section {what.partition(' ')[0]}", _GENERAL)
    if kind == "ERR":
        return Reference(f"RabbitMQ's errata of AMQP 0-9-1, item {what}", _ERRATA)
    if kind == "RMQ" and what.startswith("docs/"):
        return Reference(f"RabbitMQ documentation, {what.removeprefix('docs/')}", _DOCUMENTATION + what)
    if kind == "RMQ":
        return Reference(f"RabbitMQ server source, {what.removeprefix('server ')}", "")
    named = _NAMED.match(text)
    if named is not None:
        anchor = "constants" if named[1] == "constant" else f"{named[1]}.{named[2]}"
        return Reference(f"AMQP 0-9-1, {named[1]} {named[2]}", f"{_METHODS}#{anchor}")
    words = what.split(".")
    method = ".".join(words[:2]).partition(" ")[0]
    if method in _METHOD_NAMES:
        return Reference(f"AMQP 0-9-1, {method}", f"{_METHODS}#{method}")
    group = words[0].partition(" ")[0]
    if group in _CLASS_NAMES:
        return Reference(f"AMQP 0-9-1, class {group}", f"{_METHODS}#class.{group}")
    return Reference("AMQP 0-9-1, XML definition", _METHODS)
