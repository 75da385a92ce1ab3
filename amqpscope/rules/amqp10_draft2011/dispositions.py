"""Dispositions: whether the transfer-ids that they name exist (section 3.7.6)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Disposition

__all__ = ["judge_disposition"]

RULES: Final = Rules("amqp10_draft2011/dispositions")


D_DISP_ROLE: Final = RULES.rule("D-DISP-ROLE", "MUST", "keyword", usual_answer="amqp:invalid-field")


def disposition_of_the_other_direction(case: CaseDraft2011, first: int, role: str, mine: str) -> None:
    """A peer sends a disposition with the role of the other peer instead of its own role.

    Demands: In a disposition with role=sender, a peer may name only transfers that this peer sent. In a
    disposition with role=receiver, a peer may name only transfers that this peer received.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.7.6
    Evidence: the fields `role`, `first` and `last` of the disposition, and the transfers of each direction
    Why it matters: The disposition names transfers of the other direction, or no transfers. The transfers
    that the peer meant stay unsettled.
    Silent when: octets of either peer since the session's begin were not captured or could not be read.
    How to mend it: Set the field `role` to your own role on the transfers: receiver (true) for transfers that
    you received, sender (false) for transfers that you sent.
    """
    case.report(
        D_DISP_ROLE,
        f"a disposition with role={role} names transfer {first}, but this peer has {mine} no such transfer",
        CERTAIN,
        {"role": role},
    )


D_DISP_UNKNOWN: Final = RULES.rule(
    "D-DISP-UNKNOWN",
    "MUST NOT",
    "inferred",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:invalid-field",
)


def disposition_of_unknown_transfers(case: CaseDraft2011, first: int, message: str) -> None:
    """A peer sends a disposition with role=receiver for transfers that it has not received on the session, or
    with role=sender for transfers that it has not sent on the session.

    Demands: A disposition must name transfers of its session. The transfer-ids of earlier sessions have no
    meaning in a disposition.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.6.13 and 3.7.6
    Evidence: the fields `role`, `first` and `last` of the disposition, and the transfer-ids that were used in
    each direction since the session's begin
    Why it matters: The disposition settles nothing. The transfers that the peer meant stay unsettled.
    Silent when: octets of either peer since the session's begin were not captured or could not be read.
    How to mend it: Set the fields `first` and `last` of a disposition only to transfer-ids of transfers that
    you received (role=receiver) or sent (role=sender) on this session. Discard transfer-ids of earlier
    sessions.
    """
    case.report(D_DISP_UNKNOWN, message, CERTAIN, {"first": first})


def judge_disposition(case: CaseDraft2011, session: SessionEnd, body: Disposition) -> None:
    """The rules about what a disposition names: any transfer, also one that goes on with a message."""
    first = body.first
    if first is None or body.role is None or case.found > 0 or not session.whole or not case.me.whole:
        return
    if session.begin is None or session.peer_begin is None:
        return
    incoming = session.incoming
    outgoing = session.outgoing
    begun, following, opposite = outgoing.initial_id, outgoing.next_id, incoming.next_id - incoming.initial_id
    if body.role:
        begun, following = incoming.initial_id, incoming.next_id
        opposite = outgoing.next_id - outgoing.initial_id
    mine = "received" if body.role else "sent"
    lower = nearest(first, following)
    upper = lower if body.last is None else nearest(body.last, lower)
    if lower < following and upper >= begun:
        return
    if begun == following and opposite > 0:
        disposition_of_the_other_direction(case, first, "receiver" if body.role else "sender", mine)
        return
    known = "none"
    if following - begun == 1:
        known = f"only transfer {raw(begun)}"
    elif begun != following:
        known = f"only transfers {raw(begun)} to {raw(following - 1)}"
    disposition_of_unknown_transfers(
        case, first, f"a disposition names transfer {first}, but this peer has {mine} {known}"
    )
