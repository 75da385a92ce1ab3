"""A capture that was stopped earlier has the same findings up to there.

What is absent is another matter: that it does not come any more only the end tells, and the end of a file
that was cut short tells less. What other octets were waited for is given out at the end too; nothing of that
may accuse a peer that the whole capture does not accuse.
"""

from __future__ import annotations

import random
import struct

import pytest
from support.judged import judged
from support.network import Tap, captured, converse
from support.protocols import PROTOCOLS, so_many
from support.sampling import examples, thorough

from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import severity
from amqpscope.rules.registry import checked

CONVERSATIONS = 40
CUTS = 6


def conversations(protocol: str) -> int:
    return 2000 if thorough() else so_many(protocol, CONVERSATIONS)


def cut(octets: bytes, packets: int) -> bytes:
    """The first packets of a pcap file."""
    at = 24
    for _ in range(packets):
        at += 16 + struct.unpack_from("<I", octets, at + 8)[0]
    return octets[:at]


def named(finding: Finding) -> tuple[object, ...]:
    return (
        finding.rule,
        # A frame that the end of the capture cuts may be garbled: what rests on its octets is in doubt then.
        finding.certain or "garbled_in_doubt" in finding.evidence,
        finding.peer,
        finding.packet,
        finding.offset,
        finding.message,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_findings_of_a_prefix_are_a_prefix_of_the_findings(protocol: str) -> None:
    chance = random.Random("cuts")
    mischief = PROTOCOLS[protocol].mischief
    compared = 0
    for n in range(conversations(protocol)):
        conversation = converse(f"prefix {n}", protocol=protocol, mischief=mischief if n % 2 else None)
        delays = (chance.choice([0, 0, 20_000_000]), chance.choice([0, 0, 20_000_000]))
        capture = captured(conversation, Tap(delays=delays, repeat=chance.choice([0.0, 0.1])))
        while_read, at_end = judged(capture.octets)
        everything = [named(finding) for finding in while_read + at_end]
        accused = {(finding.rule, finding.peer) for finding in while_read + at_end}
        for _ in range(CUTS):
            packets = chance.randrange(1, len(capture.segments) + 1)
            before, rest = judged(cut(capture.octets, packets))
            assert [named(finding) for finding in before] == everything[: len(before)], (n, packets)
            compared += len(before)
            for finding in rest:
                if finding.certain and severity(finding.rule) == "error":
                    assert (finding.rule, finding.peer) in accused, (n, packets, finding)
    if any(rule.startswith(protocol) for rule in checked()):
        # A fault is often the end of a conversation of 0-9-1.
        assert compared > examples(100 if protocol == "amqp10" else 20) // PROTOCOLS[protocol].one_in
