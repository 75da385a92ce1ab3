"""Each packet of a recording in TLS lost once: what the loss does not touch is read as before.

With AMQPSCOPE_CAPTURES=FOLDER captures there that have a key log `keys/NAME.keys` are tried, too. `make test`
tries a share of 100 packets, CI all.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from support.capture_files import Record, pcap
from support.damage import Packet, packets_in
from support.sampling import in_ci, share

import amqpscope
from amqpscope.input.capture import CaptureOptions
from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.model.records import FrameRecord

pytest.importorskip("cryptography")

PLACES = 100
OWN = Path(__file__).resolve().parents[2] / "captures" / "tls"
FOLDERS = [Path(folder) for folder in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep) if folder]
RECORDED = [
    (OWN / "rabbitmq-rsa.pcap", OWN / "test-key-of-rabbitmq-rsa.pem"),
    *(
        (next(keys.parent.parent.glob(f"{keys.stem}.pcap*")), keys)
        for folder in FOLDERS
        for keys in sorted((folder / "keys").glob("*.keys"))
    ),
]

Place = tuple[tuple[str, int], tuple[str, int]]
"""Who sends, and who receives."""


class Seen:
    """What is read of packets: the frames of each direction, and what certainly is a fault."""

    def __init__(self, packets: list[Packet], keys: Path) -> None:
        records = [Record(one.time, one.data, one.wire) for one in packets]
        octets = pcap(records, magic=0xA1B23C4D, link_type=packets[0].link_type)
        private = keys.suffix == ".pem"
        secrets = tls_secrets([] if private else [str(keys)], [str(keys)] if private else [])
        options = CaptureOptions(judge=True, profile="none", secrets=Secrets(secrets))
        self.frames: dict[Place, list[FrameRecord]] = {}
        with amqpscope.Capture(io.BytesIO(octets), options) as capture:
            for one in (record for block in capture.blocks() for record in block):
                if one.frame.kind not in ("skipped", "tls") and not one.frame.problems:
                    ends = [one.connection.end(int(one.direction) ^ other) for other in (0, 1)]
                    place = (ends[0], ends[1])
                    self.frames.setdefault(place, []).append(one)
            self.certain = {
                (one.rule, one.peer, one.message) for one in capture.take_findings() if one.certain
            }


def octets_of(frames: list[FrameRecord]) -> list[bytes]:
    return [bytes(one.frame.raw) for one in frames]


def part_of(some: list[bytes], every: list[bytes]) -> bool:
    others = iter(every)
    return all(one in others for one in some)


def untouched(frames: list[FrameRecord], lost: int) -> list[bytes]:
    """The frames of a direction that need no record with octets of a packet.

    A record is decrypted with the packet that completes it: the last record that the packet has a part of is
    the first one that a later packet completes.
    """
    completed = {int(packet) for one in frames for packet in (one.packet, one.last_packet)}
    spoilt = {lost, min((packet for packet in completed if packet > lost), default=lost)}
    return octets_of([one for one in frames if not any(one.packet <= at <= one.last_packet for at in spoilt)])


@pytest.mark.parametrize(("path", "keys"), RECORDED, ids=lambda path: path.stem)
def test_a_lost_packet_costs_what_it_touches(path: Path, keys: Path) -> None:
    packets = packets_in(path.read_bytes())
    whole = Seen(packets, keys)
    assert whole.frames
    numbers = range(1, len(packets) + 1)
    if len(numbers) > PLACES:
        numbers = [1 + at * len(packets) // PLACES for at in range(PLACES)]
    costs = 0
    for lost in numbers if in_ci() else share(numbers, 3, path.stem):
        read = Seen([*packets[: lost - 1], *packets[lost:]], keys)
        assert read.certain <= whole.certain, lost
        for place, frames in whole.frames.items():
            found = octets_of(read.frames.get(place, []))
            assert part_of(found, octets_of(frames)), (lost, place)
            # Of a handshake more may depend on one packet.
            begun = min(int(of[0].packet) for ends, of in whole.frames.items() if set(ends) == set(place))
            if lost >= begun:
                assert part_of(untouched(frames, lost), found), (lost, place)
            costs += len(frames) - len(found)
    assert costs
