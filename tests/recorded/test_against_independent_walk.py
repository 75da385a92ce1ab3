"""The census: in every capture of captures/, each direction holds just the frames an independent walk finds.

The walk (support.independent) shares no line with the product: scapy reads the packets, segments are put in
their places in the plainest way, and only sizes, data offsets and descriptors are looked at. It stops where
octets are missing or are no frame; as far as it comes, the product has to come too, in the same steps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.independent import Walk, walk_capture
from support.tcp_writer import Capture as TcpCapture

from amqpscope.input.capture import Capture
from amqpscope.model.records import FrameRecord, endpoint
from amqpscope.report.frame_counts import Census
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.values import Described
from dissectors.interface import Frame

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
SERVER_PORT = ":5672"  # of every server in captures/, and of no client

Ends = tuple[str, str]
Step = tuple[int, str, int, bytes]  # packet of the first octet, name, channel, octets behind the header


@cache
def walks(path: Path) -> list[Walk]:
    return walk_capture(path)


@cache
def records(path: Path) -> list[FrameRecord]:
    return list(Capture(path))


def walked(path: Path) -> dict[Ends, list[list[Step]]]:
    """Of each source and destination, the walks in the order of the connections."""
    found: dict[Ends, list[list[Step]]] = defaultdict(list)
    for walk in walks(path):
        steps = [(*frame, body) for frame, body in zip(walk.frames, walk.bodies, strict=True)]
        found[walk.source, walk.destination].append(steps)
    return found


def read(path: Path) -> dict[Ends, list[list[Step]]]:
    """The same of what the product reads."""
    directions: dict[tuple[Ends, int], list[Step]] = defaultdict(list)
    for record in records(path):
        connection, direction, frame = record.connection, int(record.direction), record.frame
        ends = (endpoint(*connection.end(direction)), endpoint(*connection.end(1 - direction)))
        step = (int(record.packet), name_of(frame), max(0, int(frame.channel)), body_of(frame))
        directions[ends, connection.stream].append(step)
    found: dict[Ends, list[list[Step]]] = defaultdict(list)
    for (ends, _), steps in sorted(directions.items(), key=lambda item: item[0][1]):
        found[ends].append(steps)
    return found


def name_of(frame: Frame) -> str:
    """The frame's name as the walk gives it."""
    body = frame.body
    if isinstance(body, ProtocolHeader):
        octets = bytes(map(int, (body.protocol_id, body.major, body.minor, body.revision)))
        return f"header {octets[0]}" if octets[1:] == b"\x01\0\0" else f"header {octets.hex()}"
    if isinstance(body, Described):
        code = body.descriptor
        return f"unknown {int(code):#x}" if isinstance(code, int) else f"unknown {code}"
    return "undescribed" if frame.name == "undecodable" else frame.name


def body_of(frame: Frame) -> bytes:
    return b"" if frame.kind == "header" else frame.raw[8 + len(frame.extended_header) :]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_frame_by_frame(path: Path) -> None:
    whole = all(walk.stopped == "" for walk in walks(path))
    ours, theirs = read(path), walked(path)
    assert theirs
    if whole:
        assert ours == theirs
    for ends, connections in theirs.items():
        for n, steps in enumerate(connections):
            if steps:
                assert ours[ends][n][: len(steps)] == steps


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_census_of_client_and_server(path: Path) -> None:
    census = Census()
    census.add(records(path))
    ours = {
        "client": {name: client for name, client, _ in census.rows() if client},
        "server": {name: server for name, _, server in census.rows() if server},
    }
    counted = {"client": Counter[str](), "server": Counter[str]()}
    for walk in walks(path):
        peer = "server" if walk.source.endswith(SERVER_PORT) else "client"
        for name, count in walk.counts.items():
            kind = name.split(" ")[0]
            counted[peer]["undecodable" if kind in ("unknown", "undescribed") else kind] += count
    if all(walk.stopped == "" for walk in walks(path)):
        assert ours == counted
        assert census.frames == sum(len(walk.frames) for walk in walks(path))
    for peer, reported in ours.items():
        assert {name for name, count in counted[peer].items() if reported.get(name, 0) < count} == set()


def test_frames_in_pieces_out_of_order_and_twice(tmp_path: Path) -> None:
    """What TCP may do with frames; in captures/ it hardly did."""
    capture = TcpCapture("sll2")
    tcp = capture.connection()
    tcp.handshake()
    for n, end in enumerate((tcp.client, tcp.server)):
        end.send(amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c" * 30)), each=5)
        with capture.reordered():
            end.send(
                amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)), cut=[3]
            )
            end.send(amqp.frame(channel=n) + amqp.frame(amqp.end(), extended=b"more"), each=9)
        end.retransmit(skip=2)
        end.send(amqp.frame(amqp.close()))
        end.retransmit()
    tcp.goodbye()
    path = capture.write(tmp_path / "pieces.pcapng")
    first_packets = [step[0] for steps in read(path).values() for step in steps[0]]
    assert len(set(first_packets)) > 8
    test_frame_by_frame(path)


def test_the_captures_hold_every_performative_and_sasl_frame() -> None:
    """So that the census above is one of all there are."""
    together = sum((walk.counts for path in FILES for walk in walks(path)), Counter[str]())
    assert set(together) >= {
        *("header 0", "header 3", "empty"),
        *("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"),
        *("sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome"),
    }
