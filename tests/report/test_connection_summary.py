"""How many sessions, or channels, a summary counts: as many as the connection's conversation knows."""

from __future__ import annotations

from io import BytesIO

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
