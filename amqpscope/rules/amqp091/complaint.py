"""What a close says that it is for: a message too large, an acknowledgement too late, a frame that had to be
taken.

The words of a close are its sender's own, so nothing here is more than possible, but what stands in the
method itself. Sources: classes basic and connection of amqp0-9-1.xml, sections 4.2.3 and 4.2.7, RabbitMQ's
errata and its guide to consumers.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.sizes import ALWAYS_TAKEN
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.deliveries import Delivery
from amqpscope.tracking.amqp091.requests import Request
from dissectors.wire import i64

__all__ = ["judge_close", "judge_connection_close", "judge_recover_async"]

# Methods that a close names, by class-id and method-id.
_CONSUME: Final = (60, 20)
_PUBLISH: Final = (60, 40)
_GET: Final = (60, 70)

# A close that is about whether deliveries are acknowledged uses one of these words.
_OF_ACKS: Final = ("no-ack", "no_ack", "noack", "no ack", "auto-ack", "auto_ack", "autoack", "acknowledg")

# Replies about a frame: frame error, command invalid, unexpected frame.
_OF_FRAMES: Final = (501, 503, 505)

# Octets of the protocol header, before the first frame.
_HEADER: Final = 8


_SHORTEST_WAIT: Final = 1_000_000_000
"""No server gives up sooner (ns)."""


def acknowledged_too_late(case: Case, channel: Channel, oldest: Delivery) -> None:
    """A client leaves a delivery unacknowledged for longer than the server waits.

    Why it matters: RabbitMQ closes the channel after half an hour, unless it is told otherwise; all that is
    unacknowledged on it is delivered again.
    Silent when: the server's close does not say that the time ran out, or no delivery is known that was
    unacknowledged for a second.
    Only possible because: How long the server waits is not told, nor which delivery it means; the oldest is
    shown.
    """
    record = case.record
    waited = (record.time - oldest.time) // 1_000_000_000
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction, record.packet, record.time, case.peer.sent_end, case.name, channel.number
    )
    case.report(
        "amqp091/B-ACK-TIMEOUT",
        f"delivery-tag {oldest.tag} is unacknowledged after {waited} s, and the server closes the channel",
        POSSIBLE,
        {"delivery_tag": oldest.tag, "seconds": int(waited)},
        [int(oldest.packet)],
    )
    case.spot = before


def content_too_large(case: Case, channel: Channel, code: i64) -> None:
    """A client publishes a message larger than the server takes.

    Why it matters: the server closes the channel, with 311 or, RabbitMQ, with 406; what was published behind
    it is lost, too.
    Silent when: the server's close does not name basic.publish, or does not say that it is for the size.
    Only possible because: Which of several messages it was the close does not tell; the last is shown that
    the server can have read.
    """
    record = case.record
    closing = int(record.packet)
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction,
        channel.publish_packet,
        channel.publish_time,
        channel.publish_end,
        "basic.publish",
        channel.number,
    )
    case.report(
        "amqp091/B-CONTENT-TOO-LARGE",
        f"the server takes no message of this size, it closes the channel with {code} (packet {closing})",
        POSSIBLE,
        {"reply_code": int(code)},
        [closing],
    )
    case.spot = before


def consumer_without_acks_refused(case: Case, request: Request) -> None:
    """A server says that it does not implement no-ack, which a basic.consume or basic.get asks for.

    Why it matters: deliveries without acknowledgements have to be there. Streams of RabbitMQ's have none.
    Silent when: the reply-code is not 540, the close has no word of acknowledgements, or more than one
    request can be meant.
    Only possible because: The close may mean something else.
    """
    case.report(
        "amqp091/B-NOACK-SUPPORT",
        f"{request.name} with no-ack in packet {request.packet} is refused",
        POSSIBLE,
        others=[int(request.packet)],
    )


def consumer_with_acks_refused(case: Case, request: Request) -> None:
    """A server says that it does not implement acknowledgements, which a basic.consume or basic.get asks for.

    Why it matters: without them what a client loses is lost; they have to be there.
    Silent when: the reply-code is not 540, the close has no word of acknowledgements, or more than one
    request can be meant.
    Only possible because: The close may mean something else.
    """
    case.report(
        "amqp091/B-ACK-SUPPORT",
        f"{request.name} without no-ack in packet {request.packet} is refused",
        POSSIBLE,
        others=[int(request.packet)],
    )


def deprecated_recover(case: Case) -> None:
    """A client sends basic.recover-async.

    Why it matters: hardly; it is out of date, and basic.recover does the same and is answered.
    Silent when: the same was told of the connection before.
    """
    case.report_once("amqp091/B-RECOVER-ASYNC-OLD", "basic.recover stands in its place", CERTAIN, {})


def small_frame_refused(case: Case, most: i64) -> None:
    """Before tune-ok a server closes the connection because of the size of a frame that it has to take.

    Why it matters: until frame-max is agreed every peer takes frames of 4096 octets; a client with a large
    token in its start-ok cannot log in.
    Silent when: the reply-code is not 501, the close does not tell of a size, or the client has sent more
    than 4096 octets in all.
    Only possible because: The close may mean something else.
    """
    case.report(
        "amqp091/F-PRETUNE-ACCEPT",
        f"501 for the size of a frame, and none had more than {most} octets",
        POSSIBLE,
        {"octets": int(most)},
    )


def heartbeat_refused(case: Case, code: i64) -> None:
    """A peer closes an open connection because of a heartbeat, which it need only drop.

    Why it matters: who does no heartbeats is to take no notice of them; the connection is lost for nothing.
    Silent when: heartbeats are agreed on, the reply-code is not that of a frame (501, 503, 505), or the close
    does not tell of a heartbeat.
    Only possible because: The close may mean something else.
    """
    case.report(
        "amqp091/F-HEARTBEAT-DISCARD",
        f"{code} for a heartbeat, on a connection without heartbeats",
        POSSIBLE,
        {"reply_code": int(code)},
    )


def judge_recover_async(case: Case) -> None:
    """A client's basic.recover-async."""
    deprecated_recover(case)


def judge_close(case: Case, channel: Channel, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """A server's channel.close."""
    words = text.lower()
    named = (int(class_id), int(method_id))
    if code == 406 and "timed out" in words and "ack" in words:
        delivery = channel.deliveries.oldest()
        if delivery is not None and case.record.time - delivery.time >= _SHORTEST_WAIT:
            acknowledged_too_late(case, channel, delivery)
    elif named == _PUBLISH:
        if channel.publish_end >= 0 and (code == 311 or (code == 406 and "message size" in words)):
            content_too_large(case, channel, code)
    elif code == 540 and named in (_CONSUME, _GET):
        judge_refused_mode(case, words, named)


def judge_connection_close(case: Case, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """A connection.close of either peer."""
    view = case.view
    words = text.lower()
    if view.state == "OPEN":
        if code in _OF_FRAMES and view.heartbeat == 0 and "heartbeat" in words and case.me.whole:
            heartbeat_refused(case, code)
        named = (int(class_id), int(method_id))
        if code == 540 and not case.me.by_client and named in (_CONSUME, _GET):
            judge_refused_mode(case, words, named)
    elif code == 501 and not case.me.by_client and view.tune_ok_end < 0 and case.me.whole and case.peer.whole:
        most = case.peer.sent_end - _HEADER
        if 0 < most <= ALWAYS_TAKEN and "frame" in words:
            if "too large" in words or "too big" in words or "frame_max" in words or "frame size" in words:
                small_frame_refused(case, most)


def judge_refused_mode(case: Case, words: str, named: tuple[int, int]) -> None:
    """A 540 for a consume or a get: whether it is about acknowledgements."""
    if not any(word in words for word in _OF_ACKS):
        return
    name = "basic.consume" if named == _CONSUME else "basic.get"
    found: Request | None = None
    without = False
    for channel in case.view.channels.values():
        if not channel.is_open:
            continue
        for request in channel.requests:
            if request.name != name:
                continue
            if found is not None or not channel.whole:
                return
            found = request
            if name == "basic.get":
                without = request.subject == "no-ack"
            else:
                consumer = _begun(channel, request)
                if consumer is None:
                    return
                without = consumer.no_ack
    if found is None:
        return
    if without:
        consumer_without_acks_refused(case, found)
    else:
        consumer_with_acks_refused(case, found)


def _begun(channel: Channel, request: Request) -> Consumer | None:
    """The consumer that a basic.consume begins."""
    if request.subject:
        return channel.consumers.live.get(request.subject)
    for consumer in channel.consumers.nameless:
        if consumer.end == request.end:
            return consumer
    return None


RULES = {
    "amqp091/B-ACK-TIMEOUT": acknowledged_too_late,
    "amqp091/B-CONTENT-TOO-LARGE": content_too_large,
    "amqp091/B-NOACK-SUPPORT": consumer_without_acks_refused,
    "amqp091/B-ACK-SUPPORT": consumer_with_acks_refused,
    "amqp091/B-RECOVER-ASYNC-OLD": deprecated_recover,
    "amqp091/F-PRETUNE-ACCEPT": small_frame_refused,
    "amqp091/F-HEARTBEAT-DISCARD": heartbeat_refused,
}
