"""The frames of a content: the header, and that all of them come in order (section 4.2.6).

Each function is told by the dissector where the octets, or the frames before on the channel, break its rule.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.proof import prove, proved
from amqpscope.rules.declaration import Rules
from dissectors.amqp091.methods import ChannelCloseOk
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "body_of_no_octets"]

RULES: Final = Rules("amqp091/content_frames")


F_CONTENT_CH_NONZERO: Final[str] = RULES.rule(
    "F-CONTENT-CH-NONZERO", "MUST NOT", "tier A", answer="connection.close 504"
)


def content_on_channel_0(case: Case091, problem: Problem) -> None:
    """A peer sends a content header or a body on channel 0.

    Demands: Content header and body frames never use channel 0.
    Source: GS:4.2.6.1
    Evidence: type 2 or 3 with channel 0
    Why it matters: No method on channel 0 has content. The receiver closes the connection, with 504 or, at
    RabbitMQ, with 505.
    Silent when: octets before the frame were not captured, or another finding already reports the method on
    channel 0 to which the frame belongs (F-METHOD-CH-NONZERO), or the rule has already reported an earlier
    content frame on channel 0.
    How to mend it: Send content header and body on the channel of the method to which they belong. Make one
    function write the method, header and body frames, with one channel number.
    """
    rule = F_CONTENT_CH_NONZERO
    if (case.me.peer, rule) not in case.reported:
        case.reported.add((case.me.peer, rule))
        proved(case, rule, problem)


F_CONTENT_HEADER_NEXT: Final[str] = RULES.rule(
    "F-CONTENT-HEADER-NEXT", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends another frame on the channel where the content header of the preceding method is due.

Demands: A content-bearing method (publish, return, deliver, get-ok) is always followed on its channel by one
content header.
Source: GS:4.2.6; GS:2.3.5.2; G:basic content
Evidence: per-channel, per-direction content state
Why it matters: The message is lost, and the connection with it (505). The usual cause is two threads that use
the same channel.
Silent when: the sender closes the channel, or answers a close of the other peer, or the method or octets
between the method and the frame were not captured.
How to mend it: Write the method, content header and body of a message to the channel without other frames of
that channel between them, under one lock. Applications must not share a channel between threads without
synchronization.
"""


F_CONTENT_NO_METHOD: Final[str] = RULES.rule(
    "F-CONTENT-NO-METHOD", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a method on the channel while octets of a message's body are still due.

Demands: No method frame appears on a channel between a content header and its last body octet.
Source: GS:4.2.6
Evidence: octets outstanding for the open content on that channel and direction
Why it matters: The message is lost, and the connection with it (505). The usual cause is two threads that use
the same channel.
Silent when: the sender closes the channel, which abandons the message, or answers a close of the other peer,
or a frame of the message or octets between its frames were not captured.
How to mend it: Write all frames of a message to the channel under one lock, so that no method comes between
content header and last body frame. Applications must not share a channel between threads without
synchronization.
"""


F_CONTENT_ONE_HEADER: Final[str] = RULES.rule(
    "F-CONTENT-ONE-HEADER", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a content header on the channel while octets of another message's body are still due.

Demands: A second content header is not sent on a channel while an earlier content is unfinished.
Source: GS:4.2.6
Evidence: content state
Why it matters: The receiver cannot know to which message the next body belongs. The connection is lost (505).
Silent when: a frame of the unfinished message, or octets between its frames, were not captured.
How to mend it: Send the body of a message completely before the next message begins on the channel. Write all
frames of a message under one lock, and do not share a channel between threads without synchronization.
"""


F_HEADER_ORPHAN: Final[str] = RULES.rule(
    "F-HEADER-ORPHAN", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a content header on the channel without a preceding method that has content.

Demands: A content header follows a content-bearing method and nothing else.
Source: GS:4.2.6; GS:4.2.1 content
Evidence: content state
Why it matters: The receiver does not know what to do with the message, because the method is missing. The
connection is lost (505).
Silent when: frames before the content header on the channel were not captured.
How to mend it: Send basic.publish (in a server: basic.deliver, basic.get-ok or basic.return) directly before
the content header. Write method, content header and body as one unit on the same channel.
"""


F_BODY_ORPHAN: Final[str] = RULES.rule(
    "F-BODY-ORPHAN", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a body frame on the channel where no body is due.

Demands: A body frame belongs to a content whose header has been sent and which is not yet complete.
Source: GS:4.2.6; GS:4.2.1 content
Evidence: content state
Why it matters: The body belongs to no message, so the receiver cannot process it. The connection is lost
(505).
Silent when: frames before the body on the channel were not captured.
How to mend it: Send body frames only after a method and its content header, and stop when body-size octets
have been sent. Write all frames of a message on the same channel under one lock.
"""


F_BODY_OVERRUN: Final[str] = RULES.rule(
    "F-BODY-OVERRUN", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends body frames with more octets for a message than the content header announces.

Demands: Body frames add up to exactly the body size in the header and never beyond it.
Source: GS:4.2.6.1
Evidence: running sum against body size
Why it matters: The receiver cannot separate the message from what follows. The connection is lost (505,
RabbitMQ: 501).
Silent when: the content header of the message, or octets since the content header, were not captured.
How to mend it: Set body-size in the content header to the exact number of octets of the encoded body. Count
octets, not characters, and compute the size after encoding or compression.
"""


F_BODY_ZERO: Final[str] = RULES.rule(
    "F-BODY-ZERO", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a body frame after a content header that announces an empty body.

Demands: A content whose body size is zero has no body frames.
Source: GS:4.2.6.1
Evidence: body frame right after a zero-size header
Why it matters: The message was complete before the body frame, so the body frame belongs to no message. The
connection is lost (505).
Silent when: the content header, or octets since the content header, were not captured.
How to mend it: When body-size is 0, send no body frame at all, not even an empty one. When there is a body,
announce its exact number of octets in the content header.
"""


F_HEADER_CLASS: Final[str] = RULES.rule(
    "F-HEADER-CLASS",
    "MUST",
    "tier A",
    answer="connection.close 501 or connection.close 505",
    proved="certain",
)
"""A peer sends a content header whose class-id is not that of basic, the class of all methods that have
content.

Demands: The class-id in a content header equals that of the method before it (60).
Source: GS:4.2.6.1; GS:4.2.6
Evidence: header class-id, pending method
Why it matters: The receiver cannot read the properties. The connection is lost: one section of the
specification asks for reply-code 501, another one for 505; RabbitMQ uses 505.
Silent when: octets before the content header were not captured.
How to mend it: Write class-id 60 (basic) into the content header, equal to the class-id of the preceding
method. Check the byte order of the field.
"""


F_HEADER_WEIGHT: Final[str] = RULES.rule(
    "F-HEADER-WEIGHT", "MUST", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a content header whose weight is not zero.

Demands: The weight field of a content header is zero.
Source: GS:4.2.6.1; GS:4.2.1 content-weight
Evidence: header octets 2-3
Why it matters: The weight field is a remnant of a plan for contents inside contents, and has no use. The
connection is lost (505).
Silent when: octets before the content header were not captured.
How to mend it: Always write 0 into the weight field of the content header. Check that the fields stand in the
order class-id, weight, body-size, property flags.
"""


F_HEADER_DECODE: Final[str] = RULES.rule(
    "F-HEADER-DECODE",
    "IMPLIED",
    "tier A",
    answer="connection.close 501 or connection.close 505",
    proved="properties",
)
"""A peer sends a content header whose properties end before or behind the end of its payload.

Demands: The property list holds exactly the values flagged present, in order, and fills the header payload.
Source: GS:4.2.6.1
Evidence: property decode ends at payload end
Why it matters: Property flags and property values disagree, so all properties may be read wrongly. RabbitMQ
closes the connection with 541.
Silent when: the frame was not captured whole, or octets before the frame were not captured. When the server
sends the content header, the finding is only possible, not certain, and the rule reports it once, because a
server hands on what it received.
Possible because: The {peer} may hand this on as it received it.
How to mend it: Set a flag for exactly those properties that are written, and write the properties in the
order of the flags. Compute the payload size of the frame from the encoded properties.
"""


F_HEADER_FLAGS: Final[str] = RULES.rule(
    "F-HEADER-FLAGS", "IMPLIED", "tier A", answer="connection.close 501", proved="properties"
)
"""A peer sends a content header with a flag that stands for no property, or that announces a flag word which
is not there.

Demands: Only the 14 defined property bits are set, the flag word's low bit only when another word follows,
and bits beyond the defined ones stay clear.
Source: GS:4.2.6.1; XML class basic fields
Evidence: property flag words
Why it matters: The receiver reads the octets that belong to the unknown flag as a part of another property.
Silent when: the frame was not captured whole, or octets before the frame were not captured. When the server
sends the content header, the finding is only possible, not certain, and the rule reports it once, because a
server hands on what it received. RabbitMQ ignores the two low flags.
Possible because: The {peer} may hand this on as it received it.
How to mend it: Set only the 14 flags of the defined properties, bits 15 to 2 of the flag word. Leave bit 1
clear, and set bit 0 only when another flag word follows.
"""


F_BODY_EMPTY: Final[str] = RULES.rule(
    "F-BODY-EMPTY", "IMPLIED", "tier C", note="No error is tied to it, and both peers go on."
)


def body_of_no_octets(case: Case091) -> None:
    """A peer sends a body frame without any octets inside a message.

    Demands: A body frame without payload is the server's marker for abandoning a half-sent content, so it has
    no place in ordinary content.
    Source: XML:basic.reject.01; GS:4.2.1 content-body
    Evidence: type 3 with size 0
    Why it matters: The fault has hardly any effect: RabbitMQ ignores the frame. The specification uses such a
    frame for a server that abandons a half-sent message, which no known server does.
    Silent when: the rule has already reported an empty body frame on the same connection.
    How to mend it: Send a body frame only when at least one octet of the body is left. Check the loop that
    splits the body into frames for an empty first or last piece.
    """
    case.report_once(F_BODY_EMPTY, "a body frame without octets", CERTAIN, {})


def _on_a_channel(case: Case091, problem: Problem) -> None:
    """A frame of a content in the wrong order; on channel 0 that is another fault."""
    if case.record.frame.channel != 0:
        prove(case, f"amqp091/{problem.code}", problem)


def _cut_short(case: Case091, problem: Problem) -> None:
    """Something else where a content goes on; who answers a close of the channel breaks it off rightly."""
    if not isinstance(case.record.frame.body, ChannelCloseOk):
        _on_a_channel(case, problem)


# The rules of problems that take more than the octets to judge.
PROBLEMS: dict[str, Callable[[Case091, Problem], None]] = {
    F_CONTENT_CH_NONZERO: content_on_channel_0,
    F_CONTENT_HEADER_NEXT: _cut_short,
    F_CONTENT_NO_METHOD: _cut_short,
    F_CONTENT_ONE_HEADER: _on_a_channel,
    F_HEADER_ORPHAN: _on_a_channel,
    F_BODY_ORPHAN: _on_a_channel,
    F_BODY_OVERRUN: _on_a_channel,
    F_BODY_ZERO: _on_a_channel,
}
