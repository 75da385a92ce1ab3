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


class _Waiting:
    """Octets that wait. moment: when the next piece of them is handed on, by the clock of the loop."""

    def __init__(self, moment: float, octets: bytes) -> None:
        self.moment = moment
        self.octets = octets
        self.at = 0


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
        # How much is handed on at a time, 0: all.
        self._piece = self._split
        if self._rate:
            turn = max(int(self._rate / _TURNS), 1)
            self._piece = min(turn, self._split or turn)
        self._queue: deque[_Waiting] = deque()
        self._free = 0.0  # when all before was handed on
        self._timer: asyncio.TimerHandle | None = None
        self._dropping = False

    def take(self, octets: bytes) -> None:
        """Octets were read."""
        at = begin = 0
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
                self._put(octets[at:begin], 0.0)
                self._put(octets[begin:end], delay)
                at = end
            begin = end
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
        """These wait, behind all others, and so much longer."""
        if not octets:
            return
        began = max(self._loop.time() + delay, self._free)
        waiting = _Waiting(began + self._takes(octets, 0), octets)
        self._free = began + (len(octets) / self._rate if self._rate else 0.0)
        self._queue.append(waiting)
        self.waiting += len(octets)

    def _takes(self, octets: bytes, at: int) -> float:
        """Seconds that the throttle takes for the next piece."""
        return min(self._piece, len(octets) - at) / self._rate if self._rate else 0.0

    def _due(self) -> None:
        self._timer = None
        self._hand_on()

    def _hand_on(self) -> None:
        """Hand on what is due."""
        while self._queue and self._queue[0].moment <= self._loop.time():
            waiting = self._queue[0]
            piece = waiting.octets[waiting.at : waiting.at + (self._piece or len(waiting.octets))]
            waiting.at += len(piece)
            if waiting.at < len(waiting.octets):
                waiting.moment += self._takes(waiting.octets, waiting.at)
            else:
                self._queue.popleft()
            self.waiting -= len(piece)
            self._deliver(piece)
        if self._queue:
            if self._timer is None:
                self._timer = self._loop.call_at(self._queue[0].moment, self._due)
        elif self._dropping:
            self._drop()
