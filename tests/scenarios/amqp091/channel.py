"""Channels of AMQP 0-9-1: opened, used and closed at the right time."""

from __future__ import annotations

from scenarios.pairs import SAME, legal, pair, reported, without
from support.dialogue091 import Dialogue091

NO_EXCHANGE = (403, "ACCESS_REFUSED - access to exchange 'gone' refused", "basic.publish")


def hung_up(d: Dialogue091, code: int, text: str, cause: str) -> None:
    """The broker gives up the connection."""
    d.server.close_connection(code, text, cause)
    d.client.connection_close_ok()
    d.tcp.goodbye()


@pair("CH-OPEN-FIRST")
def method_on_a_channel_never_opened(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("queue.declare", 2, queue="q").breaks("CH-OPEN-FIRST")
        hung_up(d, 504, "CHANNEL_ERROR - expected 'channel.open'", "queue.declare")
        return
    d.declare("q")
    d.goodbye()


@pair("CH-OPEN-FIRST", cut=without("channel.open"))
def delivery_before_the_channel_is_open(d: Dialogue091) -> None:
    d.opened()
    d.client.open_channel().called("channel.open")
    if d.wrong:
        d.server.method("basic.cancel", consumer_tag="c", no_wait=True).breaks("CH-OPEN-FIRST")
    d.server.channel_open_ok()
    d.declare("q")
    d.goodbye()


@reported("a server says something on a channel that nobody opened")
def delivery_on_no_channel(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.server.deliver(channel=7).breaks("CH-OPEN-FIRST")
    d.goodbye()


@pair("CH-OPEN-STATE", cut=without("channel.open"))
def channel_opened_twice(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    if d.wrong:
        d.client.open_channel().breaks("CH-OPEN-STATE")
        hung_up(d, 504, "CHANNEL_ERROR - second 'channel.open' seen", "channel.open")
        return
    d.client.open_channel(2)
    d.server.channel_open_ok(2)
    d.goodbye()


@pair("CH-REUSE", cut=without("channel.open"))
def number_reused_before_close_ok(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.close_channel()
    if d.wrong:
        d.client.open_channel().breaks("CH-REUSE")
        d.server.channel_close_ok()
        hung_up(d, 504, "CHANNEL_ERROR - second 'channel.open' seen", "channel.open")
        return
    d.server.channel_close_ok()
    d.channel(1)
    d.goodbye()


@pair("CH-REUSE", cut=without("channel.open"))
def number_reused_without_answering_the_close(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    d.server.close_channel(*NO_EXCHANGE)
    if not d.wrong:
        d.client.channel_close_ok()
    opened = d.client.open_channel()
    if d.wrong:
        opened.breaks("CH-REUSE")
        hung_up(d, 504, "CHANNEL_ERROR - second 'channel.open' seen", "channel.open")
        return
    d.server.channel_open_ok()
    d.goodbye()


@legal("a close that crosses another, and the number taken again once it is answered")
def number_reused_after_crossing_closes(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.client.close_channel()
        d.server.close_channel(403, "ACCESS_REFUSED", "basic.publish")
    d.client.channel_close_ok()
    d.server.channel_close_ok()
    d.channel(1)
    d.declare("q")
    d.goodbye()


@pair("CH-NUM-MAX", cut=without("connection.tune-ok"))
def channel_above_the_limit(d: Dialogue091) -> None:
    d.opened(tune={"channel_max": 8})
    d.channel(1)
    number = 9 if d.wrong else 8
    opened = d.client.open_channel(number)
    if d.wrong:
        opened.breaks("CH-NUM-MAX")
    d.server.channel_open_ok(number)
    d.goodbye()


@pair("CH-COUNT-MAX", cut=without("connection.tune-ok"))
def channels_more_than_the_limit(d: Dialogue091) -> None:
    d.opened(tune={"channel_max": 3})
    d.channel(1, 2, 3)
    if d.wrong:
        d.client.open_channel(4).breaks("CH-COUNT-MAX")
        hung_up(d, 530, "NOT_ALLOWED - number of channels opened (3) has reached the limit", "channel.open")
        return
    d.closed(2)
    d.channel(2)
    d.goodbye()


@pair("CH-CLOSE-SILENT", cut=without("channel.open"))
def publish_after_own_close(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if not d.wrong:
        d.client.publish()
    d.client.close_channel()
    if d.wrong:
        d.client.publish().breaks("CH-CLOSE-SILENT")
    d.server.channel_close_ok()
    d.goodbye()


@reported("a server delivers on a channel that it has closed itself")
def delivery_after_own_close(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare()
    d.consume()
    with d.on_their_way():
        d.server.close_channel(406, "PRECONDITION_FAILED - delivery acknowledgement timed out")
        d.server.deliver().breaks("CH-CLOSE-SILENT")
    d.client.channel_close_ok()
    d.goodbye()


@pair("CH-CLOSE-DISCARD", cut=without("channel.open"))
def request_answered_after_own_close(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.server.close_channel(*NO_EXCHANGE)
        d.client.method("queue.declare", queue="q")
    d.client.channel_close_ok()
    if d.wrong:
        d.server.method("queue.declare-ok", queue="q").breaks("CH-CLOSE-DISCARD")
    d.goodbye()


@pair("CH-CLOSEOK-LAST", cut=without("channel.open"))
def publish_after_close_ok(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    d.server.close_channel(*NO_EXCHANGE)
    d.client.channel_close_ok()
    if d.wrong:
        d.client.publish().breaks("CH-CLOSEOK-LAST")
        hung_up(d, 504, "CHANNEL_ERROR - expected 'channel.open'", "basic.publish")
        return
    d.channel(1)
    d.client.publish()
    d.goodbye()


@reported("a server says something after it has answered the client's close")
def cancel_after_close_ok(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare()
    d.consume()
    d.closed()
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True).breaks("CH-CLOSEOK-LAST")
    d.goodbye()


@pair("CH-CLOSEOK-UNSOLICITED", cut=without("channel.open"))
def close_ok_of_nothing(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    if d.wrong:
        d.client.channel_close_ok().breaks("CH-CLOSEOK-UNSOLICITED")
    else:
        d.server.close_channel(406, "PRECONDITION_FAILED - delivery acknowledgement timed out")
        d.client.channel_close_ok()
    d.goodbye()


@reported("a close is answered twice")
def close_ok_twice(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.closed()
    d.server.channel_close_ok().breaks("CH-CLOSEOK-UNSOLICITED")
    d.goodbye()


@pair("CH-CLOSE-SOFT-CODE", cut=without("channel.open"), then=SAME)
def channel_closed_with_a_connection_error(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    code, text = (505, "UNEXPECTED_FRAME") if d.wrong else (406, "PRECONDITION_FAILED - timed out")
    closed = d.server.close_channel(code, text)
    if d.wrong:
        closed.breaks("CH-CLOSE-SOFT-CODE")
    d.client.channel_close_ok()
    d.goodbye()


def long_after(d: Dialogue091, rule: str) -> None:
    """The client shows on another channel that it reads on, and a minute later still works; then it ends the
    connection.
    """
    d.server.deliver(channel=2)
    d.client.ack(channel=2)
    d.wait(seconds=60)
    d.client.publish(channel=2)
    end = d.client.close_connection()
    if d.wrong:
        end.may_break(rule)
    d.server.connection_close_ok()
    d.tcp.goodbye()


@pair("CH-CLOSE-REPLY", cut=without("channel.open"))
def close_never_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(2)
    d.declare("q", 2)
    d.consume(channel=2)
    d.channel(1)
    d.client.publish(exchange="gone")
    d.server.close_channel(*NO_EXCHANGE)
    if not d.wrong:
        d.client.channel_close_ok()
    long_after(d, "CH-CLOSE-REPLY")


@pair("CH-CLOSE-CROSS", cut=without("channel.open"))
def crossing_close_never_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(2)
    d.declare("q", 2)
    d.consume(channel=2)
    d.channel(1)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.client.close_channel()
        d.server.close_channel(*NO_EXCHANGE)
    d.server.channel_close_ok()
    if not d.wrong:
        d.client.channel_close_ok()
    long_after(d, "CH-CLOSE-CROSS")


@legal("methods are said behind channel.open without waiting for the answer")
def publishes_behind_channel_open(d: Dialogue091) -> None:
    d.opened()
    with d.unheard(d.server):
        d.client.open_channel()
        d.client.publish()
        d.client.publish()
        d.server.channel_open_ok()
    d.goodbye()


@legal("a channel that the server closed is not answered when the connection ends at once")
def closed_and_hung_up(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    d.server.close_channel(*NO_EXCHANGE)
    d.goodbye()
