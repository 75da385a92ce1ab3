"""channel.flow: who has confirmed that it stops sends no content (channel.flow of amqp0-9-1.xml)."""

from amqpscope.limits import MAX_FLOW_UNANSWERED
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import Request
from dissectors.amqp091.methods import ChannelFlowOk

__all__ = ["judge_content", "judge_flow_ok", "judge_promptness"]


def content_while_stopped(case: Case) -> None:
    """A peer has confirmed that it sends no content on a channel for now, and begins one.

    Why it matters: the other one has no room for it, and may disconnect.
    Silent when: channel.flow that lets content go again could be known to it, or octets since the channel was
    opened were not captured. What a client asks for by basic.get comes all the same, and what is returned.
    """
    case.report(
        "amqp091/CH-FLOW-STOP",
        f"{case.name} is sent on channel {case.record.frame.channel} after channel.flow-ok with active=0",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
    )


def flow_confirmed_otherwise(case: Case, asked: bool, packet: int) -> None:
    """channel.flow-ok confirms the opposite of what channel.flow asked for.

    Why it matters: the two disagree whether content may be sent on the channel.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report(
        "amqp091/CH-FLOW-OK-VALUE",
        f"it says active={int(not asked)}, channel.flow in packet {packet} asks for the opposite",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
        [packet],
    )


def flow_not_noticed(case: Case, request: Request) -> None:
    """A peer goes on with contents on a channel and has not answered channel.flow for long.

    Why it matters: who asks for a stop has no room for more; a peer that only reads between its own
    contents comes too late.
    Silent when: the same was told of the connection before, or octets since the channel was opened were not
    captured.
    Only possible because: Its program may not have got to read it yet.
    """
    seconds = (case.record.time - request.time) // 1_000_000_000
    case.report_once(
        "amqp091/CH-FLOW-PROMPT",
        f"{case.name} is sent {seconds} s after channel.flow in packet {request.packet}, not answered yet",
        POSSIBLE,
        {"channel": int(case.record.frame.channel)},
        [int(request.packet)],
    )


def judge_promptness(case: Case, channel: Channel) -> None:
    """basic.publish or basic.deliver of a peer that has something to answer."""
    if not channel.whole:
        return
    for demand in channel.demands if case.me.by_client else channel.requests:
        if demand.name == "channel.flow":
            if case.me.stalls.free(demand.time, case.record.time) > MAX_FLOW_UNANSWERED:
                flow_not_noticed(case, demand)
            return


def judge_content(case: Case, channel: Channel) -> None:
    """basic.publish or basic.deliver of a peer that has said that it stops."""
    if not channel.whole:
        return
    for demand in channel.demands if case.me.by_client else channel.requests:
        if demand.name == "channel.flow" and demand.subject == "1":
            return
    content_while_stopped(case)


def judge_flow_ok(case: Case, channel: Channel, method: ChannelFlowOk) -> None:
    """channel.flow-ok, held against the oldest channel.flow that waits for it."""
    at = channel.awaited(case.me.by_client, "channel.flow-ok")
    if at < 0 or not channel.whole:
        return
    request = channel.demands[at] if case.me.by_client else channel.requests[at]
    if (request.subject == "1") != method.active:
        flow_confirmed_otherwise(case, request.subject == "1", int(request.packet))


RULES = {
    "amqp091/CH-FLOW-STOP": content_while_stopped,
    "amqp091/CH-FLOW-PROMPT": flow_not_noticed,
    "amqp091/CH-FLOW-OK-VALUE": flow_confirmed_otherwise,
}
