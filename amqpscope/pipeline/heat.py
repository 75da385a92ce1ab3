"""Findings per hour as a heat map: a row a day, a column an hour (UTC)."""

from typing import Final, NamedTuple

from amqpscope.pipeline.report import LakeReport

__all__ = ["EMPTY", "Heat", "HeatDay", "heat_of"]

EMPTY: Final = "·"
"""Stands for an hour in which connections began and nothing was found."""

_MOST_DAYS: Final = 31


class HeatDay(NamedTuple):
    """A day with connections or findings. findings: of each hour; None if nothing was captured in it."""

    date: str
    findings: list[int | None]


class Heat(NamedTuple):
    """days: the latest ones, in order. more: there are earlier ones."""

    days: list[HeatDay]
    more: bool


def heat_of(report: LakeReport) -> Heat:
    """The heat map of a report."""
    days: dict[str, list[int | None]] = {}
    for name in ("activity", "hours"):
        for group in report.groups(name):
            if group["hour"] is not None:
                hours = days.setdefault(group["hour"][:10], [None] * 24)
                at = int(group["hour"][11:13])
                hours[at] = (hours[at] or 0) + group.get("findings", 0)
    dates = sorted(days)
    # The earliest date of an answer that is cut off may be incomplete, and those before it lack its numbers.
    ends = [_earliest(report, name) for name in ("activity", "hours") if _cut_off(report, name)]
    dates = [date for date in dates if date > max(ends, default="")]
    shown = [HeatDay(date, days[date]) for date in dates[-_MOST_DAYS:]]
    return Heat(shown, bool(ends) or len(shown) < len(dates))


def _cut_off(report: LakeReport, name: str) -> bool:
    return name in report.answers and report.answers[name].more


def _earliest(report: LakeReport, name: str) -> str:
    """The earliest date of an answer."""
    return min((group["hour"][:10] for group in report.groups(name) if group["hour"] is not None), default="")
