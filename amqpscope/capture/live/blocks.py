"""A block of the kernel's packet ring, walked: the captured packets in it, one by one, to the decoder.

Source: the kernel's Documentation/networking/packet_mmap.rst and include/uapi/linux/if_packet.h, TPACKET_V3.
A block holds packets behind one another, each behind a header in the machine's own byte order: 48 octets of
`tpacket3_hdr` and 20 of `sockaddr_ll`. Both were written by the kernel, which is believed; the positions are
checked all the same, since what is read with them must lie in the block.

The walk stops, to be taken up again, where it takes somebody else to go on: at a packet of an interface not
met before, and in front of a packet that the kernel has marked as coming behind lost ones, unless the one
before it in the block was marked, too. It marks them from the loss on until it is asked for its statistics.
"""

import sys
from struct import Struct
from typing import Final

from amqpscope.capture.link_layer import ETHERTYPE_IPV4, ETHERTYPE_IPV6, LINK_ETHERNET, LINK_RAW
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.words import INTERPRETED
from dissectors.wire import i64, u16, u16le, u32le

__all__ = ["DONE", "LOST", "STRANGER", "BlockWalk"]

DONE: Final = 0  # the block has no more packets
LOST: Final = 1  # packets were lost before the next one
STRANGER: Final = 2  # the next packet is of an interface not in `places`

# tpacket3_hdr: next offset, seconds, nanoseconds, captured, wire, status, where the packet starts; the tag
# and its type; and from sockaddr_ll the interface.
_HEADER: Final = Struct("=6IH6xIH14xi")
_HEADER_SIZE: Final = 68

_LOSING: Final = 4  # TP_STATUS_LOSING
_TAGGED: Final = 0x10  # TP_STATUS_VLAN_VALID
_TAG_TYPED: Final = 0x40  # TP_STATUS_VLAN_TPID_VALID
_ETHERTYPE_TAG: Final = 0x8100
_ETHERTYPE_SERVICE_TAG: Final = 0x88A8

_BY_OCTETS: Final = not INTERPRETED and sys.byteorder == "little"


class BlockWalk:
    """Walks blocks. ethernet: their packets begin with an Ethernet header, else with that of IP.

    number: packets handed on. places: the place of an interface among those captured from, by the kernel's
    index of it. stranger: that index, where it stopped for STRANGER.
    """

    def __init__(self, ethernet: bool) -> None:
        self.number: i64 = 0
        self.places: dict[int, int] = {}
        self.stranger: i64 = 0
        self.place: i64 = 0  # of the interface of the last packet
        self._ethernet = ethernet
        self._index: i64 = -1  # the kernel's, of the last packet
        self._losing = False
        self._at: i64 = 0
        self._left: i64 = 0

    def begin(self, first: i64, count: i64) -> None:
        """A block with `count` packets, the first of them at `first`, comes next."""
        self._at = first
        self._left = count
        self._losing = False

    def walk(self, decoder: PacketDecoder, block: bytes) -> i64:
        """The packets of `block` that were not handed on yet, to `decoder`. Why it stopped.

        decoder.interface is set for each.
        """
        at: i64 = self._at
        size: i64 = len(block)
        while self._left > 0:
            if at < 0 or size - at < _HEADER_SIZE:
                break
            following: i64
            seconds: i64
            nanoseconds: i64
            captured: i64
            wire: i64
            status: i64
            start: i64
            tag: i64
            tag_type: i64
            protocol: i64
            index: i64
            if _BY_OCTETS:
                following = u32le(block, at)
                seconds = u32le(block, at + 4)
                nanoseconds = u32le(block, at + 8)
                captured = u32le(block, at + 12)
                wire = u32le(block, at + 16)
                status = u32le(block, at + 20)
                start = u16le(block, at + 24)
                protocol = u16(block, at + 50)
                index = u32le(block, at + 52)
                tag = u32le(block, at + 32)
                tag_type = u16le(block, at + 36)
            else:
                (
                    following,
                    seconds,
                    nanoseconds,
                    captured,
                    wire,
                    status,
                    start,
                    tag,
                    tag_type,
                    index,
                ) = _HEADER.unpack_from(block, at)
                protocol = u16(block, at + 50)
            if status & _LOSING == 0:
                self._losing = False
            elif not self._losing:
                self._losing = True
                self._at = at
                return LOST
            if index != self._index:
                place = self.places.get(index)
                if place is None:
                    self.stranger = index
                    self._at = at
                    return STRANGER
                self._index = index
                self.place = place
            start += at
            if captured > size - start:
                break
            self._left -= 1
            self._at = at + following
            time: i64 = seconds * 1_000_000_000 + nanoseconds
            if wire < captured:
                wire = captured
            if self._ethernet:
                self.number += 1
                decoder.interface = self.place
                if status & _TAGGED and captured >= 12:
                    if not status & _TAG_TYPED:
                        tag_type = _ETHERTYPE_TAG
                    self._tagged(
                        decoder, time, (tag_type << 16) | (tag & 0xFFFF), block, start, captured, wire
                    )
                else:
                    decoder.packet(self.number, time, LINK_ETHERNET, block, start, start + captured, wire)
            else:
                inside: i64 = _network(protocol, status & _TAGGED != 0, block, start, start + captured)
                if inside >= 0:
                    self.number += 1
                    decoder.interface = self.place
                    wire -= inside
                    decoder.packet(self.number, time, LINK_RAW, block, start + inside, start + captured, wire)
            at = self._at
            if following == 0:
                break
        self._left = 0
        return DONE

    def _tagged(
        self,
        decoder: PacketDecoder,
        time: i64,
        tag: i64,
        block: bytes,
        start: i64,
        captured: i64,
        wire: i64,
    ) -> None:
        """A packet whose 802.1Q tag the kernel or the card has taken out, with the tag as it was."""
        four: int = tag
        middle: i64 = start + 12
        packet = block[start:middle] + four.to_bytes(4, "big") + block[middle : start + captured]
        decoder.packet(self.number, time, LINK_ETHERNET, packet, 0, captured + 4, wire + 4)


def _network(protocol: i64, tagged: bool, block: bytes, start: i64, end: i64) -> i64:
    """Octets before the IP header of `block[start:end]`, which is of an ethertype; -1 if it has none.

    One tag is taken out by the kernel, which says that there was one; more stand before the header when the
    packet came in. When it goes out, the header comes first. The type is that of the tag or that behind all
    tags, as the kernel's version has it.
    """
    if not tagged and protocol in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
        return 0
    if end - start < 9 or protocol not in (
        ETHERTYPE_IPV4,
        ETHERTYPE_IPV6,
        _ETHERTYPE_TAG,
        _ETHERTYPE_SERVICE_TAG,
    ):
        return -1
    for before in (4, 8):
        inner: i64 = u16(block, start + before - 2)
        version: i64 = block[start + before] >> 4
        if (inner == ETHERTYPE_IPV4 and version == 4) or (inner == ETHERTYPE_IPV6 and version == 6):
            return before
    return 0 if block[start] >> 4 in (4, 6) else -1
