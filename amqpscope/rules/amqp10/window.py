"""The windows of a session: how many transfers each side takes and offers (transport.xml, "Session Flow
Control")."""

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.session import FAR, SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Flow
from dissectors.wire import i64

__all__ = ["judge_flow", "judge_transfer"]


def transfer_beyond_window(case: Case, session: SessionEnd, certainty: i64) -> None:
    """A transfer is sent beyond the peer's incoming-window.

    Why it matters: the receiver may have no room; it ends the session with window-violation.
    Silent when: the begins were not captured, or octets since. Possible when only the newest of several
    windows that the sender may have known is exceeded. Told by another name where a mistake explains it: a
    window counted from the sender's own next-outgoing-id, or further transfers of a delivery not counted.
    """
    _tell(case, "amqp10/S-WIN-IN", session, certainty, "")


def window_counted_from_its_own_id(case: Case, session: SessionEnd) -> None:
    """A sender takes the peer's incoming-window as counted from its own next-outgoing-id.

    Why it matters: it counts from the next-incoming-id of the same flow; what was on its way has used some of
    it.
    Silent when: the begins were not captured, or octets since, or an older window that the sender may have
    known is not exceeded.
    """
    _tell(case, "amqp10/S-WIN-FORMULA", session, CERTAIN, ", which counts from its next-incoming-id")


def window_counted_from_nothing(case: Case, session: SessionEnd) -> None:
    """A sender takes the window of a flow without next-incoming-id as counted from its own next-outgoing-id.

    Why it matters: without it the window counts from the sender's first transfer on; what was sent since has
    used some of it.
    Silent when: the begins were not captured, or octets since, or an older window that the sender may have
    known is not exceeded.
    """
    _tell(case, "amqp10/S-WIN-FORMULA-INIT", session, CERTAIN, ", which counts from the first transfer")


def further_transfers_not_counted(case: Case, session: SessionEnd) -> None:
    """A sender exceeds the peer's incoming-window by as many transfers as were not the first of a delivery.

    Why it matters: each transfer uses one of the window, also one that goes on with a delivery.
    Silent when: the begins were not captured, or octets since, or an older window that the sender may have
    known is not exceeded.
    """
    _tell(case, "amqp10/S-WIN-DECR", session, CERTAIN, "; transfers that go on with a delivery count, too")


def _tell(case: Case, rule: str, session: SessionEnd, certainty: i64, why: str) -> None:
    limits = session.limits
    bound = limits.largest() if certainty == CERTAIN else limits.newest()
    case.report(
        rule,
        f"transfer-id {raw(session.next_id)} is sent, the peer's incoming-window allows those before "
        f"{raw(bound)}{why}",
        certainty,
        {
            "next_outgoing_id": int(raw(session.next_id)),
            "remote_incoming_window": int(limits.newest() - session.next_id),
        },
        [int(limits.newest_packet())],
    )


def transfer_beyond_its_own_window(case: Case, session: SessionEnd) -> None:
    """A peer sends more transfers than the outgoing-window that it told last.

    Why it matters: the receiver may plan by it.
    Silent when: the begin was not captured, or octets since, or it was told of the session before.
    Only possible because: Whether the window counts down is for the peer to say.
    """
    session.own_limit = FAR
    session.own_told = True
    case.report(
        "amqp10/S-WIN-OUT",
        f"transfer-id {raw(session.next_id)} is beyond the outgoing-window that its sender told last",
        POSSIBLE,
        {"next_outgoing_id": int(raw(session.next_id))},
    )


def judge_transfer(case: Case, session: SessionEnd) -> None:
    """The windows' rules about transfer."""
    limits = session.limits
    if not session.whole:
        return
    if session.next_id >= session.own_limit:
        transfer_beyond_its_own_window(case, session)
    if len(limits) == 0:
        return
    certainty = limits.judge(session.next_id)
    if certainty == LEGAL:
        return
    if certainty != CERTAIN:
        transfer_beyond_window(case, session, certainty)
    elif session.next_id < session.hasty_limit:
        if session.hasty_bare:
            window_counted_from_nothing(case, session)
        else:
            window_counted_from_its_own_id(case, session)
    elif session.continued > 0 and session.next_id - session.continued < limits.newest():
        further_transfers_not_counted(case, session)
    else:
        transfer_beyond_window(case, session, certainty)


def next_incoming_id_not_taken_over(case: Case, session: SessionEnd) -> None:
    """A peer read a flow and goes on counting transfers from where it was before it.

    Why it matters: the flow's next-outgoing-id replaces the count; else the two count differently for ever.
    Silent when: it may not have read the flow, or octets were not captured.
    Only possible because: The flow skipped transfers, which is a fault of its own, and who sees that may not
    follow it.
    """
    case.report(
        "amqp10/S-FLOW-SYNC",
        f"next-incoming-id is below {raw(session.sync_id)}, which the peer's flow set (packet "
        f"{session.sync_packet})",
        POSSIBLE,
        {"next_incoming_id": int(raw(session.sync_id))},
        [int(session.sync_packet)],
    )


def judge_flow(case: Case, session: SessionEnd, body: Flow) -> None:
    """The windows' rules about flow."""
    if session.sync_end < 0 or body.next_incoming_id is None:
        return
    if nearest(body.next_incoming_id, session.sync_id) >= session.sync_id:
        session.sync_end = -1
    elif session.sync_end <= case.me.knowledge.must and session.whole and case.me.whole:
        session.sync_end = -1
        next_incoming_id_not_taken_over(case, session)


RULES = {
    "amqp10/S-WIN-IN": transfer_beyond_window,
    "amqp10/S-WIN-FORMULA": window_counted_from_its_own_id,
    "amqp10/S-WIN-FORMULA-INIT": window_counted_from_nothing,
    "amqp10/S-WIN-DECR": further_transfers_not_counted,
    "amqp10/S-WIN-OUT": transfer_beyond_its_own_window,
    "amqp10/S-FLOW-SYNC": next_incoming_id_not_taken_over,
}
