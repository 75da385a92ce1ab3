"""Queues of AMQP 0-9-1: names, the current queue, what the answers say, RabbitMQ's arguments."""

from __future__ import annotations

from functools import partial

from scenarios.amqp091.exchange import refused
from scenarios.pairs import SAME, add_pair, legal, pair, reported, without
from support.dialogue091 import Dialogue091

NO_QUEUE = "NOT_FOUND - no previously declared queue"


def of_no_queue(name: str, rule: str, arguments: dict[str, str], d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method(name, queue="", **arguments).breaks(rule)
        refused(d, NO_QUEUE, name, 404)
    else:
        d.declare("")
        d.ask(name, queue="", **arguments)
    d.goodbye()


for _name, _rule, _arguments in (
    ("queue.bind", "Q-BIND-QKNOWN", {"exchange": "amq.topic", "routing_key": "k"}),
    ("queue.unbind", "Q-UNBIND-QKNOWN", {"exchange": "amq.topic", "routing_key": "k"}),
    ("queue.purge", "Q-PURGE-QKNOWN", {}),
    ("queue.delete", "Q-DELETE-QKNOWN", {}),
):
    add_pair(
        f"{_name.replace('.', '_')}_of_no_queue",
        partial(of_no_queue, _name, _rule, _arguments),
        _rule,
        cut=without("channel.open"),
    )


@pair("Q-CURRENT-DOMAIN", cut=without("channel.open"))
def passive_declaration_of_no_queue(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        d.client.method("queue.declare", queue="", passive=True).may_break("Q-CURRENT-DOMAIN")
        refused(d, NO_QUEUE, "queue.declare", 404)
    else:
        d.declare("q", passive=True)
    d.goodbye()


@legal("the queue of a declaration that nobody answers is the current one")
def current_queue_without_wait(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="", no_wait=True)
    d.ask("queue.bind", queue="", exchange="amq.topic", routing_key="k")
    d.ask("queue.delete", queue="", if_unused=True, if_empty=True)
    d.goodbye()


@pair("Q-DECL-SYNTAX", cut=without("connection.start"), then=SAME)
def queue_named_oddly(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    asked, _ = d.declare("two words" if d.wrong else "two_words")
    if d.wrong:
        asked.breaks("Q-DECL-SYNTAX")
    d.declare("amq.rabbitmq.reply-to.g1h2/x==", passive=True)
    d.goodbye()


@pair("Q-DECL-GENNAME", cut=without("channel.open"))
def empty_name_answered_without_a_name(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="")
    answered = d.server.method("queue.declare-ok", queue="" if d.wrong else "amq.gen-1")
    if d.wrong:
        answered.breaks("Q-DECL-GENNAME")
    d.goodbye()


@pair("Q-DECLOK-NAME", cut=without("channel.open"))
def another_name_declared(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="q")
    answered = d.server.method("queue.declare-ok", queue="p" if d.wrong else "q")
    if d.wrong:
        answered.breaks("Q-DECLOK-NAME")
    d.goodbye()


@reported("RabbitMQ takes the line break out of a name")
def line_break_in_a_name(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="q\n").breaks("Q-DECL-SYNTAX")
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


@pair("Q-DECLOK-EMPTY", cut=without("channel.open"))
def new_queue_not_empty(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="", exclusive=True)
    count = 2 if d.wrong else 0
    answered = d.server.method("queue.declare-ok", queue="amq.gen-1", message_count=count)
    if d.wrong:
        answered.breaks("Q-DECLOK-EMPTY")
    d.declare("q", answer={"message_count": 7})
    d.goodbye()


@pair("Q-DELETE-NOTEMPTY", cut=without("channel.open"))
def deleted_although_not_empty(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    answer = {"message_count": 3}
    _, answered = d.ask("queue.delete", queue="q", if_empty=d.wrong, answer=answer)
    if d.wrong:
        answered.breaks("Q-DELETE-NOTEMPTY")
    d.goodbye()


@pair("Q-DELETE-INUSE", cut=without("channel.open"))
def deleted_although_in_use(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q")
    if not d.wrong:
        d.cancel()
    _, answered = d.ask("queue.delete", queue="q", if_unused=True)
    if d.wrong:
        answered.may_break("Q-DELETE-INUSE")
    d.goodbye()


@pair("Q-DELETE-CONSUMERS", cut=without("channel.open"))
def delivery_of_a_deleted_queue(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q")
    d.client.method("queue.delete", queue="q")
    if not d.wrong:
        d.server.deliver()
    d.server.method("queue.delete-ok", message_count=1)
    if d.wrong:
        d.server.deliver().breaks("Q-DELETE-CONSUMERS")
    d.declare("q")
    d.consume("q")
    d.server.deliver()
    d.goodbye()


@pair("Q-XARGS", cut=without("connection.start"))
def odd_argument(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    if d.wrong:
        wrong = {"x-max-length": "1000"}
        d.client.method("queue.declare", queue="q", arguments=wrong).breaks("Q-XARGS")
        text = "PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'q' in vhost '/'"
        refused(d, text, "queue.declare", 406)
    else:
        d.declare("q", arguments={"x-max-length": ("I", 1000), "x-mine": "anything"})
    d.goodbye()


@reported("arguments that RabbitMQ does not take")
def odd_arguments(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    for number, arguments in enumerate(
        (
            {"x-expires": ("I", 0)},
            {"x-message-ttl": ("l", -1)},
            {"x-max-priority": ("I", 256)},
            {"x-dead-letter-exchange": ("I", 1)},
            {"x-overflow": "drop-tail"},
            {"x-single-active-consumer": "true"},
            {"x-max-length": True},
        )
    ):
        d.client.method("queue.declare", queue=f"q{number}", arguments=arguments).breaks("Q-XARGS")
        refused(d, "PRECONDITION_FAILED - invalid arg", "queue.declare", 406)
        d.channel(1)
    d.goodbye()


@legal("what a queue of RabbitMQ may be given, and another broker may take otherwise")
def arguments_of_all_kinds(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.declare(
        "q",
        arguments={
            "x-expires": ("I", 1),
            "x-message-ttl": ("l", 0),
            "x-max-priority": ("b", 10),
            "x-dead-letter-exchange": "",
            "x-overflow": "reject-publish",
            "x-single-active-consumer": True,
            "x-queue-type": "quorum",
        },
    )
    d.goodbye()


@reported("queues that are declared, deleted and used without waiting")
def queues_in_one_go(d: Dialogue091) -> None:
    """The current queue is what was declared last, whatever is answered meanwhile."""
    d.opened()
    d.channel(1)
    d.declare("old")
    d.client.method("queue.declare", queue="")
    d.client.method("queue.declare", queue="work").breaks("CH-SYNC-WAIT")
    d.server.method("queue.declare-ok", queue="amq.gen-1")
    d.client.method("basic.consume", consumer_tag="c", no_ack=True)
    d.client.method("queue.delete", queue="amq.gen-1")
    d.client.method("queue.delete", queue="old")
    d.client.method("queue.declare", queue="old")
    d.client.method("basic.consume", queue="old", consumer_tag="d", no_ack=True)
    d.server.method("queue.declare-ok", queue="work")
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.server.method("queue.delete-ok")
    d.server.method("queue.delete-ok")
    d.server.method("queue.declare-ok", queue="old")
    d.server.method("basic.consume-ok", consumer_tag="d")
    d.server.deliver(consumer_tag="c")
    d.server.deliver(consumer_tag="d")
    d.goodbye()
