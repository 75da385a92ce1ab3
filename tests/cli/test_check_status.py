"""The exit status of `amqpscope check`: each of them, in every mix of inputs, with all of them reported."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.commands import Interrupted, amqpscope
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.scripted import SCRIPTED
from support.tcp_writer import Capture

ROOT = Path(__file__).resolve().parents[2]


def tls() -> bytes:
    """A connection of which nothing can be read."""
    capture = Capture()
    tcp = capture.connection(server="10.0.0.2:5671")
    tcp.handshake()
    tcp.client.send(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    tcp.server.send(b"\x16\x03\x03\x00\x05\x02\x00\x00\x01\x00")
    tcp.goodbye()
    return capture.pcap()


def no_amqp() -> bytes:
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    tcp.goodbye()
    return capture.pcap()


def http_to_amqp() -> bytes:
    """An HTTP client on the port of a broker, which answers with its own header."""
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    tcp.server.send(b"AMQP\x00\x00\x09\x01")
    tcp.goodbye()
    return capture.pcap()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All scripted captures, and files that are not to be checked."""
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / "tls.pcap").write_bytes(tls())
    (tmp_path / "http.pcap").write_bytes(no_amqp())
    (tmp_path / "http-to-amqp.pcap").write_bytes(http_to_amqp())
    (tmp_path / "no-packets.pcap").write_bytes(Capture().pcap())
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"this is no capture\n")
    (tmp_path / "gzip").write_bytes(b"\x1f\x8b\x08\x00rest")
    (tmp_path / "xz").write_bytes(b"\xfd7zXZ\x00rest")
    (tmp_path / "directory").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["clean.pcap"], 0),
        (["clean.pcap", "--strict"], 0),
        (["window-overrun.pcap"], 1),
        (["window-overrun.pcap", "--fail-on", "warning"], 1),
        (["window-overrun.pcap", "--fail-on", "note"], 1),
        (["window-overrun.pcap", "--fail-on", "never"], 0),
        (["window-overrun.pcap", "--fail-on", "never", "--fail-on-possible"], 0),
        (["credit-withdrawn.pcap"], 0),
        (["credit-withdrawn.pcap", "--fail-on-possible"], 1),
        (["credit-withdrawn.pcap", "--fail-on", "note"], 0),
        (["credit-withdrawn.pcap", "--strict"], 1),
        (["no-close.pcap"], 0),
        (["no-close.pcap", "--fail-on-possible"], 0),
        (["no-close.pcap", "--fail-on", "warning"], 0),
        (["no-close.pcap", "--fail-on", "warning", "--fail-on-possible"], 1),
        (["no-close.pcap", "--fail-on", "note", "--fail-on-possible"], 1),
        (["no-close.pcap", "--strict"], 1),
        (["no-close.pcap", "--strict", "--fail-on", "note"], 1),
        (["lost.pcap", "--fail-on", "never"], 0),
        (["tls.pcap"], 3),
        (["http-to-amqp.pcap"], 1),
        (["http-to-amqp.pcap", "--fail-on", "never"], 3),
        (["http-to-amqp.pcap", "--ignore", "F-PROTO-HDR"], 3),
        (["http-to-amqp.pcap", "--fail-on", "never", "--allow-empty"], 0),
        (["http.pcap"], 3),
        (["no-packets.pcap"], 3),
        (["tls.pcap", "--allow-empty"], 0),
        (["http.pcap", "--allow-empty"], 0),
        (["no-packets.pcap", "--allow-empty"], 0),
        (["no-packets.pcap", "--strict"], 3),
    ],
)
def test_of_one_capture(
    arguments: list[str], status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("text", "json", "ndjson"):
        assert amqpscope(capsys, "check", "--format", form, *arguments).status == status


@pytest.mark.parametrize(
    ("severity", "arguments", "status"),
    [
        ("note", [], 0),
        ("note", ["--fail-on", "warning"], 0),
        ("note", ["--fail-on", "note"], 1),
        ("note", ["--strict"], 0),
        ("note", ["--strict", "--fail-on", "note"], 1),
        ("warning", [], 0),
        ("warning", ["--fail-on", "warning"], 1),
        ("warning", ["--strict", "--fail-on", "never"], 1),
    ],
)
def test_by_severity(
    severity: str,
    arguments: list[str],
    status: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If what is certain were less than an error."""
    monkeypatch.setattr("amqpscope.policy.terms.weight", lambda finding: severity)
    assert amqpscope(capsys, "check", *arguments, "window-overrun.pcap").status == status


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["empty"], "empty: the file is empty"),
        (["text"], "text: not a capture file"),
        (["gzip"], "gzip: the gzip data are cut short after 0 decompressed octets"),
        (["xz"], "xz: compressed with xz; decompress it first"),
        (["directory"], "directory: no captures in this directory (the directory is empty)"),
        (["missing.pcap"], "missing.pcap: No such file or directory"),
        (["clean.pcap/below"], "clean.pcap/below: Not a directory"),
        ([], "Missing argument 'PATH'"),
        (["--no-such-option", "clean.pcap"], "No such option"),
        (["--fail-on", "panic", "clean.pcap"], "'panic' is not one of"),
        (["--format", "yaml", "clean.pcap"], "--format yaml: there is no such format; there are text, "),
        (["--max-per-rule", "0", "clean.pcap"], "--max-per-rule 0: must be at least 1"),
        (["--max-per-rule", "few", "clean.pcap"], "--max-per-rule"),
        (
            ["--profile", "rabbit", "clean.pcap"],
            "--profile rabbit: must be auto, none, or names out of rabbitmq-3, ",
        ),
        (["--profile", "uamqp,auto", "clean.pcap"], "--profile auto: must be auto, none, or names out of "),
        (["--profile", "", "clean.pcap"], "--profile : must be auto, none, or names out of "),
        (["-", "-"], "- (standard input) can be read only once"),
    ],
)
def test_failures_are_one_clear_line(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "check", *arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("amqpscope: ")
    assert words in result.err
    assert result.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_without_permission(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "clean.pcap").chmod(0)
    result = amqpscope(capsys, "check", "clean.pcap")
    assert result.status == 2
    assert result.err == "amqpscope: clean.pcap: Permission denied\n"


MIXED = {"missing.pcap": 2, "window-overrun.pcap": 1, "tls.pcap": 3, "clean.pcap": 0}


def test_of_several_captures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2 before 1 before 3 before 0, in whatever order they come; and each of them is reported."""
    for many in range(1, len(MIXED) + 1):
        for names in permutations(MIXED, many):
            statuses = [MIXED[name] for name in names]
            result = amqpscope(capsys, "check", *names)
            assert result.status == next(status for status in (2, 1, 3, 0) if status in statuses), names
            assert ("missing.pcap: No such file" in result.err) == ("missing.pcap" in names)
            assert ("tls.pcap: no AMQP 1.0 or 0-9-1 to check" in result.err) == ("tls.pcap" in names)
            heads = [line.partition(": ")[0] for line in result.lines if ".pcap: " in line]
            assert heads == [name for name in names if name != "missing.pcap"]
            assert result.out.count("error amqp10/S-WIN-IN") == 2 * ("window-overrun.pcap" in names)


def test_the_sum_of_several_captures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = ["clean.pcap", "window-overrun.pcap", "no-close.pcap", "tls.pcap", "missing.pcap"]
    assert amqpscope(capsys, "check", *everything).lines[-1] == (
        "5 captures: 2 errors, 1 possible warning in 2 of them; "
        "1 without AMQP 1.0 or 0-9-1 to check; "
        "1 not read, or not to the end"
    )
    assert (
        amqpscope(capsys, "check", "clean.pcap", "clean.pcap").lines[-1] == "2 captures: nothing wrong found"
    )
    assert amqpscope(capsys, "check", "tls.pcap", "tls.pcap").lines[-1] == "2 captures: nothing to check"
    assert "captures:" not in amqpscope(capsys, "check", "window-overrun.pcap").out


@pytest.mark.parametrize("form", ["text", "markdown", "junit"])
def test_a_version_that_is_not_decoded_is_not_found_to_be_without_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = tmp_path / "amqp-0-9.pcap"
    d = Dialogue091()
    d.client.header(1, 1, 0, 9)
    d.server.header(1, 1, 0, 9)
    path.write_bytes(d.pcap())
    result = amqpscope(capsys, "check", "--format", form, str(path), str(path))
    assert result.status == 3
    assert "nothing to check" in result.out
    assert "nothing wrong found" not in result.out


def test_a_file_that_is_cut_short(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left of it is judged; that something is missing is reported, and is nobody's fault."""
    whole = (folder / "window-overrun.pcap").read_bytes()
    (folder / "cut.pcap").write_bytes(whole[:-20])
    result = amqpscope(capsys, "check", "cut.pcap")
    assert result.status == 1
    assert "note: capture/truncated: " in result.out
    assert result.out.count("error amqp10/S-WIN-IN") == 2
    result = amqpscope(capsys, "check", "--format", "ndjson", "cut.pcap")
    assert [json.loads(line)["rule"] for line in result.lines] == ["amqp10/S-WIN-IN"] * 2
    assert result.err.startswith("amqpscope: cut.pcap: capture/truncated: ")
    (folder / "hardly.pcap").write_bytes(whole[:30])
    assert amqpscope(capsys, "check", "hardly.pcap").status == 3


def test_standard_input(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    octets = (folder / "window-overrun.pcap").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(octets)))
    result = amqpscope(capsys, "check", "-")
    assert result.status == 1
    assert result.lines[0] == "standard input: 2 errors in 17 frames on 1 connection"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(octets))))
    for command_name, words in (("check", "2 errors in 17 frames"), ("summary", "1 connection")):
        sys.stdin.buffer.seek(0)
        result = amqpscope(capsys, command_name, "-")
        assert result.status == (command_name == "check")
        assert result.lines[0].startswith(f"standard input: {words}")
    monkeypatch.setattr(sys, "stdin", None)
    result = amqpscope(capsys, "check", "-")
    assert result.status == 2
    assert result.err == "amqpscope: standard input: is closed\n"


def command(*arguments: str, **how: Any) -> subprocess.Popen[bytes]:
    """The command as a process of its own."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **how,
    }
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from amqpscope.cli.start import main; main()"
    return subprocess.Popen([sys.executable, "-c", code, str(ROOT), "check", *arguments], **pipes)


@pytest.mark.parametrize("form", ["text", "json", "ndjson"])
def test_a_reader_that_has_seen_enough(form: str, folder: Path) -> None:
    """`| head`: no more output, no complaint about that, and the verdict all the same."""
    read_end, write_end = os.pipe()
    process = command("--format", form, *["credit-overrun.pcap"] * 20, stdout=write_end, cwd=folder)
    os.close(write_end)
    os.close(read_end)
    _, complaint = process.communicate(timeout=60)
    assert complaint == b""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["check", "credit-overrun.pcap"], 1),
        (["check", "text"], 2),
        (["check", "tls.pcap"], 3),
        (["check", "--no-such-option"], 2),
        (["diff", "clean.pcap", "credit-overrun.pcap"], 1),
        (["rules", "pages", "--check", "directory"], 1),
        (["rules", "explain", "NO-SUCH"], 2),
    ],
)
def test_the_status_where_nobody_reads_either_output(arguments: list[str], status: int, folder: Path) -> None:
    """`2>&1 | head`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from amqpscope.cli.start import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), *arguments],
        stdout=write_end,
        stderr=write_end,
        cwd=folder,
        check=False,
    )
    os.close(write_end)
    assert done.returncode == status


def test_a_reader_that_has_seen_enough_of_standard_input(folder: Path) -> None:
    """It may have no end: nobody waits for that."""
    read_end, write_end = os.pipe()
    with open(folder / "credit-overrun.pcap", "rb") as capture:
        process = command("--format", "ndjson", "-", stdin=capture, stdout=write_end, cwd=folder)
    os.close(write_end)
    os.close(read_end)
    _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, b"")


def test_closed_outputs(folder: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from amqpscope.cli.start import main; main()"
    shell = f'"$0" -c "{code}" "$1" check clean.pcap >&-'
    closed = subprocess.run(
        ["sh", "-c", shell, sys.executable, str(ROOT)], cwd=folder, capture_output=True, check=False
    )
    assert closed.stderr == b"amqpscope: standard output is closed\n"
    assert closed.returncode == 2


@pytest.mark.parametrize("form", ["text", "json", "ndjson"])
@pytest.mark.parametrize("how", [KeyboardInterrupt(), OSError(5, "Input/output error")])
def test_not_read_to_its_end(
    how: BaseException,
    form: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C, or a file that cannot be read on: what was found before is reported, and that it is not all."""
    d = Dialogue()
    d.linked(credit=2)
    for _ in range(4):
        d.client.transfer()  # two of them faults, that nobody has reacted to yet
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Interrupted(d.pcap(), how)))
    result = amqpscope(capsys, "check", "--format", form, "-")
    reason = "interrupted" if isinstance(how, KeyboardInterrupt) else "Input/output error"
    if reason == "interrupted":
        assert result.status == 130
        assert result.err == ""
    else:
        assert result.status == 2
        assert result.err == f"amqpscope: standard input: {reason}\n"
    assert result.out.count("amqp10/L-CREDIT") == 2
    if form == "text":
        assert f"({reason}: only what was read before)" in result.out
    elif form == "json":
        (reported,) = json.loads(result.out)["captures"]
        assert (reported["status"], reported["reason"]) == ("partial", reason)
