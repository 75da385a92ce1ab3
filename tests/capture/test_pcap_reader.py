"""pcap files: every variant, and what damage leaves readable."""

import struct

import pytest
from support.capture_files import SECOND, START, Record, Recorder, packet, pcap, pcap_header, pcap_record

from amqpscope.capture.pcap import PcapReader
from amqpscope.capture.reader import for_magic
from amqpscope.limits import MAX_NOTES, MAX_PACKET, SEARCH_TIME_JUMP
from dissectors.wording import are, count

MICRO, NANO, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34


def read(data: bytes, block: int = 1 << 20) -> tuple[Recorder, PcapReader]:
    sink = Recorder()
    reader = for_magic(data[:4], sink)
    assert isinstance(reader, PcapReader)
    for at in range(0, len(data), block):
        reader.feed(data[at : at + block])
    reader.finish()
    return sink, reader


def records(count: int = 8, size: int = 30, step: int = 123_456_789_000) -> list[Record]:
    return [
        Record(START + number * step, packet(bytes([number & 0xFF]) * size, seq=number))
        for number in range(count)
    ]


def offsets(items: list[Record], header: int = 16) -> list[int]:
    """Where each record starts in the file, and where the file ends."""
    places = [24]
    for item in items:
        places.append(places[-1] + header + len(item.data))
    return places


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [MICRO, NANO, MODIFIED])
def test_every_variant(order: str, magic: int) -> None:
    unit = 1 if magic == NANO else 1000
    items = [
        Record(START + number * (SECOND // 3 * unit), packet(b"x" * number, seq=number))
        for number in range(5)
    ]
    sink, reader = read(pcap(items, order, magic))
    assert [s.time for s in sink.segments] == [item.time // unit * unit for item in items]
    assert [(s.packet, s.seq, len(s.payload)) for s in sink.segments] == [(n + 1, n, n) for n in range(5)]
    assert (reader.number, reader.link_type, reader.decoder.packets) == (5, 1, 5)
    assert sink.notes == []


def test_the_last_moment_a_header_can_name() -> None:
    last = 0xFFFFFFFF * SECOND + SECOND - 1
    sink, _ = read(pcap([Record(last, packet())], magic=NANO))
    assert [s.time for s in sink.segments] == [last]


@pytest.mark.parametrize("order", ["<", ">"])
def test_upper_bits_of_the_link_type_are_no_link_type(order: str) -> None:
    sink, reader = read(pcap(records(2), order, link_type=0x5400_0001))
    assert reader.link_type == 1
    assert len(sink.segments) == 2


def test_snapshot_length() -> None:
    whole = packet(b"x" * 100)
    sink, _ = read(pcap([Record(START, whole[:96], len(whole))], snaplen=96))
    assert [(s.payload, s.cut) for s in sink.segments] == [(b"x" * 42, 58)]
    assert sink.notes == []


def test_packets_without_tcp_count() -> None:
    items = [Record(START, b""), Record(START, b"\0" * 60), Record(START, packet())]
    sink, reader = read(pcap(items))
    assert [s.packet for s in sink.segments] == [3]
    assert reader.number == 3
    assert sink.notes == []


def test_an_empty_packet_is_nothing_odd_whatever_follows() -> None:
    year = 365 * 86400 * SECOND
    items = [Record(START + n * year, b"" if n < 3 else packet(seq=n)) for n in range(6)]
    sink, reader = read(pcap(items))
    assert ([s.seq for s in sink.segments], reader.number, sink.notes) == ([3, 4, 5], 6, [])


def test_magic() -> None:
    for order in "<>":
        for magic in (MICRO, NANO, MODIFIED):
            assert isinstance(for_magic(struct.pack(order + "I", magic), Recorder()), PcapReader)
    assert for_magic(b"\xa1\xb2\xc3\xd5", Recorder()) is None
    assert for_magic(b"\xa1\xb2\xc3", Recorder()) is None
    assert for_magic(b"", Recorder()) is None


def test_other_octets_than_the_reader_was_chosen_for() -> None:
    sink = Recorder()
    reader = PcapReader(sink)
    reader.feed(b"x" * 100)
    reader.finish()
    (note,) = sink.notes
    assert note.code == "capture/corrupt"
    assert "100 octets are not read" in note.detail


def test_unknown_version_is_noted_and_read() -> None:
    data = pcap_header(major=3) + pcap_record(records(1)[0])
    sink, _ = read(data)
    assert sink.codes() == ["capture/version"]
    assert len(sink.segments) == 1


def test_a_file_without_packets() -> None:
    sink, reader = read(pcap([]))
    assert (sink.notes, reader.number) == ([], 0)


def test_a_file_cut_anywhere_says_what_is_lost() -> None:
    items = records(3)
    data = pcap(items)
    whole = offsets(items)
    for size in range(4, len(data)):
        sink, reader = read(data[:size])
        complete = max((n for n, place in enumerate(whole) if place <= size), default=0)
        assert len(sink.segments) == complete
        assert reader.number == complete
        if size in whole:
            assert sink.notes == []
            continue
        (note,) = sink.notes
        begin = whole[complete] if size >= 24 else 0
        assert note.code == "capture/truncated"
        assert f"at offset {begin}: the {size - begin} octets of this record are not read" in note.detail
        assert note.packet == complete
        if size >= begin + 16 and size >= 24:
            lacking = whole[complete + 1] - size
            assert note.detail.endswith(f"at least {count(lacking, 'octet')} {are(lacking)} missing")


# Damage.


@pytest.mark.parametrize("claimed", [0xFFFFFFFF, 0x7FFFFFFF, MAX_PACKET + 1, 5000, 200_000])
@pytest.mark.parametrize("order", ["<", ">"])
def test_an_incredible_captured_length_costs_one_packet(claimed: int, order: str) -> None:
    items = records(20)
    data = bytearray(pcap(items, order))
    place = offsets(items)[7]
    data[place + 8 : place + 12] = struct.pack(order + "I", claimed)
    sink, reader = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(20) if n != 7]
    assert reader.number == 19
    (note,) = sink.notes
    assert (note.code, note.packet, note.time) == ("capture/corrupt", 7, sink.segments[6].time)
    assert f"at offset {place}:" in note.detail
    assert f"{offsets(items)[8] - place} octets are skipped" in note.detail
    assert note.detail.endswith(f"reading continues at offset {offsets(items)[8]}")


def test_damage_in_the_first_record() -> None:
    items = records(20)
    data = bytearray(pcap(items))
    data[24:40] = b"\xff" * 16
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == list(range(1, 20))
    assert sink.codes() == ["capture/corrupt"]


def test_lost_octets_and_extra_octets() -> None:
    items = records(20)
    data = pcap(items)
    place = offsets(items)[5]
    for damaged in (data[: place + 20] + data[place + 77 :], data[:place] + b"\xee" * 333 + data[place:]):
        sink, _ = read(damaged)
        assert {s.seq for s in sink.segments} >= set(range(20)) - {4, 5, 6}
        assert [s.seq for s in sink.segments] == sorted({s.seq for s in sink.segments})
        assert sink.codes() == ["capture/corrupt"]


def test_two_damages_far_apart() -> None:
    items = records(1000, size=1000, step=1000)
    data = bytearray(pcap(items))
    for number in (100, 800):
        place = offsets(items)[number]
        data[place + 8 : place + 12] = b"\xff\xff\xff\xff"
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(1000) if n not in (100, 800)]
    assert sink.codes() == ["capture/corrupt"] * 2


def test_damage_and_a_cut_end() -> None:
    items = records(30)
    data = bytearray(pcap(items))[:-3]
    place = offsets(items)[7]
    data[place + 8 : place + 12] = b"\xff\xff\xff\xff"
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(29) if n != 7]
    assert sink.codes() == ["capture/corrupt", "capture/truncated"]


def test_nothing_readable_behind_damage() -> None:
    items = records(4)
    data = pcap(items) + b"\xff" * 5000
    sink, reader = read(data)
    assert reader.number == 4
    (note,) = sink.notes
    assert note.code == "capture/corrupt"
    assert f"at offset {offsets(items)[4]}:" in note.detail
    assert "5000 octets are not read" in note.detail


@pytest.mark.parametrize("size", [16, 61, 4096])
@pytest.mark.parametrize("order", "<>")
def test_zeros_are_no_records(size: int, order: str) -> None:
    """What a file system leaves where the power failed; as records they would be packets of 1970."""
    items = records(20)
    data = pcap(items, order)
    place = offsets(items)[9]
    sink, reader = read(data + bytes(size))
    assert ([s.seq for s in sink.segments], reader.number) == (list(range(20)), 20)
    (note,) = sink.notes
    assert (note.code, note.packet) == ("capture/corrupt", 20)
    assert "a record has only zeros" in note.detail
    sink, reader = read(data[:place] + bytes(size) + data[place:])
    assert ([s.seq for s in sink.segments], reader.number) == (list(range(20)), 20)
    (note,) = sink.notes
    assert (note.code, note.packet) == ("capture/corrupt", 9)
    assert f"{size} octets are skipped" in note.detail


def test_a_capture_file_inside_a_packet_is_not_mistaken_for_this_one() -> None:
    """The damaged record carries a capture file as payload; its packets are nobody's here."""
    inner = pcap([Record(START, packet(b"inner", seq=666)) for _ in range(500)])
    outer = [Record(START, packet(b"outer" * 20, seq=n)) for n in range(4000)]
    outer[3] = Record(START, packet(inner + b"behind it", seq=3))
    data = bytearray(pcap(outer))
    place = offsets(outer)[3]
    data[place + 8 : place + 12] = b"\xff\xff\xff\xff"
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(4000) if n != 3]


def test_records_far_apart_in_time_are_no_chain() -> None:
    far = (SEARCH_TIME_JUMP + 10) * SECOND
    others = [Record(START + far, packet(seq=n)) for n in range(9)]
    sink, _ = read(pcap(records(3, step=1)) + b"\xff" * 16 + pcap(others)[24:])
    assert [s.seq for s in sink.segments] == [0, 1, 2]
    jumping = [Record(START + n % 2 * far, packet(seq=n)) for n in range(9)]
    sink, _ = read(pcap(records(3)) + b"\xff" * 16 + pcap(jumping)[24:])
    assert [s.seq for s in sink.segments] == [0, 1, 2]
    apart = [Record(START + n % 2 * (far - 20 * SECOND), packet(seq=n)) for n in range(9)]
    sink, _ = read(pcap([Record(START, packet(seq=77))]) + b"\xff" * 16 + pcap(apart)[24:])
    assert [s.seq for s in sink.segments] == [77, *range(9)]


def test_a_packet_read_from_damage_does_not_set_the_time() -> None:
    """A record that damage made up is read before the damage is noticed; its time is no measure."""
    made_up = struct.pack("<IIII", 5, 5, 20, 20) + bytes(20)
    sink, _ = read(pcap(records(5, step=1)) + made_up + b"\xff" * 99 + pcap(records(9))[24:])
    assert [s.seq for s in sink.segments] == [*range(5), *range(9)]
    assert sink.codes() == ["capture/time", "capture/corrupt"]


def test_octets_lost_from_a_record_header_do_not_shift_all_that_follows() -> None:
    """Read four octets too late, each length still looks like one; the times do not."""
    items = records(20)
    data = pcap(items)
    place = offsets(items)[7]
    sink, _ = read(data[:place] + data[place + 4 :])
    assert [s.seq for s in sink.segments] == [n for n in range(20) if n != 7]
    assert sink.codes() == ["capture/corrupt"]


def test_octets_made_to_keep_the_search_busy_end_it() -> None:
    """At each of 3000 places a chain begins that is long, and too short."""
    tiny = struct.pack("<IIII", START // SECOND, 0, 1, 1) + b"x"
    data = pcap(records(3)) + b"\xff" * 16 + tiny * 3000 + b"\xff" * 16 + pcap(records(9))[24:]
    sink, reader = read(data)
    assert reader.number == 3
    (note,) = sink.notes
    assert "octets are not read" in note.detail
    shorter = pcap(records(3)) + b"\xff" * 16 + tiny * 300 + b"\xff" * 16 + pcap(records(9))[24:]
    assert read(shorter)[1].number == 12


def test_a_large_captured_length_does_not_swallow_other_packets() -> None:
    """No length is out of bounds here, only too large for what follows."""
    items = records(3000, size=200, step=1000)
    data = bytearray(pcap(items))
    place = offsets(items)[7]
    data[place + 8 : place + 16] = struct.pack("<II", 250_000, 250_000)
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(3000) if n != 7]
    assert sink.codes() == ["capture/corrupt"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_careless_writers_fractions_are_read_and_noted(order: str) -> None:
    header = pcap_header(order)
    body = b"".join(
        struct.pack(order + "IIII", 1000 + n, 5_000_000 + n, len(packet()), len(packet())) + packet(seq=n)
        for n in range(10)
    )
    sink, _ = read(header + body)
    assert [(s.seq, s.time) for s in sink.segments] == [
        (n, (1005 + n) * SECOND + n * 1000) for n in range(10)
    ]
    assert sink.codes() == ["capture/time"] * (MAX_NOTES + 1)
    assert [n.packet for n in sink.notes] == [1, 2, 3, 4, 0]


def test_lengths_on_the_wire_below_the_captured_ones_are_noted() -> None:
    items = [Record(item.time, item.data, 0 if n % 2 else 5) for n, item in enumerate(records(10))]
    sink, _ = read(pcap(items))
    assert [s.seq for s in sink.segments] == list(range(10))
    assert all(s.cut == 0 for s in sink.segments)
    assert sink.codes() == ["capture/length"] * (MAX_NOTES + 1)


def test_packets_above_the_snapshot_length_are_noted() -> None:
    sink, _ = read(pcap(records(10), snaplen=68))
    assert len(sink.segments) == 10
    assert sink.codes() == ["capture/length"] * (MAX_NOTES + 1)
    sink, _ = read(pcap(records(10), snaplen=84))
    assert sink.notes == []


def test_large_packets_of_a_file_that_declares_them() -> None:
    large = b"x" * (MAX_PACKET + 1000)
    items = [Record(START, large), *records(3)]
    sink, reader = read(pcap(items, snaplen=0x7FFFFFFF))
    assert ([s.seq for s in sink.segments], reader.number, sink.notes) == ([0, 1, 2], 4, [])
    sink, reader = read(pcap(items, snaplen=0))
    assert ([s.seq for s in sink.segments], reader.number) == ([0, 1, 2], 3)
    assert sink.codes() == ["capture/corrupt"]


def test_an_odd_record_is_damage_when_no_record_follows() -> None:
    items = records(9)
    data = bytearray(pcap(items))
    place = offsets(items)[4]
    data[place + 4 : place + 12] = struct.pack("<II", 2_000_000, 33)
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(9) if n != 4]
    assert sink.codes() == ["capture/corrupt"]


def test_a_length_that_ends_behind_the_file_is_damage_when_records_follow() -> None:
    items = records(10)
    data = bytearray(pcap(items))
    place = offsets(items)[6]
    data[place + 8 : place + 16] = struct.pack("<II", 9999, 9999)
    sink, _ = read(bytes(data))
    assert [s.seq for s in sink.segments] == [n for n in range(10) if n != 6]
    assert sink.codes() == ["capture/corrupt"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_files_joined_end_to_end(order: str) -> None:
    raw = [Record(START + n, packet(seq=100 + n)[14:]) for n in range(3)]
    sink, reader = read(pcap(records(3), order) + pcap(raw, order, NANO, link_type=101))
    assert [s.seq for s in sink.segments] == [0, 1, 2, 100, 101, 102]
    assert [s.packet for s in sink.segments] == [1, 2, 3, 4, 5, 6]
    assert [s.time for s in sink.segments][3:] == [START, START + 1, START + 2]
    assert sink.codes() == ["capture/joined", "capture/time"]
    assert sink.notes[0].packet == 3
    assert reader.number == 6
