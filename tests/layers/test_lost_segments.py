"""One segment lost, wherever its ends lie: in records of TLS, in frames of WebSocket, in frames of AMQP.

What is read must be what is read of the clear twin that loses the same: of a record of TLS and of a
compressed message all, of any other frame of WebSocket the octets that are missing. `make test` tries a share
of 100 places, CI all.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import pytest
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.sampling import in_ci, share
from support.tls import Ends, TlsRecording, Turn

import amqpscope
from amqpscope.input.capture import CaptureOptions
from amqpscope.layers.secrets import Secrets

from .test_websocket import CONNECT, wrapped

pytest.importorskip("cryptography")

PLACES = 100
SIZES = (61, 150, 536)
BLOCK = 16


def talk10() -> list[Turn]:
    """Bursts of either peer, of small frames and large, and a transfer too many."""
    d = Dialogue()
    d.linked(credit=40)
    for burst in range(8):
        for number in range(5):
            d.client.transfer(payload=data_section(burst * 5 + number))
        for _ in range(5):
            d.server.disposition()
    d.client.transfer()
    d.goodbye()
    return turns_of(d)


def data_section(number: int) -> bytes:
    size = number * 37 % 230
    return b"\0\x53\x75\xa0" + bytes((size,)) + bytes((number,)) * size


def talk091() -> list[Turn]:
    """Bursts of publishes, deliveries and acknowledgements, and one of a tag that was never delivered."""
    d = Dialogue091()
    d.opened()
    d.channel()
    d.declare()
    d.consume()
    for burst in range(10):
        for number in range(3):
            d.client.publish(bytes((burst,)) * (number * 91 % 400))
        for number in range(3):
            d.server.deliver(bytes((burst,)) * (number * 91 % 400))
        for number in range(3):
            d.client.ack(burst * 3 + number + 1)
    d.client.ack(999)
    d.goodbye()
    return turns_of(d)


def turns_of(d: Conversation) -> list[Turn]:
    return [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]


class Wire(NamedTuple):
    """A conversation as it is on the wire. before: turns that stand for none of the clear twin.

    whole: what is lost of a turn costs all of it; linked: and all that follows in that direction; framed:
    and where its header is lost, what comes before a segment that frames fill; chained: and where the last
    block is lost, the next turn. loose: more may be read than that, such as the beginning of a message.
    """

    clear: list[Turn]
    turns: list[Turn]
    before: int
    keylog: bytes
    whole: bool
    linked: bool
    framed: bool
    chained: bool
    loose: bool


TALKS = {"1.0": talk10, "0-9-1": talk091}
LAYERS = {
    "TLS 1.3": ("1.3", "TLS_AES_128_GCM_SHA256", None),
    "TLS 1.3, ChaCha20": ("1.3", "TLS_CHACHA20_POLY1305_SHA256", None),
    "TLS 1.2, GCM": ("1.2", "ECDHE-RSA-AES128-GCM-SHA256", None),
    "TLS 1.2, CBC": ("1.2", "AES128-SHA256", None),
    "TLS 1.0": ("1.0", "AES128-SHA", None),
    "WebSocket": ("", "", ""),
    "WebSocket, compressed": ("", "", "none"),
    "WebSocket, compressed together": ("", "", "takeover"),
    "WebSocket in TLS 1.3": ("1.3", "TLS_AES_128_GCM_SHA256", ""),
    "WebSocket in TLS 1.3, compressed": ("1.3", "TLS_AES_128_GCM_SHA256", "none"),
    "WebSocket in TLS 1.2, compressed together": ("1.2", "AES128-SHA256", "takeover"),
}


@functools.cache
def wire(talk: str, layers: str) -> Wire:
    version, suite, deflate = LAYERS[layers]
    clear = TALKS[talk]()
    turns = clear if deflate is None else wrapped(clear, deflate)
    before = len(turns) - len(clear)
    keylog = b""
    if version:
        recording = TlsRecording(Ends.make(version, suite))
        for turn in turns:
            recording.say(turn.direction, turn.octets)
        turns, keylog = recording.turns, recording.keylog
        before += recording.handshake
    if deflate == "":
        turns, before = [*CONNECT, *turns], before + len(CONNECT)
    linked, framed, chained = deflate == "takeover", deflate is not None and not version, version == "1.0"
    whole, loose = bool(version or deflate), chained or (framed and deflate != "")
    return Wire(clear, turns, before, keylog, whole, linked, framed, chained, loose)


class Segment(NamedTuple):
    """So many octets of a burst (turns of one direction behind each other), from one on."""

    burst: int
    first: int
    size: int


def bursts(turns: list[Turn]) -> Iterator[tuple[int, int, bytes]]:
    """The number of the first turn of each burst, its direction, and its octets."""
    number = 0
    for direction, group in groupby(turns, key=lambda turn: turn.direction):
        burst = list(group)
        yield number, direction, b"".join(turn.octets for turn in burst)
        number += len(burst)


def segments(of: Wire, size: int) -> Iterator[Segment]:
    """Those of what stands for the turns of the clear twin."""
    for number, _, octets in bursts(of.turns[of.before :]):
        for first in range(0, len(octets), size):
            yield Segment(of.before + number, first, min(size, len(octets) - first))


class Span(NamedTuple):
    """Where a turn begins and ends in the octets of its direction."""

    direction: int
    begin: int
    end: int


def spans(turns: list[Turn]) -> list[Span]:
    sent = [0, 0]
    found = []
    for direction, octets in turns:
        found.append(Span(direction, sent[direction], sent[direction] + len(octets)))
        sent[direction] += len(octets)
    return found


def header_size(frame: bytes) -> int:
    """Of a frame of WebSocket."""
    return 2 + {126: 2, 127: 8}.get(frame[1] & 127, 0) + (4 if frame[1] & 128 else 0)


def part_of(some: list[bytes], every: list[bytes]) -> bool:
    """Whether these are among the others, in their order."""
    others = iter(every)
    return all(one in others for one in some)


def twin(of: Wire, lost: Segment, size: int) -> dict[int, tuple[int, int]]:
    """What the clear twin loses with a segment."""
    direction = of.turns[lost.burst].direction
    outer, inner = spans(of.turns), [Span(0, 0, 0)] * of.before + spans(of.clear)
    begin = outer[lost.burst].begin + lost.first
    end = begin + lost.size
    own = [number for number in range(of.before, len(outer)) if outer[number].direction == direction]
    touched = [number for number in own if outer[number].begin < end and begin < outer[number].end]
    first, last = touched[0], touched[-1]
    missing = [inner[first].begin, inner[last].end]
    header = header_size(of.turns[first].octets)
    if not of.whole:
        missing[0] += max(begin - outer[first].begin - header, 0)
        missing[1] -= outer[last].end - end
    if of.linked:
        missing[1] = inner[own[-1]].end
    elif of.framed and (last > first or begin < outer[first].begin + header):
        ends = {outer[number].end for number in own}
        begins = {outer[number].begin: inner[number].begin for number in own}
        missing[1] = inner[own[-1]].end
        for number, at, octets in segments(of, size):
            at += outer[number].begin
            if outer[number].direction == direction and at >= end and at in begins and at + octets in ends:
                missing[1] = begins[at]
                break
    elif of.chained and last != own[-1] and end > outer[last].end - BLOCK:
        missing[1] = inner[own[own.index(last) + 1]].end
    found = {}
    sent = 0
    for number, side, octets in bursts(of.clear):
        if side == direction:
            found[number] = (max(missing[0] - sent, 0), min(missing[1] - sent, len(octets)))
            sent += len(octets)
    return found


class Seen:
    """What is read of a conversation of which these octets of bursts, by the number of the first turn, are
    missing.
    """

    def __init__(
        self, turns: list[Turn], size: int, missing: dict[int, tuple[int, int]], keylog: bytes = b""
    ) -> None:
        d = Conversation(segment=size)
        for number, direction, octets in bursts(turns):
            peer = d.client if direction == 0 else d.server
            first, last = missing.get(number, (0, 0))
            if first >= last:
                peer.say(octets)
                continue
            if first:
                peer.say(octets[:first])
            with d.missed():
                peer.say(octets[first:last])
            if last < len(octets):
                peer.say(octets[last:])
        secrets = Secrets()
        secrets.take(keylog)
        options = CaptureOptions(judge=True, profile="none", secrets=secrets)
        with amqpscope.Capture(io.BytesIO(d.pcap()), options) as capture:
            records = [record for block in capture.blocks() for record in block]
            found = capture.take_findings()
        sound = [one for one in records if one.frame.kind != "skipped" and not one.frame.problems]
        self.frames = [[one.frame.raw for one in sound if one.direction == side] for side in (0, 1)]
        self.certain = {(one.rule, one.peer, one.message) for one in found if one.certain}


def compare(of: Wire, size: int, lost: Segment) -> None:
    whole, clear = Seen(of.clear, 0, {}), Seen(of.clear, 0, twin(of, lost, size))
    read = Seen(of.turns, size, {lost.burst: (lost.first, lost.first + lost.size)}, of.keylog)
    if of.loose and read.frames != clear.frames:
        assert all(map(part_of, clear.frames, read.frames)), lost
        assert all(map(part_of, read.frames, whole.frames)), lost
        assert read.certain <= clear.certain | whole.certain, lost
    else:
        assert read.frames == clear.frames, lost
        assert read.certain <= clear.certain, lost


CASES = [(talk, layers, size) for talk in TALKS for layers in LAYERS for size in SIZES]


@pytest.mark.parametrize(("talk", "layers", "size"), CASES)
def test_a_loss_costs_what_it_touches(talk: str, layers: str, size: int) -> None:
    of = wire(talk, layers)
    every = list(segments(of, size))
    places = [every[number * len(every) // PLACES] for number in range(PLACES)]
    for lost in places if in_ci() else share(places, 6, f"{talk} {layers} {size}"):
        compare(of, size, lost)


@pytest.mark.parametrize(
    ("talk", "layers", "size", "lost"),
    [
        ("1.0", "TLS 1.0", 61, Segment(33, 427, 61)),
        ("0-9-1", "TLS 1.0", 61, Segment(8, 183, 13)),
        ("0-9-1", "TLS 1.0", 150, Segment(23, 750, 150)),
        ("0-9-1", "WebSocket", 61, Segment(20, 0, 61)),
    ],
)
def test_losses_that_once_cost_more(talk: str, layers: str, size: int, lost: Segment) -> None:
    """Records behind one that lacks the block it is chained to; octets of a body that look like frames."""
    compare(wire(talk, layers), size, lost)


@pytest.mark.parametrize("layers", ["TLS 1.3", "TLS 1.2, GCM", "TLS 1.2, CBC", "TLS 1.0"])
@pytest.mark.parametrize("talk", TALKS)
def test_octets_that_look_like_a_record(talk: str, layers: str) -> None:
    """The rest of a record that lacks its header seems to begin a long record, which never ends."""
    of = wire(talk, layers)
    lost = [one for one in segments(of, 40) if one.first == 0][5:]
    at = next(one.burst for one in lost if len(of.turns[one.burst].octets) > 46)
    direction, octets = of.turns[at]
    turns = list(of.turns)
    turns[at] = Turn(direction, octets[:41] + b"\x17\3\3\x40\0" + octets[46:])
    compare(of._replace(turns=turns), 40, Segment(at, 0, 40))


def test_a_hole_in_a_compressed_message() -> None:
    """Its frame says where the next one begins, wherever segments end."""
    of = wire("1.0", "WebSocket, compressed")
    whole = Seen(of.clear, 0, {})
    burst, octets = next((at, octets) for at, _, octets in bursts(of.turns) if at > 8 and len(octets) > 100)
    first = header_size(octets) + 3
    read = Seen(of.turns, 40, {burst: (first, first + 4)})
    assert [len(one) for one in read.frames] == [len(whole.frames[0]) - 1, len(whole.frames[1])]


def test_frames_that_were_none() -> None:
    """Behind a loss octets of a payload look like a message that fills a segment: the search goes on."""
    clear = talk10()
    at = next(number for number, turn in enumerate(clear) if number > 8 and turn.direction == 1)
    octets = bytes(36) + b"\x82\x26" + bytes(38) + b"\x33" * 80
    turns = wrapped([*clear[:at], Turn(1, octets), *clear[at:]])
    read = Seen(turns, 40, {at + 2: (0, 40)})
    assert read.frames[1][-1] == Seen(clear, 0, {}).frames[1][-1]
