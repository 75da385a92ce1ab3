"""The frames that are on their way to one end of a connection, and when they can have arrived.

Theory of operation. A capture shows when a frame was sent, not when it was received. A frame of the peer is
put into the inbox of its receiver (`post`) and changes nothing yet. Each frame of the receiver came in a
segment that acknowledged a part of the peer's stream. Before such a frame is judged, all frames that lie
completely in that part are taken out of the inbox in order, and received (`catch_up`). The state of an
endpoint is therefore the latest state in which it can have written its newest frame: the state at `could` of
`tracking.knowledge`.

An endpoint whose own frames were not captured never catches up. If its inbox grows too long, it receives the
oldest frames, and from then on no rule judges it by what it knew.

The protocol defines what receiving means. This code runs for every frame, so the inbox is a list with the
index of its first entry: taking a frame out moves nothing.
"""

from collections.abc import Callable
from typing import Any

from amqpscope.limits import MAX_INBOX
from amqpscope.model.records import FrameRecord
from amqpscope.reassembly.stalls import NO_STALLS, Stalls
from amqpscope.tracking.knowledge import Knowledge
from dissectors.wire import i64

__all__ = ["Arrival", "Recipient"]


class Arrival:
    """A frame, or the message that it completes, on its way to the other peer, without its octets.

    body: the decoded content, None if unknown. end: the offset after its last octet in the sender's stream.
    packet: the packet of its first octet; time: the time of its last octet (ns). lost: octets are missing in
    it or before it, so nothing follows from frames that were not seen. doubted: how much of it could not be
    read, in the terms of its protocol; 0 for nothing.
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
        """All of it as plain values; the protocol has dumped the body."""
        return (
            body,
            int(self.channel),
            int(self.end),
            int(self.packet),
            int(self.time),
            self.lost,
            int(self.doubted),
        )


class Recipient:
    """One end of a connection, by the frames that have reached it: see the theory above.

    mypyc: not an ABC, because compiled code would then check at each use of an attribute that it is there.
    """

    def __init__(self) -> None:
        self.knowledge: Knowledge = Knowledge()
        self.inbox: list[Arrival] = []
        self.inbox_head: i64 = 0
        # How much of its own stream it has sent, up to the end of its newest complete frame.
        self.sent_end: i64 = 0
        # When it could not write. TCP owns and updates this object; it is not part of the state.
        self.stalls: Stalls = NO_STALLS

    def receive(self, arrival: Arrival) -> None:
        """A frame of the peer reaches this endpoint."""
        raise NotImplementedError

    def lost(self) -> None:
        """Something is missing of what it sent or could know: nothing follows from frames that were
        not seen.
        """
        raise NotImplementedError

    def prove(self, record: FrameRecord) -> None:
        """Draw from a frame of this endpoint which part of the peer's stream it must have processed."""
        raise NotImplementedError

    def has_read(self, name: str, channel: i64, end: i64) -> bool:
        """Whether it has certainly processed a frame of the peer's, which has this name and channel, and ends
        at this offset of the peer's stream.
        """
        return self.knowledge.confirmed(end)

    def read_of_sessions(self) -> dict[int, int]:
        """For each channel on which the peer sends in a session that is read apart from others: up to where
        it has certainly processed the session's frames. Empty where what is proved counts for all frames. Of
        many sessions, only some are given.
        """
        return {}

    def post(self, arrival: Arrival) -> None:
        """The peer has sent this frame."""
        if arrival.end <= self.knowledge.could:
            # Octets before it could not be read, so it was found late: this endpoint may already have
            # answered it.
            arrival.lost = True
        self.inbox.append(arrival)
        waiting: i64 = len(self.inbox) - self.inbox_head
        if waiting > MAX_INBOX:
            # Hardly any frame of this endpoint was captured: no rule will judge it by what it knew.
            self.lost()
            oldest = self.inbox[self.inbox_head]
            self.inbox_head += 1
            self.receive(oldest)
            if self.inbox_head > MAX_INBOX:
                del self.inbox[: self.inbox_head]
                self.inbox_head = 0

    def catch_up(self, acknowledged: i64, peer_sent: i64) -> None:
        """Before a frame of this endpoint: take in the frames that it could have received, as its segment
        shows.

        acknowledged: octets of the peer's stream, -1 if unknown; then it may have received all octets that
        the peer is known to have sent, `peer_sent`.
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
        """The frames that are still on their way, the oldest first."""
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
