"""Which fragments of a message a sender has sent so far, link by link.

A message of the April-2011 draft is a row of sections, each sent in one or more fragments, over one or more
transfers. What is kept of a delivery under way is its newest fragment and which sections it had; of each
delivery, how many octets were sent.

Sources: the draft of 5 April 2011 (revision 1239M), sections 3.6.11, 3.8.9 and 4.2.1.
"""

from typing import Any, Final

from amqpscope.limits import MAX_STATED
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.wire import i64

__all__ = ["FOOTER", "HEADER", "PROPERTIES", "UNKNOWN", "Progress", "SectionFragment", "SentOctets"]

# mypyc: sentinel, a number of a fragment that is not there, or could not be read.
UNKNOWN: Final = -1

HEADER: Final = 0
PROPERTIES: Final = 1
FOOTER: Final = 2

_LARGEST: Final = 1 << 60
"""Numbers of this size and beyond nobody sends; they are not counted with."""


class SectionFragment:
    """The place of a fragment in its message.

    first, last: 1 or 0. octets: of its payload. Each may be UNKNOWN.
    """

    def __init__(self, fragment: draft.Fragment) -> None:
        self.first: i64 = _known(fragment.first)
        self.last: i64 = _known(fragment.last)
        self.code: i64 = _known(fragment.section_code)
        self.number: i64 = _known(fragment.section_number)
        self.offset: i64 = _known(fragment.section_offset)
        self.octets: i64 = UNKNOWN if fragment.payload is None else len(fragment.payload)


class Progress:
    """The fragments of one delivery so far.

    number, code, last: of the newest fragment. end: the octet of its section behind it, UNKNOWN if not all of
    the section can be counted. seen: the section-codes that sections had, a bit each. resumed: it goes on
    where an earlier link left it.
    """

    def __init__(self, resumed: bool) -> None:
        self.number: i64 = UNKNOWN
        self.code: i64 = UNKNOWN
        self.last: i64 = UNKNOWN
        self.end: i64 = UNKNOWN
        self.seen: i64 = 0
        self.resumed: bool = resumed

    def has(self, code: i64) -> bool:
        """Whether an earlier section had this section-code."""
        return 0 <= code < 8 and self.seen & (1 << code) != 0

    def take(self, fragment: SectionFragment) -> None:
        """The next fragment was sent; it was judged before."""
        same = fragment.number == self.number and fragment.number != UNKNOWN
        if fragment.octets == UNKNOWN or fragment.offset == UNKNOWN:
            self.end = UNKNOWN
        else:
            self.end = fragment.offset + fragment.octets
        if not same and 0 <= fragment.code < 8:
            self.seen |= 1 << fragment.code
        self.number = fragment.number
        self.code = fragment.code
        self.last = fragment.last

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            int(self.number),
            int(self.code),
            int(self.last),
            int(self.end),
            int(self.seen),
            self.resumed,
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Progress":
        """The object of what `dump` returned."""
        progress = Progress(state[5])
        progress.number, progress.code, progress.last, progress.end, progress.seen = state[:5]
        return progress


class SentOctets:
    """How many octets of each delivery were sent so far, by any transfer-id of the delivery.

    Keys begin with the direction and the number of the session. Of very many deliveries all are forgotten.
    """

    def __init__(self) -> None:
        # The first transfer-id of the delivery of each transfer.
        self.firsts: dict[tuple[int, int, int], int] = {}
        # Octets of the payloads of each delivery, by its first transfer-id.
        self.octets: dict[tuple[int, int, int], int] = {}

    def add(self, direction: int, session: int, transfer_id: int, first: int, octets: int) -> None:
        """A transfer of the delivery that began with the transfer-id `first` carries so many octets."""
        if len(self.firsts) >= MAX_STATED:
            self.firsts.clear()
            self.octets.clear()
        key = (direction, session, first)
        if transfer_id == first:
            self.octets[key] = octets
        elif key in self.octets:
            self.octets[key] += octets
        else:
            return
        self.firsts[(direction, session, transfer_id)] = first

    def total(self, direction: int, session: int, transfer_id: int) -> i64:
        """The octets of the delivery that a transfer-id names, UNKNOWN if they are not known."""
        first = self.firsts.get((direction, session, transfer_id))
        return UNKNOWN if first is None else self.octets.get((direction, session, first), UNKNOWN)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (tuple(self.firsts.items()), tuple(self.octets.items()))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SentOctets":
        """The object of what `dump` returned."""
        sent = SentOctets()
        sent.firsts, sent.octets = dict(state[0]), dict(state[1])
        return sent


def _known(value: int | None) -> i64:
    """A number, or a flag as 1 or 0; UNKNOWN for none and for a number that nobody sends."""
    return UNKNOWN if value is None or value >= _LARGEST else int(value)
