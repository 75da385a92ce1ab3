"""Interfaces that go down, go away and come back, in a network of their own: two ends of a cable."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]

if sys.platform != "linux" or not shutil.which("ip") or not shutil.which("unshare"):
    pytest.skip("it takes Linux, ip and unshare", allow_module_level=True)
if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
    pytest.skip("there is no permission to have a network of one's own", allow_module_level=True)

BEFORE = """
import subprocess
from support.loopback import Segments, catch, conversation
from amqpscope.capture.live.opening import open_source
from amqpscope.capture.packet import PacketDecoder

def ip(*words):
    subprocess.run(["ip", *words], check=True)

def cable(*options):
    ip("link", "add", *options, "west", "type", "veth", "peer", "name", "east")
    ip("address", "add", "fd01::1/64", "dev", "west", "nodad")
    ip("link", "set", "west", "up")
    ip("link", "set", "east", "up")

def datagram():
    '''A TCP segment out of the one end, to a host that is not there; nothing is asked of the network.'''
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind(("east", 0))
    raw.send(FRAME)
    raw.close()

import socket, struct, time
FRAME = (b"\\2" + bytes(10) + b"\\4" + b"\\x08\\0" + bytes.fromhex("45000028000040004006") + bytes(2)
    + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + struct.pack("!HHIIBBHHH", 5672, 1024, 1, 0, 0x50, 2, 0, 0, 0))

sink = Segments()
decoder = PacketDecoder(sink)
events = []

def events_of(source, until):
    deadline = time.monotonic() + 20
    while until not in events:
        assert time.monotonic() < deadline, events
        source.wait(1)
        source.take(decoder)
        events.extend(source.take_events())

def heard(source):
    come(source, lambda count=len(sink.all): len(sink.all) > count)

def come(source, until):
    '''An end that has come up takes a moment until it sends: again and again, that is.'''
    deadline = time.monotonic() + 20
    while not until():
        assert time.monotonic() < deadline, "it did not come"
        datagram()
        source.wait(0.2)
        source.take(decoder)
"""


def alone(script: str) -> None:
    """Run it in a network of its own, in which there is only a loopback interface that is down."""
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", BEFORE + script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[3],
        env={"PYTHONPATH": "tests:.", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_interface_that_goes_down_and_up_is_listened_to_again() -> None:
    alone("""
cable()
with open_source(["west"]) as source:
    heard(source)
    ip("link", "set", "west", "down")
    events_of(source, "west is down: waiting for it to come up")
    ip("link", "set", "west", "up")
    events_of(source, "west is up")
    heard(source)
assert events == ["west is down: waiting for it to come up", "west is up"], events
""")


def test_an_interface_that_is_gone_and_comes_back_is_listened_to_again() -> None:
    alone("""
cable()
with open_source(["west"]) as source:
    heard(source)
    ip("link", "delete", "west")
    events_of(source, "the interface west is gone: waiting until it returns")
    cable()
    events_of(source, "west is back")
    heard(source)
    assert len(source.interfaces) == 1
    assert decoder.interface == 0
""")


def test_it_takes_no_privilege_to_listen_again() -> None:
    alone("""
from amqpscope.capture.live.privileges import give_up
import os
cable()
with open_source(["west"]) as source:
    child = os.fork()  # which keeps its privileges, and does what the system does
    if child == 0:
        ip("link", "delete", "west")
        cable()
        os._exit(0)
    give_up()
    assert os.waitpid(child, 0)[1] == 0
    events_of(source, "west is back")
    before = len(sink.all)
    # A segment of our own takes a raw socket: the kernel's own packets will do.
    ask = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    ask.setblocking(False)
    try:
        ask.connect(("fd01::2", 5672))
    except OSError:
        pass
    assert source._socket.getsockname()[0] == "west", source._socket.getsockname()
""")


def test_one_that_is_down_at_first_is_waited_for() -> None:
    alone("""
with open_source(["lo"]) as source:
    events_of(source, "lo is down: waiting for it to come up")
    ip("link", "set", "lo", "up")
    events_of(source, "lo is up")
    client, _ = conversation(b"said", port=5672)
    catch(source, decoder, lambda: sink.octets_from(client) == b"said")
""")


def test_of_several_interfaces_one_may_come_back() -> None:
    alone("""
ip("link", "set", "lo", "up")
cable()
with open_source(["lo", "west"]) as source:
    while source.fill() == 0:
        datagram()
        source.wait(0.2)
    ip("link", "delete", "west")
    while "the interface west is gone: waiting until it returns" not in events:
        source.wait(1)
        events += source.take_events()
    decoder.interface = 7
    before = len(sink.all)
    catch(source, decoder, lambda: len(sink.all) > before)  # packets of the one that is gone have waited
    assert decoder.interface == 1
    client, _ = conversation(b"said", port=5672)
    catch(source, decoder, lambda: sink.octets_from(client) == b"said")
    assert decoder.interface == 0
    cable()
    events_of(source, "west is back")
    heard(source)
    assert decoder.interface == 1
    # The other end is another interface, whose packets are not asked for.
    packets = source.number
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind(("lo", 0))
    client, _ = conversation(b"more", port=5672)
    catch(source, decoder, lambda: sink.octets_from(client) == b"more")
    assert len(source.interfaces) == 2
""")


def test_any_hears_interfaces_that_come_later() -> None:
    alone("""
with open_source(["any"]) as source:
    cable()
    heard(source)
    heard(source)
    assert sorted(one.name for one in source.interfaces) == ["east", "west"], source.interfaces
    assert source.take_events() == []
""")


def test_an_interface_may_be_called_otherwise() -> None:
    alone("""
cable()
with open_source(["west"]) as source:
    ip("link", "set", "west", "down")
    ip("link", "set", "west", "name", "occident")
    ip("link", "set", "occident", "up")
    events_of(source, "the interface west was renamed to occident")
    heard(source)
""")


def test_one_that_comes_back_as_another_kind_is_not_listened_to() -> None:
    alone("""
cable()
with open_source(["west"]) as source:
    ip("link", "delete", "west")
    events_of(source, "the interface west is gone: waiting until it returns")
    ip("tuntap", "add", "dev", "west", "mode", "tun")
    events_of(source, "west is back with another link type: its packets are not captured")
    ip("link", "delete", "west")
    cable()
    events_of(source, "west is back")
    heard(source)
""")


def test_tags_of_vlans_are_in_what_is_captured() -> None:
    alone("""
from amqpscope.capture.recorder import PacketRecorder
kept = []
class Kept(PacketRecorder):
    def packet(self, packet):
        octets = packet.buf[packet.start : packet.end]
        kept.append((packet.interface, packet.link_type, octets, packet.wire))
decoder.recorder = Kept()
cable()
once = FRAME[:12] + bytes.fromhex("81002005") + FRAME[12:]
twice = FRAME[:12] + bytes.fromhex("88a8000781002005") + FRAME[12:]
for frame in (once, twice):
    FRAME = frame
    for names in (["west"], ["any"], ["east"]):
        kept.clear()
        with open_source(names) as source:
            heard(source)
            if names == ["any"]:
                catch(source, decoder, lambda: len(source.interfaces) == 2)
                heard(source)
                assert {interface for interface, *_ in kept} == {0, 1}
        reported = {tuple(packet) for _, *packet in kept}
        if names == ["any"]:
            assert reported == {(101, frame[-40:], 40)}, kept
        else:
            assert reported == {(1, frame, len(frame))}, (names, kept, frame)
""")


def test_what_has_no_ethernet_header_begins_with_ip() -> None:
    alone("""
import fcntl, os
tunnel = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tunnel, 0x400454CA, struct.pack("16sH22x", b"tunnel", 0x1001))
ip("link", "set", "tunnel", "up")
cable()
for names in (["tunnel"], ["tunnel", "west"], ["any"]):
    with open_source(names) as source:
        before = len(sink.all)
        os.write(tunnel, FRAME[14:])
        catch(source, decoder, lambda: len(sink.all) == before + 1)
        assert source.interfaces[0].link_type == 101
        if names != ["tunnel"]:
            heard(source)
assert sink.notes == [], sink.notes
""")


def test_fragments_pass_the_filter() -> None:
    alone("""
cable()
whole = FRAME
first = bytearray(whole)
first[14 + 6 : 14 + 8] = b"\\x20\\x00"  # more to come
last = bytearray(whole)
last[14 + 6 : 14 + 8] = b"\\x00\\x05"
last[14 + 20 : 14 + 24] = bytes(4)  # no ports
for FRAME in (bytes(first), bytes(last)):
    before = decoder.fragments
    with open_source(["west"]) as source:
        come(source, lambda: decoder.fragments > before)
""")
