"""What somebody asks who looks at a connection that went wrong, answered without accusing anybody.

A `Diagnosis` is fed with the frames of one connection, and tells in the end what is worth a line. It never
counts for an exit status: what breaks a rule is for `check` to say.
"""

from typing import NamedTuple

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.events import Conversation

__all__ = ["Diagnosed", "Diagnosis"]


class Diagnosed(NamedTuple):
    """One line: its code (`diag/...`), the packet it begins with, the sentence, and the packet of the cause.

    cause: 0 if none is found; offset: of the frame there, in its sender's stream; sure: it can be no other.
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

    def reported(self) -> list[Diagnosed]:
        """What there is to be said, in the order of packets."""
        return []
