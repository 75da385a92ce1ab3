"""What a finding says of the place: the delivery that its frame is about."""

from __future__ import annotations

from support import amqp10_encode as amqp
from support.dialogue import Dialogue
from support.judged import judged


def delivery_ids(d: Dialogue) -> list[tuple[str, int]]:
    return [(finding.rule, int(finding.delivery_id)) for some in judged(d.pcap()) for finding in some]


def test_of_a_transfer_it_is_its_own() -> None:
    d = Dialogue()
    d.linked(credit=0)
    d.client.transfer(delivery_id=7)
    d.client.transfer(delivery_id=8)
    d.goodbye()
    found = delivery_ids(d)
    assert [number for _, number in found if number >= 0] == [7, 8]


def test_of_a_later_transfer_it_is_that_of_the_first() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(more=True, delivery_id=0xFFFFFFFF)
    d.client.transfer(b"", message_format=5)
    d.goodbye()
    assert delivery_ids(d) == [("amqp10/D-FMT-CONT", 0xFFFFFFFF)]


def test_of_a_disposition_it_is_the_first() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    d.server.disposition(first=5, last=2)
    d.goodbye()
    assert delivery_ids(d) == [("amqp10/D-DISP-RANGE", 5)]


def test_of_another_frame_there_is_none() -> None:
    d = Dialogue()
    d.begun()
    d.client.attach(source=amqp.source(address=amqp.string(b"\xff")))
    d.goodbye()
    assert delivery_ids(d) == [("amqp10/T-STR-UTF8", -1)]
