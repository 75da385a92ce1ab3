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
    cut_off = any(name in report.answers and report.answers[name].more for name in ("activity", "hours"))
    dates = sorted(days)
    if cut_off:
        dates = dates[1:]  # the earliest one may be incomplete
    shown = [HeatDay(date, days[date]) for date in dates[-_MOST_DAYS:]]
    return Heat(shown, cut_off or len(shown) < len(dates))
