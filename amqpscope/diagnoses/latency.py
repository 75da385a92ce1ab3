"""How long things took, and how large they were: percentiles in bounded memory."""

from typing import Any, Final

from dissectors.wire import i64

__all__ = ["Histogram", "Latency", "SlowTimes"]

_STEPS: Final = 8
"""Buckets for each doubling of a number."""

_EXACT: Final = 256
"""So many numbers are kept as they are, so that the percentiles of few numbers are exact."""


class Histogram:
    """Numbers from 0 on, in buckets.

    The percentiles of up to 256 numbers are exact. Those of more are never too small, and too large by at
    most an eighth.
    """

    def __init__(self) -> None:
        self.count = 0
        self.largest = 0
        self.values: list[int] = []
        self.buckets: dict[int, int] = {}

    def put(self, value: int) -> None:
        """One more number."""
        self.count += 1
        self.largest = max(self.largest, value)
        if len(self.values) < _EXACT:
            self.values.append(value)
        power = max(value.bit_length() - 4, 0)
        bucket = power * _STEPS + (value >> power) % _STEPS if power else value - 16
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def quantile(self, part: float) -> int:
        """The number that this part of all, such as 0.5, does not exceed; 0 if there are none."""
        return self.above(part * self.count)

    def above(self, left: float) -> int:
        """The number below or at which so many are; 0 if there are none."""
        if self.count == len(self.values):
            return sorted(self.values)[min(int(left), self.count - 1)] if self.values else 0
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                power, step = divmod(bucket, _STEPS)
                least = ((_STEPS + step) << power) if bucket >= 0 else bucket + 16
                return min(least + ((1 << power) if bucket >= 0 else 0), self.largest)
        return self.largest


class Latency(Histogram):
    """Times (ns) that were measured, and the packets around the longest one."""

    def __init__(self) -> None:
        super().__init__()
        self.from_packet = 0
        self.to_packet = 0

    @property
    def longest(self) -> int:
        """The longest time (ns)."""
        return self.largest

    def add(self, time: int, from_packet: int, to_packet: int) -> None:
        """One more time, between two packets."""
        time = max(time, 0)
        if time >= self.largest:
            self.from_packet = from_packet
            self.to_packet = to_packet
        self.put(time)

    def percentile(self, part: float) -> float:
        """The time (seconds) that this part of all, such as 0.5, took at most."""
        return self.quantile(part) / 1e9

    def json(self) -> dict[str, Any] | None:
        """As an object of the JSON outputs, None if nothing was measured."""
        if not self.count:
            return None
        return {
            "count": self.count,
            "p50": self.percentile(0.5),
            "p95": self.percentile(0.95),
            "p99": self.percentile(0.99),
            "longest": self.largest / 1e9,
            "longest_packets": [int(self.from_packet), int(self.to_packet)],
        }


class SlowTimes:
    """Times (ns) of which only the slow ones are measured: those from `least` on. The others are counted."""

    def __init__(self, least: i64) -> None:
        self.least: i64 = least
        self.count: i64 = 0
        self.quick: i64 = 0
        self.slow: Latency | None = None

    def add(self, time: i64, from_packet: i64, to_packet: i64) -> None:
        """One more time, between two packets."""
        self.count += 1
        if time < self.least:
            self.quick += 1
            return
        if self.slow is None:
            self.slow = Latency()
        self.slow.add(int(time), int(from_packet), int(to_packet))

    def median(self) -> float:
        """The time (seconds) that half of all took at most; 0 if that is not slow."""
        left = int(self.count) / 2 - int(self.quick)
        return 0.0 if left < 0 or self.slow is None else self.slow.above(left) / 1e9
