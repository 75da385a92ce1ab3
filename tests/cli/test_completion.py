"""Completion: bash asks the program itself, which proposes what there is, quickly, and does nothing else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import amqpscope, inner_commands, whole_command

import amqpscope as package
from amqpscope.cli import completion
from amqpscope.cli.completion import proposals
from amqpscope.policy.config_finding import REMARKS
from amqpscope.report.capture_notes import CAPTURE_NOTES
from amqpscope.rules.catalogue import catalogue, guards
from amqpscope.rules.declaration import LAYERS
from amqpscope.rules.profiles import PROFILES

MODULES = 450
"""So many may be imported for a press of Tab: the ids of rules need 350, everything else 90."""


def values(*words: str) -> list[str]:
    return [value for value, _ in proposals(list(words))]


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """`amqpscope`, whether it is installed or not, in a folder for the PATH."""
    file = tmp_path / "bin" / "amqpscope"
    file.parent.mkdir()
    root = Path(package.__file__).parent.parent
    file.write_text(f"#!/bin/sh\nPYTHONPATH='{root}' exec '{sys.executable}' -P -m amqpscope \"$@\"\n")
    file.chmod(0o755)
    return file


def in_bash(command: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What bash would propose for these words."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    text = (
        'source <(amqpscope --show-completion bash)\n'
        "compopt() { printf 'compopt %s\\n' \"$*\"; }\n"
        'COMP_WORDS=(amqpscope "$@") COMP_CWORD=$#\n'
        "_amqpscope_completion amqpscope\n"
        "complete -p amqpscope\n"
        'for word in "${COMPREPLY[@]}"; do printf "%s\\n" "$word"; done\n'
    )  # fmt: skip
    path = f"{command.parent}:{os.environ['PATH']}"
    return subprocess.run(
        [bash, "--norc", "-c", text, "bash", *words],
        env={"PATH": path, "HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ch"], ["check"]),
        (["rules", "exp"], ["explain"]),
        (["rules", "explain", "diag/credit-n"], ["diag/credit-none"]),
        (["rules", "explain", "l-credit-o"], ["L-CREDIT-OWNER"]),
        (["rules", "explain", "amqp10/S-WIN-IN"], ["amqp10/S-WIN-IN"]),
        (["check", "--format", "j"], ["json", "junit"]),
        (["check", "--format", "=", "s"], ["sarif"]),
        (["sniff", "--until", "L-CREDIT,s-win-i"], ["L-CREDIT,S-WIN-IN"]),
        (["check", "some file.pcap", "--profile", "none,rh"], ["none,rhea"]),
        (["check", "traf"], ["compopt -o default"]),
        (["rules", "pages", ""], ["compopt -o dirnames"]),
        (["rules", "explain", "$(touch here)"], []),
    ],
)
def test_through_bash(tmp_path: Path, command: Path, words: list[str], expected: list[str]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    result = in_bash(command, home, *words)
    assert (result.returncode, result.stderr) == (0, "")
    registered = "complete -F _amqpscope_completion amqpscope"
    assert [line for line in result.stdout.splitlines() if line != registered] == expected
    assert registered in result.stdout
    assert list(home.iterdir()) == []


def test_commands() -> None:
    commands = inner_commands(whole_command())
    assert values("") == list(commands)
    for name, one in commands.items():
        inner = inner_commands(one)
        assert values(name, "") == list(inner) if inner else True
    assert values() == values("")
    assert values("nonsense", "r") == ["read", "rules"]
    assert [reported for value, reported in proposals(["why"])] == [commands["why"].short_help]


def test_every_option_of_every_command_is_proposed() -> None:
    def walk(command: object, path: list[str]) -> None:
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                if parameter.param_type_name == "option":
                    assert name in values(*path, name[:2] if name.startswith("--") else "-"), (path, name)
        for name, inner in inner_commands(command).items():
            walk(inner, [*path, name])

    walk(whole_command(), [])


def test_every_choice_is_proposed() -> None:
    """Of whatever takes one of several words."""

    def walk(command: object, path: list[str]) -> int:
        count = 0
        for parameter in command.params:
            choices = parameter.type_descriptor.choices
            if choices is not None and parameter.param_type_name == "option":
                assert values(*path, parameter.opts[0], "") == [str(choice.value) for choice in choices]
                count += 1
        inner = inner_commands(command)
        return count + sum(walk(one, [*path, name]) for name, one in inner.items())

    assert walk(whole_command(), []) > 20


def test_values() -> None:
    assert values("check", "--profile", "") == ["auto", "none", *(one.name for one in PROFILES)]
    assert values("rules", "list", "--layer", "") == list(LAYERS)
    assert values("rules", "list", "--layer", "link,se") == ["link,session"]
    assert "transfer" in values("read", "--only", "tr")
    assert values("check", "--output", "x") == values("check", "-o", "") == [":files"]
    assert values("pipeline", "summary", "") == [":directories"]
    assert values("pipeline", "run", "x", "--out", "y") == [":directories"]
    assert values("check", "--max-per-rule", "") == []
    assert values("why", "x.pcap", "") == values("why", "x.pcap", "1", "") == []
    assert values("check", "--format", "=") == values("check", "--format", "")
    assert values("check", "--format=ma") == ["--format=markdown"]
    assert values("check", "--strict=x") == values("check", "--nonsense=x") == []


def test_every_argument_has_proposals_but_those_that_are_anybodys_own() -> None:
    def walk(command: object, path: list[str]) -> None:
        before: list[str] = []
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                own = parameter.metavar in ("QUERY", "WORD", "[PACKET]")
                assert bool(values(*path, *before, "")) != own, (path, parameter.metavar)
                before.append("x")
        for name, inner in inner_commands(command).items():
            walk(inner, [*path, name])

    walk(whole_command(), [])


def test_selections() -> None:
    assert values("check", "--ignore", "l-credit-o") == ["L-CREDIT-OWNER"]
    assert values("check", "--select", "L-CREDIT,Wa") == ["L-CREDIT,warning"]
    assert {"all", "error", "warning", "note", "S-WIN-IN"} <= set(values("check", "--select", ""))


def test_rules() -> None:
    every = values("rules", "explain", "")
    notes = sum(len(note.codes) for note in CAPTURE_NOTES)
    names = {name.partition("/")[2] for name in (*catalogue(), *guards())}
    assert len(every) == len(names) + notes + len(REMARKS)
    assert values("rules", "explain", "config/allow-e") == ["config/ALLOW-EXPIRED"]
    assert set(values("rules", "explain", "amqp10/")) == {
        name for name in (*catalogue(), *guards()) if name.startswith("amqp10/")
    }
    assert values("rules", "explain", "L-CREDIT", "Capture/Jo") == ["capture/joined"]
    until = values("sniff", "--until", "")
    assert set(until) >= {name.partition("/")[2] for name in catalogue()}
    assert "T-LIST0" not in until and "T-LIST0" in every
    assert all(len(reported) <= 80 for _, reported in proposals(["rules", "explain", ""]))


def test_options_once_unless_they_may_come_again() -> None:
    assert "--strict" not in values("check", "--strict", "--format", "json", "-")
    assert "--format" not in values("check", "--format=json", "-")
    assert {"--output", "-o"} <= set(values("check", "--output", "x", "-"))
    assert values("check", "--", "--st") == [":files"]
    assert values("read", "-tad", "x") == values("read", "-vv", "x") == [":files"]
    assert values("read", "-t", "a") == ["a", "ad"]


def test_interfaces(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["lo", "eth0", "$(x)", "a b", "`x`", "\x1b[2J", "wlan0"]
    monkeypatch.setattr(socket, "if_nameindex", lambda: list(enumerate(names)))
    assert values("sniff", "-i", "") == ["lo", "eth0", "wlan0"]
    assert values("sniff", "-i", "lo", "--interface", "e") == ["eth0"]
    names.append("w:1")
    assert completion.answer("zsh", ["sniff", "-i", "w"]) == 0
    assert capsys.readouterr().out == "wlan0\nw\\:1\n"

    def refused() -> list[tuple[int, str]]:
        raise OSError

    monkeypatch.setattr(socket, "if_nameindex", refused)
    assert values("sniff", "-i", "") == []


@pytest.mark.parametrize("words", [[""], ["rules", "explain", ""], ["check", "--"], ["sniff", "-i", ""]])
def test_it_loads_little(command: Path, tmp_path: Path, words: list[str]) -> None:
    environment = {"PATH": os.environ["PATH"], completion.VARIABLE: "fish", "PYTHONPROFILEIMPORTTIME": "1"}
    result = subprocess.run(
        [command, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "amqpscope.cli.completion" in loaded
    heavy = {
        "typer",
        "rich",
        "scapy",
        "amqpscope.cli.main",
        "amqpscope.analysis.connection",
        "amqpscope.input.capture",
    }
    assert heavy & loaded == set()
    assert len(loaded) < MODULES, sorted(loaded)
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.parametrize("shell", ["", "tcsh", "bash\n"])
def test_an_unknown_shell_is_reported_nothing(command: Path, shell: str) -> None:
    environment = {"PATH": os.environ["PATH"], completion.VARIABLE: shell}
    result = subprocess.run([command, ""], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", "")


def test_helps_go_to_the_shells_that_show_them(capsys: pytest.CaptureFixture[str]) -> None:
    reported = capsys
    assert completion.answer("bash", ["rules", "pr"]) == 0
    assert reported.readouterr().out == "profiles\n"
    assert completion.answer("fish", ["rules", "pr"]) == 0
    assert reported.readouterr().out == "profiles\tList known product deviations.\n"
    assert completion.answer("zsh", ["rules", "pr"]) == 0
    assert reported.readouterr().out == "profiles:List known product deviations.\n"
    assert completion.answer("zsh", ["check", "x"]) == 0
    assert reported.readouterr().out == ":files\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_shown(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    result = amqpscope(capsys, "--show-completion", shell)
    assert (result.status, result.err) == (0, "")
    assert f"_AMQPSCOPE_COMPLETE={shell} " in result.out
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=result.out, text=True, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("shell", "place", "then"),
    [
        ("bash", "data/bash-completion/completions/amqpscope", "else add to ~/.bashrc: source '"),
        ("zsh", "data/zsh/site-functions/_amqpscope", "Add to ~/.zshrc, if it is not there: fpath+=('"),
        ("fish", "config/fish/completions/amqpscope.fish", "New shells take it."),
    ],
)
def test_it_is_installed(
    shell: str,
    place: str,
    then: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    result = amqpscope(capsys, "--install-completion", shell)
    assert (result.status, result.err) == (0, "")
    assert result.lines[0] == f"{tmp_path / place}: written"
    assert then in result.lines[1]
    assert (tmp_path / place).read_text() == completion.script(shell)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / place]


def test_where_it_cannot_be_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    result = amqpscope(capsys, "--install-completion", "bash")
    assert (result.status, result.out) == (2, "")
    assert result.err.count("\n") == 1
    result = amqpscope(capsys, "--install-completion", "tcsh")
    assert (result.status, result.out) == (2, "")
    assert "'bash', 'zsh', 'fish'" in result.err


def test_what_it_goes_by_is_data_of_the_package() -> None:
    table = json.loads(Path(completion.__file__).with_name("commands.json").read_text())
    assert table["commands"]["rules explain"]["arguments"] == [{"metavar": "RULE", "several": True}]
