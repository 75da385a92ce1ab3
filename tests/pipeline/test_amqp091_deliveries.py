"""What the table of deliveries says of AMQP 0-9-1: deliveries, gets, publishes, and who settled them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import amqp091_encode as amqp
from support.lakes import CAPTURES
from support.rendered import records
from support.tcp_writer import Capture

from amqpscope.input.capture import Capture as Read
from amqpscope.model.records import FrameRecord
from amqpscope.pipeline import deliveries
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.deliveries import DeliveryRow
from amqpscope.pipeline.deliveries091 import Amqp091Log
from amqpscope.pipeline.rows import Rows
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp091.methods import BasicReturn

C, S = 0, 1
Said = tuple[int, bytes]


def deliver(
    tag: int, consumer: str = "c", body: bytes = b"hello", key: str = "q", exchange: str = ""
) -> Said:
    method = amqp.say(
        "basic.deliver", 1, consumer_tag=consumer, delivery_tag=tag, routing_key=key, exchange=exchange
    )
    return S, method + amqp.content(1, body, frame_max=11)


def publish(body: bytes = b"hello", channel: int = 1) -> Said:
    return C, amqp.say("basic.publish", channel, routing_key="q") + amqp.content(channel, body)


def said(who: int, name: str, channel: int = 1, **given: object) -> Said:
    return who, amqp.say(name, channel, **given)


def spoken(*turns: Said) -> list[FrameRecord]:
    """The frames of turns, each in a packet of its own."""
    found = records(
        b"".join(octets for who, octets in turns if who == C), b"".join(o for w, o in turns if w == S)
    )
    sides = [[record for record in found if record.direction == side] for side in (C, S)]
    ordered: list[FrameRecord] = []
    for number, (who, octets) in enumerate(turns, 1):
        left = len(octets)
        while left > 0:
            record = sides[who].pop(0)
            record.packet = number
            record.time = number * 1000
            left -= int(record.frame.size)
            ordered.append(record)
    return ordered


def log(*turns: Said) -> list[DeliveryRow]:
    """All deliveries, in the order in which they are over."""
    kept = Amqp091Log(None)
    found: list[DeliveryRow] = []
    for record in spoken(*turns):
        found += kept.take(record, None)
    return found + kept.finish()


def reported(*turns: Said) -> list[tuple[object, ...]]:
    return [
        (one.id, one.outcome, one.settled_by, one.settled_packet, one.complete, one.payload)
        for one in log(*turns)
    ]


def test_a_delivery_that_is_acked() -> None:
    (delivery,) = log(deliver(7, "c1", key="k", exchange="x"), said(C, "basic.ack", delivery_tag=7))
    assert (delivery.id, delivery.sender, delivery.channel, delivery.packet) == (7, "server", 1, 1)
    assert (delivery.link_name, delivery.address) == ("c1", "x/k")
    assert (delivery.transfers, delivery.payload, delivery.complete) == (2, 5, True)
    assert (delivery.outcome, delivery.settled_by, delivery.settled_packet) == ("ack", "client", 2)
    assert delivery.settled_time - delivery.time == 1000


@pytest.mark.parametrize(
    ("name", "given", "outcome"),
    [
        ("basic.nack", {}, "nack"),
        ("basic.nack", {"requeue": True}, "nack requeue"),
        ("basic.reject", {}, "reject"),
        ("basic.reject", {"requeue": True}, "reject requeue"),
    ],
)
def test_outcomes(name: str, given: dict[str, object], outcome: str) -> None:
    answer = said(C, name, delivery_tag=1, **given)
    assert reported(deliver(1), answer) == [(1, outcome, "client", 2, True, 5)]


def test_several_at_once() -> None:
    three = (deliver(1), deliver(2), deliver(3))
    acked = [(1, "ack", "client", 4, True, 5), (2, "ack", "client", 4, True, 5)]
    left = (3, "", "", 0, True, 5)
    assert reported(*three, said(C, "basic.ack", delivery_tag=2, multiple=True)) == [*acked, left]
    assert reported(*three, said(C, "basic.ack", delivery_tag=2))[0] == acked[1]
    everything = reported(*three, said(C, "basic.ack", delivery_tag=0, multiple=True))
    assert [row[:3] for row in everything] == [(tag, "ack", "client") for tag in (1, 2, 3)]


def test_an_ack_on_another_channel_or_of_another_tag_settles_nothing() -> None:
    for answer in (said(C, "basic.ack", 2, delivery_tag=1), said(C, "basic.ack", delivery_tag=2)):
        assert reported(deliver(1), answer) == [(1, "", "", 0, True, 5)]
    assert reported(deliver(1), said(S, "basic.ack", delivery_tag=1)) == [(1, "", "", 0, True, 5)]


def test_a_consumer_without_ack() -> None:
    asked = said(C, "basic.consume", consumer_tag="c", no_ack=True)
    free = [(1, "", "server", 3, True, 5)]
    assert reported(asked, said(S, "basic.consume-ok", consumer_tag="c"), deliver(1)) == free
    # The server gives the name.
    asked = said(C, "basic.consume", no_ack=True)
    assert reported(asked, said(S, "basic.consume-ok", consumer_tag="c"), deliver(1)) == free
    kept = said(C, "basic.consume", consumer_tag="d")
    assert reported(kept, said(S, "basic.consume-ok", consumer_tag="d"), deliver(1, "d")) == [
        (1, "", "", 0, True, 5)
    ]


def test_answers_come_in_the_order_of_the_questions() -> None:
    asked = (said(C, "basic.consume"), said(C, "basic.consume", no_ack=True))
    answers = (said(S, "basic.consume-ok", consumer_tag="a"), said(S, "basic.consume-ok", consumer_tag="b"))
    rows = reported(*asked, *answers, deliver(1, "a"), deliver(2, "b"))
    assert [(row[0], row[2]) for row in rows] == [(2, "server"), (1, "")]


def test_a_name_that_was_cancelled_says_nothing_more() -> None:
    asked = said(C, "basic.consume", consumer_tag="c", no_ack=True, no_wait=True)
    again = said(C, "basic.consume", consumer_tag="c", no_wait=True)
    rows = reported(asked, said(C, "basic.cancel", consumer_tag="c", no_wait=True), again, deliver(1))
    assert rows == [(1, "", "", 0, True, 5)]


def test_gets() -> None:
    got = (S, amqp.say("basic.get-ok", 1, delivery_tag=1, routing_key="q") + amqp.content(1, b"hello"))
    assert reported(said(C, "basic.get"), got, said(C, "basic.ack", delivery_tag=1)) == [
        (1, "ack", "client", 3, True, 5)
    ]
    free = said(C, "basic.get", no_ack=True)
    assert reported(free, got) == [(1, "", "server", 2, True, 5)]
    assert reported(free, said(S, "basic.get-empty"), said(C, "basic.get"), got) == [(1, "", "", 0, True, 5)]


def test_publishes() -> None:
    assert reported(publish()) == [(None, "", "client", 1, True, 5)]
    assert reported(publish(b"")) == [(None, "", "client", 1, True, 0)]
    select = said(C, "confirm.select")
    confirmed = reported(
        publish(), select, publish(), publish(), said(S, "basic.ack", delivery_tag=2, multiple=True)
    )
    assert confirmed == [
        (None, "", "client", 1, True, 5),
        (1, "ack", "server", 5, True, 5),
        (2, "ack", "server", 5, True, 5),
    ]
    assert reported(select, publish(), said(S, "basic.nack", delivery_tag=1)) == [
        (1, "nack", "server", 3, True, 5)
    ]
    assert reported(select, publish(channel=2), publish()) == [
        (None, "", "client", 2, True, 5),
        (1, "", "", 0, True, 5),
    ]


def test_a_returned_message_is_no_delivery() -> None:
    returned = (S, amqp.say("basic.return", 1, reply_code=312) + amqp.content(1, b"hello"))
    assert reported(publish(), returned) == [(None, "", "client", 1, True, 5)]


def test_channels_are_over() -> None:
    for end in (said(S, "channel.close"), said(C, "channel.close"), said(C, "channel.open")):
        rows = reported(deliver(1), end, said(C, "basic.ack", delivery_tag=1), deliver(1))
        assert rows == [(1, "", "", 0, True, 5), (1, "", "", 0, True, 5)]


def test_messages_cut_short() -> None:
    cut = (S, amqp.say("basic.deliver", 1, delivery_tag=1) + amqp.content(1, b"hello", frame_max=11)[:-10])
    assert reported(cut) == [(1, "", "", 0, False, 3)]
    assert reported(cut, deliver(2), said(C, "basic.ack", delivery_tag=1))[0] == (
        1,
        "ack",
        "client",
        3,
        False,
        3,
    )
    free = (C, amqp.say("basic.publish", 1))
    assert reported(free, publish()) == [(None, "", "client", 2, False, 0), (None, "", "client", 2, True, 5)]


def test_after_lost_octets_no_confirm_belongs_to_a_message() -> None:
    kept = Amqp091Log(None)
    found: list[DeliveryRow] = []
    said_first = spoken(said(C, "confirm.select"), publish())
    skipped = spoken((C, b"garbage" * 9))
    assert skipped[0].frame.kind == "skipped"
    for record in [*said_first, *skipped, *spoken(publish()), *spoken(said(S, "basic.ack", delivery_tag=2))]:
        found += kept.take(record, None)
    assert [(one.id, one.settled_by) for one in [*found, *kept.finish()]] == [(None, "client"), (1, "")]


def test_too_many_unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_UNSETTLED", 2)
    many = [deliver(tag) for tag in (1, 2, 3)]
    rows = reported(*many, said(C, "basic.ack", delivery_tag=0, multiple=True))
    assert [(row[0], row[1]) for row in rows] == [(1, ""), (2, "ack"), (3, "ack")]


def test_what_is_recovered_is_not_settled_by_what_comes_later() -> None:
    again = (said(C, "basic.recover", requeue=True), said(S, "basic.recover-ok"), deliver(2))
    rows = reported(deliver(1), *again, said(C, "basic.ack", delivery_tag=2, multiple=True))
    assert sorted(row[:2] for row in rows) == [(1, ""), (2, "ack")]


def test_each_is_given_once() -> None:
    """A tag that comes again, an ack that comes again."""
    again = (
        deliver(1),
        deliver(1),
        said(C, "basic.ack", delivery_tag=1),
        said(C, "basic.ack", delivery_tag=1),
    )
    assert [row[1] for row in reported(*again)] == ["ack", ""]


def test_a_row_of_the_table(tmp_path: Path) -> None:
    """Also of a delivery-tag for which the column has no room."""
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(amqp.header() + amqp.say("channel.open", 1))
    tcp.server.send(amqp.say("connection.start", 0) + deliver(5, key="amqp://u:secret@h/")[1])
    tcp.server.send(deliver(2**64 - 1)[1])
    tcp.client.send(amqp.say("basic.ack", 1, delivery_tag=0, multiple=True))
    tcp.goodbye()
    rows = Rows(("deliveries", "frames"))
    found: dict[str, list[dict[str, Any]]] = {"deliveries": [], "frames": []}
    for one in capture_sets([str(capture.write(tmp_path / "c.pcap"))], "file"):
        for table, batch in [*read_set(one, rows), *rows.batches(True)]:
            found[table] += batch.to_pylist()
    assert [row["delivery_id"] for row in found["deliveries"]] == [5, None]
    first = found["deliveries"][0]
    assert (first["protocol"], first["outcome"], first["settled_by"]) == ("amqp091", "ack", "client")
    assert (first["link"], first["address"]) == ("c", "amqp://u:(hidden)@h/")
    frames = {row["name"]: row for row in found["frames"]}
    ack = frames["basic.ack"]
    assert (ack["fields"], ack["delivery_id"], ack["multiple"]) == (None, 0, True)
    # The last one: its delivery-tag has no room in a column.
    assert json.loads(frames["basic.deliver"]["fields"])["delivery-tag"] == 2**64 - 1
    assert frames["basic.deliver"]["delivery_id"] is None
    assert (frames["body"]["kind"], frames["body"]["payload"]) == ("body", 2)
    assert frames["body"]["message"] is None
    assert frames["header"]["payload"] is None


SENT = ("basic.publish", "basic.deliver", "basic.get-ok")


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: str(path.stem))
def test_every_message_of_real_traffic_is_in_one_delivery(path: Path) -> None:
    with Read(str(path)) as capture:
        frames = list(capture)
    sent = [record for record in frames if record.frame.name in SENT]
    if not sent or any(record.frame.problems for record in frames):
        pytest.skip("no messages of AMQP 0-9-1, or not all of it was captured, or not all of it is legal")
    rows = Rows(("deliveries",))
    found: list[dict[str, Any]] = []
    for one in capture_sets([str(path)], "file"):
        for _, batch in [*read_set(one, rows), *rows.batches(True)]:
            found += batch.to_pylist()
    assert len(found) == len(sent)
    assert sorted(row["packet"] for row in found) == sorted(int(record.packet) for record in sent)
    bodies = {id(record) for record in frames if record.frame.kind == "body"}
    messages = [record for record in frames if isinstance(record.message, Amqp091Message)]
    returned = sum(
        int(record.message.frames)
        for record in messages
        if isinstance(record.message, Amqp091Message) and isinstance(record.message.method, BasicReturn)
    )
    assert sum(row["transfers"] for row in found) == len(bodies) - returned
    for row in found:
        assert (row["settled_by"] is None) == (row["settled_packet"] is None) == (row["latency_ns"] is None)
        assert row["outcome"] is None or row["settled_by"] is not None
