"""The pcap format: a file header of 24 octets, then records of 16 octets and a packet each.

Source: draft-ietf-opsawg-pcap, sections 4 and 5. Micro- and nanosecond files in both byte orders, and
Kuznetzov's modified format, which differs only by 8 more octets in each record header (interface index,
protocol, packet type), none of them needed here.

A record that claims more captured octets than any packet has is damage. A fraction beyond one second, more
octets captured than were on the wire or than the snapshot length allows may be damage or a careless writer,
and a packet above 64 KiB damage or a rare packet: the records that follow decide, and with those in place
it is read, and the first three are noted.
"""

from typing import Any, Final

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.records import INCOMPLETE, NOT_CREDIBLE, RECORDS, START, CaptureReader
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.words import FOUR_WORDS, FOUR_WORDS_LITTLE, INTERPRETED
from amqpscope.limits import (
    MAX_LARGE_PACKET,
    MAX_PACKET,
    SEARCH_CHAIN,
    SEARCH_REACH,
    SEARCH_TIME_JUMP,
    SEARCH_WIRE,
)
from dissectors.wire import i64, u16, u16le, u32, u32le

FILE_HEADER: Final = 24
RECORD_HEADER: Final = 16
MODIFIED_RECORD_HEADER: Final = 24

MAGIC_MICROSECONDS: Final = 0xA1B2C3D4
MAGIC_NANOSECONDS: Final = 0xA1B23C4D
MAGIC_MODIFIED: Final = 0xA1B2CD34

_NO_SECONDS: Final = -1


def is_pcap(first: bytes) -> bool:
    """Whether a file that starts with these octets (at least 4) is a pcap file."""
    return len(first) >= 4 and (_is_magic(u32(first, 0)) or _is_magic(u32le(first, 0)))


def _is_magic(magic: i64) -> bool:
    return magic in (MAGIC_MICROSECONDS, MAGIC_NANOSECONDS, MAGIC_MODIFIED)


class PcapReader(CaptureReader):
    """Reads pcap files. `link_type` is known once the file header has been read, -1 before."""

    def __init__(self, sink: SegmentSink, decoder: PacketDecoder | None = None) -> None:
        super().__init__(sink, decoder)
        self.link_type: i64 = -1
        self._big = False
        self._header: i64 = RECORD_HEADER
        self._units: i64 = 1_000_000  # of the fraction, per second
        self._snaplen: i64 = MAX_PACKET
        self._bound: i64 = MAX_PACKET
        self._seconds: i64 = _NO_SECONDS  # of the last packet
        self._first_seconds: i64 = _NO_SECONDS  # of the first packet
        self._reference: i64 = _NO_SECONDS  # of a chain being judged

    def _start(self, buf: bytes, at: i64, end: i64) -> i64:
        if end - at < FILE_HEADER:
            self._need = FILE_HEADER
            return at
        magic = u32(buf, at)
        self._big = _is_magic(magic)
        if not self._big:
            magic = u32le(buf, at)
            if not _is_magic(magic):
                return self._stop(at, end, "the file has no pcap header")
        self._header = MODIFIED_RECORD_HEADER if magic == MAGIC_MODIFIED else RECORD_HEADER
        self._units = 1_000_000_000 if magic == MAGIC_NANOSECONDS else 1_000_000
        version: i64
        snaplen: i64
        if self._big:
            version = u16(buf, at + 4)
            snaplen = u32(buf, at + 16)
            self.link_type = u32(buf, at + 20)
        else:
            version = u16le(buf, at + 4)
            snaplen = u32le(buf, at + 16)
            self.link_type = u32le(buf, at + 20)
        # The upper bits tell of frame check sequences behind the packets, which no length here depends on.
        self.link_type &= 0xFFFF
        if version != 2:
            self._note("capture/version", f"pcap version {version} is read as version 2")
        self._snaplen = MAX_PACKET if snaplen == 0 else snaplen
        self._bound = MAX_PACKET
        if snaplen > MAX_PACKET:
            self._bound = MAX_LARGE_PACKET
        self._seconds = _NO_SECONDS
        self._first_seconds = _NO_SECONDS
        self._mode = RECORDS
        return at + FILE_HEADER

    def _records(self, buf: bytes, at: i64, end: i64) -> i64:
        decoder = self.decoder
        link_type: i64 = self.link_type
        header: i64 = self._header
        largest: i64 = min(SEARCH_REACH, self._snaplen)
        units: i64 = self._units
        nanoseconds: i64 = 1_000_000_000 // units
        big = self._big
        number: i64 = self.number
        seconds: i64 = self._seconds
        time: i64 = self._time
        fraction: i64
        captured: i64
        wire: i64
        now: i64
        if self._first_seconds == _NO_SECONDS and end - at >= header:
            self._first_seconds = u32(buf, at) if big else u32le(buf, at)
        four_words = (FOUR_WORDS if big else FOUR_WORDS_LITTLE).unpack_from
        while end - at >= header:
            if INTERPRETED:
                now, fraction, captured, wire = four_words(buf, at)
            elif big:
                now = u32(buf, at)
                fraction = u32(buf, at + 4)
                captured = u32(buf, at + 8)
                wire = u32(buf, at + 12)
            else:
                now = u32le(buf, at)
                fraction = u32le(buf, at + 4)
                captured = u32le(buf, at + 8)
                wire = u32le(buf, at + 12)
            if captured > largest or fraction >= units or captured > wire or wire == 0:
                self.number = number
                self._seconds = seconds
                self._time = time
                following = self._odd_record(buf, at, end, now, fraction, captured, wire)
                if self._mode != RECORDS or self._need > 0:
                    return following
                wire = max(wire, captured)
            start: i64 = at + header
            at = start + captured
            if at > end:
                at = start - header
                self._need = header + captured
                break
            number += 1
            seconds = now
            time = now * 1_000_000_000 + fraction * nanoseconds
            decoder.packet(number, time, link_type, buf, start, at, wire)
        else:
            self._need = header
        self.number = number
        self._seconds = seconds
        self._time = time
        return at

    def _odd_record(
        self, buf: bytes, at: i64, end: i64, now: i64, fraction: i64, captured: i64, wire: i64
    ) -> i64:
        """What to make of a record header that a correct writer would not have written.

        Gives back where to go on. In mode RECORDS that is `at`: either it takes `_need` octets to tell, or
        `_need` is 0 and the record is to be read as it stands.
        """
        self._need = 0
        if captured > self._bound:
            return self._damaged(at, f"a record claims to have {captured} captured octets")
        if wire == 0 and captured == 0:
            # As a record, the header of a pcap file has both lengths 0 (time zone and accuracy, never used).
            if self._looks_like_file_header(now, fraction):
                self._note(
                    "capture/joined",
                    f"another capture file begins at offset {self._origin + at}; capture files were joined "
                    "end to end, so packets may be out of order or may occur twice",
                )
                self._mode = START
                return at
            if now == 0 and fraction == 0:
                return self._damaged(at, "a record has only zeros")
            if fraction < self._units:
                return at
        place: i64 = at
        self._reference = self._seconds
        for _ in range(SEARCH_CHAIN):
            if place == end and self._final:
                break
            if end - place < self._header and not self._final:
                self._need = place + self._header - at
                return at
            length: i64 = self._bound + 1
            if end - place >= self._header and self._is_near(buf, place):
                length = u32(buf, place + 8) if self._big else u32le(buf, place + 8)
            if length > self._bound:
                return self._damaged(
                    at,
                    f"a record claims a fraction of a second of {fraction}, {captured} captured octets and "
                    f"{wire} octets on the wire, and no valid record follows",
                )
            place += self._header + length
        if fraction >= self._units:
            self._odd_note(
                "capture/time",
                (
                    f"the fraction of a second is {fraction} in units of 1/{self._units} s; amqpscope adds "
                    "this fraction unchanged"
                ),
            )
        if wire < captured:
            self._odd_note(
                "capture/length",
                (
                    f"a record has {captured} captured octets, but only {wire} octets on the wire; the "
                    "packet is read as complete"
                ),
            )
        elif captured > self._snaplen:
            self._odd_note(
                "capture/length",
                (
                    f"a record has {captured} captured octets, more than the snapshot length of "
                    f"{self._snaplen}"
                ),
            )
        return at

    def _odd_note(self, code: str, detail: str) -> None:
        """A note about the packet that comes next."""
        self.decoder.notes.add(code, self.number + 1, self._time, detail)

    def _looks_like_file_header(self, magic: i64, versions: i64) -> bool:
        """Whether what was read as time is a file header's magic and its version, 2.4, in this byte order."""
        return _is_magic(magic) and versions == (0x00020004 if self._big else 0x00040002)

    def _step(self, buf: bytes, at: i64, end: i64, first: bool) -> i64:
        if end - at < self._header:
            return INCOMPLETE
        # The captured length first: it dismisses most places by one look.
        captured: i64 = u32(buf, at + 8) if self._big else u32le(buf, at + 8)
        if captured > self._bound or captured == 0:
            return NOT_CREDIBLE
        now: i64
        fraction: i64
        wire: i64
        if self._big:
            now = u32(buf, at)
            fraction = u32(buf, at + 4)
            wire = u32(buf, at + 12)
        else:
            now = u32le(buf, at)
            fraction = u32le(buf, at + 4)
            wire = u32le(buf, at + 12)
        if wire < captured or wire > SEARCH_WIRE or fraction >= self._units:
            return NOT_CREDIBLE
        if first:
            # The last packet may have been read from damage already; then the first one still tells the time.
            self._reference = self._seconds
            if not self._is_near(buf, at):
                self._reference = self._first_seconds
                if not self._is_near(buf, at):
                    return NOT_CREDIBLE
            self._reference = now
        elif not self._is_near(buf, at):
            return NOT_CREDIBLE
        return at + self._header + captured

    def _is_near(self, buf: bytes, at: i64) -> bool:
        """Whether the time of the record at `at` is credible after the one it is compared with, if any."""
        now: i64 = u32(buf, at) if self._big else u32le(buf, at)
        if self._reference == _NO_SECONDS:
            self._reference = now
        jump: i64 = now - self._reference
        return -SEARCH_TIME_JUMP <= jump <= SEARCH_TIME_JUMP

    def _window(self) -> i64:
        return (SEARCH_CHAIN + 2) * (self._header + self._bound)

    def dump(self) -> tuple[Any, ...]:
        return (
            super().dump(),
            self.link_type,
            self._big,
            self._header,
            self._units,
            self._snaplen,
            self._bound,
            self._seconds,
            self._first_seconds,
        )

    @staticmethod
    def load(state: tuple[Any, ...], sink: SegmentSink) -> "PcapReader":
        """A reader that goes on where the one that gave `state` by `dump` was, with another sink."""
        common, link_type, big, header, units, snaplen, bound, seconds, first_seconds = state
        reader = PcapReader(sink)
        reader._restore(common)
        reader.link_type = link_type
        reader._big = big
        reader._header = header
        reader._units = units
        reader._snaplen = snaplen
        reader._bound = bound
        reader._seconds = seconds
        reader._first_seconds = first_seconds
        return reader
