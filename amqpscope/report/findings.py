"""Findings as JSON: the contract of `amqpscope check --format json` and `ndjson`.

Each finding is one object; docs/reference/json.md lists its fields. Text is as the wire had it, in ASCII
escapes. Passwords in URLs are hidden, and so are keys of maps in the path of a malformed value that may be
part of a credential.
"""

import json
from typing import Any

from amqpscope.capture.source import shown_name
from amqpscope.model.finding import Finding
from amqpscope.model.passwords import without_password
from amqpscope.policy.config_finding import ConfigFinding
from amqpscope.report.moment import iso
from amqpscope.report.secrets import shown_path
from amqpscope.rules.fingerprint import fingerprint
from amqpscope.rules.profiles import weight
from amqpscope.rules.references import named_source, references
from amqpscope.rules.registry import severity

__all__ = [
    "FINDINGS_SCHEMA",
    "decided_object",
    "evidence_of",
    "expected_condition",
    "finding_json",
    "finding_object",
    "link_name",
    "message_of",
    "overridden",
    "remark_object",
]

FINDINGS_SCHEMA = "amqpscope/findings/1"

# Frames whose maps hold no message, token or SASL data.
_PLAIN_FRAMES = ("open", "begin", "attach", "flow", "disposition", "detach", "end", "close")


def expected_condition(finding: Finding) -> tuple[str, bool]:
    """The error that a correct peer answers with, or "", and whether the specification names it.

    Several errors are joined by `or`.
    """
    from amqpscope.rules.catalogue import rule  # brings the words of rules

    row = rule(finding.rule)
    return row.answer, row.answer_named


def message_of(finding: Finding) -> str:
    """The finding in one sentence, without secrets (but not escaped for a terminal)."""
    path = finding.evidence.get("path")
    if not isinstance(path, str) or not path:
        return without_password(finding.message)
    return without_password(finding.message.replace(path, _path(finding, path)))


def evidence_of(finding: Finding) -> dict[str, Any]:
    """The state before, as named values: numbers, booleans, texts, lists of these."""
    evidence = {name: _shown(value) for name, value in finding.evidence.items()}
    path = evidence.get("path")
    if isinstance(path, str):
        evidence["path"] = _path(finding, path)
    return evidence


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return without_password(value) if isinstance(value, str) else value


def link_name(finding: Finding) -> str:
    """The name of the link of a finding, without secrets (but not escaped for a terminal); "" if there is
    none.
    """
    return without_password(finding.link)


def _path(finding: Finding, path: str) -> str:
    return shown_path(path, finding.frame not in _PLAIN_FRAMES)


def finding_object(finding: Finding, capture: str) -> dict[str, Any]:
    """One finding by the names of the contract."""
    from amqpscope.rules.catalogue import rule  # brings the words of rules

    row = rule(finding.rule, finding.assessment.edition)
    connection = finding.connection
    channel = int(finding.channel)
    packets = dict.fromkeys([int(finding.packet), *(int(packet) for packet in finding.others if packet > 0)])
    reaction: dict[str, Any] | None = None
    answered = finding.reaction
    if answered.frame:
        reaction = {
            "frame": answered.frame,
            "condition": answered.condition or None,
            "after_seconds": int(answered.after) / 1_000_000_000,
            "packet": int(answered.packet),
        }
    return {
        "rule": finding.rule,
        "severity": weight(finding),
        "certainty": "certain" if finding.certain else "possible",
        "requirement": row.requirement,
        "message": message_of(finding),
        "spec": named_source(row.source),
        "references": [one._asdict() for one in references(row.source)],
        "edition": finding.assessment.edition,
        "profile": finding.assessment.profile or None,
        "capture": capture,
        "packet": int(finding.packet),
        "time": iso(int(finding.time)),
        "packets": [{"capture": capture, "packet": packet} for packet in packets],
        "connection": connection.id,
        "protocol": connection.protocol or None,
        "peer": finding.peer or None,
        "channel": channel if channel >= 0 else None,
        "session": int(finding.session) if finding.session >= 0 else None,
        "link": {"name": link_name(finding), "sender": finding.link_sender} if finding.link_sender else None,
        "delivery_id": finding.delivery_id if finding.delivery_id >= 0 else None,
        "expected_condition": expected_condition(finding)[0] or None,
        "reaction": reaction,
        "evidence": evidence_of(finding),
        "fingerprint": fingerprint(finding),
    }


def decided_object(finding: Finding, capture: str) -> dict[str, Any]:
    """One finding by the names of the contract, with what a policy decided of it."""
    assessment = finding.assessment
    suppressed = {"by": assessment.suppressed_by, "reason": assessment.reason}
    return {
        **finding_object(finding, capture),
        "overridden": overridden(finding) or None,
        "suppressed": suppressed if assessment.suppressed_by else None,
    }


def remark_object(remark: ConfigFinding) -> dict[str, Any]:
    """Something about the configuration, by the same names: what a peer and a packet have is null."""
    return {
        **dict.fromkeys(_FIELDS),
        "rule": remark.rule,
        "severity": remark.severity,
        "certainty": "certain",
        "message": remark.message,
        "packets": [],
        "evidence": {"file": shown_name(remark.file), "line": remark.line or None, **remark.evidence},
        "fingerprint": remark.fingerprint,
    }


# In the order of `decided_object`.
_FIELDS = (
    *("rule", "severity", "certainty", "requirement", "message", "spec", "references", "edition", "profile"),
    *("capture", "packet", "time", "packets", "connection", "protocol", "peer"),
    *("channel", "session", "link", "delivery_id", "expected_condition", "reaction"),
    *("evidence", "fingerprint", "overridden", "suppressed"),
)


def finding_json(finding: Finding, capture: str) -> str:
    """One finding as one line of JSON."""
    return json.dumps(decided_object(finding, capture))


def overridden(finding: Finding) -> str:
    """The severity that a finding would have without the policy, "" if the policy did not change it."""
    if finding.assessment.profile or not finding.assessment.level:
        return ""
    before = severity(finding.rule, finding.assessment.edition)
    return "" if before == finding.assessment.level else before
