"""What puts stand-ins into the frames of one protocol.

A `Masker` takes the frames of one direction of a connection in order and gives octets of the same size for
the places of its stream. It walks over the octets themselves, not over decoded values, so that every encoding
stays as it is. Octets behind something that cannot be read are only searched for texts (`scrubbed`).
"""

import re
from typing import Final

from amqpscope.cutting.stand_ins import StandIns
from dissectors.interface import Frame

__all__ = ["MalformedError", "Masker", "Place", "in_places", "scrubbed"]

Place = tuple[int, bytes]
"""An offset in a stream, and the octets that stand there in the anonymised capture."""

_READABLE: Final = re.compile(rb"(?:[A-Za-z0-9\x80-\xff]\0?){3,}")
_NO_TEXT: Final = re.compile("([\udc80-\udcff]+)")


class MalformedError(Exception):
    """Octets cannot be walked over. at: from where."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Masker:
    """Masks what one direction of a connection says. This one only searches frames for texts."""

    def __init__(self, stand_ins: StandIns) -> None:
        self.stand_ins = stand_ins

    def take(self, frame: Frame) -> list[Place]:
        """The next frame: what is known by now of the octets in its place and in those of frames before."""
        return [(int(frame.offset), scrubbed(frame.raw, self.stand_ins))]

    def finish(self) -> list[Place]:
        """No frame follows: the rest."""
        return []


def in_places(masked: bytes, parts: list[Place]) -> list[Place]:
    """What was masked as one, cut into the places of its parts."""
    places: list[Place] = []
    at = 0
    for offset, octets in parts:
        places.append((offset, masked[at : at + len(octets)]))
        at += len(octets)
    return places


def scrubbed(octets: bytes, stand_ins: StandIns) -> bytes:
    """Octets that cannot be read, with each readable text in them replaced, also one in UTF-16."""
    return _READABLE.sub(lambda found: _replaced(found[0], stand_ins), octets)


def _replaced(octets: bytes, stand_ins: StandIns) -> bytes:
    # What is no UTF-8 may be no text, but belong to the encoding.
    letters = _NO_TEXT.split(octets.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    letters[::2] = [stand_ins.text(text.encode()).decode() for text in letters[::2]]
    replaced = iter("".join(letters).encode("utf-8", "surrogateescape"))
    return bytes(octet and next(replaced) for octet in octets)
