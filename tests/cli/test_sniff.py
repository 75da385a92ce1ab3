"""`amqpscope sniff`: a program of its own, that watches packets which come while it runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.scripted import clean, credit_overrun

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
PATIENCE = 120
"""Seconds after which a test has failed. Nothing takes so long."""

BROKEN = CAPTURES / "rhea-transfer-before-attach.pcap"


class Running:
    """A sniff that reads a pipe: what is written to it are its packets."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def feed(self, octets: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(octets)
        self.process.stdin.flush()

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield line.decode()

    def line_with(self, text: str) -> str:
        """The next line of output that has this in it."""
        for line in self.lines():
            if text in line:
                return line
        raise AssertionError(f"no line with {text}")

    def ended(self) -> tuple[int, str]:
        """How it ended, and what it said on standard error."""
        assert self.process.stderr is not None
        status = self.process.wait(PATIENCE)
        return status, self.process.stderr.read().decode()


@contextmanager
def sniffing(*options: str, **how: object) -> Iterator[Running]:
    """A program that listens to its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        **how,  # type: ignore[call-overload]
    )
    killer = threading.Timer(PATIENCE, process.kill)
    killer.start()
    try:
        yield Running(process)
    finally:
        killer.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def run(octets: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    """All packets at once, then the end of the pipe."""
    return subprocess.run(
        [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", *options],
        input=octets,
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE,
    )


def objects(text: str | bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def without_name(found: list[dict[str, object]]) -> list[dict[str, object]]:
    """The same, whatever the capture is called."""
    return json.loads(json.dumps(found).replace(str(BROKEN), "X").replace("standard input", "X"))


def written(dialogue: Dialogue) -> bytes:
    return dialogue.pcap()


def test_frames_are_those_of_read_and_findings_those_of_check(capsys: pytest.CaptureFixture[str]) -> None:
    octets = BROKEN.read_bytes()
    done = run(octets, "--format", "ndjson")
    assert done.returncode == 1, done.stderr
    lines = without_name(objects(done.stdout))
    frames = [line for line in lines if "kind" in line]
    findings = [line for line in lines if "rule" in line]
    assert frames == without_name(objects(amqpscope(capsys, "read", "--format", "ndjson", BROKEN).out))
    checked = without_name(objects(amqpscope(capsys, "check", "--format", "ndjson", BROKEN).out))
    # Each comes when it is made; who reacted to it is given when that is known.
    first = [one for one in findings if "amended" not in one]
    assert [one["fingerprint"] for one in first] == [one["fingerprint"] for one in checked]
    amended = [one for one in findings if one.pop("amended", False)]
    assert amended == [one for one in checked if one["reaction"]]
    assert len(frames) == 16 and len(checked) == 3 and len(amended) == 1


def test_a_verdict_stands_below_its_frame() -> None:
    done = run(BROKEN.read_bytes())
    lines = done.stdout.decode().splitlines()
    at = next(number for number, line in enumerate(lines) if "#0 handle=0" in line)
    assert "!! error amqp10/L-UNATTACHED-TRANSFER by the server in packet 17" in lines[at + 1]
    assert "19" in lines[at + 2] and "close" in lines[at + 2]
    assert any(
        line.startswith("  -> packet 17, error amqp10/L-UNATTACHED") and "amqp:invalid-field" in line
        for line in lines
    )
    assert "3 errors in 16 frames on 1 connection" in done.stdout.decode()


def test_quiet_shows_verdicts_with_their_connection() -> None:
    done = run(BROKEN.read_bytes(), "--quiet")
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("── connection 0 ── client 127.0.0.1:50330")
    assert not any("sasl-init" in line for line in lines)
    assert sum("!! error" in line for line in lines) == 3


def test_it_is_held_to_the_same_configuration_as_check(tmp_path: Path) -> None:
    configuration = tmp_path / "x.toml"
    configuration.write_text(
        '[severity]\nL-DC-UNSET = "note"\n[[allow]]\nrule = "L-UNATTACHED-*"\nreason = "\\u001b[31mknown"\n'
    )
    done = run(BROKEN.read_bytes(), "--quiet", "--config", str(configuration))
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert "  !! note amqp10/L-DC-UNSET by the client" in shown
    assert shown.count("  ok error amqp10/L-UNATTACHED-TRANSFER") == 2
    assert shown.count("(allowed: \\x1b[31mknown)") == 2
    assert "standard input: 1 note in 16 frames on 1 connection; 22 packets in " in shown
    assert shown.splitlines()[-1] == (
        "allowed: amqp10/L-UNATTACHED-TRANSFER by the server (2, first in packet 17): \\x1b[31mknown"
    )
    lines = objects(run(BROKEN.read_bytes(), "--format", "ndjson", "--config", str(configuration)).stdout)
    found = [line["suppressed"] for line in lines if line.get("rule") == "amqp10/L-UNATTACHED-TRANSFER"]
    assert found == [{"by": "allow", "reason": "\x1b[31mknown"}] * 3
    configuration.write_text('[[allow]]\nrule = "*"\nreason = "x"\nexpires = 2001-02-03\n')
    done = run(BROKEN.read_bytes(), "--quiet", "--fail-on", "error", "--config", str(configuration))
    assert done.returncode == 1
    assert "error config/ALLOW-EXPIRED in " in done.stderr.decode()
    assert run(BROKEN.read_bytes(), "--quiet", "--ignore", "error").returncode == 0


def test_verdicts_come_before_the_pipe_ends() -> None:
    with sniffing("--quiet") as running:
        running.feed(BROKEN.read_bytes())
        assert "amqp10/L-UNATTACHED-TRANSFER" in running.line_with("L-UNATTACHED-TRANSFER")
        assert running.process.poll() is None


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_ends_it_with_the_summary_and_a_whole_file(
    number: signal.Signals, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "seen.pcapng"
    with sniffing("-w", str(path)) as running:
        running.feed(BROKEN.read_bytes())
        running.line_with("!! error amqp10/L-UNATTACHED-TRANSFER")
        running.process.send_signal(number)
        assert "3 errors in 16 frames" in running.line_with("3 errors")
        ended, said = running.ended()
    assert ended == status
    assert f"recorded: {path}" in said
    findings = objects(amqpscope(capsys, "check", "--format", "ndjson", path).out)
    expected = objects(amqpscope(capsys, "check", "--format", "ndjson", BROKEN).out)
    assert [(one["rule"], one["packet"], one["reaction"]) for one in findings] == [
        (one["rule"], one["packet"], one["reaction"]) for one in expected
    ]


def test_the_recording_has_every_packet_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "seen.pcapng"
    for source in sorted(CAPTURES.glob("*.pcap"))[::18]:
        done = run(source.read_bytes(), "-w", str(path), "--quiet", "--allow-empty")
        assert done.returncode in (0, 1), done.stderr
        own = amqpscope(capsys, "read", "--format", "ndjson", path).out.replace(str(path), "X")
        assert own == amqpscope(capsys, "read", "--format", "ndjson", source).out.replace(str(source), "X")


@pytest.mark.parametrize("at_once", [False, True])
def test_a_flight_recorder_keeps_what_came_before(
    tmp_path: Path, at_once: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A packet a second; the breach is in the middle of it."""
    dialogue = credit_overrun()
    octets = written(dialogue)
    path = tmp_path / "breach.pcapng"
    slow = bytearray(octets)
    starts = [24]
    while starts[-1] < len(slow):
        at = starts[-1]
        slow[at : at + 4] = (1_700_000_000 + len(starts) - 1).to_bytes(4, "little")
        starts.append(at + 16 + int.from_bytes(slow[at + 8 : at + 12], "little"))
    reference = tmp_path / "slow.pcap"
    reference.write_bytes(slow)
    breach = objects(amqpscope(capsys, "check", "--format", "ndjson", reference).out)[0]
    assert breach["rule"] == "amqp10/L-CREDIT"
    with sniffing("--until", "L-CREDIT", "-w", str(path), "--before", "5s") as running:
        breached = len(slow) if at_once else starts[int(str(breach["packet"]))]
        running.feed(bytes(slow[:breached]))
        running.line_with("L-CREDIT")
        running.feed(bytes(slow[breached:]))
        status, said = running.ended()
    assert status == 1
    frames = objects(amqpscope(capsys, "read", "--format", "ndjson", path).out)
    times = [str(frame["time"]) for frame in frames]
    second = int(str(breach["packet"])) - 1
    assert times[0] >= f"2023-11-14T22:13:{20 + second - 6:02}"
    assert times[0] <= f"2023-11-14T22:13:{20 + second - 3:02}"
    recorded = next(
        frame["packet"]
        for frame in frames
        if str(frame["time"]).startswith(f"2023-11-14T22:13:{20 + second:02}")
    )
    assert recorded != breach["packet"]
    assert (
        f"stopped by --until: amqp10/L-CREDIT in packet {recorded} of {path} "
        f"(packet {breach['packet']} of this run)"
    ) in said


def test_without_the_breach_nothing_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "breach.pcapng"
    done = run(written(clean()), "--until", "amqp10/*", "-w", str(path), "--quiet")
    assert done.returncode == 0, done.stderr
    assert b"no rule of --until was broken" in done.stderr
    assert not path.exists() or not objects(amqpscope(capsys, "read", "--format", "ndjson", path).out)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["-i", "no-such-interface"], "no interface no-such-interface: there are "),
        (["--until", "amqp10/NO-SUCH"], "--until amqp10/NO-SUCH: there is no such rule; "),
        (["--rotate", "5"], "--rotate '5': must be a size"),
        (["--rotate", "5MB"], "--rotate: needs -w"),
        (["--embed-keys", "-w", "x.pcapng"], "--embed-keys: needs -w and --tls-keylog"),
        (["--before", "5s", "-w", "x.pcapng"], "--before: needs --until and -w"),
        (["--duration", "never"], "--duration 'never': must be a number with a unit"),
        (["-i", "-", "-i", "lo"], "-i - cannot be combined with another interface"),
        (["--files", "3"], "--files: needs --rotate"),
        (["--count", "-3"], "--count -3: must be at least 1"),
        (["--count", "0"], "--count 0: must be at least 1"),
        (["--files", "0"], "--files 0: must be at least 1"),
        (["--only", "transfers"], "--only 'transfers': is no frame"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    options: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "sniff", *options)
    assert (result.status, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert what in line


@pytest.mark.parametrize("link", [False, True])
def test_what_is_read_from_standard_input_is_not_written_over(tmp_path: Path, link: bool) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(written(clean()))
    named = tmp_path / "link.pcap"
    named.symlink_to(path)
    line = [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", "-w", str(named if link else path)]
    with path.open("rb") as source:
        done = subprocess.run(line, stdin=source, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(": this run already reads or writes this file\n")
    assert path.read_bytes() == written(clean())


def test_what_is_no_capture_is_one_line() -> None:
    done = run(b"this is no capture" * 10)
    assert done.returncode == 2
    assert b"standard input: not a capture file" in done.stderr
    assert b"Traceback" not in done.stderr
    empty = run(b"")
    assert empty.returncode == 2
    assert b"standard input: " in empty.stderr


def test_nothing_of_amqp_is_reported_as_such() -> None:
    other = b"".join(written(clean())[:24] for _ in range(1))
    done = run(other)
    assert done.returncode == 3
    assert b"no AMQP 1.0 or 0-9-1 was seen" in done.stderr
    assert run(other, "--allow-empty").returncode == 0


def test_a_reader_that_has_gone_ends_it() -> None:
    with sniffing() as running:
        assert running.process.stdout is not None
        running.feed(written(clean()))
        running.line_with("open")
        running.process.stdout.close()
        running.feed(written(credit_overrun())[24:])
        running.process.stdin.close()
        status, said = running.ended()
    assert status in (0, 1)
    assert "Traceback" not in said


def test_a_reader_that_sleeps_loses_frames_and_no_packets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hundreds of connections, of which nobody reads a line."""
    one = written(credit_overrun())
    head, packets = one[:24], one[24:]
    port = (51034).to_bytes(2, "big")
    path = tmp_path / "seen.pcapng"
    times = 700

    def feed() -> None:
        running.feed(head)
        for number in range(times):
            running.feed(packets.replace(port, (20_000 + number).to_bytes(2, "big")))

    with sniffing("-vv", "-w", str(path)) as running:
        feeder = threading.Thread(target=feed)
        feeder.start()
        feeder.join(PATIENCE)
        assert not feeder.is_alive(), "packets had to wait for the reader"
        assert running.process.stdin is not None
        running.process.stdin.close()
        status, said = running.ended()
    assert status == 1
    assert "not shown: frames came faster than the output" in said
    (census,) = objects(amqpscope(capsys, "read", "--count", "--format", "json", path).out)
    assert census["connections"] == times


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "sniff", "--list")
    assert result.status == 0
    names = [line.split()[0] for line in result.lines]
    assert "lo" in names
    assert names[-1] == "any"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="it takes root to be less")
def test_without_permission_three_ways_are_named() -> None:
    done = subprocess.run(
        ["setpriv", "--bounding-set=-net_raw", sys.executable, "-m", "amqpscope", "sniff", "-i", "lo"],
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.decode().splitlines()
    for way in ("setcap cap_net_raw", "sudo", "tcpdump -U -w -"):
        assert way in line
