"""Hostile captures, each a file that somebody could send in. `SCENES` has them by name."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from hostile.layer_scenes import deflate_bombs, endless_handshakes, endless_heads, small_websocket_frames
from support import amqp10_encode as amqp
from support import draft2011_encode as draft
from support.capture_files import (
    START,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    packet,
    pcap_header,
    section,
    tcp,
)
from support.dialogue_draft2011 import Dialogue2011
from support.tcp_writer import Capture, Connection

MEGABYTE = 1_000_000


@contextmanager
def conversation(path: Path, attached: bool = True) -> Iterator[Connection]:
    """A connection up to an attached link, to be gone on with; then the file is written."""
    capture = Capture()
    connection = capture.connection()
    connection.handshake()
    client, server = connection.client, connection.server
    for end in (client, server):
        end.send(amqp.AMQP_HEADER)
        end.send(amqp.frame(amqp.open_(container_id="c")))
    if attached:
        begin = {"next_outgoing_id": 0, "incoming_window": 2**31, "outgoing_window": 2**31}
        client.send(amqp.frame(amqp.begin(**begin)))
        server.send(amqp.frame(amqp.begin(remote_channel=0, **begin)))
        client.send(amqp.frame(amqp.attach(name="l", handle=0, role=amqp.SENDER, initial_delivery_count=0)))
        server.send(amqp.frame(amqp.attach(name="l", handle=0, role=amqp.RECEIVER)))
        server.send(
            amqp.frame(
                amqp.flow(
                    next_incoming_id=0,
                    incoming_window=2**31,
                    next_outgoing_id=0,
                    outgoing_window=2**31,
                    handle=0,
                    delivery_count=0,
                    link_credit=2**30,
                )
            )
        )
    yield connection
    connection.goodbye()
    capture.write(path)


@contextmanager
def draft_conversation(path: Path) -> Iterator[Connection]:
    """The same in the April-2011 draft."""
    d = Dialogue2011()
    windows = {"incoming_window": 2**31, "outgoing_window": 2**31}
    d.begun(windows, windows)
    d.attached(2**30)
    yield d.tcp
    d.tcp.goodbye()
    d.capture.write(path)


def everywhere(connection: Connection, value: bytes) -> None:
    """A value in a performative, a message, an error and an unknown frame."""
    client, server = connection.client, connection.server
    raw = amqp.raw(value)
    client.send(amqp.frame(amqp.attach(name="m", handle=1, role=amqp.SENDER, properties=raw)), each=1400)
    client.send(amqp.frame(amqp.attach(name="n", handle=2, role=amqp.SENDER, source=raw)), each=1400)
    transfer = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t")
    client.send(amqp.frame(transfer, amqp.amqp_value(raw)), each=1400)
    transfer = amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"u")
    client.send(amqp.frame(transfer, value), each=1400)
    server.send(amqp.frame(raw), each=1400)
    server.send(amqp.frame(amqp.close(error=amqp.error(condition="c", info=raw))), each=1400)


def compound(code: int, inside: bytes, count: int | None = None, size: int | None = None) -> bytes:
    """list32, map32 or array32 with any size and count."""
    declared = 4 + len(inside) if size is None else size
    return bytes((code,)) + struct.pack(">II", declared & 0xFFFFFFFF, 1 if count is None else count) + inside


def nested(path: Path, wrap: Callable[[bytes], bytes]) -> None:
    """10,000 levels, and what they hold."""
    value = b"\x40"
    for _ in range(10_000):
        value = wrap(value)
    with conversation(path) as connection:
        everywhere(connection, value)


def nested_lists(path: Path) -> None:
    nested(path, lambda value: compound(0xD0, value))


def nested_maps(path: Path) -> None:
    nested(path, lambda value: compound(0xD1, b"\x40" + value, 2))


def nested_map_keys(path: Path) -> None:
    nested(path, lambda value: compound(0xD1, value + b"\x40", 2))


def nested_arrays(path: Path) -> None:
    value = b"\x40"
    for _ in range(10_000):
        # The constructor of the elements, then the element: an array without its own constructor.
        value = b"\xf0" + struct.pack(">II", 4 + len(value), 1) + value
    with conversation(path) as connection:
        everywhere(connection, value)


def nested_descriptors(path: Path) -> None:
    """Described values whose descriptors are described, and whose values are."""
    with conversation(path) as connection:
        everywhere(connection, b"\0" * 10_000 + b"\x40" * 10_001)
        everywhere(connection, b"\0\x40" * 10_000 + b"\x40")


def many_nothings(path: Path) -> None:
    """Arrays, lists and maps that claim 2**32 - 1 elements, in no octets or few."""
    most = 0xFFFFFFFF
    with conversation(path) as connection:
        for code in (0x40, 0x41, 0x42, 0x43, 0x44, 0x45):
            everywhere(connection, compound(0xF0, bytes((code,)), most))
        everywhere(connection, compound(0xF0, b"\0\x40\x40", most))
        everywhere(connection, compound(0xF0, b"\xa0", most))
        everywhere(connection, compound(0xF0, b"\xa0" + bytes(50_000), most))
        for code in (0xD0, 0xD1):
            everywhere(connection, compound(code, b"", most))
            everywhere(connection, compound(code, b"\x40" * 50_000, most))
            everywhere(connection, compound(code, b"", most, most))


def large_maps(path: Path) -> None:
    """Maps of 4,000 entries: different keys, one key, keys that cannot be compared quickly."""
    with conversation(path) as connection:
        for keys in (
            [b"\xa3\x05" + b"%05d" % number for number in range(4000)],
            [b"\xa3\x01k"] * 4000,
            [b"\x82" + struct.pack(">d", number) for number in range(4000)],
            [b"\xc0\x03\x01\x61\0" for _ in range(4000)],
            [b"\xc0\x04\x01\x61" + struct.pack(">H", number) for number in range(20_000)],
        ):
            inside = b"".join(key + b"\x40" for key in keys)
            everywhere(connection, compound(0xD1, inside, 2 * len(keys)))


def frames_of_4_gib(path: Path) -> None:
    """Frames that claim 4 GiB, from the start and behind every lost octet."""
    capture = Capture()
    for number in range(200):
        connection = capture.connection(f"10.0.0.1:{30000 + number}")
        connection.handshake()
        for end in (connection.client, connection.server):
            end.send(amqp.AMQP_HEADER)
            end.send(
                b"\xff\xff\xff\xff\x02\0\0\0\0\x53\x14\xd0\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(1000)
            )
            with connection.lost():
                end.send(bytes(100))
            end.send(amqp.frame(amqp.close())[:4] + b"\x02\0\0\0" + b"\xff\xff\xff\xff\x02\0\0\0" * 100)
    large = capture.connection("10.0.0.1:40000")
    large.handshake()
    large.client.send(amqp.AMQP_HEADER + b"\xff\xff\xff\xff\x02\0\0\0")
    large.client.send(bytes(17 * MEGABYTE), each=60_000)
    capture.write(path)


def half_open(path: Path, connections: int = 40_000) -> None:
    """Attempts that nobody answers, each from another port."""
    with path.open("wb") as file:
        file.write(pcap_header(link_type=101))
        for number in range(connections):
            syn = tcp(source_port=1024 + number % 60_000, seq=number, flags=2)
            data = ipv4(syn, source=f"11.{number // 60_000}.0.1")
            seconds = START // 1_000_000_000 + number // 1000
            file.write(struct.pack("<IIII", seconds, number % 1000, len(data), len(data)) + data)


def half_open_million(path: Path) -> None:
    half_open(path, 1_000_000)


def many_connections(path: Path, connections: int = 6000, faulty: bool = False, whole: bool = True) -> None:
    """Connections of which a header and an open is all that was captured.

    faulty: the open has no container-id. whole: each begins with a SYN and ends with an RST, so that it
    is over before the capture is.
    """
    octets = amqp.AMQP_HEADER + amqp.frame(amqp.open_() if faulty else amqp.open_(container_id="c"))
    with path.open("wb") as file:
        file.write(pcap_header(link_type=101))
        for number in range(connections):
            source = {"source_port": 1024 + number % 60_000}
            segments = [tcp(octets, seq=1000, ack=0, flags=8, **source)]
            if whole:
                segments.insert(0, tcp(seq=999, ack=0, flags=2, **source))
                segments.append(tcp(seq=1000 + len(octets), ack=0, flags=4, **source))
            for segment in segments:
                data = ipv4(segment, source=f"11.{number // 60_000}.0.1")
                seconds = START // 1_000_000_000 + number // 1000
                file.write(struct.pack("<IIII", seconds, number % 1000, len(data), len(data)) + data)


def many_faulty_connections(path: Path) -> None:
    many_connections(path, 3000, faulty=True)


def many_connections_by_hand(path: Path) -> None:
    many_connections(path, 300_000, whole=False)


def many_short_connections_by_hand(path: Path) -> None:
    many_connections(path, 300_000)


def many_faulty_connections_by_hand(path: Path) -> None:
    many_connections(path, 60_000, faulty=True, whole=False)


def overlapping(path: Path) -> None:
    """Segments upon one another, in order and out of it, none of which says what another says."""
    chance = Random(3)
    with conversation(path) as connection:
        client, server = connection.client, connection.server
        for _ in range(400):
            for end in (client, server):
                end.send(amqp.frame(amqp.flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1)))
                for _ in range(4):
                    back = chance.randrange(1, 400)
                    end.segment(chance.randbytes(chance.randrange(1, 300)), offset=max(0, end.sent - back))
                    end.segment(
                        chance.randbytes(chance.randrange(1, 300)),
                        offset=end.sent + chance.randrange(1, 9000),
                    )


def gaps_of_a_billion(path: Path) -> None:
    """Octets that both acknowledge and nobody sees, a billion at a time."""
    capture = Capture()
    for number in range(100):
        connection = capture.connection(f"10.0.0.1:{30000 + number}")
        connection.handshake()
        client, server = connection.client, connection.server
        client.send(amqp.AMQP_HEADER)
        server.send(amqp.AMQP_HEADER)
        for _ in range(40):
            for end in (client, server):
                end.sent += 1_000_000_000
                end.send(amqp.frame(amqp.open_(container_id="c")))
                (server if end is client else client).hears()
                (server if end is client else client).ack()
    capture.write(path)


def many_sessions_and_links(path: Path) -> None:
    """Eight thousand channels begun, ten thousand links attached, ten thousand deliveries that never end."""
    with conversation(path) as connection:
        client, server = connection.client, connection.server
        begin = amqp.begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
        client.send(b"".join(amqp.frame(begin, channel=channel) for channel in range(1, 8000)), each=1400)
        client.send(
            b"".join(
                amqp.frame(amqp.attach(name=f"l{n}", handle=n, role=amqp.SENDER, initial_delivery_count=0))
                for n in range(1, 10_000)
            ),
            each=1400,
        )
        client.send(
            b"".join(
                amqp.frame(amqp.transfer(handle=n, delivery_id=n, delivery_tag=b"t", more=True), bytes(100))
                for n in range(10_000)
            ),
            each=1400,
        )
        wide = amqp.disposition(role=True, first=0, last=2**31, settled=True, state=amqp.accepted())
        server.send(b"".join(amqp.frame(wide) for _ in range(5000)), each=1400)
        # After each of these nothing is certain any more of what was set up before.
        client.send(amqp.frame(amqp.raw(b"\0\x53\x12\xc0\x05\x03\xff\xff\xff\xff")) * 5000, each=1400)


def nothing_but_faults(path: Path) -> None:
    """Every frame is malformed in several ways, or illegal."""
    chance = Random(5)
    with conversation(path) as connection:
        client, server = connection.client, connection.server
        bad = amqp.frame(amqp.raw(b"\0\x53\x12\xc0\x20\x0e" + b"\x40\xa1\xff\xff" * 8))
        client.send(bad * 5000, each=1400)
        client.send(amqp.frame(amqp.end(), channel=9) * 5000, each=1400)
        server.send(b"".join(amqp.frame(chance.randbytes(60)) for _ in range(5000)), each=1400)
        server.send(chance.randbytes(MEGABYTE), each=1400)


def octet_by_octet(path: Path) -> None:
    """A segment for each octet, frames of nothing, and both directions acknowledging each octet."""
    with conversation(path) as connection:
        client, server = connection.client, connection.server
        for _ in range(200):
            client.send(
                amqp.frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t"), bytes(40)), each=1
            )
            server.send(amqp.frame(), each=1)
        client.send(amqp.frame() * 50_000, each=1400)


def draft_messages(path: Path) -> None:
    """In the April-2011 draft: fragments of nothing, sections far apart, a delivery without an end, lists of
    very many values.
    """
    with draft_conversation(path) as connection:
        client, server = connection.client, connection.server
        about: dict[str, object] = {"handle": 0, "delivery_tag": b"t", "message_format": 0}
        nothing = draft.fragment(first=True, last=True, section_code=3, section_number=0)
        bomb = draft.multiple("*", [nothing] * 30_000)
        numbers = iter(range(100_000))
        client.send(
            draft.frame(draft.transfer(transfer_id=next(numbers), fragments=bomb, **about)), each=1400
        )
        about["more"] = True
        jumping = []
        for number in range(3000):
            place = {"section_number": number * 1_431_655 % 2**32, "section_offset": number * 2**50 % 2**64}
            piece = draft.fragment(section_code=number % 9, payload=b"x", **place)
            jumping.append(draft.frame(draft.transfer(transfer_id=next(numbers), fragments=piece, **about)))
        client.send(b"".join(jumping), each=1400)
        endless = [draft.frame(draft.transfer(transfer_id=next(numbers), **about)) for _ in range(12_000)]
        client.send(b"".join(endless), each=1400)
        wide = draft.disposition(role=True, first=0, last=2**31 - 1, state=draft.transfer_state())
        server.send(draft.frame(wide) * 5000, each=1400)
        several = draft.multiple("symbol", ["x"] * 50_000)
        for values in (several, draft.raw(b"\x00\x41" + compound(0xF0, b"\x40", 2**31))):
            attach = draft.attach(name="m", handle=1, role=False, offered_capabilities=values)
            client.send(draft.frame(attach), each=1400)


def fragments(path: Path) -> None:
    """IP fragments that never become whole, overlap, and lie about their place."""
    chance = Random(7)
    with path.open("wb") as file:
        file.write(pcap_header(link_type=101))
        for number in range(30_000):
            data = bytearray(
                ipv4(bytes(8 * chance.randrange(1, 100)), fragment=0x2000 | chance.randrange(8192))
            )
            data[4:6] = struct.pack(">H", chance.randrange(65_536) if number % 3 else 7)
            file.write(struct.pack("<IIII", 1_700_000_000 + number // 1000, 0, len(data), len(data)) + data)


def many_interfaces(path: Path) -> None:
    """Sections, interfaces, packets of all of them and of none, and blocks of the largest size."""
    parts = [section()]
    parts += [interface(link_type=number % 65_536) for number in range(20_000)]
    parts += [enhanced(packet(seq=number), interface_id=number) for number in range(20_000)]
    parts += [section(), block(0xBAD, bytes(8 * MEGABYTE)), interface(), enhanced(packet())] * 3
    path.write_bytes(b"".join(parts))


def bomb(path: Path) -> None:
    """A small file that holds 4 MB: zeros behind a file header, so that all is searched."""
    path.write_bytes(gzip.compress(pcap_header() + ethernet(b"x") + bytes(4 * MEGABYTE), 9))


SCENES: dict[str, Callable[[Path], None]] = {
    scene.__name__: scene
    for scene in (
        nested_lists,
        nested_maps,
        nested_map_keys,
        nested_arrays,
        nested_descriptors,
        many_nothings,
        large_maps,
        frames_of_4_gib,
        half_open,
        half_open_million,
        many_connections,
        many_faulty_connections,
        many_connections_by_hand,
        many_short_connections_by_hand,
        many_faulty_connections_by_hand,
        overlapping,
        gaps_of_a_billion,
        many_sessions_and_links,
        nothing_but_faults,
        octet_by_octet,
        draft_messages,
        fragments,
        many_interfaces,
        bomb,
        deflate_bombs,
        small_websocket_frames,
        endless_heads,
        endless_handshakes,
    )
}
