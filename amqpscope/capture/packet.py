"""IP and TCP: one captured packet in, at most one TCP segment out.

Theory of operation. A packet is walked once, front to back, by positions in the block that was read from
the file: nothing is copied but the twelve (IPv6: 36) octets of the flow's key. Ethernet carrying IPv4 or
IPv6 directly is decided in `packet` itself; every other way to an IP header (tags, LLC, other link types)
is `link_layer`'s to find.

Two ends have to be distinguished all the way: `stop`, where the datagram ends on the wire according to its
own length field, and `end`, where the captured octets end. Captured octets behind `stop` are padding
(Ethernet fills up to 60 octets) and no payload; octets between `end` and `stop` were on the wire and not
captured: the segment's `cut`. A length field of 0 means that the capture saw the packet before the network
card cut it up (segmentation offload) or a jumbogram: it goes to the end of the packet, whose length on the
wire is believed up to `MAX_LARGE_PACKET`.

Checksums are not verified: with offload the captured ones are wrong in correct traffic. What is malformed
is skipped, counted and noted a bounded number of times; nothing here raises on any octets.

Fragments of IP datagrams wait until theirs is whole, which is then walked as a packet of link type raw IP,
with the number and time of the fragment that completed it. What goes through a tunnel (`tunnels`) or is a
packet of its own in a link layer is walked in place as another packet, down to a bounded depth.
"""

from typing import Any, Final

from amqpscope.capture.fragments import DIFFERENT, MALFORMED, Fragments, IpFragment
from amqpscope.capture.ip_protocols import AUTHENTICATION, FRAGMENT, TCP, UDP, may_lead_to_tcp
from amqpscope.capture.link_layer import BRIDGED, CUT, IP, LINK_ETHERNET, LINK_RAW, UNKNOWN, network
from amqpscope.capture.notes import Notes
from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.tcp_options import window_scale
from amqpscope.capture.tunnels import NO_TUNNEL, carried, may_carry
from amqpscope.capture.words import INTERPRETED, TWO_WORDS
from amqpscope.limits import (
    BACKWARDS,
    MAX_EXTENSION_HEADERS,
    MAX_KNOWN_FLOWS,
    MAX_LARGE_PACKET,
    MAX_LINK_TYPES,
    MAX_NESTING,
)
from dissectors.wire import i64, u16, u32

__all__ = ["PacketDecoder", "SegmentSink"]

_OTHER: Final = -1


class PacketDecoder:
    """Finds the TCP segment in a captured packet and hands it to the sink.

    Counts: `packets` that came in, `tcp_segments` handed on, `truncated` whose headers were not captured
    whole, `fragments` of IP datagrams, `malformed` IP and TCP headers, `unknown_link` of a link type not
    decoded. The rest carried no TCP.

    `recorder`, if there is one, is given each packet first, but not what was found within one. `interface`,
    on which the packet was captured, is set by who calls `packet`. Neither is part of the state.
    """

    def __init__(self, sink: SegmentSink) -> None:
        self.sink = sink
        self.recorder: PacketRecorder | None = None
        self.interface: i64 = 0
        self.notes = Notes(sink)
        self.packets: i64 = 0
        self.tcp_segments: i64 = 0
        self.truncated: i64 = 0
        self.fragments: i64 = 0
        self.malformed: i64 = 0
        self.unknown_link: i64 = 0
        self.link_types: dict[int, int] = {}  # those not decoded, with the packets of each
        self.reverses: dict[bytes, bytes] = {}
        self.tcp_stop: i64 = 0  # second result of _extensions
        self.newest: i64 = 0  # the time of the last packet
        self._segment = Segment()  # the one that is handed on, filled again for each packet
        self._recorded = Packet()  # likewise, for the recorder
        self._fragments = Fragments()
        self._nested: i64 = 0  # packets within packets, at this moment

    def packet(
        self, number: i64, time: i64, link_type: i64, buf: bytes, start: i64, end: i64, wire_length: i64
    ) -> None:
        """One captured packet, `buf[start:end]`, that had `wire_length` octets on the wire.

        `number` counts from 1, `time` is in nanoseconds since 1970, `link_type` one of libpcap's LINKTYPE
        values. The caller guarantees 0 <= start <= end <= len(buf).
        """
        recorder = self.recorder
        if recorder is not None and self._nested == 0:
            recorded = self._recorded
            recorded.number = number
            recorded.time = time
            recorded.interface = self.interface
            recorded.link_type = link_type
            recorded.buf = buf
            recorded.start = start
            recorded.end = end
            recorded.wire = wire_length
            recorder.packet(recorded)
        self.packets += 1
        if time < self.newest - BACKWARDS and time > 0:
            self._backwards(number, time)
        self.newest = time
        at: i64 = -1
        if link_type == LINK_ETHERNET and end - start > 14:
            type_high: i64 = buf[start + 12]
            type_low: i64 = buf[start + 13]
            if (type_high == 0x08 and type_low == 0x00) or (type_high == 0x86 and type_low == 0xDD):
                at = start + 14
        if at < 0:
            at = self._network(number, time, link_type, buf, start, end, wire_length)
            if at < 0:
                return
        # From here on: at < end.

        first: i64 = buf[at]
        source: i64
        edge: i64  # where the addresses end
        tcp: i64
        stop: i64
        segment = self._segment
        if first >> 4 == 4:
            # IPv4: RFC 791, section 3.1.
            if end - at < 20:
                self.truncated += 1
                return
            high: i64 = buf[at + 2]
            low: i64 = buf[at + 3]
            total: i64 = (high << 8) | low
            tcp = at + ((first & 15) << 2)
            if total == 0:
                stop = max(start + min(wire_length, MAX_LARGE_PACKET), end)
            else:
                stop = at + total
            if tcp - at < 20 or stop < tcp:
                self._bad_header(
                    number, time, "capture/ip-header", "the IPv4 header or the total length is too short"
                )
                return
            high = buf[at + 6]
            low = buf[at + 7]
            protocol: i64 = buf[at + 9]
            if (high & 0x3F) | low == 0:
                if protocol != TCP and protocol != AUTHENTICATION:
                    self._tunnel(number, time, buf, tcp, min(end, stop), stop, protocol)
                    return
            else:  # more fragments, or an offset
                key: bytes = buf[at + 12 : at + 20] + buf[at + 4 : at + 6] + buf[at + 9 : at + 10]
                if protocol != TCP and protocol != AUTHENTICATION:
                    if not self._of_tunnel(protocol, key, (high & 0x1F) | low, buf, tcp, min(end, stop)):
                        return
                offset: i64 = ((high & 0x1F) << 8 | low) << 3
                octets = buf[tcp : min(stop, end)]
                fragment = IpFragment(key, buf[at:tcp], offset, high & 0x20 != 0, octets, stop - tcp)
                self._fragment(number, time, fragment)
                return
            if protocol == AUTHENTICATION:
                self.tcp_stop = stop
                tcp = self._extensions(number, time, buf, tcp, end, protocol, at)
                if tcp < 0:
                    return
            high = buf[at + 4]
            low = buf[at + 5]
            segment.identification = (high << 8) | low
            source = at + 12
            edge = at + 20
        elif first >> 4 == 6:
            # IPv6: RFC 8200, section 3.
            if end - at < 40:
                self.truncated += 1
                return
            high = buf[at + 4]
            low = buf[at + 5]
            total = (high << 8) | low
            tcp = at + 40
            if total == 0:
                stop = max(start + min(wire_length, MAX_LARGE_PACKET), end)
            else:
                stop = tcp + total
            protocol = buf[at + 6]
            if protocol != TCP:
                self.tcp_stop = stop
                tcp = self._extensions(number, time, buf, tcp, end, protocol, at)
                if tcp < 0:
                    return
            segment.identification = 0
            source = at + 8
            edge = at + 40
        else:
            self._bad_header(
                number, time, "capture/ip-header", "the IP header has neither version 4 nor version 6"
            )
            return

        # TCP: RFC 9293, section 3.1.
        if stop - tcp < 20:
            self._bad_header(number, time, "capture/tcp-header", "the IP datagram ends inside the TCP header")
            return
        captured: i64 = end
        if stop < end:
            captured = stop
        if captured - tcp < 20:
            self.truncated += 1
            return
        header: i64 = buf[tcp + 12]
        header = (header >> 4) << 2
        begin: i64 = tcp + header
        if header < 20 or begin > stop:
            self._bad_header(
                number,
                time,
                "capture/tcp-header",
                ("the TCP data offset is below 5, or lies beyond the end of the segment"),
            )
            return
        cut: i64 = stop - captured
        if begin > captured:  # options not captured: still a segment with known numbers and length
            cut = stop - begin
            begin = captured
        flags: i64 = buf[tcp + 13]
        seq: i64
        ack: i64
        if INTERPRETED:
            seq, ack = TWO_WORDS.unpack_from(buf, tcp + 4)
        else:
            seq = u32(buf, tcp + 4)
            ack = u32(buf, tcp + 8)
        if not flags & 0x10:
            ack = -1
        high = buf[tcp + 14]
        low = buf[tcp + 15]
        window: i64 = (high << 8) | low
        if flags & 0x02:
            window |= window_scale(buf, tcp + 20, min(tcp + header, captured), captured < tcp + header) << 16
        if edge == tcp:
            key = buf[source : tcp + 4]
        else:
            key = buf[source:edge] + buf[tcp : tcp + 4]
        reverse = self.reverses.get(key)
        if reverse is None:
            reverse = self._learn(key)
        self.tcp_segments += 1
        segment.key = key
        segment.reverse = reverse
        segment.packet = number
        segment.time = time
        segment.seq = seq
        segment.ack = ack
        segment.flags = flags
        segment.window = window
        segment.buf = buf
        segment.start = begin
        segment.end = captured
        segment.cut = cut
        self.sink.segment(segment)

    def finish(self) -> None:
        """No packet follows: say what was only counted so far."""
        self._fragments.finish()
        self._tell_abandoned()
        self.notes.finish()

    def _learn(self, key: bytes) -> bytes:
        """The key of the other direction, remembered."""
        size = (len(key) - 4) // 2
        ports = size * 2
        reverse = key[size:ports] + key[:size] + key[ports + 2 :] + key[ports : ports + 2]
        if len(self.reverses) >= MAX_KNOWN_FLOWS:
            self.reverses.clear()
        self.reverses[key] = reverse
        return reverse

    def _backwards(self, number: i64, time: i64) -> None:
        """Packets are captured in the order of time, so something is wrong with the times, or the file."""
        back: int = self.newest - time
        self.notes.add(
            "capture/time",
            number,
            time,
            f"the timestamp is {back / 1_000_000_000:.3f} s earlier than the timestamp of the previous "
            "packet; packets keep the order of the file",
        )

    def _bad_header(self, number: i64, time: i64, code: str, detail: str) -> None:
        self.malformed += 1
        self.notes.add(code, number, time, f"{detail}; the packet is skipped")

    def _fragment(self, number: i64, time: i64, fragment: IpFragment) -> None:
        """A part of an IP datagram: see `Fragments.add`. If it completes one, that is walked as a packet."""
        self.fragments += 1
        fragments = self._fragments
        result = fragments.add(number, time, fragment)
        if len(fragments.abandoned) > 0:
            self._tell_abandoned()
        if result == MALFORMED:
            self._bad_header(
                number, time, "capture/ip-header", "an IP fragment has an impossible length or offset"
            )
        elif result == DIFFERENT:
            self.notes.add(
                "capture/ip-fragment",
                number,
                time,
                "overlapping IP fragments have different content; the datagram is not used",
            )
        elif result >= 0:
            self._inner(number, time, fragments.datagram(result), len(fragments.header) + result)

    def _inner(self, number: i64, time: i64, datagram: bytes, wire: i64) -> None:
        """An IP datagram that was not a packet of its own, with `wire` octets before it was cut."""
        self._walk_inner(number, time, LINK_RAW, datagram, 0, len(datagram), wire)

    def _of_tunnel(self, protocol: i64, key: bytes, offset: i64, buf: bytes, at: i64, end: i64) -> bool:
        """Whether a fragment, whose octets start at `at`, is of a datagram that a tunnel is made of.

        Of UDP the first one tells, and it has to come first: most of what is sent in fragments is no tunnel.
        """
        if protocol == UDP and offset != 0:
            return self._fragments.waits_for(key)
        return may_carry(protocol, buf, at, end)

    def _tunnel(
        self, number: i64, time: i64, buf: bytes, at: i64, end: i64, stop: i64, protocol: i64
    ) -> None:
        """What IP carries from `at` to `stop`, if it is no TCP: walk the packet in it, if there is one."""
        link_type, at = carried(protocol, buf, at, end)
        if link_type != NO_TUNNEL:
            self._walk_inner(number, time, link_type, buf, at, end, stop)

    def _walk_inner(
        self, number: i64, time: i64, link_type: i64, buf: bytes, at: i64, end: i64, stop: i64
    ) -> None:
        """A packet within another one, at `buf[at:end]`, to `stop` before it was cut."""
        if at >= end:
            self.truncated += 1
            return
        if self._nested >= MAX_NESTING:
            self._bad_header(
                number, time, "capture/ip-header", "too many packets are encapsulated in one another"
            )
            return
        self._nested += 1
        self.packets -= 1  # it has been counted
        self.packet(number, time, link_type, buf, at, end, stop - at)
        self._nested -= 1

    def _tell_abandoned(self) -> None:
        for number, time in self._fragments.abandoned:
            self.notes.add(
                "capture/ip-fragment",
                number,
                time,
                "IP fragments of this datagram are missing; the payload of the datagram is lost",
            )
        self._fragments.abandoned = []

    def _network(
        self, number: i64, time: i64, link_type: i64, buf: bytes, start: i64, end: i64, wire: i64
    ) -> i64:
        """Where the IP header starts in a packet of any link type; negative when there is none."""
        what, at, stop = network(link_type, buf, start, end, start + wire)
        if what == IP:
            return at
        if what == BRIDGED:
            self._walk_inner(number, time, LINK_ETHERNET, buf, at, min(end, stop), stop)
        elif what == CUT:
            self.truncated += 1
        elif what == UNKNOWN:
            self._unknown_link(number, time, link_type)
        return _OTHER

    def _unknown_link(self, number: i64, time: i64, link_type: i64) -> None:
        self.unknown_link += 1
        count = self.link_types.get(link_type, 0)
        if count == 0:
            if len(self.link_types) >= MAX_LINK_TYPES:
                return
            self.notes.add(
                "capture/link-type",
                number,
                time,
                f"amqpscope does not decode link type {link_type}; packets of this type are skipped (with "
                "--via tshark, they may be readable)",
                MAX_LINK_TYPES,
            )
        self.link_types[link_type] = count + 1

    def _extensions(
        self, number: i64, time: i64, buf: bytes, at: i64, end: i64, protocol: i64, ip: i64
    ) -> i64:
        """Where the TCP header starts behind the extension headers at `at`; negative if there is none.

        `ip`: where the IP header does.

        RFC 8200, section 4; authentication header: RFC 4302. Atomic fragments (RFC 6946) are whole datagrams.
        `tcp_stop`, the datagram's end, bounds the walk as `end` does.
        """
        stop: i64 = self.tcp_stop
        walked: i64 = 0
        while protocol != TCP:
            if walked == MAX_EXTENSION_HEADERS:
                self._bad_header(
                    number, time, "capture/ip-header", "the packet has too many IPv6 extension headers"
                )
                return _OTHER
            walked += 1
            if not may_lead_to_tcp(protocol):
                if at < stop:
                    self._tunnel(number, time, buf, at, min(end, stop), stop, protocol)
                return _OTHER
            if stop - at < 8:
                self._bad_header(
                    number, time, "capture/ip-header", "the IPv6 datagram ends inside its headers"
                )
                return _OTHER
            if end - at < 8:
                self.truncated += 1
                return _OTHER
            length: i64 = buf[at + 1]
            if protocol == FRAGMENT:
                if u16(buf, at + 2) & 0xFFF9 != 0:  # an offset, or more to follow
                    key = buf[ip + 8 : ip + 40] + buf[at + 4 : at + 8]
                    if buf[ip] >> 4 == 6 and (
                        may_lead_to_tcp(buf[at])
                        or self._of_tunnel(
                            buf[at], key, u16(buf, at + 2) & 0xFFF8, buf, at + 8, min(end, stop)
                        )
                    ):
                        # The headers before the fragment's own lead nowhere else: they are left out.
                        header = buf[ip : ip + 6] + buf[at : at + 1] + buf[ip + 7 : ip + 40]
                        offset: i64 = u16(buf, at + 2) & 0xFFF8
                        octets = buf[at + 8 : min(stop, end)]
                        more: bool = buf[at + 3] & 1 != 0
                        fragment = IpFragment(key, header, offset, more, octets, stop - at - 8)
                        self._fragment(number, time, fragment)
                    return _OTHER
                length = 8
            elif protocol == AUTHENTICATION:
                length = (length + 2) << 2
            else:
                length = (length + 1) << 3
            protocol = buf[at]
            at += length
        if at > stop:
            self._bad_header(number, time, "capture/ip-header", "the IPv6 datagram ends inside its headers")
            return _OTHER
        return at

    def dump(self) -> tuple[Any, ...]:
        """The counters and what was noted, as plain values. Remembered flows are not part of the state."""
        return (
            self.packets,
            self.tcp_segments,
            self.truncated,
            self.fragments,
            self.malformed,
            self.unknown_link,
            self.newest,
            tuple(self.link_types.items()),
            self.notes.dump(),
            self._fragments.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...], sink: SegmentSink) -> "PacketDecoder":
        """A decoder that goes on where the one that gave `state` by `dump` was, with another sink."""
        (
            packets,
            tcp_segments,
            truncated,
            fragments,
            malformed,
            unknown_link,
            newest,
            link_types,
            notes,
            waiting,
        ) = state
        decoder = PacketDecoder(sink)
        decoder.packets = packets
        decoder.tcp_segments = tcp_segments
        decoder.truncated = truncated
        decoder.fragments = fragments
        decoder.malformed = malformed
        decoder.unknown_link = unknown_link
        decoder.newest = newest
        decoder.link_types = dict(link_types)
        decoder.notes = Notes.load(notes, sink)
        decoder._fragments = Fragments.load(waiting)
        return decoder
