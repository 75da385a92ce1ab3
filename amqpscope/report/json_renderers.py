"""Which `JsonRenderer` a frame's kind belongs to: that of the protocol whose frames are of this kind."""

from typing import Final

from amqpscope.protocols import protocol_of_kind
from amqpscope.report.json_renderer import JsonRenderer
from dissectors.interface import Frame

__all__ = ["FORMS", "JsonRenderers"]


class JsonRenderers:
    """The renderers of the frames of one capture, by the kind of frame."""

    def __init__(self) -> None:
        self._of_none: JsonRenderer = JsonRenderer()
        self._of_kind: dict[str, JsonRenderer] = {}
        # That of the last frame: nearly always the next one's too.
        self._kind: str = ""
        self._last: JsonRenderer = self._of_none

    def of(self, frame: Frame) -> JsonRenderer:
        """The renderer of this frame."""
        if frame.kind is not self._kind:
            self._kind = frame.kind
            self._last = self._of_kind.get(frame.kind) or self._new(frame.kind)
        return self._last

    def _new(self, kind: str) -> JsonRenderer:
        """The renderer of a kind that comes for the first time: one serves all kinds of a protocol."""
        protocol = protocol_of_kind(kind)
        renderer = self._of_none if protocol is None else protocol.json_renderer()
        for one in (kind,) if protocol is None else protocol.kinds:
            self._of_kind[one] = renderer
        return renderer


FORMS: Final = JsonRenderers()
"""For who asks of single frames."""
