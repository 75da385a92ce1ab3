"""Which frames `why` takes for those of the same session, link and delivery."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.conversation import Said
from support.dialogue import RECEIVER, SENDER, Dialogue


def why(capsys: pytest.CaptureFixture[str], folder: Path, d: Dialogue, said: Said) -> dict[str, Any]:
    """What there is to say of one frame of a dialogue."""
    capture = folder / "dialogue.pcap"
    capture.write_bytes(d.pcap())
    result = amqpscope(capsys, "why", "--format", "json", capture, str(d.packet_number(said)))
    assert (result.status, result.err) == (0, "")
    (frame,) = json.loads(result.out)["frames"]
    assert isinstance(frame, dict)
    return frame


def followed(frame: dict[str, Any]) -> list[str]:
    return [one["what"] for one in frame["followed"] if "first frame" not in one["what"]]


def both_ways() -> Dialogue:
    """Each peer sends a delivery with the id 0 to the other one."""
    d = Dialogue()
    d.linked(credit=5)
    d.server.attach(SENDER, handle=1, name="back")
    d.client.attach(RECEIVER, handle=1, name="back")
    d.client.flow(handle=1, link_credit=5, delivery_count=0)
    d.client.transfer()
    d.server.transfer(handle=1)
    return d


def test_deliveries_of_both_peers_with_one_id_are_two(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d = both_ways()
    d.server.disposition(first=0, settled=True)
    said = d.client.disposition(first=0, settled=True)
    again = d.client.disposition(first=0, settled=True)
    d.goodbye()
    assert "forbids" not in [one["effect"] for one in why(capsys, tmp_path, d, said)["grounds"]]
    forbidding = [one for one in why(capsys, tmp_path, d, again)["grounds"] if one["effect"] == "forbids"]
    assert [(one["what"], one["packet"]) for one in forbidding] == [
        ("the client had already settled delivery-id 0", d.packet_number(said))
    ]


def test_a_disposition_answers_a_further_transfer_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d = Dialogue()
    d.linked(credit=5)
    d.client.transfer(more=True)
    said = d.client.transfer(delivery_id=None)
    d.server.disposition(first=0, settled=True)
    d.goodbye()
    assert followed(why(capsys, tmp_path, d, said)) == ["settles the delivery"]


def test_an_end_of_the_other_peer_ends_the_session_of_the_begin_that_answered(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    said = d.server.begin()
    d.client.end_session()
    d.server.end_session()
    d.client.close()
    d.server.close()
    assert followed(why(capsys, tmp_path, d, said))[0] == "the session is ended"


def test_an_open_is_on_no_session(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d = Dialogue()
    d.headers()
    d.client.open()
    said = d.server.open()
    d.client.begin()
    d.server.begin()
    d.client.end_session()
    d.server.end_session()
    d.client.close()
    d.server.close()
    assert followed(why(capsys, tmp_path, d, said)) == ["the connection is closed"]
