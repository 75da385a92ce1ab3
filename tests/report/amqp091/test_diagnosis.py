"""What a summary answers of a connection of AMQP 0-9-1: acknowledgements, confirms, silences, causes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support import amqp091_encode as amqp
from support.commands import amqpscope
from support.dialogue091 import Dialogue091
from support.tcp_writer import Capture

from amqpscope.input.capture import Capture as Reading
from amqpscope.report.summary import CaptureSummary

SECOND = 1_000_000_000


def reported(d: Dialogue091) -> dict[str, list[tuple[int, str]]]:
    """The diagnoses by code, each with its packet and its sentence."""
    gathered = CaptureSummary()
    found: dict[str, list[tuple[int, str]]] = {}
    with Reading(io.BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            gathered.add(record)
    for summary in gathered.connections.values():
        for one in summary.diagnosis.reported():
            found.setdefault(one.code, []).append((one.packet, one.text))
    return found


def begun(**tune: int) -> Dialogue091:
    d = Dialogue091(**tune)
    d.opened()
    d.channel(1)
    return d


def test_an_orderly_connection_needs_no_words() -> None:
    d = begun()
    d.declare("q")
    d.confirms()
    d.consume("q")
    d.client.publish(b"hello", routing_key="q")
    d.server.confirm()
    d.server.deliver(b"hello")
    d.client.ack()
    d.goodbye()
    assert reported(d) == {}


def test_deliveries_that_fill_the_prefetch_window() -> None:
    d = begun()
    d.declare("q")
    d.qos(2)
    d.consume("q")
    d.server.deliver(b"one")
    oldest = d.server.deliver(b"two")
    d.client.ack(1)
    d.server.deliver(b"three")
    packet = d.packet_number(oldest)
    text = (
        "channel 1: 2 deliveries are not acknowledged at the end of the capture, the oldest is #2 in "
        f"packet {packet}; the prefetch-count of 2 is reached, so the server sends no more"
    )
    assert reported(d)["diag/unacknowledged"] == [(packet, text)]


def test_publishes_never_confirmed() -> None:
    d = begun()
    d.confirms()
    d.client.publish(b"one")
    d.client.publish(b"two")
    d.server.confirm(1)
    d.client.publish(b"three")
    (found,) = reported(d)["diag/unconfirmed"]
    assert found[1].startswith("channel 1: 2 publishes are not confirmed at the end of the capture")
    assert "number 2" in found[1]


def test_a_close_is_traced_to_what_it_names() -> None:
    d = begun()
    d.client.publish(b"one", exchange="there")
    wrong = d.client.publish(b"two", exchange="missing")
    with d.on_their_way():
        d.client.publish(b"three", exchange="there")
        d.server.close_channel(404, "NOT_FOUND - no exchange 'missing' in vhost '/'", cause="basic.publish")
    (found,) = reported(d)["diag/closed"]
    assert (
        found[1]
        == f"channel 1 is closed because of basic.publish of the client in packet {d.packet_number(wrong)}"
    )


def test_a_close_for_a_malformed_frame_is_traced_to_it() -> None:
    d = begun()
    d.client.publish_method()
    wrong = d.client.publish_method()
    d.server.close_connection(505, "UNEXPECTED_FRAME", cause="basic.publish")
    found = reported(d)
    packet = d.packet_number(wrong)
    assert found["diag/shared-channel"][0][0] == packet
    assert (
        f"malformed basic.publish of the client in packet {packet} on channel 1" in found["diag/closed"][0][1]
    )


def test_a_second_protocol_header() -> None:
    d = begun()
    said = d.client.header()
    assert reported(d)["diag/header-twice"] == [
        (d.packet_number(said), "the client sends a second protocol header")
    ]


def test_who_let_the_heartbeat_lapse() -> None:
    d = Dialogue091()
    d.opened(tune={"heartbeat": 2})
    d.server.heartbeat()
    d.tcp.capture.clock += 5 * SECOND
    d.server.heartbeat()
    found = reported(d)["diag/heartbeat"]
    assert {text.partition(" sends nothing for 5.")[0] for _, text in found} == {"the client", "the server"}
    assert all(
        "with a heartbeat of 2 s: after 4 s the other peer may consider it dead" in text for _, text in found
    )


@pytest.mark.parametrize(
    ("octets", "name"), [(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"), (b"SSH-2.0-x\r\n", "SSH")]
)
def test_another_protocol_on_the_port(
    octets: bytes, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capture = Capture()
    tcp = capture.connection("10.0.0.1:51034", "10.0.0.2:5672")
    tcp.handshake()
    tcp.client.send(octets)
    tcp.server.send(amqp.header())
    tcp.server.fin()
    path = tmp_path / "misdirected.pcap"
    capture.write(path)
    result = amqpscope(capsys, "summary", str(path))
    assert f"  the client speaks {name} to a port that speaks AMQP" in result.lines
    whole = json.loads(amqpscope(capsys, "summary", "--format", "json", str(path)).out)
    (found,) = whole["connections"][0]["diagnoses"]
    assert (found["code"], found["packet"]) == ("diag/misdirected", None)


@pytest.mark.parametrize(
    ("octets", "name"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"), (b"\x15\x03\x03\x00\x02\x02\x46", "TLS")],
)
def test_a_port_of_another_protocol(
    octets: bytes, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capture = Capture()
    tcp = capture.connection("10.0.0.1:51034", "10.0.0.2:15672")
    tcp.handshake()
    tcp.client.send(amqp.header())
    tcp.server.send(octets)
    tcp.server.fin()
    path = tmp_path / "misdirected.pcap"
    capture.write(path)
    result = amqpscope(capsys, "summary", str(path))
    assert f"  the client speaks AMQP 0-9-1 to a port that speaks {name}" in result.lines


def blocked() -> tuple[Dialogue091, int]:
    """The server blocks the connection; the packet in which it says so."""
    d = begun()
    said = d.server.blocked("low on memory")
    d.client.publish(b"hello", routing_key="q")
    d.wait(seconds=7)
    return d, d.packet_number(said)


def test_a_connection_that_is_blocked_and_goes_on() -> None:
    d, packet = blocked()
    again = d.packet_number(d.server.unblocked())
    d.goodbye()
    ((first, text),) = reported(d)["diag/blocked"]
    assert first == packet
    assert text.startswith("publishers are blocked for 7.0")
    assert text.endswith(f" s, until packet {again}")


def test_a_connection_that_is_blocked_until_it_is_closed() -> None:
    d, packet = blocked()
    d.goodbye()
    ((first, text),) = reported(d)["diag/blocked"]
    assert first == packet
    assert text.endswith(", when the client closes the connection")


def test_a_connection_that_is_blocked_until_the_end() -> None:
    d, packet = blocked()
    assert reported(d)["diag/blocked"] == [(packet, "publishers are blocked until the end of the capture")]


@pytest.mark.parametrize(
    ("published", "closed", "packet"),
    [
        # The text names the exchange, and one publish went there.
        (["there", "none"], "no exchange 'none'", 1),
        # Two went there; the first of them is refused.
        (["none", "none"], "no exchange 'none'", 0),
    ],
)
def test_a_refused_publish_is_the_first_that_it_may_be(
    published: list[str], closed: str, packet: int
) -> None:
    d = begun()
    with d.unheard(d.server):
        packets = [d.packet_number(d.client.publish(b"x", exchange=name)) for name in published]
    d.server.close_channel(404, f"NOT_FOUND - {closed} in vhost '/'", "basic.publish")
    ((_, text),) = reported(d)["diag/closed"]
    more = ", the first of 2 possible causes" if published[0] == published[1] else ""
    assert (
        text
        == f"channel 1 is closed because of basic.publish of the client in packet {packets[packet]}{more}"
    )


def test_what_was_said_on_the_channel_before_it_was_opened_again_is_no_cause() -> None:
    d = begun()
    d.client.publish(b"x", exchange="none")
    d.client.method("channel.close", reply_code=200, reply_text="bye")
    d.server.method("channel.close-ok")
    d.channel(1)
    d.server.close_channel(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "basic.publish")
    assert "diag/closed" not in reported(d)


@pytest.mark.parametrize("crossing", [False, True])
def test_deliveries_left_on_a_closing_channel_are_reported_once(crossing: bool) -> None:
    """The connection ends before the close is answered."""
    d = begun()
    d.declare("q")
    d.consume("q")
    oldest = d.server.deliver(b"one")
    d.server.deliver(b"two")
    with d.on_their_way():
        closed = d.server.close_channel(
            406, "PRECONDITION_FAILED - unknown delivery tag 9", cause="basic.ack"
        )
        if crossing:
            d.client.close_channel()
    packet = d.packet_number(oldest)
    text = (
        f"channel 1: 2 deliveries are not acknowledged when the server closed the channel in packet "
        f"{d.packet_number(closed)}, the oldest is #1 in packet {packet}"
    )
    assert reported(d)["diag/unacknowledged"] == [(packet, text)]
