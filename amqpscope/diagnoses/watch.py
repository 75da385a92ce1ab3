"""What follows one connection and listens to it for diagnoses: the part that each protocol has of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.events import Conversation
from dissectors.interface import Frame
from dissectors.wire import i64

if TYPE_CHECKING:
    from amqpscope.diagnoses.amqp091.numbers import Numbers091
    from amqpscope.diagnoses.amqp10.numbers import Numbers10

__all__ = ["ProtocolWatches"]


class _Unfollowed(Conversation):
    """Of a connection that nobody follows."""

    def take(self, record: FrameRecord) -> bool:
        return True


_UNFOLLOWED: Final = _Unfollowed()


class ProtocolWatches:
    """Of a protocol that brings none: nobody follows the connection, and nobody listens."""

    def __init__(self) -> None:
        # What follows the connection, and whether it is given each frame here.
        self.conversation: Conversation = _UNFOLLOWED
        self.follows: bool = False
        # All who are to listen do so.
        self.listening: bool = True
        # Who counts and measures, if numbers are wanted.
        self.numbers: Numbers10 | Numbers091 | None = None

    def measure(self) -> None:
        """Count and measure from the next frame on, too."""

    def listen(self, frame: Frame) -> None:
        """The next frame, while not all listen: whether they have to from this one on."""

    def look(self, record: FrameRecord) -> None:
        """Any frame with problems, before its events."""

    def lost(self, until: i64) -> None:
        """Octets are missing: conclude what lasted until that time (ns), and forget all."""

    def lasting(self, until: i64) -> None:
        """Diagnose what lasts at this time (ns), as if the capture ended then. Nothing else changes."""

    def finish(self, accused: set[str]) -> None:
        """The connection is over, or the capture is. accused: the peers with findings against them."""

    def dismiss(self) -> None:
        """Let go of all who listen, which know the conversation: at once, not when garbage is looked for."""
