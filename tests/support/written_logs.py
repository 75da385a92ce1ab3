"""Logs that tests write from captures, in the forms of libraries, and what the product reads in them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope as command

import amqpscope
from amqpscope import Capture, CaptureOptions
from dissectors.interface import Frame

Writer = Callable[[int, bool, Frame], str]
"""The line, or lines, that a library writes: the number of the connection (from 1), whether the library sent
the frame, and the frame. "" for a frame that the library does not write."""


def written(path: Path, by_client: bool, line: Writer) -> str:
    """The log that one peer of the connections of a capture would write."""
    lines = []
    connections: list[str] = []
    for record in amqpscope.read(path):
        if record.connection.id not in connections:
            connections.append(record.connection.id)
        if record.frame.kind in ("amqp", "sasl", "header"):
            number = connections.index(record.connection.id) + 1
            lines.append(line(number, (record.peer == "client") == by_client, record.frame))
    return "".join(f"{one}\n" for one in lines if one)


def found(log: bytes | Path, certain: bool = True) -> set[tuple[str, str]]:
    """Rule and peer of each certain finding, or of each finding."""
    source = io.BytesIO(log) if isinstance(log, bytes) else log
    with Capture(source, CaptureOptions(judge=True), name="log") as capture:
        for _ in capture:
            pass
        assert not capture.mishaps
        return {(one.rule, one.peer) for one in capture.take_findings() if one.certain or not certain}


def frames(capsys: pytest.CaptureFixture[str], path: Path) -> list[dict[str, Any]]:
    """The frames of a log or a capture, as `read --format ndjson` prints them."""
    return [json.loads(one) for one in command(capsys, "read", "--format", "ndjson", path).out.splitlines()]
