"""Work under transactions: posting, acquiring, retiring (transactions.xml, "txn-work")."""

from typing import Final

from amqpscope.limits import ANSWER_PATIENCE
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.delivery_state import is_outcome
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.control import Transaction
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transaction_names import named_in
from amqpscope.tracking.amqp10.work import Work, among_raw
from amqpscope.tracking.serial import raw
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.amqp10.transactions import TransactionalState
from dissectors.amqp10.values import Described
from dissectors.wire import i64

__all__ = ["judge_disposition", "judge_end", "judge_transfer"]

RULES: Final = Rules("amqp10/transactional_work")


TX_POST_ALLFRAMES: Final = RULES.rule(
    "TX-POST-ALLFRAMES", "MUST", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def transfer_outside_its_transaction(case: Case10, delivery: Delivery) -> None:
    """A later transfer of a delivery has another txn-id than the first transfer of the delivery, or has no
    txn-id.

    Demands: Every transfer of a delivery under a transaction must carry a transactional-state with the same
    txn-id.
    Source: transactions.xml section txn-work > Transactional Posting
    Evidence: the transactional-state of each transfer
    Why it matters: The resource cannot decide whether the delivery is part of the transaction, so a commit or
    rollback may apply to the wrong work.
    Silent when: the capture lacks octets that were sent after the attach, or when the transfer aborts the
    delivery. The rule is also silent when the rule has already reported the delivery.
    How to mend it: Put the same transactional-state with the same txn-id into every transfer of the delivery,
    also into continuation transfers of a large message.
    """
    case.report(
        TX_POST_ALLFRAMES,
        "a later transfer of a delivery does not have the txn-id of the first transfer",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


TX_RES_ID: Final = RULES.rule("TX-RES-ID", "MUST", "keyword", by="receiver")


def acquired_under_a_transaction_not_asked_for(case: Case10) -> None:
    """A resource names a transaction for work that the controller did not put under this transaction.

    Demands: The transfers and dispositions of a resource must name the transaction to which the work belongs,
    and no other transaction.
    Source: transactions.xml section txn-work
    Evidence: the txn-ids in the frames of the resource, and the txn-ids in the frames of the controller
    Why it matters: The controller commits or rolls back the work without knowing that the work belongs to the
    transaction.
    Silent when: octets of either peer were not captured.
    How to mend it: Name a transaction in a transfer only if the controller's flow on that link asked for
    acquisition under this transaction. Name a transaction in a disposition only for deliveries that the
    controller posted under this transaction.
    """
    case.report(
        TX_RES_ID,
        "the frame of the resource has a txn-id, but the controller did not put this "
        "work under this transaction",
    )


TX_ACQ_UNSUPPORTED: Final = RULES.rule(
    "TX-ACQ-UNSUPPORTED",
    "MUST",
    "keyword",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
    answer="amqp:not-implemented",
)


def acquired_outside_of_any_transaction(case: Case10, packet: int) -> None:
    """A resource sends a delivery outside any transaction on a link on which the controller asked for
    acquisition under a transaction.

    Demands: If a controller asks for acquisition under a transaction and the resource does not support this
    acquisition, the resource must detach the link with amqp:not-implemented.
    Source: transactions.xml section txn-work > Transactional Acquisition
    Evidence: a flow with a txn-id, and the next transfers or the detach
    Why it matters: The controller expects that a rollback puts the acquired message back into the queue, but
    a rollback does not affect this message.
    Silent when: the resource may not yet have read the flow that asks for the acquisition, or when the
    transaction was discharged. The rule is also silent when the delivery is resumed, or when octets of either
    peer were not captured.
    Only possible because: The resource may have acquired the message before the controller's request arrived.
    How to mend it: When you send messages that are acquired under a transaction, put a transactional-state
    with the requested txn-id into their transfers. If you do not support transactional acquisition, detach
    the link with the error amqp:not-implemented.
    """
    case.report(
        TX_ACQ_UNSUPPORTED,
        "the resource sends a delivery outside any transaction, although the controller asked for "
        "acquisition under a transaction",
        POSSIBLE,
        {},
        [packet],
    )


def _judge_first(case: Case10, session: SessionEnd, link: LinkEnd, named: bytes | None) -> None:
    """Judge whether a resource's delivery is under the transaction that the controller asked for."""
    me = case.me
    ledger = case.ledger
    controller = case.peer.peer
    asked = ledger.asked.get((controller, int(session.peer_channel), link.name))
    if named is not None:
        transaction = ledger.transaction(controller, named)
        if transaction is None:
            return
        if asked is not None:
            for end, one in zip(asked.ends, asked.transactions, strict=True):
                if one is transaction and end <= me.knowledge.could:
                    return
        acquired_under_a_transaction_not_asked_for(case)
    elif asked is not None and not asked.odd:
        newest = asked.transactions[len(asked.transactions) - 1]
        if not me.knowledge.confirmed(asked.ends[len(asked.ends) - 1]) or newest.control.over():
            return
        if newest.discharge_end == UNKNOWN or newest.discharge_end > me.knowledge.could:
            acquired_outside_of_any_transaction(case, int(newest.declared_packet))


def judge_transfer(case: Case10, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """Judge the transaction of a transfer on a connection with transactions."""
    me = case.me
    ledger = case.ledger
    if link.coordinator or not link.whole or not me.whole or ledger.overfull:
        return
    if isinstance(body.state, Described):
        return  # an unknown state, which may name a transaction
    delivery = link.open
    named = named_in(body.state)
    if delivery is None:
        if not body.resume:
            _judge_first(case, session, link, named)
        return
    if body.aborted or delivery.number == UNKNOWN:
        return
    work = ledger.work.of(me.peer, session.channel, raw(delivery.number))
    if work is None:
        # The receiver has left the link meanwhile, so no work remains.
        before = named_in(delivery.state)
        if named is not None and before is None and ledger.transaction(me.peer, named) is not None:
            transfer_outside_its_transaction(case, delivery)
    elif not work.odd and work.transaction is not None and work.transaction.control.controller == me.peer:
        if named != work.transaction.txn_id:
            transfer_outside_its_transaction(case, delivery)


# Outcomes


TX_RET_OTHER: Final = RULES.rule("TX-RET-OTHER", "MUST NOT", "keyword", answer="amqp:transaction:rollback")


def outcome_under_another_transaction(case: Case10, work: Work, under: Transaction) -> None:
    """Under one transaction, a peer sends an outcome for a delivery that was sent under another live
    transaction.

    Demands: Under one transaction, a peer must not send an outcome for a delivery that was sent under another
    live transaction.
    Source: transactions.xml section txn-work > Transactional Retirement
    Evidence: the txn-ids of the transfer and of the disposition
    Why it matters: The two transactions cannot both be committed. The resource has to end the control link,
    and the work under all transactions of this link is rolled back.
    Silent when: octets of either peer were not captured.
    How to mend it: Store the txn-id with each delivery that arrives under a transaction, and use this txn-id
    in the disposition. Discharge the first transaction before the delivery takes part in another transaction.
    """
    case.report(
        TX_RET_OTHER,
        "the peer gives an outcome under another transaction to a delivery that was sent under one "
        f"transaction (packet {work.packet})",
        CERTAIN,
        {},
        [int(work.packet), int(under.declared_packet)],
    )


TX_ACQ_OUTCOME: Final = RULES.rule(
    "TX-ACQ-OUTCOME", "MUST", "keyword", by="sender", answer="amqp:transaction:rollback"
)


def outcome_outside_its_transaction(case: Case10, work: Work, under: Transaction) -> None:
    """A controller sends an outcome without a txn-id for a delivery that was acquired under a live
    transaction.

    Demands: The outcome of a message that was acquired under a live transaction must name this transaction.
    Source: transactions.xml section txn-work > Interaction of Settlement with Transactions
    Evidence: the txn-ids of the transfer and of the disposition
    Why it matters: The acquisition of a message and its outcome have to take effect together. An outcome
    outside the transaction remains even after a rollback of the acquisition.
    Silent when: octets of either peer were not captured.
    How to mend it: If a message was acquired under a transaction that is not yet discharged, send its outcome
    in a transactional-state with the txn-id of this transaction. Applications must acknowledge a message
    within the transaction under which they received the message.
    """
    case.report(
        TX_ACQ_OUTCOME,
        f"the controller gives a delivery that was acquired under a transaction (packet {work.packet}) an "
        "outcome without the txn-id of this transaction",
        CERTAIN,
        {},
        [int(work.packet), int(under.declared_packet)],
    )


TX_POST_OUTCOME_ID: Final = RULES.rule("TX-POST-OUTCOME-ID", "MUST", "keyword", by="receiver")


def outcome_that_does_not_name_its_transaction(case: Case10, work: Work) -> None:
    """A resource sends an outcome for a delivery that was posted under a transaction, but the outcome does
    not name this transaction.

    Demands: The outcome of a delivery that was posted under a transaction must carry the txn-id of the
    transaction.
    Source: transactions.xml section txn-work > Interaction of Settlement with Transactions
    Evidence: the txn-ids of the transfer and of the disposition
    Why it matters: The controller treats the outcome as final, although only the discharge makes the outcome
    final. After a rollback, the controller believes that a lost message was accepted.
    Silent when: octets of either peer were not captured, or when the transaction may already have been
    discharged. The rule is also silent when the sender settled the delivery.
    How to mend it: When a delivery was posted under a transaction, answer with a transactional-state that
    carries the same txn-id and the provisional outcome. Send an outcome without a transactional-state only
    after the discharge.
    """
    case.report(
        TX_POST_OUTCOME_ID,
        "the resource sends an outcome for a delivery that was posted under a transaction (packet "
        f"{work.packet}), but the outcome does not name this transaction",
        CERTAIN,
        {},
        [int(work.packet)],
    )


TX_POST_AFTER: Final = RULES.rule("TX-POST-AFTER", "MUST", "keyword", by="receiver")


def another_outcome_after_the_commit(case: Case10, work: Work) -> None:
    """After a commit, a resource sends another outcome for a delivery than the outcome that it sent under the
    transaction.

    Demands: If a delivery is still unsettled after a commit, the resource must send the outcome that was
    applied to the delivery.
    Source: transactions.xml section txn-work > Interaction of Settlement with Transactions
    Evidence: the states of the delivery before and after the discharge
    Why it matters: The controller committed the transaction because of the promised outcome. The message may
    be lost or rejected although the commit succeeded.
    Silent when: octets of either peer were not captured, or when the delivery is settled.
    How to mend it: Store the provisional outcome of each posted delivery, and send exactly this outcome after
    a successful discharge. If the resource can no longer apply the outcome, let the discharge fail instead.
    """
    case.report(
        TX_POST_AFTER,
        "after the commit, the resource gives a delivery another outcome than under the transaction",
        CERTAIN,
        {},
        [int(work.packet)],
    )


TX_POST_AFTER_FAIL: Final = RULES.rule("TX-POST-AFTER-FAIL", "SHOULD NOT", "lower-case", by="receiver")


def outcome_after_the_rollback(case: Case10, work: Work) -> None:
    """After a rollback, a resource sends an outcome for a delivery that was posted under the transaction.

    Demands: After an unsuccessful discharge, deliveries that are still unsettled should have no outcome.
    Source: transactions.xml section txn-work > Interaction of Settlement with Transactions
    Evidence: the states of the delivery before and after the discharge
    Why it matters: The rollback undid the delivery, so the delivery has no outcome. The controller may assume
    that the message is accepted, although the resource does not hold the message.
    Silent when: octets of either peer were not captured, or when the delivery is settled.
    How to mend it: Discard the provisional outcomes of all posted deliveries when the discharge fails or has
    fail=true. After the rollback, send no outcome for deliveries that were posted under the transaction,
    because the controller settles these deliveries.
    """
    case.report(
        TX_POST_AFTER_FAIL,
        "after the rollback, the resource sends an outcome for a delivery that was posted under the "
        "transaction, but such a delivery should have no outcome",
        CERTAIN,
        {},
        [int(work.packet)],
    )


TX_RET_LIVE: Final = RULES.rule(
    "TX-RET-LIVE",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def settled_after_the_rollback(case: Case10, work: Work) -> None:
    """After a rollback, a resource settles a delivery before the controller has sent a new outcome for the
    delivery.

    Demands: After a rollback, the deliveries that were retired under the transaction must stay acquired by
    the controller until the controller sends a new outcome.
    Source: transactions.xml section txn-work > Transactional Retirement
    Evidence: the settlement of deliveries after the rollback
    Why it matters: A new outcome that the controller sends for the delivery has no effect, and the message
    may be processed twice.
    Silent when: octets of either peer were not captured, or when the controller has sent an outcome for the
    delivery since the rollback.
    Only possible because: No capture can prove this fault, because the resource may have settled the delivery
    for another reason.
    How to mend it: When the transaction rolls back, put each retired delivery back into the state that it had
    before the transactional disposition. Settle a retired delivery only after the controller has sent a new
    outcome.
    """
    case.report(
        TX_RET_LIVE,
        "after the rollback, the resource settles a delivery before the controller has sent a new outcome "
        "for the delivery",
        POSSIBLE,
        {},
        [int(work.packet)],
    )


def _judge_as_controller(case: Case10, work: Work, under: Transaction, body: Disposition) -> bool:
    """Judge an outcome of an acquired delivery. Return whether a rule reported a finding."""
    if under.discharge_end != UNKNOWN or under.control.over():
        return False
    named = named_in(body.state)
    if named is not None and named != under.txn_id:
        outcome_under_another_transaction(case, work, under)
        return True
    if named is None and is_outcome(body.state):
        outcome_outside_its_transaction(case, work, under)
        return True
    return False


def _judge_as_resource(case: Case10, work: Work, under: Transaction, body: Disposition) -> bool:
    """Judge an outcome of a posted delivery. Return whether a rule reported a finding."""
    state = body.state
    if work.settled or work.odd or state is None:
        return False
    named = named_in(state)
    if named is not None:
        if named != under.txn_id:
            outcome_that_does_not_name_its_transaction(case, work)
            return True
        return False
    if not is_outcome(state):
        return False
    if under.discharge_end == UNKNOWN or under.discharge_end > case.me.knowledge.could:
        if under.control.over():
            return False
        outcome_that_does_not_name_its_transaction(case, work)
        return True
    if under.answered_end == UNKNOWN:
        return False
    if under.fail or not under.done:
        outcome_after_the_rollback(case, work)
        return True
    before = work.outcome
    if isinstance(before, TransactionalState) and is_outcome(before.outcome) and before.outcome != state:
        another_outcome_after_the_commit(case, work)
        return True
    return False


def judge_disposition(
    case: Case10, session: SessionEnd, body: Disposition, transaction: Transaction | None
) -> None:
    """The rules about outcomes of deliveries under transactions.

    transaction: the live one that the disposition names, if it names any.
    """
    me = case.me
    ledger = case.ledger
    if body.first is None or not me.whole or ledger.overfull or not session.whole:
        return
    first = body.first
    last = first if body.last is None else body.last
    if body.role is False:
        if body.settled:
            deliveries = ledger.work.deliveries.get((me.peer, int(session.channel)))
            for number in among_raw(deliveries, first, last):
                _judge_settled(case, ledger.work.of(me.peer, session.channel, number))
        return
    deliveries = ledger.work.deliveries.get((case.peer.peer, int(session.peer_channel)))
    for number in among_raw(deliveries, first, last):
        work = ledger.work.of(case.peer.peer, session.peer_channel, number)
        under = None if work is None else work.transaction
        if work is None or under is None:
            continue
        if under.control.controller == me.peer:
            if _judge_as_controller(case, work, under, body):
                return
        elif _judge_as_resource(case, work, under, body):
            return
    if transaction is not None and transaction.control.controller != me.peer:
        _judge_plain_postings(case, session, body)


def _judge_settled(case: Case10, work: Work | None) -> None:
    """Judge a settlement of a delivery by a resource as sender."""
    retired = None if work is None else work.retired
    if work is None or retired is None or retired.control.controller == case.me.peer:
        return
    if retired.answered_end != UNKNOWN and (retired.fail or not retired.done):
        settled_after_the_rollback(case, work)


def _judge_plain_postings(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge whether deliveries for which a resource names a transaction were posted under a transaction."""
    peer = case.peer
    theirs = peer.sessions.get(int(session.peer_channel))
    if theirs is None or not peer.whole:
        return
    for delivery in peer.named(theirs, body):
        if delivery.complete and named_in(delivery.state) is None and not delivery.link.coordinator:
            if case.ledger.work.of(peer.peer, theirs.channel, raw(delivery.number)) is None:
                acquired_under_a_transaction_not_asked_for(case)
                return


# What is left


TX_POST_SETTLE: Final = RULES.rule("TX-POST-SETTLE", "SHOULD", "keyword", by="sender")


def not_settled_after_the_discharge(case: Case10, work: Work, since: i64) -> None:
    """A controller leaves a delivery unsettled for a long time after the discharge of its transaction.

    Demands: After the discharge, the controller should soon settle the deliveries that are still unsettled.
    Source: transactions.xml section txn-work > Interaction of Settlement with Transactions
    Evidence: unsettled deliveries after the discharge
    Why it matters: The resource has to keep the delivery and its outcome in memory until the controller
    settles the delivery, so the memory use grows with every transaction.
    Silent when: the controller had not received the answer to the discharge. The rule is also silent when
    either peer settled the delivery or detached the link, or when octets were not captured.
    Only possible because: The specification gives no time limit for the settlement.
    How to mend it: Send a disposition with settled=true for all unsettled deliveries of the transaction
    as soon as the answer to the discharge has arrived.
    """
    case.report(
        TX_POST_SETTLE,
        f"the controller has still not settled a delivery (packet {work.packet}) after the discharge of its "
        "transaction",
        POSSIBLE,
        {"seconds": int((case.me.stream.last_time - since) // 1_000_000_000)},
        [int(work.packet)],
    )


def judge_end(case: Case10, reason: str) -> None:
    """Judge what a controller has left undone when a capture ends within a connection."""
    me = case.me
    if reason != "capture" or not case.ledger.active or not me.whole or not case.peer.whole:
        return
    if me.closing.sent or case.peer.closing.sent:
        return
    for (sender, _), deliveries in case.ledger.work.deliveries.items():
        if sender != me.peer:
            continue
        for work in deliveries.values():
            under = work.transaction
            if under is None or under.control.controller != sender or under.answered_end == UNKNOWN:
                continue
            if under.answered_time > 0 and work.outcome is not None:
                if me.stalls.free(under.answered_time, me.stream.last_time) >= ANSWER_PATIENCE:
                    not_settled_after_the_discharge(case, work, under.answered_time)
                    return
