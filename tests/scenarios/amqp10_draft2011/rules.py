"""Rules that the draft has in other words, or alone: sizes, transfer-ids, fragments and sections."""

from __future__ import annotations

from functools import partial
from typing import Any

from scenarios import pairs
from scenarios.pairs import SAME, reported, without
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011

LARGE = 4096

# By its options, and by a number of the type that the draft has there, each open shows the dialect at once.
SIGNS = {"options": {}, "max_frame_size": 65536}

pair = partial(pairs.pair, introduction=SIGNS)


@pair("C-MAXFRAME", cut=without("server open"))
def frame_larger_than_agreed(d: Dialogue2011) -> None:
    d.opened(server={"max_frame_size": LARGE})
    d.client.begin()
    d.server.begin()
    d.attached()
    said = d.client.transfer([draft.data(b"x" * (4100 if d.wrong else 3900))])
    if d.wrong:
        said.breaks("C-MAXFRAME")
    d.goodbye()


@pair("C-MAXFRAME", "C-MAXFRAME-REACT", cut=without("server open"))
def oversized_frame_is_taken(d: Dialogue2011) -> None:
    d.opened(server={"max_frame_size": LARGE})
    d.client.begin()
    d.server.begin()
    d.attached()
    said = d.client.transfer([draft.data(b"x" * (4100 if d.wrong else 3900))])
    answer = d.server.disposition(0)
    if d.wrong:
        said.breaks("C-MAXFRAME")
        answer.breaks("C-MAXFRAME-REACT")
    d.goodbye()


@pair("C-MAXFRAME", "C-CLOSE-REASON", cut=without("server open"))
def closed_without_a_reason(d: Dialogue2011) -> None:
    d.opened(server={"max_frame_size": LARGE})
    d.client.begin()
    d.server.begin()
    d.attached()
    said = d.client.transfer([draft.data(b"x" * (4100 if d.wrong else 3900))])
    answer = d.server.close()
    if d.wrong:
        said.breaks("C-MAXFRAME")
        answer.may_break("C-CLOSE-REASON")
    d.client.close()
    d.tcp.goodbye()


@pair("C-OPEN-SIZE", cut=without("server header"))
def open_larger_than_4096_octets(d: Dialogue2011) -> None:
    d.client.header()
    d.server.header().called("server header")
    said = d.client.open(properties={"note": "x" * (4100 if d.wrong else 3900)})
    if d.wrong:
        said.breaks("C-OPEN-SIZE")
    d.server.open()
    d.goodbye()


@pair("C-PIPE-SIZE", cut=without("server header"))
def pipelined_frame_larger_than_4096_octets(d: Dialogue2011) -> None:
    d.client.header()
    d.server.header().called("server header")
    d.client.open()
    said = d.client.begin(properties={"note": "x" * (4100 if d.wrong else 3900)})
    if d.wrong:
        said.breaks("C-PIPE-SIZE")
    d.server.open()
    d.server.begin()
    d.goodbye()


@pair("C-MAXFRAME-FLOOR", then=SAME)
def max_frame_size_below_the_floor(d: Dialogue2011) -> None:
    d.headers()
    said = d.client.open(max_frame_size=4095 if d.wrong else LARGE)
    if d.wrong:
        said.breaks("C-MAXFRAME-FLOOR")
    d.server.open()
    d.goodbye()


@pair("SA-FRAME-512", then=SAME)
def sasl_frame_larger_than_4096_octets(d: Dialogue2011) -> None:
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    said = d.client.init(initial_response=b"x" * (4100 if d.wrong else 3900))
    if d.wrong:
        said.breaks("SA-FRAME-512")
    d.server.outcome()
    d.opened()
    d.goodbye()


@pair("C-IDLE-HALF")
def given_up_at_what_was_announced(d: Dialogue2011) -> None:
    d.opened(client={"idle_time_out": 1000})
    d.client.begin()
    d.server.begin()
    d.wait(milliseconds=1010 if d.wrong else 2010)
    error = draft.error(condition="amqp:resource-limit-exceeded")
    said = d.client.frame(draft.close(options={}, error=error))
    if d.wrong:
        said.may_break("C-IDLE-HALF")
    d.client.fin()


@pair("P-TRANSFER-MAND")
def transfer_without_a_mandatory_field(d: Dialogue2011) -> None:
    d.linked()
    if d.wrong:
        d.client.transfer(message_format=None).breaks("P-TRANSFER-MAND")
    else:
        d.client.transfer()
    d.goodbye()


@pair("L-ATTACH-IDC", cut=without("client begin"), then=SAME)
def sender_without_initial_transfer_count(d: Dialogue2011) -> None:
    d.begun()
    said = d.client.attach(initial_transfer_count=None if d.wrong else 0)
    if d.wrong:
        said.breaks("L-ATTACH-IDC")
    d.server.attach(draft.RECEIVER)
    d.goodbye()


@pair("D-ID-SEQ", cut=without("client begin"))
def transfer_id_out_of_sequence(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer()
    d.client.transfer([draft.data(b"a" * 50)], more=True)
    said = d.client.transfer(transfer_id=1 if d.wrong else 2)
    if d.wrong:
        said.breaks("D-ID-SEQ")
    d.goodbye()


@reported("the transfer-ids begin with another one than the begin says")
def other_first_transfer_id(d: Dialogue2011) -> None:
    d.begun(client={"next_outgoing_id": 7})
    d.attached()
    d.client.transfer(transfer_id=1).breaks("D-ID-SEQ")
    d.client.transfer(transfer_id=2)
    d.goodbye()


@pair("D-NOINTERLEAVE", cut=without("client attach"))
def deliveries_interleave(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer([draft.data(b"a")], more=True, delivery_tag=b"t")
    if not d.wrong:
        d.client.transfer(delivery_tag=b"t")
    said = d.client.transfer([draft.data(b"b")], delivery_tag=b"u")
    if d.wrong:
        said.breaks("D-NOINTERLEAVE")
    d.goodbye()


@pair("D-RESUME-BOTH", cut=without("server attach"))
def left_without_resuming(d: Dialogue2011) -> None:
    held = {b"t": draft.transfer_state(bytes_transferred=0)}
    d.linked(client={"unsettled": held}, server={"unsettled": held})
    d.client.transfer(delivery_tag=b"new")
    if not d.wrong:
        d.client.transfer(delivery_tag=b"t", resume=True)
    said = d.client.detach()
    if d.wrong:
        said.may_break("D-RESUME-BOTH")
    d.server.detach()
    d.goodbye()


@pair("D-RESUME-FLAG", cut=without("server attach"))
def resumed_without_the_flag(d: Dialogue2011) -> None:
    half = draft.transfer_state(bytes_transferred=0)
    d.linked(client={"unsettled": {b"t": None}}, server={"unsettled": {b"t": half}})
    said = d.client.transfer(delivery_tag=b"t", resume=None if d.wrong else True)
    if d.wrong:
        said.breaks("D-RESUME-FLAG")
    d.goodbye()


@pair("D-RESUME-TGTONLY", cut=without("server attach"))
def listed_again_though_only_the_target_has_it(d: Dialogue2011) -> None:
    held = {b"t": draft.transfer_state(outcome=draft.accepted())}
    d.linked(client={"unsettled": {}}, server={"unsettled": held})
    d.client.transfer(delivery_tag=b"u")
    d.server.disposition(0)
    d.server.detach(closed=None)
    d.client.detach(closed=None)
    d.client.attach(unsettled={}, initial_transfer_count=1)
    said = d.server.attach(draft.RECEIVER, unsettled=held if d.wrong else {})
    if d.wrong:
        said.breaks("D-RESUME-TGTONLY")
    d.goodbye()


def _fragment(**fields: object) -> draft.Encoded:
    given = {
        "first": True,
        "last": True,
        "section_code": 3,
        "section_number": 0,
        "section_offset": 0,
        "payload": b"abcd",
    }
    return draft.fragment(**{**given, **fields})


@pair("M-FRAG-ORDER", cut=without("client attach"))
def fragment_out_of_order(d: Dialogue2011) -> None:
    d.linked()
    numbers = (1, 0) if d.wrong else (0, 1)
    said = d.client.transfer(fragments=[_fragment(section_number=number) for number in numbers])
    if d.wrong:
        said.breaks("M-FRAG-ORDER")
    d.goodbye()


@pair("M-FRAG-CODE", cut=without("client attach"))
def section_code_changed(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer(fragments=[_fragment(last=False)], more=True)
    code = 4 if d.wrong else 3
    said = d.client.transfer(fragments=[_fragment(first=False, section_offset=4, section_code=code)])
    if d.wrong:
        said.breaks("M-FRAG-CODE")
    d.goodbye()


@pair("M-FRAG-BOUNDS", cut=without("client attach"))
def flags_against_the_numbers(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer(fragments=[_fragment(last=bool(d.wrong))], more=True)
    said = d.client.transfer(fragments=[_fragment(first=False, section_offset=4)])
    if d.wrong:
        said.breaks("M-FRAG-BOUNDS")
    d.goodbye()


@reported("a section begins without first, one begins where none has ended, one begins twice")
def other_flags_against_the_numbers(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer(fragments=[_fragment(first=False)]).breaks("M-FRAG-BOUNDS")
    d.client.transfer(fragments=[_fragment(last=False), _fragment(section_number=1)]).breaks("M-FRAG-BOUNDS")
    twice = [_fragment(last=False), _fragment(section_offset=4)]
    d.client.transfer(fragments=twice).breaks("M-FRAG-BOUNDS")
    d.goodbye()


@pair("M-FRAG-OFFSET", cut=without("client attach"))
def offset_that_does_not_follow(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer(fragments=[_fragment(last=False)], more=True)
    offset = 8 if d.wrong else 4
    said = d.client.transfer(fragments=[_fragment(first=False, section_offset=offset)])
    if d.wrong:
        said.breaks("M-FRAG-OFFSET")
    d.goodbye()


@pair("M-SECT-ORDER", cut=without("client attach"))
def header_that_is_not_the_first_section(d: Dialogue2011) -> None:
    d.linked()
    sections = [draft.header(durable=True), draft.properties(), draft.data(b"a"), draft.footer()]
    if d.wrong:
        sections = [draft.properties(), draft.header(durable=True), draft.data(b"a"), draft.footer()]
    said = d.client.transfer(sections)
    if d.wrong:
        said.may_break("M-SECT-ORDER")
    d.goodbye()


@reported("data before the properties, and behind the footer")
def other_sections_at_the_wrong_place(d: Dialogue2011) -> None:
    d.linked()
    late = [draft.header(), draft.data(b"a"), draft.properties()]
    d.client.transfer(late).may_break("M-SECT-ORDER")
    early = [draft.header(), draft.properties(), draft.footer(), draft.data(b"a")]
    d.client.transfer(early).may_break("M-SECT-ORDER")
    d.goodbye()


@pair("M-SECT-ONCE", cut=without("client attach"))
def section_sent_twice(d: Dialogue2011) -> None:
    d.linked()
    sections = [draft.header(), draft.properties(), draft.data(b"a")]
    said = d.client.transfer([*sections, *([draft.properties()] if d.wrong else [])])
    if d.wrong:
        said.breaks("M-SECT-ONCE")
    d.goodbye()


def _session_flow(d: Dialogue2011, rule: str, **field: Any) -> None:
    d.begun()
    said = d.client.flow(**(field if d.wrong else {}))
    if d.wrong:
        said.breaks(rule)
    d.goodbye()


@pair("S-FLOW-NOHANDLE-DC", cut=without("client begin"), then=SAME)
def session_flow_with_transfer_count(d: Dialogue2011) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-DC", transfer_count=0)


@pair("S-FLOW-NOHANDLE-CREDIT", cut=without("client begin"), then=SAME)
def session_flow_with_link_credit(d: Dialogue2011) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-CREDIT", link_credit=5)


@pair("S-FLOW-NOHANDLE-AVAIL", cut=without("client begin"), then=SAME)
def session_flow_with_available(d: Dialogue2011) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-AVAIL", available=1)


@pair("S-FLOW-NOHANDLE-DRAIN", cut=without("client begin"), then=SAME)
def session_flow_with_drain(d: Dialogue2011) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-DRAIN", drain=True)


@pair("T-SIZE-OVERRUN")
def value_behind_the_end_of_the_frame(d: Dialogue2011) -> None:
    d.linked()
    if d.wrong:
        # A detach whose handle is a string of 127 octets.
        d.client.frame(draft.raw("00 53 16 c0 05 02 40 a1 7f 63")).breaks("T-SIZE-OVERRUN")
    d.goodbye()


@pair("C-LOCALE-CHOICE", cut=without("client open"))
def description_in_another_script(d: Dialogue2011) -> None:
    d.opened(client={"incoming_locales": ["en_US"], "max_frame_size": 65536})
    text = "внутренняя ошибка" if d.wrong else "internal error"
    error = draft.error(condition="amqp:internal-error", description=text)
    said = d.server.frame(draft.close(error=error))
    if d.wrong:
        said.may_break("C-LOCALE-CHOICE")
    d.client.close()
    d.tcp.goodbye()
