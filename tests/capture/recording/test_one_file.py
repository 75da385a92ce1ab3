"""One recorded file: what went in comes out, comments stand where they belong, errors are reported once."""

import resource
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.capture_files import SECOND, START, packet
from support.recorded import Block, Recorded, blocks_of, captured, packets_of

from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.errors import CaptureError
from amqpscope.limits import (
    MAX_COMMENT,
    MAX_COMMENTS_HELD,
    MAX_INTERFACES,
    MAX_PACKET,
    MAX_PACKET_COMMENTS,
    MAX_TIME,
    RECORDING_HOLD_OCTETS,
)

MILLISECOND = 1_000_000


def give(
    recorder: PcapngRecorder,
    number: int,
    time: int,
    data: bytes,
    interface: int = 0,
    link_type: int = 1,
    wire: int | None = None,
) -> None:
    """One packet."""
    recorder.packet(captured(number, time, data, interface, link_type, wire))


def packets_in(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if block.kind == 6]


class Given(NamedTuple):
    data: bytes
    beyond: int  # octets on the wire that were not captured
    step: int  # nanoseconds since the packet before
    skip: int  # numbers, too
    interface: int
    link_type: int
    then: str


PACKETS = st.lists(
    st.builds(
        Given,
        st.binary(max_size=300),
        st.integers(0, 3),
        st.integers(-SECOND, 2 * SECOND) | st.just(1000),
        st.just(1) | st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from([1, 101, 276]),
        st.sampled_from(["", "", "", "flush", "lost", "remark", "late remark"]),
    ),
    max_size=60,
)


@given(PACKETS, st.integers(1, 500))
def test_packets_are_read_back_octet_for_octet(packets: list[Given], size: int) -> None:
    reported, numbers, remarks, lost = [], [], [], 0
    number, time = 0, START
    with TemporaryDirectory() as folder:
        path = Path(folder) / "recorded.pcapng"
        recorder = PcapngRecorder(str(path), "a test")
        for one in packets:
            number, time = number + one.skip, time + one.step
            wire = len(one.data) + one.beyond
            give(recorder, number, time, one.data, one.interface, one.link_type, wire)
            reported.append((time, one.link_type, one.data, wire))
            numbers.append(number)
            if one.then == "flush":
                recorder.flush()
            elif one.then == "lost":
                recorder.lost(one.interface, 3)
                lost += 3
            elif one.then:
                about = number if one.then == "remark" else numbers[len(numbers) // 2]
                recorder.comment(about, f"remark {len(remarks)}")
                remarks.append(about)
        for interface in range(3):  # so that none is lost at the end
            number += 1
            give(recorder, number, time, b"", interface)
            reported.append((time, 1, b"", 0))
            numbers.append(number)
        recorder.finish(time, [], [])
        content = path.read_bytes()
    found, sink = packets_of(content, size)
    assert [(one.time, one.link_type, one.data, one.wire) for one in found] == reported
    assert not {"capture/corrupt", "capture/truncated", "capture/interface"} & set(sink.codes())
    blocks = packets_in(blocks_of(content))
    assert (
        sum(struct.unpack("<Q", count)[0] for block in blocks for count in block.options.get(4, [])) == lost
    )
    places = {text: at for at, block in enumerate(blocks) for text in block.comments}
    assert len(places) == len(remarks)
    for index, about in enumerate(remarks):
        remark = f"remark {index}"
        if remark in places:
            assert numbers[places[remark]] == about
        else:
            assert numbers[places[f"packet {about}: {remark}"]] > about


def test_what_the_file_says_of_itself_and_its_interfaces(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "amqpscope 9.9", START - SECOND)
    recorder.interface(0, "lo", 1, "127.0.0.1, ::1", "tcp port 5672")
    give(recorder, 1, START, packet(b"a"))
    recorder.flush()
    recorder.interface(1, "eth0", 101, "", "")
    give(recorder, 2, START + 1, packet(b"b")[14:], 1, 101)
    recorder.finish(START + 7 * SECOND, [5, 1], [2, 0])
    header, first, *rest = blocks_of(path.read_bytes())
    assert struct.unpack("<IHHq", header.fixed) == (0x1A2B3C4D, 1, 0, -1)
    assert header.options == {4: [b"amqpscope 9.9"]}
    assert struct.unpack("<HHI", first.fixed) == (1, 0, 0)
    assert first.options == {2: [b"lo"], 3: [b"127.0.0.1, ::1"], 9: [b"\x09"], 11: [b"\0tcp port 5672"]}
    assert [block.kind for block in rest] == [1, 6, 6, 5, 5]
    assert rest[0].fixed == struct.pack("<HHI", 101, 0, 0)
    assert rest[0].options == {2: [b"eth0"], 9: [b"\x09"]}
    assert [block.data for block in rest[1:3]] == [packet(b"a"), packet(b"b")[14:]]
    for interface, (received, dropped) in enumerate([(5, 2), (1, 0)]):
        block = rest[3 + interface]
        assert struct.unpack_from("<I", block.fixed) == (interface,)
        assert block.time == START + 7 * SECOND
        assert {code: struct.unpack("<II", block.options[code][0]) for code in (2, 3)} == {
            2: ((START - SECOND) >> 32, (START - SECOND) & 0xFFFFFFFF),
            3: ((START + 7 * SECOND) >> 32, (START + 7 * SECOND) & 0xFFFFFFFF),
        }
        assert [struct.unpack("<Q", block.options[code][0])[0] for code in (4, 7)] == [received, dropped]


def test_a_packet_is_written_when_it_was_long_enough_in_hand(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")

    def written() -> list[bytes]:
        recorder.flush()
        return [block.data for block in packets_in(blocks_of(path.read_bytes()))]

    assert [block.kind for block in blocks_of(path.read_bytes())] == [0x0A0D0D0A]
    for number in range(1, 5):
        give(recorder, number, START + number * 400 * MILLISECOND, b"%d" % number)
        assert written() == [b"%d" % one for one in range(1, number - 2)]
    recorder.flush(START + 1600 * MILLISECOND + SECOND - 1)
    assert written() == [b"1", b"2", b"3"][: len(written())]
    recorder.flush(START + 100 * SECOND)
    assert written() == [b"1", b"2", b"3"]  # the newest waits for what may be said of it
    recorder.comment(2, "too late")
    recorder.finish(0, [], [])
    last = packets_in(blocks_of(path.read_bytes()))[-1]
    assert (last.data, last.comments) == (b"4", ["packet 2: too late"])


def test_nothing_is_said_of_packets_in_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    recorder.interface(0, "lo", 1, "", "")
    recorder.comment(1, "of a packet that never came")
    recorder.finish(START, [0], [0])
    recorder.finish(START, [0], [0])
    recorder.comment(2, "too late")
    give(recorder, 1, START, b"too late")
    recorder.flush()
    blocks = blocks_of(path.read_bytes())
    assert [block.kind for block in blocks] == [0x0A0D0D0A, 1, 5]
    assert blocks[2].comments == ["packet 1: of a packet that never came"]
    assert recorder.files == [str(path)]


def test_an_interface_whose_link_type_changes_is_described_again(tmp_path: Path) -> None:
    """As in a pipe whose next section has other interfaces."""
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    recorder.interface(0, "lo", 1, "", "")
    recorder.interface(0, "lo0", 1, "", "")
    for number, link_type in enumerate([1, 101, 1, 101], 1):
        give(recorder, number, START, b"", 0, link_type)
    recorder.finish(0, [4], [0])
    blocks = blocks_of(path.read_bytes())
    described = [block for block in blocks if block.kind == 1]
    assert [(block.fixed[0], block.options[2]) for block in described] == [(1, [b"lo0"]), (101, [b"lo0"])]
    assert [block.fixed[0] for block in packets_in(blocks)] == [0, 1, 0, 1]
    assert [7 in block.options for block in blocks if block.kind == 5] == [True, False]


def test_a_comment_on_a_packet_that_was_not_handed_on(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    for number in (1, 5, 6):
        give(recorder, number, START, b"%d" % number)
    recorder.comment(3, "passed over")
    recorder.comment(7, "not seen yet")
    recorder.finish(0, [], [])
    blocks = packets_in(blocks_of(path.read_bytes()))
    assert [block.comments for block in blocks] == [
        [],
        [],
        ["packet 3: passed over", "packet 7: not seen yet"],
    ]


def test_packets_of_any_time_and_size(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    large = bytes(range(256)) * 2000
    give(recorder, 1, -5, b"early")
    give(recorder, 2, MAX_TIME + 5, b"late")
    give(recorder, 3, START, large)
    give(recorder, 4, START, b"wire", wire=1)
    give(recorder, 5, START, b"wire", wire=1 << 40)
    give(recorder, 6, START, b"private", link_type=0x10000)
    recorder.finish(0, [], [])
    found, sink = packets_of(path.read_bytes())
    assert found == [
        Recorded(1, 0, 0, 1, b"early", 5),
        Recorded(2, MAX_TIME, 0, 1, b"late", 4),
        Recorded(3, START, 0, 1, large[:MAX_PACKET], len(large)),
        Recorded(4, START, 0, 1, b"wire", 4),
        Recorded(5, START, 0, 1, b"wire", 0xFFFFFFFF),
        Recorded(6, START, 1, 147, b"private", 7),
    ]
    assert "capture/corrupt" not in sink.codes()
    lengths = [
        struct.unpack_from("<II", block.fixed, 12) for block in packets_in(blocks_of(path.read_bytes()))
    ]
    assert lengths == [(len(one.data), one.wire) for one in found]


def test_more_interfaces_than_a_file_is_given(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    for number in range(MAX_INTERFACES + 10):
        give(recorder, number + 1, START, b"", number)
    give(recorder, MAX_INTERFACES + 11, START, b"known", 3)
    recorder.finish(0, [], [])
    found, _ = packets_of(path.read_bytes())
    assert [one.interface for one in found] == [*range(MAX_INTERFACES), 3]
    assert (recorder.packets, recorder.unrecorded) == (MAX_INTERFACES + 11, 10)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("credit 0 → 10, “link”", "credit 0 → 10, “link”"),
        ("\x1b[31mred\n\u202e\x9b", "\\x1b[31mred\\n\\u202e\\x9b"),
        ("\ud800", "\\ud800"),
        ("é" * MAX_COMMENT, "é" * ((MAX_COMMENT - 3) // 2) + "..."),
        ("x" * (MAX_COMMENT + 1), "x" * (MAX_COMMENT - 3) + "..."),
    ],
)
def test_comments_are_plain_text_of_bounded_length(text: str, written: str, tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "recorded.pcapng"), "a test")
    give(recorder, 1, START, b"")
    recorder.comment(1, text)
    recorder.finish(0, [], [])
    (block,) = packets_in(blocks_of((tmp_path / "recorded.pcapng").read_bytes()))
    assert block.comments == [written]


def test_many_comments_on_one_packet_are_counted(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "recorded.pcapng"), "a test")
    give(recorder, 1, START, b"abc")
    for _ in range(1000):
        recorder.comment(1, "x" * 100)
    recorder.finish(0, [], [])
    (block,) = packets_in(blocks_of((tmp_path / "recorded.pcapng").read_bytes()))
    *first, last = block.comments
    assert first == ["x" * 100] * len(first)
    assert (len(first) + 1) * 104 > MAX_PACKET_COMMENTS - 104
    assert last == f"and {1000 - len(first)} more"


def test_memory_is_bounded_though_nobody_flushes(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    for number in range(1, 1001):
        give(recorder, number, START + number, bytes(60_000))
    assert path.stat().st_size > 60_000_000 - RECORDING_HOLD_OCTETS
    recorder.finish(0, [], [])
    assert len(packets_of(path.read_bytes())[0]) == 1000


def test_comments_in_hand_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    for number in range(1, 6001):
        give(recorder, number, START + number, b"")
        recorder.comment(number, "y" * 990)
    assert path.stat().st_size > 6000 * 990 - MAX_COMMENTS_HELD
    recorder.finish(0, [], [])
    assert [block.comments for block in packets_in(blocks_of(path.read_bytes()))] == [["y" * 990]] * 6000


@contextmanager
def no_room_beyond(octets: int) -> Iterator[None]:
    """Files cannot grow beyond so many octets, as if the disk was full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_reported_once_and_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    recorder = PcapngRecorder(str(path), "a test")
    for number in range(1, 4):
        give(recorder, number, START + number * SECOND, bytes(1000))
    recorder.flush()
    for number in range(4, 10):
        give(recorder, number, START + number * SECOND, bytes(1000))
    with no_room_beyond(3000):
        with pytest.raises(CaptureError, match=r"recorded\.pcapng: File too large$"):
            recorder.flush()
        assert recorder.failed
        give(recorder, 10, START + 10 * SECOND, b"not taken")
        recorder.comment(10, "not taken")
        recorder.flush()
        recorder.finish(0, [], [])
    found, sink = packets_of(path.read_bytes())
    assert [one.number for one in found] == [1, 2]
    assert sink.notes == []


def test_a_disk_that_is_full_at_the_end_is_reported_with_its_reason(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "recorded.pcapng"), "a test")
    for number in range(1, 10):
        give(recorder, number, START + number * SECOND, bytes(1000))
    with no_room_beyond(3000), pytest.raises(CaptureError, match=r"recorded\.pcapng: File too large$"):
        recorder.finish(0, [], [])


def test_a_device_that_takes_nothing() -> None:
    with pytest.raises(CaptureError, match=r"^/dev/full: No space left on device$"):
        PcapngRecorder("/dev/full", "a test")


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    for path, why in [
        (str(tmp_path), "Is a directory"),
        (str(tmp_path / "none" / "file"), "No such file or directory"),
        ("a\0b", "embedded null"),
    ]:
        with pytest.raises(CaptureError) as caught:
            PcapngRecorder(path, "a test")
        text = str(caught.value)
        # Pythons differ in the words that they have for it.
        assert text.startswith("'a\\x00b': ") and why in text if "\0" in path else text == f"{path}: {why}"


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    PcapngRecorder(str(path), "a test").finish(START, [], [])
    assert path.stat().st_mode & 0o777 == 0o600
