"""The header of a WebSocket frame (RFC 6455, section 5.2)."""

from typing import Final

__all__ = ["BINARY", "CLOSE", "CONTINUATION", "FrameHeader", "header_at"]

CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8

_OPCODES: Final = (CONTINUATION, TEXT, BINARY, CLOSE, 9, 10)

_LARGEST: Final = 1 << 40
"""Octets of a payload that is believed."""


class FrameHeader:
    """A header. size: of itself. final: the message ends here. compressed: RSV1 is set. opcode: of a message,
    or of a control frame. length: of the payload. key: the mask, b"" for none.
    """

    def __init__(self, size: int, first: int, length: int, key: bytes) -> None:
        self.size = size
        self.final = first & 0x80 != 0
        self.compressed = first & 0x40 != 0
        self.opcode = first & 0x0F
        self.length = length
        self.key = key

    @property
    def control(self) -> bool:
        return self.opcode >= CLOSE


def header_at(buf: bytes | bytearray, at: int, end: int) -> FrameHeader | int:
    """The header at buf[at:end]; 0 if it is not whole yet, -1 if there cannot be one."""
    if end - at < 2:
        return 0
    first, second = buf[at], buf[at + 1]
    if first & 0x30 or first & 0x0F not in _OPCODES:
        return -1
    length = second & 0x7F
    if first & 0x08 and (length > 125 or not first & 0x80):
        return -1
    wide = {126: 2, 127: 8}.get(length, 0)
    masked = 4 if second & 0x80 else 0
    size = 2 + wide + masked
    if end - at < size:
        return 0
    if wide:
        length = int.from_bytes(buf[at + 2 : at + 2 + wide], "big")
        if length > _LARGEST:
            return -1
    return FrameHeader(size, first, length, bytes(buf[at + 2 + wide : at + size]))


def unmasked(octets: bytes, key: bytes, position: int) -> bytes:
    """The octets at this position of a payload, without the mask."""
    if not key or not octets:
        return octets
    turn = position % 4
    mask = ((key[turn:] + key[:turn]) * (len(octets) // 4 + 1))[: len(octets)]
    return (int.from_bytes(octets, "big") ^ int.from_bytes(mask, "big")).to_bytes(len(octets), "big")
