"""Deliveries that are resumed when a link is attached again (transport.xml, "Resuming Deliveries").

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

from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.link import attach_read
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.knowledge import CERTAIN, POSSIBLE
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.transactions import Declared
from dissectors.wire import i64

__all__ = [
    "is_outcome",
    "judge_attach",
    "judge_completion",
    "judge_continuation",
    "judge_disposition",
    "judge_first",
    "judge_leaving",
    "received_state_from_sender",
]


def is_outcome(state: object) -> bool:
    """Whether a delivery state is a terminal one of messaging.xml."""
    return (
        isinstance(state, Composite)
        and "outcome" in state.definition().provides
        and not isinstance(state, Declared)
    )


def _position(state: object) -> tuple[int, int] | None:
    """Where a delivery state says that a message goes on; None if it says something else."""
    if state is None:
        return (0, 0)
    if isinstance(state, Received) and state.section_number is not None and state.section_offset is not None:
        return (int(state.section_number), int(state.section_offset))
    return None


def _told(position: tuple[int, int]) -> str:
    return f"section {position[0]}, octet {position[1]}"


def _name(state: object) -> str:
    return state.definition().name if isinstance(state, Composite) else "no state"


def resumed_without_resume(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery that both ends hold unsettled is sent again without the resume flag.

    Why it matters: the receiver takes it for a new delivery, and has it twice.
    Silent when: one of the two attaches was not captured, or the delivery was resumed since. Possible when
    the receiver's attach may not have been read.
    """
    tag = body.delivery_tag
    own = link.listed
    theirs = link.peer_listed
    if tag is None or body.resume or not own or not theirs or not link.whole:
        return
    if tag in link.tags or tag in link.resumed:
        return
    if tag in own and tag in theirs:
        case.report(
            "amqp10/D-RESUME-FLAG",
            "a delivery that both attaches list as unsettled is sent without resume",
            attach_read(case, link),
            {"unsettled": len(own)},
            [int(link.attach_packet)],
        )


def resumed_without_being_unsettled(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A delivery is resumed that the sender's own unsettled map does not list.

    Why it matters: the receiver must ignore it, or takes it for one that it holds.
    Silent when: the attach was not captured, or octets since, or its map is incomplete.
    """
    attach = link.attach
    tag = body.delivery_tag
    if not body.resume or tag is None or attach is None or attach.incomplete_unsettled or not link.whole:
        return
    if attach.odd is not None and 7 in attach.odd:
        return
    if not link.listed or tag not in link.listed:
        case.report(
            "amqp10/D-RESUME-LOCAL",
            "a delivery is resumed that the sender's attach does not list as unsettled",
            CERTAIN,
            {"unsettled": 0 if not link.listed else len(link.listed)},
            [int(link.attach_packet)],
        )


def continuation_resumes(case: Case, delivery: Delivery) -> None:
    """A transfer within a delivery has resume set, and its first had not.

    Why it matters: the receiver has taken the delivery for a new one.
    Silent when: octets since the attach were not captured.
    """
    case.report(
        "amqp10/D-RESUME-FIRSTFRAME",
        "resume is set within a delivery that did not begin with it",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def received_state_from_sender(case: Case) -> None:
    """A sender states `received` of a delivery that it does not resume.

    Why it matters: the state says how far a delivery came; only a resuming sender can tell.
    Silent when: octets since the attach were not captured.
    """
    case.report("amqp10/M-RECEIVED-SND", "a sender states received of a delivery that it does not resume")


def resumed_though_the_receiver_has_no_record(case: Case, link: LinkEnd, certainty: i64) -> None:
    """A delivery is resumed that the receiver's attach does not list.

    Why it matters: the receiver has to ignore what is resumed and unknown to it; the message is lost.
    Silent when: one of the attaches was not captured, or the receiver's map is null or incomplete. Possible
    when the receiver's attach may not have been read: a sender may resume before.
    """
    case.report(
        "amqp10/M-RES-RESEND-NEW",
        "a delivery is resumed of which the receiver's attach says that it has no record",
        certainty,
        {"resume": True},
        [int(link.attach_packet)],
    )


def resumed_without_its_outcome(case: Case, link: LinkEnd, theirs: object, certainty: i64) -> None:
    """A delivery of which the receiver holds an outcome is resumed without a state.

    Why it matters: the receiver waits to hear whether its outcome was applied.
    Silent when: one of the attaches was not captured. Possible when the receiver's attach may not have been
    read.
    """
    case.report(
        "amqp10/M-RES-TERMRCV-STATE",
        f"the receiver holds {_name(theirs)}; the delivery is resumed without the outcome at its source",
        certainty,
        {"receiver_state": _name(theirs)},
        [int(link.attach_packet)],
    )


def resumed_unsettled_with_both_outcomes(case: Case, link: LinkEnd, theirs: object) -> None:
    """A delivery of which both ends hold the same outcome is resumed without being settled.

    Why it matters: there is nothing left to say of it; both ends go on keeping it.
    Silent when: one of the attaches was not captured. Never more than possible: a disposition may settle it.
    """
    case.report(
        "amqp10/M-RES-BOTHTERM",
        f"both ends hold {_name(theirs)}; the delivery is resumed without being settled",
        POSSIBLE,
        {"receiver_state": _name(theirs), "sender_state": _name(theirs)},
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
        f"the receiver holds {_name(theirs)}, the sender {_name(own)}, which is not restated",
        certainty,
        {"receiver_state": _name(theirs), "sender_state": _name(own)},
        [int(link.attach_packet)],
    )


def resumed_with_data_after_an_outcome(case: Case, link: LinkEnd, own: object) -> None:
    """A sender lists an outcome of a delivery that it then goes on sending.

    Why it matters: by the map the delivery is decided; the receiver may have given up what it had of it.
    Silent when: one of the attaches was not captured. Never more than possible.
    """
    case.report(
        "amqp10/M-RES-TERMMAP",
        f"the sender lists {_name(own)} of a delivery, and sends its data again",
        POSSIBLE,
        {"sender_state": _name(own)},
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
        f"the sender holds {_name(own)}, the receiver has not all of the delivery, which is not aborted",
        certainty,
        {"sender_state": _name(own)},
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
        f"the receiver is at {_told(theirs)}, the sender begins at {_told(own)}; the delivery is not aborted",
        certainty,
        {"receiver_position": _told(theirs), "sender_position": _told(own)},
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
        f"the receiver lists null, the delivery is resumed at {_told(start)}",
        certainty,
        {"position": _told(start)},
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
        f"the delivery is resumed at {_told(start)}, "
        f"the sender can begin at {_told(own)}, the receiver is at {_told(theirs)}",
        certainty,
        {
            "position": _told(start),
            "sender_position": _told(own),
            "receiver_position": _told(theirs),
        },
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
    first = _position(own)
    wanted = _position(theirs)
    if first is None or wanted is None:
        return
    if wanted < first:
        not_aborted_with_a_gap(case, link, first, wanted, certainty)
        return
    start = _position(body.state)
    if start is None:
        return
    if theirs is None and start > wanted:
        resumed_behind_the_start(case, link, start, certainty)
    elif start > wanted or start < first:
        resumed_at_another_position(case, link, start, first, wanted, certainty)


def judge_first(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The rules about the first transfer of a delivery on a link that was attached with an unsettled map."""
    own = link.listed
    theirs = link.peer_listed
    tag = body.delivery_tag
    if not body.resume:
        resumed_without_resume(case, link, body)
        return
    found = case.found
    resumed_without_being_unsettled(case, link, body)
    if case.found > found or tag is None or own is None or theirs is None or not link.whole:
        return
    if tag in link.resumed or tag not in own:
        return
    certainty = attach_read(case, link)
    if tag not in theirs:
        if link.peer_attach is not None and not link.peer_attach.incomplete_unsettled:
            resumed_though_the_receiver_has_no_record(case, link, certainty)
        return
    mine = own[tag]
    state = theirs[tag]
    if is_outcome(state):
        _judge_outcomes(case, link, body, mine, state, certainty)
    else:
        _judge_positions(case, link, body, mine, state, certainty)


def judge_continuation(case: Case, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    """The rules about a later transfer of a delivery."""
    if link.whole and body.resume and not delivery.resumed:
        continuation_resumes(case, delivery)


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
    if _position(state) != (0, 0) or _position(own[tag]) != (0, 0):
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


# What was not resumed


def left_without_resuming(case: Case, link: LinkEnd, lacking: int) -> None:
    """A sender closes a link without having resumed all that both ends listed as unsettled.

    Why it matters: the receiver keeps these deliveries and waits for the sender's word on them.
    Silent when: the other end left first, the link is only suspended, there was an error, the receiver's
    attach may not have been read, or octets were not captured. Never more than possible: the sender may have
    been interrupted.
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
    attach may not have been read, or octets were not captured. Never more than possible: the sender may have
    been interrupted.
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
    attach may not have been read, any new delivery was sent, or octets were not captured. Never more than
    possible: which guarantee is wanted is not told.
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


# What the receiver does


def listed_again_though_only_here(case: Case, tag: bytes, certainty: i64) -> None:
    """A receiver lists a delivery again of which the sender had no record when the link was attached before.

    Why it matters: it counts as settled since then; the receiver would keep it for ever.
    Silent when: one of the attaches was not captured, the sender's map was null or incomplete, or a delivery
    with that tag came since. Possible when the sender's attach may not have been read.
    """
    case.report(
        "amqp10/D-RESUME-TGTONLY",
        "a delivery is listed as unsettled again, of which the sender's attach before had no record",
        certainty,
        {"delivery_tag": tag[:32].hex()},
    )


def judge_attach(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about what a receiver lists when it attaches a link again."""
    if body.role is not True or body.name is None or body.unsettled is None:
        return
    link = session.links.get((body.name, False))
    if link is None or not link.orphans or not link.whole:
        return
    for tag, _ in body.unsettled.pairs:
        if isinstance(tag, bytes) and tag in link.orphans:
            listed_again_though_only_here(case, tag, case.me.knowledge.certainty(link.orphans_end))
            return


def outcome_of_what_is_to_be_ignored(case: Case, number: i64) -> None:
    """A receiver speaks of a resumed delivery that its own attach does not list.

    Why it matters: it is to ignore the delivery; so it may have it twice.
    Silent when: one of the attaches was not captured, the map is incomplete, or other deliveries are spoken
    of, too.
    """
    case.report(
        "amqp10/D-RESUME-IGNORE",
        f"delivery {raw(number)} was resumed, its receiver had no record of it; it is not ignored",
        CERTAIN,
        {"delivery_id": int(raw(number))},
    )


def outcome_not_echoed(case: Case, number: i64, own: object, state: object) -> None:
    """A receiver does not repeat the sender's outcome of a resumed delivery of which it had another one.

    Why it matters: the sender's is what took effect; the two ends go on disagreeing.
    Silent when: one of the attaches was not captured, or nothing is said.
    """
    case.report(
        "amqp10/M-RES-DIFFER-ECHO",
        f"the sender's outcome of delivery {raw(number)} is {_name(own)}, its receiver says {_name(state)}"
        if state != own
        else f"the sender's outcome of delivery {raw(number)} is repeated, and not settled",
        CERTAIN,
        {"delivery_id": int(raw(number)), "sender_state": _name(own)},
    )


def judge_disposition(case: Case, session: SessionEnd, body: Disposition) -> None:
    """The rules about what a receiver says of resumed deliveries."""
    first = body.first
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if first is None or theirs is None or not session.whole or not case.me.whole or not case.peer.whole:
        return
    ignored: i64 = 0
    last = first if body.last is None else nearest(body.last, first)
    for delivery in case.peer.named(theirs, body):
        if not delivery.resumed or delivery.tag is None:
            return
        link = session.links.get((delivery.link.name, False))
        if link is None or not link.whole:
            return
        own = link.listed
        sent = link.peer_listed
        if own is None or not sent or delivery.tag not in sent:
            return
        case.link = link
        if delivery.tag not in own:
            if link.attach is None or link.attach.incomplete_unsettled:
                return
            ignored += 1
            if ignored == last - first + 1:
                outcome_of_what_is_to_be_ignored(case, delivery.number)
                return
            continue
        mine = own[delivery.tag]
        outcome = sent[delivery.tag]
        if is_outcome(mine) and is_outcome(outcome) and mine != outcome and delivery.state == outcome:
            if body.state is not None and (body.state != outcome or not body.settled):
                outcome_not_echoed(case, delivery.number, outcome, body.state)
                return


RULES = {
    "amqp10/D-RESUME-FLAG": resumed_without_resume,
    "amqp10/D-RESUME-LOCAL": resumed_without_being_unsettled,
    "amqp10/D-RESUME-FIRSTFRAME": continuation_resumes,
    "amqp10/D-RESUME-OMIT": data_left_out,
    "amqp10/D-RESUME-BOTH": left_without_resuming,
    "amqp10/D-RESUME-TGTONLY": listed_again_though_only_here,
    "amqp10/D-RESUME-IGNORE": outcome_of_what_is_to_be_ignored,
    "amqp10/M-RECEIVED-SND": received_state_from_sender,
    "amqp10/M-RES-RESEND-NEW": resumed_though_the_receiver_has_no_record,
    "amqp10/M-RES-RESEND-MUST": left_without_sending_again,
    "amqp10/M-RES-TERMRCV": left_without_confirming,
    "amqp10/M-RES-TERMRCV-STATE": resumed_without_its_outcome,
    "amqp10/M-RES-BOTHTERM": resumed_unsettled_with_both_outcomes,
    "amqp10/M-RES-DIFFER": outcome_not_restated,
    "amqp10/M-RES-DIFFER-ECHO": outcome_not_echoed,
    "amqp10/M-RES-TERMMAP": resumed_with_data_after_an_outcome,
    "amqp10/M-RES-ABORT-LOST": not_aborted_though_decided,
    "amqp10/M-RES-GAP": not_aborted_with_a_gap,
    "amqp10/M-RES-NULLRCV": resumed_behind_the_start,
    "amqp10/M-RES-START": resumed_at_another_position,
}
