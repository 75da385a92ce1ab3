"""What is tested: a shop that sends orders to a queue, and a store that takes them from it."""

from __future__ import annotations

import contextlib

import pika
from pika.adapters.blocking_connection import BlockingChannel

QUEUE = "orders"


def connected(url: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(url))


def send(channel: BlockingChannel, orders: list[str]) -> None:
    """Send orders; it returns when the broker has confirmed all of them."""
    channel.confirm_delivery()
    for order in orders:
        channel.basic_publish(
            "", QUEUE, order.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True
        )


def take(channel: BlockingChannel, count: int) -> list[str]:
    """Take so many orders, one after the other."""
    channel.basic_qos(prefetch_count=1)
    taken: list[str] = []
    for method, _, body in channel.consume(QUEUE, inactivity_timeout=30):
        taken.append(body.decode())
        channel.basic_ack(method.delivery_tag)
        if len(taken) == count:
            break
    channel.cancel()
    return taken


def take_carelessly(channel: BlockingChannel, count: int) -> list[str]:
    """The same, by somebody who acknowledges in the loop, and at its end once more, and minds no errors."""
    taken: list[str] = []
    for method, _, body in channel.consume(QUEUE, inactivity_timeout=30):
        taken.append(body.decode())
        channel.basic_ack(method.delivery_tag)
        if len(taken) == count:
            break
    channel.basic_ack(method.delivery_tag)
    with contextlib.suppress(pika.exceptions.AMQPError):  # the orders are there
        channel.cancel()
    return taken


def send_late(channel: BlockingChannel, order: str) -> None:
    """Send an order on a channel that is closed, past pika, which would not do that."""
    channel.close()
    connection, number = channel.connection._impl, channel.channel_number
    connection._send_message(
        number, pika.spec.Basic.Publish(routing_key=QUEUE), (pika.BasicProperties(), order.encode())
    )
