"""Transactions: what transfers, dispositions and flows name by an id (transactions.xml, "txn-work").

What is said on control links is judged in `control_link`, what comes of work under a transaction that may be
named, in `transactional_work`.
"""

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case
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


def txn_id_too_long(case: Case, size: int) -> None:
    """A transaction's id has more than 32 octets.

    Why it matters: resources keep ids in fields of that size.
    Silent when: the frame, or the message, was not captured whole.
    """
    case.report("amqp10/TX-ID-TYPE", f"the txn-id has {size} octets, at most 32 are allowed")


def work_in_no_transaction(case: Case, what: str, transaction: Transaction | None) -> None:
    """A transfer, disposition or flow names a transaction that was not declared, or is discharged already.

    Why it matters: the resource cannot tell what the work belongs to.
    Silent when: octets of either peer were not captured, so the declaration may be among them, or there were
    more transactions than are remembered.
    """
    if transaction is None:
        case.report(
            "amqp10/TX-STATE-KNOWN",
            f"{what} under a transaction that was not declared",
            CERTAIN,
            {"transactions": len(case.ledger.transactions)},
        )
    else:
        case.report(
            "amqp10/TX-STATE-KNOWN",
            f"{what} under a transaction that its controller has discharged",
            CERTAIN,
            {"transactions": len(case.ledger.transactions)},
            [int(transaction.discharge_packet)],
        )


def work_after_its_control_link(case: Case, certainty: i64) -> None:
    """A transaction is named whose control link was detached before it was discharged.

    Why it matters: with its control link the transaction is rolled back; what is done under it now fails.
    Silent when: octets of either peer were not captured. Possible when the detach may not have been read, or
    did not close the link.
    """
    case.report(
        "amqp10/TX-CTRLCLOSE",
        "a transaction is named whose control link was detached before it was discharged",
        certainty,
    )


def judge_control_link_of(case: Case, transaction: Transaction) -> None:
    """Whether the control link of a transaction that its controller names is there."""
    control = transaction.control
    knowledge = case.me.knowledge
    certainty: i64 = LEGAL
    if control.left != UNKNOWN:
        certainty = CERTAIN
    elif control.dropped != UNKNOWN and control.dropped <= knowledge.could:
        certainty = knowledge.certainty(control.dropped)
    if certainty != LEGAL:
        work_after_its_control_link(case, certainty if control.closed else POSSIBLE)


def work_on_another_session(case: Case, control: Control, certainty: i64) -> None:
    """Work is done under a transaction on another session than its control link's, which is not offered.

    Why it matters: the resource may not know the transaction there, and do the work outside of it.
    Silent when: octets of either peer were not captured, or it was said of the transaction already. Possible
    when the coordinator says nothing of its capabilities.
    """
    case.report(
        "amqp10/TX-SCOPE-SESSION",
        "work under a transaction on another session, the coordinator does not offer amqp:multi-ssns-per-txn",
        certainty,
        {"session": int(case.session.number) if case.session is not None else -1},
        [int(control.packet)],
    )


def lacks(case: Case, control: Control, capability: str) -> i64:
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


def judge_id(case: Case, session: SessionEnd, txn_id: bytes, what: str) -> Transaction | None:
    """The rules about a transaction's id that is named; gives it if work may be done under it."""
    me = case.me
    ledger = case.ledger
    if len(txn_id) > 32:
        txn_id_too_long(case, len(txn_id))
        return None
    if not me.whole or ledger.overfull:
        return None
    transaction = ledger.transaction(me.peer, txn_id)
    if transaction is None:
        # As resource it names one that it declared itself.
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


def declared_as_a_state(case: Case) -> None:
    """The outcome declared is stated of a delivery that is no declare on a control link.

    Why it matters: it gives an id to a transaction for which nobody asked.
    Silent when: octets of either peer were not captured, or the delivery is settled already.
    """
    case.report("amqp10/TX-DECLARED-ELSEWHERE", "declared is stated of a delivery that is no declare")


def judge_transfer(case: Case, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """The rules about the transaction that a transfer names on a link to anything but a coordinator."""
    state = body.state
    if isinstance(state, Declared):
        declared_as_a_state(case)
    named = named_in(state)
    if named is not None and (link.open is None or named != named_in(link.open.state)):
        judge_id(case, session, named, "a transfer is posted")


def judge_flow(case: Case, session: SessionEnd, body: Flow) -> None:
    """The rules about the transaction under which a link is to acquire."""
    value = asked_of(body)
    if value is None:
        return
    if isinstance(value, bytes):
        judge_id(case, session, value, "messages are asked for")
    elif not isinstance(value, Raw):
        case.report("amqp10/TX-ID-TYPE", "the txn-id of a flow is no binary")


def judge_disposition(case: Case, session: SessionEnd, body: Disposition) -> Transaction | None:
    """The rules about the id that a receiver's disposition names; gives the transaction, see `judge_id`."""
    named = named_in(body.state)
    return None if named is None else judge_id(case, session, named, "an outcome is given")


RULES = {
    "amqp10/TX-ID-TYPE": txn_id_too_long,
    "amqp10/TX-STATE-KNOWN": work_in_no_transaction,
    "amqp10/TX-CTRLCLOSE": work_after_its_control_link,
    "amqp10/TX-SCOPE-SESSION": work_on_another_session,
    "amqp10/TX-DECLARED-ELSEWHERE": declared_as_a_state,
}
