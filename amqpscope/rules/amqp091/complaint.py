"""Faults that show only in a close and its reply-text: a message is too large, an acknowledgement comes too
late, a frame is refused that must be accepted.

The reply-text is the sender's own wording, so a finding is certain only if the method itself shows the fault.
Sources: classes basic and connection of amqp0-9-1.xml, sections 4.2.3 and 4.2.7, RabbitMQ's errata and its
guide to consumers.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.sizes import ALWAYS_TAKEN
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.requests import MethodRequest
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.reply_code import reply_code
from dissectors.wire import i64

__all__ = ["judge_close", "judge_connection_close", "judge_recover_async"]

RULES: Final = Rules("amqp091/complaint")


# Methods that a close names, by class-id and method-id.
_CONSUME: Final = (60, 20)
_PUBLISH: Final = (60, 40)
_GET: Final = (60, 70)

# The reply-text of a close about acknowledgements contains one of these words.
_OF_ACKS: Final = ("no-ack", "no_ack", "noack", "no ack", "auto-ack", "auto_ack", "autoack", "acknowledg")

# Replies about a frame: frame error, command invalid, unexpected frame.
_OF_FRAMES: Final = (501, 503, 505)

# Octets of the protocol header, before the first frame.
_HEADER: Final = 8


_SHORTEST_WAIT: Final = 1_000_000_000
"""No server gives up sooner (ns)."""


B_ACK_TIMEOUT: Final = RULES.rule(
    "B-ACK-TIMEOUT", "IMPLIED", "tier B", by="client", answer="channel.close 406"
)


def acknowledged_too_late(case: Case091, channel: Channel, oldest: ConsumerDelivery) -> None:
    """A client leaves a delivery unacknowledged for longer than the server waits.

    Demands: A client must settle each delivery within the server's consumer timeout (RabbitMQ: 30 minutes by
    default).
    Source: RMQ:docs/consumers (acknowledgement timeout)
    Evidence: a channel.close with reply-code 406 (precondition-failed) and the words "timed out", and the
    oldest unacknowledged delivery
    Why it matters: By default, RabbitMQ closes the channel when a delivery is unacknowledged for half an
    hour. After closing the channel, RabbitMQ redelivers all messages that were unacknowledged on this
    channel.
    Silent when: the reply-text of the server's close does not say that an acknowledgement has timed out. The
    rule is also silent when amqpscope knows of no delivery that was unacknowledged for at least a second.
    Only possible because: The capture does not show how long the server waits, or for which delivery the
    server has waited too long. The finding shows the oldest unacknowledged delivery.
    How to mend it: Acknowledge or reject each delivery within the server's consumer timeout. Raise the
    timeout of the server, move long work elsewhere, or lower prefetch-count so that deliveries do not wait in
    the client.
    """
    record = case.record
    waited = (record.time - oldest.time) // 1_000_000_000
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction, record.packet, record.time, case.peer.sent_end, case.name, channel.number
    )
    case.report(
        B_ACK_TIMEOUT,
        f"the client has not acknowledged delivery-tag {oldest.tag} for {waited} s, so the server closes "
        "the channel",
        POSSIBLE,
        {"delivery_tag": oldest.tag, "seconds": int(waited)},
        [int(oldest.packet)],
    )
    case.spot = before


B_CONTENT_TOO_LARGE: Final = RULES.rule(
    "B-CONTENT-TOO-LARGE", "IMPLIED", "tier B", by="client", answer="channel.close 311"
)


def content_too_large(case: Case091, channel: Channel, code: i64) -> None:
    """A client publishes a message that is larger than the server accepts.

    Demands: A client must not publish a message that is larger than the server accepts.
    Source: XML constant content-too-large; RMQ:server rabbit_channel check_msg_size
    Evidence: the body size of the message, and the server's close with reply-code 311
    (content-too-large), 406 (precondition-failed) or 501 (frame-error)
    Why it matters: RabbitMQ closes the channel with reply-code 406 (precondition-failed), and other servers
    with reply-code 311 (content-too-large). Messages that were published after the large message are also
    lost.
    Silent when: the server's close does not name basic.publish as its cause, or its reply-text does not give
    the size as the reason.
    Only possible because: The close does not show which of several messages is too large. The finding shows
    the last message that the server could have read.
    How to mend it: Check the size of the body before basic.publish and keep it below the server's limit.
    Split or compress large payloads, or store them elsewhere and publish a reference.
    """
    record = case.record
    closing = int(record.packet)
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction,
        channel.last_publish.packet,
        channel.last_publish.time,
        channel.last_publish.end,
        "basic.publish",
        channel.number,
    )
    case.report(
        B_CONTENT_TOO_LARGE,
        f"the message is larger than the server accepts: the server closes the channel in packet {closing} "
        f"with {reply_code(int(code))}",
        POSSIBLE,
        {"reply_code": int(code)},
        [closing],
    )
    case.spot = before


B_NOACK_SUPPORT: Final = RULES.rule("B-NOACK-SUPPORT", "MUST", "tier B", by="server")


def consumer_without_acks_refused(case: Case091, request: MethodRequest) -> None:
    """A server refuses a basic.consume or basic.get that sets no-ack, and says that it does not implement
    no-ack.

    Demands: A server must support consumers without acknowledgements (no-ack).
    Source: XML:basic.09
    Evidence: the server's answer to a basic.consume or basic.get that sets no-ack
    Why it matters: The specification requires servers to support deliveries without acknowledgements.
    RabbitMQ's streams require acknowledgements.
    Silent when: the reply-code is not 540 (not-implemented), or when the reply-text does not mention
    acknowledgements. The rule is also silent when more than one request may have caused the close.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Support basic.consume and basic.get with no-ack: treat each delivery as settled when it is
    sent. Clients that consume from a RabbitMQ stream must not set no-ack.
    """
    case.report(
        B_NOACK_SUPPORT,
        f"the server refuses the {request.name} in packet {request.packet} because no-ack is set, but "
        "servers must support no-ack",
        POSSIBLE,
        others=[int(request.packet)],
    )


B_ACK_SUPPORT: Final = RULES.rule("B-ACK-SUPPORT", "MUST", "tier B", by="server")


def consumer_with_acks_refused(case: Case091, request: MethodRequest) -> None:
    """A server refuses a basic.consume or basic.get without no-ack, and says that it does not implement
    acknowledgements.

    Demands: A server must support consumers with acknowledgements.
    Source: XML:basic.10
    Evidence: the server's answer to a basic.consume or basic.get without no-ack
    Why it matters: The specification requires servers to support acknowledgements. Without acknowledgements,
    a message that the client loses is lost for good.
    Silent when: the reply-code is not 540 (not-implemented), or when the reply-text does not mention
    acknowledgements. The rule is also silent when more than one request may have caused the close.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Support basic.consume and basic.get without no-ack: keep each delivery until the client
    settles the delivery. If the channel ends before the client settles the delivery, requeue the delivery.
    """
    case.report(
        B_ACK_SUPPORT,
        f"the server refuses the {request.name} in packet {request.packet} because no-ack is not set, but "
        "servers must support acknowledgements",
        POSSIBLE,
        others=[int(request.packet)],
    )


B_RECOVER_ASYNC_OLD: Final = RULES.rule(
    "B-RECOVER-ASYNC-OLD",
    "IMPLIED",
    "tier C",
    by="client",
    note="The specification names no error for this fault, and both peers continue.",
)


def deprecated_recover(case: Case091) -> None:
    """A client sends basic.recover-async, which the specification has deprecated.

    Demands: A client must use basic.recover instead of the deprecated basic.recover-async.
    Source: XML:basic.recover-async (deprecated=1)
    Evidence: each basic.recover-async of the client
    Why it matters: The fault does little harm, because servers still support basic.recover-async. The method
    basic.recover has the same effect, and the server answers it with basic.recover-ok.
    Silent when: the rule has already reported a basic.recover-async on the same connection.
    How to mend it: Replace basic.recover-async by basic.recover, and wait for basic.recover-ok before relying
    on the redelivery.
    """
    case.report_once(
        B_RECOVER_ASYNC_OLD,
        "the peer sends the deprecated basic.recover-async instead of basic.recover",
        CERTAIN,
        {},
    )


F_PRETUNE_ACCEPT: Final = RULES.rule("F-PRETUNE-ACCEPT", "MUST", "tier B")


def small_frame_refused(case: Case091, most: i64) -> None:
    """Before connection.tune-ok, a server refuses a frame of at most 4096 octets because of the size of the
    frame.

    Demands: Until the peers have agreed on frame-max, both peers must accept every frame of up to 4096
    octets.
    Source: XML:connection.tune.frame-max.minimum; XML:connection.tune-ok.frame-max.minimum
    Evidence: a frame of at most 4096 octets before connection.tune-ok, and the following connection.close
    with reply-code 501 (frame-error)
    Why it matters: A client with a large token in connection.start-ok cannot log in.
    Silent when: the reply-code is not 501 (frame-error), or when the reply-text does not mention a size.
    The rule is also silent when the client has sent more than 4096 octets in all.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Accept frames of up to 4096 octets from the first frame on, until connection.tune-ok sets
    frame-max. Look for smaller size limits that apply before authentication, and raise them.
    """
    case.report(
        F_PRETUNE_ACCEPT,
        "connection.close has reply-code 501 (frame-error) because of the size of a frame, but the largest "
        f"frame had {most} octets, and frames of up to 4096 octets must be accepted",
        POSSIBLE,
        {"octets": int(most)},
    )


F_HEARTBEAT_DISCARD: Final = RULES.rule("F-HEARTBEAT-DISCARD", "MUST", "tier B")


def heartbeat_refused(case: Case091, code: i64) -> None:
    """A peer that does not use heartbeats closes an open connection because it received a heartbeat.

    Demands: A peer that does not use heartbeats must discard received heartbeat frames without raising an
    error.
    Source: GS:4.2.7
    Evidence: a heartbeat, followed by a connection.close that mentions the heartbeat and has the reply-code
    of a frame error
    Why it matters: A peer without heartbeats only has to ignore heartbeat frames. The connection is lost for
    no reason.
    Silent when: the peers agreed to use heartbeats. The rule is also silent when the reply-code is not one of
    501 (frame-error), 503 (command-invalid) and 505 (unexpected-frame). The rule is also silent when the
    reply-text does not mention a heartbeat.
    Only possible because: The {peer} may have sent the close for another reason.
    How to mend it: Discard heartbeat frames without raising an error, even when the heartbeat delay is agreed
    as 0. Handle heartbeat frames before checking the channel or the state.
    """
    case.report(
        F_HEARTBEAT_DISCARD,
        f"connection.close has reply-code {reply_code(int(code))} because of a heartbeat, but a peer "
        "that does not use heartbeats must ignore heartbeat frames",
        POSSIBLE,
        {"reply_code": int(code)},
    )


def judge_recover_async(case: Case091) -> None:
    """A client's basic.recover-async."""
    deprecated_recover(case)


def judge_close(case: Case091, channel: Channel, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """A server's channel.close."""
    words = text.lower()
    named = (int(class_id), int(method_id))
    if code == 406 and "timed out" in words and "ack" in words:
        delivery = channel.deliveries.oldest()
        if delivery is not None and case.record.time - delivery.time >= _SHORTEST_WAIT:
            acknowledged_too_late(case, channel, delivery)
    elif named == _PUBLISH:
        if channel.last_publish.end >= 0 and (code == 311 or (code == 406 and "message size" in words)):
            content_too_large(case, channel, code)
    elif code == 540 and named in (_CONSUME, _GET):
        judge_refused_mode(case, words, named)


def judge_connection_close(case: Case091, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """A connection.close of either peer."""
    view = case.view
    words = text.lower()
    if view.state == OPEN:
        if code in _OF_FRAMES and view.agreed.heartbeat == 0 and "heartbeat" in words and case.me.whole:
            heartbeat_refused(case, code)
        named = (int(class_id), int(method_id))
        if code == 540 and not case.me.by_client and named in (_CONSUME, _GET):
            judge_refused_mode(case, words, named)
    elif code == 501 and not case.me.by_client and view.agreed.end < 0 and case.me.whole and case.peer.whole:
        most = case.peer.sent_end - _HEADER
        if 0 < most <= ALWAYS_TAKEN and "frame" in words:
            if "too large" in words or "too big" in words or "frame_max" in words or "frame size" in words:
                small_frame_refused(case, most)


def judge_refused_mode(case: Case091, words: str, named: tuple[int, int]) -> None:
    """A close with 540 that names basic.consume or basic.get: whether it is about acknowledgements."""
    if not any(word in words for word in _OF_ACKS):
        return
    name = "basic.consume" if named == _CONSUME else "basic.get"
    found: MethodRequest | None = None
    without = False
    for channel in case.view.table.channels.values():
        if not channel.is_open:
            continue
        for request in channel.requests.by_client:
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


def _begun(channel: Channel, request: MethodRequest) -> Consumer | None:
    """The consumer that a basic.consume starts."""
    if request.subject:
        return channel.consumers.live.get(request.subject)
    for consumer in channel.consumers.nameless:
        if consumer.end == request.end:
            return consumer
    return None
