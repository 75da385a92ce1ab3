"""Which protocol a direction of a connection speaks, by its octets alone; ports are no evidence.

A stream whose start was captured says it in its first octets (`detect`). One that was joined in the middle is
searched for a frame by the decoders of all protocols; some protocols show themselves there, too, by frames or
records that begin where a segment does (`detect_midstream`).

Names are those of `PROTOCOLS`, and those of `dissectors.detect`. What was detected from some octets holds
for any longer beginning of the same stream.
"""

from amqpscope.protocols import detected
from dissectors.detect import MORE, UNDECODED, UNKNOWN, detect_foreign, tls_midstream
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["detect", "detect_header", "detect_midstream"]


def detect(buf: bytes) -> str:
    """Name the protocol of a direction by the first octets of its stream, as many as have come."""
    size: i64 = len(buf)
    if size < 8 and b"AMQP".startswith(buf[:4]):
        return MORE
    if buf.startswith(b"AMQP"):
        return detect_header(ProtocolHeader(buf[4], buf[5], buf[6], buf[7]))
    reported = detect_foreign(buf)
    if size < 6 or (reported != MORE and reported != UNKNOWN):
        return reported
    for protocol in detected():
        found = protocol.detect(buf)
        if found == MORE:
            reported = MORE
        elif found != UNKNOWN:
            return found
    return reported


def detect_header(header: ProtocolHeader) -> str:
    """The protocol that an AMQP protocol header announces."""
    announced = header.protocol()
    for protocol in detected():
        if announced in protocol.headers:
            return protocol.name
    return UNDECODED[announced]


def detect_midstream(buf: bytes, start: i64, end: i64) -> str:
    """Name the protocol of a direction by a segment from its middle, buf[start:end]; MORE if none shows."""
    if tls_midstream(buf, start, end):
        return "tls"
    for protocol in detected():
        if protocol.detect_midstream(buf, start, end):
            return protocol.name
    return MORE
