"""Transactions (transactions.xml, "coordination")."""

from amqpscope.rules.case import Case
from amqpscope.tracking.knowledge import CERTAIN
from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.transactions import TransactionalState

__all__ = ["judge_transfer"]


def work_in_no_transaction(case: Case, txn_id: bytes) -> None:
    """A transfer names a transaction that was not declared, or is discharged already.

    Why it matters: the resource cannot tell what the work belongs to.
    Silent when: octets of either peer were not captured, so the declaration may be among them.
    """
    me = case.me
    if txn_id in me.discharged:
        case.report(
            "amqp10/TX-STATE-KNOWN", "a transfer is posted under a transaction that its sender has discharged"
        )
    elif txn_id not in me.declared and me.whole and case.peer.whole:
        case.report(
            "amqp10/TX-STATE-KNOWN",
            "a transfer is posted under a transaction that was not declared",
            CERTAIN,
            {"declared": len(me.declared)},
        )


def judge_transfer(case: Case, body: Transfer) -> None:
    """The transactions' rules about transfer."""
    state = body.state
    if isinstance(state, TransactionalState) and isinstance(state.txn_id, bytes):
        work_in_no_transaction(case, state.txn_id)
