"""`amqpscope pipeline`: statuses, what is said, queries, and what comes off the wire on a terminal."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from support.closed_schemas import validator
from support.commands import amqpscope
from support.lakes import CAPTURES
from support.scripted import SCRIPTED

from amqpscope.pipeline import session
from amqpscope.pipeline.lake import Lake


def run(capsys: Any, *arguments: object) -> Any:
    quiet = ["--quiet"] if arguments[0] == "run" else []  # progress is reported after some seconds
    return amqpscope(capsys, "pipeline", *arguments, *quiet)


def test_statuses(lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    clean = tmp_path / "clean.pcap"
    clean.write_bytes(SCRIPTED["clean"]().pcap())
    result = run(capsys, "run", clean, "--out", lake)
    assert (result.status, result.err) == (0, "")
    assert "nothing wrong found" in result.out and "1 file: 1 read" in result.out

    result = run(capsys, "run", clean, CAPTURES / "rhea-transfer-before-attach.pcap", "--out", lake)
    assert result.status == 1 and "errors" in result.out
    result = run(
        capsys, "run", CAPTURES / "rhea-transfer-before-attach.pcap", "--out", lake, "--fail-on", "never"
    )
    assert result.status == 0

    skipped = tmp_path / "skipped"
    skipped.mkdir()
    (skipped / "text").write_bytes(b"this is no capture\n")
    (skipped / "empty.pcap").write_bytes(b"")
    (skipped / "clean.pcap").write_bytes(clean.read_bytes())
    result = run(capsys, "run", skipped, "--out", skipped / "lake")
    assert (result.status, result.err) == (0, "amqpscope: 2 files in directories are no capture\n")
    assert "3 files: 1 read, 0 in part, 0 unreadable, 2 no capture" in result.out
    again = run(capsys, "run", skipped, "--out", skipped / "lake")  # which is among its captures now
    assert again == result
    rows = run(capsys, "sql", skipped / "lake", "SELECT capture FROM files", "--format", "json")
    assert len(rows.lines) == 3

    (tmp_path / "text").write_bytes(b"this is no capture\n")
    result = run(capsys, "run", tmp_path / "text", clean, "--out", lake)
    assert result.status == 2
    assert result.err.splitlines() == [
        f"amqpscope: {tmp_path}/text: foreign: not a capture file (neither pcap nor pcapng)"
    ]
    (tmp_path / "http.pcap").write_bytes(_http())
    result = run(capsys, "run", tmp_path / "http.pcap", "--out", lake)
    assert (result.status, result.err) == (3, "amqpscope: no AMQP 1.0 or 0-9-1 in any of the captures\n")
    assert run(capsys, "run", tmp_path / "http.pcap", "--out", lake, "--allow-empty").status == 0
    result = run(capsys, "run", clean, "--out", tmp_path)
    assert result.status == 2 and "is not empty and is not a lake" in result.err


def test_a_lake_is_never_lost(lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A source that is missing, and be it by a name mistyped, leaves the lake as it was."""
    lake = tmp_path / "lake"
    clean = tmp_path / "clean.pcap"
    clean.write_bytes(SCRIPTED["clean"]().pcap())
    assert run(capsys, "run", clean, "--out", lake).status == 0
    before = Lake(str(lake)).runs()
    for sources in ([tmp_path / "claen.pcap"], [clean, tmp_path / "claen.pcap"]):
        result = run(capsys, "run", *sources, "--out", lake)
        assert (result.status, result.out) == (2, "")
        assert result.err.startswith(f"amqpscope: {tmp_path}/claen.pcap: No such file")
        assert "nothing is replaced" in result.err and result.err.count("\n") == 1
        assert Lake(str(lake)).runs() == before
    result = run(capsys, "run", clean, tmp_path / "claen.pcap", "--out", lake, "--allow-missing")
    assert (result.status, "2 files: 1 read, 0 in part, 1 unreadable" in result.out) == (2, True)
    assert len(Lake(str(lake)).runs()) == 2


def _http() -> bytes:
    from support.tcp_writer import Capture

    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    tcp.goodbye()
    return capture.pcap()


def test_questions(lent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "lake"
    run(capsys, "run", *sorted(CAPTURES.glob("r*.pcap")), "--out", lake, "--set-by", "file")
    result = run(capsys, "summary", lake, "--format", "json")
    answers = json.loads(result.out)
    assert result.status == 0 and result.err == ""
    assert [error.message for error in validator("lake-summary").iter_errors(answers)] == []
    assert {"amqp10/C-CLOSE-LAST"} <= {row["rule"] for row in answers["rules"]}
    assert {"RabbitMQ 3.10.8"} <= {row["product"] for row in answers["rules"]}
    assert all(answers[name] for name in ("files", "connections", "containers", "hours", "latency", "errors"))

    result = run(
        capsys, "sql", lake, "SELECT kind, count(*) AS n FROM frames GROUP BY kind", "--format", "json"
    )
    assert {json.loads(line)["kind"] for line in result.lines} == {"header", "sasl", "amqp"}
    result = run(capsys, "sql", lake, "SELECT server_product, server_port FROM connections")
    assert result.lines[0].split() == ["server_product", "server_port"]
    assert any(line.startswith("RabbitMQ 3.10.8") for line in result.lines[1:])
    (listed,) = run(capsys, "history", lake, "--format", "json").lines
    row = json.loads(listed)
    assert (row["kind"], row["files"], len(row["sources"])) == (
        "replace",
        *[len(list(CAPTURES.glob("r*.pcap")))] * 2,
    )
    assert json.loads(row["options"])["set-by"] == "file"
    assert row["run"] in run(capsys, "history", lake).out
    count = "SELECT count(*) AS n FROM files"
    then = run(capsys, "sql", lake, count, "--as-of", row["run"][:6])
    assert (then.status, then.out) == (0, run(capsys, "sql", lake, count).out)
    assert "there is no run x" in run(capsys, "summary", lake, "--as-of", "x").err
    assert run(capsys, "compact", lake).out.startswith(f"{lake}: ")
    assert run(capsys, "vacuum", lake, "--keep", "2h").out == f"{lake}: 0 files deleted\n"
    assert "above 0 and up to 3660d" in run(capsys, "vacuum", lake, "--keep", "0h").err
    assert len(run(capsys, "history", lake, "--format", "json").lines) == 2
    result = run(capsys, "sql", lake, "SELECT nonsense FROM frames")
    assert result.status == 2 and len(result.err.splitlines()) == 1
    result = run(capsys, "sql", lake, "SELECT '\x1b[31m' AS `red\x1b[0m`", "--master", "local[2]")
    assert result.status == 0 and "\x1b" not in result.out
    result = run(capsys, "summary", tmp_path)
    assert (result.status, result.err.count("\n")) == (2, 1)


def test_explain_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "start", None)
    result = run(
        capsys, "run", CAPTURES / "demo.pcap", "--out", tmp_path / "lake", "--explain", "--master", "local[3]"
    )
    assert result.status == 0 and "chain plan: " in result.out and "3 cores" in result.out
    assert not (tmp_path / "lake").exists()


def test_what_makes_no_sense_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "start", None)
    result = run(capsys, "run", tmp_path, "--out", tmp_path / "lake", "--tables", "files,nonsense")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("amqpscope: --tables nonsense: must be of files, ")


def test_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run(capsys, "run", CAPTURES / "demo.pcap", "--out", tmp_path / "lake")
    assert result.status == 2
    assert result.err.splitlines() == [
        "amqpscope: this command needs pyspark and pyarrow and pandas and deltalake and librt: "
        "pip install 'amqpscope[spark]'"
    ]
    for command in (["sql", tmp_path, "SELECT 1"], ["summary", tmp_path]):
        result = run(capsys, *command)
        assert (result.status, result.out) == (2, "")
        assert (
            result.err == "amqpscope: this command needs deltalake and duckdb and pyarrow: "
            "pip install 'amqpscope[lake]'\n"
        )
        assert "pip install 'amqpscope[spark]'" in run(capsys, *command, "--master", "local[1]").err
    result = run(capsys, "compact", tmp_path)
    assert result.status == 2 and "pyarrow and librt: " in result.err  # before it commits anything


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "tables")
    assert result.status == 0
    for name in ("files: ", "frames: ", "latency_ns", "runs: ", "segments: "):
        assert name in result.out


def test_columns_are_the_contract() -> None:
    """Frames and findings have every name of their JSON, and few of their own."""
    from support.lakes import checked, read

    from amqpscope.pipeline.schemas import TABLES

    findings = set(TABLES["findings"].schema.names)
    frames = set(TABLES["frames"].schema.names)
    assert findings - set(checked(CAPTURES / "rabbitmq-frames-after-close.pcap")[0]) == {
        "capture_set",
        "time_rest_ns",
        "date",
    }
    assert {name for frame in read(CAPTURES / "demo.pcap") for name in frame} <= frames
    assert set(checked(CAPTURES / "rabbitmq-frames-after-close.pcap")[0]) <= findings
