"""Link layers, IP and TCP: one captured packet in, at most one TCP segment out.

Theory of operation. A packet is walked once, front to back, by positions in the block that was read from
the file: nothing is copied but the twelve (IPv6: 36) octets of the flow's key. Ethernet carrying IPv4 or
IPv6 directly is decided in `packet` itself; every other way to an IP header (tags, LLC, other link types)
goes through `_network`, which says where it is.

Two ends have to be told apart all the way: `stop`, where the datagram ends on the wire according to its
own length field, and `end`, where the captured octets end. Captured octets behind `stop` are padding
(Ethernet fills up to 60 octets) and no payload; octets between `end` and `stop` were on the wire and not
captured: the segment's `cut`. A length field of 0 means that the capture saw the packet before the network
card cut it up (segmentation offload) or a jumbogram: it goes to the end of the packet, whose length on the
wire is believed up to `MAX_LARGE_PACKET`.

Checksums are not verified: with offload the captured ones are wrong in correct traffic. What is malformed
is skipped, counted and noted a bounded number of times; nothing here raises on any octets.

Fragments of IP datagrams wait until theirs is whole, which is then walked as a packet of link type raw IP,
with the number and time of the fragment that completed it. What goes through a tunnel (IP in IP, GRE with
ERSPAN, VXLAN, GENEVE, ISL, Ethernet over MPLS) is walked in place as another packet, down to a bounded
depth; MPLS and PPPoE are passed over as tags are.
"""

from typing import Any, Final

from amqpscope.capture.fragments import DIFFERENT, MALFORMED, Fragments
from amqpscope.capture.notes import Notes
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.words import INTERPRETED, TWO_WORDS
from amqpscope.limits import (
    BACKWARDS,
    MAX_EXTENSION_HEADERS,
    MAX_KNOWN_FLOWS,
    MAX_LARGE_PACKET,
    MAX_LINK_TYPES,
    MAX_NESTING,
)
from dissectors.wire import i64, u16, u32, u32le

__all__ = ["PacketDecoder", "SegmentSink"]

# Link types: https://www.tcpdump.org/linktypes.html, where the layouts are given too. 12 and 14 are what
# raw IP is called inside some systems, and files with them exist.
LINK_NULL: Final = 0
LINK_ETHERNET: Final = 1
LINK_RAW_A: Final = 12
LINK_RAW_B: Final = 14
LINK_RAW: Final = 101
LINK_LOOP: Final = 108
LINK_LINUX_SLL: Final = 113
LINK_IPV4: Final = 228
LINK_IPV6: Final = 229
LINK_LINUX_SLL2: Final = 276

ETHERTYPE_IPV4: Final = 0x0800
ETHERTYPE_IPV6: Final = 0x86DD
ETHERTYPE_TAG: Final = 0x8100  # 802.1Q
ETHERTYPE_SERVICE_TAG: Final = 0x88A8  # 802.1ad
ETHERTYPE_OLD_TAG_A: Final = 0x9100  # stacked tags before 802.1ad
ETHERTYPE_OLD_TAG_B: Final = 0x9200
ETHERTYPE_OLD_TAG_C: Final = 0x9300
ETHERTYPE_MIN: Final = 0x0600  # below it the field is a length (802.3)
ETHERTYPE_MPLS: Final = 0x8847
ETHERTYPE_MPLS_UPSTREAM: Final = 0x8848
ETHERTYPE_PPPOE: Final = 0x8864  # its session stage
ETHERTYPE_BRIDGED: Final = 0x6558  # within GRE and GENEVE: Ethernet
ETHERTYPE_ERSPAN: Final = 0x88BE  # within GRE, types I and II
ETHERTYPE_ERSPAN_III: Final = 0x22EB
PORT_VXLAN: Final = 4789
PORT_VXLAN_LINUX: Final = 8472  # what Linux took before there was a number
PORT_GENEVE: Final = 6081
SLL_LLC: Final = 0x0004  # Linux's name for an 802.2 frame, where the cooked header has an ethertype

# IP protocol numbers.
HOP_BY_HOP: Final = 0
IPV4_INSIDE: Final = 4
TCP: Final = 6
UDP: Final = 17
IPV6_INSIDE: Final = 41
GRE: Final = 47
ROUTING: Final = 43
FRAGMENT: Final = 44
AUTHENTICATION: Final = 51
DESTINATION: Final = 60
MOBILITY: Final = 135
HIP: Final = 139
SHIM6: Final = 140

_OTHER: Final = -1
_BRIDGED: Final = -2  # Ethernet within


class PacketDecoder:
    """Finds the TCP segment in a captured packet and hands it to the sink.

    Counts: `packets` that came in, `tcp_segments` handed on, `truncated` whose headers were not captured
    whole, `fragments` of IP datagrams, `malformed` IP and TCP headers, `unknown_link` of a link type not
    decoded. The rest carried no TCP.
    """

    def __init__(self, sink: SegmentSink) -> None:
        self.sink = sink
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
        self.inner: i64 = 0  # second result of _ethertype
        self.newest: i64 = 0  # the time of the last packet
        self._fragments = Fragments()
        self._nested: i64 = 0  # packets within packets, at this moment

    def packet(
        self, number: i64, time: i64, link_type: i64, buf: bytes, start: i64, end: i64, wire_length: i64
    ) -> None:
        """One captured packet, `buf[start:end]`, that had `wire_length` octets on the wire.

        `number` counts from 1, `time` is in nanoseconds since 1970, `link_type` one of libpcap's LINKTYPE
        values. The caller guarantees 0 <= start <= end <= len(buf).
        """
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
                self._bad_header(number, time, "capture/ip-header", "IPv4 header or total length too short")
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
                self._fragment(
                    number,
                    time,
                    key,
                    buf[at:tcp],
                    ((high & 0x1F) << 8 | low) << 3,
                    high & 0x20 != 0,
                    buf[tcp : min(stop, end)],
                    stop - tcp,
                )
                return
            if protocol == AUTHENTICATION:
                self.tcp_stop = stop
                tcp = self._extensions(number, time, buf, tcp, end, protocol, at)
                if tcp < 0:
                    return
            high = buf[at + 4]
            low = buf[at + 5]
            self.sink.identification = (high << 8) | low
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
            self.sink.identification = 0
            source = at + 8
            edge = at + 40
        else:
            self._bad_header(number, time, "capture/ip-header", "neither version 4 nor 6 in the IP header")
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
                number, time, "capture/tcp-header", "TCP data offset below 5 or beyond the segment"
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
        if edge == tcp:
            key = buf[source : tcp + 4]
        else:
            key = buf[source:edge] + buf[tcp : tcp + 4]
        reverse = self.reverses.get(key)
        if reverse is None:
            reverse = self._learn(key)
        self.tcp_segments += 1
        self.sink.segment(key, reverse, number, time, seq, ack, flags, buf, begin, captured, cut)

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
            f"time runs backwards, {back / 1_000_000_000:.3f} s from the packet before; packets stay in the "
            "order of the file",
        )

    def _bad_header(self, number: i64, time: i64, code: str, detail: str) -> None:
        self.malformed += 1
        self.notes.add(code, number, time, f"{detail}; packet skipped")

    def _fragment(
        self,
        number: i64,
        time: i64,
        key: bytes,
        header: bytes,
        offset: i64,
        more: bool,
        captured: bytes,
        wire: i64,
    ) -> None:
        """A part of an IP datagram: see `Fragments.add`. If it completes one, that is walked as a packet."""
        self.fragments += 1
        fragments = self._fragments
        result = fragments.add(key, number, time, header, offset, more, captured, wire)
        if len(fragments.abandoned) > 0:
            self._tell_abandoned()
        if result == MALFORMED:
            self._bad_header(number, time, "capture/ip-header", "IP fragment of impossible length or place")
        elif result == DIFFERENT:
            self.notes.add(
                "capture/ip-fragment",
                number,
                time,
                "IP fragments that overlap differ; nothing of the datagram is used",
            )
        elif result >= 0:
            payload = fragments.payload
            whole: bytes
            size: int = result
            header = fragments.header
            if header[0] >> 4 == 4:
                total: int = len(header) + size
                whole = header[:2] + total.to_bytes(2, "big") + header[4:6] + b"\0\0" + header[8:] + payload
            else:
                whole = header[:4] + size.to_bytes(2, "big") + header[6:] + payload
            self._inner(number, time, whole, len(header) + result)

    def _inner(self, number: i64, time: i64, datagram: bytes, wire: i64) -> None:
        """An IP datagram that was not a packet of its own, with `wire` octets before it was cut."""
        self._walk_inner(number, time, LINK_RAW, datagram, 0, len(datagram), wire)

    def _of_tunnel(self, protocol: i64, key: bytes, offset: i64, buf: bytes, at: i64, end: i64) -> bool:
        """Whether a fragment, whose octets start at `at`, is of a datagram that a tunnel is made of.

        Of UDP the first one tells, and it has to come first: most of what is sent in fragments is no tunnel.
        """
        if protocol == UDP:
            if offset != 0:
                return self._fragments.waits_for(key)
            return end - at >= 4 and u16(buf, at + 2) in (PORT_VXLAN, PORT_VXLAN_LINUX, PORT_GENEVE)
        return protocol in (IPV4_INSIDE, IPV6_INSIDE, GRE)

    def _tunnel(
        self, number: i64, time: i64, buf: bytes, at: i64, end: i64, stop: i64, protocol: i64
    ) -> None:
        """What IP carries from `at` to `stop`, if it is no TCP: walk the packet in it, if there is one."""
        if protocol in (IPV4_INSIDE, IPV6_INSIDE):
            self._walk_inner(number, time, LINK_RAW, buf, at, end, stop)
        elif protocol == GRE:
            self._gre(number, time, buf, at, end, stop)
        elif protocol == UDP and end - at > 16:
            port: i64 = u16(buf, at + 2)
            at += 8
            if port in (PORT_VXLAN, PORT_VXLAN_LINUX):
                # RFC 7348: the flag that says there is a network identifier, and seven more octets.
                if buf[at] == 0x08:
                    self._walk_inner(number, time, LINK_ETHERNET, buf, at + 8, end, stop)
            elif port == PORT_GENEVE and buf[at] >> 6 == 0:
                # RFC 8926: six bits of words of options.
                inner: i64 = buf[at] & 0x3F
                inner = at + 8 + (inner << 2)
                self._by_ethertype(number, time, u16(buf, at + 2), buf, inner, end, stop)

    def _gre(self, number: i64, time: i64, buf: bytes, at: i64, end: i64, stop: i64) -> None:
        """RFC 2784 and 2890: flags say which words there are before the packet. Version 1 is PPTP's."""
        if end - at < 4 or buf[at] & 0x40 != 0 or buf[at + 1] & 7 != 0:
            return
        flags: i64 = buf[at]
        ethertype: i64 = u16(buf, at + 2)
        at += 4
        if flags & 0x80 != 0:  # checksum
            at += 4
        if flags & 0x20 != 0:  # key
            at += 4
        if flags & 0x10 != 0:  # sequence number
            at += 4
        if ethertype == ETHERTYPE_ERSPAN:
            # draft-foschiano-erspan: type I has no header of its own, and no sequence number.
            if flags & 0x10 != 0:
                at += 8
            ethertype = ETHERTYPE_BRIDGED
        elif ethertype == ETHERTYPE_ERSPAN_III:
            if end - at < 12:
                return
            at += 20 if buf[at + 11] & 1 != 0 else 12  # with the platform's own part
            ethertype = ETHERTYPE_BRIDGED
        self._by_ethertype(number, time, ethertype, buf, at, end, stop)

    def _by_ethertype(
        self, number: i64, time: i64, ethertype: i64, buf: bytes, at: i64, end: i64, stop: i64
    ) -> None:
        if ethertype == ETHERTYPE_BRIDGED:
            self._walk_inner(number, time, LINK_ETHERNET, buf, at, end, stop)
        elif ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
            self._walk_inner(number, time, LINK_RAW, buf, at, end, stop)

    def _walk_inner(
        self, number: i64, time: i64, link_type: i64, buf: bytes, at: i64, end: i64, stop: i64
    ) -> None:
        """A packet within another one, at `buf[at:end]`, to `stop` before it was cut."""
        if at >= end:
            self.truncated += 1
            return
        if self._nested >= MAX_NESTING:
            self._bad_header(number, time, "capture/ip-header", "too many packets within one another")
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
                "IP fragments of this datagram are missing; what it carried is lost",
            )
        self._fragments.abandoned = []

    def _network(
        self, number: i64, time: i64, link_type: i64, buf: bytes, start: i64, end: i64, wire: i64
    ) -> i64:
        """Where the IP header starts in a packet of any link type; negative when there is none."""
        at: i64 = start
        if link_type == LINK_ETHERNET:
            if end - start >= 26 and buf[start + 2] == 0x0C and self._is_isl(buf, start):
                # Its length counts from behind itself to the check sequence of what it carries.
                at = start + 14 + u16(buf, start + 12)
                self._walk_inner(number, time, LINK_ETHERNET, buf, start + 26, min(end, at), at)
                return _OTHER
            at = self._ethertype(buf, start + 12, end)
            if at == _BRIDGED:
                self._walk_inner(number, time, LINK_ETHERNET, buf, self.inner, end, start + wire)
            return at
        if link_type == LINK_LINUX_SLL:
            return self._ethertype(buf, start + 14, end)
        if link_type == LINK_LINUX_SLL2:
            if end - start < 20:
                self.truncated += 1
                return _OTHER
            family: i64 = u16(buf, start)
            if family in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
                at = start + 20
            elif family == SLL_LLC:
                return self._llc(buf, start + 20, end)
            elif self._is_tag(family):
                # The tag's own type field stands in the header; its two octets of tag open the payload.
                return self._ethertype(buf, start + 22, end)
            else:
                return _OTHER
        elif link_type in (LINK_NULL, LINK_LOOP):
            if end - start < 4:
                self.truncated += 1
                return _OTHER
            # In the byte order of the machine that captured (NULL) or of the network (LOOP). The values are
            # small, so the other order cannot be mistaken for one of them.
            family = u32le(buf, start)
            if family > 0xFFFF:
                family = u32(buf, start)
            # AF_INET is 2 everywhere; AF_INET6 is 24 (NetBSD, OpenBSD), 28 (FreeBSD), 30 (macOS), 10 (Linux).
            if family != 2 and family != 24 and family != 28 and family != 30 and family != 10:
                return _OTHER
            at = start + 4
        elif (
            link_type != LINK_RAW
            and link_type != LINK_IPV4
            and link_type != LINK_IPV6
            and link_type != LINK_RAW_A
            and link_type != LINK_RAW_B
        ):
            self._unknown_link(number, time, link_type)
            return _OTHER
        if at >= end:
            self.truncated += 1
            return _OTHER
        return at

    def _is_tag(self, ethertype: i64) -> bool:
        return ethertype in (
            ETHERTYPE_TAG,
            ETHERTYPE_SERVICE_TAG,
            ETHERTYPE_OLD_TAG_A,
            ETHERTYPE_OLD_TAG_B,
            ETHERTYPE_OLD_TAG_C,
        )

    def _ethertype(self, buf: bytes, at: i64, end: i64) -> i64:
        """The IP header behind the type field at `at`, through any number of tags; negative if none."""
        while end - at >= 2:
            ethertype: i64 = u16(buf, at)
            at += 2
            if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
                if at < end:
                    return at
            elif self._is_tag(ethertype):
                at += 2
            elif ethertype in (ETHERTYPE_MPLS, ETHERTYPE_MPLS_UPSTREAM):
                # RFC 3032: the last label of a stack has a bit set. What follows is IP if it looks like it.
                while end - at >= 4 and buf[at + 2] & 1 == 0:
                    at += 4
                at += 4
                if at < end:
                    return self._below_labels(buf, at, end)
            elif ethertype == ETHERTYPE_PPPOE:
                # RFC 2516: six octets; then the PPP protocol.
                at += 6
                if end - at > 2:
                    protocol: i64 = u16(buf, at)
                    return at + 2 if protocol in (0x0021, 0x0057) else _OTHER
            elif ethertype < ETHERTYPE_MIN:
                return self._llc(buf, at, end)
            else:
                return _OTHER
        self.truncated += 1
        return _OTHER

    def _below_labels(self, buf: bytes, at: i64, end: i64) -> i64:
        """The IP header, or _BRIDGED with `inner` at the Ethernet header, behind a stack of MPLS labels.

        Nothing says which of them it is. Ethernet has a control word before it (RFC 4385), which begins with
        0, or not; it is believed if there is IP in it.
        """
        first: i64 = buf[at] >> 4
        if first == 0 and self._is_ethernet(buf, at + 4, end):
            self.inner = at + 4
            return _BRIDGED
        if not (first == 4 and buf[at] & 15 >= 5) and self._is_ethernet(buf, at, end):
            self.inner = at
            return _BRIDGED
        return at if first == 4 or first == 6 else _OTHER

    def _is_ethernet(self, buf: bytes, at: i64, end: i64) -> bool:
        """Whether an Ethernet header with IP behind it stands at `at`, with tags or without."""
        at += 12
        while end - at > 6 and self._is_tag(u16(buf, at)):
            at += 4
        if end - at < 3:
            return False
        ethertype: i64 = u16(buf, at)
        if ethertype == ETHERTYPE_IPV4:
            return buf[at + 2] >> 4 == 4
        return ethertype == ETHERTYPE_IPV6 and buf[at + 2] >> 4 == 6

    def _is_isl(self, buf: bytes, at: i64) -> bool:
        """Whether a frame is Cisco's ISL, which has one of two group addresses and a SNAP header."""
        return (
            (buf[at] == 1 or buf[at] == 3)
            and buf[at + 1] == 0
            and buf[at + 3] == 0
            and buf[at + 4] == 0
            and buf[at + 5] >> 4 == 0  # it carries Ethernet
            and buf[at + 14] == 0xAA
            and buf[at + 15] == 0xAA
            and buf[at + 16] == 3
        )

    def _llc(self, buf: bytes, at: i64, end: i64) -> i64:
        """The IP header behind the 802.2 LLC header at `at`; negative if none."""
        if end - at < 3:
            self.truncated += 1
            return _OTHER
        if buf[at] == 0xAA and buf[at + 1] == 0xAA and buf[at + 2] == 3:
            # SNAP (RFC 1042): three octets of organization, then a type field when it is 0 (or 802.1H's F8).
            if end - at < 8:
                self.truncated += 1
                return _OTHER
            if buf[at + 3] == 0 and buf[at + 4] == 0 and (buf[at + 5] == 0 or buf[at + 5] == 0xF8):
                if u16(buf, at + 6) < ETHERTYPE_MIN:
                    return _OTHER
                return self._ethertype(buf, at + 6, end)
            return _OTHER
        if buf[at] == 6 and buf[at + 1] == 6 and buf[at + 2] == 3:  # IP's own service access point
            if end - at > 3:
                return at + 3
            self.truncated += 1
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
                f"link type {link_type} is not decoded; its packets are skipped (tshark may know it: "
                "--via tshark)",
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
                self._bad_header(number, time, "capture/ip-header", "too many IPv6 extension headers")
                return _OTHER
            walked += 1
            if not self._may_lead_to_tcp(protocol):
                if at < stop:
                    self._tunnel(number, time, buf, at, min(end, stop), stop, protocol)
                return _OTHER
            if stop - at < 8:
                self._bad_header(number, time, "capture/ip-header", "IPv6 datagram ends inside its headers")
                return _OTHER
            if end - at < 8:
                self.truncated += 1
                return _OTHER
            length: i64 = buf[at + 1]
            if protocol == FRAGMENT:
                if u16(buf, at + 2) & 0xFFF9 != 0:  # an offset, or more to follow
                    key = buf[ip + 8 : ip + 40] + buf[at + 4 : at + 8]
                    if buf[ip] >> 4 == 6 and (
                        self._may_lead_to_tcp(buf[at])
                        or self._of_tunnel(
                            buf[at], key, u16(buf, at + 2) & 0xFFF8, buf, at + 8, min(end, stop)
                        )
                    ):
                        # The headers before the fragment's own lead nowhere else: they are left out.
                        self._fragment(
                            number,
                            time,
                            key,
                            buf[ip : ip + 6] + buf[at : at + 1] + buf[ip + 7 : ip + 40],
                            u16(buf, at + 2) & 0xFFF8,
                            buf[at + 3] & 1 != 0,
                            buf[at + 8 : min(stop, end)],
                            stop - at - 8,
                        )
                    return _OTHER
                length = 8
            elif protocol == AUTHENTICATION:
                length = (length + 2) << 2
            else:
                length = (length + 1) << 3
            protocol = buf[at]
            at += length
        if at > stop:
            self._bad_header(number, time, "capture/ip-header", "IPv6 datagram ends inside its headers")
            return _OTHER
        return at

    def _may_lead_to_tcp(self, protocol: i64) -> bool:
        return protocol in (
            TCP,
            HOP_BY_HOP,
            ROUTING,
            DESTINATION,
            FRAGMENT,
            AUTHENTICATION,
            MOBILITY,
            HIP,
            SHIM6,
        )

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
