"""Errors: conditions, and what is said with them."""

from __future__ import annotations

from scenarios.pairs import SAME, pair, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("C-ERR-SYMBOL", then=SAME)
def condition_that_nobody_defines(d: Dialogue) -> None:
    d.begun()
    said = d.server.end_session(error="amqp:internal-eror" if d.wrong else "amqp:internal-error")
    if d.wrong:
        said.may_break("C-ERR-SYMBOL")
    d.client.end_session()
    d.goodbye()


@pair("C-ERR-SCOPE", then=SAME)
def condition_of_another_frame(d: Dialogue) -> None:
    d.begun()
    said = d.server.end_session(
        error="amqp:connection:forced" if d.wrong else "amqp:session:unattached-handle"
    )
    if d.wrong:
        said.may_break("C-ERR-SCOPE")
    d.client.end_session()
    d.goodbye()


@pair("C-LOCALE-CHOICE", cut=without("client open"))
def description_in_another_script(d: Dialogue) -> None:
    d.opened(client={"incoming_locales": ["en-US"]})
    text = "внутренняя ошибка" if d.wrong else "internal error"
    error = amqp.error(condition="amqp:internal-error", description=text)
    said = d.server.frame(amqp.close(error=error))
    if d.wrong:
        said.may_break("C-LOCALE-CHOICE")
    d.client.close()
    d.tcp.goodbye()


@pair("L-REDIRECT-INFO", then=SAME)
def redirect_with_wrong_address(d: Dialogue) -> None:
    d.linked()
    info: dict[str, object] = {
        "hostname": "broker-2",
        "port": "5672" if d.wrong else amqp.ushort(5672),
        "address": "q",
    }
    error = amqp.error(condition="amqp:link:redirect", info=info)
    said = d.server.frame(amqp.detach(handle=0, closed=True, error=error))
    if d.wrong:
        said.breaks("L-REDIRECT-INFO")
    d.client.detach()
    d.goodbye()


@pair("L-UNSETTLED-INCOMPLETE")
def ended_for_a_map_that_does_not_fit(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, unsettled={b"\0": None})
    if d.wrong:
        d.server.end_session(error="amqp:frame-size-too-small").may_break("L-UNSETTLED-INCOMPLETE")
        d.client.end_session()
    else:
        d.server.attach(RECEIVER, unsettled={}, incomplete_unsettled=True)
    d.goodbye()
