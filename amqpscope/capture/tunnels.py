"""Tunnels: the packet that IP carries when it carries no TCP.

IP in IP, GRE (with ERSPAN, as switches mirror traffic), VXLAN and GENEVE (as clouds do) are known by IP's
protocol number and UDP's port, and need no more than their headers: what is reported is where the packet in
them starts and its link type, for it to be walked as another one.
"""

from typing import Final

from amqpscope.capture.ip_protocols import GRE, IPV4_INSIDE, IPV6_INSIDE, UDP
from amqpscope.capture.link_layer import (
    ETHERTYPE_BRIDGED,
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    LINK_ETHERNET,
    LINK_RAW,
)
from dissectors.wire import i64, u16

__all__ = ["NO_TUNNEL", "carried", "may_carry"]

PORT_VXLAN: Final = 4789
PORT_VXLAN_LINUX: Final = 8472  # what Linux took before there was a number
PORT_GENEVE: Final = 6081
ETHERTYPE_ERSPAN: Final = 0x88BE  # within GRE, types I and II
ETHERTYPE_ERSPAN_III: Final = 0x22EB

NO_TUNNEL: Final = -1
"""In place of a link type: there is no packet in it."""


def carried(protocol: i64, buf: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Link type and place of the packet that IP carries from `at` on, captured up to `end`.

    The place may lie behind `end`; the packet ends where IP does. NO_TUNNEL and a number that says nothing if
    there is none.
    """
    if protocol in (IPV4_INSIDE, IPV6_INSIDE):
        return LINK_RAW, at
    if protocol == GRE:
        return _by_gre(buf, at, end)
    if protocol == UDP and end - at > 16:
        port: i64 = u16(buf, at + 2)
        at += 8
        if port in (PORT_VXLAN, PORT_VXLAN_LINUX):
            # RFC 7348: the flag that says there is a network identifier, and seven more octets.
            if buf[at] == 0x08:
                return LINK_ETHERNET, at + 8
        elif port == PORT_GENEVE and buf[at] >> 6 == 0:
            # RFC 8926: six bits of words of options.
            words: i64 = buf[at] & 0x3F
            return _by_ethertype(u16(buf, at + 2), at + 8 + (words << 2))
    return NO_TUNNEL, 0


def may_carry(protocol: i64, buf: bytes, at: i64, end: i64) -> bool:
    """Whether what IP carries from `at` on, of which little need be there, is a tunnel as far as is seen."""
    if protocol == UDP:
        return end - at >= 4 and u16(buf, at + 2) in (PORT_VXLAN, PORT_VXLAN_LINUX, PORT_GENEVE)
    return protocol in (IPV4_INSIDE, IPV6_INSIDE, GRE)


def _by_gre(buf: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """RFC 2784 and 2890: flags say which words there are before the packet. Version 1 is PPTP's."""
    if end - at < 4 or buf[at] & 0x40 != 0 or buf[at + 1] & 7 != 0:
        return NO_TUNNEL, 0
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
        return LINK_ETHERNET, at + 8 if flags & 0x10 != 0 else at
    if ethertype == ETHERTYPE_ERSPAN_III:
        if end - at < 12:
            return NO_TUNNEL, 0
        return LINK_ETHERNET, at + 20 if buf[at + 11] & 1 != 0 else at + 12  # with the platform's own part
    return _by_ethertype(ethertype, at)


def _by_ethertype(ethertype: i64, at: i64) -> tuple[i64, i64]:
    if ethertype == ETHERTYPE_BRIDGED:
        return LINK_ETHERNET, at
    if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
        return LINK_RAW, at
    return NO_TUNNEL, 0
