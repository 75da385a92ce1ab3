"""The layers of one connection, and the choice of the next one.

Theory of operation. What stands between TCP and AMQP is recognised by the first octets of both directions.
For nearly every connection that is nothing: its first octets are asked about once (`may_begin`), and its
streams go to the analysis as they come. Where a layer may begin, a `LayerStack` takes both streams. It holds
what comes until it is known which kind of layer begins, sets that layer in, gives it what was held, and holds
again what the layer carries, in which another layer may begin: TLS, then WebSocket, then AMQP. When none
begins any more, what is held goes to the analysis. A stream of a layer that has become transparent is taken
out again.

To add a kind of layer, write a `LayerKind` like `ProxyKind` and add it to `LAYERS`.
"""

from typing import Any, Final

from amqpscope.layers.http_kinds import ConnectKind, WebSocketKind
from amqpscope.layers.interface import (
    BEGINS,
    MORE,
    NONE,
    NOTHING,
    Layer,
    LayerContext,
    LayerKind,
    LayerOpening,
    PlainStream,
)
from amqpscope.layers.proxy import ProxyKind
from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls_kind import TLS_HEADER, TlsKind, says_hello
from amqpscope.limits import MAX_LAYER_HELD, MAX_LAYER_OPENING, MAX_LAYERS, MAX_TLS_RECORD
from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

__all__ = ["LAYERS", "LayerStack", "begins_in_the_middle", "may_begin"]

LAYERS: Final[dict[str, LayerKind]] = {
    one.name: one for one in (ProxyKind(), TlsKind(), ConnectKind(), WebSocketKind())
}
"""By name, in the order in which they are asked."""


_AMQP: Final = b"AMQP"
"""The first octets of nearly every stream, with which no layer begins."""

_PROTECTED: Final = b"\x17\x03\x03"
"""The first octets of a protected record of TLS 1.2 and 1.3."""

# What holding a piece costs beside its octets.
_EACH: Final = 128


def may_begin(octets: bytes, direction: i64, opener: bool, midstream: bool, secrets: Secrets) -> bool:
    """Whether a layer may begin with a direction's first octets. opener: it may be the TCP client's.

    midstream: the beginning of TCP's stream was not captured, and only TLS shows that it begins here.
    """
    if midstream and not says_hello(octets):
        return False
    if octets.startswith(_AMQP[: len(octets)]):
        return TLS_HEADER.startswith(octets[: len(TLS_HEADER)]) and secrets.known()
    opening = LayerOpening(octets, True, opener)
    other = LayerOpening(b"", True, True)
    first, second = (opening, other) if direction == 0 else (other, opening)
    return any(kind.begins(first, second) != NONE for kind in LAYERS.values())


def begins_in_the_middle(octets: bytes, secrets: Secrets) -> bool:
    """Whether a segment of a connection whose beginning was not captured has TLS that may be decrypted."""
    size: i64 = len(octets)
    if size < 5 or not octets.startswith(_PROTECTED):
        return False
    return 0 < (octets[3] << 8 | octets[4]) <= MAX_TLS_RECORD and secrets.known()


class _Held:
    """Octets of a direction that wait for the choice of a layer, or how many are missing."""

    def __init__(
        self, direction: i64, offset: i64, octets: bytes, missing: i64, provenance: Provenance
    ) -> None:
        self.direction: i64 = direction
        self.offset: i64 = offset
        self.octets: bytes = octets
        self.missing: i64 = missing
        self.provenance: Provenance = provenance
        # How many are missing is not known; TLS stood here.
        self.torn: bool = False
        self.secured: bool = False

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        return (
            int(self.direction),
            int(self.offset),
            self.octets,
            int(self.missing),
            self.torn,
            self.secured,
            self.provenance.dump(),
        )


class _HeldStream(PlainStream):
    """Gives what comes in one direction to the stack, which holds it."""

    def __init__(self, stack: "LayerStack", direction: i64) -> None:
        self.stack: LayerStack = stack
        self.direction: i64 = direction
        # Where it begins, its first octets, whether they can become more, whether octets are missing, and
        # why nothing follows.
        self.origin: i64 = 0
        self.front: bytes = b""
        self.closed: bool = False
        self.lost: bool = False
        self.ended: str = ""

    def begin_at(self, offset: i64) -> None:
        self.origin = offset

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        room: i64 = MAX_LAYER_OPENING - len(self.front)
        if not self.closed and room > 0:
            self.front += buf[start : min(end, start + room)]
        self.stack.hold(_Held(self.direction, offset, buf[start:end], 0, provenance))

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        self.closed = self.lost = True
        self.stack.hold(_Held(self.direction, offset, b"", size, Provenance(packet, time, -1)))

    def tear(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        self.closed = self.lost = True
        torn = _Held(self.direction, offset, b"", size, Provenance(packet, time, -1))
        torn.torn = True
        self.stack.hold(torn)

    def secured(self) -> None:
        mark = _Held(self.direction, 0, b"", 0, Provenance(0, 0, -1))
        mark.secured = True
        self.stack.hold(mark)

    def finish(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = reason
        self.closed = True
        self.stack.choose()

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        return (int(self.origin), self.front, self.closed, self.lost, self.ended)


class LayerStack:
    """The layers of one connection, the outermost first.

    context: for the layers. first, second: what takes the innermost octets of the two directions. passed: the
    direction (0 or 1) whose octets went there before anybody asked for layers, -1 for none. openers: which
    directions may be the TCP client's. midstream: the beginning of TCP's streams was not captured.
    """

    def __init__(
        self,
        context: LayerContext,
        first: PlainStream,
        second: PlainStream,
        passed: i64,
        openers: tuple[bool, bool],
        midstream: bool = False,
    ) -> None:
        self.context: LayerContext = context
        self.first: PlainStream = first
        self.second: PlainStream = second
        self.passed: i64 = passed
        self.openers: tuple[bool, bool] = openers
        self.midstream: bool = midstream
        self.layers: list[Layer] = []
        # While it is open which layer is next: what holds each direction, and what they hold.
        self.choosing: bool = True
        self.held: list[_Held] = []
        self.held_octets: i64 = 0
        self.holders: list[_HeldStream] = [_HeldStream(self, 0), _HeldStream(self, 1)]

    def entry(self, direction: i64) -> PlainStream:
        """What takes a direction's octets from TCP now: the first stream that is not transparent."""
        if direction != self.passed:
            for layer in self.layers:
                stream = layer.stream(direction)
                if not stream.transparent:
                    return stream
        return self.innermost(direction)

    def innermost(self, direction: i64) -> PlainStream:
        """What takes the octets that the innermost layer carries."""
        if self.choosing and direction != self.passed:
            return self.holders[direction]
        return self.first if direction == 0 else self.second

    def inner(self, direction: i64, outer: i64) -> i64:
        """How many octets of the innermost stream of a direction the first `outer` octets of TCP's carry."""
        if direction != self.passed:
            for layer in self.layers:
                if outer <= 0:
                    break
                outer = layer.stream(direction).inner(outer)
        return outer

    def hold(self, held: _Held) -> None:
        """These wait for the choice."""
        self.held.append(held)
        self.held_octets += len(held.octets) + _EACH
        self.choose()

    def choose(self) -> None:
        """Set in the layer that begins with what is held; if none does, the analysis takes that."""
        if not self.choosing:
            return
        first, second = self.opening(0), self.opening(1)
        open_kinds = False
        chosen: LayerKind | None = None
        if len(self.layers) < MAX_LAYERS:
            for kind in LAYERS.values():
                verdict = kind.begins(first, second)
                if verdict == BEGINS:
                    chosen = kind
                    break
                if verdict == MORE:
                    open_kinds = True
        if chosen is not None:
            self.set_in(chosen.layer(first, second, self.context))
        elif not open_kinds or self.held_octets > MAX_LAYER_HELD or (first.closed and second.closed):
            self.choosing = False
            self.replay(self.first, self.second)

    def opening(self, direction: i64) -> LayerOpening:
        """The first octets of a direction at the place where the next layer may begin."""
        holder = self.holders[direction]
        opener = self.openers[0] if direction == 0 else self.openers[1]
        opening = LayerOpening(holder.front, not self.layers, opener)
        opening.passed = direction == self.passed
        opening.keyed = self.context.secrets.given
        opening.closed = holder.closed or opening.passed
        opening.lost = holder.lost
        opening.headless = self.midstream or (holder.lost and not holder.front)
        return opening

    def set_in(self, layer: Layer) -> None:
        """The next layer takes what is held, and what it carries is held in turn."""
        holders = self.holders
        self.holders = [_HeldStream(self, 0), _HeldStream(self, 1)]
        self.layers.append(layer)
        self.connect()
        held = self.held
        self.held = []
        self.held_octets = 0
        self.give(held, holders, layer.first, layer.second)

    def join(self, client: i64, first: i64, second: i64) -> None:
        """The capture begins in the middle of TLS. client: the direction that may be the client's. first,
        second: the offsets of TCP's streams from which on their octets come here. What stands between TLS
        and AMQP is not looked for.
        """
        from amqpscope.layers.tls.layer import TlsLayer

        layer = TlsLayer(self.context, int(client))
        layer.join((int(first), int(second)))
        self.layers.append(layer)
        self.choosing = False
        self.connect()

    def replay(self, first: PlainStream, second: PlainStream) -> None:
        """No layer begins any more: the analysis takes what is held."""
        self.connect()
        held = self.held
        self.held = []
        self.give(held, self.holders, first, second)
        for holder in self.holders:
            holder.front = b""

    def give(
        self, held: list[_Held], holders: list[_HeldStream], first: PlainStream, second: PlainStream
    ) -> None:
        """Hand on what was held."""
        for holder, stream in zip(holders, (first, second), strict=True):
            if holder.origin > 0:
                stream.begin_at(holder.origin)
        for one in held:
            stream = first if one.direction == 0 else second
            if one.secured:
                stream.secured()
            elif one.torn:
                stream.tear(one.offset, one.missing, one.provenance.packet, one.provenance.time)
            elif one.missing > 0:
                stream.gap(one.offset, one.missing, one.provenance.packet, one.provenance.time)
            else:
                stream.data(one.offset, one.octets, 0, len(one.octets), one.provenance)
        for holder, stream in zip(holders, (first, second), strict=True):
            if holder.ended:
                stream.finish(holder.ended)

    def connect(self) -> None:
        """Connect the streams, each with what is above it."""
        for direction in (0, 1):
            above = self.innermost(direction)
            for layer in reversed(self.layers):
                stream = layer.stream(direction)
                stream.above = above
                above = stream

    def release(self) -> None:
        """Let go of all: nothing comes any more."""
        for layer in self.layers:
            layer.first.above = NOTHING
            layer.second.above = NOTHING
        self.holders = []
        self.held = []

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """The state between two calls as plain values."""
        return (
            int(self.passed),
            (self.openers, self.midstream),
            tuple((layer.kind, layer.dump()) for layer in self.layers),
            self.choosing,
            tuple(one.dump() for one in self.held),
            tuple(holder.dump() for holder in self.holders),
            self.context.faults.dump(),
        )

    @staticmethod
    def load(
        state: tuple[Any, ...], context: LayerContext, first: PlainStream, second: PlainStream
    ) -> "LayerStack":
        """The object of what `dump` returned."""
        passed, (openers, midstream), layers, choosing, held, holders, faults = state
        context.faults.restore(faults)
        stack = LayerStack(context, first, second, passed, openers, midstream)
        stack.layers = [LAYERS[kind].load(layer, context) for kind, layer in layers]
        stack.choosing = choosing
        for direction, offset, octets, missing, torn, secured, provenance in held:
            one = _Held(direction, offset, octets, missing, Provenance(*provenance))
            one.torn = torn
            one.secured = secured
            stack.held.append(one)
            stack.held_octets += len(octets) + _EACH
        for holder, reported in zip(stack.holders, holders, strict=True):
            holder.origin, holder.front, holder.closed, holder.lost, holder.ended = reported
        stack.connect()
        return stack
