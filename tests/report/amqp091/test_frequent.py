"""The lines of frequent frames: the same text as the way that asks each field what it is."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp
from support.rendered import records
from support.sampling import examples, thorough

from amqpscope.report.amqp091.brief import describe_arguments, describe_header
from amqpscope.report.amqp091.frequent import frequent_header, frequent_method
from amqpscope.report.line import Pen
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader

MANY = 1_000 if thorough() else examples(100)
"""Examples of a property."""

WORDS = st.sampled_from(["", "q", "x y", "a.b", "7", "true", 'quo"te', "amqp://u:p@h/", "é", "long" * 40])
TAGS = st.integers(0, 2**64 - 1)
METHODS = st.one_of(
    st.builds(
        lambda a, b, c, d: amqp.say("basic.publish", 1, exchange=a, routing_key=b, mandatory=c, immediate=d),
        WORDS,
        WORDS,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda a, b, c, d, e: amqp.say(
            "basic.deliver", 1, consumer_tag=a, delivery_tag=b, redelivered=c, exchange=d, routing_key=e
        ),
        WORDS,
        TAGS,
        st.booleans(),
        WORDS,
        WORDS,
    ),
    st.builds(lambda a, b: amqp.say("basic.ack", 1, delivery_tag=a, multiple=b), TAGS, st.booleans()),
)
TABLES = st.dictionaries(st.sampled_from(["a", "x-death", "password"]), st.one_of(WORDS, st.booleans()))
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "content_type": WORDS,
        "content_encoding": WORDS,
        "headers": TABLES,
        "delivery_mode": st.integers(0, 255),
        "priority": st.integers(0, 255),
        "correlation_id": WORDS,
        "reply_to": WORDS,
        "expiration": WORDS,
        "message_id": WORDS,
        "timestamp": st.integers(0, 2**63 - 1),
        "type": WORDS,
        "user_id": WORDS,
        "app_id": WORDS,
    },
)
OPENED = amqp.say("channel.open", 1)


@settings(max_examples=MANY, deadline=None)
@given(METHODS)
def test_methods(octets: bytes) -> None:
    method = records(OPENED + octets)[-1].frame.body
    assert isinstance(method, Method)
    pen = Pen(False)
    assert frequent_method(pen, method)
    assert pen.take_line() == describe_arguments(method)


@settings(max_examples=MANY, deadline=None)
@given(PROPERTIES, st.integers(0, 2**64 - 1))
def test_content_headers(properties: Any, size: int) -> None:
    published = OPENED + amqp.say("basic.publish", 1, routing_key="q")
    header = records(published + amqp.frame(2, 1, amqp.content_header(size, **properties)))[-1].frame.body
    assert isinstance(header, ContentHeader)
    pen = Pen(False)
    quick = frequent_header(pen, header)
    assert quick or not header.sound
    if quick:
        assert pen.take_line() == describe_header(header)
