"""The fields of AMQP 0-9-1's frequent frames as columns: publish, deliver, ack, nack, content header."""

from amqpscope.pipeline.columns import Flags, Numbers, TableColumns, Words, fits
from amqpscope.pipeline.frame_columns import FrameFields
from amqpscope.report.amqp091.json_form import Amqp091JsonRenderer
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import BASIC, ContentHeader
from dissectors.amqp091.methods import BasicAck, BasicDeliver, BasicNack, BasicPublish
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Amqp091Fields"]


class Amqp091Fields(FrameFields):
    """Fills the columns of AMQP 0-9-1. A frame that lacks a field, or has an odd one, is in none."""

    def __init__(self, columns: TableColumns) -> None:
        self._columns: TableColumns = columns
        self._renderer: Amqp091JsonRenderer = Amqp091JsonRenderer()
        self._delivery_id: Numbers = columns.numbers("delivery_id")
        self._exchange: Words = columns.words("exchange", True)
        self._routing_key: Words = columns.words("routing_key", True)
        self._consumer_tag: Words = columns.words("consumer_tag", True)
        self._mandatory: Flags = columns.flags("mandatory")
        self._immediate: Flags = columns.flags("immediate")
        self._redelivered: Flags = columns.flags("redelivered")
        self._multiple: Flags = columns.flags("multiple")
        self._requeue: Flags = columns.flags("requeue")
        self._body_size: Numbers = columns.numbers("body_size")
        self._properties: Words = columns.words("properties")

    def take(self, row: i64, frame: Frame) -> bool:
        body = frame.body
        if isinstance(body, ContentHeader):
            return self._header(row, body)
        if not isinstance(body, Method) or body.odd is not None or body.present < body.definition().size:
            return False
        if isinstance(body, BasicPublish):
            return self._publish(row, body)
        if isinstance(body, BasicDeliver):
            return self._deliver(row, body)
        if isinstance(body, BasicAck):
            if not fits(body.delivery_tag):
                return False
            self._delivery_id.put(row, body.delivery_tag)
            self._multiple.put(row, body.multiple)
            return True
        return isinstance(body, BasicNack) and self._nack(row, body)

    def _publish(self, row: i64, body: BasicPublish) -> bool:
        self._exchange.say(row, body.exchange)
        self._routing_key.say(row, body.routing_key)
        self._mandatory.put(row, body.mandatory)
        self._immediate.put(row, body.immediate)
        return body.reserved_1 == 0

    def _deliver(self, row: i64, body: BasicDeliver) -> bool:
        self._consumer_tag.say(row, body.consumer_tag)
        self._redelivered.put(row, body.redelivered)
        self._exchange.say(row, body.exchange)
        self._routing_key.say(row, body.routing_key)
        if not fits(body.delivery_tag):
            return False
        self._delivery_id.put(row, body.delivery_tag)
        return True

    def _nack(self, row: i64, body: BasicNack) -> bool:
        self._multiple.put(row, body.multiple)
        self._requeue.put(row, body.requeue)
        if not fits(body.delivery_tag):
            return False
        self._delivery_id.put(row, body.delivery_tag)
        return True

    def _header(self, row: i64, body: ContentHeader) -> bool:
        if body.class_id != BASIC or body.weight != 0 or not fits(body.body_size):
            return False
        properties = self._renderer.properties(body)
        self._columns.text += len(properties)
        self._body_size.put(row, body.body_size)
        self._properties.say(row, properties)
        return True
