"""Which protocol a direction of a connection speaks, where that is not AMQP; ports are no evidence.

What is not AMQP is named, so that it can be distinguished instead of being misread. Names: those of
`FOREIGN_PROTOCOLS`, of `UNDECODED`, UNKNOWN, and MORE while there are too few octets to tell. What was
detected from some octets holds for any longer beginning of the same stream.
"""

from typing import Final

from dissectors.wire import i64, u16, u32

__all__ = [
    "FOREIGN_PROTOCOLS",
    "MORE",
    "UNDECODED",
    "UNKNOWN",
    "UNKNOWN_DIALECT",
    "detect_foreign",
    "tls_midstream",
]

MORE: Final = ""
"""Too few octets to tell."""

UNKNOWN: Final = "unknown"
"""Nothing we know begins like this."""

UNDECODED: Final = {
    "AMQP 0-10": "amqp010",
    "AMQP 0-9": "amqp09",
    "AMQP 0-8": "amqp08",
    "unknown": "amqp-unknown",
}
"""The names of the versions of AMQP of which only the protocol header is read, by what that announces."""

UNKNOWN_DIALECT: Final = "amqp10-unknown"
"""AMQP 1.0 in a dialect that its frames do not show: what there is speaks for the draft, and does not
suffice.
"""

# Checked in this order: one may be the beginning of another.
_TEXT: Final = (
    (b"GET ", "http"),
    (b"PUT ", "http"),
    (b"POST ", "http"),
    (b"HEAD ", "http"),
    (b"PATCH ", "http"),
    (b"DELETE ", "http"),
    (b"OPTIONS ", "http"),
    (b"CONNECT {", "nats"),
    (b"CONNECT ", "http"),
    (b"TRACE ", "http"),
    (b"PRI * HTTP/2.0", "http"),
    (b"HTTP/", "http"),
    (b"<!DOCTYPE ", "http"),
    (b"<!doctype ", "http"),
    (b"<HTML", "http"),
    (b"<html", "http"),
    (b"SSH-", "ssh"),
    (b"CONNECT\n", "stomp"),
    (b"CONNECT\r\n", "stomp"),
    (b"STOMP\n", "stomp"),
    (b"STOMP\r\n", "stomp"),
    (b"CONNECTED\n", "stomp"),
    (b"CONNECTED\r\n", "stomp"),
    (b"ERROR\n", "stomp"),
    (b"ERROR\r\n", "memcached"),
    (b"EHLO ", "smtp"),
    (b"HELO ", "smtp"),
    (b"220 ", "smtp"),
    (b"220-", "smtp"),
    (b"421 ", "smtp"),
    (b"500 ", "smtp"),
    (b"501 ", "smtp"),
    (b"502 ", "smtp"),
    (b"554 ", "smtp"),
    (b"+OK ", "pop3"),
    (b"* OK ", "imap"),
    (b"* BYE ", "imap"),
    (b"* BAD ", "imap"),
    (b"-ERR ", "redis"),
    (b"-NOAUTH ", "redis"),
    (b"-DENIED ", "redis"),
    (b"+PONG\r\n", "redis"),
    (b"*1\r\n$", "redis"),
    (b"*2\r\n$", "redis"),
    (b"*3\r\n$", "redis"),
    (b"PING\r\n", "redis"),
    (b"INFO {", "nats"),
    (b"RTSP/", "rtsp"),
    (b"SIP/2.0 ", "sip"),
    (b"RFB 003.", "rfb"),
    (b"RFB 004.", "rfb"),
    (b"<?xml ", "xmpp"),
    (b"<stream:", "xmpp"),
    (b"\x20\x02\x00", "mqtt"),
    (b"\x20\x02\x01", "mqtt"),
    (b"\xff\xfb", "telnet"),
    (b"\xff\xfd", "telnet"),
    (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", "postgresql"),
)

# What stands behind others: the first octets, how many may be anything, and those that follow.
_BEHIND: Final = (
    (b"\x00\x00", 2, b"\x01ActiveMQ", "openwire"),
    (b"\x00\x00", 2, b"\x00\x03\x00\x00user\x00", "postgresql"),
    (b"\x00\x00", 2, b"\xffSMB", "smb"),
    (b"\x00\x00", 2, b"\xfeSMB", "smb"),
    (b"E\x00\x00", 2, b"SERROR\x00", "postgresql"),
    (b"E\x00\x00", 2, b"SFATAL\x00", "postgresql"),
)

FOREIGN_PROTOCOLS: Final = frozenset(
    ["tls", "mysql", "kafka", *(row[1] for row in _TEXT), *(row[3] for row in _BEHIND)]
)
"""The names of protocols that are no AMQP."""

# The largest TLS record: 2**14 octets and what compression and encryption may add (RFC 5246, section 6.2).
_MAX_TLS_RECORD: Final = 0x4800


def detect_foreign(buf: bytes) -> str:
    """Name a protocol that is no AMQP by the first octets of a stream, as many as have come.

    Gives MORE while one may still turn out, UNKNOWN if it is none of them.
    """
    size: i64 = len(buf)
    more = False
    for opening, name in _TEXT:
        if buf.startswith(opening):
            # While a longer one may still stand there it is not reported.
            return MORE if more else name
        if size < len(opening) and opening.startswith(buf):
            more = True
    for opening, distance, behind, name in _BEHIND:
        if buf.startswith(opening[:size]):
            at: i64 = len(opening) + distance
            found_there = buf[at : at + len(behind)]
            if found_there == behind:
                return name
            if behind.startswith(found_there):
                more = True
    if size < 6:
        return MORE
    if _tls_opening(buf):
        return "tls"
    found = _mqtt(buf)
    if found == UNKNOWN:
        found = _binary(buf, size)
    return MORE if more and found == UNKNOWN else found


def tls_midstream(buf: bytes, at: i64, end: i64) -> bool:
    """Whether TLS records fill buf[at:end] exactly, or at least two of them begin there in a row."""
    count: i64 = 0
    while end - at >= 5:
        kind: i64 = buf[at]
        length = u16(buf, at + 3)
        if kind < 0x14 or kind > 0x18 or buf[at + 1] != 3 or buf[at + 2] > 4:
            return False
        if length == 0 or length > _MAX_TLS_RECORD:
            return False
        count += 1
        if count == 2:
            return True
        at += 5 + length
    return count == 1 and at == end


def _tls_opening(buf: bytes) -> bool:
    """A TLS record at the very start (at least six octets) that opens a handshake, or an alert."""
    if buf[1] != 3 or buf[2] > 4:
        return False
    length = u16(buf, 3)
    if buf[0] == 0x16:
        return buf[5] in (1, 2) and 4 <= length <= _MAX_TLS_RECORD
    return buf[0] == 0x15 and length == 2


def _mqtt(buf: bytes) -> str:
    """An MQTT CONNECT packet: type, remaining length in one to four octets, the protocol's name."""
    if buf[0] != 0x10:
        return UNKNOWN
    at: i64 = 1
    while buf[at] >= 0x80:
        at += 1
        if at == 5:
            return UNKNOWN
    name = buf[at + 1 : at + 9]
    if name.startswith(b"\x00\x04MQTT") or name == b"\x00\x06MQIsdp":
        return "mqtt"
    if b"\x00\x04MQTT".startswith(name) or b"\x00\x06MQIsdp".startswith(name):
        return MORE
    return UNKNOWN


def _binary(buf: bytes, size: i64) -> str:
    """Binary openings: a server's SETTINGS of HTTP/2, MySQL's greeting or error, a request to Kafka.

    At least six octets are there. None of them could be a frame of AMQP: its data offset would be below 2,
    its type none, or its size beyond all measure.
    """
    if buf[0] == 0 and buf[3] == 4 and buf[4] <= 1:
        # RFC 9113, sections 4.1 and 6.5: the length in three octets, type 4, flags, stream 0.
        if not buf[5:9].strip(b"\0") and (buf[1] << 8 | buf[2]) % 6 == 0:
            return "http" if size >= 9 else MORE
    if buf[2] == 0 and buf[3] == 0 and 30 <= buf[0] + (buf[1] << 8) <= 512:
        # The length in three octets, the lowest first, the number 0, protocol 10 and a version; or an error.
        if buf[4] == 10 and 0x33 <= buf[5] <= 0x39:
            return "mysql"
        if buf[4] == 0xFF:
            if size < 7:
                return MORE
            if buf[6] == 4:
                return "mysql"
    if buf[0] == 0 and buf[1] == 0 and buf[4] == 0 and buf[5] < 100:
        # Size, number and version of the request, correlation-id, the client's name with its length.
        if size < 15:
            return MORE
        name: i64 = u16(buf, 12)
        if buf[6] == 0 and buf[7] <= 20 and 0 < name <= u32(buf, 0) - 10 and buf[14 : 14 + name].isascii():
            return "kafka"
    return UNKNOWN
