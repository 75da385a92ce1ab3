"""The conversations in the April-2011 draft: what their README says of them, and what commands show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.all_outputs import failures, ways
from support.commands import amqpscope as amqpscope_run
from support.sampling import share

import amqpscope

FOLDER = Path(__file__).resolve().parents[2] / "captures" / "draft2011"
README = (FOLDER / "README.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+\.pcap)` \|.*\| ([^|]+) \|$", re.MULTILINE)
REPORTED = dict(ROW.findall(README))
STORY = FOLDER / "interoperability_test.pcap"
RECORDED = sorted(FOLDER.parent.glob("*.pcap*"))


def test_the_readme_lists_the_files_that_are_there() -> None:
    assert sorted(REPORTED) == sorted(path.name for path in FOLDER.glob("*.pcap"))


@pytest.mark.parametrize("name", REPORTED)
def test_check_reports_what_the_readme_says(name: str) -> None:
    with (FOLDER / name).open("rb") as file:
        found = [
            f"{one.rule.partition('/')[2]}, {one.peer}, packet {one.packet}" for one in amqpscope.check(file)
        ]
    assert found == ([] if REPORTED[name] == "nothing" else [REPORTED[name]])


@pytest.mark.parametrize("name", REPORTED)
def test_every_frame_is_the_drafts_and_well_formed(name: str) -> None:
    with (FOLDER / name).open("rb") as file:
        records = list(amqpscope.read(file))
    assert {record.connection.protocol for record in records} == {"amqp10-draft2011"}
    assert [record.frame.problems for record in records if record.frame.problems] == []


def test_the_story_is_what_check_writes(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope_run(capsys, "check", STORY)
    assert result.status == 1
    [quoted] = re.findall(r"^error amqp10-draft2011/.*$", README, re.MULTILINE)
    assert quoted in result.lines


SHOWN = {
    "interoperability_test": {
        6: "sasl-mechanisms PLAIN",
        11: "open        shop (early-client) hostname=broker.example",
        15: "attach      sender orders: q move → q handle=0 initial-transfer-count=0",
        17: "flow        q link-credit=5 transfer-count=0 link=orders incoming-window=2048@0 ",
        20: "disposition #0–#1 accepted settled q by receiver link=orders",
        21: "transfer    #2 q more 2026 octets in 3 fragments link=orders tag=0x00000002",
        27: "detach      q (orders) amqp:invalid-field closed",
    },
    "open_to_close": {6: 'open        client hostname=broker.example options={x-trial="1"}'},
    "disposition_ranges": {
        24: "disposition #2 rejected amqp:precondition-failed settled q by receiver",
        26: "disposition #3–#8 settled q by sender",
    },
    "resumed_by_octets": {17: "disposition #0 transfer-state(bytes-transferred=2000) q by receiver"},
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_timeline_is_as_brief_as_that_of_the_final(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope_run(capsys, "read", FOLDER / f"{name}.pcap").lines
    for packet, text in SHOWN[name].items():
        [line] = [one for one in lines if one.startswith(f"{packet:>5} ")]
        assert f" {text}" in line


def test_summary(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope_run(capsys, "summary", "--format", "json", STORY)
    [connection] = json.loads(result.out)["connections"]
    assert connection["protocol"] == "amqp10-draft2011"
    assert connection["sasl"] == {"mechanism": "PLAIN", "outcome": "ok"}
    assert connection["containers"] == {"client": "shop", "server": "broker"}
    assert connection["products"] == {"client": "early-client", "server": "early-broker"}
    assert (connection["sessions"], connection["messages"]) == (1, {"client": 3, "server": 0})
    assert connection["closed_in_packet"] == {"client": 29, "server": 30}
    [link] = connection["links"]
    assert (link["name"], link["transfers"], link["messages"]) == ("orders", 5, 3)
    [error] = connection["errors"]
    assert (error["packet"], error["condition"]) == (27, "amqp:invalid-field")


def test_why_a_packet(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope_run(capsys, "why", STORY, 25)
    for expected in (
        "link credit 5 from transfer-count 0 on",
        "packet 23, transfer: the previous transfer on the link",
        "the link is detached with an error",
    ):
        assert expected in result.out


def test_why_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope_run(capsys, "why", "--end", STORY)
    expected = "because  the correct answer to this fault: error amqp10-draft2011/M-FRAG-OFFSET by the client"
    assert expected in result.out


def test_diff_names_what_is_different(capsys: pytest.CaptureFixture[str]) -> None:
    assert amqpscope_run(capsys, "diff", STORY, STORY).status == 0
    one, other = FOLDER / "open_to_close.pcap", FOLDER / "disposition_ranges.pcap"
    result = amqpscope_run(capsys, "diff", "--all", one, other)
    assert result.status == 1
    assert "rejected" in result.out


def test_every_command_takes_them() -> None:
    for path in sorted(FOLDER.glob("*.pcap")):
        known = ways(path, [11, 25])
        chosen = share(known, 20, path.name)
        assert failures([way() for way in chosen]) == [], path.name


@pytest.mark.parametrize("path", share(RECORDED, 5, "not the draft"), ids=lambda path: str(path.name))
def test_no_recorded_capture_is_taken_for_the_draft(path: Path) -> None:
    with path.open("rb") as file:
        assert [record.packet for record in amqpscope.read(file) if record.frame.dialect] == []


def test_a_finding_names_the_draft_as_its_edition(capsys: pytest.CaptureFixture[str]) -> None:
    [found] = map(json.loads, amqpscope_run(capsys, "check", "--format", "ndjson", STORY).lines)
    assert (found["rule"], found["edition"]) == ("amqp10-draft2011/M-FRAG-OFFSET", "draft2011")


def test_why_and_check_call_a_delivery_a_transfer(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope_run(capsys, "why", STORY, "20").lines
    assert "  grants      transfer-id 1, the last in the disposition (arrived, perhaps not read)" in lines
    [where] = [one for one in amqpscope_run(capsys, "check", STORY).lines if one.startswith("    where ")]
    assert "transfer 2" in where and "delivery" not in where
