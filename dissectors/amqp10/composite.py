"""Composite types: described lists with named, typed fields (types.xml, section "composite-types").

A composite is a class generated from the specification. It has one attribute a field, None where the
field is absent or null, and a `read` that asks the `Reader` for each field in turn, by its type. The
reader checks what the definition demands (type, mandatory, closed choices, the archetype a wildcard
requires). A value of another type than the field's is kept aside in `odd`, so that what was really
sent can be shown; fields beyond the definition are kept in `extra`. Of a composite with a secret field
neither is kept, only that something stood there: where a field is wrong, any of them may be the secret.

Which descriptors are known is a `TypeTable`. A dialect with other field lists is another table.
"""

import uuid
from typing import Final

from dissectors import interface
from dissectors.amqp10.types import FORMAT_CODES, ValueReader, type_name
from dissectors.amqp10.values import Array, Described, Map, Raw, Symbol, ULong
from dissectors.interface import Body
from dissectors.limits import MAX_VALUES
from dissectors.wire import i64, u16, u32, u64

__all__ = ["NOT_BROKEN", "Composite", "CompositeType", "Field", "Reader", "SecretField", "TypeTable"]


class Field(interface.BodyField):
    """One field of a composite's definition, in the words of the specification's XML.

    choices: the values of a closed enumeration with their names, or empty.
    """

    def __init__(
        self,
        name: str,
        type: str,
        mandatory: bool = False,
        multiple: bool = False,
        default: object = None,
        requires: str = "",
        choices: dict[object, str] | None = None,
    ) -> None:
        super().__init__(name, type)
        self.mandatory = mandatory
        self.multiple = multiple
        self.default = default
        self.requires = requires
        self.choices: dict[object, str] = choices or {}


class SecretField(Field):
    """A field whose content must never be shown (credentials)."""

    def __init__(self, name: str, type: str, mandatory: bool = False) -> None:
        super().__init__(name, type, mandatory)
        self.secret = True


class CompositeType:
    """The definition of a composite.

    code, symbol: its two descriptors. provides: the archetypes it belongs to. source: where it is
    defined. mandatory_rule: the rule broken when a mandatory field is missing.
    """

    def __init__(
        self,
        name: str,
        code: int,
        symbol: str,
        provides: tuple[str, ...],
        source: str,
        mandatory_rule: str,
        fields: tuple[Field, ...],
    ) -> None:
        self.name = name
        self.code = code
        self.symbol = symbol
        self.provides = provides
        self.source = source
        self.mandatory_rule = mandatory_rule
        self.fields = fields
        # What every frame asks.
        self.size: i64 = len(fields)
        self.is_frame: bool = "frame" in provides
        self.is_sasl_frame: bool = "sasl-frame" in provides
        self.secret: bool = any(field.secret for field in fields)


class Composite(Body):
    """A decoded composite value. Subclasses are generated, with one attribute a field.

    odd, extra: see above. broken_at: its list is longer or shorter than it says, so that from the field of
    this index on nothing is known; NOT_BROKEN if it is as it should be.
    """

    def __init__(self) -> None:
        self.odd: dict[int, object] | None = None
        self.extra: list[object] | None = None
        self.broken_at: i64 = NOT_BROKEN

    def definition(self) -> CompositeType:
        """The type's definition."""
        return _UNDEFINED

    def unread(self, index: i64) -> bool:
        """Whether the field of this index could not be read: it is None, and nobody knows what was meant."""
        odd = self.odd
        return index >= self.broken_at or (odd is not None and int(index) in odd)

    def break_at(self, index: i64) -> None:
        """Its list does not fit: the fields from this index on, or from the first that could not be read.

        Where that one ends is not known either, so behind it other fields were read than it seems.
        """
        odd = self.odd
        if odd is not None:
            index = min(index, *odd)
            for at, (field, value) in enumerate(zip(self.definition().fields, self.values(), strict=True)):
                if at > index and value is not None:
                    odd[at] = value
                    setattr(self, field.name.replace("-", "_"), None)
        self.broken_at = index

    def read(self, reader: "Reader", count: i64) -> None:
        """Read up to `count` list elements into the fields."""

    def values(self) -> list[object]:
        """The decoded fields in order, None where absent or not of the field's type."""
        return []

    def fields(self) -> list[tuple[Field, object]]:
        """The fields that are present (not null), with what was sent, whether of the right type or not."""
        present: list[tuple[Field, object]] = []
        values = self.values()
        for index, field in enumerate(self.definition().fields):
            value = values[index]
            if value is None and self.odd is not None:
                value = self.odd.get(index)
            if value is not None:
                present.append((field, value))
        return present

    def title(self) -> str:
        return self.definition().name

    def is_odd(self, value: object) -> bool:
        odd = self.odd
        return odd is not None and any(value is other for other in odd.values())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Composite)
            and self.definition() is other.definition()
            and self.values() == other.values()
            and (self.odd or None) == (other.odd or None)
            and (self.extra or None) == (other.extra or None)
        )

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}={'<hidden>' if field.secret else repr(value)}" for field, value in self.fields()
        )
        return f"{self.definition().name}({shown})"


NOT_BROKEN: Final = 1 << 30
"""More than any index of a field."""

# Numeric descriptors of the specification's domain that are no composite's: the sections of a message, and
# those of AMQP Filter Expressions 1.0 (OASIS, csd01, sections 4 and 5).
_ASSIGNED: Final = frozenset([*range(0x70, 0x79), *range(0x100, 0x300)])

# What may be wrong with a descriptor that no table knows.
_OF_DESCRIPTORS: Final = ("T-DESC-RESERVED", "T-DESC-DOMAIN0", "T-DESC-SYMFORM")

_UNDEFINED: Final = CompositeType("undefined", -1, "", (), "", "", ())


class TypeTable:
    """The composites a dialect knows, by descriptor, and how it encodes values."""

    def reader(self, budget: i64) -> "Reader":
        """A reader of the dialect's values, with nothing to read yet."""
        return Reader(b"", 0, 0, 0, self, budget)

    def has_payload(self, body: "Composite") -> bool:
        """Whether octets that follow this performative in its frame are a payload."""
        return False

    def new(self, code: i64) -> Composite | None:
        """An empty composite for a numeric descriptor, or None if the dialect has none."""
        return None

    def code_of(self, symbol: str) -> i64:
        """The numeric descriptor of a symbolic one, or -1."""
        return -1


class Reader(ValueReader):
    """A value reader that knows the composites of a dialect and reads fields by their declared types."""

    def __init__(
        self, buf: bytes, pos: i64, end: i64, origin: i64, table: TypeTable, budget: i64 = MAX_VALUES
    ) -> None:
        super().__init__(buf, pos, end, origin, budget)
        self.table: TypeTable = table
        # Of the composite being read: fields that are missing or hold none of their choices, as
        # (owner, index, rule, value); whether its list ends before its count, and behind which element.
        self.owed: list[tuple[Composite, int, str, object]] = []
        self.short: bool = False
        self.room: i64 = 0

    # Described values of known types

    def described(self, start: i64) -> object:
        # The way nearly every descriptor goes: smallulong, so that no object is made for it.
        if self.end - self.pos >= 3 and self.buf[self.pos] == 0x53 and self.depth < 32:
            number: i64 = self.buf[self.pos + 1]
            composite = self.table.new(number)
            if composite is not None:
                code: i64 = self.buf[self.pos + 2]
                self.pos += 3
                self.budget -= 1
                self.depth += 1
                result = self.composite(composite, None, code, start)
                self.depth -= 1
                if isinstance(result, Described):
                    result.descriptor = ULong(number)
                return result
        return super().described(start)

    def described_by(self, descriptor: object, start: i64) -> object:
        composite = self.known(descriptor)
        if composite is None:
            self.check_descriptor(descriptor, start)
            return Described(descriptor, self.value())
        code: i64 = self.buf[self.pos]
        self.pos += 1
        return self.composite(composite, descriptor, code, start)

    def check_descriptor(self, descriptor: object, at: i64) -> None:
        if isinstance(descriptor, ULong) and self.path and self.known(descriptor) is None:
            if descriptor >= 0x1_0000_0000 or descriptor in _ASSIGNED:
                return
            self.problem_once(
                "T-DESC-DOMAIN0",
                at,
                f"descriptor 0x{descriptor:x} is in the specification's domain, but is not assigned",
            )
            return
        super().check_descriptor(descriptor, at)

    def forgive_descriptor(self, at: i64, found: i64) -> None:
        """Of a value at `at` that may not stand there at all it is not also said what its descriptor lacks.

        found: how many problems there were before it.
        """
        problems = self.problems
        if len(problems) > found and problems[found].code in _OF_DESCRIPTORS:
            if problems[found].offset == at - self.origin:
                del problems[found]

    def known(self, descriptor: object) -> Composite | None:
        """An empty composite of the type that a descriptor stands for, or None."""
        code: i64 = -1
        if isinstance(descriptor, ULong):
            if descriptor < 0x1_0000_0000:
                code = int(descriptor)
        elif isinstance(descriptor, Symbol):
            code = self.table.code_of(descriptor)
        return self.table.new(code) if code >= 0 else None

    def composite(self, composite: Composite, descriptor: object, code: i64, start: i64) -> object:
        """The list behind a known descriptor, into `composite`; `Described` where there is none.

        code: the format code behind the descriptor, already stepped over.
        """
        definition = composite.definition()
        top = not self.path
        hiding = self.hiding
        if definition.secret:
            self.hiding = True
        elif hiding and top and definition.is_sasl_frame:
            self.hiding = False
        self.path.append(definition.name if top else "")
        result: object = composite
        if code == 0x45:
            # Nothing stands in it: what follows is not its own.
            outer = self.end
            self.end = self.pos
            composite.read(self, 0)
            if self.owed:
                self.report_owed(self.pos, 0, False)
            self.end = outer
        elif code == 0xC0 or code == 0xD0:
            outer = self.end
            cut = self.cut
            found: i64 = len(self.problems)
            count = self.compound_head(code, start)
            if count < 0:
                result = Described(descriptor, Raw(b"" if definition.secret else self.buf[start:outer]))
            else:
                first = self.pos
                wrong = self.cut or len(self.problems) > found
                if wrong and not self.cut:
                    composite.broken_at = 0  # its size has no room for its count
                composite.read(self, count)
                if self.owed:
                    self.report_owed(first, count, wrong or self.short)
                self.beyond(composite, count, start, found)
                self.pos = self.end
                self.end = outer
                self.cut = cut
        else:
            result = Described(descriptor, self.no_list(definition, code))
        self.path.pop()
        if definition.secret:
            self.hide(composite)
        self.hiding = hiding
        return result

    def no_list(self, definition: CompositeType, code: i64) -> object:
        """What stands behind a composite's descriptor where its list should; `code` is behind us."""
        at = self.pos - 1
        found = len(self.problems)
        value: object
        if code == 0:
            value = self.described(at)
            self.forgive_descriptor(at, found)
        else:
            value = self.data(code, at)
        if self.sound(found):
            self.problem(
                "T-COMP-LIST", at, f"{definition.name} is encoded as `{sent_name(value)}`, not as `list`"
            )
        return Raw(b"") if definition.secret else value

    def hide(self, composite: Composite) -> None:
        """Keep of the values that are not what they should be only that they were there."""
        if composite.odd is not None:
            composite.odd = {index: Raw(b"") for index in composite.odd}
        if composite.extra is not None:
            composite.extra = [Raw(b"") for _ in composite.extra]

    def beyond(self, composite: Composite, count: i64, start: i64, found: i64) -> None:
        """What stands in a composite's list behind its last defined field, and whether it fits."""
        definition = composite.definition()
        defined = definition.size
        if count > defined and self.pos < self.end:
            self.problem(
                "T-COMP-EXTRA",
                self.pos,
                f"the list has {count} elements, but {definition.name} has only {defined} "
                f"field{'' if defined == 1 else 's'}",
                "",
                False,
            )
            extra: list[object] = []
            while defined + len(extra) < count and self.pos < self.end:
                self.path.append(int(defined) + len(extra))
                extra.append(self.value())
                self.path.pop()
            composite.extra = extra
            self.fits("T-LIST-FIT", "list", defined + len(extra), count, start, found)
            return
        if self.short:
            self.short = False
            composite.break_at(self.room)
            if not self.cut and not self.blurred(found):
                reason = f"the list announces {count} items, but has room for only {self.room}"
                self.problem("T-LIST-FIT", start, reason)
            return
        if self.pos < self.end:
            # What is left may be fields that were not counted.
            composite.break_at(count)
        self.fits("T-LIST-FIT", "list", defined if count > defined else count, count, start, found)

    # Arrays of composites

    def is_composite(self, descriptor: object, code: i64, at: i64) -> bool:
        composite = self.known(descriptor)
        if composite is None:
            return False
        if code == 0x45 or code == 0xC0 or code == 0xD0:
            return True
        name = composite.definition().name
        self.problem("T-COMP-LIST", at, f"{name} is encoded as `{FORMAT_CODES[int(code)]}`, not as `list`")
        return False

    def element(self, descriptor: object, code: i64) -> object:
        composite = self.known(descriptor)
        if composite is None:
            return self.data(code, self.pos)
        self.budget -= 1
        return self.composite(composite, descriptor, code, self.pos)

    # Fields by type. Each gives None for null, and for a value of another type, which goes to `odd`.

    def absent(self, owner: Composite, index: i64) -> bool:
        """True if there is no element for this field, or it is null (then stepped over)."""
        if self.pos >= self.end:
            # The list's count promised it, its size left no room.
            if not self.short:
                self.short = True
                self.room = index
            return True
        if self.buf[self.pos] == 0x40:
            self.pos += 1
            return True
        return False

    def leaf(self, owner: Composite, index: i64) -> str:
        return "." + owner.definition().fields[index].name

    def other(self, owner: Composite, index: i64, wanted: str) -> None:
        """An element that is not of the field's type: keep its value, say so."""
        start = self.pos
        found = len(self.problems)
        self.path.append(self.leaf(owner, index))
        value = self.value()
        self.keep(owner, index, value)
        self.forgive_descriptor(start, found)
        if self.sound(found):
            self.problem(
                "T-COMP-TYPE",
                start,
                f"the field requires the type `{wanted}`, but the value has the type `{sent_name(value)}`",
            )
        self.path.pop()

    def keep(self, owner: Composite, index: i64, value: object) -> None:
        """Keep a value that is not of its field's type."""
        if value is None:
            return
        if owner.odd is None:
            owner.odd = {}
        owner.odd[int(index)] = value

    def boolean(self, owner: Composite, index: i64) -> bool | None:
        if self.absent(owner, index):
            return None
        code: i64 = self.buf[self.pos]
        if code == 0x41:
            self.pos += 1
            return True
        if code == 0x42:
            self.pos += 1
            return False
        if code == 0x56 and self.end - self.pos >= 2 and self.buf[self.pos + 1] <= 1:
            self.pos += 2
            return self.buf[self.pos - 1] == 1
        self.other(owner, index, "boolean")
        return None

    def ubyte(self, owner: Composite, index: i64) -> int | None:
        if self.absent(owner, index):
            return None
        if self.buf[self.pos] == 0x50 and self.end - self.pos >= 2:
            self.pos += 2
            return self.buf[self.pos - 1]
        self.other(owner, index, "ubyte")
        return None

    def ushort(self, owner: Composite, index: i64) -> int | None:
        if self.absent(owner, index):
            return None
        if self.buf[self.pos] == 0x60 and self.end - self.pos >= 3:
            self.pos += 3
            return u16(self.buf, self.pos - 2)
        self.other(owner, index, "ushort")
        return None

    def uint(self, owner: Composite, index: i64) -> int | None:
        if self.absent(owner, index):
            return None
        pos = self.pos
        code: i64 = self.buf[pos]
        if code == 0x52 and self.end - pos >= 2:
            self.pos = pos + 2
            return self.buf[pos + 1]
        if code == 0x70 and self.end - pos >= 5:
            self.pos = pos + 5
            return u32(self.buf, pos + 1)
        if code == 0x43:
            self.pos = pos + 1
            return 0
        self.other(owner, index, "uint")
        return None

    def ulong(self, owner: Composite, index: i64) -> int | None:
        if self.absent(owner, index):
            return None
        pos = self.pos
        code: i64 = self.buf[pos]
        if code == 0x53 and self.end - pos >= 2:
            self.pos = pos + 2
            return self.buf[pos + 1]
        if code == 0x80 and self.end - pos >= 9:
            self.pos = pos + 9
            return u64(self.buf, pos + 1)
        if code == 0x44:
            self.pos = pos + 1
            return 0
        self.other(owner, index, "ulong")
        return None

    def timestamp(self, owner: Composite, index: i64) -> int | None:
        if self.absent(owner, index):
            return None
        if self.buf[self.pos] == 0x83 and self.end - self.pos >= 9:
            value = self.value()
            if isinstance(value, int):
                return value
        self.other(owner, index, "timestamp")
        return None

    def binary(self, owner: Composite, index: i64) -> bytes | None:
        if self.absent(owner, index):
            return None
        pos = self.pos
        code: i64 = self.buf[pos]
        if code == 0xA0 and self.end - pos >= 2:
            size: i64 = self.buf[pos + 1]
            if size <= self.end - pos - 2:
                self.pos = pos + 2 + size
                return self.buf[pos + 2 : pos + 2 + size]
        if code == 0xB0:
            return self.wide_binary(owner, index)
        self.other(owner, index, "binary")
        return None

    def wide_binary(self, owner: Composite, index: i64) -> bytes | None:
        value = self.named_value(owner, index)
        if isinstance(value, bytes):
            return value
        self.keep(owner, index, value)
        return None

    def string(self, owner: Composite, index: i64) -> str | None:
        if self.absent(owner, index):
            return None
        code: i64 = self.buf[self.pos]
        if code == 0xA1 or code == 0xB1:
            return self.any_string(owner, index)
        self.other(owner, index, "string")
        return None

    def any_string(self, owner: Composite, index: i64) -> str | None:
        """The next value, which is a string in some encoding."""
        value = self.named_value(owner, index)
        if isinstance(value, str):
            return value
        self.keep(owner, index, value)
        return None

    def symbol(self, owner: Composite, index: i64) -> Symbol | None:
        if self.absent(owner, index):
            return None
        code: i64 = self.buf[self.pos]
        if code == 0xA3 or code == 0xB3:
            value = self.named_value(owner, index)
            if isinstance(value, Symbol):
                return value
            self.keep(owner, index, value)
            return None
        self.other(owner, index, "symbol")
        return None

    def named_value(self, owner: Composite, index: i64) -> object:
        """The next value, with the field's name in the path of its problems."""
        self.path.append(self.leaf(owner, index))
        value = self.value()
        self.path.pop()
        return value

    def symbols(self, owner: Composite, index: i64) -> list[Symbol] | None:
        """A 'multiple' symbol field: one symbol, or an array of symbols."""
        if self.absent(owner, index):
            return None
        start = self.pos
        found = len(self.problems)
        value = self.named_value(owner, index)
        if isinstance(value, Symbol):
            return [value]
        if isinstance(value, Array) and value.element == "symbol" and value.descriptor is None:
            symbols = [item for item in value.items if isinstance(item, Symbol)]
            if len(symbols) == value.count and len(self.problems) == found:
                return symbols
        self.keep(owner, index, value)
        self.forgive_descriptor(start, found)
        if self.sound(found):
            leaf = self.leaf(owner, index)
            if isinstance(value, list):
                self.problem(
                    "T-COMP-MULT-ARRAY", start, "several values are sent as a list instead of an array", leaf
                )
            else:
                self.problem(
                    "T-COMP-TYPE",
                    start,
                    f"the field requires the type `symbol`, but the value has the type `{sent_name(value)}`",
                    leaf,
                )
        return None

    def typed(self, owner: Composite, index: i64, name: str) -> Composite | None:
        """A field whose type is the composite `name`."""
        if self.absent(owner, index):
            return None
        start = self.pos
        found = len(self.problems)
        value = self.named_value(owner, index)
        if isinstance(value, Composite) and value.definition().name == name:
            return value
        self.keep(owner, index, value)
        if isinstance(value, Described):
            # Whatever may be wrong with it: it is not the descriptor that has to stand here.
            self.other_descriptor(owner, index, name, value.descriptor, start, found)
        elif self.sound(found):
            reason = f"the field requires the type `{name}`, but the value has the type `{sent_name(value)}`"
            self.problem("T-COMP-TYPE", start, reason, self.leaf(owner, index))
        return None

    def other_descriptor(
        self, owner: Composite, index: i64, name: str, descriptor: object, start: i64, found: i64
    ) -> None:
        """Where the composite `name` has to stand a value has another descriptor, of no known composite."""
        if isinstance(descriptor, Raw) or self.known(descriptor) is not None:
            return
        self.forgive_descriptor(start, found)
        if self.sound(found):
            reason = f"the field requires the type `{name}`, but the value has another descriptor"
            self.problem("T-COMP-DESC", start, reason, self.leaf(owner, index))

    def map(self, owner: Composite, index: i64, keys: str) -> Map | None:
        """A map field; `keys` names the restricted type that says which keys it may have."""
        if self.absent(owner, index):
            return None
        code: i64 = self.buf[self.pos]
        if code != 0xC1 and code != 0xD1:
            self.other(owner, index, "map")
            return None
        self.keys = "" if keys == "map" else keys
        value = self.named_value(owner, index)
        self.keys = ""
        if isinstance(value, Map):
            return value
        self.keep(owner, index, value)
        return None

    def check_key(self, keys: str, key: object, at: i64) -> None:
        sent = sent_name(key)
        if keys == "annotations":
            if sent != "symbol" and sent != "ulong":
                self.problem(
                    "M-ANN-KEYTYPE",
                    at,
                    f"the key of an annotation has the type `{sent}`, but must be a `symbol` or `ulong`",
                    "",
                    False,
                )
        elif keys == "application-properties":
            if sent != "string":
                self.problem(
                    "M-AP-KEY",
                    at,
                    f"a key of the application properties has the type `{sent}`, but must be a `string`",
                    "",
                    False,
                )
        elif sent != "symbol":
            code = "M-FILTER-KEY" if keys == "filter-set" else "T-FIELDS-KEY"
            self.problem(
                code, at, f"a key of the map has the type `{sent}`, but must be a `symbol`", "", False
            )

    def check_entry(self, keys: str, value: object, at: i64) -> None:
        if keys == "filter-set":
            if not (value is None or isinstance(value, (Described, Composite, Raw))):
                self.problem(
                    "M-FILTER-VALUE",
                    at,
                    f"a filter has the type `{sent_name(value)}`, but must be a described value",
                    "",
                    False,
                )
        elif keys == "application-properties" and isinstance(value, (Map, list, Array)):
            self.problem(
                "M-AP-VALUE",
                at,
                f"an application property has the type `{sent_name(value)}`, but must have a simple type",
                "",
                False,
            )

    def wildcard(self, owner: Composite, index: i64, requires: str) -> object:
        """A field of any type that provides the archetype `requires` (or of any type at all: "")."""
        if self.absent(owner, index):
            return None
        start = self.pos
        found = len(self.problems)
        value = self.named_value(owner, index)
        if isinstance(value, Raw) or (isinstance(value, Described) and isinstance(value.value, Raw)):
            self.keep(owner, index, value)
            return None
        if requires == "" or self.provides(value, requires):
            return value
        self.keep(owner, index, value)
        if self.sound(found):
            code = "T-COMP-REQUIRES"
            if requires == "address":
                code = "M-ADDR-TYPE"
            elif requires == "message-id":
                code = "M-ID-TYPE"
            elif owner.definition().name == "source" and requires == "outcome":
                code = "M-OUTCOME-VALID"
            elif (
                requires == "source"
                and isinstance(value, Composite)
                and value.definition().name == "coordinator"
            ):
                code = "TX-COORD-TARGET"
            reason = f"a value of the type `{sent_name(value)}` is not allowed as `{requires}`"
            self.problem(code, start, reason, self.leaf(owner, index))
        return None

    def provides(self, value: object, requires: str) -> bool:
        """Whether a value's type may provide an archetype. A descriptor unknown to us may."""
        if isinstance(value, Described):
            return True
        if isinstance(value, Composite):
            return requires in value.definition().provides
        if requires == "address":
            return isinstance(value, str) and type_name(value) == "string"
        if requires == "message-id":
            return isinstance(value, (ULong, uuid.UUID, bytes)) or type_name(value) == "string"
        if requires == "txn-id" or requires == "global-tx-id":
            return isinstance(value, bytes)
        return False

    def missing(self, owner: Composite, index: i64, code: str) -> None:
        """A mandatory field is not set."""
        self.owed.append((owner, int(index), code, None))

    def choice(self, owner: Composite, index: i64, code: str, value: object) -> None:
        """A closed enumeration holds a value that is none of its choices."""
        self.owed.append((owner, int(index), code, value))

    def report_owed(self, first: i64, count: i64, excused: bool) -> None:
        """Report what is missing in the list just read, whose `count` elements begin at `first`.

        excused: what is missing may stand there, but for the list's size or count.
        """
        owed = self.owed
        self.owed = []
        for owner, index, code, value in owed:
            field = owner.definition().fields[index]
            if value is not None:
                shown = value if isinstance(value, int) else "the symbol that was sent"
                reason = f"{shown} is not a valid {field.type}"
            else:
                if excused or (owner.odd is not None and index in owner.odd):
                    continue
                if index >= count and count < owner.definition().size and self.pos < self.end:
                    # It may stand there, only not counted: `beyond` reports that.
                    continue
                lack = "has no values" if code == "T-COMP-MULT-MAND" else "is not set"
                name = owner.definition().name
                # A path begins with the name of the outermost composite, and does not name any other.
                what = "the field" if self.path[-1] == name else f"the field {field.name} of {name}"
                reason = f"{what} is mandatory, but {lack}"
            walker = ValueReader(self.buf, first, self.end if count > 0 else first, self.origin)
            passed: i64 = 0
            while passed < index and passed < count and walker.pos < walker.end:
                walker.skip_value()
                passed += 1
            # A value that is none of the choices was read; where none stands nobody knows what was meant.
            self.problem(code, walker.pos, reason, self.leaf(owner, index), value is None)


def sent_name(value: object) -> str:
    """What a value that was sent is, for messages: `type_name`, but for composites and arrays in detail."""
    if isinstance(value, Composite):
        return value.definition().name
    if isinstance(value, Array):
        return f"array of {value.element}"
    return type_name(value)
