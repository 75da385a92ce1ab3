"""One fault in a legal conversation, where no doubt is possible: exactly that rule, packet and peer.

Nothing else is ever certain. That the fault itself is, holds on every occasion that a run tries, and on most
where everything is tried: among hundreds some turn out to be doubtful, or no fault at all, by something that
the planter does not look at.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.judged import judged
from support.legal import NAMES
from support.network import Tap, captured
from support.planting import Planted
from support.protocols import PROTOCOLS
from support.sampling import thorough

from amqpscope.rules.catalogue import severity
from amqpscope.rules.registry import checked

PLANTED = 1  # of each fault
TRIES = 36

# The same fault by the name of the mistake that explains it.
BROADER = {
    "S-WIN-FORMULA": "S-WIN-IN",
    "S-WIN-FORMULA-INIT": "S-WIN-IN",
    "S-WIN-DECR": "S-WIN-IN",
    "S-BEGIN-LOCALNULL": "S-BEGIN-REMOTEVALID",
    "L-CREDIT-NODC": "L-CREDIT",
    "L-DC-UNIT": "L-DC-SENDER",
}

# What such a frame breaks, too, or instead, where it comes upon a link of this kind.
TOO = {
    "settled_on_unsettled_link": "TX-DECLARE-UNSETTLED",
    "oversized_frame": "TX-CTRL-NOWORK",
    "delivery_id_backwards": "D-ID-UNIQUE",
    "outcome_that_does_not_name_its_transaction": "TX-ACQ-OUTCOME",
    "sender_drains_itself": "L-CREDIT-FORMULA",
    "sender_tells_of_less_credit": "L-CREDIT-DECR",
}

# Certain where the server is known for what it does then, which these are not; or where the peer waits for
# the begin that limits its handles, which not all of these do.
UNCERTAIN = ("B-ACK-MULTIPLE", "B-CTAG-UNIQUE", "TX-PENDING-COMMIT", "S-HANDLEMAX")

DOUBTFUL = 10
"""One occasion in so many may be."""

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


def _short(rule: str) -> str:
    """The name of the mistake, without its protocol's."""
    name = rule.partition("/")[2]
    return BROADER.get(name, name)


LATE = {"close_before_open", "open_without_container_id"}
"""Faults of peers whose frames fit the draft of April 2011, too: their end shows the dialect."""

DRAFT = "amqp10-draft2011"
"""In some conversations only a later frame, or the end, shows the dialect."""


@pytest.mark.parametrize(("protocol", "name"), faults())
def test_a_planted_fault_is_found_and_nothing_else(protocol: str, name: str) -> None:
    found = planted(protocol, name)
    assert len(found) >= PLANTED, f"only {len(found)} occasions"
    missed = []
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
        its = {one.rule, TOO.get(name, one.rule)}
        own = [
            f
            for f in (while_read + at_end if name in LATE or protocol == DRAFT else while_read)
            if f.offset == one.said.start and f.peer == NAMES[one.said.side] and f.rule not in PREFERENCES
        ]
        found_there = [
            (_short(f.rule), f.certain, f.peer, f.packet)
            for f in own
            if severity(f.rule) != "note" or f.rule == f"{protocol}/{one.rule}"
        ]
        if not any(
            rule in its and (certain or rule in UNCERTAIN) and at == [NAMES[one.said.side], packet]
            for rule, certain, *at in found_there
        ):
            missed.append((one.conversation.seed, found_there))
        others = [
            finding
            for finding in while_read + at_end
            if finding.certain
            and severity(finding.rule) == "error"
            and not (finding in own and _short(finding.rule) in its)
        ]
        assert not others, (one.conversation.seed, others)
    assert len(missed) <= len(found) // DOUBTFUL, missed
