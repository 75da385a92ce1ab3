"""A flow without the next-incoming-id that it must have lowers no window: whoever gets it may ignore it.

Whoever takes it as it was meant counts its window from what has arrived.
"""

from __future__ import annotations

from io import BytesIO

import pytest
from support.dialogue import Dialogue
from support.dialogue_draft2011 import Dialogue2011

from amqpscope.input.capture import check


def accused(d: Dialogue) -> set[tuple[str, str]]:
    return {(found.rule.partition("/")[2], found.peer) for found in check(BytesIO(d.pcap())) if found.certain}


@pytest.mark.parametrize("dialogue", [Dialogue, Dialogue2011])
@pytest.mark.parametrize("earlier_flow", [False, True])
def test_a_flow_without_next_incoming_id_lowers_no_window(
    dialogue: type[Dialogue], earlier_flow: bool
) -> None:
    d = dialogue()
    d.opened()
    begins = [d.server, d.client] if earlier_flow else [d.client, d.server]
    for peer in begins:
        peer.begin()
    d.attached()
    d.client.transfer()
    if earlier_flow:
        d.server.flow()
    d.server.flow(next_incoming_id=None, incoming_window=0)
    d.server.begin(1)
    d.client.begin(1)  # so it has read the flow
    d.client.transfer()
    d.goodbye()
    assert accused(d) == {("S-FLOW-NEXTIN-SET", "server")}


@pytest.mark.parametrize("dialogue", [Dialogue, Dialogue2011])
@pytest.mark.parametrize("answering", [False, True])
def test_a_flow_without_next_incoming_id_may_be_taken_as_it_was_meant(
    dialogue: type[Dialogue], answering: bool
) -> None:
    d = dialogue()
    d.opened()
    for peer in [d.client, d.server] if answering else [d.server, d.client]:
        peer.begin(incoming_window=2)
    d.attached()
    d.client.transfer()
    d.client.transfer()
    d.server.flow(next_incoming_id=None, incoming_window=2)
    d.client.transfer()
    d.client.transfer()
    d.server.flow(next_incoming_id=None, incoming_window=2)
    d.client.transfer()
    d.client.transfer()
    # A begin that answers none may not have been read when the flows were sent.
    named = {("S-FLOW-NEXTIN-SET", "server")} if answering else set()
    assert accused(d) == named
    d.client.transfer()
    assert accused(d) == named | {("S-WIN-IN", "client")}
