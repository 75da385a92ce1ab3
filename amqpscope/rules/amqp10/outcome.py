"""Outcomes and settlement of deliveries, as dispositions state them (messaging.xml, "delivery-state")."""

from typing import Final

from amqpscope.limits import ANSWER_PATIENCE
from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.delivery_state import is_outcome
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import ATTACHED, DETACH_RCVD, MAPPED
from amqpscope.tracking.serial import raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Received, Rejected
from dissectors.amqp10.performatives import Disposition
from dissectors.wire import countable, i64

__all__ = ["is_live", "judge_as_receiver", "judge_as_sender", "judge_end"]

RULES: Final = Rules("amqp10/outcome")


# The smallest size of a section: a described value whose descriptor has three octets.
_SMALLEST_SECTION: Final = 4


D_ABORT_DISCARD: Final = RULES.rule(
    "D-ABORT-DISCARD",
    "MUST",
    "keyword",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
    octets=True,
)


def outcome_of_an_aborted_delivery(case: Case10, number: i64, state: object, certainty: i64) -> None:
    """A receiver sends an outcome for a delivery that the sender aborted.

    Demands: A receiver must discard all data of an aborted delivery, including the payload of the aborting
    transfer.
    Source: transport.xml section links > Transferring Large Messages; transport.xml section performatives >
    transfer.aborted
    Evidence: a receiver's disposition with an outcome for an aborted delivery
    Why it matters: The receiver must discard the data of an aborted delivery. An outcome for an aborted
    delivery shows that the receiver used the incomplete message.
    Silent when: the disposition also names other deliveries, or when octets were not captured. The finding is
    reported as possible, not as certain, when the receiver may not yet have read the transfer that aborts the
    delivery.
    How to mend it: When a transfer has aborted=true, discard all data of the delivery and remove the delivery
    from the list of unsettled deliveries. Do not pass an aborted delivery to the application, and send no
    disposition for this delivery.
    """
    what = _outcome(state)
    case.report(
        D_ABORT_DISCARD,
        f"the receiver sends {what} for delivery {raw(number)}, which the sender aborted",
        certainty,
        {"delivery_id": int(raw(number))},
    )


D_ABORT_SETTLED: Final = RULES.rule("D-ABORT-SETTLED", "MUST", "definition")


def disposition_of_an_aborted_delivery(case: Case10, number: i64, certainty: i64) -> None:
    """A peer sends a disposition for a delivery that the sender has aborted.

    Demands: An abort settles the delivery, so no later disposition should name the delivery.
    Source: transport.xml section performatives > transfer.aborted
    Evidence: a disposition with the delivery-id of an aborted delivery
    Why it matters: An aborted delivery no longer exists. The other peer cannot assign the disposition to a
    delivery, and may ignore the disposition or report an error.
    Silent when: the disposition also names other deliveries, or when octets were not captured. The finding is
    reported as possible, not as certain, when the peer may not yet have read the transfer that aborts the
    delivery.
    How to mend it: When a transfer has aborted=true, treat the delivery as settled. Both peers must at once
    remove an aborted delivery from their lists of unsettled deliveries, and must send no disposition for its
    delivery-id.
    """
    case.report(
        D_ABORT_SETTLED,
        f"a disposition names delivery {raw(number)}, which the sender aborted",
        certainty,
        {"delivery_id": int(raw(number))},
    )


M_RECEIVED_POS: Final = RULES.rule(
    "M-RECEIVED-POS", "MUST", "definition", by="receiver", usual_answer="amqp:invalid-field"
)


def received_beyond_what_was_sent(case: Case10, delivery: Delivery, state: Received) -> None:
    """With the state `received`, a receiver reports more octets of a delivery than the sender has sent so
    far.

    Demands: The position in a receiver's state `received` must lie within the octets that the sender has
    sent.
    Source: messaging.xml section delivery-state > received
    Evidence: section-number and section-offset of the state `received`, and the payload that was sent so far
    Why it matters: If the sender later resumes the delivery from the reported position, octets before this
    position are lost.
    Silent when: the capture lacks octets that were sent after the attach of the link, or when the delivery
    was resumed.
    How to mend it: Compute section-number and section-offset of the state `received` from the octets that you
    have really stored. Count section-offset within the section, not from the start of the message.
    """
    case.report(
        M_RECEIVED_POS,
        f"the state `received` has section-number {state.section_number} and section-offset "
        f"{state.section_offset}, but only {delivery.octets} octets of the delivery were sent",
        CERTAIN,
        {"octets": int(delivery.octets), "delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def _outcome(state: object) -> str:
    """A state, which may be any outcome, as a message calls it."""
    return f"the outcome `{state.definition().name}`" if isinstance(state, Composite) else "an outcome"


def _judge_aborted(case: Case10, session: SessionEnd, first: i64, last: i64, state: object) -> None:
    me = case.me
    certainty: i64 = CERTAIN
    number = first
    while number <= last:
        end = session.received.aborted.get(int(number), UNKNOWN)
        if end == UNKNOWN:
            return
        certainty = min(certainty, me.knowledge.certainty(end))
        number += 1
    if is_outcome(state):
        outcome_of_an_aborted_delivery(case, first, state, certainty)
    else:
        disposition_of_an_aborted_delivery(case, first, certainty)


def judge_as_receiver(case: Case10, session: SessionEnd, body: Disposition, first: i64, last: i64) -> None:
    """Judge a receiver's disposition for the deliveries from `first` to `last`, as counts."""
    state = body.state
    if session.received.aborted and last - first < len(session.received.aborted):
        _judge_aborted(case, session, first, last, state)
    if isinstance(state, Received):
        theirs = case.peer.sessions.get(int(session.peer_channel))
        if theirs is None or state.section_number is None or state.section_offset is None:
            return
        least = state.section_number * _SMALLEST_SECTION + countable(state.section_offset)
        for delivery in case.peer.named(theirs, body):
            if delivery.link.whole and not delivery.resumed and least > delivery.octets:
                received_beyond_what_was_sent(case, delivery, state)
                return


# The sender


D_DISP_PARTIAL: Final = RULES.rule("D-DISP-PARTIAL", "SHOULD NOT", "wording", by="sender")


def disposition_of_an_incomplete_delivery(case: Case10, delivery: Delivery) -> None:
    """A sender sends a disposition for a delivery before it has sent all transfers of the delivery.

    Demands: If a delivery is incomplete, a sender should put a new state of the delivery on the next
    transfer, not into a disposition.
    Source: transport.xml section performatives > disposition
    Evidence: a sender's disposition for a delivery whose last transfer has more=true
    Why it matters: The next transfer of the delivery could carry the new state. The receiver may read a
    separate disposition too late.
    Silent when: the disposition also names complete deliveries, when either peer has detached the link, when
    the receiver has ended the session or closed the connection, or when octets were not captured.
    How to mend it: Put the new state, or settled=true, on the next transfer of the unfinished delivery. Send
    a disposition only after the last transfer of the delivery.
    """
    case.report(
        D_DISP_PARTIAL,
        "the sender sends a disposition for a delivery that is not complete yet; the state should be on "
        "the next transfer instead",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


M_REJ_SPONT: Final = RULES.rule("M-REJ-SPONT", "SHOULD NOT", "keyword", by="sender")


def rejected_by_its_sender(case: Case10, delivery: Delivery) -> None:
    """A sender sends the outcome `rejected` for a delivery that the receiver did not reject.

    Demands: A sender should not send the outcome `rejected` for a delivery that the receiver has not
    rejected.
    Source: messaging.xml section delivery-state > rejected
    Evidence: a sender's disposition with the outcome `rejected`, and the receiver's earlier dispositions for
    the delivery
    Why it matters: Only the receiver decides whether a delivery is rejected. A rejected message counts as
    invalid, although no receiver found a fault in the message.
    Silent when: the capture lacks octets that either peer sent after the begin of the session. The rule is
    also silent when the link was closed, detached with an error or attached again after the delivery, or when
    the receiver has ended the session or closed the connection.
    How to mend it: As a sender, send the outcome `rejected` only after the receiver's disposition with this
    outcome. To withdraw a message that the receiver has not rejected, send the outcome `modified` instead.
    """
    case.report(
        M_REJ_SPONT,
        "the sender sends the outcome `rejected` for a delivery that the receiver did not reject",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


D_SND_SPONT: Final = RULES.rule("D-SND-SPONT", "SHOULD", "lower-case", by="sender")


def decided_by_its_sender(case: Case10, delivery: Delivery, state: object) -> None:
    """A sender chooses an outcome by itself and settles the delivery before the receiver has confirmed this
    outcome.

    Demands: A sender that chooses an outcome by itself should first send the outcome without settling the
    delivery. The sender should settle the delivery only after the receiver has confirmed the outcome.
    Source: transport.xml section links > Transferring a Message
    Evidence: a sender's disposition with settled=true and an outcome that the receiver has not sent
    Why it matters: The receiver may already have processed the delivery. The receiver learns too late which
    outcome the sender has applied.
    Silent when: the capture lacks octets that either peer sent after the begin of the session. The rule is
    also silent when the receiver has sent any outcome for the delivery, when the link was closed, detached
    with an error or attached again after the delivery, or when the receiver has ended the session or closed
    the connection.
    How to mend it: First send a disposition with your outcome and settled=false. Settle the delivery only
    after a disposition of the receiver has confirmed your outcome.
    """
    case.report(
        D_SND_SPONT,
        f"the sender settles a delivery with {_outcome(state)}, but the receiver has not confirmed this "
        "outcome yet",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def _may_go_on(delivery: Delivery) -> bool:
    """Whether the next transfer of an incomplete delivery may follow: neither peer has detached the link."""
    return delivery.link.open is delivery and delivery.link.state != DETACH_RCVD


def is_live(case: Case10, session: SessionEnd, link: LinkEnd | None, delivery: Delivery) -> bool:
    """Whether a disposition can still change a delivery, as far as this peer can know.

    link: this peer's end of the link that the delivery was sent on.
    """
    if link is None or session.state != MAPPED or case.me.closing.received:
        return False
    attachment = link.attachment
    # Where one direction was captured late, the receiver's only attach may stand behind the delivery.
    again = attachment.times > 1 and attachment.packet > delivery.packet
    return not attachment.over() and not again


def judge_as_sender(case: Case10, session: SessionEnd, body: Disposition, named: list[Delivery]) -> None:
    """Judge a sender's disposition."""
    me = case.me
    if not named:
        if session.sent.aborted and body.first is not None:
            last = body.first if body.last is None else body.last
            if body.first == last and body.first in session.sent.aborted:
                disposition_of_an_aborted_delivery(case, body.first, CERTAIN)
        return
    if not me.whole:
        return
    state = body.state
    under_way = session.state == MAPPED and not me.closing.received
    if under_way and all(_may_go_on(delivery) for delivery in named) and not named[0].resumed:
        disposition_of_an_incomplete_delivery(case, named[0])
        return
    if not is_outcome(state):
        return
    for delivery in named:
        if delivery.resumed or not delivery.link.whole or delivery.link.coordinator:
            continue
        if not is_live(case, session, delivery.link, delivery):
            continue
        theirs = delivery.receiver_state
        if isinstance(state, Rejected):
            if theirs is None or isinstance(theirs, Received) or is_outcome(theirs):
                if not isinstance(theirs, Rejected):
                    rejected_by_its_sender(case, delivery)
                    return
        elif body.settled and (theirs is None or isinstance(theirs, Received)):
            decided_by_its_sender(case, delivery, state)
            return


# What is left


D_RCVMODE_FIRST: Final = RULES.rule("D-RCVMODE-FIRST", "MUST", "keyword", by="receiver")


def waits_for_the_sender_to_settle(case: Case10, number: i64, since: i64) -> None:
    """On a link with rcv-settle-mode `first`, a receiver sends an outcome for a delivery but does not settle
    the delivery.

    Demands: On a link with rcv-settle-mode `first`, the receiver must settle each delivery by itself, without
    waiting until the sender settles the delivery.
    Source: transport.xml section performatives > transfer.rcv-settle-mode; transport.xml section definitions
    > receiver-settle-mode
    Evidence: the settled flags of the receiver's dispositions
    Why it matters: The sender waits for the settlement and keeps the delivery unsettled.
    Silent when: either peer has settled the delivery or detached the link, or when octets were not captured.
    Only possible because: The specification sets no time by which the receiver must settle a delivery.
    How to mend it: When the link's rcv-settle-mode is `first`, set settled=true on the disposition that
    carries the outcome. Wait for the sender's settled disposition only in rcv-settle-mode `second`.
    """
    case.report(
        D_RCVMODE_FIRST,
        f"the receiver does not settle delivery {raw(number)} together with its outcome, although the link "
        "has rcv-settle-mode `first`",
        POSSIBLE,
        {"seconds": int((case.me.stream.last_time - since) // 1_000_000_000)},
    )


D_MORE_COMPLETE: Final = RULES.rule("D-MORE-COMPLETE", "MUST", "definition", by="sender")


def delivery_never_finished(case: Case10, link: LinkEnd, delivery: Delivery) -> None:
    """A sender begins a delivery of several transfers and neither completes nor aborts the delivery.

    Demands: A delivery that begins with more=true must end with a transfer that has more=false or
    aborted=true.
    Source: transport.xml section links > Transferring Large Messages
    Evidence: a delivery that is incomplete at the detach or at the end of the capture
    Why it matters: The receiver keeps the received part of the delivery. The link can carry no other delivery
    until this delivery ends.
    Silent when: the sender detached the link, when flow control keeps the sender from sending, or when octets
    were not captured.
    Only possible because: The specification sets no time by which a sender must complete a delivery.
    How to mend it: End every delivery that started with more=true with a transfer that has more=false. If the
    rest of the message cannot be produced, send a transfer with aborted=true.
    """
    case.link = link
    case.report(
        D_MORE_COMPLETE,
        f"the sender neither completes nor aborts the delivery that began in packet {delivery.packet}",
        POSSIBLE,
        {"octets": int(delivery.octets)},
        [int(delivery.packet)],
    )


def _judge_stated(case: Case10, session: SessionEnd, since: i64) -> None:
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if theirs is None or not theirs.whole:
        return
    for number, at in session.received.stated_at.items():
        delivery = theirs.sent.unsettled.get(number)
        if (
            at > since
            or delivery is None
            or not is_outcome(session.received.stated[number])
            or delivery.settled
        ):
            continue
        link = session.links.get((delivery.link.name, False))
        if link is None or not link.whole or link.attach is None or link.state != ATTACHED:
            continue
        if link.attach.rcv_settle_mode != 1 and delivery.rcv_settle_mode != 1 and not delivery.resumed:
            waits_for_the_sender_to_settle(case, number, at)
            return


def judge_end(case: Case10, reason: str) -> None:
    """Judge what a peer has left undone when a capture ends within a connection."""
    me = case.me
    if (
        reason != "capture"
        or not me.whole
        or not case.peer.whole
        or me.closing.sent
        or case.peer.closing.sent
    ):
        return
    since = me.stalls.reach(me.stream.last_time, ANSWER_PATIENCE)
    for session in me.sessions.values():
        if session.state != MAPPED or not session.whole:
            continue
        case.session = session
        _judge_stated(case, session, since)
        for link in session.handles.values():
            delivery = link.open
            if delivery is None or not link.whole or link.state != ATTACHED or link.open_time > since:
                continue
            if session.outgoing.limits.judge(session.outgoing.next_id) == LEGAL:
                delivery_never_finished(case, link, delivery)
        case.link = None
    case.session = None
