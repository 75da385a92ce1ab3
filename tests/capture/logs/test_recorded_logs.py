"""Logs that real libraries printed, beside what was captured of the same connections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope as command
from support.judged import Trickle

import amqpscope

Captured = pytest.CaptureFixture[str]

FOLDER = Path(__file__).parent / "recorded"
OCTETS = ("proton-octets", "rhea-octets", "rhea-all", "rhea-server")
FIELDS = ("proton-frames", "proton-violating", "rhea-frames")
EXACT_FIELDS = ("proton-frames", "proton-violating")


def frames(capsys: Captured, path: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The frames of a file, by the order of their connection and by their sender."""
    done = command(capsys, "read", "--format", "ndjson", path)
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    order: dict[str, int] = {}
    for line in done.out.splitlines():
        frame = json.loads(line)
        number = order.setdefault(frame["connection"], len(order))
        found.setdefault((str(number), frame["peer"]), []).append(frame)
    return found


def findings(path: Path) -> list[tuple[str, str, bool]]:
    """Rule, peer and certainty of what is found in a file, without diagnoses."""
    return sorted((one.rule, one.peer, one.certain) for one in amqpscope.check(path))


def plain(value: object) -> object:
    """A value without the names of number types, which a log of fields does not hold."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in ("uint", "ulong", "ubyte", "ushort", "int", "long"):
            return next(iter(value.values()))
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", OCTETS)
def test_a_log_of_octets_gives_the_frames_that_were_captured(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, wire = (frames(capsys, FOLDER / f"{name}.{kind}") for kind in ("log", "pcapng"))
    assert log.keys() == wire.keys()
    for side, captured in wire.items():
        held = ("kind", "name", "channel", "size", "fields", "problems", "message", "payload")
        assert [[one.get(key) for key in held] for one in log[side]] == [
            [one.get(key) for key in held] for one in captured
        ]


@pytest.mark.parametrize("name", FIELDS)
def test_a_log_of_fields_gives_the_fields_that_were_captured(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, wire = (frames(capsys, FOLDER / f"{name}.{kind}") for kind in ("log", "pcapng"))
    for side, captured in wire.items():
        logged = log[side]
        # Proton stops reading, and logs nothing more, when it closes a connection after an error.
        assert [one["name"] for one in logged] == [one["name"] for one in captured][: len(logged)]
        assert len(logged) == len(captured) or name == "proton-violating"
        for one, other in zip(logged, captured, strict=False):
            assert (one["kind"], one["channel"], one["size"]) == (other["kind"], other["channel"], None)
            if name in EXACT_FIELDS:
                assert plain(one["fields"]) == plain(other["fields"])
                assert one["problems"] == []
            unknown = {problem["path"].split(".")[1] for problem in one["problems"]}
            for field in one["fields"].keys() - unknown:
                assert plain(one["fields"][field]) == plain(other["fields"][field])
            if one["kind"] != "header":
                assert other["fields"].keys() - one["fields"].keys() <= unknown | DEFAULTS


DEFAULTS = {"more", "settled", "drain", "echo", "aborted", "resume", "batchable", "incomplete-unsettled"}
"""Fields that rhea leaves out where they have the value that they have by default."""


@pytest.mark.parametrize("name", [*OCTETS, "proton-frames"])
def test_a_log_gives_the_findings_of_the_wire(name: str) -> None:
    assert findings(FOLDER / f"{name}.log") == findings(FOLDER / f"{name}.pcapng")
    assert findings(FOLDER / f"{name}.log")


@pytest.mark.parametrize("name", FIELDS)
def test_a_log_of_fields_accuses_nobody_whom_the_wire_does_not_accuse(name: str) -> None:
    certain = {(rule, peer) for rule, peer, sure in findings(FOLDER / f"{name}.log") if sure}
    assert certain <= {(rule, peer) for rule, peer, sure in findings(FOLDER / f"{name}.pcapng") if sure}


def test_the_fault_that_ended_a_connection_is_found_in_the_log() -> None:
    certain = [
        rule for rule, peer, sure in findings(FOLDER / "proton-violating.log") if peer == "server" and sure
    ]
    assert certain == ["amqp10/L-UNATTACHED-TRANSFER"]


@pytest.mark.parametrize("name", [*OCTETS, *FIELDS])
def test_the_same_log_in_small_pieces_says_the_same(name: str) -> None:
    octets = (FOLDER / f"{name}.log").read_bytes()

    def shown(source: Any) -> list[str]:
        with amqpscope.Capture(source, name="log") as capture:
            return [repr(record) for record in capture] + [note.detail for note in capture.notes]

    assert shown(Trickle(octets, [7, 1, 64])) == shown(Trickle(octets, [1 << 20]))


def test_the_commands_take_a_log(tmp_path: Path, capsys: Captured) -> None:
    log, wire = FOLDER / "proton-octets.log", FOLDER / "proton-octets.pcapng"
    checked = command(capsys, "check", log)
    assert checked.status == 1
    assert "a log of Qpid Proton" in checked.out + checked.err
    assert "client sends" in command(capsys, "summary", log).out
    assert "L-DC-UNSET" in command(capsys, "why", log, "46").out
    assert (
        "client must have read everything up to sasl-outcome"
        in command(capsys, "why", FOLDER / "proton-frames.log", "11").out
    )
    assert command(capsys, "diff", log, wire).status == 0
    page = tmp_path / "page.html"
    assert command(capsys, "draw", log, "-o", page).status == 0
    assert b"L-DC-UNSET" in page.read_bytes()


def test_a_summary_has_neither_sizes_nor_durations_that_the_log_does_not_have(capsys: Captured) -> None:
    summary = command(capsys, "summary", FOLDER / "proton-frames.log").out
    assert "answers to" not in summary
    given = json.loads(command(capsys, "summary", "--format", "json", FOLDER / "proton-frames.log").out)
    assert given["connections"][0]["octets"] == {"client": None, "server": None}
    assert "answers to" in command(capsys, "summary", FOLDER / "rhea-octets.log").out


@pytest.mark.parametrize("name", ["rhea-octets", "rhea-all", "proton-octets"])
def test_a_connection_that_broke_off_is_not_taken_for_the_next_one(name: str, tmp_path: Path) -> None:
    lines = (FOLDER / f"{name}.log").read_bytes().splitlines(True)
    broken = tmp_path / "reconnected.log"
    broken.write_bytes(b"".join(lines[: len(lines) * 3 // 4] + lines))
    accused = {one for one in findings(broken) if one[2]}
    assert accused <= set(findings(FOLDER / f"{name}.pcapng"))
    assert len({record.connection.id for record in amqpscope.read(broken)}) == 2
