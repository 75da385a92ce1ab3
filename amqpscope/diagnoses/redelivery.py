"""Messages that come again and again, because the client gives them back each time. Both protocols."""

from collections import OrderedDict
from typing import Final

from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.model.records import CLIENT

__all__ = ["REDELIVERY_LOOP", "ReturnedMessages"]

REDELIVERY_LOOP: Final = declare(
    "redelivery-loop",
    ("1.0", "0-9-1"),
    """One message is delivered again and again, because the client gives the message back to the queue after
    each delivery.

    What it means: The client cannot process the message and requeues it. The same message then arrives again
    and keeps the consumer busy.
    Usual causes: After an exception in the message handler, the client sends basic.nack with requeue=true, or
    the outcome `released` or `modified`.
    Who has to act: The client.
    Client: Reject a message that cannot be processed (in 0-9-1 with requeue=false), so that the broker can
    dead-letter the message. Count the deliveries of each message.
    Server: Set a delivery limit. RabbitMQ's quorum queues have a limit of 20.
    Not reported when: each redelivery is of a different message, or the message was requeued only a few
    times.
    Discussions: rabbitmq/rabbitmq-server#1020, amqp-node/amqplib#293, alanxz/rabbitmq-c#743
    """,
    Limit("times", 5, "clients usually retry a message a few times"),
)

_MOST: Final = 512
"""Messages that were given back, and of which the deliveries are counted."""


class _Returned:
    def __init__(self, packet: int) -> None:
        self.packet = packet
        self.times = 0
        self.outcome = ""
        self.last_packet = packet


class ReturnedMessages:
    """The messages that the client of a connection has given back."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        # By queue and message-id.
        self.messages: OrderedDict[tuple[str, str], _Returned] = OrderedDict()

    def returned(self, queue: str, message_id: str, packet: int, outcome: str) -> None:
        """The client gives back what was delivered in this packet."""
        key = (queue, message_id)
        known = self.messages.get(key)
        if known is None:
            if len(self.messages) >= _MOST:
                self.messages.popitem(last=False)
            known = self.messages[key] = _Returned(packet)
        known.times += 1
        known.outcome = outcome
        known.last_packet = packet

    def finish(self) -> None:
        """The connection is over."""
        notebook = self.notebook
        for (queue, message_id), known in self.messages.items():
            if known.times < notebook.limit(REDELIVERY_LOOP, "times"):
                continue
            notebook.add(
                REDELIVERY_LOOP,
                queue,
                CLIENT,
                known.packet,
                f'message "{message_id}" was delivered {known.times} times from "{queue}", because the '
                f"client gives the message back to the queue each time ({known.outcome})",
                {"message_id": message_id, "deliveries": known.times, "outcome": known.outcome},
                packets=(known.last_packet,),
            )
