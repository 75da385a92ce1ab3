"""TLS that is damaged, cut or made to do harm: nothing is raised, and no frame is made up."""

from __future__ import annotations

import random
import time

import pytest
from support.connection_harness import ConnectionHarness
from support.tls import Ends, TlsRecording

from .test_tls import recorded, talk

pytest.importorskip("cryptography")

SUITES = [
    ("1.3", "TLS_AES_128_GCM_SHA256"),
    ("1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("1.2", "AES128-SHA"),
    ("1.0", "AES128-SHA"),
]


@pytest.fixture(scope="module", params=SUITES, ids=[f"{version} {suite}" for version, suite in SUITES])
def recording(request: pytest.FixtureRequest) -> TlsRecording:
    return recorded(talk(), Ends.make(*request.param))


def frames(harness: ConnectionHarness) -> list[tuple[int, str, int]]:
    return [
        (one.direction, one.frame.name, one.last_packet)
        for one in harness.out
        if one.frame.kind != "skipped" and not one.frame.problems
    ]


def run(
    recording: TlsRecording, each: int, lost: int = -1, reload: bool = False, secrets: bool = True
) -> ConnectionHarness:
    """All of it in segments of `each` octets, the one with the number `lost` not captured."""
    harness = ConnectionHarness(reload=reload)
    if secrets:
        harness.output.secrets.take(recording.keylog)
    number = 0
    for turn in recording.turns:
        for at in range(0, len(turn.octets), each):
            octets = turn.octets[at : at + each]
            if number == lost:
                harness.packet += 1
                harness.skip(turn.direction, len(octets))
            else:
                harness.send(turn.direction, octets)
            number += 1
    return harness.finish()


@pytest.mark.parametrize("each", [40, 200])
def test_each_segment_lost_once(recording: TlsRecording, each: int) -> None:
    """Frames that are found are those of the whole recording; most of them are."""
    whole = frames(run(recording, each))
    before = sum(-(-len(turn.octets) // each) for turn in recording.turns[: recording.handshake])
    segments = sum(-(-len(turn.octets) // each) for turn in recording.turns)
    for lost in range(before, segments, 1 if each == 200 else 5):
        found = frames(run(recording, each, lost))
        assert set(found) <= set(whole), lost
        # One record, or two where each is needed to read the next one.
        assert len(found) >= len(whole) - 12, (lost, set(whole) - set(found))


def test_octets_that_are_changed(recording: TlsRecording) -> None:
    """Whatever the octets are, no frame is made of what does not authenticate."""
    chance = random.Random(7)
    whole = {one[:2] for one in frames(run(recording, 100))}
    for _ in range(20):
        changed = TlsRecording.__new__(TlsRecording)
        changed.ends, changed.handshake = recording.ends, recording.handshake
        changed.turns = list(recording.turns)
        for _ in range(chance.choice((1, 3))):
            at = chance.randrange(len(changed.turns))
            octets = bytearray(changed.turns[at].octets)
            for _ in range(chance.choice((1, 4))):
                octets[chance.randrange(len(octets))] = chance.randrange(256)
            if chance.random() < 0.2:
                del octets[chance.randrange(len(octets)) :]
            changed.turns[at] = changed.turns[at]._replace(octets=bytes(octets))
        harness = run(changed, chance.choice((30, 500)), reload=chance.random() < 0.3)
        assert {one[:2] for one in frames(harness)} <= whole
        assert not [note for note in harness.notes if note.code.startswith("internal")]


@pytest.mark.parametrize("kind", ["handshake", "headers", "records"])
def test_floods(kind: str) -> None:
    """Time stays bounded: messages that never end, headers without records, records without keys."""
    recording = recorded(talk(), Ends.make("1.3"))
    harness = ConnectionHarness()
    harness.output.secrets.take(recording.keylog)
    for turn in recording.turns[: recording.handshake]:
        harness.send(turn.direction, turn.octets)
    began = time.process_time()
    harness.skip(1, 50_000_000)
    if kind == "handshake":
        flood = b"\x16\x03\x03\x40\x00" + b"\x01\xff\xff\xff" * 4096
    elif kind == "headers":
        flood = b"\x17\x03\x03\x00\x16" * 4000
    else:
        flood = (b"\x17\x03\x03\x00\x40" + bytes(64)) * 200
    for _ in range(8 if kind == "handshake" else 1):
        harness.send(1, flood, each=1400)
    harness.finish()
    assert time.process_time() - began < 5
