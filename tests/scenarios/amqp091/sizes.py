"""How large frames of AMQP 0-9-1 may be, and that they are whole."""

from __future__ import annotations

from scenarios.pairs import legal, pair, without
from support import amqp091_encode as amqp
from support.dialogue091 import Dialogue091


@pair("F-FRAME-SIZE", cut=without("connection.tune-ok"))
def body_larger_than_agreed(d: Dialogue091) -> None:
    d.opened(tune_ok={"frame_max": 8192})
    d.channel(1)
    d.client.publish_method()
    d.client.content_header(9000)
    if d.wrong:
        d.client.body(b"x" * 9000).breaks("F-FRAME-SIZE")
        d.server.close_connection(501, "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,9000,8184}")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.client.body(b"x" * 8184)
    d.client.body(b"x" * (9000 - 8184))
    d.goodbye()


@pair("F-FRAME-SIZE", cut=without("connection.tune-ok"))
def delivery_with_headers_larger_than_agreed(d: Dialogue091) -> None:
    d.product = "Some Broker"
    d.opened(tune_ok={"frame_max": 4096})
    d.channel(1)
    d.declare()
    d.consume(no_ack=True)
    headers = {f"header {number}": "x" * 100 for number in range(50 if d.wrong else 5)}
    said = d.server.deliver(headers=headers)
    d.client.close_connection(501 if d.wrong else 200, "FRAME_ERROR" if d.wrong else "bye")
    if d.wrong:
        header = said.octets.index(b"\x02\x00\x01")
        assert header > 0
        said.breaks("F-FRAME-SIZE")
    d.server.connection_close_ok()
    d.tcp.goodbye()


@pair("F-FRAME-SIZE", cut=without("connection.tune-ok"))
def body_with_as_many_octets_as_the_frame_may_have(d: Dialogue091) -> None:
    d.opened(tune_ok={"frame_max": 4096})
    d.channel(1)
    for number in range(3):
        said = d.client.publish(b"x" * 4096, frame_max=4104 if d.wrong else 4096)
        if d.wrong and number == 0:
            said.breaks("F-FRAME-SIZE")
    d.goodbye()


@pair("F-FRAME-SIZE-REACT", "F-FRAME-SIZE", cut=without("connection.tune-ok"))
def frame_too_large_that_is_taken(d: Dialogue091) -> None:
    d.product = "Some Broker"
    d.opened(tune_ok={"frame_max": 4096})
    d.channel(1)
    d.client.publish_method()
    d.client.content_header(8000)
    if d.wrong:
        d.client.body(b"x" * 8000).breaks("F-FRAME-SIZE")
        _, answered = d.declare()
        answered.breaks("F-FRAME-SIZE-REACT")
    else:
        d.client.body(b"x" * 4000)
        d.client.body(b"x" * 4000)
        d.declare()
    d.goodbye()


@pair("F-PRETUNE-SIZE")
def token_larger_than_is_sure_to_be_taken(d: Dialogue091) -> None:
    d.product = "Some Broker"
    d.client.header()
    d.server.start()
    said = d.client.start_ok(response=b"\0\0" + b"t" * (5000 if d.wrong else 3000))
    if d.wrong:
        said.breaks("F-PRETUNE-SIZE")
        d.server.fin()
        d.client.fin()
        return
    d.server.tune()


@pair("F-FRAME-TRUNCATED")
def end_inside_a_body(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish_method()
    d.client.content_header(1000)
    whole = amqp.frame(amqp.BODY, 1, b"x" * 1000)
    said = d.client.say(whole[:600] if d.wrong else whole)
    if d.wrong:
        said.breaks("F-FRAME-TRUNCATED")
        d.client.fin()
        d.server.fin()
        return
    d.goodbye()


@legal("frames of any size where none is agreed")
def frames_of_any_size(d: Dialogue091) -> None:
    d.opened(tune={"frame_max": 0})
    d.channel(1)
    d.client.publish(b"x" * 300_000)
    d.goodbye()


@legal("frames exactly as large as agreed")
def frames_as_large_as_agreed(d: Dialogue091) -> None:
    d.opened(tune_ok={"frame_max": 5000})
    d.channel(1)
    d.declare()
    d.consume(no_ack=True)
    d.client.publish(b"x" * 20_000)
    d.server.deliver(b"x" * 20_000)
    d.goodbye()


@legal("a client that breaks off because the server has closed the connection")
def end_inside_a_body_over_a_close(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish_method()
    d.client.content_header(100_000)
    d.client.say(amqp.frame(amqp.BODY, 1, b"x" * 100_000)[:50_000])
    d.server.close_connection(320, "CONNECTION_FORCED - broker forced connection closure")
    d.server.fin()
    d.client.fin()
