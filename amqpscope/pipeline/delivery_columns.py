"""The rows of the table `deliveries`, by column."""

from amqpscope.model.records import Connection
from amqpscope.pipeline.columns import Flags, Hex, Numbers, SmallNumbers, TimedColumns, Words, fits
from amqpscope.pipeline.deliveries import DeliveryRow
from amqpscope.pipeline.packets import split

__all__ = ["DeliveryColumns"]


class DeliveryColumns(TimedColumns):
    """Rows of the table `deliveries`."""

    def __init__(self) -> None:
        super().__init__("deliveries")
        self._capture_set: Words = self.words("capture_set")
        self._capture: Words = self.words("capture")
        self._connection: Words = self.words("connection")
        self._protocol: Words = self.words("protocol")
        self._sender: Words = self.words("sender")
        self._link: Words = self.words("link", True)
        self._address: Words = self.words("address", True)
        self._outcome: Words = self.words("outcome")
        self._condition: Words = self.words("condition")
        self._settled_by: Words = self.words("settled_by")
        self._packet: Numbers = self.numbers("packet")
        self._time: Numbers = self.numbers("time")
        self._channel: SmallNumbers = self.small("channel")
        self._delivery_id: Numbers = self.numbers("delivery_id")
        self._delivery_tag: Hex = self.hexadecimal("delivery_tag")
        self._transfers: Numbers = self.numbers("transfers")
        self._payload: Numbers = self.numbers("payload")
        self._complete: Flags = self.flags("complete")
        self._aborted: Flags = self.flags("aborted")
        self._settled_packet: Numbers = self.numbers("settled_packet")
        self._latency_ns: Numbers = self.numbers("latency_ns")

    def add_delivery(
        self, capture_set: str, captures: list[str], connection: Connection, delivery: DeliveryRow
    ) -> None:
        """A delivery. captures: the files of its set."""
        row = self.rows
        position, packet = split(delivery.packet)
        time = delivery.time
        self._capture_set.say(row, capture_set)
        self._capture.say(row, captures[position])
        self._connection.say(row, connection.id)
        self._protocol.say(row, connection.protocol or None)
        self._sender.say(row, delivery.sender)
        self._link.say(row, delivery.link_name)
        self._address.say(row, delivery.address)
        self._outcome.say(row, delivery.outcome or None)
        self._condition.say(row, delivery.condition or None)
        self._packet.put(row, packet)
        self._time.put(row, time)
        self._channel.put(row, delivery.channel)
        number = delivery.id
        if number is not None and fits(number):
            self._delivery_id.put(row, number)
        tag = delivery.tag
        if tag is not None:
            self.text += 2 * len(tag)
            self._delivery_tag.put_octets(row, tag)
        self._transfers.put(row, delivery.transfers)
        self._payload.put(row, delivery.payload)
        self._complete.put(row, delivery.complete)
        self._aborted.put(row, delivery.aborted)
        if delivery.settled_by:
            self._settled_by.say(row, delivery.settled_by)
            self._settled_packet.put(row, split(delivery.settled_packet)[1])
            self._latency_ns.put(row, delivery.settled_time - time)
        self.rows = row + 1
