"""Strings and field tables of AMQP 0-9-1."""

from __future__ import annotations

from scenarios.pairs import legal, pair
from support import amqp091_encode as amqp
from support.conversation import Said
from support.dialogue091 import Dialogue091


def opened(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)


def declared(d: Dialogue091, said: Said, rule: str, code: int = 501) -> None:
    """The server's answer to a queue.declare: it refuses the wrong one."""
    if d.wrong:
        said.breaks(rule)
        d.server.close_connection(code, "FRAME_ERROR", "queue.declare")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


def declare_with(d: Dialogue091, table: bytes) -> Said:
    """A queue.declare whose arguments are these octets, the length among them."""
    payload = amqp.method("queue.declare", queue="q")[:-4] + table
    return d.client.frame(amqp.METHOD, 1, payload)


@pair("T-SHORTSTR-NUL")
def zero_octet_in_a_routing_key(d: Dialogue091) -> None:
    opened(d)
    said = d.client.publish(routing_key="key\0" if d.wrong else "key")
    if d.wrong:
        said.breaks("T-SHORTSTR-NUL")
    d.goodbye()


@pair("T-SHORTSTR-UTF8")
def routing_key_in_latin_1(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.declare_exchange()
    key = "K\xf6ln"
    arguments = {"queue": "q", "exchange": "x", "no_wait": True}
    said = d.client.method(
        "queue.bind", routing_key=key.encode("latin-1" if d.wrong else "utf-8"), **arguments
    )
    if d.wrong:
        said.breaks("T-SHORTSTR-UTF8")
        d.server.close_connection(501, "FRAME_ERROR - Malformed UTF-8 in shortstr", "queue.bind")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("T-SHORTSTR-UTF8")
def message_id_that_the_broker_hands_on(d: Dialogue091) -> None:
    opened(d)
    d.declare()
    d.consume(no_ack=True)
    for number in range(2):
        said = d.server.deliver(message_id=b"\xff\xfe" if d.wrong else "id")
        if d.wrong and number == 0:
            said.may_break("T-SHORTSTR-UTF8")
    d.goodbye()


@pair("T-LENGTH-BOUNDS")
def table_longer_than_its_frame(d: Dialogue091) -> None:
    opened(d)
    table = amqp.table({"x-max-length": ("I", 5)})
    size = len(table) - 4 + (20 if d.wrong else 0)
    said = declare_with(d, size.to_bytes(4, "big") + table[4:])
    declared(d, said, "T-LENGTH-BOUNDS")


@pair("T-TABLE-NAME-LEN")
def name_of_129_characters(d: Dialogue091) -> None:
    opened(d)
    said = d.client.publish(headers={"n" * (129 if d.wrong else 128): "v"})
    if d.wrong:
        said.breaks("T-TABLE-NAME-LEN")
    d.goodbye()


@pair("T-TABLE-DUP")
def the_same_header_twice(d: Dialogue091) -> None:
    opened(d)
    second = "trace" if d.wrong else "Trace"
    said = d.client.publish(headers=[("trace", "a"), (second, "b")])
    if d.wrong:
        said.breaks("T-TABLE-DUP")
    d.goodbye()


@pair("T-TABLE-TAG")
def argument_with_a_tag_of_no_type(d: Dialogue091) -> None:
    opened(d)
    table = amqp.table({"x-max-length": ("I", 5)})
    said = declare_with(d, table.replace(b"I\0\0\0\5", b"Z\0\0\0\5") if d.wrong else table)
    declared(d, said, "T-TABLE-TAG", 541)


@pair("T-TABLE-LEN")
def table_that_ends_inside_a_value(d: Dialogue091) -> None:
    opened(d)
    table = amqp.table({"x-max-length": ("I", 5)})
    said = declare_with(d, amqp.long_string(table[4:-1]) if d.wrong else table)
    declared(d, said, "T-TABLE-LEN", 541)


@pair("T-TABLE-DIALECT")
def printed_types_for_rabbitmq(d: Dialogue091) -> None:
    opened(d)
    arguments = {"comment": ("s", "lazy"), "number": ("I", 5)}
    dialect = amqp.PRINTED
    if not d.wrong:
        arguments["comment"] = ("S", "lazy")
    said = declare_with(d, amqp.table(arguments, dialect))
    if d.wrong:
        said.may_break("T-TABLE-DIALECT")
        d.server.close_connection(541, "INTERNAL_ERROR", "queue.declare")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


@pair("T-TABLE-NAME-START")
def name_that_begins_with_an_underscore(d: Dialogue091) -> None:
    opened(d)
    name = "__TypeId__" if d.wrong else "TypeId__"
    for number in range(2):
        said = d.client.publish(content_type="text/plain", headers={"a": True, name: "java.lang.String"})
        if d.wrong and number == 0:
            said.breaks("T-TABLE-NAME-START")
    d.goodbye()


@pair("T-TABLE-NAME-START", "T-TABLE-NAME-REACT")
def argument_that_begins_with_a_hyphen(d: Dialogue091) -> None:
    opened(d)
    asked, answered = d.declare(arguments={"-x" if d.wrong else "x-": True})
    if d.wrong:
        asked.breaks("T-TABLE-NAME-START")
        answered.breaks("T-TABLE-NAME-REACT")
    d.goodbye()


@pair("T-TIMESTAMP")
def timestamp_in_milliseconds(d: Dialogue091) -> None:
    opened(d)
    for number in range(2):
        said = d.client.publish(timestamp=1_700_000_000 * (1000 if d.wrong else 1))
        if d.wrong and number == 0:
            said.may_break("T-TIMESTAMP")
    d.goodbye()


@pair("T-RESERVED-PROP")
def cluster_id_of_a_message(d: Dialogue091) -> None:
    opened(d)
    said = d.client.publish(reserved="cluster" if d.wrong else "")
    if d.wrong:
        said.breaks("T-RESERVED-PROP")
    d.goodbye()


@legal("a broker of the printed grammar, and a client that speaks it")
def tables_of_the_printed_grammar(d: Dialogue091) -> None:
    d.product = "Some Broker"
    d.dialect = amqp.PRINTED
    opened(d)
    d.client.publish(headers={"s": ("s", "short"), "U": ("U", -1), "l": ("l", 1 << 63)})
    d.goodbye()


@legal("every type that RabbitMQ knows, tables in arrays in tables, and names in any script")
def tables_of_all_types(d: Dialogue091) -> None:
    opened(d)
    headers = {
        "t": True,
        "b": ("b", -1),
        "B": ("B", 255),
        "s": ("s", -2),
        "u": ("u", 65535),
        "I": ("I", -3),
        "i": ("i", 4_000_000_000),
        "l": ("l", -4),
        "L": ("L", -5),
        "f": ("f", 0.5),
        "d": ("d", 0.25),
        "D": ("D", (2, -314)),
        "S": "text",
        "octets": ("S", b"\xff\x00"),
        "A": ("A", ["one", ("I", 2), {"deep": ("A", [])}]),
        "T": ("T", 1_700_000_000),
        "F": {"inner": {}},
        "V": None,
        "x": ("x", b"\0\1"),
        "K\u00f6ln-\u043a\u043b\u044e\u0447": "value",
        "$": "dollar",
        "#1": "hash",
    }
    d.client.publish(headers=headers)
    d.client.method("queue.declare", queue="q", no_wait=True, arguments=headers)
    d.goodbye()
