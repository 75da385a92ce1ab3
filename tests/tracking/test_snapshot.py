"""A snapshot says how both endpoints stand, with all that is on its way taken for arrived."""

from __future__ import annotations

from typing import Any

import pytest
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.network import PROTOCOLS, Tap, captured, converse
from support.protocols import so_many
from support.snapshots import judges, plain, snapshot_of, when_all_arrived

from amqpscope import limits
from amqpscope.tracking.snapshot import UNKNOWN, ChannelSnapshot, ConnectionSnapshot, LinkSnapshot


def link_of(d: Dialogue) -> LinkSnapshot:
    """The one link of the one session."""
    (session,) = snapshot_of(d.pcap()).sessions
    (link,) = session.links
    return link


def channel_of(d: Dialogue091) -> ChannelSnapshot:
    (channel,) = snapshot_of(d.pcap()).channels
    return channel


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("batch", range(4))
def test_it_is_what_the_endpoints_say_once_all_has_arrived(protocol: str, batch: int) -> None:
    compared = underway = 0
    conversations = so_many(protocol, 12)
    for number in range(conversations):
        seed = f"snapshot {batch}-{number}"
        octets = captured(converse(seed, protocol=protocol, length=150), Tap(seed=seed)).octets
        for judge in judges(octets, [700]):
            compared += 1
            snapshot = judge.snapshot()
            underway += snapshot.client.unread + snapshot.server.unread
            assert comparable(plain(snapshot)) == comparable(plain(when_all_arrived(judge))), seed
    assert compared > 8 * conversations
    assert underway > 2 * conversations  # else there was nothing to foresee


def comparable(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Without what is shown about what is under way, and of a channel that is being closed."""
    for end in ("client", "server"):
        del snapshot[end]["unread"]
    snapshot["channels"] = [one for one in snapshot["channels"] if one["state"] in ("OPEN", "OPENING")]
    return snapshot


def test_credit_counts_as_soon_as_it_is_granted() -> None:
    d = Dialogue()
    d.linked(credit=3)
    assert link_of(d).credit == 3
    d.client.transfer()
    d.client.transfer()
    link = link_of(d)
    assert (link.credit, link.delivery_count, link.deliveries, link.unsettled) == (1, 2, 2, 2)
    with d.unheard(d.server):
        d.server.flow(handle=0, link_credit=20)
        assert link_of(d).credit == 20
        d.client.transfer()
        # What the server counts in its flow it cannot take from a transfer that crosses it.
        assert link_of(d).credit == 19


def test_a_link_without_credit_tells_how_much_waits_for_it() -> None:
    d = Dialogue()
    d.linked(credit=1)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=0, available=7)
    link = link_of(d)
    assert (link.credit, link.available) == (0, 7)
    assert (link.sender, link.name, link.source, link.target) == ("client", "q", "q", "q")


def test_what_is_settled_is_so_as_soon_as_it_was_said() -> None:
    d = Dialogue()
    d.linked()
    for _ in range(4):
        d.client.transfer()
    with d.on_their_way():
        d.server.disposition(first=1, last=2)
        snapshot = snapshot_of(d.pcap())
    (session,) = snapshot.sessions
    assert session.client is not None
    assert session.client.unsettled == 2
    assert session.links[0].unsettled == 2
    assert snapshot.client.unread == 1


def test_the_states_are_those_of_the_specification() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    (session,) = snapshot_of(d.pcap()).sessions
    assert session.client is not None and session.client.state == "BEGIN_SENT"
    assert session.server is None
    d.server.begin()
    d.client.attach(SENDER)
    link = link_of(d)
    assert (link.sender_state, link.receiver_state) == ("ATTACH_SENT", "")
    with d.unheard(d.server):
        d.server.attach(RECEIVER)
        link = link_of(d)
    assert (link.sender_state, link.receiver_state) == ("ATTACHED", "ATTACHED")
    d.client.end_session()
    snapshot = snapshot_of(d.pcap())
    (session,) = snapshot.sessions
    assert session.client is not None and session.client.state == "END_SENT"
    assert session.server is not None and session.server.state == "END_RCVD"
    d.client.close()
    snapshot = snapshot_of(d.pcap())
    assert (snapshot.client.state, snapshot.server.state) == ("CLOSE_SENT", "CLOSE_RCVD")


def test_windows_are_what_may_still_be_sent() -> None:
    d = Dialogue()
    d.begun(client={"incoming_window": 6, "next_outgoing_id": 0xFFFFFFFE}, server={"incoming_window": 8})
    d.attached(10)
    for _ in range(3):
        d.client.transfer()
    (session,) = snapshot_of(d.pcap()).sessions
    assert session.client is not None and session.server is not None
    assert session.client.next_outgoing_id == 1  # it wraps
    assert session.server.next_incoming_id == 1
    assert session.client.window == 5
    assert session.server.window == 6


def test_what_the_ends_agreed_on() -> None:
    d = Dialogue()
    d.opened(
        client={"max_frame_size": 4096, "channel_max": 9, "container_id": "me"},
        server={"idle_time_out": 1500},
    )
    snapshot = snapshot_of(d.pcap())
    assert (snapshot.client.max_frame_size, snapshot.client.channel_max, snapshot.client.idle) == (4096, 9, 0)
    assert snapshot.server.idle == 1_500_000_000
    assert snapshot.client.said == {"container-id": "me"}


def test_of_many_links_the_first_are_shown() -> None:
    d = Dialogue()
    d.begun(client={"handle_max": 0xFFFF}, server={"handle_max": 0xFFFF})
    for number in range(limits.MAX_SNAPSHOT_LINKS + 5):
        d.client.attach(SENDER, handle=number, name=f"l{number}")
    (session,) = snapshot_of(d.pcap()).sessions
    assert [link.name for link in session.links] == [f"l{n}" for n in range(limits.MAX_SNAPSHOT_LINKS)]
    assert session.more_links == 5


def test_a_link_that_is_detached_is_gone() -> None:
    d = Dialogue()
    d.linked()
    d.client.detach()
    assert link_of(d).receiver_state == "DETACH_RCVD"
    d.server.detach()
    (session,) = snapshot_of(d.pcap()).sessions
    assert session.links == []


def test_what_a_link_offered_is_carried_on() -> None:
    d = Dialogue()
    d.linked(credit=0)
    d.client.flow(handle=0, delivery_count=0, link_credit=0, available=4)
    last = [when_all_arrived(judge) for judge in judges(d.pcap(), [50])][-1]
    assert last.sessions[0].links[0].available == 4


# AMQP 0-9-1


def test_a_consumer_and_its_prefetch() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.ask("basic.qos", prefetch_count=3)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.consume("q", consumer_tag="free", no_ack=True)
    for _ in range(3):
        d.server.deliver(consumer_tag="c")
    d.server.deliver(consumer_tag="free")
    channel = channel_of(d)
    assert (channel.unacknowledged, channel.deliveries) == (3, 4)
    first, free = channel.consumers
    assert (first.tag, first.queue, first.prefetch, first.unacknowledged) == ("c", "q", 3, 3)
    assert (free.no_ack, free.unacknowledged) == (True, 0)
    with d.unheard(d.client):
        d.client.ack(2, multiple=True)
        channel = channel_of(d)
    assert (channel.unacknowledged, channel.consumers[0].unacknowledged) == (1, 1)


def test_what_is_not_confirmed() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    assert not channel_of(d).confirming
    d.confirms()
    with d.on_their_way():
        for _ in range(3):
            d.client.publish()
        assert channel_of(d).unconfirmed == 3
    with d.unheard(d.server):
        d.server.confirm(2, multiple=True)
        channel = channel_of(d)
    assert (channel.confirming, channel.published, channel.unconfirmed) == (True, 3, 1)


def test_what_a_channel_waits_for() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="q")
    d.client.method("queue.bind", queue="q", exchange="amq.topic", routing_key="k")
    channel = channel_of(d)
    assert (channel.asked, channel.first_asked) == (2, "queue.declare")
    assert channel.asked_time > 0
    with d.unheard(d.server):
        d.server.method("queue.declare-ok", queue="q", message_count=0, consumer_count=0)
        channel = channel_of(d)
    assert (channel.asked, channel.first_asked) == (1, "queue.bind")


def test_a_channel_that_is_closed_and_a_connection_that_is_blocked() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    with d.on_their_way():
        d.server.close_channel(404, "NOT_FOUND", cause="basic.publish")
        d.server.blocked()
        snapshot = snapshot_of(d.pcap())
    assert snapshot.channels[0].state == "SERVER CLOSES"
    assert snapshot.blocked
    assert (snapshot.client.state, snapshot.server.state) == ("OPEN", "OPEN")
    assert snapshot.client.max_frame_size == 131072
    assert snapshot.virtual_host == "/"
    d.client.channel_close_ok()
    d.client.close_connection()
    snapshot = snapshot_of(d.pcap())
    assert snapshot.channels == []
    assert (snapshot.client.state, snapshot.server.state) == ("CLIENT CLOSES", "CLIENT CLOSES")
    assert snapshot.server.said["product"] == d.product


def test_nothing_is_made_up_of_what_was_not_captured() -> None:
    d = Dialogue()
    d.begun()
    with d.missed():
        d.attached()
    d.client.transfer()
    d.client.attach(SENDER, handle=1, name="later")
    for _ in range(300):  # more than is waited for what comes out of order
        d.server.flow()
        d.client.flow()
    snapshot = snapshot_of(d.pcap())
    assert not snapshot.client.whole
    (session,) = snapshot.sessions
    assert [(link.name, link.deliveries, link.credit) for link in session.links] == [("later", 0, UNKNOWN)]


# What is under way in an order that matters


def foreseen(octets: bytes) -> ConnectionSnapshot:
    """The snapshot, which has to be that of both ends once all has arrived, at every moment."""
    snapshot = None
    for judge in judges(octets, [40]):
        snapshot = judge.snapshot()
        assert comparable(plain(snapshot)) == comparable(plain(when_all_arrived(judge)))
    assert snapshot is not None
    return snapshot


def test_credit_of_an_attachment_that_is_over_is_none() -> None:
    d = Dialogue()
    d.linked(credit=5)
    with d.on_their_way():
        d.client.detach(closed=False)
        d.server.detach(closed=False)
        d.client.attach(SENDER)
        d.server.attach(RECEIVER)
        (session,) = foreseen(d.pcap()).sessions
        assert session.links[0].credit == 0
        d.server.flow(handle=0, link_credit=3)
        (session,) = foreseen(d.pcap()).sessions
        assert session.links[0].credit == 3


def test_a_wrong_flow_need_not_be_obeyed() -> None:
    d = Dialogue()
    d.begun(server={"incoming_window": 50})
    with d.on_their_way():
        d.server.flow(next_outgoing_id=9, incoming_window=2)
        (session,) = foreseen(d.pcap()).sessions
    assert session.client is not None and session.client.window == 50


def test_answers_to_begins_on_one_channel_are_in_their_order() -> None:
    d = Dialogue()
    d.opened()
    with d.on_their_way():
        d.client.begin()
        d.client.end_session()
        d.client.begin()
        d.server.begin(channel=3, remote_channel=0, incoming_window=11)
        d.server.end_session(channel=3)
        (session, *_) = foreseen(d.pcap()).sessions
        assert session.client is not None
        assert (session.client.state, session.client.window) == ("BEGIN_SENT", UNKNOWN)
        d.server.begin(channel=4, remote_channel=0, incoming_window=22)
        (session, *_) = foreseen(d.pcap()).sessions
        assert session.client is not None
        assert (session.client.state, session.client.window) == ("MAPPED", 22)


def test_a_consumer_that_began_after_its_queue_was_deleted_is_there() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="before")
    d.client.method("queue.delete", queue="q")
    d.client.method("queue.declare", queue="q")
    d.client.method("basic.consume", queue="q", consumer_tag="behind")
    with d.unheard(d.server):
        d.server.method("queue.delete-ok", message_count=0)
        (channel,) = foreseen(d.pcap()).channels
    assert [consumer.tag for consumer in channel.consumers] == ["behind"]


def test_a_consumer_that_began_after_another_of_its_tag_was_cancelled_is_there() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.client.method("basic.cancel", consumer_tag="c")
    with d.unheard(d.server):
        d.server.method("basic.cancel-ok", consumer_tag="c")
        (channel,) = foreseen(d.pcap()).channels
        assert channel.consumers == []
        d.client.method("basic.consume", queue="q", consumer_tag="c")
        (channel,) = foreseen(d.pcap()).channels
        assert [consumer.tag for consumer in channel.consumers] == ["c"]


def test_a_wrong_flow_of_a_session_that_is_mapped() -> None:
    d = Dialogue()
    d.begun(server={"incoming_window": 50})
    d.client.flow()
    with d.on_their_way():
        d.server.flow(next_outgoing_id=9, incoming_window=2)
        (session,) = foreseen(d.pcap()).sessions
    assert session.client is not None and session.client.window == 50


def test_credit_for_an_older_attachment_ends_with_the_answer_to_the_newer() -> None:
    d = Dialogue()
    d.linked(credit=5)
    with d.unheard(d.client):
        d.client.detach(closed=False)
        d.client.attach(SENDER)
        d.server.flow(handle=0, link_credit=9)  # it does not know yet
        d.client.flow()
    with d.unheard(d.server):
        d.server.detach(closed=False)
        d.server.attach(RECEIVER)
        (session,) = foreseen(d.pcap()).sessions
    assert session.links[0].credit == 0
