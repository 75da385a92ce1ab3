"""Control links: their attaches and the messages of the controller (transactions.xml).

`coordinator` judges the answers of the coordinator, and `transaction` judges txn-ids on other links.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10.case import Case10, attach_read
from amqpscope.rules.amqp10.transaction import (
    declared_as_a_state,
    judge_control_link_of,
    lacks,
    txn_id_too_long,
)
from amqpscope.rules.declaration import Rules
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

RULES: Final = Rules("amqp10/control_link")


_CAPABILITIES: Final = (
    "amqp:local-transactions",
    "amqp:distributed-transactions",
    "amqp:promotable-transactions",
    "amqp:multi-txns-per-ssn",
    "amqp:multi-ssns-per-txn",
)

# The first octets of a data section that holds a declare or a discharge.
_ENCODED: Final = {b"\x00\x53\x31": "a declare", b"\x00\x53\x32": "a discharge"}


TX_COORD_TARGET: Final = RULES.rule(
    "TX-COORD-TARGET", "MUST", "definition", usual_answer="amqp:invalid-field"
)


def coordinator_as_source(case: Case10, problem: Problem) -> None:
    """A peer sends an attach whose source is a coordinator.

    Demands: A coordinator may be the target of a link, never its source.
    Source: transactions.xml section coordination > coordinator
    Evidence: an attach with a coordinator as source
    Why it matters: A coordinator receives declare and discharge messages, but never sends messages. The other
    peer may refuse the link with amqp:invalid-field.
    Silent when: a part of the frame was not captured, or when octets just before the frame were not captured.
    How to mend it: Put the coordinator into the field `target`, and an ordinary source into the field
    `source`. The controller has to attach the control link as the sender.
    """
    case.report(TX_COORD_TARGET, f"{problem.path}: a coordinator may only be a target")


TX_CAPS_VALUE: Final = RULES.rule(
    "TX-CAPS-VALUE",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
)


def capability_that_is_none(case: Case10, capability: str) -> None:
    """In the capabilities of a coordinator, a peer lists a symbol that is not a txn-capability.

    Demands: The capabilities of a coordinator must be symbols of the type txn-capability.
    Source: transactions.xml section coordination > txn-capability
    Evidence: the symbols in the capabilities of the coordinator
    Why it matters: The other peer does not understand the symbol. A controller that asks for an unknown
    capability does not get the capability.
    Silent when: a part of the frame was not captured.
    Only possible because: The peers may have agreed on other capabilities.
    How to mend it: Use only the symbols of txn-capability, for example `amqp:local-transactions` or
    `amqp:multi-txns-per-ssn`. Check the spelling and the prefix `amqp:`.
    """
    case.report(
        TX_CAPS_VALUE,
        f"the coordinator has the capability {capability}, which the specification does not define",
        POSSIBLE,
        {"capability": capability},
    )


TX_CTRL_REJECTED: Final = RULES.rule("TX-CTRL-REJECTED", "SHOULD", "keyword", by="sender")


def control_link_without_rejected(case: Case10) -> None:
    """A controller attaches a control link whose source does not offer the coordinator the outcome
    `rejected`.

    Demands: The source of a control link should offer the outcome `rejected`, so that the coordinator may
    answer with this outcome.
    Source: transactions.xml section txn-declare
    Evidence: the outcomes in the source of the controller's attach
    Why it matters: Without the outcome `rejected`, the coordinator can report a failure only by detaching the
    link. The detach rolls back all other transactions that were declared on the link.
    Silent when: the source lists no outcomes, because such a source permits every outcome. The rule is also
    silent when the source lists a symbol that is not the name of an outcome.
    How to mend it: Include `amqp:rejected:list` in the outcomes of the control link's source, and handle the
    outcome `rejected` for declare and discharge.
    """
    case.report(
        TX_CTRL_REJECTED,
        "the outcomes of the control link's source do not include amqp:rejected:list, so "
        "the coordinator cannot answer with the outcome `rejected`",
    )


def judge_attach(case: Case10, body: Attach) -> None:
    """Judge an attach of a control link by itself."""
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


# Rules whose problems need more than the octets to judge.
PROBLEMS: Final[dict[str, Callable[[Case10, Problem], None]]] = {TX_COORD_TARGET: coordinator_as_source}


# The messages of a controller


TX_CTRL_NOWORK: Final = RULES.rule(
    "TX-CTRL-NOWORK", "MUST NOT", "definition", by="sender", usual_answer="amqp:not-allowed", octets=True
)


def work_on_control_link(case: Case10, what: str) -> None:
    """A controller sends something other than declare and discharge messages on a control link.

    Demands: A control link may carry only declare and discharge messages and no transactional work.
    Source: transactions.xml section transactions
    Evidence: messages on a link to a coordinator, and the transactional-state of their transfers
    Why it matters: The coordinator cannot process the message, so the intended work is not done.
    Silent when: a part of the message was not captured. The rule is also silent when the capture lacks octets
    that the sender sent after the link's attach, because the handle may by then belong to another link.
    How to mend it: Send transactional messages on an ordinary link, with the txn-id in the
    transactional-state of the transfer. Use the control link only for declare and discharge.
    """
    case.report(
        TX_CTRL_NOWORK,
        f"the controller sends {what} on a control link, which may carry only declare and discharge",
    )


TX_DECLARE_BODY: Final = RULES.rule(
    "TX-DECLARE-BODY", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", octets=True
)


def declare_in_another_section(case: Case10, section: str) -> None:
    """A controller sends a declare in a message whose body is not a single amqp-value section.

    Demands: The body of a declare message must be exactly one amqp-value section, and this section must hold
    the declare.
    Source: transactions.xml section txn-declare
    Evidence: the payload of the transfers on the control link
    Why it matters: The coordinator looks for the declare in the amqp-value section. Without a declare in the
    amqp-value section, no transaction begins.
    Silent when: a part of the message was not captured.
    How to mend it: Put the declare, as a described list, into one amqp-value section. Put no other body
    section into the message. Do not put the octets of the declare into a data section.
    """
    case.report(
        TX_DECLARE_BODY,
        f"the controller sends a declare in the section `{section}`, not in an amqp-value section",
    )


TX_DISCHARGE_BODY: Final = RULES.rule(
    "TX-DISCHARGE-BODY", "MUST", "definition", by="sender", usual_answer="amqp:decode-error", octets=True
)


def discharge_in_another_section(case: Case10, section: str) -> None:
    """A controller sends a discharge in a message whose body is not a single amqp-value section.

    Demands: The body of a discharge message must be exactly one amqp-value section, and this section must
    hold the discharge.
    Source: transactions.xml section txn-discharge
    Evidence: the payload of the transfers on the control link
    Why it matters: The coordinator looks for the discharge in the amqp-value section. Without a discharge in
    the amqp-value section, the transaction stays open.
    Silent when: a part of the message was not captured.
    How to mend it: Put the discharge, as a described list, into one amqp-value section. Put no other body
    section into the message. Do not put the octets of the discharge into a data section.
    """
    case.report(
        TX_DISCHARGE_BODY,
        f"the controller sends a discharge in the section `{section}`, not in an amqp-value section",
    )


TX_DECLARE_UNSETTLED: Final = RULES.rule(
    "TX-DECLARE-UNSETTLED", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def declare_settled(case: Case10) -> None:
    """A controller sends the transfer of a declare with settled=true.

    Demands: A controller must not send a declare as a settled delivery.
    Source: transactions.xml section txn-declare
    Evidence: the settled flag of the transfer
    Why it matters: The coordinator cannot send an outcome for a settled delivery, so the controller does not
    get the txn-id.
    Silent when: a part of the message was not captured.
    How to mend it: Send the declare with settled=false, and attach the control link with a snd-settle-mode
    other than `settled`. Wait for the disposition with the outcome `declared`.
    """
    case.report(
        TX_DECLARE_UNSETTLED,
        "the controller sends a declare with settled=true, but must send a declare unsettled",
    )


TX_DISCHARGE_UNSETTLED: Final = RULES.rule(
    "TX-DISCHARGE-UNSETTLED", "illegal", "wording", by="sender", usual_answer="amqp:not-allowed"
)


def discharge_settled(case: Case10) -> None:
    """A controller sends the transfer of a discharge with settled=true.

    Demands: A controller must not send a discharge as a settled delivery.
    Source: transactions.xml section txn-discharge
    Evidence: the settled flag of the transfer
    Why it matters: The coordinator cannot send an outcome for a settled delivery, so the controller never
    learns whether the transaction was committed.
    Silent when: a part of the message was not captured.
    How to mend it: Send the discharge with settled=false, and attach the control link with a snd-settle-mode
    other than `settled`. Report the commit to the application only after the outcome `accepted` has arrived.
    """
    case.report(
        TX_DISCHARGE_UNSETTLED,
        "the controller sends a discharge with settled=true, but must send a discharge unsettled",
    )


TX_GLOBALID: Final = RULES.rule(
    "TX-GLOBALID", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-implemented", octets=True
)


def global_id_without_distributed_transactions(case: Case10, certainty: i64) -> None:
    """A controller sets global-id in a declare although the coordinator does not offer distributed
    transactions.

    Demands: A controller may set the global-id of a declare only if the coordinator offers distributed
    transactions.
    Source: transactions.xml section coordination > declare.global-id
    Evidence: the global-id of the declare, and the capabilities of the coordinator
    Why it matters: The controller treats the work as part of a global transaction, but the coordinator does
    not. The work may be committed although the global transaction is rolled back.
    Silent when: octets of either peer were not captured. The finding is reported as possible, not as certain,
    when the coordinator's attach lists no capabilities, or when the controller may not yet have read this
    attach.
    How to mend it: Read the capabilities in the coordinator's attach before the declare. Set global-id only
    if `amqp:distributed-transactions` is among the coordinator's capabilities.
    """
    case.report(
        TX_GLOBALID,
        "a declare has a global-id, but the coordinator does not offer amqp:distributed-transactions",
        certainty,
    )


TX_MULTI_PER_SSN: Final = RULES.rule(
    "TX-MULTI-PER-SSN",
    "MAY-limits",
    "definition",
    by="sender",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
    usual_answer="amqp:not-implemented",
)


def several_transactions_on_a_session(case: Case10, live: int, pending: int, certainty: i64) -> None:
    """A controller declares a transaction while another transaction of the session is live, although the
    coordinator does not offer several transactions per session.

    Demands: A controller may have several live transactions on one session only if the coordinator offers
    amqp:multi-txns-per-ssn.
    Source: transactions.xml section coordination > txn-capability multi-txns-per-ssn
    Evidence: the number of live transactions of the session
    Why it matters: The coordinator may refuse the declare, or assign the work of both transactions to one
    transaction.
    Silent when: octets of either peer were not captured. The finding is reported as possible, not as certain,
    when the coordinator's attach lists no capabilities, or when the other transaction is not declared yet.
    How to mend it: Discharge a transaction before declaring the next one on the session, or open one session
    per transaction. Declare several transactions on one session only if the coordinator offers
    `amqp:multi-txns-per-ssn`.
    """
    case.report(
        TX_MULTI_PER_SSN,
        "the controller declares a transaction while another transaction of the session is live, but the "
        "coordinator does not offer the capability amqp:multi-txns-per-ssn",
        certainty if live else min(certainty, POSSIBLE),
        {"live_transactions": live, "unanswered_declares": pending},
    )


TX_DISCHARGE_KNOWN: Final = RULES.rule(
    "TX-DISCHARGE-KNOWN", "MUST", "definition", by="sender", answer="amqp:transaction:unknown-id", octets=True
)


def discharge_of_no_transaction(case: Case10, txn_id: bytes) -> None:
    """A controller sends a discharge for a transaction that was not declared or that the controller has
    already discharged.

    Demands: A discharge must have the txn-id of a live transaction. A transaction is live when it is declared
    and not yet discharged.
    Source: transactions.xml section coordination > discharge, transaction-error unknown-id
    Evidence: the txn-id of the discharge, and the txn-ids of the live transactions
    Why it matters: The coordinator can only refuse the discharge. The application considers the work
    committed, although the work is not committed.
    Silent when: octets of either peer or of the message were not captured, or when there were more
    transactions than the rule remembers.
    How to mend it: Wait for the outcome `declared` and use its txn-id in the discharge. Forget the txn-id
    once the discharge is sent. A common cause is that both the normal path and a cleanup path end the
    transaction.
    """
    me = case.me
    ledger = case.ledger
    session = case.session
    if not me.whole or ledger.overfull or (session is not None and not session.whole):
        return
    transaction = ledger.transaction(me.peer, txn_id)
    if transaction is None or transaction.declared_end > me.knowledge.could:
        case.report(
            TX_DISCHARGE_KNOWN,
            "the controller sends a discharge of a transaction that was not declared",
            CERTAIN,
            {"transactions": len(ledger.transactions)},
        )
    elif transaction.discharge_end != UNKNOWN:
        case.report(
            TX_DISCHARGE_KNOWN,
            "the controller discharges a transaction twice",
            CERTAIN,
            {"transactions": len(ledger.transactions)},
            [int(transaction.discharge_packet)],
        )
    else:
        judge_control_link_of(case, transaction)


TX_POST_PARTIAL: Final = RULES.rule(
    "TX-POST-PARTIAL", "illegal", "wording", by="sender", answer="amqp:transaction:rollback"
)


def discharged_while_incomplete(case: Case10, transaction: Transaction, packet: int) -> None:
    """A controller discharges a transaction while a delivery posted under this transaction is not complete.

    Demands: A controller must not discharge a transaction while a delivery that it posted under the
    transaction is incomplete.
    Source: transactions.xml section txn-work > Transactional Posting
    Evidence: a discharge between two transfers of a delivery that has the same txn-id as the discharge
    Why it matters: The resource cannot know whether the rest of the delivery belongs to the transaction. The
    resource must roll the transaction back.
    Silent when: the capture lacks octets that either peer sent after the delivery's first transfer.
    How to mend it: Before the discharge, complete or abort every delivery of the transaction. Before a
    commit, wait until all pending sends are complete, including the pending sends of other threads.
    """
    case.report(
        TX_POST_PARTIAL,
        f"the controller discharges a transaction while the transaction's delivery in packet {packet} is "
        "incomplete",
        CERTAIN,
        {"fail": transaction.fail},
        [packet],
    )


TX_ACQ_CREDIT: Final = RULES.rule("TX-ACQ-CREDIT", "SHOULD", "keyword", by="sender")


def discharged_with_credit_left(case: Case10, name: str, credit: i64) -> None:
    """A controller discharges a transaction while a link that acquires messages under this transaction still
    has link-credit.

    Demands: Before a discharge, the controller should make sure that no link-credit is left on links that
    acquire messages under the transaction.
    Source: transactions.xml section txn-work > Transactional Acquisition
    Evidence: the link-credit of links that acquire messages under the transaction, at the time of the
    discharge
    Why it matters: With the link-credit that is left, the sender of the link acquires further messages
    outside of any transaction.
    Silent when: octets of either peer were not captured. The rule is also silent when, as far as the
    controller could know, the link-credit was used up, withdrawn or drained.
    How to mend it: Before the discharge, send a flow with drain=true or with link-credit 0 on every link that
    acquires messages under the transaction. Wait until the sender's flow or transfers show that no
    link-credit is left.
    """
    case.report(
        TX_ACQ_CREDIT,
        f"the controller discharges a transaction, but link '{name}' still has link-credit for acquiring "
        "messages under this transaction",
        CERTAIN,
        {"link_credit": int(credit)},
    )


def _judge_discharge(case: Case10, txn_id: bytes) -> None:
    """Judge the moment at which a transaction is discharged."""
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
        if link is not None and link.whole and asked.limit > link.receipt.count:
            discharged_with_credit_left(case, name, asked.limit - link.receipt.count)


def _judge_declare(case: Case10, session: SessionEnd, link: LinkEnd, declare: Declare) -> None:
    """Judge the contents of a declare."""
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


def _judge_message(case: Case10, session: SessionEnd, link: LinkEnd, message: Message, settled: bool) -> None:
    """Judge a message on a control link."""
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
            return  # another rule judges this body
    if named == 0 and link.whole and message.message_format == 0 and not message.problems and strange:
        work_on_control_link(case, f"a message whose {strange} section holds neither declare nor discharge")


def judge_transfer(case: Case10, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """Judge a transfer on a control link."""
    if isinstance(body.state, Declared):
        declared_as_a_state(case)
    if named_in(body.state) is not None:
        if link.whole:
            work_on_control_link(case, "transactional work")
        return
    message = case.message()
    if message is not None and message.complete:
        settled = body.settled is True or (link.open is not None and link.open.settled)
        _judge_message(case, session, link, message, settled)
