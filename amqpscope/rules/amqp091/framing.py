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
    """A peer sends a frame whose payload is not followed by the octet 0xCE.

    Why it matters: One of the two peers has lost count of the octets, so no later octet can be interpreted
    reliably. The receiver closes the socket.
    Silent when: octets before the frame were not captured.
    How to mend it: Write the number of payload octets into the size field and the octet 0xCE after the
    payload. Serialize writes to the socket: frames of several threads that share a connection must not
    interleave.
    """
    proved(case, "amqp091/F-FRAME-END", problem)


def frame_of_unknown_type(case: Case, problem: Problem) -> None:
    """A peer sends a frame whose type is not method, content header, body or heartbeat.

    Why it matters: The receiver cannot interpret the frame. The specification requires the receiver to close
    the connection.
    Silent when: octets before the frame were not captured. The rule does report a heartbeat with type 4, and
    the finding names the cause: one place in the specification's text says 4, but its grammar says 8.
    How to mend it: Write 1 (method), 2 (content header), 3 (body) or 8 (heartbeat) into the first octet of
    each frame. Check that the previous frame had the size it announced, and that threads do not interleave
    their writes.
    """
    proved(case, "amqp091/F-FRAME-TYPE", problem)


def connection_method_off_channel_0(case: Case, problem: Problem) -> None:
    """A peer sends a method of the class connection on a channel other than 0.

    Why it matters: Methods of the class connection concern the connection as a whole. RabbitMQ closes the
    connection with 503 or 504.
    Silent when: octets before the frame were not captured.
    How to mend it: Write channel number 0 into the frame of every method of the class connection, including
    connection.close and connection.close-ok.
    """
    proved(case, "amqp091/F-CH0-CONNECTION", problem)


def heartbeat_off_channel_0(case: Case, problem: Problem) -> None:
    """A peer sends a heartbeat on a channel other than 0.

    Why it matters: A heartbeat belongs to the whole connection, and brokers close the connection. One section
    of the specification prescribes 503, another one 501, and RabbitMQ sends 505.
    Silent when: octets before the frame were not captured.
    How to mend it: Write channel number 0 into every heartbeat frame, and send heartbeats per connection
    instead of per channel.
    """
    proved(case, "amqp091/F-CH0-HEARTBEAT", problem)


def heartbeat_of_another_shape(case: Case, problem: Problem) -> None:
    """A peer sends a heartbeat that has a payload or no size field, instead of the eight octets of a frame
    without payload.

    Why it matters: A receiver that expects those eight octets loses count and misreads all following frames.
    Silent when: octets before the frame were not captured. The printed grammar omits the size field, but
    implementations send it.
    How to mend it: Send the heartbeat as exactly eight octets: type 8, channel 0, size 0 in four octets, and
    the frame end 0xCE.
    """
    proved(case, "amqp091/F-HEARTBEAT-SHAPE", problem)


def method_of_a_channel_on_channel_0(case: Case, problem: Problem) -> None:
    """A peer sends a method on channel 0 that belongs on a channel of 1 or more.

    Why it matters: Channel 0 is reserved for the class connection. The server closes the connection with 504.
    Silent when: octets before the frame were not captured.
    How to mend it: Open a channel with a number of 1 or more and send methods of the other classes only
    there. Look for a channel number that is still at its initial value 0.
    """
    proved(case, "amqp091/F-METHOD-CH-NONZERO", problem)
    method = case.record.frame.body
    if isinstance(method, Method) and method.definition().content:
        # Its content has to follow it there: the same fault.
        case.told.add((case.me.peer, "amqp091/F-CONTENT-CH-NONZERO"))


def method_that_nobody_knows(case: Case, problem: Problem) -> None:
    """A peer sends a method whose class-id and method-id name no method of the specification or of RabbitMQ.

    Why it matters: The receiver can only give up the connection. RabbitMQ drops the connection without
    sending connection.close.
    Silent when: octets before the frame were not captured.
    How to mend it: Write the class-id and method-id from the AMQP 0-9-1 specification, each as two octets.
    Look for methods of an older AMQP version and for extensions that the other peer has not announced.
    """
    proved(case, "amqp091/F-METHOD-KNOWN", problem)


def method_without_all_its_arguments(case: Case, problem: Problem) -> None:
    """A peer sends a method whose payload ends before all arguments of the method.

    Why it matters: The receiver misses arguments and closes the connection (RabbitMQ with 501).
    Silent when: the frame was not captured completely, or octets before the frame were not captured.
    How to mend it: Encode every argument that the specification lists for the method, in its order, including
    reserved arguments and the octet that holds the bits. Calculate the frame size from the encoded octets.
    """
    proved(case, "amqp091/F-METHOD-ARGS", problem)


def octets_behind_the_arguments(case: Case, problem: Problem) -> None:
    """A peer sends a method with octets after its last argument.

    Why it matters: Usually the sender has encoded one argument too many or too few, and the receiver misreads
    all arguments.
    Silent when: the frame was not captured completely, or octets before the frame were not captured.
    How to mend it: Encode exactly the arguments that the specification lists for the method, in its order,
    with consecutive bits packed into one octet. Calculate the frame size from the encoded octets.
    """
    proved(case, "amqp091/F-METHOD-TRAILING", problem)


def method_of_the_other_peer(case: Case, name: str) -> None:
    """A client sends a method that only servers send, or a server sends a method that only clients send.

    Why it matters: The method has no meaning in this direction, and the receiver closes the connection with
    503. With RabbitMQ's extensions, basic.ack, basic.nack and basic.cancel are valid in both directions.
    Silent when: octets before the method were not captured, because then such methods may be the only
    evidence which peer is the client.
    How to mend it: Check the direction that the specification gives for the method, and send only methods of
    your role. Never answer an unexpected method with a copy of that method.
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
