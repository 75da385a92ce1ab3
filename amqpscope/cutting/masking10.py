"""AMQP 1.0, and the draft of April 2011: stand-ins in frames and messages.

Which fields name something follows from the types of the specification's own tables (`CompositeType`): texts,
binaries, maps and values of any type are masked; numbers, booleans and symbols of the protocol stay.
`_MASKED` has the exceptions. A text or a binary where neither belongs is masked, too.
"""

from typing import Final, NamedTuple

from amqpscope.cutting.masking import MalformedError, Masker, Place, in_places, scrubbed
from amqpscope.cutting.stand_ins import StandIns
from amqpscope.limits import MAX_MASKED_MESSAGE
from dissectors.amqp10 import registry
from dissectors.amqp10.composite import CompositeType, Field
from dissectors.amqp10.types import FORMAT_CODES
from dissectors.amqp10_draft2011 import registry as draft_registry
from dissectors.interface import Frame
from dissectors.limits import MAX_DEPTH

__all__ = ["Masker10"]

_STAYS: Final = 0  # How a value is masked: not at all;
_PROTOCOL: Final = 1  # texts and binaries, but no symbols and numbers;
_NAMES: Final = 2  # whatever may name something;
_PRIVATE: Final = 3  # the same, also standard words;
_FACTS: Final = 4  # as names, but for the values of `_PEER_FACTS`.

_NAMING: Final = frozenset(
    {"string", "binary", "delivery-tag", "map", "fields", "node-properties", "filter-set", "*", "options"}
    | {"message-attributes", "error", "fragment"}
)
"""Types of fields that are looked into; the values of all others stay."""

_MASKED: Final = frozenset({("properties", "content-type"), ("properties", "content-encoding")})
"""Symbols that are the application's."""

_OWN: Final = frozenset(
    {("attach", "unsettled"), ("transfer", "delivery-tag")}
    | {("properties", name) for name in ("message-id", "user-id", "correlation-id")}
    | {("properties", name) for name in ("group-id", "reply-to-group-id")}
)
"""Fields that hold ids of messages, in which no word is a standard one. Container ids and names of links are
not among them, because the address of a dynamic node contains both.
"""

_PEER_FACTS: Final = frozenset({b"product", b"version", b"platform", b"copyright", b"information"})
"""Keys of the properties of a connection whose values stay."""

_DATA: Final = 0x75
_BODIES: Final = (0x76, 0x77)  # amqp-sequence and amqp-value
_FRAGMENT: Final = ("fragment", "payload")
_DRAFT_DATA: Final = 3  # its section code

# By the high half of a format code: octets of a value (types.xml, section "encodings").
_WIDTHS: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_TEXTS: Final = frozenset({0xA1, 0xA3, 0xB1, 0xB3})
_SYMBOLIC: Final = frozenset({0xA3, 0xB3})
_MAPS: Final = frozenset({0xC1, 0xD1})
_NUMBERS: Final = frozenset({0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x60, 0x61, 0x70, 0x71, 0x80, 0x81})
_UUID: Final = 0x98
_OPAQUE: Final = frozenset({0x72, 0x74, 0x82, 0x84, 0x94})  # float, double and decimals


class Masker10(Masker):
    """One direction. draft: of the April-2011 draft."""

    def __init__(self, stand_ins: StandIns) -> None:
        super().__init__(stand_ins)
        # Of each channel and handle, what is there of a message under way.
        self._messages: dict[tuple[int, int], list[Place]] = {}
        self._octets = 0
        # Of each channel and handle, what is there of a section of the draft that is under way.
        self._sections: dict[tuple[int, int], list[Place]] = {}
        # Those of them that are data.
        self._data: set[tuple[int, int]] = set()
        # Channels and handles of messages of which not all octets can be masked as one.
        self._given_up: set[tuple[int, int]] = set()

    def take(self, frame: Frame) -> list[Place]:
        octets = frame.raw
        offset = int(frame.offset)
        if frame.kind not in ("amqp", "sasl"):
            return [(offset, octets if frame.kind == "header" else scrubbed(octets, self.stand_ins))]
        size = len(octets)
        payload = size - int(frame.payload_size) if frame.name == "transfer" else size
        start = min(max(octets[4] * 4, 8), size) if size > 4 else size
        head = octets[: min(8, start)] + scrubbed(octets[8:start], self.stand_ins)
        draft = bool(frame.dialect)
        walk = _Walk(octets[:payload], self.stand_ins, draft)
        places = self._around(offset, head + walk.sequence(start, _NAMES), walk.parts)
        if draft:
            places += self._fragments(frame, octets, walk.parts)
        if (frame.name == "transfer" and payload < size) or self._messages or self._given_up:
            places += self._message(frame, offset + payload, octets[payload:])
        return places

    def finish(self) -> list[Place]:
        places: list[Place] = []
        for key in list(self._messages):
            places += self._ended(key)
        for key in list(self._sections):
            places += self._section(key)
        return places

    def _around(self, offset: int, masked: bytes, parts: list["_Part"]) -> list[Place]:
        """The octets of a frame without those of parts of sections."""
        places: list[Place] = []
        at = 0
        for part in parts:
            places.append((offset + at, masked[at : part.start]))
            at = part.stop
        return [*places, (offset + at, masked[at:])]

    def _fragments(self, frame: Frame, octets: bytes, parts: list["_Part"]) -> list[Place]:
        """What becomes known of sections by the parts of them that a frame of the draft has."""
        if frame.name in ("detach", "end", "close"):
            return self.finish()
        key = (int(frame.channel), int(getattr(frame.body, "handle", None) or 0))
        places: list[Place] = []
        for part in parts:
            if part.first:
                places += self._section(key)
            if part.data:
                self._data.add(key)
            piece = octets[part.start : part.stop]
            self._sections.setdefault(key, []).append((int(frame.offset) + part.start, piece))
            self._octets += len(piece)
            if part.last or self._octets > MAX_MASKED_MESSAGE:
                places += self._section(key)
        return places

    def _section(self, key: tuple[int, int]) -> list[Place]:
        """All that there is of a section, masked as one, in the places of its parts."""
        parts = self._sections.pop(key, [])
        whole = b"".join(octets for _, octets in parts)
        self._octets -= len(whole)
        if key in self._data:
            self._data.discard(key)
            return in_places(self.stand_ins.body(whole), parts)
        return in_places(_Walk(whole, self.stand_ins, True).sequence(0, _PRIVATE), parts)

    def _message(self, frame: Frame, offset: int, payload: bytes) -> list[Place]:
        """The part of a message that a transfer carries."""
        if frame.name != "transfer":
            if frame.name in ("detach", "end", "close"):
                self._given_up.clear()
                return self.finish()
            return []
        body = frame.body
        key = (int(frame.channel), int(getattr(body, "handle", None) or 0))
        over = getattr(body, "more", None) is not True
        if key in self._given_up:
            if over:
                self._given_up.discard(key)
            return [(offset, self.stand_ins.body(payload))]
        self._messages.setdefault(key, []).append((offset, payload))
        self._octets += len(payload)
        if over:
            return self._ended(key)
        if frame.missing or self._octets > MAX_MASKED_MESSAGE:
            self._given_up.add(key)
            return self._ended(key)
        return []

    def _ended(self, key: tuple[int, int]) -> list[Place]:
        """All that there is of a message, masked as one, in the places of its parts."""
        parts = self._messages.pop(key)
        whole = b"".join(octets for _, octets in parts)
        self._octets -= len(whole)
        return in_places(_Walk(whole, self.stand_ins, False).sequence(0, _NAMES), parts)


class _Part(NamedTuple):
    """A part of a section: where it is in its frame, whether the section begins and ends with it, and whether
    it is data, which has no encoding.
    """

    start: int
    stop: int
    first: bool
    last: bool
    data: bool


class _Walk:
    """Goes over encoded values, one after the other, and masks what names something.

    parts: the parts of sections that are more than one part. They are left for whoever has the others.
    """

    def __init__(self, octets: bytes, stand_ins: StandIns, draft: bool) -> None:
        self._octets = octets
        self._masked = bytearray(octets)
        self._stand_ins = stand_ins
        self._types = _DRAFT if draft else _FINAL
        self.parts: list[_Part] = []

    def sequence(self, at: int, how: int) -> bytes:
        """All values from here on, masked. how: those that have no descriptor that is known."""
        end = len(self._octets)
        begin = at
        try:
            while at < end:
                at = self._value(at, end, how, 0)
        except MalformedError as error:
            at = error.at
            self.parts = [part for part in self.parts if part.stop <= at]
            self._masked[at:] = scrubbed(self._octets[at:], self._stand_ins)
        return bytes(self._masked[begin:])

    def _value(self, at: int, end: int, how: int, depth: int) -> int:
        """The index behind the value at `at`. how: it is masked."""
        if at >= end or depth > MAX_DEPTH:
            raise MalformedError(at)
        code = self._octets[at]
        if code == 0:
            return self._described(at, end, how, depth)
        return self._plain(code, at + 1, end, how, depth)

    def _plain(self, code: int, at: int, end: int, how: int, depth: int) -> int:
        """The index behind what follows a constructor."""
        if code not in FORMAT_CODES:
            return self._unassigned(code, at, end)
        width = _WIDTHS.get(code >> 4)
        if width is not None:
            if at + width > end:
                raise MalformedError(at)
            if how >= _NAMES:
                self._number(code, at, width)
            return at + width
        start, stop = self._span(code, at, end)
        if code >> 4 in (0xA, 0xB):
            if how >= _NAMES or (how == _PROTOCOL and code not in _SYMBOLIC):
                self._text(code, start, stop, how == _PRIVATE)
            if stop > end:
                raise MalformedError(end)
            return stop
        within = min(stop, end)
        start, count = self._count(code, start, within)
        if code >> 4 in (0xE, 0xF):
            self._array(start, count, within, how, depth)
        else:
            self._compound(code, start, within, how, depth)
        if stop > end:
            raise MalformedError(end)
        return stop

    def _unassigned(self, code: int, at: int, end: int) -> int:
        """The index behind a value with a format code that nobody assigned, by the width it tells."""
        if code >> 4 not in _WIDTHS and code < 0xA0:
            raise MalformedError(at - 1)
        at += code & 0xF == 0xF
        start, stop = at, at + _WIDTHS.get(code >> 4, 0)
        if code >= 0xA0:
            start, stop = self._span(code, at, end)
        octets = self._octets[start : min(stop, end)]
        # 0xA2 and 0xB2 were strings in UTF-16 once.
        of_text = code >> 4 in (0xA, 0xB)
        found = self._stand_ins.binary(octets) if of_text else scrubbed(octets, self._stand_ins)
        self._put(start, found, "binaries")
        if stop > end:
            raise MalformedError(end)
        return stop

    def _span(self, code: int, at: int, end: int) -> tuple[int, int]:
        """Where the octets of a variable value begin and end, by its size."""
        width = 4 if code >> 4 in (0xB, 0xD, 0xF) else 1
        if at + width > end:
            raise MalformedError(at)
        return at + width, at + width + int.from_bytes(self._octets[at : at + width], "big")

    def _count(self, code: int, at: int, end: int) -> tuple[int, int]:
        """Where the elements of a compound value begin, and how many it says to have."""
        width = 4 if code >> 4 in (0xD, 0xF) else 1
        if at + width > end:
            raise MalformedError(at)
        return at + width, int.from_bytes(self._octets[at : at + width], "big")

    def _compound(self, code: int, at: int, end: int, how: int, depth: int) -> None:
        """The elements of a list or a map."""
        of_map = code in _MAPS
        within = _NAMES if how == _FACTS else how
        key = of_map
        fact = False
        while at < end:
            start = at
            at = self._value(at, end, _STAYS if fact else within, depth + 1)
            fact = key and how == _FACTS and self._is_peer_fact(start, at)
            key = of_map and not key

    def _is_peer_fact(self, start: int, end: int) -> bool:
        """Whether a key of a map is one whose value stays."""
        octets = self._octets
        if octets[start] in (0xA1, 0xA3):
            return octets[start + 2 : end] in _PEER_FACTS
        return False

    def _array(self, at: int, count: int, end: int, how: int, depth: int) -> None:
        """The elements of an array, which have one constructor."""
        if at >= end:
            return
        code = self._octets[at]
        at += 1
        if code == 0:
            at = self._value(at, end, _STAYS, depth + 1)
            if at >= end:
                raise MalformedError(at)
            code = self._octets[at]
            at += 1
        for _ in range(count):
            before = at
            if at >= end:
                return
            at = self._plain(code, at, end, how, depth + 1)
            if at == before:
                return  # the elements have no octets, however many there are

    def _described(self, at: int, end: int, how: int, depth: int) -> int:
        """A described value: a composite, a section of a message, or somebody's own type."""
        start = at + 1
        at = self._value(start, end, _PROTOCOL, depth + 1)
        descriptor = self._descriptor(start, at)
        if at >= end:
            raise MalformedError(at)
        code = self._octets[at]
        known = self._types.get(descriptor)
        if known is not None and code in (0x45, 0xC0, 0xD0):
            return self._composite(known, code, at + 1, end, depth)
        if descriptor == _DATA and code in (0xA0, 0xB0):
            start, stop = self._span(code, at + 1, end)
            self._put(start, self._stand_ins.body(self._octets[start : min(stop, end)]), "bodies")
            if stop > end:
                raise MalformedError(end)
            return stop
        how = _PRIVATE if how == _PRIVATE or descriptor in _BODIES else _NAMES
        return self._value(at, end, how, depth + 1)

    def _descriptor(self, start: int, end: int) -> int:
        """The number of a descriptor, -1 if it is none that is known."""
        octets = self._octets
        code = octets[start]
        if code in (0x53, 0x80):
            return int.from_bytes(octets[start + 1 : end], "big")
        if code == 0x44:
            return 0
        if code in (0xA3, 0xB3):
            return _SYMBOLS.get(octets[start + (2 if code == 0xA3 else 5) : end], -1)
        return -1

    def _composite(self, known: CompositeType, code: int, at: int, end: int, depth: int) -> int:
        """The fields of a composite."""
        if code == 0x45:
            return at
        start, stop = self._span(code, at, end)
        within = min(stop, end)
        at, _ = self._count(code, start, within)
        section = 0
        flags = [False, False]
        for index, field in enumerate(known.fields):
            if at >= within:
                break
            start = at
            if (known.name, field.name) == _FRAGMENT:
                at = self._fragment(at, within, section, flags[0], flags[1])
                continue
            if field.secret:
                self._stand_ins.count("credentials")
            at = self._value(at, within, self._how(known, field), depth + 1)
            if known.name == _FRAGMENT[0] and index < len(flags):
                flags[index] = self._octets[start:at] in (b"\x41", b"\x56\x01")
            if field.name == "section-code":
                section = self._octets[at - 1] if at > start + 1 else 0
        while at < within:  # fields that the type does not have
            at = self._value(at, within, _NAMES, depth + 1)
        if stop > end:
            raise MalformedError(end)
        return stop

    def _how(self, known: CompositeType, field: Field) -> int:
        """How a field of a composite is masked."""
        place = (known.name, field.name)
        if field.secret or place in _OWN:
            return _PRIVATE
        if place == ("open", "properties"):
            return _FACTS
        return _NAMES if field.type in _NAMING or place in _MASKED else _PROTOCOL

    def _fragment(self, at: int, end: int, section: int, first: bool, last: bool) -> int:
        """A part of a section of a message, as the draft carries it in a transfer."""
        code = self._octets[at]
        if code not in (0xA0, 0xB0):
            return self._value(at, end, _PRIVATE, 0)
        start, stop = self._span(code, at + 1, end)
        octets = self._octets[start : min(stop, end)]
        if not first or not last:
            self.parts.append(_Part(start, min(stop, end), first, last, section == _DRAFT_DATA))
            return min(stop, end)
        if section == _DRAFT_DATA:
            masked = self._stand_ins.body(octets)
        else:
            masked = _Walk(octets, self._stand_ins, True).sequence(0, _PRIVATE)
        self._put(start, masked, "bodies")
        return min(stop, end)

    def _text(self, code: int, start: int, stop: int, private: bool) -> None:
        octets = self._octets[start:stop]
        if code in _TEXTS:
            self._put(start, self._stand_ins.text(octets, private), "texts")
        else:
            self._put(start, self._stand_ins.binary(octets, private), "binaries")

    def _number(self, code: int, at: int, width: int) -> None:
        if code in _NUMBERS or code in _OPAQUE:
            value = int.from_bytes(self._octets[at : at + width], "big")
            masked = self._stand_ins.number(value, 8 * width).to_bytes(width, "big")
            self._put(at, masked, "numbers")
        elif code == _UUID:
            before = self._octets[at : at + 16]
            found = bytearray(self._stand_ins.octets(before))
            found[6] = found[6] & 0x0F | before[6] & 0xF0  # the version and the variant: RFC 4122
            found[8] = found[8] & 0x3F | before[8] & 0xC0
            self._put(at, bytes(found), "ids")

    def _put(self, at: int, octets: bytes, kind: str) -> None:
        if octets and octets != self._octets[at : at + len(octets)]:
            self._masked[at : at + len(octets)] = octets
            self._stand_ins.count(kind)


_FINAL: Final = {one.code: one for one in registry.COMPOSITES}
_DRAFT: Final = {one.code: one for one in draft_registry.COMPOSITES}
_SYMBOLS: Final = {
    **{one.symbol.encode(): one.code for one in (*draft_registry.COMPOSITES, *registry.COMPOSITES)},
    **{symbol.encode(): code for code, (_, symbol, _) in registry.SECTIONS.items()},
}
