"""What the octets of a frame show at first sight."""

from typing import Final

from amqpscope.capture.logs.entries import HEADER
from dissectors.amqp10.registry import FINAL

__all__ = ["name_of"]

_SMALL: Final = b"\x00\x53"


def name_of(octets: bytes) -> str:
    """The name of the performative in a frame, or HEADER; "" if it has none that is known."""
    if octets.startswith(b"AMQP"):
        return HEADER
    at = octets[4] * 4 if len(octets) > 4 else 0
    if octets[at : at + 2] != _SMALL or len(octets) < at + 3:
        return ""
    body = FINAL.new(octets[at + 2])
    return "" if body is None else body.definition().name
