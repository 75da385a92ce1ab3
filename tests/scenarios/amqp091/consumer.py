"""Consumers of AMQP 0-9-1: how they begin and end, and what they are called."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import CLIENT_CAPABILITIES, Dialogue091

REPLIES = "amq.rabbitmq.reply-to"


def begun(d: Dialogue091) -> None:
    """A channel and a queue."""
    d.opened()
    d.channel(1)
    d.declare("q")


def refused(d: Dialogue091, code: int, cause: str = "basic.consume") -> None:
    """The server closes the channel."""
    d.server.close_channel(code, "PRECONDITION_FAILED", cause)
    d.client.channel_close_ok()


@pair("B-CTAG-UNIQUE", cut=without("basic.consume"))
def consumer_tag_in_use(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    said = d.client.method("basic.consume", queue="q", consumer_tag="c" if d.wrong else "d")
    if d.wrong:
        said.breaks("B-CTAG-UNIQUE")
        d.server.close_connection(530, "NOT_ALLOWED - attempt to reuse consumer tag 'c'", "basic.consume")
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.server.method("basic.consume-ok", consumer_tag="d")
        d.goodbye()


@pair("B-CTAG-CHANNEL", cut=without("basic.consume"))
def cancel_on_another_channel(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.channel(2)
    said, _ = d.cancel("c", channel=2 if d.wrong else 1)
    if d.wrong:
        said.breaks("B-CTAG-CHANNEL")
    d.goodbye()


@pair("B-CANCEL-CTAG", cut=without("basic.consume"))
def cancel_of_nobody(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    said, _ = d.cancel("d" if d.wrong else "c")
    if d.wrong:
        said.breaks("B-CANCEL-CTAG")
    d.goodbye()


@pair("B-CANCEL-CTAG", cut=without("basic.consume"))
def cancel_of_a_consumer_that_was_cancelled(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.cancel()
    if d.wrong:
        said, _ = d.cancel()
        said.breaks("B-CANCEL-CTAG")
    d.goodbye()


@pair("B-CTAG-ECHO", cut=without("basic.consume"))
def consume_ok_with_another_tag(d: Dialogue091) -> None:
    begun(d)
    _, said = d.consume("q", answer={"consumer_tag": "d" if d.wrong else "c"})
    if d.wrong:
        said.breaks("B-CTAG-ECHO")
    d.goodbye()


@pair("B-CTAG-GEN", cut=without("basic.consume"))
def consume_ok_with_a_tag_in_use(d: Dialogue091) -> None:
    begun(d)
    d.consume("q", "amq.ctag-1")
    _, said = d.consume("q", "", answer={"consumer_tag": "amq.ctag-1" if d.wrong else "amq.ctag-2"})
    if d.wrong:
        said.breaks("B-CTAG-GEN")
    d.goodbye()


@pair("B-CTAG-GEN", cut=without("basic.consume"))
def consume_ok_without_a_tag(d: Dialogue091) -> None:
    begun(d)
    _, said = d.consume("q", "", answer={"consumer_tag": "" if d.wrong else "amq.ctag-1"})
    if d.wrong:
        said.breaks("B-CTAG-GEN")
    d.goodbye()


@pair("B-CANCELOK-TAG", cut=without("basic.cancel"))
def cancel_ok_with_another_tag(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.consume("q", "d")
    _, said = d.cancel("c", answer={"consumer_tag": "d" if d.wrong else "c"})
    if d.wrong:
        said.breaks("B-CANCELOK-TAG")
    d.goodbye()


@pair("B-CANCEL-NOTIFY-CAP", cut=without("connection.start-ok"))
def cancel_that_the_client_does_not_take(d: Dialogue091) -> None:
    others = tuple(name for name in CLIENT_CAPABILITIES if name != "consumer_cancel_notify")
    d.opened(start_ok={"capabilities": others if d.wrong else CLIENT_CAPABILITIES})
    d.channel(1)
    d.consume("q")
    said = d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    if d.wrong:
        said.breaks("B-CANCEL-NOTIFY-CAP")
    d.goodbye()


@pair("B-CANCEL-NOTIFY-REPLY", cut=without("notice"))
def cancel_ok_that_nobody_waits_for(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.server.method("basic.cancel", consumer_tag="c", no_wait=d.wrong).called("notice")
    said = d.client.method("basic.cancel-ok", consumer_tag="c")
    if d.wrong:
        said.breaks("B-CANCEL-NOTIFY-REPLY")
    d.goodbye()


@pair("B-CONSUME-QKNOWN", cut=without("channel.open"))
def consume_without_a_queue(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if not d.wrong:
        d.declare("")
    said = d.client.method("basic.consume", consumer_tag="c")
    if d.wrong:
        said.breaks("B-CONSUME-QKNOWN")
        refused(d, 404)
    else:
        d.server.method("basic.consume-ok", consumer_tag="c")
    d.goodbye()


@pair("B-GET-QKNOWN", cut=without("channel.open"))
def get_without_a_queue(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if not d.wrong:
        d.client.method("queue.declare", queue="q", no_wait=True)
    said = d.client.get("")
    if d.wrong:
        said.breaks("B-GET-QKNOWN")
        refused(d, 404, "basic.get")
    else:
        d.server.get_empty()
    d.goodbye()


@pair("B-CONSUME-PRIO", cut=without("connection.start"))
def consumer_priority_that_is_no_integer(d: Dialogue091) -> None:
    begun(d)
    said = d.client.method(
        "basic.consume",
        queue="q",
        consumer_tag="c",
        arguments={"x-priority": "10" if d.wrong else ("I", 10)},
    )
    if d.wrong:
        said.breaks("B-CONSUME-PRIO")
        refused(d, 406)
    else:
        d.server.method("basic.consume-ok", consumer_tag="c")
    d.goodbye()


@pair("B-REPLYTO-NOACK", cut=without("connection.start"))
def replies_that_want_acks(d: Dialogue091) -> None:
    begun(d)
    said = d.client.method("basic.consume", queue=REPLIES, consumer_tag="c", no_ack=not d.wrong)
    if d.wrong:
        said.breaks("B-REPLYTO-NOACK")
        refused(d, 406)
    else:
        d.server.method("basic.consume-ok", consumer_tag="c")
    d.goodbye()


@pair("B-REPLYTO-ONE", cut=without("basic.consume"))
def second_consumer_of_replies(d: Dialogue091) -> None:
    begun(d)
    d.consume(REPLIES, no_ack=True)
    if not d.wrong:
        d.cancel()
    said = d.client.method("basic.consume", queue=REPLIES, consumer_tag="d", no_ack=True)
    if d.wrong:
        said.breaks("B-REPLYTO-ONE")
        refused(d, 406)
    else:
        d.server.method("basic.consume-ok", consumer_tag="d")
    d.goodbye()


@pair("B-CONSUME-EXCL", cut=without("basic.consume"))
def exclusive_consumer_beside_another(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.channel(2)
    if not d.wrong:
        d.cancel()
    said = d.client.method("basic.consume", 2, queue="q", consumer_tag="c", exclusive=True)
    if d.wrong:
        said.may_break("B-CONSUME-EXCL")
        d.server.close_channel(403, "ACCESS_REFUSED - queue 'q' in use", "basic.consume", channel=2)
        d.client.channel_close_ok(2)
    else:
        d.server.method("basic.consume-ok", 2, consumer_tag="c")
    d.goodbye()


@pair("B-CONSUME-EXCL-HELD", cut=without("basic.consume"))
def consumer_beside_an_exclusive_one(d: Dialogue091) -> None:
    begun(d)
    d.consume("q", exclusive=d.wrong)
    d.channel(2)
    said = d.ask("basic.consume", 2, queue="q", consumer_tag="d")[1]
    if d.wrong:
        said.may_break("B-CONSUME-EXCL-HELD")
    d.goodbye()


@pair("B-RECOVER-REQUEUE0", cut=without("connection.start"))
def recover_without_requeue(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.server.deliver()
    said = d.client.method("basic.recover", requeue=not d.wrong)
    if d.wrong:
        said.breaks("B-RECOVER-REQUEUE0")
        d.server.close_connection(540, "NOT_IMPLEMENTED - requeue=false", "basic.recover")
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.server.method("basic.recover-ok")
        d.goodbye()


@legal("cancels that cross the server's own")
def cancels_that_cross(d: Dialogue091) -> None:
    begun(d)
    d.consume("q")
    d.consume("q", "d")
    with d.on_their_way():
        d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
        d.client.method("basic.cancel", consumer_tag="c")
    d.server.method("basic.cancel-ok", consumer_tag="c")
    d.server.method("basic.cancel", consumer_tag="d", no_wait=True)
    d.cancel("d")
    d.goodbye()


@reported("consumers without a name that nobody waits for, and several that wait")
def consumers_without_a_name(d: Dialogue091) -> None:
    begun(d)
    d.client.method("basic.consume", queue="q", no_wait=True)
    d.client.method("basic.consume", queue="q")
    d.client.method("basic.consume", queue="q", consumer_tag="named").breaks("CH-SYNC-WAIT")
    d.client.method("basic.consume", queue="q")
    d.server.deliver(consumer_tag="amq.ctag-1")
    d.server.method("basic.consume-ok", consumer_tag="amq.ctag-2")
    d.server.deliver(consumer_tag="amq.ctag-2")
    d.server.method("basic.consume-ok", consumer_tag="named")
    d.server.method("basic.consume-ok", consumer_tag="amq.ctag-3")
    d.server.deliver(consumer_tag="amq.ctag-3")
    d.client.ack(3, multiple=True)
    d.cancel("amq.ctag-1")
    d.cancel("amq.ctag-2")
    d.cancel("amq.ctag-3")
    d.cancel("named")
    d.consume("q", "named")
    d.goodbye()


@reported("a queue that the server is to name, consumed from at once")
def consume_from_a_queue_without_a_name(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", exclusive=True)
    d.client.method("basic.consume", consumer_tag="c").breaks("CH-SYNC-WAIT")
    d.client.get("")
    d.server.method("queue.declare-ok", queue="amq.gen-1")
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.server.get_empty()
    d.goodbye()


@reported("nothing shows the client that its consumer ended")
def consumer_tag_of_a_queue_that_was_deleted(d: Dialogue091) -> None:
    d.opened(start_ok={"capabilities": None})
    d.channel(1)
    d.channel(2)
    d.declare("q")
    d.consume("q")
    d.ask("queue.delete", 2, queue="q")
    d.declare("q")
    d.client.method("basic.consume", queue="q", consumer_tag="c").may_break("B-CTAG-UNIQUE")
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.goodbye()
