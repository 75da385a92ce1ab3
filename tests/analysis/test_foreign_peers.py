"""A peer that speaks another protocol than AMQP: what it says is not judged by AMQP.

A client of another protocol at a port of AMQP is reported, where its octets prove it and the server speaks
AMQP.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.commands import amqpscope as command_line
from support.connection_harness import ConnectionHarness
from support.sampling import share
from support.tcp_writer import Capture

import amqpscope
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.protocol_names import protocol_name
from dissectors.detect import FOREIGN_PROTOCOLS
from dissectors.foreign import NAMES

HEADERS = {
    "AMQP": b"AMQP\0\1\0\0",
    "TLS": b"AMQP\2\1\0\0",
    "SASL": b"AMQP\3\1\0\0",
    "0-9-1": b"AMQP\0\0\x09\1",
}
OPEN = amqp.frame(amqp.open_(container_id="c"))

SERVERS: dict[str, list[bytes]] = {
    "http": [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b"HTTP/1.0 501 Unsupported method\r\n\r\n<html>",
        b'<!DOCTYPE HTML>\n<html lang="en">\n',
        b"<html>\r\n<head><title>400 Bad Request</title></head>\r\n",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00\x00\x05\x00\xff\xff\xff",
        b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00",
    ],
    "ssh": [b"SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13\r\nInvalid SSH identification string.\r\n"],
    "smtp": [
        b"220 mail.example.org ESMTP Postfix\r\n",
        b"220-FTP server\r\n220 ready\r\n",
        b"500 unknown command\r\n",
    ],
    "pop3": [b"+OK POP3 ready\r\n"],
    "imap": [b"* OK [CAPABILITY IMAP4rev1] ready\r\n", b"* BAD invalid\r\n"],
    "redis": [b"-ERR unknown command 'AMQP'\r\n", b"-NOAUTH Authentication required.\r\n"],
    "mysql": [
        b"\x4a\x00\x00\x00\x0a8.0.36\x00" + bytes(range(70)),
        b"\x45\x00\x00\x00\xff\x6a\x04Host 'x' is not allowed to connect to this MySQL server" + bytes(16),
    ],
    "postgresql": [b"E\x00\x00\x00\x61SFATAL\x00VFATAL\x00C0A000\x00Munsupported frontend protocol\x00\x00"],
    "nats": [b'INFO {"server_id":"N","version":"2.10"} \r\n'],
    "openwire": [b"\x00\x00\x01\x5c\x01ActiveMQ\x00\x00\x00\x0c\x01\x00\x00\x01\x4a"],
    "mqtt": [b"\x20\x02\x00\x01" + b"\x00" * 8],
    "stomp": [b"ERROR\nmessage:illegal command\n\n\0"],
    "memcached": [b"ERROR\r\n"],
    "rfb": [b"RFB 003.008\n"],
    "telnet": [b"\xff\xfd\x18\xff\xfd\x20\xff\xfd\x23"],
    "rtsp": [b"RTSP/1.0 400 Bad Request\r\n\r\n"],
    "sip": [b"SIP/2.0 400 Bad Request\r\n\r\n"],
    "xmpp": [b"<?xml version='1.0'?><stream:stream>", b"<stream:error/>"],
    "tls": [b"\x15\x03\x03\x00\x02\x02\x46", b"\x16\x03\x03\x00\x50\x02\x00\x00\x4c\x03\x03" + bytes(74)],
}
CLIENTS: dict[str, list[bytes]] = {
    "http": [
        b"GET /health HTTP/1.1\r\nHost: broker\r\n\r\n",
        b"POST /api/queues HTTP/1.1\r\nHost: broker\r\n\r\n{}",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    ],
    "mqtt": [
        b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04abcd",
        b"\x10\x0e\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x00",
    ],
    "stomp": [b"CONNECT\naccept-version:1.2\nhost:/\n\n\0", b"STOMP\r\naccept-version:1.2\r\n\r\n\0"],
    "ssh": [b"SSH-2.0-libssh_0.10\r\n"],
    "smtp": [b"EHLO client.example.org\r\n", b"HELO client\r\n"],
    "redis": [b"*1\r\n$4\r\nPING\r\n", b"PING\r\n"],
    "kafka": [b"\x00\x00\x00\x1c\x00\x12\x00\x03\x00\x00\x00\x01\x00\x0aconsumer-1\x00\x05java\x00"],
    "postgresql": [
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
        b"\x00\x00\x00\x21\x00\x03\x00\x00user\x00app\x00database\x00app\x00\x00",
    ],
    "nats": [b'CONNECT {"verbose":false}\r\nPING\r\n'],
    "openwire": [b"\x00\x00\x01\x5c\x01ActiveMQ\x00\x00\x00\x0c\x01\x00\x00\x01\x4a"],
    "smb": [b"\x00\x00\x00\x54\xffSMB\x72" + bytes(60)],
    "telnet": [b"\xff\xfb\x1f\xff\xfb\x20\xff\xfb\x18"],
    "xmpp": [b"<?xml version='1.0'?><stream:stream to='broker'>"],
    "tls": [b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(190)],
}
SERVED = [(name, octets) for name, all_octets in SERVERS.items() for octets in all_octets]
ASKED = [(name, octets) for name, all_octets in CLIENTS.items() for octets in all_octets]


def converse(*said: tuple[str, bytes]) -> bytes:
    """A capture of a connection on which this is said in turn, by `client` or `server`."""
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    for peer, octets in said:
        (tcp.client if peer == "client" else tcp.server).send(octets)
    tcp.server.fin()
    tcp.client.fin()
    return capture.pcap()


def judged(octets: bytes) -> tuple[list[tuple[str, str, int, bool]], dict[str, int]]:
    """The findings of a capture, and what its connections count as."""
    with amqpscope.Capture(
        io.BytesIO(octets), amqpscope.CaptureOptions(judge=True, profile="none")
    ) as capture:
        found = [finding for _ in capture.blocks() for finding in capture.take_findings()]
        reported = [(one.rule, one.peer, int(one.packet), one.certain) for one in found]
        return reported, dict(capture.protocols)


def test_there_are_many_of_them_and_all_have_a_name() -> None:
    assert len(SERVERS) >= 15
    assert len(set(SERVERS) | set(CLIENTS)) >= 20
    assert set(SERVERS) | set(CLIENTS) == FOREIGN_PROTOCOLS <= set(NAMES)


@pytest.mark.parametrize(("name", "octets"), SERVED, ids=lambda one: str(one)[:24])
@pytest.mark.parametrize("asked", HEADERS)
def test_a_server_of_another_protocol_does_nothing_wrong(asked: str, name: str, octets: bytes) -> None:
    """It answers a client of AMQP, or speaks first, in one piece or in two; and the client may go on."""
    header = HEADERS[asked]
    protocol = "amqp091" if asked == "0-9-1" else "amqp10"
    for split in share(range(len(octets)), 5, f"{asked} {octets!r}"):
        pieces = [("server", piece) for piece in (octets[:split], octets[split:]) if piece]
        ways = [
            [("client", header), *pieces],
            [*pieces, ("client", header)],
            [("client", header + (OPEN if asked == "AMQP" else b"")), *pieces],
        ]
        for way in ways:
            found, counted = judged(converse(*way))
            assert found == []
            assert counted == {f"{protocol}>{name}": 1}


@pytest.mark.parametrize(("name", "octets"), ASKED, ids=lambda one: str(one)[:24])
@pytest.mark.parametrize("answer", HEADERS)
def test_a_client_of_another_protocol_is_reported_if_the_server_speaks_amqp(
    answer: str, name: str, octets: bytes
) -> None:
    header = HEADERS[answer]
    rule = "amqp091/F-PROTO-HDR" if answer == "0-9-1" else "amqp10/C-HDR-FORM"
    expected = [] if name == "tls" else [(rule, "client", 4, True)]
    for split in share(range(len(octets)), 3, f"{answer} {octets!r}"):
        pieces = [("client", piece) for piece in (octets[:split], octets[split:]) if piece]
        found, counted = judged(converse(*pieces, ("server", header)))
        assert found == expected
        protocol = "amqp091" if answer == "0-9-1" else "amqp10"
        assert counted == {f"{name}>{protocol}": 1}


@pytest.mark.parametrize(("name", "octets"), ASKED, ids=lambda one: str(one)[:24])
def test_a_client_of_another_protocol_at_a_silent_server_is_nobodys_fault(name: str, octets: bytes) -> None:
    assert judged(converse(("client", octets))) == ([], {name: 1})


@pytest.mark.parametrize(("name", "octets"), SERVED, ids=lambda one: str(one)[:24])
@pytest.mark.parametrize("direction", [0, 1])
def test_octets_of_another_protocol_are_counted_and_in_order(
    name: str, octets: bytes, direction: int
) -> None:
    """However they are split, lost or moved elsewhere; what the other peer says comes in its place."""
    for split in share(range(1, len(octets)), 4, f"{direction} {octets!r}"):
        for reload in (False, True):
            harness = ConnectionHarness(reload=reload)
            harness.send(direction, octets[:split])
            harness.send(direction, octets[split:])
            harness.send(1 - direction, HEADERS["AMQP"])
            harness.skip(direction, 10)
            harness.send(direction, b"and more of it")
            harness.finish()
            own = [one for one in harness.out if one.direction == direction]
            assert [one.frame.kind for one in own] == ["skipped", "skipped"]
            assert sum(int(one.frame.size) for one in own) == len(octets) + 24
            assert [int(one.frame.missing) for one in own] == [0, 10]
            assert [int(one.packet) for one in harness.out] == [3, 5, 6]


@pytest.mark.parametrize("asked", HEADERS)
@pytest.mark.parametrize("peer", ["client", "server"])
def test_a_header_in_small_letters_is_none(asked: str, peer: str) -> None:
    """Read as a frame of AMQP 1.0 it would have 1.6 GB, and octets of its header that fit."""
    header = HEADERS[asked]
    small = header.lower()
    if peer == "client":
        said = [("client", small), ("server", header)]
    else:
        said = [("client", header), ("server", small)]
    found, _ = judged(converse(*said))
    rule = "amqp10/C-HDR-FORM"
    if asked == "0-9-1":
        rule = "amqp091/F-PROTO-HDR" if peer == "client" else "amqp091/F-PROTO-REJECT-HDR"
    assert found == [(rule, peer, 4 if peer == "client" else 5, True)]


@pytest.mark.parametrize("client", ["0-9-1", "AMQP", "SASL"])
def test_a_server_of_another_version_of_amqp_is_not_judged_by_the_clients(client: str) -> None:
    """It answers with its own header and goes on in its own version, as qpid-proton does."""
    frames091 = bytes.fromhex("01000000000004000a000ace")
    ends10 = OPEN + amqp.frame(amqp.close(error=amqp.error(condition="amqp:connection:framing-error")))
    mechanisms = amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["PLAIN"]))
    answers = [b"AMQP\0\1\0\0" + ends10, b"AMQP\3\1\0\0" + mechanisms] if client == "0-9-1" else []
    answers += [] if client == "0-9-1" else [b"AMQP\0\0\x09\1" + frames091 * 2]
    for answer in answers:
        for split in range(1, len(answer)):
            found, counted = judged(
                converse(("client", HEADERS[client]), ("server", answer[:split]), ("server", answer[split:]))
            )
            assert [one for one in found if one[3]] == []
            assert counted == {"amqp091" if client == "0-9-1" else "amqp10": 1}


def test_the_exit_status_says_that_a_peer_speaks_no_amqp(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.pcap"
    path.write_bytes(converse(("client", HEADERS["0-9-1"]), ("server", SERVERS["http"][0])))
    for command in (["check"], ["read"], ["summary"], ["why", "--end"]):
        result = command_line(capsys, *command, path)
        assert result.status == 3, command
        assert "1 TCP connection, 1 of AMQP 0-9-1 by the client, HTTP by the server" in result.err
        assert "nothing wrong found" not in result.out
    path.write_bytes(converse(("client", CLIENTS["http"][0]), ("server", HEADERS["0-9-1"])))
    result = command_line(capsys, "check", path)
    assert (result.status, "amqp091/F-PROTO-HDR" in result.out) == (1, True)


@pytest.mark.parametrize(
    ("octets", "seen"),
    [
        (b"GET /health HTTP/1.1\r\n\r\n", '"GET /hea": it is HTTP'),
        (b"EHLO client.example.org\r\n", '"EHLO": it is SMTP or FTP'),
        (b"PING\r\n", '"PING": it is Redis'),
        (b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04abcd", "10 10 00 04 4d 51 54 54: it is MQTT"),
    ],
)
@pytest.mark.parametrize(
    ("server", "rule"), [("0-9-1", "amqp091/F-PROTO-HDR"), ("AMQP", "amqp10/C-HDR-FORM")]
)
def test_the_message_shows_what_was_seen(
    octets: bytes, seen: str, server: str, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first eight octets at most, and of text only the first word where a secret may follow."""
    path = tmp_path / "asked.pcap"
    path.write_bytes(converse(("client", octets), ("server", HEADERS[server])))
    for command in ("check", "read"):
        out = command_line(capsys, command, path).out
        assert f"{rule} by the client in packet 4: the stream begins with {seen}" in out, command
        assert "client.example.org" not in out


def test_amqp_of_a_version_that_is_not_decoded_has_one_status_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "amqp010.pcap"
    path.write_bytes(converse(("client", b"AMQP\1\1\0\x0a"), ("server", b"AMQP\1\1\0\x0a")))
    for command in (["check"], ["read"], ["summary"], ["why", "--end"]):
        result = command_line(capsys, *command, path)
        assert result.status == 3, command
        assert "1 of AMQP 0-10 (not decoded)" in result.err
        assert "nothing wrong found" not in result.out


def test_both_protocols_are_named() -> None:
    for name in PROTOCOLS:
        assert protocol_name(f"{name}>http") == f"{protocol_name(name)} by the client, HTTP by the server"
