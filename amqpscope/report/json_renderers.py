"""Which protocols there are to tell of: the place where a new one is named.

A frame's protocol is told by its kind. What is particular to a protocol lies in a package of its own, here
`amqp10` and `amqp091`: a `JsonRenderer` (frames as data) and, in `text_renderers`, a `TextRenderer` (frames
for people).
"""

from typing import Final

from amqpscope.report.amqp091.json_form import Amqp091JsonRenderer
from amqpscope.report.amqp10.json_form import Amqp10JsonRenderer
from amqpscope.report.json_renderer import JsonRenderer
from dissectors.interface import Frame

__all__ = ["FORMS", "JsonRenderers", "every_form"]


class JsonRenderers:
    """The forms of the frames of one capture, by the kind of frame."""

    def __init__(self) -> None:
        self._of_none: JsonRenderer = JsonRenderer()
        self._of_kind: dict[str, JsonRenderer] = {}
        for form in every_form():
            for kind in form.kinds():
                self._of_kind[kind] = form
        # That of the last frame: nearly always the next one's too.
        self._kind: str = ""
        self._last: JsonRenderer = self._of_none

    def of(self, frame: Frame) -> JsonRenderer:
        """The form of this frame."""
        if frame.kind is not self._kind:
            self._kind = frame.kind
            self._last = self._of_kind.get(frame.kind, self._of_none)
        return self._last


def every_form() -> list[JsonRenderer]:
    """One form a protocol."""
    return [Amqp10JsonRenderer(), Amqp091JsonRenderer()]


FORMS: Final = JsonRenderers()
"""For who asks of single frames."""
