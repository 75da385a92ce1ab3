"""Exchanges and queues that are used and do not exist."""

from __future__ import annotations

from functools import partial
from typing import Any

from scenarios.amqp091.entities import another, leave, not_found, ready
from scenarios.pairs import POSSIBLE, add_pair, reported
from support.dialogue091 import Dialogue091

BINDING = {"exchange": "amq.direct", "routing_key": "k"}
BETWEEN = {"source": "amq.direct", "routing_key": "k"}

# Rule: the method, its other arguments, the field with the name; what it is and the server's answer.
USED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "Q-BIND-QEXIST": ("queue.bind", BINDING, "queue", "queue"),
    "Q-UNBIND-QEXIST": ("queue.unbind", BINDING, "queue", "queue"),
    "Q-PURGE-QEXIST": ("queue.purge", {}, "queue", "queue"),
    "Q-DELETE-QEXIST": ("queue.delete", {}, "queue", "queue"),
    "B-CONSUME-QEXIST": ("basic.consume", {"consumer_tag": "c"}, "queue", "queue"),
    "B-GET-QEXIST": ("basic.get", {}, "queue", "queue"),
    "X-DELETE-EXISTS": ("exchange.delete", {}, "exchange", "exchange"),
    "X-BIND-EXIST": ("exchange.bind", BETWEEN, "destination", "exchange"),
    "X-UNBIND-EXIST": ("exchange.unbind", BETWEEN, "destination", "exchange"),
    "Q-BIND-XEXIST": ("queue.bind", {"queue": "other", "routing_key": "k"}, "exchange", "exchange"),
    "Q-UNBIND-XEXIST": ("queue.unbind", {"queue": "other", "routing_key": "k"}, "exchange", "exchange"),
}

ANSWERS = {"basic.get": "basic.get-empty"}


def _reported(rule: str, d: Dialogue091) -> None:
    """What was deleted is used by who had it deleted."""
    method, arguments, field, what = USED[rule]
    ready(d)
    d.declare("other", durable=True)
    if what == "queue":
        d.declare("gone", durable=True)
    else:
        d.declare_exchange("gone")
    if d.wrong:
        d.ask(f"{what}.delete", **{what: "gone"})
    said = d.client.method(method, **{field: "gone"}, **arguments)
    if d.wrong:
        said.breaks(rule)
        not_found(d, method, what, "gone")
    else:
        repeated = {"consumer_tag": "c"} if method == "basic.consume" else {}
        d.server.method(ANSWERS.get(method, f"{method}-ok"), **repeated)
    d.goodbye()


for _rule in USED:
    add_pair(_rule.lower().replace("-", "_"), partial(_reported, _rule), _rule, then=POSSIBLE)


@reported("what another one deleted, or nobody knows of")
def not_known_to_be_gone(d: Dialogue091) -> None:
    ready(d)
    d.declare("gone", durable=True)
    d.ask("queue.delete", queue="gone", answer={"message_count": 0})
    other = another(d)
    for name in ("gone", "elsewhere"):
        other.client.get(name).may_break("B-GET-QEXIST")
        not_found(other, "basic.get", "queue", name)
        other.channel()
    leave(other)
    d.goodbye()


@reported("a server that is no RabbitMQ takes the deletion of what is gone for done")
def deleted_twice_elsewhere(d: Dialogue091) -> None:
    d.product = "Broker"
    ready(d)
    d.declare("gone", durable=True)
    d.ask("queue.delete", queue="gone", answer={"message_count": 0})
    asked, _ = d.ask("queue.delete", queue="gone", answer={"message_count": 0})
    asked.may_break("Q-DELETE-QEXIST")
    d.goodbye()
