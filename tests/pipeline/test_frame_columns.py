"""The fields of frequent frames have columns of their own, which say what `read` says of these fields."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES, FIELDS, SOME, as_frame, fields_in_columns, ordered, read

from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.columns import Column, Words
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
    return [row for batch in made for row in batch.to_pylist()]


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


def test_gaps_become_null() -> None:
    import pyarrow as pa

    numbers, words = Column(), Words(True)
    for row, value in ((1, 5), (4, 2**63 - 1)):
        numbers.put(row, value)
        words.say(row, f"amqp://me:secret@host/{value % 2}")
    words.say(5, None)
    assert numbers.take(6, pa.int64()).to_pylist() == [None, 5, None, None, 2**63 - 1, None]
    url = "amqp://me:(hidden)@host/1"
    assert words.take(6, pa.string()).to_pylist() == [None, url, None, None, url, None]
    assert numbers.take(2, pa.int64()).to_pylist() == [None, None]
    assert numbers.take(3, pa.int64()).to_pylist() == [None, None, None]
    words.say(0, "x")
    assert words.take(1, pa.string()).to_pylist() == ["x"]
