"""Requests and their answers: each synchronous method is answered once, in its turn.

Sources: sections 2.2.1, 3.2.1 and 4.7 of the general specification; the elements "response" and the domain
"no-wait" of amqp0-9-1.xml; RabbitMQ's methods (exchange.bind, confirm.select and others).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.requests import Request
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import ChannelFlowOk
from dissectors.wire import i64

__all__ = ["judge_close_ok", "judge_method"]

# Requests whose answers wait for the queues, not only for the channel, and may come too late for it.
_OF_THE_QUEUE: Final = ("basic.consume", "basic.cancel", "tx.commit")


def answer_to_nothing(case: Case) -> None:
    """An answer is sent that no request waits for.

    Why it matters: it is taken for the answer to the next request of its kind, and all that follow are one
    off; or the connection is closed with 503.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report(
        "amqp091/CH-SYNC-UNSOLICITED",
        f"{case.name} answers nothing: no request on channel {case.record.frame.channel} waits for it",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
    )


def answer_not_wanted(case: Case) -> None:
    """A request that was said with no-wait is answered.

    Why it matters: the client does not expect the answer and takes it for one to its next request of the
    kind.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report(
        "amqp091/CH-NOWAIT-SILENT",
        f"{case.name} is sent, and all requests for it that are not answered yet have no-wait",
        CERTAIN,
        {"channel": int(case.record.frame.channel)},
    )


def answer_out_of_turn(case: Case, earlier: Request) -> None:
    """A request is answered before one that came earlier on the channel.

    Why it matters: a client that only counts its requests gives the answer to the wrong one. Brokers whose
    queues answer by themselves let basic.consume-ok and basic.cancel-ok be overtaken.
    Silent when: octets since the channel was opened were not captured.
    """
    case.report_once(
        "amqp091/CH-SYNC-ORDER",
        f"{case.name} comes while the {earlier.name} in packet {earlier.packet} is not answered",
        CERTAIN,
        {"channel": int(case.record.frame.channel), "request": earlier.name},
        [int(earlier.packet)],
    )


def request_not_waited_for(case: Case, request: Request) -> None:
    """A client makes its next request on a channel before the one before it was answered.

    Why it matters: if the request fails the channel is closed, and what was said behind it is lost without a
    word. The specification recommends to wait, and allows not to.
    Silent when: octets since the channel was opened were not captured, or what follows asks for no answer, or
    is channel.close.
    """
    case.report_once(
        "amqp091/CH-SYNC-WAIT",
        f"{case.name} is sent while the {request.name} in packet {request.packet} is not answered",
        CERTAIN,
        {"channel": int(case.record.frame.channel), "request": request.name},
        [int(request.packet)],
    )


def request_never_answered(case: Case, request: Request) -> None:
    """A server ends a channel in good order and has not answered one of the client's requests on it.

    Why it matters: a client that waits for the answer waits for ever, or gives up on the channel.
    Silent when: the server closes the channel or the connection, or octets since the channel was opened were
    not captured. Only possible of basic.consume, basic.cancel and tx.commit, which brokers answer by way of
    the queues.
    """
    case.report(
        "amqp091/CH-SYNC-REPLY",
        f"channel {case.record.frame.channel} ends, the {request.name} in packet {request.packet} was not "
        "answered",
        POSSIBLE if request.name in _OF_THE_QUEUE else CERTAIN,
        {"channel": int(case.record.frame.channel), "request": request.name},
        [int(request.packet)],
    )


def judge_method(case: Case, channel: Channel, method: Method) -> bool:
    """A method on an open channel: as an answer, and as the next one after a request."""
    definition = method.definition()
    by_client = case.me.by_client
    if not channel.whole:
        return True
    if not definition.synchronous and not definition.responses and not isinstance(method, ChannelFlowOk):
        return True  # basic.recover is answered, though the specification does not call it synchronous
    if definition.responses:
        if by_client and channel.requests and definition.name != "channel.close":
            request_not_waited_for(case, channel.requests[0])
        return True
    at: i64 = channel.awaited(by_client, definition.name)
    if at > 0:
        queue = channel.demands if by_client else channel.requests
        answer_out_of_turn(case, queue[0])
    elif at < 0:
        if definition.name not in (channel.unawaited_by_server if by_client else channel.unawaited):
            answer_to_nothing(case)
            return False
        if not by_client:
            answer_not_wanted(case)
            return False
    return True


def judge_close_ok(case: Case, channel: Channel) -> None:
    """channel.close-ok of a server: all that the client had asked for before is answered by now."""
    closing = channel.closed_by_client
    if closing is None or channel.closed_by_server is not None or not channel.whole:
        return
    for request in channel.requests:
        if request.end < closing.end and request.name != "basic.recover":
            request_never_answered(case, request)
            return


RULES = {
    "amqp091/CH-SYNC-UNSOLICITED": answer_to_nothing,
    "amqp091/CH-NOWAIT-SILENT": answer_not_wanted,
    "amqp091/CH-SYNC-ORDER": answer_out_of_turn,
    "amqp091/CH-SYNC-WAIT": request_not_waited_for,
    "amqp091/CH-SYNC-REPLY": request_never_answered,
}
