"""The fields of frequent frames have columns of their own, which say what `read` says of these fields."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.lakes import CAPTURES, FIELDS, SOME, as_frame, fields_in_columns, ordered, read

from amqpscope.pipeline.arrow_values import rows_of, scalar_of
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.columns import (
    Flags,
    Hex,
    Lists,
    Numbers,
    SmallNumbers,
    TableColumns,
    Texts,
    Words,
    array_of,
    without_dictionaries,
)
from amqpscope.pipeline.rows import Rows, RowTerms

FREQUENT = {
    *("transfer", "flow", "disposition"),
    *("basic.publish", "basic.deliver", "basic.ack", "basic.nack", "content-header", "body", "heartbeat"),
}


def frames(paths: Iterable[Path], with_json: bool) -> list[dict[str, Any]]:
    """The rows of `frames` of captures, made in this process one after another."""
    rows = Rows(("frames",), RowTerms(with_json=with_json))
    made = [batch for one in capture_sets(map(str, paths), "file") for _, batch in read_set(one, rows)]
    made += [batch for _, batch in rows.batches(True)]
    return [row for batch in made for row in without_dictionaries(batch).to_pylist()]


def test_columns_say_what_the_json_says() -> None:
    """With JSON, rows are those of `read`, whole. Without it, they lack messages and what columns have."""
    without: Counter[str] = Counter()
    captures = [*SOME, *sorted((CAPTURES / "draft2011").glob("*.pcap"))]
    whole = frames(captures, True)
    assert ordered(map(as_frame, whole)) == ordered(frame for path in captures for frame in read(path))
    for row, other in zip(frames(captures, False), whole, strict=True):
        fields = json.loads(other["fields"])
        if row["fields"] is None:
            without[row["name"]] += 1
            assert fields_in_columns(row) == fields
            assert row["message"] is None
            row = row | {"fields": other["fields"], "message": other["message"]}
        assert row == other
    assert set(without) >= FREQUENT


@pytest.mark.parametrize("name", ["proton-transactions.pcap"])
def test_what_has_no_column_stays_json(name: str) -> None:
    """A state with details is JSON; its name and the other fields are in columns, too."""
    rows = [row for row in frames([CAPTURES / name], False) if row["name"] == "transfer" and row["fields"]]
    assert rows
    for row in rows:
        fields = json.loads(row["fields"])
        assert fields["state"].keys() > {"type"}
        assert fields_in_columns(row) == fields | {"state": {"type": fields["state"]["type"]}}


def test_columns_of_other_frames_are_null() -> None:
    rows = frames([CAPTURES / "demo.pcap"], False)
    (opened, *_) = [row for row in rows if row["name"] == "open"]
    assert json.loads(opened["fields"])["container-id"]
    assert all(opened[name] is None for name in FIELDS)


WORD = pa.dictionary(pa.int32(), pa.string())


def test_gaps_become_null() -> None:
    numbers, small, flags, words, texts, octets = (
        *(Numbers(), SmallNumbers(), Flags()),
        *(Words(True), Texts(), Hex()),
    )
    for row, value in ((1, 5), (4, 2**63 - 1), (20, -1)):
        numbers.put(row, value)
        small.put(row, value % 2)
        flags.put(row, value % 2 == 1)
        words.say(row, f"amqp://me:secret@host/{value % 2}")
        texts.put(row, str(value))
        octets.put_octets(row, bytes([row, 0xAF]))
    words.say(21, None)

    def gapped(*values: object) -> list[object]:
        first, second, third = values
        return [None, first, None, None, second, *[None] * 15, third, None]

    assert numbers.take(22, pa.int64()).to_pylist() == gapped(5, 2**63 - 1, -1)
    assert small.take(22, pa.int32()).to_pylist() == gapped(1, 1, 1)
    assert flags.take(22, pa.bool_()).to_pylist() == gapped(True, True, True)
    url = "amqp://me:(hidden)@host/1"
    assert words.take(22, WORD).to_pylist() == gapped(url, url, url)
    assert texts.take(22, pa.string()).to_pylist() == gapped("5", str(2**63 - 1), "-1")
    assert octets.take(22, pa.string()).to_pylist() == gapped("01af", "04af", "14af")
    for column, kind in ((numbers, pa.int64()), (words, WORD), (texts, pa.string())):
        assert column.take(2, kind).to_pylist() == [None, None]
        assert column.take(3, kind).to_pylist() == [None, None, None]


@pytest.mark.parametrize("nulls_from", [0, 1, 7, 8, 9, 16, 17, 24])
def test_a_column_is_taken_again_and_again(nulls_from: int) -> None:
    """What the first rows had leaves no trace in the next ones, wherever a null comes first."""
    numbers, flags, texts, words = Numbers(), Flags(), Texts(), Words(False)
    for _ in range(2):
        for row in range(24):
            if row < nulls_from or row % 3:
                numbers.put(row, row)
                flags.put(row, row % 2 == 0)
                texts.put(row, "x" * row)
                words.say(row, str(row % 2))
        there = [row if row < nulls_from or row % 3 else None for row in range(24)]
        known = [row for row in there if row is not None]
        assert numbers.take(24, pa.int64()).to_pylist() == there
        for column, kind, of in (
            (flags, pa.bool_(), lambda row: row % 2 == 0),
            (texts, pa.string(), lambda row: "x" * row),
            (words, WORD, lambda row: str(row % 2)),
        ):
            array = column.take(24, kind)
            array.validate(full=True)
            assert array.null_count == 24 - len(known)
            assert array.to_pylist() == [None if row is None else of(row) for row in there]


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 34, 500])
def test_runs_of_a_text(length: int) -> None:
    """A run is written when it ends: with another text, with a null, or with the batch."""
    words = Words(False)
    for last in ("a", "c", None):
        rows = ["a"] * length + ["b"] + ["a"] * length + [None, None] + ["a"] * length + ["c", "b", last]
        for row, word in enumerate(rows):
            words.say(row, word)
        array = words.take(len(rows), WORD)
        array.validate(full=True)
        assert array.to_pylist() == rows


def test_empty_lists_are_not_null() -> None:
    kind = pa.list_(pa.int64())
    lists, others = Lists(Numbers(), True), Lists(Numbers())
    assert lists.take(3, kind).to_pylist() == [[], [], []]
    for column in (lists, others):
        column.give(1, [4, None])
        column.give(3, [5])
    assert lists.take(5, kind).to_pylist() == [[], [4, None], [], [5], []]
    assert others.take(5, kind).to_pylist() == [None, [4, None], None, [5], None]


def test_arrays_are_those_of_arrow() -> None:
    """Of all types that tables have."""
    kind = pa.struct([("code", pa.string()), ("packet", pa.int64()), ("by", pa.list_(pa.string()))])
    for values, of in (
        ([1, None, -(2**63), 2**63 - 1], pa.int64()),
        ([None, 5, -(2**31)], pa.int32()),
        ([0.5, None, -1.0], pa.float64()),
        ([True, False, None] * 7, pa.bool_()),
        (["", None, "\u00e9\U0001f407"], pa.string()),
        ([date(1969, 12, 31), None, date(2026, 1, 30)], pa.date32()),
        ([None, [], [{"code": "a", "packet": 1, "by": ["x", None]}, None, {"code": None}]], pa.list_(kind)),
        ([None] * 3, pa.list_(kind)),
        ([None, {"packet": 7}, {"by": []}], kind),
        ([], kind),
    ):
        made = array_of(values, of)
        made.validate(full=True)
        assert made.equals(pa.array(values, of))
    # The name of a file that is no text.
    assert array_of(["\udcff.pcap"], pa.string()).to_pylist() == ["\\udcff.pcap"]


def test_rows_are_those_of_arrow() -> None:
    """With times, which Arrow does not give without pandas."""
    notes = pa.list_(pa.struct([("code", pa.string()), ("packet", pa.int64())]))
    rows = [
        {
            "time": datetime(2026, 1, 31, 23, 59, 59, 999_999, UTC),
            "files": 3,
            "notes": [{"code": "a", "packet": 1}],
        },
        {"time": None, "files": None, "notes": []},
        {"time": datetime(1970, 1, 1, tzinfo=UTC), "files": 0, "notes": None},
    ]
    schema = pa.schema([("time", pa.timestamp("us", "UTC")), ("files", pa.int64()), ("notes", notes)])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    assert rows_of(batch) == rows == batch.to_pylist()


def test_scalars_are_those_of_arrow() -> None:
    for value, kind in (
        *(("", pa.string()), ("\u00e9\U0001f407", pa.string()), (-(2**63), pa.int64()), (7, pa.int64())),
        *((date(1969, 12, 31), pa.date32()), (date(2026, 1, 31), pa.date32()), (None, pa.string())),
    ):
        assert scalar_of(value, kind).equals(pa.scalar(value, kind))


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises((OverflowError, ValueError)):
        array_of([2**63], pa.int64())


def test_a_column_without_a_value_in_one_batch_takes_values_in_the_next() -> None:
    columns = TableColumns("frames")
    columns.rows = 1
    assert columns.take().column("delivery_tag").to_pylist() == [None]
    columns.hexadecimal("delivery_tag").put_octets(0, b"\x32")
    columns.rows = 1
    assert columns.take().column("delivery_tag").to_pylist() == ["32"]
