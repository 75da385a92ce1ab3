"""Rows of a table by column, in the form that Arrow has in memory, until there are enough for a batch.

A column writes its values straight into buffers, which become Arrow arrays as they are: no object of Python
is made for a value. A row without a value in a column does not touch the column. The next value, or the end
of the batch, makes all rows before it null.
"""

from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from librt.strings import BytesWriter, write_f64_le, write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, u8

from amqpscope.model.passwords import without_password
from amqpscope.pipeline.arrow_values import scalar_of
from amqpscope.pipeline.schemas import TABLES, TableSchema
from dissectors.wire import i64

__all__ = [
    "DAY",
    "Column",
    "Flags",
    "Hex",
    "Lists",
    "Numbers",
    "SmallNumbers",
    "TableColumns",
    "Texts",
    "TimedColumns",
    "Words",
    "array_of",
    "batch_of",
    "fits",
    "without_dictionaries",
]

DAY: Final = 86_400 * 1_000_000_000
"""In ns."""

_EPOCH: Final = date(1970, 1, 1)


class Column:
    """The values of a column, null in the rows that none was put into.

    size: how many rows have their value, or are known to have none.
    """

    def __init__(self) -> None:
        self.size: i64 = 0
        self.nulls: i64 = 0
        # A bit for each row with a value, eight of them at a time; nothing while there is no null.
        self._valid: BytesWriter = BytesWriter()
        self._bits: i64 = 0

    def give(self, row: i64, value: Any) -> None:
        """A value of any type that the column can hold, in a row behind all rows with a value."""
        raise NotImplementedError

    def take(self, rows: i64, kind: Any) -> Any:
        """The first rows, all there are, as an Arrow array of this type. Then the column is empty."""
        if self.size == 0:
            return _nulls(rows, kind)
        if self.size < rows:
            self._miss(rows)
        valid = None
        if self.nulls > 0:
            if self.size & 7:
                self._valid.append(u8(self._bits))
            valid = _drained(self._valid)
            self._bits = 0
        made = self._made(int(rows), valid, kind)
        self.size = 0
        self.nulls = 0
        return made

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        """The rows as an Arrow array, after which the column's own buffers are empty.

        valid: the buffer that says which rows have a value, None if all have one.
        """
        raise NotImplementedError

    def _fill(self, missing: i64) -> None:
        """So many rows have no value."""
        raise NotImplementedError

    def _miss(self, row: i64) -> None:
        """The rows before this one that have no value yet are null."""
        size = self.size
        valid = self._valid
        if self.nulls == 0:
            whole = size >> 3
            while whole > 0:
                valid.append(u8(255))
                whole -= 1
            self._bits = (1 << (size & 7)) - 1
        missing = row - size
        self.nulls += missing
        bits = (size & 7) + missing
        while bits >= 8:
            valid.append(u8(self._bits))
            self._bits = 0
            bits -= 8
        self._fill(missing)
        self.size = row

    def _mark(self, row: i64) -> None:
        """This row has a value; to be called if an earlier row has none."""
        at = row & 7
        self._bits |= 1 << at
        if at == 7:
            self._valid.append(u8(self._bits))
            self._bits = 0


class Numbers(Column):
    """Whole numbers of 64 bits, and times as such."""

    def __init__(self) -> None:
        super().__init__()
        self._values: BytesWriter = BytesWriter()

    def put(self, row: i64, value: i64) -> None:
        """The value in a row, which stands behind all rows with a value."""
        if row != self.size:
            self._miss(row)
        write_i64_le(self._values, value)
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def give(self, row: i64, value: Any) -> None:
        self.put(row, value)

    def _fill(self, missing: i64) -> None:
        while missing > 0:
            write_i64_le(self._values, 0)
            missing -= 1

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, rows, [valid, _drained(self._values)])


class SmallNumbers(Column):
    """Whole numbers of 32 bits, and dates."""

    def __init__(self) -> None:
        super().__init__()
        self._values: BytesWriter = BytesWriter()

    def put(self, row: i64, value: i64) -> None:
        """The value in a row, which stands behind all rows with a value. A date is the days since 1970."""
        if row != self.size:
            self._miss(row)
        write_i32_le(self._values, i32(value))
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def give(self, row: i64, value: Any) -> None:
        if isinstance(value, date):
            value = (value - _EPOCH).days
        self.put(row, value)

    def _fill(self, missing: i64) -> None:
        while missing > 0:
            write_i32_le(self._values, 0)
            missing -= 1

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, rows, [valid, _drained(self._values)])


class Floats(Column):
    """Numbers with a fraction."""

    def __init__(self) -> None:
        super().__init__()
        self._values: BytesWriter = BytesWriter()

    def give(self, row: i64, value: Any) -> None:
        if row != self.size:
            self._miss(row)
        write_f64_le(self._values, float(value))
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def _fill(self, missing: i64) -> None:
        while missing > 0:
            write_f64_le(self._values, 0.0)
            missing -= 1

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, rows, [valid, _drained(self._values)])


class Flags(Column):
    """Booleans, eight in an octet."""

    def __init__(self) -> None:
        super().__init__()
        self._values: BytesWriter = BytesWriter()
        self._on: i64 = 0

    def put(self, row: i64, value: bool) -> None:
        """The value in a row, which stands behind all rows with a value."""
        if row != self.size:
            self._miss(row)
        at = row & 7
        if value:
            self._on |= 1 << at
        if at == 7:
            self._values.append(u8(self._on))
            self._on = 0
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def give(self, row: i64, value: Any) -> None:
        self.put(row, value)

    def _fill(self, missing: i64) -> None:
        bits = (self.size & 7) + missing
        while bits >= 8:
            self._values.append(u8(self._on))
            self._on = 0
            bits -= 8

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        if self.size & 7:
            self._values.append(u8(self._on))
        self._on = 0
        return pa.Array.from_buffers(kind, rows, [valid, _drained(self._values)])


class Texts(Column):
    """Texts that seldom repeat. What cannot be encoded, in the name of a file mostly, is put as escapes."""

    def __init__(self) -> None:
        super().__init__()
        self._ends: BytesWriter = _with_zero()
        self._octets: BytesWriter = BytesWriter()
        self._end: i64 = 0

    def put(self, row: i64, text: str) -> None:
        """The text in a row, which stands behind all rows with a text."""
        self.put_encoded(row, _encoded(text))

    def put_encoded(self, row: i64, text: bytes) -> None:
        """A text that is encoded already."""
        if row != self.size:
            self._miss(row)
        self._octets.write(text)
        self._end_at(row, self._end + len(text))

    def _end_at(self, row: i64, end: i64) -> None:
        """The text of a row ends here."""
        self._end = end
        write_i32_le(self._ends, i32(end))
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def give(self, row: i64, value: Any) -> None:
        self.put(row, value)

    def _fill(self, missing: i64) -> None:
        end = i32(self._end)
        while missing > 0:
            write_i32_le(self._ends, end)
            missing -= 1

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        self._end = 0
        return pa.Array.from_buffers(kind, rows, [valid, _drained(self._ends, 4), _drained(self._octets)])


class Hex(Texts):
    """Octets, shown as hexadecimal digits."""

    def put_octets(self, row: i64, octets: bytes) -> None:
        """The octets in a row, which stands behind all rows with octets."""
        if row != self.size:
            self._miss(row)
        writer = self._octets
        size: i64 = len(octets)
        at: i64 = 0
        while at < size:
            octet: i64 = octets[at]
            high = octet >> 4
            low = octet & 15
            high += _DIGIT if high < 10 else _LETTER
            low += _DIGIT if low < 10 else _LETTER
            write_i16_le(writer, i16(high | low << 8))
            at += 1
        self._end_at(row, self._end + 2 * size)


class Words(Column):
    """Texts most of which repeat: each row has the number of its text in a dictionary.

    from_wire: a peer chose them. Those that are URLs are stored without passwords.
    """

    def __init__(self, from_wire: bool) -> None:
        super().__init__()
        self._from_wire: bool = from_wire
        self._numbers: BytesWriter = BytesWriter()
        self._codes: dict[str, int] = {}
        self._words: Texts = Texts()
        # The last three texts, each one another: mostly the next text is one of them.
        self._last: str | None = None
        self._second: str | None = None
        self._third: str | None = None
        self._code: i64 = 0
        self._second_code: i64 = 0
        self._third_code: i64 = 0

    def say(self, row: i64, word: str | None) -> None:
        """The text in a row, which stands behind all rows with one."""
        if word is None:
            return
        if word is not self._last:
            self._turn_to(word)
        if row != self.size:
            self._miss(row)
        write_i32_le(self._numbers, i32(self._code))
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def _turn_to(self, word: str) -> None:
        """Let this be the last text."""
        code = self._second_code
        if word is not self._second:
            if word is self._third:
                code = self._third_code
            else:
                code = self._code_of(word)
            self._third = self._second
            self._third_code = self._second_code
        self._second = self._last
        self._second_code = self._code
        self._last = word
        self._code = code

    def _code_of(self, word: str) -> i64:
        code = self._codes.get(word)
        if code is None:
            code = len(self._codes)
            self._codes[word] = code
            self._words.put(code, without_password(word) if self._from_wire else word)
        return code

    def give(self, row: i64, value: Any) -> None:
        self.say(row, value)

    def _fill(self, missing: i64) -> None:
        while missing > 0:
            write_i32_le(self._numbers, 0)
            missing -= 1

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        words = self._words.take(len(self._codes), kind.value_type)
        self._codes = {}
        self._last = self._second = self._third = None
        indices = pa.Array.from_buffers(pa.int32(), rows, [valid, _drained(self._numbers)])
        return pa.DictionaryArray.from_arrays(indices, words, safe=False)


class Lists(Column):
    """Lists of values. usual: a row that none was put into has an empty list, and not null."""

    def __init__(self, items: Column, usual: bool = False) -> None:
        super().__init__()
        self._items: Column = items
        self._usual: bool = usual
        self._ends: BytesWriter = _with_zero()
        self._end: i64 = 0

    def give(self, row: i64, value: Any) -> None:
        if row != self.size:
            self._miss(row)
        for item in value:
            if item is not None:
                self._items.give(self._end, item)
            self._end += 1
        write_i32_le(self._ends, i32(self._end))
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def take(self, rows: i64, kind: Any) -> Any:
        if self._usual and self.size == 0 and rows > 0:
            self.give(0, [])
        return super().take(rows, kind)

    def _miss(self, row: i64) -> None:
        if self._usual:
            self._fill(row - self.size)
            self.size = row
        else:
            super()._miss(row)

    def _fill(self, missing: i64) -> None:
        end = i32(self._end)
        while missing > 0:
            write_i32_le(self._ends, end)
            missing -= 1

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        items = self._items.take(self._end, kind.value_type)
        self._end = 0
        return pa.Array.from_buffers(kind, rows, [valid, _drained(self._ends, 4)], children=[items])


class Structs(Column):
    """Objects with some members, each of which is a column by itself."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self._members: dict[str, Column] = {field.name: column_of(field.type) for field in kind}

    def give(self, row: i64, value: Any) -> None:
        if row != self.size:
            self._miss(row)
        for name, column in self._members.items():
            member = value.get(name)
            if member is not None:
                column.give(row, member)
        if self.nulls > 0:
            self._mark(row)
        self.size = row + 1

    def _fill(self, missing: i64) -> None:
        pass

    def _made(self, rows: int, valid: Any, kind: Any) -> Any:
        members = [self._members[field.name].take(rows, field.type) for field in kind]
        return pa.Array.from_buffers(kind, rows, [valid], children=members)


def column_of(kind: Any) -> Column:
    """A column for values of this Arrow type."""
    if pa.types.is_dictionary(kind):
        return Words(False)
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return Numbers()
    if pa.types.is_int32(kind) or pa.types.is_date32(kind):
        return SmallNumbers()
    if pa.types.is_boolean(kind):
        return Flags()
    if pa.types.is_float64(kind):
        return Floats()
    if pa.types.is_list(kind):
        return Lists(column_of(kind.value_type))
    if pa.types.is_struct(kind):
        return Structs(kind)
    return Texts()


class TableColumns:
    """Rows of a table. rows: how many there are. text: characters of text in them that was made for them."""

    def __init__(self, table: str) -> None:
        self.rows: i64 = 0
        self.text: i64 = 0
        self._schema: Any = _in_memory(TABLES[table])
        self._columns: dict[str, Column] = {}
        self._in_order: list[Column] = []

    def numbers(self, name: str) -> Numbers:
        """The column of this name, which has whole numbers of 64 bits."""
        column = self._columns.setdefault(name, Numbers())
        assert isinstance(column, Numbers)
        return column

    def small(self, name: str) -> SmallNumbers:
        """The column of this name, which has whole numbers of 32 bits."""
        column = self._columns.setdefault(name, SmallNumbers())
        assert isinstance(column, SmallNumbers)
        return column

    def flags(self, name: str) -> Flags:
        """The column of this name, which has booleans."""
        column = self._columns.setdefault(name, Flags())
        assert isinstance(column, Flags)
        return column

    def texts(self, name: str) -> Texts:
        """The column of this name, which has texts that seldom repeat."""
        column = self._columns.setdefault(name, Texts())
        assert isinstance(column, Texts)
        return column

    def hexadecimal(self, name: str) -> Hex:
        """The column of this name, which has octets."""
        column = self._columns.setdefault(name, Hex())
        assert isinstance(column, Hex)
        return column

    def words(self, name: str, from_wire: bool = False) -> Words:
        """The column of this name, which has texts that repeat. from_wire: see `Words`."""
        column = self._columns.setdefault(name, Words(from_wire))
        assert isinstance(column, Words)
        return column

    def lists(self, name: str) -> Lists:
        """The column of this name, which has lists, most of them empty."""
        items = column_of(self._schema.field(name).type.value_type)
        column = self._columns.setdefault(name, Lists(items, True))
        assert isinstance(column, Lists)
        return column

    def _column(self, name: str, kind: Any) -> Column:
        column = self._columns.get(name)
        if column is None:
            column = column_of(kind)
            self._columns[name] = column
        return column

    def add(self, values: tuple[Any, ...]) -> None:
        """A row, as the values of all columns."""
        if not self._in_order:
            self._in_order = [self._column(field.name, field.type) for field in self._schema]
        row = self.rows
        number: i64 = 0
        for column in self._in_order:
            value = values[number]
            if value is not None:
                column.give(row, value)
            number += 1
        self.rows = row + 1

    def take(self) -> Any:
        """The rows as an Arrow batch, in which texts that repeat have a dictionary. Then there are none."""
        schema = self._schema
        arrays = []
        for field in schema:
            column = self._columns.get(field.name)
            if column is None:
                column = column_of(field.type)  # not kept: who puts the first value knows the column's class
            arrays.append(column.take(self.rows, field.type))
        self.rows = 0
        self.text = 0
        return self._completed(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def _completed(self, batch: Any) -> Any:
        """The batch, with what follows from other columns."""
        return batch


def _in_memory(table: TableSchema) -> Any:
    """The columns of a table; of texts that repeat each row has the place in a dictionary."""
    return pa.schema(
        [
            field.with_type(_BY_PLACE) if column.repeats and pa.types.is_string(field.type) else field
            for field, column in zip(table.schema, table.columns, strict=True)
        ]
    )


_BY_PLACE: Final = pa.dictionary(pa.int32(), pa.string())


class TimedColumns(TableColumns):
    """Rows whose `time` is put in nanoseconds, which `time_rest_ns` and `date` follow from."""

    def _completed(self, batch: Any) -> Any:
        exact = batch.column("time").view(pa.int64())
        unit = scalar_of(1000, pa.int64())
        whole = pc.divide(exact, unit)
        rest = pc.subtract(exact, pc.multiply(whole, unit))
        days = pc.divide(exact, scalar_of(DAY, pa.int64()))
        for name, numbers in (("time", whole), ("time_rest_ns", rest), ("date", days)):
            place = batch.schema.get_field_index(name)
            field = batch.schema.field(place)
            if field.type.bit_width == 32:
                numbers = pc.cast(numbers, pa.int32())
            batch = batch.set_column(place, field, numbers.view(field.type))
        return batch


def array_of(values: list[Any], kind: Any) -> Any:
    """These values as an Arrow array. `pa.array` makes the same, but imports pandas first, which takes about
    as long as to read 10 MB.
    """
    column = column_of(kind)
    row: i64 = 0
    for value in values:
        if value is not None:
            column.give(row, value)
        row += 1
    return column.take(row, kind)


def batch_of(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    """These rows as an Arrow batch."""
    arrays = [array_of([row[number] for row in rows], field.type) for number, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def without_dictionaries(batch: Any) -> Any:
    """A batch without dictionaries, as a table's schema has it."""
    arrays = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in batch.columns]
    fields = [field.with_type(one.type) for field, one in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _nulls(rows: i64, kind: Any) -> Any:
    """So many nulls: most columns of a batch are that, so all of a type share their memory."""
    known = _KNOWN_NULLS.get(kind)
    if known is None or len(known) < rows:
        known = pa.nulls(int(rows), kind)
        _KNOWN_NULLS[kind] = known
    return known.slice(0, int(rows))


_KNOWN_NULLS: Final[dict[Any, Any]] = {}


def _drained(writer: BytesWriter, kept: i64 = 0) -> Any:
    """What was written, as an Arrow buffer. The writer keeps so many octets, and its memory for more rows."""
    octets = writer.getvalue()
    writer.truncate(kept)
    return pa.py_buffer(octets)


def _with_zero() -> BytesWriter:
    """For where texts or lists end, behind where the first one begins."""
    writer = BytesWriter()
    write_i32_le(writer, 0)
    return writer


_DIGIT: Final = ord("0")
_LETTER: Final = ord("a") - 10


def fits(number: int) -> bool:
    """Whether a column of whole numbers holds a number that is not negative. A delivery-tag of 0-9-1 may be
    larger; no broker counts so far.
    """
    # (A comparison with 2**63 takes many times as long.)
    return number >> 63 == 0


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
