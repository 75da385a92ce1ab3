"""Points in time as text."""

import datetime
from typing import Final

from amqpscope.report.digits import THREE_DIGITS
from dissectors.wire import i64

__all__ = ["Moments", "iso"]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LAST: Final = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)

_SECOND: Final = 1_000_000_000


class Moments:
    """Writes times of one kind. They mostly come in order, so the next one is mostly of the same second."""

    def __init__(self) -> None:
        self._second: i64 = 0
        self._text: str = "1970-01-01T00:00:00"

    def iso(self, time: i64) -> str:
        """Nanoseconds since 1970 as ISO 8601 in UTC with nine decimals."""
        second = time // _SECOND
        rest = time - second * _SECOND
        micro = rest // 1000
        decimals = THREE_DIGITS[micro // 1000] + THREE_DIGITS[micro % 1000] + THREE_DIGITS[rest % 1000]
        return f"{self._seconds(second)}.{decimals}Z"

    def milliseconds(self, time: i64) -> str:
        """Milliseconds since 1970 as ISO 8601 in UTC with three decimals."""
        second = time // 1000
        return f"{self._seconds(second)}.{THREE_DIGITS[time - second * 1000]}Z"

    def _seconds(self, second: i64) -> str:
        """A time without its decimals."""
        if second != self._second:
            try:
                moment = _EPOCH + datetime.timedelta(seconds=int(second))
            except OverflowError:
                moment = _LAST
            # Not strftime: that writes the year 1 with one digit.
            self._text = moment.isoformat(timespec="seconds")[:19]
            self._second = second
        return self._text


_moments = Moments()


def iso(time: i64) -> str:
    """Nanoseconds since 1970 as ISO 8601 in UTC with nine decimals."""
    return _moments.iso(time)
