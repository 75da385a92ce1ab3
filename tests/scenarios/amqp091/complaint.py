"""Closes that say what they are for."""

from __future__ import annotations

from scenarios.pairs import pair, reported, without
from support.dialogue091 import Dialogue091


def _connection_refused(d: Dialogue091, rule: str, code: int, text: str, cause: str = "") -> None:
    d.server.close_connection(code, text, cause).called("close").may_break(rule)
    d.client.connection_close_ok()
    d.tcp.goodbye()


@pair("B-ACK-TIMEOUT", cut=without("deliver"))
def delivery_not_acknowledged_in_time(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("q")
    d.server.deliver().called("deliver")
    d.wait(seconds=1800)
    if d.wrong:
        text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value: 1800000"
        said = d.server.close_channel(406, text)
        said.breaks("B-ACK-TIMEOUT", certain=False, peer="client")
        d.client.channel_close_ok()
    else:
        d.client.ack()
        d.closed()
    d.goodbye()


@pair("B-CONTENT-TOO-LARGE", cut=without("close"))
def content_that_is_too_large(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish()
    said = d.client.publish(b"x" * 3000)
    if d.wrong:
        said.may_break("B-CONTENT-TOO-LARGE")
        text = "PRECONDITION_FAILED - message size 3000 is larger than configured max size 2000"
        d.server.close_channel(406, text, "basic.publish").called("close")
        d.client.channel_close_ok()
    d.goodbye()


@reported("and the reply-code says it")
def content_that_is_too_large_by_its_code(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(b"x" * 3000).may_break("B-CONTENT-TOO-LARGE")
    d.server.close_channel(311, "CONTENT_TOO_LARGE", "basic.publish")
    d.client.channel_close_ok()
    d.goodbye()


@pair("B-NOACK-SUPPORT", cut=without("consume"))
def consumer_without_acks_that_is_refused(d: Dialogue091) -> None:
    _consumer(d, "B-NOACK-SUPPORT", "NOT_IMPLEMENTED - no-ack is not supported", no_ack=True)


@pair("B-ACK-SUPPORT", cut=without("consume"))
def consumer_with_acks_that_is_refused(d: Dialogue091) -> None:
    _consumer(d, "B-ACK-SUPPORT", "NOT_IMPLEMENTED - acknowledgements are not supported", no_ack=False)


def _consumer(d: Dialogue091, rule: str, text: str, *, no_ack: bool) -> None:
    d.opened()
    d.channel(1)
    d.client.method("basic.consume", queue="q", consumer_tag="c", no_ack=no_ack).called("consume")
    if d.wrong:
        _connection_refused(d, rule, 540, text, "basic.consume")
    else:
        d.server.method("basic.consume-ok", consumer_tag="c")
        d.goodbye()


@reported("of basic.get")
def get_without_acks_that_is_refused(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.get(no_ack=True)
    _connection_refused(d, "B-NOACK-SUPPORT", 540, "NOT_IMPLEMENTED - no-ack is not supported", "basic.get")


@pair("B-RECOVER-ASYNC-OLD", cut=without("recover"))
def recover_that_is_out_of_date(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("q")
    d.server.deliver()
    if d.wrong:
        said = d.client.method("basic.recover-async", requeue=True).called("recover")
        said.breaks("B-RECOVER-ASYNC-OLD")
    else:
        d.ask("basic.recover", 1, requeue=True)
    d.goodbye()


@pair("F-PRETUNE-ACCEPT", "C-HS-ERROR-SILENT", cut=without("connection.start-ok"))
def small_frame_that_is_refused(d: Dialogue091) -> None:
    if d.wrong:
        d.started()
        said = d.server.close_connection(501, "FRAME_ERROR - frame too large")
        said.may_break("F-PRETUNE-ACCEPT").breaks("C-HS-ERROR-SILENT")
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.opened()
        d.goodbye()


@pair("F-HEARTBEAT-DISCARD", cut=without("connection.tune-ok"))
def heartbeat_that_is_refused(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 0}, tune_ok={"heartbeat": 0})
    d.client.heartbeat()
    if d.wrong:
        _connection_refused(d, "F-HEARTBEAT-DISCARD", 501, "FRAME_ERROR - unexpected heartbeat")
    else:
        d.goodbye()
