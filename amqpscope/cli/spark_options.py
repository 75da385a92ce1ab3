"""What the commands of the pipeline share: their extras, the options of Spark, and its session."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from amqpscope.errors import FilterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from amqpscope.policy.policy import Policy

__all__ = [
    "HOW_PANEL",
    "Configuration",
    "FreshState",
    "Master",
    "SetBy",
    "Tag",
    "Verbose",
    "WantedTables",
    "WithJson",
    "chosen_tables",
    "need_extra",
    "need_spark",
    "spark_session",
]

HOW_PANEL = "How the pipeline runs"

Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", rich_help_panel=HOW_PANEL, help="Show Spark's log messages.")
]

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default=False,
        rich_help_panel=HOW_PANEL,
        help="Use this Spark master, for example spark://HOST:PORT, yarn, or sc://HOST:PORT for a Spark "
        "Connect server. By default, Spark runs on all cores of this machine (local[*]).",
    ),
]
Configuration = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        rich_help_panel=HOW_PANEL,
        help="Set this Spark property. The option may be repeated.",
    ),
]
SetBy = Annotated[
    str,
    typer.Option(
        "--set-by",
        metavar="directory|file|REGEX",
        rich_help_panel=HOW_PANEL,
        help="Decide which files form one capture set. directory: all files of a "
        "directory; file: each file alone; REGEX: all files whose paths have the"
        " same text in the first group of REGEX.",
    ),
]
FreshState = Annotated[
    bool,
    typer.Option(
        "--fresh-state",
        help="Do not go on from where an earlier run has stopped. If a capture set has a new file, or a file "
        "has grown, read all files of the set again.",
    ),
]

Tag = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME=VALUE",
        help="Add a column NAME to all tables, and write VALUE into this column in all rows of this run, for "
        "example site=berlin. Rows of runs without this tag have no value in this column. The option may be "
        "repeated.",
    ),
]
WantedTables = Annotated[
    str,
    typer.Option(
        "--tables",
        metavar="NAME,...",
        show_default=False,
        help=(
            "Write only these tables. The table `files` is always written. The tables `frames` and "
            "`deliveries` take most of the run time."
        ),
    ),
]
WithJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help=(
            "Also write the fields of all frames and all messages, without message bodies, as JSON. "
            "This option makes the run slower. Without this option, the fields of frequent frames are "
            "stored only in the other columns of the tables."
        ),
    ),
]


def chosen_tables(wanted: str, policy: "Policy") -> tuple[str, ...]:
    """The tables that are written: those named on the command line, or the usual ones."""
    from amqpscope.pipeline.schemas import TABLES

    usual = [name for name in TABLES if name != "diagnoses" or policy.diagnosing(True)]
    chosen = tuple(name.strip() for name in wanted.split(",") if name.strip()) or tuple(usual)
    unknown = sorted(set(chosen) - set(TABLES))
    if unknown:
        raise FilterError(f"--tables {unknown[0]}: must be of {', '.join(TABLES)}")
    return chosen


def need_spark() -> None:
    """Raise FilterError where what Spark needs is not installed."""
    need_extra("spark", "pyspark", "pyarrow", "pandas", "deltalake", "librt")


def need_extra(extra: str, *needed: str) -> None:
    """Raise FilterError where packages are missing. extra: what installs them."""
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise FilterError(f"this command needs {' and '.join(missing)}: pip install 'amqpscope[{extra}]'")


@contextmanager
def spark_session(
    master: str | None, verbose: bool, configuration: list[str] | None
) -> "Iterator[SparkSession]":
    """A session of Spark, stopped at the end. configuration: texts NAME=VALUE."""
    from amqpscope.pipeline import session

    settings = {}
    for setting in configuration or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise FilterError(f"--conf {setting}: must be NAME=VALUE")
        settings[name] = value
    spark = session.start(master, verbose, settings)
    try:
        yield spark
    except Exception as error:
        session.explain_lost(spark, error)
        raise
    finally:
        session.stop(spark)
