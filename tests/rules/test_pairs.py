"""Every rule's dialogues: the wrong one gives its findings, the clean one none, the cut one as promised."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from scenarios.pairs import POSSIBLE, SAME, Scenario, scenarios
from support.conversation import Conversation
from support.sampling import share

import amqpscope
from amqpscope.model.finding import Finding

Verdict = tuple[str, str, int, bool]

HEADERS = 14 + 20 + 20  # Ethernet, IPv4, TCP

SHARE = 9
"""One in so many ways to miss something is tried of a dialogue in every run."""

SCENARIOS = scenarios()
PAIRS = [s for s in SCENARIOS if s.kind == "pair"]
# Of the dialogues that are played again in a dialect, which the same functions judge, a share.
DAMAGED = [s for s in SCENARIOS if not s.retold] + list(share([s for s in SCENARIOS if s.retold], 8, "again"))


def check(d: Conversation) -> list[Finding]:
    return list(amqpscope.check(io.BytesIO(d.pcap()), spec=d.spec))


def without_namespace(d: Conversation, finding: Finding) -> str:
    return finding.rule.removeprefix(f"{d.namespace}/")


def verdicts(d: Conversation) -> list[Verdict]:
    return sorted((without_namespace(d, f), f.peer, int(f.packet), f.certain) for f in check(d))


def announced(d: Conversation) -> list[Verdict]:
    return sorted((fault.rule, fault.peer, d.packet_number(fault.said), fault.certain) for fault in d.faults)


def named(scenario: Scenario) -> str:
    return f"{scenario.namespace}-{scenario.name}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_dialogue_gives_exactly_its_findings(scenario: Scenario) -> None:
    d = scenario.dialogue()
    assert verdicts(d) == announced(d)
    if scenario.kind == "pair":
        assert {fault.rule for fault in d.faults} == set(scenario.rules)
    elif scenario.kind == "legal":
        assert not d.faults


@pytest.mark.parametrize("scenario", PAIRS, ids=named)
def test_the_clean_twin_gives_none(scenario: Scenario) -> None:
    assert verdicts(scenario.dialogue(wrong=False)) == []


@pytest.mark.parametrize("scenario", PAIRS, ids=named)
def test_the_cut_one_keeps_the_promise(scenario: Scenario) -> None:
    d = scenario.dialogue()
    assert scenario.cut is not None
    scenario.cut(d)
    left = [verdict for verdict in verdicts(d) if verdict[0] in scenario.rules]
    expected = announced(d) if scenario.then in (SAME, POSSIBLE) else []
    if scenario.then == POSSIBLE:
        expected = [(rule, peer, packet, False) for rule, peer, packet, _ in expected]
    assert left == expected


def accusations(d: Conversation) -> set[tuple[str, str, int]]:
    """What is certain, with the packet as the object it is, so that cuts can be compared."""
    packets = d.capture.packets
    return {
        (without_namespace(d, f), f.peer, id(packets[f.packet - 1]) if f.packet else 0)
        for f in check(d)
        if f.certain
    }


@pytest.mark.parametrize("scenario", DAMAGED, ids=named)
def test_nothing_that_is_missing_accuses_anybody(scenario: Scenario) -> None:
    """Whichever packet the tap missed, wherever the capture begins or ends, whichever direction it lacks."""
    for wrong in (True, False) if scenario.kind == "pair" else (True,):
        d = scenario.dialogue(wrong)
        whole = d.capture.packets[:]
        known = {(f.rule, f.peer, id(f.said.packet)) for f in d.faults if f.certain}
        cuts = [(f"without packet {n + 1}", [*whole[:n], *whole[n + 1 :]]) for n in range(len(whole))]
        if wrong:
            cuts += [(f"from packet {n + 1}", whole[n:]) for n in range(1, len(whole))]
            cuts += [(f"up to packet {n}", whole[:n]) for n in range(1, len(whole))]
        for peer in (d.client, d.server):
            cuts.append((f"only the {peer.name}'s", [p for p in whole if p.sender is peer.end]))
        for what, packets in share(cuts, SHARE, f"{named(scenario)} {wrong}"):
            d.capture.packets = packets
            unknown = accusations(d) - known
            assert not unknown, (what, wrong, [rule for rule, _, _ in unknown])


@pytest.mark.parametrize("scenario", DAMAGED, ids=named)
def test_nothing_that_is_cut_off_accuses_anybody(scenario: Scenario) -> None:
    """Whichever packet lost the second half of its octets to the snapshot length.

    Of the fault's own packet something else may be reported instead, or of what that peer says next about it.
    """
    d = scenario.dialogue()
    known = {(f.rule, f.peer, id(f.said.packet)) for f in d.faults if f.certain}
    for packet in share(d.capture.packets, SHARE, named(scenario)):
        octets = packet.data
        packet.data = octets[: HEADERS + (len(octets) - HEADERS) // 2]
        guilty = {f.peer for f in d.faults if f.said.packet is packet}
        unknown = {one for one in accusations(d) - known if one[1] not in guilty}
        assert not unknown, (d.capture.number(packet), [rule for rule, _, _ in unknown])
        packet.data = octets


@pytest.mark.parametrize("scenario", DAMAGED, ids=named)
def test_where_it_was_captured_changes_nothing(scenario: Scenario) -> None:
    """One direction seen later, as at the other end of a long way: the same findings in the same frames."""
    d = scenario.dialogue()
    if any(fault.rule.startswith(("C-IDLE-", "C-HB-")) for fault in d.faults):
        return  # rests on the time
    if any(after.time < before.time for before, after in pairwise(d.capture.packets)):
        return  # the clock was set back: so does this
    expected = sorted((f.rule, f.peer, id(f.said.packet), f.certain) for f in d.faults)
    late = [(end, milliseconds) for end in (d.client.end, d.server.end) for milliseconds in (3.5, 2000.0)]
    for end, milliseconds in share(late, 2, named(scenario)):
        d.capture.delay(end, milliseconds=milliseconds)
        packets = d.capture.packets
        got = sorted(
            (without_namespace(d, f), f.peer, id(packets[f.packet - 1]), f.certain) for f in check(d)
        )
        assert got == expected, (end.is_client, milliseconds)
        d.capture.delay(end, milliseconds=-milliseconds)
