"""Values and fields as the draft of April 2011 encodes them (sections 2.2 and 2.3).

The draft differs from the final specification in few places. A list has the codes of an array, too, and there
is no array. A string may be UTF-16. Several values of one field stand in a list that the boolean true
describes. The codes 0x43, 0x44, 0x45 and 0x56 came later: a value with one of them is read all the same, and
reported. Numeric descriptors of some composites are lost in the draft's text; where a field can only hold one
composite, a value with an unknown descriptor is taken for that composite.

The revision of February 2011 begins as the draft does. A linkage shows it, and a transfer without
message-format. Both are reported as `REVISION`.

A field whose definition the draft's text lost (`DraftField.proven`) accuses nobody: a value of another type
is kept as it was sent.
"""

from typing import Final

from dissectors.amqp10.composite import Composite, Field, Reader, TypeTable, sent_name
from dissectors.amqp10.types import FORMAT_CODES, type_name
from dissectors.amqp10.values import Array, Described, Raw, Symbol, ULong
from dissectors.amqp10_draft2011.names import REVISION
from dissectors.interface import Problem
from dissectors.limits import MAX_VALUES
from dissectors.wire import i64, u16, u32

__all__ = ["DraftField", "DraftReader"]


_NO_DEPTH: Final = -1

# In the working group's revision of 9 February 2011, which is laid out like the draft but for its links and
# messages, this is the descriptor of what an attach and a detach hold.
_LINKAGE: Final = 0x19

# Elements of an array that is taken for the list of a composite: several times as many as any has fields.
_MOST_FIELDS: Final = 64

# The descriptors of composites that a field may hold by its position.
_BY_POSITION: Final[dict[str, int]] = {"fragment": 0x1C, "transfer-state": 0x23}


class DraftField(Field):
    """One field of a composite of the draft.

    origin: where its definition is from: "" the draft, `2011-02` the XML of February 2011, `open` nowhere.
    agrees: what else says the same. proven: whether the definition can be relied upon.
    """

    def __init__(self, field: Field, origin: str = "", agrees: str = "") -> None:
        super().__init__(field.name, field.type)
        self.mandatory = field.mandatory
        self.multiple = field.multiple
        self.default = field.default
        self.requires = field.requires
        self.choices = field.choices
        self.secret = field.secret
        self.origin: str = origin
        self.agrees: str = agrees
        self.proven: bool = origin == "" or agrees != ""


class DraftReader(Reader):
    """Reads values, and fields by their declared types, in the draft's encoding."""

    def __init__(
        self, buf: bytes, pos: i64, end: i64, origin: i64, table: TypeTable, budget: i64 = MAX_VALUES
    ) -> None:
        super().__init__(buf, pos, end, origin, table, budget)
        # The composite that a value at this depth is taken for if no table knows its descriptor.
        self.wanted: i64 = 0
        self.wanted_depth: i64 = _NO_DEPTH

    # Encodings that the final specification has not, or has and the draft has not

    def later(self, code: i64, at: i64) -> None:
        self.problem_once(
            "T-CODE-LATER", at, f"the format code 0x{code:02x} is not in the draft of April 2011"
        )

    def unknown(self, code: i64, start: i64) -> object:
        if code == 0xA2 or code == 0xB2:
            return self.utf16(code, start)
        return super().unknown(code, start)

    def element_type(self, code: i64) -> str | None:
        if code == 0xA2 or code == 0xB2:
            return "string"
        return FORMAT_CODES.get(int(code))

    def utf16(self, code: i64, start: i64) -> object:
        """A string in UTF-16: `pos` is before its size; its constructor began at `start`."""
        width: i64 = 1 if code == 0xA2 else 4
        if self.end - self.pos < width:
            return self.overrun(0xA1, start, width)
        size: i64 = self.buf[self.pos] if width == 1 else u32(self.buf, self.pos)
        self.pos += width
        if size > self.end - self.pos:
            return self.overrun(0xA1, start, size)
        data = self.buf[self.pos : self.pos + size]
        self.pos += size
        try:
            text = data.decode("utf-16-be")
        except UnicodeDecodeError as error:
            self.problem("T-STR-UTF16", start, f"octet {error.start} of the string is not valid UTF-16BE")
            return Raw(self.buf[start : self.pos])
        return self.unmarked(text, start)

    def array_items(self, count: i64, start: i64, found: i64) -> object:
        items = super().array_items(count, start, found)
        if not isinstance(items, Array):
            return items
        descriptor = items.descriptor
        if descriptor is None:
            return items.items
        return [item if isinstance(item, Composite) else Described(descriptor, item) for item in items.items]

    def is_composite(self, descriptor: object, code: i64, at: i64) -> bool:
        if (code == 0xE0 or code == 0xF0) and self.known(descriptor) is not None:
            return True
        return super().is_composite(descriptor, code, at)

    def check_descriptor(self, descriptor: object, at: i64) -> None:
        if isinstance(descriptor, ULong) and descriptor == _LINKAGE:
            self.problem_once(
                REVISION,
                at,
                ("the frame contains a `linkage`, which only the revision of February 2011 defines"),
            )
        elif descriptor is not True:
            super().check_descriptor(descriptor, at)

    # Composites

    def known(self, descriptor: object) -> Composite | None:
        composite = super().known(descriptor)
        if composite is None and self.depth == self.wanted_depth and descriptor is not True:
            return self.table.new(self.wanted)
        return composite

    def composite(self, composite: Composite, descriptor: object, code: i64, start: i64) -> object:
        if code == 0x45:
            self.later(code, self.pos - 1)
        elif code == 0xE0 or code == 0xF0:
            octets = self.as_list(code)
            if octets:
                return self.from_list(composite, descriptor, octets, start)
        return super().composite(composite, descriptor, code, start)

    def as_list(self, code: i64) -> bytes:
        """The array behind the format code `code` as the octets of a list32; `pos` moves behind it.

        Empty if its size and its count do not fit, or it has too many elements; `pos` is where it was then.
        """
        before = self.pos
        width: i64 = 1 if code == 0xE0 else 4
        if self.end - before < 2 * width:
            return b""
        size: i64 = self.buf[before] if width == 1 else u32(self.buf, before)
        count: i64 = self.buf[before + 1] if width == 1 else u32(self.buf, before + 4)
        behind = before + width + size
        at = before + 2 * width
        if behind > self.end or at >= behind:
            return b""
        outer = self.end
        self.end = behind
        self.pos = at + 1
        if self.buf[at] == 0:
            self.skip_value()
            self.pos += 1
        data = self.pos
        element: i64 = self.buf[data - 1] if data <= behind else 0
        constructor = self.buf[at:data]
        parts: list[bytes] = []
        fits = element >= 0x40 and count <= _MOST_FIELDS
        while fits and len(parts) < count and (self.pos < behind or element < 0x50):
            data = self.pos
            self.step(element)
            parts.append(constructor + self.buf[data : self.pos])
        fits = fits and len(parts) == count and self.pos == behind
        self.end = outer
        if not fits:
            self.pos = before
            return b""
        items = b"".join(parts)
        return b"\xd0" + (len(items) + 4).to_bytes(4, "big") + int(count).to_bytes(4, "big") + items

    def from_list(self, composite: Composite, descriptor: object, octets: bytes, start: i64) -> object:
        """The composite whose list is `octets`; what is wrong in it is reported at `start`."""
        reader = DraftReader(octets, 1, len(octets), 0, self.table, self.budget)
        reader.hiding = self.hiding
        reader.depth = self.depth
        reader.path = self.path
        result = reader.composite(composite, descriptor, 0xD0, 0)
        self.budget = reader.budget
        for problem in reader.problems:
            offset = start - self.origin
            self.problems.append(Problem(problem.code, offset, problem.path, problem.reason, problem.unread))
        return result

    # Fields by type, as in `Reader`

    def proven(self, owner: Composite, index: i64) -> bool:
        """Whether the definition of a field can be relied upon."""
        field = owner.definition().fields[index]
        return not isinstance(field, DraftField) or field.proven

    def other(self, owner: Composite, index: i64, wanted: str) -> None:
        if self.buf[self.pos] == 0 and owner.definition().fields[index].name == "message-format":
            reason = (
                "the field `fragments` is in the place of the field `message-format`, as in the revision "
                "of February 2011"
            )
            self.problem_once(REVISION, self.pos, reason)
            self.keep(owner, index, self.named_value(owner, index))
        elif self.proven(owner, index):
            super().other(owner, index, wanted)
        else:
            self.keep(owner, index, self.named_value(owner, index))

    def later_field(self, owner: Composite, index: i64, code: i64) -> None:
        """Report a field's format code if it is `code`, which came later."""
        if self.pos < self.end and self.buf[self.pos] == code:
            self.path.append(self.leaf(owner, index))
            self.later(code, self.pos)
            self.path.pop()

    def truth(self, owner: Composite, index: i64) -> bool | None:
        """A boolean."""
        self.later_field(owner, index, 0x56)
        return self.boolean(owner, index)

    def number(self, owner: Composite, index: i64) -> int | None:
        """A uint."""
        self.later_field(owner, index, 0x43)
        return self.uint(owner, index)

    def large_number(self, owner: Composite, index: i64) -> int | None:
        """A ulong."""
        self.later_field(owner, index, 0x44)
        return self.ulong(owner, index)

    def unsigned(self, owner: Composite, index: i64) -> int | None:
        """An unsigned integer of any width: the draft lost which one it is."""
        if self.absent(owner, index):
            return None
        code: i64 = self.buf[self.pos]
        left = self.end - self.pos
        if code == 0x53 or code == 0x80 or code == 0x44:
            return self.large_number(owner, index)
        if code == 0x50 and left >= 2:
            self.pos += 2
            return self.buf[self.pos - 1]
        if code == 0x60 and left >= 3:
            self.pos += 3
            return u16(self.buf, self.pos - 2)
        return self.number(owner, index)

    def characters(self, owner: Composite, index: i64) -> str | None:
        """A string."""
        if self.absent(owner, index):
            return None
        code: i64 = self.buf[self.pos]
        if code == 0xA2 or code == 0xB2:
            return self.any_string(owner, index)
        return self.string(owner, index)

    def positioned(self, owner: Composite, index: i64, requires: str) -> object:
        """A field that holds the composite `requires`, whatever the descriptor."""
        self.expect(requires, 1)
        value = self.wildcard(owner, index, requires)
        self.wanted_depth = _NO_DEPTH
        return value

    def expect(self, name: str, levels: i64) -> None:
        """A value with an unknown descriptor, so many levels deeper, is to be taken for this composite."""
        code = _BY_POSITION.get(name)
        if code is not None:
            self.wanted = code
            self.wanted_depth = self.depth + levels

    def several(self, owner: Composite, index: i64, name: str) -> list[object] | None:
        """A 'multiple' field of values of the type `name` (of any type: ""): one of them, or several."""
        if self.absent(owner, index):
            return None
        start = self.pos
        found = len(self.problems)
        code: i64 = self.buf[start]
        described = code == 0 and self.end - start >= 2 and self.buf[start + 1] == 0x41
        levels: i64 = 1
        if described:
            levels = 3
        elif code >= 0xC0:
            levels = 2
        self.expect(name, levels)
        value = self.named_value(owner, index)
        self.wanted_depth = _NO_DEPTH
        inner = value.value if described and isinstance(value, Described) else value
        bare = isinstance(inner, list) and not described
        items: list[object] = inner if isinstance(inner, list) else [inner]
        if described and not isinstance(inner, list):
            self.reject(
                owner,
                index,
                "the descriptor `true`, which marks several values, comes before a value that is not a list",
                start,
                found,
            )
        elif described and any(item is None for item in items):
            self.problem("T-COMP-MULT-NULL", start, "one of the values is null", self.leaf(owner, index))
        elif len(self.problems) == found or all(is_of(item, name) for item in items):
            if self.fitting(owner, index, items, name, start, found):
                if bare and name and self.proven(owner, index):
                    reason = "several values are sent in a list without the descriptor `true`"
                    self.problem("T-COMP-MULT-TRUE", start, reason, self.leaf(owner, index), False)
                return items
        self.keep(owner, index, value)
        return None

    def fitting(
        self, owner: Composite, index: i64, items: list[object], name: str, start: i64, found: i64
    ) -> bool:
        """Whether these are values of a field's type; reports it if not."""
        for item in items:
            if not is_of(item, name):
                self.reject(
                    owner,
                    index,
                    f"the field requires the type `{name}`, but a value has the type `{sent_name(item)}`",
                    start,
                    found,
                )
                return False
        return True

    def reject(self, owner: Composite, index: i64, reason: str, start: i64, found: i64) -> None:
        """Report a value that is not of a field's type, if that type is proven."""
        self.forgive_descriptor(start, found)
        if self.sound(found) and self.proven(owner, index):
            self.problem("T-COMP-TYPE", start, reason, self.leaf(owner, index))

    def several_symbols(self, owner: Composite, index: i64) -> list[Symbol] | None:
        """A 'multiple' field of symbols."""
        items = self.several(owner, index, "symbol")
        return None if items is None else [item for item in items if isinstance(item, Symbol)]

    def several_strings(self, owner: Composite, index: i64) -> list[str] | None:
        """A 'multiple' field of strings."""
        items = self.several(owner, index, "string")
        return None if items is None else [item for item in items if isinstance(item, str)]


def is_of(value: object, name: str) -> bool:
    """Whether a value is of the primitive or composite type `name`; any is of the type ""."""
    if name == "":
        return True
    if isinstance(value, Composite):
        return value.definition().name == name
    return type_name(value) == name
