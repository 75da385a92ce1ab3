"""AMQP 0-9-1: stand-ins in methods, content headers and bodies.

Which arguments name something follows from the types of the specification's own tables: short strings, long
strings and tables are masked, but for those in `_STAYS`; numbers and bits stay.
"""

from typing import Final

from amqpscope.cutting.masking import MalformedError, Masker, Place, in_places, scrubbed
from amqpscope.cutting.stand_ins import StandIns
from amqpscope.limits import MAX_MASKED_MESSAGE
from dissectors.amqp091 import methods
from dissectors.amqp091.arguments import ArgumentField, MethodType
from dissectors.amqp091.tables import (
    LONG_STRING,
    NO_TAG,
    PRINTED,
    RABBITMQ,
    SHORT_STRING,
    fixed_width,
    sound_table,
)
from dissectors.interface import Frame
from dissectors.limits import MAX_DEPTH

__all__ = ["Masker091"]

_STAYS: Final = frozenset({"mechanism", "mechanisms", "locale", "locales"})
"""Arguments whose values are not names."""

_PRIVATE: Final = frozenset({"user-id", "message-id", "correlation-id"})
"""Arguments in which no word is a standard one."""

_OF_PEERS: Final = frozenset({"server-properties", "client-properties"})
"""Tables that tell what a peer is."""

_PEER_FACTS: Final = frozenset({b"product", b"version", b"platform", b"copyright", b"information"})
"""Keys of these tables whose values stay."""

_WIDTHS: Final = {"octet": 1, "short": 2, "long": 4, "longlong": 8, "timestamp": 8}
_METHODS: Final = {
    (int(one.class_id), int(one.method_id)): one
    for one in vars(methods).values()
    if isinstance(one, MethodType)
}
_PROPERTIES: Final = methods.BASIC_PROPERTIES.fields
_FRAME_END: Final = b"\xce"  # section 4.2.3
_HEAD: Final = 7  # octets of a frame before its payload
_CONTENT_HEAD: Final = 12  # of a content header before its flags
_NUMBERS: Final = b"uIilLfdD"


class Masker091(Masker):
    """One direction."""

    def __init__(self, stand_ins: StandIns) -> None:
        super().__init__(stand_ins)
        # Of each channel, what is there of the body of a content under way.
        self._bodies: dict[int, list[Place]] = {}
        self._octets = 0

    def take(self, frame: Frame) -> list[Place]:
        octets = frame.raw
        offset = int(frame.offset)
        channel = int(frame.channel)
        if frame.kind == "header":
            return [(offset, octets)]
        if frame.kind == "body" and not frame.garbled():
            end = len(octets) - int(frame.trailer)
            self._bodies.setdefault(channel, []).append((offset + _HEAD, octets[_HEAD:end]))
            self._octets += max(end - _HEAD, 0)
            places = [(offset, octets[:_HEAD]), (offset + end, octets[end:])]
            return places + (self._ended(channel) if self._octets > MAX_MASKED_MESSAGE else [])
        if frame.kind == "method":
            places = self._ended(channel)
            return [*places, (offset, _Walk(octets, self.stand_ins).method())]
        if frame.kind == "content-header":
            places = self._ended(channel)
            return [*places, (offset, _Walk(octets, self.stand_ins).content_header())]
        end = len(octets) - octets.endswith(_FRAME_END)
        return [(offset, octets[:_HEAD] + scrubbed(octets[_HEAD:end], self.stand_ins) + octets[end:])]

    def finish(self) -> list[Place]:
        return [place for channel in list(self._bodies) for place in self._ended(channel)]

    def _ended(self, channel: int) -> list[Place]:
        """All that there is of a body, masked as one, in the places of its parts."""
        parts = self._bodies.pop(channel, None)
        if not parts:
            return []
        whole = b"".join(octets for _, octets in parts)
        self._octets -= len(whole)
        if whole:
            self.stand_ins.count("bodies")
        return in_places(self.stand_ins.body(whole), parts)


class _Walk:
    """Goes over the arguments of one frame, and masks what names something."""

    def __init__(self, octets: bytes, stand_ins: StandIns) -> None:
        self._octets = octets
        self._masked = bytearray(octets)
        self._stand_ins = stand_ins
        self._end = len(octets)
        self._dialect = RABBITMQ
        # The values of tables are credentials.
        self._private = False
        if octets.endswith(_FRAME_END):
            self._end -= 1

    def method(self) -> bytes:
        """The frame of a method, masked."""
        octets = self._octets
        at = _HEAD + 4
        kind = int.from_bytes(octets[_HEAD : _HEAD + 2], "big"), int.from_bytes(octets[_HEAD + 2 : at], "big")
        known = _METHODS.get(kind)
        return self._arguments(at, () if known is None else known.fields)

    def content_header(self) -> bytes:
        """The frame of a content header, masked."""
        at = _HEAD + _CONTENT_HEAD
        flags: list[bool] = []
        more = True
        while more and at + 2 <= self._end:
            word = int.from_bytes(self._octets[at : at + 2], "big")
            flags += [word >> bit & 1 == 1 for bit in range(15, 0, -1)]
            more = word & 1 == 1
            at += 2
        there = [field for field, present in zip(_PROPERTIES, flags, strict=False) if present]
        return self._arguments(at, tuple(there))

    def _arguments(self, at: int, fields: tuple[ArgumentField, ...]) -> bytes:
        """All fields from here on, and what is behind them."""
        bits = 0
        try:
            for field in fields:
                if field.type == "bit":
                    at += bits % 8 == 0
                    bits += 1
                    continue
                bits = 0
                at = self._field(at, field)
        except MalformedError as error:
            at = error.at
        self._masked[at : self._end] = scrubbed(self._octets[at : self._end], self._stand_ins)
        return bytes(self._masked)

    def _field(self, at: int, field: ArgumentField) -> int:
        """The index behind an argument."""
        width = _WIDTHS.get(field.type)
        if width is not None:
            if at + width > self._end:
                raise MalformedError(at)
            return at + width
        start, stop = self._span(at, 1 if field.type == "shortstr" else 4, self._end)
        if field.type == "table":
            if not sound_table(self._octets, start, stop, RABBITMQ) and sound_table(
                self._octets, start, stop, PRINTED
            ):
                self._dialect = PRINTED
            self._table(start, stop, 0, _PEER_FACTS if field.name in _OF_PEERS else frozenset())
        elif field.secret:
            self._secret(start, stop)
        elif not self._stays(field.name, start, stop):
            self._put(start, self._stand_ins.text(self._octets[start:stop], field.name in _PRIVATE), "texts")
        return stop

    def _stays(self, name: str, start: int, stop: int) -> bool:
        """Whether an argument names nobody: one of those that never do, or an expiration in milliseconds."""
        return name in _STAYS or (name == "expiration" and self._octets[start:stop].isdigit())

    def _span(self, at: int, width: int, end: int) -> tuple[int, int]:
        """Where a string or a table begins and ends, by its length of `width` octets."""
        start = at + width
        stop = start + int.from_bytes(self._octets[at:start], "big")
        if stop > end:
            raise MalformedError(min(start, end))
        return start, stop

    def _secret(self, start: int, stop: int) -> None:
        """Credentials: of AMQPLAIN a table, else a text or any octets."""
        self._stand_ins.count("credentials")
        octets = self._octets[start:stop]
        if octets.startswith(b"\x05LOGIN"):
            self._private = True
            self._table(start, stop, 0, frozenset())
            self._private = False
        else:
            self._put(start, self._stand_ins.binary(octets, True), "texts")

    def _table(self, at: int, end: int, depth: int, facts: frozenset[bytes]) -> None:
        """The pairs of a table. facts: names whose values stay."""
        while at < end:
            start, stop = self._span(at, 1, end)
            name = self._octets[start:stop]
            self._put(start, self._stand_ins.text(name), "texts")
            # A number of the broker or for it: `x-expires`.
            counted = name.startswith(b"x-") and self._masked[start:stop] == name
            at = self._tagged(stop, end, depth, name not in facts, counted)

    def _tagged(self, at: int, end: int, depth: int, masked: bool, counted: bool) -> int:
        """The index behind a tagged value. masked: it does not stay. counted: its numbers stay."""
        if at >= end or depth > MAX_DEPTH:
            raise MalformedError(at)
        tag = self._octets[at]
        at += 1
        width = int(fixed_width(tag, self._dialect))
        if width >= 0:
            if at + width > end:
                raise MalformedError(at)
            if masked and not counted and tag in _NUMBERS:
                self._number(at, width)
            return at + width
        if width == NO_TAG:
            raise MalformedError(at - 1)
        start, stop = self._span(at, 1 if width == SHORT_STRING else 4, end)
        if tag == ord("F"):
            self._table(start, stop, depth + 1, frozenset())
        elif tag == ord("A"):
            while start < stop:
                start = self._tagged(start, stop, depth + 1, masked, counted)
        elif masked and width in (SHORT_STRING, LONG_STRING):
            octets = self._octets[start:stop]
            stand_ins = self._stand_ins
            found = stand_ins.octets(octets) if tag == ord("x") else stand_ins.text(octets, self._private)
            self._put(start, found, "texts")
        return stop

    def _number(self, at: int, width: int) -> None:
        octets = self._octets[at : at + width]
        value = int.from_bytes(octets, "big")
        self._put(at, self._stand_ins.number(value, 8 * width).to_bytes(width, "big"), "numbers")

    def _put(self, at: int, octets: bytes, kind: str) -> None:
        if octets and octets != self._octets[at : at + len(octets)]:
            self._masked[at : at + len(octets)] = octets
            self._stand_ins.count(kind)
