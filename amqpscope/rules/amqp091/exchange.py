"""Exchanges: their names and types, and which operations on the predeclared ones are allowed.

Sources: the class exchange of amqp0-9-1.xml, sections 3.1.3 and 3.1.10 of the general specification;
RabbitMQ's exchange.bind and its errata.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import MethodRequest
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

RULES: Final = Rules("amqp091/exchange")


STANDARD_TYPES: Final = ("direct", "fanout", "topic", "headers")
"""The types of exchanges that the specification describes; "system" is the name of another."""

_ALLOWED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def odd_character(name: str) -> str:
    """The first character that a name must not contain, "" if there is none."""
    for character in name:
        if character not in _ALLOWED:
            return character
    return ""


X_DEFAULT_DECL: Final = RULES.rule(
    "X-DEFAULT-DECL", "IMPLIED", "tier A", by="client", answer="connection.close 502"
)


def default_exchange_declared(case: Case091) -> None:
    """A client sends exchange.declare or exchange.delete with an empty exchange name, which stands for the
    default exchange.

    Demands: The exchange name in exchange.declare and exchange.delete must not be empty.
    Source: XML:exchange.declare.exchange assert notnull; XML:exchange.delete.exchange assert notnull
    Evidence: the exchange name in exchange.declare and exchange.delete
    Why it matters: The default exchange always exists, and no client can create or delete it. The broker
    closes the channel or the connection.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Remove the exchange.declare or exchange.delete for the empty name, because the default
    exchange always exists. Check whether a configuration value for the exchange name is missing, and skip the
    declaration if the name is empty.
    """
    case.report(
        X_DEFAULT_DECL,
        f"{case.name} has an empty exchange name, which stands for the default exchange",
        CERTAIN,
    )


X_DECL_SYNTAX: Final = RULES.rule(
    "X-DECL-SYNTAX",
    "IMPLIED",
    "tier A",
    by="client",
    warning="Brokers are known not to enforce this rule.",
    answer="channel.close 406",
)


def name_of_odd_characters(case: Case091, character: str) -> None:
    """A client declares an exchange whose name contains a character other than a letter, digit, hyphen,
    underscore, period or colon.

    Demands: The name of a declared exchange may contain only letters, digits, '-', '_', '.' and ':'.
    Source: XML:exchange.declare.exchange.syntax
    Evidence: the exchange name in exchange.declare
    Why it matters: Another broker may refuse the name with reply-code 406 (precondition-failed), so the
    application may fail with that broker. RabbitMQ and other brokers accept any name.
    Silent when: the rule has already reported such a name on the same connection.
    How to mend it: Use only letters, digits, `-`, `_`, `.` and `:` in exchange names. Replace other
    characters, for example spaces or slashes, before declaring the exchange.
    """
    case.report_once(
        X_DECL_SYNTAX,
        f"the exchange name contains the character {character!a}, which the specification forbids",
        CERTAIN,
        {"character": ascii(character)},
    )


X_DECL_TYPE_PREFIX: Final = RULES.rule("X-DECL-TYPE-PREFIX", "MUST", "tier A", answer="connection.close 503")


def type_without_prefix(case: Case091, kind: str) -> None:
    """A client declares an exchange with a type that the specification does not define and that does not
    begin with `x-`.

    Demands: The name of an exchange type that is not in the specification must begin with 'x-'.
    Source: GS:3.1.3.6; GS:3.1.10
    Evidence: the type in exchange.declare
    Why it matters: The specification reserves type names without `x-` for later editions. Usually the type is
    a misspelling of `direct`, `fanout`, `topic` or `headers`, and the broker refuses the declaration.
    Silent when: the declaration is passive, because a passive declaration does not use the type.
    How to mend it: Check the spelling of the type: `direct`, `fanout`, `topic` or `headers`, in lower case.
    An exchange type of your own or of a plugin needs a name that begins with `x-`.
    """
    case.report(
        X_DECL_TYPE_PREFIX,
        f"the exchange type {kind!a} is not a standard type, and does not begin with x-",
        CERTAIN,
        {"type": ascii(kind)},
    )


X_DELETE_PREDECL: Final = RULES.rule(
    "X-DELETE-PREDECL", "IMPLIED", "tier A", by="client", answer="channel.close 403"
)


def predeclared_exchange_deleted(case: Case091, name: str) -> None:
    """A client deletes an exchange whose name begins with `amq.`.

    Demands: A client must not delete the predeclared exchanges, whose names begin with `amq.`.
    Source: RMQ:docs/spec-differences
    Evidence: the exchange name in exchange.delete
    Why it matters: Every virtual host has the predeclared exchanges for all clients. RabbitMQ and other
    brokers refuse the deletion with reply-code 403 (access-refused) and close the channel.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Remove the exchange.delete of the predeclared exchange. In cleanup code, skip every
    exchange whose name begins with `amq.`, and delete only exchanges that the application has declared
    itself.
    """
    case.report(
        X_DELETE_PREDECL,
        f"exchange.delete names the predeclared exchange {name!a}, which must not be deleted",
        CERTAIN,
        {"exchange": ascii(name)},
    )


X_BIND_CAP: Final = RULES.rule(
    "X-BIND-CAP", "IMPLIED", "tier A", by="client", answer="connection.close 503 or connection.close 540"
)


def exchanges_bound_unasked(case: Case091) -> None:
    """A client sends exchange.bind or exchange.unbind although the server has not announced the capability
    exchange_exchange_bindings.

    Demands: A client may send exchange.bind and exchange.unbind only if the server announces the capability
    exchange_exchange_bindings.
    Source: RMQ:docs/e2e; RMQ:docs/connections (capabilities)
    Evidence: the capabilities in connection.start, and each exchange.bind and exchange.unbind of the client
    Why it matters: The methods exchange.bind and exchange.unbind are extensions of RabbitMQ. A server that
    does not know exchange.bind and exchange.unbind closes the connection.
    Silent when: the capture lacks a part of the capabilities that the server announced.
    How to mend it: Check the server-properties of connection.start for the capability
    `exchange_exchange_bindings` before sending exchange.bind or exchange.unbind. Without the capability, bind
    the queues directly to the source exchange.
    """
    case.report(
        X_BIND_CAP,
        f"the peer sends {case.name} although the server has not announced the capability "
        "exchange_exchange_bindings",
        CERTAIN,
    )


X_BIND_DEFAULT: Final = RULES.rule(
    "X-BIND-DEFAULT", "IMPLIED", "tier A", by="client", answer="channel.close 403"
)


def default_exchange_bound(case: Case091) -> None:
    """A client uses the default exchange as the source or the destination in exchange.bind or
    exchange.unbind.

    Demands: The default exchange must not be the source or the destination of an exchange binding.
    Source: ERR:14; RMQX:exchange.bind.source.default-exchange
    Evidence: the source and the destination in exchange.bind and exchange.unbind
    Why it matters: RabbitMQ's description of exchange.bind allows the default exchange, but RabbitMQ's
    errata forbid it. RabbitMQ brokers refuse the request with reply-code 403 (access-refused).
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Use only declared exchanges in exchange.bind and exchange.unbind, and check that neither
    exchange name is empty. To reach a queue by name, publish to the default exchange instead of binding it.
    """
    case.report(
        X_BIND_DEFAULT,
        f"{case.name} names the default exchange, which must not have exchange bindings",
        CERTAIN,
    )


X_DEFAULT_ACCESS: Final = RULES.rule("X-DEFAULT-ACCESS", "MUST NOT", "tier A", by="server")


def default_exchange_reached(case: Case091, request: MethodRequest) -> None:
    """A server carries out exchange.declare, exchange.delete, exchange.bind or exchange.unbind for the
    default exchange.

    Demands: A server may accept the default exchange only in queue.bind and basic.publish. In both methods,
    an empty exchange name stands for the default exchange.
    Source: XML:exchange.default-access; ERR:14
    Evidence: an exchange.declare, exchange.delete, exchange.bind or exchange.unbind with an empty exchange
    name, and the server's positive answer
    Why it matters: Every client that publishes to a queue by its name uses the default exchange. A client
    that changes the default exchange can affect every other client.
    Silent when: the request was not captured, or when an earlier request on the channel is still unanswered.
    How to mend it: Refuse exchange.declare, exchange.delete, exchange.bind and exchange.unbind with an empty
    exchange name. Close the channel with reply-code 403 (access-refused) and leave the default exchange
    unchanged.
    """
    case.report(
        X_DEFAULT_ACCESS,
        f"the server accepts the {request.name} in packet {request.packet}, which names the default "
        "exchange and must be refused",
        CERTAIN,
        {"request": request.name},
        [int(request.packet)],
    )


def _judge_declare(case: Case091, method: ExchangeDeclare) -> None:
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


def _judge_delete(case: Case091, method: ExchangeDelete) -> None:
    name = method.exchange
    if name == "":
        default_exchange_declared(case)
    elif name is not None and name.startswith("amq."):
        predeclared_exchange_deleted(case, name)


def _judge_bind(case: Case091, destination: str | None, source: str | None) -> None:
    server = case.view.server
    if case.view.whole and server is not None and server.lacks("exchange_exchange_bindings"):
        exchanges_bound_unasked(case)
        return
    if destination == "" or source == "":
        default_exchange_bound(case)


def _judge_answer(case: Case091, channel: Channel) -> None:
    if not channel.whole or channel.requests.awaited(False, case.name) != 0:
        return
    request = channel.requests.by_client[0]
    if request.subject == "" or (request.name.endswith("bind") and request.other == ""):
        default_exchange_reached(case, request)


def judge_method(case: Case091, channel: Channel, method: Method) -> None:
    """A method of the class exchange."""
    if case.me.by_client:
        if isinstance(method, ExchangeDeclare):
            _judge_declare(case, method)
        elif isinstance(method, ExchangeDelete):
            _judge_delete(case, method)
        elif isinstance(method, (ExchangeBind, ExchangeUnbind)):
            _judge_bind(case, method.destination, method.source)
    elif isinstance(method, (ExchangeDeclareOk, ExchangeDeleteOk, ExchangeBindOk, ExchangeUnbindOk)):
        _judge_answer(case, channel)
