"""One peer breaks one rule; whatever the other one makes of that, it is accused of nothing.

The other peer does what many do: it ignores what is illegal and goes on, as the peer at fault does itself, or
(of 0-9-1) it closes the connection. Where there is no sense in that, the fault is left out, with the reason.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.judged import judged
from support.legal import NAMES, Said
from support.network import Tap, captured, converse
from support.protocols import PROTOCOLS, so_many
from support.sampling import examples, thorough

from amqpscope.rules.catalogue import severity

# An end is an end, whatever stands behind it: no peer goes on with the session, as these two do.
LEFT_OUT = ("end_with_payload",)

BATCHES = 4
SEEDS = 40  # in a batch


class Once:
    """The peer of one side commits the first fault for which there is an occasion."""

    def __init__(self, protocol: str, side: int) -> None:
        self.side = side
        self.faults = PROTOCOLS[protocol].faults
        self.names = [name for name in self.faults if name not in LEFT_OUT]
        self.done = ""

    def __call__(self, peer: Any) -> Said | None:
        if self.done or peer.side != self.side:
            return None
        name = peer.random.choice(self.names)
        said = self.faults[name][1](peer)
        if said is not None:
            self.done = name
        return said


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_other_peer_is_accused_of_nothing(protocol: str, batch: int) -> None:
    many = thorough()
    done: Counter[str] = Counter()
    wrong: list[str] = []
    for n in range(SEEDS * 20 if many else so_many(protocol, SEEDS)):
        guilty = n % 2
        once = Once(protocol, guilty)
        conversation = converse(f"innocent {batch} {n}", protocol=protocol, mischief=once)
        done[once.done] += 1
        while_read, at_end = judged(captured(conversation, Tap()).octets)
        for finding in while_read + at_end:
            innocent = finding.peer == NAMES[1 - guilty]
            if innocent and finding.certain and severity(finding.rule) == "error":
                wrong.append(f"{conversation.seed}, {once.done}: {finding}")
    assert not wrong, "\n".join(wrong[:20])
    assert len(done) > examples(10) // PROTOCOLS[protocol].one_in
