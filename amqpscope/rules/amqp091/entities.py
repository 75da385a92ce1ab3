"""Exchanges, queues, bindings and consumers of a server, and which operations on them the server accepts.

They belong to a virtual host, so a confirmation on one connection binds the server on all connections. A
finding is never certain if it assumes that nobody else changed them. Clients outside the capture may have
changed them, or the server itself (by a limit, an idle time or a restart).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091.consumer import B_CONSUME_EXCL, B_CONSUME_EXCL_HELD
from amqpscope.rules.amqp091.queue import Q_DELETE_INUSE
from amqpscope.rules.amqp091.topology_operation import about_answer, about_request, shown
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.topology_operations import AUTO_DELETE, DURABLE, EXCLUSIVE, TopologyOperation
from dissectors.amqp091.tables import FieldTable
from dissectors.wire import i64

__all__ = ["RULES", "differences"]

RULES: Final = Rules("amqp091/entities")


def differences(made: TopologyOperation, operation: TopologyOperation) -> list[str]:
    """The properties in which two declarations of a queue, or of an exchange, differ."""
    found: list[str] = []
    if operation.method == "exchange.declare" and made.kind != operation.kind:
        found.append("type")
    different = made.flags ^ operation.flags
    if different & DURABLE:
        found.append("durable")
    if operation.method == "queue.declare":
        if different & EXCLUSIVE:
            found.append("exclusive")
        if different & AUTO_DELETE:
            found.append("auto-delete")
    if (
        made.arguments is not None
        and operation.arguments is not None
        and made.arguments != operation.arguments
    ):
        if _pairs(made.arguments) != _pairs(operation.arguments):
            found.append("arguments")
    return found


def _pairs(octets: bytes) -> list[str]:
    """The pairs of a table, always in the same order."""
    return sorted(f"{name!r}: {value!r}" for name, value in FieldTable(octets).read().pairs)


def _named(operation: TopologyOperation) -> str:
    """The declared exchange or queue, as words."""
    if operation.method.startswith("exchange."):
        return f"exchange {shown(operation.exchange)}"
    return f"queue {shown(operation.queue)}"


# Declared again


X_DECL_TYPED: Final = RULES.rule(
    "X-DECL-TYPED", "MUST NOT", "tier B", by="client", answer="connection.close 530"
)


def exchange_declared_with_another_type(
    operation: TopologyOperation, kind: str, made: TopologyOperation | None
) -> Finding:
    """A client declares an existing exchange with another type than the exchange has.

    Demands: A client declares an existing exchange only with the type that the exchange has.
    Source: XML:exchange.declare.type.typed
    Evidence: the known exchanges of the virtual host and their types
    Why it matters: The two programs expect different exchanges under one name. The server refuses the later
    declaration, so the later program fails.
    Silent when: the capture lacks octets of a connection to this server, when another client declares or
    deletes the exchange at the same time, or when the server accepts the declaration. X-DECL-EQUIV reports a
    server that accepts the declaration. The finding is certain only for exchanges that always exist, such as
    `amq.direct`, because their names define their types.
    Possible because: Another client may have deleted the exchange in the meantime.
    How to mend it: Declare an exchange with the same type in all programs. To change the type, delete the
    exchange first or use a new name. To only check that an exchange exists, set passive in exchange.declare.
    """
    message = f"{_named(operation)} is declared with type {shown(operation.kind)}, but has type {shown(kind)}"
    certainty: i64 = CERTAIN if made is None else POSSIBLE
    return about_request(X_DECL_TYPED, certainty, message, operation, made)


X_DECL_EQUIV: Final = RULES.rule("X-DECL-EQUIV", "MUST", "tier B", by="server")


def unlike_exchange_accepted(
    operation: TopologyOperation, made: TopologyOperation, what: list[str]
) -> Finding:
    """A server accepts the declaration of an existing exchange although the declared properties differ from
    those of the exchange.

    Demands: When a client declares an existing exchange, the server compares type, durable and arguments, and
    refuses the declaration with a channel exception if they differ.
    Source: XML:exchange.declare.passive.equivalent
    Evidence: the declared properties of the exchange in the virtual host
    Why it matters: The client goes on as if the exchange had the properties that it asked for.
    Silent when: the capture lacks octets of a connection to this server, when another client declares or
    deletes the exchange at the same time, when the exchange is auto-delete, or when the declaration is
    passive or has no-wait set. The rule does not compare arguments.
    Only possible because: Another client may have deleted the exchange in the meantime.
    How to mend it: On exchange.declare without passive, compare type, durable and arguments with those of the
    existing exchange. If the properties differ, send channel.close instead of exchange.declare-ok.
    """
    message = (
        f"{_named(operation)} exists with another {' and '.join(what)}, but the server accepts "
        "the declaration"
    )
    return about_answer(X_DECL_EQUIV, POSSIBLE, message, operation, made)


Q_DECL_EQUIV: Final = RULES.rule("Q-DECL-EQUIV", "MUST", "tier B", by="server")


def unlike_queue_accepted(operation: TopologyOperation, made: TopologyOperation, what: list[str]) -> Finding:
    """A server accepts the declaration of an existing queue although the declared properties differ from
    those of the queue.

    Demands: When a client declares an existing queue, the server compares durable, exclusive, auto-delete and
    arguments, and refuses the declaration with a channel exception if they differ.
    Source: XML:queue.declare.passive.equivalent
    Evidence: the declared properties of the queue in the virtual host
    Why it matters: The client goes on as if the queue had the properties that it asked for.
    Silent when: the capture lacks octets of a connection to this server, when another client declares or
    deletes the queue at the same time, when the queue is auto-delete, or when the declaration is passive or
    has no-wait set. The rule compares neither arguments nor auto-delete. For an exclusive queue, the rule
    does not compare durable either.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    deleted the queue.
    How to mend it: On queue.declare without passive, compare durable, exclusive and arguments with those of
    the existing queue. If the properties differ, send channel.close instead of queue.declare-ok.
    """
    message = (
        f"{_named(operation)} exists with another {' and '.join(what)}, but the server accepts "
        "the declaration"
    )
    return about_answer(Q_DECL_EQUIV, POSSIBLE, message, operation, made)


Q_DECL_EQUIV_CLIENT: Final = RULES.rule(
    "Q-DECL-EQUIV-CLIENT", "IMPLIED", "tier B", by="client", answer="channel.close 406"
)


def queue_declared_otherwise(
    operation: TopologyOperation, made: TopologyOperation | None, what: list[str]
) -> Finding:
    """A client declares an existing queue with properties that differ from those of the queue, and the server
    refuses the declaration.

    Demands: A client declares an existing queue only with the properties that the queue has.
    Source: XML:queue.declare.passive.equivalent
    Evidence: the declared properties of the queue, and the server's refusal of queue.declare with 406
    Why it matters: Two programs, or two versions of one program, do not agree on the properties of the queue.
    The program that declares later fails.
    Silent when: the capture lacks octets of the connection. The finding is certain only if this connection
    itself declared the queue with the other properties; otherwise the server may have refused the declaration
    for another reason.
    How to mend it: Declare the queue with the same durable, exclusive, auto-delete and arguments in all
    programs. To change properties, delete the queue first or use a new name. To only check the queue, set
    passive.
    """
    certainty: i64 = POSSIBLE
    message = f"the server refuses the declaration of {_named(operation)} with {int(operation.outcome.code)}"
    if made is not None:
        message = (
            f"{_named(operation)} is declared with another {' and '.join(what)} than before, "
            f"and the server refuses it with {int(operation.outcome.code)}"
        )
        if made.connection is operation.connection:
            certainty = CERTAIN
    return about_request(Q_DECL_EQUIV_CLIENT, certainty, message, operation, made)


Q_DECL_AUTODEL_IGNORE: Final = RULES.rule(
    "Q-DECL-AUTODEL-IGNORE",
    "MUST",
    "tier B",
    by="server",
    note="Another sentence of the specification asks for the opposite.",
)


def other_auto_delete_refused(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server refuses the declaration of an existing queue only because its auto-delete bit differs.

    Demands: When a client declares an existing queue, the server ignores the auto-delete bit.
    Source: XML:queue.declare.auto-delete.pre-existence
    Evidence: a declaration that differs from the queue only in auto-delete, and the server's refusal
    Why it matters: The client cannot use the queue. One rule of queue.declare says that the server ignores
    auto-delete for an existing queue; another rule lists auto-delete among the compared fields, and RabbitMQ
    compares it.
    Silent when: the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    changed the queue, or the server may have had another reason.
    How to mend it: Ignore the auto-delete bit of queue.declare when the queue already exists. Applications
    avoid the refusal if all clients declare the queue with the same auto-delete value, or declare it
    passively.
    """
    message = f"{_named(operation)} exists; the server refuses its declaration because of another auto-delete"
    return about_answer(Q_DECL_AUTODEL_IGNORE, POSSIBLE, message, operation, made)


# Passive


X_DECL_PASSIVE_404: Final = RULES.rule("X-DECL-PASSIVE-404", "MUST", "tier B", by="server")


def passive_exchange_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server answers a passive exchange.declare with exchange.declare-ok although the exchange does not
    exist.

    Demands: A server refuses a passive exchange.declare of a missing exchange with the channel exception 404.
    Source: XML:exchange.declare.passive.not-found
    Evidence: a passive exchange.declare after an exchange.delete, and the server's answer
    Why it matters: A client that relies on this answer publishes to a missing exchange and loses its
    messages.
    Silent when: the capture lacks octets of a connection to this server, or when another client declares the
    exchange at the same time.
    Only possible because: Another client may have declared the exchange again.
    How to mend it: Look the exchange up when a passive exchange.declare arrives. If the exchange does not
    exist, close the channel with 404 and do not send exchange.declare-ok.
    """
    message = f"the server says that {_named(operation)} exists, although it was deleted"
    return about_answer(X_DECL_PASSIVE_404, POSSIBLE, message, operation, gone)


Q_DECL_PASSIVE_404: Final = RULES.rule("Q-DECL-PASSIVE-404", "IMPLIED", "tier B", by="server")


def passive_queue_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server answers a passive queue.declare with queue.declare-ok although the queue does not exist.

    Demands: A server refuses a passive queue.declare of a missing queue with the channel exception 404.
    Source: XML:queue.declare.passive.passive
    Evidence: a passive queue.declare after a queue.delete, and the server's answer
    Why it matters: A client that relies on this answer waits for messages from a missing queue.
    Silent when: the capture lacks octets of a connection to this server, or when another client declares the
    queue at the same time.
    Only possible because: Another client may have declared the queue again.
    How to mend it: Look the queue up when a passive queue.declare arrives. If the queue does not exist, close
    the channel with 404 and do not send queue.declare-ok.
    """
    message = f"the server says that {_named(operation)} exists, although it was deleted"
    return about_answer(Q_DECL_PASSIVE_404, POSSIBLE, message, operation, gone)


X_DECL_PASSIVE_IGNORE: Final = RULES.rule(
    "X-DECL-PASSIVE-IGNORE",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def passive_exchange_compared(operation: TopologyOperation) -> Finding:
    """A server refuses a passive exchange.declare because of fields other than the exchange name.

    Demands: In a passive exchange.declare, the server reads only the exchange name and no-wait.
    Source: XML:exchange.declare.passive (field doc)
    Evidence: a passive exchange.declare that the server refuses with a code other than 404 and 403
    Why it matters: A passive declaration only asks whether the exchange exists. A client that sends arbitrary
    values in the other fields loses its channel although the exchange exists.
    Silent when: the server's answer is 404 (the exchange does not exist) or 403 (access is not allowed), or
    when the capture lacks octets of the connection.
    Only possible because: Only the reply-code indicates why the server refused the declaration.
    How to mend it: Read only exchange and no-wait when the passive bit of exchange.declare is set. Do not
    compare type, durable or arguments with the existing exchange.
    """
    message = (
        f"the server refuses a passive declaration of {_named(operation)} with {int(operation.outcome.code)}"
    )
    return about_answer(X_DECL_PASSIVE_IGNORE, POSSIBLE, message, operation)


Q_DECL_PASSIVE_IGNORE: Final = RULES.rule(
    "Q-DECL-PASSIVE-IGNORE",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def passive_queue_compared(operation: TopologyOperation) -> Finding:
    """A server refuses a passive queue.declare because of fields other than the queue name.

    Demands: In a passive queue.declare, the server reads only the queue name and no-wait.
    Source: XML:queue.declare.passive (field doc)
    Evidence: a passive queue.declare that the server refuses with a code other than 404, 403 and 405
    Why it matters: A passive declaration only asks whether the queue exists. A client that sends arbitrary
    values in the other fields loses its channel although the queue exists.
    Silent when: the server's answer is 404, 403 or 405 (the queue belongs exclusively to another connection),
    or when the capture lacks octets of the connection.
    Only possible because: Only the reply-code indicates why the server refused the declaration.
    How to mend it: Read only queue and no-wait when the passive bit of queue.declare is set. Do not compare
    durable, exclusive, auto-delete or arguments with the existing queue.
    """
    message = (
        f"the server refuses a passive declaration of {_named(operation)} with {int(operation.outcome.code)}"
    )
    return about_answer(Q_DECL_PASSIVE_IGNORE, POSSIBLE, message, operation)


# Confirmed to other clients


CH_VISIBLE: Final = RULES.rule("CH-VISIBLE", "MUST", "tier B", by="server")


def change_not_seen(operation: TopologyOperation, what: str, name: str, known: TopologyOperation) -> Finding:
    """A server answers 404 for a queue or exchange although it has confirmed to another client that the queue
    or exchange exists.

    Demands: Once a server has confirmed a change to one client, every other client of the virtual host sees
    the change.
    Source: GS:4.4
    Evidence: a declaration that the server confirmed on one connection, and a later 404 on another connection
    without a deletion in between
    Why it matters: A client relies on a queue or exchange that another client has created, and loses its
    channel.
    Silent when: the capture lacks octets of a connection to this server, when another client deletes the
    queue or exchange at the same time, when the queue or exchange deletes itself (auto-delete, exclusive,
    x-expires), or when amqpscope does not know its declaration.
    Only possible because: No capture can prove this fault, because a client outside the capture or the server
    itself may have deleted the queue or exchange.
    How to mend it: Make a declaration visible to all connections of the virtual host before sending
    declare-ok. In a cluster, wait until the node that answers and all other nodes know the change.
    """
    message = f"{what} {shown(name)} is not found, although the server confirmed it to {known.connection.id}"
    return about_answer(CH_VISIBLE, POSSIBLE, message, operation, known)


CH_NOWAIT_FAIL: Final = RULES.rule(
    "CH-NOWAIT-FAIL",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def not_done_and_not_said(
    operation: TopologyOperation, what: str, name: str, known: TopologyOperation
) -> Finding:
    """A server does not carry out a request with no-wait, and reports no error.

    Demands: If a server cannot carry out a request with no-wait, the server raises a channel or connection
    exception.
    Source: XML domain no-wait (doc)
    Evidence: a request with no-wait, and a later 404 that shows that the request had no effect
    Why it matters: With no-wait, an exception is the only way to report a failure. Without an exception, the
    client uses a queue or exchange that does not exist.
    Silent when: the capture lacks octets of a connection to this server, when another client deletes the
    queue or exchange at the same time, or when the queue or exchange deletes itself.
    Only possible because: No capture can prove this fault, because a client outside the capture or the server
    itself may have deleted the queue or exchange.
    How to mend it: Suppress only the -ok method when no-wait is set, never the error. If the request fails,
    close the channel or the connection with the reply-code of the failure.
    """
    message = (
        f"{what} {shown(name)} is not found, although the server did not refuse {known.method} with no-wait"
    )
    return about_answer(CH_NOWAIT_FAIL, POSSIBLE, message, operation, known)


X_PREDECLARED: Final = RULES.rule("X-PREDECLARED", "MUST", "tier B", by="server")


def standard_exchange_missing(operation: TopologyOperation, name: str) -> Finding:
    """A server reports that an exchange does not exist although every virtual host must have it.

    Demands: Every virtual host has an exchange amq.<type> for each standard exchange type that the server
    supports.
    Source: XML:exchange.required-instances; GS:3.1.3
    Evidence: a 404 for amq.direct, amq.fanout, amq.topic, amq.headers or amq.match
    Why it matters: Clients use amq.direct, amq.fanout, amq.topic and amq.match without declaring these
    exchanges. If an exchange is missing, bindings and publishes to it fail, and the server closes the
    channel.
    Silent when: the capture lacks octets of the connection, or when the server's error may be about a missing
    queue. The finding is only possible, not certain, for amq.headers and amq.match, because a server may lack
    the exchange type headers.
    Possible because: The {peer} may lack this exchange because it does not support the exchange type headers.
    How to mend it: Create `amq.direct`, `amq.fanout` and the amq exchange of every other standard type the
    server supports when a virtual host is created. Recreate missing ones when the server starts, and do not
    allow their deletion.
    """
    certainty = POSSIBLE if name in ("amq.headers", "amq.match") else CERTAIN
    message = f"the server does not find exchange {shown(name)}, which every virtual host has"
    return about_answer(X_PREDECLARED, certainty, message, operation)


# Exclusive queues


Q_EXCL_ACCESS: Final = RULES.rule(
    "Q-EXCL-ACCESS", "MAY NOT", "tier B", by="client", answer="channel.close 405"
)


def anothers_queue_used(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A client uses a queue that another open connection has declared exclusive.

    Demands: A client does not use a queue that another open connection has declared exclusive.
    Source: XML:queue.declare.exclusive.exclusive; ERR:7
    Evidence: the connection that declared the exclusive queue, and the uses of the queue on other connections
    Why it matters: An exclusive queue belongs to the connection that declared it, and the server deletes the
    queue with that connection. The server answers other connections with 405 and closes the channel.
    Silent when: the capture lacks octets of a connection to this server, or when the other connection may
    have ended. The finding is only possible, not certain, unless the server answers with 405.
    Possible because: The other connection may have ended before the use.
    How to mend it: Use an exclusive queue only on the connection that declared it. Declare the queue without
    exclusive if several connections share it. After a reconnect, wait until the server has ended the old
    connection, or use a server-named queue.
    """
    refused = operation.outcome.refused and operation.outcome.code == 405
    message = f"queue {shown(operation.queue)} belongs exclusively to {made.connection.id}"
    return about_request(Q_EXCL_ACCESS, CERTAIN if refused else POSSIBLE, message, operation, made)


Q_EXCL_DELETE: Final = RULES.rule(
    "Q-EXCL-DELETE",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def exclusive_queue_outlives(operation: TopologyOperation, made: TopologyOperation, seconds: int) -> Finding:
    """A server keeps an exclusive queue after the connection that declared the queue has ended.

    Demands: A server deletes an exclusive queue when the connection that declared the queue ends.
    Source: XML:queue.declare.exclusive (field doc); GS:4.5
    Evidence: a confirmed use of the queue after the connection that declared it has ended
    Why it matters: Messages accumulate in a queue that nobody uses any more. A later client may also mistake
    the queue for its own.
    Silent when: the capture lacks octets of a connection to this server, when fewer than ten seconds have
    passed since the connection ended, or when another client declares the queue again.
    Only possible because: Another client may have declared the queue again.
    How to mend it: Delete all exclusive queues of a connection when the connection ends, also when the socket
    breaks without connection.close.
    """
    message = (
        f"exclusive queue {shown(operation.queue)} exists {seconds} s after the end of {made.connection.id}"
    )
    return about_answer(Q_EXCL_DELETE, POSSIBLE, message, operation, made)


# Deleted


X_DELETE_INUSE: Final = RULES.rule("X-DELETE-INUSE", "MUST NOT", "tier B", by="server")


def exchange_in_use_deleted(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server deletes an exchange that has bindings, although the client set if-unused.

    Demands: If exchange.delete sets if-unused, the server keeps an exchange that still has bindings.
    Source: XML:exchange.delete.if-unused.in-use
    Evidence: the known bindings of the exchange, and exchange.delete-ok
    Why it matters: The client wanted to delete the exchange only if the exchange has no bindings. Messages
    that other clients publish to the deleted exchange are lost.
    Silent when: the capture lacks octets of a connection to this server, or when another client may have
    removed the binding.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    removed the binding, its queue or its exchange.
    How to mend it: Check for bindings whose source is the exchange before carrying out exchange.delete with
    if-unused. If bindings exist, keep the exchange and close the channel with 406.
    """
    target = binding.queue or binding.destination
    message = f"exchange {shown(operation.exchange)} is deleted as unused, but {shown(target)} is bound to it"
    return about_answer(X_DELETE_INUSE, POSSIBLE, message, operation, binding)


def queue_in_use_deleted(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A queue.delete with if-unused deletes a queue that has a consumer on another channel; see `queue`."""
    message = (
        f"queue {shown(operation.queue)} is deleted as unused, but has the consumer {shown(consumer.tag)}"
    )
    return about_answer(Q_DELETE_INUSE, POSSIBLE, message, operation, consumer)


# Bindings


Q_BIND_DUP: Final = RULES.rule("Q-BIND-DUP", "MUST", "tier B", by="server")


def same_binding_of_a_queue_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses a queue.bind for a binding that already exists.

    Demands: A server accepts a queue.bind for a binding that already exists.
    Source: XML:queue.bind.duplicates
    Evidence: the same queue.bind, which the server accepted before, and the server's refusal
    Why it matters: Applications repeat their bindings at every start, and a repeated binding must change
    nothing. The server closes the channel, so the application cannot start.
    Silent when: the capture lacks octets of a connection to this server, when the server's answer names
    access rights or a missing queue or exchange, or when the binding may have been removed.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Compare queue, exchange, routing key and arguments with the existing bindings. If an
    identical binding exists, answer queue.bind-ok and change nothing.
    """
    message = f"the binding of {shown(operation.queue)} to {shown(operation.exchange)} exists, but is refused"
    return about_answer(Q_BIND_DUP, POSSIBLE, message, operation, binding)


X_BIND_DUP: Final = RULES.rule("X-BIND-DUP", "MUST", "tier B", by="server")


def same_binding_of_an_exchange_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses an exchange.bind for a binding that already exists.

    Demands: A server accepts an exchange.bind for a binding that already exists.
    Source: RMQX:exchange.bind.duplicates
    Evidence: the same exchange.bind, which the server accepted before, and the server's refusal
    Why it matters: Applications repeat their bindings at every start, and a repeated binding must change
    nothing. The server closes the channel, so the application cannot start.
    Silent when: the capture lacks octets of a connection to this server, when the server's answer names
    access rights or a missing exchange, or when the binding may have been removed.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Compare destination, source, routing key and arguments with the existing bindings. If an
    identical binding exists, answer exchange.bind-ok and change nothing.
    """
    message = (
        f"the binding of {shown(operation.destination)} to {shown(operation.exchange)} exists, but is refused"
    )
    return about_answer(X_BIND_DUP, POSSIBLE, message, operation, binding)


X_BIND_CYCLE: Final = RULES.rule("X-BIND-CYCLE", "MUST", "tier B", by="server")


def binding_in_a_circle_refused(operation: TopologyOperation) -> Finding:
    """A server refuses to bind an exchange to itself.

    Demands: A server accepts exchange bindings that form a cycle, including a binding of an exchange to
    itself.
    Source: RMQX:exchange.bind.cyclical
    Evidence: an exchange.bind whose source equals its destination, and the server's refusal
    Why it matters: Cyclic bindings are legal, and a message passes each exchange only once. The client cannot
    create a topology with cyclic bindings, and loses its channel.
    Silent when: the server's answer names access rights or a missing exchange, or when the capture lacks
    octets of the connection.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Accept exchange bindings that form a cycle, including a binding of an exchange to itself.
    Prevent endless routing by visiting each exchange only once per message.
    """
    message = (
        f"the server refuses to bind exchange {shown(operation.exchange)} to itself: "
        f"{int(operation.outcome.code)}"
    )
    return about_answer(X_BIND_CYCLE, POSSIBLE, message, operation)


Q_BIND_TRANSIENT_X: Final = RULES.rule("Q-BIND-TRANSIENT-X", "MUST", "tier B", by="server")


def durable_queue_not_bound_to_transient(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server refuses to bind a durable queue to a transient exchange.

    Demands: A server accepts the binding of a durable queue to a transient exchange.
    Source: XML:queue.bind.transient-exchange
    Evidence: the declarations of the queue and the exchange, and the server's answer to queue.bind
    Why it matters: The specification allows a binding of a durable queue to a transient exchange; the binding
    disappears together with the exchange. The client loses its channel and cannot set up its topology.
    Silent when: amqpscope does not know the declaration of the queue or the exchange, or when the server's
    answer names access rights or a missing queue or exchange.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Accept queue.bind from a durable queue to a transient exchange. Treat the binding as
    transient and remove it when the exchange disappears.
    """
    message = (
        f"the server refuses to bind durable queue {shown(operation.queue)} to transient exchange "
        f"{shown(operation.exchange)}: {int(operation.outcome.code)}"
    )
    return about_answer(Q_BIND_TRANSIENT_X, POSSIBLE, message, operation, made)


# Minimum limits


Q_BIND_MIN_4: Final = RULES.rule("Q-BIND-MIN-4", "SHOULD", "tier B", by="server")


def too_few_bindings(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a binding for lack of resources although fewer than four bindings of the queue are
    known.

    Demands: A server lets a queue have at least four bindings.
    Source: XML:queue.bind.binding-count
    Evidence: a refusal of queue.bind with 506 while amqpscope knows fewer than four bindings of the queue
    Why it matters: The specification asks for at least four bindings per queue. The client loses its channel,
    and its queue misses messages.
    Silent when: the server's answer is not 506, or when amqpscope knows at least four bindings of the queue.
    Only possible because: The queue may have other bindings that the capture does not show.
    How to mend it: Allow at least four bindings per queue before answering queue.bind with 506. Raise the
    server's limit on bindings per queue if a limit is configured.
    """
    message = (
        f"the server refuses a binding of queue {shown(operation.queue)}, which has {known} known bindings"
    )
    return about_answer(Q_BIND_MIN_4, POSSIBLE, message, operation)


X_MIN_16: Final = RULES.rule("X-MIN-16", "SHOULD", "tier B", by="server")


def too_few_exchanges(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a new exchange for lack of resources although fewer than sixteen exchanges are known.

    Demands: A server lets a virtual host have at least 16 exchanges.
    Source: XML:exchange.declare.minimum
    Evidence: a refusal of exchange.declare with 506 while amqpscope knows fewer than 16 exchanges
    Why it matters: The specification asks for room for at least sixteen exchanges per virtual host. The
    client loses its channel and cannot set up its topology.
    Silent when: the server's answer is not 506, or when amqpscope knows at least sixteen exchanges.
    Only possible because: The virtual host may have other exchanges that the capture does not show.
    How to mend it: Allow at least sixteen exchanges per virtual host before answering exchange.declare with
    506. Raise the server's limit on exchanges if a limit is configured.
    """
    message = (
        f"the server refuses exchange {shown(operation.exchange)}, although only {known} exchanges are known"
    )
    return about_answer(X_MIN_16, POSSIBLE, message, operation)


Q_MIN_256: Final = RULES.rule("Q-MIN-256", "SHOULD", "tier B", by="server")


def too_few_queues(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a new queue for lack of resources although fewer than 256 queues are known.

    Demands: A server lets a virtual host have at least 256 queues.
    Source: XML:queue.declare.minimum-queues
    Evidence: a refusal of queue.declare with 506 while amqpscope knows fewer than 256 queues
    Why it matters: The specification asks for room for at least 256 queues per virtual host. The client loses
    its channel and has no queue.
    Silent when: the server's answer is not 506, or when amqpscope knows at least 256 queues.
    Only possible because: The virtual host may have other queues that the capture does not show.
    How to mend it: Allow at least 256 queues per virtual host before answering queue.declare with 506. Raise
    the server's limit on queues if a limit is configured.
    """
    message = f"the server refuses queue {shown(operation.queue)}, although only {known} queues are known"
    return about_answer(Q_MIN_256, POSSIBLE, message, operation)


B_CONSUME_MIN_16: Final = RULES.rule("B-CONSUME-MIN-16", "SHOULD", "tier B", by="server")


def too_few_consumers(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a consumer for lack of resources although fewer than sixteen consumers of the queue
    are known.

    Demands: A server lets a queue have at least 16 consumers.
    Source: XML:basic.consume.01
    Evidence: a refusal of basic.consume with 506 while amqpscope knows fewer than 16 consumers of the queue
    Why it matters: The specification asks for at least sixteen consumers per queue. The client loses its
    channel and receives no messages.
    Silent when: the server's answer is not 506, or when amqpscope knows at least sixteen consumers of the
    queue.
    Only possible because: The queue may have other consumers that the capture does not show.
    How to mend it: Allow at least sixteen consumers per queue before answering basic.consume with 506. Raise
    the server's limit on consumers per queue if a limit is configured.
    """
    message = (
        f"the server refuses a consumer of queue {shown(operation.queue)}, which has {known} known consumers"
    )
    return about_answer(B_CONSUME_MIN_16, POSSIBLE, message, operation)


# Consumers on other connections (`consumer` judges those on the same connection)


def exclusive_consumer_beside_others(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A client asks for exclusive access to a queue that has a consumer on another connection."""
    message = f"queue {shown(operation.queue)} has a consumer, but basic.consume sets exclusive"
    return about_request(B_CONSUME_EXCL, POSSIBLE, message, operation, consumer)


def exclusive_consumer_not_alone(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A server lets another connection read from a queue that has an exclusive consumer."""
    message = (
        f"another client reads queue {shown(operation.queue)}, which has exclusive consumer "
        f"{shown(consumer.tag)}"
    )
    return about_answer(B_CONSUME_EXCL_HELD, POSSIBLE, message, operation, consumer)


B_CANCEL_NOQUEUE: Final = RULES.rule("B-CANCEL-NOQUEUE", "MUST", "tier B", by="server")


def cancel_refused_without_queue(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server refuses a basic.cancel because the queue of the consumer has been deleted.

    Demands: A server accepts basic.cancel for a consumer whose queue was deleted.
    Source: XML:basic.cancel.01
    Evidence: a deletion of the queue, and a close that names basic.cancel
    Why it matters: A client must be able to cancel a consumer at any time. The client loses its channel, and
    the server requeues the unacknowledged deliveries of the channel.
    Silent when: the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because the server may have closed the channel for
    a reason that the capture does not show.
    How to mend it: Answer basic.cancel with basic.cancel-ok even when the queue of the consumer is gone or
    the consumer has already ended. Never close the channel because of a basic.cancel for an ended consumer.
    """
    message = (
        f"the server refuses to cancel consumer {shown(operation.tag)} of a deleted queue: "
        f"{int(operation.outcome.code)}"
    )
    return about_answer(B_CANCEL_NOQUEUE, POSSIBLE, message, operation, gone)


# Routes


Q_DECL_DEFAULT_BIND: Final = RULES.rule("Q-DECL-DEFAULT-BIND", "MUST", "tier B", by="server")


def own_name_does_not_lead_there(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server returns a message that was published to the default exchange, although a queue exists whose
    name is the routing key.

    Demands: A server binds each new queue to the default exchange under the name of the queue.
    Source: XML:queue.declare.default-binding; GS:3.1.3.1
    Evidence: a basic.return with 312 for a message that was published to the default exchange with the name
    of an existing queue
    Why it matters: The default exchange is the simplest way to send to a queue. The message does not reach
    the queue.
    Silent when: the capture lacks octets of a connection to this server, when the queue may have been
    deleted, or when the queue deletes itself.
    Only possible because: No capture can prove this fault, because a client outside the capture or the server
    itself may have deleted the queue.
    How to mend it: Bind each new queue to the default exchange with the queue name as the routing key before
    sending queue.declare-ok. Keep the binding to the default exchange until the queue is deleted.
    """
    message = (
        f"a message for queue {shown(operation.key)} is returned with {int(operation.outcome.code)}, "
        "although this queue exists"
    )
    return about_answer(Q_DECL_DEFAULT_BIND, POSSIBLE, message, operation, made)


Q_BIND_DIRECT_MATCH: Final = RULES.rule("Q-BIND-DIRECT-MATCH", "MUST", "tier B", by="server")


def bound_queue_not_reached(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server returns a message that was published to a direct exchange, although a queue is bound with
    exactly the routing key of the message.

    Demands: A direct exchange routes a message to every queue that is bound with exactly the routing key of
    the message.
    Source: XML:queue.bind.routing-key.direct-exchange-key-matching; GS:3.1.3.1
    Evidence: the known bindings, and a basic.return with 312 although a binding matches
    Why it matters: The queue does not get the message. The message is lost unless the publisher handles the
    returned message.
    Silent when: the capture lacks octets of a connection to this server, or when another client may have
    removed the binding, the queue or the exchange.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    removed the binding, the queue or the exchange.
    How to mend it: Compare the routing key with the binding keys of the direct exchange octet by octet, and
    make a binding effective before sending queue.bind-ok.
    """
    message = (
        f"a message with routing key {shown(operation.key)} is returned, although queue "
        f"{shown(binding.queue)} "
        f"is bound to exchange {shown(operation.exchange)} with this key"
    )
    return about_answer(Q_BIND_DIRECT_MATCH, POSSIBLE, message, operation, binding)


B_PUBLISH_INTERNAL: Final = RULES.rule("B-PUBLISH-INTERNAL", "MUST", "tier B", by="server")


def internal_exchange_reached(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server accepts a message from a client for an exchange that was declared internal.

    Demands: A server refuses a client's publish to an internal exchange with the channel exception 403.
    Source: XML:basic.publish.exchange.02; ERR:26
    Evidence: the internal bit of the exchange's declaration, and the server's answers after the publish
    Why it matters: Only other exchanges may route messages to an internal exchange. A server that accepts
    messages of clients makes the internal bit useless.
    Silent when: no frame proves that the server had processed the basic.publish, when another connection
    declared the exchange, or when the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    changed the exchange.
    How to mend it: On each basic.publish, check whether the exchange is internal. If the exchange is
    internal, discard the message and send channel.close with reply-code 403.
    """
    message = f"the server accepts a message for the internal exchange {shown(operation.exchange)}"
    return about_answer(B_PUBLISH_INTERNAL, POSSIBLE, message, operation, made)
