"""The report of a lake as a page. Why it is safe: `amqpscope.report.page`."""

from typing import Any, Final

from amqpscope.pipeline.heat import heat_of
from amqpscope.pipeline.report import MAX_CHANCE, LakeReport, report_object
from amqpscope.report.page import data_text, page_html, resource
from amqpscope.report.printable import cut, printable

__all__ = ["report_html"]

_OWN: Final = "amqpscope.pipeline"

_LONGEST: Final = 160
"""Columns of a value."""

_SENTENCES: Final = ("message", "detail")

_LONGEST_SENTENCE: Final = 400


def report_html(report: LakeReport) -> str:
    """The whole file."""
    found, heat = report_object(report), heat_of(report)
    for answer in found["answers"].values():
        answer["groups"] = [_shown(report, group) for group in answer["groups"]]
    data = {
        "lake": report.title,
        "command": report.sql_command,
        "chance": MAX_CHANCE,
        "since": report.since,
        "heat": {"days": [day._asdict() for day in heat.days], "more": heat.more},
        "left_out": found["left_out"],
        "answers": found["answers"],
    }
    body, style, script = (resource(_OWN, f"report.{kind}") for kind in ("html", "css", "js"))
    return page_html(f"Report of {data['lake']}", body, style, script, data_text(data))


def _shown(report: LakeReport, group: dict[str, Any]) -> dict[str, Any]:
    """A group with its texts visible and not too long, and with the command for its packet, if it has one."""
    shown = {name: _text(name, value) if isinstance(value, str) else value for name, value in group.items()}
    if "packet" in group:
        shown["why"] = report.why_command(group["capture"], group["packet"])
    return shown


def _text(name: str, value: str) -> str:
    if name == "where":
        return value  # or the query would be another one; it is visible and has a bound
    return cut(printable(value), _LONGEST_SENTENCE if name in _SENTENCES else _LONGEST)
