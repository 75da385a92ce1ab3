"""What is agreed on: how large a frame may be, and how many channels there may be (tune, tune-ok).

The server proposes, and the client takes that or less. 0 is no limit (class connection).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from dissectors.amqp091.methods import ConnectionTune, ConnectionTuneOk
from dissectors.wire import i64

__all__ = ["RULES", "judge_tune", "judge_tune_ok"]

_FRAME_MIN: Final = 4096


def offered_frame_max_too_small(case: Case, frame_max: i64) -> None:
    """The server's tune limits frames to less than 4096 octets.

    Why it matters: every peer must take frames of 4096 octets; the client cannot work with less.
    Silent when: tune does not decode.
    """
    case.report(
        "amqp091/C-TUNE-FRAMEMAX-MIN",
        f"frame-max {frame_max} is below {_FRAME_MIN}",
        evidence={"frame_max": int(frame_max)},
    )


def chosen_frame_max_too_small(case: Case, frame_max: i64) -> None:
    """The client's tune-ok limits frames to less than 4096 octets.

    Why it matters: every peer must take frames of 4096 octets; servers hang up.
    Silent when: tune-ok does not decode.
    """
    case.report(
        "amqp091/C-TUNEOK-FRAMEMAX-MIN",
        f"frame-max {frame_max} is below {_FRAME_MIN}",
        evidence={"frame_max": int(frame_max)},
    )


def chosen_frame_max_too_large(case: Case, frame_max: i64, limit: i64) -> None:
    """The client's frame-max is above the limit that the server has set.

    Why it matters: the client may send frames that the server does not take; it hangs up at once.
    Silent when: tune was not captured, or sets no limit. Possible when the client says 0, which some read as
    no limit of its own, and the server is neither RabbitMQ nor LavinMQ, which refuse that.
    """
    certainty = CERTAIN if frame_max > 0 or case.view.rabbitmq else POSSIBLE
    said = str(frame_max) if frame_max > 0 else "0 (no limit)"
    case.report(
        "amqp091/C-TUNEOK-FRAMEMAX-LE",
        f"frame-max {said} is above the server's {limit}",
        certainty,
        {"frame_max": int(frame_max), "limit": int(limit)},
    )


def chosen_channel_max_too_large(case: Case, channel_max: i64, limit: i64) -> None:
    """The client's channel-max is above the limit that the server has set.

    Why it matters: the client may open channels that the server does not grant; it hangs up at once.
    Silent when: tune was not captured, or sets no limit. Possible when the client says 0, which some read as
    no limit of its own, and the server is neither RabbitMQ nor LavinMQ, which refuse that.
    """
    certainty = CERTAIN if channel_max > 0 or case.view.rabbitmq else POSSIBLE
    said = str(channel_max) if channel_max > 0 else "0 (no limit)"
    case.report(
        "amqp091/C-TUNEOK-CHMAX-LE",
        f"channel-max {said} is above the server's {limit}",
        certainty,
        {"channel_max": int(channel_max), "limit": int(limit)},
    )


def no_channel_max(case: Case) -> None:
    """The client leaves channel-max at 0, as the server did.

    Why it matters: the specification wants a value; most take 0 for as many as there are numbers.
    Silent when: the server has set a limit: then 0 is above it.
    Only possible because: Whether 0 is no value the specification does not say.
    """
    case.report("amqp091/C-TUNEOK-CHMAX-NOTNULL", "channel-max is 0", POSSIBLE)


def judge_tune(case: Case, method: ConnectionTune) -> None:
    """The server's proposal."""
    if 0 < method.frame_max < _FRAME_MIN:
        offered_frame_max_too_small(case, method.frame_max)


def judge_tune_ok(case: Case, method: ConnectionTuneOk) -> None:
    """The client's choice."""
    view = case.view
    limit = view.tune_frame_max
    if 0 < method.frame_max < _FRAME_MIN:
        chosen_frame_max_too_small(case, method.frame_max)
    elif limit > 0 and method.frame_max >= 0 and (method.frame_max == 0 or method.frame_max > limit):
        chosen_frame_max_too_large(case, method.frame_max, limit)
    limit = view.tune_channel_max
    if limit > 0 and method.channel_max >= 0 and (method.channel_max == 0 or method.channel_max > limit):
        chosen_channel_max_too_large(case, method.channel_max, limit)
    elif limit == 0 and method.channel_max == 0:
        no_channel_max(case)


RULES = {
    "amqp091/C-TUNE-FRAMEMAX-MIN": offered_frame_max_too_small,
    "amqp091/C-TUNEOK-FRAMEMAX-MIN": chosen_frame_max_too_small,
    "amqp091/C-TUNEOK-FRAMEMAX-LE": chosen_frame_max_too_large,
    "amqp091/C-TUNEOK-CHMAX-LE": chosen_channel_max_too_large,
    "amqp091/C-TUNEOK-CHMAX-NOTNULL": no_channel_max,
}
