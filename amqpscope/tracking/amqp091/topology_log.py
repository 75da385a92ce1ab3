"""What is kept of an AMQP 0-9-1 connection for comparison with others: operations, and the first messages.

Theory of operation. The log takes every frame of both peers in the order of the analysis, and does not follow
what an endpoint knows. A request is recorded where it was sent. Its answer is the first one that fits among
the requests that wait on its channel. A channel.close that names a method answers the oldest such request on
the channel; a connection.close answers the only such request on any channel.

Publishes and deliveries are most of the traffic: only the first ones (`samples`) and those with mandatory or
immediate are examined. Of basic.get, only a limited number and the refused ones are recorded.
"""

from typing import Any, Final

from amqpscope.limits import MAX_AWAITED_RETURNS, MAX_GETS, MAX_OPERATIONS
from amqpscope.model.records import Connection, FrameRecord, FrameRef
from amqpscope.tracking.amqp091.endpoint import unreadable
from amqpscope.tracking.amqp091.message_samples import SETTLING, MessageSamples
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.operation_fields import describe
from amqpscope.tracking.amqp091.topology_operations import (
    INTERNAL,
    NO_WAIT,
    PASSIVE,
    OperationOutcome,
    TopologyOperation,
)
from amqpscope.tracking.correlation_budget import CorrelationBudget
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicConsumeOk,
    BasicDeliver,
    BasicGetOk,
    BasicPublish,
    BasicReturn,
    ChannelClose,
    ConnectionClose,
    QueueDeclareOk,
)
from dissectors.amqp091.registry import new_method
from dissectors.wire import i64

__all__ = ["TopologyLog"]

# What is put down of the client's.
_REQUESTS: Final = frozenset(
    (
        "exchange.declare",
        "exchange.delete",
        "exchange.bind",
        "exchange.unbind",
        "queue.declare",
        "queue.delete",
        "queue.bind",
        "queue.unbind",
        "queue.purge",
        "basic.consume",
        "basic.cancel",
        "basic.get",
        "channel.close",
        "channel.open",
    )
)

# What else is waited for: its answer shows that what was said before it is done.
_WAITED_FOR: Final = frozenset(
    ("basic.qos", "confirm.select", "tx.select", "tx.commit", "tx.rollback", "basic.recover")
)

# What the server says that matters here, its answers to these aside.
_SAID: Final = frozenset(
    ("basic.return", "basic.cancel", "channel.close", "connection.close", "basic.get-empty")
)

_ANSWERS: Final = {request + "-ok": request for request in (*_REQUESTS, *_WAITED_FOR)} | {
    "basic.get-empty": "basic.get"
}


class TopologyLog:
    """The operations of one connection, in the order of the client's stream.

    whole: no operation is missing. settled: the operations that the newest frame answers.
    """

    def __init__(self, connection: Connection, allowance: CorrelationBudget) -> None:
        self.connection: Connection = connection
        self.allowance: CorrelationBudget = allowance
        self.whole: bool = True
        self.operations: list[TopologyOperation] = []
        self.settled: list[TopologyOperation] = []
        # Of each channel: those without an outcome, oldest first; and the queue declared last.
        self._open: dict[int, list[TopologyOperation]] = {}
        self._queues: dict[int, str] = {}
        # Of each channel: publishes that ask to be returned. None: they were too many.
        self._mandatory: dict[int, list[TopologyOperation] | None] = {}
        self._gets: i64 = 0
        # Consumers by channel and tag.
        self._consuming: dict[tuple[int, str], TopologyOperation] = {}
        # Exchanges that this client has declared internal.
        self._internal: set[str] = set()
        self.samples: MessageSamples = MessageSamples(connection, allowance)

    def take(self, record: FrameRecord) -> None:
        """The next frame of either peer."""
        frame = record.frame
        body = frame.body
        samples = self.samples
        if self.settled:
            self.settled = []
        if not isinstance(body, Method):
            samples.part(record)
            return
        if frame.problems:
            if isinstance(body, UnknownMethod) or unreadable(frame):
                return
            if body.odd is not None:
                # What it names is not known, so what is done to that is not.
                self.whole = False
        name = frame.name
        if self.connection.client == record.direction:
            if isinstance(body, BasicPublish):
                samples.publish(record, body)
                if body.mandatory:
                    self._publish(record, body)
                if self._internal and body.exchange in self._internal:
                    self._publish_inside(record, body)
                return
            if name in SETTLING:
                samples.method(record, body)
            if name in _REQUESTS:
                self._ask(record, name, body)
            elif name in _WAITED_FOR and self._open.get(int(frame.channel)):
                self._wait(
                    TopologyOperation(self.connection, -1, name, FrameRef.of(record), record.acknowledged)
                )
        elif isinstance(body, BasicDeliver):
            if not samples.room(False):
                samples.all = False
                return
            source = self._consuming.get((int(frame.channel), readable(body.consumer_tag)))
            samples.deliver(record, body, source)
        elif isinstance(body, BasicAck):
            return  # a confirm
        elif name in _ANSWERS:
            answered = self._answer(record, name, body)
            if isinstance(body, BasicGetOk):
                samples.deliver(record, body, answered)
        elif name in _SAID:
            if name == "channel.close":
                samples.method(record, body)
            self._reported(record, name, body)

    # By the client

    def _ask(self, record: FrameRecord, name: str, method: Method) -> None:
        channel = int(record.frame.channel)
        operation = TopologyOperation(
            self.connection, len(self.operations), name, FrameRef.of(record), record.acknowledged
        )
        if name == "channel.open":
            self._over(channel)
            return
        describe(operation, method)
        if not operation.queue and name.partition(".")[0] != "exchange" and name != "queue.declare":
            operation.queue = self._queues.get(channel, "")
        if name == "queue.declare":
            self._queues[channel] = operation.queue  # "": the server is to name it
        if name != "basic.get":
            self._keep(operation)
        if name == "channel.close":
            self._over(channel)
            return
        self._wait(operation)
        if name == "basic.consume" and operation.tag and len(self._consuming) < MAX_OPERATIONS:
            self._consuming[channel, operation.tag] = operation

    def _wait(self, operation: TopologyOperation) -> None:
        """The outcome of a operation is not known yet. Of too many on a channel the oldest is given up."""
        waiting = self._open.setdefault(operation.channel, [])
        if len(waiting) >= MAX_OPERATIONS:
            del waiting[0]
            self.whole = False
        waiting.append(operation)

    def _keep(self, operation: TopologyOperation) -> None:
        """Put a operation down."""
        if len(self.operations) >= MAX_OPERATIONS or self.allowance.operations <= 0:
            self.whole = False
            return
        self.allowance.operations -= 1
        self.operations.append(operation)

    def _publish(self, record: FrameRecord, method: BasicPublish) -> None:
        channel = int(record.frame.channel)
        waiting = self._mandatory.get(channel, _NONE)
        if waiting is None:
            return
        if waiting is _NONE:
            waiting = []
            self._mandatory[channel] = waiting
        if len(waiting) >= MAX_AWAITED_RETURNS:
            self._mandatory[channel] = None
            return
        operation = TopologyOperation(
            self.connection, -1, "basic.return", FrameRef.of(record), record.acknowledged
        )
        operation.exchange = readable(method.exchange)
        operation.key = readable(method.routing_key)
        waiting.append(operation)

    def _publish_inside(self, record: FrameRecord, method: BasicPublish) -> None:
        """The client publishes to an exchange that takes nothing from clients: the next answer tells."""
        operation = TopologyOperation(
            self.connection, len(self.operations), "basic.publish", FrameRef.of(record), record.acknowledged
        )
        operation.exchange = readable(method.exchange)
        operation.key = readable(method.routing_key)
        operation.flags = NO_WAIT
        self._keep(operation)
        waiting = self._open.setdefault(operation.channel, [])
        if len(waiting) < MAX_AWAITED_RETURNS:
            waiting.append(operation)

    def _over(self, channel: int) -> None:
        """Nothing on this channel is answered any more."""
        self._open.pop(channel, None)
        self._queues.pop(channel, None)
        self._mandatory.pop(channel, None)

    # By the server

    def _answer(self, record: FrameRecord, name: str, method: Method) -> TopologyOperation | None:
        """The server sends an answer; returns the request that it answers, None if unknown."""
        channel = int(record.frame.channel)
        waiting = self._open.get(channel)
        if waiting is None:
            return None
        request = _ANSWERS[name]
        at: i64 = -1
        for place, operation in enumerate(waiting):
            if operation.method == request and not operation.has(NO_WAIT):
                at = place
                break
        if at < 0:
            return None
        spot = FrameRef.of(record)
        end = record.frame.offset + record.frame.size
        for operation in waiting[:at]:
            if operation.has(NO_WAIT):
                # Done before it, or it would have been refused.
                shown = spot if operation.method == "basic.publish" else None
                self._settle(operation, OperationOutcome("ok", shown, end, spot.time))
        operation = waiting[at]
        self._open[channel] = [one for one in waiting[:at] if not one.has(NO_WAIT)] + waiting[at + 1 :]
        if isinstance(method, QueueDeclareOk):
            operation.queue = readable(method.queue) or operation.queue
            if not any(one.method == request for one in waiting[at + 1 :]):
                self._queues[channel] = operation.queue
        elif isinstance(method, BasicConsumeOk):
            operation.tag = readable(method.consumer_tag) or operation.tag
            self._consuming[channel, operation.tag] = operation
        if (
            operation.method == "exchange.declare"
            and operation.has(INTERNAL)
            and len(self._internal) < MAX_OPERATIONS
        ):
            self._internal.add(operation.exchange)
        empty = name == "basic.get-empty"
        self._settle(operation, OperationOutcome("empty" if empty else "ok", spot, end, spot.time))
        if isinstance(method, BasicGetOk) or empty:
            if self._gets < MAX_GETS:
                self._gets += 1
                self._put(operation)
        return operation

    def _put(self, operation: TopologyOperation) -> None:
        """Put down what was not when it was said."""
        operation.number = len(self.operations)
        self._keep(operation)

    def _settle(self, operation: TopologyOperation, outcome: OperationOutcome) -> None:
        operation.outcome = outcome
        if outcome.answer is not None:
            self.settled.append(operation)

    def _reported(self, record: FrameRecord, name: str, method: Method) -> None:
        channel = int(record.frame.channel)
        if isinstance(method, BasicReturn):
            self._returned(record, channel, method)
        elif isinstance(method, BasicCancel):
            operation = TopologyOperation(
                self.connection, len(self.operations), "server cancels", FrameRef.of(record), -1
            )
            operation.tag = readable(method.consumer_tag)
            spot = operation.spot
            end = record.frame.offset + record.frame.size
            self._settle(operation, OperationOutcome("ok", spot, end, spot.time))
            self._keep(operation)
        elif isinstance(method, ChannelClose):
            self._refused(record, channel, method.class_id, method.method_id, method.reply_code, method)
            operation = TopologyOperation(
                self.connection, len(self.operations), "channel.close", FrameRef.of(record), -1
            )
            self._keep(operation)
            self._over(channel)
        elif isinstance(method, ConnectionClose):
            name = _named(method.class_id, method.method_id)
            channels = [
                number
                for number, waiting in self._open.items()
                if any(operation.method == name for operation in waiting)
            ]
            if len(channels) == 1:
                code = method.reply_code
                self._refused(record, channels[0], method.class_id, method.method_id, code, method)
            for number in list(self._open):
                self._over(number)

    def _refused(
        self,
        record: FrameRecord,
        channel: int,
        class_id: i64,
        method_id: i64,
        code: i64,
        close: Method,
    ) -> None:
        """A close names a method: the oldest request that it can mean was refused, and the earlier ones were
        not.
        """
        waiting = self._open.get(channel, [])
        name = _named(class_id, method_id)
        for place, operation in enumerate(waiting):
            if operation.method != name or (code == _NOT_FOUND and _makes(operation)):
                continue
            end = record.frame.offset + record.frame.size
            spot = FrameRef.of(record)
            for before in waiting[:place]:
                if before.has(NO_WAIT):
                    self._settle(before, OperationOutcome("ok", None, end, spot.time))
            text = ""
            if isinstance(close, (ChannelClose, ConnectionClose)):
                text = (close.reply_text or "")[:_LONGEST]
            self._settle(operation, OperationOutcome("closed", spot, end, spot.time, code, text))
            if name == "basic.get":
                self._put(operation)
            return

    def _returned(self, record: FrameRecord, channel: int, method: BasicReturn) -> None:
        waiting = self._mandatory.get(channel)
        if not waiting:
            return
        exchange, key = readable(method.exchange), readable(method.routing_key)
        fitting = [
            at
            for at, operation in enumerate(waiting)
            if operation.exchange == exchange and operation.key == key
        ]
        if not fitting:
            return
        operation = waiting[fitting[0]]
        del waiting[: fitting[0] + 1]
        if len(fitting) > 1:
            return  # which of them it is nothing tells
        end = record.frame.offset + record.frame.size
        code = method.reply_code
        self._settle(operation, OperationOutcome("returned", FrameRef.of(record), end, record.time, code))
        self._put(operation)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        mandatory = [
            (channel, None if some is None else tuple(operation.dump() for operation in some))
            for channel, some in self._mandatory.items()
        ]
        return (
            self.whole,
            tuple(operation.dump() for operation in self.operations),
            tuple(
                (channel, tuple((self._place(operation), operation.dump()) for operation in waiting))
                for channel, waiting in self._open.items()
            ),
            tuple(self._queues.items()),
            tuple(mandatory),
            int(self._gets),
            tuple(
                (*place, self._place(operation), operation.dump())
                for place, operation in self._consuming.items()
            ),
            self.samples.dump(),
            tuple(sorted(self._internal)),
        )

    def _place(self, operation: TopologyOperation) -> int:
        """Where a operation is put down, -1 if it is not (yet)."""
        at = operation.number
        return at if 0 <= at < len(self.operations) and self.operations[at] is operation else -1

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection, allowance: CorrelationBudget) -> "TopologyLog":
        """The object of what `dump` returned."""
        whole, operations, waiting, queues, mandatory, gets, consuming, samples, internal = state
        topology_log = TopologyLog(connection, allowance)
        topology_log.whole = whole
        topology_log.operations = [TopologyOperation.load(operation, connection) for operation in operations]
        for channel, some in waiting:
            topology_log._open[channel] = [
                topology_log.operations[place]
                if place >= 0
                else TopologyOperation.load(operation, connection)
                for place, operation in some
            ]
        topology_log._queues = dict(queues)
        for channel, some in mandatory:
            kept = (
                None
                if some is None
                else [TopologyOperation.load(operation, connection) for operation in some]
            )
            topology_log._mandatory[channel] = kept
        topology_log._gets = gets
        topology_log._internal = set(internal)
        for channel, tag, place, operation in consuming:
            known = (
                topology_log.operations[place]
                if place >= 0
                else TopologyOperation.load(operation, connection)
            )
            topology_log._consuming[channel, tag] = known
        topology_log.samples = MessageSamples.load(samples, connection, allowance)
        return topology_log


# For what has no publishes yet that ask to be returned.
_NONE: Final[list[TopologyOperation]] = []

_NOT_FOUND: Final = 404

# Characters of a reply-text.
_LONGEST: Final = 256


def _named(class_id: i64, method_id: i64) -> str:
    """The name of the method that a close names, "" if there is none."""
    method = new_method(class_id, method_id)
    return "" if method is None else method.definition().name


def _makes(operation: TopologyOperation) -> bool:
    """Whether the entity that the request names may be missing."""
    return operation.method in ("queue.declare", "exchange.declare") and not operation.has(PASSIVE)
