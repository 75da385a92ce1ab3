"""Layers that begin with an exchange of HTTP: a tunnel through a proxy (CONNECT), and WebSocket."""

import re
from typing import Any, Final

from amqpscope.layers.head_stream import HeadStream
from amqpscope.layers.http_head import NO_HEAD, HttpHead, head_of
from amqpscope.layers.interface import BEGINS, MORE, NONE, Layer, LayerContext, LayerKind, LayerOpening
from amqpscope.limits import MAX_LAYER_OPENING
from dissectors.wire import i64

__all__ = ["ConnectKind", "WebSocketKind"]

_ANSWER: Final = b"HTTP/1."

_CREDENTIALS: Final = 407
"""The status with which a proxy demands credentials."""

_TARGET: Final = r"[A-Za-z0-9.\-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]{2,45}\]:[0-9]{1,5}"
"""The target of CONNECT: a host and a port."""


class _Exchange:
    """A request and the response to it; one of them may be lost. client: the direction of the request."""

    def __init__(self, client: int, request: HttpHead | None, response: HttpHead | None) -> None:
        self.client: int = client
        self.request: HttpHead = request or NO_HEAD
        self.response: HttpHead = response or NO_HEAD


class ConnectKind(LayerKind):
    """A client asks a proxy for a tunnel (RFC 9110, section 9.3.6), and gets it.

    A proxy may demand credentials first (407). Then the client asks once more on the same connection, which
    is the next layer.
    """

    def __init__(self) -> None:
        super().__init__("connect")

    def begins(self, first: LayerOpening, second: LayerOpening) -> i64:
        verdict: i64 = _begins(b"CONNECT ", first, second)
        if verdict == NONE and _unanswered(first, second) >= 0:
            return BEGINS
        if verdict != BEGINS:
            return verdict
        response = _exchange(b"CONNECT ", first, second).response
        return BEGINS if response.status // 100 == 2 or _refusal_size(response) >= 0 else NONE

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        lost = _unanswered(first, second)
        if lost >= 0:
            # Of the response only what came before the hole is taken off.
            asking, answering = (first, second) if lost == 0 else (second, first)
            asked, answered = (head_of(asking.octets) or NO_HEAD).size, len(answering.octets)
            context.notes.add("capture/connect", 0, 0, "the answer of an HTTP proxy was not captured")
            return ConnectLayer(asked, answered) if lost == 0 else ConnectLayer(answered, asked)
        exchange = _exchange(b"CONNECT ", first, second)
        refusal = _refusal_size(exchange.response)
        if refusal >= 0:
            context.notes.add("capture/connect", 0, 0, "an HTTP proxy requires credentials (407)")
            if not context.notes.connection.protocol:
                context.notes.connection.protocol = "http"
            asked = exchange.request.size
            return ConnectLayer(asked, refusal) if exchange.client == 0 else ConnectLayer(refusal, asked)
        words = exchange.request.line.split(" ")
        target = words[1] if len(words) > 1 else ""
        named = target if re.fullmatch(_TARGET, target) else "another server"
        context.notes.add("capture/connect", 0, 0, f"an HTTP proxy connects the client with {named}")
        request, response = exchange.request.size, exchange.response.size
        return ConnectLayer(request, response) if exchange.client == 0 else ConnectLayer(response, request)

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        layer = ConnectLayer(0, 0)
        for stream, its in zip(layer.heads, state, strict=True):
            stream.restore(its)
        return layer


def _unanswered(first: LayerOpening, second: LayerOpening) -> int:
    """The direction of a whole request for a tunnel whose response is torn or lost; -1 for none."""
    if first.passed or second.passed:
        return -1
    for number, (client, server) in enumerate(((first, second), (second, first))):
        if not client.octets.startswith(b"CONNECT ") or not server.lost:
            continue
        begun = server.octets[: len(_ANSWER)] == _ANSWER[: len(server.octets)]
        if begun and head_of(server.octets) is None and head_of(client.octets) is not None:
            return number
    return -1


def _refusal_size(response: HttpHead) -> int:
    """Octets of a response that demands credentials, with its body; -1 if it does not, or does not say."""
    length = response.fields.get("content-length", "")
    if response.status != _CREDENTIALS or not (length.isascii() and length.isdecimal()) or len(length) > 9:
        return -1
    return response.size + int(length)


class ConnectLayer(Layer):
    """Takes the request and the response off. first, second: octets of the heads of both directions."""

    def __init__(self, first: int, second: int) -> None:
        self.heads: list[HeadStream] = [HeadStream(first), HeadStream(second)]
        super().__init__("connect", self.heads[0], self.heads[1])

    def dump(self) -> tuple[object, ...]:
        return tuple(stream.dump() for stream in self.heads)


class WebSocketKind(LayerKind):
    """A client asks for WebSocket (RFC 6455, section 4), and the server answers."""

    def __init__(self) -> None:
        super().__init__("websocket")

    def begins(self, first: LayerOpening, second: LayerOpening) -> i64:
        verdict: i64 = _begins(b"GET ", first, second)
        if verdict == BEGINS:
            return BEGINS if _upgrades(_exchange(b"GET ", first, second).request) else NONE
        if verdict == NONE and not (first.passed or second.passed):
            return max(_half(first, second), _half(second, first))
        return verdict

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        from amqpscope.layers.websocket.layer import WebSocketLayer

        exchange = _exchange(b"GET ", first, second)
        layer = WebSocketLayer(context, exchange.client)
        layer.agree(exchange.request, exchange.response)
        return layer

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        from amqpscope.layers.websocket.layer import WebSocketLayer

        return WebSocketLayer.load(state, context)


def _begins(method: bytes, first: LayerOpening, second: LayerOpening) -> i64:
    """Whether a request with this method and the response to it come first."""
    if first.passed or second.passed:
        return NONE
    return max(_asks(method, first, second), _asks(method, second, first))


def _asks(method: bytes, client: LayerOpening, server: LayerOpening) -> i64:
    """Whether one of them asks with this method, and the other one answers."""
    begins = client.octets.startswith(method) or method.startswith(client.octets)
    if not client.octets or not begins:
        return NONE
    if server.octets[: len(_ANSWER)] != _ANSWER[: len(server.octets)]:
        return NONE
    verdict: i64 = BEGINS
    for opening in (client, server):
        if opening.octets.find(b"\r\n\r\n") < 0:
            if opening.closed or len(opening.octets) >= MAX_LAYER_OPENING:
                return NONE
            verdict = MORE
    return verdict


def _upgrades(head: HttpHead) -> bool:
    """Whether a request or response is about WebSocket."""
    return "websocket" in [word.lower() for word in head.words("upgrade")]


def _half(client: LayerOpening, server: LayerOpening) -> i64:
    """Whether the request or the response of a WebSocket comes first, and the other one is lost."""
    request = head_of(client.octets) if client.octets.startswith(b"GET ") else None
    response = head_of(server.octets) if server.octets.startswith(_ANSWER) else None
    if request is not None:
        return BEGINS if server.lost and response is None and _upgrades(request) else NONE
    if response is not None and response.status == 101 and _upgrades(response):
        return BEGINS if client.lost else NONE if client.closed or client.octets else MORE
    if server.lost and client.octets.startswith(b"GET ") and not client.closed:
        # The request is not whole yet.
        return MORE if len(client.octets) < MAX_LAYER_OPENING else NONE
    begun = server.octets.startswith(_ANSWER[: len(server.octets)])
    begun = begun and (len(server.octets) > 0 or (client.lost and client.octets.startswith(b"GET ")))
    whole = response is not None or len(server.octets) >= MAX_LAYER_OPENING
    return NONE if not begun or whole or server.closed or (client.octets and not client.lost) else MORE


def _exchange(method: bytes, first: LayerOpening, second: LayerOpening) -> _Exchange:
    """The request and the response that come first."""
    begun: i64 = _asks(method, first, second)
    client = 0 if begun == BEGINS or (begun == NONE and _half(first, second) == BEGINS) else 1
    request = head_of(first.octets if client == 0 else second.octets)
    response = head_of(second.octets if client == 0 else first.octets)
    return _Exchange(client, request, response)
