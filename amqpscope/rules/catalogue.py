"""The catalogue: every rule there is, checked or not, with its level, source and expected answer.

Shipped as data, one table a protocol; read when a finding is shown, never while frames are judged.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

__all__ = [
    "LAYERS",
    "USUAL_SEVERITY",
    "Named",
    "Rule",
    "catalogue",
    "editions",
    "guards",
    "named",
    "rule",
    "severity",
]

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
    "channel",
    "exchange",
    "queue",
    "basic",
    "tx",
    "confirm",
)
"""The layers of the rules, from the octets up: AMQP 1.0's, and from channel on those of AMQP 0-9-1."""

_FILES = {"amqp10": "amqp10.tsv", "amqp091": "amqp091.tsv"}
_GUARDS = {"amqp10": "amqp10-guards.tsv"}
_EDITIONS = {"amqp10": "amqp10-editions.tsv"}

USUAL_SEVERITY = {
    "MUST": "error",
    "MUST NOT": "error",
    "MAY NOT": "error",
    "illegal": "error",
    "IMPLIED": "error",
    "SHOULD": "warning",
    "SHOULD NOT": "warning",
}
"""What breaking a rule of each level amounts to, unless its row in the table gives a reason for another
one."""


class Rule(NamedTuple):
    """One row of the catalogue.

    id: with its namespace, `amqp10/L-CREDIT`. breaker: who can break it. requirement: the level, MUST,
    SHOULD, illegal... source: document and section. text: what it demands, in our words. observable:
    `yes`, `partial` or `no`, with the reason. severity: `error`, `warning` or `note`; severity_reason: why it
    is another one than the level has by itself (`USUAL_SEVERITY`), or "". answer: what a correct peer
    answers, an error condition of AMQP 1.0 or a close of AMQP 0-9-1, several joined by ` or `; "" if none
    is named. answer_named: the specification names that answer for this fault.
    broker_codes: reply codes that brokers are known to answer with instead.
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
    severity: str
    severity_reason: str
    answer: str
    answer_named: bool
    broker_codes: tuple[str, ...]


class Named(NamedTuple):
    """A rule that the specification's XML names, and what of the catalogue it comes to.

    name: class, method, field and rule, or the domain's. rules: ids, with namespace; none where it only
    permits something. reason: why that is all.
    """

    name: str
    rules: tuple[str, ...]
    reason: str


@cache
def named() -> list[Named]:
    """The 115 rules that amqp0-9-1.xml names, in its order."""
    return [
        Named(
            row["rule"],
            tuple(f"amqp091/{one}" for one in row["ids"].split(",") if one),
            row["reason"],
        )
        for row in _rows("amqp091-xml.tsv")
    ]


@cache
def catalogue() -> dict[str, Rule]:
    """All rules by id."""
    return _read(_FILES)


@cache
def guards() -> dict[str, Rule]:
    """What is legal although it looks odd, by id: no rule may find anything in it."""
    return _read(_GUARDS)


def _rows(file: str) -> Iterator[dict[str, str]]:
    """The rows of a table of ours."""
    # Some milliseconds, which commands without findings need not wait for.
    import csv
    from importlib import resources

    text = resources.files("amqpscope.rules").joinpath("data", file).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)


def _read(files: dict[str, str]) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for namespace, file in files.items():
        for row in _rows(file):
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
                row.get("severity", ""),
                row.get("severity_reason", ""),
                row.get("answer", ""),
                row.get("answer_named") == "yes",
                tuple(row.get("broker_codes", "").split()),
            )
    return rules


@cache
def editions() -> dict[tuple[str, str], Rule]:
    """Rules as a later draft has them, by id and edition (`csd01`, `csprd02`): those that are in it."""
    rules: dict[tuple[str, str], Rule] = {}
    for namespace, file in _EDITIONS.items():
        for row in _rows(file):
            name, edition = f"{namespace}/{row['id']}", row["edition"]
            final = catalogue()[name]
            rules[name, edition] = final._replace(
                requirement=row["level"] or final.requirement,
                basis=row["level_basis"] or final.basis,
                source=f"AMQP 1.0 Part 3: Messaging, OASIS {edition}, section {row['section']}",
                text=row["rule"] or final.text,
                severity=row["severity"] or final.severity,
            )
    return rules


def rule(name: str, edition: str = "final") -> Rule:
    """One rule by its id, as that edition has it, or else the final one. Raises KeyError if there is none."""
    return editions().get((name, edition), catalogue()[name]) if edition != "final" else catalogue()[name]


def severity(name: str, edition: str = "final") -> str:
    """`error`, `warning` or `note`: what breaking a rule amounts to."""
    return rule(name, edition).severity
