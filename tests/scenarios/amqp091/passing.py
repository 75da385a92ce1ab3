"""Messages on their way through a broker, from one connection to another."""

from __future__ import annotations

from scenarios.amqp091.entities import WORK, another, leave, ready
from scenarios.pairs import legal, pair
from support.dialogue091 import Dialogue091

TEXT = b"an order of three chairs"


def sent(d: Dialogue091, *names: str, body: bytes = TEXT) -> Dialogue091:
    """A client declares a queue and publishes to it; the other one that will consume from it."""
    ready(d)
    d.declare("work", **WORK)
    for name in names:
        d.client.publish(body, routing_key="work", message_id=name, type="order")
    return another(d)


@pair("B-CONTENT-INTACT")
def another_body(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    body = b"an order of four chairs" if d.wrong else TEXT
    said = reader.server.deliver(body, routing_key="work", message_id="m-1", type="order")
    if d.wrong:
        said.may_break("B-CONTENT-INTACT")
    reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("B-PROPS-INTACT")
def another_property(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    kind = "offer" if d.wrong else "order"
    said = reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type=kind)
    if d.wrong:
        said.may_break("B-PROPS-INTACT")
    reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("B-DELIVER-META")
def another_routing_key(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.client.get("work")
    key = "q.work" if d.wrong else "work"
    said = reader.server.get_ok(TEXT, routing_key=key, message_id="m-1", type="order")
    if d.wrong:
        said.may_break("B-DELIVER-META")
    reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("C-OPEN-VHOST-SEPARATION")
def out_of_another_virtual_host(d: Dialogue091) -> None:
    ready(d)
    d.client.publish(TEXT, routing_key="work", message_id="m-1")
    leave(d)
    reader = d.again()
    reader.opened(virtual_host="test")
    reader.channel()
    reader.consume("work")
    said = reader.server.deliver(TEXT, routing_key="work", message_id="m-1" if d.wrong else "m-2")
    if d.wrong:
        said.may_break("C-OPEN-VHOST-SEPARATION")
    reader.client.ack()
    leave(reader)


@pair("B-ORDER")
def out_of_order(d: Dialogue091) -> None:
    reader = sent(d, "m-1", "m-2")
    reader.consume("work")
    names = ("m-2", "m-1") if d.wrong else ("m-1", "m-2")
    reader.server.deliver(TEXT, routing_key="work", message_id=names[0], type="order")
    said = reader.server.deliver(TEXT, routing_key="work", message_id=names[1], type="order")
    if d.wrong:
        said.may_break("B-ORDER")
    reader.client.ack(2, multiple=True)
    leave(reader)
    d.goodbye()


@pair("B-NOLOCAL")
def delivered_to_its_publisher(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.consume("work", no_local=d.wrong)
    d.client.publish(TEXT, routing_key="work")
    said = d.server.deliver(TEXT, routing_key="work")
    if d.wrong:
        said.may_break("B-NOLOCAL")
    d.client.ack()
    d.goodbye()


@pair("TX-DEFER")
def delivered_before_its_commit(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.transaction()
    d.client.publish(TEXT, routing_key="work", message_id="m-1")
    if d.wrong:
        d.rollback()
    else:
        d.commit()
    reader = another(d)
    reader.consume("work")
    said = reader.server.deliver(TEXT, routing_key="work", message_id="m-1")
    if d.wrong:
        said.may_break("TX-DEFER")
    reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("B-DELIVER-ONE-CLIENT")
def delivered_to_two(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    if not d.wrong:
        reader.client.nack(requeue=True)
    second = another(reader, "10.0.0.1:51036")
    second.consume("work")
    said = second.server.deliver(
        TEXT, routing_key="work", message_id="m-1", type="order", redelivered=not d.wrong
    )
    if d.wrong:
        said.may_break("B-DELIVER-ONE-CLIENT")
    second.client.ack()
    leave(second)
    leave(reader)
    d.goodbye()


def twice(d: Dialogue091, reader: Dialogue091, rule: str) -> None:
    reader.consume("work", no_ack=True)
    reader.server.deliver(TEXT, exchange="amq.topic", routing_key="a.b", message_id="m-1")
    if d.wrong:
        said = reader.server.deliver(TEXT, exchange="amq.topic", routing_key="a.b", message_id="m-1")
        said.may_break(rule)
    leave(reader)
    d.goodbye()


@pair("Q-BIND-UNIQUE")
def put_on_a_queue_twice(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    for key in ("a.*", "*.b"):
        d.bind("work", "amq.topic", key)
    d.client.publish(TEXT, exchange="amq.topic", routing_key="a.b", message_id="m-1")
    twice(d, another(d), "Q-BIND-UNIQUE")


@pair("X-BIND-UNIQUE")
def reached_an_exchange_twice(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.declare_exchange("all", "fanout", **WORK)
    d.bind("work", "all", "")
    for key in ("a.*", "*.b"):
        d.ask("exchange.bind", destination="all", source="amq.topic", routing_key=key)
    d.client.publish(TEXT, exchange="amq.topic", routing_key="a.b", message_id="m-1")
    twice(d, another(d), "X-BIND-UNIQUE")


@pair("B-REDELIV-SIGNAL")
def not_said_to_come_again(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    leave(reader)
    second = another(reader, "10.0.0.1:51036")
    second.client.get("work")
    said = second.server.get_ok(
        TEXT, routing_key="work", message_id="m-1", type="order", redelivered=not d.wrong
    )
    if d.wrong:
        said.may_break("B-REDELIV-SIGNAL")
    second.client.ack()
    leave(second)
    d.goodbye()


@pair("B-RECOVER-FLAG")
def recovered_and_not_said(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    reader.ask("basic.recover", requeue=True)
    said = reader.server.deliver(
        TEXT, routing_key="work", message_id="m-1", type="order", redelivered=not d.wrong
    )
    if d.wrong:
        said.may_break("B-RECOVER-FLAG")
    reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("B-RECOVER-ASYNC-FLAG", "B-RECOVER-ASYNC-OLD")
def recovered_async_and_not_said(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    if d.wrong:
        reader.client.method("basic.recover-async", requeue=True).breaks("B-RECOVER-ASYNC-OLD")
    else:
        reader.ask("basic.recover", requeue=True)
    said = reader.server.deliver(
        TEXT, routing_key="work", message_id="m-1", type="order", redelivered=not d.wrong
    )
    if d.wrong:
        said.may_break("B-RECOVER-ASYNC-FLAG")
    reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("B-REDELIV-LIMIT")
def again_and_again(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    for number in range(21 if d.wrong else 5):
        reader.client.get("work")
        said = reader.server.get_ok(
            TEXT, routing_key="work", message_id="m-1", type="order", redelivered=number > 0
        )
        reader.closed()
        reader.channel()
    if d.wrong:
        said.may_break("B-REDELIV-LIMIT")
    leave(reader)
    d.goodbye()


@pair("B-REJECT-SAMECLIENT")
def requeued_to_the_same(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    reader.client.reject(requeue=d.wrong)
    if d.wrong:
        said = reader.server.deliver(
            TEXT, routing_key="work", message_id="m-1", type="order", redelivered=True
        )
        said.may_break("B-REJECT-SAMECLIENT")
        reader.client.ack()
    leave(reader)
    d.goodbye()


@pair("TX-ROLLBACK-QUIET")
def delivered_again_after_rollback(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.transaction()
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    reader.client.ack()
    reader.rollback()
    if d.wrong:
        said = reader.server.deliver(
            TEXT, routing_key="work", message_id="m-1", type="order", redelivered=True
        )
        said.may_break("TX-ROLLBACK-QUIET")
    reader.client.ack(1)
    reader.commit()
    leave(reader)
    d.goodbye()


@pair("Q-PURGE-UNACKED")
def purged_unsettled(d: Dialogue091) -> None:
    reader = sent(d, "m-1")
    reader.consume("work")
    reader.server.deliver(TEXT, routing_key="work", message_id="m-1", type="order")
    reader.wait(seconds=5)
    d.ask("queue.purge", queue="work", answer={"message_count": 0})
    d.wait(seconds=5)
    reader.client.ack()
    if d.wrong:
        text = "PRECONDITION_FAILED - unknown delivery tag 1"
        reader.server.close_channel(406, text, "basic.ack").may_break("Q-PURGE-UNACKED")
        reader.client.channel_close_ok()
    leave(reader)
    d.goodbye()


@legal("what brokers change lawfully, and two messages that look the same")
def changed_lawfully(d: Dialogue091) -> None:
    reader = sent(d)
    d.client.publish(
        TEXT, routing_key="work", headers={"BCC": ("A", ["other"]), "n": ("I", 1)}, message_id="m-1"
    )
    for _ in range(2):
        d.client.publish(b"the same words once more", routing_key="work")
    d.wait(seconds=5)
    reader.consume("work", no_ack=True)
    reader.server.deliver(
        TEXT, routing_key="work", headers={"x-received": "now", "n": ("I", 1)}, message_id="m-1"
    )
    for _ in range(2):
        reader.server.deliver(b"the same words once more", routing_key="work")
    leave(reader)
    d.goodbye()


@legal("dead-lettered messages come by another way and in another order")
def dead_lettered(d: Dialogue091) -> None:
    reader = sent(d, "m-1", "m-2")
    reader.consume("dead", no_ack=True)
    for name in ("m-2", "m-1"):
        reader.server.deliver(
            TEXT,
            exchange="dlx",
            routing_key="dead",
            message_id=name,
            type="order",
            headers={"x-first-death-reason": "expired"},
        )
    leave(reader)
    d.goodbye()
