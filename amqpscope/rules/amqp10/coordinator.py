"""The answers of a coordinator (transactions.xml, "txn-declare", "txn-discharge")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.transaction import declared_as_a_state, txn_id_too_long
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.control import ControlRequest, Transaction
from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.work import Work, among_raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Accepted, Modified, Rejected, Released
from dissectors.amqp10.performatives import Disposition
from dissectors.amqp10.transactions import Declared
from dissectors.wire import i64

__all__ = ["judge_disposition"]

RULES: Final = Rules("amqp10/coordinator")


TX_DECLARE_OK: Final = RULES.rule("TX-DECLARE-OK", "MUST", "definition", by="receiver")


def declare_answered_by_another_outcome(case: Case10, request: ControlRequest, state: object) -> None:
    """A coordinator answers a declare with a wrong outcome: the outcome is not `declared` and does not report
    a failure either.

    Demands: A coordinator must answer a successful declare with a disposition whose state is the outcome
    `declared`.
    Source: transactions.xml section txn-declare
    Evidence: the state of the disposition for the declare
    Why it matters: The controller gets no txn-id and cannot know whether a transaction exists.
    Silent when: octets of either peer were not captured. The finding is reported as possible, not as certain,
    when the coordinator only settles the declare, without a state.
    How to mend it: Answer a successful declare with a disposition whose state is the outcome `declared` with
    the txn-id. Do not answer with the outcome `accepted`, and do not settle the declare without a state.
    """
    case.report(
        TX_DECLARE_OK,
        "the coordinator settles a declare without a state, not with the outcome `declared`"
        if state is None
        else f"the coordinator answers a declare with {_name(state)}, not with the outcome `declared`",
        POSSIBLE if state is None else CERTAIN,
        {},
        [int(request.packet)],
    )


TX_DECLARE_FAIL_REJECT: Final = RULES.rule("TX-DECLARE-FAIL-REJECT", "MUST", "keyword", by="receiver")


def declare_not_rejected(case: Case10, request: ControlRequest, state: object, certainty: i64) -> None:
    """A coordinator does not answer a failed declare with the outcome `rejected` and a transaction error.

    Demands: A coordinator must answer a failed declare with the outcome `rejected` and a transaction error,
    if the source of the control link offers the outcome `rejected`.
    Source: transactions.xml section txn-declare
    Evidence: the outcomes in the source of the control link, and the disposition for the declare
    Why it matters: The controller cannot know why the declare failed, or assumes that the transaction was
    declared.
    Silent when: octets of either peer were not captured. The finding is reported as possible, not as certain,
    when the coordinator sends an error that is not a transaction error.
    How to mend it: Answer a failed declare with the outcome `rejected`, and put a transaction error into this
    outcome. The condition of a transaction error begins with `amqp:transaction:`. Do not use the outcomes
    `released` and `modified`.
    """
    case.report(
        TX_DECLARE_FAIL_REJECT,
        f"the coordinator answers a failed declare with {_name(state)}{_without(state)}",
        certainty,
        {},
        [int(request.packet)],
    )


TX_DECLARE_FAIL_DETACH: Final = RULES.rule("TX-DECLARE-FAIL-DETACH", "MUST", "keyword", by="receiver")


def declare_failed_without_detach(case: Case10, request: ControlRequest, state: object) -> None:
    """A coordinator answers a failed declare with an outcome instead of a detach, although the control link's
    source does not offer the outcome `rejected`.

    Demands: If the source of the control link does not offer the outcome `rejected`, the coordinator must
    answer a failed declare by detaching the link with the transaction error.
    Source: transactions.xml section txn-declare
    Evidence: the disposition for the declare, and the error of the detach
    Why it matters: The controller did not offer the outcome `rejected`, so it may not understand this outcome
    and may not learn why the declare failed.
    Silent when: octets of either peer were not captured, or when the link's source lists no outcomes.
    How to mend it: If the source of the control link does not list the outcome `rejected`, detach the control
    link with the transaction error instead of sending an outcome.
    """
    case.report(
        TX_DECLARE_FAIL_DETACH,
        f"the coordinator answers a failed declare with {_name(state)}, which the source does not offer; "
        "the coordinator has to detach the link",
        CERTAIN,
        {},
        [int(request.packet)],
    )


TX_DISCHARGE_FAIL_REJECT: Final = RULES.rule(
    "TX-DISCHARGE-FAIL-REJECT",
    "MUST",
    "keyword",
    by="receiver",
    answer="amqp:transaction:rollback or another transaction error",
)


def discharge_not_rejected(case: Case10, request: ControlRequest, state: object, certainty: i64) -> None:
    """A coordinator does not answer a failed discharge with the outcome `rejected` and a transaction error.

    Demands: A coordinator must answer a failed discharge with the outcome `rejected` and a transaction error,
    if the source of the control link offers the outcome `rejected`.
    Source: transactions.xml section txn-discharge
    Evidence: the outcomes in the source of the control link, and the disposition for the discharge
    Why it matters: The controller learns neither that the work was rolled back nor why the discharge failed.
    Silent when: octets of either peer were not captured. The finding is reported as possible, not as certain,
    when the coordinator sends an error that is not a transaction error.
    How to mend it: Answer a failed discharge with the outcome `rejected`, and put a transaction error into
    this outcome, such as `amqp:transaction:rollback`. Do not use the outcomes `released` and `modified`.
    """
    case.report(
        TX_DISCHARGE_FAIL_REJECT,
        f"the coordinator answers a failed discharge with {_name(state)}{_without(state)}",
        certainty,
        {},
        [int(request.packet)],
    )


TX_DISCHARGE_FAIL_DETACH: Final = RULES.rule(
    "TX-DISCHARGE-FAIL-DETACH",
    "MUST",
    "keyword",
    by="receiver",
    answer="amqp:transaction:rollback or another transaction error",
)


def discharge_failed_without_detach(case: Case10, request: ControlRequest, state: object) -> None:
    """A coordinator answers a failed discharge with an outcome instead of a detach, although the control
    link's source does not offer the outcome `rejected`.

    Demands: If the source of the control link does not offer the outcome `rejected`, the coordinator must
    answer a failed discharge by detaching the link with the transaction error.
    Source: transactions.xml section txn-discharge
    Evidence: the disposition for the discharge, and the error of the detach
    Why it matters: The controller did not offer the outcome `rejected`, so it may not understand this outcome
    and may not learn why the discharge failed.
    Silent when: octets of either peer were not captured, or when the link's source lists no outcomes.
    How to mend it: If the source of the control link does not list the outcome `rejected`, detach the control
    link with the transaction error instead of sending an outcome.
    """
    case.report(
        TX_DISCHARGE_FAIL_DETACH,
        f"the coordinator answers a failed discharge with {_name(state)}, which the source does not offer; "
        "the coordinator has to detach the link",
        CERTAIN,
        {},
        [int(request.packet)],
    )


TX_DISCHARGE_ROLLBACK_OK: Final = RULES.rule("TX-DISCHARGE-ROLLBACK-OK", "MUST", "keyword", by="receiver")


def rollback_refused(case: Case10, request: ControlRequest, state: object, certainty: i64) -> None:
    """A coordinator refuses a discharge that asks for a rollback (fail is true).

    Demands: The discharge of a live transaction with fail=true must always succeed.
    Source: transactions.xml section txn-discharge
    Evidence: an outcome `rejected` that answers a discharge with fail=true
    Why it matters: Even if a step inside the coordinator fails, the transaction is rolled back, as the
    controller asked. After a refusal, the controller does not know the state of its work.
    Silent when: octets of either peer were not captured, or when no transaction with this txn-id was
    declared. The finding is reported as possible, not as certain, when the coordinator's error says that the
    transaction is unknown or has timed out.
    How to mend it: Answer the discharge of a live transaction with the outcome `accepted` if the discharge
    has fail=true. Such a discharge asks for a rollback, so it succeeds even if a step inside the coordinator
    fails.
    """
    case.report(
        TX_DISCHARGE_ROLLBACK_OK,
        f"a discharge has fail=true and must succeed, but the coordinator answers with {_name(state)}",
        certainty,
        {},
        [int(request.packet)],
    )


TX_ID_FRESH: Final = RULES.rule(
    "TX-ID-FRESH",
    "MUST",
    "inferred",
    by="receiver",
    warning="The specification implies the demand without stating the demand.",
)


def id_of_a_live_transaction(case: Case10, transaction: Transaction, certainty: i64) -> None:
    """A coordinator gives a new transaction the txn-id of an earlier transaction that is still live.

    Demands: A coordinator must not give a new transaction the txn-id of a live transaction.
    Source: transactions.xml section coordination > declared
    Evidence: the txn-ids of all declared outcomes
    Why it matters: Neither peer can separate the work of the two transactions. A rollback of one transaction
    discards the work of both.
    Silent when: octets of either peer were not captured, or when the control link of the first transaction
    was detached. The rule is also silent when the coordinator may already have received the discharge of the
    first transaction.
    Only possible because: The first transaction may have ended without a discharge, for example by a time-out
    of the {peer}.
    How to mend it: Create each txn-id from a counter that all control links share, or from a random value.
    Reuse a txn-id only after its transaction is discharged.
    """
    case.report(
        TX_ID_FRESH,
        "the coordinator gives the new transaction the same txn-id as the transaction that was declared in "
        f"packet {transaction.declared_packet} and is not discharged yet",
        certainty,
        {"discharged": False},
        [int(transaction.declared_packet)],
    )


TX_POST_OUTCOME: Final = RULES.rule("TX-POST-OUTCOME", "MUST", "keyword", by="receiver")


def committed_without_outcome(case: Case10, request: ControlRequest, work: Work) -> None:
    """A resource accepts a discharge before it has given an outcome to a delivery posted under the
    transaction.

    Demands: Before a resource accepts the discharge of a transaction, it must send the provisional outcome of
    each unsettled delivery posted under this transaction.
    Source: transactions.xml section txn-work > Transactional Posting, Interaction of Settlement with
    Transactions
    Evidence: the dispositions before the accepted discharge
    Why it matters: The controller treats the work as done but does not know what happened to the delivery.
    Silent when: octets of either peer were not captured, or when the delivery was sent with settled=true. The
    rule is also silent when the link of the delivery was detached in the meantime.
    How to mend it: Before you accept the discharge, send a disposition for every unsettled delivery that was
    posted under the transaction. The state of this disposition must be a transactional-state with the txn-id
    and an outcome.
    """
    case.report(
        TX_POST_OUTCOME,
        f"the resource accepts a discharge although the delivery in packet {work.packet}, which was posted "
        "under the transaction, has no outcome yet",
        CERTAIN,
        {},
        [int(work.packet), int(request.packet)],
    )


TX_ACQ_PARTIAL: Final = RULES.rule("TX-ACQ-PARTIAL", "MUST", "keyword", by="receiver")


def rolled_back_while_sending(case: Case10, request: ControlRequest, work: Work) -> None:
    """A resource answers a rollback while a delivery acquired under the transaction is only partly sent.

    Demands: On a discharge with fail=true, a resource must complete or abort partly sent deliveries of the
    transaction before it answers the discharge.
    Source: transactions.xml section txn-work > Transactional Acquisition
    Evidence: a delivery of the transaction that is incomplete when the discharge is answered
    Why it matters: After the rollback, the controller still receives transfers of the transaction, although
    the controller treats the transaction as ended.
    Silent when: octets of either peer were not captured.
    How to mend it: When a discharge with fail=true arrives, first complete or abort every delivery of the
    transaction that you have sent only in part. Answer the discharge only after that.
    """
    case.report(
        TX_ACQ_PARTIAL,
        "the resource answers a discharge with fail=true before it completes or aborts the delivery in "
        f"packet {work.packet}",
        CERTAIN,
        {},
        [int(work.packet), int(request.packet)],
    )


TX_POST_PARTIAL_REACT: Final = RULES.rule(
    "TX-POST-PARTIAL-REACT",
    "MUST",
    "keyword",
    by="receiver",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:transaction:rollback",
)


def goes_on_after_an_incomplete_posting(
    case: Case10, request: ControlRequest, transaction: Transaction
) -> None:
    """A coordinator answers a discharge that arrived while a delivery posted under the transaction was
    incomplete.

    Demands: If a delivery is incomplete when its transaction is discharged, the coordinator must detach the
    control link with amqp:transaction:rollback.
    Source: transactions.xml section txn-work > Transactional Posting
    Evidence: the error of the detach on the control link
    Why it matters: The coordinator must not answer the discharge, but must detach the control link with
    amqp:transaction:rollback. If the coordinator answers the discharge, the work stays half done.
    Silent when: octets of either peer were not captured.
    How to mend it: When a discharge arrives, check the transaction for incomplete deliveries. If a delivery
    is incomplete, roll the transaction back and detach the control link with the error
    amqp:transaction:rollback. Do not send an outcome.
    """
    case.report(
        TX_POST_PARTIAL_REACT,
        "the coordinator answers a discharge although a delivery of the transaction was incomplete; the "
        "coordinator must detach the control link instead",
        CERTAIN,
        {},
        [int(transaction.partial), int(request.packet)],
    )


TX_RET_OTHER_REACT: Final = RULES.rule(
    "TX-RET-OTHER-REACT",
    "MUST",
    "keyword",
    by="receiver",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    answer="amqp:transaction:rollback",
)


def goes_on_after_an_outcome_under_another(
    case: Case10, request: ControlRequest, transaction: Transaction
) -> None:
    """A controller sends, under one transaction, an outcome for a delivery of another transaction, and the
    coordinator still answers a discharge.

    Demands: If a delivery of one live transaction gets an outcome under another transaction, the coordinator
    must detach the control link with amqp:transaction:rollback.
    Source: transactions.xml section txn-work > Transactional Retirement
    Evidence: the error of the detach on the control link
    Why it matters: The coordinator must not answer the discharge, but must detach the control link with
    amqp:transaction:rollback. The two transactions cannot both be committed.
    Silent when: octets of either peer were not captured.
    How to mend it: Compare the txn-id of each outcome with the txn-id of its delivery. If the two txn-ids
    name different live transactions, roll back and detach the control link with the error
    amqp:transaction:rollback.
    """
    case.report(
        TX_RET_OTHER_REACT,
        "the coordinator answers a discharge although a delivery of one transaction got an outcome under "
        "another transaction; the coordinator must detach the control link instead",
        CERTAIN,
        {},
        [int(transaction.mixed), int(request.packet)],
    )


TX_DECLARE_SETTLED_REACT: Final = RULES.rule(
    "TX-DECLARE-SETTLED-REACT",
    "SHOULD",
    "lower-case",
    by="receiver",
    note="The rule judges how a peer reacts to a fault of the other peer.",
    usual_answer="amqp:not-allowed",
)


def goes_on_after_a_settled_request(case: Case10, request: ControlRequest) -> None:
    """A coordinator receives a settled transfer on the control link and continues to use the link.

    Demands: A coordinator that receives a settled transfer on the control link should detach the link with an
    error.
    Source: transactions.xml section txn-declare
    Evidence: the frames that the coordinator sends after the settled transfer
    Why it matters: The coordinator should detach the link with an error. Without the detach, the controller
    never learns that its request was not processed.
    Silent when: octets of either peer were not captured, or when the coordinator answered no later request on
    the link.
    How to mend it: Check the settled flag of each transfer on a control link. If a transfer has settled=true,
    detach the link with an error.
    """
    packet = int(request.control.settled_packet)
    case.report(
        TX_DECLARE_SETTLED_REACT,
        f"the coordinator continues the control link after a settled request (packet {packet}), instead of "
        "detaching the link with an error",
        CERTAIN,
        {},
        [packet],
    )


def _name(state: object) -> str:
    return f"the outcome `{state.definition().name}`" if isinstance(state, Composite) else "another state"


def _condition(state: object) -> str:
    """The error condition of a rejection."""
    if isinstance(state, Rejected) and state.error is not None and state.error.condition is not None:
        return str(state.error.condition)
    return ""


def _without(state: object) -> str:
    if not isinstance(state, Rejected):
        return ", not with the outcome `rejected`"
    condition = _condition(state)
    return f" and {condition}, which is not a transaction error" if condition else ", but without an error"


def _judge_declare(case: Case10, request: ControlRequest, state: object) -> None:
    if isinstance(state, Declared):
        _judge_declared(case, request, state)
    elif isinstance(state, (Rejected, Released, Modified)):
        if not request.control.offers_rejected:
            declare_failed_without_detach(case, request, state)
        elif not isinstance(state, Rejected) or not _condition(state):
            declare_not_rejected(case, request, state, CERTAIN)
        elif not _condition(state).startswith("amqp:transaction:"):
            declare_not_rejected(case, request, state, POSSIBLE)
    elif state is None or isinstance(state, Accepted):
        declare_answered_by_another_outcome(case, request, state)


def _judge_declared(case: Case10, request: ControlRequest, state: Declared) -> None:
    me = case.me
    txn_id = state.txn_id
    if not isinstance(txn_id, bytes):
        return
    if len(txn_id) > 32:
        txn_id_too_long(case, len(txn_id))
        return
    earlier = case.ledger.transaction(request.control.controller, txn_id)
    if earlier is None or earlier.control.over():
        return
    if earlier.discharge_end == UNKNOWN or earlier.discharge_end > me.knowledge.could:
        id_of_a_live_transaction(case, earlier, POSSIBLE)


def _judge_discharge(case: Case10, request: ControlRequest, state: object) -> None:
    transaction = request.transaction
    if isinstance(state, Declared):
        declared_as_a_state(case)
    elif isinstance(state, (Rejected, Released, Modified)):
        condition = _condition(state)
        if transaction is not None and transaction.fail:
            reported = condition in ("amqp:transaction:unknown-id", "amqp:transaction:timeout")
            rollback_refused(case, request, state, POSSIBLE if reported else CERTAIN)
        elif not request.control.offers_rejected:
            discharge_failed_without_detach(case, request, state)
        elif not isinstance(state, Rejected) or not condition:
            discharge_not_rejected(case, request, state, CERTAIN)
        elif not condition.startswith("amqp:transaction:"):
            discharge_not_rejected(case, request, state, POSSIBLE)
    if transaction is None or state is None or transaction.discharge_end != request.end:
        return
    if transaction.partial:
        goes_on_after_an_incomplete_posting(case, request, transaction)
    elif transaction.mixed:
        goes_on_after_an_outcome_under_another(case, request, transaction)
    elif isinstance(state, Accepted):
        _judge_work(case, request, transaction)


def _judge_work(case: Case10, request: ControlRequest, transaction: Transaction) -> None:
    """Judge the work that a resource has to finish before it accepts the discharge of a transaction."""
    me = case.me
    session = case.session
    body = case.record.frame.body
    if session is None or not isinstance(body, Disposition) or body.first is None:
        return
    here = (case.peer.peer, int(session.peer_channel))
    for key, deliveries in case.ledger.work.deliveries.items():
        named: list[int] = []
        if key == here:
            # This very disposition states the outcome.
            named = among_raw(deliveries, body.first, body.first if body.last is None else body.last)
        for number, work in deliveries.items():
            if work.transaction is not transaction or work.odd:
                continue
            if key[0] == me.peer:
                if transaction.fail and not work.complete:
                    rolled_back_while_sending(case, request, work)
                    return
            elif not transaction.fail and not work.settled and work.outcome is None and number not in named:
                committed_without_outcome(case, request, work)
                return


def judge_disposition(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge the dispositions of a coordinator for requests, and for other deliveries as if they were
    requests.
    """
    if body.first is None or not case.me.whole or case.ledger.overfull or not session.whole:
        return
    first = body.first
    last = first if body.last is None else body.last
    state = body.state
    requests = case.ledger.requests.get((case.peer.peer, int(session.peer_channel)))
    if requests:
        for number in among_raw(requests, first, last):
            request = requests[number]
            if request.answered or (state is None and not body.settled):
                continue
            control = request.control
            if control.settled_end != UNKNOWN and control.settled_end < request.end:
                goes_on_after_a_settled_request(case, request)
            if request.kind == "declare":
                _judge_declare(case, request, state)
            elif request.kind == "discharge":
                _judge_discharge(case, request, state)
    if isinstance(state, Declared):
        theirs = case.peer.sessions.get(int(session.peer_channel))
        if theirs is not None and case.peer.whole:
            for delivery in case.peer.named(theirs, body):
                if not delivery.link.coordinator:
                    declared_as_a_state(case)
                    return
