"""The frames next to a packet, on its connection."""

from collections import deque
from typing import Final

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.tracking.amqp10.identity import Link

__all__ = ["FramesAround"]

_NEIGHBOURS: Final = 8
"""Frames before the packet, and behind it."""

_LATELY: Final = 1000
"""Connections whose newest frames are kept until the packet comes."""


class FramesAround:
    """Takes the frames of a capture; keeps those next to a packet, and their links.

    found: the packet has come.
    """

    def __init__(self, packet: int) -> None:
        self._packet = packet
        # Before that packet: the newest frames of each connection that has sent lately.
        self._newest: dict[Connection, deque[tuple[FrameRecord, Link | None]]] = {}
        self._after = 0
        self.kept: list[tuple[FrameRecord, Link | None]] = []

    def add(self, record: FrameRecord, link: Link | None) -> None:
        """The next frame of the capture."""
        at_it = int(record.packet) == self._packet
        if self.kept:
            if record.connection is self.kept[-1][0].connection and (at_it or self._after < _NEIGHBOURS):
                self.kept.append((record, link))
                self._after += not at_it
            return
        newest = self._newest.pop(record.connection, None)
        if at_it:
            self.kept = [*(newest or ()), (record, link)]
            self._newest.clear()
            return
        newest = newest or deque(maxlen=_NEIGHBOURS)
        newest.append((record, link))
        self._newest[record.connection] = newest
        if len(self._newest) > _LATELY:
            del self._newest[next(iter(self._newest))]
