"""tshark as a second opinion: it decrypts as many octets of each direction as frames are made of here.

With AMQPSCOPE_CAPTURES=FOLDER captures there that have a key log `keys/NAME.keys` are compared, too.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.conversation import Conversation
from support.tls import Ends
from support.tshark import tshark_version

import amqpscope
from amqpscope.input.capture import CaptureOptions
from amqpscope.input.key_log import tls_secrets

from .test_tls import recorded, talk

pytest.importorskip("cryptography")
pytestmark = pytest.mark.skipif(not tshark_version(), reason="tshark is not installed")

FOLDERS = [Path(folder) for folder in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep) if folder]
RECORDED = [path for folder in FOLDERS for path in sorted((folder / "keys").glob("*.keys"))]

SUITES = [("1.3", "TLS_CHACHA20_POLY1305_SHA256"), ("1.2", "AES256-CCM8"), ("1.0", "AES128-SHA")]


def followed(capture: Path, keys: Path, stream: int) -> list[int]:
    """How many octets tshark decrypts in the two directions of a TCP stream, in ascending order."""
    command = ["tshark", "-q", "-r", str(capture), "-o", f"tls.keylog_file:{keys}"]
    shown = subprocess.run(
        [*command, "-z", f"follow,tls,raw,{stream}"], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    begin = next(number for number, line in enumerate(shown) if line.startswith("Node 1")) + 1
    sizes = [0, 0]
    for line in shown[begin:]:
        if not line.startswith("="):
            sizes[line.startswith("\t")] += len(line.strip()) // 2
    return sorted(sizes)


def agree(capture: Path, keys: Path) -> int:
    """Compare all streams of a capture. Gives how many octets there were."""
    with amqpscope.Capture(capture, CaptureOptions(secrets=tls_secrets([str(keys)]))) as read:
        sizes: dict[int, list[int]] = {}
        for record in read:
            own = sizes.setdefault(record.connection.stream, [0, 0])
            own[int(record.direction)] += int(record.frame.size)
            assert record.frame.kind != "skipped"
        assert all(one.connection.tls and one.connection.tls.decrypted for one in read.connections)
    for stream, own in sizes.items():
        assert sorted(own) == followed(capture, keys, stream), stream
    return sum(sum(own) for own in sizes.values())


@pytest.mark.parametrize(("version", "suite"), SUITES)
def test_recordings_made_here(tmp_path: Path, version: str, suite: str) -> None:
    turns = talk()
    recording = recorded(turns, Ends.make(version, suite))
    d = Conversation(server="10.0.0.2:5671")
    for turn in recording.turns:
        (d.client if turn.direction == 0 else d.server).say(turn.octets)
    capture, keys = tmp_path / "a.pcap", tmp_path / "a.keys"
    capture.write_bytes(d.pcap())
    keys.write_bytes(recording.keylog)
    assert agree(capture, keys) == sum(len(turn.octets) for turn in turns)


@pytest.mark.parametrize("keys", RECORDED, ids=lambda path: path.stem)
def test_recorded_captures(keys: Path) -> None:
    assert agree(next(keys.parent.parent.glob(f"{keys.stem}.pcap*")), keys) > 1000
