"""Deliveries resumed when a link is attached again: what the two unsettled maps ask for."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue

T = b"t"
ACCEPTED, RELEASED = amqp.accepted(), amqp.released()
WHOLE = amqp.data(b"first") + amqp.data(b"second") + amqp.data(b"third")
REST = amqp.data(b"third")


def at(section: int, octet: int) -> bytes:
    return amqp.received(section_number=section, section_offset=octet)


def resuming(d: Dialogue, sender: bytes | None, receiver: bytes | None, **more: Any) -> None:
    """A link attached by both with a delivery that they hold in these states."""
    d.linked(
        client={"unsettled": {T: sender}, "rcv_settle_mode": 1},
        server={"unsettled": {T: receiver}, "rcv_settle_mode": 1, **more},
    )


def suspended(d: Dialogue, payload: bytes = WHOLE) -> None:
    """A delivery is sent, and the link detached by both."""
    d.linked()
    d.client.transfer(payload, delivery_tag=T)
    d.client.detach(closed=None)
    d.server.detach(closed=None)


def attached_again(d: Dialogue, client: Any, server: Any, count: int = 1) -> None:
    d.attached(
        client={"unsettled": client, "initial_delivery_count": count}, server={"unsettled": server}, credit=5
    )


@pair("M-RES-RESEND-NEW", cut=without("server attach"))
def resumed_though_the_receiver_has_no_record(d: Dialogue) -> None:
    d.linked(client={"unsettled": {T: None}}, server={"unsettled": {}})
    said = d.client.transfer(WHOLE, delivery_tag=T, resume=True if d.wrong else None)
    if d.wrong:
        said.breaks("M-RES-RESEND-NEW")
    d.goodbye()


@pair("M-RES-RESEND-MUST", cut=without("server attach"))
def left_without_sending_again(d: Dialogue) -> None:
    d.linked(client={"unsettled": {T: None, b"u": at(0, 0)}}, server={"unsettled": {b"u": at(0, 0)}})
    d.client.transfer(WHOLE, delivery_tag=b"u", resume=True)
    if not d.wrong:
        d.client.transfer(WHOLE, delivery_tag=T)
    said = d.client.detach()
    if d.wrong:
        said.may_break("M-RES-RESEND-MUST")
    d.server.detach()
    d.goodbye()


@pair("M-RES-TERMRCV", cut=without("server attach"))
def left_without_confirming(d: Dialogue) -> None:
    resuming(d, None, ACCEPTED)
    d.client.transfer(delivery_tag=b"new")
    if not d.wrong:
        d.client.transfer(b"", delivery_tag=T, resume=True, settled=True, state=ACCEPTED)
    said = d.client.detach()
    if d.wrong:
        said.may_break("M-RES-TERMRCV")
    d.server.detach()
    d.goodbye()


@pair("M-RES-TERMRCV-STATE", cut=without("server attach"))
def resumed_without_its_outcome(d: Dialogue) -> None:
    resuming(d, None, ACCEPTED)
    state = None if d.wrong else ACCEPTED
    said = d.client.transfer(b"", delivery_tag=T, resume=True, settled=True, state=state)
    if d.wrong:
        said.breaks("M-RES-TERMRCV-STATE")
    d.goodbye()


@pair("M-RES-BOTHTERM", cut=without("server attach"))
def resumed_unsettled_with_both_outcomes(d: Dialogue) -> None:
    resuming(d, ACCEPTED, ACCEPTED)
    said = d.client.transfer(b"", delivery_tag=T, resume=True, settled=None if d.wrong else True)
    if d.wrong:
        said.may_break("M-RES-BOTHTERM")
    d.goodbye()


@pair("M-RES-DIFFER", cut=without("server attach"))
def outcome_not_restated(d: Dialogue) -> None:
    resuming(d, ACCEPTED, RELEASED)
    said = d.client.transfer(b"", delivery_tag=T, resume=True, state=RELEASED if d.wrong else ACCEPTED)
    if d.wrong:
        said.breaks("M-RES-DIFFER")
    d.goodbye()


@pair("M-RES-DIFFER-ECHO", cut=without("server attach"))
def outcome_not_echoed(d: Dialogue) -> None:
    d.linked(client={"unsettled": {T: ACCEPTED}}, server={"unsettled": {T: RELEASED}})
    d.client.transfer(b"", delivery_tag=T, resume=True, state=ACCEPTED)
    said = d.server.disposition(0, state=RELEASED if d.wrong else ACCEPTED)
    if d.wrong:
        said.breaks("M-RES-DIFFER-ECHO")
    d.goodbye()


@pair("M-RES-TERMMAP", cut=without("server attach"))
def resumed_with_data_after_an_outcome(d: Dialogue) -> None:
    resuming(d, ACCEPTED if d.wrong else None, at(2, 0))
    said = d.client.transfer(REST, delivery_tag=T, resume=True, state=at(2, 0))
    if d.wrong:
        said.may_break("M-RES-TERMMAP")
    d.goodbye()


@pair("M-RES-ABORT-LOST", cut=without("server attach"))
def not_aborted_though_decided(d: Dialogue) -> None:
    resuming(d, ACCEPTED, at(1, 2000))
    how: dict[str, Any] = {"settled": True} if d.wrong else {"aborted": True}
    said = d.client.transfer(b"", delivery_tag=T, resume=True, **how)
    if d.wrong:
        said.breaks("M-RES-ABORT-LOST")
    d.goodbye()


@pair("M-RES-GAP", cut=without("server attach"))
def not_aborted_with_a_gap(d: Dialogue) -> None:
    resuming(d, at(0, 500), at(0, 100))
    how: dict[str, Any] = {"state": at(0, 500)} if d.wrong else {"aborted": True}
    said = d.client.transfer(REST if d.wrong else b"", delivery_tag=T, resume=True, **how)
    if d.wrong:
        said.breaks("M-RES-GAP")
    d.goodbye()


@pair("M-RES-NULLRCV", "M-RES-NULLRCV-KEEP", cut=without("server attach"))
def resumed_behind_the_start(d: Dialogue) -> None:
    d.begun()
    d.client.attach(unsettled={T: None}).called("client attach")
    said = d.server.attach(RECEIVER, unsettled={T: None if d.wrong else at(1, 0)}).called("server attach")
    if d.wrong:
        said.breaks("M-RES-NULLRCV-KEEP")
    d.server.flow(handle=0)
    said = d.client.transfer(WHOLE, delivery_tag=T, resume=True, state=at(1, 0))
    if d.wrong:
        said.breaks("M-RES-NULLRCV")
    d.goodbye()


@pair("M-RES-START", cut=without("server attach"))
def resumed_behind_the_receiver(d: Dialogue) -> None:
    resuming(d, at(1, 150), at(2, 0))
    said = d.client.transfer(REST, delivery_tag=T, resume=True, state=at(2, 1) if d.wrong else at(2, 0))
    if d.wrong:
        said.breaks("M-RES-START")
    d.goodbye()


@pair("M-RES-START", cut=without("client attach"))
def resumed_before_the_sender(d: Dialogue) -> None:
    resuming(d, at(1, 150), at(2, 0))
    said = d.client.transfer(REST, delivery_tag=T, resume=True, state=None if d.wrong else at(1, 150))
    if d.wrong:
        said.breaks("M-RES-START")
    d.goodbye()


@pair("D-RESUME-OMIT", cut=without("server attach"))
def data_left_out(d: Dialogue) -> None:
    resuming(d, None, at(0, 0))
    said = d.client.transfer(b"" if d.wrong else WHOLE, delivery_tag=T, resume=True)
    if d.wrong:
        said.breaks("D-RESUME-OMIT")
    d.goodbye()


@reported("resumed with less data than before")
def less_data(d: Dialogue) -> None:
    suspended(d)
    attached_again(d, {T: None}, {T: at(0, 0)})
    d.client.transfer(REST, delivery_tag=T, resume=True).may_break("D-RESUME-OMIT")
    d.goodbye()


@pair("D-RESUME-BOTH", cut=without("server attach"))
def left_without_resuming(d: Dialogue) -> None:
    resuming(d, None, at(2, 0))
    d.client.transfer(delivery_tag=b"new")
    if not d.wrong:
        d.client.transfer(REST, delivery_tag=T, resume=True, state=at(2, 0))
    said = d.client.detach()
    if d.wrong:
        said.may_break("D-RESUME-BOTH")
    d.server.detach()
    d.goodbye()


@legal("interrupted before anything could be resumed")
def interrupted(d: Dialogue) -> None:
    resuming(d, None, at(2, 0))
    d.client.transfer(delivery_tag=b"new")
    d.server.detach(closed=None)
    d.client.detach(closed=None)
    d.goodbye()


@pair("D-RESUME-IGNORE", "M-RES-RESEND-NEW", cut=without("server attach"))
def outcome_of_what_is_to_be_ignored(d: Dialogue) -> None:
    d.linked(client={"unsettled": {T: None}}, server={"unsettled": {}})
    said = d.client.transfer(WHOLE, delivery_tag=T, resume=True if d.wrong else None)
    if d.wrong:
        said.breaks("M-RES-RESEND-NEW")
    said = d.server.disposition(0)
    if d.wrong:
        said.breaks("D-RESUME-IGNORE")
    d.goodbye()


@legal("a range that spans a delivery to be ignored")
def range_over_what_is_ignored(d: Dialogue) -> None:
    d.begun()
    d.client.attach(unsettled={T: None, b"u": None})
    with d.on_their_way():
        d.server.attach(RECEIVER, unsettled={b"u": at(0, 0)})
        d.server.flow(handle=0)
    d.client.transfer(WHOLE, delivery_tag=b"u", resume=True)
    d.client.transfer(WHOLE, delivery_tag=b"new")
    d.server.disposition(0, 1)
    d.goodbye()


@pair("D-RESUME-TGTONLY", cut=without("server attach"))
def listed_again_though_only_here(d: Dialogue) -> None:
    d.linked(client={"unsettled": {}}, server={"unsettled": {T: ACCEPTED}})
    d.client.transfer(delivery_tag=b"u")
    d.server.disposition(0)
    d.server.detach(closed=None)
    d.client.detach(closed=None)
    d.client.attach(unsettled={}, initial_delivery_count=1)
    said = d.server.attach(RECEIVER, unsettled={T: ACCEPTED} if d.wrong else {})
    if d.wrong:
        said.breaks("D-RESUME-TGTONLY")
    d.goodbye()


@legal("a sender's other outcome is repeated and settled")
def outcome_echoed(d: Dialogue) -> None:
    resuming(d, ACCEPTED, RELEASED)
    d.client.transfer(b"", delivery_tag=T, resume=True, state=ACCEPTED)
    d.client.disposition(0, role=SENDER, state=ACCEPTED)
    d.server.disposition(0, state=ACCEPTED)
    d.goodbye()
