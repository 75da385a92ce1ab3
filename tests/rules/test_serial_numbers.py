"""Ids and delivery-counts are serial numbers of 32 bits (RFC 1982): where they begin changes no verdict."""

from __future__ import annotations

import pytest
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.judged import judged
from support.network import Tap, captured, converse
from support.protocols import PROTOCOLS
from support.sampling import examples, thorough

# The conversation crosses the wrap, or the middle, where differences change their sign, or begins there.
INITIAL = (0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFF5, 0xFFFFFFD0, 0x7FFFFFFF, 0x7FFFFFF8, 0x80000000)

Verdict = tuple[str, str, bool, int]


def verdicts(octets: bytes) -> list[Verdict]:
    """All that was found: rule, peer, whether it is certain, packet."""
    while_read, at_end = judged(octets)
    return sorted((one.rule, one.peer, bool(one.certain), int(one.packet)) for one in while_read + at_end)


@pytest.mark.parametrize("batch", range(4))
def test_verdicts_do_not_depend_on_where_numbers_begin(batch: int) -> None:
    """Of legal conversations, and of those full of faults."""
    tried = found = 0
    wrong: list[str] = []
    for n in range(200 if thorough() else examples(8)):
        seed = f"serial {batch} {n}"
        mischief = PROTOCOLS["amqp10"].mischief if n % 2 else None
        plain = verdicts(captured(converse(seed, mischief=mischief, serial=0), Tap()).octets)
        found += len(plain)
        for initial in INITIAL if thorough() else (INITIAL[(n + batch) % len(INITIAL)],):
            other = verdicts(captured(converse(seed, mischief=mischief, serial=initial), Tap()).octets)
            tried += 1
            if other != plain:
                gone = [one for one in plain if one not in other]
                new = [one for one in other if one not in plain]
                wrong.append(f"{seed} from {initial:#x}: gone {gone}, new {new}")
    assert not wrong, "\n".join(wrong[:20])
    assert tried >= examples(8) and found > 0


def certain(d: Dialogue) -> list[tuple[str, str]]:
    return [(rule, peer) for rule, peer, sure, _ in verdicts(d.capture.pcap(nanoseconds=True)) if sure]


def guessing(initial: int, credit: int, drain: bool | None = None) -> Dialogue:
    """The client grants credit from delivery-count 0 on, before it knows the server's."""
    d = Dialogue()
    d.begun()
    d.client.attach(RECEIVER)
    d.client.flow(handle=0, delivery_count=0, link_credit=credit, drain=drain)
    d.server.attach(SENDER, initial_delivery_count=initial)
    return d


@pytest.mark.parametrize(("initial", "allowed"), [(4294967291, 7), (0xFFFFFFFF, 3), (0, 2), (1, 1)])
def test_credit_from_a_guessed_delivery_count_is_a_sum_of_serial_numbers(initial: int, allowed: int) -> None:
    d = guessing(initial, 2)
    for _ in range(allowed):
        d.server.transfer()
    assert certain(d) == [("amqp10/L-DC-UNSET", "client")]
    d.server.transfer()
    assert certain(d) == [("amqp10/L-CREDIT", "server"), ("amqp10/L-DC-UNSET", "client")]


def test_all_the_credit_there_is_from_a_guessed_delivery_count() -> None:
    d = guessing(5, 0xFFFFFFFF)
    d.server.transfer()
    assert certain(d) == [("amqp10/L-DC-UNSET", "client")]


def test_a_link_drained_from_a_guessed_delivery_count() -> None:
    d = guessing(0xFFFFFFFE, 2, drain=True)
    d.server.transfer()
    d.server.flow(handle=0, delivery_count=2, link_credit=0, drain=True)
    assert certain(d) == [("amqp10/L-DC-UNSET", "client")]


# From 1 on the window of the begin, which may still be in force, allows more than that of the flow.
@pytest.mark.parametrize(("initial", "allowed"), [(0xFFFFFFFC, 6), (0xFFFFFFFF, 3), (0, 2), (1, 2)])
def test_a_window_from_a_guessed_transfer_id_is_a_sum_of_serial_numbers(initial: int, allowed: int) -> None:
    d = Dialogue()
    d.opened()
    d.client.begin(incoming_window=2)
    d.client.attach(RECEIVER)
    d.client.flow(handle=0, next_incoming_id=0, incoming_window=2, link_credit=10)
    d.server.begin(next_outgoing_id=initial)
    d.server.attach(SENDER)
    for _ in range(allowed):
        d.server.transfer()
    assert certain(d) == [("amqp10/S-FLOW-NEXTIN-UNSET", "client")]
    d.server.transfer()
    assert certain(d)[1:] == [("amqp10/S-WIN-IN", "server")]


def test_the_credit_of_the_attachment_before_is_forgotten_however_it_was_counted() -> None:
    d = Dialogue()
    d.linked(credit=2)
    d.client.detach(closed=False)
    d.server.flow(handle=0, delivery_count=0, link_credit=100)  # it has not heard of the detach
    d.client.attach(SENDER, initial_delivery_count=0xFFFFFFFF)
    d.server.detach(closed=False)
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, delivery_count=0xFFFFFFFF, link_credit=1)
    d.client.transfer()
    assert certain(d) == []
