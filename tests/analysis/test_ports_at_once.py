"""Two connections on the same addresses and ports at once, as where the captures of two sites become one.

Nobody can tell for long which of the two a segment is of. What is certain in either of them may be certain in
both together, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from support.capture_files import START, Record, Recorder, ethernet, ipv4, pcap, tcp
from support.judged import judged

from amqpscope.capture.reader import for_magic
from amqpscope.capture.segment import Segment
from amqpscope.rules.catalogue import severity

CAPTURES = Path(__file__).parents[2] / "captures"

SYN = 2

FAR = [
    ("pika-two-threads", "rhea-proton-ipv6"),
    ("pika-two-threads", "pika-refused"),
    ("java-errands", "amqplib-channel-errors"),
    ("bunny-errands", "amqplib-unconfirmed"),
    ("proton-transactions", "amqp10-proton"),
    ("amqplib-channel-errors", "pika-prefetch"),
]
NEAR = [
    ("amqplib-unconfirmed", "pika-two-threads"),
    ("amqplib-server-stalled", "proton-windows"),
    ("pika-large", "pyamqp-hurried"),
    ("proton-settle-modes", "rhea-any-interface"),
    ("amqplib-quorum-stream", "shovel-proton"),
]


def longest(name: str) -> list[Segment]:
    """The segments of the connection of a capture that has most of them."""
    content = (CAPTURES / f"{name}.pcap").read_bytes()
    sink = Recorder()
    reader = for_magic(content, sink)
    assert reader is not None
    reader.feed(content)
    reader.finish()
    connections: dict[bytes, list[Segment]] = {}
    for segment in sink.segments:
        connections.setdefault(min(segment.key, segment.reverse), []).append(segment)
    return max(connections.values(), key=len)


def placed(segments: list[Segment], start: int, shift: int) -> list[Record]:
    """A connection on these ports, one second long. shift: added to its sequence numbers."""
    key, began = segments[0].key, segments[0].time
    lasts = max(segments[-1].time - began, 1)
    records = []
    for one in segments:
        by_client = one.key == key
        ack = (one.ack + shift) % 2**32 if one.ack >= 0 else 0
        ends = (40_000, 5672) if by_client else (5672, 40_000)
        segment = tcp(bytes(one.payload), *ends, (one.seq + shift) % 2**32, ack, one.flags)
        hosts = ("10.0.0.1", "10.0.0.2") if by_client else ("10.0.0.2", "10.0.0.1")
        time = START + start + (one.time - began) * 10**9 // lasts
        records.append(Record(time, ethernet(ipv4(segment, *hosts))))
    return records


def certain(records: list[Record]) -> Counter[tuple[str, str]]:
    while_read, at_end = judged(pcap(sorted(records, key=lambda one: one.time)))
    found = (one for one in while_read + at_end if one.certain and severity(one.rule) == "error")
    return Counter((one.rule, one.peer) for one in found)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(
    ("pair", "near"), [*((pair, False) for pair in FAR), *((pair, True) for pair in NEAR)]
)
def test_two_connections_at_once_accuse_nobody_anew(pair: tuple[str, str], near: bool, seed: int) -> None:
    """near: their initial sequence numbers are less than 64 KB apart."""
    random = Random(f"{pair} {seed}")
    first, second = longest(pair[0]), longest(pair[1])
    shift = random.randrange(2**32)
    if near:
        shift = (first[0].seq - second[0].seq + random.randrange(-65_536, 65_536)) % 2**32
    if random.random() < 0.3:
        second = [one for one in second if not one.flags & SYN]
    one = placed(first, 0, 0)
    other = placed(second, random.randrange(10**9), shift)
    assert certain([*one, *other]) - certain(one) - certain(other) == Counter()
