"""What `diff` prints of two recorded runs, whole: one client and two brokers, on 80 columns without colour.

After a change that is meant, REWRITE_GOLDEN=1 writes it anew: read the difference before it is committed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.commands import amqpscope

GOLDEN = Path(__file__).parent / "golden"
CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"


@pytest.mark.parametrize(("name", "options"), [("brokers.txt", []), ("brokers-all.txt", ["--all"])])
def test_what_is_printed(
    name: str, options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CAPTURES)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    result = amqpscope(capsys, "diff", *options, "proton-anonymous.pcap", "rabbitmq-proton.pcap")
    assert (result.status, result.err) == (1, "")
    assert "\x1b" not in result.out
    assert max(map(len, result.lines)) <= 80
    golden = GOLDEN / name
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(result.out, "utf-8")
    assert result.out == golden.read_text("utf-8")
