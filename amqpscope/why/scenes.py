"""The frames that an answer speaks of, as they are shown: the capture is read once more for them.

So that nothing is kept of the many that nobody asks for, and what may be a secret is found out as everywhere
else: by all that its connection had said before.
"""

import json
from collections.abc import Iterable
from typing import Any

from amqpscope.model import Connection
from amqpscope.report.json_form import FrameForm
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.timeline import Clock, Timeline
from amqpscope.why.place import Mark
from amqpscope.why.rereadable import Rereadable

__all__ = ["Scenes"]

_FRAMES_OF_A_PACKET = 3
"""Frames that are shown of a packet that is named as a whole."""


class Scenes:
    """Frames of one connection: as lines of the timeline, and as the objects of `read --format ndjson`.

    packets: of those that were asked for as a whole, the places of their first frames.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.packets: dict[int, list[tuple[int, int]]] = {}
        self._lines: dict[tuple[int, int], Line] = {}
        self._objects: dict[tuple[int, int], dict[str, Any]] = {}

    def line(self, place: tuple[int, int]) -> Line:
        """The line of a frame, with packet, time and sender."""
        return self._lines.get(place, [])

    def frame(self, place: tuple[int, int]) -> dict[str, Any] | None:
        """A frame as data."""
        return self._objects.get(place)

    @staticmethod
    def nothing() -> "Scenes":
        """No frames."""
        return Scenes(Clock("r"))

    @staticmethod
    def of(
        material: Rereadable,
        connection: Connection,
        marks: Iterable[Mark],
        packets: set[int],
        as_data: bool,
    ) -> "Scenes":
        """These frames, and the first ones of these packets, of a connection. as_data: not as lines."""
        scenes = Scenes(Clock("r"))
        wanted = {mark.place for mark in marks}
        names = LinkNames()
        timeline = Timeline(scenes.clock, 0, names)
        form = FrameForm(material.name, False, names)
        with material.capture(judge=False) as capture:
            started = False
            for records in capture.blocks():
                for record in records:
                    if not started:
                        scenes.clock.start(int(record.time))
                        started = True
                    if record.connection.stream != connection.stream:
                        continue
                    link = names.of(record)
                    place = (int(record.direction), int(record.frame.offset))
                    of_packet = None
                    if record.packet in packets:
                        of_packet = scenes.packets.setdefault(int(record.packet), [])
                        if len(of_packet) < _FRAMES_OF_A_PACKET:
                            of_packet.append(place)
                        else:
                            of_packet = None
                    if place not in wanted and of_packet is None:
                        continue
                    if as_data:
                        scenes._objects[place] = json.loads(form.line(record, link))
                    else:
                        lines = timeline.lines(record, link)
                        scenes._lines[place] = next(line for line, _ in lines if line and line[0][0] == "dim")
        return scenes
