"""Tags of a run (`pipeline run --tag site=x`): a column each, with the same text in all rows of the run.

A tag comes to the tables with the first run that gives it. Rows of runs that did not give it have null.
"""

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa

from amqpscope.pipeline.arrow_values import scalar_of
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.schemas import LAKE_TABLES, SEGMENTS, TEXT, ColumnSchema, TableSchema

__all__ = ["Tags", "tagged", "tags_of", "with_tags"]

Tags = Mapping[str, str | None]
"""Names of columns, and the text that rows without such a column get."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)

_LONGEST = 200
"""Characters of the text of a tag."""

_COLUMNS = {
    column.name: table.name for table in (*LAKE_TABLES.values(), SEGMENTS) for column in table.columns
}
"""The names that a tag cannot have, and a table that has the column."""

_COMPUTED = ("accepted", "alike", "container", "hour", "place", "product")
"""Names that questions of `summary` and `report` give to what they compute beside all columns."""


def tags_of(given: Iterable[str], option: str = "--tag") -> dict[str, str]:
    """The tags that texts NAME=VALUE are. PipelineError if one is none, or a name stands there twice."""
    tags: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not value or not _NAME.fullmatch(name):
            raise PipelineError(
                f"{option} {text}: must be NAME=VALUE, NAME of lower-case letters, digits and _, "
                "for example site=berlin"
            )
        if name in _COLUMNS:
            raise PipelineError(
                f"{option} {text}: {name} is a column of the table {_COLUMNS[name]}: choose another name"
            )
        if name in _COMPUTED:
            raise PipelineError(
                f"{option} {text}: summary and report compute a column {name}: choose another name"
            )
        if not value.isprintable() or len(value) > _LONGEST:
            raise PipelineError(
                f"{option} {name}: the value must be printable, at most {_LONGEST} characters"
            )
        if name in tags:
            raise PipelineError(f"{option} {text}: {name} is given twice")
        tags[name] = value
    return tags


def tagged(table: TableSchema, names: Iterable[str]) -> TableSchema:
    """A table of a lake with a column for each tag of these names. `runs` has none."""
    if table.name not in LAKE_TABLES or table.name == "runs":
        return table
    further = [
        ColumnSchema(name, TEXT, "tag that `--tag` gave to the run, null if the run had no such tag")
        for name in names
    ]
    columns = (*table.columns, *further)
    bounded = (*table.bounded, *(one.name for one in further)) if table.bounded else ()
    return table._replace(columns=columns, bounded=bounded)


def with_tags(batch: pa.RecordBatch, tags: Tags) -> pa.RecordBatch:
    """A batch with a column for each tag. Columns that it has already stay."""
    there = set(batch.schema.names)
    for name, value in tags.items():
        if name not in there:
            column = pa.repeat(scalar_of(value, TEXT), batch.num_rows)
            batch = batch.append_column(name, column)
    return batch
