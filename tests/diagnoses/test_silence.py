"""Of peers that answer each other at once nothing is diagnosed, and of damaged captures nothing new."""

from __future__ import annotations

import random

import pytest
from support.diagnosed import diagnosed
from support.dialogue import Dialogue
from support.network import PROTOCOLS, Tap, captured, converse

# What legal peers do at random: they take their time, and refuse links.
BY_CHANCE = {
    f"diag/{name}"
    for name in ("unanswered", "link-refused", "credit-starved", "window-closed", "unsettled-pile")
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_missing_packets_make_no_diagnosis_that_the_whole_capture_has_not(protocol: str) -> None:
    chance = random.Random(protocol)
    for number in range(8):
        conversation = converse(f"diagnoses-{number}", protocol=protocol)
        whole = {one.code for one in diagnosed(captured(conversation, Tap(seed="whole")).octets)}
        assert whole <= BY_CHANCE
        for drop in (0.02, 0.1):
            tap = Tap(position=chance.random(), drop=drop, seed=f"{number}")
            damaged = {one.code for one in diagnosed(captured(conversation, tap).octets)}
            assert damaged <= whole


def test_a_refusal_behind_a_fault_of_the_refusing_peer_is_not_called_wrong() -> None:
    """Behind the fault of the server, rules are silent about the session, and the transfer breaks one too."""
    d = Dialogue()
    d.begun()
    d.server.transfer(handle=9)
    d.client.transfer(handle=7)
    d.server.close(error="amqp:session:unattached-handle")
    assert "diag/legal-refused" not in {one.code for one in diagnosed(d.pcap())}
