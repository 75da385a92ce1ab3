"""The manual page: what `--help` says, in roff that holds nothing but it, and where man finds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from support.commands import inner_commands, whole_command

from amqpscope.cli.manual import FILES, Command, Option, described, man_page, table

ROOT = Path(__file__).resolve().parent.parent.parent
COMMANDS = described()
PAGE = man_page(COMMANDS)

HOSTILE = [
    ".so /etc/passwd",
    "'so /etc/passwd",
    ".",
    "\\",
    "\\*(xx \\n(yy \\fBbold \\\\",
    '.TH "x" 1',
    "a `.b` `",
    "`.TH`",
    "-- ^ ~ ' \" `x` … é",
]


def rendered(page: str) -> str:
    """As it would be read, in very wide lines."""
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("there is no groff")
    result = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", "-rLL=2000n", "-P-cbou"],
        input=page.encode(),
        capture_output=True,
        check=True,
    )
    assert result.stderr == b""
    return result.stdout.decode()


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_what_the_program_writes(name: str) -> None:
    """If not: python -m amqpscope.cli.manual"""
    assert (ROOT / "amqpscope" / "cli" / name).read_text("utf-8") == FILES[name](COMMANDS)


def test_it_has_every_command_and_option() -> None:
    paths = []

    def walk(command: object, path: str) -> None:
        paths.append(path)
        found = next(one for one in COMMANDS if one.path == path)
        names = {name for option in found.options for name in option.names}
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert {*parameter.opts, *parameter.secondary_opts} <= names
        for name, inner in inner_commands(command).items():
            walk(inner, f"{path} {name}".strip())

    walk(whole_command(), "")
    assert [command.path for command in COMMANDS] == paths
    for command in COMMANDS[1:]:
        section = PAGE.partition(f".SS amqpscope {command.path}\n")[2].partition("\n.S")[0]
        for option in command.options:
            shown = option.shown.replace("-", "\\-")
            assert (f"\\fB{shown}\\fR" in section) == ("--help" not in option.names), (command.path, shown)
        for metavar, _, _ in command.arguments:
            assert f"\\fI{metavar}\\fR" in section


def test_it_reads_as_the_help_does() -> None:
    text = " ".join(rendered(PAGE).split())
    assert text.startswith("AMQPSCOPE(1) User commands AMQPSCOPE(1) NAME amqpscope - see what AMQP peers ")
    for command in COMMANDS:
        for words in (command.help, *(option.help for option in command.options if command.path)):
            if words != "Show this message and exit.":
                assert " ".join(words.replace("`", "").split()) in text, (command.path, words)
        for line in command.epilog.replace("\b", "").splitlines():
            assert " ".join(line.replace("`", "").split()) in text, (command.path, line)


def test_roff_sees_only_what_is_meant_for_it() -> None:
    requests = {".TH", ".SH", ".SS", ".TP", ".PP", ".br", ".nf", ".fi", ".nh", ".ad", '.\\"'}
    page = man_page(with_hostile_words())
    for line in [*PAGE.splitlines(), *page.splitlines()]:
        if line.startswith((".", "'")):
            assert line.split()[0] in requests, line
        if not line.startswith('.\\"'):
            left = re.sub(r"\\(?:e|-|&|f[BIR]|\((?:aq|ga|ha|ti|dq)|\[u[0-9A-F]{4,6}\])", "", line)
            assert "\\" not in left, line
        assert line.isascii() and line.isprintable()
    assert page.count("\n.TH ") == PAGE.count("\n.TH ") == 1


def with_hostile_words() -> list[Command]:
    whole, *_ = COMMANDS
    words = "\b\n" + "\n".join(HOSTILE)
    options = tuple(Option(("--x",), "X", False, text, text, text) for text in HOSTILE)
    arguments = tuple((text, text, True) for text in HOSTILE)
    return [
        whole,
        Command("hostile", "x", HOSTILE[0], f"{words}\n\n{HOSTILE[0]}\x1b[2J", False, arguments, options),
    ]


def test_hostile_words_are_shown_as_they_are() -> None:
    text = rendered(man_page(with_hostile_words()))
    for words in HOSTILE:
        plain = words.replace("`", "") if words.count("`") % 2 == 0 else words
        assert text.count(f" {plain}\n") >= 2, words
    assert "\\x1b[2J" in text


def test_man_finds_it_beside_the_command(tmp_path: Path) -> None:
    man = shutil.which("man")
    version = man and subprocess.run([man, "--version"], capture_output=True, text=True, check=False)
    if not man or not version or not version.stdout.startswith("man 2."):
        pytest.skip("there is no man-db")
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    for folder, files in folders.items():
        (tmp_path / folder).mkdir(parents=True)
        for file in files:
            shutil.copy(ROOT / file, tmp_path / folder)
    (tmp_path / "bin").mkdir()
    result = subprocess.run(
        [man, "-w", "amqpscope"],
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == f"{tmp_path / 'share' / 'man' / 'man1' / 'amqpscope.1'}\n"


def test_the_table_has_what_completion_needs() -> None:
    commands = table(COMMANDS)["commands"]
    assert set(commands) == {command.path for command in COMMANDS}
    only = next(option for option in commands["read"]["options"] if "--only" in option["names"])
    assert (only["metavar"], only["several"]) == ("NAME,...", True)
    assert all(len(option["help"]) <= 80 for command in commands.values() for option in command["options"])
