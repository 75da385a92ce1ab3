"""What happens on a connection, in the words of its specification: the part that all protocols share.

A `Conversation` takes the frames of one connection in the order of the analysis and decides what each one
belongs to: which session, link and delivery, or which channel, consumer and message. Whoever needs to know
that asks it, or subscribes a `Listener` to it: nobody else follows numbers of the wire.

It decides identity and nothing more, so it is cheap enough for every command. What each peer could and must
have known is decided by the endpoints of the rules, which agree with it
(`tests/tracking/amqp10/test_conversation.py`).

Theory of operation. An event is one call of a method: first the record of the frame, which says where the
frame stands and who sent it, then the decoded body, then what it belongs to. What it belongs to is an object,
the same one for as long as it lives and for both peers, so that a subscriber keeps what it knows of it in a
dictionary by that object. The event comes when the frame has taken effect. Without a subscriber no call is
made, and nothing is kept that only a subscriber needs.

A conversation lives as long as the command that reads a capture, not between two segments: it has no `dump`.
"""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from amqpscope.model.records import FrameRecord
from dissectors.wire import i64

__all__ = ["Conversation", "Listener"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """Takes the events of one connection. Each protocol has a subclass with a method for each of its
    events.
    """


class Conversation(ABC):
    """One connection, followed frame by frame."""

    def __init__(self) -> None:
        # Sessions that were begun, or channels that were opened: of a channel each of its lives.
        self.sessions: i64 = 0

    @abstractmethod
    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""
