"""The messages that a client publishes, and those that the server returns: properties, basic.publish,
basic.return (class basic).

Rules of RabbitMQ and LavinMQ about properties apply only if the server identifies itself as one of them.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import REPLIES
from amqpscope.tracking.amqp091.publishes import NO_CONSUMERS, NO_ROUTE
from amqpscope.tracking.amqp091.states import OPEN
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import HAS_EXPIRATION, HAS_HEADERS, HAS_REPLY_TO, HAS_USER_ID, BasicReturn
from dissectors.amqp091.reply_code import reply_code
from dissectors.amqp091.tables import RABBITMQ, FieldTable
from dissectors.amqp091.values import FieldArray
from dissectors.wire import i64

__all__ = ["judge_properties", "judge_return", "judge_returned"]

RULES: Final = Rules("amqp091/publishing")


_REPLIES: Final = REPLIES.encode()


B_PROP_DELIVERY_MODE: Final = RULES.rule(
    "B-PROP-DELIVERY-MODE",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def odd_delivery_mode(case: Case091, value: i64) -> None:
    """A client publishes a message whose delivery-mode is neither 1 (transient) nor 2 (persistent).

    Demands: The property delivery-mode must be 1 (transient) or 2 (persistent).
    Source: XML class basic field delivery-mode (label)
    Evidence: the property delivery-mode
    Why it matters: RabbitMQ treats every value other than 2 as transient, so the message may be lost at a
    restart. Other brokers may treat a delivery-mode other than 1 or 2 differently.
    Silent when: a server delivers the message, because a server only repeats what a publisher sent. The rule
    reports the fault only once per connection.
    How to mend it: Set delivery-mode to 2 for messages that must survive a broker restart, and to 1 for all
    others. Leave the property out rather than sending 0.
    """
    case.report_once(
        B_PROP_DELIVERY_MODE,
        f"the property 'delivery-mode' is {value}, but only 1 and 2 are allowed",
        CERTAIN,
        {"path": "delivery-mode"},
    )


B_PROP_PRIORITY: Final = RULES.rule(
    "B-PROP-PRIORITY",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def odd_priority(case: Case091, value: i64, certainty: i64) -> None:
    """A client publishes a message with a priority above 9.

    Demands: The property `priority` must lie between 0 and 9.
    Source: XML class basic field priority (label)
    Evidence: the property `priority`
    Why it matters: The specification defines ten priorities, 0 to 9. Each server decides for itself how it
    treats a higher value.
    Silent when: a server delivers the message. The finding is reported as possible, not as certain, for
    RabbitMQ and LavinMQ, whose queues can have priorities up to 255 (x-max-priority). The rule reports the
    fault only once per connection.
    How to mend it: Use priorities from 0 to 9. Use a higher priority only if all brokers are RabbitMQ or
    LavinMQ and the queue is declared with an x-max-priority that is high enough.
    """
    case.report_once(
        B_PROP_PRIORITY,
        f"the property 'priority' is {value}, but the maximum is 9",
        certainty,
        {"path": "priority"},
    )


B_PROP_EXPIRATION: Final = RULES.rule(
    "B-PROP-EXPIRATION", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def odd_expiration(case: Case091, value: str) -> None:
    """A client publishes a message whose property `expiration` is not a number of milliseconds.

    Demands: The property `expiration` must be a string that gives a number of milliseconds in decimal digits.
    Source: RMQ:docs/ttl
    Evidence: the property `expiration`, and the product name of the server
    Why it matters: RabbitMQ does not accept the message, and closes the channel.
    Silent when: the server is neither RabbitMQ nor LavinMQ.
    How to mend it: Write `expiration` as a string of decimal digits that gives the time to live in
    milliseconds, for example `60000`. Leave out units, fractions, minus signs and dates.
    """
    case.report(
        B_PROP_EXPIRATION,
        f"the property 'expiration' is {value!r}, not a number of milliseconds",
        evidence={"path": "expiration"},
    )


B_PROP_USERID: Final = RULES.rule(
    "B-PROP-USERID", "IMPLIED", "tier B", by="client", answer="channel.close 406"
)


def other_user(case: Case091) -> None:
    """A client publishes a message whose user-id is not the user name with which the client logged in.

    Demands: The property user-id must equal the user name with which the client logged in.
    Source: RMQ:docs/validated-user-id
    Evidence: the login in connection.start-ok, and the property user-id
    Why it matters: Receivers of the message treat user-id as verified by the broker. RabbitMQ closes the
    channel if user-id is not the user name of the login.
    Silent when: the capture lacks the login. The rule is also silent when the login contains no user name
    (its mechanism is neither PLAIN nor AMQPLAIN). The rule is also silent when the server is neither RabbitMQ
    nor LavinMQ.
    Only possible because: The server may allow the user to publish under the name of another user.
    How to mend it: Set user-id to the user name of the connection's login, or leave user-id out. When an
    application forwards received messages, do not copy their user-id.
    """
    reason = "the property user-id is not the user name with which the client logged in"
    case.report(B_PROP_USERID, reason, POSSIBLE, {"path": "user-id"})


B_PROP_CC: Final = RULES.rule("B-PROP-CC", "IMPLIED", "tier A", by="client", answer="channel.close 406")


def copies_no_list(case: Case091, name: str) -> None:
    """A client publishes a message whose header CC or BCC is not an array of strings.

    Demands: The headers CC and BCC must be arrays of long strings.
    Source: RMQ:docs/sender-selected
    Evidence: the types of the headers CC and BCC
    Why it matters: RabbitMQ closes the channel, or does not route the message to the entries that are not
    strings.
    Silent when: the server is neither RabbitMQ nor LavinMQ.
    How to mend it: Encode the headers CC and BCC as arrays whose values are long strings, one routing key per
    value. Use an array even for a single routing key.
    """
    case.report(B_PROP_CC, f"the header {name} is not an array of strings", evidence={"path": name})


B_REPLYTO_PUBLISH: Final = RULES.rule(
    "B-REPLYTO-PUBLISH", "MUST", "tier A", by="client", answer="channel.close 406"
)


def replies_to_nobody(case: Case091) -> None:
    """A client publishes a message with reply-to `amq.rabbitmq.reply-to` on a channel that has no consumer of
    `amq.rabbitmq.reply-to`.

    Demands: A client must publish a message with reply-to amq.rabbitmq.reply-to on the channel that has the
    consumer of amq.rabbitmq.reply-to.
    Source: RMQ:docs/direct-reply-to
    Evidence: the property reply-to, and the consumers of the channel
    Why it matters: No consumer could receive the reply to the message. RabbitMQ refuses the message and
    closes the channel.
    Silent when: the server is neither RabbitMQ nor LavinMQ, or when the server itself has cancelled a
    consumer of the channel. The rule is also silent when the capture lacks octets that were sent on the
    channel before the message.
    How to mend it: Send basic.consume with no-ack for the queue `amq.rabbitmq.reply-to` before publishing the
    first request. Publish the requests on the channel of that consumer, not on another channel.
    """
    case.report(B_REPLYTO_PUBLISH, f"reply-to is {REPLIES}, but this channel has no consumer of {REPLIES}")


B_RETURN_FLAGGED: Final = RULES.rule(
    "B-RETURN-FLAGGED",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def return_not_asked_for(case: Case091, certainty: i64) -> None:
    """A server sends basic.return on a channel on which the client published no message with the mandatory or
    immediate flag.

    Demands: A server may send basic.return only for a message that was published on the same channel with the
    mandatory or immediate flag.
    Source: XML:basic.publish.mandatory/immediate (field docs); XML:basic.return (doc)
    Evidence: the messages that were published on the channel with the mandatory or immediate flag
    Why it matters: The client expects no basic.return. The server has dropped a message that the client
    considers delivered.
    Silent when: the capture lacks octets that were sent on the channel before the basic.return. The rule is
    also silent when the client published more messages with the mandatory or immediate flag than amqpscope
    remembers. The finding is reported as possible, not as certain, while the client is still sending the body
    of a message.
    How to mend it: Send basic.return only for messages that were published with the mandatory or immediate
    flag, and send it on the channel of the basic.publish. Drop an unroutable message silently if neither the
    mandatory flag nor the immediate flag is set.
    """
    case.report(
        B_RETURN_FLAGGED,
        "the peer sends basic.return, but no message with the mandatory or immediate flag is outstanding "
        "on this channel",
        certainty,
    )


B_RETURN_MATCH: Final = RULES.rule(
    "B-RETURN-MATCH",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def return_of_another_message(case: Case091, reason: str, certainty: i64) -> None:
    """A server sends a basic.return that matches no message published with the mandatory or immediate flag on
    the channel.

    Demands: A basic.return must repeat the exchange, the routing key and the content of a message that was
    published on the same channel.
    Source: XML:basic.return.exchange/routing-key (docs)
    Evidence: the messages that were published on the channel with the mandatory or immediate flag, including
    the sizes and digests of their bodies
    Why it matters: The client identifies the returned message by exchange, routing key and content. If
    exchange, routing key or content differ, the client cannot tell which message failed.
    Silent when: the capture lacks octets that were sent on the channel before the basic.return. The rule is
    also silent when the client published more messages with the mandatory or immediate flag than amqpscope
    remembers. The finding is reported as possible, not as certain, while the client is still sending the body
    of a message.
    How to mend it: In basic.return, repeat the exchange and routing key of the basic.publish, and send the
    content unchanged. Send basic.return on the channel of the basic.publish, once per message.
    """
    case.report(B_RETURN_MATCH, reason, certainty)


B_RETURN_CODE: Final = RULES.rule(
    "B-RETURN-CODE",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def return_with_odd_code(case: Case091, code: i64, certainty: i64) -> None:
    """A server sends basic.return with a reply-code that does not fit the flags with which the message was
    published.

    Demands: The reply-code of basic.return must be 312 (no-route) if no queue takes a mandatory message,
    and 313 (no-consumers) if no consumer takes an immediate message.
    Source: XML constant no-consumers; RMQX constant no-route; ERR:17
    Evidence: the reply-code of basic.return
    Why it matters: Clients react differently to the two reply-codes. Reply-code 312 means that no queue takes
    the message, and 313 means that no consumer takes the message.
    Silent when: the capture lacks octets that were sent on the channel before the basic.return. The finding
    is reported as possible, not as certain, when the reply-code is neither 312 nor 313.
    How to mend it: If no queue takes a message that was published with the mandatory flag, send
    reply-code 312 (no-route). If no consumer takes a message that was published with the immediate flag,
    send reply-code 313 (no-consumers).
    """
    why = "a server may return a message only with 312 (no-route) or 313 (no-consumers)"
    if code == NO_ROUTE:
        why = "the message was published without the mandatory flag"
    elif code == NO_CONSUMERS:
        why = "the message was published without the immediate flag"
    case.report(
        B_RETURN_CODE,
        f"basic.return has reply-code {reply_code(int(code))}, but {why}",
        certainty,
        {"reply_code": int(code)},
    )


CF_RETURN_FIRST: Final = RULES.rule("CF-RETURN-FIRST", "MUST", "tier A", by="server")


def return_after_its_ack(case: Case091, number: int) -> None:
    """A server sends the basic.return of a message after the basic.ack of the same message.

    Demands: A server must send the basic.return of a message before the basic.ack that confirms the message.
    Source: RMQX:confirm.unroutable messages; RMQ:docs/confirms
    Evidence: a basic.return with the exchange, routing key and size of a message that is already confirmed
    Why it matters: When the basic.ack arrives, the client considers the message safe and discards its copy of
    the message. The client cannot match the later basic.return to any message, so the loss can go unnoticed.
    Silent when: the capture lacks octets that were sent on the channel before the basic.return. The rule is
    also silent when an unconfirmed message has the same exchange, routing key and size.
    How to mend it: Send basic.return, including its content header and body, before the basic.ack that
    confirms the same message. When routing fails, write basic.return to the channel first, then basic.ack.
    """
    case.report(
        CF_RETURN_FIRST,
        f"basic.return returns message {number}, which the server has already confirmed",
        evidence={"delivery_tag": number},
    )


def judge_properties(case: Case091, channel: Channel, header: ContentHeader) -> None:
    """The content header of a message that a client publishes."""
    flags = header.flags
    if header.delivery_mode >= 0 and header.delivery_mode != 1 and header.delivery_mode != 2:
        odd_delivery_mode(case, header.delivery_mode)
    if header.priority > 9:
        at_home = case.view.server is None or case.view.rabbitmq
        odd_priority(case, header.priority, POSSIBLE if at_home else CERTAIN)
    if flags & (HAS_EXPIRATION | HAS_USER_ID | HAS_HEADERS | HAS_REPLY_TO) == 0 or not case.view.rabbitmq:
        return
    octets = header.octets
    # Not `in`: before that looks for octets, it takes them for a number, and makes an exception.
    copies = flags & HAS_HEADERS != 0 and octets.find(b"CC") >= 0
    replies = flags & HAS_REPLY_TO != 0 and octets.find(_REPLIES) >= 0
    if not copies and not replies and flags & (HAS_EXPIRATION | HAS_USER_ID) == 0:
        return
    properties = header.properties(RABBITMQ)
    if properties.expiration is not None and not counts_milliseconds(properties.expiration):
        odd_expiration(case, properties.expiration)
    if (
        flags & HAS_USER_ID != 0
        and case.view.login.user is not None
        and properties.user_id != case.view.login.user
    ):
        other_user(case)
    if copies and properties.headers is not None:
        judge_copies(case, properties.headers)
    if replies and properties.reply_to == REPLIES and channel.whole and channel.state == OPEN:
        if channel.consumers.of(REPLIES):
            return
        if not channel.consumers.nameless and "server" not in channel.consumers.cancelled.values():
            replies_to_nobody(case)


def counts_milliseconds(text: str) -> bool:
    """Whether RabbitMQ accepts the value as a number of milliseconds."""
    digits = text[1:] if text.startswith("+") else text
    return digits.isascii() and digits.isdigit()


def judge_copies(case: Case091, headers: FieldTable) -> None:
    """The headers of a message that contain CC or BCC."""
    for name, value in headers.read(RABBITMQ).pairs:
        if name in ("CC", "BCC"):
            if not isinstance(value, FieldArray) or not all(isinstance(item, (str, bytes)) for item in value):
                copies_no_list(case, str(name))


def _certainty(channel: Channel) -> i64:
    """How certain it is that amqpscope knows all messages that the server may consider complete."""
    return POSSIBLE if channel.last_publish.incomplete else CERTAIN


def judge_return(case: Case091, channel: Channel, method: BasicReturn) -> None:
    """A server's basic.return."""
    publishes = channel.publishes
    exchange = method.exchange
    routing_key = method.routing_key
    if not channel.whole or not publishes.whole or publishes.forgotten or channel.state != OPEN:
        return
    if exchange is None or routing_key is None:
        return
    if not publishes.flagged:
        return_not_asked_for(case, _certainty(channel))
        return
    may = publishes.returnable(exchange, routing_key)
    if not may:
        return_of_another_message(
            case,
            f"basic.return has exchange {exchange!r} and routing key {routing_key!r}, but no outstanding "
            "message with the mandatory or immediate flag has these values",
            _certainty(channel),
        )
        return
    code = method.reply_code
    if code == NO_ROUTE:
        if not any(publish.mandatory for publish in may):
            return_with_odd_code(case, code, CERTAIN)
    elif code == NO_CONSUMERS:
        if not any(publish.immediate for publish in may):
            return_with_odd_code(case, code, CERTAIN)
    elif case.found == 0:
        return_with_odd_code(case, code, POSSIBLE)


def judge_returned(case: Case091, channel: Channel, header: ContentHeader) -> None:
    """The content header of a message that a server returns."""
    returning = channel.publishes.due_return
    publishes = channel.publishes
    if returning is None or channel.deliveries.due is not None or not channel.whole or not publishes.whole:
        return
    if publishes.forgotten or channel.state != OPEN:
        return
    may = publishes.returnable(returning[0], returning[1])
    if not may:
        return
    same = [publish for publish in may if publish.size == header.size]
    if not same:
        reason = (
            f"the returned body has {header.body_size} octets, but no outstanding message with the mandatory "
            "or immediate flag has this size"
        )
        return_of_another_message(case, reason, _certainty(channel))
        return
    for publish in same:
        if publish.number == 0 or publish.number in publishes.unconfirmed:
            return
        if not publishes.acked.cover(publish.number, publish.number):
            return
    return_after_its_ack(case, same[0].number)
