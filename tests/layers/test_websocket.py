"""AMQP in WebSocket, alone and with TLS, CONNECT and PROXY around it: read as in the clear."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path

import pytest
from support.connection_harness import ConnectionHarness
from support.tls import Ends, TlsRecording, Turn
from typer.testing import CliRunner

from amqpscope.cli.main import app

from .test_tls import Read, talk

REQUEST = (
    b"GET /$servicebus/websocket?sig=S3CRET HTTP/1.1\r\nHost: broker.example\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nAuthorization: Bearer T0KEN\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: AMQPWSB10, amqp\r\n\r\n"
)
ANSWER = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: amqp\r\n%s\r\n"
)
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate%s\r\n"
CONNECT = [
    Turn(0, b"CONNECT broker.example:443 HTTP/1.1\r\nHost: broker.example:443\r\n\r\n"),
    Turn(1, b"HTTP/1.1 200 Connection established\r\n\r\n"),
]
KEY = b"\x11\x22\x33\x44"


def frame(octets: bytes, direction: int, first: int = 0x82) -> bytes:
    size = len(octets)
    if size > 0xFFFF:
        length = b"\x7f" + size.to_bytes(8, "big")
    else:
        length = bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
    if direction == 0:
        length = bytes((length[0] | 0x80,)) + length[1:] + KEY
        octets = bytes(octet ^ KEY[at % 4] for at, octet in enumerate(octets))
    return bytes((first,)) + length + octets


class Deflater:
    def __init__(self, takeover: bool) -> None:
        self.takeover = takeover
        self.state = zlib.compressobj(wbits=-15)

    def __call__(self, octets: bytes) -> bytes:
        made = self.state.compress(octets) + self.state.flush(zlib.Z_SYNC_FLUSH)
        if not self.takeover:
            self.state = zlib.compressobj(wbits=-15)
        return made[:-4]


def wrapped(turns: list[Turn], deflate: str = "", extra: bool = False) -> list[Turn]:
    """The same in WebSocket. deflate: `takeover` or `none`. extra: with pings between, and fragments."""
    parameters = b"; client_no_context_takeover; server_no_context_takeover" if deflate == "none" else b""
    extension = DEFLATE % parameters if deflate else b""
    request = REQUEST[:-2] + DEFLATE % b"" + b"\r\n" if deflate else REQUEST
    found = [Turn(0, request), Turn(1, ANSWER % extension)]
    deflaters = [Deflater(deflate == "takeover") for _ in (0, 1)]
    for direction, octets in turns:
        rsv = 0x40 if deflate else 0
        if deflate:
            octets = deflaters[direction](octets)
        if extra and len(octets) > 3:
            half = len(octets) // 2
            first, second = octets[:half], octets[half:]
            made = frame(first, direction, 0x02 | rsv) + frame(b"ping", direction, 0x89)
            found.append(Turn(direction, made + frame(second, direction, 0x80)))
        else:
            found.append(Turn(direction, frame(octets, direction, 0x82 | rsv)))
    return found


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("deflate", ["", "takeover", "none"])
def test_frames_and_findings_are_those_of_the_clear_twin(deflate: str, extra: bool) -> None:
    turns = talk()
    clear, read = Read(turns), Read(wrapped(turns, deflate, extra), shift=2)
    assert clear.findings and read.frames == clear.frames and read.findings == clear.findings
    assert read.notes == []
    facts = read.connection.websocket
    assert facts is not None and (facts.subprotocol, facts.deflate) == ("amqp", bool(deflate))
    assert facts.offered == ["AMQPWSB10", "amqp"] and facts.status == 101


@pytest.mark.parametrize("deflate", ["", "takeover", "none"])
@pytest.mark.parametrize(("each", "reload"), [(1, False), (7, True), (100, True)])
def test_frames_over_segments(deflate: str, each: int, reload: bool) -> None:
    turns = talk()
    clear, harness = ConnectionHarness(), ConnectionHarness(reload=reload)
    for turn in wrapped(turns, deflate, True):
        harness.send(turn.direction, turn.octets, each=each)
    for turn in turns:
        clear.send(turn.direction, turn.octets)
    for one in (clear, harness):
        one.finish()
    assert [(one.direction, one.frame.name, one.frame.offset) for one in harness.out] == [
        (one.direction, one.frame.name, one.frame.offset) for one in clear.out
    ]
    assert harness.connection.protocol == "amqp10"


@pytest.mark.parametrize("deflate", ["", "none"])
def test_each_turn_lost_once(deflate: str) -> None:
    turns = talk()
    layered = wrapped(turns, deflate)
    for lost in range(2, len(layered)):
        clear, read = Read(turns, lost=lost - 2), Read(layered, shift=2, lost=lost)
        names = [
            [(one[0], one[1], one[4]) for one in each.frames if one[1] != "skipped"] for each in (clear, read)
        ]
        assert names[0] == names[1], lost
        certain = {one[:4] for one in clear.findings if one[1]}
        assert {one[:4] for one in read.findings if one[1]} <= certain, lost


def test_a_loss_where_messages_refer_to_each_other() -> None:
    """Behind it nothing of that direction can be read, and nobody is accused."""
    layered = wrapped(talk(), "takeover")
    known = {one[0] for one in Read(talk()).findings}
    for lost in range(2, len(layered)):
        read = Read(layered, shift=2, lost=lost)
        assert {one[0] for one in read.findings if one[1]} <= known
        assert [note.code for note in read.notes][:1] in (["capture/gap"], ["capture/websocket"], [])


def test_in_tls_through_a_proxy() -> None:
    pytest.importorskip("cryptography")
    turns = talk()
    recording = TlsRecording(Ends.make("1.3"))
    for turn in wrapped(turns):
        recording.say(turn.direction, turn.octets)
    read = Read([*CONNECT, *recording.turns], recording.keylog, shift=recording.handshake + 4)
    clear = Read(turns)
    assert read.frames == clear.frames and read.findings == clear.findings
    details = [note.detail for note in read.notes]
    assert details == ["an HTTP proxy connects the client with broker.example:443"]


def test_a_proxy_that_demands_credentials_first() -> None:
    """The first CONNECT is refused, with a body in pieces. The second one opens the tunnel."""
    turns = talk()
    again = CONNECT[0].octets[:-2] + b"Proxy-Authorization: Basic UzNDUkVUOlQwS0VO\r\n\r\n"
    head = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 9\r\n\r\n"
    refused = [CONNECT[0], Turn(1, head + b"AMQP"), Turn(1, b"\0\1\0\0!"), Turn(0, again), CONNECT[1]]
    clear, read = Read(turns), Read([*refused, *turns], shift=5)
    frames = [[(*frame[:2], *frame[3:5]) for frame in one.frames] for one in (clear, read)]
    assert frames[0] == frames[1] and read.findings == clear.findings
    assert [note.detail for note in read.notes] == [
        "an HTTP proxy requires credentials (407)",
        "an HTTP proxy connects the client with broker.example:443",
    ]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "The endpoint does not exist. TrackingId:1"),
        (426, "Upgrade Required"),
    ],
)
def test_a_refusal(tmp_path: Path, status: int, reason: str) -> None:
    answer = f"HTTP/1.1 {status} {reason}\r\nContent-Length: 4\r\n\r\nno\r\n".encode()
    read = Read([Turn(0, REQUEST), Turn(1, answer)])
    facts = read.connection.websocket
    assert facts is not None and (facts.status, facts.reason) == (status, reason)
    assert read.frames == [] and read.connection.protocol == "http"
    path = tmp_path / "a.pcap"
    path.write_bytes(read.octets)
    for command in (["summary", "--all"], ["why", "--end"]):
        text = CliRunner().invoke(app, [*command, str(path)]).stdout
        assert f"server refused the upgrade to WebSocket: {status} {reason}" in " ".join(text.split())


V1 = b"PROXY TCP4 203.0.113.77 10.20.30.4 50000 5671\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x4d\x0a\x14\x1e\x04\xc3\x50\x16\x27"


@pytest.mark.parametrize("segment", [0, 7])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("inside", ["", "WebSocket"])
@pytest.mark.parametrize("front", [[Turn(0, V1)], [Turn(0, V2)], CONNECT, [Turn(0, V1), *CONNECT]])
def test_tls_behind_what_stands_in_front(front: list[Turn], inside: str, version: str, segment: int) -> None:
    """PROXY in either version, CONNECT, and both: the frames and findings are those of the clear twin."""
    pytest.importorskip("cryptography")
    turns = talk()
    recording = TlsRecording(Ends.make(version))
    for turn in wrapped(turns) if inside else turns:
        recording.say(turn.direction, turn.octets)
    read = Read([*front, *recording.turns], recording.keylog, segment=segment)
    clear = Read(turns)
    said = [[(frame[0], frame[1], frame[3]) for frame in one.frames] for one in (read, clear)]
    found = [[(one[0], one[1], one[2], one[4]) for one in of.findings] for of in (read, clear)]
    assert said[0] == said[1] and found[0] == found[1] and clear.findings
    assert not read.connection.encrypted
    source = read.connection.proxy
    assert (source is not None and source[2] == "203.0.113.77") == (front[0].octets[:1] in b"P\r")


@pytest.mark.parametrize(
    "command", [["read", "-vv"], ["summary", "--all"], ["summary", "--format", "json"], ["check"]]
)
def test_no_token_is_shown(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(Read([*CONNECT, *wrapped(talk())], shift=4).octets)
    result = CliRunner().invoke(app, [*command, str(path)])
    shown = result.stdout + result.stderr
    assert shown and "S3CRET" not in shown and "T0KEN" not in shown
    if command == ["summary", "--all"]:
        assert "WebSocket, subprotocol amqp\n" in shown
    if "json" in command:
        found = json.loads(result.stdout)["connections"][0]["websocket"]
        assert found["subprotocol"] == "amqp" and found["status"] == 101 and found["closes"] == []


@pytest.mark.parametrize(
    "turns",
    [
        [Turn(0, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Turn(1, b"HTTP/1.1 200 OK\r\n\r\n")],
        [Turn(0, b"CONNECT a:1 HTTP/1.1\r\n\r\n"), Turn(1, b"HTTP/1.1 407 No\r\n\r\n")],
        [Turn(0, b"GET / HTTP/1.1\r\n"), Turn(1, b"AMQP\0\1\0\0")],
        [Turn(0, b"GE")],
    ],
)
def test_other_http(turns: list[Turn]) -> None:
    read = Read(turns)
    assert read.connection.websocket is None
    assert not [one for one in read.frames if one[1] == "open"]


def test_a_bomb() -> None:
    """A hundred kilobytes that would be a hundred megabytes are given up."""
    bomb = zlib.compressobj(9, wbits=-15)
    octets = bomb.compress(bytes(90_000_000)) + bomb.flush(zlib.Z_SYNC_FLUSH)
    harness = ConnectionHarness()
    for turn in (Turn(0, REQUEST), Turn(1, ANSWER % (DEFLATE % b""))):
        harness.send(turn.direction, turn.octets)
    harness.send(0, frame(b"AMQP\0\1\0\0", 0, 0x82))
    harness.send(0, frame(octets[:-4], 0, 0xC2), each=60_000)
    harness.finish()
    facts = harness.connection.websocket
    assert (
        facts is not None and facts.unread == "the decompressed messages exceed the size limit of amqpscope"
    )


def test_octets_that_are_changed() -> None:
    """Nothing is raised whatever the octets are, also on the way to another process."""
    chance = random.Random(3)
    for turn in range(40):
        layered = wrapped(talk(), chance.choice(["", "takeover", "none"]), chance.random() < 0.5)
        harness = ConnectionHarness(reload=turn % 4 == 0)
        for number, (direction, octets) in enumerate(layered):
            changed = bytearray(octets)
            if chance.random() < 0.15:
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            if number > 2 and chance.random() < 0.05:
                harness.skip(direction, len(changed))
            else:
                harness.send(direction, bytes(changed), each=chance.choice((0, 5, 50)))
        harness.finish()
        assert not [note for note in harness.notes if note.code.startswith("internal")]
