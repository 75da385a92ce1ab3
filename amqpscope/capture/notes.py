"""What is wrong with a capture, reported a bounded number of times."""

from typing import Any

from amqpscope.capture.sink import SegmentSink
from amqpscope.limits import MAX_NOTES
from dissectors.wire import i64


class Notes:
    """Passes the first few notes of each code on to the sink and counts the others.

    A damaged or strange file repeats itself for each of its packets: what a reader needs is the first
    places and how many there were. Codes come from the capture layer's own sources, never from the file,
    so there are few.
    """

    def __init__(self, sink: SegmentSink) -> None:
        self.sink = sink
        self.counts: dict[str, int] = {}
        self.held_back: dict[str, int] = {}

    def add(self, code: str, packet: i64, time: i64, detail: str, most: i64 = MAX_NOTES) -> None:
        """One more occurrence of `code` at `packet` (0: the file itself), reported if among the first
        `most`."""
        count = self.counts.get(code, 0) + 1
        self.counts[code] = count
        if count <= most:
            self.sink.note(code, packet, time, detail)
        else:
            self.held_back[code] = self.held_back.get(code, 0) + 1

    def finish(self) -> None:
        """The file has ended: tell how many were held back, a note a code."""
        for code, count in self.held_back.items():
            self.sink.note(code, 0, 0, f"{count} more")
        self.held_back = {}

    def dump(self) -> tuple[Any, ...]:
        """The state as plain values."""
        return (tuple(self.counts.items()), tuple(self.held_back.items()))

    @staticmethod
    def load(state: tuple[Any, ...], sink: SegmentSink) -> "Notes":
        """Notes that go on where those that gave `state` by `dump` were, with another sink."""
        counts, held_back = state
        notes = Notes(sink)
        notes.counts = dict(counts)
        notes.held_back = dict(held_back)
        return notes
