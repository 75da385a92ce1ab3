"""Which frames of AMQP 0-9-1 `why` takes for those of the same channel, request, consumer and message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.conversation import Said
from support.dialogue091 import Dialogue091

Why = Callable[[Dialogue091, Said], dict[str, Any]]


@pytest.fixture
def why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Why:
    """What there is to say of the frame of a dialogue that is the last one in its packet."""

    def ask(d: Dialogue091, said: Said) -> dict[str, Any]:
        capture = tmp_path / "dialogue.pcap"
        capture.write_bytes(d.pcap())
        result = amqpscope(capsys, "why", "--format", "json", capture, str(d.packet_number(said)))
        assert (result.status, result.err) == (0, "")
        frame = json.loads(result.out)["frames"][0]
        assert isinstance(frame, dict)
        return frame

    return ask


def grounds(frame: dict[str, Any], *effects: str) -> list[tuple[str, int | None]]:
    return [(one["what"], one["packet"]) for one in frame["grounds"] if one["effect"] in effects]


def followed(frame: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one["what"], one["packet"]) for one in frame["followed"] if "had" not in one["what"]]


def opened() -> Dialogue091:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    return d


def test_the_answer_to_another_request_of_the_same_kind_answers_none_with_no_wait(why: Why) -> None:
    d = opened()
    silent = d.client.method("queue.declare", queue="a", no_wait=True)
    asked, answer = d.declare("b")
    d.goodbye()
    assert "the answer" not in [what for what, _ in followed(why(d, silent))]
    assert ("the answer", d.packet_number(answer)) in followed(why(d, asked))


def test_of_two_requests_of_one_kind_each_has_its_own_answer(why: Why) -> None:
    d = opened()
    first = d.client.method("queue.declare", queue="a")
    second = d.client.method("queue.declare", queue="b")
    answers = [d.server.method("queue.declare-ok", queue=queue) for queue in "ab"]
    d.goodbye()
    for said, answer in zip((first, second), answers, strict=True):
        assert followed(why(d, said)) == [("the answer", d.packet_number(answer))]
        asked = [
            packet for what, packet in grounds(why(d, answer), "grants") if "this method answers" in what
        ]
        assert asked == [d.packet_number(said)]


def test_an_answer_that_nobody_waits_for_names_the_request_with_no_wait(why: Why) -> None:
    d = opened()
    silent = d.client.method("queue.declare", queue="a", no_wait=True)
    answer = d.server.method("queue.declare-ok", queue="a")
    d.goodbye()
    frame = why(d, answer)
    assert grounds(frame, "lacks") == [("no request waits for this answer", None)]
    forbidding = (
        "a request of this kind has no-wait set, so the request gets no answer",
        d.packet_number(silent),
    )
    assert forbidding in grounds(frame, "forbids")


def test_an_acknowledgement_of_later_deliveries_does_not_answer_one_without_ack(why: Why) -> None:
    d = opened()
    d.client.get(no_ack=True)
    free = d.server.get_ok(b"free")
    d.client.get()
    due = d.server.get_ok(b"due")
    ack = d.client.ack(2, multiple=True)
    d.goodbye()
    assert followed(why(d, due)) == [("settles the delivery", d.packet_number(ack))]
    assert "settles the delivery" not in [what for what, _ in followed(why(d, free))]


def test_a_delivery_that_is_recovered_is_not_answered_later(why: Why) -> None:
    d = opened()
    d.declare()
    d.consume()
    delivery = d.server.deliver(b"")
    recover, _ = d.ask("basic.recover", requeue=True)
    again = d.server.deliver(b"", redelivered=True)
    ack = d.client.ack(2, multiple=True)
    d.goodbye()
    assert followed(why(d, delivery)) == [("requeues the delivery", d.packet_number(recover))]
    assert followed(why(d, again)) == [("settles the delivery", d.packet_number(ack))]


def test_the_acknowledgement_that_took_a_delivery_forbids_a_second_one(why: Why) -> None:
    d = opened()
    d.declare()
    d.consume()
    d.server.deliver(b"")
    d.server.deliver(b"")
    taken = d.client.ack(0, multiple=True)
    again = d.client.ack(1)
    d.goodbye()
    assert grounds(why(d, again), "forbids") == [
        ("the client has already settled delivery-tag 1", d.packet_number(taken))
    ]


def test_a_rollback_allows_a_second_acknowledgement(why: Why) -> None:
    d = opened()
    d.declare()
    d.transaction()
    d.consume()
    d.server.deliver(b"")
    d.client.ack(1)
    d.rollback()
    again = d.client.ack(1)
    d.commit()
    d.goodbye()
    assert grounds(why(d, again), "forbids") == []


def test_a_consumer_that_was_cancelled_does_not_forbid_its_tag(why: Why) -> None:
    d = opened()
    d.declare()
    begun, _ = d.consume()
    twice = d.client.method("basic.consume", queue="q", consumer_tag="c")
    d.cancel()
    again = d.client.method("basic.consume", queue="q", consumer_tag="c")
    d.goodbye()
    assert grounds(why(d, twice), "forbids") == [
        ("a consumer with this consumer-tag already exists", d.packet_number(begun))
    ]
    assert grounds(why(d, again), "forbids") == []


def test_messages_are_numbered_from_the_first_confirm_select_on(why: Why) -> None:
    d = opened()
    d.confirms()
    d.client.publish()
    d.confirms()
    second = d.client.publish()
    confirm = d.server.confirm(2)
    d.goodbye()
    assert ("the client has published message 2", d.packet_number(second)) in grounds(
        why(d, confirm), "grants"
    )
    assert followed(why(d, second)) == [("confirms the message", d.packet_number(confirm))]


def test_a_message_comes_back_only_if_it_asked_for_that(why: Why) -> None:
    d = opened()
    plain = d.client.publish(routing_key="nowhere")
    mandatory = d.client.publish(routing_key="nowhere", mandatory=True)
    d.client.publish(routing_key="elsewhere")
    back = d.server.return_content(routing_key="nowhere")
    d.goodbye()
    belongs = grounds(why(d, back), "belongs to")
    assert belongs == [
        ("the oldest message that the server may send back by basic.return", d.packet_number(mandatory))
    ]
    returned = ("a message with the same exchange and routing key is returned", d.packet_number(back))
    assert returned in followed(why(d, mandatory))
    assert returned not in followed(why(d, plain))


def test_closes_that_cross_end_the_channel_with_the_second_answer(why: Why) -> None:
    d = opened()
    with d.on_their_way():
        d.client.close_channel()
        d.server.close_channel(404, "NOT_FOUND")
    d.server.channel_close_ok()
    second = d.client.channel_close_ok()
    d.goodbye()
    assert "the channel has ended" not in [what for what, _ in grounds(why(d, second), "forbids")]


def test_a_channel_whose_open_was_not_captured_has_its_deliveries(why: Why) -> None:
    d = Dialogue091()
    d.opened()
    d.declare()
    d.consume()
    delivery = d.server.deliver(b"")
    ack = d.client.ack(1)
    d.goodbye()
    frame = why(d, ack)
    assert ("no channel.open was captured on channel 1", None) in grounds(frame, "lacks")
    assert ("the delivery with delivery-tag 1", d.packet_number(delivery)) in grounds(frame, "grants")


def test_a_connection_close_names_the_newest_method_of_all_channels(why: Why) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.channel(2)
    d.declare("first", channel=2)
    newest, _ = d.declare("second", channel=1)
    close = d.server.method("connection.close", 0, reply_code=541, class_id=50, method_id=10)
    what = "the newest queue.declare, which the close names"
    assert (what, d.packet_number(newest)) in grounds(why(d, close), "belongs to")
