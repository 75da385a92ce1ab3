"""The data pipeline on Spark: captures in, tables of connections, frames, findings, diagnoses and more out.

    spark = amqpscope.pipeline.session.start("local[*]")
    analysis = amqpscope.pipeline.analyse(spark, ["captures/"])
    analysis.write("lake/")                           # one pass over the captures, all tables
    amqpscope.pipeline.lake.table(spark, "lake/", "findings").groupBy("rule").count().show()

    amqpscope.pipeline.register(spark)                # or, in a notebook, a table at a time:
    spark.read.format("amqpscope").option("table", "frames").load("captures/")

Theory of operation. What is analysed is a TCP connection, and a `ConnectionTable` does it, here as for a
file: Spark only decides which worker sees the segments of which connection, and in which order. Captures
belong to *capture sets*: the files of one place, following one another, which a connection may run through.
A *plan* is how the segments get to the workers:

    chain   One task reads the files of a capture set one after another, from the first octet to the last.
            Nothing is shuffled. As parallel as there are capture sets.
    flow    Tasks read the files, or byte ranges of them, and give out where the payload of each segment lies,
            44 octets a segment, in blocks by connection. Spark brings the blocks of a connection together in
            order; a task goes through them one by one and fetches the payload from the files. As parallel as
            there are connections. (The payload travels along where a file cannot be read at any place, since
            it is compressed, or not cheaply, since it is read over a network; or where that is asked for.)

`inputs` finds the files and says what is wrong with them, `planner` chooses the plan and explains it;
`chain` and `flow` are the two; `rows` makes rows of what comes out, `schemas` says what is in them, `lake`
writes them, as Delta tables (`delta`), and `appending` finds what is new to a lake. Of Spark know only
`tasks` (what runs on its workers, or in the processes of `pool`), `analysis` (which starts them),
`source`, `session`, and what reads a lake with it. `views` names parts of tables; `questions` asks a lake;
`engines` answers, with DuckDB or Spark; `report` puts all answers together, for `report_text` and
`report_page`.

This is the only user of pyspark, duckdb, deltalake and pyarrow; nothing else of amqpscope imports it but its
command.
"""

import importlib
from typing import TYPE_CHECKING, Any

from amqpscope.pipeline.failure import PipelineError

if TYPE_CHECKING:
    from amqpscope.pipeline import lake, session
    from amqpscope.pipeline.analysis import Analysis, analyse
    from amqpscope.pipeline.source import register

__all__ = ["Analysis", "PipelineError", "analyse", "lake", "register", "session"]

_LATER = {"Analysis": "analysis", "analyse": "analysis", "register": "source"}
"""What is imported when somebody asks for it, and from where: a query of a small lake needs no Spark."""


def __getattr__(name: str) -> Any:
    if name in ("lake", "session"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
