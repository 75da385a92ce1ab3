"""`check --write-baseline` and `--baseline`: a job that is red for what is new only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import amqpscope
from support.scripted import SCRIPTED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


NAMES = ["credit-overrun.pcap", "window-overrun.pcap"]


def test_there_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Written once, then what is known is green, what is new red, and what is gone said."""
    first = amqpscope(capsys, "check", "--write-baseline", "known.json", NAMES[0])
    assert first.status == 0
    assert first.err == "amqpscope: known.json: 1 finding from now on known\n"
    again = amqpscope(capsys, "check", "--baseline", "known.json", NAMES[0])
    assert again.status == 0
    assert again.lines == [
        "credit-overrun.pcap: nothing else wrong found in 20 frames on 1 connection; "
        "6 findings in the baseline",
        "in the baseline: amqp10/L-CREDIT by the client (6, first in packet 16): known.json",
    ]
    new = amqpscope(capsys, "check", "--baseline", "known.json", *NAMES)
    assert new.status == 1
    assert "amqp10/S-WIN-IN by the client in packet 15" in new.out
    assert "amqp10/L-CREDIT by the client in packet" not in new.out
    assert new.lines[-1] == "2 captures: 2 errors in 1 of them; 6 findings in the baseline"
    Path(NAMES[0]).write_bytes(Path("clean.pcap").read_bytes())
    gone = amqpscope(capsys, "check", "--baseline", "known.json", NAMES[0])
    assert gone.status == 0
    assert gone.lines[-1].startswith(
        "fixed: amqp10/L-CREDIT by the client, the sender starts a delivery although no link-credit is left"
    )
    assert gone.lines[-1].endswith(" (in known.json, of credit-overrun.pcap)")
    amqpscope(capsys, "check", "--write-baseline", "known.json", NAMES[0])
    assert json.loads(Path("known.json").read_text())["findings"] == []


def test_every_form_says_what_is_fixed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    amqpscope(capsys, "check", "--write-baseline", "known.json", NAMES[0])
    Path(NAMES[0]).write_bytes(Path("clean.pcap").read_bytes())
    for form in ("text", "markdown", "ndjson", "junit", "sarif", "github"):
        reported = amqpscope(capsys, "check", "--baseline", "known.json", "--format", form, NAMES[0])
        where, other = (
            (reported.out, reported.err) if form in ("text", "markdown") else (reported.err, reported.out)
        )
        assert "fixed: amqp10/L-CREDIT by the client" in where, form
        assert "fixed: " not in other, form
    reported = amqpscope(capsys, "check", "--baseline", "known.json", "--format", "json", NAMES[0])
    assert reported.err == ""
    assert [(one["rule"], one["captures"]) for one in json.loads(reported.out)["fixed"]] == [
        ("amqp10/L-CREDIT", {"credit-overrun.pcap": 6})
    ]


def test_every_form_marks_what_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    amqpscope(capsys, "check", "--write-baseline", "known.json", NAMES[0])

    def reported(form: str) -> str:
        result = amqpscope(capsys, "check", "--baseline", "known.json", "--format", form, NAMES[0])
        assert result.status == 0
        return result.out

    for line in reported("ndjson").splitlines():
        assert json.loads(line)["suppressed"] == {"by": "baseline", "reason": "known.json"}
    results = json.loads(reported("sarif"))["runs"][0]["results"]
    assert [one["suppressions"][0]["justification"] for one in results] == ["in the baseline known.json"] * 6
    written = reported("junit")
    assert 'failures="0"' in written
    assert written.count("It is in the baseline known.json.") == 6
    for form in ("markdown", "github"):
        written = reported(form)
        assert written.count("in the baseline: amqp10/L-CREDIT by the client (6, first in packet 16)") == 1
        assert "::error" not in written and "| error" not in written


def test_strict_asks_no_more_of_what_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    amqpscope(capsys, "check", "--write-baseline", "known.json", "no-close.pcap")
    assert amqpscope(capsys, "check", "--strict", "no-close.pcap").status == 1
    assert amqpscope(capsys, "check", "--strict", "--baseline", "known.json", "no-close.pcap").status == 0


def test_of_a_configuration(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The key names it; it may be written while it is not there yet."""
    Path("amqpscope.toml").write_text("baseline = 'known.json'\n")
    missing = amqpscope(capsys, "check", *NAMES)
    assert (missing.status, missing.err) == (2, "amqpscope: known.json: No such file or directory\n")
    assert amqpscope(capsys, "check", "--write-baseline", "known.json", *NAMES).status == 0
    assert amqpscope(capsys, "check", *NAMES).status == 0
    assert amqpscope(capsys, "check", "--no-config", *NAMES).status == 1
    amqpscope(capsys, "check", "--no-config", "--write-baseline", "other.json", NAMES[0])
    assert amqpscope(capsys, "check", "--baseline", "other.json", *NAMES).status == 1


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--baseline", "none.json"], "none.json: No such file or directory"),
        (["--baseline", "clean.pcap"], "clean.pcap: is not a valid baseline: the file is not JSON"),
        (
            ["--baseline", "a", "--write-baseline", "b"],
            "--write-baseline: cannot be combined with --baseline",
        ),
        (["--write-baseline", "-"], "--write-baseline -: must name a file"),
        (
            ["--write-baseline", "./clean.pcap"],
            "--write-baseline ./clean.pcap: this run already reads or writes this file",
        ),
        (
            ["--write-baseline", "x.json", "-o", "x.json"],
            "--output x.json: this run already reads or writes this file",
        ),
        (
            ["--write-baseline", "other.json"],
            "other.json: the file is not a baseline, so amqpscope does not overwrite it",
        ),
        (
            ["--write-baseline", "known.toml"],
            "--write-baseline known.toml: this run already reads or writes this file",
        ),
        (
            ["--baseline", "known.json", "-o", "known.json"],
            "--output known.json: this run already reads or writes this file",
        ),
        (["-o", "text:known.toml"], "--output known.toml: this run already reads or writes this file"),
        (["--write-baseline", "none/x.json"], "none/x.json: No such file or directory"),
    ],
)
def test_what_cannot_be(
    arguments: list[str], reported: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other.json").write_text('{"version": 1}')
    Path("known.json").write_text('{"schema": "amqpscope/baseline/1", "findings": []}')
    Path("known.toml").write_text("strict = true\n")
    kept = [Path(name) for name in ("clean.pcap", "other.json", "known.json", "known.toml")]
    before = [path.read_bytes() for path in kept]
    result = amqpscope(capsys, "check", "--config", "known.toml", *arguments, "clean.pcap")
    assert result.status == 2
    assert result.err == f"amqpscope: {reported}\n"
    assert [path.read_bytes() for path in kept] == before


def test_one_that_is_damaged_may_be_written_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.json").write_text('{"schema": "amqpscope/baseline/1",\n<<<<<<< ours\n')
    assert amqpscope(capsys, "check", "--write-baseline", "known.json", "clean.pcap").status == 0
    assert json.loads(Path("known.json").read_text())["findings"] == []


def test_it_is_not_written_of_a_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "--write-baseline", "known.json", NAMES[0], "missing.pcap")
    assert result.status == 2
    assert result.err.splitlines()[-1] == (
        "amqpscope: known.json: not written, because some captures could not be read"
    )
    assert not Path("known.json").exists()
