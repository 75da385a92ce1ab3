"""The forms in which `amqpscope read` writes frames: a timeline, JSON, or a count."""

import json
import sys

from amqpscope.census import Census
from amqpscope.cli.output import console, note_lines, notes_to_stderr
from amqpscope.model import FrameRecord
from amqpscope.reading import Capture
from amqpscope.report.json_form import frame_json
from amqpscope.report.links import LinkOf
from amqpscope.report.printable import printable
from amqpscope.report.timeline import Clock, Painter, Timeline

__all__ = ["CensusWriter", "JsonWriter", "TimelineWriter", "Writer"]


class Writer:
    """Writes the frames of several captures in one form.

    messages: wants messages put together. names: wants each frame's link. streaming: writes while reading.
    """

    messages = True
    names = True
    streaming = True

    def begin(self, capture: Capture) -> None:
        """A capture begins."""

    def start(self, time: int) -> None:
        """The capture's first frame, written or not, has this time."""

    def block(self, records: list[FrameRecord]) -> None:
        """Frames, where their links are not wanted."""
        for record in records:
            self.frame(record, None)

    def frame(self, record: FrameRecord, link: LinkOf | None) -> None:
        """One frame."""

    def flush(self) -> None:
        """What was written is to be seen."""

    def finish(self, capture: Capture) -> None:
        """A capture ends."""

    def end(self) -> None:
        """All captures are read."""


class TimelineWriter(Writer):
    """One line a frame, for people."""

    def __init__(self, time_format: str, verbosity: int, several: bool) -> None:
        output = console()
        self._painter = Painter(output, output.width if sys.stdout.isatty() else None)
        self._time_format = time_format
        self._verbosity = verbosity
        self._several = several
        self._lines: list[str] = []
        self._clock = Clock(time_format)
        self._timeline = Timeline(self._clock, verbosity)

    def begin(self, capture: Capture) -> None:
        self._clock = Clock(self._time_format)
        self._timeline = Timeline(self._clock, self._verbosity)
        if self._several:
            self._lines.append(self._painter.paint([("rule", f"══ {printable(capture.name)}")]))

    def start(self, time: int) -> None:
        self._clock.start(time)

    def frame(self, record: FrameRecord, link: LinkOf | None) -> None:
        for line in self._timeline.lines(record, link):
            self._lines.append(self._painter.paint(line))

    def flush(self) -> None:
        if self._lines:
            sys.stdout.write("\n".join(self._lines) + "\n")
            sys.stdout.flush()
            self._lines = []

    def finish(self, capture: Capture) -> None:
        for text in note_lines(capture.notes):
            self._lines.append(self._painter.paint([("note", f"note: {printable(text)}")]))
        self.flush()


class JsonWriter(Writer):
    """One JSON object a frame: a line each, or all of them in one object with the captures."""

    def __init__(self, whole: bool, bodies: bool) -> None:
        self._whole = whole
        self._bodies = bodies
        self._lines: list[str] = []
        self._captures: list[str] = []
        self._capture = ""
        self._first = True
        if whole:
            sys.stdout.write('{"schema": "amqpscope/frames/1", "frames": [\n')

    def begin(self, capture: Capture) -> None:
        self._capture = json.dumps(capture.name)

    def frame(self, record: FrameRecord, link: LinkOf | None) -> None:
        self._lines.append(frame_json(record, self._capture, link, self._bodies))

    def flush(self) -> None:
        if not self._lines:
            return
        if self._whole:
            sys.stdout.write(("" if self._first else ",\n") + ",\n".join(self._lines))
            self._first = False
        else:
            sys.stdout.write("\n".join(self._lines) + "\n")
            sys.stdout.flush()
        self._lines = []

    def finish(self, capture: Capture) -> None:
        self.flush()
        if self._whole:
            notes = [
                {"code": note.code, "packet": int(note.packet), "detail": note.detail}
                for note in capture.notes
            ]
            self._captures.append(json.dumps({"capture": capture.name, "notes": notes}))
        else:
            notes_to_stderr(capture.name, capture.notes)

    def end(self) -> None:
        if self._whole:
            sys.stdout.write('\n], "captures": [' + ", ".join(self._captures) + "]}\n")


class CensusWriter(Writer):
    """How many frames of each kind each peer sent."""

    messages = False
    names = False
    streaming = False

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._census = Census()

    def begin(self, capture: Capture) -> None:
        self._census = Census()

    def block(self, records: list[FrameRecord]) -> None:
        self._census.add(records)

    def frame(self, record: FrameRecord, link: LinkOf | None) -> None:
        self._census.add([record])

    def finish(self, capture: Capture) -> None:
        census = self._census
        connections = sum(1 for analysis in capture.connections if analysis.connection.frames)
        if self._json:
            frames = [
                {"name": name, "client": client, "server": server} for name, client, server in census.rows()
            ]
            counted = {
                "capture": capture.name,
                "connections": connections,
                "frames": frames,
                "problems": int(census.problems),
                "octets": int(census.octets),
                "missing": int(census.missing),
            }
            print(json.dumps(counted))
        else:
            print(f"{printable(capture.name)}: {census.frames} frames on {connections} connections")
            if census.frames:
                print(f"{'':<20}{'client':>12}{'server':>12}")
            for name, client, server in census.rows():
                print(f"{name:<20}{client:>12}{server:>12}")
            if census.problems:
                print(f"{census.problems} frames have problems")
        notes_to_stderr(capture.name, capture.notes)
