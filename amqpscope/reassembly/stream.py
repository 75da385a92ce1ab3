"""The two streams of a connection as they leave reassembly: where they go, and what is shown about them."""

from typing import NamedTuple

from mypy_extensions import mypyc_attr

from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

__all__ = ["StreamFacts", "StreamSink"]


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamSink:
    """Where the two streams of one connection go. Subclass it; each method here does nothing.

    Per direction, `data` and `gap` follow one another without holes or overlaps, from offset 0 on.
    """

    def data(
        self, direction: i64, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance
    ) -> None:
        """The octets buf[start:end] at `offset`. `buf` is only lent: copy what is to be kept."""

    def gap(self, direction: i64, offset: i64, size: i64, packet: i64, time: i64) -> None:
        """`size` octets at `offset` were not captured. `packet` is the one that made this known."""

    def end(self, direction: i64, reason: str, packet: i64, time: i64) -> None:
        """Nothing follows in this direction: it ended with `reason` "fin" or "rst". At most once."""

    def doubt(self, direction: i64, offset: i64) -> None:
        """The stream went on behind an RST, or a FIN, at `offset` that was not its sender's.

        Whether its receiver took it is not known until that acknowledges what lies behind `offset`.
        """

    def note(self, direction: i64, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something about the capture of this direction ("capture/..."), in words without its octets."""


class StreamFacts(NamedTuple):
    """What a summary tells of one direction."""

    seen: bool
    """A segment of this direction was captured."""
    syn: bool
    """Its SYN was captured."""
    midstream: bool
    """Its first octets are not known to be the connection's first."""
    delivered: int
    """Octets passed on."""
    missing: int
    """Octets passed on as gaps."""
    retransmitted: int
    """Octets sent more than once."""
    duplicated: int
    """Octets sent once and captured more than once: packets that two taps captured."""
    late: int
    """Octets captured when their place had been passed: in a gap, before the origin, behind the end."""
    stray: int
    """Segments ignored because they lay outside any window."""
    differing: int
    """Second copies of octets that contradicted the first."""
    segments: int
    """Segments captured, those without payload included."""
    first_packet: int
    first_time: int
    last_packet: int
    last_time: int
    """Packet numbers and times (ns) of the first and last of these segments; 0 when there is none."""
    shut: int
    """Nanoseconds in which the other end's window left no room for its sender's octets."""
    unheard: int
    """Nanoseconds in which octets were sent again and not acknowledged."""
    ended: str
    """"fin", "rst" or "" """
