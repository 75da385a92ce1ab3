"""File names in the commands that people are shown: a shell gives them to the command as they are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.commands import DEMO, amqpscope, unprintable

from amqpscope.report.shell import shell_word

NAMES = [
    "plain.pcap",
    "two words.pcap",
    "-x.pcap",
    "-",
    "it's\\x.pcap",
    "line\nbreak.pcap",
    "\x1b[31m0.pcap",
    "café\t'\\\u202e7.pcap",
    os.fsdecode(b"latin-\xe9.pcap"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_gives_the_name_back(name: str) -> None:
    word = shell_word(name)
    assert not unprintable(word)
    given = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], stdout=subprocess.PIPE, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout
    assert given == os.fsencode(f"./{name}" if name.startswith("-") else name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [["check"], ["triage"], ["summary"], ["why", "--end"]])
def test_the_next_command_names_a_file_that_is_there(
    command: list[str],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes((DEMO.parent / "rhea-transfer-before-attach.pcap").read_bytes())
    given = f"./{name}" if name.startswith("-") else name
    following = [
        line.partition("next: ")[2]
        for line in amqpscope(capsys, *command, given).lines
        if "next: amqpscope why " in line
    ]
    assert following
    assert all(f" {shell_word(given)}" in line for line in following)
