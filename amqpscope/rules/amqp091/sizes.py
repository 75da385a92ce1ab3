"""How large frames may be, and that they are whole (sections 4.2.1 to 4.2.3; tune and tune-ok)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.reaction import note_offence
from amqpscope.rules.declaration import Rules
from dissectors.wire import i64

__all__ = ["ALWAYS_TAKEN", "frame_cut_off", "judge_size"]

RULES: Final = Rules("amqp091/sizes")


ALWAYS_TAKEN: Final = 4096
"""Octets of a frame that every peer takes, whatever was agreed: frame-min-size."""

# RabbitMQ takes frames with so many octets of payload as a frame may have in all.
_TOLERATED: Final = 8

# While the connection is in one of these nothing is agreed yet.
_UNTUNED: Final = ("START", "HEADED", "STARTED", "ANSWERED", "CHALLENGED", "TUNED")


def judge_size(case: Case091, size: i64) -> None:
    """A frame of more than `ALWAYS_TAKEN` octets."""
    view = case.view
    agreed = view.agreed.frame_max
    if view.agreed.end < 0:
        if case.me.whole and view.state in _UNTUNED:
            frame_before_tuning(case, size)
    elif 0 < agreed < size:
        frame_too_large(case, size, agreed)


F_FRAME_SIZE: Final = RULES.rule("F-FRAME-SIZE", "MUST NOT", "tier A", answer="connection.close 501")


def frame_too_large(case: Case091, size: i64, agreed: i64) -> None:
    """A peer sends a frame that has more octets, header and end octet included, than the frame-max of tune-ok
    allows.

    Demands: No frame, counting header and end octet, is larger than the negotiated frame-max.
    Source: GS:4.2.3; XML:connection.tune-ok.frame-max (field doc)
    Evidence: frame-max from Tune/Tune-Ok (0 = unlimited); frame size + 8
    Why it matters: The receiver has no room for the frame and closes the connection with 501. RabbitMQ
    accepts eight octets more; RabbitMQ itself sends content headers of any size.
    Silent when: connection.tune-ok was not captured or sets no limit, or the frame has at most 4096 octets,
    which are always allowed. The finding is only possible when octets before the frame were not captured, or
    when the server may not have read connection.tune-ok. A frame that RabbitMQ accepts all the same is
    reported once.
    How to mend it: Split content bodies so that header, payload and end octet together fit into the
    negotiated frame-max: at most frame-max minus 8 octets of payload. Keep field tables small, because
    methods and content headers cannot be split.
    """
    me = case.me
    over = size - agreed
    message = f"a frame of {size} octets, allowed are {agreed}"
    evidence: dict[str, object] = {"size": int(size), "frame_max": int(agreed)}
    certainty = CERTAIN
    if not me.whole:
        certainty = POSSIBLE
    elif not me.by_client:
        certainty = me.knowledge.certainty(case.view.agreed.end)
    if over <= _TOLERATED and me.by_client and case.view.rabbitmq:
        message += ": RabbitMQ does not count the octets around the payload"
        case.report_once(F_FRAME_SIZE, message, certainty, evidence)
        return
    case.report(F_FRAME_SIZE, message, certainty, evidence)
    note_offence(case, "size")


F_PRETUNE_SIZE: Final = RULES.rule("F-PRETUNE-SIZE", "IMPLIED", "tier A", answer="connection.close 501")


def frame_before_tuning(case: Case091, size: i64) -> None:
    """A peer sends a frame of more than 4096 octets before connection.tune-ok has fixed how large frames
    may be.

    Demands: Before tuning is agreed a sender can only count on 4096-octet frames being accepted, so it sends
    none larger.
    Source: XML:connection.tune.frame-max.minimum; XML:connection.tune-ok.frame-max.minimum
    Evidence: frame sizes before Tune-Ok
    Why it matters: Until then no peer must accept more than 4096 octets. Mostly the frame is a start-ok with
    a large token; RabbitMQ accepts 8192 octets, or its configured size.
    Silent when: octets before the frame, or connection.tune-ok, were not captured.
    How to mend it: Keep frames before connection.tune-ok at 4096 octets or below. Shorten the
    client-properties or the authentication token in connection.start-ok, or let the broker accept larger
    frames until connection.tune-ok.
    """
    message = f"a frame of {size} octets before tune-ok; all that is sure to be taken is {ALWAYS_TAKEN}"
    case.report(F_PRETUNE_SIZE, message, CERTAIN, {"size": int(size)})


F_FRAME_TRUNCATED: Final = RULES.rule(
    "F-FRAME-TRUNCATED", "IMPLIED", "tier A", warning="The text implies it and names no error for it."
)


def frame_cut_off(case: Case091) -> None:
    """A peer ends its stream inside a frame.

    Demands: A sender finishes the frame it started before it closes its half of the socket.
    Source: GS:4.2.1; GS:4.2.3
    Evidence: FIN sequence number against frame parser position
    Why it matters: The content of the unfinished frame is lost. Mostly the sender of the frame has crashed.
    Silent when: the stream ends with a reset, or the capture ends first; the other peer had ended its stream
    before, or closed the connection; or octets before the frame were not captured.
    How to mend it: Write every frame that was started to its end octet before closing the socket, and send
    connection.close first. Look for a crash, a killed process or a write timeout in the sender.
    """
    case.report(F_FRAME_TRUNCATED, "the stream ends inside this frame")
