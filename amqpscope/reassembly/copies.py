"""What came more than once of one direction, and which of it was captured twice, as by two taps.

Copies are packets that were captured twice; none of them was sent again.

Theory of operation. What is sent again goes in another datagram, with another identification (RFC 791,
section 3.1; IPv6 has none, and of it nothing is known to be a copy). So it is remembered which of the last
identifications there were, a bit for each: a segment whose identification was there is a copy. They count up
and wrap at 16 bits; the later one of two is that to which the way up is shorter.
"""

from typing import Any, Final

from amqpscope.limits import REASSEMBLY_COPIES_REACH
from dissectors.wire import i64

__all__ = ["Copies"]

_ALL: Final = (1 << REASSEMBLY_COPIES_REACH) - 1


class Copies:
    """What came more than once of one direction."""

    def __init__(self) -> None:
        # The segment in hand is a copy.
        self.in_hand: bool = False
        # Octets that had been captured before, of copies and of what was sent again.
        self.again: i64 = 0
        # Octets and packets of copies whose octets had been captured before.
        self.octets: i64 = 0
        self.packets: i64 = 0
        # The packet and the time (ns) of the first of these; 0 if there is none.
        self.first_packet: i64 = 0
        self.first_time: i64 = 0
        # The number of the last segment that was counted.
        self._segment: i64 = 0
        # Of the newest datagram; and a bit for each of the last ones, 0 for it: whether there was one.
        self._newest: i64 = 0
        self._seen: i64 = 0

    def identify(self, identification: i64) -> None:
        """The segment in hand is of a datagram with this identification, 0 if none is known."""
        self.in_hand = False
        if identification <= 0:
            return
        if self._seen == 0:
            self._newest = identification
            self._seen = 1
            return
        ahead: i64 = (identification - self._newest) & 0xFFFF
        if ahead == 0:
            self.in_hand = True
        elif ahead < 0x8000:
            self._newest = identification
            if ahead >= REASSEMBLY_COPIES_REACH:
                self._seen = 1
            else:
                self._seen = ((self._seen & (_ALL >> ahead)) << ahead) | 1
        else:
            behind: i64 = 0x10000 - ahead
            if behind < REASSEMBLY_COPIES_REACH:
                # Not `1 << behind`: compiled, a literal has 32 bits.
                bit: i64 = 1
                bit <<= behind
                self.in_hand = self._seen & bit != 0
                self._seen |= bit

    def count(self, size: i64, segment: i64, packet: i64, time: i64) -> None:
        """`size` octets of the segment in hand had been captured before. It may be reported in several parts.

        segment: its number in the direction. packet, time (ns): those that it came with.
        """
        self.again += size
        if not self.in_hand or size <= 0:
            return
        self.octets += size
        if self._segment != segment:
            self._segment = segment
            self.packets += 1
            if self.packets == 1:
                self.first_packet = packet
                self.first_time = time

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (
            (self._newest, self._seen, self.again, self.octets),
            (self.packets, self._segment, self.first_packet, self.first_time),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Copies":
        """The object of what `dump` returned."""
        datagrams, counts = state
        copies = Copies()
        copies._newest, copies._seen, copies.again, copies.octets = datagrams
        copies.packets, copies._segment, copies.first_packet, copies.first_time = counts
        return copies
