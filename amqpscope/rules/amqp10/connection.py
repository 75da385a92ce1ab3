"""Connections: headers, opens, limits agreed, closes (transport.xml, "connections")."""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case
from dissectors.amqp10.performatives import Close, Open
from dissectors.amqp10.registry import MIN_MAX_FRAME_SIZE
from dissectors.amqp10.values import Map, UInt
from dissectors.wire import i64

__all__ = ["frame_before_header", "judge_any", "judge_close", "judge_open", "speaks_the_draft"]


def frame_before_header(case: Case) -> None:
    """A peer sent a frame before its protocol header.

    Why it matters: the other side cannot know which protocol, and which version, the octets are.
    Silent when: the start of its stream was not captured.
    """
    case.report("amqp10/C-HDR-FIRST", f"{case.record.frame.name} is sent before a protocol header")


def first_frame_is_not_open(case: Case) -> None:
    """A peer's first frame after the AMQP header is not open.

    Why it matters: the open carries the limits that every other frame depends on.
    Silent when: the start of its stream was not captured.
    """
    case.report("amqp10/C-OPEN-FIRST", f"{case.record.frame.name} is sent before open", CERTAIN, _state(case))


def close_before_open(case: Case) -> None:
    """A peer sends close before its own open.

    Why it matters: also a peer that refuses the other one's open says who it is first.
    Silent when: the start of its stream was not captured.
    """
    case.report(
        "amqp10/C-CLOSE-AFTEROPEN", "close is sent before the sender's own open", CERTAIN, _state(case)
    )


def empty_frame_before_open(case: Case) -> None:
    """A peer sends an empty frame before its own open.

    Why it matters: heartbeats belong to an open connection; the first frame is the open.
    Silent when: the start of its stream was not captured.
    """
    case.report("amqp10/C-EMPTY-AFTEROPEN", "an empty frame is sent before the sender's own open")


def _judge_before_open(case: Case) -> bool:
    """The rules about a frame before the sender's open; True if it broke one."""
    me = case.me
    if not me.whole or me.closed:
        return False
    frame = case.record.frame
    name = frame.name
    if me.layer == "":
        frame_before_header(case)
    elif me.layer != "AMQP 1.0" or name == "open" or (frame.problems and frame.garbled()):
        # Which performative a garbled frame was to be is not sure.
        return False
    elif name == "close":
        close_before_open(case)
    elif name == "empty":
        empty_frame_before_open(case)
    else:
        first_frame_is_not_open(case)
    return True


def frame_after_close(case: Case) -> None:
    """A peer wrote a frame after its close.

    Why it matters: the close is the last frame on a connection; what follows may never be read.
    Silent when: never; both frames are the peer's own. Possible when octets since the close were not
    captured: the connection may have been begun anew.
    Possible because: Octets are missing: among them may be that the connection was begun anew.
    """
    me = case.me
    if me.closed:
        name = case.record.frame.name
        what = "a second close" if name == "close" else name
        case.report(
            "amqp10/C-CLOSE-LAST",
            f"{what} is sent after close (packet {me.close_packet})",
            CERTAIN if me.close_stands else POSSIBLE,
            _state(case),
            [int(me.close_packet)],
        )


def frame_larger_than_agreed(case: Case, size: i64, limit: int) -> None:
    """A frame is larger than the max-frame-size of the peer's open.

    Why it matters: the receiver must close the connection with framing-error. The header tells: it is wrong
    before the frame is there.
    Silent when: the peer's open was not captured; or not all of the frame was, and where it begins is a
    guess.
    """
    what = "has" if case.record.frame.missing == 0 else "has by its header"
    case.report(
        "amqp10/C-MAXFRAME",
        f"the frame {what} {size} octets, the peer's max-frame-size is {limit}",
        CERTAIN,
        {"frame_size": int(size), "max_frame_size": limit},
        [int(case.me.peer_open_packet)],
    )


def open_larger_than_512_octets(case: Case, size: i64) -> None:
    """An open sent before the peer's has more than 512 octets.

    Why it matters: before any limit is agreed a peer need not take more.
    Silent when: the peer's open may have been received, or octets of either peer were not captured.
    """
    message = f"an open of {size} octets is sent before the peer's, at most {MIN_MAX_FRAME_SIZE} may be"
    case.report("amqp10/C-OPEN-SIZE", message, CERTAIN, {"frame_size": int(size)})


def pipelined_frame_larger_than_512_octets(case: Case, size: i64) -> None:
    """A frame sent before the peer's open was received has more than 512 octets.

    Why it matters: before any limit is agreed a peer need not take more.
    Silent when: the peer's open may have been received, or octets of either peer were not captured.
    """
    message = f"{size} octets are sent before the peer's open, at most {MIN_MAX_FRAME_SIZE} may be"
    case.report("amqp10/C-PIPE-SIZE", message, CERTAIN, {"frame_size": int(size)})


def _judge_size(case: Case, size: i64) -> None:
    me = case.me
    if size <= MIN_MAX_FRAME_SIZE:
        return
    theirs = me.peer_open
    if theirs is not None:
        limit = theirs.max_frame_size
        if limit is not None and MIN_MAX_FRAME_SIZE <= limit < size:
            # Without the peer's open the limit would have been smaller still.
            frame_larger_than_agreed(case, size, limit)
    elif me.whole and me.layer == "AMQP 1.0":
        if case.record.frame.name == "open":
            open_larger_than_512_octets(case, size)
        else:
            pipelined_frame_larger_than_512_octets(case, size)


def channel_beyond_agreed(case: Case, limit: int) -> None:
    """A frame uses a channel above the peer's channel-max.

    Why it matters: the receiver must close the connection with framing-error.
    Silent when: the peer's open was not captured.
    """
    channel = case.record.frame.channel
    case.report(
        "amqp10/C-CHMAX",
        f"channel {channel} is used, the peer's channel-max is {limit}",
        CERTAIN,
        {"channel": int(channel), "channel_max": limit},
        [int(case.me.peer_open_packet)],
    )


def pipelined_frame_off_channel_0(case: Case) -> None:
    """A frame sent before the peer's open was received uses another channel than 0.

    Why it matters: before any limit is agreed a peer need not know more channels.
    Silent when: the peer's open may have been received, octets of either peer were not captured, or the
    frame is on a session whose begin was found already.
    """
    channel = case.record.frame.channel
    message = f"channel {channel} is used before the peer's open; only channel 0 may be"
    case.report("amqp10/C-PIPE-CHANNEL", message, CERTAIN, {"channel": int(channel)})


def pipelined_close_off_channel_0(case: Case) -> None:
    """A close sent before the peer's open was received uses another channel than 0.

    Why it matters: before any limit is agreed a peer need not know more channels.
    Silent when: the peer's open may have been received, or octets of either peer were not captured.
    """
    channel = case.record.frame.channel
    message = f"close is sent on channel {channel} before the peer's open; only channel 0 may be used"
    case.report("amqp10/C-CLOSE-CH0-PIPE", message, CERTAIN, {"channel": int(channel)})


def pipelined_empty_frame_off_channel_0(case: Case) -> None:
    """An empty frame sent before the peer's open was received uses another channel than 0.

    Why it matters: before any limit is agreed a peer need not know more channels.
    Silent when: the peer's open may have been received, or octets of either peer were not captured.
    """
    channel = case.record.frame.channel
    message = f"an empty frame is sent on channel {channel} before the peer's open"
    case.report("amqp10/C-EMPTY-CH0-PRE", message, CERTAIN, {"channel": int(channel)})


def empty_frame_off_channel_0(case: Case) -> None:
    """An empty frame is sent on a channel other than 0.

    Why it matters: it is only a heartbeat; its channel is ignored, and a limit might be hit.
    Silent when: the peer's open was not captured: before it, it would be worse.
    """
    case.report("amqp10/C-EMPTY-CH0", f"an empty frame is sent on channel {case.record.frame.channel}")


def open_off_channel_0(case: Case) -> None:
    """open is sent on a channel other than 0.

    Why it matters: before the open no other channel is agreed.
    Silent when: never.
    """
    case.report("amqp10/C-OPEN-CH0", f"open is sent on channel {case.record.frame.channel}")


def close_off_channel_0(case: Case) -> None:
    """close is sent on a channel other than 0.

    Why it matters: it may be read on any, but channel 0 is always within the limits.
    Silent when: the peer's open was not captured: before it, it would be worse.
    """
    case.report("amqp10/C-CLOSE-CH0", f"close is sent on channel {case.record.frame.channel}")


def _judge_channel(case: Case) -> bool:
    """The rules about a channel other than 0; True if it is none that the peer knows."""
    me = case.me
    name = case.record.frame.name
    if name == "open":
        open_off_channel_0(case)
        return False
    theirs = me.peer_open
    if theirs is not None:
        limit = theirs.channel_max
        if limit is not None and case.record.frame.channel > limit:
            channel_beyond_agreed(case, limit)
            return True
    elif me.whole and me.layer == "AMQP 1.0":
        if name == "empty":
            pipelined_empty_frame_off_channel_0(case)
        elif name == "close":
            pipelined_close_off_channel_0(case)
        elif name == "begin" or int(case.record.frame.channel) not in me.sessions:
            pipelined_frame_off_channel_0(case)
        return False
    if theirs is not None:
        if name == "empty":
            empty_frame_off_channel_0(case)
        elif name == "close":
            close_off_channel_0(case)
    return False


def judge_any(case: Case) -> bool:
    """The rules about every AMQP frame. False if after that no inner layer can make sense of it."""
    me = case.me
    frame = case.record.frame
    if me.closed:
        frame_after_close(case)
        return False
    if me.open is None and _judge_before_open(case):
        return False
    if frame.missing == 0:
        _judge_size(case, frame.size)
    elif not frame.guessed:
        # Its header tells it, whatever of it was captured, or sent.
        _judge_size(case, frame.declared_size)
    return frame.channel <= 0 or not _judge_channel(case)


def second_open(case: Case) -> None:
    """A peer sends open twice.

    Why it matters: the limits of a connection are said once.
    Silent when: octets since the first were not captured: the connection may have been closed and begun anew.
    """
    me = case.me
    if me.open is not None and me.whole:
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


def locale_that_is_no_language_tag(case: Case, body: Open) -> None:
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


def other_host_than_in_sasl(case: Case, body: Open) -> None:
    """A client's open names another host than its sasl-init.

    Why it matters: the server chose by the first name whom to authenticate, and by the second what to open.
    Silent when: either names none, or the sasl-init was not captured.
    """
    me = case.me
    init = me.init
    if me.peer != CLIENT or init is None or init.hostname is None or body.hostname is None:
        return
    if init.hostname.lower() != body.hostname.lower():
        case.report("amqp10/C-OPEN-HOST", "open.hostname is another than that of sasl-init")


def speaks_the_draft(case: Case, body: Open) -> bool:
    """A peer announces AMQP 1.0 and speaks the draft of April 2011: each of its lists begins with `options`.

    Why it matters: the draft has the same protocol header; all its fields stand one place further on, and
    nothing that it says means what it is read as.
    Silent when: the open fits the final text, or does not fit the draft either. What the peer says after it
    is not judged.
    Only possible because: There were other drafts.
    """
    odd = body.odd
    if odd is None or body.container_id is not None or body.hostname is None:
        return False
    options = odd.get(0)
    if options is not None and not isinstance(options, Map):
        return False
    # What the final text has there are numbers: max-frame-size and a channel-max of two octets.
    signs = (
        int(isinstance(options, Map)) + int(isinstance(odd.get(2), str)) + int(isinstance(odd.get(3), UInt))
    )
    if signs < 2:
        return False
    case.me.draft = True
    case.report(
        "amqp10/C-DIALECT-1239",
        "the open is that of the draft of April 2011: its fields stand one place further on",
        POSSIBLE,
        {"signs": signs},
    )
    return True


def judge_open(case: Case, body: Open) -> None:
    """The rules about open."""
    second_open(case)
    max_frame_size_below_the_floor(case, body)
    locale_that_is_no_language_tag(case, body)
    other_host_than_in_sasl(case, body)


def redirect_without_address(case: Case, body: Close) -> None:
    """A close redirects the peer, and does not say where to.

    Why it matters: without hostname, network-host and port the peer cannot follow.
    Silent when: never.
    """
    error = body.error
    if error is None or error.condition != "amqp:connection:redirect":
        return
    keys = [] if error.info is None else [str(key) for key, _ in error.info.pairs]
    if "hostname" not in keys or "network-host" not in keys or "port" not in keys:
        case.report(
            "amqp10/C-REDIRECT-INFO",
            "amqp:connection:redirect lacks hostname, network-host or port in its info",
            CERTAIN,
            {"entries": len(keys)},
        )


def judge_close(case: Case, body: Close) -> None:
    """The rules about close."""
    redirect_without_address(case, body)


def _state(case: Case) -> dict[str, object]:
    return {"connection_state": case.me.state}


RULES = {
    "amqp10/C-HDR-FIRST": frame_before_header,
    "amqp10/C-OPEN-FIRST": first_frame_is_not_open,
    "amqp10/C-CLOSE-AFTEROPEN": close_before_open,
    "amqp10/C-EMPTY-AFTEROPEN": empty_frame_before_open,
    "amqp10/C-CLOSE-LAST": frame_after_close,
    "amqp10/C-MAXFRAME": frame_larger_than_agreed,
    "amqp10/C-OPEN-SIZE": open_larger_than_512_octets,
    "amqp10/C-PIPE-SIZE": pipelined_frame_larger_than_512_octets,
    "amqp10/C-CHMAX": channel_beyond_agreed,
    "amqp10/C-PIPE-CHANNEL": pipelined_frame_off_channel_0,
    "amqp10/C-CLOSE-CH0-PIPE": pipelined_close_off_channel_0,
    "amqp10/C-EMPTY-CH0-PRE": pipelined_empty_frame_off_channel_0,
    "amqp10/C-EMPTY-CH0": empty_frame_off_channel_0,
    "amqp10/C-OPEN-CH0": open_off_channel_0,
    "amqp10/C-CLOSE-CH0": close_off_channel_0,
    "amqp10/C-OPEN-ONCE": second_open,
    "amqp10/C-MAXFRAME-FLOOR": max_frame_size_below_the_floor,
    "amqp10/C-LOCALE-TAG": locale_that_is_no_language_tag,
    "amqp10/C-DIALECT-1239": speaks_the_draft,
    "amqp10/C-OPEN-HOST": other_host_than_in_sasl,
    "amqp10/C-REDIRECT-INFO": redirect_without_address,
}
