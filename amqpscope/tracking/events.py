"""The events of a connection, named as in its specification: the part that all protocols share.

A `Conversation` takes the frames of one connection in the order of the analysis and decides what each frame
belongs to: which session, link and delivery, or which channel, consumer and message. Other code asks the
conversation, or subscribes a `Listener` to it; no other code follows the numbers on the wire.

The conversation decides only identity, so it is cheap enough for every command. The endpoints of the rules
decide what each peer could and must have known; they agree with the conversation
(`tests/tracking/amqp10/test_conversation.py`).

Theory of operation. An event is one call of a method. Its arguments are the record of the frame (the place
and the sender), the decoded body, and the object that the frame belongs to. This object stays the same for
its whole life and for both peers, so a subscriber can use it as a key of a dictionary. The event comes when
the frame has taken effect. Without a subscriber no call is made, and nothing is kept that only a subscriber
needs. The events of messages come with most frames: only those subscribers are called for them whose classes
have a method of their own for the event (`takes`).

A conversation lives as long as the command that reads a capture, so it has no `dump`.
"""

from mypy_extensions import mypyc_attr

from amqpscope.model.records import FrameRecord
from dissectors.wire import i64

__all__ = ["Conversation", "Listener", "Rememberable", "takes"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """Takes the events of one connection. Each protocol has a subclass with a method for each of
    its events.
    """


class Rememberable:
    """A delivery that a subscriber may remember something of, see `amqpscope.diagnoses.memory`.

    packet, time (ns): of its first frame.
    """

    def __init__(self, packet: i64, time: i64) -> None:
        self.packet: i64 = packet
        self.time: i64 = time
        # What is remembered of it, None for nothing. It is not dumped.
        self.remembered: object | None = None


def takes(listener: Listener, protocol: type[Listener], event: str) -> bool:
    """Whether a listener has a method of its own for an event. protocol: the class that has all events."""
    return getattr(type(listener), event) is not getattr(protocol, event)


class Conversation:
    """One connection, followed frame by frame. Each protocol has a subclass.

    mypyc: not an ABC, because compiled code would then check at each use of an attribute that it is there.
    """

    def __init__(self) -> None:
        # Sessions that were begun, or channels that were opened: of a channel each of its lives.
        self.sessions: i64 = 0

    def outstanding(self) -> list[Rememberable]:
        """The deliveries that wait for their settlement, and that a frame can still name."""
        return []

    def take(self, record: FrameRecord) -> bool:
        """The next frame of the connection. Returns whether the frame may be about the connection as a whole.
        A frame of a message never is.
        """
        raise NotImplementedError
