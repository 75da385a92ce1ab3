"""Captures that come through a pipe with a path (`<(command)`, a named one): as standard input, read once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import DEMO, Result, amqpscope

CAPTURE = DEMO.parent / "rhea-transfer-before-attach.pcap"
TLS = DEMO.parent / "tls" / "rabbitmq-rsa.pcap"

Pipe = Callable[[], str]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Makes pipes that give the capture once; each is closed at the end."""
    opened = []

    def make() -> str:
        reading, writing = os.pipe()
        opened.append(reading)
        os.write(writing, CAPTURE.read_bytes())
        os.close(writing)
        return f"/dev/fd/{reading}"

    yield make
    for descriptor in opened:
        os.close(descriptor)


def same(result: Result, expected: Result, path: str) -> None:
    """The same of a pipe as of the file."""
    assert result.status == expected.status
    assert result.out.replace(path, str(CAPTURE)) == expected.out
    assert result.err.replace(path, str(CAPTURE)) == expected.err


def test_why(pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    path = pipe()
    same(amqpscope(capsys, "why", path, 17), amqpscope(capsys, "why", CAPTURE, 17), path)
    result = amqpscope(capsys, "why", "--end", pipe())
    assert result.status == 0
    expected = amqpscope(capsys, "why", "--end", CAPTURE)
    assert result.lines[1:] == [line for line in expected.lines if "next: " not in line][1:]


@pytest.mark.parametrize("command", [["check"], ["triage"], ["summary"]])
def test_no_command_is_shown_that_cannot_read_it_again(
    command: list[str], pipe: Pipe, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "next: amqpscope" in amqpscope(capsys, *command, CAPTURE).out
    result = amqpscope(capsys, *command, pipe())
    assert result.out
    assert "next: " not in result.out


@pytest.mark.parametrize("form", ["html", "svg", "md", "txt"])
def test_draw(form: str, pipe: Pipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, expected = tmp_path / f"a.{form}", tmp_path / f"b.{form}"
    path = pipe()
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    file = tmp_path / Path(path).name
    file.write_bytes(CAPTURE.read_bytes())
    assert amqpscope(capsys, "draw", file, "-o", expected).status == 0
    assert out.read_text() == expected.read_text().replace(str(file), path)


def test_cut(pipe: Pipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, expected = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    assert amqpscope(capsys, "cut", pipe(), "-o", out).status == 0
    assert amqpscope(capsys, "cut", CAPTURE, "-o", expected).status == 0
    assert out.read_bytes() == expected.read_bytes()


def test_two_of_them_are_compared(pipe: Pipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert amqpscope(capsys, "diff", pipe(), pipe()).status == 0
    out = tmp_path / "out.svg"
    assert amqpscope(capsys, "draw", "--compare", pipe(), pipe(), "-o", out).status == 0
    assert out.stat().st_size


@pytest.mark.parametrize(
    "command",
    [
        ["check", "PIPE", "PIPE"],
        ["read", "PIPE", "PIPE"],
        ["summary", "PIPE", "OTHER"],
        ["triage", "--merge", "PIPE", "OTHER"],
        ["why", "--end", "PIPE", "PIPE"],
        ["draw", "--compare", "-o", "out.svg", "PIPE", "PIPE"],
        ["diff", "PIPE", "OTHER"],
        ["check", "PIPE", "--tls-keylog", "PIPE"],
        ["diff", "PIPE", "FILE", "--tls-keylog", "OTHER"],
        ["cut", "PIPE", "-o", "out.pcapng", "--tls-key", "PIPE"],
        ["sniff", "-i", "lo", "--tls-keylog", "PIPE", "--tls-keylog", "PIPE"],
    ],
    ids=" ".join,
)
def test_a_pipe_is_not_read_twice(
    command: list[str],
    pipe: Pipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = pipe()
    other = f"/proc/self/fd/{path.rpartition('/')[2]}"
    names = {"PIPE": path, "OTHER": other, "FILE": str(CAPTURE)}
    result = amqpscope(capsys, *[names.get(word, word) for word in command])
    assert (result.status, result.out) == (2, "")
    repeated = other if "OTHER" in command else path
    assert result.err == f"amqpscope: {repeated} can be read only once\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["check"], ["read"], ["why", "--end"]], ids=" ".join)
def test_a_key_log_may_come_through_a_pipe(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is read once, also where a connection asks for a secret that it does not have."""
    pytest.importorskip("cryptography")
    keys, path = tmp_path / "keys", tmp_path / "fifo"
    keys.write_text(f"CLIENT_RANDOM {'00' * 32} {'00' * 48}\n")
    expected = amqpscope(capsys, *command, "--tls-keylog", keys, TLS)
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[keys.read_bytes()], daemon=True)
    writer.start()
    assert amqpscope(capsys, *command, "--tls-keylog", path, TLS) == expected
    writer.join()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["check", "-o", "out.html"], "reads the capture again"),
        (["check", "--format", "html"], "reads the capture again"),
        (["check", "--annotate", "out.pcapng"], "reads the capture again"),
        (["summary", "-o", "out.html"], "reads the capture again"),
        (["read", "--linked"], "--linked: reads twice, which {} cannot"),
        (["check", "--via", "tshark"], "cannot be combined with {}"),
    ],
)
def test_what_reads_again_is_refused(
    command: list[str],
    why: str,
    pipe: Pipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = pipe()
    result = amqpscope(capsys, *command, path)
    assert (result.status, result.out) == (2, "")
    assert why.format(path) in result.err
    assert not list(tmp_path.iterdir())


def test_a_named_pipe_is_opened_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Opening it again would wait for somebody who writes into it."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[CAPTURE.read_bytes()], daemon=True)
    writer.start()
    same(amqpscope(capsys, "why", path, 17), amqpscope(capsys, "why", CAPTURE, 17), str(path))
    writer.join()


def test_several_of_them_are_one_capture(pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is copied for itself."""
    expected = amqpscope(capsys, "why", "--merge", CAPTURE, CAPTURE, 34)
    result = amqpscope(capsys, "why", "--merge", pipe(), pipe(), 34)
    assert result.status == expected.status == 0
    assert len(result.lines) == len(expected.lines)
