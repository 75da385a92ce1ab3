"""How a command's help looks: plain text within the terminal, options under headings in the order given.

typer's own boxes leave half of eighty columns for the words. An option's
heading is its `rich_help_panel`.
"""

from typing import Any

from typer.core import TyperCommand

from amqpscope.cli.plain_values import take_plain_values

__all__ = ["HelpfulCommand"]


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
                record = parameter.get_help_record(ctx)
                if record is not None:
                    panel = getattr(parameter, "rich_help_panel", None) or "Other options"
                    sections.setdefault(panel, []).append(record)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def _argument(parameter: Any) -> str:
    """What an argument is called, and whether there may be several."""
    return f"{parameter.metavar}..." if parameter.nargs != 1 else str(parameter.metavar)
