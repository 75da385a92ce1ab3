"""Faults on request: octets stay as they are, and each fault happens where it was asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fake_source import packets_of
from support.proxied import Proxied

import amqpscope
from amqpscope.capture.proxy.faults import Fault, parse_fault
from amqpscope.capture.proxy.frame_names import FrameNames
from amqpscope.capture.proxy.gate import Gate
from amqpscope.errors import FilterError

RULES = Path(__file__).parents[3] / "captures" / "rules"
CAPTURES = [
    RULES / "amqp10" / "L-CREDIT" / "clean.pcap",
    RULES / "amqp091" / "B-ACK-DUP" / "clean.pcap",
]
OPEN = bytes.fromhex("00000011020000000053104501a10363") + b"!"
TRANSFER = bytes.fromhex("0000000d02000000005314" + "c001")
HEADER = b"AMQP\0\1\0\0"


def stream(capture: Path) -> bytes:
    """What the client of a capture with Ethernet and IPv4 has sent."""
    found = b""
    first = b""
    for _, packet in packets_of(capture.read_bytes()):
        segment = packet[34 : 14 + int.from_bytes(packet[16:18], "big")]
        first = first or packet[26:30] + segment[:2]
        if packet[26:30] + segment[:2] == first:
            found += segment[segment[12] >> 4 << 2 :]
    return found


@pytest.mark.parametrize("capture", CAPTURES)
@settings(max_examples=30)
@given(sizes=st.lists(st.integers(1, 50), min_size=1))
def test_frames_are_found_in_any_pieces(capture: Path, sizes: list[int]) -> None:
    octets = stream(capture)
    whole = FrameNames().take(octets)
    names, found, at = FrameNames(), [], 0
    for turn in range(len(octets)):
        piece = octets[at : at + sizes[turn % len(sizes)]]
        found += [(at + end, name) for end, name in names.take(piece)]
        at += len(piece)
    assert found == whole
    assert whole[-1][0] == len(octets)


@pytest.mark.parametrize("capture", CAPTURES)
def test_frames_have_the_names_that_the_decoder_gives_them(capture: Path) -> None:
    sent = [one["name"] for one in amqpscope.read_dicts(str(capture)) if one["peer"] == "client"]
    found = [name for _, name in FrameNames().take(stream(capture))]
    assert [name for name in found if name] == [name for name in sent if name in found]
    assert {"transfer", "basic.publish", "basic.ack"} & set(found)


@pytest.mark.parametrize("octets", [b"\x16\x03\x01", b"GET / HTTP/1.1", b"AMQP\2\1\0\0", HEADER + bytes(99)])
def test_what_is_no_plain_amqp_has_no_frames(octets: bytes) -> None:
    assert [name for _, name in FrameNames().take(octets) if name != "header"] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("delay transfer 200ms", Fault("delay transfer 200ms", frame="transfer", delay=0.2)),
        ("delay  basic.publish 1.5s", Fault("delay basic.publish 1.5s", frame="basic.publish", delay=1.5)),
        (
            "drop-connection after 100 transfers",
            Fault("drop-connection after 100 transfers", frame="transfer", drop=100),
        ),
        ("split 1", Fault("split 1", split=1)),
        ("throttle 10kB/s", Fault("throttle 10kB/s", throttle=10_000)),
    ],
)
def test_a_fault_is_written_as_a_sentence(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("drop-connection after 1 basic.qos", "basic.qos"),
        ("drop-connection after 3 attaches", "attach"),
        ("drop-connection after 2 sasl-mechanisms", "sasl-mechanisms"),
        ("drop-connection after 2 heartbeats", "heartbeat"),
        ("delay empty 1s", "empty"),
    ],
)
def test_a_frame_is_named_in_the_singular_or_the_plural(text: str, frame: str) -> None:
    assert parse_fault(text).frame == frame


@pytest.mark.parametrize("text", ["delay tranfer 200ms", "drop-connection after 1 basic.qo"])
def test_a_frame_that_cannot_be_is_an_error(text: str) -> None:
    with pytest.raises(
        FilterError, match=r"no frame is called '(tranfer|basic\.qo)'; `amqpscope read` shows"
    ):
        parse_fault(text)


def test_frames_before_a_delayed_one_are_not_delayed() -> None:
    with Proxied(faults=[parse_fault("delay transfer 3600s")]) as proxied:
        proxied.client.give(HEADER + OPEN + TRANSFER)
        proxied.until(lambda: proxied.server.got == HEADER + OPEN)


def test_what_is_throttled_waits_as_it_was_read() -> None:
    """Not as very many single octets, which take a hundred times as much memory."""
    loop = asyncio.new_event_loop()
    faults = [parse_fault("throttle 1B/s"), parse_fault("split 1")]
    gate = Gate(loop, faults, Counter(), lambda octets: None, print, lambda: None)
    gate.take(bytes(100_000))
    assert (gate.waiting, len(gate._queue)) == (100_000, 1)
    gate.close()
    loop.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "delay 200ms",
        "delay transfer 0ms",
        "delay transfer 2h",
        "split 0",
        "split",
        "throttle 0kB/s",
        "throttle 10",
        "drop-connection after 0 transfers",
        "drop-connection",
        "lose transfer",
    ],
)
def test_what_is_no_fault(text: str) -> None:
    with pytest.raises(FilterError, match=r"^--fault '.*': must be 'delay FRAME TIME'"):
        parse_fault(text)


def test_a_delayed_frame_holds_back_all_behind_it() -> None:
    with Proxied(faults=[parse_fault("delay transfer 50ms")]) as proxied:
        loop = proxied.source.loop
        proxied.client.give(HEADER + OPEN)
        proxied.until(lambda: proxied.server.got == HEADER + OPEN)
        began = loop.time()
        proxied.client.give(TRANSFER + OPEN)
        proxied.client.end()
        proxied.until(lambda: proxied.server.ended == "FIN")
        assert loop.time() - began >= 0.05
        assert proxied.server.got == HEADER + OPEN + TRANSFER + OPEN
        # The packet shows when the octets were read, not when they were handed on.
        assert proxied.streams.octets[0] == proxied.server.got
        remarks = proxied.source.take_remarks()
        numbers = [n for n, one in enumerate(proxied.packets, 1) if one.octets.startswith(TRANSFER)]
    assert remarks == [
        (3, "the proxy was asked for a fault: delay transfer 50ms"),
        (numbers[0], "fault: delay transfer 50ms"),
    ]


def test_a_connection_is_reset_behind_the_frame_that_was_named() -> None:
    with Proxied(faults=[parse_fault("drop-connection after 2 transfers")]) as proxied:
        proxied.client.give(HEADER + TRANSFER)
        proxied.until(lambda: proxied.server.got == HEADER + TRANSFER)
        proxied.client.give(TRANSFER + TRANSFER + OPEN)
        proxied.until(lambda: proxied.client.ended == proxied.server.ended == "RST")
        assert proxied.server.got == HEADER + TRANSFER + TRANSFER
        # The recording says of no peer that it has ended the connection: the proxy did.
        assert proxied.streams.ended == ["", ""]
        assert [one.window for one in proxied.packets[-2:]] == [0, 0]
        assert proxied.source.take_remarks()[-1][1].endswith("the proxy resets both peers behind it")


@pytest.mark.parametrize("fault", ["split 7", "throttle 1MB/s"])
def test_octets_stay_as_they_are_in_small_pieces(fault: str) -> None:
    octets = bytes(range(256)) * 100
    with Proxied(faults=[parse_fault(fault)]) as proxied:
        began = proxied.source.loop.time()
        proxied.client.give(octets)
        proxied.server.give(octets)
        proxied.client.end()
        proxied.until(lambda: proxied.server.ended == "FIN" and proxied.client.got == octets)
        assert proxied.server.got == octets
        if fault.startswith("throttle"):
            assert proxied.source.loop.time() - began >= len(octets) / 1_000_000
