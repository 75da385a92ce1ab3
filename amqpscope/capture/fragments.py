"""IP fragments, put together again.

Theory of operation. A datagram that is not complete is a stretch of octets and a mark for each of them: not
seen, captured, or on the wire and not captured. It is complete when its length is known and every mark is
set; then its octets up to the first that was not captured are given back, and it is forgotten. Fragments may
come in any order and more than once.

What differs where two fragments overlap cannot be right: of the datagram nothing is used then, as RFC 5722
has it for IPv6. What is never complete is given up after `FRAGMENT_TIME`, or when too much waits, the oldest
first. Its segment is missing then, as if it had been lost.

IPv4: RFC 791, section 3.2. IPv6: RFC 8200, section 4.5.
"""

from typing import Any, Final

from amqpscope.limits import FRAGMENT_DATAGRAMS, FRAGMENT_OCTETS, FRAGMENT_TIME
from dissectors.wire import i64

__all__ = ["Fragments", "IpFragment"]

# What came of a fragment; or at least 0: the datagram is whole.
WAITING: Final = -1
MALFORMED: Final = -2
DIFFERENT: Final = -3

_LARGEST: Final = 65_535  # octets of a datagram

_NOT_SEEN: Final = 0
_CAPTURED: Final = 1
_NOT_CAPTURED: Final = 2


class IpFragment:
    """One captured fragment of a datagram."""

    def __init__(
        self, key: bytes, header: bytes, offset: i64, more: bool, captured: bytes, wire: i64
    ) -> None:
        # Says of which datagram it is.
        self.key: bytes = key
        # What goes before the octets of the whole datagram if this is its first fragment.
        self.header: bytes = header
        # Where in the datagram its octets lie.
        self.offset: i64 = offset
        # Others follow it.
        self.more: bool = more
        # Its octets, as far as they were captured.
        self.captured: bytes = captured
        # How many octets were sent.
        self.wire: i64 = wire


class Datagram:
    """One datagram of which fragments have come."""

    def __init__(self, packet: i64, time: i64) -> None:
        self.packet = packet  # of the first fragment that came
        self.time = time
        self.header = b""  # of its first fragment
        self.total: i64 = -1  # octets behind the header, -1 while unknown
        self.octets = bytearray()
        self.marks = bytearray()
        self.again = False  # a datagram of the same key was complete shortly before


class Fragments:
    """Datagrams that wait for fragments. `header`, `payload`, `total`: of the last one that was complete.

    `abandoned`: first packets and times of those given up, for the caller to take.
    """

    def __init__(self) -> None:
        self.header = b""
        self.payload = b""
        self.total: i64 = 0
        self.abandoned: list[tuple[int, int]] = []
        self._waiting: dict[bytes, Datagram] = {}
        self._octets: i64 = 0
        # When the last ones were complete. What comes again of one, as from a second tap, is nothing missing.
        self._complete: dict[bytes, int] = {}

    def datagram(self, size: i64) -> bytes:
        """The last datagram that was complete, as if it had never been cut up. size: as `add` gave it."""
        header = self.header
        carried: int = size
        if header[0] >> 4 == 4:
            total: int = len(header) + carried
            return header[:2] + total.to_bytes(2, "big") + header[4:6] + b"\0\0" + header[8:] + self.payload
        return header[:4] + carried.to_bytes(2, "big") + header[6:] + self.payload

    def add(self, packet: i64, time: i64, fragment: IpFragment) -> i64:
        """The next fragment, with the number and time (ns) of its packet.

        Gives the whole datagram's length, WAITING, MALFORMED (not used) or DIFFERENT (it is given up).
        """
        key = fragment.key
        header = fragment.header
        offset: i64 = fragment.offset
        more = fragment.more
        captured = fragment.captured
        wire: i64 = fragment.wire
        stop: i64 = offset + wire
        largest: i64 = _LARGEST
        if header[0] >> 4 == 4:  # there the length counts the header, too
            largest -= len(header)
        if wire <= 0 or stop > largest or (more and wire & 7 != 0):
            return MALFORMED
        datagram = self._waiting.get(key)
        if datagram is not None and _apart(datagram.time, time):
            self._abandon(key)
            datagram = None
        if datagram is None:
            self._make_room(time)
            datagram = Datagram(packet, time)
            self._waiting[key] = datagram
            complete = self._complete.get(key)
            datagram.again = complete is not None and not _apart(complete, time)
        size: i64 = len(datagram.octets)
        if (datagram.total >= 0 and (stop > datagram.total or (not more and stop != datagram.total))) or (
            not more and stop < size
        ):
            self._forget(key)
            return DIFFERENT
        if not more:
            datagram.total = stop
        if offset == 0:
            datagram.header = header
        if stop > size:
            datagram.octets += bytes(stop - size)
            datagram.marks += bytes(stop - size)
            self._octets += stop - size
            while self._octets > FRAGMENT_OCTETS:
                oldest = next(iter(self._waiting))
                if oldest == key:  # it is to stay: it counts as the youngest from now on
                    del self._waiting[key]
                    self._waiting[key] = datagram
                else:
                    self._abandon(oldest)
        edge: i64 = offset + len(captured)
        if datagram.marks.count(_NOT_SEEN, offset, stop) == wire:
            datagram.octets[offset:edge] = captured
            datagram.marks[offset:edge] = b"\1" * len(captured)
            datagram.marks[edge:stop] = b"\2" * (stop - edge)
        elif not _agree(datagram, offset, captured, stop):
            self._forget(key)
            return DIFFERENT
        total = datagram.total
        if total < 0 or datagram.marks.find(_NOT_SEEN) >= 0:
            return WAITING
        there: i64 = datagram.marks.find(_NOT_CAPTURED)
        self.header = datagram.header
        self.payload = bytes(datagram.octets if there < 0 else datagram.octets[:there])
        self.total = total
        self._forget(key)
        self._complete[key] = time
        if len(self._complete) > FRAGMENT_DATAGRAMS:
            del self._complete[next(iter(self._complete))]
        return total

    def waits_for(self, key: bytes) -> bool:
        """Whether fragments of this datagram have come, and others have not."""
        return key in self._waiting

    def finish(self) -> None:
        """No fragment follows: give up whatever waits."""
        for key in list(self._waiting):
            self._abandon(key)

    def _make_room(self, time: i64) -> None:
        """Give up what waits for too long, or too much."""
        while self._waiting:
            oldest = next(iter(self._waiting))
            if (
                len(self._waiting) < FRAGMENT_DATAGRAMS
                and self._octets < FRAGMENT_OCTETS
                and not _apart(self._waiting[oldest].time, time)
            ):
                return
            self._abandon(oldest)

    def _abandon(self, key: bytes) -> None:
        datagram = self._waiting[key]
        if not datagram.again:
            self.abandoned.append((datagram.packet, datagram.time))
        self._forget(key)

    def _forget(self, key: bytes) -> None:
        self._octets -= len(self._waiting[key].octets)
        del self._waiting[key]

    def dump(self) -> tuple[Any, ...]:
        """What waits and what was complete, as plain values."""
        waiting = [
            (key, one.packet, one.time, one.header, one.total, bytes(one.octets), bytes(one.marks), one.again)
            for key, one in self._waiting.items()
        ]
        return (tuple(waiting), tuple(self._complete.items()))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Fragments":
        """Fragments that go on where those that gave `state` by `dump` were."""
        fragments = Fragments()
        waiting, complete = state
        fragments._complete = dict(complete)
        for key, packet, time, header, total, octets, marks, again in waiting:
            datagram = Datagram(packet, time)
            datagram.header = header
            datagram.total = total
            datagram.octets = bytearray(octets)
            datagram.marks = bytearray(marks)
            datagram.again = again
            fragments._waiting[key] = datagram
            fragments._octets += len(octets)
        return fragments


def _apart(earlier: i64, time: i64) -> bool:
    """Whether two times are too far apart for fragments of one datagram."""
    apart: i64 = time - earlier
    return apart > FRAGMENT_TIME or apart < -FRAGMENT_TIME


def _agree(datagram: Datagram, offset: i64, captured: bytes, stop: i64) -> bool:
    """Put a fragment where others lie already; False if it differs from them."""
    octets = datagram.octets
    marks = datagram.marks
    at: i64 = offset
    size: i64 = len(captured)
    while at < stop:
        if at - offset < size:
            if marks[at] != _CAPTURED:
                octets[at] = captured[at - offset]
                marks[at] = _CAPTURED
            elif octets[at] != captured[at - offset]:
                return False
        elif marks[at] == _NOT_SEEN:
            marks[at] = _NOT_CAPTURED
        at += 1
    return True
