"""Rows of a Spark table, as objects and as columns of text."""

import json
import sys
from typing import TYPE_CHECKING, Any

from amqpscope.report.printable import printable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["print_table", "row_objects"]

_WIDEST = 60
"""Characters of a column in text."""


def row_objects(frame: "DataFrame") -> list[dict[str, Any]]:
    """Rows as objects for JSON."""
    return [{name: _plain(value) for name, value in row.asDict(True).items()} for row in frame.collect()]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def print_table(frame: "DataFrame") -> None:
    """Rows in columns. All that is in them may have come off the wire."""
    rows = [[_cell(value) for value in row] for row in frame.collect()]
    names = [printable(name) for name in frame.columns]
    widths = [max([len(name), *(len(row[column]) for row in rows)]) for column, name in enumerate(names)]
    numeric = [dict(frame.dtypes)[name] in ("bigint", "int", "double") for name in frame.columns]
    for line in (names, *rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        print("  ".join(cells).rstrip())
    sys.stdout.flush()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1 else f"{value:.1f}"
    plain = _plain(value)
    text = printable(plain if isinstance(plain, str) else json.dumps(plain))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
