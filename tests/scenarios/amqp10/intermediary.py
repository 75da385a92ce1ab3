"""Messages that a broker takes on one connection and sends on over another."""

from __future__ import annotations

from functools import partial

from scenarios.pairs import add_pair, legal, reported, without
from support import amqp10_encode as amqp
from support.dialogue import Dialogue, Said

PROPERTIES = amqp.properties(message_id="m-1", subject="a")
APPLICATION = amqp.application_properties({"colour": "red"})
DATA = amqp.data(b"hello")
MESSAGE = PROPERTIES + APPLICATION + DATA


def sent_on(d: Dialogue, came: bytes, left: bytes, seconds: float = 5) -> Said:
    """A client sends a message; another one receives it from the broker. What the broker said."""
    d.linked()
    d.client.transfer(came).called("came")
    d.server.disposition(0, settled=True, state=amqp.accepted())
    d.goodbye()
    d.wait(seconds=seconds)
    later = d.again()
    later.opened(client={"container_id": "reader"})
    later.client.begin()
    later.server.begin()
    later.client.attach(amqp.RECEIVER)
    later.server.attach(amqp.SENDER)
    later.client.flow(handle=0, link_credit=10)
    said = later.server.transfer(left)
    later.client.disposition(0, settled=True, state=amqp.accepted())
    later.goodbye()
    return said


# Rule: the message as it came, as it wrongly leaves, as it rightly leaves, and the seconds between.
ON_THE_WAY: dict[str, tuple[bytes, bytes, bytes, float]] = {
    "M-BARE-NOINSERT": (
        PROPERTIES + DATA,
        PROPERTIES + amqp.application_properties({"received": "now"}) + DATA,
        amqp.message_annotations({"x-opt-received": "now"}) + PROPERTIES + DATA,
        5,
    ),
    "M-PROPS-UNALTERED": (
        MESSAGE,
        amqp.properties(message_id="m-1", subject="b") + APPLICATION + DATA,
        MESSAGE,
        5,
    ),
    "T-MAP-ORDER": (
        PROPERTIES + amqp.application_properties({"colour": "red", "size": "small"}) + DATA,
        PROPERTIES + amqp.application_properties({"size": "small", "colour": "red"}) + DATA,
        PROPERTIES + amqp.application_properties({"colour": "red", "size": "small"}) + DATA,
        5,
    ),
    "M-ANN-PROPAGATE": (
        amqp.message_annotations({"x-opt-trace": "1", "x-opt-region": "north"}) + MESSAGE,
        amqp.message_annotations({"x-opt-region": "south"}) + MESSAGE,
        amqp.message_annotations({"x-opt-region": "south", "x-opt-trace": "1", "x-opt-hops": "2"}) + MESSAGE,
        5,
    ),
    "M-BARE-IMMUTABLE": (
        MESSAGE,
        PROPERTIES + APPLICATION + amqp.amqp_value("hello"),
        MESSAGE,
        5,
    ),
    "M-HDR-TTL-REDUCE": (
        amqp.header(ttl=60_000) + MESSAGE,
        amqp.header(ttl=60_000) + MESSAGE,
        amqp.header(ttl=39_990) + MESSAGE,
        20,
    ),
    "M-HDR-TTL-EXPIRED": (
        amqp.header(ttl=10_000) + MESSAGE,
        amqp.header(ttl=1) + MESSAGE,
        amqp.header(ttl=500) + MESSAGE,
        20,
    ),
    "M-HDR-DELCOUNT-ZERO": (
        MESSAGE,
        amqp.header(delivery_count=1) + MESSAGE,
        amqp.header(delivery_count=0) + MESSAGE,
        5,
    ),
}


def _reported(rule: str, way: tuple[bytes, bytes, bytes, float], d: Dialogue) -> None:
    came, wrong, right, seconds = way
    if rule == "M-HDR-TTL-EXPIRED" and not d.wrong:
        seconds = 9
    said = sent_on(d, came, wrong if d.wrong else right, seconds)
    if d.wrong:
        said.may_break(rule)


@reported("properties encoded anew")
def properties_encoded_anew(d: Dialogue) -> None:
    """The same values in other octets: what is signed is octets."""
    fields = ("m-1", None, None, "a")
    anew = amqp.described(amqp.ulong(0x73), amqp.list_(fields, "widest"))
    sent_on(d, MESSAGE, anew + APPLICATION + DATA).may_break("M-BARE-IMMUTABLE")


for _rule, _way in ON_THE_WAY.items():
    add_pair(
        f"on_the_way_{_rule.lower().replace('-', '_')}",
        partial(_reported, _rule, _way),
        _rule,
        cut=without("came"),
    )


@reported("a message-id that two messages have")
def a_message_id_that_two_messages_have(d: Dialogue) -> None:
    """Which of them was sent on is not known."""
    d.linked()
    d.client.transfer(MESSAGE)
    d.client.transfer(PROPERTIES + DATA).may_break("M-ID-UNIQUE")
    d.server.disposition(0, 1, settled=True, state=amqp.accepted())
    d.goodbye()
    d.wait(seconds=5)
    later = d.again()
    later.subscribed()
    later.server.transfer(PROPERTIES + APPLICATION + amqp.data(b"else"))
    later.client.disposition(0, settled=True, state=amqp.accepted())
    later.goodbye()


@reported("application properties in the same order, in another encoding")
def encoded_otherwise(d: Dialogue) -> None:
    wide = amqp.application_properties([("colour", amqp.string("red"))])
    left = (
        PROPERTIES + amqp.section("application-properties", amqp.map_([("colour", "red")], "widest")) + DATA
    )
    assert amqp.application_properties({"colour": "red"}) == wide
    sent_on(d, PROPERTIES + wide + DATA, left).may_break("M-BARE-IMMUTABLE")


@legal("an application that sends a message again")
def an_application_that_sends_a_message_again(d: Dialogue) -> None:
    """What a client received and then sends, changed, is its own message, whatever its id."""
    d.subscribed()
    d.server.transfer(MESSAGE)
    d.client.disposition(0, settled=True, state=amqp.accepted())
    d.goodbye()
    d.wait(seconds=5)
    later = d.again()
    later.linked()
    later.client.transfer(PROPERTIES + amqp.data(b"answer"))
    later.server.disposition(0, settled=True, state=amqp.accepted())
    later.goodbye()


@legal("a message delivered for the second time")
def a_message_delivered_for_the_second_time(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(MESSAGE)
    d.server.disposition(0, settled=True, state=amqp.accepted())
    d.goodbye()
    d.wait(seconds=5)
    later = d.again()
    later.subscribed()
    later.server.transfer(MESSAGE)
    later.client.disposition(0, settled=True, state=amqp.modified(delivery_failed=True))
    later.server.transfer(amqp.header(delivery_count=1) + MESSAGE)
    later.client.disposition(1, settled=True, state=amqp.accepted())
    later.goodbye()
