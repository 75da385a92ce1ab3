"""What takes one direction of a connection: the analysis itself, or a layer in front of it."""

from amqpscope.reassembly.provenance import Provenance
from dissectors.proxy import ProxyHeader
from dissectors.wire import i64

__all__ = ["PlainStream"]


class PlainStream:
    """Takes the octets of one direction in order, what is missing among them, and their end."""

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        """The octets buf[start:end] at stream offset `offset`. `buf` is only lent."""

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        """`size` octets at `offset` were not captured; `packet` made it known."""

    def begin_behind(self, header: ProxyHeader, packet: i64, time: i64) -> None:
        """The direction's own octets begin behind this header, before any of them are handed on.

        packet, time (ns): of the header's first octet.
        """

    def finish(self, reason: str) -> None:
        """Nothing follows: `fin`, `rst`, or `capture` when only the capture ended."""
