"""What `amqpscope pipeline summary` asks of a lake, in Spark SQL."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpscope.pipeline.lake import Lake, table
from amqpscope.pipeline.schemas import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["QUESTIONS", "LakeQuestion", "ask", "views"]


class LakeQuestion(NamedTuple):
    """name: for JSON. title: for people."""

    name: str
    title: str
    sql: str

    @property
    def tables(self) -> list[str]:
        """The tables that it asks."""
        return [name for name in TABLES if re.search(rf"\b(?:FROM|JOIN) {name}\b", self.sql)]


QUESTIONS = (
    LakeQuestion(
        "diagnoses",
        "Diagnoses, and which peer has to act",
        "SELECT code, whose_move, count(*) AS times, "
        "count(DISTINCT concat(capture_set, ' ', connection)) AS connections, max(seconds) AS longest "
        "FROM diagnoses GROUP BY code, whose_move "
        "ORDER BY times DESC, code, coalesce(whose_move, '') LIMIT 40",
    ),
    LakeQuestion(
        "files",
        "Files",
        "SELECT status, reason, count(*) AS files, sum(size) AS octets, sum(packets) AS packets "
        "FROM files GROUP BY status, reason ORDER BY status, reason",
    ),
    LakeQuestion(
        "connections",
        "Connections",
        "SELECT protocol, count(*) AS connections, sum(client_frames + server_frames) AS frames, "
        "sum(client_messages + server_messages) AS messages, sum(client_missing + server_missing) AS missing "
        "FROM connections GROUP BY protocol ORDER BY connections DESC, protocol",
    ),
    LakeQuestion(
        "rules",
        "Broken rules, by product and version of the peer at fault",
        "SELECT rule, severity, certainty, if(f.peer = 'client', client_product, server_product) AS product, "
        "count(*) AS findings, count(DISTINCT capture_set, connection) AS connections "
        "FROM findings f JOIN connections c USING (capture_set, connection) "
        "GROUP BY ALL ORDER BY findings DESC, rule, certainty, product LIMIT 40",
    ),
    LakeQuestion(
        "containers",
        "Findings, by container of the peer at fault",
        "SELECT if(f.peer = 'client', client_container, server_container) AS container, severity, "
        "count(*) AS findings, count(DISTINCT rule) AS rules "
        "FROM findings f JOIN connections c USING (capture_set, connection) "
        "GROUP BY ALL ORDER BY findings DESC, container, severity LIMIT 20",
    ),
    LakeQuestion(
        "addresses",
        "Findings, by address of the link",
        "SELECT coalesce(if(f.link.sender = 'client', l.target, l.source), l.target, l.source) AS address, "
        "count(*) AS findings, count(DISTINCT rule) AS rules FROM findings f JOIN (SELECT capture_set, "
        "connection, name, sender, max(source) AS source, max(target) AS target FROM links GROUP BY ALL) l "
        "ON f.capture_set = l.capture_set AND f.connection = l.connection AND f.link.name = l.name "
        "AND f.link.sender = l.sender GROUP BY ALL ORDER BY findings DESC, address LIMIT 20",
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
        "percentile_approx(latency_ns, 0.5, 1000) / 1000 AS p50, "
        "percentile_approx(latency_ns, 0.95, 1000) / 1000 AS p95, "
        "percentile_approx(latency_ns, 0.99, 1000) / 1000 AS p99 "
        "FROM (SELECT address, sender, settled_by, if(settled_by <> sender, latency_ns, NULL) AS latency_ns "
        "FROM deliveries) GROUP BY ALL ORDER BY deliveries DESC, address, sender LIMIT 20",
    ),
    LakeQuestion(
        "errors",
        "Errors that peers reported",
        "SELECT e.condition, e.`in`, e.peer, "
        "if(e.peer = 'client', client_product, server_product) AS product, "
        "sum(e.count) AS times FROM connections LATERAL VIEW explode(errors) AS e "
        "GROUP BY ALL ORDER BY times DESC, condition, product LIMIT 20",
    ),
)


def views(spark: "SparkSession", lake: str) -> None:
    """Make the tables that were written to a lake known to SQL by their names."""
    for name in Lake(lake).tables():
        table(spark, lake, name).createOrReplaceTempView(name)


def ask(spark: "SparkSession", question: LakeQuestion) -> "DataFrame":
    """The answer, of the tables that `views` made known."""
    frame: Any = spark.sql(question.sql)
    return frame
