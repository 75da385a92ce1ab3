"""The specification's example of a link resumed with fourteen deliveries, tag by tag.

messaging.xml, "Resuming Deliveries Using Delivery States": the two attaches list fourteen deliveries in
all the ways in which two ends can disagree. Each right continuation of each tag is silent, each wrong one is
found and named: on one connection, where the link is detached and attached again, and on a second one of
the same containers.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, Dialogue, Said

import amqpscope

MESSAGE = b"".join(amqp.data(bytes([65 + n]) * 2100) for n in range(4))
ACCEPTED, RELEASED = amqp.accepted(), amqp.released()
LASTING = amqp.source(address="q", expiry_policy="never", durable=2)


def received(section: int, octet: int) -> bytes:
    return amqp.received(section_number=section, section_offset=octet)


def tag(number: int) -> bytes:
    return b"%d" % number


SENDER_MAP: dict[bytes, bytes | None] = {
    tag(1): None,
    tag(2): None,
    tag(3): None,
    tag(4): None,
    tag(5): received(0, 200),
    tag(6): received(1, 150),
    tag(7): received(0, 500),
    tag(8): received(3, 5),
    tag(9): received(2, 0),
    tag(10): ACCEPTED,
    tag(11): ACCEPTED,
    tag(12): ACCEPTED,
    tag(13): ACCEPTED,
    tag(14): ACCEPTED,
}
RECEIVER_MAP: dict[bytes, bytes | None] = {
    tag(2): received(3, 0),
    tag(3): ACCEPTED,
    tag(4): None,
    tag(6): received(2, 0),
    tag(7): received(0, 100),
    tag(8): ACCEPTED,
    tag(9): None,
    tag(11): received(1, 2000),
    tag(12): ACCEPTED,
    tag(13): RELEASED,
    tag(14): None,
}

Way = Callable[[Dialogue, int], list[Said]]
"""What is said of one tag; in the end the frame that is at fault, if one is."""


def again(payload: bytes = b"", **fields: Any) -> Way:
    """The tag is sent again: resumed, unless something else is said."""

    def way(d: Dialogue, number: int) -> list[Said]:
        given = {"delivery_tag": tag(number), "resume": True, **fields}
        return [d.client.transfer(payload, **given)]

    return way


def anew(**fields: Any) -> Way:
    """The whole message, as a new delivery."""
    return again(MESSAGE, resume=None, **fields)


def in_two(**fields: Any) -> Way:
    """Resumed in two transfers, the second of which does not repeat the flag."""

    def way(d: Dialogue, number: int) -> list[Said]:
        first = d.client.transfer(MESSAGE[:4000], delivery_tag=tag(number), resume=True, more=True, **fields)
        return [first, d.client.transfer(MESSAGE[4000:])]

    return way


def answered(way: Way, state: bytes | None, settled: bool | None = True) -> Way:
    """And the receiver says this of it."""

    def both(d: Dialogue, number: int) -> list[Said]:
        delivery_id = d.client.delivery_ids[0]
        return [*way(d, number), d.server.disposition(delivery_id, state=state, settled=settled)]

    return both


def nothing(d: Dialogue, number: int) -> list[Said]:
    return []


CONFIRMED = again(settled=True, state=ACCEPTED)
ABORTED = again(aborted=True)

RIGHT: dict[int, list[Way]] = {
    1: [anew(), anew(delivery_tag=b"another")],
    2: [
        again(amqp.data(b"D" * 2100), state=received(3, 0)),
        again(MESSAGE),
        again(MESSAGE, state=received(0, 0)),
        again(MESSAGE[100:], state=received(0, 95)),
        again(MESSAGE[5000:], state=received(2, 7)),
        in_two(),
        ABORTED,
    ],
    3: [
        CONFIRMED,
        again(state=ACCEPTED),
        again(state=RELEASED),
        again(state=ACCEPTED, settled=None, more=False),
    ],
    4: [again(MESSAGE), again(MESSAGE, state=received(0, 0)), in_two()],
    5: [anew(), anew(delivery_tag=b"another"), nothing],
    6: [
        again(MESSAGE[5000:], state=received(2, 0)),
        again(MESSAGE[2500:], state=received(1, 150)),
        again(MESSAGE[2500:], state=received(1, 2000)),
        in_two(state=received(1, 150)),
    ],
    7: [ABORTED, again(aborted=True, state=received(0, 500))],
    8: [CONFIRMED, again(state=ACCEPTED), again(state=RELEASED, settled=True)],
    9: [ABORTED],
    10: [nothing],
    11: [ABORTED],
    12: [again(settled=True), again(settled=True, state=ACCEPTED)],
    13: [
        answered(again(state=ACCEPTED), ACCEPTED),
        again(state=ACCEPTED),
        again(state=ACCEPTED, settled=True),
    ],
    14: [ABORTED],
}

Wrong = tuple[int, Way, str, bool]
"""A tag, what is said of it, the rule that breaks, and whether that is certain."""

WRONG: list[Wrong] = [
    (1, again(MESSAGE), "M-RES-RESEND-NEW", True),
    (2, anew(), "D-RESUME-FLAG", True),
    (2, again(MESSAGE, state=received(3, 1)), "M-RES-START", True),
    (2, again(MESSAGE, state=received(4, 0)), "M-RES-START", True),
    (2, in_two(state=received(3, 1)), "M-RES-START", True),
    (2, again(b""), "D-RESUME-OMIT", True),
    (3, anew(), "D-RESUME-FLAG", True),
    (3, again(settled=True), "M-RES-TERMRCV-STATE", True),
    (3, again(MESSAGE), "M-RES-TERMRCV-STATE", True),
    (4, anew(), "D-RESUME-FLAG", True),
    (4, again(MESSAGE[10:], state=received(0, 7)), "M-RES-NULLRCV", True),
    (4, again(b""), "D-RESUME-OMIT", True),
    (5, again(MESSAGE[200:], state=received(0, 200)), "M-RES-RESEND-NEW", True),
    (6, anew(), "D-RESUME-FLAG", True),
    (6, again(MESSAGE, state=received(2, 1)), "M-RES-START", True),
    (6, again(MESSAGE, state=received(1, 149)), "M-RES-START", True),
    (6, again(MESSAGE), "M-RES-START", True),
    (7, anew(), "D-RESUME-FLAG", True),
    (7, again(MESSAGE, state=received(0, 500)), "M-RES-GAP", True),
    (7, again(MESSAGE, state=received(0, 100)), "M-RES-GAP", True),
    (8, anew(), "D-RESUME-FLAG", True),
    (8, again(settled=True), "M-RES-TERMRCV-STATE", True),
    (9, anew(), "D-RESUME-FLAG", True),
    (9, again(MESSAGE), "M-RES-GAP", True),
    (10, again(settled=True), "M-RES-RESEND-NEW", True),
    (11, anew(), "D-RESUME-FLAG", True),
    (11, again(MESSAGE[2000:], state=received(1, 2000)), "M-RES-TERMMAP", False),
    (11, again(settled=True, state=ACCEPTED), "M-RES-ABORT-LOST", True),
    (12, anew(), "D-RESUME-FLAG", True),
    (12, again(), "M-RES-BOTHTERM", False),
    (13, anew(), "D-RESUME-FLAG", True),
    (13, again(), "M-RES-DIFFER", True),
    (13, again(state=RELEASED), "M-RES-DIFFER", True),
    (13, ABORTED, "M-RES-DIFFER", True),
    (13, answered(again(state=ACCEPTED), RELEASED), "M-RES-DIFFER-ECHO", True),
    (13, answered(again(state=ACCEPTED), ACCEPTED, None), "M-RES-DIFFER-ECHO", True),
    (14, anew(), "D-RESUME-FLAG", True),
    (14, again(MESSAGE), "M-RES-TERMMAP", False),
    (14, again(settled=True), "M-RES-ABORT-LOST", True),
    (15, again(MESSAGE), "D-RESUME-LOCAL", True),
]

# Not said at all, and found when the sender leaves the link: the tag, and the rule.
LEFT = [(number, "D-RESUME-BOTH") for number in (2, 4, 6, 7, 9, 11, 14)]
LEFT += [(number, "M-RES-TERMRCV") for number in (3, 8, 12, 13)]

Verdict = tuple[str, str, int, bool]


def attached(d: Dialogue, count: int, sender: Any = SENDER_MAP, **receiver: Any) -> Said:
    """Both attach with their maps; gives the receiver's attach."""
    rcv = {"rcv_settle_mode": 1}
    d.client.attach(source=LASTING, unsettled=sender, initial_delivery_count=count, **rcv)
    theirs = {"unsettled": RECEIVER_MAP, **rcv, **receiver}
    said = d.server.attach(RECEIVER, **theirs)
    d.server.flow(handle=0, link_credit=40)
    return said


def sent(d: Dialogue) -> None:
    """The fourteen, before the link was interrupted."""
    rcv = {"rcv_settle_mode": 1}
    d.linked(credit=20, client={"source": LASTING, **rcv}, server=rcv)
    for number in range(1, 15):
        d.client.transfer(MESSAGE, delivery_tag=tag(number))


def one_connection(**receiver: Any) -> tuple[Dialogue, Dialogue, Said]:
    """The conversation as a whole, its part in which the link is resumed, the receiver's attach."""
    d = Dialogue()
    sent(d)
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    return d, d, attached(d, 14, **receiver)


def two_connections(sender: Any = SENDER_MAP, **receiver: Any) -> tuple[Dialogue, Dialogue, Said]:
    """The same, where the connection was interrupted."""
    d = Dialogue()
    sent(d)
    d.goodbye()
    d.wait(seconds=5)
    later = d.again()
    later.begun()
    return d, later, attached(later, 0, sender, **receiver)


PLACES = {"one connection": one_connection, "two connections": two_connections}


def reported(place: str, ways: dict[int, Way]) -> tuple[list[Verdict], Dialogue, dict[int, list[Said]]]:
    """All fourteen, the first of the right ways each, but for those that are given."""
    d, later, attach = PLACES[place]()
    said = {}
    for number in range(1, 16):
        if number in ways:
            said[number] = ways[number](later, number)
        elif number in RIGHT:
            said[number] = RIGHT[number][0](later, number)
    said[0] = [later.client.detach()]
    later.server.detach()
    later.goodbye()
    found = sorted(
        (f.rule.removeprefix("amqp10/"), f.peer, int(f.packet), f.certain)
        for f in amqpscope.check(io.BytesIO(d.pcap()))
    )
    kept = ("M-RES-NULLRCV-KEEP", "server", d.packet_number(attach), True)
    assert kept in found  # the text calls its three null entries discouraged
    return [one for one in found if one != kept], d, said


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("number", "way"), [(number, way) for number, ways in RIGHT.items() for way in range(len(ways))]
)
def test_the_right_continuation_is_silent(place: str, number: int, way: int) -> None:
    found, _, _ = reported(place, {number: RIGHT[number][way]})
    assert found == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "wrong", WRONG, ids=[f"{number}-{rule}-{at}" for at, (number, _, rule, _) in enumerate(WRONG)]
)
def test_the_wrong_one_is_found_and_named(place: str, wrong: Wrong) -> None:
    number, way, rule, certain = wrong
    found, d, said = reported(place, {number: way})
    at_fault = said[number][-1] if rule == "M-RES-DIFFER-ECHO" else said[number][0]
    assert found == [(rule, at_fault.peer.name, d.packet_number(at_fault), certain)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("number", "rule"), LEFT)
def test_what_is_not_resumed_is_missed_when_the_sender_leaves(place: str, number: int, rule: str) -> None:
    found, d, said = reported(place, {number: nothing})
    assert found == [(rule, "client", d.packet_number(said[0][0]), False)]


@pytest.mark.parametrize("place", PLACES)
def test_what_the_receiver_has_no_record_of_is_missed_if_nothing_new_is_sent(place: str) -> None:
    found, d, said = reported(place, {1: nothing, 5: nothing})
    assert found == [("M-RES-RESEND-MUST", "client", d.packet_number(said[0][0]), False)]


@pytest.mark.parametrize("place", PLACES)
def test_a_delivery_to_be_ignored_that_is_answered(place: str) -> None:
    found, d, said = reported(place, {1: answered(again(MESSAGE), ACCEPTED)})
    sender, receiver = said[1]
    assert found == [
        ("D-RESUME-IGNORE", "server", d.packet_number(receiver), True),
        ("M-RES-RESEND-NEW", "client", d.packet_number(sender), True),
    ]


def test_of_maps_that_are_incomplete_only_what_is_listed_counts() -> None:
    d, later, _ = one_connection(incomplete_unsettled=True)
    again(MESSAGE)(later, 1)
    said = again(MESSAGE)(later, 9)[0]
    later.goodbye()
    found = [
        (f.rule.removeprefix("amqp10/"), int(f.packet))
        for f in amqpscope.check(io.BytesIO(d.pcap()))
        if f.peer == "client" and f.certain
    ]
    assert found == [("M-RES-GAP", d.packet_number(said))]


@pytest.mark.parametrize("number", range(1, 15))
def test_a_delivery_that_the_sender_does_not_list_any_more_was_left_on_the_connection_before(
    number: int,
) -> None:
    fewer = {known: state for known, state in SENDER_MAP.items() if known != tag(number)}
    d, later, attach = two_connections(fewer)
    later.goodbye()
    found = [(f.rule, f.peer, int(f.packet), f.certain) for f in amqpscope.check(io.BytesIO(d.pcap()))]
    at = d.packet_number(attach) - 1
    assert [one for one in found if one[1] == "client" and one[2] == at] == [
        ("amqp10/L-ATTACH-UNSETTLED", "client", at, False)
    ]
