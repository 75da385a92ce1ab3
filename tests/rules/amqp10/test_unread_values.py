"""What depends on a value that could not be read is unknown: neither peer is accused for it.

Conversations of real shape, each with one fault of one peer; only that is certain. `test_garbled_fields`
tries every field in every way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.dialogue import MESSAGE, RECEIVER, SENDER, Dialogue
from support.judged import judged

from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import severity

NO_BOOLEAN = amqp.raw("56 02")
IN_A_MAP = amqp.raw("00 53 34 c1 01 00")

Found = list[tuple[str, str]]


def findings(d: Dialogue) -> list[Finding]:
    while_read, at_end = judged(d.capture.pcap(nanoseconds=True))
    return [finding for finding in while_read + at_end if severity(finding.rule) != "note"]


def rules(d: Dialogue) -> Found:
    """What is said of both, certain or not."""
    return [(finding.rule.partition("/")[2], finding.peer) for finding in findings(d)]


def role_that_is_no_boolean() -> Dialogue:
    """The server sends on a link whose receiver garbled its own role."""
    d = Dialogue()
    d.begun()
    d.client.frame(amqp.attach(name="q", handle=0, role=NO_BOOLEAN, source=amqp.source(address="q")))
    d.server.attach(SENDER)
    d.client.flow(handle=0, delivery_count=0, link_credit=3)
    d.server.transfer()
    d.server.transfer()
    d.client.disposition(0, 1)
    d.server.flow(handle=0, delivery_count=3, link_credit=0, available=0)
    d.client.detach()
    d.server.detach()
    d.goodbye()
    return d


def drain_that_is_no_boolean() -> Dialogue:
    """The sender does what it was asked."""
    d = Dialogue()
    d.subscribed(credit=5)
    d.server.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=4, drain=NO_BOOLEAN)
    d.server.flow(handle=0, delivery_count=5, link_credit=0, drain=True)
    d.client.flow(handle=0, delivery_count=5, link_credit=5)
    d.goodbye()
    return d


def more_that_is_no_boolean() -> Dialogue:
    """The delivery goes on, whatever was said of that."""
    d = Dialogue()
    d.linked()
    whole = amqp.amqp_value("a message in two transfers")
    d.client.transfer(whole[:9], more=NO_BOOLEAN)
    d.client.transfer(whole[9:], delivery_id=0, delivery_tag=bytes(4), message_format=0, more=False)
    d.client.transfer()
    d.server.disposition(0, 1)
    d.goodbye()
    return d


def settled_of_another_type() -> Dialogue:
    """On a link on which all has to be settled."""
    d = Dialogue()
    d.linked(client={"snd_settle_mode": 1}, server={"snd_settle_mode": 1})
    d.client.transfer(settled=True)
    d.client.transfer(settled=amqp.ubyte(1))
    d.client.transfer(settled=True)
    d.goodbye()
    return d


def garbled_name(name: bytes) -> Callable[[], Dialogue]:
    def dialogue() -> Dialogue:
        """Both ends call the link so; their handles can be read."""
        d = Dialogue()
        d.linked(client={"name": amqp.raw(name)}, server={"name": amqp.raw(name)})
        d.client.transfer()
        d.server.disposition()
        d.server.flow(handle=0, delivery_count=1, link_credit=10)
        d.client.detach()
        d.server.detach()
        d.goodbye()
        return d

    return dialogue


def declared(d: Dialogue, **disposition: Any) -> None:
    """A link for work under the transaction T, which the client declares on its control link."""
    d.client.attach(SENDER, handle=1, name="work")
    d.server.attach(RECEIVER, handle=1, name="work")
    d.server.flow(handle=1, link_credit=10)
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, state=amqp.declared(txn_id=b"T"), **disposition)


def role_of_a_disposition() -> Dialogue:
    """The one that declares a transaction."""
    d = Dialogue()
    d.linked(client={"target": amqp.coordinator()}, server={"target": amqp.coordinator()})
    declared(d, role=NO_BOOLEAN)
    state = amqp.transactional_state(txn_id=b"T")
    d.client.transfer(handle=1, state=state)
    d.server.disposition(1, state=amqp.transactional_state(txn_id=b"T", outcome=amqp.accepted()))
    d.client.transfer(amqp.amqp_value(amqp.discharge(txn_id=b"T", fail=False)))
    d.server.disposition(2)
    d.goodbye()
    return d


def transactional_state_in_a_map() -> Dialogue:
    """The server names the transaction that the client meant."""
    d = Dialogue()
    d.linked(client={"target": amqp.coordinator()}, server={"target": amqp.coordinator()})
    declared(d)
    d.client.transfer(handle=1, state=IN_A_MAP)
    d.server.disposition(1, state=amqp.transactional_state(txn_id=b"T", outcome=amqp.accepted()))
    d.goodbye()
    return d


def control_link(**garbled: bytes) -> Callable[[], Dialogue]:
    def dialogue() -> Dialogue:
        """Both peers take the link for what was meant, and do work under a transaction."""
        d = Dialogue()
        d.begun()
        given = {"name": "q", "handle": 0, "role": SENDER, "target": amqp.coordinator(), **garbled}
        d.client.frame(amqp.attach(initial_delivery_count=0, **given))
        d.server.attach(RECEIVER, target=amqp.coordinator())
        d.server.flow(handle=0, delivery_count=0, link_credit=10)
        declared(d)
        d.client.transfer(handle=1, state=amqp.transactional_state(txn_id=b"T"))
        d.server.disposition(1, state=amqp.transactional_state(txn_id=b"T", outcome=amqp.accepted()))
        d.goodbye()
        return d

    return dialogue


def unsettled_map_that_does_not_fit() -> Dialogue:
    """The client resumes what is listed in it, uncounted."""
    d = Dialogue()
    listed = {b"s": None, b"t": None}
    d.linked(client={"unsettled": listed}, server={"unsettled": amqp.raw("c1 09 02 a0 01 73 40 a0 01 74 40")})
    d.client.transfer(delivery_tag=b"s", resume=True)
    d.client.transfer(delivery_tag=b"t", resume=True)
    d.server.disposition(0, 1)
    d.goodbye()
    return d


def attach_one_octet_short() -> Dialogue:
    """The last field is what the list has no room for."""
    d = Dialogue()
    d.begun()
    whole = amqp.attach(
        name="q",
        handle=0,
        role=SENDER,
        source=amqp.source(address="q"),
        target=amqp.target(address="q"),
        initial_delivery_count=amqp.uint(0, 0x43),
    )
    short = whole[:4] + bytes([whole[4] - 1]) + whole[5:]
    d.client.say(amqp.frame(short))
    d.server.attach(RECEIVER)
    d.server.flow(handle=0, delivery_count=0, link_credit=10)
    d.client.transfer()
    d.goodbye()
    return d


def next_incoming_id_of_another_type() -> Dialogue:
    """It stands there."""
    d = Dialogue()
    d.linked()
    d.server.flow(next_incoming_id=amqp.ushort(0))
    d.client.transfer()
    d.goodbye()
    return d


def delivery_without_id() -> Dialogue:
    """The receiver settles it by the id that it would have."""
    d = Dialogue()
    d.linked()
    d.client.transfer(delivery_id=None)
    d.server.disposition(0)
    d.client.transfer()
    d.server.disposition(1)
    d.goodbye()
    return d


def outcomes_that_are_none() -> Dialogue:
    """The receiver states what was meant."""
    d = Dialogue()
    d.linked(client={"source": amqp.source(address="q", outcomes=["accepted"])})
    d.client.transfer()
    d.server.disposition()
    d.goodbye()
    return d


def outcomes_of_a_control_link_that_are_none() -> Dialogue:
    d = Dialogue()
    source = amqp.source(outcomes=["amqp:accepted:list", "rejected"])
    d.linked(client={"source": source, "target": amqp.coordinator()}, server={"target": amqp.coordinator()})
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, state=amqp.rejected(error=amqp.error(condition="amqp:transaction:rollback")))
    d.goodbye()
    return d


@pytest.mark.parametrize(
    ("dialogue", "only"),
    [
        (role_that_is_no_boolean, ("T-BOOL-OCTET", "client")),
        (drain_that_is_no_boolean, ("T-BOOL-OCTET", "client")),
        (more_that_is_no_boolean, ("T-BOOL-OCTET", "client")),
        (settled_of_another_type, ("T-COMP-TYPE", "client")),
        (role_of_a_disposition, ("T-BOOL-OCTET", "server")),
        (transactional_state_in_a_map, ("T-COMP-LIST", "client")),
        (control_link(source=amqp.raw("3f")), ("T-CODE-UNKNOWN", "client")),
        (control_link(role=NO_BOOLEAN), ("T-BOOL-OCTET", "client")),
        (control_link(name=amqp.raw("a2 02 00 71")), ("T-STR-NO-UTF16", "client")),
        (control_link(target=amqp.raw("00 53 30 c1 01 00")), ("T-COMP-LIST", "client")),
        (unsettled_map_that_does_not_fit, ("T-MAP-FIT", "server")),
        (attach_one_octet_short, ("T-LIST-FIT", "client")),
        (next_incoming_id_of_another_type, ("T-COMP-TYPE", "server")),
        (delivery_without_id, ("D-ID-PRESENT", "client")),
        (outcomes_that_are_none, ("M-OUTCOMES-SYMBOL", "client")),
        (outcomes_of_a_control_link_that_are_none, ("M-OUTCOMES-SYMBOL", "client")),
    ],
)
def test_only_the_fault_itself_is_reported(dialogue: Callable[[], Dialogue], only: tuple[str, str]) -> None:
    assert rules(dialogue()) == [only]


@pytest.mark.parametrize(
    ("name", "rule"), [(b"\xa1\x01\xe9", "T-STR-UTF8"), (b"\xa2\x02\x00q", "T-STR-NO-UTF16")]
)
def test_a_link_whose_name_cannot_be_read_is_attached(name: bytes, rule: str) -> None:
    assert rules(garbled_name(name)()) == [(rule, "client"), (rule, "server")]


def test_a_link_that_was_taken_over_before_a_hole_is_doubted_too() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    d.client.attach(SENDER, handle=1, initial_delivery_count=1)  # takes its own link back
    with d.missed():
        d.client.detach(handle=0)
        d.server.detach(handle=0)
    d.client.attach(SENDER, handle=0, name="another", initial_delivery_count=7)
    d.client.flow(handle=0, delivery_count=7, link_credit=0)
    d.goodbye()
    assert [(finding.rule, finding.certain) for finding in findings(d)] == [("amqp10/L-NAME-UNIQUE", False)]


WHOLE = amqp.message_annotations([]) + amqp.amqp_value("\u00e9" * 40)


def test_a_message_whose_tag_changed_on_the_way_is_not_judged_as_one() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(WHOLE[:20], more=True)
    d.client.transfer(MESSAGE, delivery_tag=b"other", more=True)
    d.client.transfer(WHOLE[20:], delivery_tag=bytes(4))
    d.goodbye()
    assert {rule for rule, _ in rules(d)} == {"D-TAG-CONT"}


def test_messages_that_interleave_on_a_link_are_not_judged_as_such() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(WHOLE[:21], more=True)
    d.client.transfer(WHOLE[:33], delivery_id=1, delivery_tag=b"two", message_format=0, more=True)
    d.client.transfer(WHOLE[21:], delivery_id=0, delivery_tag=bytes(4), more=True)
    d.client.transfer(WHOLE[33:], delivery_id=1, delivery_tag=b"two")
    d.goodbye()
    assert {rule for rule, _ in rules(d)} == {"D-NOINTERLEAVE"}


def test_a_field_of_one_link_leaves_the_others_known() -> None:
    d = Dialogue()
    d.linked(client={"properties": amqp.raw("c1 04 01 a3 01 61")})
    d.client.attach(SENDER, handle=1, name="other")
    d.server.attach(RECEIVER, handle=1, name="other")
    d.client.transfer(handle=1)
    d.goodbye()
    assert rules(d) == [("T-MAP-EVEN", "client"), ("L-CREDIT-INIT", "client")]


def test_a_field_of_one_session_leaves_the_others_known() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(more=NO_BOOLEAN)
    d.client.begin(channel=1)
    d.server.begin(channel=1)
    d.client.transfer(channel=1)
    d.goodbye()
    assert rules(d) == [("T-BOOL-OCTET", "client"), ("L-UNATTACHED-TRANSFER", "client")]


def test_an_introduction_that_cannot_be_read_leaves_what_follows_known() -> None:
    d = Dialogue()
    d.opened(client={"hostname": amqp.raw(b"\xa1\x01\xff")})
    d.client.begin()
    d.server.begin()
    d.client.transfer()
    d.goodbye()
    assert rules(d) == [("T-STR-UTF8", "client"), ("L-UNATTACHED-TRANSFER", "client")]


def test_a_state_of_a_foreign_type_may_name_the_transaction() -> None:
    d = Dialogue()
    d.linked(client={"target": amqp.coordinator()}, server={"target": amqp.coordinator()})
    d.client.attach(SENDER, handle=1, name="work")
    d.server.attach(RECEIVER, handle=1, name="work")
    d.server.flow(handle=1, link_credit=10)
    d.client.transfer(amqp.amqp_value(amqp.declare()))
    d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
    d.client.transfer(MESSAGE[:5], handle=1, state=amqp.transactional_state(txn_id=b"T"), more=True)
    d.client.transfer(MESSAGE[5:], handle=1, state=amqp.described("example:state:list", amqp.list_([])))
    d.goodbye()
    assert rules(d) == []
