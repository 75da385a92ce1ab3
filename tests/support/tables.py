"""Tables of a lake in memory, made row by row, and DuckDB that answers for them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from amqpscope.pipeline.engines import DuckDBEngine
from amqpscope.pipeline.schemas import TABLES

__all__ = ["HOUR", "Tables"]

HOUR = datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)
"""When rows happen that have no time of their own."""


class Tables:
    """All tables of a lake. Each method adds a row; a column that is not given has a plain value, or none."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}

    def dataset(self, name: str, _: object) -> pa.Table:
        """A table, as an engine asks a lake for it."""
        return pa.Table.from_pylist(self.rows[name], schema=TABLES[name].schema)

    @contextmanager
    def engine(self) -> Iterator[DuckDBEngine]:
        """DuckDB on these tables."""
        with duckdb.connect(":memory:") as connection:
            yield DuckDBEngine(connection, self, {name: [] for name in TABLES})

    def file(self, **columns: Any) -> None:
        self._add("files", {"size": 10, "packets": 1, "segments": 1, "status": "ok"}, columns)

    def connection(self, **columns: Any) -> None:
        numbers = ("frames", "messages", "missing")
        counts = {f"{peer}_{name}": 1 for peer in ("client", "server") for name in numbers}
        self._add("connections", {"start": HOUR, "end": HOUR, "errors": [], **counts}, columns)

    def link(self, **columns: Any) -> None:
        self._add("links", {"name": "l", "sender": "client"}, columns)

    def delivery(self, **columns: Any) -> None:
        usual = {"sender": "client", "time": HOUR, "settled_by": "server", "latency_ns": 1_500_000}
        self._add("deliveries", usual, columns)

    def finding(self, **columns: Any) -> None:
        usual = {"rule": "amqp10/L-CREDIT", "severity": "error", "certainty": "certain", "peer": "client"}
        usual |= {
            "time": HOUR,
            "packet": 7,
            "message": "the sender starts a delivery although no link-credit is left",
        }
        self._add("findings", usual, columns)

    def diagnosis(self, **columns: Any) -> None:
        usual = {"code": "diag/credit-starved", "subject": "l", "whose_move": "server", "seconds": 12.5}
        self._add("diagnoses", {**usual, "packet": 9, "message": "link l: no credit"}, columns)

    def _add(self, table: str, usual: dict[str, Any], columns: dict[str, Any]) -> None:
        place = {"capture_set": "set", "capture": "a.pcap", "connection": "c>s#0", "protocol": "amqp10"}
        row = {**place, **usual, **columns}
        self.rows[table].append({name: row.get(name) for name in TABLES[table].schema.names})
