"""WebSocket: stand-ins in its handshake and its frames, around the masked octets of what it carries.

The octets of one direction are taken in order. Headers of frames and the fields of the handshake that rules
look at stay; the payloads of binary messages are the masked octets of the stream within.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.cutting.masking import scrubbed
from amqpscope.cutting.stand_ins import StandIns
from amqpscope.layers.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    FrameHeader,
    Malformed,
    header_at,
    unmasked,
)
from amqpscope.layers.websocket.subprotocols import shown_name

__all__ = ["WebSocketMasker"]

_HEADER: Final = 14  # octets of the longest header of a frame
_CODE: Final = 2  # octets of the code of a close frame
_END: Final = b"\r\n\r\n"
_STAYS: Final = frozenset(
    {b"connection", b"upgrade", b"content-length", b"content-type", b"transfer-encoding"}
)
_OF_WEBSOCKET: Final = b"sec-websocket-"
_CREDENTIALS: Final = frozenset(
    {b"authorization", b"proxy-authorization", b"cookie", b"set-cookie", b"x-api-key"}
)
_FIELDS: Final = (
    frozenset(
        b"accept accept-encoding accept-language access-control-allow-origin age cache-control date expires "
        b"forwarded host keep-alive location origin pragma referer "
        b"server te user-agent vary via x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip".split()
    )
    | _CREDENTIALS
)
"""Names of header fields that everybody uses. They stay; any other name may be somebody's."""

_SUBPROTOCOLS: Final = b"sec-websocket-protocol"


class WebSocketMasker:
    """One direction. inner: gives the masked octets for some of the stream within, by their offset."""

    def __init__(self, stand_ins: StandIns, inner: Callable[[int, bytes], bytes]) -> None:
        self._stand_ins = stand_ins
        self._inner = inner
        self._head = b""  # its last octets; where it ends may be divided between segments
        self._in_head = True
        self._dead = False
        self._pending = b""
        self._frame: FrameHeader | None = None
        self._passed = 0
        self._binary = False
        self._given = 0

    def take(self, octets: bytes) -> bytes:
        """The next octets, masked."""
        if self._dead:
            return scrubbed(octets, self._stand_ins)
        if not self._in_head:
            return self._frames(octets)
        joined = self._head + octets
        end = joined.find(_END)
        if end < 0:
            self._head = joined[-3:]
            return self._masked_head(octets)
        self._in_head = False
        size = end + len(_END) - len(self._head)
        return self._masked_head(octets[:size]) + self._frames(octets[size:])

    def _masked_head(self, octets: bytes) -> bytes:
        """Lines of an HTTP head."""
        return b"\r\n".join(self._line(line) for line in octets.split(b"\r\n"))

    def _line(self, line: bytes) -> bytes:
        name, colon, value = line.partition(b":")
        plain = name.strip().lower()
        if not colon or b" HTTP/" in line:
            return self._stand_ins.text(line)
        if plain == _SUBPROTOCOLS:
            return name + colon + b",".join(self._subprotocol(word) for word in value.split(b","))
        if plain in _STAYS or plain.startswith(_OF_WEBSOCKET):
            return line
        shown = name if plain in _FIELDS else self._stand_ins.text(name)
        return shown + colon + self._stand_ins.text(value, plain in _CREDENTIALS)

    def _subprotocol(self, name: bytes) -> bytes:
        """It stays if it is known: one that nobody knows may be a token."""
        plain = name.strip().decode("latin-1")
        return name if shown_name(plain) == plain else self._stand_ins.text(name)

    def _frames(self, octets: bytes) -> bytes:
        """Octets of frames."""
        masked = bytearray(octets)
        at = 0
        while at < len(octets):
            if self._frame is None:
                held = len(self._pending)
                front = self._pending + octets[at : at + _HEADER]
                header = header_at(front, 0, len(front))
                if header is None:
                    self._pending = front
                    break
                if isinstance(header, Malformed):
                    self._dead = True
                    masked[at:] = scrubbed(octets[at:], self._stand_ins)
                    break
                self._begin(header)
                at += int(header.size) - held
            at = self._payload(octets, masked, at)
        return bytes(masked)

    def _begin(self, header: FrameHeader) -> None:
        self._pending = b""
        self._frame = header
        self._passed = 0
        if not header.control and header.opcode != CONTINUATION:
            self._binary = header.opcode == BINARY

    def _payload(self, octets: bytes, masked: bytearray, at: int) -> int:
        """The payload of the frame, as far as it is there. Gives the index behind it."""
        frame = self._frame
        assert frame is not None
        end = min(len(octets), at + int(frame.length) - self._passed)
        plain = unmasked(octets[at:end], frame.key, self._passed)
        if frame.control:
            stays = max(_CODE - self._passed, 0) if frame.opcode == CLOSE else 0
            found = plain[:stays] + self._stand_ins.binary(plain[stays:])
        elif self._binary:
            found = self._inner(self._given, plain)
            self._given += len(plain)
        else:
            found = self._stand_ins.binary(plain)
        masked[at:end] = unmasked(found, frame.key, self._passed)
        self._passed += end - at
        if self._passed == frame.length:
            self._frame = None
        return end
