"""One life of a channel, from channel.open to the close-ok that ends it, as one endpoint knows it.

Theory of operation. Both peers' methods change the same state: a consumer begins with the client's
basic.consume, a tag is used up by the server's basic.deliver, freed by the client's basic.ack. So one machine
serves both endpoints; what differs is when an input reaches it (see `Endpoint`). It is told who said it, and
never judges. After a close a peer discards what the other one still sends; so does this.

Requests wait for their answer in the order in which they came (`requests` of the client's, `demands` of the
server's); with no-wait there is none to come.

Sources: the classes channel, queue, basic, tx (amqp0-9-1.xml), confirm (RabbitMQ).
"""

from typing import Any, Final

from amqpscope.limits import MAX_CONSUMERS, MAX_REQUESTS
from amqpscope.tracking.amqp091.deliveries import Deliveries, Delivery
from amqpscope.tracking.amqp091.publishes import Publish, Publishes
from amqpscope.tracking.amqp091.states import CHANNEL, advance
from amqpscope.tracking.knowledge import Limits
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
    BasicGet,
    BasicGetEmpty,
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
    ExchangeBind,
    ExchangeDeclare,
    ExchangeDelete,
    ExchangeUnbind,
    QueueBind,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueuePurge,
    QueueUnbind,
    TxCommit,
    TxRollback,
    TxSelect,
)
from dissectors.wire import i64

__all__ = [
    "AUTO_DELETE",
    "DURABLE",
    "EXCLUSIVE",
    "IF_EMPTY",
    "IF_UNUSED",
    "PASSIVE",
    "QUEUE_DELETED",
    "REPLIES",
    "UNANSWERED",
    "UNLIMITED",
    "UNREADABLE",
    "Channel",
    "Closing",
    "Consumer",
    "Request",
]

UNLIMITED: Final = 1 << 40
"""The bound of a prefetch window that is not limited: above all counts."""

REPLIES: Final = "amq.rabbitmq.reply-to"
"""RabbitMQ's queue that is none: what is published to it goes to the channel that consumes from it. Its
deliveries do not count: each has the tag that the next one of a real queue will have."""

UNANSWERED: Final = "client, with no-wait"
"""Who cancelled a consumer: the client, and nothing shows when the server has heard it."""

PASSIVE: Final = "p"
DURABLE: Final = "d"
EXCLUSIVE: Final = "x"
AUTO_DELETE: Final = "a"
IF_UNUSED: Final = "u"
IF_EMPTY: Final = "e"
"""The flags of a request, each a letter."""

UNREADABLE: Final = "\ufffd"
"""Stands for a name that is not there, or not UTF-8."""

QUEUE_DELETED: Final = "queue deleted"
"""Who cancelled a consumer: nobody, its queue is gone."""


def _name(name: str | None) -> str:
    return UNREADABLE if name is None else name


class Request:
    """A method that asks for an answer.

    name: the method's. responses: which methods answer it. end, packet, time: where it was said. subject:
    what it is about: a queue, an exchange, a consumer-tag, "1" or "0" of a flow. other: what else it names,
    the exchange or the source of a binding, the type of an exchange. flags: those that are set, by their
    letters (PASSIVE and so on).
    """

    def __init__(
        self, name: str, responses: tuple[str, ...], end: i64, packet: i64, time: i64, subject: str
    ) -> None:
        self.name: str = name
        self.responses: tuple[str, ...] = responses
        self.end: i64 = end
        self.packet: i64 = packet
        self.time: i64 = time
        self.subject: str = subject
        self.other: str = ""
        self.flags: str = ""

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        where = (int(self.end), int(self.packet), int(self.time))
        return (self.name, self.responses, *where, self.subject, self.other, self.flags)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Request":
        """What `dump` gave, as an object again."""
        request = Request(*state[:6])
        request.other, request.flags = state[6:]
        return request


def _of_exchange(request: Request, method: Method) -> None:
    """What a request about an exchange names."""
    if isinstance(method, ExchangeDeclare):
        request.subject = _name(method.exchange)
        request.other = _name(method.type)
        request.flags = (PASSIVE if method.passive else "") + (DURABLE if method.durable else "")
    elif isinstance(method, ExchangeDelete):
        request.subject = _name(method.exchange)
        request.flags = IF_UNUSED if method.if_unused else ""
    elif isinstance(method, (ExchangeBind, ExchangeUnbind)):
        request.subject = _name(method.destination)
        request.other = _name(method.source)


class Consumer:
    """A consumer of a channel.

    tag; queue: as consume named it, or the current one. no_ack: its deliveries need no acknowledgement.
    limit: the prefetch window it began with. ready: deliveries may come: consume-ok came, or none is to, or
    they may be of the consumer that had the tag before; waited: one is to. inherited: deliveries of those
    before it that were unacknowledged. begun: something was delivered; streaming: out of a stream of
    RabbitMQ's. end, packet: of its consume.
    """

    def __init__(self, tag: str, queue: str, no_ack: bool, exclusive: bool, end: i64, packet: i64) -> None:
        self.tag: str = tag
        self.queue: str = queue
        self.no_ack: bool = no_ack
        self.exclusive: bool = exclusive
        self.limit: i64 = UNLIMITED
        self.ready: bool = False
        self.waited: bool = True
        self.inherited: i64 = 0
        self.begun: bool = False
        self.streaming: bool = False
        self.end: i64 = end
        self.packet: i64 = packet

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.tag, self.queue, self.no_ack, self.exclusive, int(self.end), int(self.packet)),
            (int(self.limit), self.ready, self.waited, int(self.inherited), self.begun, self.streaming),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Consumer":
        """What `dump` gave, as an object again."""
        consumer = Consumer(*state[0])
        consumer.limit, consumer.ready, consumer.waited, consumer.inherited = state[1][:4]
        consumer.begun, consumer.streaming = state[1][4:]
        return consumer


class Closing:
    """A close: who said it, why, and where."""

    def __init__(
        self, code: i64, text: str, class_id: i64, method_id: i64, end: i64, packet: i64, time: i64
    ) -> None:
        self.code: i64 = code
        self.text: str = text
        self.class_id: i64 = class_id
        self.method_id: i64 = method_id
        self.end: i64 = end
        self.packet: i64 = packet
        self.time: i64 = time

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            int(self.code),
            self.text,
            int(self.class_id),
            int(self.method_id),
            int(self.end),
            int(self.packet),
            int(self.time),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Closing":
        """What `dump` gave, as an object again."""
        return Closing(*state)


class Channel:
    """A channel, by its number, in one of its lives.

    state: as in `states.CHANNEL`. whole: nothing of this life is missing. open_end, open_packet: of its
    channel.open. closed_by_client, closed_by_server: the closes, None if not said.
    queue: the one declared last, "" if the server has yet to name it, None if none was (nor is known);
    declared_end: of its declaration. transacted: tx.select was said.
    client_stopped, server_stopped: this peer has confirmed that it sends no content for now.
    """

    def __init__(self, number: i64, counting: bool = True) -> None:
        self.number: i64 = number
        self.state: str = "CLOSED"
        self.whole: bool = True
        self.open_end: i64 = -1
        self.open_packet: i64 = 0
        self.closed_by_client: Closing | None = None
        self.closed_by_server: Closing | None = None
        self.requests: list[Request] = []
        self.demands: list[Request] = []
        # Methods that would answer what was asked with no-wait.
        self.unawaited: set[str] = set()
        # The last request of each kind with no-wait, by its name.
        self.unheard: dict[str, Request] = {}
        # Methods that would answer what came after the close, and was discarded.
        self.discarded: set[str] = set()
        self.queue: str | None = None
        self.declared_end: i64 = -1
        self.consumers: dict[str, Consumer] = {}
        # Those that consume-ok has to name, in order: consumes with an empty tag.
        self.nameless: list[Consumer] = []
        # Consumer-tags that were cancelled and are not in use again, and by whom: `client`, `server`,
        # UNANSWERED, QUEUE_DELETED.
        self.cancelled: dict[str, str] = {}
        self.deliveries: Deliveries = Deliveries(counting)
        self.publishes: Publishes = Publishes()
        self.transacted: bool = False
        # The server has given out an access ticket, as servers did before 0-9-1.
        self.ticketed: bool = False
        # Prefetch: the windows set with and without `global`, as bounds (UNLIMITED: none), and of octets
        # without (0: none).
        self.window: i64 = UNLIMITED
        self.windows: Limits = Limits()
        self.window_octets: i64 = 0
        self.client_stopped: bool = False
        self.server_stopped: bool = False
        # The last basic.publish of the client's: its exchange, the offset behind it, its packet and time.
        self.publish_exchange: str = ""
        self.published_elsewhere: bool = False  # to another than the default exchange
        self.publish_end: i64 = -1
        self.publish_packet: i64 = 0
        self.publish_time: i64 = 0
        # The return whose content header is due: exchange, routing key and reply-code.
        self.returning: tuple[str, str, int] | None = None
        # The delivery whose content header is due, by its tag, and the consumer whose first one it is.
        self.delivering: int = 0
        self.beginning: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client has opened it and neither has closed it."""
        return self.state == "OPEN" or self.state == "OPENING"

    def awaited(self, by_client: bool, name: str) -> i64:
        """Where in the queue the request stands that this answer of a peer is to; -1 if nowhere."""
        queue = self.demands if by_client else self.requests
        at: i64 = 0
        for request in queue:
            if name in request.responses:
                return at
            at += 1
        return -1

    def named(self, queue: str | None) -> str:
        """The queue that a method names, by itself or by the last declaration; "" if none is known."""
        if queue:
            return queue
        return self.queue or ""

    # What is said on it

    def apply(self, by_client: bool, method: Method, end: i64, packet: i64, time: i64) -> None:
        """A method, of the client's or of the server's; `end`: offset behind its frame."""
        if isinstance(method, BasicDeliver):
            if not by_client:
                self._deliver(method, end, packet, time)
            return
        if isinstance(method, BasicAck):
            if by_client:
                self._settle(method.delivery_tag, method.multiple, end, packet)
            else:
                self.publishes.confirm(method.delivery_tag, method.multiple, True)
            return
        if isinstance(method, BasicPublish):
            # It counts when its content is complete: `publish`.
            if by_client and self.closed_by_server is None:
                self.publish_exchange = method.exchange or ""
                if self.publish_exchange:
                    self.published_elsewhere = True
                self.publish_end = end
                self.publish_packet = packet
                self.publish_time = time
            return
        if isinstance(method, BasicNack):
            if by_client:
                self._settle(method.delivery_tag, method.multiple, end, packet)
            else:
                self.publishes.confirm(method.delivery_tag, method.multiple, False)
            return
        if isinstance(method, BasicReject):
            if by_client:
                self._settle(method.delivery_tag, False, end, packet)
            return
        if isinstance(method, BasicReturn):
            if not by_client:
                code: i64 = method.reply_code
                self.returning = (method.exchange or "", method.routing_key or "", int(code))
                self.delivering = 0
            return
        if isinstance(method, ChannelClose):
            self._close(by_client, method, end, packet, time)
            return
        if isinstance(method, ChannelCloseOk):
            self.state = advance(CHANNEL, {}, self.state, "C:close-ok" if by_client else "S:close-ok")
            return
        if isinstance(method, ChannelOpenOk):
            if not by_client:
                self.state = advance(CHANNEL, {}, self.state, "S:open-ok")
        name = method.definition().name
        answered = self._answer(by_client, name)
        if self._discards(by_client):
            # Its sender may not have read the close: it counts as said, and changes nothing.
            self.discarded.update(method.definition().responses)
            return
        if by_client:
            self._client_says(method, name, end, packet, time)
        else:
            self._server_says(method, name, end, packet, time, answered)

    def _settle(self, tag: int, multiple: bool, end: i64, packet: i64) -> None:
        self.deliveries.settle(tag, multiple, self.transacted, end, packet)

    def _discards(self, by_client: bool) -> bool:
        """Whether the other peer has closed the channel, and so takes no notice of this one any more."""
        return (self.closed_by_server if by_client else self.closed_by_client) is not None

    def _answer(self, by_client: bool, name: str) -> Request | None:
        """If this answers a request, that is answered; which one."""
        at = self.awaited(by_client, name)
        if at < 0:
            return None
        queue = self.demands if by_client else self.requests
        request = queue[at]
        del queue[at]
        return request

    def _ask(
        self,
        by_client: bool,
        method: Method,
        name: str,
        no_wait: bool,
        subject: str,
        end: i64,
        packet: i64,
        time: i64,
    ) -> None:
        responses = method.definition().responses
        if not responses:
            return
        request = Request(name, responses, end, packet, time, subject)
        if isinstance(method, (QueueDeclare, QueueBind, QueueUnbind, QueuePurge, QueueDelete)):
            self._of_queue(request, method)
        elif isinstance(method, (ExchangeDeclare, ExchangeDelete, ExchangeBind, ExchangeUnbind)):
            _of_exchange(request, method)
        if no_wait:
            self.unawaited.update(responses)
            self.unheard[name] = request
            return
        queue = self.requests if by_client else self.demands
        if len(queue) >= MAX_REQUESTS:
            del queue[0]
            self.whole = False
        queue.append(request)

    def _of_queue(self, request: Request, method: Method) -> None:
        """What a request about a queue names."""
        if isinstance(method, QueueDeclare):
            request.subject = _name(method.queue)
            request.flags = (
                (PASSIVE if method.passive else "")
                + (DURABLE if method.durable else "")
                + (EXCLUSIVE if method.exclusive else "")
                + (AUTO_DELETE if method.auto_delete else "")
            )
        elif isinstance(method, (QueueBind, QueueUnbind)):
            request.subject = self.named(method.queue)
            request.other = _name(method.exchange)
        elif isinstance(method, QueuePurge):
            request.subject = self.named(method.queue)
        elif isinstance(method, QueueDelete):
            request.flags = (IF_UNUSED if method.if_unused else "") + (IF_EMPTY if method.if_empty else "")

    # By the client

    def open(self, method: ChannelOpen, end: i64, packet: i64, time: i64) -> None:
        """The client opens it."""
        self.state = advance(CHANNEL, {}, self.state, "C:open")
        self.open_end = end
        self.open_packet = packet
        self._ask(True, method, "channel.open", False, "", end, packet, time)

    def publish(self, publish: Publish) -> None:
        """The client has sent the last frame of a message."""
        if self.closed_by_server is None:
            self.publishes.add(publish)

    def _client_says(self, method: Method, name: str, end: i64, packet: i64, time: i64) -> None:
        no_wait = False
        subject = ""
        if isinstance(method, BasicConsume):
            no_wait = method.no_wait
            subject = method.consumer_tag or ""
            self._consume(method, end, packet)
        elif isinstance(method, BasicCancel):
            no_wait = method.no_wait
            subject = method.consumer_tag or ""
            if no_wait:
                self._end_consumer(subject, UNANSWERED)
        elif isinstance(method, BasicQos):
            self._qos(method, end, packet)
        elif isinstance(method, BasicGet):
            subject = "no-ack" if method.no_ack else ""
        elif isinstance(method, QueueDeclare):
            no_wait = method.no_wait
            subject = method.queue or ""
            self.queue = subject
            self.declared_end = end
        elif isinstance(
            method,
            (QueueBind, QueuePurge, ExchangeDeclare, ExchangeDelete, ExchangeBind, ExchangeUnbind),
        ):
            no_wait = method.no_wait
        elif isinstance(method, QueueDelete):
            no_wait = method.no_wait
            subject = self.named(method.queue)
        elif isinstance(method, ConfirmSelect):
            no_wait = method.no_wait
            self.publishes.confirming = True
        elif isinstance(method, TxSelect):
            self.transacted = True
        elif isinstance(method, TxCommit):
            self.deliveries.commit()
        elif isinstance(method, TxRollback):
            self.deliveries.roll_back()
        elif isinstance(method, (BasicRecover, BasicRecoverAsync)):
            self.deliveries.recover()
        elif isinstance(method, ChannelFlow):
            subject = "1" if method.active else "0"
        elif isinstance(method, ChannelFlowOk):
            self.client_stopped = not method.active
        elif isinstance(method, BasicCancelOk):
            self._end_consumer(method.consumer_tag or "", "server")
        self._ask(True, method, name, no_wait, subject, end, packet, time)

    def _consume(self, method: BasicConsume, end: i64, packet: i64) -> None:
        tag = method.consumer_tag or ""
        consumer = Consumer(tag, self.named(method.queue), method.no_ack, method.exclusive, end, packet)
        consumer.limit = self.window
        consumer.waited = not method.no_wait
        consumer.ready = method.no_wait
        if not tag:
            if len(self.nameless) < MAX_REQUESTS:
                self.nameless.append(consumer)
            return
        before = self.consumers.get(tag)
        if before is not None or self.cancelled.get(tag) in (UNANSWERED, QUEUE_DELETED):
            # What comes may still be of the one that had the tag before.
            consumer.ready = True
            if before is None or before.no_ack != consumer.no_ack:
                self.deliveries.whole = False
        self._keep(tag, consumer)

    def cancelling(self, tag: str) -> bool:
        """Whether the client has cancelled this consumer, and no answer came."""
        return any(request.subject == tag and request.name == "basic.cancel" for request in self.requests)

    def _keep(self, tag: str, consumer: Consumer) -> None:
        if len(self.consumers) >= MAX_CONSUMERS and tag not in self.consumers:
            self.consumers.pop(next(iter(self.consumers)))
            self.whole = False
        self.consumers[tag] = consumer
        self.cancelled.pop(tag, None)
        consumer.inherited = self.deliveries.counts.get(tag, 0)

    def _end_consumer(self, tag: str, by: str) -> None:
        self.consumers.pop(tag, None)
        if len(self.cancelled) >= MAX_CONSUMERS:
            del self.cancelled[next(iter(self.cancelled))]
        self.cancelled[tag] = by

    def _qos(self, method: BasicQos, end: i64, packet: i64) -> None:
        count: i64 = method.prefetch_count
        bound: i64 = UNLIMITED if count <= 0 else count
        if method.global_:
            if len(self.windows) == 0:
                self.windows.set(0, UNLIMITED, 0)
            self.windows.set(end, bound, packet)
            self.window_octets = 0
        else:
            self.window = bound
            self.window_octets = max(method.prefetch_size, 0)

    # By the server

    def _server_says(
        self, method: Method, name: str, end: i64, packet: i64, time: i64, answered: Request | None
    ) -> None:
        if isinstance(method, BasicConsumeOk):
            self._consume_ok(method.consumer_tag or "", answered)
        elif isinstance(method, BasicCancelOk):
            if answered is not None:
                ended = self.consumers.get(answered.subject)
                if ended is None or ended.end < answered.end:
                    self._end_consumer(answered.subject, "client")
        elif isinstance(method, BasicCancel):
            tag = method.consumer_tag or ""
            if method.no_wait:
                self._end_consumer(tag, "server")
            self._ask(False, method, name, method.no_wait, tag, end, packet, time)
        elif isinstance(method, BasicGetOk):
            no_ack = answered is not None and answered.subject == "no-ack"
            self.deliveries.add(Delivery(method.delivery_tag, None, end, packet, time), no_ack)
            self.delivering = method.delivery_tag
        elif isinstance(method, QueueDeclareOk):
            if answered is None or answered.end == self.declared_end:
                self.queue = method.queue
        elif isinstance(method, QueueDeleteOk):
            if answered is not None and answered.subject:
                self._queue_gone(answered.subject, answered.end)
        elif isinstance(method, BasicRecoverOk):
            if self.deliveries.unacknowledged:
                # They came since it was asked for: whether before it was done, and went back, is not known.
                self.deliveries.whole = False
        elif isinstance(method, BasicQosOk):
            if answered is not None:
                self.windows.settle(answered.end)
        elif isinstance(method, AccessRequestOk):
            self.ticketed = True
        elif isinstance(method, ChannelFlow):
            self._ask(False, method, name, False, "1" if method.active else "0", end, packet, time)
        elif isinstance(method, ChannelFlowOk):
            self.server_stopped = not method.active
        elif isinstance(method, BasicGetEmpty):
            pass  # it answers, no more

    def _consume_ok(self, tag: str, answered: Request | None) -> None:
        if answered is None:
            return
        if not answered.subject:
            at: i64 = 0
            for consumer in self.nameless:
                if consumer.waited:
                    del self.nameless[at]
                    consumer.tag = tag
                    consumer.ready = True
                    self._keep(tag, consumer)
                    return
                at += 1
            return
        named = self.consumers.get(answered.subject)
        if named is not None:
            named.ready = True

    def _queue_gone(self, queue: str, end: i64) -> None:
        """A queue was deleted, as was asked for at `end`: the consumers that it had then are no more."""
        for tag, consumer in list(self.consumers.items()):
            if consumer.queue == queue and consumer.end < end:
                self._end_consumer(tag, QUEUE_DELETED)

    def _deliver(self, method: BasicDeliver, end: i64, packet: i64, time: i64) -> None:
        tag = method.consumer_tag or ""
        consumer = self.consumers.get(tag)
        if consumer is None and self.nameless and not self.nameless[0].waited and self.whole:
            # It was begun without a name, and without anybody waiting to be told one.
            consumer = self.nameless.pop(0)
            consumer.tag = tag
            self._keep(tag, consumer)
        no_ack = consumer is not None and consumer.no_ack
        if consumer is None:
            # Whether it wants to be acknowledged is not known.
            self.deliveries.whole = False
        elif not consumer.begun:
            consumer.begun = True
            self.beginning = tag
        if no_ack and consumer is not None and consumer.queue == REPLIES:
            return
        self.deliveries.add(Delivery(method.delivery_tag, tag, end, packet, time), no_ack)
        self.delivering = method.delivery_tag

    def content(self, header: ContentHeader) -> None:
        """The server's content header: how large the delivery is that has just begun."""
        tag = self.delivering
        if tag > 0:
            self.delivering = 0
            self.deliveries.weigh(tag, header.body_size)
            if self.beginning is not None:
                consumer = self.consumers.get(self.beginning)
                if consumer is not None:
                    consumer.streaming = b"x-stream-offset" in header.octets
                self.beginning = None
        elif self.returning is not None:
            exchange, routing_key, reply_code = self.returning
            self.publishes.returned(exchange, routing_key, header.body_size, reply_code)
            self.returning = None

    # By both

    def _close(self, by_client: bool, method: ChannelClose, end: i64, packet: i64, time: i64) -> None:
        text = method.reply_text or ""
        closing = Closing(method.reply_code, text[:256], method.class_id, method.method_id, end, packet, time)
        if by_client:
            self.state = advance(CHANNEL, {}, self.state, "C:close")
            if self.closed_by_client is None:
                self.closed_by_client = closing
        else:
            self.state = advance(CHANNEL, {}, self.state, "S:close")
            if self.closed_by_server is None:
                self.closed_by_server = closing

    def empty(self) -> None:
        """It is closed: what was on it is gone."""
        self.requests = []
        self.demands = []
        self.unawaited = set()
        self.unheard = {}
        self.consumers = {}
        self.nameless = []
        self.cancelled = {}
        self.deliveries = Deliveries(self.deliveries.counting)
        self.publishes = Publishes()
        self.windows = Limits()

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        closes = (self.closed_by_client, self.closed_by_server)
        return (
            (int(self.number), self.state, self.whole, int(self.open_end), int(self.open_packet)),
            tuple(None if one is None else one.dump() for one in closes),
            tuple(request.dump() for request in self.requests),
            tuple(request.dump() for request in self.demands),
            (tuple(sorted(self.unawaited)), tuple(sorted(self.discarded))),
            tuple(request.dump() for request in self.unheard.values()),
            (self.queue, self.transacted, self.ticketed, self.client_stopped, self.server_stopped),
            (self.delivering, self.beginning, self.returning),
            (self.publish_exchange, int(self.publish_end), int(self.publish_packet), int(self.publish_time)),
            self.published_elsewhere,
            tuple(consumer.dump() for consumer in self.consumers.values()),
            tuple(consumer.dump() for consumer in self.nameless),
            tuple(self.cancelled.items()),
            self.deliveries.dump(),
            self.publishes.dump(),
            (int(self.window), self.windows.dump(), int(self.window_octets)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Channel":
        """What `dump` gave, as an object again."""
        about, closes, requests, demands, unawaited, unheard, flags, delivering, publish = state[:9]
        consumers, nameless, cancelled, deliveries, publishes, windows = state[10:]
        channel = Channel(about[0], deliveries[0])
        channel.published_elsewhere = state[9]
        _, channel.state, channel.whole, channel.open_end, channel.open_packet = about
        first, second = closes
        channel.closed_by_client = None if first is None else Closing.load(first)
        channel.closed_by_server = None if second is None else Closing.load(second)
        channel.requests = [Request.load(one) for one in requests]
        channel.demands = [Request.load(one) for one in demands]
        channel.unawaited, channel.discarded = (set(names) for names in unawaited)
        channel.unheard = {one[0]: Request.load(one) for one in unheard}
        channel.queue, channel.transacted, channel.ticketed = flags[:3]
        channel.client_stopped, channel.server_stopped = flags[3:]
        channel.delivering, channel.beginning, channel.returning = delivering
        channel.publish_exchange, channel.publish_end, channel.publish_packet, channel.publish_time = publish
        for one in consumers:
            consumer = Consumer.load(one)
            channel.consumers[consumer.tag] = consumer
        channel.nameless = [Consumer.load(one) for one in nameless]
        channel.cancelled = dict(cancelled)
        channel.deliveries = Deliveries.load(deliveries)
        channel.publishes = Publishes.load(publishes)
        channel.window, limits, channel.window_octets = windows
        channel.windows = Limits.load(limits)
        return channel
