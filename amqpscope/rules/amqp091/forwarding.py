"""What a broker does to a message on its way from a publisher to consumers.

A message is found again by its message-id, or by a body that only one message has that was captured. Nothing
here is ever certain: a program that was not captured may have published the like.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.contents import Content
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation

__all__ = ["RULES"]

RULES: Final = Rules("amqp091/forwarding")


def _finding(rule: str, message: str, content: Content, earlier: Content) -> Finding:
    evidence: dict[str, object] = {"message": content.identity[:200]}
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


# What a message is


B_CONTENT_INTACT: Final = RULES.rule("B-CONTENT-INTACT", "MUST NOT", "tier B", by="server")


def body_altered(content: Content, came: Content) -> Finding:
    """A broker delivers a message with another body than the body with which the message was published.

    Demands: The server delivers message bodies unaltered.
    Source: GS:3.1.1
    Evidence: message-id or correlation-id match; body digest
    Why it matters: The consumer processes data that no publisher has sent, so its results are wrong.
    Silent when: the message has no message-id, the message shares its message-id with another message, or
    octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Store and forward the octets of all body frames unchanged, in their order and with the
    body-size of the content header. Check plugins and middleware that rewrite, compress or truncate message
    bodies.
    """
    message = f"the body has {content.size} octets and is another than was published, of {came.size}"
    return _finding(B_CONTENT_INTACT, message, content, came)


B_PROPS_INTACT: Final = RULES.rule("B-PROPS-INTACT", "MUST NOT", "tier B", by="server")


def property_altered(content: Content, came: Content, name: str) -> Finding:
    """A broker delivers a message without a property that the publisher set, or with another value of the
    property.

    Demands: The server may add header information but neither drops nor changes what the publisher set.
    Source: GS:3.1.1
    Evidence: property and header comparison
    Why it matters: Consumers use the properties to see what kind of message arrives and to which queue they
    reply, so they misinterpret messages or send replies to the wrong place.
    Silent when: the property is one that brokers change (BCC, expiration, a direct reply-to, x-headers), the
    message was dead-lettered, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Forward the property flags and all property values as the publisher sent them. Add headers
    where needed, but neither remove nor overwrite headers or properties of the publisher.
    """
    message = f"the property {name} is not as it was published"
    return _finding(B_PROPS_INTACT, message, content, came)


B_DELIVER_META: Final = RULES.rule(
    "B-DELIVER-META",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def way_altered(content: Content, came: Content) -> Finding:
    """A server delivers a message with another exchange or routing key than the message was published with.

    Demands: Deliver and Get-Ok repeat the exchange and routing key of the original publish.
    Source: XML:basic.deliver.exchange/routing-key; XML:basic.get-ok.exchange/routing-key (docs)
    Evidence: publish arguments; deliver arguments
    Why it matters: Consumers use the routing key to decide how to process a message, so they process it in
    the wrong way.
    Silent when: the message was dead-lettered, the message has CC or BCC, the message answers a direct
    reply-to, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Store the exchange and the routing key of basic.publish with the message, and copy both
    into basic.deliver and basic.get-ok. Do not replace them with those of a binding or an intermediate
    exchange.
    """
    message = (
        f"delivered as of exchange {content.exchange[:60]!r} with key {content.key[:60]!r},"
        f" published to {came.exchange[:60]!r} with {came.key[:60]!r}"
    )
    return _finding(B_DELIVER_META, message, content, came)


C_OPEN_VHOST_SEPARATION: Final = RULES.rule("C-OPEN-VHOST-SEPARATION", "MUST", "tier B", by="server")


def out_of_another_virtual_host(content: Content, came: Content) -> Finding:
    """A server delivers a message in another virtual host than the virtual host in which the message was
    published.

    Demands: Exchanges, queues and messages of one virtual host are out of reach from another.
    Source: XML:connection.open.virtual-host.separation
    Evidence: vhost per connection; cross-vhost content matches
    Why it matters: Virtual hosts must isolate their users from each other. Here users of one virtual host
    receive messages of another one.
    Silent when: the message was published in that virtual host, too, the message has no message-id, or octets
    of the connections to this server were not captured.
    Only possible because: Federation and shovels move messages between virtual hosts legitimately.
    How to mend it: Include the virtual host in every lookup of exchanges, queues and bindings. Make sure that
    entities with the same name in two virtual hosts never share storage.
    """
    message = f"the message was published in another virtual host, on {came.connection.id}"
    return _finding(C_OPEN_VHOST_SEPARATION, message, content, came)


# When it comes


B_ORDER: Final = RULES.rule("B-ORDER", "MUST", "tier B", by="server")


def out_of_order(content: Content, before: Content, came: Content) -> Finding:
    """A server delivers messages of one publisher that take the same path to a consumer in another order than
    they were published in.

    Demands: Messages of one priority that take the same path (channel, exchange, queue, channel) arrive in
    publishing order unless marked redelivered.
    Source: XML:basic.08; GS:4.7
    Evidence: publish order per channel/exchange; delivery order per consumer; redelivered bit
    Why it matters: Results that depend on the order are wrong, for example a state that the last message
    should have set.
    Silent when: the messages differ in channel, exchange, routing key or priority, are delivered again, were
    delayed or dead-lettered, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Deliver messages of one channel, exchange, routing key and priority in the order in which
    they arrived. Do not dispatch messages of one queue to a channel through parallel threads without
    ordering.
    """
    message = f"delivered after one that was published behind it, in packet {int(before.spot.packet)}"
    finding = _finding(B_ORDER, message, content, came)
    finding.others.append(int(before.spot.packet))
    return finding


B_NOLOCAL: Final = RULES.rule(
    "B-NOLOCAL", "IMPLIED", "tier B", by="server", warning="The text implies it and names no error for it."
)


def delivered_to_its_publisher(content: Content, came: Content) -> Finding:
    """A server delivers messages to a consumer with no-local although its own connection published them.

    Demands: With no-local set the server does not deliver a connection's own messages back to it.
    Source: XML domain no-local (doc)
    Evidence: publishes and deliveries of one connection
    Why it matters: The client processes its own messages and may answer itself. RabbitMQ does not support
    no-local and ignores it.
    Silent when: the message was published more than once, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Store the publishing connection with each message, and skip consumers with no-local on
    this connection. Clients of a broker without no-local should mark their own messages in a header and
    discard them on receipt.
    """
    message = "the consumer asked for no-local, and this connection has published the message"
    return _finding(B_NOLOCAL, message, content, came)


TX_DEFER: Final = RULES.rule(
    "TX-DEFER", "IMPLIED", "tier B", by="server", warning="The text implies it and names no error for it."
)


def delivered_before_its_commit(content: Content, came: Content) -> Finding:
    """A server delivers a message that was published in a transaction before the transaction is committed, or
    without a commit.

    Demands: Messages published in a transaction reach consumers only after Commit, and never after Rollback.
    Source: GS:2.2.9; XML:basic.publish (doc)
    Evidence: transacted publishes; matching deliveries
    Why it matters: A transaction that fails or is rolled back nevertheless has an effect, because consumers
    process a message that should not exist.
    Silent when: the message was published more than once, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Keep the publishes of a transacted channel aside until tx.commit arrives, and only then
    route them to queues. Discard them on tx.rollback and when the channel or connection closes.
    """
    how = "was taken back" if came.fate == "rollback" else "was not committed by then"
    return _finding(TX_DEFER, f"the transaction it was published in {how}", content, came)


# That it comes again


B_DELIVER_ONE_CLIENT: Final = RULES.rule(
    "B-DELIVER-ONE-CLIENT",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def delivered_to_two(content: Content, before: Content) -> Finding:
    """A server delivers a message from a queue while another client still holds an unsettled delivery of the
    same message.

    Demands: One message on a queue goes to one client at a time, again only after failure or rejection.
    Source: GS:3.1.4
    Evidence: deliveries of a recognisable message; redelivered bit
    Why it matters: Two clients process the same message, so its work is done twice.
    Silent when: the message was returned to the queue, its channel or connection may have ended, the queue is
    a stream, the message was published more than once, or octets of the connections to this server were not
    captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Lock a message when it is delivered, and offer it to another consumer only after a
    basic.reject, basic.nack or basic.recover, or after the end of its channel or connection.
    """
    message = f"the message is delivered, and not settled yet, in packet {int(before.spot.packet)}"
    return _finding(B_DELIVER_ONE_CLIENT, message, content, before)


Q_BIND_UNIQUE: Final = RULES.rule("Q-BIND-UNIQUE", "MUST NOT", "tier B", by="server")


def put_on_a_queue_twice(content: Content, before: Content) -> Finding:
    """A server puts a message on a queue twice.

    Demands: A message is put on a queue once even if several bindings match.
    Source: XML:queue.bind.unique
    Evidence: publish/deliver content match; redelivered bit
    Why it matters: A message must be put on a queue once, however many bindings lead to the queue. Consumers
    do the same work twice.
    Silent when: the message was returned to the queue, the message was published more than once, or octets of
    the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Collect the destination queues of a message in a set before storing it, so that each queue
    receives the message once even if several bindings match.
    """
    message = f"the message was delivered from the queue in packet {int(before.spot.packet)}, and settled"
    return _finding(Q_BIND_UNIQUE, message, content, before)


X_BIND_UNIQUE: Final = RULES.rule("X-BIND-UNIQUE", "MUST NOT", "tier B", by="server")


def reached_an_exchange_twice(content: Content, before: Content) -> Finding:
    """A server puts a message on a queue twice where exchanges are bound to exchanges.

    Demands: However many paths lead there, a message reaches a destination exchange once.
    Source: RMQX:exchange.bind.unique
    Evidence: publish/deliver content match
    Why it matters: A message must reach an exchange once, however many paths lead to the exchange. Consumers
    do the same work twice.
    Silent when: the message was returned to the queue, the message was published more than once, or octets of
    the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Remember the exchanges that a message has already visited while routing it through
    exchange bindings, visit each one only once, and collect the destination queues in a set.
    """
    message = f"the message was delivered from the queue in packet {int(before.spot.packet)}, and settled"
    return _finding(X_BIND_UNIQUE, message, content, before)


B_REDELIV_SIGNAL: Final = RULES.rule("B-REDELIV-SIGNAL", "SHOULD", "tier B", by="server")


def not_said_to_come_again(content: Content, before: Content) -> Finding:
    """A server delivers a message again that was delivered before and returned to the queue, without
    setting the redelivered bit.

    Demands: A message that was delivered before carries the redelivered bit where the server can know.
    Source: XML domain redelivered.implementation
    Evidence: unsettled deliveries at channel or connection end; later delivery of the same content
    Why it matters: Only the redelivered bit warns a consumer that a message may already have been processed.
    Without the bit, the work may be done twice.
    Silent when: the message may have been published again, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Mark a message as delivered at its first delivery. Set the redelivered bit on every later
    delivery, also after a basic.reject or basic.nack with requeue and after a channel or connection has
    ended.
    """
    message = f"the message was delivered in packet {int(before.spot.packet)}, and is not marked redelivered"
    return _finding(B_REDELIV_SIGNAL, message, content, before)


B_RECOVER_FLAG: Final = RULES.rule("B-RECOVER-FLAG", "MUST", "tier B", by="server")


def recovered_and_not_said(content: Content, before: Content) -> Finding:
    """A server resends a message because of basic.recover without setting the redelivered bit.

    Demands: Messages resent because of Recover have the redelivered bit set.
    Source: XML:basic.recover.01
    Evidence: unacked contents at the time of Recover; later deliveries
    Why it matters: Only the redelivered bit warns a consumer that a message may already have been processed.
    Without the bit, the work may be done twice.
    Silent when: the message may have been published again, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Set the redelivered bit on every unacknowledged message that is resent because of
    basic.recover, whatever the value of requeue and whichever consumer receives the message.
    """
    message = f"the message of packet {int(before.spot.packet)} comes again after recover, not marked so"
    return _finding(B_RECOVER_FLAG, message, content, before)


B_RECOVER_ASYNC_FLAG: Final = RULES.rule("B-RECOVER-ASYNC-FLAG", "MUST", "tier B", by="server")


def recovered_async_and_not_said(content: Content, before: Content) -> Finding:
    """A server resends a message because of basic.recover-async without setting the redelivered bit.

    Demands: Messages resent because of Recover-Async have the redelivered bit set.
    Source: XML:basic.recover-async.01
    Evidence: as B-RECOVER-FLAG
    Why it matters: Only the redelivered bit warns a consumer that a message may already have been processed.
    Without the bit, the work may be done twice.
    Silent when: the message may have been published again, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Set the redelivered bit on every unacknowledged message that is resent because of
    basic.recover-async, whatever the value of requeue and whichever consumer receives the message.
    """
    message = f"the message of packet {int(before.spot.packet)} comes again after recover, not marked so"
    return _finding(B_RECOVER_ASYNC_FLAG, message, content, before)


B_REDELIV_LIMIT: Final = RULES.rule("B-REDELIV-LIMIT", "SHOULD", "tier B", by="server")


def again_and_again(content: Content, first: Content, times: int) -> Finding:
    """A server delivers the same message more than twenty times without moving it to a dead-letter queue.

    Demands: A message that keeps being redelivered without an ack is moved to a dead-letter queue.
    Source: XML:basic.deliver.01
    Evidence: number of deliveries of one message; x-delivery-count header of quorum queues
    Why it matters: No consumer can process the message, and its repeated delivery keeps consumers from
    processing other messages.
    Silent when: the message is delivered at most twenty times, or octets of the connections to this server
    were not captured.
    Only possible because: The message may have been published again.
    How to mend it: Count the deliveries of each message, and move a message to a dead-letter queue at a
    limit. In the consumer application, reject messages that cannot be processed without requeue.
    """
    message = f"delivered {times} times by now, first in packet {int(first.spot.packet)}"
    return _finding(B_REDELIV_LIMIT, message, content, first)


B_REJECT_SAMECLIENT: Final = RULES.rule(
    "B-REJECT-SAMECLIENT",
    "MUST NOT",
    "tier C",
    by="server",
    note="No error is tied to it, and both peers go on.",
)


def requeued_to_the_same(content: Content, before: Content) -> Finding:
    """A server delivers a message that a client rejected with requeue to the same client on the same channel
    again.

    Demands: A message rejected with requeue is not delivered to the same client on the same channel again.
    Source: XML:basic.reject.requeue.01
    Evidence: rejected content digests; later deliveries with redelivered set
    Why it matters: A consumer that requeues a message it cannot process may receive the message in an endless
    loop. One passage of the specification forbids this delivery, another one recommends it, and RabbitMQ does
    it.
    Silent when: the rule has already reported on this connection, or octets of the connections to this server
    were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Offer a requeued message to other consumers first, and exclude the channel that rejected
    it. Consumer applications should not requeue messages that they can never process: reject these without
    requeue.
    """
    message = f"the message of packet {int(before.spot.packet)}, which it gave back, comes again"
    return _finding(B_REJECT_SAMECLIENT, message, content, before)


TX_ROLLBACK_QUIET: Final = RULES.rule(
    "TX-ROLLBACK-QUIET",
    "IMPLIED",
    "tier B",
    by="server",
    warning="The text implies it and names no error for it.",
)


def delivered_again_after_rollback(content: Content, before: Content) -> Finding:
    """A server delivers a message again after the client rolled back its acknowledgement.

    Demands: Rollback neither requeues nor redelivers anything.
    Source: GS:2.2.9; XML:tx.rollback (doc)
    Evidence: unacked contents; deliveries after Rollback-Ok
    Why it matters: After tx.rollback the client still holds the delivery and may acknowledge it. Now the
    client has the same message twice and may process it twice.
    Silent when: the channel or connection of the delivery may have ended, or octets of the connections to
    this server were not captured.
    Only possible because: No capture can prove this fault, because a program outside the capture may have
    published a message with the same message-id or body.
    How to mend it: Restore rolled back acknowledgements to the unacknowledged state on tx.rollback, and
    neither requeue nor redeliver these messages. Redeliver them only after basic.recover, a rejection with
    requeue, or the end of the channel.
    """
    message = f"the message of packet {int(before.spot.packet)} comes again after its ack was rolled back"
    return _finding(TX_ROLLBACK_QUIET, message, content, before)


Q_PURGE_UNACKED: Final = RULES.rule("Q-PURGE-UNACKED", "MUST NOT", "tier B", by="server")


def purged_unsettled(content: Content, purge: TopologyOperation) -> Finding:
    """A server no longer knows an unacknowledged delivery after a purge of its queue.

    Demands: Purge spares messages already delivered and not yet acknowledged.
    Source: XML:queue.purge.02
    Evidence: unacked deliveries from the queue; Purge-Ok; 406 on their ack
    Why it matters: A purge must spare messages that were delivered and not yet acknowledged. The server
    closes the channel of the consumer that settles such a delivery.
    Silent when: the client settled further deliveries afterwards, the queue was not purged between the
    delivery and its settlement, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove this fault, because the server may have discarded the delivery
    for another reason.
    How to mend it: Remove only messages from the queue that await delivery when queue.purge arrives. Keep
    unacknowledged deliveries and their delivery-tags until the client settles them or the channel closes.
    """
    message = f"the delivery is not known any more; its queue was purged in packet {int(purge.spot.packet)}"
    finding = _finding(Q_PURGE_UNACKED, message, content, content)
    if content.refusal is not None:
        finding.spot = content.refusal
    finding.others.append(int(purge.spot.packet))
    return finding
