"""What `why` says that a peer had read: only what frames of the same session show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.conversation import Said
from support.dialogue import RECEIVER, SENDER, Dialogue


def credit_taken_back() -> tuple[Dialogue, Said, Said]:
    """The flow that takes back the credit of the first session, and what the server still sends there. In
    between, the server reads a transfer of the second session.
    """
    d = Dialogue()
    d.subscribed(credit=10)
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.attach(SENDER, name="out", channel=1)
    d.server.attach(RECEIVER, name="out", channel=1)
    d.server.flow(handle=0, channel=1, delivery_count=0, link_credit=10)
    flow = d.client.flow(handle=0, delivery_count=0, link_credit=0)
    d.client.transfer(channel=1)
    d.server.disposition(0, channel=1)
    transfer = d.server.transfer()
    return d, flow, transfer


def explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], d: Dialogue, said: Said
) -> tuple[dict[str, Any], str]:
    """The answer of `why` about the only frame of a packet, and its text in one line."""
    path = tmp_path / "sessions.pcap"
    path.write_bytes(d.pcap())
    packet = d.packet_number(said)
    (frame,) = json.loads(amqpscope(capsys, "why", path, packet, "--format", "json").out)["frames"]
    return frame, " ".join(amqpscope(capsys, "why", path, packet).out.split())


def test_what_another_session_shows_is_not_read_for_certain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d, flow, transfer = credit_taken_back()
    d.goodbye()
    frame, text = explained(tmp_path, capsys, d, transfer)
    packet = d.packet_number(flow)
    knew = frame["knew"]["server"]
    assert {"packet": packet, "name": "flow"} in knew["perhaps_read"]
    assert knew["must_have_read"] == {"packet": packet + 1, "name": "transfer"}
    (ground,) = [one for one in frame["grounds"] if one["packet"] == packet]
    assert ground["known"] == "arrived, perhaps not read"
    assert f"must have read transfer in packet {packet + 1}; may have read" in text


def test_only_its_own_session_shows_that_a_frame_was_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d, flow, transfer = credit_taken_back()
    d.client.disposition(0)
    d.client.flow(handle=0, delivery_count=1, link_credit=20)
    # The first of them that only this flow allows is the last one.
    *_, shows = (d.server.transfer() for _ in range(10))
    d.goodbye()
    frame, _ = explained(tmp_path, capsys, d, flow)
    followed = {one["packet"]: one["what"] for one in frame["followed"]}
    assert followed[d.packet_number(shows)] == "shows that the server had read this frame"
    assert d.packet_number(transfer) not in followed


@pytest.mark.parametrize("ended", [False, True])
def test_of_a_session_that_is_over_it_is_still_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ended: bool
) -> None:
    d, flow, _ = credit_taken_back()
    d.client.end_session()
    if ended:
        d.server.end_session()
    said = d.server.flow(handle=0, channel=1, delivery_count=1, link_credit=10)
    d.goodbye()
    frame, _ = explained(tmp_path, capsys, d, said)
    assert {"packet": d.packet_number(flow), "name": "flow"} in frame["knew"]["server"]["perhaps_read"]
