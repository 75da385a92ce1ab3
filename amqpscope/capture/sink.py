"""Where the capture layer hands its segments to."""

from mypy_extensions import mypyc_attr

from dissectors.wire import i64


@mypyc_attr(allow_interpreted_subclasses=True)
class SegmentSink:
    """Takes TCP segments in capture order, and notes about the capture. Made to be subclassed.

    identification: of the IPv4 datagram that brought the segment being handed on, 0 if it has none (as in
    IPv6) or it is not known.
    window: of that segment, the window field as in the header in the low 16 bits. Above them, of a SYN, 1
    plus the shift count of its window scale option (RFC 7323, section 2.2), 16 if it has no such option; 0 if
    that is not known, or it is no SYN. 2**32 - 1: nothing of it is known.
    """

    identification: i64 = 0
    window: i64 = 0xFFFFFFFF

    def segment(
        self,
        key: bytes,
        reverse: bytes,
        packet: i64,
        time: i64,
        seq: i64,
        ack: i64,
        flags: i64,
        buf: bytes,
        start: i64,
        end: i64,
        cut: i64,
    ) -> None:
        """One captured TCP segment, with or without payload.

        `key`: source address, destination address, source port, destination port as on the wire (12 octets
        for IPv4, 36 for IPv6); `reverse`: the same with the ends swapped. `packet`: its number as Wireshark
        counts, from 1. `time`: nanoseconds since 1970. `seq`, `ack`: the raw 32 bit numbers, `ack` -1 when
        the ACK flag is off. `flags`: the low 8 flag bits. The captured payload is `buf[start:end]`, and `cut`
        octets of payload followed it on the wire that were not captured. `buf` is only lent for the call.
        """

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something is wrong with the capture: `code` is `capture/...`, `packet` 0 if it is the file itself.

        `detail` is made of numbers and fixed words: nothing of it comes from the file as text.
        """

    def dropped(self, packet: i64, time: i64, count: i64) -> None:
        """The capture lost `count` packets before `packet`, of that time; packet 0: nobody knows where."""
