"""Who waits for whom: each trouble, and what looks alike and is fine."""

from __future__ import annotations

import pytest
from support.diagnosed import diagnosed
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091

from amqpscope.model.diagnosis import Diagnosis


def alive(d: Dialogue, seconds: float = 30) -> None:
    """Time passes; both peers are there."""
    for _ in range(3):
        d.wait(seconds=seconds / 3)
        d.client.empty()
        d.server.empty()


def alive091(d: Dialogue091, seconds: float = 30) -> None:
    for _ in range(3):
        d.wait(seconds=seconds / 3)
        d.client.heartbeat()
        d.server.heartbeat()


def codes(found: list[Diagnosis]) -> list[tuple[str, str]]:
    return [(one.code.removeprefix("diag/"), one.whose_move) for one in found]


def linked(d: Dialogue, credit: int | None) -> None:
    """The client receives on a link, with this credit."""
    d.begun()
    d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    if credit is not None:
        d.client.flow(handle=0, link_credit=credit)


def of(d: Dialogue | Dialogue091) -> list[Diagnosis]:
    return diagnosed(d.pcap())


def test_a_receiver_that_never_grants_credit() -> None:
    d = Dialogue()
    d.begun()
    attach = d.client.attach(RECEIVER)
    d.server.attach(SENDER)
    alive(d)
    (one,) = of(d)
    assert (one.code, one.whose_move, one.packet) == ("diag/credit-none", "client", d.packet_number(attach))
    assert 29.9 < one.seconds < 30.1
    assert one.ended_packet == 0


def test_first_credit_that_comes_late() -> None:
    d = Dialogue()
    linked(d, None)
    alive(d)
    flow = d.client.flow(handle=0, link_credit=10)
    (one,) = of(d)
    assert (one.code, one.ended_packet) == ("diag/credit-none", d.packet_number(flow))
    assert one.figures["granted"] == 0


def test_credit_that_comes_in_time() -> None:
    d = Dialogue()
    linked(d, None)
    alive(d, 6)
    d.client.flow(handle=0, link_credit=10)
    alive(d)
    assert of(d) == []


def test_a_sender_that_has_nothing_to_send_waits_for_nothing() -> None:
    d = Dialogue()
    linked(d, None)
    d.server.flow(handle=0, link_credit=0, available=0)
    alive(d)
    assert of(d) == []


def test_credit_that_is_used_up_and_renewed_late() -> None:
    d = Dialogue()
    linked(d, 1)
    last = d.server.transfer(settled=True)
    alive(d)
    d.client.flow(handle=0, link_credit=1, delivery_count=1)
    (one,) = of(d)
    assert (one.code, one.whose_move, one.packet) == ("diag/credit-starved", "client", d.packet_number(last))
    assert one.ended_packet > one.packet


def test_deliveries_that_nobody_settles_are_the_cause_of_missing_credit() -> None:
    d = Dialogue()
    linked(d, 10)
    for _ in range(10):
        d.server.transfer()
    alive(d)
    assert codes(of(d)) == [("unsettled-pile", "client")]


def test_the_oldest_delivery_of_a_pile_is_found_where_ids_jump() -> None:
    d = Dialogue()
    d.linked(credit=200)
    oldest = d.client.transfer(delivery_id=0)
    for number in range(1, 150):
        d.client.transfer(delivery_id=number)
    d.wait(seconds=200)
    d.client.transfer(delivery_id=250)
    alive(d, 3)
    d.goodbye()
    (one,) = [found for found in of(d) if found.code == "diag/unsettled-pile"]
    assert (one.whose_move, one.packet) == ("server", d.packet_number(oldest))
    assert one.seconds > 200


def test_a_begin_that_is_not_answered() -> None:
    d = Dialogue()
    d.opened()
    asked = d.client.begin()
    alive(d)
    (one,) = of(d)
    assert (one.code, one.subject, one.whose_move) == ("diag/unanswered", "begin", "server")
    assert one.packet == d.packet_number(asked)


def test_a_peer_that_is_not_heard_any_more_is_not_blamed() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.wait(seconds=30)
    assert of(d) == []


def test_what_a_lost_packet_may_have_said_is_unknown() -> None:
    d = Dialogue()
    linked(d, None)
    with d.missed():
        d.client.flow(handle=0, link_credit=10)
    alive(d)
    assert of(d) == []


def test_a_full_prefetch_and_one_that_is_emptied() -> None:
    for empties in (False, True):
        d = Dialogue091()
        d.opened()
        d.channel(1)
        d.declare("q")
        d.qos(2)
        d.consume("q")
        d.server.deliver(b"one")
        last = d.server.deliver(b"two")
        if empties:
            d.client.ack(1)
        alive091(d)
        found = of(d)
        if empties:
            assert found == []
        else:
            (one,) = found
            assert (one.code, one.whose_move) == ("diag/prefetch-full", "client")
            assert one.packet == d.packet_number(last)


def test_confirms_that_are_missing_and_a_connection_that_is_blocked() -> None:
    for blocked in (False, True):
        d = Dialogue091()
        d.opened()
        d.channel(1)
        d.confirms()
        first = d.client.publish(b"one")
        if blocked:
            first = d.server.blocked()
        alive091(d)
        (one,) = of(d)
        code = "diag/publisher-blocked" if blocked else "diag/confirms-missing"
        assert (one.code, one.whose_move, one.packet) == (code, "server", d.packet_number(first))


def test_limits_can_be_set() -> None:
    d = Dialogue()
    linked(d, None)
    alive(d, 6)
    assert diagnosed(d.pcap()) == []
    assert codes(diagnosed(d.pcap(), {"credit-none.seconds": 5})) == [("credit-none", "client")]


def published(d: Dialogue, *, more: bool, available: int | None = None) -> int:
    """The client publishes by two transfers, which use up the window, and waits for seven seconds.

    Returns the packet of the first transfer.
    """
    d.begun(server={"incoming_window": 2})
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, link_credit=1 if more else 10)
    if available is not None:
        d.client.flow(handle=0, link_credit=1, available=available)
    first = d.client.transfer(more=True)
    d.client.transfer(more=more)
    alive(d, 7)
    return d.packet_number(first)


def test_a_closed_window_in_the_middle_of_a_delivery() -> None:
    d = Dialogue()
    first = published(d, more=True, available=0)
    (one,) = of(d)
    assert (one.code, one.whose_move) == ("diag/window-closed", "server")
    assert one.figures["credit"] == 0
    assert one.figures["unfinished_delivery"] == first
    assert f'the delivery that began in packet {first} on link "q" is unfinished' in one.message


def test_a_closed_window_behind_a_whole_delivery_is_waited_for_longer() -> None:
    d = Dialogue()
    published(d, more=False)
    assert of(d) == []
    alive(d, 7)
    assert codes(of(d)) == [("window-closed", "server")]


def test_a_closed_window_behind_an_aborted_delivery_keeps_nothing_waiting() -> None:
    d = Dialogue()
    d.begun(server={"incoming_window": 2})
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, link_credit=1)
    d.client.transfer(more=True)
    d.client.transfer(aborted=True)
    alive(d)
    assert "window-closed" not in [code for code, _ in codes(of(d))]


def beating(protocol: str) -> Dialogue | Dialogue091:
    """A connection whose two peers have to be heard every ten seconds."""
    if protocol == "amqp091":
        d = Dialogue091(acks="immediate")
        d.opened(tune={"heartbeat": 10}, tune_ok={"heartbeat": 10})
        d.channel()
        return d
    other = Dialogue(acks="immediate")
    other.opened(client={"idle_time_out": 10_000}, server={"idle_time_out": 10_000})
    return other


def beat(d: Dialogue | Dialogue091, *peers: str) -> None:
    for name in peers:
        peer = getattr(d, name)
        if isinstance(d, Dialogue):
            peer.empty()
        else:
            peer.heartbeat()


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("protocol", ["amqp10", "amqp091"])
@pytest.mark.parametrize("step", [60, -60])
def test_a_clock_that_is_set_makes_nobody_late(step: int, protocol: str, ended: bool) -> None:
    d = beating(protocol)
    for number in range(8):
        d.wait(seconds=4.9 + (step if number == 4 else 0))
        beat(d, "client", "server")
    if ended:
        d.wait(seconds=step)
        d.client.acknowledge()
        d.server.acknowledge()
    assert of(d) == []


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("protocol", ["amqp10", "amqp091"])
def test_who_is_late_behind_a_clock_that_was_set_forward(protocol: str, again: bool) -> None:
    """The step is longer than the silence, and does not hide it."""
    d = beating(protocol)
    d.wait(seconds=64.9)
    beat(d, "client", "server")
    for _ in range(6):
        d.wait(seconds=4.9)
        beat(d, "server")
    d.client.acknowledge()
    if again:
        beat(d, "client")
    (one,) = of(d)
    assert (one.code, one.whose_move) == ("diag/heartbeat-late", "client")
    assert 29 < one.seconds < 30


@pytest.mark.parametrize(
    ("condition", "late"), [("amqp:resource-limit-exceeded", True), ("amqp:internal-error", False)]
)
def test_the_clock_of_a_peer_that_waits_no_longer_confirms_a_silence(condition: str, late: bool) -> None:
    d = Dialogue()
    d.opened(client={"idle_time_out": 10_000})
    d.wait(seconds=40)
    d.client.close(error=condition)
    d.server.close()
    assert codes(of(d)) == ([("heartbeat-late", "server")] if late else [])
