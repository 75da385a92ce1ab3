"""What `amqpscope pipeline summary` asks of a lake, in SQL that DuckDB and Spark answer with the same rows.

So sums are cast, since DuckDB would widen them; nulls have their place in each order; and nothing is
approximate. `explode` is Spark's: `engines` gives it to DuckDB.
"""

import re
from typing import NamedTuple

from amqpscope.pipeline.schemas import TABLES

__all__ = ["QUESTIONS", "LakeQuestion"]


class LakeQuestion(NamedTuple):
    """name: for JSON. title: for people."""

    name: str
    title: str
    sql: str

    @property
    def tables(self) -> list[str]:
        """The tables that it asks."""
        return [name for name in TABLES if re.search(rf"\b(?:FROM|JOIN) {name}\b", self.sql)]


_CONNECTIONS = "count(DISTINCT capture_set || ' ' || connection) AS connections"

_FOUR_DIGITS = (
    "latency_ns - latency_ns % CAST("
    "rpad('1', CAST(greatest(length(CAST(latency_ns AS STRING)) - 3, 1) AS INT), '0') AS BIGINT)"
)
"""A latency with four digits: there are few different ones, so that exact percentiles need little memory."""


def _percentile(share: str) -> str:
    """A percentile of `latency_ns`, in microseconds."""
    return f"CAST(percentile_disc({share}) WITHIN GROUP (ORDER BY latency_ns) AS DOUBLE) / 1000"


QUESTIONS = (
    LakeQuestion(
        "diagnoses",
        "Diagnoses, and which peer has to act",
        "SELECT code, whose_move, count(*) AS times, "
        f"{_CONNECTIONS}, max(seconds) AS longest "
        "FROM diagnoses GROUP BY code, whose_move "
        "ORDER BY times DESC, code, whose_move NULLS FIRST LIMIT 40",
    ),
    LakeQuestion(
        "files",
        "Files",
        "SELECT status, reason, count(*) AS files, CAST(sum(size) AS BIGINT) AS octets, "
        "CAST(sum(packets) AS BIGINT) AS packets "
        "FROM files GROUP BY status, reason ORDER BY status, reason NULLS FIRST",
    ),
    LakeQuestion(
        "connections",
        "Connections",
        "SELECT protocol, count(*) AS connections, "
        "CAST(sum(client_frames + server_frames) AS BIGINT) AS frames, "
        "CAST(sum(client_messages + server_messages) AS BIGINT) AS messages, "
        "CAST(sum(client_missing + server_missing) AS BIGINT) AS missing "
        "FROM connections GROUP BY protocol ORDER BY connections DESC, protocol NULLS FIRST",
    ),
    LakeQuestion(
        "rules",
        "Broken rules, by product and version of the peer at fault",
        "SELECT rule, severity, certainty, if(f.peer = 'client', client_product, server_product) AS product, "
        f"count(*) AS findings, {_CONNECTIONS} "
        "FROM findings f JOIN connections c USING (capture_set, connection) "
        "GROUP BY ALL ORDER BY findings DESC, rule, severity, certainty, product NULLS FIRST LIMIT 40",
    ),
    LakeQuestion(
        "containers",
        "Findings, by container of the peer at fault",
        "SELECT if(f.peer = 'client', client_container, server_container) AS container, severity, "
        "count(*) AS findings, count(DISTINCT rule) AS rules "
        "FROM findings f JOIN connections c USING (capture_set, connection) "
        "GROUP BY ALL ORDER BY findings DESC, container NULLS FIRST, severity LIMIT 20",
    ),
    LakeQuestion(
        "addresses",
        "Findings, by address of the link",
        "SELECT coalesce(if(f.link.sender = 'client', l.target, l.source), l.target, l.source) AS address, "
        "count(*) AS findings, count(DISTINCT rule) AS rules FROM findings f JOIN (SELECT capture_set, "
        "connection, name, sender, max(source) AS source, max(target) AS target FROM links GROUP BY ALL) l "
        "ON f.capture_set = l.capture_set AND f.connection = l.connection AND f.link.name = l.name "
        "AND f.link.sender = l.sender GROUP BY ALL "
        "ORDER BY findings DESC, address NULLS FIRST LIMIT 20",
    ),
    LakeQuestion(
        "hours",
        "Findings, by hour (UTC)",
        "SELECT date_trunc('hour', time) AS hour, severity, count(*) AS findings FROM findings "
        "GROUP BY ALL ORDER BY hour, severity LIMIT 100",
    ),
    LakeQuestion(
        "latency",
        "Settlement of deliveries: microseconds from the first transfer to the settlement by the receiver",
        "SELECT address, sender, count(*) AS deliveries, count(settled_by) AS settled, "
        f"{_percentile('0.5')} AS p50, {_percentile('0.95')} AS p95, {_percentile('0.99')} AS p99 "
        f"FROM (SELECT address, sender, settled_by, if(settled_by <> sender, {_FOUR_DIGITS}, NULL) "
        "AS latency_ns FROM deliveries) d GROUP BY address, sender "
        "ORDER BY deliveries DESC, address NULLS FIRST, sender LIMIT 20",
    ),
    LakeQuestion(
        "errors",
        "Errors that peers reported",
        "SELECT e.condition, e.in, e.peer, product, CAST(sum(e.count) AS BIGINT) AS times "
        "FROM (SELECT e, if(e.peer = 'client', client_product, server_product) AS product FROM "
        "(SELECT client_product, server_product, explode(errors) AS e FROM connections) c) p "
        "GROUP BY ALL ORDER BY 5 DESC, 1 NULLS FIRST, 4 NULLS FIRST, 2, 3 LIMIT 20",
    ),
)
