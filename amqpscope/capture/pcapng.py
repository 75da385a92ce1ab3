"""The pcapng format: sections of blocks, each block with its length at both ends.

Source: draft-ietf-opsawg-pcapng, sections 3 and 4. Each section has its own byte order and its own list of
interfaces; an interface its own link type, snapshot length and unit of time. Packets are in enhanced, simple
and obsolete packet blocks. Of the statistics of an interface the end of the capture and the packets that it
lost are read, of the decryption secrets those of TLS. All other blocks are passed over; those that Wireshark
shows as a line of their own (custom, systemd journal, sysdig) take a packet number, so that numbers agree
with it.

Packets that were lost are reported twice: in the block of the next one that was not, and in the statistics,
in all. What those have more was lost nobody knows where. An option that cannot be read says nothing.

When the two lengths of a block differ, the block behind it decides which to believe: if there is a whole one,
the second length was wrong and the block is read; otherwise the first, and the search begins.
"""

from typing import Any, Final

from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.pcapng_blocks import (
    BYTE_ORDER,
    CUSTOM,
    CUSTOM_NOT_COPIED,
    DECRYPTION_SECRETS,
    ENHANCED_PACKET,
    INTERFACE_DESCRIPTION,
    INTERFACE_STATISTICS,
    OBSOLETE_PACKET,
    OPTION_DESCRIPTION,
    OPTION_END,
    OPTION_FILTER,
    OPTION_INTERFACE_LOST,
    OPTION_LOST,
    OPTION_NAME,
    OPTION_SYSTEM_LOST,
    OPTION_TIME_OFFSET,
    OPTION_TIME_UNIT,
    SECTION_HEADER,
    SIMPLE_PACKET,
    SYSDIG_EVENT,
    SYSDIG_EVENT_2,
    SYSDIG_EVENT_2_LARGE,
    SYSTEMD_JOURNAL,
    TLS_KEY_LOG,
    Interface,
)
from amqpscope.capture.records import INCOMPLETE, NOT_CREDIBLE, RECORDS, CaptureReader
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.words import INTERPRETED, SEVEN_WORDS, SEVEN_WORDS_LITTLE
from amqpscope.limits import MAX_BLOCK, MAX_INTERFACES, MAX_PACKET, MAX_TIME, SEARCH_CHAIN
from dissectors.wire import i64, u16, u16le, u32, u32le

_FRAMING: Final = 12  # type, length and length again
_SECTION_MIN: Final = 28
_PACKET_MIN: Final = 32  # of enhanced and obsolete packet blocks
_MAX_TEXT: Final = 1024  # octets kept of a text about an interface
_LOST_UNKNOWN: Final = 0xFFFF  # in an obsolete packet block
_MAX_LOST: Final = 1 << 40  # handed on at a time
_SEARCH_OPTIONS: Final = 4096  # octets of options of a packet found behind damage
_SEARCH_BLOCK: Final = MAX_PACKET + _SEARCH_OPTIONS
_NO_LINK_TYPE: Final = 0x10000  # of an interface whose block is malformed; real ones have 16 bits


def is_pcapng(first: bytes) -> bool:
    """Whether a file that starts with these octets (at least 4) is a pcapng file."""
    return len(first) >= 4 and u32(first, 0) == SECTION_HEADER


class PcapngReader(CaptureReader):
    """Reads pcapng files. `interfaces`: those of the current section."""

    def __init__(self, sink: SegmentSink, decoder: PacketDecoder | None = None) -> None:
        super().__init__(sink, decoder)
        self.interfaces: list[Interface] = []
        self._big = False
        self._chain_big = False  # byte order at the place a chain being judged has come to
        # Packets that were lost: before others, and before how many; nobody knows where (of past sections).
        self._lost = 0
        self._lost_places: i64 = 0
        self._lost_somewhere = 0
        self._wanted: i64 = 0  # position up to which _step wants octets when INCOMPLETE

    def _start(self, buf: bytes, at: i64, end: i64) -> i64:
        if end - at < 4:
            self._need = 4
            return at
        if u32(buf, at) != SECTION_HEADER:
            return self._stop(at, end, "the file has no section header")
        self._mode = RECORDS
        return at

    def _records(self, buf: bytes, at: i64, end: i64) -> i64:
        interfaces = self.interfaces
        decoder = self.decoder
        big = self._big
        kind: i64
        length: i64
        again: i64
        index: i64
        high: i64
        low: i64
        captured: i64
        wire: i64
        time: i64
        seven_words = (SEVEN_WORDS if big else SEVEN_WORDS_LITTLE).unpack_from
        while end - at >= _FRAMING:
            if INTERPRETED and end - at >= _PACKET_MIN:
                kind, length, index, high, low, captured, wire = seven_words(buf, at)
            elif big:
                kind = u32(buf, at)
                length = u32(buf, at + 4)
            else:
                kind = u32le(buf, at)
                length = u32le(buf, at + 4)
            if kind == SECTION_HEADER:
                big = u32(buf, at + 8) == BYTE_ORDER
                if not big and u32le(buf, at + 8) != BYTE_ORDER:
                    return self._damaged(at, "the section header has no valid byte order")
                length = u32(buf, at + 4) if big else u32le(buf, at + 4)
                seven_words = (SEVEN_WORDS if big else SEVEN_WORDS_LITTLE).unpack_from
            if length < _FRAMING or length > MAX_BLOCK:
                return self._damaged(at, f"a block claims to have {length} octets")
            # Lengths are multiples of 4; a writer that forgot it has still padded the block.
            following: i64 = at + ((length + 3) & ~3)
            if following > end:
                self._need = following - at
                return at
            again = u32(buf, following - 4) if big else u32le(buf, following - 4)
            if again != length:
                following = self._odd_lengths(buf, at, end, length, again, big)
                if following <= at + 1:
                    return following
            if length >= _PACKET_MIN and (kind == ENHANCED_PACKET or kind == OBSOLETE_PACKET):  # noqa: SIM109
                self.number += 1
                if INTERPRETED:
                    pass  # read above
                elif big:
                    index = u32(buf, at + 8)
                    high = u32(buf, at + 12)
                    low = u32(buf, at + 16)
                    captured = u32(buf, at + 20)
                    wire = u32(buf, at + 24)
                else:
                    index = u32le(buf, at + 8)
                    high = u32le(buf, at + 12)
                    low = u32le(buf, at + 16)
                    captured = u32le(buf, at + 20)
                    wire = u32le(buf, at + 24)
                if kind == OBSOLETE_PACKET:  # two octets of interface, two of packets lost
                    index = u16(buf, at + 8) if big else u16le(buf, at + 8)
                if captured <= length - _PACKET_MIN and index < len(interfaces):
                    interface = interfaces[index]
                    if high <= interface.quick_high:
                        time = ((high << 32) | low) * interface.nanoseconds + interface.offset_nanoseconds
                    else:
                        time = self._clamped(interface.time(high, low))
                    self._time = time
                    if wire < captured:
                        wire = self._odd_wire(captured, wire)
                    if kind == OBSOLETE_PACKET:
                        lost: i64 = u16(buf, at + 10) if big else u16le(buf, at + 10)
                        if lost > 0 and lost != _LOST_UNKNOWN:
                            self._lost_before(interface, lost)
                    elif length - _PACKET_MIN - captured > 3:
                        self._packet_options(buf, at + 28 + ((captured + 3) & ~3), at + length - 4, interface)
                    decoder.interface = index
                    decoder.packet(
                        self.number, time, interface.link_type, buf, at + 28, at + 28 + captured, wire
                    )
                else:
                    self._bad_packet(at, captured, length - _PACKET_MIN, index)
            elif kind == SECTION_HEADER:
                if length < _SECTION_MIN:
                    return self._damaged(at, f"a section header of {length} octets")
                self._big = big
                self._section(buf, at)
                interfaces = self.interfaces
            else:
                self._other_block(buf, at, kind, length)
            at = following
        self._need = _FRAMING
        return at

    def _odd_lengths(self, buf: bytes, at: i64, end: i64, length: i64, again: i64, big: bool) -> i64:
        """What to make of a block whose second length differs from its first.

        Gives back where the next block starts; or `at` when it takes `_need` octets to tell; or, damaged,
        the place behind it.
        """
        following: i64 = at + ((length + 3) & ~3)
        self._chain_big = big
        verdict: i64 = self._step(buf, following, end, False)
        if verdict == INCOMPLETE and not self._final:
            self._need = self._wanted - at
            return at
        if verdict == INCOMPLETE and following < end:
            verdict = self._step(buf, following, end, True)  # a packet cut short, or nothing known
        reason = f"the block has two different lengths, {length} and {again}"
        if verdict == NOT_CREDIBLE:
            return self._damaged(at, reason)
        self._note("capture/corrupt", f"at offset {self._origin + at}: {reason}; the first length is used")
        return following

    def _section(self, buf: bytes, at: i64) -> None:
        """A new section: nothing of the last one holds in it."""
        self._lost_somewhere = self._all_lost_somewhere()
        self.interfaces = []
        version: i64 = u16(buf, at + 12) if self._big else u16le(buf, at + 12)
        if version != 1:
            self._note("capture/version", f"pcapng version {version} is read as version 1")

    def _other_block(self, buf: bytes, at: i64, kind: i64, length: i64) -> None:
        if kind == SIMPLE_PACKET:
            self._simple_packet(buf, at, length)
        elif kind == INTERFACE_DESCRIPTION:
            self._interface(buf, at, length)
        elif kind == INTERFACE_STATISTICS:
            self._statistics(buf, at, length)
        elif kind == DECRYPTION_SECRETS:
            self._secrets(buf, at, length)
        elif kind in (ENHANCED_PACKET, OBSOLETE_PACKET):
            self.number += 1
            self._note("capture/corrupt", f"at offset {self._origin + at}: a packet block of {length} octets")
        elif kind in (
            CUSTOM,
            CUSTOM_NOT_COPIED,
            SYSTEMD_JOURNAL,
            SYSDIG_EVENT,
            SYSDIG_EVENT_2,
            SYSDIG_EVENT_2_LARGE,
        ):
            self.number += 1

    def _secrets(self, buf: bytes, at: i64, length: i64) -> None:
        """Secrets that decrypt packets before or behind them (section 4.7)."""
        if length < _FRAMING + 8:
            return
        kind: i64 = u32(buf, at + 8) if self._big else u32le(buf, at + 8)
        size: i64 = u32(buf, at + 12) if self._big else u32le(buf, at + 12)
        if kind == TLS_KEY_LOG and size <= length - _FRAMING - 8:
            self.sink.secrets(buf[at + 16 : at + 16 + size])

    def _simple_packet(self, buf: bytes, at: i64, length: i64) -> None:
        """A packet of the section's first interface, cut to its snapshot length, without time stamp."""
        self.number += 1
        if length < 16 or len(self.interfaces) == 0:
            self._bad_packet(at, 0, length - 16, 0)
            return
        interface = self.interfaces[0]
        wire: i64 = u32(buf, at + 8) if self._big else u32le(buf, at + 8)
        captured: i64 = wire
        if interface.snaplen != 0 and captured > interface.snaplen:
            captured = interface.snaplen
        if captured > length - 16:
            self._bad_packet(at, captured, length - 16, 0)
            return
        self._time = 0
        self.decoder.notes.add(
            "capture/no-time", self.number, 0, "packets have no timestamp; their time is set to 0", 1
        )
        self.decoder.interface = 0
        self.decoder.packet(self.number, 0, interface.link_type, buf, at + 12, at + 12 + captured, wire)

    def _interface(self, buf: bytes, at: i64, length: i64) -> None:
        if len(self.interfaces) >= MAX_INTERFACES:
            self._note("capture/interface", f"more than {MAX_INTERFACES} interfaces in a section")
            return
        link_type: i64 = _NO_LINK_TYPE
        snaplen: i64 = 0
        unit: i64 = 6
        offset: int = 0
        name = description = its_filter = b""
        big = self._big
        place: i64 = at + 16
        limit: i64 = at + length - 4
        if limit < place:
            # It keeps its place among the interfaces, which packets refer to by number.
            self._note(
                "capture/corrupt", f"at offset {self._origin + at}: an interface block of {length} octets"
            )
        else:
            link_type = u16(buf, at + 8) if big else u16le(buf, at + 8)
            snaplen = u32(buf, at + 12) if big else u32le(buf, at + 12)
        while limit - place >= 4:
            code: i64 = u16(buf, place) if big else u16le(buf, place)
            size: i64 = u16(buf, place + 2) if big else u16le(buf, place + 2)
            place += 4
            if code == OPTION_END:
                break
            if size > limit - place:
                self._note(
                    "capture/corrupt", f"at offset {self._origin + place - 4}: an option of {size} octets"
                )
                break
            if code == OPTION_TIME_UNIT and size >= 1:
                unit = buf[place]
            elif code == OPTION_TIME_OFFSET and size >= 8:
                high: int = u32(buf, place) if big else u32le(buf, place + 4)
                low: int = u32(buf, place + 4) if big else u32le(buf, place)
                offset = (high << 32) | low
                if high >= 0x80000000:
                    offset -= 1 << 64
            elif code == OPTION_NAME:
                name = buf[place : place + min(size, _MAX_TEXT)]
            elif code == OPTION_DESCRIPTION:
                description = buf[place : place + min(size, _MAX_TEXT)]
            elif code == OPTION_FILTER and size > 1 and buf[place] == 0:
                its_filter = buf[place + 1 : place + min(size, _MAX_TEXT)]
            place += (size + 3) & ~3
        interface = Interface(link_type, snaplen, unit, offset)
        interface.texts = (name, description, its_filter)
        self.interfaces.append(interface)

    def _statistics(self, buf: bytes, at: i64, length: i64) -> None:
        """How the capture on an interface went so far; of several about one the largest numbers count.

        A block too short for it has no options either.
        """
        big = self._big
        index: i64 = u32(buf, at + 8) if big else u32le(buf, at + 8)
        if index >= len(self.interfaces):
            return
        interface = self.interfaces[index]
        limit: i64 = at + length - 4
        lost: int = self._long(buf, self._option(buf, at + 20, limit, OPTION_INTERFACE_LOST))
        lost += self._long(buf, self._option(buf, at + 20, limit, OPTION_SYSTEM_LOST))
        if lost > interface.lost_in_all:
            interface.lost_in_all = lost

    def _packet_options(self, buf: bytes, at: i64, limit: i64, interface: Interface) -> None:
        lost: int = self._long(buf, self._option(buf, at, limit, OPTION_LOST))
        if lost > 0:
            self._lost_before(interface, lost)

    def _option(self, buf: bytes, at: i64, limit: i64, wanted: i64) -> i64:
        """Where the first option `wanted` of 8 octets or more has its value, -1 if there is none."""
        big = self._big
        while limit - at >= 4:
            code: i64 = u16(buf, at) if big else u16le(buf, at)
            size: i64 = u16(buf, at + 2) if big else u16le(buf, at + 2)
            at += 4
            if code == OPTION_END or size > limit - at:
                break
            if code == wanted and size >= 8:
                return at
            at += (size + 3) & ~3
        return -1

    def _long(self, buf: bytes, at: i64) -> int:
        """The 64 bits there; 0 if `at` is negative."""
        if at < 0:
            return 0
        high: int = u32(buf, at) if self._big else u32le(buf, at + 4)
        low: int = u32(buf, at + 4) if self._big else u32le(buf, at)
        return (high << 32) | low

    def _lost_before(self, interface: Interface, count: int) -> None:
        """Packets of an interface were lost before the one that is to be handed on next."""
        interface.lost += count
        self._lost += count
        self._lost_places += 1
        if self._lost_places == 1:
            self._note(
                "capture/dropped", (f"packets lost before this packet, as the capture reports: {count}")
            )
        self.sink.dropped(self.number, self._time, min(count, _MAX_LOST))

    def _all_lost_somewhere(self) -> int:
        """How many packets were lost so far that were not lost before one that is in the file."""
        count = self._lost_somewhere
        for interface in self.interfaces:
            if interface.lost_in_all > interface.lost:
                count += interface.lost_in_all - interface.lost
        return count

    def _end(self) -> None:
        somewhere = self._all_lost_somewhere()
        if somewhere > 0:
            self.sink.dropped(0, self._time, min(somewhere, _MAX_LOST))
        if somewhere > 0 or self._lost_places > 1:
            detail = f"packets lost in total, as the capture reports: {self._lost + somewhere}"
            if somewhere > 0:
                detail += f"; the capture does not report where {somewhere} of the packets were lost"
            self.decoder.notes.add("capture/dropped", 0, 0, detail)

    def _clamped(self, time: int) -> i64:
        """A time of any size, made to fit."""
        if 0 <= time <= MAX_TIME:
            return time
        self._note(
            "capture/time",
            (f"packet {self.number} has a time of {time} ns since 1970, which is out of range"),
        )
        return 0 if time < 0 else MAX_TIME

    def _odd_wire(self, captured: i64, wire: i64) -> i64:
        self._note(
            "capture/length",
            (
                f"a record has {captured} captured octets, but only {wire} octets on the wire; the packet "
                "is read as complete"
            ),
        )
        return captured

    def _bad_packet(self, at: i64, captured: i64, room: i64, index: i64) -> None:
        """The packet at `at` counts and is not read."""
        if index >= len(self.interfaces):
            self._note(
                "capture/interface",
                f"at offset {self._origin + at}: packet {self.number} names interface {index}, which is not "
                "described; the packet is skipped",
            )
        else:
            self._note(
                "capture/corrupt",
                f"at offset {self._origin + at}: packet {self.number} claims {captured} octets in a block "
                f"with room for {room}; the packet is skipped",
            )

    def _step(self, buf: bytes, at: i64, end: i64, first: bool) -> i64:
        if end - at < _FRAMING:
            self._wanted = at + _FRAMING
            return INCOMPLETE
        if first:
            self._chain_big = self._big
        big = self._chain_big
        kind: i64 = u32(buf, at) if big else u32le(buf, at)
        if kind == SECTION_HEADER:
            big = u32(buf, at + 8) == BYTE_ORDER
            if not big and u32le(buf, at + 8) != BYTE_ORDER:
                return NOT_CREDIBLE
        elif first and kind != ENHANCED_PACKET and kind != SIMPLE_PACKET and kind != OBSOLETE_PACKET:
            return NOT_CREDIBLE
        length: i64 = u32(buf, at + 4) if big else u32le(buf, at + 4)
        if length < _FRAMING or length > _SEARCH_BLOCK or length & 3 != 0:
            return NOT_CREDIBLE
        if kind in (ENHANCED_PACKET, OBSOLETE_PACKET):
            if length < _PACKET_MIN:
                return NOT_CREDIBLE
            if end - at >= _PACKET_MIN:
                options: i64 = length - _PACKET_MIN - (u32(buf, at + 20) if big else u32le(buf, at + 20))
                if options < 0 or options > _SEARCH_OPTIONS:
                    return NOT_CREDIBLE
        following: i64 = at + length
        if following > end:
            self._wanted = following
            return INCOMPLETE
        if (u32(buf, following - 4) if big else u32le(buf, following - 4)) != length:
            return NOT_CREDIBLE
        self._chain_big = big
        return following

    def _window(self) -> i64:
        return (SEARCH_CHAIN + 2) * _SEARCH_BLOCK

    def dump(self) -> tuple[Any, ...]:
        return (
            super().dump(),
            self._big,
            tuple([each.dump() for each in self.interfaces]),
            self._lost,
            self._lost_places,
            self._lost_somewhere,
        )

    @staticmethod
    def load(state: tuple[Any, ...], sink: SegmentSink) -> "PcapngReader":
        """A reader that goes on where the one that gave `state` by `dump` was, with another sink."""
        common, big, interfaces, lost, lost_places, lost_somewhere = state
        reader = PcapngReader(sink)
        reader._restore(common)
        reader._big = big
        reader.interfaces = [Interface.load(each) for each in interfaces]
        reader._lost = lost
        reader._lost_places = lost_places
        reader._lost_somewhere = lost_somewhere
        return reader
