"""A fault that a peer repeats with every message is one finding."""

from __future__ import annotations

from support.dialogue091 import Dialogue091
from support.judged import judged


def found(d: Dialogue091, rule: str) -> list[tuple[str, int, bool]]:
    while_read, at_end = judged(d.pcap())
    return [
        (one.peer, one.packet, one.certain) for one in while_read + at_end if one.rule == f"amqp091/{rule}"
    ]


def test_acknowledgements_of_deliveries_that_need_none() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1, 2)
    for channel in (1, 2):
        d.consume(channel=channel, no_ack=True)
    first = None
    for tag in (1, 2, 3):
        for channel in (1, 2):
            d.server.deliver(channel=channel)
            said = d.client.ack(tag, channel=channel)
            first = first or said
    assert first is not None
    [(peer, packet, certain)] = found(d, "B-ACK-NOACK")
    assert (peer, packet, certain) == ("client", d.capture.packets.index(first.packet) + 1, True)


def test_deliveries_beyond_the_prefetch_count() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.qos(1)
    d.consume()
    d.server.deliver()
    said = d.server.deliver()
    d.client.ack(1)
    d.server.deliver()
    d.server.deliver()
    packets = [packet for _, packet, certain in found(d, "B-QOS-COUNT") if certain]
    assert packets == [d.capture.packets.index(said.packet) + 1]
