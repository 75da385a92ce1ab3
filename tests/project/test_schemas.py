"""The published schemas fit what the commands write, and nothing is written that they do not name."""

from __future__ import annotations

import copy
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from support.closed_schemas import closed, validator

from amqpscope.cli.main import run
from amqpscope.model.tls_facts import Certificate, TlsAlert, TlsFacts
from amqpscope.model.websocket_facts import WebSocketClose, WebSocketFacts
from amqpscope.report.tls import tls_object
from amqpscope.report.websocket import websocket_object
from amqpscope.schemas import schema
from amqpscope.schemas.__main__ import main
from amqpscope.schemas.declared import SCHEMAS

ROOT = Path(__file__).parents[2]
CAPTURES = [
    "captures/demo.pcap",
    "captures/rhea-transfer-before-attach.pcap",
    "captures/pika-connection-errors.pcap",
]
COMMANDS = [
    *(f"{command} --format json {capture}" for capture in CAPTURES for command in ("check", "summary --all")),
    *(f"read --bodies --format json {capture}" for capture in CAPTURES),
    *(f"why --end --format json {capture}" for capture in CAPTURES),
    "check --format json captures/pika-two-threads.pcap captures/README.md",
    "why --format json captures/rhea-transfer-before-attach.pcap 17",
    "why --format json captures/rhea-transfer-before-attach.pcap 20",
    "why --format json captures/pika-connection-errors.pcap 16",
    "diff --all --format json captures/proton-anonymous.pcap captures/rabbitmq-proton.pcap",
    "diff --all --format json captures/pika-late-ack.pcap captures/pika-cancelled.pcap",
    "read --count --format json captures/demo.pcap",
    "rules list --format json",
    "rules profiles --format json",
    "config show --format json",
    "config show --format json --config {folder}/amqpscope.toml",
    "check --format json --config {folder}/amqpscope.toml captures/rhea-transfer-before-attach.pcap",
]
CONFIGURATION = """
[severity]
L-DC-UNSET = "warning"
[[allow]]
rule = "L-UNATTACHED-TRANSFER"
reason = "known"
peer = "server"
expires = 2099-01-31
"""


def printed(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(ROOT)
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        run(command.replace("{folder}", str(folder)).split())
    return output.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_fits_its_schema(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "amqpscope.toml").write_text(CONFIGURATION)
    written = json.loads(printed(command, tmp_path, monkeypatch))
    family, name, number = written["schema"].split("/")
    assert (family, number) == ("amqpscope", "1")
    assert [error.message for error in validator(name).iter_errors(written)] == []


@pytest.mark.parametrize(("command", "part"), [("read", "frame"), ("check", "finding")])
def test_a_line_fits_its_schema(
    command: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(f"{command} --format ndjson {CAPTURES[1]}", tmp_path, monkeypatch).splitlines()
    assert lines
    for line in lines:
        validator(f"{part}s", part).validate(json.loads(line))


def test_a_line_of_a_watch_fits_the_schemas() -> None:
    with (ROOT / CAPTURES[1]).open("rb") as capture:
        done = subprocess.run(
            [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", "--format", "ndjson"],
            stdin=capture, capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
    written = [json.loads(line) for line in done.stdout.splitlines()]
    assert any("rule" in one for one in written) and any("fields" in one for one in written)
    for one in written:
        if len(one) > 1:
            part = "finding" if "rule" in one else "frame"
            validator(f"{part}s", part).validate(one)


def test_a_baseline_fits_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "baseline.json"
    printed(f"check --write-baseline {file} {CAPTURES[1]}", tmp_path, monkeypatch)
    validator("baseline").validate(json.loads(file.read_text()))


def test_what_does_not_fit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(printed(f"check --format json {CAPTURES[1]}", tmp_path, monkeypatch))
    for change in ({"new": 1}, {"packet": "12"}, {"severity": "fatal"}, {"link": {"name": "x"}}):
        spoilt = copy.deepcopy(whole)
        spoilt["findings"][0].update(change)
        assert not validator("findings").is_valid(spoilt), change
    del whole["findings"][0]["rule"]
    assert not validator("findings").is_valid(whole)


def test_what_layers_report_fits_the_schema() -> None:
    tls = TlsFacts()
    tls.server_certificate = Certificate("CN=broker", "CN=broker", ["broker.example"], 0, 253402300799)
    tls.alerts.append(TlsAlert(0, True, "unknown_ca", 7, 0))
    websocket = WebSocketFacts()
    websocket.offered.append("amqp")
    websocket.closes.append(WebSocketClose(1, 1000, 9))
    connection: Any = SimpleNamespace(tls=tls, websocket=websocket, peer=("client", "server").__getitem__)
    fields = closed(schema("summary"))["properties"]["connections"]["items"]["properties"]
    for name, written in {"tls": tls_object(connection), "websocket": websocket_object(connection)}.items():
        check = jsonschema.Draft202012Validator(fields[name])
        assert check.is_valid(written) and check.is_valid(None)
        assert written is not None and not check.is_valid({**written, "new": 1})


def test_every_object_has_its_schema() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "amqpscope").rglob("*.py"))
    assert set(re.findall(r'"amqpscope/([a-z-]+)/1', sources)) == set(SCHEMAS)
    for name in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schema(name))


def test_the_files_are_written() -> None:
    assert main(["--check"]) == 0


def test_the_tables_of_the_documentation_have_every_field() -> None:
    page = (ROOT / "docs/reference/json.md").read_text()
    for part in ("frame", "finding"):
        fields = schema(f"{part}s")["$defs"][part]["properties"]
        assert [field for field in fields if f"`{field}`" not in page and f'"{field}"' not in page] == []
