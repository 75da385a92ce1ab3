"""What helps somebody whose command line is wrong: one sentence for a usual mistake.

Many people come from tshark, tcpdump and grep, and type what these take.
`advice` is asked only when a command line has failed, so it may read the
table of all commands and the disk.
"""

import difflib
import json
import os
import socket
from pathlib import Path
from typing import Any, Final

from amqpscope.report.shell import shell_word
from amqpscope.rules.rule_names import rule_named

__all__ = ["advice", "mistaken_path"]

_TABLE: Final = Path(__file__).with_name("commands.json")

_FRAMES: Final = "--only, --address, --link, --connection, --channel, --from and --to choose frames"
_FINDINGS: Final = "--select and --ignore choose findings"
_PLAIN_FILE: Final = "a capture is named without an option: amqpscope {command} {value}"
_RECORD: Final = "`amqpscope sniff -w FILE` records packets"

_OPTIONS: Final[dict[str, dict[str, str]]] = {
    "-r": {"sniff": "`amqpscope sniff -i - < FILE` replays a capture", "": _PLAIN_FILE},
    "-Y": {"read": _FRAMES, "check": _FINDINGS, "sniff": "--only and --address choose frames, -f packets"},
    "--filter": {"read": _FRAMES, "check": _FINDINGS},
    "-f": {"read": _FRAMES, "check": _FINDINGS},
    "--grep": {"read": _FRAMES, "check": _FINDINGS},
    "-w": {"check": f"--output FILE writes a report, and {_RECORD}", "": _RECORD},
    "-c": {
        "read": "--limit N shows N frames, --count only counts frames",
        "": "only `sniff` stops after N packets",
    },
    "-n": {"read": "--limit N shows N frames", "": "addresses and ports are never turned into names"},
    "-v": {
        "": "`amqpscope read -v` shows all fields of frames",
        "check": "`check` shows all it knows; `amqpscope read -v` shows all fields of frames",
        "amqpscope": "--version shows the version; `amqpscope read -v` shows all fields of frames",
    },
    "-V": {"": "`amqpscope --version` shows the version"},
    "-i": {"": "`amqpscope sniff -i NAME` captures on a network interface"},
    "--rule": {
        "": "--select RULE shows only findings of a rule",
        "read": "`amqpscope check --select RULE` does that",
    },
    "--connection": {
        "diff": "`diff` compares all connections",
        "sniff": "--filter 'port N' captures one connection",
    },
}
"""Options that a command does not have: by command ("": any other one), what to use instead."""

_COMMANDS: Final = {
    "help": "use `amqpscope --help` or `amqpscope COMMAND --help`",
    "version": "use `amqpscope --version`",
    "capture": "`amqpscope sniff` captures on a network interface",
    "live": "`amqpscope sniff` captures on a network interface",
    "tail": "`amqpscope sniff` shows frames while they come",
    "top": "use `amqpscope sniff --top`",
    "show": "`amqpscope read` shows the frames of a capture",
    "dump": "`amqpscope read` shows the frames of a capture",
    "stats": "`amqpscope summary` has a summary of each connection, `amqpscope read --count` counts frames",
    "verify": "`amqpscope check` reports violations of the protocol",
    "validate": "`amqpscope check` reports violations of the protocol",
}


def advice(command: str, option: str, words: list[str]) -> str:
    """What helps, or "".

    command: the one that failed, `read` or `rules list`, "" for `amqpscope` itself. option: the one that it
    does not know, or "". words: the arguments of the command line that no option begins, behind the command.
    """
    if option:
        return _about_option(command, option, words)
    if not command or (" " not in command and command in _groups()):
        return _about_command(command, words[0]) if words else ""
    if command == "sniff" and words:
        return _about_interface(words[-1])
    return ""


def mistaken_path(path: str) -> str:
    """What helps somebody who named this path, which does not exist, as a capture; or ""."""
    if path in _interfaces():
        return f"it is a network interface: amqpscope sniff -i {shell_word(path)}"
    if rule_named(path) is not None:
        return f"it is a rule: amqpscope rules explain {path}"
    return ""


def _about_option(command: str, option: str, words: list[str]) -> str:
    name = option.partition("=")[0]
    known = _OPTIONS.get(name, {})
    said = known.get(command or "amqpscope", known.get("", ""))
    if said:
        return said.format(command=command or "COMMAND", value=shell_word(words[-1]) if words else "FILE")
    table = _table()
    own = table.get(command, {"options": []})["options"]
    for one in own:
        if "--format" in one["names"] and name.removeprefix("--") in one["metavar"].split("|"):
            return f"use --format {name.removeprefix('--')}"
    having = [
        f"`{other}`"
        for other, each in table.items()
        if other and other != command and any(name in one["names"] for one in each["options"])
    ]
    if having and len(having) < len(table) // 2:
        return f"{name} is an option of {_and(having)}"
    near = difflib.get_close_matches(name, [one for each in own for one in each["names"]], n=1, cutoff=0.75)
    if near:
        return f"did you mean {near[0]}?"
    return ""


def _about_command(group: str, word: str) -> str:
    """A command that does not exist."""
    table = _table()
    if not group:
        if os.path.exists(word):
            return f"it is a file: use `amqpscope check {shell_word(word)}`, or `read`, `summary` or `why`"
        if word in _COMMANDS:
            return _COMMANDS[word]
        if rule_named(word) is not None:
            return f"it is a rule: amqpscope rules explain {word}"
    inner = [name for name in table if name and name.split()[-1] == word]
    if inner:
        return f"use `amqpscope {inner[0]}`"
    named = (
        [name.removeprefix(f"{group} ") for name in table if name.startswith(f"{group} ")] if group else []
    )
    near = difflib.get_close_matches(word, named or [name for name in table if " " not in name], n=1)
    return f"did you mean `{near[0]}`?" if near else ""


def _about_interface(word: str) -> str:
    """A word that `sniff` does not take."""
    if word in _interfaces():
        return f"an interface is named by -i: amqpscope sniff -i {shell_word(word)}"
    if os.path.isfile(word):
        file = shell_word(word)
        return f"it is a file: use `amqpscope check {file}`, or `amqpscope sniff -i - < {file}`"
    return "an interface is named by -i, and a filter by -f; `amqpscope sniff --list` lists the interfaces"


def _table() -> dict[str, dict[str, Any]]:
    """All commands with their options."""
    commands = json.loads(_TABLE.read_text("utf-8"))["commands"]
    assert isinstance(commands, dict)
    return commands


def _groups() -> set[str]:
    return {name.partition(" ")[0] for name in _table() if " " in name}


def _interfaces() -> list[str]:
    try:
        return [name for _, name in socket.if_nameindex()]
    except OSError:
        return []


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
