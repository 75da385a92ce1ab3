"""Which frames of AMQP 0-9-1 `--only` takes."""

from __future__ import annotations

import pytest
from support import amqp091_encode as amqp
from support.rendered import records

from amqpscope.cli.selection import Selection, parse_names
from amqpscope.errors import FilterError

OCTETS = b"".join(
    (
        amqp.header(),
        amqp.say("channel.open", 1),
        amqp.say("basic.publish", 1),
        amqp.content(1, b"a"),
        amqp.say("basic.ack", 1, delivery_tag=1),
        amqp.frame(amqp.METHOD, 1, b"\0\x63\0\x05"),
        amqp.heartbeat(),
        amqp.say("basic.reject", 1, delivery_tag=1),
        amqp.say("basic.nack", 1, delivery_tag=1),
        amqp.say("basic.return", 1, reply_code=312),
        amqp.say("channel.close", 1, reply_code=404),
        amqp.say("connection.close", 0, reply_code=320),
        amqp.say("channel.close", 1, reply_code=200),
        amqp.say("connection.close", 0, reply_code=200),
        amqp.frame(4, 1, b"x"),
    )
)
FOUND = records(OCTETS)
NAMES = [record.frame.name for record in FOUND]


def taken(only: str) -> list[int]:
    selection = Selection(only=parse_names(only))
    return [number for number, record in enumerate(FOUND) if selection.takes(record, None)]


def of(*names: str) -> list[int]:
    return [number for number, name in enumerate(NAMES) if name in names]


@pytest.mark.parametrize(
    ("only", "numbers"),
    [
        ("basic.publish", of("basic.publish")),
        ("BASIC.PUBLISH, heartbeat", of("basic.publish", "heartbeat")),
        ("basic", [2, 5, 8, 9, 10]),
        ("channel,header", [0, 1, 11, 13]),
        ("content-header,body", [3, 4]),
        ("undecodable", [6]),
        ("unknown", [15]),
        ("problem", [6, 15]),
        ("method", [1, 2, 5, 6, 8, 9, 10, 11, 12, 13, 14]),
        ("error", [8, 9, 10, 11, 12]),
    ],
)
def test_only(only: str, numbers: list[int]) -> None:
    assert numbers
    assert taken(only) == numbers


SENT = records(
    b"".join(
        (
            amqp.header(),
            amqp.say("queue.declare", 1, queue="orders"),
            amqp.say("basic.publish", 1, routing_key="orders.new"),
            amqp.say("basic.publish", 2, exchange="orders"),
            amqp.content(1, b"a"),
            amqp.say("basic.publish", 1, routing_key="news"),
            amqp.content(2, b"b"),
            amqp.content(1, b"c"),
            amqp.say("exchange.bind", 1, source="a", destination="b"),
            amqp.heartbeat(),
        )
    )
)


@pytest.mark.parametrize(
    ("address", "numbers"),
    [
        ("orders*", [1, 2, 3, 4, 5, 7, 8]),
        ("orders", [1, 3, 7, 8]),
        ("news", [6, 9, 10]),
        ("[ab]", []),
        ("b", [11]),
    ],
)
def test_address(address: str, numbers: list[int]) -> None:
    """With the content that goes there, whatever other channels say in between."""
    selection = Selection(address=address)
    assert [number for number, record in enumerate(SENT) if selection.takes(record, None)] == numbers
    selection.restart()
    assert not selection.takes(SENT[4], None)


@pytest.mark.parametrize("only", ["basic.publis", "basic.", ".publish", "", "basic,publish"])
def test_what_is_no_frame(only: str) -> None:
    with pytest.raises(FilterError, match=r"is no frame; there are header, .* methods as basic\.publish"):
        parse_names(only)
