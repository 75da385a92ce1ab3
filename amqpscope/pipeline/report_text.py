"""The report of a lake as text."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from amqpscope.pipeline.heat import EMPTY, heat_of
from amqpscope.pipeline.report import CHANGES, LakeReport
from amqpscope.pipeline.table_rows import row_objects, table_lines
from amqpscope.report.printable import cut, printable
from dissectors.wording import count

__all__ = ["report_lines"]

_MOST: Final = 40
"""Groups of a question that are shown."""

_MOST_EXAMPLES: Final = 20

_LONGEST: Final = 200
"""Columns of a finding's sentence."""

_UNANSWERED: Final = {
    "changes": CHANGES,
    "new_findings": "New findings",
    "new_diagnoses": "New diagnoses",
}
"""The titles of questions that may have no answer."""

_ORDER: Final = (
    *(
        "files",
        "connections",
        "severities",
        "new_findings",
        "new_diagnoses",
        "changes",
        "rules",
        "examples",
        "hours",
        "containers",
    ),
    *("addresses", "latency", "latency_hours", "starved", "diagnoses", "errors", "products", "unread"),
)


def report_lines(report: LakeReport) -> Iterator[str]:
    """The lines, without their ends."""
    yield f"report of {report.title}"
    for span in report.groups("span"):
        yield f"  connections from {span['since'] or '-'} to {span['until'] or '-'}"
    if report.since:
        yield f"  compared with the run {report.since}"
    for name in _ORDER:
        answer = report.answers.get(name)
        if answer is None:
            if name in report.left_out:
                yield from ("", f"── {_UNANSWERED[name]}", report.left_out[name])
            continue
        yield ""
        yield f"── {answer.question.title}"
        if not answer.wheres:
            yield "none"
            continue
        if name == "examples":
            yield from _example_lines(report, row_objects(answer.table))
        elif name == "hours":
            yield from _heat_lines(report)
        else:
            yield from table_lines(answer.table.slice(0, _MOST))
            left = len(answer.wheres) - _MOST
            if left > 0 or answer.more:
                yield "further groups are left out" if answer.more else f"{count(left, 'group')} more"
        yield f'rows: {report.sql_command} "{answer.question.rows_sql}"'


def _example_lines(report: LakeReport, groups: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Findings, below the rule and the product that they are about."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for one in groups:
        found[one["rule"], one["severity"], one["certainty"], one["product"]].append(one)
    for (rule, severity, certainty, product), examples in list(found.items())[:_MOST_EXAMPLES]:
        kind = severity if certainty == "certain" else f"possible {severity}"
        number = count(examples[0]["findings"], "finding")
        yield f"{kind} {printable(rule)}, {cut(printable(product or 'no product'), 60)}: {number}"
        for one in examples:
            yield f"  {cut(printable(one['message']), _LONGEST)}"
            why = report.why_command(one["capture"], one["packet"])
            if why:
                yield f"    next: {why}"


def _heat_lines(report: LakeReport) -> Iterator[str]:
    """A line a day, a column an hour: the findings, or `EMPTY`; blank without connections."""
    heat = heat_of(report)
    cells = [["" if one is None else str(one or EMPTY) for one in day.findings] for day in heat.days]
    width = max([2, *(len(cell) for day in cells for cell in day)])
    yield " " * 10 + "".join(f" {hour:>{width}}" for hour in range(24))
    for day, shown in zip(heat.days, cells, strict=True):
        yield (day.date + "".join(f" {cell:>{width}}" for cell in shown)).rstrip()
    if heat.more:
        yield "earlier days are left out"
