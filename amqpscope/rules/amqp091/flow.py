"""channel.flow: a peer that has confirmed that it stops sends no content (channel.flow of amqp0-9-1.xml)."""

from typing import Final

from amqpscope.limits import MAX_FLOW_UNANSWERED
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.methods import ChannelFlowOk

__all__ = ["judge_content", "judge_flow_ok", "judge_promptness"]

RULES: Final = Rules("amqp091/flow")


CH_FLOW_STOP: Final = RULES.rule("CH-FLOW-STOP", "IMPLIED", "tier A")


def content_while_stopped(case: Case091) -> None:
    """A peer starts to send content on a channel after it has confirmed with channel.flow-ok that it will
    send no content on that channel.

    Demands: After channel.flow-ok with active=0, a peer must not start new content on the channel until
    channel.flow with active=1 arrives. The rule does not apply to content that answers basic.get.
    Source: XML:channel.flow.active; XML:channel.flow-ok.active; GS:3.1.9
    Evidence: the field `active` of the last channel.flow-ok on the channel in this direction (before the
    first channel.flow, content is allowed)
    Why it matters: The other peer has no room for the content and may close the connection.
    Silent when: the peer may already have received a channel.flow that allows content again. The rule is also
    silent when the capture lacks octets that were sent after the channel was opened. The rule ignores
    messages that the server sends by basic.return or basic.get-ok.
    How to mend it: For each channel, store the field `active` of the last channel.flow. After channel.flow-ok
    with active=0, hold back new content until a channel.flow with active=1 arrives. Check the stored field in
    every thread that publishes on the channel.
    """
    case.report(
        CH_FLOW_STOP,
        f"the peer sends {case.name} on channel {case.record.frame.channel} after its own channel.flow-ok "
        "with active=0, which forbids new content",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
    )


CH_FLOW_OK_VALUE: Final = RULES.rule(
    "CH-FLOW-OK-VALUE",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def flow_confirmed_otherwise(case: Case091, asked: bool, packet: int) -> None:
    """In channel.flow-ok, a peer confirms the opposite of what the channel.flow requested.

    Demands: A channel.flow-ok must repeat the value of the field `active` of the channel.flow that it
    answers.
    Source: XML:channel.flow-ok.active
    Evidence: the field `active` of channel.flow and of channel.flow-ok
    Why it matters: The peers disagree whether content may be sent on the channel. Messages stall, or arrive
    at a receiver that has no room for messages.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Copy the field `active` of the received channel.flow into channel.flow-ok. Answer several
    channel.flow methods in the order of their arrival.
    """
    case.report(
        CH_FLOW_OK_VALUE,
        f"channel.flow-ok has active={int(not asked)}, but channel.flow in packet {packet} "
        f"has active={int(asked)}",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
        [packet],
    )


CH_FLOW_PROMPT: Final = RULES.rule("CH-FLOW-PROMPT", "SHOULD", "tier B")


def flow_not_noticed(case: Case091, request: MethodRequest) -> None:
    """A peer keeps sending content on a channel although it has left a channel.flow unanswered for more than
    30 seconds.

    Demands: A peer should answer channel.flow promptly, even while it sends content.
    Source: XML:channel.flow.bidirectional
    Evidence: the delay between channel.flow and channel.flow-ok, and the content that the peer sends in
    between
    Why it matters: A receiver that sends channel.flow to stop content has no room for more content. A sender
    that answers late overloads the receiver.
    Silent when: the rule has already reported the fault on the same connection. The rule is also silent when
    the capture lacks octets that were sent after the channel was opened.
    Only possible because: The {peer}'s application may not yet have read the channel.flow.
    How to mend it: Read incoming frames while sending content, for example in a separate thread. Handle
    channel.flow and send channel.flow-ok before starting the next content.
    """
    seconds = (case.record.time - request.time) // 1_000_000_000
    case.report_once(
        CH_FLOW_PROMPT,
        f"the peer sends {case.name} although the peer has not answered the channel.flow in packet "
        f"{request.packet} for {seconds} s",
        POSSIBLE,
        {"channel": int(case.record.frame.channel)},
        [int(request.packet)],
    )


def judge_promptness(case: Case091, channel: Channel) -> None:
    """A basic.publish or basic.deliver of a peer that owes a channel.flow-ok."""
    if not channel.whole:
        return
    for demand in channel.requests.to_answer(case.me.by_client):
        if demand.name == "channel.flow":
            if case.me.stalls.free(demand.time, case.record.time) > MAX_FLOW_UNANSWERED:
                flow_not_noticed(case, demand)
            return


def judge_content(case: Case091, channel: Channel) -> None:
    """A basic.publish or basic.deliver of a peer that has confirmed that it stops."""
    if not channel.whole:
        return
    for demand in channel.requests.to_answer(case.me.by_client):
        if demand.name == "channel.flow" and demand.subject == "1":
            return
    content_while_stopped(case)


def judge_flow_ok(case: Case091, channel: Channel, method: ChannelFlowOk) -> None:
    """A channel.flow-ok, compared with the oldest channel.flow that waits for an answer."""
    at = channel.requests.awaited(case.me.by_client, "channel.flow-ok")
    if at < 0 or not channel.whole:
        return
    request = channel.requests.to_answer(case.me.by_client)[at]
    if (request.subject == "1") != method.active:
        flow_confirmed_otherwise(case, request.subject == "1", int(request.packet))
