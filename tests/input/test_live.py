"""A watch: what comes with each step, and what time and losses bring."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.fake_source import FakeSource, PacketGroup, packets_of

from amqpscope.capture.live.source import LiveSource
from amqpscope.input.capture import check, read
from amqpscope.input.diagnosing import diagnose
from amqpscope.input.live import Batch, LiveWatch
from amqpscope.model.diagnosis import Diagnosis

RULES = Path(__file__).parents[2] / "captures" / "rules"
BROKEN = RULES / "amqp10" / "L-CREDIT" / "violating.pcap"
SILENT = RULES / "amqp091" / "C-HB-SEND" / "violating.pcap"
SECOND = 1_000_000_000


def steps(source: LiveSource) -> list[Batch]:
    """All that a source brings, to its end."""
    with LiveWatch(source) as watch:
        batches = []
        while not watch.over:
            batches.append(watch.step(1.0))
    return batches


def lots_of(path: Path, size: int) -> list[PacketGroup]:
    packets = packets_of(path.read_bytes())
    return [PacketGroup(packets[at : at + size]) for at in range(0, len(packets), size)]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_frames_and_findings_do_not_depend_on_the_lots(size: int) -> None:
    batches = steps(FakeSource(lots_of(BROKEN, size)))
    frames = [(int(one.packet), one.frame.name) for batch in batches for one in batch.records]
    assert frames == [(int(one.packet), one.frame.name) for one in read(BROKEN)]
    expected = [(one.rule, one.packet, one.reaction.frame) for one in check(BROKEN)]
    found = [one for batch in batches for one in batch.found]
    complete = [one for batch in batches for one in batch.complete]
    assert [(one.rule, one.packet, one.reaction.frame) for one in complete] == expected
    assert {id(one) for one in found} == {id(one) for one in complete}
    amended = [one for batch in batches for one in batch.amended]
    assert [one.rule for one in amended] == [
        one.rule for one in complete if one.reported and one.reaction.frame
    ]
    assert len(complete) >= 1
    assert sum(batch.packets for batch in batches) == len(packets_of(BROKEN.read_bytes()))


def test_a_loss_is_noted_where_it_is_and_counted_once() -> None:
    groups = lots_of(BROKEN, 4)
    groups[2].lost = 7
    groups[3].lost = 2
    batches = steps(FakeSource(groups))
    assert [batch.dropped for batch in batches][:5] == [0, 0, 7, 2, 0]
    notes = [note for batch in batches for note in batch.notes if note.code == "capture/dropped"]
    assert [note.detail for note in notes] == [
        "packets lost before this packet, as the capture reports: 7",
        "packets lost before this packet, as the capture reports: 2",
    ]


def test_the_losses_of_a_second_are_one_note(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000 * SECOND]
    monkeypatch.setattr("amqpscope.input.live.time.monotonic_ns", lambda: clock[0])
    groups = [PacketGroup(packets_of(BROKEN.read_bytes())[:1])]
    groups += [PacketGroup(lost=1) for _ in range(1000)]
    watch = LiveWatch(FakeSource(groups))
    notes = []
    while not watch.over:
        clock[0] += SECOND // 100
        notes += watch.step(0).notes
    reported = [int(note.detail.rpartition(" ")[2]) for note in notes if note.code == "capture/dropped"]
    assert sum(reported) == watch.dropped == 1000
    assert 9 <= len(reported) <= 12
    watch.close()


def test_a_silence_is_reported_once_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = [one for one in check(SILENT) if one.rule == "amqp091/C-HB-SEND"]
    packets = packets_of(SILENT.read_bytes())
    before = [PacketGroup([packet]) for packet in packets[: finding.packet - 1]]
    after = [PacketGroup([packet]) for packet in packets[finding.packet - 1 :]]
    clock = [1000 * SECOND]
    monkeypatch.setattr("amqpscope.input.live.time.monotonic_ns", lambda: clock[0])
    watch = LiveWatch(FakeSource([*before, *[PacketGroup()] * 5, *after]))
    reported = []
    for _ in before:
        reported += watch.step(0).overdue
    for _ in range(5):
        clock[0] += 2 * SECOND
        reported += watch.step(0).overdue
    assert [(one.rule, one.peer) for one in reported] == [("amqp091/C-HB-SEND", finding.peer)]
    found = []
    while not watch.over:
        found += watch.step(0).found
    assert "amqp091/C-HB-SEND" in {one.rule for one in found}
    watch.close()


def test_what_happens_to_interfaces_is_passed_on() -> None:
    batches = steps(
        FakeSource([PacketGroup(events=["west is down"]), PacketGroup(), PacketGroup(events=["west is up"])])
    )
    assert [event for batch in batches for event in batch.events] == ["west is down", "west is up"]


def test_the_end_completes_what_is_open() -> None:
    packets = packets_of(BROKEN.read_bytes())
    whole = next(one for one in check(BROKEN))
    watch = LiveWatch(FakeSource([PacketGroup(packets[: whole.packet])], ends=False))
    first = watch.step(0)
    assert ([one.rule for one in first.found], first.complete) == ([whole.rule], [])
    assert not watch.over
    last = watch.finish()
    assert watch.over
    assert whole.rule in [one.rule for one in last.complete]
    assert whole.rule not in [one.rule for one in last.found]
    again = watch.finish()
    assert (again.records, again.found, again.complete) == ([], [], [])
    watch.close()


def waited(path: Path) -> list[list[Diagnosis]]:
    """The diagnoses that each step brings."""
    groups = [PacketGroup([packet]) for packet in packets_of(path.read_bytes())]
    with LiveWatch(FakeSource(groups), limits={}) as watch:
        brought = []
        while not watch.over:
            brought.append(watch.step(0).diagnosed)
        brought.append(watch.finish().diagnosed)
    return brought


SITUATIONS = ("credit-starved", "heartbeat-late", "threads-share-channel", "wrong-port-tls-client")


@pytest.mark.parametrize("name", SITUATIONS)
def test_live_diagnoses_are_those_of_the_file(name: str) -> None:
    path = RULES.parent / "situations" / f"{name}.pcap"
    live = [one.json() for found in waited(path) for one in found]
    assert live == [one.json() for one in diagnose(path)]
    assert live


def test_a_wait_is_diagnosed_when_it_is_over(tmp_path: Path) -> None:
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    for _ in range(2):
        d.wait(seconds=15)
        d.client.empty()
    flow = d.packet_number(d.client.flow(handle=0, link_credit=1))
    for _ in range(3):
        d.wait(seconds=2)
        d.client.empty()
    path = tmp_path / "dialogue.pcap"
    path.write_bytes(d.pcap())
    brought = waited(path)
    (at,) = [number for number, found in enumerate(brought, 1) if found]
    assert [one.code for one in brought[at - 1]] == ["diag/credit-none"]
    assert flow <= at < len(brought) - 1


LASTING = ("acks-missing", "credit-starved", "prefetch-full", "unanswered", "unsettled-pile", "window-closed")


@pytest.mark.parametrize("name", LASTING)
def test_a_wait_is_diagnosed_once_while_it_lasts(name: str) -> None:
    """The diagnoses at the end are the same as without that. Packets come a second apart here."""
    path = RULES / "diag" / name / "troubled.pcap"
    brought = []
    packets = packets_of(path.read_bytes())
    with LiveWatch(FakeSource([PacketGroup([packet]) for packet in packets]), limits={}) as watch:
        while not watch.over:
            brought.append(watch.step(0))
        brought.append(watch.finish())
    lasting = [_wait(one) for batch in brought for one in batch.lasting]
    whole = [_wait(one) for one in diagnose(path)]
    assert lasting == whole
    assert [code for code, *_ in whole] == [f"diag/{name}"]
    at = next(number for number, batch in enumerate(brought) if batch.lasting)
    assert at < len(brought) - 3
    assert [_wait(one) for batch in brought for one in batch.diagnosed] == whole
    assert not watch.lasting


def _wait(one: Diagnosis) -> tuple[object, ...]:
    """A diagnosis without its times."""
    return one.code, one.subject, one.whose_move, one.packet, one.ended_packet, one.packets


def test_without_limits_nothing_is_diagnosed() -> None:
    path = RULES.parent / "situations" / "credit-starved.pcap"
    assert [one for batch in steps(FakeSource(lots_of(path, 5))) for one in batch.diagnosed] == []
