"""A diagnosis in SARIF: a result of level note, with its public thread as the help."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import amqpscope
from support.reports import sarif_run, sarif_text

SITUATIONS = Path(__file__).resolve().parents[2] / "captures" / "situations"


def test_a_diagnosis_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "--format", "sarif", SITUATIONS / "credit-starved.pcap")
    run = sarif_run(result.out)
    (one,) = run["results"]
    assert (one["ruleId"], one["level"]) == ("diag/credit-starved", "note")
    assert sarif_text(one["message"]).startswith('Diagnosis, the client has to act: link "jobs": ')
    assert one["locations"][0]["physicalLocation"]["region"] == {"startLine": 32}
    assert one["properties"]["figures"]["available"] == 37
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://github.com/noodlefrenzy/node-amqp10/issues/337"
    assert result.status == 0


def test_without_diagnoses_there_is_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    path = SITUATIONS / "credit-starved.pcap"
    result = amqpscope(capsys, "check", "--no-diagnoses", "--format", "sarif", path)
    assert sarif_run(result.out)["results"] == []
