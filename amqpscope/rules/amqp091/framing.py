"""Frames and contents: what their octets, and their order on a channel, prove (sections 4.2.2 to 4.2.7).

Each function is told by the dissector where the octets break its rule.
"""

from collections.abc import Callable

from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.proof import proved
from dissectors.interface import Problem

__all__ = ["PROBLEMS"]


def wrong_frame_end(case: Case, problem: Problem) -> None:
    """The octet behind a frame's payload is not 0xCE.

    Why it matters: one of the two has lost count of the octets; nothing behind it can be believed.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-FRAME-END", problem)


def frame_of_unknown_type(case: Case, problem: Problem) -> None:
    """A frame's type is none of method, content header, body and heartbeat.

    Why it matters: nobody knows how to read it; the specification has the receiver drop the connection.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-FRAME-TYPE", problem)


PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "F-FRAME-END": wrong_frame_end,
    "F-FRAME-TYPE": frame_of_unknown_type,
}

RULES = {"amqp091/" + code: rule for code, rule in PROBLEMS.items()}
