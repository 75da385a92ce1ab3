"""What the rules ask about a channel that is being closed."""

from amqpscope.rules.amqp091.case import Case091
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.closing import CloseReason
from amqpscope.tracking.amqp091.states import (
    BOTH_CLOSE,
    CLIENT_CLOSES,
    SERVER_CLOSES,
)

__all__ = ["closing_of", "is_answered", "state_of"]


def state_of(case: Case091) -> dict[str, object]:
    """The number and the state of the frame's channel, as evidence."""
    channel = case.channel
    state = "never opened" if channel is None else channel.state.lower()
    return {"channel": int(case.record.frame.channel), "channel_state": state}


def closing_of(case: Case091, channel: Channel, mine: bool) -> CloseReason | None:
    """The channel.close that the sender of the frame has sent on this channel, or that the other peer has
    sent.
    """
    return channel.closed_by_client if case.me.by_client == mine else channel.closed_by_server


def is_answered(case: Case091, channel: Channel) -> bool:
    """Whether the sender of the frame has answered the other peer's channel.close."""
    if closing_of(case, channel, False) is None or channel.state == BOTH_CLOSE:
        return False
    return channel.state != (SERVER_CLOSES if case.me.by_client else CLIENT_CLOSES)
