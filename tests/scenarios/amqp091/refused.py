"""What servers refuse of contents, and what they do not."""

from __future__ import annotations

from scenarios.pairs import pair, told, without
from support.dialogue091 import Dialogue091


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


@told("of two exchanges the close names the one that the last message was not published to")
def publish_behind_one_to_an_exchange_that_is_not_there(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    d.client.publish(exchange="amq.direct")
    d.server.close_channel(404, "NOT_FOUND - no exchange 'gone' in vhost '/'", "basic.publish")
    d.client.channel_close_ok()
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
