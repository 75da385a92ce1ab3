"""The independent walk on conversations whose contents are known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import support.amqp10_encode as amqp
from support.independent import Walk, walk_capture
from support.tcp_writer import Capture

OPEN = amqp.frame(amqp.open_(container_id="c"))
FRAMES = (
    OPEN
    + amqp.frame(amqp.begin(remote_channel=3, descriptor_form="full"), channel=1)
    + amqp.frame(amqp.attach(name="n", descriptor_form="symbol"), channel=1)
    + amqp.frame(amqp.transfer(handle=0, descriptor_form="symbol32"), b"payload", channel=1)
    + amqp.frame()
    + amqp.frame(amqp.flow(), channel=2, extended=b"ext.")
)
EXPECTED = ["open", "begin", "attach", "transfer", "empty", "flow"]


def walks(capture: Capture, folder: Path) -> list[Walk]:
    return walk_capture(capture.write(folder / "one.pcap"))


def names(walk: Walk) -> list[str]:
    return [name for _, name, _ in walk.frames]


@pytest.mark.parametrize("link", ["ethernet", "raw", "null", "loop", "sll", "sll2"])
@pytest.mark.parametrize("version", [4, 6])
def test_headers_sasl_and_every_form_of_descriptor(link: str, version: int, tmp_path: Path) -> None:
    capture = Capture(link, padded=True)
    tcp = capture.connection() if version == 4 else capture.connection("[fd00::1]:51034", "[fd00::2]:5672")
    tcp.handshake()
    tcp.client.send(amqp.SASL_HEADER + amqp.sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS")))
    tcp.server.send(amqp.SASL_HEADER + amqp.sasl_frame(amqp.sasl_outcome(code=0)))
    tcp.client.send(amqp.AMQP_HEADER + FRAMES)
    tcp.goodbye()
    client, server = walks(capture, tmp_path)
    ends = ("10.0.0.1:51034", "10.0.0.2:5672") if version == 4 else ("[fd00::1]:51034", "[fd00::2]:5672")
    assert (client.source, client.destination) == ends
    assert (server.destination, server.source) == ends
    assert names(client) == ["header 3", "sasl-init", "header 0", *EXPECTED]
    assert client.counts == Counter(["header 3", "sasl-init", "header 0", *EXPECTED])
    assert [channel for _, _, channel in client.frames] == [0, 0, 0, 0, 1, 1, 1, 0, 2]
    assert [packet for packet, _, _ in client.frames] == [4, 4, *[6] * 7]
    assert client.bodies[6] == amqp.transfer(handle=0, descriptor_form="symbol32") + b"payload"
    assert names(server) == ["header 3", "sasl-outcome"]
    assert server.bodies == [b"", amqp.sasl_outcome(code=0)]
    assert client.stopped == server.stopped == ""


def test_a_frame_belongs_to_the_packet_of_its_first_octet(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.client.send(OPEN + OPEN, cut=(len(OPEN) - 3, 3, 5))
    [walk] = walks(capture, tmp_path)
    assert walk.frames == [(1, "open", 0), (3, "open", 0)]


def test_reordered_repeated_overlapping_and_wrapping_segments(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection(client_isn=2**32 - 20)
    tcp.handshake()
    tcp.client.send(amqp.AMQP_HEADER)
    with capture.reordered(3, 0, 5, 2, 4, 1):
        tcp.client.send(FRAMES, each=len(FRAMES) // 6 + 1)
    tcp.client.retransmit(skip=7, size=40)
    tcp.client.keep_alive(1)
    tcp.client.send(OPEN)
    [walk] = walks(capture, tmp_path)
    assert names(walk) == ["header 0", *EXPECTED, "open"]
    assert walk.stopped == ""


def test_the_first_copy_of_an_octet_wins(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.client.segment(b"AM", offset=0)
    tcp.client.segment(OPEN[4:20], offset=12)
    tcp.client.segment(b"..QP\0\1\0\0" + OPEN[:4] + b"?" * 16 + OPEN[20:], offset=0)
    [walk] = walks(capture, tmp_path)
    assert walk.frames == [(1, "header 0", 0), (3, "open", 0)]


def test_a_hole_ends_the_walk(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.client.send(OPEN)
    with capture.missed():
        tcp.client.send(OPEN)
    tcp.client.send(OPEN)
    [walk] = walks(capture, tmp_path)
    assert (names(walk), walk.stopped) == (["open"], "hole")


def test_octets_cut_off_by_snaplen_are_a_hole(tmp_path: Path) -> None:
    capture = Capture(snaplen=54 + len(OPEN) + 3)
    tcp = capture.connection()
    tcp.client.send(OPEN + OPEN)
    tcp.client.send(OPEN)
    [walk] = walks(capture, tmp_path)
    assert (names(walk), walk.stopped) == (["open"], "hole")


@pytest.mark.parametrize(
    ("octets", "expected", "stopped"),
    [
        (b"AMQP\0\0\x09\x01", ["header 00000901"], ""),
        (b"AMQP\0\0\x09\x01\1\0\0\0\0\1\2\3", ["header 00000901"], "another protocol"),
        (OPEN[:-1], [], "cut off"),
        (amqp.frame(size=7), [], "not a frame"),
        (amqp.frame(doff=3), [], "not a frame"),
        (amqp.frame(type=2), [], "not a frame"),
        (amqp.frame(amqp.described(0x99, amqp.list_([]))), ["unknown 0x99"], ""),
        (amqp.frame(amqp.described("amqp:book:list", amqp.list_([]))), ["unknown amqp:book:list"], ""),
        (amqp.frame(amqp.list_([])), ["undescribed"], ""),
    ],
)
def test_what_is_wrong(octets: bytes, expected: list[str], stopped: str, tmp_path: Path) -> None:
    capture = Capture()
    capture.connection().client.send(octets)
    [walk] = walks(capture, tmp_path)
    assert (names(walk), walk.stopped) == (expected, stopped)


def test_a_segment_of_64_kib_as_on_loopback(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection(mss=65495)
    tcp.client.send(amqp.frame(amqp.transfer(), b"x" * (65495 - 12)) + OPEN)
    [walk] = walks(capture, tmp_path)
    assert (names(walk), walk.stopped) == (["transfer", "open"], "")


def test_a_second_connection_on_the_same_ports(tmp_path: Path) -> None:
    capture = Capture()
    for isn in (5, 70_000):
        tcp = capture.connection(client_isn=isn)
        tcp.handshake()
        tcp.client.send(OPEN)
    assert [names(walk) for walk in walks(capture, tmp_path)] == [["open"], ["open"]]


@pytest.mark.parametrize(
    "options", [{"ip_length_zero": True}, {"ip_options": b"\1" * 4, "tcp_options": b"\1" * 12}]
)
def test_headers_of_other_lengths(options: dict[str, Any], tmp_path: Path) -> None:
    capture = Capture()
    capture.connection(**options).client.send(OPEN)
    [walk] = walks(capture, tmp_path)
    assert names(walk) == ["open"]
