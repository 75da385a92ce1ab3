"""Exchanges: their names and types, and what may be done with those that are there from the start.

Sources: the class exchange of amqp0-9-1.xml, sections 3.1.3 and 3.1.10 of the general specification;
RabbitMQ's exchange.bind and its errata.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import Request
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    ExchangeBind,
    ExchangeBindOk,
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    ExchangeUnbind,
    ExchangeUnbindOk,
)

__all__ = ["STANDARD_TYPES", "judge_method", "odd_character"]

STANDARD_TYPES: Final = ("direct", "fanout", "topic", "headers")
"""The types of exchanges that the specification describes; "system" is the name of another."""

_ALLOWED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def odd_character(name: str) -> str:
    """The first character of a name that names may not have, "" if there is none."""
    for character in name:
        if character not in _ALLOWED:
            return character
    return ""


def default_exchange_declared(case: Case) -> None:
    """exchange.declare or exchange.delete has an empty name, which stands for the default exchange.

    Why it matters: the default exchange is always there and can be neither made nor deleted; the broker
    closes the channel or the connection.
    Silent when: never.
    """
    case.report("amqp091/X-DEFAULT-DECL", f"{case.name} names no exchange", CERTAIN)


def name_of_odd_characters(case: Case, character: str) -> None:
    """The name of an exchange has a character that is no letter, digit, hyphen, underscore, period or colon.

    Why it matters: another broker may refuse the name with 406. RabbitMQ and others take any name.
    Silent when: the name was told of on this connection before.
    """
    case.report_once(
        "amqp091/X-DECL-SYNTAX",
        f"the name of an exchange has the character {character!a}",
        CERTAIN,
        {"character": ascii(character)},
    )


def type_without_prefix(case: Case, kind: str) -> None:
    """An exchange is declared of a type that is none of the specification's, and does not begin with `x-`.

    Why it matters: such names are kept for later editions; mostly it is a misspelt direct, fanout, topic or
    headers, and the broker refuses it.
    Silent when: the declaration is passive, where the type means nothing.
    """
    case.report(
        "amqp091/X-DECL-TYPE-PREFIX",
        f"an exchange is declared of the type {kind!a}, no standard one, and without x-",
        CERTAIN,
        {"type": ascii(kind)},
    )


def predeclared_exchange_deleted(case: Case, name: str) -> None:
    """An exchange whose name begins with `amq.` is deleted.

    Why it matters: every virtual host has these for everybody; RabbitMQ and others refuse with 403.
    Silent when: never.
    """
    case.report(
        "amqp091/X-DELETE-PREDECL", f"exchange.delete names {name!a}", CERTAIN, {"exchange": ascii(name)}
    )


def exchanges_bound_unasked(case: Case) -> None:
    """exchange.bind or exchange.unbind is sent to a server that has not announced that it can do that.

    Why it matters: these methods are RabbitMQ's; another server does not know them and closes the connection.
    Silent when: what the server announced was not captured whole.
    """
    case.report(
        "amqp091/X-BIND-CAP",
        f"{case.name} is sent, the server has not announced exchange_exchange_bindings",
        CERTAIN,
    )


def default_exchange_bound(case: Case) -> None:
    """The default exchange is the source or the destination of a binding of exchanges.

    Why it matters: RabbitMQ's description of the method lets it be, its errata and its brokers refuse it
    with 403.
    Silent when: never.
    """
    case.report("amqp091/X-BIND-DEFAULT", f"{case.name} names the default exchange", CERTAIN)


def default_exchange_reached(case: Case, request: Request) -> None:
    """A server carries out a method on the default exchange that no client may use with it.

    Why it matters: all publishes to queues by their names go by this exchange.
    Silent when: the request was not captured, or one before it is not answered.
    """
    case.report(
        "amqp091/X-DEFAULT-ACCESS",
        f"{case.name} accepts the {request.name} of the default exchange in packet {request.packet}",
        CERTAIN,
        {"request": request.name},
        [int(request.packet)],
    )


def _judge_declare(case: Case, method: ExchangeDeclare) -> None:
    name = method.exchange
    if name == "":
        default_exchange_declared(case)
        return
    if name is not None:
        odd = odd_character(name)
        if odd:
            name_of_odd_characters(case, odd)
    kind = method.type
    if method.passive or kind is None or kind in STANDARD_TYPES or kind == "system":
        return
    if not kind.startswith("x-"):
        type_without_prefix(case, kind)


def _judge_delete(case: Case, method: ExchangeDelete) -> None:
    name = method.exchange
    if name == "":
        default_exchange_declared(case)
    elif name is not None and name.startswith("amq."):
        predeclared_exchange_deleted(case, name)


def _judge_bind(case: Case, destination: str | None, source: str | None) -> None:
    server = case.view.server
    if case.view.whole and server is not None and server.lacks("exchange_exchange_bindings"):
        exchanges_bound_unasked(case)
        return
    if destination == "" or source == "":
        default_exchange_bound(case)


def _judge_answer(case: Case, channel: Channel) -> None:
    if not channel.whole or channel.awaited(False, case.name) != 0:
        return
    request = channel.requests[0]
    if request.subject == "" or (request.name.endswith("bind") and request.other == ""):
        default_exchange_reached(case, request)


def judge_method(case: Case, channel: Channel, method: Method) -> None:
    """A method of the class."""
    if case.me.by_client:
        if isinstance(method, ExchangeDeclare):
            _judge_declare(case, method)
        elif isinstance(method, ExchangeDelete):
            _judge_delete(case, method)
        elif isinstance(method, (ExchangeBind, ExchangeUnbind)):
            _judge_bind(case, method.destination, method.source)
    elif isinstance(method, (ExchangeDeclareOk, ExchangeDeleteOk, ExchangeBindOk, ExchangeUnbindOk)):
        _judge_answer(case, channel)


RULES = {
    "amqp091/X-DEFAULT-DECL": default_exchange_declared,
    "amqp091/X-DECL-SYNTAX": name_of_odd_characters,
    "amqp091/X-DECL-TYPE-PREFIX": type_without_prefix,
    "amqp091/X-DELETE-PREDECL": predeclared_exchange_deleted,
    "amqp091/X-BIND-CAP": exchanges_bound_unasked,
    "amqp091/X-BIND-DEFAULT": default_exchange_bound,
    "amqp091/X-DEFAULT-ACCESS": default_exchange_reached,
}
