"""A configuration decides about the findings in a lake as it does in `check`."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.lakes import CAPTURES, as_finding, ordered

from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.rows import Rows, RowTerms
from amqpscope.policy.policy import Given, Policy, load_policy

SOURCES = [CAPTURES / "rhea-transfer-before-attach.pcap", CAPTURES / "rabbitmq-credit.pcap"]

ALLOW = '[[allow]]\nreason = "known"\nrule = '

CONFIGURATIONS = (
    "",
    'ignore = ["amqp10/S-*"]',
    'select = ["error"]\nprofile = "none"',
    '[severity]\n"*" = "note"',
    '[severity]\n"amqp10/C-*" = "error"',
    f'{ALLOW} "*"\ncapture = "captures/rabbitmq-*.pcap"',
    f'{ALLOW} "*"\ncapture = "rhea-transfer-before-attach.pcap"\nexpires = 2000-01-01',
    'fail-on = "note"\nfail-on-possible = true\nignore = ["error"]',
    'baseline = "known.json"',
    'strict = true\nspec = "csd01"',
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A baseline with what one of the captures has."""
    from amqpscope.cli.main import run

    path = tmp_path_factory.mktemp("known") / "known.json"
    run(["check", "--no-config", "--format", "json", "--write-baseline", str(path), str(SOURCES[0])])
    return path.read_text()


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_as_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: str, text: str
) -> None:
    """The same findings with the same decisions, from a policy that was sent to another process."""

    (tmp_path / "amqpscope.toml").write_text(text)
    (tmp_path / "known.json").write_text(known)
    (tmp_path / "captures").symlink_to(CAPTURES)
    captures = [tmp_path / "captures" / path.name for path in SOURCES]
    monkeypatch.chdir(tmp_path)
    result = amqpscope(capsys, "check", *captures, "--format", "json")
    expected = json.loads(result.out)
    policy = load_policy()
    sent = pickle.loads(pickle.dumps(RowTerms(policy)))
    monkeypatch.chdir("/")  # where a worker is
    rows = Rows(("findings",), sent)
    made: list[dict[str, Any]] = []
    for one in capture_sets(map(str, captures), "file"):
        for _, batch in read_set(one, rows):
            made += batch.to_pylist()
    for _, batch in rows.batches(True):
        made += batch.to_pylist()
    found = [one for one in expected["findings"] if not one["rule"].startswith("config/")]
    for one in found:
        del one["references"]
    assert ordered(map(as_finding, made)) == ordered(found)
    assert sum(rows.counts[key] for key in rows.counts if key[0] == "finding") == sum(
        one["suppressed"] is None for one in found
    )


def test_statuses(
    lent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status and the remarks about a configuration are those of `check`."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "amqpscope.toml"
    one = SOURCES[0]
    for text, status, remarks in (
        (f'{ALLOW} "*"', 0, []),
        (f'{ALLOW} "*"\nexpires = 2000-01-01', 1, ["error config/ALLOW-EXPIRED in amqpscope.toml, line 1: "]),
        (
            f'[severity]\n"*" = "note"\n{ALLOW} "amqp10/C-IDLE-LATE"',
            0,
            ["note config/ALLOW-UNUSED in amqpscope.toml, line 3: "],
        ),
    ):
        file.write_text(text)
        result = amqpscope(capsys, "pipeline", "run", one, "--out", "lake", "--tables", "findings", "-q")
        assert result.status == status == amqpscope(capsys, "check", one, "--quiet").status
        assert len(result.err.splitlines()) == len(remarks)
        assert all(
            line.startswith(f"amqpscope: {remark}")
            for line, remark in zip(result.err.splitlines(), remarks, strict=True)
        )
    assert amqpscope(capsys, "pipeline", "run", one, "--out", "lake", "--config", "no", "-q").status == 2


def test_a_policy_that_was_given() -> None:
    given = Given()
    given.ignore = ["amqp10/*"]
    rows = Rows(("findings",), RowTerms(Policy(None, given)))
    (one,) = capture_sets([str(SOURCES[0])])
    assert not [*read_set(one, rows), *rows.batches(True)]
    assert not any(key[0] == "finding" for key in rows.counts)


def test_diagnoses(tmp_path: Path) -> None:
    """Their limits are those of the configuration."""
    (one,) = capture_sets([str(CAPTURES / "pika-heartbeat-missed.pcap")])
    codes = []
    for text in ("", '[diagnosis-limits]\n"heartbeat-late.times" = 1000\n'):
        (tmp_path / "amqpscope.toml").write_text(text)
        rows = Rows(("diagnoses",), RowTerms(load_policy(str(tmp_path / "amqpscope.toml"))))
        made = [*read_set(one, rows), *rows.batches(True)]
        codes.append({key[1] for key in rows.counts if key[0] == "diagnosis"})
        assert bool(made) == bool(codes[-1])
    assert codes == [{"diag/heartbeat-late"}, set()]
