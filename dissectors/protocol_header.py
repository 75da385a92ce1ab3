"""The protocol header that opens a connection, or a layer of it, in every version of AMQP."""

from typing import Final

from dissectors.interface import Body, BodyField
from dissectors.wire import i64

__all__ = ["ProtocolHeader"]


class ProtocolHeader(Body):
    """The eight octets that open a layer: "AMQP", protocol id, major, minor, revision."""

    def __init__(self, protocol_id: i64, major: i64, minor: i64, revision: i64) -> None:
        self.protocol_id = protocol_id
        self.major = major
        self.minor = minor
        self.revision = revision

    def protocol(self) -> str:
        """What it announces: `AMQP 1.0`, `SASL`, `TLS`, another version of AMQP, or `unknown`."""
        version: i64 = self.protocol_id << 24 | self.major << 16 | self.minor << 8 | self.revision
        return _PROTOCOLS.get(version, "unknown")

    def title(self) -> str:
        return "header"

    def fields(self) -> list[tuple[BodyField, object]]:
        numbers = (self.protocol_id, self.major, self.minor, self.revision)
        return [
            (_PROTOCOL, self.protocol()),
            *[(field, int(number)) for field, number in zip(_NUMBERS, numbers, strict=True)],
        ]

    def __repr__(self) -> str:
        return f"ProtocolHeader({self.protocol_id}, {self.major}, {self.minor}, {self.revision})"


# By the last four octets of the header. transport.xml "version-negotiation", security.xml; the older ones
# from their own specifications. Two are of 0-8, which gives its version as 8-0, and as 9-1 in the print that
# py-amqplib goes by; RabbitMQ takes both.
_PROTOCOLS: Final[dict[int, str]] = {
    0x00_01_00_00: "AMQP 1.0",
    0x02_01_00_00: "TLS",
    0x03_01_00_00: "SASL",
    0x00_00_09_01: "AMQP 0-9-1",
    0x01_01_00_0A: "AMQP 0-10",
    0x01_01_00_09: "AMQP 0-9",
    0x01_01_09_00: "AMQP 0-9",
    0x00_00_09_00: "AMQP 0-9",
    0x01_01_08_00: "AMQP 0-8",
    0x01_01_09_01: "AMQP 0-8",
}

_PROTOCOL: Final = BodyField("protocol", "string")
_NUMBERS: Final = [BodyField(name, "ubyte") for name in ("protocol-id", "major", "minor", "revision")]
