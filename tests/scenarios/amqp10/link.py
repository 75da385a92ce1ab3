"""Links: handles, attaches, credit and drain."""

from __future__ import annotations

from scenarios.pairs import POSSIBLE, SAME, legal, pair, reported, without
from support import amqp10_encode as amqp
from support.amqp10_encode import raw
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("L-UNATTACHED-TRANSFER", cut=without("client begin"))
def transfer_on_unattached_handle(d: Dialogue) -> None:
    d.linked()
    said = d.client.transfer(handle=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("L-UNATTACHED-TRANSFER")
    d.goodbye()


@pair("L-UNATTACHED-FLOW", cut=without("client begin"))
def flow_on_unattached_handle(d: Dialogue) -> None:
    d.begun()
    if d.wrong:
        d.client.flow(handle=0, link_credit=1).breaks("L-UNATTACHED-FLOW")
    d.client.attach(RECEIVER)
    d.client.flow(handle=0, link_credit=1)
    d.server.attach(SENDER)
    d.goodbye()


@pair("L-UNATTACHED-DETACH", cut=without("client begin"))
def detach_on_unattached_handle(d: Dialogue) -> None:
    d.linked()
    d.client.detach()
    if d.wrong:
        d.client.detach().breaks("L-UNATTACHED-DETACH")
    d.server.detach()
    d.goodbye()


@pair("L-HANDLE-INUSE", cut=without("client attach"))
def handle_in_use(d: Dialogue) -> None:
    d.linked()
    said = d.client.attach(SENDER, handle=0 if d.wrong else 1, name="other")
    if d.wrong:
        said.breaks("L-HANDLE-INUSE")
    d.goodbye()


@pair("L-NAME-UNIQUE", cut=without("client attach"))
def name_in_use(d: Dialogue) -> None:
    d.linked()
    said = d.client.attach(SENDER if d.wrong else RECEIVER, handle=1)
    if d.wrong:
        said.may_break("L-NAME-UNIQUE")
    d.goodbye()


@pair("S-LINK-ONE", cut=without("client attach"))
def link_on_two_sessions(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    if not d.wrong:
        d.client.detach()
        d.server.detach()
    said = d.client.attach(SENDER, channel=1)
    if d.wrong:
        said.may_break("S-LINK-ONE")
    d.server.attach(RECEIVER, channel=1)
    d.goodbye()


@pair("L-ATTACH-IDC", then=POSSIBLE)
def sender_without_initial_delivery_count(d: Dialogue) -> None:
    d.begun()
    said = d.client.attach(SENDER, initial_delivery_count=None if d.wrong else 0)
    if d.wrong:
        said.breaks("L-ATTACH-IDC")
    d.server.attach(RECEIVER)
    d.goodbye()


@pair("L-UNSETTLED-NULLKEY", then=SAME)
def unsettled_map_with_null_key(d: Dialogue) -> None:
    _unsettled(d, "L-UNSETTLED-NULLKEY", amqp.map_([(amqp.null(), amqp.accepted())]))


@pair("L-UNSETTLED-TYPES", then=SAME)
def unsettled_map_with_a_string_as_key(d: Dialogue) -> None:
    _unsettled(d, "L-UNSETTLED-TYPES", amqp.map_([("t", amqp.accepted())]))


def _unsettled(d: Dialogue, rule: str, wrong: bytes) -> None:
    d.begun()
    right = amqp.map_([(amqp.binary(b"t"), amqp.accepted()), (amqp.binary(b"u"), amqp.null())])
    said = d.client.attach(SENDER, unsettled=wrong if d.wrong else right)
    if d.wrong:
        said.breaks(rule)
    d.server.attach(RECEIVER)
    d.goodbye()


@reported("a state in the unsettled map that is none, and a tag that is too long")
def unsettled_map_with_other_values(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, unsettled={b"t": amqp.source()}).breaks("L-UNSETTLED-TYPES")
    d.client.attach(SENDER, handle=1, name="r", unsettled={b"t" * 33: None}).breaks("D-TAG-LEN")
    d.client.attach(SENDER, handle=2, name="s", unsettled={b"t": raw("00 a3 03 78 3a 79 45")})
    d.goodbye()


@pair("M-RES-NULLRCV-KEEP", then=SAME)
def receiver_that_keeps_null_states(d: Dialogue) -> None:
    d.begun()
    state = None if d.wrong else amqp.received(section_number=0, section_offset=0)
    said = d.client.attach(RECEIVER, unsettled={b"t": state})
    if d.wrong:
        said.breaks("M-RES-NULLRCV-KEEP")
    d.server.attach(SENDER)
    d.goodbye()


@pair("L-SRC-NULL", cut=without("client attach"))
def transfer_without_source(d: Dialogue) -> None:
    d.linked(client={"source": None} if d.wrong else {})
    said = d.client.transfer(amqp.data(b"x"), more=True)
    if d.wrong:
        said.breaks("L-SRC-NULL")
    d.client.transfer(amqp.data(b"y"))  # of the same fault
    d.client.transfer()
    d.goodbye()


@pair("L-CREDIT-INIT", cut=without("server attach"))
def transfer_before_any_credit(d: Dialogue) -> None:
    d.linked(credit=0)
    if d.wrong:
        d.client.transfer().breaks("L-CREDIT-INIT")
    d.server.flow(handle=0)
    d.client.transfer()
    d.goodbye()


@pair("L-CREDIT", cut=without("client attach"))
def transfer_beyond_credit(d: Dialogue) -> None:
    d.linked(credit=2)
    d.client.transfer()
    d.client.transfer(amqp.data(b"x"), more=True)
    d.client.transfer(amqp.data(b"y"))
    if d.wrong:
        d.client.transfer().breaks("L-CREDIT")
    d.goodbye()


@pair("L-INCOMPLETE-NONEW", cut=without("server attach"))
def new_delivery_beside_incomplete_map(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, unsettled={b"t": None})
    received = amqp.received(section_number=0, section_offset=0)
    d.server.attach(RECEIVER, unsettled={b"t": received}, incomplete_unsettled=True).called("server attach")
    d.server.flow(handle=0)
    d.client.transfer(delivery_tag=b"t", resume=True)
    if d.wrong:
        d.client.transfer().breaks("L-INCOMPLETE-NONEW")
    d.goodbye()


@pair("L-MAXMSG", cut=without("server attach"))
def message_larger_than_agreed(d: Dialogue) -> None:
    d.linked(server={"max_message_size": 100})
    d.client.transfer(amqp.data(b"x" * 80), more=True)
    said = d.client.transfer(amqp.data(b"y" * (40 if d.wrong else 10)))
    if d.wrong:
        said.breaks("L-MAXMSG")
    d.goodbye()


@pair("L-DC-UNSET", cut=without("client attach"))
def receiver_with_delivery_count_too_soon(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER).called("client attach")
    said = d.client.flow(handle=0, delivery_count=0 if d.wrong else None)
    if d.wrong:
        said.breaks("L-DC-UNSET")
    d.server.attach(SENDER)
    d.goodbye()


@pair("L-DC-RECEIVER", cut=without("client attach"))
def receiver_with_delivery_count_never_reached(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.server.flow(handle=0, delivery_count=3 if d.wrong else 1)
    if d.wrong:
        said.breaks("L-DC-RECEIVER")
    d.goodbye()


@reported("a delivery-count below the first")
def receiver_with_delivery_count_below_the_first(d: Dialogue) -> None:
    d.linked(client={"initial_delivery_count": 10})
    d.server.flow(handle=0, delivery_count=9).breaks("L-DC-RECEIVER")
    d.goodbye()


@pair("L-DC-SENDER", cut=without("client attach"))
def sender_with_other_delivery_count(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.client.flow(handle=0, delivery_count=4 if d.wrong else 1, link_credit=6 if d.wrong else 9)
    if d.wrong:
        said.breaks("L-DC-SENDER")
    d.goodbye()


@reported("a sender's flow without delivery-count, and one that goes back")
def sender_with_wrong_delivery_counts(d: Dialogue) -> None:
    d.linked()
    d.client.flow(handle=0, delivery_count=None).breaks("L-DC-SENDER")
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=0, link_credit=10).breaks("L-DC-SENDER")
    d.goodbye()


@pair("L-CREDIT-OWNER", cut=without("client attach"))
def sender_with_credit_of_its_own(d: Dialogue) -> None:
    d.linked(credit=5)
    d.client.transfer()
    said = d.client.flow(handle=0, link_credit=6 if d.wrong else 4)
    if d.wrong:
        said.breaks("L-CREDIT-OWNER")
    d.goodbye()


@reported("a sender repeats the credit that it was given, and does not count it down")
def sender_with_the_last_known_credit(d: Dialogue) -> None:
    d.linked(credit=5)
    d.client.transfer()
    d.client.flow(handle=0, link_credit=5).may_break("L-CREDIT-OWNER")
    d.goodbye()


@pair("L-DRAIN-OWNER", cut=without("client attach"))
def sender_with_drain_of_its_own(d: Dialogue) -> None:
    d.linked()
    d.server.flow(handle=0, drain=None if d.wrong else True)
    said = d.client.flow(handle=0, drain=True)
    if d.wrong:
        said.breaks("L-DRAIN-OWNER")
    d.goodbye()


@pair("L-DRAIN-STATE", cut=without("client attach"))
def drained_with_credit_left(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.server.flow(handle=0, link_credit=10, drain=True)
    count = 8 if d.wrong else 11
    said = d.client.flow(handle=0, delivery_count=count, link_credit=11 - count, drain=True)
    if d.wrong:
        said.breaks("L-DRAIN-STATE")
    d.goodbye()


@reported("drained without advancing delivery-count")
def drained_without_advancing(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.server.flow(handle=0, link_credit=9, drain=True)
    d.client.flow(handle=0, delivery_count=1, link_credit=0, drain=True).breaks("L-DRAIN-STATE")
    d.goodbye()


@reported("drained without advancing delivery-count far enough, inside a delivery")
def drained_inside_a_delivery(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer(amqp.amqp_value("x"), more=True)
    d.server.flow(handle=0, delivery_count=0, link_credit=10, drain=True)
    d.client.flow(handle=0, delivery_count=9, link_credit=0, drain=True).may_break("L-DRAIN-STATE")
    d.client.transfer(b"")
    d.goodbye()


@reported("drained, and credit granted since")
def drained_and_credit_granted_since(d: Dialogue) -> None:
    d.linked(credit=5)
    d.server.flow(handle=0, link_credit=5, drain=True)
    d.server.flow(handle=0, link_credit=9)
    d.client.flow(handle=0, delivery_count=5, link_credit=4).may_break("L-DRAIN-STATE")
    d.goodbye()


# ---- legal -----------------------------------------------------------------------------------------------


@legal("L-HANDLE-ASYM")
def handles_differ_by_end(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, handle=0, name="a")
    d.client.attach(SENDER, handle=1, name="b")
    d.server.attach(RECEIVER, handle=0, name="b")
    d.server.attach(RECEIVER, handle=1, name="a")
    d.server.flow(handle=0, link_credit=1)
    d.client.transfer(handle=1)
    d.server.flow(handle=1, link_credit=1)
    d.client.transfer(handle=0)
    d.client.detach(handle=0)
    d.server.detach(handle=1)
    d.goodbye()


@legal("L-ATTACH-IDC-RCV")
def receiver_with_initial_delivery_count(d: Dialogue) -> None:
    d.linked(server={"initial_delivery_count": 77})
    d.client.transfer()
    d.server.flow(handle=0)
    d.goodbye()


@legal("L-MAXMSG-ZERO")
def max_message_size_of_zero(d: Dialogue) -> None:
    d.linked(server={"max_message_size": 0})
    d.client.transfer(amqp.data(b"x" * 5000))
    d.goodbye()


@legal("L-SETTLEMODE-DESIRE")
def modes_wished_and_not_granted(d: Dialogue) -> None:
    d.linked(
        client={"snd_settle_mode": 2, "rcv_settle_mode": 1},
        server={"snd_settle_mode": 1, "rcv_settle_mode": 0},
    )
    d.client.transfer()
    d.client.transfer(settled=True)
    d.server.disposition(0)
    d.goodbye()


@legal("L-AVAIL-SENDANYWAY")
def transfer_after_available_zero(d: Dialogue) -> None:
    d.linked()
    d.client.flow(handle=0, available=0)
    d.client.transfer()
    d.goodbye()


@legal("M-TERM-MINIMAL")
def termini_without_fields(d: Dialogue) -> None:
    d.linked(client={"source": amqp.source(), "target": amqp.target()}, server={"source": amqp.source()})
    d.client.transfer()
    d.goodbye()


@legal("same name in both directions")
def same_name_in_both_directions(d: Dialogue) -> None:
    d.linked()
    d.client.attach(RECEIVER, handle=1)
    d.server.attach(SENDER, handle=1)
    d.client.flow(handle=1)
    d.server.transfer(handle=1)
    d.client.transfer()
    d.goodbye()


@legal("detaches cross")
def detaches_cross(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.transfer()
        d.client.detach()
        d.server.flow(handle=0, delivery_count=0, next_incoming_id=0)
        d.server.detach()
    d.client.attach()
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.client.transfer()
    d.goodbye()


@legal("frames behind the peer's detach were on their way")
def frames_cross_a_detach(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.transfer()
        d.client.transfer()
        d.client.flow(handle=0, link_credit=8)
        d.server.detach(error="amqp:link:detach-forced")
    d.client.detach()
    d.goodbye()


@legal("a link closed and attached again begins anew")
def attached_again(d: Dialogue) -> None:
    d.linked(credit=3)
    d.client.transfer(delivery_tag=b"0")
    d.client.transfer(delivery_tag=b"1", more=True)
    d.client.detach()
    d.server.detach()
    d.client.attach(initial_delivery_count=500)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, link_credit=3)
    for tag in (b"0", b"1", b"2"):
        d.client.transfer(delivery_tag=tag)
    d.server.flow(handle=0, link_credit=1)
    d.client.transfer(delivery_tag=b"3")
    d.goodbye()


@reported("credit of the attachment before is none")
def old_credit_is_gone(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.detach()
    d.server.detach()
    d.client.attach()
    d.server.attach(RECEIVER)
    d.client.transfer().breaks("L-CREDIT-INIT")
    d.goodbye()


@legal("attach, flow, detach and again in one breath")
def attached_twice_in_one_breath(d: Dialogue) -> None:
    d.begun()
    with d.unheard(d.client):
        d.client.attach(RECEIVER)
        d.client.flow(handle=0, link_credit=2)
        d.client.detach()
        d.client.attach(RECEIVER)
        d.client.flow(handle=0, delivery_count=None, link_credit=2)
    d.server.attach(SENDER)
    d.server.transfer()
    d.server.detach()
    d.server.attach(SENDER)
    d.server.transfer()
    d.goodbye()


@legal("counts wrap")
def delivery_counts_wrap(d: Dialogue) -> None:
    d.linked(client={"initial_delivery_count": 0xFFFFFFFF}, credit=2)
    d.client.transfer()
    d.client.transfer()
    d.server.flow(handle=0, delivery_count=1, link_credit=1)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=2, link_credit=0)
    d.goodbye()


@legal("a flow within a delivery")
def flow_within_a_delivery(d: Dialogue) -> None:
    d.linked(credit=5)
    d.client.transfer(amqp.data(b"x"), more=True)
    d.client.flow(handle=0, delivery_count=0, link_credit=5)
    d.client.transfer(amqp.data(b"y"), more=True)
    d.client.flow(handle=0, delivery_count=1, link_credit=4)
    d.client.transfer(amqp.data(b"z"))
    d.goodbye()


@legal("drained")
def drained(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.server.flow(handle=0, link_credit=9, drain=True)
    d.client.flow(handle=0, delivery_count=10, link_credit=0, drain=True)
    d.server.flow(handle=0, delivery_count=10, link_credit=2)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=11, link_credit=1)
    d.goodbye()


@legal("a drain answered after the receiver has taken it back")
def drain_taken_back(d: Dialogue) -> None:
    d.linked(credit=10)
    d.server.flow(handle=0, link_credit=10, drain=True)
    with d.on_their_way():
        d.server.flow(handle=0, link_credit=20)
        d.client.flow(handle=0, delivery_count=10, link_credit=0, drain=True)
    d.goodbye()


# ---- what the sender may have known ----------------------------------------------------------------------


@reported("credit lowered from ten to three")
def credit_lowered(d: Dialogue) -> None:
    d.linked(credit=10)
    d.server.flow(handle=0, link_credit=3)
    for _ in range(3):
        d.client.transfer()
    for _ in range(7):
        d.client.transfer().may_break("L-CREDIT")
    d.client.transfer().breaks("L-CREDIT")
    d.goodbye()


@legal("credit lowered while transfers are on their way")
def credit_lowered_meanwhile(d: Dialogue) -> None:
    d.linked(credit=10)
    with d.on_their_way():
        d.server.flow(handle=0, link_credit=0)
        for _ in range(10):
            d.client.transfer()
    d.goodbye()


@reported("credit lowered, and the sender shows that it has read so")
def credit_lowered_and_read(d: Dialogue) -> None:
    d.linked(credit=10)
    d.server.attach(SENDER, handle=1, name="back")
    d.client.attach(RECEIVER, handle=1, name="back")
    d.client.flow(handle=1)
    d.server.flow(handle=0, link_credit=1)
    d.server.transfer(handle=1)
    d.client.disposition(0)
    d.client.transfer()
    d.client.transfer().breaks("L-CREDIT")
    d.goodbye()


@reported("credit lowered, then a little raised, which only one flow allows")
def credit_lowered_and_used_again(d: Dialogue) -> None:
    d.linked(credit=2)
    d.client.transfer()
    d.server.flow(handle=0, link_credit=0)
    d.server.flow(handle=0, link_credit=3)
    for _ in range(3):
        d.client.transfer()
    d.client.transfer().breaks("L-CREDIT")
    d.goodbye()


@legal("credit just acknowledged")
def credit_on_time(d: Dialogue) -> None:
    d.linked(credit=1)
    for _ in range(4):
        d.client.transfer()
        d.server.flow(handle=0, link_credit=1)
    d.goodbye()


@reported("a message-size limit that may not have been read")
def size_limit_not_read(d: Dialogue) -> None:
    d.begun()
    d.client.attach()
    d.server.attach(RECEIVER, max_message_size=20)
    d.client.transfer(amqp.data(b"x" * 50)).breaks("L-CREDIT-INIT").may_break("L-MAXMSG")
    d.goodbye()


@reported("aborted deliveries may count or not")
def aborted_deliveries_and_credit(d: Dialogue) -> None:
    d.linked(credit=2)
    d.client.transfer(amqp.data(b"x"), more=True)
    d.client.transfer(b"", aborted=True)
    d.client.transfer()
    d.client.transfer().may_break("L-CREDIT")
    d.client.transfer().breaks("L-CREDIT")
    d.goodbye()


def two_sessions(d: Dialogue) -> None:
    """The server sends on the first session, and receives on the second one."""
    d.subscribed(credit=10)
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.attach(SENDER, name="out", channel=1)
    d.server.attach(RECEIVER, name="out", channel=1)
    d.server.flow(handle=0, channel=1, delivery_count=0, link_credit=10)


@reported("another session proves nothing of this one")
def credit_taken_back_and_a_message_on_another_session(d: Dialogue) -> None:
    two_sessions(d)
    d.client.flow(handle=0, delivery_count=0, link_credit=0)
    d.client.transfer(channel=1)
    d.server.disposition(0, channel=1)
    d.server.transfer().may_break("L-CREDIT")
    d.goodbye()


@reported("the same, and this session proves it, too")
def credit_taken_back_and_an_echo(d: Dialogue) -> None:
    two_sessions(d)
    d.server.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=0)
    d.client.disposition(0)
    d.client.transfer(channel=1)
    d.server.disposition(0, channel=1)
    d.server.disposition(0, role=SENDER)
    d.server.transfer().may_break("L-CREDIT")
    d.goodbye()
