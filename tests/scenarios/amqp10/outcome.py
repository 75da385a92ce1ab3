"""Outcomes and settlement: what either end states of a delivery, and leaves unsaid."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import SENDER, Dialogue

HALF = amqp.data(b"half")
ACCEPTED = amqp.accepted()


def at(section: int, octet: int) -> bytes:
    return amqp.received(section_number=section, section_offset=octet)


@pair("D-NOINTERLEAVE", cut=without("client attach"))
def deliveries_interleave(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True, delivery_tag=b"t")
    if not d.wrong:
        d.client.transfer(HALF)
    said = d.client.transfer(HALF, delivery_id=1, delivery_tag=b"u", message_format=0)
    if d.wrong:
        said.breaks("D-NOINTERLEAVE")
    d.goodbye()


@pair("D-ABORT-DISCARD", cut=without("client begin"))
def outcome_of_an_aborted_delivery(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    d.client.transfer(b"", aborted=True)
    d.client.transfer()
    d.server.flow()
    said = d.server.disposition(0 if d.wrong else 1)
    if d.wrong:
        said.breaks("D-ABORT-DISCARD")
    d.goodbye()


@pair("D-ABORT-SETTLED", cut=without("client begin"))
def aborted_delivery_settled(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    d.client.transfer(b"", aborted=True)
    d.client.transfer()
    d.server.flow()
    said = d.server.disposition(0 if d.wrong else 1, state=None)
    if d.wrong:
        said.breaks("D-ABORT-SETTLED")
    d.goodbye()


@reported("an aborted delivery settled by its sender, or by a receiver that may not have read the abort")
def aborted_delivery_settled_again(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    d.client.transfer(b"", aborted=True)
    d.client.disposition(0, role=SENDER).breaks("D-ABORT-SETTLED")
    d.server.disposition(0, state=None).may_break("D-ABORT-SETTLED")
    d.goodbye()


@legal("an outcome that crosses the abort, and a range over an aborted delivery")
def outcome_crosses_the_abort(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    with d.on_their_way():
        d.server.disposition(0, settled=None, state=amqp.released())
        d.client.transfer(b"", aborted=True)
    d.client.transfer()
    d.server.disposition(0, 1, state=amqp.released())
    d.goodbye()


@pair("D-DISP-PARTIAL", cut=without("client begin"))
def disposition_of_an_incomplete_delivery(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer(HALF, more=True)
    if not d.wrong:
        d.client.transfer(HALF)
    said = d.client.disposition(0, role=SENDER, settled=None, state=ACCEPTED)
    if d.wrong:
        said.breaks("D-DISP-PARTIAL")
        d.client.transfer(HALF)
    d.goodbye()


@legal("the receiver has detached the link, so no transfer follows")
def disposition_of_a_delivery_that_stays_incomplete(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer(HALF, more=True)
    d.server.detach(closed=None)
    d.client.disposition(0, role=SENDER, settled=None, state=ACCEPTED)
    d.client.detach(closed=None)
    d.goodbye()


@pair("D-SND-SPONT", cut=without("client begin"))
def decided_by_its_sender(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer()
    if not d.wrong:
        d.client.disposition(0, role=SENDER, settled=None, state=amqp.released())
        d.server.disposition(0, settled=None, state=amqp.released())
    said = d.client.disposition(0, role=SENDER, state=amqp.released())
    if d.wrong:
        said.breaks("D-SND-SPONT")
    d.goodbye()


@legal("nobody confirms an outcome behind the end of a link")
def decided_by_its_sender_behind_the_end_of_the_link(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer()
    d.client.transfer()
    d.client.transfer()
    d.server.detach()
    d.client.disposition(0, role=SENDER, state=amqp.released())
    d.client.detach()
    d.client.disposition(1, role=SENDER, state=amqp.rejected())
    d.attached(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.disposition(2, role=SENDER, state=amqp.released())
    d.goodbye()


@reported("a link that is only detached leaves its deliveries live")
def decided_by_its_sender_on_a_detached_link(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer()
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.client.disposition(0, role=SENDER, state=amqp.released()).breaks("D-SND-SPONT")
    d.goodbye()


@pair("M-REJ-SPONT", cut=without("client begin"))
def rejected_by_its_sender(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer()
    if not d.wrong:
        d.server.disposition(0, settled=None, state=amqp.rejected())
    said = d.client.disposition(0, role=SENDER, state=amqp.rejected())
    if d.wrong:
        said.breaks("M-REJ-SPONT")
    d.goodbye()


@pair("M-RECEIVED-POS", cut=without("client attach"))
def received_beyond_what_was_sent(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    said = d.server.disposition(0, settled=None, state=at(0, 40 if d.wrong else 4))
    if d.wrong:
        said.breaks("M-RECEIVED-POS")
    d.client.transfer(amqp.data(b"the rest, which is longer than what came first"))
    d.server.disposition(0)
    d.goodbye()


@reported("more sections received than there can be")
def more_sections_than_there_can_be(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    d.server.disposition(0, settled=None, state=at(1, 0))
    d.server.disposition(0, settled=None, state=at(3, 0)).breaks("M-RECEIVED-POS")
    d.goodbye()


def _for_a_minute(d: Dialogue) -> None:
    """Both go on on another link."""
    d.client.attach(SENDER, handle=1, name="other")
    d.server.attach(amqp.RECEIVER, handle=1, name="other")
    d.server.flow(handle=1, link_credit=20)
    for _ in range(7):
        d.wait(seconds=10)
        number = d.client.delivery_ids[0]
        d.client.transfer(handle=1)
        d.server.disposition(number)


@pair("D-RCVMODE-FIRST", cut=without("client begin"))
def waits_for_the_sender_to_settle(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.server.disposition(0, settled=None)
    if not d.wrong:
        d.server.disposition(0)
    _for_a_minute(d)
    said = d.server.empty()
    if d.wrong:
        said.may_break("D-RCVMODE-FIRST")


@pair("D-MORE-COMPLETE", cut=without("client attach"))
def delivery_never_finished(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    if not d.wrong:
        d.client.transfer(HALF)
        d.server.disposition(0)
    _for_a_minute(d)
    said = d.client.empty()
    if d.wrong:
        said.may_break("D-MORE-COMPLETE")
