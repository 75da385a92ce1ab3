"""Dispositions: the states that both ends give to deliveries (transport.xml, "Transferring a Message")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10 import outcome, resumed_receipt, resuming
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery
from amqpscope.tracking.amqp10.outcomes import excludes, outcome_in
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.session_deliveries import among
from amqpscope.tracking.amqp10.states import ATTACHED, MAPPED
from amqpscope.tracking.serial import nearest, raw
from amqpscope.tracking.spans import Spans
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Received, Source
from dissectors.amqp10.performatives import Attach, Disposition
from dissectors.amqp10.transactions import Declared, TransactionalState
from dissectors.wire import i64

__all__ = ["changes", "judge_disposition", "judge_disposition_alone", "sender_changes_its_outcome"]

RULES: Final = Rules("amqp10/settlement")


D_STATE_FINAL_SND: Final = RULES.rule(
    "D-STATE-FINAL-SND", "MUST NOT", "definition", by="sender", usual_answer="amqp:not-allowed"
)


def sender_changes_its_outcome(case: Case10, delivery: Delivery) -> None:
    """A sender sends two different outcomes for one delivery.

    Demands: After a sender has sent an outcome for a delivery, the sender must not change this outcome in a
    later transfer or disposition.
    Source: transport.xml section performatives > transfer.state
    Evidence: the successive states that the sender gives to a delivery
    Why it matters: An outcome is final. The receiver may already have acted on the first outcome, so the two
    peers disagree about the message.
    Silent when: the capture lacks octets that were sent after the attach. The rule is also silent when one of
    the two outcomes is part of a transaction, when the link was closed, detached with an error or attached
    again after the delivery, or when the receiver has ended the session or closed the connection.
    How to mend it: Store the outcome that you send for a delivery, and send the same outcome in all later
    transfers and dispositions of the delivery. Do not let two code paths choose outcomes for one delivery.
    """
    case.report(
        D_STATE_FINAL_SND,
        "the sender changes the outcome that it has already sent for a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def changes(before: object, after: object) -> bool:
    """Whether another outcome replaces an outcome. Provisional outcomes in a transaction may change."""
    if not isinstance(before, Composite) or not isinstance(after, Composite):
        return False
    if "outcome" not in before.definition().provides or isinstance(before, (TransactionalState, Declared)):
        return False
    return not isinstance(after, (TransactionalState, Declared)) and before != after


D_DISP_RANGE: Final = RULES.rule("D-DISP-RANGE", "MUST", "definition", usual_answer="amqp:invalid-field")


def disposition_backwards(case: Case10, body: Disposition) -> None:
    """A peer sends a disposition whose field `last` comes before its field `first`.

    Demands: In serial number order, the field `last` of a disposition must not come before the field `first`.
    Source: transport.xml section performatives > disposition.first, last
    Evidence: the fields `first` and `last` of the disposition
    Why it matters: The receiver may read the range as empty. A receiver that allows for wrap-around may read
    the range as nearly all delivery-ids. Deliveries stay unsettled, or wrong deliveries are settled.
    Silent when: never.
    How to mend it: Order the two delivery-ids by serial number comparison and put the earlier delivery-id
    into the field `first`. For a single delivery, leave the field `last` unset. After delivery-ids have
    wrapped around, do not sort them as plain integers.
    """
    first = body.first
    last = body.last
    if first is not None and last is not None and nearest(last, first) < first:
        case.report(D_DISP_RANGE, f"the disposition has last={last}, which comes before first={first}")


D_DISP_ROLE: Final = RULES.rule("D-DISP-ROLE", "MUST", "keyword", usual_answer="amqp:invalid-field")


def disposition_of_the_other_direction(case: Case10, first: int, role: str, mine: str) -> None:
    """A peer sends a disposition whose role does not match the direction of the named deliveries.

    Demands: In a disposition with role=sender, a peer may name only deliveries that this peer sent. In a
    disposition with role=receiver, a peer may name only deliveries that this peer received.
    Source: transport.xml section performatives > disposition
    Evidence: the fields `role`, `first` and `last` of the disposition, and the delivery-ids of each direction
    Why it matters: The disposition names deliveries of the wrong direction or no deliveries. The deliveries
    that the peer meant stay unsettled.
    Silent when: octets of either peer since the session's begin were not captured or could not be read. The
    rule is also silent when a delivery had no delivery-id, because the disposition may name this delivery.
    How to mend it: Set the field `role` to your own role on the deliveries: receiver (true) for deliveries
    that you received, sender (false) for deliveries that you sent.
    """
    case.report(
        D_DISP_ROLE,
        f"a disposition with role={role} names delivery {first}, but this peer has {mine} no such delivery",
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


def disposition_of_unknown_deliveries(case: Case10, first: int, last: i64, mine: str) -> None:
    """A peer sends a disposition with role=receiver for deliveries that it has not received on the session,
    or with role=sender for deliveries that it has not sent on the session.

    Demands: A disposition must name at least one delivery of its session. The delivery-ids of earlier
    sessions have no meaning in a disposition.
    Source: transport.xml section performatives > disposition; transport.xml section links > Resuming
    Deliveries
    Evidence: the fields `role`, `first` and `last` of the disposition, and the delivery-ids that were used in
    each direction since the session's begin
    Why it matters: The disposition settles nothing. The deliveries that the peer meant to settle stay
    unsettled, and the other peer may end the session with an error.
    Silent when: octets of either peer since the session's begin were not captured or could not be read. The
    rule is also silent when a delivery had no delivery-id, because the disposition may name this delivery.
    How to mend it: Set the fields `first` and `last` of a disposition only to delivery-ids of deliveries that
    you received (role=receiver) or sent (role=sender) on this session. Discard delivery-ids of earlier
    sessions, and send the disposition on the session on which the delivery arrived.
    """
    if last == UNKNOWN:
        what = f"a disposition names delivery {first}, but this peer has {mine} no such delivery"
        case.report(D_DISP_UNKNOWN, what)
    else:
        case.report(
            D_DISP_UNKNOWN,
            f"a disposition names delivery {first}, but the last delivery that this peer has {mine} is "
            f"delivery {raw(last)}",
            CERTAIN,
            {"last_delivery_id": int(raw(last))},
        )


def _judge_named(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Whether a disposition names existing deliveries."""
    first = body.first
    if first is None or body.role is None or not session.whole or not case.me.whole:
        return
    sent = session.sent.last
    received = session.received.last()
    last = sent
    opposite = received
    if body.role:
        last = received
        opposite = sent
    mine = "received" if body.role else "sent"
    # Deliveries without a delivery-id may have the ids that follow.
    unnumbered = session.received.unnumbered if body.role else session.sent.unnumbered
    if last != UNKNOWN and nearest(first, last) <= last + unnumbered:
        return
    if last == UNKNOWN and unnumbered > 0:
        return
    if last == UNKNOWN and opposite != UNKNOWN and nearest(first, opposite) <= opposite:
        disposition_of_the_other_direction(case, first, "receiver" if body.role else "sender", mine)
    else:
        disposition_of_unknown_deliveries(case, first, last, mine)


D_DISP_RESETTLE: Final = RULES.rule("D-DISP-RESETTLE", "SHOULD NOT", "definition")


def settled_again(case: Case10, settled: Spans, first: i64, last: i64) -> None:
    """A peer settles deliveries that it has already settled.

    Demands: A peer should announce the settlement of a delivery only once.
    Source: transport.xml section links > Transferring a Message
    Evidence: a second disposition with settled=true from the same peer for the same delivery-id
    Why it matters: The first disposition already settled the deliveries. The sender may have used the
    delivery-ids again, so the second disposition can settle other deliveries.
    Silent when: the capture lacks octets that were sent after the session's begin.
    How to mend it: Mark a delivery as settled when the disposition is sent, and send settled=true only
    once per delivery. Applications must not accept a message twice, for example once in a callback and
    once by automatic settlement.
    """
    if settled.cover(first, last):
        case.report(
            D_DISP_RESETTLE,
            f"the peer settles delivery {raw(first)} a second time",
            CERTAIN,
            {"delivery_id": int(raw(first))},
        )


D_STATE_FINAL_RCV: Final = RULES.rule(
    "D-STATE-FINAL-RCV", "MUST NOT", "definition", by="receiver", usual_answer="amqp:not-allowed"
)


def receiver_changes_its_outcome(case: Case10, number: i64) -> None:
    """A receiver sends two different outcomes for one delivery.

    Demands: After a receiver has sent an outcome for a delivery, the receiver must not change this outcome.
    The sender may still choose another outcome.
    Source: messaging.xml section delivery-state
    Evidence: the successive states that the receiver gives to a delivery
    Why it matters: An outcome is final. The sender may already have acted on the first outcome, for example
    removed or redelivered the message.
    Silent when: the capture lacks octets that were sent after the session's begin. The rule is also silent
    when one of the two outcomes is part of a transaction, when the sender has settled the delivery, or when
    the second outcome is one that the sender has chosen. The rule is also silent when the link was closed,
    detached with an error or attached again after the delivery, or when the sender has ended the session or
    closed the connection.
    How to mend it: Send one outcome per delivery and repeat only this outcome, for example when you settle
    the delivery. Applications must not accept a message and afterwards reject or release the message.
    """
    case.report(
        D_STATE_FINAL_RCV,
        f"the receiver changes the outcome that it has already sent for delivery {raw(number)}",
        CERTAIN,
        {"delivery_id": int(raw(number))},
    )


D_RCVMODE_SECOND: Final = RULES.rule(
    "D-RCVMODE-SECOND", "MUST NOT", "keyword", by="receiver", usual_answer="amqp:not-allowed"
)


def settled_before_the_sender(case: Case10, number: i64, certainty: i64) -> None:
    """On a link with rcv-settle-mode `second`, a receiver settles a delivery before the sender has settled
    the delivery.

    Demands: On a link with rcv-settle-mode `second`, the receiver may settle a delivery only after the
    receiver has sent an outcome and the sender has settled the delivery.
    Source: transport.xml section performatives > transfer.rcv-settle-mode; transport.xml section definitions
    > receiver-settle-mode
    Evidence: a receiver's disposition with settled=true before any settlement by the sender
    Why it matters: The sender relies on being the first peer that settles the delivery. If the receiver
    settles first, exactly-once delivery is impossible, so the message may be duplicated.
    Silent when: the capture lacks octets that either peer sent after the session's begin. The rule is also
    silent when the link was closed, detached with an error or attached again after the delivery, or when the
    sender has ended the session or closed the connection. The finding is reported as possible, not as
    certain, when either peer has detached the link.
    Possible because: The link was detached. The mode of a delivery is not kept when a link is resumed, so the
    {peer} may already have given the mode up.
    How to mend it: In rcv-settle-mode `second`, send a disposition with the outcome and settled=false. Settle
    the delivery only after the sender's disposition with settled=true has arrived.
    """
    case.report(
        D_RCVMODE_SECOND,
        "on a link with rcv-settle-mode `second`, the receiver settles a delivery before the sender does",
        certainty,
        {"rcv_settle_mode": "second", "delivery_id": int(raw(number))},
    )


M_OUTCOMES_USE: Final = RULES.rule(
    "M-OUTCOMES-USE", "MUST", "definition", by="receiver", usual_answer="amqp:not-allowed"
)


def outcome_not_offered(case: Case10, number: i64, name: str, certainty: i64) -> None:
    """A receiver sends an outcome that the sender's source does not list.

    Demands: The receiver may send only outcomes that the sender's source lists. If the source lists no
    outcomes, the receiver may send only the default-outcome of the source.
    Source: messaging.xml section addressing > source.outcomes
    Evidence: the field `outcomes` of the sender's source, and the states in the receiver's dispositions
    Why it matters: The sender cannot apply an outcome that the source does not support. The sender may detach
    the link with the error amqp:not-allowed.
    Silent when: the sender's attach was not captured, lists no outcomes, or lists a symbol that is not the
    name of a known outcome. Another rule, D-RCVMODE-SECOND, reports a receiver that settles a delivery before
    the sender on a link with rcv-settle-mode `second`. The rule is also silent when the link was closed,
    detached with an error or attached again after the delivery. The finding is reported as possible, not as
    certain, when the sender attached the link again and the receiver may not yet have read the new attach.
    How to mend it: Read the field `outcomes` of the source in the sender's attach, and send only the listed
    outcomes or the default-outcome. If the application asks for another outcome, send a listed outcome
    instead or report an error to the application.
    """
    case.report(
        M_OUTCOMES_USE,
        f"the receiver sends the outcome `{name}`, which the sender's source does not list",
        certainty,
        {"delivery_id": int(raw(number))},
    )


def _offers(attach: Attach | None, outcome: Composite) -> bool:
    """Whether a sender's source, as far as it states outcomes, allows this outcome."""
    if attach is None or not isinstance(attach.source, Source):
        return True
    source = attach.source
    definition = outcome.definition()
    if "outcome" not in definition.provides or isinstance(outcome, Declared):
        return True
    default = source.default_outcome
    if isinstance(default, Composite) and default.definition() is definition:
        return True
    return not excludes(source, definition.symbol)


def _may_change(case: Case10, session: SessionEnd, number: int, state: object) -> bool:
    """Whether the receiver may change the outcome of a delivery to this one.

    The sender has settled the delivery, or has chosen this outcome itself; or what is said of the delivery
    has no effect any more.
    """
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if theirs is None:
        return session.state != MAPPED or case.me.closing.received
    delivery = theirs.sent.unsettled.get(number)
    if delivery is None:
        return theirs.sent.settled.cover(number, number)
    link = session.links.get((delivery.link.name, False))
    return delivery.state == state or not outcome.is_live(case, session, link, delivery)


def _judge_as_receiver(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge a receiver's disposition for deliveries that it has received."""
    if body.first is None or not session.whole or not case.me.whole:
        return
    first = session.received.number(body.first)
    last = first
    if body.last is not None:
        last = session.received.number(body.last)
    if first == UNKNOWN or last < first:
        return
    if body.settled:
        settled_again(case, session.received.settled, first, last)
    state = body.state
    if state is not None and session.received.stated:
        for number in among(session.received.stated, first, last):
            changed = changes(session.received.stated[number], state)
            if changed and not _may_change(case, session, number, state):
                receiver_changes_its_outcome(case, number)
                break
    if case.found == 0 and (session.received.aborted or isinstance(state, Received)):
        outcome.judge_as_receiver(case, session, body, first, last)
    if not session.received.held:
        return
    over = session.state != MAPPED or case.me.closing.received
    said = outcome_in(state)
    for number in among(session.received.held, first, last):
        link = session.received.held[number]
        case.link = link
        if body.settled and not over and link.attach is not None and link.attach.rcv_settle_mode == 1:
            settled_before_the_sender(case, number, CERTAIN if link.state == ATTACHED else POSSIBLE)
            return
        if isinstance(said, Composite) and not _offers(link.peer_attach, said):
            # A peer that names a delivery has read the delivery and the attach before, but no later attach.
            again = link.attachment.peer_times > 1
            certainty = case.me.knowledge.certainty(link.attachment.peer_end) if again else CERTAIN
            outcome_not_offered(case, number, said.definition().name, certainty)
            return
    case.link = None


def _judge_as_sender(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge a sender's disposition for deliveries that it has sent."""
    state = body.state
    if body.first is None or not session.whole:
        return
    if body.settled:
        first, last = session.sent.named_by(body)
        if first != UNKNOWN and last >= first:
            settled_again(case, session.sent.settled, first, last)
    named = case.me.named(session, body)
    if state is not None:
        _judge_states(case, session, state, named)
    if case.found == 0 and (state is not None or not named):
        outcome.judge_as_sender(case, session, body, named)


def _judge_states(case: Case10, session: SessionEnd, state: object, named: list[Delivery]) -> None:
    for delivery in named:
        if isinstance(state, Received):
            resuming.received_state_from_sender(case)
            return
        if changes(delivery.state, state) and outcome.is_live(case, session, delivery.link, delivery):
            sender_changes_its_outcome(case, delivery)
            return


def judge_disposition_alone(case: Case10, body: Disposition) -> None:
    """Judge a disposition by itself."""
    disposition_backwards(case, body)


def judge_disposition(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge a disposition."""
    if case.found > 0:
        return
    _judge_named(case, session, body)
    if case.found > 0:
        return
    if body.role:
        if session.received.resuming:
            resumed_receipt.judge_disposition(case, session, body)
        if case.found == 0:
            _judge_as_receiver(case, session, body)
    elif body.role is False:
        _judge_as_sender(case, session, body)
