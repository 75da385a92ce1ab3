"""What earlier frames mean for later ones: the part that all protocols share.

A `Grounds` takes the frames of one connection in order. Asked about the next frame, it lists the earlier
frames that grant, limit or forbid it. It remembers positions, not contents, and for each kind only the frames
that can still matter, so its memory does not grow with the connection.

The numbers in a frame (a handle, a delivery-tag) are enough to find these frames. Whether the frame was
allowed is for the rules, whose findings are shown beside it.
"""

from amqpscope.model.passwords import without_password
from amqpscope.model.records import FrameRecord
from amqpscope.report.printable import in_quotes
from amqpscope.why.frame_ref import Ground, Position
from amqpscope.why.watch import AnswerWatch

__all__ = ["Grounds", "add_known", "name_text"]

_NAME = 60
"""Characters that are shown of a name that the wire gave."""


def name_text(name: str | None) -> str:
    """A name of the wire, as it may be shown: in quotes."""
    return in_quotes(without_password(name or ""), _NAME)


def add_known(
    found: list[Ground], effect: str, what: str, mark: Position | None, fields: tuple[str, ...] = ()
) -> None:
    """One more ground, if the frame that would be it is known."""
    if mark is not None:
        found.append(Ground(effect, what, mark, fields))


class Grounds:
    """What the frames of one connection so far mean for the next frame. A subclass knows a protocol."""

    def of(self, record: FrameRecord) -> list[Ground]:
        """The earlier frames that matter for a frame that is not taken yet, the outermost layer first."""
        return []

    def of_end(self, direction: int, by_client: bool) -> list[Ground]:
        """The earlier frames that matter for a stream that ends now. by_client: it is the client's stream."""
        return []

    def subject(self, record: FrameRecord) -> str:
        """The name of the link, or the tag of the consumer, that a frame is about; "" if it has none."""
        return ""

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""

    def watch(self, record: FrameRecord) -> AnswerWatch:
        """What looks for the frames that answer this one, which is not taken yet."""
        return AnswerWatch()
