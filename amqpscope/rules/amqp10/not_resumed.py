"""Deliveries that a sender had to resume or send again before it closed a link.

The unsettled maps of the two attaches decide which deliveries these are: see `rules.amqp10.resumed_state`.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.delivery_state import is_outcome
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import ATTACHED
from dissectors.wording import count

__all__ = ["RULES", "judge_leaving"]

RULES: Final = Rules("amqp10/not_resumed")


D_RESUME_BOTH: Final = RULES.rule("D-RESUME-BOTH", "MUST", "keyword", by="sender")


def left_without_resuming(case: Case10, link: LinkEnd, lacking: int) -> None:
    """A sender closes a link without having resumed all deliveries that both peers had listed as unsettled.

    Demands: The sender must resume every delivery that both unsettled maps list.
    Source: transport.xml section links > Resuming Deliveries
    Evidence: delivery-tags that are in both unsettled maps, and for which no transfer with resume=true was
    sent
    Why it matters: The receiver keeps the state of these deliveries and waits for the sender to resume them.
    The messages of these deliveries may be lost or stay unconfirmed.
    Silent when: the receiver detached the link first, when the link is only suspended, or when an error
    occurred. The rule is also silent when the sender may not yet have read the receiver's attach, or when
    octets were not captured.
    Only possible because: An event outside the capture may have interrupted the sender.
    How to mend it: Compare the unsettled maps of both attaches. Send a transfer with resume=true for each
    delivery-tag that both maps list, and settle these deliveries before you close the link.
    """
    case.report(
        D_RESUME_BOTH,
        f"the sender closes the link without resuming {count(lacking, 'delivery')} that the unsettled maps "
        "of both peers list",
        POSSIBLE,
        {"not_resumed": lacking},
        [int(link.attachment.packet)],
    )


M_RES_TERMRCV: Final = RULES.rule("M-RES-TERMRCV", "MUST", "keyword", by="sender")


def left_without_confirming(case: Case10, link: LinkEnd, lacking: int) -> None:
    """A sender closes a link without having resumed deliveries for which the receiver's unsettled map shows
    an outcome.

    Demands: If the receiver's unsettled map shows an outcome for a delivery, the sender must send a transfer
    with resume=true, which gives the delivery a delivery-id.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 3, 8)
    Evidence: the receiver's unsettled map, and the transfers with resume=true
    Why it matters: The receiver does not learn whether the sender applied the outcome. The receiver cannot
    settle the deliveries for which it holds an outcome, and keeps their state.
    Silent when: the receiver detached the link first, when the link is only suspended, or when an error
    occurred. The rule is also silent when the sender may not yet have read the receiver's attach, or when
    octets were not captured.
    Only possible because: An event outside the capture may have interrupted the sender.
    How to mend it: For each delivery-tag that the receiver's unsettled map lists with an outcome, send a
    transfer with resume=true and the state that you applied. Settle the delivery if your outcome and the
    receiver's outcome are the same.
    """
    case.report(
        M_RES_TERMRCV,
        f"the sender closes the link without resuming {count(lacking, 'delivery')} for which the receiver's "
        "unsettled map has an outcome",
        POSSIBLE,
        {"not_resumed": lacking},
        [int(link.attachment.packet)],
    )


M_RES_RESEND_MUST: Final = RULES.rule(
    "M-RES-RESEND-MUST",
    "MUST",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def left_without_sending_again(case: Case10, link: LinkEnd, lacking: int) -> None:
    """A sender has unsettled deliveries that the receiver's unsettled map does not list. The sender closes
    the link without sending any of these deliveries again.

    Demands: A sender must send the message of an unsettled delivery again if the receiver does not know the
    delivery and the sender's delivery guarantee requires the repetition. The final specification names the
    guarantees at-least-once and at-most-once. The drafts csd01 and csprd02 name the guarantees exactly-once
    and at-least-once.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 1, 5)
    Evidence: unsettled deliveries that the receiver does not list, and the messages after the link was
    resumed
    Why it matters: The messages are lost. Lost messages break the delivery guarantee at-least-once.
    Silent when: the receiver detached the link first, when the link is only suspended, or when an error
    occurred. The rule is also silent when the sender may not yet have read the receiver's attach, or when any
    new delivery was sent. The rule is also silent when octets were not captured.
    Only possible because: The capture does not show which delivery guarantee the sender wants.
    How to mend it: For each unsettled delivery that the receiver's complete unsettled map does not list, send
    the message again as a new delivery without resume=true. You need not send the message again if the
    application accepts its loss.
    """
    what = "the message" if lacking == 1 else "the messages"
    case.report(
        M_RES_RESEND_MUST,
        f"the receiver's unsettled map lacks {count(lacking, 'unsettled delivery')} of the sender, and the "
        f"sender closes the link without sending {what} again",
        POSSIBLE,
        {"not_sent": lacking},
        [int(link.attachment.packet)],
    )


def _judge_leaving(case: Case10, link: LinkEnd) -> None:
    own = link.resumption.listed
    theirs = link.resumption.peer_listed
    if not own or theirs is None or not link.whole or link.state != ATTACHED:
        return
    if link.credit.count == link.initial_count and not case.me.knowledge.confirmed(link.attachment.peer_end):
        return
    both = 0
    decided = 0
    alone = 0
    complete = link.peer_attach is not None and not link.peer_attach.incomplete_unsettled
    for tag, mine in own.items():
        if tag in link.resumption.resumed:
            continue
        if tag not in theirs:
            if not is_outcome(mine) and complete:
                alone += 1
        elif is_outcome(theirs[tag]):
            decided += 1
        else:
            both += 1
    case.link = link
    if both:
        left_without_resuming(case, link, both)
    if decided:
        left_without_confirming(case, link, decided)
    if alone and link.credit.anew == 0:
        left_without_sending_again(case, link, alone)


def judge_leaving(case: Case10, session: SessionEnd, handle: int) -> None:
    """Judge the deliveries that a sender leaves when it closes a link."""
    link = session.handles.get(handle)
    if link is not None and link.sender:
        before = case.link
        _judge_leaving(case, link)
        case.link = before
