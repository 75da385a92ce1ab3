"""Frames and findings as plain objects, for data frames: by the names of the JSON of `read` and `check`."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from amqpscope.input.capture import Capture, CaptureOptions, File
from amqpscope.report.findings import decided_object
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames
from amqpscope.rules.profiles import AUTO

__all__ = ["check_dicts", "read_dicts"]


def read_dicts(source: File | Sequence[File], *, bodies: bool = False) -> Iterator[dict[str, Any]]:
    """The frames of a capture, each as the object that `read --format ndjson` writes.

    source: path, `-`, or an open binary file; or several of these, read as one. bodies: with the bodies of
    messages. Raises CaptureError as `read` does.
    """
    with Capture(source, CaptureOptions(keep=False)) as capture:
        form = FrameForm(capture.name, bodies, LinkNames())
        for records in capture.blocks():
            yield from map(json.loads, form.lines(records))


def check_dicts(
    source: File | Sequence[File], *, profile: str = AUTO, spec: str = "final"
) -> Iterator[dict[str, Any]]:
    """The findings of a capture, each as the object that `check --format ndjson` writes.

    The parameters are those of `check`. Raises CaptureError as `check` does.
    """
    options = CaptureOptions(keep=False, records=False, judge=True, profile=profile, spec=spec)
    with Capture(source, options) as capture:
        for _ in capture.blocks():
            for finding in capture.take_findings():
                yield decided_object(finding, capture.name)
