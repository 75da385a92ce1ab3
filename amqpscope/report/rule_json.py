"""Rules as JSON: the contracts of `amqpscope rules list` and `rules coverage`."""

from typing import Any, Final

from amqpscope.conformance.coverage import CHECKED, FAILED, NOT_YET, UNDECIDABLE, Proof, status
from amqpscope.rules.catalogue import Rule, severity
from amqpscope.rules.references import named_source, references

__all__ = ["STATUSES", "proof_object", "rule_object"]

STATUSES: Final = {CHECKED: "checked", FAILED: "failed", NOT_YET: "not-yet", UNDECIDABLE: "not-decidable"}
"""What JSON calls the status of a rule."""


def rule_object(row: Rule) -> dict[str, Any]:
    """One rule of the catalogue."""
    return {
        "rule": row.id,
        "layer": row.layer,
        "severity": severity(row.id),
        "requirement": row.requirement,
        "basis": row.basis,
        "breaker": row.breaker,
        "status": STATUSES[status(row)],
        "text": row.text,
        "spec": named_source(row.source),
        "references": [one._asdict() for one in references(row.source)],
        "observable": row.observable,
        "reason": row.reason or None,
        "evidence": row.evidence or None,
        "expected_condition": row.answer or None,
    }


def proof_object(proof: Proof) -> dict[str, Any]:
    """What the captures of one rule show."""
    return {
        "rule": proof.rule.id,
        "layer": proof.rule.layer,
        "status": STATUSES[proof.status],
        "reason": proof.rule.reason or None,
        "failures": list(proof.failures),
    }
