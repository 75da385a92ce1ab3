"""How far a run is: what its tasks counted that are done, as they are reported to the driver."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Counts", "tally"]

Counts = Counter[tuple[str, ...]]
"""As in `Rows.counts`."""


class _Adding(AccumulatorParam):  # type: ignore[misc]
    """How Spark adds them."""

    def zero(self, value: Counts) -> Counts:
        return Counter()

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802
        value1.update(value2)
        return value1


def tally(spark: "SparkSession") -> Any:
    """An accumulator of `Counts` for `Analysis.write`. Tasks that are done again may be counted again."""
    return spark.sparkContext.accumulator(Counter(), _Adding())
