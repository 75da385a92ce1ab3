"""Credit, delivery-count, available: what the ends of a link tell of their counts."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("L-CREDIT-NODC", cut=without("bare"))
def credit_counted_from_nothing(d: Dialogue) -> None:
    d.linked(credit=2)
    d.client.transfer()
    d.client.transfer()
    d.server.disposition(0, last=1)
    d.server.flow(handle=0, delivery_count=None, link_credit=3).called("bare")
    d.client.transfer()
    if d.wrong:
        d.client.transfer().breaks("L-CREDIT-NODC")
    d.goodbye()


@pair("L-DC-UNIT", cut=without("client attach"))
def pieces_counted(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(amqp.data(b"one"), more=True)
    d.client.transfer(amqp.data(b"two"))
    said = d.client.flow(handle=0, delivery_count=2 if d.wrong else 1, link_credit=8 if d.wrong else 9)
    if d.wrong:
        said.breaks("L-DC-UNIT")
    d.goodbye()


@pair("L-CREDIT-DECR", cut=without("client attach"))
def credit_not_counted_down(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=9)
    d.client.transfer()
    d.client.transfer()
    said = d.client.flow(handle=0, delivery_count=3, link_credit=9 if d.wrong else 7)
    if d.wrong:
        said.breaks("L-CREDIT-DECR")
    d.goodbye()


@pair("L-CREDIT-FORMULA", cut=without("client attach"))
def credit_computed_otherwise(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.client.transfer()
    said = d.client.flow(handle=0, delivery_count=2, link_credit=6 if d.wrong else 8)
    if d.wrong:
        said.breaks("L-CREDIT-FORMULA")
    d.goodbye()


@legal("a sender that tells of no credit and may have read of none")
def no_credit_reported(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.flow(handle=0, delivery_count=0, link_credit=0)
    d.goodbye()


@reported("a sender that tells of no credit and has used some")
def no_credit_reported_that_was_used(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=0).breaks("L-CREDIT-FORMULA")
    d.goodbye()


@legal("a sender that tells of no credit when more was taken back than it had left")
def no_credit_left_by_the_receiver(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.client.transfer()
    d.server.flow(handle=0, delivery_count=0, link_credit=0)
    d.client.flow(handle=0, delivery_count=2, link_credit=0)
    d.goodbye()


@legal("a sender that tells of no credit when all is used")
def no_credit_left(d: Dialogue) -> None:
    d.linked(credit=2)
    d.client.transfer()
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=2, link_credit=0)
    d.server.flow(handle=0, delivery_count=2, link_credit=2)
    d.client.flow(handle=0, delivery_count=2, link_credit=0)
    d.goodbye()


@legal("a sender may have read any of the grants")
def any_of_the_grants(d: Dialogue) -> None:
    d.linked(credit=1)
    d.server.flow(handle=0, link_credit=5)
    d.server.flow(handle=0, link_credit=10)
    d.client.flow(handle=0, delivery_count=0, link_credit=5)
    d.client.flow(handle=0, delivery_count=0, link_credit=10)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=9)
    d.goodbye()


@pair("L-AVAIL-OWNER", cut=without("client attach"))
def available_of_its_own(d: Dialogue) -> None:
    d.linked()
    d.client.flow(handle=0, delivery_count=0, link_credit=10, available=3)
    said = d.server.flow(handle=0, available=5 if d.wrong else 3)
    if d.wrong:
        said.breaks("L-AVAIL-OWNER")
    d.client.transfer()
    d.goodbye()


@pair("L-AVAIL-FLOOR", cut=without("client attach"))
def available_below_zero(d: Dialogue) -> None:
    d.linked()
    d.client.flow(handle=0, delivery_count=0, link_credit=10, available=1)
    d.client.transfer()
    d.client.transfer()
    said = d.server.flow(handle=0, available=0xFFFFFFFF if d.wrong else 0)
    if d.wrong:
        said.breaks("L-AVAIL-FLOOR")
    d.goodbye()


@legal("available is counted down, or repeated")
def available_repeated(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, available=0)
    d.client.flow(handle=0, delivery_count=0, link_credit=10, available=5)
    d.client.transfer()
    d.server.flow(handle=0, available=5)
    d.server.flow(handle=0, available=4)
    d.goodbye()
