"""What became of one capture, in a line."""

from amqpscope.reading import Capture
from amqpscope.report.summary_text import count
from amqpscope.report.verdict import Tally

__all__ = ["outcome"]


def outcome(capture: Capture | None, tally: Tally, reason: str) -> str:
    """`2 errors in 14 frames on 1 connection`.

    capture: None if it could not be opened. reason: why it was not read to its end, or "".
    """
    if capture is None or not (capture.frames or tally.counts):
        return f"nothing to check ({reason})" if reason else "nothing to check"
    where = f"{count(capture.frames, 'frame')} on {count(capture.spoken, 'connection')}"
    what = f"{tally.text() or 'nothing wrong found'} in {where}"
    return f"{what} ({reason}: only what was read before)" if reason else what
