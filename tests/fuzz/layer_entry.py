"""The fuzz entries of layers: TLS and WebSocket around a conversation, and what stands in front of one,
whatever their octets.

The TLS is written here: hellos with fixed randoms, and records of two fixed secrets.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import zlib
from typing import Any

from support.segments import captured

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.model.records import Connection

__all__ = ["KNOWN_LINES", "RANDOM", "heads", "layers", "read_with", "tls_turns"]

Turn = tuple[int, bytes, int]
"""Direction, octets, and how many octets are missing before them."""

_KEY = bytes((10, 0, 0, 1, 10, 0, 0, 2)) + (51034).to_bytes(2, "big") + (5671).to_bytes(2, "big")
RANDOM = bytes(range(32))
_SECRETS = (b"\x01" * 32, b"\x02" * 32)
_LABELS = (b"CLIENT_TRAFFIC_SECRET_0", b"SERVER_TRAFFIC_SECRET_0")
KNOWN_LINES = b"\n".join(
    b"%s %s %s" % (label, RANDOM.hex().encode(), secret.hex().encode())
    for label, secret in zip(_LABELS, _SECRETS, strict=True)
)
"""The key log of the TLS that is written here."""
_MASK = b"\x11\x22\x33\x44"
_HEADS = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: amqp\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: amqp\r\n%s\r\n",
)
_DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
_FRAMES = (
    b"AMQP\0\1\0\0",
    b"\0\0\0\x0d\2\0\0\0\0\x53\x10\x45" + b"\0",
    b"\0\0\0\x0c\2\0\0\0\0\x53\x18\x45",
    b"\0\0\0\x08\2\0\0\0",
)


def _expanded(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label, of one block at most."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes((len(label),)) + label + b"\0\x01"
    return hmac.digest(secret, info, hashlib.sha256)[:size]


class _Tls:
    """The writer of one direction, of TLS_AES_128_GCM_SHA256."""

    def __init__(self, direction: int) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        secret = _SECRETS[direction]
        self._aead = AESGCM(_expanded(secret, b"key", 16))
        self._iv = int.from_bytes(_expanded(secret, b"iv", 12), "big")
        self._number = 0

    def __call__(self, octets: bytes) -> bytes:
        header = b"\x17\x03\x03" + (len(octets) + 17).to_bytes(2, "big")
        nonce = (self._iv ^ self._number).to_bytes(12, "big")
        self._number += 1
        return header + self._aead.encrypt(nonce, octets + b"\x17", header)


class _WebSocket:
    """The writer of one direction."""

    def __init__(self, direction: int, deflate: bool) -> None:
        self._direction = direction
        self._deflater = zlib.compressobj(wbits=-15) if deflate else None

    def __call__(self, octets: bytes) -> bytes:
        first = 0x82
        if self._deflater is not None:
            octets = (self._deflater.compress(octets) + self._deflater.flush(zlib.Z_SYNC_FLUSH))[:-4]
            first = 0xC2
        octets = octets[:60000]
        size = len(octets)
        length = bytes((size,)) if size < 126 else b"\x7e" + size.to_bytes(2, "big")
        if self._direction == 0:
            length = bytes((length[0] | 0x80,)) + length[1:] + _MASK
            octets = bytes(octet ^ _MASK[at % 4] for at, octet in enumerate(octets))
        return bytes((first,)) + length + octets


def _hello(kind: int, rest: bytes) -> bytes:
    body = b"\x03\x03" + RANDOM + b"\0" + rest
    message = bytes((kind,)) + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x03" + len(message).to_bytes(2, "big") + message


def _turns(program: bytes) -> list[Turn]:
    """The first octet says which layers there are. An operation is an octet (bit 0: direction; bits 1 to 3:
    what; bits 4 to 7: which frame) and its arguments.
    """
    kind = program[0] if program else 0
    wrap: list[list[Any]] = [[], []]
    turns: list[Turn] = []

    def say(direction: int, octets: bytes, missing: int = 0) -> None:
        turns.append((direction, octets, missing))

    def wrapped(direction: int, octets: bytes) -> bytes:
        for each in reversed(wrap[direction]):
            octets = each(octets)
        return octets

    if kind & 1 and importlib.util.find_spec("cryptography"):
        say(0, _hello(1, b"\0\x02\x13\x01\x01\0\0\0"))
        say(1, _hello(2, b"\x13\x01\0\0\x06\0\x2b\0\x02\x03\x04"))
        for direction in (0, 1):
            wrap[direction].append(_Tls(direction))
    if kind & 2:
        heads = (_HEADS[0], _HEADS[1] % (_DEFLATE if kind & 4 else b""))
        for direction in (0, 1):
            say(direction, wrapped(direction, heads[direction]))
        for direction in (0, 1):
            wrap[direction].append(_WebSocket(direction, kind & 4 > 0))
    at = 1
    while at < len(program):
        operation = program[at]
        direction, what, which = operation & 1, operation >> 1 & 7, operation >> 4
        arguments = program[at + 1 : at + 1 + which * 4]
        at += 1 if what < 3 else 1 + len(arguments)
        if what < 3:
            say(direction, wrapped(direction, _FRAMES[which & 3]))
        elif what == 3:
            say(direction, wrapped(direction, arguments))
        elif what == 4:
            say(direction, arguments)
        elif what == 5:
            say(direction, wrapped(direction, _FRAMES[which & 3])[: len(arguments) or 1])
        elif what == 6:
            say(direction, b"", len(wrapped(direction, arguments)))
        else:
            octets = bytearray(wrapped(direction, _FRAMES[which & 3]))
            octets[zlib.crc32(arguments) % len(octets)] ^= 1
            say(direction, bytes(octets))
    return turns


def tls_turns() -> list[Turn]:
    """A small conversation in TLS."""
    return _turns(bytes((1, 0, 1, 0x10, 0x11, 0x20, 0x21)))


def read_with(turns: list[Turn], keylog: bytes, move_after: int = -1) -> list[Any]:
    """Direction, name, offset, packet and acknowledgement of each frame. move_after: the packet after which
    the analysis moves to another process.
    """
    output = AnalysisOutput(judge=True)
    output.secrets.take(keylog)
    analysis = ConnectionAnalysis(Connection("capture", 0, 0, _KEY), output)
    sent = [0, 0]
    for packet, (direction, octets, missing) in enumerate([(0, b"", -1), (1, b"", -1), *turns], 1):
        if packet == move_after:
            state = analysis.dump()
            analysis = ConnectionAnalysis.load(state, output)
            assert repr(analysis.dump()) == repr(state)
        begins = missing < 0
        sent[direction] += max(missing, 0)
        ack = -1 if begins and direction == 0 else 1001 + sent[1 - direction]
        segment = captured(
            octets,
            packet=packet,
            time=packet * 1_000_000,
            seq=1000 if begins else 1001 + sent[direction],
            ack=ack,
            flags=(2 if direction == 0 else 18) if begins else 16,
        )
        sent[direction] += len(octets)
        analysis.tcp.segment(direction, segment)
    analysis.finish("capture")
    assert output.records is not None
    return [
        (int(one.direction), one.frame.name, int(one.frame.offset), int(one.packet), int(one.acknowledged))
        for one in output.records
    ]


def layers(octets: bytes) -> None:
    """A conversation in TLS, WebSocket or both: moved to another process in the middle it reads the same."""
    turns = _turns(octets)
    moved = 1 + zlib.crc32(octets) % (len(turns) + 2)
    assert read_with(turns, KNOWN_LINES, moved) == read_with(turns, KNOWN_LINES)


def heads(octets: bytes) -> None:
    """Whatever stands in front of a conversation, such as PROXY, CONNECT and their answers.

    The first two octets are the size of what the client says first, the next two that of what the server
    answers. All is the same in any pieces, and moved to another process in the middle.
    """
    sizes = int.from_bytes(octets[:2], "big"), int.from_bytes(octets[2:4], "big")
    said = octets[4 : 4 + sizes[0]], octets[4 + sizes[0] :][: sizes[1]]
    frames: list[Turn] = [(direction, one, 0) for one in _FRAMES for direction in (0, 1)]
    turns = [(direction, one, 0) for direction, one in enumerate(said) if one] + frames
    whole = read_with(turns, KNOWN_LINES)
    assert read_with(turns, KNOWN_LINES, 1 + zlib.crc32(octets) % (len(turns) + 2)) == whole
    piece = 1 + zlib.crc32(octets) % 7
    cut = [
        (direction, one[at : at + piece], 0)
        for direction, one, _ in turns
        for at in range(0, len(one), piece)
    ]
    assert [one[:3] for one in read_with(cut, KNOWN_LINES)] == [one[:3] for one in whole]
