"""Points in time as text."""

import datetime

from dissectors.wire import i64

__all__ = ["iso"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)

_SECOND = 1_000_000_000


class _Second:
    """A second as text. Frames come in the order of time, so the next one mostly is of the same second."""

    def __init__(self) -> None:
        self.number: i64 = 0
        self.text: str = "1970-01-01T00:00:00"


_second = _Second()


def iso(time: i64) -> str:
    """Nanoseconds since 1970 as ISO 8601 in UTC with nine decimals."""
    number = time // _SECOND
    rest = time - number * _SECOND
    if number != _second.number:
        try:
            moment = _EPOCH + datetime.timedelta(seconds=int(number))
        except OverflowError:
            moment = _LAST
        # Not strftime: that writes the year 1 with one digit.
        _second.text = moment.isoformat(timespec="seconds")[:19]
        _second.number = number
    # With a leading 1 the decimals keep their zeros.
    return _second.text + "." + str(rest + _SECOND)[1:] + "Z"
