"""One direction of a layer that is but a head in front of other octets: it takes the head off."""

from typing import Any

from amqpscope.layers.interface import LayerStream
from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

__all__ = ["HeadStream"]


class HeadStream(LayerStream):
    """Takes `size` octets off a direction. Offsets stay those of the stream below."""

    def __init__(self, size: i64) -> None:
        super().__init__()
        self.size: i64 = size
        # Where the head begins.
        self.origin: i64 = 0

    def inner(self, outer: i64) -> i64:
        return 0 if outer <= self.origin + self.size else outer

    def begin_at(self, offset: i64) -> None:
        self.origin = offset

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        if self.transparent:
            self.above.data(offset, buf, start, end, provenance)
            return
        own: i64 = self.origin + self.size
        if offset + (end - start) >= own:
            self.unwrap()
            if offset + (end - start) > own:
                self.above.data(own, buf, start + (own - offset), end, provenance)

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        if not self.transparent:
            own: i64 = self.origin + self.size
            if offset + size < own:
                return  # the head goes on behind the hole
            self.unwrap()
            size -= max(own - offset, 0)
            offset = max(offset, own)
            if size == 0:
                return
        self.above.gap(offset, size, packet, time)

    def tear(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        if not self.transparent:
            self.unwrap()
        self.above.tear(offset, size, packet, time)

    def finish(self, reason: str) -> None:
        if not self.transparent:
            self.unwrap()
        self.above.finish(reason)

    def unwrap(self) -> None:
        """The head is over: what comes now are the direction's own octets."""
        self.transparent = True
        self.above.begin_at(self.origin + self.size)

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        return (self.transparent, int(self.size), int(self.origin))

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        self.transparent, self.size, self.origin = state
