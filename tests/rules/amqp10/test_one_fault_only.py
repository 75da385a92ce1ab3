"""After one fault the conversation goes on as if the frame had been right. Nothing more is certain.

A second finding would only follow from the first one, and would often accuse the peer that kept the rules.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, Dialogue
from support.judged import judged

from amqpscope.rules.catalogue import severity

WINDOWS = {"next_incoming_id": 0, "incoming_window": 2048, "next_outgoing_id": 0, "outgoing_window": 2048}

Talk = Callable[[Dialogue], None]
ONE_FAULT: list[tuple[str, str, Talk]] = []


def breaks(rule: str, peer: str = "client") -> Callable[[Talk], Talk]:
    """The conversation holds one fault: this peer breaks this rule."""

    def enter(talk: Talk) -> Talk:
        ONE_FAULT.append((rule, peer, talk))
        return talk

    return enter


def first_transfer(number: int = 0, **fields: object) -> bytes:
    """The first transfer of a delivery."""
    given = {"handle": 0, "delivery_id": number, "delivery_tag": bytes([number]), "message_format": 0}
    return amqp.transfer(**{**given, **fields})


def finish(d: Dialogue) -> None:
    """The client sends two messages more, and both leave the link."""
    d.client.transfer()
    d.client.transfer()
    d.client.flow(handle=0, link_credit=10 - d.client.handles[0, 0].count)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("L-HANDLE-INUSE")
def attach_of_a_receiver_on_the_handle_of_a_sender(d: Dialogue) -> None:
    d.linked()
    other = amqp.attach(
        name="other",
        handle=0,
        role=RECEIVER,
        source=amqp.source(address="o"),
        target=amqp.target(address="o"),
    )
    d.client.frame(other)
    finish(d)


@breaks("L-HANDLE-INUSE")
def both_links_of_one_handle_are_detached(d: Dialogue) -> None:
    d.linked()
    d.client.attach(name="other")
    d.client.detach()
    d.client.detach()
    d.goodbye()


@breaks("S-FLOW-NEXTOUT")
def one_flow_states_a_larger_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(next_outgoing_id=4)
    d.client.flow()
    finish(d)


@breaks("S-FLOW-NEXTOUT")
def one_flow_states_a_lower_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(next_outgoing_id=0)
    d.client.flow()
    finish(d)


@breaks("S-FLOW-NEXTOUT")
def all_flows_state_a_larger_next_outgoing_id(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(next_outgoing_id=4)
    d.client.transfer()
    d.client.flow(next_outgoing_id=5)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("S-FLOW-NEXTOUT")
def a_next_outgoing_id_beyond_the_window(d: Dialogue) -> None:
    d.begun(server={"incoming_window": 10})
    d.attached()
    d.client.flow(next_outgoing_id=100)
    finish(d)


@breaks("L-DC-SENDER")
def one_flow_of_a_sender_states_a_larger_delivery_count(d: Dialogue) -> None:
    d.linked()
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=10, link_credit=0)
    finish(d)


@breaks("L-DC-SENDER")
def all_flows_of_a_sender_state_a_larger_delivery_count(d: Dialogue) -> None:
    d.linked(credit=9)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=3, link_credit=6)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=4, link_credit=5)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@breaks("L-DC-SENDER")
def sender_drains_beyond_its_credit(d: Dialogue) -> None:
    d.linked(credit=4)
    d.server.flow(handle=0, link_credit=4, drain=True)
    d.client.flow(handle=0, delivery_count=8, link_credit=1, drain=True)
    d.client.flow(handle=0, delivery_count=4, link_credit=0, drain=True)
    d.client.detach()
    d.server.detach()
    d.goodbye()


@pytest.mark.parametrize(
    ("rule", "peer", "talk"), [pytest.param(*one, id=one[2].__name__) for one in ONE_FAULT]
)
def test_one_fault_is_certain_and_nothing_else(rule: str, peer: str, talk: Talk) -> None:
    d = Dialogue()
    talk(d)
    while_read, at_end = judged(d.capture.pcap(nanoseconds=True))
    certain = [
        (finding.rule.partition("/")[2], finding.peer)
        for finding in while_read + at_end
        if finding.certain and severity(finding.rule) == "error"
    ]
    assert certain == [(rule, peer)]
