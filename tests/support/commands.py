"""Run the command line in this process, and look at what it writes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from amqpscope.cli.main import app, run

# Where all goes well.
DEMO = Path(__file__).resolve().parent.parent.parent / "captures" / "demo.pcap"

# Select Graphic Rendition: the one control sequence that output may have, where colour is asked for.
SGR = re.compile("\x1b\\[[0-9;]*m")


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Interrupted(io.BytesIO):
    """A live capture: it gives what there is, then somebody ends it."""

    def __init__(self, octets: bytes, how: BaseException) -> None:
        super().__init__(octets)
        self.how = how

    def read1(self, size: int | None = -1, /) -> bytes:
        block = super().read1(size)
        if not block:
            raise self.how
        return block


def amqpscope(capsys: pytest.CaptureFixture[str], *arguments: object) -> Result:
    """`amqpscope ARGUMENTS`."""
    capsys.readouterr()
    status = run([str(argument) for argument in arguments])
    written = capsys.readouterr()
    return Result(int(status), written.out, written.err)


def every_way(path: object) -> Iterator[list[str]]:
    """Every command, form and verbosity for one capture, as arguments."""
    for verbosity in ((), ("-v",), ("-vv",), ("--bodies",)):
        yield ["read", *verbosity, str(path)]
        for form in ("json", "ndjson"):
            yield ["read", "--format", form, *verbosity, str(path)]
    yield ["read", "--only", "problem", "-vv", str(path)]
    yield ["read", "--count", str(path)]
    for form in ("text", "json"):
        yield ["why", "--end", "--format", form, str(path)]
    yield ["read", "--count", "--format", "json", str(path)]
    yield ["triage", str(path)]
    yield ["summary", "--all", str(path)]
    yield ["summary", "--all", "--format", "json", str(path)]
    yield ["check", "--fail-on", "never", str(path)]
    for form in ("json", "ndjson", "markdown", "junit", "sarif", "github"):
        yield ["check", "--fail-on", "never", "--format", form, str(path)]


def set_against_another(path: object) -> Iterator[list[str]]:
    """A capture against one that has little in common with it, in both forms. They end with status 1."""
    for form in ("text", "json"):
        yield ["diff", "--all", "--format", form, str(path), str(DEMO)]


def unprintable(text: str) -> list[str]:
    """Characters that may not reach a terminal: anything that is not plainly visible, but line ends."""
    return sorted(character for character in set(text) if character != "\n" and not character.isprintable())


def whole_command() -> Any:
    """`amqpscope` as typer has it, with all its options."""
    return get_command(app)


def inner_commands(command: Any) -> dict[str, Any]:
    """The commands below a command, by name; none if it is no group."""
    if not isinstance(command, TyperGroup):
        return {}
    context = command.make_context("amqpscope", [], resilient_parsing=True)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}
