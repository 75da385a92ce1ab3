"""`amqpscope diff`: the diagnoses that only one of two runs has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import amqpscope

SITUATIONS = Path(__file__).resolve().parents[2] / "captures" / "situations"
STARVED = SITUATIONS / "credit-starved.pcap"
DRAINED = SITUATIONS / "unanswered-drain.pcap"


def test_the_diagnoses_of_one_run_only_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "diff", STARVED, DRAINED).lines
    at = lines.index("diagnoses: 1 only in A, 1 only in B, 0 in both")
    assert lines[at + 1].startswith('  only in A   the client has to act: link "jobs": ')
    assert lines[at + 2].startswith("  only in B   the server has to act: ")
    found = json.loads(amqpscope(capsys, "diff", "--format", "json", STARVED, DRAINED).out)["diagnoses"]
    assert [(one["a"], one["b"], one["diagnosis"]["code"]) for one in found] == [
        (1, 0, "diag/credit-starved"),
        (0, 1, "diag/unanswered"),
    ]


def test_a_diagnosis_of_both_runs_makes_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "diff", STARVED, STARVED)
    assert result.status == 0
    assert "diagnoses: 0 only in A, 0 only in B, 1 in both" in result.lines
    assert "[diag/credit-starved]" not in result.out
    assert "[diag/credit-starved]" in amqpscope(capsys, "diff", "--all", STARVED, STARVED).out
