"""What watches keep of packets and of deliveries of links: what is needed, and all of that."""

from random import Random

from amqpscope.diagnoses.amqp10.link_state import LinkState
from amqpscope.diagnoses.transport import _KEPT, _Side
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session, SessionHalf, SpareDeliveries

PACKET = 100
"""Octets of each packet."""


def kept(side: _Side) -> list[int]:
    """The packets that a side keeps, the oldest first."""
    packets = []
    sent = side.oldest
    while sent is not None:
        packets.append(int(sent.packet))
        sent = sent.next
    return packets


def test_acknowledged_packets_are_not_kept() -> None:
    side = _Side()
    for number in range(1, 1001):
        side.sends(number, number, number * PACKET, (number - 3) * PACKET)
    assert len(kept(side)) == side.kept <= 5
    assert kept(side)[-1] == 1000


def test_packets_that_pile_up_are_let_go_of_when_they_are_acknowledged() -> None:
    side = _Side()
    for number in range(1, 101):
        side.sends(number, number, number * PACKET, 0)
    assert kept(side) == list(range(1, 101))
    for number in range(101, 221):
        side.sends(number, number, number * PACKET, (number - 3) * PACKET)
    assert len(kept(side)) == side.kept <= 5


def test_the_first_unacknowledged_packet_is_the_one_of_the_last_128() -> None:
    random = Random(24)
    for _ in range(200):
        side = _Side()
        every: list[tuple[int, int]] = []
        done = 0
        patience = random.choice((2, 10, 400))
        for number in range(1, random.randrange(2, 600)):
            end = number * PACKET
            if random.randrange(patience) == 0:
                done = random.randrange(done, end)
            side.sends(number, number, end, done)
            every.append((number, end))
            assert len(kept(side)) == side.kept <= _KEPT
        for acknowledged in (done, random.randrange(done, end + 1), end):
            expected = [number for number, behind in every[-_KEPT:] if behind > acknowledged]
            found = side.beyond(acknowledged)
            assert (None if found is None else int(found.packet)) == (expected[0] if expected else None)


def test_a_link_holds_what_is_not_settled_in_any_order() -> None:
    random = Random(24)
    session = Session("client")
    session.client = half = SessionHalf(session, 0, 0)
    state = LinkState(Link("orders", "client"), session, 0, 2)
    other = LinkState(Link("others", "client"), session, 0, 4)
    waiting: list[OpenDelivery] = []
    for number in range(5000):
        if waiting and random.random() < 0.49:
            delivery = waiting.pop(random.randrange(min(len(waiting), 3)))
            assert state.held.holds(delivery) and not other.held.holds(delivery)
            state.held.free(delivery)
            assert not state.held.holds(delivery)
        else:
            delivery = OpenDelivery(session, state.link, number)
            half.wait(number, delivery)
            state.held.hold(delivery)
            waiting.append(delivery)
        assert state.held.unsettled == len(waiting)
    assert state.waiting() == waiting
    state.held.answer(waiting[0], 1, 1)
    assert (
        state.held.holds(waiting[0]) and not state.held.awaits(waiting[0]) and state.waiting() == waiting[1:]
    )
    for delivery in waiting:
        state.held.free(delivery)
    assert state.waiting() == [] and state.held.unsettled == 0 and not state.held.answered


def test_the_object_of_a_settled_delivery_stands_for_another_one() -> None:
    session, link = Session("client"), Link("orders", "client")
    spares = SpareDeliveries()
    ones = [spares.begin(session, link, number, number, number) for number in range(3000)]
    for one in ones:
        one.remembered, one.held, one.complete, one.settled_by_receiver = "front", 2, True, True
        spares.put(one)
    assert spares.count < 2000
    again = spares.begin(session, None, 7, 8, 9)
    assert again in ones
    known = (again.link, again.id, again.packet, again.time, again.held, again.remembered)
    assert known == (None, 7, 8, 9, 0, None) and not again.complete and not again.settled_by_receiver
