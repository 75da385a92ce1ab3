"""How a delivery that is resumed has to go on, by what both ends hold of it.

What has to be done with a delivery follows from how the two attaches list it (messaging.xml, "Resuming
Deliveries Using Delivery States", whose example has fourteen of them):

    receiver's map     sender's map                 what the sender does
    not listed         anything                     sends it anew, or not; without resume (tags 1, 5, 10)
    an outcome         the same outcome             resumes it settled (12)
                       another outcome              resumes it and states its own (13)
                       none                         resumes it and states what became of it (3, 8)
    null, received     an outcome                   aborts: it cannot go on (11, 14)
                       a position behind            aborts: what is between is lost (7, 9)
                       a position not behind        resumes from between the two positions (2, 4, 6)

null stands for the position 0, 0.
"""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.delivery_state import is_outcome, position, state_name, told
from amqpscope.rules.amqp10.link import attach_read
from amqpscope.tracking.amqp10.link import LinkEnd
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["RULES", "judge_completion", "judge_state"]


# The receiver holds an outcome


def resumed_without_its_outcome(case: Case, link: LinkEnd, theirs: object, certainty: i64) -> None:
    """A delivery of which the receiver holds an outcome is resumed without a state.

    Why it matters: the receiver waits to hear whether its outcome was applied.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-TERMRCV-STATE",
        f"the receiver holds {state_name(theirs)}; the delivery is resumed without the outcome at its source",
        certainty,
        {"receiver_state": state_name(theirs)},
        [int(link.attach_packet)],
    )


def resumed_unsettled_with_both_outcomes(case: Case, link: LinkEnd, theirs: object) -> None:
    """A delivery of which both ends hold the same outcome is resumed without being settled.

    Why it matters: there is nothing left to say of it; both ends go on keeping it.
    Silent when: one of the attaches was not captured.
    Only possible because: A disposition may settle it.
    """
    case.report(
        "amqp10/M-RES-BOTHTERM",
        f"both ends hold {state_name(theirs)}; the delivery is resumed without being settled",
        POSSIBLE,
        {"receiver_state": state_name(theirs), "sender_state": state_name(theirs)},
        [int(link.attach_packet)],
    )


def outcome_not_restated(case: Case, link: LinkEnd, own: object, theirs: object, certainty: i64) -> None:
    """The two ends hold different outcomes of a delivery, and the sender resumes it without stating its own.

    Why it matters: the sender's is what took effect; the receiver goes on believing the other.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-DIFFER",
        f"the receiver holds {state_name(theirs)}, the sender {state_name(own)}, which is not restated",
        certainty,
        {"receiver_state": state_name(theirs), "sender_state": state_name(own)},
        [int(link.attach_packet)],
    )


def _judge_outcomes(
    case: Case, link: LinkEnd, body: Transfer, own: object, theirs: object, certainty: i64
) -> None:
    """A delivery of which the receiver holds an outcome is resumed."""
    if not is_outcome(own):
        if not is_outcome(body.state) and not body.aborted:
            resumed_without_its_outcome(case, link, theirs, certainty)
    elif own != theirs:
        if body.aborted or body.state != own:
            outcome_not_restated(case, link, own, theirs, certainty)
    elif not body.settled and not body.aborted and not body.more:
        resumed_unsettled_with_both_outcomes(case, link, theirs)


# The receiver has a part, or nothing


def resumed_with_data_after_an_outcome(case: Case, link: LinkEnd, own: object) -> None:
    """A sender lists an outcome of a delivery that it then goes on sending.

    Why it matters: by the map the delivery is decided; the receiver may have given up what it had of it.
    Silent when: one of the attaches was not captured.
    Only possible because: No capture can prove it.
    """
    case.report(
        "amqp10/M-RES-TERMMAP",
        f"the sender lists {state_name(own)} of a delivery, and sends its data again",
        POSSIBLE,
        {"sender_state": state_name(own)},
        [int(link.attach_packet)],
    )


def not_aborted_though_decided(case: Case, link: LinkEnd, own: object, certainty: i64) -> None:
    """A delivery that is decided at the sender and incomplete at the receiver is resumed and not aborted.

    Why it matters: the receiver takes what it has for a whole message, or waits for the rest.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-ABORT-LOST",
        f"the sender holds {state_name(own)}, the receiver has not all of the delivery, which is not aborted",
        certainty,
        {"sender_state": state_name(own)},
        [int(link.attach_packet)],
    )


def not_aborted_with_a_gap(
    case: Case, link: LinkEnd, own: tuple[int, int], theirs: tuple[int, int], certainty: i64
) -> None:
    """A delivery is resumed and not aborted, though the sender cannot go back to where the receiver is.

    Why it matters: what lies between is in the message nowhere; the receiver joins the wrong octets.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-GAP",
        f"the receiver is at {told(theirs)}, the sender begins at {told(own)}; the delivery is not aborted",
        certainty,
        {"receiver_position": told(theirs), "sender_position": told(own)},
        [int(link.attach_packet)],
    )


def resumed_behind_the_start(case: Case, link: LinkEnd, start: tuple[int, int], certainty: i64) -> None:
    """A delivery of which the receiver has kept nothing is not resumed from its start.

    Why it matters: the beginning of the message is missing.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-NULLRCV",
        f"the receiver lists null, the delivery is resumed at {told(start)}",
        certainty,
        {"position": told(start)},
        [int(link.attach_packet)],
    )


def resumed_at_another_position(
    case: Case,
    link: LinkEnd,
    start: tuple[int, int],
    own: tuple[int, int],
    theirs: tuple[int, int],
    certainty: i64,
) -> None:
    """A delivery is resumed behind the receiver's position, or before the sender's own.

    Why it matters: the receiver puts the octets in a wrong place of the message.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-START",
        f"the delivery is resumed at {told(start)}, "
        f"the sender can begin at {told(own)}, the receiver is at {told(theirs)}",
        certainty,
        {
            "position": told(start),
            "sender_position": told(own),
            "receiver_position": told(theirs),
        },
        [int(link.attach_packet)],
    )


def _judge_positions(
    case: Case, link: LinkEnd, body: Transfer, own: object, theirs: object, certainty: i64
) -> None:
    """A delivery is resumed of which the receiver has a part, or nothing."""
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


def data_left_out(case: Case, octets: i64, before: i64, certainty: i64) -> None:
    """A delivery is resumed from its start with less data than it had.

    Why it matters: the receiver takes the part for the whole message.
    Silent when: one of the attaches was not captured, the receiver has some of it, or how large it was was
    not captured. Possible when there is some: the message may have been encoded in another way.
    """
    case.report(
        "amqp10/D-RESUME-OMIT",
        "a delivery is resumed from its start without any data"
        if octets == 0
        else f"a delivery is resumed from its start with {octets} octets, it had {before}",
        certainty,
        {"octets": int(octets), "octets_before": int(before)},
    )


# Who is brought before them


def judge_state(
    case: Case, link: LinkEnd, body: Transfer, own: object, theirs: object, certainty: i64
) -> None:
    """The first transfer of a resumed delivery, of which the sender's map and the receiver's say this."""
    if is_outcome(theirs):
        _judge_outcomes(case, link, body, own, theirs, certainty)
    else:
        _judge_positions(case, link, body, own, theirs, certainty)


def judge_completion(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The rules about the last transfer of a resumed delivery."""
    delivery = link.open
    own = link.listed
    theirs = link.peer_listed
    if delivery is not None:
        tag = delivery.tag
        state = delivery.first_state
    else:
        tag = body.delivery_tag
        state = body.state
    if tag is None or own is None or theirs is None or not link.whole:
        return
    if tag not in own or tag not in theirs or (delivery is None and tag in link.resumed):
        return
    if is_outcome(own[tag]) or is_outcome(theirs[tag]):
        return
    if position(state) != (0, 0) or position(own[tag]) != (0, 0):
        return
    frame = case.record.frame
    octets = frame.payload_size + frame.missing
    if delivery is not None:
        octets += delivery.octets
    before = link.former.get(tag, 0)
    if octets == 0:
        data_left_out(case, octets, before, attach_read(case, link))
    elif octets < before:
        data_left_out(case, octets, before, POSSIBLE)


RULES = {
    "amqp10/D-RESUME-OMIT": data_left_out,
    "amqp10/M-RES-TERMRCV-STATE": resumed_without_its_outcome,
    "amqp10/M-RES-BOTHTERM": resumed_unsettled_with_both_outcomes,
    "amqp10/M-RES-DIFFER": outcome_not_restated,
    "amqp10/M-RES-TERMMAP": resumed_with_data_after_an_outcome,
    "amqp10/M-RES-ABORT-LOST": not_aborted_though_decided,
    "amqp10/M-RES-GAP": not_aborted_with_a_gap,
    "amqp10/M-RES-NULLRCV": resumed_behind_the_start,
    "amqp10/M-RES-START": resumed_at_another_position,
}
