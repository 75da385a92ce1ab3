"""The time with which a line of a log begins."""

import datetime
import re
from typing import Final

__all__ = ["time_of"]

# 2026-11-23T12:04:19.537Z, 2026-11-23 12:12:21,704, 2019-04-05 14:54:38.037248 -0400
_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?[ ]?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


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
