"""Strings, field tables and properties of messages (section 4.2.5).

For most rules, the dissector reports where the octets break the rule.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.reaction import note_violation
from amqpscope.rules.declaration import Rules
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import HAS_HEADERS, HAS_RESERVED, HAS_TIMESTAMP
from dissectors.amqp091.tables import PRINTED, RABBITMQ, FieldTable
from dissectors.interface import Frame

__all__ = ["field_name_that_begins_oddly", "is_of_the_printed_dialect", "judge_properties"]

RULES: Final = Rules("amqp091/types")


T_SHORTSTR_NUL: Final = RULES.rule(
    "T-SHORTSTR-NUL", "IMPLIED", "tier A", answer="connection.close 502", proved="properties"
)
"""A peer sends a short string that contains a zero octet.

Demands: A short string must not contain a zero octet.
Source: GS:4.2.5.3; GS:4.2.1 string-char
Evidence: the short strings in method arguments, in properties, and in the names that field tables contain
Why it matters: Receivers written in C treat the zero octet as the end of the string, so they read only the
part before the zero octet. RabbitMQ does not look for zero octets in short strings.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: Reject or remove zero octets before encoding a short string such as a queue name, exchange
name or routing key. Do not include the terminating zero of a C string in the length.
"""


T_SHORTSTR_UTF8: Final = RULES.rule(
    "T-SHORTSTR-UTF8", "IMPLIED", "tier A", answer="connection.close 502", proved="properties"
)
"""A peer sends a short string that is not well-formed UTF-8.

Demands: A short string must be well-formed UTF-8.
Source: GS:4.2.5.3; ERR:16
Evidence: the short strings in method arguments, in properties, and in the names that field tables contain
Why it matters: Many clients cannot read a string that is not UTF-8. RabbitMQ refuses such a string in
methods (reply-code 501, frame-error), but not in messages.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: Encode all short strings as UTF-8, not as Latin-1 or another character set. Encode binary
identifiers in hexadecimal or Base64, or put them into a header value.
"""


T_LENGTH_BOUNDS: Final = RULES.rule(
    "T-LENGTH-BOUNDS", "IMPLIED", "tier A", answer="connection.close 502", proved="properties"
)
"""A peer sends a string or table whose length exceeds the octets left in the payload.

Demands: A string or table must end inside the payload that contains it.
Source: GS:4.2.5.3; GS:4.2.5.5; GS:4.10.1
Evidence: the length of the string or table, and the octets that are left in the payload
Why it matters: The receiver gets an incomplete value and cannot read the rest of the payload, and the
connection is lost.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: Compute the length of a string or table in octets after encoding, not in characters. Make sure
that no value is truncated and that two threads do not write to one buffer.
"""


T_TABLE_NAME_LEN: Final = RULES.rule(
    "T-TABLE-NAME-LEN", "IMPLIED", "tier A", answer="connection.close 503", proved="properties"
)
"""A peer sends a field table with a name of more than 128 characters.

Demands: A name in a field table must not have more than 128 characters.
Source: GS:4.2.5.5
Evidence: the names in field tables
Why it matters: A receiver that has no room for the long name refuses the table, or shortens the name.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: Keep the names of headers and arguments at 128 characters or below. Move long data from the
name of the field into its value.
"""


T_TABLE_DUP: Final = RULES.rule(
    "T-TABLE-DUP",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
    proved="properties",
)
"""A peer sends a field table that contains the same name twice.

Demands: A field table must not contain the same name twice.
Source: GS:4.2.5.5
Evidence: the names in each field table
Why it matters: Each receiver decides which of the two values of the name is valid, so different receivers can
read different tables.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: When building a table, replace an existing field instead of appending a second field of the
same name. Before code adds a header to a forwarded message, the code must check whether the header is
present.
"""


T_TABLE_TAG: Final = RULES.rule(
    "T-TABLE-TAG", "IMPLIED", "tier A", answer="connection.close 502", proved="properties"
)
"""A peer sends a field table with a value whose type tag is not defined.

Demands: Each value in a table or array must begin with a known type tag (t b B s u I i l f d D S A T F V x,
or U and L of the specification's grammar).
Source: GS:4.2.1 field-value; ERR:3
Evidence: the type tags of the values
Why it matters: The receiver cannot know the length of the value, so the rest of the table is unreadable.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: Encode each value with one of the defined type tags, and observe upper and lower case. Check
that the length of the preceding value is correct, because a wrong length shifts all later tags.
"""


T_TABLE_LEN: Final = RULES.rule(
    "T-TABLE-LEN", "IMPLIED", "tier A", answer="connection.close 502", proved="properties"
)
"""A peer sends a field table or array whose content does not end where its length field says.

Demands: The content of a field table or array must have exactly the number of octets in its length field.
Source: GS:4.2.5.5; ERR:4
Evidence: the end of the last value, and the length field
Why it matters: Length and content disagree, so the receiver misreads the values or everything after them.
RabbitMQ closes the connection with reply-code 541 (internal-error), or drops it.
Silent when: the capture lacks a part of the frame, or octets before the frame. If the fault is in message
properties that a server sends, the finding is reported as possible, not as certain, because a server forwards
the properties that it received. The rule reports forwarded properties only once per connection.
Possible because: The {peer} may have forwarded message properties that a publisher sent.
How to mend it: Encode the content first. Then write the exact number of encoded octets into the length field.
Check the size of every value type, for example of timestamps, decimals and nested tables.
"""


def is_of_the_printed_dialect(case: Case091) -> bool:
    """Whether a client sends RabbitMQ a table in the dialect of the specification's grammar, which is then
    reported.
    """
    frame = case.record.frame
    if case.view.rabbitmq and any(problem.code in _OF_TABLES for problem in frame.problems):
        if any(table.fits(PRINTED) and not table.fits(RABBITMQ) for table in _tables(frame)):
            table_in_the_printed_dialect(case)
            return True
    return False


# The problems that a table in the wrong dialect causes.
_OF_TABLES: Final = ("T-TABLE-TAG", "T-TABLE-LEN", "T-LENGTH-BOUNDS", "T-SHORTSTR-NUL", "T-SHORTSTR-UTF8")


def _tables(frame: Frame) -> list[FieldTable]:
    body = frame.body
    values: list[object] = []
    if isinstance(body, Method):
        values = body.values()
    elif isinstance(body, ContentHeader):
        values = body.properties(RABBITMQ).values()
    return [value for value in values if isinstance(value, FieldTable)]


T_TABLE_DIALECT: Final = RULES.rule(
    "T-TABLE-DIALECT", "IMPLIED", "tier B", answer="connection.close 502 or connection.close 501"
)


def table_in_the_printed_dialect(case: Case091) -> None:
    """To a RabbitMQ or LavinMQ server, a client sends a field table with type tags that only the
    specification's grammar defines.

    Demands: A peer must encode field tables in the dialect that the other peer uses: that of the
    specification or that of RabbitMQ. The two dialects differ in the type tags 's', 'l', 'L' and 'U', and in
    the sign of decimals.
    Source: GS:4.2.1 field-value; ERR:3; ERR:4
    Evidence: the product name of the server in connection.start, and the type tags in the field table
    Why it matters: RabbitMQ reads the type tags `s` and `U` differently, or not at all. RabbitMQ reads
    another table than the client sent, or closes the connection.
    Silent when: the table can also be read in RabbitMQ's dialect, or when the server's connection.start was
    not captured.
    Only possible because: The server may be another product than its connection.start claims.
    How to mend it: Encode field tables in the RabbitMQ dialect: strings with the tag `S`, 16-bit signed
    integers with `s`, 64-bit signed integers with `l`. Do not send `U`, `L` or short strings as values.
    """
    case.report_once(
        T_TABLE_DIALECT,
        "a field table can be read only with the type tags of the specification, but the other peer uses "
        "RabbitMQ's type tags",
        POSSIBLE,
        {},
    )


def judge_properties(case: Case091, header: ContentHeader) -> None:
    """The properties of a message."""
    flags = header.flags
    if flags & HAS_TIMESTAMP != 0 and header.timestamp >= _YEAR_10000:
        timestamp_far_off(case, header.properties().timestamp)
    if flags & HAS_RESERVED != 0:
        cluster = header.properties().reserved
        if cluster is None or cluster != "":
            retired_property(case)
    if flags & HAS_HEADERS != 0:
        name = header.odd_name()
        if name is not None:
            field_name_that_begins_oddly(case, name)


_YEAR_10000: Final = 253_402_300_800
"""Seconds since 1970."""


T_TIMESTAMP: Final = RULES.rule(
    "T-TIMESTAMP",
    "IMPLIED",
    "tier B",
    warning="The specification only implies this rule and names no error for it.",
)


def timestamp_far_off(case: Case091, seconds: int) -> None:
    """A peer sends a message whose timestamp lies beyond the year 9999.

    Demands: A timestamp must be the number of whole seconds since the beginning of 1970, in 64 bits.
    Source: GS:4.2.5.4
    Evidence: the property `timestamp`, and values with the type tag 'T'
    Why it matters: Often the sender wrote milliseconds instead of seconds. Receivers read a timestamp in
    milliseconds as a date some 50000 years in the future.
    Silent when: the capture lacks octets before the message, or when the rule has already reported the fault
    on the same connection.
    Only possible because: The {peer} may have set this timestamp on purpose.
    How to mend it: Write the timestamp in whole seconds since 1970-01-01 UTC. If the clock of the application
    counts milliseconds, divide the time by 1000 before writing the timestamp, or carry the milliseconds in a
    header instead.
    """
    message = f"the timestamp {seconds} is not a plausible number of seconds"
    case.report_once(T_TIMESTAMP, message, POSSIBLE, {"timestamp": seconds})


T_RESERVED_PROP: Final = RULES.rule("T-RESERVED-PROP", "MUST", "tier A")


def retired_property(case: Case091) -> None:
    """A peer sends a message whose last property, formerly cluster-id, has a value.

    Demands: The fourteenth property of a message, formerly cluster-id, must be empty.
    Source: XML class basic field reserved
    Evidence: the flag and the value of the fourteenth property
    Why it matters: The property no longer has a meaning, so receivers ignore it. RabbitMQ forwards the
    property to consumers.
    Silent when: the capture lacks octets before the message, or when the rule has already reported the fault
    on the same connection. The finding is reported as possible, not as certain, when the server sends the
    message, because a server forwards what it received.
    Possible because: The {peer} may have forwarded a property that a publisher set.
    How to mend it: Leave the fourteenth property out: clear its property flag in the content header and write
    no value. Carry the information in headers or app-id instead.
    """
    certainty = CERTAIN if case.me.by_client else POSSIBLE
    case.report_once(
        T_RESERVED_PROP, "the retired property cluster-id has a value, but must be empty", certainty, {}
    )


T_TABLE_NAME_START: Final = RULES.rule(
    "T-TABLE-NAME-START",
    "MUST",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
    answer="connection.close 503",
    broker_codes=("502",),
)


def field_name_that_begins_oddly(case: Case091, name: str) -> None:
    """A peer sends a field table with a name that does not begin with a letter, '$' or '#'.

    Demands: A name in a field table must begin with a letter, '$' or '#'.
    Source: GS:4.2.5.5
    Evidence: the names in field tables of arguments and headers
    Why it matters: In practice, the fault does no harm. A server should refuse the name with reply-code
    503 (command-invalid) or 502 (syntax-error), but no known server does. Spring, for example, uses the
    header name `__TypeId__`.
    Silent when: the capture lacks octets before the field table, or when the rule has already reported the
    fault on the same connection. The rule is also silent when the name belongs to a table inside another
    table. The finding is reported as possible, not as certain, when the server sends the message, because a
    server forwards what it received.
    Possible because: The {peer} may have forwarded a name that a publisher sent.
    How to mend it: Begin names of headers and arguments with a letter, '$' or '#', if the application must
    work with every broker. If the application uses only RabbitMQ, names such as `__TypeId__` may stay.
    """
    if case.me.by_client:
        note_violation(case, "name")
    case.report_once(
        T_TABLE_NAME_START,
        "a name in a field table begins with neither a letter nor '$' or '#'",
        CERTAIN if case.me.by_client else POSSIBLE,
        {"name": ascii(name[:64])},
    )
