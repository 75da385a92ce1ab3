"""Links attached again on a later connection."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import legal, pair, without
from support import amqp10_encode as amqp
from support.dialogue import Dialogue

LASTING = amqp.source(address="q", expiry_policy="never", durable=2)


def interrupted(d: Dialogue, **attach: Any) -> Dialogue:
    """A delivery is on its way when the connection is closed; the next connection up to its session."""
    d.linked(client={"source": LASTING, **attach})
    d.client.transfer(delivery_tag=b"first")
    d.client.transfer(delivery_tag=b"second").called("transfer")
    d.server.disposition(0)
    d.goodbye()
    d.wait(seconds=20)
    later = d.again()
    later.begun()
    return later


@pair("L-ATTACH-UNSETTLED", cut=without("transfer"))
def attached_without_what_was_left(d: Dialogue) -> None:
    later = interrupted(d)
    unsettled = [] if d.wrong else [(b"second", None)]
    said = later.client.attach(source=LASTING, unsettled=unsettled)
    if d.wrong:
        said.may_break("L-ATTACH-UNSETTLED")
    later.server.attach(amqp.RECEIVER)
    later.goodbye()


@legal("a source that expired meanwhile")
def a_source_that_expired_meanwhile(d: Dialogue) -> None:
    later = interrupted(d, source=amqp.source(address="q", timeout=1))
    later.client.attach()
    later.server.attach(amqp.RECEIVER)
    later.goodbye()


@legal("a link that was closed")
def a_link_that_was_closed(d: Dialogue) -> None:
    d.linked(client={"source": LASTING})
    d.client.transfer()
    d.client.detach()
    d.server.detach()
    d.goodbye()
    later = d.again()
    later.begun()
    later.attached(client={"source": LASTING})
    later.goodbye()


@legal("a map that is incomplete")
def a_map_that_is_incomplete(d: Dialogue) -> None:
    later = interrupted(d)
    later.client.attach(source=LASTING, unsettled=[], incomplete_unsettled=True)
    later.server.attach(amqp.RECEIVER)
    later.goodbye()


@legal("settled at the last moment")
def settled_at_the_last_moment(d: Dialogue) -> None:
    """By the receiver, unheard; its sender may have heard it all the same."""
    d.linked(client={"source": LASTING})
    d.client.transfer()
    with d.on_their_way():
        d.server.disposition(0)
        d.client.close()
    d.server.close()
    d.tcp.goodbye()
    later = d.again()
    later.begun()
    later.attached(client={"source": LASTING})
    later.goodbye()


@legal("another container")
def another_container(d: Dialogue) -> None:
    d.linked(client={"source": LASTING})
    d.client.transfer()
    d.goodbye()
    later = d.again()
    later.opened(client={"container_id": "another"})
    later.client.begin()
    later.server.begin()
    later.attached(client={"source": LASTING})
    later.goodbye()
