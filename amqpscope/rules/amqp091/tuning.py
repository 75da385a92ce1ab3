"""The agreed limits: the size of frames and the number of channels (tune, tune-ok).

The server proposes a limit, and the client accepts it or chooses a lower one. 0 means no limit (class
connection).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from dissectors.amqp091.methods import ConnectionTune, ConnectionTuneOk
from dissectors.wire import i64

__all__ = ["RULES", "judge_tune", "judge_tune_ok"]

RULES: Final = Rules("amqp091/tuning")


_FRAME_MIN: Final = 4096


C_TUNE_FRAMEMAX_MIN: Final = RULES.rule("C-TUNE-FRAMEMAX-MIN", "MUST", "tier A", by="server")


def offered_frame_max_too_small(case: Case091, frame_max: i64) -> None:
    """A server's connection.tune limits frames to less than 4096 octets.

    Demands: A frame-max in connection.tune must be 0 (no limit), or at least 4096.
    Source: XML:connection.tune.frame-max.minimum; XML constant frame-min-size
    Evidence: the frame-max in connection.tune
    Why it matters: Every peer must accept frames of 4096 octets. The client cannot work with a smaller limit
    and may end the connection.
    Silent when: connection.tune cannot be decoded.
    How to mend it: Set frame-max in connection.tune to 4096 or more, or to 0 for no limit. Check the
    configured value, which counts octets and not kilobytes.
    """
    case.report(
        C_TUNE_FRAMEMAX_MIN,
        f"frame-max is {frame_max}, below the minimum of {_FRAME_MIN}",
        evidence={"frame_max": int(frame_max)},
    )


C_TUNEOK_FRAMEMAX_MIN: Final = RULES.rule(
    "C-TUNEOK-FRAMEMAX-MIN",
    "MUST",
    "tier A",
    by="client",
    answer="to close the socket",
    broker_codes=(
        "530",
        "502",
    ),
)


def chosen_frame_max_too_small(case: Case091, frame_max: i64) -> None:
    """A client's connection.tune-ok limits frames to less than 4096 octets.

    Demands: A frame-max in connection.tune-ok must be 0 (no limit), or at least 4096.
    Source: XML:connection.tune-ok.frame-max.minimum
    Evidence: the frame-max in connection.tune-ok
    Why it matters: Every peer must accept frames of 4096 octets. Servers close the socket, so the client
    cannot connect.
    Silent when: connection.tune-ok cannot be decoded.
    How to mend it: Set frame-max in connection.tune-ok to at least 4096, and not above the server's limit
    from connection.tune. Check the value that the application configures for the connection.
    """
    case.report(
        C_TUNEOK_FRAMEMAX_MIN,
        f"frame-max is {frame_max}, below the minimum of {_FRAME_MIN}",
        evidence={"frame_max": int(frame_max)},
    )


C_TUNEOK_FRAMEMAX_LE: Final = RULES.rule(
    "C-TUNEOK-FRAMEMAX-LE",
    "IMPLIED",
    "tier A",
    by="client",
    answer="to close the socket",
    broker_codes=(
        "530",
        "502",
    ),
)


def chosen_frame_max_too_large(case: Case091, frame_max: i64, limit: i64) -> None:
    """A client's connection.tune-ok has a frame-max above the limit that the server has set in
    connection.tune.

    Demands: The frame-max in connection.tune-ok must not be above the server's limit in connection.tune.
    Source: XML:connection.tune-ok.frame-max.upper-limit; GS:2.3.3
    Evidence: the frame-max in connection.tune and in connection.tune-ok (0 means no limit)
    Why it matters: The client could send frames that the server does not accept, so the server drops the
    connection at once.
    Silent when: connection.tune was not captured, sets no limit, or sets a limit below 4096. The finding is
    reported as possible, not as certain, when the client sends the value 0 and the server is neither RabbitMQ
    nor LavinMQ. Some servers accept a frame-max of 0 as "no limit of the client", but RabbitMQ and LavinMQ
    refuse it.
    How to mend it: As frame-max in connection.tune-ok, take the smaller of the server's frame-max and
    the client's frame-max. If the client has no limit, send the server's frame-max.
    """
    _report_above_limit(case, C_TUNEOK_FRAMEMAX_LE, "frame-max", frame_max, limit)


C_TUNEOK_CHMAX_LE: Final = RULES.rule(
    "C-TUNEOK-CHMAX-LE", "IMPLIED", "tier A", by="client", answer="to close the socket", broker_codes=("530",)
)


def chosen_channel_max_too_large(case: Case091, channel_max: i64, limit: i64) -> None:
    """A client's connection.tune-ok has a channel-max above the limit that the server has set in
    connection.tune.

    Demands: The channel-max in connection.tune-ok must not be above the server's limit in connection.tune.
    Source: XML:connection.tune-ok.channel-max.upper-limit; XML assert le tune.channel-max
    Evidence: the channel-max in connection.tune and in connection.tune-ok (0 means no limit)
    Why it matters: The client could open more channels than the server allows, so the server drops the
    connection at once.
    Silent when: connection.tune was not captured or sets no limit. The finding is reported as possible, not
    as certain, when the client sends the value 0 and the server is neither RabbitMQ nor LavinMQ. Some servers
    accept a channel-max of 0 as "no limit of the client", but RabbitMQ and LavinMQ refuse it.
    How to mend it: As channel-max in connection.tune-ok, take the smaller of the server's channel-max
    and the client's channel-max. If the client has no limit, send the server's channel-max.
    """
    _report_above_limit(case, C_TUNEOK_CHMAX_LE, "channel-max", channel_max, limit)


def _report_above_limit(case: Case091, rule: str, name: str, chosen: i64, limit: i64) -> None:
    """Report that the client chose more than the server's limit; 0 means no limit."""
    certainty = CERTAIN if chosen > 0 or case.view.rabbitmq else POSSIBLE
    shown = str(chosen) if chosen > 0 else "0 (no limit)"
    evidence: dict[str, object] = {name.replace("-", "_"): int(chosen), "limit": int(limit)}
    case.report(
        rule, f"the client's {name} {shown} is above the server's limit of {limit}", certainty, evidence
    )


C_TUNEOK_CHMAX_NOTNULL: Final = RULES.rule(
    "C-TUNEOK-CHMAX-NOTNULL",
    "IMPLIED",
    "tier B",
    by="client",
    note="Two passages of the specification disagree.",
)


def no_channel_max(case: Case091) -> None:
    """A client leaves channel-max at 0 in connection.tune-ok, as the server did in connection.tune.

    Demands: The channel-max in connection.tune-ok must not be "null".
    Source: XML:connection.tune-ok.channel-max assert notnull
    Evidence: a channel-max of 0 in connection.tune-ok
    Why it matters: The specification forbids a channel-max of "null". Most peers understand 0 as "no limit",
    that is, 65535 channels.
    Silent when: the server has set a limit in connection.tune. If the server has set a limit, another rule
    (amqp091/C-TUNEOK-CHMAX-LE) reports the channel-max of 0.
    Only possible because: The specification does not say whether 0 counts as "null".
    How to mend it: Set channel-max in connection.tune-ok to the number of channels that the client needs at
    most, for example 2047, or to 65535 for all channel numbers.
    """
    case.report(
        C_TUNEOK_CHMAX_NOTNULL, "channel-max of connection.tune-ok is 0, but must be above 0", POSSIBLE
    )


def judge_tune(case: Case091, method: ConnectionTune) -> None:
    """The server's proposal."""
    if 0 < method.frame_max < _FRAME_MIN:
        offered_frame_max_too_small(case, method.frame_max)


def judge_tune_ok(case: Case091, method: ConnectionTuneOk) -> None:
    """The client's choice."""
    view = case.view
    limit = view.proposed.frame_max
    if 0 < method.frame_max < _FRAME_MIN:
        chosen_frame_max_too_small(case, method.frame_max)
    elif (
        limit >= _FRAME_MIN and method.frame_max >= 0 and (method.frame_max == 0 or method.frame_max > limit)
    ):
        chosen_frame_max_too_large(case, method.frame_max, limit)
    limit = view.proposed.channel_max
    if limit > 0 and method.channel_max >= 0 and (method.channel_max == 0 or method.channel_max > limit):
        chosen_channel_max_too_large(case, method.channel_max, limit)
    elif limit == 0 and method.channel_max == 0:
        no_channel_max(case)
