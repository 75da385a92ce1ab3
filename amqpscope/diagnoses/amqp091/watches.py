"""All that watches a connection of AMQP 0-9-1."""

from amqpscope.diagnoses.amqp091.channels import ChannelWatch
from amqpscope.diagnoses.amqp091.habits import HabitWatch
from amqpscope.diagnoses.amqp091.refusals import Refusal091Watch
from amqpscope.diagnoses.amqp091.watch import Watch091
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.watch import ProtocolWatches
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.conversation import Conversation091
from dissectors.wire import i64

__all__ = ["Watches091"]


class Watches091(ProtocolWatches):
    """Those of one connection, from its first frame on. conversation: what follows it already; None to follow
    it here.
    """

    def __init__(self, notebook: Notebook, conversation: Conversation091 | None) -> None:
        super().__init__()
        self.notebook: Notebook = notebook
        self.spoken: Conversation091 = Conversation091() if conversation is None else conversation
        self.conversation = self.spoken
        self.follows = conversation is None
        # In the order in which they take an event.
        self.listeners: list[Watch091] = [
            ChannelWatch(notebook, self.spoken),
            HabitWatch(notebook, self.spoken),
            Refusal091Watch(notebook, self.spoken),
        ]
        for watch in self.listeners:
            self.spoken.subscribe(watch)
        self.spoken.follow_whole_messages(conversation is None)

    def measure(self) -> None:
        from amqpscope.diagnoses.amqp091.numbers import Numbers091  # only `summary` has numbers

        numbers = Numbers091(self.notebook, self.listeners)
        self.spoken.follow_whole_messages(False)
        self.spoken.subscribe(numbers)
        self.listeners.append(numbers)
        self.numbers = numbers

    def look(self, record: FrameRecord) -> None:
        for watch in self.listeners:
            watch.look(record)

    def lost(self, until: i64) -> None:
        for watch in self.listeners:
            watch.lost(until)

    def lasting(self, until: i64) -> None:
        for watch in self.listeners:
            watch.lasting(until)

    def finish(self, accused: set[str]) -> None:
        for watch in self.listeners:
            watch.finish(accused)

    def dismiss(self) -> None:
        self.spoken.dismiss()
