"""Where a TLS layer begins: the client says hello, and the server answers in TLS or not at all.

A peer of plain AMQP answers in AMQP: then both streams are as they are, and the analysis reports what does
not fit together.
"""

from typing import Any, Final

from amqpscope.layers.interface import BEGINS, MORE, NONE, Layer, LayerContext, LayerKind, LayerOpening
from dissectors.wire import i64

__all__ = ["TlsKind"]

_ALERT: Final = 0x15
_HANDSHAKE: Final = 0x16
_CLIENT_HELLO: Final = 1
_SERVER_HELLO: Final = 2


class TlsKind(LayerKind):
    """TLS 1.0 to 1.3, at the beginning of a stream."""

    def __init__(self) -> None:
        super().__init__("tls")

    def begins(self, first: LayerOpening, second: LayerOpening) -> i64:
        if first.passed or second.passed:
            return NONE
        return max(_begins(first, second), _begins(second, first))

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        from amqpscope.layers.tls.layer import TlsLayer

        return TlsLayer(context, 0 if _begins(first, second) == BEGINS else 1)

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        from amqpscope.layers.tls.layer import TlsLayer

        return TlsLayer.load(state, context)


def _begins(client: LayerOpening, server: LayerOpening) -> i64:
    """Whether these are the first octets of a client and a server of TLS."""
    hello = _opens(client.octets, _CLIENT_HELLO)
    if hello == NONE or len(client.octets) == 0:
        return NONE
    answer = _opens(server.octets, _SERVER_HELLO)
    if answer == NONE:
        return NONE
    if hello == MORE:
        return NONE if client.closed else MORE
    if answer == MORE and not server.closed:
        return MORE
    return BEGINS if answer == BEGINS or len(server.octets) == 0 else NONE


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
