"""What a frame of AMQP 0-9-1 belongs to: the conversation says the same as the endpoints of the rules."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from support.dialogue091 import Dialogue091

from amqpscope.input.capture import Capture
from amqpscope.model.records import FrameRecord
from amqpscope.rules.amqp091.judge import Judge091
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import MethodRequest

ROOT = Path(__file__).parents[3] / "captures"
CAPTURES = [
    *(path for path in sorted(ROOT.glob("*.pcap")) if path.name.startswith(("amqplib", "pika", "pyamqp"))),
    *sorted((ROOT / "rules" / "amqp091").glob("*/conforming.pcap"))[::3],
]


class Heard(Listener091):
    """Puts down what happens, in words."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.lives: list[Channel] = []

    def _add(self, record: FrameRecord, what: str) -> None:
        self.said.append(f"{record.peer} {what}")

    def channel_opened(self, record: FrameRecord, method: Any, channel: Channel) -> None:
        self.lives.append(channel)
        self._add(record, f"opens {len(self.lives)}")

    def channel_closed(self, record: FrameRecord, method: Any, channel: Channel) -> None:
        self._add(record, f"closes {self.lives.index(channel) + 1}")

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        self._add(record, f"ends {self.lives.index(channel) + 1}")

    def requested(self, record: FrameRecord, method: Any, request: MethodRequest) -> None:
        self._add(record, f"asks {request.name}")

    def answered(self, record: FrameRecord, method: Any, request: MethodRequest) -> None:
        self._add(record, f"answers {request.name} of packet {request.packet}")

    def consumer_started(self, record: FrameRecord, method: Any, consumer: Consumer) -> None:
        self._add(record, f"starts {consumer.tag!r}")

    def consumer_confirmed(self, record: FrameRecord, method: Any, consumer: Consumer) -> None:
        self._add(record, f"confirms {consumer.tag!r}")

    def consumer_cancelled(self, record: FrameRecord, method: Any, consumer: Consumer) -> None:
        self._add(record, f"cancels {consumer.tag!r}")

    def content_started(self, record: FrameRecord, method: Any, content: SentContent) -> None:
        delivery = content.delivery
        self._add(record, f"begins {method.definition().name} {None if delivery is None else delivery.tag}")

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        number = None if content.publish is None else content.number
        self._add(
            record, f"ends {content.method.definition().name} {content.frames} {content.octets} {number}"
        )

    def acknowledged(self, record: FrameRecord, method: Any, deliveries: list[ConsumerDelivery]) -> None:
        self._add(record, f"acknowledges {[one.tag for one in deliveries]}")

    def recovered(self, record: FrameRecord, method: Any, deliveries: list[ConsumerDelivery]) -> None:
        self._add(record, f"recovers {[one.tag for one in deliveries]}")

    def confirmed(self, record: FrameRecord, method: Any, publishes: list[Publish]) -> None:
        self._add(record, f"confirms {[one.number for one in publishes]}")

    def stray(self, record: FrameRecord) -> None:
        self._add(record, f"strays with {record.frame.name}")


def heard(d: Dialogue091) -> list[str]:
    """What happens in a dialogue once the first channel is asked for."""
    found = Heard()
    conversation = Conversation091()
    conversation.subscribe(found)
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
    return found.said


def opened() -> Dialogue091:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    return d


class Compared(Listener091):
    """Holds the events against what the endpoints of the rules say of the same frame."""

    def __init__(self, judge: Judge091) -> None:
        self.judge = judge
        self.compared = 0

    def _same(self, of_rules: list[tuple[int, int]], here: list[tuple[int, int]]) -> None:
        assert here == of_rules
        self.compared += 1

    def acknowledged(self, record: FrameRecord, method: Any, deliveries: list[ConsumerDelivery]) -> None:
        judge = self.judge
        judge.client.catch_up(record.acknowledged, judge.server.sent_end)
        channel = judge.client.view.channel(record.frame.channel)
        assert channel is not None
        found = channel.deliveries.covered(method.delivery_tag, getattr(method, "multiple", False))
        self._same([(one.tag, one.end) for one in found], [(one.tag, one.end) for one in deliveries])

    def confirmed(self, record: FrameRecord, method: Any, publishes: list[Publish]) -> None:
        judge = self.judge
        judge.server.catch_up(record.acknowledged, judge.client.sent_end)
        channel = judge.server.view.channel(record.frame.channel)
        assert channel is not None
        found = channel.publishes.covered(method.delivery_tag, method.multiple)
        self._same([(one.number, one.end) for one in found], [(one.number, one.end) for one in publishes])

    def answered(self, record: FrameRecord, method: Any, request: MethodRequest) -> None:
        judge = self.judge
        by_client = record.direction == record.connection.client
        me, peer = (judge.client, judge.server) if by_client else (judge.server, judge.client)
        me.catch_up(record.acknowledged, peer.sent_end)
        channel = me.view.channel(record.frame.channel)
        assert channel is not None
        at = channel.requests.awaited(by_client, method.definition().name)
        waiting = channel.requests.to_answer(by_client)
        assert at >= 0
        self._same([(0, waiting[at].end)], [(0, request.end)])


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_endpoints_of_the_rules_have_the_same_deliveries_messages_and_requests(path: Path) -> None:
    pairs: dict[object, tuple[Conversation091, Judge091]] = {}
    with Capture(str(path)) as capture:
        for record in capture:
            connection = record.connection
            if connection.protocol != "amqp091":
                continue
            if connection not in pairs:
                judge = Judge091(connection, [], None)
                conversation = Conversation091()
                conversation.subscribe(Compared(judge))
                pairs[connection] = (conversation, judge)
            conversation, judge = pairs[connection]
            conversation.take(record)
            judge.take(record)
            client, server = judge.client.view.table.channels, judge.server.view.table.channels
            assert {*conversation.view.table.channels} == {*client, *server}


def test_messages_are_numbered_in_confirm_mode() -> None:
    d = opened()
    d.client.publish(body=b"none")
    d.confirms()
    d.client.publish(body=b"one")
    d.client.publish(body=b"")
    d.server.confirm(2, multiple=True)
    assert [one for one in heard(d)[3:] if "select" not in one] == [
        "client begins basic.publish None",
        "client ends basic.publish 1 4 0",
        "client begins basic.publish None",
        "client ends basic.publish 1 3 1",
        "client begins basic.publish None",
        "client ends basic.publish 0 0 2",
        "server confirms [1, 2]",
    ]


def test_content_that_is_cut_short_hides_the_numbers_of_messages() -> None:
    d = opened()
    d.confirms()
    d.client.publish_method()
    d.client.publish(body=b"one")
    d.server.confirm(1)
    assert heard(d)[5:] == [
        "client begins basic.publish None",
        "client ends basic.publish 0 0 None",
        "client begins basic.publish None",
        "client ends basic.publish 1 3 0",
        "server confirms []",
    ]


def test_an_acknowledgement_names_all_before_it() -> None:
    d = opened()
    d.consume()
    for _ in range(3):
        d.server.deliver(b"")
    d.client.ack(2, multiple=True)
    d.client.nack(0, multiple=True)
    d.client.ack(3)
    found = heard(d)
    assert [one for one in found if "acknowledges" in one] == [
        "client acknowledges [1, 2]",
        "client acknowledges [3]",
        "client acknowledges []",
    ]


def test_a_delivery_by_the_client_is_not_the_one_that_the_server_began() -> None:
    class Begun(Listener091):
        def __init__(self) -> None:
            self.contents: list[SentContent] = []

        def content_started(self, record: FrameRecord, method: Any, content: SentContent) -> None:
            self.contents.append(content)

    d = opened()
    d.consume()
    d.server.deliver_method(consumer_tag="c")
    d.client.deliver_method(consumer_tag="c")
    conversation, begun = Conversation091(), Begun()
    conversation.subscribe(begun)
    with Capture(BytesIO(d.pcap())) as capture:
        for record in capture:
            conversation.take(record)
    server, client = begun.contents
    assert server.delivery is not None and client.delivery is None


def test_a_consumer_that_the_server_names() -> None:
    d = opened()
    d.client.method("basic.consume", 1, queue="q")
    d.server.method("basic.consume-ok", 1, consumer_tag="made-up")
    d.client.method("basic.cancel", 1, consumer_tag="made-up")
    assert heard(d)[3:] == [
        "client asks basic.consume",
        "client starts ''",
        "server answers basic.consume of packet 12",
        "server confirms 'made-up'",
        "client asks basic.cancel",
        "client cancels 'made-up'",
    ]


def test_a_channel_has_another_life_when_it_is_opened_again() -> None:
    d = opened()
    d.closed()
    d.channel(1)
    said = [one for one in heard(d) if "asks" not in one and "answers" not in one]
    assert said == ["client opens 1", "client closes 1", "server ends 1", "client opens 2"]


def test_opening_a_channel_getting_a_message_and_recovering_are_requests() -> None:
    d = opened()
    d.client.get()
    d.server.get_ok(b"")
    d.ask("basic.recover", requeue=True)
    asked = [one for one in heard(d) if "asks" in one or "answers" in one]
    assert [one.partition(" of ")[0] for one in asked] == [
        "client asks channel.open",
        "server answers channel.open",
        "client asks basic.get",
        "server answers basic.get",
        "client asks basic.recover",
        "server answers basic.recover",
    ]


def test_what_is_recovered_is_not_acknowledged_later() -> None:
    d = opened()
    d.consume()
    d.server.deliver(b"")
    d.ask("basic.recover", requeue=True)
    d.server.deliver(b"")
    d.client.ack(0, multiple=True)
    found = heard(d)
    assert "client recovers [1]" in found
    assert "client acknowledges [2]" in found


def test_octets_that_are_missing_hide_the_numbers_of_messages() -> None:
    d = opened()
    d.confirms()
    d.client.publish(body=b"one")
    d.client.publish(body=b"two")
    d.capture.packets.pop()
    d.client.publish(body=b"three")
    d.server.confirm(1)
    d.server.confirm(2)
    assert heard(d)[-2:] == ["server confirms [1]", "server confirms []"]


def test_content_without_a_method_strays() -> None:
    d = opened()
    d.client.body(b"?")
    assert heard(d)[3:] == ["client strays with body"]


class Contents(Listener091):
    """Puts down the frames with which contents begin, go on and end."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def content_started(self, record: FrameRecord, method: Any, content: SentContent) -> None:
        self.said.append(f"{record.frame.name} begins")

    def content_continued(self, record: FrameRecord, content: SentContent) -> None:
        self.said.append(f"{record.frame.name} goes on")

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        size = -1 if content.message is None else len(content.message.body)
        self.said.append(f"{record.frame.name} ends {size}")


def test_of_whole_messages_no_body_frame_has_an_event() -> None:
    d = opened()
    d.consume()
    d.server.deliver(b"a" * 5000, frame_max=4096)
    d.server.deliver(b"")
    d.client.publish(b"without events")
    contents = Contents()
    conversation = Conversation091()
    conversation.subscribe(contents)
    conversation.follow_whole_messages(True)
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
    assert contents.said == [
        "basic.deliver begins",
        "body ends 5000",
        "basic.deliver begins",
        "content-header goes on",
        "content-header ends 0",
    ]
