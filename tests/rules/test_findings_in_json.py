"""What any rule says can be written as JSON: evidence is numbers, booleans and texts, or lists of them."""

from __future__ import annotations

import json
from pathlib import Path

import amqpscope
from amqpscope.report.findings import finding_json

CAPTURES = Path(__file__).parents[2] / "captures" / "rules"


def test_findings_of_every_rule() -> None:
    reported: set[str] = set()
    for path in sorted(CAPTURES.glob("*/*/*.pcap")):
        for finding in amqpscope.check(path):
            assert json.loads(finding_json(finding, "x"))["rule"] == finding.rule
            reported.add(finding.rule)
    assert len(reported) > 150
