"""The values of method fields: names, reply-codes, and fields that have to be empty (amqp0-9-1.xml).

All fields of a method are checked by their domains, except in acknowledgements. In methods that carry
messages only the few relevant fields are checked.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.exchange import X_DECL_SYNTAX, odd_character
from amqpscope.rules.amqp091.queue import Q_DECL_SYNTAX
from amqpscope.rules.amqp091.types import field_name_that_begins_oddly
from amqpscope.rules.declaration import Rules
from dissectors.amqp091.arguments import ArgumentField, Method, MethodType
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

RULES: Final = Rules("amqp091/values")


_LONGEST_NAME: Final = 127
"""Octets of the name of an exchange, a queue or a virtual host."""

_AMQ: Final = "amq."

# Classes of methods.
_CONNECTION: Final = 10
_CHANNEL: Final = 20


def judge_values(case: Case091, method: Method, sound: bool) -> None:
    """The values in a method that can be decoded. sound: whether its tables can be decoded, too."""
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


def _text(case: Case091, definition: MethodType, field: ArgumentField, value: str) -> None:
    """A short string."""
    domain = field.domain
    if domain == "exchange-name":
        if definition.name == "exchange.declare":
            # Another rule judges the characters where the name is declared.
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


def _exchange(case: Case091, name: str | None) -> None:
    """The name of an exchange, which is usually the same as in the previous method."""
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


def _certainty(case: Case091) -> i64:
    """The certainty is lower for a server, because a server repeats names that clients have chosen."""
    return CERTAIN if case.me.by_client else POSSIBLE


T_XNAME_LEN: Final = RULES.rule(
    "T-XNAME-LEN", "IMPLIED", "tier A", answer="connection.close 502 or channel.close 406"
)


def exchange_name_too_long(case: Case091) -> None:
    """A peer sends a method with an exchange name of more than 127 octets.

    Demands: An exchange name must not have more than 127 octets.
    Source: XML domain exchange-name assert length 127
    Evidence: the exchange names in all methods
    Why it matters: Another broker may refuse the name with reply-code 406 (precondition-failed) or 502
    (syntax-error), so the application may fail with that broker. RabbitMQ accepts names of up to 255 octets.
    Silent when: the capture lacks octets before the method, or when the rule has already reported the fault
    on the same connection. The finding is reported as possible, not as certain, when the server sends the
    name, because a client has chosen the name.
    Possible because: The {peer} may have repeated a name that a client has chosen.
    How to mend it: Shorten the exchange name to at most 127 octets. Count the octets of the UTF-8 form, not
    characters.
    """
    message = f"the exchange name has more than {_LONGEST_NAME} octets"
    case.report_once(T_XNAME_LEN, message, _certainty(case), {})


T_XNAME_RE: Final = RULES.rule(
    "T-XNAME-RE", "IMPLIED", "tier A", answer="connection.close 502 or channel.close 406"
)


def exchange_name_of_odd_characters(case: Case091, character: str) -> None:
    """A peer sends a method with an exchange name that contains a character other than letters, digits,
    hyphen, underscore, period and colon.

    Demands: An exchange name may contain only letters, digits, '-', '_', '.' and ':'.
    Source: XML domain exchange-name assert regexp
    Evidence: the exchange names in all methods
    Why it matters: Another broker may refuse the name with reply-code 406 (precondition-failed) or 502
    (syntax-error), so the application may fail with that broker. RabbitMQ accepts any name.
    Silent when: the capture lacks octets before the method. The rule is also silent when another rule has
    already reported the fault on the same connection, for example amqp091/X-DECL-SYNTAX when the client
    declared an exchange. The finding is reported as possible, not as certain, when the server sends the name,
    because a client has chosen the name.
    Possible because: The {peer} may have repeated a name that a client has chosen.
    How to mend it: Use only ASCII letters, digits, `-`, `_`, `.` and `:` in exchange names. If exchange
    names are built from other texts, replace every character that is not allowed, such as spaces and slashes.
    """
    if not case.was_reported(X_DECL_SYNTAX):
        message = f"the exchange name contains the character {character!a}, which the specification forbids"
        evidence: dict[str, object] = {"character": ascii(character)}
        case.report_once(T_XNAME_RE, message, _certainty(case), evidence)


T_QNAME_LEN: Final = RULES.rule(
    "T-QNAME-LEN", "IMPLIED", "tier A", answer="connection.close 502 or channel.close 406"
)


def queue_name_too_long(case: Case091) -> None:
    """A peer sends a method with a queue name of more than 127 octets.

    Demands: A queue name must not have more than 127 octets.
    Source: XML domain queue-name assert length 127
    Evidence: the queue names in all methods, including queue.declare-ok
    Why it matters: Another broker may refuse the name with reply-code 406 (precondition-failed) or 502
    (syntax-error), so the application may fail with that broker. RabbitMQ accepts names of up to 255 octets.
    Silent when: the capture lacks octets before the method, or when the rule has already reported the fault
    on the same connection. The finding is reported as possible, not as certain, when the server sends the
    name, because a client may have chosen the name.
    Possible because: The {peer} may have repeated a name that a client has chosen.
    How to mend it: Shorten the queue name to at most 127 octets. Count the octets of the UTF-8 form, not
    characters. In generated names, replace long parts by a digest.
    """
    message = f"the queue name has more than {_LONGEST_NAME} octets"
    case.report_once(T_QNAME_LEN, message, _certainty(case), {})


T_QNAME_RE: Final = RULES.rule(
    "T-QNAME-RE", "IMPLIED", "tier A", answer="connection.close 502 or channel.close 406"
)


def queue_name_of_odd_characters(case: Case091, character: str) -> None:
    """A peer sends a method with a queue name that contains a character other than letters, digits, hyphen,
    underscore, period and colon.

    Demands: A queue name may contain only letters, digits, '-', '_', '.' and ':'.
    Source: XML domain queue-name assert regexp
    Evidence: the queue names in all methods
    Why it matters: Another broker may refuse the name with reply-code 406 (precondition-failed) or 502
    (syntax-error), so the application may fail with that broker. RabbitMQ accepts any name.
    Silent when: the capture lacks octets before the method, or when the name begins with `amq.`, because
    brokers generate such names. The rule is also silent when another rule has already reported the fault on
    the same connection, for example amqp091/Q-DECL-SYNTAX when the client declared a queue. The finding is
    reported as possible, not as certain, when the server sends the name.
    Possible because: The {peer} may have repeated a name that a client has chosen.
    How to mend it: Use only ASCII letters, digits, `-`, `_`, `.` and `:` in queue names. If queue names are
    built from other texts, replace every character that is not allowed, such as spaces and slashes.
    """
    if not case.was_reported(Q_DECL_SYNTAX):
        message = f"the queue name contains the character {character!a}, which the specification forbids"
        evidence: dict[str, object] = {"character": ascii(character)}
        case.report_once(T_QNAME_RE, message, _certainty(case), evidence)


T_PATH_NOTNULL: Final = RULES.rule(
    "T-PATH-NOTNULL", "IMPLIED", "tier A", by="client", answer="connection.close 502"
)


def no_virtual_host(case: Case091) -> None:
    """A client sends connection.open with an empty virtual host name.

    Demands: The virtual host in connection.open must not be empty.
    Source: XML domain path assert notnull
    Evidence: the virtual host in connection.open
    Why it matters: RabbitMQ treats the empty name like any other name, and usually has no virtual host of
    that name. Other brokers treat the empty name as `/`, or refuse it with reply-code 502 (syntax-error).
    Silent when: the capture lacks octets before connection.open, or when amqpscope cannot decode the name.
    How to mend it: Put the name of the virtual host into connection.open, usually `/`. In a connection URI, a
    single slash at the end means the empty name. For the virtual host `/`, write `%2F` after the slash.
    """
    case.report(T_PATH_NOTNULL, "the name of the virtual host is empty")


T_PATH_LEN: Final = RULES.rule("T-PATH-LEN", "IMPLIED", "tier A", by="client", answer="connection.close 502")


def virtual_host_too_long(case: Case091) -> None:
    """A client sends connection.open with a virtual host name of more than 127 octets.

    Demands: The name of the virtual host must not have more than 127 octets.
    Source: XML domain path assert length 127
    Evidence: the virtual host in connection.open
    Why it matters: A broker may refuse connection.open with reply-code 502 (syntax-error), so the client
    cannot connect.
    Silent when: the capture lacks octets before connection.open, or when amqpscope cannot decode the name.
    How to mend it: Shorten the name of the virtual host to at most 127 octets, on the broker and in the
    client's configuration. Count the octets of the UTF-8 form, not characters.
    """
    message = f"the name of the virtual host has more than {_LONGEST_NAME} octets"
    case.report(T_PATH_LEN, message)


T_REPLYCODE_NOTNULL: Final = RULES.rule(
    "T-REPLYCODE-NOTNULL",
    "IMPLIED",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def reply_code_zero(case: Case091) -> None:
    """A peer sends connection.close, channel.close or basic.return with reply-code 0.

    Demands: The reply-code in connection.close, channel.close and basic.return must not be 0.
    Source: XML domain reply-code assert notnull
    Evidence: the reply-code in connection.close, channel.close and basic.return
    Why it matters: With reply-code 0, the other peer does not learn the reason. A normal close has reply-code
    200. Pika, py-amqp and other clients close channels with reply-code 0.
    Silent when: the capture lacks octets before the frame, or when the rule has already reported the fault on
    the same connection.
    How to mend it: Set reply-code to 200 for a normal close, and to the matching error code of the
    specification otherwise. Do not leave reply-code at its default value 0.
    """
    case.report_once(
        T_REPLYCODE_NOTNULL, f"{case.name} has reply-code 0, but a reply-code must not be 0", CERTAIN, {}
    )


T_REPLYTEXT_NOTNULL: Final = RULES.rule(
    "T-REPLYTEXT-NOTNULL",
    "IMPLIED",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def no_reply_text(case: Case091) -> None:
    """A peer sends connection.close, channel.close or basic.return with an empty reply-text.

    Demands: The reply-text in connection.close, channel.close and basic.return must not be empty.
    Source: XML domain reply-text assert notnull
    Evidence: the reply-text in connection.close, channel.close and basic.return
    Why it matters: With an empty reply-text, the log of the other peer contains no reason. The specification
    demands a reply-text that is not "null", but does not define what "null" means for a string. Py-amqp and
    other clients leave reply-text empty.
    Silent when: the capture lacks octets before the frame, or when the rule has already reported the fault on
    the same connection.
    How to mend it: Fill reply-text with a short reason, for example "Normal shutdown" with reply-code 200, or
    the description of the error.
    """
    case.report_once(
        T_REPLYTEXT_NOTNULL, f"{case.name} has an empty reply-text, but must give a reason", CERTAIN, {}
    )


def _reserved(case: Case091, definition: MethodType, field: ArgumentField, value: object) -> None:
    """A field that has to be 0 or empty has a value. For a client that requested version 0-9, the old name of
    the field is shown.
    """
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


def _asks_for_an_older_version(case: Case091) -> bool:
    for by_client, protocol_id, major, minor, revision in case.view.headers:
        if by_client and ProtocolHeader(protocol_id, major, minor, revision).protocol() == "AMQP 0-9":
            return True
    return False


T_TICKET_ZERO: Final = RULES.rule("T-TICKET-ZERO", "MUST", "tier A", by="client")


def ticket(case: Case091, number: i64) -> None:
    """A client sends a method whose former access-ticket field (reserved-1) is not zero.

    Demands: The field reserved-1, formerly the access ticket, must be 0.
    Source: XML fields reserved-1 (ticket) of exchange/queue/basic methods
    Evidence: the field reserved-1 of the methods declare, delete, bind, unbind, purge, consume, publish and
    get
    Why it matters: AMQP 0-9-1 has no access tickets any more. The client probably speaks an older version of
    the protocol.
    Silent when: the server has given out access tickets on the channel, or when the capture lacks octets of
    either peer. The rule is also silent when the rule has already reported the fault on the same connection.
    How to mend it: Write 0 into the field reserved-1 of every method. Remove code that requests or stores
    access tickets.
    """
    channel = case.channel
    if channel is not None and channel.whole and case.me.whole and not channel.ticketed:
        message = f"{case.name} has access ticket {number}, although AMQP 0-9-1 has no access tickets"
        case.report_once(T_TICKET_ZERO, message, CERTAIN, {"ticket": int(number)})


T_RESERVED_CONN: Final = RULES.rule(
    "T-RESERVED-CONN",
    "MUST",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def retired_field_of_the_connection(case: Case091, name: str) -> None:
    """A peer sends connection.open or connection.open-ok with a value in a retired field: `capabilities`,
    `insist` or `known-hosts`.

    Demands: The retired fields `capabilities`, `insist` and `known-hosts` must be empty or 0.
    Source: XML:connection.open reserved-1/reserved-2; XML:connection.open-ok reserved-1
    Evidence: the retired fields of connection.open and connection.open-ok
    Why it matters: The fault does little harm, because receivers ignore the retired fields. Pika and
    librabbitmq always set the field `insist`.
    Silent when: the capture lacks octets before the frame, or when the rule has already reported the fault on
    the same connection.
    How to mend it: Encode `capabilities` and `known-hosts` as empty strings, and `insist` as 0. Remove the
    code that sets the retired fields for older versions of the protocol.
    """
    rule = T_RESERVED_CONN
    case.report_once(
        rule,
        f"{case.name} has a value in the retired field {name}, which must not be used",
        CERTAIN,
        {"field": name},
        kind=name,
    )


T_RESERVED_CHAN: Final = RULES.rule("T-RESERVED-CHAN", "MUST", "tier A")


def retired_field_of_a_channel(case: Case091, name: str) -> None:
    """A peer sends channel.open or channel.open-ok with a value in a retired field: out-of-band or
    channel-id.

    Demands: The retired fields out-of-band and channel-id must be empty.
    Source: XML:channel.open reserved-1; XML:channel.open-ok reserved-1
    Evidence: the field reserved-1 of channel.open and channel.open-ok
    Why it matters: The fault does little harm. The peer probably speaks an older version of the
    protocol.
    Silent when: the capture lacks octets before the frame, or when the rule has already reported the fault on
    the same connection.
    How to mend it: Encode the retired field (reserved-1) as an empty string. Remove the code that sets
    out-of-band or channel-id.
    """
    case.report_once(
        T_RESERVED_CHAN,
        f"{case.name} has a value in the retired field {name}, which must not be used",
        CERTAIN,
        {"field": name},
    )


T_RESERVED_XDECL: Final = RULES.rule("T-RESERVED-XDECL", "MUST", "tier A", by="client")


def retired_bit_of_declare(case: Case091, field: ArgumentField) -> None:
    """A client sets the retired bit `auto-delete` or `internal` in exchange.declare, although the server does
    not support this bit.

    Demands: The retired bits `auto-delete` and `internal` of exchange.declare must be 0 if the server does
    not support them.
    Source: XML:exchange.declare reserved-2/reserved-3; ERR:25; ERR:26
    Evidence: the bits of exchange.declare, and the product name of the server
    Why it matters: The server ignores the retired bit. An exchange that should be auto-delete is never
    deleted. Clients can publish to an exchange that should be internal.
    Silent when: the server identifies itself as RabbitMQ or LavinMQ, which still support both bits, or
    when connection.start was not captured.
    How to mend it: Leave `auto-delete` and `internal` at 0 unless the product in the server-properties of
    connection.start is RabbitMQ or LavinMQ. Applications must not declare auto-delete or internal exchanges
    on other servers, and should delete exchanges explicitly.
    """
    view = case.view
    if view.server is not None and not view.rabbitmq:
        message = (
            f"exchange.declare sets {field.extension}, but AMQP 0-9-1 reserves this bit of exchange.declare"
        )
        case.report(T_RESERVED_XDECL, message, CERTAIN, {"field": field.name})


T_RESERVED_GETEMPTY: Final = RULES.rule("T-RESERVED-GETEMPTY", "MUST", "tier A", by="server")


def cluster_in_get_empty(case: Case091) -> None:
    """A server sends basic.get-empty with a value in the retired field cluster-id.

    Demands: The retired field cluster-id of basic.get-empty must be empty.
    Source: XML:basic.get-empty reserved-1
    Evidence: the field reserved-1 of basic.get-empty
    Why it matters: The fault does little harm. The server probably speaks an older version of the
    protocol.
    Silent when: the capture lacks octets before the frame, or when the rule has already reported the fault on
    the same connection.
    How to mend it: Encode the field reserved-1 of basic.get-empty as an empty string. Remove the code that
    sets cluster-id.
    """
    case.report_once(
        T_RESERVED_GETEMPTY,
        "basic.get-empty has a value in the retired field reserved-1, which must not be used",
        CERTAIN,
        {},
    )
