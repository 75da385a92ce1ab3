"""Judging captures under a policy, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripted import SCRIPTED

from amqpscope.policy import CaptureOutcome, Given, Hearer, Policy, judge, load_policy
from amqpscope.rules.profiles import weight


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_becomes_of_captures(folder: Path) -> None:
    names = ["clean.pcap", "window-overrun.pcap", "empty", "missing.pcap"]
    run = judge([*names, folder / "no-close.pcap"], load_policy())
    assert [one.name for one in run.captures] == [*names, str(folder / "no-close.pcap")]
    assert [one.outcome for one in run.captures] == [
        CaptureOutcome.fine,
        CaptureOutcome.findings,
        CaptureOutcome.failure,
        CaptureOutcome.failure,
        CaptureOutcome.fine,
    ]
    assert run.captures[3].reason == "missing.pcap: No such file or directory"
    assert [len(one.findings) for one in run.captures] == [0, 2, 0, 0, 1]
    assert [run.policy.counts(finding) for finding in run.findings] == [True, True, False]
    assert run.fails
    assert not judge(["clean.pcap", "no-close.pcap"], load_policy()).fails


def test_a_policy_of_a_file_and_what_is_given(folder: Path) -> None:
    (folder / "amqpscope.toml").write_text('ignore = ["S-WIN-IN"]\n[severity]\nC-CLOSE-SENT = "error"\n')
    run = judge(["window-overrun.pcap"], load_policy())
    assert (run.captures[0].findings, run.captures[0].ignored, run.fails) == ([], 2, False)
    given = Given()
    given.fail_on_possible = True
    run = judge(["no-close.pcap"], load_policy(given=given))
    assert [weight(finding) for finding in run.findings] == ["error"]
    assert run.fails
    assert not judge(["no-close.pcap"], Policy(None, given)).fails


def test_a_hearer_is_reported_of_each(folder: Path) -> None:
    reported: list[str] = []

    class Ear(Hearer):
        def begin(self, path: str) -> None:
            reported.append(f"begin {path}")

        def opened(self, capture: object) -> None:
            reported.append("opened")

        def take(self, findings: list[object]) -> None:  # type: ignore[override]
            reported.extend("finding" for _ in findings)

        def ignore(self, count: int) -> None:
            reported.append(f"ignore {count}")

        def finish(self, capture: object, empty: bool) -> None:
            reported.append(f"finish {empty}")

        def fail(self, reason: str) -> None:
            reported.append(f"fail {reason}")

        def end(self) -> None:
            reported.append("end")

    (folder / "x.toml").write_text('ignore = ["L-CREDIT"]')
    names = ["window-overrun.pcap", "empty", "credit-overrun.pcap"]
    run = judge(names, load_policy("x.toml"), hearer=Ear(), gather=False)
    assert reported == [
        *("begin window-overrun.pcap", "opened", "finding", "finding", "finish False"),
        *("begin empty", "opened", "fail empty: the file is empty"),
        *("begin credit-overrun.pcap", "opened", "ignore 6", "finish False", "end"),
    ]
    assert run.findings == []
    assert [one.ignored for one in run.captures] == [0, 0, 6]


def test_what_products_and_addresses_findings_are_about(folder: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    (finding, *_) = judge([root / "captures" / "rhea-transfer-before-attach.pcap"], Policy()).findings
    assert finding.addresses == ("stocked",)
    assert finding.said["container-id"] == "shop"
    found = judge([root / "captures" / "pika-connection-errors.pcap"], Policy()).findings
    said = {(finding.peer, finding.said["product"]) for finding in found}
    assert said == {("client", "Pika Python Client Library"), ("server", "RabbitMQ")}
    assert ("odd",) in [finding.addresses for finding in found]
