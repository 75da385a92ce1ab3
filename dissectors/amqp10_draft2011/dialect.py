"""Whether one direction of AMQP 1.0 is in the final encoding, or in that of the draft of April 2011.

Both announce the same protocol header. In the draft every performative begins with `options`, a map or null,
so that all other fields stand one place further on. A first element that is neither shows at once that a list
is the final specification's. One that is may also be a final peer's that left out a mandatory field: so a
direction is taken for the draft only by two signs that do not depend on each other, more than speak against
it. A sign is an element that has the type of one dialect's field and not of the other's, a null where one of
them demands a value, and a payload.

The final specification has format codes that the draft lacks. A peer of the draft may send one of them by
fault. So such a code speaks against the draft, but it does not show the final specification.
"""

from typing import Final

from dissectors.amqp10.composite import Field, TypeTable
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.types import FORMAT_CODES, ValueReader
from dissectors.amqp10.values import Symbol, ULong
from dissectors.amqp10_draft2011.reader import DraftField
from dissectors.amqp10_draft2011.registry import DRAFT
from dissectors.wire import i64, u32

__all__ = ["DialectEvidence"]

_SIGNS_ENOUGH: Final = 2

# Elements of a list, and values of a descriptor, that are looked at.
_MOST_ELEMENTS: Final = 16
_MOST_VALUES: Final = 256

_NULL: Final = 0x40
_SEVERAL: Final = 0x100  # a list described by true

_MAPS: Final = (0xC1, 0xD1)

# Format codes that only the final specification has, each with a code of both dialects for the same type.
_LATER: Final = {0x43: 0x52, 0x44: 0x53, 0x56: 0x41}

# Format codes by type: of both dialects, and only of the draft.
_CODES: Final[dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "boolean": ((0x41, 0x42), ()),
    "ubyte": ((0x50,), ()),
    "ushort": ((0x60,), ()),
    "uint": ((0x52, 0x70), ()),
    "ulong": ((0x53, 0x80), ()),
    "timestamp": ((0x83,), ()),
    "binary": ((0xA0, 0xB0), ()),
    "string": ((0xA1, 0xB1), (0xA2, 0xB2)),
    "symbol": ((0xA3, 0xB3), ()),
    "map": (_MAPS, ()),
}

# What the types of performatives' fields come down to. A type that is not here is a composite.
_PRIMITIVES: Final = {
    "handle": "uint",
    "seconds": "uint",
    "milliseconds": "uint",
    "transfer-number": "uint",
    "delivery-number": "uint",
    "sequence-no": "uint",
    "message-format": "uint",
    "delivery-tag": "binary",
    "role": "boolean",
    "fields": "map",
    "options": "map",
    "ietf-language-tag": "symbol",
    "sender-settle-mode": "ubyte",
    "receiver-settle-mode": "ubyte",
    "sasl-code": "ubyte",
}


class DialectEvidence:
    """What the frames of a direction say about its dialect.

    final, draft: signs so far. later: values in a format code that only the final specification has.
    """

    def __init__(self) -> None:
        self.final: i64 = 0
        self.draft: i64 = 0
        self.later: i64 = 0

    def says_draft(self) -> bool:
        """Whether it is the draft."""
        return self.draft >= _SIGNS_ENOUGH and self.draft > self.final + self.later

    def says_final(self) -> bool:
        """Whether it is the final specification."""
        return self.final > 0 and self.final + self.later >= self.draft

    def leans_to_draft(self) -> bool:
        """Whether more signs of the draft than of the final specification have come."""
        return self.draft > self.final

    def weigh(self, buf: bytes, at: i64, end: i64) -> None:
        """Add what the body of a frame says, buf[at:end]."""
        if end - at < 3 or buf[at] != 0:
            return
        reader = ValueReader(buf, at + 1, end, at, _MOST_VALUES)
        code = _code_of(reader.value())
        final, draft = _fields(FINAL, code), _fields(DRAFT, code)
        if final is None or draft is None or reader.pos >= end:
            return
        pos = reader.pos
        constructor: i64 = buf[pos]
        reader.skip_value()
        if code == 0x14 and reader.pos < end:
            # Octets that follow the list: a payload.
            self.final += 1
        if constructor == 0x45:
            self.later += 1
        elif constructor == 0xC0 and end - pos >= 3:
            self.weigh_list(buf, pos + 3, pos + 2 + buf[pos + 1], end, buf[pos + 2], final, draft)
        elif constructor == 0xD0 and end - pos >= 9:
            self.weigh_list(buf, pos + 9, pos + 5 + u32(buf, pos + 1), end, u32(buf, pos + 5), final, draft)

    def weigh_list(
        self,
        buf: bytes,
        pos: i64,
        behind: i64,
        end: i64,
        count: i64,
        final: tuple[Field, ...],
        draft: tuple[Field, ...],
    ) -> None:
        """Add what the elements of a list say, which begin at `pos`. behind: its end. end: the frame's."""
        reader = ValueReader(buf, pos, behind if behind < end else end, pos, _MOST_VALUES)
        index: i64 = 0
        while index < count and index < _MOST_ELEMENTS and reader.pos < reader.end:
            pos = reader.pos
            constructor: i64 = buf[pos]
            if constructor == 0 and reader.end - pos > 1 and buf[pos + 1] == 0x41:
                constructor = _SEVERAL
            if index == 0 and constructor not in (0, _SEVERAL) and constructor not in FORMAT_CODES:
                # A fault in either dialect.
                return
            if index == 0 and constructor != _NULL and constructor not in _MAPS:
                # Nothing else stands there in the draft, whatever follows.
                self.final += _MOST_ELEMENTS
                return
            self.weigh_element(int(constructor), int(index), final, draft)
            reader.skip_value()
            index += 1

    def weigh_element(
        self, constructor: int, index: int, final: tuple[Field, ...], draft: tuple[Field, ...]
    ) -> None:
        """Add what one element says."""
        if constructor in _LATER:
            self.later += 1
            constructor = _LATER[constructor]
        in_final = index < len(final) and _may_be(final[index], constructor, False)
        in_draft = index < len(draft) and _may_be(draft[index], constructor, True)
        if constructor == _NULL and (index >= len(final) or index >= len(draft)):
            return
        if in_final and not in_draft:
            self.final += 1
        elif in_draft and not in_final:
            self.draft += 1


def _code_of(descriptor: object) -> i64:
    """The numeric descriptor of a performative's, -1 if it is none."""
    if isinstance(descriptor, ULong):
        return int(descriptor) if descriptor < 0x1_0000 else -1
    return FINAL.code_of(descriptor) if isinstance(descriptor, Symbol) else -1


def _fields(table: TypeTable, code: i64) -> tuple[Field, ...] | None:
    """The fields of the performative or SASL frame with this descriptor."""
    composite = table.new(code) if code >= 0 else None
    if composite is None:
        return None
    definition = composite.definition()
    return definition.fields if definition.is_frame or definition.is_sasl_frame else None


def _may_be(field: Field, constructor: int, draft: bool) -> bool:
    """Whether a field may hold a value with this constructor."""
    if constructor == _NULL:
        return not field.mandatory
    if isinstance(field, DraftField) and not field.proven:
        return True
    several = constructor == _SEVERAL if draft else constructor in (0xE0, 0xF0)
    if several:
        return field.multiple or field.type == "*"
    if field.type == "*":
        return field.requires == "" or field.requires == "address" or constructor == 0
    codes = _CODES.get(_PRIMITIVES.get(field.type, field.type))
    if codes is None:
        return constructor == 0
    both, draft_only = codes
    return constructor in both or (draft and constructor in draft_only)
