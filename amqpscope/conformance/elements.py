"""What the text of the draft of April 2011 defines, element by element, and how each is decoded.

The rows come from the table that the dissector is generated from (`dissectors/spec/amqp10_draft2011`), and
from the rules: those that are checked on connections that speak the draft, and of all others of the final
specification why they are not (`amqpscope/rules/data/amqp10-draft2011.tsv`).
"""

import csv
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from importlib import resources
from typing import Final, NamedTuple

from amqpscope.protocols import DIALECTS
from amqpscope.rules.catalogue import catalogue
from dissectors.amqp10_draft2011.names import DRAFT_2011

__all__ = ["DECODING", "Element", "draft_elements"]

DEFINED: Final = "as defined"
FEBRUARY: Final = "from 2011-02"
GENERIC: Final = "generically"
RULE: Final = "rule checked"

DECODING: Final = {
    DEFINED: "decoded as the draft defines it",
    FEBRUARY: "missing from the draft's text, decoded as in the XML of February 2011",
    GENERIC: "missing from both texts, decoded generically, with the descriptor of the final specification",
    RULE: "rule that is checked on connections that speak the draft",
    "rule covered": "rule of the draft that another rule checks",
    "rule before": "rule of the draft about octets before the dialect is known, checked as rule of the final",
    "rule not observable": "rule of the draft of which a capture does not show whether a peer breaks it",
    "rule lost": "rule of the final specification that is missing from the draft's surviving text",
    "rule absent": "rule of the final specification that the draft does not have",
}
"""What each status says."""

_RULES: Final = {
    "covered": "rule covered",
    "before": "rule before",
    "unobservable": "rule not observable",
    "lost": "rule lost",
    "absent": "rule absent",
}
"""The status of a rule by the word of the table."""

_STATUS: Final = {"": DEFINED, "2011-02": FEBRUARY, "open": GENERIC}


class Element(NamedTuple):
    """One element of the draft: a type, an encoding, a descriptor, a field, a choice, a constant or a rule.

    section: of the draft's text, "" where it is not known. status: a key of `DECODING`. agrees: what has the
    same definition, where the draft's own is lost. reason: why a rule is not checked.
    """

    kind: str
    name: str
    section: str
    status: str
    agrees: str = ""
    reason: str = ""


def draft_elements() -> list[Element]:
    """All elements, in the order of the draft, and its rules."""
    text = resources.files("dissectors.spec").joinpath("amqp10_draft2011/draft2011.xml").read_text("utf-8")
    found: list[Element] = []
    for one in ElementTree.fromstring(text).iter():  # noqa: S314  the XML is our own
        kind = _kind(one)
        section = one.get("section", "")
        if kind == "definition":
            found.append(Element("constant", one.attrib["name"], section, DEFINED))
        elif kind == "type":
            found.append(Element("type", one.attrib["name"], section, DEFINED))
            found += _parts(one, section)
    return found + list(_rules())


def _parts(parent: ElementTree.Element, section: str) -> Iterator[Element]:
    """The encodings, the descriptor, the fields and the choices of a type."""
    name = parent.attrib["name"]
    for one in parent:
        kind = _kind(one)
        named = (
            one.attrib["code"] if kind == "encoding" else one.get("value" if kind == "choice" else "name", "")
        )
        whole = f"{name} {named}" if kind == "encoding" else f"{name}.{named}"
        if kind == "descriptor":
            whole = f"{named} 0x{int(one.attrib['code'].partition(':')[2], 16):02x}"
        yield Element(kind, whole, section, _STATUS[one.get("origin", "")], one.get("agrees", ""))


def _rules() -> Iterator[Element]:
    """The rules of the draft in the order of the catalogue, then those of the final that it has not."""
    namespace, final = next(
        (name, usual) for (usual, dialect), name in DIALECTS.items() if dialect == DRAFT_2011
    )
    for name, one in catalogue().items():
        if name.startswith(namespace + "/"):
            section = one.source.rpartition("section")[2].lstrip("s ").partition(" ")[0].strip(",")
            yield Element("rule", name.partition("/")[2], section, RULE)
    text = resources.files("amqpscope.rules").joinpath(f"data/{namespace}.tsv").read_text("utf-8")
    for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        reason = row["reason"]
        if not reason and row["status"] == "unobservable":
            reason = catalogue()[f"{final}/{row['id']}"].reason
        yield Element("rule", row["id"], "", _RULES[row["status"]], "", reason)


def _kind(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
