"""Captures of many connections: what is shown about each, in which order, and what is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hostile.scenes import many_connections
from support.commands import amqpscope as command

import amqpscope
from amqpscope.cli import summary
from amqpscope.report import backlog, cases
from amqpscope.why import capture_ends

CAPTURES = sorted(Path(__file__).resolve().parents[2].joinpath("captures").glob("*.pcap*"))
MANY = 40


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.pcap"
    many_connections(path, MANY, faulty=True)
    return path


@pytest.mark.parametrize("path", CAPTURES[::4], ids=lambda path: path.stem)
def test_connections_that_are_over_are_all_connections(path: Path) -> None:
    with amqpscope.Capture(path) as capture:
        list(capture)
        kept = [(one.connection.id, int(one.connection.frames)) for one in capture.connections]
    ended = []
    with amqpscope.Capture(path, amqpscope.CaptureOptions(keep=False, ended=True)) as capture:
        for _ in capture.blocks():
            ended += capture.take_ended()
        assert capture.connections == []
    ended.sort(key=lambda one: one.order)
    assert [(one.connection.id, int(one.connection.frames)) for one in ended] == kept


@pytest.mark.parametrize("in_memory", [1, 1 << 20])
def test_every_form_tells_every_connection_in_order(
    many: Path, in_memory: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether texts wait in memory or in a file."""
    monkeypatch.setattr(backlog, "BACKLOG_OCTETS", in_memory)
    streams = list(range(MANY))
    reported = json.loads(command(capsys, "summary", "--format", "json", many).out)
    assert [one["tcp_stream"] for one in reported["connections"]] == streams
    text = command(capsys, "summary", many).out
    assert [int(number) for number in re.findall(r"^ +(\d+)  ", text, re.MULTILINE)] == streams
    assert text.startswith(f"{many}: {MANY} connections, {MANY} went wrong\n\n")
    checked = command(capsys, "check", "--format", "json", many)
    reported = json.loads(checked.out)
    assert [one["tcp_stream"] for one in reported["connections"]] == streams
    suites = ElementTree.fromstring(command(capsys, "check", "--format", "junit", many).out)
    (suite,) = suites.findall("testsuite")
    assert (suites.get("failures"), suite.get("failures"), checked.status) == (str(MANY), str(MANY), 1)
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names == [f"connection {n}: amqp10/P-OPEN-MAND by the client" for n in streams]
    # All attributes and children are counted as the elements say.
    assert int(suite.get("tests", 0)) == len(names)


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_report_for_people_says_how_many_findings_it_leaves_out(
    form: str, many: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cases, "MAX_SHOWN_FINDINGS", 10)
    text = command(capsys, "check", "--format", form, many).out
    assert f"{MANY - 10} more findings are counted only (--format ndjson has all)" in text
    assert f"{MANY} errors in " in text
    assert len(re.findall("a transfer on|in packet|OPEN-MAND", text)) < MANY * 2
    monkeypatch.setattr(cases, "MAX_SHOWN_FINDINGS", MANY)
    assert "counted only" not in command(capsys, "check", "--format", form, many).out


def test_further_findings_of_a_case_that_is_shown_are_counted_with_it(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "MAX_SHOWN_FINDINGS", 3)
    (first, second, *_) = amqpscope.check(many)
    kept = cases.Cases(2)
    for finding in [first, first, first, second, second, second, *list(amqpscope.check(many))[2:5]]:
        kept.add(finding)
    shown = [(one.finding, one.again, one.more) for _, of in kept.connections() for one in of]
    assert shown == [(first, False, 0), (first, True, 1), (second, False, 2)]
    assert kept.left_out == 3


def test_why_says_of_how_many_connections_it_does_not_tell(
    many: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(capture_ends, "MAX_ENDED_CONNECTIONS", 10)
    text = command(capsys, "why", "--end", many).out
    assert text.startswith(f"{many}: {MANY} connections\n")
    assert text.endswith(f"\nand {MANY - 10} connections more, not shown here (--connection shows one)\n")
    reported = json.loads(command(capsys, "why", "--end", "--format", "json", many).out)
    assert (len(reported["connections"]), reported["connections_not_told"]) == (10, MANY - 10)
    # The limit counts only those that were asked for.
    last = command(capsys, "why", "--end", "--connection", str(MANY - 1), many).out
    assert f"connection {MANY - 1} " in last and "not reported" not in last
    reported = json.loads(command(capsys, "why", "--end", "--connection", "3", "--format", "json", many).out)
    assert "connections_not_told" not in reported


def test_a_summary_keeps_few_of_many_that_went_wrong(
    many: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(summary, "MAX_SUMMARY_ROWS", 4)
    text = command(capsys, "summary", many).out
    assert text.startswith(f"{many}: {MANY} connections, {MANY} went wrong\n\n")
    assert [int(number) for number in re.findall(r"^ +(\d+)  ", text, re.MULTILINE)] == [0, 1, 2, 3]
