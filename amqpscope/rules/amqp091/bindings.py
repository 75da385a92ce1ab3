"""Bindings: which ones a server accepts, and where they lead messages.

A finding is never certain if it assumes that nobody else changed a binding: see `entities`.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091.topology_operation import about_answer, shown
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from dissectors.amqp091.reply_code import reply_code

__all__ = ["RULES"]

RULES: Final = Rules("amqp091/bindings")


# Bindings


Q_BIND_DUP: Final = RULES.rule("Q-BIND-DUP", "MUST", "tier B", by="server")


def same_binding_of_a_queue_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses a queue.bind for a binding that already exists.

    Demands: A server must accept a queue.bind for a binding that already exists.
    Source: XML:queue.bind.duplicates
    Evidence: a queue.bind that the server accepted the first time and refuses the second time
    Why it matters: Applications repeat their bindings at every start, and a repeated binding must change
    nothing. The server closes the channel, so the application cannot start.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when the
    server's reason is missing access rights, a missing queue or a missing exchange. The rule is also silent
    when the binding may have been removed.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Compare queue, exchange, routing key and arguments with the existing bindings. If an
    identical binding exists, answer with queue.bind-ok and change nothing.
    """
    message = (
        f"the server refuses to bind queue {shown(operation.queue)} to exchange {shown(operation.exchange)}, "
        "but must accept a binding that already exists"
    )
    return about_answer(Q_BIND_DUP, POSSIBLE, message, operation, binding)


X_BIND_DUP: Final = RULES.rule("X-BIND-DUP", "MUST", "tier B", by="server")


def same_binding_of_an_exchange_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses an exchange.bind for a binding that already exists.

    Demands: A server must accept an exchange.bind for a binding that already exists.
    Source: RMQX:exchange.bind.duplicates
    Evidence: an exchange.bind that the server accepted the first time and refuses the second time
    Why it matters: Applications repeat their bindings at every start, and a repeated binding must change
    nothing. The server closes the channel, so the application cannot start.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when the
    server's reason is missing access rights or a missing exchange. The rule is also silent when the binding
    may have been removed.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Compare destination, source, routing key and arguments with the existing bindings. If an
    identical binding exists, answer with exchange.bind-ok and change nothing.
    """
    message = (
        f"the server refuses to bind exchange {shown(operation.destination)} to exchange "
        f"{shown(operation.exchange)}, but must accept a binding that already exists"
    )
    return about_answer(X_BIND_DUP, POSSIBLE, message, operation, binding)


X_BIND_CYCLE: Final = RULES.rule("X-BIND-CYCLE", "MUST", "tier B", by="server")


def binding_in_a_circle_refused(operation: TopologyOperation) -> Finding:
    """A server refuses to bind an exchange to itself.

    Demands: A server must accept exchange bindings that form a cycle, including a binding of an exchange to
    itself.
    Source: RMQX:exchange.bind.cyclical
    Evidence: an exchange.bind whose source equals its destination, and the server's refusal
    Why it matters: Cyclic bindings are legal, and a message passes each exchange only once. The client cannot
    create a topology with cyclic bindings, and loses its channel.
    Silent when: the server gives missing access rights or a missing exchange as the reason, or when the
    capture lacks octets of the connection.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Accept exchange bindings that form a cycle, including a binding of an exchange to itself.
    Prevent endless routing by visiting each exchange only once per message.
    """
    message = (
        f"the server refuses with {reply_code(int(operation.outcome.code))} to bind exchange "
        f"{shown(operation.exchange)} to itself, but must accept such a binding"
    )
    return about_answer(X_BIND_CYCLE, POSSIBLE, message, operation)


Q_BIND_TRANSIENT_X: Final = RULES.rule("Q-BIND-TRANSIENT-X", "MUST", "tier B", by="server")


def durable_queue_not_bound_to_transient(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server refuses to bind a durable queue to a transient exchange.

    Demands: A server must accept the binding of a durable queue to a transient exchange.
    Source: XML:queue.bind.transient-exchange
    Evidence: the declarations of the queue and the exchange, and the server's answer to queue.bind
    Why it matters: The specification allows a binding of a durable queue to a transient exchange. The binding
    disappears together with the exchange. The client loses its channel and cannot set up its topology.
    Silent when: amqpscope does not know the declaration of the queue or the exchange. The rule is also silent
    when the server's reason is missing access rights, a missing queue or a missing exchange.
    Only possible because: The capture does not show why the server refused the binding.
    How to mend it: Accept queue.bind of a durable queue to a transient exchange. Treat the binding as
    transient and remove it when the exchange disappears.
    """
    message = (
        f"the server refuses with {reply_code(int(operation.outcome.code))} to bind durable queue "
        f"{shown(operation.queue)} to transient exchange {shown(operation.exchange)}, but must accept such "
        "a binding"
    )
    return about_answer(Q_BIND_TRANSIENT_X, POSSIBLE, message, operation, made)


# Routes


Q_DECL_DEFAULT_BIND: Final = RULES.rule("Q-DECL-DEFAULT-BIND", "MUST", "tier B", by="server")


def own_name_does_not_lead_there(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server sends basic.return for a message that was published to the default exchange, although the
    routing key of the message is the name of an existing queue.

    Demands: A server must bind each new queue to the default exchange under the name of the queue.
    Source: XML:queue.declare.default-binding; GS:3.1.3.1
    Evidence: a basic.return with reply-code 312 (no-route) for a message that was published to the
    default exchange with the name of an existing queue as its routing key
    Why it matters: Clients publish to a queue by its name through the default exchange. The message does not
    reach the queue.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when the
    queue may have been deleted, or when the queue deletes itself.
    Only possible because: No capture can prove this fault, because a client that the capture does not show,
    or the server itself, may have deleted the queue.
    How to mend it: Bind each new queue to the default exchange with the queue name as the routing key before
    sending queue.declare-ok. Keep the binding to the default exchange until the queue is deleted.
    """
    message = (
        f"the server returns a message for queue {shown(operation.key)} with "
        f"{reply_code(int(operation.outcome.code))}, although this queue exists"
    )
    return about_answer(Q_DECL_DEFAULT_BIND, POSSIBLE, message, operation, made)


Q_BIND_DIRECT_MATCH: Final = RULES.rule("Q-BIND-DIRECT-MATCH", "MUST", "tier B", by="server")


def bound_queue_not_reached(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server sends basic.return for a message that was published to a direct exchange, although a queue is
    bound with exactly the routing key of the message.

    Demands: A direct exchange must route a message to every queue that is bound with exactly the routing key
    of the message.
    Source: XML:queue.bind.routing-key.direct-exchange-key-matching; GS:3.1.3.1
    Evidence: the bindings that amqpscope knows from the capture, and a basic.return with reply-code 312
    (no-route) although one of these bindings matches
    Why it matters: The queue does not get the message. The message is lost unless the publisher handles the
    returned message.
    Silent when: the capture lacks octets of a connection to this server. The rule is also silent when another
    client may have removed the binding, the queue or the exchange.
    Only possible because: No capture can prove this fault, because a client that the capture does not show
    may have removed the binding, the queue or the exchange.
    How to mend it: Compare the routing key with the binding keys of the direct exchange octet by octet, and
    make a binding effective before sending queue.bind-ok.
    """
    message = (
        f"the server returns a message with routing key {shown(operation.key)}, although queue "
        f"{shown(binding.queue)} is bound to exchange {shown(operation.exchange)} with this key"
    )
    return about_answer(Q_BIND_DIRECT_MATCH, POSSIBLE, message, operation, binding)


B_PUBLISH_INTERNAL: Final = RULES.rule("B-PUBLISH-INTERNAL", "MUST", "tier B", by="server")


def internal_exchange_reached(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server accepts a message from a client for an exchange that was declared internal.

    Demands: A server must refuse a client's publish to an internal exchange with the channel exception
    403 (access-refused).
    Source: XML:basic.publish.exchange.02; ERR:26
    Evidence: the internal bit of the exchange's declaration, and the server's answers after the publish
    Why it matters: Only other exchanges may route messages to an internal exchange. A server that accepts
    messages of clients makes the internal bit useless.
    Silent when: no frame proves that the server had processed the basic.publish, or when another connection
    declared the exchange. The rule is also silent when the capture lacks octets of a connection to this
    server.
    Only possible because: No capture can prove this fault, because a client that the capture does not show
    may have changed the exchange.
    How to mend it: On each basic.publish, check whether the exchange is internal. If the exchange is
    internal, discard the message and send channel.close with reply-code 403 (access-refused).
    """
    message = (
        f"the server accepts a message for the internal exchange {shown(operation.exchange)}, but "
        "must refuse such a message"
    )
    return about_answer(B_PUBLISH_INTERNAL, POSSIBLE, message, operation, made)
