"""Rows of a table as objects for JSON, and as columns of text."""

import datetime
import decimal
import itertools
import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from amqpscope.pipeline.failure import PipelineError
from amqpscope.report.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["row_objects", "table_lines"]

_WIDEST = 60
"""Characters of a column in text."""

_ROWS_AT_ONCE = 4096
"""Rows that are objects at a time."""

_ROWS_MEASURED = 16_384
"""Rows at the beginning of an answer that decide how wide its columns are in text. These are held."""

_NUMBERS = ("int", "uint", "float", "double", "decimal")
"""How the names of Arrow's types for numbers begin."""


def row_objects(table: "pa.Table | pa.RecordBatchReader") -> Iterator[dict[str, Any]]:
    """Rows as objects for JSON. PipelineError: an object has no room for two columns of one name."""
    names = table.schema.names
    for name in names:
        if names.count(name) > 1:
            called = printable(name)
            raise PipelineError(f"two columns are called {called}: give them different names (AS)")
    for batch in _batches(table):
        for row in batch.to_pylist():
            yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, decimal.Decimal):  # sums of DuckDB's are decimals without decimals
        return float(value) if value.as_tuple().exponent else int(value)
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def table_lines(table: "pa.Table | pa.RecordBatchReader") -> Iterator[str]:
    """Rows in columns, as wide as the first rows need. All that is in them may have come off the wire."""
    names = tuple(map(printable, table.schema.names))
    rights = [str(kind).startswith(_NUMBERS) for kind in table.schema.types]
    batches = _batches(table)
    first: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in first) < _ROWS_MEASURED:
        batch = next(batches, None)
        if batch is None:
            break
        first.append(batch)
    # The texts are made twice: those of all rows may take far more memory than the table.
    widths = [len(name) for name in names]
    for row in _texts(first):
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
    for row in itertools.chain([names], _texts(itertools.chain(first, batches))):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, rights, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _batches(table: "pa.Table | pa.RecordBatchReader") -> "Iterator[pa.RecordBatch]":
    """The rows, few at a time."""
    for batch in table if hasattr(table, "read_next_batch") else table.to_batches(_ROWS_AT_ONCE):
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield batch.slice(begin, _ROWS_AT_ONCE)


def _texts(batches: "Iterable[pa.RecordBatch]") -> Iterator[tuple[str, ...]]:
    """The cells of each row."""
    for batch in batches:
        columns = [[_cell(_plain(value)) for value in column.to_pylist()] for column in batch.columns]
        yield from zip(*columns, strict=True)


def _cell(plain: Any) -> str:
    if plain is None:
        return "-"
    if isinstance(plain, float):
        return f"{plain:g}" if abs(plain) < 1 else f"{plain:.1f}"
    text = printable(plain if isinstance(plain, str) else json.dumps(plain))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
