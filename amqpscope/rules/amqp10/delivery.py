"""Deliveries: delivery-ids, delivery-tags and settlement (transport.xml, "Transferring a Message")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10 import resumed_state, resuming
from amqpscope.rules.amqp10.case import Case10, attach_read
from amqpscope.rules.amqp10.settlement import changes, sender_changes_its_outcome
from amqpscope.rules.amqp10.types import serial_number_that_wraps_elsewhere
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN, Delivery, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = [
    "judge_transfer",
    "judge_transfer_alone",
]

RULES: Final = Rules("amqp10/delivery")


D_TAG_LEN: Final = RULES.rule(
    "D-TAG-LEN", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def tag_too_long(case: Case10, body: Transfer) -> None:
    """A sender uses a delivery-tag of more than 32 octets.

    Demands: A delivery-tag must not have more than 32 octets.
    Source: transport.xml section definitions > delivery-tag
    Evidence: the length of the delivery-tag in the transfer or in the unsettled map
    Why it matters: Receivers store delivery-tags in fields of 32 octets. A receiver may detach the link or
    end the session because of a longer delivery-tag.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Create delivery-tags of at most 32 octets, for example from a counter or a binary UUID. Do
    not use long application keys as delivery-tags.
    """
    tag = body.delivery_tag
    if tag is not None and len(tag) > 32:
        case.report(D_TAG_LEN, f"the delivery-tag has {len(tag)} octets, but the limit is 32")


D_ABORT_MORE: Final = RULES.rule("D-ABORT-MORE", "SHOULD NOT", "keyword", by="sender")


def abort_with_more(case: Case10, body: Transfer) -> None:
    """A sender sends a transfer with both aborted=true and more=true.

    Demands: A transfer with aborted=true should not have more=true.
    Source: transport.xml section performatives > transfer.more
    Evidence: the aborted flag and the more flag of one transfer
    Why it matters: An aborted transfer is the last transfer of its delivery. If an aborting transfer has
    more=true, a receiver may wait for further transfers of the delivery.
    Silent when: never, because the frame alone shows the fault.
    How to mend it: Set more to false in the transfer that aborts a delivery.
    """
    if body.aborted and body.more:
        case.report(
            D_ABORT_MORE,
            "a transfer has both aborted=true and more=true, but an aborted delivery "
            "has no further transfers",
        )


D_ID_PRESENT: Final = RULES.rule(
    "D-ID-PRESENT", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field or amqp:not-allowed"
)


def first_transfer_without_delivery_id(case: Case10) -> None:
    """A sender leaves out the delivery-id in the first transfer of a delivery.

    Demands: The first transfer of a delivery must carry a delivery-id.
    Source: transport.xml section performatives > transfer.delivery-id
    Evidence: the first transfer on the link after a complete delivery
    Why it matters: No disposition can name the delivery, so the receiver can neither settle the delivery nor
    give the delivery an outcome.
    Silent when: the capture lacks octets that were sent after the attach, because the transfer may continue
    an earlier delivery.
    How to mend it: Set delivery-id in the first transfer of every delivery, with the next number of the
    session. Only transfers that continue a delivery may leave out delivery-id.
    """
    case.report(D_ID_PRESENT, "the first transfer of a delivery has no delivery-id")


D_TAG_PRESENT: Final = RULES.rule(
    "D-TAG-PRESENT", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field or amqp:not-allowed"
)


def first_transfer_without_delivery_tag(case: Case10) -> None:
    """A sender leaves out the delivery-tag in the first transfer of a delivery.

    Demands: The first transfer of a delivery must carry a delivery-tag.
    Source: transport.xml section performatives > transfer.delivery-tag; transport.xml section links >
    Transferring a Message
    Evidence: the first transfer on the link after a complete delivery
    Why it matters: When the link is resumed, the peers cannot identify the delivery among the other
    deliveries.
    Silent when: the capture lacks octets that were sent after the attach, because the transfer may continue
    an earlier delivery.
    How to mend it: In the first transfer of every delivery, set a delivery-tag that is unique on the link.
    Set the delivery-tag even when the delivery is sent with settled=true.
    """
    case.report(D_TAG_PRESENT, "the first transfer of a delivery has no delivery-tag")


D_FMT_PRESENT: Final = RULES.rule(
    "D-FMT-PRESENT", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def first_transfer_without_message_format(case: Case10, several: bool) -> None:
    """The first transfer of a delivery has no message-format.

    Demands: The first transfer of a delivery must carry message-format.
    Source: transport.xml section performatives > transfer.message-format
    Evidence: the first transfer on the link after a complete delivery
    Why it matters: Only transfers that continue a delivery may leave out message-format. Without
    message-format, the receiver has to guess how to decode the message.
    Silent when: the capture lacks octets that were sent after the attach. The finding is reported as
    possible, not as certain, when the delivery is a single transfer, because the specification says MUST only
    about deliveries of several transfers.
    Possible because: The specification demands a message-format in the first transfer (with the word MUST)
    only for messages of several transfers.
    How to mend it: Set message-format in the first transfer of every delivery, with the value 0 for AMQP
    messages.
    """
    first = "the first of several transfers" if several else "the only transfer"
    certainty = CERTAIN if several else POSSIBLE
    case.report(D_FMT_PRESENT, f"{first} of a delivery has no message-format", certainty)


def _judge_first_transfer(case: Case10, link: LinkEnd, body: Transfer) -> None:
    if not link.whole:
        return
    if body.delivery_id is None and not body.unread(1):
        first_transfer_without_delivery_id(case)
    if body.delivery_tag is None and not body.unread(2):
        first_transfer_without_delivery_tag(case)
    if body.message_format is None and case.found == 0 and not body.unread(3):
        first_transfer_without_message_format(case, body.more is True or body.unread(5))
    if body.aborted and not body.resume:
        aborted_before_it_began(case)


D_ABORT_ONLYOPEN: Final = RULES.rule(
    "D-ABORT-ONLYOPEN", "illegal", "definition", by="sender", usual_answer="amqp:not-allowed"
)


def aborted_before_it_began(case: Case10) -> None:
    """A sender aborts a delivery with the first transfer of this delivery.

    Demands: A sender may abort only a delivery that it has already begun to send. There is one exception: in
    examples of the specification, the first transfer of a resumed delivery aborts this delivery.
    Source: transport.xml section links > Transferring Large Messages (fragmentation diagrams)
    Evidence: the first transfer of a delivery, if this transfer has aborted=true but not resume=true
    Why it matters: No delivery exists yet that could be aborted. The receiver may wait for a delivery that
    never comes, or may count the aborted transfer as a delivery.
    Silent when: the capture lacks octets that were sent after the attach, or when the delivery is resumed.
    Only possible because: In examples of the specification, the first transfer of a resumed delivery aborts
    this delivery.
    How to mend it: Set aborted=true only in a transfer that continues a delivery. If no transfer of the
    delivery was sent yet, send nothing at all.
    """
    case.report(
        D_ABORT_ONLYOPEN,
        "the first transfer of a delivery has aborted=true, but only a delivery "
        "that has begun can be aborted",
        POSSIBLE,
    )


D_TAG_UNIQUE: Final = RULES.rule(
    "D-TAG-UNIQUE", "MUST", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def tag_in_use(case: Case10, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """A sender uses a delivery-tag again while an earlier delivery with the same delivery-tag may still be
    unsettled.

    Demands: A sender must not use the delivery-tag of an earlier delivery of the link while one of the peers
    may still consider that delivery unsettled.
    Source: transport.xml section links > Transferring a Message
    Evidence: the delivery-tags of unsettled deliveries
    Why it matters: When the link is resumed, the peers cannot distinguish the two deliveries. A message may
    be lost or sent twice.
    Silent when: the settlement of the earlier delivery may not yet have been captured. The rule is also
    silent when the earlier delivery has no delivery-id by which a disposition could settle this delivery.
    How to mend it: Create delivery-tags from a counter of the link. Reuse a delivery-tag only after both
    peers have settled the earlier delivery.
    """
    tag = body.delivery_tag
    if tag is None or body.resume:
        return
    earlier = link.tags.get(tag)
    if earlier is None or session.sent.unsettled.get(int(earlier.number)) is not earlier:
        return
    if link.whole and case.me.whole:
        # The peer settled the delivery, but this end cannot have known that, so the tag was not free.
        case.report(
            D_TAG_UNIQUE,
            f"the delivery-tag is still in use by the unsettled delivery in packet {earlier.packet}",
            CERTAIN,
            {"unsettled_deliveries": len(link.tags)},
            [int(earlier.packet)],
        )


D_ID_UNIQUE: Final = RULES.rule(
    "D-ID-UNIQUE", "MUST", "definition", by="sender", usual_answer="amqp:not-allowed"
)


def delivery_id_in_use(case: Case10, value: int, other: Delivery) -> None:
    """A sender gives a new delivery the delivery-id of a delivery that is still unsettled.

    Demands: As long as a disposition can still name a delivery, the sender of the delivery must not give the
    same delivery-id to another delivery of the session.
    Source: transport.xml section links; transport.xml section definitions > delivery-number
    Evidence: the delivery-ids on all links of the session in one direction
    Why it matters: A disposition with this delivery-id can be about either of the two deliveries. The wrong
    message may be settled.
    Silent when: the capture lacks octets that were sent after the session's begin.
    How to mend it: Assign delivery-ids from one counter per session that all links share, not from one
    counter per link. Increase the counter under a lock if several threads send.
    """
    case.report(
        D_ID_UNIQUE,
        f"delivery-id {value} is still in use by the unsettled delivery in packet {other.packet}",
        CERTAIN,
        {"delivery_id": value},
        [int(other.packet)],
    )


D_ID_SEQ: Final = RULES.rule("D-ID-SEQ", "SHOULD", "definition", by="sender", usual_answer="amqp:not-allowed")


def delivery_id_out_of_sequence(case: Case10, value: int, number: i64, last: i64) -> None:
    """A sender gives a new delivery a delivery-id that is not the next one after the last delivery-id of the
    session.

    Demands: All links of a session that send in the same direction share one sequence of delivery-ids. Each
    new delivery-id should be one higher than the last delivery-id.
    Source: transport.xml section sessions; transport.xml section links; transport.xml section definitions >
    delivery-number
    Evidence: the delivery-ids of the first transfers of deliveries, in the order in which these transfers
    were sent
    Why it matters: All delivery-ids of a session come from one sequence. A receiver that settles ranges of
    delivery-ids settles the wrong deliveries.
    Silent when: the capture lacks octets that were sent after the session's begin, or when earlier deliveries
    without a delivery-id explain the gap. Two other rules report a delivery-id that an unsettled delivery
    already has (D-ID-UNIQUE) and a delivery-id that wraps at a wrong number (T-SERIAL). The finding is
    reported as possible, not as certain, when the sender skips delivery-ids and repeats none.
    Possible because: The {peer} skips delivery-ids but uses none twice. The specification can be read as
    allowing gaps between delivery-ids.
    How to mend it: Assign delivery-ids from one counter per session that all links share, and write the
    transfers in the order of their delivery-ids. Take the next delivery-id under the same lock that guards
    the sending of frames.
    """
    case.report(
        D_ID_SEQ,
        f"delivery-id {value} comes after delivery-id {raw(last)}, but each delivery-id should be one "
        "higher than the one before",
        CERTAIN if number <= last else POSSIBLE,
        {"last_delivery_id": int(raw(last))},
    )


# Pairs of successive ids of peers that wrap at 2^31, skip 0, or wrap one number too early.
_WRAPS: Final = ((0x7FFFFFFF, 0), (0xFFFFFFFF, 1), (0xFFFFFFFE, 0))


def _judge_delivery_id(case: Case10, session: SessionEnd, body: Transfer) -> None:
    value = body.delivery_id
    last = session.sent.last
    if value is None or last == UNKNOWN or not session.whole:
        return
    number = nearest(value, last)
    if last < number <= last + 1 + session.sent.unnumbered:
        return
    other = session.sent.unsettled.get(int(number))
    if other is not None:
        delivery_id_in_use(case, value, other)
    elif (raw(last), value) in _WRAPS:
        certainty = CERTAIN if number <= last else POSSIBLE
        serial_number_that_wraps_elsewhere(case, value, int(raw(last)), certainty)
    else:
        delivery_id_out_of_sequence(case, value, number, last)


D_ID_CONT: Final = RULES.rule(
    "D-ID-CONT", "MUST NOT", "wording", by="sender", usual_answer="amqp:not-allowed"
)


def continuation_with_other_delivery_id(case: Case10, delivery: Delivery, value: int) -> None:
    """A sender changes the delivery-id within a delivery, so that a later transfer has another delivery-id
    than the first transfer.

    Demands: A later transfer of a delivery may repeat the delivery-id, but must not change it.
    Source: transport.xml section performatives > transfer.delivery-id
    Evidence: the delivery-id of later transfers of a delivery
    Why it matters: By its delivery-id, the transfer belongs to another delivery, and transfers of two
    deliveries must not interleave on a link. The receiver cannot assemble the message.
    Silent when: the capture lacks octets that were sent after the attach.
    How to mend it: In later transfers of a delivery, repeat the delivery-id of the first transfer or leave
    the delivery-id out. Do not increase delivery-id for each transfer. Complete a delivery before you begin
    the next delivery.
    """
    case.report(
        D_ID_CONT,
        f"delivery-id changes from {raw(delivery.number)} to {value} within a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


D_NOINTERLEAVE: Final = RULES.rule(
    "D-NOINTERLEAVE", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def deliveries_interleave(case: Case10, delivery: Delivery, value: int) -> None:
    """A sender begins a new delivery on a link before the previous delivery on this link is complete.

    Demands: Transfers of two deliveries on the same link must not interleave.
    Source: transport.xml section links > Transferring Large Messages
    Evidence: a transfer with a new delivery-tag or delivery-id after a transfer with more=true on the same
    handle
    Why it matters: The receiver cannot tell which transfer belongs to which delivery. The receiver may join
    parts of two messages into one message.
    Silent when: the capture lacks octets that were sent after the attach of the link.
    How to mend it: Send all transfers of one delivery on a link before you start the next delivery on that
    link. A common cause is that several threads send on the same link without a lock around the whole
    message.
    """
    case.report(
        D_NOINTERLEAVE,
        f"delivery {value} begins while delivery {raw(delivery.number)} of the link is not complete",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


D_TAG_CONT: Final = RULES.rule(
    "D-TAG-CONT",
    "MUST NOT",
    "inferred",
    by="sender",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:not-allowed",
)


def continuation_with_other_delivery_tag(case: Case10, delivery: Delivery) -> None:
    """The delivery-tag of a continuation transfer differs from the delivery-tag of the first transfer of the
    delivery.

    Demands: A later transfer of a delivery may repeat the delivery-tag, but must not change it.
    Source: transport.xml section performatives > transfer.delivery-tag
    Evidence: the delivery-tag of later transfers of a delivery
    Why it matters: The receiver cannot tell to which delivery the transfer belongs, and may add the payload
    to the wrong message or refuse the transfer.
    Silent when: the capture lacks octets that were sent after the attach of the link.
    How to mend it: Set delivery-tag on the first transfer of a delivery. On continuation transfers, omit the
    delivery-tag or repeat the same delivery-tag. Generate the delivery-tag once per delivery, not once per
    transfer.
    """
    case.report(
        D_TAG_CONT,
        "the delivery-tag changes within a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


D_FMT_CONT: Final = RULES.rule(
    "D-FMT-CONT",
    "MUST NOT",
    "inferred",
    by="sender",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:not-allowed",
)


def continuation_with_other_message_format(case: Case10, delivery: Delivery) -> None:
    """The message-format of a continuation transfer differs from the message-format of the first transfer of
    the delivery.

    Demands: A later transfer of a delivery may repeat the message-format, but must not change it.
    Source: transport.xml section performatives > transfer.message-format
    Evidence: the message-format of later transfers of a delivery
    Why it matters: A message has exactly one format. The receiver cannot know which of the two formats the
    payload has.
    Silent when: the capture lacks octets that were sent after the attach of the link.
    How to mend it: Set message-format on the first transfer of a delivery. On continuation transfers, omit
    the message-format or repeat the same message-format.
    """
    case.report(
        D_FMT_CONT,
        "the message-format changes within a delivery",
        CERTAIN,
        {"delivery_id": int(raw(delivery.number))},
        [int(delivery.packet)],
    )


def _judge_continuation(case: Case10, link: LinkEnd, delivery: Delivery, body: Transfer) -> None:
    if not link.whole:
        return
    known = delivery.number != UNKNOWN
    if known and body.delivery_id is not None and body.delivery_id != raw(delivery.number):
        if body.delivery_tag is not None and body.delivery_tag != delivery.tag:
            deliveries_interleave(case, delivery, body.delivery_id)
            return
        continuation_with_other_delivery_id(case, delivery, body.delivery_id)
    elif body.delivery_tag is not None and delivery.tag is not None and body.delivery_tag != delivery.tag:
        continuation_with_other_delivery_tag(case, delivery)
    elif (
        body.message_format is not None
        and delivery.message_format is not None
        and body.message_format != delivery.message_format
    ):
        continuation_with_other_message_format(case, delivery)
    if body.resume:
        resuming.judge_continuation(case, link, delivery, body)


D_SNDMODE_UNSETTLED: Final = RULES.rule(
    "D-SNDMODE-UNSETTLED", "MUST", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def settled_on_unsettled_link(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """A sender sends a transfer with settled=true on a link with snd-settle-mode `unsettled`.

    Demands: On a link with snd-settle-mode `unsettled`, a transfer must not have settled=true unless it
    aborts the delivery.
    Source: transport.xml section performatives > transfer.settled; transport.xml section definitions >
    sender-settle-mode
    Evidence: the snd-settle-mode of the attach, and the settled flags of transfers
    Why it matters: The receiver expects that it can give every delivery an outcome. The sender forgets the
    delivery at once, so the sender can neither act on a rejection nor send a lost message again.
    Silent when: the attach of the sender was not captured, or when the capture lacks octets that were sent
    after this attach. The rule is also silent when the delivery is aborted, or when the delivery is resumed.
    How to mend it: Send every delivery with settled=false on a link attached with snd-settle-mode
    `unsettled`. If you want to send settled deliveries, attach with snd-settle-mode `settled` or `mixed`.
    """
    attach = link.attach
    if body.settled and not body.aborted and not body.resume and attach is not None and link.whole:
        if link.open is not None and link.open.resumed:
            return
        if attach.snd_settle_mode == 0:
            case.report(
                D_SNDMODE_UNSETTLED,
                "the sender sends a transfer with settled=true on a link with snd-settle-mode `unsettled`",
                CERTAIN,
                {"snd_settle_mode": "unsettled"},
            )


D_SNDMODE_SETTLED: Final = RULES.rule(
    "D-SNDMODE-SETTLED", "MUST", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def unsettled_on_settled_link(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """On a link with snd-settle-mode `settled`, a sender completes a delivery without settled=true on any of
    the delivery's transfers.

    Demands: On a link with snd-settle-mode `settled`, every delivery must have settled=true on at least one
    of its transfers.
    Source: transport.xml section performatives > transfer.settled; transport.xml section definitions >
    sender-settle-mode
    Evidence: the snd-settle-mode of the attach, and the settled flags of transfers
    Why it matters: The receiver expects settled deliveries and does not settle the delivery itself. The
    delivery then stays unsettled at the sender and occupies memory there.
    Silent when: the capture lacks octets that were sent after the attach of the link.
    How to mend it: If a link is attached with snd-settle-mode `settled`, set settled=true on every delivery,
    at the latest on the last transfer of the delivery. If you need outcomes, attach with snd-settle-mode
    `unsettled` or `mixed`.
    """
    attach = link.attach
    if attach is None or attach.snd_settle_mode != 1 or body.more or not link.whole:
        return
    before = link.open is not None and link.open.settled
    if not body.settled and not before and not body.aborted:
        case.report(
            D_SNDMODE_SETTLED,
            "the sender leaves a delivery unsettled on a link with snd-settle-mode `settled`",
            CERTAIN,
            {"snd_settle_mode": "settled"},
        )


D_RCVMODE_RAISE: Final = RULES.rule(
    "D-RCVMODE-RAISE", "illegal", "wording", by="sender", usual_answer="amqp:invalid-field"
)


def settle_mode_raised(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """A sender asks for rcv-settle-mode `second` in a transfer on a link whose agreed rcv-settle-mode is
    `first`.

    Demands: A transfer must not ask for rcv-settle-mode `second` on a link whose receiver attached with
    rcv-settle-mode `first`.
    Source: transport.xml section performatives > transfer.rcv-settle-mode
    Evidence: the rcv-settle-mode of the receiver's attach and of the transfer
    Why it matters: The receiver would have to wait until the sender settles the delivery, but the receiver
    has not agreed to wait. The receiver may refuse the transfer with amqp:invalid-field.
    Silent when: the attach of the receiver was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach, or when a later transfer may settle
    the delivery.
    Possible because: The transfer is no fault if the {peer} had not yet read the attach of the {other}. The
    attach had reached the host of the {peer}, but no frame of the {peer} proves that the {peer} had read it.
    The transfer is also no fault if a later transfer settles the delivery.
    How to mend it: Leave rcv-settle-mode unset in transfers unless the receiver's attach agreed to
    `second`. Use the mode in the receiver's attach, not the mode that your own attach asked for.
    """
    theirs = link.peer_attach
    if body.rcv_settle_mode != 1 or theirs is None or body.settled or not link.whole:
        return
    if not theirs.rcv_settle_mode:
        case.report(
            D_RCVMODE_RAISE,
            "a transfer has rcv-settle-mode `second`, but the receiver attached with rcv-settle-mode `first`",
            POSSIBLE if body.more else attach_read(case, link),
            {"rcv_settle_mode": "first"},
        )


def judge_transfer_alone(case: Case10, body: Transfer) -> None:
    """Judge a transfer by itself."""
    tag_too_long(case, body)
    abort_with_more(case, body)


def judge_transfer(case: Case10, session: SessionEnd, link: LinkEnd, body: Transfer) -> None:
    """Judge a transfer as a part of its delivery."""
    delivery = link.open
    if delivery is None:
        _judge_first_transfer(case, link, body)
        tag_in_use(case, session, link, body)
        if body.resume or link.resumption.listed is not None:
            resuming.judge_first(case, link, body)
        _judge_delivery_id(case, session, body)
    else:
        _judge_continuation(case, link, delivery, body)
        if body.state is not None and changes(delivery.state, body.state):
            sender_changes_its_outcome(case, delivery)
    if isinstance(body.state, Received) and link.whole and (delivery is not None or not body.resume):
        resuming.received_state_from_sender(case)
    if not body.more and not body.aborted and (body.resume or (delivery is not None and delivery.resumed)):
        resumed_state.judge_completion(case, link, body)
    settled_on_unsettled_link(case, link, body)
    unsettled_on_settled_link(case, link, body)
    settle_mode_raised(case, link, body)
