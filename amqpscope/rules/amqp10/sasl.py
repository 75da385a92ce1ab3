"""The SASL layer: who says what, in which order (security.xml, "sasl")."""

from amqpscope.model import CLIENT
from amqpscope.rules.case import Case
from amqpscope.tracking.knowledge import CERTAIN
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse

__all__ = ["judge_frame"]


def frame_of_the_other_layer(case: Case) -> None:
    """A SASL frame is sent where AMQP frames belong, or the reverse.

    Why it matters: each header opens one layer; the frames of another mean nothing in it.
    Silent when: the protocol header was not captured.
    """
    frame = case.record.frame
    layer = case.me.layer
    if not case.me.whole:
        return
    if frame.kind == "sasl" and layer == "AMQP 1.0":
        case.report(
            "amqp10/F-TYPE-PHASE", f"{frame.name} is sent after the AMQP header", CERTAIN, {"layer": layer}
        )
    elif frame.kind == "amqp" and layer == "SASL":
        case.report(
            "amqp10/F-TYPE-PHASE", f"{frame.name} is sent in the SASL layer", CERTAIN, {"layer": layer}
        )


def frame_too_large(case: Case) -> None:
    """A SASL frame has more than 512 octets.

    Why it matters: nothing larger is agreed before the open.
    Silent when: never.
    """
    size = case.record.frame.size
    if size > 512:
        case.report(
            "amqp10/SA-FRAME-512", f"the SASL frame has {size} octets", CERTAIN, {"frame_size": int(size)}
        )


def role_reversed(case: Case) -> None:
    """A SASL frame is sent by the peer that should receive it.

    Why it matters: the TCP client is the SASL client.
    Silent when: who opened the connection was not captured.
    """
    body = case.record.frame.body
    client = case.me.peer == CLIENT
    if isinstance(body, (SaslMechanisms, SaslChallenge, SaslOutcome)) == client:
        case.report("amqp10/SA-ROLE", f"{case.record.frame.name} is sent by the {case.me.peer}")


def mechanism_not_offered(case: Case, body: SaslInit) -> None:
    """sasl-init chooses a mechanism that the server did not offer.

    Why it matters: the server must refuse it.
    Silent when: the server's mechanisms were not captured.
    """
    offered = case.me.mechanisms
    if offered is None or offered.sasl_server_mechanisms is None or body.mechanism is None:
        return
    if body.mechanism not in offered.sasl_server_mechanisms:
        case.report(
            "amqp10/SA-INIT-OFFERED",
            "sasl-init chooses a mechanism that is not among those offered",
            CERTAIN,
            {"offered": [str(name) for name in offered.sasl_server_mechanisms[:16]]},
        )


def second_init(case: Case) -> None:
    """A client sends sasl-init twice.

    Why it matters: one exchange has one.
    Silent when: never; both are the client's own.
    """
    if case.me.init is not None:
        case.report("amqp10/SA-INIT-ONCE", "a second sasl-init is sent")


def outcome_data_on_failure(case: Case, body: SaslOutcome) -> None:
    """A failed outcome carries additional-data.

    Why it matters: it is part of a successful exchange only.
    Silent when: never.
    """
    if body.code is not None and body.code != 0 and body.additional_data is not None:
        case.report("amqp10/SA-OUTCOME-DATA", f"outcome {body.code} carries additional-data")


def frame_after_outcome(case: Case) -> None:
    """A SASL frame is sent after the outcome.

    Why it matters: the outcome ends the exchange.
    Silent when: never for the server; the client may not have read the outcome yet.
    """
    if case.me.peer != CLIENT and case.me.outcome is not None:
        case.report("amqp10/SA-SEQ-OUTCOME", f"{case.record.frame.name} is sent after the outcome")


def judge_frame(case: Case) -> None:
    """The rules about frames of the SASL layer."""
    frame_of_the_other_layer(case)
    if case.found > 0:
        return
    frame_too_large(case)
    body = case.record.frame.body
    if isinstance(body, (SaslMechanisms, SaslChallenge, SaslOutcome, SaslInit, SaslResponse)):
        role_reversed(case)
        frame_after_outcome(case)
    if isinstance(body, SaslInit):
        mechanism_not_offered(case, body)
        second_init(case)
    elif isinstance(body, SaslOutcome):
        outcome_data_on_failure(case, body)
