"""One field of an AMQP 0-9-1 conversation is spoilt: nobody but its sender is accused, and of nothing else.

Every argument of every method and every property of a message, in each way that its type allows. The other
peer goes on by what was meant, so whatever rests on the field happens as it would have happened; or it closes
the connection for it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from support import amqp091_encode as amqp
from support.garbling091 import Way, refused, spoilt, ways
from support.judged import judged
from support.legal import NAMES, Said
from support.network import Conversation, Tap, captured, converse
from support.sampling import share, thorough

from amqpscope.model.finding import Finding

SEEDS = 60
OCCASIONS = 6
"""Frames of each method that are spoilt in each way, where everything is tried."""

REACTIONS = (
    "F-CONTENT-REACT",
    "F-CH0-REACT",
    "F-FATAL-SILENT",
    "F-FRAME-SIZE-REACT",
    "T-TABLE-NAME-REACT",
    "C-HS-ERROR-SILENT",
)
"""What is shown about a peer that takes what it should refuse, or refuses it with a word too much: that is
so."""

CODES = (501, 502, 505)

FRAMES = (*amqp.METHODS, "content-header")

# No peer of `support.legal091` says these.
UNSAID = ("access.request", "access.request-ok", "exchange.delete", "exchange.delete-ok")


@cache
def conversations() -> list[Conversation]:
    return [
        converse(f"garbled {n}", protocol="amqp091", races=bool(n % 2), lossy=n % 5 == 4, length=250)
        for n in range(SEEDS)
    ]


@cache
def occasions(name: str) -> list[tuple[Conversation, Said]]:
    """Frames of a kind, from as many conversations as there are, those with the most to spoil first."""
    found = [
        (conversation, said)
        for conversation in conversations()
        for side in conversation.talk.said
        for said in side
        if said.name == name and sent(conversation, said)
    ]
    found.sort(key=lambda one: -len(one[1].fields))
    return found[:: max(len(found) // OCCASIONS, 1)][:OCCASIONS]


def sent(conversation: Conversation, said: Said) -> bool:
    return any(
        one.side == said.side and one.start + len(one.octets) >= said.end for one in conversation.segments
    )


def cases(name: str) -> list[tuple[Conversation, Said, Way]]:
    found = [(conversation, said, way) for conversation, said in occasions(name) for way in ways(said)]
    if thorough():
        return found
    return list(share(found, max(len(found) // 3, 1), name))


def reported(conversation: Conversation) -> list[Finding]:
    while_read, at_end = judged(captured(conversation, Tap()).octets)
    return [one for one in while_read + at_end if one.certain and one.rule.partition("/")[2] not in REACTIONS]


@cache
def before(seed: str) -> Counter[tuple[str, str]]:
    """What is shown about a conversation as it was: recommendations that its peers do not keep."""
    whole = next(one for one in conversations() if one.seed == seed)
    return Counter((one.peer, one.rule) for one in reported(whole))


def of_the_octets(finding: Finding, said: Said, way: Way) -> bool:
    """Whether it tells of the octets that were spoilt, or of a content that they put out of order."""
    rule = finding.rule.partition("/")[2]
    if finding.offset == said.start:
        return rule.startswith(("F-", "T-"))
    return way.field.startswith("content-header") and rule.startswith(("F-CONTENT-", "F-BODY-", "F-HEADER-"))


@pytest.mark.parametrize("name", FRAMES)
def test_a_spoilt_field_accuses_nobody_of_anything_else(name: str) -> None:
    if name in UNSAID:
        pytest.skip("no peer says it")
    tried = cases(name)
    assert tried
    wrong: list[str] = []
    for number, (conversation, said, way) in enumerate(tried):
        known = before(conversation.seed).copy()
        after: Conversation | None = spoilt(conversation, said, way)
        if number % 3 == 2:
            after = refused(conversation, said, way, CODES[number % len(CODES)])
        for finding in [] if after is None else reported(after):
            if finding.peer == NAMES[said.side] and of_the_octets(finding, said, way):
                continue
            if known[finding.peer, finding.rule]:
                known[finding.peer, finding.rule] -= 1
                continue
            wrong.append(f"{conversation.seed}, {said}, {way.field} {way.name}: {finding}")
    assert not wrong, f"{len(wrong)} of {len(tried)}\n" + "\n".join(wrong[:40])


def test_each_field_and_each_way_is_tried() -> None:
    fields = {way.field for name in FRAMES for _, said in occasions(name) for way in ways(said)}
    for name, (_, _, form) in amqp.METHODS.items():
        bits = False
        for field in form.split():
            one, kind = field.split(":")
            if not (kind == "?" and bits) and name not in UNSAID:
                assert f"{name}.{one}" in fields
            bits = kind == "?"
    assert {f"content-header.{one.split(':')[0]}" for one in amqp.PROPERTIES.split()} <= fields
