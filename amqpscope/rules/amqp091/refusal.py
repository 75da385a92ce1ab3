"""Exchanges and queues that the server refuses to make or to bind: what its close tells.

Why a request is refused shows only in the close that names it, so nothing here that takes a reason for
granted is more than possible. The finding stands where the request was said, or, where the refusal itself is
at fault, at the close. What does not exist, or is otherwise than declared, is held against what all
connections have done: see `entities` and `existence`.

Sources: the classes exchange and queue of amqp0-9-1.xml; RabbitMQ's errata.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.exchange import STANDARD_TYPES
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import DURABLE, EXCLUSIVE, PASSIVE, Request
from dissectors.wire import i64

__all__ = ["judge_close", "judge_connection_close"]

_PREDECLARED: Final = (
    "amq.direct",
    "amq.fanout",
    "amq.topic",
    "amq.headers",
    "amq.match",
    "amq.rabbitmq.trace",
)

# Methods by class-id and method-id, as a close names them: those that may be refused.
_REFUSABLE: Final[dict[tuple[int, int], str]] = {
    (40, 10): "exchange.declare",
    (50, 10): "queue.declare",
    (50, 20): "queue.bind",
    (50, 50): "queue.unbind",
}


class Refusal:
    """A request, on its channel, and the close that names it. text: in small letters."""

    def __init__(self, channel: Channel, request: Request, code: i64, text: str) -> None:
        self.channel: Channel = channel
        self.request: Request = request
        self.code: i64 = code
        self.text: str = text


def _blame(case: Case, rule: str, refusal: Refusal, what: str) -> None:
    """The client's request breaks a rule, as the server's close says."""
    request = refusal.request
    record = case.record
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction, request.packet, request.time, request.end, request.name, refusal.channel.number
    )
    packet = int(record.packet)
    case.report(
        rule,
        f"{request.name} {what}: the server refuses it with {refusal.code} (packet {packet})",
        POSSIBLE,
        {"reply_code": int(refusal.code), "name": ascii(request.subject)},
        [packet],
    )
    case.spot = before


def _complain(case: Case, rule: str, refusal: Refusal, what: str) -> None:
    """The server must not refuse the request."""
    request = refusal.request
    case.report(
        rule,
        f"{request.name} in packet {request.packet} is refused with {refusal.code}: {what}",
        POSSIBLE,
        {"reply_code": int(refusal.code), "name": ascii(request.subject)},
        [int(request.packet)],
    )


# What the client named


def reserved_queue_declared(case: Case, refusal: Refusal) -> None:
    """A queue is declared whose name begins with `amq.`, and which does not exist.

    Why it matters: these names are the broker's. Often a name that it made up is declared again after the
    connection was lost, and the queue with it.
    Silent when: the server does not refuse it with 403, or the declaration is passive.
    Only possible because: The user may lack a permission.
    """
    _blame(case, "amqp091/Q-DECL-RESERVED", refusal, "names a queue of the broker's")


def reserved_exchange_declared(case: Case, refusal: Refusal) -> None:
    """An exchange is declared whose name begins with `amq.`, and which does not exist.

    Why it matters: these names are the broker's.
    Silent when: the server does not refuse it with 403, or the declaration is passive.
    Only possible because: The user may lack a permission.
    """
    _blame(case, "amqp091/X-DECL-RESERVED", refusal, "names an exchange of the broker's")


def type_not_supported(case: Case, refusal: Refusal) -> None:
    """An exchange is declared of a type that the server does not have.

    Why it matters: mostly a plugin is missing; the broker refuses it, by the specification with 503.
    Silent when: the server does not say so, or the type is no extension.
    Only possible because: Only its close tells.
    """
    _blame(case, "amqp091/X-DECL-TYPE-SUPPORT", refusal, f"wants the type {refusal.request.other!a}")


# What the server had to carry out


def default_exchange_missing(case: Case, refusal: Refusal) -> None:
    """A server says that the default exchange does not exist.

    Why it matters: all publishes to queues by their names go by it.
    Silent when: the close does not speak of an exchange.
    Only possible because: It may mean something else.
    """
    _complain(case, "amqp091/X-DEFAULT-EXISTS", refusal, "but every virtual host has the default exchange")


def required_type_missing(case: Case, refusal: Refusal) -> None:
    """A server refuses an exchange of the type direct or fanout.

    Why it matters: these two every server has.
    Silent when: the close does not speak of the type.
    Only possible because: It may mean something else.
    """
    _complain(case, "amqp091/X-TYPES-REQUIRED", refusal, "but every server has the types direct and fanout")


def recommended_type_missing(case: Case, refusal: Refusal) -> None:
    """A server refuses an exchange of the type topic or headers.

    Why it matters: servers should have them, and clients count on that.
    Silent when: the close does not speak of the type.
    Only possible because: It may mean something else.
    """
    _complain(case, "amqp091/X-TYPES-RECOMMENDED", refusal, "but servers should have topic and headers")


def durability_refused_of_exchange(case: Case, refusal: Refusal) -> None:
    """A server says that it does not implement what exchange.declare asks for: a durable exchange, or one
    that is not.

    Why it matters: both have to be there.
    Silent when: the reply-code is not 540.
    Only possible because: The close may mean something else.
    """
    _complain(case, "amqp091/X-DECL-DURABLE", refusal, "but exchanges of both kinds are to be had")


def durability_refused_of_queue(case: Case, refusal: Refusal) -> None:
    """A server says that it does not implement what queue.declare asks for: a durable queue, or one that is
    not.

    Why it matters: both have to be there. New releases of RabbitMQ refuse transient queues that are not
    exclusive.
    Silent when: the reply-code is neither 540 nor, with a word about transient queues, 541.
    Only possible because: The close may mean something else.
    """
    _complain(case, "amqp091/Q-DECL-DURABLE", refusal, "but durable and transient queues are both to be had")


def exclusive_queue_refused(case: Case, refusal: Refusal) -> None:
    """A server says that it does not implement what queue.declare asks for: an exclusive queue.

    Why it matters: exclusive and shared queues have both to be there.
    Silent when: the reply-code is not 540.
    Only possible because: The close may mean something else.
    """
    _complain(case, "amqp091/Q-DECL-EXCLUSIVE", refusal, "but exclusive and shared queues are both to be had")


def default_exchange_not_bound(case: Case, refusal: Refusal) -> None:
    """A server refuses queue.bind to the default exchange.

    Why it matters: by the specification the empty name stands for the default exchange; RabbitMQ's errata
    has it refused, and so do the brokers. Clients avoid it: queues are bound to it anyway.
    Silent when: the same was told of the connection before, or the reply-code is not 403.
    """
    case.report_once(
        "amqp091/Q-BIND-DEFAULT-X",
        f"queue.bind to the default exchange in packet {refusal.request.packet} is refused",
        POSSIBLE,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


def default_exchange_not_unbound(case: Case, refusal: Refusal) -> None:
    """A server refuses queue.unbind from the default exchange.

    Why it matters: by the specification the empty name stands for the default exchange; RabbitMQ's errata
    has it refused, and so do the brokers.
    Silent when: the reply-code is not 403.
    Only possible because: The user may lack a permission.
    """
    _complain(case, "amqp091/Q-UNBIND-DEFAULT-X", refusal, "but the empty name means the default exchange")


def unbind_fails_by_channel(case: Case, refusal: Refusal) -> None:
    """A server closes only the channel because of queue.unbind.

    Why it matters: one rule of the specification wants the connection closed, others name a code of
    channels; brokers close the channel.
    Silent when: the same was told of the connection before, or the reply-code is 404, which other rules of
    the method ask for.
    """
    case.report_once(
        "amqp091/Q-UNBIND-FAIL-CONN",
        f"queue.unbind in packet {refusal.request.packet} fails, and only the channel is closed",
        CERTAIN,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


def passive_without_wait_of_exchange(case: Case, refusal: Refusal) -> None:
    """A passive exchange.declare with no-wait is refused.

    Why it matters: by the specification it does nothing at all; RabbitMQ closes the channel if there is no
    such exchange, so that the client can learn it.
    Silent when: the same was told of the connection before.
    """
    case.report_once(
        "amqp091/X-DECL-PASSIVE-NOWAIT",
        f"a passive exchange.declare with no-wait in packet {refusal.request.packet} is refused",
        CERTAIN,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


def passive_without_wait_of_queue(case: Case, refusal: Refusal) -> None:
    """A passive queue.declare with no-wait is refused.

    Why it matters: by the specification it does nothing at all; RabbitMQ closes the channel if there is no
    such queue, so that the client can learn it.
    Silent when: the same was told of the connection before.
    """
    case.report_once(
        "amqp091/Q-DECL-PASSIVE-NOWAIT",
        f"a passive queue.declare with no-wait in packet {refusal.request.packet} is refused",
        CERTAIN,
        {"reply_code": int(refusal.code)},
        [int(refusal.request.packet)],
    )


# Which of them it is


def _queue_declare(case: Case, refusal: Refusal) -> None:
    code, request = refusal.code, refusal.request
    if PASSIVE in request.flags:
        return
    if code == 403:
        if request.subject.startswith("amq."):
            reserved_queue_declared(case, refusal)
    elif code == 540:
        if EXCLUSIVE in request.flags and DURABLE not in request.flags:
            exclusive_queue_refused(case, refusal)
        else:
            durability_refused_of_queue(case, refusal)
    elif code == 541 and "transient" in refusal.text:
        durability_refused_of_queue(case, refusal)


def _exchange_declare(case: Case, refusal: Refusal) -> None:
    code, text, request = refusal.code, refusal.text, refusal.request
    if PASSIVE in request.flags:
        return
    if code == 403:
        if request.subject.startswith("amq.") and request.subject not in _PREDECLARED:
            reserved_exchange_declared(case, refusal)
    elif code == 540:
        durability_refused_of_exchange(case, refusal)
    elif code in (406, 503) and "type" in text and "inequivalent" not in text:
        if request.other in ("direct", "fanout"):
            required_type_missing(case, refusal)
        elif request.other in STANDARD_TYPES:
            recommended_type_missing(case, refusal)
        elif request.other.startswith("x-"):
            type_not_supported(case, refusal)


def _queue_binding(case: Case, refusal: Refusal) -> None:
    code, request = refusal.code, refusal.request
    if request.other != "":
        return
    if code == 403:
        if request.name == "queue.bind":
            default_exchange_not_bound(case, refusal)
        else:
            default_exchange_not_unbound(case, refusal)
    elif code == 404 and "exchange" in refusal.text and "no queue" not in refusal.text:
        default_exchange_missing(case, refusal)


def _judge(case: Case, refusal: Refusal, waited: bool) -> None:
    name = refusal.request.name
    if not waited and PASSIVE in refusal.request.flags:
        if name == "exchange.declare":
            passive_without_wait_of_exchange(case, refusal)
        else:
            passive_without_wait_of_queue(case, refusal)
    elif name == "queue.declare":
        _queue_declare(case, refusal)
    elif name == "exchange.declare":
        _exchange_declare(case, refusal)
    else:
        _queue_binding(case, refusal)


def _request(channel: Channel, name: str) -> Request | None:
    """The request of this kind that a close means: the oldest that waits for its answer, else one with
    no-wait."""
    for request in channel.requests:
        if request.name == name:
            return request
    return channel.unheard.get(name)


def judge_close(case: Case, channel: Channel, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """channel.close of a server that names a method."""
    name = _REFUSABLE.get((int(class_id), int(method_id)))
    if name is None or not channel.whole:
        return
    request = _request(channel, name)
    if request is None:
        return
    refusal = Refusal(channel, request, code, text.lower())
    if name == "queue.unbind" and code != 404:
        unbind_fails_by_channel(case, refusal)
    _judge(case, refusal, channel.unheard.get(name) is not request)


def judge_connection_close(case: Case, code: i64, text: str, class_id: i64, method_id: i64) -> None:
    """connection.close of a server that names a method: which channel it means shows if only one has it."""
    name = _REFUSABLE.get((int(class_id), int(method_id)))
    if name is None:
        return
    found: Refusal | None = None
    waited = True
    for channel in case.view.channels.values():
        request = _request(channel, name) if channel.is_open and channel.whole else None
        if request is not None:
            if found is not None:
                return
            found = Refusal(channel, request, code, text.lower())
            waited = channel.unheard.get(name) is not request
    if found is not None:
        _judge(case, found, waited)


RULES = {
    "amqp091/Q-DECL-RESERVED": reserved_queue_declared,
    "amqp091/X-DECL-RESERVED": reserved_exchange_declared,
    "amqp091/X-DECL-TYPE-SUPPORT": type_not_supported,
    "amqp091/X-DEFAULT-EXISTS": default_exchange_missing,
    "amqp091/X-TYPES-REQUIRED": required_type_missing,
    "amqp091/X-TYPES-RECOMMENDED": recommended_type_missing,
    "amqp091/X-DECL-DURABLE": durability_refused_of_exchange,
    "amqp091/Q-DECL-DURABLE": durability_refused_of_queue,
    "amqp091/Q-DECL-EXCLUSIVE": exclusive_queue_refused,
    "amqp091/Q-BIND-DEFAULT-X": default_exchange_not_bound,
    "amqp091/Q-UNBIND-DEFAULT-X": default_exchange_not_unbound,
    "amqp091/Q-UNBIND-FAIL-CONN": unbind_fails_by_channel,
    "amqp091/X-DECL-PASSIVE-NOWAIT": passive_without_wait_of_exchange,
    "amqp091/Q-DECL-PASSIVE-NOWAIT": passive_without_wait_of_queue,
}
