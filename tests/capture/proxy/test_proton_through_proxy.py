"""A client and a server of Qpid Proton with the proxy between them: both ends see the same octets."""

from __future__ import annotations

import ssl
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from support.proxied import PATIENCE
from support.relay import Relay, free_port
from support.tcp_writer import Capture
from support.tls import Turn, credentials

import amqpscope
from amqpscope.capture.live.recorded import SourceRecorder
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.proxy.encryption import client_context, server_context
from amqpscope.capture.proxy.source import ProxySource
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.capture.segment import Segment

from .test_proxied_frames import Nothing, findings, frames

TESTS = Path(__file__).parents[2]
COUNT = 20


def proton_with_tls() -> bool:
    """Whether Qpid Proton is here, and was compiled with OpenSSL."""
    try:
        return bool(import_module("proton").SSL.present())
    except ImportError:
        return False


pytestmark = pytest.mark.skipif(not proton_with_tls(), reason="python-qpid-proton is not here, or has no TLS")


class Passed(Nothing):
    """What the packets of the proxy carry, by the key of a direction: the client's comes first."""

    def __init__(self) -> None:
        self.streams: dict[bytes, bytearray] = {}

    def segment(self, segment: Segment) -> None:
        octets = segment.buf[int(segment.start) : int(segment.end)]
        self.streams.setdefault(bytes(segment.key), bytearray()).extend(octets)


def peer(*line: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(TESTS / "support" / "proton_peers.py"), *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def forwarded(source: ProxySource, decoder: PacketDecoder, client: subprocess.Popen[str]) -> None:
    """Turn the proxy until the client is done and both sides have ended."""
    deadline = time.monotonic() + PATIENCE
    while client.poll() is None or source._relays:
        assert time.monotonic() < deadline, source.take_events()
        source.wait(0.002)
        while source.take(decoder):
            pass
    assert source.take_events() == []


def streams(turns: list[Turn]) -> list[bytes]:
    return [b"".join(turn.octets for turn in turns if turn.direction == side) for side in (0, 1)]


def captured(turns: list[Turn], path: Path) -> Path:
    """A capture of what a relay has seen."""
    capture = Capture()
    connection = capture.connection()
    connection.handshake()
    ends = (connection.client, connection.server)
    for turn in turns:
        ends[turn.direction].send(turn.octets, each=1400)
        ends[1 - turn.direction].ack()
    connection.goodbye()
    return capture.write(path)


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_a_client_and_a_server_of_proton(tls: bool, tmp_path: Path) -> None:
    port, path = free_port(), tmp_path / "recorded.pcapng"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
    if context is not None:
        context.load_cert_chain(credentials())
    options = {}
    if tls:
        options["to_tls"] = client_context(None, None, None, True)
        options["listen_tls"] = server_context(credentials(), None)
    passing = Passed()
    server = peer("serve", str(port), str(COUNT))
    clients: list[subprocess.Popen[str]] = []
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        # With TLS, the relay at the server ends it; the one at the client sees the octets of TLS.
        with Relay(port, tls=context) as behind:
            source = ProxySource(("127.0.0.1", 0), ("127.0.0.1", behind.port), **options)
            with Relay(source.address[1]) as before:
                clients.append(peer("send", str(before.port), str(COUNT), *(["tls"] if tls else [])))
                recorder = PcapngRecorder(str(path), "test")
                decoder = PacketDecoder(passing)
                decoder.recorder = recorder
                recorded = SourceRecorder(source, recorder, "")
                forwarded(source, decoder, clients[0])
                decoder.finish()
                recorded.finish(0)
                source.close()
        printed = clients[0].communicate(timeout=PATIENCE)[0].split()
        assert server.wait(PATIENCE) == 0
    finally:
        for process in (server, *clients):
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    sizes = [len(f"order {number} ") + number * number * 400 for number in range(COUNT)]
    assert printed == [str(size) for size in sizes]
    passed = [bytes(stream) for stream in passing.streams.values()]
    assert passed == streams(behind.turns)
    assert min(len(stream) for stream in passed) > 900_000
    if not tls:
        assert streams(before.turns) == passed
    else:
        assert b"AMQP" not in streams(before.turns)[0]
    beside = captured(behind.turns, tmp_path / "beside.pcap")
    assert [one["name"] for one in frames(path)].count("transfer") >= 2 * COUNT
    assert sorted(findings(path)) == sorted(findings(beside))
    assert sum(1 for _ in amqpscope.read(path)) == sum(1 for _ in amqpscope.read(beside))
