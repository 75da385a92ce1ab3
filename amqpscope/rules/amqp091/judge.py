"""Which rules judge a frame of AMQP 0-9-1, and in which order: from the frame itself to its meaning.

One fault gives one finding. If a frame breaks a rule of an outer layer, the rules of the inner layers do not
judge it: a method on a channel that is not open has no consumer to cancel.
"""

from collections.abc import Callable
from typing import Any, Final

from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord, FrameRef
from amqpscope.rules.amqp091 import (
    basic,
    blocked,
    closing,
    complaint,
    content_frames,
    exchange,
    flow,
    framing,
    heartbeat,
    negotiation,
    opening,
    queue,
    reaction,
    refusal,
    requests,
    set_up_refused,
    sizes,
    types,
    values,
)
from amqpscope.rules.amqp091 import channel as channel_rules
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.proof import prove
from amqpscope.rules.context import Context, Contexts
from amqpscope.rules.declaration import DECLARED
from amqpscope.rules.judge import NO_RECORD, Judge
from amqpscope.rules.overdue import Overdue
from amqpscope.rules.peer_error import FIN, RST, PeerError
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.connection_view import CONNECTION_CLASS, PeerProperties
from amqpscope.tracking.amqp091.endpoint import ALL, NOTHING, Endpoint091, as_read, out_of_order, unreadable
from amqpscope.tracking.amqp091.snapshot import take_snapshot
from amqpscope.tracking.amqp091.states import OPEN
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.amqp091.topology_log import TopologyLog
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from amqpscope.tracking.clock import ClockStepGuard
from amqpscope.tracking.correlation_budget import CorrelationBudget
from amqpscope.tracking.snapshot import ConnectionSnapshot
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import (
    HAS_HEADERS,
    HAS_RESERVED,
    HAS_TIMESTAMP,
    BasicDeliver,
    BasicPublish,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlowOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionUnblocked,
    ConnectionUpdateSecret,
)
from dissectors.amqp091.registry import new_method
from dissectors.interface import Frame, Problem
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["Judge091"]

# Classes of methods.
_EXCHANGE: Final = 40
_QUEUE: Final = 50


class Judge091(Judge):
    """Replays one connection as two endpoints and judges each frame before it is applied."""

    def __init__(
        self,
        connection: Connection,
        findings: list[Finding],
        contexts: Contexts | None,
        allowance: CorrelationBudget | None = None,
    ) -> None:
        self.case: Case091 = Case091(connection)
        super().__init__(connection, findings, self.case.findings, contexts)
        self.client: Endpoint091 = Endpoint091(CLIENT)
        self.server: Endpoint091 = Endpoint091(SERVER)
        self.follow()
        # A stream ended.
        self.over: bool = False
        self.topology_log: TopologyLog = TopologyLog(connection, allowance or CorrelationBudget())
        # Where the streams ended, the client's first; None if only the capture ended.
        self.ends: list[FrameRef | None] = []

    def take(self, record: FrameRecord) -> None:
        case = self.case
        if record.direction == self.connection.client:
            me = self.client
            peer = self.server
        else:
            me = self.server
            peer = self.client
        processed = me.knowledge.must
        me.catch_up(record.acknowledged, peer.sent_end)
        me.prove(record)
        case.pace.saw(record.time)
        frame = record.frame
        case.record = record
        case.me = me
        case.peer = peer
        case.view = me.view
        case.channel = None
        case.name = frame.name
        case.found = 0
        case.astray = NOTHING
        blind = record.unseen or not record.started or (peer.frames == 0 and record.acknowledged > 0)
        if blind and not me.view.blind:
            # Missing or unreadable octets lie before this frame, whenever the capture reports them.
            me.lost()
        me.view.blind = blind
        error: PeerError | None = None
        if isinstance(frame.body, (ConnectionClose, ChannelClose)):
            error = self.error(me, record, processed)
            if error is not None:
                self.answered(error)
        self.judge(case, record)
        if case.found > 0:
            closing.note_framing(case)
            self.found_of(case.found, error)
        if frame.problems and frame.garbled():
            case.misread(frame, record.direction)
        self.saw(record, case.found)
        self.topology_log.take(record)
        if self.context is not None:
            for operation in self.topology_log.settled:
                self.surround(self.context, operation)
        publish = me.published(record)
        me.send(record, publish)
        peer.deliver(record, publish)
        if case.astray != NOTHING or (frame.problems and out_of_order(frame)):
            peer.deliver_disorder(record, case.astray == ALL)
        # The frame lies in the reader's buffer. A connection that sends nothing more would keep this buffer.
        case.record = NO_RECORD

    def surround(self, context: Context, operation: TopologyOperation) -> None:
        """Give a request that is answered the frames around it, and around its answer, for later findings."""
        allowance = self.topology_log.allowance
        if allowance.may_excerpt(operation.outcome.refused):
            allowance.excerpts -= 1
            operation.around = context.around(operation.spot)[0]
            answer = operation.outcome.answer
            if answer is not None:
                operation.outcome.around = context.around(answer)[0]

    def error(self, me: Endpoint091, record: FrameRecord, processed: i64) -> PeerError | None:
        """The error in a close, and what it is for; None if the close has no error.

        processed: how many octets of the other peer the closing peer had proved to have processed before.
        """
        body = record.frame.body
        if not isinstance(body, (ConnectionClose, ChannelClose)) or body.reply_code in (0, 200):
            return None
        read = record.acknowledged if record.acknowledged < 0 else me.knowledge.could
        code = str(body.reply_code)
        error = PeerError(record.peer, record.frame.name, code, record.packet, record.time, read, processed)
        if isinstance(body, ChannelClose):
            error.channel = record.frame.channel
        named = new_method(body.class_id, body.method_id)
        if named is not None:
            error.method = named.definition().name
        return error

    def answers(self, finding: Finding, error: PeerError) -> bool:
        """Whether a close is the other peer's reaction to a finding.

        A channel.close reacts to what was sent on that channel. A close that names a method reacts to that
        method. A frame that is no method may belong to the content of the method: reply-code 505 (unexpected
        frame) then names the method that the content belongs to. A reply-code about frames may name any
        method. A close reacts to a note only if it names the frame of the note, because peers ignore notes. A
        close cannot react to a frame that the closing peer had not received yet. After a silence, the peer
        sends connection.close or ends the stream, so either may be the reaction.
        """
        silence = finding.since < finding.time
        if error.name == FIN or error.name == RST:
            if error.processed > finding.offset and not silence:
                return False
            return "to close the socket" in DECLARED[finding.rule].answer
        if silence:
            return error.name == "connection.close" and not error.method
        if 0 <= error.read <= finding.offset and finding.frame != _END:
            return False
        if error.name == "channel.close" and 0 <= finding.channel != error.channel:
            return False
        is_note = DECLARED[finding.rule].severity == "note"
        if not error.method:
            return not is_note
        if finding.frame == error.method or finding.frame == error.method + "-ok":
            # RabbitMQ names connection.tune when it refuses connection.tune-ok.
            return True
        if finding.frame == "header" or "." in finding.frame:
            return error.condition == _UNEXPECTED_FRAME and not is_note
        if finding.frame == "content-header" or finding.frame == "body":
            return True
        return finding.frame != _END and error.condition in _OF_FRAMES

    def judge(self, case: Case091, record: FrameRecord) -> None:
        """Judge the frame by all rules."""
        frame = record.frame
        sized = True
        if frame.problems:
            sized = self.problems(case, frame)
        me = case.me
        if me.pending.kind:
            reaction.judge_reaction(case)
        if me.frames == 0:
            opening.judge_first_frame(case)
        elif case.view.refused and not me.by_client:
            opening.judge_answer(case)
        body = frame.body
        if isinstance(body, ProtocolHeader) or frame.kind == "skipped" or frame.kind == "unknown":
            return
        size = frame.size if frame.missing == 0 else frame.declared_size
        if size > sizes.ALWAYS_TAKEN and sized:
            sizes.judge_size(case, size)
        elif size == _EMPTY and frame.kind == "body" and not frame.problems and me.whole:
            content_frames.body_of_no_octets(case)
        if case.view.agreed.heartbeat > 0:
            heartbeat.judge_silence(case)
        if not sized or (frame.missing > 0 and frame.payload_size == 0 and isinstance(body, Method)):
            # Arguments that seem absent may only be missing from the capture.
            return
        view = case.view
        if frame.kind == "heartbeat":
            if view.state != OPEN:
                heartbeat.judge_heartbeat(case)
            return
        method: Method | None = None
        of_connection = False
        if frame.kind == "method":
            if not isinstance(body, Method) or isinstance(body, UnknownMethod):
                # Nobody knows which method it is: it may be the one that is due.
                return
            method = body
            # On another channel the method is a fault, but keeps its meaning.
            of_connection = method.definition().class_id == CONNECTION_CLASS
        if view.ending.state != OPEN and not closing.judge_frame(case):
            return
        if view.state != OPEN:
            if not negotiation.judge_first(case):
                return
            if frame.channel > 0 and not of_connection and negotiation.channel_too_early(case):
                return
        if frame.channel > 0 and not of_connection:
            case.channel = view.channel(frame.channel)
        if isinstance(body, ContentHeader):
            if frame.problems and (unreadable(frame) or out_of_order(frame)):
                # Nobody knows whether it belongs to the preceding method.
                return
            if body.flags & _JUDGED_PROPERTIES != 0 and body.sound and case.is_sure():
                types.judge_properties(case, body)
            if case.channel is not None and case.channel.is_open and body.sound:
                basic.judge_content(case, case.channel, body)
            return
        if method is None:
            return
        definition = method.definition()
        if not (definition.from_client if me.by_client else definition.from_server):
            framing.method_of_the_other_peer(case, definition.name)
            return
        if frame.channel == 0 or of_connection:
            self.connection_method(case, as_read(frame, method) if frame.problems else method)
        else:
            self.channel_method(case, method)
        if not (frame.problems and unreadable(frame)) and case.is_sure():
            values.judge_values(case, method, not frame.problems)

    def connection_method(self, case: Case091, method: Method) -> None:
        """A method on channel 0: the connection set-up, the end of the connection, and other methods about
        the whole connection.
        """
        if isinstance(method, (ConnectionClose, ConnectionCloseOk)):
            channel_rules.judge_end(case, case.record.time, True)
        if case.view.state != OPEN or not isinstance(method, (ConnectionClose, ConnectionCloseOk)):
            if not negotiation.judge_set_up(case, method):
                return
        if isinstance(method, ConnectionClose) and not case.me.by_client:
            text = method.reply_text or ""
            refusal.judge_connection_close(case, method.reply_code, text, method.class_id, method.method_id)
        if isinstance(method, ConnectionClose):
            text = method.reply_text or ""
            complaint.judge_connection_close(case, method.reply_code, text, method.class_id, method.method_id)
            set_up_refused.judge_close(case, method)
            closing.judge_close(case, method)
            basic.judge_connection_close(case, method)
        elif isinstance(method, ConnectionCloseOk):
            closing.judge_close_ok(case)
            if not case.me.by_client and case.view.ending.server_done == 0:
                for channel in case.view.table.channels.values():
                    basic.judge_closed(case, channel)
        elif isinstance(method, (ConnectionBlocked, ConnectionUnblocked)):
            blocked.judge_blocked(case, isinstance(method, ConnectionBlocked))
        elif isinstance(method, ConnectionUpdateSecret):
            negotiation.judge_update_secret(case)

    def channel_method(self, case: Case091, method: Method) -> None:
        """A method on a channel: first whether it is allowed there at all, then its meaning."""
        if case.record.frame.problems and unreadable(case.record.frame):
            return
        channel = case.channel
        if isinstance(method, ChannelCloseOk) and channel is not None and not case.me.by_client:
            requests.judge_close_ok(case, channel)
            basic.judge_closed(case, channel)
        if not channel_rules.judge_state(case, method) or channel is None:
            if case.astray == ALL and method.definition().content:
                content_frames.lose_content(case)
            return
        if not requests.judge_method(case, channel, method):
            return
        if not channel.is_open and not isinstance(method, ChannelClose):
            # The other peer has closed the channel, which this peer may not know: the method is discarded.
            return
        if isinstance(method, BasicDeliver):
            if channel.server_stopped:
                flow.judge_content(case, channel)
            elif channel.requests.by_client:
                flow.judge_promptness(case, channel)
            if channel.consumers.cancelled:
                queue.judge_deliver(case, channel, method)
        elif isinstance(method, BasicPublish):
            if channel.client_stopped:
                flow.judge_content(case, channel)
            elif channel.requests.by_server:
                flow.judge_promptness(case, channel)
            if case.view.blocking.blocked:
                blocked.judge_publish(case)
        else:
            self.naming_method(case, channel, method)
        basic.judge_method(case, channel, method)

    def naming_method(self, case: Case091, channel: Channel, method: Method) -> None:
        """A method that is neither a delivery nor a publish: judged by its class."""
        class_id = method.definition().class_id
        if class_id == _EXCHANGE:
            exchange.judge_method(case, channel, method)
        elif class_id == _QUEUE:
            queue.judge_method(case, channel, method)
        elif isinstance(method, ChannelFlowOk):
            flow.judge_flow_ok(case, channel, method)
        elif isinstance(method, ChannelClose):
            closing.judge_method_id(case, method.class_id, method.method_id)
            if not case.me.by_client:
                text = method.reply_text or ""
                refusal.judge_close(case, channel, method.reply_code, text, method.class_id, method.method_id)
                complaint.judge_close(
                    case, channel, method.reply_code, text, method.class_id, method.method_id
                )
        elif isinstance(method, BasicReturn):
            closing.judge_code(case, method.reply_code)

    def problems(self, case: Case091, frame: Frame) -> bool:
        """Problems that the dissector found: which rules they break, unless they prove no fault.

        Returns whether the size of the frame can be trusted.
        """
        for problem in frame.problems:
            if f"amqp091/{problem.code}" == framing.F_FRAME_END:
                # Problems of the payload follow from the wrong size.
                prove(case, framing.F_FRAME_END, problem)
                reaction.note_violation(case, _REACTIONS[framing.F_FRAME_END])
                return False
        printed = types.is_of_the_printed_dialect(case)
        for problem in frame.problems:
            if printed and problem.code.startswith("T-"):
                continue
            found = case.found
            rule = f"amqp091/{problem.code}"
            judged = _JUDGED.get(rule)
            if judged is not None:
                judged(case, problem)
            else:
                prove(case, rule, problem)
            if case.found > found and rule in _REACTIONS:
                reaction.note_violation(case, _REACTIONS[rule])
        return True

    def follow(self) -> None:
        """Let both endpoints know when they could not write, according to the connection's TCP."""
        connection = self.connection
        self.client.stalls, self.server.stalls = connection.stalls
        if connection.client == 1:
            self.server.stalls, self.client.stalls = connection.stalls

    def doubt(self, doubtful: bool) -> None:
        self.case.doubtful = doubtful

    def overdue(self, now: i64) -> list[Overdue]:
        found: list[Overdue] = []
        for me in (self.client, self.server):
            late = heartbeat.overdue(self.connection, me, now)
            if late is not None:
                found.append(late)
        return found

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
        if reason == "fin" or reason == "rst":
            self.over = True
        spot = FrameRef(direction, packet, time, me.sent_end, _END, -1)
        case.spot = spot
        case.me = me
        case.peer = peer
        case.view = me.view
        case.channel = None
        case.found = 0
        unfinished = me.unfinished
        if reason == "fin" and unfinished is not None and not after_peer and me.view.ending.state == OPEN:
            if me.whole and 0 <= acknowledged <= peer.sent_end:
                case.spot = unfinished
                sizes.frame_cut_off(case)
                case.spot = spot
        cut_off = case.found > 0
        given_up = heartbeat.judge_end(case, reason, acknowledged, after_peer)
        doubted = heartbeat.may_have_given_up(case)
        closing.judge_end(case, reason, acknowledged, after_peer, given_up or cut_off, doubted)
        channel_rules.judge_end(case, me.last_time, reason in ("fin", "rst"))
        ended = reason == "fin" or reason == "rst"
        if ended and not 0 <= acknowledged <= peer.sent_end:
            peer.lost()  # it has sent something more
        self.ends.append(spot if ended else None)
        if len(self.ends) == 2:
            self.given_up(case, self.ends[0], self.ends[1])
        if ended and not after_peer and me.view.ending.state == OPEN and peer.view.ending.state == OPEN:
            name = FIN if reason == "fin" else RST
            self.answered(PeerError(me.peer, name, "", packet, time, acknowledged, me.knowledge.must))
        self.found_of(case.found, None)
        if self.context is not None:
            self.context.ended(self.made[len(self.made) - case.found :])
        case.spot = None

    def left(self) -> Amqp091Summary | None:
        view = self.client.view
        whole = self.client.whole and self.server.whole and self.topology_log.whole
        operations = self.topology_log.operations
        samples = self.topology_log.samples
        if whole and samples.all and not operations and not samples.contents:
            return None
        summary = Amqp091Summary(self.connection, operations, samples.contents)
        summary.all_contents = samples.all
        summary.virtual_host = view.opening.virtual_host
        summary.product = "" if view.server is None else view.server.product
        summary.ended = max(self.client.last_time, self.server.last_time)
        summary.over = self.over
        summary.whole = whole
        return summary

    def given_up(self, case: Case091, client: FrameRef | None, server: FrameRef | None) -> None:
        """Both ends are known: whether the peer that ended first had waited in vain for the other peer."""
        if client is not None and (server is None or client.time < server.time):
            case.me, case.peer, case.view = self.client, self.server, self.client.view
            heartbeat.judge_given_up(case, client)
        elif server is not None and (client is None or server.time < client.time):
            case.me, case.peer, case.view = self.server, self.client, self.server.view
            heartbeat.judge_given_up(case, server)

    def introduction(self, peer: str) -> object:
        view = self.client.view
        return view.client if peer == CLIENT else view.server

    def introduction_missed(self, peer: str) -> bool:
        one = self.client if peer == CLIENT else self.server
        return self.introduction(peer) is None and not one.whole

    def product(self, introduction: object) -> dict[str, str]:
        return introduction.texts if isinstance(introduction, PeerProperties) else {}

    def endpoint(self, direction: i64) -> Endpoint091:
        return self.client if direction == self.connection.client else self.server

    def snapshot(self) -> ConnectionSnapshot:
        snapshot = take_snapshot(self.client, self.server)
        return self.introduced(snapshot, self.client.view.client, self.server.view.server)

    def dump(self) -> tuple[object, ...]:
        return (
            self.client.dump(),
            self.server.dump(),
            self.case.pace.dump(),
            tuple(finding.dump() for finding in self.made),
            (tuple(sorted(self.case.reported)), self.case.garbled),
            (self.topology_log.dump(), self.over),
            tuple(error.dump() for error in self.errors),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> "Judge091":
        """A judge that continues where `dump` left off."""
        client, server, pace, made, reported, (topology_log, over), errors = state
        judge = Judge091(connection, findings, None)
        judge.client = Endpoint091.load(client)
        judge.server = Endpoint091.load(server)
        judge.follow()
        judge.case.pace = ClockStepGuard.load(pace)
        judge.made += [Finding.load(finding, connection) for finding in made]
        judge.case.reported = frozenset(reported[0])
        judge.case.garbled = reported[1]
        judge.topology_log = TopologyLog.load(topology_log, connection, CorrelationBudget())
        judge.over = over
        judge.errors = [PeerError.load(error) for error in errors]
        return judge


# The reply-code of a frame that was not expected.
_UNEXPECTED_FRAME: Final = "505"

# Reply-codes of malformed frames.
_OF_FRAMES: Final = ("501", "502", "503", "504", "505", "540", "541")

# The name that a finding about the end of a stream has instead of a frame's name.
_END: Final = "end of stream"

# Octets of a frame without payload.
_EMPTY: Final = 8

_JUDGED_PROPERTIES: Final = HAS_HEADERS | HAS_TIMESTAMP | HAS_RESERVED

# Rules whose problems cannot be judged by the octets alone.
_JUDGED: Final[dict[str, Callable[[Case091, Problem], None]]] = {
    **framing.PROBLEMS,
    **opening.PROBLEMS,
    **content_frames.PROBLEMS,
}

# The rules on which the other peer has to react, and what `reaction` calls them.
_REACTIONS: Final[dict[str, str]] = {
    framing.F_FRAME_END: "fatal",
    framing.F_FRAME_TYPE: "fatal",
    framing.F_CH0_CONNECTION: "channel 0",
    framing.F_CH0_HEARTBEAT: "channel 0",
    content_frames.F_CONTENT_HEADER_NEXT: "content",
    content_frames.F_CONTENT_NO_METHOD: "content",
    content_frames.F_CONTENT_ONE_HEADER: "content",
    content_frames.F_HEADER_ORPHAN: "content",
    content_frames.F_BODY_ORPHAN: "content",
    content_frames.F_BODY_OVERRUN: "content",
    content_frames.F_BODY_ZERO: "content",
    content_frames.F_HEADER_CLASS: "content",
    content_frames.F_HEADER_WEIGHT: "content",
}
