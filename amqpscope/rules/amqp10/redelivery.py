"""Messages that a server sends again, held against what was said of them (messaging.xml, "Message States").

A message is the same if it has the same message-id and the same bare message. Nothing here is more than
possible: it may have been sent to the server a second time.
"""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.message_digest import message_digest
from amqpscope.tracking.amqp10.redelivery import Fate, delivery_count, says_first
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transaction_names import named_in
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Accepted, Modified, Received, Rejected, Released, Source
from dissectors.amqp10.values import Map

__all__ = ["judge_message"]


def _report(case: Case, rule: str, message: str, fate: Fate, count: int) -> None:
    evidence: dict[str, object] = {"delivery_count": count, "delivery_count_before": int(fate.count)}
    case.report(rule, message, POSSIBLE, evidence, [int(fate.packet)])


def sent_again_while_acquired(case: Case, fate: Fate, count: int) -> None:
    """A message is sent again on a link on which its delivery before is not settled.

    Why it matters: the receiver has it already, and may be about to accept it; now it has it twice.
    Silent when: the message has no id, is not among the first of the connection, or the source's
    distribution-mode is copy.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-ACQUIRED-HOLD",
        f"the message is sent again, its delivery in packet {fate.packet} is not settled",
        fate,
        count,
    )


def sent_to_another_while_acquired(case: Case, fate: Fate, count: int) -> None:
    """A message that one link has acquired is sent on another one of the same node.

    Why it matters: two receivers have the message that only one was to have.
    Silent when: the message has no id, is not among the first of the connection, or not both sources say that
    their distribution-mode is move.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-ACQUIRED-EXCL",
        f"the message is sent on another link, its delivery in packet {fate.packet} is not settled",
        fate,
        count,
    )


def sent_again_after_acceptance(case: Case, fate: Fate, count: int) -> None:
    """A message is sent again on a link on which it was accepted.

    Why it matters: it was done with; the receiver does it twice.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-ACCEPT-NORESEND",
        f"the message is sent again, it was accepted on this link (packet {fate.packet})",
        fate,
        count,
    )


def counted_though_accepted(case: Case, fate: Fate, count: int) -> None:
    """A message that was accepted on one link comes on another one with a higher delivery-count.

    Why it matters: to be accepted is no failure; what fails too often is given up.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-ACC-COUNT",
        f"delivery-count is {count}, it was {fate.count} when the message was accepted",
        fate,
        count,
    )


def counted_though_released(case: Case, fate: Fate, count: int) -> None:
    """A message that was released comes again with a higher delivery-count.

    Why it matters: to be released is no failure; what fails too often is given up.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: Others may have had it meanwhile.
    """
    _report(
        case,
        "amqp10/M-REL-COUNT",
        f"delivery-count is {count}, it was {fate.count} when the message was released",
        fate,
        count,
    )


def not_counted_though_failed(case: Case, fate: Fate, count: int) -> None:
    """A message that was modified with delivery-failed comes again without a higher delivery-count.

    Why it matters: nobody sees that it failed; a message that nobody can handle goes round for ever.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-MOD-COUNT",
        f"delivery-count is {count}, it was {fate.count} when the delivery failed",
        fate,
        count,
    )


def not_counted_though_rejected(case: Case, fate: Fate, count: int) -> None:
    """A message that was rejected comes again without a higher delivery-count.

    Why it matters: nobody sees that it was rejected.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-REJ-COUNT",
        f"delivery-count is {count}, it was {fate.count} when the message was rejected",
        fate,
        count,
    )


def called_first_though_acquired(case: Case, fate: Fate, count: int) -> None:
    """A message that one link had acquired and gave back is sent on another one as if it was the first.

    Why it matters: first-acquirer says that nobody can have worked on the message; somebody had it.
    Silent when: the message has no id, is not among the first of the connection, or the other link was of
    another node.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-HDR-FIRSTACQ",
        f"first-acquirer is true, and another link had the message (packet {fate.packet})",
        fate,
        count,
    )


def error_of_rejection_not_annotated(case: Case, fate: Fate, count: int) -> None:
    """A message that was rejected with an error comes again without the delivery-annotation `rejected`.

    Why it matters: who handles rejected messages does not learn why they were.
    Silent when: the message has no id, or is not among the first of the connection; by the drafts always,
    they do not ask for it.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-REJ-ANNOTATE",
        f"the message comes without the error that it was rejected with (packet {fate.packet})",
        fate,
        count,
    )


def sent_again_though_undeliverable_here(case: Case, fate: Fate, count: int) -> None:
    """A message that was modified with undeliverable-here is sent on the same link again.

    Why it matters: the receiver has said that it can do nothing with it.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-MOD-NOTHERE",
        f"the message is sent again, it was undeliverable here (packet {fate.packet})",
        fate,
        count,
    )


def annotations_not_applied(case: Case, fate: Fate, count: int, key: str) -> None:
    """A message comes again without an annotation that it was modified with.

    Why it matters: what the receiver wanted to tell the next one is lost.
    Silent when: the message has no id, or is not among the first of the connection.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-MOD-ANNOT",
        f"the message comes without the annotation {key} that it was modified with",
        fate,
        count,
    )


def sent_again_though_settled_by_default(case: Case, fate: Fate, count: int) -> None:
    """A message is sent again that was settled without a state, where the default outcome is accepted.

    Why it matters: it was done with, as the source itself had said; the receiver does it twice.
    Silent when: the message has no id, is not among the first of the connection, or the source says no
    default-outcome.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/M-DEFAULT-OUTCOME",
        f"the message is sent again, it was settled (packet {fate.packet}) where accepted is the default",
        fate,
        count,
    )


def sent_again_after_a_rollback(case: Case, fate: Fate, count: int) -> None:
    """A message is sent again whose settled retirement was rolled back, where accepted is the default.

    Why it matters: a delivery that its receiver has settled takes the default outcome then.
    Silent when: the message has no id, is not among the first of the connection, or the source says no
    default-outcome.
    Only possible because: No capture can prove it.
    """
    _report(
        case,
        "amqp10/TX-RET-DEFAULT",
        f"the message is sent again, its settled retirement (packet {fate.packet}) was rolled back where "
        "accepted is the default",
        fate,
        count,
    )


def _judge_unsettled(case: Case, link: LinkEnd, fate: Fate, source: Source, here: bool, count: int) -> None:
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


def _judge_modified(
    case: Case, fate: Fate, state: Modified, message: Message, here: bool, count: int
) -> None:
    if state.undeliverable_here and here:
        sent_again_though_undeliverable_here(case, fate, count)
    elif state.delivery_failed and count <= fate.count:
        not_counted_though_failed(case, fate, count)
    elif isinstance(state.message_annotations, Map):
        kept: dict[object, object] = {}
        for section in message.sections():
            if section.name == "message-annotations" and isinstance(section.value, Map):
                kept = {str(key): value for key, value in section.value.pairs}
        for key, value in state.message_annotations.pairs:
            if kept.get(str(key)) != value:
                annotations_not_applied(case, fate, count, str(key))
                return


def _annotated(message: Message) -> bool:
    """Whether it has the delivery-annotation that holds the error of a rejection."""
    for section in message.sections():
        if section.name == "delivery-annotations" and isinstance(section.value, Map):
            return section.value.get("rejected") is not None
    return False


def _rolled_back(case: Case, txn_id: bytes) -> bool:
    """Whether a transaction of the peer's was rolled back."""
    transaction = case.ledger.transaction(case.peer.peer, txn_id)
    if transaction is None or transaction.answered_end < 0:
        return False
    return transaction.fail or not transaction.done


def judge_message(case: Case, session: SessionEnd, link: LinkEnd, message: Message) -> None:
    """The rules about a message that a server sends, beside those it has sent."""
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
    fate = None if passed is None else me.fates.get(passed.message_id)
    if passed is None or fate is None or not fate.is_of(passed):
        return
    count = delivery_count(passed.header)
    returned = isinstance(fate.state, (Released, Modified, Rejected))
    if returned and fate.link != link.name and source.address is not None and source.address == fate.address:
        if source.distribution_mode != "copy" and says_first(passed.header):
            called_first_though_acquired(case, fate, count)
    here = fate.link == link.name and fate.session == session.number
    state = fate.state
    if state is None or isinstance(state, Received):
        if not fate.settled:
            _judge_unsettled(case, link, fate, source, here, count)
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
        _judge_modified(case, fate, state, message, here, count)
    elif isinstance(state, Rejected):
        if count <= fate.count:
            not_counted_though_rejected(case, fate, count)
        if state.error is not None and not _annotated(message):
            error_of_rejection_not_annotated(case, fate, count)
    elif fate.settled and here and isinstance(source.default_outcome, Accepted):
        named = named_in(state)
        if named is not None and _rolled_back(case, named):
            sent_again_after_a_rollback(case, fate, count)


RULES = {
    "amqp10/M-ACQUIRED-HOLD": sent_again_while_acquired,
    "amqp10/M-ACQUIRED-EXCL": sent_to_another_while_acquired,
    "amqp10/M-ACCEPT-NORESEND": sent_again_after_acceptance,
    "amqp10/M-ACC-COUNT": counted_though_accepted,
    "amqp10/M-REL-COUNT": counted_though_released,
    "amqp10/M-MOD-COUNT": not_counted_though_failed,
    "amqp10/M-HDR-FIRSTACQ": called_first_though_acquired,
    "amqp10/M-REJ-ANNOTATE": error_of_rejection_not_annotated,
    "amqp10/M-REJ-COUNT": not_counted_though_rejected,
    "amqp10/M-MOD-NOTHERE": sent_again_though_undeliverable_here,
    "amqp10/M-MOD-ANNOT": annotations_not_applied,
    "amqp10/M-DEFAULT-OUTCOME": sent_again_though_settled_by_default,
    "amqp10/TX-RET-DEFAULT": sent_again_after_a_rollback,
}
