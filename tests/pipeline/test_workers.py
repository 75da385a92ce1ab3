"""Spark's workers run what the driver runs, wherever they are started."""

from __future__ import annotations

from typing import Any

import amqpscope.analysis.connection


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
