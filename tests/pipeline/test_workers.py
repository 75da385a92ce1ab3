"""Spark's workers run what the driver runs, wherever they are started."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import amqpscope.analysis.connection
from amqpscope.pipeline.tasks import WorkerTask


def test_workers_import_the_same_program(spark: Any) -> None:
    """They are started in the root of a checkout here, which has the same package, but not compiled."""

    def where(batches: Any) -> Any:
        import pyarrow as pa

        import amqpscope.analysis.connection

        for _ in batches:
            path = amqpscope.analysis.connection.__file__
            yield pa.RecordBatch.from_arrays([pa.array([path])], ["path"])

    rows = spark.range(0, 2, 1, 2).mapInArrow(where, "path string").collect()
    assert {row.path for row in rows} == {amqpscope.analysis.connection.__file__}


def test_the_collector_of_a_worker_does_not_look_through_what_is_loaded(spark: Any) -> None:
    """The modules of Spark, Arrow and amqpscope are many objects, and never garbage."""

    def frozen(batches: Any) -> Any:
        import gc

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([gc.get_freeze_count()])], ["frozen"])

    rows = spark.range(0, 2, 1, 1).mapInArrow(WorkerTask(frozen), "frozen long").collect()
    assert all(row.frozen > 10_000 for row in rows)


def test_arrow_has_the_allocator_that_gives_memory_back(spark: Any) -> None:
    """In workers, and in the process of a command."""

    def backend(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([pa.default_memory_pool().backend_name])], ["name"])

    rows = spark.range(0, 2, 1, 1).mapInArrow(backend, "name string").collect()
    assert {row.name for row in rows} == {"system"}
    code = (
        "from amqpscope.cli.main import run; run(['--version'])\n"
        "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "system"
