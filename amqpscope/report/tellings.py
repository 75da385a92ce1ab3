"""Which protocols can be told to people, by the kind of frame: as `protocols`, for text."""

from amqpscope.report.amqp091.json_form import Amqp091Form
from amqpscope.report.amqp091.telling import Amqp091Telling
from amqpscope.report.amqp10.json_form import Amqp10Form
from amqpscope.report.amqp10.telling import Amqp10Telling
from amqpscope.report.telling import Telling
from dissectors.interface import Frame

__all__ = ["telling"]

_OF_NONE = Telling()

_OF_KIND: dict[str, Telling] = {
    kind: told
    for form, told in ((Amqp10Form(), Amqp10Telling()), (Amqp091Form(), Amqp091Telling()))
    for kind in form.kinds()
}


def telling(frame: Frame) -> Telling:
    """How this frame is told."""
    return _OF_KIND.get(frame.kind, _OF_NONE)
