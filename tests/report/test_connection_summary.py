"""How many sessions, or channels, a summary counts: as many as the connection's conversation knows."""

from __future__ import annotations

import sys
from io import BytesIO

import pytest
from support.commands import DEMO, amqpscope
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

from amqpscope.input.capture import Capture
from amqpscope.report.capture_summary import CaptureSummary


def sessions(d: Conversation) -> int:
    gathered = CaptureSummary({})
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            gathered.add(record)
    (summary,) = gathered.connections.values()
    return summary.sessions


def opened() -> Dialogue:
    d = Dialogue()
    d.opened()
    return d


def test_a_session_is_one_whoever_begins_it_and_answers() -> None:
    d = opened()
    d.client.begin()
    d.server.begin()
    d.server.begin(channel=5, remote_channel=None)
    d.client.begin(channel=5, remote_channel=5)
    assert sessions(d) == 2


def test_a_session_whose_begin_was_not_captured_counts() -> None:
    d = opened()
    d.server.begin(remote_channel=0)
    assert sessions(d) == 1


def test_a_second_begin_on_a_channel_in_use_begins_no_session() -> None:
    d = opened()
    d.client.begin()
    d.server.begin()
    d.client.begin()
    assert sessions(d) == 1


def test_a_channel_counts_each_time_it_is_opened_anew() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.open_channel(1)
    assert sessions(d) == 1
    d.closed()
    d.channel(1)
    assert sessions(d) == 2


def test_on_a_narrow_terminal_the_addresses_of_a_link_have_their_own_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lines = amqpscope(capsys, "summary", "--connection", "0", DEMO).lines
    assert max(map(len, lines)) <= 60
    (at,) = [at for at, line in enumerate(lines) if line.startswith("  1 session, 2 links ")]
    assert lines[at + 1] == "  client sends shop-orders → orders"
    assert lines[at + 2].split() == ["5", "979", "closed", "by", "client"]
    assert lines[at + 3] == "  server sends confirmations → shop-confirmations"
    assert lines[at].index("ended") == lines[at + 2].index("closed") == lines[at + 4].index("closed")
