"""Windows of a session, and the counters behind them."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, Dialogue


@pair("S-WIN-FORMULA", cut=without("server begin"))
def window_counted_from_its_own_id(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 3})
    d.attached()
    d.client.transfer()
    d.client.transfer()
    d.server.flow(next_incoming_id=1, incoming_window=3)
    d.client.transfer()
    d.client.transfer()
    if d.wrong:
        d.client.transfer().breaks("S-WIN-FORMULA")
    d.goodbye()


@pair("S-WIN-FORMULA-INIT", cut=without("server begin"))
def window_counted_from_nothing(d: Dialogue) -> None:
    d.opened()
    d.server.begin(incoming_window=2).called("server begin")
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, delivery_count=None)
    with d.on_their_way():
        d.client.begin()
        d.client.attach()
        d.client.transfer()
        d.client.transfer()
        d.server.flow(next_incoming_id=None, incoming_window=2)
    if d.wrong:
        d.client.transfer().breaks("S-WIN-FORMULA-INIT")
    d.goodbye()


@pair("S-WIN-DECR", cut=without("server begin"))
def further_transfers_not_counted(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 3})
    d.attached()
    d.client.transfer(amqp.data(b"one"), more=True)
    d.client.transfer(amqp.data(b"two"))
    d.client.transfer()
    if d.wrong:
        d.client.transfer().breaks("S-WIN-DECR")
    d.goodbye()


@pair("S-WIN-OUT", cut=without("client begin"))
def transfer_beyond_its_own_window(d: Dialogue) -> None:
    d.begun(client={"outgoing_window": 2})
    d.attached()
    d.client.transfer()
    d.client.transfer()
    if d.wrong:
        d.client.transfer().may_break("S-WIN-OUT")
        d.client.transfer()
    else:
        d.client.flow()
        d.client.transfer()
    d.goodbye()


@pair("S-FLOW-NEXTOUT", "S-FLOW-SYNC", cut=without("client begin"))
def next_incoming_id_not_taken_over(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    if d.wrong:
        d.client.flow(next_outgoing_id=5).breaks("S-FLOW-NEXTOUT")
    d.client.transfer()
    d.server.disposition(0, last=1)
    said = d.server.flow(next_incoming_id=2)
    if d.wrong:
        said.may_break("S-FLOW-SYNC")
    d.goodbye()


@legal("a count is not taken over before the flow is read")
def not_read_yet(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.transfer()
        d.client.flow()
        d.server.flow(next_incoming_id=0)
    d.server.flow()
    d.goodbye()


@pair("S-FLOW-ECHO", cut=without("client begin"))
def echo_never_answered(d: Dialogue) -> None:
    d.linked()
    d.client.flow(echo=True)
    d.client.transfer()
    d.server.disposition(0)
    if not d.wrong:
        d.server.flow()
    d.wait(seconds=90)
    said = d.server.empty()
    if d.wrong:
        said.may_break("S-FLOW-ECHO")
    d.client.empty()


@reported("of a link, not answered by a flow of the session")
def echo_of_a_link_never_answered(d: Dialogue) -> None:
    d.linked()
    d.client.flow(handle=0, delivery_count=0, link_credit=10, echo=True)
    d.client.transfer()
    d.server.disposition(0)
    d.server.flow()
    d.wait(seconds=90)
    d.server.empty().may_break("S-FLOW-ECHO")
    d.client.empty()


@pair("S-BEGIN-LOCALNULL", cut=without("server open"))
def remote_channel_of_a_new_session(d: Dialogue) -> None:
    d.opened()
    said = d.client.begin(remote_channel=0 if d.wrong else None)
    if d.wrong:
        said.breaks("S-BEGIN-LOCALNULL")
    d.goodbye()


@pair("S-CH-LOWEST", cut=without("server open"))
def channel_that_is_not_the_lowest(d: Dialogue) -> None:
    d.opened()
    channel = 2 if d.wrong else 0
    said = d.client.begin(channel=channel)
    if d.wrong:
        said.breaks("S-CH-LOWEST")
    d.server.begin(remote_channel=channel)
    d.client.begin(channel=channel + 3 if d.wrong else 1)
    d.goodbye()


@legal("a channel is not unused before its end is answered")
def channel_is_not_unused_yet(d: Dialogue) -> None:
    d.begun()
    with d.on_their_way():
        d.client.end_session()
        d.client.begin(channel=1)
    d.server.end_session()
    d.server.begin(channel=0, remote_channel=1)
    d.goodbye()
