"""What `draw` draws of a capture, before it is written."""

from __future__ import annotations

from pathlib import Path

from amqpscope.draw.picture import Picture, PictureBuilder
from amqpscope.draw.survey import survey
from amqpscope.input.capture import Capture, CaptureOptions

__all__ = ["picture_of"]


class _Everything:
    """Every frame is drawn."""

    def takes(self, record: object, link: object) -> bool:
        return True

    def takes_finding(self, finding: object) -> bool:
        return True

    def start(self, time: int) -> None:
        pass


def picture_of(path: Path) -> Picture:
    """The picture of the worst connection of a capture, with all that a page has."""
    options = CaptureOptions(judge=True, keep=False, ended=True)
    with Capture(str(path), options) as capture:
        surveyed = survey(capture)
    with Capture(str(path), options) as capture:
        return PictureBuilder(surveyed, surveyed.connections[:1], _Everything(), fields=True).read(capture)
