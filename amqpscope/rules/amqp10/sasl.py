"""The SASL layer: its frames, their senders and their order (security.xml, "sasl").

The order is that of the table `states.SASL`. A frame without a cell there is a fault; the state says which.
"""

from collections.abc import Sequence
from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.amqp10.connection import frame_before_header
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.sasl_exchange import SASL_CODES, sasl_input
from amqpscope.tracking.amqp10.states import (
    ACCEPTED,
    ACCEPTED_EARLY,
    CHOSEN,
    CHOSEN_EARLY,
    CLIENT_HEADER,
    ENDED,
    REFUSED,
    REFUSED_EARLY,
    SASL,
    SERVER_HEADER,
    START,
)
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse

__all__ = ["judge_amqp_frame", "judge_frame", "judge_header", "reset_after_failure"]

RULES: Final = Rules("amqp10/sasl")


_UNNAMED: Final = {"empty": "an empty frame", "undecodable": "an undecodable frame"}


def _frame(name: str) -> str:
    """A frame by its name, as the subject of a message."""
    return _UNNAMED.get(name, name)


def _code(code: int) -> str:
    """The code of a sasl-outcome with its name, such as `1 (auth)`."""
    return f"{code} ({SASL_CODES[code]})" if code in SASL_CODES else str(code)


# The states of the table, by what an endpoint knows in them.
_WITHOUT_MECHANISMS: Final = (START, CHOSEN_EARLY)
_WITH_INIT: Final = (CHOSEN, CHOSEN_EARLY, ACCEPTED, REFUSED)
_WITH_SUCCESS: Final = (ACCEPTED, ACCEPTED_EARLY)
_WITH_FAILURE: Final = (REFUSED, REFUSED_EARLY)
_WITH_OUTCOME: Final = (*_WITH_SUCCESS, *_WITH_FAILURE, ENDED)


F_TYPE_PHASE: Final = RULES.rule(
    "F-TYPE-PHASE", "MUST", "definition", usual_answer="amqp:connection:framing-error"
)


def frame_of_the_other_layer(case: Case10) -> None:
    """A peer sends a SASL frame where AMQP frames belong, or an AMQP frame where SASL frames belong.

    Demands: AMQP frames must come after an AMQP header, and SASL frames must come between a SASL header
    and the sasl-outcome. AMQP frames and SASL frames must never mix.
    Source: transport.xml section framing; security.xml section sasl > SASL Frames
    Evidence: the frame type, and the last protocol header in that direction
    Why it matters: Each protocol header opens one layer, and frames of another layer have no meaning in this
    layer. The receiver may close the connection with amqp:connection:framing-error.
    Silent when: the protocol header was not captured, or when the capture lacks octets that were sent after
    the protocol header.
    How to mend it: Send SASL frames only between the SASL header and the sasl-outcome. Send AMQP frames
    only after you have sent the AMQP header, and set the type octet of each frame accordingly.
    """
    frame = case.record.frame
    layer = case.me.layer
    where = "in the SASL layer, where only SASL frames may come"
    if frame.kind == "sasl":
        where = "after the AMQP header, where only AMQP frames may come"
    case.report(F_TYPE_PHASE, f"the peer sends {_frame(frame.name)} {where}", CERTAIN, {"layer": layer})


SA_OK_HDR: Final = RULES.rule("SA-OK-HDR", "MUST", "lower-case")


def no_header_after_the_outcome(case: Case10) -> None:
    """After a successful sasl-outcome, a peer sends an AMQP frame without a new protocol header, or begins
    the SASL negotiation again.

    Demands: After a successful sasl-outcome, both peers must first send a new protocol header, with protocol
    id 0 for AMQP or 2 for TLS.
    Source: security.xml section sasl > sasl-outcome
    Evidence: the first octets after the sasl-outcome in each direction
    Why it matters: The protocol header opens the AMQP layer on top of SASL. Without this header, the receiver
    cannot interpret the frame and may close the connection.
    Silent when: the SASL header, or octets since the SASL header, were not captured.
    How to mend it: After a sasl-outcome with the code `ok`, send the AMQP protocol header before you send
    open.
    """
    name = case.record.frame.name
    message = f"the peer sends {_frame(name)} after the sasl-outcome, but has to send the AMQP header first"
    if name == "header":
        message = (
            "the peer sends the protocol header for SASL again after the sasl-outcome, instead of the "
            "header for AMQP or TLS"
        )
    case.report(SA_OK_HDR, message)


SA_OK_HDR_EARLY: Final = RULES.rule(
    "SA-OK-HDR-EARLY",
    "MAY-limits",
    "definition",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
)


def header_before_the_outcome(case: Case10) -> None:
    """A peer sends the AMQP header before it can know the outcome of the SASL negotiation.

    Demands: A peer may send the AMQP header only after a successful sasl-outcome. The specification does not
    provide for an earlier AMQP header.
    Source: security.xml section sasl; security.xml sasl-outcome
    Evidence: the order of the AMQP header and the sasl-outcome
    Why it matters: If the SASL negotiation fails, the other peer never reads the early AMQP header, or reads
    this header in the wrong layer.
    Silent when: octets of either peer were not captured.
    How to mend it: Wait for a sasl-outcome with the code `ok` before you send the AMQP header. If you are the
    server, send sasl-outcome before your AMQP header.
    """
    case.report(
        SA_OK_HDR_EARLY, "the peer sends the AMQP header before the outcome of the SASL negotiation is known"
    )


SA_FAIL_STOP: Final = RULES.rule("SA-FAIL-STOP", "MUST NOT", "definition")


def header_after_failure(case: Case10, certainty: int) -> None:
    """A peer sends an AMQP header after an unsuccessful sasl-outcome.

    Demands: After an unsuccessful sasl-outcome, no peer may start an AMQP layer on the connection.
    Source: security.xml section security-layers; security.xml section sasl > sasl-outcome
    Evidence: octets after a sasl-outcome whose code is not 0
    Why it matters: A client that is not authenticated must not open an AMQP connection. A server that
    continues after the failure may admit this client.
    Silent when: the sasl-outcome was not captured. The rule is also silent when the capture lacks octets that
    the server sent after the sasl-outcome, because a new connection may use the same ports. The finding is
    reported as possible, not as certain, when the client sends the header, because the client may not yet
    have read the sasl-outcome.
    How to mend it: Check the code of the sasl-outcome. If the code is not `ok`, send no protocol header. Shut
    down your outgoing stream, read until the other peer ends its stream, and then close the socket.
    """
    outcome = case.me.sasl.outcome
    code = 0 if outcome is None or outcome.code is None else outcome.code
    case.report(
        SA_FAIL_STOP,
        f"the peer sends the AMQP header after an unsuccessful sasl-outcome with code {_code(code)}",
        certainty,
        {"outcome_code": code},
    )


def judge_header(case: Case10, body: ProtocolHeader) -> None:
    """Judge a protocol header after a SASL exchange."""
    me = case.me
    if me.layer != "SASL":
        return
    state = me.sasl.state
    client = me.peer == CLIENT
    if body.protocol() == "SASL":
        if me.whole and state in _WITH_SUCCESS:
            no_header_after_the_outcome(case)
    elif SASL.allows(state, CLIENT_HEADER if client else SERVER_HEADER) or state == ACCEPTED_EARLY:
        return  # an early success is a success, and is already reported
    elif state not in _WITH_FAILURE:
        if me.whole:
            header_before_the_outcome(case)
    elif client or me.whole:
        header_after_failure(case, POSSIBLE if client else CERTAIN)


def judge_amqp_frame(case: Case10) -> None:
    """Judge an AMQP frame in the SASL layer."""
    me = case.me
    if not me.whole or case.record.frame.name.startswith("sasl-"):
        return
    if me.sasl.state in _WITH_SUCCESS:
        no_header_after_the_outcome(case)
    else:
        frame_of_the_other_layer(case)


SA_FRAME_512: Final = RULES.rule(
    "SA-FRAME-512", "MUST", "definition", usual_answer="amqp:connection:framing-error", octets=True
)


def frame_larger_than_512_octets(case: Case10) -> None:
    """A peer sends a SASL frame of more than 512 octets.

    Demands: A SASL frame must not have more than 512 octets.
    Source: security.xml section sasl > SASL Frames; transport.xml section definitions > MIN-MAX-FRAME-SIZE
    Evidence: the size of the SASL frame
    Why it matters: Before the peers exchange open frames, they have not agreed on a larger frame size. The
    receiver may treat the frame as an error and close the connection.
    Silent when: a part of the frame was not captured, and amqpscope had to guess where the frame starts.
    How to mend it: Keep every SASL frame within 512 octets. Shorten mechanism lists, initial responses and
    challenges, or choose a mechanism whose data fits. Do not rely on receivers that accept larger frames.
    """
    frame = case.record.frame
    size = frame.size
    if frame.missing > 0 and not frame.guessed:
        size = frame.declared_size
    if size > case.least_max_frame_size:
        case.report(
            SA_FRAME_512,
            f"the SASL frame has {size} octets, but the limit is {case.least_max_frame_size}",
            CERTAIN,
            {"frame_size": int(size)},
        )


SA_FRAME_DOFF: Final = RULES.rule("SA-FRAME-DOFF", "SHOULD", "keyword", octets=True)


def frame_with_extended_header(case: Case10) -> None:
    """A peer sends a SASL frame whose data offset is not 2.

    Demands: The data offset of a SASL frame should be 2.
    Source: security.xml section sasl > SASL Frames
    Evidence: the data offset in octet 4 of the SASL frame
    Why it matters: No specification defines octets between the header and the body of a SASL frame. The
    receiver skips octets between header and body, so the content of these octets is lost.
    Silent when: a part of the frame was not captured.
    How to mend it: Write the value 2 into the data offset (octet 4) of every SASL frame and start the body at
    octet 8.
    """
    if case.record.frame.extended_header:
        case.report(
            SA_FRAME_DOFF,
            "the SASL frame has octets between its header and its body, so its data offset is not 2",
        )


SA_FRAME_BYTES67: Final = RULES.rule("SA-FRAME-BYTES67", "SHOULD", "keyword", octets=True)


def frame_with_octets_6_and_7(case: Case10) -> None:
    """A peer sends a SASL frame whose octets 6 and 7 are not zero.

    Demands: Octets 6 and 7 of a SASL frame should be zero.
    Source: security.xml section sasl > SASL Frames
    Evidence: octets 6 and 7 of the SASL frame
    Why it matters: In AMQP frames, octets 6 and 7 hold the channel. SASL frames have no channel, so a strict
    receiver may refuse the frame.
    Silent when: the frame was not captured.
    How to mend it: Write zero into octets 6 and 7 of every SASL frame. Clear the frame buffer before you fill
    in the header.
    """
    octets = case.record.frame.raw
    if len(octets) >= 8 and (octets[6] != 0 or octets[7] != 0):
        case.report(SA_FRAME_BYTES67, "octets 6 and 7 of the SASL frame are not zero")


SA_ROLE: Final = RULES.rule("SA-ROLE", "MUST", "keyword")


def role_reversed(case: Case10) -> None:
    """A peer sends a SASL frame that only the other peer may send.

    Demands: The TCP client must act as SASL client and the TCP server as SASL server.
    Source: security.xml section sasl > SASL Negotiation
    Evidence: the direction of each SASL frame
    Why it matters: With reversed roles, the SASL negotiation cannot succeed.
    Silent when: the capture does not show which peer opened the connection.
    How to mend it: As the peer that opened the TCP connection, send only sasl-init and sasl-response. As
    the peer that accepted the TCP connection, send only sasl-mechanisms, sasl-challenge and sasl-outcome.
    """
    case.report(
        SA_ROLE, f"the {case.me.peer} sends {case.record.frame.name}, which only the other peer may send"
    )


SA_MECH_FIRST: Final = RULES.rule("SA-MECH-FIRST", "MUST", "lower-case", by="server")


def first_frame_is_not_mechanisms(case: Case10) -> None:
    """The first SASL frame that a server sends is not sasl-mechanisms.

    Demands: The first SASL frame of the server must be sasl-mechanisms.
    Source: security.xml section sasl > SASL Negotiation
    Evidence: the first SASL frame of the server
    Why it matters: The client does not learn which mechanisms it may choose, so the client may choose a wrong
    mechanism.
    Silent when: octets of the server were not captured.
    How to mend it: Send sasl-mechanisms directly after the SASL header. Send no sasl-challenge and no
    sasl-outcome before sasl-mechanisms.
    """
    case.report(SA_MECH_FIRST, f"the peer sends {case.record.frame.name} before sasl-mechanisms")


SA_INIT_AFTER: Final = RULES.rule("SA-INIT-AFTER", "MUST", "lower-case", by="client")


def init_before_the_mechanisms(case: Case10) -> None:
    """A client sends sasl-init before it can know the mechanisms of the server.

    Demands: The client may send sasl-init only after the server's sasl-mechanisms.
    Source: security.xml section sasl > SASL Negotiation
    Evidence: the order of sasl-mechanisms and sasl-init
    Why it matters: The client can only guess which mechanisms the server accepts. After a wrong guess, the
    authentication fails.
    Silent when: octets of either peer were not captured.
    How to mend it: Wait for sasl-mechanisms, choose one of the listed mechanisms, and send sasl-init
    afterwards. Do not send sasl-init together with the SASL header.
    """
    case.report(
        SA_INIT_AFTER,
        "the client sends sasl-init before the client has received the server's sasl-mechanisms",
    )


def _contains(names: Sequence[str], name: str) -> bool:
    """Whether a name is among others. A byte order mark, a fault of its own, makes no other name of it."""
    plain = name.removeprefix("\ufeff")
    return any(one.removeprefix("\ufeff") == plain for one in names)


def _readable(names: Sequence[str]) -> bool:
    """Whether these can be names of mechanisms, which are ASCII (RFC 4422, section 3.1).

    In the draft of April 2011 they are strings: a wrong format code makes another, legal one of the octets.
    """
    return all(name.removeprefix("\ufeff").isascii() for name in names)


SA_INIT_OFFERED: Final = RULES.rule("SA-INIT-OFFERED", "MUST", "lower-case", by="client")


def mechanism_not_offered(case: Case10, body: SaslInit) -> None:
    """In sasl-init, a client chooses a mechanism that the server did not offer.

    Demands: The client must choose one of the offered mechanisms.
    Source: security.xml section sasl > SASL Negotiation
    Evidence: the mechanism of sasl-init, and the list in sasl-mechanisms
    Why it matters: The server must refuse the mechanism, so the authentication fails and the connection ends.
    Silent when: the mechanisms of the server were not captured or cannot be read, or when another rule
    reports the sasl-init.
    How to mend it: Choose a mechanism that you support and that the list in sasl-mechanisms contains. If you
    support none of the offered mechanisms, report an error and close the connection. If the mechanism comes
    from a configuration, check whether the server has disabled this mechanism.
    """
    offered = case.me.sasl.mechanisms
    if offered is None or offered.sasl_server_mechanisms is None or body.mechanism is None:
        return
    if not case.me.legible or case.found > 0 or not _readable(offered.sasl_server_mechanisms):
        return
    if not _contains(offered.sasl_server_mechanisms, body.mechanism) and offered.sasl_server_mechanisms:
        case.report(
            SA_INIT_OFFERED,
            "sasl-init chooses a mechanism that the server did not offer",
            CERTAIN,
            {"offered": [str(name) for name in offered.sasl_server_mechanisms[:16]]},
        )


SA_INIT_ONCE: Final = RULES.rule("SA-INIT-ONCE", "MUST", "definition", by="client")


def second_init(case: Case10) -> None:
    """A client sends sasl-init twice.

    Demands: A SASL negotiation must have only one sasl-init.
    Source: security.xml section sasl > SASL Negotiation (exchange figure)
    Evidence: a second sasl-init
    Why it matters: The server cannot tell which mechanism applies and may close the connection.
    Silent when: the capture lacks octets that were sent after the first sasl-init.
    How to mend it: Send sasl-init once per connection. To try another mechanism or other credentials, open a
    new connection. After sasl-init, send further data of the chosen mechanism in a sasl-response.
    """
    case.report(SA_INIT_ONCE, "the peer sends a second sasl-init")


SA_SEQ_CHAL: Final = RULES.rule("SA-SEQ-CHAL", "MUST", "definition", by="server")


def challenge_out_of_turn(case: Case10) -> None:
    """A server sends a sasl-challenge before it can have received the client's sasl-init.

    Demands: A sasl-challenge must come after sasl-init and before the sasl-outcome.
    Source: security.xml section sasl > SASL Negotiation (exchange figure)
    Evidence: the order of the SASL frames
    Why it matters: The client has not chosen a mechanism yet, so the challenge belongs to no mechanism and
    the client cannot answer it.
    Silent when: octets of either peer were not captured.
    How to mend it: Wait for sasl-init before you send a sasl-challenge. Create the challenge for the
    mechanism that sasl-init names.
    """
    case.report(
        SA_SEQ_CHAL, "the server sends a sasl-challenge before the server has received the client's sasl-init"
    )


SA_SEQ_RESP: Final = RULES.rule("SA-SEQ-RESP", "MUST", "definition", by="client")


def response_without_challenge(case: Case10) -> None:
    """A client sends a sasl-response that answers no sasl-challenge.

    Demands: Each sasl-response must answer one sasl-challenge that has no answer yet.
    Source: security.xml section sasl > SASL Negotiation (exchange figure)
    Evidence: the order and number of challenges and responses
    Why it matters: The server treats the response as the answer to another challenge, so the authentication
    fails.
    Silent when: octets of either peer were not captured.
    How to mend it: Send exactly one sasl-response for each sasl-challenge. Put the first data of the
    mechanism into the initial-response field of sasl-init, not into a sasl-response.
    """
    if case.me.sasl.challenges <= 0 and case.me.whole:
        case.report(SA_SEQ_RESP, "the peer sends a sasl-response that answers no sasl-challenge")


SA_INIT_UNSUP: Final = RULES.rule("SA-INIT-UNSUP", "MUST", "keyword", by="server")


def mechanism_accepted_that_was_not_offered(case: Case10) -> None:
    """A client chooses a SASL mechanism that the server did not offer, and the server accepts the mechanism.

    Demands: A server that does not support the client's mechanism must end the SASL negotiation with an
    authentication failure, and close the connection.
    Source: security.xml section sasl > sasl-init.mechanism
    Evidence: the code of the sasl-outcome, and the FIN
    Why it matters: The server must end the SASL negotiation. A mechanism that the server did not offer may
    have been disabled on purpose, for example because the mechanism is insecure.
    Silent when: the mechanisms of the server or the client's sasl-init were not captured or cannot be read.
    How to mend it: Compare the mechanism in sasl-init with the list that you sent in sasl-mechanisms. If the
    list does not contain the mechanism, end the SASL negotiation with an authentication failure and close the
    connection.
    """
    me = case.me
    offered = me.sasl.mechanisms
    body = case.record.frame.body
    if me.sasl.init is None or offered is None or not offered.sasl_server_mechanisms:
        return
    if me.sasl.init.mechanism is None or not me.legible:
        return
    if not _readable((*offered.sasl_server_mechanisms, me.sasl.init.mechanism)):
        return
    if _contains(offered.sasl_server_mechanisms, me.sasl.init.mechanism):
        return
    if isinstance(body, SaslOutcome) and body.code != 0:
        return
    case.report(
        SA_INIT_UNSUP,
        f"the server sends {case.record.frame.name} instead of an authentication failure, although the "
        "client chose a mechanism that the server did not offer",
        CERTAIN,
        {"offered": [str(name) for name in offered.sasl_server_mechanisms[:16]]},
    )


SA_SEQ_INIT: Final = RULES.rule("SA-SEQ-INIT", "MUST", "definition", by="server")


def success_before_init(case: Case10) -> None:
    """A server sends a successful sasl-outcome before it can have received the client's sasl-init.

    Demands: A successful sasl-outcome must come after the client's sasl-init.
    Source: security.xml section sasl > SASL Negotiation (exchange figure)
    Evidence: the order of sasl-init and sasl-outcome
    Why it matters: The client has sent neither its identity nor its mechanism. The server accepts a login
    that did not take place.
    Silent when: octets of either peer were not captured. The rule is also silent when the sasl-outcome
    reports a failure, because a server may report a failure at any time.
    How to mend it: Send a sasl-outcome with the code `ok` only after you have received sasl-init and checked
    the credentials in sasl-init.
    """
    case.report(
        SA_SEQ_INIT,
        "the server sends a sasl-outcome with the code `ok` before the server has received the client's "
        "sasl-init",
    )


SA_OUTCOME_DATA: Final = RULES.rule("SA-OUTCOME-DATA", "MUST NOT", "definition", by="server")


def outcome_data_on_failure(case: Case10, body: SaslOutcome) -> None:
    """A server sends an unsuccessful sasl-outcome that carries additional-data.

    Demands: Only a successful sasl-outcome (code 0) may have additional-data.
    Source: security.xml section sasl > sasl-outcome.additional-data
    Evidence: a sasl-outcome with additional-data and a code other than 0
    Why it matters: The field additional-data is only for an authentication that succeeds. A client may
    ignore the field or treat the frame as an error.
    Silent when: never.
    How to mend it: If the code of the sasl-outcome is not `ok`, leave additional-data null.
    """
    if body.code is not None and body.code != 0 and body.additional_data is not None:
        case.report(
            SA_OUTCOME_DATA,
            f"a sasl-outcome with code {_code(body.code)} carries additional-data, which only "
            "a sasl-outcome with code 0 may carry",
        )


SA_SEQ_OUTCOME: Final = RULES.rule("SA-SEQ-OUTCOME", "MUST", "definition", by="server")


def frame_after_outcome(case: Case10) -> None:
    """A server sends a SASL frame after the sasl-outcome.

    Demands: The sasl-outcome must be the last frame of the SASL negotiation.
    Source: security.xml section sasl > SASL Negotiation (exchange figure)
    Evidence: SASL frames after the sasl-outcome
    Why it matters: The client expects a protocol header or the end of the stream and may close the
    connection.
    Silent when: the capture lacks octets that were sent after the sasl-outcome.
    How to mend it: Send sasl-outcome as the last SASL frame of the connection. If the mechanism has final
    data for the client after a successful authentication, put this data into additional-data of the
    sasl-outcome.
    """
    case.report(
        SA_SEQ_OUTCOME,
        f"the peer sends {case.record.frame.name} after the sasl-outcome, which must be the last SASL frame",
    )


def judge_frame(case: Case10) -> None:
    """Judge a frame of the SASL layer."""
    me = case.me
    body = case.record.frame.body
    if me.whole and me.layer == "AMQP 1.0":
        frame_of_the_other_layer(case)
        return
    if me.whole and me.layer == "" and me.stream.frames == 0:
        frame_before_header(case)
        return
    frame_larger_than_512_octets(case)
    frame_with_extended_header(case)
    frame_with_octets_6_and_7(case)
    spoken = sasl_input(body)
    if spoken and spoken.startswith("C") != (me.peer == CLIENT):
        role_reversed(case)
        return
    illegal = me.whole and not SASL.allows(me.sasl.state, spoken)
    if isinstance(body, SaslInit):
        _judge_init(case, body, illegal)
    elif isinstance(body, SaslResponse):
        response_without_challenge(case)
    elif spoken:
        _judge_server(case, body, illegal)


def _judge_init(case: Case10, body: SaslInit, illegal: bool) -> None:
    """Judge a client's sasl-init. illegal: the table has no cell for it."""
    state = case.me.sasl.state
    if illegal and state in _WITH_INIT:
        second_init(case)
    if illegal and state in _WITHOUT_MECHANISMS:
        init_before_the_mechanisms(case)
    mechanism_not_offered(case, body)


def _judge_server(case: Case10, body: object, illegal: bool) -> None:
    """Judge a server's SASL frame. illegal: the table has no cell for it."""
    me = case.me
    state = me.sasl.state
    found = case.found
    if illegal and state in _WITH_OUTCOME:
        frame_after_outcome(case)
    if isinstance(body, SaslOutcome):
        outcome_data_on_failure(case, body)
    if case.found != found or isinstance(body, SaslMechanisms):
        return
    if illegal and state in _WITHOUT_MECHANISMS:
        first_frame_is_not_mechanisms(case)
    elif illegal and isinstance(body, SaslChallenge):
        challenge_out_of_turn(case)
    elif illegal:
        success_before_init(case)
    elif me.whole:
        mechanism_accepted_that_was_not_offered(case)


SA_FAIL_CLOSE: Final = RULES.rule(
    "SA-FAIL-CLOSE", "MUST", "keyword", warning="A capture can suggest this fault but never prove it."
)


def reset_after_failure(case: Case10) -> None:
    """A peer resets the connection after an unsuccessful sasl-outcome.

    Demands: When a security layer ends, each peer must first end its own outgoing stream, and then read until
    the other peer ends its stream.
    Source: security.xml section security-layers
    Evidence: the order of FIN and RST after the end of the SASL layer
    Why it matters: Data that the other peer has not read yet may be lost, for example the sasl-outcome. The
    client then sees a broken connection instead of an authentication failure.
    Silent when: the sasl-outcome was not captured, or when the other peer had already ended its stream.
    Only possible because: The capture does not show which program or host reset the connection.
    How to mend it: After an unsuccessful sasl-outcome, shut down the outgoing stream first. Afterwards, read
    until the other peer ends its stream, and then close the socket. Closing a socket with unread data causes
    a reset.
    """
    outcome = case.me.sasl.outcome
    if outcome is not None and outcome.code is not None and outcome.code != 0:
        case.report(
            SA_FAIL_CLOSE,
            "the peer resets the connection after an unsuccessful sasl-outcome with code "
            f"{_code(outcome.code)}, instead of reading until the other peer ends its stream",
            POSSIBLE,
            {"outcome_code": outcome.code},
        )


SA_FRAME_EMPTY: Final = RULES.rule("SA-FRAME-EMPTY", "illegal", "wording", proved="certain")
"""A peer sends a SASL frame without a body.

Demands: A SASL frame must have a body. An empty SASL frame is a fatal error.
Source: security.xml section sasl > SASL Frames
Evidence: a SASL frame without a body
Why it matters: The SASL layer has no heartbeats, so an empty SASL frame is a fatal error. The other peer ends
the connection.
Silent when: a part of the frame was not captured.
How to mend it: Do not start heartbeats before the AMQP layer is open. Send a SASL frame only if the frame
carries one of the five SASL performatives.
"""


SA_FRAME_BODY: Final = RULES.rule("SA-FRAME-BODY", "MUST", "lower-case", proved="certain")
"""A peer sends a SASL frame whose body does not begin with one of the five SASL performatives, or continues
after the performative.

Demands: The body of a SASL frame must be exactly one SASL performative.
Source: security.xml section sasl > SASL Frames
Evidence: the descriptor (0x40 to 0x44), and octets after the performative
Why it matters: The receiver cannot interpret the frame, so the SASL negotiation cannot continue and no
connection is opened.
Silent when: a part of the frame was not captured.
How to mend it: Encode exactly one of sasl-mechanisms, sasl-init, sasl-challenge, sasl-response or
sasl-outcome in each SASL frame. Set the frame size so that the frame ends with its performative.
"""


SA_MECH_NONEMPTY: Final = RULES.rule(
    "SA-MECH-NONEMPTY", "MUST", "wording", by="server", proved="certain", octets=False
)
"""A server sends sasl-mechanisms without any mechanism.

Demands: The list of mechanisms in sasl-mechanisms must be neither null nor empty.
Source: security.xml section sasl > sasl-mechanisms
Evidence: the first element of sasl-mechanisms
Why it matters: The client cannot choose a mechanism, so it cannot authenticate and no connection is opened.
Silent when: a part of the frame was not captured.
How to mend it: List at least one mechanism in sasl-mechanisms. Offer `ANONYMOUS` if no authentication is
needed. Check the configuration of the server if the list of enabled mechanisms is empty.
"""
