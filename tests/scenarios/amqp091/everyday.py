"""What clients and brokers do every day, and what of it looks odd."""

from __future__ import annotations

from scenarios.pairs import legal
from support.dialogue091 import Dialogue091


@legal("messages there and back")
def messages_there_and_back(d: Dialogue091) -> None:
    d.opened(tune={"frame_max": 4096})
    d.channel(1)
    d.declare("q")
    d.client.publish(b"hello", content_type="text/plain", delivery_mode=2)
    d.client.publish(b"x" * 10_000, headers={"n": ("I", 1)})
    d.client.publish(b"")
    d.qos(10)
    d.consume("q")
    d.server.deliver(b"hello", content_type="text/plain", delivery_mode=2)
    d.server.deliver(b"x" * 10_000, headers={"n": ("I", 1)})
    d.server.deliver(b"")
    d.client.ack(2, multiple=True)
    d.client.ack(3)
    d.cancel()
    d.closed()
    d.goodbye()


@legal("publishes are confirmed in any order")
def confirms(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.confirms()
    for _ in range(5):
        d.client.publish()
    d.server.confirm(2)
    d.server.confirm(4, multiple=True)
    d.client.publish(routing_key="nowhere", mandatory=True)
    d.server.return_content(routing_key="nowhere")
    d.server.confirm(6)
    d.server.nack(5, requeue=False)
    d.goodbye()


@legal("what is on its way when the server closes a channel is ignored")
def close_of_a_channel_on_its_way(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.server.close_channel(403, "ACCESS_REFUSED - access to exchange 'gone' refused", "basic.publish")
        d.client.publish(exchange="gone")
        d.client.publish(channel=2)
    d.client.channel_close_ok()
    d.channel(1)
    d.client.publish()
    d.goodbye()


@legal("both close the channel, and both answer")
def closes_of_a_channel_cross(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(exchange="gone")
    with d.on_their_way():
        d.client.close_channel()
        d.server.close_channel(403, "ACCESS_REFUSED", "basic.publish")
    d.server.channel_close_ok()
    d.client.channel_close_ok()
    d.goodbye()


@legal("after a rollback the same deliveries are acknowledged again")
def acknowledged_again_after_a_rollback(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare()
    d.consume()
    d.transaction()
    d.server.deliver()
    d.server.deliver()
    d.client.ack(2, multiple=True)
    d.rollback()
    d.client.ack(1)
    d.client.reject(2)
    d.commit()
    d.goodbye()


@legal("deliveries of a consumer without acks")
def nothing_to_acknowledge(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q", no_wait=False)
    d.client.method("basic.consume", queue="q", consumer_tag="c", no_ack=True, no_wait=True)
    d.server.deliver()
    d.server.deliver()
    d.client.get("q", no_ack=True)
    d.server.get_ok()
    d.client.get("q")
    d.server.get_empty()
    d.goodbye()


@legal("contents on two channels in turn, and heartbeats between their frames")
def interleaved_contents(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 60})
    d.channel(1, 2)
    d.client.publish_method()
    d.client.publish_method(channel=2)
    d.client.content_header(6, channel=2)
    d.client.heartbeat()
    d.client.content_header(3)
    d.client.body(b"abc", channel=2)
    d.client.body(b"abc")
    d.server.heartbeat()
    d.client.body(b"def", channel=2)
    d.goodbye()
