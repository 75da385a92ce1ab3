"""The story of a connection of AMQP 0-9-1: what each peer says, by channel and consumer.

* The connection: headers and the methods of channel 0. Heartbeats are a matter of time.
* A channel: the client's methods and publishes in their order; the server's answers in theirs; what the
  server sends back; what it confirms of the first publish, the second and so on; what the client says of
  messages it got.
* A consumer: the deliveries to it, and what the client says of each, by itself or with all before.

What a peer still says on something that the other one has closed is late.
"""

from collections import OrderedDict
from collections.abc import Collection

from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, Entry
from amqpscope.diff.forms091 import CanonicalFrames091
from amqpscope.diff.transcript import (
    CONFIRMS,
    DELIVERIES,
    GETS,
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
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelOpen,
    ChannelOpenOk,
    ConfirmSelect,
    ConnectionClose,
    ConnectionOpen,
    ConnectionStart,
    ConnectionStartOk,
    QueueDeclare,
    QueueDeclareOk,
)
from dissectors.amqp091.tables import FieldTable

__all__ = ["Transcript091"]

_LABEL = 48

_OTHER = {CLIENT: SERVER, SERVER: CLIENT}

_WAITING_REQUESTS = 1000
_SUCCESS = 200


class _Consumer:
    """A consumer: its part. cancelled: by the client."""

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.cancelled = False


class _Channel:
    """A channel. unsettled: part, strand and place of each delivery, and where it ends in the stream, by tag.
    open: the method, by peer, whose content is to come, and its frame."""

    def __init__(self, part: TranscriptPart) -> None:
        self.part = part
        self.closed: set[str] = set()
        self.consumers: dict[str, _Consumer] = {}
        self.nameless: list[_Consumer] = []
        self.unsettled: OrderedDict[int, tuple[TranscriptPart, str, int, int]] = OrderedDict()
        self.gets: list[bool] = []
        self.got = 0
        self.declared: list[bool] = []
        self.confirms = False
        self.published = 0
        self.unconfirmed: OrderedDict[int, None] = OrderedDict()
        self.open: dict[str, tuple[Method, int]] = {}


class Transcript091(Transcript):
    """Takes the frames of one connection."""

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
        self._channels: dict[tuple[int, int], _Channel] = {}
        self._turns: dict[tuple[str, int], int] = {}
        self._closed: set[str] = set()

    def take(self, record: FrameRecord, links: LinkNames) -> None:
        """The next frame."""
        links.of(record)
        frame = record.frame
        peer = record.peer
        if frame.kind == "heartbeat":
            return
        body = frame.body
        self.late = _OTHER[peer] in self._closed
        number = int(frame.channel)
        if number <= 0:
            self._on_connection(peer, record)
            return
        channel = self._channel(peer, number, record)
        if channel is None:
            return
        self.late = self.late or _OTHER[peer] in channel.closed
        if frame.kind == "method":
            self._unfinished(channel, peer)
            if isinstance(body, Method):
                self._method(channel, peer, record, body)
            else:
                self.say(channel.part, peer, peer, self._forms.of(frame))
        message = Amqp091Message.of(record.message)
        if message is not None and peer in channel.open:
            method, at = channel.open.pop(peer)
            self._content(channel, peer, method, message, at, int(frame.offset) + int(frame.size))

    def finish(self) -> None:
        """No more comes."""
        for channel in self.part.parts:
            channel.keys = [frozenset(channel.marks)]
            for consumer in channel.parts:
                consumer.keys = [frozenset(consumer.marks)]
        self._channels.clear()

    def _channel(self, peer: str, number: int, record: FrameRecord) -> _Channel | None:
        """The channel that a peer speaks on: the first, second and so on that it has opened by a number."""
        turn = self._turns.get((peer, number), 0)
        body = record.frame.body
        if isinstance(body, (ChannelOpen, ChannelOpenOk)):
            turn += 1
            self._turns[peer, number] = turn
        turn = max(turn, 1)
        channel = self._channels.get((number, turn))
        if channel is None:
            if record.frame.kind != "method" or not self.may_have(self.part.parts):
                return None
            part = TranscriptPart("channel", str(len(self.part.parts) + 1), self.frames)
            self.part.parts.append(part)
            channel = self._channels[number, turn] = _Channel(part)
        return channel

    # The connection

    def _on_connection(self, peer: str, record: FrameRecord) -> None:
        body = record.frame.body
        if isinstance(body, ConnectionStart):
            self._introduced(peer, body.server_properties)
        elif isinstance(body, ConnectionStartOk):
            self._introduced(peer, body.client_properties)
            self.part.marks.add(f"by {body.mechanism}")
        elif isinstance(body, ConnectionOpen):
            self.part.marks.add(f"virtual host {body.virtual_host}")
        elif isinstance(body, ConnectionClose):
            _broken(self.part, peer, int(body.reply_code))
            if peer == CLIENT and peer not in self._closed:
                for channel in self._channels.values():
                    _dropped(channel)
            self._closed.add(peer)
        self.say(self.part, peer, peer, self._forms.of(record.frame))

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
                    mask_numbers(value) if reported == "container" else value, _LABEL
                )

    # Methods

    def _method(self, channel: _Channel, peer: str, record: FrameRecord, body: Method) -> None:
        definition = body.definition()
        if definition.content:
            channel.open[peer] = (body, self.frames)
            if isinstance(body, BasicPublish) and channel.confirms:
                channel.published += 1
                channel.unconfirmed[channel.published] = None
                if len(channel.unconfirmed) > MAX_COMPARED_UNSETTLED:
                    channel.unconfirmed.popitem(last=False)
            return
        if isinstance(body, (BasicAck, BasicNack, BasicReject)):
            self._settled(channel, peer, body, int(record.acknowledged))
            return
        if isinstance(body, BasicConsume):
            self._consume(channel, body)
        elif isinstance(body, BasicConsumeOk):
            if channel.nameless:
                channel.consumers[body.consumer_tag or ""] = channel.nameless.pop(0)
        elif isinstance(body, (BasicCancel, BasicCancelOk)):
            consumer = channel.consumers.get(body.consumer_tag or "")
            if consumer is not None and peer == CLIENT:
                consumer.cancelled = True
                consumer.part.dropped_by = CLIENT
        elif isinstance(body, BasicGet):
            channel.part.marks.add(f"gets from {self._names.of(body.queue or '')}")
            if len(channel.gets) < _WAITING_REQUESTS:
                channel.gets.append(body.no_ack)
        elif isinstance(body, BasicGetEmpty):
            if channel.gets:
                channel.gets.pop(0)
        elif isinstance(body, QueueDeclare):
            if not body.no_wait and len(channel.declared) < _WAITING_REQUESTS:
                channel.declared.append(not body.queue)
        elif isinstance(body, QueueDeclareOk):
            if channel.declared and channel.declared.pop(0):
                self._names.generated(body.queue or "")
        elif isinstance(body, ConfirmSelect):
            channel.confirms = True
        elif isinstance(body, ChannelClose):
            channel.closed.add(peer)
            _broken(channel.part, peer, int(body.reply_code))
            if peer == CLIENT:
                _dropped(channel)
        self.say(channel.part, peer, peer, self._forms.of(record.frame))

    def _consume(self, channel: _Channel, body: BasicConsume) -> None:
        if not self.may_have(channel.part.parts):
            return
        queue = self._names.of(body.queue or "")
        part = TranscriptPart("consumer", word(queue, _LABEL), self.frames)
        part.marks.add(queue)
        channel.part.parts.append(part)
        part.settled = body.no_ack
        consumer = _Consumer(part)
        self._uses(channel, f"consumes {queue}")
        if body.consumer_tag:
            channel.consumers[body.consumer_tag] = consumer
            if not body.no_wait:
                channel.nameless.append(consumer)
        elif len(channel.nameless) < _WAITING_REQUESTS:
            channel.nameless.append(consumer)

    def _uses(self, channel: _Channel, mark: str) -> None:
        for part in (channel.part, self.part):
            if len(part.marks) < _WAITING_REQUESTS:
                part.marks.add(mark)

    # Content

    def _content(
        self, channel: _Channel, peer: str, method: Method, message: Amqp091Message, at: int, end: int
    ) -> None:
        """A message has come to its end, in the stream at `end`, or is given up."""
        form = self._forms.method(method, method.definition().name, message)
        if isinstance(method, BasicDeliver):
            consumer = channel.consumers.get(method.consumer_tag or "")
            if consumer is None:
                if not self.midstream:
                    self.say(
                        channel.part,
                        peer,
                        peer,
                        CanonicalFrame(form.name, (Entry("without", "consumer"),)),
                        at,
                    )
                return
            self.late = self.late or consumer.cancelled
            place = self.say(consumer.part, DELIVERIES, peer, form, at)
            if not consumer.part.settled:
                self._await(channel, int(method.delivery_tag), (consumer.part, OUTCOMES, place, end))
        elif isinstance(method, BasicGetOk):
            self.say(channel.part, peer, peer, form, at)
            no_ack = channel.gets.pop(0) if channel.gets else False
            if not no_ack:
                self._await(channel, int(method.delivery_tag), (channel.part, GETS, channel.got, end))
                channel.got += 1
        elif isinstance(method, BasicReturn):
            self.say(channel.part, RETURNS, peer, form, at)
        else:
            if isinstance(method, BasicPublish):
                exchange, key = method.exchange or "", method.routing_key or ""
                self._uses(channel, f"publishes to {self._names.of(exchange)}/{self._names.of(key)}")
            self.say(channel.part, peer, peer, form, at)

    def _unfinished(self, channel: _Channel, peer: str) -> None:
        """A method comes where content is due."""
        left = channel.open.pop(peer, None)
        if left is not None:
            method, at = left
            form = CanonicalFrame(method.definition().name, (Entry("complete", "false"),))
            self.say(channel.part, peer, peer, form, at)

    def _await(self, channel: _Channel, tag: int, place: tuple[TranscriptPart, str, int, int]) -> None:
        channel.unsettled[tag] = place
        if len(channel.unsettled) > MAX_COMPARED_UNSETTLED:
            channel.unsettled.popitem(last=False)

    def _settled(
        self, channel: _Channel, peer: str, body: BasicAck | BasicNack | BasicReject, read: int
    ) -> None:
        """An ack, nack or reject, of one or of all up to it; or of all that its sender can have read."""
        tag = int(body.delivery_tag)
        multiple = not isinstance(body, BasicReject) and body.multiple
        entries = []
        if not isinstance(body, BasicAck) and peer == CLIENT:
            entries.append(Entry("requeue", "true" if body.requeue else "false"))
        # nack is RabbitMQ's word for several rejects.
        name = "ack" if isinstance(body, BasicAck) else "reject"
        form = CanonicalFrame(name, tuple(entries))
        if peer == SERVER:
            numbers = _named(channel.unconfirmed, tag, multiple)
            for number in numbers:
                del channel.unconfirmed[number]
                self.say_of(channel.part, CONFIRMS, peer, number - 1, form)
        else:
            numbers = _named(channel.unsettled, tag, multiple)
            if tag == 0 and read >= 0:
                numbers = [number for number in numbers if channel.unsettled[number][3] <= read]
            for number in numbers:
                part, strand, place, _ = channel.unsettled.pop(number)
                self.say_of(part, strand, peer, place, form)
        if not numbers and not self.midstream and not (multiple and tag == 0):
            stray = CanonicalFrame(body.definition().name, (Entry("without", "delivery"), *entries))
            self.say(channel.part, peer, peer, stray)


def _broken(part: TranscriptPart, peer: str, code: int) -> None:
    """A peer closes something, maybe for an error."""
    if code != _SUCCESS and not part.broken_by:
        part.broken_by = peer


def _dropped(channel: _Channel) -> None:
    """The client ends a channel, alone or with its connection."""
    for consumer in channel.consumers.values():
        consumer.part.dropped_by = CLIENT


def _named(waiting: Collection[int], tag: int, multiple: bool) -> list[int]:
    """Which of the numbers that wait, in ascending order, a tag means."""
    if not multiple:
        return [tag] if tag in waiting else []
    if tag == 0:
        return list(waiting)
    found = []
    for number in waiting:
        if number > tag:
            break
        found.append(number)
    return found
