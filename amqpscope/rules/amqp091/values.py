"""What stands in the fields of methods: names, reply codes, and what is to stay empty (amqp0-9-1.xml).

Of every method but acknowledgements the fields are looked at one by one, by their domains; of those that
carry messages only the few that matter.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.exchange import odd_character
from amqpscope.rules.amqp091.types import field_name_that_begins_oddly
from dissectors.amqp091.arguments import Field, Method, MethodType
from dissectors.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
)
from dissectors.amqp091.tables import FieldTable
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["judge_values"]

_LONGEST_NAME: Final = 127
"""Octets of the name of an exchange, a queue or a virtual host."""

_AMQ: Final = "amq."

# Classes of methods.
_CONNECTION: Final = 10
_CHANNEL: Final = 20


def judge_values(case: Case, method: Method, sound: bool) -> None:
    """The values in a method that decodes. sound: its tables do, too."""
    if isinstance(method, BasicDeliver):
        _exchange(case, method.exchange)
        return
    if isinstance(method, BasicPublish):
        _exchange(case, method.exchange)
        if method.reserved_1 > 0:
            ticket(case, method.reserved_1)
        return
    if isinstance(method, (BasicAck, BasicNack, BasicReject)):
        return
    if isinstance(method, BasicGetOk):
        _exchange(case, method.exchange)
        return
    definition = method.definition()
    values = method.values()
    at: i64 = 0
    for field in definition.fields:
        if not method.has(at):
            break
        value = values[at]
        at += 1
        if field.reserved:
            if value:
                _reserved(case, definition, field, value)
        elif isinstance(value, str):
            _text(case, definition, field, value)
        elif field.domain == "reply-code":
            if value == 0:
                reply_code_zero(case)
        elif isinstance(value, FieldTable) and sound:
            name = value.odd_name()
            if name is not None:
                field_name_that_begins_oddly(case, name)


def _text(case: Case, definition: MethodType, field: Field, value: str) -> None:
    """A short string."""
    domain = field.domain
    if domain == "exchange-name":
        if definition.name == "exchange.declare":
            # Its characters are judged where it is declared.
            if _too_long(value):
                exchange_name_too_long(case)
        else:
            _exchange(case, value)
    elif domain == "queue-name":
        if _too_long(value):
            queue_name_too_long(case)
        elif definition.name != "queue.declare" and not value.startswith(_AMQ):
            character = odd_character(value)
            if character:
                queue_name_of_odd_characters(case, character)
    elif domain == "path":
        if not value:
            no_virtual_host(case)
        elif _too_long(value):
            virtual_host_too_long(case)
    elif domain == "reply-text":
        if not value:
            no_reply_text(case)


def _too_long(name: str) -> bool:
    return len(name) * 4 > _LONGEST_NAME and len(name.encode("utf-8")) > _LONGEST_NAME


def _exchange(case: Case, name: str | None) -> None:
    """The name of an exchange, which is mostly the same as before."""
    if not name or name == case.fine_exchange:
        return
    if _too_long(name):
        exchange_name_too_long(case)
        return
    character = odd_character(name)
    if character:
        exchange_name_of_odd_characters(case, character)
    else:
        case.fine_exchange = name


def _certainty(case: Case) -> i64:
    """A server says the names that clients have made up."""
    return CERTAIN if case.me.by_client else POSSIBLE


def exchange_name_too_long(case: Case) -> None:
    """The name of an exchange has more than 127 octets.

    Why it matters: another broker may refuse it with 406 or 502. RabbitMQ takes 255.
    Silent when: octets before it were not captured, or the same was told of the connection before. Possible
    when the server says it, which a client has made up.
    """
    message = f"the name of an exchange has more than {_LONGEST_NAME} octets"
    case.report_once("amqp091/T-XNAME-LEN", message, _certainty(case), {})


def exchange_name_of_odd_characters(case: Case, character: str) -> None:
    """A method names an exchange in other characters than letters, digits, hyphen, underscore, period, colon.

    Why it matters: another broker may refuse the name with 406 or 502. RabbitMQ takes any.
    Silent when: octets before it were not captured; the same was told of the connection before, where an
    exchange is declared for one. Possible when the server says it, which a client has made up.
    """
    if not case.was_told("amqp091/X-DECL-SYNTAX"):
        message = f"the name of an exchange has the character {character!a}"
        evidence: dict[str, object] = {"character": ascii(character)}
        case.report_once("amqp091/T-XNAME-RE", message, _certainty(case), evidence)


def queue_name_too_long(case: Case) -> None:
    """The name of a queue has more than 127 octets.

    Why it matters: another broker may refuse it with 406 or 502. RabbitMQ takes 255.
    Silent when: octets before it were not captured, or the same was told of the connection before. Possible
    when the server says it, which a client may have made up.
    """
    message = f"the name of a queue has more than {_LONGEST_NAME} octets"
    case.report_once("amqp091/T-QNAME-LEN", message, _certainty(case), {})


def queue_name_of_odd_characters(case: Case, character: str) -> None:
    """A method names a queue in other characters than letters, digits, hyphen, underscore, period, colon.

    Why it matters: another broker may refuse the name with 406 or 502. RabbitMQ takes any.
    Silent when: octets before it were not captured; the same was told of the connection before, where a queue
    is declared for one; or the name begins with `amq.`, as those that brokers make up. Possible when the
    server says it.
    """
    if not case.was_told("amqp091/Q-DECL-SYNTAX"):
        message = f"the name of a queue has the character {character!a}"
        evidence: dict[str, object] = {"character": ascii(character)}
        case.report_once("amqp091/T-QNAME-RE", message, _certainty(case), evidence)


def no_virtual_host(case: Case) -> None:
    """connection.open names no virtual host: its name is empty.

    Why it matters: to RabbitMQ it is a name like any other, which mostly nobody has made; others take it for
    `/`, or refuse it with 502.
    Silent when: octets before it were not captured, or the name does not decode.
    """
    case.report("amqp091/T-PATH-NOTNULL", "the name of the virtual host is empty")


def virtual_host_too_long(case: Case) -> None:
    """The name of the virtual host in connection.open has more than 127 octets.

    Why it matters: a broker may refuse it with 502.
    Silent when: octets before it were not captured, or the name does not decode.
    """
    message = f"the name of the virtual host has more than {_LONGEST_NAME} octets"
    case.report("amqp091/T-PATH-LEN", message)


def reply_code_zero(case: Case) -> None:
    """The reply code of a close, or of a return, is zero.

    Why it matters: it says nothing; 200 says that all is well. Pika, py-amqp and others close channels so.
    Silent when: octets before it were not captured, or the same was told of the connection before.
    """
    case.report_once("amqp091/T-REPLYCODE-NOTNULL", f"{case.name} has the reply code 0", CERTAIN, {})


def no_reply_text(case: Case) -> None:
    """The reply text of a close, or of a return, is empty.

    Why it matters: who reads a log learns less. What a string is to be that is not null, the specification
    does not say; py-amqp and others leave it empty.
    Silent when: octets before it were not captured, or the same was told of the connection before.
    """
    case.report_once("amqp091/T-REPLYTEXT-NOTNULL", f"{case.name} has no reply text", CERTAIN, {})


def _reserved(case: Case, definition: MethodType, field: Field, value: object) -> None:
    """A field that is to stay zero or empty has a value. Who asked for 0-9 knows it under its old name."""
    if _asks_for_an_older_version(case):
        return
    class_id = definition.class_id
    if class_id == _CONNECTION:
        retired_field_of_the_connection(case, field.name)
    elif class_id == _CHANNEL:
        retired_field_of_a_channel(case, field.name)
    elif isinstance(value, bool):
        retired_bit_of_declare(case, field)
    elif isinstance(value, int):
        ticket(case, value)
    else:
        cluster_in_get_empty(case)


def _asks_for_an_older_version(case: Case) -> bool:
    for by_client, protocol_id, major, minor, revision in case.view.headers:
        if by_client and ProtocolHeader(protocol_id, major, minor, revision).protocol() == "AMQP 0-9":
            return True
    return False


def ticket(case: Case, number: i64) -> None:
    """The field of the former access ticket is not zero.

    Why it matters: access tickets are no more; it shows a client of an older version.
    Silent when: the server has given out tickets on the channel; octets of either peer were not captured; or
    the same was told of the connection before.
    """
    channel = case.channel
    if channel is not None and channel.whole and case.me.whole and not channel.ticketed:
        message = f"{case.name} has the access ticket {number}"
        case.report_once("amqp091/T-TICKET-ZERO", message, CERTAIN, {"ticket": int(number)})


def retired_field_of_the_connection(case: Case, name: str) -> None:
    """A retired field of connection.open or its answer has a value: capabilities, insist, known-hosts.

    Why it matters: hardly; pika and librabbitmq set insist by habit.
    Silent when: octets before it were not captured, or the same was told of the connection before.
    """
    rule = "amqp091/T-RESERVED-CONN"
    case.report_once(rule, f"{case.name} has a value in {name}", CERTAIN, {"field": name}, kind=name)


def retired_field_of_a_channel(case: Case, name: str) -> None:
    """A retired field of channel.open or its answer has a value: out-of-band, channel-id.

    Why it matters: hardly; it shows a peer of an older version.
    Silent when: octets before it were not captured, or the same was told of the connection before.
    """
    case.report_once(
        "amqp091/T-RESERVED-CHAN", f"{case.name} has a value in {name}", CERTAIN, {"field": name}
    )


def retired_bit_of_declare(case: Case, field: Field) -> None:
    """A retired bit of exchange.declare is set, auto-delete or internal, for a server that does not know it.

    Why it matters: the server takes no notice, and the exchange stays, or can be published to.
    Silent when: the server says that it is RabbitMQ or LavinMQ, to which both bits mean what they once did;
    or its start was not captured.
    """
    view = case.view
    if view.server is not None and not view.rabbitmq:
        message = f"{field.extension} is set, which is no part of AMQP 0-9-1"
        case.report("amqp091/T-RESERVED-XDECL", message, CERTAIN, {"field": field.name})


def cluster_in_get_empty(case: Case) -> None:
    """The retired field of basic.get-empty, the cluster-id, has a value.

    Why it matters: hardly; it shows a server of an older version.
    Silent when: octets before it were not captured, or the same was told of the connection before.
    """
    case.report_once("amqp091/T-RESERVED-GETEMPTY", "basic.get-empty has a value in reserved-1", CERTAIN, {})


RULES = {
    "amqp091/T-XNAME-LEN": exchange_name_too_long,
    "amqp091/T-XNAME-RE": exchange_name_of_odd_characters,
    "amqp091/T-QNAME-LEN": queue_name_too_long,
    "amqp091/T-QNAME-RE": queue_name_of_odd_characters,
    "amqp091/T-PATH-NOTNULL": no_virtual_host,
    "amqp091/T-PATH-LEN": virtual_host_too_long,
    "amqp091/T-REPLYCODE-NOTNULL": reply_code_zero,
    "amqp091/T-REPLYTEXT-NOTNULL": no_reply_text,
    "amqp091/T-TICKET-ZERO": ticket,
    "amqp091/T-RESERVED-CONN": retired_field_of_the_connection,
    "amqp091/T-RESERVED-CHAN": retired_field_of_a_channel,
    "amqp091/T-RESERVED-XDECL": retired_bit_of_declare,
    "amqp091/T-RESERVED-GETEMPTY": cluster_in_get_empty,
}
