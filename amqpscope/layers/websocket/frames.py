"""The header of a WebSocket frame (RFC 6455, section 5.2)."""

from typing import Final

from amqpscope.model.websocket_faults import CONTROL, LENGTH, OPCODE, RESERVED_BIT

__all__ = ["BINARY", "CLOSE", "CONTINUATION", "TEXT", "FrameHeader", "Malformed", "header_at", "unmasked"]

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

    @property
    def shortest(self) -> bool:
        """Whether the length is written with as few octets as it can be."""
        wide = self.size - 2 - len(self.key)
        return self.length > {0: -1, 2: 125, 8: 0xFFFF}[wide]


class Malformed:
    """What stands where a header has to be, and is none.

    fault: the name of the fault. message: what is wrong.
    """

    def __init__(self, fault: str, message: str) -> None:
        self.fault = fault
        self.message = message


def header_at(buf: bytes | bytearray, at: int, end: int) -> FrameHeader | Malformed | None:
    """The header at buf[at:end]; None if it is not whole yet, `Malformed` if there cannot be one."""
    if end - at < 2:
        return None
    first, second = buf[at], buf[at + 1]
    if first & 0x30:
        return Malformed(
            RESERVED_BIT, "a WebSocket frame has a reserved bit set, but no agreed extension defines this bit"
        )
    if first & 0x0F not in _OPCODES:
        return Malformed(OPCODE, f"a WebSocket frame has the reserved opcode {first & 0x0F}")
    length = second & 0x7F
    if first & 0x08 and not first & 0x80:
        return Malformed(CONTROL, f"a control frame (opcode {first & 0x0F}) is fragmented")
    if first & 0x08 and length > 125:
        return Malformed(CONTROL, f"a control frame (opcode {first & 0x0F}) has more than 125 octets")
    wide = {126: 2, 127: 8}.get(length, 0)
    masked = 4 if second & 0x80 else 0
    size = 2 + wide + masked
    if end - at < size:
        return None
    if wide:
        length = int.from_bytes(buf[at + 2 : at + 2 + wide], "big")
        if length > _LARGEST:
            return Malformed(
                LENGTH if length >> 63 else "",
                (f"the header of a WebSocket frame announces an impossible length of {length} octets"),
            )
    return FrameHeader(size, first, length, bytes(buf[at + 2 + wide : at + size]))


def unmasked(octets: bytes, key: bytes, position: int) -> bytes:
    """The octets at this position of a payload, without the mask."""
    if not key or not octets:
        return octets
    turn = position % 4
    mask = ((key[turn:] + key[:turn]) * (len(octets) // 4 + 1))[: len(octets)]
    return (int.from_bytes(octets, "big") ^ int.from_bytes(mask, "big")).to_bytes(len(octets), "big")
