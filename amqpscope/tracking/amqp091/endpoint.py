"""One end of an AMQP 0-9-1 connection: what it has sent, what it can have received, what it must have read.

Theory of operation. An endpoint knows at once what it sends itself, and knows a frame of its peer from when
the frame can have arrived (see `tracking.inbox`). Both are passed to the `ConnectionView` of this endpoint,
which therefore always shows what this endpoint could know. Of frames with content only two things matter to
the other peer: the method, and that the content is complete.

Unreadable values are unknown (see `tracking.knowledge`). If the arguments of a method were misread, only its
name counts, and the connection is not whole from then on. A name that is not UTF-8 is `names.UNREADABLE`; if
it decides which consumers exist, the channel is not whole until it is opened again. The same holds after
content that is out of order. Entries may exist in the part of a table that was not read
(`PeerProperties.lacks`).

What proves that an endpoint has read something (`Knowledge.must`): an answer, which names its request by its
kind; an acknowledgement, which names a delivery; a confirm, which names a message.
"""

from typing import Any, Final

from amqpscope.limits import HEARTBEAT_SLACK, MAX_SILENCES
from amqpscope.model.records import CLIENT, FrameRecord, FrameRef
from amqpscope.tracking.amqp091.connection_view import ConnectionView
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.inbox import Arrival, Recipient
from amqpscope.tracking.knowledge import CONNECTION
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import (
    BasicAck,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ConnectionClose,
)
from dissectors.amqp091.portable import dump_method, load_method
from dissectors.amqp091.problems import MISREAD, NO_BODY, NO_HEADER, OUT_OF_ORDER, UNREADABLE, UNSETTLED
from dissectors.amqp091.registry import new_method
from dissectors.foreign import FOREIGN
from dissectors.interface import Frame
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = [
    "ALL",
    "CHANNEL",
    "NOTHING",
    "Endpoint091",
    "another_beginning",
    "as_read",
    "completed_publish",
    "given_up_after",
    "out_of_order",
    "unreadable",
]

# How much is unknown since a frame that names what does not exist: its channel, or all of the connection.
NOTHING: Final = 0
CHANNEL: Final = 1
ALL: Final = 2

# Octets of a frame without payload.
_EMPTY: Final = 8


def unreadable(frame: Frame) -> bool:
    """Whether a frame has faults after which its meaning is unknown.

    A content header with its fixed part gives what counts: the size of the body. A heartbeat with a payload,
    or a body that is too long, may have swallowed the next frames, or be something else.
    """
    kind = frame.kind
    if kind == "method":
        return any(problem.code in UNREADABLE for problem in frame.problems)
    if kind == "content-header":
        return frame.body is None or any(problem.code in UNSETTLED for problem in frame.problems)
    if kind == "heartbeat":
        return frame.declared_size > _EMPTY
    if kind == "body":
        return any(problem.code in NO_BODY for problem in frame.problems)
    return kind == "skipped" or kind == "unknown"


def as_read(frame: Frame, method: Method) -> Method:
    """The method of a frame with problems, without its arguments if they were misread."""
    if not any(problem.code in MISREAD for problem in frame.problems):
        return method
    definition = method.definition()
    return new_method(definition.class_id, definition.method_id) or method


def out_of_order(frame: Frame) -> bool:
    """Whether a frame has faults after which nobody knows which messages its receiver accepts."""
    return any(problem.code in OUT_OF_ORDER for problem in frame.problems)


def given_up_after(delay: i64) -> i64:
    """After what silence (ns) of a peer the other may close its socket: two heartbeat delays (s), nearly."""
    return 2 * delay * 1_000_000_000 - HEARTBEAT_SLACK


def completed_publish(record: FrameRecord, view: ConnectionView) -> Publish | None:
    """The message that the client publishes and that this frame completes, or None."""
    message = record.message
    if message is None or not isinstance(message, Amqp091Message) or isinstance(record.frame.body, Method):
        return None  # a method ends a content that never came, or begins one
    method = message.method
    if not isinstance(method, BasicPublish) or message.seen < message.announced:
        return None
    frame = record.frame
    channel = view.channel(frame.channel)
    end = frame.offset + frame.size
    if channel is None:
        return Publish(method, message.announced, end, record.packet, record.last_time)
    packet = channel.last_publish.packet
    return channel.publishes.complete(method, message.announced, end, packet, record.last_time)


class PendingReaction:
    """The first fault of the other peer on which an endpoint has to react."""

    def __init__(self) -> None:
        # The kind of reaction that is due, "" for none, "over" when it has come.
        self.kind: str = ""
        # The offset behind the offending frame in the other peer's stream, and its packet.
        self.end: i64 = 0
        self.packet: i64 = 0
        # The channel of that frame. Brokers give each channel a process of its own: what was read on another
        # one proves nothing of it.
        self.channel: i64 = 0


class Disorder:
    """Arrives after a frame that is out of order: the state of its channel is in doubt."""


def another_beginning(frame: Frame) -> str:
    """What these first octets of a stream are, "" if they are a protocol header or a frame."""
    for problem in frame.problems:
        if problem.code in (NO_HEADER, FOREIGN):
            return problem.reason
    return ""


def _ours(header: ProtocolHeader) -> bool:
    """Whether the header requests AMQP 0-9-1, or 0-9, which has the same set-up and frames.

    Some clients of 0-9-1 request 0-9, such as aioamqp. After any other header, the client's octets are not
    examined.
    """
    return header.protocol() in ("AMQP 0-9-1", "AMQP 0-9")


class Endpoint091(Recipient):
    """One end of a connection.

    peer: `client` or `server`. whole: its stream was captured from the start without a hole, and so was what
    it can have received. view: the connection as it could know it. sent_end: octets of its stream so far.
    frames: how many it sent. opening: the place of its first frame, if its stream was captured from the
    start; misbegun: what its stream began with, "" if with a protocol header or a frame. unfinished: the
    frame in which its stream ended. pending: the fault of the other peer on which it has to react.

    last_time, last_packet: of its last frame's last octet (ns), first octet. silences: its last ones between
    two frames for which the peer may give it up: since, until (ns).

    closed_could: how many octets of the peer's stream it could know when it sent connection.close, else -1.
    tuned_time: of its first frame for which it knew the heartbeat delay, 0 if there was none. blocked_time:
    of its first frame since it could know that the connection is blocked, 0 if it is not. broken_at: where
    its first broken frame begins, by the rules of framing, -1 if there is none. torn: nobody knows what its
    last frame means, nor how much of the peer's stream it could know at its end.
    """

    def __init__(self, peer: str) -> None:
        super().__init__()
        self.peer: str = peer
        self.by_client: bool = peer == CLIENT
        self.whole: bool = True
        # Who sends deliveries counts them.
        self.view: ConnectionView = ConnectionView(not self.by_client)
        # The channel on which a return is on its way to it, and its content header is not yet.
        self.returning: i64 = -1
        self.frames: i64 = 0
        self.opening: FrameRef | None = None
        self.misbegun: str = ""
        self.unfinished: FrameRef | None = None
        self.pending: PendingReaction = PendingReaction()
        self.last_time: i64 = 0
        self.silences: tuple[tuple[int, int], ...] = ()
        self.last_packet: i64 = 0
        self.closed_could: i64 = -1
        self.tuned_time: i64 = 0
        self.blocked_time: i64 = 0
        self.broken_at: i64 = -1
        self.torn: bool = False

    def lost(self) -> None:
        """Something is missing of what the endpoint sent or could know."""
        self.whole = False
        self.view.lost()

    def disturb(self, channel: i64, astray: i64) -> None:
        """The endpoint sends a frame whose meaning nobody knows. astray: NOTHING, CHANNEL or ALL."""
        if astray == ALL:
            self.lost()
        elif astray == CHANNEL:
            self.view.disorder(channel)

    # What it could have known

    def catch_up(self, acknowledged: i64, peer_sent: i64) -> None:
        super().catch_up(acknowledged, peer_sent)
        if self.torn:
            # What is not understood of this endpoint may have answered all that.
            self.torn = False
            self.lost()

    def deliver(self, record: FrameRecord, publish: Publish | None) -> None:
        """The peer sent a frame: it is on its way. publish: the message of the client that it completes.

        Arrivals are a Method, a Publish, a ContentHeader, a ProtocolHeader, or the fact that something is
        lost.
        """
        frame = record.frame
        body = frame.body
        lost = not record.started
        if isinstance(body, UnknownMethod):
            body = None
        if frame.problems:
            if isinstance(body, Method):
                body = as_read(frame, body)
            lost = lost or unreadable(frame)
        if publish is None and not lost:
            if not isinstance(body, (Method, ProtocolHeader, ContentHeader)):
                return
            if isinstance(body, ContentHeader):
                # Of a return's message the size matters to the client; of a delivery's to its sender alone.
                if frame.channel != self.returning:
                    return
                self.returning = -1
            elif isinstance(body, BasicReturn):
                self.returning = frame.channel
        end = frame.offset + frame.size
        if frame.kind == "skipped":
            # Of a stretch that was not captured it could have known any part.
            end = frame.offset + 1
        said: object = body if publish is None else publish
        self.post(Arrival(said, frame.channel, end, record.packet, record.last_time, lost))

    def deliver_disorder(self, record: FrameRecord, lost: bool) -> None:
        """After this frame of the peer its channel is unknown; or the whole connection, if `lost`."""
        frame = record.frame
        end = frame.offset + frame.size
        self.post(Arrival(Disorder(), frame.channel, end, record.packet, record.last_time, lost))

    def receive(self, arrival: Arrival) -> None:
        body = arrival.body
        if isinstance(body, Method):
            self.view.method(
                not self.by_client, arrival.channel, body, arrival.end, arrival.packet, arrival.time
            )
        elif isinstance(body, Publish):
            self.view.publish(arrival.channel, body)
        elif isinstance(body, ContentHeader):
            channel = self.view.channel(arrival.channel)
            if channel is not None:
                channel.content(body)
        elif isinstance(body, Disorder):
            self.view.disorder(arrival.channel)
        elif isinstance(body, ProtocolHeader):
            self.view.header(not self.by_client, body)
            if not self.by_client and not _ours(body):
                self.lost()
        if arrival.lost:
            self.lost()

    # What it sends

    def send(self, record: FrameRecord, publish: Publish | None) -> None:
        """This endpoint sends a frame, which was judged before. publish: the message that it completes."""
        frame = record.frame
        end = frame.offset + frame.size
        self.sent_end = end
        if self.frames == 0 and record.started:
            self.opening = FrameRef.of(record)
            self.misbegun = another_beginning(frame)
        self.frames += 1
        if frame.problems and frame.problems[-1].code == "incomplete":
            self.unfinished = FrameRef.of(record)
        delay = self.view.agreed.heartbeat
        if delay > 0 and self.frames > 1 and record.time - self.last_time > given_up_after(delay):
            self.silences = (*self.silences[1 - MAX_SILENCES :], (int(self.last_time), int(record.time)))
        self.last_time = record.last_time
        self.last_packet = record.packet
        body = frame.body
        if isinstance(body, UnknownMethod):
            pass
        elif isinstance(body, Method):
            if frame.problems:
                body = as_read(frame, body)
            if isinstance(body, ConnectionClose) and self.closed_could < 0:
                self.closed_could = self.knowledge.could
            self.view.method(self.by_client, frame.channel, body, end, record.packet, record.last_time)
        elif isinstance(body, ContentHeader):
            if not self.by_client:
                channel = self.view.channel(frame.channel)
                if channel is not None:
                    channel.content(body)
        elif isinstance(body, ProtocolHeader):
            self.view.header(self.by_client, body)
            if self.by_client and not _ours(body):
                self.lost()
        if not self.view.blocking.blocked:
            self.blocked_time = 0
        elif self.blocked_time == 0:
            self.blocked_time = record.last_time
        if self.tuned_time == 0 and self.view.agreed.end >= 0:
            self.tuned_time = record.last_time
        if publish is not None:
            self.view.publish(frame.channel, publish)
        if not frame.problems:
            return
        if unreadable(frame):
            # What it was to set up is not known: what follows rests on it.
            self.lost()
            self.torn = True
        elif out_of_order(frame):
            self.view.disorder(frame.channel)

    def published(self, record: FrameRecord) -> Publish | None:
        """The message of the client's that this frame completes, or None."""
        return completed_publish(record, self.view) if self.by_client else None

    # What its frames prove

    def prove(self, record: FrameRecord) -> None:
        """Draw from a frame of this endpoint which part of the peer's stream it must have processed.

        It counts for the frame's channel, and for the connection as a whole.
        """
        self.knowledge.of(record.frame.channel)
        self._prove(record)
        self.knowledge.of(CONNECTION)

    def _prove(self, record: FrameRecord) -> None:
        frame = record.frame
        body = frame.body
        if not isinstance(body, Method) or isinstance(body, UnknownMethod):
            return
        channel = self.view.channel(frame.channel)
        if channel is None:
            return
        knowledge = self.knowledge
        if isinstance(body, (BasicAck, BasicNack, BasicReject)):
            tag = body.delivery_tag
            if self.by_client:
                delivery = channel.deliveries.unacknowledged.get(tag)
                if delivery is not None:
                    knowledge.prove(delivery.end)
            else:
                publish = channel.publishes.unconfirmed.get(tag)
                if publish is not None:
                    knowledge.prove(publish.end)
            return
        name = body.definition().name
        if name.endswith("-ok") or name == "basic.get-empty":
            at = channel.requests.awaited(self.by_client, name)
            if at >= 0:
                queue = channel.requests.to_answer(self.by_client)
                knowledge.prove(queue[at].end)
            elif name == "channel.close-ok":
                closing = channel.closed_by_server if self.by_client else channel.closed_by_client
                if closing is not None:
                    knowledge.prove(closing.end)
            elif name == "connection.close-ok":
                closing = self.view.ending.by_server if self.by_client else self.view.ending.by_client
                if closing is not None:
                    knowledge.prove(closing.end)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.peer, self.whole, int(self.frames), self.misbegun, self.torn),
            tuple(None if spot is None else spot.dump() for spot in (self.opening, self.unfinished)),
            (self.pending.kind, int(self.pending.end), int(self.pending.packet), int(self.pending.channel)),
            (int(self.last_time), int(self.last_packet), int(self.closed_could), int(self.broken_at)),
            self.silences,
            (int(self.tuned_time), int(self.blocked_time), int(self.returning)),
            self.view.dump(),
            self.dump_reception(_dump_body),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Endpoint091":
        """The object of what `dump` returned."""
        (peer, whole, frames, misbegun, torn), spots, pending_error, last, silences, times = state[:6]
        view, reception = state[6:]
        endpoint = Endpoint091(peer)
        endpoint.torn = torn
        endpoint.misbegun = misbegun
        opening, unfinished = spots
        due = endpoint.pending
        due.kind, due.end, due.packet, due.channel = pending_error
        endpoint.opening = None if opening is None else FrameRef.load(opening)
        endpoint.unfinished = None if unfinished is None else FrameRef.load(unfinished)
        endpoint.whole, endpoint.frames = whole, frames
        endpoint.last_time, endpoint.last_packet, endpoint.closed_could, endpoint.broken_at = last
        endpoint.silences = silences
        endpoint.tuned_time, endpoint.blocked_time, endpoint.returning = times
        endpoint.view = ConnectionView.load(view)
        endpoint.restore_reception(reception, _load_body)
        return endpoint


def _dump_body(body: object) -> tuple[object, ...]:
    if isinstance(body, Method):
        return ("method", *dump_method(body))
    if isinstance(body, Publish):
        return ("publish", *body.dump())
    if isinstance(body, ContentHeader):
        return ("content", body.body_size)
    if isinstance(body, Disorder):
        return ("disorder",)
    if isinstance(body, ProtocolHeader):
        version = (int(body.major), int(body.minor), int(body.revision))
        return ("header", int(body.protocol_id), *version)
    return ("",)


def _load_body(state: tuple[Any, ...]) -> object:
    kind = state[0]
    saved = state[1:]
    if kind == "method":
        return load_method(saved)
    if kind == "publish":
        return Publish.load(saved)
    if kind == "content":
        return ContentHeader(60, 0, saved[0], 0, b"")
    if kind == "disorder":
        return Disorder()
    if kind == "header":
        return ProtocolHeader(*saved)
    return None
