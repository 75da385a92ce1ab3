"""Framing: faults that a frame's header and the place of its body prove (transport.xml, "framing").

The dissector finds where the octets break a rule; the rule's function reports it.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.proof import proved
from amqpscope.rules.declaration import Rules
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "stream_of_another_protocol"]

RULES: Final = Rules("amqp10/framing")


F_SIZE_MIN: Final = RULES.rule(
    "F-SIZE-MIN", "MUST", "wording", usual_answer="amqp:connection:framing-error", proved="certain"
)
"""A peer sends a frame whose size field is smaller than the 8 octets of the frame header.

Demands: The size of a frame must be at least 8 octets.
Source: transport.xml section framing > Frame Layout
Evidence: the size field in octets 0 to 3 of the frame
Why it matters: The receiver cannot find the start of the next frame. The receiver has to close the
connection.
Silent when: octets before the frame were not captured.
How to mend it: Write the length of the whole frame into the size field: the 8 octets of the frame header, the
extended header and the body. An empty frame has size 8.
"""


F_DOFF_MIN: Final = RULES.rule(
    "F-DOFF-MIN", "MUST", "wording", usual_answer="amqp:connection:framing-error", proved="certain"
)
"""A peer sends a frame whose data offset (DOFF) is below 2, so that the frame body would begin inside the
frame header.

Demands: The data offset (DOFF) of a frame must be at least 2.
Source: transport.xml section framing > Frame Layout
Evidence: the data offset in octet 4 of the frame
Why it matters: The frame is malformed. The receiver must close the connection, and all its sessions and links
end.
Silent when: octets before the frame were not captured.
How to mend it: Count the data offset in units of 4 octets. Use DOFF 2 for a frame without extended header.
Check that you write neither 0 nor the offset of another field.
"""


F_DOFF_RANGE: Final = RULES.rule(
    "F-DOFF-RANGE", "MUST", "definition", usual_answer="amqp:connection:framing-error", proved="certain"
)
"""A peer sends a frame whose data offset (DOFF) points beyond the end of the frame.

Demands: Four times the data offset (DOFF) must not exceed the frame size.
Source: transport.xml section framing > Frame Layout
Evidence: the size and the data offset in octets 0 to 4 of the frame
Why it matters: The frame has no place for its body. The receiver cannot decode the frame and closes the
connection with a framing error.
Silent when: octets before the frame were not captured.
How to mend it: Count the data offset in units of 4 octets, not in octets. Four times DOFF must not exceed the
frame size. For a frame without extended header, DOFF is 2.
"""


F_TYPE_KNOWN: Final = RULES.rule(
    "F-TYPE-KNOWN", "MUST", "definition", usual_answer="amqp:connection:framing-error", proved="certain"
)
"""A peer sends a frame whose type is neither 0x00 (AMQP) nor 0x01 (SASL).

Demands: The type of a frame must be 0x00 for AMQP or 0x01 for SASL. The specification defines no other type.
Source: transport.xml section framing > Frame Layout
Evidence: the type in octet 5 of the frame
Why it matters: The specification defines no meaning for a frame of another type. The receiver cannot
interpret the frame body and closes the connection with a framing error.
Silent when: octets before the frame were not captured.
How to mend it: Write type 0x00 into the header of AMQP frames and 0x01 into the header of SASL frames. Check
that the size of the previous frame is right, because a wrong size shifts the frame header.
"""


F_BODY_PERF: Final = RULES.rule("F-BODY-PERF", "MUST", "keyword", usual_answer="amqp:decode-error")


def frame_body_that_is_no_performative(case: Case10, problem: Problem) -> None:
    """A peer sends an AMQP frame whose body does not begin with a performative.

    Demands: If an AMQP frame has a body, this body must begin with one of the nine performatives, encoded as
    a described type.
    Source: transport.xml section framing > AMQP Frames
    Evidence: the descriptor at the start of the frame body
    Why it matters: The receiver cannot know the purpose of the frame. The receiver refuses the frame with a
    decode error and may close the connection.
    Silent when: a part of the frame was not captured. Another rule, SA-FRAME-TYPE, reports a SASL
    performative that an AMQP frame carries while the SASL layer is in use.
    How to mend it: Begin the body of every non-empty AMQP frame with one of the nine performatives, encoded
    as a described list. To send a heartbeat, send a frame without any body.
    """
    if case.me.layer == "SASL" and case.record.frame.name.startswith("sasl-"):
        sasl_value_in_an_amqp_frame(case)
        return
    proved(case, F_BODY_PERF, problem)


SA_FRAME_TYPE: Final = RULES.rule("SA-FRAME-TYPE", "MUST", "definition", octets=True)


def sasl_value_in_an_amqp_frame(case: Case10) -> None:
    """A peer sends a SASL performative in a frame of type 0x00 (AMQP) instead of type 0x01 (SASL).

    Demands: A SASL performative must travel in a frame of type 0x01.
    Source: security.xml section sasl > SASL Frames
    Evidence: the type in octet 5 of the frame
    Why it matters: In the SASL layer, frames have type 0x01. The other peer does not recognize the frame as
    SASL, so authentication fails.
    Silent when: octets since the SASL protocol header, or the SASL protocol header itself, were not captured.
    How to mend it: Write type 0x01 into the header of every frame that carries sasl-mechanisms, sasl-init,
    sasl-challenge, sasl-response or sasl-outcome. Write type 0x00 only in the AMQP layer.
    """
    frame = case.record.frame
    case.report(
        SA_FRAME_TYPE, f"the peer sends {frame.name} in a frame of type 0 (AMQP) instead of type 1 (SASL)"
    )


F_BODY_PAYLOAD: Final = RULES.rule(
    "F-BODY-PAYLOAD", "MUST NOT", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer puts octets after a performative that cannot have a payload.

Demands: Only a transfer may have octets after its performative, namely its payload.
Source: transport.xml section framing > AMQP Frames
Evidence: octets in the frame after the list of the performative
Why it matters: Only a transfer carries a payload. The receiver ignores the octets after the performative or
refuses the frame. Octets after the performative can also be a sign of a wrong frame size.
Silent when: a part of the frame was not captured.
How to mend it: End every frame except transfer with the last octet of its performative. Compute the frame
size and the size of the list from the encoded octets, not from the length of a reused buffer.
"""


C_HDR_FORM: Final = RULES.rule("C-HDR-FORM", "MUST", "definition", proved="certain")
"""A stream begins neither with a protocol header nor with a frame.

Demands: A protocol header must consist of `AMQP` in upper case, a protocol id, and one octet each for major,
minor and revision.
Source: transport.xml section version-negotiation
Evidence: the first 8 octets of the stream
Why it matters: The other peer cannot know which protocol is in use. The other peer ends the connection, or
answers with a protocol header and then closes the connection.
Silent when: the start of the stream was not captured, or when the stream begins with TLS, which may contain
AMQP. The rule is also silent when the server speaks another protocol, for example HTTP, because the client
has then connected to a wrong port. The finding is reported as possible, not as certain, when the client
speaks another protocol and octets of either peer were not captured, because they may be the answer of a
proxy.
How to mend it: Send the 8 octets of the protocol header first: `AMQP` in upper case, the protocol id, and
the version 1, 0, 0. Check that the client speaks the protocol that the server expects at this port, for
example TLS.
"""


def stream_of_another_protocol(case: Case10, problem: Problem) -> None:
    """Report the stream of a client that speaks another protocol: the client has connected to a wrong port.

    A server that speaks another protocol does nothing wrong by that one.
    """
    if case.me.peer == CLIENT:
        evidence: dict[str, object] = {"offset": int(problem.offset)}
        certainty = CERTAIN
        if case.record.unseen or not case.peer.whole:
            # The octets that are missing may be the answer of a proxy or of a WebSocket server.
            certainty = POSSIBLE
            evidence["answer_in_doubt"] = True
        case.report(C_HDR_FORM, problem.reason, certainty, evidence)


C_HDR_VERMATCH: Final = RULES.rule(
    "C-HDR-VERMATCH",
    "MUST",
    "keyword",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:decode-error or amqp:connection:framing-error",
    octets=True,
)


def second_header_behind_the_first(case: Case10, problem: Problem) -> None:
    """After a protocol header, a peer sends another protocol header instead of frames of the announced layer.

    Demands: All octets after a protocol header must follow the protocol version that the header announced.
    Source: transport.xml section version-negotiation
    Evidence: a further protocol header, frames of AMQP 0-9-1, or lists of fields that fit only the draft of
    April 2011
    Why it matters: The other peer expects frames of the layer that the previous header announced. The other
    peer cannot decode the second header as a frame and may close the connection.
    Silent when: octets between the two protocol headers were not captured, or when both peers had sent close.
    Another rule, C-CLOSE-NOREUSE, reports a protocol header after both closes.
    Only possible because: The specification leaves room to read these octets as legal, or a newer
    specification may define them.
    How to mend it: Send one protocol header per layer. Send the AMQP header only after SASL authentication
    has ended, and never send this header a second time on the same connection. To try another version, open a
    new connection.
    """
    me = case.me
    if (me.closing.sent and me.closing.received) or me.headers.sent == 0:
        return
    proved(case, C_HDR_VERMATCH, problem, POSSIBLE)


# Rules whose problems need more than the octets of the frame to judge.
PROBLEMS: Final[dict[str, Callable[[Case10, Problem], None]]] = {
    F_BODY_PERF: frame_body_that_is_no_performative,
    C_HDR_VERMATCH: second_header_behind_the_first,
}
