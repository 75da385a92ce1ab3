"""What a rule of AMQP 0-9-1 is given: a frame, and both endpoints as they were before it."""

from typing import Final

from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.rules.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.connection_view import ConnectionView
from amqpscope.tracking.amqp091.endpoint import ALL, CHANNEL, Endpoint091
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
)
from dissectors.wire import i64

__all__ = ["Case091"]

# Fields that name an exchange or a queue.
_PLACES: Final = ("exchange", "queue", "source", "destination")


class Case091(Case):
    """One frame to be judged, or the end of a stream.

    me: the endpoint that sent the frame. peer: the other endpoint. view: the connection as `me` could know
    it. channel: the channel of the frame as `me` knows it, or None. name: the name of the method, or of the
    frame. fine_exchange: the last exchange name that was found correct.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.me: Endpoint091
        self.peer: Endpoint091
        self.view: ConnectionView
        self.channel: Channel | None = None
        self.name: str = ""
        self.fine_exchange: str = ""

    def place(self, finding: Finding) -> None:
        if self.spot is None:
            body = self.record.frame.body
            if isinstance(body, (BasicDeliver, BasicGetOk, BasicAck, BasicNack, BasicReject)):
                finding.delivery_id = body.delivery_tag
            finding.addresses = self.addresses()

    def addresses(self) -> tuple[str, ...]:
        """The exchanges and queues that the frame names; for a publish to the default exchange, the queue."""
        frame = self.record.frame
        body = frame.body
        channel = self.channel
        found: dict[str, None] = {}
        if isinstance(body, Method):
            for field, value in body.fields():
                if field.name in _PLACES and isinstance(value, str) and value:
                    found[value] = None
            if isinstance(body, BasicPublish) and not body.exchange and body.routing_key:
                found[body.routing_key] = None
            if channel is not None and isinstance(body, BasicDeliver) and body.consumer_tag is not None:
                consumer = channel.consumers.live.get(body.consumer_tag)
                if consumer is not None and consumer.queue:
                    found[consumer.queue] = None
        elif channel is not None and self.me.by_client and channel.last_publish.exchange:
            if frame.kind == "content-header" or frame.kind == "body":
                found[channel.last_publish.exchange] = None
        return tuple(found)

    def mislay(self, astray: i64) -> None:
        """Nobody knows what the sender of this frame means by it. What the other peer does then may depend on
        it, and so may later frames of the sender: on its channel, or on all if the channel does not exist.
        """
        self.astray = astray
        self.me.disturb(self.record.frame.channel, ALL if self.channel is None else CHANNEL)

    def is_sure(self) -> bool:
        """Whether frames were found without a search, ever since the connection or the channel began.

        After octets that were not captured, frames are searched for. A frame that was found by the search may
        be the body of a message.
        """
        if self.me.whole:
            return True
        channel = self.channel
        return channel is not None and channel.whole
