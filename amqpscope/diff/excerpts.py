"""The frames that a comparison speaks of, as they are shown: each capture is read once more for them."""

import json
from collections.abc import Iterable
from typing import Any

from amqpscope.diff.comparison import Difference
from amqpscope.input.replay import ReplayableCapture
from amqpscope.model.records import FrameRecord
from amqpscope.report.json_form import FrameForm
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.timeline import Clock, Timeline

__all__ = ["CONTEXT", "ComparedFrames", "wanted_of"]

CONTEXT = 3
"""Frames that are shown of each run before the first difference."""


class ComparedFrames:
    """Frames of one capture, by connection (its `Connection.stream`) and number in it, from 0.

    lines: as in the timeline, with the columns before their continuation. objects: as `read --format ndjson`.
    """

    def __init__(self) -> None:
        self.packets: dict[tuple[int, int], int] = {}
        self.lines: dict[tuple[int, int], tuple[Line, int]] = {}
        self.objects: dict[tuple[int, int], dict[str, Any]] = {}

    @staticmethod
    def of(material: ReplayableCapture, wanted: dict[int, set[int]], as_data: bool) -> "ComparedFrames":
        """What is wanted of each connection. as_data: not as lines."""
        excerpts = ComparedFrames()
        if not wanted:
            return excerpts
        names = LinkNames()
        clock = Clock("r")
        timeline = Timeline(clock, 0, names)
        form = FrameForm(material.name, False, names)
        seen: dict[int, int] = {}
        with material.capture(judge=False) as capture:
            for record in capture:
                if not seen:
                    clock.start(int(record.time))
                stream = int(record.connection.stream)
                number = seen.get(stream, 0)
                seen[stream] = number + 1
                link = names.of(record)
                if number not in wanted.get(stream, ()):
                    continue
                place = (stream, number)
                excerpts.packets[place] = int(record.packet)
                if as_data:
                    excerpts.objects[place] = json.loads(form.line(record, link))
                else:
                    excerpts.lines[place] = _line(timeline.lines(record, link), record)
        return excerpts

    def line(self, place: tuple[int, int], before: Line) -> tuple[Line, int]:
        """The line of a frame behind `before`."""
        line, hang = self.lines.get(place, ([], -1))
        width = sum(len(text) for _, text in before)
        return [*before, *line], hang if hang < 0 else hang + width


def wanted_of(differences: Iterable[Difference], first: Difference | None, in_a: bool) -> set[int]:
    """The frames of one run that differences stand in, and those before the first of them."""
    wanted: set[int] = set()
    for one in differences:
        wanted.add(one.frame_a if in_a else one.frame_b)
    if first is not None:
        frame = first.frame_a if in_a else first.frame_b
        wanted.update(range(max(frame - CONTEXT, 0), frame + 1))
    return wanted


def _line(lines: list[tuple[Line, int]], record: FrameRecord) -> tuple[Line, int]:
    """The frame's own line, without the heading before it and its problems below."""
    return next((one for one in lines if one[0] and one[0][0][0] == "dim"), ([("", record.frame.name)], -1))
