"""The snapshot of an AMQP 0-9-1 connection, from what its two endpoints know (see `tracking.snapshot`).

Theory of operation. Each endpoint knows what it has sent itself, and what it could have received; the other
frames are in its inbox. Each number is therefore taken from the endpoint that decreased it last, and what is
on its way to that endpoint is added. For example, the client's acknowledgements are in the client's view at
once, and the deliveries that the client has not received yet are in the client's inbox; with confirms it is
the other way round.
"""

from typing import Final

from amqpscope.limits import MAX_SNAPSHOT_DELIVERIES, MAX_SNAPSHOT_LINKS
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.connection_view import ConnectionView
from amqpscope.tracking.amqp091.consumers import UNLIMITED, Consumer
from amqpscope.tracking.amqp091.endpoint import Endpoint091
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import NO_ACK, MethodRequest
from amqpscope.tracking.amqp091.states import CHANNEL, CLOSED, CONNECTION, OPEN
from amqpscope.tracking.snapshot import (
    UNKNOWN,
    ChannelSnapshot,
    ConnectionSnapshot,
    ConsumerSnapshot,
    EndSnapshot,
)
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicCancel,
    BasicConsumeOk,
    BasicDeliver,
    BasicGetOk,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ChannelOpenOk,
    ConfirmSelect,
    ConnectionClose,
    ConnectionCloseOk,
)
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["take_snapshot"]

_SECOND: Final = 1_000_000_000

# A delivery that was asked for by basic.get.
_GET: Final = "\0get"


class Amqp091InFlight:
    """What is on its way to one endpoint on one channel.

    steps: how the frames change the state of the channel. deliveries: how many, by the tag of their consumer.
    tags: those that basic.consume-ok names. cancelled: by the server. answers: how often each method comes,
    by its name. publishes: complete messages; unselected: how many of them before confirm.select. opened: a
    new life begins.
    """

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.deliveries: dict[str, int] = {}
        self.tags: list[str] = []
        self.cancelled: set[str] = set()
        self.answers: dict[str, int] = {}
        self.publishes: i64 = 0
        self.unselected: i64 = 0
        self.opened: bool = False


class Mail:
    """All frames on their way to one endpoint. steps: how they change the state of the connection."""

    def __init__(self, end: Endpoint091) -> None:
        self.count: i64 = 0
        self.steps: list[str] = []
        self.closes: list[str] = []
        self.channels: dict[int, Amqp091InFlight] = {}
        side = "S:" if end.by_client else "C:"
        for arrival in end.undelivered():
            self.count += 1
            if arrival.channel <= 0:  # of a protocol header it is -1
                self.add(arrival.body, side)
            else:
                number = int(arrival.channel)
                way = self.channels.get(number)
                if way is None:
                    way = Amqp091InFlight()
                    self.channels[number] = way
                _add(way, arrival.body, side)

    def add(self, body: object, side: str) -> None:
        """The next of it about the whole connection."""
        if isinstance(body, ProtocolHeader):
            self.steps.append(side + "header")
        elif isinstance(body, ConnectionClose):
            self.closes.append(side + "close")
        elif isinstance(body, ConnectionCloseOk):
            self.closes.append(side + "close-ok")
        elif isinstance(body, Method):
            name = body.definition().name
            if name.startswith("connection."):
                self.steps.append(side + name[len("connection.") :])


def _add(way: Amqp091InFlight, body: object, side: str) -> None:
    """The next of it on a channel."""
    if isinstance(body, Publish):
        way.publishes += 1
        return
    if not isinstance(body, Method):
        return
    if isinstance(body, BasicDeliver):
        tag = body.consumer_tag or ""
        way.deliveries[tag] = way.deliveries.get(tag, 0) + 1
        return
    if isinstance(body, ChannelOpen):
        way.steps.append(side + "open")
        way.opened = True
        way.publishes = 0
    elif isinstance(body, ConfirmSelect):
        way.unselected = way.publishes
    elif isinstance(body, ChannelOpenOk):
        way.steps.append(side + "open-ok")
    elif isinstance(body, ChannelClose):
        way.steps.append(side + "close")
    elif isinstance(body, ChannelCloseOk):
        way.steps.append(side + "close-ok")
    elif isinstance(body, BasicGetOk):
        way.deliveries[_GET] = way.deliveries.get(_GET, 0) + 1
    elif isinstance(body, BasicConsumeOk):
        way.tags.append(body.consumer_tag or "")
    elif isinstance(body, BasicCancel) and body.no_wait:
        way.cancelled.add(body.consumer_tag or "")
    name = body.definition().name
    way.answers[name] = way.answers.get(name, 0) + 1


def take_snapshot(client: Endpoint091, server: Endpoint091) -> ConnectionSnapshot:
    """The connection between two endpoints in its current state."""
    to_client = Mail(client)
    to_server = Mail(server)
    snapshot = ConnectionSnapshot(_end(CLIENT, client, to_client), _end(SERVER, server, to_server))
    theirs = server.view
    ours = client.view
    snapshot.virtual_host = ours.opening.virtual_host
    snapshot.blocked = theirs.blocking.blocked
    snapshot.client.max_frame_size = ours.agreed.frame_max
    snapshot.client.channel_max = ours.agreed.channel_max
    snapshot.client.idle = ours.agreed.heartbeat * _SECOND if ours.agreed.heartbeat >= 0 else UNKNOWN
    snapshot.server.max_frame_size = theirs.proposed.frame_max
    snapshot.server.channel_max = theirs.proposed.channel_max
    snapshot.server.idle = theirs.proposed.heartbeat * _SECOND if theirs.proposed.heartbeat >= 0 else UNKNOWN
    numbers = set(ours.table.channels)
    numbers.update(theirs.table.channels)
    numbers.discard(0)
    for number in sorted(numbers):
        state = _state(number, ours, theirs, to_client, to_server)
        if state == CLOSED:
            continue
        if len(snapshot.channels) >= MAX_SNAPSHOT_LINKS:
            snapshot.more_channels += 1
            continue
        snapshot.channels.append(_channel(number, state, ours, theirs, to_client, to_server))
    return snapshot


def _end(peer: str, end: Endpoint091, mail: Mail) -> EndSnapshot:
    view = end.view
    state = view.state
    for step in mail.steps:
        state = CONNECTION.after(state, step)
    closing = view.ending.state
    for step in mail.closes:
        closing = CHANNEL.after(closing, step)
    if closing != OPEN:
        state = closing
    snapshot = EndSnapshot(peer, state)
    snapshot.frames = end.frames
    snapshot.last_time = end.last_time
    snapshot.unread = mail.count
    snapshot.whole = end.whole
    return snapshot


def _state(
    number: int, ours: ConnectionView, theirs: ConnectionView, to_client: Mail, to_server: Mail
) -> str:
    """The state of a channel when all frames have arrived: then it is the same for both."""
    channel = ours.table.channels.get(number)
    mail = to_client
    if channel is None:
        channel = theirs.table.channels.get(number)
        mail = to_server
    state = CLOSED if channel is None else channel.state
    way = mail.channels.get(number)
    if way is not None:
        for step in way.steps:
            state = CHANNEL.after(state, step)
    return state


def _channel(
    number: int, state: str, ours: ConnectionView, theirs: ConnectionView, to_client: Mail, to_server: Mail
) -> ChannelSnapshot:
    snapshot = ChannelSnapshot(number, state)
    server = theirs.table.channels.get(number)
    if server is not None:
        snapshot.deliveries = server.deliveries.last
        snapshot.server_stopped = server.server_stopped
    client = ours.table.channels.get(number)
    if client is None:
        return snapshot
    inbound = to_client.channels.get(number) or Amqp091InFlight()
    snapshot.client_stopped = client.client_stopped
    snapshot.transacted = client.transacted
    if len(client.consumers.windows) > 0 and client.consumers.windows.newest() < UNLIMITED:
        snapshot.prefetch = client.consumers.windows.newest()
    if client.publishes.confirming:
        snapshot.confirming = True
        snapshot.published = client.publishes.count
        outbound = to_server.channels.get(number) or Amqp091InFlight()
        snapshot.unconfirmed = outbound.publishes
        if server is not None and server.publishes.confirming and not outbound.opened:
            snapshot.unconfirmed += len(server.publishes.unconfirmed)
        else:
            snapshot.unconfirmed -= outbound.unselected
    # What is over, by the request for it: queues, and consumers; and the tags that the server chose.
    queues: dict[str, MethodRequest] = {}
    cancelled: dict[str, MethodRequest] = {}
    chosen: list[str] = []
    for request in client.requests.by_client:
        answer = _answer(request, inbound)
        if not answer:
            if snapshot.asked == 0:
                snapshot.first_asked = request.name
                snapshot.asked_time = request.time
            snapshot.asked += 1
        elif answer == "queue.delete-ok":
            if request.subject:
                queues[request.subject] = request
        elif answer == "basic.cancel-ok":
            cancelled[request.subject] = request
        elif answer == "basic.consume-ok":
            tag = inbound.tags.pop(0)
            if not request.subject:
                chosen.append(tag)
        elif answer == "basic.get-ok" and request.subject == NO_ACK:
            inbound.deliveries[_GET] -= 1
    over = Over(queues, cancelled, inbound.cancelled)
    _add_consumers(snapshot, client, inbound, over, chosen)
    return snapshot


class Over:
    """Which consumers have ended once all frames have arrived.

    queues, cancelled: by the answered requests to delete a queue, or to cancel a consumer. by_server: tags.
    """

    def __init__(
        self, queues: dict[str, MethodRequest], cancelled: dict[str, MethodRequest], by_server: set[str]
    ) -> None:
        self.queues: dict[str, MethodRequest] = queues
        self.cancelled: dict[str, MethodRequest] = cancelled
        self.by_server: set[str] = by_server

    def has(self, tag: str, consumer: Consumer) -> bool:
        """Whether this consumer has ended; not if it started after the request."""
        if tag in self.by_server:
            return True
        request = self.cancelled.get(tag)
        if request is not None and consumer.end < request.end:
            return True
        request = self.queues.get(consumer.queue)
        return request is not None and consumer.end < request.end


def _answer(request: MethodRequest, way: Amqp091InFlight) -> str:
    """The answer to a request that is on its way, which is no other one's then; "" if none is."""
    for name in request.responses:
        count = way.answers.get(name, 0)
        if count > 0:
            way.answers[name] = count - 1
            return name
    return ""


def _add_consumers(
    snapshot: ChannelSnapshot, client: Channel, way: Amqp091InFlight, over: Over, chosen: list[str]
) -> None:
    """The consumers of a channel, and what is unacknowledged there. chosen: tags of the nameless ones."""
    consumers: list[Consumer] = []
    tags: list[str] = []
    free: set[str] = set()
    for tag, consumer in client.consumers.live.items():
        if consumer.no_ack:
            free.add(tag)
        if not over.has(tag, consumer):
            consumers.append(consumer)
            tags.append(tag)
    at: i64 = 0
    for consumer in client.consumers.nameless:
        tag = ""
        if consumer.waited and at < len(chosen):
            tag = chosen[at]
            at += 1
        if consumer.no_ack:
            free.add(tag)
        if not over.has(tag, consumer):
            consumers.append(consumer)
            tags.append(tag)
    counts: dict[str, int] = {}
    total: i64 = len(client.deliveries.unacknowledged)
    if consumers and total <= MAX_SNAPSHOT_DELIVERIES:
        for delivery in client.deliveries.unacknowledged.entries():
            if delivery.consumer is not None:
                counts[delivery.consumer] = counts.get(delivery.consumer, 0) + 1
    counted = total <= MAX_SNAPSHOT_DELIVERIES
    for tag, count in way.deliveries.items():
        if tag not in free:
            total += count
            counts[tag] = counts.get(tag, 0) + count
    snapshot.unacknowledged = total
    at = 0
    for consumer in consumers:
        if len(snapshot.consumers) >= MAX_SNAPSHOT_LINKS:
            snapshot.more_consumers += 1
            continue
        tag = tags[at]
        at += 1
        one = ConsumerSnapshot(tag, consumer.queue)
        one.no_ack = consumer.no_ack
        one.exclusive = consumer.exclusive
        if consumer.limit < UNLIMITED:
            one.prefetch = consumer.limit
        if counted:
            one.unacknowledged = counts.get(tag, 0)
        snapshot.consumers.append(one)
