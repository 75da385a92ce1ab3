"""What is on its way to one end of a connection, and when it can have arrived there.

Theory of operation. A capture shows when something was sent, not when it was received. So what the peer sends
is put into the inbox of the one that it is for (`post`) and changes nothing yet. Each frame of that one's own
came in a segment that acknowledged so much of the peer's stream; before the frame is judged, all that lies
whole below it is taken out, in the order of the stream, and received (`catch_up`). So an endpoint's state
always is what it was, at the latest, when it wrote its newest frame: the state at `could` of
`tracking.knowledge`.

Whose own frames are not captured never catches up. It is given the oldest of too many, and from then on
nothing of it is judged by what it knew.

What receiving means is the protocol's. This is done for every frame, so the inbox is a list with an index of
its first: nothing is moved when one is taken out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from amqpscope.limits import MAX_INBOX
from amqpscope.model.records import FrameRecord
from amqpscope.reassembly.stalls import NO_STALLS, Stalls
from amqpscope.tracking.knowledge import Knowledge
from dissectors.wire import i64

__all__ = ["Arrival", "Recipient"]


class Arrival:
    """A frame, or the message that it completes, on its way to the other peer: no octets of it.

    body: what it says, None if that is not known. end: behind its last octet, in the sender's stream.
    packet: of its first octet; time: of its last (ns). lost: with it or before it something is missing, so
    that nothing follows any more from what was not seen. doubted: how much of it could not be read, in the
    terms of its protocol; 0 for nothing.
    """

    def __init__(
        self, body: object, channel: i64, end: i64, packet: i64, time: i64, lost: bool, doubted: i64 = 0
    ) -> None:
        self.body: object = body
        self.channel: i64 = channel
        self.end: i64 = end
        self.packet: i64 = packet
        self.time: i64 = time
        self.lost: bool = lost
        self.doubted: i64 = doubted

    def dump(self, body: object) -> tuple[object, ...]:
        """All of it as plain values, with the body as its protocol has dumped it."""
        return (
            body,
            int(self.channel),
            int(self.end),
            int(self.packet),
            int(self.time),
            self.lost,
            int(self.doubted),
        )


class Recipient(ABC):
    """One end of a connection, by what has reached it: see the theory above."""

    def __init__(self) -> None:
        self.knowledge: Knowledge = Knowledge()
        self.inbox: list[Arrival] = []
        self.inbox_head: i64 = 0
        # How much of its own stream it has sent, up to the end of its newest complete frame.
        self.sent_end: i64 = 0
        # When it could not write. TCP's, which goes on with it; not part of the state.
        self.stalls: Stalls = NO_STALLS

    @abstractmethod
    def receive(self, arrival: Arrival) -> None:
        """What the peer said reaches this endpoint."""

    @abstractmethod
    def lost(self) -> None:
        """Something is missing of what it said or could know: nothing follows from what was not seen."""

    @abstractmethod
    def prove(self, record: FrameRecord) -> None:
        """Draw from a frame of this endpoint what it must have processed of the peer's stream."""

    def post(self, arrival: Arrival) -> None:
        """The peer has sent this."""
        if arrival.end <= self.knowledge.could:
            # Octets before it could not be read, so it was found late: this endpoint may have answered it.
            arrival.lost = True
        self.inbox.append(arrival)
        waiting: i64 = len(self.inbox) - self.inbox_head
        if waiting > MAX_INBOX:
            # This endpoint is hardly captured: nothing of it will be judged by what it knew.
            self.lost()
            oldest = self.inbox[self.inbox_head]
            self.inbox_head += 1
            self.receive(oldest)
            if self.inbox_head > MAX_INBOX:
                del self.inbox[: self.inbox_head]
                self.inbox_head = 0

    def catch_up(self, acknowledged: i64, peer_sent: i64) -> None:
        """Before a frame of this endpoint: take in what its segment shows that it could have received.

        acknowledged: octets of the peer's stream, -1 unknown; then it may have received all that the
        peer is known to have sent, `peer_sent`.
        """
        knowledge = self.knowledge
        if acknowledged < 0:
            acknowledged = peer_sent
        knowledge.advance(acknowledged)
        inbox = self.inbox
        size: i64 = len(inbox)
        at = self.inbox_head
        while at < size:
            arrival = inbox[at]
            if arrival.end > knowledge.could:
                break
            self.receive(arrival)
            at += 1
        if at == size:
            if at > 0:
                self.inbox = []
            self.inbox_head = 0
        else:
            self.inbox_head = at

    def undelivered(self) -> list[Arrival]:
        """What is still on its way, the oldest first."""
        return self.inbox[self.inbox_head :]

    def dump_reception(self, dump_body: Callable[[object], object]) -> tuple[object, ...]:
        """What was sent and received so far as plain values; dump_body: for what an arrival says."""
        waiting = tuple(arrival.dump(dump_body(arrival.body)) for arrival in self.undelivered())
        return (self.knowledge.dump(), int(self.sent_end), waiting)

    def restore_reception(self, state: tuple[Any, ...], load_body: Callable[[Any], object]) -> None:
        """Take on what `dump_reception` gave."""
        knowledge, self.sent_end, waiting = state
        self.knowledge = Knowledge.load(knowledge)
        self.inbox = [Arrival(load_body(one[0]), *one[1:]) for one in waiting]
