"""What a sender leaves undone that closes a link: deliveries that it had to resume, or to send again.

Which these are follows from how the two attaches list them: see `rules.amqp10.resumed_state`.
"""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.delivery_state import is_outcome
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd

__all__ = ["RULES", "judge_leaving"]


def left_without_resuming(case: Case, link: LinkEnd, lacking: int) -> None:
    """A sender closes a link without having resumed all that both ends listed as unsettled.

    Why it matters: the receiver keeps these deliveries and waits for the sender's word on them.
    Silent when: the other end left first, the link is only suspended, there was an error, the receiver's
    attach may not have been read, or octets were not captured.
    Only possible because: The sender may have been interrupted.
    """
    case.report(
        "amqp10/D-RESUME-BOTH",
        f"{lacking} deliveries that both attaches list as unsettled are not resumed",
        POSSIBLE,
        {"not_resumed": lacking},
        [int(link.attach_packet)],
    )


def left_without_confirming(case: Case, link: LinkEnd, lacking: int) -> None:
    """A sender closes a link without having resumed deliveries of which the receiver holds an outcome.

    Why it matters: the receiver never hears whether its outcome was applied, and cannot settle.
    Silent when: the other end left first, the link is only suspended, there was an error, the receiver's
    attach may not have been read, or octets were not captured.
    Only possible because: The sender may have been interrupted.
    """
    case.report(
        "amqp10/M-RES-TERMRCV",
        f"{lacking} deliveries of which the receiver lists an outcome are not resumed",
        POSSIBLE,
        {"not_resumed": lacking},
        [int(link.attach_packet)],
    )


def left_without_sending_again(case: Case, link: LinkEnd, lacking: int) -> None:
    """A sender closes a link without having sent anything of what the receiver has no record of.

    Why it matters: these messages are lost, if they were to arrive at least once.
    Silent when: the other end left first, the link is only suspended, there was an error, the receiver's
    attach may not have been read, any new delivery was sent, or octets were not captured.
    Only possible because: Which guarantee is wanted is not told.
    """
    case.report(
        "amqp10/M-RES-RESEND-MUST",
        f"{lacking} deliveries of which the receiver has no record are not sent again",
        POSSIBLE,
        {"not_sent": lacking},
        [int(link.attach_packet)],
    )


def _judge_leaving(case: Case, link: LinkEnd) -> None:
    own = link.listed
    theirs = link.peer_listed
    if not own or theirs is None or not link.whole or link.state != "ATTACHED":
        return
    if link.count == link.initial_count and not case.me.knowledge.confirmed(link.peer_attach_end):
        return
    both = 0
    decided = 0
    alone = 0
    complete = link.peer_attach is not None and not link.peer_attach.incomplete_unsettled
    for tag, mine in own.items():
        if tag in link.resumed:
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
    if alone and link.anew == 0:
        left_without_sending_again(case, link, alone)


def judge_leaving(case: Case, session: SessionEnd, handle: int) -> None:
    """The rules about what a sender leaves undone that closes a link."""
    link = session.handles.get(handle)
    if link is not None and link.sender:
        before = case.link
        _judge_leaving(case, link)
        case.link = before


RULES = {
    "amqp10/D-RESUME-BOTH": left_without_resuming,
    "amqp10/M-RES-RESEND-MUST": left_without_sending_again,
    "amqp10/M-RES-TERMRCV": left_without_confirming,
}
