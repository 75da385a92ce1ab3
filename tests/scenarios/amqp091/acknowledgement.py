"""What clients say of deliveries: acks, rejects and nacks of AMQP 0-9-1."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import SERVER_CAPABILITIES, Dialogue091


def consuming(d: Dialogue091, deliveries: int = 1, **arguments: bool) -> None:
    """A channel with a consumer that has got so many deliveries."""
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", **arguments)
    for _ in range(deliveries):
        d.server.deliver().called("delivery")


def refused(d: Dialogue091, cause: str = "basic.ack", tag: int = 0) -> None:
    """The server closes the channel."""
    d.server.close_channel(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}", cause)
    d.client.channel_close_ok()


@pair("B-ACK-KNOWN", cut=without("delivery"))
def ack_of_a_tag_that_was_not_given_out(d: Dialogue091) -> None:
    consuming(d)
    d.client.ack(1)
    if d.wrong:
        d.client.ack(7).breaks("B-ACK-KNOWN")
        refused(d, tag=7)
    d.goodbye()


@pair("B-ACK-KNOWN", cut=without("delivery"))
def ack_of_what_is_still_on_its_way(d: Dialogue091) -> None:
    """What the client can have received by then counts, not what the tap had seen."""
    consuming(d)
    with d.on_their_way():
        d.server.deliver()
        said = d.client.ack(2 if d.wrong else 1)
    if d.wrong:
        said.breaks("B-ACK-KNOWN")
    d.goodbye()


@pair("B-ACK-CHANNEL", cut=without("delivery"))
def ack_on_the_wrong_channel(d: Dialogue091) -> None:
    consuming(d, 0)
    d.channel(2)
    d.consume("q", channel=2)
    d.server.deliver().called("delivery")
    d.server.deliver(channel=2)
    d.server.deliver(channel=2)
    d.client.ack(1, channel=2)
    if d.wrong:
        d.client.ack(2).breaks("B-ACK-CHANNEL")
        refused(d, tag=2)
    else:
        d.client.ack(2, channel=2)
    d.goodbye()


@pair("B-ACK-DUP", cut=without("delivery"))
def ack_said_twice(d: Dialogue091) -> None:
    consuming(d)
    d.client.ack(1)
    if d.wrong:
        d.client.ack(1).breaks("B-ACK-DUP")
        refused(d, tag=1)
    d.goodbye()


@pair("B-ACK-DUP", cut=without("delivery"))
def reject_of_what_an_ack_has_covered(d: Dialogue091) -> None:
    consuming(d, 3)
    d.client.ack(2, multiple=True)
    if d.wrong:
        d.client.reject(1).breaks("B-ACK-DUP")
        refused(d, "basic.reject", 1)
    else:
        d.client.reject(3)
    d.goodbye()


@pair("B-ACK-DUP", cut=without("delivery"))
def ack_of_what_was_given_back(d: Dialogue091) -> None:
    """After a recover the old tags are nobody's."""
    consuming(d)
    d.ask("basic.recover", requeue=True)
    d.server.deliver(redelivered=True)
    if d.wrong:
        d.client.ack(1).may_break("B-ACK-DUP")
        refused(d, tag=1)
    else:
        d.client.ack(2)
    d.goodbye()


@pair("B-ACK-DUP", cut=without("delivery"))
def nack_of_what_was_committed(d: Dialogue091) -> None:
    consuming(d, 2)
    d.transaction()
    d.client.ack(1)
    if d.wrong:
        d.commit()
    else:
        d.rollback()
    said = d.client.nack(1)
    if d.wrong:
        said.breaks("B-ACK-DUP")
        refused(d, "basic.nack", 1)
    else:
        d.commit()
    d.goodbye()


@pair("B-ACK-MULTIPLE", cut=without("delivery"))
def ack_with_multiple_of_a_settled_one(d: Dialogue091) -> None:
    consuming(d, 3)
    d.client.ack(2)
    if d.wrong:
        d.client.ack(2, multiple=True).breaks("B-ACK-MULTIPLE")
        refused(d, tag=2)
    else:
        d.client.ack(3, multiple=True)
    d.goodbye()


@pair("B-ACK-MULTIPLE", cut=without("delivery"))
def ack_with_multiple_of_a_settled_one_at_another_broker(d: Dialogue091) -> None:
    d.product = "LavinMQ"
    consuming(d, 3)
    d.client.ack(2)
    if d.wrong:
        d.client.ack(2, multiple=True).may_break("B-ACK-MULTIPLE")
    d.goodbye()


@pair("B-ACK-ZERO", cut=without("fault"))
def ack_of_tag_zero(d: Dialogue091) -> None:
    consuming(d)
    said = d.client.ack(0, multiple=not d.wrong).called("fault")
    if d.wrong:
        said.breaks("B-ACK-ZERO")
        refused(d)
    else:
        d.client.ack(0, multiple=True)
    d.goodbye()


@pair("B-ACK-NOACK", cut=without("basic.consume"))
def ack_of_a_delivery_that_needs_none(d: Dialogue091) -> None:
    consuming(d, 0, no_ack=d.wrong)
    d.server.deliver()
    d.server.deliver()
    said = d.client.ack(1)
    if d.wrong:
        said.breaks("B-ACK-NOACK")
        refused(d, tag=1)
    d.goodbye()


@pair("B-ACK-NOACK", cut=without("get"))
def ack_of_a_get_that_needs_none(d: Dialogue091) -> None:
    consuming(d)
    d.client.get("q", no_ack=d.wrong).called("get")
    d.server.get_ok()
    d.client.ack(1)
    said = d.client.reject(2)
    if d.wrong:
        said.breaks("B-ACK-NOACK")
        refused(d, "basic.reject", 2)
    d.goodbye()


@pair("B-REJECT-KNOWN", cut=without("delivery"))
def reject_of_a_tag_that_was_not_given_out(d: Dialogue091) -> None:
    consuming(d)
    said = d.client.reject(2 if d.wrong else 1)
    if d.wrong:
        said.breaks("B-REJECT-KNOWN")
        refused(d, "basic.reject", 2)
    d.goodbye()


@pair("B-REJECT-ZERO", cut=without("fault"))
def reject_of_tag_zero(d: Dialogue091) -> None:
    consuming(d)
    said = d.client.reject(0 if d.wrong else 1).called("fault")
    if d.wrong:
        said.breaks("B-REJECT-ZERO")
        refused(d, "basic.reject")
    d.goodbye()


@pair("B-NACK-KNOWN", cut=without("delivery"))
def nack_of_a_tag_that_was_not_given_out(d: Dialogue091) -> None:
    consuming(d)
    said = d.client.nack(2 if d.wrong else 1)
    if d.wrong:
        said.breaks("B-NACK-KNOWN")
        refused(d, "basic.nack", 2)
    d.goodbye()


@pair("B-NACK-KNOWN", cut=without("fault"))
def nack_of_tag_zero(d: Dialogue091) -> None:
    consuming(d, 2)
    said = d.client.nack(0, multiple=not d.wrong).called("fault")
    if d.wrong:
        said.breaks("B-NACK-KNOWN")
        refused(d, "basic.nack")
    d.goodbye()


@pair("B-NACK-KNOWN", cut=without("delivery"))
def nack_with_multiple_of_a_settled_one(d: Dialogue091) -> None:
    consuming(d, 3)
    d.client.ack(2)
    if d.wrong:
        d.client.nack(2, multiple=True).breaks("B-NACK-KNOWN")
        refused(d, "basic.nack", 2)
    else:
        d.client.nack(3, multiple=True)
    d.goodbye()


@pair("B-NACK-CAP", cut=without("connection.start"))
def nack_that_the_server_does_not_know(d: Dialogue091) -> None:
    without_nack = tuple(name for name in SERVER_CAPABILITIES if name != "basic.nack")
    d.opened(start={"capabilities": without_nack if d.wrong else SERVER_CAPABILITIES})
    d.channel(1)
    d.consume("q")
    d.server.deliver()
    said = d.client.nack()
    if d.wrong:
        said.breaks("B-NACK-CAP")
    d.goodbye()


@legal("acks that cross the server's close of the channel")
def acks_while_the_channel_is_being_closed(d: Dialogue091) -> None:
    consuming(d, 2)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.server.close_channel(403, "ACCESS_REFUSED - access to exchange 'gone' refused", "basic.publish")
        d.client.ack(1)
        d.client.reject(2)
    d.client.channel_close_ok()
    d.channel(1)
    d.consume("q")
    d.server.deliver(redelivered=True)
    d.client.ack(1)
    d.goodbye()


@legal("acks behind a rollback that is not answered yet")
def acks_before_the_rollback_is_answered(d: Dialogue091) -> None:
    consuming(d, 2)
    d.transaction()
    d.client.ack(2, multiple=True)
    with d.on_their_way():
        d.client.method("tx.rollback")
        d.client.ack(2)
    d.server.method("tx.rollback-ok")
    d.client.ack(1)
    d.commit()
    d.goodbye()


@legal("acks of deliveries and gets in any order, and of all that is left, which may be nothing")
def acks_in_any_order(d: Dialogue091) -> None:
    consuming(d, 3)
    d.client.get("q")
    d.server.get_ok()
    d.client.nack(4)
    d.client.ack(2)
    d.client.ack(3, multiple=True)
    d.client.ack(0, multiple=True)
    d.client.nack(0, multiple=True)
    d.server.deliver()
    d.client.ack(5)
    d.goodbye()


@legal("acks of a consumer that was cancelled, by either, or whose queue is gone")
def acks_after_the_consumer_is_gone(d: Dialogue091) -> None:
    consuming(d, 3)
    d.consume("q", "second")
    d.server.deliver(consumer_tag="second")
    d.cancel()
    d.client.ack(1)
    d.server.method("basic.cancel", consumer_tag="second", no_wait=True)
    d.client.ack(4)
    d.client.ack(3, multiple=True)
    d.goodbye()


@reported("other servers than RabbitMQ accept it for the deliveries before")
def ack_that_covers_a_delivery_that_needs_none(d: Dialogue091) -> None:
    d.product = "LavinMQ"
    consuming(d, 0)
    d.consume("q", consumer_tag="n", no_ack=True)
    d.server.deliver()
    d.server.deliver(consumer_tag="n")
    d.client.ack(2, multiple=True).may_break("B-ACK-NOACK")
    d.goodbye()
