"""Wrong refusals and wrong acceptances: a peer's answer shows them.

Why a peer refuses shows only in the condition it gives and in what came just before; so nothing here is more
than possible. Sources: messaging.xml, "message-format" and "addressing"; types.xml, "composite-types".
"""

from itertools import islice
from typing import Final

from amqpscope.limits import MAX_REFUSED
from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import DURABLE, OPTED, RESERVED
from dissectors.amqp10.messaging import Accepted, Source
from dissectors.amqp10.performatives import Disposition, Error
from dissectors.wire import i64

__all__ = ["judge_close", "judge_detach", "judge_disposition"]

RULES: Final = Rules("amqp10/refusal")


_NOT_IMPLEMENTED: Final = "amqp:not-implemented"
_PRECONDITION_FAILED: Final = "amqp:precondition-failed"

# The conditions with which a peer refuses a field.
_OF_A_FIELD: Final = ("amqp:decode-error", "amqp:invalid-field", "amqp:not-implemented")

# The conditions with which a peer refuses an outcome.
_OF_AN_OUTCOME: Final = (
    "amqp:illegal-state",
    "amqp:invalid-field",
    "amqp:not-allowed",
    "amqp:not-implemented",
)


M_ANN_XOPT_IGNORE: Final = RULES.rule(
    "M-ANN-XOPT-IGNORE",
    "MUST",
    "csd-only",
    by="receiver",
    warning="Only a draft of the specification makes this demand.",
)


def annotation_that_may_be_ignored_refused(case: Case10, delivery: Delivery) -> None:
    """A receiver detaches the link with amqp:not-implemented although the keys of all annotations that it
    received begin with `x-opt-`.

    Demands: A receiver must ignore annotations with unknown keys that begin with `x-opt-`.
    Source: (only implied in messaging.xml)
    Evidence: the keys of the annotations, and the error of the detach
    Why it matters: Senders expect that every receiver ignores annotations with unknown keys that begin with
    `x-opt-`. The refusal stops all deliveries on the link.
    Silent when: another delivery on the link has annotations with other keys, and the receiver has sent no
    outcome for that delivery. Under the final specification, the rule is always silent, because the final
    specification only implies this demand.
    Only possible because: The {peer} may have another reason for the error.
    How to mend it: Ignore annotations with unknown keys that begin with `x-opt-` and process the message. Do
    not detach the link because of an unknown key that begins with `x-opt-`.
    """
    case.report(
        M_ANN_XOPT_IGNORE,
        "the receiver detaches the link with amqp:not-implemented, although all received annotation keys "
        "begin with `x-opt-`, and unknown keys of this form must be ignored",
        POSSIBLE,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


M_ANN_UNKNOWN_DETACH: Final = RULES.rule(
    "M-ANN-UNKNOWN-DETACH",
    "MUST",
    "keyword",
    by="receiver",
    warning="A capture can suggest this fault but never prove it.",
    answer="amqp:not-implemented",
)


def reserved_annotation_accepted(case: Case10, delivery: Delivery) -> None:
    """A receiver accepts a message that has a reserved annotation key, although no specification known to
    amqpscope defines this key.

    Demands: A receiver must detach the link with amqp:not-implemented when a message has an annotation with
    an unknown key that does not begin with `x-opt-`. In one place, the drafts csd01 and csprd02 print the
    prefix as `x-opt`, without the last hyphen.
    Source: messaging.xml section message-format > annotations
    Evidence: the keys of the annotations, and the receiver's answer
    Why it matters: A receiver that does not know an annotation key must detach the link. If the receiver
    keeps the link, the effect of the annotation is lost.
    Silent when: the annotation key begins with `x-`, when the sender settled the delivery, or when a part of
    the message was not captured.
    Only possible because: The {peer} may know the key of the annotation.
    How to mend it: Compare the keys of annotations with the keys that your implementation supports. If a key
    is unknown and does not begin with `x-opt-`, detach the link with `amqp:not-implemented` instead of
    accepting the message.
    """
    case.report_once(
        M_ANN_UNKNOWN_DETACH,
        "the receiver accepts a message with a reserved annotation key that no known specification "
        "defines, instead of detaching the link with amqp:not-implemented",
        POSSIBLE,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


M_HDR_DURABLE_REJECT: Final = RULES.rule(
    "M-HDR-DURABLE-REJECT", "SHOULD", "lower-case", by="receiver", answer="amqp:precondition-failed"
)


def durable_message_refused_by_detach(case: Case10, delivery: Delivery) -> None:
    """A receiver detaches the link with amqp:precondition-failed because of a durable message that it could
    have rejected.

    Demands: A receiver that cannot store a durable message should reject the message with
    amqp:precondition-failed if the source allows the outcome `rejected`. If the source does not allow this
    outcome, the receiver should detach the link with amqp:precondition-failed. The final specification writes
    the keywords of these demands in lower case. The draft csprd02 writes the keywords SHOULD and MUST in
    upper case.
    Source: messaging.xml section message-format > header.durable
    Evidence: the outcomes of the source, the receiver's disposition, and the error of the detach
    Why it matters: A rejected message leaves the link open for other messages. The detach stops all
    deliveries on the link.
    Silent when: the sender's source does not list the outcome `rejected`, or when the receiver has sent an
    outcome for the message.
    Only possible because: The {peer} may have another reason for the error.
    How to mend it: If you cannot store a durable message and the source lists `amqp:rejected:list` among its
    outcomes, reject the message with the error `amqp:precondition-failed`. Detach the link only if the source
    does not list the outcome `rejected`.
    """
    case.report(
        M_HDR_DURABLE_REJECT,
        "the receiver detaches the link with amqp:precondition-failed instead of rejecting a durable message",
        POSSIBLE,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


M_OUTCOMES_ACCEPTED: Final = RULES.rule("M-OUTCOMES-ACCEPTED", "MUST", "lower-case", by="sender")


def accepted_refused(case: Case10, condition: str) -> None:
    """A sender's source lists neither outcomes nor a default-outcome, and the sender detaches the link with
    an error after the receiver has accepted a delivery.

    Demands: A source with neither outcomes nor a default-outcome must support the outcome `accepted`. The
    draft csprd02 writes this demand with the keyword MUST.
    Source: messaging.xml section addressing > source.outcomes
    Evidence: the source in the sender's attach, and the sender's reaction to a disposition with the outcome
    `accepted`
    Why it matters: If the source lists neither outcomes nor a default-outcome, the outcome `accepted` is the
    only outcome on which every receiver can rely.
    Silent when: the disposition with the outcome `accepted` did not arrive immediately before the detach.
    Only possible because: The {peer} may have another reason for the error.
    How to mend it: Support the outcome `accepted` on every link whose source has neither outcomes nor a
    default-outcome. If your source does not support this outcome, list the supported outcomes in the source
    of your attach.
    """
    case.report(
        M_OUTCOMES_ACCEPTED,
        "the receiver sends the outcome `accepted`, which is allowed because the sender's source lists no "
        "outcomes, but the sender then detaches the link with an error",
        POSSIBLE,
        {"condition": condition},
    )


T_COMP_MULT_EMPTY: Final = RULES.rule("T-COMP-MULT-EMPTY", "SHOULD", "lower-case", by="receiver")


def empty_array_refused(case: Case10, field: str, condition: str) -> None:
    """A peer receives a field that holds an empty array, and answers with an error that is probably about
    this field.

    Demands: In a field that may hold several values, a peer should treat an empty array of the right element
    type like null.
    Source: types.xml section composite-types
    Evidence: a field with an empty array in an open or attach, and the error condition of the close or detach
    that follows
    Why it matters: A null value and an empty array mean the same, and encoders use either form. The refusal
    makes the peer incompatible with encoders that send empty arrays.
    Silent when: any other frame on the link or the connection could also be the reason for the error.
    Only possible because: The {peer} may have another reason for the error.
    How to mend it: In a field that may hold several values, decode an empty array of the right element type
    exactly like null. Do not require at least one element in such an array.
    """
    case.report(
        T_COMP_MULT_EMPTY,
        f"the other peer's field {field} is an empty array, which should be treated like null, but the peer "
        f"answers with the error {condition}",
        POSSIBLE,
        {"field": field, "condition": condition},
    )


def judge_detach(case: Case10, session: SessionEnd, link: LinkEnd, error: Error) -> None:
    """Judge a detach with an error."""
    condition = error.condition
    if condition is None:
        return
    if link.sender:
        if condition in _OF_AN_OUTCOME and _just_accepted(case, link) and _lists_none(link):
            accepted_refused(case, str(condition))
    elif condition in (_NOT_IMPLEMENTED, _PRECONDITION_FAILED):
        _judge_receiver(case, session, link, condition)
    theirs = link.peer_attach
    if condition in _OF_A_FIELD and theirs is not None and link.credit.count == link.initial_count:
        if link.receipt.count == link.initial_count and not link.receipt.receiving:
            field = _empty_array(theirs)
            if field:
                empty_array_refused(case, field, str(condition))


def judge_close(case: Case10, error: Error) -> None:
    """Judge a close with an error."""
    opened = case.me.peer_open
    condition = error.condition
    if (
        condition is not None
        and condition in _OF_A_FIELD
        and opened is not None
        and case.me.channels.begun == 0
    ):
        field = _empty_array(opened)
        if field:
            empty_array_refused(case, field, str(condition))


def judge_disposition(case: Case10, session: SessionEnd, body: Disposition) -> None:
    """Judge a receiver's disposition after messages with reserved annotations."""
    if body.role is not True or body.first is None or not isinstance(body.state, Accepted):
        return
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if theirs is None:
        return
    for delivery in case.peer.named(theirs, body):
        if delivery.traits & RESERVED:
            reserved_annotation_accepted(case, delivery)
            return


def _judge_receiver(case: Case10, session: SessionEnd, link: LinkEnd, condition: str) -> None:
    theirs = case.peer.sessions.get(int(session.peer_channel))
    if theirs is None:
        return
    sender = theirs.links.get((link.name, True))
    if sender is None:
        return
    wanted: i64 = OPTED if condition == _NOT_IMPLEMENTED else DURABLE
    found: Delivery | None = None
    for delivery in islice(reversed(sender.tags.values()), MAX_REFUSED):
        if session.received.end_of(raw(delivery.number)) < 0 or _answered(session, delivery):
            continue
        if wanted == OPTED and delivery.traits & RESERVED:
            return
        if delivery.traits & wanted and found is None:
            found = delivery
    if found is None:
        return
    if wanted == OPTED:
        annotation_that_may_be_ignored_refused(case, found)
        return
    attach = link.peer_attach
    source = None if attach is None else attach.source
    if isinstance(source, Source) and source.outcomes and "amqp:rejected:list" in source.outcomes:
        durable_message_refused_by_detach(case, found)


def _answered(session: SessionEnd, delivery: Delivery) -> bool:
    """Whether this receiver has settled a delivery or stated its outcome."""
    number = delivery.number
    return session.received.settled.cover(number, number) or int(number) in session.received.stated


def _just_accepted(case: Case10, link: LinkEnd) -> bool:
    """Whether the last received outcome, accepted, was for this link, and nothing was sent since."""
    me = case.me
    return (
        me.messages.accepted_on == link.name and me.messages.accepted_end > me.stream.last_acknowledged >= 0
    )


def _lists_none(link: LinkEnd) -> bool:
    attach = link.attach
    source = None if attach is None else attach.source
    if not isinstance(source, Source) or source.odd:
        return False
    return not source.outcomes and source.default_outcome is None


def _empty_array(composite: Composite) -> str:
    """The path of a field that holds an array without values, "" if no field does."""
    for field, value in composite.fields():
        if field.multiple and value == []:
            return f"{composite.definition().name}.{field.name}"
        if isinstance(value, Composite):
            inner = _empty_array(value)
            if inner:
                return inner
    return ""
