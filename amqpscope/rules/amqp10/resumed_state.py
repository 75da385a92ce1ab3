"""The ways to resume a delivery, by the states that both ends hold.

The unsettled maps of the two attaches decide what the sender does (messaging.xml, "Resuming Deliveries Using
Delivery States", whose example has fourteen deliveries):

    receiver's map     sender's map                 what the sender does
    not listed         anything                     sends it anew, or not; without resume (tags 1, 5, 10)
    an outcome         the same outcome             resumes it settled (12)
                       another outcome              resumes it and states its own (13)
                       none                         resumes it and states its outcome (3, 8)
    null, received     an outcome                   aborts: it cannot go on (11, 14)
                       a later position             aborts: the data between is lost (7, 9)
                       no later position            resumes from between the two positions (2, 4, 6)

null stands for the position 0, 0.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case10, attach_read
from amqpscope.rules.amqp10.delivery_state import is_outcome, position, position_text, quoted, state_name
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import LinkEnd
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["RULES", "judge_completion", "judge_state"]

RULES: Final = Rules("amqp10/resumed_state")


# The receiver holds an outcome


M_RES_TERMRCV_STATE: Final = RULES.rule("M-RES-TERMRCV-STATE", "SHOULD", "keyword", by="sender")


def resumed_without_its_outcome(case: Case10, link: LinkEnd, theirs: object, certainty: i64) -> None:
    """A sender resumes a delivery without an outcome, although the receiver's unsettled map lists an outcome
    for the delivery.

    Demands: If the receiver's unsettled map lists an outcome for a delivery, the transfer that resumes the
    delivery should carry the outcome that the source holds.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 3, 8)
    Evidence: the state of the transfer with resume=true
    Why it matters: The receiver keeps the state of the delivery until it learns whether its outcome was
    applied.
    Silent when: one of the attach frames was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: When the receiver's unsettled map lists an outcome for a delivery, apply this outcome at
    the source. Set the state field of the resuming transfer to the outcome that the source now holds.
    """
    case.report(
        M_RES_TERMRCV_STATE,
        f"the receiver's unsettled map lists the outcome {quoted(theirs)}, but the transfer that resumes "
        "the delivery carries no outcome",
        certainty,
        {"receiver_state": state_name(theirs)},
        [int(link.attachment.packet)],
    )


M_RES_BOTHTERM: Final = RULES.rule("M-RES-BOTHTERM", "SHOULD", "lower-case", by="sender")


def resumed_unsettled_with_both_outcomes(case: Case10, link: LinkEnd, theirs: object) -> None:
    """Both peers list the same outcome for a delivery, and the sender resumes the delivery without settling
    the delivery.

    Demands: If both peers list the same outcome for a delivery, the sender should resume the delivery with
    settled=true. The draft csprd02 writes this demand with the keyword SHOULD.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tag 12)
    Evidence: both unsettled maps, and the settled flag of the transfer with resume=true
    Why it matters: The peers agree on the outcome, but both peers continue to keep the state of the delivery.
    Silent when: one of the attach frames was not captured.
    Only possible because: A later disposition may settle the delivery.
    How to mend it: When both unsettled maps list the same outcome for a delivery, set settled=true on the
    resuming transfer.
    """
    case.report(
        M_RES_BOTHTERM,
        f"the unsettled maps of both peers list the outcome {quoted(theirs)}, but the sender resumes the "
        "delivery without settled=true",
        POSSIBLE,
        {"receiver_state": state_name(theirs), "sender_state": state_name(theirs)},
        [int(link.attachment.packet)],
    )


M_RES_DIFFER: Final = RULES.rule("M-RES-DIFFER", "MUST", "keyword", by="sender")


def outcome_not_restated(case: Case10, link: LinkEnd, own: object, theirs: object, certainty: i64) -> None:
    """The two peers list different outcomes for a delivery, and the sender resumes the delivery without
    sending its own outcome again.

    Demands: If the two peers list different outcomes for a delivery, the sender's outcome takes effect, and
    the sender must send its outcome again.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tag 13)
    Evidence: both unsettled maps, and the state of the transfer with resume=true
    Why it matters: Only the sender's outcome takes effect. The receiver continues to assume that its own
    outcome was applied.
    Silent when: one of the attach frames was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: When the two unsettled maps list different outcomes for a delivery, set the state field of
    the resuming transfer to the sender's own outcome. Do not abort a delivery for which the outcomes differ.
    """
    case.report(
        M_RES_DIFFER,
        f"the receiver's unsettled map lists the outcome {quoted(theirs)} and the sender's unsettled map "
        f"lists {quoted(own)}, but the transfer that resumes the delivery does not carry the sender's "
        "outcome",
        certainty,
        {"receiver_state": state_name(theirs), "sender_state": state_name(own)},
        [int(link.attachment.packet)],
    )


def _judge_outcomes(
    case: Case10, link: LinkEnd, body: Transfer, own: object, theirs: object, certainty: i64
) -> None:
    """Judge a resumed delivery for which the receiver holds an outcome."""
    if not is_outcome(own):
        if not is_outcome(body.state) and not body.aborted:
            resumed_without_its_outcome(case, link, theirs, certainty)
    elif own != theirs:
        if body.aborted or body.state != own:
            outcome_not_restated(case, link, own, theirs, certainty)
    elif not body.settled and not body.aborted and not body.more:
        resumed_unsettled_with_both_outcomes(case, link, theirs)


# The receiver has a part, or nothing


M_RES_TERMMAP: Final = RULES.rule(
    "M-RES-TERMMAP",
    "MUST NOT",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def resumed_with_data_after_an_outcome(case: Case10, link: LinkEnd, own: object) -> None:
    """A sender lists an outcome for a delivery in its unsettled map and then sends data of the delivery
    again.

    Demands: If a sender can resume a delivery and the receiver may need more data of the delivery, the
    sender's unsettled map must not list an outcome for this delivery.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 10-14)
    Evidence: both unsettled maps, and the payload of the resumed delivery
    Why it matters: The outcome says that the delivery is complete. The receiver may already have discarded
    the octets of the delivery that it had received.
    Silent when: one of the attach frames was not captured.
    Only possible because: No capture can prove this fault, because no frame shows why the {peer} sends the
    data again.
    How to mend it: In the unsettled map, give each delivery that you can still resume the value null or the
    state `received`. List an outcome only when you are sure that the receiver needs no more data.
    """
    case.report(
        M_RES_TERMMAP,
        f"the sender's unsettled map lists the outcome {quoted(own)} for a delivery, but the sender sends "
        "data of this delivery again",
        POSSIBLE,
        {"sender_state": state_name(own)},
        [int(link.attachment.packet)],
    )


M_RES_ABORT_LOST: Final = RULES.rule(
    "M-RES-ABORT-LOST",
    "MAY-limits",
    "definition",
    by="sender",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
)


def not_aborted_though_decided(case: Case10, link: LinkEnd, own: object, certainty: i64) -> None:
    """A sender's unsettled map lists an outcome for a delivery that is incomplete at the receiver, and the
    sender resumes the delivery without aborting the delivery.

    Demands: If the sender lists an outcome for a delivery that is incomplete at the receiver, the sender must
    abort the resumed delivery.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 11, 14)
    Evidence: both unsettled maps, and the aborted flag of the transfer with resume=true
    Why it matters: The receiver treats the received part as the whole message, or waits for the rest of the
    message.
    Silent when: one of the attach frames was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: Look for deliveries for which your unsettled map lists an outcome and the receiver's map
    lists null or the state `received`. Set aborted=true on the transfer that resumes such a delivery.
    """
    case.report(
        M_RES_ABORT_LOST,
        f"the sender's unsettled map lists the outcome {quoted(own)} for a delivery that is incomplete at "
        "the receiver, but the sender does not abort the delivery",
        certainty,
        {"sender_state": state_name(own)},
        [int(link.attachment.packet)],
    )


M_RES_GAP: Final = RULES.rule("M-RES-GAP", "MUST", "definition", by="sender", usual_answer="amqp:not-allowed")


def not_aborted_with_a_gap(
    case: Case10, link: LinkEnd, own: tuple[int, int], theirs: tuple[int, int], certainty: i64
) -> None:
    """A sender resumes a delivery without aborting it, although the sender can no longer send the octets that
    the receiver needs next.

    Demands: If the sender can no longer send the octets that the receiver needs next, the sender must abort
    the resumed delivery.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 7, 9)
    Evidence: the positions in both unsettled maps, and the aborted flag of the transfer with resume=true
    Why it matters: The octets between the receiver's position and the sender's position are missing from the
    message. The receiver joins octets that do not belong together.
    Silent when: one of the attach frames was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: Compare the receiver's position with the earliest position from which you can send. If the
    receiver's position is earlier, send a transfer with resume=true and aborted=true. Then, if possible, send
    the message as a new delivery.
    """
    case.report(
        M_RES_GAP,
        f"the receiver needs data from {position_text(theirs)} on, but the sender can only begin "
        f"at {position_text(own)} and does not abort the delivery",
        certainty,
        {"receiver_position": position_text(theirs), "sender_position": position_text(own)},
        [int(link.attachment.packet)],
    )


M_RES_NULLRCV: Final = RULES.rule("M-RES-NULLRCV", "MUST", "keyword", by="sender")


def resumed_behind_the_start(case: Case10, link: LinkEnd, start: tuple[int, int], certainty: i64) -> None:
    """A sender leaves out the start of the message when it resumes a delivery of which the receiver has kept
    nothing.

    Demands: If the receiver's unsettled map lists a delivery-tag with the value null, the sender must send
    the whole message again with resume=true and the same delivery-tag.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tag 4)
    Evidence: a null value in the receiver's unsettled map, and the payload of the resumed delivery
    Why it matters: The beginning of the message is missing, so the receiver gets a message that is incomplete
    or that the receiver cannot decode.
    Silent when: one of the attach frames was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: When the receiver's unsettled map lists a delivery-tag with the value null, send the whole
    message again from its first octet, with resume=true and the same delivery-tag.
    """
    case.report(
        M_RES_NULLRCV,
        "the receiver's unsettled map lists the delivery with the value null, but the sender resumes the "
        f"delivery at {position_text(start)} instead of its start",
        certainty,
        {"position": position_text(start)},
        [int(link.attachment.packet)],
    )


M_RES_START: Final = RULES.rule(
    "M-RES-START", "MUST", "lower-case", by="sender", usual_answer="amqp:not-allowed"
)


def resumed_at_another_position(
    case: Case10,
    link: LinkEnd,
    start: tuple[int, int],
    own: tuple[int, int],
    theirs: tuple[int, int],
    certainty: i64,
) -> None:
    """A sender resumes a delivery after the position that the receiver needs next, or before the earliest
    position from which the sender can send.

    Demands: A sender must resume a partly received delivery at or before the position that the receiver needs
    next. The sender must not resume the delivery before the earliest position from which it can send. The
    final specification and the draft csd01 write 'must' in lower case, and the draft csprd02 writes 'needs
    to'.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tags 2, 6)
    Evidence: the positions in both unsettled maps, and the state of the first resumed transfer
    Why it matters: The receiver puts the octets at a wrong place in the message, so the message is corrupted.
    Silent when: one of the attach frames was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: Start the resumed data at or before the position in the receiver's unsettled map, and not
    before the position in your own unsettled map. On the first transfer, give the start position in the
    delivery state `received`.
    """
    case.report(
        M_RES_START,
        f"the sender resumes the delivery at {position_text(start)}, but must resume the delivery at or "
        f"after {position_text(own)}, the sender's earliest position, and at or before "
        f"{position_text(theirs)}, the position that the receiver needs next",
        certainty,
        {
            "position": position_text(start),
            "sender_position": position_text(own),
            "receiver_position": position_text(theirs),
        },
        [int(link.attachment.packet)],
    )


def _judge_positions(
    case: Case10, link: LinkEnd, body: Transfer, own: object, theirs: object, certainty: i64
) -> None:
    """Judge a resumed delivery of which the receiver has a part, or nothing."""
    frame = case.record.frame
    data = frame.payload_size + frame.missing
    if body.aborted or (body.more and data == 0):
        return
    if is_outcome(own):
        if data > 0:
            resumed_with_data_after_an_outcome(case, link, own)
        else:
            not_aborted_though_decided(case, link, own, certainty)
        return
    first = position(own)
    wanted = position(theirs)
    if first is None or wanted is None:
        return
    if wanted < first:
        not_aborted_with_a_gap(case, link, first, wanted, certainty)
        return
    start = position(body.state)
    if start is None:
        return
    if theirs is None and start > wanted:
        resumed_behind_the_start(case, link, start, certainty)
    elif start > wanted or start < first:
        resumed_at_another_position(case, link, start, first, wanted, certainty)


D_RESUME_OMIT: Final = RULES.rule(
    "D-RESUME-OMIT",
    "MAY-limits",
    "keyword",
    by="sender",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
    usual_answer="amqp:not-allowed",
    octets=True,
)


def data_left_out(case: Case10, octets: i64, before: i64, certainty: i64) -> None:
    """A sender resumes a delivery from its start with less data than the delivery had before.

    Demands: A sender may leave out data of a resumed delivery only if the receiver's state of the delivery
    shows that the receiver has this data.
    Source: transport.xml section links > Resuming Deliveries; transport.xml section performatives >
    transfer.resume
    Evidence: the receiver's state of the delivery, and the payload of the resumed delivery
    Why it matters: The receiver treats the incomplete data as the whole message, so the application gets a
    truncated message.
    Silent when: one of the attach frames was not captured, or when the receiver already has a part of the
    delivery. The rule is also silent when the earlier size of the delivery was not captured. The finding is
    reported as possible, not as certain, when the resumed delivery has some data, because the sender may have
    encoded the message in another way.
    How to mend it: Look up the state `received` of the delivery in the receiver's unsettled map, and leave
    out only the data that the receiver already has. Send all other data of the resumed delivery again.
    """
    case.report(
        D_RESUME_OMIT,
        "the sender resumes a delivery from its start without any data, although the receiver may have "
        "none of the data"
        if octets == 0
        else f"the sender resumes a delivery from its start with {octets} octets instead of {before}",
        certainty,
        {"octets": int(octets), "octets_before": int(before)},
    )


# Who is brought before them


def judge_state(
    case: Case10, link: LinkEnd, body: Transfer, own: object, theirs: object, certainty: i64
) -> None:
    """Judge the first transfer of a resumed delivery by the states in both unsettled maps."""
    if is_outcome(theirs):
        _judge_outcomes(case, link, body, own, theirs, certainty)
    else:
        _judge_positions(case, link, body, own, theirs, certainty)


def judge_completion(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """Judge the last transfer of a resumed delivery."""
    delivery = link.open
    own = link.resumption.listed
    theirs = link.resumption.peer_listed
    if delivery is not None:
        tag = delivery.tag
        state = delivery.first_state
    else:
        tag = body.delivery_tag
        state = body.state
    if tag is None or own is None or theirs is None or not link.whole:
        return
    if tag not in own or tag not in theirs or (delivery is None and tag in link.resumption.resumed):
        return
    if is_outcome(own[tag]) or is_outcome(theirs[tag]):
        return
    if position(state) != (0, 0) or position(own[tag]) != (0, 0):
        return
    frame = case.record.frame
    octets = frame.payload_size + frame.missing
    if delivery is not None:
        octets += delivery.octets
    before = link.resumption.former.get(tag, 0)
    if octets == 0:
        data_left_out(case, octets, before, attach_read(case, link))
    elif octets < before:
        data_left_out(case, octets, before, POSSIBLE)
