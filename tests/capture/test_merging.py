"""Several files as one capture: order, numbers, what is said of each, and how many may be open."""

from __future__ import annotations

import gzip
import io
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.capture_files import (
    SECOND,
    START,
    Record,
    Recorder,
    count_option,
    enhanced,
    ethernet,
    interface,
    packet,
    pcap,
    pcap_header,
    pcap_record,
    section,
    statistics,
    time_option,
)
from support.sampling import examples

from amqpscope.capture.merging import Merge
from amqpscope.capture.source import CaptureSource
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_MERGE_OPEN

ARP = ethernet(bytes(46), 0x0806)


def merged(files: list[bytes]) -> Recorder:
    return merge([CaptureSource(io.BytesIO(octets), f"file {number}") for number, octets in enumerate(files)])


def merge(sources: list[CaptureSource]) -> Recorder:
    sink = Recorder()
    one = Merge(sources, sink)
    one.begin()
    while one.advance():
        pass
    assert not one.delivering
    return sink


def by_heads(files: list[list[int]]) -> list[tuple[int, int]]:
    """(file, place in it) of all packets with these times, in the order in which they are to come."""
    places = [0] * len(files)
    order = []
    while any(place < len(times) for place, times in zip(places, files, strict=True)):
        heads = [
            (times[place], file)
            for file, (place, times) in enumerate(zip(places, files, strict=True))
            if place < len(times)
        ]
        _, file = min(heads)
        order.append((file, places[file]))
        places[file] += 1
    return order


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=2, max_size=5))
@settings(max_examples=examples(150))
def test_packets_come_in_the_order_of_time_and_never_reordered_in_a_file(times: list[list[int]]) -> None:
    files = [
        pcap([Record(START + time * SECOND, packet(seq=1000 * file + n)) for n, time in enumerate(each)])
        for file, each in enumerate(times)
    ]
    sink = merged(files)
    expected = by_heads(times)
    assert [segment.seq for segment in sink.segments] == [1000 * file + n for file, n in expected]
    assert [segment.packet for segment in sink.segments] == list(range(1, len(expected) + 1))
    assert [segment.time for segment in sink.segments] == [
        START + times[file][n] * SECOND for file, n in expected
    ]
    assert set(sink.codes()) <= {"capture/time"}  # which run backwards here


def test_files_of_many_blocks() -> None:
    """Each is far larger than what is read at a time, and they are interleaved in different ways."""
    times = [[n * 3 for n in range(3000)], [n // 700 * 2100 for n in range(2900)], list(range(9000, 9100))]
    files = [
        pcap(
            [Record(START + time, packet(bytes(300), seq=n)) for n, time in enumerate(each)], "<", 0xA1B23C4D
        )
        for each in times
    ]
    assert len(files[0]) > 4 * 128 * 1024
    expected = [n for _, n in by_heads(times)]
    assert [segment.seq for segment in merged(files).segments] == expected


def test_every_packet_counts_also_what_is_no_tcp() -> None:
    first = pcap([Record(START, ARP), Record(START + 2 * SECOND, packet(seq=1))])
    second = pcap([Record(START + SECOND, ARP), Record(START + SECOND, packet(seq=2))])
    assert [(s.packet, s.seq) for s in merged([first, second]).segments] == [(3, 2), (4, 1)]


def test_packets_that_cannot_be_read_count_too() -> None:
    """Of an interface that is not described: it has a number in its own file."""
    ng = section() + interface() + enhanced(packet(seq=1), START // 1000, interface_id=7)
    ng += enhanced(packet(seq=2), START // 1000 + 1)
    later = pcap([Record(START + SECOND, packet(seq=3))])
    sink = merged([later, ng])
    assert [(s.packet, s.seq) for s in sink.segments] == [(2, 2), (3, 3)]
    (note,) = sink.notes
    assert note.code == "capture/interface"
    assert note.detail.startswith("file 1: at offset ")


def test_what_is_wrong_with_a_file_names_it_and_its_packet() -> None:
    plain = pcap([Record(START + n * SECOND, packet(seq=n)) for n in (0, 2, 4, 6)])
    odd = pcap_header() + b"".join(
        [
            pcap_record(Record(START + SECOND, packet(seq=1))),
            pcap_record(Record(START + 3 * SECOND, packet(seq=3), 20)),  # more captured than was on the wire
            *[pcap_record(Record(START + n * SECOND, packet(seq=n))) for n in (5, 7, 8, 9)],
        ]
    )
    sink = merged([plain, odd[:-9]])
    assert [s.seq for s in sink.segments] == list(range(9))
    assert [(n.code, n.packet, n.detail.split(":")[0]) for n in sink.notes] == [
        ("capture/length", 4, "file 1"),
        ("capture/truncated", 9, "file 1"),
    ]


def test_packets_that_were_lost() -> None:
    """What was lost is lost before the packet that its file says, wherever that comes to stand."""
    lost = [count_option(4, count) for count in (2, 3)]
    first = section() + interface() + enhanced(packet(seq=1), START // 1000)
    first += enhanced(packet(seq=3), (START + 2 * SECOND) // 1000, options=lost[0])
    first += enhanced(packet(seq=4), (START + 3 * SECOND) // 1000, interface_id=7)  # cannot be read
    first += enhanced(packet(seq=5), (START + 4 * SECOND) // 1000, options=lost[1])
    first += statistics(count_option(7, 9) + time_option(3, (START + 9 * SECOND) // 1000))
    second = pcap([Record(START + n * SECOND, packet(seq=n + 1)) for n in (1, 5)])
    third = section() + interface() + statistics(time_option(3, (START + 8 * SECOND) // 1000))
    sink = Recorder()
    files = [first, second, third]
    one = Merge([CaptureSource(io.BytesIO(octets), f"file {n}") for n, octets in enumerate(files)], sink)
    one.begin()
    while one.advance():
        pass
    assert [(s.packet, s.seq) for s in sink.segments] == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    assert sink.lost == [(3, START + 2 * SECOND, 2), (5, START + 4 * SECOND, 3), (0, START + 4 * SECOND, 4)]
    assert [n.detail for n in sink.notes if n.code == "capture/dropped"] == [
        "file 0: packets lost before this packet, as the capture reports: 2",
        "file 0: packets lost in total, as the capture reports: 9; "
        "the capture does not report where 4 of the packets were lost",
    ]


def test_a_file_without_packets_and_one_that_is_cut_in_its_first() -> None:
    files = [pcap([]), pcap([Record(START, packet(seq=1))]), pcap([Record(START, packet())])[:-3]]
    sink = merged(files)
    assert [(s.packet, s.seq) for s in sink.segments] == [(1, 1)]
    assert [(n.code, n.packet, n.detail.split(":")[0]) for n in sink.notes] == [
        ("capture/truncated", 0, "file 2")
    ]


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"", "the file is empty"),
        (b"text that is no capture", "not a capture file (neither pcap nor pcapng)"),
    ],
)
def test_a_file_that_is_no_capture_is_named(octets: bytes, reason: str) -> None:
    with pytest.raises(CaptureError) as caught:
        merged([pcap([Record(START, packet())]), octets])
    assert str(caught.value) == f"file 1: {reason}"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("many", [MAX_MERGE_OPEN, MAX_MERGE_OPEN + 1, 3 * MAX_MERGE_OPEN])
def test_a_rotated_set_of_any_number_of_files(many: int, tmp_path: Path) -> None:
    """The files are given in an order that is not that of their times."""
    sources = []
    for number in range(many):
        path = tmp_path / f"{number}.pcap"
        moved = number * 7 % many if many % 7 else number
        times = [START + (moved * 10 + n) * SECOND for n in (0, 5, 3)]
        path.write_bytes(pcap([Record(time, packet(seq=moved * 3 + n)) for n, time in enumerate(times)]))
        sources.append(CaptureSource(path))
    before = open_files()
    sink = Recorder()
    one = Merge(sources, sink)
    one.begin()
    most = open_files()
    while one.advance():
        most = max(most, open_files())
    assert [segment.seq for segment in sink.segments] == list(range(3 * many))
    assert set(sink.codes()) <= {"capture/time"}  # which run backwards here
    assert open_files() == before
    assert most - before <= (MAX_MERGE_OPEN if many <= MAX_MERGE_OPEN else 3)


def test_too_many_files_at_the_same_time(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.pcap" for number in range(MAX_MERGE_OPEN + 1)]
    for path in paths:
        path.write_bytes(pcap([Record(START, packet()), Record(START + 60 * SECOND, packet())]))
    with pytest.raises(CaptureError, match=f"more than {MAX_MERGE_OPEN} files overlap in time"):
        merge([CaptureSource(path) for path in paths])
    assert len(merge([CaptureSource(path) for path in paths[1:]]).segments) == 2 * MAX_MERGE_OPEN


def test_a_damaged_compressed_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(pcap([Record(START, packet(seq=1))]))[:-2])
    for times in (1, MAX_MERGE_OPEN + 1):
        others = [tmp_path / f"{number}" for number in range(times)]
        for number, other in enumerate(others):
            other.write_bytes(pcap([Record(START + SECOND * (1 + number), packet(seq=2))]))
        sink = merge([CaptureSource(path), *[CaptureSource(other) for other in others]])
        assert [s.seq for s in sink.segments] == [1, *[2] * times]
        assert [(n.code, n.packet) for n in sink.notes] == [("capture/truncated", 1)]
        assert f"{path}: the gzip data are cut short" in sink.notes[0].detail


def test_times_at_the_edge() -> None:
    """The latest that there is, and packets without any."""
    late = section() + interface(options=struct.pack("<HHB3x", 9, 1, 9))
    late += enhanced(packet(seq=1), (1 << 64) - 1) + enhanced(packet(seq=2), (1 << 64) - 1)
    usual = pcap([Record(START, packet(seq=3)), Record(START, packet(seq=4))])
    assert [s.seq for s in merged([late, usual]).segments] == [3, 4, 1, 2]
    assert [s.seq for s in merged([late, late]).segments] == [1, 2, 1, 2]
