"""What listens to the events of one connection of AMQP 1.0 for diagnoses."""

from amqpscope.diagnoses.notebook import Notebook
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from dissectors.wire import i64

__all__ = ["Watch10"]


class Watch10(Listener10):
    """Listens to one connection of AMQP 1.0.

    later: the watch needs no event of a delivery until it says so (`attend`).
    """

    def __init__(self, notebook: Notebook, later: bool = False) -> None:
        super().__init__()
        self.notebook = notebook
        self.later: bool = later

    def attend(self, conversation: Conversation10) -> None:
        """The watch needs the events of deliveries from now on."""
        if self.later:
            self.later = False
            conversation.ask_again()

    def needs_deliveries(self) -> bool:
        return not self.later

    def lost(self, until: i64) -> None:
        """Octets are missing: conclude what lasted until that time, and forget all."""

    def lasting(self, until: i64) -> None:
        """Diagnose what lasts at this time (ns), as if the capture ended then. Nothing else changes."""

    def finish(self, accused: set[str]) -> None:
        """The connection is over, or the capture is. accused: the peers with findings against them."""
