"""The forms of `amqpscope check` for machines: the same findings in all, whatever the wire says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import amqpscope, unprintable
from support.reports import (
    Reported,
    commands,
    junit_suites,
    markdown_blocks,
    reported_by_github,
    reported_by_json,
    reported_by_junit,
    reported_by_lines,
    reported_by_markdown,
    reported_by_objects,
    reported_by_sarif,
    sarif_path,
    sarif_run,
    sarif_text,
)
from support.sampling import share
from support.scripted import SCRIPTED
from support.tcp_writer import Capture

from amqpscope import errors
from amqpscope.report.printable import printable

ROOT = Path(__file__).resolve().parents[2]

SCRIPTED_FILES = [f"{name}.pcap" for name in SCRIPTED]

READERS: dict[str, Callable[[str], Counter[Reported]]] = {
    "json": reported_by_json,
    "ndjson": reported_by_lines,
    "markdown": reported_by_markdown,
    "junit": reported_by_junit,
    "sarif": reported_by_sarif,
    "github": reported_by_github,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / "empty.pcap").write_bytes(Capture().pcap())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_forms_hold_the_same_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a share of all captures that there are, in one run."""
    monkeypatch.chdir(ROOT)
    outputs = [f"--output={form}:{tmp_path / form}" for form in READERS]
    captures = share(sorted(Path("captures").rglob("*.pcap*")), 10, "all forms")
    result = amqpscope(capsys, "check", "--full", "--max-per-rule", 10**9, *outputs, *captures)
    assert result.status == 1
    reported = {form: reader((tmp_path / form).read_text()) for form, reader in READERS.items()}
    assert sum(reported["json"].values()) > len(captures) // 2
    for form in READERS:
        assert reported[form] == reported["json"], form


POLICY = """
ignore = ["note"]
[severity]
"amqp10/C-*" = "warning"
[[allow]]
rule = ["amqp10/L-*", "amqp091/*"]
reason = "| [x](y) ]]> \\u001b[31m ::error:: \\"quoted\\" `code`"
[[allow]]
rule = "*"
reason = "the old client"
container = "shop"
[[allow]]
rule = "S-WIN-IN"
reason = "gone"
expires = 2001-02-03
[[allow]]
rule = "T-UUID-4122"
reason = "never seen"
"""


def test_all_forms_hold_the_same_under_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is suppressed is in all that have a place for it, with the reason; the others count it."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "policy.toml").write_text(POLICY)
    outputs = [f"--output={form}:{tmp_path / form}" for form in [*READERS, "text"]]
    paths = [*Path("captures").glob("*.pcap"), "captures/rules/amqp10/L-CREDIT"]
    result = amqpscope(
        *(capsys, "check", "--full", "--config", tmp_path / "policy.toml", "--max-per-rule", 10**9),
        *(*outputs, *paths),
    )
    assert result.status == 1
    written = {form: (tmp_path / form).read_text() for form in [*READERS, "text"]}
    reported = {form: READERS[form](written[form]) for form in READERS}
    objects = json.loads(written["json"])["findings"]
    suppressed = [one for one in objects if one["suppressed"]]
    reasons = Counter(one["suppressed"]["reason"] for one in suppressed)
    assert len(reasons) == 2 and min(reasons.values()) > 5
    assert reported["ndjson"] == reported["sarif"] == reported["junit"] == reported["json"]
    assert reported["github"] == reported["markdown"] == reported["json"] - reported_by_objects(suppressed)
    assert [one for one in reported["json"] if one[2] == "config/ALLOW-EXPIRED"] == [
        ("error", True, "config/ALLOW-EXPIRED", "", 12, str(tmp_path / "policy.toml"), "")
    ]
    assert sum(one[2] == "config/ALLOW-UNUSED" for one in reported["json"]) == 1
    run = sarif_run(written["sarif"])
    assert Counter(
        sarif_text({"text": result["suppressions"][0]["justification"]})
        for result in run["results"]
        if result["suppressions"]
    ) == Counter(printable(one["suppressed"]["reason"]) for one in suppressed)
    assert written["junit"].count("It is allowed: ") == len(suppressed)
    hostile = printable(max(reasons, key=len))
    for form, lines in (
        ("text", written["text"].splitlines()),
        ("github", written["github"].splitlines()),
        ("markdown", [text for _, text in markdown_blocks(written["markdown"])]),
    ):
        counted = [line for line in lines if "allowed: " in line]
        numbers = [int(number) for line in counted for number in re.findall(r"\((\d+), first in", line)]
        assert sum(numbers) == len(suppressed), form
        ends = (
            ": the old client",
            hostile,
            hostile.replace("|", "\\x7c"),
            hostile.replace("|", "\\x7c") + "`",
        )
        assert all(line.endswith(ends) for line in counted), form


@pytest.mark.parametrize("form", READERS)
def test_a_file_holds_what_standard_output_would(
    form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = amqpscope(capsys, "check", "--format", form, *SCRIPTED_FILES)
    text = amqpscope(capsys, "check", *SCRIPTED_FILES)
    both = amqpscope(capsys, "check", "-o", f"{form}:report", *SCRIPTED_FILES)
    assert Path("report").read_text() == alone.out
    assert both.out == text.out
    assert both.status == text.status == alone.status == 1


def test_forms_by_the_names_of_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    amqpscope(capsys, "check", "-o", "a.JSON", "-o", "b.ndjson", "--output", "c.txt", "window-overrun.pcap")
    amqpscope(capsys, "check", "-o", "d.sarif", "-o", "e.xml", "-o", "f.md", "window-overrun.pcap")
    assert json.loads(Path("a.JSON").read_text())["findings"]
    assert len(Path("b.ndjson").read_text().splitlines()) == 2
    assert len(sarif_run(Path("d.sarif").read_text())["results"]) == 2
    assert len(junit_suites(Path("e.xml").read_text())) == 1
    assert Path("f.md").read_text().startswith("### window-overrun.pcap\n")
    assert Path("c.txt").read_text().startswith("window-overrun.pcap: 2 errors in ")


def test_text_in_a_file_has_no_colours(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    written = amqpscope(capsys, "check", "-o", "c.txt", "window-overrun.pcap").out
    assert "\x1b" in written
    assert unprintable(Path("c.txt").read_text()) == []


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("report", "the suffix names no format"),
        ("report.pcap", "the suffix names no format"),
        ("juint:report.xml", "no such format; did you mean junit? (a file of this name: ./juint:report.xml)"),
        ("nonsense:report.xml", "there is no such format"),
        ("json:", "must name a file"),
        ("json:-", "must name a file"),
        ("text:./window-overrun.pcap", "this run already reads or writes this file"),
        ("below/missing.json", "No such file or directory"),
    ],
)
def test_outputs_that_cannot_be(
    output: str, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path("window-overrun.pcap").read_bytes()
    result = amqpscope(capsys, "check", "-o", output, "window-overrun.pcap")
    assert result.status == 2
    assert reason in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""
    assert Path("window-overrun.pcap").read_bytes() == before


def test_no_two_outputs_in_one_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "-o", "a.json", "-o", "text:./a.json", "window-overrun.pcap")
    assert result.status == 2
    assert "this run already reads or writes this file" in result.err


def unread(*arguments: str, errors_too: bool = False) -> tuple[int, str]:
    """Status and standard error of a check whose standard output nobody reads. errors_too: nor the other."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": str(Path(errors.__file__).parents[1])}
    environment.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, "-m", "amqpscope", "check", *arguments]
    done = subprocess.run(
        command,
        stdout=writing,
        stderr=writing if errors_too else subprocess.PIPE,
        text=True,
        check=False,
        env=environment,
    )
    os.close(writing)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize(
    ("paths", "status"), [(["window-overrun.pcap"], 1), (["missing.pcap"], 2), (["empty.pcap"], 3)]
)
def test_the_status_holds_when_nobody_reads_standard_error_either(
    paths: list[str], status: int, folder: Path
) -> None:
    """As of `check FILES 2>&1 | head -1`."""
    assert unread(*paths, errors_too=True) == (status, "")
    assert unread("--format", "ndjson", *paths, errors_too=True) == (status, "")


def test_files_are_whole_when_nobody_reads_standard_output(folder: Path) -> None:
    outputs = [f"--output={form}:report-{form}" for form in READERS]
    assert unread("--max-per-rule=99", *outputs, *SCRIPTED_FILES) == (1, "")
    reported = [reader(Path(f"report-{form}").read_text()) for form, reader in READERS.items()]
    assert len(reported[0]) > 5 and all(one == reported[0] for one in reported)


@pytest.mark.parametrize("form", READERS)
def test_what_counts_counts_when_nobody_reads_it(form: str, folder: Path) -> None:
    assert unread("--format", form, "window-overrun.pcap") == (1, "")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_status_holds_when_nobody_reads_standard_output(form: str, folder: Path) -> None:
    """Also where all of it is written at the end."""
    status, said = unread("--format", form, "-o", "report.sarif", "missing.pcap", "missing.too")
    assert status == 2
    assert said.count("No such file or directory") == 2
    assert not sarif_run(Path("report.sarif").read_text())["invocations"][0]["executionSuccessful"]


def test_github_tells_what_could_not_be_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["clean.pcap", "missing.pcap", "empty.pcap"]
    result = amqpscope(capsys, "check", "--format", "github", *names)
    assert result.status == 2
    assert commands(result.out) == [
        (
            "error",
            {"file": "missing.pcap", "title": "not read, or not to its end"},
            "No such file or directory",
        ),
        (
            "error",
            {"file": "empty.pcap", "title": "nothing to check"},
            "no AMQP 1.0 or 0-9-1 to check: no TCP in it",
        ),
    ]
    assert "amqpscope: clean.pcap: nothing wrong found in " in result.out
    allowed = amqpscope(capsys, "check", "--allow-empty", "--format", "github", "empty.pcap")
    assert allowed.status == 0
    assert [name for name, _, _ in commands(allowed.out)] == ["notice"]


def test_github_escapes_what_has_a_meaning_to_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a,line=9::b%0A.pcap", "::error title=x::y.pcap", "##[error]z.pcap", "\n::warning::w.pcap"):
        Path(name).write_bytes(Path("window-overrun.pcap").read_bytes())
        result = amqpscope(capsys, "check", "--format", "github", name)
        found = commands(result.out)
        assert [(level, reported["line"]) for level, reported, _ in found] == [
            ("error", "15"),
            ("error", "16"),
        ]
        assert {reported["file"] for _, reported, _ in found} == {name.replace("\n", "\\n")}


def test_sarif_tells_what_could_not_be_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["clean.pcap", "missing.pcap", "empty.pcap", "lost.pcap"]
    run = sarif_run(amqpscope(capsys, "check", "--format", "sarif", *names).out)
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    reported = [
        (one["level"], sarif_path(one["locations"][0]["physicalLocation"]), sarif_text(one["message"])[:20])
        for one in invocation["toolExecutionNotifications"]
    ]
    assert reported == [
        ("error", "missing.pcap", "No such file or dire"),
        ("error", "empty.pcap", "no AMQP 1.0 or 0-9-1"),
        ("note", "lost.pcap", "capture/gap in packe"),
    ]
    assert run["results"]  # of lost.pcap
    allowed = sarif_run(amqpscope(capsys, "check", "--allow-empty", "--format", "sarif", "empty.pcap").out)
    (invocation,) = allowed["invocations"]
    assert invocation["executionSuccessful"]
    assert [one["level"] for one in invocation["toolExecutionNotifications"]] == ["note"]
    missing = sarif_run(amqpscope(capsys, "check", "--format", "sarif", "missing.pcap").out)
    assert not missing["invocations"][0]["executionSuccessful"]


def test_paths_in_sarif(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to where it was started, whatever was asked for; never out of it."""
    (folder / "below").mkdir()
    names = ["a:b.pcap", "per%41cent é?#.pcap", "[x](y){0}.pcap", "new\nline.pcap"]
    octets = (folder / "window-overrun.pcap").read_bytes()
    for name in names:
        (folder / name).write_bytes(octets)
    asked = [*names, str(folder / "window-overrun.pcap"), "./below/../clean.pcap", "below/../x.pcap"]
    Path("x.pcap").write_bytes(octets)
    run = sarif_run(amqpscope(capsys, "check", "--format", "sarif", *asked).out)
    paths = {sarif_path(one["locations"][0]["physicalLocation"]) for one in run["results"]}
    assert paths == {*names, "window-overrun.pcap", "x.pcap"}
    monkeypatch.chdir(folder / "below")
    run = sarif_run(amqpscope(capsys, "check", "--format", "sarif", "../x.pcap").out)
    assert sarif_path(run["results"][0]["locations"][0]["physicalLocation"]) == str(folder / "x.pcap")


def results(text: str) -> list[tuple[str, str, str]]:
    """Suite, name and result of each case: `passed`, or the name and the message of what it has."""
    found = []
    for suite in junit_suites(text):
        for case in suite.iter("testcase"):
            (result,) = case
            reported = "passed" if result.tag == "system-out" else f"{result.tag}: {result.get('message')}"
            found.append((suite.get("name"), case.get("name"), reported))
    return found


def test_junit_fails_for_what_the_status_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "window-overrun.pcap"
    case = "connection 0: amqp10/S-WIN-IN by the client"
    for arguments, status in (((), 1), (("--fail-on", "never"), 0)):
        result = amqpscope(capsys, "check", "--format", "junit", *arguments, name)
        assert result.status == status
        ((suite, reported, how),) = results(result.out)
        assert (suite, reported) == (name, case)
        if status:
            assert how.startswith("failure: error amqp10/S-WIN-IN by the client in packet 15: ")
            assert how.endswith(" (and 1 more)")
        else:
            assert how == "passed"
        assert sum(reported_by_junit(result.out).values()) == 2


def test_junit_tells_what_could_not_be_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["clean.pcap", "missing.pcap", "empty.pcap"]
    assert results(amqpscope(capsys, "check", "--format", "junit", *names).out) == [
        ("clean.pcap", "connection 0", "passed"),
        ("missing.pcap", "the file can be read to its end", "error: No such file or directory"),
        ("empty.pcap", "has AMQP to check", "error: no AMQP 1.0 or 0-9-1 to check: no TCP in it"),
    ]
    allowed = amqpscope(capsys, "check", "--format", "junit", "--allow-empty", "empty.pcap")
    ((_, _, how),) = results(allowed.out)
    assert how.startswith("skipped: no AMQP")
    assert allowed.status == 0


def test_junit_names_are_the_same_in_every_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither ports nor packets are in them, and a file's name is no package but for its folders."""
    (folder / "below").mkdir()
    (folder / "below" / "a.b.pcap").write_bytes((folder / "window-overrun.pcap").read_bytes())
    (suite,) = junit_suites(amqpscope(capsys, "check", "--format", "junit", "./below/a.b.pcap").out)
    (case,) = suite.iter("testcase")
    assert case.get("classname") == "_.below.a_b_pcap"
    assert suite.get("timestamp") == "2023-11-14T22:13:20"
    assert suite.find("system-out").text.startswith("2 errors in ")


def test_junit_counts_what_it_has_no_words_for(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amqpscope.report.junit.MAX_CASE_FINDINGS", 4)
    written = amqpscope(capsys, "check", "--format", "junit", "credit-overrun.pcap").out
    assert sum(reported_by_junit(written).values()) == 4
    assert "and 2 more\n" in written


def test_markdown_folds_what_repeats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = amqpscope(
        capsys, "check", "--format", "markdown", "--max-per-rule", 2, "credit-overrun.pcap"
    ).out
    cells = [text for kind, text in markdown_blocks(written) if kind == "td"]
    assert len(cells) == 8
    assert cells[-1].endswith(" And 4 more of this rule.")
    assert "4 more" not in cells[3]
    assert [text for kind, text in markdown_blocks(written) if kind == "paragraph"][-1].startswith(
        "amqp10/L-CREDIT: A sender must not start a new delivery while its link-credit is zero or below."
    )


def test_markdown_tells_what_could_not_be_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["clean.pcap", "missing.pcap", "empty.pcap", "lost.pcap"]
    written = amqpscope(capsys, "check", "--format", "markdown", *names).out
    reported = [text for kind, text in markdown_blocks(written) if kind in ("heading", "paragraph")]
    assert reported[0] == "clean.pcap"
    assert reported[1].startswith("nothing wrong found in ")
    assert reported[2:6] == [
        "missing.pcap",
        "nothing to check (No such file or directory)",
        "empty.pcap",
        "nothing to check (no AMQP 1.0 or 0-9-1 to check: no TCP in it)",
    ]
    assert any(text.startswith("note: capture/gap: packet 15: ") for text in reported)
    assert reported[-1].startswith("4 captures: ")
