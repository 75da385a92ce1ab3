"""The April-2011 draft, followed as the final is: links, and deliveries by any of their ids."""

from __future__ import annotations

from io import BytesIO

import pytest
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011

from amqpscope.input.capture import Capture
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10_draft2011.spoken import body_of, carried_by
from dissectors.amqp10.messaging import Modified, Received
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.transactions import Coordinator, TransactionalState

MESSAGE = [draft.section("header"), draft.section("properties"), draft.data(b"octets" * 50)]


class Heard(Listener10):
    """Puts down deliveries and dispositions by the first transfer-ids."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []
        self.links: list[Link] = []

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if link not in self.links:
            self.links.append(link)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.said.append(("starts", delivery.id))

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.said.append(("goes on", delivery.id))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        self.said.append(("names", [delivery.id for delivery in deliveries]))


def records(d: Dialogue2011) -> list[FrameRecord]:
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        return list(capture)


def heard(d: Dialogue2011) -> Heard:
    """The events, which are the same where no settled deliveries are kept."""
    without = _heard(d, False)
    with_settled = _heard(d, True)
    assert without.said == with_settled.said
    return with_settled


def _heard(d: Dialogue2011, settled: bool) -> Heard:
    found = Heard()
    conversation = Conversation10(settled)
    conversation.subscribe(found)
    for record in records(d):
        conversation.take(record)
    return found


@pytest.mark.parametrize(
    ("first", "last", "named"),
    [
        (0, None, [0]),
        (1, None, [1]),
        (4, None, [1]),  # the last transfer of the second message
        (0, 2, [0, 1]),
        (3, 5, [1, 5]),
        (2, 1000, [1, 5]),
        (6, 1000, []),
        (0, 0xFFFFFFFF, []),  # the last is before the first
    ],
)
def test_a_delivery_is_named_by_any_of_its_ids(first: int, last: int | None, named: list[int]) -> None:
    d = Dialogue2011()
    d.linked()
    d.client.transfer()
    assert len(d.client.transfers(MESSAGE, 200)) == 4
    d.client.transfer()
    d.server.disposition(first, last, settled=None)
    found = heard(d)
    assert len(found.links) == 1
    assert [said for said in found.said if said[0] == "starts"] == [
        ("starts", 0),
        ("starts", 1),
        ("starts", 5),
    ]
    assert found.said[-1] == ("names", named)


def test_what_is_settled_is_named_no_more() -> None:
    d = Dialogue2011()
    d.linked()
    d.client.transfers(MESSAGE, 200)
    d.server.disposition(2)
    d.server.disposition(0, 3)
    assert heard(d).said[-2:] == [("names", [0]), ("names", [])]


def test_another_tag_begins_another_delivery() -> None:
    d = Dialogue2011()
    d.linked()
    d.client.transfer(more=True, delivery_tag=b"a")
    d.client.transfer(more=True, delivery_tag=b"a")
    d.client.transfer(delivery_tag=b"b")
    assert heard(d).said == [("starts", 0), ("goes on", 0), ("starts", 2)]


def test_states_and_termini_in_the_terms_of_the_final() -> None:
    d = Dialogue2011()
    d.linked(client={"target": draft.coordinator()})
    d.client.transfer([draft.data(b"12345")], state=draft.transfer_state(bytes_transferred=7))
    modified = draft.modified(delivery_failed=True, deliver_elsewhere=True)
    d.server.disposition(state=draft.transfer_state(outcome=modified))
    d.server.disposition(state=draft.transfer_state(outcome=modified, txn_id=b"t"))
    bodies = [body_of(record.frame) for record in records(d)]
    [attach, *_] = [body for body in bodies if isinstance(body, Attach)]
    assert isinstance(attach.target, Coordinator)
    [transfer] = [body for body in bodies if isinstance(body, Transfer)]
    assert isinstance(transfer.state, Received)
    assert transfer.state.section_offset == 7
    first, second = [body.state for body in bodies if isinstance(body, Disposition)]
    assert isinstance(first, Modified)
    assert (first.delivery_failed, first.undeliverable_here) == (True, True)
    assert isinstance(second, TransactionalState)
    assert (second.txn_id, type(second.outcome)) == (b"t", Modified)
    assert sum(int(carried_by(record.frame)) for record in records(d)) == 5
