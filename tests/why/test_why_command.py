"""`amqpscope why`: what it prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope

ROOT = Path(__file__).parent.parent.parent / "captures"
CREDIT = ROOT / "rules" / "amqp10" / "L-CREDIT" / "violating.pcap"


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    result = amqpscope(capsys, "why", "--format", "json", *arguments)
    assert result.status == 0
    found = json.loads(result.out)
    assert isinstance(found, dict)
    return found


def test_json_of_a_transfer_beyond_the_credit(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, CREDIT, 16)
    assert (found["schema"], found["packet"], found["peer"]) == ("amqpscope/why/1", 16, "client")
    link = found["before"]["sessions"][0]["links"][0]
    assert (link["sender"], link["credit"]) == ("client", 0)
    (frame,) = found["frames"]
    assert frame["frame"]["name"] == "transfer"
    assert [one["rule"] for one in frame["findings"]] == ["amqp10/L-CREDIT"]
    flow = next(one for one in frame["grounds"] if one["packet"] == 12)
    assert (flow["effect"], flow["frame"]["fields"]["link-credit"]) == ("grants", 2)
    assert flow["known"] in ("read", "arrived, perhaps not read")
    assert set(frame["knew"]) == {"client", "server"}


def test_text_tells_the_state_the_grounds_and_what_followed(capsys: pytest.CaptureFixture[str]) -> None:
    out = amqpscope(capsys, "why", CREDIT, 16).out
    assert "packet 16 of " in out
    assert "credit 0, delivery-count 2" in out
    assert "!! error amqp10/L-CREDIT by the client in packet 16" in out
    lines = out.splitlines()
    granting = next(
        index for index, line in enumerate(lines) if "link credit 2 from delivery-count 0 on" in line
    )
    assert "flow" in lines[granting + 1] and "   12 " in lines[granting + 1]


def test_what_had_not_arrived_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, ROOT / "rhea-transfer-before-attach.pcap", 17)
    (frame,) = found["frames"]
    client = frame["knew"]["client"]
    assert client["must_have_read"] is None
    assert client["could_have_read"] == {"packet": 11, "name": "sasl-outcome"}
    assert client["on_its_way"] == {"packet": 16, "name": "begin"}
    assert client["on_its_way_count"] == 3
    assert frame["knew"]["server"]["must_have_read"] == {"packet": 12, "name": "begin"}
    assert [one["packet"] for one in frame["followed"]] == [19]


def test_what_a_frame_acknowledges_has_arrived(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, ROOT / "rhea-transfer-before-attach.pcap", 19)
    (frame,) = found["frames"]
    assert frame["frame"]["name"] == "close"
    assert frame["knew"]["client"]["could_have_read"] == {"packet": 17, "name": "transfer"}
    assert frame["knew"]["client"]["on_its_way"] is None


def test_a_delivery_of_0_9_1_and_its_acknowledgement(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "pika-publish-consume.pcap"
    listed = amqpscope(capsys, "read", "--format", "ndjson", "--only", "basic.deliver,basic.ack", capture)
    frames = [json.loads(line) for line in listed.out.splitlines()]
    deliver = next(frame for frame in frames if frame["name"] == "basic.deliver")
    tag = deliver["fields"]["delivery-tag"]
    ack = next(one for one in frames if one["name"] == "basic.ack" and one["fields"]["delivery-tag"] == tag)
    found = explained(capsys, capture, deliver["packet"])
    asked = next(one for one in found["frames"] if one["frame"]["fields"] == deliver["fields"])
    assert ("grants", "basic.consume") in {
        (one["effect"], one["frame"]["name"]) for one in asked["grounds"] if one["frame"] is not None
    }
    assert (ack["packet"], "settles the delivery") in {
        (one["packet"], one["what"]) for one in asked["followed"]
    }
    settled = explained(capsys, capture, ack["packet"])
    grounds = [one for frame in settled["frames"] for one in frame["grounds"]]
    assert any(one["packet"] == deliver["packet"] and f"delivery-tag {tag}" in one["what"] for one in grounds)


def test_one_frame_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "rhea-transfer-before-attach.pcap"
    out = amqpscope(capsys, "why", capture, 12).out
    assert "5 frames in the packet" in out
    assert "» " in out and out.count("» ") == 1
    begin = amqpscope(capsys, "why", "--frame", 3, capture, 12).out
    assert "»    12" in begin and "begin" in begin[begin.index("» ") :].splitlines()[0]
    result = amqpscope(capsys, "why", "--frame", 6, capture, 12)
    assert (result.status, result.out) == (2, "")
    assert result.err == "amqpscope: --frame 6: the number of frames in the packet is 5\n"


def test_a_packet_without_frames(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, ROOT / "rhea-transfer-before-attach.pcap", 15)
    assert (found["frames"], found["octets"]) == ([], 0)
    assert found["frame_before"]["packet"] == 14
    assert found["frame_after"]["packet"] == 16
    assert found["before"]["client"]["state"] == "OPENED"


def test_the_end_of_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "rules" / "amqp091" / "C-CLOSE-HANDSHAKE" / "violating.pcap"
    found = explained(capsys, capture, 12)
    ended = found["end_of_stream"]
    assert [one["rule"] for one in ended["findings"]] == ["amqp091/C-CLOSE-HANDSHAKE"]
    assert ended["grounds"][0]["effect"] == "lacks"
    assert "the client's stream ends (" in amqpscope(capsys, "why", capture, 12).out


def test_what_the_end_of_a_stream_acknowledges_has_arrived(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "pika-refused.pcap"
    found = json.loads(amqpscope(capsys, "check", "--format", "json", "--no-config", capture).out)
    packet = next(one["packet"] for one in found["findings"] if one["rule"] == "amqp091/C-CLOSE-REPLY")
    knew = explained(capsys, capture, packet)["end_of_stream"]["knew"]["client"]
    assert knew["could_have_read"]["name"] == "connection.close"
    assert knew["on_its_way"] is None


def test_a_packet_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "why", CREDIT, 4000)
    assert result.status == 2
    assert result.err.startswith("amqpscope: packet 4000: the capture has only ")
    assert amqpscope(capsys, "why", CREDIT, 0).err == "amqpscope: packet 0: packets are counted from 1\n"
    assert amqpscope(capsys, "why", ROOT / "nowhere.pcap", 1).status == 2


def test_a_connection_without_amqp(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "why", ROOT / "pika-tls-to-plain-port.pcap", 1)
    reported = amqpscope(capsys, "check", ROOT / "pika-tls-to-plain-port.pcap")
    assert result.status in (0, reported.status)
    assert "packet 1 of " in result.out


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(CREDIT.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input())
    found = explained(capsys, "-", 16)
    assert found["capture"] == "standard input"
    assert found["frames"][0]["findings"][0]["rule"] == "amqp10/L-CREDIT"


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_a_frame_that_the_packet_does_not_have_is_refused(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "why", "--frame", number, CREDIT, 16)
    assert (result.status, result.out) == (2, "")
    assert f"--frame {number}: the number of frames in the packet is 1" in result.err
    assert amqpscope(capsys, "why", "--end", "--frame", number, CREDIT).status == 2


@pytest.mark.parametrize(
    ("before", "behind", "status"),
    [([], [16], 0), (["--frame", 1], [16], 0), (["--end"], [], 0), (["--end", "--connection", "99"], [], 2)],
)
def test_a_capture_that_is_not_all_there_is_reported(
    before: list[object],
    behind: list[object],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "short.pcap.gz"
    path.write_bytes(gzip.compress(CREDIT.read_bytes())[:-12])
    result = amqpscope(capsys, "why", *before, path, *behind)
    assert result.status == status
    notes = [line for line in result.err.splitlines() if f"{path}: capture/" in line]
    assert len(notes) == 2 and len(set(notes)) == 2  # of the compression, and of the packet that it cut
    assert all("capture/truncated: packet 20: " in note for note in notes)
    assert notes == amqpscope(capsys, "read", "--count", path).err.splitlines()
