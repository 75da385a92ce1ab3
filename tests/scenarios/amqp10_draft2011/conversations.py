"""Whole conversations in the April-2011 draft. `write_captures` puts them into `captures/draft2011`."""

from __future__ import annotations

from scenarios.pairs import legal, reported
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER, SENDER

CAPABILITIES = ["amqp:local-transactions"]


@legal()
def open_to_close(d: Dialogue2011) -> None:
    locales = ["en_US", "de_DE"]
    d.opened({"hostname": "broker.example", "outgoing_locales": locales, "options": {"x-trial": "1"}})
    d.client.begin()
    d.server.begin()
    d.attached(credit=3)
    d.client.transfer()
    d.server.disposition()
    d.client.transfer(settled=True)
    d.client.detach()
    d.server.detach()
    d.client.end_session()
    d.server.end_session()
    d.goodbye()


@legal()
def login(d: Dialogue2011) -> None:
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms("PLAIN", "CRAM-MD5")
    d.client.init("CRAM-MD5", initial_response=None)
    d.server.challenge()
    d.client.response()
    d.server.outcome()
    d.linked(credit=1)
    d.client.transfer()
    d.server.disposition()
    d.goodbye()


@legal()
def sections_in_fragments(d: Dialogue2011) -> None:
    d.linked()
    message = [
        draft.header(durable=True, priority=7, transmit_time=1_302_000_000_000, ttl=60_000),
        draft.properties(message_id=b"order-1", to="orders", subject="order", content_length=9000),
        draft.amqp_map({"region": "north"}),
        draft.data(b"a" * 6000),
        draft.amqp_data("half past", draft.uint(3000)),
        draft.amqp_list([draft.uint(1), "two"]),
        draft.footer(message_attrs={"x-sum": "97"}),
    ]
    # All sections in three transfers; then each fragment in a transfer of its own.
    pieces = draft.fragments(message, 2500)
    d.client.transfer(fragments=pieces[:4], more=True)
    d.client.transfer(fragments=pieces[4:5], more=True)
    d.client.transfer(fragments=pieces[5:])
    d.client.transfers(message, 2000)
    d.server.disposition(0, 11)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@legal()
def disposition_ranges(d: Dialogue2011) -> None:
    d.linked(credit=20)
    for _ in range(3):
        d.client.transfer()
    d.client.transfers([draft.header(), draft.properties(), draft.data(b"b" * 300), draft.footer()], 100)
    d.client.transfer()
    rejected = draft.rejected(error=draft.error(condition="amqp:precondition-failed"))
    d.server.disposition(0, 1)
    d.server.disposition(2, state=draft.transfer_state(outcome=rejected))
    d.server.disposition(3, 8, settled=None, state=draft.transfer_state(outcome=draft.released()))
    d.client.disposition(3, 8, role=SENDER)
    d.server.disposition(9)
    d.goodbye()


@legal()
def resumed_by_octets(d: Dialogue2011) -> None:
    message = [draft.header(), draft.properties(), draft.data(b"c" * 3000), draft.footer()]
    d.linked()
    tag = b"one"
    pieces = draft.fragments(message, 1000)
    for piece in pieces[:4]:
        d.client.transfer(fragments=[piece], more=True, delivery_tag=tag)
    d.server.disposition(0, settled=None, state=draft.transfer_state(bytes_transferred=2000))
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.client.attach(unsettled={tag: draft.transfer_state()})
    d.server.attach(RECEIVER, unsettled={tag: draft.transfer_state(bytes_transferred=2000)})
    d.server.flow(handle=0)
    d.client.transfer(fragments=pieces[4:], resume=True, delivery_tag=tag)
    d.server.disposition(4)
    d.goodbye()


@legal()
def transactions(d: Dialogue2011) -> None:
    coordinator = draft.coordinator(capabilities=CAPABILITIES)
    d.linked()
    d.client.attach(SENDER, handle=1, name="control", target=coordinator)
    d.server.attach(RECEIVER, handle=1, name="control", target=coordinator)
    d.server.flow(handle=1)
    for number, fail in enumerate((False, True)):
        txn = b"txn%d" % number
        state = draft.transfer_state(txn_id=txn)
        about = [draft.section("header"), draft.section("properties")]
        accepted = draft.transfer_state(outcome=draft.accepted())
        d.client.transfer([*about, draft.amqp_data(draft.declare())], handle=1, state=state)
        d.server.disposition(3 * number, state=accepted)
        d.client.transfer(state=state)
        d.server.disposition(3 * number + 1, state=draft.transfer_state(outcome=draft.accepted(), txn_id=txn))
        d.client.transfer([*about, draft.amqp_data(draft.discharge(fail=fail))], handle=1, state=state)
        d.server.disposition(3 * number + 2, state=accepted)
    d.goodbye()


@reported()
def interoperability_test(d: Dialogue2011) -> None:
    """The one with a story: see `captures/draft2011/README.md`."""
    shop, broker = d.client, d.server
    shop.introduction = {"container_id": "shop", "properties": {"product": "early-client"}}
    broker.introduction = {"container_id": "broker", "properties": {"product": "early-broker"}}
    d.client.header(3)
    d.server.header(3)
    broker.mechanisms("PLAIN")
    shop.init(initial_response=b"\0shop\0made-up-for-captures")
    broker.outcome()
    d.opened({"hostname": "broker.example", "outgoing_locales": ["en_US", "fr_FR"]}, {"channel_max": 7})
    shop.begin()
    broker.begin()
    d.attached(credit=5, client={"name": "orders"}, server={"name": "orders"})
    shop.transfer(
        [draft.header(durable=True), draft.properties(subject="order 1"), draft.amqp_data("1 lamp")]
    )
    shop.transfer(
        [draft.header(durable=True), draft.properties(subject="order 2"), draft.amqp_data("2 chairs")]
    )
    broker.disposition(0, 1)
    catalogue = [draft.header(), draft.properties(subject="catalogue"), draft.data(b"lamp,chair;" * 500)]
    pieces = list(draft.fragment_fields(catalogue, 2000))
    shop.transfer(fragments=[draft.fragment(**one) for one in pieces[:3]], more=True)
    shop.transfer(fragments=[draft.fragment(**pieces[3])], more=True)
    # The offset of its third fragment begins again at 0.
    last = {**pieces[4], "section_offset": 0}
    shop.transfer(fragments=[draft.fragment(**last)]).breaks("M-FRAG-OFFSET")
    broker.detach(error="amqp:invalid-field")
    shop.detach()
    d.goodbye()
