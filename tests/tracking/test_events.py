"""Which subscribers an event is for: those whose classes have a method of their own for it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091

from amqpscope.diagnoses.amqp091.habits import HabitWatch
from amqpscope.diagnoses.amqp091.watch import Watch091
from amqpscope.diagnoses.amqp10.redelivery import RedeliveryWatch
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.limits import Limits
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.input.capture import Capture
from amqpscope.model.records import Connection
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.events import Listener091
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.events import Conversation, takes


class Ends(Listener091):
    def content_ended(self, record: Any, content: Any) -> None:
        pass


class More(Ends):
    pass


def test_a_listener_takes_what_it_or_its_parent_overrides() -> None:
    for listener in (Ends(), More()):
        assert takes(listener, Listener091, "content_ended")
        assert not takes(listener, Listener091, "content_started")
    assert not takes(Listener10(), Listener10, "disposition")


def test_the_watches_take_what_they_override() -> None:
    connection = Connection("c", 0, 0, bytes([10, 0, 0, 1, 10, 0, 0, 2, 0xC0, 0x01, 0x16, 0x28]))
    notebook = Notebook(connection, Limits({}))

    def of(watch: Any, protocol: type, *events: str) -> list[bool]:
        return [takes(watch, protocol, event) for event in events]

    habits = HabitWatch(notebook, Conversation091())
    assert of(habits, Listener091, "content_ended", "content_continued") == [True, False]
    assert of(Watch091(notebook), Listener091, "acknowledged", "confirmed") == [False, False]
    redelivery = RedeliveryWatch(notebook, Conversation10())
    assert of(redelivery, Listener10, "delivery_started", "delivery_continued") == [True, False]
    assert of(Watch10(notebook), Listener10, "disposition") == [False]


class Deliveries(Listener10):
    def __init__(self, events: list[str], name: str) -> None:
        super().__init__()
        self.events = events
        self.name = name
        self.needing = name != "later"

    def needs_deliveries(self) -> bool:
        return self.needing

    def delivery_started(self, record: Any, body: Any, delivery: Any) -> None:
        self.events.append(self.name)


def test_a_listener_that_needs_deliveries_later_takes_them_in_its_place() -> None:
    d = Dialogue()
    d.opened()
    d.begun()
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, link_credit=10)
    d.client.transfer()
    d.client.transfer()
    d.goodbye()
    conversation = Conversation10()
    events: list[str] = []
    first, later, last = (Deliveries(events, name) for name in ("first", "later", "last"))
    conversation.subscribe(first)
    conversation.subscribe(later)
    conversation.subscribe(last)
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
            if record.frame.name == "transfer":
                later.needing = True
                conversation.ask_again()
    assert events == ["first", "last", "first", "later", "last"]


def test_nobody_is_called_when_all_are_dismissed() -> None:
    for conversation, listener in ((Conversation091(), More()), (Conversation10(), Listener10())):
        conversation.subscribe(listener)  # type: ignore[attr-defined]
        assert conversation.listeners == [listener]  # type: ignore[attr-defined]
        conversation.dismiss()  # type: ignore[attr-defined]
        assert conversation.listeners == []  # type: ignore[attr-defined]


def _about_the_connection(d: Dialogue | Dialogue091, conversation: Conversation) -> set[str]:
    """The frames that may be about the connection as a whole, as the conversation says."""
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        return {record.frame.name for record in capture if conversation.take(record)}


def test_frames_of_messages_are_not_about_the_connection() -> None:
    d = Dialogue()
    d.opened()
    d.linked()
    d.client.transfer()
    d.server.disposition(0, role=True, settled=True)
    d.goodbye()
    assert _about_the_connection(d, Conversation10()) == {"header", "open", "close"}


@pytest.mark.parametrize("whole", [False, True])
def test_contents_are_not_about_the_connection(whole: bool) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.consume()
    d.server.deliver(b"one")
    d.client.ack()
    d.client.publish()
    d.goodbye()
    conversation = Conversation091()
    conversation.follow_whole_messages(whole)
    conversation.subscribe(Listener091())
    names = _about_the_connection(d, conversation)
    assert not names & {"basic.deliver", "basic.ack", "basic.publish", "content-header", "body"}
    assert names >= {"connection.tune-ok", "connection.open-ok", "connection.close", "basic.consume"}
