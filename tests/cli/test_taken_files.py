"""No command writes over a file that it reads: a capture, standard input, a key log, a configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import DEMO

KEYS = f"CLIENT_RANDOM {'00' * 32} {'00' * 48}\n"


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("check --tls-keylog keys.txt -o text:keys.txt demo.pcap", "--output keys.txt"),
        ("check --tls-keylog keys.txt --annotate ./keys.txt demo.pcap", "--annotate ./keys.txt"),
        ("check -o text:keys.txt --config secrets.toml demo.pcap", "--output keys.txt"),
        ("draw demo.pcap --tls-keylog keys.txt -o keys.txt", "--output keys.txt"),
        ("draw --compare demo.pcap demo.pcap --tls-keylog keys.svg -o keys.svg", "--output keys.svg"),
        ("draw - -o demo.svg", "--output demo.svg"),
        ("sniff -i - --tls-keylog keys.txt -w keys.txt", "--write keys.txt"),
        ("sniff -i - --config secrets.toml -w secrets.toml", "--write secrets.toml"),
        ("sniff -i - -w demo.svg", "--write demo.svg"),
    ],
)
def test_a_file_that_is_read_is_not_written_over(line: str, taken: str, tmp_path: Path) -> None:
    for name in ("demo.pcap", "demo.svg"):
        (tmp_path / name).write_bytes(DEMO.read_bytes())
    for name in ("keys.txt", "keys.svg"):
        (tmp_path / name).write_text(KEYS)
    (tmp_path / "secrets.toml").write_text('tls-keylog = ["keys.txt"]\n')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with (tmp_path / "demo.svg").open("rb") as stdin:
        command = [sys.executable, "-m", "amqpscope", *line.split()]
        ran = subprocess.run(command, stdin=stdin, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert f"{taken}: this run already reads or writes this file" in ran.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
