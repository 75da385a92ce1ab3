"""A row of the table `runs`: what a run has written, and which version of each table shows it."""

import functools
import json
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from amqpscope import __version__
from amqpscope.pipeline.schemas import RUNS, SCHEMA_VERSION

__all__ = ["APPEND", "COMPACT", "REPLACE", "REPLACE_DAY", "Run", "RunNotes", "run_row", "tag_names"]

REPLACE = "replace"
REPLACE_DAY = "replace-day"
APPEND = "append"
COMPACT = "compact"


class RunNotes(NamedTuple):
    """What a run has to say of itself. tables: those that it leaves in the lake. sources: as they were given,
    without credentials. options: by their names on the command line. files, octets: of the captures read.
    changed: when the newest of them was written to (ns since 1970), 0 if that does not matter.
    """

    kind: str
    tables: tuple[str, ...]
    sources: tuple[str, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    files: int = 0
    octets: int = 0
    changed: int = 0


class Run(NamedTuple):
    """A run that was committed. number: 1 for the first one. versions: of the tables that it left."""

    name: str
    number: int
    kind: str
    tables_version: int
    versions: dict[str, int]
    options: dict[str, Any]

    @classmethod
    def load(cls, row: dict[str, Any]) -> "Run":
        """From a row of `runs`."""
        return cls(
            row["run"],
            row["number"],
            sys.intern(row["kind"]),
            row["tables_version"],
            {sys.intern(table["name"]): table["version"] for table in row["tables"]},
            _options(row["options"]),
        )


@functools.lru_cache(maxsize=8)
def _options(text: str) -> dict[str, Any]:
    """The options of a run, of which most runs of a lake have the same."""
    options: dict[str, Any] = json.loads(text)
    return options


def tag_names(runs: Iterable[Run]) -> tuple[str, ...]:
    """The tags that rows have after these runs, in the order in which they came."""
    names: dict[str, None] = {}
    for run in runs:
        if run.kind == REPLACE:
            names = {}
        names |= dict.fromkeys(run.options.get("tags") or ())
    return tuple(names)


def run_row(
    name: str, number: int, notes: RunNotes, tables: list[dict[str, Any]], seconds: float
) -> pa.RecordBatch:
    """The row of a run that ends now. tables: name, version and rows of each."""
    # Only who writes a lake needs this, and librt for it.
    from amqpscope.pipeline.columns import batch_of

    now = time.time_ns()
    row = {
        "run": name,
        "number": number,
        "kind": notes.kind,
        "time": now // 1000,
        "time_rest_ns": now % 1000,
        "seconds": seconds,
        "files": notes.files,
        "octets": notes.octets,
        "sources": list(notes.sources),
        "options": json.dumps(notes.options),
        "tables": tables,
        "tables_version": SCHEMA_VERSION,
        "package": __version__,
        "lag": max(now - notes.changed, 0) / 1e9 if notes.changed else None,
    }
    return batch_of([tuple(row[column.name] for column in RUNS.columns)], RUNS.schema)
