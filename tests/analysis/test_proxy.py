"""A PROXY header before the client's octets: it is skipped and reported about, and nobody is accused for
it."""

from __future__ import annotations

import io
import ipaddress
import random

import pytest
from support.connection_harness import ACK, FIN, RST, ConnectionHarness
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.openings import KNOWN
from support.sampling import share

import amqpscope
from dissectors.proxy import MORE, NONE, proxy_header, proxy_size

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def binary(
    source: str = "203.0.113.9",
    port: int = 52000,
    *,
    command: int = 1,
    family: int = -1,
    tlvs: bytes = b"",
) -> bytes:
    """A header of version 2."""
    address = ipaddress.ip_address(source).packed
    body = address + bytes(len(address)) + port.to_bytes(2, "big") + b"\x16\x28" + tlvs
    if family < 0:
        family = 0x11 if len(address) == 4 else 0x21
    return SIGNATURE + bytes((0x20 | command, family)) + len(body).to_bytes(2, "big") + body


TLVS = (
    b"\x02\x00\x06broker"
    + b"\x04\x00\x03\0\0\0"
    + b"\x20\x00\x05\x01\0\0\0\0"
    + b"\xea"
    + b"\x01\x00"
    + bytes(256)
)

# The header, and what is shown about the client.
HEADERS: dict[str, tuple[bytes, str]] = {
    "text, IPv4": (b"PROXY TCP4 203.0.113.9 10.0.0.2 52000 5672\r\n", "the real client is 203.0.113.9:52000"),
    "text, IPv6": (b"PROXY TCP6 2001:db8::7 ::1 1 5672\r\n", "the real client is [2001:db8::7]:1"),
    "text, unknown": (b"PROXY UNKNOWN\r\n", "the header names no client"),
    "text, unknown and more": (
        b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n",
        "the header names no client",
    ),
    "text, the longest": (b"PROXY UNKNOWN " + b"x" * 91 + b"\r\n", "the header names no client"),
    "text, no address": (b"PROXY TCP4 \x1b[31m 10.0.0.2 52000 5672\r\n", "the header names no client"),
    "text, no port": (b"PROXY TCP4 203.0.113.9 10.0.0.2 65536 5672\r\n", "the header names no client"),
    "text, of the other family": (b"PROXY TCP4 ::1 ::1 1 2\r\n", "the header names no client"),
    "text, with a zone": (b"PROXY TCP6 fe80::1%\x1b]0;x\x07 ::1 1 2\r\n", "the header names no client"),
    "IPv4": (binary(), "the real client is 203.0.113.9:52000"),
    "IPv6": (binary("2001:db8::7"), "the real client is [2001:db8::7]:52000"),
    "fields behind": (binary(tlvs=TLVS), "the real client is 203.0.113.9:52000"),
    "many fields behind": (binary(tlvs=bytes(60_000)), "the real client is 203.0.113.9:52000"),
    "local": (binary(command=0), "the load balancer opened the connection for itself"),
    "local without addresses": (
        SIGNATURE + b"\x20\0\0\0",
        "the load balancer opened the connection for itself",
    ),
    "family not said": (binary(family=0), "the header names no client"),
    "family not known": (binary(family=0x41), "the header names no client"),
    "a local socket": (SIGNATURE + b"\x21\x31\0\xd8" + bytes(216), "the header names no client"),
    "too short for its addresses": (SIGNATURE + b"\x21\x11\0\x05\1\2\3\4\5", "the header names no client"),
    "nothing behind": (SIGNATURE + b"\x21\x11\0\0", "the header names no client"),
}
NO_HEADERS = {
    "text, too long": b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n",
    "text, another word": b"PROXY TCP9 1.2.3.4 1.2.3.4 1 2\r\n",
    "text without an end": b"PROXY TCP4 1.2.3.4 " + b"1" * 200,
    "small letters": b"proxy tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
    "version 3": SIGNATURE + b"\x31\x11\0\x0c" + bytes(12),
    "command 2": SIGNATURE + b"\x22\x11\0\x0c" + bytes(12),
    "another signature": b"\r\n\r\n\0\r\nQUIT\r" + bytes(20),
}


def spoken(kind: str, header: bytes = b"", **options: int) -> Conversation:
    """A healthy connection behind a header."""
    d: Dialogue | Dialogue091 = Dialogue(**options) if kind == "amqp10" else Dialogue091(**options)
    if header:
        d.client.say(header)
    if isinstance(d, Dialogue):
        d.begun()
    else:
        d.opened()
        d.channel(1)
    d.goodbye()
    return d


def read(d: Conversation) -> amqpscope.Capture:
    capture = amqpscope.Capture(io.BytesIO(d.pcap()), amqpscope.CaptureOptions(judge=True, profile="none"))
    capture.all = [record for block in capture.blocks() for record in block]  # type: ignore[attr-defined]
    return capture


def reported(capture: amqpscope.Capture) -> list[tuple[str, str, bool]]:
    return [(one.rule, one.peer, one.certain) for one in capture.take_findings()]


@pytest.mark.parametrize("kind", ["amqp10", "amqp091"])
@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("segment", [0, 1, 7])
def test_a_healthy_connection_behind_a_header_is_healthy(name: str, kind: str, segment: int) -> None:
    header, client = HEADERS[name]
    if segment and len(header) > 1000:
        segment = 1000
    plain = read(spoken(kind, segment=segment))
    proxied = read(spoken(kind, header, segment=segment))
    assert reported(proxied) == reported(plain)
    (note,) = proxied.notes
    version = 1 if header.startswith(b"PROXY") else 2
    sender = "10.0.0.1:51034"
    about = f"a PROXY header (version {version}, {len(header)} octets) sent by {sender}"
    assert (note.code, note.detail) == ("capture/proxy", f"{about}: {client}")
    assert note.packet == 4
    frames, before = proxied.all, plain.all  # type: ignore[attr-defined]
    assert [one.frame.name for one in frames] == [one.frame.name for one in before]
    moved = len(header)
    for one, other in zip(frames, before, strict=True):
        shift = moved if one.peer == "client" else 0
        assert one.frame.offset == other.frame.offset + shift
    assert [int(one.packet) for one in frames] == sorted(int(one.packet) for one in frames)
    assert all(one.time >= note.time for one in frames)


@pytest.mark.parametrize("name", NO_HEADERS)
def test_what_is_no_header_is_the_clients_own(name: str) -> None:
    capture = read(spoken("amqp10", NO_HEADERS[name]))
    assert ("amqp10/C-HDR-FORM", "client", True) in reported(capture)
    assert capture.notes == []


def test_one_header_is_skipped_and_no_second_one() -> None:
    line = HEADERS["text, IPv4"][0]
    assert ("amqp10/C-HDR-FORM", "client", True) in reported(read(spoken("amqp10", line + line)))


def test_a_server_says_no_such_header() -> None:
    d = Dialogue()
    d.client.header()
    d.server.say(HEADERS["IPv4"][0])
    d.server.header()
    capture = read(d)
    assert ("amqp10/C-HDR-FORM", "server", True) in reported(capture)
    assert capture.notes == []


def test_how_a_proxied_stream_ends_is_the_load_balancers() -> None:
    """The client of 0-9-1 ends its stream without a close. Behind a load balancer that may be its doing."""
    for header, certain in ((b"", True), (HEADERS["IPv4"][0], False)):
        d = Dialogue091()
        if header:
            d.client.say(header)
        d.opened()
        d.channel(1)
        d.client.fin()
        d.server.fin()
        rules = reported(read(d))
        assert ("amqp091/C-CLOSE-HANDSHAKE", "client", certain) in rules


@pytest.mark.parametrize("name", ["text, IPv4", "IPv4", "IPv6", "fields behind", "local"])
def test_a_header_split_anywhere_and_moved_to_another_process(name: str) -> None:
    header, _ = HEADERS[name]
    stream = header + b"AMQP\0\0\x09\1"
    for split in share(range(1, len(stream)), 3, name):
        for reload in (False, True):
            harness = ConnectionHarness(reload=reload)
            harness.send(0, stream[:split])
            harness.send(0, stream[split:])
            harness.finish()
            (record,) = harness.out
            assert (record.frame.name, int(record.frame.offset)) == ("header", len(header))
            assert (int(record.packet), int(record.last_packet)) == (
                3 if split > len(header) else 4,
                3 if split >= len(stream) else 4,
            )
            assert [(note.code, int(note.packet)) for note in harness.notes] == [("capture/proxy", 3)]


@pytest.mark.parametrize(("name", "octets"), KNOWN, ids=lambda one: str(one)[:30])
@pytest.mark.parametrize("header", ["text, IPv6", "fields behind"])
def test_any_protocol_behind_a_header_is_reported(header: str, name: str, octets: bytes) -> None:
    """By its own first octets, as if nothing stood before them."""
    plain = ConnectionHarness()
    plain.send(0, octets)
    plain.finish()
    for together in (True, False):
        harness = ConnectionHarness()
        before = HEADERS[header][0]
        harness.send(0, before + octets if together else before)
        if not together:
            harness.send(0, octets)
        harness.finish()
        assert (harness.connection.protocol, harness.connection.encrypted) == (name, name == "tls")
        assert [(one.frame.name, int(one.frame.offset) - len(before)) for one in harness.out] == [
            (one.frame.name, int(one.frame.offset)) for one in plain.out
        ]
        assert [len(one.frame.problems) for one in harness.out] == [
            len(one.frame.problems) for one in plain.out
        ]


@pytest.mark.parametrize("lost", [1, 12, 16, 20, 28, 36])
def test_octets_missing_in_a_header(lost: int) -> None:
    """What its size covers is the header's, once the size is known."""
    header = binary()
    stream = header + b"AMQP\0\1\0\0"
    harness = ConnectionHarness()
    harness.send(0, stream[:16])
    harness.skip(0, lost)
    harness.send(0, (stream + b"\0\0\0\x08\x02\0\0\0" * 6)[16 + lost :])
    harness.send(1, b"AMQP\0\1\0\0")
    harness.finish()
    own = [one.frame for one in harness.out if one.direction == 0]
    assert int(own[0].offset) == len(header)
    assert sum(int(one.size) for one in own) == harness.sent[0] - len(header)
    assert "capture/proxy" in [note.code for note in harness.notes]


@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize(
    ("front", "version"),
    [
        (binary()[:4], 2),
        (binary()[:12], 2),
        (binary()[:15], 2),
        (b"PROX", 1),
        (b"PROXY TCP4 203.0.113.9 10", 1),
    ],
)
@pytest.mark.parametrize("lost", [1, 13, 40])
def test_a_header_whose_end_was_not_captured(lost: int, front: bytes, version: int, reload: bool) -> None:
    harness = ConnectionHarness(reload=reload)
    harness.send(0, front)
    harness.skip(0, lost)
    harness.send(0, b"AMQP\0\1\0\0" + b"\0\0\0\x08\x02\0\0\0" * 6)
    harness.send(1, b"AMQP\0\1\0\0")
    harness.finish()
    own = [one.frame for one in harness.out if one.direction == 0]
    assert own[0].name == "skipped" and int(own[0].offset) == len(front)
    assert not [problem for frame in own for problem in frame.problems if problem.code.isupper()]
    about = f"a PROXY header (version {version}) sent by {harness.connection.end(0)[0]}"
    (detail,) = [note.detail for note in harness.notes if note.code == "capture/proxy"]
    assert detail.startswith(about) and detail.endswith(
        f"the capture has only the first {len(front)} octets of the header"
    )


@pytest.mark.parametrize("end", [FIN | ACK, RST])
@pytest.mark.parametrize(
    ("front", "known"),
    [(b"PROX", False), (b"PROXY ", True), (b"\r\n\r\n", False), (SIGNATURE, True), (binary()[:15], True)],
)
def test_a_stream_that_ends_in_a_header(front: bytes, known: bool, end: int) -> None:
    """A person who presses the return key sends what a header of version 2 begins with."""
    harness = ConnectionHarness()
    harness.send(0, front)
    harness.send(1, b"AMQP\0\1\0\0")
    harness.end(0, end)
    harness.finish()
    details = [note.detail for note in harness.notes if note.code == "capture/proxy"]
    assert len(details) == known
    assert all(
        detail.endswith(f"the capture has only the first {len(front)} octets of the header")
        for detail in details
    )


@pytest.mark.parametrize("front", [b"\r\n\r", b"PRO", b"PRI * HTTP/2.0"])
def test_what_may_be_no_header_is_not_taken_for_one(front: bytes) -> None:
    harness = ConnectionHarness()
    harness.send(0, front)
    harness.skip(0, 20)
    harness.send(0, b"\0\0\0\x08\x02\0\0\0" * 6)
    harness.finish()
    assert "capture/proxy" not in [note.code for note in harness.notes]


def test_any_octets_have_a_size_that_more_of_them_do_not_change() -> None:
    rng = random.Random(5)
    for name, octets in [*((name, one[0]) for name, one in HEADERS.items()), *NO_HEADERS.items()]:
        whole = proxy_size(octets[:200])
        assert whole == (len(octets) if name in HEADERS else NONE)
        for size in range(min(len(octets), 120)):
            assert proxy_size(octets[:size]) in (MORE, whole)
    for _ in range(3000):
        front = rng.choice([SIGNATURE, b"PROXY ", b"PROXY TCP4 ", SIGNATURE + b"\x21"])
        octets = front[: rng.randrange(len(front) + 1)] + rng.randbytes(rng.randrange(60))
        size = proxy_size(octets)
        if size > 0:
            header = proxy_header(octets, size)
            assert header.source is None or str(ipaddress.ip_address(header.source[0])) == header.source[0]
