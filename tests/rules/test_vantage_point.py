"""Where and how a conversation was captured changes nothing in what is found, but what is about time.

The conversations are full of faults and of races, so that there is something to find, and something that
the order of the packets could be mistaken for. The network loses nothing: then each tap sees the same octets,
each with the same acknowledgement, only in another order between the two directions.
"""

from __future__ import annotations

import random
import re
from functools import cache

import pytest
from support.judged import judged
from support.network import Captured, Conversation, Tap, captured, converse
from support.protocols import PROTOCOLS, mischievous, so_many
from support.sampling import examples, thorough

from amqpscope.model.finding import Finding
from amqpscope.rules.amqp10 import reaction
from amqpscope.rules.registry import checked

ABOUT_TIME = (
    "amqp10/C-HDR-CLIENT-NOW",
    "amqp10/C-CLOSE-TIMEOUT",
    "amqp10/C-IDLE-KEEP",
    "amqp10/C-IDLE-REFUSE",
    "amqp10/C-IDLE-HALF",
    "amqp10/C-IDLE-CLOSE",
    "amqp10/S-FLOW-ECHO",
    "amqp10/L-ATTACH-ROLE",
    "amqp091/CH-CLOSE-REPLY",
    "amqp091/CH-CLOSE-CROSS",
    "amqp091/CH-FLOW-PROMPT",
    "amqp091/C-HB-SEND",
    "amqp091/C-HB-REACT",
    "amqp091/C-HB-CLOSING",
    "amqp091/C-CLOSEOK-SOCKET",
    "amqp091/C-CLOSE-HANDSHAKE",  # is none after a silence
)

# And these where it is only time that says so: a minute without an answer.
AFTER_A_MINUTE = ("amqp10/S-FLOW-ECHO", *reaction.RULES.ids)

SECOND = 1_000_000_000


@cache
def conversations(protocol: str) -> list[Conversation]:
    wrong, legal = (1000, 1000) if thorough() else (so_many(protocol, 24), so_many(protocol, 10))
    found = [mischievous(f"vantage {n}", protocol, lossy=False) for n in range(wrong)]
    return found + [converse(f"vantage legal {n}", lossy=False, protocol=protocol) for n in range(legal)]


def findings(capture: Captured, sizes: list[int] | None = None) -> list[Finding]:
    while_read, at_end = judged(capture.octets, sizes)
    return [
        finding
        for finding in while_read + at_end
        if of_final(finding.rule) not in ABOUT_TIME
        and (finding.certain or of_final(finding.rule) not in AFTER_A_MINUTE)
    ]


def of_final(rule: str) -> str:
    """The rule of the final specification that the April-2011 draft has, too."""
    return rule.replace("amqp10-draft2011/", "amqp10/")


def about(finding: Finding) -> tuple[object, ...]:
    """What does not depend on where packets stand in the file."""
    message = re.sub(r"packet \d+", "packet", finding.message)
    return (finding.rule, finding.certain, finding.peer, finding.offset, finding.frame, message)


def seen(conversation: Conversation, tap: Tap) -> list[tuple[object, ...]]:
    return sorted((about(finding) for finding in findings(captured(conversation, tap))), key=repr)


@cache
def seen_at_once(protocol: str) -> list[list[tuple[object, ...]]]:
    """What is found in each of the conversations by a tap that changes nothing."""
    return [seen(conversation, Tap()) for conversation in conversations(protocol)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_there_is_something_to_find(protocol: str) -> None:
    conversed = conversations(protocol)[:40]
    rules = {about(finding)[0:2] for one in conversed for finding in findings(captured(one, Tap()))}
    wanted = {f"{protocol}/{rule}" for rule, _ in PROTOCOLS[protocol].faults.values()} & checked().keys()
    # A fault is often the end of a conversation of 0-9-1, and of the draft only a few are tried.
    least = {"amqp10": 50, "amqp091": len(wanted) // 8}
    assert len(rules) > examples(least.get(protocol, len(wanted) // 16))
    assert any(not certain for _, certain in rules) or not wanted


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "tap",
    [
        Tap(position=0.0),
        Tap(position=1.0),
        Tap(delays=(SECOND, 0)),
        Tap(delays=(0, SECOND)),
        Tap(delays=(40 * SECOND, 0)),
        Tap(delays=(0, 40 * SECOND)),
        Tap(delays=(-3_000_000, 0)),
        Tap(delays=(0, -3_000_000)),
        Tap(repeat=0.3),
        Tap(position=0.0, delays=(0, 7_000_000), repeat=0.1),
    ],
    ids=str,
)
def test_the_same_is_found_from_everywhere(protocol: str, tap: Tap) -> None:
    for conversation, expected in zip(conversations(protocol), seen_at_once(protocol), strict=True):
        assert seen(conversation, tap) == expected, conversation.seed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_initial_sequence_numbers_change_nothing(protocol: str) -> None:
    chance = random.Random("isns")
    for conversation in conversations(protocol):
        here = [(about(f), f.packet) for f in findings(captured(conversation, Tap()))]
        octets = sum(len(segment.octets) for segment in conversation.segments)
        isns = (chance.randrange(1 << 32), (0xFFFFFFFF - chance.randrange(octets)) & 0xFFFFFFFF)
        there = [(about(f), f.packet) for f in findings(captured(conversation, Tap(isns=isns)))]
        assert here == there, conversation.seed


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_pieces_in_which_a_file_is_read_change_nothing(protocol: str) -> None:
    chance = random.Random("pieces")
    for conversation in conversations(protocol):
        capture = captured(conversation, Tap())
        sizes = [chance.choice([1, 2, 3, 17, 100, 1000, 5000]) for _ in range(50)]
        here = [(about(f), f.packet) for f in findings(capture)]
        assert [(about(f), f.packet) for f in findings(capture, sizes)] == here, conversation.seed
