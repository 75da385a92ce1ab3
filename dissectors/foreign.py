"""A direction that speaks another protocol than the connection is judged by: its octets are counted only."""

from typing import Final

from dissectors.interface import Frame, Problem
from dissectors.stream_decoder import NOT_CREDIBLE, StreamDecoder
from dissectors.wire import i64

__all__ = ["FOREIGN", "NAMES", "ForeignDecoder"]

FOREIGN: Final = "foreign"
"""The code of the problem that says of a stream's first octets that they are another protocol's."""

NAMES: Final[dict[str, str]] = {
    "amqp010": "AMQP 0-10",
    "amqp09": "AMQP 0-9",
    "amqp08": "AMQP 0-8",
    "amqp-unknown": "AMQP of an unknown version",
    "amqp10-unknown": "AMQP 1.0 (unknown dialect)",
    "http": "HTTP",
    "imap": "IMAP",
    "kafka": "Kafka",
    "memcached": "memcached",
    "mqtt": "MQTT",
    "mysql": "MySQL",
    "nats": "NATS",
    "openwire": "OpenWire",
    "pop3": "POP3",
    "postgresql": "PostgreSQL",
    "redis": "Redis",
    "rfb": "RFB (VNC)",
    "rtsp": "RTSP",
    "sip": "SIP",
    "smb": "SMB",
    "smtp": "SMTP or FTP",
    "ssh": "SSH",
    "stomp": "STOMP",
    "telnet": "Telnet",
    "tls": "TLS",
    "xmpp": "XMPP",
}
"""What people call the protocols that `dissectors.detect` names."""


class ForeignDecoder(StreamDecoder):
    """Gives out the octets of one direction as skipped ones.

    protocol: what they are of; label: what people call it. begins: they are the first of their stream; else a
    protocol header stood before them. first: the first of these octets, eight at most.
    """

    def __init__(self, protocol: str = "", label: str = "", begins: bool = True, first: bytes = b"") -> None:
        super().__init__(False, 0)
        self.protocol: str = protocol
        self.label: str = label
        self.begins: bool = begins
        self.first: bytes = first
        self.opaque = True

    def flush(self) -> None:
        """Give out what has come so far."""
        self.give_skipped()

    def explain_skipped(self, frame: Frame) -> None:
        if self.begins and self.protocol != "tls":
            # TLS may carry AMQP.
            self.begins = False
            seen = _shown(self.first, self.protocol == "http")
            what = f"the stream begins with {seen}: it is" if seen else "the stream is"
            reason = f"{what} {self.label}, not AMQP"
            frame.add_problem(Problem(FOREIGN, 0, "", reason))
        else:
            frame.add_problem(Problem("skipped", 0, "", f"octets of {self.label}"))

    # There are no frames.

    def run(self, buf: bytes, start: i64, end: i64) -> i64:
        return start

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        return

    def frame_size(self, buf: bytes) -> i64:
        return 8

    def candidate(self, window: bytes, start: i64, end: i64) -> i64:
        return end

    def credible(self, buf: bytes, at: i64, end: i64, last: bool) -> i64:
        return NOT_CREDIBLE

    def give_wrong(self, buf: bytes, at: i64, size: i64) -> bool:
        return False

    def dump_protocol(self) -> tuple[object, ...]:
        return (self.protocol, self.label, self.begins, self.first)

    @staticmethod
    def load(state: tuple[object, ...]) -> "ForeignDecoder":
        """A decoder that goes on where `dump` left off. Raises ValueError on another version's state."""
        decoder = ForeignDecoder()
        decoder.protocol, decoder.label, decoder.begins, decoder.first = decoder.restore(state)
        return decoder


def _shown(octets: bytes, words: bool) -> str:
    """The first octets of a stream for people. words: show more than the first word: no secret is there."""
    text = octets.split(b"\n")[0].rstrip(b"\r")
    if not text or any(octet < 0x20 or octet > 0x7E for octet in text):
        return octets.hex(" ")
    return '"' + (text if words else text.partition(b" ")[0]).decode("ascii") + '"'
