"""Profiles for people: each product, how it is recognized, and its habits with their sources."""

from collections.abc import Iterable

from amqpscope.report.line import Line
from amqpscope.rules.profiles import Mark, Profile

__all__ = ["profile_lines"]

_LABEL = 12


def profile_lines(profiles: Iterable[Profile]) -> list[tuple[Line, int]]:
    """Lines, each with the columns before its continuation."""
    lines: list[tuple[Line, int]] = []
    for one in profiles:
        if lines:
            lines.append(([], -1))
        lines.append(([("rule", one.name), ("", f"  {one.product}")], 4))
        lines.append(_labelled("known by", " or ".join(_mark(mark) for mark in one.marks)))
        for habit in one.habits:
            lines.append(_labelled("habit", f"{habit.rule}: {habit.does}"))
            lines.append(_labelled("source", habit.source))
    return lines


def _mark(mark: Mark) -> str:
    """A mark in words."""
    version = f" and a version below {'.'.join(str(part) for part in mark.before)}" if mark.before else ""
    return f"{mark.field} {mark.pattern}{version}"


def _labelled(label: str, text: str) -> tuple[Line, int]:
    return ([("key", f"    {label:<{_LABEL}}"), ("", text)], 4 + _LABEL)
