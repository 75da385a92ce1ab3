"""Which `JsonRenderer` a frame belongs to: the renderer of the protocol that has frames of this kind."""

from typing import Final

from amqpscope.protocols import protocol_of_kind
from amqpscope.report.json_renderer import JsonRenderer
from dissectors.interface import Frame

__all__ = ["FORMS", "JsonRenderers"]


class JsonRenderers:
    """The renderers of the frames of one capture, by the kind of frame."""

    def __init__(self) -> None:
        self._of_none: JsonRenderer = JsonRenderer()
        self._of_kind: dict[tuple[str, str], JsonRenderer] = {}
        # Of these, those of no dialect.
        self._of_usual: dict[str, JsonRenderer] = {}
        # That of the last frame, and the last three kinds that it is of: nearly always the next frame's, too.
        self._last: JsonRenderer = self._of_none
        self._dialect: str = ""
        self._kind: str = ""
        self._second: str = ""
        self._third: str = ""

    def of(self, frame: Frame) -> JsonRenderer:
        """The renderer of this frame."""
        kind = frame.kind
        dialect = frame.dialect
        if dialect is self._dialect and (kind is self._kind or kind is self._second or kind is self._third):
            return self._last
        known = self._of_kind.get((kind, dialect)) if dialect else self._of_usual.get(kind)
        if known is None:
            known = self._new(kind, dialect)
        same = known is self._last and dialect is self._dialect
        self._third = self._second if same else kind
        self._second = self._kind if same else kind
        self._kind = kind
        self._dialect = dialect
        self._last = known
        return known

    def _new(self, kind: str, dialect: str) -> JsonRenderer:
        """The renderer of a kind that comes for the first time: one serves all kinds of a protocol."""
        protocol = protocol_of_kind(kind, dialect)
        renderer = self._of_none if protocol is None else protocol.json_renderer()
        for one in (kind,) if protocol is None else protocol.kinds:
            self._of_kind[one, dialect] = renderer
            if not dialect:
                self._of_usual[one] = renderer
        return renderer


FORMS: Final = JsonRenderers()
"""For who asks of single frames."""
