"""What is lost where a layer begins, or in the middle of it: nobody is accused, and the rest is read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise

import pytest
from support.connection_harness import ConnectionHarness
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.tcp_writer import Capture
from support.tls import Ends, TlsRecording, Turn

import amqpscope
from amqpscope.analysis.detection import Detection
from amqpscope.input.capture import CaptureOptions
from amqpscope.layers.secrets import Secrets
from amqpscope.limits import MAX_TLS_TRIALS
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note

from .test_lost_segments import LAYERS, data_section, talk10, turns_of
from .test_websocket import CONNECT, frame, wrapped

pytest.importorskip("cryptography")

TLS = [name for name in LAYERS if name.startswith("TLS")]
PLAIN = {"plain": ("", "", None)}


class Read:
    """What is read of packets. frames: how many sound ones of the client, of the server."""

    def __init__(self, capture: Capture, keylog: bytes = b"") -> None:
        self.secrets = Secrets()
        self.secrets.take(keylog)
        options = CaptureOptions(judge=True, profile="none", secrets=self.secrets)
        with amqpscope.Capture(io.BytesIO(capture.pcap()), options) as opened:
            records = [record for block in opened.blocks() for record in block]
            self.findings: list[Finding] = opened.take_findings()
            self.notes: list[Note] = [note for note in opened.notes if note.code != "capture/gap"]
        sound = [one for one in records if one.frame.kind != "skipped" and not one.frame.problems]
        self.frames = [sum(one.peer == peer for one in sound) for peer in ("client", "server")]
        self.certain = {(one.rule, one.peer) for one in self.findings if one.certain}


def recorded(turns: list[Turn], layers: str) -> tuple[list[Turn], int, bytes]:
    """The turns on the wire, one for each given, behind so many of the layers; and their secrets."""
    version, suite, deflate = {**LAYERS, **PLAIN}[layers]
    inner = turns if deflate is None else wrapped(turns, deflate)
    before = len(inner) - len(turns)
    if not version:
        return inner, before, b""
    recording = TlsRecording(Ends.make(version, suite))
    for turn in inner:
        recording.say(turn.direction, turn.octets)
    return recording.turns, before + recording.handshake, recording.keylog


def sent(
    turns: Sequence[Turn], lost: Sequence[tuple[int, int, int]], size: int = 60_000, pause: int = -1
) -> Capture:
    """A capture of these, in segments of `size`. lost: turn, first octet, and octet behind the last. pause:
    behind this turn, so much time passes that nobody waits for lost octets any more.
    """
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    ends = (tcp.client, tcp.server)
    for number, turn in enumerate(turns):
        if number > pause >= 0:
            capture.wait(seconds=1.5)
        cuts = {0, len(turn.octets), *range(0, len(turn.octets), size)}
        missing = [(first, last) for at, first, last in lost if at == number]
        cuts |= {cut for hole in missing for cut in hole if cut < len(turn.octets)}
        for first, last in pairwise(sorted(cuts)):
            octets = turn.octets[first:last]
            if any(begin <= first < end for begin, end in missing):
                with capture.missed():
                    ends[turn.direction].send(octets)
            else:
                ends[turn.direction].send(octets)
    return capture


def whole(number: int) -> tuple[int, int, int]:
    """All of a turn is lost."""
    return number, 0, 1 << 20


# Who acknowledges a part of a hole may have read that part


def secured() -> list[Turn]:
    d = Dialogue091()
    d.client.header()
    d.server.start()
    d.client.start_ok()
    d.server.secure()
    d.client.secure_ok()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    return turns_of(d)


def settled() -> list[Turn]:
    d = Dialogue()
    d.subscribed(credit=10)
    for number in range(3):
        d.server.transfer(payload=data_section(5))
        d.client.disposition(first=number)
    d.goodbye()
    return turns_of(d)


@pytest.mark.parametrize("layers", [*LAYERS, *PLAIN])
@pytest.mark.parametrize("talk", [secured, settled])
def test_an_acknowledgement_inside_a_hole(layers: str, talk: object) -> None:
    """Two turns of the server are one hole of its direction. What the client says between them answers the
    first one.
    """
    inner = secured() if talk is secured else settled()
    turns, before, keylog = recorded(inner, layers)
    own = [number for number, turn in enumerate(inner) if turn.direction == 1]
    for first, second in pairwise(own):
        if all(turn.direction == 0 for turn in inner[first + 1 : second]):
            lost = [whole(before + first), whole(before + second)]
            capture = sent(turns, lost, pause=before + second + 1)
            assert not Read(capture, keylog).certain, (first, second)


@pytest.mark.parametrize("bad", [frame(b"hello", 1, 0x83), frame(b"\xff\xff\xff\xff", 1, 0xC2)])
def test_answers_to_what_is_not_read(bad: bytes) -> None:
    """A WebSocket frame of the server cannot be read, nor what follows it. The client answers that."""
    turns = wrapped(settled(), "none" if bad[0] == 0xC2 else "")
    for at in (number for number, turn in enumerate(turns) if number > 2 and turn.direction == 1):
        capture = sent([*turns[:at], Turn(1, bad), *turns[at:]], [])
        assert not {one for one in Read(capture).certain if not one[0].startswith("ws/")}, at


# What stands before AMQP

REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 300\r\n\r\n" + bytes(300)
LONG = b"HTTP/1.1 200 Connection established\r\nVia: " + b"x" * 60 + b"\r\n\r\n"
PRELUDES = {
    "CONNECT": [CONNECT[0], Turn(1, LONG)],
    "a refusal, then CONNECT": [CONNECT[0], Turn(1, REFUSED), CONNECT[0], Turn(1, LONG)],
    "PROXY": [Turn(0, b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n")],
}


@pytest.mark.parametrize("name", [*PRELUDES, "WebSocket"])
@pytest.mark.parametrize("run", [1, 3])
def test_torn_preludes(name: str, run: int) -> None:
    """Some segments in front of AMQP are lost, wherever they lie."""
    turns = wrapped(settled()) if name == "WebSocket" else [*PRELUDES[name], *settled()]
    size = 40
    pieces = [
        (number, first, min(first + size, len(turn.octets)))
        for number, turn in enumerate(turns[: len(PRELUDES.get(name, "12")) + 2])
        for first in range(0, len(turn.octets), size)
    ]
    for at in range(len(pieces)):
        read = Read(sent(turns, pieces[at : at + run], size))
        assert not read.certain, pieces[at : at + run]


def test_what_is_read_behind_a_torn_prelude() -> None:
    talk = talk10()
    turns = [*PRELUDES["CONNECT"], *talk]
    complete = Read(sent(talk, [])).frames
    assert Read(sent(turns, [whole(1)])).frames == complete
    refused = [*PRELUDES["a refusal, then CONNECT"], *talk]
    assert Read(sent(refused, [(1, 100, 200)])).frames == complete
    request = wrapped(talk)
    assert Read(sent(request, [(0, 20, 1 << 20)])).frames == complete


# Handshakes of TLS


@pytest.mark.parametrize("layers", ["TLS 1.3", "TLS 1.2, GCM", "TLS 1.0"])
def test_the_end_of_a_client_hello(layers: str) -> None:
    """What the first segment has of it tells which secrets it needs."""
    turns, _, keylog = recorded(talk10(), layers)
    complete = Read(sent(talk10(), [])).frames
    assert Read(sent(turns, [(0, 120, 1 << 20)]), keylog).frames == complete


@pytest.mark.parametrize("layers", ["TLS 1.2, GCM", "TLS 1.0"])
def test_a_flight_in_one_record(layers: str) -> None:
    """A server puts its whole flight into one record, of which a part is lost behind the ServerHello."""
    turns, _, keylog = recorded(talk10(), layers)
    octets, body = turns[1].octets, b""
    while octets:
        size = int.from_bytes(octets[3:5], "big")
        body += octets[5 : 5 + size]
        octets = octets[5 + size :]
    packed = turns[1].octets[:3] + len(body).to_bytes(2, "big") + body
    turns = [turns[0], Turn(1, packed), *turns[2:]]
    assert Read(sent(turns, [(1, 300, 500)]), keylog).frames == Read(sent(talk10(), [])).frames


def test_a_server_hello_that_is_lost() -> None:
    """The client's change_cipher_spec is in the clear, although its keys are known already."""
    turns, _, keylog = recorded(talk10(), "TLS 1.3")
    read = Read(sent(turns, [whole(1)]), keylog)
    assert read.frames == Read(sent(talk10(), [])).frames and not read.notes


@pytest.mark.parametrize("layers", ["TLS 1.3", "WebSocket in TLS 1.3"])
def test_the_record_behind_a_finished_that_is_lost(layers: str) -> None:
    """It may be of the handshake, or carry the first application data: these are missing then."""
    turns, before, keylog = recorded(talk10(), layers)
    first = next(number for number, turn in enumerate(turns) if number > 1 and turn.direction == 0)
    data = next(number for number in range(first + 1, before + 1) if turns[number].direction == 0)
    finished = turns[first].octets.index(b"\x17\3\3")
    read = Read(sent(turns, [(first, finished + 9, 1 << 20), (data, 8, 20)]), keylog)
    assert not read.certain and read.frames[0] > 5


def test_more_records_are_lost_than_are_guessed() -> None:
    """What follows is not read, and a note says so."""
    d = Dialogue()
    d.linked(credit=3000)
    for _ in range(1200):
        d.client.transfer(settled=True)
    turns, before, keylog = recorded(turns_of(d), "TLS 1.3")
    read = Read(sent(turns, [whole(before + 20 + number) for number in range(1100)]), keylog)
    assert 10 < read.frames[0] < 30
    (note,) = read.notes
    assert "no record after them could be decrypted" in note.detail


@pytest.mark.parametrize(("size", "octets"), [(10, 20_000), (1448, 100_000)])
def test_a_search_ends(size: int, octets: int) -> None:
    """Octets that look like ever more records do not keep the search going."""
    turns, _, keylog = recorded(talk10()[:8], "TLS 1.3")
    harness = ConnectionHarness()
    secrets = harness.output.secrets
    secrets.take(keylog)
    for turn in turns:
        harness.send(turn.direction, turn.octets)
    harness.skip(1, 50_000)
    flood = b"\x17\3\3\x47\xff" * (octets // 5)
    harness.send(1, flood, each=size)
    harness.segment(0, b"")
    harness.packet += 3000
    harness.send(1, flood, each=size)
    harness.finish()
    assert MAX_TLS_TRIALS < secrets.trials < 3 * MAX_TLS_TRIALS
    assert any("no record after them could be decrypted" in note.detail for note in harness.output.notes)


# Frames that were found by searching


def inside(conversation: Conversation) -> bytes:
    """What the client says in a conversation."""
    return b"".join(said.octets for said in conversation.said if said.peer is conversation.client)


def test_a_faulty_frame_in_a_message() -> None:
    """The beginning of the transfer is lost. The search finds the frames that the message carries."""
    other = Dialogue()
    other.linked(credit=2)
    other.client.flow()
    faulty = bytes.fromhex("00000014 02000000 005313 c00604 40434313 40")
    d = Dialogue()
    d.linked(credit=10)
    turns = turns_of(d)
    body = bytes(20) + inside(other) + faulty + b"y" * 80
    d.client.transfer(payload=b"\0\x53\x75\xb0" + len(body).to_bytes(4, "big") + body)
    d.client.transfer()
    d.goodbye()
    turns = turns_of(d)
    large = max(range(len(turns)), key=lambda number: len(turns[number].octets))
    assert not Read(sent(turns, [])).certain
    read = Read(sent(turns, [(large, 0, 40)]))
    doubted = [one for one in read.findings if one.evidence.get("boundary_in_doubt")]
    assert not read.certain and doubted


def test_a_close_in_a_message() -> None:
    """The same with a close of AMQP 0-9-1, behind which the client goes on."""
    other = Dialogue091()
    other.opened()
    other.channel()
    other.client.close_connection()
    d = Dialogue091()
    d.opened()
    d.channel()
    d.declare()
    d.client.publish(bytes(20) + inside(other) + b"y" * 40)
    d.client.publish(b"on")
    d.client.publish(b"and on")
    turns = turns_of(d)
    large, at = next(
        (one, turn.octets.find(inside(other)))
        for one, turn in enumerate(turns)
        if inside(other) in turn.octets
    )
    assert not Read(sent(turns, [])).certain
    assert not Read(sent(turns, [(large, 0, at - 4)])).certain


def test_a_search_in_another_process() -> None:
    """What it has found goes with it."""
    d = Dialogue091()
    d.opened()
    header, start_ok = (said.octets for said in d.said[:3] if said.peer is d.client)
    found = []
    for reload in (False, True):
        one = Detection()
        one.begin(True)
        one.lose(64)
        one.take(64, header, 0, 8)
        if reload:
            one = Detection.load(one.dump())
        one.take(72, start_ok, 0, len(start_ok))
        found.append([(frame.name, int(frame.offset)) for frame in one.decoder("amqp091", False).frames])
    assert found[0] == found[1] and found[0][-1] == ("connection.start-ok", 72)
