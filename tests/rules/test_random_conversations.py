"""Peers that do nothing illegal are never accused; where nothing can be in doubt, not even suspected.

The peers of `support.legal` say at random what the specification lets them say. Of each conversation a
capture is judged: by a tap anywhere on the way, whole or damaged (packets missed, cut, doubled, out of
order, begun in the middle, one direction alone). With `--hypothesis-profile=fuzz` many more are judged,
others each time; the name of the conversation that fails is its seed.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import settings
from support.judged import errors
from support.legal import CLIENT, NAMES, SERVER
from support.network import Conversation, Tap, captured, converse

BATCHES = 10
SEEDS = 50  # in a batch


def seeds(batch: int) -> list[str]:
    if settings.get_current_profile_name() == "fuzz":
        run = random.SystemRandom().randrange(1 << 32)
        return [f"{run}-{batch}-{n}" for n in range(settings().max_examples // BATCHES)]
    return [f"{batch}-{n}" for n in range(SEEDS)]


def tap(seed: str, conversation: Conversation) -> Tap:
    """Half of them see everything, the others miss something."""
    chance = random.Random(f"tap {seed}")
    isns = (chance.randrange(1 << 32), 0xFFFFFFFF - chance.randrange(3000))
    position = chance.choice([0.0, 0.5, 1.0])
    delays = (chance.choice([0, 0, 10_000_000, 10_000_000_000]), chance.choice([0, 0, 50_000_000]))
    packets = len(conversation.segments)
    damage: dict[str, float | int | None] = {}
    kind = chance.randrange(16)
    if kind == 0:
        damage["only"] = chance.choice([CLIENT, SERVER])
    elif kind == 1:
        damage["snaplen"] = chance.choice([70, 90, 120, 200])
    elif kind == 2:
        damage["stop"] = chance.randrange(min(4, packets), packets + 1)
    elif kind <= 4:
        damage["start"] = chance.randrange(packets)
    elif kind <= 7:
        damage["drop"] = chance.choice([0.01, 0.05, 0.3])
    if kind in (2, 4, 8, 9):
        damage["swap"] = chance.choice([0.05, 0.3])
        damage["repeat"] = 0.1
    return Tap(position=position, delays=delays, isns=isns, seed=seed, **damage)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_legal_conversations_are_not_accused(batch: int) -> None:
    wrong: list[str] = []
    for seed in seeds(batch):
        conversation = converse(seed)
        seen = tap(seed, conversation)
        for finding in errors(captured(conversation, seen).octets):
            if finding.certain or (not conversation.races and seen.whole):
                wrong.append(f"{seed}: {finding} {seen}")
    assert not wrong, "\n".join(wrong[:20])


def test_the_conversations_have_everything_in_them() -> None:
    """Else the property above would say little."""
    said: Counter[str] = Counter()
    for n in range(300):
        conversation = converse(f"all {n}")
        said["conversations with races"] += conversation.races
        for each in conversation.said():
            said[each.name] += 1
            fields = each.fields
            for name in ("aborted", "drain", "echo", "more", "error", "closed", "settled"):
                if fields.get(name):
                    said[f"{each.name} {name}"] += 1
            if fields.get("last") is not None and fields["last"] != fields["first"]:
                said["disposition of several"] += 1
            if each.name == "disposition":
                said[f"disposition of a {'receiver' if fields['role'] else 'sender'}"] += 1
                said[f"disposition {fields['state']}"] += 1
            if each.name == "attach":
                said[f"attach of a {'receiver' if fields['role'] else 'sender'}"] += 1
            if fields.get("resume"):
                said["transfer resumed"] += 1
            if fields.get("properties") and each.name == "flow":
                said["flow that asks for messages under a transaction"] += 1
            if isinstance(fields.get("state"), tuple):
                said[f"{each.name} {fields['state'][0]} of the {NAMES[each.side]}"] += 1
            if fields.get("unsettled") and any(fields["unsettled"].values()):
                said["attach with outcomes of unsettled deliveries"] += 1
            if fields.get("unsettled"):
                said["attach with unsettled deliveries"] += 1
            if isinstance(fields.get("state"), tuple):
                said[f"{each.name} {fields['state'][0]}"] += 1
            if each.name == "attach" and each.fields["target"] and each.fields["target"].coordinator:
                said["attach of a coordinator"] += 1
            if each.name == "attach" and each.fields["source"] and each.fields["source"].outcomes:
                said["attach with outcomes"] += 1
            if fields.get("link_credit") == 0:
                said["flow without credit"] += 1
            said[f"said by the {NAMES[each.side]}"] += 1
    for name in (
        "conversations with races",
        "header",
        "sasl-mechanisms",
        "sasl-init",
        "sasl-challenge",
        "sasl-response",
        "sasl-outcome",
        "open",
        "begin",
        "attach of a sender",
        "attach of a receiver",
        "flow",
        "flow drain",
        "flow echo",
        "flow without credit",
        "transfer",
        "transfer more",
        "transfer aborted",
        "transfer settled",
        "transfer resumed",
        "transfer transactional",
        "transfer transactional of the server",
        "disposition transactional of the client",
        "flow that asks for messages under a transaction",
        "attach with outcomes of unsettled deliveries",
        "disposition declared",
        "disposition transactional",
        "attach of a coordinator",
        "attach with outcomes",
        "attach with unsettled deliveries",
        "disposition of a receiver",
        "disposition of a sender",
        "disposition of several",
        "disposition settled",
        "disposition accepted",
        "disposition received",
        "disposition rejected",
        "detach closed",
        "detach error",
        "end",
        "end error",
        "close",
        "close error",
        "empty",
    ):
        assert said[name] >= 5, (name, said)
