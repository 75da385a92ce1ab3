"""What is refused and may not be, or accepted and may not be."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, starting_at, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

DATA = amqp.data(b"x")
ACCEPTED, REJECTED = "amqp:accepted:list", "amqp:rejected:list"


def _detached_over(d: Dialogue, message: bytes, condition: str, rule: str, **source: object) -> None:
    """A delivery that the server answers with a detach."""
    d.linked(client={"source": amqp.source(address="q", **source)})
    d.client.transfer(message).called("transfer")
    said = d.server.detach(error=condition)
    if d.wrong and rule:
        said.may_break(rule)
    d.client.detach()
    d.goodbye()


@pair("M-ANN-XOPT-IGNORE", cut=without("transfer"), spec="csprd02")
def optional_annotation_refused(d: Dialogue) -> None:
    key = "x-opt-trace" if d.wrong else "x-trace"
    message = amqp.message_annotations({key: "1"}) + DATA
    _detached_over(d, message, "amqp:not-implemented", "M-ANN-XOPT-IGNORE")


@legal("the final text only implies that annotations may be ignored")
def optional_annotation_refused_by_the_final_text(d: Dialogue) -> None:
    d.wrong = False
    message = amqp.message_annotations({"x-opt-trace": "1"}) + DATA
    _detached_over(d, message, "amqp:not-implemented", "")


@reported("a reserved key beside one that may be ignored is refused", spec="csprd02")
def reserved_key_beside_an_optional_one(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(amqp.message_annotations({"x-opt-trace": "1"}) + DATA)
    said = d.client.transfer(amqp.message_annotations({"x-opt-trace": "1", "trace": "1"}) + DATA)
    said.may_break("M-ANN-RESERVED")
    d.server.detach(error="amqp:not-implemented")
    d.client.detach()
    d.goodbye()


@pair("M-ANN-UNKNOWN-DETACH", "M-ANN-RESERVED", cut=without("transfer"))
def reserved_annotation_accepted(d: Dialogue) -> None:
    d.linked()
    key = "trace" if d.wrong else "x-opt-trace"
    said = d.client.transfer(amqp.message_annotations({key: "1"}) + DATA).called("transfer")
    if d.wrong:
        said.may_break("M-ANN-RESERVED")
    said = d.server.disposition(0)
    if d.wrong:
        said.may_break("M-ANN-UNKNOWN-DETACH")
    d.goodbye()


@reported("a reserved annotation that is not accepted")
def reserved_annotation_not_accepted(d: Dialogue) -> None:
    d.linked()
    message = amqp.message_annotations({"trace": "1"}) + DATA
    d.client.transfer(message).may_break("M-ANN-RESERVED")
    d.client.transfer(message)
    d.client.transfer(DATA)
    d.server.disposition(0, state=amqp.released())
    d.server.disposition(2)
    d.server.detach(error="amqp:not-implemented")
    d.client.detach()
    d.goodbye()


@pair("M-HDR-DURABLE-REJECT", cut=without("transfer"))
def durable_message_refused_by_detach(d: Dialogue) -> None:
    message = amqp.header(durable=True if d.wrong else None) + DATA
    _detached_over(
        d, message, "amqp:precondition-failed", "M-HDR-DURABLE-REJECT", outcomes=[ACCEPTED, REJECTED]
    )


@legal("a durable message that cannot be rejected, or was")
def durable_message_that_cannot_be_rejected(d: Dialogue) -> None:
    d.wrong = False
    d.linked(client={"source": amqp.source(address="q", outcomes=[ACCEPTED])})
    d.client.transfer(amqp.header(durable=True) + DATA)
    d.server.detach(error="amqp:precondition-failed")
    d.client.detach()
    d.client.attach(name="r", source=amqp.source(address="q", outcomes=[ACCEPTED, REJECTED]))
    d.server.attach(RECEIVER, name="r")
    d.server.flow(handle=0)
    d.client.transfer(amqp.header(durable=True, priority=4) + DATA)
    d.server.disposition(1, state=amqp.rejected())
    d.server.detach(error="amqp:precondition-failed")
    d.client.detach()
    d.goodbye()


@pair("M-OUTCOMES-ACCEPTED", cut=starting_at("accepted"))
def accepted_refused(d: Dialogue) -> None:
    source = {} if d.wrong else {"outcomes": [ACCEPTED]}
    d.linked(client={"source": amqp.source(address="q", **source)})
    d.client.transfer(DATA)
    d.server.disposition(0).called("accepted")
    said = d.client.detach(error="amqp:not-allowed")
    if d.wrong:
        said.may_break("M-OUTCOMES-ACCEPTED")
    d.server.detach()
    d.goodbye()


@legal("errors after accepted that are about something else")
def errors_after_accepted(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(DATA)
    d.server.disposition(0)
    d.client.transfer(DATA)
    d.client.detach(error="amqp:not-allowed")
    d.server.detach()
    d.client.attach(name="r", source=amqp.source(address="q", default_outcome=amqp.released()))
    d.server.attach(RECEIVER, name="r")
    d.server.flow(handle=0)
    d.client.transfer(DATA)
    d.server.disposition(2)
    d.client.detach(error="amqp:not-allowed")
    d.server.detach()
    d.goodbye()


@pair("T-COMP-MULT-EMPTY", cut=without("attach"))
def empty_array_refused(d: Dialogue) -> None:
    d.begun()
    capabilities = amqp.raw("e0 02 00 a3") if d.wrong else None
    d.client.attach(target=amqp.target(address="q", capabilities=capabilities)).called("attach")
    d.server.attach(RECEIVER, target=None)
    said = d.server.detach(error="amqp:invalid-field")
    if d.wrong:
        said.may_break("T-COMP-MULT-EMPTY")
    d.client.detach()
    d.goodbye()


@reported("an open with an array of no values")
def empty_array_in_an_open_refused(d: Dialogue) -> None:
    d.headers()
    d.client.open(desired_capabilities=amqp.raw("e0 02 00 a3"))
    d.server.open()
    d.server.close(error="amqp:decode-error").may_break("T-COMP-MULT-EMPTY")
    d.client.close()
    d.tcp.goodbye()


@legal("an error long after an array of no values")
def errors_after_an_empty_array(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER, source=amqp.source(address="q", outcomes=amqp.raw("e0 02 00 a3")))
    d.server.attach(SENDER)
    d.client.flow(handle=0)
    d.server.transfer()
    d.server.detach(error="amqp:invalid-field")
    d.client.detach()
    d.goodbye()
