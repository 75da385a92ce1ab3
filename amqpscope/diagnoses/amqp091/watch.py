"""What listens to the events of one connection of AMQP 0-9-1 for diagnoses."""

from amqpscope.diagnoses.notebook import Notebook
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.events import Listener091
from dissectors.wire import i64

__all__ = ["Watch091"]


class Watch091(Listener091):
    """Listens to one connection of AMQP 0-9-1."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__()
        self.notebook = notebook

    def look(self, record: FrameRecord) -> None:
        """Any frame with problems, before its events."""

    def lost(self, until: i64) -> None:
        """Octets are missing: conclude what lasted until that time, and forget all."""

    def lasting(self, until: i64) -> None:
        """Diagnose what lasts at this time (ns), as if the capture ended then. Nothing else changes."""

    def finish(self, accused: set[str]) -> None:
        """The connection is over, or the capture is. accused: the peers with findings against them."""
