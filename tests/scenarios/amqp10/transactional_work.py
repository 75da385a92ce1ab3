"""Transactions: what is posted, acquired and retired under them."""

from __future__ import annotations

from scenarios.amqp10.transaction import ACCEPTED, REJECTED, T, U, asking, declare, declared, discharge, state
from scenarios.pairs import legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue, Said

HALF = amqp.data(b"half")


def posted(d: Dialogue) -> None:
    """A transaction, and a delivery (1) posted under it."""
    declared(d)
    d.client.transfer(state=state()).called("posting")


def consuming(d: Dialogue) -> None:
    """A transaction, and a link (handle 2) on which the server may send."""
    declared(d)
    d.client.attach(RECEIVER, handle=2, name="in").called("in")
    d.server.attach(SENDER, handle=2, name="in")


def asks(d: Dialogue, txn_id: bytes = T, credit: int = 1, drain: bool | None = None) -> Said:
    return d.client.flow(handle=2, link_credit=credit, drain=drain, properties=asking(txn_id))


# ---- posting ---------------------------------------------------------------------------------------------


@pair("TX-POST-ALLFRAMES", cut=without("declared"))
def transfer_outside_its_transaction(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(HALF, more=True, state=state())
    said = d.client.transfer(HALF, more=True, state=None if d.wrong else state())
    if d.wrong:
        said.breaks("TX-POST-ALLFRAMES")
    d.client.transfer(HALF, state=state())
    d.goodbye()


@reported("a delivery that comes under a transaction too late")
def under_a_transaction_too_late(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(HALF, more=True)
    d.client.transfer(HALF, more=True, state=state()).breaks("TX-POST-ALLFRAMES")
    d.client.transfer(HALF, state=state())
    d.goodbye()


@legal("a delivery under a transaction is aborted")
def posting_aborted(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(HALF, more=True, state=state())
    d.client.transfer(b"", aborted=True)
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(2)
    d.goodbye()


@pair("TX-POST-PARTIAL", cut=without("declared"))
def discharged_while_incomplete(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(HALF, more=True, state=state())
    if not d.wrong:
        d.client.transfer(HALF, state=state())
    said = d.client.transfer(discharge(), handle=1)
    if d.wrong:
        said.breaks("TX-POST-PARTIAL")
    d.goodbye()


@pair("TX-POST-PARTIAL-REACT", "TX-POST-PARTIAL", cut=without("declared"))
def goes_on_after_an_incomplete_posting(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(HALF, more=True, state=state())
    if not d.wrong:
        d.client.transfer(HALF, state=state())
        d.server.disposition(1, state=state(T, ACCEPTED))
    said = d.client.transfer(discharge(), handle=1)
    if d.wrong:
        said.breaks("TX-POST-PARTIAL")
    said = d.server.disposition(2)
    if d.wrong:
        said.breaks("TX-POST-PARTIAL-REACT")
    d.goodbye()


@pair("TX-POST-OUTCOME", cut=without("posting"))
def committed_without_outcome(d: Dialogue) -> None:
    posted(d)
    if not d.wrong:
        d.server.disposition(1, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    said = d.server.disposition(2)
    if d.wrong:
        said.breaks("TX-POST-OUTCOME")
    d.goodbye()


@legal("a rollback before the outcome is stated")
def rolled_back_without_outcome(d: Dialogue) -> None:
    posted(d)
    d.client.transfer(discharge(fail=True), handle=1)
    d.server.disposition(2)
    d.server.disposition(1, state=None)
    d.goodbye()


@pair("TX-POST-OUTCOME-ID", cut=without("posting"))
def outcome_that_does_not_name_its_transaction(d: Dialogue) -> None:
    posted(d)
    said = d.server.disposition(1, state=ACCEPTED if d.wrong else state(T, ACCEPTED))
    if d.wrong:
        said.breaks("TX-POST-OUTCOME-ID")
    d.goodbye()


@reported("the outcome of a posting names another transaction")
def outcome_that_names_another(d: Dialogue) -> None:
    declared(d)
    declare(d, U)
    d.client.transfer(state=state(T))
    d.server.disposition(2, state=state(U, ACCEPTED)).breaks("TX-POST-OUTCOME-ID")
    d.goodbye()


@legal("an outcome stated when the discharge is on its way")
def outcome_meets_the_discharge(d: Dialogue) -> None:
    posted(d)
    d.server.disposition(1, settled=None, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1)
    d.server.disposition(2)
    d.goodbye()


@pair("TX-POST-AFTER", cut=without("posting"))
def another_outcome_after_the_commit(d: Dialogue) -> None:
    posted(d)
    d.server.disposition(1, settled=None, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(2)
    said = d.server.disposition(1, state=amqp.released() if d.wrong else ACCEPTED)
    if d.wrong:
        said.breaks("TX-POST-AFTER")
    d.goodbye()


@pair("TX-POST-AFTER-FAIL", cut=without("posting"))
def outcome_after_the_rollback(d: Dialogue) -> None:
    posted(d)
    d.client.transfer(discharge(fail=True), handle=1)
    d.server.disposition(2)
    said = d.server.disposition(1, state=amqp.released() if d.wrong else None)
    if d.wrong:
        said.breaks("TX-POST-AFTER-FAIL")
    d.goodbye()


@pair("TX-POST-SETTLE", cut=without("posting"))
def not_settled_after_the_discharge(d: Dialogue) -> None:
    posted(d)
    d.server.disposition(1, settled=None, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(2)
    d.client.flow()
    if not d.wrong:
        d.client.disposition(1, role=SENDER)
    number = d.client.delivery_ids[0]
    for _ in range(7):
        d.wait(seconds=10)
        said = d.client.transfer()
        d.server.disposition(number)
        d.client.flow()
        number += 1
    last = d.client.empty()
    if d.wrong:
        last.may_break("TX-POST-SETTLE")
    assert said


# ---- retiring --------------------------------------------------------------------------------------------


@pair("TX-RES-ID", cut=without("declared"))
def resource_names_a_transaction_of_its_own_accord(d: Dialogue) -> None:
    declared(d)
    d.client.transfer(state=None if d.wrong else state()).called("posting")
    said = d.server.disposition(1, state=state(T, ACCEPTED))
    if d.wrong:
        said.breaks("TX-RES-ID")
    d.goodbye()


@reported("a message comes under a transaction that nobody asked for")
def acquired_under_a_transaction_not_asked_for(d: Dialogue) -> None:
    consuming(d)
    d.client.flow(handle=2, link_credit=1)
    d.server.transfer(handle=2, state=state()).breaks("TX-RES-ID")
    d.goodbye()


@pair("TX-RET-OTHER", cut=without("declared"))
def outcome_under_another_transaction(d: Dialogue) -> None:
    consuming(d)
    declare(d, U)
    asks(d)
    d.server.transfer(handle=2, state=state())
    said = d.client.disposition(0, state=state(U if d.wrong else T, ACCEPTED))
    if d.wrong:
        said.breaks("TX-RET-OTHER")
    d.goodbye()


@pair("TX-RET-OTHER-REACT", "TX-RET-OTHER", cut=without("declared"))
def goes_on_after_an_outcome_under_another(d: Dialogue) -> None:
    consuming(d)
    declare(d, U)
    asks(d)
    d.server.transfer(handle=2, state=state())
    said = d.client.disposition(0, state=state(U if d.wrong else T, ACCEPTED))
    if d.wrong:
        said.breaks("TX-RET-OTHER")
    d.client.transfer(discharge(U), handle=1)
    said = d.server.disposition(2)
    if d.wrong:
        said.breaks("TX-RET-OTHER-REACT")
    d.goodbye()


@legal("acquired under a transaction, decided under the next one")
def decided_under_the_next_transaction(d: Dialogue) -> None:
    consuming(d)
    asks(d)
    d.server.transfer(handle=2, state=state())
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1)
    declare(d, U)
    d.client.disposition(0, state=state(U, ACCEPTED))
    d.goodbye()


@pair("TX-RET-LIVE", cut=without("in"))
def settled_after_the_rollback(d: Dialogue) -> None:
    consuming(d)
    d.client.flow(handle=2)
    d.server.transfer(handle=2)
    d.client.disposition(0, settled=None, state=state(T, ACCEPTED))
    d.client.transfer(discharge(fail=True), handle=1)
    d.server.disposition(1)
    if not d.wrong:
        d.client.disposition(0, settled=None, state=amqp.released())
    said = d.server.disposition(0, role=SENDER)
    if d.wrong:
        said.may_break("TX-RET-LIVE")
    d.goodbye()


# ---- acquiring -------------------------------------------------------------------------------------------


@pair("TX-ACQ-UNSUPPORTED", cut=without("in"))
def acquired_outside_of_any_transaction(d: Dialogue) -> None:
    consuming(d)
    d.client.flow(handle=2, link_credit=1)
    d.server.transfer(handle=2)
    asks(d, credit=2)
    said = d.server.transfer(handle=2, state=None if d.wrong else state())
    if d.wrong:
        said.may_break("TX-ACQ-UNSUPPORTED")
    d.server.transfer(handle=2, state=None if d.wrong else state())
    d.goodbye()


@pair("TX-ACQ-OUTCOME", cut=without("in"))
def outcome_outside_its_transaction(d: Dialogue) -> None:
    consuming(d)
    asks(d)
    d.server.transfer(handle=2, state=state())
    said = d.client.disposition(0, state=ACCEPTED if d.wrong else state(T, ACCEPTED))
    if d.wrong:
        said.breaks("TX-ACQ-OUTCOME")
    d.goodbye()


@pair("TX-ACQ-CREDIT", cut=without("in"))
def discharged_with_credit_left(d: Dialogue) -> None:
    consuming(d)
    asks(d, credit=2)
    d.server.transfer(handle=2, state=state())
    if not d.wrong:
        d.server.transfer(handle=2, state=state())
    d.client.disposition(0, None if d.wrong else 1, state=state(T, ACCEPTED))
    said = d.client.transfer(discharge(), handle=1)
    if d.wrong:
        said.breaks("TX-ACQ-CREDIT")
    d.goodbye()


@legal("credit taken back, or drained, before the discharge")
def credit_taken_back(d: Dialogue) -> None:
    consuming(d)
    asks(d, credit=5)
    d.server.transfer(handle=2, state=state())
    d.client.flow(handle=2, link_credit=0)
    d.client.disposition(0, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1)
    declare(d, U)
    asks(d, U, credit=5, drain=True)
    d.server.flow(handle=2, delivery_count=6, link_credit=0, drain=True)
    d.client.transfer(discharge(U), handle=1)
    d.server.disposition(3)
    d.goodbye()


@pair("TX-ACQ-PARTIAL", cut=without("in"))
def rolled_back_while_sending(d: Dialogue) -> None:
    consuming(d)
    asks(d)
    d.server.transfer(HALF, handle=2, more=True, state=state())
    d.client.transfer(discharge(fail=True), handle=1)
    if not d.wrong:
        d.server.transfer(b"", handle=2, aborted=True)
    said = d.server.disposition(1)
    if d.wrong:
        said.breaks("TX-ACQ-PARTIAL")
    d.goodbye()


@reported("a rollback that is refused")
def work_after_a_refused_rollback(d: Dialogue) -> None:
    posted(d)
    d.client.transfer(discharge(fail=True), handle=1)
    d.server.disposition(2, state=REJECTED).breaks("TX-DISCHARGE-ROLLBACK-OK")
    d.goodbye()
