"""The rows of deliveries that are not over: found by session or channel, bounded, by age."""

from __future__ import annotations

import pytest

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.pipeline import deliveries
from amqpscope.pipeline.deliveries import DeliveryRow, OpenDeliveries
from amqpscope.reassembly.provenance import Provenance
from dissectors.interface import Frame


def row() -> DeliveryRow:
    packet = Provenance(1, 2, -1)
    frame = Frame(0, 8, "amqp", "transfer", 0)
    key = bytes([10, 0, 0, 1, 10, 0, 0, 2, 0x80, 0, 0x16, 0x28])
    return DeliveryRow(FrameRecord(Connection("capture", 0, 0, key), 0, packet, packet, frame), None)


def test_rows_are_found_and_removed() -> None:
    opened = OpenDeliveries()
    rows = [row() for _ in range(4)]
    for number, one in enumerate(rows):
        opened.add(number % 2, number, one)
    assert opened.find(1, 3) is rows[3]
    assert opened.find(0, 3) is None
    opened.remove(1, 1)
    assert opened.find(1, 1) is None
    assert opened.all_rows() == [rows[0], rows[2], rows[3]]
    assert opened.drop(0) == [rows[0], rows[2]]
    assert opened.drop(0) == []
    assert opened.all_rows() == [rows[3]]


def test_groups_without_rows_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the rows went: a capture may have any number of sessions that never end."""
    monkeypatch.setattr(deliveries, "MAX_UNSETTLED", 100)
    opened = OpenDeliveries()
    given: list[DeliveryRow] = []
    for group in range(1000):
        opened.add(group, "settled", row())
        opened.remove(group, "settled")
        opened.add(group, "open", row())
        surplus = opened.surplus()
        assert surplus == sorted(surplus, key=lambda one: one.number)
        given += surplus
    assert [int(one.number) for one in given] == list(range(1, 2 * len(given), 2))
    assert len(given) + len(opened.all_rows()) == 1000
    assert len(opened.all_rows()) <= 100
    assert len(opened._groups) <= 101
