"""Classes basic, confirm and tx: which of their rules judge a method or a content header.

A method comes here only if it is allowed on its channel: the channel is open as far as its sender knows. The
methods that come with every message are checked first.
"""

from typing import Final

from amqpscope.rules.amqp091 import (
    acknowledgement,
    cancel,
    complaint,
    confirm,
    consumer,
    delivery,
    publishing,
    refused,
    transaction,
)
from amqpscope.rules.amqp091.case import Case091
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
    BasicPublish,
    BasicRecover,
    BasicRecoverAsync,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ConfirmSelect,
    ConnectionClose,
    TxCommitOk,
)

__all__ = ["judge_closed", "judge_connection_close", "judge_content", "judge_method"]


def judge_method(case: Case091, channel: Channel, method: Method) -> None:
    """A method of these classes, or of any other."""
    if case.me.by_client:
        if channel.transacted:
            transaction.judge_pending(case, channel, method)
        if isinstance(method, BasicPublish):
            if channel.transacted and (method.mandatory or method.immediate):
                transaction.judge_publish(case, channel, method)
        elif isinstance(method, BasicAck):
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
            cancel.judge_cancel(case, channel, method)
        elif isinstance(method, BasicCancelOk):
            cancel.judge_cancel_ok(case, channel, method)
        elif isinstance(method, BasicRecover):
            consumer.judge_recover(case, method)
        elif isinstance(method, BasicRecoverAsync):
            complaint.judge_recover_async(case)
        elif isinstance(method, ConfirmSelect):
            confirm.judge_select(case, channel)
        elif isinstance(method, ChannelClose):
            judge_client_close(case, channel, method)
        else:
            transaction.judge_transaction(case, channel, method)
    elif isinstance(method, BasicDeliver):
        delivery.judge_delivery(case, channel, method)
    elif isinstance(method, BasicAck):
        confirm.judge_confirm(case, channel, method.delivery_tag, method.multiple, True)
    elif isinstance(method, BasicNack):
        confirm.judge_confirm(case, channel, method.delivery_tag, method.multiple, False)
    elif isinstance(method, BasicGetOk):
        delivery.judge_fetched(case, channel, method)
    elif isinstance(method, BasicReturn):
        publishing.judge_return(case, channel, method)
    elif isinstance(method, BasicConsumeOk):
        consumer.judge_consume_ok(case, channel, method)
    elif isinstance(method, BasicCancelOk):
        cancel.judge_server_cancel_ok(case, channel, method)
    elif isinstance(method, BasicCancel):
        cancel.judge_server_cancel(case)
    elif isinstance(method, ChannelClose):
        refused.judge_close(case, channel, method)
    elif isinstance(method, TxCommitOk):
        refused.judge_commit_ok(case, channel)


def judge_content(case: Case091, channel: Channel, header: ContentHeader) -> None:
    """A content header."""
    if case.me.by_client:
        publishing.judge_properties(case, channel, header)
    elif channel.deliveries.due is not None:
        delivery.judge_size(case, channel, header)
    elif channel.publishes.due_return is not None:
        publishing.judge_returned(case, channel, header)


# Reply-codes with which a client that names basic.nack does not refuse basic.nack itself: no error, or one
# about the octets of the frame.
_NOT_FOR_IT: Final = (0, 200, 501, 502, 505)


def judge_client_close(case: Case091, channel: Channel, method: ChannelClose) -> None:
    """A client's channel.close."""
    if method.class_id == 60 and method.method_id == 120 and method.reply_code not in _NOT_FOR_IT:
        confirm.judge_nack_refused(case, channel)


def judge_connection_close(case: Case091, method: ConnectionClose) -> None:
    """A connection.close that may name methods of these classes."""
    if not case.me.by_client:
        if method.class_id == 60 and method.method_id == 40 and method.reply_code == 540:
            refused.judge_refused_immediate(case)
        return
    if method.class_id == 60 and method.method_id == 120 and method.reply_code not in _NOT_FOR_IT:
        for channel in case.view.table.channels.values():
            if channel.publishes.nacked.firsts:
                confirm.judge_nack_refused(case, channel)
                return


def judge_closed(case: Case091, channel: Channel) -> None:
    """A server's close-ok for this channel or for the connection: what the server has not done by now, it
    will never do.
    """
    if channel.publishes.confirming:
        confirm.judge_end(case, channel)
    if channel.requests.by_client:
        refused.judge_recovered(case, channel)
