"""The numbers of connections, as Wireshark and as this program count them."""

from typing import Final

from amqpscope.capture.segment import Segment
from amqpscope.limits import MAX_PAIRS
from dissectors.wire import i64

__all__ = ["Numbering", "PairNumbers", "reverse_key"]

# TCP flag bits (RFC 9293, section 3.1).
_FLAG_SYN: Final = 0x02
_FLAGS_SYN_ACK: Final = 0x12


class PairNumbers:
    """The numbers of the last connection between two ends, of the pairs that were last put in.

    A pair is the key of either direction, the lower of the two. `most` pairs are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most: int = most
        # Both in one number, instance << 32 | stream: there are many of them.
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, pair: bytes, instance: int, stream: int) -> None:
        """Remember these for `pair`. If that is one too many the oldest quarter is forgotten."""
        self._numbers.pop(pair, None)
        self._numbers[pair] = instance << 32 | stream
        if len(self._numbers) > self._most:
            for old in list(self._numbers)[: self._most // 4 + 1]:
                del self._numbers[old]

    def take(self, pair: bytes) -> tuple[int, int] | None:
        """(instance, stream) of the last connection of `pair`, which is then forgotten."""
        numbers = self._numbers.pop(pair, -1)
        return None if numbers < 0 else (numbers >> 32, numbers & 0xFFFFFFFF)


class Numbering:
    """Numbers the connections of a capture as they begin.

    `instance` counts the connections between two ends. `stream` is Wireshark's `tcp.stream`, which Wireshark
    counts up for two ends that are new to it and for a SYN with a new sequence number, but not for a
    connection that is only reported from an earlier one by a jump: the two share a number.
    """

    def __init__(self) -> None:
        # The `stream` of the next connection.
        self.streams: i64 = 0
        # How many connections began.
        self.begun: i64 = 0
        self._pairs: PairNumbers = PairNumbers(MAX_PAIRS)

    def reserve(self, segment: Segment) -> int:
        """The `stream` of a connection that this SYN may begin, for `number`."""
        reserved: int = self.streams
        if segment.flags & _FLAGS_SYN_ACK == _FLAG_SYN:
            self.streams += 1
        return reserved

    def number(self, first: Segment, reserved: int) -> tuple[int, int]:
        """(instance, stream) of a connection that begins with this segment; reserved: its stream, or -1."""
        instance = 0
        stream: int = self.streams if reserved < 0 else reserved
        last = self._pairs.take(_pair(first.key, first.reverse))
        if last is not None:
            instance = last[0] + 1
            if first.flags & _FLAGS_SYN_ACK != _FLAG_SYN:
                stream = last[1]
        if stream == self.streams:
            self.streams += 1
        self.begun += 1
        return instance, stream

    def over(self, key: bytes, instance: int, stream: int) -> None:
        """The connection of this key is over. What the next one between the same ends needs is remembered."""
        self._pairs.put(_pair(key, reverse_key(key)), instance, stream)


def _pair(key: bytes, reverse: bytes) -> bytes:
    """What a connection and its reverse are both remembered by."""
    return key if key < reverse else reverse


def reverse_key(key: bytes) -> bytes:
    """The key of the other direction."""
    width = (len(key) - 4) // 2
    return key[width : 2 * width] + key[:width] + key[-2:] + key[-4:-2]
