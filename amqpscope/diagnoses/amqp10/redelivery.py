"""Messages of AMQP 1.0 that come again and again."""

from typing import Final

from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.memory import Memory
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.redelivery import ReturnedMessages
from amqpscope.model.passwords import without_password
from amqpscope.model.records import SERVER, FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import OpenDelivery, Session
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Modified, Properties, Released
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.wire import i64

__all__ = ["RedeliveryWatch", "message_id_of"]

_FRONT: Final = 1024
"""Octets of a message that are kept until it is settled: its properties stand at its front."""


class RedeliveryWatch(Watch10):
    """Watches what the client gives back."""

    def __init__(self, notebook: Notebook, conversation: Conversation10) -> None:
        super().__init__(notebook)
        self.messages = ReturnedMessages(notebook)
        # Of each unsettled delivery of the server's, the first octets of its message.
        self.fronts: Memory = Memory(conversation)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        link = delivery.link
        if link is None or link.sender != SERVER or body.settled:
            return
        message = Message.of(record.message)
        if message is not None and message.complete:
            self.fronts.put(delivery, message.front(_FRONT))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        outcome = body.state
        fronts = self.fronts
        if fronts.count == 0:
            return
        back = isinstance(outcome, Released) or (
            isinstance(outcome, Modified) and not outcome.undeliverable_here
        )
        for delivery in deliveries:
            front = fronts.take(delivery)
            if back and isinstance(front, bytes) and delivery.link is not None:
                message_id = message_id_of(front)
                if message_id:
                    what = "modified" if isinstance(outcome, Modified) else "released"
                    name = without_password(delivery.link.name)
                    self.messages.returned(name, message_id, delivery.packet, what)

    def lost(self, until: i64) -> None:
        self.fronts.clear()

    def finish(self, accused: set[str]) -> None:
        self.messages.finish()


def message_id_of(front: bytes) -> str:
    """The message-id of a message that begins with these octets, "" if it has none."""
    for section in Message(0, [front], len(front), True).sections():
        value = section.value
        if isinstance(value, Properties):
            return "" if value.message_id is None else str(value.message_id)
    return ""
