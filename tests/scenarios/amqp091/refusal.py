"""Requests of AMQP 0-9-1 that the server refuses: what its close tells of them, and of itself."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from scenarios.pairs import add_pair, legal, reported, without
from support.dialogue091 import Dialogue091


class Refused(NamedTuple):
    """A request, the close that refuses it, what that breaks, and who. also: what the close itself breaks."""

    rule: str
    by: str
    request: str
    arguments: dict[str, Any]
    code: int
    text: str
    also: str = ""
    certain: bool = False


IN = "in vhost '/'"
FANOUT = {"exchange": "amq.fanout", "routing_key": ""}
DEFAULT = {"exchange": "", "routing_key": "k"}

REFUSED = (
    Refused(
        "Q-DECL-RESERVED",
        "client",
        "queue.declare",
        {"queue": "amq.gen-1"},
        403,
        "ACCESS_REFUSED - queue name 'amq.gen-1' contains reserved prefix 'amq.*'",
    ),
    Refused(
        "X-DECL-RESERVED",
        "client",
        "exchange.declare",
        {"exchange": "amq.mine", "type": "direct"},
        403,
        "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    Refused(
        "X-DECL-TYPE-SUPPORT",
        "client",
        "exchange.declare",
        {"exchange": "x", "type": "x-delayed-message"},
        503,
        "COMMAND_INVALID - unknown exchange type 'x-delayed-message'",
    ),
    Refused(
        "X-DEFAULT-EXISTS",
        "server",
        "queue.bind",
        {"queue": "q", **DEFAULT},
        404,
        "NOT_FOUND - no exchange ''",
    ),
    Refused(
        "X-TYPES-REQUIRED",
        "server",
        "exchange.declare",
        {"exchange": "x", "type": "fanout"},
        503,
        "COMMAND_INVALID - unknown exchange type 'fanout'",
    ),
    Refused(
        "X-TYPES-RECOMMENDED",
        "server",
        "exchange.declare",
        {"exchange": "x", "type": "headers"},
        406,
        "PRECONDITION_FAILED - invalid exchange type 'headers'",
    ),
    Refused(
        "X-DECL-DURABLE",
        "server",
        "exchange.declare",
        {"exchange": "x", "type": "topic", "durable": True},
        540,
        "NOT_IMPLEMENTED - durable=true",
    ),
    Refused(
        "Q-DECL-DURABLE",
        "server",
        "queue.declare",
        {"queue": "q", "durable": True},
        540,
        "NOT_IMPLEMENTED - durable",
    ),
    Refused(
        "Q-DECL-DURABLE",
        "server",
        "queue.declare",
        {"queue": "q"},
        541,
        "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated.",
    ),
    Refused(
        "Q-DECL-EXCLUSIVE",
        "server",
        "queue.declare",
        {"queue": "q", "exclusive": True},
        540,
        "NOT_IMPLEMENTED - exclusive=true",
    ),
    Refused(
        "Q-BIND-DEFAULT-X",
        "server",
        "queue.bind",
        {"queue": "q", **DEFAULT},
        403,
        "ACCESS_REFUSED - not permitted",
    ),
    Refused(
        "Q-UNBIND-DEFAULT-X",
        "server",
        "queue.unbind",
        {"queue": "q", **DEFAULT},
        403,
        "ACCESS_REFUSED - not permitted",
        "Q-UNBIND-FAIL-CONN",
    ),
    Refused(
        "X-DECL-PASSIVE-NOWAIT",
        "server",
        "exchange.declare",
        {"exchange": "x", "type": "", "passive": True, "no_wait": True},
        404,
        f"NOT_FOUND - no exchange 'x' {IN}",
        certain=True,
    ),
    Refused(
        "Q-DECL-PASSIVE-NOWAIT",
        "server",
        "queue.declare",
        {"queue": "q", "passive": True, "no_wait": True},
        404,
        f"NOT_FOUND - no queue 'q' {IN}",
        certain=True,
    ),
)

# Codes that end the connection.
HARD = (503, 506, 530, 540, 541)


def refuse(one: Refused, d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    asked = d.client.method(one.request, **one.arguments)
    if not d.wrong:
        if not one.arguments.get("no_wait"):
            answer = {"queue": one.arguments["queue"]} if one.request == "queue.declare" else {}
            if one.request == "basic.consume":
                answer = {"consumer_tag": "amq.ctag-1"}
            d.server.method(f"{one.request}-ok", **answer)
        d.goodbye()
        return
    hard = one.code in HARD
    say = d.server.close_connection if hard else d.server.close_channel
    closed = say(one.code, one.text, one.request)
    at = asked if one.by == "client" else closed
    at.breaks(one.rule, certain=one.certain)
    if one.also:
        closed.breaks(one.also, certain=one.also == "Q-UNBIND-FAIL-CONN")
    if hard:
        d.client.connection_close_ok()
        d.tcp.goodbye()
    else:
        d.client.channel_close_ok()
        d.goodbye()


for _number, _one in enumerate(REFUSED):
    _rules = (_one.rule, _one.also) if _one.also else (_one.rule,)
    _name = f"{_one.request}_refused_{_number}".replace(".", "_")
    add_pair(_name, partial(refuse, _one), *_rules, cut=without("channel.open"))


@reported("a close of the connection names the request of one channel among several")
def refused_on_one_of_two_channels(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    d.declare("p")
    with d.on_their_way():
        d.client.method("queue.declare", 2, queue="q")
        d.client.method("exchange.declare", exchange="x", type="topic")
    d.server.close_connection(506, "RESOURCE_ERROR", "queue.declare").may_break("Q-MIN-256")
    d.client.connection_close_ok()
    d.tcp.goodbye()


@legal("what is refused without a fault: nothing under that name, no permission, still in use")
def refused_and_no_fault(d: Dialogue091) -> None:
    d.opened()
    for name, arguments, code, text in (
        ("queue.declare", {"queue": "q", "passive": True}, 404, f"NOT_FOUND - no queue 'q' {IN}"),
        ("queue.declare", {"queue": "q", "passive": True}, 403, "ACCESS_REFUSED - access to queue 'q'"),
        ("queue.declare", {"queue": "q"}, 403, "ACCESS_REFUSED - access to queue 'q'"),
        ("exchange.declare", {"exchange": "x", "type": "", "passive": True}, 404, "NOT_FOUND"),
        ("exchange.declare", {"exchange": "amq.topic", "type": "topic"}, 406, "inequivalent arg 'durable'"),
        ("queue.delete", {"queue": "q", "if_unused": True}, 406, "PRECONDITION_FAILED - in use"),
        ("queue.bind", {"queue": "q", **FANOUT}, 403, "ACCESS_REFUSED"),
    ):
        d.channel(1)
        d.client.method(name, **arguments)
        d.server.close_channel(code, text, name)
        d.client.channel_close_ok()
    d.goodbye()
