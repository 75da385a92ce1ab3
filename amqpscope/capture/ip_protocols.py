"""The numbers of what IP carries, and of the extension headers of IPv6 (RFC 8200, section 4)."""

from typing import Final

from dissectors.wire import i64

HOP_BY_HOP: Final = 0
IPV4_INSIDE: Final = 4
TCP: Final = 6
UDP: Final = 17
IPV6_INSIDE: Final = 41
ROUTING: Final = 43
FRAGMENT: Final = 44
GRE: Final = 47
AUTHENTICATION: Final = 51
DESTINATION: Final = 60
MOBILITY: Final = 135
HIP: Final = 139
SHIM6: Final = 140


def may_lead_to_tcp(protocol: i64) -> bool:
    """Whether it is TCP, or a header behind which TCP may come."""
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
