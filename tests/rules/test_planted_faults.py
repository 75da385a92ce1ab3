"""One fault in a legal conversation, where no doubt is possible: exactly that rule, packet and peer."""

from __future__ import annotations

from typing import Any

import pytest
from support.judged import judged
from support.legal import NAMES
from support.network import Tap, captured
from support.planting import Planted
from support.protocols import PROTOCOLS
from support.thorough import thorough

from amqpscope.rules.catalogue import severity
from amqpscope.rules.registry import checked

PLANTED = 1  # of each fault
TRIES = 36

# The same fault by the name of the mistake that explains it.
BROADER = {
    "amqp10/S-WIN-FORMULA": "amqp10/S-WIN-IN",
    "amqp10/S-WIN-FORMULA-INIT": "amqp10/S-WIN-IN",
    "amqp10/S-WIN-DECR": "amqp10/S-WIN-IN",
    "amqp10/S-BEGIN-LOCALNULL": "amqp10/S-BEGIN-REMOTEVALID",
    "amqp10/L-CREDIT-NODC": "amqp10/L-CREDIT",
    "amqp10/L-DC-UNIT": "amqp10/L-DC-SENDER",
}

# What is recommended, and what the peers of `support.legal` do not always keep to.
PREFERENCES = ("amqp10/L-HANDLE-LOWEST", "amqp10/L-HANDLE-REUSE", "amqp10/S-CH-LOWEST")


def planted(protocol: str, name: str) -> list[Planted]:
    many = thorough()
    wanted = 100 if many else PLANTED
    found: list[Planted] = []
    for n in range(TRIES * wanted // PLANTED):
        one = PROTOCOLS[protocol].plant(name, str(n))
        if one is not None:
            found.append(one)
            if len(found) == wanted:
                break
    return found


def faults() -> list[Any]:
    """Every fault of every protocol whose rule is checked."""
    there = checked()
    return [
        pytest.param(
            protocol,
            name,
            marks=[] if f"{protocol}/{rule}" in there else pytest.mark.skip("its rule is not checked yet"),
        )
        for protocol, one in PROTOCOLS.items()
        for name, (rule, _) in one.faults.items()
    ]


@pytest.mark.parametrize(("protocol", "name"), faults())
def test_a_planted_fault_is_found_and_nothing_else(protocol: str, name: str) -> None:
    found = planted(protocol, name)
    assert len(found) >= PLANTED, f"only {len(found)} occasions"
    for one in found:
        capture = captured(one.conversation, Tap())
        packet = next(
            number
            for number, at in enumerate(capture.segments, 1)
            for segment in [one.conversation.segments[at]]
            if segment.side == one.said.side
            and segment.start <= one.said.start < segment.start + len(segment.octets)
        )
        while_read, at_end = judged(capture.octets)
        expected = (one.rule, True, NAMES[one.said.side], packet)
        own = [
            f
            for f in while_read
            if f.offset == one.said.start and f.peer == NAMES[one.said.side] and f.rule not in PREFERENCES
        ]
        found_there = [
            (BROADER.get(f.rule, f.rule).removeprefix(f"{protocol}/"), f.certain, f.peer, f.packet)
            for f in own
            if severity(f.rule) != "note" or f.rule == f"{protocol}/{one.rule}"
        ]
        assert found_there == [expected], one.conversation.seed
        others = [
            finding
            for finding in while_read + at_end
            if finding not in own and finding.certain and severity(finding.rule) == "error"
        ]
        assert not others, (one.conversation.seed, others)
