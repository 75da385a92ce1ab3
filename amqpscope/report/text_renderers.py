"""Which protocols can be told to people, by the kind of frame: as `protocols`, for text."""

from amqpscope.report.amqp091.json_form import Amqp091JsonRenderer
from amqpscope.report.amqp091.text_renderer import Amqp091TextRenderer
from amqpscope.report.amqp10.json_form import Amqp10JsonRenderer
from amqpscope.report.amqp10.text_renderer import Amqp10TextRenderer
from amqpscope.report.text_renderer import TextRenderer
from dissectors.interface import Frame

__all__ = ["text_renderer"]

_OF_NONE = TextRenderer()

_OF_KIND: dict[str, TextRenderer] = {
    kind: told
    for form, told in (
        (Amqp10JsonRenderer(), Amqp10TextRenderer()),
        (Amqp091JsonRenderer(), Amqp091TextRenderer()),
    )
    for kind in form.kinds()
}


def text_renderer(frame: Frame) -> TextRenderer:
    """How this frame is told."""
    return _OF_KIND.get(frame.kind, _OF_NONE)
