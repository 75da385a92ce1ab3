"""How a command's help looks: plain text within the terminal, options under headings in the order given.

typer's own boxes leave half of eighty columns for the words. An option's
heading is its `rich_help_panel`.
"""

from collections.abc import Callable
from typing import Any, Final

from typer.core import TyperCommand

from amqpscope.cli.plain_values import take_plain_values

__all__ = ["HelpfulCommand", "help_row", "later"]

_LATER: Final[list[Callable[[], str]]] = []
"""What gives words of helps that take long to find."""

_SIGN: Final = "\0"
"""Stands in a help on both sides of the place of such words in `_LATER`."""


def later(words: Callable[[], str]) -> str:
    """Words of an option's help that take long to find. They are looked for when the help is shown."""
    _LATER.append(words)
    return f"{_SIGN}{len(_LATER) - 1}{_SIGN}"


def help_row(option: Any, context: Any) -> tuple[str, str] | None:
    """What the help says of an option: its names, and its words. None for a hidden option."""
    record = option.get_help_record(context)
    if record is None:
        return None
    shown, words = record
    parts = words.split(_SIGN)
    parts[1::2] = [_LATER[int(place)]() for place in parts[1::2]]
    return shown, "".join(parts)


class HelpfulCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        return take_plain_values(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *map(_argument, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                row = (_argument(parameter), getattr(parameter, "help", None) or "")
                sections.setdefault("Arguments", []).append(row)
            else:
                record = help_row(parameter, ctx)
                if record is not None:
                    panel = getattr(parameter, "rich_help_panel", None) or "Other options"
                    sections.setdefault(panel, []).append(record)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def _argument(parameter: Any) -> str:
    """What an argument is called, and whether there may be several."""
    return f"{parameter.metavar}..." if parameter.nargs != 1 else str(parameter.metavar)
