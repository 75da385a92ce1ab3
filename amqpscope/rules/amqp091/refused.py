"""Faults that show when the server refuses, or does not refuse, a publish, an acknowledgement or a recover
(class basic).

Source: the rules of basic.publish and basic.ack in amqp0-9-1.xml, and the reply-codes.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.methods import ChannelClose
from dissectors.wire import i64

__all__ = [
    "judge_close",
    "judge_commit_ok",
    "judge_recovered",
    "judge_refused_immediate",
]

RULES: Final = Rules("amqp091/refused")


B_PUBLISH_XEXIST: Final = RULES.rule(
    "B-PUBLISH-XEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)


def publish_to_no_exchange(
    case: Case091, channel: Channel, exchange: str, publish: tuple[int, int, int]
) -> None:
    """A client publishes a message to an exchange that does not exist.

    Demands: The exchange that basic.publish names must exist.
    Source: XML:basic.publish.exchange.must-exist
    Evidence: the exchanges that amqpscope knows from the capture, and a channel.close with reply-code 404
    (not-found) that names basic.publish as its cause
    Why it matters: The server closes the channel with reply-code 404 (not-found). Messages that were
    published later on the same channel are lost, too.
    Silent when: the server's close does not name basic.publish as its cause, or names an exchange to which no
    message was recently published.
    Only possible because: The server's close does not say which of several messages the server refuses. The
    finding shows the first recent message that the server could have refused.
    How to mend it: Declare the exchange before publishing to it, in the same virtual host, and wait for
    exchange.declare-ok. Check that the exchange name in basic.publish is spelled correctly, and that the
    exchange was not deleted.
    """
    end, packet, time = publish
    record = case.record
    closing = int(record.packet)
    before = case.spot
    case.spot = FrameRef(1 - record.direction, packet, time, end, "basic.publish", channel.number)
    case.report(
        B_PUBLISH_XEXIST,
        f"basic.publish names exchange {exchange!r}, which does not exist; the server closes the channel in "
        f"packet {closing} with 404 (not-found)",
        POSSIBLE,
        {"exchange": exchange},
        [closing],
    )
    case.spot = before


B_PUBLISH_DEFAULT_X: Final = RULES.rule("B-PUBLISH-DEFAULT-X", "MUST", "tier A", by="server")


def default_exchange_refused(case: Case091) -> None:
    """A server says that the exchange of a message does not exist, although the message was published to the
    default exchange.

    Demands: A server must accept basic.publish with an empty exchange name, which means the default exchange.
    Source: XML:basic.publish.exchange.default-exchange
    Evidence: a publish to the default exchange, and a close with reply-code 404 (not-found) that names
    basic.publish, but no close with reply-code 403 (access-refused), which may mean missing access rights
    Why it matters: Every server has a default exchange, to which every queue is bound. Without the default
    exchange, clients cannot publish to a queue by its name.
    Silent when: the capture lacks octets that were sent on the channel before the close. The rule is also
    silent when the client also published to a named exchange on the same channel.
    How to mend it: Accept an empty exchange name in basic.publish, and route the message to the queue whose
    name equals the routing key. Do not look up the empty name among declared exchanges.
    """
    case.report(
        B_PUBLISH_DEFAULT_X,
        "the close has reply-code 404 (not-found) for basic.publish, but all publishes "
        "on this channel use the default exchange, which always exists",
    )


B_IMMEDIATE: Final = RULES.rule("B-IMMEDIATE", "SHOULD", "tier B", by="server")


def immediate_refused(case: Case091) -> None:
    """A server closes the connection because of a message that was published with the immediate flag.

    Demands: A server should return a message with the immediate flag if no consumer can take the message at
    once.
    Source: XML:basic.publish.immediate.01
    Evidence: the immediate bit of basic.publish, and a basic.return with reply-code 313 (no-consumers)
    or a close with reply-code 540 (not-implemented)
    Why it matters: The server should deliver the message at once or return it. RabbitMQ has not supported the
    immediate flag since version 3.0, so the client loses its whole connection.
    Silent when: amqpscope knows of no message that was published with the immediate flag.
    How to mend it: Implement the immediate flag: deliver the message at once, or send basic.return with
    reply-code 313 (no-consumers). When a client publishes to RabbitMQ, replace the immediate flag, for
    example by expiration `0`.
    """
    case.report(
        B_IMMEDIATE,
        "the server closes the connection with 540 (not-implemented) because of a basic.publish with the "
        "immediate flag, but should return the message instead",
    )


B_ACK_TX_IMMEDIATE: Final = RULES.rule("B-ACK-TX-IMMEDIATE", "MUST", "tier A", by="server")


def bad_ack_refused_late(case: Case091, packet: i64) -> None:
    """In a transaction, a server refuses the acknowledgement of an unknown delivery only when tx.commit
    arrives.

    Demands: In a transaction, a server must refuse the acknowledgement of an unknown delivery at once, not at
    tx.commit.
    Source: XML:basic.ack.multiple.exists
    Evidence: the acknowledgement of an unknown delivery in a transaction, and the channel.close before or
    after tx.commit
    Why it matters: The client has continued with its transaction, and then loses the whole transaction.
    Silent when: the capture lacks octets that were sent on the channel before the close, or when the close
    does not name tx.commit as its cause.
    How to mend it: Check the delivery-tag when the acknowledgement arrives, also on a transactional
    channel. If the delivery-tag is unknown, send channel.close with reply-code 406 (precondition-failed)
    at once, and do not wait for tx.commit.
    """
    case.report(
        B_ACK_TX_IMMEDIATE,
        f"the delivery-tag of the acknowledgement in packet {packet} belongs to no delivery, but the server "
        "refuses the acknowledgement only at tx.commit",
        others=[int(packet)],
    )


B_ACK_VALIDATE: Final = RULES.rule(
    "B-ACK-VALIDATE",
    "MUST",
    "tier C",
    by="server",
    note="The specification names no error for this fault, and both peers continue.",
)


def bad_ack_taken(case: Case091, packet: i64) -> None:
    """A server commits a transaction that contains an acknowledgement of an unknown delivery.

    Demands: A server must answer the acknowledgement of an unknown delivery with a channel exception.
    Source: XML:basic.ack.multiple.exists
    Evidence: the acknowledgement of an unknown delivery, and the missing channel.close
    Why it matters: The client does not learn that it has lost count of its deliveries. According to their
    documentation, some servers do not check the acknowledgements of a transaction.
    Silent when: the capture lacks octets that were sent on the channel before the tx.commit-ok. The rule
    reports the fault only once per connection.
    How to mend it: Check the delivery-tag of every acknowledgement in a transaction against the
    unacknowledged deliveries of the channel. If the delivery-tag is unknown, send channel.close with
    reply-code 406 (precondition-failed).
    """
    case.report_once(
        B_ACK_VALIDATE,
        f"the delivery-tag of the acknowledgement in packet {packet} belongs to no delivery, but the server "
        "commits the acknowledgement",
        CERTAIN,
        {},
        [int(packet)],
    )


B_RECOVER_REPLY: Final = RULES.rule(
    "B-RECOVER-REPLY",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def recover_not_answered(case: Case091, request: MethodRequest) -> None:
    """A server completes the close of a channel without having answered a basic.recover on the channel.

    Demands: A server must answer basic.recover with basic.recover-ok, and must not answer
    basic.recover-async.
    Source: G:basic; ERR:28
    Evidence: the basic.recover methods that are not answered
    Why it matters: A client that waits for basic.recover-ok waits forever, or until its timeout ends the
    channel.
    Silent when: the server closes the channel, or when the capture lacks octets that were sent after the
    channel was opened.
    How to mend it: Send basic.recover-ok for every basic.recover, and before the channel.close-ok of the same
    channel. The method basic.recover-async has no answer.
    """
    case.report(
        B_RECOVER_REPLY,
        f"the channel closes, but the server has not answered the basic.recover in packet {request.packet}",
        others=[int(request.packet)],
    )


def _blamed(channel: Channel, text: str) -> str:
    """The exchange of a refused publish: the one in the reply-text, or else the first one that was named."""
    pending = channel.publishes.pending
    last = channel.last_publish.exchange
    names = list(pending)
    if last and last != UNREADABLE and last not in pending:
        names.append(last)
    if "exchange '" in text:
        names = [name for name in names if f"exchange '{name}'" in text]
    found = ""
    for name in names:
        if not found or (name in pending and pending[name][0] < pending[found][0]):
            found = name
    return found


def judge_close(case: Case091, channel: Channel, method: ChannelClose) -> None:
    """A server's channel.close."""
    if method.class_id == 60 and method.method_id == 40 and method.reply_code == 404:
        newest = channel.last_publish
        if newest.end < 0:
            return
        blamed = _blamed(channel, method.reply_text or "")
        if blamed:
            last = (int(newest.end), int(newest.packet), int(newest.time))
            publish_to_no_exchange(case, channel, blamed, channel.publishes.pending.get(blamed, last))
        elif channel.whole and not newest.elsewhere:
            default_exchange_refused(case)
    elif method.class_id == 90 and method.method_id == 20 and method.reply_code == 406:
        if channel.transacted and bad_ack_known(channel):
            bad_ack_refused_late(case, channel.deliveries.pointless_packet)


def judge_commit_ok(case: Case091, channel: Channel) -> None:
    """A server's tx.commit-ok."""
    commit = channel.requests.answers(False, "tx.commit-ok")
    if commit is not None and bad_ack_known(channel) and channel.deliveries.pointless_end < commit.end:
        bad_ack_taken(case, channel.deliveries.pointless_packet)


def bad_ack_known(channel: Channel) -> bool:
    """Whether the server can have read an acknowledgement that names no delivery."""
    deliveries = channel.deliveries
    return deliveries.pointless_end >= 0 and channel.whole and deliveries.whole and deliveries.gapless


def judge_recovered(case: Case091, channel: Channel) -> None:
    """A server's channel.close-ok."""
    closing = channel.closed_by_client
    if closing is None or channel.closed_by_server is not None or not channel.whole:
        return
    for request in channel.requests.by_client:
        if request.name == "basic.recover" and request.end < closing.end:
            recover_not_answered(case, request)
            return


def judge_refused_immediate(case: Case091) -> None:
    """A server's connection.close with 540 that names basic.publish."""
    for channel in case.view.table.channels.values():
        for publish in channel.publishes.flagged:
            if publish.immediate:
                immediate_refused(case)
                return
