"""Sessions: channels, begins and ends, windows and ids."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import SAME, legal, one_direction, pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("S-BEGIN-FIRST")
def frame_without_session(d: Dialogue) -> None:
    d.opened()
    if d.wrong:
        d.client.attach().breaks("S-BEGIN-FIRST")
    d.client.begin()
    d.server.begin()
    d.client.attach()
    d.server.attach(RECEIVER)
    d.goodbye()


@pair("S-END-LAST")
def frame_after_end(d: Dialogue) -> None:
    d.begun()
    d.client.end_session()
    if d.wrong:
        d.client.flow().breaks("S-END-LAST")
    d.server.end_session()
    d.goodbye()


@pair("S-BEGIN-REUSE", cut=without("client begin"))
def begin_on_used_channel(d: Dialogue) -> None:
    d.begun()
    if not d.wrong:
        d.client.end_session()
        d.server.end_session()
    said = d.client.begin()
    if d.wrong:
        said.breaks("S-BEGIN-REUSE")
    d.goodbye()


@pair("S-BEGIN-REMOTEVALID", cut=without("client begin"))
def remote_channel_of_no_begin(d: Dialogue) -> None:
    d.opened()
    d.client.begin().called("client begin")
    said = d.server.begin(remote_channel=3 if d.wrong else 0)
    if d.wrong:
        said.breaks("S-BEGIN-REMOTEVALID")
    d.goodbye()


@reported("a begin answered twice")
def begin_answered_twice(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    d.server.begin()
    d.server.begin(channel=1, remote_channel=0).breaks("S-BEGIN-REMOTEVALID")
    d.goodbye()


@pair("S-BEGIN-REMOTESET")
def begin_beside_the_one_to_answer(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    said = d.server.begin(remote_channel=None if d.wrong else 0)
    if d.wrong:
        said.may_break("S-BEGIN-REMOTESET")
    d.client.flow(next_incoming_id=None if d.wrong else 0)
    d.goodbye()


@pair("S-WIN-IN", cut=without("server begin"))
def transfer_beyond_window(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 2})
    d.attached()
    d.client.transfer()
    d.client.transfer()
    if not d.wrong:
        d.server.flow()
    first = d.client.transfer(amqp.data(b"x"), more=True)
    second = d.client.transfer(amqp.data(b"y"))
    if d.wrong:
        first.breaks("S-WIN-IN")
        second.breaks("S-WIN-IN")
    d.goodbye()


@pair("S-FLOW-NEXTOUT", cut=without("client begin"))
def flow_with_other_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    said = d.client.flow(next_outgoing_id=5 if d.wrong else 1)
    if d.wrong:
        said.breaks("S-FLOW-NEXTOUT")
    d.goodbye()


@pair("S-FLOW-NEXTIN-SET", cut=without("client begin"))
def flow_without_next_incoming_id(d: Dialogue) -> None:
    d.begun()
    fields: dict[str, Any] = {"next_incoming_id": None} if d.wrong else {}
    said = d.server.flow(**fields)
    if d.wrong:
        said.breaks("S-FLOW-NEXTIN-SET")
    d.goodbye()


@pair("S-FLOW-NEXTIN-UNSET", cut=one_direction)
def flow_with_next_incoming_id_too_soon(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    said = d.client.flow(next_incoming_id=0 if d.wrong else None)
    if d.wrong:
        said.breaks("S-FLOW-NEXTIN-UNSET")
    d.server.begin()
    d.goodbye()


@pair("S-FLOW-NEXTIN-VALUE", cut=without("transfer"))
def flow_with_next_incoming_id_never_sent(d: Dialogue) -> None:
    d.linked()
    d.client.transfer().called("transfer")
    said = d.server.flow(next_incoming_id=2 if d.wrong else 1)
    if d.wrong:
        said.breaks("S-FLOW-NEXTIN-VALUE")
    d.goodbye()


@reported("next-incoming-id before the first")
def next_incoming_id_before_the_first(d: Dialogue) -> None:
    d.begun(client={"next_outgoing_id": 10})
    d.server.flow(next_incoming_id=9).breaks("S-FLOW-NEXTIN-VALUE")
    d.goodbye()


@reported("next-incoming-id goes back")
def next_incoming_id_goes_back(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.transfer()
    d.server.flow(next_incoming_id=2)
    d.server.flow(next_incoming_id=1).breaks("S-FLOW-NEXTIN-VALUE")
    d.server.flow(next_incoming_id=2)
    d.goodbye()


@reported("next-incoming-id goes back where the other peer's next-outgoing-id did")
def next_incoming_id_follows_the_peer_back(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.transfer()
    d.server.flow(next_incoming_id=2)
    d.client.flow(next_outgoing_id=1).breaks("S-FLOW-NEXTOUT")
    d.server.flow(next_incoming_id=2)
    d.server.flow(next_incoming_id=1)
    d.goodbye()


@reported("no next-incoming-id in a session whose credit was used")
def no_next_incoming_id_after_credit_was_used(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.transfer()
    d.client.flow(next_incoming_id=None).breaks("S-FLOW-NEXTIN-SET")
    d.goodbye()


@reported("no next-incoming-id in the answer to a drain")
def no_next_incoming_id_in_the_answer_to_a_drain(d: Dialogue) -> None:
    d.linked(credit=10)
    d.server.flow(handle=0, link_credit=10, drain=True)
    answer = d.client.flow(handle=0, next_incoming_id=None, delivery_count=10, link_credit=0, drain=True)
    answer.breaks("S-FLOW-NEXTIN-SET")
    d.goodbye()


@pair("S-FLOW-NOHANDLE-DC", then=SAME)
def session_flow_with_delivery_count(d: Dialogue) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-DC", delivery_count=0)


@pair("S-FLOW-NOHANDLE-CREDIT", then=SAME)
def session_flow_with_link_credit(d: Dialogue) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-CREDIT", link_credit=1)


@pair("S-FLOW-NOHANDLE-AVAIL", then=SAME)
def session_flow_with_available(d: Dialogue) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-AVAIL", available=1)


@pair("S-FLOW-NOHANDLE-DRAIN", then=SAME)
def session_flow_with_drain(d: Dialogue) -> None:
    _session_flow(d, "S-FLOW-NOHANDLE-DRAIN", drain=True)


def _session_flow(d: Dialogue, rule: str, **fields: Any) -> None:
    d.begun()
    said = d.client.flow(**(fields if d.wrong else {}))
    if d.wrong:
        said.breaks(rule)
    d.server.flow()
    d.goodbye()


@pair("S-HANDLEMAX", cut=without("server begin"))
def handle_beyond_agreed(d: Dialogue) -> None:
    d.begun(server={"handle_max": 0})
    said = d.client.attach(handle=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("S-HANDLEMAX")
    d.server.attach(RECEIVER)
    d.goodbye()


@reported("links are attached without waiting for the begin that limits them")
def handle_beyond_agreed_of_a_sender_that_does_not_wait(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    d.client.attach(SENDER)
    d.server.begin(handle_max=0)
    d.client.attach(SENDER, handle=1, name="r").may_break("S-HANDLEMAX")
    d.server.attach(RECEIVER)
    d.server.flow(handle=0)
    d.client.transfer()
    d.client.attach(SENDER, handle=2, name="s").breaks("S-HANDLEMAX")
    d.goodbye()


@legal("S-CH-ASYM")
def channels_differ_by_direction(d: Dialogue) -> None:
    d.opened()
    d.client.begin(channel=0)
    d.server.begin(channel=5, remote_channel=0)
    d.client.attach(SENDER)
    d.server.attach(RECEIVER, channel=5)
    d.server.flow(handle=0, channel=5)
    d.client.transfer()
    d.server.disposition(0, channel=5)
    d.client.begin(channel=1)
    d.server.begin(channel=0, remote_channel=1)
    d.client.flow(channel=1)
    d.server.flow(channel=0)
    d.server.end_session(channel=5)
    d.client.end_session(channel=0)
    d.goodbye()


@legal("S-SENDPIPE")
def frames_behind_the_own_begin(d: Dialogue) -> None:
    d.opened()
    with d.unheard(d.server):
        d.client.begin()
        d.client.attach(RECEIVER)
        d.client.flow(handle=0, next_incoming_id=None, delivery_count=None)
        d.server.begin()
        d.server.attach(SENDER)
    d.server.transfer()
    d.client.disposition(0)
    d.goodbye()


@legal("sessions begun at once")
def both_begin_at_once(d: Dialogue) -> None:
    d.opened()
    with d.on_their_way():
        d.client.begin(remote_channel=None)
        d.server.begin(remote_channel=None)
    with d.on_their_way():
        d.client.begin(channel=1, remote_channel=0)
        d.server.begin(channel=1, remote_channel=0)
    d.goodbye()


@legal("ends cross")
def ends_cross(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.server.flow(handle=0, next_incoming_id=0)
        d.client.transfer()
        d.client.end_session()
        d.server.end_session(error="amqp:resource-limit-exceeded")
    d.client.begin()
    d.server.begin()
    d.goodbye()


@legal("frames behind the peer's end were on their way")
def frames_cross_an_end(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.transfer()
        d.client.attach(SENDER, handle=1, name="r")
        d.client.flow()
        d.server.end_session(error="amqp:internal-error")
        d.client.transfer()
        d.client.detach(handle=1)
        d.client.flow(next_incoming_id=0)
    d.client.end_session()
    d.goodbye()


@legal("a session begun, ended and begun again in one breath")
def session_twice_in_one_breath(d: Dialogue) -> None:
    d.opened()
    with d.unheard(d.server):
        d.client.begin()
        d.client.end_session()
        d.client.begin(remote_channel=None)
        d.server.begin(remote_channel=0)
        d.server.end_session()
        d.server.begin(remote_channel=0)
    d.client.flow(next_incoming_id=0)
    d.server.flow(next_incoming_id=0)
    d.goodbye()


@legal("ids wrap")
def transfer_ids_wrap(d: Dialogue) -> None:
    last = 0xFFFFFFFE
    d.begun(client={"next_outgoing_id": last}, server={"incoming_window": 3})
    d.attached(client={"initial_delivery_count": last})
    d.client.transfer(delivery_id=last)
    d.client.transfer(delivery_id=last + 1)
    d.client.transfer(delivery_id=0)
    d.server.disposition(last, 0)
    d.server.flow(incoming_window=3, next_incoming_id=1)
    d.client.transfer(delivery_id=1)
    d.client.flow(next_outgoing_id=2)
    d.goodbye()


@legal("a window closed while transfers are on their way")
def window_closed_meanwhile(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.server.flow(incoming_window=0)
        for _ in range(4):
            d.client.transfer()
    d.server.flow(incoming_window=100)
    d.client.transfer()
    d.goodbye()


@reported("a window lowered")
def window_lowered(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 6})
    d.attached(credit=100)
    d.server.flow(incoming_window=3)
    for _ in range(3):
        d.client.transfer()
    for _ in range(3):
        d.client.transfer().may_break("S-WIN-IN")
    d.client.transfer().breaks("S-WIN-IN")
    d.goodbye()


@reported("a window lowered, and the sender shows that it has read so")
def window_lowered_and_read(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 6})
    d.attached(credit=100)
    d.server.attach(SENDER, handle=1, name="back")
    d.client.attach(RECEIVER, handle=1, name="back")
    d.client.flow(handle=1)
    d.server.flow(incoming_window=3)
    d.server.transfer(handle=1)
    d.client.flow()
    for _ in range(3):
        d.client.transfer()
    d.client.transfer().breaks("S-WIN-IN")
    d.goodbye()


@legal("a window on its way to grow")
def window_raised_in_time(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 1})
    d.attached()
    d.client.transfer()
    d.server.flow()
    d.client.transfer()
    d.goodbye()


@reported("a flow without next-incoming-id that may not have seen the begin")
def begin_not_read_yet(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    d.server.begin()
    d.client.flow(next_incoming_id=None).may_break("S-FLOW-NEXTIN-SET")
    d.goodbye()


@legal("a flow without next-incoming-id while the begin is on its way")
def begin_on_its_way(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    with d.unheard(d.server):
        d.server.begin()
        d.client.flow(next_incoming_id=None)
    d.client.flow()
    d.goodbye()


@legal("a flow's next-outgoing-id is taken for the peer's")
def session_state_copied(d: Dialogue) -> None:
    d.subscribed()
    d.server.transfer()
    d.server.flow()
    d.client.flow()
    d.server.transfer(amqp.data(b"x"), more=True)
    d.client.flow(next_incoming_id=2)
    d.server.transfer(amqp.data(b"y"))
    d.client.flow()
    d.goodbye()
