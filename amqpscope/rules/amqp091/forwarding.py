"""What a broker does to a message on its way from a publisher to consumers.

A message is recognized by its message-id, or by a body that no other captured message has. No finding here is
certain, because a program outside the capture may have published the same message.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.contents import Content
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from dissectors.wording import count

__all__ = ["RULES"]

RULES: Final = Rules("amqp091/forwarding")


def _finding(rule: str, message: str, content: Content, earlier: Content) -> Finding:
    evidence: dict[str, object] = {"message": content.digest.identity[:200]}
    if content.queue:
        evidence["queue"] = content.queue
    others: list[int] = []
    if earlier.connection is not content.connection:
        evidence["other_connection"] = earlier.connection.id
    if earlier.connection.capture == content.connection.capture:
        others.append(int(earlier.spot.packet))
    finding = Finding(rule, POSSIBLE, message, content.connection, content.spot, evidence, others)
    finding.delivery_id = content.tag
    return finding


# The content of a message


B_CONTENT_INTACT: Final = RULES.rule("B-CONTENT-INTACT", "MUST NOT", "tier B", by="server")


def body_altered(content: Content, came: Content) -> Finding:
    """A broker delivers a message whose body differs from the body that was published.

    Demands: A server must deliver message bodies unchanged.
    Source: GS:3.1.1
    Evidence: a published and a delivered message with the same message-id or correlation-id, and the digests
    of their bodies
    Why it matters: The consumer processes data that no publisher has sent, so its results are wrong.
    Silent when: the message has no message-id, or when another message has the same message-id. The rule is
    also silent when the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Store and forward the octets of all body frames unchanged, in their order and with the
    body-size of the content header. Check plugins and middleware that rewrite, compress or truncate message
    bodies.
    """
    delivered, published = content.digest.size, came.digest.size
    message = (
        f"the delivered body ({count(delivered, 'octet')}) differs from the published body "
        f"({count(published, 'octet')})"
    )
    return _finding(B_CONTENT_INTACT, message, content, came)


B_PROPS_INTACT: Final = RULES.rule("B-PROPS-INTACT", "MUST NOT", "tier B", by="server")


def property_altered(content: Content, came: Content, name: str) -> Finding:
    """A broker delivers a message without a property that the publisher set, or with another value of that
    property.

    Demands: A server may add headers to a message, but must not remove or change a property that the
    publisher set.
    Source: GS:3.1.1
    Evidence: the properties and headers of the message when it was published and when it was delivered
    Why it matters: Consumers misinterpret the message, or send their replies to the wrong queue.
    Silent when: the property is one that brokers change (BCC, expiration, a direct reply-to, headers that
    begin with `x-`), or when the message was dead-lettered. The rule is also silent when the capture lacks
    octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Forward the property flags and all property values as the publisher sent them. Add headers
    where needed, but neither remove nor overwrite headers or properties of the publisher.
    """
    message = f"the property '{name}' has another value in the delivery than in the publish"
    return _finding(B_PROPS_INTACT, message, content, came)


B_DELIVER_META: Final = RULES.rule(
    "B-DELIVER-META",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def way_altered(content: Content, came: Content) -> Finding:
    """A server delivers a message with another exchange or routing key than the publisher used.

    Demands: The basic.deliver or basic.get-ok of a message must repeat the exchange and the routing key of
    its basic.publish.
    Source: XML:basic.deliver.exchange/routing-key; XML:basic.get-ok.exchange/routing-key (docs)
    Evidence: the exchange and the routing key of basic.publish, and of basic.deliver or basic.get-ok
    Why it matters: Consumers use the routing key to decide how to process a message, so they may process it
    in the wrong way.
    Silent when: the message was dead-lettered, when the message has the header CC or BCC, or when the message
    is a reply by direct reply-to (amq.rabbitmq.reply-to). The rule is also silent when the capture lacks
    octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Store the exchange and the routing key of basic.publish with the message, and copy both
    into basic.deliver and basic.get-ok. Do not replace the exchange or the routing key with the routing key
    of a binding or the name of an intermediate exchange.
    """
    message = (
        f"the server delivers the message with exchange {content.exchange[:60]!r} and routing key "
        f"{content.key[:60]!r}, but the message was published with exchange {came.exchange[:60]!r} and "
        f"routing key {came.key[:60]!r}"
    )
    return _finding(B_DELIVER_META, message, content, came)


C_OPEN_VHOST_SEPARATION: Final = RULES.rule("C-OPEN-VHOST-SEPARATION", "MUST", "tier B", by="server")


def out_of_another_virtual_host(content: Content, came: Content) -> Finding:
    """A server delivers a message in another virtual host than the one in which the message was published.

    Demands: Clients of one virtual host must not reach the exchanges, queues and messages of another virtual
    host.
    Source: XML:connection.open.virtual-host.separation
    Evidence: the virtual host of each connection, and messages with the same message-id or body in two
    virtual hosts
    Why it matters: Virtual hosts must isolate their users from each other. Users of one virtual host receive
    messages of another virtual host.
    Silent when: the message was also published in the virtual host of the delivery, or when the message has
    no message-id. The rule is also silent when the capture lacks octets of a connection to this server.
    Only possible because: RabbitMQ's federation and shovels may legitimately move messages between virtual
    hosts.
    How to mend it: Include the virtual host in every lookup of exchanges, queues and bindings. Make sure that
    entities with the same name in two virtual hosts never share storage.
    """
    message = (
        "the server delivers the message in this virtual host, but the message was published in another "
        f"virtual host, on connection {came.connection.id}"
    )
    return _finding(C_OPEN_VHOST_SEPARATION, message, content, came)


# The order and the time of deliveries


B_ORDER: Final = RULES.rule("B-ORDER", "MUST", "tier B", by="server")


def out_of_order(content: Content, before: Content, came: Content) -> Finding:
    """A server delivers messages to a consumer in another order than a publisher sent them, although the
    messages take the same path.

    Demands: Messages of one priority that take the same path must arrive in the order of publishing, unless
    the redelivered bit is set. The path of a message consists of the channel of the publish, the exchange,
    the queue, and the channel of the delivery.
    Source: XML:basic.08; GS:4.7
    Evidence: the order of the publishes on a channel, and the order of the deliveries to a consumer
    Why it matters: A consumer that depends on the order gets wrong results. For example, an older message may
    overwrite the state that a newer message has set.
    Silent when: the messages differ in channel, exchange, routing key or priority, or when a message was
    redelivered, delayed or dead-lettered. The rule is also silent when the capture lacks octets of a
    connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Deliver messages of one channel, exchange, routing key and priority in the order in which
    they arrived. If parallel threads dispatch messages of one queue to a channel, keep the messages in order.
    """
    packet = int(before.spot.packet)
    message = (
        f"the server delivers the message after the message in packet {packet}, which was published later"
    )
    finding = _finding(B_ORDER, message, content, came)
    finding.others.append(int(before.spot.packet))
    return finding


B_NOLOCAL: Final = RULES.rule(
    "B-NOLOCAL",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivered_to_its_publisher(content: Content, came: Content) -> Finding:
    """A server delivers a message to a consumer with the no-local flag although the same connection published
    the message.

    Demands: A server must not deliver a message to a consumer with the no-local flag if the same connection
    published the message.
    Source: XML domain no-local (doc)
    Evidence: the publishes and the deliveries of one connection
    Why it matters: The client processes its own messages and may send answers to itself. RabbitMQ does not
    support no-local and ignores it.
    Silent when: the message was published more than once, or when the capture lacks octets of a connection to
    this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Store the publishing connection with each message, and do not deliver the message to
    consumers with the no-local flag on that connection. Clients of a broker that does not support no-local
    should mark their own messages in a header and discard them on receipt.
    """
    message = (
        "the server delivers the message to a consumer with no-local, although the same connection "
        "published the message"
    )
    return _finding(B_NOLOCAL, message, content, came)


TX_DEFER: Final = RULES.rule(
    "TX-DEFER",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivered_before_its_commit(content: Content, came: Content) -> Finding:
    """A server delivers a message of a transaction before the transaction is committed, or although the
    transaction is never committed.

    Demands: A message that was published in a transaction may reach consumers only after tx.commit, and must
    never reach consumers after tx.rollback.
    Source: GS:2.2.9; XML:basic.publish (doc)
    Evidence: the publishes in transactions, and the deliveries of the same messages
    Why it matters: A transaction that fails or is rolled back still has an effect: consumers process a
    message that should not exist.
    Silent when: the message was published more than once, or when the capture lacks octets of a connection to
    this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Keep the publishes of a transacted channel aside until tx.commit arrives, and only then
    route them to queues. Discard the publishes on tx.rollback, and when the channel or connection closes.
    """
    how = "was rolled back" if came.fate == "rollback" else "is not committed yet"
    return _finding(
        TX_DEFER,
        f"the server delivers the message, but the transaction in which the message was published {how}",
        content,
        came,
    )


# Repeated deliveries


B_DELIVER_ONE_CLIENT: Final = RULES.rule(
    "B-DELIVER-ONE-CLIENT",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivered_to_two(content: Content, before: Content) -> Finding:
    """A server delivers a message from a queue while another client still has an unsettled delivery of the
    same message.

    Demands: A server must deliver a message of a queue to only one client at a time, and to another client
    only after a failure or a rejection.
    Source: GS:3.1.4
    Evidence: the deliveries of a message that has a unique message-id or body, and their redelivered bits
    Why it matters: Two clients process the same message, so the work is done twice.
    Silent when: the message was returned to the queue, or when the channel or connection of the first
    delivery may have ended. The rule is also silent when the queue is a stream, or when the message was
    published more than once. The rule is also silent when the capture lacks octets of a connection to this
    server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Lock a message when it is delivered. Offer the message to another consumer only after a
    basic.reject, basic.nack or basic.recover, or after the channel or the connection of the delivery has
    ended.
    """
    packet = int(before.spot.packet)
    message = (
        f"the server delivers the message again, but the message's earlier delivery in packet {packet} is "
        "not settled yet"
    )
    return _finding(B_DELIVER_ONE_CLIENT, message, content, before)


Q_BIND_UNIQUE: Final = RULES.rule("Q-BIND-UNIQUE", "MUST NOT", "tier B", by="server")


def put_on_a_queue_twice(content: Content, before: Content) -> Finding:
    """A server puts a message on a queue twice.

    Demands: A server must put a message on a queue only once, even if several bindings match.
    Source: XML:queue.bind.unique
    Evidence: the publishes and the deliveries of the message, and their redelivered bits
    Why it matters: Consumers receive the message twice and do the same work twice.
    Silent when: the message was returned to the queue, or when the message was published more than once. The
    rule is also silent when the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Collect the destination queues of a message in a set before storing the message. Each
    queue then receives the message once, even if several bindings match.
    """
    message = (
        "the queue delivers the message a second time, although its first delivery (packet "
        f"{int(before.spot.packet)}) was settled"
    )
    return _finding(Q_BIND_UNIQUE, message, content, before)


X_BIND_UNIQUE: Final = RULES.rule("X-BIND-UNIQUE", "MUST NOT", "tier B", by="server")


def reached_an_exchange_twice(content: Content, before: Content) -> Finding:
    """A server puts a message on a queue twice because several exchange bindings lead to the queue.

    Demands: A message must reach an exchange only once, even if several bindings lead to that exchange.
    Source: RMQX:exchange.bind.unique
    Evidence: the publishes and the deliveries of the message
    Why it matters: Consumers receive the message twice and do the same work twice.
    Silent when: the message was returned to the queue, or when the message was published more than once. The
    rule is also silent when the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: While routing a message through exchange bindings, remember the exchanges that the message
    has already visited. Visit each exchange only once, and collect the destination queues in a set.
    """
    message = (
        "the queue delivers the message a second time, although its first delivery (packet "
        f"{int(before.spot.packet)}) was settled"
    )
    return _finding(X_BIND_UNIQUE, message, content, before)


B_REDELIV_SIGNAL: Final = RULES.rule("B-REDELIV-SIGNAL", "SHOULD", "tier B", by="server")


def not_said_to_come_again(content: Content, before: Content) -> Finding:
    """A server redelivers a message without setting the redelivered bit.

    Demands: A server should set the redelivered bit for a message that was delivered before, as far as the
    server can know.
    Source: XML domain redelivered.implementation
    Evidence: the deliveries that are unsettled when a channel or connection ends, and later deliveries of the
    same messages
    Why it matters: Only the redelivered bit warns a consumer that a message may already have been processed.
    Without the redelivered bit, the work may be done twice.
    Silent when: the message may have been published again, or when the capture lacks octets of a connection
    to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Mark a message as delivered at its first delivery. Set the redelivered bit on every later
    delivery. Deliveries after a basic.reject or basic.nack with requeue, and deliveries after a channel or
    connection has ended, also need the redelivered bit.
    """
    message = (
        f"the message was delivered before, in packet {int(before.spot.packet)}, but the redelivered bit is "
        "not set"
    )
    return _finding(B_REDELIV_SIGNAL, message, content, before)


B_RECOVER_FLAG: Final = RULES.rule("B-RECOVER-FLAG", "MUST", "tier B", by="server")


def recovered_and_not_said(content: Content, before: Content) -> Finding:
    """A server resends a message because of basic.recover without setting the redelivered bit.

    Demands: A server must set the redelivered bit for messages that it resends because of basic.recover.
    Source: XML:basic.recover.01
    Evidence: the messages that are unacknowledged when basic.recover arrives, and later deliveries of
    these messages
    Why it matters: Only the redelivered bit warns a consumer that a message may already have been processed.
    Without the redelivered bit, the work may be done twice.
    Silent when: the message may have been published again, or when the capture lacks octets of a connection
    to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Set the redelivered bit on every unacknowledged message that the server resends because of
    basic.recover. The redelivered bit is needed with and without requeue, and for every consumer.
    """
    message = (
        f"the server resends the message of packet {int(before.spot.packet)} after basic.recover, but does "
        "not set the redelivered bit"
    )
    return _finding(B_RECOVER_FLAG, message, content, before)


B_RECOVER_ASYNC_FLAG: Final = RULES.rule("B-RECOVER-ASYNC-FLAG", "MUST", "tier B", by="server")


def recovered_async_and_not_said(content: Content, before: Content) -> Finding:
    """A server resends a message because of basic.recover-async without setting the redelivered bit.

    Demands: A server must set the redelivered bit for messages that it resends because of
    basic.recover-async.
    Source: XML:basic.recover-async.01
    Evidence: the messages that are unacknowledged when basic.recover-async arrives, and later deliveries
    of these messages
    Why it matters: Only the redelivered bit warns a consumer that a message may already have been processed.
    Without the redelivered bit, the work may be done twice.
    Silent when: the message may have been published again, or when the capture lacks octets of a connection
    to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Set the redelivered bit on every unacknowledged message that the server resends because of
    basic.recover-async. The redelivered bit is needed with and without requeue, and for every consumer.
    """
    message = (
        f"the server resends the message of packet {int(before.spot.packet)} after basic.recover-async, but "
        "does not set the redelivered bit"
    )
    return _finding(B_RECOVER_ASYNC_FLAG, message, content, before)


B_REDELIV_LIMIT: Final = RULES.rule("B-REDELIV-LIMIT", "SHOULD", "tier B", by="server")


def again_and_again(content: Content, first: Content, times: int) -> Finding:
    """A server delivers the same message more than twenty times without moving it to a dead-letter queue.

    Demands: If a message is redelivered again and again without an acknowledgement, the server should move it
    to a dead-letter queue.
    Source: XML:basic.deliver.01
    Evidence: the number of deliveries of one message, or the header x-delivery-count of quorum queues
    Why it matters: No consumer can process the message, and its redeliveries keep consumers from processing
    other messages.
    Silent when: the message is delivered at most twenty times, or when the capture lacks octets of a
    connection to this server.
    Only possible because: A client may have published the message again.
    How to mend it: Count the deliveries of each message, and move a message to a dead-letter queue when its
    count reaches a limit. In the consumer application, reject a message without requeue if the application
    cannot process the message.
    """
    message = (
        f"the server delivers the message {times} times, first in packet {int(first.spot.packet)}, instead "
        "of moving the message to a dead-letter queue"
    )
    return _finding(B_REDELIV_LIMIT, message, content, first)


B_REJECT_SAMECLIENT: Final = RULES.rule(
    "B-REJECT-SAMECLIENT",
    "MUST NOT",
    "tier C",
    by="server",
    note="The specification names no error for this fault, and both peers continue.",
)


def requeued_to_the_same(content: Content, before: Content) -> Finding:
    """A server redelivers a message to a client on the same channel on which the client has rejected the
    message with requeue.

    Demands: A server must not redeliver a message on the channel on which a client has rejected the message
    with requeue.
    Source: XML:basic.reject.requeue.01
    Evidence: the rejected messages of the channel, and later deliveries of these messages with the
    redelivered bit
    Why it matters: A consumer that requeues a message that it cannot process may receive the message in an
    endless loop. The specification contradicts itself: one passage forbids the redelivery of a rejected
    message to the same client, and another passage recommends it. RabbitMQ redelivers a rejected message to
    the same client.
    Silent when: the rule has already reported the fault on the same connection. The rule is also silent when
    the capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: Offer a requeued message only to consumers on channels that have not rejected the message.
    Consumer applications should not requeue messages that they can never process: reject such messages
    without requeue.
    """
    message = (
        f"the server redelivers the message of packet {int(before.spot.packet)} on the channel on which the "
        "client rejected the message"
    )
    return _finding(B_REJECT_SAMECLIENT, message, content, before)


TX_ROLLBACK_QUIET: Final = RULES.rule(
    "TX-ROLLBACK-QUIET",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def delivered_again_after_rollback(content: Content, before: Content) -> Finding:
    """A server redelivers a message after the client's acknowledgement of this message was rolled back.

    Demands: After tx.rollback, a server must neither requeue nor redeliver the messages whose
    acknowledgements were rolled back.
    Source: GS:2.2.9; XML:tx.rollback (doc)
    Evidence: the unacknowledged messages, and the deliveries after tx.rollback-ok
    Why it matters: After tx.rollback, the client still has the delivery and may acknowledge it. A client that
    receives the message a second time may process it twice.
    Silent when: the channel or connection of the delivery may have ended. The rule is also silent when the
    capture lacks octets of a connection to this server.
    Only possible because: No capture can prove this fault, because a program that the capture does not show
    may have published a message with the same message-id or body.
    How to mend it: On tx.rollback, treat the messages of the rolled-back acknowledgements as unacknowledged
    again. Do not requeue or redeliver such messages because of tx.rollback. Redeliver such messages only
    after basic.recover, a rejection with requeue, or the end of the channel.
    """
    message = (
        f"the server redelivers the message of packet {int(before.spot.packet)} after the acknowledgement "
        "of the message was rolled back, but a rollback must not cause a redelivery"
    )
    return _finding(TX_ROLLBACK_QUIET, message, content, before)


Q_PURGE_UNACKED: Final = RULES.rule("Q-PURGE-UNACKED", "MUST NOT", "tier B", by="server")


def purged_unsettled(content: Content, purge: TopologyOperation) -> Finding:
    """After a queue was purged, the server no longer accepts an acknowledgement of an earlier delivery from
    this queue.

    Demands: A queue.purge must not remove messages that were delivered and are not yet acknowledged.
    Source: XML:queue.purge.02
    Evidence: the unacknowledged deliveries of the queue, the queue.purge-ok, and a reply-code 406
    (precondition-failed) for the acknowledgement of such a delivery
    Why it matters: When the consumer settles an unacknowledged delivery of the purged queue, the server
    closes the channel.
    Silent when: the client settled further deliveries after the refused one, or when the queue was not purged
    between the delivery and its settlement. The rule is also silent when the capture lacks octets of a
    connection to this server.
    Only possible because: No capture can prove this fault, because the server may have discarded the delivery
    for another reason.
    How to mend it: When queue.purge arrives, remove only messages that have not been delivered yet. Keep
    unacknowledged deliveries and their delivery-tags until the client settles them or the channel closes.
    """
    message = (
        "the server refuses the settlement of this delivery after the queue.purge in packet "
        f"{int(purge.spot.packet)}, but queue.purge must not remove unacknowledged messages"
    )
    finding = _finding(Q_PURGE_UNACKED, message, content, content)
    if content.refusal is not None:
        finding.spot = content.refusal
    finding.others.append(int(purge.spot.packet))
    return finding
