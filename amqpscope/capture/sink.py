"""Where the capture layer hands its segments to."""

from typing import Final

from mypy_extensions import mypyc_attr

from amqpscope.capture.segment import Segment
from amqpscope.capture.traced import TracedMessage
from dissectors.wire import i64

__all__ = ["CAPTURED", "UNORDERED", "SegmentSink"]

CAPTURED: Final = -1
"""In the place of a direction: the connection was seen from the side, and nobody's own order is known."""

UNORDERED: Final = -2
"""The same, and what was seen may be in another order than it was sent: no finding is certain."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SegmentSink:
    """Takes TCP segments in capture order, and notes about the capture. Made to be subclassed."""

    def segment(self, segment: Segment) -> None:
        """One captured TCP segment. It is only lent for the call."""

    def note(self, code: str, packet: i64, time: i64, detail: str) -> None:
        """Something is wrong with the capture: `code` is `capture/...`, `packet` 0 if it is the file itself.

        `detail` is made of numbers and fixed words: nothing of it comes from the file as text.
        """

    def logged(self, key: bytes, own: i64, retold: bool) -> None:
        """The next connection between these ends, by the key of its direction 0, comes from a log.

        own: the direction in which the endpoint sends whose log it is, CAPTURED or UNORDERED. retold: the log
        has the fields of frames, not their octets.
        """

    def traced(self, message: TracedMessage) -> None:
        """The file is no capture but a broker's log of messages, and has this one."""

    def secrets(self, octets: bytes) -> None:
        """The capture file has TLS secrets: the lines of a key log."""

    def dropped(self, packet: i64, time: i64, count: i64) -> None:
        """The capture lost `count` packets before `packet`, of that time; packet 0: nobody knows where."""
