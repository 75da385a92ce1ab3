"""What a broker does to a message on its way from a publisher to consumers.

A message is found again by its message-id, or by a body that only one message has that was captured. Nothing
here is ever certain: a program that was not captured may have published the like.
"""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.tracking.amqp091.contents import Content
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation

__all__ = ["RULES"]


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


def body_altered(content: Content, came: Content) -> Finding:
    """A broker delivers a message with another body than it was published with.

    Why it matters: the consumer works on what nobody has sent.
    Silent when: the message has no message-id, or shares it with another one, or octets of the connections to
    this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"the body has {content.size} octets and is another than was published, of {came.size}"
    return _finding("amqp091/B-CONTENT-INTACT", message, content, came)


def property_altered(content: Content, came: Content, name: str) -> Finding:
    """A broker delivers a message without a property that the publisher set, or with another value.

    Why it matters: consumers tell by the properties what a message is, and whom to answer.
    Silent when: it is one that brokers change (BCC, expiration, a direct reply-to, x-headers), the message
    was dead-lettered, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"the property {name} is not as it was published"
    return _finding("amqp091/B-PROPS-INTACT", message, content, came)


def way_altered(content: Content, came: Content) -> Finding:
    """A delivery tells another exchange or routing key than the message was published with.

    Why it matters: consumers choose by the routing key what to do with a message.
    Silent when: the message was dead-lettered, has CC or BCC or answers a direct reply-to, or octets of the
    connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = (
        f"delivered as of exchange {content.exchange[:60]!r} with key {content.key[:60]!r},"
        f" published to {came.exchange[:60]!r} with {came.key[:60]!r}"
    )
    return _finding("amqp091/B-DELIVER-META", message, content, came)


def out_of_another_virtual_host(content: Content, came: Content) -> Finding:
    """A message that was published in one virtual host is delivered in another one.

    Why it matters: virtual hosts are to keep their users apart.
    Silent when: somebody published it there, too, it has no message-id, or octets of the connections to this
    server were not captured.
    Only possible because: Federation and shovels move messages lawfully.
    """
    message = f"the message was published in another virtual host, on {came.connection.id}"
    return _finding("amqp091/C-OPEN-VHOST-SEPARATION", message, content, came)


# When it comes


def out_of_order(content: Content, before: Content, came: Content) -> Finding:
    """Messages of one publisher that go the same way reach a consumer in another order.

    Why it matters: what rests on their order, the state after the last one, is wrong.
    Silent when: they differ in channel, exchange, routing key or priority, are delivered again, delayed or
    dead-lettered, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"delivered after one that was published behind it, in packet {int(before.spot.packet)}"
    finding = _finding("amqp091/B-ORDER", message, content, came)
    finding.others.append(int(before.spot.packet))
    return finding


def delivered_to_its_publisher(content: Content, came: Content) -> Finding:
    """A consumer with no-local gets what its own connection has published.

    Why it matters: the client answers itself. RabbitMQ does not know no-local, and ignores it.
    Silent when: the message was published more than once, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove it.
    """
    message = "the consumer asked for no-local, and this connection has published the message"
    return _finding("amqp091/B-NOLOCAL", message, content, came)


def delivered_before_its_commit(content: Content, came: Content) -> Finding:
    """A message that was published in a transaction is delivered before that is committed, or without.

    Why it matters: a transaction that fails, or is taken back, has had an effect.
    Silent when: the message was published more than once, or octets of the connections to this server were
    not captured.
    Only possible because: No capture can prove it.
    """
    how = "was taken back" if came.fate == "rollback" else "was not committed by then"
    return _finding("amqp091/TX-DEFER", f"the transaction it was published in {how}", content, came)


# That it comes again


def delivered_to_two(content: Content, before: Content) -> Finding:
    """A message of a queue is delivered while another client still has it.

    Why it matters: a piece of work is done twice.
    Silent when: it was given back, or its channel or connection may be over; of streams; when it was
    published more than once, or octets of the connections to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message is delivered, and not settled yet, in packet {int(before.spot.packet)}"
    return _finding("amqp091/B-DELIVER-ONE-CLIENT", message, content, before)


def put_on_a_queue_twice(content: Content, before: Content) -> Finding:
    """A message is on a queue twice.

    Why it matters: however many bindings lead there a message is to be put on a queue once; work is done
    twice.
    Silent when: it was given back, or published more than once, or octets of the connections to this server
    were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message was delivered from the queue in packet {int(before.spot.packet)}, and settled"
    return _finding("amqp091/Q-BIND-UNIQUE", message, content, before)


def reached_an_exchange_twice(content: Content, before: Content) -> Finding:
    """A message is on a queue twice, where exchanges are bound to exchanges.

    Why it matters: however many ways lead there a message is to reach an exchange once; work is done twice.
    Silent when: it was given back, or published more than once, or octets of the connections to this server
    were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message was delivered from the queue in packet {int(before.spot.packet)}, and settled"
    return _finding("amqp091/X-BIND-UNIQUE", message, content, before)


def not_said_to_come_again(content: Content, before: Content) -> Finding:
    """A message that was delivered before, and given back, comes again as if for the first time.

    Why it matters: only by the redelivered bit a consumer knows that it may have dealt with it already.
    Silent when: it may have been published again, or octets of the connections to this server were not
    captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message was delivered in packet {int(before.spot.packet)}, and is not marked redelivered"
    return _finding("amqp091/B-REDELIV-SIGNAL", message, content, before)


def recovered_and_not_said(content: Content, before: Content) -> Finding:
    """A message that comes again because of basic.recover is not marked redelivered.

    Why it matters: only by the redelivered bit a consumer knows that it may have dealt with it already.
    Silent when: it may have been published again, or octets of the connections to this server were not
    captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message of packet {int(before.spot.packet)} comes again after recover, not marked so"
    return _finding("amqp091/B-RECOVER-FLAG", message, content, before)


def recovered_async_and_not_said(content: Content, before: Content) -> Finding:
    """A message that comes again because of basic.recover-async is not marked redelivered.

    Why it matters: only by the redelivered bit a consumer knows that it may have dealt with it already.
    Silent when: it may have been published again, or octets of the connections to this server were not
    captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message of packet {int(before.spot.packet)} comes again after recover, not marked so"
    return _finding("amqp091/B-RECOVER-ASYNC-FLAG", message, content, before)


def again_and_again(content: Content, first: Content, times: int) -> Finding:
    """A message is delivered again and again.

    Why it matters: no consumer can deal with it, and it keeps them from all the others.
    Silent when: it is not more than twenty times, or octets of the connections to this server were not
    captured.
    Only possible because: It may have been published again.
    """
    message = f"delivered {times} times by now, first in packet {int(first.spot.packet)}"
    return _finding("amqp091/B-REDELIV-LIMIT", message, content, first)


def requeued_to_the_same(content: Content, before: Content) -> Finding:
    """A message that a client gave back to be requeued is delivered to it on the same channel again.

    Why it matters: one passage forbids it, another one recommends it, and RabbitMQ does it; a consumer that
    gives back what it cannot do may so go round for ever.
    Silent when: it was told of the connection before, or octets of the connections to this server were not
    captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message of packet {int(before.spot.packet)}, which it gave back, comes again"
    return _finding("amqp091/B-REJECT-SAMECLIENT", message, content, before)


def delivered_again_after_rollback(content: Content, before: Content) -> Finding:
    """A message whose acknowledgement was rolled back is delivered again.

    Why it matters: after a rollback the client still has it, and may acknowledge it; now it has it twice.
    Silent when: its channel or connection may be over, or octets of the connections to this server were not
    captured.
    Only possible because: No capture can prove it.
    """
    message = f"the message of packet {int(before.spot.packet)} comes again after its ack was rolled back"
    return _finding("amqp091/TX-ROLLBACK-QUIET", message, content, before)


def purged_unsettled(content: Content, purge: TopologyOperation) -> Finding:
    """A server knows nothing of a delivery after a purge of its queue.

    Why it matters: a purge is to spare what was delivered; the consumer that settles it loses its channel.
    Silent when: more was settled after it, the queue was not purged meanwhile, or octets of the connections
    to this server were not captured.
    Only possible because: No capture can prove it.
    """
    message = f"the delivery is not known any more; its queue was purged in packet {int(purge.spot.packet)}"
    finding = _finding("amqp091/Q-PURGE-UNACKED", message, content, content)
    if content.refusal is not None:
        finding.spot = content.refusal
    finding.others.append(int(purge.spot.packet))
    return finding


RULES = {
    "amqp091/Q-PURGE-UNACKED": purged_unsettled,
    "amqp091/B-CONTENT-INTACT": body_altered,
    "amqp091/B-PROPS-INTACT": property_altered,
    "amqp091/B-DELIVER-META": way_altered,
    "amqp091/C-OPEN-VHOST-SEPARATION": out_of_another_virtual_host,
    "amqp091/B-ORDER": out_of_order,
    "amqp091/B-NOLOCAL": delivered_to_its_publisher,
    "amqp091/TX-DEFER": delivered_before_its_commit,
    "amqp091/B-DELIVER-ONE-CLIENT": delivered_to_two,
    "amqp091/Q-BIND-UNIQUE": put_on_a_queue_twice,
    "amqp091/X-BIND-UNIQUE": reached_an_exchange_twice,
    "amqp091/B-REDELIV-SIGNAL": not_said_to_come_again,
    "amqp091/B-RECOVER-FLAG": recovered_and_not_said,
    "amqp091/B-RECOVER-ASYNC-FLAG": recovered_async_and_not_said,
    "amqp091/B-REDELIV-LIMIT": again_and_again,
    "amqp091/B-REJECT-SAMECLIENT": requeued_to_the_same,
    "amqp091/TX-ROLLBACK-QUIET": delivered_again_after_rollback,
}
