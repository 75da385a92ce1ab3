"""After one fault the conversation goes on as if the frame had been right. Nothing more is certain.

A second finding would only follow from the first one, and would often accuse the peer that kept the rules.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import amqp10_encode as amqp
from support import draft2011_encode as draft
from support.dialogue import MESSAGE, RECEIVER, SENDER, Dialogue
from support.dialogue_draft2011 import Dialogue2011
from support.judged import judged

from amqpscope.rules.catalogue import severity

WINDOWS = {"next_incoming_id": 0, "incoming_window": 2048, "next_outgoing_id": 0, "outgoing_window": 2048}

Talk = Callable[[Dialogue], None]
ONE_FAULT: list[tuple[str, str, Talk]] = []


def breaks(rule: str, peer: str = "client") -> Callable[[Talk], Talk]:
    """The conversation holds one fault: this peer breaks this rule."""

    def enter(talk: Talk) -> Talk:
        ONE_FAULT.append((rule, peer, talk))
        return talk

    return enter


def first_transfer(number: int = 0, **fields: object) -> bytes:
    """The first transfer of a delivery."""
    given = {"handle": 0, "delivery_id": number, "delivery_tag": bytes([number]), "message_format": 0}
    return amqp.transfer(**{**given, **fields})


def finish(d: Dialogue) -> None:
    """The client sends two messages more, and both leave the link."""
    d.client.transfer()
    d.client.transfer()
    d.client.flow(handle=0, link_credit=10 - d.client.handles[0, 0].count)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("L-HANDLE-INUSE")
def attach_of_a_receiver_on_the_handle_of_a_sender(d: Dialogue) -> None:
    d.linked()
    other = amqp.attach(
        name="other",
        handle=0,
        role=RECEIVER,
        source=amqp.source(address="o"),
        target=amqp.target(address="o"),
    )
    d.client.frame(other)
    finish(d)


@breaks("L-HANDLE-INUSE")
def both_links_of_one_handle_are_detached(d: Dialogue) -> None:
    d.linked()
    d.client.attach(name="other")
    d.client.detach()
    d.client.detach()
    d.goodbye()


@breaks("S-FLOW-NEXTOUT")
def one_flow_states_a_larger_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(next_outgoing_id=4)
    d.client.flow()
    finish(d)


@breaks("S-FLOW-NEXTOUT")
def one_flow_states_a_lower_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(next_outgoing_id=0)
    d.client.flow()
    finish(d)


@breaks("S-FLOW-NEXTOUT")
def all_flows_state_a_larger_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(next_outgoing_id=4)
    d.client.transfer()
    d.client.flow(next_outgoing_id=5)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("S-FLOW-NEXTOUT")
def a_next_outgoing_id_beyond_the_window(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 10})
    d.attached()
    d.client.flow(next_outgoing_id=100)
    finish(d)


@breaks("L-DC-SENDER")
def one_flow_of_a_sender_states_a_larger_delivery_count(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=10, link_credit=0)
    finish(d)


@breaks("L-DC-SENDER")
def all_flows_of_a_sender_state_a_larger_delivery_count(d: Dialogue) -> None:
    d.linked(credit=9)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=3, link_credit=6)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=4, link_credit=5)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("L-DC-SENDER")
def sender_drains_beyond_its_credit(d: Dialogue) -> None:
    d.linked(credit=4)
    d.server.flow(handle=0, link_credit=4, drain=True)
    d.client.flow(handle=0, delivery_count=8, link_credit=1, drain=True)
    d.client.flow(handle=0, delivery_count=4, link_credit=0, drain=True)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("L-UNATTACHED-TRANSFER")
def transfer_on_no_link_that_its_sender_does_not_count(d: Dialogue) -> None:
    d.linked()
    d.client.frame(first_transfer(0, handle=9), MESSAGE)
    d.client.flow(next_outgoing_id=0)
    finish(d)


@breaks("L-UNATTACHED-TRANSFER")
def sender_settles_what_it_sent_on_no_link(d: Dialogue) -> None:
    d.linked()
    d.server.attach(SENDER, handle=1, name="back")
    d.client.attach(RECEIVER, handle=1, name="back")
    d.client.flow(handle=1)
    d.server.transfer(handle=1)
    d.client.frame(first_transfer(0, handle=9), MESSAGE)
    d.client.disposition(0, role=SENDER)
    d.goodbye()


PARTS = (MESSAGE[:3], MESSAGE[3:5], MESSAGE[5:])


def in_parts(d: Dialogue, stray: int, **place: int) -> None:
    """A message in three transfers, of which one (`stray`) stands in another place."""
    d.linked()
    for number, part in enumerate(PARTS):
        fields = {"delivery_id": 0, "delivery_tag": b"t", "message_format": 0} if number == 0 else {}
        where = {"handle": 0, **(place if number == stray else {})}
        channel = where.pop("channel", 0)
        d.client.frame(amqp.transfer(**where, **fields, more=number < 2), part, channel=channel)
    d.client.frame(first_transfer(1), MESSAGE)
    d.server.disposition(0, 1)
    d.client.frame(amqp.flow(**{**WINDOWS, "next_outgoing_id": 4}))
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("L-UNATTACHED-TRANSFER")
def first_part_of_a_message_on_another_handle(d: Dialogue) -> None:
    in_parts(d, 0, handle=9)


@breaks("L-UNATTACHED-TRANSFER")
def middle_of_a_message_on_another_handle(d: Dialogue) -> None:
    in_parts(d, 1, handle=9)


@breaks("L-UNATTACHED-TRANSFER")
def last_part_of_a_message_on_another_handle(d: Dialogue) -> None:
    in_parts(d, 2, handle=9)


@breaks("S-BEGIN-FIRST")
def first_part_of_a_message_on_another_channel(d: Dialogue) -> None:
    in_parts(d, 0, channel=9)


@breaks("S-BEGIN-FIRST")
def last_part_of_a_message_on_another_channel(d: Dialogue) -> None:
    in_parts(d, 2, channel=9)


@breaks("S-BEGIN-REUSE")
def begin_in_the_middle_of_a_message(d: Dialogue) -> None:
    d.linked()
    d.client.frame(first_transfer(more=True), MESSAGE[:3])
    d.client.frame(amqp.begin(next_outgoing_id=1, incoming_window=2048, outgoing_window=2048))
    d.client.frame(amqp.transfer(handle=0), MESSAGE[3:])
    d.client.frame(first_transfer(1), MESSAGE)
    d.goodbye()


@breaks("S-BEGIN-REUSE", "server")
def answering_begin_sent_twice(d: Dialogue) -> None:
    d.begun()
    d.server.frame(
        amqp.begin(remote_channel=0, next_outgoing_id=0, incoming_window=2048, outgoing_window=2048)
    )
    d.goodbye()


@breaks("L-UNATTACHED-DETACH")
def detach_of_another_handle(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.frame(amqp.detach(handle=5, closed=True))
    d.client.attach(name="next")
    d.server.attach(RECEIVER, name="next")
    d.goodbye()


@breaks("S-BEGIN-FIRST")
def end_of_another_channel(d: Dialogue) -> None:
    d.linked()
    d.client.frame(amqp.end(), channel=5)
    d.server.end_session()
    d.client.begin()
    d.server.begin()
    d.goodbye()


@breaks("S-BEGIN-FIRST")
def attach_on_another_channel(d: Dialogue) -> None:
    d.begun()
    d.client.frame(
        amqp.attach(
            name="q", handle=0, role=SENDER, initial_delivery_count=0, target=amqp.target(address="q")
        ),
        channel=5,
    )
    d.server.attach(RECEIVER)
    d.server.frame(amqp.flow(**WINDOWS, handle=0, link_credit=5))
    d.client.frame(first_transfer(), MESSAGE)
    d.goodbye()


@breaks("C-OPEN-FIRST", "server")
def open_never_sent(d: Dialogue) -> None:
    d.headers()
    d.client.open()
    d.client.begin()
    d.server.begin()
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.server.empty()
    d.client.transfer(amqp.data(bytes(600)))
    d.client.begin(7)
    d.server.begin(7)
    d.goodbye()


@breaks("C-EMPTY-AFTEROPEN", "server")
def empty_frames_and_a_close_without_an_open(d: Dialogue) -> None:
    d.headers()
    d.client.open()
    d.server.empty()
    d.server.empty()
    d.server.close()
    d.client.close()
    d.tcp.goodbye()


def challenged(d: Dialogue, responses: int, challenges: int) -> None:
    """A login with one challenge after another, before which there were some responses and challenges."""
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    d.client.init()
    for _ in range(responses):
        d.client.response()
    for _ in range(challenges):
        d.server.challenge()
        d.client.response()
    d.server.outcome()
    d.headers()
    d.client.open()
    d.server.open()
    d.goodbye()


@breaks("SA-SEQ-RESP")
def sasl_response_without_a_challenge(d: Dialogue) -> None:
    challenged(d, responses=1, challenges=2)


def resized(value: bytes, by: int) -> bytes:
    """A described list or map of few octets, with another size."""
    return value[:4] + bytes([value[4] + by]) + value[5:]


@breaks("T-LIST-FIT")
def section_whose_list_is_too_long(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(resized(amqp.properties(message_id="m", to="q"), 1) + amqp.data(b"d"))
    d.goodbye()


@breaks("T-MAP-FIT")
def section_whose_map_is_too_long(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(resized(amqp.application_properties({"a": "b"}), 1) + MESSAGE)
    d.goodbye()


@breaks("T-SIZE-OVERRUN")
def section_whose_list_is_too_short(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(resized(amqp.properties(message_id="m", to="q"), -1) + MESSAGE)
    d.goodbye()


@breaks("T-LIST-FIT")
def source_whose_list_is_too_long(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, source=resized(amqp.source(address="q"), 1))
    d.server.attach(RECEIVER)
    d.goodbye()


@breaks("T-STR-NOBOM")
def link_name_with_a_byte_order_mark(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, name="\ufeffq")
    d.server.attach(RECEIVER)
    d.server.frame(amqp.flow(**WINDOWS, handle=0, delivery_count=0, link_credit=5))
    d.client.frame(first_transfer(), MESSAGE)
    d.goodbye()


@breaks("T-DESC-CTOR", "server")
def disposition_whose_list_is_too_short(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.server.frame(resized(amqp.disposition(role=RECEIVER, first=0, settled=True, state=amqp.accepted()), -1))
    d.goodbye()


@breaks("S-FLOW-NEXTIN-SET")
def first_flow_without_next_incoming_id_lowers_no_window(d: Dialogue) -> None:
    d.opened()
    bare = {**WINDOWS, "next_incoming_id": None}
    with d.on_their_way():
        d.client.begin()
        d.client.attach(RECEIVER)
        d.client.attach(SENDER, handle=1, name="r")
        d.client.frame(amqp.flow(**bare, handle=0, link_credit=9))
    d.server.begin()
    d.server.attach(SENDER)
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1)
    for _ in range(3):
        d.server.transfer()
    d.client.transfer(handle=1)
    d.client.frame(amqp.flow(**{**bare, "incoming_window": 2, "next_outgoing_id": 1}))
    d.client.transfer(handle=1)
    d.server.flow(next_incoming_id=2)
    d.server.transfer()
    d.server.transfer()
    d.goodbye()


@breaks("S-FLOW-NOHANDLE-CREDIT", "server")
def credit_without_a_handle(d: Dialogue) -> None:
    d.linked(credit=0)
    d.server.frame(amqp.flow(**WINDOWS, link_credit=5))
    d.client.transfer()
    d.client.transfer()
    d.server.disposition(0, 1)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("S-FLOW-NOHANDLE-DRAIN", "server")
def drain_without_a_handle(d: Dialogue) -> None:
    d.linked(credit=5)
    d.server.frame(amqp.flow(**WINDOWS, drain=True))
    d.client.flow(handle=0, delivery_count=5, link_credit=0, drain=True)
    d.client.detach()
    d.server.detach()
    d.goodbye()


def declared(d: Dialogue, **answer: object) -> None:
    """A transaction is declared, with this in its answer, then used and discharged."""
    d.begun()
    d.client.attach(SENDER, target=amqp.coordinator())
    d.server.attach(RECEIVER, target=amqp.coordinator())
    d.server.flow(handle=0)
    d.client.attach(SENDER, handle=1, name="work")
    d.server.attach(RECEIVER, handle=1, name="work")
    d.server.flow(handle=1)
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, **answer)
    work = amqp.transactional_state(txn_id=b"T")
    d.client.transfer(handle=1, state=work)
    done = amqp.transactional_state(txn_id=b"T", outcome=amqp.accepted())
    d.server.disposition(1, settled=False, state=done)
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)))
    d.server.disposition(2)
    d.goodbye()


@breaks("TX-DECLARE-OK", "server")
def declare_that_is_accepted(d: Dialogue) -> None:
    declared(d, state=amqp.accepted())


@breaks("TX-DECLARE-FAIL-REJECT", "server")
def declare_that_is_released(d: Dialogue) -> None:
    declared(d, state=amqp.released())


@breaks("D-DISP-ROLE", "server")
def declare_that_a_sender_answers(d: Dialogue) -> None:
    declared(d, role=SENDER, state=amqp.declared(txn_id=b"T"))


@breaks("S-BEGIN-LOCALNULL")
def transaction_on_a_session_whose_begin_answers_none(d: Dialogue) -> None:
    d.opened()
    d.client.begin(remote_channel=5)
    d.server.begin()
    d.client.attach(SENDER, target=amqp.coordinator())
    d.server.attach(RECEIVER, target=amqp.coordinator())
    d.server.flow(handle=0)
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)))
    d.server.disposition(1)
    d.goodbye()


@breaks("L-ATTACH-IDC")
def attach_again_without_initial_delivery_count(d: Dialogue) -> None:
    d.linked(credit=3)
    for _ in range(3):
        d.client.transfer()
    d.client.detach(closed=False)
    d.server.detach(closed=False)
    d.client.attach(SENDER, initial_delivery_count=None)
    d.server.attach(RECEIVER)
    d.server.frame(amqp.flow(**{**WINDOWS, "next_incoming_id": 3}, handle=0, delivery_count=0, link_credit=2))
    d.client.transfer()
    d.client.transfer()
    d.goodbye()


@breaks("L-DC-RECEIVER", "server")
def credit_with_a_larger_delivery_count(d: Dialogue) -> None:
    d.linked(credit=4)
    d.client.transfer()
    d.server.flow(handle=0, delivery_count=6, link_credit=5)
    d.client.flow(handle=0, delivery_count=1, link_credit=5)
    d.client.detach()
    d.server.detach()
    d.goodbye()


def certain(talk: Talk, dialogue: type[Dialogue] = Dialogue) -> list[tuple[str, str]]:
    """Rule and peer of each error that is certain."""
    d = dialogue()
    talk(d)
    while_read, at_end = judged(d.capture.pcap(nanoseconds=True))
    return [
        (finding.rule.partition("/")[2], finding.peer)
        for finding in while_read + at_end
        if finding.certain and severity(finding.rule) == "error"
    ]


@pytest.mark.parametrize(
    ("rule", "peer", "talk"), [pytest.param(*one, id=one[2].__name__) for one in ONE_FAULT]
)
def test_one_fault_is_certain_and_nothing_else(rule: str, peer: str, talk: Talk) -> None:
    assert certain(talk) == [(rule, peer)]


def begin_that_may_be_the_answer(d: Dialogue) -> None:
    """Or it begins a session of its own."""
    d.opened()
    d.client.begin()
    d.server.frame(amqp.begin(next_outgoing_id=0, incoming_window=2048, outgoing_window=2048))
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.server.frame(amqp.flow(**WINDOWS, handle=0, delivery_count=0, link_credit=5))
    d.client.frame(first_transfer(), MESSAGE)
    d.server.disposition(0)
    d.goodbye()


def attach_that_may_be_the_answer(d: Dialogue) -> None:
    """Or it is one of another link with the same name."""
    d.begun()
    d.client.attach(SENDER)
    d.server.attach(SENDER)
    d.server.frame(amqp.flow(**WINDOWS, handle=0, delivery_count=0, link_credit=5))
    d.client.frame(first_transfer(), MESSAGE)
    d.client.frame(first_transfer(1), MESSAGE)
    d.server.disposition(0, 1)
    d.goodbye()


def delivery_aborted_by_its_first_transfer(d: Dialogue) -> None:
    """Its receiver may take it for a message."""
    d.linked()
    d.client.transfer(aborted=True)
    d.client.transfer()
    d.server.disposition(0, state=None)
    d.server.disposition(1)
    d.client.disposition(0, role=SENDER)
    d.goodbye()


@pytest.mark.parametrize(
    "talk",
    [
        begin_that_may_be_the_answer,
        attach_that_may_be_the_answer,
        delivery_aborted_by_its_first_transfer,
    ],
)
def test_a_fault_that_is_only_possible_leads_to_none_that_is_certain(talk: Talk) -> None:
    assert certain(talk) == []


def draft_begin_whose_options_have_no_type(d: Dialogue) -> None:
    """The direction still speaks the draft."""
    d.opened()
    begin = draft.begin(next_outgoing_id=0, incoming_window=2048, outgoing_window=2048)
    assert begin[6] == 0x40
    d.client.frame(begin[:6] + b"\x4a" + begin[7:])
    d.server.begin(remote_channel=0)
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.goodbye()


def draft_mechanism_that_is_no_utf8(d: Dialogue) -> None:
    draft_login(d, b"PLAI\xc3")


def draft_mechanism_with_a_byte_order_mark(d: Dialogue) -> None:
    draft_login(d, "\ufeffP".encode() + b"L")


def draft_login(d: Dialogue, mechanism: bytes) -> None:
    """A login by PL, or by PLAIN, which the server has offered with other octets."""
    name = "PL" if mechanism.endswith(b"PL") else "PLAIN"
    d.client.header(3)
    d.server.header(3)
    stand_in = b"x" * len(mechanism)
    offer = draft.sasl_frame(draft.sasl_mechanisms(sasl_server_mechanisms=["OTHER", stand_in.decode()]))
    assert offer.count(stand_in) == 1
    d.server.say(offer.replace(stand_in, mechanism))
    d.client.init(name)
    d.server.outcome()
    d.opened()
    d.goodbye()


@pytest.mark.parametrize(
    ("rule", "peer", "talk"),
    [
        ("T-CODE-UNKNOWN", "client", draft_begin_whose_options_have_no_type),
        ("T-STR-UTF8", "server", draft_mechanism_that_is_no_utf8),
        ("T-STR-NOBOM", "server", draft_mechanism_with_a_byte_order_mark),
    ],
)
def test_one_fault_in_the_draft_is_certain_and_nothing_else(rule: str, peer: str, talk: Talk) -> None:
    assert certain(talk, Dialogue2011) == [(rule, peer)]
