"""Faults for legal conversations, whatever the protocol: their registry, and the conversation around one.

A fault is a function: given a peer, it says something illegal and gives back the frame that breaks the rule;
or says nothing, and gives None, where there is no occasion for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from support.legal import Said
from support.network import Conversation, Network

__all__ = ["Fault", "Planted", "Registry", "planted_in"]

Fault = Callable[[Any], Said | None]


@dataclass
class Planted:
    """A conversation with one fault. `said` is the frame at fault, `rule` what it breaks (no namespace)."""

    conversation: Conversation
    rule: str
    said: Said


class Registry:
    """The faults of a protocol, by the name of the function: the rule, and the function."""

    def __init__(self) -> None:
        self.faults: dict[str, tuple[str, Fault]] = {}

    def breaks(self, rule: str) -> Callable[[Fault], Fault]:
        def enter(fault: Fault) -> Fault:
            self.faults[fault.__name__] = (rule, fault)
            return fault

        return enter

    def mischief(self, peer: Any) -> Said | None:
        """Any fault there is an occasion for, of some that are tried. For `converse`."""
        for name in peer.random.sample(list(self.faults), 6):
            said = self.faults[name][1](peer)
            if said is not None:
                return said
        return None


def planted_in(
    talk: Any,
    random: Random,
    rule: str,
    fault: Fault,
    seed: str,
    early: Callable[[Any], bool],
    aftermath: Callable[[Network, Any], None],
) -> Planted | None:
    """The peers take turns until there is an occasion; None if there was none.

    early: whether a peer has not come far yet, so that its occasions do not come again.
    """
    network = Network(talk, random)
    network.settle()
    wait = random.randrange(40)
    for step in range(400):
        peer = talk.peers[random.randrange(2)]
        if step >= wait or early(peer):
            said = fault(peer)
            if said is not None:
                network.take(peer.side)
                network.settle(read=False)
                aftermath(network, peer)
                return Planted(Conversation(talk, network.segments, False, seed), rule, said)
        network.write(peer.side)
        network.settle()
    return None
