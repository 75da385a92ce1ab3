"""No traffic of one dialect of AMQP 1.0 is taken for the other one's: conversations, and random lists."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from support import amqp10_encode as final
from support import draft2011_encode as draft
from support.network import converse
from support.sampling import examples, thorough

from dissectors.amqp10_draft2011.dialect import DialectEvidence
from dissectors.amqp10_draft2011.frame import DialectDecoder

CONVERSATIONS = 2000 if thorough() else examples(24)
LISTS = 20_000 if thorough() else examples(200)

SASL = [name for name in final.COMPOSITES if name.startswith("sasl-")]
FRAMES = ["open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close", *SASL]

MANDATORY: dict[str, tuple[str, ...]] = {
    "open": ("container-id",),
    "begin": ("next-outgoing-id", "incoming-window", "outgoing-window"),
    "attach": ("name", "handle", "role"),
    "flow": ("incoming-window", "next-outgoing-id", "outgoing-window"),
    "disposition": ("role", "first"),
    "detach": ("handle",),
    "sasl-mechanisms": ("sasl-server-mechanisms",),
    "sasl-init": ("mechanism",),
    "sasl-challenge": ("challenge",),
    "sasl-response": ("response",),
    "sasl-outcome": ("code",),
}
"""Fields that both dialects demand."""

OF_FINAL = {"transfer": ("handle",)}
OF_DRAFT = {"transfer": ("handle", "delivery-tag", "transfer-id", "message-format")}


@pytest.mark.parametrize("batch", range(4))
def test_conversations_of_the_final_specification(batch: int) -> None:
    for number in range(CONVERSATIONS // 4):
        conversation = converse(f"dialect {batch}-{number}", protocol="amqp10")
        for side in (0, 1):
            octets = b"".join(said.octets for said in conversation.talk.said[side])
            decoder = DialectDecoder(False)
            decoder.feed(octets, 0, len(octets))
            assert decoder.dialect == "", conversation.seed


def verdict(octets: bytes) -> str:
    evidence = DialectEvidence()
    evidence.weigh(octets, 0, len(octets))
    assert not (evidence.says_final() and evidence.says_draft())
    return "final" if evidence.says_final() else "draft" if evidence.says_draft() else "open"


def value(random: Random, dialect: Any, name: str, kind: str) -> object:
    """A value of a field, as Python or encoded."""
    if kind == "*":
        if name in ("source", "target"):
            return getattr(dialect, name)(address="a")
        if name == "state":
            return draft.transfer_state(bytes_transferred=1) if dialect is draft else final.accepted()
        if name == "error":
            return dialect.error(condition="amqp:internal-error")
        return draft.fragments([draft.data(b"x")])[0] if name == "fragments" else "text"
    if kind in ("fields", "unsettled"):
        return {}
    if "multiple" in kind or kind == "symbols":
        return random.choice(["one", ["one", "two"]])
    if kind in ("boolean", "string", "symbol", "binary"):
        return {"boolean": random.random() < 0.5, "binary": b"octets"}.get(kind, "text")
    return random.choice([0, 1, 200])


def well_formed(random: Random, dialect: Any, own: dict[str, tuple[str, ...]], name: str) -> bytes:
    """A list of a performative: its mandatory fields, and any of the others."""
    mandatory = (*MANDATORY.get(name, ()), *own.get(name, ()))
    share = random.choice([0.0, 0.2, 0.5, 1.0])
    fields: dict[str, object] = {}
    for field, kind in dialect.COMPOSITES[name][1]:
        if field == "fragments":
            kind = "*"
        if field in mandatory or random.random() < share:
            fields[field.replace("-", "_")] = value(random, dialect, field, kind)
    return bytes(
        dialect.composite(
            name,
            descriptor_form=random.choice(["small", "full", "symbol", "symbol32"]),
            choice=random.choice(["smallest", "widest"]),
            keep_nulls=random.random() < 0.5,
            **fields,
        )
    )


@pytest.mark.parametrize("name", FRAMES)
def test_lists(name: str) -> None:
    """Some fit both: an end without error, or a flow of little more than its numbers."""
    left_open: Counter[str] = Counter()
    for dialect, own, other, label in (
        (final, OF_FINAL, "draft", "final"),
        (draft, OF_DRAFT, "final", "draft"),
    ):
        random = Random(f"lists {name} {label}")
        for _ in range(LISTS):
            octets = well_formed(random, dialect, own, name)
            found = verdict(octets)
            assert found != other, octets.hex()
            left_open[label] += found == "open"
    assert left_open["final"] <= LISTS * 0.9
    assert left_open["draft"] <= LISTS * 0.9
