"""One run of `sniff`: what ends it, and what is taken before it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.fake_source import FakeSource, PacketGroup, packets_of

from amqpscope.cli.live_session import LiveSession, Stop
from amqpscope.cli.live_view import LiveView
from amqpscope.cli.recording import LiveRecording
from amqpscope.input.live import Batch, LiveWatch
from amqpscope.policy import Given, Policy
from amqpscope.report.rule_counts import RuleCounts

BROKEN = Path(__file__).parents[2] / "captures" / "rules" / "amqp10" / "L-CREDIT" / "violating.pcap"


class Seen(LiveView):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self.conclusion = ""
        self.left = -1

    @property
    def gone(self) -> bool:
        return len(self.batches) == self.left

    def write(self, batch: Batch, behind: bool) -> None:
        self.batches.append(batch)

    def end(self, conclusion: str, counts: RuleCounts) -> None:
        self.conclusion = conclusion


def groups() -> list[PacketGroup]:
    return [PacketGroup([packet]) for packet in packets_of(BROKEN.read_bytes())]


def session(
    source: FakeSource,
    *,
    seen: Seen | None = None,
    rules: frozenset[str] = frozenset(),
    packets: int = 0,
    duration: int = 0,
    allow_empty: bool = False,
    given: Given | None = None,
) -> tuple[LiveSession, Seen]:
    seen = seen or Seen()
    given = given or Given()
    stop = Stop(duration, packets, rules, False)
    given.allow_empty = allow_empty
    return LiveSession(LiveWatch(source), seen, None, stop, Policy(None, given)), seen


def test_packets_that_the_recording_has_no_place_for_are_reported(tmp_path: Path) -> None:
    recording = LiveRecording(str(tmp_path / "recorded.pcapng"), FakeSource([]), "", None, 0)
    reported: list[str] = []
    recording.tell = reported.append
    recording.recorder.unrecorded = 2
    recording.finish(0)
    assert reported == ["2 packets not recorded: a file cannot describe so many interfaces"]


def test_the_end_of_a_pipe_ends_it() -> None:
    run, seen = session(FakeSource(groups()))
    run.run()
    assert run.status() == 1
    assert seen.conclusion.startswith("made up: 1 error")


def test_what_is_ignored_is_not_shown_and_does_not_count() -> None:
    given = Given()
    given.ignore = ["L-CREDIT"]
    run, seen = session(FakeSource(groups()), given=given)
    run.run()
    assert run.status() == 0
    assert seen.conclusion.startswith("made up: nothing wrong found in ")
    assert seen.conclusion.endswith("; 1 finding ignored")
    assert not any(batch.found or batch.complete or batch.amended for batch in seen.batches)


def test_what_is_waited_for_ends_it_also_if_it_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.cli.live_session._AFTER", 0)
    monkeypatch.setattr("amqpscope.cli.live_session._LOT", 0)
    given = Given()
    given.ignore = ["all"]
    source = FakeSource(groups() + [PacketGroup()] * 1000)
    run, seen = session(source, rules=frozenset({"amqp10/L-CREDIT"}), given=given)
    run.run()
    assert len(seen.batches) < 100


def test_packets_that_came_before_it_was_ended_are_taken_and_what_was_lost_behind_them() -> None:
    """The kernel hands them over later, and counts what it had no room for later still."""
    source = FakeSource([*groups(), PacketGroup(lost=5)], ends=False)
    run, seen = session(source, packets=3)
    run.run()
    assert source.groups == []
    assert ", 5 more were lost by this machine" in seen.conclusion
    assert sum(batch.packets for batch in seen.batches) == len(groups())


def test_what_does_not_cease_to_come_is_not_waited_for() -> None:
    """Packets of the present: those are behind the end."""
    now = 4_000_000_000 * 1_000_000_000
    source = FakeSource(
        [PacketGroup([(now, packet)]) for _, packet in packets_of(BROKEN.read_bytes())], ends=False
    )
    run, _ = session(source, packets=3)
    run.run()
    assert len(source.groups) == len(groups()) - 3


def test_a_finding_that_was_waited_for_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.cli.live_session._AFTER", 0)
    monkeypatch.setattr("amqpscope.cli.live_session._LOT", 0)
    source = FakeSource(groups() + [PacketGroup()] * 1000, ends=False)
    run, seen = session(source, rules=frozenset({"amqp10/L-CREDIT"}))
    run.run()
    assert run.status() == 1
    assert len(seen.batches) < 100


def test_time_ends_it() -> None:
    run, seen = session(FakeSource([], ends=False), duration=1)
    run.run()
    assert run.status() == 3
    assert "0 packets" in seen.conclusion


def test_nothing_to_see_may_be_allowed() -> None:
    run, _ = session(FakeSource([], ends=False), duration=1, allow_empty=True)
    run.run()
    assert run.status() == 0


def test_who_looks_on_may_end_it() -> None:
    seen = Seen()
    seen.left = 2
    run, _ = session(FakeSource(groups(), ends=False), seen=seen)
    run.run()
    assert seen.conclusion != ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_and_are_given_back(number: signal.Signals, status: int) -> None:
    before = signal.getsignal(number)

    class Struck(Seen):
        def write(self, batch: Batch, behind: bool) -> None:
            if not self.batches:
                os.kill(os.getpid(), number)
            super().write(batch, behind)

    run, seen = session(FakeSource(groups(), ends=False), seen=Struck())
    run.run()
    assert run.status() == status
    assert "1 error" in seen.conclusion
    assert signal.getsignal(number) is before
