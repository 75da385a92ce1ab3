"""Transactions: control links, declares, discharges, ids."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import SAME, legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import MESSAGE, RECEIVER, SENDER, Dialogue, Said

DECLARE = amqp.amqp_value(amqp.declare())
T, U = b"T", b"U"

ALL = ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"]
LOCAL = ["amqp:local-transactions"]

REJECTED = amqp.rejected(error=amqp.error(condition="amqp:transaction:rollback"))


def controlled(d: Dialogue, offered: list[str] | None = ALL, **client: Any) -> None:
    """A link to post on (handle 0) and a control link (handle 1)."""
    d.linked()
    wanted = amqp.coordinator(capabilities=LOCAL)
    d.client.attach(SENDER, handle=1, name="control", **{"target": wanted, **client}).called("control")
    d.server.attach(RECEIVER, handle=1, name="control", target=amqp.coordinator(capabilities=offered))
    d.server.flow(handle=1).called("control credit")


def declare(d: Dialogue, txn_id: bytes = T) -> Said:
    """A transaction is declared; gives the answer."""
    number = d.client.delivery_ids[0]
    d.client.transfer(DECLARE, handle=1)
    return d.server.disposition(number, state=amqp.declared(txn_id=txn_id))


def declared(d: Dialogue, offered: list[str] | None = ALL, **client: Any) -> None:
    """A control link, a transaction declared on it, and a link to post on."""
    controlled(d, offered, **client)
    declare(d).called("declared")


def discharge(txn_id: bytes = T, *, fail: bool = False) -> bytes:
    return amqp.amqp_value(amqp.discharge(txn_id=txn_id, fail=fail))


def state(txn_id: bytes = T, outcome: bytes | None = None) -> bytes:
    return amqp.transactional_state(txn_id=txn_id, outcome=outcome)


def asking(txn_id: bytes = T) -> dict[bytes, bytes]:
    """The properties of a flow that asks for messages under a transaction."""
    return {amqp.symbol("txn-id"): amqp.binary(txn_id)}


ACCEPTED = amqp.accepted()


@pair("TX-STATE-KNOWN", cut=without("declared"))
def work_in_no_transaction(d: Dialogue) -> None:
    declared(d)
    said = d.client.transfer(state=state(U if d.wrong else T))
    if d.wrong:
        said.breaks("TX-STATE-KNOWN")
    d.goodbye()


@pair("TX-STATE-KNOWN", cut=without("declared"))
def messages_asked_for_in_no_transaction(d: Dialogue) -> None:
    declared(d)
    d.client.attach(RECEIVER, handle=2, name="in")
    d.server.attach(SENDER, handle=2, name="in")
    said = d.client.flow(handle=2, drain=True, properties=asking(U if d.wrong else T))
    if d.wrong:
        said.breaks("TX-STATE-KNOWN")
    d.goodbye()


@reported("an outcome in a transaction that was not declared")
def outcome_in_no_transaction(d: Dialogue) -> None:
    declared(d)
    d.client.attach(RECEIVER, handle=2, name="in")
    d.server.attach(SENDER, handle=2, name="in")
    d.client.flow(handle=2)
    d.server.transfer(handle=2)
    d.client.disposition(0, state=state(U, ACCEPTED)).breaks("TX-STATE-KNOWN")
    d.goodbye()


@reported("work in a transaction that is over")
def work_after_discharge(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(discharge(), handle=1)
    d.client.transfer(state=state()).breaks("TX-STATE-KNOWN")
    d.goodbye()


@pair("TX-ID-TYPE", cut=without("client begin"))
def txn_id_too_long(d: Dialogue) -> None:
    declared(d)
    said = d.client.transfer(state=state(b"U" * 33 if d.wrong else T))
    if d.wrong:
        said.breaks("TX-ID-TYPE")
    d.goodbye()


@reported("an id that is too long is handed out")
def declared_with_a_long_id(d: Dialogue) -> None:
    controlled(d)
    declare(d, b"T" * 33).breaks("TX-ID-TYPE")
    d.goodbye()


@pair("TX-DISCHARGE-KNOWN", cut=without("declared"))
def discharge_of_no_transaction(d: Dialogue) -> None:
    declared(d)
    said = d.client.transfer(discharge(U if d.wrong else T), handle=1)
    if d.wrong:
        said.breaks("TX-DISCHARGE-KNOWN")
    d.goodbye()


@reported("discharged twice")
def discharged_twice(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(discharge(), handle=1)
    d.client.transfer(discharge(), handle=1).breaks("TX-DISCHARGE-KNOWN")
    d.goodbye()


@pair("TX-DECLARE-UNSETTLED", cut=without("client attach"), then=SAME)
def declare_settled(d: Dialogue) -> None:
    declared(d)
    said = d.client.transfer(DECLARE, handle=1, settled=d.wrong)
    if d.wrong:
        said.breaks("TX-DECLARE-UNSETTLED")
    d.goodbye()


@pair("TX-DISCHARGE-UNSETTLED", cut=without("client attach"), then=SAME)
def discharge_settled(d: Dialogue) -> None:
    declared(d)
    said = d.client.transfer(discharge(), handle=1, settled=d.wrong)
    if d.wrong:
        said.breaks("TX-DISCHARGE-UNSETTLED")
    d.goodbye()


# ---- control links ---------------------------------------------------------------------------------------


@pair("TX-COORD-TARGET")
def coordinator_as_source(d: Dialogue) -> None:
    d.begun()
    source = amqp.coordinator() if d.wrong else amqp.source(address="q")
    said = d.client.attach(SENDER, source=source)
    if d.wrong:
        said.breaks("TX-COORD-TARGET")
    d.server.attach(RECEIVER)
    d.goodbye()


@pair("TX-CAPS-VALUE", then=SAME)
def capability_that_is_none(d: Dialogue) -> None:
    d.begun()
    wanted = ["amqp:local-transactions", "amqp:multi-conns-per-txn" if d.wrong else "amqp:multi-ssns-per-txn"]
    said = d.client.attach(SENDER, target=amqp.coordinator(capabilities=wanted))
    if d.wrong:
        said.may_break("TX-CAPS-VALUE")
    d.server.attach(RECEIVER, target=amqp.coordinator(capabilities=LOCAL))
    d.goodbye()


@pair("TX-CTRL-REJECTED", then=SAME)
def control_link_without_rejected(d: Dialogue) -> None:
    d.begun()
    outcomes = ["amqp:accepted:list"] + ([] if d.wrong else ["amqp:rejected:list"])
    source = amqp.source(address="q", outcomes=outcomes)
    said = d.client.attach(SENDER, source=source, target=amqp.coordinator())
    if d.wrong:
        said.breaks("TX-CTRL-REJECTED")
    d.server.attach(RECEIVER, target=amqp.coordinator())
    d.goodbye()


@pair("TX-CTRL-NOWORK", cut=without("control"))
def work_on_control_link(d: Dialogue) -> None:
    declared(d)
    said = d.client.transfer(MESSAGE if d.wrong else discharge(), handle=1)
    if d.wrong:
        said.breaks("TX-CTRL-NOWORK")
    d.goodbye()


@reported("a posting on the control link")
def posted_on_control_link(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(handle=1, state=state()).breaks("TX-CTRL-NOWORK")
    d.goodbye()


@pair("TX-DECLARE-BODY", cut=without("control"))
def declare_as_sequence(d: Dialogue) -> None:
    controlled(d)
    body = amqp.amqp_sequence([amqp.Encoded(amqp.declare())]) if d.wrong else DECLARE
    said = d.client.transfer(body, handle=1)
    if d.wrong:
        said.breaks("TX-DECLARE-BODY")
    d.goodbye()


@pair("TX-DISCHARGE-BODY", cut=without("control"))
def discharge_as_data(d: Dialogue) -> None:
    declared(d)
    octets = amqp.discharge(txn_id=T, fail=False)
    said = d.client.transfer(amqp.data(octets) if d.wrong else amqp.amqp_value(octets), handle=1)
    if d.wrong:
        said.breaks("TX-DISCHARGE-BODY")
    d.goodbye()


@pair("TX-GLOBALID", cut=without("control"))
def global_id_not_offered(d: Dialogue) -> None:
    controlled(d, LOCAL if d.wrong else [*LOCAL, "amqp:distributed-transactions"])
    said = d.client.transfer(amqp.amqp_value(amqp.declare(global_id=amqp.binary(b"XID"))), handle=1)
    if d.wrong:
        said.breaks("TX-GLOBALID")
    d.goodbye()


@pair("TX-MULTI-PER-SSN", cut=without("declared"))
def two_transactions_on_a_session(d: Dialogue) -> None:
    declared(d, LOCAL)
    if not d.wrong:
        d.client.transfer(discharge(), handle=1)
        d.server.disposition(1)
    said = d.client.transfer(DECLARE, handle=1)
    if d.wrong:
        said.breaks("TX-MULTI-PER-SSN")
    d.goodbye()


@reported("two declares at once; nothing is said of capabilities")
def two_declares_at_once(d: Dialogue) -> None:
    controlled(d, None)
    d.client.transfer(DECLARE, handle=1)
    d.client.transfer(DECLARE, handle=1).may_break("TX-MULTI-PER-SSN")
    d.goodbye()


@pair("TX-SCOPE-SESSION", cut=without("declared"))
def work_on_another_session(d: Dialogue) -> None:
    declared(d, LOCAL if d.wrong else ALL)
    d.client.begin(1)
    d.server.begin(1)
    d.client.attach(SENDER, channel=1, name="r")
    d.server.attach(RECEIVER, channel=1, name="r")
    d.server.flow(1, handle=0)
    said = d.client.transfer(channel=1, state=state())
    if d.wrong:
        said.breaks("TX-SCOPE-SESSION")
    d.client.transfer(channel=1, state=state())
    d.server.disposition(0, 1, channel=1, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1)
    d.goodbye()


@pair("TX-CTRLCLOSE", cut=without("declared"))
def work_after_its_control_link(d: Dialogue) -> None:
    declared(d)
    if d.wrong:
        d.client.detach(1)
        d.server.detach(1)
    said = d.client.transfer(state=state())
    if d.wrong:
        said.breaks("TX-CTRLCLOSE")
    d.goodbye()


@reported("a control link that its resource detached, maybe unread")
def work_when_the_control_link_is_detached(d: Dialogue) -> None:
    declared(d)
    d.server.detach(1, error="amqp:transaction:timeout")
    d.client.transfer(state=state()).may_break("TX-CTRLCLOSE")
    d.goodbye()


@legal("a control link that is detached while work is on its way")
def work_crosses_the_detach(d: Dialogue) -> None:
    declared(d)
    with d.on_their_way():
        d.server.detach(1, error="amqp:transaction:timeout")
        d.client.transfer(state=state())
    d.goodbye()


# ---- what the coordinator answers ------------------------------------------------------------------------


@pair("TX-DECLARE-OK", cut=without("control"))
def declare_accepted(d: Dialogue) -> None:
    controlled(d)
    d.client.transfer(DECLARE, handle=1)
    said = d.server.disposition(0, state=ACCEPTED if d.wrong else amqp.declared(txn_id=T))
    if d.wrong:
        said.breaks("TX-DECLARE-OK")
    d.goodbye()


@reported("a declare settled without a word")
def declare_only_settled(d: Dialogue) -> None:
    controlled(d)
    d.client.transfer(DECLARE, handle=1)
    d.server.disposition(0, state=None).may_break("TX-DECLARE-OK")
    d.goodbye()


@pair("TX-DECLARE-FAIL-REJECT", cut=without("control"))
def declare_rejected_without_error(d: Dialogue) -> None:
    controlled(d)
    d.client.transfer(DECLARE, handle=1)
    said = d.server.disposition(0, state=amqp.rejected() if d.wrong else REJECTED)
    if d.wrong:
        said.breaks("TX-DECLARE-FAIL-REJECT")
    d.goodbye()


@reported("a declare rejected with an error of another kind")
def declare_rejected_for_another_reason(d: Dialogue) -> None:
    controlled(d)
    d.client.transfer(DECLARE, handle=1)
    other = amqp.rejected(error=amqp.error(condition="amqp:not-implemented"))
    d.server.disposition(0, state=other).may_break("TX-DECLARE-FAIL-REJECT")
    d.goodbye()


def _without_rejected(d: Dialogue) -> None:
    controlled(d)
    if d.wrong:
        source = amqp.source(address="q", outcomes=["amqp:accepted:list"])
        wanted = amqp.coordinator(capabilities=LOCAL)
        d.client.detach(1)
        d.server.detach(1)
        said = d.client.attach(SENDER, handle=1, name="control-2", source=source, target=wanted)
        said.called("control 2").breaks("TX-CTRL-REJECTED")
        d.server.attach(RECEIVER, handle=1, name="control-2", source=source, target=amqp.coordinator())
        d.server.flow(handle=1)


@pair("TX-DECLARE-FAIL-DETACH", "TX-CTRL-REJECTED", cut=without("control 2"))
def declare_rejected_though_not_offered(d: Dialogue) -> None:
    _without_rejected(d)
    d.client.transfer(DECLARE, handle=1)
    said = d.server.disposition(0, state=REJECTED)
    if d.wrong:
        said.breaks("TX-DECLARE-FAIL-DETACH")
    d.goodbye()


@pair("TX-DISCHARGE-FAIL-DETACH", "TX-CTRL-REJECTED", cut=without("control 2"))
def discharge_rejected_though_not_offered(d: Dialogue) -> None:
    _without_rejected(d)
    declare(d)
    d.client.transfer(discharge(), handle=1)
    said = d.server.disposition(1, state=REJECTED)
    if d.wrong:
        said.breaks("TX-DISCHARGE-FAIL-DETACH")
    d.goodbye()


@pair("TX-DISCHARGE-FAIL-REJECT", cut=without("control"))
def discharge_released(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(discharge(), handle=1)
    said = d.server.disposition(1, state=amqp.released() if d.wrong else REJECTED)
    if d.wrong:
        said.breaks("TX-DISCHARGE-FAIL-REJECT")
    d.goodbye()


@pair("TX-DISCHARGE-ROLLBACK-OK", cut=without("declared"))
def rollback_refused(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(discharge(fail=d.wrong), handle=1)
    said = d.server.disposition(1, state=REJECTED)
    if d.wrong:
        said.breaks("TX-DISCHARGE-ROLLBACK-OK")
    d.goodbye()


@pair("TX-ID-FRESH", cut=without("declared"))
def id_of_a_live_transaction(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(DECLARE, handle=1)
    said = d.server.disposition(1, state=amqp.declared(txn_id=T if d.wrong else U))
    if d.wrong:
        said.may_break("TX-ID-FRESH")
    d.goodbye()


@legal("an id that is free again")
def id_used_again(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1)
    declare(d)
    d.client.transfer(state=state())
    d.server.disposition(3, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(4)
    d.goodbye()


@pair("TX-DECLARED-ELSEWHERE", cut=without("client attach"))
def declared_of_a_message(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.server.disposition(0, state=amqp.declared(txn_id=T) if d.wrong else ACCEPTED)
    if d.wrong:
        said.breaks("TX-DECLARED-ELSEWHERE")
    d.goodbye()


@reported("a discharge answered by declared")
def declared_of_a_discharge(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1, state=amqp.declared(txn_id=U)).breaks("TX-DECLARED-ELSEWHERE")
    d.goodbye()


@pair("TX-DECLARE-SETTLED-REACT", "TX-DECLARE-UNSETTLED", cut=without("control"))
def goes_on_after_a_settled_declare(d: Dialogue) -> None:
    controlled(d)
    said = d.client.transfer(DECLARE, handle=1, settled=True if d.wrong else None)
    if d.wrong:
        said.breaks("TX-DECLARE-UNSETTLED")
    else:
        d.server.disposition(0, state=amqp.declared(txn_id=U))
    d.client.transfer(DECLARE, handle=1)
    said = d.server.disposition(1, state=amqp.declared(txn_id=T))
    if d.wrong:
        said.breaks("TX-DECLARE-SETTLED-REACT")
    d.goodbye()


@legal("a transaction, its postings and retirements")
def one_transaction(d: Dialogue) -> None:
    declared(d)
    d.client.attach(RECEIVER, handle=2, name="in")
    d.server.attach(SENDER, handle=2, name="in")
    d.client.flow(handle=2, link_credit=2)
    half = amqp.data(b"half")
    d.client.transfer(half, more=True, state=state())
    d.server.transfer(handle=2)
    d.client.transfer(half, state=state())
    d.client.transfer(settled=True, state=state())
    d.server.transfer(handle=2)
    d.server.disposition(1, settled=None, state=state(T, ACCEPTED))
    d.client.disposition(0, state=state(T, ACCEPTED))
    d.client.disposition(1, settled=None, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(3)
    d.server.disposition(1)
    d.server.disposition(1, role=SENDER, state=ACCEPTED)
    d.goodbye()
