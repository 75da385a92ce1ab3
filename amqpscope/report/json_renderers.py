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
        # That of the last frame: nearly always the next one's too.
        self._kind: str = ""
        self._dialect: str = ""
        self._last: JsonRenderer = self._of_none

    def of(self, frame: Frame) -> JsonRenderer:
        """The renderer of this frame."""
        kind = frame.kind
        dialect = frame.dialect
        if kind is not self._kind or dialect is not self._dialect:
            self._kind = kind
            self._dialect = dialect
            known = self._of_kind.get((kind, dialect)) if dialect else self._of_usual.get(kind)
            self._last = known or self._new(kind, dialect)
        return self._last

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
