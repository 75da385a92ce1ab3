"""Links: handles, attaches and credit (transport.xml, "links", "Flow Control")."""

from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.rules.amqp10 import attachment, counting
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.serial import nearest, raw
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Attach, Flow, Transfer
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Described
from dissectors.wire import i64

__all__ = [
    "attach_read",
    "detach_on_unattached_handle",
    "flow_on_unattached_handle",
    "judge_attach",
    "judge_attach_alone",
    "judge_flow",
    "judge_transfer",
    "transfer_on_unattached_handle",
]


def transfer_on_unattached_handle(case: Case, session: SessionEnd, handle: int) -> None:
    """A transfer names a handle to which its sender has no link attached.

    Why it matters: it belongs to no link; the receiver ends the session with unattached-handle.
    Silent when: octets since the session's begin were not captured, so an attach may be among them.
    """
    _unattached(case, session, handle, "amqp10/L-UNATTACHED-TRANSFER")


def flow_on_unattached_handle(case: Case, session: SessionEnd, handle: int) -> None:
    """A flow names a handle to which its sender has no link attached.

    Why it matters: it belongs to no link; the receiver ends the session with unattached-handle.
    Silent when: octets since the session's begin were not captured, so an attach may be among them.
    """
    _unattached(case, session, handle, "amqp10/L-UNATTACHED-FLOW")


def detach_on_unattached_handle(case: Case, session: SessionEnd, handle: int) -> None:
    """A detach names a handle to which its sender has no link attached.

    Why it matters: it belongs to no link; the receiver ends the session with unattached-handle.
    Silent when: octets since the session's begin were not captured, so an attach may be among them.
    """
    _unattached(case, session, handle, "amqp10/L-UNATTACHED-DETACH")


def _unattached(case: Case, session: SessionEnd, handle: int, rule: str) -> None:
    if session.whole:
        name = case.record.frame.name
        case.report(
            rule,
            f"{name} names handle {handle}, to which its sender has attached no link",
            CERTAIN,
            {"handle": handle, "attached_handles": sorted(session.handles)[:16]},
        )


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
        if not body.unread(9):
            case.report("amqp10/L-ATTACH-IDC", "a sender's attach has no initial-delivery-count")


def unsettled_map_with_null_key(case: Case) -> None:
    """The unsettled map has a null key.

    Why it matters: no delivery can have it as its tag.
    Silent when: never.
    """
    case.report("amqp10/L-UNSETTLED-NULLKEY", "the unsettled map has a null key")


def unsettled_map_of_other_types(case: Case, what: str) -> None:
    """The unsettled map has a key that is no delivery-tag, or a value that is no delivery state.

    Why it matters: resuming rests on it.
    Silent when: a value is of a described type that is not the specification's.
    """
    case.report("amqp10/L-UNSETTLED-TYPES", what)


def unsettled_map_of_receiver_with_null(case: Case) -> None:
    """A receiver's unsettled map lists a delivery of which it has nothing.

    Why it matters: the sender has to send all of it again under the old tag, as if it were resumed.
    Silent when: never.
    """
    case.report("amqp10/M-RES-NULLRCV-KEEP", "a receiver's unsettled map has a null value")


def _judge_unsettled_map(case: Case, body: Attach) -> None:
    if body.unsettled is None:
        return
    for key, value in body.unsettled.pairs:
        if key is None:
            unsettled_map_with_null_key(case)
        elif not isinstance(key, bytes):
            unsettled_map_of_other_types(case, f"a key of the unsettled map is {type_name(key)}, not binary")
        elif len(key) > 32:
            case.report(
                "amqp10/D-TAG-LEN", f"a delivery-tag of {len(key)} octets stands in the unsettled map"
            )
        if value is None:
            if body.role is True:
                unsettled_map_of_receiver_with_null(case)
        elif not isinstance(value, Described):
            if not isinstance(value, Composite) or "delivery-state" not in value.definition().provides:
                unsettled_map_of_other_types(case, "a value of the unsettled map is no delivery state")


def name_in_use(case: Case, session: SessionEnd, body: Attach) -> None:
    """A peer attaches a link under a name that another of its links in this direction has on the session.

    Why it matters: the name is all that tells links apart; the two ends may be joined wrongly.
    Silent when: it answers an attach, or octets since the first were not captured.
    Only possible because: The {peer} may be taking its own link back, which is allowed.
    """
    if body.name is None or body.role is None:
        return
    link = session.links.get((body.name, not body.role))
    if link is None or link.peer_attaches > link.attaches:
        return
    if link.handle != UNKNOWN and link.handle != body.handle and link.whole:
        case.report(
            "amqp10/L-NAME-UNIQUE",
            f"the link's name is in use on handle {link.handle} since packet {link.attach_packet}",
            POSSIBLE,
            {"handle": int(link.handle)},
            [int(link.attach_packet)],
        )


def judge_attach_alone(case: Case, body: Attach) -> None:
    """The rules that an attach breaks by itself."""
    sender_without_initial_delivery_count(case, body)
    _judge_unsettled_map(case, body)


def judge_attach(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about attach."""
    handle_in_use(case, session, body)
    name_in_use(case, session, body)
    attachment.judge_attach(case, session, body)


def transfer_without_source(case: Case, link: LinkEnd) -> None:
    """A transfer is sent on a link whose sender attached it without a source.

    Why it matters: without a source the link is refused, there is nothing to send from.
    Silent when: the attach was not captured, or the target is a coordinator: a declare comes from no node.
    Of one attach only the first transfer is told.
    """
    attach = link.attach
    if (
        attach is not None
        and link.whole
        and link.open is None
        and link.count == link.initial_count
        and not link.coordinator
        and attach.source is None
        and not attach.unread(5)
    ):
        case.report("amqp10/L-SRC-NULL", "a transfer is sent on a link attached without a source")


def transfer_before_any_credit(case: Case, link: LinkEnd) -> None:
    """A delivery is started before the receiver has granted any credit.

    Why it matters: credit begins at zero; the receiver may detach the link with transfer-limit-exceeded.
    Silent when: octets of either peer since the attach were not captured.
    """
    case.report(
        "amqp10/L-CREDIT-INIT",
        "a delivery is sent before the receiver has granted any credit",
        CERTAIN,
        {"link_credit": 0, "delivery_count": int(raw(link.count))},
    )


def transfer_beyond_credit(case: Case, link: LinkEnd) -> None:
    """A delivery is started that the receiver has granted no credit for.

    Why it matters: the receiver may detach the link with transfer-limit-exceeded.
    Silent when: octets since the attach were not captured. Possible when only the newest of several credits
    that the sender may have known is exceeded, or when aborted or resumed deliveries make the difference:
    whether these count nobody says.
    Possible because: It is no fault if the {peer} had not yet read what the {other} sent before: that had
    reached its host, but nothing it sent shows that it had read it. Nor if aborted or resumed deliveries take
    no credit: the text leaves that open.
    """
    limits = link.limits
    certainty = limits.judge(link.count)
    if certainty == CERTAIN and link.uncounted > 0 and limits.judge(link.count - link.uncounted) != CERTAIN:
        certainty = POSSIBLE
    if certainty == CERTAIN and link.bare_limit > link.count:
        counting.credit_counted_from_nothing(case, link)
    elif certainty != LEGAL:
        credit = limits.newest() - link.count
        case.report(
            "amqp10/L-CREDIT",
            f"a delivery is sent with link-credit {credit}: delivery-count is {raw(link.count)}, "
            f"the receiver's limit {raw(limits.newest())}",
            certainty,
            {"link_credit": int(credit), "delivery_count": int(raw(link.count))},
            [int(limits.newest_packet())],
        )


def _judge_credit(case: Case, link: LinkEnd) -> None:
    if link.open is None and link.whole:
        if len(link.limits) > 0:
            transfer_beyond_credit(case, link)
        elif case.me.whole:
            transfer_before_any_credit(case, link)


def attach_read(case: Case, link: LinkEnd) -> i64:
    """How certain it is that a sender had read the receiver's attach when it sent this transfer.

    Credit comes behind the attach: who uses any lawfully has read that.
    """
    if link.open is not None or (len(link.limits) > 0 and link.limits.judge(link.count) != CERTAIN):
        return CERTAIN
    return case.me.knowledge.certainty(link.peer_attach_end)


def new_delivery_beside_incomplete_map(case: Case, link: LinkEnd, body: Transfer) -> None:
    """A new delivery is sent on a link whose receiver could not list all that it holds unsettled.

    Why it matters: the sender does not know yet whether the receiver has it already.
    Silent when: the receiver's attach was not captured. Possible when it may not have been read.
    """
    theirs = link.peer_attach
    if theirs is not None and theirs.incomplete_unsettled and not body.resume and link.open is None:
        case.report(
            "amqp10/L-INCOMPLETE-NONEW",
            "a new delivery is sent, the receiver's attach has incomplete-unsettled",
            attach_read(case, link),
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
            attach_read(case, link),
            {"message_size": int(before + octets), "max_message_size": theirs.max_message_size},
        )


def judge_transfer(case: Case, link: LinkEnd, body: Transfer) -> None:
    """The link's rules about transfer."""
    if link.peer_failed and link.whole:
        attachment.input_for_a_failed_link(case, link)
    if link.open is None and link.count == link.initial_count:
        attachment.judge_first_transfer(case, link, body.resume is True, attach_read(case, link))
    transfer_without_source(case, link)
    _judge_credit(case, link)
    new_delivery_beside_incomplete_map(case, link, body)
    frame = case.record.frame
    message_larger_than_agreed(case, link, frame.payload_size + frame.missing)


def receiver_with_delivery_count_too_soon(case: Case, link: LinkEnd, body: Flow) -> None:
    """A receiver's flow has a delivery-count before the sender's attach was received.

    Why it matters: only the sender sets it; a guess gives it credit that it takes for another.
    Silent when: octets of the sender's were not captured.
    """
    if link.sender or body.delivery_count is None or link.peer_attach is not None:
        return
    if link.whole and case.me.whole:
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
    if link.sender or value is None or link.peer_attach is None or not link.whole or not case.me.whole:
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


def sender_with_other_delivery_count(case: Case, link: LinkEnd, body: Flow) -> None:
    """A sender's flow has no delivery-count, or one that is not what it has sent.

    Why it matters: the receiver takes it for its own, and grants credit from it.
    Silent when: octets since the attach were not captured. More than was sent is right up to the limit of a
    flow with drain; aborted, resumed and unfinished deliveries may count or not.
    """
    if not link.sender or not link.whole:
        return
    value = body.delivery_count
    if value is None:
        if not body.unread(5):
            case.report("amqp10/L-DC-SENDER", "a sender's flow has no delivery-count")
        return
    count = nearest(value, link.count)
    most = link.count
    if link.drain_end != UNKNOWN and link.drain_limit > most:
        most = link.drain_limit
    least = link.count - link.uncounted
    if link.open is not None:
        least -= 1  # whether a delivery counts when it begins or when it is complete nobody says
    if count > most and count == link.count + link.continued:
        counting.pieces_counted(case, link, value)
    elif count > most or count < least:
        case.report(
            "amqp10/L-DC-SENDER",
            f"delivery-count is {value}, the sender's is {raw(link.count)}",
            CERTAIN,
            {"delivery_count": int(raw(link.count))},
        )


def sender_with_credit_of_its_own(case: Case, link: LinkEnd, body: Flow) -> None:
    """A sender's flow has more link-credit than the receiver has granted.

    Why it matters: only the receiver grants credit; it would have to doubt its own books.
    Silent when: octets of either peer since the attach were not captured. Possible when an earlier grant of
    the receiver's allows for it, or when it may be the receiver's own word, not counted down: "the last
    known value seen from the receiver".
    """
    if not link.sender or not link.whole or not body.link_credit or body.delivery_count is None:
        return
    if len(link.limits) == 0 and not case.me.whole:
        return
    count = nearest(body.delivery_count, link.count)
    certainty = link.limits.judge(count + body.link_credit - 1)
    if certainty == CERTAIN and len(link.limits) > 0:
        if body.link_credit <= link.limits.largest() - link.initial_count:
            certainty = POSSIBLE
    case.report(
        "amqp10/L-CREDIT-OWNER",
        f"a sender's flow has link-credit {body.link_credit}, the receiver has not granted as much",
        certainty,
        {"link_credit": body.link_credit, "delivery_count": body.delivery_count},
    )


def sender_with_drain_of_its_own(case: Case, link: LinkEnd, body: Flow) -> None:
    """A sender's flow has drain set, which the receiver never has.

    Why it matters: drain is the receiver's request; it may take its credit for gone.
    Silent when: octets of either peer since the attach were not captured.
    """
    if link.sender and body.drain and link.drain_end == UNKNOWN and link.whole and case.me.whole:
        case.report("amqp10/L-DRAIN-OWNER", "a sender's flow has drain, which the receiver has not set")


def drained_with_credit_left(case: Case, link: LinkEnd, body: Flow, right: bool) -> None:
    """A sender answers a request to drain: it has credit left, or none but for an advanced delivery-count.

    Why it matters: drained means that delivery-count reaches the limit; the receiver waits for the rest.
    Silent when: octets since the attach were not captured. Possible when the receiver has granted other
    credit than that (what is left may be of the other), or when deliveries were aborted, resumed or are under
    way: whether these count nobody says.
    """
    if not link.sender or not link.whole or body.delivery_count is None or link.drain_end == UNKNOWN:
        return
    limits = link.limits
    if len(limits) == 0:
        return
    count = nearest(body.delivery_count, link.count)
    evidence: dict[str, object] = {"delivery_count": int(raw(link.count)), "drain": True}
    if body.link_credit:
        if count > link.count:
            # An earlier credit used up, and a newer one left: to be told in one flow.
            newer = limits.newest() > link.drain_limit or int(count) in limits.bounds
            case.report(
                "amqp10/L-DRAIN-STATE",
                f"delivery-count advances to {body.delivery_count}, but link-credit "
                f"{body.link_credit} is left",
                POSSIBLE if newer else CERTAIN,
                evidence,
            )
    elif body.link_credit == 0 and body.drain and right and limits.ends[0] <= link.drain_end:
        least = min(limits.bounds)
        if count < least:
            sure = link.uncounted == 0 and link.open is None
            case.report(
                "amqp10/L-DRAIN-STATE",
                f"link-credit is 0, but delivery-count is {body.delivery_count}: to drain the link it has to "
                f"advance to {raw(least)}",
                CERTAIN if sure else POSSIBLE,
                evidence,
            )


def judge_flow(case: Case, link: LinkEnd, body: Flow) -> None:
    """The link's rules about flow."""
    attachment.judge_flow(case, link, body)
    if link.sender:
        before = case.found
        sender_with_other_delivery_count(case, link, body)
        found = case.found
        drained_with_credit_left(case, link, body, found == before)
        if case.found == found and (found > before or not counting.judge_stated_credit(case, link, body)):
            sender_with_credit_of_its_own(case, link, body)
        sender_with_drain_of_its_own(case, link, body)
    else:
        receiver_with_delivery_count_too_soon(case, link, body)
        receiver_with_delivery_count_never_reached(case, link, body)
        if body.available:
            counting.judge_available(case, link, body)


RULES = {
    "amqp10/L-UNATTACHED-TRANSFER": transfer_on_unattached_handle,
    "amqp10/L-UNATTACHED-FLOW": flow_on_unattached_handle,
    "amqp10/L-UNATTACHED-DETACH": detach_on_unattached_handle,
    "amqp10/L-HANDLE-INUSE": handle_in_use,
    "amqp10/L-NAME-UNIQUE": name_in_use,
    "amqp10/L-ATTACH-IDC": sender_without_initial_delivery_count,
    "amqp10/L-UNSETTLED-NULLKEY": unsettled_map_with_null_key,
    "amqp10/L-UNSETTLED-TYPES": unsettled_map_of_other_types,
    "amqp10/M-RES-NULLRCV-KEEP": unsettled_map_of_receiver_with_null,
    "amqp10/L-SRC-NULL": transfer_without_source,
    "amqp10/L-CREDIT-INIT": transfer_before_any_credit,
    "amqp10/L-CREDIT": transfer_beyond_credit,
    "amqp10/L-INCOMPLETE-NONEW": new_delivery_beside_incomplete_map,
    "amqp10/L-MAXMSG": message_larger_than_agreed,
    "amqp10/L-DC-UNSET": receiver_with_delivery_count_too_soon,
    "amqp10/L-DC-RECEIVER": receiver_with_delivery_count_never_reached,
    "amqp10/L-DC-SENDER": sender_with_other_delivery_count,
    "amqp10/L-CREDIT-OWNER": sender_with_credit_of_its_own,
    "amqp10/L-DRAIN-OWNER": sender_with_drain_of_its_own,
    "amqp10/L-DRAIN-STATE": drained_with_credit_left,
}
