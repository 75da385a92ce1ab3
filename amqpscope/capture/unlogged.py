"""How a frame that was put together from a log says what the log does not hold.

A value stands as null described by `DESCRIPTOR`, which no peer sends. Octets of payload stand as their number
in the extended header of the frame, four octets behind the usual eight.
"""

from typing import Final

__all__ = ["DESCRIPTOR", "VALUE"]

DESCRIPTOR: Final = "amqpscope:unlogged"
"""The descriptor of a value that the log does not hold, a symbol."""

VALUE: Final = b"\x00\xa3" + bytes([len(DESCRIPTOR)]) + DESCRIPTOR.encode() + b"\x40"
"""Such a value, encoded."""
