"""A method that names what does not exist, or that only the other peer may send, accuses its sender alone.

Which channel, delivery or method its sender means, nobody knows. So what the frame changes is unknown, and
the other peer, which may have understood it, is not accused for what it does next.
"""

from __future__ import annotations

import pytest
from support import amqp091_encode as amqp
from support.dialogue091 import Dialogue091
from support.judged import judged

from amqpscope.rules.catalogue import severity


def certain(d: Dialogue091) -> list[tuple[str, str]]:
    """Rule and peer of each error that is certain."""
    while_read, at_end = judged(d.pcap())
    return [
        (one.rule.partition("/")[2], one.peer)
        for one in while_read + at_end
        if one.certain and severity(one.rule) == "error"
    ]


def on_a_channel() -> Dialogue091:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    return d


def test_a_request_on_a_channel_that_is_not_open_may_be_answered_on_another_one() -> None:
    d = on_a_channel()
    d.client.get("q", channel=64)
    d.server.get_empty(channel=1)
    d.goodbye()
    assert certain(d) == [("CH-OPEN-FIRST", "client")]


def test_a_channel_above_the_limit_may_be_meant_for_another_one() -> None:
    d = Dialogue091()
    d.opened(tune={"channel_max": 7}, tune_ok={"channel_max": 7})
    d.client.open_channel(256)
    d.server.channel_open_ok(1)
    d.goodbye()
    assert certain(d) == [("CH-NUM-MAX", "client")]


def test_a_close_said_on_a_closed_channel_may_be_meant_for_another_one() -> None:
    d = on_a_channel()
    d.channel(2)
    d.closed(1)
    d.client.close_channel(channel=1)
    d.server.channel_close_ok(channel=2)
    d.goodbye()
    assert {peer for _, peer in certain(d)} == {"client"}


def test_an_acknowledgement_of_no_delivery_may_be_meant_for_any() -> None:
    d = on_a_channel()
    d.qos(1)
    d.consume("q", consumer_tag="c")
    d.server.deliver(consumer_tag="c")
    d.client.ack(4097)
    d.server.deliver(consumer_tag="c")
    d.goodbye()
    assert certain(d) == [("B-ACK-KNOWN", "client")]


@pytest.mark.parametrize("tag", ["d", ""])
def test_a_basic_consume_that_is_sent_twice_and_answered_once_accuses_no_later_consumer(tag: str) -> None:
    d = on_a_channel()
    d.client.method("basic.consume", queue="q", consumer_tag="c")
    d.client.method("basic.consume", queue="q", consumer_tag="c")
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.client.method("basic.consume", queue="p", consumer_tag=tag)
    d.server.method("basic.consume-ok", consumer_tag=tag or "amq.ctag-1")
    for _ in range(3):
        d.server.deliver(consumer_tag=tag or "amq.ctag-1")
    d.goodbye()
    assert certain(d) == [("B-CTAG-UNIQUE", "client")]


def test_an_acknowledgement_of_more_than_was_delivered_may_be_meant_for_less() -> None:
    d = on_a_channel()
    d.consume("q", consumer_tag="c")
    for _ in range(3):
        d.server.deliver(consumer_tag="c")
    d.client.ack(4097, multiple=True)
    d.client.ack(1)
    d.client.ack(2)
    d.goodbye()
    assert certain(d) == [("B-ACK-KNOWN", "client")]


@pytest.mark.parametrize(("tag", "errors"), [(0, [("CF-TAG-NONZERO", "server")]), (4097, [])])
def test_a_confirm_of_no_publish_may_be_meant_for_any(tag: int, errors: list[tuple[str, str]]) -> None:
    """CF-SEQ-RANGE is a warning."""
    d = on_a_channel()
    d.ask("confirm.select")
    for _ in range(3):
        d.client.publish()
    d.server.method("basic.ack", delivery_tag=tag, multiple=True)
    for number in (1, 2, 3):
        d.server.method("basic.ack", delivery_tag=number)
    d.goodbye()
    assert certain(d) == errors


def test_a_method_of_the_other_peer_may_have_no_content() -> None:
    d = on_a_channel()
    d.client.method("basic.deliver", consumer_tag="c", delivery_tag=1, routing_key="q")
    d.ask("basic.qos", prefetch_count=1)
    d.goodbye()
    assert certain(d) == [("F-METHOD-DIRECTION", "client")]


def test_an_answer_to_nothing_may_be_followed_by_what_it_allows() -> None:
    d = on_a_channel()
    d.channel(2)
    d.server.method("confirm.select-ok")
    d.client.publish()
    d.server.method("basic.ack", delivery_tag=1)
    d.server.method("tx.select-ok", 2)
    d.ask("tx.commit", 2)
    d.goodbye()
    assert certain(d) == [("CH-SYNC-UNSOLICITED", "server")] * 2


def test_a_channel_that_only_the_server_takes_for_open_is_one_fault() -> None:
    d = on_a_channel()
    d.client.open_channel(2)
    for _ in range(3):
        d.ask("basic.qos", 2, prefetch_count=1)
    d.server.channel_open_ok(2)
    d.goodbye()
    assert certain(d) == [("CH-OPEN-FIRST", "server")]


def test_a_closed_channel_that_is_used_again_is_one_fault() -> None:
    d = on_a_channel()
    d.channel(2)
    d.server.close_channel(404)
    d.client.channel_close_ok()
    d.client.close_channel(channel=2)
    for channel in (1, 2):
        for _ in range(3):
            d.client.method("basic.qos", channel, prefetch_count=1)
    d.server.channel_close_ok(2)
    d.goodbye()
    assert certain(d) == [("CH-CLOSEOK-LAST", "client"), ("CH-CLOSE-SILENT", "client")]


def test_a_late_basic_consume_ok_is_one_fault() -> None:
    d = on_a_channel()
    d.client.method("basic.consume", queue="q", consumer_tag="c")
    for _ in range(3):
        d.server.deliver(consumer_tag="c")
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.goodbye()
    assert certain(d) == [("B-DELIVER-EARLY", "server")]


def test_a_client_cannot_keep_both_to_a_frame_max_that_is_too_small_and_to_the_smallest() -> None:
    d = Dialogue091()
    d.opened(tune={"frame_max": 4095}, tune_ok={"frame_max": 4096})
    d.goodbye()
    assert certain(d) == [("C-TUNE-FRAMEMAX-MIN", "server")]


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("settle", ["ack", "nack", "reject"])
def test_a_delivery_without_a_new_tag_may_be_settled_by_the_tag_that_is_due(wrong: int, settle: str) -> None:
    d = on_a_channel()
    d.consume("q", consumer_tag="c")
    d.server.deliver(consumer_tag="c")
    d.client.ack(1)
    d.server.deliver(consumer_tag="c", delivery_tag=wrong)
    getattr(d.client, settle)(2)
    d.goodbye()
    rule = "B-DTAG-INCREASING" if wrong else "B-DTAG-NONZERO"
    found = judged(d.pcap())
    assert [(one.rule, one.peer) for one in found[0] + found[1]] == [(f"amqp091/{rule}", "server")]


def test_a_method_of_the_other_peer_may_be_any_method() -> None:
    d = Dialogue091()
    d.started()
    d.client.method("connection.tune", 0, channel_max=7, frame_max=4096, heartbeat=0)
    d.client.open_connection("/")
    d.server.connection_open_ok()
    d.goodbye()
    assert certain(d) == [("F-METHOD-DIRECTION", "client")]


def test_a_body_on_channel_0_may_be_a_method() -> None:
    d = on_a_channel()
    close = b"\x00\x0a\x00\x32\x00\xc8\x00\x00\x00\x00\x00"
    d.client.frame(amqp.BODY, 0, close)
    d.server.connection_close_ok()
    assert certain(d) == [("F-CONTENT-CH-NONZERO", "client")]


def test_a_method_of_the_other_peer_leaves_other_channels_as_they_are() -> None:
    d = on_a_channel()
    d.channel(2)
    d.client.get_empty(channel=1)
    d.server.get_empty(channel=1)
    d.server.get_empty(channel=2)
    d.goodbye()
    assert certain(d) == [("F-METHOD-DIRECTION", "client"), ("CH-SYNC-UNSOLICITED", "server")]


def test_a_frame_that_is_found_late_may_have_been_answered() -> None:
    d = on_a_channel()
    garbled = amqp.say("basic.recover-async", 1, requeue=True)
    d.server.close_channel(404)
    # By its size it goes on behind the open, which is found only when more octets have come.
    d.client.say(garbled[:6] + bytes([garbled[6] + 26]) + garbled[7:])
    d.client.channel_close_ok()
    d.client.open_channel(1)
    d.server.channel_open_ok(1)
    d.client.publish()
    d.consume("q", consumer_tag="c")
    d.server.deliver(consumer_tag="c")
    d.goodbye()
    assert {peer for _, peer in certain(d)} == {"client"}
