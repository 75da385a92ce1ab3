"""Writes the captures that the bench reads: large, legal in everything, the same for the same seed.

    python tests/bench/generate.py small --size 300MB --out FILE

small      24 long connections of small messages both ways (about 380 octets each), MTU 1500
many       short connections of some 17 kB each, many of them at a time
large      6 connections of messages of 100 kB to 4 MB, each over many transfers, MTU 1500
loopback   as small, in segments of up to 64 KiB, as a capture on `lo` has them
rabbitmq   24 long connections of AMQP 0-9-1, small messages both ways (about 330 octets each), MTU 1500: the
           client publishes with confirms and consumes with a prefetch window
tls        as small, in TLS 1.3; the key log lies beside it (needs the package cryptography)

How it works. Every connection is a generator of (time, record of the pcap file), and the file is their merge
by time. A connection is a conversation in turns: an end settles what it received in the turn before, grants
credit and window anew when half of it is used, and sends as many transfers as it was granted; everything is
acknowledged before it is used. Frames come from templates (made by the test encoder) in which only numbers
are changed, and packet headers from one `struct`: some 100 MB/s, with no more memory than the open turns.

Peers break no rule of AMQP here, on purpose: the same files must later give no finding at all. The capture
is less tidy than the peers: some bursts are captured out of order and some segments twice. The checksum of
IP is right, that of TCP is 0, which is what offloading leaves and nobody verifies.
"""

from __future__ import annotations

import argparse
import functools
import heapq
import importlib.util
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import support.amqp091_encode as amqp091
import support.amqp10_encode as amqp

START = 1_700_000_000_000_000_000
MAX_FRAME_SIZE = 65536
WINDOW = 4096  # transfer frames an end is ready to take
CREDIT = 1000  # deliveries
LARGE_WINDOW = 64  # the same for the kind of large messages: what a window lets through is a turn there
LARGE_CREDIT = 10
OUTGOING_WINDOW = 0x7FFFFFFF
REORDERED = 0.0005  # share of the segments where a burst of 3 to 8 is captured out of order
RETRANSMITTED = 0.0003  # share of the segments that are captured twice

_RECORD = struct.Struct("<IIII")


def sealing() -> Any:
    """The module beside this script, which is no module of a package: only captures in TLS need it."""
    spec = importlib.util.spec_from_file_location("bench_sealing", Path(__file__).with_name("sealing.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The handles of each end: of the link on which it sends, and of the other.
_OUT, _INTO = 0, 1
# Ethernet 14; IPv4 without options 20; TCP 20 with 12 octets of options (two no-ops and a timestamp).
_HEADERS = struct.Struct(">14sHHHHHH8sHHIIHHHHHBBII")
_HEADERS_SIZE = 66
_FIN, _SYN, _PSH, _ACK = 0x01, 0x02, 0x08, 0x10
_U32 = struct.Struct(">I")


# In a template these octets stand where a number of four octets goes.
_MARKS = (b"\xde\xad\xbe\x01", b"\xde\xad\xbe\x02", b"\xde\xad\xbe\x03")


def _hole(number: int) -> amqp.Encoded:
    """A uint in its widest encoding whose value a template leaves open."""
    return amqp.raw(b"\x70" + _MARKS[number])


def _parts(octets: bytes) -> list[bytes]:
    """What stands before, between and after the holes of a template."""
    parts = []
    for mark in _MARKS:
        before, found, octets_after = octets.partition(mark)
        parts.append(before)
        if not found:
            return parts
        octets = octets_after
    return [*parts, octets]


def _message(rng: random.Random, size: int) -> bytes:
    """The sections of one message of `size` octets; the last hole is its message-id."""
    head = (
        amqp.header(durable=True, ttl=60000)
        + amqp.message_annotations({"x-opt-partition-key": f"key-{rng.randrange(100)}"})
        + amqp.properties(
            message_id=_MARKS[2],
            to="orders",
            subject=rng.choice(("created", "changed", "cancelled")),
            content_type="application/json",
            creation_time=1_700_000_000_000,
        )
        + amqp.application_properties(
            {
                "region": rng.choice(("north", "south")),
                "attempt": amqp.int_(rng.randrange(9)),
                "replayed": False,
            }
        )
    )
    content = rng.randbytes(size).hex().encode()
    return head + amqp.data(content[: size - len(head) - 5])


class Templates:
    """The frames that an end sends over and over."""

    def __init__(self, large: bool, channel: int, settled: bool) -> None:
        self.flow = _parts(
            amqp.frame(
                amqp.flow(
                    next_incoming_id=_hole(0),
                    incoming_window=LARGE_WINDOW if large else WINDOW,
                    next_outgoing_id=_hole(1),
                    outgoing_window=OUTGOING_WINDOW,
                    handle=_INTO,
                    delivery_count=_hole(2),
                    link_credit=LARGE_CREDIT if large else CREDIT,
                ),
                channel=channel,
            )
        )
        self.disposition = _parts(
            amqp.frame(
                amqp.disposition(
                    role=amqp.RECEIVER, first=_hole(0), last=_hole(1), settled=True, state=amqp.accepted()
                ),
                channel=channel,
            )
        )
        transfer = amqp.transfer(
            handle=_OUT, delivery_id=_hole(0), delivery_tag=_MARKS[1], message_format=0, settled=settled
        )
        rng = random.Random("messages")
        self.messages = [
            _parts(amqp.frame(transfer, _message(rng, size - 8 - len(transfer)), channel=channel))
            for size in (310, 340, 350, 380, 380, 400, 420, 460)
        ]


_templates = functools.cache(Templates)


class Place:
    """One peer's place in the stream of packets."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sequence = rng.getrandbits(32)
        self.identification = rng.getrandbits(16)
        self.prefix = b""
        self.addresses = b""
        self.ports = (0, 0)
        self.header_sum = 0  # of the words of the IP header that never change


class End(Place):
    """One peer of AMQP 1.0: its half of the session and of the two links.

    It sends deliveries over one link and receives over another.
    """

    def __init__(self, rng: random.Random, kind: str, channel: int, settled: bool) -> None:
        super().__init__(rng)
        self.large = kind == "large"
        self.channel = channel
        # What this end sends.
        self.settled = settled
        self.transfers = 0  # transfer frames sent: next-outgoing-id
        self.deliveries = 0  # deliveries sent: delivery-count, and the next delivery-id
        self.may_transfer = 0  # transfers must stay below this number: the other's window
        self.may_deliver = 0  # deliveries must stay below this number: the link's credit
        self.rest = memoryview(b"")  # what is not yet sent of a large message
        self.sizes = [100_000]
        # What it receives.
        self.window = LARGE_WINDOW if self.large else WINDOW
        self.credit = LARGE_CREDIT if self.large else CREDIT
        self.received_transfers = 0
        self.received_deliveries = 0
        self.unsettled = 0  # the first delivery it has not settled
        self.granted_transfer = 0
        self.granted_deliver = 0
        self.templates = _templates(self.large, channel, settled)

    def turn(self, other: End, wanted: int) -> list[bytes]:
        """The frames of one turn: settle, grant, and then up to `wanted` transfers as far as granted."""
        frames: list[bytes] = []
        if self.unsettled < self.received_deliveries:
            if not other.settled:
                a, b, c = self.templates.disposition
                frames += (a, _U32.pack(self.unsettled), b, _U32.pack(self.received_deliveries - 1), c)
            self.unsettled = self.received_deliveries
        if (
            self.granted_transfer - self.received_transfers <= self.window // 2
            or self.granted_deliver - self.received_deliveries <= self.credit // 2
        ):
            frames.append(self.grant(other))
        wanted = min(wanted, self.may_transfer - self.transfers)
        if self.large:
            self._large_transfers(frames, wanted, other)
        else:
            self._small_transfers(frames, min(wanted, self.may_deliver - self.deliveries), other)
        return frames

    def grant(self, other: End) -> bytes:
        """A flow that restores the whole window and the whole credit of what `other` sends."""
        a, b, c, d = self.templates.flow
        self.granted_transfer = other.may_transfer = self.received_transfers + self.window
        self.granted_deliver = other.may_deliver = self.received_deliveries + self.credit
        return b"".join(
            (
                a,
                _U32.pack(self.received_transfers),
                b,
                _U32.pack(self.transfers),
                c,
                _U32.pack(self.received_deliveries),
                d,
            )
        )

    def _small_transfers(self, frames: list[bytes], count: int, other: End) -> None:
        """Single-transfer deliveries; delivery-id, delivery-tag and message-id are one number."""
        messages = self.templates.messages
        pack = _U32.pack
        first = self.deliveries
        pick = self.rng.randrange(8)
        for number in range(first, first + count):
            a, b, c, d = messages[(number + pick) & 7]
            digits = pack(number)
            frames += (a, digits, b, digits, c, digits, d)
        count = max(count, 0)
        self.deliveries += count
        self.transfers += count
        other.received_deliveries += count
        other.received_transfers += count

    def _large_transfers(self, frames: list[bytes], count: int, other: End) -> None:
        """Messages of 100 kB to 4 MB, in frames of the largest size agreed."""
        while count > 0:
            starting = not self.rest
            if starting:
                if self.deliveries >= self.may_deliver:
                    return
                size = self.rng.choice(self.sizes)
                self.rest = memoryview(amqp.data(_BLOB[: size - self.rng.randrange(1000)]))
                number = _U32.pack(self.deliveries)
                named: dict[str, Any] = {
                    "delivery_id": amqp.raw(b"\x70" + number),
                    "delivery_tag": number,
                    "message_format": 0,
                    "settled": self.settled,
                }
            else:
                named = {}
            room = MAX_FRAME_SIZE - 8 - len(amqp.transfer(handle=_OUT, more=True, **named))
            more = len(self.rest) > room
            body = amqp.transfer(handle=_OUT, more=more, **named)
            frames.append(amqp.frame(body, bytes(self.rest[:room]), channel=self.channel))
            self.rest = self.rest[room:]
            self.transfers += 1
            other.received_transfers += 1
            if not more:
                self.deliveries += 1
                other.received_deliveries += 1
            count -= 1


_BLOB = random.Random("blob").randbytes(4_000_000)


def opening10(client: End, server: End, number: int) -> Iterator[tuple[End, bytes]]:
    """The set-up of a connection of AMQP 1.0, of a session and of two links."""
    yield client, amqp.SASL_HEADER
    yield (
        server,
        amqp.SASL_HEADER
        + amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["ANONYMOUS", "PLAIN"])),
    )
    yield (
        client,
        amqp.sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS", initial_response=b"bench", hostname="broker")),
    )
    yield server, amqp.sasl_frame(amqp.sasl_outcome(code=0))
    for end, name in ((client, f"client-{number}"), (server, "broker")):
        named: dict[str, Any] = {
            "container_id": name,
            "max_frame_size": MAX_FRAME_SIZE,
            "channel_max": 255,
            "idle_time_out": 60000,
        }
        if end is client:
            named["hostname"] = "broker"
        yield end, amqp.AMQP_HEADER + amqp.frame(amqp.open_(**named))
    for end, other in ((client, server), (server, client)):
        begin = amqp.begin(
            remote_channel=None if end is client else other.channel,
            next_outgoing_id=0,
            incoming_window=end.window,
            outgoing_window=OUTGOING_WINDOW,
            handle_max=255,
        )
        end.granted_transfer = other.may_transfer = end.window
        yield end, amqp.frame(begin, channel=end.channel)
    mode = 1 if client.settled else 0
    for end in (client, server):
        up = end is client
        common: dict[str, Any] = {"snd_settle_mode": mode, "rcv_settle_mode": 0}
        sending = amqp.attach(
            name=f"{'up' if up else 'down'}-{number}",
            handle=_OUT,
            role=amqp.SENDER,
            source=amqp.source(address="orders" if not up else None),
            target=amqp.target(address="orders" if up else None),
            initial_delivery_count=0,
            **common,
        )
        receiving = amqp.attach(
            name=f"{'down' if up else 'up'}-{number}",
            handle=_INTO,
            role=amqp.RECEIVER,
            source=amqp.source(address="orders" if up else None),
            target=amqp.target(address="orders" if not up else None),
            **common,
        )
        yield end, b"".join(amqp.frame(body, channel=end.channel) for body in (sending, receiving))
    yield server, server.grant(client)
    yield client, client.grant(server)


def closing10(client: End, server: End) -> Iterator[tuple[End, bytes]]:
    """Its end."""
    yield client, b"".join(client.turn(server, 0))
    yield server, b"".join(server.turn(client, 0))
    for end in (client, server):
        bodies = [amqp.detach(handle=handle, closed=True) for handle in (_OUT, _INTO)]
        yield end, b"".join(amqp.frame(body, channel=end.channel) for body in bodies)
    for end in (client, server):
        yield end, amqp.frame(amqp.end(), channel=end.channel)
    for end in (client, server):
        yield end, amqp.frame(amqp.close())


PREFETCH = 500


class Client091(Place):
    """The client of AMQP 0-9-1, on one channel: it publishes, and acknowledges what it is sent."""

    def __init__(self, rng: random.Random, number: int) -> None:
        super().__init__(rng)
        self.published = 0
        self.acknowledged = 0
        self.one_by_one = number % 2 == 0  # else with multiple
        self.messages = [
            _message091(amqp091.method("basic.publish", exchange="orders", routing_key="new"), n)
            for n in (150, 200, 220, 250)
        ]
        self.ack = _parts(amqp091.say("basic.ack", 1, delivery_tag=_TAG))
        self.ack_all = _parts(amqp091.say("basic.ack", 1, delivery_tag=_TAG, multiple=True))

    def turn(self, other: Server091, wanted: int) -> list[bytes]:
        """The frames of one turn: acknowledge what came, then publish."""
        frames: list[bytes] = []
        if self.one_by_one:
            a, b = self.ack
            for tag in range(self.acknowledged + 1, other.delivered + 1):
                frames += (a, _U32.pack(tag), b)
        elif other.delivered > self.acknowledged:
            a, b = self.ack_all
            frames += (a, _U32.pack(other.delivered), b)
        self.acknowledged = other.delivered
        pick = self.rng.randrange(4)
        for number in range(wanted):
            frames.append(self.messages[(number + pick) & 3])
        self.published += wanted
        return frames


class Server091(Place):
    """The server of AMQP 0-9-1: it confirms what was published, and delivers within the prefetch window."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.delivered = 0
        self.confirmed = 0
        deliver = amqp091.method(
            "basic.deliver", consumer_tag="ctag1.0", delivery_tag=_TAG, exchange="orders", routing_key="new"
        )
        self.messages = [_parts(_message091(deliver, n)) for n in (150, 200, 220, 250)]
        self.confirm = _parts(amqp091.say("basic.ack", 1, delivery_tag=_TAG, multiple=True))

    def turn(self, other: Client091, wanted: int) -> list[bytes]:
        """The frames of one turn: confirm, then deliver."""
        frames: list[bytes] = []
        if self.confirmed < other.published:
            a, b = self.confirm
            frames += (a, _U32.pack(other.published), b)
            self.confirmed = other.published
        wanted = min(wanted, PREFETCH - (self.delivered - other.acknowledged))
        pick = self.rng.randrange(4)
        for tag in range(self.delivered + 1, self.delivered + 1 + wanted):
            a, b = self.messages[(tag + pick) & 3]
            frames += (a, _U32.pack(tag), b)
        self.delivered += wanted
        return frames


# A delivery-tag whose lower half is a hole of a template.
_TAG = int.from_bytes(_MARKS[0], "big")


def _message091(method: bytes, size: int) -> bytes:
    """A method, a content header with the usual properties, and a body of so many octets."""
    rng = random.Random(f"message {size}")
    properties: dict[str, Any] = {
        "content_type": "application/json",
        "delivery_mode": 2,
        "headers": {"region": "north", "attempt": ("I", 3), "replayed": False},
        "message_id": f"{rng.getrandbits(64):016x}",
        "timestamp": 1_700_000_000,
    }
    body = rng.randbytes(size).hex().encode()[:size]
    return amqp091.frame(amqp091.METHOD, 1, method) + amqp091.content(1, body, **properties)


def opening091(client: Client091, server: Server091, number: int) -> Iterator[tuple[Place, bytes]]:
    """The set-up of a connection of AMQP 0-9-1, of a channel, and of a consumer on it."""
    say = amqp091.say
    capabilities = {"publisher_confirms": True, "basic.nack": True, "consumer_cancel_notify": True}
    yield client, amqp091.header()
    about = dict.fromkeys(("platform", "copyright", "information", "version", "host"), "bench")
    yield (
        server,
        say(
            "connection.start",
            0,
            version_minor=9,
            server_properties={"product": "RabbitMQ", **about, "capabilities": capabilities},
            mechanisms="PLAIN AMQPLAIN",
            locales="en_US",
        ),
    )
    yield (
        client,
        say(
            "connection.start-ok",
            0,
            client_properties={"product": f"bench {number}", **about, "capabilities": capabilities},
            mechanism="PLAIN",
            response=b"\0bench\0bench",
            locale="en_US",
        ),
    )
    limits = {"channel_max": 2047, "frame_max": 131072, "heartbeat": 0}
    yield server, say("connection.tune", 0, **limits)
    yield client, say("connection.tune-ok", 0, **limits) + say("connection.open", 0, virtual_host="/")
    yield server, say("connection.open-ok", 0)
    yield client, say("channel.open", 1)
    yield server, say("channel.open-ok", 1)
    yield client, say("confirm.select", 1)
    yield server, say("confirm.select-ok", 1)
    yield client, say("basic.qos", 1, prefetch_count=PREFETCH)
    yield server, say("basic.qos-ok", 1)
    yield client, say("basic.consume", 1, queue="orders", consumer_tag="ctag1.0")
    yield server, say("basic.consume-ok", 1, consumer_tag="ctag1.0")


def closing091(client: Client091, server: Server091) -> Iterator[tuple[Place, bytes]]:
    """Its end."""
    yield client, b"".join(client.turn(server, 0))
    yield server, b"".join(server.turn(client, 0))
    for cls in ("channel", "connection"):
        yield client, amqp091.say(f"{cls}.close", int(cls == "channel"), reply_code=200, reply_text="bye")
        yield server, amqp091.say(f"{cls}.close-ok", int(cls == "channel"))


class Connection:
    """One connection as a generator of (time in ns, record)."""

    def __init__(self, kind: str, number: int, size: int, start: int, rng: random.Random) -> None:
        self.kind = kind
        self.number = number
        self.size = size  # octets of the file it may fill
        self.rng = rng
        self.time = start
        self.written = 0
        self.sealing: Any = None
        if kind == "tls":
            self.sealing = sealing().Sealing(number)
        self.mss = 65483 if kind == "loopback" else 1448
        # Every third connection only sends, every third only receives; every sixth settles in advance.
        self.wants = ((1, 1), (1, 0), (0, 1))[number % 3] if kind != "many" else (1, 1)
        self.client: Any
        self.server: Any
        self.opening: Iterator[tuple[Any, bytes]]
        self.closing: Iterator[tuple[Any, bytes]]
        if kind == "rabbitmq":
            self.client, self.server = Client091(rng, number), Server091(rng)
            self.opening = opening091(self.client, self.server, number)
            self.closing = closing091(self.client, self.server)
        else:
            settled = number % 6 == 5
            # The channels and handles of the two ends differ, as they may.
            self.client = End(rng, kind, channel=0, settled=settled)
            self.server = End(rng, kind, channel=3, settled=settled)
            for end in (self.client, self.server):  # a message takes no more than a tenth of the connection
                end.sizes += [octets for octets in (250_000, 1_000_000, 4_000_000) if octets <= size // 10]
            self.opening = opening10(self.client, self.server, number)
            self.closing = closing10(self.client, self.server)
        self._address()

    def _address(self) -> None:
        client = bytes((10, 1, self.number >> 8 & 0xFF, self.number & 0xFF))
        server = b"\x0a\x02\x00\x05"
        port = 32768 + self.number * 7 % 28000
        listens = 5671 if self.kind == "tls" else 5672
        self.client.ports, self.server.ports = (port, listens), (listens, port)
        if self.kind == "loopback":
            self.client.addresses = self.server.addresses = b"\x7f\x00\x00\x01" * 2
            self.client.prefix = self.server.prefix = bytes(12) + b"\x08\x00"
        else:
            self.client.addresses, self.server.addresses = client + server, server + client
            near, far = b"\x02\x00\x00\x00\x00\x01", b"\x02\x00\x00\x00\x00\x02"
            self.client.prefix, self.server.prefix = far + near + b"\x08\x00", near + far + b"\x08\x00"
        for end in (self.client, self.server):
            end.header_sum = 0x4500 + 0x4000 + 0x4006 + sum(struct.unpack(">4H", end.addresses))

    def packet(self, end: Place, other: Place, sequence: int, flags: int, octets: bytes) -> tuple[int, bytes]:
        """A segment of `end` now; it acknowledges all that `other` has sent."""
        time = self.time
        self.time = time + 20_000 + self.rng.getrandbits(14)
        size = len(octets)
        end.identification = identification = (end.identification + 1) & 0xFFFF
        total = end.header_sum + 52 + size + identification
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        seconds, rest = divmod(time, 1_000_000_000)
        ticks = time // 1_000_000 & 0xFFFFFFFF
        record = b"".join(
            (
                _RECORD.pack(seconds, rest // 1000, _HEADERS_SIZE + size, _HEADERS_SIZE + size),
                _HEADERS.pack(
                    end.prefix,
                    0x4500,
                    52 + size,
                    identification,
                    0x4000,
                    0x4006,
                    total ^ 0xFFFF,
                    end.addresses,
                    *end.ports,
                    sequence & 0xFFFFFFFF,
                    other.sequence & 0xFFFFFFFF if flags & _ACK else 0,
                    0x8000 | flags,
                    0xFFFF,
                    0,
                    0,
                    0x0101,
                    8,
                    10,
                    ticks,
                    ticks - 1,
                ),
                octets,
            )
        )
        self.written += len(record)
        return time, record

    def say(self, end: Place, other: Place, octets: bytes) -> list[tuple[int, bytes]]:
        """Octets of the stream as captured: cut into segments, every second one acknowledged at once."""
        if self.sealing is not None:
            octets = self.sealing.seal(0 if end is self.client else 1, octets)
        return self.sent(end, other, octets)

    def sent(self, end: Place, other: Place, octets: bytes) -> list[tuple[int, bytes]]:
        """The same of octets as they are in TCP."""
        packets: list[tuple[int, bytes]] = []
        segments = []  # places of the data segments in `packets`
        mss = self.mss
        last = len(octets) - mss
        sequence = end.sequence
        for position in range(0, len(octets), mss):
            flags = _PSH | _ACK if position >= last else _ACK
            segments.append(len(packets))
            packets.append(
                self.packet(end, other, sequence + position, flags, octets[position : position + mss])
            )
            end.sequence = sequence + min(position + mss, len(octets))
            if len(segments) % 2 == 0:
                packets.append(self.packet(other, end, other.sequence, _ACK, b""))
        if len(segments) % 2 and self.rng.random() < 0.5:  # the delayed acknowledgement, before any answer
            packets.append(self.packet(other, end, other.sequence, _ACK, b""))
        chance = self.rng.random()
        share = len(segments)
        if share >= 3 and chance < REORDERED * share:
            self._reorder(packets, segments)
        elif chance > 1 - RETRANSMITTED * share:
            again = self.rng.randrange(share) * mss
            packets.append(
                self.packet(end, other, sequence + again, _PSH | _ACK, octets[again : again + mss])
            )
        self.time += 200_000 + self.rng.getrandbits(22 if self.kind == "many" else 25)
        return packets

    def _reorder(self, packets: list[tuple[int, bytes]], segments: list[int]) -> None:
        """A burst of 3 to 8 data segments changes places; the times of the file still rise."""
        size = min(self.rng.randint(3, 8), len(segments))
        first = self.rng.randrange(len(segments) - size + 1)
        places = segments[first : first + size]
        shuffled = places[:]
        self.rng.shuffle(shuffled)
        records = [packets[place][1] for place in shuffled]
        for place, record in zip(places, records, strict=True):
            time = packets[place][0]
            seconds, rest = divmod(time, 1_000_000_000)
            packets[place] = (time, struct.pack("<II", seconds, rest // 1000) + record[8:])

    def packets(self) -> Iterator[tuple[int, bytes]]:
        client, server = self.client, self.server
        yield self.packet(client, server, client.sequence, _SYN, b"")
        client.sequence += 1
        yield self.packet(server, client, server.sequence, _SYN | _ACK, b"")
        server.sequence += 1
        yield self.packet(client, server, client.sequence, _ACK, b"")
        if self.sealing is not None:
            for peer, octets in self.sealing.handshake():
                yield from self.sent(*((client, server) if peer == 0 else (server, client)), octets)
        for end, octets in self.opening:
            yield from self.say(end, server if end is client else client, octets)
        limit = self.size - 4000
        of_large = max(1, min(40, self.size // (20 * MAX_FRAME_SIZE)))
        largest = {"small": 16, "many": 6, "large": of_large, "loopback": 400, "rabbitmq": 16, "tls": 16}[
            self.kind
        ]
        client_wants, server_wants = self.wants
        rng = self.rng
        while self.written + self._rest() < limit:
            octets = b"".join(client.turn(server, client_wants and rng.randint(1, largest)))
            if octets:
                yield from self.say(client, server, octets)
            octets = b"".join(server.turn(client, server_wants and rng.randint(1, largest)))
            if octets:
                yield from self.say(server, client, octets)
        if self.kind == "large":
            yield from self._end_of_large_messages()
        for end, octets in self.closing:
            if octets:
                yield from self.say(end, server if end is client else client, octets)
        yield self.packet(client, server, client.sequence, _FIN | _ACK, b"")
        client.sequence += 1
        yield self.packet(server, client, server.sequence, _FIN | _ACK, b"")
        server.sequence += 1
        yield self.packet(client, server, client.sequence, _ACK, b"")

    def _rest(self) -> int:
        """Octets of large messages under way."""
        return len(self.client.rest) + len(self.server.rest) if self.kind == "large" else 0

    def _end_of_large_messages(self) -> Iterator[tuple[int, bytes]]:
        """A large message that is under way is sent to its end."""
        while self.client.rest or self.server.rest:
            for end, other in ((self.client, self.server), (self.server, self.client)):
                wanted = -(-len(end.rest) // (MAX_FRAME_SIZE - 100)) if end.rest else 0
                octets = b"".join(end.turn(other, wanted))
                if octets:
                    yield from self.say(end, other, octets)


def _connection(kind: str, number: int, size: int, start: int, seed: int) -> Iterator[tuple[int, bytes]]:
    yield from Connection(kind, number, size, start, random.Random(seed)).packets()


KINDS = ("small", "many", "large", "loopback", "rabbitmq", "tls")


def generate(kind: str, size: int, out: Path, *, seed: int = 1, connections: int = 0) -> None:
    """Writes a capture of about `size` octets."""
    rng = random.Random(f"{kind} {seed}")
    count = (
        connections
        or {
            "small": 24,
            "many": max(1, size // 17_400),
            "large": 6,
            "loopback": 8,
            "rabbitmq": 24,
            "tls": 24,
        }[kind]
    )
    if kind == "tls":
        sealer = sealing().Sealing
        keys = "".join(sealer(number).keylog() for number in range(count))
        out.with_suffix(".keys").write_text(keys, encoding="ascii")
    # The short connections come one after another, 40 or so open at a time; the others all stay to the end.
    apart = 2_000_000 if kind == "many" else 5_000_000
    seeds = [rng.getrandbits(64) for _ in range(count)]
    opened = [_connection(kind, n, size // count, START + n * apart, seeds[n]) for n in range(count)]
    with out.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        held: list[bytes] = []
        for _, record in heapq.merge(*opened):
            held.append(record)
            if len(held) == 2000:
                file.write(b"".join(held))
                held.clear()
        file.write(b"".join(held))


def octets(text: str) -> int:
    """300MB, 1.5GB, 87000 as octets (decimal multiples)."""
    for suffix, factor in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)):
        if text.endswith(suffix):
            return round(float(text[: -len(suffix)]) * factor)
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a capture for the bench.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--size", type=octets, default=octets("300MB"), help="as 300MB (default), 1.5GB, ...")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--connections", type=int, default=0, help="how many; the kind's own number by default"
    )
    given = parser.parse_args()
    generate(given.kind, given.size, given.out, seed=given.seed, connections=given.connections)


if __name__ == "__main__":
    main()
