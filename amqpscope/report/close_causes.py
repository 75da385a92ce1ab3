"""What a peer closed something for, by what its close names.

A `CloseCauses` takes the frames of one connection, and returns what each close is for in the end.
"""

from typing import NamedTuple

from amqpscope.model.records import FrameRecord

__all__ = ["CloseCause", "CloseCauses"]


class CloseCause(NamedTuple):
    """The packet of a close, a sentence about its cause, and the packet of the cause.

    offset: of the causing frame, in its sender's stream; sure: no other frame can be the cause.
    """

    packet: int
    text: str
    cause: int
    offset: int
    sure: bool


class CloseCauses:
    """Watches one connection. A subclass knows a protocol."""

    def see(self, record: FrameRecord) -> None:
        """The next frame, in the order of the capture."""

    def reported(self) -> list[CloseCause]:
        """What each close is for, in the order of packets."""
        return []
