"""What watches one connection for diagnoses: the parts that all protocols share."""

from amqpscope.diagnoses.notebook import Notebook
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.events import Listener091
from amqpscope.tracking.amqp10.events import Listener10

__all__ = ["Watch", "Watch091", "Watch10"]


class Watch:
    """Looks at every frame, whatever it is about."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook

    def take(self, record: FrameRecord, side: int) -> None:
        """The next frame. side: its sender's."""

    def finish(self) -> None:
        """The connection is over, or the capture is."""


class Watch10(Listener10):
    """Listens to one connection of AMQP 1.0."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__()
        self.notebook = notebook

    def lost(self, until: int) -> None:
        """Octets are missing: conclude what lasted until that time, and forget all."""

    def finish(self, accused: set[str]) -> None:
        """The connection is over, or the capture is. accused: the peers with findings against them."""


class Watch091(Listener091):
    """Listens to one connection of AMQP 0-9-1."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__()
        self.notebook = notebook

    def look(self, record: FrameRecord) -> None:
        """Any frame with problems, before its events."""

    def lost(self, until: int) -> None:
        """Octets are missing: conclude what lasted until that time, and forget all."""

    def finish(self, accused: set[str]) -> None:
        """The connection is over, or the capture is. accused: the peers with findings against them."""
