"""Links: handles, attaches and credit (transport.xml, "links", "Flow Control")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10 import attachment, counting
from amqpscope.rules.amqp10.case import Case10, attach_read
from amqpscope.rules.amqp10.delivery import D_TAG_LEN
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.legibility import LINK, LINKS, SESSION
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import HANDLE, SEND_ATTACH, SEND_DETACH, SEND_FRAME
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Attach, Flow, Transfer
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Described

__all__ = [
    "detach_on_unattached_handle",
    "flow_on_unattached_handle",
    "judge_attach",
    "judge_attach_alone",
    "judge_flow",
    "judge_transfer",
    "transfer_on_unattached_handle",
]

RULES: Final = Rules("amqp10/link")


L_UNATTACHED_TRANSFER: Final = RULES.rule(
    "L-UNATTACHED-TRANSFER", "MUST NOT", "definition", by="sender", answer="amqp:session:unattached-handle"
)


def transfer_on_unattached_handle(case: Case10, session: SessionEnd, handle: int) -> None:
    """A sender sends a transfer with a handle to which the sender has no link attached.

    Demands: A sender must not send a transfer with a handle that has no attached link.
    Source: transport.xml section definitions > session-error unattached-handle; transport.xml section
    performatives > transfer.handle
    Evidence: the handle of the transfer, and the handles of the same peer's attached links
    Why it matters: The transfer belongs to no link, so its message is lost. The receiver ends the session
    with amqp:session:unattached-handle.
    Silent when: the capture lacks octets that were sent after the begin of the session, because the missing
    octets may contain an attach.
    How to mend it: Send transfers only with the handle of your own attach, and only until you send detach.
    Use your own handle, not the handle that the other peer chose for the link.
    """
    _unattached(case, session, handle, SEND_FRAME, L_UNATTACHED_TRANSFER)


L_UNATTACHED_FLOW: Final = RULES.rule(
    "L-UNATTACHED-FLOW", "MUST NOT", "definition", answer="amqp:session:unattached-handle"
)


def flow_on_unattached_handle(case: Case10, session: SessionEnd, handle: int) -> None:
    """A peer sends a flow with a handle to which that peer has no link attached.

    Demands: A peer must not send a flow with a handle to which this peer has no link attached.
    Source: transport.xml section performatives > flow.handle
    Evidence: the handle of the flow, and the handles of the same peer's attached links
    Why it matters: The flow belongs to no link, so its credit has no effect. The other peer ends the session
    with amqp:session:unattached-handle.
    Silent when: the capture lacks octets that were sent after the begin of the session, because the missing
    octets may contain an attach.
    How to mend it: Send attach before a flow for the link, and send no flow for the link after your detach.
    Use the handle of your own attach, not the other peer's handle.
    """
    _unattached(case, session, handle, SEND_FRAME, L_UNATTACHED_FLOW)


L_UNATTACHED_DETACH: Final = RULES.rule(
    "L-UNATTACHED-DETACH", "MUST NOT", "definition", answer="amqp:session:unattached-handle"
)


def detach_on_unattached_handle(case: Case10, session: SessionEnd, handle: int) -> None:
    """A peer sends a detach with a handle to which that peer has no link attached.

    Demands: A peer must not send a detach with a handle to which this peer has no link attached.
    Source: transport.xml section definitions > session-error unattached-handle; transport.xml section
    performatives > detach.handle
    Evidence: the handle of the detach, and the handles of the same peer's attached links
    Why it matters: The detach belongs to no link. The other peer ends the session with
    amqp:session:unattached-handle. The end of the session also ends all other links of the session.
    Silent when: the capture lacks octets that were sent after the begin of the session, because the missing
    octets may contain an attach.
    How to mend it: Send detach once per attach, with the handle of your own attach. Check whether you already
    sent detach, for example when the detaches of both peers cross or when cleanup code runs twice.
    """
    _unattached(case, session, handle, SEND_DETACH, L_UNATTACHED_DETACH)


def _unattached(case: Case10, session: SessionEnd, handle: int, action: str, rule: str) -> None:
    if session.whole and not HANDLE.allows(session.handle_state(handle), action):
        name = case.record.frame.name
        case.report(
            rule,
            f"{name} has handle {handle}, but the peer has no link attached to this handle",
            CERTAIN,
            {"handle": handle, "attached_handles": sorted(session.handles)[:16]},
        )
        # A transfer or a flow attaches no link and detaches none, whichever link its sender means.
        case.astray = SESSION if action == SEND_DETACH else LINKS


L_HANDLE_INUSE: Final = RULES.rule(
    "L-HANDLE-INUSE", "MUST NOT", "keyword", answer="amqp:session:handle-in-use"
)


def handle_in_use(case: Case10, session: SessionEnd, body: Attach) -> None:
    """A peer sends an attach with a handle that one of that peer's attached links already uses.

    Demands: A peer must not send an attach with a handle that one of this peer's attached links on the
    session already uses.
    Source: transport.xml section performatives > attach.handle
    Evidence: two attaches with the same handle, and the detaches between them
    Why it matters: The other peer must close the connection with amqp:session:handle-in-use. Frames with this
    handle could belong to either link.
    Silent when: the capture lacks octets that were sent after the first attach.
    How to mend it: Allocate a free handle for each attach, and free a handle only after the detach. Guard the
    handle table with a lock if several threads create links on one session.
    """
    if body.handle is None or HANDLE.allows(session.handle_state(body.handle), SEND_ATTACH):
        return
    link = session.handles[body.handle]
    if link.whole:
        case.report(
            L_HANDLE_INUSE,
            f"the attach uses handle {body.handle}, which has been in use since packet "
            f"{link.attachment.packet}",
            CERTAIN,
            {"handle": body.handle},
            [int(link.attachment.packet)],
        )
        # A later frame with this handle may be meant for either link.
        case.astray = SESSION


L_ATTACH_IDC: Final = RULES.rule(
    "L-ATTACH-IDC", "MUST NOT", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def sender_without_initial_delivery_count(case: Case10, body: Attach) -> None:
    """A sender's attach has no initial-delivery-count.

    Demands: A sender must set the field initial-delivery-count in its attach.
    Source: transport.xml section performatives > attach.initial-delivery-count
    Evidence: an attach with role=sender whose initial-delivery-count is null
    Why it matters: The receiver counts its link-credit from the initial-delivery-count. Without
    initial-delivery-count, the two peers may disagree about the number of messages that may be sent.
    Silent when: never. The rule ignores a receiver's attach, because the other peer ignores the field
    initial-delivery-count in a receiver's attach.
    How to mend it: Set initial-delivery-count in every attach with role=sender, usually to 0. Encode the
    value 0 explicitly instead of omitting it as a default, because the field has no default.
    """
    if body.role is False and body.initial_delivery_count is None:
        if not body.unread(9):
            case.report(L_ATTACH_IDC, "a sender's attach has no initial-delivery-count")
            # What its flows and those of the receiver count from is unknown.
            case.astray = LINK


L_UNSETTLED_NULLKEY: Final = RULES.rule(
    "L-UNSETTLED-NULLKEY", "MUST NOT", "keyword", usual_answer="amqp:invalid-field", octets=True
)


def unsettled_map_with_null_key(case: Case10) -> None:
    """A peer sends an attach whose unsettled map has a null key.

    Demands: The unsettled map must not have null keys.
    Source: transport.xml section performatives > attach.unsettled
    Evidence: the keys of the unsettled map in the attach
    Why it matters: No delivery can have null as its delivery-tag, so the entry with the null key identifies
    no delivery. The other peer may refuse the attach with amqp:invalid-field.
    Silent when: never.
    How to mend it: Put only delivery-tags of real deliveries into the unsettled map. Skip local deliveries
    that have no delivery-tag yet.
    """
    case.report(L_UNSETTLED_NULLKEY, "the unsettled map has a null key")


L_UNSETTLED_TYPES: Final = RULES.rule(
    "L-UNSETTLED-TYPES", "MUST", "definition", usual_answer="amqp:invalid-field", octets=True
)


def unsettled_map_of_other_types(case: Case10, what: str) -> None:
    """A peer sends an attach whose unsettled map has a key that is not a delivery-tag (binary), or a value
    that is neither a delivery state nor null.

    Demands: The keys of the unsettled map must be delivery-tags (binary), and its values must be delivery
    states or null.
    Source: transport.xml section performatives > attach.unsettled
    Evidence: the types of the keys and values in the unsettled map
    Why it matters: Resuming deliveries relies on the unsettled map. The other peer cannot match the entry to
    a delivery, so the message may be lost or duplicated.
    Silent when: a value has a described type that the specification does not define.
    How to mend it: Encode keys of the unsettled map as binary, not as string or symbol. Encode each value as
    a described delivery state, such as `received` or `accepted`, or as null.
    """
    case.report(L_UNSETTLED_TYPES, what)


M_RES_NULLRCV_KEEP: Final = RULES.rule("M-RES-NULLRCV-KEEP", "SHOULD NOT", "keyword", by="receiver")


def unsettled_map_of_receiver_with_null(case: Case10) -> None:
    """A receiver lists a delivery in its unsettled map with the value null, which means that the receiver
    holds nothing of the delivery.

    Demands: A receiver should not keep entries with the value null in its unsettled map.
    Source: messaging.xml section delivery-state > Resuming Deliveries Using Delivery States (tag 4)
    Evidence: null values in the unsettled map of a receiver's attach
    Why it matters: The sender has to send the whole message again under the old delivery-tag with
    resume=true, instead of sending a normal new delivery.
    Silent when: never.
    How to mend it: If you hold no state for a delivery, do not list the delivery in the unsettled map of your
    attach. If you kept a part of the data of a delivery, list the delivery with the state `received`. If you
    hold an outcome, list the delivery with this outcome.
    """
    case.report(
        M_RES_NULLRCV_KEEP,
        "the receiver's unsettled map lists a delivery with the value null, "
        "but a receiver should leave out such a delivery",
    )


def _judge_unsettled_map(case: Case10, body: Attach) -> None:
    if body.unsettled is None:
        return
    for key, value in body.unsettled.pairs:
        if key is None:
            unsettled_map_with_null_key(case)
        elif not isinstance(key, bytes):
            unsettled_map_of_other_types(
                case, f"a key of the unsettled map is of the type `{type_name(key)}`, not `binary`"
            )
        elif len(key) > 32:
            case.report(
                D_TAG_LEN, f"the unsettled map has a delivery-tag of {len(key)} octets, but the limit is 32"
            )
        if value is None:
            if body.role is True:
                unsettled_map_of_receiver_with_null(case)
        elif not isinstance(value, Described):
            if not isinstance(value, Composite) or "delivery-state" not in value.definition().provides:
                unsettled_map_of_other_types(case, "a value of the unsettled map is not a delivery state")


L_NAME_UNIQUE: Final = RULES.rule("L-NAME-UNIQUE", "MUST", "keyword", answer="amqp:link:stolen")


def name_in_use(case: Case10, session: SessionEnd, body: Attach) -> None:
    """A peer attaches a link under the name of another link that it already has in the same direction on the
    session.

    Demands: Between two containers, each link name must be used only once per direction.
    Source: transport.xml section links > Naming a Link
    Evidence: the names and roles of the attaches, the container-ids, and the state of the earlier link
    Why it matters: Only the name identifies a link. If two links have the same name, the peers may join the
    wrong link endpoints, or the new link may replace the old link.
    Silent when: the attach answers an attach of the other peer, or when octets since the first attach were
    not captured.
    Only possible because: The {peer} may move its own link to the new handle, which is allowed.
    How to mend it: In each direction, give every link a name of its own, for example with a counter or a
    random part. Do not derive the name from the address alone when you create several links to one address.
    """
    if body.name is None or body.role is None:
        return
    link = session.links.get((body.name, not body.role))
    if link is None or link.attachment.peer_times > link.attachment.times:
        return
    if link.handle != UNKNOWN and link.handle != body.handle and link.whole:
        case.report(
            L_NAME_UNIQUE,
            f"the attach uses a link name that has been in use on handle {link.handle} since packet "
            f"{link.attachment.packet}",
            POSSIBLE,
            {"handle": int(link.handle)},
            [int(link.attachment.packet)],
        )


def judge_attach_alone(case: Case10, body: Attach) -> None:
    """Judge an attach by itself."""
    sender_without_initial_delivery_count(case, body)
    _judge_unsettled_map(case, body)


def judge_attach(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge an attach."""
    handle_in_use(case, session, body)
    name_in_use(case, session, body)
    attachment.judge_attach(case, session, body)


L_SRC_NULL: Final = RULES.rule(
    "L-SRC-NULL", "MUST NOT", "definition", by="sender", usual_answer="amqp:not-allowed"
)


def transfer_without_source(case: Case10, link: LinkEnd) -> None:
    """A sender sends a transfer on a link that it attached with a null source.

    Demands: A sender whose attach has no source must not send a transfer on the link.
    Source: transport.xml section performatives > attach.source
    Evidence: a sender's attach with a null source, and a later transfer on the link
    Why it matters: An attach with a null source means that the link is refused, because there is nothing to
    send from. The receiver may refuse the transfer with amqp:not-allowed.
    Silent when: the attach was not captured, or when the target is a coordinator, because messages to a
    coordinator need no source. After each attach, the rule reports only the first transfer.
    How to mend it: Set a source in the sender's attach, even if the source has no address. If you answered
    with a null source to refuse a link, send detach and no transfers.
    """
    attach = link.attach
    if (
        attach is not None
        and link.whole
        and link.open is None
        and link.credit.count == link.initial_count
        and not link.coordinator
        and attach.source is None
        and not attach.unread(5)
    ):
        case.report(
            L_SRC_NULL, "the sender sends a transfer on a link that the sender attached without a source"
        )


L_CREDIT_INIT: Final = RULES.rule(
    "L-CREDIT-INIT", "illegal", "definition", by="sender", answer="amqp:link:transfer-limit-exceeded"
)


def transfer_before_any_credit(case: Case10, link: LinkEnd) -> None:
    """A sender starts a delivery before the receiver has granted any link-credit.

    Demands: Link-credit is zero at first, so a sender must not send a transfer before the receiver's first
    flow with link-credit.
    Source: transport.xml section links > Flow Control (initial state)
    Evidence: a transfer before any flow that grants link-credit for the link
    Why it matters: The receiver may detach the link with amqp:link:transfer-limit-exceeded, and the message
    is not processed.
    Silent when: the capture lacks octets that either peer sent after the attach of the link.
    How to mend it: After you attach a link, wait until a flow of the receiver grants link-credit for the
    link before you start the first delivery. Do not assume an initial credit.
    """
    case.report(
        L_CREDIT_INIT,
        "the sender starts a delivery before the receiver has granted any link-credit",
        CERTAIN,
        {"link_credit": 0, "delivery_count": int(raw(link.credit.count))},
    )


L_CREDIT: Final = RULES.rule(
    "L-CREDIT", "illegal", "wording", by="sender", answer="amqp:link:transfer-limit-exceeded"
)


def transfer_beyond_credit(case: Case10, link: LinkEnd) -> None:
    """A sender starts a delivery for which the receiver has granted no link-credit.

    Demands: A sender must not start a new delivery while its link-credit is zero or below.
    Source: transport.xml section links > Flow Control
    Evidence: the sender's initial-delivery-count, the receiver's flows, and the first transfers of deliveries
    Why it matters: The receiver may detach the link with amqp:link:transfer-limit-exceeded. The message that
    exceeds the credit may be lost.
    Silent when: the capture lacks octets that were sent after the attach of the link. The finding is reported
    as possible, not as certain, when an older grant of link-credit allows the delivery, because the sender
    may have used the older grant. The finding is reported as possible, not as certain, when the link-credit
    is enough without the aborted and resumed deliveries, because the specification does not say whether such
    deliveries use link-credit.
    Possible because: The delivery is no fault if the {peer} had not yet read the newest flow of the {other}.
    The flow had reached the host of the {peer}, but no frame of the {peer} proves that the {peer} had read
    it. The specification does not say whether aborted or resumed deliveries use credit. If aborted or resumed
    deliveries use no credit, this delivery is not a fault.
    How to mend it: For each flow of the receiver, compute the link-credit as the flow's delivery-count plus
    the flow's link-credit minus your own delivery-count. Subtract one credit per delivery, and start no
    delivery while the link-credit is zero.
    """
    limits = link.credit.limits
    certainty = limits.judge(link.credit.count)
    if (
        certainty == CERTAIN
        and link.credit.uncounted > 0
        and limits.judge(link.credit.count - link.credit.uncounted) != CERTAIN
    ):
        certainty = POSSIBLE
    if certainty == CERTAIN and link.credit.bare_limit > link.credit.count:
        counting.credit_counted_from_nothing(case, link)
    elif certainty != LEGAL:
        credit = limits.newest() - link.credit.count
        case.report(
            L_CREDIT,
            "the sender starts a delivery although no link-credit is left: the receiver's credit ends at "
            f"delivery-count {raw(limits.newest())}, and the sender's delivery-count is already "
            f"{raw(link.credit.count)}",
            certainty,
            {"link_credit": int(credit), "delivery_count": int(raw(link.credit.count))},
            [int(limits.newest_packet())],
        )


def _judge_credit(case: Case10, link: LinkEnd) -> None:
    if link.open is None and link.whole:
        if len(link.credit.limits) > 0:
            transfer_beyond_credit(case, link)
        elif case.me.whole:
            transfer_before_any_credit(case, link)


L_INCOMPLETE_NONEW: Final = RULES.rule(
    "L-INCOMPLETE-NONEW", "MUST NOT", "keyword", by="sender", usual_answer="amqp:not-allowed"
)


def new_delivery_beside_incomplete_map(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """A sender starts a new delivery on a link although the receiver's attach has incomplete-unsettled=true.

    Demands: A sender that received an incomplete unsettled map must send only resumed deliveries and no new
    deliveries.
    Source: transport.xml section performatives > attach.incomplete-unsettled
    Evidence: a receiver's attach with incomplete-unsettled=true, and then a transfer without resume=true
    Why it matters: The receiver must detach the link with an error. The sender cannot know yet which
    deliveries the receiver already holds, so messages may be duplicated.
    Silent when: the attach of the receiver was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: When the receiver's attach has incomplete-unsettled=true, send only resumed deliveries.
    Settle the deliveries in the map, detach the link and attach the link again. Repeat these steps until the
    receiver's unsettled map is complete. Send new deliveries only after the receiver has sent a complete
    unsettled map.
    """
    theirs = link.peer_attach
    if theirs is not None and theirs.incomplete_unsettled and not body.resume and link.open is None:
        case.report(
            L_INCOMPLETE_NONEW,
            "the sender starts a new delivery, but the receiver's attach has incomplete-unsettled=true, so "
            "only resumed deliveries are allowed",
            attach_read(case, link),
        )


L_MAXMSG: Final = RULES.rule(
    "L-MAXMSG", "MUST NOT", "definition", by="sender", answer="amqp:link:message-size-exceeded", octets=True
)


def message_larger_than_agreed(case: Case10, link: LinkEnd, octets: int) -> None:
    """A sender sends a message that is larger than the max-message-size in the receiver's attach.

    Demands: A sender must not send a message that is larger than the max-message-size of the other peer.
    Source: transport.xml section performatives > attach.max-message-size
    Evidence: the sum of the payload octets of one delivery, and the max-message-size in the receiver's attach
    Why it matters: The receiver may detach the link with amqp:link:message-size-exceeded. The message is not
    delivered.
    Silent when: the attach of the receiver was not captured. The finding is reported as possible, not as
    certain, when the sender may not yet have read the receiver's attach.
    How to mend it: Read max-message-size from the receiver's attach. Before you send a message, compare this
    limit with the encoded size of the whole message (the sum over all its transfers). Report larger messages
    to the application as an error.
    """
    theirs = link.peer_attach
    if theirs is None or not theirs.max_message_size or not link.whole:
        return
    delivery = link.open
    before = delivery.octets if delivery is not None else 0
    if before <= theirs.max_message_size < before + octets:
        case.report(
            L_MAXMSG,
            f"the message has {before + octets} octets or more, but the receiver's max-message-size is "
            f"{theirs.max_message_size}",
            attach_read(case, link),
            {"message_size": int(before + octets), "max_message_size": theirs.max_message_size},
        )


def judge_transfer(case: Case10, link: LinkEnd, body: Transfer) -> None:
    """Judge a transfer by the rules of its link."""
    if link.attachment.peer_failed and link.whole:
        attachment.input_for_a_failed_link(case, link)
    if link.open is None and link.credit.count == link.initial_count:
        attachment.judge_first_transfer(case, link, body.resume is True, attach_read(case, link))
    transfer_without_source(case, link)
    _judge_credit(case, link)
    new_delivery_beside_incomplete_map(case, link, body)
    frame = case.record.frame
    message_larger_than_agreed(case, link, frame.payload_size + frame.missing)


L_DC_UNSET: Final = RULES.rule(
    "L-DC-UNSET", "MUST NOT", "keyword", by="receiver", usual_answer="amqp:invalid-field"
)


def receiver_with_delivery_count_too_soon(case: Case10, link: LinkEnd, body: Flow) -> None:
    """A receiver sends a flow with delivery-count before the sender's attach has arrived.

    Demands: A receiver must leave delivery-count unset until the sender's attach has arrived.
    Source: transport.xml section performatives > flow.delivery-count
    Evidence: a receiver's flow with delivery-count before the sender's attach
    Why it matters: Only the sender sets the initial delivery-count. If the receiver guesses the initial
    delivery-count, the sender computes another link-credit than the receiver intended.
    Silent when: octets of the sender were not captured.
    How to mend it: Leave delivery-count unset in a receiver's flow until the sender's attach has arrived.
    After the sender's attach, count from its initial-delivery-count. Do not send delivery-count 0 as a
    default value.
    """
    if link.sender or body.delivery_count is None or link.peer_attach is not None:
        return
    if link.whole and case.me.whole:
        case.report(
            L_DC_UNSET,
            f"the receiver's flow has delivery-count {body.delivery_count}, but must leave delivery-count "
            "unset until the sender's attach has arrived",
            CERTAIN,
            {"link_state": link.state},
        )


L_DC_RECEIVER: Final = RULES.rule(
    "L-DC-RECEIVER", "MUST", "keyword", by="receiver", usual_answer="amqp:invalid-field"
)


def receiver_with_delivery_count_never_reached(case: Case10, link: LinkEnd, body: Flow) -> None:
    """A receiver sends a flow with a delivery-count that the sender has not reached.

    Demands: The delivery-count of a receiver's flow must be the sender's last known delivery-count plus the
    number of messages that the receiver has received since then.
    Source: transport.xml section performatives > flow.delivery-count
    Evidence: the delivery-count of the receiver's flows, and the number of deliveries
    Why it matters: The sender adds the link-credit of the receiver's flow to the delivery-count of this flow.
    A delivery-count that is too high grants more messages than the receiver means to accept.
    Silent when: the attach of the sender was not captured, or when the capture lacks octets that were sent
    after this attach. The finding is reported as possible, not as certain, when the sender attached again and
    the receiver may not yet have read the new attach.
    How to mend it: Take initial-delivery-count from the sender's latest attach and add one per received
    message, not per transfer. Reset the counter on each attach and adopt the delivery-count of the sender's
    flows.
    """
    value = body.delivery_count
    if link.sender or value is None or link.peer_attach is None or not link.whole or not case.me.whole:
        return
    ahead = nearest(value, link.receipt.count) - link.receipt.count
    behind = nearest(value, link.receipt.count) - link.initial_count
    if ahead > 0 or behind < 0:
        # The receiver may not have read the last attach, and then counts from the attach before.
        certainty = (
            case.me.knowledge.certainty(link.attachment.peer_end)
            if link.attachment.peer_times > 1
            else CERTAIN
        )
        case.report(
            L_DC_RECEIVER,
            f"the receiver's flow has delivery-count {value}, but the sender's delivery-count is at most "
            f"{raw(link.receipt.count)}",
            certainty,
            {"delivery_count": int(raw(link.receipt.count))},
        )
        if certainty == CERTAIN:
            # The sender may count the credit from either number.
            case.astray = LINK


L_DC_SENDER: Final = RULES.rule(
    "L-DC-SENDER", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def sender_with_other_delivery_count(case: Case10, link: LinkEnd, body: Flow) -> None:
    """A sender sends a flow without delivery-count, or with a delivery-count that does not match the
    deliveries that it has sent.

    Demands: The delivery-count of a sender's flow must be the sender's current value: the
    initial-delivery-count plus the number of messages sent plus any drained credit.
    Source: transport.xml section performatives > flow.delivery-count
    Evidence: the sender's attach, its deliveries, and the delivery-count of its flows
    Why it matters: The receiver adopts the sender's delivery-count and computes the link-credit from this
    number. The link may stall, or the receiver may get too many messages.
    Silent when: the capture lacks octets that were sent after the attach of the link. If the receiver sent
    drain=true, the rule also accepts a higher delivery-count, up to the last delivery-count that the
    link-credit allows. The rule accepts a delivery-count that includes aborted, resumed and incomplete
    deliveries, and also a delivery-count that does not include such deliveries.
    How to mend it: In every flow of a sender for a link, set delivery-count to initial-delivery-count plus
    the number of deliveries sent plus any drained credit. Count deliveries, not transfers, and do not omit
    delivery-count when the number is 0.
    """
    if not link.sender or not link.whole:
        return
    value = body.delivery_count
    if value is None:
        if not body.unread(5):
            case.report(L_DC_SENDER, "a sender's flow has no delivery-count")
        return
    count = nearest(value, link.credit.count)
    if link.credit.shift != 0 and count == link.credit.count + link.credit.shift:
        # After a wrong flow the sender may go on with either count.
        return
    most = link.credit.most()
    least = link.credit.least(link.open is not None)
    if count > most and count == link.credit.count + link.credit.continued:
        counting.pieces_counted(case, link, value)
    elif count > most or count < least:
        case.report(
            L_DC_SENDER,
            f"the sender's flow has delivery-count {value} instead of {raw(link.credit.count)}",
            CERTAIN,
            {"delivery_count": int(raw(link.credit.count))},
        )


L_CREDIT_OWNER: Final = RULES.rule(
    "L-CREDIT-OWNER", "MUST NOT", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def sender_with_credit_of_its_own(case: Case10, link: LinkEnd, body: Flow) -> None:
    """A sender sends a flow with more link-credit than the receiver has granted.

    Demands: The link-credit of a sender's flow must be the link-credit that the receiver granted, minus the
    number of deliveries that the sender has sent since this grant. A sender must not grant credit to itself.
    Source: transport.xml section performatives > flow.link-credit; transport.xml section links > Flow Control
    Evidence: the sum of delivery-count and link-credit in a sender's flow, and the receiver's grants
    Why it matters: Only the receiver grants link-credit. The receiver cannot reconcile the flow with its own
    counters and may end the link with an error.
    Silent when: the capture lacks octets that either peer sent after the attach of the link. The finding is
    reported as possible, not as certain, when an earlier grant of link-credit by the receiver allows the
    value. The finding is reported as possible, not as certain, when the sender may have copied the
    link-credit of a receiver's flow, without subtracting the deliveries that the sender has sent.
    How to mend it: In a sender's flow, set link-credit to the link-credit of the receiver's last flow, minus
    the number of deliveries that you have sent since then. Do not fill in a constant or a local window size.
    """
    if not link.sender or not link.whole or not body.link_credit or body.delivery_count is None:
        return
    if len(link.credit.limits) == 0 and not case.me.whole:
        return
    count = nearest(body.delivery_count, link.credit.count)
    certainty = link.credit.limits.judge(count + body.link_credit - 1)
    if certainty == CERTAIN and len(link.credit.limits) > 0:
        if body.link_credit <= link.credit.limits.largest() - link.initial_count:
            certainty = POSSIBLE
    case.report(
        L_CREDIT_OWNER,
        f"a sender's flow has link-credit {body.link_credit}, but the receiver has granted less",
        certainty,
        {"link_credit": body.link_credit, "delivery_count": body.delivery_count},
    )


L_DRAIN_OWNER: Final = RULES.rule(
    "L-DRAIN-OWNER", "MUST NOT", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def sender_with_drain_of_its_own(case: Case10, link: LinkEnd, body: Flow) -> None:
    """A sender sends a flow with drain=true although the receiver has never sent drain=true.

    Demands: A sender's flow must repeat the receiver's last value of the field `drain`. A sender must not set
    drain=true by itself.
    Source: transport.xml section links > Flow Control (drain); transport.xml section performatives >
    flow.drain
    Evidence: the field `drain` in the sender's flows and in the receiver's flows
    Why it matters: Only the receiver can ask to drain the link. The receiver may conclude that the sender
    used up its link-credit, and may then wait or grant credit again.
    Silent when: the capture lacks octets that either peer sent after the attach of the link.
    How to mend it: In a sender's flow, set the field `drain` to the value that this field had in the
    receiver's last flow. Do not use drain=true to signal that no more messages are available.
    """
    if link.sender and body.drain and link.credit.drain_end == UNKNOWN and link.whole and case.me.whole:
        case.report(
            L_DRAIN_OWNER, "a sender's flow has drain=true, but the receiver has never sent drain=true"
        )


L_DRAIN_STATE: Final = RULES.rule(
    "L-DRAIN-STATE", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def drained_with_credit_left(case: Case10, link: LinkEnd, body: Flow) -> None:
    """A sender answers drain=true with a flow whose link-credit is not 0, or whose delivery-count has not
    advanced far enough.

    Demands: A sender's flow that answers drain=true must have link-credit 0, and its delivery-count must have
    advanced by all link-credit that was left.
    Source: transport.xml section links > Flow Control (drain)
    Evidence: the sender's flow after a receiver's flow with drain=true
    Why it matters: A drained link has no link-credit left. The receiver goes on waiting for the rest of the
    credit to be used up.
    Silent when: the capture lacks octets that were sent after the attach, or when the flow has a wrong
    delivery-count. The finding is reported as possible, not as certain, when the link-credit that is left may
    belong to another grant of link-credit. The finding is reported as possible, not as certain, when
    deliveries were aborted or resumed, or are incomplete, because the specification does not say whether such
    deliveries use credit.
    How to mend it: When you drain a link, add all remaining link-credit to delivery-count and set link-credit
    to 0. Send both new values in one flow.
    """
    if not link.sender or not link.whole or body.delivery_count is None or link.credit.drain_end == UNKNOWN:
        return
    limits = link.credit.limits
    if len(limits) == 0:
        return
    count = nearest(body.delivery_count, link.credit.count)
    evidence: dict[str, object] = {"delivery_count": int(raw(link.credit.count)), "drain": True}
    if body.link_credit:
        if count > link.credit.count:
            # The flow may answer the drain of an earlier grant while credit of a newer grant is left.
            newer = limits.newest() > link.credit.drain_limit or int(count) in limits.bounds
            case.report(
                L_DRAIN_STATE,
                f"the sender drains the link and advances delivery-count to {body.delivery_count}, but the "
                f"flow still has link-credit {body.link_credit} instead of 0",
                POSSIBLE if newer else CERTAIN,
                evidence,
            )
    elif body.link_credit == 0 and body.drain and limits.ends[0] <= link.credit.drain_end:
        least = min(limits.bounds)
        if count < least:
            sure = link.credit.uncounted == 0 and link.open is None
            case.report(
                L_DRAIN_STATE,
                "the sender drains the link and sets link-credit to 0, but delivery-count is "
                f"{body.delivery_count} and must be at least {raw(least)}",
                CERTAIN if sure else POSSIBLE,
                evidence,
            )


def judge_flow(case: Case10, link: LinkEnd, body: Flow) -> None:
    """Judge a flow by the rules of its link."""
    attachment.judge_flow(case, link, body)
    if link.sender:
        before = case.found
        sender_with_other_delivery_count(case, link, body)
        found = case.found
        if found == before:
            drained_with_credit_left(case, link, body)
        if case.found == found and (found > before or not counting.judge_stated_credit(case, link, body)):
            sender_with_credit_of_its_own(case, link, body)
        sender_with_drain_of_its_own(case, link, body)
    else:
        receiver_with_delivery_count_too_soon(case, link, body)
        receiver_with_delivery_count_never_reached(case, link, body)
        if body.available:
            counting.judge_available(case, link, body)
