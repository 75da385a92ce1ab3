"""A frame that names what does not exist, or that swallows other frames, accuses its sender alone.

Which session, link or delivery its sender means, nobody knows. So what the frame changes is unknown, and the
other peer, which may have understood it, is not accused for what it does next.
"""

from __future__ import annotations

import struct

import pytest
from support import amqp10_encode as amqp
from support.dialogue import MESSAGE, RECEIVER, SENDER, Dialogue
from support.judged import judged

from amqpscope.rules.catalogue import severity

WINDOWS = {"next_incoming_id": 0, "incoming_window": 2048, "next_outgoing_id": 0, "outgoing_window": 2048}


def certain(d: Dialogue) -> list[tuple[str, str]]:
    """Rule and peer of each error that is certain."""
    while_read, at_end = judged(d.capture.pcap(nanoseconds=True))
    return [
        (one.rule.partition("/")[2], one.peer)
        for one in while_read + at_end
        if one.certain and severity(one.rule) == "error"
    ]


def resized(frame: bytes, size: int) -> bytes:
    return struct.pack(">I", size) + frame[4:]


def deliver(d: Dialogue) -> None:
    d.server.transfer()
    d.server.transfer()
    d.goodbye()


def test_credit_on_a_channel_without_a_session_may_be_for_any_link() -> None:
    d = Dialogue()
    d.subscribed(credit=0)
    d.client.frame(amqp.flow(**WINDOWS, handle=0, delivery_count=0, link_credit=3), channel=9)
    deliver(d)
    assert certain(d) == [("S-BEGIN-FIRST", "client")]


def test_credit_on_a_channel_beyond_the_highest_may_be_for_any_link() -> None:
    d = Dialogue()
    d.opened(server={"channel_max": 0})
    d.client.begin()
    d.server.begin()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.client.frame(amqp.flow(**WINDOWS, handle=0, delivery_count=0, link_credit=3), channel=9)
    deliver(d)
    assert certain(d) == [("C-CHMAX", "client")]


def test_credit_for_a_handle_without_a_link_may_be_for_any_link_of_the_session() -> None:
    d = Dialogue()
    d.subscribed(credit=0)
    d.client.frame(amqp.flow(**WINDOWS, handle=7, delivery_count=0, link_credit=3))
    deliver(d)
    assert ("L-UNATTACHED-FLOW", "client") in certain(d)
    assert ("L-CREDIT-INIT", "server") not in certain(d)


def test_a_begin_that_answers_a_channel_nobody_began_may_answer_any() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.server.frame(amqp.begin(remote_channel=5, next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.client.frame(amqp.flow(**WINDOWS, handle=0, delivery_count=0, link_credit=3))
    deliver(d)
    assert certain(d) == [("S-BEGIN-REMOTEVALID", "server")]


def test_a_begin_beyond_the_highest_channel_may_be_answered_on_another_one() -> None:
    d = Dialogue()
    d.opened(server={"channel_max": 7})
    d.client.begin(channel=64)
    d.server.frame(
        amqp.begin(remote_channel=0, next_outgoing_id=0, incoming_window=2048, outgoing_window=2048)
    )
    d.goodbye()
    assert ("S-BEGIN-REMOTEVALID", "server") not in certain(d)


@pytest.mark.parametrize("swallowed", ["one frame", "the front of one", "an octet of one"])
def test_a_transfer_that_swallows_the_next_one_leaves_unknown_how_many_were_sent(swallowed: str) -> None:
    d = Dialogue()
    d.linked()
    first = amqp.frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"0", message_format=0), MESSAGE)
    second = amqp.frame(amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"1", message_format=0), MESSAGE)
    more = {"one frame": len(second), "the front of one": 20, "an octet of one": 1}[swallowed]
    d.client.say(resized(first, len(first) + more))
    d.server.frame(amqp.disposition(role=RECEIVER, first=0, settled=True, state=amqp.accepted()))
    windows = WINDOWS | {"next_incoming_id": 1}
    d.server.frame(amqp.flow(**windows, handle=0, delivery_count=1, link_credit=10))
    d.client.say(second)
    windows = WINDOWS | {"next_incoming_id": 2}
    d.server.frame(amqp.flow(**windows, handle=0, delivery_count=2, link_credit=10))
    d.goodbye()
    found = certain(d)
    assert found
    assert {peer for _, peer in found} == {"client"}


def test_an_open_that_swallows_what_follows_leaves_unknown_what_was_said() -> None:
    d = Dialogue()
    d.headers()
    octets = amqp.frame(amqp.open_(container_id="c"))
    begin = amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    d.client.say(resized(octets, len(octets) + len(begin)) + begin)
    d.server.open()
    d.server.frame(amqp.begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    d.goodbye()
    assert certain(d) == [("F-BODY-PAYLOAD", "client")]


def test_a_transfer_above_the_frame_size_may_be_smaller_for_its_receiver() -> None:
    d = Dialogue()
    d.opened(server={"max_frame_size": 512})
    d.client.begin()
    d.server.begin()
    d.attached()
    more = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"0", message_format=0, more=True)
    first = amqp.frame(more, amqp.data(bytes(600))[:400])
    d.client.say(resized(first, 600))
    windows = WINDOWS | {"next_incoming_id": 1}
    d.server.frame(amqp.flow(**windows, handle=0, delivery_count=0, link_credit=10))
    d.client.frame(amqp.transfer(handle=0), amqp.data(bytes(600))[400:])
    d.goodbye()
    assert {peer for _, peer in certain(d)} == {"client"}


def test_a_sasl_frame_that_swallows_what_follows_leaves_unknown_what_was_said() -> None:
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    mechanisms = amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["ANONYMOUS"]))
    d.server.say(mechanisms)
    init = amqp.sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS"))
    behind = amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c"))
    d.client.say(resized(init, len(init) + len(behind)))
    d.server.outcome()
    d.client.say(behind)
    d.server.header()
    d.server.open()
    d.goodbye()
    assert {peer for _, peer in certain(d)} == {"client"}
