"""Snapshots as plain values, and what they must say: what the endpoints do once all has reached them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.judged import Trickle

import amqpscope
from amqpscope.rules.amqp091.judge import Judge091
from amqpscope.rules.amqp10.judge import Judge10
from amqpscope.rules.judge import Judge
from amqpscope.tracking.snapshot import ConnectionSnapshot

__all__ = ["judges", "plain", "snapshot_of", "when_all_arrived"]


def plain(value: Any) -> Any:
    """A snapshot, or a part of one, as dictionaries and lists."""
    if isinstance(value, (int, str, dict)) or value is None:
        return value
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {name: plain(getattr(value, name)) for name in dir(value) if not name.startswith("_")}


def judges(octets: bytes, sizes: list[int]) -> Iterator[Judge]:
    """The judges of all open connections, each time a piece of these sizes of a capture was read."""
    with amqpscope.Capture(Trickle(octets, sizes), amqpscope.CaptureOptions(judge=True)) as capture:
        for _ in capture.blocks():
            for analysis in capture.open_connections():
                if analysis.judge is not None:
                    yield analysis.judge


def snapshot_of(octets: bytes) -> ConnectionSnapshot:
    """The snapshot of the one connection, as it stands before the capture ends."""
    snapshot = None
    for judge in judges(octets, [100]):
        snapshot = judge.snapshot()
    assert snapshot is not None
    return snapshot


def when_all_arrived(judge: Judge) -> ConnectionSnapshot:
    """The snapshot of a copy of its endpoints to which all has been delivered."""
    assert isinstance(judge, (Judge10, Judge091))
    twin = type(judge).load(judge.dump(), judge.connection, [])
    twin.client.catch_up(-1, twin.server.sent_end)
    twin.server.catch_up(-1, twin.client.sent_end)
    return twin.snapshot()
