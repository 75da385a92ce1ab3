"""Transactions of a channel: tx.select, tx.commit, tx.rollback (class tx; RabbitMQ, "Publisher Confirms")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
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

RULES: Final = Rules("amqp091/transaction")


TX_COMMIT_SELECTED: Final = RULES.rule(
    "TX-COMMIT-SELECTED", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def commit_without_transaction(case: Case091) -> None:
    """A client sends tx.commit on a channel that tx.select has not made transactional.

    Demands: Commit is used only after Select on that channel.
    Source: XML:tx.commit.transacted; XML:tx.select (doc)
    Evidence: tx mode per channel
    Why it matters: Nothing can be committed: what the client took for a transaction took effect at once. The
    server closes the channel.
    Silent when: something before the tx.commit on the channel was not captured.
    How to mend it: Send tx.select once on each new channel before the first message of the transaction, also
    after the channel was reopened. Send tx.commit on the channel on which the messages were published.
    """
    case.report(TX_COMMIT_SELECTED, "no tx.select on this channel")


TX_ROLLBACK_SELECTED: Final = RULES.rule(
    "TX-ROLLBACK-SELECTED", "MUST NOT", "tier A", by="client", answer="channel.close 406"
)


def rollback_without_transaction(case: Case091) -> None:
    """A client sends tx.rollback on a channel that tx.select has not made transactional.

    Demands: Rollback is used only after Select on that channel.
    Source: XML:tx.rollback.transacted; XML:tx.select (doc)
    Evidence: tx mode per channel
    Why it matters: Everything the client wants to undo has already taken effect and cannot be undone. The
    server closes the channel.
    Silent when: something before the tx.rollback on the channel was not captured.
    How to mend it: Send tx.select once on each new channel before the first message of the transaction, also
    after the channel was reopened. Send tx.rollback on the channel on which the messages were published.
    """
    case.report(TX_ROLLBACK_SELECTED, "no tx.select on this channel")


TX_CONFIRM_EXCL: Final = RULES.rule(
    "TX-CONFIRM-EXCL", "IMPLIED", "tier A", by="client", answer="channel.close 406"
)


def transaction_with_confirms(case: Case091) -> None:
    """A client sends tx.select on a channel that is in confirm mode.

    Demands: Tx.Select is not used on a channel in confirm mode.
    Source: RMQ:docs/confirms
    Evidence: confirm mode per channel
    Why it matters: Transactions and confirm mode exclude each other on a channel. RabbitMQ closes the channel
    when a client combines them.
    Silent when: something before the tx.select on the channel was not captured.
    How to mend it: Decide for each channel between tx.select and confirm.select, and open a second channel if
    both are needed. Do not hand a channel in confirm mode to code that uses transactions.
    """
    case.report(TX_CONFIRM_EXCL, "the channel is in confirm mode")


TX_PENDING_COMMIT: Final = RULES.rule(
    "TX-PENDING-COMMIT", "IMPLIED", "tier A", by="client", answer="connection.close 504"
)


def said_while_committing(case: Case091, packet: i64, certainty: i64) -> None:
    """A client sends a method on a channel on which its tx.commit is not answered yet.

    Demands: Nothing is sent on a channel while its Commit is unanswered.
    Source: RMQ:server rabbit_channel; GS:3.2.1
    Evidence: outstanding tx.commit
    Why it matters: The peers cannot know whether that method belongs to the transaction. RabbitMQ closes the
    connection with 504 if the commit still waits for a queue.
    Silent when: the client closes the channel or answers the server, or something before the method on the
    channel was not captured. The finding is only possible with servers other than RabbitMQ. The rule reports
    once per connection.
    How to mend it: Wait for tx.commit-ok before sending anything else on the channel. Do not share a
    transactional channel between threads; use one channel per thread.
    """
    case.report_once(
        TX_PENDING_COMMIT,
        f"{case.name} while the tx.commit of packet {packet} is not answered",
        certainty,
        {},
        [int(packet)],
    )


TX_MANDATORY: Final = RULES.rule("TX-MANDATORY", "MUST NOT", "tier B", by="client")


def mandatory_in_transaction(case: Case091) -> None:
    """A client publishes a message with mandatory in a transaction.

    Demands: Applications do not count on the outcome of mandatory publishes in a transaction.
    Source: XML:tx.not mandatory
    Evidence: mandatory bit on a tx channel
    Why it matters: The specification leaves open whether a basic.return comes before or after the commit, and
    what the basic.return says about the commit. An application must not rely on the outcome.
    Silent when: something before the message on the channel was not captured. The rule reports once per
    connection.
    Only possible because: The capture does not show whether the application relies on the outcome.
    How to mend it: Publish messages with mandatory on a channel without a transaction; on RabbitMQ use
    publisher confirms there. Otherwise do not decide from a basic.return whether the transaction succeeded.
    """
    case.report_once(TX_MANDATORY, "mandatory in a transaction", POSSIBLE, {})


TX_IMMEDIATE: Final = RULES.rule("TX-IMMEDIATE", "MUST NOT", "tier B", by="client")


def immediate_in_transaction(case: Case091) -> None:
    """A client publishes a message with immediate in a transaction.

    Demands: Applications do not count on the outcome of immediate publishes in a transaction.
    Source: XML:tx.not immediate
    Evidence: immediate bit on a tx channel
    Why it matters: The specification leaves open whether a basic.return comes before or after the commit, and
    what the basic.return says about the commit. An application must not rely on the outcome.
    Silent when: something before the message on the channel was not captured. The rule reports once per
    connection.
    Only possible because: The capture does not show whether the application relies on the outcome.
    How to mend it: Publish messages with immediate on a channel without a transaction; on RabbitMQ use
    publisher confirms there. Otherwise do not decide from a basic.return whether the transaction succeeded.
    """
    case.report_once(TX_IMMEDIATE, "immediate in a transaction", POSSIBLE, {})


def judge_transaction(case: Case091, channel: Channel, method: Method) -> None:
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


def judge_pending(case: Case091, channel: Channel, method: Method) -> None:
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


def judge_publish(case: Case091, channel: Channel, method: BasicPublish) -> None:
    """A client's basic.publish on a channel with a transaction."""
    if channel.whole:
        if method.mandatory:
            mandatory_in_transaction(case)
        if method.immediate:
            immediate_in_transaction(case)
