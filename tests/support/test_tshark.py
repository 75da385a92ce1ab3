"""What is made with the test encoder and what tshark reads from it: the two agree, field by field.

This holds three things against each other: the encoder, the TCP writer, and the reading of tshark's output.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import support.amqp10_encode as amqp
from support.tcp_writer import Capture
from support.tshark import CUT, TsharkFrame, pyshark_frames, tshark_frames, tshark_version

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(tshark_version() is None, reason="tshark is not installed"),
]


def decoded(octets: bytes, folder: Path) -> list[TsharkFrame]:
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(octets)
    tcp.goodbye()
    return tshark_frames(capture.write(folder / "one.pcap"))


def fields(body: bytes, folder: Path, *, sasl: bool = False) -> dict[str, str]:
    frames = decoded(
        amqp.SASL_HEADER + amqp.sasl_frame(body) if sasl else amqp.AMQP_HEADER + amqp.frame(body), folder
    )
    assert len(frames) == 2
    assert frames[1].faults == []
    return frames[1].fields


def test_frames_and_headers(tmp_path: Path) -> None:
    octets = (
        amqp.SASL_HEADER
        + amqp.sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS"))
        + amqp.AMQP_HEADER
        + amqp.frame(amqp.open_(container_id="c"))
        + amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=2), channel=7)
        + amqp.frame(channel=9)
    )
    frames = decoded(octets, tmp_path)
    assert [(f.kind, f.name, f.channel, f.size) for f in frames] == [
        ("header", "header 3", 0, 8),
        ("sasl", "sasl-init", 0, 25),
        ("header", "header 0", 0, 8),
        ("amqp", "open", 0, 17),
        ("amqp", "begin", 7, 20),
        ("amqp", "empty", 9, 8),
    ]
    assert {(f.packet, f.source, f.destination) for f in frames} == {(4, "10.0.0.1:51034", "10.0.0.2:5672")}


def test_open(tmp_path: Path) -> None:
    body = amqp.open_(
        container_id="c",
        hostname="h",
        max_frame_size=512,
        channel_max=10,
        idle_time_out=30000,
        outgoing_locales="en-US",
        incoming_locales=["en-US", "de-AT"],
        offered_capabilities=["A", "B"],
        desired_capabilities="C",
        properties={"product": "p", "answer": amqp.int_(42), "nothing": None},
    )
    assert fields(body, tmp_path) == {
        "container-id": "c",
        "hostname": "h",
        "max-frame-size": "512",
        "channel-max": "10",
        "idle-time-out": "30000",
        "outgoing-locales[0]": "en-US",
        "incoming-locales[0]": "en-US",
        "incoming-locales[1]": "de-AT",
        "offered-capabilities[0]": "A",
        "offered-capabilities[1]": "B",
        "desired-capabilities[0]": "C",
        "properties[product]": "p",
        "properties[answer]": "42",
        "properties[nothing]": "null",
    }


@pytest.mark.parametrize("choice", ["smallest", "widest"])
def test_attach_with_everything(choice: amqp.Choice, tmp_path: Path) -> None:
    source = amqp.source(
        address="from",
        durable=2,
        expiry_policy="never",
        timeout=60,
        dynamic=True,
        dynamic_node_properties={"lifetime-policy": amqp.delete_on_close()},
        distribution_mode="copy",
        filter={"f": amqp.described("x:f", amqp.string("1=1"))},
        default_outcome=amqp.modified(delivery_failed=True),
        outcomes=["amqp:accepted:list", "amqp:released:list"],
        capabilities="queue",
        choice=choice,
    )
    target = amqp.target(address="to", durable=1, dynamic=False, capabilities=["topic", "x"], choice=choice)
    body = amqp.attach(
        name="link",
        handle=3,
        role=amqp.RECEIVER,
        snd_settle_mode=1,
        rcv_settle_mode=1,
        source=source,
        target=target,
        unsettled={b"\x01\x02": amqp.accepted(), b"\x03": None},
        incomplete_unsettled=True,
        initial_delivery_count=5,
        max_message_size=2**40,
        properties={"k": amqp.symbol("v")},
        choice=choice,
    )
    assert fields(body, tmp_path) == {
        "name": "link",
        "handle": "3",
        "role": "true",
        "snd-settle-mode": "1",
        "rcv-settle-mode": "1",
        "source": "source",
        "source.address": "from",
        "source.durable": "2",
        "source.expiry-policy": "never",
        "source.timeout": "60",
        "source.dynamic": "true",
        "source.dynamic-node-properties[lifetime-policy]": "delete-on-close",
        "source.distribution-mode": "copy",
        "source.filter[f]": "1=1",
        "source.default-outcome": "modified",
        "source.default-outcome.delivery-failed": "true",
        "source.outcomes[0]": "amqp:accepted:list",
        "source.outcomes[1]": "amqp:released:list",
        "source.capabilities[0]": "queue",
        "target": "target",
        "target.address": "to",
        "target.durable": "1",
        "target.dynamic": "false",
        "target.capabilities[0]": "topic",
        "target.capabilities[1]": "x",
        "unsettled[0102]": "accepted",
        "unsettled[03]": "null",
        "incomplete-unsettled": "true",
        "initial-delivery-count": "5",
        "max-message-size": str(2**40),
        "properties[k]": "v",
    }


ERROR = amqp.error(condition="amqp:not-found", description="no", info={"k": "v"})
ERROR_FIELDS = {
    "error": "error",
    "error.condition": "amqp:not-found",
    "error.description": "no",
    "error.info[k]": "v",
}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            amqp.begin(
                remote_channel=1, next_outgoing_id=2, incoming_window=3, outgoing_window=4, handle_max=5
            ),
            {
                "remote-channel": "1",
                "next-outgoing-id": "2",
                "incoming-window": "3",
                "outgoing-window": "4",
                "handle-max": "5",
            },
        ),
        (
            amqp.flow(
                next_incoming_id=1,
                incoming_window=2,
                next_outgoing_id=3,
                outgoing_window=4,
                handle=5,
                delivery_count=6,
                link_credit=7,
                available=8,
                drain=True,
                echo=False,
                properties={},
            ),
            {
                "next-incoming-id": "1",
                "incoming-window": "2",
                "next-outgoing-id": "3",
                "outgoing-window": "4",
                "handle": "5",
                "delivery-count": "6",
                "link-credit": "7",
                "available": "8",
                "drain": "true",
                "echo": "false",
                "properties": "",
            },
        ),
        (
            amqp.transfer(
                handle=1,
                delivery_id=2,
                delivery_tag=b"\xff\x00",
                message_format=3,
                settled=False,
                more=True,
                rcv_settle_mode=1,
                state=amqp.received(section_number=4, section_offset=5),
                resume=True,
                aborted=False,
                batchable=True,
            ),
            {
                "handle": "1",
                "delivery-id": "2",
                "delivery-tag": "ff00",
                "message-format": "3",
                "settled": "false",
                "more": "true",
                "rcv-settle-mode": "1",
                "state": "received",
                "state.section-number": "4",
                "state.section-offset": "5",
                "resume": "true",
                "aborted": "false",
                "batchable": "true",
            },
        ),
        (
            amqp.disposition(
                role=amqp.SENDER,
                first=1,
                last=2,
                settled=True,
                state=amqp.rejected(error=ERROR),
                batchable=True,
            ),
            {
                "role": "false",
                "first": "1",
                "last": "2",
                "settled": "true",
                "state": "rejected",
                **{f"state.{path}": text for path, text in ERROR_FIELDS.items()},
                "batchable": "true",
            },
        ),
        (
            amqp.disposition(
                role=True, first=1, state=amqp.transactional_state(txn_id=b"\x07", outcome=amqp.released())
            ),
            {
                "role": "true",
                "first": "1",
                "state": "transactional-state",
                "state.txn-id": "07",
                "state.outcome": "released",
            },
        ),
        (amqp.detach(handle=1, closed=True, error=ERROR), {"handle": "1", "closed": "true", **ERROR_FIELDS}),
        (amqp.end(error=ERROR), ERROR_FIELDS),
        (amqp.close(error=ERROR), ERROR_FIELDS),
        (amqp.close(), {}),
    ],
)
def test_performatives(body: bytes, expected: dict[str, str], tmp_path: Path) -> None:
    assert fields(body, tmp_path) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            amqp.sasl_mechanisms(sasl_server_mechanisms=["PLAIN", "X"]),
            {"sasl-server-mechanisms[0]": "PLAIN", "sasl-server-mechanisms[1]": "X"},
        ),
        (
            amqp.sasl_init(mechanism="PLAIN", initial_response=b"\0a\0b", hostname="h"),
            {"mechanism": "PLAIN", "initial-response": "00610062", "hostname": "h"},
        ),
        (amqp.sasl_challenge(challenge=b"c"), {"challenge": "63"}),
        (amqp.sasl_response(response=b""), {"response": ""}),
        (amqp.sasl_outcome(code=1, additional_data=b"d"), {"code": "1", "additional-data": "64"}),
    ],
)
def test_sasl(body: bytes, expected: dict[str, str], tmp_path: Path) -> None:
    assert fields(body, tmp_path, sasl=True) == expected


def test_sections(tmp_path: Path) -> None:
    message = (
        amqp.header(durable=True, priority=4, ttl=1000, first_acquirer=False, delivery_count=2)
        + amqp.delivery_annotations({"d": amqp.uint(1)})
        + amqp.message_annotations({"x-opt-m": "m"})
        + amqp.properties(
            message_id=uuid.UUID(int=9),
            user_id=b"u",
            to="t",
            subject="s",
            reply_to="r",
            correlation_id=7,
            content_type="ct",
            content_encoding="ce",
            absolute_expiry_time=1_700_000_000_001,
            creation_time=-1,
            group_id="g",
            group_sequence=3,
            reply_to_group_id="rg",
        )
        + amqp.application_properties({"a": "b", "list": amqp.list_([amqp.uint(5), None])})
        + amqp.amqp_value("w" * 300)
        + amqp.footer({"f": True})
    )
    frames = decoded(amqp.AMQP_HEADER + amqp.frame(amqp.transfer(handle=0), message), tmp_path)
    sections = frames[1].sections
    long = sections.pop("amqp-value")
    assert long.endswith(CUT)
    assert long.strip(CUT) == "w" * (len(long) - 1)
    assert len(long) > 100
    assert sections == {
        "header": "header",
        "header.durable": "true",
        "header.priority": "4",
        "header.ttl": "1000",
        "header.first-acquirer": "false",
        "header.delivery-count": "2",
        "delivery-annotations[d]": "1",
        "message-annotations[x-opt-m]": "m",
        "properties": "properties",
        "properties.message-id": "00000000-0000-0000-0000-000000000009",
        "properties.user-id": "75",
        "properties.to": "t",
        "properties.subject": "s",
        "properties.reply-to": "r",
        "properties.correlation-id": "7",
        "properties.content-type": "ct",
        "properties.content-encoding": "ce",
        "properties.absolute-expiry-time": "1700000000001",
        "properties.creation-time": "-1",
        "properties.group-id": "g",
        "properties.group-sequence": "3",
        "properties.reply-to-group-id": "rg",
        "application-properties[a]": "b",
        "application-properties[list][0]": "5",
        "application-properties[list][1]": "null",
        "footer[f]": "true",
    }


def test_faults_are_reported(tmp_path: Path) -> None:
    body = amqp.described(amqp.descriptor(0x17, "", "small"), amqp.list_([None], 0xC0, count=9))
    frames = decoded(amqp.AMQP_HEADER + amqp.frame(body), tmp_path)
    assert frames[1].faults == ["Number of list elements (9) bigger than list size (2)"]


def test_ipv6_and_reordered_segments(tmp_path: Path) -> None:
    capture = Capture("sll2")
    tcp = capture.connection("[fd00::1]:51034", "[fd00::2]:5672")
    tcp.handshake()
    tcp.server.send(amqp.AMQP_HEADER)
    with capture.reordered(1, 2, 0):
        tcp.server.send(amqp.frame(amqp.open_(container_id="c")) + amqp.frame(), each=9)
    frames = tshark_frames(capture.write(tmp_path / "one.pcap"))
    assert [(f.packet, f.name) for f in frames] == [(4, "header 0"), (7, "open"), (7, "empty")]
    assert (frames[0].source, frames[0].destination) == ("[fd00::2]:5672", "[fd00::1]:51034")


def test_pyshark_sees_the_same_frames(tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(amqp.SASL_HEADER + amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN")))
    tcp.client.send(
        amqp.AMQP_HEADER
        + amqp.frame(amqp.open_(container_id="c", channel_max=9))
        + amqp.frame(amqp.end(), channel=3)
    )
    path = capture.write(tmp_path / "one.pcap")
    seen = pyshark_frames(path)
    assert [frame[:3] for frame in seen] == [(f.packet, f.name, f.channel) for f in tshark_frames(path)]
    assert seen[-2:] == [(5, "open", 0, {"channel-max": "9"}), (5, "end", 3, {})]


def test_several_sections_of_one_name(tmp_path: Path) -> None:
    message = (
        amqp.data(b"a") + amqp.data(b"b") + amqp.amqp_sequence([amqp.uint(1)]) + amqp.amqp_sequence([None])
    )
    frames = decoded(amqp.AMQP_HEADER + amqp.frame(amqp.transfer(handle=0), message), tmp_path)
    assert frames[1].sections == {
        "data": "61",
        "data 2": "62",
        "amqp-sequence[0]": "1",
        "amqp-sequence 2[0]": "null",
    }


def test_items_behind_a_composites_last_field_count_from_0(tmp_path: Path) -> None:
    body = amqp.detach(handle=1, error=amqp.error(condition="x", extra=["one", "two"]))
    assert fields(body, tmp_path) == {
        "handle": "1",
        "error": "error",
        "error.condition": "x",
        "error[0]": "one",
        "error[1]": "two",
    }


def test_what_xml_has_no_room_for(tmp_path: Path) -> None:
    no_character = amqp.raw("73 fd b0 9b 86")  # beyond Unicode, which tshark writes out all the same
    body = amqp.open_(container_id="c", properties={"a": no_character, "b": "after"})
    texts = fields(body, tmp_path)
    assert texts["properties[b]"] == "after"
    assert set(texts["properties[a]"]) == {"\ufffd"}


def test_streams(tmp_path: Path) -> None:
    capture = Capture()
    ends = [capture.connection(f"10.0.0.1:{port}").client for port in (50_001, 50_002)]
    for end in ends:
        end.send(amqp.AMQP_HEADER)
    for n in (1, 0):
        ends[n].send(amqp.frame(channel=n))
    frames = tshark_frames(capture.write(tmp_path / "two.pcap"))
    assert [(f.packet, f.stream, f.channel) for f in frames] == [(1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 0, 0)]
