"""Values to and from Arrow, without pandas.

`pa.scalar` and `to_pylist` import pandas where it is installed: the first for any value, the other for times
with a zone. To import it takes about as long as to analyse 20 MB.
"""

import struct
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

__all__ = ["rows_of", "scalar_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scalar_of(value: str | int | date | None, kind: Any) -> Any:
    """This value as Arrow has it. kind: string, int64 or date32."""
    if value is None:
        return pa.nulls(1, kind)[0]
    if isinstance(value, str):
        text = value.encode()
        buffers = [pa.py_buffer(struct.pack("<ii", 0, len(text))), pa.py_buffer(text)]
    elif isinstance(value, int):
        buffers = [pa.py_buffer(struct.pack("<q", value))]
    else:
        buffers = [pa.py_buffer(struct.pack("<i", (value - _EPOCH.date()).days))]
    return pa.Array.from_buffers(kind, 1, [None, *buffers])[0]


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch, as `to_pylist` makes them. Its times are in microseconds, and of UTC."""
    columns = [_values(column) for column in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.Array) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    times = column.view(pa.int64()).to_pylist()
    return [None if time is None else _EPOCH + timedelta(microseconds=time) for time in times]
