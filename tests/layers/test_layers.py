"""A layer between TCP and AMQP, made here: what it carries is read and judged as if it stood in the clear."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import pytest
from support.connection_harness import ConnectionHarness
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

import amqpscope
from amqpscope.input.capture import CaptureOptions
from amqpscope.layers.interface import (
    BEGINS,
    MORE,
    NONE,
    Layer,
    LayerContext,
    LayerKind,
    LayerOpening,
    LayerStream,
)
from amqpscope.layers.stack import LAYERS
from amqpscope.limits import MAX_LAYERS
from amqpscope.reassembly.provenance import Provenance

SIZE = 4
GREETINGS = (b"TOY", b"YOT")
KEYS = (0x5A, 0x33)
PROXY = b"PROXY TCP4 203.0.113.9 10.0.0.2 52000 5672\r\n"


class ToyStream(LayerStream):
    """Octets behind a greeting, each XORed with a key that both greetings give. Its offsets begin at 0."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key
        self.begin = SIZE

    def inner(self, outer: int) -> int:
        return max(outer - self.begin, 0)

    def begin_at(self, offset: int) -> None:
        self.begin = offset + SIZE

    def data(self, offset: int, buf: bytes, start: int, end: int, provenance: Provenance) -> None:
        skipped = min(max(self.begin - offset, 0), end - start)
        octets = bytes(octet ^ self.key for octet in buf[start + skipped : end])
        if octets:
            self.above.data(offset + skipped - self.begin, octets, 0, len(octets), provenance)

    def gap(self, offset: int, size: int, packet: int, time: int) -> None:
        self.above.gap(offset - self.begin, size, packet, time)

    def finish(self, reason: str) -> None:
        self.above.finish(reason)


class ToyLayer(Layer):
    def __init__(self, key: int) -> None:
        self.streams = (ToyStream(key), ToyStream(key))
        super().__init__("toy", *self.streams)

    def dump(self) -> tuple[Any, ...]:
        return (self.streams[0].key, [stream.begin for stream in self.streams])


class ToyKind(LayerKind):
    """Begins when both have said their greetings."""

    def __init__(self) -> None:
        super().__init__("toy")

    def begins(self, first: LayerOpening, second: LayerOpening) -> int:
        if first.passed or second.passed or not first.octets:
            return NONE
        both = list(zip((first, second), GREETINGS, strict=True))
        if not all(opening.octets[:3] == word[: len(opening.octets)] for opening, word in both):
            return NONE
        if all(len(opening.octets) >= SIZE for opening, _ in both):
            return BEGINS
        return NONE if any(opening.closed and len(opening.octets) < SIZE for opening, _ in both) else MORE

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        context.notes.add("capture/toy", 0, 0, "a toy layer")
        return ToyLayer(first.octets[3] ^ second.octets[3])

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        key, begins = state
        layer = ToyLayer(key)
        layer.streams[0].begin, layer.streams[1].begin = begins
        return layer


@pytest.fixture(autouse=True)
def toy_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer is known while a test runs. Nothing else of the product is touched."""
    monkeypatch.setitem(LAYERS, "toy", ToyKind())


class Turn(NamedTuple):
    """Octets of one direction that one packet carries."""

    direction: int
    octets: bytes


def wrapped(turns: list[Turn]) -> list[Turn]:
    """The same conversation in a toy layer."""
    key = KEYS[0] ^ KEYS[1]
    greetings = [Turn(direction, GREETINGS[direction] + bytes((KEYS[direction],))) for direction in (0, 1)]
    return greetings + [Turn(one.direction, bytes(octet ^ key for octet in one.octets)) for one in turns]


def reported(kind: str) -> list[Turn]:
    """A conversation with a fault of the client that only what the server said makes one."""
    if kind == "amqp10":
        d = Dialogue()
        d.linked(credit=1)
        d.client.transfer()
        d.client.transfer()
        d.server.disposition()
        d.goodbye()
        return turns_of(d)
    d091 = Dialogue091()
    d091.opened()
    d091.channel(1)
    d091.client.ack(7)
    d091.goodbye()
    return turns_of(d091)


def turns_of(d: Conversation) -> list[Turn]:
    return [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]


class Read(NamedTuple):
    frames: list[tuple[object, ...]]
    findings: list[tuple[object, ...]]
    notes: list[str]


def read(turns: list[Turn], shift: int, lost: int = -1, moved: int = 0, segment: int = 0) -> Read:
    """What a capture of these turns says, in the packets and octets of the clear one.

    shift: packets that the layers have before it. lost: the turn that was not captured. moved: octets that a
    PROXY header takes of the client's stream.
    """
    d = Conversation(segment=segment)
    for number, turn in enumerate(turns):
        peer = d.client if turn.direction == 0 else d.server
        if number == lost:
            with d.missed():
                peer.say(turn.octets)
        else:
            peer.say(turn.octets)
    with amqpscope.Capture(io.BytesIO(d.pcap()), CaptureOptions(judge=True, profile="none")) as capture:
        records = [record for block in capture.blocks() for record in block]
        findings = capture.take_findings()
    own, other = (moved, 0), (0, moved)
    frames = [
        (
            int(one.direction),
            one.frame.name,
            int(one.frame.offset) - own[int(one.direction)],
            int(one.frame.size),
            int(one.packet) - shift,
            int(one.last_packet) - shift,
            max(int(one.acknowledged) - other[int(one.direction)], 0),
            one.started,
            one.unseen,
        )
        for one in records
    ]
    found = [(one.rule, one.certain, one.peer, int(one.packet) - shift, one.message) for one in findings]
    return Read(frames, found, [note.code for note in capture.notes])


@pytest.mark.parametrize("kind", ["amqp10", "amqp091"])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("segment", [0, 1, 7])
def test_what_it_carries_is_read_as_in_the_clear(kind: str, depth: int, segment: int) -> None:
    clear = layered = reported(kind)
    for _ in range(depth):
        layered = wrapped(layered)
    before = depth * 2 * (SIZE // segment if segment == 1 else 1)
    expected, found = read(clear, 0, segment=segment), read(layered, before, segment=segment)
    assert expected.findings and expected.findings[0][1] is True
    assert found.frames == expected.frames
    assert found.findings == expected.findings
    assert found.notes == ["capture/toy"] * depth


@pytest.mark.parametrize("kind", ["amqp10", "amqp091"])
def test_a_proxy_header_before_it(kind: str) -> None:
    clear = reported(kind)
    found = read([Turn(0, PROXY), *wrapped(clear)], 3)
    expected = read([Turn(0, PROXY), *clear], 1, moved=len(PROXY))
    assert found.frames == expected.frames
    assert found.findings == expected.findings
    assert found.notes == ["capture/proxy", "capture/toy"]


@pytest.mark.parametrize("kind", ["amqp10", "amqp091"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_loss_inside(kind: str, depth: int) -> None:
    """Each packet is lost once: frames and findings are those of the clear twin with the same loss."""
    clear = layered = reported(kind)
    for _ in range(depth):
        layered = wrapped(layered)
    before = 2 * depth
    for lost in range(len(clear)):
        expected, found = read(clear, 0, lost), read(layered, before, lost + before)
        assert found.frames == expected.frames
        assert found.findings == expected.findings
        assert [code for code in found.notes if code != "capture/toy"] == expected.notes


@pytest.mark.parametrize("kind", ["amqp10", "amqp091"])
@pytest.mark.parametrize("proxy", [b"", PROXY])
def test_moved_to_another_process_after_each_segment(kind: str, proxy: bytes) -> None:
    """Segments are cut so that greetings, frames and the PROXY header go over several of them."""
    layered = ([Turn(0, proxy)] if proxy else []) + wrapped(wrapped(reported(kind)))
    frames = []
    for reload in (False, True):
        harness = ConnectionHarness(reload=reload)
        for turn in layered:
            harness.send(turn.direction, turn.octets, each=3)
        harness.finish()
        frames.append(
            [
                (
                    one.direction,
                    one.frame.name,
                    one.frame.offset,
                    one.packet,
                    one.last_packet,
                    one.acknowledged,
                )
                for one in harness.out
            ]
        )
        assert harness.connection.protocol == kind and harness.connection.proxied == bool(proxy)
    assert len(frames[0]) > 8 and frames[0] == frames[1]


@pytest.mark.parametrize(
    "turns",
    [
        [Turn(0, b"TOY")],
        [Turn(0, b"TOYx"), Turn(1, b"YO")],
        [Turn(0, b"TOYx"), Turn(1, b"AMQP\0\1\0\0")],
        [Turn(1, b"YOTx"), Turn(0, b"TOYx")],
    ],
)
def test_what_is_no_layer_after_all_is_given_out(turns: list[Turn]) -> None:
    """What was held goes on as it came. A layer whose answer was passed on already cannot be read."""
    for reload in (False, True):
        harness = ConnectionHarness(reload=reload)
        for turn in turns:
            harness.send(turn.direction, turn.octets)
        harness.finish()
        assert [note.code for note in harness.notes] == []
        for direction in (0, 1):
            own = [one.frame for one in harness.out if one.direction == direction]
            said = sum(len(turn.octets) for turn in turns if turn.direction == direction)
            assert not own or sum(int(frame.size) for frame in own) == said
        assert harness.connection.protocol in ("amqp10", "unknown", "")


def test_layers_in_layers_have_a_bound() -> None:
    layered = reported("amqp10")
    for _ in range(MAX_LAYERS + 1):
        layered = wrapped(layered)
    harness = ConnectionHarness()
    for turn in layered:
        harness.send(turn.direction, turn.octets)
    harness.finish()
    assert harness.connection.protocol == "unknown"


def test_a_plain_connection_has_no_stack() -> None:
    """Its octets go to the analysis as they come."""
    harness = ConnectionHarness()
    for turn in reported("amqp091"):
        harness.send(turn.direction, turn.octets)
        assert harness.analysis.stack is None
