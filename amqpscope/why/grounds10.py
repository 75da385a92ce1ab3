"""AMQP 1.0: which performatives grant, limit or forbid a later one.

Theory of operation. A conversation says which session, link and delivery a frame is about. Of each of these
is remembered, for either peer, where it was begun, where the flow stands that is in force, and where it was
ended: also when it was ended, since that is what forbids whatever still comes.
"""

from amqpscope.model.records import FrameRecord
from amqpscope.protocols import in_its_terms
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from amqpscope.why.frame_ref import BELONGS, FORBIDS, GRANTS, LACKS, LIMITS, SETS_UP, Ground, Position
from amqpscope.why.grounds import Grounds, add_known, name_text
from amqpscope.why.remembered import Recent
from amqpscope.why.watch import AnswerWatch
from amqpscope.why.watch10 import AnswerWatch10
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

_MODES = ("snd-settle-mode", "rcv-settle-mode")


class _LinkPlaces:
    """Where one peer has said what of a link."""

    def __init__(self, attach: Position, body: Attach) -> None:
        self.attach = attach
        self.role = "receiver" if body.role else "sender"
        self.modes = _modes(body)
        self.detach: Position | None = None
        self.flow: Position | None = None
        self.credit = ""
        self.drain = False
        self.first: Position | None = None  # of the delivery under way
        self.last: Position | None = None


class _SessionPlaces:
    """Where one peer has said what of a session."""

    def __init__(self, begin: Position, body: Begin) -> None:
        self.begin = begin
        self.body = body
        self.flow: Position | None = None
        self.window = body.incoming_window
        self.next_id = body.next_outgoing_id
        self.transfer: Position | None = None  # the newest
        self.delivery: tuple[int, Position] | None = None  # that began last, with its id
        self.next_incoming: int | None = None
        self.end: Position | None = None


class _Direction:
    """What one peer has said of the connection as a whole."""

    def __init__(self) -> None:
        self.header: Position | None = None
        self.sasl: dict[str, Position] = {}
        self.open: Position | None = None
        self.open_body: Open | None = None
        self.close: Position | None = None
        self.newest: Position | None = None
        # Of the sessions and links that it has a half of, and of the deliveries that it sends and settles.
        self.sessions: Recent[Session, _SessionPlaces] = Recent()
        self.links: Recent[Link, _LinkPlaces] = Recent()
        self.deliveries: Recent[OpenDelivery, Position] = Recent()
        self.settled: Recent[OpenDelivery, Position] = Recent()


class Grounds10(Grounds, Listener10):
    """What an AMQP 1.0 connection's frames so far mean for the next."""

    def __init__(self) -> None:
        self._ways = (_Direction(), _Direction())
        self._conversation = Conversation10()
        self._conversation.subscribe(self)

    # What is asked

    def of(self, record: FrameRecord) -> list[Ground]:
        name = record.connection.protocol
        found = self._found(record)
        return [
            Ground(
                one.effect,
                in_its_terms(name, one.what),
                one.mark,
                tuple(in_its_terms(name, field) for field in one.fields),
            )
            for one in found
        ]

    def _found(self, record: FrameRecord) -> list[Ground]:
        way = self._ways[int(record.direction)]
        other = self._ways[1 - int(record.direction)]
        frame = record.frame
        body = body_of(frame)
        found: list[Ground] = []
        if isinstance(body, ProtocolHeader):
            add_known(found, SETS_UP, "the other peer's protocol header", other.header)
            add_known(
                found,
                SETS_UP,
                "the server has ended the SASL layer with an outcome",
                other.sasl.get("sasl-outcome"),
            )
            add_known(found, FORBIDS, "the same peer has closed the connection", way.close)
            return found
        if frame.kind == "sasl":
            for name, mark in other.sasl.items():
                effect = LIMITS if name == "sasl-mechanisms" and frame.name == "sasl-init" else SETS_UP
                add_known(found, effect, _SASL.get(name, "an earlier frame of the SASL layer"), mark)
            for name, mark in way.sasl.items():
                add_known(found, BELONGS, f"the same peer's earlier {name}", mark)
            add_known(found, SETS_UP, "the same peer has chosen the protocol layer", way.header)
            if frame.name == "sasl-init" and "sasl-mechanisms" not in other.sasl:
                found.append(Ground(LACKS, "no sasl-mechanisms was captured", None))
            return found
        if frame.kind != "amqp":
            add_known(found, BELONGS, "the previous frame of the same peer", way.newest)
            return found
        if isinstance(body, Open) or way.open is None:
            add_known(found, SETS_UP, "the same peer has chosen the protocol layer", way.header)
        add_known(found, SETS_UP, "the same peer has opened its half of the connection", way.open)
        self._limits(found, body, other)
        add_known(found, FORBIDS, "the same peer has closed the connection: nothing may follow", way.close)
        add_known(
            found, FORBIDS, "the other peer has closed the connection: only a close may follow", other.close
        )
        if way.open is None and not isinstance(body, Open):
            found.append(Ground(LACKS, "no open of the same peer was captured before", None))
        if isinstance(body, (Open, Close)) or frame.name in ("undecodable", "empty"):
            return found
        session = self._session(record)
        half = None if session is None else way.sessions.get(session)
        if isinstance(body, Begin):
            self._of_begin(found, record, body, half)
            return found
        if half is None or session is None:
            what = f"no begin of the same peer was captured on channel {frame.channel}"
            return [*found, Ground(LACKS, what, None, ("channel",))]
        theirs = other.sessions.get(session)
        add_known(
            found,
            SETS_UP,
            f"the same peer has begun the session on channel {frame.channel}",
            half.begin,
            ("channel",),
        )
        if theirs is not None:
            add_known(found, SETS_UP, "the other peer has begun its half of the session", theirs.begin)
        add_known(
            found,
            FORBIDS,
            "the same peer has ended the session: nothing may follow on the channel",
            half.end,
            ("channel",),
        )
        if theirs is not None:
            add_known(
                found, FORBIDS, "the other peer has ended the session: only an end may follow", theirs.end
            )
        if isinstance(body, Attach):
            self._of_attach(found, record, body, theirs)
        elif isinstance(body, Disposition):
            self._of_disposition(found, record, body)
        elif isinstance(body, (Transfer, Flow, Detach)):
            self._on_link(found, record, body, half, theirs)
        return found

    def _limits(self, found: list[Ground], body: object, other: _Direction) -> None:
        """What the other peer's open limits."""
        if other.open is None or other.open_body is None:
            return
        parts = []
        size = other.open_body.max_frame_size
        parts.append("no max-frame-size" if size is None else f"max-frame-size {size}")
        limiting = size is not None
        if isinstance(body, Begin):
            most = other.open_body.channel_max
            limiting = limiting or most is not None
            parts.append("no channel-max" if most is None else f"channel-max {most}")
        idle = other.open_body.idle_time_out
        if idle:
            parts.append(f"idle-time-out {idle} ms")
            limiting = True
        what = f"the other peer has opened its half of the connection, with {', '.join(parts)}"
        fields = ("max-frame-size", "channel-max", "idle-time-out-ms")
        found.append(Ground(LIMITS if limiting else SETS_UP, what, other.open, fields))

    def _of_begin(
        self, found: list[Ground], record: FrameRecord, body: Begin, half: _SessionPlaces | None
    ) -> None:
        other = self._ways[1 - int(record.direction)]
        if half is not None and half.end is None:
            add_known(
                found,
                FORBIDS,
                "the same peer has begun a session on this channel, which has not ended",
                half.begin,
                ("channel",),
            )
        elif half is not None:
            add_known(found, SETS_UP, "the same peer has ended the previous session on the channel", half.end)
        for what, session in (
            ("the begin that this begin answers", self._conversation.answered_by(record, body)),
            (
                "a begin of the other peer that is not answered yet",
                self._conversation.unanswered_by(record, body),
            ),
        ):
            theirs = None if session is None else other.sessions.get(session)
            if theirs is not None:
                add_known(found, SETS_UP, what, theirs.begin)

    def _of_attach(
        self, found: list[Ground], record: FrameRecord, body: Attach, theirs: _SessionPlaces | None
    ) -> None:
        way, other = self._ways[int(record.direction)], self._ways[1 - int(record.direction)]
        if theirs is not None and theirs.body.handle_max is not None:
            what = f"the other peer limits handles to {theirs.body.handle_max}"
            add_known(found, LIMITS, what, theirs.begin, ("handle-max",))
        by_handle = self._conversation.link_of(record)
        in_use = None if by_handle is None else way.links.get(by_handle)
        if by_handle is not None and in_use is not None:
            if in_use.detach is None:
                what = (
                    f"the same peer has attached {name_text(by_handle.name)} with this handle, and has not "
                    "detached the link"
                )
                add_known(found, FORBIDS, what, in_use.attach, ("handle",))
            else:
                what = "the same peer has released the handle"
                add_known(found, SETS_UP, what, in_use.detach, ("handle",))
        by_name, at_other_end = self._conversation.named_by(record, body)
        own = None if by_name is None else way.links.get(by_name)
        if own is not None and own is not in_use:
            what = (
                "the same peer attached a link of this name before"
                if own.detach
                else "the same peer has attached a link of this name"
            )
            add_known(found, SETS_UP if own.detach else FORBIDS, what, own.attach)
            add_known(found, SETS_UP, "the same peer has detached this link", own.detach)
        peer = None if at_other_end is None else other.links.get(at_other_end)
        if peer is not None:
            add_known(found, SETS_UP, "the other peer has attached its end of the link", peer.attach)
            add_known(found, SETS_UP, "the other peer has detached its end of the link", peer.detach)

    def _on_link(
        self,
        found: list[Ground],
        record: FrameRecord,
        body: Transfer | Flow | Detach,
        half: _SessionPlaces,
        theirs: _SessionPlaces | None,
    ) -> None:
        way, other = self._ways[int(record.direction)], self._ways[1 - int(record.direction)]
        named = self._conversation.link_of(record)
        link = None if named is None else way.links.get(named)
        if isinstance(body, (Transfer, Flow)) and theirs is not None:
            self._window(found, half, theirs, isinstance(body, Transfer))
        if named is None or link is None:
            if body.handle is not None:
                what = f"no attach of the same peer with handle {body.handle} was captured"
                found.append(Ground(LACKS, what, None, ("handle",)))
                for one in self._conversation.attached_by(record)[:_OTHERS_LINK]:
                    places = way.links.get(one)
                    if places is not None:
                        what = f"the same peer has attached link {name_text(one.name)} with another handle"
                        add_known(found, SETS_UP, what, places.attach)
            return
        what = (
            f"the same peer has attached link {name_text(named.name)} with this handle, as "
            f"{link.role}{link.modes}"
        )
        effect = GRANTS if isinstance(body, Transfer) else SETS_UP
        add_known(found, effect, what, link.attach, ("handle", *_MODES))
        peer = other.links.get(named)
        if peer is not None:
            what = f"the other peer has attached its end of the link{peer.modes}"
            add_known(found, SETS_UP, what, peer.attach, _MODES)
        add_known(found, FORBIDS, "the same peer has detached the link", link.detach)
        if isinstance(body, Transfer):
            if peer is not None and peer.flow is not None:
                drain = "; drain is set" if peer.drain else ""
                what = f"link credit {peer.credit}{drain}"
                add_known(found, GRANTS, what, peer.flow, ("link-credit", "delivery-count"))
            else:
                found.append(Ground(LACKS, "no flow that grants credit on the link was captured", None))
            if half.delivery is not None and body.delivery_id is not None:
                what = f"the previous delivery on the session: last-delivery-id {half.delivery[0]}"
                add_known(found, BELONGS, what, half.delivery[1], ("last-delivery-id", "delivery-id"))
            add_known(found, BELONGS, "the delivery that is under way on the link", link.first)
            if link.last is not None and link.last != link.first:
                add_known(found, BELONGS, "the previous transfer on the link", link.last)
        elif (
            isinstance(body, Flow)
            and peer is None
            and link.role == "receiver"
            and body.delivery_count is not None
        ):
            what = (
                "the flow contains the delivery-count of the sender, but no attach of the sender was captured"
            )
            found.append(Ground(LACKS, what, None))
        elif isinstance(body, Flow) and peer is not None:
            add_known(found, BELONGS, "the newest flow of the other peer on the link", peer.flow)
            add_known(found, BELONGS, "the newest transfer on the link", peer.last or link.last)
        if peer is not None:
            what = "the other peer has detached its end of the link: only a detach may follow"
            add_known(found, FORBIDS, what, peer.detach)

    def _window(
        self, found: list[Ground], half: _SessionPlaces, theirs: _SessionPlaces, grants: bool
    ) -> None:
        """What the session's windows say."""
        window = "no" if theirs.window is None else str(theirs.window)
        if theirs.flow is None:
            what = f"an incoming-window of {window} from the first transfer on"
            add_known(found, GRANTS if grants else SETS_UP, what, theirs.begin, ("remote-incoming-window",))
        else:
            from_id = "" if theirs.next_incoming is None else f" from transfer-id {theirs.next_incoming} on"
            what = f"an incoming-window of {window}{from_id}"
            add_known(found, GRANTS if grants else SETS_UP, what, theirs.flow, ("remote-incoming-window",))
        if not grants:
            add_known(found, BELONGS, "the previous flow of the same peer", half.flow)
            what = f"the newest transfer of the same peer: next-outgoing-id is {half.next_id}"
            add_known(found, BELONGS, what, half.transfer, ("next-outgoing-id",))
            what = f"the newest transfer of the other peer: its next-outgoing-id is {theirs.next_id}"
            add_known(found, BELONGS, what, theirs.transfer)

    def _of_disposition(self, found: list[Ground], record: FrameRecord, body: Disposition) -> None:
        if body.first is None or body.role is None:
            return
        way = self._ways[int(record.direction)]
        sender = self._ways[1 - int(record.direction)] if body.role else way
        last = body.first if body.last is None else body.last
        named = [("first", body.first)] if last == body.first else [("first", body.first), ("last", last)]
        links: list[object] = []
        for which, number in named:
            delivery = self._conversation.delivery_of(record, body, number)
            mark = None if delivery is None else sender.deliveries.get(delivery)
            if delivery is None or mark is None:
                by = "the other peer" if body.role else "the same peer"
                what = f"no delivery-id {number} of {by} was captured on the session"
                found.append(Ground(LACKS, what, None, ("delivery-id",)))
                continue
            what = (
                f"delivery-id {number}"
                if len(named) == 1
                else f"delivery-id {number}, the {which} in the disposition"
            )
            add_known(found, GRANTS, what, mark, ("delivery-id",))
            link = None if delivery.link is None else sender.links.get(delivery.link)
            if delivery.link is not None and link is not None and link not in links:
                links.append(link)
                add_known(found, SETS_UP, f"link {name_text(delivery.link.name)} was attached", link.attach)
            what = f"the same peer had already settled delivery-id {number}"
            add_known(found, FORBIDS, what, way.settled.get(delivery), ("delivery-id",))

    def of_end(self, direction: int, by_client: bool) -> list[Ground]:
        way, other = self._ways[direction], self._ways[1 - direction]
        found: list[Ground] = []
        add_known(found, SETS_UP, "the same peer has opened its half of the connection", way.open)
        add_known(found, SETS_UP, "the other peer has opened its half of the connection", other.open)
        add_known(found, GRANTS, "the same peer has closed the connection", way.close)
        add_known(found, SETS_UP, "the other peer has closed its half of the connection", other.close)
        if way.open is not None and way.close is None:
            found.append(Ground(LACKS, "no close of the same peer was captured before", None))
        if way.newest is not None and way.newest != way.close:
            found.append(Ground(BELONGS, "the last frame of the stream", way.newest))
        return found

    def subject(self, record: FrameRecord) -> str:
        body = body_of(record.frame)
        if isinstance(body, Attach):
            return body.name or ""
        link = self._conversation.link_of(record)
        return "" if link is None else link.name

    def _session(self, record: FrameRecord) -> Session | None:
        """The session that the channel of a frame stands for, or stood for before its end."""
        half = self._conversation.half_of(record)
        return None if half is None else half.session

    def watch(self, record: FrameRecord) -> AnswerWatch:
        return AnswerWatch10(record, self._conversation)

    # What is reported

    def take(self, record: FrameRecord) -> None:
        self._way(record).newest = Position.of(record)
        self._conversation.take(record)

    def _way(self, record: FrameRecord) -> _Direction:
        return self._ways[int(record.direction)]

    def header(self, record: FrameRecord, body: ProtocolHeader) -> None:
        if self._way(record).close is not None:
            self._ways = (_Direction(), _Direction())
            self._way(record).newest = Position.of(record)
        self._way(record).header = Position.of(record)

    def sasl(self, record: FrameRecord) -> None:
        self._way(record).sasl[record.frame.name] = Position.of(record)

    def opened(self, record: FrameRecord, body: Open) -> None:
        way = self._way(record)
        way.open, way.open_body = Position.of(record), body

    def closed(self, record: FrameRecord, body: Close) -> None:
        way = self._way(record)
        way.close = way.close or Position.of(record)

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        self._way(record).sessions.put(session, _SessionPlaces(Position.of(record), body))

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        half = self._way(record).sessions.get(session)
        if half is not None:
            half.end = Position.of(record)

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        mark = Position.of(record)
        half = self._way(record).sessions.get(session)
        if half is not None:
            half.flow = mark
            half.window, half.next_incoming = body.incoming_window, body.next_incoming_id
        places = None if link is None else self._way(record).links.get(link)
        if places is not None and body.link_credit is not None:
            places.flow = mark
            count = "" if body.delivery_count is None else f" from delivery-count {body.delivery_count} on"
            places.credit = f"{body.link_credit}{count}"
            places.drain = body.drain is True

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        self._way(record).links.put(link, _LinkPlaces(Position.of(record), body))

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        places = self._way(record).links.get(link)
        if places is not None:
            places.detach = Position.of(record)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if body.settled:
            mark = Position.of(record)
            for delivery in deliveries:
                self._way(record).settled.put(delivery, mark)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        way, mark = self._way(record), Position.of(record)
        half = way.sessions.get(delivery.session)
        if half is not None:
            half.transfer = mark
            if half.next_id is not None:
                half.next_id = (half.next_id + 1) & 0xFFFFFFFF
            if body.delivery_id is not None:
                half.delivery = (body.delivery_id, mark)
        if way.deliveries.get(delivery) is None:
            way.deliveries.put(delivery, mark)
        link = None if delivery.link is None else way.links.get(delivery.link)
        if link is not None:
            link.last = mark
            link.first = None if delivery.complete or delivery.aborted else (link.first or mark)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.delivery_started(record, body, delivery)


_SASL = {
    "sasl-mechanisms": "the server offers SASL mechanisms",
    "sasl-init": "the client has chosen the SASL mechanism",
    "sasl-challenge": "the server asks for a response",
    "sasl-response": "the client responds to a challenge",
    "sasl-outcome": "the server has ended the SASL layer",
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
