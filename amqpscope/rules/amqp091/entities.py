"""Exchanges, queues and consumers of a server, and which operations on them the server accepts.

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
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from dissectors.amqp091.reply_code import reply_code
from dissectors.wording import count

__all__ = ["RULES"]

RULES: Final = Rules("amqp091/entities")


# Confirmed to other clients


CH_VISIBLE: Final = RULES.rule("CH-VISIBLE", "MUST", "tier B", by="server")


def change_not_seen(operation: TopologyOperation, what: str, name: str, known: TopologyOperation) -> Finding:
    """A server answers with reply-code 404 (not-found) for a queue or exchange, although it has
    confirmed to another client that the queue or exchange exists.

    Demands: As soon as a server has confirmed a change that one client requested, every other client of the
    virtual host must see the change.
    Source: GS:4.4
    Evidence: a declaration that the server confirmed on one connection, and a later reply-code 404
    (not-found) on another connection without a deletion in between
    Why it matters: A client relies on a queue or exchange that another client has created, and loses its
    channel.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when another
    client deletes the queue or exchange at the same time. The rule is also silent when the queue or exchange
    deletes itself (auto-delete, exclusive, x-expires). The rule is also silent when amqpscope does not know
    the declaration.
    Only possible because: No capture can prove this fault, because a client that the capture does not show,
    or the server itself, may have deleted the queue or exchange.
    How to mend it: Make a declaration visible to all connections of the virtual host before sending
    queue.declare-ok or exchange.declare-ok. In a cluster, wait until the node that answers and all other
    nodes know the change.
    """
    message = (
        f"the server does not find {what} {shown(name)}, although it confirmed the {what} on connection "
        f"{known.connection.id}"
    )
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

    Demands: If a server cannot carry out a request with no-wait, the server must raise a channel or
    connection exception.
    Source: XML domain no-wait (doc)
    Evidence: a request with no-wait, and a later reply-code 404 (not-found), which shows that the
    request had no effect
    Why it matters: With no-wait, an exception is the only way to report a failure. Without an exception, the
    client uses a queue or exchange that does not exist.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when another
    client deletes the queue or exchange at the same time. The rule is also silent when the queue or exchange
    deletes itself.
    Only possible because: No capture can prove this fault, because a client that the capture does not show,
    or the server itself, may have deleted the queue or exchange.
    How to mend it: When no-wait is set, omit only the reply method, and still report each error. If the
    request fails, close the channel or the connection with the reply-code of the failure.
    """
    message = (
        f"the server does not find {what} {shown(name)}, although {known.method} with no-wait was sent for "
        f"this {what} and the server reported no error"
    )
    return about_answer(CH_NOWAIT_FAIL, POSSIBLE, message, operation, known)


X_PREDECLARED: Final = RULES.rule("X-PREDECLARED", "MUST", "tier B", by="server")


def standard_exchange_missing(operation: TopologyOperation, name: str) -> Finding:
    """A server reports that a standard exchange does not exist, although every virtual host must have this
    exchange.

    Demands: Every virtual host must have an exchange amq.<type> for each standard exchange type that the
    server supports.
    Source: XML:exchange.required-instances; GS:3.1.3
    Evidence: a reply-code 404 (not-found) for amq.direct, amq.fanout, amq.topic, amq.headers or
    amq.match
    Why it matters: Clients use amq.direct, amq.fanout, amq.topic and amq.match without declaring these
    exchanges. If one of these exchanges is missing, bindings and publishes to it fail, and the server closes
    the channel.
    Silent when: the capture lacks octets of the connection, or when the server's error may be about a missing
    queue. The finding is reported as possible, not as certain, for amq.headers and amq.match, because a
    server may lack the exchange type `headers`.
    Possible because: The {peer} may lack this exchange because the {peer} does not support the exchange type
    `headers`.
    How to mend it: When a virtual host is created, let the server create `amq.direct`, `amq.fanout` and the
    amq exchange of every other standard type that the server supports. When the server starts, let the
    server create standard exchanges that are missing. Refuse to delete a standard exchange.
    """
    certainty = POSSIBLE if name in ("amq.headers", "amq.match") else CERTAIN
    message = f"the server does not find exchange {shown(name)}, which every virtual host must have"
    return about_answer(X_PREDECLARED, certainty, message, operation)


# Exclusive queues


Q_EXCL_ACCESS: Final = RULES.rule(
    "Q-EXCL-ACCESS", "MAY NOT", "tier B", by="client", answer="channel.close 405"
)


def anothers_queue_used(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A client uses a queue that another open connection has declared exclusive.

    Demands: A client must not use a queue that another open connection has declared exclusive.
    Source: XML:queue.declare.exclusive.exclusive; ERR:7
    Evidence: the connection that declared the exclusive queue, and the uses of the queue on other connections
    Why it matters: An exclusive queue belongs to the connection that declared it, and the server deletes the
    queue when this connection ends. The server answers other connections with reply-code 405
    (resource-locked) and closes the channel.
    Silent when: the capture lacks octets of a connection to this server, or when the other connection may
    have ended. The rule is also silent when both connections do the same at the same time, because a capture
    on both sides of an address translation (NAT) shows one connection as two. The finding is reported as
    certain only if the server answers with reply-code 405 (resource-locked).
    Possible because: The other connection may have ended before this client used the queue.
    How to mend it: Use an exclusive queue only on the connection that declared it. Declare the queue without
    exclusive if several connections share it. After a reconnect, wait until the server has ended the old
    connection, or use a server-named queue.
    """
    refused = operation.outcome.refused and operation.outcome.code == 405
    message = (
        f"this connection uses queue {shown(operation.queue)}, which belongs exclusively to connection "
        f"{made.connection.id}"
    )
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

    Demands: A server must delete an exclusive queue when the connection that declared the queue ends.
    Source: XML:queue.declare.exclusive (field doc); GS:4.5
    Evidence: a confirmed use of the queue after the connection that declared it has ended
    Why it matters: Messages accumulate in a queue that nobody uses any more. A later client may also mistake
    the queue for its own.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when fewer
    than ten seconds have passed since the connection ended. The rule is also silent when another client
    declares the queue again.
    Only possible because: Another client may have declared the queue again.
    How to mend it: Delete all exclusive queues of a connection when the connection ends, also when the socket
    breaks without connection.close.
    """
    message = (
        f"exclusive queue {shown(operation.queue)} still exists {seconds} s after the end of "
        f"connection {made.connection.id}"
    )
    return about_answer(Q_EXCL_DELETE, POSSIBLE, message, operation, made)


# Deleted


X_DELETE_INUSE: Final = RULES.rule("X-DELETE-INUSE", "MUST NOT", "tier B", by="server")


def exchange_in_use_deleted(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server deletes an exchange that has bindings, although the client set if-unused.

    Demands: If exchange.delete sets if-unused, the server must keep an exchange that still has bindings.
    Source: XML:exchange.delete.if-unused.in-use
    Evidence: the bindings of the exchange, as far as amqpscope knows them from the capture, and
    exchange.delete-ok
    Why it matters: The client wanted to delete the exchange only if the exchange has no bindings. Messages
    that other clients publish to the deleted exchange are lost.
    Silent when: the capture lacks octets of a connection to this server, or when another client may have
    removed the binding.
    Only possible because: No capture can prove this fault, because a client that the capture does not show
    may have removed the binding, its queue or its exchange.
    How to mend it: Before carrying out an exchange.delete with if-unused, check whether a binding has the
    exchange as its source. If bindings exist, keep the exchange and close the channel with reply-code 406
    (precondition-failed).
    """
    target = binding.queue or binding.destination
    kind = "queue" if binding.queue else "exchange"
    message = (
        f"exchange.delete with if-unused deletes exchange {shown(operation.exchange)}, although {kind} "
        f"{shown(target)} is bound to this exchange"
    )
    return about_answer(X_DELETE_INUSE, POSSIBLE, message, operation, binding)


def queue_in_use_deleted(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A queue.delete with if-unused deletes a queue that has a consumer on another channel; see `queue`."""
    message = (
        f"queue.delete with if-unused deletes queue {shown(operation.queue)}, although the queue has "
        f"consumer {shown(consumer.tag)}"
    )
    return about_answer(Q_DELETE_INUSE, POSSIBLE, message, operation, consumer)


# Minimum limits


Q_BIND_MIN_4: Final = RULES.rule("Q-BIND-MIN-4", "SHOULD", "tier B", by="server")


def too_few_bindings(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a binding for lack of resources although amqpscope knows of fewer than four bindings
    of the queue.

    Demands: A server should let a queue have at least four bindings.
    Source: XML:queue.bind.binding-count
    Evidence: a refusal of queue.bind with reply-code 506 (resource-error) while amqpscope knows of fewer than
    four bindings of the queue
    Why it matters: The specification asks for at least four bindings per queue. The client loses its channel,
    and its queue misses messages.
    Silent when: the server's answer is not 506 (resource-error), or when amqpscope knows of at least four
    bindings of the queue.
    Only possible because: The queue may have other bindings that the capture does not show.
    How to mend it: Allow at least four bindings per queue before answering queue.bind with reply-code 506
    (resource-error). Raise the server's limit on bindings per queue if a limit is configured.
    """
    message = (
        f"the server refuses a binding of queue {shown(operation.queue)}, although the capture shows only "
        f"{count(known, 'binding')} of this queue; a server should allow at least 4"
    )
    return about_answer(Q_BIND_MIN_4, POSSIBLE, message, operation)


X_MIN_16: Final = RULES.rule("X-MIN-16", "SHOULD", "tier B", by="server")


def too_few_exchanges(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a new exchange for lack of resources although amqpscope knows of fewer than sixteen
    exchanges.

    Demands: A server should let a virtual host have at least 16 exchanges.
    Source: XML:exchange.declare.minimum
    Evidence: a refusal of exchange.declare with reply-code 506 (resource-error) while amqpscope knows of
    fewer than 16 exchanges
    Why it matters: The specification asks for room for at least sixteen exchanges per virtual host. The
    client loses its channel and cannot set up its topology.
    Silent when: the server's answer is not 506 (resource-error), or when amqpscope knows of at least sixteen
    exchanges.
    Only possible because: The virtual host may have other exchanges that the capture does not show.
    How to mend it: Allow at least sixteen exchanges per virtual host before answering exchange.declare
    with reply-code 506 (resource-error). Raise the server's limit on exchanges if a limit is configured.
    """
    message = (
        f"the server refuses to declare exchange {shown(operation.exchange)}, although the capture shows "
        f"only {count(known, 'exchange')}; a server should allow at least 16"
    )
    return about_answer(X_MIN_16, POSSIBLE, message, operation)


Q_MIN_256: Final = RULES.rule("Q-MIN-256", "SHOULD", "tier B", by="server")


def too_few_queues(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a new queue for lack of resources although amqpscope knows of fewer than 256 queues.

    Demands: A server should let a virtual host have at least 256 queues.
    Source: XML:queue.declare.minimum-queues
    Evidence: a refusal of queue.declare with reply-code 506 (resource-error) while amqpscope knows of fewer
    than 256 queues
    Why it matters: The specification asks for room for at least 256 queues per virtual host. The client loses
    its channel and has no queue.
    Silent when: the server's answer is not 506 (resource-error), or when amqpscope knows of at least 256
    queues.
    Only possible because: The virtual host may have other queues that the capture does not show.
    How to mend it: Allow at least 256 queues per virtual host before answering queue.declare with
    reply-code 506 (resource-error). Raise the server's limit on queues if a limit is configured.
    """
    message = (
        f"the server refuses to declare queue {shown(operation.queue)}, although the capture shows only "
        f"{count(known, 'queue')}; a server should allow at least 256"
    )
    return about_answer(Q_MIN_256, POSSIBLE, message, operation)


B_CONSUME_MIN_16: Final = RULES.rule("B-CONSUME-MIN-16", "SHOULD", "tier B", by="server")


def too_few_consumers(operation: TopologyOperation, known: int) -> Finding:
    """A server refuses a consumer for lack of resources although amqpscope knows of fewer than sixteen
    consumers of the queue.

    Demands: A server should let a queue have at least 16 consumers.
    Source: XML:basic.consume.01
    Evidence: a refusal of basic.consume with reply-code 506 (resource-error) while amqpscope knows of fewer
    than 16 consumers of the queue
    Why it matters: The specification asks for at least sixteen consumers per queue. The client loses its
    channel and receives no messages.
    Silent when: the server's answer is not 506 (resource-error), or when amqpscope knows of at least sixteen
    consumers of the queue.
    Only possible because: The queue may have other consumers that the capture does not show.
    How to mend it: Allow at least sixteen consumers per queue before answering basic.consume with
    reply-code 506 (resource-error). Raise the server's limit on consumers per queue if a limit is
    configured.
    """
    message = (
        f"the server refuses a consumer of queue {shown(operation.queue)}, although the capture shows only "
        f"{count(known, 'consumer')} of this queue; a server should allow at least 16"
    )
    return about_answer(B_CONSUME_MIN_16, POSSIBLE, message, operation)


# Consumers on other connections (`consumer` judges those on the same connection)


def exclusive_consumer_beside_others(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A client asks for exclusive access to a queue that has a consumer on another connection."""
    message = (
        f"queue {shown(operation.queue)} already has a consumer, but basic.consume asks for exclusive access"
    )
    return about_request(B_CONSUME_EXCL, POSSIBLE, message, operation, consumer)


def exclusive_consumer_not_alone(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A server lets another connection read from a queue that has an exclusive consumer."""
    message = (
        f"the server lets another client read queue {shown(operation.queue)}, although the queue has the "
        f"exclusive consumer {shown(consumer.tag)}"
    )
    return about_answer(B_CONSUME_EXCL_HELD, POSSIBLE, message, operation, consumer)


B_CANCEL_NOQUEUE: Final = RULES.rule("B-CANCEL-NOQUEUE", "MUST", "tier B", by="server")


def cancel_refused_without_queue(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server refuses a basic.cancel because the queue of the consumer has been deleted.

    Demands: A server must accept basic.cancel for a consumer whose queue was deleted.
    Source: XML:basic.cancel.01
    Evidence: a deletion of the queue, and a close that names basic.cancel as its cause
    Why it matters: A client must be able to cancel a consumer at any time. The client loses its channel, and
    the server requeues the unacknowledged deliveries of the channel.
    Silent when: the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because the server may have closed the channel for
    a reason that the capture does not show.
    How to mend it: Answer basic.cancel with basic.cancel-ok even when the queue of the consumer is gone or
    the consumer has already ended. Never close the channel because of a basic.cancel for an ended consumer.
    """
    message = (
        f"the server refuses with {reply_code(int(operation.outcome.code))} to cancel consumer "
        f"{shown(operation.tag)}, whose queue was deleted, but must accept this basic.cancel"
    )
    return about_answer(B_CANCEL_NOQUEUE, POSSIBLE, message, operation, gone)
