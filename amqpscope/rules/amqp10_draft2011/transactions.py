"""Transactions (sections 5.1 and 5.2): control links, txn-ids, and work that names them."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules

__all__ = [
    "another_transaction_named",
    "capability_that_is_none",
    "discharge_of_no_transaction",
    "discharged_with_credit_left",
    "request_in_another_form",
    "request_not_rejected",
    "several_transactions_on_a_session",
    "work_in_no_transaction",
    "work_on_another_session",
]

RULES: Final = Rules("amqp10_draft2011/transactions")

_LIMITS: Final = (
    "The specification permits the behaviour only within limits, and the peer exceeds these limits."
)

TX_CAPS_VALUE: Final = RULES.rule(
    "TX-CAPS-VALUE",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
)


def capability_that_is_none(case: CaseDraft2011, capability: str) -> None:
    """A peer sends a coordinator whose capabilities contain a symbol that begins with `amqp:` but is not one
    of the six capabilities of the draft.

    Demands: The capabilities of a coordinator must be symbols of the type txn-capability.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 5.2.1 and 5.2.4
    Evidence: the capabilities of the coordinator in an attach
    Why it matters: The other peer does not know the capability, so the two peers do not agree on what the
    coordinator can do.
    Silent when: the symbol does not begin with `amqp:`, or when a part of the frame was not captured.
    Only possible because: Another specification may define the capability.
    How to mend it: Use only the six capabilities that the draft defines, for example
    `amqp:local-transactions`.
    """
    case.report(
        TX_CAPS_VALUE,
        "the coordinator has a capability that begins with `amqp:` and that the draft does not define",
        POSSIBLE,
        {"capability": capability},
    )


TX_DECLARE_BODY: Final = RULES.rule(
    "TX-DECLARE-BODY",
    "MUST",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:decode-error",
    octets=True,
)


def declare_in_another_form(case: CaseDraft2011, what: str) -> None:
    """A controller sends a `declare` message whose body is not a single amqp-data section with one value.

    Demands: The body of a `declare` message must be a single amqp-data section with exactly one value.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 5.1
    Evidence: the sections of a message on the link to the coordinator
    Why it matters: The coordinator may not find the `declare`, or may ignore the `declare`. The work that the
    controller then does is outside of any transaction.
    Silent when: a part of the message was not captured.
    Only possible because: The surviving text of the draft does not contain the descriptor of `declare`, so
    the rule uses the descriptor of the final specification.
    How to mend it: Send the `declare` alone in one section with the section-code 4 (amqp-data).
    """
    case.report(TX_DECLARE_BODY, f"the controller sends a `declare` {what}", POSSIBLE)


TX_DISCHARGE_BODY: Final = RULES.rule(
    "TX-DISCHARGE-BODY",
    "MUST",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:decode-error",
    octets=True,
)


def discharge_in_another_form(case: CaseDraft2011, what: str) -> None:
    """A controller sends a `discharge` message whose body is not a single amqp-data section with one value.

    Demands: The body of a `discharge` message must be a single amqp-data section with exactly one value.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 5.1
    Evidence: the sections of a message on the link to the coordinator
    Why it matters: The coordinator may not find the `discharge`. Without the `discharge`, the transaction
    stays open until it times out.
    Silent when: a part of the message was not captured.
    Only possible because: The surviving text of the draft does not contain the descriptor of `discharge`, so
    the rule uses the descriptor of the final specification.
    How to mend it: Send the `discharge` alone in one section with the section-code 4 (amqp-data).
    """
    case.report(TX_DISCHARGE_BODY, f"the controller sends a `discharge` {what}", POSSIBLE)


def request_in_another_form(case: CaseDraft2011, name: str, what: str) -> None:
    """The rule about the form of a declare or a discharge."""
    if name == "declare":
        declare_in_another_form(case, what)
    else:
        discharge_in_another_form(case, what)


TX_DECLARE_FAIL_REJECT: Final = RULES.rule(
    "TX-DECLARE-FAIL-REJECT",
    "MUST",
    "definition",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
)


def declare_not_rejected(case: CaseDraft2011, what: str) -> None:
    """A coordinator does not answer a failed `declare` with the outcome `rejected` and a transaction error.

    Demands: If a coordinator cannot do what a `declare` asks, the coordinator must reject the `declare`
    message with a transaction error.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 5.1 and 5.2.5
    Evidence: the outcome that the coordinator sends for a `declare`, and the error of this outcome
    Why it matters: The controller does not learn why there is no transaction.
    Silent when: the `declare` was not captured completely.
    Only possible because: The draft makes this demand without a keyword such as MUST, and the coordinator may
    have another reason to refuse the message.
    How to mend it: Send the outcome `rejected` with an error whose condition begins with `amqp:transaction:`.
    """
    case.report(TX_DECLARE_FAIL_REJECT, f"the coordinator answers a `declare` with {what}", POSSIBLE)


TX_DISCHARGE_FAIL_REJECT: Final = RULES.rule(
    "TX-DISCHARGE-FAIL-REJECT",
    "MUST",
    "definition",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
)


def discharge_not_rejected(case: CaseDraft2011, what: str) -> None:
    """A coordinator does not answer a failed `discharge` with the outcome `rejected` and a transaction error.

    Demands: If a coordinator cannot do what a `discharge` asks, the coordinator must reject the `discharge`
    message with a transaction error.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 5.1 and 5.2.5
    Evidence: the outcome that the coordinator sends for a `discharge`, and the error of this outcome
    Why it matters: The controller does not learn whether its work was committed.
    Silent when: the `discharge` was not captured completely.
    Only possible because: The draft makes this demand without a keyword such as MUST, and the coordinator may
    have another reason to refuse the message.
    How to mend it: Send the outcome `rejected` with an error whose condition begins with `amqp:transaction:`.
    """
    case.report(TX_DISCHARGE_FAIL_REJECT, f"the coordinator answers a `discharge` with {what}", POSSIBLE)


def request_not_rejected(case: CaseDraft2011, name: str, what: str) -> None:
    """The rule about the outcome of a declare or a discharge that fails."""
    if name == "declare":
        declare_not_rejected(case, what)
    else:
        discharge_not_rejected(case, what)


TX_DISCHARGE_KNOWN: Final = RULES.rule(
    "TX-DISCHARGE-KNOWN",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
    answer="amqp:transaction:unknown-id",
    octets=True,
)


def discharge_of_no_transaction(case: CaseDraft2011, txn_id: bytes, why: str) -> None:
    """A controller sends a `discharge` for a transaction that was not declared or that is already discharged.

    Demands: A `discharge` must have the txn-id of a transaction that is declared and not yet discharged.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 5.2.3 and 5.2.5
    Evidence: the txn-id in the transfer-state of the `discharge`, and the txn-ids of all earlier `declare`
    messages
    Why it matters: The coordinator can only reject the `discharge`. The application believes that the work is
    committed, although the work is not committed.
    Silent when: octets of either peer were not captured, or when an earlier `declare` or `discharge` has no
    txn-id.
    Only possible because: The transaction may have been declared on another connection of the same container.
    How to mend it: Discharge each transaction only once, with the txn-id of its `declare`.
    """
    case.report(
        TX_DISCHARGE_KNOWN,
        f"a `discharge` has txn-id 0x{txn_id.hex()}, but the transaction with this txn-id {why}",
        POSSIBLE,
        {"txn_id": txn_id.hex()},
    )


TX_STATE_KNOWN: Final = RULES.rule(
    "TX-STATE-KNOWN",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    answer="amqp:transaction:unknown-id",
)


def work_in_no_transaction(case: CaseDraft2011, txn_id: bytes, why: str) -> None:
    """A controller assigns work to a transaction that was not declared, or that is already discharged.

    Demands: The txn-id in a transfer-state, or in the options of a flow, must name a transaction that is
    declared and not yet discharged.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 5.1, 5.1.1 and 5.2.5
    Evidence: the txn-id of the frame, and the txn-ids of all earlier `declare` and `discharge` messages
    Why it matters: The resource cannot assign the work to a transaction. The resource may refuse the
    work, or do the work outside of any transaction.
    Silent when: octets of either peer were not captured, or when the connection has no link to a coordinator.
    The rule is also silent when an earlier `declare` or `discharge` has no txn-id.
    Only possible because: The transaction may have been declared on another connection of the same container.
    How to mend it: Declare a transaction before you use its txn-id, and do not use the txn-id after the
    `discharge`.
    """
    case.report(
        TX_STATE_KNOWN,
        f"the {case.sent.frame.name} has txn-id 0x{txn_id.hex()}, but the transaction with this txn-id {why}",
        POSSIBLE,
        {"txn_id": txn_id.hex()},
    )


TX_MULTI_PER_SSN: Final = RULES.rule(
    "TX-MULTI-PER-SSN", "MAY-limits", "definition", by="sender", warning=_LIMITS
)


def several_transactions_on_a_session(case: CaseDraft2011, live: int) -> None:
    """A controller declares a transaction while another transaction of the same session is live, although the
    capabilities of the coordinator do not include amqp:multi-txns-per-ssn.

    Demands: A controller may have several live transactions on one session only if the coordinator offers the
    capability amqp:multi-txns-per-ssn.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 5.2.4
    Evidence: the capabilities in the coordinator's attach, and the `declare` and `discharge` messages of the
    session
    Why it matters: The coordinator may refuse the `declare`, or assign the work of both transactions to one
    transaction.
    Silent when: octets of either peer were not captured, or when the coordinator lists no capabilities. The
    rule is also silent when an earlier `declare` or `discharge` has no txn-id or was not accepted.
    Only possible because: The coordinator may support more capabilities than it lists.
    How to mend it: Discharge a transaction before you declare the next one on the session, or begin a session
    for each transaction.
    """
    case.report(
        TX_MULTI_PER_SSN,
        "the controller declares a transaction while another transaction of the session is live, but the "
        "coordinator does not offer the capability amqp:multi-txns-per-ssn",
        POSSIBLE,
        {"live_transactions": live},
    )


TX_SCOPE_SESSION: Final = RULES.rule(
    "TX-SCOPE-SESSION", "MAY-limits", "definition", by="sender", warning=_LIMITS
)


def work_on_another_session(case: CaseDraft2011, txn_id: bytes) -> None:
    """A controller names a transaction on another session than the session of its control link, although the
    capabilities of the coordinator do not include amqp:multi-ssns-per-txn.

    Demands: A controller may use a txn-id on several sessions only if the coordinator offers the capability
    amqp:multi-ssns-per-txn.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 5.2.4
    Evidence: the capabilities in the coordinator's attach, and the sessions of the `declare` and of the work
    Why it matters: The resource may refuse the work, or do the work outside of the transaction.
    Silent when: octets of either peer were not captured, or when the coordinator lists no capabilities. The
    rule is also silent when the coordinator offers amqp:multi-conns-per-txn.
    Only possible because: The coordinator may support more capabilities than it lists.
    How to mend it: On the session of the control link, attach all links that carry work of a transaction.
    """
    case.report(
        TX_SCOPE_SESSION,
        "the controller uses a transaction on another session than the session of the transaction's "
        "control link, but the coordinator does not offer the capability amqp:multi-ssns-per-txn",
        POSSIBLE,
        {"txn_id": txn_id.hex()},
    )


TX_ACQ_CREDIT: Final = RULES.rule("TX-ACQ-CREDIT", "SHOULD", "keyword", by="sender")


def discharged_with_credit_left(case: CaseDraft2011, name: str, credit: int) -> None:
    """A controller discharges a transaction while a link that acquires messages under this transaction still
    has link-credit.

    Demands: Before a discharge, the controller should make sure that no link-credit is left on links that
    acquire messages under the transaction.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 5.1.1
    Evidence: the txn-id in the options of a flow, the link-credit of this flow, and the messages that were
    received since this flow
    Why it matters: The sender of the link uses the remaining link-credit to acquire further messages outside
    of any transaction.
    Silent when: octets of either peer were not captured, or when the newest flow of the link has drain=true
    or link-credit 0.
    Only possible because: The draft does not say whether transfer-count counts the first or the last transfer
    of a message.
    How to mend it: Before the discharge, send a flow with drain=true or with link-credit 0 on every link that
    acquires messages under the transaction. Wait until the sender's flow shows that no link-credit is left.
    """
    case.report(
        TX_ACQ_CREDIT,
        f"the controller discharges a transaction, but link '{name}' still has link-credit for acquiring "
        "messages under this transaction",
        POSSIBLE,
        {"link_credit": credit},
    )


TX_RES_ID: Final = RULES.rule("TX-RES-ID", "MUST", "keyword", by="receiver")


def another_transaction_named(case: CaseDraft2011, named: bytes, posted: bytes | None) -> None:
    """A resource sends an outcome under another transaction than the transaction under which the message was
    sent.

    Demands: If a controller sends a message under a transaction, the disposition that the resource sends for
    the message must have the txn-id of this transaction.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 5.1
    Evidence: the txn-id in the controller's transfer, and the txn-id in the resource's disposition
    Why it matters: The controller treats the outcome as provisional within the wrong transaction. The
    controller may rely on work that is never committed.
    Silent when: octets of either peer were not captured, or when the disposition has no txn-id.
    How to mend it: Store the txn-id of each transfer, and put the same txn-id into the disposition with the
    outcome.
    """
    what = "no transaction" if posted is None else f"txn-id 0x{posted.hex()}"
    case.report(
        TX_RES_ID,
        f"the disposition has txn-id 0x{named.hex()}, but the message was sent under {what}",
        CERTAIN,
        {"txn_id": named.hex()},
    )
