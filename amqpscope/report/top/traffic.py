"""How much comes on a connection: frames and octets, and how many a second."""

from typing import Final

__all__ = ["LiveTraffic"]

_TREND: Final = 30
"""Seconds of which it is known how many frames each had."""


class LiveTraffic:
    """What came on one connection so far, and at which rates."""

    __slots__ = (
        "_counted_frames",
        "_measured_frames",
        "_measured_octets",
        "frame_rate",
        "frames",
        "octet_rate",
        "octets",
        "trend",
    )

    def __init__(self) -> None:
        # Frames, and octets in order, of both peers so far.
        self.frames = 0
        self.octets = 0
        # Frames and octets a second, between the two last measurements.
        self.frame_rate = 0.0
        self.octet_rate = 0.0
        # How many frames each of the last seconds had, the newest last.
        self.trend: list[int] = []
        # Frames and octets at the last measurement, and frames at the last full second.
        self._measured_frames = 0
        self._measured_octets = 0
        self._counted_frames = 0

    def measure(self, passed: float) -> None:
        """So many seconds have passed since the last measurement."""
        self.frame_rate = (self.frames - self._measured_frames) / passed
        self.octet_rate = max(self.octets - self._measured_octets, 0) / passed
        self._measured_frames = self.frames
        self._measured_octets = self.octets

    def tick(self) -> None:
        """A second has passed."""
        self.trend.append(self.frames - self._counted_frames)
        if len(self.trend) > _TREND:
            del self.trend[0]
        self._counted_frames = self.frames

    def end(self, frames: int) -> None:
        """The connection is over, after so many frames."""
        self.frames = max(self.frames, frames)
        self.frame_rate = self.octet_rate = 0.0
