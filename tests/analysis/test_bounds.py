"""What a connection may cost: what is kept of it stays small, and the time grows with its octets only."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, TLS_HEADER, frame
from support.connection_harness import ConnectionHarness
from support.openings import CLIENT_HELLO, SERVER_HELLO, record

from amqpscope.limits import MAX_UNDECIDED
from dissectors.limits import DETECT_OCTETS, RESYNC_WINDOW

OPEN = frame(amqp.open_(container_id="some container"))
CLOSE = frame(amqp.close())
GARBAGE = random.Random(7).randbytes(100_000).replace(b"\x02", b"\x03").replace(b"AMQP", b"....")


def entries(harness: ConnectionHarness) -> int:
    """The evidence kept of both directions."""
    return max(len(side.evidence) for side in (harness.analysis.first, harness.analysis.second))


def octets(harness: ConnectionHarness) -> int:
    """The octets kept of both directions, by detection and by the decoder."""
    kept = 0
    for side in (harness.analysis.first, harness.analysis.second):
        kept += len(side.detection.held)
        # Each protocol's search holds its own.
        for decoder in (max(side.detection.probes, key=lambda one: one.kept, default=None), side.decoder):
            if decoder is not None:
                dumped = decoder.dump()
                kept += sum(len(value) for value in dumped if isinstance(value, bytes))
    return kept


def fill(
    harness: ConnectionHarness, direction: int, total: int, each: int, source: bytes = GARBAGE
) -> tuple[int, int]:
    """Sends `total` octets in segments of `each`; the most evidence and octets that were kept meanwhile."""
    most_entries = most_octets = 0
    sent = 0
    at = 0
    while sent < total:
        harness.segment(direction, source[at : at + each])
        sent += each
        at = (at + each) % (len(source) - each)
        most_entries = max(most_entries, entries(harness))
        if sent % (64 * each) < each:
            most_octets = max(most_octets, octets(harness))
    return most_entries, most_octets


def _unanswered(harness: ConnectionHarness) -> None:
    harness.send(0, b"nothing known begins like this")


def _lost(harness: ConnectionHarness) -> None:
    harness.send(0, AMQP_HEADER + OPEN)
    harness.send(1, AMQP_HEADER + OPEN)
    harness.skip(0, 100)


def _ciphertext(harness: ConnectionHarness) -> None:
    harness.send(0, TLS_HEADER)
    harness.send(1, TLS_HEADER)
    harness.send(0, CLIENT_HELLO)
    harness.send(1, SERVER_HELLO)


def _tls(harness: ConnectionHarness) -> None:
    harness.send(0, CLIENT_HELLO)
    harness.send(1, SERVER_HELLO)


def _tls_unanswered(harness: ConnectionHarness) -> None:
    harness.send(0, CLIENT_HELLO)


def _other_version(harness: ConnectionHarness) -> None:
    harness.send(0, b"AMQP\0\0\x09\1")


def _strangers(harness: ConnectionHarness) -> None:
    harness.send(0, b"nothing known begins like this")
    harness.send(1, b"nothing known begins like this")


def _huge_frame(harness: ConnectionHarness) -> None:
    harness.send(0, AMQP_HEADER + OPEN)
    harness.send(1, AMQP_HEADER + OPEN)
    harness.send(0, frame(amqp.transfer(handle=0, delivery_id=0), size=2**32 - 1))


def _huge_frame_with_a_hole(harness: ConnectionHarness) -> None:
    _huge_frame(harness)
    harness.skip(0, 10)


@pytest.mark.parametrize(
    "begin",
    [
        _unanswered,
        _lost,
        _ciphertext,
        _tls,
        _tls_unanswered,
        _other_version,
        _strangers,
        _huge_frame,
        _huge_frame_with_a_hole,
    ],
    ids=lambda one: one.__name__.strip("_"),
)
def test_little_is_kept_of_what_is_not_decoded(begin: Callable[[ConnectionHarness], None]) -> None:
    harness = ConnectionHarness()
    begin(harness)
    most_entries, most_octets = fill(harness, 0, 600_000, 300)
    assert most_entries <= RESYNC_WINDOW // 300 + 3
    if begin is _huge_frame:
        assert most_entries <= 4  # its octets are kept, up to a bound of the decoder's
    else:
        assert most_octets <= MAX_UNDECIDED + RESYNC_WINDOW
    # And in a direction that was captured from its middle.
    most_entries, most_octets = fill(harness, 1, 600_000, 300)
    assert most_entries <= RESYNC_WINDOW // 300 + 3


@pytest.mark.parametrize("begin", [_unanswered, _lost, _huge_frame_with_a_hole])
def test_nothing_but_holes(begin: Callable[[ConnectionHarness], None]) -> None:
    """A capture of the headers only: all octets are cut off by the snapshot length."""
    harness = ConnectionHarness()
    begin(harness)
    for _ in range(2000):
        harness.segment(0, b"", cut=1000)
        assert entries(harness) <= 4
    assert len(harness.notes) <= 5
    harness.finish()
    if begin is _lost:
        assert sum(int(one.frame.size) for one in harness.out if one.direction == 0) == harness.sent[0]


def test_a_search_that_must_wait_keeps_one_window() -> None:
    """Segments of one octet that look like the begin of an endless performative."""
    harness = ConnectionHarness(syn=False)
    harness.segment(0, b"")
    harness.segment(1, b"")
    almost = frame(amqp.raw("00 53 14 d0 00 00 ff ff 00 00 00 01"), size=1 << 20)
    harness.send(0, almost)
    most_entries, most_octets = fill(harness, 0, RESYNC_WINDOW + 20_000, 1, b"\x40" * 1000)
    assert most_entries <= RESYNC_WINDOW + 2
    assert most_octets <= RESYNC_WINDOW + 100
    assert entries(harness) <= 10  # given up


def test_the_search_gives_up() -> None:
    harness = ConnectionHarness(syn=False)
    harness.segment(0, b"")
    harness.segment(1, b"")
    fill(harness, 0, DETECT_OCTETS + 200_000, 50_000)
    assert (harness.analysis.first.detection.resting, harness.analysis.ignored) == (True, False)
    fill(harness, 1, DETECT_OCTETS + 200_000, 50_000)
    assert harness.analysis.ignored
    harness.send(0, AMQP_HEADER + OPEN)
    harness.finish()
    assert (harness.connection.protocol, harness.out) == ("unknown", [])


def test_a_direction_given_up_is_taken_up_when_the_other_is_amqp() -> None:
    harness = ConnectionHarness(syn=False)
    harness.segment(0, b"")
    harness.segment(1, b"")
    fill(harness, 0, DETECT_OCTETS + 200_000, 50_000)
    harness.send(1, CLOSE + CLOSE)
    harness.send(0, CLOSE + CLOSE)
    harness.finish()
    assert harness.names(0) == ["skipped", "close", "close"]
    assert int(harness.out[-1].frame.offset) == harness.sent[0] - 12
    assert harness.names(1) == ["close", "close"]


@pytest.mark.parametrize("kind", ["random", "header bytes", "performatives", "empty frames", "magic"])
@pytest.mark.parametrize("syn", [True, False])
def test_the_search_is_linear(kind: str, syn: bool) -> None:
    pattern = {
        "random": GARBAGE[:65_000],
        "header bytes": b"\0\0\0\x20\x02\x00" * 10_000,
        "performatives": b"\0\0\1\0\x02\0\0\0\0\x53\x14\xc0\xf0\x0b" * 5_000,
        "empty frames": b"\0\0\0\x08\x02\0\0\0\xff" * 7_000,
        "magic": b"AMQP\0\1\0" * 10_000,
    }[kind]

    def cost(size: int) -> float:
        best = 1e9
        for _ in range(3):
            harness = ConnectionHarness(syn=syn)
            if syn:
                harness.send(0, AMQP_HEADER + b"\xff" * 8)
            harness.segment(0, b"")
            harness.segment(1, b"")
            start = time.process_time()
            fill(harness, 0, size, 1448, pattern)
            best = min(best, time.process_time() - start)
        return best

    assert cost(240_000) < 9 * cost(60_000) + 0.02  # 4 times as long, or 16 times if it were quadratic


@pytest.mark.parametrize(
    "opening", [b"\0\0\x40\0\x02\0\0\0\0\x53\x10\xd0\0\0\xff\xff\0\0\0\x01\xb0\0\0\xff\xf0", b""]
)
def test_an_undecided_opening_is_linear(opening: bytes) -> None:
    """An opening that stays undecided as long as any may, in segments of a few octets."""
    harness = ConnectionHarness()
    harness.send(0, opening)
    start = time.process_time()
    fill(harness, 0, MAX_UNDECIDED, 8, b"\x40" * 1000)
    assert time.process_time() - start < 5
    assert harness.analysis.first.detection.protocol == "unknown"


def test_a_record_of_tls_is_no_evidence() -> None:
    harness = ConnectionHarness()
    _ciphertext(harness)
    for _ in range(500):
        harness.send(0, record(0x17, b"x" * 100))
    assert entries(harness) <= 3
