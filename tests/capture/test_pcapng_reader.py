"""pcapng files: sections, interfaces, every packet block, units of time, and damage."""

import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.capture_files import (
    SECOND,
    START,
    Recorder,
    block,
    count_option,
    enhanced,
    interface,
    obsolete,
    option,
    packet,
    section,
    simple,
    statistics,
    time_option,
)

from amqpscope.capture.pcapng import PcapngReader
from amqpscope.capture.reader import for_magic
from amqpscope.capture.segment import Segment
from amqpscope.limits import MAX_INTERFACES, MAX_NOTES, MAX_TIME
from dissectors.wording import are, count

MICROSECONDS = START // 1000


def read(data: bytes, size: int = 1 << 20) -> tuple[Recorder, PcapngReader]:
    sink = Recorder()
    reader = for_magic(data[:4], sink)
    assert isinstance(reader, PcapngReader)
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    reader.finish()
    return sink, reader


def packets(count: int, order: str = "<", size: int = 21) -> list[bytes]:
    return [enhanced(packet(bytes([n & 0xFF]) * size, seq=n), MICROSECONDS + n, order) for n in range(count)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_packet_block(order: str) -> None:
    data = (
        section(order)
        + interface(1, 60, order)
        + enhanced(packet(b"a" * 6, seq=1), MICROSECONDS, order, options=option(1, b"comment", order))
        + obsolete(packet(b"b" * 5, seq=2), MICROSECONDS + 1, order)
        + simple(packet(b"c" * 4, seq=3), order)
        + simple(packet(b"d" * 100, seq=4)[:60], order, wire=154)
    )
    sink, reader = read(data)
    assert [(s.packet, s.seq, s.payload, s.cut) for s in sink.segments] == [
        (1, 1, b"a" * 6, 0),
        (2, 2, b"b" * 5, 0),
        (3, 3, b"c" * 4, 0),
        (4, 4, b"d" * 6, 94),
    ]
    assert [s.time for s in sink.segments] == [START, START + 1000, 0, 0]
    assert sink.codes() == ["capture/no-time", "capture/no-time"]
    assert [(n.packet, n.detail) for n in sink.notes][1] == (0, "1 more")
    assert reader.number == 4


def test_sections_have_their_own_order_and_interfaces() -> None:
    data = (
        section("<")
        + interface(1, order="<")
        + enhanced(packet(seq=1), 1, "<")
        + section(">")
        + interface(101, order=">", options=option(9, b"\x09", ">"))
        + interface(1, order=">", options=option(9, b"\x03", ">"))
        + enhanced(packet(seq=2)[14:], 2, ">", interface_id=0)
        + enhanced(packet(seq=3), 3, ">", interface_id=1)
        + obsolete(packet(seq=4), 4, ">", interface_id=1)
        + section("<")
        + interface(113, order="<")
        + enhanced(bytes(14) + b"\x08\x00" + packet(seq=5)[14:], 5, "<")
    )
    sink, reader = read(data)
    assert [(s.packet, s.seq, s.time) for s in sink.segments] == [
        (1, 1, 1000),
        (2, 2, 2),
        (3, 3, 3_000_000),
        (4, 4, 4_000_000),
        (5, 5, 5000),
    ]
    assert sink.notes == []
    assert len(reader.interfaces) == 1


def test_other_blocks_are_passed_over_and_counted_as_wireshark_does() -> None:
    data = section() + interface()
    # Silent ones: name resolution, statistics, secrets, unknown, locally used.
    for kind in (4, 5, 10, 0x77, 0x208, 0x80000001):
        data += block(kind, bytes(20))
    data += enhanced(packet(seq=1))
    # Shown by Wireshark as lines of their own.
    for kind in (0xBAD, 0x40000BAD, 9, 0x204, 0x216, 0x221):
        data += block(kind, bytes(28))
    data += enhanced(packet(seq=2))
    sink, reader = read(data)
    assert [(s.packet, s.seq) for s in sink.segments] == [(1, 1), (8, 2)]
    assert (reader.number, reader.decoder.packets, sink.notes) == (8, 2, [])


def options_of_time(unit: int, offset: int) -> bytes:
    return option(9, bytes([unit])) + option(14, struct.pack("<q", offset)) + option(0, b"")


UNITS = st.integers(0, 255)
OFFSETS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**34), 2**34), st.just(0))
TICKS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 2**40))


@given(UNITS, OFFSETS, TICKS)
def test_any_unit_offset_and_time(unit: int, offset: int, ticks: int) -> None:
    data = section() + interface(options=options_of_time(unit, offset)) + enhanced(packet(), ticks)
    sink, _ = read(data)
    scale = 2 ** (unit & 0x7F) if unit & 0x80 else 10**unit
    exact = Fraction(ticks * SECOND, scale).__floor__() + offset * SECOND
    assert [s.time for s in sink.segments] == [min(max(exact, 0), MAX_TIME)]
    assert sink.codes() == ([] if 0 <= exact <= MAX_TIME else ["capture/time"])


@pytest.mark.parametrize(
    ("unit", "offset", "ticks", "expected"),
    [
        (6, 0, MICROSECONDS, START),
        (9, 0, START + 7, START + 7),
        (3, 0, START // 1_000_000, START),
        (0, 0, START // SECOND, START),
        (12, 1_700_000_000, 5_999, START + 5),
        (0x80 | 10, 0, (1_700_000_000 << 10) | 333, START + 325_195_312),
        (0x80 | 40, 1_700_000_000, 12_345_678_912, START + 11_228_329),
        (9, 1_700_000_000, 7, START + 7),
        (9, -5, START, START - 5 * SECOND),
    ],
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_units_of_time(unit: int, offset: int, ticks: int, expected: int, order: str) -> None:
    options = option(9, bytes([unit]), order) + option(14, struct.pack(order + "q", offset), order)
    data = section(order) + interface(order=order, options=options) + enhanced(packet(), ticks, order)
    sink, _ = read(data)
    assert ([s.time for s in sink.segments], sink.notes) == ([expected], [])


def test_hostile_times_are_noted_a_few_times() -> None:
    data = section() + interface() + enhanced(packet(), 2**64 - 1) * 50
    sink, _ = read(data)
    assert {s.time for s in sink.segments} == {MAX_TIME}
    assert sink.codes() == ["capture/time"] * (MAX_NOTES + 1)


@pytest.mark.parametrize(
    "options",
    [
        option(9, b""),
        option(14, bytes(7)),
        option(0, b"") + option(9, b"\x00"),
        option(2, b"eth0") + option(999, bytes(9)),
    ],
)
def test_options_that_say_nothing_of_time(options: bytes) -> None:
    sink, _ = read(section() + interface(options=options) + enhanced(packet(), 5))
    assert ([s.time for s in sink.segments], sink.notes) == ([5000], [])


def test_an_option_beyond_its_block() -> None:
    data = section() + interface(options=struct.pack("<HH", 9, 200)) + enhanced(packet(), 5)
    sink, _ = read(data)
    assert ([s.time for s in sink.segments], sink.codes()) == ([5000], ["capture/corrupt"])


def test_interfaces_not_described() -> None:
    data = section() + enhanced(packet()) + simple(packet()) + interface()
    data += enhanced(packet(seq=3), interface_id=1) + obsolete(packet(), interface_id=500)
    data += enhanced(packet(seq=5), interface_id=0)
    sink, reader = read(data)
    assert [(s.packet, s.seq) for s in sink.segments] == [(5, 5)]
    assert sink.codes() == ["capture/interface"] * 4
    assert [n.packet for n in sink.notes] == [1, 2, 3, 4]
    assert reader.number == 5


def test_more_interfaces_than_are_remembered() -> None:
    data = section() + interface() * (MAX_INTERFACES + 20)
    data += enhanced(packet(seq=1), interface_id=MAX_INTERFACES - 1)
    data += enhanced(packet(seq=2), interface_id=MAX_INTERFACES)
    sink, reader = read(data)
    assert [s.seq for s in sink.segments] == [1]
    assert set(sink.codes()) == {"capture/interface"}
    assert len(sink.notes) == MAX_NOTES + 1
    assert (reader.number, len(reader.interfaces)) == (2, MAX_INTERFACES)


def test_an_interface_block_too_short_keeps_its_number() -> None:
    data = section() + block(1, b"\x01\x00\x00\x00") + interface()
    data += enhanced(packet(seq=1), interface_id=1) + enhanced(packet(seq=2), interface_id=0)
    sink, _ = read(data)
    assert [s.seq for s in sink.segments] == [1]
    assert sink.codes() == ["capture/corrupt", "capture/link-type"]


@pytest.mark.parametrize(
    "bad",
    [
        enhanced(packet(), captured=300),
        enhanced(packet(), captured=0xFFFFFFFF),
        block(6, bytes(16)),
        block(2, bytes(8)),
        block(3, b""),
        simple(packet()[:40], wire=54),
    ],
)
def test_packet_blocks_with_less_in_them_than_they_claim(bad: bytes) -> None:
    data = section() + interface() + bad + enhanced(packet(seq=7))
    sink, reader = read(data)
    assert [(s.packet, s.seq) for s in sink.segments] == [(2, 7)]
    assert [(n.code, n.packet) for n in sink.notes] == [("capture/corrupt", 1)]
    assert reader.number == 2


def test_wire_length_below_captured() -> None:
    data = section() + interface() + enhanced(packet(b"abc"), wire=3)
    sink, _ = read(data)
    assert ([s.payload for s in sink.segments], sink.codes()) == ([b"abc"], ["capture/length"])


def test_lengths_not_rounded_up() -> None:
    """The length is not a multiple of 4, and the block is padded all the same."""
    odd = struct.pack("<IIIIIII", 6, 12 + 20 + 54 + 1, 0, 0, 5, 55, 55) + packet(b"z", seq=1) + b"\0"
    odd += struct.pack("<I", 12 + 20 + 54 + 1)
    data = section() + interface() + odd + enhanced(packet(seq=2))
    sink, _ = read(data)
    assert ([(s.seq, s.payload) for s in sink.segments], sink.notes) == ([(1, b"z"), (2, b"")], [])


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_wrong_second_length_is_noted(order: str) -> None:
    blocks = packets(9, order)
    blocks[4] = enhanced(packet(seq=4), MICROSECONDS, order, again=99)
    sink, _ = read(section(order) + interface(order=order) + b"".join(blocks))
    assert [s.seq for s in sink.segments] == list(range(9))
    assert sink.codes() == ["capture/corrupt"]


def test_a_wrong_second_length_of_the_last_block() -> None:
    blocks = [*packets(3), enhanced(packet(seq=3), again=99)]
    sink, _ = read(section() + interface() + b"".join(blocks))
    assert [s.seq for s in sink.segments] == [0, 1, 2, 3]
    assert sink.codes() == ["capture/corrupt"]


@pytest.mark.parametrize("claimed", [0, 11, 92, 20, 1000, 100_000, 0x0200_0000, 0xFFFFFFFC])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_wrong_first_length_costs_one_packet(claimed: int, order: str) -> None:
    blocks = packets(20, order)
    good = section(order) + interface(order=order)
    place = len(good) + sum(map(len, blocks[:7]))
    blocks[7] = enhanced(packet(bytes(21), seq=7), 0, order, length=claimed, again=len(blocks[7]))
    sink, reader = read(good + b"".join(blocks))
    assert [s.seq for s in sink.segments] == [n for n in range(20) if n != 7]
    assert reader.number == 19
    (note,) = sink.notes
    assert (note.code, note.packet) == ("capture/corrupt", 7)
    assert f"at offset {place}:" in note.detail


def test_a_file_cut_anywhere_says_what_is_lost() -> None:
    pieces = [section(), interface(), *packets(2)]
    data = b"".join(pieces)
    ends = [sum(map(len, pieces[:n])) for n in range(len(pieces) + 1)]
    for size in range(4, len(data)):
        sink, _ = read(data[:size])
        complete = max(n for n, place in enumerate(ends) if place <= size)
        assert len(sink.segments) == max(0, complete - 2)
        if size in ends:
            assert sink.notes == []
            continue
        (note,) = sink.notes
        assert note.code == "capture/truncated"
        assert (
            f"at offset {ends[complete]}: the {size - ends[complete]} octets of this record are not read"
            in note.detail
        )
        if size >= ends[complete] + 12:
            lacking = ends[complete + 1] - size
            assert note.detail.endswith(f"at least {count(lacking, 'octet')} {are(lacking)} missing")


def test_a_section_header_without_byte_order() -> None:
    bad = bytearray(section())
    bad[8:12] = b"\0\0\0\0"
    sink, _ = read(bytes(bad) + interface() + b"".join(packets(5)))
    assert sink.segments == []  # no interface is known where reading goes on
    assert sink.codes()[0] == "capture/corrupt"
    sink, _ = read(section() + interface() + b"".join(packets(5)) + bytes(bad) + b"".join(packets(5)))
    assert [s.seq for s in sink.segments] == [*range(5), *range(5)]
    assert sink.codes() == ["capture/corrupt"]


def test_garbage_between_sections_of_different_order() -> None:
    second = section(">") + interface(order=">") + b"".join(packets(6, ">"))
    sink, _ = read(section() + interface() + b"".join(packets(5)) + b"\xff" * 777 + second)
    assert [s.seq for s in sink.segments] == [*range(5), *range(6)]
    assert sink.codes() == ["capture/corrupt"]
    assert "777 octets are skipped" in sink.notes[0].detail


def test_a_capture_file_inside_a_packet_is_not_mistaken_for_this_one() -> None:
    inner = section() + interface() + enhanced(packet(b"inner", seq=666)) * 300
    blocks = packets(4000, size=60)
    blocks[3] = enhanced(packet(inner + b"behind it"), length=8)
    sink, _ = read(section() + interface() + b"".join(blocks))
    assert [s.seq for s in sink.segments] == [n for n in range(4000) if n != 3]


def test_unknown_version_is_noted_and_read() -> None:
    sink, _ = read(section(major=2) + interface() + enhanced(packet()))
    assert (len(sink.segments), sink.codes()) == (1, ["capture/version"])


def test_other_octets_than_the_reader_was_chosen_for() -> None:
    sink = Recorder()
    reader = PcapngReader(sink)
    reader.feed(b"x" * 100)
    reader.finish()
    assert sink.codes() == ["capture/corrupt"]


LOST = "packets lost before this packet, as the capture reports: "
IN_ALL = "packets lost in total, as the capture reports: "


@pytest.mark.parametrize("order", ["<", ">"])
def test_packets_lost_before_others(order: str) -> None:
    comment = option(1, b"between", order)
    data = (
        section(order)
        + interface(order=order)
        + enhanced(packet(seq=1), MICROSECONDS, order, options=comment)
        + enhanced(packet(seq=2), MICROSECONDS + 1, order, options=comment + count_option(4, 65535, order))
        + obsolete(packet(seq=3), MICROSECONDS + 2, order, lost=9)
        + obsolete(packet(seq=4), MICROSECONDS + 3, order, lost=65535)  # not known
        + enhanced(packet(seq=5), MICROSECONDS + 4, order, options=count_option(4, 0, order))
        + enhanced(packet(seq=6), MICROSECONDS + 5, order, options=count_option(4, 2**64 - 1, order))
    )
    sink, _ = read(data)
    assert [s.seq for s in sink.segments] == [1, 2, 3, 4, 5, 6]
    assert sink.lost == [(2, START + 1000, 65535), (3, START + 2000, 9), (6, START + 5000, 1 << 40)]
    assert [(n.code, n.packet, n.detail) for n in sink.notes] == [
        ("capture/dropped", 2, LOST + "65535"),
        ("capture/dropped", 0, IN_ALL + str(65535 + 9 + 2**64 - 1)),
    ]


def test_packets_lost_are_reported_before_the_packet_after_them() -> None:
    order: list[int] = []

    class Order(Recorder):
        def dropped(self, packet: int, time: int, count: int) -> None:
            order.append(-packet)

        def segment(self, segment: Segment) -> None:
            order.append(segment.packet)

    data = section() + interface() + enhanced(packet()) + enhanced(packet(), options=count_option(4, 1))
    reader = PcapngReader(Order())
    reader.feed(data)
    assert order == [1, -2, 2]


@pytest.mark.parametrize("order", ["<", ">"])
def test_statistics_of_interfaces(order: str) -> None:
    nanoseconds = option(9, b"\x09", order)
    data = (
        section(order)
        + interface(order=order)
        + interface(order=order, options=nanoseconds)
        + enhanced(packet(seq=1), MICROSECONDS, order, options=count_option(4, 5, order))
        + statistics(time_option(3, MICROSECONDS + 9, order) + count_option(7, 2, order), order)
        + statistics(count_option(5, 6, order) + option(1, b"x", order) + count_option(7, 4, order), order)
        + statistics(count_option(5, 1, order), order)
        + statistics(count_option(4, 99, order) + count_option(6, 99, order), order, 1)
        + statistics(time_option(3, START + 7, order) + count_option(7, 1, order), order, 1)
        + statistics(time_option(3, MICROSECONDS * 2, order) + count_option(7, 100, order), order, 2)
    )
    sink, _ = read(data)
    # The first interface lost 10, five of them before packet 1; the second one.
    assert sink.lost == [(1, START, 5), (0, START, 6)]
    assert [n.detail for n in sink.notes] == [
        LOST + "5",
        IN_ALL + "11; the capture does not report where 6 of the packets were lost",
    ]


def test_statistics_of_sections_add_up() -> None:
    one = section() + interface() + enhanced(packet(), options=count_option(4, 3))
    sink, _ = read(
        one
        + statistics(count_option(7, 5) + time_option(3, 7))
        + one
        + statistics(count_option(7, 3) + time_option(3, 6))
    )
    assert sink.lost == [(1, 0, 3), (2, 0, 3), (0, 0, 2)]
    assert [n.detail for n in sink.notes] == [
        LOST + "3",
        IN_ALL + "8; the capture does not report where 2 of the packets were lost",
    ]


def test_state_moves_between_losses() -> None:
    blocks = [
        section() + interface(),
        enhanced(packet(seq=1), options=count_option(4, 1)),
        statistics(count_option(7, 8) + time_option(3, 5)),
        enhanced(packet(seq=2), options=count_option(4, 2)),
        section() + interface(),
        enhanced(packet(seq=3)),
    ]
    whole, _ = read(b"".join(blocks))
    sink = Recorder()
    reader = PcapngReader(sink)
    for octets in blocks:
        reader.feed(octets)
        reader = PcapngReader.load(reader.dump(), sink)
    reader.finish()
    assert (sink.lost, sink.notes) == (whole.lost, whole.notes)
    assert sink.lost == [(1, 0, 1), (2, 0, 2), (0, 0, 5)]


@pytest.mark.parametrize(
    "bad",
    [
        statistics(b""),
        statistics(option(3, b"1234567") + option(7, b"1234")),
        statistics(option(0, b"") + time_option(3, 5) + count_option(7, 5)),
        statistics(struct.pack("<HH", 7, 9) + b"lost" * 2),  # an option longer than the block
        statistics(struct.pack("<HH", 1, 65535) + count_option(7, 5)),
        statistics(b"\x07\x00"),
        statistics(time_option(3, MAX_TIME // 1000 + 1) + count_option(7, 0)),
        statistics(time_option(3, 2**64 - 1)),
        statistics(time_option(3, 0)),
        block(5, bytes(8)),
        block(5, bytes(4)),
        block(5, b""),
        enhanced(packet(), options=struct.pack("<HH", 4, 9) + b"lost" * 2),
        enhanced(packet(), options=option(4, b"1234567")),
        enhanced(packet(), options=option(0, b"") + count_option(4, 5)),
        enhanced(packet(), options=b"\x04"),
    ],
)
def test_statistics_and_options_that_say_nothing(bad: bytes) -> None:
    sink, _ = read(section() + interface() + bad + enhanced(packet(seq=7)))
    assert sink.segments[-1].seq == 7
    assert (sink.lost, sink.notes) == ([], [])


def test_options_do_not_reach_beyond_their_block() -> None:
    """What follows is another block, whose octets are no option."""
    long = enhanced(packet(), options=struct.pack("<HH", 1, 0))
    behind = block(4, count_option(4, 7))
    sink, _ = read(section() + interface() + long + behind + enhanced(packet()))
    assert (sink.lost, sink.notes) == ([], [])
