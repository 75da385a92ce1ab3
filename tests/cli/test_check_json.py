"""The contract of `amqpscope check --format json` and `ndjson`: every field, its type, when it is null."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.scripted import SCRIPTED
from support.tcp_writer import Capture

from amqpscope.rules.catalogue import catalogue

FIELDS = [
    *("rule", "severity", "certainty", "requirement", "message", "spec", "references", "edition", "profile"),
    *("capture", "packet", "time", "packets", "connection", "protocol", "peer"),
    *("channel", "session", "link", "delivery_id", "expected_condition", "reaction"),
    *("evidence", "fingerprint", "overridden", "suppressed"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(capsys: pytest.CaptureFixture[str], *paths: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in amqpscope(capsys, "check", "--format", "ndjson", *paths).lines]


def test_every_field_has_its_type(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: dict[str, set[type]] = {name: set() for name in FIELDS}
    everything = findings(capsys, *(f"{name}.pcap" for name in SCRIPTED))
    assert len(everything) > 10
    for finding in everything:
        assert list(finding) == FIELDS
        for name, value in finding.items():
            seen[name].add(type(value))
        row = catalogue()[finding["rule"]]
        assert finding["requirement"] == row.requirement
        assert finding["references"]
        assert finding["spec"] == "; ".join(one["text"] for one in finding["references"])
        assert not re.search(r"\w\.xml|\b[A-Z]+:|section [a-z]+ >", finding["spec"])
        for one in finding["references"]:
            assert one["address"].startswith("https://"), finding["rule"]
        assert finding["severity"] in ("error", "warning", "note")
        assert finding["certainty"] in ("certain", "possible")
        assert finding["edition"] == "final"
        assert finding["peer"] in ("client", "server")
        assert finding["protocol"] == "amqp10"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", finding["time"])
        assert re.fullmatch(r"[0-9a-f]{16}", finding["fingerprint"])
        assert finding["packets"][0] == {"capture": finding["capture"], "packet": finding["packet"]}
        assert len({packet["packet"] for packet in finding["packets"]}) == len(finding["packets"])
        for packet in finding["packets"]:
            assert list(packet) == ["capture", "packet"]
            assert packet["packet"] > 0
        if finding["link"] is not None:
            assert list(finding["link"]) == ["name", "sender"]
            assert finding["link"]["sender"] in ("client", "server")
        if finding["reaction"] is not None:
            assert list(finding["reaction"]) == ["frame", "condition", "after_seconds", "packet"]
        for name, value in finding["evidence"].items():
            assert re.fullmatch(r"[a-z][a-z_]*", name)
            assert isinstance(value, (int, str, list))
    none = type(None)
    assert seen == {
        **{name: {str} for name in FIELDS},
        "profile": {none},
        "references": {list},
        "packet": {int},
        "packets": {list},
        "channel": {int, none},
        "session": {int, none},
        "link": {dict, none},
        "delivery_id": {int, none},
        "expected_condition": {str, none},
        "reaction": {dict, none},
        "evidence": {dict},
        "overridden": {type(None)},
        "suppressed": {type(None)},
    }


def test_one_finding_by_hand(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = findings(capsys, "window-overrun.pcap")
    fingerprint = first.pop("fingerprint")
    assert first.pop("message")
    assert first.pop("spec").startswith("AMQP 1.0, Part 2: Transport, 2.5.6 Session Flow Control")
    assert first.pop("references")[0]["address"].startswith(
        "https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-transport-v1.0-os.html#"
    )
    assert {"capture": "window-overrun.pcap", "packet": 15} in first.pop("packets")
    link = first.pop("link")
    assert link is None or link == {"name": "q", "sender": "client"}
    assert first == {
        "rule": "amqp10/S-WIN-IN",
        "severity": "error",
        "certainty": "certain",
        "requirement": "MUST NOT",
        "edition": "final",
        "profile": None,
        "capture": "window-overrun.pcap",
        "packet": 15,
        "time": "2023-11-14T22:13:20.014000000Z",
        "connection": "10.0.0.1:51034>10.0.0.2:5672#0",
        "protocol": "amqp10",
        "peer": "client",
        "channel": 0,
        "session": 0,
        "delivery_id": 1,
        "expected_condition": "amqp:session:window-violation",
        "reaction": {
            "frame": "end",
            "condition": "amqp:session:window-violation",
            "after_seconds": 0.002,
            "packet": 17,
        },
        "evidence": {"next_outgoing_id": 1, "remote_incoming_window": 0},
        "overridden": None,
        "suppressed": None,
    }
    assert second["packet"] == 16
    assert second["fingerprint"] == fingerprint


def test_the_forms_hold_the_same_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [f"{name}.pcap" for name in SCRIPTED]
    lines = findings(capsys, *paths)
    whole = json.loads(amqpscope(capsys, "check", "--format", "json", *paths).out)
    assert whole["findings"] == lines
    text = amqpscope(capsys, "check", "--possible", "--notes", "--max-per-rule", "1000", *paths).out
    heads = re.findall(r"^((?:possible )?\w+ amqp10/\S+) by the (\w+) in packet (\d+): ", text, re.MULTILINE)
    expected = [
        (
            f"{'possible ' * (finding['certainty'] == 'possible')}{finding['severity']} {finding['rule']}",
            finding["peer"],
            str(finding["packet"]),
        )
        for finding in lines
    ]
    assert sorted(heads) == sorted(expected)


def test_text_folds_what_repeats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for most in (1, 2, 5, 6, 7):
        text = amqpscope(capsys, "check", "--max-per-rule", most, "credit-overrun.pcap").out
        assert text.count("error amqp10/L-CREDIT by the client") == min(most, 6)
        # What the rule demands is said once.
        assert text.count("    rule      ") == 1
        assert (f"and {6 - most} more of amqp10/L-CREDIT by the client" in text) == (most < 6)
        assert text.startswith("credit-overrun.pcap: 6 errors in ")


def test_the_object_around_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    http = Capture()
    tcp = http.connection()
    tcp.handshake()
    tcp.client.send(b"GET / HTTP/1.1\r\n\r\n")
    (folder / "http.pcap").write_bytes(http.pcap())
    clean = (folder / "clean.pcap").read_bytes()
    (folder / "cut.pcap").write_bytes(clean[:-10])
    names = ["clean.pcap", "missing.pcap", "lost.pcap", "http.pcap", "cut.pcap"]
    result = amqpscope(capsys, "check", "--format", "json", *names)
    whole = json.loads(result.out)
    assert list(whole) == ["schema", "findings", "connections", "diagnoses", "captures", "fixed"]
    assert whole["schema"] == "amqpscope/findings/1"
    captures = {each["capture"]: each for each in whole["captures"]}
    assert list(captures) == names
    for each in captures.values():
        assert list(each) == ["capture", "size", "status", "reason", "protocols", "ignored", "notes"]
    assert captures["clean.pcap"] == {
        "capture": "clean.pcap",
        "size": len(clean),
        "status": "ok",
        "reason": None,
        "protocols": {"amqp10": 1},
        "ignored": 0,
        "notes": [],
    }
    assert captures["missing.pcap"] == {
        "capture": "missing.pcap",
        "size": None,
        "status": "unreadable",
        "reason": "No such file or directory",
        "protocols": {},
        "ignored": 0,
        "notes": [],
    }
    assert captures["http.pcap"]["protocols"] == {"http": 1}
    assert captures["cut.pcap"]["status"] == "partial"
    assert captures["cut.pcap"]["reason"].startswith("capture/truncated: ")
    (note,) = captures["lost.pcap"]["notes"]
    assert captures["lost.pcap"]["status"] == "ok"
    assert note == {
        "code": "capture/gap",
        "severity": "note",
        "packet": 15,
        "connection": "10.0.0.1:51034>10.0.0.2:5672#0",
        "detail": note["detail"],
    }
    # Connections that said nothing that could be judged are not among them.
    assert [each["capture"] for each in whole["connections"]] == ["clean.pcap", "lost.pcap", "cut.pcap"]
    assert {each["connection"] for each in whole["connections"]} == {"10.0.0.1:51034>10.0.0.2:5672#0"}
    assert whole["connections"][1]["missing"] == {"client": 34, "server": 0}


def test_notes_are_no_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In ndjson they stand on standard error; and they do not count."""
    Path("gap.pcap").write_bytes(gap_only())
    result = amqpscope(capsys, "check", "--format", "ndjson", "--fail-on", "note", "gap.pcap")
    assert result.out == ""
    assert result.err.startswith("amqpscope: gap.pcap: capture/gap: packet ")
    assert result.status == 0


def gap_only() -> bytes:
    d = Dialogue()
    d.linked(credit=3)
    with d.missed():
        d.client.transfer()
    d.client.transfer()
    d.goodbye()
    return d.pcap()


def test_no_findings_at_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert amqpscope(capsys, "check", "--format", "ndjson", "clean.pcap").out == ""
    assert json.loads(amqpscope(capsys, "check", "--format", "json", "clean.pcap").out)["findings"] == []
    missing = amqpscope(capsys, "check", "--format", "json", "missing.pcap")
    assert [each["status"] for each in json.loads(missing.out)["captures"]] == ["unreadable"]


def overrun(port: int, link: str, wait: float) -> Dialogue:
    d = Dialogue(client=f"10.9.8.7:{port}")
    d.wait(seconds=wait)
    d.begun()
    d.client.attach(name=link)
    d.server.attach(amqp.RECEIVER, name=link)
    d.server.flow(handle=0, link_credit=0)
    d.client.transfer()
    d.goodbye()
    return d


def test_fingerprints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same over ports, times and names made up for a run; another one for another link."""

    def of(port: int, link: str, wait: float = 0) -> str:
        Path("x.pcap").write_bytes(overrun(port, link, wait).pcap())
        (finding,) = findings(capsys, "x.pcap")
        assert finding["link"] == {"name": link, "sender": "client"}
        return str(finding["fingerprint"])

    first = of(50000, "orders-be51a9b4-21a5-4cf4-9a8e-2ef6d3b5c6a7")
    assert of(50001, "orders-00000000-21a5-4cf4-9a8e-2ef6d3b5c6a8", 3.5) == first
    assert of(50000, "orders") != first
    assert of(50000, "returns") != of(50000, "orders")
    assert of(50000, "link-17") == of(50000, "link-4711")


def test_keys_of_maps_are_not_reported_where_they_may_be_secret(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stand in the path of what is malformed below them."""
    bad = amqp.string(b"\xff")
    d = Dialogue()
    d.linked()
    d.client.transfer(amqp.application_properties([(amqp.string("my-key"), bad)]) + amqp.amqp_value("x"))
    d.goodbye()
    Path("x.pcap").write_bytes(d.pcap())
    for form in ("text", "json", "ndjson"):
        written = amqpscope(capsys, "check", "--format", form, "x.pcap").out
        assert "amqp10/T-STR-UTF8" in written
        assert "application-properties[" in written
        assert "my-key" not in written


class Live(io.BytesIO):
    """A capture of which no more comes for the time being: then it is looked what was written so far."""

    def __init__(self, octets: bytes, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(octets)
        self.capsys = capsys
        self.written = ""

    def read1(self, size: int | None = -1, /) -> bytes:
        block = super().read1(size)
        if not block:
            self.written = self.capsys.readouterr().out
        return block


@pytest.mark.parametrize(("form", "written"), [("ndjson", 2), ("json", 2), ("text", 0)])
def test_findings_are_written_as_they_come(
    form: str,
    written: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a live capture they are seen while it runs. Text is by connection, at the end."""
    live = Live((folder / "window-overrun.pcap").read_bytes(), capsys)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=live))
    rest = amqpscope(capsys, "check", "--format", form, "-").out
    assert live.written.count("amqp10/S-WIN-IN") == written
    assert (live.written + rest).count("amqp10/S-WIN-IN") == 2
    if form == "ndjson":
        assert live.written.endswith("}\n")
        assert rest == ""
