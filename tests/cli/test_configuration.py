"""A configuration at the command line: what it changes, what beats it, what is said when it is wrong."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from support.commands import DEMO, Result, amqpscope, unprintable
from support.scripted import SCRIPTED

from amqpscope.policy.configuration import KEYS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(capsys: pytest.CaptureFixture[str], text: str, *arguments: object) -> Result:
    """`check` under this configuration."""
    Path("amqpscope.toml").write_text(text)
    return amqpscope(capsys, "check", *arguments)


@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        ("", ["window-overrun.pcap"], 1),
        ("fail-on = 'never'", ["window-overrun.pcap"], 0),
        ("fail-on = 'never'", ["--fail-on", "error", "window-overrun.pcap"], 1),
        ("fail-on = 'never'", ["--no-config", "window-overrun.pcap"], 1),
        ("fail-on = 'warning'", ["no-close.pcap"], 0),
        ("fail-on = 'warning'\nfail-on-possible = true", ["no-close.pcap"], 1),
        ("fail-on = 'warning'\nfail-on-possible = true", ["--no-fail-on-possible", "no-close.pcap"], 0),
        ("fail-on-possible = true", ["credit-withdrawn.pcap"], 1),
        ("strict = true", ["no-close.pcap"], 1),
        ("strict = true", ["--no-strict", "no-close.pcap"], 0),
        ("strict = true", ["--fail-on", "error", "no-close.pcap"], 0),
        ("strict = true", ["--fail-on", "error", "credit-withdrawn.pcap"], 1),
        ("fail-on = 'never'", ["--strict", "no-close.pcap"], 1),
        ("ignore = ['S-WIN-IN']", ["window-overrun.pcap"], 0),
        ("ignore = ['error']", ["window-overrun.pcap"], 0),
        ("select = ['L-*']", ["window-overrun.pcap"], 0),
        ("select = ['L-*']", ["--select", "S-*", "window-overrun.pcap"], 1),
        ("select = ['L-*']", ["--select", "S-WIN-IN", "--select", "L-CREDIT", "window-overrun.pcap"], 1),
        ("ignore = ['S-WIN-IN']", ["--select", "S-*", "window-overrun.pcap"], 0),
        ("ignore = ['S-*']", ["--select", "S-WIN-IN", "window-overrun.pcap"], 1),
        ("select = ['S-WIN-IN']", ["--ignore", "S-*", "window-overrun.pcap"], 0),
        ("[severity]\nS-WIN-IN = 'warning'", ["window-overrun.pcap"], 0),
        ("ignore = ['warning']\n[severity]\nS-WIN-IN = 'warning'", ["window-overrun.pcap"], 0),
        ("fail-on = 'warning'\n[severity]\nS-WIN-IN = 'warning'", ["window-overrun.pcap"], 1),
        ("[severity]\nC-CLOSE-SENT = 'error'\n", ["--fail-on-possible", "no-close.pcap"], 1),
    ],
)
def test_exit_statuses(
    text: str, arguments: list[str], status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert configured(capsys, text, *arguments).status == status


def test_allow_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from support.tcp_writer import Capture

    Path("nothing.pcap").write_bytes(Capture().pcap())
    assert configured(capsys, "", "nothing.pcap").status == 3
    assert configured(capsys, "allow-empty = true", "nothing.pcap").status == 0
    assert configured(capsys, "allow-empty = true", "--no-allow-empty", "nothing.pcap").status == 3


def test_what_is_ignored_is_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "ignore = ['L-CREDIT']"
    names = ["credit-overrun.pcap", "window-overrun.pcap"]
    reported = configured(capsys, text, *names)
    assert reported.status == 1
    assert "L-CREDIT" not in reported.out
    assert reported.lines[0] == (
        "credit-overrun.pcap: nothing else wrong found in 20 frames on 1 connection; 6 findings ignored"
    )
    assert reported.lines[-1] == "2 captures: 2 errors in 1 of them; 6 findings ignored"
    whole = json.loads(amqpscope(capsys, "check", "--format", "json", *names).out)
    assert [one["ignored"] for one in whole["captures"]] == [6, 0]
    assert {one["rule"] for one in whole["findings"]} == {"amqp10/S-WIN-IN"}
    lines = amqpscope(capsys, "check", "--format", "ndjson", *names)
    assert len(lines.lines) == 2
    assert lines.err == "amqpscope: credit-overrun.pcap: 6 findings ignored\n"
    for form in ("markdown", "junit", "sarif", "github"):
        written = amqpscope(capsys, "check", "--format", form, *names).out
        assert "6 findings ignored" in written, form
        assert "L-CREDIT" not in written, form


def test_no_diagnosis_counts_where_none_are_wanted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = DEMO.parent / "rules" / "diag" / "acks-missing" / "troubled.pcap"
    text = 'fail-on-diagnosis = ["acks-missing"]\nfail-on = "never"\n'
    result = configured(capsys, text, path)
    assert result.status == 1
    assert "diag/acks-missing" in result.out
    result = configured(capsys, text, "--no-diagnoses", path)
    assert result.status == 0
    assert "[diag/" not in result.out


def test_a_severity_that_is_set_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "[severity]\n'amqp10/S-WIN-*' = 'warning'\n"
    reported = configured(capsys, text, "window-overrun.pcap")
    assert reported.lines[0].startswith("window-overrun.pcap: 2 warnings in ")
    assert reported.out.count("    severity  warning by the configuration, error by the rule itself") == 1
    lines = amqpscope(capsys, "check", "--format", "ndjson", "window-overrun.pcap").lines
    assert [(one["severity"], one["overridden"]) for one in map(json.loads, lines)] == [
        ("warning", "error")
    ] * 2
    sentence = "The configuration makes it a warning, the rule makes it an error."
    for form, many in (("markdown", 2), ("junit", 2), ("sarif", 2), ("github", 2)):
        assert amqpscope(capsys, "check", "--format", form, "window-overrun.pcap").out.count(sentence) == many
    plain = amqpscope(capsys, "check", "--no-config", "--format", "ndjson", "window-overrun.pcap").lines
    assert [json.loads(line)["overridden"] for line in plain] == [None] * 2


def test_a_habit_stays_a_note(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whatever the rule weighs: that is for `profile` to say."""
    capture = Path(__file__).resolve().parents[2] / "captures" / "rabbitmq-frames-after-close.pcap"
    file = tmp_path / "x.toml"
    file.write_text("[severity]\nC-CLOSE-LAST = 'warning'\n")
    arguments = ["check", "--config", file, "--select", "C-CLOSE-LAST", "--format", "ndjson"]
    found = [json.loads(line) for line in amqpscope(capsys, *arguments, capture).lines]
    assert {one["severity"] for one in found if one["profile"]} == {"note"}
    file.write_text("profile = 'none'\n[severity]\nC-CLOSE-LAST = 'warning'\n")
    found = [json.loads(line) for line in amqpscope(capsys, *arguments, capture).lines]
    assert {(one["severity"], one["overridden"]) for one in found} == {("warning", "error")}


def test_how_it_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "x.pcap").write_bytes((folder / "credit-overrun.pcap").read_bytes())
    text = "format = 'ndjson'\noutput = ['text:report', 'report.md']\nmax-per-rule = 1\n"
    (folder / "below" / "amqpscope.toml").write_text(text)
    reported = amqpscope(capsys, "check", "--config", "below/amqpscope.toml", "credit-overrun.pcap")
    assert [json.loads(line)["rule"] for line in reported.lines] == ["amqp10/L-CREDIT"] * 6
    assert "and 5 more of amqp10/L-CREDIT" in (folder / "below" / "report").read_text()
    assert "And 5 more" in (folder / "below" / "report.md").read_text()
    reported = amqpscope(
        capsys,
        *("check", "--config", "below/amqpscope.toml", "--format", "text", "--max-per-rule", 4),
        *("-o", "mine.json", "credit-overrun.pcap"),
    )
    assert "and 2 more of amqp10/L-CREDIT" in reported.out
    assert (folder / "mine.json").exists()


def test_spec_and_profile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).resolve().parents[2]
    capture = root / "captures" / "rabbitmq-frames-after-close.pcap"

    def severities(*arguments: object) -> set[str]:
        lines = amqpscope(capsys, "check", "--format", "ndjson", *arguments, capture).lines
        return {json.loads(line)["severity"] for line in lines}

    Path("amqpscope.toml").write_text("profile = 'none'\nspec = 'csd01'\n")
    assert severities("--select", "C-CLOSE-LAST") == {"error"}
    assert severities("--select", "C-CLOSE-LAST", "--profile", "auto") == {"note"}
    shown = json.loads(amqpscope(capsys, "config", "show", "--format", "json").out)["settings"]
    assert (shown["spec"]["value"], shown["profile"]["value"]) == ("csd01", "none")


@pytest.mark.parametrize(
    ("text", "arguments", "reported"),
    [
        ("fail_on = 1", [], "amqpscope.toml, line 1: fail_on: there is no such key; did you mean fail-on?"),
        ("", ["--config", "none.toml"], "none.toml: No such file or directory"),
        ("", ["--config", "x", "--no-config"], "--config: cannot be combined with --no-config"),
        (
            "",
            ["--select", "L-CREDTI"],
            "--select L-CREDTI: there is no such rule; similar rules: amqp10/L-CREDIT",
        ),
        ("", ["--ignore", "note,errors"], "--ignore errors: there is no such rule; "),
        ("output = ['x.yaml']", [], "--output x.yaml: the suffix names no format"),
    ],
)
def test_what_is_wrong_is_one_line(
    text: str, arguments: list[str], reported: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[:1] == ["--config"] or "fail" in text:
        Path("amqpscope.toml").write_text(text)
        assert amqpscope(capsys, "config", "show", *arguments).err.startswith(f"amqpscope: {reported}")
    result = configured(capsys, text, "clean.pcap", *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"amqpscope: {reported}")
    assert result.err.count("\n") == 1


def test_hostile_words_in_it_are_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = configured(capsys, '"a\\u001b[31m\\n" = 1', "clean.pcap")
    assert result.status == 2
    assert result.err.startswith("amqpscope: amqpscope.toml")
    assert "a\\x1b[31m\\n: there is no such key" in result.err


def test_show_without_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "config", "show")
    assert result.status == 0
    assert result.lines[0].startswith("configuration: none, so all settings have their defaults (in /")
    assert {line.split()[-1] for line in result.lines[1:]} == {"default"}
    reported = json.loads(amqpscope(capsys, "config", "show", "--format", "json").out)
    assert reported["schema"] == "amqpscope/configuration/1"
    assert reported["file"] is None
    assert {one["from"] for one in reported["settings"].values()} == {"default"}
    # These two are shown by themselves.
    assert set(reported["settings"]) == set(KEYS) - {"severity", "allow"}
    assert reported["settings"]["fail-on"] == {"value": "error", "from": "default", "line": None}


def test_show_tells_all_but_a_baseline_that_is_not_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "amqpscope.toml").write_text('baseline = "known.json"\n')
    result = amqpscope(capsys, "config", "show")
    assert (result.status, result.err) == (2, "amqpscope: known.json: No such file or directory\n")
    assert "baseline known.json amqpscope.toml, line 1" in [" ".join(line.split()) for line in result.lines]


def test_show_has_the_limits_of_diagnoses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("amqpscope.toml").write_text(
        'tls-key = ["server.pem"]\n[diagnosis-limits]\n"credit-none.seconds" = 20\n', encoding="utf-8"
    )
    shown = [" ".join(line.split()) for line in amqpscope(capsys, "config", "show").lines]
    assert "diagnosis-limits credit-none.seconds = 20 amqpscope.toml, line 2" in shown
    assert "diagnoses true default" in shown
    assert any(line.startswith("tls-key ") and "server.pem amqpscope.toml, line 1" in line for line in shown)


def test_show_tells_where_it_is_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "below").mkdir()
    text = '[tool.amqpscope]\n\nstrict = true\nignore = ["note", "L-*"]\n\n[tool.amqpscope.severity]\n'
    (folder / "pyproject.toml").write_text(text + '"amqp10/S-*" = "warning"\n')
    shown = [" ".join(line.split()) for line in amqpscope(capsys, "config", "show").lines]
    assert shown[0] == "configuration: pyproject.toml"
    assert "strict true pyproject.toml, line 3" in shown
    assert "ignore note, L-* pyproject.toml, line 4" in shown
    assert "fail-on error default" in shown
    assert shown[-1].startswith("severity amqp10/S-* warning (") and shown[-1].endswith(", line 7")
    reported = json.loads(amqpscope(capsys, "config", "show", "--format", "json").out)
    assert reported["settings"]["ignore"] == {"value": ["note", "L-*"], "from": "file", "line": 4}
    (one,) = reported["severity"]
    assert (one["rule"], one["severity"], one["line"]) == ("amqp10/S-*", "warning", 7)
    assert amqpscope(capsys, "config", "show", "--no-config").lines[0].startswith("configuration: none")


ALLOW = """[[allow]]
rule = "S-WIN-IN"
reason = "they \\u001b[31mknow\\u202e"
expires = 2026-06-30
"""


def test_what_is_allowed_and_until_when(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpscope.cli.check.today", lambda: datetime.date(2026, 6, 30))
    reported = configured(capsys, ALLOW, "window-overrun.pcap", "clean.pcap")
    assert reported.status == 0
    assert reported.lines == [
        "window-overrun.pcap: nothing else wrong found in 17 frames on 1 connection; 2 findings allowed",
        "allowed: amqp10/S-WIN-IN by the client (2, first in packet 15): they \\x1b[31mknow\\u202e",
        "",
        "clean.pcap: nothing wrong found in 13 frames on 1 connection",
        "",
        "2 captures: nothing wrong found; 2 findings allowed",
    ]
    monkeypatch.setattr("amqpscope.cli.check.today", lambda: datetime.date(2026, 7, 1))
    reported = configured(capsys, ALLOW, "clean.pcap")
    assert reported.status == 1
    assert reported.lines[-1] == (
        "error config/ALLOW-EXPIRED in amqpscope.toml, line 1: entry 1 of the allow-list, for S-WIN-IN, "
        "expired on 2026-06-30 and excuses no findings any more (they \\x1b[31mknow\\u202e)"
    )
    assert configured(capsys, ALLOW, "clean.pcap", "missing.pcap").status == 2
    for form in ("json", "ndjson", "markdown", "junit", "sarif", "github"):
        result = amqpscope(capsys, "check", "--format", form, "clean.pcap")
        assert result.status == 1
        assert "config/ALLOW-EXPIRED" in result.out
        assert unprintable(result.out) == []


def test_show_tells_the_allow_list(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpscope.cli.config.today", lambda: datetime.date(2026, 7, 1))
    Path("amqpscope.toml").write_text(f"strict = true\n{ALLOW}container = ['a', 'b*']\n")
    shown = amqpscope(capsys, "config", "show").lines[-1]
    assert " ".join(shown.split()) == (
        "allow 1 S-WIN-IN, container a, b*: they \\x1b[31mknow\\u202e (expired on 2026-06-30) "
        "amqpscope.toml, line 2"
    )
    (one,) = json.loads(amqpscope(capsys, "config", "show", "--format", "json").out)["allow"]
    assert one == {
        "rule": ["S-WIN-IN"],
        "reason": "they \x1b[31mknow\u202e",
        "scope": {"container": ["a", "b*"]},
        "expires": "2026-06-30",
        "expired": True,
        "rules": 2,
        "line": 2,
    }


def test_show_escapes_what_it_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "\x1b[31m").mkdir()
    file = folder / "\x1b[31m" / "x.toml"
    file.write_text(
        'output = ["text:\\u001b]0;x\\u0007", "\\u202e.xml"]\nformat = "text"\n'
        '[[allow]]\nrule = "L-CREDIT"\nreason = "\\u001b[2J"\ncapture = "\\u009b1m"\n'
    )
    for form in ("text", "json"):
        result = amqpscope(capsys, "config", "show", "--config", file, "--format", form)
        assert result.status == 0
        assert unprintable(result.out) == []


def test_what_is_said_of_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("config/ALLOW-EXPIRED", "allow-expired"):
        result = amqpscope(capsys, "rules", "explain", given)
        assert result.status == 0
        assert result.lines[0] == "config/ALLOW-EXPIRED  error, about the configuration itself"
        assert "excused count again" in result.out
    page = amqpscope(capsys, "rules", "explain", "--format", "markdown", "config/ALLOW-UNUSED").out
    assert page.startswith("# config/ALLOW-UNUSED\n")
