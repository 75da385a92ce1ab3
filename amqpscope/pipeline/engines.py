"""What runs SQL on the tables of a lake: DuckDB in this process, or Spark.

DuckDB is given the tables as Arrow datasets, whose files the logs of the tables name. It may open nothing
itself: no file, no network, no extension; and it writes nothing to disk.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.lake import Lake, table
from amqpscope.pipeline.parts import LakeFile
from amqpscope.pipeline.refusals import in_words
from amqpscope.pipeline.views import VIEWS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql import SparkSession

__all__ = ["MAX_DUCKDB_OCTETS", "DuckDBEngine", "Engine", "SparkEngine", "duckdb_engine"]

MAX_DUCKDB_OCTETS = 4 * 1024**3
"""Octets of Parquet files in a lake that DuckDB still answers for: it has only the memory of one machine, and
a sort or a group of them all takes some ten times as much."""

_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


_ROWS_AT_ONCE = 4096
"""Rows of a batch of an answer that is read while it is found."""

_UNREAD = re.compile(r"reading the stream registered as '(\w+)' failed: ")
"""How DuckDB begins to say that rows of a table could not be had."""

_SEVERAL = "an answer is to one statement: give each statement in a run of its own"


class Engine(Protocol):
    """Answers queries about the tables of a lake, by their names.

    dialect: whose SQL it takes. tables: those that the lake has; their views have names, too.
    """

    dialect: str
    tables: list[str]

    def query(self, sql: str) -> pa.Table:
        """The rows of the answer to one statement. Raises PipelineError with the engine's own words."""

    def stream(self, sql: str) -> pa.RecordBatchReader:
        """The same, some rows at a time, for answers that may be large. Whoever reads them on may get the
        PipelineError, too.
        """


class DuckDBEngine:
    """DuckDB on a lake."""

    dialect = "DuckDB"

    def __init__(
        self, connection: "DuckDBPyConnection", lake: Lake, parts: dict[str, list[LakeFile]]
    ) -> None:
        self.tables = list(parts)
        self._connection = connection
        self._lake = lake
        for name, files in parts.items():
            connection.register(name, lake.dataset(name, files))
        for view in VIEWS.values():
            if view.table in parts:
                connection.execute(f"CREATE TEMP VIEW {view.name} AS {view.sql}")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE MACRO explode(list) AS unnest(list)")
        connection.execute("SET lock_configuration = true")

    def query(self, sql: str) -> pa.Table:
        """The rows of the answer."""
        with self._explained():
            return self._answer(sql).to_arrow_table()

    def stream(self, sql: str) -> pa.RecordBatchReader:
        """The rows of the answer, while they are found: it is never in memory as a whole."""
        with self._explained():
            found = self._answer(sql).to_arrow_reader(_ROWS_AT_ONCE)
        return pa.RecordBatchReader.from_batches(found.schema, self._batches(found))

    def _batches(self, found: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with self._explained():
            yield from found

    def _answer(self, sql: str) -> "DuckDBPyRelation":
        if len(self._connection.extract_statements(sql)) > 1:
            raise PipelineError(_SEVERAL)
        answer = self._connection.sql(sql)
        if answer is None:
            raise PipelineError("the query has no rows to answer with: give a SELECT statement")
        return answer

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            failed = _UNREAD.search(str(error))
            if failed is None:
                raise PipelineError(f"{self.dialect} SQL: {_reason(error)}") from error
            what = self._lake.damage(failed[1])
            what = what or f"{self._lake.name}: the table {failed[1]} cannot be read: {in_words(error)}"
            raise PipelineError(what) from error

    def interrupt(self) -> None:
        """End the query that is under way, from another thread."""
        self._connection.interrupt()


@contextmanager
def duckdb_engine(lake: Lake, parts: dict[str, list[LakeFile]]) -> Iterator[DuckDBEngine]:
    """DuckDB on the files of a lake, closed at the end."""
    import duckdb

    with duckdb.connect(":memory:", config=_CLOSED) as connection:
        yield DuckDBEngine(connection, lake, parts)


class SparkEngine:
    """Spark on a lake."""

    dialect = "Spark"

    def __init__(self, spark: "SparkSession", lake: Lake) -> None:
        self.tables = lake.tables()
        self._spark = spark
        # As DuckDB: hours are of UTC, whatever the session had before.
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        for name in (*self.tables, *(view.name for view in VIEWS.values() if view.table in self.tables)):
            table(spark, lake, name).createOrReplaceTempView(name)

    def query(self, sql: str) -> pa.Table:
        """The rows of the answer."""
        from pyspark.errors import PySparkException

        try:
            return self._spark.sql(sql).toArrow()
        except PySparkException as error:
            # Spark takes what follows a statement for a part of it that is wrong.
            hint = f" ({_SEVERAL})" if ";" in sql.rstrip().rstrip(";") else ""
            raise PipelineError(f"{self.dialect} SQL: {_reason(error)}{hint}") from error

    def stream(self, sql: str) -> pa.RecordBatchReader:
        """The rows of the answer, which Spark gives all at once."""
        return self.query(sql).to_reader()


def _reason(error: BaseException) -> str:
    """What an engine reports of an error, on one line, without its drawing of the query."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return " ".join(
        [lines[0], *(line for line in lines[1:2] if line.startswith(("Did you mean", "Candidate bindings")))]
    )
