"""Troubles of AMQP 0-9-1: acknowledgements, confirms, polling, and what is refused."""

from __future__ import annotations

from scenarios.diagnoses.troubles import alive091, channel091, trouble
from support.conversation import Conversation
from support.dialogue091 import Dialogue091


@trouble("publisher-blocked")
def the_server_blocks(troubled: bool) -> Conversation:
    d = channel091()
    d.client.publish()
    d.server.blocked()
    d.wait(seconds=1)
    if not troubled:
        d.server.unblocked()
    alive091(d)
    return d


@trouble("channel-flow-stopped")
def the_server_stops_a_channel(troubled: bool) -> Conversation:
    d = channel091()
    d.client.publish()
    d.server.flow(False)
    d.client.flow_ok(False)
    d.wait(seconds=1)
    if not troubled:
        d.server.flow(True)
        d.client.flow_ok(True)
    alive091(d)
    return d


@trouble("confirms-missing")
def publishes_are_not_confirmed(troubled: bool) -> Conversation:
    d = channel091()
    d.confirms()
    d.client.publish()
    d.client.publish()
    if not troubled:
        d.server.confirm(2, multiple=True)
    alive091(d)
    return d


@trouble("prefetch-full")
def the_prefetch_is_full(troubled: bool) -> Conversation:
    d = channel091()
    d.qos(2)
    d.consume()
    d.server.deliver()
    d.server.deliver()
    if not troubled:
        d.client.ack(2, multiple=True)
    alive091(d)
    return d


@trouble("acks-missing")
def deliveries_are_not_acknowledged(troubled: bool) -> Conversation:
    d = channel091()
    d.consume()
    for _ in range(12):
        d.server.deliver()
    if not troubled:
        d.client.ack(12, multiple=True)
    alive091(d)
    return d


@trouble("consumer-cancelled")
def the_server_cancels_a_consumer(troubled: bool) -> Conversation:
    d = channel091()
    d.consume()
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    if not troubled:
        d.declare("q", durable=True)
        d.consume()
    alive091(d)
    return d


@trouble("get-loop")
def a_queue_is_polled(troubled: bool) -> Conversation:
    d = channel091()
    if not troubled:
        d.consume()
    for number in range(60):
        d.wait(seconds=0.1)
        if troubled:
            d.client.get()
            d.server.get_empty()
        elif number % 20 == 0:
            d.server.deliver()
            d.client.ack()
    d.goodbye()
    return d


@trouble("channel-churn")
def a_channel_for_each_message(troubled: bool) -> Conversation:
    d = Dialogue091()
    d.opened()
    if not troubled:
        d.channel(1)
    for _ in range(25):
        d.wait(seconds=0.2)
        if troubled:
            d.channel(1)
        d.client.publish()
        if troubled:
            d.closed(1)
    d.goodbye()
    return d


@trouble("connection-churn")
def a_connection_for_each_message(troubled: bool) -> Conversation:
    first = d = Dialogue091()
    for number in range(25):
        if number == 0 or troubled:
            d = first if number == 0 else first.again(client=f"10.0.0.1:{51_035 + number}")
            d.opened()
            d.channel(1)
        d.client.publish()
        if troubled or number == 24:
            d.goodbye()
        d.wait(seconds=0.5)
    return first


@trouble("handshake-limit")
def the_frame_max_is_too_small(troubled: bool) -> Conversation:
    d = Dialogue091()
    d.started(start={"properties": {"version": "4.1.0"}})
    d.server.tune()
    d.client.tune_ok(frame_max=4096 if troubled else 131072)
    d.client.open_connection()
    if troubled:
        d.server.end.fin()
        d.client.end.fin()
    else:
        d.server.connection_open_ok()
        d.goodbye()
    return d


@trouble("removed-feature")
def a_feature_was_removed(troubled: bool) -> Conversation:
    d = Dialogue091()
    d.opened(start={"properties": {"version": "4.3.0"}})
    d.channel(1)
    d.client.method("queue.declare", queue="q", durable=not troubled)
    if troubled:
        d.server.close_connection(
            541,
            "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated. Its use is not permitted",
            "queue.declare",
        )
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.server.method("queue.declare-ok", queue="q")
        d.goodbye()
    return d


@trouble("threads-share-channel")
def two_threads_write(troubled: bool) -> Conversation:
    d = channel091()
    with d.together(d.client):
        d.client.publish_method()
        d.client.content_header(10)
        if troubled:
            d.client.publish_method()
            d.client.content_header(10)
        d.client.body(b"0123456789")
    if troubled:
        d.server.close_connection(505, "UNEXPECTED_FRAME", "basic.publish")
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.goodbye()
    return d
