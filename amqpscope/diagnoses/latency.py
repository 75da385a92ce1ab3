"""How long things took: percentiles in bounded memory."""

from typing import Any, Final

__all__ = ["Latency"]

_STEPS: Final = 8
"""Buckets for each doubling of a time: a percentile is right within 9 percent."""

_EXACT: Final = 256
"""So many times are kept as they are, so that the percentiles of few times are exact."""


class Latency:
    """Times (ns) that were measured, in buckets. longest: the longest one, with the packets around it."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0
        self.from_packet = 0
        self.to_packet = 0
        self.times: list[int] = []
        self.buckets: dict[int, int] = {}

    def add(self, time: int, from_packet: int, to_packet: int) -> None:
        """One more time, between two packets."""
        time = max(time, 0)
        self.count += 1
        if time >= self.longest:
            self.longest = time
            self.from_packet = from_packet
            self.to_packet = to_packet
        if len(self.times) < _EXACT:
            self.times.append(time)
        power = max(time.bit_length() - 4, 0)
        bucket = power * _STEPS + (time >> power) % _STEPS if power else time - 16
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def percentile(self, part: float) -> float:
        """The time (seconds) that this part of all, such as 0.5, took at most."""
        if self.count == len(self.times):
            return (
                sorted(self.times)[min(int(part * self.count), self.count - 1)] / 1e9 if self.times else 0.0
            )
        left = part * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                power, step = divmod(bucket, _STEPS)
                least = ((_STEPS + step) << power) if bucket >= 0 else bucket + 16
                return min(least + ((1 << power) if bucket >= 0 else 0), self.longest) / 1e9
        return self.longest / 1e9

    def json(self) -> dict[str, Any] | None:
        """As an object of the JSON outputs, None if nothing was measured."""
        if not self.count:
            return None
        return {
            "count": self.count,
            "p50": self.percentile(0.5),
            "p95": self.percentile(0.95),
            "p99": self.percentile(0.99),
            "longest": self.longest / 1e9,
            "longest_packets": [int(self.from_packet), int(self.to_packet)],
        }
