"""What a summary gathers from the frames of an AMQP 0-9-1 connection."""

from __future__ import annotations

from support import amqp091_encode as amqp
from support.rendered import records

from amqpscope.model.records import SERVER
from amqpscope.report.capture_summary import CaptureSummary
from amqpscope.report.connection_summary import ConnectionOverview

START = amqp.say(
    "connection.start",
    0,
    server_properties={"product": "RabbitMQ", "version": "3.10", "cluster_name": "rabbit@a"},
)
START_OK = amqp.header() + amqp.say(
    "connection.start-ok",
    0,
    client_properties={"product": "pika", "version": "1.3", "connection_name": "shop"},
    mechanism="PLAIN",
    response=b"\0a\0b",
)
TUNE = amqp.say("connection.tune", 0)


def summed_up(client: bytes, server: bytes = b"") -> ConnectionOverview:
    gathered = CaptureSummary({})
    found = records(client, server)
    for number, record in enumerate(found, 1):
        record.packet = number
        gathered.add(record)
    return gathered.connections[found[0].connection]


def _both(summary: ConnectionOverview, what: str) -> tuple[object, object]:
    """What is known of the client and of the server."""
    return getattr(summary.client, what), getattr(summary.server, what)


def test_who_talks_to_whom() -> None:
    summary = summed_up(START_OK, START + TUNE)
    assert _both(summary, "product") == ("pika 1.3", "RabbitMQ 3.10")
    assert _both(summary, "container") == ("shop", "rabbit@a")
    assert (summary.mechanism, summary.sasl_outcome) == ("PLAIN", "ok")
    assert _both(summary, "frames") == (2, 2)


def test_peers_that_say_nothing_of_themselves() -> None:
    odd = amqp.say("connection.start-ok", 0, client_properties={"product": ("I", 1), "version": "2"})
    summary = summed_up(odd, amqp.say("connection.start", 0))
    assert _both(summary, "product") == ("2", "")
    assert _both(summary, "container") == ("", "")


def test_a_login_that_is_refused() -> None:
    close = amqp.say("connection.close", 0, reply_code=403, reply_text="ACCESS_REFUSED")
    assert summed_up(START_OK, START + close).sasl_outcome == "refused"
    assert summed_up(START_OK, START + TUNE + close).sasl_outcome == "ok"
    assert summed_up(START_OK + close, START).sasl_outcome == ""
    assert summed_up(amqp.header(), START + close).sasl_outcome == ""


def test_channels() -> None:
    summary = summed_up(
        amqp.say("channel.open", 1) + amqp.say("channel.open", 7), amqp.say("channel.open-ok", 1)
    )
    assert (summary.sessions, summary.session_word) == (2, "channel")


def test_messages() -> None:
    publish = amqp.say("basic.publish", 1)
    octets = publish + amqp.content(1, b"hello", frame_max=11) + publish + amqp.content(1, b"")
    cut = publish + amqp.content(1, b"hello", frame_max=11)[:-10] + amqp.say("basic.ack", 1)
    summary = summed_up(octets + cut, amqp.say("basic.deliver", 1) + amqp.content(1, b"abc"))
    assert _both(summary, "messages") == (2, 1)
    assert _both(summary, "message_octets") == (8, 3)


def test_errors() -> None:
    closes = b"".join(
        (
            amqp.say("channel.close", 1, reply_code=404, reply_text="no queue"),
            amqp.say("channel.close", 2, reply_code=404, reply_text="no queue"),
            amqp.say("channel.close", 3, reply_code=200, reply_text="bye"),
            amqp.say("basic.return", 1, reply_code=312, reply_text="NO_ROUTE"),
            amqp.say("connection.close", 0, reply_code=999),
        )
    )
    summary = summed_up(amqp.say("channel.open", 1), closes)
    reported = [
        (error.packet, error.peer, error.what, error.condition, error.description, error.count)
        for error in summary.errors.values()
    ]
    assert reported == [
        (2, SERVER, "channel.close", "404:not-found", "no queue", 2),
        (5, SERVER, "basic.return", "312:no-route", "NO_ROUTE", 1),
        (6, SERVER, "connection.close", "999", None, 1),
    ]
    assert _both(summary, "closed") == (0, 6)
    answered = summed_up(amqp.say("connection.close", 0), amqp.say("connection.close-ok", 0))
    assert _both(answered, "closed") == (1, 2)


def test_a_close_that_is_cut_short_has_no_reason() -> None:
    close = amqp.frame(amqp.METHOD, 0, amqp.method("connection.close")[:5])
    summary = summed_up(close)
    assert _both(summary, "closed") == (1, 0)
    assert (summary.errors, summary.problems) == ({}, 1)
