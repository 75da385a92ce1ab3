"""What the commands of the pipeline share: their extras, the options of Spark, and its session."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from amqpscope.errors import FilterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HOW_PANEL", "Verbose", "need_extra", "need_spark", "spark_session"]

HOW_PANEL = "How the pipeline runs"

Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", rich_help_panel=HOW_PANEL, help="Show Spark's log messages.")
]


def need_spark() -> None:
    """Raise FilterError where what Spark needs is not installed."""
    need_extra("spark", "pyspark", "pyarrow", "pandas", "deltalake")


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
