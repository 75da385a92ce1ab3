"""Transactions in the draft: the controller chooses the txn-id."""

from __future__ import annotations

from typing import Any

from scenarios.amqp10_draft2011.rules import pair
from scenarios.pairs import legal, without
from support import draft2011_encode as draft
from support.conversation import Said
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER, SENDER, Section

HEAD = [draft.section("header"), draft.section("properties")]
DECLARE = draft.amqp_data(draft.declare())
DISCHARGE = draft.amqp_data(draft.discharge(fail=False))
ACCEPTED = draft.transfer_state(outcome=draft.accepted())


def under(txn_id: bytes, **fields: Any) -> draft.Encoded:
    return draft.transfer_state(txn_id=txn_id, **fields)


def controlled(d: Dialogue2011, *capabilities: str) -> None:
    """A link for work, and a control link on handle 1."""
    d.linked()
    coordinator = draft.coordinator(capabilities=list(capabilities) or None)
    d.client.attach(SENDER, handle=1, name="control", target=draft.coordinator()).called("control")
    d.server.attach(RECEIVER, handle=1, name="control", target=coordinator)
    d.server.flow(handle=1)


def asks(d: Dialogue2011, request: Section, txn_id: bytes, answer: Any = ACCEPTED) -> Said:
    """The controller asks the coordinator, which answers."""
    said = d.client.transfer([*HEAD, request], handle=1, state=under(txn_id))
    if answer is not None:
        d.server.disposition(d.client.begun[0] - 1, state=answer)
    return said


@legal()
def two_transactions_one_after_the_other(d: Dialogue2011) -> None:
    controlled(d, "amqp:local-transactions")
    for txn_id in (b"1", b"2"):
        asks(d, DECLARE, txn_id)
        d.client.transfer(state=under(txn_id))
        d.server.disposition(d.client.begun[0] - 1, state=under(txn_id, outcome=draft.accepted()))
        asks(d, DISCHARGE, txn_id)
    rejected = draft.rejected(error=draft.error(condition="amqp:transaction:rollback"))
    asks(d, DECLARE, b"3", draft.transfer_state(outcome=rejected))
    d.goodbye()


@pair("TX-CAPS-VALUE")
def capability_that_is_none(d: Dialogue2011) -> None:
    d.begun()
    capability = "amqp:multi-sessions" if d.wrong else "amqp:multi-conns-per-txn"
    target = draft.coordinator(capabilities=[capability])
    said = d.client.attach(SENDER, target=target)
    d.server.attach(RECEIVER, target=draft.coordinator())
    if d.wrong:
        said.may_break("TX-CAPS-VALUE")
    d.goodbye()


@pair("TX-DECLARE-BODY", cut=without("control"))
def declare_in_a_list(d: Dialogue2011) -> None:
    controlled(d)
    said = asks(d, draft.amqp_list([draft.declare()]) if d.wrong else DECLARE, b"1")
    if d.wrong:
        said.may_break("TX-DECLARE-BODY")
    d.goodbye()


@pair("TX-DISCHARGE-BODY", cut=without("control"))
def two_values_with_the_discharge(d: Dialogue2011) -> None:
    controlled(d)
    asks(d, DECLARE, b"1")
    twice = draft.amqp_data(draft.discharge(fail=False), "and more")
    said = asks(d, twice if d.wrong else DISCHARGE, b"1")
    if d.wrong:
        said.may_break("TX-DISCHARGE-BODY")
    d.goodbye()


@pair("TX-DECLARE-FAIL-REJECT", cut=without("control"))
def declare_released(d: Dialogue2011) -> None:
    controlled(d)
    asks(d, DECLARE, b"1", None)
    outcome = draft.released() if d.wrong else draft.accepted()
    said = d.server.disposition(0, state=draft.transfer_state(outcome=outcome))
    if d.wrong:
        said.may_break("TX-DECLARE-FAIL-REJECT")
    d.goodbye()


@pair("TX-DISCHARGE-FAIL-REJECT", cut=without("control"))
def discharge_rejected_with_another_error(d: Dialogue2011) -> None:
    controlled(d)
    asks(d, DECLARE, b"1")
    asks(d, DISCHARGE, b"1", None)
    condition = "amqp:internal-error" if d.wrong else "amqp:transaction:rollback"
    rejected = draft.rejected(error=draft.error(condition=condition))
    said = d.server.disposition(1, state=draft.transfer_state(outcome=rejected))
    if d.wrong:
        said.may_break("TX-DISCHARGE-FAIL-REJECT")
    d.goodbye()


@pair("TX-DISCHARGE-KNOWN", cut=without("control"))
def discharged_twice(d: Dialogue2011) -> None:
    controlled(d)
    asks(d, DECLARE, b"1")
    asks(d, DISCHARGE, b"1")
    if d.wrong:
        asks(d, DISCHARGE, b"1").may_break("TX-DISCHARGE-KNOWN")
    d.goodbye()


@pair("TX-STATE-KNOWN", cut=without("control"))
def work_in_no_transaction(d: Dialogue2011) -> None:
    controlled(d)
    asks(d, DECLARE, b"1")
    said = d.client.transfer(state=under(b"2" if d.wrong else b"1"))
    if d.wrong:
        said.may_break("TX-STATE-KNOWN")
    d.goodbye()


@pair("TX-STATE-KNOWN", cut=without("control"))
def flow_in_a_transaction_that_is_over(d: Dialogue2011) -> None:
    controlled(d)
    d.server.attach(SENDER, handle=2, name="out")
    d.client.attach(RECEIVER, handle=2, name="out")
    asks(d, DECLARE, b"1")
    if d.wrong:
        asks(d, DISCHARGE, b"1")
    said = d.client.flow(handle=2, options={"txn-id": draft.binary(b"1")})
    if d.wrong:
        said.may_break("TX-STATE-KNOWN")
    d.goodbye()


@pair("TX-MULTI-PER-SSN", cut=without("control"))
def two_transactions_on_a_session(d: Dialogue2011) -> None:
    controlled(d, "amqp:local-transactions")
    asks(d, DECLARE, b"1")
    if not d.wrong:
        asks(d, DISCHARGE, b"1")
    said = asks(d, DECLARE, b"2")
    if d.wrong:
        said.may_break("TX-MULTI-PER-SSN")
    d.goodbye()


@pair("TX-SCOPE-SESSION", cut=without("control"))
def work_on_another_session(d: Dialogue2011) -> None:
    controlled(d, "amqp:local-transactions", *(() if d.wrong else ("amqp:multi-ssns-per-txn",)))
    asks(d, DECLARE, b"1")
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.attach(SENDER, channel=1, name="other")
    d.server.attach(RECEIVER, channel=1, name="other")
    d.server.flow(handle=0, channel=1)
    said = d.client.transfer(channel=1, state=under(b"1"))
    if d.wrong:
        said.may_break("TX-SCOPE-SESSION")
    d.goodbye()


@pair("TX-RES-ID", cut=without("control"))
def another_transaction_named(d: Dialogue2011) -> None:
    controlled(d)
    asks(d, DECLARE, b"1")
    d.client.transfer(state=under(b"1"))
    said = d.server.disposition(1, state=under(b"2" if d.wrong else b"1", outcome=draft.accepted()))
    if d.wrong:
        said.breaks("TX-RES-ID")
    d.goodbye()


@pair("TX-ACQ-CREDIT", cut=without("control"))
def discharged_with_credit_left(d: Dialogue2011) -> None:
    controlled(d)
    d.server.attach(SENDER, handle=2, name="out")
    d.client.attach(RECEIVER, handle=2, name="out")
    asks(d, DECLARE, b"1")
    d.client.flow(handle=2, link_credit=2, options={"txn-id": draft.binary(b"1")})
    d.server.transfer(handle=2, state=under(b"1"))
    if not d.wrong:
        d.client.flow(handle=2, link_credit=0)
    said = asks(d, DISCHARGE, b"1")
    if d.wrong:
        said.may_break("TX-ACQ-CREDIT")
    d.goodbye()
