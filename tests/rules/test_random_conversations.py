"""Peers that do nothing illegal are never accused; where nothing can be in doubt, not even suspected.

The peers of `support.legal` and `support.legal091` say at random what the specifications let them say. Of
each conversation a capture is judged: by a tap anywhere on the way, whole or damaged (packets missed, cut,
doubled, out of order, begun in the middle, one direction alone). With `--hypothesis-profile=fuzz` many more
are judged, others each time; the name of the conversation that fails is its seed.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import settings
from support.judged import errors
from support.legal import CLIENT, NAMES, SERVER
from support.network import PROTOCOLS, Conversation, Tap, captured, converse
from support.protocols import so_many
from support.sampling import thorough

# The server of `support.legal091` closes the channel of a client that takes its time, as RabbitMQ does.
RUNS_OUT = ("amqp091/B-ACK-TIMEOUT",)

BATCHES = 10
SEEDS = 20  # in a batch


def seeds(protocol: str, batch: int) -> list[str]:
    if thorough():
        run = random.SystemRandom().randrange(1 << 32)
        return [f"{run}-{batch}-{n}" for n in range(settings().max_examples // BATCHES)]
    return [f"{batch}-{n}" for n in range(so_many(protocol, SEEDS))]


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
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_legal_conversations_are_not_accused(protocol: str, batch: int) -> None:
    wrong: list[str] = []
    for seed in seeds(protocol, batch):
        conversation = converse(seed, protocol=protocol)
        seen = tap(seed, conversation)
        for finding in errors(captured(conversation, seen).octets):
            if finding.certain or (not conversation.races and seen.whole and finding.rule not in RUNS_OUT):
                wrong.append(f"{seed}: {finding} {seen}")
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize(
    ("protocol", "seed"), [("amqp10", "515492809-2-273"), ("amqp091", "1278130078-5-147")]
)
def test_conversations_that_were_accused_once(protocol: str, seed: str) -> None:
    conversation = converse(seed, protocol=protocol)
    assert errors(captured(conversation, tap(seed, conversation)).octets) == []


def test_the_conversations_have_everything_in_them() -> None:
    """Else the property above would say little."""
    said: Counter[str] = Counter()
    for n in range(180):
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
        assert said[name] >= 2, (name, said)


def test_those_of_0_9_1_have_everything_in_them() -> None:
    said: Counter[str] = Counter()
    for n in range(300):
        conversation = converse(f"all {n}", protocol="amqp091")
        said["conversations with races"] += conversation.races
        for each in conversation.said():
            peer = NAMES[each.side]
            fields = each.fields
            said[f"{each.name} of the {peer}"] += 1
            for name in (
                "multiple",
                "no_wait",
                "mandatory",
                "redelivered",
                "passive",
                "no_ack",
                "global_",
                "immediate",
            ):
                if fields.get(name):
                    said[f"{each.name} {name} of the {peer}"] += 1
            said["all acknowledged at once"] += fields.get("delivery_tag") == 0
            said["answer wanted directly"] += fields.get("reply_to") == "amq.rabbitmq.reply-to"
            said["answer given directly"] += "amq.rabbitmq.reply-to." in fields.get("routing_key", "")
            said["channel stopped"] += each.name == "channel.flow" and not fields["active"]
        for stream in conversation.talk.said:
            pairs = list(pairwise(stream))
            said["body of several frames"] += any(one.name == two.name == "body" for one, two in pairs)
            said["contents interleaved"] += any(
                two.name == "body" and two.channel != one.channel > 0 for one, two in pairs
            )
            opened = Counter(one.channel for one in stream if one.name == "channel.open")
            said["channel opened again"] += max(opened.values(), default=0) > 1
        for name in ("connection", "channel"):
            both = {f"{name}.close", f"{name}.close-ok"}
            there = [
                {one.channel for one in stream if one.name == part}
                for stream in conversation.talk.said
                for part in both
            ]
            said[f"closes of a {name} by both"] += bool(set.intersection(*there))
    for name in EVERYTHING:
        assert said[name] >= 2, (name, said)


EVERYTHING = (
    "conversations with races",
    "body of several frames",
    "contents interleaved",
    "closes of a connection by both",
    "closes of a channel by both",
    "connection.secure-ok of the client",
    "connection.open-ok of the server",
    "connection.close of the client",
    "connection.close of the server",
    "connection.close-ok of the client",
    "connection.close-ok of the server",
    "connection.blocked of the server",
    "connection.unblocked of the server",
    "connection.update-secret-ok of the server",
    "heartbeat of the client",
    "heartbeat of the server",
    "channel opened again",
    "channel.close of the client",
    "channel.close of the server",
    "channel.close-ok of the client",
    "channel.close-ok of the server",
    "channel.flow of the client",
    "channel stopped",
    "channel.flow-ok of the client",
    "channel.flow-ok of the server",
    "exchange.declare-ok of the server",
    "exchange.bind-ok of the server",
    "exchange.unbind-ok of the server",
    "queue.declare no_wait of the client",
    "queue.declare passive of the client",
    "queue.bind no_wait of the client",
    "queue.unbind-ok of the server",
    "queue.purge-ok of the server",
    "queue.delete-ok of the server",
    "basic.qos-ok of the server",
    "basic.qos global_ of the client",
    "basic.consume no_wait of the client",
    "basic.consume no_ack of the client",
    "basic.cancel no_wait of the client",
    "basic.cancel-ok of the server",
    "basic.cancel no_wait of the server",
    "basic.cancel-ok of the client",
    "basic.publish immediate of the client",
    "basic.publish mandatory of the client",
    "basic.return of the server",
    "basic.deliver redelivered of the server",
    "basic.get-ok of the server",
    "basic.get-empty of the server",
    "basic.ack multiple of the client",
    "basic.ack multiple of the server",
    "basic.nack multiple of the client",
    "basic.nack of the server",
    "basic.reject of the client",
    "all acknowledged at once",
    "answer wanted directly",
    "answer given directly",
    "basic.recover-ok of the server",
    "basic.recover-async of the client",
    "confirm.select no_wait of the client",
    "confirm.select-ok of the server",
    "tx.commit-ok of the server",
    "tx.rollback-ok of the server",
)
