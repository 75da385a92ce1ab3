"""The windows of a session: the numbers of transfers that each peer accepts and announces (transport.xml,
"Session Flow Control")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transfer_ids import FAR
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Flow
from dissectors.wire import i64

__all__ = ["judge_flow", "judge_transfer"]

RULES: Final = Rules("amqp10/window")


S_WIN_IN: Final = RULES.rule("S-WIN-IN", "MUST NOT", "definition", answer="amqp:session:window-violation")


def transfer_beyond_window(case: Case10, session: SessionEnd, certainty: i64) -> None:
    """A sender sends more transfers than the other peer's incoming-window allows.

    Demands: A peer must not send a transfer while the other peer's incoming-window is zero.
    Source: transport.xml section sessions > Session Flow Control; transport.xml section definitions >
    session-error window-violation
    Evidence: the incoming-window in the begin frame and flow frames of the other peer, and the number of
    transfers since then
    Why it matters: The receiver may have no room for the transfer. The receiver may end the session with
    amqp:session:window-violation, and all links of the session end with the session.
    Silent when: the begin frames of the session were not captured, or when the capture lacks octets that were
    sent after these frames. The rule is also silent when the other peer reduced the window by a flow that
    lacks the mandatory next-incoming-id. Two other rules, S-WIN-FORMULA and S-WIN-FORMULA-INIT, report a
    sender that uses its own next-outgoing-id instead of the flow's next-incoming-id to compute the window.
    Another rule, S-WIN-DECR, reports a sender that counts only the first transfer of each delivery. The
    finding is reported as possible, not as certain, when an older window allows the transfer, because the
    sender may still have used the older window.
    How to mend it: Count transfers, not messages, against the other peer's incoming-window. Stop sending when
    the window is zero and wait for the next flow. Guard the count with a lock if several threads send on one
    session.
    """
    _tell(case, S_WIN_IN, session, certainty, "")


S_WIN_FORMULA: Final = RULES.rule(
    "S-WIN-FORMULA", "MUST", "definition", answer="amqp:session:window-violation"
)


def window_counted_from_its_own_id(case: Case10, session: SessionEnd) -> None:
    """A sender counts the incoming-window of a flow from its own next-outgoing-id instead of from the
    next-incoming-id of that flow.

    Demands: When a peer receives a flow, its remaining window must be the flow's next-incoming-id plus
    the flow's incoming-window minus the peer's own next-outgoing-id, modulo 2^32.
    Source: transport.xml section sessions > Session Flow Control (receiving a flow)
    Evidence: next-incoming-id and incoming-window of the flow, and the number of transfers
    Why it matters: Transfers that were on their way when the flow was sent have already used part of the
    window. The sender exceeds the window, and the receiver may end the session.
    Silent when: the begin frames of the session were not captured, or when the capture lacks octets that were
    sent after these frames. The rule is also silent when an older window allows the transfers, because the
    sender may still have used the older window.
    How to mend it: On each flow, compute the remaining window as the flow's next-incoming-id plus its
    incoming-window minus your own next-outgoing-id, modulo 2^32. Do not use incoming-window unchanged as the
    remaining window.
    """
    _tell(
        case, S_WIN_FORMULA, session, CERTAIN, "; the window must be counted from the flow's next-incoming-id"
    )


S_WIN_FORMULA_INIT: Final = RULES.rule(
    "S-WIN-FORMULA-INIT", "MUST", "definition", answer="amqp:session:window-violation"
)


def window_counted_from_nothing(case: Case10, session: SessionEnd) -> None:
    """After a flow without next-incoming-id, a sender counts the incoming-window from its current
    next-outgoing-id instead of from the next-outgoing-id in its begin.

    Demands: If a flow has no next-incoming-id, the sender must count the incoming-window of this flow from
    the next-outgoing-id in the sender's begin.
    Source: transport.xml section sessions > Session Flow Control (receiving a flow)
    Evidence: a flow without next-incoming-id, and the next-outgoing-id in the sender's begin
    Why it matters: Transfers that the sender has sent since its begin have used part of the window. The
    sender exceeds the window, and the receiver may end the session.
    Silent when: the begin frames of the session were not captured, or when the capture lacks octets that were
    sent after these frames. The rule is also silent when an older window allows the transfers, because the
    sender may still have used the older window. Another rule, S-FLOW-NEXTIN-SET, reports a flow that must
    have a next-incoming-id and has none. This rule is silent about the transfers that such a flow may allow.
    How to mend it: When a flow has no next-incoming-id, use the next-outgoing-id of your own begin instead.
    The remaining window is then the next-outgoing-id of your begin plus the flow's incoming-window minus your
    current next-outgoing-id, modulo 2^32.
    """
    _tell(
        case,
        S_WIN_FORMULA_INIT,
        session,
        CERTAIN,
        "; the window must be counted from the next-outgoing-id of the peer's begin",
    )


S_WIN_DECR: Final = RULES.rule("S-WIN-DECR", "MUST", "keyword", answer="amqp:session:window-violation")


def further_transfers_not_counted(case: Case10, session: SessionEnd) -> None:
    """A sender exceeds the other peer's incoming-window, apparently because the sender counts only the first
    transfer of each delivery.

    Demands: Each transfer must use up one unit of the other peer's incoming-window, even if the transfer only
    continues a delivery.
    Source: transport.xml section sessions > Session Flow Control (remote-incoming-window)
    Evidence: the incoming-window in the begin frame and flow frames of the other peer, and the number of
    transfers since then
    Why it matters: The receiver may have no room for the transfer and may end the session with
    amqp:session:window-violation.
    Silent when: the begin frames of the session were not captured, or when the capture lacks octets that were
    sent after these frames. The rule is also silent when an older window allows the transfers, because the
    sender may still have used the older window.
    How to mend it: Decrease the other peer's incoming-window and increase next-outgoing-id by one for every
    transfer frame, not once per message. When the window is zero, stop sending, even in the middle of a large
    delivery.
    """
    _tell(
        case,
        S_WIN_DECR,
        session,
        CERTAIN,
        "; the peer seems to count only the first transfer of each delivery",
    )


def _tell(case: Case10, rule: str, session: SessionEnd, certainty: i64, why: str) -> None:
    limits = session.outgoing.limits
    bound = limits.largest() if certainty == CERTAIN else limits.newest()
    following = session.outgoing.least_id()
    case.report(
        rule,
        f"the peer sends a transfer with transfer-id {raw(following)}, but the other peer's "
        f"incoming-window allows only transfer-ids before {raw(bound)}{why}",
        certainty,
        {
            "next_outgoing_id": int(raw(following)),
            "remote_incoming_window": int(limits.newest() - following),
        },
        [int(limits.newest_packet())],
    )


S_WIN_OUT: Final = RULES.rule(
    "S-WIN-OUT", "MAY-limits", "definition", note="Each peer decides for itself how it uses its own window."
)


def transfer_beyond_its_own_window(case: Case10, session: SessionEnd) -> None:
    """A peer sends more transfers than its last announced outgoing-window allows.

    Demands: A peer's outgoing-window limits the number of transfers that the peer can send at present. Each
    peer decides for itself whether its transfers reduce its outgoing-window.
    Source: transport.xml section sessions > Session Flow Control (outgoing-window); transport.xml section
    performatives > flow.outgoing-window
    Evidence: the outgoing-window in the begin frame and flow frames of the peer, and the number of transfers
    of this peer
    Why it matters: The receiver may plan its buffers by the announced outgoing-window, and may not be
    prepared for more transfers.
    Silent when: the begin frame was not captured, or when the capture lacks octets that were sent after this
    frame. The rule is also silent when the rule has already reported the session.
    Only possible because: Each peer decides by local policy whether its outgoing-window counts down.
    How to mend it: Announce in begin and flow an outgoing-window that covers the transfers that you will
    send. Send a new flow before you exceed the announced outgoing-window.
    """
    session.outgoing.own_limit = FAR
    session.outgoing.own_reported = True
    case.report(
        S_WIN_OUT,
        f"the transfer with transfer-id {raw(session.outgoing.next_id)} exceeds the outgoing-window that the "
        "peer announced last",
        POSSIBLE,
        {"next_outgoing_id": int(raw(session.outgoing.next_id))},
    )


def judge_transfer(case: Case10, session: SessionEnd) -> None:
    """Judge a transfer by the windows of its session."""
    limits = session.outgoing.limits
    if not session.whole:
        return
    if session.outgoing.next_id >= session.outgoing.own_limit:
        transfer_beyond_its_own_window(case, session)
    if len(limits) == 0:
        return
    # If a flow has stated another id by mistake, the peer may count by either.
    following = session.outgoing.least_id()
    certainty = limits.judge(following)
    if certainty == LEGAL:
        return
    if certainty != CERTAIN:
        transfer_beyond_window(case, session, certainty)
    elif following < session.outgoing.hasty_limit:
        if session.outgoing.hasty_bare:
            window_counted_from_nothing(case, session)
        else:
            window_counted_from_its_own_id(case, session)
    elif session.outgoing.continued > 0 and following - session.outgoing.continued < limits.newest():
        further_transfers_not_counted(case, session)
    else:
        transfer_beyond_window(case, session, certainty)


S_FLOW_SYNC: Final = RULES.rule(
    "S-FLOW-SYNC", "MUST", "keyword", warning="A capture can suggest this fault but never prove it."
)


def next_incoming_id_not_taken_over(case: Case10, session: SessionEnd) -> None:
    """A peer has read a flow, but still counts transfers from its old next-incoming-id instead of from the
    flow's next-outgoing-id.

    Demands: A peer that receives a flow must set its next-incoming-id to the flow's next-outgoing-id, and its
    remote outgoing-window to the flow's outgoing-window.
    Source: transport.xml section sessions > Session Flow Control (receiving a flow)
    Evidence: the next flow of the peer that received the flow
    Why it matters: The two peers count transfers differently for the rest of the session, so the window
    shrinks or the session stalls.
    Silent when: the peer may not yet have read the flow, or when octets were not captured.
    Only possible because: The flow skipped transfer-ids, which is itself a fault of the other peer. A peer
    that notices the skip may decide not to follow the flow.
    How to mend it: When a flow of the session arrives, set next-incoming-id to the flow's next-outgoing-id,
    and set the remote outgoing-window to the flow's outgoing-window.
    """
    case.report(
        S_FLOW_SYNC,
        f"the flow has a next-incoming-id below {raw(session.incoming.sync_id)}, but must take over the "
        f"next-outgoing-id {raw(session.incoming.sync_id)} of the other peer's flow (packet "
        f"{session.incoming.sync_packet})",
        POSSIBLE,
        {"next_incoming_id": int(raw(session.incoming.sync_id))},
        [int(session.incoming.sync_packet)],
    )


def judge_flow(case: Case10, session: SessionEnd, body: Flow) -> None:
    """Judge a flow by the windows of its session."""
    if session.incoming.sync_end < 0 or body.next_incoming_id is None:
        return
    if nearest(body.next_incoming_id, session.incoming.sync_id) >= session.incoming.sync_id:
        session.incoming.sync_end = -1
    elif session.incoming.sync_end <= case.me.knowledge.must and session.whole and case.me.whole:
        session.incoming.sync_end = -1
        next_incoming_id_not_taken_over(case, session)
