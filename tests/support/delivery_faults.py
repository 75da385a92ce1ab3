"""Faults about deliveries, what becomes of them, and transactions, for `support.faults`."""

from __future__ import annotations

from typing import Any

from support import amqp10_encode as amqp
from support.faults import (
    breaks,
    continuation,
    control_links,
    delivery,
    links,
    open_window,
    outcomes,
    ready,
    received,
    reported,
    senders,
    sessions,
)
from support.legal import (
    CLIENT,
    OUTCOMES,
    RECEIVER,
    SENDER,
    WRAP,
    Delivery,
    Incoming,
    Link,
    Peer,
    Said,
    Session,
)

# ---- deliveries -------------------------------------------------------------------------------------------


@breaks("D-NOINTERLEAVE")
def deliveries_interleave(peer: Peer) -> Said | None:
    for _, link in senders(peer)[:1]:
        if link.open is not None and link.uncounted == 0:
            number = (link.open.number + 77) & WRAP
            return continuation(peer, delivery_id=number, delivery_tag=b"another", message_format=0)
    return None


def sent(peer: Peer) -> list[tuple[Session, Delivery]]:
    """Deliveries sent whole on links attached once, of which the receiver has said nothing."""
    return [
        (session, each)
        for session in sessions(peer)
        for each in session.sent.values()
        if each.link.up and each.link.live and each.link.attaches == 1
        if each.remote_state is None and not each.remote_settled
        if each.txn is None and each.control is None and not each.link.coordinator
    ]


@breaks("D-SND-SPONT")
def decided_by_its_sender(peer: Peer) -> Said | None:
    for session, each in sent(peer):
        return reported(peer, session, SENDER, each.number, settled=True, state="released")
    return None


@breaks("M-REJ-SPONT")
def rejected_by_its_sender(peer: Peer) -> Said | None:
    for session, each in sent(peer):
        return reported(peer, session, SENDER, each.number, settled=True, state="rejected")
    return None


@breaks("D-ABORT-SETTLED")
def aborted_delivery_settled(peer: Peer) -> Said | None:
    for session in sessions(peer):
        if session.aborted:
            return reported(peer, session, SENDER, session.aborted[-1], settled=True)
    return None


@breaks("D-DISP-PARTIAL")
def disposition_of_an_incomplete_delivery(peer: Peer) -> Said | None:
    for session, link in senders(peer):
        open_one = link.open
        if open_one is not None and not open_one.settled and open_one.txn is None and not link.coordinator:
            return reported(peer, session, SENDER, open_one.number, state="modified")
    return None


@breaks("M-RECEIVED-POS")
def received_beyond_what_was_sent(peer: Peer) -> Said | None:
    for session, each in received(peer):
        if each.state not in OUTCOMES:
            return reported(peer, session, RECEIVER, each.number, state=("received", 0, 1 << 30))
    return None


# ---- resuming ---------------------------------------------------------------------------------------------


def resumable(peer: Peer) -> list[tuple[Session, Link]]:
    """Links attached again by both ends with what they hold unsettled, on which this peer may send."""
    return [
        (session, link)
        for session, link in links(peer)
        if link.sender and link.held and not link.tangled and link.open is None
        if link.limit is not None and link.count < link.limit and open_window(session)
        if link.theirs["target"] and link.mine["source"] and link.theirs["unsettled"] is not None
    ]


def again(peer: Peer, session: Session, link: Link, tag: bytes, payload: bytes, **fields: Any) -> Said:
    return delivery(peer, session, link, payload, delivery_tag=tag, resume=True, **fields)


@breaks("M-RES-RESEND-NEW")
def resumed_though_unknown(peer: Peer) -> Said | None:
    for session, link in resumable(peer):
        for tag in link.held:
            if tag not in link.theirs["unsettled"]:
                return again(peer, session, link, tag, amqp.data(b"x"))
    return None


@breaks("M-RES-TERMRCV-STATE")
def resumed_without_its_outcome(peer: Peer) -> Said | None:
    for session, link in resumable(peer):
        for tag in link.held:
            if link.theirs["unsettled"].get(tag) in OUTCOMES and link.mine["unsettled"][tag] is None:
                return again(peer, session, link, tag, b"", settled=True)
    return None


@breaks("M-RES-START")
def resumed_behind_the_receiver(peer: Peer) -> Said | None:
    for session, link in resumable(peer):
        for tag in link.held:
            if link.theirs["unsettled"].get(tag) == "received" and link.mine["unsettled"][tag] is None:
                return again(peer, session, link, tag, b"x", state=("received", 0, 5))
    return None


@breaks("D-RESUME-OMIT")
def resumed_without_data(peer: Peer) -> Said | None:
    for session, link in resumable(peer):
        for tag in link.held:
            if link.theirs["unsettled"].get(tag) == "received" and link.mine["unsettled"][tag] is None:
                return again(peer, session, link, tag, b"")
    return None


# ---- transactions: the controller -------------------------------------------------------------------------


@breaks("TX-CTRL-NOWORK")
def work_on_control_link(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        return delivery(peer, session, link, amqp.data(b"x"))
    return None


@breaks("TX-DECLARE-BODY")
def declare_as_sequence(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        return delivery(peer, session, link, amqp.amqp_sequence([amqp.Encoded(amqp.declare())]))
    return None


@breaks("TX-DISCHARGE-BODY")
def discharge_as_data(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        for txn in peer.complete():
            peer.live.remove(txn)
            return delivery(peer, session, link, amqp.data(amqp.discharge(txn_id=txn, fail=False)))
    return None


@breaks("TX-GLOBALID")
def global_id_not_offered(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        return delivery(peer, session, link, amqp.amqp_value(amqp.declare(global_id=amqp.binary(b"XID"))))
    return None


@breaks("TX-POST-ALLFRAMES")
def transfer_outside_its_transaction(peer: Peer) -> Said | None:
    for session, link in senders(peer) if peer.side == CLIENT else []:
        if link.open is not None and link.open.txn is not None and open_window(session):
            assert session.out is not None
            return peer.say("transfer", session.out, b"", handle=link.handle, more=True)
    return None


@breaks("TX-POST-PARTIAL")
def discharged_while_incomplete(peer: Peer) -> Said | None:
    for session, link in control_links(peer):
        for txn in peer.live:
            asked = any(each.asked == txn for _, each in links(peer))
            if not asked and any(each.open and each.open.txn == txn for _, each in links(peer)):
                body = amqp.amqp_value(amqp.discharge(txn_id=txn, fail=False))
                return delivery(peer, session, link, body)
    return None


@breaks("TX-CTRLCLOSE")
def work_after_its_control_link(peer: Peer) -> Said | None:
    control = peer.control
    for session, link in ready(peer):
        if link.coordinator or link.mine["snd_settle_mode"] == 1:
            continue
        for every in sessions(peer):
            if peer.live and control is not None and control.up and control in every.handles.values():
                dead = peer.live[0]
                peer.detach(every, control, closed=True)
                return delivery(peer, session, link, state=("transactional", dead, None))
    return None


# ---- transactions: the resource ---------------------------------------------------------------------------


def requests(peer: Peer, kind: str) -> list[tuple[Session, Incoming]]:
    """Declares or discharges that wait for their answer."""
    return [
        (session, each)
        for session in sessions(peer)
        for each in session.received.values()
        if each.control is not None and each.control[0] == kind and each.complete
        if each.link.up and each.link.attaches == 1 and not each.settled and each.state is None
    ]


@breaks("TX-DECLARE-OK")
def declare_accepted(peer: Peer) -> Said | None:
    for session, each in requests(peer, "declare"):
        return reported(peer, session, RECEIVER, each.number, settled=True, state="accepted")
    return None


@breaks("TX-DECLARE-FAIL-REJECT")
def declare_rejected_without_error(peer: Peer) -> Said | None:
    for session, each in requests(peer, "declare"):
        return reported(peer, session, RECEIVER, each.number, settled=True, state="refused")
    return None


@breaks("TX-DISCHARGE-FAIL-REJECT")
def discharge_released(peer: Peer) -> Said | None:
    for session, each in requests(peer, "discharge"):
        assert each.control is not None
        if not each.control[2]:
            return reported(peer, session, RECEIVER, each.number, settled=True, state="released")
    return None


@breaks("TX-DISCHARGE-ROLLBACK-OK")
def rollback_refused(peer: Peer) -> Said | None:
    for session, each in requests(peer, "discharge"):
        assert each.control is not None
        if each.control[2]:
            return reported(peer, session, RECEIVER, each.number, settled=True, state="failed")
    return None


@breaks("TX-DECLARED-ELSEWHERE")
def declared_of_a_message(peer: Peer) -> Said | None:
    for session, each in received(peer):
        if each.state not in OUTCOMES:
            settled = None if each.second else True
            state = ("declared", b"planted")
            return reported(peer, session, RECEIVER, each.number, settled=settled, state=state)
    return None


@breaks("TX-RES-ID")
def outcome_under_a_transaction_of_its_own(peer: Peer) -> Said | None:
    txn = b"txn%d" % peer.declared
    for session, each in received(peer):
        if peer.declared and txn not in peer.over and each.state not in OUTCOMES:
            if not outcomes(each) or "accepted" in outcomes(each):
                settled = None if each.second else True
                state = ("transactional", txn, "accepted")
                return reported(peer, session, RECEIVER, each.number, settled=settled, state=state)
    return None


def postings(peer: Peer) -> list[tuple[Session, Incoming]]:
    """What was posted under transactions and has no outcome yet."""
    return [
        (session, each)
        for session in sessions(peer)
        for each in session.received.values()
        if each.txn is not None and each.complete and each.state is None and not each.sent_settled
        if not (each.aborted or each.settled or each.remote_settled)
        if each.link.up and each.link.live and each.link.attaches == 1
    ]


@breaks("TX-POST-OUTCOME")
def committed_without_outcome(peer: Peer) -> Said | None:
    waiting = {each.txn for _, each in postings(peer)}
    for session, each in requests(peer, "discharge"):
        assert each.control is not None
        if not each.control[2] and each.control[1] in waiting:
            return reported(peer, session, RECEIVER, each.number, settled=True, state="accepted")
    return None


@breaks("TX-POST-OUTCOME-ID")
def outcome_that_does_not_name_its_transaction(peer: Peer) -> Said | None:
    asked = {each.control[1] for _, each in requests(peer, "discharge") if each.control is not None}
    for session, each in postings(peer):
        if each.txn not in peer.over and each.txn not in asked:
            if any(link.coordinator for _, link in links(peer)):
                if not outcomes(each) or "accepted" in outcomes(each):
                    settled = None if each.second else True
                    return reported(peer, session, RECEIVER, each.number, settled=settled, state="accepted")
    return None
