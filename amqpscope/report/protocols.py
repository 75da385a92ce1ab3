"""Which protocols there are to tell of: the place where a new one is named.

A frame's protocol is told by its kind. What is particular to a protocol lies in a package of its own, here
`amqp10` and `amqp091`: a `Form` (frames as data) and, in `tellings`, a `Telling` (frames for people).
"""

from typing import Final

from amqpscope.report.amqp091.json_form import Amqp091Form
from amqpscope.report.amqp10.json_form import Amqp10Form
from amqpscope.report.forms import Form
from dissectors.interface import Frame

__all__ = ["FORMS", "Forms", "every_form"]


class Forms:
    """The forms of the frames of one capture, by the kind of frame."""

    def __init__(self) -> None:
        self._of_none: Form = Form()
        self._of_kind: dict[str, Form] = {}
        for form in every_form():
            for kind in form.kinds():
                self._of_kind[kind] = form
        # That of the last frame: nearly always the next one's too.
        self._kind: str = ""
        self._last: Form = self._of_none

    def of(self, frame: Frame) -> Form:
        """The form of this frame."""
        if frame.kind is not self._kind:
            self._kind = frame.kind
            self._last = self._of_kind.get(frame.kind, self._of_none)
        return self._last


def every_form() -> list[Form]:
    """One form a protocol."""
    return [Amqp10Form(), Amqp091Form()]


FORMS: Final = Forms()
"""For who asks of single frames."""
