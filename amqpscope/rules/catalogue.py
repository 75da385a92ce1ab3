"""The catalogue: every rule there is, checked or not, with its level, source and expected answer.

Shipped as data, one table a protocol; read when a finding is shown, never while frames are judged.
"""

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["LAYERS", "Rule", "catalogue", "guards", "rule", "severity"]

LAYERS = (
    "types",
    "framing",
    "connection",
    "sasl",
    "tls",
    "session",
    "link",
    "delivery",
    "messaging",
    "transactions",
)
"""The layers of the rules, from the octets up."""

_FILES = {"amqp10": "amqp10.tsv"}
_GUARDS = {"amqp10": "amqp10-guards.tsv"}

# Rules about how a peer reacted to another's fault: worth a note, never an accusation.
_REACTIONS = ("S-ERR-END", "L-ERR-DETACH", "L-ERR-PIPELINED")

# What weakens a rule to a warning, whatever word the text uses.
_WEAK_BASES = ("inferred", "csd-only")


class Rule(NamedTuple):
    """One row of the catalogue.

    id: with its namespace, `amqp10/L-CREDIT`. breaker: who can break it. requirement: the level, MUST,
    SHOULD, illegal... source: document and section. text: what it demands, in our words. observable:
    `yes`, `partial` or `no`, with the reason. condition: the error a correct peer answers, or "".
    """

    id: str
    layer: str
    breaker: str
    requirement: str
    basis: str
    source: str
    text: str
    observable: str
    reason: str
    evidence: str
    condition: str


@cache
def catalogue() -> dict[str, Rule]:
    """All rules by id."""
    return _read(_FILES)


@cache
def guards() -> dict[str, Rule]:
    """What is legal although it looks odd, by id: no rule may find anything in it."""
    return _read(_GUARDS)


def _read(files: dict[str, str]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for namespace, file in files.items():
        text = resources.files("amqpscope.rules").joinpath("data", file).read_text(encoding="utf-8")
        for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
            condition = row["error_condition"]
            name = f"{namespace}/{row['id']}"
            rules[name] = Rule(
                name,
                row["layer"],
                row["breaker"],
                row["level"],
                row["level_basis"],
                row["source_final"],
                row["rule"],
                row["observable"],
                row["observable_why"],
                row["evidence"],
                "" if condition.startswith("none") else condition,
            )
    return rules


def rule(name: str) -> Rule:
    """One rule by its id. Raises KeyError if there is none."""
    return catalogue()[name]


def severity(name: str) -> str:
    """`error`, `warning` or `note`: what breaking a rule amounts to."""
    row = rule(name)
    short = name.partition("/")[2]
    if short.endswith("-REACT") or short in _REACTIONS:
        return "note"
    if row.requirement.startswith("SHOULD") or row.requirement == "MAY-limits":
        return "warning"
    if row.basis in _WEAK_BASES or row.reason.startswith("heuristic"):
        return "warning"
    return "error"
