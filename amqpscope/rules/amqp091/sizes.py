"""How large frames may be, and that they are whole (sections 4.2.1 to 4.2.3; tune and tune-ok)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.reaction import note_offence
from dissectors.wire import i64

__all__ = ["ALWAYS_TAKEN", "frame_cut_off", "judge_size"]

ALWAYS_TAKEN: Final = 4096
"""Octets of a frame that every peer takes, whatever was agreed: frame-min-size."""

# RabbitMQ takes frames with so many octets of payload as a frame may have in all.
_TOLERATED: Final = 8

# While the connection is in one of these nothing is agreed yet.
_UNTUNED: Final = ("START", "HEADED", "STARTED", "ANSWERED", "CHALLENGED", "TUNED")


def judge_size(case: Case, size: i64) -> None:
    """A frame of more than `ALWAYS_TAKEN` octets."""
    view = case.view
    agreed = view.frame_max
    if view.tune_ok_end < 0:
        if case.me.whole and view.state in _UNTUNED:
            frame_before_tuning(case, size)
    elif 0 < agreed < size:
        frame_too_large(case, size, agreed)


def frame_too_large(case: Case, size: i64, agreed: i64) -> None:
    """A frame has more octets, those around its payload included, than tune-ok allows.

    Why it matters: the receiver has no room for it, and closes the connection with 501. RabbitMQ takes eight
    octets more; itself it sends content headers of any size.
    Silent when: tune-ok was not captured, or sets no limit; up to 4096 octets, which are always allowed.
    Possible when octets before it were not captured, or the server may not have read tune-ok. What RabbitMQ
    takes all the same is told once.
    """
    me = case.me
    over = size - agreed
    message = f"a frame of {size} octets, allowed are {agreed}"
    evidence: dict[str, object] = {"size": int(size), "frame_max": int(agreed)}
    certainty = CERTAIN
    if not me.whole:
        certainty = POSSIBLE
    elif not me.by_client:
        certainty = me.knowledge.certainty(case.view.tune_ok_end)
    if over <= _TOLERATED and me.by_client and case.view.rabbitmq:
        message += ": RabbitMQ does not count the octets around the payload"
        case.report_once("amqp091/F-FRAME-SIZE", message, certainty, evidence)
        return
    case.report("amqp091/F-FRAME-SIZE", message, certainty, evidence)
    note_offence(case, "F-FRAME-SIZE")


def frame_before_tuning(case: Case, size: i64) -> None:
    """A frame of more than 4096 octets is sent before tune-ok has agreed on how large they may be.

    Why it matters: until then no peer need take more. Mostly it is a start-ok with a large token.
    RabbitMQ takes 8192 octets, or as many as it is told to.
    Silent when: octets before it, or tune-ok, were not captured.
    """
    message = f"a frame of {size} octets before tune-ok; all that is sure to be taken is {ALWAYS_TAKEN}"
    case.report("amqp091/F-PRETUNE-SIZE", message, CERTAIN, {"size": int(size)})


def frame_cut_off(case: Case) -> None:
    """A peer ends its stream inside a frame.

    Why it matters: what the frame says is lost; mostly its sender broke down.
    Silent when: it ends with a reset, or the capture does; the other peer had ended its stream before, or
    closed the connection; or octets before it were not captured.
    """
    case.report("amqp091/F-FRAME-TRUNCATED", "the stream ends inside this frame")


RULES = {
    "amqp091/F-FRAME-SIZE": frame_too_large,
    "amqp091/F-PRETUNE-SIZE": frame_before_tuning,
    "amqp091/F-FRAME-TRUNCATED": frame_cut_off,
}
