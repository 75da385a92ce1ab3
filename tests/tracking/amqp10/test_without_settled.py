"""A conversation that keeps no settled deliveries, or reuses objects, emits the same events."""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpscope
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import OpenDelivery, Session
from dissectors.amqp10.performatives import Disposition, Transfer

CAPTURES = Path(__file__).resolve().parents[3] / "captures"
FOLDERS = ("rules/diag/settlement-slow", "rules/diag/unsettled-pile", "rules/diag/redelivery-loop")
CASES = [
    *(path for folder in FOLDERS for path in sorted((CAPTURES / folder).glob("*.pcap"))),
    *sorted((CAPTURES / "rules" / "amqp10-draft2011").glob("T-*/*.pcap"))[:8],
]


class Log(Listener10):
    """Writes down which deliveries transfers and dispositions are about."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, int, list[int]]] = []

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.lines.append(("starts", int(record.packet), [int(delivery.packet)]))

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.lines.append(("goes on", int(record.packet), [int(delivery.packet)]))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        self.lines.append(("disposition", int(record.packet), [int(one.packet) for one in deliveries]))


def _events(
    records: list[FrameRecord], settled: bool, reuse: bool = False
) -> list[tuple[str, int, list[int]]]:
    followed: dict[Connection, Conversation10] = {}
    log = Log()
    for record in records:
        conversation = followed.get(record.connection)
        if conversation is None:
            conversation = followed[record.connection] = Conversation10(settled)
            conversation.reuse_deliveries(reuse)
            conversation.subscribe(log)
        conversation.take(record)
    return log.lines


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_events_are_the_same(path: Path) -> None:
    records = list(amqpscope.read(path))
    assert _events(records, False) == _events(records, True) == _events(records, False, reuse=True)
    assert len(CASES) > 8
