"""One end of a session: its channel, the windows, the ids of transfers and deliveries, its links.

Theory of operation. A session is two channels, one a direction, joined by the remote-channel of the
begin that answers. Every transfer frame takes an implicit transfer-id from its sender's sequence;
what the peer can take is the incoming-window, which bounds them:

    the first transfer-id beyond = next-incoming-id of the peer's flow + its incoming-window

(the initial id of this end, where the flow has no next-incoming-id). It is kept, as a count that never
wraps, for every prefix of the peer's stream that this end may have known.

What this end sends of the peer's counters proves what it has processed: a next-incoming-id the
transfers below it, a remote-channel the begin on it. `received_ends` holds where in the peer's
stream each of its latest transfers ended, for that.

Sources: transport.xml, "Sessions", "Session Flow Control".
"""

from collections.abc import Collection
from typing import Any, Final

from amqpscope.limits import MAX_STATED, MAX_UNPROVED
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.states import SESSION, SESSION_REPAIR, advance
from amqpscope.tracking.knowledge import NO_SERIAL, Limits
from amqpscope.tracking.object_ids import ObjectIds
from amqpscope.tracking.serial import nearest
from amqpscope.tracking.spans import Spans
from dissectors.amqp10.performatives import Begin, Disposition, End, Flow, Transfer
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.wire import i64

__all__ = ["FAR", "SessionEnd", "among"]

FAR: Final = 1 << 60
"""A limit that nothing reaches."""

# Shared by all that have none, so that a session without deliveries is small: nobody writes to these.
NO_ENDS: Final[list[int]] = []
NO_PLACES: Final[dict[int, int]] = {}
NO_IDS: Final[set[int]] = set()
NO_STATES: Final[dict[int, object]] = {}
NO_DELIVERIES: Final[dict[int, Delivery]] = {}
NO_LINKS: Final[dict[int, LinkEnd]] = {}


def among(numbers: Collection[int], first: i64, last: i64) -> list[int]:
    """Those of `numbers` from `first` to `last`, at the price of the fewer of the two."""
    if last - first < len(numbers):
        return [number for number in range(int(first), int(last) + 1) if number in numbers]
    return [number for number in numbers if first <= number <= last]


class SessionEnd:
    """One end of a session.

    number: counts begins on the connection, for reports. channel: on which it sends, UNKNOWN while it
    has not begun. peer_channel: on which the peer sends. asked: time (ns) of the peer's last begin or end.
    whole: everything since its begin was captured, so that what was not seen was not sent.
    """

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.state: str = "UNMAPPED"
        self.whole: bool = True
        self.channel: i64 = UNKNOWN
        self.peer_channel: i64 = UNKNOWN
        self.begin: Begin | None = None
        self.begin_packet: i64 = 0
        self.peer_begin: Begin | None = None
        self.peer_begin_end: i64 = UNKNOWN
        self.peer_begin_packet: i64 = 0
        # It has used what only who has read the peer's begin can use.
        self.begin_read: bool = False
        self.peer_end_end: i64 = UNKNOWN
        self.asked: i64 = 0
        # What this end sends: transfer-ids as counts, and the bound the peer's windows set.
        self.initial_id: i64 = 0
        self.next_id: i64 = 0
        self.limits: Limits = Limits()
        # The bound that its own outgoing-window sets, and whether it was told that it went beyond.
        self.own_limit: i64 = FAR
        self.own_told: bool = False
        # Up to where the peer's newest window would reach if it counted from this end's next transfer, and
        # whether the flow that set it said not from where; the transfers since that went on with a delivery.
        self.hasty_limit: i64 = UNKNOWN
        self.hasty_bare: bool = False
        self.continued: i64 = 0
        # A flow of the peer's that raised its own counter: its end, packet, and the id that it set.
        self.sync_end: i64 = UNKNOWN
        self.sync_packet: i64 = 0
        self.sync_id: i64 = 0
        # A flow of the peer's that asks for one in return: its end, time (ns) and packet.
        self.echo_end: i64 = UNKNOWN
        self.echo_time: i64 = 0
        self.echo_packet: i64 = 0
        # What it has received, at `could`: the peer's transfer-ids, and where they ended.
        self.peer_initial_id: i64 = 0
        self.peer_next_id: i64 = 0
        # The last next-incoming-id that it told and that can be right, as a count; and whether the peer's
        # next-outgoing-id went back, which it may follow.
        self.told_incoming: i64 = UNKNOWN
        self.set_back: bool = False
        self.received_ends: list[int] = NO_ENDS
        self.received_deliveries: list[int] = NO_ENDS
        self.received_delivery_ends: list[int] = NO_ENDS
        # Deliveries sent by this end: the last id, and those the peer may still settle.
        self.last_delivery: i64 = UNKNOWN
        # Deliveries without a delivery-id since the last that had one: sent by this end, and received by it.
        self.unnumbered: i64 = 0
        self.received_unnumbered: i64 = 0
        self.unsettled: dict[int, Delivery] = NO_DELIVERIES
        # Those that it has settled itself with a disposition.
        self.settled_sent: Spans = Spans()
        # Of those it has received: which it has settled, and what it has stated of others.
        self.settled: Spans = Spans()
        self.stated: dict[int, object] = NO_STATES
        # Of links that limit what may be said of them: those that neither end has settled yet.
        self.held: dict[int, LinkEnd] = NO_LINKS
        # When (ns) it stated those. What was aborted: of the received where the abort ends, of the sent the
        # raw ids.
        self.stated_at: dict[int, int] = NO_PLACES
        self.aborted: dict[int, int] = NO_PLACES
        self.aborts: set[int] = NO_IDS
        # Whether a delivery that was resumed is among those it has received.
        self.resuming: bool = False
        # Links by this end's handle and by the peer's, and by name and whether this end sends.
        self.handles: dict[int, LinkEnd] = {}
        self.peer_handles: dict[int, LinkEnd] = {}
        self.links: dict[tuple[str, bool], LinkEnd] = {}
        # Handles of this end's that it has detached and the peer has not; below which none is free.
        self.freed: dict[int, LinkEnd] = NO_LINKS
        self.lowest: i64 = 0
        # It was told that a handle is not the lowest free one.
        self.high_told: bool = False

    def send_begin(self, begin: Begin, channel: i64, packet: i64) -> None:
        """This end sends begin."""
        self.state = advance(SESSION, SESSION_REPAIR, self.state, "S:BEGIN")
        self.begin = begin
        self.begin_packet = packet
        self.channel = channel
        if begin.next_outgoing_id is not None:
            self.initial_id = begin.next_outgoing_id
            self.next_id = self.initial_id
            if begin.outgoing_window is not None:
                self.own_limit = self.initial_id + begin.outgoing_window
        self.limits.rebase(self.initial_id)

    def receive_begin(self, begin: Begin, channel: i64, end: i64, packet: i64) -> None:
        """This end received the peer's begin, which ends at `end` of its stream."""
        self.state = advance(SESSION, SESSION_REPAIR, self.state, "R:BEGIN")
        self.peer_begin = begin
        self.peer_begin_end = end
        self.peer_begin_packet = packet
        self.peer_channel = channel
        if begin.next_outgoing_id is not None:
            self.peer_initial_id = begin.next_outgoing_id
            self.peer_next_id = self.peer_initial_id
        if begin.incoming_window is not None:
            if self.begin is None:
                self.limits.set_early(end, NO_SERIAL, begin.incoming_window, packet)
            else:
                self.limits.set(end, self.initial_id + begin.incoming_window, packet)

    def send_end(self, end: End) -> None:
        """This end sends end."""
        action = "S:END(error)" if end.error is not None else "S:END"
        self.state = advance(SESSION, SESSION_REPAIR, self.state, action)

    def receive_end(self, end: i64) -> None:
        """This end received the peer's end, which ends at `end` of its stream."""
        self.peer_end_end = end
        self.state = advance(SESSION, SESSION_REPAIR, self.state, "R:END")

    def lowest_handle(self) -> i64:
        """The lowest handle that is free for this end and, as far as it can know, for the peer."""
        at = self.lowest
        while int(at) in self.handles or int(at) in self.freed:
            at += 1
        self.lowest = at
        return at

    def free(self, handle: int, link: LinkEnd) -> None:
        """This end detaches a link; unless the peer has done so, the handle may still mean it."""
        if link.state == "DETACH_SENT":
            if self.freed is NO_LINKS:
                self.freed = {}
            self.freed[handle] = link
            link.attachment.freed_handle = handle
        elif handle < self.lowest:
            self.lowest = handle

    def free_for_both(self, link: LinkEnd) -> None:
        """The peer detaches a link, too."""
        handle = int(link.attachment.freed_handle)
        if self.freed.get(handle) is link:
            del self.freed[handle]
            if handle < self.lowest:
                self.lowest = handle

    def send_flow(self, flow: Flow) -> None:
        """This end sends a flow. What it says of its next-outgoing-id is taken for its own counter."""
        if flow.next_outgoing_id is not None:
            self.next_id = nearest(flow.next_outgoing_id, self.next_id)
        if flow.next_incoming_id is not None and self.peer_begin is not None:
            told = nearest(flow.next_incoming_id, self.peer_next_id)
            if told <= self.peer_next_id:
                self.told_incoming = told
        self.echo_end = UNKNOWN
        if flow.outgoing_window is not None and not self.own_told:
            self.own_limit = self.next_id + flow.outgoing_window

    def receive_flow(self, flow: Flow, end: i64, packet: i64) -> None:
        """This end received the peer's flow."""
        if flow.incoming_window is not None and self.begin is None:
            serial: i64 = NO_SERIAL if flow.next_incoming_id is None else flow.next_incoming_id
            self.limits.set_early(end, serial, flow.incoming_window, packet)
        elif flow.incoming_window is not None:
            base = self.initial_id
            if flow.next_incoming_id is not None:
                base = nearest(flow.next_incoming_id, self.next_id)
            bound = base + flow.incoming_window
            self.continued = 0
            self.hasty_limit = self.next_id + flow.incoming_window
            self.hasty_bare = flow.next_incoming_id is None
            if len(self.limits) > 0 and flow.next_outgoing_id is not None:
                if nearest(flow.next_outgoing_id, self.peer_next_id) != self.peer_next_id:
                    # A wrong flow need not be obeyed.
                    bound = max(bound, self.limits.largest())
            self.limits.set(end, bound, packet)
        if flow.next_outgoing_id is not None:
            # "it MUST update the next-incoming-id directly from the next-outgoing-id of the frame". If that
            # goes back, it is wrong, and this end may not have read it: it was once right to say more.
            following = nearest(flow.next_outgoing_id, self.peer_next_id)
            if following > self.peer_next_id:
                self.received_ends = NO_ENDS
                self.peer_next_id = following
                self.sync_end = end
                self.sync_packet = packet
                self.sync_id = following
            elif following < self.peer_next_id:
                self.set_back = True

    def receive_transfer(self, end: i64) -> None:
        """This end received a transfer frame, which ends at `end` of the peer's stream."""
        self.peer_next_id += 1
        if self.received_ends is NO_ENDS:
            self.received_ends = []
        ends = self.received_ends
        ends.append(end)
        if len(ends) > MAX_UNPROVED:
            del ends[: MAX_UNPROVED // 2]

    def receive_delivery(self, delivery_id: i64, end: i64) -> None:
        """The first transfer of a delivery with a new id was received; it ends at `end`."""
        if self.received_deliveries is NO_ENDS:
            self.received_deliveries = []
            self.received_delivery_ends = []
        numbers = self.received_deliveries
        ends = self.received_delivery_ends
        if len(numbers) > 0:
            delivery_id = nearest(delivery_id, numbers[len(numbers) - 1])
        numbers.append(delivery_id)
        ends.append(end)
        self.received_unnumbered = 0
        if len(numbers) > MAX_UNPROVED:
            del numbers[: MAX_UNPROVED // 2]
            del ends[: MAX_UNPROVED // 2]

    def abort_received(self, number: int, end: int) -> None:
        """A delivery that this end receives was aborted; the transfer that says so ends at `end`."""
        if self.aborted is NO_PLACES:
            self.aborted = {}
        self.aborted[number] = end

    def abort_sent(self, delivery_id: int) -> None:
        """This end aborts a delivery with this id, of 32 bits."""
        if self.aborts is NO_IDS:
            self.aborts = set()
        self.aborts.add(delivery_id)

    def leave_unsettled(self, delivery: Delivery) -> None:
        """This end has sent a delivery that is not settled yet."""
        if self.unsettled is NO_DELIVERIES:
            self.unsettled = {}
        self.unsettled[int(delivery.number)] = delivery

    def last_received(self) -> i64:
        """The id of the newest delivery that was received, UNKNOWN if there was none."""
        numbers = self.received_deliveries
        if len(numbers) == 0:
            return UNKNOWN
        return numbers[len(numbers) - 1]

    def received(self, delivery_id: i64) -> i64:
        """The count that a delivery-id of the peer's stands for, UNKNOWN if it has not sent that many."""
        size: i64 = len(self.received_deliveries)
        if size == 0:
            return UNKNOWN
        last: i64 = self.received_deliveries[size - 1]
        number = nearest(delivery_id, last)
        if number > last:
            return UNKNOWN
        return number

    def hold(self, link: LinkEnd, transfer: Transfer, new: bool) -> None:
        """A transfer was received on a link whose deliveries are watched; new: with a delivery-id that is.

        One that is resumed is not: its outcome may have been settled long since, all but in word.
        """
        if not link.receipt.receiving:
            link.receipt.holding = UNKNOWN
            if new and not transfer.resume:
                link.receipt.holding = self.last_received()
        number = int(link.receipt.holding)
        if number == UNKNOWN:
            return
        if transfer.settled or transfer.aborted:
            self.held.pop(number, None)
        elif not link.receipt.receiving and len(self.held) < MAX_STATED:
            own = link.attach
            if transfer.rcv_settle_mode != 0 or own is None or own.rcv_settle_mode != 1:
                if self.held is NO_LINKS:
                    self.held = {}
                self.held[number] = link

    def let_go(self, link: LinkEnd) -> None:
        """A link is attached again: what was agreed of its deliveries before is not what holds now."""
        for number in [number for number, other in self.held.items() if other is link]:
            del self.held[number]

    def release(self, body: Disposition) -> None:
        """A disposition settles deliveries that this end has received."""
        if body.first is None:
            return
        first = self.received(body.first)
        last = first
        if body.last is not None:
            last = self.received(body.last)
        for number in among(self.held, first, last):
            del self.held[number]

    def send_outcome(self, body: Disposition, time: i64) -> None:
        """This end, as receiver, sends a disposition, at `time` (ns)."""
        if body.first is None:
            return
        first = self.received(body.first)
        if first == UNKNOWN:
            return
        last = first
        if body.last is not None:
            last = self.received(body.last)
        stated = self.stated
        if body.settled:
            if self.held:
                self.release(body)
            if last >= first:
                self.settled.add(first, last)
            if stated:
                for number in among(stated, first, last):
                    del stated[number]
                    del self.stated_at[number]
        elif body.state is not None and 0 <= last - first < MAX_STATED:
            if stated is NO_STATES:
                stated = self.stated = {}
                self.stated_at = {}
            number = first
            while number <= last and len(stated) < MAX_STATED:
                stated[int(number)] = body.state
                self.stated_at[int(number)] = int(time)
                number += 1

    def settle_sent(self, body: Disposition) -> None:
        """This end, as sender, settles deliveries with a disposition."""
        first, last = self.sent_by(body)
        if first != UNKNOWN and last >= first:
            self.settled_sent.add(first, last)

    def sent_by(self, body: Disposition) -> tuple[int, int]:
        """First and last of the deliveries sent that a disposition names, as counts; UNKNOWN if none is."""
        if body.first is None or self.last_delivery == UNKNOWN:
            return (UNKNOWN, UNKNOWN)
        first = nearest(body.first, self.last_delivery)
        if first > self.last_delivery:
            return (UNKNOWN, UNKNOWN)
        return (int(first), int(first if body.last is None else nearest(body.last, first)))

    def delivery_end(self, delivery_id: i64) -> i64:
        """Where the first transfer of a delivery that was received ended, -1 if it is not known."""
        numbers = self.received_deliveries
        size: i64 = len(numbers)
        if size == 0:
            return -1
        # Ids go up by one nearly always: its place follows from the last one's.
        last: i64 = numbers[size - 1]
        number = nearest(delivery_id, last)
        at = size - 1 - (last - number)
        if 0 <= at < size and numbers[at] == number:
            return self.received_delivery_ends[at]
        at = size - 1
        while at >= 0:
            if numbers[at] == number:
                return self.received_delivery_ends[at]
            at -= 1
        return -1

    def proved_by(self, next_incoming_id: i64) -> i64:
        """Where the peer's stream must have been processed to, by a next-incoming-id that this end sends.

        -1: it proves nothing, or what is kept does not go back so far.
        """
        behind = self.peer_next_id - nearest(next_incoming_id, self.peer_next_id)
        ends = self.received_ends
        at = len(ends) - 1 - behind
        if behind < 0 or at < 0 or at >= len(ends):
            return -1
        proved: i64 = ends[at]
        if at > 0:
            del ends[:at]
        return proved

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values, its links and deliveries each once."""
        links = ObjectIds()
        deliveries = ObjectIds()
        tables = (
            tuple((handle, links.number(link)) for handle, link in self.handles.items()),
            tuple((handle, links.number(link)) for handle, link in self.peer_handles.items()),
            tuple((name, sender, links.number(link)) for (name, sender), link in self.links.items()),
            tuple((number, links.number(link)) for number, link in self.held.items()),
            tuple((handle, links.number(link)) for handle, link in self.freed.items()),
        )
        unsettled = tuple((number, deliveries.number(one)) for number, one in self.unsettled.items())
        dumped_links: list[tuple[object, ...]] = []
        dumped_deliveries: list[tuple[object, ...]] = []
        # Either may name more of the other.
        while len(dumped_links) < len(links.objects) or len(dumped_deliveries) < len(deliveries.objects):
            for link in links.objects[len(dumped_links) :]:
                assert isinstance(link, LinkEnd)
                dumped_links.append(link.dump(deliveries))
            for delivery in deliveries.objects[len(dumped_deliveries) :]:
                assert isinstance(delivery, Delivery)
                dumped_deliveries.append(delivery.dump(links))
        return (
            (int(self.number), self.state, self.whole, int(self.channel), int(self.peer_channel)),
            (dump_value(self.begin), int(self.begin_packet)),
            (dump_value(self.peer_begin), int(self.peer_begin_end), int(self.peer_begin_packet)),
            (int(self.peer_end_end), int(self.asked)),
            (int(self.initial_id), int(self.next_id), self.limits.dump()),
            (int(self.peer_initial_id), int(self.peer_next_id), tuple(self.received_ends)),
            (tuple(self.received_deliveries), tuple(self.received_delivery_ends)),
            (
                int(self.last_delivery),
                unsettled,
                self.settled.dump(),
                self.resuming,
                self.settled_sent.dump(),
            ),
            (int(self.unnumbered), int(self.received_unnumbered)),
            tuple(
                (number, dump_value(state), self.stated_at[number]) for number, state in self.stated.items()
            ),
            (tuple(self.aborted.items()), tuple(sorted(self.aborts))),
            tables,
            (int(self.lowest), self.high_told),
            (int(self.own_limit), self.own_told, int(self.hasty_limit), self.hasty_bare, int(self.continued)),
            (int(self.sync_end), int(self.sync_packet), int(self.sync_id)),
            (int(self.told_incoming), self.set_back, self.begin_read),
            (int(self.echo_end), int(self.echo_time), int(self.echo_packet)),
            tuple(dumped_links),
            tuple(dumped_deliveries),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SessionEnd":
        """What `dump` gave, as an object again."""
        about, begin, peer_begin, ends, ids, peer_ids, received, sent, unnumbered = state[:9]
        stated, aborted, tables, lowest, windows, sync, told, echo, links, deliveries = state[9:]
        session = SessionEnd(about[0])
        _, session.state, session.whole, session.channel, session.peer_channel = about
        value = load_value(begin[0])
        session.begin = value if isinstance(value, Begin) else None
        session.begin_packet = begin[1]
        value = load_value(peer_begin[0])
        session.peer_begin = value if isinstance(value, Begin) else None
        _, session.peer_begin_end, session.peer_begin_packet = peer_begin
        session.peer_end_end, session.asked = ends
        session.initial_id = ids[0]
        session.next_id = ids[1]
        session.limits = Limits.load(ids[2])
        session.peer_initial_id = peer_ids[0]
        session.peer_next_id = peer_ids[1]
        session.received_ends = list(peer_ids[2])
        session.received_deliveries = list(received[0])
        session.received_delivery_ends = list(received[1])
        all_links = [LinkEnd.load(link) for link in links]
        all_deliveries = [Delivery.load(delivery, all_links) for delivery in deliveries]
        for link, dumped in zip(all_links, links, strict=True):
            link.restore(dumped, all_deliveries)
        session.last_delivery = sent[0]
        session.unsettled = {number: all_deliveries[at] for number, at in sent[1]}
        session.settled = Spans.load(sent[2])
        session.resuming = sent[3]
        session.settled_sent = Spans.load(sent[4])
        session.unnumbered, session.received_unnumbered = unnumbered
        session.stated = {number: load_value(outcome) for number, outcome, _ in stated}
        session.stated_at = {number: time for number, _, time in stated}
        session.aborted = dict(aborted[0])
        session.aborts = set(aborted[1])
        handles, peer_handles, names, held, freed = tables
        session.handles = {handle: all_links[at] for handle, at in handles}
        session.peer_handles = {handle: all_links[at] for handle, at in peer_handles}
        session.links = {(name, sender): all_links[at] for name, sender, at in names}
        session.held = {number: all_links[at] for number, at in held}
        session.freed = {handle: all_links[at] for handle, at in freed}
        session.lowest, session.high_told = lowest
        session.own_limit, session.own_told, session.hasty_limit, session.hasty_bare = windows[:4]
        session.continued = windows[4]
        session.sync_end, session.sync_packet, session.sync_id = sync
        session.told_incoming, session.set_back, session.begin_read = told
        session.echo_end, session.echo_time, session.echo_packet = echo
        return session
