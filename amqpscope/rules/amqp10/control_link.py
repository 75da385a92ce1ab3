"""Control links: how they are attached, and what a controller says on them (transactions.xml).

What its coordinator answers is judged in `coordinator`; what names a transaction elsewhere, in `transaction`.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.link import attach_read
from amqpscope.rules.amqp10.transaction import (
    declared_as_a_state,
    judge_control_link_of,
    lacks,
    txn_id_too_long,
)
from amqpscope.rules.amqp10.types import field_value_that_does_not_provide_its_archetype
from amqpscope.tracking.amqp10.control import Transaction
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.outcomes import excludes
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transaction_names import named_in
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Rejected, Source
from dissectors.amqp10.performatives import Attach, Transfer
from dissectors.amqp10.transactions import Coordinator, Declare, Declared, Discharge
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["PROBLEMS", "judge_attach", "judge_transfer"]

_CAPABILITIES: Final = (
    "amqp:local-transactions",
    "amqp:distributed-transactions",
    "amqp:promotable-transactions",
    "amqp:multi-txns-per-ssn",
    "amqp:multi-ssns-per-txn",
)

# How a data section begins that holds the octets of a declare or a discharge.
_ENCODED: Final = {b"\x00\x53\x31": "a declare", b"\x00\x53\x32": "a discharge"}


def coordinator_as_source(case: Case, problem: Problem) -> None:
    """An attach has a coordinator as its source.

    Why it matters: a coordinator takes declares and discharges; nothing comes from it.
    Silent when: the frame was not captured whole, or octets just before it were not captured.
    """
    case.report("amqp10/TX-COORD-TARGET", f"{problem.path}: a coordinator is a target only")


def capability_that_is_none(case: Case, capability: str) -> None:
    """A coordinator's capabilities hold a symbol that is no transaction capability.

    Why it matters: who asks for it, or relies on it, is not understood.
    Silent when: the frame was not captured whole.
    Only possible because: Others may be agreed on.
    """
    case.report(
        "amqp10/TX-CAPS-VALUE",
        f"{capability} is no capability of a coordinator",
        POSSIBLE,
        {"capability": capability},
    )


def control_link_without_rejected(case: Case) -> None:
    """A controller attaches a control link whose source does not offer the outcome rejected.

    Why it matters: the coordinator can tell that something failed only by detaching the link, which rolls
    back every other transaction on it.
    Silent when: the source lists no outcomes, and so does not exclude any, or a symbol that stands for none.
    """
    case.report(
        "amqp10/TX-CTRL-REJECTED", "the outcomes of the control link's source are without amqp:rejected:list"
    )


def judge_attach(case: Case, body: Attach) -> None:
    """The rules that an attach of a control link breaks by itself."""
    target = body.target
    if not isinstance(target, Coordinator):
        return
    for capability in target.capabilities or ():
        if capability not in _CAPABILITIES:
            capability_that_is_none(case, str(capability))
    source = body.source
    if body.role is False and isinstance(source, Source) and not isinstance(source.default_outcome, Rejected):
        if excludes(source, "amqp:rejected:list"):
            control_link_without_rejected(case)


def value_that_is_no_such(case: Case, problem: Problem) -> None:
    """What does not provide the archetype of its field: a coordinator as source, or something else."""
    body = case.record.frame.body
    if (
        isinstance(body, Attach)
        and problem.path == "attach.source"
        and problem.reason.startswith("coordinator ")
    ):
        coordinator_as_source(case, problem)
    else:
        field_value_that_does_not_provide_its_archetype(case, problem)


# What the dissector's problems break, by their code.
PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {"T-COMP-REQUIRES": value_that_is_no_such}


# What a controller says on it


def work_on_control_link(case: Case, what: str) -> None:
    """A control link carries something else than declares and discharges.

    Why it matters: the coordinator can do nothing with it; what was to be done is not.
    Silent when: the message was not captured whole, or octets of its sender since the link's attach were not:
    its handle may be another link's.
    """
    case.report("amqp10/TX-CTRL-NOWORK", f"{what} is sent on a control link")


def declare_in_another_section(case: Case, section: str) -> None:
    """A declare does not travel as the single amqp-value section of a message.

    Why it matters: the coordinator looks for it there.
    Silent when: the message was not captured whole.
    """
    case.report("amqp10/TX-DECLARE-BODY", f"a declare is sent in {section}, not as an amqp-value")


def discharge_in_another_section(case: Case, section: str) -> None:
    """A discharge does not travel as the single amqp-value section of a message.

    Why it matters: the coordinator looks for it there; the transaction stays open.
    Silent when: the message was not captured whole.
    """
    case.report("amqp10/TX-DISCHARGE-BODY", f"a discharge is sent in {section}, not as an amqp-value")


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


def global_id_without_distributed_transactions(case: Case, certainty: i64) -> None:
    """A declare has a global-id, and the coordinator does not offer distributed transactions.

    Why it matters: the work is thought to be part of a global transaction, and is not.
    Silent when: octets of either peer were not captured. Possible when the coordinator says nothing of its
    capabilities, or its attach may not have been read.
    """
    case.report(
        "amqp10/TX-GLOBALID",
        "a declare has a global-id, the coordinator does not offer amqp:distributed-transactions",
        certainty,
    )


def several_transactions_on_a_session(case: Case, live: int, pending: int, certainty: i64) -> None:
    """A transaction is declared while another one of the session lives, which the coordinator does not offer.

    Why it matters: the coordinator may refuse it, or take the work of both for one transaction's.
    Silent when: octets of either peer were not captured. Possible when the coordinator says nothing of its
    capabilities, or the other transaction is not declared yet.
    """
    case.report(
        "amqp10/TX-MULTI-PER-SSN",
        "a transaction is declared beside others of the session, "
        "the coordinator does not offer amqp:multi-txns-per-ssn",
        certainty if live else min(certainty, POSSIBLE),
        {"live_transactions": live, "unanswered_declares": pending},
    )


def discharge_of_no_transaction(case: Case, txn_id: bytes) -> None:
    """A discharge names a transaction that was not declared, or is discharged already.

    Why it matters: the coordinator can only refuse it; work thought to be committed is not.
    Silent when: octets of either peer, or the message, were not captured, or there were more transactions
    than are remembered.
    """
    me = case.me
    ledger = case.ledger
    if not me.whole or ledger.overfull:
        return
    transaction = ledger.transaction(me.peer, txn_id)
    if transaction is None or transaction.declared_end > me.knowledge.could:
        case.report(
            "amqp10/TX-DISCHARGE-KNOWN",
            "a transaction is discharged that was not declared",
            CERTAIN,
            {"transactions": len(ledger.transactions)},
        )
    elif transaction.discharge_end != UNKNOWN:
        case.report(
            "amqp10/TX-DISCHARGE-KNOWN",
            "a transaction is discharged twice",
            CERTAIN,
            {"transactions": len(ledger.transactions)},
            [int(transaction.discharge_packet)],
        )
    else:
        judge_control_link_of(case, transaction)


def discharged_while_incomplete(case: Case, transaction: Transaction, packet: int) -> None:
    """A transaction is discharged while a delivery posted under it is not complete.

    Why it matters: the resource cannot tell whether the rest was to be part of it, and has to roll back.
    Silent when: octets of either peer since the delivery's first transfer were not captured.
    """
    case.report(
        "amqp10/TX-POST-PARTIAL",
        f"a transaction is discharged while a delivery under it (packet {packet}) is incomplete",
        CERTAIN,
        {"fail": transaction.fail},
        [packet],
    )


def discharged_with_credit_left(case: Case, name: str, credit: i64) -> None:
    """A controller discharges a transaction under which a link acquires, and leaves the link credit.

    Why it matters: what comes on that credit is acquired outside of any transaction.
    Silent when: octets of either peer were not captured, or the credit was used up, taken back or drained as
    far as the controller could know.
    """
    case.report(
        "amqp10/TX-ACQ-CREDIT",
        f"a transaction is discharged while the link {name} that acquires under it has credit",
        CERTAIN,
        {"link_credit": int(credit)},
    )


def _judge_discharge(case: Case, txn_id: bytes) -> None:
    """The rules about the moment at which a transaction is discharged."""
    me = case.me
    ledger = case.ledger
    found = case.found
    discharge_of_no_transaction(case, txn_id)
    transaction = ledger.transaction(me.peer, txn_id)
    if transaction is None or case.found > found or not me.whole or ledger.overfull:
        return
    work = ledger.work.incomplete(transaction)
    if work is not None:
        discharged_while_incomplete(case, transaction, int(work.packet))
    for (peer, channel, name), asked in ledger.asked.items():
        if peer != me.peer or not asked.transactions or asked.transactions[-1] is not transaction:
            continue
        session = me.sessions.get(channel)
        link = None if session is None else session.links.get((name, False))
        if link is not None and link.whole and asked.limit > link.received:
            discharged_with_credit_left(case, name, asked.limit - link.received)


def _judge_declare(case: Case, session: SessionEnd, link: LinkEnd, declare: Declare) -> None:
    """The rules about what a declare asks for."""
    me = case.me
    ledger = case.ledger
    if not me.whole or ledger.overfull:
        return
    control = ledger.control(me.peer, session.channel, link.name)
    if control is None:
        return
    if declare.global_id is not None:
        certainty = lacks(case, control, "amqp:distributed-transactions")
        if certainty == POSSIBLE and control.capabilities is not None:
            certainty = attach_read(case, link)
        if certainty != LEGAL:
            global_id_without_distributed_transactions(case, certainty)
    certainty = lacks(case, control, "amqp:multi-txns-per-ssn")
    if certainty == LEGAL:
        return
    if certainty == POSSIBLE and control.capabilities is not None:
        certainty = attach_read(case, link)
    live = 0
    for (peer, _), transaction in ledger.transactions.items():
        if (
            peer == me.peer
            and transaction.control.session == session.number
            and transaction.discharge_end == UNKNOWN
            and transaction.declared_end <= me.knowledge.could
            and not transaction.control.over()
        ):
            live += 1
    pending = 0
    for request in ledger.requests.get((me.peer, int(session.channel)), {}).values():
        if request.kind == "declare" and not request.answered:
            pending += 1
    if live or pending:
        several_transactions_on_a_session(case, live, pending, certainty)


def _inside(value: object) -> object:
    """The declare or discharge that a list begins with, or that stands by itself; else None."""
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, (Declare, Discharge)) else None


def _judge_message(case: Case, session: SessionEnd, link: LinkEnd, message: Message, settled: bool) -> None:
    """What is said on a control link."""
    named = 0
    strange = ""
    for section in message.sections():
        value = section.value
        if section.name == "amqp-value" and isinstance(value, Declare):
            named += 1
            if settled:
                declare_settled(case)
            else:
                _judge_declare(case, session, link, value)
        elif section.name == "amqp-value" and isinstance(value, Discharge):
            named += 1
            if settled:
                discharge_settled(case)
            if isinstance(value.txn_id, bytes):
                if len(value.txn_id) > 32:
                    txn_id_too_long(case, len(value.txn_id))
                else:
                    _judge_discharge(case, value.txn_id)
        elif section.name in ("amqp-value", "amqp-sequence", "data"):
            what = _inside(value)
            coded = _ENCODED.get(value[:3], "") if isinstance(value, bytes) else ""
            if isinstance(what, Declare) or coded == "a declare":
                declare_in_another_section(case, section.name)
                return
            if isinstance(what, Discharge) or coded:
                discharge_in_another_section(case, section.name)
                return
            strange = section.name
        elif section.name == "unknown":
            return  # judged as what it is not
    if named == 0 and link.whole and message.message_format == 0 and not message.problems and strange:
        work_on_control_link(case, f"a message whose body is {strange}")


def judge_transfer(case: Case, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """The rules about what a transfer says on a control link."""
    if isinstance(body.state, Declared):
        declared_as_a_state(case)
    if named_in(body.state) is not None:
        if link.whole:
            work_on_control_link(case, "work under a transaction")
        return
    message = case.message()
    if message is not None and message.complete:
        settled = body.settled is True or (link.open is not None and link.open.settled)
        _judge_message(case, session, link, message, settled)


RULES = {
    "amqp10/TX-COORD-TARGET": coordinator_as_source,
    "amqp10/TX-CAPS-VALUE": capability_that_is_none,
    "amqp10/TX-CTRL-REJECTED": control_link_without_rejected,
    "amqp10/TX-CTRL-NOWORK": work_on_control_link,
    "amqp10/TX-DECLARE-BODY": declare_in_another_section,
    "amqp10/TX-DISCHARGE-BODY": discharge_in_another_section,
    "amqp10/TX-DECLARE-UNSETTLED": declare_settled,
    "amqp10/TX-DISCHARGE-UNSETTLED": discharge_settled,
    "amqp10/TX-GLOBALID": global_id_without_distributed_transactions,
    "amqp10/TX-MULTI-PER-SSN": several_transactions_on_a_session,
    "amqp10/TX-DISCHARGE-KNOWN": discharge_of_no_transaction,
    "amqp10/TX-POST-PARTIAL": discharged_while_incomplete,
    "amqp10/TX-ACQ-CREDIT": discharged_with_credit_left,
}
