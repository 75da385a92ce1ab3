"""The commands that read captures, where a system has less than Linux: no POSIX modules, another encoding."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from amqpscope.policy.paths import slashes

ROOT = Path(__file__).parents[2]

EACH = """
import io, json, sys
from contextlib import redirect_stdout
from amqpscope.cli.main import run

encoding, *commands = json.loads(sys.argv[1])
given = []
for command in commands:
    output = io.TextIOWrapper(io.BytesIO(), encoding)
    with redirect_stdout(output):
        status = run(command)
        sys.stdout.flush()
    given.append((status, output.buffer.getvalue().decode(encoding)))
print(json.dumps(given))
"""
"""Runs commands one after another, and gives for each its status and what it prints."""

WITHOUT_POSIX = """
import os, select, shutil, signal, socket, subprocess, sys, tempfile

for name in ("curses", "fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None
for module, names in {
    os: "fork forkpty geteuid getuid getgid getegid killpg mkfifo openpty pipe2 setuid setgid setsid statvfs "
        "O_NOCTTY O_NONBLOCK O_CLOEXEC get_blocking set_blocking sched_getaffinity",
    select: "poll epoll EPOLLIN POLLIN",
    signal: "SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGWINCH SIGTSTP SIGCONT SIGPIPE SIGQUIT "
        "pthread_sigmask",
    socket: "AF_UNIX AF_PACKET",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)

"""

COMMANDS = [
    ("read captures/demo.pcap -vv", 0),
    ("read captures/demo.pcap --format ndjson", 0),
    ("check captures/rhea-transfer-before-attach.pcap", 1),
    ("check captures/rhea-transfer-before-attach.pcap --format sarif", 1),
    ("check captures/rhea-transfer-before-attach.pcap --format json -o {folder}/out.xml", 1),
    ("summary captures/demo.pcap --format json", 0),
    ("why captures/rhea-transfer-before-attach.pcap 17", 0),
    ("why --end captures/pika-connection-errors.pcap", 0),
    ("diff captures/proton-anonymous.pcap captures/rabbitmq-proton.pcap", 1),
    ("rules list", 0),
    ("rules explain L-CREDIT", 0),
    ("config show", 0),
]


def outputs(program: str, encoding: str, commands: list[str], folder: Path) -> list[tuple[int, str]]:
    """The status and the output of each command, in one process. Standard error is empty."""
    words = [command.replace("{folder}", str(folder)).split() for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps([encoding, *words])],
        cwd=ROOT, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.stderr == ""
    return [(status, text) for status, text in json.loads(done.stdout)]


def test_no_command_needs_a_posix_module(tmp_path: Path) -> None:
    found = outputs(WITHOUT_POSIX + EACH, "utf-8", [command for command, _ in COMMANDS], tmp_path)
    assert [(command, status) for (command, _), (status, _) in zip(COMMANDS, found, strict=True)] == COMMANDS
    assert (tmp_path / "out.xml").exists()


def test_the_modules_are_hidden() -> None:
    hidden = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + "import termios"], capture_output=True, text=True
    )
    assert "ModuleNotFoundError" in hidden.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_that_is_not_utf8_is_no_failure(encoding: str, tmp_path: Path) -> None:
    commands = [command for command, _ in COMMANDS if "--format" not in command]
    for command, (status, text) in zip(commands, outputs(EACH, encoding, commands, tmp_path), strict=True):
        assert status == dict(COMMANDS)[command]
        assert text, command


def test_paths_in_shared_files_have_slashes() -> None:
    assert slashes("recorded\\day 1\\x.pcap", "\\") == "recorded/day 1/x.pcap"
    assert slashes("a\\b", "/") == "a\\b"
