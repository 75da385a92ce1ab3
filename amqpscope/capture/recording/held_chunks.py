"""The packets that a recorder has in hand: chunks of blocks, the oldest first."""

from collections import deque
from typing import Final

from amqpscope.capture.recording.chunk import Chunk
from amqpscope.limits import RECORDING_CHUNK
from dissectors.wire import i64

__all__ = ["HeldChunks"]

_SMALLEST_CHUNK: Final = 4096


class HeldChunks:
    """Chunks that together may take `most` octets of memory, each with packets of `span` nanoseconds."""

    def __init__(self, most: i64, span: i64) -> None:
        self.chunks: deque[Chunk] = deque()
        # The last chunk, of those that went too; at first one that takes nothing.
        self.newest: Chunk = Chunk(0, -1, 0, 0)
        # Octets of memory that the chunks take.
        self.octets: i64 = 0
        # How many octets they may take.
        self.most: i64 = most
        # Nanoseconds from a chunk's first packet to its last.
        self.span: i64 = span

    def next_room(self, size: i64) -> i64:
        """The octets of a chunk for a block of this size that the newest has no room for.

        It is as large as the newest took, and larger if that became full.
        """
        last = self.newest
        room: i64 = last.end + (last.end >> 2)
        if last.room - last.end < size:
            room = 2 * last.end
        if room > RECORDING_CHUNK:
            room = RECORDING_CHUNK
        if room > self.most >> 4:
            room = self.most >> 4
        if room < _SMALLEST_CHUNK:
            room = _SMALLEST_CHUNK
        return room if room > size else size

    def has_room(self, octets: i64) -> bool:
        """Whether so many more octets can be taken, or there is no chunk to make room by."""
        return self.octets + octets <= self.most or len(self.chunks) == 0

    def add(self, chunk: Chunk) -> None:
        """A new chunk, the newest."""
        self.chunks.append(chunk)
        self.octets += chunk.room
        self.newest = chunk

    def drop_oldest(self) -> Chunk:
        """Let go of the oldest chunk."""
        chunk = self.chunks.popleft()
        self.octets -= chunk.room
        return chunk

    def chunk_of(self, packet: i64) -> Chunk | None:
        """The chunk that has this packet."""
        for chunk in reversed(self.chunks):
            if packet >= chunk.first:
                return chunk if packet < chunk.next else None
        return None
