"""`check` by weight: what is shown, what is only counted, and what filters leave out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.busy_night import busy_night
from support.commands import amqpscope
from support.dialogue import Dialogue

from amqpscope.cli.matched import MatchedFrames
from amqpscope.cli.selection import Selection
from amqpscope.policy.judging import judge
from amqpscope.policy.policy import Policy

SEVERAL = 12


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("night") / "night.pcap"
    path.write_bytes(busy_night(most=2))
    return path


@pytest.fixture
def folder(night: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(night.parent)
    return night.parent


def headlines(text: str) -> list[str]:
    """The findings that are shown, and not only counted, without their messages."""
    return [
        line.split(" in packet ")[0]
        for line in text.splitlines()
        if " in packet " in line and " by the " in line
    ]


def test_certain_errors_come_first_then_warnings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert headlines(amqpscope(capsys, "check", "night.pcap").out) == [
        "error amqp091/F-CONTENT-HEADER-NEXT by the client",
        "error amqp091/F-HEADER-ORPHAN by the client",
        "error amqp091/C-CLOSE-HANDSHAKE by the client",
        "error amqp10/L-UNATTACHED-TRANSFER by the client",
        "warning amqp091/C-HB-SEND by the client",
    ]


def test_the_tally_has_every_rule_once_and_what_to_do_next(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = amqpscope(capsys, "check", "--quiet", "night.pcap").lines
    assert not headlines("\n".join(lines))
    (head,) = [at for at, line in enumerate(lines) if line.startswith("severity ")]
    rows = lines[head + 1 : head + 1 + SEVERAL]
    assert [row.split()[0] for row in rows[:5]] == ["error"] * 4 + ["warning"]
    folded = "possible error amqp10/S-LINK-ONE client 2 430 8 shop (rhea-shop)"
    assert folded.split() in map(str.split, rows)
    # The three notes of every connection with pika and RabbitMQ are one line.
    assert sum(row.startswith("note ") for row in rows) == 1
    assert lines[head + 1 + SEVERAL] == "next: amqpscope why night.pcap 969"


@pytest.mark.parametrize(
    ("option", "shown"),
    [("--possible", "possible error amqp10/S-LINK-ONE"), ("--notes", "note amqp091/T-RESERVED-CONN")],
)
def test_what_is_counted_can_be_opened(
    option: str, shown: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = amqpscope(capsys, "check", "night.pcap")
    assert f"{shown} by the client" not in headlines(closed.out)
    assert closed.lines[-1] == "--possible and --notes show what is only counted here"
    opened = amqpscope(capsys, "check", "--full", option, "night.pcap")
    assert f"{shown} by the client" in headlines(opened.out)
    assert opened.status == closed.status == 1


def test_what_decides_the_exit_status_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = headlines(amqpscope(capsys, "check", "--strict", "--full", "night.pcap").out)
    assert "possible error amqp10/S-LINK-ONE by the client" in shown
    assert not [line for line in shown if line.startswith("note")]


FILTERS = [
    (["--connection", "18"], {18}, 1),
    (["--connection", "20"], {20}, 0),
    (["--from", "1023", "--to", "1030"], {19}, 1),
    (["--link", "no such link"], set(), 2),
]


@pytest.mark.parametrize(("options", "connections", "status"), FILTERS)
def test_filters_leave_out_in_every_form_and_decide_the_status(
    options: list[str],
    connections: set[int],
    status: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    everything = json.loads(amqpscope(capsys, "check", "--format", "json", "night.pcap").out)
    numbers = {one["connection"]: one["tcp_stream"] for one in everything["connections"]}
    result = amqpscope(capsys, "check", "--format", "ndjson", "--certain", *options, "night.pcap")
    found = [json.loads(line) for line in result.lines]
    errors = [one for one in found if one["severity"] != "note"]
    assert {numbers[one["connection"]] for one in errors} == connections
    assert result.status == status
    text = amqpscope(capsys, "check", *options, "night.pcap")
    assert text.lines[0].endswith(f"; only {' '.join(options)}".replace("no such link", "'no such link'"))
    assert text.status == status


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["check", "--format", "ndjson"],
        ["read"],
        ["read", "--count"],
        ["read", "--format", "json"],
        ["read", "--format", "ndjson"],
        ["summary"],
        ["summary", "--format", "json"],
    ],
    ids=" ".join,
)
def test_notes_about_other_connections_stay_out(
    command: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = amqpscope(capsys, *command, "night.pcap")
    assert "capture/duplicate" in everything.out + everything.err
    result = amqpscope(capsys, *command, "--connection", "18", "night.pcap")
    assert "capture/duplicate" not in result.out + result.err


def test_a_baseline_of_a_part_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "--write-baseline", "b.json", "--connection", "18", "night.pcap")
    assert result.status == 2
    assert "--write-baseline: cannot be combined with --connection" in result.err


def test_a_part_says_nothing_of_what_a_baseline_misses(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert amqpscope(capsys, "check", "--write-baseline", "known.json", "night.pcap").status == 0
    result = amqpscope(capsys, "check", "--baseline", "known.json", "--connection", "20", "night.pcap")
    assert "fixed:" not in result.out


@pytest.mark.parametrize("options", [["--link", "?*"], ["--address", "?*"]])
def test_findings_are_chosen_by_link_and_by_address(
    options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = amqpscope(capsys, "check", "--format", "ndjson", "night.pcap").lines
    chosen = amqpscope(capsys, "check", "--format", "ndjson", *options, "night.pcap").lines
    assert set() < set(chosen) < set(lines)
    assert {json.loads(line)["rule"] for line in chosen} >= {"amqp10/L-CLOSE-ANSWER"}


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
@pytest.mark.parametrize(
    "options",
    [["--link", "no link"], ["--address", "no such address"], ["--from", "99999"], ["--from", "+99999"]],
)
def test_filters_that_nothing_matches_are_a_failure(
    options: list[str], jobs: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "check", *options, *jobs, "night.pcap")
    assert result.status == 2
    assert result.err.startswith("amqpscope: night.pcap: no frame of ")
    assert f" matches {options[0]} " in result.err


def test_no_connection_is_kept_while_a_match_is_searched_for(folder: Path) -> None:
    selection = Selection(link="no such link")
    matched = MatchedFrames(selection)
    judge(["night.pcap"], Policy(), hearer=matched, wanted=selection)
    assert matched.seen > 900
    assert not matched.met
    assert not matched._names._connections


def test_a_filter_has_to_match_in_one_of_several_captures(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dialogue = Dialogue()
    dialogue.linked()
    other = tmp_path / "other.pcap"
    other.write_bytes(dialogue.pcap())
    result = amqpscope(capsys, "check", "--link", "q", "--connection", "0", other, "night.pcap")
    assert (result.status, result.err) == (0, "")


def test_a_connection_that_is_not_there_is_a_failure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "check", "--connection", "9999", "night.pcap")
    assert result.status == 2
    assert result.err == "amqpscope: night.pcap: no connection 9999 (there are 0 to 20)\n"
