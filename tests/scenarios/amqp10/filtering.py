"""Filters that are in force, and messages that cannot have passed them."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

SELECTOR = "apache.org:selector-filter:string"

TEA = amqp.properties(subject="tea") + amqp.application_properties({"kind": "tea", "weight": amqp.int_(2)})
COFFEE = amqp.properties(subject="coffee") + amqp.application_properties({"kind": "coffee"})
BODY = amqp.data(b"x")


def _filtered(d: Dialogue, filters: bytes, *messages: bytes, certain: bool = False) -> None:
    """The server's source has these filters, and it sends these messages; the last one is at fault."""
    d.begun()
    source = amqp.source(address="q", filter=amqp.map_([(amqp.symbol("f"), filters)]))
    d.client.attach(RECEIVER, source=source)
    d.server.attach(SENDER, source=source).called("server attach")
    d.client.flow(handle=0, link_credit=100)
    for message in messages:
        said = d.server.transfer(message + BODY)
    if d.wrong:
        said.may_break("M-FILTER-ACTUAL")
    d.goodbye()


@pair("M-FILTER-ACTUAL", cut=without("server attach"))
def message_that_fails_its_selector(d: Dialogue) -> None:
    _filtered(d, amqp.described(SELECTOR, "kind = 'tea'"), TEA, COFFEE if d.wrong else TEA)


@pair("M-FILTER-ACTUAL", cut=without("server attach"))
def message_of_another_subject(d: Dialogue) -> None:
    _filtered(d, amqp.described(amqp.ulong(0x468C00000000), "tea"), TEA, COFFEE if d.wrong else TEA)


@reported("application-properties-filter, and reported once")
def message_of_another_property(d: Dialogue) -> None:
    wanted = amqp.map_([("weight", amqp.int_(3)), ("kind", amqp.string("tea"))])
    _filtered(d, amqp.described("amqp:application-properties-filter", wanted), TEA, COFFEE)


@reported("properties-filter")
def message_of_another_subject_by_a_map(d: Dialogue) -> None:
    wanted = amqp.map_([(amqp.symbol("subject"), amqp.string("tea"))])
    _filtered(d, amqp.described(amqp.ulong(0x173), wanted), TEA, COFFEE)


@legal("filters that are not simply understood, or say nothing of a message")
def messages_that_may_pass(d: Dialogue) -> None:
    d.wrong = False
    d.begun()
    filters = [
        amqp.described(SELECTOR, text)
        for text in (
            "kind <> 'tea'",
            "kind = 'tea' OR kind = 'coffee'",
            "JMSType = 'tea'",
            "amqp.subject = 'tea'",
            "weight = 2",
            "colour = 'green'",
            "'" * 3000,
        )
    ]
    filters += [
        amqp.described("com.example:selector", "kind = 'tea'"),
        amqp.described("amqp:properties-filter", amqp.map_([(amqp.symbol("subject"), amqp.string("&p:co"))])),
        amqp.described(amqp.ulong(0x468C00000003), amqp.list_([])),
    ]
    source = amqp.source(
        address="q", filter=amqp.map_([(amqp.symbol(f"f{n}"), one) for n, one in enumerate(filters)])
    )
    d.client.attach(RECEIVER, source=source)
    d.server.attach(SENDER, source=source)
    d.client.flow(handle=0)
    d.server.transfer(COFFEE + BODY)
    d.server.transfer(BODY)
    d.client.attach(handle=1, name="r", source=amqp.source(address="q"))
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1)
    d.client.transfer(COFFEE + BODY, handle=1)
    d.goodbye()
