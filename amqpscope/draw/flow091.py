"""The charts of AMQP 0-9-1: unacknowledged deliveries and unconfirmed publishes of each channel."""

from amqpscope.draw.flow import FlowCharts
from amqpscope.draw.follower import Walk
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from dissectors.amqp091.arguments import Method

__all__ = ["FlowCharts091"]


class FlowCharts091(FlowCharts):
    """Follows one connection."""

    def follow(self, walk: Walk) -> None:
        walk.by(Conversation091).subscribe(_Events(self))


class _Events(Listener091):
    """Turns events into steps of charts."""

    def __init__(self, charts: FlowCharts091) -> None:
        self._charts = charts

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        if content.delivery is not None and not content.delivery.no_ack:
            self._step(record, "unacknowledged deliveries", 1)
        if content.publish is not None and content.number:
            self._step(record, "unconfirmed publishes", 1)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        for delivery in deliveries:
            self._charts.settle(int(delivery.time), int(record.time))
        self._step(record, "unacknowledged deliveries", -len(deliveries))

    def recovered(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        self._step(record, "unacknowledged deliveries", -len(deliveries))

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        for publish in publishes:
            self._charts.settle(int(publish.time), int(record.time))
        self._step(record, "unconfirmed publishes", -len(publishes))

    def _step(self, record: FrameRecord, what: str, change: int) -> None:
        channel = int(record.frame.channel)
        chart = self._charts.chart((what, channel), f"{what} of channel {channel}", f"channel {channel}")
        chart.add(int(record.time), change)
