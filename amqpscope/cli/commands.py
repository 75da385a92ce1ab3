"""The commands of `amqpscope`, by name. Each is imported when it is called: no other costs it time."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from amqpscope.cli.help import HelpfulCommand
from amqpscope.cli.plain_values import take_plain_values
from amqpscope.input.garbage import settle_collector

__all__ = ["COMMANDS", "GROUPS", "Commands"]

COMMANDS = {
    "triage": "Show what is wrong, who has to act, and what to do next.",
    "read": "Show the conversation, frame by frame.",
    "summary": "Summarize each connection and how it ended.",
    "check": "Report protocol violations: which peer, rule, packet and state.",
    "why": "Explain why a packet is allowed or forbidden, and what followed.",
    "draw": "Draw a capture as HTML, or a connection as SVG, Mermaid or text.",
    "diff": "Compare two captures of the same scenario.",
    "cut": "Write a part of a capture to a file, with packet comments.",
    "sniff": "Capture live traffic, and report violations as they happen.",
    "proxy": "Forward connections to a server, and check the traffic live.",
}
"""What each command does. `amqpscope/cli/NAME.py` has a function of the command's name, and its `EPILOG`."""

GROUPS = {
    "rules": "List and explain the rules.",
    "config": "Show the settings in effect.",
    "pipeline": "Analyze many captures on Spark and write tables.",
}
"""What each group of commands does. `amqpscope/cli/NAME.py` has the group as `app`."""


class Commands(TyperGroup):
    """The command that has all others below it."""

    def get_params(self, ctx: Any) -> list[Any]:
        return take_plain_values(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *GROUPS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and cmd_name in self.list_commands(ctx):
            self.commands[cmd_name] = _imported(cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items(), *GROUPS.items()])


def _imported(name: str) -> Any:
    """The command or the group of commands of this name."""
    module = import_module(f"amqpscope.cli.{name}")
    above = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if name in GROUPS:
        above.add_typer(module.app, name=name, short_help=GROUPS[name])
    else:
        above.command(name, cls=HelpfulCommand, epilog=module.EPILOG, short_help=COMMANDS[name])(
            getattr(module, name)
        )
    command = typer.main.get_group(above).commands[name]
    settle_collector()
    return command
