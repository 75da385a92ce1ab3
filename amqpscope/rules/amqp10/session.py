"""Sessions: channels, windows and transfer-ids (transport.xml, "sessions")."""

from typing import Final

from amqpscope.limits import MAX_SESSIONS_SEARCHED
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp10 import window
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.due_answer import L_STEAL, offend
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.legibility import ALL, LINKS
from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.amqp10.pending_error import DETACH
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import BEGIN_RCVD, SEND_BEGIN, SEND_FRAME, SESSION, UNMAPPED
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Attach, Begin, Flow
from dissectors.wire import i64

__all__ = ["judge_attach", "judge_begin", "judge_flow", "judge_flow_alone", "on_session"]

RULES: Final = Rules("amqp10/session")


S_BEGIN_FIRST: Final = RULES.rule(
    "S-BEGIN-FIRST", "illegal", "definition", usual_answer="amqp:not-allowed (close) or amqp:illegal-state"
)


def frame_without_session(case: Case10) -> None:
    """A peer sends a session frame on a channel on which it has not begun a session.

    Demands: A peer may send session frames on a channel only after it has sent a begin on the channel.
    Source: transport.xml section sessions > Session States (UNMAPPED, BEGIN_RCVD)
    Evidence: an attach, flow, transfer, disposition, detach or `end` on a channel on which its sender has no
    session
    Why it matters: The frame belongs to no session. The receiver cannot process the frame and may close the
    connection.
    Silent when: the start of the sender's stream, or octets since this start, were not captured.
    How to mend it: Send a begin on a channel before any attach, flow, transfer, disposition, detach or `end`.
    Use the channel on which you sent your begin, not the channel of the other peer's begin.
    """
    me = case.me
    if me.whole:
        record = case.record
        case.report(
            S_BEGIN_FIRST,
            f"the peer sends {record.frame.name} on channel {record.frame.channel}, but has begun no "
            "session on this channel",
            CERTAIN,
            {"channel": int(record.frame.channel), "session_state": UNMAPPED},
        )
        case.astray = ALL


S_END_LAST: Final = RULES.rule("S-END-LAST", "illegal", "definition", usual_answer="amqp:illegal-state")


def frame_after_end(case: Case10, ended: SessionEnd) -> None:
    """After a peer has sent an `end` on a channel, it sends another frame on this channel without a new
    begin.

    Demands: After a peer has sent an `end` on a channel, it must not send anything on this channel until it
    sends a new begin.
    Source: transport.xml section sessions > Ending a Session, Session States (END_SENT)
    Evidence: the end frame that a peer sends on a channel, and the next frame of this peer on this channel
    Why it matters: The session is over for the sender of the frame. The receiver discards the frame or
    reports an error.
    Silent when: the capture lacks octets that were sent after the end frame.
    How to mend it: Stop all senders, receivers and timers of a session before you send an `end`. If several
    threads use the session, make sure that no thread sends a queued frame after the end frame.
    """
    record = case.record
    case.session = ended
    case.report(
        S_END_LAST,
        f"the peer sends {record.frame.name} on channel {record.frame.channel} after its own end on this "
        "channel",
        CERTAIN,
        {"channel": int(record.frame.channel), "session_state": ended.state},
    )


def on_session(case: Case10) -> SessionEnd | None:
    """The session of a frame that needs a session; reports a frame without a session."""
    channel = case.record.frame.channel
    session = case.me.session_on(channel)
    if session is None:
        # A channel with a mapped session has a session in which all frames may be sent.
        ended = case.me.channels.ended.get(int(channel))
        if not SESSION.allows(UNMAPPED if ended is None else ended.state, SEND_FRAME):
            if ended is not None:
                frame_after_end(case, ended)
            else:
                frame_without_session(case)
    return session


S_BEGIN_REUSE: Final = RULES.rule("S-BEGIN-REUSE", "MUST", "definition", usual_answer="amqp:not-allowed")


def begin_on_used_channel(case: Case10) -> None:
    """A peer sends a begin on a channel that already carries one of its sessions.

    Demands: A peer may send a begin only on a channel that none of its sessions uses.
    Source: transport.xml section sessions > Establishing a Session
    Evidence: a second begin on a channel, without an `end` between the first begin and the second begin
    Why it matters: The receiver cannot distinguish the frames of the two sessions and may close the
    connection.
    Silent when: the capture lacks octets that were sent after the first begin, because these octets may
    contain the end of the first session.
    How to mend it: Allocate an unused outgoing channel for each begin. Release a channel only after you have
    sent an `end` for its session. Protect the allocation of channels against concurrent threads.
    """
    channel = int(case.record.frame.channel)
    session = case.me.sessions.get(channel)
    if session is not None and session.whole and not SESSION.allows(session.state, SEND_BEGIN):
        case.report(
            S_BEGIN_REUSE,
            f"the peer sends begin on channel {channel}, which has been in use since packet "
            f"{session.mapping.begin_packet}",
            CERTAIN,
            {"channel": channel, "session_state": session.state},
            [int(session.mapping.begin_packet)],
        )


S_BEGIN_REMOTEVALID: Final = RULES.rule(
    "S-BEGIN-REMOTEVALID", "MUST", "definition", usual_answer="amqp:invalid-field"
)


def remote_channel_of_no_begin(case: Case10, body: Begin) -> None:
    """A peer sends a begin whose remote-channel is not the channel of a begin that the peer still has to
    answer.

    Demands: The remote-channel of a begin must be the channel of a begin of the other peer that has no answer
    yet. Each begin must get only one answer.
    Source: transport.xml section performatives > begin.remote-channel
    Evidence: the remote-channel, and the begin frames of the other peer that have no answer
    Why it matters: The two peers match their sessions by remote-channel. With a wrong remote-channel, the
    other peer matches the wrong sessions or none.
    Silent when: octets of the other peer were not captured, or when the other peer has sent begin twice on
    the channel. The rule is also silent when another rule reports the begin.
    Possible because: The {other} has begun a session on a channel above the channel-max of the {peer}. The
    capture does not show which channel the {other} means.
    How to mend it: Set remote-channel to the channel on which the other peer's begin arrived, and answer each
    begin exactly once. Do not put your own outgoing channel into remote-channel.
    """
    number = body.remote_channel
    if number is None or not case.me.whole:
        return
    if number in case.me.channels.peer_unanswered:
        return
    asked = case.me.peer_sessions.get(number)
    if asked is None and not case.me.channels.peer_unanswered:
        remote_channel_of_a_new_session(case, number)
    elif asked is None:
        case.report(
            S_BEGIN_REMOTEVALID,
            f"begin has remote-channel {number}, but the other peer has begun no session on this channel",
            POSSIBLE if begun_beyond_agreed(case) else CERTAIN,
            {"remote_channel": number},
        )
        case.astray = ALL
    elif asked is not None and asked.begin is not None and asked.whole:
        case.report(
            S_BEGIN_REMOTEVALID,
            f"begin has remote-channel {number}, but the other peer's begin on this channel already got an "
            f"answer in packet {asked.mapping.begin_packet}",
            CERTAIN,
            {"remote_channel": number},
            [int(asked.mapping.begin_packet)],
        )
        case.astray = ALL


def begun_beyond_agreed(case: Case10) -> bool:
    """Whether the other peer has begun on a forbidden channel, and so may mean another channel."""
    opened = case.me.open
    if opened is None or opened.channel_max is None:
        return False
    return max(case.me.channels.peer_unanswered) > opened.channel_max


S_BEGIN_LOCALNULL: Final = RULES.rule(
    "S-BEGIN-LOCALNULL", "MUST NOT", "keyword", usual_answer="amqp:not-allowed or amqp:invalid-field"
)


def remote_channel_of_a_new_session(case: Case10, number: int) -> None:
    """A peer sends a begin with remote-channel, but the other peer has sent no begin that this begin can
    still answer.

    Demands: A begin that starts a new session must leave remote-channel null.
    Source: transport.xml section sessions > Establishing a Session; transport.xml section performatives >
    begin.remote-channel
    Evidence: a begin with remote-channel, and no begin of the other peer that this begin can still answer
    Why it matters: The other peer treats this begin as an answer and cannot match the begin to a session.
    Silent when: octets of the other peer were not captured.
    How to mend it: Leave remote-channel null in a begin that starts a new session. Set remote-channel only in
    a begin that answers the other peer's begin.
    """
    case.report(
        S_BEGIN_LOCALNULL,
        f"begin has remote-channel {number}, but answers no begin of the other peer: the begin of a new "
        "session must leave remote-channel null",
        CERTAIN,
        {"remote_channel": number},
    )


S_CH_LOWEST: Final = RULES.rule("S-CH-LOWEST", "SHOULD", "wording")


def channel_that_is_not_the_lowest(case: Case10, body: Begin) -> None:
    """A peer begins a session on a channel although a lower channel is unused.

    Demands: A peer should begin each session on the lowest unused channel.
    Source: transport.xml section sessions > Establishing a Session
    Evidence: the channel of the begin, and the channels in use
    Why it matters: Receivers keep tables that are as large as the highest channel in use. The specification
    recommends the lowest unused channel, so that these tables stay small.
    Silent when: the begin answers another begin, or when octets were not captured. The rule is also silent
    when the rule has already reported this peer on the connection. A channel counts as used as long as the
    other peer has not answered the `end` on this channel.
    How to mend it: Allocate the lowest unused channel for each new session instead of counting upwards.
    Return a channel to the pool of unused channels when both peers have sent an `end` for its session.
    """
    me = case.me
    if body.remote_channel is not None or me.channels.high_reported or not me.whole or case.found > 0:
        return
    channel = int(case.record.frame.channel)
    if len(me.sessions) + len(me.channels.ended) > MAX_SESSIONS_SEARCHED:
        return
    for lower in range(channel):
        ended = me.channels.ended.get(lower)
        if lower not in me.sessions and (ended is None or ended.state == UNMAPPED):
            me.used_channels().high_reported = True
            case.report(
                S_CH_LOWEST,
                f"the begin uses channel {channel} instead of channel {lower}, which is the lowest unused "
                "channel",
                CERTAIN,
                {"channel": channel, "lowest_unused": lower},
            )
            return


def _remember_begin_beside_the_one_to_answer(case: Case10, body: Begin) -> None:
    """Note a begin without remote-channel while the peer's begin waits for an answer: `ending` judges it."""
    me = case.me
    if (
        body.remote_channel is None
        and me.channels.unasked is None
        and len(me.peer_sessions) <= MAX_SESSIONS_SEARCHED
    ):
        for asked in me.peer_sessions.values():
            if asked.begin is None and asked.state == BEGIN_RCVD:
                me.channels.unasked = FrameRef.of(case.record)
                me.channels.unasked_end = asked.mapping.peer_begin_end
                return


def judge_begin(case: Case10, body: Begin) -> None:
    """Judge a begin."""
    _remember_begin_beside_the_one_to_answer(case, body)
    begin_on_used_channel(case)
    if case.found == 0:
        remote_channel_of_no_begin(case, body)
    channel_that_is_not_the_lowest(case, body)


S_FLOW_NEXTOUT: Final = RULES.rule("S-FLOW-NEXTOUT", "MUST", "definition", usual_answer="amqp:invalid-field")


def flow_with_other_next_outgoing_id(case: Case10, session: SessionEnd, body: Flow) -> None:
    """A peer sends a flow whose next-outgoing-id is not the next-outgoing-id of its begin plus the number of
    transfers that the peer has sent since that begin.

    Demands: The next-outgoing-id of a flow must be the next-outgoing-id of the begin plus the number of
    transfers that were sent since the begin.
    Source: transport.xml section performatives > begin.next-outgoing-id, flow.next-outgoing-id
    Evidence: the next-outgoing-id of the begin and of the flow, and the number of transfers
    Why it matters: The receiver treats next-outgoing-id as the transfer-id of the next transfer and computes
    its window from this number. The session may stall.
    Silent when: the begin was not captured, or octets since the begin were not captured.
    How to mend it: Start next-outgoing-id at the value in begin and add one for every transfer frame on the
    session, also for each frame of a multi-transfer delivery. Write the current next-outgoing-id into every
    flow.
    """
    value = body.next_outgoing_id
    if (
        value is not None
        and session.whole
        and session.begin is not None
        and value != raw(session.outgoing.next_id)
        # After a wrong flow the peer may go on with either count.
        and value != raw(session.outgoing.counted_id())
    ):
        case.report(
            S_FLOW_NEXTOUT,
            f"the flow has next-outgoing-id {value}, but the next transfer has transfer-id "
            f"{raw(session.outgoing.next_id)}",
            CERTAIN,
            {"next_outgoing_id": int(raw(session.outgoing.next_id))},
        )


def _begin_read(case: Case10, session: SessionEnd) -> i64:
    """How certain it is that the sender of this frame had read the other peer's begin."""
    own = session.begin
    # A session that answers cannot have missed the begin that it answers.
    if session.mapping.begin_read or (own is not None and own.remote_channel is not None):
        return CERTAIN
    return case.me.knowledge.certainty(session.mapping.peer_begin_end)


S_FLOW_NEXTIN_SET: Final = RULES.rule(
    "S-FLOW-NEXTIN-SET", "MUST", "wording", usual_answer="amqp:invalid-field"
)


def flow_without_next_incoming_id(case: Case10, session: SessionEnd, body: Flow) -> None:
    """A peer sends a flow without next-incoming-id after it received the other peer's begin.

    Demands: If a peer sends a flow after it received the other peer's begin, the flow must have
    next-incoming-id.
    Source: transport.xml section performatives > flow.next-incoming-id
    Evidence: a flow with a null next-incoming-id after the other peer's begin
    Why it matters: If a flow has no next-incoming-id, the other peer computes its remaining window as if none
    of its transfers had arrived, and may stop sending.
    Silent when: the other peer's begin was not captured, or when the peer that sent the flow may not yet have
    received that begin. The finding is reported as possible, not as certain, when the begin has arrived at
    the peer, but the peer may not yet have read the begin.
    How to mend it: Set next-incoming-id in every flow as soon as the other peer's begin has arrived.
    Initialize next-incoming-id from the next-outgoing-id of the other peer's begin and add one for each
    transfer received.
    """
    if body.next_incoming_id is None and session.peer_begin is not None and session.whole:
        case.report(
            S_FLOW_NEXTIN_SET,
            "the flow has no next-incoming-id, although "
            f"the other peer's begin arrived in packet {session.mapping.peer_begin_packet}",
            _begin_read(case, session),
            {"session_state": session.state},
            [int(session.mapping.peer_begin_packet)],
        )
        theirs = case.peer.session_on(session.peer_channel)
        if theirs is not None:
            # The other peer need not obey the window of such a flow, nor guess what it counts from.
            theirs.outgoing.begin_known = True


S_FLOW_NEXTIN_UNSET: Final = RULES.rule(
    "S-FLOW-NEXTIN-UNSET", "MUST NOT", "wording", usual_answer="amqp:invalid-field"
)


def flow_with_next_incoming_id_too_soon(case: Case10, session: SessionEnd, body: Flow) -> None:
    """A peer sends a flow with next-incoming-id before it received the other peer's begin.

    Demands: If a peer sends a flow before it received the other peer's begin, the flow must not have
    next-incoming-id.
    Source: transport.xml section performatives > flow.next-incoming-id
    Evidence: a flow with next-incoming-id before the other peer's begin
    Why it matters: The sender of the flow can only guess next-incoming-id. The other peer computes its window
    from a guessed next-incoming-id and may send too much or nothing.
    Silent when: octets of the other peer were not captured. The finding is reported as possible, not as
    certain, when a begin of the other peer is still unanswered, because that begin may be meant as the answer
    to the peer's own begin.
    How to mend it: Leave next-incoming-id null in each flow that you send before the other peer's begin has
    arrived. Afterwards, set next-incoming-id from the next-outgoing-id of the other peer's begin.
    """
    if body.next_incoming_id is not None and session.peer_begin is None:
        if session.whole and case.me.whole:
            certainty = CERTAIN
            sessions = case.me.peer_sessions
            if len(sessions) > MAX_SESSIONS_SEARCHED or any(one.begin is None for one in sessions.values()):
                certainty = POSSIBLE
            case.report(
                S_FLOW_NEXTIN_UNSET,
                f"the flow has next-incoming-id {body.next_incoming_id}, but the other peer's begin has not "
                "arrived yet",
                certainty,
                {"session_state": session.state},
            )


S_FLOW_NEXTIN_VALUE: Final = RULES.rule(
    "S-FLOW-NEXTIN-VALUE", "MUST", "definition", usual_answer="amqp:invalid-field"
)


def flow_with_next_incoming_id_never_sent(case: Case10, session: SessionEnd, body: Flow) -> None:
    """A peer sends a flow whose next-incoming-id counts more transfers than the other peer has sent, or is
    lower than in the previous flow of the same peer.

    Demands: The next-incoming-id must not be lower than in the previous flow of the same peer, and must not
    count more transfers than the other peer has sent.
    Source: transport.xml section sessions > Session Flow Control; transport.xml section performatives >
    flow.next-incoming-id
    Evidence: the other peer's begin, the number of the other peer's transfers, and the next-incoming-id of
    the flow frames
    Why it matters: The other peer computes its window from next-incoming-id. With a wrong next-incoming-id,
    the other peer's window becomes too large, or so small that the other peer stops sending.
    Silent when: the other peer's begin, or octets since that begin, were not captured. The rule does not
    report a lower next-incoming-id if the other peer also lowered its next-outgoing-id.
    How to mend it: Initialize next-incoming-id from the next-outgoing-id of the other peer's begin. Add one
    for each transfer frame that you receive on the session, not for each message.
    """
    value = body.next_incoming_id
    if value is None or session.peer_begin is None or not session.whole or not case.me.whole:
        return
    count = nearest(value, session.incoming.next_id)
    first = session.incoming.initial_id
    sent = session.incoming.next_id - first
    wrong = ""
    if count < first:
        wrong = f"the other peer's transfers begin with transfer-id {raw(first)}"
    elif count > session.incoming.next_id:
        wrong = (
            f"the other peer has sent {sent} transfers"
            if sent != 1
            else "the other peer has sent one transfer"
        )
        wrong = f"{wrong}, so next-incoming-id can be at most {raw(session.incoming.next_id)}"
    elif count < session.incoming.stated_id and not session.incoming.set_back:
        wrong = f"the previous flow already had next-incoming-id {raw(session.incoming.stated_id)}"
    if wrong:
        case.report(
            S_FLOW_NEXTIN_VALUE,
            f"the flow has next-incoming-id {value}, but {wrong}",
            CERTAIN,
            {"next_incoming_id": int(raw(session.incoming.next_id))},
        )


S_FLOW_NOHANDLE_DC: Final = RULES.rule(
    "S-FLOW-NOHANDLE-DC", "MUST NOT", "keyword", usual_answer="amqp:invalid-field"
)


def session_flow_with_delivery_count(case: Case10) -> None:
    """A peer sends a flow that has a delivery-count but no handle.

    Demands: A flow without a handle must not have a delivery-count.
    Source: transport.xml section performatives > flow.delivery-count
    Evidence: a flow with a null handle and a delivery-count
    Why it matters: A flow without a handle names no link, so delivery-count refers to no link. The receiver
    may refuse the flow with an error.
    Silent when: never.
    How to mend it: Leave delivery-count null in each flow that has no handle. If the flow is meant for a
    link, set the handle of that link.
    """
    case.report(S_FLOW_NOHANDLE_DC, "the flow has a delivery-count, which only a flow with a handle may have")


S_FLOW_NOHANDLE_CREDIT: Final = RULES.rule(
    "S-FLOW-NOHANDLE-CREDIT", "MUST NOT", "keyword", usual_answer="amqp:invalid-field"
)


def session_flow_with_link_credit(case: Case10) -> None:
    """A peer sends a flow that has a link-credit but no handle.

    Demands: A flow without a handle must not have a link-credit.
    Source: transport.xml section performatives > flow.link-credit
    Evidence: a flow with a null handle and a link-credit
    Why it matters: A flow without a handle names no link, so no link gets the link-credit. The receiver may
    refuse the flow with an error.
    Silent when: never.
    How to mend it: Leave link-credit null in each flow that has no handle. To grant credit, set the handle of
    the link.
    """
    case.report(
        S_FLOW_NOHANDLE_CREDIT, "the flow has a link-credit, which only a flow with a handle may have"
    )


S_FLOW_NOHANDLE_AVAIL: Final = RULES.rule(
    "S-FLOW-NOHANDLE-AVAIL", "MUST NOT", "keyword", usual_answer="amqp:invalid-field"
)


def session_flow_with_available(case: Case10) -> None:
    """A peer sends a flow that sets the field `available` but has no handle.

    Demands: A flow without a handle must not set the field `available`.
    Source: transport.xml section performatives > flow.available
    Evidence: a flow with a null handle and a value in the field `available`
    Why it matters: A flow without a handle names no link, so the field `available` refers to no link. The
    receiver may refuse the flow with an error.
    Silent when: never.
    How to mend it: Leave the field `available` null in each flow that has no handle. If the flow is meant for
    a link, set the handle of that link.
    """
    case.report(
        S_FLOW_NOHANDLE_AVAIL, "the flow sets the field `available`, which only a flow with a handle may set"
    )


S_FLOW_NOHANDLE_DRAIN: Final = RULES.rule(
    "S-FLOW-NOHANDLE-DRAIN", "MUST NOT", "keyword", usual_answer="amqp:invalid-field"
)


def session_flow_with_drain(case: Case10) -> None:
    """A peer sends a flow that has drain=true but no handle.

    Demands: A flow without a handle must not have drain=true.
    Source: transport.xml section performatives > flow.drain
    Evidence: a flow with a null handle and drain=true (drain=false is the default, so it is not a fault)
    Why it matters: A flow without a handle names no link, so no link is drained. The receiver may refuse the
    flow with an error.
    Silent when: never.
    How to mend it: Leave drain unset in each flow that has no handle. To drain a link, set the handle of that
    link in the flow.
    """
    case.report(S_FLOW_NOHANDLE_DRAIN, "the flow has drain=true, which only a flow with a handle may have")


def judge_flow_alone(case: Case10, body: Flow) -> None:
    """Judge a flow by itself."""
    if body.handle is not None or body.unread(4):
        return
    before = case.found
    if body.delivery_count is not None:
        session_flow_with_delivery_count(case)
    if body.link_credit is not None:
        session_flow_with_link_credit(case)
    if body.available is not None:
        session_flow_with_available(case)
    if body.drain:
        session_flow_with_drain(case)
    if case.found > before:
        # It may be meant for any link of the session.
        case.astray = LINKS


def judge_flow(case: Case10, session: SessionEnd, body: Flow) -> None:
    """Judge a flow by the rules of its session."""
    window.judge_flow(case, session, body)
    flow_with_other_next_outgoing_id(case, session, body)
    flow_without_next_incoming_id(case, session, body)
    flow_with_next_incoming_id_too_soon(case, session, body)
    flow_with_next_incoming_id_never_sent(case, session, body)


S_HANDLEMAX: Final = RULES.rule("S-HANDLEMAX", "MUST NOT", "keyword", answer="amqp:connection:framing-error")


def handle_beyond_agreed(case: Case10, session: SessionEnd, body: Attach) -> None:
    """A peer sends an attach with a handle above the other peer's handle-max.

    Demands: An attach must not use a handle above the other peer's handle-max.
    Source: transport.xml section performatives > begin.handle-max
    Evidence: the handle of the attach, and the handle-max in the other peer's begin
    Why it matters: The receiver must close the connection with amqp:connection:framing-error. All sessions
    and links of the connection are lost.
    Silent when: the other peer's begin was not captured, or cannot have reached the sender of the attach. The
    finding is reported as possible, not as certain, when the sender attached another link before the begin
    can have reached it, and no frame proves that it has read the begin since. Such a sender does not wait for
    the begin. A sender that waited for the begin may use only handles that it allows.
    How to mend it: Read handle-max from the other peer's begin and allocate only handles up to this value.
    When all handles are in use, refuse the new link locally or begin another session. Reuse handles of
    detached links.
    """
    theirs = session.peer_begin
    if theirs is None or theirs.handle_max is None or body.handle is None or not session.whole:
        return
    if body.handle <= theirs.handle_max:
        return
    certainty = _begin_read(case, session) if session.mapping.pipelined else CERTAIN
    case.report(
        S_HANDLEMAX,
        f"the attach uses handle {body.handle}, but the other peer's handle-max is {theirs.handle_max}",
        certainty,
        {"handle": body.handle, "handle_max": theirs.handle_max},
        [int(session.mapping.peer_begin_packet)],
    )


S_LINK_ONE: Final = RULES.rule("S-LINK-ONE", "MUST NOT", "definition", answer="amqp:link:stolen")


def link_on_two_sessions(case: Case10, session: SessionEnd, body: Attach) -> None:
    """A peer attaches a link on one session while its own end of the same link is still attached on another
    session.

    Demands: A link must be attached on at most one session at a time.
    Source: transport.xml section sessions
    Evidence: two attach frames with the same name and role on two sessions, and the detach frames between
    these attach frames
    Why it matters: The other peer may treat the link on the first session as stolen, and may detach the link
    there.
    Silent when: the attach answers an attach of the other peer. The rule is also silent when the capture
    lacks octets that were sent after the first attach. The rule is also silent when the peer has more than
    256 sessions.
    Only possible because: The {peer} may move its own link to the new session, which is allowed.
    How to mend it: Detach a link before you attach the link on another session. Between two containers, every
    link in the same direction needs a name of its own. Applications must not reuse one link name for several
    senders or receivers.
    """
    if body.name is None or body.role is None:
        return
    key = (body.name, not body.role)
    asked = session.links.get(key)
    if asked is not None and asked.peer_attach is not None:
        return  # the other peer asked for it
    for other in case.me.sessions.values():
        if other is session or not other.whole:
            continue
        link = other.links.get(key)
        if link is not None and link.handle != UNKNOWN and link.peer_handle != UNKNOWN:
            case.report(
                S_LINK_ONE,
                "the peer attaches a link that is still attached on another session, on channel "
                f"{other.channel} (packet {link.attachment.packet})",
                POSSIBLE,
                {"link_state": link.state},
                [int(link.attachment.packet)],
            )
            offend(case, L_STEAL, DETACH, "amqp:link:stolen", other.channel, link.handle)
            return


def judge_attach(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge an attach by the rules of its session."""
    if 1 < len(case.me.sessions) <= MAX_SESSIONS_SEARCHED:
        link_on_two_sessions(case, session, body)
    if session.mapping.peer_begin_end != UNKNOWN:
        handle_beyond_agreed(case, session, body)
