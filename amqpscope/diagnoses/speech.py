"""What frames say of their connection: how it opens, what is agreed, and that it closes.

Each protocol has its own `Speech`, which tells the watches of all protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpscope.model.records import FrameRecord
from dissectors.wire import i64

if TYPE_CHECKING:
    from amqpscope.diagnoses.opening import OpeningWatch
    from amqpscope.diagnoses.transport import TransportWatch

__all__ = ["Speech"]


class Speech:
    """Of frames that say nothing of their connection. side: the sender's."""

    def open(self, record: FrameRecord, side: i64, watch: OpeningWatch) -> None:
        """A frame of a connection that opens."""

    def resume(self, body: object, watch: TransportWatch) -> None:
        """The first frame behind a silence of both sides."""
        watch.closed_first = False

    def connect(self, body: object, time: i64, side: i64, watch: TransportWatch) -> None:
        """A frame, sent at this time (ns), that may be about the connection."""
