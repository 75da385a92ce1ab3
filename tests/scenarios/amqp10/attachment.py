"""Attaching: handles, roles, refusals, re-attaches."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("L-HANDLE-LOWEST", cut=without("client begin"))
def handle_that_is_not_the_lowest(d: Dialogue) -> None:
    d.begun()
    handle = 3 if d.wrong else 0
    said = d.client.attach(SENDER, handle=handle)
    if d.wrong:
        said.breaks("L-HANDLE-LOWEST")
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.client.transfer(handle=handle)
    d.server.disposition(0)
    d.goodbye()


@legal("a handle is not free before its detach is answered")
def handle_is_not_free_yet(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.detach()
        d.client.attach(SENDER, handle=1, name="r")
        d.server.flow(handle=0)
    d.server.detach()
    d.server.attach(RECEIVER, handle=0, name="r")
    d.client.attach(SENDER, handle=0, name="s")
    d.server.attach(RECEIVER, handle=1, name="s")
    d.goodbye()


@pair("L-HANDLE-REUSE", cut=without("client attach"))
def handle_not_free_for_both(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.detach()
        said = d.client.attach(SENDER, handle=0 if d.wrong else 1, name="r")
        if d.wrong:
            said.may_break("L-HANDLE-REUSE")
    d.server.detach()
    d.server.attach(RECEIVER, name="r")
    d.goodbye()


@pair("L-ATTACH-ROLE", cut=without("server begin"))
def attach_answered_in_the_same_role(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER)
    if d.wrong:
        d.server.attach(SENDER).may_break("L-ATTACH-ROLE")
    else:
        d.server.attach(RECEIVER)
    d.client.attach(SENDER, handle=1, name="r")
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1)
    d.client.transfer(handle=1)
    d.server.disposition(0)
    d.wait(seconds=90)
    d.server.empty()
    d.goodbye()


@legal("only another session shows that the server reads")
def attach_in_the_same_role_on_a_session_that_stands_still(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.attach(SENDER, name="r", channel=1)
    d.server.attach(SENDER, name="r", channel=1)
    d.client.transfer()
    d.server.disposition(0)
    d.wait(seconds=90)
    d.server.empty()
    d.goodbye()


@pair("L-REFUSE-NULL", cut=without("client attach"))
def refused_with_a_terminus(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER).called("client attach")
    if d.wrong:
        d.server.attach(RECEIVER)
        d.server.detach(error="amqp:not-found").may_break("L-REFUSE-NULL")
    else:
        d.server.attach(RECEIVER, target=None)
        d.server.detach(error="amqp:not-found")
    d.client.detach()
    d.goodbye()


@legal("a link fails later")
def link_fails_later(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.wait(seconds=5)
    d.server.detach(error="amqp:resource-deleted")
    d.client.detach()
    d.goodbye()


@pair("L-REFUSE-DETACH", cut=without("client attach"))
def credit_on_a_refused_link(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER).called("client attach")
    d.server.attach(RECEIVER, target=None)
    if d.wrong:
        d.server.flow(handle=0).may_break("L-REFUSE-DETACH")
    d.server.detach(error="amqp:not-found")
    d.client.detach()
    d.goodbye()


@pair("L-REFUSE-DETACH", "L-TGT-NULL", cut=without("server attach"))
def transfer_without_target(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER)
    more = {"target": None} if d.wrong else {}
    d.server.attach(RECEIVER, **more).called("server attach")
    credit = d.server.flow(handle=0)
    said = d.client.transfer()
    if d.wrong:
        credit.may_break("L-REFUSE-DETACH")
        said.breaks("L-TGT-NULL")
    d.server.detach(error="amqp:not-found")
    d.client.detach()
    d.goodbye()


@pair("L-INCOMPLETE-SUSPEND", cut=without("client attach"))
def new_delivery_before_the_map_is_complete(d: Dialogue) -> None:
    d.linked(
        client={"unsettled": {b"\7": None}, "incomplete_unsettled": True if d.wrong else None},
        server={"unsettled": {}},
    )
    said = d.client.transfer()
    if d.wrong:
        said.breaks("L-INCOMPLETE-SUSPEND")
    d.server.disposition(0)
    d.goodbye()


@pair("L-CLOSE-CROSS", cut=without("server detach"))
def crossing_detach_never_closed(d: Dialogue) -> None:
    d.linked()
    d.client.attach(RECEIVER, handle=1, name="r")
    d.server.attach(SENDER, handle=1, name="r")
    d.client.flow(handle=1)
    with d.on_their_way():
        d.client.detach(closed=False)
        d.server.detach().called("server detach")
    d.server.transfer(handle=1)
    d.client.disposition(0)
    if not d.wrong:
        d.client.attach(SENDER)
        d.client.detach()
    d.wait(seconds=90)
    said = d.client.empty()
    if d.wrong:
        said.may_break("L-CLOSE-CROSS")
    d.server.empty()


@reported("credit for a link that was attached without a target by the receiver itself")
def asked_without_a_target(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER, target=None)
    d.server.attach(SENDER)
    d.client.flow(handle=0)
    d.server.transfer().may_break("L-TGT-NULL")
    d.goodbye()
