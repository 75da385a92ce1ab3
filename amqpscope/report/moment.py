"""Points in time as text."""

import datetime

__all__ = ["iso"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)

# Frames come in the order of time: the second of the last one is nearly always the next one's too.
_cached: list[tuple[int, str]] = [(0, "1970-01-01T00:00:00")]


def iso(time: int) -> str:
    """Nanoseconds since 1970 as ISO 8601 in UTC with nine decimals."""
    seconds, rest = divmod(time, 1_000_000_000)
    second, text = _cached[0]
    if second != seconds:
        try:
            moment = _EPOCH + datetime.timedelta(seconds=seconds)
        except OverflowError:
            moment = _LAST
        text = moment.strftime("%Y-%m-%dT%H:%M:%S")
        _cached[0] = (seconds, text)
    return f"{text}.{rest:09d}Z"
