"""Completion of command lines in bash (4 or newer), zsh and fish.

Theory of operation. At every press of the Tab key the shell's script
(`script`) runs `amqpscope` with `_AMQPSCOPE_COMPLETE` set to the shell's
name, and with the words of the command line up to the one that is being typed
as its arguments. `cli.start` comes here then before anything else is loaded:
what commands and options there are is read from commands.json, which
`cli.manual` writes; rules are read from the catalogue, interfaces from the
kernel. Nothing is written, and no capture is opened: 50 ms, most of them
Python's own.

What is printed is a line a proposal, in the form that the script takes: for
bash the words alone, for zsh and fish with their helps. One line `:files` or
`:directories` leaves it to the shell.

typer's own completion would load the whole program at every press, and types
help through rich; its installer writes to the files that a shell starts with.
Here those are left alone: it is said what to add.
"""

import json
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

__all__ = ["SHELLS", "VARIABLE", "answer", "install", "proposals", "script"]

VARIABLE = "_AMQPSCOPE_COMPLETE"

FILES, DIRECTORIES = ":files", ":directories"

_TABLE = Path(__file__).with_name("commands.json")

_FILE_METAVARS = ("PATH", "FILE", "[FORMAT:]FILE", "SOURCE", "A", "B")
_DIRECTORY_METAVARS = ("DIR", "FOLDER", "LAKE")

_SELECTORS = ("all", "error", "warning", "note")

_WIDEST = 80
"""Characters of what is said of a rule."""

# What a shell would not take for itself: a name goes into a command line as it is.
_HARMLESS = re.compile(r"[A-Za-z0-9_.:@+-]+\Z")

_BASH = """\
_amqpscope_completion() {
    local -a words
    mapfile -t words < <(_AMQPSCOPE_COMPLETE=bash "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=()
    case "${words[0]-}" in
        :files) compopt -o default ;;
        :directories) compopt -o dirnames ;;
        *) COMPREPLY=("${words[@]}") ;;
    esac
}
complete -F _amqpscope_completion amqpscope
"""

_ZSH = """\
#compdef amqpscope
_amqpscope() {
    local -a found
    found=("${(@f)$(_AMQPSCOPE_COMPLETE=zsh "${words[1]}" "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    case "${found[1]}" in
        :files) _files ;;
        :directories) _files -/ ;;
        ?*) _describe -V amqpscope found ;;
    esac
}
if [[ "${funcstack[1]}" == _amqpscope ]]; then
    _amqpscope "$@"
else
    compdef _amqpscope amqpscope
fi
"""

_FISH = """\
function __amqpscope_completion
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found (env _AMQPSCOPE_COMPLETE=fish $words "$current" 2>/dev/null)
    switch "$found[1]"
        case :files
            __fish_complete_path "$current"
        case :directories
            __fish_complete_directories "$current"
        case '*'
            printf '%s\\n' $found
    end
end
complete -c amqpscope -f -a '(__amqpscope_completion)'
"""

SHELLS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def script(shell: str) -> str:
    """What a shell has to read, so that it completes."""
    return SHELLS[shell]


def install(shell: str) -> list[str]:
    """Put the script where the shell finds it; say in two lines what was done. Raises OSError."""
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    file, then = {
        "bash": (
            data / "bash-completion" / "completions" / "amqpscope",
            "New shells take it if they have bash-completion; else add to ~/.bashrc: source '{}'",
        ),
        "zsh": (
            data / "zsh" / "site-functions" / "_amqpscope",
            "Add to ~/.zshrc, if it is not there: fpath+=('{}'); autoload -Uz compinit; compinit",
        ),
        "fish": (configuration / "fish" / "completions" / "amqpscope.fish", "New shells take it."),
    }[shell]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SHELLS[shell], encoding="utf-8")
    return [f"{file}: written", then.format(file.parent if shell == "zsh" else file)]


def answer(shell: str, words: list[str]) -> int:
    """Print the proposals for the last of the words. Gives the exit status."""
    if shell not in SHELLS:
        return 2
    for value, reported in proposals(words):
        if shell == "bash" or value in (FILES, DIRECTORIES):
            print(value)
        elif shell == "zsh":
            value = value.replace(":", "\\:")
            print(f"{value}:{reported}" if reported else value)
        else:
            print(f"{value}\t{reported}")
    return 0


def proposals(words: list[str]) -> list[tuple[str, str]]:
    """What the last of the words, behind the program's name, may become, each with a few words on it."""
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    return _Line(table).proposals(words or [""])


class _Line:
    """A command line, read word by word."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._commands: dict[str, dict[str, Any]] = table["commands"]
        self._words: dict[str, list[str]] = table["words"]
        self._remarks: dict[str, str] = table["remarks"]
        self._path = ""
        self._arguments = 0
        self._awaited: dict[str, Any] | None = None
        self._only_arguments = False
        self._used: set[str] = set()

    def proposals(self, words: list[str]) -> list[tuple[str, str]]:
        *before, current = words
        for word in before:
            self._take(word)
        # bash makes a word of `=`.
        if self._awaited is not None:
            return self._values(
                self._awaited["names"][0], self._awaited["metavar"], current.removeprefix("=")
            )
        if current.startswith("-") and not self._only_arguments:
            name, equals, begun = current.partition("=")
            if not equals:
                return self._options(current)
            option = self._option(name)
            if option is None or not option["metavar"]:
                return []
            return [
                (value if value.startswith(":") else f"{name}={value}", reported)
                for value, reported in self._values(name, option["metavar"], begun)
            ]
        inner = self._inner()
        if inner:
            return [(name, reported) for name, reported in inner if name.startswith(current)]
        arguments = self._commands[self._path]["arguments"]
        if not arguments or (self._arguments >= len(arguments) and not arguments[-1]["several"]):
            return []
        argument = arguments[min(self._arguments, len(arguments) - 1)]
        return self._values("", argument["metavar"], current)

    def _take(self, word: str) -> None:
        """One word that is whole."""
        if self._awaited is not None:
            if word != "=":
                self._awaited = None
        elif word == "--":
            self._only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not self._only_arguments:
            name, equals, _ = word.partition("=")
            attached = not word.startswith("--") and len(word) > 2
            option = self._option(word[:2] if attached else name)
            if option is not None:
                self._used.update(() if option["several"] else option["names"])
                if option["metavar"] and not equals and not attached:
                    self._awaited = option
        elif word in (name for name, _ in self._inner()):
            self._path = f"{self._path} {word}".strip()
            self._used = set()
        else:
            self._arguments += 1

    def _inner(self) -> list[tuple[str, str]]:
        """The commands of a group, with their helps."""
        above = f"{self._path} " if self._path else ""
        return [
            (path.removeprefix(above), command["help"])
            for path, command in self._commands.items()
            if path.startswith(above) and path and " " not in path.removeprefix(above) and path != self._path
        ]

    def _option(self, name: str) -> dict[str, Any] | None:
        options: list[dict[str, Any]] = self._commands[self._path]["options"]
        return next((option for option in options if name in option["names"]), None)

    def _options(self, current: str) -> list[tuple[str, str]]:
        return [
            (name, option["help"])
            for option in self._commands[self._path]["options"]
            for name in option["names"]
            if name.startswith(current)
            and name not in self._used
            and (name.startswith("--") or len(current) < 2 or name == current)
        ]

    def _values(self, option: str, metavar: str, current: str) -> list[tuple[str, str]]:
        """What a value that has begun so may be."""
        if metavar in _FILE_METAVARS:
            return [(FILES, "")]
        if metavar in _DIRECTORY_METAVARS:
            return [(DIRECTORIES, "")]
        if metavar == "RULE":
            remarks = [one for one in self._remarks.items() if one[0].upper().startswith(current.upper())]
            return _rules(current, True) + remarks
        several = metavar.endswith(",...")
        head, comma, last = current.rpartition(",") if several else ("", "", current)
        if metavar in ("RULE,...", "WHICH,..."):
            found = _rules(last, False)
            if metavar == "WHICH,...":
                found += [(word, "") for word in _SELECTORS if word.startswith(last.lower())]
            return [(f"{head}{comma}{value}", reported) for value, reported in found]
        if option in ("--interface", "-i"):
            found = [(name, "") for name in _interfaces()]
        else:
            found = [(word, "") for word in metavar.split("|") if re.fullmatch("[a-z0-9]+", word)]
            if "NAME" in metavar:
                found += [(word, "") for word in self._words.get(option, [])]
        return [(f"{head}{comma}{value}", reported) for value, reported in found if value.startswith(last)]


def _rules(begun: str, everything: bool) -> list[tuple[str, str]]:
    """Rules whose ids begin so, in any case, with what they demand. everything: also guards and notes."""
    from amqpscope.rules.catalogue import catalogue, guards

    rows = {**catalogue(), **(guards() if everything else {})}
    wanted = begun.upper()
    found = []
    for name, row in rows.items():
        short = name.partition("/")[2]
        if begun and name.upper().startswith(wanted):
            found.append((name, row.text))
        elif short.startswith(wanted):
            found.append((short, row.text))
    if everything:
        from amqpscope.report.capture_notes import CAPTURE_NOTES

        codes = [(code, note.means) for note in CAPTURE_NOTES for code in note.codes]
        found += [(code, means) for code, means in codes if code.startswith(begun.lower())]
        if len(begun) > 1 and begun.lower().startswith("diag/"[: len(begun)]):
            from amqpscope.diagnoses.registry import kinds

            found += [
                (code, kind.sentence) for code, kind in kinds().items() if code.startswith(begun.lower())
            ]
    return [
        (value, reported if len(reported) <= _WIDEST else f"{reported[: _WIDEST - 1]}…")
        for value, reported in dict(reversed(found)).items()  # two protocols may have a rule of one short id
    ][::-1]


def _interfaces() -> list[str]:
    """Of this machine."""
    try:
        names = [name for _, name in socket.if_nameindex()]
    except OSError:
        return []
    return [name for name in names if _HARMLESS.match(name)]


def main() -> None:
    """Answer a shell, whatever happens: it shows nothing of errors, so none may be shown to it."""
    try:
        status = answer(os.environ[VARIABLE], sys.argv[1:])
        sys.stdout.flush()
    except (OSError, ValueError, LookupError):
        status = 2
    # Nothing is left to be cleaned up, and Python would take its time for that.
    os._exit(status)
