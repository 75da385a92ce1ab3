"""The stream that an endpoint sends, as far as it is known."""

from typing import Any

from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.credit import UNKNOWN
from dissectors.wire import i64

__all__ = ["OwnStream"]


class OwnStream:
    """The newest frame that an endpoint sent, and where its stream ended."""

    def __init__(self) -> None:
        # How many frames were sent.
        self.frames: i64 = 0
        # When (ns) the newest frame was complete.
        self.last_time: i64 = 0
        # The packet in which the newest frame begins.
        self.last_packet: i64 = 0
        # Octets of the peer's stream that the newest frame's segment acknowledges; UNKNOWN if it says none.
        self.last_acknowledged: i64 = UNKNOWN
        # The frame inside which the stream ended.
        self.unfinished: FrameRef | None = None
        # What is missing of that frame.
        self.unfinished_reason: str = ""
        # How often the endpoint was silent for too long.
        self.late: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (int(self.frames), int(self.last_time), int(self.last_packet)),
            (int(self.last_acknowledged), int(self.late)),
            (None if self.unfinished is None else self.unfinished.dump(), self.unfinished_reason),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "OwnStream":
        """The object of what `dump` returned."""
        stream = OwnStream()
        sent, silence, unfinished = state
        stream.frames, stream.last_time, stream.last_packet = sent
        stream.last_acknowledged, stream.late = silence
        stream.unfinished = None if unfinished[0] is None else FrameRef.load(unfinished[0])
        stream.unfinished_reason = unfinished[1]
        return stream
