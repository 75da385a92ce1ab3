"""The story of a connection of AMQP 0-9-1: what each peer says, by channel and consumer.

* The connection: headers and the methods of channel 0. Heartbeats are a matter of time.
* A channel: the client's methods and publishes in their order; the server's answers in theirs; what the
  server sends back; what it confirms of the first publish, the second and so on; what the client says of
  messages it got.
* A consumer: the deliveries to it, and what the client says of each, by itself or with all before.

What a peer still says on something that the other one has closed is late.
"""

from collections import OrderedDict

from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, FormEntry
from amqpscope.diff.forms091 import CanonicalFrames091
from amqpscope.diff.transcript import (
    CONFIRMS,
    DELIVERIES,
    GETS,
    LABEL,
    OTHER,
    OUTCOMES,
    RETURNS,
    Names,
    Room,
    Transcript,
    TranscriptPart,
)
from amqpscope.limits import MAX_COMPARED_UNSETTLED
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.model.volatile import mask_numbers
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import word
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicDeliver,
    BasicGet,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ConnectionClose,
    ConnectionOpen,
    ConnectionStart,
    ConnectionStartOk,
    QueueDeclareOk,
)
from dissectors.amqp091.tables import FieldTable
from dissectors.protocol_header import ProtocolHeader

__all__ = ["Transcript091"]

_WAITING_REQUESTS = 1000
_SUCCESS = 200

_SETTLING = (BasicAck, BasicNack, BasicReject)


class _Consumer:
    """A consumer: its part. cancelled: by the client."""

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.cancelled = False


class _Channel:
    """A channel: its part, the peers that have closed it, its consumers, and how many messages were got."""

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.closed: set[str] = set()
        self.consumers: dict[Consumer, _Consumer] = {}
        self.got = 0


class Transcript091(Transcript, Listener091):
    """Takes the events of one connection."""

    def __init__(
        self,
        connection: Connection,
        room: Room,
        table: CanonicalFrameTable,
        names: Names,
        forms: CanonicalFrames091,
    ) -> None:
        super().__init__(connection, room, table)
        self._names = names
        self._forms = forms
        self._channels: dict[Channel, _Channel] = {}
        self._closed: set[str] = set()
        # The frame in which content begins, of that which is being sent.
        self._begun: dict[SentContent, int] = {}
        # Part, strand and place of each delivery that is not acknowledged.
        self._unsettled: OrderedDict[ConsumerDelivery, tuple[TranscriptPart, str, int]] = OrderedDict()
        self._conversation = Conversation091()
        self._conversation.subscribe(self)

    def take(self, record: FrameRecord, links: LinkNames) -> None:
        """The next frame, whose events it takes."""
        self.late = OTHER[record.peer] in self._closed
        self._conversation.take(record)

    def finish(self) -> None:
        """No more comes."""
        for channel in self.part.parts:
            channel.keys = [frozenset(channel.marks)]
            for consumer in channel.parts:
                consumer.keys = [frozenset(consumer.marks)]
        self._channels.clear()
        self._begun.clear()
        self._unsettled.clear()
        self._conversation = Conversation091()

    def _on(self, record: FrameRecord, channel: Channel | None) -> _Channel | None:
        """The channel that a frame is sent on, None if there is no room for it."""
        if channel is None:
            return None
        known = self._channels.get(channel)
        if known is None:
            if record.frame.kind != "method" or not self.may_have(self.part.parts):
                return None
            part = TranscriptPart("channel", str(int(channel.number)), self.frames)
            self.part.parts.append(part)
            known = self._channels[channel] = _Channel(part)
        self.late = self.late or OTHER[record.peer] in known.closed
        return known

    # The connection

    def header(self, record: FrameRecord, header: ProtocolHeader) -> None:
        self._say(self.part, record)

    def stray(self, record: FrameRecord) -> None:
        if record.frame.channel <= 0:
            self._say(self.part, record)

    def other(self, record: FrameRecord) -> None:
        if record.frame.channel <= 0 and record.frame.kind != "heartbeat":
            self._say(self.part, record)
        elif record.frame.kind == "method":
            known = self._on(record, self._conversation.channel_of(record))
            if known is not None:
                self._say(known.part, record)

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        peer = record.peer
        if isinstance(method, ConnectionStart):
            self._introduced(peer, method.server_properties)
        elif isinstance(method, ConnectionStartOk):
            self._introduced(peer, method.client_properties)
            self.part.marks.add(f"by {method.mechanism}")
        elif isinstance(method, ConnectionOpen):
            self.part.marks.add(f"virtual host {method.virtual_host}")
        elif isinstance(method, ConnectionClose):
            _broken(self.part, peer, int(method.reply_code))
            if peer == CLIENT and peer not in self._closed:
                for channel in self._channels.values():
                    _dropped(channel)
            self._closed.add(peer)
        self._say(self.part, record)

    def _say(self, part: TranscriptPart, record: FrameRecord) -> None:
        """A peer says a frame that is compared as it is."""
        self.say(part, record.peer, record.peer, self._forms.of(record.frame))

    def _introduced(self, peer: str, properties: FieldTable | None) -> None:
        if properties is None:
            return
        table = properties.read()
        for name, reported in (
            ("product", "product"),
            ("version", "version"),
            ("connection_name", "container"),
        ):
            value = table.get(name)
            if isinstance(value, str):
                self.who[peer, reported] = word(
                    mask_numbers(value) if reported == "container" else value, LABEL
                )

    # Methods

    def answered(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if isinstance(method, QueueDeclareOk) and not request.subject:
            self._names.generated(method.queue or "")

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        known = self._on(record, channel)
        if known is not None:
            known.closed.add(record.peer)
            _broken(known.part, record.peer, int(method.reply_code))
            if record.peer == CLIENT:
                _dropped(known)

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        known = self._on(record, channel)
        if known is None or method.definition().content or isinstance(method, _SETTLING):
            return
        if isinstance(method, BasicGet):
            known.part.marks.add(f"gets from {self._names.of(method.queue or '')}")
        self._say(known.part, record)

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        channel = self._on(record, self._conversation.channel_of(record))
        if channel is None or not self.may_have(channel.part.parts):
            return
        queue = self._names.of(method.queue or "")
        part = TranscriptPart("consumer", word(queue, LABEL), self.frames)
        part.marks.add(queue)
        channel.part.parts.append(part)
        part.settled = method.no_ack
        channel.consumers[consumer] = _Consumer(part)
        self._uses(channel, f"consumes {queue}")

    def consumer_cancelled(
        self, record: FrameRecord, method: BasicCancel | BasicCancelOk, consumer: Consumer
    ) -> None:
        channel = self._on(record, self._conversation.channel_of(record))
        known = None if channel is None else channel.consumers.get(consumer)
        if known is not None and record.peer == CLIENT:
            known.cancelled = True
            known.part.dropped_by = CLIENT

    def _uses(self, channel: _Channel, mark: str) -> None:
        for part in (channel.part, self.part):
            if len(part.marks) < _WAITING_REQUESTS:
                part.marks.add(mark)

    # Content

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        if self._on(record, content.channel) is not None:
            self._begun[content] = self.frames

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        at = self._begun.pop(content, None)
        channel = self._on(record, content.channel)
        if at is None or channel is None:
            return
        peer = record.peer
        method = content.method
        name = method.definition().name
        form = CanonicalFrame(name, (FormEntry("complete", "false"),))
        if content.message is not None:
            form = self._forms.method(method, name, content.message)
        if record.frame.kind == "method":
            self.say(channel.part, peer, peer, form, at)  # it is cut short
            return
        if isinstance(method, BasicDeliver):
            self._delivered(channel, content, form, at)
        elif isinstance(method, BasicGetOk):
            self.say(channel.part, peer, peer, form, at)
            if content.delivery is not None and not content.delivery.no_ack:
                self._await(content.delivery, (channel.part, GETS, channel.got))
                channel.got += 1
        elif isinstance(method, BasicReturn):
            self.say(channel.part, RETURNS, peer, form, at)
        else:
            if isinstance(method, BasicPublish):
                exchange, key = method.exchange or "", method.routing_key or ""
                self._uses(channel, f"publishes to {self._names.of(exchange)}/{self._names.of(key)}")
            self.say(channel.part, peer, peer, form, at)

    def _delivered(self, channel: _Channel, content: SentContent, form: CanonicalFrame, at: int) -> None:
        """A message for a consumer has come to its end."""
        consumer = None if content.consumer is None else channel.consumers.get(content.consumer)
        if consumer is None:
            if not self.midstream:
                stray = CanonicalFrame(form.name, (FormEntry("without", "consumer"),))
                self.say(channel.part, SERVER, SERVER, stray, at)
            return
        self.late = self.late or consumer.cancelled
        place = self.say(consumer.part, DELIVERIES, SERVER, form, at)
        if content.delivery is not None and not content.delivery.no_ack:
            self._await(content.delivery, (consumer.part, OUTCOMES, place))

    def _await(self, delivery: ConsumerDelivery, place: tuple[TranscriptPart, str, int]) -> None:
        self._unsettled[delivery] = place
        if len(self._unsettled) > MAX_COMPARED_UNSETTLED:
            self._unsettled.popitem(last=False)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        form = _settlement(method)
        found = False
        for delivery in deliveries:
            place = self._unsettled.pop(delivery, None)
            if place is not None:
                found = True
                self.say_of(place[0], place[1], record.peer, place[2], form)
        if not found:
            self._named_nothing(record, method, form)

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        channel = self._on(record, self._conversation.channel_of(record))
        form = CanonicalFrame(_settlement(method).name, ())
        if channel is not None:
            for publish in publishes:
                self.say_of(channel.part, CONFIRMS, record.peer, publish.number - 1, form)
        if not publishes:
            self._named_nothing(record, method, form)

    def _named_nothing(self, record: FrameRecord, method: Method, form: CanonicalFrame) -> None:
        """An acknowledgement or a confirm names nothing that is known."""
        channel = self._on(record, self._conversation.channel_of(record))
        everything = isinstance(method, (BasicAck, BasicNack)) and method.multiple and not method.delivery_tag
        if channel is not None and not self.midstream and not everything:
            entries = (FormEntry("without", "delivery"), *form.entries)
            stray = CanonicalFrame(method.definition().name, entries)
            self.say(channel.part, record.peer, record.peer, stray)


def _settlement(method: Method) -> CanonicalFrame:
    """An ack, or a reject, of one delivery. nack is RabbitMQ's word for several rejects."""
    if isinstance(method, (BasicNack, BasicReject)):
        return CanonicalFrame("reject", (FormEntry("requeue", "true" if method.requeue else "false"),))
    return CanonicalFrame("ack", ())


def _broken(part: TranscriptPart, peer: str, code: int) -> None:
    """A peer closes something, maybe for an error."""
    if code != _SUCCESS and not part.broken_by:
        part.broken_by = peer


def _dropped(channel: _Channel) -> None:
    """The client ends a channel, alone or with its connection."""
    for consumer in channel.consumers.values():
        consumer.part.dropped_by = CLIENT
