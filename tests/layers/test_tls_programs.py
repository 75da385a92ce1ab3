"""TLS of real programs, recorded now: frames are those of the same conversation in the clear.

OpenSSL's s_client and s_server, Node and Python's ssl say the same conversation in TLS 1.2 and 1.3. In CI
they say it in every family of suites.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from support.relay import PATIENCE, Relay, free_port
from support.sampling import in_ci
from support.tls import VERSIONS, credentials

from .test_tls import SUITES, Read, talk

pytest.importorskip("cryptography")

NODE = """
const [port, version, suites] = process.argv.slice(1);
const options = {port, host: '127.0.0.1', rejectUnauthorized: false};
options.minVersion = options.maxVersion = version;
if (suites) options.ciphers = suites;
const socket = require('tls').connect(options);
process.stdin.pipe(socket);
socket.pipe(process.stdout);
"""

PAIRS = [("openssl", "python"), ("python", "openssl"), ("node", "python")]
DEFAULT = [("1.2", ""), ("1.3", "")]
ALL = [(version, suite) for version in ("1.2", "1.3") for suite in SUITES[version] if "NULL" not in suite]

# Python's ssl cannot choose among the suites of TLS 1.3.
CASES = [
    (*(("openssl", "openssl") if version == "1.3" and "CCM" in suite else pair), version, suite)
    for version, suite in (ALL if in_ci() else DEFAULT)
    for pair in PAIRS
]

PRE_SHARED = [
    ("1.2", "PSK-AES128-GCM-SHA256"),
    ("1.2", "ECDHE-PSK-CHACHA20-POLY1305"),
    ("1.2", "DHE-PSK-AES256-CBC-SHA384"),
    ("1.2", "RSA-PSK-AES128-CBC-SHA256"),
    ("1.3", "TLS_AES_128_GCM_SHA256"),
]
"""Suites for a key that both peers have (RFC 4279, RFC 8446, section 4.2.11)."""


class Piped:
    """A peer that is a program: what it is to say goes into it, what it hears comes out of it."""

    def __init__(self, line: list[str]) -> None:
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.timer = threading.Timer(PATIENCE, self.process.kill)
        self.timer.start()

    def send(self, octets: bytes) -> None:
        pipe: IO[bytes] | None = self.process.stdin
        assert pipe is not None
        pipe.write(octets)
        pipe.flush()

    def receive(self, size: int) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.read(size)

    def close(self) -> None:
        self.timer.cancel()
        self.process.kill()
        self.process.communicate()


class Python:
    """A peer of Python's ssl. connected: gives its socket, which is waited for in a thread."""

    def __init__(self, connected: Callable[[], ssl.SSLSocket]) -> None:
        self.socket: ssl.SSLSocket | None = None
        self.connected = connected
        self.thread = threading.Thread(target=self.connect, daemon=True)
        self.thread.start()

    def connect(self) -> None:
        self.socket = self.connected()

    def ready(self) -> ssl.SSLSocket:
        self.thread.join(PATIENCE)
        assert self.socket is not None
        return self.socket

    def send(self, octets: bytes) -> None:
        self.ready().sendall(octets)

    def receive(self, size: int) -> bytes:
        got = b""
        while len(got) < size and (more := self.ready().recv(size - len(got))):
            got += more
        return got

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()


Peer = Piped | Python


def limited(context: ssl.SSLContext, version: str, suites: str) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = VERSIONS[version]
    if suites and version == "1.2":
        context.set_ciphers(f"{suites}:@SECLEVEL=0")
    return context


def openssl_options(version: str, suites: str, more: Sequence[str]) -> list[str]:
    options = ["-quiet", "-tls1_3" if version == "1.3" else "-tls1_2", *more]
    if suites:
        options += ["-ciphersuites", suites] if version == "1.3" else ["-cipher", f"{suites}:@SECLEVEL=0"]
    return options


@contextmanager
def server(kind: str, version: str, suites: str, more: Sequence[str]) -> Iterator[tuple[int, Peer]]:
    """A server that listens, and its port. more: options of OpenSSL's programs."""
    peer: Peer
    if kind == "openssl":
        port = free_port()
        line = ["openssl", "s_server", "-port", str(port), "-cert", credentials(), "-naccept", "1"]
        peer = Piped([*line, *openssl_options(version, suites, more)])
        listening(port)
        yield port, peer
    else:
        context = limited(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), version, "")
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.load_cert_chain(credentials())
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(PATIENCE)
        peer = Python(lambda: context.wrap_socket(listener.accept()[0], server_side=True))
        yield int(listener.getsockname()[1]), peer
        listener.close()
    peer.close()


def listening(port: int) -> None:
    """Wait until somebody listens there, without a connection of our own."""
    row = f"0100007F:{port:04X} 00000000:0000 0A", f"00000000:{port:04X} 00000000:0000 0A"
    deadline = time.monotonic() + PATIENCE
    while not any(one in tables() for one in (*row, f"{'0' * 32}:{port:04X} {'0' * 32}:0000 0A")):
        assert time.monotonic() < deadline


def tables() -> str:
    files = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    return "".join(file.read_text() for file in files if file.exists())


def client(kind: str, version: str, suites: str, more: Sequence[str], port: int, keylog: Path) -> Peer:
    if kind == "openssl":
        line = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-keylogfile", str(keylog)]
        return Piped([*line, *openssl_options(version, suites, more)])
    if kind == "node":
        return Piped(["node", f"--tls-keylog={keylog}", "-e", NODE, str(port), f"TLSv{version}", suites])
    context = limited(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), version, suites)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.keylog_filename = str(keylog)
    return Python(lambda: context.wrap_socket(socket.create_connection(("127.0.0.1", port), PATIENCE)))


def said(
    tmp_path: Path, talker: str, listener: str, version: str, suites: str, more: Sequence[str] = ()
) -> Relay:
    """What two programs say to each other, which is read like the same in the clear."""
    for program in {talker, listener} - {"python"}:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not Path("/proc/net/tcp").exists():
        pytest.skip("no table of the listening ports")
    turns = talk()
    keylog = tmp_path / "keys.txt"
    with server(listener, version, suites, more) as (port, served), Relay(port) as relay:
        asks = client(talker, version, suites, more, relay.port, keylog)
        for direction, octets in turns:
            peers = (asks, served)
            peers[direction].send(octets)
            assert peers[1 - direction].receive(len(octets)) == octets
        asks.close()
    read, clear = Read(relay.turns, keylog.read_bytes()), Read(turns)
    assert [one[:4] for one in read.frames] == [one[:4] for one in clear.frames]
    assert [one[0:2] for one in read.findings] == [one[0:2] for one in clear.findings] != []
    facts = read.connection.tls
    assert facts is not None and facts.version == f"TLS {version}" and not facts.unread
    return relay


@pytest.mark.parametrize(("talker", "listener", "version", "suites"), CASES)
def test_a_conversation_of_two_programs(
    tmp_path: Path, talker: str, listener: str, version: str, suites: str
) -> None:
    said(tmp_path, talker, listener, version, suites)


@pytest.mark.parametrize(("version", "suites"), PRE_SHARED if in_ci() else [PRE_SHARED[0], PRE_SHARED[-1]])
def test_keys_that_are_shared_before(tmp_path: Path, version: str, suites: str) -> None:
    said(tmp_path, "openssl", "openssl", version, suites, ["-psk", "c0ffee" * 8])


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_handshake_messages_over_several_records(tmp_path: Path, version: str) -> None:
    relay = said(tmp_path, "openssl", "openssl", version, "", ["-max_send_frag", "512"])
    server_hello = b"".join(turn.octets for turn in relay.turns[:2] if turn.direction == 1)
    assert len(server_hello) > 1024
