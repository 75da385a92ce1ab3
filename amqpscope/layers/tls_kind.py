"""Where a TLS layer begins: the client says hello, and the server answers in TLS or not at all.

A ServerHello shows TLS, too, where the octets of the client before it were not captured. A peer of plain
AMQP answers in AMQP: then both streams are as they are, and the analysis reports what does not fit together.
TLS may also begin behind a protocol header of AMQP 1.0 that both peers send. Without secrets the analysis
reports that itself.
"""

from typing import Any, Final

from amqpscope.layers.interface import BEGINS, MORE, NONE, Layer, LayerContext, LayerKind, LayerOpening
from dissectors.wire import i64

__all__ = ["TLS_HEADER", "TlsKind", "says_hello"]

TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
"""The protocol header of AMQP 1.0 behind which TLS begins (security.xml, section tls)."""

_ALERT: Final = 0x15
_HANDSHAKE: Final = 0x16
_RECORD: Final = b"\x16"
_CLIENT_HELLO: Final = 1
_SERVER_HELLO: Final = 2


class TlsKind(LayerKind):
    """TLS 1.0 to 1.3, at the beginning of a stream, or behind the protocol header for TLS."""

    def __init__(self) -> None:
        super().__init__("tls")

    def begins(self, first: LayerOpening, second: LayerOpening) -> i64:
        if first.passed or second.passed:
            return NONE
        skipped = _skipped(first, second)
        if skipped < 0:
            return MORE
        verdict = max(_begins(first, second, skipped), _begins(second, first, skipped))
        if verdict == BEGINS or skipped > 0:
            return verdict
        return max(verdict, _answers(first, second), _answers(second, first))

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        from amqpscope.layers.tls.layer import TlsLayer

        skipped = _skipped(first, second)
        for client, peers in enumerate(((first, second), (second, first))):
            if _begins(*peers, skipped) == BEGINS:
                return TlsLayer(context, client, int(skipped))
        return TlsLayer(context, 0 if _answers(first, second) == BEGINS else 1, unheard=True)

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        from amqpscope.layers.tls.layer import TlsLayer

        return TlsLayer.load(state, context)


def _skipped(first: LayerOpening, second: LayerOpening) -> i64:
    """Octets of the protocol header before TLS, 0 for none; -1 if it may still become whole in both
    directions.
    """
    if not first.keyed:
        return 0
    size: i64 = len(TLS_HEADER)
    whole = 0
    for opening in (first, second):
        if opening.octets[:size] != TLS_HEADER[: len(opening.octets)]:
            return 0
        if len(opening.octets) >= size:
            whole += 1
        elif opening.closed:
            return 0
    return size if whole == 2 else -1


def _begins(client: LayerOpening, server: LayerOpening, skipped: i64) -> i64:
    """Whether these are the first octets of a client and a server of TLS, behind the `skipped` ones."""
    octets, answered = client.octets, server.octets
    if skipped > 0:
        octets, answered = octets[skipped:], answered[skipped:]
        if len(octets) == 0:
            return NONE if client.closed else MORE
    hello = _opens(octets, _CLIENT_HELLO)
    if hello == NONE or len(octets) == 0:
        return NONE
    answer = _opens(answered, _SERVER_HELLO)
    if answer == NONE:
        return NONE
    if hello == MORE:
        return NONE if client.closed else MORE
    if answer == MORE and not server.closed:
        return MORE
    return BEGINS if answer == BEGINS or len(answered) == 0 else NONE


def _answers(client: LayerOpening, server: LayerOpening) -> i64:
    """Whether a server answers a ClientHello that was not captured."""
    if _says(client.octets, _CLIENT_HELLO):
        return NONE
    if not _says(server.octets, _SERVER_HELLO):
        waits = client.headless and client.closed and not server.closed
        return MORE if waits and _opens(server.octets, _SERVER_HELLO) == MORE else NONE
    if client.headless:
        return BEGINS
    return NONE if len(client.octets) > 0 or client.closed else MORE


def says_hello(octets: bytes) -> bool:
    """Whether a ClientHello or a ServerHello comes first."""
    return _says(octets, _CLIENT_HELLO) or _says(octets, _SERVER_HELLO)


def _says(octets: bytes, kind: i64) -> bool:
    """Whether a record with this handshake message comes first."""
    return octets[:1] == _RECORD and _opens(octets, kind) == BEGINS


def _opens(octets: bytes, kind: i64) -> i64:
    """Whether a record with this handshake message comes first; or, of a server, an alert in the clear."""
    size: i64 = len(octets)
    if size == 0:
        return MORE
    if octets[0] == _ALERT and kind == _SERVER_HELLO:
        if size >= 5 and (octets[3] != 0 or octets[4] != 2):
            return NONE
    elif octets[0] != _HANDSHAKE or (size >= 6 and octets[5] != kind):
        return NONE
    if (size >= 2 and octets[1] != 3) or (size >= 3 and octets[2] > 4):
        return NONE
    return BEGINS if size >= 6 else MORE
