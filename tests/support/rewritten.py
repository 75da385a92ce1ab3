"""A recorded capture as another run of the same could have been recorded: other ports, times, numbers, cuts.

What is said, and in which order each peer says it, stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from support.capture_files import START, Record, Recorder, ethernet, ipv4, ipv6, pcap, tcp

from amqpscope.capture.reader import for_magic

__all__ = ["Rewriting", "rewritten", "rewritten_records"]

FIN, SYN, RST = 0x01, 0x02, 0x04

_MODULUS = 1 << 32


@dataclass(frozen=True)
class Rewriting:
    """How a capture is rewritten. ports: added to the client's. slower: all times are stretched.

    behind: nanoseconds by which what the server sends is seen later. sequence: added to all numbers of TCP.
    cut: octets of payload in a packet; 0: as they were. called: what stands for the name `shop` in payloads,
    of the same length.
    """

    ports: int = 0
    time: int = 0
    slower: int = 1
    behind: int = 0
    sequence: int = 0
    cut: int = 0
    called: bytes = b"shop"


def rewritten(path: Path, how: Rewriting) -> bytes:
    """The packets of TCP of a capture, rewritten."""
    return pcap(rewritten_records(path, how))


def rewritten_records(path: Path, how: Rewriting) -> list[Record]:
    """The same as the records of a capture file, in the order of time."""
    sink = Recorder()
    content = path.read_bytes()
    reader = for_magic(content, sink)
    assert reader is not None
    reader.feed(content)
    reader.finish()
    assert not any(segment.cut for segment in sink.segments)
    records: list[Record] = []
    first = sink.segments[0].time
    clients: dict[bytes, bool] = {}
    for segment in sink.segments:
        by_client = clients.setdefault(segment.key, segment.flags & SYN != 0 and segment.ack < 0)
        clients.setdefault(segment.reverse, not by_client)
        time = START + how.time + (segment.time - first) * how.slower + (0 if by_client else how.behind)
        size = how.cut or max(len(segment.payload), 1)
        starts = range(0, max(len(segment.payload), 1), size)
        for start in starts:
            flags = segment.flags if start == starts[-1] else segment.flags & ~FIN
            seq = (segment.seq + how.sequence + start) % _MODULUS
            ack = -1 if segment.ack < 0 else (segment.ack + how.sequence) % _MODULUS
            octets = segment.payload.replace(b"shop", how.called)[start : start + size]
            records.append(Record(time, _packet(segment.key, how.ports, by_client, seq, ack, flags, octets)))
    return sorted(records, key=lambda record: record.time)


def _packet(key: bytes, ports: int, by_client: bool, seq: int, ack: int, flags: int, octets: bytes) -> bytes:
    width = (len(key) - 4) // 2
    source, destination = str(ip_address(key[:width])), str(ip_address(key[width : 2 * width]))
    source_port = int.from_bytes(key[-4:-2], "big")
    destination_port = int.from_bytes(key[-2:], "big")
    if by_client:
        source_port = 1024 + (source_port - 1024 + ports) % 60_000
    else:
        destination_port = 1024 + (destination_port - 1024 + ports) % 60_000
    segment = tcp(octets, source_port, destination_port, seq, max(ack, 0), flags)
    if width == 4:
        return ethernet(ipv4(segment, source, destination))
    return ethernet(ipv6(segment, source, destination), 0x86DD)
