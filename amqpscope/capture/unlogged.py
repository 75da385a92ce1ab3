"""How a frame that was put together from a log says what the log does not hold.

A value stands as null described by `DESCRIPTOR`, which no peer sends. Octets of payload stand as their number
in the extended header of the frame, four octets behind the usual eight: PAYLOAD if nobody knows how many.
"""

from typing import Final

__all__ = ["DESCRIPTOR", "PAYLOAD", "VALUE"]

DESCRIPTOR: Final = "amqpscope:unlogged"
"""The descriptor of a value that the log does not hold, a symbol."""

VALUE: Final = b"\x00\xa3" + bytes([len(DESCRIPTOR)]) + DESCRIPTOR.encode() + b"\x40"
"""Such a value, encoded."""

NULL: Final = VALUE[:-1] + b"\x41"
"""The same for a value that is null or means nothing more than null, encoded."""

PAYLOAD: Final = 0xFFFF_FFFF
"""Stands for the number of octets of a payload of which a log says nothing."""

TABLE: Final = bytes([len(DESCRIPTOR)]) + DESCRIPTOR.encode() + b"V"
"""The octets of a table of AMQP 0-9-1 that the log does not hold."""

BODY: Final = 0x8000
"""In the weight of a content header, which is 0 in all others: the log does not hold the body."""

HEADERS: Final = 0x4000
"""The same: the log does not hold the property headers."""

TIMESTAMP: Final = 0x2000
"""The same: the log does not hold the property timestamp."""
