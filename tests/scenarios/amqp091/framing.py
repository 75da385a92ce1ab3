"""Frames and contents of AMQP 0-9-1."""

from __future__ import annotations

from scenarios.pairs import pair
from support import amqp091_encode as amqp
from support.dialogue091 import Dialogue091


@pair("F-FRAME-END")
def frame_with_a_wrong_end(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    payload = amqp.method("queue.declare", queue="q")
    said = d.client.say(amqp.frame(amqp.METHOD, 1, payload, end=b"\x00" if d.wrong else b"\xce"))
    if d.wrong:
        said.breaks("F-FRAME-END")
        d.server.close_connection(501, "FRAME_ERROR")
        d.server.fin()
        return
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


@pair("F-FRAME-TYPE")
def frame_of_a_type_that_is_none(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.say(amqp.frame(5, 1, b"something")).breaks("F-FRAME-TYPE")
        d.server.close_connection(501, "FRAME_ERROR")
        d.server.fin()
        return
    d.declare("q")
    d.goodbye()
