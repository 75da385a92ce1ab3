"""One life of a channel, from channel.open to the channel.close-ok that ends it, as one endpoint knows it.

Theory of operation. The methods of both peers change the same state: the client's basic.consume starts a
consumer, the server's basic.deliver uses a delivery-tag, the client's basic.ack settles it. One machine
therefore serves both endpoints; the endpoints differ only in when an input reaches them (see `Endpoint091`).
The machine knows who sent each input, and never judges. After a close, a peer discards what the other peer
still sends, and the machine does the same.

Requests wait for their answers in the order in which they came (`requests` of the client, `demands` of the
server). A request with no-wait gets no answer.

Sources: the classes channel, queue, basic, tx (amqp0-9-1.xml), confirm (RabbitMQ).
"""

from typing import Any, Final

from amqpscope.tracking.amqp091.channel_requests import ChannelRequests
from amqpscope.tracking.amqp091.closing import CloseReason
from amqpscope.tracking.amqp091.consumers import REPLIES, UNANSWERED, Consumer, Consumers, Roster
from amqpscope.tracking.amqp091.deliveries import ChannelDeliveries, ConsumerDelivery
from amqpscope.tracking.amqp091.names import UNREADABLE, readable
from amqpscope.tracking.amqp091.publishes import NO_PUBLISH, LastPublish, Publish, Publishes
from amqpscope.tracking.amqp091.requests import NO_ACK, MethodRequest
from amqpscope.tracking.amqp091.states import (
    CHANNEL,
    CLIENT_CLOSE,
    CLIENT_CLOSE_OK,
    CLIENT_OPEN,
    CLOSED,
    OPEN,
    OPENING,
    SERVER_CLOSE,
    SERVER_CLOSE_OK,
    SERVER_OPEN_OK,
)
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import (
    AccessRequestOk,
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    BasicRecover,
    BasicRecoverAsync,
    BasicRecoverOk,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ChannelOpenOk,
    ConfirmSelect,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    TxCommit,
    TxRollback,
    TxSelect,
)
from dissectors.wire import i64

__all__ = ["Channel"]

_OF_CONSUMERS: Final = (BasicConsume, BasicConsumeOk, BasicCancel, BasicCancelOk, QueueDelete)
"""Methods whose names tell which consumers there are."""


class Channel:
    """A channel in one of its lives, by its number.

    state: as in `states.CHANNEL`. whole: nothing of this life is missing. open_end, open_packet: of its
    channel.open. closed_by_client, closed_by_server: the closes, None if not sent.

    queue: the queue that was declared last, "" if the server has not named it yet, None if there was none (or
    it is unknown); declared_end: of its declaration. transacted: tx.select was sent.

    client_stopped, server_stopped: this peer has confirmed that it sends no content for now.
    """

    def __init__(self, number: i64, roster: Roster, counting: bool = True) -> None:
        self.number: i64 = number
        # As in `states.CHANNEL`.
        self.state: str = CLOSED
        # Nothing of this life is missing.
        self.whole: bool = True
        # The offset behind its channel.open in the client's stream, and the packet of that.
        self.open_end: i64 = -1
        self.open_packet: i64 = 0
        # The closes, None as long as a peer has said none.
        self.closed_by_client: CloseReason | None = None
        self.closed_by_server: CloseReason | None = None
        self.requests: ChannelRequests = ChannelRequests()
        # The queue declared last: "" if the server has yet to name it, None if none was (or none is known).
        self.queue: str | None = None
        # The offset behind its declaration.
        self.declared_end: i64 = -1
        self.deliveries: ChannelDeliveries = ChannelDeliveries(counting)
        self.consumers: Consumers = Consumers(number, self.deliveries, roster)
        self.publishes: Publishes = Publishes()
        # The last basic.publish of the client's.
        self.last_publish: LastPublish = NO_PUBLISH
        # tx.select was said.
        self.transacted: bool = False
        # The server has given out an access ticket, as servers did before 0-9-1.
        self.ticketed: bool = False
        # This peer has confirmed that it sends no content for now.
        self.client_stopped: bool = False
        self.server_stopped: bool = False
        # The offset behind the last basic.recover-async that the server has not shown to have read, or -1.
        self.recovering: i64 = -1
        # The consumer whose first delivery the one is whose content header is due.
        self.beginning: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client has opened the channel and neither peer has closed it."""
        return self.state == OPEN or self.state == OPENING

    def lacks_queue(self) -> bool:
        """Whether an empty queue name has no meaning: no queue was declared, and the server still has to name
        none.
        """
        if not self.whole or self.queue is not None:
            return False
        requests = self.requests
        if "queue.declare-ok" in requests.no_wait.client_answers:
            return False
        return requests.awaited(False, "queue.declare-ok") < 0

    def named(self, queue: str | None) -> str:
        """The queue that a method names, itself or by the last declaration; "" if unknown."""
        return readable(queue) or self.queue or ""

    # The methods on the channel

    def apply(self, by_client: bool, method: Method, end: i64, packet: i64, time: i64) -> None:
        """A method of the client or of the server; `end`: the offset after its frame."""
        if isinstance(method, BasicDeliver):
            if not by_client:
                self._deliver(method, end, packet, time)
            return
        if isinstance(method, BasicAck):
            if by_client:
                if method.multiple:
                    self.settle_to(method.delivery_tag, end, packet)
                else:
                    self.settle(method.delivery_tag, end, packet)
            else:
                self.publishes.confirm(method.delivery_tag, method.multiple, True)
            return
        if isinstance(method, BasicPublish):
            # It counts when its content is complete: `publish`.
            if by_client and self.closed_by_server is None:
                if self.last_publish is NO_PUBLISH:
                    self.last_publish = LastPublish()
                exchange = readable(method.exchange)
                self.last_publish.begin(exchange, end, packet, time)
                if self.deliveries.counting and exchange and exchange != UNREADABLE:
                    # Only the server refuses a publish.
                    self.publishes.begin(exchange, end, packet, time)
            return
        if isinstance(method, BasicNack):
            if by_client:
                if method.multiple:
                    self.settle_to(method.delivery_tag, end, packet)
                else:
                    self.settle(method.delivery_tag, end, packet)
            else:
                self.publishes.confirm(method.delivery_tag, method.multiple, False)
            return
        if isinstance(method, BasicReject):
            if by_client:
                self.settle(method.delivery_tag, end, packet)
            return
        if isinstance(method, BasicReturn):
            if not by_client:
                exchange, code = readable(method.exchange), int(method.reply_code)
                self.publishes.due_return = (exchange, readable(method.routing_key), code)
                self.deliveries.due = None
            return
        if isinstance(method, ChannelClose):
            self._close(by_client, method, end, packet, time)
            return
        if isinstance(method, ChannelCloseOk):
            self.state = CHANNEL.after(self.state, CLIENT_CLOSE_OK if by_client else SERVER_CLOSE_OK)
            return
        if isinstance(method, ChannelOpenOk):
            if not by_client:
                self.state = CHANNEL.after(self.state, SERVER_OPEN_OK)
        answered = self._answer(by_client, method.definition().name)
        if self._discards(by_client):
            # Its sender may not have read the close: the method counts as sent, and changes nothing.
            self.requests.discard(method)
            return
        if method.odd is not None and isinstance(method, _OF_CONSUMERS):
            # Which consumers there are is not known until the channel is opened again.
            self.lost()
        if by_client:
            self._client_says(method, end, packet, time)
        else:
            self._server_says(method, end, packet, time, answered)

    def settle(self, tag: int, end: i64, packet: i64) -> ConsumerDelivery | None:
        """A basic.ack, basic.nack or basic.reject of the client without `multiple`, instead of `apply`.
        Returns the delivery that it names, None if there is none.
        """
        return self.deliveries.settle(tag, self.transacted, end, packet)

    def settle_to(self, tag: int, end: i64, packet: i64) -> list[ConsumerDelivery]:
        """A basic.ack or basic.nack of the client with `multiple`, instead of `apply`. Returns the deliveries
        that it names.
        """
        return self.deliveries.settle_to(tag, self.transacted, end, packet)

    def reuse(self, deliveries: list[ConsumerDelivery]) -> None:
        """Nobody keeps these settled deliveries: have their objects stand for other ones."""
        if not self.transacted:
            self.deliveries.reuse(deliveries)

    def _discards(self, by_client: bool) -> bool:
        """Whether the other peer has closed the channel, and therefore discards the methods of this peer."""
        return (self.closed_by_server if by_client else self.closed_by_client) is not None

    def _answer(self, by_client: bool, name: str) -> MethodRequest | None:
        """Which request this method answers, if any; the request no longer waits."""
        request = self.requests.answer(by_client, name)
        if request is not None and not by_client:
            self.publishes.took(request.end)
            if self.recovering < request.end:
                self.recovering = -1
        return request

    def _ask(self, by_client: bool, method: Method, end: i64, packet: i64, time: i64) -> None:
        """If the method asks for an answer, the answer is awaited from now on."""
        if not self.requests.ask(by_client, method, self.queue or "", end, packet, time):
            self.whole = False

    # By the client

    def open(self, method: ChannelOpen, end: i64, packet: i64, time: i64) -> None:
        """The client opens it."""
        self.state = CHANNEL.after(self.state, CLIENT_OPEN)
        self.open_end = end
        self.open_packet = packet
        self._ask(True, method, end, packet, time)

    def publish(self, publish: Publish) -> None:
        """The client has sent the last frame of a message."""
        last = self.last_publish
        if last.incomplete:
            last.incomplete = False
        if self.closed_by_server is None:
            self.publishes.add(publish)

    def _client_says(self, method: Method, end: i64, packet: i64, time: i64) -> None:
        if isinstance(method, BasicConsume):
            self._consume(method, end, packet)
        elif isinstance(method, BasicCancel):
            if method.no_wait:
                self.consumers.cancel(readable(method.consumer_tag), UNANSWERED)
        elif isinstance(method, BasicCancelOk):
            self.consumers.cancel(readable(method.consumer_tag), "server")
        elif isinstance(method, BasicQos):
            self.consumers.qos(method, end, packet)
        elif isinstance(method, QueueDeclare):
            self.queue = readable(method.queue)
            self.declared_end = end
        elif isinstance(method, ConfirmSelect):
            self.publishes.select()
        elif isinstance(method, TxSelect):
            self.transacted = True
        elif isinstance(method, TxCommit):
            self.deliveries.commit()
        elif isinstance(method, TxRollback):
            self.deliveries.roll_back()
        elif isinstance(method, BasicRecover):
            self.deliveries.recover()
        elif isinstance(method, BasicRecoverAsync):
            self.deliveries.recover()
            self.recovering = end
        elif isinstance(method, ChannelFlowOk):
            self.client_stopped = not method.active
        self._ask(True, method, end, packet, time)

    def _consume(self, method: BasicConsume, end: i64, packet: i64) -> None:
        queue = self.named(method.queue)
        consumer = Consumer(
            readable(method.consumer_tag), queue, method.no_ack, method.exclusive, end, packet
        )
        consumer.waited = not method.no_wait
        self.consumers.begin(consumer)
        self._forgot()

    def _forgot(self) -> None:
        """There were too many consumers, so one had to be forgotten."""
        if not self.consumers.whole:
            self.whole = False

    # By the server

    def _server_says(
        self, method: Method, end: i64, packet: i64, time: i64, answered: MethodRequest | None
    ) -> None:
        if isinstance(method, BasicConsumeOk):
            if answered is not None:
                tag = readable(method.consumer_tag)
                self.consumers.confirm(answered.subject, tag)
                self._forgot()
                if answered.subject and answered.subject != tag:
                    # It may answer another basic.consume.
                    self.lost()
        elif isinstance(method, BasicCancelOk):
            if answered is not None:
                self.consumers.cancel_ok(answered.subject, answered.end)
        elif isinstance(method, BasicCancel):
            if method.no_wait:
                self.consumers.cancel(readable(method.consumer_tag), "server")
            self._ask(False, method, end, packet, time)
        elif isinstance(method, BasicGetOk):
            delivery = ConsumerDelivery(method.delivery_tag, None, end, packet, time)
            delivery.no_ack = answered is not None and answered.subject == NO_ACK
            self._add(delivery)
        elif isinstance(method, QueueDeclareOk):
            if answered is None or answered.end == self.declared_end:
                self.queue = readable(method.queue)
        elif isinstance(method, QueueDeleteOk):
            if answered is not None and answered.subject:
                self.consumers.queue_gone(answered.subject, answered.end)
        elif isinstance(method, BasicRecoverOk):
            if len(self.deliveries.unacknowledged) > 0:
                # They came since it was asked for: whether before it was done, and went back, is not known.
                self.deliveries.whole = False
        elif isinstance(method, BasicQosOk):
            if answered is not None:
                self.consumers.windows.settle(answered.end)
        elif isinstance(method, AccessRequestOk):
            self.ticketed = True
        elif isinstance(method, ChannelFlow):
            self._ask(False, method, end, packet, time)
        elif isinstance(method, ChannelFlowOk):
            self.server_stopped = not method.active

    def _deliver(self, method: BasicDeliver, end: i64, packet: i64, time: i64) -> None:
        tag = readable(method.consumer_tag)
        self.deliveries.due = None
        consumer = self.consumers.addressed(tag, self.whole)
        self._forgot()
        if consumer is not None:
            tag = consumer.tag  # one object for all its deliveries
        delivery = self.deliveries.begin(method.delivery_tag, tag, end, packet, time)
        delivery.no_ack = consumer is not None and consumer.no_ack
        if consumer is None:
            # Whether it wants to be acknowledged is not known.
            self.deliveries.whole = False
            if self.consumers.nameless:
                # It may have this tag.
                self.lost()
        elif not consumer.begun:
            consumer.begun = True
            # If its basic.consume-ok is late, that is one fault.
            consumer.ready = True
            self.beginning = tag
        if delivery.no_ack and consumer is not None and consumer.queue == REPLIES:
            return
        self._add(delivery)

    def _add(self, delivery: ConsumerDelivery) -> None:
        deliveries = self.deliveries
        deliveries.due = delivery if delivery.tag > 0 else None
        deliveries.add(delivery)
        if self.recovering >= 0:
            # Whether basic.recover-async, which nothing answers, came before it or sent it back is not known.
            deliveries.whole = False

    def content(self, header: ContentHeader) -> None:
        """The server's content header: how large the delivery is that has just begun."""
        deliveries = self.deliveries
        delivering = deliveries.due
        if delivering is not None:
            deliveries.due = None
            deliveries.weigh(delivering.tag, header.size)
            if self.beginning is not None:
                consumer = self.consumers.live.get(self.beginning)
                if consumer is not None:
                    consumer.streaming = b"x-stream-offset" in header.octets
                self.beginning = None
        else:
            self.publishes.returned(header.size)

    # By both

    def _close(self, by_client: bool, method: ChannelClose, end: i64, packet: i64, time: i64) -> None:
        text = method.reply_text or ""
        closing = CloseReason(
            method.reply_code, text[:256], method.class_id, method.method_id, end, packet, time
        )
        if by_client:
            self.state = CHANNEL.after(self.state, CLIENT_CLOSE)
            if self.closed_by_client is None:
                self.closed_by_client = closing
        else:
            self.state = CHANNEL.after(self.state, SERVER_CLOSE)
            if self.closed_by_server is None:
                self.closed_by_server = closing

    def lost(self) -> None:
        """Something of this life is missing."""
        self.whole = False
        self.deliveries.whole = False
        self.publishes.lost()

    def empty(self) -> None:
        """The channel is closed: its consumers and deliveries are gone."""
        discarded = self.requests.discarded
        self.requests = ChannelRequests()
        self.requests.discarded = discarded
        self.deliveries = ChannelDeliveries(self.deliveries.counting)
        self.consumers.empty(self.deliveries)
        self.publishes = Publishes()

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        closes = (self.closed_by_client, self.closed_by_server)
        return (
            (int(self.number), self.state, self.whole, int(self.open_end), int(self.open_packet)),
            tuple(None if one is None else one.dump() for one in closes),
            self.requests.dump(),
            (self.queue, int(self.declared_end)),
            (self.transacted, self.ticketed, self.client_stopped, self.server_stopped),
            (int(self.recovering), self.beginning),
            self.last_publish.dump(),
            self.deliveries.dump(),
            self.consumers.dump(),
            self.publishes.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...], roster: Roster) -> "Channel":
        """The object of what `dump` returned."""
        about, closes, requests, declared, flags, (recovering, beginning) = state[:6]
        publish, deliveries, consumers, publishes = state[6:]
        channel = Channel(about[0], roster, deliveries[0])
        _, channel.state, channel.whole, channel.open_end, channel.open_packet = about
        first, second = closes
        channel.closed_by_client = None if first is None else CloseReason.load(first)
        channel.closed_by_server = None if second is None else CloseReason.load(second)
        channel.requests = ChannelRequests.load(requests)
        channel.queue, channel.declared_end = declared
        channel.transacted, channel.ticketed, channel.client_stopped, channel.server_stopped = flags
        channel.recovering, channel.beginning = recovering, beginning
        channel.last_publish = LastPublish.load(publish)
        channel.deliveries = ChannelDeliveries.load(deliveries)
        channel.consumers = Consumers.load(consumers, about[0], channel.deliveries, roster)
        channel.publishes = Publishes.load(publishes)
        return channel
