"""The transfers of a session, in both directions: their ids, and the windows that bound them.

Every transfer frame takes an implicit transfer-id from its sender's sequence; what the peer can take is the
incoming-window, which bounds them:

    the first transfer-id beyond = next-incoming-id of the peer's flow + its incoming-window

(the initial id of this end, where the flow has no next-incoming-id). It is kept, as a count that never
wraps, for every prefix of the peer's stream that this end may have known.

Sources: transport.xml, "Session Flow Control".
"""

from typing import Any, Final

from amqpscope.limits import MAX_UNPROVED
from amqpscope.tracking.amqp10.credit import UNKNOWN
from amqpscope.tracking.knowledge import NO_SERIAL, PeerLimits
from amqpscope.tracking.serial import nearest
from dissectors.amqp10.performatives import Begin, Flow
from dissectors.wire import i64

__all__ = ["FAR", "IncomingTransfers", "OutgoingTransfers"]

# mypyc: sentinel, a limit that nothing reaches, where there is none.
FAR: Final = 1 << 60

# mypyc: null object, of sessions without transfers. Nothing appends to it.
NO_ENDS: Final[list[int]] = []


class OutgoingTransfers:
    """The transfers that this end sends on a session."""

    def __init__(self) -> None:
        # The first transfer-id: next-outgoing-id of the begin.
        self.initial_id: i64 = 0
        # The transfer-id of the next transfer.
        self.next_id: i64 = 0
        # How far that id is from what it is if wrong flows and transfers on no link do not count.
        self.shift: i64 = 0
        # The first transfer-id beyond the peer's incoming-window.
        self.limits: PeerLimits = PeerLimits()
        # The first transfer-id beyond this end's own outgoing-window.
        self.own_limit: i64 = FAR
        # A finding says already that it went beyond its own outgoing-window.
        self.own_reported: bool = False
        # Up to where the peer's newest window would reach if it counted from this end's next transfer.
        self.hasty_limit: i64 = UNKNOWN
        # The flow that set that window has no next-incoming-id.
        self.hasty_bare: bool = False
        # Transfers since that flow that were not the first of their delivery.
        self.continued: i64 = 0
        # The peer has read this end's begin, or may have, so all its flows must have a next-incoming-id.
        self.begin_known: bool = False

    def send_begin(self, begin: Begin) -> None:
        """This end sends begin."""
        if begin.next_outgoing_id is not None:
            self.initial_id = begin.next_outgoing_id
            self.next_id = self.initial_id
            self.shift = 0
            if begin.outgoing_window is not None:
                self.own_limit = self.initial_id + begin.outgoing_window
        self.limits.rebase(self.initial_id)

    def receive_begin(self, begin: Begin, begun: bool, end: i64, packet: i64) -> None:
        """This end receives the peer's begin. begun: it has sent its own."""
        self.begin_known = begin.remote_channel is not None
        if begin.incoming_window is None:
            return
        if begun:
            self.limits.set(end, self.initial_id + begin.incoming_window, packet)
        else:
            self.limits.set_early(end, NO_SERIAL, begin.incoming_window, packet)

    def send_flow(self, flow: Flow) -> None:
        """This end sends a flow. What it says of its next-outgoing-id is taken for its own counter."""
        if flow.next_outgoing_id is not None:
            stated = nearest(flow.next_outgoing_id, self.next_id)
            self.shift += stated - self.next_id
            self.next_id = stated
        if flow.outgoing_window is not None and not self.own_reported:
            self.own_limit = self.next_id + flow.outgoing_window

    def send_stray(self) -> None:
        """This end has sent a transfer on no link, which it may not count."""
        self.shift += 1

    def counted_id(self) -> i64:
        """The transfer-id of the next transfer if wrong flows and transfers on no link do not count."""
        return self.next_id - self.shift

    def least_id(self) -> i64:
        """The transfer-id of the next transfer, or what it is by the other count if that is lower."""
        return self.next_id - max(self.shift, 0)

    def receive_flow(self, flow: Flow, begun: bool, right: bool, end: i64, packet: i64) -> None:
        """This end receives the peer's flow. begun: it has sent its begin. right: the peer's own id fits."""
        bare = flow.next_incoming_id is None and self.begin_known
        if flow.next_incoming_id is not None:
            self.begin_known = True
        if flow.incoming_window is None:
            return
        if not begun:
            serial: i64 = NO_SERIAL if flow.next_incoming_id is None else flow.next_incoming_id
            self.limits.set_early(end, serial, flow.incoming_window, packet)
            return
        base = self.initial_id
        if flow.next_incoming_id is not None:
            base = nearest(flow.next_incoming_id, self.next_id)
        bound = base + flow.incoming_window
        self.continued = 0
        self.hasty_limit = self.next_id + flow.incoming_window
        self.hasty_bare = flow.next_incoming_id is None
        if len(self.limits) > 0:
            if bare:
                # From where the window of a flow counts that must say so, and does not, only its sender
                # knows: at most from what this end has sent when it reads the flow.
                bound = max(bound, self.limits.largest() + flow.incoming_window)
            elif not right:
                # A wrong flow need not be obeyed.
                bound = max(bound, self.limits.largest())
        self.limits.set(end, bound, packet)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (int(self.initial_id), int(self.next_id), int(self.shift), self.limits.dump()),
            (int(self.own_limit), self.own_reported),
            (int(self.hasty_limit), self.hasty_bare, int(self.continued), self.begin_known),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "OutgoingTransfers":
        """The object of what `dump` returned."""
        transfers = OutgoingTransfers()
        ids, own, hasty = state
        transfers.initial_id, transfers.next_id, transfers.shift, limits = ids
        transfers.limits = PeerLimits.load(limits)
        transfers.own_limit, transfers.own_reported = own
        transfers.hasty_limit, transfers.hasty_bare, transfers.continued, transfers.begin_known = hasty
        return transfers


class IncomingTransfers:
    """The transfers that this end has received on a session, at `could`."""

    def __init__(self) -> None:
        # The peer's first transfer-id: next-outgoing-id of its begin.
        self.initial_id: i64 = 0
        # The transfer-id of the peer's next transfer.
        self.next_id: i64 = 0
        # The last next-incoming-id that this end stated and that can be right, as a count.
        self.stated_id: i64 = UNKNOWN
        # The peer's next-outgoing-id went back, which this end may follow.
        self.set_back: bool = False
        # Offsets in the peer's stream behind each of its latest transfers: a next-incoming-id proves the
        # transfers below it.
        self.ends: list[int] = NO_ENDS
        # Offset in the peer's stream behind its newest flow that raised its own counter.
        self.sync_end: i64 = UNKNOWN
        # The packet in which that flow begins.
        self.sync_packet: i64 = 0
        # The transfer-id that it set.
        self.sync_id: i64 = 0

    def receive_begin(self, begin: Begin) -> None:
        """This end receives the peer's begin."""
        if begin.next_outgoing_id is not None:
            self.initial_id = begin.next_outgoing_id
            self.next_id = self.initial_id

    def send_flow(self, flow: Flow) -> None:
        """This end sends a flow, after the peer's begin."""
        if flow.next_incoming_id is not None:
            stated = nearest(flow.next_incoming_id, self.next_id)
            if stated <= self.next_id:
                self.stated_id = stated

    def fits(self, flow: Flow) -> bool:
        """Whether the next-outgoing-id of a flow of the peer is the one that follows."""
        return flow.next_outgoing_id is None or nearest(flow.next_outgoing_id, self.next_id) == self.next_id

    def receive_flow(self, flow: Flow, end: i64, packet: i64) -> None:
        """This end receives the peer's flow."""
        if flow.next_outgoing_id is None:
            return
        # "it MUST update the next-incoming-id directly from the next-outgoing-id of the frame". If that
        # goes back, it is wrong, and this end may not have read it: it was once right to say more.
        following = nearest(flow.next_outgoing_id, self.next_id)
        if following > self.next_id:
            self.ends = NO_ENDS
            self.next_id = following
            self.sync_end = end
            self.sync_packet = packet
            self.sync_id = following
        elif following < self.next_id:
            self.set_back = True

    def receive_transfer(self, end: i64) -> None:
        """This end receives a transfer frame, which ends at `end` of the peer's stream."""
        self.next_id += 1
        if self.ends is NO_ENDS:
            self.ends = []
        ends = self.ends
        ends.append(end)
        if len(ends) > MAX_UNPROVED:
            del ends[: MAX_UNPROVED // 2]

    def proved_by(self, next_incoming_id: i64) -> i64:
        """Where the peer's stream must have been processed to, by a next-incoming-id that this end sends.

        -1: it proves nothing, or what is kept does not go back so far.
        """
        behind = self.next_id - nearest(next_incoming_id, self.next_id)
        ends = self.ends
        at = len(ends) - 1 - behind
        if behind < 0 or at < 0 or at >= len(ends):
            return -1
        proved: i64 = ends[at]
        if at > 0:
            del ends[:at]
        return proved

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (int(self.initial_id), int(self.next_id), int(self.stated_id), self.set_back),
            tuple(self.ends),
            (int(self.sync_end), int(self.sync_packet), int(self.sync_id)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "IncomingTransfers":
        """The object of what `dump` returned."""
        transfers = IncomingTransfers()
        ids, ends, sync = state
        transfers.initial_id, transfers.next_id, transfers.stated_id, transfers.set_back = ids
        if ends:
            transfers.ends = list(ends)
        transfers.sync_end, transfers.sync_packet, transfers.sync_id = sync
        return transfers
