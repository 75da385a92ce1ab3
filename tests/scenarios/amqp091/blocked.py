"""connection.blocked and unblocked."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import Dialogue091


@pair("C-BLOCKED-CAP", cut=without("connection.start-ok"))
def blocked_without_capability(d: Dialogue091) -> None:
    d.opened(start_ok={"capabilities": ("basic.nack",) if d.wrong else ("connection.blocked",)})
    said = d.server.blocked()
    if d.wrong:
        said.breaks("C-BLOCKED-CAP")
    d.server.unblocked()
    d.goodbye()


@pair("C-BLOCKED-PAIR", cut=without("blocked"))
def blocked_twice(d: Dialogue091) -> None:
    d.opened()
    d.server.blocked("low on memory").called("blocked")
    if d.wrong:
        d.server.blocked("low on disk").breaks("C-BLOCKED-PAIR")
    d.server.unblocked()
    d.goodbye()


@reported("unblocked, and nobody was blocked")
def unblocked_without_blocked(d: Dialogue091) -> None:
    d.opened()
    d.server.unblocked().breaks("C-BLOCKED-PAIR")
    d.goodbye()


@pair("C-BLOCKED-PUBLISH", cut=without("blocked"))
def published_while_blocked(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.declare("q")
    d.client.publish()
    d.server.blocked().called("blocked")
    if not d.wrong:
        d.server.unblocked()
    d.client.publish()
    d.wait(milliseconds=1500)
    said = d.client.publish()
    if d.wrong:
        said.may_break("C-BLOCKED-PUBLISH")
        d.client.publish()
        d.server.unblocked()
    d.goodbye()


@legal("publishes on their way when the client is blocked, and later what is no publish")
def published_on_the_way(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.client.publish()
    with d.on_their_way():
        d.server.blocked()
        d.client.publish()
    d.client.publish()
    d.wait(seconds=5)
    d.client.method("basic.qos", prefetch_count=1)
    d.server.unblocked()
    d.server.method("basic.qos-ok")
    d.client.publish()
    d.goodbye()


@reported("blocked is a notification, whoever has read it")
def published_though_blocked_was_read(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.declare("q")
    d.consume("q")
    d.server.blocked()
    d.server.deliver()
    d.client.ack()
    d.wait(seconds=5)
    d.client.publish().may_break("C-BLOCKED-PUBLISH")
    d.server.unblocked()
    d.goodbye()
