"""Where the stream of one direction begins and ends, by its SYN, FIN and RST."""

from typing import Any, Final

from amqpscope.reassembly.sequence import UNKNOWN
from dissectors.wire import i64

__all__ = ["NO_CLOSE", "NO_RESET", "PendingReset", "StreamClose", "StreamStart"]


class StreamStart:
    """The begin of a stream, and the first segment captured of it."""

    def __init__(self) -> None:
        # The sequence number of offset 0 is set, if only from an acknowledgement of the other side.
        self.known: bool = False
        # That was the acknowledgement of the SYN: it came with the first octet.
        self.opened: bool = False
        # 1: SYN, 2: SYN with ACK, 0: none was captured.
        self.syn: i64 = 0
        # The window scale of the SYN: 0 not known, 16 none, else one more than its shift count.
        self.scale: i64 = 0
        # The capture began in the middle of the stream.
        self.midstream: bool = False
        # The first segment was empty: perhaps a keep-alive.
        self.empty: bool = False
        # The packet of the first segment, and its time (ns).
        self.packet: i64 = 0
        self.time: i64 = 0

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        said = (self.known, self.opened, self.syn, self.scale)
        return (*said, self.midstream, self.empty, self.packet, self.time)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "StreamStart":
        """The object of what `dump` returned."""
        start = StreamStart()
        start.known, start.opened, start.syn, start.scale = state[:4]
        start.midstream, start.empty, start.packet, start.time = state[4:]
        return start


class StreamClose:
    """The FIN, or the RST, that ends a stream."""

    def __init__(self) -> None:
        # The offset at which the stream ends, -1 as long as no FIN says it.
        self.limit: i64 = -1
        # What the FIN or RST acknowledges, as in its header, -1 if nothing.
        self.acknowledgement: i64 = -1
        # The sequence number behind the FIN, -1 if there is none.
        self.sequence: i64 = -1

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (self.limit, self.acknowledgement, self.sequence)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "StreamClose":
        """The object of what `dump` returned."""
        if state == (-1, -1, -1):
            return NO_CLOSE
        end = StreamClose()
        end.limit, end.acknowledgement, end.sequence = state
        return end


# mypyc: null object, of a stream whose end was not captured so far. Nothing writes to it.
NO_CLOSE: Final = StreamClose()


class PendingReset:
    """An RST that ends a stream unless more of it follows."""

    def __init__(self, at: i64, packet: i64, time: i64, highest: i64) -> None:
        # Its offset; UNKNOWN: there is none.
        self.at: i64 = at
        self.packet: i64 = packet
        # When it came (ns).
        self.time: i64 = time
        # The offset behind all that had been captured when it came.
        self.highest: i64 = highest

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (self.at, self.packet, self.time, self.highest)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "PendingReset":
        """The object of what `dump` returned."""
        at, packet, time, highest = state
        return NO_RESET if at == UNKNOWN else PendingReset(at, packet, time, highest)


# mypyc: null object, of a stream without an RST that stands. Nothing writes to it.
NO_RESET: Final = PendingReset(UNKNOWN, 0, 0, 0)
