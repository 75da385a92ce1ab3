"""One fault in a conversation in the draft: it is found, at the right peer, with the draft's section."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER, SENDER, Section, raw
from support.judged import judged

from amqpscope.rules.explanation import explanation

CLIENT, SERVER = "client", "server"
SIGNS = {"options": {}, "max_frame_size": 65536}


def piece(**fields: object) -> draft.Encoded:
    whole = next(draft.fragment_fields([draft.data(b"abcd")]))
    return draft.fragment(**{**whole, **fields})


def linked(d: Dialogue2011) -> None:
    d.linked(credit=2)
    d.client.transfer()


def with_transfer(**fields: object) -> Callable[[Dialogue2011], None]:
    def tell(d: Dialogue2011) -> None:
        linked(d)
        d.client.transfer(**fields)

    return tell


def fragments(*pieces: dict[str, object]) -> Callable[[Dialogue2011], None]:
    return with_transfer(fragments=[piece(**fields) for fields in pieces])


def sections(*those: Section) -> Callable[[Dialogue2011], None]:
    return with_transfer(payload=list(those))


def with_disposition(first: int, last: int | None = None, **fields: object) -> Callable[[Dialogue2011], None]:
    def tell(d: Dialogue2011) -> None:
        linked(d)
        d.server.disposition(first, last, **fields)

    return tell


def with_attach(role: bool = SENDER, **fields: object) -> Callable[[Dialogue2011], None]:
    def tell(d: Dialogue2011) -> None:
        d.begun()
        d.client.attach(role, **fields)
        d.server.attach(not role)

    return tell


def with_flow(**fields: object) -> Callable[[Dialogue2011], None]:
    def tell(d: Dialogue2011) -> None:
        linked(d)
        d.client.flow(**fields)

    return tell


def beyond_the_credit(d: Dialogue2011) -> None:
    d.linked(credit=2)
    for _ in range(3):
        d.client.transfer()


def beyond_the_window(d: Dialogue2011) -> None:
    d.begun(server={"incoming_window": 1})
    d.attached(credit=5)
    d.client.transfer()
    d.client.transfer()


def interleaved(d: Dialogue2011) -> None:
    linked(d)
    d.client.transfer(more=True, delivery_tag=b"t")
    d.client.transfer(delivery_tag=b"u")


def outcome_changed(d: Dialogue2011) -> None:
    linked(d)
    d.server.disposition(0, settled=None)
    d.server.disposition(0, state=draft.transfer_state(outcome=draft.modified(delivery_failed=True)))


def handle_twice(d: Dialogue2011) -> None:
    linked(d)
    d.client.attach(name="other")


def large_begin(d: Dialogue2011) -> None:
    d.client.header()
    d.server.header()
    d.client.open()
    d.client.begin(properties={"note": "x" * 5000})
    d.server.open()


def opened_with(**fields: object) -> Callable[[Dialogue2011], None]:
    def tell(d: Dialogue2011) -> None:
        d.headers()
        d.client.open(**fields)
        d.server.open()

    return tell


def opened_twice(d: Dialogue2011) -> None:
    d.opened()
    d.client.open()


def channel_beyond(d: Dialogue2011) -> None:
    d.opened(server={"channel_max": 3})
    d.client.begin(channel=9)


def resumed(flag: bool | None, transferred: int, start: int) -> Callable[[Dialogue2011], None]:
    def tell(d: Dialogue2011) -> None:
        held = draft.transfer_state(bytes_transferred=transferred)
        d.linked(client={"unsettled": {b"t": draft.transfer_state()}}, server={"unsettled": {b"t": held}})
        d.client.transfer(delivery_tag=b"t", resume=flag, fragments=[piece(section_offset=start)])

    return tell


def after_the_close(d: Dialogue2011) -> None:
    linked(d)
    d.client.close()
    d.client.transfer()


def another_mechanism(d: Dialogue2011) -> None:
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms("PLAIN")
    d.client.init("EXTERNAL")


def payload_behind(d: Dialogue2011) -> None:
    linked(d)
    fields = {"handle": 0, "delivery_tag": b"z", "transfer_id": 1, "message_format": 0}
    d.client.frame(draft.transfer(**fields), b"as in the final")


def unknown_transaction(d: Dialogue2011) -> None:
    linked(d)
    d.client.attach(handle=1, name="control", target=draft.coordinator())
    d.server.attach(RECEIVER, handle=1, name="control", target=draft.coordinator())
    d.client.transfer(state=draft.transfer_state(txn_id=b"9"))


def condition_of_the_final(d: Dialogue2011) -> None:
    linked(d)
    d.server.detach(error="amqp:link:redirect")


def not_answered(d: Dialogue2011) -> None:
    d.opened()
    d.client.begin()
    d.server.begin(remote_channel=5)


HEADER, PROPERTIES, DATA = draft.header(), draft.properties(), draft.data(b"a")

FAULTS: list[tuple[str, str, str, Callable[[Dialogue2011], None]]] = [
    ("L-CREDIT", "3.6.7", CLIENT, beyond_the_credit),
    ("S-WIN-IN", "3.5.6", CLIENT, beyond_the_window),
    ("D-ID-SEQ", "3.5.6", CLIENT, with_transfer(transfer_id=7)),
    ("D-NOINTERLEAVE", "3.6.14", CLIENT, interleaved),
    ("M-FRAG-ORDER", "3.6.11.2", CLIENT, fragments({"section_number": 1}, {"section_number": 0})),
    ("M-FRAG-CODE", "3.8.9", CLIENT, fragments({"last": False}, {"section_offset": 4, "section_code": 4})),
    ("M-FRAG-BOUNDS", "3.6.11.2", CLIENT, fragments({"last": False})),
    ("M-FRAG-OFFSET", "3.8.9", CLIENT, fragments({"section_offset": 9})),
    ("M-SECT-ONCE", "4.2", CLIENT, sections(HEADER, PROPERTIES, PROPERTIES)),
    ("M-SECT-ORDER", "4.2", CLIENT, sections(PROPERTIES, HEADER, DATA)),
    ("M-SECT-KNOWN", "4.2", CLIENT, sections(HEADER, Section(8, b"a"))),
    ("M-SECT-TYPE", "4.2.1", CLIENT, sections(draft.section("header", draft.list_([True])))),
    ("T-COMP-MULT-TRUE", "2.3", CLIENT, with_transfer(fragments=draft.list_([piece(), piece()]))),
    ("T-CODE-LATER", "2.2.5", CLIENT, with_flow(outgoing_window=raw("43"))),
    ("T-STR-UTF16", "2.2.2", CLIENT, opened_with(**SIGNS, properties=[("k", raw("a2 01 41"))])),
    ("P-TRANSFER-MAND", "3.7.5", CLIENT, with_transfer(delivery_tag=None)),
    ("P-FLOW-MAND", "3.7.4", CLIENT, with_flow(incoming_window=None)),
    ("S-FLOW-NOHANDLE-DC", "3.7.4", CLIENT, with_flow(transfer_count=1)),
    ("D-DISP-UNKNOWN", "3.6.13", SERVER, with_disposition(9)),
    ("D-DISP-ROLE", "3.7.6", SERVER, with_disposition(0, role=SENDER, state=None)),
    ("D-DISP-RANGE", "3.7.6", SERVER, with_disposition(0, 0xFFFFFFFF)),
    ("D-STATE-FINAL-RCV", "3.6.12", SERVER, outcome_changed),
    ("L-UNATTACHED-FLOW", "3.7.4", CLIENT, with_flow(handle=5, transfer_count=0)),
    ("L-UNATTACHED-TRANSFER", "3.7.5", CLIENT, with_transfer(handle=5)),
    ("L-HANDLE-INUSE", "3.7.3", CLIENT, handle_twice),
    ("C-PIPE-SIZE", "3.4.1", CLIENT, large_begin),
    ("C-MAXFRAME-FLOOR", "3.7.1", CLIENT, opened_with(options={}, max_frame_size=512)),
    ("C-OPEN-ONCE", "3.4.6", CLIENT, opened_twice),
    ("C-CHMAX", "3.7.1", CLIENT, channel_beyond),
    ("S-BEGIN-REMOTEVALID", "3.7.2", SERVER, not_answered),
    ("L-ATTACH-IDC", "3.7.3", CLIENT, with_attach(initial_transfer_count=None)),
    ("D-RESUME-FLAG", "3.6.13", CLIENT, resumed(None, 0, 0)),
    ("D-RESUME-OMIT", "3.6.13", CLIENT, resumed(True, 10, 20)),
    ("T-COMP-REQUIRES", "3.7.5", CLIENT, with_attach(target=draft.target(dynamic=raw("41")))),
    ("T-ENUM-EXPIRY", "4.5.3", CLIENT, with_attach(target=draft.target(expiry_policy="link-detach"))),
    ("C-ERR-SYMBOL", "3.8.12", SERVER, condition_of_the_final),
    ("C-CLOSE-LAST", "3.4.3", CLIENT, after_the_close),
    ("SA-INIT-OFFERED", "6.3.2", CLIENT, another_mechanism),
    ("F-BODY-PAYLOAD", "3.3.2", CLIENT, payload_behind),
    ("TX-STATE-KNOWN", "5.1", CLIENT, unknown_transaction),
]


@pytest.mark.parametrize(("name", "section", "peer", "tell"), FAULTS, ids=[one[0] for one in FAULTS])
def test_it_is_found(name: str, section: str, peer: str, tell: Callable[[Dialogue2011], None]) -> None:
    d = Dialogue2011()
    for speaker in (d.client, d.server):
        speaker.introduction = dict(SIGNS)
    tell(d)
    while_read, at_end = judged(d.pcap())
    rule = f"amqp10-draft2011/{name}"
    found = [finding for finding in while_read + at_end if finding.rule == rule]
    assert [finding.peer for finding in found] == [peer], [str(one.rule) for one in while_read + at_end]
    others = {finding.rule for finding in while_read + at_end if finding.certain} - {rule}
    assert not others
    words = explanation(rule)
    assert words is not None and f" {section}" in words.source
