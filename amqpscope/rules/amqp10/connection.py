"""Connections: headers, opens, limits agreed, closes (transport.xml, "connections")."""

from amqpscope.rules.case import Case
from amqpscope.tracking.knowledge import CERTAIN
from dissectors.amqp10.performatives import Close, Open
from dissectors.amqp10.registry import MIN_MAX_FRAME_SIZE

__all__ = ["idle_too_long", "judge_any", "judge_close", "judge_open"]


def frame_before_header(case: Case) -> None:
    """A peer sent a frame before its protocol header.

    Why it matters: the other side cannot know which protocol, and which version, the octets are.
    Silent when: the start of its stream was not captured.
    """
    me = case.me
    if me.whole and me.layer == "":
        case.report("amqp10/C-HDR-FIRST", f"{case.record.frame.name} is sent before a protocol header")


def first_frame_is_not_open(case: Case) -> None:
    """A peer's first frame after the AMQP header is not open.

    Why it matters: the open carries the limits that every other frame depends on.
    Silent when: the start of its stream was not captured.
    """
    me = case.me
    if not me.whole or me.open is not None or me.closed or me.layer != "AMQP 1.0":
        return
    name = case.record.frame.name
    if name == "close":
        case.report(
            "amqp10/C-CLOSE-AFTEROPEN", "close is sent before the sender's own open", CERTAIN, _state(case)
        )
    elif name == "empty":
        case.report("amqp10/C-EMPTY-AFTEROPEN", "an empty frame is sent before the sender's own open")
    elif name not in ("open", "undecodable"):
        case.report("amqp10/C-OPEN-FIRST", f"{name} is sent before open", CERTAIN, _state(case))


def frame_after_close(case: Case) -> None:
    """A peer wrote a frame after its close.

    Why it matters: the close is the last frame on a connection; what follows may never be read.
    Silent when: never; both frames are the peer's own.
    """
    me = case.me
    if me.closed:
        name = case.record.frame.name
        what = "a second close" if name == "close" else name
        case.report(
            "amqp10/C-CLOSE-LAST",
            f"{what} is sent after close (packet {me.close_packet})",
            CERTAIN,
            _state(case),
            [int(me.close_packet)],
        )


def frame_larger_than_agreed(case: Case) -> None:
    """A frame is larger than the max-frame-size of the peer's open.

    Why it matters: the receiver must close the connection with framing-error.
    Silent when: the peer's open was not captured, or the sender could not have known it; then the 512
    octets every peer takes are the limit.
    """
    me = case.me
    size = case.record.frame.size
    if size <= MIN_MAX_FRAME_SIZE:
        return
    theirs = me.peer_open
    if theirs is None:
        if me.whole and case.peer.whole and me.layer == "AMQP 1.0":
            rule = "amqp10/C-OPEN-SIZE" if case.record.frame.name == "open" else "amqp10/C-PIPE-SIZE"
            message = f"{size} octets are sent before the peer's open, at most {MIN_MAX_FRAME_SIZE} may be"
            case.report(rule, message, CERTAIN, {"frame_size": int(size)})
        return
    limit = theirs.max_frame_size
    if limit is None or size <= limit or limit < MIN_MAX_FRAME_SIZE:
        return
    # Without the peer's open the limit would have been smaller still.
    message = f"the frame has {size} octets, the peer's max-frame-size is {limit}"
    evidence: dict[str, object] = {"frame_size": int(size), "max_frame_size": limit}
    case.report("amqp10/C-MAXFRAME", message, CERTAIN, evidence, [int(me.peer_open_packet)])


def channel_beyond_agreed(case: Case) -> None:
    """A frame uses a channel above the peer's channel-max, or, before its open, one other than 0.

    Why it matters: the receiver must close the connection with framing-error.
    Silent when: the peer's open was not captured.
    """
    me = case.me
    channel = case.record.frame.channel
    if channel <= 0:
        return
    theirs = me.peer_open
    name = case.record.frame.name
    if theirs is None:
        if me.whole and case.peer.whole and me.layer == "AMQP 1.0" and name != "open":
            rule = "amqp10/C-PIPE-CHANNEL"
            if name == "empty":
                rule = "amqp10/C-EMPTY-CH0-PRE"
            message = f"channel {channel} is used before the peer's open; only channel 0 may be"
            case.report(rule, message, CERTAIN, {"channel": int(channel)})
        return
    limit = theirs.channel_max
    if limit is not None and channel > limit:
        message = f"channel {channel} is used, the peer's channel-max is {limit}"
        evidence: dict[str, object] = {"channel": int(channel), "channel_max": limit}
        case.report("amqp10/C-CHMAX", message, CERTAIN, evidence, [int(me.peer_open_packet)])


def empty_frame_off_channel_0(case: Case) -> None:
    """An empty frame is sent on a channel other than 0.

    Why it matters: it is only a heartbeat; its channel is ignored, and a limit might be hit.
    Silent when: never.
    """
    frame = case.record.frame
    if frame.name == "empty" and frame.kind == "amqp" and frame.channel > 0 and case.me.peer_open is not None:
        case.report("amqp10/C-EMPTY-CH0", f"an empty frame is sent on channel {frame.channel}")


def idle_too_long(case: Case) -> None:
    """A peer was silent for longer than the other one's idle-time-out.

    Why it matters: the other side may take the connection for dead and close it.
    Silent when: the other side's open was not captured, or octets may be missing. A tenth of the
    time-out, at least 100 ms, is allowed for the way between the peer and the capture.
    """
    me = case.me
    theirs = me.peer_open
    if theirs is None or not theirs.idle_time_out or not me.whole:
        return
    since = max(me.last_time, me.peer_open_time)
    silence = case.record.time - since
    limit = theirs.idle_time_out * 1_000_000
    tolerance = max(limit // 10, 100_000_000)
    if silence > limit + tolerance:
        case.report(
            "amqp10/C-IDLE-KEEP",
            f"{silence / 1_000_000_000:.3f} s without a frame, the peer's idle-time-out is "
            f"{theirs.idle_time_out / 1000:g} s",
            CERTAIN,
            {"silence_ms": int(silence // 1_000_000), "idle_time_out_ms": theirs.idle_time_out},
            [int(me.last_packet), int(me.peer_open_packet)],
        )


def judge_any(case: Case) -> None:
    """The rules about every frame that is not of the SASL layer."""
    frame = case.record.frame
    if frame.kind != "amqp":
        return
    me = case.me
    if me.closed:
        frame_after_close(case)
        return
    if me.open is None:
        frame_before_header(case)
        first_frame_is_not_open(case)
    if frame.missing == 0:
        frame_larger_than_agreed(case)
    if frame.channel > 0:
        channel_beyond_agreed(case)
        empty_frame_off_channel_0(case)


def open_on_another_channel(case: Case) -> None:
    """open is sent on a channel other than 0.

    Why it matters: before the open no other channel is agreed.
    Silent when: never.
    """
    channel = case.record.frame.channel
    if channel > 0:
        case.report("amqp10/C-OPEN-CH0", f"open is sent on channel {channel}")


def second_open(case: Case) -> None:
    """A peer sends open twice.

    Why it matters: the limits of a connection are said once.
    Silent when: never; both are the peer's own.
    """
    me = case.me
    if me.open is not None:
        case.report(
            "amqp10/C-OPEN-ONCE",
            f"a second open is sent, the first was in packet {me.open_packet}",
            CERTAIN,
            _state(case),
            [int(me.open_packet)],
        )


def max_frame_size_below_the_floor(case: Case, body: Open) -> None:
    """open announces a max-frame-size below 512.

    Why it matters: every peer must take 512 octets; a peer that keeps to less cannot send its open.
    Silent when: never.
    """
    size = body.max_frame_size
    if size is not None and size < MIN_MAX_FRAME_SIZE:
        case.report("amqp10/C-MAXFRAME-FLOOR", f"max-frame-size is {size}", CERTAIN, {"max_frame_size": size})


def locale_with_odd_tag(case: Case, body: Open) -> None:
    """A locale is not a language tag of BCP 47.

    Why it matters: `en_US` is what libraries call it, the tag is `en-US`.
    Silent when: never.
    """
    for tags in (body.outgoing_locales, body.incoming_locales):
        if tags is not None:
            for tag in tags:
                if not tag or not tag.replace("-", "").isalnum() or not tag[:1].isalpha():
                    case.report("amqp10/C-LOCALE-TAG", "a locale is no BCP 47 language tag")
                    return


def judge_open(case: Case, body: Open) -> None:
    """The rules about open."""
    open_on_another_channel(case)
    second_open(case)
    max_frame_size_below_the_floor(case, body)
    locale_with_odd_tag(case, body)


def close_on_another_channel(case: Case) -> None:
    """close is sent on a channel other than 0.

    Why it matters: it may be read on any, but channel 0 is always within the limits.
    Silent when: never.
    """
    channel = case.record.frame.channel
    if channel > 0:
        case.report("amqp10/C-CLOSE-CH0", f"close is sent on channel {channel}")


def judge_close(case: Case, body: Close) -> None:
    """The rules about close."""
    if not case.me.closed:
        close_on_another_channel(case)


def _state(case: Case) -> dict[str, object]:
    return {"connection_state": case.me.state}


RULES = {
    "amqp10/C-HDR-FIRST": frame_before_header,
    "amqp10/C-OPEN-FIRST": first_frame_is_not_open,
    "amqp10/C-CLOSE-AFTEROPEN": first_frame_is_not_open,
    "amqp10/C-EMPTY-AFTEROPEN": first_frame_is_not_open,
    "amqp10/C-CLOSE-LAST": frame_after_close,
    "amqp10/C-MAXFRAME": frame_larger_than_agreed,
    "amqp10/C-OPEN-SIZE": frame_larger_than_agreed,
    "amqp10/C-PIPE-SIZE": frame_larger_than_agreed,
    "amqp10/C-CHMAX": channel_beyond_agreed,
    "amqp10/C-PIPE-CHANNEL": channel_beyond_agreed,
    "amqp10/C-EMPTY-CH0-PRE": channel_beyond_agreed,
    "amqp10/C-EMPTY-CH0": empty_frame_off_channel_0,
    "amqp10/C-OPEN-CH0": open_on_another_channel,
    "amqp10/C-OPEN-ONCE": second_open,
    "amqp10/C-MAXFRAME-FLOOR": max_frame_size_below_the_floor,
    "amqp10/C-LOCALE-TAG": locale_with_odd_tag,
    "amqp10/C-CLOSE-CH0": close_on_another_channel,
    "amqp10/C-IDLE-KEEP": idle_too_long,
}
