"""What random conversations found: each a correct peer that was accused, reported as short as it goes."""

from __future__ import annotations

import io

import pytest
from support import amqp10_encode as amqp
from support.dialogue import MESSAGE, RECEIVER, SENDER, Dialogue, Said
from support.judged import judged

import amqpscope
from amqpscope.limits import MAX_TRANSACTIONS, MAX_UNANSWERED
from amqpscope.rules.amqp10 import control_link, transaction
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.catalogue import severity
from amqpscope.tracking.amqp10.control import Control, ControlRequest
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transactions import Ledger
from dissectors.amqp10.transactions import Declared


def found(d: Dialogue) -> list[tuple[str, str, bool]]:
    """All but notes."""
    while_read, at_end = judged(d.capture.pcap(nanoseconds=True))
    return [(f.rule, f.peer, f.certain) for f in while_read + at_end if severity(f.rule) != "note"]


def certain(d: Dialogue) -> list[tuple[str, str, bool]]:
    return [each for each in found(d) if each[2]]


def cut(said: Said, octets: int) -> None:
    """The capture lacks the last octets of a frame."""
    assert said.packet is not None
    said.packet.data = said.packet.data[:-octets]


def test_credit_given_before_the_sender_attaches_counts_from_its_attach() -> None:
    d = Dialogue()
    d.begun()
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, delivery_count=None, link_credit=2)
    d.client.attach(SENDER, initial_delivery_count=0xFFFFFFFE)
    d.client.transfer()
    d.client.transfer()
    assert found(d) == []
    d.client.transfer()
    assert found(d) == [("amqp10/L-CREDIT", "client", True)]


def test_a_window_given_before_the_session_is_answered_counts_from_the_answer() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin(incoming_window=2)
    d.client.attach(RECEIVER)
    d.client.flow(handle=0, link_credit=10)
    d.server.begin(next_outgoing_id=0xFFFFFFFE)
    d.server.attach(SENDER)
    d.server.transfer()
    d.server.transfer()
    assert found(d) == []
    d.server.transfer()
    assert found(d) == [("amqp10/S-WIN-IN", "server", True)]


def test_a_receiver_may_not_have_read_that_the_link_was_attached_again() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    d.client.detach(closed=None)
    d.client.attach(SENDER, initial_delivery_count=1)
    d.server.flow(handle=0, delivery_count=0, link_credit=5)
    assert certain(d) == []


def test_a_session_begun_and_ended_at_once_may_still_be_answered() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.client.end_session()
    d.server.begin(remote_channel=0)
    d.server.flow(next_incoming_id=0)
    d.server.end_session()
    assert found(d) == []


def test_a_session_ended_before_it_is_answered_is_doubted_with_all_others() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.client.end_session()
    with d.missed():
        d.client.empty()
    d.server.begin(remote_channel=0)
    with d.missed():
        d.server.attach()
    d.server.flow(handle=0)
    assert certain(d) == []


def test_a_resumed_delivery_may_be_settled_in_any_of_its_transfers() -> None:
    d = Dialogue()
    outcome = amqp.accepted()
    unsettled = {b"t": None}
    d.linked(client={"unsettled": unsettled, "snd_settle_mode": 0}, server={"unsettled": {b"t": outcome}})
    how = {"delivery_tag": b"t", "resume": True, "state": outcome, "more": True}
    d.client.transfer(b"", **how)
    d.client.transfer(b"", settled=True)
    assert found(d) == []


def test_received_is_no_answer_to_a_declare() -> None:
    d = Dialogue()
    d.linked(client={"target": amqp.coordinator()}, server={"target": amqp.coordinator()})
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, settled=None, state=amqp.received(section_number=0, section_offset=0))
    d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)))
    assert found(d) == []


def test_a_declare_rejected_wrongly_may_be_declared_after_all() -> None:
    d = Dialogue()
    d.linked(client={"target": amqp.coordinator()}, server={"target": amqp.coordinator()})
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, state=amqp.rejected())
    d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)))
    assert [one for one in found(d) if one[1] == "client"] == []


def controlled(d: Dialogue) -> bytes:
    """A transaction is declared; there are links to post (0) and to acquire (2) on. Gives a state of it."""
    d.linked()
    d.client.attach(SENDER, handle=1, name="control", target=amqp.coordinator())
    d.server.attach(RECEIVER, handle=1, name="control", target=amqp.coordinator())
    d.server.flow(handle=1)
    d.client.attach(RECEIVER, handle=2, name="in")
    d.server.attach(SENDER, handle=2, name="in")
    d.client.transfer(amqp.amqp_value(amqp.declare()), handle=1)
    d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
    return amqp.transactional_state(txn_id=b"T")


def test_a_posting_goes_on_while_its_session_is_ended_unheard() -> None:
    d = Dialogue()
    state = controlled(d)
    d.client.transfer(MESSAGE[:4], more=True, state=state)
    with d.on_their_way():
        d.server.end_session()
        d.client.transfer(MESSAGE[4:6], more=True, state=state)
    d.client.transfer(MESSAGE[6:], state=state)
    assert [one for one in found(d) if one[1] == "client" and one[0].startswith("amqp10/TX")] == []


def test_of_two_transactions_with_one_id_either_may_be_meant() -> None:
    d = Dialogue()
    state = controlled(d)
    d.client.transfer(amqp.amqp_value(amqp.declare()), handle=1)
    with d.on_their_way():
        d.server.disposition(1, state=amqp.declared(txn_id=b"T"))
        d.client.transfer(state=state)
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)), handle=1)
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)), handle=1)
    assert [one for one in certain(d) if one[1] == "client"] == []


def test_what_was_asked_for_comes_while_the_link_is_left_unheard() -> None:
    for leave in (lambda d: d.client.detach(2, closed=None), lambda d: d.client.end_session()):
        d = Dialogue()
        state = controlled(d)
        asked = {amqp.symbol("txn-id"): amqp.binary(b"T")}
        d.client.flow(handle=2, link_credit=5, properties=asked)
        with d.on_their_way():
            leave(d)
            d.server.transfer(handle=2, state=state)
        assert found(d) == []


def test_two_sessions_begun_at_once_of_which_one_is_answered() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin(0)
    d.server.begin(0, remote_channel=None)
    d.client.begin(1, remote_channel=0)
    assert found(d) == []


def test_a_disposition_on_a_session_whose_channel_the_peer_has_begun_again() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    d.client.end_session()
    d.client.begin(remote_channel=None)
    d.server.disposition(0)
    assert certain(d) == []


def test_naming_a_delivery_does_not_show_that_all_of_it_was_read() -> None:
    """A flow between its transfers lowers the window; the receiver may have read only the first of them."""
    d = Dialogue()
    d.begun()
    d.attached(client={"name": "a"}, server={"name": "a"})
    d.client.attach(RECEIVER, 1, name="b")
    d.server.attach(SENDER, 1, name="b")
    d.client.flow(handle=1, link_credit=10)
    d.client.transfer(more=True)
    d.client.flow(incoming_window=1)
    d.client.transfer(delivery_id=0, more=True)
    state = amqp.received(section_number=0, section_offset=0)
    d.server.disposition(0, settled=None, state=state)
    d.server.transfer(handle=1)
    d.server.transfer(handle=1)
    assert found(d) == [("amqp10/S-WIN-IN", "server", False)]


def test_the_fields_of_an_attach_that_was_cut_are_not_known() -> None:
    for octets in (1, 12, 20, 30):
        d = Dialogue()
        d.begun()
        cut(d.client.attach(SENDER), octets)
        d.server.attach(RECEIVER)
        d.server.flow(handle=0)
        d.client.transfer()
        assert certain(d) == [], octets


def test_a_transfer_that_repeats_its_delivery_need_not_be_its_first() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(MESSAGE[:6], more=True)
    last = d.client.transfer(MESSAGE[6:], delivery_id=0, delivery_tag=bytes(4), message_format=0)
    d.capture.packets = [packet for packet in d.capture.packets if packet is last.packet]
    assert found(d) == []


def test_a_transfer_that_was_cut_does_not_end_its_delivery() -> None:
    d = Dialogue()
    d.linked()
    cut(d.client.transfer(MESSAGE[:6], more=True), 8)
    d.client.transfer(MESSAGE[6:])
    assert found(d) == []


def test_what_was_missed_may_have_begun_the_channel_again() -> None:
    d = Dialogue()
    d.begun()
    with d.missed():
        d.server.end_session()
        d.server.begin(remote_channel=None)
    d.server.flow(next_incoming_id=None)
    assert certain(d) == []


def test_a_session_meant_as_an_answer_may_be_taken_for_one() -> None:
    """The server's begin lacks the remote-channel: the client may still take it for the answer."""
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.server.begin(remote_channel=None)
    d.client.flow(next_incoming_id=0)
    assert certain(d) == []


def test_a_resumed_delivery_may_be_in_the_map_of_an_attach_that_was_missed() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(delivery_tag=b"a")
    with d.missed():
        d.client.detach(closed=None)
        d.server.detach(closed=None)
        d.client.attach(unsettled={b"a": None}, initial_delivery_count=1)
        d.server.attach(RECEIVER)
        d.server.flow(handle=0, link_credit=5)
    d.client.transfer(delivery_tag=b"a", resume=True)
    assert found(d) == []


def test_whether_to_resume_is_not_known_before_the_receivers_map_is_read() -> None:
    d = Dialogue()
    d.begun()
    half = amqp.received(section_number=0, section_offset=0)
    d.client.attach(unsettled={b"t": None})
    d.server.attach(RECEIVER, unsettled={b"t": half})
    d.client.transfer(delivery_tag=b"t")
    assert ("amqp10/D-RESUME-FLAG", "client", False) in found(d)
    assert ("amqp10/D-RESUME-FLAG", "client", True) not in found(d)


def test_a_receiver_may_not_have_read_that_outcomes_were_taken_back() -> None:
    d = Dialogue()
    few = amqp.source(address="q", outcomes=["amqp:accepted:list"])
    d.linked(client={"source": amqp.source(address="q", outcomes=["amqp:rejected:list"])})
    d.client.transfer()
    d.client.detach(closed=None)
    d.client.attach(source=few, initial_delivery_count=1)
    d.server.disposition(0, state=amqp.rejected())
    assert found(d) == []


def test_more_transactions_than_are_remembered() -> None:
    d = Dialogue()
    d.headers()
    record = next(iter(amqpscope.read(io.BytesIO(d.pcap()))))
    for known, expected in ((MAX_TRANSACTIONS, 2), (MAX_TRANSACTIONS + 1, 0)):
        case = Case10(record.connection)
        case.record = record
        case.me, case.peer = Endpoint10("client"), Endpoint10("server")
        case.ledger = Ledger()
        control = Control("client", 0, 0, "control", 1)
        for number in range(known):
            request = ControlRequest(control, number, 1, "declare", None)
            declared = Declared()
            declared.txn_id = b"%d" % number
            case.ledger.answer(request, declared, number, record)
        assert case.ledger.overfull == (known > MAX_TRANSACTIONS)
        transaction.judge_id(case, SessionEnd(0), b"new", "the peer sends a transfer")
        control_link.discharge_of_no_transaction(case, b"new")
        assert len(case.findings) == expected


def test_a_delivery_without_an_id_is_settled_unseen() -> None:
    """It is a fault of its own; that its tag stays in use for ever is not said on top."""
    d = Dialogue()
    d.linked()
    d.client.transfer(delivery_id=None, delivery_tag=b"t")
    d.client.transfer(delivery_id=0, delivery_tag=b"t")
    assert found(d) == [("amqp10/D-ID-PRESENT", "client", True)]


def test_of_what_was_missed_a_peer_may_have_read_a_part() -> None:
    """It is received when its first octet is: what is in it, and where that ends, nobody knows."""
    d = Dialogue()
    d.headers()
    with d.missed():
        d.server.open()
    d.server.begin(next_outgoing_id=7)
    d.server.begin(1)
    records = amqpscope.read(io.BytesIO(d.pcap()))
    skipped = next(record for record in records if record.frame.kind == "skipped")
    client = Endpoint10("client")
    client.deliver(skipped)
    client.catch_up(skipped.frame.offset, 0)
    assert client.whole
    client.catch_up(skipped.frame.offset + 1, 0)
    assert not client.whole


def test_a_sender_may_count_a_delivery_when_it_is_complete() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(MESSAGE[:6], more=True)
    d.client.flow(handle=0, delivery_count=0)
    d.client.transfer(MESSAGE[6:])
    d.server.flow(handle=0, delivery_count=1, next_incoming_id=2)
    assert found(d) == []


def test_a_delivery_counted_within_it_may_be_counted_by_the_receiver_when_it_is_complete() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(MESSAGE[:6], more=True)
    d.client.flow(handle=0, delivery_count=1, link_credit=9)
    d.client.transfer(MESSAGE[6:])
    d.server.flow(handle=0, delivery_count=2, next_incoming_id=2)
    assert found(d) == []
    d.server.flow(handle=0, delivery_count=3, next_incoming_id=2)
    assert found(d) == [("amqp10/L-DC-RECEIVER", "server", True)]


def test_what_was_right_before_a_wrong_flow_may_be_said_after_it() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    d.client.transfer()
    d.client.flow(next_outgoing_id=1)
    d.server.flow(next_incoming_id=2)
    assert found(d) == [("amqp10/S-FLOW-NEXTOUT", "client", True)]


def test_a_delivery_from_before_a_re_attach_is_settled_as_was_agreed_then() -> None:
    d = Dialogue()
    d.linked(client={"source": amqp.source(address="q", outcomes=["amqp:accepted:list"])})
    d.client.transfer()
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.client.attach(initial_delivery_count=1)
    d.server.attach(RECEIVER, rcv_settle_mode=1)
    d.server.disposition(0)
    assert found(d) == []


def test_a_delivery_begun_within_another_is_one_that_its_receiver_may_settle() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(MESSAGE[:6], more=True)
    d.client.transfer(delivery_id=1, delivery_tag=b"other")
    d.server.disposition(1)
    assert found(d) == [("amqp10/D-NOINTERLEAVE", "client", True)]


def test_which_flow_is_for_a_link_attached_again_too_soon_cannot_be_reported() -> None:
    """Reported by rhea and Proton: the receiver gave up a link and took it again before anything was
    answered."""
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER, name="x")
    d.client.detach(closed=True)
    d.server.attach(SENDER, name="x")
    d.client.attach(RECEIVER, name="x")
    d.client.flow(handle=0, link_credit=3)
    d.server.attach(SENDER, name="x", handle=1)
    d.server.transfer(handle=1)
    assert found(d) == []


def test_a_transfer_on_no_link_uses_up_its_delivery_id() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    d.client.attach(SENDER, name="y", handle=1)
    d.server.attach(RECEIVER, name="y", handle=1)
    d.server.flow(handle=1, link_credit=10)
    d.client.detach()
    d.client.transfer()
    d.client.transfer(handle=1)
    assert found(d) == [("amqp10/L-UNATTACHED-TRANSFER", "client", True)]


def test_an_id_that_goes_back_takes_none_from_those_behind_it() -> None:
    d = Dialogue()
    d.linked()
    for number in (0, 1, 0):
        d.client.transfer(delivery_id=number)
    d.server.disposition(1)
    assert [each for each in found(d) if each[1] == "server"] == []
    assert ("amqp10/D-ID-UNIQUE", "client", True) in found(d)


def test_what_is_acknowledged_with_the_first_octet_may_be_more_than_syn() -> None:
    """The server spoke first. Neither that was captured nor its answer to SYN: nothing begins here."""
    d = Dialogue()
    early = d.server.header()
    d.client.header()
    d.client.open()
    d.server.open()
    packets = d.capture.packets
    assert packets[3] is early.packet
    d.capture.packets[:] = [packets[0], *packets[4:]]
    assert found(d) == []


@pytest.mark.parametrize("lost", range(3))
def test_a_close_within_a_message_closes_nothing(lost: int) -> None:
    """A message carries AMQP traffic. Two packets are missing, and the search finds frames in the body."""
    d = Dialogue()
    d.linked()
    first = len(d.capture.packets)
    flow = amqp.frame(amqp.flow(incoming_window=5, next_outgoing_id=0, outgoing_window=5))
    body = bytes(3500) + 6 * (amqp.frame(amqp.close()) + 40 * flow)
    for at in range(0, len(body), 4000):
        d.client.transfer(amqp.data(body[at : at + 4000]), more=at + 4000 < len(body))
    del d.capture.packets[first + lost : first + lost + 2]
    d.server.flow(handle=0, link_credit=10)
    d.server.close()
    d.client.close()
    d.tcp.goodbye()
    assert certain(d) == []


@pytest.mark.parametrize("answers", [True, False])
def test_a_close_behind_a_hole_is_the_last_frame_if_it_answers_one(answers: bool) -> None:
    d = Dialogue()
    d.linked(credit=10)
    d.client.transfer()
    with d.missed():
        d.client.transfer()
    d.client.transfer()
    if answers:
        d.server.close()
    d.client.close()
    d.client.empty()
    late = ("amqp10/C-CLOSE-LAST", "client", True)
    assert certain(d) == ([late] if answers else [])


@pytest.mark.parametrize("too_many", [0, 1])
def test_more_begins_than_are_remembered_may_be_answered(too_many: int) -> None:
    d = Dialogue()
    d.opened()
    sessions = MAX_UNANSWERED + too_many
    with d.on_their_way():
        for _ in range(sessions):
            d.client.begin(remote_channel=None)
            d.client.frame(amqp.end(), channel=0)
    for _ in range(sessions):
        d.server.begin(remote_channel=0)
        d.server.frame(amqp.end(), channel=0)
    d.goodbye()
    assert found(d) == []


@pytest.mark.parametrize("header", [(0, 2, 0, 0), (0, 1, 1, 0), (1, 1, 0, 10), (5, 1, 0, 0)])
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_client_with_another_header_may_speak_before_the_server(
    header: tuple[int, int, int, int], frames: int
) -> None:
    d = Dialogue()
    d.client.header(*header)
    words = [d.client.open, d.client.begin, d.client.attach]
    with d.on_their_way():
        for word in words[:frames]:
            word()
        d.server.header()
    d.server.open()
    for word in words[frames:]:
        word()
    d.server.begin()
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.client.transfer()
    d.server.disposition(0)
    d.goodbye()
    assert [one for one in certain(d) if one[1] == "server"] == []
