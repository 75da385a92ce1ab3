"""The option of the commands that show a timeline: how packet times are shown."""

import enum
from typing import Any

import typer

from amqpscope.report.timeline import TIME_FORMATS

__all__ = ["TimeFormat", "time_option"]


class TimeFormat(enum.StrEnum):
    """Forms of packet times."""

    r = "r"
    d = "d"
    a = "a"
    ad = "ad"
    e = "e"


def time_option(panel: str) -> Any:
    """panel: the heading of the option in the help."""
    forms = "; ".join(f"{name}: {meaning}" for name, meaning in TIME_FORMATS.items())
    return typer.Option(
        "--time",
        "-t",
        metavar="|".join(TimeFormat),
        show_default=False,
        rich_help_panel=panel,
        help=f"Choose how times are shown. {forms}.",
    )
