"""Files whose names are no UTF-8: all outputs are, and JSON has no half of a surrogate pair."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.commands import DEMO, amqpscope, every_way, set_against_another

CAPTURE = DEMO.parent / "rhea-transfer-before-attach.pcap"
SHOWN = "odd\\udcff.pcap"


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A capture with such a name in this folder."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"odd\xff.pcap")
    try:
        Path(name).write_bytes(CAPTURE.read_bytes())
    except OSError:
        pytest.skip("this file system has no such names")
    return name


def strictly_parsed(line: str) -> object:
    """JSON as a strict reader takes it."""
    parsed: object = json.loads(line)
    json.dumps(parsed, ensure_ascii=False).encode()
    return parsed


def test_all_outputs_are_strict(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    ways = [*every_way(odd), *set_against_another(odd), ["check", "--format", "json", odd, odd]]
    ways.append(["summary", "--merge", "--format", "json", odd, odd])
    for line in ways:
        result = amqpscope(capsys, *line)
        assert result.status in (0, 1), line
        result.out.encode()
        if "ndjson" in line:
            for one in result.lines:
                strictly_parsed(one)
        elif "json" in line or "sarif" in line:
            strictly_parsed(result.out)
        if "json" in line or "ndjson" in line:
            assert json.dumps(SHOWN)[1:-1] in result.out, line


def test_an_address_has_the_octets_as_they_are(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert '"uri": "odd%FF.pcap"' in amqpscope(capsys, "check", "--format", "sarif", odd).out


def test_a_file_that_cannot_be_read(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(odd).write_text("no capture")
    for form in ("json", "ndjson", "sarif"):
        result = amqpscope(capsys, "check", "--format", form, odd)
        assert result.status == 2
        for one in result.lines if form == "ndjson" else [result.out]:
            strictly_parsed(one)
    read = amqpscope(capsys, "read", "--format", "json", odd)
    assert read.status == 2
    strictly_parsed(read.out)


def test_a_configuration(odd: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"settings\xff.toml")
    Path(name).write_text(
        '[[allow]]\nrule = "L-CREDIT"\nreason = "none"\nexpires = 2020-01-01\n', encoding="utf-8"
    )
    shown = strictly_parsed(amqpscope(capsys, "config", "show", "--format", "json", "--config", name).out)
    assert isinstance(shown, dict)
    assert shown["file"].endswith("settings\\udcff.toml")
    for form in ("json", "ndjson", "sarif"):
        result = amqpscope(capsys, "check", "--format", form, "--config", name, odd)
        assert result.status in (0, 1)
        for one in result.lines if form == "ndjson" else [result.out]:
            strictly_parsed(one)
