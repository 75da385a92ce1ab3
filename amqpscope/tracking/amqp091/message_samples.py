"""The first messages of an AMQP 0-9-1 connection, kept to recognize them on other connections.

Theory of operation. In each direction the first messages are followed from the method over content header and
body frames. Incomplete messages, and messages that cannot be recognized, are dropped. A kept delivery is
followed until the client settles or returns it; a kept publish in a transaction is followed until the
transaction ends. When there is no more room and no message is followed, a frame costs only one test.
"""

from typing import Any, Final

from amqpscope.limits import MAX_PASSAGES
from amqpscope.model.records import Connection, FrameRecord, FrameRef
from amqpscope.tracking.amqp091.contents import (
    ACKED,
    CLOSED,
    COMMITTED,
    DROPPED,
    OPEN,
    RECOVERED,
    RECOVERED_ASYNC,
    REQUEUED,
    ROLLED_BACK,
    Content,
)
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.topology_operations import NO_ACK, NO_LOCAL, TopologyOperation
from amqpscope.tracking.correlation_budget import CorrelationBudget
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicRecover,
    BasicRecoverAsync,
    BasicReject,
    ChannelClose,
    ChannelOpen,
    TxCommit,
    TxRollback,
    TxSelect,
)
from dissectors.wire import i64

__all__ = ["SETTLING", "MessageSamples"]


class MessageSamples:
    """The messages of one connection. all: no message was dropped for lack of room, or was incomplete."""

    def __init__(self, connection: Connection, allowance: CorrelationBudget) -> None:
        self.connection: Connection = connection
        self.allowance: CorrelationBudget = allowance
        self.contents: list[Content] = []
        self.all: bool = True
        self._published: i64 = 0
        self._delivered: i64 = 0
        # Those under way, by whether the client sends them and the channel.
        self._coming: dict[tuple[bool, int], Content] = {}
        # Deliveries that are not settled, by channel and tag.
        self._held: dict[int, dict[int, Content]] = {}
        # Channels in a transaction: what was published and acknowledged in it.
        self._work: dict[int, list[Content]] = {}
        self._lives: dict[int, int] = {}
        # By channel, the delivery settled last; None if what was named is none that is kept.
        self._settled: dict[int, Content | None] = {}

    def part(self, record: FrameRecord) -> None:
        """A content header or a body frame."""
        if not self._coming:
            return
        frame = record.frame
        place = (record.direction == self.connection.client, int(frame.channel))
        content = self._coming.get(place)
        if content is None:
            return
        body = frame.body
        if frame.missing > 0 or frame.problems:
            self._drop(place)
        elif isinstance(body, ContentHeader):
            content.digest.head(body)
            if content.digest.size == 0:
                self._complete(place, content)
        elif frame.kind == "body":
            size: i64 = frame.payload_size
            content.digest.add(frame.payload if content.digest.sum >= 0 else b"", size)
            if content.digest.complete:
                self._complete(place, content)

    def _complete(self, place: tuple[bool, int], content: Content) -> None:
        del self._coming[place]
        content.digest.finish()
        if not content.digest.identity:
            return
        self.allowance.left -= 1
        self.contents.append(content)
        if content.published:
            work = self._work.get(place[1])
            if work is not None:
                content.fate = OPEN
                work.append(content)
        elif not content.no_ack:
            self._held.setdefault(place[1], {})[content.tag] = content

    def _drop(self, place: tuple[bool, int]) -> None:
        del self._coming[place]
        self.all = False

    def room(self, published: bool) -> bool:
        """Whether another message can be kept of those that the client publishes, or that it is sent."""
        count = self._published if published else self._delivered
        return count < MAX_PASSAGES and self.allowance.left > 0

    def _begin(self, record: FrameRecord, published: bool) -> Content | None:
        """A method with content: what is to be kept of it, None if there is no room."""
        if not self.room(published):
            self.all = False
            return None
        if published:
            self._published += 1
        else:
            self._delivered += 1
        frame = record.frame
        if (published, int(frame.channel)) in self._coming:
            self.all = False
        content = Content(
            self.connection, published, FrameRef.of(record), frame.offset + frame.size, record.acknowledged
        )
        content.life = self._lives.get(int(frame.channel), 0)
        self._coming[published, int(frame.channel)] = content
        return content

    def publish(self, record: FrameRecord, method: BasicPublish) -> None:
        """The client publishes a message."""
        content = self._begin(record, True)
        if content is not None:
            content.exchange = readable(method.exchange)
            content.key = readable(method.routing_key)

    def deliver(self, record: FrameRecord, method: Method, source: TopologyOperation | None) -> None:
        """The server delivers a message. source: the basic.consume or basic.get that it answers, None if
        unknown.
        """
        content = self._begin(record, False)
        if content is None:
            return
        if source is not None:
            content.queue = source.queue
            content.no_ack = source.has(NO_ACK)
            content.no_local = source.has(NO_LOCAL)
        if isinstance(method, BasicDeliver):
            content.tag, content.redelivered = method.delivery_tag, method.redelivered
            content.exchange, content.key = readable(method.exchange), readable(method.routing_key)
            content.consumer = readable(method.consumer_tag)
        elif isinstance(method, BasicGetOk):
            content.tag, content.redelivered = method.delivery_tag, method.redelivered
            content.exchange, content.key = readable(method.exchange), readable(method.routing_key)

    def method(self, record: FrameRecord, method: Method) -> None:
        """Any other method: it ends what was under way on its channel, and may settle what was."""
        channel = int(record.frame.channel)
        by_client = record.direction == self.connection.client
        if self._coming and (by_client, channel) in self._coming:
            self._drop((by_client, channel))
        if isinstance(method, ChannelClose):
            last = self._settled.pop(channel, None)
            if last is not None and not by_client and method.reply_code == 406:
                if method.class_id == 60 and method.method_id in (80, 90, 120):
                    last.refusal = FrameRef.of(record)
            self._give_back(channel, CLOSED, record)
            self._held.pop(channel, None)
            self._work.pop(channel, None)
            return
        if not by_client:
            return
        if isinstance(method, ChannelOpen):
            self._lives[channel] = self._lives.get(channel, 0) + 1
        elif isinstance(method, TxSelect):
            self._work.setdefault(channel, [])
        elif isinstance(method, TxCommit):
            for content in self._work.get(channel, ()):
                if content.published:
                    content.settle(COMMITTED, record.time, record.acknowledged)
            self._again(channel)
        elif isinstance(method, TxRollback):
            for content in self._work.get(channel, ()):
                content.settle(ROLLED_BACK, record.time, record.acknowledged)
                if not content.published:
                    self._held.setdefault(channel, {})[content.tag] = content
            self._again(channel)
        elif self._held or self._settled:
            self._settle(record, channel, method)

    def _again(self, channel: int) -> None:
        if channel in self._work:
            self._work[channel] = []

    def _settle(self, record: FrameRecord, channel: int, method: Method) -> None:
        held = self._held.get(channel, {})
        self._settled[channel] = None
        tag = 0
        multiple = False
        fate = ACKED
        if isinstance(method, BasicAck):
            tag, multiple = method.delivery_tag, method.multiple
        elif isinstance(method, BasicNack):
            tag, multiple = method.delivery_tag, method.multiple
            fate = REQUEUED if method.requeue else DROPPED
        elif isinstance(method, BasicReject):
            tag = method.delivery_tag
            fate = REQUEUED if method.requeue else DROPPED
        elif isinstance(method, BasicRecover):
            self._give_back(channel, RECOVERED, record)
            held.clear()
            return
        elif isinstance(method, BasicRecoverAsync):
            self._give_back(channel, RECOVERED_ASYNC, record)
            held.clear()
            return
        else:
            return
        work = self._work.get(channel)
        for one in [one for one in held if one == tag or (multiple and (tag == 0 or one < tag))]:
            content = held.pop(one)
            if one == tag and not multiple:
                self._settled[channel] = content
            if content.fate != ROLLED_BACK or fate == REQUEUED:
                # What was taken back once is not to come again, whatever is said of it then.
                content.settle(fate, record.time, record.acknowledged)
            if work is not None:
                work.append(content)

    def _give_back(self, channel: int, fate: str, record: FrameRecord) -> None:
        """Unsettled deliveries of a channel return to their queues."""
        for content in self._held.get(channel, {}).values():
            content.settle(fate, record.time, record.acknowledged)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        numbers = {id(content): number for number, content in enumerate(self.contents)}
        return (
            tuple(content.dump() for content in self.contents),
            (self.all, int(self._published), int(self._delivered)),
            tuple((*place, content.dump()) for place, content in self._coming.items()),
            tuple(
                (channel, tuple(numbers[id(content)] for content in held.values()))
                for channel, held in self._held.items()
            ),
            tuple(
                (channel, tuple(numbers[id(content)] for content in work))
                for channel, work in self._work.items()
            ),
            tuple(self._lives.items()),
            tuple(
                (channel, -1 if content is None else numbers[id(content)])
                for channel, content in self._settled.items()
            ),
        )

    @staticmethod
    def load(
        state: tuple[Any, ...], connection: Connection, allowance: CorrelationBudget
    ) -> "MessageSamples":
        """The object of what `dump` returned."""
        contents, counts, coming, held, works, lives, settled = state
        samples = MessageSamples(connection, allowance)
        samples.contents = [Content.load(content, connection) for content in contents]
        samples.all, samples._published, samples._delivered = counts
        for published, channel, content in coming:
            samples._coming[published, channel] = Content.load(content, connection)
        for channel, numbers in held:
            some = [samples.contents[number] for number in numbers]
            samples._held[channel] = {content.tag: content for content in some}
        for channel, numbers in works:
            samples._work[channel] = [samples.contents[number] for number in numbers]
        samples._lives = dict(lives)
        for channel, number in settled:
            samples._settled[channel] = None if number < 0 else samples.contents[number]
        return samples


# What `MessageSamples.method` has to be given of the client's, when nothing is under way.
SETTLING: Final = frozenset(
    (
        "basic.ack",
        "basic.nack",
        "basic.reject",
        "basic.recover",
        "basic.recover-async",
        "channel.open",
        "channel.close",
        "tx.select",
        "tx.commit",
        "tx.rollback",
    )
)
