"""The declarations of what the pipeline's commands write about a lake."""

from typing import Any, Final

from amqpscope.schemas.shapes import (
    CERTAINTY,
    FLAG,
    INDEX,
    NUMBER,
    PEER,
    SEVERITY,
    TEXT,
    TIME,
    Schema,
    any_of,
    listed,
    mapped,
    nullable,
    record,
    said,
)

__all__ = ["LAKE_REPORT", "LAKE_SUMMARY"]


def _all(names: str, schema: Schema) -> dict[str, Any]:
    """Each name with the same schema."""
    return dict.fromkeys(names.split(), schema)


_PERCENTILES: Final = _all("p50 p95 p99", nullable(NUMBER))

_SUMMARY: Final[dict[str, dict[str, Any]]] = {
    "diagnoses": {
        "code": TEXT,
        "whose_move": nullable(TEXT),
        **_all("times connections", INDEX),
        "longest": nullable(NUMBER),
    },
    "files": {
        "status": TEXT,
        "reason": nullable(TEXT),
        "files": INDEX,
        **_all("octets packets", nullable(INDEX)),
    },
    "connections": {
        "protocol": nullable(TEXT),
        **_all("connections frames messages missing", INDEX),
        "open": said(INDEX, "connections that neither peer has ended at the end of the capture"),
    },
    "rules": {
        "rule": TEXT,
        "severity": SEVERITY,
        "certainty": CERTAINTY,
        "product": nullable(TEXT),
        **_all("findings connections", INDEX),
    },
    "containers": {
        "container": nullable(TEXT),
        "severity": SEVERITY,
        **_all("findings rules", INDEX),
    },
    "addresses": {"address": nullable(TEXT), **_all("findings rules", INDEX)},
    "hours": {"hour": nullable(TIME), "severity": SEVERITY, "findings": INDEX},
    "latency": {
        "address": nullable(TEXT),
        "sender": PEER,
        **_all("deliveries settled", INDEX),
        **_PERCENTILES,
    },
    "errors": {**_all("condition in peer product", nullable(TEXT)), "times": INDEX},
}
"""The columns of each question of `pipeline summary`."""

_FURTHER: Final[dict[str, dict[str, Any]]] = {
    "span": _all("since until", nullable(TIME)),
    "severities": {
        "severity": SEVERITY,
        "certainty": CERTAINTY,
        "accepted": said(FLAG, "true if the allow-list or the baseline accepts the findings"),
        "findings": INDEX,
    },
    "products": {
        "product": nullable(TEXT),
        "peer": PEER,
        "protocol": nullable(TEXT),
        "connections": INDEX,
        **_all("since until", nullable(TIME)),
    },
    "new_findings": {
        "rule": TEXT,
        "severity": SEVERITY,
        "certainty": CERTAINTY,
        "product": nullable(TEXT),
        "fingerprint": TEXT,
        **_all("findings connections", INDEX),
        "message": TEXT,
    },
    "new_diagnoses": {
        "code": TEXT,
        "whose_move": nullable(PEER),
        "subject": nullable(TEXT),
        **_all("times connections", INDEX),
        "longest": nullable(NUMBER),
    },
    "changes": {
        "change": said(
            any_of("new", "gone"), "new if only the newer version breaks the rule, gone if only the older one"
        ),
        "rule": TEXT,
        "severity": SEVERITY,
        "certainty": CERTAINTY,
        "peer": PEER,
        "protocol": TEXT,
        "older": TEXT,
        **_all("older_connections older_broken", INDEX),
        "newer": TEXT,
        **_all("newer_connections newer_broken", INDEX),
        "chance": said(NUMBER, "probability of this difference if the version does not matter, from 0 to 1"),
    },
    "examples": {
        "rule": TEXT,
        "severity": SEVERITY,
        "certainty": CERTAINTY,
        "product": nullable(TEXT),
        "place": INDEX,
        "capture": nullable(TEXT),
        "packet": nullable(INDEX),
        "time": nullable(TIME),
        "connection": nullable(TEXT),
        "peer": nullable(TEXT),
        "message": TEXT,
        "findings": INDEX,
    },
    "activity": {"hour": nullable(TIME), "connections": INDEX},
    "latency_hours": {
        "address": nullable(TEXT),
        "sender": PEER,
        "hour": nullable(TIME),
        "settled": INDEX,
        **_PERCENTILES,
    },
    "starved": {
        "code": TEXT,
        **_all("address whose_move product container", nullable(TEXT)),
        **_all("times connections", INDEX),
        "longest": nullable(NUMBER),
    },
    "unread": {
        "capture": TEXT,
        "status": TEXT,
        **_all("reason detail", nullable(TEXT)),
        "octets": nullable(INDEX),
    },
}
"""The columns of what `pipeline report` has beside them."""


def _answer(columns: dict[str, Any]) -> Schema:
    return record(
        {
            "title": TEXT,
            "rows_sql": said(TEXT, "query for all rows that were counted"),
            "more": said(FLAG, "true if there are further groups, which are left out"),
            "groups": listed(
                record(
                    {
                        **columns,
                        "where": said(
                            TEXT, "condition of the group's rows, for rows_sql and WHERE; empty for all rows"
                        ),
                    }
                )
            ),
        }
    )


LAKE_SUMMARY: Final = record(
    {f"{question}?": listed(record(columns)) for question, columns in _SUMMARY.items()},
    "`pipeline summary --format json`: for each question the rows of its answer. A question about a "
    "table that the lake does not have is left out",
)

LAKE_REPORT: Final = record(
    {
        "lake": TEXT,
        "as_of": said(nullable(TEXT), "run that left the tables so, as it was given; null for the last one"),
        "since": said(
            nullable(TEXT), "run that new_findings and new_diagnoses compare with; null if there is none"
        ),
        "tags?": said(mapped(TEXT), "tags of `--tag`: all numbers are of rows with these tags"),
        "left_out": said(
            mapped(TEXT), "why there is no answer to a question although the lake has its tables"
        ),
        "answers": record(
            {f"{question}?": _answer(columns) for question, columns in (_SUMMARY | _FURTHER).items()}
        ),
    },
    "`pipeline report --format json`: for each question the groups of its answer, and the queries for their "
    "rows. A question about a table that the lake does not have is left out",
)
