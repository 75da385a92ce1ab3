"""AMQP 0-9-1 clients on pika, one function a scenario. Each ends by itself, or is ended after LIFETIME s."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pika
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
    UnroutableError,
)

LIFETIME = 28  # s
MADE = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)  # fixed: two recordings differ as little as possible
GOODS = ("tea", "cocoa", "umbrella", "raincoat", "lantern", "map", "compass", "rope")


class Shop:
    """Where the server is and how to log in; remembers the connections made, to close those still open."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self.address = address
        self.credentials = pika.PlainCredentials(user, password)
        self.connections: list[Any] = []

    def connect(self, **extra: Any) -> Any:
        given = {"client_properties": {"connection_name": "shop"}, "credentials": self.credentials, **extra}
        connection = pika.BlockingConnection(pika.ConnectionParameters(self.address, 5672, **given))
        self.connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in self.connections:
            if connection.is_open:
                connection.close()


class Basket:
    """A consumer's callback that keeps what comes; `fill` waits for it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.tags: list[int] = []
        self.bodies: list[bytes] = []

    def __call__(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.tags.append(method.delivery_tag)
        self.bodies.append(body)

    def fill(self, count: int) -> None:
        """Returns once `count` messages have come since the start."""
        while len(self.tags) < count:
            self.connection.process_data_events(time_limit=1)

    def nothing_more(self) -> None:
        """Checks that no message comes in a moment."""
        count = len(self.tags)
        self.connection.process_data_events(time_limit=0.3)
        assert len(self.tags) == count


@contextlib.contextmanager
def expected(kind: type[Exception], code: int | None = None) -> Iterator[None]:
    """What is done inside must raise an error of this kind, with this reply-code if one is given."""
    try:
        yield
    except kind as error:
        if code is not None and error.args[0] != code:
            raise
    else:
        raise AssertionError(f"no {kind.__name__} {code}")


def stock(channel: Any, queue: str, goods: tuple[str, ...] = GOODS, **arguments: Any) -> None:
    """Declares a queue and publishes some messages to it."""
    channel.queue_declare(queue, auto_delete=False, arguments=arguments.pop("arguments", None))
    for number, name in enumerate(goods, 1):
        properties = pika.BasicProperties(message_id=f"{queue}-{number}", content_type="text/plain")
        channel.basic_publish("", queue, name.encode(), properties)


def publish_consume(shop: Shop) -> None:
    """Acknowledged one by one, several at once, out of order, and all that are left (delivery-tag 0)."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("orders", durable=True)
    basket = Basket(connection)
    persistent = pika.BasicProperties(content_type="text/plain", delivery_mode=2)
    for name in GOODS:
        channel.basic_publish("", "orders", name.encode(), persistent)
    consumer = channel.basic_consume("orders", basket)
    basket.fill(8)
    channel.basic_ack(basket.tags[0])
    channel.basic_ack(basket.tags[3], multiple=True)
    channel.basic_ack(basket.tags[5])
    channel.basic_ack(basket.tags[4])
    channel.basic_ack(0, multiple=True)
    channel.basic_cancel(consumer)
    assert channel.queue_declare("orders", passive=True).method.message_count == 0
    channel.queue_delete("orders", if_empty=True)


def prefetch(shop: Shop) -> None:
    """Prefetch for each consumer and for the channel; nack, reject and recover, with and without requeue."""
    connection = shop.connect()
    channel = connection.channel()
    stock(channel, "parcels")
    channel.basic_qos(prefetch_count=2)
    basket = Basket(connection)
    first = channel.basic_consume("parcels", basket, consumer_tag="first")
    second = channel.basic_consume("parcels", basket, consumer_tag="second")
    basket.fill(4)
    basket.nothing_more()
    tags = basket.tags
    channel.basic_nack(tags[0], requeue=True)  # comes again
    basket.fill(5)
    channel.basic_nack(tags[2], multiple=True, requeue=False)
    basket.fill(7)
    channel.basic_reject(tags[3], requeue=True)
    basket.fill(8)
    channel.basic_cancel(first)
    channel.basic_cancel(second)
    channel.basic_recover(requeue=True)
    channel.queue_purge("parcels")
    channel.close()

    channel = connection.channel()
    stock(channel, "letters")
    channel.basic_qos(prefetch_count=3, global_qos=True)
    basket = Basket(connection)
    for name in ("third", "fourth"):
        channel.basic_consume("letters", basket, consumer_tag=name)
    basket.fill(3)
    basket.nothing_more()
    channel.basic_ack(basket.tags[1], multiple=True)
    basket.fill(5)
    channel.basic_qos(prefetch_count=0, global_qos=True)
    basket.fill(8)
    channel.basic_ack(basket.tags[-1], multiple=True)
    for queue in ("parcels", "letters"):
        channel.queue_delete(queue)


def confirm(shop: Shop) -> None:
    """Publishes confirmed one by one: one not routed, one returned, one that the queue refuses."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("invoices", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    channel.basic_publish("", "invoices", b"tea")
    channel.basic_publish("", "nowhere", b"nobody misses this")
    channel.basic_publish("", "invoices", b"cocoa", mandatory=True)
    with expected(UnroutableError):
        channel.basic_publish("", "nowhere", b"come back", mandatory=True)
    with expected(NackError):
        channel.basic_publish("", "invoices", b"umbrella")
    channel.queue_delete("invoices")


def transactions(shop: Shop) -> None:
    """Publishes and acks, committed and rolled back; an unroutable message is returned at the commit."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("ledger")
    channel.tx_select()
    returned = []
    channel.add_on_return_callback(lambda *arguments: returned.append(arguments))
    for name in ("tea", "cocoa"):
        channel.basic_publish("", "ledger", name.encode())
    channel.basic_publish("", "nowhere", b"come back", mandatory=True)
    channel.tx_commit()
    channel.basic_publish("", "ledger", b"umbrella")
    channel.tx_rollback()
    basket = Basket(connection)
    channel.basic_consume("ledger", basket)
    basket.fill(2)
    basket.nothing_more()
    assert len(returned) == 1
    channel.basic_ack(basket.tags[1], multiple=True)
    channel.tx_rollback()
    channel.basic_ack(basket.tags[0])  # a rollback gives no message back: these are the same deliveries
    channel.tx_commit()
    channel.basic_nack(basket.tags[1], requeue=False)
    channel.tx_commit()
    channel.queue_delete("ledger")


TABLE = {
    "a_boolean": True,
    "an_int": -5,
    "a_long": -(2**40),
    "a_decimal": Decimal("12.34"),
    "text": "Grüße",
    "octets": b"\x00\xff\x1b[2J",
    "a_time": MADE,
    "nothing": None,
    "a_table": {"inside": {"deeper": 1}, "empty": {}},
    "an_array": [1, "two", None, [False], {"three": 3}],
    "hostile": "\x1b]0;title\x07\u202eback",
}


def types(shop: Shop) -> None:
    """Every property, and every type of table value that pika writes, to the server and back."""
    connection = shop.connect()
    channel = connection.channel()
    channel.queue_declare("samples", arguments={"x-expires": 600_000, "remarks": TABLE})
    every = pika.BasicProperties(
        content_type="application/octet-stream",
        content_encoding="identity",
        headers=TABLE,
        delivery_mode=1,
        priority=9,
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
    channel.basic_publish("", "samples", b"all properties", every)
    channel.basic_publish("", "samples", b"no properties at all")
    channel.basic_publish("", "samples", b"", pika.BasicProperties(headers={}, type=""))
    _, _, body = channel.basic_get("samples", auto_ack=True)
    assert body == b"all properties"
    basket = Basket(connection)
    channel.basic_consume("samples", basket, arguments={"x-priority": 10}, auto_ack=True)
    basket.fill(2)
    channel.queue_delete("samples")


def large(shop: Shop) -> None:
    """Bodies of many frames, of exactly one, of one octet more, and none, with frame-max 4096."""
    connection = shop.connect(frame_max=4096)
    channel = connection.channel()
    channel.queue_declare("crates")
    sizes = [9000, 4088, 4089, 1, 0]
    for size in sizes:
        channel.basic_publish("", "crates", (b"0123456789abcdef" * 600)[:size])
    basket = Basket(connection)
    channel.basic_consume("crates", basket)
    basket.fill(len(sizes))
    assert [len(body) for body in basket.bodies] == sizes
    channel.basic_ack(basket.tags[-1], multiple=True)
    channel.queue_delete("crates")


def channel_errors(shop: Shop) -> None:
    """One channel after the other is closed by the server, each for another reason."""
    connection = shop.connect()
    other = shop.connect(client_properties={"connection_name": "neighbour"})
    keeper = other.channel()
    keeper.queue_declare("private", exclusive=True)
    keeper.queue_declare("shared")
    keeper.basic_consume("shared", Basket(other), exclusive=True)

    def publish_to_nowhere(channel: Any) -> None:
        channel.basic_publish("nowhere", "key", b"lost")
        channel.basic_publish("nowhere", "key", b"after that")  # in flight when the close comes
        channel.queue_declare("never-declared")

    def acknowledge_twice(channel: Any) -> None:
        channel.basic_publish("", "found", b"once")
        channel.queue_declare("found")
        channel.basic_publish("", "found", b"once")
        method, _, _ = channel.basic_get("found")
        channel.basic_ack(method.delivery_tag)
        channel.basic_ack(method.delivery_tag)
        connection.process_data_events(time_limit=1)
        channel.queue_delete("found")

    faults: list[tuple[int, Callable[[Any], Any]]] = [
        (404, lambda channel: channel.queue_declare("missing", passive=True)),
        (404, publish_to_nowhere),
        (404, lambda channel: channel.basic_consume("missing", Basket(connection))),
        (406, lambda channel: channel.queue_declare("shared", durable=True)),
        (406, acknowledge_twice),
        (406, lambda channel: channel.queue_delete("shared", if_unused=True)),
        (405, lambda channel: channel.queue_declare("private")),
        (403, lambda channel: channel.queue_declare("amq.reserved")),
        (403, lambda channel: channel.basic_consume("shared", Basket(connection))),
    ]
    for code, fault in faults:
        with expected(ChannelClosedByBroker, code):
            fault(connection.channel())
    keeper.queue_delete("shared")


def connection_errors(shop: Shop) -> None:
    """One connection after the other is closed by the server, each for another reason."""

    def unknown_exchange_type(channel: Any) -> None:
        channel.exchange_declare("odd", exchange_type="roundabout")

    def one_tag_twice(channel: Any) -> None:
        channel.queue_declare("orders", exclusive=True)
        other = channel.connection.channel()
        for used in (channel, other, channel):  # on another channel it is another consumer
            used._impl.basic_consume("orders", lambda *_: None, consumer_tag="clerk")
            used._impl._consumers.clear()  # else pika sees the fault first
            channel.connection.process_data_events(time_limit=0.2)
        channel.connection.process_data_events(time_limit=1)

    faults: list[tuple[int, Callable[[Any], Any]]] = [
        (503, unknown_exchange_type),
        (540, lambda channel: channel.flow(False)),
        (540, lambda channel: channel.basic_qos(prefetch_size=1000)),
        (530, one_tag_twice),
    ]
    for code, fault in faults:
        with expected(ConnectionClosedByBroker, code):
            fault(shop.connect().channel())


def virtual_host(shop: Shop) -> None:
    """A virtual host that is not there: the server closes instead of open-ok."""
    with expected(ProbableAccessDeniedError):
        shop.connect(virtual_host="cellar")


def heartbeat(shop: Shop) -> None:
    """Heartbeats of both sides in silence."""
    connection = shop.connect(heartbeat=1)
    channel = connection.channel()
    channel.queue_declare("quiet", exclusive=True)
    until = time.monotonic() + 3.2
    while time.monotonic() < until:
        connection.process_data_events(time_limit=0.2)


def heartbeat_missed(shop: Shop) -> None:
    """The application works for so long that no heartbeat is sent: the server ends the connection."""
    connection = shop.connect(heartbeat=1)
    channel = connection.channel()
    stock(channel, "chores", GOODS[:1])
    method, _, _ = channel.basic_get("chores")
    time.sleep(4.5)  # the chore
    with expected(AMQPConnectionError):
        channel.basic_ack(method.delivery_tag)
        connection.process_data_events(time_limit=1)


def control(*command: str) -> None:
    """Runs rabbitmqctl for the server of this recording."""
    subprocess.run(["./control", *command], check=True, stdout=subprocess.DEVNULL)


def blocked(shop: Shop) -> None:
    """The server has too little memory: publishers are informed, and stopped, until there is enough."""
    connection = shop.connect()
    states: list[str] = []
    connection.add_on_connection_blocked_callback(lambda _, frame: states.append(frame.method.reason))
    connection.add_on_connection_unblocked_callback(lambda _, frame: states.append("unblocked"))
    channel = connection.channel()
    channel.queue_declare("orders")
    channel.basic_publish("", "orders", b"tea")
    control("set_vm_memory_high_watermark", "absolute", "1000000")
    channel.basic_publish("", "orders", b"cocoa")
    while len(states) < 1:
        connection.process_data_events(time_limit=0.5)
    channel.basic_publish("", "orders", b"umbrella")  # stays unread until the alarm is over
    connection.process_data_events(time_limit=0.3)
    control("set_vm_memory_high_watermark", "0.4")
    while len(states) < 2:
        connection.process_data_events(time_limit=0.5)
    assert channel.queue_delete("orders").method.message_count == 3


def cancelled(shop: Shop) -> None:
    """A queue is deleted under its consumers, by another connection and by the operator."""
    connection, other = shop.connect(), shop.connect(client_properties={"connection_name": "neighbour"})
    channel, neighbour = connection.channel(), other.channel()
    cancellations: list[str] = []
    channel.add_on_cancel_callback(lambda frame: cancellations.append(frame.method.consumer_tag))
    basket = Basket(connection)
    stock(channel, "orders", GOODS[:3])
    channel.basic_consume("orders", basket, consumer_tag="clerk")
    channel.basic_consume("orders", basket, consumer_tag="cashier")
    basket.fill(3)
    neighbour.queue_delete("orders")
    while len(cancellations) < 2:
        connection.process_data_events(time_limit=0.5)
    channel.basic_ack(basket.tags[-1], multiple=True)  # deliveries outlive their queue
    channel.queue_declare("orders")


def channels(shop: Shop) -> None:
    """Five channels at once, each with its consumer; opened, used and closed in different orders."""
    connection = shop.connect()
    opened = [connection.channel() for _ in range(5)]
    baskets = []
    for number, channel in enumerate(opened):
        channel.queue_declare(f"counter-{number}", exclusive=True)
        basket = Basket(connection)
        baskets.append(basket)
        channel.basic_consume(f"counter-{number}", basket)
    for name in GOODS[:4]:
        for number, channel in enumerate(opened):
            channel.basic_publish("", f"counter-{(number + 1) % 5}", name.encode())
    for basket in baskets:
        basket.fill(4)
    for channel, basket in zip(reversed(opened), reversed(baskets), strict=True):
        channel.basic_ack(basket.tags[-1], multiple=True)
    for number in (3, 0, 4):
        opened[number].close()
    again = connection.channel()  # takes the number of one that was closed
    again.queue_declare("counter-5", exclusive=True)
    opened[1].close()


def replies(shop: Shop) -> None:
    """Questions whose answers come by direct reply-to, a pseudo-queue; consumed without acknowledgement."""
    connection, other = shop.connect(), shop.connect(client_properties={"connection_name": "prices"})
    channel, server = connection.channel(), other.channel()
    server.queue_declare("prices", auto_delete=True)
    questions = Basket(other)
    answers = Basket(connection)

    def answer(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        assert properties.reply_to.startswith("amq.rabbitmq.reply-to.")
        questions(channel, method, properties, body)
        same = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, b"%d" % len(body), same)
        channel.basic_ack(method.delivery_tag)

    server.basic_consume("prices", answer)
    channel.basic_consume("amq.rabbitmq.reply-to", answers, auto_ack=True)
    for number, name in enumerate(GOODS[:3], 1):
        ask = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
        channel.basic_publish("", "prices", name.encode(), ask)
        questions.fill(number)
        answers.fill(number)
    assert answers.bodies == [b"3", b"5", b"8"]


def dead_letters(shop: Shop) -> None:
    """Expired, rejected and surplus messages come to a dead-letter exchange; priorities."""
    connection = shop.connect()
    channel = connection.channel()
    channel.exchange_declare("undeliverable", "fanout")
    channel.queue_declare("morgue")
    channel.queue_bind("morgue", "undeliverable")
    to_morgue = {"x-dead-letter-exchange": "undeliverable"}
    channel.queue_declare("fresh", arguments={**to_morgue, "x-message-ttl": 100})
    channel.queue_declare("urgent", arguments={**to_morgue, "x-max-priority": 9, "x-max-length": 3})
    channel.basic_publish("", "fresh", b"milk")
    for priority in (1, 9, 5, 7):
        channel.basic_publish(
            "", "urgent", b"priority %d" % priority, pika.BasicProperties(priority=priority, headers={"k": 1})
        )
    basket = Basket(connection)
    channel.basic_consume("urgent", basket)
    basket.fill(3)
    channel.basic_reject(basket.tags[0], requeue=False)
    channel.basic_ack(basket.tags[1])
    channel.basic_ack(basket.tags[2])
    dead = Basket(connection)
    channel.basic_consume("morgue", dead, auto_ack=True)
    dead.fill(3)
    for queue in ("fresh", "urgent", "morgue"):
        channel.queue_delete(queue)
    channel.exchange_delete("undeliverable")


def abandoned(shop: Shop) -> None:
    """A client goes without a word, with messages unacknowledged; they come again to the next one."""
    command = [sys.executable, __file__, "leave", *sys.argv[2:]]
    subprocess.run(command, check=True)
    connection = shop.connect()
    channel = connection.channel()
    basket = Basket(connection)
    channel.basic_consume("orders", basket)
    basket.fill(3)
    channel.basic_ack(basket.tags[-1], multiple=True)
    channel.queue_delete("orders")


def leave(shop: Shop) -> None:
    """The first half of `abandoned`."""
    connection = shop.connect()
    channel = connection.channel()
    stock(channel, "orders", GOODS[:3])
    basket = Basket(connection)
    channel.basic_consume("orders", basket)
    basket.fill(3)
    os._exit(0)


def late(shop: Shop) -> None:
    """A delivery is not acknowledged in the time that the server allows: it closes the channel."""
    connection = shop.connect()
    channel = connection.channel()
    stock(channel, "orders", GOODS[:2])
    basket = Basket(connection)
    channel.basic_consume("orders", basket)
    basket.fill(2)
    channel.basic_ack(basket.tags[0])
    while channel.is_open:
        connection.sleep(0.2)
    connection.channel().queue_delete("orders")


def two_threads(shop: Shop) -> None:
    """Two threads publish large messages on one channel: frames of one get between those of the other.

    pika itself gets into disorder of many kinds then, so that any error of its means that they met.
    """
    sys.setswitchinterval(1e-6)
    for _ in range(10):
        connection = shop.connect(frame_max=4096)
        channel = connection.channel()
        channel.queue_declare("crates", exclusive=True)
        begin = threading.Barrier(2)

        def publish(letter: bytes, channel: Any = channel, begin: Any = begin) -> None:
            begin.wait()
            with contextlib.suppress(Exception):
                for _ in range(2):
                    channel.basic_publish("", "crates", letter * 5000)

        threads = [threading.Thread(target=publish, args=(letter,), daemon=True) for letter in (b"a", b"b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        try:
            channel.queue_declare("crates", passive=True)
        except Exception as error:
            print(type(error), error)
            shop.connections.clear()
            return
        connection.close()
    raise AssertionError("the threads never met")


def encrypted(shop: Shop) -> None:
    """TLS to a port that has none."""
    context = ssl.create_default_context()
    with expected(ssl.SSLError):
        shop.connect(ssl_options=pika.SSLOptions(context, "warehouse.example"))


def refused(shop: Shop) -> None:
    """A wrong password."""
    shop.credentials = pika.PlainCredentials("shop", "not-the-made-up-one")
    with expected(ProbableAuthenticationError):
        shop.connect()


SCENARIOS: dict[str, Callable[[Shop], None]] = {
    "publish-consume": publish_consume,
    "prefetch": prefetch,
    "confirm": confirm,
    "transactions": transactions,
    "types": types,
    "large": large,
    "channel-errors": channel_errors,
    "connection-errors": connection_errors,
    "virtual-host": virtual_host,
    "heartbeat": heartbeat,
    "heartbeat-missed": heartbeat_missed,
    "blocked": blocked,
    "cancelled": cancelled,
    "channels": channels,
    "replies": replies,
    "dead-letters": dead_letters,
    "abandoned": abandoned,
    "leave": leave,
    "late": late,
    "two-threads": two_threads,
    "encrypted": encrypted,
    "refused": refused,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", choices=sorted(SCENARIOS))
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    options.add_argument("--user", default="shop")
    options.add_argument("--password", default="made-up-for-captures")
    given = options.parse_args()
    signal.alarm(LIFETIME)
    shop = Shop(given.connect, given.user, given.password)
    SCENARIOS[given.scenario](shop)
    shop.close()


if __name__ == "__main__":
    main()
