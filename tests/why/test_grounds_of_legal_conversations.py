"""Of what peers say legally `why` names no frame that forbids it, nor one that is lacking.

But for what ends something, or asks the other peer to stop: that may be on its way still when the other peer
goes on, and it is named with whether it had arrived.
"""

from __future__ import annotations

import io

import pytest
from support.network import Tap, captured, converse

from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.protocols import protocol_of
from amqpscope.why.frame_ref import FORBIDS, LACKS
from amqpscope.why.grounds import Grounds

# Frames that forbid something once they are read.
STOPS = {
    "amqp10": {"detach", "end", "close"},
    "amqp091": {
        *("channel.close", "connection.close", "channel.flow", "connection.blocked"),
        *("queue.delete", "exchange.delete"),
    },
}
# A client may go on before the server has answered its connection.open.
EARLY = "connection.open-ok"

SEEDS = ["1", "6", "43", "52", "81", "158"]


@pytest.mark.parametrize("protocol", STOPS)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_else_forbids_what_is_legal(protocol: str, seed: str) -> None:
    octets = captured(converse(f"L{seed}", protocol=protocol), Tap(isns=(1, 2), seed="x")).octets
    grounds: dict[object, Grounds] = {}
    frames = 0
    with Capture(io.BytesIO(octets), CaptureOptions(keep=False)) as capture:
        for record in capture:
            if record.connection.protocol != protocol:
                continue
            known = grounds.setdefault(record.connection, protocol_of(protocol).grounds())
            for ground in known.of(record):
                name = "" if ground.mark is None else ground.mark.name
                assert ground.effect != FORBIDS or name in STOPS[protocol], (record.packet, ground)
                assert ground.effect != LACKS or EARLY in ground.what, (record.packet, ground)
            known.take(record)
            frames += 1
    assert frames > 20
