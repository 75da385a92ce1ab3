"""`amqpscope pipeline history`, `compact` and `vacuum`: the runs and the files of a lake."""

import json
from typing import Annotated

import typer

from amqpscope.cli.interruptible import interruptible
from amqpscope.cli.lake import Form, LakeArgument
from amqpscope.cli.output import TextOrJson
from amqpscope.cli.quantities import duration
from amqpscope.cli.spark_options import need_extra
from amqpscope.cli.status import Status
from amqpscope.cli.table_rows import print_table
from amqpscope.pipeline.table_rows import row_objects
from amqpscope.report.printable import printable
from dissectors.wording import count

__all__ = ["HISTORY_EPILOG", "VACUUM_EPILOG", "compact", "history", "vacuum"]

HISTORY_EPILOG = """\b
Example:
  amqpscope pipeline history lake
  amqpscope pipeline sql lake "SELECT count(*) FROM findings" --as-of RUN

\b
Exit status: 0 fine, 2 a failure.
"""

VACUUM_EPILOG = """\b
A run does not delete the files of earlier runs, so that queries that have
begun can finish, and --as-of can read earlier runs. `vacuum` deletes files
that the tables have not used for longer than --keep, and files that remain
from killed runs. The rows of the last run always stay.

\b
Example:
  amqpscope pipeline vacuum lake --keep 7d

\b
Exit status: 0 fine, 2 a failure.
"""

_HOUR = 3600 * 10**9

_SHOWN = ("run", "kind", "time", "seconds", "files", "octets", "tables", "package")


def history(lake: LakeArgument, form: Form = TextOrJson.text) -> int:
    """List the runs that have written to the tables. The last run is at the end of the list.

    With --format json, each run is one JSON object on a line: a row of the table `runs`.
    """
    need_extra("lake", "deltalake", "pyarrow")
    import pyarrow as pa

    from amqpscope.pipeline.lake import Lake
    from amqpscope.pipeline.schemas import RUNS

    at = Lake(lake)
    at.written()
    rows = pa.Table.from_pylist(at.run_rows(), schema=RUNS.schema)
    if form is TextOrJson.json:
        for row in row_objects(rows):
            print(json.dumps(row))
        return Status.FINE
    texts = [" ".join(f"{one['name']} {one['rows']}" for one in row["tables"]) for row in rows.to_pylist()]
    shown = rows.set_column(rows.schema.get_field_index("tables"), "tables", pa.array(texts, pa.string()))
    print_table(shown.select(_SHOWN))
    return Status.FINE


@interruptible
def compact(lake: LakeArgument) -> int:
    """Merge small files of the tables into larger files. The rows stay the same.

    Tables that an earlier version of amqpscope wrote are converted to the format of this version.
    """
    need_extra("lake", "deltalake", "pyarrow", "librt")
    from amqpscope.pipeline.compaction import compact_tables
    from amqpscope.pipeline.lake import Lake

    at = Lake(lake)
    before, after = compact_tables(at)
    print(printable(f"{at.name}: {count(before, 'file')} before, {count(after, 'file')} now"))
    return Status.FINE


@interruptible
def vacuum(
    lake: LakeArgument,
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="TIME",
            help="Keep all files that the tables used within this time, for example 12h or 7d. The time is "
            "rounded up to hours.",
        ),
    ] = "7d",
) -> int:
    """Delete files that the tables no longer need."""
    need_extra("lake", "deltalake", "pyarrow")
    from amqpscope.pipeline.lake import Lake

    hours = -(-duration("--keep", keep) // _HOUR)
    at = Lake(lake)
    print(printable(f"{at.name}: {count(at.vacuum(hours), 'file')} deleted"))
    return Status.FINE
