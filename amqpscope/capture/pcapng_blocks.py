"""What the blocks of a pcapng file are: their kinds and options, and the interfaces that they describe.

Source: draft-ietf-opsawg-pcapng, sections 3 and 4.
"""

from typing import Any, Final

from amqpscope.limits import MAX_TIME
from dissectors.wire import i64

SECTION_HEADER: Final = 0x0A0D0D0A  # the same in both byte orders
BYTE_ORDER: Final = 0x1A2B3C4D
INTERFACE_DESCRIPTION: Final = 1
OBSOLETE_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
INTERFACE_STATISTICS: Final = 5
ENHANCED_PACKET: Final = 6
DECRYPTION_SECRETS: Final = 10
SYSTEMD_JOURNAL: Final = 9
CUSTOM: Final = 0x00000BAD
CUSTOM_NOT_COPIED: Final = 0x40000BAD
SYSDIG_EVENT: Final = 0x204
SYSDIG_EVENT_2: Final = 0x216
SYSDIG_EVENT_2_LARGE: Final = 0x221

OPTION_END: Final = 0
OPTION_NAME: Final = 2  # if_name
OPTION_DESCRIPTION: Final = 3  # if_description
OPTION_TIME_UNIT: Final = 9  # if_tsresol
OPTION_FILTER: Final = 11  # if_filter
OPTION_TIME_OFFSET: Final = 14  # if_tsoffset
OPTION_LOST: Final = 4  # epb_dropcount
OPTION_INTERFACE_LOST: Final = 5  # isb_ifdrop
OPTION_SYSTEM_LOST: Final = 7  # isb_osdrop

TLS_KEY_LOG: Final = 0x544C534B  # the kind of secrets that are lines of a key log

_NEVER_QUICK: Final = -1


class Interface:
    """One interface of a section: what its packets are, and the unit and zero of their times.

    `texts`: its name, its description and its capture filter, as far as they are given.

    `unit` is the if_tsresol octet: 10 to the minus n, or with the high bit set 2 to the minus n, seconds.
    `offset` (if_tsoffset) is in seconds. `lost`: packets that were lost before others; `lost_in_all`: those
    that the statistics tell of.
    """

    def __init__(self, link_type: i64, snaplen: i64, unit: i64, offset: int) -> None:
        self.link_type = link_type
        self.snaplen = snaplen
        self.unit = unit
        self.offset = offset
        self.texts: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self.lost = 0
        self.lost_in_all = 0
        # Where the time fits into 63 bits by one multiplication and one addition, it is done that way: for
        # decimal units down to the nanosecond, and high words of the time stamp up to `quick_high`.
        self.nanoseconds: i64 = 0
        self.offset_nanoseconds: i64 = 0
        self.quick_high: i64 = _NEVER_QUICK
        offset_nanoseconds: int = offset * 1_000_000_000
        if unit <= 9 and 0 <= offset_nanoseconds < MAX_TIME:
            nanoseconds: int = 1
            for _ in range(9 - unit):
                nanoseconds *= 10
            self.nanoseconds = nanoseconds
            self.offset_nanoseconds = offset_nanoseconds
            self.quick_high = (((MAX_TIME - offset_nanoseconds) // nanoseconds) >> 32) - 1

    def time(self, high: i64, low: i64) -> int:
        """Two 32 bit words of time stamp in nanoseconds since 1970, rounded down, of any size and sign."""
        upper: int = high  # two ints: with an i64 on either side it would be an i64
        lower: int = low
        ticks: int = (upper << 32) | lower
        power: int = self.unit & 0x7F
        ticks *= 1_000_000_000
        if self.unit & 0x80:
            ticks >>= power
        else:
            scale: int = 10**power
            ticks //= scale
        return ticks + self.offset * 1_000_000_000

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        kind = (self.link_type, self.snaplen, self.unit, self.offset)
        return (*kind, self.lost, self.lost_in_all, self.texts)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Interface":
        """The object of what `dump` returned."""
        link_type, snaplen, unit, offset, lost, lost_in_all, texts = state
        interface = Interface(link_type, snaplen, unit, offset)
        interface.lost = lost
        interface.lost_in_all = lost_in_all
        interface.texts = texts
        return interface
