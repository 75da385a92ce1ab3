"""The SASL layer: who says what, in which order (security.xml, "sasl")."""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.connection import frame_before_header
from amqpscope.rules.amqp10.proof import proved
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "judge_amqp_frame", "judge_frame", "judge_header", "reset_after_failure"]

# security.xml, type sasl-code: what is beyond may mean anything.
_LAST_CODE: Final = 4


def frame_of_the_other_layer(case: Case) -> None:
    """A peer sends a SASL frame where AMQP frames belong, or an AMQP frame where SASL frames belong.

    Why it matters: Each protocol header opens one layer, and frames of another layer have no meaning in it.
    The receiver may close the connection with framing-error.
    Silent when: the protocol header was not captured, or octets since the protocol header were not captured.
    How to mend it: Send SASL frames only between the SASL header and the outcome. Send AMQP frames only after
    you have sent the AMQP header, and set the type octet of each frame accordingly.
    """
    frame = case.record.frame
    layer = case.me.layer
    where = "after the AMQP header" if frame.kind == "sasl" else "in the SASL layer"
    case.report("amqp10/F-TYPE-PHASE", f"{frame.name} is sent {where}", CERTAIN, {"layer": layer})


def no_header_after_the_outcome(case: Case) -> None:
    """After a successful outcome an AMQP frame is sent without a new protocol header, or SASL begins anew.

    Why it matters: The protocol header opens the AMQP layer on top of SASL. Without the header the receiver
    cannot interpret the frame and may close the connection.
    Silent when: octets since the SASL header, or that itself, were not captured.
    How to mend it: After sasl-outcome with code ok, send the AMQP protocol header again and exchange headers
    before you send open.
    """
    name = case.record.frame.name
    message = f"{name} is sent after the outcome without a protocol header"
    if name == "header":
        message = "the protocol header for SASL is sent again after the outcome"
    case.report("amqp10/SA-OK-HDR", message)


def header_before_the_outcome(case: Case) -> None:
    """A peer sends the AMQP header before it can know the outcome of the SASL exchange.

    Why it matters: If the exchange fails, the other peer never reads the pipelined octets, or it reads them
    in the wrong layer.
    Silent when: octets of either peer were not captured.
    How to mend it: Wait for sasl-outcome with code ok before you send the AMQP header. As server, send the
    outcome before your header.
    """
    case.report(
        "amqp10/SA-OK-HDR-EARLY", "the AMQP header is sent before the outcome of the SASL exchange is known"
    )


def header_after_failure(case: Case, code: int, certainty: int) -> None:
    """After an unsuccessful outcome an AMQP header is sent.

    Why it matters: A client that is not authenticated must not open an AMQP connection. A server that goes on
    may admit the client.
    Silent when: the outcome was not captured, or octets of the server's since: it may be another connection
    on the same ports. Of a client never more than possible: it may not have read it.
    How to mend it: Check the code of sasl-outcome. If the code is not ok, send no protocol header; shut down
    your outgoing stream, read until the other peer ends its stream, and close.
    """
    case.report(
        "amqp10/SA-FAIL-STOP",
        f"the AMQP header is sent after outcome {code}",
        certainty,
        {"outcome_code": code},
    )


def judge_header(case: Case, body: ProtocolHeader) -> None:
    """The rules about a protocol header behind a SASL exchange."""
    me = case.me
    if me.layer != "SASL":
        return
    outcome = me.outcome
    if body.protocol() == "SASL":
        if me.whole and outcome is not None and outcome.code == 0:
            no_header_after_the_outcome(case)
        return
    if outcome is not None:
        code = outcome.code
        if code is not None and 0 < code <= _LAST_CODE:
            if me.peer == CLIENT:
                header_after_failure(case, code, POSSIBLE)
            elif me.whole:
                header_after_failure(case, code, CERTAIN)
    elif me.whole:
        header_before_the_outcome(case)


def judge_amqp_frame(case: Case) -> None:
    """The rules about an AMQP frame in the SASL layer."""
    me = case.me
    if not me.whole or case.record.frame.name.startswith("sasl-"):
        return
    if me.outcome is not None and me.outcome.code == 0:
        no_header_after_the_outcome(case)
    else:
        frame_of_the_other_layer(case)


def frame_larger_than_512_octets(case: Case) -> None:
    """A SASL frame has more than 512 octets.

    Why it matters: Before open the peers have not agreed on a larger frame size. The receiver may treat the
    frame as an error and close the connection.
    Silent when: not all of the frame was captured, and where it begins is a guess.
    How to mend it: Keep every SASL frame within 512 octets. Shorten mechanism lists, initial responses and
    challenges, or choose a mechanism whose data fits, instead of relying on the receiver to accept larger
    frames.
    """
    frame = case.record.frame
    size = frame.size
    if frame.missing > 0 and not frame.guessed:
        size = frame.declared_size
    if size > 512:
        case.report(
            "amqp10/SA-FRAME-512", f"the SASL frame has {size} octets", CERTAIN, {"frame_size": int(size)}
        )


def frame_with_extended_header(case: Case) -> None:
    """A peer sends a SASL frame whose data offset is not 2.

    Why it matters: No specification defines octets between the header and the body of a SASL frame. The
    receiver skips these octets and their content is lost.
    Silent when: the frame was not captured whole.
    How to mend it: Write the value 2 into the data offset (octet 4) of every SASL frame and start the body at
    octet 8.
    """
    if case.record.frame.extended_header:
        case.report("amqp10/SA-FRAME-DOFF", "octets stand between the SASL frame's header and its body")


def frame_with_octets_6_and_7(case: Case) -> None:
    """A peer sends a SASL frame whose octets 6 and 7 are not zero.

    Why it matters: In AMQP frames these two octets hold the channel. SASL frames have no channel, so the
    value has no meaning and a strict receiver may refuse the frame.
    Silent when: the frame was not captured.
    How to mend it: Write zero into octets 6 and 7 of every SASL frame. Initialize the frame buffer before you
    fill in the header.
    """
    octets = case.record.frame.raw
    if len(octets) >= 8 and (octets[6] != 0 or octets[7] != 0):
        case.report("amqp10/SA-FRAME-BYTES67", "octets 6 and 7 of the SASL frame are not zero")


def role_reversed(case: Case) -> None:
    """A peer sends a SASL frame that only the other peer may send.

    Why it matters: The TCP client acts as SASL client and the TCP server as SASL server. With reversed roles
    the exchange cannot succeed.
    Silent when: the capture does not show which peer opened the connection.
    How to mend it: Send only sasl-init and sasl-response as the peer that opened the TCP connection. Send
    only sasl-mechanisms, sasl-challenge and sasl-outcome as the peer that accepted the TCP connection.
    """
    case.report("amqp10/SA-ROLE", f"{case.record.frame.name} is sent by the {case.me.peer}")


def first_frame_is_not_mechanisms(case: Case) -> None:
    """The first SASL frame that a server sends is not sasl-mechanisms.

    Why it matters: The client does not learn which mechanisms it may choose, so it cannot choose one
    correctly.
    Silent when: octets of the server were not captured.
    How to mend it: Send sasl-mechanisms directly after the SASL header. Send no challenge and no outcome
    before it.
    """
    me = case.me
    if me.mechanisms is None and me.whole:
        name = case.record.frame.name
        case.report("amqp10/SA-MECH-FIRST", f"{name} is sent before sasl-mechanisms")


def init_before_the_mechanisms(case: Case) -> None:
    """A client sends sasl-init before it can know the mechanisms of the server.

    Why it matters: The client can only guess which mechanisms the server accepts. A wrong guess fails the
    authentication.
    Silent when: octets of either peer were not captured.
    How to mend it: Wait for sasl-mechanisms, choose one of the listed mechanisms, and only then send
    sasl-init. Do not pipeline sasl-init behind the SASL header.
    """
    if case.me.mechanisms is None and case.me.whole:
        case.report("amqp10/SA-INIT-AFTER", "sasl-init is sent before the server's mechanisms are received")


def mechanism_not_offered(case: Case, body: SaslInit) -> None:
    """A client chooses a mechanism in sasl-init that the server did not offer.

    Why it matters: The server must refuse the mechanism, so the authentication fails and the connection ends.
    Silent when: the mechanisms of the server were not captured.
    How to mend it: Intersect the mechanisms that you support with the list in sasl-mechanisms and choose from
    the result. If the result is empty, report an error and close the connection. Users may have configured a
    mechanism that the server has disabled.
    """
    offered = case.me.mechanisms
    if offered is None or offered.sasl_server_mechanisms is None or body.mechanism is None:
        return
    if body.mechanism not in offered.sasl_server_mechanisms and offered.sasl_server_mechanisms:
        case.report(
            "amqp10/SA-INIT-OFFERED",
            "sasl-init chooses a mechanism that is not among those offered",
            CERTAIN,
            {"offered": [str(name) for name in offered.sasl_server_mechanisms[:16]]},
        )


def second_init(case: Case) -> None:
    """A client sends sasl-init twice.

    Why it matters: A SASL exchange has exactly one sasl-init. The server cannot tell which mechanism applies
    and may close the connection.
    Silent when: octets since the first sasl-init were not captured.
    How to mend it: Send sasl-init once per connection. To try another mechanism or other credentials, open a
    new connection. Send later data of the same mechanism in sasl-response.
    """
    if case.me.init is not None and case.me.whole:
        case.report("amqp10/SA-INIT-ONCE", "a second sasl-init is sent")


def challenge_out_of_turn(case: Case) -> None:
    """A server sends a challenge before it can have received the client's sasl-init.

    Why it matters: The client has not chosen a mechanism yet, so the challenge belongs to no mechanism and
    the client cannot answer it.
    Silent when: octets of either peer were not captured.
    How to mend it: Wait for sasl-init before you send a sasl-challenge. Take the mechanism of the challenge
    from sasl-init.
    """
    if case.me.init is None and case.me.whole:
        case.report("amqp10/SA-SEQ-CHAL", "a challenge is sent before the client's sasl-init is received")


def response_without_challenge(case: Case) -> None:
    """A client sends a response that answers no challenge.

    Why it matters: The server takes the response for the answer to another challenge, so the authentication
    fails or gets out of step.
    Silent when: octets of either peer were not captured.
    How to mend it: Send exactly one sasl-response for each sasl-challenge. Put the first data of the
    mechanism into the initial-response field of sasl-init, not into a sasl-response.
    """
    if case.me.challenges <= 0 and case.me.whole:
        case.report("amqp10/SA-SEQ-RESP", "a response is sent, but no challenge waits for one")


def mechanism_accepted_that_was_not_offered(case: Case) -> None:
    """A server continues the exchange with a mechanism that the server did not offer.

    Why it matters: The server must end the exchange. A mechanism that is not offered may have been disabled
    on purpose, for example because it is insecure.
    Silent when: the mechanisms of the server or the client's sasl-init were not captured.
    How to mend it: Compare the mechanism in sasl-init with the list that you sent in sasl-mechanisms. If the
    list does not contain the mechanism, end the exchange with an authentication failure and close the
    connection.
    """
    me = case.me
    offered = me.mechanisms
    body = case.record.frame.body
    if me.init is None or offered is None or not offered.sasl_server_mechanisms:
        return
    if me.init.mechanism is None or me.init.mechanism in offered.sasl_server_mechanisms:
        return
    if isinstance(body, SaslOutcome) and body.code != 0:
        return
    case.report(
        "amqp10/SA-INIT-UNSUP",
        f"{case.record.frame.name} is sent, but the mechanism that the client chose was not offered",
        CERTAIN,
        {"offered": [str(name) for name in offered.sasl_server_mechanisms[:16]]},
    )


def success_before_init(case: Case) -> None:
    """A server sends a successful outcome before it can have received the client's sasl-init.

    Why it matters: The client has not said who it is, nor with which mechanism. The server accepts a login
    that did not take place. Silent when: octets of either peer were not captured, or the outcome is a
    failure: a server may end the exchange at any time. How to mend it: Send sasl-outcome with the code ok
    only after sasl-init was received and its credentials were checked.
    """
    if case.me.init is None and case.me.whole:
        case.report("amqp10/SA-SEQ-INIT", "the outcome ok is sent before the client's sasl-init is received")


def outcome_data_on_failure(case: Case, body: SaslOutcome) -> None:
    """A server sends an unsuccessful outcome that carries additional-data.

    Why it matters: The field additional-data belongs to a successful exchange only. A client may ignore it or
    treat the frame as an error.
    Silent when: never.
    How to mend it: Leave additional-data null unless the code of sasl-outcome is ok.
    """
    if body.code is not None and body.code != 0 and body.additional_data is not None:
        case.report("amqp10/SA-OUTCOME-DATA", f"outcome {body.code} carries additional-data")


def frame_after_outcome(case: Case) -> None:
    """A server sends a SASL frame after the outcome.

    Why it matters: The outcome ends the exchange. The client expects a protocol header or the end of the
    stream and may close the connection.
    Silent when: octets since the outcome were not captured.
    How to mend it: Send sasl-outcome as the last SASL frame of the connection. Send data that belongs to a
    successful exchange in its additional-data field.
    """
    if case.me.outcome is not None and case.me.whole:
        case.report("amqp10/SA-SEQ-OUTCOME", f"{case.record.frame.name} is sent after the outcome")


def judge_frame(case: Case) -> None:
    """The rules about frames of the SASL layer."""
    me = case.me
    body = case.record.frame.body
    if me.whole and me.layer == "AMQP 1.0":
        frame_of_the_other_layer(case)
        return
    if me.whole and me.layer == "" and me.frames == 0:
        frame_before_header(case)
        return
    frame_larger_than_512_octets(case)
    frame_with_extended_header(case)
    frame_with_octets_6_and_7(case)
    client = me.peer == CLIENT
    if isinstance(body, (SaslInit, SaslResponse)):
        if not client:
            role_reversed(case)
        elif isinstance(body, SaslInit):
            second_init(case)
            init_before_the_mechanisms(case)
            mechanism_not_offered(case, body)
        else:
            response_without_challenge(case)
    elif isinstance(body, (SaslMechanisms, SaslChallenge, SaslOutcome)):
        if client:
            role_reversed(case)
            return
        found = case.found
        frame_after_outcome(case)
        if isinstance(body, SaslOutcome):
            outcome_data_on_failure(case, body)
        if case.found == found and not isinstance(body, SaslMechanisms):
            first_frame_is_not_mechanisms(case)
        if case.found == found and isinstance(body, SaslChallenge):
            challenge_out_of_turn(case)
        if case.found == found and isinstance(body, SaslOutcome) and body.code == 0:
            success_before_init(case)
        if case.found == found and me.whole and isinstance(body, (SaslChallenge, SaslOutcome)):
            mechanism_accepted_that_was_not_offered(case)


def reset_after_failure(case: Case) -> None:
    """A peer resets the connection after an unsuccessful outcome.

    Why it matters: Data that the other peer has not read yet may be lost, for example the outcome. The client
    then sees a broken connection instead of an authentication failure.
    Silent when: the outcome was not captured, or the other peer had ended its stream.
    Only possible because: The capture does not show which program or host reset the connection.
    How to mend it: After an unsuccessful outcome shut down the outgoing stream first. Then read the incoming
    stream until it ends, and only then close the socket. Closing a socket with unread data causes a reset.
    """
    outcome = case.me.outcome
    if outcome is not None and outcome.code is not None and outcome.code != 0:
        case.report(
            "amqp10/SA-FAIL-CLOSE",
            f"the connection is reset after outcome {outcome.code}",
            POSSIBLE,
            {"outcome_code": outcome.code},
        )


def empty_sasl_frame(case: Case, problem: Problem) -> None:
    """A peer sends a SASL frame without a body.

    Why it matters: The SASL layer has no heartbeats, so an empty SASL frame is a fatal error. The other peer
    ends the connection.
    Silent when: the frame was not captured whole.
    How to mend it: Do not start heartbeats before the AMQP layer is open. Send a SASL frame only when it
    carries one of the five SASL values.
    """
    proved(case, "amqp10/SA-FRAME-EMPTY", problem)


def sasl_frame_with_another_body(case: Case, problem: Problem) -> None:
    """A peer sends a SASL frame whose body is not one of the five SASL values, or whose body has octets after
    that value.

    Why it matters: The receiver cannot interpret the frame, so the SASL exchange cannot continue and no
    connection is opened.
    Silent when: the frame was not captured whole.
    How to mend it: Encode exactly one of sasl-mechanisms, sasl-init, sasl-challenge, sasl-response or
    sasl-outcome in each SASL frame. Set the frame size so that the frame ends with this value.
    """
    proved(case, "amqp10/SA-FRAME-BODY", problem)


def no_mechanisms_offered(case: Case, problem: Problem) -> None:
    """A server sends sasl-mechanisms without any mechanism.

    Why it matters: The client cannot choose a mechanism, so it cannot authenticate and no connection is
    opened.
    Silent when: the frame was not captured whole.
    How to mend it: List at least one mechanism in sasl-mechanisms; offer `ANONYMOUS` if no authentication is
    needed. Check the configuration of the server if the list of enabled mechanisms is empty.
    """
    proved(case, "amqp10/SA-MECH-NONEMPTY", problem)


# What the dissector's problems break, by their code.
PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "SA-FRAME-EMPTY": empty_sasl_frame,
    "SA-FRAME-BODY": sasl_frame_with_another_body,
    "SA-MECH-NONEMPTY": no_mechanisms_offered,
}

RULES = {
    "amqp10/F-TYPE-PHASE": frame_of_the_other_layer,
    "amqp10/SA-OK-HDR": no_header_after_the_outcome,
    "amqp10/SA-OK-HDR-EARLY": header_before_the_outcome,
    "amqp10/SA-FAIL-STOP": header_after_failure,
    "amqp10/SA-FRAME-512": frame_larger_than_512_octets,
    "amqp10/SA-FRAME-DOFF": frame_with_extended_header,
    "amqp10/SA-FRAME-BYTES67": frame_with_octets_6_and_7,
    "amqp10/SA-ROLE": role_reversed,
    "amqp10/SA-MECH-FIRST": first_frame_is_not_mechanisms,
    "amqp10/SA-INIT-AFTER": init_before_the_mechanisms,
    "amqp10/SA-INIT-OFFERED": mechanism_not_offered,
    "amqp10/SA-INIT-ONCE": second_init,
    "amqp10/SA-SEQ-CHAL": challenge_out_of_turn,
    "amqp10/SA-SEQ-INIT": success_before_init,
    "amqp10/SA-SEQ-RESP": response_without_challenge,
    "amqp10/SA-INIT-UNSUP": mechanism_accepted_that_was_not_offered,
    "amqp10/SA-FAIL-CLOSE": reset_after_failure,
    "amqp10/SA-SEQ-OUTCOME": frame_after_outcome,
    "amqp10/SA-OUTCOME-DATA": outcome_data_on_failure,
    "amqp10/SA-FRAME-EMPTY": empty_sasl_frame,
    "amqp10/SA-FRAME-BODY": sasl_frame_with_another_body,
    "amqp10/SA-MECH-NONEMPTY": no_mechanisms_offered,
}
