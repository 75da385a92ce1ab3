"""Work grows as what there is: six times of one thing takes about six times as many lines of the program.

Lines that are run are counted, not time, so that the same is counted each time. A loop over all there is for
each new one shows in them early, if it is written in Python. `make growth` measures time, compiled, with much
more of each thing and for all commands.
"""

from __future__ import annotations

import io
import sys
from types import FrameType
from typing import Any

import pytest
from bench.growth import SCENES, channels091

import amqpscope
from amqpscope.capture.words import INTERPRETED
from amqpscope.diagnoses.capture import CaptureDiagnoses

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled lines are not traced")

TIMES = 6
MOST = 7

# How many the smaller capture has. Where up to 64 operations or 256 sessions are looked through for each new
# one, more than that; of connections, which take much each, few.
SOME = {
    "ended10": 120,
    "consumers091": 100,
    "queues091": 120,
    "one_queue091": 160,
    "sessions10": 300,
    "connections091": 8,
    "connections10": 20,
}


class Lines:
    """How many lines were run: of all, and of the diagnoses."""

    def __init__(self) -> None:
        self.all = 0
        self.diagnoses = 0


def lines(octets: bytes) -> Lines:
    """How many lines a check of a capture runs, with its diagnoses."""
    count = Lines()

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        count.all += 1
        return of_diagnoses if "diagnoses" in frame.f_code.co_filename else tracer

    def of_diagnoses(frame: FrameType, event: str, argument: Any) -> Any:
        count.all += 1
        count.diagnoses += 1
        return of_diagnoses

    options = amqpscope.CaptureOptions(keep=False, ended=True, records=False, judge=True)
    diagnoses = CaptureDiagnoses({})
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with amqpscope.Capture(io.BytesIO(octets), options) as capture:
            capture.watch(diagnoses)
            for _ in capture.blocks():
                diagnoses.judge(capture.take_findings())
                for analysis in capture.take_ended():
                    diagnoses.end(analysis)
    finally:
        sys.settrace(before)
    return count


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """What is loaded at the first use does not count."""
    for scene, _ in SCENES.values():
        lines(scene(2).capture.pcap())


@pytest.mark.parametrize("name", SCENES)
def test_work_grows_as_what_there_is(name: str) -> None:
    scene, _ = SCENES[name]
    some = SOME.get(name, 60)
    one, few, many = (lines(scene(number).capture.pcap()) for number in (1, 1 + some, 1 + TIMES * some))
    for which in ("all", "diagnoses"):
        less, more = (getattr(lines, which) - getattr(one, which) for lines in (few, many))
        assert more <= MOST * less, f"{which}: {more} lines for {TIMES} times what takes {less}"


def test_a_loop_over_all_for_each_new_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above is for: it fails if there is such a loop."""
    from amqpscope.tracking.amqp091 import channel

    began: list[object] = []
    original = channel.Channel.__init__

    def slow(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        began.append(self)
        for _ in began * 4:
            pass

    monkeypatch.setattr(channel.Channel, "__init__", slow)
    one, few, many = (lines(channels091(number).capture.pcap()) for number in (1, 101, 601))
    assert many.all - one.all > MOST * (few.all - one.all)
