"""What `draw` draws of a capture, before it is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from amqpscope.draw.picture import EVERY_FRAME, Picture, PictureBuilder
from amqpscope.draw.survey import survey
from amqpscope.input.capture import Capture, CaptureOptions

__all__ = ["page_data", "picture_of"]


def picture_of(path: Path) -> Picture:
    """The picture of the worst connection of a capture, with all that a page has."""
    options = CaptureOptions(judge=True, keep=False, ended=True)
    with Capture(str(path), options) as capture:
        surveyed = survey(capture)
    with Capture(str(path), options) as capture:
        return PictureBuilder(surveyed, surveyed.connections[:1], EVERY_FRAME, fields=True).read(capture)


def page_data(page: Path) -> Any:
    """The data of a page."""
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.S
    )
    assert found is not None
    return json.loads(found[1])
