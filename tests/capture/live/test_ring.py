"""Capturing through the kernel's ring, over loopback."""

from __future__ import annotations

import errno
import socket
import sys
import threading
import time
from typing import Any

import pytest
from support.loopback import Segments, catch, conversation, free_port, refusal

if sys.platform != "linux":
    pytest.skip("packet sockets are Linux's", allow_module_level=True)

from amqpscope.capture.live import ring
from amqpscope.capture.live.opening import list_interfaces, open_source
from amqpscope.capture.live.ring import RingSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_INTERFACES

if "permission" in refusal(lambda: open_source(["lo"])):
    pytest.skip("there is no permission to capture", allow_module_level=True)


@pytest.mark.parametrize("names", [["lo"], ["any"]])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_every_octet_comes_once_and_in_order(names: list[str], address: str) -> None:
    said = bytes(range(256)) * 4000
    answered = b"answer" * 1000
    sink = Segments()
    decoder = PacketDecoder(sink)
    before = time.time_ns()
    port = free_port()
    with open_source(names, ports=[port]) as source:
        client, server = conversation(said, answered, address=address, port=port)
        catch(source, decoder, lambda: len(sink.octets_from(server)) >= len(answered))
        catch(source, decoder, lambda: len(sink.octets_from(client)) >= len(said))
        assert sink.octets_from(client) == said
        assert sink.octets_from(server) == answered
        assert source.number == decoder.packets
        assert source.dropped() == 0
    packets = [packet for _, packet, _, _ in sink.all]
    assert packets == sorted(set(packets))
    times = [time for _, _, time, _ in sink.all]
    assert before <= min(times)
    assert max(times) <= time.time_ns()
    assert sink.notes == []


def test_only_the_ports_asked_for_come() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    wanted = free_port()
    with open_source(["lo"], ports=[wanted]) as source:
        conversation(b"not this")
        client, server = conversation(b"but this", port=wanted)
        catch(source, decoder, lambda: bool(sink.octets_from(client)))
        assert server == wanted
        assert {port for port, _, _, _ in sink.all} == {client, server}


def test_packets_are_cut_to_the_snapshot_length() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    with open_source(["lo"], any_port=True, snaplen=100) as source:
        client, _ = conversation(b"x" * 1000)
        catch(source, decoder, lambda: bool(sink.octets_from(client)))
    assert sink.octets_from(client) == b"x" * (100 - 14 - 20 - 32)
    assert sink.cut >= 1000 - (100 - 14 - 20 - 32)


def test_what_there_was_no_room_for_is_counted_and_placed() -> None:
    said = b"x" * 30_000_000
    sink = Segments()
    decoder = PacketDecoder(sink)
    port = free_port()
    with open_source(["lo"], ports=[port], buffer_octets=1024 * 1024) as source:
        assert source.fill() == 0.0
        client, _ = conversation(said, port=port)
        assert source.fill() == 1.0
        assert source.dropped() == 0  # nothing is known to be missing before the first packet
        source.take(decoder)
        while source.take(decoder) and not source.dropped():
            pass
        lost = source.dropped()
        assert lost > 0
        assert source.drops(0) == lost
        taken = sink.octets_from(client)
        assert 0 < len(taken) < len(said)
        # What comes after the loss is taken from then on.
        conversation(b"later", port=port)
        catch(source, decoder, lambda: b"later" in [octets for _, _, _, octets in sink.all])
        assert source.fill() < 1.0


def test_a_loss_stands_between_the_packets_around_it() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    port = free_port()
    with open_source(["lo"], ports=[port], buffer_octets=4 * 1024 * 1024) as source:
        conversation(b"first" + b"x" * 30_000_000, port=port)
        assert source.take(decoder) > 0  # makes room, in front of which packets were lost
        assert source.dropped() == 0
        conversation(b"behind the loss", port=port)
        behind: list[int] = []
        grown: list[tuple[int, int]] = []

        def come() -> bool:
            behind[:] = [number for _, number, _, octets in sink.all if octets == b"behind the loss"]
            if source.dropped() and not grown:
                grown.append((source.number, source.dropped()))
            return bool(behind)

        catch(source, decoder, come)
    assert grown
    assert grown[0][0] < behind[0]
    assert grown[0][1] > 0


def test_wake_ends_the_waiting() -> None:
    with open_source(["lo"], ports=[1]) as source:
        begun = time.monotonic()
        source.wait(0.5)
        assert time.monotonic() - begun >= 0.4
        waking = threading.Timer(0.05, source.wake)
        waking.start()
        source.wait(15)
        assert time.monotonic() - begun < 10
        waking.join()


def test_several_interfaces_share_a_source() -> None:
    names = [one.name for one in list_interfaces() if one.name != "any" and one.link_type == 1]
    if len(names) < 2:
        pytest.skip("there is only one interface")
    sink = Segments()
    decoder = PacketDecoder(sink)
    port = free_port()
    with open_source(names, ports=[port]) as source:
        assert [one.name for one in source.interfaces] == names
        client, _ = conversation(b"said", port=port)
        catch(source, decoder, lambda: sink.octets_from(client) == b"said")
        assert names[decoder.interface] == "lo"


def test_the_interface_of_any_are_named_as_they_come() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    with open_source(["any"], any_port=True) as source:
        assert source.name == "any"
        client, _ = conversation(b"said")
        catch(source, decoder, lambda: sink.octets_from(client) == b"said")
        assert "lo" in [one.name for one in source.interfaces]


def test_listed_are_interfaces_with_their_addresses_and_any() -> None:
    found = {one.name: one for one in list_interfaces()}
    assert "127.0.0.1" in found["lo"].description
    assert found["lo"].up
    assert "any" in found


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["l0"], "no interface l0: there are lo"),
        ([], "no interface to capture from"),
        (["any", "lo"], "-i any cannot be combined with another interface"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_line(names: list[str], why: str) -> None:
    said = refusal(lambda: open_source(names))
    assert said.startswith(why)
    assert "\n" not in said


def test_a_closed_source_has_ended() -> None:
    source = open_source(["lo"])
    assert not source.ended()
    source.close()
    source.close()
    assert source.ended()
    assert source.take(PacketDecoder(Segments())) == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ports": range(1, 200)}, "199 ports"),
        ({"ports": [65536]}, "65536 is no port"),
        ({"ports": [-1]}, "-1 is no port"),
        ({"snaplen": 0}, "a snapshot length of 0 octets is too small"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        open_source(["lo"], **options)


def test_any_knows_a_bounded_number_of_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers come and go for weeks."""
    with open_source(["any"]) as source:
        assert isinstance(source, RingSource)
        monkeypatch.setattr(ring, "name_of", lambda index: f"veth{index}")
        for index in range(3 * MAX_INTERFACES):
            source._meet(index)
        assert len(source.interfaces) == MAX_INTERFACES
        assert source.interfaces[-1].name == "other interfaces"
        assert len(source._walk.places) <= 2 * MAX_INTERFACES
        assert source._walk.places[3 * MAX_INTERFACES - 1] == MAX_INTERFACES - 1


def test_the_buffer_is_as_large_as_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def short_of_memory(name: str, names: Any, program: Any, octets: int, promiscuous: bool) -> RingSource:
        asked.append(octets)
        if octets > 4_000_000:
            raise OSError(errno.ENOMEM, "no")
        return RingSource(name, names, program, octets, promiscuous)

    monkeypatch.setattr(ring, "RingSource", short_of_memory)
    open_source(["lo"], buffer_octets=16_000_000).close()
    assert asked == [16_000_000, 8_000_000, 4_000_000]
    monkeypatch.setattr(ring, "RingSource", lambda *_: short_of_memory("", [], None, 2**40, False))
    assert refusal(lambda: open_source(["lo"])) == "lo: cannot be captured from: no"


def test_a_hundred_ports_are_not() -> None:
    with open_source(["lo"], ports=range(1, 101)) as source:
        assert isinstance(source, RingSource)


def test_a_filter_of_ones_own_is_taken() -> None:
    pytest.importorskip("scapy")
    sink = Segments()
    decoder = PacketDecoder(sink)
    with socket.create_server(("127.0.0.1", 0)) as other:
        wanted = other.getsockname()[1]
    with open_source(["lo"], filter=f"tcp dst port {wanted}") as source:
        client, _ = conversation(b"but this", b"not this", port=wanted)
        catch(source, decoder, lambda: bool(sink.octets_from(client)))
        assert {port for port, _, _, _ in sink.all} == {client}
    sink.all.clear()
    with open_source(["any"], filter=f"src port {wanted}") as source:
        client, _ = conversation(b"not this", b"but this", port=wanted)
        catch(source, decoder, lambda: bool(sink.octets_from(wanted)))
        assert {port for port, _, _, _ in sink.all} == {wanted}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tcp port http or or", "syntax error"),
        ("port 99999", "illegal port number"),
        ("vlan 5 and port 5672", "remove `vlan` from the filter"),
        ("port 1\0", "cannot be understood"),
    ],
)
def test_a_bad_filter_is_said_in_a_line(text: str, why: str) -> None:
    pytest.importorskip("scapy")
    said = refusal(lambda: open_source(["lo"], filter=text))
    assert said.startswith("the filter ")
    assert why in said
    assert "\n" not in said


def test_all_that_have_come_are_known_before_they_are_handed_over() -> None:
    sink = Segments()
    decoder = PacketDecoder(sink)
    port = free_port()
    with open_source(["lo"], ports=[port]) as source:
        client, _ = conversation(b"x" * 100_000, port=port)
        # The last block is the kernel's until some milliseconds later.
        arrived = source.arrived()
        assert arrived is not None
        catch(source, decoder, lambda: source.number >= arrived)
        assert sink.octets_from(client) == b"x" * 100_000
        # Asking takes nothing away.
        again = source.arrived()
        assert again is not None and again >= source.number > 0


def test_what_was_dropped_has_come_too() -> None:
    port = free_port()
    with open_source(["lo"], ports=[port], buffer_octets=1024 * 1024) as source:
        conversation(b"x" * 30_000_000, port=port)
        arrived = source.arrived()
        assert arrived is not None
        catch(source, PacketDecoder(Segments()), lambda: source.number + source.dropped() >= arrived)
        assert source.dropped() > 0
