"""Rows of a table on standard output."""

import sys
from typing import TYPE_CHECKING

from amqpscope.pipeline.table_rows import table_lines

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["print_table"]


def print_table(table: "pa.Table | pa.RecordBatchReader") -> None:
    """Rows in columns. All that is in them may have come off the wire."""
    for line in table_lines(table):
        print(line)
    sys.stdout.flush()
