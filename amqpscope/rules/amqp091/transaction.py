"""Transactions of a channel: tx.select, tx.commit, tx.rollback (class tx; RabbitMQ, "Publisher Confirms")."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.states import OPEN
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

RULES: Final = Rules("amqp091/transaction")


TX_COMMIT_SELECTED: Final = RULES.rule(
    "TX-COMMIT-SELECTED", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def commit_without_transaction(case: Case091) -> None:
    """A client sends tx.commit on a channel that tx.select has not made transactional.

    Demands: A client may send tx.commit only after tx.select on the same channel.
    Source: XML:tx.commit.transacted; XML:tx.select (doc)
    Evidence: the mode of the channel (transaction mode or not)
    Why it matters: There is no transaction to commit: every earlier publish and acknowledgement took effect
    at once. The server closes the channel.
    Silent when: the capture lacks octets that were sent on the channel before the tx.commit.
    How to mend it: Send tx.select once on each new channel before the first message of the transaction, also
    after the channel was reopened. Send tx.commit on the channel on which the messages were published.
    """
    case.report(
        TX_COMMIT_SELECTED,
        "the peer sends tx.commit although the peer has not sent tx.select on this channel",
    )


TX_ROLLBACK_SELECTED: Final = RULES.rule(
    "TX-ROLLBACK-SELECTED", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def rollback_without_transaction(case: Case091) -> None:
    """A client sends tx.rollback on a channel that tx.select has not made transactional.

    Demands: A client may send tx.rollback only after tx.select on the same channel.
    Source: XML:tx.rollback.transacted; XML:tx.select (doc)
    Evidence: the mode of the channel (transaction mode or not)
    Why it matters: There is no transaction to roll back: every earlier publish and acknowledgement has
    already taken effect and cannot be undone. The server closes the channel.
    Silent when: the capture lacks octets that were sent on the channel before the tx.rollback.
    How to mend it: Send tx.select once on each new channel before the first message of the transaction, also
    after the channel was reopened. Send tx.rollback on the channel on which the messages were published.
    """
    case.report(
        TX_ROLLBACK_SELECTED,
        "the peer sends tx.rollback although the peer has not sent tx.select on this channel",
    )


TX_CONFIRM_EXCL: Final = RULES.rule(
    "TX-CONFIRM-EXCL", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def transaction_with_confirms(case: Case091) -> None:
    """A client sends tx.select on a channel that is in confirm mode.

    Demands: A client must not send tx.select on a channel in confirm mode.
    Source: RMQ:docs/confirms
    Evidence: the mode of the channel (confirm mode or not)
    Why it matters: Transactions and confirm mode exclude each other on a channel. RabbitMQ closes the channel
    when a client sends both tx.select and confirm.select.
    Silent when: the capture lacks octets that were sent on the channel before the tx.select.
    How to mend it: Decide for each channel between tx.select and confirm.select, and open a second channel if
    both are needed. Do not hand a channel in confirm mode to code that uses transactions.
    """
    case.report(TX_CONFIRM_EXCL, "the peer sends tx.select although the channel is in confirm mode")


TX_PENDING_COMMIT: Final = RULES.rule(
    "TX-PENDING-COMMIT", "IMPLIED", "tier A", by="client", answer="connection.close 504"
)


def said_while_committing(case: Case091, packet: i64) -> None:
    """A client sends a method on a channel while its tx.commit is not answered yet.

    Demands: A client must not send anything on a channel until the server has answered its tx.commit.
    Source: RMQ:server rabbit_channel; GS:3.2.1
    Evidence: the tx.commit methods that are not answered yet
    Why it matters: The peers may disagree whether the method belongs to the transaction. RabbitMQ closes
    the connection with reply-code 504 (channel-error) if the commit still waits for a queue.
    Silent when: the client closes the channel, or when the method answers a request of the server. The rule
    is also silent when the capture lacks octets that were sent on the channel before the method. The rule
    reports the fault only once per connection.
    Only possible because: The capture does not show whether the commit still waited for a queue. Servers
    accept the method if the commit did not wait.
    How to mend it: Wait for tx.commit-ok before sending anything else on the channel. Do not share a
    transactional channel between threads. Use one channel per thread.
    """
    case.report_once(
        TX_PENDING_COMMIT,
        f"the peer sends {case.name} before the tx.commit in packet {packet} is answered",
        POSSIBLE,
        {},
        [int(packet)],
    )


TX_MANDATORY: Final = RULES.rule("TX-MANDATORY", "MUST NOT", "tier B", by="client")


def mandatory_in_transaction(case: Case091) -> None:
    """A client publishes a message with the mandatory flag in a transaction.

    Demands: Applications must not rely on basic.return for messages that they publish with the mandatory flag
    in a transaction.
    Source: XML:tx.not mandatory
    Evidence: the mandatory bit of basic.publish on a channel in transaction mode
    Why it matters: The specification leaves open whether a basic.return comes before or after tx.commit-ok,
    and what the basic.return means for the transaction.
    Silent when: the capture lacks octets that were sent on the channel before the message. The rule reports
    the fault only once per connection.
    Only possible because: The capture does not show whether the application relies on basic.return.
    How to mend it: Publish mandatory messages on a channel without a transaction. With RabbitMQ, use a
    channel in confirm mode for such messages. In a transaction, do not decide from a basic.return whether the
    transaction succeeded.
    """
    case.report_once(
        TX_MANDATORY,
        "the client publishes a message with the mandatory flag in a transaction, in which the client "
        "cannot rely on basic.return",
        POSSIBLE,
        {},
    )


TX_IMMEDIATE: Final = RULES.rule("TX-IMMEDIATE", "MUST NOT", "tier B", by="client")


def immediate_in_transaction(case: Case091) -> None:
    """A client publishes a message with the immediate flag in a transaction.

    Demands: Applications must not rely on basic.return for messages that they publish with the immediate flag
    in a transaction.
    Source: XML:tx.not immediate
    Evidence: the immediate bit of basic.publish on a channel in transaction mode
    Why it matters: The specification leaves open whether a basic.return comes before or after tx.commit-ok,
    and what the basic.return means for the transaction.
    Silent when: the capture lacks octets that were sent on the channel before the message. The rule reports
    the fault only once per connection.
    Only possible because: The capture does not show whether the application relies on basic.return.
    How to mend it: Publish immediate messages on a channel without a transaction. In a transaction, do not
    decide from a basic.return whether the transaction succeeded.
    """
    case.report_once(
        TX_IMMEDIATE,
        "the client publishes a message with the immediate flag in a transaction, in which the client "
        "cannot rely on basic.return",
        POSSIBLE,
        {},
    )


def judge_transaction(case: Case091, channel: Channel, method: Method) -> None:
    """A client's method of the class tx, if it is one."""
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


def judge_pending(case: Case091, channel: Channel, method: Method) -> None:
    """A client's method on a channel in transaction mode."""
    if (
        not channel.whole
        or channel.state != OPEN
        or isinstance(method, (ChannelClose, ChannelCloseOk, ChannelFlowOk))
    ):
        return
    at = channel.requests.awaited(False, "tx.commit-ok")
    if at >= 0:
        said_while_committing(case, channel.requests.by_client[at].packet)


def judge_publish(case: Case091, channel: Channel, method: BasicPublish) -> None:
    """A client's basic.publish on a channel in transaction mode."""
    if channel.whole:
        if method.mandatory:
            mandatory_in_transaction(case)
        if method.immediate:
            immediate_in_transaction(case)
