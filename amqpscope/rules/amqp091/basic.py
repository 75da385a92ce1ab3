"""Classes basic, confirm and tx: which of their rules a method, or a content header, is brought before.

Only what may be said on its channel comes here: the channel is open as far as its sender knows.
"""

from amqpscope.rules.amqp091 import acknowledgement
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import BasicAck, BasicNack, BasicReject

__all__ = ["judge_method"]


def judge_method(case: Case, channel: Channel, method: Method) -> None:
    """A method of these classes, or of any other."""
    if case.me.by_client:
        if isinstance(method, BasicAck):
            acknowledgement.judge_ack(case, channel, method)
        elif isinstance(method, BasicReject):
            acknowledgement.judge_reject(case, channel, method)
        elif isinstance(method, BasicNack):
            acknowledgement.judge_nack(case, channel, method)
