"""Requests and their answers: each synchronous method is answered once, in order.

Sources: sections 2.2.1, 3.2.1 and 4.7 of the general specification; the elements "response" and the domain
"no-wait" of amqp0-9-1.xml; RabbitMQ's methods (exchange.bind, confirm.select and others).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.endpoint import CHANNEL
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import ChannelFlowOk
from dissectors.wire import i64

__all__ = ["judge_close_ok", "judge_method"]

RULES: Final = Rules("amqp091/requests")


# Requests whose answers wait for the queues, not only for the channel, and may come after the channel's end.
_OF_THE_QUEUE: Final = ("basic.consume", "basic.cancel", "tx.commit")


CH_SYNC_UNSOLICITED: Final = RULES.rule(
    "CH-SYNC-UNSOLICITED", "IMPLIED", "tier A", answer="connection.close 503"
)


def answer_to_nothing(case: Case091) -> None:
    """A peer sends a reply method, but the other peer has sent no request on the channel that this reply can
    still answer.

    Demands: A peer may send a reply method only as the answer to a request that is still unanswered.
    Source: GS:2.2.1; G:all classes
    Evidence: the unanswered requests on the channel
    Why it matters: The receiver may treat the reply as the answer to its next request of the same kind. After
    one reply too many or too few, the receiver assigns all later replies to the wrong requests. Some
    receivers close the connection with reply-code 503 (command-invalid).
    Silent when: the capture lacks octets that were sent after the channel was opened. The rule is also silent
    on a channel on which the peer has already sent such a reply.
    How to mend it: Send each reply method exactly once, and only for a request of the same channel that is
    still unanswered. Applications must not let several threads use one channel at the same time.
    """
    case.report(
        CH_SYNC_UNSOLICITED,
        f"the peer sends {case.name}, but channel {case.record.frame.channel} has no unanswered request for "
        "this method",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
    )
    case.mislay(CHANNEL)


CH_NOWAIT_SILENT: Final = RULES.rule(
    "CH-NOWAIT-SILENT",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def answer_not_wanted(case: Case091) -> None:
    """A server answers a request that set no-wait.

    Demands: A server must not send a reply method for a request with no-wait.
    Source: XML domain no-wait (doc)
    Evidence: the no-wait bit of the request, and the next replies on the channel
    Why it matters: The client does not expect the reply, and treats the reply as the answer to its next
    request of the same kind.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Check the no-wait bit before sending a reply method. If no-wait is set, carry out the
    request and send no reply. Report a failure with channel.close or connection.close.
    """
    case.report(
        CH_NOWAIT_SILENT,
        f"the peer sends {case.name}, but every request that it could answer has no-wait set and must not "
        "be answered",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
    )


CH_SYNC_ORDER: Final = RULES.rule(
    "CH-SYNC-ORDER",
    "IMPLIED",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def answer_out_of_turn(case: Case091, earlier: MethodRequest) -> None:
    """A peer answers a request before it has answered an earlier request on the same channel.

    Demands: A peer must answer the requests on a channel in the order in which they were sent.
    Source: GS:4.7; GS:2.2.1
    Evidence: the unanswered requests on the channel
    Why it matters: A client that matches replies to requests only by their order assigns some replies to the
    wrong requests. In some brokers, queues send basic.consume-ok and basic.cancel-ok themselves, so other
    replies may overtake these two methods.
    Silent when: the capture lacks octets that were sent after the channel was opened.
    How to mend it: Send the replies on a channel in the order of their requests. On the client's side, match
    a reply to its request by method and by consumer-tag or queue name, not only by order.
    """
    case.report_once(
        CH_SYNC_ORDER,
        f"the peer sends {case.name} before the earlier {earlier.name} in packet {earlier.packet} is "
        "answered",
        CERTAIN,
        {"channel": int(case.record.frame.channel), "request": earlier.name},
        [int(earlier.packet)],
    )


CH_SYNC_WAIT: Final = RULES.rule(
    "CH-SYNC-WAIT",
    "SHOULD",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def request_not_waited_for(case: Case091, request: MethodRequest) -> None:
    """A client sends its next request on a channel before the previous request was answered.

    Demands: A peer should wait for the reply to a request before it sends its next method on the channel.
    Sending without waiting is allowed, but not recommended.
    Source: GS:3.2.1
    Evidence: the methods that the client sends while a request on the channel is not answered
    Why it matters: If a request fails, the server closes the channel and silently drops all later requests.
    The specification recommends waiting, but does not demand it.
    Silent when: the capture lacks octets that were sent after the channel was opened. The rule is also silent
    when the next method has no reply method, or when the next method is channel.close.
    How to mend it: Wait for the reply to each request before sending the next request on the same channel.
    Applications that need parallel requests use one channel per thread.
    """
    case.report_once(
        CH_SYNC_WAIT,
        f"the peer sends {case.name} without waiting for the answer to the {request.name} in packet "
        f"{request.packet}",
        CERTAIN,
        {"channel": int(case.record.frame.channel), "request": request.name},
        [int(request.packet)],
    )


CH_SYNC_REPLY: Final = RULES.rule(
    "CH-SYNC-REPLY",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def request_never_answered(case: Case091, request: MethodRequest) -> None:
    """A server completes the close of a channel without having answered one of the client's requests on the
    channel.

    Demands: Every request that has a reply method must be answered exactly once on the same channel, unless a
    close ends the channel or the connection first.
    Source: G:all classes; GS:2.2.1; GS:3.2.1; XML response elements
    Evidence: the unanswered requests on the channel
    Why it matters: The client may wait forever for the reply, or give up the channel.
    Silent when: the server closes the channel or the connection. The rule is also silent when the capture
    lacks octets that were sent after the channel was opened. The finding is reported as possible, not as
    certain, for basic.consume, basic.cancel and tx.commit, because some brokers let the queues answer these
    methods.
    How to mend it: Answer every synchronous request before sending channel.close-ok. Do not process a
    channel.close before all requests that arrived earlier on the channel are processed.
    """
    case.report(
        CH_SYNC_REPLY,
        f"channel {case.record.frame.channel} ends, but the server has not answered the {request.name} in "
        f"packet {request.packet}",
        POSSIBLE if request.name in _OF_THE_QUEUE else CERTAIN,
        {"channel": int(case.record.frame.channel), "request": request.name},
        [int(request.packet)],
    )


def judge_method(case: Case091, channel: Channel, method: Method) -> bool:
    """A method on an open channel: as an answer, and as the next method after a request."""
    definition = method.definition()
    by_client = case.me.by_client
    if not channel.whole:
        return True
    if not definition.synchronous and not definition.responses and not isinstance(method, ChannelFlowOk):
        return True  # basic.recover is answered, though the specification does not call it synchronous
    if definition.responses:
        if by_client and channel.requests.by_client and definition.name != "channel.close":
            request_not_waited_for(case, channel.requests.by_client[0])
        return True
    at: i64 = channel.requests.awaited(by_client, definition.name)
    if at > 0:
        answer_out_of_turn(case, channel.requests.to_answer(by_client)[0])
    elif at < 0:
        if definition.name not in channel.requests.no_wait.answers(not by_client):
            answer_to_nothing(case)
            return False
        if not by_client:
            answer_not_wanted(case)
            return False
    return True


def judge_close_ok(case: Case091, channel: Channel) -> None:
    """A server's channel.close-ok: by now the server has to have answered all earlier requests of
    the client.
    """
    closing = channel.closed_by_client
    if closing is None or channel.closed_by_server is not None or not channel.whole:
        return
    for request in channel.requests.by_client:
        if request.end < closing.end and request.name != "basic.recover":
            request_never_answered(case, request)
            return
