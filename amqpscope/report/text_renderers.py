"""Which `TextRenderer` a frame's kind belongs to: that of the protocol whose frames are of this kind."""

from functools import cache

from amqpscope.protocols import protocol_of_kind
from amqpscope.report.text_renderer import TextRenderer
from dissectors.interface import Frame

__all__ = ["text_renderer"]


def text_renderer(frame: Frame) -> TextRenderer:
    """How this frame is reported."""
    return _of_kind(frame.kind, frame.dialect)


@cache
def _of_kind(kind: str, dialect: str) -> TextRenderer:
    protocol = protocol_of_kind(kind, dialect)
    return TextRenderer() if protocol is None else protocol.text_renderer()
