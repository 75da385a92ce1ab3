"""`--color`: whether text for people has colours.

This option and `--no-pager` may stand anywhere on the command line.
"""

import enum
import os

from amqpscope.cli.pager import NO_PAGER

__all__ = ["Color", "choose_color", "display_apart"]

_OPTION = "--color"


class Color(enum.StrEnum):
    """When text has colours."""

    always = "always"
    never = "never"
    auto = "auto"


def display_apart(arguments: list[str]) -> tuple[list[str], list[str]]:
    """`--color WHEN` and `--no-pager` of a command line, and all its other arguments.

    These are options of the program, and may stand anywhere before `--`.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first: list[str] = []
    others: list[str] = []
    at = 0
    while at < end:
        one = arguments[at]
        size = 2 if one == _OPTION else 1
        (first if one in (_OPTION, NO_PAGER) or one.startswith(f"{_OPTION}=") else others).extend(
            arguments[at : min(at + size, end)]
        )
        at += size
    return first, others + arguments[end:]


def choose_color(when: Color) -> None:
    """Say in the environment, where all outputs look, whether there are colours. auto: it stays as it is."""
    if when is Color.always:
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR"] = "1"
        if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
            os.environ["TERM"] = "xterm"
    elif when is Color.never:
        os.environ.pop("FORCE_COLOR", None)
        os.environ["NO_COLOR"] = "1"
