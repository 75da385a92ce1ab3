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
