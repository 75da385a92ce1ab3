"""What somebody asks for of a capture: connections, frames and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord

if TYPE_CHECKING:
    from amqpscope.tracking.amqp10.identity import Link

__all__ = ["EVERYTHING", "FrameSelection"]


class FrameSelection:
    """Takes everything. A subclass takes less.

    links: the link of a frame decides, too. bounded: a range of packets or of time was given.
    """

    links = False
    bounded = False

    def restart(self) -> None:
        """Another capture begins."""

    def start(self, time: int) -> None:
        """The capture's first frame has this time (ns)."""

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""

    def missing(self) -> str:
        """That this capture lacks the connection asked for; "" if it has it, or if none was asked for."""
        return ""

    def within(self, packet: int, time: int) -> bool:
        """Whether a packet of this number and time (ns) is in the range."""
        return True

    def of_connection(self, connection: Connection) -> bool:
        """Whether something about this connection can be asked for. Called for every connection."""
        return True

    def takes(self, record: FrameRecord, link: Link | None) -> bool:
        """Whether this frame, of this link, is asked for."""
        return True

    def takes_finding(self, finding: Finding) -> bool:
        """Whether this finding is asked for. Its place is that of the frame at fault."""
        return True


EVERYTHING: Final = FrameSelection()
"""The selection that takes everything."""
