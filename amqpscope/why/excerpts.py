"""The frames that an answer refers to, as they are shown: the capture is read once more for them.

This way nothing is kept of the many frames that nobody asks for, and secrets are recognized as everywhere
else, by all earlier frames of the connection.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from amqpscope.input.replay import ReplayableCapture
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.json_form import FrameForm
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.timeline import Clock, Timeline
from amqpscope.why.frame_ref import Position

__all__ = ["ExplainedFrames", "Wanted"]

_FRAMES_OF_A_PACKET = 3
"""Frames that are shown of a packet that is named as a whole."""


class ExplainedFrames:
    """Frames of one connection: as lines of the timeline, and as the objects of `read --format ndjson`.

    packets: of those that were asked for as a whole, the places of their first frames.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.packets: dict[int, list[tuple[int, int]]] = {}
        self._called: dict[tuple[int, int], tuple[int, str]] = {}
        self._lines: dict[tuple[int, int], tuple[Line, int]] = {}
        self._objects: dict[tuple[int, int], dict[str, Any]] = {}

    def line(self, place: tuple[int, int], before: Line) -> tuple[Line, int]:
        """The line of a frame, with packet, time and sender, behind `before`.

        And the columns before its continuation, -1 for one that may be cut.
        """
        line, hang = self._lines.get(place, ([], -1))
        width = sum(len(text) for _, text in before)
        return [*before, *line], hang if hang < 0 else hang + width

    def frame(self, place: tuple[int, int]) -> dict[str, Any] | None:
        """A frame as data."""
        return self._objects.get(place)

    def of_finding(self, finding: Finding) -> tuple[int, int] | None:
        """The frame that a finding is about: some remember of it only what it is called, and its packet."""
        packet = int(finding.packet)
        place = (int(finding.spot.direction), int(finding.offset))
        if self._called.get(place) == (packet, finding.frame):
            return place
        for one in self.packets.get(packet, []):
            if self._called.get(one) == (packet, finding.frame):
                return one
        return None

    @staticmethod
    def nothing() -> "ExplainedFrames":
        """No frames."""
        return ExplainedFrames(Clock("r"))

    @staticmethod
    def of(
        material: ReplayableCapture,
        connection: Connection,
        marks: Iterable[Position],
        packets: set[int],
        as_data: bool,
    ) -> "ExplainedFrames":
        """These frames, and the first ones of these packets, of a connection. as_data: not as lines."""
        stream = int(connection.stream)
        wanted = {stream: Wanted({mark.place for mark in marks}, packets)}
        return ExplainedFrames.of_several(material, wanted, as_data)[stream]

    @staticmethod
    def of_several(
        material: ReplayableCapture, wanted: dict[int, "Wanted"], as_data: bool
    ) -> dict[int, "ExplainedFrames"]:
        """What is wanted of each of some connections, by `Connection.stream`."""
        clock = Clock("r")
        found = {stream: ExplainedFrames(clock) for stream in wanted}
        names = LinkNames()
        timeline = Timeline(clock, 0, names)
        form = FrameForm(material.name, False, names)
        with material.capture(judge=False) as capture:
            started = False
            for record in capture:
                if not started:
                    clock.start(int(record.time))
                    started = True
                stream = int(record.connection.stream)
                excerpts = found.get(stream)
                if excerpts is None:
                    continue
                link = names.of(record)
                if not excerpts.shows(record, wanted[stream]):
                    continue
                place = (int(record.direction), int(record.frame.offset))
                excerpts._called[place] = (int(record.packet), record.frame.name)
                if as_data:
                    excerpts._objects[place] = json.loads(form.line(record, link))
                else:
                    lines = timeline.lines(record, link)
                    excerpts._lines[place] = next(one for one in lines if one[0] and one[0][0][0] == "dim")
        return found

    def shows(self, record: FrameRecord, wanted: "Wanted") -> bool:
        """Whether a frame is among those wanted."""
        place = (int(record.direction), int(record.frame.offset))
        if record.packet in wanted.packets:
            of_packet = self.packets.setdefault(int(record.packet), [])
            if len(of_packet) < _FRAMES_OF_A_PACKET:
                of_packet.append(place)
                return True
        return place in wanted.places


class Wanted(NamedTuple):
    """Frames of a connection by their places, and packets of which the first frames are wanted."""

    places: set[tuple[int, int]]
    packets: set[int]
