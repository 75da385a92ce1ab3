"""Faults, and what the other side does about them: nothing, or the wrong thing."""

from __future__ import annotations

from scenarios.pairs import pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("C-MAXFRAME", "C-MAXFRAME-REACT", cut=without("server open"))
def oversized_frame_is_taken(d: Dialogue) -> None:
    d.opened(server={"max_frame_size": 1024})
    d.client.begin()
    d.server.begin()
    d.attached()
    said = d.client.transfer(amqp.data(b"x" * (1100 if d.wrong else 900)))
    answer = d.server.disposition(0)
    if d.wrong:
        said.breaks("C-MAXFRAME")
        answer.breaks("C-MAXFRAME-REACT")
    d.goodbye()


@reported("the oversized frame may not have been read")
def oversized_frame_may_not_have_been_read(d: Dialogue) -> None:
    d.opened(server={"max_frame_size": 1024})
    d.client.begin()
    d.server.begin()
    d.attached()
    d.client.transfer(amqp.data(b"x" * 1100)).breaks("C-MAXFRAME")
    d.server.empty()
    d.server.flow(handle=0, next_incoming_id=0, delivery_count=0)
    d.server.close("amqp:connection:framing-error")
    d.client.close()
    d.tcp.goodbye()


@pair("C-MAXFRAME", "C-CLOSE-REASON", cut=without("server open"))
def closed_without_a_reason(d: Dialogue) -> None:
    d.opened(server={"max_frame_size": 1024})
    d.client.begin()
    d.server.begin()
    d.attached()
    said = d.client.transfer(amqp.data(b"x" * (1100 if d.wrong else 900)))
    answer = d.server.close()
    if d.wrong:
        said.breaks("C-MAXFRAME")
        answer.may_break("C-CLOSE-REASON")
    d.client.close()
    d.tcp.goodbye()


@pair("S-HANDLEMAX", "S-HANDLEMAX-REACT", cut=without("server begin"))
def handle_out_of_range_is_taken(d: Dialogue) -> None:
    d.begun(server={"handle_max": 1})
    handle = 2 if d.wrong else 0
    said = d.client.attach(SENDER, handle=handle)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.client.transfer(handle=handle)
    answer = d.server.disposition(0)
    if d.wrong:
        said.breaks("S-HANDLEMAX")
        answer.breaks("S-HANDLEMAX-REACT")
    d.goodbye()


@reported("the session is ended, where the connection is to be closed")
def handle_out_of_range_ends_the_session(d: Dialogue) -> None:
    d.begun(server={"handle_max": 1})
    d.client.attach(SENDER, handle=2).breaks("S-HANDLEMAX")
    d.server.end_session(error="amqp:session:handle-in-use").may_break("S-HANDLEMAX-REACT")
    d.client.end_session()
    d.goodbye()


@pair("L-HANDLE-INUSE", "L-HANDLE-INUSE-REACT")
def handle_in_use_is_taken(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, handle=0, name="q")
    d.server.attach(RECEIVER, handle=0, name="q")
    d.client.attach(SENDER, handle=1, name="r")
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1)
    said = d.client.attach(SENDER, handle=0 if d.wrong else 2, name="s")
    d.client.transfer(handle=1)
    answer = d.server.disposition(0)
    if d.wrong:
        said.breaks("L-HANDLE-INUSE")
        answer.breaks("L-HANDLE-INUSE-REACT")
    d.goodbye()


@pair("L-UNATTACHED-FLOW", "L-UNATTACHED-FLOW-REACT")
def flow_on_an_unattached_handle_is_ignored(d: Dialogue) -> None:
    d.linked()
    if d.wrong:
        d.client.flow(handle=7, delivery_count=0, link_credit=1).breaks("L-UNATTACHED-FLOW")
    d.client.transfer()
    answer = d.server.disposition(0)
    if d.wrong:
        answer.breaks("L-UNATTACHED-FLOW-REACT")
    d.goodbye()


@pair("L-UNATTACHED-TRANSFER", "S-ERR-END")
def transfer_on_an_unattached_handle_is_ignored(d: Dialogue) -> None:
    d.linked()
    said = d.client.transfer(handle=7 if d.wrong else 0)
    answer = d.server.flow(handle=0, link_credit=5)
    if d.wrong:
        said.breaks("L-UNATTACHED-TRANSFER")
        answer.breaks("S-ERR-END")
    d.goodbye()


@reported("ended without saying why")
def ended_without_saying_why(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(handle=7).breaks("L-UNATTACHED-TRANSFER")
    d.server.end_session().may_break("S-ERR-END")
    d.client.end_session()
    d.goodbye()


@reported("ended, and why")
def ended_and_why(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(handle=7).breaks("L-UNATTACHED-TRANSFER")
    d.server.end_session(error="amqp:session:unattached-handle")
    d.client.end_session()
    d.goodbye()


def _two_ways(d: Dialogue) -> None:
    """A link on which the client sends, and one on which the server does."""
    d.linked()
    d.client.attach(RECEIVER, handle=1, name="r")
    d.server.attach(SENDER, handle=1, name="r")
    d.client.flow(handle=1)


@pair("L-ERRANT-INPUT", "L-ERRANT-REACT")
def input_for_a_failed_link(d: Dialogue) -> None:
    _two_ways(d)
    d.server.detach(error="amqp:resource-deleted")
    d.server.transfer(handle=1)
    d.client.disposition(0)
    if d.wrong:
        d.client.transfer().breaks("L-ERRANT-INPUT")
        d.server.flow().may_break("L-ERRANT-REACT")
    d.client.detach()
    d.goodbye()


@reported("it was on its way")
def input_that_was_on_its_way(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.server.detach(error="amqp:resource-deleted")
        d.client.transfer()
    d.client.transfer().may_break("L-ERRANT-INPUT")
    d.client.detach()
    d.goodbye()


@pair("L-ERR-RESUME-UNSETTLED", "L-ERR-PIPELINED")
def resumed_without_unsettled_map(d: Dialogue) -> None:
    d.linked()
    d.server.detach(closed=False, error="amqp:link:detach-forced")
    d.client.detach(closed=False)
    said = d.client.attach(SENDER, unsettled=None if d.wrong else {})
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.client.transfer()
    answer = d.server.disposition(0)
    if d.wrong:
        said.may_break("L-ERR-RESUME-UNSETTLED")
        answer.breaks("L-ERR-PIPELINED")
    d.goodbye()


@pair("L-MAXMSG", "L-MAXMSG-REACT", cut=without("server attach"))
def message_too_large_is_taken(d: Dialogue) -> None:
    d.linked(server={"max_message_size": 100})
    said = d.client.transfer(amqp.data(b"x" * (200 if d.wrong else 50)))
    answer = d.server.disposition(0)
    if d.wrong:
        said.breaks("L-MAXMSG")
        answer.breaks("L-MAXMSG-REACT")
    d.goodbye()


@reported("the link is detached, and why")
def message_too_large_is_refused(d: Dialogue) -> None:
    d.linked(server={"max_message_size": 100})
    d.client.transfer(amqp.data(b"x" * 200)).breaks("L-MAXMSG")
    d.server.detach(error="amqp:link:message-size-exceeded")
    d.client.detach()
    d.goodbye()


@pair("L-INCOMPLETE-NONEW", "L-INCOMPLETE-REACT", cut=without("server attach"))
def new_delivery_is_taken(d: Dialogue) -> None:
    d.linked(
        client={"unsettled": {b"\7": None}},
        server={"unsettled": {}, "incomplete_unsettled": True if d.wrong else None},
    )
    said = d.client.transfer()
    answer = d.server.disposition(0)
    if d.wrong:
        said.breaks("L-INCOMPLETE-NONEW")
        answer.breaks("L-INCOMPLETE-REACT")
    d.goodbye()


@pair("L-CREDIT", "L-ERR-DETACH", cut=without("credit"))
def detached_without_an_error(d: Dialogue) -> None:
    d.linked(credit=1)
    d.client.transfer()
    if d.wrong:
        d.client.transfer().breaks("L-CREDIT")
    answer = d.server.detach()
    if d.wrong:
        answer.may_break("L-ERR-DETACH")
    d.client.detach()
    d.goodbye()


@pair("L-CREDIT", "L-REDUCE-REACT", cut=without("credit"))
def detached_with_another_error(d: Dialogue) -> None:
    d.linked(credit=10)
    d.server.flow(handle=0, link_credit=1)
    d.client.transfer()
    if d.wrong:
        d.client.transfer().may_break("L-CREDIT")
    answer = d.server.detach(error="amqp:not-allowed")
    if d.wrong:
        answer.may_break("L-REDUCE-REACT")
    d.client.detach()
    d.goodbye()


@pair("S-LINK-ONE", "L-STEAL")
def stolen_link_is_not_given_up(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    name = "q" if d.wrong else "r"
    said = d.client.attach(SENDER, channel=1, name=name)
    d.server.attach(RECEIVER, channel=1, name=name)
    d.server.flow(handle=0, channel=1)
    d.client.transfer(channel=1)
    d.server.disposition(0, channel=1)
    d.server.flow(handle=0, link_credit=20)
    d.wait(seconds=90)
    answer = d.server.flow(handle=0, link_credit=30)
    if d.wrong:
        said.may_break("S-LINK-ONE")
        answer.may_break("L-STEAL")
    d.goodbye()


@reported("the stolen link is given up for another reason")
def stolen_link_is_closed(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.attach(SENDER, channel=1).may_break("S-LINK-ONE")
    d.server.attach(RECEIVER, channel=1)
    d.server.detach(error="amqp:internal-error").may_break("L-STEAL")
    d.goodbye()


@reported("a minute passes, and nothing shows that it was read")
def ignored_for_a_minute(d: Dialogue) -> None:
    d.begun()
    d.client.flow(handle=7, delivery_count=0, link_credit=1).breaks("L-UNATTACHED-FLOW")
    d.server.flow(next_incoming_id=0)
    d.wait(seconds=90)
    d.server.flow(next_incoming_id=0).may_break("L-UNATTACHED-FLOW-REACT")
    d.goodbye()
