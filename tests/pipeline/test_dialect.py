"""The dialect that is asked for decides in both plans how a capture is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpscope.errors import FilterError
from amqpscope.pipeline import flow
from amqpscope.pipeline.capture_set import CaptureSet, capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.files import whole
from amqpscope.pipeline.flow import FilePiece
from amqpscope.pipeline.rows import Rows, RowTerms
from amqpscope.protocols import known_dialect

CAPTURE = Path(__file__).resolve().parents[2] / "captures" / "draft2011" / "open_to_close.pcap"


def chain(sets: list[CaptureSet], rows: Rows) -> Iterator[Any]:
    return read_set(sets[0], rows)


def in_flow(sets: list[CaptureSet], rows: Rows) -> Iterator[Any]:
    piece = FilePiece(0, 0, 0, whole(sets[0].files[0]))
    return flow.analyse(sorted(flow.blocks_of(flow.refer(piece, sets, "payload"))), sets, rows, [])


@pytest.mark.parametrize("plan", [chain, in_flow])
def test_the_dialect_may_be_forced(plan: Any) -> None:
    protocols = {}
    for dialect in ("", "final", "draft2011"):
        rows = Rows(("connections", "findings"), RowTerms(dialect=dialect))
        batches = [*plan(list(capture_sets([str(CAPTURE)])), rows), *rows.batches(True)]
        made = {name: batch.to_pylist() for name, batch in batches}
        protocols[dialect] = made["connections"][0]["protocol"]
        assert bool(made.get("findings")) == (dialect == "final")
    assert protocols == {"": "amqp10-draft2011", "final": "amqp10", "draft2011": "amqp10-draft2011"}


def test_there_are_two_dialects() -> None:
    assert [known_dialect(name) for name in ("", "final", "draft2011")] == ["", "final", "draft2011"]
    with pytest.raises(FilterError, match="dialect draft: must be final or draft2011"):
        known_dialect("draft")
