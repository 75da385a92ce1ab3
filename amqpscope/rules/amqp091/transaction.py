"""Transactions of a channel: tx.select, tx.commit, tx.rollback (class tx; RabbitMQ, "Publisher Confirms")."""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.channel import Channel
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicPublish,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlowOk,
    TxCommit,
    TxRollback,
    TxSelect,
)
from dissectors.wire import i64

__all__ = ["judge_pending", "judge_publish", "judge_transaction"]


def commit_without_transaction(case: Case) -> None:
    """A tx.commit comes on a channel that tx.select has not made transactional.

    Why it matters: there is nothing to commit, and what the client took for part of a transaction was not;
    the server closes the channel.
    Silent when: something before it on the channel was not captured.
    """
    case.report("amqp091/TX-COMMIT-SELECTED", "no tx.select on this channel")


def rollback_without_transaction(case: Case) -> None:
    """A tx.rollback comes on a channel that tx.select has not made transactional.

    Why it matters: what the client means to undo was done; the server closes the channel.
    Silent when: something before it on the channel was not captured.
    """
    case.report("amqp091/TX-ROLLBACK-SELECTED", "no tx.select on this channel")


def transaction_with_confirms(case: Case) -> None:
    """A tx.select comes on a channel that is in confirm mode.

    Why it matters: the two exclude each other; RabbitMQ closes the channel.
    Silent when: something before it on the channel was not captured.
    """
    case.report("amqp091/TX-CONFIRM-EXCL", "the channel is in confirm mode")


def said_while_committing(case: Case, packet: i64, certainty: i64) -> None:
    """A client says something on a channel whose tx.commit is not answered.

    Why it matters: it is open whether that is part of the transaction; RabbitMQ closes the connection with
    504 where the commit still waits for a queue.
    Silent when: it closes the channel, answers the server, or something before it on the channel was not
    captured. Only possible at other servers than RabbitMQ. Told once a connection.
    """
    case.report_once(
        "amqp091/TX-PENDING-COMMIT",
        f"{case.name} while the tx.commit of packet {packet} is not answered",
        certainty,
        {},
        [int(packet)],
    )


def mandatory_in_transaction(case: Case) -> None:
    """A message is published with mandatory in a transaction.

    Why it matters: whether it is returned before or after the commit, or what a return says of the commit,
    nothing tells; an application must not count on it.
    Silent when: something before it on the channel was not captured. Told once a connection.
    Only possible because: That the application counts on it does not show.
    """
    case.report_once("amqp091/TX-MANDATORY", "mandatory in a transaction", POSSIBLE, {})


def immediate_in_transaction(case: Case) -> None:
    """A message is published with immediate in a transaction.

    Why it matters: whether it is returned before or after the commit, or what a return says of the commit,
    nothing tells; an application must not count on it.
    Silent when: something before it on the channel was not captured. Told once a connection.
    Only possible because: That the application counts on it does not show.
    """
    case.report_once("amqp091/TX-IMMEDIATE", "immediate in a transaction", POSSIBLE, {})


def judge_transaction(case: Case, channel: Channel, method: Method) -> None:
    """A client's method, if it is of class tx."""
    if not channel.whole:
        return
    if isinstance(method, TxCommit):
        if not channel.transacted:
            commit_without_transaction(case)
    elif isinstance(method, TxRollback):
        if not channel.transacted:
            rollback_without_transaction(case)
    elif isinstance(method, TxSelect):
        if channel.publishes.confirming:
            transaction_with_confirms(case)


def judge_pending(case: Case, channel: Channel, method: Method) -> None:
    """A client's method on a channel with a transaction."""
    if (
        not channel.whole
        or channel.state != "OPEN"
        or isinstance(method, (ChannelClose, ChannelCloseOk, ChannelFlowOk))
    ):
        return
    at = channel.awaited(False, "tx.commit-ok")
    if at >= 0:
        certainty = CERTAIN if case.view.of_product("RabbitMQ") else POSSIBLE
        said_while_committing(case, channel.requests[at].packet, certainty)


def judge_publish(case: Case, channel: Channel, method: BasicPublish) -> None:
    """A client's basic.publish on a channel with a transaction."""
    if channel.whole:
        if method.mandatory:
            mandatory_in_transaction(case)
        if method.immediate:
            immediate_in_transaction(case)


RULES = {
    "amqp091/TX-COMMIT-SELECTED": commit_without_transaction,
    "amqp091/TX-ROLLBACK-SELECTED": rollback_without_transaction,
    "amqp091/TX-CONFIRM-EXCL": transaction_with_confirms,
    "amqp091/TX-PENDING-COMMIT": said_while_committing,
    "amqp091/TX-MANDATORY": mandatory_in_transaction,
    "amqp091/TX-IMMEDIATE": immediate_in_transaction,
}
