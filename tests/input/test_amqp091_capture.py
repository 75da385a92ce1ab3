"""Whatever two peers of AMQP 0-9-1 say is read as they said it, wherever it was captured."""

from __future__ import annotations

import io
from random import Random
from typing import Any

from support.legal import NAMES, Said
from support.network import Captured, Conversation, Tap, captured, converse
from support.sampling import thorough

import amqpscope
from amqpscope.model.records import FrameRecord
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.tables import FieldTable
from dissectors.amqp091.values import FieldArray, Table


def conversations() -> list[Conversation]:
    many = thorough()
    return [converse(f"read {n}", protocol="amqp091", lossy=False) for n in range(2000 if many else 40)]


def read(capture: Captured) -> list[FrameRecord]:
    records = []
    for record in amqpscope.read(io.BytesIO(capture.octets)):
        record.frame.detach()
        if not any(problem.code == "incomplete" for problem in record.frame.problems):
            records.append(record)
    return records


def sent(conversation: Conversation, side: int) -> list[tuple[Said, int]]:
    """The frames that left their host whole, and what was acknowledged with their first octet."""
    segments = [segment for segment in conversation.segments if segment.side == side and segment.octets]
    last = segments[-1].start + len(segments[-1].octets) if segments else 0
    frames = []
    at = 0
    for said in conversation.talk.said[side]:
        if said.end > last:
            break
        while segments[at].start + len(segments[at].octets) <= said.start:
            at += 1
        frames.append((said, segments[at].ack))
    return frames


def plain(value: Any) -> object:
    """An argument without its types: as the dissector gives it, or as the encoder takes it."""
    if isinstance(value, FieldTable):
        value = value.read()
    if isinstance(value, Table):
        value = dict(value.pairs)
    if isinstance(value, tuple) and not isinstance(value, FieldArray):
        value = value[1]  # behind its tag
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, FieldArray)):
        return [plain(item) for item in value]
    return value.encode() if isinstance(value, str) else value


def argument(body: Any, name: str) -> object:
    """An argument of a method, or a property, by its name in the encoder."""
    if isinstance(body, ContentHeader) and name != "body_size":
        body = body.properties()
    return plain(getattr(body, name))


def test_frames_are_those_that_were_said() -> None:
    chance = Random("taps")
    for conversation in conversations():
        tap = Tap(position=chance.choice([0.0, 0.5, 1.0]), repeat=chance.choice([0.0, 0.1]))
        records = read(captured(conversation, tap))
        for side, peer in enumerate(NAMES):
            own = [record for record in records if record.peer == peer]
            seen = [(r.frame.name, int(r.frame.channel), int(r.frame.offset), r.frame.raw) for r in own]
            frames = sent(conversation, side)
            assert seen == [
                (said.name, -1 if said.name == "header" else said.channel, said.start, said.octets)
                for said, _ in frames
            ], conversation.seed
            for record, (said, heard) in zip(own, frames, strict=True):
                assert int(record.acknowledged) == heard, (conversation.seed, str(said))
                for name, value in said.fields.items():
                    assert argument(record.frame.body, name) == plain(value), (str(said), name)


def test_messages_are_put_together() -> None:
    count = 0
    for conversation in conversations():
        bodies: list[bytes] = []
        for side in (0, 1):
            open_contents: dict[int, bytes] = {}
            left: dict[int, int] = {}
            for said, _ in sent(conversation, side):
                if said.name == "content-header":
                    open_contents[said.channel], left[said.channel] = b"", said.fields["body_size"]
                elif said.name == "body":
                    open_contents[said.channel] += said.payload
                if said.name in ("content-header", "body"):
                    if len(open_contents[said.channel]) == left[said.channel]:
                        bodies.append(open_contents[said.channel])
        messages = [record.message for record in read(captured(conversation, Tap()))]
        assembled = [one.body for one in messages if isinstance(one, Amqp091Message) and one.complete]
        assert sorted(assembled) == sorted(bodies), conversation.seed
        count += len(assembled)
    assert count > 500
