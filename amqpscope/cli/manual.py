"""The command line as a manual page, and as the table that completion goes by: both written from `--help`.

    python -m amqpscope.cli.manual            # writes amqpscope.1 and commands.json beside this file
    python -m amqpscope.cli.manual --check    # writes nothing; exit status 1 if it would write others

Theory of operation. `described` reads typer's commands into plain records.
`man_page` sets those in roff with the macros of man(7); each line of text is
escaped, so that nothing in a help text can be a request or an escape of
roff's. `table` gives what completion needs: names, metavars, and the first
words of the helps; what a value may be is read from its metavar there
(`text|json`, `FILE`, `RULE`), so an option that is added needs nothing else.

Both files are part of the source, since what builds the package need not be
able to run it; a test holds them to the program.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from typer.core import TyperGroup
from typer.main import get_command

from amqpscope import __version__
from amqpscope.cli.help import help_row
from amqpscope.cli.main import app
from amqpscope.cli.selection import frame_names
from amqpscope.policy.config_finding import REMARKS
from amqpscope.report.printable import printable
from amqpscope.rules.declaration import LAYERS
from amqpscope.rules.profiles import PROFILES

__all__ = ["FILES", "Command", "Option", "described", "man_page", "table"]

PROGRAM = "amqpscope"

_BESIDE = 80
"""Characters of a help that stand beside an option where it is proposed."""

HERE = Path(__file__).parent


class Option(NamedTuple):
    """names: with their dashes. metavar: of its value, "" for a flag. shown, help: as `--help` has it."""

    names: tuple[str, ...]
    metavar: str
    several: bool
    panel: str
    shown: str
    help: str


class Command(NamedTuple):
    """path: `rules explain`, "" for the program. arguments: metavar, help, whether there may be several."""

    path: str
    short: str
    help: str
    epilog: str
    group: bool
    arguments: tuple[tuple[str, str, bool], ...]
    options: tuple[Option, ...]


def described() -> list[Command]:
    """Every command, in the order of the help; groups before what is in them."""
    return _below(get_command(app), "", None)


def _below(command: Any, path: str, above: Any) -> list[Command]:
    name = command.name if path else PROGRAM
    context = command.context_class(command, info_name=name, parent=above, **command.context_settings)
    arguments = []
    options = []
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument":
            words = getattr(parameter, "help", None) or ""
            arguments.append((str(parameter.metavar), words, parameter.nargs != 1))
            continue
        record = help_row(parameter, context)
        if record is None:
            continue
        value = not (parameter.is_flag or getattr(parameter, "count", False))
        options.append(
            Option(
                # Those of --help come in any order.
                tuple(
                    sorted((*parameter.opts, *parameter.secondary_opts), key=lambda one: (one[1] != "-", one))
                ),
                (parameter.metavar or "VALUE") if value else "",
                bool(parameter.multiple or getattr(parameter, "count", False)),
                getattr(parameter, "rich_help_panel", None) or "Other options",
                *record,
            )
        )
    inner = command.list_commands(context) if isinstance(command, TyperGroup) else []
    found = [
        Command(
            path,
            command.short_help or "",
            command.help or "",
            command.epilog or "",
            bool(inner),
            tuple(arguments),
            tuple(options),
        )
    ]
    for name in inner:
        found += _below(command.get_command(context, name), f"{path} {name}".strip(), context)
    return found


# ---- the table of completion ----------------------------------------------------------------------------


def table(commands: list[Command]) -> dict[str, Any]:
    """What `cli.completion` goes by."""
    return {
        "commands": {
            command.path: {
                "help": command.short,
                "arguments": [
                    {"metavar": metavar, "several": several} for metavar, _, several in command.arguments
                ],
                "options": [
                    {
                        "names": list(option.names),
                        "metavar": option.metavar,
                        "several": option.several,
                        "help": _first_words(option.help),
                    }
                    for option in command.options
                ],
            }
            for command in commands
        },
        # Of options whose metavar names no more than `NAME`.
        "words": {
            "--layer": list(LAYERS),
            "--only": sorted(set(frame_names())),
            "--profile": [profile.name for profile in PROFILES],
        },
        # What can be explained beside the rules, and would bring too much with it.
        "remarks": {name: kind.text for name, kind in REMARKS.items()},
    }


def _first_words(text: str) -> str:
    """The beginning of a help: its first sentence, or what has room beside an option."""
    text = " ".join(text.split()).partition(". ")[0].partition(" [default")[0].rstrip(".")
    return text if len(text) <= _BESIDE else f"{text[: _BESIDE - 1].rstrip()}…"


# ---- the manual page ------------------------------------------------------------------------------------

_ESCAPES = {
    "\\": "\\e",
    "-": "\\-",
    "'": "\\(aq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
    '"': "\\(dq",
}


def man_page(commands: list[Command]) -> str:
    """The page, in roff."""
    whole, *rest = commands
    what, _, _ = whole.help.partition(":")
    lines = [
        '.\\" Written by python -m amqpscope.cli.manual: do not edit it here.',
        f'.TH {PROGRAM.upper()} 1 "" "{PROGRAM} {_roff(__version__)}" "User commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{PROGRAM} \\- {_roff(what[:1].lower() + what[1:])}",
        ".SH SYNOPSIS",
    ]
    for command in rest:
        if not command.group:
            lines += [_usage(command), ".br"]
    lines += [f"\\fB{PROGRAM}\\fR [\\fIOPTIONS\\fR]", ".SH DESCRIPTION", *_filled(whole.help)]
    lines += _epilog(whole.epilog)
    lines += [".SH OPTIONS", *_options(whole.options)]
    lines.append(".SH COMMANDS")
    for command in rest:
        lines += _command(command)
    lines += [
        ".SH EXIT STATUS",
        *_filled(
            "0: fine. 1: findings that make the command fail, or a difference. 2: a failure, with one "
            "line on standard error. 3: there was no AMQP. 130: interrupted. The sections of the "
            "commands above give more detail."
        ),
        ".SH SEE ALSO",
        "\\fBtshark\\fR(1), \\fBtcpdump\\fR(1), \\fBmergecap\\fR(1)",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _usage(command: Command) -> str:
    parts = [f"\\fB{PROGRAM} {_roff(command.path)}\\fR", "[\\fIOPTIONS\\fR]"]
    parts += [
        f"\\fI{_roff(metavar)}\\fR{'...' if several else ''}" for metavar, _, several in command.arguments
    ]
    return " ".join(parts)


def _command(command: Command) -> list[str]:
    lines = [f".SS {PROGRAM} {_roff(command.path)}"]
    if not command.group:
        lines += [_usage(command), ".PP"]
    lines += _filled(command.help)
    for metavar, words, several in command.arguments:
        lines += [".TP", f"\\fI{_roff(metavar)}\\fR{'...' if several else ''}", *_filled(words)]
    panels: dict[str, list[Option]] = {}
    for option in command.options:
        if "--help" not in option.names:
            panels.setdefault(option.panel, []).append(option)
    for panel, options in panels.items():
        if len(panels) > 1:
            lines += [".PP", _line(f"{panel}:")]
        lines += _options(tuple(options))
    lines += _epilog(command.epilog)
    return lines


def _options(options: tuple[Option, ...]) -> list[str]:
    lines = []
    for option in options:
        lines += [".TP", f"\\fB{_roff(option.shown)}\\fR", *_filled(option.help)]
    return lines


def _epilog(text: str) -> list[str]:
    """What stands below a help: paragraphs, those that begin with \\b line by line."""
    lines = []
    for paragraph in text.strip("\n").split("\n\n"):
        first, *more = paragraph.split("\n")
        if first.strip() == "\b":
            lines += [".PP", ".nf", *map(_line, more), ".fi"]
        elif paragraph.strip():
            lines += [".PP", *_filled(paragraph)]
    return lines


def _filled(text: str) -> list[str]:
    """Words as one line of roff, which fills lines by itself."""
    text = " ".join(text.split())
    return [_line(text)] if text else []


def _line(text: str) -> str:
    """A line of text: what stands between backticks in bold, and no request of roff's at its beginning."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text]
    line = "".join(f"\\fB{_roff(part)}\\fR" if index % 2 else _roff(part) for index, part in enumerate(parts))
    # A line without anything would be a request for space, which it is meant as here.
    return f"\\&{line}" if line[:1] in (".", " ") else line


def _roff(text: str) -> str:
    """Text that is nothing but itself in roff."""
    return "".join(
        _ESCAPES.get(character) or (character if character.isascii() else f"\\[u{ord(character):04X}]")
        for character in printable(text)
    )


# ---- the files ------------------------------------------------------------------------------------------


def _table_text(commands: list[Command]) -> str:
    return json.dumps(table(commands), indent=1) + "\n"


FILES = {f"{PROGRAM}.1": man_page, "commands.json": _table_text}
"""What is written, by whom."""


def main(arguments: list[str]) -> int:
    """Write the files, or only look at them. Gives the exit status."""
    commands = described()
    different = []
    for name, write in FILES.items():
        file = HERE / name
        text = write(commands)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            different.append(name)
            if arguments != ["--check"]:
                file.write_text(text, encoding="utf-8")
    if arguments == ["--check"] and different:
        print(f"{', '.join(different)}: not as `python -m amqpscope.cli.manual` writes it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
