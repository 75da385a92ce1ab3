"""The size of frames, and whether they are complete (sections 4.2.1 to 4.2.3; tune and tune-ok)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.reaction import note_violation
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.states import ANSWERED, CHALLENGED, HEADED, START, STARTED, TUNED
from dissectors.wire import i64

__all__ = ["ALWAYS_TAKEN", "frame_cut_off", "judge_size"]

RULES: Final = Rules("amqp091/sizes")


ALWAYS_TAKEN: Final = 4096
"""The size of a frame (octets) that every peer accepts, whatever was agreed: frame-min-size."""

# RabbitMQ accepts frames whose payload alone has frame-max octets.
_TOLERATED: Final = 8

# In these states of the connection, frame-max is not agreed yet.
_UNTUNED: Final = (START, HEADED, STARTED, ANSWERED, CHALLENGED, TUNED)


def judge_size(case: Case091, size: i64) -> None:
    """A frame of more than `ALWAYS_TAKEN` octets."""
    view = case.view
    agreed = view.agreed.frame_max
    if view.agreed.end < 0:
        if case.me.whole and view.state in _UNTUNED:
            frame_before_tuning(case, size)
    elif 0 < agreed < size:
        frame_too_large(case, size, agreed)


F_FRAME_SIZE: Final = RULES.rule(
    "F-FRAME-SIZE", "MUST NOT", "tier A", answer="connection.close 501", octets=True
)


def frame_too_large(case: Case091, size: i64, agreed: i64) -> None:
    """A peer sends a frame that is larger than the agreed frame-max.

    Demands: A frame, including its header and end octet, must not be larger than the agreed frame-max.
    Source: GS:4.2.3; XML:connection.tune-ok.frame-max (field doc)
    Evidence: the frame-max in connection.tune and connection.tune-ok (0 means no limit), and the size of the
    frame with header and end octet
    Why it matters: The receiver has no room for the frame and closes the connection with reply-code 501
    (frame-error). RabbitMQ accepts frames that exceed frame-max by up to eight octets, and itself sends
    content headers of any size.
    Silent when: connection.tune-ok was not captured or sets no limit, or when the frame has at most 4096
    octets, because a frame of this size is always allowed. The finding is reported as possible, not as
    certain, when the capture lacks octets before the frame, or when the server may not yet have read
    connection.tune-ok. If RabbitMQ accepts the frame although it is too large, the rule reports the fault
    only once per connection.
    How to mend it: Split content bodies so that each frame fits into the negotiated frame-max, including
    header and end octet. The payload of a frame has at most frame-max minus 8 octets. Keep field tables
    small, because methods and content headers cannot be split.
    """
    me = case.me
    over = size - agreed
    message = f"the frame has {size} octets, but frame-max is {agreed}"
    evidence: dict[str, object] = {"size": int(size), "frame_max": int(agreed)}
    certainty = CERTAIN
    if not me.whole:
        certainty = POSSIBLE
    elif not me.by_client:
        certainty = me.knowledge.certainty(case.view.agreed.end)
    if over <= _TOLERATED and me.by_client and case.view.rabbitmq:
        message += (
            "; RabbitMQ accepts the frame because RabbitMQ does not count the octets around the payload"
        )
        case.report_once(F_FRAME_SIZE, message, certainty, evidence)
        return
    case.report(F_FRAME_SIZE, message, certainty, evidence)
    note_violation(case, "size")


F_PRETUNE_SIZE: Final = RULES.rule(
    "F-PRETUNE-SIZE", "IMPLIED", "tier A", answer="connection.close 501", octets=True
)


def frame_before_tuning(case: Case091, size: i64) -> None:
    """A peer sends a frame of more than 4096 octets before connection.tune-ok.

    Demands: Before connection.tune-ok, a peer must not send a frame of more than 4096 octets.
    Source: XML:connection.tune.frame-max.minimum; XML:connection.tune-ok.frame-max.minimum
    Evidence: the sizes of the frames before connection.tune-ok
    Why it matters: Before connection.tune-ok, no peer has to accept frames of more than 4096 octets. Often
    the frame is a connection.start-ok with a large token. RabbitMQ accepts frames of up to 8192 octets, or up
    to the size that its configuration sets.
    Silent when: the capture lacks connection.tune-ok, or octets before the frame.
    How to mend it: Keep frames before connection.tune-ok at 4096 octets or below. Shorten the
    client-properties or the authentication token in connection.start-ok, or configure the broker to accept
    larger frames until connection.tune-ok.
    """
    message = f"the frame has {size} octets, but before connection.tune-ok only {ALWAYS_TAKEN} are allowed"
    case.report(F_PRETUNE_SIZE, message, CERTAIN, {"size": int(size)})


F_FRAME_TRUNCATED: Final = RULES.rule(
    "F-FRAME-TRUNCATED",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def frame_cut_off(case: Case091) -> None:
    """A peer ends its TCP stream inside a frame.

    Demands: A peer must finish every frame before it ends its stream.
    Source: GS:4.2.1; GS:4.2.3
    Evidence: the position of the FIN of TCP inside a frame
    Why it matters: The content of the unfinished frame is lost. Often the sender has crashed.
    Silent when: a reset ends the stream, or when the capture ends before the stream ends. The rule is also
    silent when the other peer had already ended its stream or closed the connection. The rule is also silent
    when the capture lacks octets before the frame.
    How to mend it: Write every frame completely, including its end octet. Send connection.close before you
    close the socket. Look for a crash, a killed process or a write timeout in the sender.
    """
    case.report(F_FRAME_TRUNCATED, "the TCP stream ends inside this frame")
