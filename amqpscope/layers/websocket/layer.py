"""The WebSocket layer of a connection."""

from typing import Any

from amqpscope.layers.http_head import NO_HEAD, HttpHead
from amqpscope.layers.interface import Layer, LayerContext
from amqpscope.layers.websocket.conduct import DEFLATE, extension_names
from amqpscope.layers.websocket.stream import WebSocketStream
from amqpscope.layers.websocket.subprotocols import shown_name
from amqpscope.limits import MAX_TLS_NAMES
from amqpscope.model.websocket_facts import WebSocketFacts

__all__ = ["WebSocketLayer"]


class WebSocketLayer(Layer):
    """Two streams of frames behind a handshake. client: the direction of the client."""

    def __init__(self, context: LayerContext, client: int) -> None:
        connection = context.notes.connection
        self.facts = connection.websocket or WebSocketFacts()
        self.facts.client = client
        connection.websocket = self.facts
        if not connection.protocol:
            connection.protocol = "http"
        self.streams = (
            WebSocketStream(context, self.facts, 0, client == 0),
            WebSocketStream(context, self.facts, 1, client == 1),
        )
        super().__init__("websocket", *self.streams)

    def agree(self, request: HttpHead, response: HttpHead) -> None:
        """What the handshake agrees on (RFC 6455, section 4; RFC 7692, section 7.1).

        One of the two may be lost (`NO_HEAD`). Nobody is accused then, and whoever sets the bit of a
        compressed message is believed.
        """
        facts = self.facts
        offered = request.words("sec-websocket-protocol")[:MAX_TLS_NAMES]
        facts.offered = [shown_name(word) for word in offered]
        facts.subprotocol = shown_name(response.fields.get("sec-websocket-protocol", ""))
        facts.status, facts.reason = response.status, response.reason[:255]
        parameters = [
            word.split("=")[0].strip().lower()
            for word in response.fields.get("sec-websocket-extensions", "").split(";")
        ]
        known = response is not NO_HEAD
        facts.deflate = parameters[0] == DEFLATE
        inflates = facts.deflate or (not known and DEFLATE in extension_names(request))
        client = self.streams[int(facts.client)]
        server = self.streams[1 - int(facts.client)]
        client.take_head(request, "client_no_context_takeover" not in parameters, inflates)
        server.take_head(response, "server_no_context_takeover" not in parameters, inflates)
        if known and facts.status != 101:
            client.dead = server.dead = True
        elif known and request is not NO_HEAD:
            server.conduct.agree(request, response)
        others = any(name != DEFLATE for name in extension_names(response))
        if others or not known or request is NO_HEAD:
            client.conduct.lose()
            server.conduct.lose()

    def dump(self) -> tuple[Any, ...]:
        return (int(self.facts.client), [stream.dump() for stream in self.streams])

    @staticmethod
    def load(state: tuple[Any, ...], context: LayerContext) -> "WebSocketLayer":
        """The object of what `dump` returned."""
        client, streams = state
        layer = WebSocketLayer(context, client)
        for stream, its in zip(layer.streams, streams, strict=True):
            stream.restore(its)
        return layer
