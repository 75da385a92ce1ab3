"""TCP segments through tshark, for captures whose link layers and tunnels only it knows.

tshark takes every packet apart and pyshark hands over what it found: of a packet with TCP in it the addresses
around the innermost TCP header, its numbers, and the payload. From there on all is as for any capture; so
what tshark makes of TCP and AMQP is not asked for. It is slow: some thousand packets a second.

What an ICMP message quotes of a segment is none. Of a packet that was cut, tshark tells what is there.
"""

import asyncio
import importlib
import ipaddress
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from amqpscope.capture.segment import UNKNOWN_WINDOW, Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_TIME

__all__ = ["segments_through_tshark"]

_AT_A_TIME: Final = 500  # packets between two yields

# Nothing that tshark would put together itself, and no frames of AMQP: they would be taken apart for nothing.
_PREFERENCES: Final = {"tcp.desegment_tcp_streams": "FALSE", "tcp.analyze_sequence_numbers": "FALSE"}
_FILTER: Final = "tcp && !icmp && !icmpv6"


def segments_through_tshark(path: str, name: str, sink: SegmentSink) -> Iterator[None]:
    """The TCP segments of the capture file at `path`, to `sink`; yields after every few.

    name: what messages call it. Raises CaptureError where pyshark or tshark are missing, or tshark cannot
    read the file at all. What it cannot read to its end is a note.
    """
    pyshark, process = _tools()
    loop = asyncio.new_event_loop()
    ends: list[int] = []
    number = 0
    try:
        capture = pyshark.FileCapture(
            str(Path(path).absolute()),
            keep_packets=False,
            display_filter=_FILTER,
            disable_protocol="amqp",
            override_prefs=_PREFERENCES,
            tshark_path=process,
            eventloop=loop,
        )

        async def end(tshark: Any) -> None:
            """Its own would end tshark before it can say how it ended."""
            if not capture._eof_reached and tshark.returncode is None:
                tshark.kill()
            ends.append(await tshark.wait())

        capture._cleanup_subprocess = end
        segments = 0
        try:
            for packet in capture:
                number = int(packet.number)
                if _segment(packet, number, sink):
                    segments += 1
                    if segments % _AT_A_TIME == 0:
                        yield
        finally:
            capture._running_processes.clear()
            capture.close()
    finally:
        loop.close()
    if any(ends) and not number:
        raise CaptureError(f"{name}: tshark cannot read the file, or not to the end, and found no TCP")
    if any(ends):
        sink.note(
            "capture/truncated",
            number,
            0,
            (f"tshark stopped reading at packet {number} or soon after this packet"),
        )
    yield


def _tools() -> tuple[Any, str]:
    """The module pyshark, and where tshark is."""
    try:
        pyshark = importlib.import_module("pyshark")
        finding = importlib.import_module("pyshark.tshark.tshark")
    except ImportError:
        raise CaptureError("--via tshark needs pyshark: pip install 'amqpscope[tshark]'") from None
    try:
        return pyshark, str(finding.get_process_path())
    except finding.TSharkNotFoundException:
        raise CaptureError("--via tshark needs tshark, which is not on the PATH") from None


def _segment(packet: Any, number: int, sink: SegmentSink) -> bool:
    """The innermost TCP segment of a packet, to the sink. Whether it was all there."""
    network = None
    around = None
    tcp = None
    for layer in packet.layers:
        if layer.layer_name in ("ip", "ipv6"):
            network = layer
        elif layer.layer_name == "tcp":
            around, tcp = network, layer
    if around is None or tcp is None:
        return False
    try:
        source, target = (
            ipaddress.ip_address(str(around.get_field(f"{around.layer_name}.{end}"))).packed
            for end in ("src", "dst")
        )
        ports = tuple(int(tcp.get_field(f"tcp.{end}port")).to_bytes(2, "big") for end in ("src", "dst"))
        seq, ack = (int(tcp.get_field(f"tcp.{what}_raw")) & 0xFFFFFFFF for what in ("seq", "ack"))
        flags = int(str(tcp.get_field("tcp.flags")), 16) & 0xFF
        size = int(tcp.get_field("tcp.len"))
        time = int(Decimal(str(packet.frame_info.get_field("frame.time_epoch"))) * 1_000_000_000)
        field = tcp.get_field("tcp.payload")
        payload = b"" if field is None else bytes.fromhex(str(field).replace(":", ""))
    except (TypeError, ValueError, OverflowError, InvalidOperation):
        return False  # a header that was cut, or is none
    if not 0 <= time <= MAX_TIME or not 0 <= size <= 0xFFFF_FFFF:
        return False
    segment = Segment()
    segment.key = source + target + ports[0] + ports[1]
    segment.reverse = target + source + ports[1] + ports[0]
    segment.packet = number
    segment.time = time
    segment.seq = seq
    segment.ack = ack if flags & 0x10 else -1
    segment.flags = flags
    segment.window = _window(tcp, flags)
    segment.buf = payload
    segment.end = len(payload)
    segment.cut = max(size - len(payload), 0)
    sink.segment(segment)
    return True


def _window(tcp: Any, flags: int) -> int:
    """The window as `Segment.window` has it."""
    try:
        window = int(tcp.get_field("tcp.window_size_value")) & 0xFFFF
        if not flags & 0x02:
            return window
        shift = tcp.get_field("tcp.options.wscale.shift")
        return window | (16 if shift is None else min(int(shift), 14) + 1) << 16
    except (TypeError, ValueError):
        return UNKNOWN_WINDOW
