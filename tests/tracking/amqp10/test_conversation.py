"""Whose session, link and delivery each frame is about: as the rules' endpoints have it, and bounded."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from support.dialogue import RECEIVER, SENDER, Dialogue

from amqpscope.input.capture import Capture
from amqpscope.limits import MAX_FORMER_LINKS, MAX_NAMED_DELIVERIES, MAX_SETTLED_DELIVERIES
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session, SessionHalf
from dissectors.amqp10.performatives import Attach, Begin, Detach, Disposition, Flow, Transfer

ROOT = Path(__file__).parents[3] / "captures"
CAPTURES = [
    *(path for path in sorted(ROOT.glob("*.pcap")) if not path.name.startswith(("amqplib", "pika", "bunny"))),
    *sorted((ROOT / "rules" / "amqp10").glob("*/conforming.pcap"))[::3],
]


class Heard(Listener10):
    """Puts down what happens, in words."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.links: list[Link] = []
        self.sessions: list[Session] = []
        self.deliveries: list[OpenDelivery] = []

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        if session not in self.sessions:
            self.sessions.append(session)
        self.said.append(f"{record.peer} begins {self.sessions.index(session)}")

    def session_ended(self, record: FrameRecord, body: object, session: Session) -> None:
        self.said.append(f"{record.peer} ends {self.sessions.index(session)}")

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if link not in self.links:
            self.links.append(link)
        self.said.append(f"{record.peer} attaches {link.name} {self.links.index(link)}")

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        self.said.append(f"{record.peer} detaches {link.name} {self.links.index(link)}")

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.deliveries.append(delivery)
        self.said.append(f"{record.peer} starts {delivery.id}")

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.said.append(f"{record.peer} goes on with {delivery.id}")

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        self.said.append(f"{record.peer} names {[delivery.id for delivery in deliveries]}")

    def stray(self, record: FrameRecord, session: Session | None) -> None:
        self.said.append(f"{record.peer} strays with {record.frame.name}")


def heard(d: Dialogue) -> Heard:
    """What happens in a dialogue."""
    found = Heard()
    conversation = Conversation10()
    conversation.subscribe(found)
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
    return found


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_endpoints_of_the_rules_have_the_same_sessions_and_links(path: Path) -> None:
    followed: dict[Connection, tuple[Conversation10, Endpoint10, Endpoint10]] = {}
    with Capture(str(path)) as capture:
        for record in capture:
            connection = record.connection
            if connection.protocol != "amqp10":
                continue
            if connection not in followed:
                followed[connection] = Conversation10(), Endpoint10(CLIENT), Endpoint10(SERVER)
            conversation, me, peer = followed[connection]
            if record.peer == SERVER:
                me, peer = peer, me
            me.catch_up(record.acknowledged, peer.sent_end)
            body = record.frame.body
            session = me.session_on(record.frame.channel)
            link = None
            if session is not None and isinstance(body, (Flow, Transfer, Detach)) and body.handle is not None:
                link = session.handles.get(body.handle)
            me.send(record)
            peer.deliver(record)
            conversation.take(record)
            half = conversation.half_of(record)
            assert (half is not None and not half.ended) == (me.session_on(record.frame.channel) is not None)
            if isinstance(body, (Flow, Transfer, Detach)) and not (me.closing.sent and peer.closing.sent):
                named = None if link is None else (link.name, me.peer if link.sender else peer.peer)
                about = conversation.link
                assert named == (None if about is None else (about.name, about.sender))
            session = me.session_on(record.frame.channel)
            if session is not None and session.whole and session.peer_channel >= 0 and half is not None:
                other = half.other()
                assert other is not None and other.channel == session.peer_channel


def test_a_session_begun_again_before_the_first_answer_is_another_one() -> None:
    d = Dialogue()
    d.opened()
    with d.on_their_way():
        d.client.begin(next_outgoing_id=0)
        d.client.end_session()
        d.client.begin(next_outgoing_id=0)
    d.server.begin(channel=3, remote_channel=0)
    d.server.end_session(channel=3)
    d.server.begin(channel=4, remote_channel=0)
    assert heard(d).said == [
        *("client begins 0", "client ends 0", "client begins 1"),
        *("server begins 0", "server ends 0", "server begins 1"),
    ]


def test_a_second_begin_on_a_channel_in_use_changes_nothing() -> None:
    d = Dialogue()
    d.linked(credit=2)
    d.client.begin(channel=0, remote_channel=None)
    d.client.transfer()
    assert heard(d).said[-2:] == ["client strays with begin", "client starts 0"]


def test_a_link_attached_again_before_the_first_answer_is_another_one() -> None:
    d = Dialogue()
    d.begun()
    with d.on_their_way():
        d.client.attach(name="a")
        d.client.detach()
        d.client.attach(name="a")
        d.server.attach(RECEIVER, name="a")
        d.server.detach()
        d.server.attach(RECEIVER, name="a")
    assert [one for one in heard(d).said if "tach" in one] == [
        *("client attaches a 0", "client detaches a 0", "client attaches a 1"),
        *("server attaches a 0", "server detaches a 0", "server attaches a 1"),
    ]


def test_another_id_begins_another_delivery_if_its_payload_begins_a_message() -> None:
    d = Dialogue()
    d.linked(credit=5)
    d.client.transfer(more=True)
    d.client.transfer(b"rest", delivery_id=9, more=True)
    d.client.transfer(delivery_id=10)
    assert heard(d).said[-3:] == ["client starts 0", "client goes on with 0", "client starts 10"]


def test_a_disposition_names_deliveries_till_their_receiver_settles_them() -> None:
    d = Dialogue()
    d.linked(credit=5)
    for _ in range(3):
        d.client.transfer()
    d.client.transfer(settled=True)
    d.server.disposition(first=1, last=1, settled=True)
    d.server.disposition(first=0xFFFFFFFF, last=7, settled=False)
    d.client.disposition(role=SENDER, first=0, last=2, settled=True)
    found = heard(d)
    assert found.said[-3:] == ["server names [1]", "server names [0, 2]", "client names [0, 2]"]
    assert [delivery.settled for delivery in found.deliveries] == [True, False, True, True]
    assert [delivery.settled_by_receiver for delivery in found.deliveries] == [False, True, False, False]


def test_a_disposition_whose_last_is_before_its_first_names_nothing() -> None:
    d = Dialogue()
    d.linked(credit=5)
    for _ in range(3):
        d.client.transfer()
    d.server.disposition(first=2, last=1, settled=True)
    assert heard(d).said[-1] == "server names []"


def test_a_frame_on_a_detached_handle_strays_and_is_about_the_link_it_was() -> None:
    d = Dialogue()
    d.linked(credit=5)
    d.client.detach()
    d.client.transfer(handle=0)
    conversation = Conversation10()
    found = Heard()
    conversation.subscribe(found)
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
    assert found.said[-2:] == ["client strays with transfer", "client starts 0"]
    assert conversation.link is None and found.deliveries[-1].link is None
    assert conversation.link_of(record) is found.links[0]


def test_detached_links_are_forgotten() -> None:
    d = Dialogue()
    d.begun()
    for number in range(MAX_FORMER_LINKS + 10):
        d.client.attach(name=f"link {number}", handle=number)
        d.client.detach(handle=number)
    conversation = Conversation10()
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
    half = conversation.half_of(record)
    assert half is not None
    assert len(half.handles) <= 10 and len(half.names) <= 10


def _remembering() -> tuple[Conversation10, SessionHalf]:
    conversation = Conversation10()
    half = SessionHalf(Session(CLIENT), 0, 0)
    conversation._put(half)
    return conversation, half


def test_the_oldest_deliveries_are_forgotten() -> None:
    conversation, half = _remembering()
    for number in range(2 * MAX_NAMED_DELIVERIES + 2):
        conversation._remember(half, OpenDelivery(half.session, None, number), number, Transfer())
    assert half.delivery(0) is None and half.delivery(2 * MAX_NAMED_DELIVERIES + 1) is not None
    assert (
        half.unsettled.count == MAX_NAMED_DELIVERIES and min(half.unsettled.ids()) == MAX_NAMED_DELIVERIES + 2
    )


def test_fewer_settled_deliveries_are_remembered() -> None:
    conversation, half = _remembering()
    settled = Transfer()
    settled.settled = True
    last = 3 * MAX_SETTLED_DELIVERIES
    for number in range(last + 1):
        conversation._remember(half, OpenDelivery(half.session, None, number), number, settled)
    assert half.delivery(last) is not None and half.delivery(last - MAX_SETTLED_DELIVERIES) is not None
    assert half.delivery(0) is None
    assert len(half.newer) + len(half.older) <= 2 * MAX_SETTLED_DELIVERIES + 1
    assert half.unsettled.count == 0


def test_a_disposition_of_a_settled_delivery_has_the_link() -> None:
    d = Dialogue()
    d.linked(credit=3)
    d.client.transfer()
    d.server.disposition(role=True, first=0, settled=True)
    d.server.disposition(role=True, first=0, settled=True)
    conversation = Conversation10()
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            conversation.take(record)
    assert record.frame.name == "disposition"
    assert conversation.link is not None and conversation.link.name == "q"


def test_sessions_that_ended_do_not_have_links_of_others_forgotten() -> None:
    d = Dialogue()
    d.linked(credit=3)
    d.client.begin(channel=1)
    d.client.attach(name="other", handle=0, channel=1)
    d.client.end_session(channel=1)
    d.client.transfer()
    conversation = Conversation10()
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        *before, begin, attach, end, transfer = list(capture)
    for record in before:
        conversation.take(record)
    for _ in range(MAX_NAMED_DELIVERIES + 1):
        for record in (begin, attach, end):
            conversation.take(record)
    conversation.take(transfer)
    assert conversation.link is not None and conversation.link.name == "q"
