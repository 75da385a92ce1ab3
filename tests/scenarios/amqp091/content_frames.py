"""The frames of contents of AMQP 0-9-1, and their order."""

from __future__ import annotations

from scenarios.pairs import legal, one_direction, pair, without
from support import amqp091_encode as amqp
from support.conversation import Said
from support.dialogue091 import Dialogue091


def refused(d: Dialogue091, code: int = 505) -> None:
    """The server closes the connection because of a frame that it did not expect."""
    d.server.close_connection(code, "UNEXPECTED_FRAME", "basic.publish")
    d.client.connection_close_ok()
    d.tcp.goodbye()


def opened(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)


@pair("F-CONTENT-CH-NONZERO")
def content_on_channel_0(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    if d.wrong:
        d.client.content_header(5, 0).breaks("F-CONTENT-CH-NONZERO")
        d.client.body(b"hello", 0)
        refused(d)
        return
    d.client.content_header(5)
    d.client.body(b"hello")
    d.goodbye()


@pair("F-CONTENT-HEADER-NEXT", cut=without("publish"))
def another_thread_before_the_content_header(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method().called("publish")
    if d.wrong:
        d.client.method("queue.declare", queue="q").breaks("F-CONTENT-HEADER-NEXT")
        refused(d)
        return
    d.client.content_header(5)
    d.client.body(b"hello")
    d.declare("q")
    d.goodbye()


@pair("F-CONTENT-HEADER-NEXT", cut=without("deliver"))
def body_of_a_delivery_without_its_header(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.consume(no_ack=True)
    d.server.deliver_method().called("deliver")
    if d.wrong:
        d.server.body(b"hello").breaks("F-CONTENT-HEADER-NEXT")
        d.client.close_connection(505, "UNEXPECTED_FRAME")
        d.server.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.content_header(5)
    d.server.body(b"hello")
    d.goodbye()


@pair("F-CONTENT-NO-METHOD", cut=without("header"))
def another_thread_inside_a_content(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    d.client.content_header(10).called("header")
    d.client.body(b"hello")
    if d.wrong:
        d.client.publish_method().breaks("F-CONTENT-NO-METHOD")
        refused(d)
        return
    d.client.body(b"hello")
    d.client.publish()
    d.goodbye()


@pair("F-CONTENT-ONE-HEADER", cut=without("header"))
def second_content_header(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    d.client.content_header(5).called("header")
    if d.wrong:
        d.client.content_header(5).breaks("F-CONTENT-ONE-HEADER")
        d.client.body(b"hello")
        refused(d)
        return
    d.client.body(b"hello")
    d.goodbye()


@pair("F-HEADER-ORPHAN", cut=without("method"))
def content_header_behind_a_get(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    if d.wrong:
        d.client.method("basic.get", queue="q").called("method")
        d.client.content_header(5).breaks("F-HEADER-ORPHAN")
        d.client.body(b"hello")
        refused(d)
        return
    d.client.publish_method().called("method")
    d.client.content_header(5)
    d.client.body(b"hello")
    d.goodbye()


@pair("F-BODY-ORPHAN", cut=without("publish"))
def body_behind_a_complete_message(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.client.publish(b"hello").called("publish")
    if d.wrong:
        d.client.body(b"hello").breaks("F-BODY-ORPHAN")
        refused(d)
        return
    d.client.publish(b"hello")
    d.goodbye()


@pair("F-BODY-OVERRUN", "F-CONTENT-REACT", cut=without("header"))
def more_body_than_announced(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    d.client.content_header(10).called("header")
    d.client.body(b"hello")
    said = d.client.body(b"hello!" if d.wrong else b"hello")
    if d.wrong:
        said.breaks("F-BODY-OVERRUN")
        d.server.close_connection(
            501, "FRAME_ERROR - exceeds remaining content size", "basic.publish"
        ).may_break("F-CONTENT-REACT")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("F-BODY-ZERO", cut=without("header"))
def body_of_an_empty_message(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    d.client.content_header(0).called("header")
    if d.wrong:
        d.client.body(b"").breaks("F-BODY-ZERO")
        refused(d)
        return
    d.client.publish(b"")
    d.goodbye()


@pair("F-HEADER-CLASS")
def content_header_of_another_class(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    said = d.client.content_header(5, class_id=70 if d.wrong else 60)
    if d.wrong:
        said.breaks("F-HEADER-CLASS")
        d.client.body(b"hello")
        refused(d)
        return
    d.client.body(b"hello")
    d.goodbye()


@pair("F-HEADER-WEIGHT")
def content_header_with_a_weight(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    said = d.client.content_header(5, weight=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("F-HEADER-WEIGHT")
        d.client.body(b"hello")
        refused(d)
        return
    d.client.body(b"hello")
    d.goodbye()


def header_frame(d: Dialogue091, payload: bytes) -> Said:
    """A content header made by hand, between its method and its body, of a message of the client's."""
    d.client.publish_method()
    said = d.client.frame(amqp.HEADER, 1, payload)
    d.client.body(b"hello")
    return said


@pair("F-HEADER-DECODE")
def property_without_its_value(d: Dialogue091) -> None:
    opened(d)
    payload = amqp.content_header(5, content_type="text/plain", priority=1)
    said = header_frame(d, payload[:-1] if d.wrong else payload)
    if d.wrong:
        said.breaks("F-HEADER-DECODE")
        d.server.close_connection(541, "INTERNAL_ERROR", "basic.publish")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("F-HEADER-FLAGS")
def flag_of_no_property(d: Dialogue091) -> None:
    opened(d)
    payload = bytearray(amqp.content_header(5, content_type="text/plain"))
    if d.wrong:
        payload[13] |= 2
    said = header_frame(d, bytes(payload))
    if d.wrong:
        said.breaks("F-HEADER-FLAGS")
    d.goodbye()


@pair("F-HEADER-FLAGS", cut=one_direction, then="same")
def flags_that_the_broker_hands_on(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.consume(no_ack=True)
    payload = bytearray(amqp.content_header(5, content_type="text/plain"))
    if d.wrong:
        payload[13] |= 2
    for number in range(2):
        d.server.deliver_method()
        said = d.server.frame(amqp.HEADER, 1, bytes(payload))
        d.server.body(b"hello")
        if d.wrong and number == 0:
            said.may_break("F-HEADER-FLAGS")
    d.goodbye()


@pair("F-BODY-EMPTY")
def body_frames_of_no_octets(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    d.client.content_header(5).called("header")
    for number in range(2):
        said = d.client.body(b"" if d.wrong else b"he"[number:][:1])
        if d.wrong and number == 0:
            said.breaks("F-BODY-EMPTY")
    d.client.body(b"hello" if d.wrong else b"llo")
    d.goodbye()


@legal("a message is given up by closing its channel")
def message_given_up(d: Dialogue091) -> None:
    opened(d)
    d.client.publish_method()
    d.client.content_header(10)
    d.client.body(b"hello")
    d.closed()
    d.channel(1)
    d.client.publish()
    d.goodbye()


@legal("a message is given up by answering the server's close of the channel")
def message_given_up_over_a_close(d: Dialogue091) -> None:
    opened(d)
    d.client.publish()
    d.client.publish_method()
    d.client.content_header(10)
    d.client.body(b"hello")
    d.server.close_channel(403, "ACCESS_REFUSED - access to exchange 'x' refused", "basic.publish")
    d.client.channel_close_ok()
    d.channel(1)
    d.client.publish()
    d.goodbye()
