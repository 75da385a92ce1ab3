"""Transactions that transfers, dispositions and flows name by a txn-id (transactions.xml, "txn-work").

`control_link` judges messages on control links, and `transactional_work` judges work under live
transactions.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.control import Control, Transaction
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transaction_names import asked_of, named_in
from dissectors.amqp10.performatives import Disposition, Flow, Transfer
from dissectors.amqp10.transactions import Declared
from dissectors.amqp10.values import Raw
from dissectors.wire import i64

__all__ = [
    "declared_as_a_state",
    "judge_control_link_of",
    "judge_disposition",
    "judge_flow",
    "judge_id",
    "judge_transfer",
    "lacks",
    "txn_id_too_long",
]

RULES: Final = Rules("amqp10/transaction")


TX_ID_TYPE: Final = RULES.rule(
    "TX-ID-TYPE", "MUST", "definition", usual_answer="amqp:invalid-field", octets=True
)


def txn_id_too_long(case: Case10, size: int) -> None:
    """A peer sends a txn-id of more than 32 octets, or a flow with a txn-id that is not a binary.

    Demands: A txn-id must be a binary of at most 32 octets.
    Source: transactions.xml section coordination > transaction-id
    Evidence: the type and length of the txn-id in `declared`, `discharge`, `transactional-state` and the
    properties of a flow
    Why it matters: Resources store txn-ids in fields of 32 octets. A longer txn-id cannot be stored, and the
    work under the transaction fails.
    Silent when: a part of the frame or of the message was not captured.
    How to mend it: Generate txn-ids in the coordinator as binary values of at most 32 octets. The controller
    has to send back the txn-id of the outcome `declared` unchanged.
    """
    case.report(TX_ID_TYPE, f"the txn-id has {size} octets, but the limit is 32")


TX_STATE_KNOWN: Final = RULES.rule(
    "TX-STATE-KNOWN", "MUST", "definition", answer="amqp:transaction:unknown-id"
)


def work_in_no_transaction(case: Case10, what: str, transaction: Transaction | None) -> None:
    """A peer names a transaction in a transfer, disposition or flow, although the transaction was not
    declared or is already discharged.

    Demands: A transactional-state, or the txn-id of a flow, must name a live transaction of the connection.
    Source: transactions.xml section txn-work; transactions.xml section coordination > transaction-error
    unknown-id
    Evidence: the txn-ids of transfers, dispositions and flows
    Why it matters: The resource cannot assign the work to a transaction. The work fails, and the resource may
    detach the link with the error amqp:transaction:unknown-id.
    Silent when: the capture lacks octets of either peer that may contain the declaration of the transaction.
    The rule is also silent when the connection had more transactions than the rule remembers.
    How to mend it: Use a txn-id only after the outcome `declared` has arrived and before the discharge is
    sent. An application must not commit a transaction in one thread while another thread still sends under
    this transaction.
    """
    if transaction is None:
        case.report(
            TX_STATE_KNOWN,
            f"{what} under a transaction that was not declared",
            CERTAIN,
            {"transactions": len(case.ledger.transactions)},
        )
    else:
        case.report(
            TX_STATE_KNOWN,
            f"{what} under a transaction that its controller has already discharged",
            CERTAIN,
            {"transactions": len(case.ledger.transactions)},
            [int(transaction.discharge_packet)],
        )


TX_CTRLCLOSE: Final = RULES.rule(
    "TX-CTRLCLOSE", "MUST", "definition", answer="amqp:transaction:unknown-id or amqp:transaction:rollback"
)


def work_after_its_control_link(case: Case10, certainty: i64) -> None:
    """A peer names a transaction whose control link was detached before the transaction was discharged.

    Demands: When a control link closes, its live transactions must be rolled back, and further work under
    these transactions must fail.
    Source: transactions.xml section transactions
    Evidence: the detach of the control link, and the txn-ids of later frames
    Why it matters: The coordinator rolls the transaction back when its control link closes. All further work
    under the transaction fails.
    Silent when: octets of either peer were not captured. The finding is reported as possible, not as certain,
    when the peer may not yet have read the detach, or when the detach did not close the link.
    How to mend it: Keep the control link attached until all its transactions are discharged. After a detach
    of the control link, discard its txn-ids, attach a new control link and declare a new transaction.
    """
    case.report(
        TX_CTRLCLOSE,
        "the peer uses the txn-id of a transaction that ended when the control link was detached without a "
        "discharge",
        certainty,
    )


def judge_control_link_of(case: Case10, transaction: Transaction) -> None:
    """Whether the control link of a transaction that its controller names is still attached."""
    control = transaction.control
    knowledge = case.me.knowledge
    certainty: i64 = LEGAL
    if control.left != UNKNOWN:
        certainty = CERTAIN
    elif control.dropped != UNKNOWN and control.dropped <= knowledge.could:
        certainty = knowledge.certainty(control.dropped)
    if certainty != LEGAL:
        work_after_its_control_link(case, certainty if control.closed else POSSIBLE)


TX_SCOPE_SESSION: Final = RULES.rule(
    "TX-SCOPE-SESSION",
    "MAY-limits",
    "definition",
    by="sender",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
    usual_answer="amqp:not-implemented",
)


def work_on_another_session(case: Case10, control: Control, certainty: i64) -> None:
    """A controller does work under a transaction on another session than the session of the control link,
    although the coordinator does not offer the capability amqp:multi-ssns-per-txn.

    Demands: If the coordinator does not offer the capability amqp:multi-ssns-per-txn, a controller must do
    all work under a transaction on the session of the control link.
    Source: transactions.xml section transactions; transactions.xml section coordination > txn-capability
    multi-ssns-per-txn
    Evidence: the session of the work, and the session of the control link
    Why it matters: The resource may not know the transaction on the other session. If the resource then does
    the work outside the transaction, a rollback does not undo the work.
    Silent when: octets of either peer were not captured, or when the rule has already reported the
    transaction. The finding is reported as possible, not as certain, when the coordinator lists no
    capabilities.
    How to mend it: Use a single session for the control link and for all links that carry work of its
    transactions. Use several sessions only if the coordinator's attach offers amqp:multi-ssns-per-txn.
    """
    case.report(
        TX_SCOPE_SESSION,
        "the controller does work under a transaction of another session, but the coordinator does not "
        "offer the capability amqp:multi-ssns-per-txn",
        certainty,
        {"session": int(case.session.number) if case.session is not None else -1},
        [int(control.packet)],
    )


def lacks(case: Case10, control: Control, capability: str) -> i64:
    """How certain it is that a controller knew that its coordinator does not offer a capability."""
    me = case.me
    if control.answer_end == UNKNOWN or control.answer_end > me.knowledge.could:
        return LEGAL
    offered = control.capabilities
    if offered is None:
        return POSSIBLE
    if capability in offered:
        return LEGAL
    return me.knowledge.certainty(control.answer_end)


def judge_id(case: Case10, session: SessionEnd, txn_id: bytes, what: str) -> Transaction | None:
    """Judge a txn-id in a frame; return its transaction if work under the transaction is allowed."""
    me = case.me
    ledger = case.ledger
    if len(txn_id) > 32:
        txn_id_too_long(case, len(txn_id))
        return None
    if not me.whole or ledger.overfull or not session.whole:
        return None
    transaction = ledger.transaction(me.peer, txn_id)
    if transaction is None:
        # A resource names a transaction that it declared itself.
        transaction = ledger.transaction(case.peer.peer, txn_id)
        if transaction is None:
            work_in_no_transaction(case, what, None)
        return transaction
    if transaction.declared_end > me.knowledge.could:
        work_in_no_transaction(case, what, None)
        return None
    if transaction.discharge_end != UNKNOWN:
        work_in_no_transaction(case, what, transaction)
        return None
    found = case.found
    judge_control_link_of(case, transaction)
    if case.found > found:
        return None
    control = transaction.control
    if control.session != session.number and not transaction.elsewhere:
        certainty = lacks(case, control, "amqp:multi-ssns-per-txn")
        if certainty != LEGAL:
            work_on_another_session(case, control, certainty)
    return transaction


TX_DECLARED_ELSEWHERE: Final = RULES.rule(
    "TX-DECLARED-ELSEWHERE",
    "MUST NOT",
    "inferred",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:invalid-field",
)


def declared_as_a_state(case: Case10) -> None:
    """A peer sends the outcome `declared` for a delivery that is not a `declare` message on a control link.

    Demands: A peer may send the outcome `declared` only for a `declare` message on a control link.
    Source: transactions.xml section coordination > declared
    Evidence: the outcome `declared`, and the delivery for which the outcome is sent
    Why it matters: The outcome `declared` assigns a txn-id, although no controller asked for a transaction.
    The other peer cannot apply the outcome `declared` to an ordinary delivery.
    Silent when: octets of either peer were not captured, or when the delivery is already settled.
    How to mend it: Send the outcome `declared` only in the disposition for a `declare` message on a control
    link. Answer a `discharge` and all ordinary messages with another outcome, such as `accepted`.
    """
    case.report(
        TX_DECLARED_ELSEWHERE,
        "the peer sends the outcome `declared` for a delivery that is not a `declare` message",
    )


def judge_transfer(case: Case10, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """Judge the transaction that a transfer names on a link that is not a control link."""
    state = body.state
    if isinstance(state, Declared):
        declared_as_a_state(case)
    named = named_in(state)
    if named is not None and (link.open is None or named != named_in(link.open.state)):
        judge_id(case, session, named, "the peer sends a transfer")


def judge_flow(case: Case10, session: SessionEnd, body: Flow) -> None:
    """Judge the transaction under which a link is to acquire messages."""
    value = asked_of(body)
    if value is None:
        return
    if isinstance(value, bytes):
        judge_id(case, session, value, "the peer's flow asks for messages")
    elif not isinstance(value, Raw):
        case.report(TX_ID_TYPE, "the txn-id of a flow is not a binary")


def judge_disposition(case: Case10, session: SessionEnd, body: Disposition) -> Transaction | None:
    """Judge the txn-id in a receiver's disposition; return the transaction, see `judge_id`."""
    named = named_in(body.state)
    return None if named is None else judge_id(case, session, named, "the peer gives an outcome")
