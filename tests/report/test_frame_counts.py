"""Counting frames."""

from __future__ import annotations

import io

from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, frame
from support.remembered_conversation import RememberedConversation
from support.tcp_writer import Capture

import amqpscope
from amqpscope.report.frame_counts import Census, FrameCount


def count(capture: Capture) -> Census:
    census = Census()
    for records in amqpscope.Capture(
        io.BytesIO(capture.pcap()), amqpscope.CaptureOptions(messages=False)
    ).blocks():
        census.add(records)
    return census


def test_frames_are_counted_by_name_and_peer() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="c")))
    talk.server(AMQP_HEADER, frame(amqp.open_(container_id="s")))
    for number in range(7):
        payload = amqp.data(bytes(number))
        talk.client(frame(amqp.transfer(handle=0, delivery_id=number, delivery_tag=b"t"), payload))
    talk.server(frame())
    talk.server(frame(amqp.raw("00 53 99 45")))
    talk.client(frame(amqp.close()))
    census = count(capture)
    assert census.rows() == [
        ("header", 1, 1),
        ("open", 1, 1),
        ("transfer", 7, 0),
        ("close", 1, 0),
        ("empty", 0, 1),
        ("undecodable", 0, 1),
    ]
    assert (census.frames, census.problems, census.missing) == (14, 1, 0)
    assert census.octets == talk.tcp.client.sent + talk.tcp.server.sent


def test_missing_octets_are_not_among_those_counted() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="c")))
    talk.server(AMQP_HEADER, frame(amqp.open_(container_id="s")))
    with capture.missed():
        talk.client(frame(amqp.close(error=amqp.error(condition="x:y", description="z" * 40))))
    talk.client(frame(amqp.close()))
    census = count(capture)
    lost = len(talk.said[-2].octets)
    assert (census.missing, census.problems) == (lost, 1)
    assert census.octets == talk.tcp.client.sent + talk.tcp.server.sent - lost
    assert ("skipped", 1, 0) in census.rows()


def test_an_order_of_a_conversation() -> None:
    census = Census()
    for name, client, server in (
        ("zebra", 1, 0),
        ("close", 2, 5),
        ("apple", 3, 0),
        ("header", 4, 0),
        ("sasl-init", 0, 6),
    ):
        census.tallies[name] = FrameCount()
        census.tallies[name].client = client
        census.tallies[name].server = server
    assert census.rows() == [
        ("header", 4, 0),
        ("sasl-init", 0, 6),
        ("close", 2, 5),
        ("apple", 3, 0),
        ("zebra", 1, 0),
    ]
