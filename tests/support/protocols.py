"""What tests over several protocols need of each: its faults, and conversations with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from support import faults, faults091, faults_draft2011
from support.legal import Said
from support.network import Conversation, converse
from support.planting import Fault, Planted
from support.sampling import examples, thorough

__all__ = ["PROTOCOLS", "Protocol", "mischievous", "so_many"]


class Protocol(NamedTuple):
    """faults: by name, with the rule (no namespace) that each breaks. mischief: any of them. one_in: in every
    run one in so many of the conversations is tried.
    """

    faults: dict[str, tuple[str, Fault]]
    mischief: Callable[[Any], Said | None]
    plant: Callable[[str, str], Planted | None]
    one_in: int = 1


_ALL = {
    "amqp10": Protocol(faults.FAULTS, faults.mischief, faults.plant),
    "amqp091": Protocol(faults091.FAULTS, faults091.mischief, faults091.plant),
    # What it shares with AMQP 1.0 is tried there.
    "amqp10-draft2011": Protocol(
        faults_draft2011.FAULTS, faults_draft2011.mischief, faults_draft2011.plant, one_in=8
    ),
}

PROTOCOLS = {name: one for name, one in _ALL.items() if one.faults}
"""By the namespace of their rules: those that are judged."""


_FEWEST = 4
"""Conversations of a protocol that are always tried, if CI tries so many: fewer may have no fault."""


def so_many(protocol: str, conversations: int) -> int:
    """How many conversations of a protocol are tried, if CI tries so many of others. All if thorough."""
    if thorough():
        return conversations
    so_many_in_ci = max(1, conversations // _ALL[protocol].one_in)
    return max(examples(so_many_in_ci), min(so_many_in_ci, _FEWEST))


def mischievous(seed: str, protocol: str, **how: Any) -> Conversation:
    """A conversation that is full of faults."""
    return converse(seed, protocol=protocol, mischief=PROTOCOLS[protocol].mischief, **how)
