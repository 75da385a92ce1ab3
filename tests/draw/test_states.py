"""The paths through the state diagrams: by the tables, and with what each endpoint could have known."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dialogue import Dialogue
from support.pictures import picture_of

from amqpscope.draw.states import StatePath
from amqpscope.tracking.amqp091 import states as amqp091
from amqpscope.tracking.amqp10 import states as amqp10

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"


def paths(path: Path) -> dict[str, StatePath]:
    """The paths of the worst connection of a capture, by what they are of."""
    picture = picture_of(path)
    (followed,) = picture.paths.values()
    return {one.of: one for one in followed.paths.values()}


def of(dialogue: Dialogue, tmp_path: Path) -> dict[str, StatePath]:
    path = tmp_path / "dialogue.pcap"
    path.write_bytes(dialogue.pcap())
    return paths(path)


def test_a_link_from_attach_to_detach(tmp_path: Path) -> None:
    d = Dialogue()
    d.linked(credit=1)
    d.client.detach()
    d.server.detach()
    d.client.end_session()
    d.server.end_session()
    d.goodbye()
    found = of(d, tmp_path)
    assert [step[1:4] for step in found["connection: client"].steps] == [
        ("send HDR", "START", "HDR_SENT"),
        ("receive HDR", "HDR_SENT", "HDR_EXCH"),
        ("send OPEN", "HDR_EXCH", "OPEN_SENT"),
        ("receive OPEN", "OPEN_SENT", "OPENED"),
        ("send CLOSE", "OPENED", "CLOSE_SENT"),
        ("receive CLOSE", "CLOSE_SENT", "END"),
    ]
    assert found["connection: server"].state == amqp10.END
    assert found["session 0: client"].state == found["session 0: server"].state == amqp10.UNMAPPED
    assert [step[3] for step in found["link q: server"].steps] == [
        "ATTACH_RCVD",
        "ATTACHED",
        "DETACH_RCVD",
        "DETACHED",
    ]


def test_what_was_in_flight_is_received_later(tmp_path: Path) -> None:
    """Both peers end the session: neither could know of the other one's end."""
    d = Dialogue()
    d.begun()
    with d.on_their_way():
        d.client.end_session()
        d.server.end_session()
    found = of(d, tmp_path)
    for peer in ("client", "server"):
        assert [step[1] for step in found[f"session 0: {peer}"].steps][-2:] == ["send END", "receive END"]


def test_channels_and_the_end_of_a_connection() -> None:
    found = paths(CAPTURES / "amqplib-crossing-close.pcap")
    assert found["connection"].state == amqp091.OPEN
    assert found["closing of the connection"].steps[0][2] == amqp091.OPEN
    assert found["closing of the connection"].state == amqp091.CLOSED
    assert "BOTH CLOSE" in [step[3] for step in found["channel 1"].steps]


def test_paths_and_their_steps_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.draw.states.MAX_STATE_PATHS", 4)
    monkeypatch.setattr("amqpscope.draw.states.MAX_PATH_STEPS", 3)
    d = Dialogue()
    d.linked(credit=1)
    d.goodbye()
    found = of(d, tmp_path)
    assert len(found) == 4
    assert len(found["connection: client"].steps) == 3
    assert found["connection: client"].more == 3 and found["connection: client"].state == amqp10.END
