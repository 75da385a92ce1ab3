"""Classes basic, confirm and tx: which of their rules a method, or a content header, is brought before.

Only what may be said on its channel comes here: the channel is open as far as its sender knows. What comes
for every message stands first.
"""

from amqpscope.rules.amqp091 import acknowledgement, consumer, delivery
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetOk,
    BasicNack,
    BasicRecover,
    BasicReject,
)

__all__ = ["judge_content", "judge_method"]


def judge_method(case: Case, channel: Channel, method: Method) -> None:
    """A method of these classes, or of any other."""
    if case.me.by_client:
        if isinstance(method, BasicAck):
            acknowledgement.judge_ack(case, channel, method)
        elif isinstance(method, BasicReject):
            acknowledgement.judge_reject(case, channel, method)
        elif isinstance(method, BasicNack):
            acknowledgement.judge_nack(case, channel, method)
        elif isinstance(method, BasicGet):
            consumer.judge_get(case, channel, method)
        elif isinstance(method, BasicConsume):
            consumer.judge_consume(case, channel, method)
        elif isinstance(method, BasicCancel):
            consumer.judge_cancel(case, channel, method)
        elif isinstance(method, BasicCancelOk):
            consumer.judge_cancel_ok(case, channel, method)
        elif isinstance(method, BasicRecover):
            consumer.judge_recover(case, method)
    elif isinstance(method, BasicDeliver):
        delivery.judge_delivery(case, channel, method)
    elif isinstance(method, BasicGetOk):
        delivery.judge_fetched(case, channel, method)
    elif isinstance(method, BasicConsumeOk):
        consumer.judge_consume_ok(case, channel, method)
    elif isinstance(method, BasicCancelOk):
        consumer.judge_server_cancel_ok(case, channel, method)
    elif isinstance(method, BasicCancel):
        consumer.judge_server_cancel(case)


def judge_content(case: Case, channel: Channel, header: ContentHeader) -> None:
    """A content header."""
    if not case.me.by_client:
        delivery.judge_size(case, channel, header)
