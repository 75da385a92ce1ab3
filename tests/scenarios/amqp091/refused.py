"""What servers refuse of contents, and what they do not."""

from __future__ import annotations

from scenarios.pairs import pair, reported, without
from support.dialogue091 import Dialogue091


def no_exchange(d: Dialogue091) -> None:
    d.server.close_channel(404, "NOT_FOUND - no exchange 'gone' in vhost '/'", "basic.publish")
    d.client.channel_close_ok()


@pair("B-PUBLISH-XEXIST", cut=without("close"))
def publish_to_an_exchange_that_is_not_there(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish()
    said = d.client.publish(exchange="gone" if d.wrong else "amq.direct")
    if d.wrong:
        said.may_break("B-PUBLISH-XEXIST")
        text = "NOT_FOUND - no exchange 'gone' in vhost '/'"
        d.server.close_channel(404, text, "basic.publish").called("close")
        d.client.channel_close_ok()
    d.goodbye()


@reported("of two exchanges the close names the one that the last message was not published to")
def publish_behind_one_to_an_exchange_that_is_not_there(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone").may_break("B-PUBLISH-XEXIST")
    d.client.publish(exchange="amq.direct")
    no_exchange(d)
    d.goodbye()


@reported("the close names an exchange that no message was published to")
def no_such_exchange_published_to(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="amq.direct")
    no_exchange(d)
    d.goodbye()


@reported("of several publishes the first may be refused that the server has not shown to have taken")
def publishes_behind_each_other_to_an_exchange_that_is_not_there(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.ask("confirm.select")
    d.client.publish(exchange="gone")
    d.server.method("basic.ack", delivery_tag=1, multiple=False)
    d.client.publish(exchange="gone")
    d.declare("work")
    d.client.publish(exchange="gone").may_break("B-PUBLISH-XEXIST")
    d.client.publish(exchange="amq.direct")
    d.client.publish(exchange="gone")
    no_exchange(d)
    d.goodbye()


@reported("a publish that is long past would have been refused then")
def publishes_for_long_to_an_exchange_that_goes(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    d.wait(seconds=20)
    d.client.publish(exchange="gone").may_break("B-PUBLISH-XEXIST")
    d.client.publish(exchange="gone")
    no_exchange(d)
    d.goodbye()


@reported("the refusal crosses the client's own close of the channel")
def publish_to_no_exchange_and_close(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone").may_break("B-PUBLISH-XEXIST")
    d.client.close_channel()
    no_exchange(d)
    d.server.channel_close_ok()
    d.goodbye()


@pair("B-PUBLISH-DEFAULT-X", cut=without("publish"))
def default_exchange_that_is_not_there(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish().called("publish")
    if d.wrong:
        text = "NOT_FOUND - no exchange ''"
        d.server.close_channel(404, text, "basic.publish").breaks("B-PUBLISH-DEFAULT-X")
        d.client.channel_close_ok()
    d.goodbye()


@pair("B-IMMEDIATE", cut=without("publish"))
def immediate_that_is_refused(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(immediate=d.wrong).called("publish")
    if d.wrong:
        said = d.server.close_connection(540, "NOT_IMPLEMENTED - immediate=true", "basic.publish")
        said.breaks("B-IMMEDIATE")
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.goodbye()


@pair("B-ACK-TX-IMMEDIATE", "B-ACK-KNOWN", cut=without("tx.select"))
def bad_ack_that_is_refused_with_the_commit(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("q")
    d.server.deliver()
    d.transaction()
    said = d.client.ack(7 if d.wrong else 1)
    d.client.method("tx.commit")
    if d.wrong:
        said.breaks("B-ACK-KNOWN")
        text = "PRECONDITION_FAILED - unknown delivery tag 7"
        d.server.close_channel(406, text, "tx.commit").breaks("B-ACK-TX-IMMEDIATE")
        d.client.channel_close_ok()
    else:
        d.server.method("tx.commit-ok")
    d.goodbye()


@pair("B-ACK-VALIDATE", "B-ACK-KNOWN", cut=without("tx.select"))
def bad_ack_that_is_committed(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("q")
    d.server.deliver()
    d.transaction()
    said = d.client.ack(7 if d.wrong else 1)
    _, done = d.commit()
    if d.wrong:
        said.breaks("B-ACK-KNOWN")
        done.breaks("B-ACK-VALIDATE")
    d.goodbye()


@pair("B-RECOVER-REPLY", cut=without("channel.open"))
def recover_that_is_not_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("basic.recover", requeue=True)
    if not d.wrong:
        d.server.method("basic.recover-ok")
    d.client.close_channel()
    said = d.server.channel_close_ok()
    if d.wrong:
        said.breaks("B-RECOVER-REPLY")
    d.goodbye()
