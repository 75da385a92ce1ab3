"""Frames and contents of AMQP 0-9-1."""

from __future__ import annotations

from scenarios.pairs import pair
from support import amqp091_encode as amqp
from support.dialogue091 import Dialogue091


@pair("F-FRAME-END", "F-FATAL-SILENT")
def frame_with_a_wrong_end(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    payload = amqp.method("queue.declare", queue="q")
    said = d.client.say(amqp.frame(amqp.METHOD, 1, payload, end=b"\x00" if d.wrong else b"\xce"))
    if d.wrong:
        said.breaks("F-FRAME-END")
        d.server.close_connection(501, "FRAME_ERROR").breaks("F-FATAL-SILENT")
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
        d.server.fin()
        return
    d.declare("q")
    d.goodbye()


@pair("F-CH0-CONNECTION")
def secret_renewed_on_a_channel(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    channel = 1 if d.wrong else 0
    said = d.client.method("connection.update-secret", channel, new_secret=b"token", reason="expires")
    if d.wrong:
        said.breaks("F-CH0-CONNECTION")
        d.server.close_connection(503, "COMMAND_INVALID - unimplemented method", "connection.update-secret")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.method("connection.update-secret-ok")
    d.goodbye()


@pair("F-CH0-HEARTBEAT", "F-CH0-REACT")
def heartbeat_on_a_channel(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 60})
    d.channel(1)
    said = d.client.heartbeat(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("F-CH0-HEARTBEAT")
        d.server.close_connection(
            505, "UNEXPECTED_FRAME - expected method, got non method frame instead"
        ).may_break("F-CH0-REACT")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("F-HEARTBEAT-SHAPE")
def heartbeat_with_a_payload(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 60})
    said = d.client.heartbeat(payload=b"alive" if d.wrong else b"")
    if d.wrong:
        said.breaks("F-HEARTBEAT-SHAPE")
        d.server.close_connection(501, "FRAME_ERROR - type 8, all octets = <<alive>>: unknown_frame")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("F-HEARTBEAT-SHAPE")
def heartbeat_as_printed(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 60})
    if d.wrong:
        d.client.say(b"\x08\x00\x00\xce").breaks("F-HEARTBEAT-SHAPE")
    else:
        d.client.heartbeat()
    d.server.heartbeat()
    d.goodbye()


@pair("F-METHOD-CH-NONZERO")
def queue_declared_on_channel_0(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("queue.declare", 0, queue="q").breaks("F-METHOD-CH-NONZERO")
        d.server.close_connection(504, "CHANNEL_ERROR - unexpected method in connection state running")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.declare("q")
    d.goodbye()


@pair("F-METHOD-CH-NONZERO")
def published_on_channel_0(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    channel = 0 if d.wrong else 1
    said = d.client.publish_method(channel=channel)
    d.client.content_header(5, channel)
    d.client.body(b"hello", channel)
    if d.wrong:
        said.breaks("F-METHOD-CH-NONZERO")
        d.server.close_connection(504, "CHANNEL_ERROR - unexpected method in connection state running")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("F-METHOD-KNOWN")
def exchange_unbound_with_a_wrong_number(d: Dialogue091) -> None:
    # exchange.unbind-ok is 51, not 41 as the other answers would have it.
    d.opened()
    d.channel(1)
    d.client.method("exchange.unbind", destination="a", source="b", routing_key="k")
    if d.wrong:
        d.server.frame(amqp.METHOD, 1, b"\x00\x28\x00\x29").breaks("F-METHOD-KNOWN")
        d.client.fin()
        return
    d.server.method("exchange.unbind-ok")
    d.goodbye()


@pair("F-METHOD-ARGS")
def declare_without_its_last_arguments(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    payload = amqp.method("queue.declare", queue="q")
    said = d.client.frame(amqp.METHOD, 1, payload[:-4] if d.wrong else payload)
    if d.wrong:
        said.breaks("F-METHOD-ARGS")
        d.server.close_connection(501, "FRAME_ERROR - cannot decode", "queue.declare")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


@pair("F-METHOD-TRAILING")
def ack_with_an_octet_more(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare()
    d.consume()
    d.server.deliver()
    payload = amqp.method("basic.ack", delivery_tag=1)
    said = d.client.frame(amqp.METHOD, 1, payload + b"\x00" if d.wrong else payload)
    if d.wrong:
        said.breaks("F-METHOD-TRAILING")
        d.server.close_connection(501, "FRAME_ERROR - cannot decode", "basic.ack")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("F-METHOD-DIRECTION")
def client_that_answers_its_own_declare(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="q")
    if d.wrong:
        d.client.method("queue.declare-ok", queue="q").breaks("F-METHOD-DIRECTION")
        d.server.close_connection(503, "COMMAND_INVALID - unimplemented method", "queue.declare-ok")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


@pair("F-METHOD-DIRECTION")
def server_that_publishes(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare()
    d.consume(no_ack=True)
    if d.wrong:
        d.server.publish().breaks("F-METHOD-DIRECTION")
    else:
        d.server.deliver()
    d.goodbye()
