"""Exchanges and queues that are used and do not exist (the rules `must-exist` and their like).

What exists is a matter of the virtual host. That something does not is known by the server's word, 404, or
from what was done before: it was deleted, or the server said that it was not there, and nobody was seen to
declare it since. Others than those captured may have. So only who was told so itself, and refused with 404
for it, is at fault for certain.
"""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091.topology_operation import about_request, shown
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation

__all__ = ["EXCHANGES", "QUEUES", "RULES"]


def _missing(
    rule: str, operation: TopologyOperation, what: str, name: str, gone: TopologyOperation | None
) -> Finding:
    """gone: what showed before that it does not exist, None if only the answer does."""
    certainty = POSSIBLE
    refused = operation.outcome == "closed"
    message = f"there is no {what} {shown(name)}"
    if gone is not None:
        if refused and gone.connection is operation.connection:
            certainty = CERTAIN
        how = f"since {gone.method}" if gone.outcome == "ok" else "as the server has said"
        message += f", {how} in packet {int((gone.answer or gone.spot).packet)}"
        if gone.connection is not operation.connection:
            message += f" of {gone.connection.id}"
    if refused:
        message += f"; the answer is {int(operation.code)}"
    return about_request(rule, certainty, message, operation, gone)


def exchange_deleted_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """An exchange is deleted that does not exist.

    Why it matters: one of the two has a wrong picture of what there is; most servers refuse it.
    Silent when: the answer is not 404, or does not tell what is not there; RabbitMQ and LavinMQ take that for
    done and do not refuse it. Only possible if it was not this client that was told so: others may have
    deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/X-DELETE-EXISTS", operation, "exchange", name, gone)


def bound_exchange_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """An exchange is bound to another one, and one of them does not exist.

    Why it matters: nothing is routed there, and the channel is closed.
    Silent when: the answer is not 404, or does not tell what is not there. Only possible if it was not this
    client that was told so: others may have deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/X-BIND-EXIST", operation, "exchange", name, gone)


def unbound_exchange_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A binding between exchanges is taken away, and one of them does not exist.

    Why it matters: the client has a wrong picture of what there is.
    Silent when: the answer is not 404, or does not tell what is not there; RabbitMQ and LavinMQ take that for
    done and do not refuse it. Only possible if it was not this client that was told so: others may have
    deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/X-UNBIND-EXIST", operation, "exchange", name, gone)


def bound_queue_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A queue is bound that does not exist.

    Why it matters: the channel is closed, and what was to be routed there is lost.
    Silent when: the answer is not 404, or does not tell what is not there. Only possible if it was not this
    client that was told so: others may have deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/Q-BIND-QEXIST", operation, "queue", name, gone)


def queue_bound_to_nothing(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A queue is bound to an exchange that does not exist.

    Why it matters: the channel is closed, and what was to be routed is lost.
    Silent when: the answer is not 404, or does not tell what is not there. Only possible if it was not this
    client that was told so: others may have deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/Q-BIND-XEXIST", operation, "exchange", name, gone)


def unbound_queue_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A binding of a queue is taken away that does not exist.

    Why it matters: the client has a wrong picture of what there is.
    Silent when: the answer is not 404, or does not tell what is not there; RabbitMQ and LavinMQ take that for
    done and do not refuse it. Only possible if it was not this client that was told so: others may have
    deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/Q-UNBIND-QEXIST", operation, "queue", name, gone)


def queue_unbound_from_nothing(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A binding to an exchange that does not exist is taken away.

    Why it matters: the client has a wrong picture of what there is.
    Silent when: the answer is not 404, or does not tell what is not there; RabbitMQ and LavinMQ take that for
    done and do not refuse it. Only possible if it was not this client that was told so: others may have
    deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/Q-UNBIND-XEXIST", operation, "exchange", name, gone)


def purged_queue_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A queue is purged that does not exist.

    Why it matters: the channel is closed; the client has a wrong picture of what there is.
    Silent when: the answer is not 404, or does not tell what is not there. Only possible if it was not this
    client that was told so: others may have deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/Q-PURGE-QEXIST", operation, "queue", name, gone)


def deleted_queue_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A queue is deleted that does not exist.

    Why it matters: one of the two has a wrong picture of what there is; some servers close the channel for
    it.
    Silent when: the answer is not 404, or does not tell what is not there; RabbitMQ and LavinMQ take that for
    done and do not refuse it. Only possible if it was not this client that was told so: others may have
    deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/Q-DELETE-QEXIST", operation, "queue", name, gone)


def consumer_of_a_queue_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A consumer is begun for a queue that does not exist.

    Why it matters: the channel is closed, and nothing is delivered.
    Silent when: the answer is not 404, or does not tell what is not there. Only possible if it was not this
    client that was told so: others may have deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/B-CONSUME-QEXIST", operation, "queue", name, gone)


def got_from_a_queue_that_is_not_there(
    operation: TopologyOperation, name: str, gone: TopologyOperation | None
) -> Finding:
    """A message is asked for from a queue that does not exist.

    Why it matters: the channel is closed, and what else it did is lost.
    Silent when: the answer is not 404, or does not tell what is not there. Only possible if it was not this
    client that was told so: others may have deleted it.
    Possible because: Others may have deleted it meanwhile.
    """
    return _missing("amqp091/B-GET-QEXIST", operation, "queue", name, gone)


RULES = {
    "amqp091/X-DELETE-EXISTS": exchange_deleted_that_is_not_there,
    "amqp091/X-BIND-EXIST": bound_exchange_that_is_not_there,
    "amqp091/X-UNBIND-EXIST": unbound_exchange_that_is_not_there,
    "amqp091/Q-BIND-QEXIST": bound_queue_that_is_not_there,
    "amqp091/Q-BIND-XEXIST": queue_bound_to_nothing,
    "amqp091/Q-UNBIND-QEXIST": unbound_queue_that_is_not_there,
    "amqp091/Q-UNBIND-XEXIST": queue_unbound_from_nothing,
    "amqp091/Q-PURGE-QEXIST": purged_queue_that_is_not_there,
    "amqp091/Q-DELETE-QEXIST": deleted_queue_that_is_not_there,
    "amqp091/B-CONSUME-QEXIST": consumer_of_a_queue_that_is_not_there,
    "amqp091/B-GET-QEXIST": got_from_a_queue_that_is_not_there,
}

QUEUES = {
    "queue.bind": bound_queue_that_is_not_there,
    "queue.unbind": unbound_queue_that_is_not_there,
    "queue.purge": purged_queue_that_is_not_there,
    "queue.delete": deleted_queue_that_is_not_there,
    "basic.consume": consumer_of_a_queue_that_is_not_there,
    "basic.get": got_from_a_queue_that_is_not_there,
}
"""By the method that names the queue."""

EXCHANGES = {
    "exchange.delete": exchange_deleted_that_is_not_there,
    "exchange.bind": bound_exchange_that_is_not_there,
    "exchange.unbind": unbound_exchange_that_is_not_there,
    "queue.bind": queue_bound_to_nothing,
    "queue.unbind": queue_unbound_from_nothing,
}
"""By the method that names the exchange."""
