"""Where the frames of one stream end, and what they are called: enough to put a fault at one of them.

A stream that is no plain AMQP (TLS, WebSocket), or that breaks the frame format, has no frames from there on.
"""

from typing import Final

from dissectors.amqp091.registry import METHODS, new_method
from dissectors.amqp10.performatives import CLOSE, OPEN
from dissectors.amqp10.registry import COMPOSITES
from dissectors.amqp10.sasl import SASL_MECHANISMS, SASL_OUTCOME

__all__ = ["FRAME_NAMES", "FrameNames"]

_PERFORMATIVES: Final = {
    composite.code: composite.name
    for composite in COMPOSITES
    if OPEN.code <= composite.code <= CLOSE.code
    or SASL_MECHANISMS.code <= composite.code <= SASL_OUTCOME.code
}
"""The names of the bodies of frames of AMQP 1.0, by descriptor."""

_OTHERS: Final = {2: "content-header", 3: "body", 8: "heartbeat"}
"""The frames of AMQP 0-9-1 that have no method, by type."""

FRAME_NAMES: Final = frozenset(
    (*_PERFORMATIVES.values(), *_OTHERS.values(), *(method.name for method in METHODS), "empty", "header")
)
"""The names that frames can have, as `read` shows them."""

_HEADER: Final = 8
_LOOKED_AT: Final = 18
"""Octets of a frame that tell its name: the frame header, and a descriptor as a number."""


class FrameNames:
    """Takes the octets of one stream in order."""

    def __init__(self) -> None:
        self._lost = False
        self._version = 0  # 10 or 91, 0 before a protocol header
        self._begin = b""  # the first octets of the frame at hand
        self._left = 0  # octets of it that have not come yet, once its size is known

    def take(self, octets: bytes) -> list[tuple[int, str]]:
        """The frames that these octets complete: where in `octets` each ends, and its name, "" if unknown."""
        found: list[tuple[int, str]] = []
        at = 0
        while at < len(octets) and not self._lost:
            if self._left:
                size = min(self._left, len(octets) - at)
                self._begin += octets[at : at + min(size, _LOOKED_AT - len(self._begin))]
                self._left -= size
                at += size
            else:
                self._begin += octets[at : at + 1]
                at += 1
                if len(self._begin) == (7 if self._version == 91 and self._begin[:1] != b"A" else 8):
                    self._measure()
                    if self._left or self._lost:
                        continue
                else:
                    continue
            if not self._left:
                found.append((at, self._name()))
                self._begin = b""
        return found

    def _measure(self) -> None:
        """The frame header at hand is complete: how many octets follow."""
        begin = self._begin
        if begin[:4] == b"AMQP":
            self._version = 91 if begin[4:] == b"\0\0\x09\x01" else 10 if begin[4] in (0, 3) else 0
            self._lost = not self._version
        elif self._version == 10:
            self._left = int.from_bytes(begin[:4], "big") - _HEADER
            self._lost = self._left < 0 or begin[4] < 2
        elif self._version == 91:
            self._left = int.from_bytes(begin[3:7], "big") + 1
        else:
            self._lost = True

    def _name(self) -> str:
        begin = self._begin
        if begin[:4] == b"AMQP":
            return "header"
        if self._version == 91:
            if begin[0] != 1 or len(begin) < 11:
                return _OTHERS.get(begin[0], "")
            method = new_method(int.from_bytes(begin[7:9], "big"), int.from_bytes(begin[9:11], "big"))
            return "" if method is None else method.title()
        if len(begin) == _HEADER:
            return "empty"
        if begin[4] != 2 or len(begin) < 11 or begin[8] != 0:
            return ""
        if begin[9] == 0x53:
            return _PERFORMATIVES.get(begin[10], "")
        return _PERFORMATIVES.get(int.from_bytes(begin[10:18], "big"), "") if begin[9] == 0x80 else ""
