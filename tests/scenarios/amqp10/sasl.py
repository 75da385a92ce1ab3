"""The SASL layer."""

from __future__ import annotations

from scenarios.pairs import SAME, legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import Dialogue


def _layer(d: Dialogue) -> None:
    d.client.header(3)
    d.server.header(3).called("server header")


def _on(d: Dialogue) -> None:
    d.opened()
    d.goodbye()


@pair("SA-OK-HDR", cut=without("server header"))
def no_header_after_the_outcome(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    d.server.outcome()
    if d.wrong:
        d.client.open().breaks("SA-OK-HDR")
        d.server.header()
        d.server.open()
        d.server.close()
        d.server.fin()
    else:
        _on(d)


@pair("SA-OK-HDR-EARLY", cut=without("server header"))
def header_before_the_outcome(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    if d.wrong:
        d.client.header().breaks("SA-OK-HDR-EARLY")
    d.server.outcome()
    d.server.header()
    if not d.wrong:
        d.client.header()
    d.client.open()
    d.server.open()
    d.goodbye()


@pair("SA-FAIL-STOP", cut=without("outcome"))
def header_after_failure(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    d.server.outcome(1 if d.wrong else 0).called("outcome")
    said = d.server.header()
    if d.wrong:
        said.breaks("SA-FAIL-STOP")
        d.server.fin()
        d.client.fin()
    else:
        d.client.header()
        d.client.open()
        d.server.open()
        d.goodbye()


@reported("a client that goes on after failure may not have read of it")
def client_goes_on_after_failure(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    d.server.outcome(1)
    d.client.header().may_break("SA-FAIL-STOP")
    d.server.fin()
    d.client.fin()


@pair("SA-FRAME-512", then=SAME)
def frame_larger_than_512_octets(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    said = d.client.init(initial_response=b"x" * (500 if d.wrong else 300))
    if d.wrong:
        said.breaks("SA-FRAME-512")
    d.server.outcome()
    _on(d)


@pair("SA-FRAME-DOFF")
def frame_with_extended_header(d: Dialogue) -> None:
    _layer(d)
    said = d.server.mechanisms(extended=b"\0\0\0\0" if d.wrong else b"")
    if d.wrong:
        said.breaks("SA-FRAME-DOFF")
    d.client.init()
    d.server.outcome()
    _on(d)


@pair("SA-FRAME-BYTES67", then=SAME)
def frame_with_octets_6_and_7(d: Dialogue) -> None:
    _layer(d)
    said = d.server.mechanisms(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("SA-FRAME-BYTES67")
    d.client.init()
    d.server.outcome()
    _on(d)


@pair("SA-ROLE")
def role_reversed(d: Dialogue) -> None:
    _layer(d)
    if d.wrong:
        d.client.mechanisms().breaks("SA-ROLE")
        d.client.fin()
        d.server.fin()
        return
    d.server.mechanisms()
    d.client.init()
    d.server.outcome()
    _on(d)


@pair("SA-MECH-FIRST", cut=without("server header"))
def first_frame_is_not_mechanisms(d: Dialogue) -> None:
    _layer(d)
    if d.wrong:
        d.server.outcome(1).breaks("SA-MECH-FIRST")
        d.server.fin()
        d.client.fin()
        return
    d.server.mechanisms()
    d.client.init()
    d.server.outcome()
    _on(d)


@pair("SA-INIT-AFTER", cut=without("server header"))
def init_before_the_mechanisms(d: Dialogue) -> None:
    _layer(d)
    if d.wrong:
        d.client.init().breaks("SA-INIT-AFTER")
        d.server.mechanisms()
    else:
        d.server.mechanisms()
        d.client.init()
    d.server.outcome()
    _on(d)


@pair("SA-INIT-OFFERED", cut=without("mechanisms"))
def mechanism_not_offered(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms("ANONYMOUS", "EXTERNAL" if d.wrong else "PLAIN").called("mechanisms")
    said = d.client.init("PLAIN")
    if d.wrong:
        said.breaks("SA-INIT-OFFERED")
    d.server.outcome(1)
    d.server.fin()
    d.client.fin()


@pair("SA-INIT-ONCE")
def second_init(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    if d.wrong:
        d.client.init().breaks("SA-INIT-ONCE")
    d.server.outcome()
    _on(d)


@pair("SA-SEQ-CHAL", cut=without("server header"))
def challenge_out_of_turn(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    if d.wrong:
        d.server.challenge().breaks("SA-SEQ-CHAL")
        d.client.init()
    else:
        d.client.init()
        d.server.challenge()
    d.client.response()
    d.server.outcome()
    _on(d)


@pair("SA-SEQ-INIT", cut=without("server header"))
def success_before_init(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    if d.wrong:
        d.server.outcome().breaks("SA-SEQ-INIT")
        d.server.fin()
        d.client.fin()
    else:
        d.client.init()
        d.server.outcome()
        _on(d)


@legal("a server may refuse before anybody has logged in")
def failure_before_init(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.server.outcome(3)
    d.server.fin()
    d.client.fin()


@pair("SA-OK-HDR", cut=without("server header"))
def sasl_again_after_the_outcome(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    d.server.outcome()
    if d.wrong:
        d.client.header(3).breaks("SA-OK-HDR")
        d.server.fin()
        d.client.fin()
    else:
        _on(d)


@pair("C-HDR-FIRST")
def sasl_frame_before_any_header(d: Dialogue) -> None:
    if d.wrong:
        d.server.header(3)
        d.server.mechanisms()
        d.client.init().breaks("C-HDR-FIRST")
        d.server.fin()
        d.client.fin()
    else:
        _layer(d)
        d.server.mechanisms()
        d.client.init()
        d.server.outcome()
        _on(d)


@pair("SA-SEQ-RESP", cut=without("server header"))
def response_without_challenge(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    d.server.challenge()
    d.client.response()
    if d.wrong:
        d.client.response().breaks("SA-SEQ-RESP")
    d.server.outcome()
    _on(d)


@pair("SA-SEQ-OUTCOME", cut=without("outcome"))
def frame_after_outcome(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    if not d.wrong:
        d.server.challenge()
        d.client.response()
    d.server.outcome().called("outcome")
    if d.wrong:
        d.server.challenge().breaks("SA-SEQ-OUTCOME")
    _on(d)


@pair("SA-OUTCOME-DATA", then=SAME)
def outcome_data_on_failure(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    said = d.server.outcome(1, additional_data=b"x" if d.wrong else None)
    if d.wrong:
        said.breaks("SA-OUTCOME-DATA")
    d.server.fin()
    d.client.fin()


@pair("SA-FRAME-EMPTY")
def empty_sasl_frame(d: Dialogue) -> None:
    _layer(d)
    if d.wrong:
        d.server.sasl_frame().breaks("SA-FRAME-EMPTY")
    d.server.mechanisms()
    d.client.init()
    d.server.outcome()
    _on(d)


@pair("SA-FRAME-BODY")
def sasl_frame_with_another_body(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    if d.wrong:
        d.client.sasl_frame(amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)).breaks(
            "SA-FRAME-BODY"
        )
        d.server.fin()
        d.client.fin()
        return
    d.client.init()
    d.server.outcome()
    _on(d)


@reported("octets behind a SASL frame's value")
def octets_behind_the_value(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.sasl_frame(amqp.sasl_init(mechanism="PLAIN"), b"more").breaks("SA-FRAME-BODY")
    d.server.outcome(1)
    d.server.fin()
    d.client.fin()


@legal("authenticated, with challenges")
def challenges_and_responses(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms("SCRAM-SHA-1", "PLAIN")
    d.client.init("SCRAM-SHA-1")
    for _ in range(2):
        d.server.challenge()
        d.client.response()
    d.server.outcome(additional_data=b"v=1")
    _on(d)


@pair("SA-FRAME-TYPE", cut=without("client header"))
def sasl_value_in_an_amqp_frame(d: Dialogue) -> None:
    d.client.header(3).called("client header")
    d.server.header(3)
    d.server.mechanisms("ANONYMOUS")
    body = amqp.sasl_init(mechanism="ANONYMOUS")
    if d.wrong:
        d.client.frame(body).breaks("SA-FRAME-TYPE")
        d.server.fin()
        d.client.fin()
    else:
        d.client.sasl_frame(body)
        d.server.outcome()
        _on(d)


@pair("SA-INIT-OFFERED", "SA-INIT-UNSUP", cut=without("mechanisms"))
def mechanism_accepted_that_was_not_offered(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms("SCRAM-SHA-256").called("mechanisms")
    said = d.client.init("PLAIN" if d.wrong else "SCRAM-SHA-256")
    outcome = d.server.outcome()
    if d.wrong:
        said.breaks("SA-INIT-OFFERED")
        outcome.breaks("SA-INIT-UNSUP")
    _on(d)


@pair("SA-FAIL-CLOSE", cut=without("outcome"))
def reset_after_failure(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init()
    d.server.outcome(1).called("outcome")
    if d.wrong:
        d.server.rst().may_break("SA-FAIL-CLOSE")
    else:
        d.server.fin()
        d.client.fin()


@pair("C-OPEN-HOST", cut=without("init"))
def other_host_than_in_sasl(d: Dialogue) -> None:
    _layer(d)
    d.server.mechanisms()
    d.client.init(hostname="broker.example").called("init")
    d.server.outcome()
    d.headers()
    said = d.client.open(hostname="other.example" if d.wrong else "broker.example")
    if d.wrong:
        said.breaks("C-OPEN-HOST")
    d.server.open()
    d.goodbye()
