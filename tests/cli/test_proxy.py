"""`amqpscope proxy`: its options, and whole runs between a client and a server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import amqpscope
from support.fake_source import packets_of

ROOT = Path(__file__).parents[2]
VIOLATING = ROOT / "captures" / "rules" / "amqp10" / "L-CREDIT" / "violating.pcap"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "rabbit:99999"], "--to rabbit:99999: must be HOST:PORT"),
        (
            ["--to", "rabbit", "--listen", "80"],
            "--listen 80: must be HOST:PORT, for example 127.0.0.1:5673 or ",
        ),
        (["--to", "::1"], "--to ::1: must be HOST:PORT, for example 127.0.0.1:5672 or [::1]:5672"),
        (["--to", "rabbit", "--listen", "0.0.0.0:0"], "--listen 0.0.0.0:0: other machines can reach this"),
        (["--to", "rabbit", "--listen", "[::]:5673"], "--listen [::]:5673: other machines can reach this"),
        (["--to", "rabbit", "--connections", "0"], "--connections 0: must be from 1 to 10000"),
        (["--to", "rabbit", "--to-ca", "ca.pem"], "--to-ca: needs --to-tls"),
        (["--to", "rabbit", "--to-cert", "me.pem"], "--to-cert: needs --to-tls"),
        (["--to", "rabbit", "--to-insecure"], "--to-insecure: needs --to-tls"),
        (["--to", "rabbit", "--to-tls", "--to-key", "k"], "--to-key: needs --to-cert"),
        (["--to", "rabbit", "--listen-key", "k"], "--listen-key: needs --listen-tls"),
        (
            ["--to", "rabbit", "--to-tls", "--to-insecure", "--to-ca", "ca.pem"],
            "--to-insecure: cannot be combined with --to-ca",
        ),
        (["--to", "rabbit", "--to-tls", "--to-ca", "none.pem"], "--to-ca none.pem: No such file"),
        (["--to", "rabbit", "--top", "--quiet"], "--top: cannot be combined with --quiet"),
        (["--to", "rabbit", "--rotate", "1h"], "--rotate: needs -w"),
        ([], "Missing option '--to'"),
    ],
)
def test_options_that_make_no_sense(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "proxy", "--no-config", *arguments)
    assert result.status == 2
    assert words in " ".join(result.err.split())


class Run:
    """The program between a client and a server, both of which are this test."""

    def __init__(self, *arguments: str) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        target = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.program = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "amqpscope",
                "proxy",
                "--no-config",
                "--listen",
                "127.0.0.1:0",
                "--to",
                target,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "120"},
        )
        assert self.program.stderr is not None
        self.began = self.program.stderr.readline()
        self.address = ("127.0.0.1", int(self.began.split(" for ")[0].rpartition(":")[2]))

    def talk(self) -> None:
        """The client and the server say what the peers of the capture say, and end."""
        with socket.create_connection(self.address) as client, self.listener.accept()[0] as server:
            first = None
            for _, packet in packets_of(VIOLATING.read_bytes()):
                segment = packet[34 : 14 + int.from_bytes(packet[16:18], "big")]
                first = first or segment[:2]
                octets = segment[segment[12] >> 4 << 2 :]
                by, to = (client, server) if segment[:2] == first else (server, client)
                by.sendall(octets)
                got = b""
                while len(got) < len(octets):
                    got += to.recv(len(octets) - len(got))
                assert got == octets
            client.shutdown(socket.SHUT_WR)
            assert server.recv(1) == b""
            server.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""

    def end(self, number: int) -> tuple[int, str, str]:
        """Send the signal; the exit status, and what was written."""
        self.program.send_signal(number)
        out, err = self.program.communicate()
        self.listener.close()
        return self.program.returncode, out, err


def test_a_run_ends_by_a_signal_with_its_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "seen.pcapng"
    run = Run("-w", str(path))
    assert run.began.endswith("; press Ctrl-C to stop\n")
    run.talk()
    status, out, err = run.end(signal.SIGINT)
    assert status == 130
    assert "!! error amqp10/L-CREDIT by the client in packet" in out
    assert ": 1 error in 15 frames on 1 connection; " in out
    assert err == f"amqpscope: recorded: {path}\n"
    check = amqpscope(capsys, "check", "--no-config", str(path))
    assert check.status == 1
    assert "amqp10/L-CREDIT" in check.out
    assert b"error amqp10/L-CREDIT by the client" in path.read_bytes()
