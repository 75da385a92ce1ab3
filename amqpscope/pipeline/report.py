"""A lake as a report: the answers to all questions, and which rules a newer version of a product breaks.

Text, JSON and the page show this one model. Each number leads to its rows by SQL (`LakeQuestion.rows_sql`,
and `where` of a group), and a finding leads to the command `amqpscope why`.
"""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from amqpscope.model.ring_names import AGAIN
from amqpscope.pipeline.earlier import Earlier
from amqpscope.pipeline.engines import Engine
from amqpscope.pipeline.questions import FURTHER_QUESTIONS, QUESTIONS, LakeQuestion
from amqpscope.pipeline.table_rows import row_objects
from amqpscope.report.printable import printable
from amqpscope.report.shell import shell_word

__all__ = [
    "CHANGES",
    "MAX_CHANCE",
    "LakeAnswer",
    "LakeReport",
    "VersionChange",
    "lake_report",
    "report_object",
]

_MOST: Final = {
    "diagnoses": 60,
    "rules": 100,
    "containers": 40,
    "addresses": 40,
    "hours": 1000,
    "latency": 40,
    "errors": 40,
    "new_findings": 100,
    "new_diagnoses": 60,
}
"""Groups that the report shows of questions of which `summary` shows fewer."""

_COMPARED: Final = ("new_findings", "new_diagnoses")
"""Questions whose answers are what an earlier run did not have."""

_MOST_CHANGES: Final = 60

CHANGES: Final = "Rules that only one of two successive versions of a product breaks"

MAX_CHANCE: Final = 0.05
"""A difference between two versions that is likelier than this without any cause proves nothing."""

_SEVERITIES: Final = ("error", "warning", "note")

_VERSION: Final = re.compile(r"(.*\S)\s+v?(\d\S{0,60})")
"""Product and version, as the tables have them in one text."""

_PARTS: Final = re.compile(r"\d{1,18}|[A-Za-z]{1,60}")


class LakeAnswer(NamedTuple):
    """The groups that a question has found. wheres: for each group, what its rows have in common, in SQL.

    more: there are further groups, which are not in the report.
    """

    question: LakeQuestion
    table: pa.Table
    wheres: list[str]
    more: bool


class VersionChange(NamedTuple):
    """A rule that one version of a product breaks, and its neighbour does not.

    change: `new` if the newer version breaks the rule, `gone` if the older one does. Versions are the whole
    texts of product and version; the numbers are their connections and those with a finding. chance: the
    probability that all connections with a finding are of one version if the version makes no difference.
    """

    change: str
    rule: str
    severity: str
    certainty: str
    peer: str
    protocol: str
    older: str
    older_connections: int
    older_broken: int
    newer: str
    newer_connections: int
    newer_broken: int
    chance: float


class LakeReport(NamedTuple):
    """name: of the lake, as the user calls it. as_of: the run that left the tables so, "" for the last one.
    answers: by the names of their questions, and `changes`. left_out: why there is no answer to a question
    although the lake has its tables. since: the run that `new_findings` and `new_diagnoses` compare with, ""
    if there is none. tags: of all rows that were counted. newest: where several files have had a name one
    after another, what the tables call the newest of them, "" if that is not known.
    """

    name: str
    as_of: str
    answers: dict[str, LakeAnswer]
    left_out: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    since: str = ""
    tags: Mapping[str, str] = MappingProxyType({})
    newest: Mapping[str, str] = MappingProxyType({})

    def groups(self, name: str) -> list[dict[str, Any]]:
        """The groups of an answer; none if the lake does not have the tables of the question."""
        return [*row_objects(self.answers[name].table)] if name in self.answers else []

    def why_command(self, capture: str | None, packet: int | None) -> str:
        """What a shell runs to explain a packet; "" if the packet is not known, not in a local file, or in
        one that has been overwritten.
        """
        if capture is None or packet is None or "://" in capture:
            return ""
        name = AGAIN.sub("", capture)
        if name in self.newest and not (name != capture and os.path.lexists(capture)):
            if capture != self.newest[name]:
                return ""
            capture = name
        return f"amqpscope why {shell_word(capture)} {packet}"

    @property
    def title(self) -> str:
        """What the report is about, for people."""
        only = ", ".join(f"{name}={value}" for name, value in self.tags.items())
        return printable(self.name + (f", only {only}" if only else ""))

    @property
    def sql_command(self) -> str:
        """What a shell runs for a query, which follows between double quotes."""
        run = f" --as-of {shlex.quote(printable(self.as_of))}" if self.as_of else ""
        tags = "".join(f" --tag {shlex.quote(f'{name}={value}')}" for name, value in self.tags.items())
        return f"amqpscope pipeline sql {shell_word(self.name)}{run}{tags}"


def lake_report(
    engine: Engine,
    name: str,
    as_of: str = "",
    before: Earlier | None = None,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> LakeReport:
    """Ask all that the tables of the lake can answer. name, as_of, tags: see `LakeReport`. before: what an
    earlier run had found; None: nothing is compared.
    """
    answers: dict[str, LakeAnswer] = {}
    left_out: dict[str, str] = {}
    for question in (*QUESTIONS, *FURTHER_QUESTIONS):
        if not set(question.tables).issubset(engine.tables):
            continue
        if question.name not in _COMPARED:
            answers[question.name] = _answer(
                engine, question._replace(most=_MOST.get(question.name, question.most))
            )
        elif before is not None:
            known = before.found(question.name)
            if known is None:
                left_out[question.name] = before.why or "The earlier run has not written the table for this."
            else:
                answers[question.name] = _new(engine, question, known)
    broken = answers.pop("broken", None)
    if broken is not None:
        products = answers["products"]
        cut_off = [one for one in (products, broken) if one.more]
        if cut_off:  # what a version breaks, or which the next version is, is not known for certain
            asked = cut_off[0].question
            left_out["changes"] = (
                f'The lake has more than {asked.most} groups of "{asked.title}": too many for this.'
            )
        else:
            answers["changes"] = _changes(products, broken)
    since = before.run if before else ""
    return LakeReport(name, as_of, answers, left_out, since, tags, _newest(engine))


def _newest(engine: Engine) -> dict[str, str]:
    """See `LakeReport.newest`."""
    numbers: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for file in engine.query("SELECT DISTINCT capture_set, capture FROM files").to_pylist():
        again = AGAIN.search(file["capture"])
        if again and os.path.lexists(file["capture"]):
            again = None  # that is its own name
        name = file["capture"][: again.start()] if again else file["capture"]
        numbers[name][file["capture_set"]].append(int(again[1]) if again else 1)
    found = {}
    for name, sets in numbers.items():
        every = [number for of in sets.values() for number in of]
        if len(every) > 1 and 1 in every:
            found[name] = f"{name}#{max(every)}" if len(sets) == 1 else ""
    return found


def _new(engine: Engine, question: LakeQuestion, known: Collection[Any]) -> LakeAnswer:
    """The groups that are not known. known: fingerprints of findings, keys of diagnoses."""
    found = engine.query(question._replace(most=question.most + 1).sql)
    keys = ["fingerprint"] if "fingerprint" in question.keys else list(question.keys)
    values = zip(*(found[key].to_pylist() for key in keys), strict=True)
    new = [row for row, key in enumerate(values) if (key if len(key) > 1 else key[0]) not in known]
    most = _MOST[question.name]
    table = found.take(pa.array(new[:most], pa.int64()))
    wheres = [question.condition(group) for group in table.to_pylist()]
    return LakeAnswer(question, table, wheres, len(new) > most or found.num_rows > question.most)


def _answer(engine: Engine, question: LakeQuestion) -> LakeAnswer:
    found = engine.query(question._replace(most=question.most + 1).sql)
    table = found.slice(0, question.most)
    wheres = [question.condition(group) for group in table.to_pylist()]
    return LakeAnswer(question, table, wheres, found.num_rows > question.most)


def report_object(report: LakeReport) -> dict[str, Any]:
    """The report as JSON has it."""
    return {
        "schema": "amqpscope/lake-report/1",
        "lake": report.name,
        "as_of": report.as_of or None,
        "since": report.since or None,
        "tags": dict(report.tags),
        "left_out": report.left_out,
        "answers": {name: _answer_object(one) for name, one in report.answers.items()},
    }


def _answer_object(answer: LakeAnswer) -> dict[str, Any]:
    return {
        "title": answer.question.title,
        "rows_sql": answer.question.rows_sql,
        "more": answer.more,
        "groups": [
            {**group, "where": where}
            for group, where in zip(row_objects(answer.table), answer.wheres, strict=True)
        ],
    }


def _changes(products: LakeAnswer, broken: LakeAnswer) -> LakeAnswer:
    """What differs between each version of a product and the next newer one that was captured.

    The worst change stands first. A product in the other role, or with another protocol, is another one.
    """
    versions: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for one in row_objects(products.table):
        match = _VERSION.fullmatch(one["product"] or "")
        if match is not None and one["protocol"] is not None:
            versions[match[1], one["peer"], one["protocol"]][one["product"]] = one["connections"]
    faults: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for one in row_objects(broken.table):
        faults[one["product"], one["peer"], one["protocol"]][one["rule"]] = one
    found = []
    for (_, peer, protocol), connections in versions.items():
        ordered = sorted(connections, key=_age)
        for older, newer in pairwise(ordered):
            before, after = faults[older, peer, protocol], faults[newer, peer, protocol]
            for change, fault in _different(before, after):
                severity, number = _SEVERITIES[fault["worst"]], fault["connections"]
                breaks = connections[newer if change == "new" else older]
                found.append(
                    VersionChange(
                        *(change, fault["rule"], severity, fault["certainty"], peer, protocol),
                        *(older, connections[older], number if change == "gone" else 0),
                        *(newer, connections[newer], number if change == "new" else 0),
                        _chance(number, breaks, connections[older] + connections[newer]),
                    )
                )
    found.sort(key=_weight)
    shown = [one._asdict() for one in found[:_MOST_CHANGES]]
    question = broken.question._replace(name="changes", title=CHANGES)
    wheres = [
        question.condition({**one, "product": one["newer" if one["change"] == "new" else "older"]})
        for one in shown
    ]
    return LakeAnswer(question, pa.Table.from_pylist(shown), wheres, len(found) > _MOST_CHANGES)


def _different(
    before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rules that only one of two versions breaks."""
    for rule in after.keys() - before.keys():
        yield "new", after[rule]
    for rule in before.keys() - after.keys():
        yield "gone", before[rule]


def _chance(broken: int, own: int, both: int) -> float:
    """The probability that connections drawn from those of two versions are all of one of them.

    broken: how many are drawn. own: connections of that version. both: connections of both.
    """
    chance = 1.0
    for drawn in range(min(broken, own)):
        chance *= (own - drawn) / (both - drawn)
    return round(chance, 4)


def _weight(one: VersionChange) -> tuple[Any, ...]:
    place = _SEVERITIES.index(one.severity)
    return (one.chance > MAX_CHANCE, one.change == "gone", place, one.certainty, one.chance, one)


def _age(product: str) -> tuple[Any, ...]:
    """Versions in their order: numbers by their values, and a version with letters at its end before the one
    without."""
    match = _VERSION.fullmatch(product)
    parts = _PARTS.findall(match[2] if match else "")
    return (*((1, int(part), "") if part.isdigit() else (-1, 0, part) for part in parts), (0, 0, ""), product)
