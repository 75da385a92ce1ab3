"""Frames: their header, and what may stand in them."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported
from support import amqp10_encode as amqp
from support.amqp10_encode import raw
from support.dialogue import Dialogue


@pair("F-SIZE-MIN")
def frame_size_below_8(d: Dialogue) -> None:
    d.begun()
    if d.wrong:
        d.client.say(b"\0\0\0\7\2\0\0\0").breaks("F-SIZE-MIN")
    else:
        d.client.say(b"\0\0\0\x08\2\0\0\0")
    d.client.flow()
    d.client.end_session()
    d.server.end_session()
    d.goodbye()


@pair("F-DOFF-MIN")
def data_offset_below_2(d: Dialogue) -> None:
    d.begun()
    said = d.client.frame(amqp.flow(), doff=1) if d.wrong else d.client.flow()
    if d.wrong:
        said.breaks("F-DOFF-MIN")
    d.client.flow()
    d.goodbye()


@pair("F-DOFF-RANGE")
def data_offset_behind_the_frame(d: Dialogue) -> None:
    d.begun()
    said = d.client.frame(doff=3 if d.wrong else 2)
    if d.wrong:
        said.breaks("F-DOFF-RANGE")
    d.client.flow()
    d.goodbye()


@pair("F-TYPE-KNOWN")
def frame_of_unknown_type(d: Dialogue) -> None:
    d.begun()
    said = d.client.frame(amqp.end(), type=2) if d.wrong else d.client.end_session()
    if d.wrong:
        said.breaks("F-TYPE-KNOWN")
    d.client.close()
    d.server.close()
    d.tcp.goodbye()


@pair("F-BODY-PERF")
def body_that_is_no_performative(d: Dialogue) -> None:
    d.begun()
    said = d.client.frame(amqp.string("x")) if d.wrong else d.client.flow()
    if d.wrong:
        said.breaks("F-BODY-PERF")
    d.client.flow()
    d.goodbye()


@reported("a described value, and a composite, that are no performatives")
def other_bodies(d: Dialogue) -> None:
    d.begun()
    d.client.frame(amqp.described(0x19, amqp.list_([]))).breaks("F-BODY-PERF")
    d.client.frame(amqp.accepted()).breaks("F-BODY-PERF")
    d.goodbye()


@pair("F-BODY-PAYLOAD")
def octets_behind_a_flow(d: Dialogue) -> None:
    d.begun()
    said = d.client.frame(
        amqp.flow(next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=1),
        b"more" if d.wrong else b"",
    )
    if d.wrong:
        said.breaks("F-BODY-PAYLOAD")
    d.goodbye()


@pair("F-SIZE-TOTAL")
def stream_ends_inside_a_frame(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.server.disposition(0)
    d.server.close()
    if d.wrong:
        d.client.frame(d.client.amqp.close(), size=50).may_break("F-SIZE-TOTAL")
    else:
        d.client.close()
    d.client.fin()
    d.server.fin()


@legal("TL-CLOSENOTIFY")
def close_notify_of_one_side(d: Dialogue) -> None:
    hello = b"\x01\x00\x00\x2a\x03\x03" + bytes(38)
    d.client.header(2)
    d.server.header(2)
    d.client.say(b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello)
    d.server.say(b"\x16\x03\x03\x00\x04\x0e\x00\x00\x00")
    d.client.say(b"\x17\x03\x03\x00\x20" + bytes(range(32)))
    d.server.say(b"\x17\x03\x03\x00\x20" + bytes(range(32)))
    d.client.say(b"\x15\x03\x03\x00\x02\x01\x00")
    d.client.fin()
    d.server.fin()


@pair("F-TYPE-PHASE")
def sasl_frame_in_the_amqp_layer(d: Dialogue) -> None:
    d.headers()
    if d.wrong:
        d.client.init().breaks("F-TYPE-PHASE")
    d.client.open()
    d.server.open()
    d.goodbye()


@reported("an AMQP frame in the SASL layer")
def amqp_frame_in_the_sasl_layer(d: Dialogue) -> None:
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    d.client.begin().breaks("F-TYPE-PHASE")
    d.server.fin()
    d.client.fin()


@reported("many faults of encoding in one frame")
def two_faults_in_one_frame(d: Dialogue) -> None:
    d.headers()
    said = d.client.open(properties=[("a", raw("56 02")), ("b", raw("73 00 11 00 00"))])
    said.breaks("T-BOOL-OCTET").breaks("T-CHAR-UTF32")
    d.server.open()
    d.goodbye()
