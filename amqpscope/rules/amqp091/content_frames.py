"""The frames of a content: the content header, and the order of all frames (section 4.2.6).

The dissector reports where the octets, or the earlier frames on the channel, break a rule.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.proof import prove, proved
from amqpscope.rules.declaration import Rules
from dissectors.amqp091.methods import ChannelCloseOk
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "body_of_no_octets", "lose_content"]

RULES: Final = Rules("amqp091/content_frames")


F_CONTENT_CH_NONZERO: Final[str] = RULES.rule(
    "F-CONTENT-CH-NONZERO", "MUST NOT", "tier A", answer="connection.close 504"
)


def content_on_channel_0(case: Case091, problem: Problem) -> None:
    """A peer sends a content header or a body on channel 0.

    Demands: A peer must never send content headers or bodies on channel 0.
    Source: GS:4.2.6.1
    Evidence: the type and the channel number of the frame
    Why it matters: No method on channel 0 has content. The receiver closes the connection with
    reply-code 504 (channel-error). RabbitMQ uses reply-code 505 (unexpected-frame).
    Silent when: the capture lacks octets before the frame. The rule is also silent when F-METHOD-CH-NONZERO
    already reports the method of the same message. The rule is also silent when the rule has already reported
    an earlier content frame on channel 0.
    How to mend it: Send content header and body on the channel of the method to which they belong. Make one
    function write the method, header and body frames, with one channel number.
    """
    rule = F_CONTENT_CH_NONZERO
    if (case.me.peer, rule) not in case.reported:
        case.reported |= {(case.me.peer, rule)}
        proved(case, rule, problem)


F_CONTENT_HEADER_NEXT: Final[str] = RULES.rule(
    "F-CONTENT-HEADER-NEXT", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""The content header of the preceding method is due on a channel, but the peer sends a different frame on
this channel.

Demands: After basic.publish, basic.return, basic.deliver or basic.get-ok, the next frame of the sender on the
channel must be the content header.
Source: GS:4.2.6; GS:2.3.5.2; G:basic content
Evidence: the frame type that is due next on the channel in this direction
Why it matters: The message and the connection are lost (reply-code 505, unexpected-frame). The usual
cause is two threads that use the same channel.
Silent when: the sender closes the channel, or when the sender answers a close of the other peer. The rule is
also silent when the capture lacks the method or octets between the method and the frame. The rule is also
silent after a frame of the sender has broken the order of a content, until the sender's next method on the
channel. The rule is also silent when the sender has already sent a method with content that only the other
peer may send, or that names a channel that is not open.
How to mend it: Write the method, the content header and the body of a message under one lock, so that no
other frame of the channel comes between them. Applications must not share a channel between threads without
synchronization.
"""


F_CONTENT_NO_METHOD: Final[str] = RULES.rule(
    "F-CONTENT-NO-METHOD", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a method on a channel on which octets of a message's body are still due.

Demands: A peer must not send a method on a channel between a content header and the last octet of the body.
Source: GS:4.2.6
Evidence: the number of body octets that are still due on the channel in this direction
Why it matters: The message and the connection are lost (reply-code 505, unexpected-frame). The usual
cause is two threads that use the same channel.
Silent when: the sender closes the channel and so abandons the message, or when the sender answers a close of
the other peer. The rule is also silent when the capture lacks a frame of the message or octets between its
frames. The rule is also silent after a frame of the sender has broken the order of a content, until the
sender's next method on the channel.
How to mend it: Write all frames of a message to the channel under one lock, so that no method comes between
content header and last body frame. Applications must not share a channel between threads without
synchronization.
"""


F_CONTENT_ONE_HEADER: Final[str] = RULES.rule(
    "F-CONTENT-ONE-HEADER", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a content header on a channel on which octets of another message's body are still due.

Demands: A peer must not send a second content header on a channel before the earlier message is complete.
Source: GS:4.2.6
Evidence: the number of body octets that are still due on the channel in this direction
Why it matters: The receiver cannot know to which message the next body belongs. The connection is lost
(reply-code 505, unexpected-frame).
Silent when: the capture lacks a frame of the unfinished message, or octets between its frames. The rule is
also silent after a frame of the sender has broken the order of a content, until the sender's next method on
the channel.
How to mend it: Send the body of a message completely before the next message begins on the channel. Write all
frames of a message under one lock, and do not share a channel between threads without synchronization.
"""


F_HEADER_ORPHAN: Final[str] = RULES.rule(
    "F-HEADER-ORPHAN", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a content header that does not follow a method with content on the channel.

Demands: A peer may send a content header only directly after a method that has content.
Source: GS:4.2.6; GS:4.2.1 content
Evidence: the frame type that is due next on the channel in this direction
Why it matters: The method is missing, so the receiver cannot process the message. The connection is lost
(reply-code 505, unexpected-frame).
Silent when: the capture lacks frames before the content header on the channel. The rule is also silent when
the sender has already sent a method with content on a channel that is not open, because the content header
may belong to that method. The rule is also silent after a frame of the sender has broken the order of a
content, until the sender's next method on the channel.
How to mend it: Send basic.publish (in a server: basic.deliver, basic.get-ok or basic.return) directly before
the content header. Write method, content header and body as one unit on the same channel.
"""


F_BODY_ORPHAN: Final[str] = RULES.rule(
    "F-BODY-ORPHAN", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a body frame on a channel on which no body is due.

Demands: A peer may send a body frame only while a message with a content header is incomplete.
Source: GS:4.2.6; GS:4.2.1 content
Evidence: the frame type that is due next on the channel in this direction
Why it matters: The body belongs to no message, so the receiver cannot process it. The connection is lost
(reply-code 505, unexpected-frame).
Silent when: the capture lacks frames before the body frame on the channel. The rule is also silent after a
frame of the sender has broken the order of a content, until the sender's next method on the channel.
How to mend it: Send body frames only after a method and its content header, and stop when as many octets as
body-size have been sent. Write all frames of a message on the same channel under one lock.
"""


F_BODY_OVERRUN: Final[str] = RULES.rule(
    "F-BODY-OVERRUN", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends more body octets for a message than the content header announces.

Demands: Together, the body frames of a message must have exactly as many octets as body-size in the content
header announces.
Source: GS:4.2.6.1
Evidence: the sum of the body octets, and the body-size of the content header
Why it matters: The receiver cannot separate the message from the frames that follow. The connection is
lost (reply-code 505, unexpected-frame; RabbitMQ: 501, frame-error).
Silent when: the capture lacks the content header of the message, or octets after the content header. The rule
is also silent after a frame of the sender has broken the order of a content, until the sender's next method
on the channel.
How to mend it: Set body-size in the content header to the exact number of octets of the encoded body. Count
octets, not characters, and compute the size after encoding or compression.
"""


F_BODY_ZERO: Final[str] = RULES.rule(
    "F-BODY-ZERO", "IMPLIED", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a body frame after a content header that announces an empty body.

Demands: A message with body-size 0 must not have body frames.
Source: GS:4.2.6.1
Evidence: a body frame directly after a content header with body-size 0
Why it matters: The message was already complete, so the body frame belongs to no message. The connection
is lost (reply-code 505, unexpected-frame).
Silent when: the capture lacks the content header, or octets after the content header. The rule is also silent
after a frame of the sender has broken the order of a content, until the sender's next method on the channel.
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
"""A peer sends a content header whose class-id is not 60 (basic), although only methods of the class `basic`
have content.

Demands: The class-id of a content header must equal the class-id of the preceding method (60).
Source: GS:4.2.6.1; GS:4.2.6
Evidence: the class-id of the content header and of the preceding method
Why it matters: The receiver cannot read the properties of the message. The connection is lost: the
specification names both reply-code 501 (frame-error) and 505 (unexpected-frame) for this fault, and RabbitMQ
uses 505.
Silent when: the capture lacks octets before the content header.
How to mend it: Write class-id 60 (basic) into the content header, equal to the class-id of the preceding
method. Check the byte order of the class-id field.
"""


F_HEADER_WEIGHT: Final[str] = RULES.rule(
    "F-HEADER-WEIGHT", "MUST", "tier A", answer="connection.close 505", proved="certain"
)
"""A peer sends a content header whose weight is not zero.

Demands: The weight field of a content header must be 0.
Source: GS:4.2.6.1; GS:4.2.1 content-weight
Evidence: the weight field of the content header
Why it matters: The weight field was planned for nested contents, and has no use. The connection is lost
(reply-code 505, unexpected-frame).
Silent when: the capture lacks octets before the content header.
How to mend it: Always write 0 into the weight field of the content header. Write the fields of a content
header in this order: class-id, weight, body-size, property flags.
"""


F_HEADER_DECODE: Final[str] = RULES.rule(
    "F-HEADER-DECODE",
    "IMPLIED",
    "tier A",
    answer="connection.close 501 or connection.close 505",
    proved="properties",
)
"""A peer sends a content header whose property list does not end where the payload of the frame ends.

Demands: The property list of a content header must contain exactly the properties that the flags announce, in
the order of the flags. The property list must end where the payload ends.
Source: GS:4.2.6.1
Evidence: the end of the property list and the end of the payload
Why it matters: Property flags and property values disagree, so all properties may be read wrongly.
RabbitMQ closes the connection with reply-code 541 (internal-error).
Silent when: the capture lacks a part of the frame, or octets before the frame. When the server sends the
content header, the finding is reported as possible, not as certain, because a server forwards the content
header that it received. The rule reports forwarded content headers only once per connection.
Possible because: The {peer} may have forwarded a content header that a publisher sent.
How to mend it: Set a flag for exactly those properties that are written, and write the properties in the
order of the flags. Compute the payload size of the frame from the encoded properties.
"""


F_HEADER_FLAGS: Final[str] = RULES.rule(
    "F-HEADER-FLAGS", "IMPLIED", "tier A", answer="connection.close 501", proved="properties"
)
"""A peer sends a content header whose property flags name an unknown property, or announce another flag word
although no flag word follows.

Demands: A content header may set only the flags of the 14 defined properties. The lowest flag bit may be set
only if another flag word follows.
Source: GS:4.2.6.1; XML class basic fields
Evidence: the property flags of the content header
Why it matters: The receiver reads the octets that belong to the unknown flag as a part of another property.
Silent when: the capture lacks a part of the frame, or octets before the frame. When the server sends the
content header, the finding is reported as possible, not as certain, because a server forwards the content
header that it received. The rule reports forwarded content headers only once per connection. RabbitMQ ignores
the two lowest flags.
Possible because: The {peer} may have forwarded a content header that a publisher sent.
How to mend it: Set only the 14 flags of the defined properties, bits 15 to 2 of the flag word. Leave bit 1
clear, and set bit 0 only when another flag word follows.
"""


F_BODY_EMPTY: Final[str] = RULES.rule(
    "F-BODY-EMPTY",
    "IMPLIED",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def body_of_no_octets(case: Case091) -> None:
    """A peer sends an empty body frame inside a message.

    Demands: A body frame must have at least one octet, because an empty body frame marks a message that a
    server abandons.
    Source: XML:basic.reject.01; GS:4.2.1 content-body
    Evidence: a body frame with size 0
    Why it matters: RabbitMQ ignores an empty body frame, so the fault does little harm. The specification
    lets a server abandon an unfinished message by sending an empty body frame, but no known server does so.
    Silent when: the rule has already reported an empty body frame on the same connection.
    How to mend it: Send a body frame only when at least one octet of the body is left. In the loop that
    splits the body into frames, check for an empty first or last piece.
    """
    case.report_once(F_BODY_EMPTY, "the body frame is empty, but must have at least one octet", CERTAIN, {})


def lose_content(case: Case091) -> None:
    """This frame is a method with content on a channel on which there can be none, or from the wrong peer.
    Nobody knows whether a content follows, and on which channel: whatever does, it is the same fault.
    """
    peer = case.me.peer
    case.reported |= {
        (peer, F_CONTENT_CH_NONZERO),
        (peer, F_CONTENT_HEADER_NEXT),
        (peer, F_HEADER_ORPHAN),
    }


def _on_a_channel(case: Case091, problem: Problem) -> None:
    """A content frame in the wrong order. On channel 0 another rule reports it."""
    rule = f"amqp091/{problem.code}"
    if case.record.frame.channel != 0 and (case.me.peer, rule) not in case.reported:
        prove(case, rule, problem)


def _cut_short(case: Case091, problem: Problem) -> None:
    """Another frame where a content should continue. A peer that answers channel.close may break the content
    off.
    """
    if not isinstance(case.record.frame.body, ChannelCloseOk):
        _on_a_channel(case, problem)


# Rules whose problems cannot be judged by the octets alone.
PROBLEMS: Final[dict[str, Callable[[Case091, Problem], None]]] = {
    F_CONTENT_CH_NONZERO: content_on_channel_0,
    F_CONTENT_HEADER_NEXT: _cut_short,
    F_CONTENT_NO_METHOD: _cut_short,
    F_CONTENT_ONE_HEADER: _on_a_channel,
    F_HEADER_ORPHAN: _on_a_channel,
    F_BODY_ORPHAN: _on_a_channel,
    F_BODY_OVERRUN: _on_a_channel,
    F_BODY_ZERO: _on_a_channel,
}
