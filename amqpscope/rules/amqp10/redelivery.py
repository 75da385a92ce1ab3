"""Messages that a server sends again, judged by their earlier deliveries (messaging.xml, "Message States").

A message is the same if it has the same message-id and the same bare message. No finding here is
certain: a client may have sent the message to the server a second time.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.message_digest import message_digest
from amqpscope.tracking.amqp10.redelivery import Fate, Head, head_of
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transaction_names import named_in
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Accepted, Modified, Received, Rejected, Released, Source
from dissectors.amqp10.values import Map

__all__ = ["judge_again", "judge_message"]

RULES: Final = Rules("amqp10/redelivery")


def _report(case: Case10, rule: str, message: str, fate: Fate, count: int) -> None:
    evidence: dict[str, object] = {"delivery_count": count, "delivery_count_before": int(fate.count)}
    case.report(rule, message, POSSIBLE, evidence, [int(fate.packet)])


M_ACQUIRED_HOLD: Final = RULES.rule(
    "M-ACQUIRED-HOLD",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def sent_again_while_acquired(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a message again on the same link before the earlier delivery of the message is settled.

    Demands: A message must stay acquired until its delivery is settled.
    Source: messaging.xml section distribution-nodes > Message States
    Evidence: a second delivery of the message before the first delivery is settled
    Why it matters: The receiver already has the message and may be about to accept it. The receiver now has
    the message twice.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the distribution-mode of the source is
    `copy`.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Keep a message acquired by the link until its delivery is settled or the link is detached.
    Put the message back into the queue only after the delivery is settled with the outcome `released`,
    `modified` or `rejected`.
    """
    _report(
        case,
        M_ACQUIRED_HOLD,
        f"the sender sends the message again while the message's earlier delivery in packet {fate.packet} "
        "is unsettled",
        fate,
        count,
    )


M_ACQUIRED_EXCL: Final = RULES.rule(
    "M-ACQUIRED-EXCL",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def sent_to_another_while_acquired(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a message on one link although another link of the same node has already acquired the
    message.

    Demands: A message that one link has acquired must not be sent on another acquiring link until the first
    link releases the message.
    Source: messaging.xml section distribution-nodes > Message States
    Evidence: deliveries of one message on several links
    Why it matters: Two receivers have a message that only one receiver should have. Both receivers may
    process the message.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when one of the two sources does not set
    distribution-mode to `move`.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Mark a message as acquired when you send it on a link with distribution-mode `move`. Offer
    the message to another link only after the first link has released the message.
    """
    _report(
        case,
        M_ACQUIRED_EXCL,
        "the sender sends the message on another link while the message's earlier delivery in packet "
        f"{fate.packet} is unsettled",
        fate,
        count,
    )


M_ACCEPT_NORESEND: Final = RULES.rule(
    "M-ACCEPT-NORESEND",
    "MUST NOT",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def sent_again_after_acceptance(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a message again on the same link after the receiver has accepted the message.

    Demands: A source must not send a message again on a link after the receiver has accepted the message.
    Source: messaging.xml section addressing > Distribution Modes
    Evidence: an accepted delivery, and a later delivery of the same message on the link
    Why it matters: The receiver had finished with the message. The receiver now processes the message twice.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Remove a message from the source, or archive the message for this link, as soon as the
    receiver's disposition with the outcome `accepted` arrives. Check every path in the code that puts
    messages back into the queue.
    """
    _report(
        case,
        M_ACCEPT_NORESEND,
        "the sender sends the message again, although the message was accepted on this link (packet "
        f"{fate.packet})",
        fate,
        count,
    )


M_ACC_COUNT: Final = RULES.rule(
    "M-ACC-COUNT",
    "MUST NOT",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def counted_though_accepted(case: Case10, fate: Fate, count: int) -> None:
    """A message was accepted on one link, and the server sends the message with a higher delivery-count on
    another link.

    Demands: The outcome `accepted` must not raise the delivery-count of the message.
    Source: messaging.xml section delivery-state > accepted
    Evidence: the delivery-count in the header of later deliveries
    Why it matters: An accepted delivery is not a failed delivery. Messages whose delivery-count is too high
    may be discarded or moved to a dead-letter queue.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Raise delivery-count only after an outcome that counts as a failed delivery, for example
    `modified` with delivery-failed=true. Leave delivery-count unchanged when the outcome was `accepted`.
    """
    _report(
        case,
        M_ACC_COUNT,
        f"the message has delivery-count {count}, but had delivery-count {fate.count} when it was accepted, "
        "and the outcome `accepted` must not raise this count",
        fate,
        count,
    )


M_REL_COUNT: Final = RULES.rule(
    "M-REL-COUNT",
    "MUST NOT",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def counted_though_released(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a released message again with a higher delivery-count.

    Demands: The outcome `released` must not raise the delivery-count of the message.
    Source: messaging.xml section delivery-state > released
    Evidence: the delivery-count in the header of the next delivery
    Why it matters: A released delivery is not a failed delivery. Messages whose delivery-count is too high
    may be discarded or moved to a dead-letter queue.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: Other receivers may have had the message in the meantime, and their deliveries may
    have failed.
    How to mend it: Leave delivery-count unchanged after the outcome `released`. Raise delivery-count only
    after an outcome that counts as a failed delivery, for example `modified` with delivery-failed=true.
    """
    _report(
        case,
        M_REL_COUNT,
        f"the message has delivery-count {count}, but had delivery-count {fate.count} when it was released, "
        "and the outcome `released` must not raise this count",
        fate,
        count,
    )


M_MOD_COUNT: Final = RULES.rule(
    "M-MOD-COUNT",
    "MUST",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def not_counted_though_failed(case: Case10, fate: Fate, count: int) -> None:
    """After the receiver has sent the outcome `modified` with delivery-failed=true, a server sends the
    message again without a higher delivery-count.

    Demands: The outcome `modified` with delivery-failed=true must raise the delivery-count of the message.
    Source: messaging.xml section delivery-state > modified.delivery-failed
    Evidence: the delivery-count in the header of the next delivery
    Why it matters: No later receiver sees that the delivery failed. A message that no receiver can handle is
    redelivered for ever.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: When a disposition with the outcome `modified` and delivery-failed=true arrives, raise
    delivery-count in the header by one before you send the message again.
    """
    _report(
        case,
        M_MOD_COUNT,
        f"the delivery with delivery-count {fate.count} failed, but the sender sends the message again with "
        f"delivery-count {count} instead of a higher count",
        fate,
        count,
    )


M_REJ_COUNT: Final = RULES.rule(
    "M-REJ-COUNT",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def not_counted_though_rejected(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a rejected message again without a higher delivery-count.

    Demands: The outcome `rejected` must raise the delivery-count of the message by one.
    Source: messaging.xml section delivery-state > rejected; messaging.xml section message-format >
    header.delivery-count
    Evidence: the delivery-count in the header of the next delivery
    Why it matters: No later receiver sees that the message was rejected before. A message that every receiver
    rejects can be redelivered for ever.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: When a disposition with the outcome `rejected` arrives, raise delivery-count in the header
    by one before you send the message again.
    """
    _report(
        case,
        M_REJ_COUNT,
        f"the message with delivery-count {fate.count} was rejected, but the sender sends the message again "
        f"with delivery-count {count} instead of a higher count",
        fate,
        count,
    )


M_HDR_FIRSTACQ: Final = RULES.rule(
    "M-HDR-FIRSTACQ",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def called_first_though_acquired(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a message with first-acquirer=true on a link although another link acquired the message
    earlier.

    Demands: A message may have first-acquirer=true only if no other link has acquired the message before.
    Source: messaging.xml section message-format > header.first-acquirer
    Evidence: earlier deliveries with the same message-id, and the header of the message
    Why it matters: With first-acquirer=true, a receiver wrongly concludes that no other receiver can have
    processed the message.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the other link belonged to another node.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Store with each message whether any link has acquired it. Set first-acquirer to false in
    the header when the message is sent again on another link.
    """
    _report(
        case,
        M_HDR_FIRSTACQ,
        "the message has first-acquirer=true, although it was sent on another link before (packet "
        f"{fate.packet})",
        fate,
        count,
    )


M_REJ_ANNOTATE: Final = RULES.rule(
    "M-REJ-ANNOTATE", "MUST", "definition", warning="A capture can suggest this fault but never prove it."
)


def error_of_rejection_not_annotated(case: Case10, fate: Fate, count: int) -> None:
    """A receiver rejected a message with an error, and the server sends the message again without the
    delivery-annotation `rejected`.

    Demands: The error of a rejection must go into the delivery-annotations of the message under the key
    `rejected`. The drafts csd01 and csprd02 do not contain this demand.
    Source: messaging.xml section delivery-state > rejected.error
    Evidence: the error of the rejection, and the delivery-annotations of a later delivery
    Why it matters: The application that handles rejected messages does not learn why the messages were
    rejected.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. Under the drafts csd01 and csprd02, the rule is always silent, because
    these drafts do not demand the annotation.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: When a disposition with the outcome `rejected` carries an error, store this error in the
    delivery-annotations of the message. Use the key `rejected`, and store the error before you send the
    message again.
    """
    _report(
        case,
        M_REJ_ANNOTATE,
        f"the message was rejected with an error in packet {fate.packet}, but the sender sends the message "
        "again without this error, which the message should carry",
        fate,
        count,
    )


M_MOD_NOTHERE: Final = RULES.rule(
    "M-MOD-NOTHERE",
    "MUST NOT",
    "keyword",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def sent_again_though_undeliverable_here(case: Case10, fate: Fate, count: int) -> None:
    """After the receiver has sent the outcome `modified` with undeliverable-here=true, a server sends the
    message again on the same link.

    Demands: After the outcome `modified` with undeliverable-here=true, the source must not send the message
    on the same link again.
    Source: messaging.xml section delivery-state > modified.undeliverable-here
    Evidence: later deliveries of the message on the same link
    Why it matters: The receiver has reported that it cannot process the message. If the receiver gets the
    message again, the receiver can only release or reject the message.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Remember for each link which messages got the outcome `modified` with
    undeliverable-here=true. Offer these messages only to other links.
    """
    _report(
        case,
        M_MOD_NOTHERE,
        "the sender sends the message again on the same link, although the receiver set "
        f"undeliverable-here=true (packet {fate.packet})",
        fate,
        count,
    )


M_MOD_ANNOT: Final = RULES.rule(
    "M-MOD-ANNOT",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def annotations_not_applied(case: Case10, fate: Fate, count: int, key: str) -> None:
    """A server sends a message again without an annotation that a receiver set with the outcome `modified`.

    Demands: The message-annotations of the outcome `modified` must be added to the message-annotations of the
    message. The new entries must replace entries of the message that have the same key.
    Source: messaging.xml section delivery-state > modified.message-annotations
    Evidence: the message-annotations of the next delivery
    Why it matters: The information that the receiver added for the next receiver is lost.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: When a disposition with the outcome `modified` carries message-annotations, add each entry
    to the message-annotations of the stored message before you send the message again. If the message already
    has an entry with the same key, replace the value of this entry.
    """
    _report(
        case,
        M_MOD_ANNOT,
        f"the sender sends the message again without the annotation {key}, which the receiver added with "
        "the outcome `modified`",
        fate,
        count,
    )


M_DEFAULT_OUTCOME: Final = RULES.rule(
    "M-DEFAULT-OUTCOME",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def sent_again_though_settled_by_default(case: Case10, fate: Fate, count: int) -> None:
    """A server sends a message again, although an earlier delivery on the same link was settled without an
    outcome and the default-outcome of the source is `accepted`.

    Demands: If a delivery is settled without a known outcome of the receiver, the delivery must get the
    default-outcome of the source.
    Source: messaging.xml section distribution-nodes > Message States; messaging.xml section addressing >
    source.default-outcome
    Evidence: a settlement without a state, the default-outcome of the source, and later deliveries
    Why it matters: According to the default-outcome of the source, the message was accepted. The receiver now
    processes the message twice.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the source has no default-outcome.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: When a delivery is settled without an outcome, apply the default-outcome of the source. If
    the default-outcome is the outcome `accepted`, remove the message and do not send it again.
    """
    _report(
        case,
        M_DEFAULT_OUTCOME,
        "the sender sends the message again, although the message's earlier delivery (packet "
        f"{fate.packet}) counts as accepted: the delivery was settled without an outcome, and the "
        "default-outcome of the source is `accepted`",
        fate,
        count,
    )


TX_RET_DEFAULT: Final = RULES.rule(
    "TX-RET-DEFAULT",
    "MUST",
    "keyword",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
)


def sent_again_after_a_rollback(case: Case10, fate: Fate, count: int) -> None:
    """After the rollback of a transaction, a server sends a message again, although the receiver had settled
    the message in the transaction and the default-outcome of the source is `accepted`.

    Demands: After a rollback, a delivery that the controller had settled must get the default-outcome of the
    source.
    Source: transactions.xml section txn-work > Interaction of Settlement with Transactions
    Evidence: the default-outcome of the source, and later deliveries of the message
    Why it matters: According to the default-outcome of the source, the message was accepted. The receiver
    gets the accepted message again.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the source has no default-outcome.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: When a transaction is rolled back, check for each retired delivery whether the controller
    has settled the delivery. Apply the default-outcome of the source to settled deliveries, and do not send
    these deliveries again.
    """
    _report(
        case,
        TX_RET_DEFAULT,
        "the sender sends the message again after the rollback, although the message's earlier delivery "
        f"(packet {fate.packet}) counts as accepted: the delivery is settled, and the default-outcome of "
        "the source is `accepted`",
        fate,
        count,
    )


def _judge_unsettled(case: Case10, fate: Fate, source: Source, here: bool, count: int) -> None:
    if fate.gone:
        return
    if here:
        if source.distribution_mode != "copy":
            sent_again_while_acquired(case, fate, count)
    elif source.distribution_mode == "move" and source.address is not None:
        session = case.session
        other = None if session is None else session.links.get((fate.link, True))
        attach = None if other is None else other.attach
        theirs = None if attach is None else attach.source
        if isinstance(theirs, Source) and theirs.distribution_mode == "move":
            if theirs.address == source.address and session is not None and fate.session == session.number:
                sent_to_another_while_acquired(case, fate, count)


def _judge_modified(case: Case10, fate: Fate, state: Modified, head: Head, here: bool) -> None:
    if state.undeliverable_here and here:
        sent_again_though_undeliverable_here(case, fate, head.count)
    elif state.delivery_failed and head.count <= fate.count:
        not_counted_though_failed(case, fate, head.count)
    elif isinstance(state.message_annotations, Map):
        for key, value in state.message_annotations.pairs:
            if head.annotations.get(str(key)) != value:
                annotations_not_applied(case, fate, head.count, str(key))
                return


def _rolled_back(case: Case10, txn_id: bytes) -> bool:
    """Whether a transaction of the peer was rolled back."""
    transaction = case.ledger.transaction(case.peer.peer, txn_id)
    if transaction is None or transaction.answered_end < 0:
        return False
    return transaction.fail or not transaction.done


def judge_message(case: Case10, session: SessionEnd, link: LinkEnd, message: Message) -> None:
    """Judge a message that a server sends by the messages that it has sent before."""
    me = case.me
    attach = link.attach
    if (
        attach is None
        or not me.whole
        or not me.legible
        or not message.complete
        or message.message_format != 0
    ):
        return
    source = attach.source
    if not isinstance(source, Source) or not message.outline():
        return
    passed = message_digest(case.record, message, link.name)
    fate = None if passed is None else me.messages.fates.get(passed.message_id)
    if passed is None or fate is None or not fate.is_of(passed):
        return
    judge_again(case, session, link, source, fate, head_of(message))


def judge_again(
    case: Case10, session: SessionEnd, link: LinkEnd, source: Source, fate: Fate, head: Head
) -> None:
    """Judge a message that is sent again. source: of its link. fate: what became of it before."""
    count = head.count
    returned = isinstance(fate.state, (Released, Modified, Rejected))
    if returned and fate.link != link.name and source.address is not None and source.address == fate.address:
        if source.distribution_mode != "copy" and head.first:
            called_first_though_acquired(case, fate, count)
    here = fate.link == link.name and fate.session == session.number
    state = fate.state
    if state is None or isinstance(state, Received):
        if not fate.settled:
            _judge_unsettled(case, fate, source, here, count)
        elif here and not fate.presettled and isinstance(source.default_outcome, Accepted):
            sent_again_though_settled_by_default(case, fate, count)
    elif isinstance(state, Accepted):
        if here:
            sent_again_after_acceptance(case, fate, count)
        elif count > fate.count and source.address is not None and source.address == fate.address:
            counted_though_accepted(case, fate, count)
    elif isinstance(state, Released):
        if count > fate.count:
            counted_though_released(case, fate, count)
    elif isinstance(state, Modified):
        _judge_modified(case, fate, state, head, here)
    elif isinstance(state, Rejected):
        if count <= fate.count:
            not_counted_though_rejected(case, fate, count)
        if state.error is not None and not head.rejection:
            error_of_rejection_not_annotated(case, fate, count)
    elif fate.settled and here and isinstance(source.default_outcome, Accepted):
        named = named_in(state)
        if named is not None and _rolled_back(case, named):
            sent_again_after_a_rollback(case, fate, count)
