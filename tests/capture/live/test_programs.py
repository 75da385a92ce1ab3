"""The filter for AMQP's ports, run by the kernel: on a socket that any octets can be sent to."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sampling import examples
from support.tcp_writer import Capture

from amqpscope.capture.link_layer import LINK_ETHERNET
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError

if sys.platform != "linux":
    pytest.skip("packet sockets are Linux's", allow_module_level=True)

from amqpscope.capture.live.programs import MAX_PORTS, attach, ports_program

SNAPLEN = 200


class Filter:
    """A socket with a program, and the other end of it."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._near, self._far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._far.setblocking(False)
        attach(self._far, ports_program(ports, SNAPLEN, True))

    def passes(self, packet: bytes) -> int | None:
        """How many octets of it pass, None if it does not."""
        self._near.send(packet)
        try:
            return len(self._far.recv(65536))
        except BlockingIOError:
            return None

    def close(self) -> None:
        self._near.close()
        self._far.close()


class Ports(SegmentSink):
    def __init__(self) -> None:
        self.ports: list[int] = []

    def segment(self, segment: Segment) -> None:
        key = segment.key
        self.ports += [int.from_bytes(key[-4:-2], "big"), int.from_bytes(key[-2:], "big")]


def ports_of(packet: bytes) -> list[int]:
    """Of the TCP segment in it, as the decoder finds it."""
    sink = Ports()
    PacketDecoder(sink).packet(1, 1, LINK_ETHERNET, packet, 0, len(packet), len(packet))
    return sink.ports


extensions = st.lists(
    st.tuples(
        st.sampled_from([0, 43, 60]),
        st.integers(0, 2).map(lambda eights: bytes([eights]) + bytes(6 + eights * 8)),
    ),
    max_size=2,
)


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    """A TCP segment in Ethernet, as networks have them."""
    ports = st.sampled_from([5671, 5672, 443, 1024, 5672 << 8 & 0xFFFF])
    vlan = draw(st.lists(st.integers(0, 0xFFFF), max_size=2))
    capture = Capture(link="ethernet", vlan=vlan)
    client, server = draw(ports), draw(ports)
    if draw(st.booleans()):
        connection = capture.connection(
            f"10.0.0.1:{client}", f"10.0.0.2:{server}", ip_options=bytes(4 * draw(st.integers(0, 10)))
        )
    else:
        connection = capture.connection(
            f"[fd00::1]:{client}", f"[fd00::2]:{server}", ip_extensions=draw(extensions)
        )
    connection.client.send(draw(st.binary(min_size=1, max_size=300)))
    return capture.packets[0].data


@settings(max_examples=examples(300))
@given(packet=packets(), ports=st.sampled_from([(5671, 5672), (5672,), (), tuple(range(5600, 5700))]))
def test_what_the_decoder_finds_at_those_ports_passes_and_nothing_else(
    packet: bytes, ports: tuple[int, ...]
) -> None:
    found = ports_of(packet)
    assert found
    wanted = not ports or not set(ports).isdisjoint(found)
    program = Filter(ports)
    try:
        assert program.passes(packet) == (min(len(packet), SNAPLEN) if wanted else None)
        for end in range(0, min(len(packet), 120), 7):
            program.passes(packet[:end])  # no program is refused or fails for what is too short
    finally:
        program.close()


def test_fragments_have_no_ports_and_pass_if_they_are_of_tcp() -> None:
    capture = Capture(link="ethernet")
    connection = capture.connection("10.0.0.1:1024", "10.0.0.2:443")
    connection.client.send(b"x" * 100)
    packet = bytearray(capture.packets[0].data)
    program = Filter((5672,))
    assert program.passes(bytes(packet)) is None
    packet[20:22] = b"\x00\x01"
    assert program.passes(bytes(packet)) == len(packet)
    packet[23] = 17
    assert program.passes(bytes(packet)) is None
    program.close()


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        (bytes([6, 0, 0, 0, 0, 0, 0, 0]), True),  # a whole datagram all the same: its ports count
        (bytes([6, 0, 0, 1, 0, 0, 0, 0]), True),  # the first fragment
        (bytes([6, 0, 0, 8, 0, 0, 0, 0]), True),
        (bytes([17, 0, 0, 8, 0, 0, 0, 0]), False),
        (bytes([17, 0, 0, 1, 0, 0, 0, 0]), False),
    ],
)
def test_fragments_of_ipv6(header: bytes, passes: bool) -> None:
    capture = Capture(link="ethernet")
    connection = capture.connection("[fd00::1]:1024", "[fd00::2]:5672", ip_extensions=[(44, header[1:])])
    connection.client.send(b"x" * 100)
    packet = bytearray(capture.packets[0].data)
    packet[54] = header[0]
    program = Filter((5672,))
    assert (program.passes(bytes(packet)) is not None) == passes
    other = Filter((443,))
    later = passes and header[3] & 0xF8 != 0
    assert (other.passes(bytes(packet)) is not None) == later
    program.close()
    other.close()


def test_what_is_no_tcp_does_not_pass() -> None:
    program = Filter(())
    for ethertype in (0x0806, 0x8847, 0x8864, 0x0000):
        assert program.passes(bytes(12) + ethertype.to_bytes(2, "big") + b"\x45" + bytes(60)) is None
    program.close()


def test_a_bounded_number_of_ports() -> None:
    Filter(range(MAX_PORTS)).close()
    with pytest.raises(CaptureError, match="ports"):
        ports_program(range(MAX_PORTS + 1), SNAPLEN, True)


def test_a_program_may_be_too_long() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        attach(receiver, [(0x06, 0, 0, 0)] * 4096)
        with pytest.raises(CaptureError, match="4097 instructions"):
            attach(receiver, [(0x06, 0, 0, 0)] * 4097)
