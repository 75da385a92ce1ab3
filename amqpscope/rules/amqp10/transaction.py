"""Transactions (transactions.xml, "coordination")."""

from amqpscope.limits import MAX_TRANSACTIONS
from amqpscope.rules.case import Case
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.knowledge import CERTAIN
from dissectors.amqp10.message import Message
from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.transactions import Declare, Discharge, TransactionalState

__all__ = ["judge_transfer"]


def work_in_no_transaction(case: Case, txn_id: bytes) -> None:
    """A transfer names a transaction that was not declared, or is discharged already.

    Why it matters: the resource cannot tell what the work belongs to.
    Silent when: octets of either peer were not captured, so the declaration may be among them, or there were
    more transactions than are remembered.
    """
    me = case.me
    if txn_id in me.discharged:
        case.report(
            "amqp10/TX-STATE-KNOWN", "a transfer is posted under a transaction that its sender has discharged"
        )
    elif txn_id not in me.declared and me.whole and len(me.declared) < MAX_TRANSACTIONS:
        case.report(
            "amqp10/TX-STATE-KNOWN",
            "a transfer is posted under a transaction that was not declared",
            CERTAIN,
            {"declared": len(me.declared)},
        )


def txn_id_too_long(case: Case, size: int) -> None:
    """A transaction's id has more than 32 octets.

    Why it matters: resources keep ids in fields of that size.
    Silent when: the frame, or the message, was not captured whole.
    """
    case.report("amqp10/TX-ID-TYPE", f"the txn-id has {size} octets, at most 32 are allowed")


def discharge_of_no_transaction(case: Case, txn_id: bytes) -> None:
    """A discharge names a transaction that was not declared, or is discharged already.

    Why it matters: the coordinator can only refuse it; work thought to be committed is not.
    Silent when: octets of either peer, or the message, were not captured, or there were more transactions
    than are remembered.
    """
    me = case.me
    if txn_id in me.discharged:
        case.report("amqp10/TX-DISCHARGE-KNOWN", "a transaction is discharged twice")
    elif txn_id not in me.declared and me.whole and len(me.declared) < MAX_TRANSACTIONS:
        case.report(
            "amqp10/TX-DISCHARGE-KNOWN",
            "a transaction is discharged that was not declared",
            CERTAIN,
            {"declared": len(me.declared)},
        )


def declare_settled(case: Case) -> None:
    """A declare is sent settled.

    Why it matters: the coordinator cannot answer it with the transaction's id.
    Silent when: the message was not captured whole.
    """
    case.report("amqp10/TX-DECLARE-UNSETTLED", "a declare is sent settled")


def discharge_settled(case: Case) -> None:
    """A discharge is sent settled.

    Why it matters: whether the transaction was committed is never told.
    Silent when: the message was not captured whole.
    """
    case.report("amqp10/TX-DISCHARGE-UNSETTLED", "a discharge is sent settled")


def _judge_control(case: Case, body: Transfer, message: Message, settled: bool) -> None:
    """What is said on a control link."""
    for section in message.sections():
        value = section.value
        if isinstance(value, Declare):
            if settled:
                declare_settled(case)
        elif isinstance(value, Discharge):
            if settled:
                discharge_settled(case)
            if isinstance(value.txn_id, bytes):
                if len(value.txn_id) > 32:
                    txn_id_too_long(case, len(value.txn_id))
                else:
                    discharge_of_no_transaction(case, value.txn_id)


def judge_transfer(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The transactions' rules about transfer."""
    state = body.state
    if isinstance(state, TransactionalState) and isinstance(state.txn_id, bytes):
        if len(state.txn_id) > 32:
            txn_id_too_long(case, len(state.txn_id))
        elif link.open is None:
            work_in_no_transaction(case, state.txn_id)
    if link.coordinator:
        message = case.record.message
        if message is not None and message.complete:
            settled = body.settled is True or (link.open is not None and link.open.settled)
            _judge_control(case, body, message, settled)


RULES = {
    "amqp10/TX-STATE-KNOWN": work_in_no_transaction,
    "amqp10/TX-ID-TYPE": txn_id_too_long,
    "amqp10/TX-DISCHARGE-KNOWN": discharge_of_no_transaction,
    "amqp10/TX-DECLARE-UNSETTLED": declare_settled,
    "amqp10/TX-DISCHARGE-UNSETTLED": discharge_settled,
}
