"""Capturing from a pipe: what has come is handed on at once, whatever it was cut into."""

from __future__ import annotations

import gzip
import os
import struct
import time
from collections.abc import Iterator

import pytest
from support.loopback import Segments
from support.tcp_writer import Capture

from amqpscope.capture.live.pipe import PipeSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.errors import CaptureError


def capture() -> bytes:
    made = Capture()
    flow = made.connection()
    flow.handshake()
    for number in range(20):
        flow.client.send(bytes([number]) * 50)
    return made.pcap()


class Pipe:
    """The writing end, and a source at the other one."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self.source = PipeSource(reading)
        self._reading = reading
        self.sink = Segments()
        self.decoder = PacketDecoder(self.sink)

    def write(self, octets: bytes) -> None:
        assert os.write(self._writing, octets) == len(octets)

    def take(self) -> int:
        """All there is."""
        taken = 0
        for _ in range(10):
            taken += self.source.take(self.decoder)
        return taken

    def end(self) -> None:
        os.close(self._writing)
        self._writing = -1

    def close(self) -> None:
        self.source.close()
        os.close(self._reading)
        if self._writing >= 0:
            self.end()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


@pytest.mark.parametrize("piece", [1, 7, 100, 100_000])
def test_packets_come_as_soon_as_they_are_whole(pipe: Pipe, piece: int) -> None:
    octets = capture()
    whole = 0
    for at in range(0, len(octets), piece):
        pipe.write(octets[at : at + piece])
        pipe.source.wait(20)
        pipe.take()
        whole = _whole_records(octets[: at + piece])
        assert pipe.source.number == whole
        assert not pipe.source.ended()
    assert whole == 23
    assert pipe.source.interfaces[0].link_type == 1
    pipe.end()
    pipe.source.wait(20)
    pipe.take()
    assert pipe.source.ended()
    assert pipe.source.number == 23
    assert pipe.sink.notes == []


def _whole_records(octets: bytes) -> int:
    at, count = 24, 0
    while len(octets) - at >= 16 and len(octets) - at - 16 >= struct.unpack_from("<I", octets, at + 8)[0]:
        at += 16 + struct.unpack_from("<I", octets, at + 8)[0]
        count += 1
    return count


def test_nothing_is_waited_for(pipe: Pipe) -> None:
    """With nothing in the pipe, and a part of what tells what it is."""
    assert pipe.source.take(pipe.decoder) == 0
    pipe.write(capture()[:3])
    assert pipe.source.take(pipe.decoder) == 0
    pipe.write(capture()[3:])
    assert pipe.take() == 23


def test_a_compressed_capture_comes_as_far_as_it_can_be_undone(pipe: Pipe) -> None:
    octets = gzip.compress(capture())
    pipe.write(octets[: len(octets) // 2])
    first = pipe.take()
    pipe.write(octets[len(octets) // 2 :])
    assert first + pipe.take() == 23
    assert not pipe.source.ended()


def test_there_is_more_in_what_is_compressed_than_is_taken_at_once(pipe: Pipe) -> None:
    made = Capture()
    flow = made.connection()
    for _ in range(3000):
        flow.client.send(bytes(1000))
    pipe.write(gzip.compress(made.pcap()))
    for _ in range(10):
        if pipe.source.number == 3000:
            break
        begun = time.monotonic()
        pipe.source.wait(20)
        assert time.monotonic() - begun < 10
        pipe.source.take(pipe.decoder)
    assert pipe.source.number == 3000


def test_what_is_cut_short_is_noted(pipe: Pipe) -> None:
    pipe.write(capture()[:-10])
    pipe.end()
    assert pipe.take() == 22
    assert pipe.source.ended()
    assert pipe.sink.notes == ["capture/truncated"]


def test_compressed_octets_that_are_cut_short_are_noted(pipe: Pipe) -> None:
    pipe.write(gzip.compress(capture())[:-10])
    pipe.end()
    pipe.take()
    assert "capture/truncated" in pipe.sink.notes


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "standard input: the file is empty"),
        (b"no", "standard input: not a capture file"),
        (b"this is no capture, but a text", "standard input: not a capture file (neither pcap nor pcapng)"),
    ],
)
def test_what_is_no_capture_is_said_in_a_line(pipe: Pipe, octets: bytes, why: str) -> None:
    pipe.write(octets)
    pipe.end()
    with pytest.raises(CaptureError) as error:
        pipe.take()
    assert str(error.value) == why


def test_a_terminal_is_no_capture() -> None:
    ours, theirs = os.openpty()
    try:
        with pytest.raises(CaptureError, match="is a terminal"):
            PipeSource(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_closed_descriptor_is_said_in_a_line() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    with pytest.raises(CaptureError, match="standard input: Bad file descriptor"):
        PipeSource(reading)
