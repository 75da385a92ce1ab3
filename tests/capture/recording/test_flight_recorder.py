"""A flight recorder keeps the last seconds, in bounded memory, and writes them when it is triggered."""

import struct
from pathlib import Path

import pytest
from support.capture_files import SECOND, START
from support.recorded import Block, blocks_of, captured, packets_of

from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_COMMENTS_HELD, RECORDING_LATE

MILLISECOND = 1_000_000


def put(recorder: PcapngRecorder, number: int, moment: int, data: bytes = b"x") -> None:
    recorder.packet(captured(number, moment, data))


def packets_in(path: Path) -> list[Block]:
    return [block for block in blocks_of(path.read_bytes()) if block.kind == 6]


def times_in(path: Path) -> list[int]:
    return [block.time - START for block in packets_in(path)]


@pytest.mark.parametrize("step", [MILLISECOND, 30 * MILLISECOND, SECOND])
def test_the_last_ten_seconds_before_and_all_behind(tmp_path: Path, step: int) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=10 * SECOND)
    recorder.interface(0, "lo", 1, "", "")
    count = 60 * SECOND // step
    for number in range(1, count + 1):
        put(recorder, number, START + number * step)
        recorder.comment(number, f"remark on {number}")
        if number % 7 == 0:
            recorder.flush()
    assert not path.exists()
    recorder.trigger("until amqp10/L-CREDIT")
    for number in range(count + 1, count + 101):
        put(recorder, number, START + number * step)
        recorder.flush()
    recorder.finish(START + (count + 100) * step, [count + 100], [0])
    header = blocks_of(path.read_bytes())[0]
    found = packets_in(path)
    first = (found[0].time - START) // step
    assert header.comments == [
        f"until amqp10/L-CREDIT; packet 1 of this file is packet {first} of the capture"
    ]
    assert [block.time for block in found] == [START + n * step for n in range(first, count + 101)]
    # All of the ten seconds, and not much more.
    assert count * step - 10 * SECOND >= (first - 1) * step
    assert count * step - 10.2 * SECOND - step <= first * step
    remarks = [block.comments for block in found]
    assert remarks == [[f"remark on {n}"] for n in range(first, count + 1)] + [[]] * 100


def test_memory_is_bounded_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=10 * SECOND, before_octets=1_000_000)
    for number in range(1, 10_001):
        put(recorder, number, START + number * MILLISECOND, bytes(968))
    recorder.trigger("a reason")
    recorder.finish(0, [], [])
    (said,) = blocks_of(path.read_bytes())[0].comments
    found = times_in(path)
    assert found[-1] == 10_000 * MILLISECOND
    kept = (found[-1] - found[0]) / SECOND
    assert said.startswith(f"a reason; memory for only {kept:.3f} s before it; packet 1 of this file is ")
    assert 500_000 < path.stat().st_size < 1_001_000


@pytest.mark.parametrize("late", [0, SECOND, RECORDING_LATE])
def test_all_seconds_before_a_moment_that_is_known_late(tmp_path: Path, late: int) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=10 * SECOND)
    for number in range(1, 1001):
        put(recorder, number, START + number * SECOND // 10)
        recorder.flush()
    recorder.trigger("a reason", START + 100 * SECOND - late)
    recorder.finish(0, [], [])
    first = times_in(path)[0]
    assert 90 * SECOND - late - 2 * SECOND // 10 < first <= 90 * SECOND - late
    assert times_in(path)[-1] == 100 * SECOND


def test_how_long_before_a_moment_memory_was_enough(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=10 * SECOND, before_octets=1_000_000)
    for number in range(1, 10_001):
        put(recorder, number, START + number * MILLISECOND, bytes(968))
    recorder.trigger("a reason", START + 9900 * MILLISECOND)
    recorder.finish(0, [], [])
    (said,) = blocks_of(path.read_bytes())[0].comments
    kept = (9900 * MILLISECOND - times_in(path)[0]) / SECOND
    assert 0 < kept < 1
    assert said.startswith(f"a reason; memory for only {kept:.3f} s before it; packet 1 of this file is ")


def test_what_is_too_old_takes_no_memory(tmp_path: Path) -> None:
    recorder = PcapngRecorder(str(tmp_path / "flight.pcapng"), "a test", before=SECOND)
    most = 0
    for number in range(1, 5001):
        put(recorder, number, START + number * 10 * MILLISECOND, bytes(968))
        recorder.flush()
        most = max(most, recorder.held)
    seconds = 1 + RECORDING_LATE / SECOND
    assert seconds * 100_000 < most < seconds * 150_000
    recorder.finish(0, [], [])


def test_what_was_lost_before_is_not_of_this_file(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", START - SECOND, before=10 * SECOND)
    for number in range(1, 101):
        recorder.lost(0, number)
        put(recorder, number, START + number * SECOND)
        recorder.flush()
    recorder.trigger("a reason")
    recorder.lost(0, 7)  # behind the last packet
    recorder.lost(1, 3)
    recorder.interface(1, "eth0", 1, "", "")
    before = sum(range(1, 90))
    of_it = sum(range(90, 101)) + 7
    recorder.finish(START + 101 * SECOND, [100, 0], [before + of_it + 2, 3])  # two of which nobody said where
    first, second = [block for block in blocks_of(path.read_bytes()) if block.kind == 5]
    assert times_in(path)[0] == 90 * SECOND
    assert [struct.unpack("<Q", block.options[7][0])[0] for block in (first, second)] == [of_it + 2, 3]
    assert 4 not in first.options
    high, low = struct.unpack("<II", first.options[2][0])
    assert (high << 32) | low == START + 90 * SECOND
    _, sink = packets_of(path.read_bytes())
    assert sink.lost[-1][::2] == (0, 2 + 7 + 3)
    assert sum(count for _, _, count in sink.lost) == of_it + 2 + 3


def test_memory_that_was_enough_is_not_spoken_of(tmp_path: Path) -> None:
    """What was forgotten to keep memory bounded, long ago, is not of the last seconds."""
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=SECOND, before_octets=100_000)
    for number in range(1, 1001):
        put(recorder, number, START + number, bytes(968))
    put(recorder, 1001, START + 5 * SECOND)
    put(recorder, 1002, START + 7 * SECOND)
    recorder.trigger("a reason")
    recorder.finish(0, [], [])
    assert times_in(path) == [7 * SECOND]
    (said,) = blocks_of(path.read_bytes())[0].comments
    assert said == "a reason; packet 1 of this file is packet 1002 of the capture"


def test_comments_are_bounded_too(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=3600 * SECOND)
    for number in range(1, 6001):
        put(recorder, number, START + number)
        recorder.comment(number, "y" * 990)
        recorder.comment(1, "y" * 990)
    recorder.trigger("a reason")
    recorder.finish(0, [], [])
    found = packets_in(path)
    said = sum(block.comments == ["y" * 990] for block in found)
    each = 996 + 32  # with what it takes besides
    assert MAX_COMMENTS_HELD - 5 * each < said * each <= MAX_COMMENTS_HELD
    assert found[0].comments == ["y" * 990] * 3 + [f"and {6001 - 3} more"]
    assert blocks_of(path.read_bytes())[0].comments == [
        f"a reason; no memory for {6000 - 1 - said} comments before it"
    ]


def test_one_that_is_never_triggered_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    path.write_bytes(b"the last breach")
    recorder = PcapngRecorder(str(path), "a test", before=SECOND)
    put(recorder, 1, START)
    recorder.flush()
    recorder.finish(START, [1], [0])
    recorder.trigger("too late")
    assert path.read_bytes() == b"the last breach"
    assert recorder.files == []


def test_a_second_trigger_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=SECOND)
    put(recorder, 1, START)
    recorder.trigger("first")
    put(recorder, 2, START + 5 * SECOND)
    recorder.trigger("second")
    recorder.finish(0, [], [])
    assert times_in(path) == [0, 5 * SECOND]
    assert blocks_of(path.read_bytes())[0].comments == ["first"]
    assert recorder.files == [str(path)]


def test_one_that_is_triggered_before_any_packet(tmp_path: Path) -> None:
    path = tmp_path / "flight.pcapng"
    recorder = PcapngRecorder(str(path), "a test", before=SECOND)
    recorder.interface(0, "lo", 1, "", "")
    recorder.trigger("a reason")
    recorder.flush()
    recorder.finish(START, [0], [0])
    assert [block.kind for block in blocks_of(path.read_bytes())] == [0x0A0D0D0A, 1, 5]


def test_what_was_kept_may_go_into_a_set_of_files(tmp_path: Path) -> None:
    rotation = Rotation(packets=2)
    recorder = PcapngRecorder(str(tmp_path / "flight"), "a test", rotation=rotation, before=10 * SECOND)
    for number in range(1, 6):
        put(recorder, number, START + number * SECOND)
    recorder.trigger("a reason")
    recorder.finish(0, [], [])
    assert [times_in(path) for path in sorted(tmp_path.iterdir())] == [
        [SECOND, 2 * SECOND],
        [3 * SECOND, 4 * SECOND],
        [5 * SECOND],
    ]


def test_where_it_cannot_write_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="there is no directory"):
        PcapngRecorder(str(tmp_path / "none" / "flight"), "a test", before=SECOND)


def test_where_it_can_no_longer_write_is_reported_when_triggered(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    recorder = PcapngRecorder(str(folder / "flight"), "a test", before=SECOND)
    put(recorder, 1, START)
    folder.rmdir()
    recorder.trigger("a reason")
    with pytest.raises(CaptureError, match=r"flight: No such file or directory$"):
        recorder.finish(0, [], [])
