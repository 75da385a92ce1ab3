"""`amqpscope why --end` of a capture in which there is no AMQP says what is there, as `check` does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import amqpscope
from support.tcp_writer import Capture


def test_of_tls_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = Capture()
    tcp = writer.connection(server="10.0.0.2:5671")
    tcp.handshake()
    tcp.client.send(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    tcp.server.send(b"\x16\x03\x03\x00\x05\x02\x00\x00\x01\x00")
    path = writer.write(tmp_path / "tls.pcap")
    result = amqpscope(capsys, "why", "--end", path)
    assert result.status == 3
    assert "no AMQP 1.0 or 0-9-1 to explain: 1 TCP connection, 1 of TLS (encrypted)" in result.err
