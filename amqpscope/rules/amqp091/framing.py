"""Frames and methods: what their octets prove (sections 4.2.2 to 4.2.4 and 4.2.7).

Each function is told by the dissector where the octets break its rule.
"""

from collections.abc import Callable

from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.proof import proved
from dissectors.amqp091.arguments import Method
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "method_of_the_other_peer"]


def wrong_frame_end(case: Case, problem: Problem) -> None:
    """The octet behind a frame's payload is not 0xCE.

    Why it matters: one of the two has lost count of the octets; nothing behind it can be believed.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-FRAME-END", problem)


def frame_of_unknown_type(case: Case, problem: Problem) -> None:
    """A frame's type is none of method, content header, body and heartbeat.

    Why it matters: nobody knows how to read it; the specification has the receiver drop the connection.
    Silent when: octets before it were not captured. A heartbeat with the type 4, which the text has in
    one place, is told of as such: its grammar says 8.
    """
    proved(case, "amqp091/F-FRAME-TYPE", problem)


def connection_method_off_channel_0(case: Case, problem: Problem) -> None:
    """A method of the class connection is sent on another channel than 0.

    Why it matters: it is about the connection as a whole; RabbitMQ closes with 503 or 504.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-CH0-CONNECTION", problem)


def heartbeat_off_channel_0(case: Case, problem: Problem) -> None:
    """A heartbeat is sent on another channel than 0.

    Why it matters: it is a sign of life of the connection; brokers close over it (by one section of the
    specification with 503, by another with 501; RabbitMQ with 505).
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-CH0-HEARTBEAT", problem)


def heartbeat_of_another_shape(case: Case, problem: Problem) -> None:
    """A heartbeat has a payload, or no size: it is not the eight octets of a frame without payload.

    Why it matters: a receiver that expects those eight octets loses count.
    Silent when: octets before it were not captured. The printed grammar leaves out the size; everybody sends
    it.
    """
    proved(case, "amqp091/F-HEARTBEAT-SHAPE", problem)


def method_of_a_channel_on_channel_0(case: Case, problem: Problem) -> None:
    """A method that belongs on a channel is sent on channel 0.

    Why it matters: channel 0 is the connection's own; the server closes the connection with 504.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-METHOD-CH-NONZERO", problem)
    method = case.record.frame.body
    if isinstance(method, Method) and method.definition().content:
        # Its content has to follow it there: the same fault.
        case.told.add((case.me.peer, "amqp091/F-CONTENT-CH-NONZERO"))


def method_that_nobody_knows(case: Case, problem: Problem) -> None:
    """The numbers of a method are those of none, of the specification or of RabbitMQ.

    Why it matters: its receiver can do nothing but give up the connection; RabbitMQ drops it without a word.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-METHOD-KNOWN", problem)


def method_without_all_its_arguments(case: Case, problem: Problem) -> None:
    """A method's payload ends before its arguments do.

    Why it matters: what it should say is not there; the receiver closes the connection (RabbitMQ with 501).
    Silent when: the frame was not captured whole, or octets before it were not.
    """
    proved(case, "amqp091/F-METHOD-ARGS", problem)


def octets_behind_the_arguments(case: Case, problem: Problem) -> None:
    """Octets follow the last argument of a method in its payload.

    Why it matters: mostly an argument more or less was written than the method has, and all are misread.
    Silent when: the frame was not captured whole, or octets before it were not.
    """
    proved(case, "amqp091/F-METHOD-TRAILING", problem)


def method_of_the_other_peer(case: Case, name: str) -> None:
    """A client sends a method that only servers send, or a server one that only clients do.

    Why it matters: it has no meaning in that direction; the connection is closed with 503. RabbitMQ's
    extensions count: with them basic.ack, basic.nack and basic.cancel go either way.
    Silent when: octets before it were not captured; who is the client may then be told only by such methods.
    """
    if case.me.whole:
        who = "a client" if case.me.by_client else "a server"
        case.report("amqp091/F-METHOD-DIRECTION", f"{name} is not for {who} to send")


PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "F-FRAME-END": wrong_frame_end,
    "F-FRAME-TYPE": frame_of_unknown_type,
    "F-CH0-CONNECTION": connection_method_off_channel_0,
    "F-CH0-HEARTBEAT": heartbeat_off_channel_0,
    "F-HEARTBEAT-SHAPE": heartbeat_of_another_shape,
    "F-METHOD-CH-NONZERO": method_of_a_channel_on_channel_0,
    "F-METHOD-KNOWN": method_that_nobody_knows,
    "F-METHOD-ARGS": method_without_all_its_arguments,
    "F-METHOD-TRAILING": octets_behind_the_arguments,
}

RULES = {
    **{"amqp091/" + code: rule for code, rule in PROBLEMS.items()},
    "amqp091/F-METHOD-DIRECTION": method_of_the_other_peer,
}
