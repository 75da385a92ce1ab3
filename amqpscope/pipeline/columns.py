"""Rows of a table by column, until there are enough for a batch.

A million tuples would each be looked at by the garbage collector, again and again. So a row is put straight
into its columns, and a column that it has no value in is not touched: what is missing becomes null when the
next value is put in, or at the end.
"""

from typing import Any, Final

import pyarrow as pa

from amqpscope.model.passwords import without_password
from amqpscope.pipeline.schemas import TABLES, TableSchema
from dissectors.wire import i64

__all__ = ["LARGEST", "Column", "TableColumns", "Words"]

LARGEST: Final = 2**63 - 1
"""What a column of whole numbers holds. A delivery-tag of 0-9-1 may be larger; no broker counts so far."""


class Column:
    """The values of a column; null in the rows that none was put into."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def put(self, row: i64, value: object) -> None:
        """The value in a row, which stands behind all rows with a value."""
        values = self.values
        missing: i64 = row - len(values)
        while missing > 0:
            values.append(None)
            missing -= 1
        values.append(value)

    def take(self, rows: i64, kind: Any) -> Any:
        """The first rows, all there are, as an Arrow array of this type. Then the column is empty."""
        values = self.values
        if not values:
            return _nulls(rows, kind)
        self.values = []
        missing = rows - len(values)
        if missing > 0:
            values.extend([None] * int(missing))
        return _array(values, kind)


class Words(Column):
    """A column of texts most of which repeat.

    from_wire: a peer chose them. Those that are URLs are stored without passwords.
    """

    def __init__(self, from_wire: bool) -> None:
        super().__init__()
        self._from_wire: bool = from_wire
        self._codes: dict[str, int] = {}
        self._words: list[object] = []
        # Nearly always the next one's, too.
        self._last: str | None = None
        self._code: object = 0

    def say(self, row: i64, word: str | None) -> None:
        """The text in a row, which stands behind all rows with one."""
        if word is None:
            return
        if word is not self._last:
            code = self._codes.get(word)
            if code is None:
                code = len(self._words)
                self._codes[word] = code
                self._words.append(without_password(word) if self._from_wire else word)
            self._last = word
            self._code = code
        self.put(row, self._code)

    def take(self, rows: i64, kind: Any) -> Any:
        codes = super().take(rows, pa.int32())
        words = _array(self._words, kind)
        self._codes = {}
        self._words = []
        self._last = None
        return words.take(codes)


class TableColumns:
    """Rows of a table. rows: how many there are. text: characters of text in them that was made for them."""

    def __init__(self, table: str) -> None:
        self.rows: i64 = 0
        self.text: i64 = 0
        self._table: TableSchema = TABLES[table]
        self._columns: dict[str, Column] = {}
        self._in_order: list[Column] = []

    def column(self, name: str) -> Column:
        """The column of this name."""
        column = self._columns.get(name)
        if column is None:
            column = Column()
            self._columns[name] = column
        return column

    def words(self, name: str, from_wire: bool = False) -> Words:
        """The column of this name, if it has texts that repeat. from_wire: see `Words`."""
        column = self._columns.get(name)
        if not isinstance(column, Words):
            column = Words(from_wire)
            self._columns[name] = column
        return column

    def add(self, values: tuple[Any, ...]) -> None:
        """A row, as the values of all columns."""
        if not self._in_order:
            self._in_order = [self.column(column.name) for column in self._table.columns]
        number: i64 = 0
        for column in self._in_order:
            column.values.append(values[number])
            number += 1
        self.rows += 1

    def take(self) -> Any:
        """The rows as an Arrow batch. Then there are none."""
        arrays = [self.column(one.name).take(self.rows, one.type) for one in self._table.columns]
        self.rows = 0
        self.text = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._table.schema)


def _nulls(rows: i64, kind: Any) -> Any:
    """So many nulls: most columns of a batch are that, so all of a type share their memory."""
    known = _KNOWN_NULLS.get(kind)
    if known is None or len(known) < rows:
        known = pa.nulls(int(rows), kind)
        _KNOWN_NULLS[kind] = known
    return known.slice(0, int(rows))


_KNOWN_NULLS: Final[dict[Any, Any]] = {}


def _array(values: list[object], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        # A file's name that is no text, mostly.
        return pa.array([_as_text(value) for value in values], kind)


def _as_text(value: Any) -> Any:
    """`value`, its characters that cannot be encoded as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_text(item) for name, item in value.items()}
    return value
