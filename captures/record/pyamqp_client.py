"""AMQP 0-9-1 clients on py-amqp, one function a scenario. Each ends by itself, or after LIFETIME s."""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import amqp
from amqp.exceptions import AMQPNotImplementedError, NotFound

LIFETIME = 28  # s
MADE = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)  # fixed: two recordings differ as little as possible
GOODS = ("tea", "cocoa", "umbrella", "raincoat", "lantern")


class Shop:
    """Where the server is and how to log in."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self.host = f"[{address}]:5672" if ":" in address else f"{address}:5672"
        self.login = {"userid": user, "password": password}

    def connect(self, **extra: Any) -> Any:
        properties = {"connection_name": "shop"}
        connection = amqp.Connection(self.host, client_properties=properties, **self.login, **extra)
        connection.connect()
        return connection


def wait_for(connection: Any, done: Callable[[], bool]) -> None:
    while not done():
        connection.drain_events(timeout=10)


@contextlib.contextmanager
def one_segment(connection: Any) -> Iterator[None]:
    """What is said inside leaves the host together, 200 ms after the first of it at the latest."""
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    yield
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def no_wait(shop: Shop) -> None:
    """Every method that can be said without an answer, said so, and then each with one."""
    connection = shop.connect()
    channel = connection.channel()
    for nowait in (True, False):
        name = f"prices-{nowait}".lower()
        received: list[Any] = []
        channel.exchange_declare(name, "topic", auto_delete=False, nowait=nowait)
        channel.exchange_declare(f"{name}-copy", "fanout", auto_delete=False, nowait=nowait)
        channel.exchange_bind(f"{name}-copy", name, "tea.*", nowait=nowait)
        channel.queue_declare(name, auto_delete=False, nowait=nowait)
        channel.queue_bind(name, f"{name}-copy", nowait=nowait)
        channel.queue_bind(name, name, "cocoa.#", nowait=nowait)
        channel.basic_publish(amqp.Message("3.50"), name, "tea.green")
        channel.basic_publish(amqp.Message("2.90"), name, "cocoa.dark.hot")
        channel.basic_consume(name, f"clerk-{name}", nowait=nowait, callback=received.append)
        wait_for(connection, lambda received=received: len(received) == 2)
        channel.basic_ack(received[-1].delivery_tag, multiple=True)
        channel.basic_cancel(f"clerk-{name}", nowait=nowait)
        channel.queue_unbind(name, name, "cocoa.#")
        channel.exchange_unbind(f"{name}-copy", name, "tea.*", nowait=nowait)
        channel.queue_purge(name, nowait=nowait)
        channel.queue_delete(name, nowait=nowait)
        channel.exchange_delete(f"{name}-copy", nowait=nowait)
        channel.exchange_delete(name, nowait=nowait)
    channel.confirm_select(nowait=True)
    channel.basic_publish(amqp.Message("confirmed"), "", "nowhere")
    channel.wait([(60, 80)])
    channel.close()
    connection.close()


def no_wait_error(shop: Shop) -> None:
    """Consume without waiting, from a queue that is not there: only the closed channel tells."""
    connection = shop.connect()
    channel = connection.channel()
    channel.basic_consume("missing", "clerk", nowait=True, callback=print)
    with contextlib.suppress(NotFound):
        channel.queue_declare("found", exclusive=True)
        raise AssertionError("no error")
    connection.close()


def gets(shop: Shop) -> None:
    """One message at a time, with and without acknowledgement, rejected, recovered, and none."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("orders", auto_delete=False)
    assert channel.basic_get("orders") is None
    for name in GOODS:
        channel.basic_publish(amqp.Message(name, content_type="text/plain"), "", "orders")
    channel.basic_ack(channel.basic_get("orders").delivery_tag)
    assert channel.basic_get("orders", no_ack=True).body == "cocoa"
    channel.basic_reject(channel.basic_get("orders").delivery_tag, requeue=True)
    again = channel.basic_get("orders")
    assert again.body == "umbrella" and again.delivery_info["redelivered"]
    channel.basic_recover(requeue=True)
    again = channel.basic_get("orders")
    assert again.body == "umbrella"
    channel.basic_recover_async(requeue=True)
    for _ in range(3):
        last = channel.basic_get("orders")
    channel.basic_ack(last.delivery_tag, multiple=True)
    assert channel.basic_get("orders") is None
    assert channel.queue_delete("orders", if_empty=True) == 0
    connection.close()


def confirm(shop: Shop) -> None:
    """Publishes confirmed one by one, and a mandatory one that is returned before its confirm."""
    connection = shop.connect(confirm_publish=True)
    channel = connection.channel()
    returned: list[Any] = []
    channel.events["basic_return"].add(lambda *arguments: returned.append(arguments))
    channel.queue_declare("invoices")
    for name in GOODS:
        channel.basic_publish(amqp.Message(name, delivery_mode=2), "", "invoices")
    channel.basic_publish(amqp.Message("come back"), "", "nowhere", mandatory=True)
    assert len(returned) == 1
    channel.close()
    connection.close()


def transactions(shop: Shop) -> None:
    """Publishes committed and rolled back, acks committed; closed with a transaction open."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("ledger", auto_delete=False)
    channel.tx_select()
    for name in GOODS[:2]:
        channel.basic_publish(amqp.Message(name), "", "ledger")
    channel.tx_commit()
    channel.basic_publish(amqp.Message("never"), "", "ledger")
    channel.tx_rollback()
    message = channel.basic_get("ledger")
    channel.basic_ack(message.delivery_tag)
    channel.tx_commit()
    message = channel.basic_get("ledger")
    channel.basic_ack(message.delivery_tag)
    channel.close()
    channel = connection.channel()
    assert channel.queue_delete("ledger") == 1  # what was not committed was not done
    connection.close()


def late_prefetch(shop: Shop) -> None:
    """Prefetch said right behind consume: for RabbitMQ without `global` it is for later consumers only."""
    connection = shop.connect()
    for a_global in (False, True):
        received: list[Any] = []
        channel = connection.channel()
        channel.queue_declare("orders", auto_delete=False)
        for _ in range(20):
            channel.basic_publish(amqp.Message("tea"), "", "orders")
        channel.queue_declare("orders", passive=True)
        with one_segment(connection):
            channel.basic_consume("orders", "clerk", nowait=True, callback=received.append)
            channel.basic_qos(0, 2, a_global)
        while len(received) < 20:
            connection.drain_events(timeout=2)
            channel.basic_ack(received[-1].delivery_tag, multiple=True)
        channel.queue_delete("orders")
        channel.close()
    connection.close()


def hurried(shop: Shop) -> None:
    """Consume and cancel, consume and close, each in one segment: what is delivered crosses with them."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("orders", auto_delete=False)
    for _ in range(12):
        channel.basic_publish(amqp.Message("tea"), "", "orders")
    channel.queue_declare("orders", passive=True)
    for sequel in (lambda: channel.basic_cancel("clerk"), channel.close):
        with one_segment(connection):
            channel.basic_consume("orders", "clerk", nowait=True, callback=lambda message: None)
            sequel()
        if channel.is_open:
            channel.basic_recover(requeue=True)
    channel = connection.channel()
    assert channel.queue_delete("orders") == 12
    channel.close()
    connection.close()


TABLE = {
    "a_boolean": False,
    "an_int": 2**31 - 1,
    "tag_L": 2**40,
    "tag_L_negative": -(2**40),
    "a_double": 2.5,
    "a_decimal": Decimal("-12.345"),
    "text": "Grüße",
    "octets": b"\x00\xff\x1b[2J",
    "a_time": MADE,
    "nothing": None,
    "a_table": {"inside": {"deeper": 1}, "empty": {}},
    "an_array": [1, "two", None, [False], {"three": 3.0}],
}


def types(shop: Shop) -> None:
    """Every property, and every type of table value that py-amqp writes, to the server and back."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("samples", arguments={"x-expires": 600_000, "remarks": TABLE})
    every = amqp.Message(
        "all properties",
        content_type="text/plain",
        content_encoding="utf-8",
        application_headers=TABLE,
        delivery_mode=2,
        priority=0,
        correlation_id="correlation-7",
        reply_to="samples",
        expiration="60000",
        message_id="sample-1",
        timestamp=1_700_000_000,
        type="sample",
        user_id="shop",
        app_id="warehouse",
        cluster_id="captures",
    )
    channel.basic_publish(every, "", "samples")
    channel.basic_publish(amqp.Message(b""), "", "samples")
    back = channel.basic_get("samples", no_ack=True)
    assert back.properties["message_id"] == "sample-1"
    channel.basic_get("samples", no_ack=True)
    connection.close()


def heartbeat(shop: Shop) -> None:
    """Heartbeats of both sides in silence, the client's by its tick."""
    connection = shop.connect(heartbeat=1)
    until = time.monotonic() + 3.2
    while time.monotonic() < until:
        connection.heartbeat_tick()
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=0.25)
    connection.close()


def immediate(shop: Shop) -> None:
    """The flag that RabbitMQ gave up: the connection is closed, with what came after it in flight."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("orders", exclusive=True)
    channel.basic_publish(amqp.Message("tea"), "", "orders", immediate=True)
    channel.basic_publish(amqp.Message("cocoa"), "", "orders")
    with contextlib.suppress(AMQPNotImplementedError):
        channel.queue_declare("more", exclusive=True)
        raise AssertionError("immediate is implemented")


SCENARIOS: dict[str, Callable[[Shop], None]] = {
    "no-wait": no_wait,
    "no-wait-error": no_wait_error,
    "gets": gets,
    "confirm": confirm,
    "transactions": transactions,
    "late-prefetch": late_prefetch,
    "hurried": hurried,
    "types": types,
    "heartbeat": heartbeat,
    "immediate": immediate,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", choices=sorted(SCENARIOS))
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    options.add_argument("--user", default="shop")
    options.add_argument("--password", default="made-up-for-captures")
    given = options.parse_args()
    signal.alarm(LIFETIME)
    SCENARIOS[given.scenario](Shop(given.connect, given.user, given.password))


if __name__ == "__main__":
    main()
