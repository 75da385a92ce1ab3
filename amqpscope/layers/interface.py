"""What takes one direction of a connection: the analysis itself, or a layer in front of it.

A layer stands between TCP and AMQP, or between another layer and AMQP: it takes octets and hands on those
that it carries. It has a stream for each direction, since what one peer says may decide how the other one is
read. A layer knows neither packets nor captures: each stream gets octets in order with their provenance, is
reported what is missing, and hands on octets in order, with the provenance of the octets that made them
readable.

Offsets of what a stream hands on are its own. They have to grow, and `inner` translates: TCP acknowledges
octets as they were sent, and whoever judges frames asks how many octets of the innermost stream that were.
"""

from abc import ABC, abstractmethod
from typing import Any, Final

from mypy_extensions import mypyc_attr

from amqpscope.layers.secrets import Secrets
from amqpscope.model.layer_fault import LayerFaults
from amqpscope.model.note import ConnectionNotes
from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

__all__ = [
    "BEGINS",
    "MORE",
    "NONE",
    "NOTHING",
    "Layer",
    "LayerContext",
    "LayerKind",
    "LayerOpening",
    "LayerStream",
    "PlainStream",
]

NONE: Final = 0
"""The layer does not begin here."""

MORE: Final = 1
"""Too few octets to tell."""

BEGINS: Final = 2
"""The layer begins with the first octets of both directions."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PlainStream:
    """Takes the octets of one direction in order, what is missing among them, and their end."""

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        """The octets buf[start:end] at stream offset `offset`. `buf` is only lent."""

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        """`size` octets at `offset` were not captured; `packet` made it known."""

    def tear(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        """Octets at `offset` were not captured, and nobody knows how many; the next ones stand `size`
        further.
        """
        self.gap(offset, size, packet, time)

    def secured(self) -> None:
        """TLS stood between the octets before and the next ones."""

    def begin_at(self, offset: i64) -> None:
        """The first octets will stand at this offset, not at 0. Comes before any octets."""

    def finish(self, reason: str) -> None:
        """Nothing follows: `fin`, `rst`, or `capture` when only the capture ended."""


NOTHING: Final = PlainStream()
"""What takes the octets that nobody wants."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LayerStream(PlainStream):
    """One direction of a layer. It hands on what it carries to `above`.

    transparent: from now on it would hand on all octets as they come, at the same offsets, so that they need
    not pass through it any more.
    """

    def __init__(self) -> None:
        self.above: PlainStream = NOTHING
        self.transparent: bool = False

    def inner(self, outer: i64) -> i64:
        """How many octets, counted as the offsets above, the first `outer` octets of this stream carry.

        -1: not known.
        """
        return outer


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer:
    """One layer of a connection: a stream for each direction, in the order of the directions."""

    def __init__(self, kind: str, first: LayerStream, second: LayerStream) -> None:
        self.kind: str = kind
        self.first: LayerStream = first
        self.second: LayerStream = second

    def stream(self, direction: i64) -> LayerStream:
        """The stream of one direction."""
        return self.first if direction == 0 else self.second

    def dump(self) -> tuple[object, ...]:
        """The state between two calls as plain values, without what is above."""
        return ()


class LayerContext:
    """What a layer is given. notes: where it notes what it finds; they have the connection, too. secrets: of
    the capture. faults: where it reports which peer breaks its rules.
    """

    def __init__(self, notes: ConnectionNotes, secrets: Secrets) -> None:
        self.notes: ConnectionNotes = notes
        self.secrets: Secrets = secrets
        self.faults: LayerFaults = LayerFaults()


class LayerOpening:
    """The first octets of one direction, by which a layer is recognised.

    octets: as many as have come in one piece, `MAX_LAYER_OPENING` at most. outermost: they are the first of
    the TCP stream. opener: their sender may be the TCP client. closed: no more octets will come; some are
    missing behind them (lost), or the stream has ended. headless: some are missing before them. passed: the
    direction began before anybody asked for layers, so that no layer can read it; it is closed, too. keyed:
    there are TLS secrets.
    """

    def __init__(self, octets: bytes, outermost: bool, opener: bool) -> None:
        self.octets: bytes = octets
        self.outermost: bool = outermost
        self.opener: bool = opener
        self.closed: bool = False
        self.lost: bool = False
        self.headless: bool = False
        self.passed: bool = False
        self.keyed: bool = False


@mypyc_attr(allow_interpreted_subclasses=True)
class LayerKind(ABC):
    """A kind of layer, by which `amqpscope.layers.stack` recognises and makes layers.

    name: one word, by which a layer is found again in what `Layer.dump` gave.
    """

    def __init__(self, name: str) -> None:
        self.name: str = name

    @abstractmethod
    def begins(self, first: LayerOpening, second: LayerOpening) -> i64:
        """Whether such a layer begins with the first octets of the two directions: NONE, MORE or BEGINS.

        What is decided about some octets must hold for any longer beginning.
        """

    @abstractmethod
    def layer(self, first: LayerOpening, second: LayerOpening, context: LayerContext) -> Layer:
        """The layer that begins so."""

    @abstractmethod
    def load(self, state: tuple[Any, ...], context: LayerContext) -> Layer:
        """What `Layer.dump` gave, as a layer again."""
