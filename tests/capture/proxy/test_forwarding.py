"""What a proxy forwards is what it got, and its packets show just that, however a connection ends."""

from __future__ import annotations

import array
import asyncio
import fcntl
import socket
import termios
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.proxied import ACK, Proxied

from amqpscope.capture.proxy import watchful_selector
from amqpscope.capture.proxy.source import ProxySource
from amqpscope.errors import CaptureError

STEP = st.one_of(
    st.tuples(st.sampled_from(["client", "server"]), st.integers(1, 200_000)),
    st.tuples(st.sampled_from(["client ends", "server ends", "turn"]), st.just(0)),
)


@settings(max_examples=25)
@given(st.lists(STEP, max_size=12), st.integers(0, 255))
def test_octets_and_ends_arrive_as_they_were_sent(steps: list[tuple[str, int]], first: int) -> None:
    sent = {"client": b"", "server": b""}
    over = set()
    with Proxied() as proxied:
        peers = {"client": proxied.client, "server": proxied.server}
        for what, size in steps:
            name = what.split()[0]
            if what == "turn":
                proxied.turn()
            elif name in over:
                continue
            elif what in peers:
                octets = bytes((first + at) & 0xFF for at in range(min(size, 251))) * (size // 251 + 1)
                sent[name] += octets[:size]
                peers[name].give(octets[:size])
            else:
                over.add(name)
                peers[name].end()
        for name in peers.keys() - over:
            peers[name].end()
        proxied.until(lambda: proxied.client.ended == proxied.server.ended == "FIN")
        proxied.until(lambda: not proxied.source._relays)
        streams = proxied.streams
    assert bytes(proxied.server.got) == sent["client"] == streams.octets[0]
    assert bytes(proxied.client.got) == sent["server"] == streams.octets[1]
    assert streams.ended == ["FIN", "FIN"]


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_reset_arrives_behind_the_octets_before_it(who: str) -> None:
    with Proxied() as proxied:
        killed, other = proxied.client, proxied.server
        if who == "server":
            killed, other = other, killed
        other.reading = False
        proxied.until(lambda: len(proxied.packets) >= 3)
        octets = bytes(range(256)) * 400
        killed.give(octets)
        proxied.until(lambda: killed.waiting == 0 and octets in proxied.streams.octets)
        killed.reset()
        proxied.until(lambda: not proxied.source._relays)
        other.reading = True
        proxied.until(lambda: other.ended != "")
        assert bytes(other.got) == octets
        assert other.ended == "RST"
        assert proxied.streams.ended[0 if who == "client" else 1] == "RST"


def test_a_peer_that_takes_nothing_stops_the_other_and_loses_nothing() -> None:
    with Proxied(buffers=4096) as proxied:
        client, server = proxied.client, proxied.server
        proxied.narrow()
        server.reading = False
        octets = bytes(range(256)) * 8_000
        client.give(octets)
        proxied.until(lambda: proxied.stopped(1))
        assert [packet for packet in proxied.packets if packet.by == proxied.target][-1].window == 0
        (relay,) = proxied.source._relays
        assert 0 < relay.waiting <= 128 * 1024 + 65_000
        assert len(proxied.streams.octets[0]) < len(octets) / 2
        # What the other direction has to say goes on.
        server.give(b"more")
        proxied.until(lambda: client.got == b"more")
        server.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        server.reading = True
        client.end()
        proxied.until(lambda: server.ended == "FIN")
        assert bytes(server.got) == octets
        last = [packet for packet in proxied.packets if packet.by == proxied.target][-1]
        assert last.window > 0


def test_nothing_is_acknowledged_that_a_host_has_not_received() -> None:
    """The octets that the client's host has are those read from it, and those that wait there to be read."""
    with Proxied(buffers=4096) as proxied:
        client, server = proxied.client, proxied.server
        proxied.narrow()
        client.reading = False
        server.give(bytes(2_000_000))
        proxied.until(lambda: proxied.stopped(0))
        before = len(proxied.packets)
        client.give(b"now")
        proxied.until(lambda: b"now" in proxied.streams.octets[0])
        said = next(packet for packet in proxied.packets[before:] if packet.octets == b"now")
        waits = array.array("i", [0])
        fcntl.ioctl(client.raw.fileno(), termios.FIONREAD, waits)
        origin = next(packet.seq + 1 for packet in proxied.packets if packet.flags & 2 and packet.flags & ACK)
        acknowledged = (said.ack - origin) & 0xFFFFFFFF
        assert 0 < acknowledged <= waits[0]
        assert acknowledged < len(proxied.streams.octets[1])


def test_octets_are_acknowledged_though_nothing_is_answered() -> None:
    with Proxied() as proxied:
        proxied.client.give(b"hello")
        proxied.until(lambda: proxied.streams.acknowledged[0] == 5)
        assert bytes(proxied.server.got) == b"hello"


def test_a_time_in_which_nothing_was_read_closes_both_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxied() as proxied:
        proxied.client.give(b"before")
        proxied.until(lambda: proxied.server.got == b"before" and proxied.streams.acknowledged[0] == 6)
        count = len(proxied.packets)
        real = watchful_selector.time.time_ns
        later = 3_000_000_000
        moment = real()
        monkeypatch.setattr(watchful_selector.time, "time_ns", lambda: real() + later)
        proxied.client.give(b"after")
        proxied.until(lambda: proxied.server.got == b"beforeafter")
        shown = proxied.packets[count : count + 4]
    assert [packet.window for packet in shown] == [0, 0, 65535, 65535]
    assert shown[0].by != shown[1].by
    assert shown[1].time - moment < 2_000_000_000 < shown[2].time - shown[1].time
    assert b"after" in [packet.octets for packet in proxied.packets[count + 4 :]]


def test_a_client_is_reset_when_the_target_refuses_and_the_proxy_goes_on() -> None:
    proxied = Proxied()
    proxied.listener.close()
    port = proxied.target[1]
    try:
        client = proxied.connect()
        proxied.until(lambda: client.ended != "")
        assert client.ended == "RST"
        proxied.until(lambda: bool(proxied.events))
        assert proxied.events == [f"cannot connect to 127.0.0.1:{port}: Connection refused"]
        assert proxied.streams.ended == ["", "RST"]
        proxied.listener = socket.create_server(("127.0.0.1", port))
        proxied.listener.setblocking(False)
        again = proxied.connect()
        server = proxied.accept()
        again.give(b"now")
        proxied.until(lambda: server.got == b"now")
    finally:
        proxied.close()


def test_a_client_is_reset_when_the_target_has_no_address() -> None:
    proxied = Proxied(target=("a..b", 5672))
    try:
        client = proxied.connect()
        proxied.until(lambda: client.ended == "RST" and bool(proxied.events))
        assert proxied.events[0].startswith("cannot connect to a..b:5672: ")
        assert proxied.packets == []
    finally:
        proxied.close()


def test_a_proxy_does_not_connect_to_itself() -> None:
    proxied = Proxied()
    proxied.source._target = proxied.source.address
    try:
        client = proxied.connect()
        proxied.until(lambda: client.ended == "RST" and bool(proxied.events))
        assert proxied.events[0].endswith(": it is the address of the proxy itself")
    finally:
        proxied.close()


def test_a_proxy_on_all_addresses_does_not_connect_to_itself() -> None:
    proxied = Proxied()
    port = proxied.source.address[1]
    try:
        assert not proxied.source._is_own(("127.0.0.2", port))
        proxied.source.address = ("0.0.0.0", port)
        assert proxied.source._is_own(("127.0.0.2", port))
        assert not proxied.source._is_own(("127.0.0.2", port - 1))
        assert not proxied.source._is_own(("192.0.2.1", port))
    finally:
        proxied.close()


def test_a_further_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one drops packets, as a network without a route to IPv6 does."""
    monkeypatch.setattr("amqpscope.capture.proxy.source._CONNECT_FIRST", 0.01)
    proxied = Proxied()
    usual = proxied.source.loop.sock_connect

    async def both(*_: object) -> list[Any]:
        await asyncio.sleep(0)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", one) for one in (("192.0.2.1", 1), proxied.target)
        ]

    async def connect(raw: socket.socket, place: Any) -> None:
        await (usual(raw, place) if place == proxied.target else asyncio.Event().wait())

    proxied.source._addresses = both  # type: ignore[method-assign]
    proxied.source.loop.sock_connect = connect  # type: ignore[method-assign, assignment]
    with proxied:
        proxied.client.give(b"hello")
        proxied.until(lambda: proxied.server.got == b"hello")


def test_more_clients_than_allowed_are_refused() -> None:
    with Proxied(connections=1) as proxied:
        other = proxied.connect()
        proxied.until(lambda: other.ended == "RST" and bool(proxied.events))
        assert proxied.events == ["a connection was refused: 1 connections are open, which is the maximum"]
        proxied.client.give(b"still")
        proxied.until(lambda: proxied.server.got == b"still")


def test_a_failure_that_repeats_is_reported_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("amqpscope.capture.proxy.source.time.monotonic", lambda: now)
    proxied = Proxied()
    try:
        source = proxied.source
        for text in ("down", "down", "down", "up", "down", "up"):
            source._fail(text)
        assert source.take_events() == ["down", "down (2 more times)", "up"]
        now = 111.0
        source._fail("down")
        assert source.take_events() == ["down (2 more times)"]
        source.report_rest()
        source.report_rest()
        assert source.take_events() == ["up (once more)"]
        for number in range(100):
            source._fail(f"cause {number}")
        assert len(source._failures) <= 32
    finally:
        monkeypatch.undo()
        proxied.close()


def test_what_was_read_is_handed_on_at_the_end() -> None:
    proxied = Proxied()
    with proxied:
        octets = bytes(range(256)) * 1000
        proxied.server.reading = False
        proxied.client.give(octets)
        proxied.until(lambda: len(proxied.streams.octets[0]) == len(octets))
        proxied.source.close()
        proxied.server.reading = True
        while not proxied.server.ended:
            proxied.server.turn()
        assert bytes(proxied.server.got) == octets


def test_an_error_of_ours_ends_one_connection_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxied() as proxied:
        other = proxied.connect()
        server = proxied.accept()
        relay = next(iter(proxied.source._relays))

        def fails(*_: object) -> None:
            raise ValueError("made up")

        monkeypatch.setattr(relay, "_forward", fails)
        proxied.client.give(b"x")
        proxied.until(lambda: proxied.client.ended == proxied.server.ended == "RST" and bool(proxied.events))
        assert proxied.events == [f"internal error while forwarding for {relay.name}: ValueError('made up')"]
        other.give(b"y")
        proxied.until(lambda: server.got == b"y")


def test_an_address_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CaptureError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            ProxySource(("127.0.0.1", port), ("127.0.0.1", 1))


def test_a_place_to_listen_that_no_host_has_is_an_error() -> None:
    with pytest.raises(CaptureError, match=r"cannot listen on a\.\.b:1: "):
        ProxySource(("a..b", 1), ("127.0.0.1", 1))


def test_addresses_of_two_versions_are_written_as_ipv6() -> None:
    if not socket.has_ipv6:
        pytest.skip("there is no IPv6")
    try:
        proxied = Proxied("::1")
    except OSError:
        pytest.skip("there is no IPv6 on the loopback interface")
    with proxied:
        proxied.client.give(b"hello")
        proxied.until(lambda: proxied.server.got == b"hello" and proxied.streams.octets[0] == b"hello")
        first = proxied.packets[0]
        assert ip_address(first.by[0]) == ip_address("::ffff:127.0.0.1")
        assert first.to == ("::1", proxied.target[1])
