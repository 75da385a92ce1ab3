"""A lake as amqpscope wrote it before its tables were Delta tables: a manifest, and a directory for each run.

    LAKE/manifest.json                                            the run, and every file with its rows
    LAKE/run-RUN/frames/date=2026-01-31/protocol=amqp10/part-RUN-....parquet
    LAKE/latest                                                   symbolic link to run-RUN

The rows of its last run become those of the Delta tables.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from amqpscope.pipeline.arrow_values import scalar_of
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.parts import batches_of_part
from amqpscope.pipeline.runs import REPLACE, RunNotes
from amqpscope.pipeline.schemas import SMALL, TABLES

__all__ = ["LakeBefore"]

_MANIFEST = "manifest.json"
_SCHEMA = "amqpscope/lake/3"
_TABLES_VERSION = 2

_OTHERS = re.compile(r"latest|_latest|run-[0-9a-f]{12}")
_PLACE = re.compile(
    r"run-[0-9a-f]{12}/(\w+)/(?:date=[0-9-]+/protocol=[\w-]+/)?part-[\w-]+\.parquet", re.ASCII
)


class LakeBefore:
    """What may be such a lake. system, root: where. name: what it is called."""

    def __init__(self, system: fs.FileSystem, root: str, name: str) -> None:
        self._system = system
        self._root = root
        self._name = name

    def there(self) -> bool:
        """Whether there is one."""
        return bool(self._manifest())

    def _manifest(self) -> dict[str, Any]:
        try:
            with self._system.open_input_stream(f"{self._root}/{_MANIFEST}") as file:
                manifest = json.loads(file.read())
        except (OSError, ValueError):
            return {}
        if not isinstance(manifest, dict) or manifest.get("schema") != _SCHEMA:
            return {}
        if manifest.get("tables_version") != _TABLES_VERSION:
            raise PipelineError(f"{self._name}: not a lake of this version: write a new one")
        return manifest

    def read(self) -> tuple[str, RunNotes, list[tuple[str, str]]]:
        """The last run, its notes, and its files: the path of each, and its table."""
        manifest = self._manifest()
        parts = []
        for part in manifest["parts"]:
            place = _PLACE.fullmatch(part["path"])
            if place is None or place.group(1) != part["table"]:
                raise PipelineError(f"{self._name}/{_MANIFEST}: {part['path']} is no file of {part['table']}")
            parts.append((part["path"], part["table"]))
        tables = tuple(name for name in TABLES if name in manifest["tables"])
        return manifest["run"], RunNotes(REPLACE, tables), parts

    def remains(self) -> list[str]:
        """What is to be deleted in the lake when its files have been moved, the manifest last."""
        found = [str(file.base_name) for file in self._system.get_file_info(fs.FileSelector(self._root))]
        others = sorted(name for name in found if _OTHERS.fullmatch(name))
        return [*others, _MANIFEST]

    def batches(self, path: str, table: str) -> Iterator[pa.RecordBatch]:
        """The rows of a file of a table, as `read` names it, with the columns that the table has now."""
        yield from batches_of_part(self._system, f"{self._root}/{path}", TABLES[table].schema, _with_rests)


def _with_rests(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add a column for each time in nanoseconds: what the time has beyond its microseconds."""
    for name in batch.schema.names:
        column = name.removesuffix("_ns")
        if column != name and column in batch.schema.names:
            micros = pc.multiply(batch.column(column).view(pa.int64()), scalar_of(1000, pa.int64()))
            rest = pc.cast(pc.subtract(batch.column(name), micros), SMALL)
            batch = batch.append_column(f"{column}_rest_ns", rest)
    return batch
