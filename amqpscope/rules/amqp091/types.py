"""Strings and field tables: what decoding them proves (section 4.2.5).

Each function is told by the dissector where the octets break its rule.
"""

from collections.abc import Callable

from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.proof import proved_of_properties
from dissectors.interface import Problem

__all__ = ["PROBLEMS"]


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


PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "T-SHORTSTR-NUL": zero_octet_in_a_short_string,
    "T-SHORTSTR-UTF8": short_string_not_in_utf8,
    "T-LENGTH-BOUNDS": length_behind_the_end,
    "T-TABLE-NAME-LEN": field_name_too_long,
    "T-TABLE-DUP": field_name_twice,
    "T-TABLE-TAG": tag_of_no_type,
    "T-TABLE-LEN": table_of_another_length,
}

RULES = {"amqp091/" + code: rule for code, rule in PROBLEMS.items()}
