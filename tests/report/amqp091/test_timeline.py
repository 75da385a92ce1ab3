"""What the timeline says of AMQP 0-9-1: a line a frame, and what stands below it."""

from __future__ import annotations

import json

import pytest
from support import amqp091_encode as amqp
from support.commands import unprintable
from support.rendered import as_json, lines, records

OPENED = amqp.say("channel.open", 1)
PUBLISHED = amqp.say("basic.publish", 1, routing_key="q")
PRODUCT = {"product": "pika", "version": "1.3", "capabilities": {"basic.nack": True}}


def reported(octets: bytes, verbosity: int = 0) -> list[str]:
    """What is shown about the last frame of a client that is logged in."""
    found = records(OPENED + octets)
    shown = lines(found, verbosity)
    before = lines(found[:-1], verbosity)
    assert shown[: len(before)] == before
    return shown[len(before) :]


@pytest.mark.parametrize(
    ("octets", "line"),
    [
        (amqp.say("basic.publish", 1), 'basic.publish  exchange="" routing-key=""'),
        (
            amqp.say("basic.publish", 1, exchange="x y", routing_key="a.b", mandatory=True, immediate=True),
            'basic.publish  exchange="x y" routing-key=a.b mandatory immediate',
        ),
        (
            amqp.say("basic.deliver", 1, consumer_tag="c", delivery_tag=7, redelivered=True, routing_key="q"),
            'basic.deliver  #7 consumer-tag=c exchange="" routing-key=q redelivered',
        ),
        (
            amqp.say("basic.get-ok", 1, delivery_tag=1, message_count=3),
            'basic.get-ok   #1 exchange="" routing-key="" message-count=3',
        ),
        (amqp.say("basic.ack", 1, delivery_tag=7), "basic.ack      #7"),
        (amqp.say("basic.nack", 1, delivery_tag=0, multiple=True), "basic.nack     #0 multiple"),
        (
            amqp.say("basic.reject", 1, delivery_tag=2**64 - 1, requeue=True),
            "basic.reject   #18446744073709551615 requeue",
        ),
        (
            amqp.say("basic.qos", 1, prefetch_count=10, global_=True),
            "basic.qos      prefetch-count=10 global",
        ),
        (amqp.say("basic.qos", 1, prefetch_size=5), "basic.qos      prefetch-size=5 prefetch-count=0"),
        (
            amqp.say("basic.return", 1, reply_code=312, reply_text="NO_ROUTE", routing_key="q"),
            'basic.return   312 "NO_ROUTE" exchange="" routing-key=q',
        ),
        (
            amqp.say("channel.close", 1, reply_code=404, reply_text='no "q"', class_id=50, method_id=10),
            'channel.close  404 "no \\"q\\"" caused by queue.declare',
        ),
        (
            amqp.say("connection.close", 0, reply_code=503, class_id=99, method_id=1),
            'connection.close 503 "" caused by 99.1',
        ),
        (amqp.say("connection.close", 0, reply_code=200, reply_text="bye"), 'connection.close 200 "bye"'),
        (
            amqp.say("queue.declare", 1, queue="q", durable=True, arguments={"x-max-length": ("I", 5)}),
            "queue.declare  queue=q durable arguments={x-max-length=5}",
        ),
        (amqp.say("queue.declare", 1, reserved_1=1), 'queue.declare  reserved-1=1 queue=""'),
        (
            amqp.say("connection.tune", 0, channel_max=2047, frame_max=131072, heartbeat=60),
            "connection.tune channel-max=2047 frame-max=131072 heartbeat=60s",
        ),
        (
            amqp.say(
                "connection.start",
                0,
                version_minor=9,
                server_properties=PRODUCT,
                mechanisms="PLAIN AMQPLAIN",
                locales="en_US",
            ),
            'connection.start (pika 1.3) "PLAIN AMQPLAIN"',
        ),
        (
            amqp.say("connection.start-ok", 0, client_properties=PRODUCT, mechanism="PLAIN", response=b"123"),
            'connection.start-ok (pika 1.3) PLAIN locale="" response=(hidden, 3 octets)',
        ),
        (
            amqp.say("connection.update-secret", 0, new_secret=b"12", reason="old"),
            "connection.update-secret reason=old new-secret=(hidden, 2 octets)",
        ),
        (amqp.say("tx.commit", 1), "tx.commit"),
        (amqp.heartbeat(), "heartbeat      keeps the connection alive"),
        (PUBLISHED + amqp.content(1, b""), "content-header body-size=0"),
        (
            PUBLISHED + amqp.content(1, b"", delivery_mode=2, timestamp=0, content_type="text/plain"),
            "content-header body-size=0 content-type=text/plain delivery-mode=2 "
            "timestamp=1970-01-01T00:00:00Z",
        ),
        (
            PUBLISHED + amqp.content(1, b"", headers={"a": ("d", 1.5), "password": "x"}),
            "content-header body-size=0 headers={a=1.5, password=(hidden, 1 octet)}",
        ),
        (PUBLISHED + amqp.content(1, b"hello"), "body           5 octets"),
        (
            PUBLISHED + amqp.content(1, b"hello", frame_max=11),
            "body           2 octets, the last of 5 in 2 frames",
        ),
        (
            amqp.content(1, b"hello"),
            "body           5 octets ends a message of 5 octets whose method is not there",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_line(octets: bytes, line: str) -> None:
    assert reported(octets) == [line]


def test_a_message_that_is_cut_short() -> None:
    octets = PUBLISHED + amqp.content(1, b"hello", frame_max=11)[:-10]
    octets += amqp.say("basic.ack", 1, delivery_tag=1)
    assert reported(octets) == [
        "basic.ack      #1 ends a message not all of which is there: 3 of 5 octets",
        "      ! F-CONTENT-NO-METHOD basic.ack: the peer sends basic.ack, but 2 octets of the body of "
        "the previous basic.publish are still missing (at octet 0)",
    ]


def test_columns_are_as_wide_as_names_need() -> None:
    shown = lines(records(amqp.header() + OPENED + amqp.say("basic.ack", 1, delivery_tag=1)))
    assert shown[1:] == ["header      AMQP 0-9-1", "channel.open", "basic.ack      #1"]


# ---- what stands below -------------------------------------------------------------------------------------


def test_all_fields() -> None:
    arguments = {
        "x-max-length": ("I", 5),
        "x-queue-type": "quorum",
        "nested": {"a": ("T", 1), "b": ("x", b"\0")},
    }
    assert reported(amqp.say("queue.declare", 1, queue="q", durable=True, arguments=arguments), 1)[2:] == [
        "      reserved-1: 0 (short)",
        "      queue: q (shortstr)",
        "      passive: false (bit)",
        "      durable: true (bit)",
        "      exclusive: false (bit)",
        "      auto-delete: false (bit)",
        "      no-wait: false (bit)",
        "      arguments:",
        "        x-max-length: 5 (long-int)",
        "        x-queue-type: quorum",
        "        nested: {a=1970-01-01T00:00:01Z, b=0x00}",
    ]


def test_every_type_in_a_table_is_named() -> None:
    items = {
        "byte array": ("x", b"ab"),
        "decimal": ("D", (1, 15)),
        "float": ("f", 0.5),
        "double": ("d", 0.5),
        "long-int": ("I", 1),
        "long-long-int": ("l", 1),
        "long-uint": ("i", 1),
        "short-int": ("s", 1),
        "short-short-int": ("b", 1),
        "short-short-uint": ("B", 1),
        "short-uint": ("u", 1),
        "timestamp": ("T", 1),
        "long-string": ("S", b"\xff"),
    }
    shown = reported(amqp.say("queue.declare", 1, arguments=items), 1)[-len(items) :]
    for name, line in zip(items, shown, strict=True):
        assert line.endswith(f" ({name})")
    plain = {"null": None, "true": True, "text": "text", "[1, a]": ("A", [("B", 1), "a"]), "{}": {}}
    shown = reported(amqp.say("queue.declare", 1, arguments=plain), 1)[-len(plain) :]
    for name, line in zip(plain, shown, strict=True):
        assert line.endswith(f": {name}")


def test_content_header() -> None:
    assert reported(PUBLISHED + amqp.content(1, b"x", type="t", headers={"a": True})[:-9], 1)[2:] == [
        "      class-id: 60 (short)",
        "      weight: 0 (short)",
        "      body-size: 1 (longlong)",
        "      properties: basic",
        "        headers:",
        "          a: true",
        "        type: t (shortstr)",
    ]


def test_bodies_are_shown_only_when_asked_for() -> None:
    octets = PUBLISHED + amqp.content(1, b"line one\x1bline two", frame_max=18)
    for verbosity in (0, 1):
        assert not any("line" in line for line in reported(octets, verbosity))
    assert reported(octets, 1)[-3:] == [
        "      message of 17 octets",
        "        method: basic.publish",
        "        body: 17 octets (-vv shows them)",
    ]
    assert reported(octets, 2)[-3:] == [
        "        body: 17 octets",
        "        0000  6c 69 6e 65 20 6f 6e 65 1b 6c 69 6e 65 20 74 77  line one.line tw",
        "        0010  6f                                               o",
    ]
    assert reported(PUBLISHED + amqp.content(1, b"one\ntwo"), 2)[-2:] == ["          one", "          two"]


def test_problems_and_octets() -> None:
    octets = amqp.frame(amqp.METHOD, 1, amqp.method("queue.delete", queue="q") + b"??")
    assert reported(octets) == [
        "queue.delete   queue=q",
        "      ! F-METHOD-TRAILING queue.delete: 2 octets follow the last argument (at octet 16)",
    ]
    assert reported(octets, 2)[-2:] == [
        "      0000  01 00 01 00 00 00 0b 00 32 00 28 00 00 01 71 00  ........2.(...q.",
        "      0010  3f 3f ce                                         ??.",
    ]


def test_octets_of_a_malformed_body_frame_are_the_message_s() -> None:
    octets = amqp.frame(amqp.BODY, 1, b"message", end=b"\0")
    shown = reported(octets, 2)
    assert shown[-1] == "      0000  03 00 01 00 00 00 07 00                          ........"
    assert not any("mes" in line for line in shown if "message" not in line)


def test_a_method_that_nobody_knows() -> None:
    assert reported(amqp.frame(amqp.METHOD, 1, b"\0\x63\0\x05abc")) == [
        "undecodable    class-id=99 method-id=5 15 octets",
        "      ! F-METHOD-KNOWN undecodable: no method has the class-id 99 and the method-id 5 (at octet 7)",
    ]


def test_frames_that_are_none_of_the_known() -> None:
    assert reported(amqp.frame(4, 1, b"abc"))[0] == "unknown        11 octets"
    assert reported(amqp.frame(amqp.METHOD, 1, b"abc"))[0] == "undecodable    11 octets"
    assert reported(amqp.frame(amqp.HEADER, 1, b"abc"))[0] == "content-header 11 octets"


def test_headers_of_another_class() -> None:
    payload = amqp.content_header(5, class_id=50, weight=3)
    assert (
        reported(amqp.frame(amqp.HEADER, 1, payload))[0] == "content-header body-size=5 class-id=50 weight=3"
    )


# ---- hostile, and equal ------------------------------------------------------------------------------------

HOSTILE = "\x1b[31m\u202e\n[red]\u200b\x00"


def test_nothing_unprintable_is_shown() -> None:
    text = HOSTILE.replace("\x00", "")
    octets = b"".join(
        (
            amqp.say("queue.declare", 1, queue=text, arguments={text: text, "a": ("A", [{text: text}])}),
            amqp.say("basic.publish", 1, exchange=text, routing_key=text),
            amqp.content(1, HOSTILE.encode(), message_id=text, headers={text: ("x", text.encode())}),
            amqp.say("channel.close", 1, reply_code=500, reply_text=text),
            amqp.say("basic.publish", 1, exchange=HOSTILE, routing_key=HOSTILE.encode("utf-16")),
            amqp.frame(amqp.METHOD, 1, b"\0\x63\0\x05" + HOSTILE.encode()),
        )
    )
    found = records(OPENED + octets)
    for verbosity in range(3):
        assert unprintable("\n".join(lines(found, verbosity))) == []
    for line in as_json(found, bodies=True):
        assert line.isascii()
        assert line.isprintable()
        json.loads(line)


def test_text_and_json_say_the_same() -> None:
    """Numbers, texts, moments and octets look alike in both."""
    arguments = {"n": ("l", -5), "t": ("T", 1_700_000_000), "d": ("D", (2, 150)), "s": "a/b"}
    octets = amqp.say("queue.declare", 1, queue="a.b", arguments=arguments)
    text = "\n".join(reported(octets, 1))
    fields = json.loads(as_json(records(OPENED + octets))[-1])["fields"]
    assert f"queue: {fields['queue']} (" in text
    for name, kind in (("n", "long-long-int"), ("t", "timestamp"), ("d", "decimal")):
        assert f"{name}: {fields['arguments'][name][kind]} ({kind})" in text
    assert f"s: {fields['arguments']['s']}\n" in text + "\n"
