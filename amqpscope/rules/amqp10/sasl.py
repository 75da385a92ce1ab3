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
    """A SASL frame is sent where AMQP frames belong, or the reverse.

    Why it matters: each header opens one layer; the frames of another mean nothing in it.
    Silent when: octets since the protocol header, or that itself, were not captured.
    """
    frame = case.record.frame
    layer = case.me.layer
    where = "after the AMQP header" if frame.kind == "sasl" else "in the SASL layer"
    case.report("amqp10/F-TYPE-PHASE", f"{frame.name} is sent {where}", CERTAIN, {"layer": layer})


def no_header_after_the_outcome(case: Case) -> None:
    """After a successful outcome an AMQP frame is sent without a new protocol header, or SASL begins anew.

    Why it matters: the header of AMQP, or of TLS, opens the layer on top of SASL.
    Silent when: octets since the SASL header, or that itself, were not captured.
    """
    name = case.record.frame.name
    message = f"{name} is sent after the outcome without a protocol header"
    if name == "header":
        message = "the protocol header for SASL is sent again after the outcome"
    case.report("amqp10/SA-OK-HDR", message)


def header_before_the_outcome(case: Case) -> None:
    """The AMQP header is sent before the outcome of the SASL exchange could be known.

    Why it matters: what is pipelined behind an exchange that fails is read by nobody, or by the wrong layer.
    Silent when: octets of either peer were not captured.
    """
    case.report(
        "amqp10/SA-OK-HDR-EARLY", "the AMQP header is sent before the outcome of the SASL exchange is known"
    )


def header_after_failure(case: Case, code: int, certainty: int) -> None:
    """After an unsuccessful outcome an AMQP header is sent.

    Why it matters: a client that is not authenticated has no connection to open.
    Silent when: the outcome was not captured, or octets of the server's since: it may be another connection
    on the same ports. Of a client never more than possible: it may not have read it.
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

    Why it matters: nothing larger is agreed before the open.
    Silent when: not all of the frame was captured, and where it begins is a guess.
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
    """A SASL frame's data offset is not 2.

    Why it matters: nothing is defined to stand between header and body; it is skipped.
    Silent when: the frame was not captured whole.
    """
    if case.record.frame.extended_header:
        case.report("amqp10/SA-FRAME-DOFF", "octets stand between the SASL frame's header and its body")


def frame_with_octets_6_and_7(case: Case) -> None:
    """Octets 6 and 7 of a SASL frame are not zero.

    Why it matters: they are the channel of AMQP frames; in the SASL layer there is none.
    Silent when: the frame was not captured.
    """
    octets = case.record.frame.raw
    if len(octets) >= 8 and (octets[6] != 0 or octets[7] != 0):
        case.report("amqp10/SA-FRAME-BYTES67", "octets 6 and 7 of the SASL frame are not zero")


def role_reversed(case: Case) -> None:
    """A SASL frame is sent by the peer that should receive it.

    Why it matters: the TCP client is the SASL client.
    Silent when: who opened the connection was not captured.
    """
    case.report("amqp10/SA-ROLE", f"{case.record.frame.name} is sent by the {case.me.peer}")


def first_frame_is_not_mechanisms(case: Case) -> None:
    """The server's first SASL frame is not sasl-mechanisms.

    Why it matters: the client does not learn what it may choose.
    Silent when: octets of the server's were not captured.
    """
    me = case.me
    if me.mechanisms is None and me.whole:
        name = case.record.frame.name
        case.report("amqp10/SA-MECH-FIRST", f"{name} is sent before sasl-mechanisms")


def init_before_the_mechanisms(case: Case) -> None:
    """sasl-init is sent before the server's mechanisms could be known.

    Why it matters: it can only be guessed which of them the server takes.
    Silent when: octets of either peer were not captured.
    """
    if case.me.mechanisms is None and case.me.whole:
        case.report("amqp10/SA-INIT-AFTER", "sasl-init is sent before the server's mechanisms are received")


def mechanism_not_offered(case: Case, body: SaslInit) -> None:
    """sasl-init chooses a mechanism that the server did not offer.

    Why it matters: the server must refuse it.
    Silent when: the server's mechanisms were not captured.
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

    Why it matters: one exchange has one.
    Silent when: octets since the first were not captured.
    """
    if case.me.init is not None and case.me.whole:
        case.report("amqp10/SA-INIT-ONCE", "a second sasl-init is sent")


def challenge_out_of_turn(case: Case) -> None:
    """A server sends a challenge before it can have received the client's sasl-init.

    Why it matters: no mechanism has been chosen that it could belong to.
    Silent when: octets of either peer were not captured.
    """
    if case.me.init is None and case.me.whole:
        case.report("amqp10/SA-SEQ-CHAL", "a challenge is sent before the client's sasl-init is received")


def response_without_challenge(case: Case) -> None:
    """A client sends a response that answers no challenge.

    Why it matters: the server takes it for the answer to another one.
    Silent when: octets of either peer were not captured.
    """
    if case.me.challenges <= 0 and case.me.whole:
        case.report("amqp10/SA-SEQ-RESP", "a response is sent, but no challenge waits for one")


def mechanism_accepted_that_was_not_offered(case: Case) -> None:
    """A server goes on with a mechanism that it did not offer.

    Why it matters: it has to end the exchange; what is not offered may be what was switched off.
    Silent when: the server's mechanisms or the client's sasl-init were not captured.
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

    Why it matters: nobody has said who the client is, and with which mechanism: a login without one.
    Silent when: octets of either peer were not captured, or the outcome is a failure: a server may end the
    exchange at any time.
    """
    if case.me.init is None and case.me.whole:
        case.report("amqp10/SA-SEQ-INIT", "the outcome ok is sent before the client's sasl-init is received")


def outcome_data_on_failure(case: Case, body: SaslOutcome) -> None:
    """A failed outcome carries additional-data.

    Why it matters: it is part of a successful exchange only.
    Silent when: never.
    """
    if body.code is not None and body.code != 0 and body.additional_data is not None:
        case.report("amqp10/SA-OUTCOME-DATA", f"outcome {body.code} carries additional-data")


def frame_after_outcome(case: Case) -> None:
    """A server sends a SASL frame after the outcome.

    Why it matters: the outcome ends the exchange.
    Silent when: octets since the outcome were not captured.
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

    Why it matters: what the other side has not read yet, such as the outcome, may be lost.
    Silent when: the outcome was not captured, or the other side had ended its stream.
    Only possible because: Whose program or host reset it does not show.
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
    """A SASL frame has no body.

    Why it matters: in the SASL layer there are no heartbeats: it is a fatal error.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/SA-FRAME-EMPTY", problem)


def sasl_frame_with_another_body(case: Case, problem: Problem) -> None:
    """A SASL frame's body is not one of the five SASL values, or octets follow it.

    Why it matters: the exchange cannot go on.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/SA-FRAME-BODY", problem)


def no_mechanisms_offered(case: Case, problem: Problem) -> None:
    """sasl-mechanisms lists no mechanism.

    Why it matters: the client cannot choose one.
    Silent when: the frame was not captured whole.
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
