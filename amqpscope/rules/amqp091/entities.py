"""What a server keeps of exchanges, queues, bindings and consumers, and what it lets be done to them.

They belong to a virtual host: what one connection was told binds the server towards all others. Nothing here
is ever certain that rests on nobody else having changed them: others than those captured may have, and a
server's own policies (limits, idle time, a restart).
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
    """In what two declarations of a queue, or of an exchange, differ."""
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
    """The pairs of a table, in an order that is always the same."""
    return sorted(f"{name!r}: {value!r}" for name, value in FieldTable(octets).read().pairs)


def _named(operation: TopologyOperation) -> str:
    """What is declared, as words."""
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

    Demands: An existing exchange is not redeclared with another type.
    Source: XML:exchange.declare.type.typed
    Evidence: known exchanges per vhost with type
    Why it matters: The two programs do not mean the same exchange. The server refuses the later declaration,
    so the later program fails.
    Silent when: octets of the connections to this server were not captured, the exchange is declared or
    deleted at the same time, or the server accepts the declaration (which is then a fault of the server, see
    X-DECL-EQUIV). The finding is certain only for exchanges that exist from the start, for example
    `amq.direct`, because their names define their types.
    Possible because: Another client may have deleted the exchange in the meantime.
    How to mend it: Declare an exchange with the same type in all programs. To change the type, delete the
    exchange first or use a new name. To only check that an exchange exists, set passive in exchange.declare.
    """
    message = f"{_named(operation)} is declared with type {shown(operation.kind)}; it has {shown(kind)}"
    certainty: i64 = CERTAIN if made is None else POSSIBLE
    return about_request(X_DECL_TYPED, certainty, message, operation, made)


X_DECL_EQUIV: Final = RULES.rule("X-DECL-EQUIV", "MUST", "tier B", by="server")


def unlike_exchange_accepted(
    operation: TopologyOperation, made: TopologyOperation, what: list[str]
) -> Finding:
    """A server accepts the declaration of an existing exchange although the declared properties differ from
    those of the exchange.

    Demands: On an active redeclare the server compares type, durable and arguments and raises a channel
    exception unless they match.
    Source: XML:exchange.declare.passive.equivalent
    Evidence: declared properties per vhost and exchange
    Why it matters: The client goes on as if the exchange had the properties that it asked for.
    Silent when: octets of the connections to this server were not captured, the exchange is declared or
    deleted at the same time, the exchange was declared to delete itself, or the declaration is passive or has
    no-wait. The rule does not compare arguments.
    Only possible because: Another client may have deleted the exchange in the meantime.
    How to mend it: On exchange.declare without passive, compare type, durable and arguments with those of the
    existing exchange. If they differ, send channel.close instead of exchange.declare-ok.
    """
    message = f"{_named(operation)} is declared with another {' and '.join(what)}, and that is accepted"
    return about_answer(X_DECL_EQUIV, POSSIBLE, message, operation, made)


Q_DECL_EQUIV: Final = RULES.rule("Q-DECL-EQUIV", "MUST", "tier B", by="server")


def unlike_queue_accepted(operation: TopologyOperation, made: TopologyOperation, what: list[str]) -> Finding:
    """A server accepts the declaration of an existing queue although the declared properties differ from
    those of the queue.

    Demands: On an active redeclare the server compares durable, exclusive, auto-delete and arguments and
    raises a channel exception unless they match.
    Source: XML:queue.declare.passive.equivalent
    Evidence: declared properties per vhost and queue
    Why it matters: The client goes on as if the queue had the properties that it asked for.
    Silent when: octets of the connections to this server were not captured, the queue is declared or deleted
    at the same time, the queue was declared to delete itself, or the declaration is passive or has no-wait.
    The rule compares neither arguments nor auto-delete, and of an exclusive queue not durable.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    deleted the queue.
    How to mend it: On queue.declare without passive, compare durable, exclusive and arguments with those of
    the existing queue. If they differ, send channel.close instead of queue.declare-ok.
    """
    message = f"{_named(operation)} is declared with another {' and '.join(what)}, and that is accepted"
    return about_answer(Q_DECL_EQUIV, POSSIBLE, message, operation, made)


Q_DECL_EQUIV_CLIENT: Final = RULES.rule(
    "Q-DECL-EQUIV-CLIENT", "IMPLIED", "tier B", by="client", answer="channel.close 406"
)


def queue_declared_otherwise(
    operation: TopologyOperation, made: TopologyOperation | None, what: list[str]
) -> Finding:
    """A client declares an existing queue with properties that differ from those of the queue, and the server
    refuses the declaration.

    Demands: A client redeclares an existing queue only with its original properties.
    Source: XML:queue.declare.passive.equivalent
    Evidence: declared properties; 406 reply with class/method 50.10
    Why it matters: Two programs, or two versions of one program, do not agree on the properties of the queue.
    The program that declares later fails.
    Silent when: octets of the connection were not captured. The finding is only possible, not certain, unless
    this connection itself declared the queue with the other properties, because the server may have refused
    something else.
    How to mend it: Declare the queue with the same durable, exclusive, auto-delete and arguments in all
    programs. To change properties, delete the queue first or use a new name. To only check the queue, set
    passive.
    """
    certainty: i64 = POSSIBLE
    message = (
        f"{_named(operation)} is declared with properties that are refused with {int(operation.outcome.code)}"
    )
    if made is not None:
        message = (
            f"{_named(operation)} is declared with another {' and '.join(what)} than before,"
            f" and refused with {int(operation.outcome.code)}"
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

    Demands: For an existing queue the auto-delete bit of a declare is ignored.
    Source: XML:queue.declare.auto-delete.pre-existence
    Evidence: redeclare differing in auto-delete only, answered by a close
    Why it matters: The client cannot use the queue, although one rule of queue.declare says that the server
    ignores auto-delete for an existing queue. Another rule lists auto-delete among the compared fields, and
    RabbitMQ compares it.
    Silent when: octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    changed the queue, or the server may have had another reason.
    How to mend it: Ignore the auto-delete bit of queue.declare when the queue already exists. Applications
    avoid the refusal if all clients declare the queue with the same auto-delete value, or declare it
    passively.
    """
    message = f"{_named(operation)} exists; its declaration is refused for another auto-delete"
    return about_answer(Q_DECL_AUTODEL_IGNORE, POSSIBLE, message, operation, made)


# Passive


X_DECL_PASSIVE_404: Final = RULES.rule("X-DECL-PASSIVE-404", "MUST", "tier B", by="server")


def passive_exchange_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server answers a passive exchange.declare with declare-ok although the exchange does not exist.

    Demands: A passive declare of a missing exchange raises channel exception 404.
    Source: XML:exchange.declare.passive.not-found
    Evidence: passive declare after a seen delete, or wrong code in the refusal
    Why it matters: A client that relies on this answer publishes to an exchange that does not exist, and its
    messages are lost.
    Silent when: octets of the connections to this server were not captured, or another client declares the
    exchange at the same time.
    Only possible because: Another client may have declared the exchange again.
    How to mend it: Look the exchange up when a passive exchange.declare arrives. If the exchange does not
    exist, close the channel with 404 and do not send exchange.declare-ok.
    """
    message = f"{_named(operation)} is said to exist, though it was deleted"
    return about_answer(X_DECL_PASSIVE_404, POSSIBLE, message, operation, gone)


Q_DECL_PASSIVE_404: Final = RULES.rule("Q-DECL-PASSIVE-404", "IMPLIED", "tier B", by="server")


def passive_queue_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server answers a passive queue.declare with declare-ok although the queue does not exist.

    Demands: A passive declare of a missing queue fails with channel exception 404.
    Source: XML:queue.declare.passive.passive
    Evidence: passive declare after a seen delete, or wrong code in the refusal
    Why it matters: A client that relies on this answer waits for messages from a queue that does not exist.
    Silent when: octets of the connections to this server were not captured, or another client declares the
    queue at the same time.
    Only possible because: Another client may have declared the queue again.
    How to mend it: Look the queue up when a passive queue.declare arrives. If the queue does not exist, close
    the channel with 404 and do not send queue.declare-ok.
    """
    message = f"{_named(operation)} is said to exist, though it was deleted"
    return about_answer(Q_DECL_PASSIVE_404, POSSIBLE, message, operation, gone)


X_DECL_PASSIVE_IGNORE: Final = RULES.rule(
    "X-DECL-PASSIVE-IGNORE",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def passive_exchange_compared(operation: TopologyOperation) -> Finding:
    """A server refuses a passive exchange.declare for another reason than that the exchange does not exist.

    Demands: In a passive declare the server looks at name and no-wait only.
    Source: XML:exchange.declare.passive (field doc)
    Evidence: passive declare with other type/flags answered 406 or 530
    Why it matters: A passive declaration only asks whether the exchange exists. A client that sends arbitrary
    values in the other fields loses its channel although the exchange exists.
    Silent when: the answer is 404 (the exchange does not exist) or 403 (access is not allowed), or octets of
    the connection were not captured.
    Only possible because: The reply-code is the only hint why the server refused the declaration.
    How to mend it: Read only exchange and no-wait when the passive bit of exchange.declare is set. Do not
    compare type, durable or arguments with the existing exchange.
    """
    message = f"a passive declaration of {_named(operation)} is refused with {int(operation.outcome.code)}"
    return about_answer(X_DECL_PASSIVE_IGNORE, POSSIBLE, message, operation)


Q_DECL_PASSIVE_IGNORE: Final = RULES.rule(
    "Q-DECL-PASSIVE-IGNORE",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def passive_queue_compared(operation: TopologyOperation) -> Finding:
    """A server refuses a passive queue.declare because of its other fields.

    Demands: In a passive declare the server looks at name and no-wait only.
    Source: XML:queue.declare.passive (field doc)
    Evidence: passive declare with other flags answered 406
    Why it matters: A passive declaration only asks whether the queue exists. A client that sends arbitrary
    values in the other fields loses its channel although the queue exists.
    Silent when: the answer is 404, 403 or 405 (the queue belongs exclusively to another connection), or
    octets of the connection were not captured.
    Only possible because: The reply-code is the only hint why the server refused the declaration.
    How to mend it: Read only queue and no-wait when the passive bit of queue.declare is set. Do not compare
    durable, exclusive, auto-delete or arguments with the existing queue.
    """
    message = f"a passive declaration of {_named(operation)} is refused with {int(operation.outcome.code)}"
    return about_answer(Q_DECL_PASSIVE_IGNORE, POSSIBLE, message, operation)


# What others were told


CH_VISIBLE: Final = RULES.rule("CH-VISIBLE", "MUST", "tier B", by="server")


def change_not_seen(operation: TopologyOperation, what: str, name: str, known: TopologyOperation) -> Finding:
    """A server answers 404 for a queue or exchange whose existence it has confirmed to another client.

    Demands: Once a client has seen the reply to a change, every other client of the virtual host sees its
    effect.
    Source: GS:4.4
    Evidence: Declare-Ok on one connection, later 404 on another, no delete between
    Why it matters: One client relies on a queue or exchange that another client has created, and its channel
    is closed. After the confirmation, every client of the virtual host must see the change.
    Silent when: octets of the connections to this server were not captured, another client deletes the queue
    or exchange at the same time, the queue or exchange deletes itself (auto-delete, exclusive, x-expires), or
    its declaration is not known.
    Only possible because: No capture can prove this fault, because a client outside the capture or the server
    itself may have deleted the queue or exchange.
    How to mend it: Make a declaration visible to all connections of the virtual host before sending
    declare-ok. In a cluster, wait until the node that answers and all other nodes know the change.
    """
    message = f"{what} {shown(name)} is not found, which {known.connection.id} was told to be there"
    return about_answer(CH_VISIBLE, POSSIBLE, message, operation, known)


CH_NOWAIT_FAIL: Final = RULES.rule(
    "CH-NOWAIT-FAIL",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def not_done_and_not_said(
    operation: TopologyOperation, what: str, name: str, known: TopologyOperation
) -> Finding:
    """A server does not carry out a request with no-wait, and raises no exception.

    Demands: If a no-wait request cannot be carried out the server raises a channel or connection exception.
    Source: XML domain no-wait (doc)
    Evidence: later 404 or missing entity after a no-wait request
    Why it matters: With no-wait, an exception is the only way to report a failure. Without an exception the
    client goes on and uses a queue or exchange that does not exist.
    Silent when: octets of the connections to this server were not captured, another client deletes the queue
    or exchange at the same time, or the queue or exchange deletes itself.
    Only possible because: No capture can prove this fault, because a client outside the capture or the server
    itself may have deleted the queue or exchange.
    How to mend it: Suppress only the -ok method when no-wait is set, never the error. If the request fails,
    close the channel or the connection with the reply-code of the failure.
    """
    message = f"{what} {shown(name)} is not found, though {known.method} with no-wait was not refused"
    return about_answer(CH_NOWAIT_FAIL, POSSIBLE, message, operation, known)


X_PREDECLARED: Final = RULES.rule("X-PREDECLARED", "MUST", "tier B", by="server")


def standard_exchange_missing(operation: TopologyOperation, name: str) -> Finding:
    """A server reports that an exchange does not exist although every virtual host must have it.

    Demands: In every virtual host amq.<type> exists for each standard type the server has.
    Source: XML:exchange.required-instances; GS:3.1.3
    Evidence: 404 on bind, publish or passive declare of amq.direct, amq.fanout, amq.topic, amq.headers or
    amq.match
    Why it matters: Clients use amq.direct, amq.fanout, amq.topic and amq.match without declaring them, so
    their binds and publishes fail and their channels are closed.
    Silent when: octets of the connection were not captured, or the server's error may be about a missing
    queue. The finding
    is only possible, not certain, for amq.headers and amq.match, because a server need not have the type
    headers.
    Possible because: The {peer} need not have this exchange if it does not support the type headers.
    How to mend it: Create `amq.direct`, `amq.fanout` and the amq exchange of every other standard type the
    server supports when a virtual host is created. Recreate missing ones when the server starts, and do not
    allow their deletion.
    """
    certainty = POSSIBLE if name in ("amq.headers", "amq.match") else CERTAIN
    message = f"exchange {shown(name)} is not found"
    return about_answer(X_PREDECLARED, certainty, message, operation)


# Exclusive queues


Q_EXCL_ACCESS: Final = RULES.rule(
    "Q-EXCL-ACCESS", "MAY NOT", "tier B", by="client", answer="channel.close 405"
)


def anothers_queue_used(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A client uses a queue that another connection, which is still open, has declared exclusive.

    Demands: A queue that another open connection declared exclusive is not used.
    Source: XML:queue.declare.exclusive.exclusive; ERR:7
    Evidence: exclusive owner per vhost and queue across connections
    Why it matters: An exclusive queue belongs to the connection that declared it, and is deleted with that
    connection. The server refuses every other connection and closes its channel with 405.
    Silent when: octets of the connections to this server were not captured, or the other connection may have
    ended. The finding is only possible if the server does not refuse the use with 405.
    Possible because: The other connection may have ended before the use.
    How to mend it: Use an exclusive queue only on the connection that declared it. Declare the queue without
    exclusive if several connections share it. After a reconnect, wait until the server has ended the old
    connection, or use a server-named queue.
    """
    refused = operation.outcome.refused and operation.outcome.code == 405
    message = f"queue {shown(operation.queue)} is exclusive to {made.connection.id}"
    return about_request(Q_EXCL_ACCESS, CERTAIN if refused else POSSIBLE, message, operation, made)


Q_EXCL_DELETE: Final = RULES.rule(
    "Q-EXCL-DELETE",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def exclusive_queue_outlives(operation: TopologyOperation, made: TopologyOperation, seconds: int) -> Finding:
    """A server keeps an exclusive queue after the connection that declared the queue has ended.

    Demands: Exclusive queues go away when their connection closes.
    Source: XML:queue.declare.exclusive (field doc); GS:4.5
    Evidence: Declare-Ok (passive) or Consume-Ok after the owner's connection ended
    Why it matters: Messages accumulate in a queue that has no user any more, or a later client mistakes the
    queue for its own.
    Silent when: octets of the connections to this server were not captured, fewer than ten seconds have
    passed since the connection ended, or another client declares the queue again.
    Only possible because: Another client may have declared the queue again.
    How to mend it: Delete all exclusive queues of a connection when the connection ends, also when the socket
    breaks without connection.close.
    """
    message = (
        f"queue {shown(operation.queue)} is there {seconds} s after {made.connection.id}, which it was of"
    )
    return about_answer(Q_EXCL_DELETE, POSSIBLE, message, operation, made)


# Deleted


X_DELETE_INUSE: Final = RULES.rule("X-DELETE-INUSE", "MUST NOT", "tier B", by="server")


def exchange_in_use_deleted(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server deletes an exchange that has bindings, although the client set if-unused.

    Demands: With if-unused set the server keeps an exchange that still has bindings.
    Source: XML:exchange.delete.if-unused.in-use
    Evidence: bindings seen per exchange; Delete-Ok
    Why it matters: The client wanted the exchange deleted only if it is unused. Messages that other clients
    publish to the deleted exchange are lost.
    Silent when: octets of the connections to this server were not captured, or the binding may have been
    removed.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    removed the binding, its queue or its exchange.
    How to mend it: Check for bindings whose source is the exchange before carrying out exchange.delete with
    if-unused. If bindings exist, keep the exchange and close the channel with 406.
    """
    target = binding.queue or binding.destination
    message = f"exchange {shown(operation.exchange)} is deleted as unused, and {shown(target)} is bound to it"
    return about_answer(X_DELETE_INUSE, POSSIBLE, message, operation, binding)


def queue_in_use_deleted(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """With if-unused set a queue is deleted that has a consumer on another channel; see `queue`."""
    message = (
        f"queue {shown(operation.queue)} is deleted as unused, and {shown(consumer.tag)} consumes from it"
    )
    return about_answer(Q_DELETE_INUSE, POSSIBLE, message, operation, consumer)


# Bindings


Q_BIND_DUP: Final = RULES.rule("Q-BIND-DUP", "MUST", "tier B", by="server")


def same_binding_of_a_queue_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses a queue.bind for a binding that already exists.

    Demands: Repeating an identical binding is not an error.
    Source: XML:queue.bind.duplicates
    Evidence: same bind answered Bind-Ok before and not undone
    Why it matters: Applications repeat their bindings at every start, and a repeated binding must change
    nothing. Here the client loses its channel and cannot start.
    Silent when: octets of the connections to this server were not captured, the answer is about access or a
    missing entity, or the binding may have been removed.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Compare queue, exchange, routing key and arguments with the existing bindings. If an
    identical binding exists, answer queue.bind-ok and change nothing.
    """
    message = f"the binding of {shown(operation.queue)} to {shown(operation.exchange)} is there, and refused"
    return about_answer(Q_BIND_DUP, POSSIBLE, message, operation, binding)


X_BIND_DUP: Final = RULES.rule("X-BIND-DUP", "MUST", "tier B", by="server")


def same_binding_of_an_exchange_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses an exchange.bind for a binding that already exists.

    Demands: Repeating an identical exchange binding is not an error.
    Source: RMQX:exchange.bind.duplicates
    Evidence: same bind answered Bind-Ok before
    Why it matters: Applications repeat their bindings at every start, and a repeated binding must change
    nothing. Here the client loses its channel and cannot start.
    Silent when: octets of the connections to this server were not captured, the answer is about access or a
    missing entity, or the binding may have been removed.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Compare destination, source, routing key and arguments with the existing bindings. If an
    identical binding exists, answer exchange.bind-ok and change nothing.
    """
    message = (
        f"the binding of {shown(operation.destination)} to {shown(operation.exchange)} is there, and refused"
    )
    return about_answer(X_BIND_DUP, POSSIBLE, message, operation, binding)


X_BIND_CYCLE: Final = RULES.rule("X-BIND-CYCLE", "MUST", "tier B", by="server")


def binding_in_a_circle_refused(operation: TopologyOperation) -> Finding:
    """A server refuses to bind an exchange to itself.

    Demands: Cyclic exchange bindings, even to itself, are accepted.
    Source: RMQX:exchange.bind.cyclical
    Evidence: destination = source answered by a close
    Why it matters: Cyclic bindings are legal, and each message passes them only once. A topology that relies
    on cyclic bindings cannot be created, and the channel is closed.
    Silent when: the answer is about access or a missing entity, or octets of the connection were not
    captured.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Accept exchange bindings that form a cycle, including a binding of an exchange to itself.
    Prevent endless routing by visiting each exchange only once per message.
    """
    message = (
        f"the binding of {shown(operation.exchange)} to itself is refused with {int(operation.outcome.code)}"
    )
    return about_answer(X_BIND_CYCLE, POSSIBLE, message, operation)


Q_BIND_TRANSIENT_X: Final = RULES.rule("Q-BIND-TRANSIENT-X", "MUST", "tier B", by="server")


def durable_queue_not_bound_to_transient(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server refuses to bind a durable queue to a transient exchange.

    Demands: A durable queue can be bound to a transient exchange.
    Source: XML:queue.bind.transient-exchange
    Evidence: declared durability of both; reply to bind
    Why it matters: The specification allows this binding, which disappears together with the exchange. The
    client loses its channel and cannot set up its topology.
    Silent when: the declaration of the queue or the exchange is not known, or the answer is about access or a
    missing entity.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Accept queue.bind from a durable queue to a transient exchange. Treat the binding as
    transient and remove it when the exchange disappears.
    """
    message = (
        f"durable queue {shown(operation.queue)} is not bound to transient exchange "
        f"{shown(operation.exchange)}: {int(operation.outcome.code)}"
    )
    return about_answer(Q_BIND_TRANSIENT_X, POSSIBLE, message, operation, made)


# How many there may be


Q_BIND_MIN_4: Final = RULES.rule("Q-BIND-MIN-4", "SHOULD", "tier B", by="server")


def too_few_bindings(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a binding for lack of resources although fewer than four bindings of the queue are
    known.

    Demands: A queue can have at least four bindings.
    Source: XML:queue.bind.binding-count
    Evidence: 506 (or other) on bind while fewer than 4 are known
    Why it matters: The specification asks for at least four bindings per queue. The client loses its channel,
    and its queue misses messages.
    Silent when: the answer is not 506, or four bindings of the queue are known.
    Only possible because: The queue may have other bindings that the capture does not show.
    How to mend it: Allow at least four bindings per queue before answering queue.bind with 506. Raise the
    server's limit on bindings per queue if a limit is configured.
    """
    message = f"no room for a binding of {shown(operation.queue)}, of which {known} are known"
    return about_answer(Q_BIND_MIN_4, POSSIBLE, message, operation)


X_MIN_16: Final = RULES.rule("X-MIN-16", "SHOULD", "tier B", by="server")


def too_few_exchanges(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a new exchange for lack of resources although fewer than sixteen exchanges are known.

    Demands: A virtual host has room for at least 16 exchanges.
    Source: XML:exchange.declare.minimum
    Evidence: 506 (or other) on declare while fewer than 16 are known
    Why it matters: The specification asks for room for at least sixteen exchanges per virtual host. The
    client loses its channel and cannot set up its topology.
    Silent when: the answer is not 506, or sixteen exchanges are known.
    Only possible because: The virtual host may have other exchanges that the capture does not show.
    How to mend it: Allow at least sixteen exchanges per virtual host before answering exchange.declare with
    506. Raise the server's limit on exchanges if a limit is configured.
    """
    message = f"no room for exchange {shown(operation.exchange)}, while {known} are known"
    return about_answer(X_MIN_16, POSSIBLE, message, operation)


Q_MIN_256: Final = RULES.rule("Q-MIN-256", "SHOULD", "tier B", by="server")


def too_few_queues(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a new queue for lack of resources although fewer than 256 queues are known.

    Demands: A virtual host has room for at least 256 queues.
    Source: XML:queue.declare.minimum-queues
    Evidence: 506 (or other) on declare while fewer than 256 are known
    Why it matters: The specification asks for room for at least 256 queues per virtual host. The client loses
    its channel and has no queue.
    Silent when: the answer is not 506, or 256 queues are known.
    Only possible because: The virtual host may have other queues that the capture does not show.
    How to mend it: Allow at least 256 queues per virtual host before answering queue.declare with 506. Raise
    the server's limit on queues if a limit is configured.
    """
    message = f"no room for queue {shown(operation.queue)}, while {known} are known"
    return about_answer(Q_MIN_256, POSSIBLE, message, operation)


B_CONSUME_MIN_16: Final = RULES.rule("B-CONSUME-MIN-16", "SHOULD", "tier B", by="server")


def too_few_consumers(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a consumer for lack of resources although fewer than sixteen consumers of the queue
    are known.

    Demands: A queue can have at least 16 consumers.
    Source: XML:basic.consume.01
    Evidence: refusal of consume while fewer than 16 are known
    Why it matters: The specification asks for at least sixteen consumers per queue. The client loses its
    channel and receives no messages.
    Silent when: the answer is not 506, or sixteen consumers of the queue are known.
    Only possible because: The queue may have other consumers that the capture does not show.
    How to mend it: Allow at least sixteen consumers per queue before answering basic.consume with 506. Raise
    the server's limit on consumers per queue if a limit is configured.
    """
    message = f"no room for a consumer of {shown(operation.queue)}, of which {known} are known"
    return about_answer(B_CONSUME_MIN_16, POSSIBLE, message, operation)


# Consumers, on other connections; those on the same one are the concern of `consumer`


def exclusive_consumer_beside_others(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A client asks to be the only consumer of a queue that has one on another connection."""
    message = f"queue {shown(operation.queue)} is asked for exclusively, and has a consumer"
    return about_request(B_CONSUME_EXCL, POSSIBLE, message, operation, consumer)


def exclusive_consumer_not_alone(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A server lets another connection read from a queue that has an exclusive consumer."""
    message = (
        f"queue {shown(operation.queue)} is read from beside its exclusive consumer {shown(consumer.tag)}"
    )
    return about_answer(B_CONSUME_EXCL_HELD, POSSIBLE, message, operation, consumer)


B_CANCEL_NOQUEUE: Final = RULES.rule("B-CANCEL-NOQUEUE", "MUST", "tier B", by="server")


def cancel_refused_without_queue(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server refuses a basic.cancel because the queue of the consumer has been deleted.

    Demands: Cancel for a valid tag raises no error even if its queue is gone.
    Source: XML:basic.cancel.01
    Evidence: deleted queue; close naming basic.cancel
    Why it matters: A client must be able to cancel a consumer safely at any time, whatever happened to its
    queue. Here the cancel closes the channel and requeues its unacknowledged deliveries.
    Silent when: octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because the server may have closed the channel for
    a reason that the capture does not show.
    How to mend it: Answer basic.cancel with basic.cancel-ok even when the queue of the consumer is gone or
    the consumer has already ended. Never close the channel for such a basic.cancel.
    """
    message = (
        f"consumer {shown(operation.tag)} of a deleted queue is not cancelled: {int(operation.outcome.code)}"
    )
    return about_answer(B_CANCEL_NOQUEUE, POSSIBLE, message, operation, gone)


# Routes


Q_DECL_DEFAULT_BIND: Final = RULES.rule("Q-DECL-DEFAULT-BIND", "MUST", "tier B", by="server")


def own_name_does_not_lead_there(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server returns a message that was published to the default exchange, although a queue with the
    routing key as its name exists.

    Demands: A new queue is bound to the default exchange under its own name.
    Source: XML:queue.declare.default-binding; GS:3.1.3.1
    Evidence: Basic.Return 312 for publish to "" with a live queue's name
    Why it matters: Every queue must be bound to the default exchange by its name. Here the simplest way to
    send to a queue fails, and the message does not reach the queue.
    Silent when: octets of the connections to this server were not captured, the queue may have been deleted,
    or the queue deletes itself.
    Only possible because: No capture can prove this fault, because a client outside the capture or the server
    itself may have deleted the queue.
    How to mend it: Bind each new queue to the default exchange with the queue name as the routing key before
    sending queue.declare-ok. Keep this binding until the queue is deleted.
    """
    message = (
        f"a message for queue {shown(operation.key)} is returned with {int(operation.outcome.code)}, "
        "and there is such"
    )
    return about_answer(Q_DECL_DEFAULT_BIND, POSSIBLE, message, operation, made)


Q_BIND_DIRECT_MATCH: Final = RULES.rule("Q-BIND-DIRECT-MATCH", "MUST", "tier B", by="server")


def bound_queue_not_reached(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server returns a message that was published to a direct exchange, although a queue is bound with
    exactly the routing key of the message.

    Demands: On a direct exchange a message goes to every queue bound with exactly its routing key.
    Source: XML:queue.bind.routing-key.direct-exchange-key-matching; GS:3.1.3.1
    Evidence: bindings seen; mandatory publish returned 312 despite a matching binding
    Why it matters: The queue does not get the message. The message is lost unless the publisher handles the
    returned message.
    Silent when: octets of the connections to this server were not captured, or the binding, the queue or the
    exchange may be gone.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    removed the binding, the queue or the exchange.
    How to mend it: Compare the routing key with the binding keys of the direct exchange octet by octet, and
    make a binding effective before sending queue.bind-ok.
    """
    message = (
        f"a message with key {shown(operation.key)} is returned by {shown(operation.exchange)},"
        f" to which {shown(binding.queue)} is bound with it"
    )
    return about_answer(Q_BIND_DIRECT_MATCH, POSSIBLE, message, operation, binding)


B_PUBLISH_INTERNAL: Final = RULES.rule("B-PUBLISH-INTERNAL", "MUST", "tier B", by="server")


def internal_exchange_reached(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server accepts a message from a client for an exchange that was declared internal.

    Demands: A publish to an internal exchange is refused with channel exception 403.
    Source: XML:basic.publish.exchange.02; ERR:26
    Evidence: declared internal bit; reaction to publish
    Why it matters: Only other exchanges may route messages to an internal exchange. The server has to refuse
    a client's basic.publish with reply-code 403.
    Silent when: nothing shows that the server had processed the basic.publish, another connection declared
    the exchange, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a client outside the capture may have
    changed the exchange.
    How to mend it: On each basic.publish, check whether the exchange is internal. If it is, discard the
    message and send channel.close with reply-code 403.
    """
    message = f"a message for internal exchange {shown(operation.exchange)} was taken"
    return about_answer(B_PUBLISH_INTERNAL, POSSIBLE, message, operation, made)
