"""What a hostile peer can make the rules about messages look at is bounded."""

from __future__ import annotations

import io

from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

import amqpscope
from amqpscope.limits import MAX_FILTERS, MAX_REFUSED


def rules(d: Dialogue, spec: str = "final") -> list[str]:
    return [finding.rule for finding in amqpscope.check(io.BytesIO(d.pcap()), spec=spec)]


def filtered(before: int) -> Dialogue:
    """A filter that is not obeyed, behind so many others."""
    others = [(amqp.symbol(f"f{n}"), amqp.described("x:y", "z")) for n in range(before)]
    selector = (amqp.symbol("f"), amqp.described("apache.org:selector-filter:string", "kind = 'tea'"))
    source = amqp.source(address="q", filter=amqp.map_([*others, selector]))
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER, source=source)
    d.server.attach(SENDER, source=source)
    d.client.flow(handle=0)
    d.server.transfer(amqp.application_properties({"kind": "coffee"}) + amqp.data(b"x"))
    d.goodbye()
    return d


def test_of_many_filters_the_first_are_looked_at() -> None:
    assert rules(filtered(MAX_FILTERS - 1)) == ["amqp10/M-FILTER-ACTUAL"]
    assert rules(filtered(MAX_FILTERS)) == []


def refused(behind: int) -> Dialogue:
    """A durable message, so many others, and a detach."""
    d = Dialogue()
    outcomes = ["amqp:accepted:list", "amqp:rejected:list"]
    d.linked(credit=1000, client={"source": amqp.source(address="q", outcomes=outcomes)})
    d.client.transfer(amqp.header(durable=True) + amqp.data(b"x"))
    for _ in range(behind):
        d.client.transfer(amqp.data(b"x"))
    d.server.detach(error="amqp:precondition-failed")
    d.client.detach()
    d.goodbye()
    return d


def test_of_many_deliveries_the_newest_are_looked_at() -> None:
    assert rules(refused(MAX_REFUSED - 1)) == ["amqp10/M-HDR-DURABLE-REJECT"]
    assert rules(refused(MAX_REFUSED)) == []
