"""Values in the fields of methods of AMQP 0-9-1: names, reply codes, and what is to stay empty."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported
from support.dialogue091 import Dialogue091


def opened(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)


@pair("T-XNAME-LEN")
def exchange_name_of_128_octets(d: Dialogue091) -> None:
    opened(d)
    name = "x" * (128 if d.wrong else 127)
    asked, _ = d.declare_exchange(name)
    if d.wrong:
        asked.breaks("T-XNAME-LEN")
    d.client.publish(exchange=name)
    d.goodbye()


@pair("T-XNAME-RE")
def published_to_an_odd_exchange(d: Dialogue091) -> None:
    opened(d)
    for number in range(3):
        said = d.client.publish(exchange="orders/new" if d.wrong else "orders.new:all")
        if d.wrong and number == 0:
            said.breaks("T-XNAME-RE")
    d.goodbye()


@pair("T-XNAME-RE")
def delivered_from_an_odd_exchange(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.consume(no_ack=True)
    for number in range(3):
        said = d.server.deliver(exchange="orders/new" if d.wrong else "orders.new:all")
        if d.wrong and number == 0:
            said.may_break("T-XNAME-RE")
    d.goodbye()


@pair("T-QNAME-LEN")
def queue_name_of_128_octets(d: Dialogue091) -> None:
    opened(d)
    d.declare("q" * 127)
    if d.wrong:
        d.client.get("q" * 128).breaks("T-QNAME-LEN")
    else:
        d.client.get("q" * 127)
    d.server.get_empty()
    d.goodbye()


@pair("T-QNAME-RE")
def consumed_from_an_odd_queue(d: Dialogue091) -> None:
    opened(d)
    asked, _ = d.consume("work queue" if d.wrong else "work_queue-1")
    if d.wrong:
        asked.breaks("T-QNAME-RE")
    d.goodbye()


@pair("T-PATH-NOTNULL")
def no_virtual_host(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    said = d.client.open_connection("" if d.wrong else "/")
    if d.wrong:
        said.breaks("T-PATH-NOTNULL")
        d.server.fin()
        d.client.fin()
        return
    d.server.connection_open_ok()
    d.goodbye()


@reported("one fault, one finding: that there is no such virtual host follows from its empty name")
def no_virtual_host_refused(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection("").breaks("T-PATH-NOTNULL")
    said = d.server.close_connection(530, "NOT_ALLOWED - vhost  not found", "connection.open")
    said.breaks("C-HS-ERROR-SILENT")
    d.client.connection_close_ok()
    d.tcp.goodbye()


@pair("T-PATH-LEN")
def virtual_host_of_128_octets(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    said = d.client.open_connection("v" * (128 if d.wrong else 127))
    if d.wrong:
        said.breaks("T-PATH-LEN")
        d.server.fin()
        d.client.fin()
        return
    d.server.connection_open_ok()
    d.goodbye()


@pair("T-REPLYCODE-NOTNULL")
def closed_with_the_code_0(d: Dialogue091) -> None:
    opened(d)
    said = d.client.close_channel(0 if d.wrong else 200)
    d.server.channel_close_ok()
    if d.wrong:
        said.breaks("T-REPLYCODE-NOTNULL")
    d.goodbye()


@pair("T-REPLYTEXT-NOTNULL")
def closed_without_a_text(d: Dialogue091) -> None:
    opened(d)
    said = d.client.close_connection(200, "" if d.wrong else "bye")
    if d.wrong:
        said.breaks("T-REPLYTEXT-NOTNULL")
    d.server.connection_close_ok()
    d.tcp.goodbye()


@pair("T-TICKET-ZERO")
def ticket_that_nobody_gave(d: Dialogue091) -> None:
    opened(d)
    asked, _ = d.declare("q", reserved_1=1 if d.wrong else 0)
    if d.wrong:
        asked.breaks("T-TICKET-ZERO")
    d.goodbye()


@pair("T-RESERVED-CONN")
def insisted(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    said = d.client.open_connection(reserved_2=d.wrong)
    if d.wrong:
        said.breaks("T-RESERVED-CONN")
    d.server.connection_open_ok()
    d.goodbye()


@pair("T-RESERVED-CHAN")
def opened_out_of_band(d: Dialogue091) -> None:
    d.opened()
    said = d.client.open_channel(reserved_1="0" if d.wrong else "")
    if d.wrong:
        said.breaks("T-RESERVED-CHAN")
    d.server.channel_open_ok()
    d.goodbye()


@pair("T-RESERVED-XDECL")
def auto_delete_exchange_of_another_broker(d: Dialogue091) -> None:
    d.product = "Some Broker"
    opened(d)
    asked, _ = d.declare_exchange("x", reserved_2=d.wrong)
    if d.wrong:
        asked.breaks("T-RESERVED-XDECL")
    d.goodbye()


@pair("T-RESERVED-GETEMPTY")
def cluster_in_get_empty(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.client.get()
    said = d.server.method("basic.get-empty", reserved_1="rabbit@one" if d.wrong else "")
    if d.wrong:
        said.breaks("T-RESERVED-GETEMPTY")
    d.goodbye()


@legal("auto-delete and internal exchanges of RabbitMQ")
def auto_delete_exchange_of_rabbitmq(d: Dialogue091) -> None:
    opened(d)
    d.declare_exchange("x", reserved_2=True)
    d.declare_exchange("y", reserved_3=True)
    d.goodbye()


@legal("an old client sends the ticket that it was given")
def ticket_that_the_server_gave(d: Dialogue091) -> None:
    opened(d)
    d.client.method("access.request", realm="/data", active=True, write=True, read=True)
    d.server.method("access.request-ok", ticket=1)
    d.declare("q", reserved_1=1)
    d.goodbye()


@legal("names that brokers make up, and every character that names may have")
def names_of_all_characters(d: Dialogue091) -> None:
    opened(d)
    d.declare_exchange("Az09-_.:")
    d.declare("Az09-_.:")
    d.bind("Az09-_.:", "Az09-_.:")
    d.ask("queue.declare", answer={"queue": "amq.gen+/=="})
    d.client.get("amq.gen+/==")
    d.server.get_empty()
    d.client.publish(exchange="")
    d.goodbye()
