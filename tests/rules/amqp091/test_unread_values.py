"""AMQP 0-9-1: what rests on a value that cannot be read is not known, and accuses nobody."""

from __future__ import annotations

from typing import Any

import pytest
from support import amqp091_encode as amqp
from support.dialogue091 import CLIENT_CAPABILITIES, SERVER_CAPABILITIES, Dialogue091
from support.judged import judged

LATIN_1 = b"caf\xe9"

UNKNOWN_TAG = b"\x01xZ"
"""A pair with a tag of no type."""


def certain(d: Dialogue091) -> list[tuple[str, str]]:
    """Rule and peer of what is certain, but for recommendations that the words of a dialogue leave out."""
    while_read, at_end = judged(d.pcap())
    return [
        (one.rule.partition("/")[2], one.peer)
        for one in while_read + at_end
        if one.certain and not one.rule.endswith("-PROPS")
    ]


def with_unknown_tag(payload: bytes, at: int) -> bytes:
    """A method whose table at this octet begins with a value that nobody can read."""
    size = int.from_bytes(payload[at : at + 4], "big") + len(UNKNOWN_TAG)
    return payload[:at] + size.to_bytes(4, "big") + UNKNOWN_TAG + payload[at + 4 :]


def opened(garbling: str = "") -> Dialogue091:
    """An open connection with a channel. garbling: which of the two has reported itself unreadably."""
    d = Dialogue091()
    d.client.header()
    start = amqp.method(
        "connection.start",
        version_minor=9,
        server_properties=properties("RabbitMQ", SERVER_CAPABILITIES),
        mechanisms="PLAIN",
        locales="en_US",
    )
    d.server.frame(amqp.METHOD, 0, with_unknown_tag(start, 6) if garbling == "server" else start)
    start_ok = amqp.method(
        "connection.start-ok",
        client_properties=properties("Pika", CLIENT_CAPABILITIES),
        mechanism="PLAIN",
        response=b"\0guest\0guest",
        locale="en_US",
    )
    d.client.frame(amqp.METHOD, 0, with_unknown_tag(start_ok, 4) if garbling == "client" else start_ok)
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.channel(1)
    return d


def properties(product: str, capabilities: tuple[str, ...]) -> dict[str, Any]:
    return {"product": product, "version": "3.13.1", "capabilities": dict.fromkeys(capabilities, True)}


def test_capabilities_of_a_client_that_cannot_be_read_are_not_absent() -> None:
    d = opened("client")
    d.server.blocked()
    d.server.unblocked()
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    d.goodbye()
    assert certain(d) == [("T-TABLE-TAG", "client")]


def test_capabilities_of_a_server_that_cannot_be_read_are_not_absent() -> None:
    d = opened("server")
    d.ask("confirm.select")
    d.ask("exchange.declare", exchange="a", type="fanout")
    d.ask("exchange.declare", exchange="b", type="fanout", reserved_2=True)
    d.ask("exchange.bind", destination="a", source="b")
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.server.deliver()
    d.client.method("basic.nack", delivery_tag=1, requeue=True)
    d.goodbye()
    assert certain(d) == [("T-TABLE-TAG", "server")]


def test_an_exchange_whose_name_cannot_be_read_is_not_the_default_exchange() -> None:
    d = opened()
    d.client.publish(exchange=LATIN_1)  # type: ignore[arg-type]
    d.server.close_channel(404, "NOT_FOUND", cause="basic.publish")
    d.client.channel_close_ok()
    d.goodbye()
    assert certain(d) == [("T-SHORTSTR-UTF8", "client")]


def test_a_message_that_comes_back_may_be_one_that_could_not_be_read() -> None:
    d = opened()
    d.client.publish(exchange=LATIN_1, routing_key="k", mandatory=True)  # type: ignore[arg-type]
    d.server.method("basic.return", reply_code=312, reply_text="NO_ROUTE", exchange="meant", routing_key="k")
    d.server.content_header(5)
    d.server.body(b"hello")
    d.goodbye()
    assert certain(d) == [("T-SHORTSTR-UTF8", "client")]


@pytest.mark.parametrize("by", ["client", "server"])
def test_a_queue_whose_name_cannot_be_read_is_the_current_one(by: str) -> None:
    d = opened()
    d.client.method("queue.declare", queue=LATIN_1 if by == "client" else "")
    d.server.method("queue.declare-ok", queue=LATIN_1 if by == "server" else "meant")
    d.ask("queue.bind", queue="", exchange="amq.topic", routing_key="k")
    d.ask("queue.purge", queue="")
    d.consume("", consumer_tag="c")
    d.server.deliver()
    d.client.ack()
    d.ask("queue.unbind", queue="", exchange="amq.topic", routing_key="k")
    d.ask("queue.delete", queue="")
    d.goodbye()
    assert certain(d) == [("T-SHORTSTR-UTF8", by)]


def test_the_next_declaration_makes_the_current_queue_known_again() -> None:
    d = opened()
    d.client.method("queue.declare", queue=LATIN_1)
    d.server.method("queue.declare-ok", queue="meant")
    d.client.method("queue.declare", queue="other")
    d.server.method("queue.declare-ok", queue="another")
    d.goodbye()
    assert certain(d) == [("T-SHORTSTR-UTF8", "client"), ("Q-DECLOK-NAME", "server")]


def test_a_consumer_whose_tag_cannot_be_read_may_be_any() -> None:
    d = opened()
    d.declare("q")
    d.client.method("basic.consume", queue="q", consumer_tag=LATIN_1)
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.server.deliver()
    d.client.ack()
    d.client.method("basic.cancel", consumer_tag="c")
    d.server.method("basic.cancel-ok", consumer_tag="c")
    d.goodbye()
    assert certain(d) == [("T-SHORTSTR-UTF8", "client")]


def test_a_mechanism_that_cannot_be_read_may_have_been_offered() -> None:
    d = Dialogue091()
    d.client.header()
    d.server.start()
    d.client.start_ok(mechanism=LATIN_1)
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.goodbye()
    assert certain(d) == [("T-SHORTSTR-UTF8", "client")]


@pytest.mark.parametrize("numbers", [b"\x00\x3c\x03\xe7", b"\x03\xe7\x00\x28"])
def test_a_method_that_nobody_knows_may_have_content(numbers: bytes) -> None:
    d = opened()
    publish = amqp.method("basic.publish", routing_key="q")
    d.client.frame(amqp.METHOD, 1, numbers + publish[4:])
    d.client.content_header(5)
    d.client.body(b"hello")
    d.goodbye()
    assert certain(d) == [("F-METHOD-KNOWN", "client")]


def test_a_heartbeat_with_a_payload_may_have_been_a_method() -> None:
    d = opened()
    d.client.frame(amqp.HEARTBEAT, 2, amqp.method("channel.open"))
    d.server.channel_open_ok(2)
    d.client.method("basic.qos", 2, prefetch_count=1)
    d.server.method("basic.qos-ok", 2)
    d.goodbye()
    assert [one for one in certain(d) if not one[0].startswith("F-")] == []


def test_a_message_that_announces_too_much_may_have_been_taken() -> None:
    d = opened()
    d.ask("confirm.select")
    d.client.publish_method()
    d.client.content_header(6)
    d.client.body(b"hello")
    d.server.ack(1)
    d.client.publish()
    d.server.ack(2)
    d.goodbye()
    assert [one for one in certain(d) if one[1] == "server"] == []


def test_one_fault_of_a_content_header_does_not_hide_another() -> None:
    d = opened()
    d.client.publish(reserved="cluster", delivery_mode=3)
    d.goodbye()
    assert certain(d) == [("T-RESERVED-PROP", "client"), ("B-PROP-DELIVERY-MODE", "client")]


def test_one_fault_of_a_method_does_not_hide_another() -> None:
    d = opened()
    d.client.method("basic.get", queue="", reserved_1=7)
    d.goodbye()
    assert sorted(certain(d)) == [("B-GET-QKNOWN", "client"), ("T-TICKET-ZERO", "client")]


def test_what_one_peer_does_does_not_hide_that_the_other_does_it() -> None:
    d = Dialogue091()
    d.opened()
    d.client.open_channel(reserved_1="0")
    d.server.channel_open_ok(reserved_1=b"1")
    d.client.open_channel(2, reserved_1="0")
    d.server.channel_open_ok(2, reserved_1=b"1")
    d.goodbye()
    assert certain(d) == [("T-RESERVED-CHAN", "client"), ("T-RESERVED-CHAN", "server")]


def test_what_a_broker_hands_on_is_reported_of_its_publisher_alone() -> None:
    d = opened()
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.client.publish(reserved="cluster")
    d.server.deliver(reserved="cluster")
    d.client.ack()
    d.goodbye()
    while_read, at_end = judged(d.pcap())
    found = [(one.rule, one.peer) for one in while_read + at_end if one.rule == "amqp091/T-RESERVED-PROP"]
    assert found == [("amqp091/T-RESERVED-PROP", "client")]
