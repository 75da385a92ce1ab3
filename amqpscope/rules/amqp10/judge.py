"""The order in which rules judge a frame: from the connection down to the delivery.

One fault, one finding. A frame that already broke a rule of an outer layer is not judged by the layers
inside it: a transfer on a channel without a session has no window to exceed.
"""

from collections.abc import Callable
from typing import Any, Final

from amqpscope.limits import MAX_CONDITION
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord, FrameRef
from amqpscope.rules.amqp10 import (
    attachment,
    condition,
    connection,
    content,
    control_link,
    coordinator,
    delivery,
    ending,
    filtering,
    framing,
    idle,
    link,
    message,
    negotiation,
    not_resumed,
    outcome,
    reaction,
    redelivery,
    refusal,
    resumed_receipt,
    sasl,
    session,
    settlement,
    terminus,
    tls,
    transaction,
    transactional_work,
    window,
)
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.fields import RULES as _OF_FIELDS  # noqa: F401
from amqpscope.rules.amqp10.proof import prove
from amqpscope.rules.context import Contexts
from amqpscope.rules.declaration import DECLARED
from amqpscope.rules.judge import NO_RECORD, Judge
from amqpscope.rules.overdue import Overdue
from amqpscope.rules.peer_error import PeerError
from amqpscope.rules.profiles import LONGEST, MOST_PROPERTIES
from amqpscope.tracking.amqp10.control import Transaction
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.legibility import ALL, NOTHING, doubted, obscure
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.receiving import named_by
from amqpscope.tracking.amqp10.snapshot import take_snapshot
from amqpscope.tracking.amqp10.summary import Amqp10Summary
from amqpscope.tracking.amqp10.transaction_names import attaches_control
from amqpscope.tracking.amqp10.transactions import Ledger
from amqpscope.tracking.clock import ClockStepGuard
from amqpscope.tracking.correlation_budget import CorrelationBudget
from amqpscope.tracking.knowledge import CONNECTION
from amqpscope.tracking.snapshot import ConnectionSnapshot
from dissectors.amqp10.frame import ProtocolHeader, holds_frame
from dissectors.amqp10.message import Message
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
from dissectors.amqp10.transactions import Declared
from dissectors.amqp10.types import SIZE_FAULTS
from dissectors.amqp10.values import Map, Raw
from dissectors.foreign import FOREIGN
from dissectors.interface import Problem
from dissectors.tls import TlsHello
from dissectors.wire import i64

__all__ = ["Judge10"]


class Judge10(Judge):
    """Replays one connection as two endpoints and judges each frame before it is applied.

    allowance: of messages that are kept for other connections, shared with them; None for its own.
    """

    def __init__(
        self,
        connection: Connection,
        findings: list[Finding],
        contexts: Contexts | None,
        allowance: CorrelationBudget | None = None,
    ) -> None:
        self.case: Case10 = Case10(connection)
        super().__init__(connection, findings, self.case.findings, contexts)
        self.client: Endpoint10 = Endpoint10(CLIENT, allowance)
        self.server: Endpoint10 = Endpoint10(SERVER, allowance)
        self.follow()

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection, in the order of the analysis."""
        case = self.case
        if record.direction == self.connection.client:
            me = self.client
            peer = self.server
        else:
            me = self.server
            peer = self.client
        me.turn_to(record.frame)
        processed = me.knowledge.must
        me.catch_up(record.acknowledged, peer.sent_end)
        me.prove(record)
        case.pace.saw(record.time)
        if case.ledger.active:
            case.ledger.prove(me, record.frame.body)
        case.record = record
        case.me = me
        case.peer = peer
        case.session = None
        case.link = None
        case.found = 0
        case.astray = NOTHING
        frame = record.frame
        if me.closing.guessed and not isinstance(frame.body, ProtocolHeader):
            # More follows: it was the content of a message.
            me.closing.disbelieve()
            peer.closing.received = False
        if (record.unseen or not record.started) and me.whole:
            # The missing octets lie before this frame, even if the capture reports them later.
            me.lost()
        if frame.missing > 0 and frame.payload_size == 0:
            # Fields may not have been captured, so the effect of the frame is unknown.
            me.lost()
        error: PeerError | None = None
        if isinstance(frame.body, (Close, End, Detach)):
            error = self.error(me, record, processed)
            if error is not None:
                self.answered(error)
        if me.pending_errors:
            reaction.judge_answers(case)
        self.judge(case, record)
        if case.found > 0:
            for finding in self.made[len(self.made) - case.found :]:
                reaction.owe_for(case, finding)
            self.found_of(case.found, error)
        if frame.problems:
            if frame.kind == "skipped" and frame.missing == 0:
                case.lose_track(record.direction)
            if frame.garbled():
                case.misread(frame, record.direction)
        self.saw(record, case.found)
        if frame.dialect and not self.expects(frame.dialect):
            # What a frame says in another dialect is not followed.
            record = record.with_frame(frame.with_body(Raw(b"")))
        if case.ledger.active or attaches_control(frame.body):
            if not case.ledger.active:
                case.ledger = Ledger()
            case.ledger.apply(me, record)
        unread = case.astray
        if frame.problems or frame.kind == "sasl" or me.layer == "SASL":
            unread = max(unread, doubted(frame, me.layer))
        if unread > NOTHING or (frame.problems and obscure(frame)):
            self.send_unread(me, record, unread)
        else:
            me.send(record)
        peer.deliver(record, unread)
        # The frame refers to the reader's buffer, which an idle connection would otherwise keep in memory.
        case.record = NO_RECORD

    def link_end(self) -> LinkEnd | None:
        case = self.case
        body = case.record.frame.body
        if case.link is None and isinstance(body, Detach):
            session = case.session
            return None if session is None or body.handle is None else session.handles.get(body.handle)
        return case.link

    def error(self, me: Endpoint10, record: FrameRecord, processed: i64) -> PeerError | None:
        """The error of a frame and its reason; None if the frame has no error.

        A close without an error counts as an error, because it may be the reaction to a fault. It does not if
        it answers the other peer's close. processed: octets of the other peer that the sender's earlier
        frames show to be processed.
        """
        body = record.frame.body
        if not isinstance(body, (Close, End, Detach)):
            return None
        said = body.error
        if said is None and (me.closing.received or not isinstance(body, Close)):
            return None
        condition = "" if said is None or said.condition is None else str(said.condition)[:MAX_CONDITION]
        read = record.acknowledged if record.acknowledged < 0 else me.knowledge.could
        error = PeerError(
            record.peer, record.frame.name, condition, record.packet, record.time, read, processed
        )
        if isinstance(body, Close):
            return error
        session = me.session_on(record.frame.channel)
        if session is None or session.peer_channel == UNKNOWN:
            return error
        error.channel = session.peer_channel
        if isinstance(body, Detach) and body.handle is not None:
            link = session.handles.get(body.handle)
            if link is not None:
                error.link = link.name
                error.link_sender = me.peer if link.sender else self.connection.peer(1 - record.direction)
        return error

    def send_unread(self, me: Endpoint10, record: FrameRecord, unread: i64) -> None:
        """Process a frame that could not be read completely, or that names nothing that exists: later frames
        of this endpoint may depend on it.

        Later frames of the peer may depend on it, too, once the peer can have received the frame.
        """
        frame = record.frame
        session = me.session_on(frame.channel)
        link = None if session is None else named_by(session.handles, frame.body)
        me.send(record)
        # A begin or an attach concerns what it has set up; an end or a detach, what it found.
        session = me.session_on(frame.channel) or session
        if session is not None:
            link = named_by(session.handles, frame.body) or link
        me.blur(unread, session, link)

    def answers(self, finding: Finding, error: PeerError) -> bool:
        """Whether an error is a reaction to a finding.

        An end reacts to faults of its session, a detach to faults of its link and to faults of no link. No
        error reacts to a frame that its sender cannot have received. Only a close for silence reacts to a
        silence. A fault without a demanded answer that its receiver processed gets no reaction.
        """
        if finding.since < finding.time:
            return error.name == "close" and error.condition in _OF_SILENCE
        if 0 <= error.read <= finding.offset and finding.frame != _END:
            return False
        if error.processed > finding.offset and not DECLARED[finding.rule].answer:
            return False
        if error.name == "close":
            return True
        if finding.frame in ("header", "open") or finding.frame.startswith("sasl-"):
            return False
        if 0 <= finding.channel != error.channel >= 0:
            return False
        if error.name == "detach":
            if error.condition in _OF_A_LINK and not finding.link and finding.frame != "attach":
                return False
            if finding.frame == "begin":
                return False
            if finding.link and error.link_sender:
                return finding.link == error.link and finding.link_sender == error.link_sender
        return True

    def end(
        self, direction: i64, reason: str, packet: i64, time: i64, acknowledged: i64, after_peer: bool
    ) -> None:
        case = self.case
        if direction == self.connection.client:
            me = self.client
            peer = self.server
        else:
            me = self.server
            peer = self.client
        me.catch_up(acknowledged, peer.sent_end)
        me.knowledge.of(CONNECTION)
        case.spot = FrameRef(direction, packet, time, me.sent_end, _END, -1)
        case.me = me
        case.peer = peer
        case.session = None
        case.link = None
        case.found = 0
        if not me.draft and not peer.draft:
            ending.judge_end(case, reason, after_peer)
            content.judge_ids(case)
            transactional_work.judge_end(case, reason)
            outcome.judge_end(case, reason)
        self.found_of(case.found, None)
        if self.context is not None:
            self.context.ended(self.made[len(self.made) - case.found :])
        case.spot = None

    def follow(self) -> None:
        """Let both endpoints know when they could not write, as it goes on with the connection's TCP."""
        connection = self.connection
        self.client.stalls, self.server.stalls = connection.stalls
        if connection.client == 1:
            self.server.stalls, self.client.stalls = connection.stalls

    def doubt(self, doubtful: bool) -> None:
        self.case.doubtful = doubtful

    def overdue(self, now: i64) -> list[Overdue]:
        found: list[Overdue] = []
        for me, peer in ((self.client, self.server), (self.server, self.client)):
            late = idle.overdue(self.connection, me, peer, now)
            if late is not None:
                found.append(late)
        return found

    def finish(self) -> None:
        self.client.leave(self.server.sent_end)
        self.server.leave(self.client.sent_end)
        super().finish()

    def left(self) -> Amqp10Summary | None:
        first, second = self.client, self.server
        if self.connection.client != 0:
            first, second = second, first
        if (
            not first.messages.accounts
            and not second.messages.accounts
            and not first.messages.digests
            and not second.messages.digests
        ):
            return None
        containers = (_container(first), _container(second))
        if "" in containers:
            return None
        return Amqp10Summary(
            self.connection,
            containers,
            max(first.stream.last_time, second.stream.last_time),
            first.whole and second.whole and first.legible and second.legible,
            (list(first.messages.accounts.values()), list(second.messages.accounts.values())),
            (first.messages.digests, second.messages.digests),
            (first.messages.complete, second.messages.complete),
        )

    def introduction(self, peer: str) -> object:
        return self.client.open if peer == CLIENT else self.server.open

    def introduction_missed(self, peer: str) -> bool:
        one = self.client if peer == CLIENT else self.server
        if one.open is None:
            return not one.whole
        odd = one.open.odd
        return odd is not None and (_CONTAINER_ID in odd or _PROPERTIES in odd)

    def product(self, introduction: object) -> dict[str, str]:
        said: dict[str, str] = {}
        if not isinstance(introduction, Open):
            return said
        if isinstance(introduction.properties, Map):
            for name, value in introduction.properties.pairs[:MOST_PROPERTIES]:
                if isinstance(name, str) and isinstance(value, str):
                    said.setdefault(str(name), value[:LONGEST])
        if introduction.container_id is not None:
            said["container-id"] = introduction.container_id[:LONGEST]
        return said

    def endpoint(self, direction: i64) -> Endpoint10:
        return self.client if direction == self.connection.client else self.server

    def snapshot(self) -> ConnectionSnapshot:
        return self.introduced(take_snapshot(self.client, self.server), self.client.open, self.server.open)

    def dump(self) -> tuple[object, ...]:
        return (
            self.client.dump(),
            self.server.dump(),
            self.case.ledger.dump() if self.case.ledger.active else None,
            self.case.pace.dump(),
            tuple(finding.dump() for finding in self.made),
            (tuple(sorted(self.case.reported)), self.case.garbled),
            tuple(error.dump() for error in self.errors),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> "Judge10":
        """A judge that goes on where `dump` left off."""
        judge = Judge10(connection, findings, None)
        judge.restore(state)
        return judge

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` returned."""
        client, server, ledger, pace, made, reported, errors = state
        self.client = Endpoint10.load(client)
        self.server = Endpoint10.load(server)
        self.follow()
        if ledger is not None:
            self.case.ledger = Ledger.load(ledger)
        self.case.pace = ClockStepGuard.load(pace)
        self.made += [Finding.load(finding, self.connection) for finding in made]
        self.case.reported = frozenset(reported[0])
        self.case.garbled = reported[1]
        self.errors = [PeerError.load(error) for error in errors]

    def expects(self, dialect: str) -> bool:
        """Whether the connection's peers speak this dialect, as far as they agree."""
        return False

    def judge(self, case: Case10, record: FrameRecord) -> None:
        """Judge the frame by the rules."""
        frame = record.frame
        body = frame.body
        if frame.assumed:
            # What it says, and what any frame of the connection says since, only its sender knows.
            case.me.draft = True
        if case.me.draft or case.peer.draft:
            return
        if frame.dialect and not self.expects(frame.dialect):
            connection.speaks_the_draft(case)
            return
        headers = case.me.headers
        if case.me.open is not None:
            idle.judge_silence(case)
        if headers.disagreed and frame.kind != "header":
            negotiation.judge_disagreement(case)
        unparsed = headers.unparsed_end
        if 0 <= unparsed <= case.me.knowledge.could and frame.kind != "header":
            negotiation.judge_after_unparsed(case)
        said = case.message()
        if said is not None and (message.plainly_sound(said) or self.partial(case, body)):
            said = None
        if frame.problems:
            self.prove_all(case, frame.problems)
        if said is not None and said.complete:
            said.sections()
            self.prove_all(case, said.problems)
            if said.problems:
                # A transfer with too large a size swallows frames, whose effects are unknown.
                case.misread(frame, record.direction)
                if holds_frame(said.octets):
                    case.me.blur(ALL, None, None)
                    case.astray = ALL
        if frame.kind == "header":
            if isinstance(body, ProtocolHeader):
                negotiation.judge_header(case, body)
                sasl.judge_header(case, body)
            return
        if frame.kind == "sasl":
            sasl.judge_frame(case)
            return
        if frame.kind != "amqp":
            if isinstance(body, TlsHello):
                tls.judge_hello(case, body)
            return
        if case.me.layer == "SASL":
            sasl.judge_amqp_frame(case)
            return
        if not connection.judge_any(case):
            return
        if frame.missing > 0 and frame.payload_size == 0:
            # Fields that seem absent may merely not have been captured.
            return
        if frame.problems and obscure(frame):
            # This frame is not fully known either, but it needs a session in any case.
            if isinstance(body, Begin):
                session.begin_on_used_channel(case)
            elif isinstance(body, (Attach, Flow, Transfer, Disposition, Detach, End)):
                session.on_session(case)
            return
        if isinstance(body, Transfer):
            self.transfer(case, body, said)
        elif isinstance(body, Disposition):
            self.disposition(case, body)
        elif isinstance(body, Flow):
            self.flow(case, body)
        elif isinstance(body, Attach):
            self.attach(case, body)
        elif isinstance(body, Detach):
            self.detach(case, body)
        elif isinstance(body, Begin):
            session.judge_begin(case, body)
        elif isinstance(body, End):
            self.end_of_session(case, body)
        elif isinstance(body, Open):
            connection.judge_open(case, body)
        elif isinstance(body, Close):
            connection.judge_close(case, body)
            idle.judge_close(case, body)
            if body.error is not None:
                condition.judge_error(case, body.error)
                refusal.judge_close(case, body.error)

    def partial(self, case: Case10, body: object) -> bool:
        """Whether the octets that a transfer completes may be no message from its start on.

        A delivery that is resumed may carry a part of it only. Of one whose id or tag changes on the way
        nobody knows what belongs to it.
        """
        if not isinstance(body, Transfer) or body.handle is None:
            return False
        if body.resume:
            return True
        ends = case.me.session_on(case.record.frame.channel)
        attached = None if ends is None else ends.handles.get(body.handle)
        if attached is None:
            return False
        delivery = attached.open
        if delivery is None:
            return attached.mixed and not attached.whole
        return attached.mixed or delivery.resumed or attached.differences(body) > 0

    def prove_all(self, case: Case10, problems: list[Problem]) -> None:
        """Judge problems of a frame or a message, in the order in which its octets were read.

        Where a value ends at an unknown place, what the octets behind it seem to be follows from that. Text
        with octets that are none may have swallowed the next values.
        """
        lost = False
        for problem in problems:
            if not lost or not problem.code.startswith(_OF_VALUES):
                self.proved(case, problem)
            lost = lost or problem.code in SIZE_FAULTS or problem.code in _OF_TEXT

    def proved(self, case: Case10, problem: Problem) -> None:
        """Judge a problem that the dissector found by its rule, unless no peer is at fault."""
        if problem.code == FOREIGN:
            framing.stream_of_another_protocol(case, problem)
            return
        rule = f"amqp10/{problem.code}"
        judged = _JUDGED.get(rule)
        if judged is not None:
            judged(case, problem)
        else:
            prove(case, rule, problem)

    def transfer(self, case: Case10, body: Transfer, said: Message | None) -> None:
        """A transfer: its session's rules, its link's, its delivery's, its message's.

        said: the message it completes, if that has to be decoded.
        """
        delivery.judge_transfer_alone(case, body)
        ends = session.on_session(case)
        if ends is None:
            return
        case.session = ends
        window.judge_transfer(case, ends)
        if body.handle is None:
            return
        attached = ends.handles.get(body.handle)
        if attached is None:
            link.transfer_on_unattached_handle(case, ends, body.handle)
            return
        case.link = attached
        link.judge_transfer(case, attached, body)
        delivery.judge_transfer(case, ends, attached, body)
        if attached.coordinator:
            control_link.judge_transfer(case, ends, attached, body)
        else:
            transaction.judge_transfer(case, ends, attached, body)
        if case.ledger.active:
            transactional_work.judge_transfer(case, ends, attached, body)
        whole = case.message()
        if (
            whole is not None
            and case.me.messages.complete
            and case.me.messages.fates
            and not self.partial(case, body)
        ):
            redelivery.judge_message(case, ends, attached, whole)
        if said is not None:
            message.judge_message(case, said)
        if attached.filters and whole is not None and whole.complete:
            filtering.judge_message(case, attached, whole)

    def disposition(self, case: Case10, body: Disposition) -> None:
        """Judge a disposition by the rules of transactions and of deliveries."""
        settlement.judge_disposition_alone(case, body)
        ends = session.on_session(case)
        if ends is None:
            return
        case.session = ends
        meant: Transaction | None = None
        if body.role and body.state is not None:
            meant = transaction.judge_disposition(case, ends, body)
        if case.ledger.active and case.found == 0:
            transactional_work.judge_disposition(case, ends, body, meant)
        if body.role and case.found == 0 and (case.ledger.active or isinstance(body.state, Declared)):
            coordinator.judge_disposition(case, ends, body)
        if case.peer.messages.reserved:
            refusal.judge_disposition(case, ends, body)
        settlement.judge_disposition(case, ends, body)

    def flow(self, case: Case10, body: Flow) -> None:
        """Judge a flow by the rules of its session and of its link."""
        session.judge_flow_alone(case, body)
        ends = session.on_session(case)
        if ends is None:
            return
        case.session = ends
        session.judge_flow(case, ends, body)
        if body.handle is None:
            return
        attached = ends.handles.get(body.handle)
        if attached is None:
            link.flow_on_unattached_handle(case, ends, body.handle)
            return
        case.link = attached
        link.judge_flow(case, attached, body)
        if body.properties is not None and not attached.sender:
            transaction.judge_flow(case, ends, body)

    def attach(self, case: Case10, body: Attach) -> None:
        """Judge an attach by itself, and by the rules of its session, link and termini."""
        link.judge_attach_alone(case, body)
        terminus.judge_attach(case, body)
        control_link.judge_attach(case, body)
        ends = session.on_session(case)
        if ends is None:
            return
        case.session = ends
        session.judge_attach(case, ends, body)
        link.judge_attach(case, ends, body)
        resumed_receipt.judge_attach(case, ends, body)
        terminus.judge_request(case, ends, body)
        terminus.judge_kept(case, ends, body)

    def detach(self, case: Case10, body: Detach) -> None:
        """Judge a detach by the rules of its link and of its error."""
        ends = session.on_session(case)
        if ends is not None:
            case.session = ends
            if body.handle is not None and body.handle not in ends.handles:
                link.detach_on_unattached_handle(case, ends, body.handle)
            elif body.error is None and body.closed and body.handle is not None:
                not_resumed.judge_leaving(case, ends, body.handle)
            elif body.error is not None and body.handle is not None:
                refusal.judge_detach(case, ends, ends.handles[body.handle], body.error)
            attachment.judge_detach(case, ends, body)
        if body.error is not None:
            condition.judge_error(case, body.error)

    def end_of_session(self, case: Case10, body: End) -> None:
        """Judge an end by the open work of its session and by its error."""
        ends = session.on_session(case)
        if ends is not None:
            case.session = ends
            ending.judge_end_of_session(case, ends)
            if body.error is not None:
                condition.judge_error_of_end(case, ends, body.error)
        if body.error is not None:
            condition.judge_error(case, body.error)


# The problems of values, of fields, and of a message that does not consist of sections.
_OF_VALUES: Final = ("T-", "P-", "M-PAYLOAD-WHOLE")

# Those of text whose octets are none.
_OF_TEXT: Final = ("T-SYM-ASCII", "T-STR-UTF8", "T-STR-UTF16", "T-STR-NO-UTF16")

# The name that a finding about the end of a stream has in place of a frame's name.
_END: Final = "end of stream"

# Fields of an open that name the product.
_CONTAINER_ID: Final = 0
_PROPERTIES: Final = 9

# The conditions of a close whose reason may be a silence; a close without an error may be one, too.
_OF_SILENCE: Final = ("", "amqp:resource-limit-exceeded", "amqp:connection:forced")

# Conditions of a detach that concern its link, whatever else was sent on the session.
_OF_A_LINK: Final = ("amqp:link:stolen", "amqp:link:detach-forced", "amqp:link:redirect")

# Rules whose problems need more than the octets to judge; `fields` is imported for its declarations.
_JUDGED: Final[dict[str, Callable[[Case10, Problem], None]]] = {**framing.PROBLEMS, **control_link.PROBLEMS}


def _container(end: Endpoint10) -> str:
    """An endpoint's container-id, "" if its open was not captured."""
    if end.open is None or end.open.container_id is None:
        return ""
    return end.open.container_id
