"""A connection of AMQP 0-9-1 in small segments: whichever of them are missing, nobody is accused."""

from __future__ import annotations

import io

import pytest
from support.dialogue091 import Dialogue091

import amqpscope


@pytest.mark.parametrize("segment", [100, 180])
def test_segments_that_are_missing(segment: int) -> None:
    d = Dialogue091(segment=segment)
    d.opened(tune={"frame_max": 4096})
    d.channel(1)
    d.confirms()
    d.declare()
    d.consume()
    d.client.publish(b"x" * 5000, content_type="text/plain")
    d.server.confirm()
    d.server.deliver(b"x" * 300)
    d.client.ack(1)
    d.goodbye()
    packets = d.capture.packets[:]
    assert len(packets) > 40
    for count in (1, 2, 4, 8):
        for at in range(3, len(packets)):
            d.capture.packets = [*packets[:at], *packets[at + count :]]
            found = [finding for finding in amqpscope.check(io.BytesIO(d.pcap())) if finding.certain]
            assert not found, (at, count, found)


def test_a_channel_opened_while_a_frame_of_the_server_is_sent_that_is_missing() -> None:
    d = Dialogue091(segment=5)
    d.opened()
    d.channel(1)
    before = len(d.capture.packets)
    with d.unheard(d.server):
        d.server.blocked()
        d.client.open_channel(2)
    del d.capture.packets[before + 1 : before + 6]
    with d.missed():
        d.server.channel_open_ok(2)
    d.client.method("queue.declare", 2, queue="q")
    d.server.method("queue.declare-ok", 2, queue="q")
    d.goodbye()
    found = [finding for finding in amqpscope.check(io.BytesIO(d.pcap())) if finding.certain]
    assert not found, found
