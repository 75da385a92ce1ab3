"""AMQP 1.0: which performatives grant, limit or forbid a later one.

Theory of operation. Each direction has its sessions by channel, each of these its links by handle; the two
halves of a session are joined by remote-channel, those of a link by its name and opposite roles. A half
remembers where it was begun, where the flow stands that is in force, and where it was ended; a half that was
ended is kept until its number is used again, since it is what forbids whatever still comes.
"""

from typing import NamedTuple

from amqpscope.limits import MAX_REMEMBERED_SETTLING
from amqpscope.model.records import FrameRecord
from amqpscope.why.frame_ref import BELONGS, FORBIDS, GRANTS, LACKS, LIMITS, SETS_UP, Ground, Position
from amqpscope.why.grounds import Grounds, add_known, name_text
from amqpscope.why.remembered import Portion, Recent
from amqpscope.why.watch import AnswerWatch
from amqpscope.why.watch10 import Watch10, among
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)

__all__ = ["Grounds10"]

_OTHERS_LINK = 4


class _Link:
    """One half of a link: what one peer has said of it."""

    def __init__(self, name: str, receiver: bool, handle: int | None, attach: Position) -> None:
        self.name = name
        self.handle = handle
        self.receiver = receiver
        self.attach = attach
        self.modes = ""  # the settle modes that its attach sets
        self.detach: Position | None = None
        self.flow: Position | None = None
        self.credit = ""
        self.drain = False
        self.first: Position | None = None  # of the delivery under way
        self.last: Position | None = None


class _Settled(NamedTuple):
    """A disposition that settles. role: True if the receiver said it. first, last: ids, as on the wire."""

    role: bool
    first: int
    last: int
    mark: Position


class _Half:
    """One half of a session: what one peer has said on one channel."""

    def __init__(self, way: "_Direction", begin: Position, body: Begin) -> None:
        self.begin = begin
        self.body = body
        self.flow: Position | None = None
        self.window = body.incoming_window
        self.next_id = body.next_outgoing_id
        self.transfer: Position | None = None  # the newest
        self.delivery: tuple[int, Position] | None = None  # that began last, with its id
        self.next_incoming: int | None = None
        self.end: Position | None = None
        self.partner: int | None = body.remote_channel
        self.handles: Recent[int, _Link] = Recent()
        self.names: Recent[tuple[str, bool], _Link] = Recent()
        self.deliveries = Portion(way.deliveries, begin.offset)
        self.settled = Portion(way.settled, begin.offset)


class _Direction:
    """What one peer has said of the connection as a whole."""

    def __init__(self) -> None:
        self.header: Position | None = None
        self.sasl: dict[str, Position] = {}
        self.open: Position | None = None
        self.open_body: Open | None = None
        self.close: Position | None = None
        self.channels: Recent[int, _Half] = Recent()
        # Of all its sessions.
        self.deliveries: Recent[tuple[int, int], tuple[Position, _Link | None]] = Recent()
        self.settled: Recent[tuple[int, int], _Settled] = Recent(MAX_REMEMBERED_SETTLING)
        self.newest: Position | None = None


class Grounds10(Grounds):
    """What an AMQP 1.0 connection's frames so far mean for the next."""

    def __init__(self) -> None:
        self._ways = (_Direction(), _Direction())

    # What is asked

    def of(self, record: FrameRecord) -> list[Ground]:
        way = self._ways[int(record.direction)]
        other = self._ways[1 - int(record.direction)]
        frame = record.frame
        body = frame.body
        found: list[Ground] = []
        if isinstance(body, ProtocolHeader):
            add_known(found, SETS_UP, "the other peer's protocol header", other.header)
            add_known(found, SETS_UP, "ends the SASL layer with an outcome", other.sasl.get("sasl-outcome"))
            add_known(found, FORBIDS, "closed the connection", way.close)
            return found
        if frame.kind == "sasl":
            for name, mark in other.sasl.items():
                effect = LIMITS if name == "sasl-mechanisms" and frame.name == "sasl-init" else SETS_UP
                add_known(found, effect, _SASL.get(name, "said before in the SASL layer"), mark)
            for name, mark in way.sasl.items():
                add_known(found, BELONGS, f"its sender's own {name}", mark)
            add_known(found, SETS_UP, "chose the protocol layer", way.header)
            if frame.name == "sasl-init" and "sasl-mechanisms" not in other.sasl:
                found.append(Ground(LACKS, "no mechanisms that are offered were captured", None))
            return found
        if frame.kind != "amqp":
            add_known(found, BELONGS, "its sender's frame before", way.newest)
            return found
        if isinstance(body, Open) or way.open is None:
            add_known(found, SETS_UP, "chose the protocol layer", way.header)
        add_known(found, SETS_UP, "opened its sender's half of the connection", way.open)
        self._limits(found, record, other)
        add_known(found, FORBIDS, "closed the connection for its sender: nothing may follow", way.close)
        add_known(found, FORBIDS, "closed the connection: only a close is due", other.close)
        if way.open is None and not isinstance(body, Open):
            found.append(Ground(LACKS, "no open of its sender's was captured before", None))
        if isinstance(body, (Open, Close)) or frame.name in ("undecodable", "empty"):
            return found
        half = way.channels.get(int(frame.channel))
        their_half = self._partner(record.direction, int(frame.channel))
        if isinstance(body, Begin):
            self._of_begin(found, body, other, half)
            return found
        if half is None:
            what = f"no begin of its sender's was captured on channel {frame.channel}"
            return [*found, Ground(LACKS, what, None)]
        add_known(found, SETS_UP, f"began the session on channel {frame.channel}", half.begin)
        if their_half is not None:
            add_known(found, SETS_UP, "the other half of the session", their_half.begin)
        add_known(
            found, FORBIDS, "ended the session for its sender: nothing may follow on the channel", half.end
        )
        if their_half is not None:
            add_known(found, FORBIDS, "ended the session: only an end is due", their_half.end)
        if isinstance(body, Attach):
            self._of_attach(found, body, half, their_half)
        elif isinstance(body, Disposition):
            self._of_disposition(found, body, half, their_half)
        elif isinstance(body, (Transfer, Flow, Detach)):
            self._on_link(found, body, half, their_half)
        return found

    def _limits(self, found: list[Ground], record: FrameRecord, other: _Direction) -> None:
        """What the other peer's open limits."""
        if other.open is None or other.open_body is None:
            return
        parts = []
        size = other.open_body.max_frame_size
        parts.append("no max-frame-size" if size is None else f"max-frame-size {size}")
        limiting = size is not None
        if isinstance(record.frame.body, Begin):
            most = other.open_body.channel_max
            limiting = limiting or most is not None
            parts.append("no channel-max" if most is None else f"channel-max {most}")
        idle = other.open_body.idle_time_out
        if idle:
            parts.append(f"idle-time-out {idle} ms")
            limiting = True
        what = f"opened the other half of the connection, with {', '.join(parts)}"
        found.append(Ground(LIMITS if limiting else SETS_UP, what, other.open))

    def _of_begin(self, found: list[Ground], body: Begin, other: _Direction, half: _Half | None) -> None:
        if half is not None and half.end is None:
            add_known(found, FORBIDS, "began a session on this channel, which has not ended", half.begin)
        elif half is not None:
            add_known(found, SETS_UP, "ended the session that had the channel before", half.end)
        if body.remote_channel is not None:
            theirs = other.channels.get(body.remote_channel)
            if theirs is not None:
                add_known(found, SETS_UP, "the begin that it answers", theirs.begin)
            return
        for theirs in other.channels.newest_first():
            if theirs.partner is None and theirs.end is None:
                add_known(found, SETS_UP, "a begin that nothing had answered by then", theirs.begin)
                break

    def _of_attach(self, found: list[Ground], body: Attach, half: _Half, theirs: _Half | None) -> None:
        if theirs is not None and theirs.body.handle_max is not None:
            what = f"limits handles to {theirs.body.handle_max}"
            add_known(found, LIMITS, what, theirs.begin)
        in_use = None if body.handle is None else half.handles.get(body.handle)
        if in_use is not None:
            if in_use.detach is None:
                what = f"attached {name_text(in_use.name)} by this handle, which was not detached"
                add_known(found, FORBIDS, what, in_use.attach)
            else:
                add_known(found, SETS_UP, "gave the handle up", in_use.detach)
        if body.name is None or body.role is None:
            return
        own = half.names.get((body.name, body.role))
        if own is not None and own is not in_use:
            what = "attached a link of this name before" if own.detach else "attached a link of this name"
            add_known(found, SETS_UP if own.detach else FORBIDS, what, own.attach)
            add_known(found, SETS_UP, "detached it", own.detach)
        peer = None if theirs is None else theirs.names.get((body.name, not body.role))
        if peer is not None:
            add_known(found, SETS_UP, "attached the link's other end", peer.attach)
            add_known(found, SETS_UP, "detached the link's other end", peer.detach)

    def _on_link(
        self, found: list[Ground], body: Transfer | Flow | Detach, half: _Half, theirs: _Half | None
    ) -> None:
        link = None if body.handle is None else half.handles.get(body.handle)
        if isinstance(body, (Transfer, Flow)) and theirs is not None:
            self._window(found, half, theirs, isinstance(body, Transfer))
        if link is None:
            if body.handle is not None:
                what = f"no attach of its sender's was captured by handle {body.handle}"
                found.append(Ground(LACKS, what, None))
                for one in half.handles.newest_first()[:_OTHERS_LINK]:
                    if one.detach is None:
                        what = f"attached {name_text(one.name)}, by another handle"
                        add_known(found, SETS_UP, what, one.attach)
            return
        role = "receiver" if link.receiver else "sender"
        what = f"attached link {name_text(link.name)} by this handle, as its {role}{link.modes}"
        add_known(found, GRANTS if isinstance(body, Transfer) else SETS_UP, what, link.attach)
        peer = None if theirs is None else theirs.names.get((link.name, not link.receiver))
        if peer is not None:
            add_known(found, SETS_UP, f"attached the link's other end{peer.modes}", peer.attach)
        add_known(found, FORBIDS, "detached the link for its sender", link.detach)
        if isinstance(body, Transfer):
            if peer is not None and peer.flow is not None:
                drain = "; drain is set" if peer.drain else ""
                add_known(found, GRANTS, f"link credit {peer.credit}{drain}", peer.flow)
            else:
                found.append(Ground(LACKS, "no flow that gives credit to the link was captured", None))
            if half.delivery is not None and body.delivery_id is not None:
                what = f"the delivery before on the session: last-delivery-id {half.delivery[0]}"
                add_known(found, BELONGS, what, half.delivery[1])
            add_known(found, BELONGS, "the delivery that is under way on the link", link.first)
            if link.last is not None and link.last != link.first:
                add_known(found, BELONGS, "the transfer before on the link", link.last)
        elif isinstance(body, Flow) and peer is None and link.receiver and body.delivery_count is not None:
            what = "no attach of the sender's was captured, whose delivery-count it tells"
            found.append(Ground(LACKS, what, None))
        elif isinstance(body, Flow) and peer is not None:
            add_known(found, BELONGS, "the other end's newest flow of the link", peer.flow)
            add_known(found, BELONGS, "the newest transfer on the link", peer.last or link.last)
        if peer is not None:
            add_known(found, FORBIDS, "detached the link's other end: only a detach is due", peer.detach)

    def _window(self, found: list[Ground], half: _Half, theirs: _Half, grants: bool) -> None:
        """What the session's windows say."""
        window = "no" if theirs.window is None else str(theirs.window)
        if theirs.flow is None:
            what = f"an incoming-window of {window} from the first transfer on"
            add_known(found, GRANTS if grants else SETS_UP, what, theirs.begin)
        else:
            from_id = "" if theirs.next_incoming is None else f" from transfer-id {theirs.next_incoming} on"
            what = f"an incoming-window of {window}{from_id}"
            add_known(found, GRANTS if grants else SETS_UP, what, theirs.flow)
        if not grants:
            add_known(found, BELONGS, "its sender's flow before", half.flow)
            what = f"its sender's newest transfer: next-outgoing-id is {half.next_id}"
            add_known(found, BELONGS, what, half.transfer)
            what = f"the other peer's newest transfer: its next-outgoing-id is {theirs.next_id}"
            add_known(found, BELONGS, what, theirs.transfer)

    def _of_disposition(
        self, found: list[Ground], body: Disposition, half: _Half, theirs: _Half | None
    ) -> None:
        if body.first is None or body.role is None:
            return
        sending = theirs if body.role else half
        if sending is None:
            return
        last = body.first if body.last is None else body.last
        named = [("first", body.first)] if last == body.first else [("first", body.first), ("last", last)]
        for which, number in named:
            delivery = sending.deliveries.get(number)
            if delivery is None:
                by = "the other peer" if body.role else "its sender"
                found.append(Ground(LACKS, f"no delivery {number} of {by} was captured on the session", None))
            else:
                mark, link = delivery
                what = f"delivery {number}" if len(named) == 1 else f"delivery {number}, the {which} it names"
                add_known(found, GRANTS, what, mark)
                if link is not None:
                    add_known(found, SETS_UP, f"attached link {name_text(link.name)}", link.attach)
            for own in (half, theirs):
                for said in [] if own is None else own.settled.newest_first():
                    if said.role == body.role and among(number, said.first, said.last):
                        by = "its sender" if own is half else "the other peer"
                        add_known(found, FORBIDS, f"{by} had settled delivery {number}", said.mark)
                        break

    def of_end(self, direction: int, by_client: bool) -> list[Ground]:
        way, other = self._ways[direction], self._ways[1 - direction]
        found: list[Ground] = []
        add_known(found, SETS_UP, "opened its sender's half of the connection", way.open)
        add_known(found, SETS_UP, "opened the other half of the connection", other.open)
        add_known(found, GRANTS, "closed the connection for its sender", way.close)
        add_known(found, SETS_UP, "closed the other half of the connection", other.close)
        if way.open is not None and way.close is None:
            found.append(Ground(LACKS, "no close of its sender's was captured before", None))
        if way.newest is not None and way.newest != way.close:
            found.append(Ground(BELONGS, "the last frame of the stream", way.newest))
        return found

    def subject(self, record: FrameRecord) -> str:
        body = record.frame.body
        if isinstance(body, Attach):
            return body.name or ""
        half = self._ways[int(record.direction)].channels.get(int(record.frame.channel))
        if half is None or not isinstance(body, (Transfer, Flow, Detach)) or body.handle is None:
            return ""
        link = half.handles.get(body.handle)
        return "" if link is None else link.name

    # What is reported

    def take(self, record: FrameRecord) -> None:
        way = self._ways[int(record.direction)]
        mark = Position.of(record)
        frame = record.frame
        body = frame.body
        way.newest = mark
        if isinstance(body, ProtocolHeader):
            if way.close is not None:
                self._ways = (_Direction(), _Direction())
                way = self._ways[int(record.direction)]
            way.header = mark
        elif frame.kind == "sasl":
            way.sasl[frame.name] = mark
        elif isinstance(body, Open):
            way.open, way.open_body = mark, body
        elif isinstance(body, Close):
            way.close = way.close or mark
        elif isinstance(body, Begin):
            self._begin(record, body, mark)
        elif frame.kind == "amqp":
            half = way.channels.get(int(frame.channel))
            if half is not None:
                self._on_session(half, body, mark)

    def _begin(self, record: FrameRecord, body: Begin, mark: Position) -> None:
        direction, channel = int(record.direction), int(record.frame.channel)
        way, other = self._ways[direction], self._ways[1 - direction]
        known = way.channels.get(channel)
        if known is not None and known.end is None:
            return
        half = _Half(way, mark, body)
        way.channels.put(channel, half)
        if body.remote_channel is not None:
            theirs = other.channels.get(body.remote_channel)
            if theirs is not None:
                theirs.partner = channel

    def _on_session(self, half: _Half, body: object, mark: Position) -> None:
        if isinstance(body, End):
            half.end = half.end or mark
        elif isinstance(body, Flow):
            half.flow = mark
            half.window, half.next_incoming = body.incoming_window, body.next_incoming_id
            link = None if body.handle is None else half.handles.get(body.handle)
            if link is not None and body.link_credit is not None:
                link.flow = mark
                count = (
                    "" if body.delivery_count is None else f" from delivery-count {body.delivery_count} on"
                )
                link.credit = f"{body.link_credit}{count}"
                link.drain = body.drain is True
        elif isinstance(body, Attach):
            if body.name is not None and body.role is not None:
                link = _Link(body.name, body.role, body.handle, mark)
                link.modes = _modes(body)
                half.names.put((body.name, body.role), link)
                if body.handle is not None:
                    half.handles.put(body.handle, link)
        elif isinstance(body, Detach):
            link = None if body.handle is None else half.handles.get(body.handle)
            if link is not None:
                link.detach = link.detach or mark
        elif isinstance(body, Disposition):
            if body.settled and body.role is not None and body.first is not None:
                last = body.first if body.last is None else body.last
                half.settled.put(mark.offset, _Settled(body.role, body.first, last, mark))
        elif isinstance(body, Transfer):
            link = None if body.handle is None else half.handles.get(body.handle)
            half.transfer = mark
            if half.next_id is not None:
                half.next_id = (half.next_id + 1) & 0xFFFFFFFF
            if body.delivery_id is not None:
                half.delivery = (body.delivery_id, mark)
            if body.delivery_id is not None and half.deliveries.get(body.delivery_id) is None:
                half.deliveries.put(body.delivery_id, (mark, link))
            if link is not None:
                link.last = mark
                link.first = (link.first or mark) if body.more and not body.aborted else None

    def _partner(self, direction: int, channel: int) -> _Half | None:
        """The other half of a session."""
        half = self._ways[int(direction)].channels.get(channel)
        if half is None or half.partner is None:
            return None
        return self._ways[1 - int(direction)].channels.get(half.partner)

    def watch(self, record: FrameRecord) -> AnswerWatch:
        half = self._ways[int(record.direction)].channels.get(int(record.frame.channel))
        link = None
        body = record.frame.body
        if half is not None and isinstance(body, (Transfer, Flow, Detach)) and body.handle is not None:
            link = half.handles.get(body.handle)
        if isinstance(body, Attach) and body.name is not None:
            name, receiver = body.name, body.role is True
        else:
            name, receiver = ("", False) if link is None else (link.name, link.receiver)
        theirs = self._partner(record.direction, int(record.frame.channel))
        peer = None if theirs is None else theirs.names.get((name, not receiver))
        handle = None if peer is None or peer.detach is not None else peer.handle
        return Watch10(record, None if half is None else half.partner, name, receiver, handle)


_SASL = {
    "sasl-mechanisms": "says which mechanisms are offered",
    "sasl-init": "chose the mechanism",
    "sasl-challenge": "asks for a response",
    "sasl-response": "responds to a challenge",
    "sasl-outcome": "ended the SASL layer",
}


def _modes(body: Attach) -> str:
    """The settle modes that an attach sets."""
    parts = []
    if body.snd_settle_mode is not None:
        known = dict(enumerate(("unsettled", "settled", "mixed")))
        parts.append(f"snd-settle-mode {known.get(body.snd_settle_mode, body.snd_settle_mode)}")
    if body.rcv_settle_mode is not None:
        known = dict(enumerate(("first", "second")))
        parts.append(f"rcv-settle-mode {known.get(body.rcv_settle_mode, body.rcv_settle_mode)}")
    return "".join(f", {part}" for part in parts)
