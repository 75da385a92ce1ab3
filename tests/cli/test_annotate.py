"""`check --annotate`: the same packets, each finding a comment on its own; whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.busy_night import busy_night
from support.commands import amqpscope
from support.recorded import blocks_of, packets_of

from amqpscope.errors import CaptureError

ENHANCED_PACKET = 6
COMMENT = 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("night.pcap").write_bytes(busy_night(most=1))
    return tmp_path


def comments(path: str) -> list[tuple[int, str]]:
    """The number of each packet with comments, and these."""
    packets = [block for block in blocks_of(Path(path).read_bytes()) if block.kind == ENHANCED_PACKET]
    return [
        (number, text.decode())
        for number, block in enumerate(packets, 1)
        for text in block.options.get(COMMENT, [])
    ]


@pytest.mark.parametrize("options", [[], ["--certain", "--connection", "10"]])
def test_each_finding_is_a_comment_on_its_own_packet(
    options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(
        capsys, "check", "--format", "ndjson", "--annotate", "out.pcapng", *options, "night.pcap"
    )
    assert result.status == 1
    found = [json.loads(line) for line in result.lines]
    written = comments("out.pcapng")
    assert len(written) == len(found) > 3
    for finding in found:
        kind = f"{'possible ' * (finding['certainty'] == 'possible')}{finding['severity']} {finding['rule']}"
        assert (finding["packet"], f"{kind} by the {finding['peer']}: {finding['message']}") in written
    before, _ = packets_of(Path("night.pcap").read_bytes())
    after, _ = packets_of(Path("out.pcapng").read_bytes())
    assert [one.data for one in after] == [one.data for one in before]
    assert [one.time for one in after] == [one.time for one in before]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["night.pcap", "night.pcap"], "--annotate: works with one capture file"),
        (["-"], "--annotate: works with one capture file"),
        (["--annotate", "", "night.pcap"], "--annotate '': must name a file"),
        (["--output", "text:out.pcapng", "night.pcap"], "--output out.pcapng: this run already"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], why: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out.pcapng").write_text("as it was")
    result = amqpscope(capsys, "check", "--annotate", "out.pcapng", *arguments)
    assert result.status == 2
    assert why in result.err
    assert Path("out.pcapng").read_text() == "as it was"


def test_the_capture_itself_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "--annotate", "night.pcap", "night.pcap")
    assert result.status == 2
    assert "already reads or writes this file" in result.err


def test_a_run_that_fails_leaves_what_was_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out.pcapng").write_text("as it was")
    Path("text").write_text("this is no capture")
    assert amqpscope(capsys, "check", "--annotate", "out.pcapng", "text").status == 2
    assert Path("out.pcapng").read_text() == "as it was"
    assert sorted(path.name for path in folder.iterdir()) == ["night.pcap", "out.pcapng", "text"]


@pytest.mark.parametrize("target", ["folder", "missing/out.pcapng", "/dev/full"])
def test_what_cannot_be_written_is_reported_before_anything_is_read(
    target: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    result = amqpscope(capsys, "check", "--annotate", target, "night.pcap")
    assert (result.status, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith(f"amqpscope: {target}: ")
    assert sorted(path.name for path in folder.iterdir()) == ["folder", "night.pcap"]


def test_a_failure_at_the_end_is_reported_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("out.pcapng").write_text("as it was")

    def full(*_: object) -> None:
        raise CaptureError("No space left on device")

    monkeypatch.setattr("amqpscope.cli.annotation.copy_packets", full)
    expected = amqpscope(capsys, "check", "night.pcap").out
    result = amqpscope(capsys, "check", "--annotate", "out.pcapng", "night.pcap")
    assert (result.status, result.err) == (2, "amqpscope: No space left on device\n")
    assert expected.startswith(result.out)
    assert Path("out.pcapng").read_text() == "as it was"
    assert sorted(path.name for path in folder.iterdir()) == ["night.pcap", "out.pcapng"]


def test_it_is_for_its_owner_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    amqpscope(capsys, "check", "--annotate", "out.pcapng", "night.pcap")
    assert Path("out.pcapng").stat().st_mode & 0o777 == 0o600


def test_where_no_other_file_can_be_made_the_file_itself_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = "o" * 240 + ".pcapng"  # no longer name can be given to what is written meanwhile
    Path(out).write_text("as it was")
    assert amqpscope(capsys, "check", "--annotate", out, "night.pcap").status == 1
    assert comments(out)


def test_a_file_that_does_not_fit_is_called_as_the_user_called_it(folder: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    script = (
        "import resource, signal, sys\n"
        "from amqpscope.cli.main import run\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    line = [sys.executable, "-c", script, "check", "--annotate", "out.pcapng", "night.pcap"]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "out.pcapng: File too large" in ran.stderr + ran.stdout
    assert ".part" not in ran.stderr + ran.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["night.pcap"]


def ran(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    """`amqpscope check ARGUMENTS night.pcap` with these standard streams."""
    line = [sys.executable, "-m", "amqpscope", "check", *arguments, "night.pcap"]
    return subprocess.run(
        line, check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    )


@pytest.mark.parametrize(("target", "form"), [("-", "text"), ("-", "ndjson"), ("/dev/stdout", "text")])
def test_standard_output_has_the_capture_alone(target: str, form: str, folder: Path) -> None:
    expected = ran("--format", form, "--annotate", "out.pcapng")
    piped = ran("--format", form, "--annotate", target)
    assert piped.returncode == 1
    assert sorted(piped.stderr.splitlines()) == sorted((expected.stdout + expected.stderr).splitlines())
    assert piped.stdout == Path("out.pcapng").read_bytes()
    with Path("all.pcapng").open("wb") as file:
        ran("--format", form, "--annotate", target, stdout=file)
    assert Path("all.pcapng").read_bytes() == piped.stdout


def test_another_pipe_has_it_while_the_report_stays(folder: Path) -> None:
    expected = ran("--annotate", "out.pcapng")
    with (
        Path("all.pcapng").open("wb") as file,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) as reader,
    ):
        assert reader.stdin
        writing = reader.stdin.fileno()
        piped = ran("--annotate", f"/dev/fd/{writing}", pass_fds=[writing])
    assert Path("all.pcapng").read_bytes() == Path("out.pcapng").read_bytes()
    assert (piped.returncode, piped.stdout, piped.stderr) == (1, expected.stdout, expected.stderr)


def test_standard_output_is_not_shared_with_a_report(folder: Path) -> None:
    refused = ran("--annotate", "-", "--output", "json:/dev/stdout")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"--output /dev/stdout: this run already reads or writes this file" in refused.stderr


def test_nobody_reads_standard_output(folder: Path) -> None:
    """The report is whole, and the run says what it could not do."""
    reading, writing = os.pipe()
    os.close(reading)
    left = ran("--annotate", "-", stdout=writing)
    os.close(writing)
    assert left.returncode == 2
    assert left.stderr.endswith(b"amqpscope: standard output: Broken pipe\n")
