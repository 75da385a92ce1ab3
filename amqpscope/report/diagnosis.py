"""Answers for somebody who looks at a failed connection, without accusing anybody.

A `Diagnosis` takes the frames of one connection, and returns the noteworthy facts in the end. They never
count for an exit status: `check` reports what breaks a rule.
"""

from typing import NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.events import Conversation

__all__ = ["Diagnosed", "Diagnosis"]


class Diagnosed(NamedTuple):
    """One line: its code (`diag/...`), the packet where it begins, the sentence, and the packet of the cause.

    cause: 0 if none is found; offset: of the causing frame, in its sender's stream; sure: no other frame can
    be the cause.
    """

    code: str
    packet: int
    text: str
    cause: int = 0
    offset: int = -1
    sure: bool = True


class Diagnosis:
    """Watches one connection. A subclass knows a protocol."""

    def __init__(self) -> None:
        # What follows the connection; None if the subclass does not.
        self.conversation: Conversation | None = None

    def see(self, record: FrameRecord) -> None:
        """The next frame, in the order of the capture."""

    def over(self, analysis: ConnectionAnalysis) -> None:
        """The connection is over."""
        for direction, side in ((0, analysis.first), (1, analysis.second)):
            reason = analysis.tcp.facts(direction).ended
            if reason in ("fin", "rst"):
                peer = analysis.connection.peer(direction)
                self.stream_ended(peer, reason, int(side.end_packet), int(side.end_time))

    def stream_ended(self, peer: str, reason: str, packet: int, time: int) -> None:
        """A peer ended its stream at this time (ns) with this packet. reason: `fin` or `rst`."""

    def reported(self) -> list[Diagnosed]:
        """The lines, in the order of packets."""
        return []
