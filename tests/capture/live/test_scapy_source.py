"""Capturing with scapy's sockets, over loopback: what is used where there is no ring."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.loopback import Segments, catch, conversation, free_port, refusal

pytest.importorskip("scapy")
if sys.platform != "linux":
    pytest.skip("its tests are for Linux", allow_module_level=True)

from amqpscope.capture.live import ring
from amqpscope.capture.live.opening import open_source
from amqpscope.capture.live.scapy_source import ScapySource, scapy_interfaces
from amqpscope.capture.packet import PacketDecoder

if "permission" in refusal(lambda: open_source(["lo"])):
    pytest.skip("there is no permission to capture", allow_module_level=True)


@pytest.fixture(autouse=True)
def no_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system whose kernel does not know of it."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOPROTOOPT, "no")

    monkeypatch.setattr(ring, "RingSource", refuse)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("names", [["lo"], ["any"]])
def test_every_octet_comes(address: str, names: list[str]) -> None:
    said = bytes(range(256)) * 1000
    sink = Segments()
    decoder = PacketDecoder(sink)
    before = time.time_ns()
    port = free_port()
    with open_source(names, ports=[port]) as source:
        assert isinstance(source, ScapySource)
        client, server = conversation(said, b"answer", address=address, port=port)
        catch(source, decoder, lambda: sink.octets_from(server) == b"answer")
        catch(source, decoder, lambda: len(sink.octets_from(client)) == len(said))
        assert sink.octets_from(client) == said
        assert source.number == decoder.packets
        assert source.interfaces[decoder.interface].name == "lo"
        assert source.interfaces[decoder.interface].link_type == 1
        assert source.dropped() == 0
    assert all(before - 1000 < time <= time_ns() for _, _, time, _ in sink.all)
    # Each packet is seen once; some may be sent again.
    assert sum(len(octets) for port, _, _, octets in sink.all if port == client) < len(said) * 1.5


def time_ns() -> int:
    return time.time_ns() + 1000


def test_only_the_ports_asked_for_come_and_are_cut() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    wanted = free_port()
    with open_source(["lo"], ports=[wanted], snaplen=100) as source:
        conversation(b"not this")
        client, _ = conversation(b"x" * 1000, port=wanted)
        catch(source, decoder, lambda: bool(sink.octets_from(client)))
        assert {port for port, _, _, _ in sink.all} == {client, wanted}
        assert sink.cut >= 1000 - 34


def test_what_there_was_no_room_for_is_counted() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    with open_source(["lo"], any_port=True, buffer_octets=100_000) as source:
        conversation(b"x" * 10_000_000)
        while source.take(decoder):
            pass
        assert source.dropped() > 0
        assert source.drops(0) == source.dropped()


def test_an_interface_that_goes_down_is_reported_and_waited_for() -> None:
    if subprocess.run(["unshare", "--user", "--map-root-user", "--net", "true"]).returncode != 0:
        pytest.skip("there is no permission to have a network of one's own")
    script = """
import subprocess, time
from support.loopback import Segments, catch, conversation, free_port
from amqpscope.capture.live.programs import ports_program
from amqpscope.capture.live.scapy_source import ScapySource
from amqpscope.capture.packet import PacketDecoder
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
sink = Segments()
decoder = PacketDecoder(sink)
with ScapySource("lo", ["lo"], "", lambda _: ports_program([], 1000, True), 1000, 1000000, False) as source:
    subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
    events = []
    deadline = time.monotonic() + 20
    while not events:
        assert time.monotonic() < deadline
        source.wait(1)
        source.take(decoder)
        events += source.take_events()
    assert events == ["lo is down: waiting for it to come up"], events
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    client, _ = conversation(b"said")
    catch(source, decoder, lambda: sink.octets_from(client) == b"said")
    assert source.take_events() == ["lo is up"]
"""
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
        env={"PYTHONPATH": "tests:.", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert done.returncode == 0, done.stderr


def test_the_interfaces_that_scapy_knows() -> None:
    assert "127.0.0.1" in {one.name: one.description for one in scapy_interfaces()}["lo"]


def test_a_closed_source_has_ended() -> None:
    source = open_source(["lo"])
    source.close()
    source.close()
    assert source.ended()
    assert source.take(PacketDecoder(Segments())) == 0
