"""Which protocol a direction of a connection speaks, by its octets alone; ports are no evidence.

A stream whose start was captured says it in its first octets. One that was joined in the middle says
it by a frame that cannot be anything else. What is not AMQP 1.0 is named, so that it can be told
apart instead of being misread.
"""

from dissectors.amqp10.frame import CREDIBLE, ProtocolHeader, credible_frame
from dissectors.wire import i64, u16, u32

__all__ = ["MORE", "UNKNOWN", "detect"]

MORE = ""
"""Too few octets to tell."""

UNKNOWN = "unknown"
"""Nothing we know begins like this."""

_OF_HEADER = {
    "AMQP 1.0": "amqp10",
    "TLS": "amqp10",
    "SASL": "amqp10",
    "AMQP 0-9-1": "amqp091",
    "AMQP 0-10": "amqp010",
    "AMQP 0-9": "amqp09",
    "AMQP 0-8": "amqp08",
    "unknown": "amqp-unknown",
}

_TEXT = (
    (b"GET ", "http"),
    (b"PUT ", "http"),
    (b"POST ", "http"),
    (b"HEAD ", "http"),
    (b"PATCH ", "http"),
    (b"DELETE ", "http"),
    (b"OPTIONS ", "http"),
    (b"CONNECT ", "http"),
    (b"TRACE ", "http"),
    (b"PRI * HTTP/2.0", "http"),
    (b"HTTP/1.", "http"),
    (b"SSH-", "ssh"),
    (b"CONNECT\n", "stomp"),
    (b"STOMP\n", "stomp"),
    (b"CONNECTED\n", "stomp"),
)


def detect(buf: bytes, start: bool) -> str:
    """Name the protocol of a direction from its first captured octets.

    buf: the octets so far. start: they begin where the stream begins (its SYN was seen), so that
    the opening of a protocol is to be expected; otherwise only frames are looked for.
    Gives `amqp10`, `amqp091`, `amqp010`, `amqp09`, `amqp08`, `amqp-unknown` (an AMQP header of no known
    version), `tls`, `http`, `ssh`, `stomp`, `mqtt`, UNKNOWN, or MORE.
    """
    size: i64 = len(buf)
    if size >= 8 and buf.startswith(b"AMQP"):
        return _OF_HEADER[ProtocolHeader(buf[4], buf[5], buf[6], buf[7]).protocol()]
    if start:
        return _opening(buf, size)
    found = _tls(buf, size)
    if found:
        return found
    if _chain091(buf, 0, size) >= 2:
        return "amqp091"
    return MORE


def _opening(buf: bytes, size: i64) -> str:
    """The protocol whose opening this is."""
    more = False
    if size < 8 and b"AMQP".startswith(buf[:4]):
        return MORE
    for opening, name in _TEXT:
        if buf.startswith(opening):
            return name
        if size < len(opening) and opening.startswith(buf):
            more = True
    found = _tls(buf, size)
    if found:
        return found
    if size < 6:
        # Enough for the shortest sign below, unless what is there already speaks against all of them.
        return MORE
    if buf[0] == 0x10 and (buf.find(b"\x00\x04MQTT", 2, 12) > 0 or buf.find(b"\x00\x06MQIsdp", 2, 14) > 0):
        return "mqtt"
    verdict = credible_frame(buf, 0, size)
    if verdict == CREDIBLE:
        return "amqp10"
    if verdict > 0 and u32(buf, 0) != 0:
        more = True
    if _chain091(buf, 0, size) >= 1:
        return "amqp091"
    return MORE if more else UNKNOWN


def _tls(buf: bytes, size: i64) -> str:
    """A TLS record that opens a handshake, or an alert, at the very start."""
    if size < 6:
        return ""
    if buf[0] == 0x16 and buf[1] == 3 and buf[2] <= 4 and buf[5] in (1, 2) and 4 <= u16(buf, 3) <= 0x4800:
        return "tls"
    if buf[0] == 0x15 and buf[1] == 3 and buf[2] <= 4 and u16(buf, 3) == 2:
        return "tls"
    return ""


def _chain091(buf: bytes, at: i64, size: i64) -> i64:
    """How many whole AMQP 0-9-1 frames stand in a row at `at`: type, channel, size, body, 0xCE."""
    count: i64 = 0
    while size - at >= 8:
        kind: i64 = buf[at]
        if kind != 8 and (kind == 0 or kind > 3):
            break
        length = u32(buf, at + 3)
        if length > size - at - 8 or buf[at + 7 + length] != 0xCE:
            break
        count += 1
        at += 8 + length
    return count
