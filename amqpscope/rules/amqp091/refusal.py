"""Exchanges, queues and bindings that the server refuses to create, and the reason in its close.

Only the close that names a request shows why the request was refused. A finding that assumes a reason is
therefore only possible. The finding points at the request, or at the close if the refusal itself is the
fault. `entities` and `existence` judge missing or differently declared entities, by the operations of all
connections.

Sources: the classes exchange and queue of amqp0-9-1.xml; RabbitMQ's errata.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.exchange import STANDARD_TYPES
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import DURABLE, EXCLUSIVE, PASSIVE, MethodRequest
from dissectors.amqp091.reply_code import reply_code
from dissectors.wire import i64

__all__ = ["judge_close", "judge_connection_close"]

RULES: Final = Rules("amqp091/refusal")


_PREDECLARED: Final = (
    "amq.direct",
    "amq.fanout",
    "amq.topic",
    "amq.headers",
    "amq.match",
    "amq.rabbitmq.trace",
)

# Methods that may be refused, by class-id and method-id as a close names them.
_REFUSABLE: Final[dict[tuple[int, int], str]] = {
    (40, 10): "exchange.declare",
    (50, 10): "queue.declare",
    (50, 20): "queue.bind",
    (50, 50): "queue.unbind",
}


class Refusal:
    """A request on its channel, and the close that names it. text: the reply-text in lower case."""

    def __init__(self, channel: Channel, request: MethodRequest, code: i64, text: str) -> None:
        self.channel: Channel = channel
        self.request: MethodRequest = request
        self.code: i64 = code
        self.text: str = text


def _blame(case: Case091, rule: str, refusal: Refusal, what: str) -> None:
    """Report the client's request, because the server's close shows that it breaks a rule."""
    request = refusal.request
    record = case.record
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction, request.packet, request.time, request.end, request.name, refusal.channel.number
    )
    packet = int(record.packet)
    case.report(
        rule,
        f"{request.name} {what}, and the server refuses the request with {reply_code(int(refusal.code))} in "
        f"packet {packet}",
        POSSIBLE,
        {"reply_code": int(refusal.code), "name": ascii(request.subject)},
        [packet],
    )
    case.spot = before


def _complain(case: Case091, rule: str, refusal: Refusal, what: str) -> None:
    """Report the server, because it must not refuse the request."""
    request = refusal.request
    case.report(
        rule,
        f"the server refuses the {request.name} in packet {request.packet} with "
        f"{reply_code(int(refusal.code))}, {what}",
        POSSIBLE,
        {"reply_code": int(refusal.code), "name": ascii(request.subject)},
        [int(request.packet)],
    )


# Requests that break a rule


Q_DECL_RESERVED: Final = RULES.rule(
    "Q-DECL-RESERVED", "IMPLIED", "tier B", by="client", answer="channel.close 403"
)


def reserved_queue_declared(case: Case091, refusal: Refusal) -> None:
    """A client declares a queue that does not exist and whose name begins with `amq.`.

    Demands: A client must not create a queue whose name begins with 'amq.'.
    Source: XML:queue.declare.queue.reserved; GS:3.1.10
    Evidence: a queue.declare for an unknown queue whose name begins with `amq.`, and the server's refusal
    with reply-code 403 (access-refused)
    Why it matters: Names with the prefix `amq.` are reserved for the broker. Often a client declares a
    broker-generated name again after it has lost the connection and the queue.
    Silent when: the server does not refuse the queue.declare with reply-code 403 (access-refused), or
    when the queue.declare is passive.
    Only possible because: The server may instead have refused the request because the user lacks a
    permission.
    How to mend it: Declare the queue with an empty name after each reconnect, and use the new name from
    queue.declare-ok. Choose names without the prefix `amq.` for all other queues.
    """
    _blame(case, Q_DECL_RESERVED, refusal, "uses a queue name that is reserved for the broker")


X_DECL_RESERVED: Final = RULES.rule(
    "X-DECL-RESERVED", "IMPLIED", "tier B", by="client", answer="channel.close 403"
)


def reserved_exchange_declared(case: Case091, refusal: Refusal) -> None:
    """A client declares an exchange that does not exist and whose name begins with `amq.`.

    Demands: A client must not create an exchange whose name begins with 'amq.'.
    Source: XML:exchange.declare.exchange.reserved; GS:3.1.10
    Evidence: an exchange.declare for an exchange that is not predeclared and whose name begins with `amq.`,
    and the server's refusal with reply-code 403 (access-refused)
    Why it matters: Names with the prefix `amq.` are reserved for the broker. The server does not create the
    exchange.
    Silent when: the server does not refuse the exchange.declare with reply-code 403 (access-refused), or
    when the exchange.declare is passive.
    Only possible because: The server may instead have refused the request because the user lacks a
    permission.
    How to mend it: Choose an exchange name that does not begin with `amq.`. To use a predeclared exchange
    such as amq.topic, check the spelling of its name, and declare the exchange passively or not at all.
    """
    _blame(case, X_DECL_RESERVED, refusal, "uses an exchange name that is reserved for the broker")


X_DECL_TYPE_SUPPORT: Final = RULES.rule(
    "X-DECL-TYPE-SUPPORT", "MUST NOT", "tier B", by="client", answer="connection.close 503"
)


def type_not_supported(case: Case091, refusal: Refusal) -> None:
    """A client declares an exchange of a type that the server does not support.

    Demands: A client may declare only exchange types that the server supports.
    Source: XML:exchange.declare.type.support
    Evidence: the server's answer to exchange.declare
    Why it matters: The server does not create the exchange. The specification demands reply-code 503
    (command-invalid) for the refusal. The usual cause is a plugin that is not installed or not enabled on the
    server.
    Silent when: the reply-text of the server does not give the type as the reason. The rule is also silent
    when the name of the type does not begin with `x-`.
    Only possible because: Only the server's close indicates that the server does not support the type.
    How to mend it: Install and enable the plugin that provides the exchange type on every node of the broker.
    If no plugin can be installed, declare the exchange with the type `direct`, `fanout`, `topic` or
    `headers`.
    """
    _blame(case, X_DECL_TYPE_SUPPORT, refusal, f"asks for the exchange type {refusal.request.other!a}")


# Requests that the server must carry out


X_DEFAULT_EXISTS: Final = RULES.rule("X-DEFAULT-EXISTS", "MUST", "tier B", by="server")


def default_exchange_missing(case: Case091, refusal: Refusal) -> None:
    """A server says that the default exchange does not exist.

    Demands: Every virtual host must have a default exchange: a direct exchange with an empty name.
    Source: XML:exchange.default-exchange; GS:3.1.3.1
    Evidence: a close with reply-code 404 (not-found) for a publish to the exchange with the empty name
    Why it matters: Clients publish to a queue by its name through the default exchange. Without the default
    exchange, messages that are published to a queue by its name get lost.
    Silent when: the reply-text of the server's close does not mention an exchange.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Provide the nameless direct exchange in every virtual host, and bind every queue to it
    under the queue's name. Do not look up the empty exchange name among declared exchanges.
    """
    _complain(
        case,
        X_DEFAULT_EXISTS,
        refusal,
        "but every virtual host must have the default exchange, which the request names",
    )


X_TYPES_REQUIRED: Final = RULES.rule("X-TYPES-REQUIRED", "MUST", "tier B", by="server")


def required_type_missing(case: Case091, refusal: Refusal) -> None:
    """A server refuses to declare an exchange of the type `direct` or `fanout`.

    Demands: A server must support the exchange types `direct` and `fanout`.
    Source: XML:exchange.required-types; GS:3.1.3.1; GS:3.1.3.2
    Evidence: the server's answer to exchange.declare with the type `direct` or `fanout`
    Why it matters: Every server must support the types `direct` and `fanout`. Clients that use the types
    `direct` and `fanout` cannot set up their routing.
    Silent when: the reply-text of the server's close does not mention the type.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Implement the exchange types `direct` and `fanout`, and accept exactly these names in the
    type field of exchange.declare.
    """
    _complain(
        case, X_TYPES_REQUIRED, refusal, "but every server must support the exchange types direct and fanout"
    )


X_TYPES_RECOMMENDED: Final = RULES.rule("X-TYPES-RECOMMENDED", "SHOULD", "tier B", by="server")


def recommended_type_missing(case: Case091, refusal: Refusal) -> None:
    """A server refuses to declare an exchange of the type `topic` or `headers`.

    Demands: A server should support the exchange types `topic` and `headers`.
    Source: XML:exchange.recommended-types; GS:3.1.3.3; GS:3.1.3.4
    Evidence: the server's answer to exchange.declare with the type `topic` or `headers`
    Why it matters: Servers should support the types `topic` and `headers`. Applications that use exchanges of
    the type `topic` or `headers` cannot run with this server.
    Silent when: the reply-text of the server's close does not mention the type.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Implement the exchange types `topic` and `headers`, and accept these names in the type
    field of exchange.declare. Clients that must run with this server can use `direct` or `fanout`.
    """
    _complain(
        case, X_TYPES_RECOMMENDED, refusal, "but servers should support the exchange types topic and headers"
    )


X_DECL_DURABLE: Final = RULES.rule("X-DECL-DURABLE", "MUST", "tier B", by="server")


def durability_refused_of_exchange(case: Case091, refusal: Refusal) -> None:
    """A server answers exchange.declare with reply-code 540 (not-implemented), although a server must support
    both durable and transient exchanges.

    Demands: A server must support both durable and transient exchanges.
    Source: XML:exchange.declare.durable.support
    Evidence: the server's answer to each exchange.declare, with or without durable
    Why it matters: A server must support both durable and transient exchanges. Clients that need the refused
    kind of exchange cannot set up their routing.
    Silent when: the reply-code is not 540 (not-implemented).
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Implement exchange.declare with durable set and with durable not set. Keep durable
    exchanges across a restart, and do not refuse transient exchanges.
    """
    _complain(case, X_DECL_DURABLE, refusal, "but servers must support durable and transient exchanges")


Q_DECL_DURABLE: Final = RULES.rule("Q-DECL-DURABLE", "MUST", "tier B", by="server")


def durability_refused_of_queue(case: Case091, refusal: Refusal) -> None:
    """A server answers queue.declare with reply-code 540 (not-implemented) or 541 (internal-error), although
    a server must support both durable and transient queues.

    Demands: A server must support both durable and transient queues.
    Source: XML:queue.declare.durable.types
    Evidence: the server's answer to each queue.declare, with or without durable
    Why it matters: A server must support both durable and transient queues. New releases of RabbitMQ refuse
    transient queues that are not exclusive.
    Silent when: the reply-code is neither 540 (not-implemented) nor 541 (internal-error). The rule is also
    silent when the reply-code is 541 (internal-error) and the reply-text does not mention transient queues.
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Accept queue.declare both with and without durable. As long as the server refuses
    transient queues, clients can declare queues as durable, or make transient queues exclusive.
    """
    _complain(case, Q_DECL_DURABLE, refusal, "but servers must support durable and transient queues")


Q_DECL_EXCLUSIVE: Final = RULES.rule("Q-DECL-EXCLUSIVE", "MUST", "tier B", by="server")


def exclusive_queue_refused(case: Case091, refusal: Refusal) -> None:
    """A server answers queue.declare of an exclusive queue with reply-code 540 (not-implemented).

    Demands: A server must support both exclusive and shared queues.
    Source: XML:queue.declare.exclusive.types
    Evidence: the server's answer to each queue.declare, with or without exclusive
    Why it matters: A server must support both exclusive and shared queues. Clients that need a private queue,
    for example for replies, cannot get one.
    Silent when: the reply-code is not 540 (not-implemented).
    Only possible because: The server may have sent the close for another reason.
    How to mend it: Accept queue.declare both with and without exclusive. Restrict an exclusive queue to the
    connection that declared it, and delete the queue when this connection ends.
    """
    _complain(case, Q_DECL_EXCLUSIVE, refusal, "but servers must support exclusive and shared queues")


Q_BIND_DEFAULT_X: Final = RULES.rule(
    "Q-BIND-DEFAULT-X",
    "MUST",
    "tier C",
    by="server",
    note="The specification names no error for this fault, and both peers continue.",
)


def default_exchange_not_bound(case: Case091, refusal: Refusal) -> None:
    """A server refuses queue.bind to the default exchange.

    Demands: A server must accept queue.bind with an empty exchange name, which means the default exchange.
    Source: XML:queue.bind.exchange.default-exchange
    Evidence: a queue.bind with an empty exchange name, and an answer with reply-code 403 (access-refused),
    which may also mean missing access rights
    Why it matters: In the specification, the empty name stands for the default exchange. According to
    RabbitMQ's errata, brokers refuse the request, so clients cannot bind a queue to the default exchange.
    Silent when: the rule has already reported the fault on the same connection, or when the reply-code is
    not 403 (access-refused).
    Only possible because: The {peer} may have refused the binding for another reason, for example missing
    access rights.
    How to mend it: Accept an empty exchange name in queue.bind, if strict conformance is required. Clients do
    not need this queue.bind, because every queue is bound to the default exchange under its own name.
    """
    case.report_once(
        Q_BIND_DEFAULT_X,
        f"the server refuses the queue.bind to the default exchange in packet {refusal.request.packet}, but "
        "must accept an empty exchange name",
        POSSIBLE,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


Q_UNBIND_DEFAULT_X: Final = RULES.rule("Q-UNBIND-DEFAULT-X", "MUST", "tier A", by="server")


def default_exchange_not_unbound(case: Case091, refusal: Refusal) -> None:
    """A server refuses queue.unbind from the default exchange.

    Demands: A server must accept queue.unbind with an empty exchange name, which means the default exchange.
    Source: XML:queue.unbind.exchange.default-exchange
    Evidence: a queue.unbind with an empty exchange name, and the server's answer
    Why it matters: In the specification, the empty name stands for the default exchange. RabbitMQ's errata
    say that brokers refuse the request, so the client loses its channel or connection.
    Silent when: the reply-code is not 403 (access-refused).
    Only possible because: The server may have refused the request because the user lacks a permission.
    How to mend it: Accept an empty exchange name in queue.unbind, if strict conformance is required. On the
    client's side, do not send queue.unbind for the default exchange.
    """
    _complain(
        case,
        Q_UNBIND_DEFAULT_X,
        refusal,
        "but an empty exchange name is valid: it means the default exchange",
    )


Q_UNBIND_FAIL_CONN: Final = RULES.rule(
    "Q-UNBIND-FAIL-CONN",
    "MUST",
    "tier C",
    by="server",
    note="The specification names no error for this fault, and both peers continue.",
)


def unbind_fails_by_channel(case: Case091, refusal: Refusal) -> None:
    """A server answers a failed queue.unbind with channel.close instead of connection.close.

    Demands: A server must answer a failed queue.unbind with a connection exception.
    Source: XML:queue.unbind.01
    Evidence: a channel.close that names queue.unbind as its cause
    Why it matters: One rule of the specification wants the server to close the connection, while others name
    a reply-code of channel.close. Most brokers close only the channel, so clients must
    be ready for channel.close and for connection.close.
    Silent when: the rule has already reported the fault on the same connection. The rule is also silent when
    the reply-code is 404 (not-found), which the specification demands for a missing queue or exchange.
    How to mend it: Answer a failed queue.unbind with connection.close, if strict conformance is required. If
    strict conformance is not required, keep channel.close as other brokers do. Clients should handle both
    channel.close and connection.close.
    """
    case.report_once(
        Q_UNBIND_FAIL_CONN,
        f"the server answers the failed queue.unbind in packet {refusal.request.packet} by closing only the "
        "channel, but must close the connection",
        CERTAIN,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


X_DECL_PASSIVE_NOWAIT: Final = RULES.rule(
    "X-DECL-PASSIVE-NOWAIT",
    "IMPLIED",
    "tier C",
    by="server",
    note="The specification names no error for this fault, and both peers continue.",
)


def passive_without_wait_of_exchange(case: Case091, refusal: Refusal) -> None:
    """A server refuses a passive exchange.declare that sets no-wait.

    Demands: A server must ignore a passive exchange.declare with no-wait. This request must neither change
    anything nor raise an exception.
    Source: XML:exchange.declare.passive (field doc); ERR:9
    Evidence: an exchange.declare with passive and no-wait, and a close that names exchange.declare as its
    cause
    Why it matters: By the specification, a passive exchange.declare with no-wait does nothing. RabbitMQ
    closes the channel if the exchange does not exist, and so informs the client.
    Silent when: the rule has already reported the fault on the same connection.
    How to mend it: Ignore a passive exchange.declare that sets no-wait. On the client's side, do not combine
    passive and no-wait: send the passive exchange.declare without no-wait and wait for exchange.declare-ok.
    """
    case.report_once(
        X_DECL_PASSIVE_NOWAIT,
        f"the server refuses the passive exchange.declare in packet {refusal.request.packet}, but must "
        "ignore a passive declaration with no-wait",
        CERTAIN,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


Q_DECL_PASSIVE_NOWAIT: Final = RULES.rule(
    "Q-DECL-PASSIVE-NOWAIT",
    "IMPLIED",
    "tier C",
    by="server",
    note="The specification names no error for this fault, and both peers continue.",
)


def passive_without_wait_of_queue(case: Case091, refusal: Refusal) -> None:
    """A server refuses a passive queue.declare that sets no-wait.

    Demands: A server must ignore a passive queue.declare with no-wait. This request must neither change
    anything nor raise an exception.
    Source: XML:queue.declare.passive (field doc); ERR:9
    Evidence: a queue.declare with passive and no-wait, and a close that names queue.declare as its cause
    Why it matters: By the specification, a passive queue.declare with no-wait does nothing. RabbitMQ closes
    the channel if the queue does not exist, and so informs the client.
    Silent when: the rule has already reported the fault on the same connection.
    How to mend it: Ignore a passive queue.declare that sets no-wait. On the client's side, do not combine
    passive and no-wait: send the passive queue.declare without no-wait and wait for queue.declare-ok.
    """
    case.report_once(
        Q_DECL_PASSIVE_NOWAIT,
        f"the server refuses the passive queue.declare in packet {refusal.request.packet}, but must ignore "
        "a passive declaration with no-wait",
        CERTAIN,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


# Which rule applies


def _queue_declare(case: Case091, refusal: Refusal) -> None:
    code, request = refusal.code, refusal.request
    if PASSIVE in request.flags:
        return
    if code == 403:
        if request.subject.startswith("amq."):
            reserved_queue_declared(case, refusal)
    elif code == 540:
        if EXCLUSIVE in request.flags and DURABLE not in request.flags:
            exclusive_queue_refused(case, refusal)
        else:
            durability_refused_of_queue(case, refusal)
    elif code == 541 and "transient" in refusal.text:
        durability_refused_of_queue(case, refusal)


def _exchange_declare(case: Case091, refusal: Refusal) -> None:
    code, text, request = refusal.code, refusal.text, refusal.request
    if PASSIVE in request.flags:
        return
    if code == 403:
        if request.subject.startswith("amq.") and request.subject not in _PREDECLARED:
            reserved_exchange_declared(case, refusal)
    elif code == 540:
        durability_refused_of_exchange(case, refusal)
    elif code in (406, 503) and "type" in text and "inequivalent" not in text:
        if request.other in ("direct", "fanout"):
            required_type_missing(case, refusal)
        elif request.other in STANDARD_TYPES:
            recommended_type_missing(case, refusal)
        elif request.other.startswith("x-"):
            type_not_supported(case, refusal)


def _queue_binding(case: Case091, refusal: Refusal) -> None:
    code, request = refusal.code, refusal.request
    if request.other != "":
        return
    if code == 403:
        if request.name == "queue.bind":
            default_exchange_not_bound(case, refusal)
        else:
            default_exchange_not_unbound(case, refusal)
    elif code == 404 and "exchange" in refusal.text and "no queue" not in refusal.text:
        default_exchange_missing(case, refusal)


def _judge(case: Case091, refusal: Refusal, waited: bool) -> None:
    name = refusal.request.name
    if not waited and PASSIVE in refusal.request.flags:
        if name == "exchange.declare":
            passive_without_wait_of_exchange(case, refusal)
        else:
            passive_without_wait_of_queue(case, refusal)
    elif name == "queue.declare":
        _queue_declare(case, refusal)
    elif name == "exchange.declare":
        _exchange_declare(case, refusal)
    else:
        _queue_binding(case, refusal)


def _request(channel: Channel, name: str) -> MethodRequest | None:
    """The request of this kind that a close means: the oldest that waits for its answer, or else one with
    no-wait.
    """
    for request in channel.requests.by_client:
        if request.name == name:
            return request
    return channel.requests.no_wait.last.get(name)


def judge_close(case: Case091, channel: Channel, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """A server's channel.close that names a method."""
    name = _REFUSABLE.get((int(class_id), int(method_id)))
    if name is None or not channel.whole:
        return
    request = _request(channel, name)
    if request is None:
        return
    refusal = Refusal(channel, request, code, text.lower())
    if name == "queue.unbind" and code != 404:
        unbind_fails_by_channel(case, refusal)
    _judge(case, refusal, channel.requests.no_wait.last.get(name) is not request)


def judge_connection_close(case: Case091, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """A server's connection.close that names a method. It means the only channel with such a request, if
    there is only one.
    """
    name = _REFUSABLE.get((int(class_id), int(method_id)))
    if name is None:
        return
    found: Refusal | None = None
    waited = True
    for channel in case.view.table.channels.values():
        request = _request(channel, name) if channel.is_open and channel.whole else None
        if request is not None:
            if found is not None:
                return
            found = Refusal(channel, request, code, text.lower())
            waited = channel.requests.no_wait.last.get(name) is not request
    if found is not None:
        _judge(case, found, waited)
