"""The catalogue: every rule, checked or not, with its level, source and expected answer.

A rule that is checked is declared in the file that judges it (`amqpscope.rules.declaration`). The tables in
`data/`, one per protocol, have the rules that nothing can check from outside, and the guards: legal behaviour
that looks like a fault. The tables are read when a finding is shown, never while frames are judged.
"""

from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from typing import NamedTuple

from amqpscope.protocols import RULE_SPACES
from amqpscope.rules.declaration import LAYERS, Declaration
from amqpscope.rules.explanation import explanation
from amqpscope.rules.registry import checked, declaration, severity

__all__ = ["Named", "Rule", "catalogue", "editions", "guards", "named", "rule", "severity"]


class Rule(NamedTuple):
    """One rule of the catalogue.

    id: with its namespace, `amqp10/L-CREDIT`. breaker: who can break it. requirement: the level, MUST,
    SHOULD, illegal... source: document and section. text: the demand of the rule, in our words. observable:
    `yes`, `partial` or `no`, with the reason. severity: `error`, `warning` or `note`; severity_reason: why
    the severity differs from the usual one of the level (`USUAL_SEVERITY`), or "". answer: the answer of a
    correct peer, an error condition of AMQP 1.0 or a close of AMQP 0-9-1, several joined by ` or `; "" if
    none is named. answer_named: whether the specification names that answer for this fault. broker_codes:
    other reply-codes with which brokers are known to answer.
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
    """A rule that the specification's XML names, and the rules of the catalogue that cover it.

    name: class, method, field and rule, or domain and rule. rules: ids with namespace; none if the
    specification only permits something. reason: why the rules do not cover everything.
    """

    name: str
    rules: tuple[str, ...]
    reason: str


@cache
def named() -> list[Named]:
    """The rules that a specification's XML names (115 in amqp0-9-1.xml), in its order."""
    return [
        Named(
            row["rule"],
            tuple(f"{protocol.name}/{one}" for one in row["ids"].split(",") if one),
            row["reason"],
        )
        for protocol in RULE_SPACES.values()
        for row in _rows(protocol.named_rules)
    ]


@cache
def catalogue() -> dict[str, Rule]:
    """All rules by id: protocol by protocol, layer by layer, in the order of their ids."""
    rules = _read({one.name: one.unchecked for one in RULE_SPACES.values()})
    rules |= {name: _declared(one) for name, one in checked().items()}
    protocols = list(RULE_SPACES)
    order = sorted(
        rules.values(),
        key=lambda row: (protocols.index(row.id.partition("/")[0]), LAYERS.index(row.layer), row.id),
    )
    return {row.id: row for row in order}


@cache
def guards() -> dict[str, Rule]:
    """The guards by id: legal behaviour that looks like a fault, in which no rule may find anything."""
    return _read({one.name: one.guards for one in RULE_SPACES.values()})


def _rows(file: str) -> Iterator[dict[str, str]]:
    """The rows of one of our tables; none if there is no such table."""
    if not file:
        return
    # The import takes some milliseconds, which commands without findings do not need.
    import csv

    text = (get_data("amqpscope.rules", f"data/{file}") or b"").decode()
    yield from csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)


def _read(tables: dict[str, str]) -> dict[str, Rule]:
    """The rules in these tables, by the names of the protocols."""
    rules: dict[str, Rule] = {}
    for namespace, table in tables.items():
        for row in _rows(table):
            name = f"{namespace}/{row['id']}"
            rules[name] = Rule(
                name,
                row["layer"],
                row["breaker"],
                row["level"],
                row["basis"],
                row["source"],
                row["demand"],
                row.get("observable", ""),
                row.get("reason", ""),
                row.get("evidence", ""),
                row.get("severity", ""),
                row.get("severity_reason", ""),
                row.get("answer", ""),
                row.get("answer_named") == "yes",
                (),
            )
    return rules


@cache
def _declared(one: Declaration) -> Rule:
    """A rule that is checked."""
    words = explanation(one.id)
    return Rule(
        one.id,
        one.layer,
        one.breaker,
        one.level,
        one.basis,
        "" if words is None else words.source,
        "" if words is None else words.demand,
        "yes" if words is None or words.silent.startswith("never") else "partial",
        "" if words is None else words.silent,
        "" if words is None else words.evidence,
        one.severity,
        one.severity_reason,
        one.answer,
        one.answer_named,
        one.broker_codes,
    )


@cache
def editions() -> dict[tuple[str, str], Rule]:
    """The rules of a later draft, by id and edition (`csd01`, `csprd02`), as that draft words them."""
    rules: dict[tuple[str, str], Rule] = {}
    for protocol in RULE_SPACES.values():
        for row in _rows(protocol.editions):
            name, edition = f"{protocol.name}/{row['id']}", row["edition"]
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
    """One rule by its id, in the wording of that edition, or else of the final one. Raises KeyError if there
    is none.
    """
    if edition != "final" and (name, edition) in editions():
        return editions()[name, edition]
    one = declaration(name)
    return catalogue()[name] if one is None else _declared(one)
