"""The header with which a load balancer tells a server who its client is: the PROXY protocol, 1 and 2.

It stands before the client's own octets. Version 1 is a line of text of at most 107 octets, which ends in CR
and LF. Version 2 is 12 fixed octets, version and command, family and protocol, the length of the rest (2
octets), the addresses, and type-length-value fields (proxy-protocol.txt of HAProxy, sections 2.1 and 2.2).
"""

import ipaddress
from typing import Final

from dissectors.wire import i64, u16

__all__ = ["MORE", "NONE", "ProxyHeader", "proxy_begun", "proxy_header", "proxy_size"]

MORE: Final = -1
"""Too few octets to tell."""

NONE: Final = 0
"""There is no PROXY header."""

_LINE: Final = b"PROXY "
_MAX_LINE: Final = 107
_FAMILIES: Final = (b"TCP4", b"TCP6", b"UNKNOWN")

_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED: Final = 16

# Octets that are enough to recognise a header whose rest was not captured: no other protocol begins so.
_RECOGNISABLE: Final = 4

# Octets of an address, by the family in the upper half of its octet: IPv4 and IPv6.
_WIDTHS: Final = {1: 4, 2: 16}


class ProxyHeader:
    """What it says.

    version: 1 or 2. size: its octets, 0 where its end was not captured. source: address and port of the real
    client, None where it names none. local: the load balancer opened the connection for itself, as it does to
    see whether the server lives.
    """

    def __init__(self, version: int, size: i64) -> None:
        self.version: int = version
        self.size: i64 = size
        self.source: tuple[str, int] | None = None
        self.local: bool = False


def proxy_size(octets: bytes) -> i64:
    """The size of the PROXY header that a stream begins with; NONE without one, MORE while nothing tells.

    Of version 2 the first 16 octets tell; of version 1 the whole line has to be there.
    """
    if octets.startswith(_SIGNATURE[: len(octets)]):
        if len(octets) < _FIXED:
            # The version and the command, as far as they are there.
            return NONE if len(octets) > 12 and octets[12] not in (0x20, 0x21) else MORE
        return _FIXED + u16(octets, 14) if octets[12] in (0x20, 0x21) else NONE
    if not octets.startswith(_LINE[: len(octets)]):
        return NONE
    end: i64 = octets.find(b"\r\n")
    if end >= 0:
        family = octets[len(_LINE) : end].split(b" ", 1)[0]
        return end + 2 if end + 2 <= _MAX_LINE and family in _FAMILIES else NONE
    return MORE if len(octets) < _MAX_LINE else NONE


def proxy_begun(octets: bytes, lost: bool = True) -> bool:
    """Whether a stream of which only these octets were captured begins with a PROXY header.

    lost: octets behind them were not captured. Else the stream may have ended there, and fewer octets than
    every header begins with tell nothing.
    """
    least: i64 = _RECOGNISABLE if lost else len(_SIGNATURE if octets[:1] == _SIGNATURE[:1] else _LINE)
    return len(octets) >= least and proxy_size(octets) != NONE


def proxy_header(octets: bytes, size: i64) -> ProxyHeader:
    """What the PROXY header of this size says, of which these are the first octets, perhaps not all.

    size: 0 where the size is not known, because too few octets were captured.
    """
    if octets.startswith(_LINE[:_RECOGNISABLE]):
        header = ProxyHeader(1, size)
        fields = octets[: size - 2].split(b" ") if size > 0 else []
        if len(fields) == 6 and fields[1] != b"UNKNOWN":
            header.source = _written(fields[1], fields[2], fields[4])
        return header
    header = ProxyHeader(2, size)
    if len(octets) < _FIXED:
        return header
    header.local = octets[12] == 0x20
    width = _WIDTHS.get(octets[13] >> 4, 0)
    if not header.local and width > 0 and min(size, len(octets)) >= _FIXED + 2 * width + 4:
        address = ipaddress.ip_address(octets[_FIXED : _FIXED + width])
        header.source = (str(address), u16(octets, _FIXED + 2 * width))
    return header


def _written(family: bytes, address: bytes, port: bytes) -> tuple[str, int] | None:
    """Address and port of a line, None if they are none."""
    try:
        parsed = ipaddress.ip_address(address.decode("ascii"))
    except ValueError:
        return None
    if parsed.version != (4 if family == b"TCP4" else 6) or "%" in str(parsed):
        return None
    if not port.isdigit() or len(port) > 5 or int(port) > 0xFFFF:
        return None
    return str(parsed), int(port)
