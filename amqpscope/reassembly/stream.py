"""The two streams of a connection as they leave reassembly: where they go, and what is shown about them."""

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

        Whether its receiver took it is not known until that acknowledges what lies behind `offset`. Behind
        NOWHERE_NEAR nothing lies: octets that are not its sender's may be among those that follow.
        """

    def note(self, direction: i64, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something about the capture of this direction ("capture/..."), in words without its octets."""


class StreamFacts:
    """What a summary tells of one direction."""

    def __init__(self) -> None:
        # A segment of this direction was captured.
        self.seen: bool = False
        # Its SYN was captured.
        self.syn: bool = False
        # Its first octets are not known to be the connection's first.
        self.midstream: bool = False
        # Octets passed on.
        self.delivered: int = 0
        # Octets passed on as gaps.
        self.missing: int = 0
        # Octets sent more than once.
        self.retransmitted: int = 0
        # Octets sent once and captured more than once: packets that two taps captured.
        self.duplicated: int = 0
        # Octets captured when their place had been passed: in a gap, before the origin, behind the end.
        self.late: int = 0
        # Segments ignored because they lay outside any window.
        self.stray: int = 0
        # Second copies of octets that contradicted the first.
        self.differing: int = 0
        # Segments captured, those without payload included.
        self.segments: int = 0
        # The number of the packet of the first segment; 0 when there is none.
        self.first_packet: int = 0
        # Its time (ns).
        self.first_time: int = 0
        # The same of the last segment.
        self.last_packet: int = 0
        # Its time (ns).
        self.last_time: int = 0
        # Nanoseconds in which the other end's window left no room for its sender's octets.
        self.shut: int = 0
        # Nanoseconds in which octets were sent again and not acknowledged.
        self.unheard: int = 0
        # How it ended: "fin", "rst" or "".
        self.ended: str = ""
