"""What fuzzing starts from: the captures of this repository, as inputs of each entry.

They are made anew for each run, so that the corpus beside this file need only hold what runs have found.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

from fuzz.bounds import MOST_OCTETS
from fuzz.layer_entry import KNOWN_LINES, RANDOM
from support import amqp091_encode as amqp091
from support import amqp10_encode as amqp
from support.capture_files import (
    START,
    Record,
    block,
    enhanced,
    interface,
    obsolete,
    packet,
    pcap,
    section,
    simple,
)
from support.network import Conversation, converse
from support.tunnels import TUNNELS

import amqpscope
from amqpscope.layers.secrets import LABELS
from amqpscope.model.records import FrameRecord
from dissectors.amqp10.message import Message

ROOT = Path(__file__).parents[2]

_MOST_INPUTS = 400


def seeds(entry: str) -> Iterator[bytes]:
    """Inputs for an entry."""
    return _SEEDS[entry]()


def _recorded() -> Iterator[Path]:
    """Small captures first."""
    return iter(sorted((ROOT / "captures").rglob("*.pcap*"), key=lambda path: (path.stat().st_size, path)))


def _fitting(inputs: Iterator[bytes]) -> Iterator[bytes]:
    found: set[bytes] = set()
    for octets in inputs:
        if len(octets) <= MOST_OCTETS and octets not in found:
            found.add(octets)
            yield octets
        if len(found) == _MOST_INPUTS:
            return


def _captures() -> Iterator[bytes]:
    def every() -> Iterator[bytes]:
        records = [Record(START + n * 1000, packet(bytes([n]) * (n % 9), seq=n)) for n in range(8)]
        for order in "<>":
            for magic in (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34):
                yield pcap(records, order, magic)
            blocks = b"".join(
                kind(packet(seq=n), order=order)
                for n, kind in enumerate((enhanced, obsolete, simple, enhanced, enhanced))
            )
            yield section(order) + interface(order=order) + blocks
        for link_type, data in _packets():
            yield pcap([Record(START, data), Record(START + 1000, data)], link_type=link_type)
        for number, path in enumerate(_recorded()):
            if number < 12:
                octets = path.read_bytes()[:3000]
                yield octets
                yield gzip.compress(octets, mtime=0)
                try:
                    from backports import zstd
                except ImportError:
                    continue
                yield zstd.compress(octets)

    return _fitting(every())


def _packets() -> Iterator[tuple[int, bytes]]:
    """Packets of all kinds."""
    for data in TUNNELS.values():
        yield 1, data
    whole = packet(b"payload of a segment")
    for link_type, data in (
        (0, b"\x02\0\0\0" + whole[14:]),
        (108, b"\0\0\0\x02" + whole[14:]),
        (113, bytes(14) + whole[12:]),
        (276, whole[12:14] + bytes(18) + whole[14:]),
        (101, whole[14:]),
    ):
        yield link_type, data
    datagram = whole[14:]
    for offset in (0, 16):
        part = datagram[20 + offset : 36 + offset] if offset == 0 else datagram[36:]
        flags = (0x2000 if offset == 0 else 0) | offset >> 3
        head = datagram[:2] + (20 + len(part)).to_bytes(2, "big") + datagram[4:6] + flags.to_bytes(2, "big")
        yield 101, head + datagram[8:20] + part


def _reassembly() -> Iterator[bytes]:
    syn = bytes((6, 2, 7, 18))
    yield syn + bytes((0, 9, 1, 9, 0, 200, 1, 3, 6, 17, 7, 17))
    yield syn + bytes((0, 9, 2, 0xF7, 0, 20, 0x13, 0xF7, 2, 20, 0, 9, 1, 9))
    yield syn + bytes((8, 1, 0, 0, 9, 9, 1, 9, 0, 9, 9, 4, 7, 7))
    yield bytes((0, 9, 1, 9, 4, 3, 9, 10, 5, 1, 11, 0, 4, 14, 40, 0, 9, 0x1E, 3))
    yield bytes((12, 0, 0, 1, 0, 0, 0, 2, 0, 9)) * 9


def _records() -> Iterator[FrameRecord]:
    for path in _recorded():
        yield from amqpscope.read(path)


def _bodies() -> Iterator[bytes]:
    def every() -> Iterator[bytes]:
        for record in _records():
            if record.frame.kind in ("amqp", "sasl"):
                yield bytes((record.frame.kind == "sasl",)) + record.frame.raw[8:]

    return _fitting(every())


def _bodies2011() -> Iterator[bytes]:
    def every() -> Iterator[bytes]:
        for name, octets in _said2011():
            if name not in ("header", "empty"):
                yield bytes((name.startswith("sasl-"),)) + octets[8:]

    return _fitting(every())


def _said2011() -> Iterator[tuple[str, bytes]]:
    """Frames of random conversations in the April-2011 draft."""
    for number in range(6):
        talk = converse(f"seed {number}", protocol="amqp10-draft2011").talk
        for said in (*talk.said[0], *talk.said[1]):
            yield said.name, said.octets


def _payloads() -> Iterator[bytes]:
    def every() -> Iterator[bytes]:
        yield b"\1" + amqp.data(amqp.amqp_value("inside")) * 2
        for record in _records():
            if isinstance(record.message, Message):
                yield b"\0" + record.message.octets

    return _fitting(every())


def _values() -> Iterator[bytes]:
    for octets in _bodies():
        yield octets[1:]
    for octets in _payloads():
        yield octets[1:]


def _conversations() -> Iterator[bytes]:
    def every() -> Iterator[bytes]:
        for number in range(20):
            conversation = converse(f"seed {number}", protocol="amqp10-draft2011")
            yield _program(conversation)[:3500]
        for path in _recorded():
            programs: dict[str, bytearray] = {}
            for record in amqpscope.read(path):
                program = programs.setdefault(record.connection.id, bytearray())
                raw = record.frame.raw
                direction = 0 if record.peer == "client" else 8
                if record.frame.kind == "header":
                    program += bytes((direction, len(raw))) + raw
                elif record.frame.kind in ("amqp", "sasl") and len(raw) < 2000:
                    what = 2 if record.frame.kind == "sasl" else 1
                    body = raw[8:]
                    program += bytes((what | direction, record.frame.channel & 0xFF))
                    program += len(body).to_bytes(2, "big") + body
            for program in programs.values():
                yield bytes(program + bytes((5, 17, 13, 17)))

    return _fitting(every())


def _program(conversation: Conversation) -> bytes:
    """A conversation of AMQP 1.0 as the program of the machine in `entries`."""
    program = bytearray()
    for said in conversation.said():
        direction = 8 * said.side
        if said.name == "header":
            program += bytes((direction, len(said.octets))) + said.octets
        else:
            body = said.octets[8:]
            program += bytes(((2 if said.name.startswith("sasl-") else 1) | direction, said.channel & 0xFF))
            program += len(body).to_bytes(2, "big") + body
    return bytes(program)


def _conversations091() -> Iterator[bytes]:
    def every() -> Iterator[bytes]:
        for path in sorted((ROOT / "captures").glob("*.pcap")):
            programs: dict[str, bytearray] = {}
            for record in amqpscope.read(path):
                if record.connection.protocol != "amqp091":
                    continue
                program = programs.setdefault(record.connection.id, bytearray())
                raw = record.frame.raw
                direction = 0 if record.peer == "client" else 8
                if record.frame.kind == "header":
                    program += bytes((direction, len(raw))) + raw
                elif len(raw) < 2000 and raw and raw[0] in (1, 2, 3, 8):
                    body = raw[7:-1]
                    program.append((1 if raw[0] == 1 else 2) | direction)
                    if raw[0] != 1:
                        program.append((2, 3, 8).index(raw[0]))
                    program += bytes((record.frame.channel & 3,)) + len(body).to_bytes(2, "big") + body
            for program in programs.values():
                yield bytes(program[:3500] + bytes((5, 17, 13, 17)))

    return _fitting(every())


def _directions091() -> Iterator[bytes]:
    """Both sides of a conversation, every method alone, contents; each with and without a hole."""
    samples: dict[str, object] = {"s": "text", "S": b"octets", "F": {"k": ("I", 1), "t": {"a": ("A", ["x"])}}}
    methods: list[bytes] = []
    for name, (class_id, _, form) in amqp091.METHODS.items():
        given = {field.split(":")[0]: samples.get(field[-1], 5) for field in form.split()}
        methods.append(amqp091.say(name, 0 if class_id == 10 else 1, **given))
    content = amqp091.content(
        1, b"some content", frame_max=16, content_type="a", headers={"h": True}, priority=1
    )
    publish = amqp091.say("basic.publish", 1, routing_key="k") + content
    beat = amqp091.heartbeat()

    def every() -> Iterator[bytes]:
        for form in (0, 1, 0x42, 0x84):
            yield bytes([form]) + amqp091.header() + b"".join(methods[:8]) + publish + beat
            yield bytes([form]) + publish * 3 + amqp091.frame(9, 1, b"type") + publish
            yield bytes([form]) + publish[:-1] + b"\0" + publish
            for method in methods:
                yield bytes([form]) + method + beat

    return _fitting(every())


def _commands() -> Iterator[bytes]:
    """Conversations of both protocols in turn, each for other ways to read them."""
    for number, programs in enumerate(zip(_conversations(), _conversations091(), strict=False)):
        for protocol, program in enumerate(programs):
            yield bytes((number << 1 & 0xFF | protocol,)) + program


def _layers() -> Iterator[bytes]:
    """Programs for each set of layers: both say all frames, then something is missing, changed or cut."""
    spoken = bytes(which << 4 | direction for which in range(3) for direction in (0, 1))
    for layers in range(8):
        yield bytes((layers,)) + spoken
        for what in range(3, 8):
            for direction in (0, 1):
                operation = bytes((0x30 | what << 1 | direction,)) + b"AMQP\0\1\0\0\x17\3\3\0"
                yield bytes((layers,)) + spoken + operation + spoken


def _heads() -> Iterator[bytes]:
    """PROXY in both versions, CONNECT and its answers, requests for WebSocket, and two behind each other."""
    binary = b"\r\n\r\n\0\r\nQUIT\n"
    ports = b"\xc3\x50\x16\x28"
    ok = b"HTTP/1.1 200 Connection established\r\n\r\n"
    connect = b"CONNECT broker.example:5672 HTTP/1.1\r\nHost: broker.example\r\n\r\n"
    refused = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nAMQP"
    pairs = [
        (b"PROXY TCP4 203.0.113.77 10.20.30.4 50000 5672\r\n", b""),
        (b"PROXY TCP6 2001:db8::77 2001:db8::4 50000 5672\r\n", b""),
        (b"PROXY UNKNOWN\r\n", b""),
        (binary + b"\x21\x11\0\x0c\xcb\0\x71\x4d\x0a\x14\x1e\x04" + ports, b""),
        (binary + b"\x21\x11\0\x11\xcb\0\x71\x4d\x0a\x14\x1e\x04" + ports + b"\x02\0\2ab", b""),
        (binary + b"\x21\x21\0\x24" + bytes(range(32)) + ports, b""),
        (binary + b"\x20\0\0\0", b""),
        (connect, ok),
        (connect, refused),
        (connect + connect, refused + ok),
        (connect, b"HTTP/1.0 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nAMQP\r\n0\r\n\r\n"),
        (b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", b"HTTP/1.1 403 Forbidden\r\n\r\nno"),
        (b"AMQP\2\1\0\0", b"AMQP\2\1\0\0"),
        (b"\x16\3\1\0\5\1\0\0\1\0", b"\x15\3\3\0\2\2\x28"),
        (b"", b""),
    ]
    for client, server in [
        *pairs,
        *((one[0] + other[0], other[1]) for one in pairs[:5] for other in pairs[7:12]),
    ]:
        yield len(client).to_bytes(2, "big") + len(server).to_bytes(2, "big") + client + server


def _keylogs() -> Iterator[bytes]:
    """The right secrets, wrong ones, those of other versions, and lines that are none."""
    lines = KNOWN_LINES.splitlines()
    random, secret = RANDOM.hex().encode(), b"ab" * 48
    others = [b"%s %s %s" % (label.encode(), random, secret) for label in sorted(LABELS)]
    strange = [b"# a comment", b"CLIENT_RANDOM", b"RSA 0011223344556677 " + secret, b"\xff\0 " + random, b""]
    for end in (b"\n", b"\r\n"):
        for some in (
            lines,
            others,
            lines[:1],
            [*lines, *others],
            [*others, *lines],
            strange,
            [*strange, *lines],
        ):
            yield end.join(some)
            yield end.join([*some, b""])
    yield KNOWN_LINES.upper()
    yield KNOWN_LINES[:-1]


def _server_keys() -> Iterator[bytes]:
    """The key of a recording, in several encodings; one of another kind; an encrypted one; a certificate."""
    whole = (ROOT / "captures" / "tls" / "test-key-of-rabbitmq-rsa.pem").read_bytes()
    yield whole
    yield whole + whole
    yield whole.replace(b"\n", b"\r\n")
    yield whole[: len(whole) // 2]
    yield whole.replace(b"PRIVATE KEY", b"CERTIFICATE")
    yield b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n"
    yield b""
    try:
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    except ImportError:
        return
    rsa = forms.load_pem_private_key(whole, None)
    others = (
        ec.derive_private_key(7, ec.SECP256R1()),
        ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)),
    )
    pem, plain = forms.Encoding.PEM, forms.NoEncryption()
    for key in (rsa, *others):
        yield key.private_bytes(pem, forms.PrivateFormat.PKCS8, plain)
        yield key.private_bytes(forms.Encoding.DER, forms.PrivateFormat.PKCS8, plain)
        yield key.public_key().public_bytes(pem, forms.PublicFormat.SubjectPublicKeyInfo)
    yield rsa.private_bytes(pem, forms.PrivateFormat.TraditionalOpenSSL, plain)
    yield rsa.private_bytes(pem, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"made-up"))


def _secret_blocks() -> Iterator[bytes]:
    """Files with secrets before, between and behind packets, in both byte orders, and in several sections."""
    lines = KNOWN_LINES + b"\n"
    for order in "<>":
        begin, end = section(order) + interface(order=order), simple(packet(seq=1), order=order)
        for size in (len(lines), len(lines) - 1, len(lines) - 30, 0, len(lines) + 9, 0xFFFFFFFF):
            octets = struct.pack(order + "II", 0x544C534B, size) + lines
            one = block(10, octets, order=order)
            yield begin + one + end
            yield begin + end + one
        other = block(10, struct.pack(order + "II", 0x57474B4C, len(lines)) + lines, order=order)
        yield begin + other + one
        yield begin + block(10, b"", order=order) + one
        yield begin + one + section("<") + interface() + block(10, octets) + begin + one


def _logs() -> Iterator[bytes]:
    """The beginning of each recorded log, and each with lines left out, doubled, and cut."""

    def every() -> Iterator[bytes]:
        for path in sorted((ROOT / "tests" / "capture" / "logs" / "recorded").glob("*.log")):
            lines = [line for line in path.read_bytes().splitlines(True) if len(line) < 700]
            for step in (1, 2, 3):
                yield b"".join(lines[::step])[:MOST_OCTETS]
            yield b"".join(line + line for line in lines)[:MOST_OCTETS]
            yield b"".join(line[:-7] + line[-1:] if n % 5 == 4 else line for n, line in enumerate(lines))[
                :MOST_OCTETS
            ]

    return _fitting(every())


_SEEDS = {
    "captures": _captures,
    "reassembly": _reassembly,
    "types": lambda: _fitting(_values()),
    "performatives": _bodies,
    "performatives2011": _bodies2011,
    "messages": _payloads,
    "connections": _conversations,
    "frames091": _directions091,
    "connections091": _conversations091,
    "commands": _commands,
    "layers": _layers,
    "heads": lambda: _fitting(_heads()),
    "keylogs": lambda: _fitting(_keylogs()),
    "server-keys": lambda: _fitting(_server_keys()),
    "secret-blocks": lambda: _fitting(_secret_blocks()),
    "logs": _logs,
}
