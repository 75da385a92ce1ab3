"""The TLS layer of a connection."""

from typing import Any

from amqpscope.layers.interface import Layer, LayerContext
from amqpscope.layers.tls.session import TlsSession
from amqpscope.layers.tls.stream import TlsStream

__all__ = ["TlsLayer"]


class TlsLayer(Layer):
    """Two streams of records, and their session. client: the direction of the client. header: octets in
    front of the records, which are handed on as they are. unheard: the ClientHello was not captured.
    """

    def __init__(self, context: LayerContext, client: int, header: int = 0, unheard: bool = False) -> None:
        self.session = TlsSession(context, client)
        self.session.unheard = unheard
        self.streams = (TlsStream(self.session, 0, header), TlsStream(self.session, 1, header))
        self.session.streams = list(self.streams)
        super().__init__("tls", *self.streams)

    def join(self, offsets: tuple[int, int]) -> None:
        """The capture begins in the middle of the connection, each direction at an offset of TCP's stream."""
        self.session.midstream = True
        for stream, offset in zip(self.streams, offsets, strict=True):
            stream.join(offset)

    def dump(self) -> tuple[Any, ...]:
        return (self.session.client, self.session.dump(), [stream.dump() for stream in self.streams])

    @staticmethod
    def load(state: tuple[Any, ...], context: LayerContext) -> "TlsLayer":
        """The object of what `dump` returned."""
        client, session, streams = state
        layer = TlsLayer(context, client)
        layer.session.restore(session)
        for stream, its in zip(layer.streams, streams, strict=True):
            stream.restore(its)
        return layer
