"""What a server keeps of exchanges, queues, bindings and consumers, and what it lets be done to them.

They belong to a virtual host: what one connection was told binds the server towards all others. Nothing here
is ever certain that rests on nobody else having changed them: others than those captured may have, and a
server's own policies (limits, idle time, a restart).
"""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091.topology_operation import about_answer, about_request, shown
from amqpscope.tracking.amqp091.topology_operations import AUTO_DELETE, DURABLE, EXCLUSIVE, TopologyOperation
from dissectors.amqp091.tables import FieldTable
from dissectors.wire import i64

__all__ = ["RULES", "differences"]


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


def exchange_declared_with_another_type(
    operation: TopologyOperation, kind: str, made: TopologyOperation | None
) -> Finding:
    """An exchange that exists is declared with another type.

    Why it matters: the two programs do not mean the same exchange; the later one is refused.
    Silent when: octets of the connections to this server were not captured, it is declared or deleted at the
    time, or the server accepts it (which is then its own fault). Certain only of exchanges that are there
    from the start, `amq.direct` for one: their names give their types. Possible because: Others may have
    deleted it meanwhile.
    """
    message = f"{_named(operation)} is declared with type {shown(operation.kind)}; it has {shown(kind)}"
    certainty: i64 = CERTAIN if made is None else POSSIBLE
    return about_request("amqp091/X-DECL-TYPED", certainty, message, operation, made)


def unlike_exchange_accepted(
    operation: TopologyOperation, made: TopologyOperation, what: list[str]
) -> Finding:
    """A server accepts the declaration of an exchange that exists otherwise.

    Why it matters: the client goes on as if the exchange were what it asked for.
    Silent when: octets of the connections to this server were not captured, or it is declared or deleted at
    the time; arguments are not compared.
    Only possible because: Somebody else may have deleted it.
    """
    message = f"{_named(operation)} is declared with another {' and '.join(what)}, and that is accepted"
    return about_answer("amqp091/X-DECL-EQUIV", POSSIBLE, message, operation, made)


def unlike_queue_accepted(operation: TopologyOperation, made: TopologyOperation, what: list[str]) -> Finding:
    """A server accepts the declaration of a queue that exists otherwise.

    Why it matters: the client goes on as if the queue were what it asked for.
    Silent when: octets of the connections to this server were not captured, it is declared or deleted at the
    time, or it was to be deleted by itself; arguments are not compared.
    Only possible because: No capture can prove it.
    """
    message = f"{_named(operation)} is declared with another {' and '.join(what)}, and that is accepted"
    return about_answer("amqp091/Q-DECL-EQUIV", POSSIBLE, message, operation, made)


def queue_declared_otherwise(
    operation: TopologyOperation, made: TopologyOperation | None, what: list[str]
) -> Finding:
    """A queue that exists is declared with other properties, and the server refuses it.

    Why it matters: two programs, or two versions of one, do not agree on the queue; the later one fails.
    Silent when: octets of the connection were not captured. Possible only if it was not this connection
    that declared it otherwise: the server may have refused something else.
    """
    certainty: i64 = POSSIBLE
    message = f"{_named(operation)} is declared with properties that are refused with {int(operation.code)}"
    if made is not None:
        message = (
            f"{_named(operation)} is declared with another {' and '.join(what)} than before,"
            f" and refused with {int(operation.code)}"
        )
        if made.connection is operation.connection:
            certainty = CERTAIN
    return about_request("amqp091/Q-DECL-EQUIV-CLIENT", certainty, message, operation, made)


def other_auto_delete_refused(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server refuses the declaration of a queue that exists, for nothing but its auto-delete bit.

    Why it matters: a rule of queue.declare has that bit ignored for a queue that exists. Another one lists
    it among what is compared, and RabbitMQ compares it.
    Silent when: octets of the connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"{_named(operation)} exists; its declaration is refused for another auto-delete"
    return about_answer("amqp091/Q-DECL-AUTODEL-IGNORE", POSSIBLE, message, operation, made)


# Passive


def passive_exchange_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server says of an exchange that does not exist that it does.

    Why it matters: who asks by a passive declaration relies on the answer, and publishes into nothing.
    Silent when: octets of the connections to this server were not captured, or somebody declares it at the
    time.
    Only possible because: Somebody else may have declared it.
    """
    message = f"{_named(operation)} is said to exist, though it was deleted"
    return about_answer("amqp091/X-DECL-PASSIVE-404", POSSIBLE, message, operation, gone)


def passive_queue_that_is_gone(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server says of a queue that does not exist that it does.

    Why it matters: who asks by a passive declaration relies on the answer, and waits for messages in vain.
    Silent when: octets of the connections to this server were not captured, or somebody declares it at the
    time.
    Only possible because: Somebody else may have declared it.
    """
    message = f"{_named(operation)} is said to exist, though it was deleted"
    return about_answer("amqp091/Q-DECL-PASSIVE-404", POSSIBLE, message, operation, gone)


def passive_exchange_compared(operation: TopologyOperation) -> Finding:
    """A server refuses a passive declaration of an exchange for something else than its absence.

    Why it matters: a passive declaration only asks whether there is one; its other fields mean nothing.
    Silent when: the answer is 404 (there is none) or 403 (it is not allowed), or octets of the connection
    were not captured.
    Only possible because: Why the server refused is only guessed from the code.
    """
    message = f"a passive declaration of {_named(operation)} is refused with {int(operation.code)}"
    return about_answer("amqp091/X-DECL-PASSIVE-IGNORE", POSSIBLE, message, operation)


def passive_queue_compared(operation: TopologyOperation) -> Finding:
    """A server refuses a passive declaration of a queue for its other fields.

    Why it matters: a passive declaration only asks whether there is one; its other fields mean nothing.
    Silent when: the answer is 404, 403 or 405 (it is another connection's own), or octets of the connection
    were not captured.
    Only possible because: Why the server refused is only guessed from the code.
    """
    message = f"a passive declaration of {_named(operation)} is refused with {int(operation.code)}"
    return about_answer("amqp091/Q-DECL-PASSIVE-IGNORE", POSSIBLE, message, operation)


# What others were told


def change_not_seen(operation: TopologyOperation, what: str, name: str, known: TopologyOperation) -> Finding:
    """A server says 404 of what it has told another client that it is there.

    Why it matters: once a client has its answer, all others of the virtual host are to see what it changed.
    Silent when: octets of the connections to this server were not captured, somebody deletes it at the time,
    it deletes itself (auto-delete, exclusive, x-expires), or how it was declared is not known.
    Only possible because: No capture can prove it.
    """
    message = f"{what} {shown(name)} is not found, which {known.connection.id} was told to be there"
    return about_answer("amqp091/CH-VISIBLE", POSSIBLE, message, operation, known)


def not_done_and_not_said(
    operation: TopologyOperation, what: str, name: str, known: TopologyOperation
) -> Finding:
    """A server has not done what it was asked to do without an answer, and has not said so.

    Why it matters: with no-wait an exception is the only answer there is; without it the client goes on.
    Silent when: octets of the connections to this server were not captured, somebody deletes it at the time,
    or it deletes itself.
    Only possible because: No capture can prove it.
    """
    message = f"{what} {shown(name)} is not found, though {known.method} with no-wait was not refused"
    return about_answer("amqp091/CH-NOWAIT-FAIL", POSSIBLE, message, operation, known)


def standard_exchange_missing(operation: TopologyOperation, name: str) -> Finding:
    """A server says that an exchange does not exist which every virtual host has.

    Why it matters: clients use amq.direct, amq.fanout, amq.topic and amq.match without declaring them.
    Silent when: octets of the connection were not captured, or the answer may be about the queue.
    """
    certainty = POSSIBLE if name in ("amq.headers", "amq.match") else CERTAIN
    message = f"exchange {shown(name)} is not found"
    return about_answer("amqp091/X-PREDECLARED", certainty, message, operation)


# Exclusive queues


def anothers_queue_used(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A client uses a queue that another connection, which is still open, has declared exclusive.

    Why it matters: the queue is that connection's own, and goes with it; the server refuses with 405.
    Silent when: octets of the connections to this server were not captured, or the other connection may be
    over. Only possible if the server does not refuse it.
    Possible because: The other connection may have been over.
    """
    refused = operation.outcome == "closed" and operation.code == 405
    message = f"queue {shown(operation.queue)} is exclusive to {made.connection.id}"
    return about_request("amqp091/Q-EXCL-ACCESS", CERTAIN if refused else POSSIBLE, message, operation, made)


def exclusive_queue_outlives(operation: TopologyOperation, made: TopologyOperation, seconds: int) -> Finding:
    """An exclusive queue is still there after its connection is over.

    Why it matters: messages gather in a queue that nobody knows of, or that a later client takes for its
    own.
    Silent when: octets of the connections to this server were not captured, it is less than ten seconds, or
    somebody declares it again.
    Only possible because: Somebody else may have.
    """
    message = (
        f"queue {shown(operation.queue)} is there {seconds} s after {made.connection.id}, which it was of"
    )
    return about_answer("amqp091/Q-EXCL-DELETE", POSSIBLE, message, operation, made)


# Deleted


def exchange_in_use_deleted(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """With if-unused set an exchange is deleted that has bindings.

    Why it matters: the client asked for it only if nobody needs it; what is published there is lost.
    Silent when: octets of the connections to this server were not captured, or the binding may be gone.
    Only possible because: No capture can prove it.
    """
    target = binding.queue or binding.destination
    message = f"exchange {shown(operation.exchange)} is deleted as unused, and {shown(target)} is bound to it"
    return about_answer("amqp091/X-DELETE-INUSE", POSSIBLE, message, operation, binding)


def queue_in_use_deleted(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """With if-unused set a queue is deleted that has a consumer on another channel; see `queue`."""
    message = (
        f"queue {shown(operation.queue)} is deleted as unused, and {shown(consumer.tag)} consumes from it"
    )
    return about_answer("amqp091/Q-DELETE-INUSE", POSSIBLE, message, operation, consumer)


# Bindings


def same_binding_of_a_queue_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses a binding of a queue that is there already.

    Why it matters: programs bind again whenever they begin; that is to change nothing.
    Silent when: octets of the connections to this server were not captured, the answer is about access or
    absence, or the binding may be gone.
    Only possible because: Why it refused is not known.
    """
    message = f"the binding of {shown(operation.queue)} to {shown(operation.exchange)} is there, and refused"
    return about_answer("amqp091/Q-BIND-DUP", POSSIBLE, message, operation, binding)


def same_binding_of_an_exchange_refused(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A server refuses a binding of an exchange that is there already.

    Why it matters: programs bind again whenever they begin; that is to change nothing.
    Silent when: octets of the connections to this server were not captured, the answer is about access or
    absence, or the binding may be gone.
    Only possible because: Why it refused is not known.
    """
    message = (
        f"the binding of {shown(operation.destination)} to {shown(operation.exchange)} is there, and refused"
    )
    return about_answer("amqp091/X-BIND-DUP", POSSIBLE, message, operation, binding)


def binding_in_a_circle_refused(operation: TopologyOperation) -> Finding:
    """A server refuses to bind an exchange to itself.

    Why it matters: cycles of bindings are legal, and messages pass them once.
    Silent when: the answer is about access or absence, or octets of the connection were not captured.
    Only possible because: Why it refused is not known.
    """
    message = f"the binding of {shown(operation.exchange)} to itself is refused with {int(operation.code)}"
    return about_answer("amqp091/X-BIND-CYCLE", POSSIBLE, message, operation)


def durable_queue_not_bound_to_transient(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server refuses to bind a durable queue to a transient exchange.

    Why it matters: the specification allows it; the binding goes with the exchange.
    Silent when: how either was declared is not known, or the answer is about access or absence.
    Only possible because: Why it refused is not known.
    """
    message = (
        f"durable queue {shown(operation.queue)} is not bound to transient exchange "
        f"{shown(operation.exchange)}: {int(operation.code)}"
    )
    return about_answer("amqp091/Q-BIND-TRANSIENT-X", POSSIBLE, message, operation, made)


# How many there may be


def too_few_bindings(operation: TopologyOperation, known: int) -> Finding:
    """A server has no room for the fourth binding of a queue.

    Why it matters: the specification asks for four at least.
    Silent when: the answer is not 506, or four are known.
    Only possible because: There may be others.
    """
    message = f"no room for a binding of {shown(operation.queue)}, of which {known} are known"
    return about_answer("amqp091/Q-BIND-MIN-4", POSSIBLE, message, operation)


def too_few_exchanges(operation: TopologyOperation, known: int) -> Finding:
    """A server has no room for sixteen exchanges.

    Why it matters: the specification asks for sixteen at least in a virtual host.
    Silent when: the answer is not 506, or sixteen are known.
    Only possible because: There may be others.
    """
    message = f"no room for exchange {shown(operation.exchange)}, while {known} are known"
    return about_answer("amqp091/X-MIN-16", POSSIBLE, message, operation)


def too_few_queues(operation: TopologyOperation, known: int) -> Finding:
    """A server has no room for 256 queues.

    Why it matters: the specification asks for 256 at least in a virtual host.
    Silent when: the answer is not 506, or 256 are known.
    Only possible because: There may be others.
    """
    message = f"no room for queue {shown(operation.queue)}, while {known} are known"
    return about_answer("amqp091/Q-MIN-256", POSSIBLE, message, operation)


def too_few_consumers(operation: TopologyOperation, known: int) -> Finding:
    """A server has no room for sixteen consumers of a queue.

    Why it matters: the specification asks for sixteen at least.
    Silent when: the answer is not 506, or sixteen are known.
    Only possible because: There may be others.
    """
    message = f"no room for a consumer of {shown(operation.queue)}, of which {known} are known"
    return about_answer("amqp091/B-CONSUME-MIN-16", POSSIBLE, message, operation)


# Consumers, on other connections; those on the same one are the concern of `consumer`


def exclusive_consumer_beside_others(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A client asks to be the only consumer of a queue that has one on another connection."""
    message = f"queue {shown(operation.queue)} is asked for exclusively, and has a consumer"
    return about_request("amqp091/B-CONSUME-EXCL", POSSIBLE, message, operation, consumer)


def exclusive_consumer_not_alone(operation: TopologyOperation, consumer: TopologyOperation) -> Finding:
    """A server lets another connection read from a queue that has an exclusive consumer."""
    message = (
        f"queue {shown(operation.queue)} is read from beside its exclusive consumer {shown(consumer.tag)}"
    )
    return about_answer("amqp091/B-CONSUME-EXCL-HELD", POSSIBLE, message, operation, consumer)


def cancel_refused_without_queue(operation: TopologyOperation, gone: TopologyOperation) -> Finding:
    """A server refuses to cancel a consumer whose queue is gone.

    Why it matters: cancelling is to be safe at any time, whatever became of the queue.
    Silent when: octets of the connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"consumer {shown(operation.tag)} of a deleted queue is not cancelled: {int(operation.code)}"
    return about_answer("amqp091/B-CANCEL-NOQUEUE", POSSIBLE, message, operation, gone)


# Routes


def own_name_does_not_lead_there(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A message published to the default exchange comes back, though a queue has that name.

    Why it matters: each queue is bound to the default exchange by its name; the simplest way of all fails.
    Silent when: octets of the connections to this server were not captured, the queue may be gone, or it
    deletes itself.
    Only possible because: No capture can prove it.
    """
    message = (
        f"a message for queue {shown(operation.key)} is returned with {int(operation.code)}, "
        "and there is such"
    )
    return about_answer("amqp091/Q-DECL-DEFAULT-BIND", POSSIBLE, message, operation, made)


def bound_queue_not_reached(operation: TopologyOperation, binding: TopologyOperation) -> Finding:
    """A message published to a direct exchange comes back, though a queue is bound with just its routing key.

    Why it matters: the message is lost for the queue that was to have it.
    Silent when: octets of the connections to this server were not captured, or the binding, the queue or the
    exchange may be gone.
    Only possible because: No capture can prove it.
    """
    message = (
        f"a message with key {shown(operation.key)} is returned by {shown(operation.exchange)},"
        f" to which {shown(binding.queue)} is bound with it"
    )
    return about_answer("amqp091/Q-BIND-DIRECT-MATCH", POSSIBLE, message, operation, binding)


def internal_exchange_reached(operation: TopologyOperation, made: TopologyOperation) -> Finding:
    """A server takes a message for an exchange that was declared internal.

    Why it matters: such an exchange is only for other exchanges; clients are to be refused with 403.
    Silent when: nothing shows that the server had dealt with the publish, another connection declared the
    exchange, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"a message for internal exchange {shown(operation.exchange)} was taken"
    return about_answer("amqp091/B-PUBLISH-INTERNAL", POSSIBLE, message, operation, made)


RULES = {
    "amqp091/B-PUBLISH-INTERNAL": internal_exchange_reached,
    "amqp091/X-DECL-TYPED": exchange_declared_with_another_type,
    "amqp091/X-DECL-EQUIV": unlike_exchange_accepted,
    "amqp091/Q-DECL-EQUIV": unlike_queue_accepted,
    "amqp091/Q-DECL-EQUIV-CLIENT": queue_declared_otherwise,
    "amqp091/Q-DECL-AUTODEL-IGNORE": other_auto_delete_refused,
    "amqp091/X-DECL-PASSIVE-404": passive_exchange_that_is_gone,
    "amqp091/Q-DECL-PASSIVE-404": passive_queue_that_is_gone,
    "amqp091/X-DECL-PASSIVE-IGNORE": passive_exchange_compared,
    "amqp091/Q-DECL-PASSIVE-IGNORE": passive_queue_compared,
    "amqp091/CH-VISIBLE": change_not_seen,
    "amqp091/CH-NOWAIT-FAIL": not_done_and_not_said,
    "amqp091/X-PREDECLARED": standard_exchange_missing,
    "amqp091/Q-EXCL-ACCESS": anothers_queue_used,
    "amqp091/Q-EXCL-DELETE": exclusive_queue_outlives,
    "amqp091/X-DELETE-INUSE": exchange_in_use_deleted,
    "amqp091/Q-BIND-DUP": same_binding_of_a_queue_refused,
    "amqp091/X-BIND-DUP": same_binding_of_an_exchange_refused,
    "amqp091/X-BIND-CYCLE": binding_in_a_circle_refused,
    "amqp091/Q-BIND-TRANSIENT-X": durable_queue_not_bound_to_transient,
    "amqp091/Q-BIND-MIN-4": too_few_bindings,
    "amqp091/X-MIN-16": too_few_exchanges,
    "amqp091/Q-MIN-256": too_few_queues,
    "amqp091/B-CONSUME-MIN-16": too_few_consumers,
    "amqp091/B-CANCEL-NOQUEUE": cancel_refused_without_queue,
    "amqp091/Q-DECL-DEFAULT-BIND": own_name_does_not_lead_there,
    "amqp091/Q-BIND-DIRECT-MATCH": bound_queue_not_reached,
}
