"""Runs one recording: a capture tool and a server beside a client, each started, watched and ended here.

How it works: the server is started and its port tried until it answers; these attempts would be captured
too, so the capture tool comes after it. Its own "listening" line is awaited, so that the client's TCP
handshake is never missed. The client ends by itself. The tool is left running until no packet came for a
moment and is then interrupted, which makes it write its counters; a loss reported there fails the
recording. Every process gets a group of its own and only those groups are ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

PORT = 5672
PEER_HOST_NAME = "peer.example"
START_SECONDS = 60.0  # the slowest server (RabbitMQ) needs about 10
CLIENT_SECONDS = 30.0
STOP_SECONDS = 20.0
QUIET_SECONDS = (
    0.5  # nothing captured for this long after the client has ended: the closing handshake is over
)


class RecordingFailed(Exception):
    """What went wrong, in a sentence for the person at the terminal."""


def tool(name: str, *extra_folders: str) -> str:
    """The path of a program found on PATH (or in extra_folders, tried first)."""
    found = shutil.which(name, path=os.pathsep.join([*extra_folders, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise RecordingFailed(f"{name} is not installed: captures/README.md says which packages are needed")
    return found


JAVA = "/usr/share/java"  # Debian's libraries for Java
INTERPRETERS = {
    ".js": lambda: [tool("node")],
    ".rb": lambda: [tool("ruby")],
    ".java": lambda: [tool("java"), "-cp", f"{JAVA}/amqp-client.jar:{JAVA}/slf4j-api.jar"],
}


def command_of(script: Path) -> list[str]:
    """How a peer's script is run: by this Python or as its ending asks, on a machine called PEER_HOST_NAME.

    Some peers put the host's name on the wire (Cyrus SASL does in ANONYMOUS), so each gets a UTS namespace
    with another one.
    """
    namespace = [tool("unshare"), *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--uts"]
    renamed = [*namespace, tool("sh"), "-c", f'{tool("hostname")} {PEER_HOST_NAME} && exec "$@"', "sh"]
    return [*renamed, *INTERPRETERS.get(script.suffix, lambda: [sys.executable])(), str(script)]


def answers(address: str) -> bool:
    """Whether something accepts TCP connections on the AMQP port of a loopback address."""
    try:
        with socket.create_connection((address, PORT), timeout=1):
            return True
    except OSError:
        return False


class Running:
    """A process in a group of its own; leaving the `with` block ends it, gently (`ending`), then hard."""

    def __init__(
        self,
        name: str,
        command: list[str],
        log: Path,
        environment: dict[str, str],
        output: Path | None = None,
        ending: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.log = log
        self.ending = ending
        with log.open("wb") as errors, (output or log).open("ab") as standard:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=standard,
                stderr=errors,
                env=environment,
                cwd=log.parent,
                start_new_session=True,
            )

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for number in (self.ending, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            if number is self.ending:
                continue  # once more, hard, for what the leader of the group left behind
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def must_live(self) -> None:
        if self.process.poll() is not None:
            raise RecordingFailed(
                f"{self.name} ended with status {self.process.returncode}: {self.said()[-2000:]}"
            )


def start_server(command: list[str], address: str, folder: Path, environment: dict[str, str]) -> Running:
    """A server that accepts connections on `address`; fails when the address was taken before."""
    if answers(address):
        raise RecordingFailed(f"something already listens on {address} port {PORT}")
    server = Running("the server", command, folder / "server.log", environment)
    limit = time.monotonic() + START_SECONDS
    try:
        while not answers(address):
            server.must_live()
            if time.monotonic() > limit:
                raise RecordingFailed(
                    f"{server.name} did not listen within {START_SECONDS:.0f} s: {server.said()[-2000:]}"
                )
            time.sleep(0.1)
        time.sleep(0.3)  # the attempt just made is over before the capture starts
    except BaseException:
        server.stop()
        raise
    return server


def start_capture(
    interface: str, address: str, pcapng: bool, output: Path, environment: dict[str, str]
) -> Running:
    """tcpdump (dumpcap for pcapng) on one address' AMQP port, into `output`; returns once it captures."""
    what = f"host {address} and tcp port {PORT}"
    if pcapng:
        command = [tool("dumpcap", "/usr/sbin"), "-q", "-i", interface, "-f", what, "-w", "-"]
        ready = "Capturing on"
    else:
        command = [
            tool("tcpdump", "/usr/sbin"),
            "-i",
            interface,
            "-U",
            "--immediate-mode",
            "-B",
            "4096",
            "-s",
            "0",
            "-w",
            "-",
            *what.split(),
        ]
        ready = "listening on"
    capture = Running(
        Path(command[0]).name,
        command,
        output.with_suffix(".log"),
        environment,
        output=output,
        ending=signal.SIGINT,
    )
    limit = time.monotonic() + STOP_SECONDS
    try:
        while ready not in capture.said():
            capture.must_live()
            if time.monotonic() > limit:
                raise RecordingFailed(f"{capture.name} does not capture: {capture.said()}")
            time.sleep(0.1)
        if pcapng:
            time.sleep(1)  # dumpcap says so a little before it does
    except BaseException:
        capture.stop()
        raise
    return capture


def record(
    server: list[str],
    client: list[str],
    address: str,
    interface: str,
    pcapng: bool,
    folder: Path,
    environment: dict[str, str],
) -> Path:
    """Records one client's run against one server and returns the raw capture file, in `folder`."""
    output = folder / ("raw.pcapng" if pcapng else "raw.pcap")
    with start_server(server, address, folder, environment):
        with start_capture(interface, address, pcapng, output, environment) as capture:
            try:
                done = subprocess.run(
                    client,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=folder,
                    timeout=CLIENT_SECONDS,
                )
            except subprocess.TimeoutExpired as late:
                raise RecordingFailed(
                    f"the client did not end within {CLIENT_SECONDS:.0f} s: {late.output!r}"
                ) from None
            if done.returncode != 0:
                raise RecordingFailed(
                    f"the client ended with status {done.returncode}: "
                    + done.stdout.decode(errors="replace")[-2000:]
                )
            size = -1
            limit = time.monotonic() + STOP_SECONDS
            while size != output.stat().st_size and time.monotonic() < limit:
                size = output.stat().st_size
                time.sleep(QUIET_SECONDS)
            capture.must_live()
        counters = capture.said()
    if not pcapng and "\n0 packets dropped by kernel" not in counters:
        raise RecordingFailed(f"packets were lost while capturing: {counters}")
    return output
