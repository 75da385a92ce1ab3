"""Transactions."""

from __future__ import annotations

from scenarios.pairs import SAME, pair, told, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

DECLARE = amqp.amqp_value(amqp.declare())
T = b"T"


def _declared(d: Dialogue, settled: bool | None = None) -> None:
    """A control link, a transaction declared on it, and a link to post on."""
    d.linked()
    d.client.attach(SENDER, handle=1, name="control", target=amqp.coordinator())
    d.server.attach(RECEIVER, handle=1, name="control", target=amqp.coordinator())
    d.server.flow(handle=1)
    d.client.transfer(DECLARE, handle=1)
    d.server.disposition(0, state=amqp.declared(txn_id=T)).called("declared")


def _discharge(txn_id: bytes = T, **fields: object) -> bytes:
    return amqp.amqp_value(amqp.discharge(txn_id=txn_id, fail=False, **fields))  # type: ignore[arg-type]


@pair("TX-STATE-KNOWN", cut=without("declared"))
def work_in_no_transaction(d: Dialogue) -> None:
    _declared(d)
    said = d.client.transfer(state=amqp.transactional_state(txn_id=b"U" if d.wrong else T))
    if d.wrong:
        said.breaks("TX-STATE-KNOWN")
    d.goodbye()


@told("work in a transaction that is over")
def work_after_discharge(d: Dialogue) -> None:
    _declared(d)
    d.client.transfer(_discharge(), handle=1)
    d.client.transfer(state=amqp.transactional_state(txn_id=T)).breaks("TX-STATE-KNOWN")
    d.goodbye()


@pair("TX-ID-TYPE", cut=without("client begin"))
def txn_id_too_long(d: Dialogue) -> None:
    _declared(d)
    said = d.client.transfer(state=amqp.transactional_state(txn_id=b"U" * 33 if d.wrong else T))
    if d.wrong:
        said.breaks("TX-ID-TYPE")
    d.goodbye()


@pair("TX-DISCHARGE-KNOWN", cut=without("declared"))
def discharge_of_no_transaction(d: Dialogue) -> None:
    _declared(d)
    said = d.client.transfer(_discharge(b"U" if d.wrong else T), handle=1)
    if d.wrong:
        said.breaks("TX-DISCHARGE-KNOWN")
    d.goodbye()


@told("discharged twice")
def discharged_twice(d: Dialogue) -> None:
    _declared(d)
    d.client.transfer(_discharge(), handle=1)
    d.client.transfer(_discharge(), handle=1).breaks("TX-DISCHARGE-KNOWN")
    d.goodbye()


@pair("TX-DECLARE-UNSETTLED", cut=without("client attach"), then=SAME)
def declare_settled(d: Dialogue) -> None:
    _declared(d)
    said = d.client.transfer(DECLARE, handle=1, settled=d.wrong)
    if d.wrong:
        said.breaks("TX-DECLARE-UNSETTLED")
    d.goodbye()


@pair("TX-DISCHARGE-UNSETTLED", cut=without("client attach"), then=SAME)
def discharge_settled(d: Dialogue) -> None:
    _declared(d)
    said = d.client.transfer(_discharge(), handle=1, settled=d.wrong)
    if d.wrong:
        said.breaks("TX-DISCHARGE-UNSETTLED")
    d.goodbye()
