"""Between the reading of octets and their handing on: where faults happen, in one direction."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final

from amqpscope.capture.proxy.faults import Fault
from amqpscope.capture.proxy.frame_names import FrameNames

__all__ = ["Gate"]

_TURNS: Final = 20
"""Pieces in a second that a throttle hands on."""


class Gate:
    """One direction of a connection. deliver: hands octets on. remark: says what was done to the newest
    packet. drop: resets the connection. seen: frames of both directions by name.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        faults: Sequence[Fault],
        seen: Counter[str],
        deliver: Callable[[bytes], None],
        remark: Callable[[str], None],
        drop: Callable[[], None],
    ) -> None:
        self.waiting = 0
        self._loop = loop
        self._faults = faults
        self._seen = seen
        self._deliver = deliver
        self._remark = remark
        self._drop = drop
        self._names = FrameNames()
        self._split = min((one.split for one in faults if one.split), default=0)
        self._rate = min((one.throttle for one in faults if one.throttle), default=0.0)
        # What waits: when it is handed on (by the loop's clock), and what.
        self._queue: deque[tuple[float, bytes]] = deque()
        self._free = 0.0  # when all before was handed on
        self._timer: asyncio.TimerHandle | None = None
        self._dropping = False

    def take(self, octets: bytes) -> None:
        """Octets were read."""
        at = 0
        for end, name in self._names.take(octets):
            if self._dropping:
                break
            delay = 0.0
            self._seen[name] += 1
            for fault in self._faults:
                if fault.frame != name:
                    continue
                delay += fault.delay
                if fault.delay:
                    self._remark(f"fault: {fault.text}")
                if fault.drop and self._seen[name] == fault.drop:
                    self._remark(f"fault: {fault.text}; the proxy resets both peers behind it")
                    self._dropping = True
            if delay or self._dropping:
                self._put(octets[at:end], delay)
                at = end
        if not self._dropping:
            self._put(octets[at:], 0.0)
        self._hand_on()

    def close(self) -> None:
        """Hand on nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queue.clear()
        self.waiting = 0

    def _put(self, octets: bytes, delay: float) -> None:
        """These wait, behind all others. The last octet of what is delayed is handed on so much later."""
        size = len(octets)
        if self._rate:
            size = max(int(self._rate / _TURNS), 1)
        if self._split:
            size = min(size, self._split)
        now = self._loop.time()
        for at in range(0, len(octets), max(size, 1)):
            piece = octets[at : at + size]
            moment = max(now + delay, self._free)
            if self._rate:
                moment += len(piece) / self._rate
            self._free = moment
            self._queue.append((moment, piece))
            self.waiting += len(piece)

    def _due(self) -> None:
        self._timer = None
        self._hand_on()

    def _hand_on(self) -> None:
        """Hand on what is due."""
        while self._queue and self._queue[0][0] <= self._loop.time():
            piece = self._queue.popleft()[1]
            self.waiting -= len(piece)
            self._deliver(piece)
        if self._queue:
            if self._timer is None:
                self._timer = self._loop.call_at(self._queue[0][0], self._due)
        elif self._dropping:
            self._drop()
