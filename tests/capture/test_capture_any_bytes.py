"""Properties of the readers: any chunking is the same, any octets are survived, state moves."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.capture_files import (
    START,
    Record,
    Recorder,
    block,
    count_option,
    enhanced,
    interface,
    obsolete,
    packet,
    pcap,
    section,
    simple,
    statistics,
    time_option,
)
from support.sampling import examples, share

from amqpscope.capture.pcap import PcapReader
from amqpscope.capture.pcapng import PcapngReader
from amqpscope.capture.reader import CaptureReader, for_magic
from amqpscope.limits import MAX_BLOCK, MAX_LINK_TYPES, MAX_NOTES

CODES = {
    "capture/corrupt",
    "capture/dropped",
    "capture/interface",
    "capture/ip-fragment",
    "capture/ip-header",
    "capture/joined",
    "capture/length",
    "capture/link-type",
    "capture/no-time",
    "capture/tcp-header",
    "capture/time",
    "capture/truncated",
    "capture/version",
}

MAGICS = [
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
]


def good_files() -> dict[str, bytes]:
    records = [Record(START + n * 1000, packet(bytes([n]) * (n % 9), seq=n)) for n in range(24)]
    blocks = b"".join(
        (
            enhanced(packet(seq=n), START // 1000, order)
            + obsolete(packet(seq=n), 5, order)
            + simple(packet(seq=n), order)
            + block(4, bytes(8), order)
            + enhanced(packet(seq=n), START // 1000, order, options=count_option(4, n, order))
            + statistics(time_option(3, START // 1000 + n, order) + count_option(7, 3 * n, order), order)
        )
        if n % 4 == 0
        else enhanced(packet(bytes(n), seq=n), START // 1000 + n, order)
        for order in "<>"
        for n in range(12)
    )
    half = len(blocks) // 2
    return {
        "pcap little": pcap(records),
        "pcap big nano": pcap(records, ">", 0xA1B23C4D),
        "pcap modified": pcap(records, "<", 0xA1B2CD34),
        "pcap joined": pcap(records) + pcap(records),
        "pcapng": section("<")
        + interface(order="<")
        + blocks[:half]
        + section(">")
        + interface(order=">")
        + blocks[half:],
    }


FILES = good_files()


def start(data: bytes, sink: Recorder) -> CaptureReader:
    reader = for_magic(data[:4], sink)
    assert reader is not None
    return reader


def read(data: bytes, cuts: list[int]) -> tuple[Recorder, CaptureReader]:
    sink = Recorder()
    reader = start(data, sink)
    places = [0, *sorted(cuts), len(data)]
    for begin, end in pairwise(places):
        reader.feed(data[begin:end])
    reader.finish()
    return sink, reader


def damage(data: bytes, seed: int) -> bytes:
    """A few flips, overwritten stretches, lost and inserted octets, or a cut."""
    chance = random.Random(seed)
    octets = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(4, len(octets))
        way = chance.randrange(5)
        if way == 0:
            octets[place] ^= 1 << chance.randrange(8)
        elif way == 1:
            octets[place : place + 16] = chance.randbytes(16)
        elif way == 2:
            del octets[place : place + chance.randrange(1, 50)]
        elif way == 3:
            octets[place:place] = chance.randbytes(chance.randrange(1, 50))
        else:
            octets[place : place + 4] = chance.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\1\0"])
        if len(octets) < 6:
            break
    return bytes(octets)


def bounded(sink: Recorder) -> None:
    assert set(sink.codes()) <= CODES
    for code in CODES:
        most = MAX_LINK_TYPES if code == "capture/link-type" else MAX_NOTES + 1
        assert sink.codes().count(code) <= most
    for note in sink.notes:
        assert note.detail.isascii()
        assert note.detail.isprintable()


@pytest.mark.parametrize("name", FILES)
def test_octet_by_octet_is_the_same_as_whole(name: str) -> None:
    data = FILES[name]
    whole, reader = read(data, [])
    single, other = read(data, list(range(1, len(data))))
    assert single.segments == whole.segments
    assert single.notes == whole.notes
    assert single.lost == whole.lost
    assert other.dump() == reader.dump()
    assert reader.offset == len(data)
    assert len(whole.segments) >= 24


@pytest.mark.parametrize("name", FILES)
def test_a_packet_is_handed_on_with_its_last_octet(name: str) -> None:
    """Live traffic comes through a pipe: nothing may wait for what comes after it."""
    data = FILES[name]
    for size in range(40, len(data), 61):
        part = Recorder()
        reader = start(data, part)
        reader.feed(data[: size // 2])
        reader.feed(data[size // 2 : size])
        handed_on = len(part.segments)
        assert handed_on == len(read(data[:size], [])[0].segments)


@given(st.sampled_from(sorted(FILES)), st.integers(0, 2**32), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_any_chunking_of_any_damage_is_the_same(name: str, seed: int, data: st.DataObject) -> None:
    octets = damage(FILES[name], seed)
    cuts = data.draw(st.lists(st.integers(0, len(octets)), max_size=12))
    whole, reader = read(octets, [])
    pieces, other = read(octets, cuts)
    assert pieces.segments == whole.segments
    assert pieces.notes == whole.notes
    assert pieces.lost == whole.lost
    assert other.dump() == reader.dump()
    bounded(whole)


@given(st.sampled_from(MAGICS), st.binary(max_size=600))
@settings(max_examples=examples(200), deadline=None)
def test_any_octets_behind_any_magic(magic: bytes, rest: bytes) -> None:
    sink, reader = read(magic + rest, [])
    bounded(sink)
    assert reader.offset <= 4 + len(rest)
    assert len(sink.segments) <= reader.number


@given(st.sampled_from(sorted(FILES)), st.integers(0, 2**32), st.integers(0, 10_000))
@settings(max_examples=examples(80), deadline=None)
def test_state_moves_at_any_place(name: str, seed: int, place: int) -> None:
    octets = damage(FILES[name], seed) if seed % 3 else FILES[name]
    place %= len(octets)
    whole, _ = read(octets, [])
    sink = Recorder()
    first = start(octets, sink)
    first.feed(octets[:place])
    state = first.dump()
    if isinstance(first, PcapReader):
        second: CaptureReader = PcapReader.load(state, sink)
    else:
        second = PcapngReader.load(state, sink)
    assert second.dump() == state
    second.feed(octets[place:])
    second.finish()
    assert sink.segments == whole.segments
    assert sink.notes == whole.notes
    assert sink.lost == whole.lost


def plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(plain, value))
    return value is None or type(value) in (int, str, bytes, bool)


@pytest.mark.parametrize("name", FILES)
def test_state_is_plain_values(name: str) -> None:
    sink = Recorder()
    reader = start(FILES[name], sink)
    reader.feed(FILES[name][:-3])
    assert plain(reader.dump())


SENSELESS = [(magic, fill) for fill in (b"\0", b"\x06\0\0\0", b"\x0a\x0d\x0d\x0a") for magic in MAGICS[-2:]]


@pytest.mark.parametrize(("magic", "fill"), share(SENSELESS, 3, "senseless file"))
def test_a_long_senseless_file_costs_little_memory(magic: bytes, fill: bytes) -> None:
    sink = Recorder()
    reader = start(magic, sink)
    reader.feed(magic)
    piece = fill * ((1 << 16) // len(fill))
    most = 0
    for number in range(128):
        reader.feed(piece)
        if number % 8 == 0:
            most = max(most, len(str(reader.dump())))
    reader.finish()
    bounded(sink)
    # Of 8 MiB a quarter of a block, at most: as text an octet takes up to four characters.
    assert most < 4 * (MAX_BLOCK // 4)


def test_finish_twice_says_things_once() -> None:
    sink = Recorder()
    reader = start(FILES["pcap little"], sink)
    reader.feed(FILES["pcap little"][:-1])
    reader.finish()
    reader.finish()
    PcapReader.load(reader.dump(), sink).finish()
    assert sink.codes() == ["capture/truncated"]


def test_state_of_another_version_is_refused() -> None:
    sink = Recorder()
    (version, *rest), *more = start(FILES["pcap little"], sink).dump()
    assert isinstance(version, int)
    with pytest.raises(ValueError, match="version"):
        PcapReader.load(((version + 1, *rest), *more), sink)
