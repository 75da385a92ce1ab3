"""What has the same effect is the same, however it is said; and what only looks so is not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from support import amqp10_encode as amqp
from support.comparisons import compared, reported
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091


def received(settle: Callable[[Dialogue], None], *, deliveries: int = 4, name: str = "sub-1") -> bytes:
    """A client that receives, and settles in some way."""
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER, name=name)
    d.server.attach(SENDER, name=name)
    d.client.flow(handle=0, link_credit=10)
    for _ in range(deliveries):
        d.server.transfer()
    settle(d)
    d.client.detach()
    d.server.detach()
    d.goodbye()
    return d.pcap()


def one_by_one(d: Dialogue) -> None:
    for number in range(4):
        d.client.disposition(number)


def test_a_range_of_dispositions_or_one_by_one() -> None:
    assert (
        reported(compared(received(one_by_one), received(lambda d: d.client.disposition(0, 3) and None)))
        == []
    )


def test_the_order_in_which_deliveries_are_settled() -> None:
    def backwards(d: Dialogue) -> None:
        for number in (3, 1, 2, 0):
            d.client.disposition(number)

    assert reported(compared(received(one_by_one), received(backwards))) == []


def test_first_accepted_then_settled_is_another_thing() -> None:
    def in_two_steps(d: Dialogue) -> None:
        d.client.disposition(0, 3, settled=False)
        d.server.disposition(0, 3, role=SENDER, state=None)
        d.client.disposition(0, 3)

    found = reported(compared(received(one_by_one), received(in_two_steps)))
    assert [what for what, _ in found] == [
        f"the outcome that the client sends for delivery {number} on link q" for number in (1, 2, 3, 4)
    ]
    assert found[0][1] == [("", "accepted settled", "accepted unsettled, then accepted settled")]


def test_deliveries_in_flight_when_the_receiver_goes() -> None:
    assert reported(compared(received(one_by_one), received(one_by_one, deliveries=6))) == []


def test_a_delivery_that_is_not_settled() -> None:
    def all_but_the_last(d: Dialogue) -> None:
        d.client.disposition(0, 2)

    found = reported(compared(received(one_by_one), received(all_but_the_last)))
    assert found == [
        ("the outcome that the client sends for delivery 4 on link q", [("", "accepted settled", "nothing")])
    ]


def test_link_names_container_ids_and_ids_of_messages() -> None:
    def said(seed: int) -> bytes:
        d = Dialogue()
        unique = f"{seed:08x}-0000-4000-8000-{seed:012x}"
        d.opened(client={"container_id": unique, "hostname": f"10.0.0.{seed}"})
        d.client.begin(next_outgoing_id=seed)
        d.server.begin(next_outgoing_id=seed * 7)
        d.attached(client={"name": f"sender-{unique}", "initial_delivery_count": seed})
        message = amqp.properties(message_id=unique, creation_time=seed) + amqp.amqp_value(f"order {seed}")
        d.client.transfer(message, delivery_tag=seed.to_bytes(4, "big"))
        d.server.disposition()
        d.goodbye()
        return d.pcap()

    assert reported(compared(said(3), said(200))) == []


def test_a_dynamic_node_has_any_name() -> None:
    def asked(address: str) -> bytes:
        d = Dialogue()
        d.begun()
        d.client.attach(RECEIVER, source=amqp.source(dynamic=True), target=amqp.target(address="me"))
        d.server.attach(
            SENDER, source=amqp.source(dynamic=True, address=address), target=amqp.target(address="me")
        )
        d.client.attach(SENDER, handle=1, name="ask", target=amqp.target(address="service"))
        d.server.attach(RECEIVER, handle=1, name="ask", target=amqp.target(address="service"))
        d.server.flow(handle=1)
        d.client.transfer(amqp.properties(reply_to=address) + amqp.amqp_value("?"), handle=1)
        d.goodbye()
        return d.pcap()

    assert reported(compared(asked("temporary-one"), asked("another"))) == []


def test_a_message_in_one_transfer_or_in_three() -> None:
    message = amqp.amqp_value("a long story")

    def sent(*cuts: int) -> bytes:
        d = Dialogue()
        d.linked()
        for start, end in pairwise([0, *cuts, len(message)]):
            d.client.transfer(message[start:end], more=end < len(message))
        d.server.disposition()
        d.goodbye()
        return d.pcap()

    assert reported(compared(sent(), sent(3, 9))) == []


def test_further_flows_and_heartbeats() -> None:
    def kept_up(often: bool) -> bytes:
        d = Dialogue()
        d.linked(credit=10)
        for number in range(3):
            d.client.transfer()
            d.server.disposition(number)
            if often:
                d.server.flow(handle=0)
                d.client.flow()
                d.client.empty()
        d.goodbye()
        return d.pcap()

    assert reported(compared(kept_up(False), kept_up(True))) == []


def consumed(settle: Callable[[Dialogue091], None], *, queue: str = "q", tag: str = "c") -> bytes:
    """A client of 0-9-1 that consumes, and acknowledges in some way."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare(queue)
    d.consume(queue, consumer_tag=tag)
    for _ in range(4):
        d.server.deliver(b"hello", consumer_tag=tag)
    settle(d)
    d.goodbye()
    return d.pcap()


def each(d: Dialogue091) -> None:
    for tag in (1, 2, 3, 4):
        d.client.ack(tag)


@pytest.mark.parametrize("tag", [4, 0])
def test_acks_one_by_one_or_with_multiple(tag: int) -> None:
    def at_once(d: Dialogue091) -> None:
        d.client.ack(tag, multiple=True)

    assert reported(compared(consumed(each), consumed(at_once))) == []


def test_an_ack_too_few() -> None:
    found = reported(compared(consumed(each), consumed(lambda d: d.client.ack(3, multiple=True) and None)))
    assert found == [
        ("the outcome that the client sends for delivery 4 on consumer q", [("", "ack", "nothing")])
    ]


def test_consumer_tags_and_generated_queues() -> None:
    one = consumed(each, tag="ctag1.0a1b2c3d4e5f60718293a4b5c6d7e8f9")
    assert reported(compared(one, consumed(each, tag="ctag1.ffffffffffffffffffffffffffffffff"))) == []

    def declared(name: str) -> bytes:
        d = Dialogue091()
        d.opened()
        d.channel(1)
        d.ask("queue.declare", answer={"queue": name}, queue="")
        d.client.publish(b"?", routing_key="service", reply_to=name)
        d.consume(name, consumer_tag="c")
        d.goodbye()
        return d.pcap()

    assert reported(compared(declared("tmp.a"), declared("tmp.b"))) == []


def test_confirms_one_by_one_or_with_multiple() -> None:
    def confirmed(at_once: bool) -> bytes:
        d = Dialogue091()
        d.opened()
        d.channel(1)
        d.declare("q")
        d.confirms()
        for _ in range(3):
            d.client.publish(b"hello", routing_key="q")
        if at_once:
            d.server.confirm(3, multiple=True)
        else:
            for tag in (1, 2, 3):
                d.server.confirm(tag)
        d.goodbye()
        return d.pcap()

    assert reported(compared(confirmed(True), confirmed(False))) == []


def test_channel_numbers_and_connections_in_another_order() -> None:
    def used(first: int, queues: tuple[str, str]) -> bytes:
        d = Dialogue091()
        d.opened()
        for number, queue in zip((first, first + 1), queues, strict=True):
            d.channel(number)
            d.declare(queue, channel=number)
            d.client.publish(b"hello", channel=number, routing_key=queue)
        d.goodbye()
        return d.pcap()

    assert reported(compared(used(1, ("a", "b")), used(5, ("b", "a")))) == []


def test_what_is_said_when_the_other_has_ended_it() -> None:
    """The receiver goes: what the sender says meanwhile it may say before, or not at all."""

    def crossing(before: int, behind: int) -> bytes:
        d = Dialogue()
        d.subscribed()
        for _ in range(before):
            d.server.transfer(settled=True)
        with d.on_their_way():
            d.client.detach()
            for _ in range(behind):
                d.server.transfer(settled=True)
        d.server.detach()
        d.goodbye()
        return d.pcap()

    assert reported(compared(crossing(5, 0), crossing(3, 2))) == []
    assert reported(compared(crossing(3, 0), crossing(3, 2))) == []
    assert len(reported(compared(crossing(5, 0), crossing(3, 0)))) == 2


def test_how_far_a_client_had_come_when_it_was_refused() -> None:
    def refused(more: int, code: int = 404) -> bytes:
        d = Dialogue091()
        d.opened()
        d.channel(1)
        d.client.publish(b"hello", exchange="nowhere")
        with d.on_their_way():
            for _ in range(more):
                d.client.publish(b"hello", exchange="nowhere")
            d.server.close_channel(code, "NO", cause="basic.publish")
        d.client.channel_close_ok()
        d.goodbye()
        return d.pcap()

    assert reported(compared(refused(0), refused(3))) == []
    found = reported(compared(refused(0), refused(0, 403)))
    assert found == [("the server's channel.close on channel 1", [("reply-code", "404", "403")])]


def test_octets_that_were_not_captured_end_the_comparison() -> None:
    def sent(lost: bool, outcome: bytes) -> bytes:
        d = Dialogue()
        d.linked()
        d.client.transfer()
        d.server.disposition(state=outcome)
        if lost:
            with d.missed():
                d.client.transfer()
        else:
            d.client.transfer()
        d.server.disposition(1)
        d.client.transfer()
        d.server.disposition(2)
        d.goodbye()
        return d.pcap()

    whole, cut = sent(False, amqp.accepted()), sent(True, amqp.accepted())
    for a, b in ((whole, cut), (cut, whole)):
        comparison = compared(a, b)
        assert reported(comparison) == []
        (meeting,) = comparison.meetings
        assert {story.cut_for for story in (meeting.a, meeting.b) if story} == {
            "",
            "octets are missing in the capture",
        }
    assert len(reported(compared(cut, sent(False, amqp.released())))) == 1
