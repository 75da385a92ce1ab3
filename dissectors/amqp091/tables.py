"""Field tables and arrays, in the printed and in RabbitMQ's dialect (AMQP 0-9-1, sections 4.2.1, 4.2.5.5).

Theory of operation. A table is its length in octets and pairs of a name (a short string), a tag and a
value; an array is its length and tagged values. Nothing says how many there are: the length alone ends
them. So whatever stands in a table, what follows it can be read, and of a table the pairs before the first
one that cannot be.

Which type a tag stands for is disputed. The grammar of the specification and what RabbitMQ, and nearly
everyone after it, reads and writes differ:

    tag   printed                   RabbitMQ
    s     short string              16 bits signed
    U     16 bits signed            none
    l     64 bits unsigned          64 bits signed
    L     64 bits signed            64 bits signed
    x     none                      byte array
    D     32 bits unsigned, scaled  32 bits signed, scaled

Therefore a `FieldTable` keeps the octets, and the dialect is given when it is read. While nobody has reported
(`EITHER`), a table has a problem only if it has one in both dialects, and is read in RabbitMQ's unless only
the printed one fits.

Whether a table is sound is found out without making objects of its values: every message has to be checked
and of few anything is shown.
"""

import struct
from typing import Final

from dissectors.amqp091.values import (
    Amqp091Float,
    Amqp091Timestamp,
    ByteArray,
    FieldArray,
    LongInt,
    LongLongInt,
    LongLongUint,
    LongUint,
    Raw,
    ShortInt,
    ShortShortInt,
    ShortShortUint,
    ShortString,
    ShortUint,
    Table,
)
from dissectors.interface import Problem
from dissectors.limits import MAX_DEPTH, MAX_PROBLEMS, MAX_VALUES
from dissectors.wire import i64, u16, u32, u64
from dissectors.wording import are, count

__all__ = [
    "EITHER",
    "PRINTED",
    "RABBITMQ",
    "FieldTable",
    "TableReader",
    "odd_name",
    "plain_text",
    "sound_table",
]

EITHER: Final = 0
"""Nobody has reported which dialect is spoken."""
RABBITMQ: Final = 1
"""The dialect of RabbitMQ's errata."""
PRINTED: Final = 2
"""The dialect of the specification's grammar."""

MAX_NAME: Final = 128
"""Characters of a field name (section 4.2.5.5)."""

# Of more names than these the slow way finds out whether one is repeated.
_FEW_NAMES: Final = 64


class FieldTable:
    """A table as it was sent: the octets of its pairs, without the length before them."""

    def __init__(self, octets: bytes) -> None:
        self.octets: bytes = octets

    def read(self, dialect: i64 = EITHER) -> Table:
        """The pairs, in a dialect."""
        return self.reader(dialect).pairs()

    def problems(self, dialect: i64 = EITHER) -> list[Problem]:
        """What is wrong with it, in a dialect; offsets are from its first pair."""
        if sound_table(self.octets, 0, len(self.octets), dialect):
            return []
        return table_problems(self.octets, 0, len(self.octets), 0, len(self.octets), "", dialect)

    def fits(self, dialect: i64) -> bool:
        """Whether it can be read in a dialect (RABBITMQ or PRINTED) without a problem."""
        return not self.problems(dialect)

    def odd_name(self) -> str | None:
        """The first name that begins with no letter, '$' or '#'; None if none does."""
        return odd_name(self.octets, 0, len(self.octets))

    def reader(self, dialect: i64) -> "TableReader":
        """A reader of its pairs."""
        chosen = dialect
        if chosen == EITHER:
            chosen = RABBITMQ
            if not self.fits(RABBITMQ) and self.fits(PRINTED):
                chosen = PRINTED
        return TableReader(self.octets, 0, len(self.octets), 0, chosen)

    def get(self, name: str, dialect: i64 = EITHER) -> object:
        """The value of the first pair with this name, or None."""
        return self.read(dialect).get(name)

    def __len__(self) -> int:
        return len(self.octets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldTable) and self.octets == other.octets

    def __hash__(self) -> int:
        return hash(self.octets)

    def __repr__(self) -> str:
        return f"FieldTable({self.read()!r})"


# Whether a table is sound


def plain_text(buf: bytes, at: i64, end: i64) -> bool:
    """Whether buf[at:end] is ASCII without a zero octet, as nearly every short string is."""
    while at < end:
        octet: i64 = buf[at]
        if octet == 0 or octet >= 0x80:
            return False
        at += 1
    return True


def sound_table(buf: bytes, start: i64, end: i64, dialect: i64) -> bool:
    """Whether pairs fill buf[start:end] with nothing to be said against them.

    False says only that it takes a `TableReader` to tell: names in other letters than ASCII are rare.
    """
    if dialect != EITHER:
        return _sound_pairs(buf, start, end, dialect, 0)
    return _sound_pairs(buf, start, end, RABBITMQ, 0) or _sound_pairs(buf, start, end, PRINTED, 0)


def _sound_pairs(buf: bytes, start: i64, end: i64, dialect: i64, depth: i64) -> bool:
    pos = start
    count: i64 = 0
    seen: i64 = 0
    while pos < end:
        size: i64 = buf[pos]
        behind = pos + 1 + size
        if behind >= end or size > MAX_NAME or count == _FEW_NAMES or not plain_text(buf, pos + 1, behind):
            return False
        # Names that differ in this cannot be the same; of the others it is looked up.
        bit: i64 = size * 5
        if size > 0:
            bit += buf[pos + 1] * 3 + buf[behind - 1]
        mask: i64 = 1
        mask = mask << (bit & 31)
        if seen & mask != 0 and _repeated(buf, start, pos, end, dialect):
            return False
        seen |= mask
        count += 1
        pos = _behind_value(buf, behind, end, dialect, depth, True)
        if pos < 0:
            return False
    return True


def _repeated(buf: bytes, start: i64, at: i64, end: i64, dialect: i64) -> bool:
    """Whether the name at `at` stands in one of the sound pairs in buf[start:at]."""
    size: i64 = buf[at]
    pos = start
    while pos < at:
        if buf[pos] == size:
            n: i64 = 1
            while n <= size and buf[pos + n] == buf[at + n]:
                n += 1
            if n > size:
                return True
        pos = _behind_value(buf, pos + 1 + buf[pos], end, dialect, 0, False)
        if pos < 0:
            return False
    return False


def _behind_value(buf: bytes, at: i64, end: i64, dialect: i64, depth: i64, inside: bool) -> i64:
    """The index behind the tagged value at `at` (before `end`), or -1 where something may be wrong.

    inside: look into tables and arrays, too.
    """
    tag: i64 = buf[at]
    pos = at + 1
    width = fixed_width(tag, dialect)
    if width >= 0:
        pos += width
        return pos if pos <= end else -1
    if width == NO_TAG:
        return -1
    if width == SHORT_STRING:
        if pos >= end:
            return -1
        first = pos + 1
        pos = first + buf[pos]
        return pos if pos <= end and plain_text(buf, first, pos) else -1
    if end - pos < 4:
        return -1
    first = pos + 4
    pos = first + u32(buf, pos)
    if pos > end:
        return -1
    if inside and (tag == 0x46 or tag == 0x41):
        if depth >= MAX_DEPTH - 1:
            return -1
        if tag == 0x46:
            return pos if _sound_pairs(buf, first, pos, dialect, depth + 1) else -1
        while first < pos:
            first = _behind_value(buf, first, pos, dialect, depth + 1, True)
            if first < 0:
                return -1
    return pos


def odd_name(buf: bytes, start: i64, end: i64) -> str | None:
    """Of the pairs in buf[start:end] the first name that begins with no letter, '$' or '#' (section 4.2.5.5).

    Up to where they cannot be read in RabbitMQ's dialect, and not in the tables inside.
    """
    pos = start
    while pos < end:
        size: i64 = buf[pos]
        behind = pos + 1 + size
        if behind >= end:
            return None
        first: i64 = buf[pos + 1] if size > 0 else 0
        if not (97 <= first <= 122 or 65 <= first <= 90 or first == 36 or first == 35):  # a-z A-Z $ #
            return buf[pos + 1 : behind].decode("utf-8", "replace")
        pos = _behind_value(buf, behind, end, RABBITMQ, 0, False)
        if pos < 0:
            return None
    return None


# What `fixed_width` says instead of a width.
NO_TAG: Final = -1
SHORT_STRING: Final = -2
LONG_STRING: Final = -3  # or table, or array: a length of four octets


def fixed_width(tag: i64, dialect: i64) -> i64:
    """Octets of a value with this tag, NO_TAG, SHORT_STRING or LONG_STRING."""
    if tag == 0x53 or tag == 0x46 or tag == 0x41:  # S F A
        return LONG_STRING
    if tag == 0x49 or tag == 0x69 or tag == 0x66:  # I i f
        return 4
    if tag == 0x74 or tag == 0x62 or tag == 0x42:  # t b B
        return 1
    if tag == 0x6C or tag == 0x4C or tag == 0x64 or tag == 0x54:  # l L d T
        return 8
    if tag == 0x56:  # V
        return 0
    if tag == 0x75:  # u
        return 2
    if tag == 0x44:  # D
        return 5
    if dialect == PRINTED:
        if tag == 0x55:  # U
            return 2
        return SHORT_STRING if tag == 0x73 else NO_TAG  # s
    if tag == 0x73:  # s
        return 2
    return LONG_STRING if tag == 0x78 else NO_TAG  # x


def table_problems(
    buf: bytes, start: i64, end: i64, origin: i64, limit: i64, path: str, dialect: i64
) -> list[Problem]:
    """What is wrong with the pairs in buf[start:end], the table at `path`; see `TableReader` for the rest."""
    reader = TableReader(buf, start, end, origin, PRINTED if dialect == PRINTED else RABBITMQ)
    reader.limit = limit
    reader.path.append(path)
    reader.pairs()
    if dialect == EITHER and reader.problems:
        other = TableReader(buf, start, end, origin, PRINTED)
        other.pairs()
        if not other.problems:
            return other.problems
    return reader.problems


# What it says


class TableReader:
    """Reads the pairs in `buf` from `pos` up to `end`. Never raises on any octets.

    origin: index in `buf` from which problems count their offsets. dialect: RABBITMQ or PRINTED.
    limit: where the payload ends that the outermost table stands in.
    """

    def __init__(
        self, buf: bytes, pos: i64, end: i64, origin: i64, dialect: i64, budget: i64 = MAX_VALUES
    ) -> None:
        self.buf: bytes = buf
        self.pos: i64 = pos
        self.end: i64 = end
        self.limit: i64 = end
        self.origin: i64 = origin
        self.dialect: i64 = dialect
        self.budget: i64 = budget
        self.depth: i64 = 0
        # After a wrong length it is unknown where anything begins: what else is wrong follows from it.
        self.unsure: bool = False
        self.problems: list[Problem] = []
        self.path: list[str] = []

    def problem(self, code: str, at: i64, reason: str) -> None:
        """Note a problem found at index `at` of the buffer."""
        if len(self.problems) < MAX_PROBLEMS and not self.unsure:
            self.problems.append(Problem(code, at - self.origin, "".join(self.path), reason))

    def overrun(self, start: i64, size: i64, what: str, reported: bool) -> Raw:
        """The value at `start` has no room for `size` octets from `pos` on. reported: its length says so."""
        code = "T-LENGTH-BOUNDS" if reported and self.pos + size > self.limit else "T-TABLE-LEN"
        left = self.end - self.pos
        self.problem(code, start, f"{what} has {count(size, 'octet')}, but only {left} {are(left)} left")
        self.unsure = True
        return self.rest(start)

    def rest(self, start: i64) -> Raw:
        """Everything from `start` to the end of what is being read."""
        self.pos = self.end
        return Raw(self.buf[start : self.end])

    def pairs(self) -> Table:
        """All pairs up to the end."""
        pairs: list[tuple[object, object]] = []
        seen: set[object] = set()
        while self.pos < self.end:
            start = self.pos
            size: i64 = self.buf[start]
            self.pos = start + 1
            if size > self.end - self.pos:
                return Table(pairs, self.overrun(start, size, "a field name", True).octets)
            self.pos += size
            name = self.text(start, self.buf[start + 1 : self.pos])
            self.path.append(_step(name, len(pairs)))
            if name in seen:
                self.problem("T-TABLE-DUP", start, "the table contains this field name twice")
            seen.add(name)
            if isinstance(name, str) and len(name) > MAX_NAME:
                self.problem(
                    "T-TABLE-NAME-LEN", start, f"the field name has {len(name)} characters, more than 128"
                )
            value = self.value()
            self.path.pop()
            pairs.append((name, value))
        return Table(pairs)

    def text(self, start: i64, octets: bytes) -> object:
        """The text of a short string that stands at `start`, `Raw` if it is none."""
        if 0 in octets:
            self.problem("T-SHORTSTR-NUL", start, "a short string has a zero octet")
        try:
            return octets.decode("utf-8")
        except UnicodeDecodeError as error:
            self.problem(
                "T-SHORTSTR-UTF8", start, (f"octet {error.start} of a short string is not valid UTF-8")
            )
            return Raw(octets)

    def value(self) -> object:
        """The next value with its tag."""
        start = self.pos
        if start >= self.end:
            self.problem("T-TABLE-LEN", start, "the table ends before the value of a field")
            self.unsure = True
            return Raw(b"")
        self.budget -= 1
        if self.budget < 0:
            if self.budget == -1:
                self.problem(
                    "limit", start, f"there are more than {MAX_VALUES} values; the rest is not decoded"
                )
            return self.rest(start)
        tag: i64 = self.buf[start]
        self.pos = start + 1
        width = fixed_width(tag, self.dialect)
        if width >= 0:
            if width > self.end - self.pos:
                return self.overrun(start, width, "a value", False)
            self.pos += width
            return self.fixed(tag, self.pos - width)
        if width == NO_TAG:
            self.problem("T-TABLE-TAG", start, f"no field type has the tag 0x{tag:02x}")
            return self.rest(start)
        prefix: i64 = 1 if width == SHORT_STRING else 4
        if prefix > self.end - self.pos:
            return self.overrun(start, prefix, "a length", False)
        size: i64 = self.buf[self.pos] if prefix == 1 else u32(self.buf, self.pos)
        self.pos += prefix
        if tag == 0x46 or tag == 0x41:
            return self.compound(tag, start, size)
        if size > self.end - self.pos:
            return self.overrun(start, size, "a string", True)
        octets = self.buf[self.pos : self.pos + size]
        self.pos += size
        if prefix == 1:
            short = self.text(start, octets)
            return ShortString(short) if isinstance(short, str) else short
        if tag == 0x78:
            return ByteArray(octets)
        try:
            return octets.decode("utf-8")
        except UnicodeDecodeError:
            return octets

    def compound(self, tag: i64, start: i64, size: i64) -> object:
        """The table or array of `size` octets at `pos`; its tag stands at `start`."""
        what = "a table" if tag == 0x46 else "an array"
        if self.depth >= MAX_DEPTH:
            self.problem(
                "limit", start, f"the value is nested deeper than {MAX_DEPTH} levels and is not decoded"
            )
            if size > self.end - self.pos:
                size = self.end - self.pos
            self.pos += size
            return Raw(self.buf[start : self.pos])
        outer = self.end
        if size > outer - self.pos:
            # What is there is read all the same.
            at = self.pos
            self.overrun(start, size, what, True)
            self.pos = at
        else:
            self.end = self.pos + size
        self.depth += 1
        result: object
        if tag == 0x46:
            result = self.pairs()
        else:
            items: list[object] = []
            while self.pos < self.end:
                self.path.append(f"[{len(items)}]")
                items.append(self.value())
                self.path.pop()
            result = FieldArray(items)
        self.depth -= 1
        self.end = outer
        return result

    def fixed(self, tag: i64, at: i64) -> object:
        """The value with this tag whose octets stand at `at`."""
        buf = self.buf
        octet: i64
        wide: i64
        if tag == 0x56:
            return None
        if tag == 0x74:
            return buf[at] != 0
        if tag == 0x42:
            return ShortShortUint(buf[at])
        if tag == 0x62:
            octet = buf[at]
            return ShortShortInt(octet - 256 if octet >= 128 else octet)
        if tag == 0x75:
            return ShortUint(u16(buf, at))
        if tag == 0x73 or tag == 0x55:
            wide = u16(buf, at)
            return ShortInt(wide - 0x10000 if wide >= 0x8000 else wide)
        if tag == 0x69:
            return LongUint(u32(buf, at))
        if tag == 0x49:
            return LongInt(_signed32(u32(buf, at)))
        if tag == 0x66:
            return Amqp091Float(struct.unpack_from(">f", buf, at)[0])
        if tag == 0x64:
            double: float = struct.unpack_from(">d", buf, at)[0]
            return double
        if tag == 0x54:
            return Amqp091Timestamp(u64(buf, at))
        if tag == 0x44:
            from dissectors.amqp091.decimals import Decimal  # takes long to load

            wide = u32(buf, at + 1)
            return Decimal.of(buf[at], wide if self.dialect == PRINTED else _signed32(wide))
        if tag == 0x6C and self.dialect == PRINTED:
            return LongLongUint(u64(buf, at))
        return LongLongInt(int.from_bytes(buf[at : at + 8], "big", signed=True))


def _signed32(number: i64) -> i64:
    return number - 0x1_0000_0000 if number >= 0x8000_0000 else number


def _step(name: object, index: int) -> str:
    """A name as a step of a path: itself if it is short and plain, else its place."""
    if isinstance(name, str) and len(name) <= 64 and name.isascii() and name.isprintable():
        return f"[{name}]"
    return f"[{index}]"
