"""What follows from a frame: the part that no protocol has a say in."""

from amqpscope.model.records import FrameRecord
from amqpscope.why.frame_ref import Position, Sequel

__all__ = ["AnswerWatch"]


class AnswerWatch:
    """Looks, behind one frame, for those that answer it. A subclass takes the events of a protocol."""

    def __init__(self) -> None:
        self.sequels: list[Sequel] = []
        self.over = False

    def add(self, what: str, record: FrameRecord, last: bool = False) -> None:
        """A frame that follows from the one in question. last: nothing more is looked for."""
        self.sequels.append(Sequel(what, Position.of(record)))
        self.over = self.over or last
