"""What reading has to get right, from a capture file to the lines of `read --format ndjson`.

Each capture is made by hand; what is expected is written out.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.tcp_writer import Capture

import amqpscope
from amqpscope.cli.main import app

CLIENT, SERVER = "10.0.0.1:51034", "10.0.0.2:5672"
CLIENT6, SERVER6 = "[fd00::1]:51034", "[fd00::2]:5672"

VERSION = {"major": 1, "minor": 0, "revision": 0}


def read(*paths: Path) -> list[dict[str, Any]]:
    written = io.StringIO()
    with redirect_stdout(written):
        app(["read", "--format", "ndjson", *map(str, paths)], standalone_mode=False)
    return [json.loads(line) for line in written.getvalue().splitlines()]


def reported(lines: list[dict[str, Any]], *members: str) -> list[tuple[Any, ...]]:
    """Of each line these members, of its problems their codes."""
    return [
        tuple(
            [problem["code"] for problem in line["problems"]] if member == "problems" else line.get(member)
            for member in members
        )
        for line in lines
    ]


# ---- a message split over three transfers ------------------------------------------------------------------


def test_a_message_split_over_three_transfers(tmp_path: Path) -> None:
    message = amqp.properties(message_id="m-1", subject="split") + amqp.data(b"x" * 150)
    parts = amqp.transfer_frames(message, 100, channel=2, handle=5, delivery_id=7, delivery_tag=b"t")
    assert len(parts) == 3
    between = amqp.frame(
        amqp.transfer(handle=6, delivery_id=8, delivery_tag=b"u"), amqp.amqp_value("whole"), channel=2
    )
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER)
    tcp.handshake()
    tcp.client.send(amqp.AMQP_HEADER)
    for part in (parts[0], between, *parts[1:]):
        tcp.client.send(part, each=60)
    lines = read(capture.write(tmp_path / "one.pcap"))
    assert reported(
        lines[1:], "packet", "last_packet", "channel", "size", "payload", "fields", "problems"
    ) == [
        (5, 6, 2, 100, 76, {"handle": 5, "delivery-id": 7, "delivery-tag": "74", "more": True}, []),
        (7, None, 2, 31, 10, {"handle": 6, "delivery-id": 8, "delivery-tag": "75"}, []),
        (8, 9, 2, 100, 79, {"handle": 5, "more": True}, []),
        (10, None, 2, 36, 20, {"handle": 5}, []),
    ]
    assert reported(lines[1:], "message") == [
        (None,),
        ({"format": 0, "size": 10, "complete": True, "body": [{"section": "amqp-value", "size": 10}]},),
        (None,),
        (
            {
                "format": 0,
                "size": 175,
                "complete": True,
                "properties": {"message-id": "m-1", "subject": "split"},
                "body": [{"section": "data", "size": 155}],
            },
        ),
    ]
    records = list(amqpscope.read(tmp_path / "one.pcap"))
    assembled = records[-1].message
    assert assembled
    assert assembled.octets == message
    assert [section.value for section in assembled.sections()][1] == b"x" * 150


# ---- descriptors in all their forms ------------------------------------------------------------------------

FORMS: list[amqp.DescriptorForm] = ["small", "full", "symbol", "symbol32"]


def everything_described(form: amqp.DescriptorForm) -> Capture:
    """A conversation with each descriptor of its frames, fields and sections in this form."""
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER)
    tcp.handshake()
    tcp.client.send(amqp.SASL_HEADER)
    tcp.client.send(amqp.sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS", descriptor_form=form)))
    tcp.client.send(amqp.AMQP_HEADER)
    tcp.client.send(amqp.frame(amqp.open_(container_id="c", descriptor_form=form)))
    attach = amqp.attach(
        name="link",
        handle=0,
        role=amqp.SENDER,
        source=amqp.source(
            address="from", default_outcome=amqp.released(descriptor_form=form), descriptor_form=form
        ),
        target=amqp.coordinator(capabilities="amqp:local-transactions", descriptor_form=form),
        initial_delivery_count=0,
        descriptor_form=form,
    )
    tcp.client.send(amqp.frame(attach))
    sections = (
        amqp.properties(message_id=1, descriptor_form=form)
        + amqp.application_properties({"k": "v"}, form)
        + amqp.amqp_value("text", form)
    )
    transfer = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", descriptor_form=form)
    tcp.client.send(amqp.frame(transfer, sections))
    rejected = amqp.rejected(
        error=amqp.error(condition="amqp:not-allowed", descriptor_form=form), descriptor_form=form
    )
    state = amqp.transactional_state(txn_id=b"x", outcome=rejected, descriptor_form=form)
    disposition = amqp.disposition(role=amqp.SENDER, first=0, state=state, descriptor_form=form)
    tcp.client.send(amqp.frame(disposition))
    return capture


@pytest.mark.parametrize("form", FORMS)
def test_descriptors_as_small_and_full_ulong_and_as_symbol(form: amqp.DescriptorForm, tmp_path: Path) -> None:
    lines = read(everything_described(form).write(tmp_path / "one.pcap"))
    assert reported(lines, "packet", "kind", "name", "fields", "problems") == [
        (4, "header", "header", {"protocol": "SASL", "protocol-id": 3, **VERSION}, []),
        (5, "sasl", "sasl-init", {"mechanism": "ANONYMOUS"}, []),
        (6, "header", "header", {"protocol": "AMQP 1.0", "protocol-id": 0, **VERSION}, []),
        (7, "amqp", "open", {"container-id": "c"}, []),
        (
            8,
            "amqp",
            "attach",
            {
                "name": "link",
                "handle": 0,
                "role": False,
                "source": {"type": "source", "address": "from", "default-outcome": {"type": "released"}},
                "target": {"type": "coordinator", "capabilities": ["amqp:local-transactions"]},
                "initial-delivery-count": 0,
            },
            [],
        ),
        (9, "amqp", "transfer", {"handle": 0, "delivery-id": 0, "delivery-tag": "74"}, []),
        (
            10,
            "amqp",
            "disposition",
            {
                "role": False,
                "first": 0,
                "state": {
                    "type": "transactional-state",
                    "txn-id": {"binary": "78"},
                    "outcome": {
                        "type": "rejected",
                        "error": {"type": "error", "condition": "amqp:not-allowed"},
                    },
                },
            },
            [],
        ),
    ]
    message = lines[5]["message"]
    assert message["properties"] == {"message-id": {"ulong": 1}}
    assert message["application-properties"] == {"k": "v"}
    assert [part["section"] for part in message["body"]] == ["amqp-value"]


# ---- a start inside a frame --------------------------------------------------------------------------------


def deliveries(count: int) -> bytes:
    """Transfers of 541 octets, with every octet there is in the payload, twice."""
    return b"".join(
        amqp.frame(
            amqp.transfer(handle=0, delivery_id=n, delivery_tag=b"%d" % n), amqp.data(bytes(range(256)) * 2)
        )
        for n in range(10, 10 + count)
    )


FIELDS = [{"handle": 0, "delivery-id": 10 + n, "delivery-tag": f"313{n}"} for n in range(6)]


@pytest.mark.parametrize("start", [1, 4, 8, 100, 530, 540])
def test_a_start_inside_a_frame(start: int, tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER)
    octets = deliveries(4)
    assert len(octets) == 4 * 541
    tcp.client.send(octets[start:], cut=[100, 700])
    tcp.client.send(amqp.frame(amqp.close()))
    lines = read(capture.write(tmp_path / "one.pcap"))
    assert reported(lines, "kind", "name", "size", "fields", "problems") == [
        ("skipped", "skipped", 541 - start, {}, ["cut"]),
        ("amqp", "transfer", 541, FIELDS[1], []),
        ("amqp", "transfer", 541, FIELDS[2], []),
        ("amqp", "transfer", 541, FIELDS[3], []),
        ("amqp", "close", 12, {}, []),
    ]
    assert (
        reported(lines, "missing", "peer", "connection", "protocol")
        == [(None, "client", f"{CLIENT}>{SERVER}#0", "amqp10")] * 5
    )
    # The first transfer seen may be the last of a delivery that began before: its id may be repeated.
    assert [line["message"]["complete"] for line in lines[1:-1]] == [False, True, True]
    assert lines[0]["problems"][0]["reason"] == "the capture begins in the middle of the stream"


def test_a_start_on_a_frame_boundary_skips_nothing(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER)
    tcp.client.send(deliveries(2))
    lines = read(capture.write(tmp_path / "one.pcap"))
    assert reported(lines, "packet", "name", "size", "fields", "problems") == [
        (1, "transfer", 541, FIELDS[0], []),
        (1, "transfer", 541, FIELDS[1], []),
    ]


# ---- a lost segment ----------------------------------------------------------------------------------------


def test_a_segment_lost_inside_a_frame(tmp_path: Path) -> None:
    """The frame's size still tells where the next one begins."""
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER, acks="immediate")
    tcp.handshake()
    octets = deliveries(3)
    tcp.client.send(amqp.AMQP_HEADER + octets[:700])
    with capture.missed():
        tcp.client.send(octets[700:1000])
    tcp.client.send(octets[1000:])
    lines = read(capture.write(tmp_path / "one.pcap"))
    assert reported(
        lines[1:], "packet", "last_packet", "size", "missing", "payload", "fields", "problems"
    ) == [
        (4, None, 541, None, 520, FIELDS[0], []),
        (4, 6, 541, 382, 138, FIELDS[1], ["cut"]),
        (6, None, 541, None, 520, FIELDS[2], []),
    ]
    assert [line["message"]["complete"] for line in lines[1:]] == [True, False, True]
    assert [line["message"]["size"] for line in lines[1:]] == [520, 520, 520]


def test_a_lost_segment_with_the_beginning_of_a_frame(tmp_path: Path) -> None:
    """Where the frame after the next begins has to be found again."""
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER, acks="immediate")
    tcp.handshake()
    octets = deliveries(5)
    tcp.client.send(amqp.AMQP_HEADER + octets[:700])
    with capture.missed():
        tcp.client.send(octets[700:1200])
    tcp.client.send(octets[1200:])
    tcp.server.send(amqp.AMQP_HEADER + amqp.frame(amqp.close()))
    lines = read(capture.write(tmp_path / "one.pcap"))
    client = [line for line in lines if line["peer"] == "client"]
    assert reported(client[1:], "packet", "kind", "name", "size", "missing", "fields", "problems") == [
        (4, "amqp", "transfer", 541, None, FIELDS[0], []),
        (4, "amqp", "transfer", 541, 382, FIELDS[1], ["cut"]),
        (6, "skipped", "skipped", 541, 118, {}, ["cut"]),
        (6, "amqp", "transfer", 541, None, FIELDS[3], []),
        (6, "amqp", "transfer", 541, None, FIELDS[4], []),
    ]
    assert sum(line["size"] for line in client) == len(amqp.AMQP_HEADER + octets)
    assert reported([line for line in lines if line["peer"] == "server"], "packet", "name", "problems") == [
        (10, "header", []),
        (10, "close", []),
    ]


def test_a_lost_segment_of_whole_frames(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection(CLIENT, SERVER, acks="immediate")
    tcp.handshake()
    octets = deliveries(4)
    tcp.client.send(amqp.AMQP_HEADER + octets[:541])
    with capture.missed():
        tcp.client.send(octets[541:1623])
    tcp.client.send(octets[1623:])
    lines = read(capture.write(tmp_path / "one.pcap"))
    assert reported(lines[1:], "packet", "name", "size", "missing", "fields", "problems") == [
        (4, "transfer", 541, None, FIELDS[0], []),
        (6, "skipped", 1082, 1082, {}, ["cut"]),
        (6, "transfer", 541, None, FIELDS[3], []),
    ]


# ---- link layers, IPv4 and IPv6 ----------------------------------------------------------------------------

V4, V6 = (CLIENT, SERVER), (CLIENT6, SERVER6)
HOP_BY_HOP = (0, b"\x00" + b"\x01\x04\x00\x00\x00\x00")
DESTINATION = (60, b"\x00" + b"\x01\x04\x00\x00\x00\x00")


@pytest.mark.parametrize(
    ("link", "vlan", "ends", "more"),
    [
        pytest.param("ethernet", (), V4, {}, id="Ethernet, IPv4"),
        pytest.param("ethernet", (), V6, {}, id="Ethernet, IPv6"),
        pytest.param("ethernet", (7,), V4, {}, id="VLAN, IPv4"),
        pytest.param("ethernet", (7,), V6, {}, id="VLAN, IPv6"),
        pytest.param("ethernet", (100, 7), V4, {}, id="VLAN in VLAN"),
        pytest.param("sll", (), V4, {}, id="SLL, IPv4"),
        pytest.param("sll2", (), V4, {}, id="SLL2, IPv4"),
        pytest.param("sll2", (), V6, {}, id="SLL2, IPv6"),
        pytest.param("null", (), V4, {}, id="BSD null"),
        pytest.param("loop", (), V6, {}, id="BSD loop, IPv6"),
        pytest.param("raw", (), V4, {}, id="raw IPv4"),
        pytest.param("raw", (), V6, {}, id="raw IPv6"),
        pytest.param("ethernet", (), V4, {"ip_options": b"\x94\x04\0\0"}, id="IPv4 options"),
        pytest.param(
            "ethernet", (), V6, {"ip_extensions": [HOP_BY_HOP, DESTINATION]}, id="IPv6 extension headers"
        ),
        pytest.param("ethernet", (), V4, {"ip_length_zero": True}, id="IPv4, length 0"),
        pytest.param("ethernet", (), V6, {"tcp_options": b"\x01" * 12}, id="TCP options"),
    ],
)
def test_link_layers(
    link: str, vlan: tuple[int, ...], ends: tuple[str, str], more: dict[str, Any], tmp_path: Path
) -> None:
    capture = Capture(link, vlan=vlan, padded=link == "ethernet" and not more.get("ip_length_zero"))
    tcp = capture.connection(*ends, **more)
    tcp.handshake()
    tcp.client.send(amqp.AMQP_HEADER)
    tcp.server.send(amqp.AMQP_HEADER)
    tcp.client.send(amqp.frame(amqp.open_(container_id="client")) + amqp.frame(), each=11)
    tcp.server.send(amqp.frame(amqp.open_(container_id="server")))
    tcp.goodbye()
    both = [capture.write(tmp_path / name) for name in ("one.pcap", "one.pcapng")]
    lines = read(*both)
    assert [line.pop("capture") for line in lines] == [str(path) for path in both for _ in range(5)]
    assert lines[:5] == lines[5:]
    lines = lines[:5]
    assert reported(lines, "packet", "last_packet", "peer", "name", "channel", "fields", "problems") == [
        (4, None, "client", "header", None, {"protocol": "AMQP 1.0", "protocol-id": 0, **VERSION}, []),
        (5, None, "server", "header", None, {"protocol": "AMQP 1.0", "protocol-id": 0, **VERSION}, []),
        (6, 7, "client", "open", 0, {"container-id": "client"}, []),
        (8, None, "client", "empty", 0, {}, []),
        (9, None, "server", "open", 0, {"container-id": "server"}, []),
    ]
    assert {line["connection"] for line in lines} == {f"{ends[0]}>{ends[1]}#0"}
    assert [line["time"] for line in lines[:2]] == [
        "2023-11-14T22:13:20.003000000Z",
        "2023-11-14T22:13:20.004000000Z",
    ]
