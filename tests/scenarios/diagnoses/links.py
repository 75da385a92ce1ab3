"""Troubles of AMQP 1.0: credit, windows, settlement, and what is refused."""

from __future__ import annotations

from typing import Any

from scenarios.diagnoses.troubles import alive, trouble
from support import amqp10_encode as amqp
from support.conversation import Conversation
from support.dialogue import RECEIVER, SENDER, Dialogue


@trouble("credit-none")
def nobody_grants_credit(troubled: bool) -> Conversation:
    d = Dialogue()
    d.subscribed(credit=0)
    if not troubled:
        d.wait(seconds=1)
        d.client.flow(handle=0, link_credit=10)
    alive(d)
    return d


@trouble("credit-starved")
def credit_is_not_renewed(troubled: bool) -> Conversation:
    d = Dialogue()
    d.subscribed(credit=2)
    d.server.transfer(settled=True)
    d.server.transfer(settled=True)
    if not troubled:
        d.client.flow(handle=0, link_credit=2, delivery_count=2)
    alive(d)
    return d


@trouble("window-closed")
def the_window_stays_closed(troubled: bool) -> Conversation:
    d = Dialogue()
    d.begun(client={"incoming_window": 2})
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    d.client.flow(handle=0, link_credit=10)
    d.server.transfer(settled=True)
    d.server.transfer(settled=True)
    if not troubled:
        d.client.flow(incoming_window=2)
    alive(d)
    return d


@trouble("credit-on-receipt")
def credit_is_renewed_before_anything_is_settled(troubled: bool) -> Conversation:
    d = Dialogue()
    d.subscribed(credit=10)
    for batch in range(6):
        for _ in range(10):
            d.server.transfer()
        if not troubled:
            d.client.disposition(10 * batch, 10 * batch + 9)
        d.client.flow(handle=0, link_credit=10, delivery_count=10 * batch + 10)
    if troubled:
        d.client.disposition(0, 59)
    alive(d, 3)
    return d


@trouble("unsettled-pile")
def nothing_is_settled(troubled: bool) -> Conversation:
    d = Dialogue()
    d.subscribed(credit=20)
    for _ in range(10):
        d.server.transfer()
    if not troubled:
        d.client.disposition(0, 9)
    alive(d)
    return d


@trouble("settlement-slow")
def each_message_is_settled_late(troubled: bool) -> Conversation:
    d = Dialogue()
    d.subscribed(credit=10)
    for number in range(5):
        d.server.transfer()
        d.wait(seconds=8 if troubled else 0.3)
        d.client.disposition(number)
    d.goodbye()
    return d


@trouble("frames-counted-as-messages")
def transfers_are_counted(troubled: bool) -> Conversation:
    message = amqp.amqp_value("a message of three transfers, which are counted")
    d = Dialogue()
    d.subscribed(credit=20)
    for _ in range(2):
        d.server.transfer(message[:20], more=True, settled=True)
        d.server.transfer(message[20:40], more=True, settled=True)
        d.server.transfer(message[40:], settled=True)
    d.client.flow(handle=0, link_credit=20, delivery_count=6 if troubled else 2)
    alive(d, 3)
    return d


@trouble("unanswered")
def a_begin_is_not_answered(troubled: bool) -> Conversation:
    d = Dialogue()
    d.opened()
    d.client.begin()
    if not troubled:
        d.wait(seconds=1)
        d.server.begin()
    alive(d)
    return d


@trouble("legal-refused")
def what_is_legal_is_refused(troubled: bool) -> Conversation:
    d = Dialogue()
    d.linked()
    d.client.flow(handle=0, link_credit=10, available=3)
    if troubled:
        d.server.close("amqp:invalid-field")
        d.client.close()
    else:
        d.client.close()
        d.server.close()
    d.tcp.goodbye()
    return d


@trouble("link-refused")
def a_link_is_refused(troubled: bool) -> Conversation:
    d = Dialogue()
    d.begun()
    d.client.attach(SENDER, target=amqp.target(address="nowhere"))
    if troubled:
        d.server.attach(RECEIVER, target=None)
        d.server.detach(error="amqp:not-found")
        d.client.detach()
    else:
        d.server.attach(RECEIVER)
        d.client.detach()
        d.server.detach()
    d.goodbye()
    return d


@trouble("link-stolen")
def a_link_is_taken_over(troubled: bool) -> Conversation:
    d = Dialogue()
    d.opened(client={"container_id": "shop"})
    d.client.begin()
    d.server.begin()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    if not troubled:
        d.client.detach()
        d.server.detach()
    thief = d.again()
    thief.opened(client={"container_id": "shop"})
    thief.client.begin()
    thief.server.begin()
    thief.client.attach(RECEIVER)
    thief.server.attach(SENDER)
    if troubled:
        d.server.detach(error="amqp:link:stolen")
        d.client.detach()
    d.goodbye()
    thief.goodbye()
    return d


def _filtered(troubled: bool) -> list[dict[str, Any]]:
    """The fields of both attaches: the server repeats the filter only if all is well."""
    selector = amqp.described("apache.org:selector-filter:string", amqp.string("colour = 'red'"))
    asked = amqp.source(address="q", filter={"selector": selector})
    return [{"source": asked}, {} if troubled else {"source": asked}]


@trouble("filter-ignored")
def a_filter_is_not_in_force(troubled: bool) -> Conversation:
    asked, answered = _filtered(troubled)
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER, **asked)
    d.server.attach(SENDER, **answered)
    d.client.flow(handle=0, link_credit=1)
    d.server.transfer(settled=True)
    d.goodbye()
    return d


@trouble("resume-doubled")
def deliveries_are_sent_again_as_new_ones(troubled: bool) -> Conversation:
    message = amqp.properties(message_id="order-7") + amqp.amqp_value("hello")
    source = amqp.source(address="q", durable=2, expiry_policy="never")
    target = amqp.target(address="q", durable=2, expiry_policy="never")
    d = Dialogue()
    d.opened(client={"container_id": "shop"})
    d.client.begin()
    d.server.begin()
    d.client.attach(SENDER, source=source, target=target)
    d.server.attach(RECEIVER, source=source, target=target)
    d.server.flow(handle=0, link_credit=10)
    d.client.transfer(message, delivery_tag=b"7")
    d.client.end.rst()
    again = d.again()
    again.opened(client={"container_id": "shop"})
    again.client.begin()
    again.server.begin()
    again.client.attach(SENDER, source=source, target=target, unsettled={amqp.binary(b"7"): amqp.null()})
    again.server.attach(
        RECEIVER, source=source, target=target, unsettled={amqp.binary(b"7"): amqp.accepted()}
    )
    again.server.flow(handle=0, link_credit=10)
    if troubled:
        again.client.transfer(message, delivery_tag=b"8")
        again.server.disposition(0)
    else:
        again.client.transfer(b"", delivery_tag=b"7", resume=True, settled=True, state=amqp.accepted())
    again.goodbye()
    return d


@trouble("redelivery-loop")
def a_message_comes_again_and_again(troubled: bool) -> Conversation:
    d = Dialogue()
    d.subscribed(credit=20)
    for number in range(6):
        header = amqp.header(delivery_count=number if troubled else 0)
        which = "poison" if troubled else f"order-{number}"
        d.server.transfer(header + amqp.properties(message_id=which) + amqp.amqp_value("hello"))
        state = amqp.modified(delivery_failed=True) if troubled or number == 0 else amqp.accepted()
        d.client.disposition(number, state=state)
    d.goodbye()
    return d
