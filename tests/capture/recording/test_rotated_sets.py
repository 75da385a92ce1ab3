"""A set of files: when the next one begins, what each is called, and which are kept."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.capture_files import SECOND, START
from support.recorded import blocks_of, captured, packets_of

from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.errors import CaptureError

DAY = 24 * 3600 * SECOND


def put(recorder: PcapngRecorder, number: int, moment: int, data: bytes, interface: int = 0) -> None:
    recorder.packet(captured(number, moment, data, interface))


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def packet_blocks(path: Path) -> list[bytes]:
    return [block.data for block in blocks_of(path.read_bytes()) if block.kind == 6]


@pytest.fixture
def zone() -> Iterator[None]:
    """A time zone that is not UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "XXX-03:30"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_files_of_so_many_packets(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "set.pcapng"), "a test", rotation=Rotation(packets=3))
    recorder.interface(0, "lo", 1, "", "")
    assert files_in(tmp_path) == []
    for number in range(1, 9):
        put(recorder, number, START + number * SECOND, b"%d" % number)
        if number % 4 == 0:
            recorder.flush()
    recorder.finish(START + 9 * SECOND, [8], [0])
    # 2023-11-14 22:13:20 UTC is START: local times of the first packets.
    names = ["set_00001_20231115014321", "set_00002_20231115014324", "set_00003_20231115014327"]
    assert [path.name for path in files_in(tmp_path)] == [f"{name}.pcapng" for name in names]
    assert recorder.files == [str(path) for path in files_in(tmp_path)]
    assert [packet_blocks(path) for path in files_in(tmp_path)] == [
        [b"1", b"2", b"3"],
        [b"4", b"5", b"6"],
        [b"7", b"8"],
    ]
    kinds = [[block.kind for block in blocks_of(path.read_bytes())] for path in files_in(tmp_path)]
    assert kinds == [[0x0A0D0D0A, 1, 6, 6, 6], [0x0A0D0D0A, 1, 6, 6, 6], [0x0A0D0D0A, 1, 6, 6, 5]]
    headers = [blocks_of(path.read_bytes())[0] for path in files_in(tmp_path)]
    assert [header.comments for header in headers] == [
        [],
        ["packet 1 of this file is packet 4 of the capture"],
        ["packet 1 of this file is packet 7 of the capture"],
    ]


def test_files_of_so_long(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "set"), "a test", rotation=Rotation(duration=SECOND))
    steps = [
        0,
        1,
        SECOND - 1,
        SECOND,
        SECOND + 5,
        2 * SECOND - 1,
        2 * SECOND,
        7 * SECOND,
        6 * SECOND,
        8 * SECOND,
    ]
    for number, step in enumerate(steps, 1):
        put(recorder, number, START + step, b"%d" % number)
    recorder.finish(0, [], [])
    assert [packet_blocks(path) for path in files_in(tmp_path)] == [
        [b"1", b"2", b"3"],
        [b"4", b"5", b"6"],
        [b"7"],
        [b"8", b"9"],
        [b"10"],
    ]
    assert all(re.fullmatch(r"set_0000\d_\d{14}", path.name) for path in files_in(tmp_path))


@given(
    st.integers(100, 3000),
    st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.booleans()), min_size=1, max_size=80),
)
def test_files_of_such_a_size(most: int, packets: list[tuple[int, bool, bool]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "set.pcapng"
        recorder = PcapngRecorder(str(path), "a test", rotation=Rotation(size=most))
        recorder.interface(0, "lo", 1, "", "")
        given_to, remarks = [], 0
        for number, (size, flush, comment) in enumerate(packets, 1):
            data = bytes([number]) * size
            put(recorder, number, START + number * 10_000_000, data)
            given_to.append(data)
            if comment:
                recorder.comment(number, "a remark")
                remarks += 1
            if flush:
                recorder.flush()
        recorder.finish(START, [len(packets)], [0])
        contents = [one.read_bytes() for one in files_in(Path(folder))]
    found = [[one.data for one in packets_of(content)[0]] for content in contents]
    assert [data for one in found for data in one] == given_to
    blocks = [blocks_of(content) for content in contents]
    assert sum(block.comments == ["a remark"] for one in blocks for block in one) == remarks
    for content, one in zip(contents, blocks, strict=True):
        statistics = 72 if one[-1].kind == 5 else 0
        assert len(content) - statistics <= most or sum(block.kind == 6 for block in one) == 1
    # Each but the last is as full as it can be (with what a comment may take beside its text).
    for content, following in zip(contents, found[1:], strict=False):
        assert len(content) + 32 + len(following[0]) + 3 + 64 > most


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    (tmp_path / "set_00001_other.pcapng").write_bytes(b"not ours")
    rotation = Rotation(packets=1, files=2)
    recorder = PcapngRecorder(str(tmp_path / "set.pcapng"), "a test", rotation=rotation)
    for number in range(1, 6):
        put(recorder, number, START + number * SECOND, b"%d" % number)
        recorder.flush()
        if number == 4:
            Path(recorder.files[0]).unlink()  # somebody took it away
        assert len(files_in(tmp_path)) <= 3
    recorder.finish(0, [], [])
    assert [packet_blocks(Path(name)) for name in recorder.files] == [[b"4"], [b"5"]]
    assert len(files_in(tmp_path)) == 3


def test_an_interface_described_later_is_described_in_each_file(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "set"), "a test", rotation=Rotation(packets=2))
    recorder.interface(0, "lo", 1, "", "")
    for number in range(1, 4):
        put(recorder, number, START, b"%d" % number)
    recorder.flush(START + 2 * SECOND)
    recorder.interface(1, "eth0", 1, "", "")
    put(recorder, 4, START, b"4", 1)
    put(recorder, 5, START, b"5", 1)
    recorder.finish(0, [], [])
    read = [packets_of(path.read_bytes())[0] for path in files_in(tmp_path)]
    assert [[(one.data, one.interface) for one in packets] for packets in read] == [
        [(b"1", 0), (b"2", 0)],
        [(b"3", 0), (b"4", 1)],
        [(b"5", 1)],
    ]
    names = [
        [block.options[2][0] for block in blocks_of(path.read_bytes()) if block.kind == 1]
        for path in files_in(tmp_path)
    ]
    assert names == [[b"lo"], [b"lo", b"eth0"], [b"lo", b"eth0"]]


def test_the_description_of_an_interface_counts_too(tmp_path: Path) -> None:
    size = 44 + 40 + 36 + 36  # header, description of lo, two packets
    recorder = PcapngRecorder(str(tmp_path / "set"), "a test", rotation=Rotation(size=size))
    recorder.interface(0, "lo", 1, "", "")
    put(recorder, 1, START, b"1111")
    put(recorder, 2, START + 2 * SECOND, b"2222")
    recorder.flush()
    recorder.interface(1, "eth0", 1, "", "")
    recorder.finish(0, [], [])
    assert [packet_blocks(path) for path in files_in(tmp_path)] == [[b"1111"], [b"2222"]]
    assert files_in(tmp_path)[0].stat().st_size == size - 36


def test_what_a_set_lost_adds_up(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "set"), "a test", rotation=Rotation(packets=2))
    for number in range(1, 8):
        recorder.lost(0, number)
        put(recorder, number, START + number * SECOND, b"")
        if number % 3 == 0:
            recorder.comment(number, "a remark")
        recorder.flush()
    recorder.finish(START + 8 * SECOND, [7], [sum(range(1, 8))])
    lost = [[count for _, _, count in packets_of(path.read_bytes())[1].lost] for path in files_in(tmp_path)]
    assert lost == [[1, 2], [3, 4], [5, 6], [7]]
    for path, reported in zip(files_in(tmp_path), [[], [], [], [7]], strict=True):
        blocks = [block for block in blocks_of(path.read_bytes()) if block.kind == 5]
        assert [int.from_bytes(block.options[7][0], "little") for block in blocks] == reported
        assert not any(4 in block.options for block in blocks)


def test_a_set_without_packets_is_one_file(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "set"), "a test", rotation=Rotation(packets=2))
    recorder.interface(0, "lo", 1, "", "")
    recorder.flush(START)
    recorder.finish(START + DAY, [0], [0])
    (path,) = files_in(tmp_path)
    assert [block.kind for block in blocks_of(path.read_bytes())] == [0x0A0D0D0A, 1, 5]


def test_places_where_no_set_can_be(tmp_path: Path) -> None:
    for path, why in [
        (str(tmp_path), "is a directory"),
        (str(tmp_path / "none" / "set"), f"there is no directory {tmp_path / 'none'}"),
    ]:
        with pytest.raises(CaptureError) as caught:
            PcapngRecorder(path, "a test", rotation=Rotation(packets=1))
        assert str(caught.value) == f"{path}: {why}"


def test_a_directory_that_goes_away_is_reported_once(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    recorder = PcapngRecorder(str(folder / "set"), "a test", rotation=Rotation(packets=1))
    put(recorder, 1, START, b"1")
    put(recorder, 2, START, b"2")
    folder.rmdir()
    with pytest.raises(CaptureError, match=r"set_00001_\d+: No such file or directory$"):
        recorder.flush(START + 2 * SECOND)
    put(recorder, 3, START, b"3")
    recorder.finish(START, [], [])
    assert recorder.failed
    assert recorder.files == []


def test_an_old_file_that_cannot_be_removed_ends_the_recording(tmp_path: Path) -> None:
    """Else the disk would fill."""
    recorder = PcapngRecorder(str(tmp_path / "set"), "a test", rotation=Rotation(packets=1, files=1))
    for number in range(1, 3):
        put(recorder, number, START, b"%d" % number)
        recorder.flush(START + 2 * SECOND)
    (path,) = files_in(tmp_path)
    path.unlink()
    path.mkdir()
    put(recorder, 3, START, b"3")
    with pytest.raises(CaptureError, match=f"^{path}: "):
        recorder.flush(START + 2 * SECOND)
    assert recorder.failed
