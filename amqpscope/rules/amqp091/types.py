"""Strings, field tables and properties of messages (section 4.2.5).

Most functions are told by the dissector where the octets break their rule.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.proof import proved_of_properties
from amqpscope.rules.amqp091.reaction import note_offence
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import HAS_HEADERS, HAS_RESERVED, HAS_TIMESTAMP
from dissectors.amqp091.tables import PRINTED, RABBITMQ, FieldTable
from dissectors.interface import Frame, Problem

__all__ = ["PROBLEMS", "field_name_that_begins_oddly", "is_of_the_printed_dialect", "judge_properties"]


def zero_octet_in_a_short_string(case: Case, problem: Problem) -> None:
    """A short string has a zero octet in it.

    Why it matters: receivers written in C take it for the end of the string. RabbitMQ does not look.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-SHORTSTR-NUL", problem)


def short_string_not_in_utf8(case: Case, problem: Problem) -> None:
    """A short string is not UTF-8.

    Why it matters: many clients fail to read it; RabbitMQ refuses it in methods (501), not in messages.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-SHORTSTR-UTF8", problem)


def length_behind_the_end(case: Case, problem: Problem) -> None:
    """A string or table claims more octets than its payload has left.

    Why it matters: it is cut off, and everything behind it is lost; the connection is, too.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-LENGTH-BOUNDS", problem)


def field_name_too_long(case: Case, problem: Problem) -> None:
    """A name in a field table has more than 128 characters.

    Why it matters: a receiver that has no room for it refuses the table, or cuts the name.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-TABLE-NAME-LEN", problem)


def field_name_twice(case: Case, problem: Problem) -> None:
    """A field table has the same name twice.

    Why it matters: which of the values holds is left to chance.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-TABLE-DUP", problem)


def tag_of_no_type(case: Case, problem: Problem) -> None:
    """A value in a field table has a tag that stands for no type.

    Why it matters: how long it is is unknown, so the rest of the table cannot be read.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-TABLE-TAG", problem)


def table_of_another_length(case: Case, problem: Problem) -> None:
    """What stands in a field table or array does not end where its length says.

    Why it matters: length and content disagree; one of them leads a reader astray. RabbitMQ closes the
    connection with 541, or drops it.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once,
    among the properties of a message that the server sends: it hands on what it received.
    """
    proved_of_properties(case, "amqp091/T-TABLE-LEN", problem)


def is_of_the_printed_dialect(case: Case) -> bool:
    """Whether RabbitMQ is told a table of the printed dialect, which is then reported."""
    frame = case.record.frame
    if case.view.rabbitmq and any(problem.code in _OF_TABLES for problem in frame.problems):
        if any(table.fits(PRINTED) and not table.fits(RABBITMQ) for table in _tables(frame)):
            table_in_the_printed_dialect(case)
            return True
    return False


# What a table in the wrong dialect looks like.
_OF_TABLES: Final = ("T-TABLE-TAG", "T-TABLE-LEN", "T-LENGTH-BOUNDS", "T-SHORTSTR-NUL", "T-SHORTSTR-UTF8")


def _tables(frame: Frame) -> list[FieldTable]:
    body = frame.body
    values: list[object] = []
    if isinstance(body, Method):
        values = body.values()
    elif isinstance(body, ContentHeader):
        values = body.properties(RABBITMQ).values()
    return [value for value in values if isinstance(value, FieldTable)]


def table_in_the_printed_dialect(case: Case) -> None:
    """A field table has types that only the printed specification has, and the server is RabbitMQ or LavinMQ.

    Why it matters: RabbitMQ reads the tags 's' and 'U' otherwise, or not at all: it takes the table for
    another one, or closes the connection.
    Silent when: the table can be read in RabbitMQ's dialect as well, or the server's start was not captured.
    Only possible because: The server need not be what it says it is.
    """
    case.report_once(
        "amqp091/T-TABLE-DIALECT",
        "a field table can be read by the printed grammar only, not as RabbitMQ does",
        POSSIBLE,
        {},
    )


def judge_properties(case: Case, header: ContentHeader) -> None:
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


def timestamp_far_off(case: Case, seconds: int) -> None:
    """The timestamp of a message lies beyond the year 9999.

    Why it matters: timestamps are whole seconds since 1970; mostly these are milliseconds, and who reads them
    is some 50000 years off.
    Silent when: octets before it were not captured, or the same was told of the connection before.
    Only possible because: It may be meant.
    """
    message = f"the timestamp {seconds} is no plausible number of seconds"
    case.report_once("amqp091/T-TIMESTAMP", message, POSSIBLE, {"timestamp": seconds})


def retired_property(case: Case) -> None:
    """The last property of a message, the former cluster-id, has a value.

    Why it matters: it means nothing any more. RabbitMQ hands it on.
    Silent when: octets before it were not captured, or the same was told of the connection before. Possible
    when the server sends it, which hands on what it received.
    """
    certainty = CERTAIN if case.me.by_client else POSSIBLE
    case.report_once("amqp091/T-RESERVED-PROP", "the reserved property has a value", certainty, {})


def field_name_that_begins_oddly(case: Case, name: str) -> None:
    """A name in a field table begins with something other than a letter, '$' or '#'.

    Why it matters: hardly. A server is to refuse it with 503 or 502, and none is known to; Spring for one
    names a header `__TypeId__`.
    Silent when: octets before it were not captured, or the same was told of the connection before, or the
    name stands in a table inside a table.
    """
    if case.me.by_client:
        note_offence(case, "T-TABLE-NAME-START")
    case.report_once(
        "amqp091/T-TABLE-NAME-START",
        "a name in a field table begins with neither a letter nor '$' or '#'",
        CERTAIN if case.me.by_client else POSSIBLE,
        {"name": ascii(name[:64])},
    )


PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "T-SHORTSTR-NUL": zero_octet_in_a_short_string,
    "T-SHORTSTR-UTF8": short_string_not_in_utf8,
    "T-LENGTH-BOUNDS": length_behind_the_end,
    "T-TABLE-NAME-LEN": field_name_too_long,
    "T-TABLE-DUP": field_name_twice,
    "T-TABLE-TAG": tag_of_no_type,
    "T-TABLE-LEN": table_of_another_length,
}

RULES = {
    **{"amqp091/" + code: rule for code, rule in PROBLEMS.items()},
    "amqp091/T-TABLE-DIALECT": table_in_the_printed_dialect,
    "amqp091/T-TABLE-NAME-START": field_name_that_begins_oddly,
    "amqp091/T-TIMESTAMP": timestamp_far_off,
    "amqp091/T-RESERVED-PROP": retired_property,
}
