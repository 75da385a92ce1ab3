"""The AMQP 1.0 type system: any value, from octets (specification part 1, types.xml).

Theory of operation. A value is a constructor and data. The constructor is a format code, or 0x00, a
descriptor (any value) and another constructor. The high half of a format code says how long the data
is, also for codes nobody has assigned: so an unknown value can be stepped over, and what follows it
survives. A compound (list, map) and an array say their size in octets and their count of items. The
reader keeps `end`, the first octet that does not belong to the innermost compound being read, and
never reads at or beyond it: a value that claims more is cut there and reported, and the enclosing
compound goes on behind its own end, which its own size gave.

What is wrong becomes a `Problem` with the offset and the path; what cannot be decoded becomes `Raw`.
One fault gives one problem: what only follows from a size that overran is not reported again.
"""

import struct
import uuid
from decimal import Decimal

from dissectors.amqp10.decimals import read_decimal
from dissectors.amqp10.values import (
    Array,
    Byte,
    Char,
    Described,
    Float,
    Int,
    Long,
    Map,
    Raw,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from dissectors.interface import Problem
from dissectors.limits import MAX_DEPTH, MAX_EMPTY_ELEMENTS, MAX_PROBLEMS, MAX_VALUES
from dissectors.wire import i64, u16, u32, u64

__all__ = ["FORMAT_CODES", "ValueReader", "type_name"]

# types.xml, section "encodings": every format code that is assigned, and its type.
FORMAT_CODES: dict[int, str] = {
    0x40: "null",
    0x56: "boolean",
    0x41: "boolean",
    0x42: "boolean",
    0x50: "ubyte",
    0x60: "ushort",
    0x70: "uint",
    0x52: "uint",
    0x43: "uint",
    0x80: "ulong",
    0x53: "ulong",
    0x44: "ulong",
    0x51: "byte",
    0x61: "short",
    0x71: "int",
    0x54: "int",
    0x81: "long",
    0x55: "long",
    0x72: "float",
    0x82: "double",
    0x74: "decimal32",
    0x84: "decimal64",
    0x94: "decimal128",
    0x73: "char",
    0x83: "timestamp",
    0x98: "uuid",
    0xA0: "binary",
    0xB0: "binary",
    0xA1: "string",
    0xB1: "string",
    0xA3: "symbol",
    0xB3: "symbol",
    0x45: "list",
    0xC0: "list",
    0xD0: "list",
    0xC1: "map",
    0xD1: "map",
    0xE0: "array",
    0xF0: "array",
}

_TYPE_OF_CLASS: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    float: "double",
    Char: "char",
    Timestamp: "timestamp",
    uuid.UUID: "uuid",
    bytes: "binary",
    str: "string",
    Symbol: "symbol",
    list: "list",
    Map: "map",
    Array: "array",
    Described: "described value",
    Raw: "undecodable value",
}

_BYTE_ORDER_MARK = "\ufeff"


def type_name(value: object) -> str:
    """The AMQP name of a value's type, for messages: `uint`, `string`, `described value`."""
    name = _TYPE_OF_CLASS.get(type(value))
    if name is None:
        name = type(value).__name__.lower()
    return name


class ValueReader:
    """Reads values from `buf`, from `pos` up to `end`. Never raises on any octets.

    origin: index in `buf` of the first octet of the frame; problems carry offsets from there.
    budget: values that may still be decoded; see `limits.MAX_VALUES`.
    """

    def __init__(self, buf: bytes, pos: i64, end: i64, origin: i64, budget: i64 = MAX_VALUES) -> None:
        self.buf: bytes = buf
        self.pos: i64 = pos
        self.end: i64 = end
        self.origin: i64 = origin
        self.budget: i64 = budget
        self.depth: i64 = 0
        self.problems: list[Problem] = []
        self.path: list[str] = []

    # Problems

    def problem(self, code: str, at: i64, reason: str, leaf: str = "") -> None:
        """Note a problem found at index `at` of the buffer, in the field being read."""
        if len(self.problems) < MAX_PROBLEMS:
            path = "".join(self.path) + leaf
            self.problems.append(Problem(code, at - self.origin, path.lstrip("."), reason))

    def rest(self, start: i64) -> Raw:
        """Everything from `start` to the end of what is being read, undecoded."""
        self.pos = self.end
        return Raw(self.buf[start : self.end])

    # Any value

    def value(self) -> object:
        """The next value, whatever its type. At the end of the enclosing value: `Raw(b"")` and a problem."""
        start = self.pos
        if start >= self.end:
            self.problem("T-SIZE-OVERRUN", start, "a value is missing: nothing is left where it should stand")
            return Raw(b"")
        code: i64 = self.buf[start]
        self.pos = start + 1
        if code == 0:
            return self.described(start)
        return self.data(code, start)

    def described(self, start: i64) -> object:
        """A described value; `pos` is behind its 0x00, which stands at `start`."""
        if self.depth >= MAX_DEPTH:
            self.problem("limit", start, f"nested deeper than {MAX_DEPTH} levels, not decoded")
            return self.rest(start)
        self.depth += 1
        descriptor = self.descriptor(start)
        if isinstance(descriptor, Raw):
            self.depth -= 1
            return self.rest(start)
        result = self.described_by(descriptor, start)
        self.depth -= 1
        return result

    def descriptor(self, start: i64) -> object:
        """The descriptor behind a 0x00 at `start`; `Raw` where there is none that decodes."""
        found = len(self.problems)
        value = self.value()
        if isinstance(value, Raw):
            if len(self.problems) == found:
                self.problem("T-DESC-CTOR", start, "0x00 is not followed by a descriptor")
            return value
        if self.pos >= self.end:
            self.problem("T-DESC-CTOR", start, "a descriptor is not followed by a value")
            return Raw(b"")
        return value

    def described_by(self, descriptor: object, start: i64) -> object:
        """The value behind a descriptor. Subclasses know descriptors; here none is."""
        return Described(descriptor, self.value())

    def data(self, code: i64, start: i64) -> object:
        """The data of a value whose format code (not 0x00) is known; its constructor began at `start`."""
        self.budget -= 1
        if self.budget < 0:
            if self.budget == -1:
                self.problem("limit", start, f"more than {MAX_VALUES} values, the rest is not decoded")
            return self.rest(start)
        width = code >> 4
        if code & 0xF == 0xF and width >= 4:
            return self.extended(code, start)
        if width >= 0xC:
            return self.compound(code, start)
        if width >= 0xA:
            return self.variable(code, start)
        if width >= 4:
            return self.fixed(code, start)
        self.problem("T-CODE-UNKNOWN", start, f"0x{code:02x} is no format code")
        return self.rest(start)

    def overrun(self, start: i64, size: i64) -> Raw:
        """A value at `start` claims `size` octets of data from `pos`, which are not there."""
        left = self.end - self.pos
        self.problem("T-SIZE-OVERRUN", start, f"the value claims {size} octets, {left} are left")
        return self.rest(start)

    def extended(self, code: i64, start: i64) -> object:
        self.problem("T-CODE-EXT", start, f"0x{code:02x} is an extended format code, none is assigned")
        if self.pos >= self.end:
            return self.rest(start)
        self.pos += 1
        return self.skip(code, start)

    def skip(self, code: i64, start: i64) -> object:
        """Step over a value by its format code's subcategory alone, and keep its octets."""
        width = code >> 4
        size: i64
        if width >= 0xA:
            size_octets: i64 = 1 if width & 1 == 0 else 4
            if self.end - self.pos < size_octets:
                return self.overrun(start, size_octets)
            size = self.buf[self.pos] if size_octets == 1 else u32(self.buf, self.pos)
            self.pos += size_octets
        elif width == 4:
            size = 0
        else:
            size = 1 << (width - 5)
        if size > self.end - self.pos:
            return self.overrun(start, size)
        self.pos += size
        return Raw(self.buf[start : self.pos])

    # Fixed width

    def fixed(self, code: i64, start: i64) -> object:
        buf = self.buf
        pos = self.pos
        if code <= 0x45:
            if code == 0x40:
                return None
            if code == 0x41:
                return True
            if code == 0x42:
                return False
            if code == 0x43:
                return UInt(0)
            if code == 0x44:
                return ULong(0)
            return []
        size: i64 = 0 if code < 0x50 else 1 << ((code >> 4) - 5)
        if size > self.end - pos:
            return self.overrun(start, size)
        self.pos = pos + size
        octet: i64
        if code < 0x60:
            if code < 0x50:
                return self.unknown(code, start)
            octet = buf[pos]
            if code == 0x52:
                return UInt(octet)
            if code == 0x53:
                return ULong(octet)
            if code == 0x50:
                return UByte(octet)
            if code == 0x56:
                if octet > 1:
                    self.problem("T-BOOL-OCTET", start, f"a boolean's octet is 0x{octet:02x}, not 0x00 or 0x01")
                    return Raw(buf[start : self.pos])
                return octet == 1
            signed: i64 = octet - 256 if octet >= 128 else octet
            if code == 0x54:
                return Int(signed)
            if code == 0x55:
                return Long(signed)
            if code == 0x51:
                return Byte(signed)
            return self.unknown(code, start)
        if code == 0x70:
            return UInt(u32(buf, pos))
        if code == 0x80:
            return ULong(u64(buf, pos))
        if code == 0x60:
            return UShort(u16(buf, pos))
        if code == 0x61:
            number: i64 = u16(buf, pos)
            return Short(number - 0x10000 if number >= 0x8000 else number)
        if code == 0x71:
            number = u32(buf, pos)
            return Int(number - 0x1_0000_0000 if number >= 0x8000_0000 else number)
        if code == 0x81 or code == 0x83:
            wide = int.from_bytes(buf[pos : pos + 8], "big", signed=True)
            return Long(wide) if code == 0x81 else Timestamp(wide)
        if code == 0x72:
            return Float(struct.unpack_from(">f", buf, pos)[0])
        if code == 0x82:
            double: float = struct.unpack_from(">d", buf, pos)[0]
            return double
        if code == 0x98:
            return uuid.UUID(bytes=buf[pos : pos + 16])
        if code == 0x74 or code == 0x84 or code == 0x94:
            return read_decimal(buf[pos : self.pos])
        if code == 0x73:
            return self.char(u32(buf, pos), start)
        return self.unknown(code, start)

    def char(self, scalar: i64, start: i64) -> object:
        if scalar > 0x10FFFF or 0xD800 <= scalar <= 0xDFFF:
            self.problem("T-CHAR-UTF32", start, f"0x{scalar:x} is no Unicode scalar value")
            return Raw(self.buf[start : self.pos])
        return Char(chr(scalar))

    def unknown(self, code: i64, start: i64) -> Raw:
        """A format code nobody assigned whose data has been stepped over."""
        if code == 0xA2 or code == 0xB2:
            self.problem("T-STR-NO-UTF16", start, f"0x{code:02x} (string in UTF-16) is not in the final specification")
        else:
            self.problem("T-CODE-UNKNOWN", start, f"0x{code:02x} is no assigned format code")
        return Raw(self.buf[start : self.pos])

    # Variable width

    def variable_size(self, code: i64, start: i64) -> i64:
        """The size of a variable width value, `pos` moved to its data; -1 if it does not fit."""
        size: i64
        if code < 0xB0:
            if self.pos >= self.end:
                self.overrun(start, 1)
                return -1
            size = self.buf[self.pos]
            self.pos += 1
        else:
            if self.end - self.pos < 4:
                self.overrun(start, 4)
                return -1
            size = u32(self.buf, self.pos)
            self.pos += 4
        if size > self.end - self.pos:
            self.overrun(start, size)
            return -1
        return size

    def variable(self, code: i64, start: i64) -> object:
        size = self.variable_size(code, start)
        if size < 0:
            return Raw(self.buf[start : self.end])
        data = self.buf[self.pos : self.pos + size]
        self.pos += size
        kind = code & 0xF
        if kind == 0:
            return data
        if kind == 1:
            return self.text(data, start)
        if kind == 3:
            if not data.isascii():
                self.problem("T-SYM-ASCII", start, "a symbol has an octet above 0x7f")
                return Raw(self.buf[start : self.pos])
            return Symbol(data.decode("ascii"))
        return self.unknown(code, start)

    def text(self, data: bytes, start: i64) -> object:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.problem("T-STR-UTF8", start, f"the string is not UTF-8 at its octet {error.start}")
            return Raw(self.buf[start : self.pos])
        if text.startswith(_BYTE_ORDER_MARK):
            self.problem("T-STR-NOBOM", start, "the string begins with a byte order mark")
        return text

    # Compound and array

    def compound_head(self, code: i64, start: i64) -> i64:
        """Read size and count of a compound or array. Sets `pos` behind the count and gives the count.

        Moves `end` to the compound's own end; the caller keeps the old one and restores it. On octets
        too short for size and count: -1, `end` untouched, all consumed.
        """
        buf = self.buf
        pos = self.pos
        size: i64
        count: i64
        width: i64
        if code < 0xD0 or 0xE0 <= code < 0xF0:
            width = 1
            if self.end - pos < 2:
                self.overrun(start, 2)
                return -1
            size = buf[pos]
            count = buf[pos + 1]
        else:
            width = 4
            if self.end - pos < 8:
                self.overrun(start, 8)
                return -1
            size = u32(buf, pos)
            count = u32(buf, pos + 4)
        self.pos = pos + 2 * width
        limit = pos + width + size
        if size < width:
            code_name = FORMAT_CODES.get(int(code), "compound")
            self.problem("T-SIZE-OVERRUN", start, f"a {code_name} of {size} octets has no room for its count")
            limit = self.pos
            count = 0
        elif limit > self.end:
            left = self.end - pos - width
            self.problem("T-SIZE-OVERRUN", start, f"the value claims {size} octets, {left} are left")
        else:
            self.end = limit
        return count

    def compound(self, code: i64, start: i64) -> object:
        if self.depth >= MAX_DEPTH:
            self.problem("limit", start, f"nested deeper than {MAX_DEPTH} levels, not decoded")
            return self.skip(code, start)
        subtype = code & 0xF
        if code < 0xE0 and subtype > 1 or code >= 0xE0 and subtype > 0:
            self.skip(code, start)
            return self.unknown(code, start)
        outer = self.end
        found = len(self.problems)
        count = self.compound_head(code, start)
        if count < 0:
            return Raw(self.buf[start:outer])
        self.depth += 1
        result: object
        if code >= 0xE0:
            result = self.array_items(count, start, found)
        elif subtype == 0:
            result = self.list_items(count, start, found)
        else:
            result = self.map_items(count, start, found)
        self.depth -= 1
        self.pos = self.end
        self.end = outer
        return result

    def fits(self, code: str, what: str, read: i64, count: i64, start: i64, found: i64) -> None:
        """After a compound: did its count of items use up its size? Silent after a problem inside."""
        if len(self.problems) > found or self.budget < 0:
            return
        if read < count:
            self.problem(code, start, f"the {what} counts {count} items, there is room for {read}")
        elif self.pos < self.end:
            self.problem(code, start, f"{self.end - self.pos} octets are left behind the {what}'s {count} items")

    def list_items(self, count: i64, start: i64, found: i64) -> list[object]:
        items: list[object] = []
        read: i64 = 0
        while read < count and self.pos < self.end:
            self.path.append(f"[{read}]")
            items.append(self.value())
            self.path.pop()
            read += 1
        self.fits("T-LIST-FIT", "list", read, count, start, found)
        return items

    def map_items(self, count: i64, start: i64, found: i64) -> Map:
        if count & 1:
            self.problem("T-MAP-EVEN", start, f"the map counts {count} items, an odd number")
        pairs: list[tuple[object, object]] = []
        seen: set[tuple[type, object]] = set()
        read: i64 = 0
        while read < count and self.pos < self.end:
            key_at = self.pos
            self.path.append(f"{{key {len(pairs)}}}")
            key = self.value()
            self.path.pop()
            read += 1
            if read >= count or self.pos >= self.end:
                pairs.append((key, Raw(b"")))
                break
            if not isinstance(key, (list, Map, Array, Described)):
                # By its digits: a signaling NaN refuses to be compared.
                marked = (type(key), key.as_tuple() if isinstance(key, Decimal) else key)
                if marked in seen:
                    self.problem("T-MAP-DUPKEY", key_at, f"the {type_name(key)} key of entry {len(pairs)} stands twice")
                seen.add(marked)
            self.path.append(self.key_path(key, len(pairs)))
            pairs.append((key, self.value()))
            self.path.pop()
            read += 1
        self.fits("T-MAP-FIT", "map", read, count, start, found)
        return Map(pairs)

    def key_path(self, key: object, index: int) -> str:
        """A map entry's part of a path: its key if that is a short plain symbol or string, else its index."""
        if isinstance(key, str) and len(key) <= 64 and key.isascii() and key.isprintable():
            return f"[{key}]"
        return f"[{index}]"

    def array_items(self, count: i64, start: i64, found: i64) -> object:
        if self.pos >= self.end:
            self.problem("T-ARR-CTOR", start, "the array has no element constructor")
            return Array("null", [], int(count))
        constructor = self.pos
        code: i64 = self.buf[self.pos]
        self.pos += 1
        descriptor: object = None
        levels: i64 = 0
        while code == 0:
            levels += 1
            inner = self.descriptor(constructor) if levels <= MAX_DEPTH else Raw(b"")
            if isinstance(inner, Raw):
                if len(self.problems) == found:
                    self.problem("limit", constructor, f"nested deeper than {MAX_DEPTH} levels, not decoded")
                return Array("undecodable value", [], int(count))
            descriptor = inner if descriptor is None else Described(descriptor, inner)
            code = self.buf[self.pos]
            self.pos += 1
        element = FORMAT_CODES.get(int(code))
        if element is None:
            self.pos -= 1
            self.problem("T-CODE-UNKNOWN", self.pos, f"0x{code:02x} is no assigned format code")
            return Array("undecodable value", [self.rest(self.pos)], int(count), descriptor)
        items: list[object] = []
        read: i64 = 0
        # Elements of no octets would go on for ever.
        empty = 0x40 <= code <= 0x45
        most: i64 = count
        if empty and count > MAX_EMPTY_ELEMENTS:
            most = MAX_EMPTY_ELEMENTS
        while read < most and (empty or self.pos < self.end) and self.budget > 0:
            self.path.append(f"[{read}]")
            items.append(self.data(code, self.pos))
            self.path.pop()
            read += 1
        if read < count and (self.budget <= 0 or read == most):
            self.problem("limit", start, f"an array of {count} items, {read} are decoded")
            self.pos = self.end
            return Array(element, items, int(count), descriptor)
        self.fits("T-ARR-FIT", "array", read, count, start, found)
        return Array(element, items, int(count), descriptor)
