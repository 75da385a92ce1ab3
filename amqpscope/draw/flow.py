"""What a connection has in hand over time: credit, windows, messages that wait for an answer.

A `Chart` is a value that changes by steps. It is kept in at most `MAX_CHART_POINTS` points: where there are
more, every four neighbours become their lowest and their highest one, so that no extreme is lost. Values are
as the frames stand in the capture. This module judges nothing: diagnoses say what was starved, and by whom.
"""

from typing import Any, Final

from amqpscope.draw.follower import Follower
from amqpscope.limits import MAX_CHART_POINTS, MAX_CHARTS

__all__ = ["Chart", "FlowCharts", "ahead"]

_MODULUS: Final = 1 << 32

_LATENCIES: Final = 40
"""Powers of two of a latency in microseconds: up to twelve days."""


class Chart:
    """A value over time. title: what it counts. of: the link or channel, as diagnoses name it."""

    def __init__(self, title: str, of: str = "") -> None:
        self.title = title
        self.of = of
        self.value = 0
        # Time (ns) and value, in order.
        self.points: list[tuple[int, int]] = []

    def step(self, time: int, value: int) -> None:
        """The value changes."""
        self.value = value
        if self.points and self.points[-1][1] == value:
            return
        self.points.append((time, value))
        if len(self.points) > MAX_CHART_POINTS:
            self._thin()

    def add(self, time: int, change: int) -> None:
        """The value changes by so much, and is never below 0."""
        self.step(time, max(self.value + change, 0))

    def _thin(self) -> None:
        """Halve the points."""
        points: list[tuple[int, int]] = []
        for at in range(0, len(self.points), 4):
            four = self.points[at : at + 4]
            low, high = min(four, key=lambda one: one[1]), max(four, key=lambda one: one[1])
            points += sorted({low, high})
        self.points = points

    def json(self, start: int) -> dict[str, Any]:
        """As the page draws it. start: the time (ns) that is 0 on the page."""
        points = [[time - start, value] for time, value in self.points]
        return {"title": self.title, "of": self.of, "points": points}


class FlowCharts(Follower):
    """The charts of one connection. A protocol has a subclass that knows its frames.

    charts: in the order in which they begin; more: there are others. latencies: how many messages were
    settled or confirmed in so many powers of two of microseconds.
    """

    def __init__(self) -> None:
        self.charts: dict[tuple[object, ...], Chart] = {}
        self.more = False
        self.latencies = [0] * _LATENCIES

    def chart(self, key: tuple[object, ...], title: str, of: str) -> Chart:
        """The chart of this key, which begins here if it is new. If there are too many, it is not kept."""
        found = self.charts.get(key)
        if found is None:
            found = Chart(title, of)
            if len(self.charts) < MAX_CHARTS:
                self.charts[key] = found
            else:
                self.more = True
        return found

    def finish(self) -> None:
        """All frames have come: links and sessions, which hold their deliveries, are not kept as keys."""
        self.charts = {(number,): chart for number, chart in enumerate(self.charts.values())}

    def settle(self, since: int, time: int) -> None:
        """A message was answered, this long (ns) after it was sent."""
        microseconds = max(time - since, 0) // 1000
        self.latencies[min(microseconds.bit_length(), _LATENCIES - 1)] += 1

    def json(self, start: int) -> dict[str, Any]:
        """As the page draws it. start: the time (ns) that is 0 on the page."""
        charts = [chart.json(start) for chart in self.charts.values() if chart.points]
        return {"charts": charts, "more": self.more, "latencies": self.latencies}


def ahead(limit: int, count: int) -> int:
    """How far a serial number of 32 bits is before a limit; negative if it is beyond it."""
    return (limit - count + _MODULUS // 2) % _MODULUS - _MODULUS // 2
