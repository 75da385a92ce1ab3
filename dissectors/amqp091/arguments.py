"""Methods and their arguments (AMQP 0-9-1, sections 4.2.4 and 4.2.5).

A method is a class generated from the specification, with one attribute a field, and a `decode` that asks the
`ArgumentReader` for each field in turn. What the wire has no room for is absent: None, -1, or False where
the field is a bit; `present` says how many fields are there. A short string that is not UTF-8, or has a zero
octet, is None, and stands in `odd` as it was sent. Tables are left as they are (`FieldTable`) until someone
reads them.
"""

from typing import Final

from dissectors import interface
from dissectors.amqp091.tables import EITHER, FieldTable, sound_table, table_problems
from dissectors.amqp091.values import Raw
from dissectors.interface import Body, Problem
from dissectors.limits import MAX_PROBLEMS
from dissectors.wire import i64, u16, u32, u64
from dissectors.wording import are, count

__all__ = [
    "ArgumentField",
    "ArgumentReader",
    "Arguments",
    "ArgumentsType",
    "Method",
    "MethodType",
    "UnknownMethod",
]


class ArgumentField(interface.BodyField):
    """One field of a method or property list, in the words of the specification's XML.

    domain: its domain, or its type where it has none. reserved: has to be zero or empty. extension: what else
    RabbitMQ makes of it.
    """

    def __init__(
        self,
        name: str,
        domain: str,
        type: str,
        reserved: bool = False,
        secret: bool = False,
        extension: str = "",
    ) -> None:
        super().__init__(name, type, secret)
        self.domain = domain
        self.reserved = reserved
        self.extension = extension


class ArgumentsType:
    """What a list of arguments is called, and its fields."""

    def __init__(self, name: str, class_id: i64, fields: tuple[ArgumentField, ...]) -> None:
        self.name: str = name
        self.class_id: i64 = class_id
        self.fields: tuple[ArgumentField, ...] = fields
        self.size: i64 = len(fields)


class MethodType(ArgumentsType):
    """The definition of a method."""

    def __init__(
        self,
        name: str,
        class_id: i64,
        method_id: i64,
        fields: tuple[ArgumentField, ...],
        responses: tuple[str, ...] = (),
        traits: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, class_id, fields)
        self.method_id: i64 = method_id
        # The methods that answer it.
        self.responses: tuple[str, ...] = responses
        # Who may send it, RabbitMQ's extensions included.
        self.from_client: bool = "from-client" in traits
        self.from_server: bool = "from-server" in traits
        # A content header follows it.
        self.content: bool = "content" in traits
        # The specification calls it synchronous, or deprecated.
        self.synchronous: bool = "synchronous" in traits
        self.deprecated: bool = "deprecated" in traits
        # It is RabbitMQ's, not the specification's.
        self.extension: bool = "extension" in traits
        # One of its fields is a secret; then its frame's octets must not be shown either.
        self.secret: bool = any(field.secret for field in fields)


class Arguments(Body):
    """A decoded list of arguments. Subclasses have one attribute a field.

    present: how many of the fields were there. odd: what was sent where it does not decode, by field.
    """

    def __init__(self) -> None:
        self.present: i64 = 0
        self.odd: dict[int, object] | None = None

    def definition(self) -> ArgumentsType:
        """What it is called, and its fields."""
        return _UNDEFINED

    def values(self) -> list[object]:
        """The values of all fields in order."""
        return []

    def has(self, index: i64) -> bool:
        """Whether the field with this number was there."""
        return index < self.present

    def fields(self) -> list[tuple[ArgumentField, object]]:
        """The fields that are present, with what was sent."""
        shown: list[tuple[ArgumentField, object]] = []
        values = self.values()
        for index, field in enumerate(self.definition().fields):
            if not self.has(index):
                continue
            value = values[index]
            if value is None and self.odd is not None:
                value = self.odd.get(index)
            shown.append((field, value))
        return shown

    def title(self) -> str:
        return self.definition().name

    def is_odd(self, value: object) -> bool:
        odd = self.odd
        return odd is not None and any(value is other for other in odd.values())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Arguments)
            and self.definition() is other.definition()
            and self.present == other.present
            and self.values() == other.values()
            and (self.odd or None) == (other.odd or None)
        )

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}={'<hidden>' if field.secret else repr(value)}" for field, value in self.fields()
        )
        return f"{self.definition().name}({shown})"


class Method(Arguments):
    """A decoded method. Subclasses are generated."""

    def definition(self) -> MethodType:
        """The method's definition."""
        return _UNDEFINED

    def decode(self, reader: "ArgumentReader") -> None:
        """Take the arguments from a reader."""


class UnknownMethod(Method):
    """A method that neither the specification nor RabbitMQ knows."""

    def __init__(self, class_id: i64, method_id: i64) -> None:
        super().__init__()
        self.class_id: i64 = class_id
        self.method_id: i64 = method_id

    def fields(self) -> list[tuple[ArgumentField, object]]:
        return [(_CLASS_ID, int(self.class_id)), (_METHOD_ID, int(self.method_id))]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UnknownMethod)
            and self.class_id == other.class_id
            and self.method_id == other.method_id
        )

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"UnknownMethod({self.class_id}, {self.method_id})"


_UNDEFINED: Final = MethodType("undecodable", -1, -1, ())

_CLASS_ID: Final = ArgumentField("class-id", "class-id", "short")
_METHOD_ID: Final = ArgumentField("method-id", "method-id", "short")


class ArgumentReader:
    """Reads arguments in `buf` from `pos` up to `end`. Never raises on any octets.

    origin: index in `buf` of the frame's first octet. owner: what is being read. cut: not all of it was
    captured. short_rule: the rule that a list without room for its fields breaks.
    """

    def __init__(self, dialect: i64 = EITHER) -> None:
        self.buf: bytes = b""
        self.pos: i64 = 0
        self.end: i64 = 0
        self.origin: i64 = 0
        self.dialect: i64 = dialect
        self.cut: bool = False
        self.stopped: bool = False
        self.short_rule: str = "F-METHOD-ARGS"
        self.owner: Arguments = _NOBODY
        self.problems: list[Problem] = []
        # The short strings read last, by the number of their field: mostly the same come again.
        self._octets: list[bytes] = [b""] * 16
        self._texts: list[str] = [""] * 16

    def begin(self, buf: bytes, pos: i64, end: i64, origin: i64, owner: Arguments, cut: bool) -> None:
        """Read the arguments of `owner` next, from buf[pos:end]."""
        self.buf = buf
        self.pos = pos
        self.end = end
        self.origin = origin
        self.owner = owner
        self.cut = cut
        self.stopped = False

    def problem(self, code: str, at: i64, index: i64, reason: str) -> None:
        """Note a problem found at index `at` of the buffer, with a field (-1: none)."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(code, at - self.origin, self.path(index), reason))

    def path(self, index: i64) -> str:
        """The path of a field."""
        definition = self.owner.definition()
        return definition.name if index < 0 else f"{definition.name}.{definition.fields[index].name}"

    def stop(self, code: str, index: i64, reason: str) -> None:
        """There is no room for a field, or its length is wrong: nothing behind it can be found."""
        if self.stopped:
            return
        self.stopped = True
        self.owner.present = index
        if not self.cut:
            self.problem(code, self.pos, index, reason)
        self.pos = self.end

    def short_of(self, index: i64, size: i64) -> None:
        """There is no room for the `size` octets of a field."""
        left = self.end - self.pos
        self.stop(
            self.short_rule,
            index,
            f"the field needs {count(size, 'octet')}, but only {left} {are(left)} left",
        )

    def too_long(self, index: i64, size: i64, left: i64) -> None:
        """A string or table claims more octets than are left."""
        self.stop(
            "T-LENGTH-BOUNDS",
            index,
            f"the length announces {count(size, 'octet')}, but only {left} {are(left)} left",
        )

    # Fields by type. Where the octets end before one does it is -1 or None, and a problem is noted.

    def bits(self, index: i64) -> i64:
        """The octet of the bits that begin with this field."""
        if self.pos >= self.end:
            self.short_of(index, 1)
            return 0
        self.pos += 1
        return self.buf[self.pos - 1]

    def octet(self, index: i64) -> i64:
        if self.pos >= self.end:
            self.short_of(index, 1)
            return -1
        self.pos += 1
        return self.buf[self.pos - 1]

    def short(self, index: i64) -> i64:
        if self.end - self.pos < 2:
            self.short_of(index, 2)
            return -1
        self.pos += 2
        return u16(self.buf, self.pos - 2)

    def long(self, index: i64) -> i64:
        if self.end - self.pos < 4:
            self.short_of(index, 4)
            return -1
        self.pos += 4
        return u32(self.buf, self.pos - 4)

    def longlong(self, index: i64) -> int:
        if self.end - self.pos < 8:
            self.short_of(index, 8)
            return -1
        self.pos += 8
        return u64(self.buf, self.pos - 8)

    def timestamp(self, index: i64) -> int:
        return self.longlong(index)

    def shortstr(self, index: i64) -> str | None:
        buf = self.buf
        pos = self.pos
        if pos >= self.end:
            self.short_of(index, 1)
            return None
        size: i64 = buf[pos]
        if size == 0:
            self.pos = pos + 1
            return ""
        if size >= self.end - pos:
            self.too_long(index, size, self.end - pos - 1)
            return None
        self.pos = pos + 1 + size
        known = self._octets[index]
        if len(known) == size:
            n: i64 = 0
            while n < size and known[n] == buf[pos + 1 + n]:
                n += 1
            if n == size:
                return self._texts[index]
        octets = buf[pos + 1 : pos + 1 + size]
        if 0 in octets:
            self.problem("T-SHORTSTR-NUL", pos, index, "the short string has a zero octet")
            self.leave(octets, index)
            return None
        if not octets.isascii():
            return self.odd_text(octets, pos, index)
        text = octets.decode("ascii")
        self._octets[index] = octets
        self._texts[index] = text
        return text

    def odd_text(self, octets: bytes, at: i64, index: i64) -> str | None:
        """The text of octets that are not plain; None if they are none."""
        try:
            return octets.decode("utf-8")
        except UnicodeDecodeError as error:
            reason = f"octet {error.start} of the short string is not valid UTF-8"
            self.problem("T-SHORTSTR-UTF8", at, index, reason)
            self.leave(octets, index)
            return None

    def leave(self, octets: bytes, index: i64) -> None:
        """A field does not decode: it stays as it was sent."""
        if self.owner.odd is None:
            self.owner.odd = {}
        self.owner.odd[int(index)] = Raw(octets)

    def longstr(self, index: i64) -> bytes | None:
        pos = self.pos
        if self.end - pos < 4:
            self.short_of(index, 4)
            return None
        size = u32(self.buf, pos)
        if size > self.end - pos - 4:
            self.too_long(index, size, self.end - pos - 4)
            return None
        self.pos = pos + 4 + size
        return self.buf[pos + 4 : self.pos]

    def table(self, index: i64) -> FieldTable | None:
        start = self.pos + 4
        if self.end < start:
            self.short_of(index, 4)
            return None
        size = u32(self.buf, self.pos)
        if size > self.end - start:
            self.too_long(index, size, self.end - start)
            return None
        self.pos = start + size
        if not sound_table(self.buf, start, self.pos, self.dialect):
            path = self.path(index)
            found = table_problems(self.buf, start, self.pos, self.origin, self.end, path, self.dialect)
            self.problems += found[: MAX_PROBLEMS - len(self.problems)]
        return FieldTable(self.buf[start : self.pos])


# mypyc: null object, where there are no arguments. Nothing writes to it.
_NOBODY: Final = Arguments()
