"""How the two ends of a link were attached and detached."""

from typing import Any

from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.credit import UNKNOWN
from dissectors.amqp10.performatives import Detach
from dissectors.wire import i64

__all__ = ["Attachment"]


class Attachment:
    """The attaches and detaches of one end of a link, and those of the other end that it received."""

    def __init__(self) -> None:
        # The packet in which this end's newest attach begins.
        self.packet: i64 = 0
        # How many frames the endpoint had sent before this end's newest attach.
        self.frame: i64 = UNKNOWN
        # How often this end was attached.
        self.times: i64 = 0
        # How often the other end was attached.
        self.peer_times: i64 = 0
        # Offset in the peer's stream behind the other end's newest attach.
        self.peer_end: i64 = UNKNOWN
        # This end's newest attach answers one of the other end's.
        self.answers: bool = False
        # A finding says already that no detach follows the attach that refuses the link.
        self.refusal_reported: bool = False
        # An attach of this end in the same role as the other end's, while that one waited for its answer.
        self.misanswered: FrameRef | None = None
        # The handle that this end gave up last.
        self.freed_handle: i64 = UNKNOWN
        # This end's last detach closed the link.
        self.closed: bool = False
        # This end's last detach has an error.
        self.failed: bool = False
        # A detach of this end that did not close, though this end could know that the other end's did.
        self.half_closed: FrameRef | None = None
        # The other end's last detach closed the link.
        self.peer_closed: bool = False
        # The other end's last detach has an error.
        self.peer_failed: bool = False
        # Offset in the peer's stream behind the other end's last detach.
        self.peer_detach_end: i64 = UNKNOWN
        # When (ns) the other end last attached, detached or asked to drain.
        self.asked: i64 = 0

    def send_attach(self, packet: i64, answers: bool) -> None:
        """This end sends attach."""
        self.times += 1
        self.packet = packet
        self.answers = answers
        self.half_closed = None
        self.refusal_reported = False
        self.closed = False
        self.failed = False

    def receive_attach(self, end: i64) -> None:
        """This end receives the other end's attach, which ends at `end` of the peer's stream."""
        self.peer_times += 1
        self.peer_end = end
        self.peer_closed = False
        self.peer_failed = False

    def send_detach(self, detach: Detach) -> None:
        """This end sends detach."""
        self.closed = detach.closed is True
        self.failed = detach.error is not None

    def receive_detach(self, detach: Detach, end: i64) -> None:
        """This end receives the other end's detach, which ends at `end` of the peer's stream."""
        self.peer_detach_end = end
        self.peer_closed = detach.closed is True
        self.peer_failed = detach.error is not None

    def over(self) -> bool:
        """Whether an end's last detach closed the link or has an error: what was delivered on it is not
        "live" any more (transport.xml, disposition), and no disposition can change it.
        """
        return self.closed or self.failed or self.peer_closed or self.peer_failed

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (int(self.packet), int(self.frame), int(self.times), int(self.peer_times), int(self.peer_end)),
            (self.answers, self.refusal_reported, int(self.freed_handle)),
            (self.closed, self.failed, self.peer_closed, self.peer_failed),
            (int(self.peer_detach_end), int(self.asked)),
            None if self.misanswered is None else self.misanswered.dump(),
            None if self.half_closed is None else self.half_closed.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Attachment":
        """The object of what `dump` returned."""
        one = Attachment()
        attached, answer, detached, last, misanswered, half_closed = state
        one.packet, one.frame, one.times, one.peer_times, one.peer_end = attached
        one.answers, one.refusal_reported, one.freed_handle = answer
        one.closed, one.failed, one.peer_closed, one.peer_failed = detached
        one.peer_detach_end, one.asked = last
        one.misanswered = None if misanswered is None else FrameRef.load(misanswered)
        one.half_closed = None if half_closed is None else FrameRef.load(half_closed)
        return one
