"""Frames and findings through a proxy are those of a capture of the same octets; tshark reads the packets."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fake_source import packets_of
from support.proxied import Proxied

import amqpscope
from amqpscope.capture.live.recorded import SourceRecorder
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink

CAPTURES = Path(__file__).parents[3] / "captures"
LEGAL = CAPTURES / "rules" / "amqp10" / "L-CREDIT" / "clean.pcap"
VIOLATING = CAPTURES / "rules" / "amqp10" / "L-CREDIT" / "violating.pcap"
WEBSOCKET = CAPTURES / "rules" / "ws" / "WS-BINARY" / "violating.pcap"
VIOLATING_091 = CAPTURES / "rules" / "amqp091" / "B-ACK-DUP" / "violating.pcap"


class Nothing(SegmentSink):
    """Takes segments and does nothing with them."""

    def segment(self, segment: Segment) -> None:
        pass

    def note(self, code: str, packet: int, time: int, detail: str) -> None:
        raise AssertionError(detail)


def said(capture: Path) -> list[tuple[int, bytes]]:
    """What the peers of a capture with Ethernet and IPv4 have said, in order: 0 for the client."""
    found: list[tuple[int, bytes]] = []
    first = b""
    for _, packet in packets_of(capture.read_bytes()):
        segment = packet[34 : 14 + int.from_bytes(packet[16:18], "big")]
        first = first or packet[26:30] + segment[:2]
        octets = segment[segment[12] >> 4 << 2 :]
        if octets:
            found.append((0 if packet[26:30] + segment[:2] == first else 1, octets))
    return found


def replayed(capture: Path, path: Path, sizes: list[int]) -> Path:
    """The recording of a proxy between two peers that say the same, in pieces of these sizes."""
    recorder = PcapngRecorder(str(path), "test")
    at = 0
    decoder = PacketDecoder(Nothing())
    decoder.recorder = recorder
    with Proxied(decoder=decoder) as proxied:
        recorded = SourceRecorder(proxied.source, recorder, "")
        peers = (proxied.client, proxied.server)
        for side, octets in said(capture):
            while octets:
                size = sizes[at % len(sizes)]
                at += 1
                other = peers[1 - side]
                awaited = len(other.got) + len(octets[:size])
                peers[side].give(octets[:size])
                proxied.until(lambda other=other, awaited=awaited: len(other.got) == awaited)  # type: ignore[misc]
                octets = octets[size:]
        for peer in peers:
            peer.end()
        proxied.until(lambda: not proxied.source._relays)
        proxied.turn()
        decoder.finish()
        recorded.finish(0)
    return path


def frames(capture: Path) -> list[dict[str, Any]]:
    """The frames of a capture, without what says where they were."""
    elsewhere = (
        "packet",
        "time",
        "connection",
        "capture",
        "stream",
        "client",
        "server",
        "packets",
        "last_packet",
    )
    return [
        {key: one[key] for key in one if key not in elsewhere} for one in amqpscope.read_dicts(str(capture))
    ]


def findings(capture: Path) -> list[tuple[str, str, str, str]]:
    return [(one.rule, one.peer, one.message, str(one.certain)) for one in amqpscope.check(str(capture))]


@functools.cache
def captured(capture: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str, str, str]]]:
    return frames(capture), findings(capture)


@settings(max_examples=6)
@given(
    st.lists(st.integers(20, 400), min_size=1, max_size=5),
    st.sampled_from([LEGAL, VIOLATING, VIOLATING_091, WEBSOCKET]),
)
def test_any_pieces_give_the_same_frames_and_findings(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], capture: Path
) -> None:
    path = replayed(capture, tmp_path_factory.mktemp("proxied") / "recorded.pcapng", sizes)
    assert (frames(path), findings(path)) == captured(capture)


def test_wiresharks_tools_read_the_packets_without_complaint(tmp_path: Path) -> None:
    if shutil.which("tshark") is None or shutil.which("capinfos") is None:
        pytest.skip("there is no tshark")
    path = replayed(VIOLATING, tmp_path / "recorded.pcapng", [100])
    about = subprocess.run(["capinfos", path], capture_output=True, text=True, check=True)
    assert "Encapsulation = Ethernet" in about.stdout
    assert "Strict time order:   True" in about.stdout
    checked = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    shown = subprocess.run(
        ["tshark", "-r", path, *checked, "-T", "fields", "-e", "_ws.expert.severity", "-e", "tcp.flags.str"],
        capture_output=True,
        text=True,
        check=True,
    )
    severities = {
        int(one) for line in shown.stdout.splitlines() for one in line.split("\t")[0].split(",") if one
    }
    note = 0x400000
    assert max(severities) <= note
    assert len(shown.stdout.splitlines()) > 10
