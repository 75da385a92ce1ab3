"""The time with which a line of a log begins."""

import datetime
import re
from typing import Final

__all__ = ["ClockFace", "time_of"]

# 2026-11-23T12:04:19.537Z, 2026-11-23 12:12:21,704, 2019-04-05 14:54:38.037248 -0400
_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?[ ]?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
# [09:49:15.190], 14:26:21.985146
_OF_DAY: Final = re.compile(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?", re.ASCII)

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_HOUR: Final = 3_600_000_000_000


def time_of(text: str) -> int:
    """Nanoseconds since 1970 of the first time in the text, 0 without one. A time without a zone is UTC."""
    found = _STAMP.search(text)
    if found is None:
        return 0
    day, hour, fraction, zone = found.groups()
    try:
        moment = datetime.datetime.fromisoformat(f"{day}T{hour}{(zone or 'Z').replace('Z', '+00:00')}")
        seconds = round((moment - _EPOCH).total_seconds())
    except (ValueError, OverflowError):
        return 0
    return max(0, seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0")))


class ClockFace:
    """Times without a date: the first one is taken for one of 1 January 1970.

    A clock that goes from 23 to 0, or from 12 to 1, has gone on: some write the hours of the afternoon as 1
    to 12.
    """

    def __init__(self) -> None:
        # What is to be added to a time of the clock, and the newest time with that.
        self._passed = 0
        self._newest = 0

    def time_of(self, text: str) -> int:
        """As `stamps.time_of`, also for a time without a date."""
        dated = time_of(text)
        if dated:
            return dated
        found = _OF_DAY.search(text)
        if found is None:
            return 0
        hours, minutes, seconds = (int(one) for one in found.groups()[:3])
        if hours > 23 or minutes > 59 or seconds > 60:
            return 0
        time = (hours * 60 + minutes) * 60 + seconds
        moment = self._passed + time * 1_000_000_000 + int((found[4] or "0").ljust(9, "0"))
        back = self._newest - moment
        if back > 22 * _HOUR:
            self._passed += 24 * _HOUR
            moment += 24 * _HOUR
        elif 10 * _HOUR < back < 12 * _HOUR and hours == 1:
            self._passed += 12 * _HOUR
            moment += 12 * _HOUR
        self._newest = max(self._newest, moment)
        return moment
