"""Packets of one TCP connection, made of what a proxy has forwarded: Ethernet, IPv4 or IPv6, and TCP.

Sequence numbers, acknowledgements, lengths and checksums are those that two hosts would have sent.

Sources: RFC 9293 (TCP), RFC 7323, section 2 (window scale), RFC 791 and RFC 8200 (IP), RFC 1071 (checksum).
"""

import ipaddress
from struct import Struct
from typing import Final

__all__ = ["ACK", "CLIENT", "FIN", "MOST_OCTETS", "PSH", "RST", "SERVER", "SYN", "SyntheticConnection"]

CLIENT: Final = 0
SERVER: Final = 1

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10

MOST_OCTETS: Final = 65_000
"""Octets in one packet at most. With all headers they fit the length field of IP."""

_WORD: Final = 0xFFFFFFFF
_WINDOW: Final = 0xFFFF
_SHIFT: Final = 14
"""With this scale a window is a gigabyte. More is never on its way, so only a window of 0 leaves no room."""

# Maximum segment size; no operation; window scale.
_SYN_OPTIONS: Final = bytes((2, 4)) + MOST_OCTETS.to_bytes(2, "big") + bytes((1, 3, 3, _SHIFT))

_IPV4: Final = Struct(">BBHHHBBH")
_IPV6: Final = Struct(">IHBB")
_TCP: Final = Struct(">HHIIBBHHH")
_DO_NOT_FRAGMENT: Final = 0x4000
_TCP_PROTOCOL: Final = 6
_HOPS: Final = 64


class _End:
    """What the packets of one end begin with, and how far its stream is."""

    def __init__(self, own: bytes, other: bytes, port: int, initial: int) -> None:
        self.ethernet = bytes((2, 0, 0, 0, 0, 0))
        self.addresses = own + other
        self.port = port
        # What the addresses and the protocol add to a checksum.
        self.pseudo = int.from_bytes(self.addresses, "big") % 0xFFFF + _TCP_PROTOCOL
        self.initial = initial
        self.begun = False
        self.sent = 0  # octets, and one for FIN
        self.open = True  # its window is not 0
        self.datagrams = 0


class SyntheticConnection:
    """One TCP connection. client, server: address and port. serial: tells it from those before it.

    Of a client and a server of different IP versions, both addresses are written as IPv6.
    """

    def __init__(self, client: tuple[str, int], server: tuple[str, int], serial: int) -> None:
        addresses = [ipaddress.ip_address(host.partition("%")[0]) for host, _ in (client, server)]
        self._version = max(one.version for one in addresses)
        first, second = (
            one.packed if one.version == self._version else bytes(10) + b"\xff\xff" + one.packed
            for one in addresses
        )
        initial = serial * 64_000_019 & _WORD
        self._ends = (
            _End(first, second, client[1], initial),
            _End(second, first, server[1], initial ^ 0x80000000),
        )
        hardware = (bytes((2, 0, 0, 0, 0, 1)), bytes((2, 0, 0, 0, 0, 2)))
        kind = b"\x08\x00" if self._version == 4 else b"\x86\xdd"
        self._ends[CLIENT].ethernet = hardware[1] + hardware[0] + kind
        self._ends[SERVER].ethernet = hardware[0] + hardware[1] + kind

    def sent(self, side: int) -> int:
        """Octets that this side has sent; its FIN counts as one."""
        return self._ends[side].sent

    def window_is_open(self, side: int) -> bool:
        """Whether this side's window has room."""
        return self._ends[side].open

    def set_window(self, side: int, is_open: bool) -> None:
        """What the window in the next packets of this side says."""
        self._ends[side].open = is_open

    def packet(self, side: int, flags: int, acknowledged: int, octets: bytes = b"") -> bytes:
        """The next packet of a side. acknowledged: octets of the other stream, and one for its FIN."""
        own, other = self._ends[side], self._ends[1 - side]
        sequence = own.initial + own.sent + (1 if own.begun else 0)
        acknowledgement = 0
        if flags & ACK:
            acknowledgement = other.initial + (1 if other.begun else 0) + min(acknowledged, other.sent)
        options = b""
        if flags & SYN:
            own.begun = True
            options = _SYN_OPTIONS
        own.sent += len(octets) + (1 if flags & FIN else 0)
        head = _TCP.pack(
            own.port,
            other.port,
            sequence & _WORD,
            acknowledgement & _WORD,
            (_TCP.size + len(options)) << 2,
            flags,
            _WINDOW if own.open else 0,
            0,
            0,
        )
        segment = head + options + octets
        checksum = _checksum(own.pseudo + len(segment), segment)
        segment = b"".join((segment[:16], checksum, segment[18:]))
        return b"".join((own.ethernet, self._network(own, len(segment)), segment))

    def _network(self, own: _End, octets: int) -> bytes:
        """The IP header before so many octets."""
        if self._version == 6:
            return _IPV6.pack(0x60000000, octets, _TCP_PROTOCOL, _HOPS) + own.addresses
        own.datagrams += 1
        identification = own.datagrams & 0xFFFF
        head = _IPV4.pack(0x45, 0, 20 + octets, identification, _DO_NOT_FRAGMENT, _HOPS, _TCP_PROTOCOL, 0)
        return b"".join((head[:10], _checksum(0, head + own.addresses), own.addresses))


def _checksum(start: int, octets: bytes) -> bytes:
    """The Internet checksum. The one's complement sum of 16-bit words is the whole number modulo 65535."""
    number = int.from_bytes(octets, "big")
    if len(octets) & 1:
        number <<= 8
    return (0xFFFF - (start + number) % 0xFFFF).to_bytes(2, "big")
