"""The first record of a TLS stream, as far as it is in clear: who says hello, and to whom.

TLS (RFC 8446 and before) begins with a hello of each side. The client's may name the server that it wants
(RFC 6066, "Server Name Indication"); whether it does is all that is read here, not which.
"""

from typing import Final

from dissectors.wire import i64, u16

__all__ = ["TlsHello", "hello"]

_HANDSHAKE: Final = 0x16
_CLIENT_HELLO: Final = 1
_SERVER_HELLO: Final = 2
_SERVER_NAME: Final = 0

# Octets of the record's and the handshake's headers, the version and the random behind them.
_HEADERS: Final = 5 + 4 + 2 + 32


class TlsHello:
    """A hello. client: the client's, else the server's. names_server: it names the server, of a client's
    that was seen whole; else it is taken to."""

    def __init__(self, client: bool, names_server: bool) -> None:
        self.client: bool = client
        self.names_server: bool = names_server

    def __repr__(self) -> str:
        return f"TlsHello({self.client}, {self.names_server})"


def hello(octets: bytes) -> TlsHello | None:
    """The hello with which a TLS stream begins, of which these are the first octets; None if it is none."""
    size: i64 = len(octets)
    if size < 6 or octets[0] != _HANDSHAKE or octets[1] != 3:
        return None
    if octets[5] == _SERVER_HELLO:
        return TlsHello(False, True)
    if octets[5] != _CLIENT_HELLO:
        return None
    return TlsHello(True, _names_server(octets, size))


def _names_server(octets: bytes, size: i64) -> bool:
    """Whether a client's hello has the extension; true also if it was not seen whole, or is damaged."""
    if size < _HEADERS:
        return True
    # Of a hello that goes over several records the rest lies behind another header: it is not looked for.
    end: i64 = 9 + octets[6] * 65536 + u16(octets, 7)
    if end > 5 + u16(octets, 3) or end > size:
        return True
    pos: i64 = _HEADERS
    if pos + 1 > end:
        return True
    pos += 1 + octets[pos]
    if pos + 2 > end:
        return True
    pos += 2 + u16(octets, pos)
    if pos + 1 > end:
        return True
    pos += 1 + octets[pos]
    if pos == end:
        return False  # without any extension, as before TLS 1.2
    if pos + 2 > end:
        return True
    pos += 2
    while pos + 4 <= end:
        if u16(octets, pos) == _SERVER_NAME:
            return True
        pos += 4 + u16(octets, pos + 2)
    return pos != end
