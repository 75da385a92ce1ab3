"""Exchanges, queues, bindings and consumers of a virtual host, as several connections see them."""

from __future__ import annotations

from scenarios.pairs import POSSIBLE, SAME, legal, pair, reported
from support.conversation import Said
from support.dialogue091 import Dialogue091

WORK = {"durable": True}


def ready(d: Dialogue091) -> None:
    """Up to an open channel."""
    d.opened()
    d.channel()


def another(d: Dialogue091, client: str = "10.0.0.1:51035") -> Dialogue091:
    """Another client of the same virtual host, up to an open channel; nothing is on its way meanwhile."""
    d.wait(seconds=5)
    other = d.again(client)
    ready(other)
    return other


def leave(other: Dialogue091) -> None:
    """It is over; what comes then is later by every clock."""
    other.goodbye()
    other.wait(seconds=5)


def refused(d: Dialogue091, code: int, text: str, cause: str) -> Said:
    """The server closes the channel over a method, and the client says that it has read that."""
    said = d.server.close_channel(code, text, cause)
    d.client.channel_close_ok()
    return said


def not_found(d: Dialogue091, cause: str, what: str = "queue", name: str = "q") -> Said:
    return refused(d, 404, f"NOT_FOUND - no {what} '{name}' in vhost '/'", cause)


# ---- declared again ---------------------------------------------------------------------------------------


@pair("X-DECL-TYPED")
def exchange_with_another_type(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "fanout", **WORK)
    other = another(d)
    if d.wrong:
        said = other.client.method("exchange.declare", exchange="logs", type="topic", **WORK)
        said.may_break("X-DECL-TYPED")
        text = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'logs' in vhost '/'"
        refused(other, 406, text, "exchange.declare")
    else:
        other.declare_exchange("logs", "fanout", **WORK)
    leave(other)
    d.goodbye()


@pair("X-DECL-TYPED", then=SAME)
def predeclared_exchange_with_another_type(d: Dialogue091) -> None:
    """What there is from the start has the type that its name says, whoever asks first."""
    ready(d)
    if d.wrong:
        said = d.client.method("exchange.declare", exchange="amq.direct", type="topic", **WORK)
        said.breaks("X-DECL-TYPED")
        text = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.direct' in vhost '/'"
        refused(d, 406, text, "exchange.declare")
    else:
        d.declare_exchange("amq.direct", "direct", **WORK)
        d.declare_exchange("amq.match", "headers", **WORK)
    d.goodbye()


@reported("the type of a predeclared exchange is refused for another reason, or taken")
def predeclared_exchange_refused_otherwise(d: Dialogue091) -> None:
    ready(d)
    d.client.method("exchange.declare", exchange="amq.match", type="fanout", **WORK)
    refused(d, 403, "ACCESS_REFUSED - access to exchange 'amq.match' refused", "exchange.declare")
    d.channel()
    d.declare_exchange("amq.headers", "topic", **WORK)
    d.goodbye()


@pair("X-DECL-EQUIV")
def exchange_accepted_otherwise(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "fanout", **WORK)
    _, answer = d.declare_exchange("logs", "fanout", durable=not d.wrong)
    if d.wrong:
        answer.may_break("X-DECL-EQUIV")
    d.goodbye()


@pair("Q-DECL-EQUIV")
def queue_accepted_otherwise(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    other = another(d)
    _, answer = other.declare("work", durable=not d.wrong)
    if d.wrong:
        answer.may_break("Q-DECL-EQUIV")
    leave(other)
    d.goodbye()


@pair("Q-DECL-EQUIV-CLIENT", then=POSSIBLE)
def queue_declared_otherwise(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.channel(2)
    if d.wrong:
        arguments = {"x-message-ttl": ("I", 60_000)}
        said = d.client.method("queue.declare", 2, queue="work", arguments=arguments, **WORK)
        said.breaks("Q-DECL-EQUIV-CLIENT")
        text = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'work' in vhost '/'"
        d.server.close_channel(406, text, "queue.declare", channel=2)
        d.client.channel_close_ok(2)
    else:
        d.declare("work", 2, **WORK)
    d.goodbye()


@reported("a queue is refused, and how it was declared is not known")
def queue_refused_unknown(d: Dialogue091) -> None:
    ready(d)
    d.client.method("queue.declare", queue="work").may_break("Q-DECL-EQUIV-CLIENT")
    refused(d, 406, "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'work'", "queue.declare")
    d.goodbye()


@pair("Q-DECL-AUTODEL-IGNORE")
def auto_delete_compared(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.client.method("queue.declare", queue="work", auto_delete=True, **WORK)
    if d.wrong:
        text = "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'work' in vhost '/'"
        refused(d, 406, text, "queue.declare").may_break("Q-DECL-AUTODEL-IGNORE")
    else:
        d.server.method("queue.declare-ok", queue="work")

    d.goodbye()


# ---- passive ----------------------------------------------------------------------------------------------


@pair("X-DECL-PASSIVE-404")
def exchange_there_after_all(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs")
    d.ask("exchange.delete", exchange="logs")
    d.client.method("exchange.declare", exchange="logs", type="direct", passive=True)
    if d.wrong:
        d.server.method("exchange.declare-ok").may_break("X-DECL-PASSIVE-404")
    else:
        not_found(d, "exchange.declare", "exchange", "logs")
    d.goodbye()


@pair("Q-DECL-PASSIVE-404")
def queue_there_after_all(d: Dialogue091) -> None:
    ready(d)
    d.declare()
    d.ask("queue.delete", queue="q")
    other = another(d)
    other.client.method("queue.declare", queue="q", passive=True)
    if d.wrong:
        other.server.method("queue.declare-ok", queue="q").may_break("Q-DECL-PASSIVE-404")
    else:
        not_found(other, "queue.declare")
    leave(other)
    d.goodbye()


@pair("X-DECL-PASSIVE-IGNORE")
def passive_exchange_compared(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "fanout", **WORK)
    d.client.method("exchange.declare", exchange="logs", type="direct", passive=True)
    if d.wrong:
        text = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'logs' in vhost '/'"
        refused(d, 406, text, "exchange.declare").may_break("X-DECL-PASSIVE-IGNORE")
    else:
        d.server.method("exchange.declare-ok")
    d.goodbye()


@pair("Q-DECL-PASSIVE-IGNORE")
def passive_queue_compared(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.client.method("queue.declare", queue="work", passive=True)
    if d.wrong:
        text = "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'work' in vhost '/'"
        refused(d, 406, text, "queue.declare").may_break("Q-DECL-PASSIVE-IGNORE")
    else:
        d.server.method("queue.declare-ok", queue="work")
    d.goodbye()


# ---- what others were reported
# --------------------------------------------------------------------------------


@pair("CH-VISIBLE")
def declared_and_not_seen(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    other = another(d)
    other.client.method("basic.consume", queue="work", consumer_tag="c")
    if d.wrong:
        not_found(other, "basic.consume", "queue", "work").may_break("CH-VISIBLE")
    else:
        other.server.method("basic.consume-ok", consumer_tag="c")
    leave(other)
    d.declare("work", passive=True)
    d.goodbye()


@pair("CH-NOWAIT-FAIL")
def not_done_and_not_said(d: Dialogue091) -> None:
    ready(d)
    d.client.method("queue.declare", queue="work", no_wait=True, **WORK)
    d.bind("work", "amq.direct") if not d.wrong else d.qos(10)
    d.client.method("queue.declare", queue="work", passive=True)
    if d.wrong:
        not_found(d, "queue.declare", "queue", "work").may_break("CH-NOWAIT-FAIL")
    else:
        d.server.method("queue.declare-ok", queue="work")
    d.goodbye()


@pair("X-PREDECLARED")
def standard_exchange_missing(d: Dialogue091) -> None:
    ready(d)
    d.client.method("exchange.declare", exchange="amq.fanout", type="fanout", passive=True)
    if d.wrong:
        not_found(d, "exchange.declare", "exchange", "amq.fanout").breaks("X-PREDECLARED")
    else:
        d.server.method("exchange.declare-ok")
    d.goodbye()


# ---- exclusive queues -------------------------------------------------------------------------------------


@pair("Q-EXCL-ACCESS")
def anothers_queue(d: Dialogue091) -> None:
    ready(d)
    d.declare("mine", exclusive=d.wrong, durable=not d.wrong)
    other = another(d)
    said = other.client.method("basic.consume", queue="mine", consumer_tag="c")
    if d.wrong:
        said.breaks("Q-EXCL-ACCESS")
        text = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'"
        refused(other, 405, text, "basic.consume")
    else:
        other.server.method("basic.consume-ok", consumer_tag="c")
    leave(other)
    d.consume("mine")
    d.goodbye()


@reported("another one's exclusive queue is used, and the server lets it")
def anothers_queue_let(d: Dialogue091) -> None:
    ready(d)
    d.declare("mine", exclusive=True)
    other = another(d)
    asked, _ = other.declare("mine", passive=True)
    asked.may_break("Q-EXCL-ACCESS")
    leave(other)
    d.consume("mine")
    d.goodbye()


@pair("Q-EXCL-DELETE")
def queue_outlives_its_owner(d: Dialogue091) -> None:
    ready(d)
    d.declare("mine", exclusive=True)
    d.goodbye()
    d.wait(seconds=60)
    other = another(d)
    other.client.method("queue.declare", queue="mine", passive=True)
    if d.wrong:
        other.server.method("queue.declare-ok", queue="mine").may_break("Q-EXCL-DELETE")
    else:
        not_found(other, "queue.declare", "queue", "mine")
    leave(other)


# ---- deleted ----------------------------------------------------------------------------------------------


@pair("X-DELETE-INUSE")
def exchange_in_use(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "fanout", **WORK)
    d.declare("work", **WORK)
    d.bind("work", "logs", "")
    if not d.wrong:
        d.ask("queue.unbind", queue="work", exchange="logs", routing_key="")
    _, answer = d.ask("exchange.delete", exchange="logs", if_unused=True)
    if d.wrong:
        answer.may_break("X-DELETE-INUSE")
    d.goodbye()


@reported("a queue is deleted as unused that another connection consumes from")
def queue_in_use_elsewhere(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.consume("work")
    other = another(d)
    _, answer = other.ask("queue.delete", queue="work", if_unused=True, answer={"message_count": 0})
    answer.may_break("Q-DELETE-INUSE")
    leave(other)
    d.goodbye()


# ---- bindings ---------------------------------------------------------------------------------------------


@pair("Q-BIND-DUP")
def same_binding_of_a_queue(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.bind("work", "amq.topic", "a.*")
    d.client.method("queue.bind", queue="work", exchange="amq.topic", routing_key="a.*")
    if d.wrong:
        refused(d, 406, "PRECONDITION_FAILED - bound already", "queue.bind").may_break("Q-BIND-DUP")
    else:
        d.server.method("queue.bind-ok")
    d.goodbye()


@pair("X-BIND-DUP")
def same_binding_of_an_exchange(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "fanout", **WORK)
    binding = {"destination": "logs", "source": "amq.topic", "routing_key": "a.*"}
    d.ask("exchange.bind", **binding)
    d.client.method("exchange.bind", **binding)
    if d.wrong:
        refused(d, 406, "PRECONDITION_FAILED - bound already", "exchange.bind").may_break("X-BIND-DUP")
    else:
        d.server.method("exchange.bind-ok")
    d.goodbye()


@pair("X-BIND-CYCLE")
def bound_to_itself(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "topic", **WORK)
    d.client.method("exchange.bind", destination="logs", source="logs", routing_key="a.*")
    if d.wrong:
        refused(d, 406, "PRECONDITION_FAILED - a cycle", "exchange.bind").may_break("X-BIND-CYCLE")
    else:
        d.server.method("exchange.bind-ok")
    d.goodbye()


@pair("Q-BIND-TRANSIENT-X")
def durable_queue_to_transient_exchange(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("logs", "fanout")
    d.declare("work", **WORK)
    d.client.method("queue.bind", queue="work", exchange="logs", routing_key="")
    if d.wrong:
        text = "PRECONDITION_FAILED - exchange 'logs' is transient"
        refused(d, 406, text, "queue.bind").may_break("Q-BIND-TRANSIENT-X")
    else:
        d.server.method("queue.bind-ok")
    d.goodbye()


# ---- how many there may be --------------------------------------------------------------------------------


def no_room(d: Dialogue091, cause: str, rule: str) -> None:
    d.server.close_connection(506, "RESOURCE_ERROR - no more", cause).may_break(rule)
    d.client.connection_close_ok()
    d.tcp.goodbye()


@pair("Q-BIND-MIN-4")
def no_room_for_bindings(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    for number in range(3):
        d.bind("work", "amq.direct", f"key {number}")
    if d.wrong:
        d.client.method("queue.bind", queue="work", exchange="amq.direct", routing_key="key 3")
        no_room(d, "queue.bind", "Q-BIND-MIN-4")
    else:
        d.bind("work", "amq.direct", "key 3")
        d.goodbye()


@pair("X-MIN-16")
def no_room_for_exchanges(d: Dialogue091) -> None:
    ready(d)
    for number in range(3):
        d.declare_exchange(f"logs {number}".replace(" ", "."))
    if d.wrong:
        d.client.method("exchange.declare", exchange="logs", type="direct")
        no_room(d, "exchange.declare", "X-MIN-16")
    else:
        d.declare_exchange("logs")
        d.goodbye()


@pair("Q-MIN-256")
def no_room_for_queues(d: Dialogue091) -> None:
    ready(d)
    for number in range(3):
        d.declare(f"work.{number}", **WORK)
    if d.wrong:
        d.client.method("queue.declare", queue="work", **WORK)
        no_room(d, "queue.declare", "Q-MIN-256")
    else:
        d.declare("work", **WORK)
        d.goodbye()


@pair("B-CONSUME-MIN-16")
def no_room_for_consumers(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.consume("work", "c1")
    if d.wrong:
        d.client.method("basic.consume", queue="work", consumer_tag="c2")
        no_room(d, "basic.consume", "B-CONSUME-MIN-16")
    else:
        d.consume("work", "c2")
        d.goodbye()


# ---- consumers --------------------------------------------------------------------------------------------


@reported("an exclusive consumer beside another connection's")
def exclusive_beside_others(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.consume("work", "c1")
    other = another(d)
    said = other.client.method("basic.consume", queue="work", consumer_tag="c2", exclusive=True)
    said.may_break("B-CONSUME-EXCL")
    refused(other, 403, "ACCESS_REFUSED - queue 'work' in vhost '/' in exclusive use", "basic.consume")
    leave(other)
    d.cancel("c1")
    later = another(d, "10.0.0.1:51036")
    later.consume("work", "c3", exclusive=True)
    leave(later)
    d.goodbye()


@reported("an exclusive consumer that is not alone")
def exclusive_and_not_alone(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.consume("work", "c1", exclusive=True)
    other = another(d)
    _, answer = other.consume("work", "c2")
    answer.may_break("B-CONSUME-EXCL-HELD")
    leave(other)
    d.goodbye()


@pair("B-CANCEL-NOQUEUE")
def cancelled_without_a_queue(d: Dialogue091) -> None:
    d.opened(start_ok={"capabilities": None})
    d.channel()
    d.declare("work", **WORK)
    d.consume("work")
    other = another(d)
    other.ask("queue.delete", queue="work", answer={"message_count": 0})
    leave(other)
    d.client.method("basic.cancel", consumer_tag="c")
    if d.wrong:
        refused(d, 404, "NOT_FOUND - no queue", "basic.cancel").may_break("B-CANCEL-NOQUEUE")
    else:
        d.server.method("basic.cancel-ok", consumer_tag="c")
    d.goodbye()


# ---- routes -----------------------------------------------------------------------------------------------


@pair("Q-DECL-DEFAULT-BIND")
def own_name_leads_nowhere(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.client.publish(routing_key="work" if d.wrong else "wrok", mandatory=True)
    said = d.server.return_content(routing_key="work" if d.wrong else "wrok")
    if d.wrong:
        said.may_break("Q-DECL-DEFAULT-BIND")
    d.goodbye()


@pair("Q-BIND-DIRECT-MATCH")
def bound_and_not_reached(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.bind("work", "amq.direct", "jobs")
    key = "jobs" if d.wrong else "job"
    d.client.publish(exchange="amq.direct", routing_key=key, mandatory=True)
    said = d.server.return_content(exchange="amq.direct", routing_key=key)
    if d.wrong:
        said.may_break("Q-BIND-DIRECT-MATCH")
    d.goodbye()


@pair("B-PUBLISH-INTERNAL")
def internal_exchange_reached(d: Dialogue091) -> None:
    ready(d)
    d.declare_exchange("inside", "fanout", reserved_3=True, **WORK)
    d.client.publish(exchange="inside", routing_key="")
    if d.wrong:
        d.client.method("basic.qos", prefetch_count=1)
        d.server.method("basic.qos-ok").may_break("B-PUBLISH-INTERNAL")
    else:
        text = "ACCESS_REFUSED - cannot publish to internal exchange 'inside' in vhost '/'"
        refused(d, 403, text, "basic.publish")
    d.goodbye()


# ---- what is legal ----------------------------------------------------------------------------------------


@legal("a message that comes back is one of two, and the later one came to no queue")
def one_of_two_returned(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.client.publish(routing_key="work", mandatory=True)
    d.client.method("queue.delete", queue="work")
    d.client.publish(routing_key="work", mandatory=True)
    d.server.method("queue.delete-ok", message_count=1)
    d.server.return_content(routing_key="work")
    d.goodbye()


@reported("the current queue is what was declared last, when another one's name is reported")
def current_queue_without_waiting(d: Dialogue091) -> None:
    ready(d)
    d.client.method("queue.declare", queue="", exclusive=True)
    d.client.method("queue.declare", queue="work", **WORK).breaks("CH-SYNC-WAIT")
    d.server.method("queue.declare-ok", queue="amq.gen-1")
    d.client.method("queue.delete", queue="")
    d.server.method("queue.declare-ok", queue="work")
    d.server.method("queue.delete-ok")
    d.client.publish(routing_key="work", mandatory=True)
    d.server.return_content(routing_key="work")
    d.goodbye()


@legal("a queue deleted by one while another one uses it")
def deleted_meanwhile(d: Dialogue091) -> None:
    """Which came first nobody knows."""
    ready(d)
    d.declare("work", **WORK)
    other = another(d)
    d.client.method("queue.delete", queue="work")
    d.wait(seconds=5)
    other.client.method("queue.declare", queue="work", passive=True)
    not_found(other, "queue.declare", "queue", "work")
    d.wait(seconds=5)
    d.server.method("queue.delete-ok", message_count=0)
    leave(other)
    d.goodbye()


@legal("what goes by itself is not missed")
def gone_by_itself(d: Dialogue091) -> None:
    ready(d)
    d.declare("a", auto_delete=True)
    d.consume("a")
    d.cancel()
    d.declare("b", arguments={"x-expires": ("I", 1000)})
    d.declare("c", exclusive=True)
    d.goodbye()
    for number, name in enumerate("abc"):
        other = another(d, f"10.0.0.1:{51100 + number}")
        other.client.method("queue.declare", queue=name, passive=True)
        not_found(other, "queue.declare", "queue", name)
        other.channel()
        other.declare(name, exclusive=True)
        leave(other)


@legal("the same name in another virtual host is another queue")
def a_queue_of_another_virtual_host(d: Dialogue091) -> None:
    ready(d)
    d.declare("work", **WORK)
    d.wait(seconds=5)
    other = d.again()
    other.opened(virtual_host="test")
    other.channel()
    other.client.method("queue.declare", queue="work", passive=True)
    not_found(other, "queue.declare", "queue", "work")
    leave(other)
    d.goodbye()


@legal("deleted twice, which RabbitMQ takes for done")
def deleted_twice(d: Dialogue091) -> None:
    ready(d)
    for _ in range(2):
        d.declare("work", **WORK)
        for _ in range(2):
            d.ask("queue.delete", queue="work", answer={"message_count": 0})
            d.ask("exchange.delete", exchange="logs")
    d.goodbye()


@legal("the same arguments in another order, and a consumer that is cancelled by the server")
def the_same_again(d: Dialogue091) -> None:
    ready(d)
    one, two = ("x-max-length", ("I", 5)), ("x-overflow", "reject-publish")
    d.declare("work", arguments=dict((one, two)), **WORK)
    d.consume("work", exclusive=True)
    other = another(d)
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    d.wait(seconds=5)
    other.declare("work", arguments=dict((two, one)), **WORK)
    other.consume("work", exclusive=True)
    leave(other)
    d.goodbye()
