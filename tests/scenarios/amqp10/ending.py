"""Answers that are owed and never come. Nobody closes these connections: the capture just ends."""

from __future__ import annotations

from scenarios.pairs import legal, pair, without
from support.dialogue import RECEIVER, SENDER, Dialogue


def _go_on(d: Dialogue) -> None:
    """The server shows that it has read what the client said, and goes on for two minutes."""
    d.client.transfer()
    d.wait(seconds=120)
    d.server.flow()


@pair("S-BEGIN-ANSWER", cut=without("client begin"))
def begin_never_answered(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    if not d.wrong:
        d.server.begin(channel=1)
    _go_on(d)
    if d.wrong:
        d.said[-1].may_break("S-BEGIN-ANSWER")


@pair("S-END-ANSWER", cut=without("client begin"))
def end_never_answered(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.end_session(channel=1)
    if not d.wrong:
        d.server.end_session(channel=1)
    _go_on(d)
    if d.wrong:
        d.said[-1].may_break("S-END-ANSWER")


@pair("L-ATTACH-ANSWER", cut=without("client begin"))
def attach_never_answered(d: Dialogue) -> None:
    d.linked()
    d.client.attach(SENDER, handle=1, name="r")
    if not d.wrong:
        d.server.attach(RECEIVER, handle=1, name="r")
    _go_on(d)
    if d.wrong:
        d.said[-1].may_break("L-ATTACH-ANSWER")


@legal("what another session proves does not show that this one had read what it was asked")
def asked_on_a_session_that_stands_still(d: Dialogue) -> None:
    d.linked()
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.attach(RECEIVER, name="back", channel=1)
    d.server.attach(SENDER, name="back", channel=1)
    d.client.attach(SENDER, handle=1, name="r", channel=1)
    d.server.attach(RECEIVER, handle=1, name="r", channel=1)
    d.client.flow(echo=True, channel=1)
    d.client.flow(handle=0, link_credit=1, drain=True, channel=1)
    d.client.attach(SENDER, handle=2, name="s", channel=1)
    d.client.detach(handle=1, channel=1)
    d.client.transfer()
    d.server.disposition(0)
    _go_on(d)


@pair("L-CLOSE-ANSWER", cut=without("client begin"))
def detach_never_answered(d: Dialogue) -> None:
    d.linked()
    d.client.attach(SENDER, handle=1, name="r")
    d.server.attach(RECEIVER, handle=1, name="r")
    d.client.detach(handle=1)
    if not d.wrong:
        d.server.detach(handle=1)
    _go_on(d)
    if d.wrong:
        d.said[-1].may_break("L-CLOSE-ANSWER")


@pair("L-CLOSE-ANSWER", cut=without("client begin"))
def detach_answered_by_one_that_does_not_close(d: Dialogue) -> None:
    d.linked()
    d.client.detach()
    said = d.server.detach(closed=None if d.wrong else True)
    if d.wrong:
        said.may_break("L-CLOSE-ANSWER")
    d.client.end_session()
    d.server.end_session()
    d.goodbye()


@legal("detaches that cross, one of them closing")
def crossing_detaches_of_which_one_closes(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.detach()
        d.server.detach(closed=None)
    d.server.attach(RECEIVER)
    d.server.detach()
    d.goodbye()


@legal("a closing detach read too late")
def a_closing_detach_read_too_late(d: Dialogue) -> None:
    d.linked()
    d.client.detach()
    d.server.detach(closed=None)
    d.server.attach(RECEIVER)
    d.server.detach()
    d.goodbye()


@pair("L-DRAIN-ADVANCE", cut=without("client begin"))
def link_never_drained(d: Dialogue) -> None:
    d.linked()
    d.server.attach(SENDER, handle=1, name="back")
    d.client.attach(RECEIVER, handle=1, name="back")
    d.client.flow(handle=1, drain=True)
    if not d.wrong:
        d.server.flow(handle=1, delivery_count=10, link_credit=0, drain=True)
    _go_on(d)
    if d.wrong:
        d.said[-1].may_break("L-DRAIN-ADVANCE")
