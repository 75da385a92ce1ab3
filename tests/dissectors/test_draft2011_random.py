"""Random conversations in the April-2011 draft: each frame decodes field by field to what was encoded."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from support.draft2011_encode import COMPOSITES, Encoded
from support.legal import NAMES, Said
from support.legal_draft2011 import Peer2011, in_draft_words
from support.network import Conversation, converse
from support.sampling import share

from dissectors.amqp10.composite import Composite
from dissectors.amqp10.values import Map
from dissectors.amqp10_draft2011.frame import DialectDecoder
from dissectors.amqp10_draft2011.names import DRAFT_2011
from dissectors.interface import Frame

GROUPS = 100
SIZE = 100
SHARE = 10

Meaning = Any


def encoded(value: Meaning, kind: str = "") -> Meaning:
    """What was encoded, as plain values; a composite is its name and its fields."""
    if isinstance(value, Encoded) and value.composite is not None:
        name, fields = value.composite
        return name, fields_of(name, fields)
    if isinstance(value, Encoded):
        assert value[0] == 0xE0, "the one other value that the peers encode: a list of true"
        return [True]
    if kind.startswith("multiple "):
        values = value if isinstance(value, list) else [value]
        return [("fragment", fields_of("fragment", one)) if isinstance(one, dict) else one for one in values]
    if isinstance(value, dict):
        return {key: encoded(one) for key, one in value.items()}
    return value


def fields_of(name: str, fields: dict[str, Any]) -> dict[str, Meaning]:
    kinds = {field.replace("-", "_"): kind for field, kind in COMPOSITES[name][1]}
    return {field: encoded(value, kinds[field]) for field, value in fields.items() if value is not None}


def decoded(value: object) -> Meaning:
    """What was decoded, in the same form."""
    if isinstance(value, Composite):
        assert value.odd is None
        assert value.extra is None
        names = [field.name.replace("-", "_") for field in value.definition().fields]
        present = zip(names, value.values(), strict=True)
        return value.definition().name, {name: decoded(one) for name, one in present if one is not None}
    if isinstance(value, Map):
        return {decoded(key): decoded(one) for key, one in value.pairs}
    if isinstance(value, list):
        return [decoded(one) for one in value]
    return value


def read(octets: bytes, random: Random) -> list[Frame]:
    """The frames of a stream that comes in pieces; none if its dialect was left open."""
    decoder = DialectDecoder(False)
    start = 0
    while start < len(octets):
        end = min(len(octets), start + random.choice([1, 7, 100, 1448]))
        decoder.feed(octets, start, end)
        start = end
    assert decoder.undecided or decoder.dialect == DRAFT_2011
    return [] if decoder.undecided else decoder.frames


def said_fields(peer: Peer2011, said: Said) -> dict[str, Meaning]:
    fields = in_draft_words(said.name, said.fields)
    options = peer.options(fields)
    return fields_of(said.name, {**fields, "options": options})


def conversations(group: int) -> list[Conversation]:
    seeds = share(range(SIZE), 25, f"draft {group}")
    return [converse(f"{group} {seed}", protocol="amqp10-draft2011") for seed in seeds]


@pytest.mark.parametrize("group", share(range(GROUPS), SHARE, "draft"))
def test_frames_decode_to_what_was_encoded(group: int) -> None:
    read_all = 0
    for conversation in conversations(group):
        for side, peer in enumerate(conversation.talk.peers):
            assert isinstance(peer, Peer2011)
            stream = conversation.talk.said[side]
            frames = read(b"".join(said.octets for said in stream), Random(conversation.seed))
            read_all += bool(frames)
            for said, frame in zip(stream, frames, strict=bool(frames)):
                assert frame.problems == []
                assert frame.name == said.name
                if said.name not in ("header", "empty"):
                    expected = (said.name, said_fields(peer, said))
                    assert decoded(frame.body) == expected, (NAMES[side], str(said))
    assert read_all
