"""Where a TLS layer begins: the client says hello, and the server answers in TLS or not at all.

A peer of plain AMQP answers in AMQP: then both streams are as they are, and the analysis reports what does
not fit together. TLS may also begin behind a protocol header of AMQP 1.0 that both peers send. Without
secrets the analysis reports that itself.
"""

from typing import Any, Final

from amqpscope.layers.interface import BEGINS, MORE, NONE, Layer, LayerContext, LayerKind, LayerOpening
from dissectors.wire import i64

__all__ = ["TLS_HEADER", "TlsKind", "says_hello"]

TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
"""The protocol header of AMQP 1.0 behind which TLS begins (security.xml, section tls)."""

_ALERT: Final = 0x15
_HANDSHAKE: Final = 0x16
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
            return NONE if first.closed or second.closed else MORE
        return max(_begins(first, second, skipped), _begins(second, first, skipped))

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        from amqpscope.layers.tls.layer import TlsLayer

        skipped = _skipped(first, second)
        return TlsLayer(context, 0 if _begins(first, second, skipped) == BEGINS else 1, int(skipped))

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        from amqpscope.layers.tls.layer import TlsLayer

        return TlsLayer.load(state, context)


def _skipped(first: LayerOpening, second: LayerOpening) -> i64:
    """Octets of the protocol header before TLS, 0 for none; -1 if it is not whole in both directions yet."""
    if not first.keyed:
        return 0
    size: i64 = len(TLS_HEADER)
    whole = 0
    for opening in (first, second):
        if opening.octets[:size] != TLS_HEADER[: len(opening.octets)]:
            return 0
        if len(opening.octets) >= size:
            whole += 1
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


def says_hello(octets: bytes) -> bool:
    """Whether a ClientHello comes first."""
    return _opens(octets, _CLIENT_HELLO) == BEGINS


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
