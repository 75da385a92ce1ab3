"""What `amqpscope pipeline summary` and `report` ask of a lake, in SQL that DuckDB and Spark answer with the
same rows.

So sums are cast, since DuckDB would widen them; nulls have their place in each order; and nothing is
approximate. `explode` is Spark's: `engines` gives it to DuckDB.

A question groups rows, and so each number of its answer has rows: `LakeQuestion.rows_sql` gives them.
"""

import datetime
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.views import NOT_ENDED
from amqpscope.report.printable import printable

__all__ = ["FURTHER_QUESTIONS", "MOST_COMPARED", "QUESTIONS", "LakeQuestion"]

MOST_COMPARED: Final = 100_000
"""Groups that are compared with those of an earlier run."""

_LONGEST: Final = 100
"""Characters of a text that stands in SQL as it is."""

_SPECIAL: Final = frozenset("'\"\\$`!")
"""What a shell or an engine takes for something else in a text, in one of them at least."""


class LakeQuestion(NamedTuple):
    """A question about groups of rows.

    name: for JSON. title: for people. source: the rows, as it follows FROM. keys: what the rows of a group
    have in common, none for one group of all rows. figures: what is computed of each group. order: of the
    groups, without a doubt. most: groups that are shown at most. columns: what is shown of a row.
    """

    name: str
    title: str
    source: str
    keys: tuple[str, ...]
    figures: str
    order: str
    most: int
    columns: str

    @property
    def sql(self) -> str:
        """The query for the groups."""
        grouped = " GROUP BY ALL" if self.keys else ""
        chosen = ", ".join([*self.keys, self.figures])
        return f"SELECT {chosen} FROM {self.source}{grouped} ORDER BY {self.order} LIMIT {self.most}"

    @property
    def rows_sql(self) -> str:
        """The query for all rows. With ` WHERE ` and `condition` behind it, for those of one group."""
        return f"SELECT {self.columns} FROM {self.source}"

    def condition(self, group: Mapping[str, Any]) -> str:
        """What the rows of a group have in common, in SQL; "" if that is nothing.

        It has no character that a shell takes for something else between double quotes.
        """
        return " AND ".join(_is(key, group[key.rpartition(".")[2]]) for key in self.keys)

    @property
    def tables(self) -> list[str]:
        """The tables that it asks."""
        return [name for name in TABLES if re.search(rf"\b(?:FROM|JOIN) {name}\b", self.sql)]


def _is(key: str, value: Any) -> str:
    """A column has a value. A text that is long, or not plain, is named by its digest."""
    if value is None:
        return f"{key} IS NULL"
    if isinstance(value, datetime.datetime):
        return f"{key} = '{value.astimezone(datetime.UTC).isoformat(' ')}'"
    if not isinstance(value, str):
        return f"{key} = {str(value).lower()}"
    if len(value) <= _LONGEST and not _SPECIAL & set(value) and printable(value) == value:
        return f"{key} = '{value}'"
    return f"md5({key}) = '{hashlib.md5(value.encode(), usedforsecurity=False).hexdigest()}'"


_CONNECTIONS = "count(DISTINCT capture_set || ' ' || connection) AS connections"

_FOUR_DIGITS = (
    "latency_ns - latency_ns % CAST("
    "rpad('1', CAST(greatest(length(CAST(latency_ns AS STRING)) - 3, 1) AS INT), '0') AS BIGINT)"
)
"""A latency with four digits: there are few different ones, so that exact percentiles need little memory."""

_WORST = "min(CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END)"
"""The worst severity of a group: 0 for an error."""

_WORST_FIRST = f"{_WORST}, certainty"

_AT_FAULT = (
    "(SELECT f.*, if(f.peer = 'client', client_product, server_product) AS product, "
    "if(f.peer = 'client', client_container, server_container) AS container "
    "FROM findings f LEFT JOIN connections c USING (capture_set, connection)) f"
)
"""Findings, with the product and the container of the peer at fault."""

_FINDING = "capture, packet, time, connection, peer, rule, severity, certainty, message"

_ADDRESSES = (
    "(SELECT capture_set, connection, name, sender, max(source) AS source, max(target) AS target "
    "FROM links GROUP BY ALL) l"
)

_EACH_PEER = " UNION ALL ".join(
    f"SELECT capture_set, connection, protocol, start, '{peer}' AS peer, {peer}_product AS product, "
    f"{peer}_container AS container FROM connections"
    for peer in ("client", "server")
)

_SETTLEMENTS = (
    "(SELECT capture, packet, time, date_trunc('hour', time) AS hour, connection, address, sender, outcome, "
    f"settled_by, if(settled_by <> sender, {_FOUR_DIGITS}, NULL) AS waited_ns FROM deliveries) d"
)
"""Deliveries. waited_ns: until the receiver settled, null if it did not, or the sender did."""

_SETTLEMENT = "capture, packet, time, connection, address, sender, outcome, settled_by, waited_ns"


def _percentile(share: str) -> str:
    """A percentile of the settlements by the receiver, in microseconds."""
    return f"CAST(percentile_disc({share}) WITHIN GROUP (ORDER BY waited_ns) AS DOUBLE) / 1000"


_PERCENTILES = ", ".join(
    f"{_percentile(share)} AS {name}" for name, share in (("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99"))
)

_STARVED = "('diag/credit-starved', 'diag/credit-none', 'diag/window-closed', 'diag/prefetch-full')"
"""Diagnoses of a sender that may not send, since the receiver grants nothing."""

QUESTIONS: Final = (
    LakeQuestion(
        "diagnoses",
        "Diagnoses, and which peer has to act",
        "diagnoses",
        ("code", "whose_move"),
        f"count(*) AS times, {_CONNECTIONS}, max(seconds) AS longest",
        "times DESC, code, whose_move NULLS FIRST",
        40,
        "capture, packet, connection, subject, seconds, message",
    ),
    LakeQuestion(
        "files",
        "Files",
        "files",
        ("status", "reason"),
        "count(*) AS files, CAST(sum(size) AS BIGINT) AS octets, CAST(sum(packets) AS BIGINT) AS packets",
        "status, reason NULLS FIRST",
        100,
        "capture, size, packets, status, reason, detail",
    ),
    LakeQuestion(
        "connections",
        "Connections",
        "connections",
        ("protocol",),
        "count(*) AS connections, CAST(sum(client_frames + server_frames) AS BIGINT) AS frames, "
        "CAST(sum(client_messages + server_messages) AS BIGINT) AS messages, "
        "CAST(sum(client_missing + server_missing) AS BIGINT) AS missing, "
        f"CAST(sum(if({NOT_ENDED}, 1, 0)) AS BIGINT) AS open",
        "connections DESC, protocol NULLS FIRST",
        100,
        "capture_set, connection, start, client_product, server_product, client_container, server_container",
    ),
    LakeQuestion(
        "rules",
        "Broken rules, by product and version of the peer at fault",
        _AT_FAULT,
        ("rule", "severity", "certainty", "product"),
        f"count(*) AS findings, {_CONNECTIONS}",
        f"{_WORST_FIRST}, findings DESC, rule, product NULLS FIRST",
        40,
        _FINDING,
    ),
    LakeQuestion(
        "containers",
        "Findings, by container of the peer at fault",
        _AT_FAULT,
        ("container", "severity"),
        "count(*) AS findings, count(DISTINCT rule) AS rules",
        "findings DESC, container NULLS FIRST, severity",
        20,
        _FINDING,
    ),
    LakeQuestion(
        "addresses",
        "Findings, by address of the link",
        "(SELECT f.*, coalesce(if(f.link.sender = 'client', l.target, l.source), l.target, l.source) AS "
        f"address FROM findings f JOIN {_ADDRESSES} "
        "ON f.capture_set = l.capture_set AND f.connection = l.connection AND f.link.name = l.name "
        "AND f.link.sender = l.sender) f",
        ("address",),
        "count(*) AS findings, count(DISTINCT rule) AS rules",
        "findings DESC, address NULLS FIRST",
        20,
        _FINDING,
    ),
    LakeQuestion(
        "hours",
        "Findings, by hour (UTC)",
        "(SELECT *, date_trunc('hour', time) AS hour FROM findings) f",
        ("hour", "severity"),
        "count(*) AS findings",
        "hour DESC NULLS LAST, severity",
        100,
        _FINDING,
    ),
    LakeQuestion(
        "latency",
        "Settlement of deliveries: microseconds from the first transfer to the settlement by the receiver",
        _SETTLEMENTS,
        ("address", "sender"),
        f"count(*) AS deliveries, count(settled_by) AS settled, {_PERCENTILES}",
        "deliveries DESC, address NULLS FIRST, sender",
        20,
        _SETTLEMENT,
    ),
    LakeQuestion(
        "errors",
        "Errors that peers reported",
        "(SELECT capture_set, connection, e, if(e.peer = 'client', client_product, server_product) "
        "AS product FROM (SELECT capture_set, connection, client_product, server_product, "
        "explode(errors) AS e FROM connections) c) p",
        ("e.condition", "e.in", "e.peer", "product"),
        "CAST(sum(e.count) AS BIGINT) AS times",
        "5 DESC, 1 NULLS FIRST, 4 NULLS FIRST, 2, 3",
        20,
        "capture_set, connection, product, e",
    ),
)
"""What `summary` asks."""

FURTHER_QUESTIONS: Final = (
    LakeQuestion(
        "span",
        "From the first packet to the last one (UTC)",
        "connections c",
        (),
        "min(c.start) AS since, max(c.end) AS until",
        "1",
        1,
        "capture_set, connection, c.start, c.end",
    ),
    LakeQuestion(
        "severities",
        "Findings, by severity",
        "(SELECT *, suppressed IS NOT NULL AS accepted FROM findings) f",
        ("severity", "certainty", "accepted"),
        "count(*) AS findings",
        f"{_WORST_FIRST}, accepted",
        20,
        _FINDING,
    ),
    LakeQuestion(
        "products",
        "Products and versions",
        f"({_EACH_PEER}) p",
        ("product", "peer", "protocol"),
        "count(*) AS connections, min(start) AS since, max(start) AS until",
        "connections DESC, product NULLS FIRST, peer, protocol NULLS FIRST",
        200,
        "capture_set, connection, start, peer, product, container",
    ),
    LakeQuestion(
        "broken",
        "Rules that a product breaks",
        f"(SELECT * FROM {_AT_FAULT} WHERE product IS NOT NULL) f",
        ("rule", "product", "peer", "protocol"),
        f"count(*) AS findings, {_CONNECTIONS}, {_WORST} AS worst, min(certainty) AS certainty",
        "rule, product, peer, protocol",
        5000,
        _FINDING,
    ),
    LakeQuestion(
        "new_findings",
        "New findings: the earlier run had none with this fingerprint",
        _AT_FAULT,
        ("rule", "severity", "certainty", "product", "fingerprint"),
        f"count(*) AS findings, {_CONNECTIONS}, max(message) AS message",
        f"{_WORST_FIRST}, findings DESC, rule, product NULLS FIRST, fingerprint",
        MOST_COMPARED,
        _FINDING,
    ),
    LakeQuestion(
        "new_diagnoses",
        "New diagnoses: the earlier run had none like it",
        "diagnoses",
        ("code", "whose_move", "subject"),
        f"count(*) AS times, {_CONNECTIONS}, max(seconds) AS longest",
        "times DESC, code, whose_move NULLS FIRST, subject NULLS FIRST",
        MOST_COMPARED,
        "capture, packet, connection, subject, seconds, message",
    ),
    LakeQuestion(
        "examples",
        "Findings: the first two of each rule, product and certainty",
        "(SELECT * FROM (SELECT *, CAST(row_number() OVER (PARTITION BY rule, severity, certainty, product "
        "ORDER BY time NULLS LAST, capture NULLS LAST, packet NULLS LAST, message, connection, peer) "
        "AS BIGINT) AS place, "
        "count(*) OVER (PARTITION BY rule, severity, certainty, product) AS alike "
        f"FROM {_AT_FAULT}) g WHERE place <= 2) f",
        ("rule", "severity", "certainty", "product", "place"),
        "max(capture) AS capture, max(packet) AS packet, max(time) AS time, max(connection) AS connection, "
        "max(peer) AS peer, max(message) AS message, max(alike) AS findings",
        f"{_WORST_FIRST}, findings DESC, rule, product NULLS FIRST, place",
        200,
        f"{_FINDING}, place",
    ),
    LakeQuestion(
        "activity",
        "Connections, by hour of their begin (UTC)",
        "(SELECT *, date_trunc('hour', start) AS hour FROM connections) c",
        ("hour",),
        "count(*) AS connections",
        "hour DESC NULLS LAST",
        750,
        "capture_set, connection, start, client_product, server_product",
    ),
    LakeQuestion(
        "latency_hours",
        "Settlement of deliveries, by hour (UTC): microseconds",
        f"(SELECT * FROM {_SETTLEMENTS} WHERE waited_ns IS NOT NULL) d",
        ("address", "sender", "hour"),
        f"count(waited_ns) AS settled, {_PERCENTILES}",
        "hour DESC NULLS LAST, settled DESC, address NULLS FIRST, sender",
        400,
        _SETTLEMENT,
    ),
    LakeQuestion(
        "starved",
        "Starved: a sender may not send, because the receiver grants no credit, window or prefetch",
        "(SELECT d.*, p.product, p.container, if(l.sender = 'client', l.target, l.source) AS address "
        f"FROM diagnoses d LEFT JOIN ({_EACH_PEER}) p ON d.capture_set = p.capture_set "
        "AND d.connection = p.connection AND d.whose_move = p.peer "
        f"LEFT JOIN {_ADDRESSES} ON d.capture_set = l.capture_set AND d.connection = l.connection "
        f"AND d.subject = l.name AND d.whose_move <> l.sender WHERE code IN {_STARVED}) d",
        ("code", "address", "whose_move", "product", "container"),
        f"count(*) AS times, {_CONNECTIONS}, max(seconds) AS longest",
        "longest DESC NULLS LAST, times DESC, code, address NULLS FIRST, product NULLS FIRST, "
        "container NULLS FIRST, whose_move NULLS FIRST",
        40,
        "capture, packet, connection, subject, seconds, message",
    ),
    LakeQuestion(
        "unread",
        "Inputs that were not read, or not to the end",
        "(SELECT * FROM files WHERE status <> 'ok') f",
        ("capture", "status", "reason"),
        "max(detail) AS detail, CAST(sum(size) AS BIGINT) AS octets",
        "status DESC, reason NULLS FIRST, capture",
        60,
        "capture, size, packets, status, reason, detail",
    ),
)
"""What `report` asks beside them."""
