"""The table of deliveries: every delivery once, and how it was settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES

from amqpscope.input.capture import Capture
from amqpscope.pipeline import deliveries as log
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.rows import Rows
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.amqp10_draft2011.message import DraftMessage


def rows_of(path: Path, *tables: str) -> dict[str, list[dict[str, Any]]]:
    rows = Rows(tables)
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in tables}
    for one in capture_sets([str(path)], "file"):
        for table, batch in read_set(one, rows):
            found[table] += batch.to_pylist()
    for table, batch in rows.batches(True):
        found[table] += batch.to_pylist()
    return found


def test_demo() -> None:
    """Five orders, one refused and one to be changed: as `amqpscope read` shows them."""
    rows = rows_of(CAPTURES / "demo.pcap", "deliveries")["deliveries"]
    orders = sorted((row for row in rows if row["address"] == "orders"), key=lambda row: int(row["packet"]))
    assert [(row["delivery_id"], row["outcome"], row["condition"], row["settled_by"]) for row in orders] == [
        (0, "accepted", None, "server"),
        (1, "accepted", None, "server"),
        (2, "rejected", "warehouse:unknown-article", "server"),
        (3, "accepted", None, "server"),
        (4, "modified", None, "server"),
    ]
    first = orders[0]
    assert (first["packet"], first["settled_packet"], first["payload"]) == (20, 21, 193)
    assert first["latency_ns"] == 965_000 and first["complete"] and not first["aborted"]


@pytest.mark.parametrize(
    ("name", "expected", "transfers"),
    [
        ("disposition_ranges", ["accepted", "accepted", "rejected", "released", "accepted"], 10),
        ("sections_in_fragments", ["accepted", "accepted"], 12),
        ("transactions", ["accepted"] * 6, 6),
    ],
)
def test_the_draft_of_april_2011(name: str, expected: list[str], transfers: int) -> None:
    """A delivery may be named by any of its transfer-ids, and its octets are those of its fragments."""
    path = CAPTURES / "draft2011" / f"{name}.pcap"
    rows = rows_of(path, "deliveries")["deliveries"]
    rows.sort(key=lambda row: int(row["packet"]))
    assert [row["outcome"] for row in rows] == expected
    assert sum(row["transfers"] for row in rows) == transfers
    with Capture(str(path)) as capture:
        sizes = [int(record.message.size) for record in capture if isinstance(record.message, DraftMessage)]
    assert sorted(row["payload"] for row in rows) == sorted(sizes)
    assert all(row["complete"] for row in rows)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: str(path.stem))
def test_every_transfer_is_in_one_delivery(path: Path) -> None:
    with Capture(str(path)) as capture:
        frames = list(capture)
    if any(record.frame.kind == "method" for record in frames):
        pytest.skip("of AMQP 0-9-1")
    transfers = [record for record in frames if isinstance(record.frame.body, Transfer)]
    if any(record.frame.kind == "skipped" for record in frames) or path.stem == "rhea-transfer-before-attach":
        pytest.skip("not all of it was captured, or not all of it is legal")
    rows = rows_of(path, "deliveries")["deliveries"]
    assert sum(row["transfers"] for row in rows) == len(transfers)
    assert sum(row["payload"] for row in rows) == sum(int(record.frame.payload_size) for record in transfers)
    places = [(row["connection"], row["sender"], row["channel"], row["delivery_id"]) for row in rows]
    assert len(set(places)) == len(places)
    settles = any(
        isinstance(record.frame.body, Disposition) and record.frame.body.settled for record in frames
    )
    assert settles or all(row["settled_by"] in (None, row["sender"]) for row in rows)


@pytest.mark.parametrize("most", [0, 2])
@pytest.mark.parametrize("name", ["rhea-credit", "proton-settle-modes", "rabbitmq-large"])
def test_too_many_unsettled(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    """The oldest are given out as they are; none is lost, none is given twice."""
    path = CAPTURES / f"{name}.pcap"
    whole = rows_of(path, "deliveries")["deliveries"]
    monkeypatch.setattr(log, "MAX_UNSETTLED", most)
    rows = rows_of(path, "deliveries")["deliveries"]

    def ids(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return sorted((row["connection"], row["sender"], row["packet"], row["delivery_id"]) for row in rows)

    assert ids(rows) == ids(whole)
    unsettled = [sum(row["settled_by"] is None for row in some) for some in (rows, whole)]
    assert unsettled[0] > unsettled[1] or (most and name != "rhea-credit")
