"""Transfers: their ids, and which delivery they belong to (sections 3.5.6, 3.6.14 and 3.7.5)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["judge_continuation", "judge_transfer_id"]

RULES: Final = Rules("amqp10_draft2011/transfers")


D_ID_SEQ: Final = RULES.rule("D-ID-SEQ", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field")


def transfer_id_out_of_sequence(case: CaseDraft2011, value: int, expected: i64) -> None:
    """A sender sends a transfer whose transfer-id is not the next transfer-id of the session.

    Demands: Each transfer frame of a session must have the next transfer-id of the session. The first
    transfer-id is the next-outgoing-id of the begin.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.5.6
    Evidence: the next-outgoing-id of the begin, and the transfer-ids of all transfers of the session
    Why it matters: The receiver counts its window from the transfer-id, and dispositions name ranges of
    transfer-ids. A disposition may settle the wrong transfers.
    Silent when: the capture lacks octets that were sent after the session's begin. The rule is also silent
    when an earlier transfer of the session broke the rule.
    How to mend it: Take the transfer-id from one counter of the session that all links share. Add one for
    every transfer frame, also for a transfer that continues a message.
    """
    case.report(
        D_ID_SEQ,
        f"the transfer has transfer-id {value}, but the next transfer-id of its session is {raw(expected)}",
        CERTAIN,
        {"transfer_id": int(raw(expected))},
    )


def judge_transfer_id(case: CaseDraft2011, session: SessionEnd, value: int, expected: i64) -> bool:
    """The rule about the transfer-id of a transfer. expected: the one that follows. False if it is broken."""
    if nearest(value, expected) == expected:
        return True
    if session.whole:
        transfer_id_out_of_sequence(case, value, expected)
    return False


D_NOINTERLEAVE: Final = RULES.rule(
    "D-NOINTERLEAVE", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def deliveries_interleave(case: CaseDraft2011, delivery: Delivery) -> None:
    """A sender begins a new delivery on a link before the previous delivery on this link is complete.

    Demands: Messages that are transferred on one link must not interleave.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.6.14
    Evidence: a transfer with another delivery-tag after a transfer with more=true on the same handle
    Why it matters: The receiver cannot tell which transfer belongs to which delivery. The receiver may join
    parts of two messages into one message.
    Silent when: the capture lacks octets that were sent after the attach of the link.
    How to mend it: Send all transfers of one delivery on a link before you start the next delivery on that
    link. Each transfer carries the delivery-tag of its delivery. A common cause of this fault is that several
    threads send on the same link without a lock around the whole message.
    """
    case.report(
        D_NOINTERLEAVE,
        "a transfer with another delivery-tag begins a new delivery, although the delivery that began in "
        f"packet {delivery.packet} is still incomplete",
        CERTAIN,
        None,
        [int(delivery.packet)],
    )


def judge_continuation(case: CaseDraft2011, link: LinkEnd, delivery: Delivery, body: Transfer) -> bool:
    """The rules about a transfer that goes on with a delivery. False if it belongs to another one."""
    tag = body.delivery_tag
    if tag is None or delivery.tag is None or tag == delivery.tag:
        return True
    if link.whole:
        deliveries_interleave(case, delivery)
    return False
