"""`amqpscope pipeline summary`, `sql` and `tables`: what a lake holds.

The engines are imported where they are needed.
"""

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpscope.cli.interruptible import interruptible
from amqpscope.cli.output import TextOrJson, say
from amqpscope.cli.spark_options import HOW_PANEL, Verbose, need_extra, need_spark, spark_session
from amqpscope.cli.status import Status
from amqpscope.cli.table_rows import print_table
from amqpscope.pipeline.table_rows import row_objects

if TYPE_CHECKING:
    from amqpscope.pipeline.engines import Engine

__all__ = [
    "FINE_OR_FAILURE",
    "SQL_EPILOG",
    "AsOf",
    "Configuration",
    "Form",
    "LakeArgument",
    "Master",
    "OnlyTag",
    "ask",
    "sql",
    "summary",
    "tables",
]

FINE_OR_FAILURE = """\b
Exit status: 0 fine, 2 a failure.
"""

SQL_EPILOG = """\b
Tables: files, connections, links, frames, deliveries, findings, diagnoses,
runs; `amqpscope pipeline tables` shows their columns. Views of tables:
open_connections, open_deliveries.

\b
The query is in the SQL of DuckDB (duckdb.org/docs/sql), which can read only
these tables. With --master or --conf, or if the tables have more than 4 GiB,
the query is in the SQL of Spark
(spark.apache.org/docs/latest/sql-ref.html).

\b
Example:
  amqpscope pipeline sql lake "SELECT rule, peer, count(*) AS times
      FROM findings GROUP BY ALL ORDER BY times DESC"

\b
Exit status: 0 fine, 2 a failure.
"""

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        show_default=False,
        rich_help_panel=HOW_PANEL,
        help="Run the queries with Spark, on this Spark master, for example local[*], spark://HOST:PORT or "
        "sc://HOST:PORT. By default, DuckDB runs the queries. If the tables have more than 4 GiB, "
        "Spark runs the queries on local[*].",
    ),
]
Configuration = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        rich_help_panel=HOW_PANEL,
        help="Run the queries with Spark, and set this Spark property. The option may be repeated.",
    ),
]
Form = Annotated[
    TextOrJson,
    typer.Option(
        "--format",
        metavar="text|json",
        show_default=False,
        help="Set the output format. text: for people; json: for programs. [default: text]",
    ),
]
AsOf = Annotated[
    str,
    typer.Option(
        "--as-of",
        metavar="RUN",
        show_default=False,
        help="Read the tables as they were after the run with this id, for example to compare today's "
        "tables with those of an earlier night. `pipeline history` shows the ids. You may give only "
        "the beginning of an id.",
    ),
]
OnlyTag = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME=VALUE",
        help="Read only the rows to which `pipeline run --tag` gave this tag. The option may be repeated.",
    ),
]
LakeArgument = Annotated[
    str,
    typer.Argument(
        metavar="LAKE",
        help="Read the tables that `pipeline run --out` wrote to this directory or URL.",
    ),
]


def summary(
    lake: LakeArgument,
    master: Master = None,
    form: Form = TextOrJson.text,
    as_of: AsOf = "",
    tag: OnlyTag = None,
    configuration: Configuration = None,
    verbose: Verbose = False,
) -> int:
    """Show how often rules are broken, by product, container, address and hour.

    Also show how long settlements take.
    """

    def show(engine: "Engine") -> None:
        from amqpscope.pipeline.questions import QUESTIONS

        answers: dict[str, Any] = {}
        for question in QUESTIONS:
            if not set(question.tables).issubset(engine.tables):
                continue
            answer = engine.query(question.sql)
            if form is TextOrJson.json:
                answers[question.name] = [*row_objects(answer)]
            else:
                print(f"── {question.title}")
                print_table(answer)
                print()
        if form is TextOrJson.json:
            print(json.dumps({"schema": "amqpscope/lake-summary/1", **answers}, indent=1))

    return ask(lake, as_of, tag, show, master, configuration, verbose)


def sql(
    lake: LakeArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Run this SELECT statement.")],
    master: Master = None,
    form: Form = TextOrJson.text,
    as_of: AsOf = "",
    tag: OnlyTag = None,
    configuration: Configuration = None,
    verbose: Verbose = False,
) -> int:
    """Run a query on the tables that `pipeline run` wrote.

    With --format json, each row is one JSON object on a line.
    """

    def show(engine: "Engine") -> None:
        with engine.stream(query) as answer:
            if form is TextOrJson.json:
                for row in row_objects(answer):
                    print(json.dumps(row))
            else:
                print_table(answer)

    return ask(lake, as_of, tag, show, master, configuration, verbose)


def tables() -> int:
    """Show the columns of every table, with their types and meanings."""
    need_extra("lake", "pyarrow")
    from amqpscope.pipeline.schemas import LAKE_TABLES, SCHEMA_VERSION, SEGMENTS, describe
    from amqpscope.pipeline.views import VIEWS

    print(f"tables in version {SCHEMA_VERSION}; time stamps are UTC, sizes are octets")
    for table in (*LAKE_TABLES.values(), SEGMENTS):
        print()
        for line in describe(table):
            print(line)
    for view in VIEWS.values():
        print()
        for line in view.describe():
            print(line)
    return Status.FINE


def ask(
    path: str,
    as_of: str,
    tag: list[str] | None,
    show: Callable[["Engine"], None],
    master: str | None,
    configuration: list[str] | None,
    verbose: bool,
) -> int:
    """Show what an engine answers: Spark if that was asked for, or the lake is large, or else DuckDB.

    tag: see `OnlyTag`.
    """
    by_spark = master is not None or bool(configuration) or "PYSPARK_GATEWAY_PORT" in os.environ
    if not by_spark:
        need_extra("lake", "deltalake", "duckdb", "pyarrow")
        from amqpscope.pipeline import engines
        from amqpscope.pipeline.lake import Lake
        from amqpscope.pipeline.tags import tags_of

        lake = Lake(path, as_of, tags_of(tag or []))
        parts = lake.all_parts()
        octets = sum(part.octets for table in parts.values() for part in table)
        if octets <= engines.MAX_DUCKDB_OCTETS:
            with engines.duckdb_engine(lake, parts) as engine:
                return interruptible(_shown, engine.interrupt)(show=show, engine=engine)
        limit = engines.MAX_DUCKDB_OCTETS // 1024**3
        size = f"{octets / 1024**3:.1f} GiB of tables"
        say(f"{lake.name}: {size}: above {limit} GiB Spark answers, in Spark SQL")
    need_spark()

    def ask_spark() -> int:
        from amqpscope.pipeline.engines import SparkEngine
        from amqpscope.pipeline.lake import Lake
        from amqpscope.pipeline.tags import tags_of

        with spark_session(master, verbose, configuration) as spark:
            return _shown(show, SparkEngine(spark, Lake(path, as_of, tags_of(tag or []))))

    return interruptible(ask_spark)()


def _shown(show: Callable[["Engine"], None], engine: "Engine") -> int:
    show(engine)
    return Status.FINE
