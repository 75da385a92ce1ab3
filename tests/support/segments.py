"""Captured segments for what takes them."""

from typing import Any

from amqpscope.capture.segment import Segment

__all__ = ["captured"]


def captured(octets: bytes = b"", **fields: Any) -> Segment:
    """A segment with these octets, inside a larger buffer, and these fields."""
    segment = Segment()
    segment.buf = b"\xee" * 5 + octets + b"\xdd" * 3
    segment.start = 5
    segment.end = 5 + len(octets)
    for name, value in fields.items():
        setattr(segment, name, value)
    return segment
