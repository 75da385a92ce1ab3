"""What servers deliver: tags, consumers and prefetch windows of AMQP 0-9-1."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import Dialogue091


def consuming(d: Dialogue091, **arguments: Any) -> None:
    """A channel with a consumer."""
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", **arguments)


@pair("B-DTAG-NONZERO", cut=without("fault"))
def delivery_with_tag_zero(d: Dialogue091) -> None:
    consuming(d)
    said = d.server.deliver(delivery_tag=0 if d.wrong else 1).called("fault")
    if d.wrong:
        said.breaks("B-DTAG-NONZERO")
    d.goodbye()


@pair("B-DTAG-INCREASING", cut=without("delivery"))
def delivery_with_a_tag_again(d: Dialogue091) -> None:
    consuming(d)
    d.server.deliver()
    d.server.deliver().called("delivery")
    d.client.get("q")
    said = d.server.get_ok(delivery_tag=2 if d.wrong else 3)
    if d.wrong:
        said.breaks("B-DTAG-INCREASING")
    d.goodbye()


@pair("B-DELIVER-CTAG", cut=without("basic.consume"))
def delivery_to_a_consumer_that_is_none(d: Dialogue091) -> None:
    consuming(d)
    said = d.server.deliver(consumer_tag="other" if d.wrong else "c")
    if d.wrong:
        said.breaks("B-DELIVER-CTAG")
    d.goodbye()


@pair("B-DELIVER-CTAG", cut=without("channel.open"))
def delivery_before_the_consume_can_have_come(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    if d.wrong:
        with d.on_their_way():
            d.server.deliver().breaks("B-DELIVER-CTAG")
            d.client.method("basic.consume", queue="q", consumer_tag="c").called("basic.consume")
        d.server.method("basic.consume-ok", consumer_tag="c")
    else:
        d.consume("q")
    d.server.deliver()
    d.goodbye()


@pair("B-DELIVER-EARLY", cut=without("basic.consume"))
def delivery_before_consume_ok(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.client.method("basic.consume", queue="q", consumer_tag="c", no_wait=not d.wrong).called("basic.consume")
    said = d.server.deliver()
    if d.wrong:
        said.breaks("B-DELIVER-EARLY")
        d.server.method("basic.consume-ok", consumer_tag="c")
    d.goodbye()


@pair("B-DELIVER-EARLY", cut=without("basic.consume"))
def delivery_before_the_consumer_has_a_name(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.client.method("basic.consume", queue="q", no_wait=not d.wrong).called("basic.consume")
    said = d.server.deliver(consumer_tag="amq.ctag-1")
    if d.wrong:
        said.breaks("B-DELIVER-EARLY")
        d.server.method("basic.consume-ok", consumer_tag="amq.ctag-1")
    d.client.ack()
    d.goodbye()


@pair("B-DELIVER-LATE", cut=without("basic.cancel"))
def delivery_after_cancel_ok(d: Dialogue091) -> None:
    consuming(d)
    d.server.deliver()
    with d.on_their_way():
        d.client.method("basic.cancel", consumer_tag="c", no_wait=not d.wrong).called("basic.cancel")
        d.server.deliver()
    if d.wrong:
        d.server.method("basic.cancel-ok", consumer_tag="c")
        d.server.deliver().breaks("B-DELIVER-LATE")
    else:
        # Nothing shows when the server has heard it.
        d.server.deliver()
    d.goodbye()


@pair("B-CANCEL-NOTIFY-LAST", cut=without("notice"))
def delivery_after_the_server_has_cancelled(d: Dialogue091) -> None:
    consuming(d)
    d.server.deliver()
    if d.wrong:
        d.server.method("basic.cancel", consumer_tag="c", no_wait=True).called("notice")
        d.server.deliver().breaks("B-CANCEL-NOTIFY-LAST")
    else:
        d.server.deliver()
        d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    d.goodbye()


@pair("B-CANCEL-NOTIFY-LAST", cut=without("notice"))
def delivery_after_the_newest_server_has_cancelled(d: Dialogue091) -> None:
    d.opened(start={"properties": {"version": "4.3.0"}})
    d.channel(1)
    d.consume("q")
    d.server.deliver()
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True).called("notice")
    if d.wrong:
        d.server.deliver().may_break("B-CANCEL-NOTIFY-LAST")
    d.goodbye()


@pair("B-QOS-COUNT", cut=without("delivery"))
def more_than_a_consumer_takes(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.qos(2)
    d.consume("q")
    d.consume("q", "d")
    d.server.deliver()
    d.server.deliver(consumer_tag="d")
    d.server.deliver().called("delivery")
    d.client.ack(1)
    d.server.deliver()
    if d.wrong:
        d.server.deliver().breaks("B-QOS-COUNT")
    d.server.deliver(consumer_tag="d")
    d.client.ack(5, multiple=True)
    d.server.deliver()
    d.goodbye()


@pair("B-QOS-COUNT", cut=without("delivery"))
def more_than_the_channel_takes(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.qos(3, global_=True)
    d.consume("q")
    d.consume("q", "d")
    d.server.deliver()
    d.server.deliver(consumer_tag="d").called("delivery")
    d.server.deliver()
    d.client.get("q")
    d.server.get_ok()
    if d.wrong:
        d.server.deliver(consumer_tag="d").breaks("B-QOS-COUNT")
    d.client.ack(2, multiple=True)
    d.server.deliver(consumer_tag="d")
    d.goodbye()


@legal("a window that was lowered: what RabbitMQ's queues had handed out still comes")
def window_that_was_lowered(d: Dialogue091) -> None:
    consuming(d)
    d.qos(3, global_=True)
    d.server.deliver()
    d.server.deliver()
    with d.on_their_way():
        d.client.method("basic.qos", prefetch_count=1, global_=True)
        d.server.deliver()
    d.server.method("basic.qos-ok")
    d.server.deliver()
    d.client.ack(4, multiple=True)
    d.server.deliver()
    d.goodbye()


@pair("B-QOS-COUNT", cut=without("delivery"))
def more_than_both_senses_of_global_allow(d: Dialogue091) -> None:
    d.product = "Qpid"
    d.opened()
    d.channel(1)
    d.qos(1)
    d.consume("q")
    d.consume("q", "d")
    d.server.deliver().called("delivery")
    d.server.deliver(consumer_tag="d")
    if d.wrong:
        d.server.deliver().breaks("B-QOS-COUNT")
    d.goodbye()


@pair("B-QOS-COUNT", cut=without("delivery"))
def more_than_a_channel_of_the_newest_server_takes(d: Dialogue091) -> None:
    """It can be determined to take `global` for each consumer."""
    d.opened(start={"properties": {"version": "4.1.0"}})
    d.channel(1)
    d.qos(1, global_=True)
    d.consume("q")
    d.consume("q", "d")
    d.server.deliver().called("delivery")
    if d.wrong:
        d.server.deliver(consumer_tag="d").may_break("B-QOS-COUNT")
    d.goodbye()


@pair("B-QOS-SIZE", cut=without("delivery"))
def more_octets_than_the_window(d: Dialogue091) -> None:
    d.product = "Qpid"
    d.opened()
    d.channel(1)
    d.qos(0, prefetch_size=1000)
    d.consume("q")
    d.server.deliver(b"x" * 600).called("delivery")
    d.server.deliver(b"x" * 400)
    if d.wrong:
        d.server.deliver(b"x").breaks("B-QOS-SIZE")
    d.client.ack(3 if d.wrong else 2, multiple=True)
    # With nothing outstanding any message may come.
    d.server.deliver(b"x" * 1001)
    d.goodbye()


@legal("prefetch: what does not count, and what makes room")
def prefetch_that_is_kept(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.qos(1)
    d.consume("q")
    d.consume("q", "free", no_ack=True)
    d.server.deliver()
    for _ in range(3):
        d.server.deliver(consumer_tag="free")
        d.client.get("q")
        d.server.get_ok()
    d.client.reject(1)
    d.server.deliver(redelivered=True)
    d.client.nack(0, multiple=True)
    d.server.deliver(redelivered=True)
    d.ask("basic.recover", requeue=True)
    d.server.deliver(redelivered=True)
    d.qos(2)
    d.consume("q", "wider")
    d.server.deliver(consumer_tag="wider")
    d.server.deliver(consumer_tag="wider")
    d.cancel()
    d.consume("q")
    # The new consumer has a window of its own.
    d.server.deliver()
    d.server.deliver()
    d.goodbye()


@legal("a consumer of a stream gets whole chunks")
def prefetch_of_a_stream(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.qos(1)
    d.consume("stream", arguments={"x-stream-offset": "first"})
    for offset in range(3):
        d.server.deliver(headers={"x-stream-offset": ("l", offset)})
    d.goodbye()


@reported("a tag is used again while deliveries of its last consumer are on their way")
def tag_of_a_consumer_used_again(d: Dialogue091) -> None:
    consuming(d)
    with d.on_their_way():
        d.server.deliver()
        d.client.method("basic.cancel", consumer_tag="c")
        d.client.method("basic.consume", queue="other", consumer_tag="c").breaks("CH-SYNC-WAIT")
        d.server.deliver()
    d.server.deliver()
    d.server.method("basic.cancel-ok", consumer_tag="c")
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.server.deliver()
    with d.on_their_way():
        d.server.deliver()
        d.client.method("basic.cancel", consumer_tag="c", no_wait=True)
        d.client.method("basic.consume", queue="other", consumer_tag="c", no_wait=False)
    d.server.deliver()
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.server.deliver()
    d.cancel()
    d.goodbye()


@legal("deliveries on their way while the client cancels, deletes the queue, closes the channel")
def deliveries_that_cross(d: Dialogue091) -> None:
    consuming(d)
    d.declare("p")
    d.consume("p", "d")
    with d.on_their_way():
        d.client.method("queue.delete", queue="q")
        d.server.deliver()
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    d.server.method("queue.delete-ok", message_count=1)
    d.server.deliver(consumer_tag="d")
    with d.on_their_way():
        d.client.close_channel()
        d.server.deliver(consumer_tag="d")
    d.server.channel_close_ok()
    d.goodbye()


@legal("replies that go straight to the client all have the tag that comes next")
def direct_replies(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("amq.rabbitmq.reply-to", "r", no_ack=True)
    d.consume("q")
    d.server.deliver(consumer_tag="r", delivery_tag=1)
    d.server.deliver(consumer_tag="r", delivery_tag=1)
    d.server.deliver(delivery_tag=1)
    d.client.ack(1)
    d.server.deliver(consumer_tag="r", delivery_tag=2)
    d.server.deliver(delivery_tag=2)
    d.client.ack(2)
    d.goodbye()


@legal("deliveries that a server sends before it answers basic.qos")
def deliveries_before_qos_ok(d: Dialogue091) -> None:
    consuming(d)
    d.server.deliver()
    d.client.method("basic.qos", prefetch_count=1, global_=True)
    d.server.deliver()
    d.server.deliver()
    d.server.method("basic.qos-ok")
    d.client.ack(3, multiple=True)
    d.server.deliver()
    d.goodbye()


@reported(
    "what was delivered before basic.recover-async was done goes back, too; when that was, nothing tells"
)
def deliveries_before_recover_async(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.qos(2)
    d.consume("q")
    d.server.deliver()
    d.server.deliver()
    d.client.ack(1)
    d.client.method("basic.recover-async", requeue=True).breaks("B-RECOVER-ASYNC-OLD")
    d.server.deliver()
    d.server.deliver(redelivered=True)
    d.server.deliver(redelivered=True)
    d.client.ack(5)
    d.goodbye()


@reported("what is answered behind basic.recover-async shows that it was done")
def deliveries_after_recover_async(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.qos(2)
    d.consume("q")
    d.server.deliver()
    d.client.method("basic.recover-async", requeue=True).breaks("B-RECOVER-ASYNC-OLD")
    d.declare("other")
    d.server.deliver(redelivered=True)
    d.server.deliver()
    d.server.deliver().breaks("B-QOS-COUNT")
    d.goodbye()


@legal("what was delivered before basic.recover was done goes back, too")
def deliveries_before_recover_ok(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.qos(2)
    d.consume("q")
    d.server.deliver()
    d.client.method("basic.recover", requeue=True)
    d.server.deliver()
    d.server.method("basic.recover-ok")
    d.server.deliver(redelivered=True)
    d.server.deliver(redelivered=True)
    d.goodbye()
