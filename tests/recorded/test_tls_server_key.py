"""A recording of RSA key exchange, decrypted with the private key of the server; tshark agrees."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import amqpscope

pytest.importorskip("cryptography")

FOLDER = Path(__file__).resolve().parents[2] / "captures" / "tls"
CAPTURE = FOLDER / "rabbitmq-rsa.pcap"
KEY = FOLDER / "test-key-of-rabbitmq-rsa.pem"

EACH = [
    *("header", "connection.start", "connection.start-ok", "connection.tune", "connection.tune-ok"),
    *("connection.open", "connection.open-ok", "channel.open", "channel.open-ok"),
    *("queue.declare", "queue.declare-ok"),
    *(("basic.publish", "content-header", "body") * 3),
    *(("basic.get", "basic.get-ok", "content-header", "body", "basic.ack") * 3),
    *("channel.close", "channel.close-ok", "connection.close", "connection.close-ok"),
]
"""What pika and RabbitMQ said on each of the two connections."""


def test_all_frames_are_there() -> None:
    found: dict[int, list[str]] = {}
    for record in amqpscope.read(CAPTURE, tls_key=[str(KEY)]):
        assert not record.frame.problems and record.frame.kind != "skipped"
        found.setdefault(record.connection.stream, []).append(record.frame.name)
    assert list(found.values()) == [EACH, EACH]
    assert list(amqpscope.read(CAPTURE)) == []


def test_tshark_finds_as_many() -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    command = ["tshark", "-r", str(CAPTURE), "-o", f'uat:rsa_keys:"{KEY}",""', "-T", "fields"]
    command += ["-Y", "amqp", "-e", "amqp.method.method", "-e", "amqp.type"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    if not shown:
        pytest.skip("this tshark cannot take a private key")
    kinds = ",".join(line.split("\t")[1] for line in shown.splitlines() if "\t" in line)
    assert len([kind for kind in kinds.split(",") if kind]) == 2 * (len(EACH) - 1)
