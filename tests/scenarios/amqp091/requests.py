"""Requests of AMQP 0-9-1 and their answers, and the flow of a channel."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import Dialogue091


@pair("CH-SYNC-UNSOLICITED", cut=without("channel.open"))
def answer_to_nothing(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    if d.wrong:
        d.server.method("queue.bind-ok").breaks("CH-SYNC-UNSOLICITED")
    d.bind("q", "amq.topic")
    d.goodbye()


@reported("a request is answered twice")
def answered_twice(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    d.qos(10)
    d.server.method("basic.qos-ok").breaks("CH-SYNC-UNSOLICITED")
    d.client.flow_ok(True, 2).breaks("CH-SYNC-UNSOLICITED")
    d.goodbye()


@pair("CH-NOWAIT-SILENT", cut=without("channel.open"))
def no_wait_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.bind", queue="q", exchange="amq.topic", routing_key="k", no_wait=d.wrong)
    answered = d.server.method("queue.bind-ok")
    if d.wrong:
        answered.breaks("CH-NOWAIT-SILENT")
    d.goodbye()


@pair("CH-SYNC-ORDER", "CH-SYNC-WAIT", cut=without("channel.open"))
def answers_out_of_turn(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    if d.wrong:
        d.client.method("basic.consume", queue="q", consumer_tag="c")
        d.client.method("basic.qos", prefetch_count=10).breaks("CH-SYNC-WAIT")
        d.server.method("basic.qos-ok").breaks("CH-SYNC-ORDER")
        d.server.method("basic.consume-ok", consumer_tag="c")
    else:
        d.consume("q")
        d.qos(10)
    d.goodbye()


@pair("CH-SYNC-WAIT", cut=without("channel.open"))
def answer_not_waited_for(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("queue.declare", queue="q")
        d.client.method("queue.bind", queue="q", exchange="amq.topic").breaks("CH-SYNC-WAIT")
        d.client.method("basic.qos", prefetch_count=10)
        d.server.method("queue.declare-ok", queue="q")
        d.server.method("queue.bind-ok")
        d.server.method("basic.qos-ok")
    else:
        d.declare("q")
        d.bind("q", "amq.topic")
        d.qos(10)
    d.goodbye()


@pair("CH-SYNC-REPLY", cut=without("channel.open"))
def request_never_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.purge", queue="q")
    if not d.wrong:
        d.server.method("queue.purge-ok", message_count=3)
    d.client.close_channel()
    ended = d.server.channel_close_ok()
    if d.wrong:
        ended.breaks("CH-SYNC-REPLY")
    d.goodbye()


@reported("the answer of a queue comes too late for its channel")
def consume_never_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("basic.consume", queue="q", consumer_tag="c")
    d.client.close_channel()
    d.server.channel_close_ok().may_break("CH-SYNC-REPLY")
    d.channel(1)
    d.transaction()
    d.client.method("tx.commit")
    d.client.close_channel()
    d.server.channel_close_ok().may_break("CH-SYNC-REPLY")
    d.goodbye()


@legal("publishes on their way when a server closes a channel that it let go again")
def flow_behind_the_close(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.server.flow(False)
    d.client.flow_ok(False)
    d.server.flow(True)
    d.server.close_channel(406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out")
    d.client.flow_ok(True)
    d.client.publish()
    d.client.channel_close_ok()
    d.goodbye()


@legal("a request on its way when the server closes the channel needs no answer")
def request_discarded(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.server.close_channel(403, "ACCESS_REFUSED - access to exchange 'gone' refused", "basic.publish")
        d.client.method("queue.declare", queue="q")
    d.client.channel_close_ok()
    d.channel(1)
    d.declare("q")
    d.goodbye()


@reported("basic.recover is answered, and so waited for; basic.recover-async is not")
def recover_waited_for(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.client.method("queue.declare", queue="q")
    d.client.method("basic.recover-async", requeue=True).breaks("B-RECOVER-ASYNC-OLD")
    d.server.method("queue.declare-ok", queue="q")
    d.client.method("queue.declare", queue="q")
    d.client.method("basic.recover", requeue=True).breaks("CH-SYNC-WAIT")
    d.server.method("queue.declare-ok", queue="q")
    d.server.method("basic.recover-ok")
    d.goodbye()


@reported("what a server had to answer when the client's close reached its host; it may answer it")
def answered_behind_the_close(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.client.method("exchange.declare", exchange="x", type="direct")
    d.client.flow(False).breaks("CH-SYNC-WAIT")
    d.client.flow(True)
    d.client.close_channel()
    d.server.method("exchange.declare-ok")
    d.server.flow_ok(False)
    d.server.flow_ok(True)
    d.server.channel_close_ok()
    d.goodbye()


@pair("CH-FLOW-STOP", cut=without("channel.open"))
def publish_on_a_stopped_channel(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.client.publish()
    with d.on_their_way():
        d.server.flow(False)
        d.client.publish()
    d.client.flow_ok(False)
    if d.wrong:
        d.client.publish().breaks("CH-FLOW-STOP")
    d.server.flow(True)
    d.client.publish()
    d.client.flow_ok(True)
    d.client.publish()
    d.goodbye()


@reported("a server delivers on a channel that it has said it stops")
def delivery_on_a_stopped_channel(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.declare()
    d.consume()
    d.client.flow(False)
    d.server.deliver()
    d.server.flow_ok(False)
    d.client.get()
    d.server.get_ok()
    d.server.deliver().breaks("CH-FLOW-STOP")
    d.goodbye()


@pair("CH-FLOW-PROMPT", cut=without("channel.open"))
def flow_not_noticed(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.client.publish()
    d.server.flow(False)
    d.client.publish()
    d.wait(seconds=60 if d.wrong else 1)
    late = d.client.publish()
    if d.wrong:
        late.may_break("CH-FLOW-PROMPT")
    d.client.flow_ok(False)
    d.goodbye()


@pair("CH-FLOW-OK-VALUE", cut=without("channel.open"))
def flow_confirmed_otherwise(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.server.flow(False)
    confirmed = d.client.flow_ok(d.wrong)
    if d.wrong:
        confirmed.breaks("CH-FLOW-OK-VALUE")
    d.server.flow(True)
    d.client.flow_ok(True)
    d.goodbye()
