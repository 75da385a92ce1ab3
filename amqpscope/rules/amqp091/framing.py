"""Frames and methods: what their octets prove (sections 4.2.2 to 4.2.4 and 4.2.7).

The dissector reports where the octets break a rule; most rules need nothing more.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.content_frames import lose_content
from amqpscope.rules.amqp091.proof import proved
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.endpoint import ALL, CHANNEL
from dissectors.amqp091.arguments import Method
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "method_of_the_other_peer"]

RULES: Final = Rules("amqp091/framing")


F_FRAME_END: Final[str] = RULES.rule(
    "F-FRAME-END", "MUST", "tier A", answer="to close the socket", broker_codes=("501",), proved="certain"
)
"""A peer sends a frame whose payload is not followed by the octet 0xCE.

Demands: Every frame must end with the octet 0xCE after its payload.
Source: GS:4.2.3; GS:2.3.5; XML constant frame-end
Evidence: the octet after the payload
Why it matters: One of the two peers has lost count of the octets. The receiver cannot interpret any later
octet and closes the socket.
Silent when: the capture lacks octets before the frame.
How to mend it: Write the number of payload octets into the size field and the octet 0xCE after the payload.
Serialize writes to the socket: frames of several threads that share a connection must not interleave.
"""


F_FRAME_TYPE: Final[str] = RULES.rule(
    "F-FRAME-TYPE", "MUST", "tier A", answer="to close the socket", broker_codes=("501",), proved="certain"
)
"""A peer sends a frame whose type is not method, content header, body or heartbeat.

Demands: The type of a frame must be 1 (method), 2 (content header), 3 (body) or 8 (heartbeat).
Source: GS:4.2.3; GS:4.2.1; XML constants frame-method/header/body/heartbeat
Evidence: the first octet of the frame
Why it matters: The receiver cannot interpret the frame. The specification requires the receiver to close the
connection.
Silent when: the capture lacks octets before the frame. If a heartbeat has the type 4, the message of the
finding says where this number comes from. One place in the text of the specification gives heartbeats the
type 4, but the grammar gives them the type 8.
How to mend it: Write 1 (method), 2 (content header), 3 (body) or 8 (heartbeat) into the first octet of each
frame. Check that the previous frame had the size that it announced, and that threads do not interleave their
writes.
"""


F_CH0_CONNECTION: Final[str] = RULES.rule(
    "F-CH0-CONNECTION", "MUST", "tier A", answer="connection.close 503", proved="certain"
)
"""A peer sends a method of the class `connection` on a channel other than 0.

Demands: Methods of the class `connection` must use channel 0.
Source: GS:4.2.3
Evidence: the class-id and the channel number of the frame
Why it matters: Methods of the class `connection` concern the connection as a whole. RabbitMQ closes the
connection with reply-code 503 (command-invalid) or 504 (channel-error).
Silent when: the capture lacks octets before the frame.
How to mend it: Write channel number 0 into the frame of every method of the class `connection`, including
connection.close and connection.close-ok.
"""


F_CH0_HEARTBEAT: Final[str] = RULES.rule(
    "F-CH0-HEARTBEAT",
    "MUST",
    "tier A",
    answer="connection.close 503 or connection.close 501",
    proved="certain",
)
"""A peer sends a heartbeat on a channel other than 0.

Demands: Heartbeats must use channel 0.
Source: GS:4.2.3; GS:4.2.7
Evidence: the type and the channel number of the frame
Why it matters: A heartbeat belongs to the whole connection and not to a channel. Brokers close the
connection. For this fault, one section of the specification names reply-code 503 (command-invalid), and
another section names 501 (frame-error). RabbitMQ sends reply-code 505 (unexpected-frame).
Silent when: the capture lacks octets before the frame.
How to mend it: Write channel number 0 into every heartbeat frame, and send heartbeats per connection instead
of per channel.
"""


F_HEARTBEAT_SHAPE: Final[str] = RULES.rule(
    "F-HEARTBEAT-SHAPE", "IMPLIED", "tier A", answer="connection.close 501", proved="certain"
)
"""A peer sends a heartbeat that has a payload, or that lacks the size field.

Demands: A heartbeat must be a frame with an empty payload, so the whole frame has eight octets.
Source: GS:4.2.1 heartbeat; ERR:12
Evidence: the size field of a heartbeat, or the absence of this field
Why it matters: A receiver that expects a heartbeat of eight octets loses count of the octets and misreads all
following frames.
Silent when: the capture lacks octets before the frame. The grammar in the specification omits the size field,
but implementations send it.
How to mend it: Send the heartbeat as exactly eight octets: type 8, channel 0, size 0 in four octets, and the
frame end 0xCE.
"""


F_METHOD_CH_NONZERO: Final[str] = RULES.rule(
    "F-METHOD-CH-NONZERO", "IMPLIED", "tier A", answer="connection.close 504"
)


def method_of_a_channel_on_channel_0(case: Case091, problem: Problem) -> None:
    """On channel 0, a peer sends a method that does not belong to the class `connection`.

    Demands: Methods of all classes except `connection` must use a channel number of 1 or more.
    Source: GS:4.2.3; GS:4.2.1 channel; XML class handler=channel
    Evidence: the class-id and the channel number of the frame
    Why it matters: Channel 0 is reserved for the class `connection`. The server closes the connection with
    reply-code 504 (channel-error).
    Silent when: the capture lacks octets before the frame.
    How to mend it: Open a channel with a number of 1 or more, and use this channel for the methods of all
    classes except `connection`. Look for a channel number that is still at its initial value 0.
    """
    proved(case, F_METHOD_CH_NONZERO, problem)
    method = case.record.frame.body
    if isinstance(method, Method) and method.definition().content:
        lose_content(case)


F_METHOD_KNOWN: Final[str] = RULES.rule(
    "F-METHOD-KNOWN",
    "IMPLIED",
    "tier A",
    answer="connection.close 503 or connection.close 540",
    proved="certain",
)
"""A peer sends a method whose class-id and method-id name no method of the specification or of RabbitMQ.

Demands: The class-id and method-id must name a method of AMQP 0-9-1, or of an extension that both peers
support.
Source: GS:4.2.4; GS:2.3.5.1
Evidence: the methods of the specification and RabbitMQ's methods (exchange.bind, exchange.unbind, basic.nack,
confirm.select, connection.blocked, connection.unblocked, connection.update-secret, access.request)
Why it matters: The receiver cannot handle the method and gives up the connection. RabbitMQ drops the
connection without sending connection.close.
Silent when: the capture lacks octets before the frame.
How to mend it: Write the class-id and method-id from the AMQP 0-9-1 specification, each as two octets. Look
for methods of an older AMQP version and for extensions that the other peer has not announced.
"""


F_METHOD_ARGS: Final[str] = RULES.rule(
    "F-METHOD-ARGS", "IMPLIED", "tier A", answer="connection.close 502", proved="certain"
)
"""A peer sends a method whose payload ends before the last argument of the method is complete.

Demands: The payload of a method must contain all arguments of the method, complete and in order.
Source: GS:4.2.4; GS:2.3.5.1; XML constant syntax-error
Evidence: arguments that go beyond the end of the payload
Why it matters: The receiver lacks some arguments and closes the connection. RabbitMQ closes with reply-code
501 (frame-error).
Silent when: the capture lacks a part of the frame, or octets before the frame.
How to mend it: Encode every argument that the specification lists for the method, in the order of the list,
including reserved arguments and the octet that holds the bits. Calculate the frame size from the encoded
octets.
"""


F_METHOD_TRAILING: Final[str] = RULES.rule(
    "F-METHOD-TRAILING", "IMPLIED", "tier A", answer="connection.close 502", proved="certain"
)
"""A peer sends a method with further octets after the last argument of the method.

Demands: The payload of a method must end with its last argument.
Source: GS:4.2.4
Evidence: the octets that are left after the last argument
Why it matters: Usually the sender has encoded one argument too many or too few, and the receiver misreads all
arguments.
Silent when: the capture lacks a part of the frame, or octets before the frame.
How to mend it: Encode exactly the arguments that the specification lists for the method, in the order of the
list, with consecutive bits packed into one octet. Calculate the frame size from the encoded octets.
"""


F_METHOD_DIRECTION: Final[str] = RULES.rule(
    "F-METHOD-DIRECTION", "IMPLIED", "tier A", answer="connection.close 503"
)


def method_of_the_other_peer(case: Case091, name: str) -> None:
    """A client sends a method that only servers send, or a server sends a method that only clients send.

    Demands: A peer may send only methods that the specification allows for its role, client or server.
    Source: XML chassis elements; GS:2.2.1; G:all classes
    Evidence: the role of the sender, and the roles that the specification allows for the method
    Why it matters: The method has no meaning in this direction, and the receiver closes the connection
    with reply-code 503 (command-invalid). With RabbitMQ's extensions, basic.ack, basic.nack and
    basic.cancel are valid in both directions.
    Silent when: the capture lacks octets before the method. If the beginning of the connection was not
    captured, the directions of methods may be the only evidence of which peer is the client.
    How to mend it: Check which role the specification allows for the method, and send only methods that your
    role may send. Never answer an unexpected method with a copy of that method.
    """
    if case.me.whole:
        other = "server" if case.me.by_client else "client"
        case.report(F_METHOD_DIRECTION, f"the peer sends {name}, which only a {other} may send")
        # Nobody knows which method is meant.
        case.mislay(ALL if case.channel is None else CHANNEL)
        method = case.record.frame.body
        if isinstance(method, Method) and method.definition().content:
            lose_content(case)


# Rules whose problems cannot be judged by the octets alone.
PROBLEMS: Final[dict[str, Callable[[Case091, Problem], None]]] = {
    F_METHOD_CH_NONZERO: method_of_a_channel_on_channel_0,
}
