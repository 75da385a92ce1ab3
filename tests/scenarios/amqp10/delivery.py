"""Deliveries: ids, tags, settlement, resuming."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import SAME, legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

HALF = amqp.data(b"half")


@pair("D-TAG-LEN", then=SAME)
def tag_too_long(d: Dialogue) -> None:
    d.linked()
    said = d.client.transfer(delivery_tag=b"t" * (33 if d.wrong else 32))
    if d.wrong:
        said.breaks("D-TAG-LEN")
    d.goodbye()


@pair("D-ABORT-MORE", then=SAME)
def abort_with_more(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    said = d.client.transfer(b"", aborted=True, more=True if d.wrong else None)
    if d.wrong:
        said.breaks("D-ABORT-MORE")
    d.goodbye()


@pair("D-ABORT-ONLYOPEN", cut=without("client attach"))
def aborted_before_it_began(d: Dialogue) -> None:
    d.linked()
    if not d.wrong:
        d.client.transfer(HALF, more=True)
    said = d.client.transfer(b"", aborted=True)
    if d.wrong:
        said.may_break("D-ABORT-ONLYOPEN")
    d.goodbye()


@pair("D-ID-PRESENT", cut=without("client attach"))
def first_transfer_without_delivery_id(d: Dialogue) -> None:
    d.linked()
    fields: dict[str, Any] = {"delivery_id": None} if d.wrong else {}
    said = d.client.transfer(settled=True, **fields)
    if d.wrong:
        said.breaks("D-ID-PRESENT")
    d.goodbye()


@pair("D-TAG-PRESENT", cut=without("client attach"))
def first_transfer_without_delivery_tag(d: Dialogue) -> None:
    d.linked()
    fields: dict[str, Any] = {"delivery_tag": None} if d.wrong else {}
    said = d.client.transfer(**fields)
    if d.wrong:
        said.breaks("D-TAG-PRESENT")
    d.goodbye()


@reported("a delivery of one transfer without message-format")
def only_transfer_without_message_format(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(message_format=None).may_break("D-FMT-PRESENT")
    d.goodbye()


@pair("D-FMT-PRESENT", cut=without("client attach"))
def first_of_several_transfers_without_message_format(d: Dialogue) -> None:
    d.linked()
    said = d.client.transfer(HALF, more=True, message_format=None if d.wrong else 0)
    if d.wrong:
        said.breaks("D-FMT-PRESENT")
    d.client.transfer(HALF)
    d.goodbye()


@pair("D-TAG-UNIQUE", cut=without("client attach"))
def tag_in_use(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_tag=b"t")
    if not d.wrong:
        d.server.disposition(0)
    said = d.client.transfer(delivery_tag=b"t")
    if d.wrong:
        said.breaks("D-TAG-UNIQUE")
    d.goodbye()


@pair("D-ID-UNIQUE", cut=without("client begin"))
def delivery_id_in_use(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.client.transfer(delivery_id=0 if d.wrong else 1)
    if d.wrong:
        said.breaks("D-ID-UNIQUE")
    d.goodbye()


@pair("D-ID-SEQ", cut=without("client begin"))
def delivery_id_out_of_sequence(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_id=7, settled=True)
    said = d.client.transfer(delivery_id=6 if d.wrong else 8)
    if d.wrong:
        said.breaks("D-ID-SEQ")
    d.goodbye()


@reported("delivery-ids left out")
def delivery_ids_left_out(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_id=1)
    d.client.transfer(delivery_id=5).may_break("D-ID-SEQ")
    d.goodbye()


@pair("D-ID-CONT", cut=without("client attach"))
def continuation_with_other_delivery_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    said = d.client.transfer(HALF, delivery_id=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("D-ID-CONT")
    d.goodbye()


@pair("D-TAG-CONT", cut=without("client attach"))
def continuation_with_other_tag(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True, delivery_tag=b"t")
    said = d.client.transfer(HALF, delivery_tag=b"u" if d.wrong else b"t")
    if d.wrong:
        said.breaks("D-TAG-CONT")
    d.goodbye()


@pair("D-FMT-CONT", cut=without("client attach"))
def continuation_with_other_message_format(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    said = d.client.transfer(HALF, message_format=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("D-FMT-CONT")
    d.goodbye()


@pair("D-SNDMODE-UNSETTLED", cut=without("client attach"))
def settled_on_unsettled_link(d: Dialogue) -> None:
    d.linked(client={"snd_settle_mode": 0})
    said = d.client.transfer(settled=d.wrong)
    if d.wrong:
        said.breaks("D-SNDMODE-UNSETTLED")
    d.goodbye()


@pair("D-SNDMODE-SETTLED", cut=without("client attach"))
def unsettled_on_settled_link(d: Dialogue) -> None:
    d.linked(client={"snd_settle_mode": 1})
    d.client.transfer(HALF, more=True, settled=None if d.wrong else True)
    said = d.client.transfer(HALF)
    if d.wrong:
        said.breaks("D-SNDMODE-SETTLED")
    d.goodbye()


@pair("D-RCVMODE-RAISE", cut=without("server attach"))
def settle_mode_raised(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 0 if d.wrong else 1})
    said = d.client.transfer(rcv_settle_mode=1)
    if d.wrong:
        said.breaks("D-RCVMODE-RAISE")
    d.goodbye()


@pair("D-RCVMODE-SECOND", cut=without("client begin"))
def settled_before_the_sender(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 1})
    d.client.transfer()
    if not d.wrong:
        d.server.disposition(0, settled=None)
        d.client.disposition(0, role=SENDER, state=amqp.accepted())
    said = d.server.disposition(0)
    if d.wrong:
        said.breaks("D-RCVMODE-SECOND")
    d.goodbye()


def two_unsettled(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 1})
    d.client.transfer()
    d.client.transfer()


@legal("the deliveries of a closed link are settled in any order")
def settled_before_the_sender_on_a_closed_link(d: Dialogue) -> None:
    two_unsettled(d)
    d.client.detach()
    d.server.disposition(0)
    d.server.detach()
    d.server.disposition(1)
    d.goodbye()


@legal("and with any outcome")
def outcome_not_offered_on_a_closed_link(d: Dialogue) -> None:
    d.linked(client={"source": amqp.source(address="q", outcomes=["amqp:accepted:list"])})
    d.client.transfer()
    d.client.detach()
    d.server.disposition(0, state=amqp.released())
    d.server.detach()
    d.goodbye()


@legal("and so are those of a link that its own end gave up with an error")
def settled_before_the_sender_on_a_failed_link(d: Dialogue) -> None:
    two_unsettled(d)
    d.server.detach(closed=None, error="amqp:internal-error")
    d.server.disposition(0, 1)
    d.client.detach(closed=None)
    d.goodbye()


@reported("a detached link keeps its deliveries, but perhaps not its mode")
def settled_before_the_sender_on_a_detached_link(d: Dialogue) -> None:
    two_unsettled(d)
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.server.disposition(0, 1).may_break("D-RCVMODE-SECOND")
    d.goodbye()


@pair("D-STATE-FINAL-RCV", cut=without("client begin"))
def receiver_changes_its_outcome(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 1})
    d.client.transfer()
    d.server.disposition(0, settled=None)
    said = d.server.disposition(0, settled=None, state=amqp.released() if d.wrong else amqp.accepted())
    if d.wrong:
        said.breaks("D-STATE-FINAL-RCV")
    d.goodbye()


@pair("D-STATE-FINAL-SND", cut=without("client begin"))
def sender_changes_its_outcome(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 1})
    d.client.transfer()
    d.client.disposition(0, role=SENDER, settled=None, state=amqp.released())
    d.server.disposition(0, settled=None, state=amqp.released())
    after = amqp.accepted() if d.wrong else amqp.released()
    said = d.client.disposition(0, role=SENDER, state=after)
    if d.wrong:
        said.breaks("D-STATE-FINAL-SND")
    d.goodbye()


@pair("M-RECEIVED-SND", cut=without("client attach"))
def received_state_from_sender(d: Dialogue) -> None:
    start = amqp.received(section_number=0, section_offset=0)
    d.linked(client={"unsettled": {b"t": start}})
    said = d.client.transfer(delivery_tag=b"t", state=start, resume=None if d.wrong else True)
    if d.wrong:
        said.breaks("M-RECEIVED-SND")
    d.goodbye()


@pair("D-DISP-RANGE", then=SAME)
def disposition_backwards(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.transfer()
    first, last = (1, 0) if d.wrong else (0, 1)
    said = d.server.disposition(first, last)
    if d.wrong:
        said.breaks("D-DISP-RANGE")
    d.goodbye()


@pair("D-DISP-ROLE", cut=without("client begin"))
def disposition_of_the_other_direction(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.server.disposition(0, role=SENDER if d.wrong else RECEIVER)
    if d.wrong:
        said.breaks("D-DISP-ROLE")
    d.goodbye()


@pair("D-DISP-UNKNOWN", cut=without("client begin"))
def disposition_of_unknown_deliveries(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.server.disposition(1 if d.wrong else 0)
    if d.wrong:
        said.breaks("D-DISP-UNKNOWN")
    d.goodbye()


@reported("a disposition where nothing was sent")
def disposition_of_nothing(d: Dialogue) -> None:
    d.linked()
    d.server.disposition(0).breaks("D-DISP-UNKNOWN")
    d.goodbye()


@reported("a sender settles twice")
def settled_again_by_the_sender(d: Dialogue) -> None:
    d.linked()
    for _ in range(3):
        d.client.transfer()
    d.client.disposition(0, role=SENDER)
    d.client.disposition(1, 2, role=SENDER)
    d.client.disposition(0, 2, role=SENDER).breaks("D-DISP-RESETTLE")
    d.goodbye()


@legal("each peer settles once")
def settled_by_both(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.transfer()
    d.server.disposition(0)
    d.client.disposition(0, role=SENDER)
    d.client.disposition(0, 1, role=SENDER)
    d.server.disposition(0, 1)
    d.goodbye()


@pair("D-DISP-RESETTLE", cut=without("client begin"))
def settled_again(d: Dialogue) -> None:
    d.linked()
    for _ in range(3):
        d.client.transfer()
    d.server.disposition(0, 1)
    said = d.server.disposition(0, 1 if d.wrong else 2)
    if d.wrong:
        said.breaks("D-DISP-RESETTLE")
    d.goodbye()


@pair("M-OUTCOMES-USE", cut=without("client attach"))
def outcome_not_offered(d: Dialogue) -> None:
    offered = ["amqp:accepted:list", "amqp:released:list"]
    d.linked(client={"source": amqp.source(address="q", outcomes=offered)})
    d.client.transfer()
    said = d.server.disposition(0, state=amqp.rejected() if d.wrong else amqp.released())
    if d.wrong:
        said.breaks("M-OUTCOMES-USE")
    d.goodbye()


# ---- resuming --------------------------------------------------------------------------------------------


@pair("D-RESUME-FLAG", cut=without("server attach"))
def resumed_without_resume(d: Dialogue) -> None:
    half = amqp.received(section_number=0, section_offset=0)
    d.linked(client={"unsettled": {b"t": None}}, server={"unsettled": {b"t": half}})
    said = d.client.transfer(delivery_tag=b"t", resume=None if d.wrong else True)
    if d.wrong:
        said.breaks("D-RESUME-FLAG")
    d.goodbye()


@pair("D-RESUME-LOCAL", cut=without("client attach"))
def resumed_without_being_unsettled(d: Dialogue) -> None:
    d.linked(client={"unsettled": {b"t": None}})
    said = d.client.transfer(delivery_tag=b"u" if d.wrong else b"t", resume=True)
    if d.wrong:
        said.breaks("D-RESUME-LOCAL")
    d.goodbye()


@pair("D-RESUME-FIRSTFRAME", cut=without("client attach"))
def continuation_resumes(d: Dialogue) -> None:
    d.linked(client={"unsettled": {b"t": None}})
    d.client.transfer(HALF, delivery_tag=b"t", more=True, resume=None if d.wrong else True)
    said = d.client.transfer(HALF, resume=True)
    if d.wrong:
        said.breaks("D-RESUME-FIRSTFRAME")
    d.goodbye()


# ---- legal -----------------------------------------------------------------------------------------------


@legal("D-INTERLEAVE-OK")
def deliveries_of_two_links_interleave(d: Dialogue) -> None:
    d.linked()
    d.client.attach(SENDER, handle=1, name="r")
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1)
    d.client.transfer(HALF, handle=0, more=True)
    d.client.transfer(HALF, handle=1, more=True)
    d.client.transfer(HALF, handle=0, more=True)
    d.client.transfer(HALF, handle=1)
    d.client.transfer(HALF, handle=0)
    d.server.disposition(0, 1)
    d.goodbye()


@legal("D-RCVMODE-PRESETTLED")
def mode_second_on_a_settled_delivery(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(settled=True, rcv_settle_mode=1)
    d.goodbye()


@legal("D-PRESETTLED-QUIET")
def disposition_of_a_settled_delivery(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(settled=True)
    d.client.transfer(settled=True)
    d.server.disposition(0)
    d.goodbye()


@legal("D-BATCH-HINT")
def batchable(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True, batchable=True)
    d.client.transfer(HALF)
    d.client.transfer(batchable=True)
    d.server.disposition(0, 1, batchable=True)
    d.goodbye()


@legal("M-ID-DUP")
def same_message_id_twice(d: Dialogue) -> None:
    d.linked()
    for _ in range(2):
        d.client.transfer(amqp.properties(message_id="m") + amqp.data(b"x"))
        d.server.disposition(0 if _ == 0 else 1)
    d.goodbye()


@legal("settled twice by a sweep over later ones")
def sweeping_disposition(d: Dialogue) -> None:
    d.linked()
    for _ in range(4):
        d.client.transfer()
    d.server.disposition(1)
    d.server.disposition(3)
    d.server.disposition(0, 3)
    d.goodbye()


@legal("exactly once")
def settled_second(d: Dialogue) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    for n in range(3):
        d.client.transfer()
        d.server.disposition(n, settled=None)
        d.client.disposition(n, role=SENDER, state=amqp.accepted())
        d.server.disposition(n)
    d.goodbye()


@legal("one delivery settled first on a link of mode second")
def mode_first_by_transfer(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 1})
    d.client.transfer(rcv_settle_mode=0)
    d.server.disposition(0)
    d.goodbye()


@legal("settled by its last transfer on a link of mode second")
def settled_by_the_last_transfer(d: Dialogue) -> None:
    d.linked(server={"rcv_settle_mode": 1})
    d.client.transfer(HALF, more=True)
    d.client.transfer(HALF, settled=True)
    d.server.disposition(0)
    d.goodbye()


@legal("settled by sender and receiver at once")
def settlements_cross(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_tag=b"t")
    with d.on_their_way():
        d.server.disposition(0)
        d.client.disposition(0, role=SENDER)
    d.client.transfer(delivery_tag=b"t")
    d.goodbye()


@legal("a receiver states how far it is, then its outcome")
def received_then_accepted(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True)
    d.server.disposition(0, settled=None, state=amqp.received(section_number=0, section_offset=4))
    d.client.transfer(HALF)
    d.server.disposition(0)
    d.goodbye()


@legal("a delivery aborted, its tag used again")
def tag_of_an_aborted_delivery(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(HALF, more=True, delivery_tag=b"t")
    d.client.transfer(b"", aborted=True)
    d.client.transfer(delivery_tag=b"t")
    d.goodbye()


@legal("dispositions cross an end, and the channel is used again")
def dispositions_cross_an_end(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    with d.unheard(d.client):
        d.client.end_session()
        d.server.disposition(0)
        d.server.end_session()
    d.client.begin()
    d.server.begin()
    d.goodbye()


@legal("delivery-ids wrap")
def delivery_ids_wrap(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_id=0xFFFFFFFE)
    d.client.transfer(delivery_id=0xFFFFFFFF)
    d.client.transfer(delivery_id=0)
    d.server.disposition(0xFFFFFFFE, 0)
    d.goodbye()


@legal("a link suspended, its deliveries resumed")
def suspended_and_resumed(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_tag=b"a")
    d.client.transfer(HALF, delivery_tag=b"b", more=True)
    d.client.transfer(HALF, more=True)
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    half = amqp.received(section_number=0, section_offset=4)
    d.client.attach(unsettled={b"a": None, b"b": None}, initial_delivery_count=2)
    d.server.attach(RECEIVER, unsettled={b"a": amqp.accepted(), b"b": half})
    d.server.flow(handle=0, link_credit=5)
    d.client.transfer(b"", delivery_tag=b"a", resume=True, settled=True, state=amqp.accepted())
    d.client.transfer(b"lf", delivery_tag=b"b", resume=True, state=half, more=True)
    d.client.transfer(HALF, resume=True)
    d.client.transfer(delivery_tag=b"c")
    d.server.disposition(3, 4)
    d.client.transfer(delivery_tag=b"a")
    d.goodbye()


@reported("a transfer without any field")
def transfer_without_any_field(d: Dialogue) -> None:
    d.linked()
    d.client.frame(b"\x00\x53\x14\x45", amqp.amqp_value("x")).breaks("P-TRANSFER-MAND")
    d.goodbye()


@reported("the receiver confirms an outcome that the sender chose")
def receiver_confirms_what_the_sender_chose(d: Dialogue) -> None:
    """The lock of the message ran out."""
    d.linked()
    d.client.transfer()
    d.server.disposition(0, settled=None)
    d.client.disposition(0, role=SENDER, settled=None, state=amqp.released())
    d.server.disposition(0, settled=True, state=amqp.released())
    d.goodbye()
