"""Exchanges and queues that are declared again or passively: what the server compares, and what it answers.

A finding is never certain if it assumes that nobody else changed an exchange or a queue: see `entities`.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091.topology_operation import about_answer, about_request, shown
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.topology_operations import AUTO_DELETE, DURABLE, EXCLUSIVE, TopologyOperation
from dissectors.amqp091.reply_code import reply_code
from dissectors.amqp091.tables import FieldTable
from dissectors.wire import i64

__all__ = ["RULES", "differences", "named"]

RULES: Final = Rules("amqp091/redeclaration")


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


def named(operation: TopologyOperation) -> str:
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

    Demands: A client may declare an existing exchange only with the type that the exchange has.
    Source: XML:exchange.declare.type.typed
    Evidence: the exchanges that amqpscope knows in the virtual host, and their types
    Why it matters: Two programs expect exchanges of different types under one name. The server refuses the
    later declaration, so the later program fails.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when another
    client declares or deletes the exchange at the same time. The rule is also silent when the server accepts
    the declaration, because X-DECL-EQUIV then reports the server. The finding is reported as certain only for
    exchanges that always exist, such as `amq.direct`, because their names define their types.
    Possible because: Another client may have deleted the exchange in the meantime.
    How to mend it: Declare an exchange with the same type in all programs. To change the type, delete the
    exchange first or use a new name. To check only whether an exchange exists, set passive in
    exchange.declare.
    """
    message = (
        f"the client declares {named(operation)} with type {shown(operation.kind)}, but the exchange exists "
        f"with type {shown(kind)}"
    )
    certainty: i64 = CERTAIN if made is None else POSSIBLE
    return about_request(X_DECL_TYPED, certainty, message, operation, made)


X_DECL_EQUIV: Final = RULES.rule("X-DECL-EQUIV", "MUST", "tier B", by="server")


def unlike_exchange_accepted(
    operation: TopologyOperation, made: TopologyOperation, what: list[str]
) -> Finding:
    """A server accepts the declaration of an existing exchange although the declared properties differ from
    those of the exchange.

    Demands: When a client declares an existing exchange, the server must compare type, durable and arguments.
    If one of these properties differs, the server must refuse the declaration with a channel exception.
    Source: XML:exchange.declare.passive.equivalent
    Evidence: the properties in earlier declarations of the exchange, and those in the new declaration
    Why it matters: The client goes on as if the exchange had the properties that the client asked for.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when another
    client declares or deletes the exchange at the same time. The rule is also silent when the exchange is
    auto-delete, or when the declaration is passive or has no-wait set. The rule does not compare arguments.
    Only possible because: Another client may have deleted the exchange in the meantime.
    How to mend it: On exchange.declare without passive, compare type, durable and arguments with those of the
    existing exchange. If the properties differ, send channel.close instead of exchange.declare-ok.
    """
    message = (
        f"the server accepts the declaration of {named(operation)}, although the exchange exists with "
        f"a different value of {' and '.join(what)}"
    )
    return about_answer(X_DECL_EQUIV, POSSIBLE, message, operation, made)


Q_DECL_EQUIV: Final = RULES.rule("Q-DECL-EQUIV", "MUST", "tier B", by="server")


def unlike_queue_accepted(operation: TopologyOperation, made: TopologyOperation, what: list[str]) -> Finding:
    """A server accepts the declaration of an existing queue although the declared properties differ from
    those of the queue.

    Demands: When a client declares an existing queue, the server must compare durable, exclusive, auto-delete
    and arguments. If one of these properties differs, the server must refuse the declaration with a channel
    exception.
    Source: XML:queue.declare.passive.equivalent
    Evidence: the properties in earlier declarations of the queue, and those in the new declaration
    Why it matters: The client goes on as if the queue had the properties that the client asked for.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when another
    client declares or deletes the queue at the same time. The rule is also silent when the queue is
    auto-delete, or when the declaration is passive or has no-wait set. The rule compares neither arguments
    nor auto-delete. For an exclusive queue, the rule does not compare the durable bit either.
    Only possible because: No capture can prove this fault, because a client that the capture does not show
    may have deleted the queue.
    How to mend it: On queue.declare without passive, compare durable, exclusive and arguments with those of
    the existing queue. If the properties differ, send channel.close instead of queue.declare-ok.
    """
    message = (
        f"the server accepts the declaration of {named(operation)}, although the queue exists with "
        f"a different value of {' and '.join(what)}"
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

    Demands: A client may declare an existing queue only with the properties that the queue has.
    Source: XML:queue.declare.passive.equivalent
    Evidence: the properties in earlier declarations of the queue, and the server's refusal of queue.declare
    with reply-code 406 (precondition-failed)
    Why it matters: Two programs, or two versions of one program, do not agree on the properties of the queue.
    The second program to declare the queue fails.
    Silent when: the capture lacks octets of the connection. The finding is reported as certain only if this
    connection itself declared the queue with different properties before. If another connection declared the
    queue, the server may have refused the declaration for another reason.
    How to mend it: Declare the queue with the same values of durable, exclusive, auto-delete and arguments in
    all programs. To change properties, delete the queue first or use a new name. To check only whether the
    queue exists, set passive in queue.declare.
    """
    certainty: i64 = POSSIBLE
    message = (
        f"the server refuses the declaration of {named(operation)} with "
        f"{reply_code(int(operation.outcome.code))}, so the queue seems to exist with other properties"
    )
    if made is not None:
        message = (
            f"the client declares {named(operation)} with a different value of {' and '.join(what)} than "
            f"before, and the server refuses the declaration with {reply_code(int(operation.outcome.code))}"
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

    Demands: When a client declares an existing queue, the server must ignore the auto-delete bit.
    Source: XML:queue.declare.auto-delete.pre-existence
    Evidence: a declaration that differs from the queue only in auto-delete, and the server's refusal
    Why it matters: The client cannot use the queue. In the specification of queue.declare, one rule says that
    the server ignores auto-delete for an existing queue, but another rule lists auto-delete among the
    compared fields. RabbitMQ compares auto-delete.
    Silent when: the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a client that the capture does not show
    may have changed the queue, or the server may have had another reason.
    How to mend it: Ignore the auto-delete bit of queue.declare when the queue already exists. Applications
    avoid the refusal if all clients declare the queue with the same auto-delete value, or declare the queue
    passively.
    """
    message = (
        f"the server refuses the declaration of {named(operation)} because of a different auto-delete bit, "
        "which servers must ignore"
    )
    return about_answer(Q_DECL_AUTODEL_IGNORE, POSSIBLE, message, operation, made)


# Passive


X_DECL_PASSIVE_404: Final = RULES.rule("X-DECL-PASSIVE-404", "MUST", "tier B", by="server")


def passive_exchange_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server answers a passive exchange.declare with exchange.declare-ok although the exchange does not
    exist.

    Demands: A server must refuse a passive exchange.declare of a missing exchange with the channel
    exception 404 (not-found).
    Source: XML:exchange.declare.passive.not-found
    Evidence: a passive exchange.declare after an exchange.delete, and the server's answer
    Why it matters: A client that relies on this exchange.declare-ok publishes to a missing exchange and loses
    its messages.
    Silent when: the capture lacks octets of a connection to this server, or when another client declares the
    exchange at the same time.
    Only possible because: Another client may have declared the exchange again.
    How to mend it: When a passive exchange.declare arrives, check whether the exchange exists. If the
    exchange does not exist, close the channel with reply-code 404 (not-found) and do not send
    exchange.declare-ok.
    """
    message = f"the server says that {named(operation)} exists, although the exchange was deleted"
    return about_answer(X_DECL_PASSIVE_404, POSSIBLE, message, operation, gone)


Q_DECL_PASSIVE_404: Final = RULES.rule("Q-DECL-PASSIVE-404", "IMPLIED", "tier B", by="server")


def passive_queue_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server answers a passive queue.declare with queue.declare-ok although the queue does not exist.

    Demands: A server must refuse a passive queue.declare of a missing queue with the channel exception
    404 (not-found).
    Source: XML:queue.declare.passive.passive
    Evidence: a passive queue.declare after a queue.delete, and the server's answer
    Why it matters: A client that relies on this queue.declare-ok waits for messages from a missing queue.
    Silent when: the capture lacks octets of a connection to this server, or when another client declares the
    queue at the same time.
    Only possible because: Another client may have declared the queue again.
    How to mend it: When a passive queue.declare arrives, check whether the queue exists. If the queue does
    not exist, close the channel with reply-code 404 (not-found) and do not send queue.declare-ok.
    """
    message = f"the server says that {named(operation)} exists, although the queue was deleted"
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

    Demands: In a passive exchange.declare, the server may read only the exchange name and no-wait.
    Source: XML:exchange.declare.passive (field doc)
    Evidence: a passive exchange.declare that the server refuses with a reply-code other than 404
    (not-found) and 403 (access-refused)
    Why it matters: A passive declaration only asks whether the exchange exists. A client that sends arbitrary
    values in the other fields loses its channel although the exchange exists.
    Silent when: the reply-code of the server is 404 (not-found) or 403 (access-refused). The rule is
    also silent when the capture lacks octets of the connection.
    Only possible because: Only the reply-code indicates why the server refused the declaration.
    How to mend it: Read only the fields `exchange` and `no-wait` when the passive bit of exchange.declare is
    set. Do not compare type, durable or arguments with those of the existing exchange.
    """
    message = (
        f"the server refuses a passive declaration of {named(operation)} with "
        f"{reply_code(int(operation.outcome.code))}, but must check only whether the exchange exists"
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

    Demands: In a passive queue.declare, the server may read only the queue name and no-wait.
    Source: XML:queue.declare.passive (field doc)
    Evidence: a passive queue.declare that the server refuses with a reply-code other than 404
    (not-found), 403 (access-refused) and 405 (resource-locked)
    Why it matters: A passive declaration only asks whether the queue exists. A client that sends arbitrary
    values in the other fields loses its channel although the queue exists.
    Silent when: the reply-code of the server is 404 (not-found), 403 (access-refused) or 405 (the queue
    belongs exclusively to another connection). The rule is also silent when the capture lacks octets of
    the connection.
    Only possible because: Only the reply-code indicates why the server refused the declaration.
    How to mend it: Read only the fields `queue` and `no-wait` when the passive bit of queue.declare is set.
    Do not compare durable, exclusive, auto-delete or arguments with those of the existing queue.
    """
    message = (
        f"the server refuses a passive declaration of {named(operation)} with "
        f"{reply_code(int(operation.outcome.code))}, but must check only whether the queue exists"
    )
    return about_answer(Q_DECL_PASSIVE_IGNORE, POSSIBLE, message, operation)
