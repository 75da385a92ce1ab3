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
    """One message comes again and again, because the client gives it back each time.

    Means: A message that cannot be processed is requeued, comes again, and keeps the consumer busy.
    Comes about: An exception in the handler leads to nack with requeue, or to released or modified.
    Move: The client's.
    Client: Reject a message that cannot be processed, so that it is dead-lettered; count its deliveries.
    Server: Set a delivery limit; RabbitMQ's quorum queues have one of 20.
    Silent when: The messages are different ones, or come again only a few times.
    """,
    Limit("times", 5, "a few retries are usual"),
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
                f"message {message_id} came {known.times} times on {queue}: client gives it back "
                f"({known.outcome}) each time",
                {"message_id": message_id, "deliveries": known.times, "outcome": known.outcome},
                packets=(known.last_packet,),
            )
