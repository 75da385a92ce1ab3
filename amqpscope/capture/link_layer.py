"""Link layers: where the IP header starts in a packet of any link type.

Ethernet with IP directly behind it is decided by whoever walks packets; all else is found here: Linux cooked
headers, BSD's, raw IP; and tags, LLC, MPLS and PPPoE, which are passed over. ISL and Ethernet over MPLS hold
an Ethernet packet of its own: it is said where, for that to be walked as another packet.

Link types and their layouts: https://www.tcpdump.org/linktypes.html.
"""

from typing import Final

from dissectors.wire import i64, u16, u32, u32le

__all__ = [
    "BRIDGED",
    "CUT",
    "ETHERTYPE_BRIDGED",
    "ETHERTYPE_IPV4",
    "ETHERTYPE_IPV6",
    "IP",
    "LINK_ETHERNET",
    "LINK_RAW",
    "UNKNOWN",
    "network",
]

# 12 and 14 are what raw IP is called inside some systems, and files with them exist.
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
SLL_LLC: Final = 0x0004  # Linux's name for an 802.2 frame, where the cooked header has an ethertype

PPP_IPV4: Final = 0x0021
PPP_IPV6: Final = 0x0057

# What there is behind the link layer, if anything.
IP: Final = 0
BRIDGED: Final = 1  # an Ethernet packet of its own
NOTHING: Final = -1  # that leads to IP
CUT: Final = -2  # what would tell was not captured
UNKNOWN: Final = -3  # the link type is not decoded


def network(link_type: i64, buf: bytes, start: i64, end: i64, stop: i64) -> tuple[i64, i64, i64]:
    """What is behind the link layer of the packet `buf[start:end]`, which ended at `stop` on the wire.

    IP or BRIDGED, with the place of its header (below `end`, or for BRIDGED at most the end) and its own end
    on the wire; or what there is instead, with two numbers that say nothing.
    """
    if link_type == LINK_ETHERNET:
        if end - start >= 26 and buf[start + 2] == 0x0C and _is_isl(buf, start):
            # Its length counts from behind itself to the check sequence of what it carries.
            return BRIDGED, start + 26, start + 14 + u16(buf, start + 12)
        return _by_ethertype(buf, start + 12, end, stop)
    if link_type == LINK_LINUX_SLL:
        return _by_ethertype(buf, start + 14, end, stop)
    at: i64 = start
    if link_type == LINK_LINUX_SLL2:
        if end - start < 20:
            return CUT, 0, 0
        family: i64 = u16(buf, start)
        if family == SLL_LLC:
            return _by_llc(buf, start + 20, end, stop)
        if _is_tag(family):
            # The tag's own type field stands in the header; its two octets of tag open the payload.
            return _by_ethertype(buf, start + 22, end, stop)
        if family not in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
            return NOTHING, 0, 0
        at = start + 20
    elif link_type in (LINK_NULL, LINK_LOOP):
        if end - start < 4:
            return CUT, 0, 0
        # In the byte order of the machine that captured (NULL) or of the network (LOOP). The values are
        # small, so the other order cannot be mistaken for one of them.
        family = u32le(buf, start)
        if family > 0xFFFF:
            family = u32(buf, start)
        # AF_INET is 2 everywhere; AF_INET6 is 24 (NetBSD, OpenBSD), 28 (FreeBSD), 30 (macOS), 10 (Linux).
        if family not in (2, 24, 28, 30, 10):
            return NOTHING, 0, 0
        at = start + 4
    elif link_type not in (LINK_RAW, LINK_IPV4, LINK_IPV6, LINK_RAW_A, LINK_RAW_B):
        return UNKNOWN, 0, 0
    if at >= end:
        return CUT, 0, 0
    return IP, at, stop


def _is_tag(ethertype: i64) -> bool:
    return ethertype in (
        ETHERTYPE_TAG,
        ETHERTYPE_SERVICE_TAG,
        ETHERTYPE_OLD_TAG_A,
        ETHERTYPE_OLD_TAG_B,
        ETHERTYPE_OLD_TAG_C,
    )


def _by_ethertype(buf: bytes, at: i64, end: i64, stop: i64) -> tuple[i64, i64, i64]:
    """What is behind the type field at `at`, through any number of tags."""
    while end - at >= 2:
        ethertype: i64 = u16(buf, at)
        at += 2
        if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
            if at < end:
                return IP, at, stop
        elif _is_tag(ethertype):
            at += 2
        elif ethertype in (ETHERTYPE_MPLS, ETHERTYPE_MPLS_UPSTREAM):
            # RFC 3032: the last label of a stack has a bit set. What follows is IP if it looks like it.
            while end - at >= 4 and buf[at + 2] & 1 == 0:
                at += 4
            at += 4
            if at < end:
                return _below_labels(buf, at, end, stop)
        elif ethertype == ETHERTYPE_PPPOE:
            # RFC 2516: six octets; then the PPP protocol.
            at += 6
            if end - at > 2:
                protocol: i64 = u16(buf, at)
                return IP if protocol in (PPP_IPV4, PPP_IPV6) else NOTHING, at + 2, stop
        elif ethertype < ETHERTYPE_MIN:
            return _by_llc(buf, at, end, stop)
        else:
            return NOTHING, 0, 0
    return CUT, 0, 0


def _below_labels(buf: bytes, at: i64, end: i64, stop: i64) -> tuple[i64, i64, i64]:
    """What is behind a stack of MPLS labels: IP or Ethernet.

    Nothing says which of them it is. Ethernet has a control word before it (RFC 4385), which begins with
    0, or not; it is believed if there is IP in it.
    """
    first: i64 = buf[at] >> 4
    if first == 0 and _is_ethernet(buf, at + 4, end):
        return BRIDGED, at + 4, stop
    if not (first == 4 and buf[at] & 15 >= 5) and _is_ethernet(buf, at, end):
        return BRIDGED, at, stop
    return IP if first in (4, 6) else NOTHING, at, stop


def _is_ethernet(buf: bytes, at: i64, end: i64) -> bool:
    """Whether an Ethernet header with IP behind it stands at `at`, with tags or without."""
    at += 12
    while end - at > 6 and _is_tag(u16(buf, at)):
        at += 4
    if end - at < 3:
        return False
    ethertype: i64 = u16(buf, at)
    if ethertype == ETHERTYPE_IPV4:
        return buf[at + 2] >> 4 == 4
    return ethertype == ETHERTYPE_IPV6 and buf[at + 2] >> 4 == 6


def _is_isl(buf: bytes, at: i64) -> bool:
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


def _by_llc(buf: bytes, at: i64, end: i64, stop: i64) -> tuple[i64, i64, i64]:
    """What is behind the 802.2 LLC header at `at`."""
    if end - at < 3:
        return CUT, 0, 0
    if buf[at] == 0xAA and buf[at + 1] == 0xAA and buf[at + 2] == 3:
        # SNAP (RFC 1042): three octets of organization, then a type field when it is 0 (or 802.1H's F8).
        if end - at < 8:
            return CUT, 0, 0
        if (
            buf[at + 3] == 0
            and buf[at + 4] == 0
            and (buf[at + 5] == 0 or buf[at + 5] == 0xF8)
            and u16(buf, at + 6) >= ETHERTYPE_MIN
        ):
            return _by_ethertype(buf, at + 6, end, stop)
    elif buf[at] == 6 and buf[at + 1] == 6 and buf[at + 2] == 3:  # IP's own service access point
        return IP if end - at > 3 else CUT, at + 3, stop
    return NOTHING, 0, 0
