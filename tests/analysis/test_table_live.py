"""A capture that goes on while it is looked at: findings at once, and what time alone brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.reader import for_magic
from amqpscope.input.capture import check
from amqpscope.limits import LIVE_ENDED, LIVE_NEVER_SPOKE, LIVE_SILENT
from amqpscope.model.finding import Finding
from amqpscope.rules.editions import FINAL, following

CAPTURES = Path(__file__).parents[2] / "captures"
RULES = CAPTURES / "rules"
SECOND = 1_000_000_000


def live(content: bytes) -> ConnectionTable:
    """A table that has seen these packets and waits for more."""
    table = ConnectionTable("x", AnalysisOutput(judge=True, live=True), KeptConnections(False))
    table.kept.ended = True
    reader = for_magic(content, table)
    assert reader is not None
    reader.feed(content)
    return table


def first_packets(path: Path, count: int) -> bytes:
    """The start of a little-endian pcap file, with so many packets."""
    content = path.read_bytes()
    at = 24
    for _ in range(count):
        at += 16 + int.from_bytes(content[at + 8 : at + 12], "little")
    return content[:at]


def marks(findings: list[Finding]) -> list[tuple[str, str, int, bool]]:
    return sorted((one.rule, one.peer, int(one.packet), one.certain) for one in findings)


def test_each_finding_is_given_once_at_once_or_when_the_connection_is_over() -> None:
    reported = 0
    for path in sorted(RULES.glob("*/*/violating.pcap")):
        table = live(path.read_bytes())
        at_once = table.output.take_fresh()
        reported += len(at_once)
        assert all(finding.reported for finding in at_once), path
        table.finish()
        complete = following(table.output.take_findings(), FINAL)
        at_once = following(at_once, FINAL)
        assert set(map(id, at_once)) == {id(one) for one in complete if one.reported}, path
        assert marks(complete) == marks(list(check(path))), path
        assert table.output.take_fresh() == [], path
    assert reported > 300


def test_a_finding_is_reported_before_the_peer_has_reacted() -> None:
    path = RULES / "amqp10" / "L-CREDIT" / "violating.pcap"
    (whole,) = [one for one in check(path) if one.rule == "amqp10/L-CREDIT"]
    table = live(first_packets(path, whole.packet))
    (found,) = table.output.take_fresh()
    assert (found.rule, found.packet, found.reaction.frame) == ("amqp10/L-CREDIT", whole.packet, "")
    assert table.output.take_findings() == []


def test_what_is_not_live_is_reported_when_it_is_complete() -> None:
    content = (RULES / "amqp10" / "L-CREDIT" / "violating.pcap").read_bytes()
    table = ConnectionTable("x", AnalysisOutput(judge=True), KeptConnections(False))
    reader = for_magic(content, table)
    assert reader is not None
    reader.feed(content)
    assert table.output.take_fresh() == []


@pytest.mark.parametrize(
    ("rule", "agreed"), [("amqp10/C-IDLE-KEEP", None), ("amqp091/C-HB-SEND", SECOND)], ids=["1.0", "0-9-1"]
)
def test_a_silence_is_reported_while_it_lasts(rule: str, agreed: int | None) -> None:
    """Before the frame that ends it; and not as long as it may last."""
    path = RULES / rule / "violating.pcap"
    (finding,) = [one for one in check(path) if one.rule == rule]
    table = live(first_packets(path, finding.packet - 1))
    assert table.output.take_fresh() == []
    ends = int(finding.time)
    (overdue,) = table.tick(ends)
    assert (overdue.rule, overdue.peer) == (rule, finding.peer)
    assert overdue.connection.id == finding.connection.id
    assert ends - overdue.since == pytest.approx(finding.evidence["silence_ms"] * 1_000_000, abs=1_000_000)
    if agreed is not None:
        assert overdue.agreed == agreed
    allowed = overdue.agreed + max(overdue.agreed // 10, 100_000_000)
    assert table.tick(overdue.since + allowed) == []
    assert [one.peer for one in table.tick(overdue.since + allowed + 1)] == [finding.peer]


@pytest.mark.parametrize("rule", ["amqp10/C-IDLE-KEEP", "amqp091/C-HB-SEND"])
def test_who_has_closed_is_not_overdue(rule: str) -> None:
    path = RULES / rule / "violating.pcap"
    table = live(path.read_bytes())
    (finding,) = [one for one in check(path) if one.rule == rule]
    assert table.tick(int(finding.time) + 50 * SECOND) == []


def test_dead_connections_are_given_up_each_in_its_time() -> None:
    path = RULES / "amqp091" / "C-HB-SEND" / "violating.pcap"
    content = path.read_bytes()
    time = max(int(record.last_time) for record in _records(content))
    for packets, patience in ((1, LIVE_NEVER_SPOKE), (12, LIVE_SILENT)):
        table = live(first_packets(path, packets))
        (analysis,) = table.open_connections()
        last = int(analysis.tcp.last_time())
        table.tick(last + patience)
        assert (len(table.open_connections()), table.kept.take_ended()) == (1, [])
        table.tick(last + patience + 1)
        assert table.open_connections() == []
        assert table.kept.take_ended() == [analysis]
    table = live(content)
    (analysis,) = table.open_connections()
    last = int(analysis.tcp.last_time())
    assert last >= time
    assert table.output.take_findings() != []  # it has ended, and is only remembered
    table.tick(last + LIVE_ENDED)
    assert len(table.open_connections()) == 1
    table.tick(last + LIVE_ENDED + 1)
    assert table.open_connections() == []


def test_what_was_lost_may_be_another_connection() -> None:
    """What others may have done is then never certain, or not judged."""
    for rule, left in (("Q-EXCL-ACCESS", []), ("Q-DECL-EQUIV-CLIENT", [False]), ("B-ORDER", [])):
        content = (RULES / "amqp091" / rule / "violating.pcap").read_bytes()
        certainties = []
        for lost in (False, True):
            table = live(content)
            if lost:
                table.dropped(1, 1, 1)
            table.finish()
            found = [one for one in table.output.take_findings() if one.rule == f"amqp091/{rule}"]
            certainties.append([one.certain for one in found])
        assert len(certainties[0]) == 1, rule
        assert certainties[1] == left, rule


def _records(content: bytes) -> list:
    table = live(content)
    table.finish()
    return table.output.take_records()
