"""Links: handles, attaches and credit (transport.xml, "links", "Flow Control")."""

from amqpscope.rules.case import Case
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.knowledge import CERTAIN, LEGAL
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Attach, Detach, Flow, Transfer
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Described

__all__ = ["judge_attach", "judge_flow", "judge_transfer", "on_link"]


def on_link(case: Case, session: SessionEnd, handle: int | None, rule: str) -> LinkEnd | None:
    """The link of a frame that names one by its handle, judged whether it is attached."""
    if handle is None:
        return None
    link = session.handles.get(handle)
    if link is None:
        if session.whole:
            name = case.record.frame.name
            case.report(
                rule,
                f"{name} names handle {handle}, to which its sender has attached no link",
                CERTAIN,
                {"handle": handle, "attached_handles": sorted(session.handles)[:16]},
            )
        return None
    case.link = link
    return link


def handle_in_use(case: Case, session: SessionEnd, body: Attach) -> None:
    """attach uses a handle to which its sender has a link attached.

    Why it matters: the receiver must close with handle-in-use.
    Silent when: octets since the first attach were not captured.
    """
    if body.handle is None:
        return
    link = session.handles.get(body.handle)
    if link is not None and link.whole:
        case.report(
            "amqp10/L-HANDLE-INUSE",
            f"handle {body.handle} is in use since packet {link.attach_packet}",
            CERTAIN,
            {"handle": body.handle},
            [int(link.attach_packet)],
        )


def sender_without_initial_delivery_count(case: Case, body: Attach) -> None:
    """A sender's attach has no initial-delivery-count.

    Why it matters: the receiver's credit counts from it.
    Silent when: never; of a receiver's attach the field is ignored.
    """
    if body.role is False and body.initial_delivery_count is None:
        if body.odd is None or 9 not in body.odd:
            case.report("amqp10/L-ATTACH-IDC", "a sender's attach has no initial-delivery-count")


def unsettled_map_of_wrong_types(case: Case, body: Attach) -> None:
    """The unsettled map has a key that is no delivery-tag, or a value that is no delivery state.

    Why it matters: resuming rests on it.
    Silent when: never.
    """
    if body.unsettled is None:
        return
    for key, value in body.unsettled.pairs:
        if key is None:
            case.report("amqp10/L-UNSETTLED-NULLKEY", "the unsettled map has a null key")
        elif not isinstance(key, bytes):
            case.report(
                "amqp10/L-UNSETTLED-TYPES", f"a key of the unsettled map is {type_name(key)}, not binary"
            )
        elif len(key) > 32:
            case.report(
                "amqp10/D-TAG-LEN", f"a delivery-tag of {len(key)} octets stands in the unsettled map"
            )
        if value is None or isinstance(value, Described):
            continue
        if not isinstance(value, Composite) or "delivery-state" not in value.definition().provides:
            case.report("amqp10/L-UNSETTLED-TYPES", "a value of the unsettled map is no delivery state")


def judge_attach(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about attach."""
    handle_in_use(case, session, body)
    sender_without_initial_delivery_count(case, body)
    unsettled_map_of_wrong_types(case, body)


def transfer_without_source(case: Case, link: LinkEnd) -> None:
    """A transfer is sent on a link whose sender attached it without a source.

    Why it matters: without a source the link is refused, there is nothing to send from.
    Silent when: the attach was not captured.
    """
    attach = link.attach
    if attach is not None and link.whole and attach.source is None and (attach.odd is None or 5 not in attach.odd):
        case.report("amqp10/L-SRC-NULL", "a transfer is sent on a link attached without a source")


def transfer_beyond_credit(case: Case, link: LinkEnd) -> None:
    """A delivery is started that the receiver has granted no credit for.

    Why it matters: the receiver may detach the link with transfer-limit-exceeded.
    Silent when: an attach or flow may not have been captured. Possible when only the newest of several
    credits that the sender may have known is exceeded.
    """
    if link.open is not None or not link.whole:
        return
    limits = link.limits
    if len(limits) == 0:
        if case.peer.whole:
            case.report(
                "amqp10/L-CREDIT-INIT",
                "a delivery is sent before the receiver has granted any credit",
                CERTAIN,
                {"link_credit": 0, "delivery_count": int(raw(link.count))},
            )
        return
    certainty = limits.judge(link.count)
    if certainty != LEGAL:
        credit = limits.newest() - link.count
        case.report(
            "amqp10/L-CREDIT",
            f"a delivery is sent with link-credit {credit}: delivery-count is {raw(link.count)}, "
            f"the receiver's limit {raw(limits.newest())}",
            certainty,
            {"link_credit": int(credit), "delivery_count": int(raw(link.count))},
        )


def message_larger_than_agreed(case: Case, link: LinkEnd, octets: int) -> None:
    """A message is larger than the receiver's max-message-size.

    Why it matters: the receiver may detach the link with message-size-exceeded.
    Silent when: the receiver's attach was not captured. Possible when it may not have been read.
    """
    theirs = link.peer_attach
    if theirs is None or not theirs.max_message_size or not link.whole:
        return
    delivery = link.open
    before = delivery.octets if delivery is not None else 0
    if before <= theirs.max_message_size < before + octets:
        case.report(
            "amqp10/L-MAXMSG",
            f"the message has {before + octets} octets or more, the receiver's max-message-size is "
            f"{theirs.max_message_size}",
            case.me.knowledge.certainty(link.peer_attach_end),
            {"message_size": int(before + octets), "max_message_size": theirs.max_message_size},
        )


def judge_transfer(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The link's rules about transfer."""
    transfer_without_source(case, link)
    transfer_beyond_credit(case, link)
    frame = case.record.frame
    message_larger_than_agreed(case, link, frame.payload_size + frame.missing)


def receiver_with_delivery_count_too_soon(case: Case, link: LinkEnd, body: Flow) -> None:
    """A receiver's flow has a delivery-count before the sender's attach was received.

    Why it matters: only the sender sets it; a guess gives it credit that it takes for another.
    Silent when: octets of the sender's were not captured.
    """
    if link.sender or body.delivery_count is None or link.peer_attach is not None:
        return
    if link.whole and case.me.whole and case.peer.whole:
        case.report(
            "amqp10/L-DC-UNSET",
            f"delivery-count is {body.delivery_count}, but the sender's attach is not received yet",
            CERTAIN,
            {"link_state": link.state},
        )


def receiver_with_delivery_count_never_reached(case: Case, link: LinkEnd, body: Flow) -> None:
    """A receiver's flow has a delivery-count that the sender has not reached.

    Why it matters: the credit that it grants is larger than it means.
    Silent when: the sender's attach was not captured, or octets since. Possible when the sender attached
    again and the receiver may not have read that.
    """
    value = body.delivery_count
    if link.sender or value is None or link.peer_attach is None or not link.whole or not case.peer.whole:
        return
    ahead = nearest(value, link.received) - link.received
    behind = nearest(value, link.received) - link.initial_count
    if ahead > 0 or behind < 0:
        # After a re-attach that it may not have read, the receiver counts from the attach before.
        certainty = case.me.knowledge.certainty(link.peer_attach_end) if link.peer_attaches > 1 else CERTAIN
        case.report(
            "amqp10/L-DC-RECEIVER",
            f"delivery-count is {value}, the sender's is at most {raw(link.received)}",
            certainty,
            {"delivery_count": int(raw(link.received))},
        )


def judge_flow(case: Case, link: LinkEnd, body: Flow) -> None:
    """The link's rules about flow."""
    receiver_with_delivery_count_too_soon(case, link, body)
    receiver_with_delivery_count_never_reached(case, link, body)


def judge_detach(case: Case, session: SessionEnd, body: Detach) -> None:
    """The rules about detach."""
    on_link(case, session, body.handle, "amqp10/L-UNATTACHED-DETACH")
