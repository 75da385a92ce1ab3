"""What `diff` prints of two recorded runs, whole: one client and two brokers, on 80 columns without colour.

After a change that is meant, REWRITE_GOLDEN=1 writes it anew: read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from support.commands import amqpscope

from amqpscope.input.capture import Capture

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


def test_connections_and_sessions_have_the_numbers_of_their_captures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are counted from 0, as everywhere; two findings that are not the same do not look the same."""
    result = amqpscope(capsys, "diff", CAPTURES / "proton-anonymous.pcap", CAPTURES / "rabbitmq-proton.pcap")
    assert "\nconnection 0: shop (proton-shop) " in result.out
    assert "begin on session 0: " in result.out
    found = [re.sub(r"(only in .|in packet \d+)", "", line) for line in result.lines if "T-TIME-MS" in line]
    assert len(found) == len(set(found)) == 2
    more = amqpscope(
        capsys, "diff", CAPTURES / "rhea-transfer-before-attach.pcap", CAPTURES / "pika-channel-errors.pcap"
    )
    numbers = re.findall(r"^connection ([^:]+):", more.out, re.MULTILINE)
    with Capture(str(CAPTURES / "pika-channel-errors.pcap")) as capture:
        streams = {record.connection.stream for record in capture}
    assert numbers == ["0", *(str(stream) for stream in sorted(streams))]
