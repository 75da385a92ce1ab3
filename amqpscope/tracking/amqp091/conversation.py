"""One AMQP 0-9-1 connection in the order of the capture: what each frame belongs to.

Theory of operation. One `ConnectionView` takes every frame in the order of the analysis, with its sender. The
rules use the same machine to follow what each endpoint knows. The conversation asks this machine what a frame
refers to: which deliveries an acknowledgement covers, which messages a confirm covers, which request an
answer belongs to. One place decides this, and the rules and all listeners agree with it.
"""

from typing import Final

from amqpscope.limits import MAX_CONSUMERS
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.connection_view import CONNECTION_CLASS, ConnectionView
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.endpoint import as_read, completed_publish, out_of_order, unreadable
from amqpscope.tracking.amqp091.events import Listener091, SentContent, Taker091
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.states import CLOSED
from amqpscope.tracking.events import Conversation, Rememberable, takes
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicRecover,
    BasicRecoverAsync,
    BasicReject,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConfirmSelect,
    QueueDeleteOk,
)
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["Conversation091"]

_SETTLING: Final = (BasicAck, BasicNack, BasicReject)
_OF_CONSUMERS: Final = (BasicConsume, BasicConsumeOk, BasicCancel, BasicCancelOk)


class Conversation091(Conversation):
    """Follows one connection."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[Listener091] = []
        # Those of them that take these events.
        self._started: Taker091 | None = None
        self._continued: Taker091 | None = None
        self._ended: Taker091 | None = None
        self._acknowledged: Taker091 | None = None
        self._confirmed: Taker091 | None = None
        self._methods: Taker091 | None = None
        # What is open on the connection.
        self.view: ConnectionView = ConnectionView(False)
        # The packet of the last octets that were not captured, or that cannot be read; 0 for none.
        self.lost_packet: i64 = 0
        # Consumers that were cancelled, or whose queue was deleted: more may come about them.
        self._former: dict[tuple[Channel, str], Consumer] = {}
        # The newest content that is being sent in each direction, None for none. The others, of channels that
        # send at the same time, by `_key`.
        self._first: SentContent | None = None
        self._second: SentContent | None = None
        self._others: dict[int, SentContent] = {}
        # How many basic.publish there were.
        self.published: i64 = 0
        # Octets of body that the client has yet to send of its newest content, as the content header says.
        self.due: i64 = 0
        # Only whole messages are followed, and the object for the next content, None if there is none yet.
        self._whole: bool = False
        self._spare: SentContent | None = None

    def follow_whole_messages(self, whole: bool) -> None:
        """Whether to follow messages only, not their frames.

        Then nothing of a content is counted, its body frames have no events of their own, and what the client
        publishes has no events at all: how many messages began, the conversation and its channels know. No
        subscriber may keep a content that is over, a delivery that is acknowledged, or a publish that is
        confirmed: their objects stand for other ones.
        """
        self._whole = whole

    def subscribe(self, listener: Listener091) -> None:
        """Have somebody take the events, behind those who do so already."""
        self.listeners.append(listener)
        if takes(listener, Listener091, "content_started"):
            self._started = _with(self._started, listener)
        if takes(listener, Listener091, "content_continued"):
            self._continued = _with(self._continued, listener)
        if takes(listener, Listener091, "content_ended"):
            self._ended = _with(self._ended, listener)
        if takes(listener, Listener091, "acknowledged"):
            self._acknowledged = _with(self._acknowledged, listener)
        if takes(listener, Listener091, "confirmed"):
            self._confirmed = _with(self._confirmed, listener)
        if takes(listener, Listener091, "channel_method"):
            self._methods = _with(self._methods, listener)

    def dismiss(self) -> None:
        """Nobody takes the events any more."""
        self.listeners = []
        self._started = None
        self._continued = None
        self._ended = None
        self._acknowledged = None
        self._confirmed = None
        self._methods = None

    # Questions

    def channel_of(self, record: FrameRecord) -> Channel | None:
        """The channel of a frame, in its present life; None if unknown."""
        return self.view.channel(record.frame.channel)

    def consumer_of(self, channel: Channel, tag: str | None) -> Consumer | None:
        """The consumer that has a tag on a channel, or that had it until it was cancelled."""
        name = readable(tag)
        return channel.consumers.live.get(name) or self._former.get((channel, name))

    def sending(self, record: FrameRecord) -> SentContent | None:
        """The content that the sender of a frame is sending on its channel."""
        newest = self._first if record.direction == 0 else self._second
        number = record.frame.channel
        if newest is not None and newest.on == number:
            return newest
        return self._others.get(_key(record.direction, number)) if self._others else None

    def outstanding(self) -> list[Rememberable]:
        waiting: list[Rememberable] = []
        for channel in self.view.table.channels.values():
            waiting.extend(channel.deliveries.unacknowledged.entries())
        return waiting

    # Frames

    def take(self, record: FrameRecord) -> bool:
        frame = record.frame
        body = frame.body
        kind = frame.kind
        of_message = False
        if kind == "method":
            if self._first is not None or self._second is not None or self._others:
                content = self.sending(record)
                if content is not None:
                    self._end(record, content)
            if (isinstance(body, BasicDeliver) or isinstance(body, BasicPublish)) and not frame.problems:  # noqa: SIM101  compiled: quicker
                self._message(record, body)
                return False
            if isinstance(body, Method) and not isinstance(body, UnknownMethod):
                self._method(record, as_read(frame, body) if frame.problems else body)
                of_message = isinstance(body, BasicAck)
            else:
                self._other(record)
        elif kind == "content-header" or kind == "body":
            of_message = True
            if self._whole:
                self._content_of_whole(record)
            else:
                self._content(record)
        elif isinstance(body, ProtocolHeader):
            self.view.header(record.direction == record.connection.client, body)
            for listener in self.listeners:
                listener.header(record, body)
        else:
            if kind == "skipped":
                self._lost(record)
            self._other(record)
        if frame.problems:
            if unreadable(frame):
                self._lost(record)
            elif out_of_order(frame):
                self.view.disorder(frame.channel)
        return not of_message

    def _lost(self, record: FrameRecord) -> None:
        """Octets were not captured or cannot be read: their meaning is unknown."""
        self.lost_packet = record.packet
        self.view.lost()

    def _message(self, record: FrameRecord, method: Method) -> None:
        """basic.deliver or basic.publish, which come with nearly every message."""
        frame = record.frame
        number = frame.channel
        channel = self.view.channel(number) if number > 0 else None
        if channel is None or not self.listeners:
            self._other_method(record, method, channel)
            return
        by_client = record.direction == record.connection.client
        channel.apply(by_client, method, frame.offset + frame.size, record.packet, record.last_time)
        self._begin(record, method, channel, by_client)
        if self._methods is not None:
            self._said(record, method, channel)

    def _method(self, record: FrameRecord, method: Method) -> None:
        number = record.frame.channel
        channel = self.view.channel(number) if number > 0 else None
        if channel is not None and self.listeners and isinstance(method, BasicAck):
            self._settle(record, channel, method, method.delivery_tag, method.multiple)
            if self._methods is not None:
                self._said(record, method, channel)
        else:
            self._other_method(record, method, channel)

    def _said(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        """A method on a channel, which is applied."""
        taker = self._methods
        while taker is not None:
            taker.listener.channel_method(record, method, channel)
            taker = taker.next

    def _other_method(self, record: FrameRecord, method: Method, channel: Channel | None) -> None:
        """A method on a channel, None if that is not known."""
        view = self.view
        frame = record.frame
        by_client = record.direction == record.connection.client
        end = frame.offset + frame.size
        definition = method.definition()
        if frame.channel <= 0 or definition.class_id == CONNECTION_CLASS:
            view.method(by_client, frame.channel, method, end, record.packet, record.last_time)
            for listener in self.listeners:
                listener.connection_method(record, method)
            return
        if channel is None and not isinstance(method, ChannelOpen):
            channel = view.unknown(frame.channel)
        if definition.content:
            request = None
            if self.listeners and channel is not None and isinstance(method, BasicGetOk):
                request = channel.requests.answers(by_client, definition.name)
            view.method(by_client, frame.channel, method, end, record.packet, record.last_time)
            if request is not None:
                for listener in self.listeners:
                    listener.answered(record, method, request)
            self._begin(record, method, view.channel(frame.channel), by_client)
        elif isinstance(method, ChannelOpen):
            if channel is not None and by_client and not channel.whole and channel.state != CLOSED:
                # How it ended was missed.
                channel.state = CLOSED
                for listener in self.listeners:
                    listener.channel_ended(record, channel)
            view.method(by_client, frame.channel, method, end, record.packet, record.last_time)
            opened = view.channel(frame.channel)
            if opened is not None and opened is not channel:
                self.sessions += 1
                for listener in self.listeners:
                    listener.channel_opened(record, method, opened)
                self._asked(record, method, opened)
        elif not self.listeners or channel is None:
            view.method(by_client, frame.channel, method, end, record.packet, record.last_time)
        elif isinstance(method, _SETTLING):
            multiple = not isinstance(method, BasicReject) and method.multiple
            self._settle(record, channel, method, method.delivery_tag, multiple)
        elif isinstance(method, (BasicRecover, BasicRecoverAsync)):
            deliveries = channel.deliveries.covered(0, True)
            view.method(by_client, frame.channel, method, end, record.packet, record.last_time)
            self._asked(record, method, channel)
            if by_client:
                for listener in self.listeners:
                    listener.recovered(record, method, deliveries)
        else:
            self._request(record, channel, method)
        now = view.channel(frame.channel)
        if now is None:
            for listener in self.listeners:
                listener.stray(record)
            return
        if self._methods is not None:
            self._said(record, method, now)

    def _settle(
        self, record: FrameRecord, channel: Channel, method: Method, tag: int, multiple: bool
    ) -> None:
        """An acknowledgement of the client, or a confirm of the server."""
        frame = record.frame
        by_client = record.direction == record.connection.client
        end = frame.offset + frame.size
        if by_client:
            deliveries: list[ConsumerDelivery]
            if not multiple:
                settled = channel.settle(tag, end, record.packet)
                deliveries = [] if settled is None else [settled]
            elif tag != 0 or record.acknowledged < 0:
                deliveries = channel.settle_to(tag, end, record.packet)
            else:
                # It means all that the client can have read.
                known: list[ConsumerDelivery] = channel.deliveries.covered(0, True)
                unread = [one for one in known if one.end > record.acknowledged]
                deliveries = [one for one in known if one.end <= record.acknowledged]
                channel.apply(True, method, end, record.packet, record.last_time)
                for one in unread:
                    channel.deliveries.keep(one)
            taker = self._acknowledged
            while taker is not None:
                taker.listener.acknowledged(record, method, deliveries)
                taker = taker.next
            if self._whole and self._first is None and self._second is None and not self._others:
                # No content under way is of one of these.
                channel.reuse(deliveries)
            return
        publishes: list[Publish]
        if isinstance(method, BasicReject):
            publishes = channel.publishes.covered(tag, False)
        else:
            publishes = channel.publishes.confirm(tag, multiple, isinstance(method, BasicAck))
        if self._confirmed is not None:
            sure_to = channel.publishes.sure_to
            publishes = [publish for publish in publishes if publish.number <= sure_to]
        taker = self._confirmed
        while taker is not None:
            taker.listener.confirmed(record, method, publishes)
            taker = taker.next
        if self._whole and not isinstance(method, BasicReject):
            channel.publishes.reuse(publishes)

    def _other(self, record: FrameRecord) -> None:
        for listener in self.listeners:
            listener.other(record)

    def _request(self, record: FrameRecord, channel: Channel, method: Method) -> None:
        """A method that may be a request, an answer, or about a consumer or the channel itself."""
        frame = record.frame
        by_client = record.direction == record.connection.client
        end = frame.offset + frame.size
        request = channel.requests.answers(by_client, method.definition().name)
        consumer = None
        if isinstance(method, (BasicCancel, BasicCancelOk)):
            consumer = self.consumer_of(channel, method.consumer_tag)
        elif isinstance(method, QueueDeleteOk) and request is not None:
            for one in channel.consumers.of(request.subject).values():
                self._leave(channel, one)
        if isinstance(method, ConfirmSelect) and not channel.publishes.confirming:
            self.view.sure_again(channel)
        self.view.method(by_client, frame.channel, method, end, record.packet, record.last_time)
        if request is not None:
            for listener in self.listeners:
                listener.answered(record, method, request)
        self._asked(record, method, channel)
        for listener in self.listeners:
            if isinstance(method, ChannelClose):
                listener.channel_closed(record, method, channel)
            elif isinstance(method, ChannelCloseOk) and channel.state == CLOSED:
                listener.channel_ended(record, channel)
        if isinstance(method, _OF_CONSUMERS):
            self._consumer(record, channel, method, consumer)

    def _asked(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        """A method, already applied, that may ask for an answer."""
        frame = record.frame
        by_client = record.direction == record.connection.client
        asked = channel.requests.asked(by_client, method.definition().name, frame.offset + frame.size)
        if asked is not None:
            for listener in self.listeners:
                listener.requested(record, method, asked)

    def _consumer(
        self, record: FrameRecord, channel: Channel, method: Method, cancelled: Consumer | None
    ) -> None:
        """A method about a consumer, which is applied."""
        if isinstance(method, BasicConsume):
            started = channel.consumers.begun_at(
                readable(method.consumer_tag), record.frame.offset + record.frame.size
            )
            if started is not None:
                for listener in self.listeners:
                    listener.consumer_started(record, method, started)
        elif isinstance(method, BasicConsumeOk):
            consumer = channel.consumers.live.get(readable(method.consumer_tag))
            if consumer is not None:
                for listener in self.listeners:
                    listener.consumer_confirmed(record, method, consumer)
        elif isinstance(method, (BasicCancel, BasicCancelOk)) and cancelled is not None:
            self._leave(channel, cancelled)
            for listener in self.listeners:
                listener.consumer_cancelled(record, method, cancelled)

    def _leave(self, channel: Channel, consumer: Consumer) -> None:
        """A consumer has ended, or will end soon."""
        if len(self._former) >= MAX_CONSUMERS:
            del self._former[next(iter(self._former))]
        self._former[channel, consumer.tag] = consumer

    # Content

    def _begin(self, record: FrameRecord, method: Method, channel: Channel | None, by_client: bool) -> None:
        """A method with content, which is applied."""
        if isinstance(method, BasicPublish):
            self.published += 1
            if channel is not None:
                channel.publishes.begun += 1
            if self._whole and by_client:
                return
        elif isinstance(method, BasicDeliver) and channel is not None:
            channel.deliveries.begun += 1
        content = self._spare
        if content is None:
            content = SentContent(method, record.packet, record.frame.channel, channel, by_client)
        else:
            self._spare = None
            content.begin_again(method, record.packet, record.frame.channel, channel, by_client)
        if self._whole and by_client:
            taker = self._started
            while taker is not None:
                taker.listener.content_started(record, method, content)
                taker = taker.next
            self._spare = content
            return
        direction = record.direction
        before = self._first if direction == 0 else self._second
        if before is not None:
            self._others[_key(direction, before.on)] = before
        if direction == 0:
            self._first = content
        else:
            self._second = content
        # A client that sends these breaks a rule: what is due is the server's.
        if channel is not None and not by_client:
            if isinstance(method, BasicDeliver):
                content.delivery = channel.deliveries.due
                consumer = channel.consumers.addressee
                if consumer is None and self._former:
                    consumer = self._former.get((channel, readable(method.consumer_tag)))
                content.consumer = consumer
            elif isinstance(method, BasicGetOk):
                content.delivery = channel.deliveries.due
        taker = self._started
        while taker is not None:
            taker.listener.content_started(record, method, content)
            taker = taker.next

    def _content_of_whole(self, record: FrameRecord) -> None:
        """A content header or a body frame, of which only matters what it completes."""
        frame = record.frame
        body = frame.body
        if record.direction != record.connection.client:
            if record.message is not None:
                content = None if isinstance(body, ContentHeader) else self.sending(record)
                if content is None:
                    # There was no body, or nothing began the content.
                    self._content(record)
                else:
                    self._end(record, content)
            return
        if isinstance(body, ContentHeader):
            self.due = body.size
        else:
            self.due -= frame.payload_size
        publish = None if record.message is None else completed_publish(record, self.view)
        if publish is not None:
            self.view.publish(frame.channel, publish)

    def _content(self, record: FrameRecord) -> None:
        """A content header or a body frame."""
        frame = record.frame
        content = self.sending(record)
        body = frame.body
        if isinstance(body, ContentHeader):
            if record.direction != record.connection.client:
                channel = self.view.channel(frame.channel)
                if channel is not None:
                    channel.content(body)
        elif content is not None and frame.kind == "body":
            content.frames += 1
            content.octets += frame.payload_size
        if content is None:
            for listener in self.listeners:
                listener.stray(record)
            return
        if content.by_client:
            if isinstance(body, ContentHeader):
                self.due = body.size
            else:
                self.due -= frame.payload_size
        taker = self._continued
        while taker is not None:
            taker.listener.content_continued(record, content)
            taker = taker.next
        if record.message is not None:
            self._end(record, content)

    def _end(self, record: FrameRecord, content: SentContent) -> None:
        """The content in progress is over: it is complete, or another frame stands where more of it
        was due.
        """
        if self._first is content:
            self._first = None
        elif self._second is content:
            self._second = None
        else:
            del self._others[_key(record.direction, content.on)]
        message = Amqp091Message.of(record.message)
        content.message = message
        publish = None
        if message is not None and isinstance(message.method, BasicPublish):
            publish = completed_publish(record, self.view)
        if publish is not None:
            content.publish = publish
            channel = content.channel
            self.view.publish(content.on, publish)
            if channel is not None and publish.number <= channel.publishes.sure_to:
                content.number = publish.number
        taker = self._ended
        while taker is not None:
            taker.listener.content_ended(record, content)
            taker = taker.next
        if self._whole:
            content.message = None
            self._spare = content


def _with(takers: Taker091 | None, listener: Listener091) -> Taker091:
    """The listeners that take an event, and another one behind them."""
    if takers is None:
        return Taker091(listener)
    takers.append(listener)
    return takers


def _key(direction: i64, channel: i64) -> int:
    """The direction and the channel of a content, in a dictionary."""
    return int(2 * channel + direction)
