"""A client that gives up a silent server owes it no close, also if the server is heard of again."""

from __future__ import annotations

import io

import pytest
from scenarios.amqp091.heartbeat import heartbeats
from support.dialogue091 import Dialogue091

import amqpscope


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("silence", "accused"), [(3100, False), (700, True)])
def test_a_silent_server_is_given_up(silence: int, accused: bool, again: bool) -> None:
    d = Dialogue091()
    d.opened(tune={"heartbeat": 1})
    d.channel(1)
    heartbeats(d, silence, d.client)
    d.client.fin()
    with d.unheard(d.server):
        if again:
            d.server.heartbeat()
    d.server.rst()
    found = amqpscope.check(io.BytesIO(d.pcap()))
    rules = {finding.rule for finding in found if finding.peer == "client"}
    assert ("amqp091/C-CLOSE-HANDSHAKE" in rules) == accused


@pytest.mark.parametrize("survived", [[], [500], [3300], [2700, 3300]])
@pytest.mark.parametrize("afterwards", [0, 2500])
def test_which_silence_the_peer_does_not_survive(survived: list[int], afterwards: int) -> None:
    """A silence that the broker put up with, or one behind its FIN, is not the one that made it give up."""
    d = Dialogue091(acks="immediate")
    d.opened(tune={"heartbeat": 1})
    d.channel(1)
    for silence in survived:
        heartbeats(d, silence, d.server)
        d.client.heartbeat()
    heartbeats(d, 2400, d.server)
    d.server.fin()
    d.wait(milliseconds=300)
    with d.unheard(d.client):
        d.client.heartbeat()
        if afterwards:
            d.wait(milliseconds=afterwards)
            d.client.heartbeat()
    d.server.rst()
    found = amqpscope.check(io.BytesIO(d.pcap()))
    assert "amqp091/C-CLOSE-HANDSHAKE" not in {finding.rule for finding in found if finding.peer == "server"}
