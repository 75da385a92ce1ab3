"""Words of `support.dialogue091`: what stands in the octets that they say."""

from __future__ import annotations

import pytest
from support import amqp091_encode as amqp
from support.conversation import Said
from support.dialogue091 import SERVER_CAPABILITIES, Dialogue091

from dissectors.amqp091.frame import Amqp091FrameDecoder
from dissectors.interface import Frame


def frames(*said: Said) -> list[Frame]:
    decoder = Amqp091FrameDecoder()
    octets = b"".join(one.octets for one in said)
    decoder.feed(octets, 0, len(octets))
    assert [problem for frame in decoder.frames for problem in frame.problems] == []
    return decoder.frames


def names(*said: Said) -> list[str]:
    return [f"{frame.name} {int(frame.channel)}" for frame in frames(*said)]


def method(said: Said) -> str:
    return repr(frames(said)[0].body)


def by(d: Dialogue091, name: str) -> list[Said]:
    return [said for said in d.said if said.peer.name == name]


def test_a_connection_from_its_header_to_its_end() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1, 2)
    d.closed(2)
    d.goodbye()
    assert names(*by(d, "client")) == [
        "header -1",
        "connection.start-ok 0",
        "connection.tune-ok 0",
        "connection.open 0",
        "channel.open 1",
        "channel.open 2",
        "channel.close 2",
        "connection.close 0",
    ]
    assert names(*by(d, "server")) == [
        "connection.start 0",
        "connection.tune 0",
        "connection.open-ok 0",
        "channel.open-ok 1",
        "channel.open-ok 2",
        "channel.close-ok 2",
        "connection.close-ok 0",
    ]
    start = method(d.labels["connection.start"])
    assert "'RabbitMQ'" in start
    assert all(f"'{name}'" in start for name in SERVER_CAPABILITIES)
    assert method(d.labels["connection.tune-ok"]) == (
        "connection.tune-ok(channel-max=2047, frame-max=131072, heartbeat=0)"
    )


def test_what_a_broker_says_of_itself_is_chosen() -> None:
    d = Dialogue091(product="LavinMQ")
    said = d.server.start(capabilities=("basic.nack",), properties={"platform": None, "version": "2"})
    text = method(said)
    assert "'LavinMQ'" in text and "'basic.nack'" in text and "('version', '2')" in text
    assert "publisher_confirms" not in text and "platform" not in text
    assert "capabilities" not in method(d.server.start(capabilities=None))
    assert "capabilities" not in method(d.client.start_ok(capabilities=None))


def test_contents_go_by_the_agreed_frame_max() -> None:
    d = Dialogue091()
    d.opened(tune_ok={"frame_max": 4096})
    d.channel(1)
    for said in (d.client.publish(b"x" * 8176, content_type="a/b"), d.server.deliver(b"x" * 8176)):
        parts = frames(said)
        assert [int(frame.size) for frame in parts[2:]] == [4096, 4096]
    parts = frames(d.client.publish(b"x" * 8177, mandatory=True))
    assert [frame.kind for frame in parts] == ["method", "content-header", "body", "body", "body"]
    assert "mandatory=True" in repr(parts[0].body)
    assert len(frames(d.client.publish(b"x" * 9000, frame_max=0))) == 3
    assert len(frames(d.client.publish(b"x" * 9000, frame_max=131072))) == 3
    assert len(frames(d.client.publish(b""))) == 2


def test_a_content_in_parts_is_the_same() -> None:
    d = Dialogue091()
    whole = d.client.publish(b"hello", "x", "k", 3, priority=4)
    parts = (
        d.client.publish_method("x", "k", 3),
        d.client.content_header(5, 3, priority=4),
        d.client.body(b"hello", 3),
    )
    assert b"".join(said.octets for said in parts) == whole.octets
    alone = d.server.deliver_method(delivery_tag=1).octets
    assert d.server.deliver(delivery_tag=1).octets.startswith(alone)


def test_delivery_tags_are_counted_by_channel() -> None:
    d = Dialogue091()
    d.channel(1, 2)
    assert "delivery-tag=1," in method(d.server.deliver())
    assert "delivery-tag=2," in method(d.server.get_ok())
    assert "delivery-tag=1," in method(d.server.deliver(channel=2))
    assert method(d.client.ack()) == "basic.ack(delivery-tag=2, multiple=False)"
    assert method(d.client.nack(1, multiple=True)) == (
        "basic.nack(delivery-tag=1, multiple=True, requeue=True)"
    )
    assert method(d.client.reject(channel=2)) == "basic.reject(delivery-tag=1, requeue=True)"
    d.closed(1)
    d.channel(1)
    assert "delivery-tag=1," in method(d.server.deliver())
    assert "delivery-tag=9," in method(d.server.deliver(delivery_tag=9))


def test_publishes_are_counted_since_they_are_confirmed() -> None:
    d = Dialogue091()
    d.channel(1)
    d.client.publish()
    d.confirms()
    d.client.publish()
    d.client.publish()
    assert method(d.server.confirm()) == "basic.ack(delivery-tag=2, multiple=False)"


def test_a_method_and_its_answer() -> None:
    d = Dialogue091()
    asked, answered = d.declare("q", durable=True, answer={"message_count": 7})
    assert (asked.peer, answered.peer) == (d.client, d.server)
    assert "queue='q'" in method(asked) and "durable=True" in method(asked)
    assert method(answered) == "queue.declare-ok(queue='q', message-count=7, consumer-count=0)"
    assert "amq.gen-" in method(d.declare("")[1])
    assert "consumer-tag='c'" in method(d.consume()[1])
    assert d.labels["basic.consume-ok"] is d.said[-1]
    assert names(*d.ask("tx.select", 5)) == ["tx.select 5", "tx.select-ok 5"]


def test_the_cause_of_a_close() -> None:
    d = Dialogue091()
    assert method(d.server.close_channel(404, "NOT_FOUND", "basic.publish", channel=2)) == (
        "channel.close(reply-code=404, reply-text='NOT_FOUND', class-id=60, method-id=40)"
    )
    assert "class-id=0, method-id=0" in method(d.client.close_connection())


def test_words_are_packets_and_what_is_on_its_way_is_not_heard() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    assert d.packet_number(d.labels["connection.tune-ok"]) == d.packet_number(d.labels["connection.open"])
    heard = d.server.end.heard
    with d.on_their_way():
        said = d.client.publish()
        d.server.close_channel(404)
        assert d.server.end.heard == heard
    assert d.server.end.heard > heard
    assert d.packet_number(said) == d.packet_number(d.said[-1]) - 1


def test_another_connection_has_the_same_words() -> None:
    d = Dialogue091()
    d.opened()
    other = d.again()
    other.opened()
    other.client.method("basic.publish").breaks("F-CONTENT-HEADER-NEXT")
    assert isinstance(other, Dialogue091)
    assert [fault.rule for fault in d.faults] == ["F-CONTENT-HEADER-NEXT"]
    assert len(d.pcap()) == len(other.pcap())


@pytest.mark.parametrize("name", sorted(amqp.METHODS))
def test_any_method(name: str) -> None:
    d = Dialogue091()
    assert names(d.client.method(name)) == [f"{name} {0 if name.startswith('connection.') else 1}"]
