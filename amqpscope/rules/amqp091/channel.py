"""Channels: how they are closed, and which methods are allowed on them until then.

Sources: the grammar of the class channel, channel.open, channel.close (amqp0-9-1.xml), sections 2.2.5 and
2.3.7 of the general specification.
"""

from typing import Final

from amqpscope.limits import MAX_CLOSE_UNANSWERED
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.channel_open import judge_open
from amqpscope.rules.amqp091.channel_state import closing_of, is_answered, state_of
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.closing import CloseReason
from amqpscope.tracking.amqp091.endpoint import ALL
from amqpscope.tracking.amqp091.states import (
    BOTH_CLOSE,
    CHANNEL,
    CLIENT_CLOSE_OK,
    CLIENT_CLOSES,
    OPEN,
    OPENING,
    SERVER_CLOSE_OK,
    SERVER_CLOSES,
)
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicAck,
    BasicDeliver,
    BasicPublish,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionCloseOk,
)
from dissectors.amqp091.reply_code import reply_code
from dissectors.wire import i64

__all__ = ["judge_end", "judge_state"]

RULES: Final = Rules("amqp091/channel")


# The constants of the class "soft-error", RabbitMQ's among them, and that of a normal close.
_SOFT: Final = (200, 311, 312, 313, 403, 404, 405, 406)


def _what(case: Case091) -> str:
    return f"the peer sends {case.name} on channel {case.record.frame.channel}"


# Before it is open


CH_OPEN_FIRST: Final = RULES.rule("CH-OPEN-FIRST", "IMPLIED", "tier A", answer="connection.close 504")


def said_before_open(case: Case091) -> None:
    """A peer sends a method on a channel that is not open yet: a client before channel.open, or a server
    before channel.open-ok.

    Demands: A peer must open a channel before it sends anything else on that channel.
    Source: G:channel; GS:2.2.5; XML constant channel-error
    Evidence: the state of the channel (open or not)
    Why it matters: The method belongs to no channel. The specification tells the receiver to close the
    connection, which also ends all other channels.
    Silent when: the capture lacks the start of the connection or any octets after the start. The rule is also
    silent after the peer has sent a method on a channel that does not exist, and reports the fault only once
    per channel.
    How to mend it: In a client, send channel.open before any other method on the channel number. In a server,
    send channel.open-ok before any other method, and use only channel numbers that the client has opened.
    """
    why = "which is not open" if case.channel is None else "for which channel.open-ok has not been sent yet"
    case.report(CH_OPEN_FIRST, f"{_what(case)}, {why}", CERTAIN, state_of(case))
    case.mislay(ALL)


# When it is closed


CH_CLOSE_SILENT: Final = RULES.rule("CH-CLOSE-SILENT", "IMPLIED", "tier A", answer="connection.close 504")


def said_after_own_close(case: Case091, closing: CloseReason) -> None:
    """A peer that has sent channel.close sends something other than channel.close-ok on the channel.

    Demands: After channel.close, a peer must not send anything but channel.close-ok on that channel.
    Source: XML:channel.close.stability; G:channel close-channel
    Evidence: the frames that the peer sends on the channel after its channel.close
    Why it matters: The other peer answers channel.close and may give the channel number to a new channel. The
    new channel then receives frames that belong to the old channel.
    Silent when: the capture lacks octets that were sent after the channel was opened. The rule reports the
    fault only once per channel.
    How to mend it: Mark the channel as closing before channel.close is written, and send only
    channel.close-ok on the channel afterwards. Make other threads stop using the channel before it is
    closed.
    """
    case.report(
        CH_CLOSE_SILENT,
        f"{_what(case)} after its own channel.close in packet {closing.packet}",
        CERTAIN,
        state_of(case),
        [int(closing.packet)],
    )
    case.mislay(ALL)


CH_CLOSE_DISCARD: Final = RULES.rule("CH-CLOSE-DISCARD", "MUST", "tier A")


def acted_after_own_close(case: Case091, closing: CloseReason) -> None:
    """A peer that has sent channel.close answers a request that arrived after its channel.close, instead of
    discarding the request.

    Demands: After channel.close, a peer must discard all received methods except channel.close and
    channel.close-ok.
    Source: XML:channel.close.stability
    Evidence: replies, publisher confirms and deliveries whose cause is a method that arrived after the peer's
    channel.close
    Why it matters: The sender of the request learns from channel.close that the request will not be carried
    out. The sender may therefore have repeated the request on another channel.
    Silent when: the capture lacks octets that were sent after the channel was opened. The rule is also silent
    when the reply may answer a request that arrived before the channel.close.
    How to mend it: After sending channel.close, discard every method received on the channel except
    channel.close and channel.close-ok. The peer must neither execute nor answer a discarded method.
    """
    case.report(
        CH_CLOSE_DISCARD,
        f"{_what(case)} in answer to a request that arrived after the peer's own channel.close in packet "
        f"{closing.packet}; such a request must be discarded",
        CERTAIN,
        state_of(case),
        [int(closing.packet)],
    )


CH_CLOSEOK_LAST: Final = RULES.rule("CH-CLOSEOK-LAST", "IMPLIED", "tier A", answer="connection.close 504")


def said_after_close_ok(case: Case091) -> None:
    """A peer that has sent channel.close-ok sends something on the channel before the channel is opened
    again.

    Demands: After channel.close-ok, a peer must not send anything on the channel until the channel is opened
    again.
    Source: G:channel close-channel
    Evidence: the frames that the peer sends on the channel after its channel.close-ok
    Why it matters: The channel has ended, and a new channel may get its number. Brokers answer a frame after
    channel.close-ok by closing the connection.
    Silent when: the capture lacks octets that were sent after the channel was opened. The rule reports the
    fault only once per channel.
    How to mend it: Make channel.close-ok the last frame on the channel: discard queued frames and block
    further sends before channel.close-ok is written. Applications must not use a channel object after
    the other peer has closed it.
    """
    channel = case.channel
    closing = None if channel is None else closing_of(case, channel, False)
    packet = 0 if closing is None else int(closing.packet)
    case.report(
        CH_CLOSEOK_LAST,
        f"{_what(case)} after its own channel.close-ok, which answered the channel.close in packet {packet}",
        CERTAIN,
        state_of(case),
        [packet],
    )
    case.mislay(ALL)


CH_CLOSEOK_UNSOLICITED: Final = RULES.rule(
    "CH-CLOSEOK-UNSOLICITED", "IMPLIED", "tier A", answer="connection.close 504"
)


def close_ok_of_nothing(case: Case091) -> None:
    """A peer sends channel.close-ok, but has no channel.close to answer on the channel.

    Demands: A peer may send channel.close-ok only as the answer to a channel.close.
    Source: G:channel close-channel
    Evidence: the channel.close methods that have no answer yet
    Why it matters: The other peer may treat the channel.close-ok as the end of a channel that is in use, or
    may close the connection.
    Silent when: the capture lacks octets of the start of the connection, or octets that were sent after the
    channel was opened.
    How to mend it: Send channel.close-ok only as the answer to a received channel.close, and exactly once.
    Send channel.close to end a channel.
    """
    case.report(
        CH_CLOSEOK_UNSOLICITED,
        f"{_what(case)}, but there is no channel.close to answer",
        CERTAIN,
        state_of(case),
    )
    case.mislay(ALL)


CH_CLOSE_SOFT_CODE: Final = RULES.rule(
    "CH-CLOSE-SOFT-CODE",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def closed_with_hard_code(case: Case091, close: ChannelClose) -> None:
    """A peer sends channel.close with a reply-code that is neither the code of a soft error nor 200.

    Demands: The reply-code in channel.close must be the code of a soft error, or 200 for a normal close.
    Source: GS:4.8.1; XML constants class=soft-error
    Evidence: the reply-code in channel.close
    Why it matters: Reply-codes of hard errors belong in connection.close. A client that acts on the
    reply-code of a hard error gives up the whole connection.
    Silent when: the reply-code is 0, because 0 is not the code of any error.
    How to mend it: Send the reply-code of a soft error (such as 404, not-found) or reply-code 200 in
    channel.close. If the error is a hard error, send connection.close instead.
    """
    case.report(
        CH_CLOSE_SOFT_CODE,
        f"channel.close has reply-code {reply_code(int(close.reply_code))}, but only 200 or the reply-code "
        "of a soft error is allowed",
        CERTAIN,
        {"reply_code": int(close.reply_code)},
    )


def judge_state(case: Case091, method: Method) -> bool:
    """Whether the state of the channel allows the method; returns whether further rules should judge it."""
    channel = case.channel
    if channel is not None and channel.state == OPEN:
        if isinstance(method, (BasicDeliver, BasicPublish, BasicAck)):
            # These are most of the methods.
            return True
    if isinstance(method, ChannelOpen):
        return judge_open(case) if case.me.by_client else True
    if isinstance(method, ChannelClose) and method.reply_code > 0 and method.reply_code not in _SOFT:
        closed_with_hard_code(case, method)
    if channel is None:
        if case.view.whole:
            if isinstance(method, ChannelCloseOk):
                close_ok_of_nothing(case)
            else:
                said_before_open(case)
        return False
    if not channel.whole:
        # A channel.close that crosses the other one has a reason, too.
        return channel.is_open or (
            isinstance(method, ChannelClose) and closing_of(case, channel, True) is None
        )
    if isinstance(method, ChannelCloseOk):
        if not CHANNEL.allows(channel.state, CLIENT_CLOSE_OK if case.me.by_client else SERVER_CLOSE_OK):
            close_ok_of_nothing(case)
        return False
    if channel.state == OPEN:
        return True
    if channel.state == OPENING:
        if not case.me.by_client and not isinstance(method, (ChannelOpenOk, ChannelClose)):
            said_before_open(case)
            return False
        return True
    if is_answered(case, channel):
        said_after_close_ok(case)
        return False
    closing = closing_of(case, channel, True)
    if closing is None:
        # The other peer has closed the channel. Methods that were on their way are no fault.
        return True
    requests = channel.requests
    if method.definition().name in requests.discarded and requests.awaited(case.me.by_client, case.name) < 0:
        acted_after_own_close(case, closing)
    else:
        said_after_own_close(case, closing)
    return False


# When it is never answered


CH_CLOSE_REPLY: Final = RULES.rule("CH-CLOSE-REPLY", "MUST", "tier A")


def close_never_answered(case: Case091, channel: Channel, closing: CloseReason, certainty: i64) -> None:
    """A peer leaves a channel.close unanswered for at least 30 seconds, and has still not answered when the
    connection or the capture ends.

    Demands: A peer must answer channel.close with channel.close-ok.
    Source: GS:2.3.7; G:channel close-channel
    Evidence: the channel.close, and the time until its receiver closes the connection or the capture ends
    Why it matters: Until the connection ends, neither the broker nor the client can use the channel number
    again.
    Silent when: no frame of the receiver proves that the receiver has processed the channel.close. The rule
    is also silent when the last frame of the receiver follows less than 30 seconds after the channel.close.
    The rule is also silent when the capture lacks octets that were sent after the channel was opened. The
    finding is reported as certain only if the receiver answers a later connection.close instead, or if its
    own log shows that it had read the channel.close. A frame on another channel does not prove that, because
    channels are independent threads of control (GS:2.3.1). The finding is reported as possible, too, when the
    capture ends while the connection is still open, or when a correction of the capturing machine's clock may
    have made the waiting time look too long.
    How to mend it: Answer every received channel.close with channel.close-ok at once, even when the
    application has stopped using the channel or is blocked in a callback.
    """
    case.report(
        CH_CLOSE_REPLY,
        f"the peer has still not answered the channel.close of channel {channel.number} in packet "
        f"{closing.packet}",
        certainty,
        {"channel": int(channel.number), "reply_code": int(closing.code)},
        [int(closing.packet)],
    )


CH_CLOSE_CROSS: Final = RULES.rule("CH-CLOSE-CROSS", "MUST", "tier A")


def crossing_close_never_answered(
    case: Case091, channel: Channel, closing: CloseReason, certainty: i64
) -> None:
    """A peer that has sent channel.close does not answer a channel.close that the other peer sent at the same
    time.

    Demands: A peer that has sent channel.close must still answer a received channel.close with
    channel.close-ok.
    Source: XML:channel.close.stability
    Evidence: two channel.close methods on the channel, one in each direction
    Why it matters: When two channel.close methods cross, each of them needs its own channel.close-ok. Without
    both answers, the channel number cannot be used again until the connection ends.
    Silent when: no frame of the peer proves that the peer has processed the other peer's channel.close. The
    rule is also silent when the last frame of the peer follows less than 30 seconds after the other peer's
    channel.close. The rule is also silent when the capture lacks octets that were sent after the channel was
    opened. The finding is reported as certain only if the peer answers a later connection.close instead, or
    if its own log shows that it had read the channel.close. A frame on another channel does not prove that,
    because channels are independent threads of control (GS:2.3.1). The finding is reported as possible, too,
    when the capture ends while the connection is still open, or when a correction of the capturing machine's
    clock may have made the waiting time look too long.
    How to mend it: While waiting for channel.close-ok, still answer a received channel.close with
    channel.close-ok. After answering, keep waiting for the channel.close-ok that the other peer owes.
    """
    case.report(
        CH_CLOSE_CROSS,
        f"the peer has still not answered the channel.close of channel {channel.number} in packet "
        f"{closing.packet}, which crossed the peer's own channel.close",
        certainty,
        {"channel": int(channel.number), "reply_code": int(closing.code)},
        [int(closing.packet)],
    )


def judge_end(case: Case091, last: i64, over: bool) -> None:
    """A peer closes the connection, answers connection.close, or its stream ends: which channel.close it
    leaves unanswered.

    last: when the peer sent something for the last time (ns). over: whether the peer will send nothing more;
    if not, only the capture ends.
    """
    me = case.me
    if case.view.finished(me.by_client):
        return
    mine = SERVER_CLOSES if me.by_client else CLIENT_CLOSES
    for channel in case.view.table.channels.values():
        state = channel.state
        if (state != mine and state != BOTH_CLOSE) or not channel.whole:
            continue
        closing = closing_of(case, channel, False)
        if closing is None or not me.knowledge.confirmed(closing.end):
            continue
        waited = me.stalls.free(closing.time, last)
        if waited < MAX_CLOSE_UNANSWERED:
            continue
        # Another channel does not show what was read on this one. If the clock was set back later, it may
        # have been ahead before by as much.
        read = me.knowledge.exact or isinstance(case.record.frame.body, ConnectionCloseOk)
        certain = over and read and waited - case.pace.back >= MAX_CLOSE_UNANSWERED
        certainty = CERTAIN if certain else POSSIBLE
        case.channel = channel
        if closing_of(case, channel, True) is None:
            close_never_answered(case, channel, closing, certainty)
        else:
            crossing_close_never_answered(case, channel, closing, certainty)
        case.channel = None
