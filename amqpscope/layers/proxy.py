"""The PROXY header that a load balancer puts before a client's octets: a layer of one header.

It ends with the header. Offsets stay those of the TCP stream.
"""

from typing import Any, Final

from amqpscope.layers.interface import (
    BEGINS,
    MORE,
    NONE,
    Layer,
    LayerContext,
    LayerKind,
    LayerOpening,
    LayerStream,
)
from amqpscope.model.note import ConnectionNotes
from amqpscope.model.records import endpoint
from amqpscope.reassembly.provenance import Provenance
from dissectors import proxy
from dissectors.wire import i64

__all__ = ["ProxyKind"]

NAME: Final = "proxy"

# What of a header is kept to be read: its line, or the addresses of version 2. The rest is only counted.
_READ: Final = 256


class ProxyStream(LayerStream):
    """Takes the PROXY header off a direction, and reports it.

    notes: where it is reported; None in the direction that has none.
    """

    def __init__(self, notes: ConnectionNotes | None, direction: i64) -> None:
        super().__init__()
        self.notes: ConnectionNotes | None = notes
        self.direction: i64 = direction
        self.transparent = notes is None
        # The first octets in one piece; where they stand; the size of the header; where the first comes from.
        self.front: bytes = b""
        self.origin: i64 = 0
        self.size: i64 = 0
        self.packet: i64 = 0
        self.time: i64 = 0

    def inner(self, outer: i64) -> i64:
        return 0 if outer <= self.origin + self.size else outer

    def begin_at(self, offset: i64) -> None:
        self.origin = offset
        if self.notes is None:
            self.above.begin_at(offset)

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        if self.transparent:
            self.above.data(offset, buf, start, end, provenance)
            return
        if offset == self.origin:
            self.packet = provenance.packet
            self.time = provenance.time
        if self.origin + len(self.front) == offset and len(self.front) < _READ:
            self.front += buf[start : min(end, start + _READ - len(self.front))]
        if self.size == 0:
            self.size = max(proxy.proxy_size(self.front), 0)
        own: i64 = self.origin + self.size
        if self.size > 0 and offset + (end - start) >= own:
            self.unwrap()
            if offset + (end - start) > own:
                self.above.data(own, buf, start + (own - offset), end, provenance)

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        own: i64 = self.origin + self.size
        if self.transparent:
            self.above.gap(offset, size, packet, time)
        elif self.size == 0:
            # Where the header ends was not captured.
            self.unwrap()
            self.above.gap(offset, size, packet, time)
        elif offset + size >= own:
            self.unwrap()
            if offset + size > own:
                self.above.gap(own, offset + size - own, packet, time)

    def finish(self, reason: str) -> None:
        if not self.transparent:
            self.unwrap()
        self.above.finish(reason)

    def unwrap(self) -> None:
        """The header is over, or the rest of the header was not captured: what comes now are the direction's
        own octets.
        """
        self.transparent = True
        header = proxy.proxy_header(self.front, self.size)
        if self.size == 0:
            self.size = len(self.front)
        self.above.begin_at(self.origin + self.size)
        notes = self.notes
        assert notes is not None
        connection = notes.connection
        connection.proxied = True
        source = "" if header.source is None else header.source[0]
        connection.proxy = (int(self.packet), int(header.version), source)
        client = "the header names no client"
        if header.local:
            client = "the load balancer opened the connection for itself"
        elif header.source is not None:
            client = f"the real client is {endpoint(*header.source)}"
        sender = endpoint(*connection.end(self.direction))
        about = f"a PROXY header (version {header.version}, {header.size} octets) sent by {sender}"
        if header.size == 0:
            about = f"a PROXY header (version {header.version}) sent by {sender}"
            client = f"the capture has only the first {self.size} octets of the header"
        notes.add("capture/proxy", self.packet, self.time, f"{about}: {client}")

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        numbers = (int(self.origin), int(self.size), int(self.packet), int(self.time))
        return (self.transparent, self.front, numbers)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        self.transparent, self.front, (self.origin, self.size, self.packet, self.time) = state


class ProxyLayer(Layer):
    """The layer of a connection. direction: the one with the header."""

    def __init__(self, notes: ConnectionNotes, direction: i64) -> None:
        self.direction: i64 = direction
        self.headed: ProxyStream = ProxyStream(notes, direction)
        other = ProxyStream(None, 1 - direction)
        first, second = (self.headed, other) if direction == 0 else (other, self.headed)
        super().__init__(NAME, first, second)

    def dump(self) -> tuple[object, ...]:
        return (int(self.direction), self.headed.dump())


class ProxyKind(LayerKind):
    """The PROXY protocol, versions 1 and 2: the TCP client's octets begin with a header."""

    def __init__(self) -> None:
        super().__init__(NAME)

    def begins(self, first: LayerOpening, second: LayerOpening) -> i64:
        return max(_begins(first), _begins(second))

    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        return ProxyLayer(context.notes, 0 if _begins(first) == BEGINS else 1)

    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        direction, headed = state
        layer = ProxyLayer(context.notes, direction)
        layer.headed.restore(headed)
        return layer


def _begins(opening: LayerOpening) -> i64:
    """Whether the octets of one direction begin with a header."""
    if not (opening.octets and opening.outermost and opening.opener):
        return NONE
    size = proxy.proxy_size(opening.octets)
    if size == proxy.MORE and opening.closed:
        begun = proxy.proxy_begun(opening.octets, opening.lost)
        return BEGINS if begun and not opening.passed else NONE
    if size == proxy.MORE:
        return MORE
    return NONE if size == proxy.NONE else BEGINS
