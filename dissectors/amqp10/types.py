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

While `hiding`, what is read may be a credential: reasons then hold nothing that was read, nor paths.
"""

import struct
import uuid
from typing import Final

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
from dissectors.wording import are
from dissectors.wording import count as counted

__all__ = ["BLURRING", "FORMAT_CODES", "SIZE_FAULTS", "ValueReader", "type_name"]

SIZE_FAULTS: Final = (
    "T-SIZE-OVERRUN",
    "T-LIST-FIT",
    "T-MAP-FIT",
    "T-ARR-FIT",
    "T-CODE-UNKNOWN",
    "T-DESC-CTOR",
)
"""Faults after which it is unknown where a value ends."""

BLURRING: Final = (
    *SIZE_FAULTS,
    *("T-CODE-EXT", "T-ARR-CTOR", "T-MAP-EVEN"),
    *("T-COMP-TYPE", "T-COMP-LIST", "T-COMP-DESC", "T-COMP-MULT-ARRAY"),
)
"""Those, and faults that are what a value looks like where none begins."""

# types.xml, section "encodings": every format code that is assigned, and its type.
FORMAT_CODES: Final[dict[int, str]] = {
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

_TYPE_OF_CLASS: Final[dict[type, str]] = {
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

_BYTE_ORDER_MARK: Final = "\ufeff"

_NIL_UUID: Final = bytes(16)
_MAX_UUID: Final = b"\xff" * 16

# Of these types equal means the same. Not of floating point numbers (0.0 and -0.0, 1.0 and 1.00).
_COMPARABLE: Final[frozenset[type]] = frozenset(
    {
        type(None),
        bool,
        UByte,
        UShort,
        UInt,
        ULong,
        Byte,
        Short,
        Int,
        Long,
        Char,
        Timestamp,
        uuid.UUID,
        bytes,
        str,
        Symbol,
    }
)

# The rule that size and count of a compound or array break together.
_FIT: Final = {"list": "T-LIST-FIT", "map": "T-MAP-FIT", "array": "T-ARR-FIT"}

# Problems whose reasons name types and fields only, no numbers that were read.
_REVEALING_NOTHING: Final = frozenset(
    {"T-COMP-TYPE", "T-COMP-DESC", "T-COMP-LIST", "T-COMP-REQUIRES", "TX-COORD-TARGET"}
)

_HIDDEN: Final = "these octets do not fit; they may contain a credential and are not shown"


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
        self.hiding: bool = False
        # What is being read ends before its own end: it was not captured whole, or overruns what
        # encloses it, which has been reported.
        self.cut: bool = False
        # The restricted type of the map read next (`fields`, `annotations`, ...), or "".
        self.keys: str = ""
        self.problems: list[Problem] = []
        # Where the value being read stands, made into text only for a problem: a str stands for itself,
        # n for an item, -1 - n for the key of an entry, (key, n) for its value.
        self.path: list[object] = []

    # Problems

    def problem(self, code: str, at: i64, reason: str, leaf: str = "", unread: bool = True) -> None:
        """Note a problem found at index `at` of the buffer, in the field being read.

        unread: what was meant there is not known. Of most faults it is not; whoever reports one after which
        it is says so.
        """
        if len(self.problems) >= MAX_PROBLEMS:
            if unread:
                self.problems[MAX_PROBLEMS - 1].unread = True
        else:
            path = "".join([self.step_text(step) for step in self.path]) + leaf
            if self.hiding and code not in _REVEALING_NOTHING and not code.startswith("P-"):
                reason = _HIDDEN
            self.problems.append(Problem(code, at - self.origin, path.lstrip("."), reason, unread))

    def problem_once(self, code: str, at: i64, reason: str) -> None:
        """Note a problem of which one of a kind says enough: a peer that has it has it everywhere.

        What is meant is known all the same.
        """
        for problem in self.problems:
            if problem.code == code:
                return
        self.problem(code, at, reason, "", False)

    def step_text(self, step: object) -> str:
        """One step of a path as text."""
        if isinstance(step, str):
            return step
        if isinstance(step, int):
            return f"[{step}]" if step >= 0 else f"{{key {-1 - step}}}"
        assert isinstance(step, tuple)
        key, index = step
        # A key is shown if it is a short plain symbol or string.
        if isinstance(key, str) and len(key) <= 64 and key.isascii() and key.isprintable():
            if not self.hiding:
                return f"[{key}]"
        return f"[{index}]"

    def sound(self, found: i64) -> bool:
        """Whether what was read since there were `found` problems is whole and without another."""
        return len(self.problems) == found and not (self.cut and self.pos >= self.end)

    def blurred(self, found: i64) -> bool:
        """Whether one of the problems since there were `found` may be why a count or size does not fit."""
        at = found
        size: i64 = len(self.problems)
        while at < size:
            if self.problems[at].code in BLURRING:
                return True
            at += 1
        return False

    def rest(self, start: i64) -> Raw:
        """Everything from `start` to the end of what is being read, undecoded."""
        self.pos = self.end
        return Raw(self.buf[start : self.end])

    # Any value

    def value(self) -> object:
        """The next value, whatever its type. At the end of the enclosing value: `Raw(b"")` and a problem."""
        start = self.pos
        if start >= self.end:
            if not self.cut:
                self.problem("T-SIZE-OVERRUN", start, "a value is missing: no octets are left for the value")
            return Raw(b"")
        code: i64 = self.buf[start]
        self.pos = start + 1
        if code == 0:
            return self.described(start)
        return self.data(code, start)

    def described(self, start: i64) -> object:
        """A described value; `pos` is behind its 0x00, which stands at `start`."""
        if self.depth >= MAX_DEPTH:
            self.problem(
                "limit", start, f"the value is nested deeper than {MAX_DEPTH} levels and is not decoded"
            )
            return self.rest(start)
        self.depth += 1
        descriptor: object = self.descriptor(start)
        if self.pos < self.end:
            result = self.described_by(descriptor, start)
        else:
            descriptor = None  # its octets are among the rest, and may be megabytes
            result = self.rest(start)
        self.depth -= 1
        return result

    def descriptor(self, start: i64) -> object:
        """The descriptor behind a 0x00 at `start`. If no constructor follows it, `pos` is at the end."""
        if self.pos >= self.end:
            if not self.cut:
                self.problem("T-DESC-CTOR", start, "no descriptor follows the octet 0x00")
            return Raw(b"")
        found = len(self.problems)
        value = self.value()
        if self.pos >= self.end and self.sound(found):
            self.problem("T-DESC-CTOR", start, "no value follows the descriptor")
        return value

    def described_by(self, descriptor: object, start: i64) -> object:
        """The value behind a descriptor. Subclasses know descriptors; here none is."""
        self.check_descriptor(descriptor, start)
        return Described(descriptor, self.value())

    def check_descriptor(self, descriptor: object, at: i64) -> None:
        """Check a descriptor that no table knows, whose 0x00 stood at `at`.

        Not that of a frame's body or of a section of a message: what has to stand there is known.
        """
        if not self.path or isinstance(descriptor, Raw):
            return
        if isinstance(descriptor, Symbol):
            domain, colon, name = descriptor.partition(":")
            if not (domain and colon and name):
                self.problem_once(
                    "T-DESC-SYMFORM", at, "a symbolic descriptor is not of the form domain:name"
                )
        elif not isinstance(descriptor, ULong):
            self.problem_once(
                "T-DESC-RESERVED",
                at,
                f"a descriptor has the type `{type_name(descriptor)}`, but must be a `symbol` or `ulong`",
            )

    def data(self, code: i64, start: i64) -> object:
        """The data of a value whose format code (not 0x00) is known; its constructor began at `start`."""
        self.budget -= 1
        if self.budget < 0:
            if self.budget == -1:
                self.problem(
                    "limit", start, f"there are more than {MAX_VALUES} values; the rest is not decoded"
                )
            return self.rest(start)
        width = code >> 4
        if width >= 0xC:
            return self.compound(code, start)
        if width >= 0xA:
            return self.variable(code, start)
        if width >= 4:
            return self.fixed(code, start)
        # Not even the width of its data is known.
        self.unassigned(code, start)
        return self.rest(start)

    def overrun(self, code: i64, start: i64, size: i64) -> object:
        """A value at `start` claims `size` octets of data from `pos`, which are not there."""
        if int(code) not in FORMAT_CODES:
            return self.unknown(code, start)
        if not self.cut:
            left = self.end - self.pos
            self.problem(
                "T-SIZE-OVERRUN",
                start,
                f"the size of the value is {counted(size, 'octet')}, but only {left} {are(left)} left",
            )
        return self.rest(start)

    def unknown(self, code: i64, start: i64) -> object:
        """A format code nobody assigned: step over its data, `pos` is before it."""
        self.unassigned(code, start)
        return self.step_over(code, start)

    def unassigned(self, code: i64, at: i64) -> None:
        """Report a format code that nobody assigned."""
        if code & 0xF == 0xF and code >= 0x40:
            self.problem(
                "T-CODE-EXT",
                at,
                f"0x{code:02x} is an extended format code, but the specification assigns no such codes",
            )
        elif code == 0xA2 or code == 0xB2:
            self.problem(
                "T-STR-NO-UTF16",
                at,
                f"the format code 0x{code:02x} (string in UTF-16) is not in the final specification",
            )
        else:
            self.problem("T-CODE-UNKNOWN", at, f"0x{code:02x} is not an assigned format code")

    def step_over(self, code: i64, start: i64) -> Raw:
        """Step over the data of a value, and keep its octets from `start`, undecoded."""
        self.step(code)
        return Raw(self.buf[start : self.pos])

    def step(self, code: i64) -> None:
        """Move `pos` behind the data of a value by the width its format code tells; at most to the end."""
        width = code >> 4
        if code & 0xF == 0xF:
            self.pos += 1
        size: i64 = 0
        if width >= 0xA:
            octets: i64 = 1 if width & 1 == 0 else 4
            if self.end - self.pos < octets:
                self.pos = self.end
                return
            size = self.buf[self.pos] if octets == 1 else u32(self.buf, self.pos)
            self.pos += octets
        elif width > 4:
            size = 1 << (width - 5)
        if size > self.end - self.pos:
            size = self.end - self.pos
        self.pos += size

    def skip_value(self) -> None:
        """Move `pos` behind the next value without decoding it."""
        values: i64 = 1
        while values > 0 and self.pos < self.end:
            code: i64 = self.buf[self.pos]
            self.pos += 1
            if code == 0:
                # A descriptor, which is a value itself, and then what it describes.
                values += 1
            else:
                self.step(code)
                values -= 1

    def later(self, code: i64, at: i64) -> None:
        """A format code stands at `at` that the final specification has and drafts of it have not."""

    # Fixed width

    def fixed(self, code: i64, start: i64) -> object:
        """The data of a fixed width from `pos` on; its constructor began at `start`."""
        buf = self.buf
        pos = self.pos
        if code <= 0x45:
            if code == 0x40:
                return None
            if code == 0x41:
                return True
            if code == 0x42:
                return False
            self.later(code, start)
            if code == 0x43:
                return UInt(0)
            if code == 0x44:
                return ULong(0)
            return []
        if code < 0x50:
            return self.unknown(code, start)
        size: i64 = 1 << ((code >> 4) - 5)
        if size > self.end - pos:
            return self.overrun(code, start, size)
        self.pos = pos + size
        octet: i64
        if code < 0x60:
            octet = buf[pos]
            if code == 0x52:
                return UInt(octet)
            if code == 0x53:
                return ULong(octet)
            if code == 0x50:
                return UByte(octet)
            if code == 0x56:
                self.later(code, start)
                if octet > 1:
                    self.problem(
                        "T-BOOL-OCTET", start, f"a boolean's octet is 0x{octet:02x}, not 0x00 or 0x01"
                    )
                    return Raw(buf[start : self.pos])
                return octet == 1
            signed: i64 = octet - 256 if octet >= 128 else octet
            if code == 0x54:
                return Int(signed)
            if code == 0x55:
                return Long(signed)
            if code == 0x51:
                return Byte(signed)
            self.pos = pos
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
            self.check_uuid(pos, start)
            return uuid.UUID(bytes=buf[pos : pos + 16])
        if code == 0x74 or code == 0x84 or code == 0x94:
            from dissectors.amqp10.decimals import read_decimal  # takes long to load

            return read_decimal(buf[pos : self.pos])
        if code == 0x73:
            return self.char(u32(buf, pos), start)
        self.pos = pos
        return self.unknown(code, start)

    def check_uuid(self, pos: i64, start: i64) -> None:
        """Check variant and version (RFC 4122, section 4.1) of the uuid at `pos`; it began at `start`."""
        buf = self.buf
        variant: i64 = buf[pos + 8] >> 6
        version: i64 = buf[pos + 6] >> 4
        if variant == 2 and 1 <= version <= 8:
            return
        octets = buf[pos : pos + 16]
        if octets in (_NIL_UUID, _MAX_UUID):
            return
        swapped: i64 = buf[pos + 7] >> 4
        if variant != 2:
            self.problem_once("T-UUID-4122", start, "the uuid does not have the variant of RFC 4122")
        elif 1 <= swapped <= 8:
            self.problem_once(
                "T-UUID-4122",
                start,
                f"the uuid has version {version}; with swapped octets in the first fields, the version "
                f"would be {swapped}",
            )
        else:
            self.problem_once("T-UUID-4122", start, f"the uuid has version {version}, which is not defined")

    def char(self, scalar: i64, start: i64) -> object:
        """A char, or Raw where its 32 bits are no Unicode scalar value; `pos` is behind it."""
        if scalar > 0x10FFFF or 0xD800 <= scalar <= 0xDFFF:
            self.problem("T-CHAR-UTF32", start, f"0x{scalar:x} is not a Unicode scalar value")
            return Raw(self.buf[start : self.pos])
        return Char(chr(scalar))

    # Variable width

    def variable(self, code: i64, start: i64) -> object:
        """A binary, string or symbol: `pos` is before its size; its constructor began at `start`."""
        kind = code & 0xF
        if kind > 3 or kind == 2:
            return self.unknown(code, start)
        size: i64
        if code < 0xB0:
            if self.pos >= self.end:
                return self.overrun(code, start, 1)
            size = self.buf[self.pos]
            self.pos += 1
        else:
            if self.end - self.pos < 4:
                return self.overrun(code, start, 4)
            size = u32(self.buf, self.pos)
            self.pos += 4
        if size > self.end - self.pos:
            return self.overrun(code, start, size)
        data = self.buf[self.pos : self.pos + size]
        self.pos += size
        if kind == 0:
            return data
        if kind == 1:
            return self.text(data, start)
        if not data.isascii():
            self.problem("T-SYM-ASCII", start, "a symbol has an octet above 0x7f, but a symbol must be ASCII")
            return Raw(self.buf[start : self.pos])
        return Symbol(data.decode("ascii"))

    def text(self, data: bytes, start: i64) -> object:
        """A string, or Raw where it is no UTF-8; `pos` is behind it."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.problem("T-STR-UTF8", start, f"octet {error.start} of the string is not valid UTF-8")
            return Raw(self.buf[start : self.pos])
        return self.unmarked(text, start)

    def unmarked(self, text: str, start: i64) -> str:
        """A string, of which a byte order mark at its beginning is reported."""
        if text.startswith(_BYTE_ORDER_MARK):
            self.problem("T-STR-NOBOM", start, "the string begins with a byte order mark", "", False)
        return text

    # Compound and array

    def compound_head(self, code: i64, start: i64) -> i64:
        """Read size and count of a compound or array. Sets `pos` behind the count and gives the count.

        Moves `end` to the compound's own end, as far as that lies within the present one, and sets `cut`
        if it does not; the caller keeps the old ones and restores them. On octets too few for size and
        count: -1, all consumed.
        """
        buf = self.buf
        pos = self.pos
        size: i64
        count: i64
        width: i64
        if code < 0xD0 or 0xE0 <= code < 0xF0:
            width = 1
            if self.end - pos < 2:
                self.overrun(code, start, 2)
                return -1
            size = buf[pos]
            count = buf[pos + 1]
        else:
            width = 4
            if self.end - pos < 8:
                self.overrun(code, start, 8)
                return -1
            size = u32(buf, pos)
            count = u32(buf, pos + 4)
        self.pos = pos + 2 * width
        limit = pos + width + size
        if size < width:
            what = FORMAT_CODES[int(code)]
            self.problem(_FIT[what], start, f"a {what} of {size} octets has no room for its count")
            # A zero there will be the count, forgotten in the size; else the next value stands there.
            self.end = self.pos if count == 0 else limit
            self.pos = self.end
            self.cut = False
            return 0
        if limit > self.end:
            if not self.cut:
                left = self.end - pos - width
                self.problem(
                    "T-SIZE-OVERRUN",
                    start,
                    f"the size of the value is {counted(size, 'octet')}, but only {left} {are(left)} left",
                )
            self.cut = True
        else:
            self.end = limit
            self.cut = False
        return count

    def compound(self, code: i64, start: i64) -> object:
        """A list, map or array: `pos` is before its size; its constructor began at `start`."""
        subtype = code & 0xF
        if subtype > 1 or (subtype == 1 and code >= 0xE0):
            return self.unknown(code, start)
        if self.depth >= MAX_DEPTH:
            self.problem(
                "limit", start, f"the value is nested deeper than {MAX_DEPTH} levels and is not decoded"
            )
            return self.step_over(code, start)
        outer = self.end
        cut = self.cut
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
        self.cut = cut
        return result

    def fits(self, code: str, what: str, read: i64, count: i64, start: i64, found: i64) -> None:
        """After a compound: did its count of items use up its size? Silent if a fault inside explains it."""
        if self.budget < 0 or self.cut or self.blurred(found):
            return
        if read < count:
            self.problem(
                code,
                start,
                f"the count of the {what} is {count}, but the {what} has room for {counted(read, 'item')}",
            )
        elif self.pos < self.end:
            self.problem(
                code,
                start,
                f"the {what} announces {counted(count, 'item')}, but has "
                f"{counted(self.end - self.pos, 'further octet')} after the last item",
            )

    def list_items(self, count: i64, start: i64, found: i64) -> list[object]:
        """The items of a list, as many of `count` as there are; `found` problems were known before it."""
        items: list[object] = []
        read: i64 = 0
        while read < count and self.pos < self.end:
            self.path.append(int(read))
            items.append(self.value())
            self.path.pop()
            read += 1
        self.fits("T-LIST-FIT", "list", read, count, start, found)
        return items

    def map_items(self, count: i64, start: i64, found: i64) -> Map:
        """The pairs of a map of `count` keys and values, as many as there are."""
        keys = self.keys
        self.keys = ""
        if count & 1:
            self.problem("T-MAP-EVEN", start, f"the count of the map is {count}, an odd number")
        pairs: list[tuple[object, object]] = []
        seen: set[object] = set()
        read: i64 = 0
        while read < count and self.pos < self.end:
            at = self.pos
            index = len(pairs)
            self.path.append(-1 - index)
            key = self.value()
            read += 1
            if not isinstance(key, Raw):
                same: object = (type(key), key) if type(key) in _COMPARABLE else self.buf[at : self.pos]
                if same in seen:
                    self.problem(
                        "T-MAP-DUPKEY",
                        at,
                        (f"the map contains this key of the type `{type_name(key)}` twice"),
                    )
                seen.add(same)
                if keys:
                    self.check_key(keys, key, at)
            self.path.pop()
            if read >= count or self.pos >= self.end:
                pairs.append((key, Raw(b"")))
                break
            at = self.pos
            self.path.append((key, index))
            value = self.value()
            if keys:
                self.check_entry(keys, value, at)
            self.path.pop()
            pairs.append((key, value))
            read += 1
        self.fits("T-MAP-FIT", "map", read, count, start, found)
        return Map(pairs)

    def check_key(self, keys: str, key: object, at: i64) -> None:
        """Check a key, which stood at `at`, in a map of the restricted type `keys`."""

    def check_entry(self, keys: str, value: object, at: i64) -> None:
        """Check a value, which stood at `at`, in a map of the restricted type `keys`."""

    def element_type(self, code: i64) -> str | None:
        """The type of an array's elements by their format code; None if none is assigned."""
        return FORMAT_CODES.get(int(code))

    def array_items(self, count: i64, start: i64, found: i64) -> object:
        """The element constructor of an array and its `count` elements, as many as there are."""
        if self.pos >= self.end:
            if self.sound(found):
                self.problem("T-ARR-CTOR", start, "the array has no element constructor")
            return Array("undecodable value", [], int(count))
        constructor = self.pos
        code: i64 = self.buf[self.pos]
        self.pos += 1
        descriptor: object = None
        levels: i64 = 0
        while code == 0:
            levels += 1
            if levels > MAX_DEPTH:
                self.problem(
                    "limit",
                    constructor,
                    f"the value is nested deeper than {MAX_DEPTH} levels and is not decoded",
                )
                return Array("undecodable value", [], int(count), descriptor)
            inner = self.descriptor(constructor)
            descriptor = inner if levels == 1 else Described(descriptor, inner)
            if self.pos >= self.end:
                return Array("undecodable value", [], int(count), descriptor)
            code = self.buf[self.pos]
            self.pos += 1
        element = self.element_type(code)
        if element is None:
            at = self.pos - 1
            self.unassigned(code, at)
            return Array("undecodable value", [self.rest(at)], int(count), descriptor)
        composite = False
        if descriptor is not None:
            composite = self.is_composite(descriptor, code, constructor)
            if not composite:
                self.check_descriptor(descriptor, constructor)
        items: list[object] = []
        read: i64 = 0
        # Elements of no octets would go on for ever.
        empty = 0x40 <= code <= 0x45
        most: i64 = count
        if empty and count > MAX_EMPTY_ELEMENTS:
            most = MAX_EMPTY_ELEMENTS
        while read < most and (empty or self.pos < self.end) and self.budget > 0:
            self.path.append(int(read))
            items.append(self.element(descriptor, code) if composite else self.data(code, self.pos))
            self.path.pop()
            read += 1
        if read < count and (self.budget <= 0 or read == most):
            if self.budget >= 0:
                self.problem("limit", start, f"only {read} of the {count} items of the array are decoded")
                if self.budget == 0:
                    self.budget = -1
            self.pos = self.end
            return Array(element, items, int(count), descriptor)
        self.fits("T-ARR-FIT", "array", read, count, start, found)
        return Array(element, items, int(count), descriptor)

    def is_composite(self, descriptor: object, code: i64, at: i64) -> bool:
        """Whether an array's element constructor, at `at`, is that of a known composite; here none is."""
        return False

    def element(self, descriptor: object, code: i64) -> object:
        """The next array element, of a known composite type."""
        return self.data(code, self.pos)
