"""Nobody is accused for what somebody else garbled, nor is who garbled it for what follows from that.

Each field of each composite that two peers say in legal conversations is garbled in each way that its type
allows, one at a time; both peers go on as if it had been understood. What may be said then is what is wrong
with the octets of that field, by the peer that sent it. With `--hypothesis-profile=fuzz` everything is tried,
at several places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from random import Random
from typing import NamedTuple

import pytest
from support import amqp10_encode as amqp
from support.garbling import Frame, Place, garbled, ways
from support.judged import judged
from support.legal import NAMES, Said
from support.network import Conversation, Tap, captured, converse
from support.sampling import share, thorough

from amqpscope.model.finding import Finding

CONVERSATIONS = 40
ONE_OF = 12  # of the fields and ways, each at one place; where everything is tried:
MANY_CONVERSATIONS, MANY_PLACES = 120, 8

# What is said of octets that are not of the type that has to stand there, beside all the T- and P- rules.
OF_THE_OCTETS = {
    "F-BODY-PERF",
    "F-BODY-PAYLOAD",
    "SA-FRAME-BODY",
    "SA-MECH-NONEMPTY",
    "M-ADDR-TYPE",
    "M-ANN-KEYTYPE",
    "M-AP-KEY",
    "M-FILTER-KEY",
    "M-FILTER-VALUE",
    "M-ID-TYPE",
    "M-OUTCOME-VALID",
    "M-PAYLOAD-WHOLE",
    "M-SECT-KNOWN",
    "M-SECT-TYPE",
    "L-UNSETTLED-TYPES",
    # A message without a declare or discharge in it is what this rule is about.
    "TX-CTRL-NOWORK",
}

# What is true of that very frame, by its other octets.
TRUE_AS_WELL = {
    "D-RESUME-OMIT",  # some less
    "M-ANN-RESERVED",  # annotations where there were none
    "M-DYNPROPS-UNSET",  # node properties where there were none
    "M-RES-NULLRCV-KEEP",  # an entry in a map of what is unsettled
    "TX-COORD-RESUME",  # the same
    "TX-COORD-TARGET",  # a target in the place of the source
}


class Case(NamedTuple):
    """One way to garble one place in one frame of a conversation."""

    number: int
    said: Said
    frame: Frame
    place: Place
    octets: bytes


@cache
def conversation(number: int) -> Conversation:
    return converse(f"garbled {number}")


@cache
def before(number: int) -> Counter[tuple[str, str]]:
    """What is certain of a conversation in which nothing is garbled: preferences, and habits."""
    return certain(found(conversation(number)))


def found(one: Conversation) -> list[Finding]:
    while_read, at_end = judged(captured(one, Tap()).octets)
    return while_read + at_end


def certain(findings: list[Finding]) -> Counter[tuple[str, str]]:
    return Counter((finding.rule, finding.peer) for finding in findings if finding.certain)


@cache
def cases() -> dict[tuple[str, str], list[Case]]:
    """By field and way, those there are in so many conversations."""
    there: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for number in range(MANY_CONVERSATIONS if thorough() else CONVERSATIONS):
        for said in conversation(number).said():
            frame = Frame.of(said)
            if frame is None:
                continue
            part = any(said.fields.get(name) for name in ("more", "aborted", "resume"))
            for place in frame.places():
                if part and place.section >= 0:
                    continue  # what is wrong with it is reported for a later frame, or of none
                for way, octets in ways(place):
                    there[place.name, way].append(Case(number, said, frame, place, octets))
    return there


def owners() -> list[str]:
    """The composites that have fields, and the sections that are maps or binaries, by name."""
    composites = [name for name, (_, fields) in amqp.COMPOSITES.items() if fields]
    sections = [name for name in amqp.SECTIONS if name not in amqp.COMPOSITES]
    return composites + [name for name in sections if name not in ("amqp-sequence", "amqp-value")]


@pytest.mark.parametrize("owner", owners())
def test_what_cannot_be_read_accuses_nobody_of_what_follows(owner: str) -> None:
    wrong: list[str] = []
    kinds = [kind for kind in cases() if kind[0].partition(".")[0] == owner]
    assert kinds
    for field, way in share(sorted(kinds), ONE_OF, owner):
        there = cases()[field, way]
        for case in Random(f"{field} {way}").sample(there, min(MANY_PLACES if thorough() else 1, len(there))):
            wrong += [f"{case.number}, {field}, {way}, {case.said}: {one}" for one in accusations(case)]
    assert not wrong, "\n".join(wrong[:20])


def accusations(case: Case) -> list[Finding]:
    """What is certain since a field is garbled, and not said of its octets."""
    octets = case.frame.with_(case.place, case.octets)
    findings = found(garbled(conversation(case.number), case.said, octets))
    if any(finding.rule == "amqp10/C-MAXFRAME" for finding in findings):
        return []  # some octets more are too many for the peer: a fault of its own
    known = before(case.number).copy()
    more = []
    for finding in findings:
        if not finding.certain:
            continue
        if known[finding.rule, finding.peer] > 0:
            known[finding.rule, finding.peer] -= 1
        elif finding.peer != NAMES[case.said.side] or finding.offset != case.said.start:
            more.append(finding)
        elif not said_of_octets(finding.rule.partition("/")[2]):
            more.append(finding)
    return more


def said_of_octets(rule: str) -> bool:
    return rule.startswith(("T-", "P-")) or rule in OF_THE_OCTETS or rule in TRUE_AS_WELL


def test_every_field_of_every_composite_is_garbled() -> None:
    fields = {field for field, _ in cases()}
    assert {f"{owner}.{name}" for owner, (_, names) in amqp.COMPOSITES.items() for name, _ in names} <= fields
    ways_tried, kinds = len({way for _, way in cases()}), len(cases())
    assert ways_tried >= 60
    assert kinds >= 2300
