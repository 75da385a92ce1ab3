"""Uses of exchanges and queues that do not exist (the rules `must-exist` and similar ones).

Existence is a matter of the virtual host. A queue or exchange is known to be missing if the server answers
404, or if it was deleted or reported missing before, and nobody has declared it since. A client outside the
capture may have declared it. A finding is therefore certain only if the same connection had learnt that it
was missing, and the server answers 404.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091.topology_operation import about_request, shown
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from dissectors.amqp091.reply_code import reply_code

__all__ = ["missing"]

RULES: Final = Rules("amqp091/existence")


X_DELETE_EXISTS: Final = RULES.rule(
    "X-DELETE-EXISTS", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client deletes an exchange that does not exist.

Demands: A client must not delete an exchange that does not exist.
Source: XML:exchange.delete.exchange.exists
Evidence: an exchange.delete after a deletion of the exchange or after a reply-code 404 (not-found)
Why it matters: The client and the server disagree about which exchanges exist. Most servers refuse to delete
a missing exchange and close the channel.
Silent when: the server answers with an exception other than 404 (not-found), or when the answer does not show
what is missing. The rule is also silent when the server is RabbitMQ or LavinMQ and accepts the request.
RabbitMQ and LavinMQ treat the deletion of a missing exchange as successful. The finding is reported as
certain only if the server refuses the request with reply-code 404 (not-found) and the client must already
have known that the exchange does not exist. The client must have known this if the same connection had
deleted the exchange or received a reply-code 404 (not-found) for the exchange. In all other cases, the
finding is reported as possible, because another client may have deleted the exchange.
Possible because: Another client may have deleted the exchange in the meantime.
How to mend it: Delete each exchange once, and make only one part of the application responsible for the
deletion. Do not delete an exchange that is already deleted. Run cleanup code on a channel of its own, so that
a close with reply-code 404 (not-found) interrupts no other work.
"""


X_BIND_EXIST: Final = RULES.rule(
    "X-BIND-EXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client binds an exchange to another exchange although one of the two exchanges does not exist.

Demands: Both exchanges that exchange.bind names must exist.
Source: RMQX:exchange.bind.destination.exchange-existence; RMQX:exchange.bind.source.exchange-existence
Evidence: the exchanges that amqpscope knows from the capture, and the server's reply-code 404 (not-found)
Why it matters: The server creates no binding and closes the channel. No messages are routed from the one
exchange to the other.
Silent when: the server's answer is not 404 (not-found), or when the answer does not show which exchange is
missing. The finding is reported as certain only if the same connection had deleted the exchange before, or
had received a reply-code 404 (not-found) for the exchange before. In all other cases, the finding is reported
as possible, because another client may have deleted the exchange.
Possible because: Another client may have deleted the exchange in the meantime.
How to mend it: Declare both exchanges and wait for their exchange.declare-ok before sending exchange.bind.
Check the spelling of both names and the virtual host.
"""


X_UNBIND_EXIST: Final = RULES.rule(
    "X-UNBIND-EXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client removes a binding between two exchanges although one of the two exchanges does not exist.

Demands: Both exchanges that exchange.unbind names must exist.
Source: RMQX:exchange.unbind.destination.must-exist; RMQX:exchange.unbind.source.must-exist
Evidence: the exchanges that amqpscope knows from the capture
Why it matters: The client and the server disagree about which exchanges exist. A server that refuses the
request closes the channel.
Silent when: the server answers with an exception other than 404 (not-found), or when the answer does not show
what is missing. The rule is also silent when the server is RabbitMQ or LavinMQ and accepts the request.
RabbitMQ and LavinMQ treat the removal of a missing binding as successful. The finding is reported as certain
only if the server refuses the request with reply-code 404 (not-found) and the client must already have known
that the exchange does not exist. The client must have known this if the same connection had deleted the
exchange or received a reply-code 404 (not-found) for the exchange. In all other cases, the finding is
reported as possible, because another client may have deleted the exchange.
Possible because: Another client may have deleted the exchange in the meantime.
How to mend it: Send exchange.unbind before deleting either exchange. Do not send exchange.unbind after an
exchange.delete, because deleting an exchange removes its bindings.
"""


Q_BIND_QEXIST: Final = RULES.rule(
    "Q-BIND-QEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client binds a queue that does not exist.

Demands: The queue that queue.bind names must exist.
Source: XML:queue.bind.queue.must-exist
Evidence: the queues that amqpscope knows from the capture, and the server's reply-code 404 (not-found)
Why it matters: The server closes the channel, and the messages that the binding should have routed to the
queue are lost.
Silent when: the server's answer is not 404 (not-found), or when the answer does not show what is missing. The
finding is reported as certain only if the same connection had deleted the queue before, or had received a
reply-code 404 (not-found) for the queue before. In all other cases, the finding is reported as possible,
because another client may have deleted the queue.
Possible because: Another client may have deleted the queue in the meantime.
How to mend it: Declare the queue and wait for queue.declare-ok before sending queue.bind. Use the queue name
of queue.declare-ok if the server names the queue, and declare auto-delete or exclusive queues again after a
reconnect.
"""


Q_BIND_XEXIST: Final = RULES.rule(
    "Q-BIND-XEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client binds a queue to an exchange that does not exist.

Demands: The exchange that queue.bind names must exist.
Source: XML:queue.bind.exchange.exchange-existence
Evidence: the exchanges that amqpscope knows from the capture, and the server's reply-code 404 (not-found)
Why it matters: The server closes the channel, and the messages that the binding should have routed to the
queue are lost.
Silent when: the server's answer is not 404 (not-found), or when the answer does not show what is missing. The
finding is reported as certain only if the same connection had deleted the exchange before, or had received a
reply-code 404 (not-found) for the exchange before. In all other cases, the finding is reported as possible,
because another client may have deleted the exchange.
Possible because: Another client may have deleted the exchange in the meantime.
How to mend it: Declare the exchange and wait for exchange.declare-ok before sending queue.bind. Check the
spelling of the exchange name and the virtual host. If another application declares the exchange, start that
application first.
"""


Q_UNBIND_QEXIST: Final = RULES.rule(
    "Q-UNBIND-QEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client sends queue.unbind for a queue that does not exist.

Demands: The queue that queue.unbind names must exist.
Source: XML:queue.unbind.queue.must-exist
Evidence: the queues that amqpscope knows from the capture
Why it matters: The client and the server disagree about which queues exist. A server that refuses the request
closes the channel.
Silent when: the server answers with an exception other than 404 (not-found), or when the answer does not show
what is missing. The rule is also silent when the server is RabbitMQ or LavinMQ and accepts the request.
RabbitMQ and LavinMQ treat the removal of a missing binding as successful. The finding is reported as certain
only if the server refuses the request with reply-code 404 (not-found) and the client must already have known
that the queue does not exist. The client must have known this if the same connection had deleted the queue or
received a reply-code 404 (not-found) for the queue. In all other cases, the finding is reported as possible,
because another client may have deleted the queue.
Possible because: Another client may have deleted the queue in the meantime.
How to mend it: Send queue.unbind before deleting the queue. Do not send queue.unbind after a queue.delete,
because deleting a queue removes its bindings.
"""


Q_UNBIND_XEXIST: Final = RULES.rule(
    "Q-UNBIND-XEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client sends queue.unbind with an exchange that does not exist.

Demands: The exchange that queue.unbind names must exist.
Source: XML:queue.unbind.exchange.must-exist
Evidence: the exchanges that amqpscope knows from the capture
Why it matters: The client and the server disagree about which exchanges exist. A server that refuses the
request closes the channel.
Silent when: the server answers with an exception other than 404 (not-found), or when the answer does not show
what is missing. The rule is also silent when the server is RabbitMQ or LavinMQ and accepts the request.
RabbitMQ and LavinMQ treat the removal of a missing binding as successful. The finding is reported as certain
only if the server refuses the request with reply-code 404 (not-found) and the client must already have known
that the exchange does not exist. The client must have known this if the same connection had deleted the
exchange or received a reply-code 404 (not-found) for the exchange. In all other cases, the finding is
reported as possible, because another client may have deleted the exchange.
Possible because: Another client may have deleted the exchange in the meantime.
How to mend it: Send queue.unbind before deleting the exchange. Do not send queue.unbind after an
exchange.delete, because deleting an exchange removes its bindings.
"""


Q_PURGE_QEXIST: Final = RULES.rule(
    "Q-PURGE-QEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client purges a queue that does not exist.

Demands: The queue that queue.purge names must exist.
Source: XML:queue.purge.queue.must-exist
Evidence: the queues that amqpscope knows from the capture, and the server's reply-code 404 (not-found)
Why it matters: The server closes the channel. The client and the server disagree about which queues exist.
Silent when: the server's answer is not 404 (not-found), or when the answer does not show what is missing. The
finding is reported as certain only if the same connection had deleted the queue before, or had received a
reply-code 404 (not-found) for the queue before. In all other cases, the finding is reported as possible,
because another client may have deleted the queue.
Possible because: Another client may have deleted the queue in the meantime.
How to mend it: Declare the queue and wait for queue.declare-ok before sending queue.purge. Check the spelling
of the queue name and the virtual host.
"""


Q_DELETE_QEXIST: Final = RULES.rule(
    "Q-DELETE-QEXIST", "MUST NOT", "tier B", by="client", answer="channel.close 404"
)
"""A client deletes a queue that does not exist.

Demands: The queue that queue.delete names must exist.
Source: XML:queue.delete.queue.must-exist
Evidence: the queues that amqpscope knows from the capture
Why it matters: The client and the server disagree about which queues exist. Some servers close the channel
when a client deletes a missing queue.
Silent when: the server answers with an exception other than 404 (not-found), or when the answer does not show
what is missing. The rule is also silent when the server is RabbitMQ or LavinMQ and accepts the request.
RabbitMQ and LavinMQ treat the deletion of a missing queue as successful. The finding is reported as certain
only if the server refuses the request with reply-code 404 (not-found) and the client must already have known
that the queue does not exist. The client must have known this if the same connection had deleted the queue or
received a reply-code 404 (not-found) for the queue. In all other cases, the finding is reported as possible,
because another client may have deleted the queue.
Possible because: Another client may have deleted the queue in the meantime.
How to mend it: Delete each queue once, and make only one part of the application responsible for the
deletion. Do not delete a queue that is already deleted, or that deletes itself (auto-delete, exclusive). Run
cleanup code on a channel of its own, so that a close with reply-code 404 (not-found) interrupts no other
work.
"""


B_CONSUME_QEXIST: Final = RULES.rule(
    "B-CONSUME-QEXIST", "IMPLIED", "tier B", by="client", answer="channel.close 404"
)
"""A client starts a consumer on a queue that does not exist.

Demands: The queue that basic.consume names must exist.
Source: XML constant not-found; XML:basic.consume.queue
Evidence: the queues that amqpscope knows from the capture, and the server's reply-code 404 (not-found)
Why it matters: The server closes the channel, and the consumer receives no messages.
Silent when: the server's answer is not 404 (not-found), or when the answer does not show what is missing. The
finding is reported as certain only if the same connection had deleted the queue before, or had received a
reply-code 404 (not-found) for the queue before. In all other cases, the finding is reported as possible,
because another client may have deleted the queue.
Possible because: Another client may have deleted the queue in the meantime.
How to mend it: Declare the queue and wait for queue.declare-ok before sending basic.consume. After a
reconnect, declare auto-delete and exclusive queues again before consuming.
"""


B_GET_QEXIST: Final = RULES.rule("B-GET-QEXIST", "IMPLIED", "tier B", by="client", answer="channel.close 404")
"""A client sends basic.get for a queue that does not exist.

Demands: The queue that basic.get names must exist.
Source: XML constant not-found; XML:basic.get.queue
Evidence: the queues that amqpscope knows from the capture, and the server's reply-code 404 (not-found)
Why it matters: The server closes the channel, which also ends all consumers on the channel.
Silent when: the server's answer is not 404 (not-found), or when the answer does not show what is missing. The
finding is reported as certain only if the same connection had deleted the queue before, or had received a
reply-code 404 (not-found) for the queue before. In all other cases, the finding is reported as possible,
because another client may have deleted the queue.
Possible because: Another client may have deleted the queue in the meantime.
How to mend it: Declare the queue and wait for queue.declare-ok before sending basic.get. Check the spelling
of the queue name and the virtual host, and stop polling when the queue is deleted.
"""


_QUEUES: Final = {
    "queue.bind": Q_BIND_QEXIST,
    "queue.unbind": Q_UNBIND_QEXIST,
    "queue.purge": Q_PURGE_QEXIST,
    "queue.delete": Q_DELETE_QEXIST,
    "basic.consume": B_CONSUME_QEXIST,
    "basic.get": B_GET_QEXIST,
}
"""By the method that names the queue."""

_EXCHANGES: Final = {
    "exchange.delete": X_DELETE_EXISTS,
    "exchange.bind": X_BIND_EXIST,
    "exchange.unbind": X_UNBIND_EXIST,
    "queue.bind": Q_BIND_XEXIST,
    "queue.unbind": Q_UNBIND_XEXIST,
}
"""By the method that names the exchange."""


def missing(
    operation: TopologyOperation, kind: str, name: str, gone: TopologyOperation | None
) -> Finding | None:
    """A finding about a request that uses a missing queue or exchange; None if no rule forbids the request.

    kind: `queue` or `exchange`. gone: what showed before that it is missing, None if only the answer does.
    """
    rule = (_QUEUES if kind == "queue" else _EXCHANGES).get(operation.method)
    if rule is None:
        return None
    certainty = POSSIBLE
    refused = operation.outcome.refused
    message = f"{operation.method} names {kind} {shown(name)}, which does not exist"
    if gone is not None:
        if refused and gone.connection is operation.connection:
            certainty = CERTAIN
        how = f" after {gone.method}" if gone.outcome.ok else ", as the server reported"
        message += f"{how} in packet {int((gone.outcome.answer or gone.spot).packet)}"
        if gone.connection is not operation.connection:
            message += f" of connection {gone.connection.id}"
    if refused:
        message += f"; the server answers with {reply_code(int(operation.outcome.code))}"
    return about_request(rule, certainty, message, operation, gone)
