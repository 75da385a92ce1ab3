"""Findings as JSON: the contract of `amqpscope check --format json` and `ndjson`."""

import hashlib
import json
from typing import Any

from amqpscope.finding import Finding
from amqpscope.report.moment import iso
from amqpscope.rules.catalogue import rule, severity

__all__ = ["FINDINGS_SCHEMA", "finding_json", "finding_object", "fingerprint"]

FINDINGS_SCHEMA = "amqpscope/findings/1"


def fingerprint(finding: Finding) -> str:
    """Sixteen hex digits that stay the same over ports, times and packet numbers."""
    what = "|".join(
        (
            finding.rule,
            finding.peer,
            finding.record.frame.name,
            str(finding.session),
            finding.link,
            finding.link_sender,
            ",".join(sorted(finding.evidence)),
        )
    )
    return hashlib.sha256(what.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def finding_object(finding: Finding, capture: str) -> dict[str, Any]:
    """One finding by the names of the contract."""
    row = rule(finding.rule)
    record = finding.record
    connection = record.connection
    frame = record.frame
    packets = [int(finding.packet), *(packet for packet in finding.others if packet != finding.packet)]
    reaction: dict[str, Any] | None = None
    if finding.reaction:
        reaction = {
            "frame": finding.reaction,
            "condition": finding.reaction_condition or None,
            "after_seconds": round(finding.reaction_after, 6),
            "packet": int(finding.reaction_packet),
        }
    return {
        "rule": finding.rule,
        "severity": severity(finding.rule),
        "certainty": "certain" if finding.certain else "possible",
        "requirement": row.requirement,
        "message": finding.message,
        "spec": row.source,
        "edition": finding.edition,
        "profile": finding.profile or None,
        "capture": capture,
        "packet": int(finding.packet),
        "time": iso(int(finding.time)),
        "packets": [{"capture": capture, "packet": packet} for packet in packets],
        "connection": connection.id,
        "protocol": connection.protocol,
        "peer": finding.peer,
        "channel": int(frame.channel) if frame.channel >= 0 else None,
        "session": int(finding.session) if finding.session >= 0 else None,
        "link": {"name": finding.link, "sender": finding.link_sender} if finding.link else None,
        "delivery_id": int(finding.delivery_id) if finding.delivery_id >= 0 else None,
        "expected_condition": row.condition or None,
        "reaction": reaction,
        "evidence": finding.evidence,
        "fingerprint": fingerprint(finding),
    }


def finding_json(finding: Finding, capture: str) -> str:
    """One finding as one line of JSON."""
    return json.dumps(finding_object(finding, capture))
