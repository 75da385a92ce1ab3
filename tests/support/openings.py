"""What the protocols begin with that detection names, and octets that nothing begins with."""

from __future__ import annotations

from support import amqp10_encode as amqp


def method091(class_id: int, method_id: int, rest: bytes = b"", channel: int = 0) -> bytes:
    body = class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + rest
    return frame091(1, channel, body)


def frame091(kind: int, channel: int, body: bytes) -> bytes:
    return bytes([kind]) + channel.to_bytes(2, "big") + len(body).to_bytes(4, "big") + body + b"\xce"


def record(kind: int, octets: bytes, minor: int = 3) -> bytes:
    return bytes([kind, 3, minor]) + len(octets).to_bytes(2, "big") + octets


START_OK = method091(10, 11, b"\0\0\0\0\x05PLAIN\0\0\0\0\x05en_US")
HEARTBEAT = frame091(8, 0, b"")
CONTENT = frame091(2, 7, b"\x00\x3c\x00\x00" + (3).to_bytes(8, "big") + b"\x00\x00")
BODY = frame091(3, 7, b"abc")
CLIENT_HELLO = record(0x16, b"\x01\x00\x01\xfc\x03\x03" + bytes(506), minor=1)
SERVER_HELLO = record(0x16, b"\x02\x00\x00\x4c\x03\x03" + bytes(74))

# Name: openings that must be called so, each also in the middle of its octets.
OPENINGS: dict[str, list[bytes]] = {
    "amqp10": [
        b"AMQP\0\1\0\0",
        b"AMQP\2\1\0\0",
        b"AMQP\3\1\0\0",
        b"AMQP\0\1\0\0AMQP\0\1\0\0",
        amqp.frame(amqp.open_(container_id="no header")),
        amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN")),
    ],
    "amqp091": [
        b"AMQP\0\0\x09\1",
        method091(10, 10, b"\0\x09" + bytes(300)),
        START_OK,
        HEARTBEAT,
    ],
    "amqp010": [b"AMQP\1\1\0\x0a"],
    "amqp09": [b"AMQP\1\1\0\x09", b"AMQP\1\1\x09\0", b"AMQP\0\0\x09\0"],
    "amqp08": [b"AMQP\1\1\x08\0", b"AMQP\1\1\x09\1", method091(10, 10, b"\x08\0" + bytes(300))],
    "amqp-unknown": [
        b"AMQP\0\1\1\0",
        b"AMQP\0\2\0\0",
        b"AMQP\1\1\0\0",
        b"AMQP\4\1\0\0",
        b"AMQP is what I would like to speak",
    ],
    "tls": [
        CLIENT_HELLO,
        SERVER_HELLO,
        record(0x16, b"\x01" + bytes(300), minor=0),
        record(0x15, b"\x02\x28"),
    ],
    "http": [
        b"GET / HTTP/1.1\r\n",
        b"POST /a HTTP/1.0\r\n",
        b"CONNECT host:5672 HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    "ssh": [b"SSH-2.0-OpenSSH_9.2\r\n"],
    "stomp": [
        b"CONNECT\naccept-version:1.2\n\n\0",
        b"STOMP\r\naccept-version:1.2\r\n\r\n\0",
        b"CONNECTED\nversion:1.2\n\n\0",
        b"CONNECT\r\n\r\n\0",
    ],
    "mqtt": [
        b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04abcd",
        b"\x10\x8a\x01\x00\x04MQTT\x05\x02\x00\x3c" + bytes(100),
        b"\x10\x0e\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x00",
        b"\x10\xff\xff\xff\x7f\x00\x04MQTT\x05",
    ],
}
KNOWN = [(name, octets) for name, all_octets in OPENINGS.items() for octets in all_octets]

STRANGE = [
    b"hello world",
    b"\r\n\r\n\r\n\r\n",
    bytes(16),
    b"\xff" * 16,
    b"\x05\x01\x00\x05\x01\x00",
    b"PROXY TCP7 10.0.0.1 10.0.0.2 51034 5672\r\n",
    b"AMQX\0\1\0\0",
    b"amqp\0\1\0\0",
    b"GETTING there",
    b"\x16\x03\x01\x02\x00\x03",  # no message that opens a handshake
    b"\x16\x03\x07\x02\x00\x01",
    b"\x10\x10\x00\x04HTTP",
    b"\x10\xff\xff\xff\xff\x7f\x00\x04MQTT",
    b"\x00\x00\x00\x10\x02\x00\x00\x00abcdefgh",  # a frame header with nothing behind it that could be one
    frame091(1, 0, b"\x00\x63\x00\x0a"),
]
